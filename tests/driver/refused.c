/* Suites `parse`, `check` and `codes`: refused programs and their messages.
 *
 * NAME.pipe gives exactly NAME.err; a file without one is accepted. Error codes are marked by
 * hand on the wrong lines, so that a re-bless cannot hide a lost error: `//~ P0102` on the line
 * itself, `//~^ P0102` one line below for each `^`, `//! P0102` for an error without a place
 * in this file.
 * Every refused NAME.pipe of tests/check has an accepted twin NAME-ok.pipe; a twin may only be
 * refused because code generation is not implemented (P0290). `//> check [KERNEL] N=5`
 * names the kernel and gives values for statics, `//> build` generates code too; includes are
 * relative to the folder of the program, unless it has a line `//> without a folder`.
 *
 * Suite `codes`: every row of util/errors.def has its page, and a test; the tables of the
 * reference are those of the rows. */
#include "prog/prog.h"
#include "parser/parser.h"
#include "tests/driver/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct Found {
    const char *code;
    uint32_t line; /* 0: without a place */
    bool is_error;
    bool matched;
} Found;

typedef struct Outcome {
    const char *text; /* rendered; "" without diagnostics */
    VEC(Found) found;
    size_t errors;
    bool undecided; /* a verdict is incomplete */
} Outcome;

/* ---- outcome --------------------------------------------------------------------------------- */

static void parse_only(Test *test, const char *text, size_t length, Outcome *outcome) {
    const Source *source = source_new(test->arena, test->item, text, length);
    Diags *diags = diags_new(test->arena, source);
    parser_parse(test->arena, names_new(test->arena), source, diags);
    diags_finish(diags);
    Str rendered = str_new(test->arena);
    str_add(&rendered, "");
    diags_render(diags, false, &rendered);
    outcome->text = rendered.text ? rendered.text : "";
    outcome->errors = diags->errors;
    for (size_t i = 0; i < diags->items.count; i++) {
        const Diag *diag = diags->items.items[i];
        uint32_t line = diag->has_place ? source_line(source, diag->labels[0].span.lo) : 0;
        Found found = {code_rows[diag->code].name, line, diag->severity == SEVERITY_ERROR, false};
        vec_push(test->arena, &outcome->found, found);
    }
}

/* Diagnostics name a program of tests/check without its folder, so that their texts do not depend
 * on where it is. */
static const char *source_name(const Test *test) {
    return arena_printf(test->arena, "tests/check/%s", strrchr(test->item, '/') + 1);
}

static void take(Test *test, const PipecDiagnostics *diagnostics, Outcome *outcome) {
    const char *text = pipec_diagnostics_text(diagnostics);
    outcome->text = arena_copy(test->arena, text, strlen(text));
    outcome->errors = pipec_diagnostics_errors(diagnostics);
    for (size_t i = 0; i < pipec_diagnostics_count(diagnostics); i++) {
        const PipecDiagnostic *diagnostic = pipec_diagnostics_get(diagnostics, i);
        outcome->undecided = outcome->undecided || diagnostic->severity == PIPEC_UNDECIDED;
        const char *file = pipec_diagnostics_file(diagnostics, i, 0);
        bool own = file && strcmp(file, source_name(test)) == 0;
        Found found = {arena_copy(test->arena, diagnostic->code, strlen(diagnostic->code)),
                       own ? diagnostic->labels[0].line : 0, diagnostic->severity == PIPEC_ERROR,
                       false};
        vec_push(test->arena, &outcome->found, found);
    }
}

/* Builds what `check` accepts. */
static void build(Test *test, const char *text, size_t length, PipecOptions options) {
    options.check_only = false;
    PipecProgram *program = pipec_compile(text, length, &options);
    expect(test, pipec_program_ptx(program, NULL) != NULL,
           "it is accepted, and cannot be built:\n%s",
           pipec_diagnostics_text(pipec_program_diagnostics(program)));
    pipec_program_free(program);
}

static void check_whole(Test *test, const char *text, size_t length, Outcome *outcome) {
    PipecOptions options = {.size = sizeof options,
                            .name = source_name(test),
                            .folder = folder_of(test->arena, test->item),
                            .check_only = true};
    Words lines = lines_of(test->arena, text);
    for (size_t i = 0; i < lines.count; i++) {
        if (strncmp(lines.items[i], "//> build", 9) == 0) options.check_only = false;
        if (strcmp(lines.items[i], "//> without a folder") == 0) options.folder = NULL;
        if (strncmp(lines.items[i], "//> check", 9) == 0 ||
            strncmp(lines.items[i], "//> build", 9) == 0) {
            Words words = words_of(test->arena, lines.items[i] + 9);
            bool named = words.count > 0 && strchr(words.items[0], '=') == NULL;
            options.kernel = named ? words.items[0] : NULL;
            options.values = words.items + named;
            options.value_count = words.count - named;
        }
    }
    PipecProgram *program = pipec_compile(text, length, &options);
    if (!expect(test, program != NULL, "no memory")) return;
    take(test, pipec_program_diagnostics(program), outcome);
    bool accepted = pipec_program_status(program) == PIPEC_FINE;
    bool known = pipec_program_kernel(program, 0) != NULL &&
                 (options.kernel != NULL || pipec_program_kernel(program, 1) == NULL);
    pipec_program_free(program);
    if (accepted && known) build(test, text, length, options);
}

/* ---- marks ----------------------------------------------------------------------------------- */

static bool match(Outcome *outcome, const char *code, uint32_t line) {
    for (size_t i = 0; i < outcome->found.count; i++) {
        Found *found = &outcome->found.items[i];
        if (!found->matched && found->line == line && strcmp(found->code, code) == 0)
            return found->matched = true;
    }
    return false;
}

/* Every mark has its diagnostic, every error its mark */
static bool marks_hold(Test *test, const char *text, Outcome *outcome) {
    bool fine = true;
    Words lines = lines_of(test->arena, text);
    for (uint32_t i = 0; i < lines.count; i++) {
        uint32_t line = i + 1;
        const char *at = strstr(lines.items[i], "//~");
        const char *whole = strstr(lines.items[i], "//! P");
        if (!at && !whole) continue;
        if (at)
            at += 3;
        else
            at = whole + 3, line = 0;
        for (; *at == '^'; at++) line--;
        for (const char *code; (code = next_code(test->arena, &at));) {
            if (match(outcome, code, line)) continue;
            fine = expect(test, false, "line %u is marked %s, which is not reported%s", i + 1, code,
                          line ? "" : " without a place");
        }
    }
    for (size_t i = 0; i < outcome->found.count; i++) {
        const Found *found = &outcome->found.items[i];
        if (found->is_error && !found->matched)
            fine = expect(test, false, "%s is reported at line %u and not marked `//~ %s` there",
                          found->code, found->line, found->code);
    }
    return fine;
}

static bool marked(Test *test, const char *text) {
    Words lines = lines_of(test->arena, text);
    for (size_t i = 0; i < lines.count; i++)
        if (strstr(lines.items[i], "//~") || strstr(lines.items[i], "//! P")) return true;
    return false;
}

static void compare_golden(Test *test, const Outcome *outcome) {
    const char *golden = with_suffix(test->arena, test->item, ".err");
    bool any = outcome->text[0] != 0;
    if (test->bless) {
        if (any)
            file_write(test, golden, outcome->text, strlen(outcome->text));
        else if (file_exists(golden))
            unlink(golden);
        return;
    }
    const char *wanted = file_read(test->arena, golden, NULL);
    if (!wanted) {
        expect(test, !any, "%s is missing (make bless); the text is\n%s", golden, outcome->text);
    } else if (strcmp(wanted, outcome->text) == 0) {
        expect(test, true, "%s", "");
    } else {
        Str difference = str_new(test->arena);
        text_difference(test->arena, wanted, outcome->text, &difference);
        expect(test, false, "the text is not that of %s: %s", golden, difference.text);
    }
}

/* True if the only errors are that code generation is not implemented */
static bool only_not_generated(const Outcome *outcome) {
    for (size_t i = 0; i < outcome->found.count; i++) {
        const Found *found = &outcome->found.items[i];
        if (found->is_error && strcmp(found->code, "P0290") != 0) return false;
    }
    return !outcome->undecided;
}

static void judge(Test *test, const char *text, Outcome *outcome, bool twins) {
    if (!marks_hold(test, text, outcome)) {
        str_printf(&test->out, "%s", outcome->text);
        return;
    }
    bool refused = outcome->errors > 0 || outcome->undecided;
    if (!refused && !marked(test, text) &&
        !file_exists(with_suffix(test->arena, test->item, ".err"))) {
        expect(test, true, "%s", ""); /* accepted; may have notes */
        return;
    }
    compare_golden(test, outcome);
    if (!refused || !twins || (ends_with(test->item, "-ok.pipe") && only_not_generated(outcome)))
        return;
    const char *twin = with_suffix(test->arena, test->item, "-ok.pipe");
    expect(test, file_exists(twin), "the accepted twin %s is missing", twin);
}

/* The folder of a program has the hundred of its first diagnostic, as P03xx. An accepted twin
 * is in the folder of its refused program; other accepted programs are in `accepted`. */
static void expect_folder(Test *test, const Outcome *outcome) {
    size_t length = strlen(test->item);
    if (ends_with(test->item, "-ok.pipe")) {
        size_t base = length - strlen("-ok.pipe");
        if (file_exists(arena_printf(test->arena, "%.*s.pipe", (int)base, test->item))) return;
    }
    const char *folder = "accepted";
    bool refused = outcome->errors > 0 || outcome->undecided;
    if (outcome->found.count &&
        (refused || file_exists(with_suffix(test->arena, test->item, ".err"))))
        folder = arena_printf(test->arena, "%.3sxx", outcome->found.items[0].code);
    const char *wanted = arena_printf(test->arena, "tests/check/%s/", folder);
    bool fine = strncmp(test->item, wanted, strlen(wanted)) == 0;
    expect(test, fine, "belongs in %s, with its .err and its twin", wanted);
}

static void run_parse(Test *test) {
    size_t length = 0;
    const char *text = file_read(test->arena, test->item, &length);
    Outcome outcome = {.text = ""};
    parse_only(test, text, length, &outcome);
    judge(test, text, &outcome, false);
}

static void run_check(Test *test) {
    size_t length = 0;
    const char *text = file_read(test->arena, test->item, &length);
    Outcome outcome = {.text = ""};
    check_whole(test, text, length, &outcome);
    judge(test, text, &outcome, true);
    expect_folder(test, &outcome);
}

static void list_parse(Arena *arena, Items *items) {
    files_in(arena, "tests/parse", ".pipe", false, items);
}
static void list_check(Arena *arena, Items *items) {
    files_in(arena, "tests/check", ".pipe", true, items);
}

/* ---- codes ----------------------------------------------------------------------------------- */

static void list_codes(Arena *arena, Items *items) {
    for (size_t i = 0; i < CODE_COUNT; i++) vec_push(arena, items, code_rows[i].name);
    files_in(arena, "docs/errors", ".md", false, items);
    vec_push(arena, items, "docs/language.md");
}

static const char *matrix_line(Arena *arena, const MmaRow *row) {
    const char *step = arena_printf(arena, "%d", row->n_step), *error = "exact";
    if (row->n_step_large != row->n_step)
        step = arena_printf(arena, "%d, beyond 32 of %d", row->n_step, row->n_step_large);
    if (row->bound > 0) error = arena_printf(arena, "2^%d", ilogb(row->bound));
    return arena_printf(arena, "| `%s` | `%s` | %d | %s | %s | %s |\n",
                        element_rows[row->operands].spelling, element_rows[row->sum].spelling,
                        row->k, step, row->either_major ? "either" : "the sum", error);
}

static const char *target_line(Arena *arena, const Target *row) {
    Str line = str_new(arena);
    str_printf(&line, "| `%s` | %d.%d | %u |", row->name, row->ptx_major, row->ptx_minor,
               row->shared_limit);
    for (int i = 0; i < CAP_COUNT; i++) str_add(&line, row->has[i] ? " yes |" : " no |");
    str_add(&line, "\n");
    return line.text;
}

/* The reference contains each row of the tables of targets, element types, intrinsics and matrix
 * instructions */
static void compare_tables(Test *test, const char *text) {
    const char *line;
    for (int i = 0; i < E_COUNT; i++) {
        const ElementRow *row = &element_rows[i];
        line = arena_printf(test->arena, "| `%s` | %d | `%s` | %s |\n", row->spelling, row->bytes,
                            element_rows[row->widens].spelling, row->what);
        expect(test, strstr(text, line) != NULL, "there is no line %s", line);
    }
    for (int i = 0; i < IN_COUNT; i++) {
        const IntrinsicRow *row = &intrinsic_rows[i];
        if (row->word == WORD_OPERATOR) continue; /* in the table of bits */
        line = arena_printf(test->arena, "| `%s` | %d | %s | %s | %s |\n", row->name, row->args,
                            row->what, row->accuracy, row->exact_accuracy);
        expect(test, strstr(text, line) != NULL, "there is no line %s", line);
    }
    for (size_t i = 0; i < target_count; i++) {
        line = target_line(test->arena, &target_rows[i]);
        expect(test, strstr(text, line) != NULL, "there is no line %s", line);
    }
    for (int i = 0; i < MMA_COUNT; i++) {
        line = matrix_line(test->arena, &mma_rows[i]);
        expect(test, strstr(text, line) != NULL, "there is no line %s", line);
    }
}

/* The reference lists each error of the language under its construct; data and machines have later
 * codes */
static void compare_errors(Test *test, const char *text) {
    for (size_t i = 0; i < CODE_COUNT; i++) {
        const char *name = code_rows[i].name;
        if (strcmp(name, "P0550") >= 0) continue;
        const char *line = arena_printf(test->arena, "| [%s](errors/%s.md) | %s |\n", name, name,
                                        code_rows[i].title);
        expect(test, strstr(text, line) != NULL, "there is no line %s", line);
    }
}

/* Files that may test a code */
typedef struct Place {
    const char *folder, *suffix;
    bool deep, marks; /* marks: only a mark `//~ P0102` in a refused program counts */
} Place;

static bool names_code(const char *text, const char *code, bool marks) {
    for (const char *at = text; at && (at = strstr(at, code)); at += 5) {
        const char *mark = at;
        while (mark > text && strchr(" ^P0123456789", mark[-1])) mark--;
        if (!marks || (mark > text && (mark[-1] == '~' || mark[-1] == '!'))) return true;
    }
    return false;
}

/* True if a refused program has a mark with the code, or another test names the code */
static bool is_tested(Test *test, const char *code) {
    const Place places[] = {
        /* has most of the codes of this hundred */
        {arena_printf(test->arena, "tests/check/%.3sxx", code), ".pipe", false, true},
        {"tests/parse", ".pipe", false, true},
        {"tests/run", ".pipe", false, false},
        {"examples", ".pipe", false, false},
        {"bench", ".pipe", false, false},
        {"tests/cli", "", true, false},
        {"tests/unit", ".c", false, false},
        {"tests/emulator", ".ptx", false, false},
        {"tests/check", ".pipe", true, true},
    };
    for (size_t p = 0; p < COUNT_OF(places); p++) {
        Items files = {0};
        files_in(test->arena, places[p].folder, places[p].suffix, places[p].deep, &files);
        for (size_t i = 0; i < files.count; i++) {
            const char *text = file_read(test->arena, files.items[i], NULL);
            if (names_code(text, code, places[p].marks)) return true;
        }
    }
    return false;
}

static void run_codes(Test *test) {
    Code code;
    if (strcmp(test->item, "docs/language.md") == 0) {
        const char *text = file_read(test->arena, test->item, NULL);
        if (!expect(test, text != NULL, "is missing")) return;
        compare_tables(test, text);
        compare_errors(test, text);
        return;
    }
    if (ends_with(test->item, ".md")) { /* a page: it has a row */
        const char *name = arena_copy(test->arena, strrchr(test->item, '/') + 1, 5);
        expect(test, code_by_name(name, &code), "there is no row %s in util/errors.def", name);
        return;
    }
    const char *page = arena_printf(test->arena, "docs/errors/%s.md", test->item);
    const char *text = file_read(test->arena, page, NULL);
    if (expect(test, text != NULL, "%s is missing", page) && code_by_name(test->item, &code)) {
        const char *title =
            arena_printf(test->arena, "# %s: %s\n", test->item, code_rows[code].title);
        expect(test, strncmp(text, title, strlen(title)) == 0,
               "%s does not begin with \"# %s: %s\"", page, test->item, code_rows[code].title);
    }
    expect(test, is_tested(test, test->item), "no test is marked or named with this code");
}

const Suite suite_parse = {"parse", false, list_parse, run_parse, 0};
const Suite suite_check = {"check", false, list_check, run_check, 0};
const Suite suite_codes = {"codes", false, list_codes, run_codes, 0};
