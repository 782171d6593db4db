/* Suites `known` and `corpus`: required results of programs, and whether they hold yet.
 *
 * tests/known has programs for each way in which a checker may be wrong: NAME.pipe must not be
 * clean, or must be judged as its head says; NAME-ok.pipe is right. tests/corpus has right
 * kernels with unusual control flow and masks. Lines of their heads:
 *     //> check [NAME=VALUE ..] exit 1|4 P0219|P0228
 *                           `check` ends with one of these codes, with one of these diagnostics
 *     //> run N=5 [--schedules 4] [exit 2 P0608]
 *                           the same for a run on the emulator; exit 0, the default: right result
 *     //> sound N=5 [--schedules 4]
 *                           it runs right, or is refused or undecided before it runs
 *     //> built             generating code refuses it exactly if `check` does
 *     //> known-failure: REASON
 *                           one of the lines above does not hold yet
 * A marked program passes while it fails, and fails as soon as it passes, so that no mark
 * outlives its reason. The driver counts the marked ones; `tests-driver --known` shows why they
 * fail. Right kernels of the corpus run on the GPU too. */
#include "tests/driver/cases.h"

#include <stdlib.h>
#include <string.h>

/* The requirement of a line */
typedef struct Wanted {
    bool exits[5];
    Words codes; /* any of them; none: diagnostics are ignored */
    const char *args;
} Wanted;

static const char known_mark[] = "known-failure:";

/* ---- reading --------------------------------------------------------------------------------- */

/* `N=5 exit 1|4 P0219`: arguments, exit codes, diagnostics */
static Wanted read_wanted(Test *test, const char *line) {
    Wanted wanted = {.args = line};
    const char *at = strstr(line, "exit ");
    if (!at) {
        wanted.exits[0] = true;
        return wanted;
    }
    wanted.args = arena_copy(test->arena, line, (size_t)(at - line));
    at += strlen("exit ");
    do {
        bool digit = *at >= '0' && *at <= '4' && (at[1] == '|' || at[1] == ' ' || at[1] == '\0');
        if (!digit) {
            expect(test, false, "`%s`: `exit` is followed by codes from 0 to 4", line);
            return wanted;
        }
        wanted.exits[*at - '0'] = true;
        at++;
    } while (*at++ == '|');
    for (const char *code; at[-1] && (code = next_code(test->arena, &at));)
        vec_push(test->arena, &wanted.codes, code);
    return wanted;
}

static const char *exits_text(Test *test, const Wanted *wanted) {
    Str text = str_new(test->arena);
    for (int i = 0; i < 5; i++)
        if (wanted->exits[i]) str_printf(&text, text.length ? "|%d" : "%d", i);
    return text.text;
}

/* ---- one line -------------------------------------------------------------------------------- */

static bool ended_as(Test *test, const Wanted *wanted, const char *line, int status,
                     const char *diagnostics) {
    if (!wanted->exits[status])
        return expect(test, false, "%s: it ends with %d, not %s\n%s", line, status,
                      exits_text(test, wanted), diagnostics);
    bool found = wanted->codes.count == 0 || status == 0;
    for (size_t i = 0; i < wanted->codes.count; i++)
        found |= strstr(diagnostics, wanted->codes.items[i]) != NULL;
    return expect(test, found, "%s: it ends with %d and other codes\n%s", line, status,
                  diagnostics);
}

static void check(Test *test, const char *line, const char *args, const char *text, size_t length) {
    Wanted wanted = read_wanted(test, args);
    Words values = words_of(test->arena, wanted.args);
    PipecOptions options = {.size = sizeof options,
                            .name = test->item,
                            .folder = folder_of(test->arena, test->item),
                            .values = values.items,
                            .value_count = values.count,
                            .check_only = true};
    PipecProgram *program = pipec_compile(text, length, &options);
    if (!expect(test, program != NULL, "out of memory")) return;
    ended_as(test, &wanted, line, (int)pipec_program_status(program),
             pipec_diagnostics_text(pipec_program_diagnostics(program)));
    pipec_program_free(program);
}

static const char *diagnostics_of(const Attempt *attempt) {
    return attempt->diagnostics.text ? attempt->diagnostics.text : "";
}

static void run(Test *test, const char *line, const char *args, const char *text, size_t length) {
    Wanted wanted = read_wanted(test, args);
    Case c = case_read(test, wanted.args);
    Attempt emulated = case_attempt(test, &c, text, length, PIPEC_ON_EMULATOR);
    bool fine = ended_as(test, &wanted, line, (int)emulated.status, diagnostics_of(&emulated));
    if (fine && emulated.executed && emulated.status == PIPEC_FINE)
        fine = expect(test, emulated.verdict == PIPEC_RIGHT, "%s: %s", line,
                      pipec_run_verdict(emulated.run));
    if (fine && test->gpu && emulated.executed && emulated.status == PIPEC_FINE) {
        Attempt real = case_attempt(test, &c, text, length, PIPEC_ON_GPU);
        ended_as(test, &wanted, line, (int)real.status, diagnostics_of(&real));
        case_drop(&real);
    }
    case_drop(&emulated);
}

/* The promise: programs that `check` accepts run right, unless the launch is refused. */
static void sound(Test *test, const char *line, const char *args, const char *text, size_t length) {
    Case c = case_read(test, args);
    Attempt a = case_attempt(test, &c, text, length, PIPEC_ON_EMULATOR);
    if (a.compiled == PIPEC_REFUSED || a.compiled == PIPEC_INCOMPLETE) {
        expect(test, true, "%s", "");
    } else if (expect(test, a.compiled == PIPEC_FINE, "%s: it cannot be compiled\n%s", line,
                      diagnostics_of(&a)) &&
               expect(test, a.status == PIPEC_FINE || a.status == PIPEC_UNUSABLE,
                      "%s: it is accepted, and ends with %d\n%s", line, (int)a.status,
                      diagnostics_of(&a)) &&
               a.executed) {
        expect(test, a.verdict == PIPEC_RIGHT, "%s: it is accepted, and %s", line,
               pipec_run_verdict(a.run));
    }
    case_drop(&a);
}

/* True if `build` ends as `check` does */
static void built(Test *test, const char *line, const char *args, const char *text, size_t length) {
    expect(test, *args == '\0', "%s: what is `%s`?", line, args);
    PipecOptions options = {.size = sizeof options,
                            .name = test->item,
                            .folder = folder_of(test->arena, test->item),
                            .check_only = true};
    PipecProgram *checked = pipec_compile(text, length, &options);
    options.check_only = false;
    PipecProgram *generated = pipec_compile(text, length, &options);
    if (expect(test, checked && generated, "out of memory")) {
        PipecStatus first = pipec_program_status(checked), then = pipec_program_status(generated);
        expect(test, first == then, "%s: `check` ends with %d, `build` with %d\n%s", line,
               (int)first, (int)then, pipec_diagnostics_text(pipec_program_diagnostics(generated)));
    }
    pipec_program_free(generated);
    pipec_program_free(checked);
}

/* ---- a program ------------------------------------------------------------------------------- */

/* Runs every line of the head; returns the reason of the mark, or NULL. */
static const char *follow_head(Test *test, const char *text, size_t length) {
    static const struct {
        const char *word;
        void (*run)(Test *test, const char *line, const char *args, const char *text,
                    size_t length);
    } kinds[] = {{"check", check}, {"run", run}, {"sound", sound}, {"built", built}};
    const char *mark = NULL;
    Words lines = lines_of(test->arena, text);
    size_t count = 0;
    for (size_t i = 0; i < lines.count; i++) {
        const char *line = lines.items[i];
        if (strncmp(line, "//> ", 4) != 0) continue;
        line += 4;
        if (strncmp(line, known_mark, strlen(known_mark)) == 0) {
            mark = line + strlen(known_mark);
            expect(test, mark[strspn(mark, " ")] != '\0', "line %zu: the mark gives no reason",
                   i + 1);
            continue;
        }
        size_t kind = 0, end = strcspn(line, " ");
        while (kind < COUNT_OF(kinds) &&
               (strlen(kinds[kind].word) != end || strncmp(line, kinds[kind].word, end) != 0))
            kind++;
        if (kind == COUNT_OF(kinds)) {
            expect(test, false, "line %zu: `//> %s` is not understood", i + 1, line);
            continue;
        }
        kinds[kind].run(test, line, line + end, text, length);
        count++;
    }
    expect(test, count > 0, "no `//>` line states the expected result");
    return mark;
}

static void run_known(Test *test) {
    size_t length = 0;
    const char *text = file_read(test->arena, test->item, &length);
    Test lines = *test; /* known failures do not count for the suite */
    lines.tally = (Tally){0};
    lines.out = str_new(test->arena);
    const char *mark = follow_head(&lines, text, length);
    if (!mark) {
        test->tally.passed += lines.tally.passed;
        test->tally.failed += lines.tally.failed;
        if (lines.out.length) str_add_bytes(&test->out, lines.out.text, lines.out.length);
        return;
    }
    if (!expect(test, lines.tally.failed > 0, "passes now: remove the mark `known-failure:%s`",
                mark))
        return;
    test->tally.known++;
    if (test->show_known) str_printf(&test->out, "known:%s\n%s", mark, lines.out.text);
}

static void list_known(Arena *arena, Items *items) {
    files_in(arena, "tests/known", ".pipe", false, items);
}
static void list_corpus(Arena *arena, Items *items) {
    files_in(arena, "tests/corpus", ".pipe", false, items);
}

const Suite suite_known = {"known", false, list_known, run_known, 2};
const Suite suite_corpus = {"corpus", true, list_corpus, run_known, 3};
