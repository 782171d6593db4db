/* mutants-test [--only TEXT] [--all] [--say] [FILE..]
 * mutants-test --draw [--seed S] [--count N]
 *
 * Mutates the examples and tests that each mutant is found: refused by the compiler, or wrong,
 * hanging or out of bounds in one of the example's runs on the emulator.
 *   tests/mutants/written.txt     errors that people make, each with the code that must find it
 *   tests/mutants/equivalent.txt  rules for mutants that change nothing, with the reason
 * All other mutants must be found; a rule that matches none is an error too. Tries a share of
 * the mutants, with --all each. --only keeps those whose line contains the text; --say prints
 * how each was found. --draw prints drawn ones of the examples, for same-test. */
#include "emulator/emulator.h"
#include "lib/private.h"
#include "reference/reference.h"
#include "tests/generate/generate.h"
#include "tests/mutants/mutants.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
/* one mutant in this many is tried; an instrumented emulator is slow */
#define SHARE 120
#else
#define SHARE 12
#endif
/* the same for mutants that only replace a name, which are numerous */
#define SHARE_OF_NAMES 4
/* warp instructions of a run; a mutant's loop may not end */
#define LIMIT 2000000

typedef struct Rule {
    const char *file, *how, *line, *reason;
    int used;
} Rule;

typedef struct Written {
    const char *file, *what, *from, *to, *code;
} Written;

typedef struct Case { /* a run of an example, given by its head */
    VEC(const char *) values;
    VEC(const char *) fills;
    uint64_t seed;
} Case;

typedef VEC(Case) Cases;

typedef struct Tester {
    Arena *arena;
    int passed, failed, refused, caught, equivalent;
    VEC(Rule) rules;
    VEC(Written) written;
    const char *only;
    bool all, say;
} Tester;

/* ---- files ----------------------------------------------------------------------------------- */

static char *slurp(Arena *arena, const char *path) {
    Source none = {.name = path};
    Diags *diags = diags_new(arena, &none);
    size_t length = 0;
    const char *text = file_text(arena, path, &length, diags);
    return text != NULL ? arena_copy(arena, text, length) : NULL;
}

static char *trimmed(char *text) {
    while (*text == ' ') text++;
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == ' ') text[--length] = '\0';
    return text;
}

/* FILE | operation | line | reason */
static void read_rules(Tester *tester, const char *path) {
    char *rest, *text = slurp(tester->arena, path);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *part[4] = {line, NULL, NULL, NULL};
        if (*line == '#') continue;
        for (int i = 1; i < 4; i++) {
            char *bar = part[i - 1] != NULL ? strstr(part[i - 1], " | ") : NULL;
            if (bar == NULL) break;
            *bar = '\0', part[i] = bar + 3;
        }
        if (part[3] == NULL) {
            printf("%s: not a rule: %s\n", path, line);
            tester->failed++;
            continue;
        }
        vec_push(tester->arena, &tester->rules,
                 (Rule){trimmed(part[0]), trimmed(part[1]), trimmed(part[2]), trimmed(part[3]), 0});
    }
}

/* `\n` in a text is the end of a line */
static char *with_lines(char *text) {
    char *to = text;
    for (char *from = text; *from != '\0'; from++) {
        bool end = from[0] == '\\' && from[1] == 'n';
        *to++ = end ? '\n' : *from;
        from += end;
    }
    *to = '\0';
    return text;
}

/* Four lines: "FILE: what", then after "-", "+" and "=" the original text, the new text, and the
 * code that finds it */
static void read_written(Tester *tester, const char *path) {
    char *rest, *text = slurp(tester->arena, path);
    Written w = {0};
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *colon = strstr(line, ": ");
        if (*line == '#') continue;
        if (strncmp(line, "- ", 2) == 0)
            w.from = with_lines(line + 2);
        else if (strncmp(line, "+ ", 2) == 0 || strcmp(line, "+") == 0)
            w.to = with_lines(line + 1 + (line[1] == ' '));
        else if (strncmp(line, "= ", 2) == 0) {
            w.code = line + 2;
            vec_push(tester->arena, &tester->written, w);
        } else if (colon != NULL) {
            *colon = '\0';
            w = (Written){.file = line, .what = colon + 2};
        }
    }
}

static void read_head(Tester *tester, const char *text, Cases *cases) {
    Arena *arena = tester->arena;
    char *rest, *copy = arena_copy(arena, text, strlen(text));
    for (char *line = strtok_r(copy, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *more;
        Case c = {0};
        if (strncmp(line, "//> exit", 8) == 0 && cases->count > 0)
            cases->count--; /* a run that fails without mutation */
        if (strncmp(line, "//> run", 7) != 0) continue;
        for (char *word = strtok_r(line + 7, " ", &more); word != NULL;
             word = strtok_r(NULL, " ", &more)) {
            if (strcmp(word, "--fill") == 0)
                vec_push(arena, &c.fills, strtok_r(NULL, " ", &more));
            else if (strcmp(word, "--seed") == 0)
                c.seed = strtoull(strtok_r(NULL, " ", &more), NULL, 10);
            else
                vec_push(arena, &c.values, word);
        }
        vec_push(arena, cases, c);
    }
    vec_push(arena, cases, (Case){.seed = 1}); /* the run without arguments: usually the largest */
}

/* ---- one mutant ------------------------------------------------------------------------------ */

/* The first error or incomplete verdict */
static const char *first_error(const Diags *diags) {
    for (size_t i = 0; i < diags->items.count; i++) {
        const CodeRow *row = &code_rows[diags->items.items[i]->code];
        if (row->severity == SEVERITY_ERROR || row->severity == SEVERITY_INCOMPLETE)
            return row->name;
    }
    return NULL;
}

/* The code that a run ends with, or NULL: it is right */
static const char *run_case(Arena *arena, PipecProgram *program, const Case *c) {
    Diags *diags = diags_new(arena, program->source);
    VEC(Argument) given = {0};
    Argument argument, *all;
    size_t count;
    LaunchOptions options = {.seed = c->seed, .watchdog_ns = 1000000000};
    Before before = {0};
    RunResult result = {0};
    EmulatorOptions emulator = {.limit = LIMIT, .resident = 3};
    ReferenceOptions reference = {.seed = 1};
    Verdict verdict = {.kind = VERDICT_WRONG};
    for (size_t i = 0; i < c->values.count; i++)
        if (!pipec_program_is_static(program, c->values.items[i]) &&
            argument_parse(arena, c->values.items[i], &argument, diags))
            vec_push(arena, &given, argument);
    for (size_t i = 0; i < c->fills.count; i++)
        if (argument_parse_fill(arena, c->fills.items[i], &argument, diags))
            vec_push(arena, &given, argument);
    if (!reference_arguments(arena, program->prog, program->manifest, given.items, given.count,
                             &all, &count, diags))
        return first_error(diags);
    Launch *launch = launch_prepare(arena, program->manifest, program->ptx.text,
                                    program->ptx.length, all, count, &options, diags);
    if (launch == NULL) return first_error(diags);
    if (reference_before(arena, program->prog, launch, &before, diags) &&
        emulator_run(arena, launch, &emulator, &result, diags) == RUN_DONE &&
        launch_guards(launch, diags))
        reference_verdict(arena, program->prog, launch, &before, &reference, &verdict, diags);
    reference_before_free(&before);
    launch_free(launch);
    return verdict.kind == VERDICT_RIGHT ? NULL
           : first_error(diags) != NULL  ? first_error(diags)
                                         : "nothing";
}

typedef struct Found {
    const char *code; /* NULL: not found */
    bool by_compiler;
} Found;

static Found judge(const char *text, const char *name, const Cases *cases) {
    for (size_t i = 0; i < cases->count; i++) {
        const Case *c = &cases->items[i];
        Arena *arena = arena_new();
        PipecOptions options = {.size = sizeof options,
                                .name = name,
                                .values = c->values.items,
                                .value_count = c->values.count,
                                .launch_values = true,
                                .watchdog = true};
        PipecProgram *program = pipec_compile(text, strlen(text), &options);
        Found found = {.by_compiler = program->manifest == NULL};
        found.code = found.by_compiler ? first_error(program->diags) : run_case(arena, program, c);
        pipec_program_free(program);
        arena_free(arena);
        if (found.code != NULL) return found;
    }
    return (Found){NULL, false};
}

/* ---- mechanical mutants ---------------------------------------------------------------------- */

static bool matches(const char *pattern, const char *text) { /* `*` is any text */
    if (*pattern == '*')
        return matches(pattern + 1, text) || (*text != '\0' && matches(pattern, text + 1));
    return *pattern == *text && (*text == '\0' || matches(pattern + 1, text + 1));
}

static Rule *rule_for(Tester *tester, const char *file, const char *how, const char *line) {
    for (size_t i = 0; i < tester->rules.count; i++) {
        Rule *rule = &tester->rules.items[i];
        if (matches(rule->file, file) && matches(rule->how, how) && matches(rule->line, line))
            return rule;
    }
    return NULL;
}

static void mechanical(Tester *tester, const char *path, const char *text, const Cases *cases) {
    Mutations mutations = {0};
    mutations_of(tester->arena, text, &mutations);
    for (size_t i = 0; i < mutations.count; i++) {
        Arena *arena = arena_new();
        const char *line = mutation_line(arena, text, &mutations.items[i]),
                   *how = mutations.items[i].how;
        bool asked = tester->only != NULL && strstr(line, tester->only) != NULL;
        Rule *rule = rule_for(tester, path, how, line);
        bool named = strcmp(how, "other name") == 0;
        size_t share = tester->all ? 1 : named ? SHARE * SHARE_OF_NAMES : SHARE;
        if (tester->only != NULL ? asked : rule == NULL && i % share == 0) {
            Found found = judge(mutated(arena, text, &mutations.items[i]), path, cases);
            *(found.code == NULL ? &tester->failed : &tester->passed) += 1;
            if (found.code != NULL) *(found.by_compiler ? &tester->refused : &tester->caught) += 1;
            if (found.code == NULL)
                printf("%s: lives: %s | %s\n", path, how, line);
            else if (asked || tester->say)
                printf("%s: %s: %s | %s\n", path, found.code, how, line);
        }
        if (rule != NULL) rule->used++, tester->equivalent++;
        arena_free(arena);
    }
}

/* ---- written mutants ------------------------------------------------------------------------- */

static void written(Tester *tester, const Written *w, const char *path, const char *text,
                    const Cases *cases) {
    Arena *arena = arena_new();
    const char *at = w->from != NULL ? strstr(text, w->from) : NULL;
    if (at == NULL || strstr(at + 1, w->from) != NULL) {
        printf("%s: %s: `%s` stands there %s\n", path, w->what, w->from,
               at == NULL ? "nowhere" : "more than once");
        tester->failed++;
    } else {
        Mutation mutation = {w->what, (uint32_t)(at - text),
                             (uint32_t)(at - text + (ptrdiff_t)strlen(w->from)), w->to};
        Found found = judge(mutated(arena, text, &mutation), path, cases);
        bool fine = found.code != NULL && strcmp(found.code, w->code) == 0;
        *(fine ? &tester->passed : &tester->failed) += 1;
        if (!fine)
            printf("%s: %s: expected %s, and it %s\n%s\n", path, w->what, w->code,
                   found.code != NULL ? arena_printf(arena, "is found with %s", found.code)
                                      : "lives",
                   mutation_line(arena, text, &mutation));
    }
    arena_free(arena);
}

static void try_file(Tester *tester, const char *path) {
    const char *text = slurp(tester->arena, path);
    Cases cases = {0};
    if (text == NULL) {
        printf("%s: cannot be read\n", path);
        tester->failed++;
        return;
    }
    read_head(tester, text, &cases);
    for (size_t i = 0; i < tester->written.count && tester->only == NULL; i++)
        if (strcmp(tester->written.items[i].file, path) == 0)
            written(tester, &tester->written.items[i], path, text, &cases);
    mechanical(tester, path, text, &cases);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

typedef VEC(const char *) Paths;

static Paths examples(Tester *tester) {
    Paths paths = {0};
    DIR *folder = opendir("examples");
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        size_t length = strlen(entry->d_name);
        if (length > 5 && strcmp(entry->d_name + length - 5, ".pipe") == 0)
            vec_push(tester->arena, &paths,
                     arena_printf(tester->arena, "examples/%s", entry->d_name));
    }
    if (folder != NULL) closedir(folder);
    if (paths.count > 0) qsort(paths.items, paths.count, sizeof *paths.items, by_name);
    return paths;
}

static void try_examples(Tester *tester) {
    Paths paths = examples(tester);
    for (size_t i = 0; i < paths.count; i++) try_file(tester, paths.items[i]);
    for (size_t i = 0; i < tester->rules.count && tester->only == NULL; i++) {
        const Rule *rule = &tester->rules.items[i];
        if (rule->used > 0) continue;
        printf("tests/mutants/equivalent.txt: matches nothing: %s | %s | %s\n", rule->file,
               rule->how, rule->line);
        tester->failed++;
    }
}

/* Each seed draws a file and one of its mutations. */
static void print_drawn(Tester *tester, uint64_t seed, uint64_t count) {
    Paths paths = examples(tester);
    if (paths.count == 0) return;
    const char **texts = NEW_ARRAY(tester->arena, const char *, paths.count);
    Mutations *mutations = NEW_ARRAY(tester->arena, Mutations, paths.count);
    for (uint64_t end = seed + count; seed != end; seed++) {
        Random random = {seed};
        size_t file = draw(&random, (uint32_t)paths.count);
        if (texts[file] == NULL) {
            texts[file] = slurp(tester->arena, paths.items[file]);
            if (texts[file] == NULL) continue;
            mutations_of(tester->arena, texts[file], &mutations[file]);
        }
        if (mutations[file].count == 0) continue;
        Arena *arena = arena_new();
        size_t which = draw(&random, (uint32_t)mutations[file].count);
        drawn_print(arena_printf(arena, "%s-mutant", paths.items[file]), seed,
                    mutated(arena, texts[file], &mutations[file].items[which]));
        arena_free(arena);
    }
}

int main(int argc, char **argv) {
    Tester tester = {.arena = arena_new()};
    uint64_t seed = 1, count = 100;
    int files = 0;
    bool drawn = false;
    read_rules(&tester, "tests/mutants/equivalent.txt");
    read_written(&tester, "tests/mutants/written.txt");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            tester.only = argv[++i];
        else if (strcmp(argv[i], "--all") == 0)
            tester.all = true;
        else if (strcmp(argv[i], "--say") == 0)
            tester.say = true;
        else if (strcmp(argv[i], "--draw") == 0)
            drawn = true;
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--count") == 0 && i + 1 < argc)
            count = strtoull(argv[++i], NULL, 10);
        else if (*argv[i] != '-')
            try_file(&tester, argv[i]), files++;
        else {
            fprintf(stderr, "mutants-test [--only TEXT] [--all] [--say] [FILE..]\n"
                            "mutants-test --draw [--seed S] [--count N]\n");
            return 2;
        }
    }
    if (drawn) {
        print_drawn(&tester, seed, count);
        arena_free(tester.arena);
        return 0;
    }
    if (files == 0) try_examples(&tester);
    printf("%d wounds refused by the compiler, %d caught when run, %d equivalent by rule\n",
           tester.refused, tester.caught, tester.equivalent);
    printf("%d passed, %d failed\n", tester.passed, tester.failed);
    arena_free(tester.arena);
    return tester.failed > 0;
}
