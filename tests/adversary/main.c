/* adversary-test [--count N] [--seed S] [--only SEED] [--time SECONDS] [--sizes N] [--runs N]
 *                [--show N] [--shrink] [--write DIR] [--codes] [--alarms]
 *                [--code CODE] [--verbose] [--theme NAME|each] [--gpu] [--draw]
 *
 * Tests the path rules of the checker. Random programs (adversary.h), most of them valid and
 * some with a wound, are checked, interpreted at many sizes, and run on the emulator if they are
 * accepted:
 *   accepted and right    good
 *   accepted and wrong    an escape: a fault of the checker or of the generated code. Fails the
 *                         test, unless its class is known to be open (see `open_faults`)
 *   refused and wrong     good
 *   refused and harmless  a false alarm, counted by code
 *   undecided             counted
 * With --gpu each run that is right on the emulator is repeated on the GPU, in this process.
 * An escape is printed with its seed, sizes and finding; --shrink makes the program small first.
 * --draw only prints the programs, for same-test. */
#include "runtime/runtime.h"
#include "tests/adversary/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__)
#define COUNT  40 /* an instrumented emulator is slow */
#define THEMED 4
#else
#define COUNT  300
#define THEMED 60 /* programs per theme, with `--theme each` */
#endif
#define CODES 1000
/* memory of a process: a program whose check needs more is counted */
#define BYTES (UINT64_C(1) << 30)

static const char *const trait_names[TRAITS] = {
    "other spellings", "a divisor", "a pole", "an overflow", "a loop by hand",
    "a mask",          "pieces",    "exits",  "pages",       "a named element"};

/* Known faults of the checker: escapes of these classes are reported, and do not fail the test.
 * Remove a class when its fault is mended. None is open. */
static const Fault open_faults[] = {FAULT_NONE};

/* Harmless programs that are not accepted, by the code of the first reason */
typedef struct Alarms {
    int count, by_code[CODES];
    uint64_t seed[CODES]; /* of the first one */
} Alarms;

/* Codes of the path rules, except P0461, which is rare. A long run must report each of them
 * often. */
static const Code path_codes[] = {P0209, P0214, P0215, P0216, P0217, P0218, P0219, P0228,
                                  P0229, P0235, P0236, P0237, P0238, P0244, P0300, P0301,
                                  P0302, P0303, P0304, P0305, P0306, P0307, P0308, P0309,
                                  P0310, P0311, P0332, P0333, P0402, P0405, P0406, P0410,
                                  P0421, P0423, P0450, P0451, P0452, P0454, P0460, P0490};
#define LONG  20000 /* programs */
#define OFTEN 100

typedef struct Tester {
    uint64_t seed, count;
    double seconds;
    JudgeOptions options;
    const char *folder;
    Theme theme; /* THEMES: draws one */
    bool each;   /* one theme after the other */
    bool shrinks, codes, alarms, verbose, on_gpu, draw;
    /* code: only alarms of this code are shown; -1: all */
    int shown, code;
    int programs, accepted, right, refused, undecided, wrong_refused, dead, textual, untold, greedy,
        runs, gpu_runs, failed;
    /* programs without harm, except those that a rule about the text refuses */
    int harmless;
    int escapes[FAULTS];
    uint64_t first[FAULTS]; /* number of programs before the first one */
    int traits[TRAITS];     /* escapes of programs with one */
    uint64_t first_trait[TRAITS];
    int seen[CODES];
    uint64_t first_greedy;
    Alarms refusals, doubts;
} Tester;

static const char *wounds_text(Arena *arena, const Program *program) {
    Str out = str_new(arena);
    str_add(&out, program->wound_count == 0 ? "no wound" : "");
    for (int i = 0; i < program->wound_count; i++)
        str_printf(&out, "%s%s", i > 0 ? ", " : "", program->wounds[i]);
    return out.text;
}

static bool is_open(Fault fault) {
    for (size_t i = 0; i < COUNT_OF(open_faults); i++)
        if (open_faults[i] == fault) return true;
    return false;
}

static const char *diags_text(Arena *arena, const Diags *diags) {
    Str out = str_new(arena);
    str_add(&out, "");
    diags_render(diags, false, &out);
    return out.text;
}

static void write_file(const Tester *tester, Arena *arena, const char *kind, const char *head,
                       const char *text, uint64_t seed) {
    if (tester->folder == NULL) return;
    char *name =
        arena_printf(arena, "%s/%s-%llu.pipe", tester->folder, kind, (unsigned long long)seed);
    for (char *c = name + strlen(tester->folder); *c != '\0'; c++)
        if (*c == ' ' || *c == ',') *c = '-';
    FILE *file = fopen(name, "w");
    if (file == NULL) return;
    fprintf(file, "%s%s", head, text);
    fclose(file);
}

/* ---- escapes --------------------------------------------------------------------------------- */

static void report_escape(Tester *tester, Arena *arena, Program *program, Judgement *judgement) {
    Fault fault = judgement->fault;
    if (tester->escapes[fault]++ == 0) tester->first[fault] = (uint64_t)tester->programs;
    for (int t = 0; t < TRAITS; t++)
        if (program->traits[t] && tester->traits[t]++ == 0)
            tester->first_trait[t] = (uint64_t)tester->programs;
    bool open = is_open(fault);
    tester->failed += !open;
    bool shows = tester->shown > 0 && (!open || tester->verbose || tester->folder != NULL);
    if (!shows) return;
    tester->shown--;
    if (tester->shrinks) program = shrink(program, arena, judgement);
    const char *head =
        arena_printf(arena,
                     "// seed %llu%s%s, %s: %s (%s, at `%s`)\n// with %s, %d resident, schedule "
                     "%llu\n// the emulator: %s\n",
                     (unsigned long long)program->seed, tester->theme == THEMES ? "" : " --theme ",
                     tester->theme == THEMES ? "" : theme_names[tester->theme],
                     wounds_text(arena, program), fault_names[fault], harm_names[judgement->harm],
                     stmt_text(program, judgement->stmt), sizes_text(arena, &judgement->sizes),
                     judgement->resident, (unsigned long long)judgement->schedule,
                     judgement->finding ? judgement->finding : "shows nothing");
    const char *text = program_text(program);
    printf("---- an escape\n%s%s", head, text);
    fflush(stdout);
    write_file(tester, arena, fault_names[fault], head, text, program->seed);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static int code_number(Code code) { return atoi(code_rows[code].name + 1) % CODES; }

static void count_codes(Tester *tester, const Diags *diags) {
    bool counted[CODES] = {false};
    for (size_t i = 0; i < diags->items.count; i++) {
        const Diag *diag = diags->items.items[i];
        if (diag->severity != SEVERITY_ERROR && diag->severity != SEVERITY_INCOMPLETE) continue;
        int number = code_number(diag->code);
        if (!counted[number]) tester->seen[number]++;
        counted[number] = true;
    }
}

static const Diag *first_of(const Diags *diags, Severity severity) {
    for (size_t i = 0; i < diags->items.count; i++)
        if (diags->items.items[i]->severity == severity) return diags->items.items[i];
    return NULL;
}

static void show_alarm(Tester *tester, Arena *arena, Program *program, const Diag *diag) {
    bool refused = diag->severity == SEVERITY_ERROR;
    const char *kind = refused ? "refused" : "undecided";
    if (tester->shrinks) program = shrink_alarm(program, arena, &tester->options, diag);
    Compiled compiled;
    const char *text = program_text(program), *code = code_rows[diag->code].name;
    compile_text(arena, text, &compiled);
    printf("---- %s and harmless, seed %llu, %s\n%s%s", kind, (unsigned long long)program->seed,
           wounds_text(arena, program), diags_text(arena, compiled.diags), text);
    fflush(stdout);
    write_file(tester, arena, arena_printf(arena, "%s-%s", refused ? "alarm" : "doubt", code),
               arena_printf(arena, "// harmless, and %s: %s\n", kind, code), text, program->seed);
}

/* severity: of the reason why it is not accepted */
static void report_alarm(Tester *tester, Arena *arena, Program *program, const Judgement *judgement,
                         Alarms *alarms, Severity severity) {
    const Diag *diag = first_of(judgement->compiled.diags, severity);
    int code = diag ? code_number(diag->code) : 0;
    alarms->count++;
    if (alarms->by_code[code]++ == 0) alarms->seed[code] = program->seed;
    bool shows = tester->alarms && tester->shown > 0 && diag != NULL &&
                 (tester->code < 0 || tester->code == code);
    if (!shows || (tester->code < 0 && alarms->by_code[code] > 5)) return;
    tester->shown--;
    show_alarm(tester, arena, program, diag);
}

static const char *verdict_text(const Compiled *compiled) {
    return compiled->refused     ? code_rows[first_of(compiled->diags, SEVERITY_ERROR)->code].name
           : compiled->undecided ? "undecided"
                                 : "accepted";
}

/* The checker must refuse a sum that includes values computed from padding, even if the program
 * intends it. */
static bool sums_padding(const Judgement *judgement) {
    const Diag *diag = first_reason(&judgement->compiled);
    return judgement->padded && diag != NULL && (diag->code == P0219 || diag->code == P0236);
}

/* The program is ill-formed, or no copy of the hardware: a mutation of its text, and no error */
static bool is_ill_formed(const Judgement *judgement) {
    static const Code codes[] = {P0107, P0109, P0201, P0211};
    const Diag *diag = first_reason(&judgement->compiled);
    for (size_t i = 0; diag != NULL && i < COUNT_OF(codes); i++)
        if (diag->code == codes[i]) return true;
    return false;
}

static void count_verdict(Tester *tester, Arena *arena, Program *program, Judgement *judgement) {
    const Compiled *compiled = &judgement->compiled;
    bool wrong = judgement->fault != FAULT_NONE, followed = judgement->harm != HARM_LONG;
    bool sums = !wrong && sums_padding(judgement),
         by_text = program->textual || sums || is_ill_formed(judgement);
    bool harmless = !wrong && !by_text && followed;
    tester->harmless += harmless;
    if (compiled->refused) {
        tester->refused++;
        tester->wrong_refused += wrong;
        tester->textual += !wrong && by_text;
        tester->untold += !wrong && !by_text && !followed;
        tester->dead += harmless && judgement->dead;
        if (harmless && !judgement->dead)
            report_alarm(tester, arena, program, judgement, &tester->refusals, SEVERITY_ERROR);
    } else if (compiled->undecided) {
        tester->undecided++;
        if (harmless)
            report_alarm(tester, arena, program, judgement, &tester->doubts, SEVERITY_INCOMPLETE);
    } else {
        tester->accepted++;
        tester->right += !wrong;
        if (wrong) report_escape(tester, arena, program, judgement);
    }
}

static void try_program(Tester *tester, uint64_t seed) {
    Arena *arena = arena_new();
    Program *program = program_draw(arena, seed, tester->theme);
    if (tester->draw) {
        drawn_print(tester->theme == THEMES ? "adversary" : theme_names[tester->theme], seed,
                    program_text(program));
        arena_free(arena);
        return;
    }
    Judgement judgement;
    judge_program(program, arena, &tester->options, &judgement);
    const Compiled *compiled = &judgement.compiled;
    bool wrong = judgement.fault != FAULT_NONE;
    tester->programs++;
    if (compiled->greedy) {
        if (tester->greedy++ == 0) tester->first_greedy = seed;
        arena_free(arena);
        return;
    }
    tester->runs += judgement.runs;
    tester->gpu_runs += judgement.gpu_runs;
    count_codes(tester, compiled->diags);
    if (tester->verbose) {
        printf("seed %llu, %s: %s, %s, %d runs\n", (unsigned long long)seed,
               wounds_text(arena, program), verdict_text(compiled),
               wrong ? harm_names[judgement.harm] : "harmless", judgement.runs);
        fflush(stdout);
    }
    count_verdict(tester, arena, program, &judgement);
    arena_free(arena);
}

static void show_program(Tester *tester, uint64_t seed) {
    Arena *arena = arena_new();
    Program *program = program_draw(arena, seed, tester->theme);
    Judgement judgement;
    printf("// seed %llu, %s\n%s", (unsigned long long)seed, wounds_text(arena, program),
           program_text(program));
    fflush(stdout);
    judge_program(program, arena, &tester->options, &judgement);
    if (judgement.compiled.greedy) printf("greedy\n");
    printf("%s%s; %s", diags_text(arena, judgement.compiled.diags),
           judgement.compiled.refused     ? "refused"
           : judgement.compiled.undecided ? "undecided"
                                          : "accepted",
           judgement.fault != FAULT_NONE ? fault_names[judgement.fault] : "harmless");
    if (judgement.fault != FAULT_NONE)
        printf(" (%s, at `%s`) with %s, %d resident, schedule %llu; the emulator: %s",
               harm_names[judgement.harm], stmt_text(program, judgement.stmt),
               sizes_text(arena, &judgement.sizes), judgement.resident,
               (unsigned long long)judgement.schedule,
               judgement.finding ? judgement.finding : "shows nothing");
    printf("; %d runs\n", judgement.runs);
    arena_free(arena);
}

/* ---- main ------------------------------------------------------------------------------------ */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void report_alarms(const Tester *tester, const char *verdict, const Alarms *alarms) {
    printf("%d of %d harmless programs %s (%.2f %%)\n", alarms->count, tester->harmless, verdict,
           tester->harmless > 0 ? 100.0 * alarms->count / tester->harmless : 0.0);
    for (int i = 0; i < CODES; i++)
        if (alarms->by_code[i] > 0)
            printf("  %d by P%04d, the first by seed %llu\n", alarms->by_code[i], i,
                   (unsigned long long)alarms->seed[i]);
}

static void report(const Tester *tester) {
    printf("%d programs: %d accepted, of them %d right in %d runs; %d refused, of them %d wrong, "
           "%d by rules about "
           "the text, %d not followed to the end; %d undecided\n",
           tester->programs, tester->accepted, tester->right, tester->runs, tester->refused,
           tester->wrong_refused, tester->textual, tester->untold, tester->undecided);
    if (tester->greedy > 0)
        printf("%d programs took more memory than there is, the first by seed %llu\n",
               tester->greedy, (unsigned long long)tester->first_greedy);
    report_alarms(tester, "refused", &tester->refusals);
    printf("%d refused where some statement is never reached\n", tester->dead);
    report_alarms(tester, "undecided", &tester->doubts);
    for (int i = 0; i < CODES && tester->codes; i++)
        if (tester->seen[i] > 0) printf("P%04d: %d programs\n", i, tester->seen[i]);
    for (int f = 1; f < FAULTS; f++) {
        if (tester->escapes[f] > 0)
            printf("%s: %d escapes, the first after %llu programs%s\n", fault_names[f],
                   tester->escapes[f], (unsigned long long)tester->first[f],
                   is_open((Fault)f) ? " (known to be open)" : "");
        else if (is_open((Fault)f))
            printf("%s: no escape, though it is known to be open\n", fault_names[f]);
    }
    for (int t = 0; t < TRAITS; t++)
        if (tester->traits[t] > 0)
            printf("with %s: %d escapes, the first after %llu programs\n", trait_names[t],
                   tester->traits[t], (unsigned long long)tester->first_trait[t]);
}

/* Codes that a long run reports too rarely to test their rule */
static int rare_codes(const Tester *tester) {
    int rare = 0;
    for (size_t i = 0; i < COUNT_OF(path_codes) && tester->programs >= LONG; i++) {
        int seen = tester->seen[code_number(path_codes[i])];
        if (seen >= OFTEN) continue;
        printf("%s: %d programs, fewer than %d\n", code_rows[path_codes[i]].name, seen, OFTEN);
        rare++;
    }
    return rare;
}

static Theme theme_named(const char *name) {
    int theme = 0;
    while (theme < THEMES && strcmp(name, theme_names[theme]) != 0) theme++;
    return (Theme)theme;
}

static bool read_words(Tester *tester, int argc, char **argv, bool *only) {
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool *flag = strcmp(word, "--verbose") == 0  ? &tester->verbose
                     : strcmp(word, "--shrink") == 0 ? &tester->shrinks
                     : strcmp(word, "--codes") == 0  ? &tester->codes
                     : strcmp(word, "--alarms") == 0 ? &tester->alarms
                     : strcmp(word, "--gpu") == 0    ? &tester->on_gpu
                     : strcmp(word, "--draw") == 0   ? &tester->draw
                                                     : NULL;
        if (flag != NULL) {
            *flag = true;
            continue;
        }
        if (value == NULL) return false;
        i++;
        if (strcmp(word, "--count") == 0)
            tester->count = strtoull(value, NULL, 10);
        else if (strcmp(word, "--seed") == 0)
            tester->seed = strtoull(value, NULL, 10);
        else if (strcmp(word, "--only") == 0)
            tester->seed = strtoull(value, NULL, 10), tester->count = 1, *only = true;
        else if (strcmp(word, "--sizes") == 0)
            tester->options.sizes = atoi(value);
        else if (strcmp(word, "--runs") == 0)
            tester->options.runs = atoi(value);
        else if (strcmp(word, "--show") == 0)
            tester->shown = atoi(value);
        else if (strcmp(word, "--code") == 0)
            tester->code = atoi(value + (value[0] == 'P')), tester->alarms = true;
        else if (strcmp(word, "--time") == 0)
            tester->seconds = strtod(value, NULL), tester->count = UINT64_MAX;
        else if (strcmp(word, "--write") == 0)
            tester->folder = value;
        else if (strcmp(word, "--theme") == 0 && strcmp(value, "each") == 0)
            tester->each = true, tester->count = THEMED * (THEMES - 1);
        else if (strcmp(word, "--theme") == 0 && theme_named(value) != THEMES)
            tester->theme = theme_named(value);
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv) {
    Arena *arena = arena_new();
    Tester *tester = NEW(arena, Tester);
    bool only = false;
    *tester = (Tester){.seed = 1,
                       .count = COUNT,
                       .options = {.sizes = 14, .runs = 8},
                       .shown = 20,
                       .code = -1,
                       .theme = THEMES};
    double start = now();
    if (!read_words(tester, argc, argv, &only)) {
        fprintf(stderr, "adversary-test [--count N] [--seed S] [--only SEED] [--time SECONDS] "
                        "[--sizes N] [--runs N] "
                        "[--show N] [--shrink] [--write DIR] [--codes] [--alarms] "
                        "[--code CODE] [--verbose] [--theme NAME|each] [--gpu] "
                        "[--draw]\n");
        arena_free(arena);
        return 2;
    }
#if !defined(__SANITIZE_ADDRESS__)
    if (!tester->on_gpu) /* the driver maps more */
        setrlimit(RLIMIT_AS, &(struct rlimit){BYTES, BYTES});
#endif
    Runtime *gpu = tester->on_gpu ? open_gpu(arena, &tester->failed) : NULL;
    tester->options.gpu = gpu;
    bool silent = tester->draw || only;
    only = only && !tester->draw;
    if (only) show_program(tester, tester->seed);
    for (uint64_t i = 0;
         !only && i < tester->count && (tester->seconds <= 0 || now() - start < tester->seconds);
         i++) {
        if (tester->each) tester->theme = (Theme)(1 + i % (THEMES - 1));
        try_program(tester, tester->seed + i);
    }
    if (!silent) report(tester);
    if (gpu != NULL) printf("%d runs on the GPU\n", tester->gpu_runs);
    if (!silent && tester->theme == THEMES) tester->failed += rare_codes(tester);
    int failed = tester->failed, passed = tester->programs - failed;
    runtime_close(gpu);
    arena_free(arena);
    if (!silent) printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
