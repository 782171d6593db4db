/* Suites `run` and `examples`: programs that run.
 *
 * Cases are lines in the file's head:
 *     //> run [KERNEL] M=3 N=5 [--fill A=iota] [--seed 7]   one run; --schedules 4: on 4 schedules;
 *                                                        --least-aligned: tensors at odd addresses
 *                                                        --strided: tensors have gaps
 *     //> exit 2                                            its exit code (default 0)
 *     //> says P0608                                        its diagnostics contain this code
 *     //> unchecked                                         it has no `ensures`
 * Every case runs on the emulator and has the right result; with a GPU, there too, and both
 * agree. Examples also run without arguments, with the values of their `example`, in less than a
 * second on the emulator, and have at least 20 cases. */
#include "tests/driver/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* an instrumented emulator is slow: one case in this many runs on it; a release build runs all */
#define SANITIZED_SHARE 20

typedef VEC(Case) Cases;

/* ---- reading the head ------------------------------------------------------------------------ */

Case case_read(Test *test, const char *line) {
    Case c = {.line = line};
    Words words = words_of(test->arena, line);
    for (size_t i = 0; i < words.count; i++) {
        const char *word = words.items[i];
        bool more = i + 1 < words.count;
        if (strcmp(word, "--fill") == 0 && more)
            vec_push(test->arena, &c.fills, words.items[++i]);
        else if (strcmp(word, "--seed") == 0 && more)
            c.seed = strtoull(words.items[++i], NULL, 10);
        else if (strcmp(word, "--schedules") == 0 && more)
            c.schedules = atoi(words.items[++i]);
        else if (strcmp(word, "--least-aligned") == 0)
            c.least_aligned = true;
        else if (strcmp(word, "--strided") == 0)
            c.strided = true;
        else if (strchr(word, '='))
            vec_push(test->arena, &c.values, word);
        else if (i == 0)
            c.kernel = word;
        else
            expect(test, false, "`//> run %s`: what is %s?", line, word);
    }
    return c;
}

static void read_head(Test *test, const char *text, Cases *cases) {
    Words lines = lines_of(test->arena, text);
    for (size_t i = 0; i < lines.count; i++) {
        const char *line = lines.items[i];
        Case *last = cases->count ? &cases->items[cases->count - 1] : NULL;
        if (strncmp(line, "//> ", 4) != 0) continue;
        line += 4;
        if (strncmp(line, "run", 3) == 0 && (line[3] == ' ' || !line[3])) {
            vec_push(test->arena, cases, case_read(test, line + 3 + (line[3] == ' ')));
        } else if (last && strncmp(line, "exit ", 5) == 0) {
            last->exit = atoi(line + 5);
        } else if (last && strncmp(line, "says ", 5) == 0) {
            for (const char *code; (code = next_code(test->arena, &line));)
                vec_push(test->arena, &last->codes, code);
        } else if (last && strncmp(line, "unchecked", 9) == 0) {
            last->unchecked = true;
        } else {
            expect(test, false, "line %zu: `//> %s` is not understood", i + 1, line);
        }
    }
}

/* ---- running --------------------------------------------------------------------------------- */

static void hear(Attempt *attempt, const PipecDiagnostics *diagnostics) {
    if (pipec_diagnostics_count(diagnostics))
        str_add(&attempt->diagnostics, pipec_diagnostics_text(diagnostics));
}

void case_drop(Attempt *attempt) {
    pipec_run_free(attempt->run);
    pipec_program_free(attempt->program);
}

/* If the case names no variant, and the first cannot run on its data; false: none can */
static bool take_variant(Attempt *a, const PipecRunOptions *data) {
    PipecProgram *other = pipec_program_variant(a->program, data);
    if (!other) {
        const PipecDiagnostics *diagnostics = pipec_program_diagnostics(a->program);
        if (pipec_diagnostics_errors(diagnostics) == 0) return true;
        hear(a, diagnostics);
        return a->status = pipec_program_status(a->program), false;
    }
    pipec_program_free(a->program);
    a->program = other;
    a->compiled = a->status = pipec_program_status(other);
    hear(a, pipec_program_diagnostics(other));
    return pipec_program_ptx(other, NULL) != NULL;
}

Attempt case_attempt(Test *test, const Case *c, const char *text, size_t length, PipecWhere where) {
    Attempt a = {
        .status = PIPEC_FINE, .verdict = PIPEC_NOT_CHECKED, .diagnostics = str_new(test->arena)};
    str_add(&a.diagnostics, "");
    PipecOptions options = {.size = sizeof options,
                            .name = test->item,
                            .folder = folder_of(test->arena, test->item),
                            .kernel = c->kernel,
                            .values = c->values.items,
                            .value_count = c->values.count,
                            .launch_values = true,
                            .watchdog = true};
    a.program = pipec_compile(text, length, &options);
    if (!a.program) return a.compiled = a.status = PIPEC_UNUSABLE, a;
    a.compiled = a.status = pipec_program_status(a.program); /* may be incomplete, and continues */
    hear(&a, pipec_program_diagnostics(a.program));
    if (!pipec_program_ptx(a.program, NULL)) return a;

    PipecRunOptions run = {.size = sizeof run,
                           .values = c->values.items,
                           .value_count = c->values.count,
                           .fills = c->fills.items,
                           .fill_count = c->fills.count,
                           .seed = c->seed,
                           .least_aligned = c->least_aligned,
                           .strided = c->strided};
    if (!take_variant(&a, &run)) return a;
    a.run = pipec_run_new(a.program, &run);
    if (!a.run) return a.status = PIPEC_UNUSABLE, a;
    a.status = pipec_run_status(a.run);
    hear(&a, pipec_run_diagnostics(a.run));
    if (a.status != PIPEC_FINE) return a;

    PipecExecuteOptions execute = {.size = sizeof execute,
                                   .where = where,
                                   .schedules = where == PIPEC_ON_GPU ? 0 : c->schedules};
    if (where != PIPEC_ON_GPU && execute.schedules < test->schedules)
        execute.schedules = test->schedules;
    clock_t begin = clock();
    a.status = pipec_run_execute(a.run, &execute);
    double busy = (double)(clock() - begin) / CLOCKS_PER_SEC;
    hear(&a, pipec_run_diagnostics(a.run));
    if (a.status != PIPEC_FINE) return a;
    a.executed = true;
    a.seconds = pipec_run_info(a.run)->seconds;
    if (busy < a.seconds) a.seconds = busy; /* time of other processes does not count */
    a.verdict = pipec_run_verify(a.run);
    hear(&a, pipec_run_diagnostics(a.run));
    a.status = pipec_worse(a.compiled, pipec_run_status(a.run));
    return a;
}

/* True for runs that reach the end: a program with an incomplete verdict has right or wrong
 * results too. */
static bool has_verdict(const Case *c, const Attempt *a) {
    return c->exit == 0 || (c->exit == 4 && a->executed);
}

static bool as_expected(Test *test, const Case *c, const Attempt *a, const char *where) {
    const char *text = a->diagnostics.text ? a->diagnostics.text : "";
    if ((int)a->status != c->exit)
        return expect(test, false, "run %s: on %s it ends with %d, not %d\n%s", c->line, where,
                      (int)a->status, c->exit, text);
    for (size_t i = 0; i < c->codes.count; i++)
        if (!strstr(text, c->codes.items[i]))
            return expect(test, false, "run %s: on %s it does not say %s but\n%s", c->line, where,
                          c->codes.items[i], text);
    if (has_verdict(c, a) && a->verdict != (c->unchecked ? PIPEC_NOT_CHECKED : PIPEC_RIGHT))
        return expect(test, false, "run %s: on %s: %s", c->line, where, pipec_run_verdict(a->run));
    return expect(test, true, "%s", "");
}

static Attempt run_case(Test *test, const Case *c, const char *text, size_t length) {
    Attempt emulated = case_attempt(test, c, text, length, PIPEC_ON_EMULATOR);
    /* A kernel that hangs or faults would destroy the context of all others */
    if (as_expected(test, c, &emulated, "the emulator") && test->gpu && has_verdict(c, &emulated) &&
        emulated.executed) {
        Attempt real = case_attempt(test, c, text, length, PIPEC_ON_GPU);
        const char *said = real.diagnostics.text ? real.diagnostics.text : "";
        if (strstr(said, "which needs compute capability"))
            test->tally.skipped++; /* its target is of another device */
        else if (as_expected(test, c, &real, "the GPU")) {
            const char *how = "";
            PipecStatus agree = pipec_run_compare(real.run, emulated.run, &how);
            expect(test, agree == PIPEC_FINE, "run %s: GPU and emulator differ (%s)\n%s", c->line,
                   how ? how : "", pipec_diagnostics_text(pipec_run_diagnostics(real.run)));
        }
        case_drop(&real);
    }
    return emulated;
}

static void run_cases(Test *test, bool example) {
    size_t length = 0;
    const char *text = file_read(test->arena, test->item, &length);
    Cases cases = {0};
    read_head(test, text, &cases);
    size_t right = 0;
    for (size_t i = 0; i < cases.count; i++) {
        right += cases.items[i].exit == 0;
        if (SANITIZED && i % SANITIZED_SHARE != 0) continue;
        Attempt attempt = run_case(test, &cases.items[i], text, length);
        case_drop(&attempt);
    }
    if (!example) {
        expect(test, cases.count > 0, "there is no `//> run`");
        return;
    }
    expect(test, right >= 20, "an example has at least 20 runs, not %zu", right);
    PipecOptions options = {.size = sizeof options,
                            .name = test->item,
                            .folder = folder_of(test->arena, test->item),
                            .check_only = true};
    PipecProgram *all = pipec_compile(text, length, &options);
    const char *kernel;
    for (size_t i = 0; all && (kernel = pipec_program_kernel(all, i)); i++) {
        Case bare = {.line = arena_printf(test->arena, "%s", kernel), .kernel = kernel};
        Attempt attempt = run_case(test, &bare, text, length);
        if (!SANITIZED)
            expect(test, attempt.seconds < 1, "run %s: takes %.2f s on the emulator", kernel,
                   attempt.seconds);
        case_drop(&attempt);
    }
    pipec_program_free(all);
}

static void run_run(Test *test) { run_cases(test, false); }
static void run_examples(Test *test) { run_cases(test, true); }
static void list_run(Arena *arena, Items *items) {
    files_in(arena, "tests/run", ".pipe", false, items);
    files_in(arena, "bench", ".pipe", false, items);
    files_in(arena, "bench/attention", ".pipe", false, items);
    files_in(arena, "bench/rows", ".pipe", false, items);
    files_in(arena, "kernels", ".pipe", false, items);
}
static void list_examples(Arena *arena, Items *items) {
    files_in(arena, "examples", ".pipe", false, items);
}

const Suite suite_run = {"run", true, list_run, run_run, 0};
const Suite suite_examples = {"examples", true, list_examples, run_examples, 0};
