/* graphs-test [--count N] [--seed S] [--only SEED] [--schedules N] [--time SECONDS] [--show N]
 *            [--write DIR] [--pieces] [--verbose] [--gpu] [--draw]
 *
 * Tests the checker's verdicts on counts and deadlock. Random graphs (graphs.h) are checked;
 * those that only such a verdict refuses are generated nevertheless, and run on the emulator:
 *   accepted      ends without a finding and with the right results, at sizes from 0 to 5 and on
 *                 several schedules
 *   P0460         hangs at the sizes in the message
 *   P0450         hangs at the sizes in the message, or ends there with unequal counts
 * A well-formed program must be accepted, unless it hangs as the message says. An incomplete
 * verdict (P0461) claims nothing, but few well-formed programs may get one. Other verdicts are
 * counted. expect.c computes the expected result of each run independently; if a run differs,
 * the compiler, the emulator or this test is wrong. --pieces: some roles iterate over ranges in
 * parts (not all of these are proved). --gpu: what ends on the plain schedule runs on the GPU as
 * well. --time continues with new programs until the time is up.
 * A failing program is printed with its seed, for --only. --draw only prints the programs, for
 * same-test. */
#include "check/check.h"
#include "codegen/codegen.h"
#include "emulator/emulator.h"
#include "launch/launch.h"
#include "parser/parser.h"
#include "runtime/runtime.h"
#include "tests/graphs/graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__)
#define COUNT 25 /* an instrumented emulator is slow */
#else
#define COUNT 300
#endif
#define LIMIT 20000000 /* warp instructions of a run */
/* most actions of a run of an accepted program: longer ones add no coverage */
#define ACTIONS_MOST    3000
#define NAMED_MOST      200000 /* most actions of a run at the sizes in a message */
#define LARGEST         5      /* of each size */
#define DRAWN           6  /* sizes drawn per program, in addition to the first rows of `fixed` */
#define SHOWN           20 /* most failures that are printed */
#define WATCHDOG        2000000000 /* ns, on the GPU */
#define ACCEPTED_LEAST  5          /* one program in this many must be well-formed and accepted */
#define INCOMPLETE_MOST 0          /* most percent of the well-formed ones */
#define PIECES_MOST     2          /* the same with ranges in pieces */
#define CODES           32         /* most different codes */

/* ENDED_EARLY: hangs by the reference, but a stage filled by copies is handed over as soon as
 * they have completed */
typedef enum Outcome { ENDED, ENDED_EARLY, HUNG, FOUND, TOO_LONG, PRECONDITION, UNUSABLE } Outcome;

typedef struct Tester {
    uint64_t seed, count, schedules;
    double seconds;
    const char *folder;
    bool verbose, pieces, on_gpu, draw;
    Runtime *gpu; /* NULL: none */
    int passed, failed, shown;
    int programs, well_formed, accepted, accepted_mutants, hangs_confirmed, early_confirmed,
        unequal_confirmed, incomplete, undecided, other, runs, gpu_runs;
    struct {
        const char *code;
        int count, well_formed;
    } refused[CODES];
} Tester;

typedef struct Trial {
    Tester *tester;
    Arena *arena;
    Graph *graph;
    const char *text;
    Diags *diags;
    Str ptx;
    Manifest *manifest;
    const Diag *verdict; /* the first on counts or deadlock; NULL: accepted */
} Trial;

/* ---- output ---------------------------------------------------------------------------------- */

static void fail(Trial *trial, const char *what, const Diags *diags) {
    Tester *tester = trial->tester;
    tester->failed++;
    if (tester->shown-- <= 0) return;
    Str diagnostics = str_new(trial->arena);
    str_add(&diagnostics, "");
    if (diags != NULL) diags_render(diags, false, &diagnostics);
    printf("---- seed %llu%s%s: %s\n%s%s", (unsigned long long)trial->graph->seed,
           trial->graph->mutated ? ", a mutant: " : "",
           trial->graph->mutated ? trial->graph->mutation : "", what, diagnostics.text,
           trial->text);
    fflush(stdout);
}

static void write_down(const Trial *trial, const char *what) {
    if (trial->tester->folder == NULL) return;
    FILE *file = fopen(arena_printf(trial->arena, "%s/graph-%llu.pipe", trial->tester->folder,
                                    (unsigned long long)trial->graph->seed),
                       "w");
    if (file == NULL) return;
    fprintf(file, "// %s: %s\n%s", trial->graph->mutated ? trial->graph->mutation : "well-formed",
            what, trial->text);
    fclose(file);
}

/* ---- one run --------------------------------------------------------------------------------- */

static Launch *prepare(const Trial *trial, Arena *arena, const int64_t *sizes, Diags *diags) {
    Argument arguments[SYMBOLS];
    size_t count = 0;
    for (int s = 0; s < SYMBOLS; s++) /* a kernel needs a tensor with extent M for the symbol M */
        for (size_t i = 0; i < trial->manifest->symbols.count; i++)
            if (strcmp(trial->manifest->symbols.items[i].name, symbol_names[s]) == 0)
                arguments[count++] = (Argument){
                    .name = symbol_names[s],
                    .kind = ARGUMENT_NUMBER,
                    .value = {.number = (double)sizes[s], .integer = sizes[s], .is_integer = true}};
    Launch *launch =
        launch_prepare(arena, trial->manifest, trial->ptx.text, trial->ptx.length, arguments, count,
                       &(LaunchOptions){.seed = 1, .watchdog_ns = WATCHDOG}, diags);
    for (int tensor = 0; launch != NULL && tensor < 2; tensor++)
        for (int64_t e = 0; e < launch->arrays[tensor].count; e++) {
            int32_t value = graph_input(tensor, e / WIDTH, (int)(e % WIDTH));
            memcpy(launch->arrays[tensor].data + (size_t)e * sizeof value, &value, sizeof value);
        }
    return launch;
}

static bool right(const Trial *trial, const Launch *launch, const Expected *expected) {
    for (size_t i = 0; i < trial->manifest->parameters.count; i++) {
        const char *name = trial->manifest->parameters.items[i].name;
        if (name[0] == 'Y' && memcmp(launch->arrays[i].data, expected->results[atoi(name + 1)],
                                     launch->arrays[i].bytes) != 0)
            return false;
    }
    return true;
}

static bool has_code(const Diags *diags, Code code) {
    for (size_t i = 0; i < diags->items.count; i++)
        if (diags->items.items[i]->code == code) return true;
    return false;
}

/* What is wrong with a run on the GPU; NULL: nothing, or there is none */
static const char *run_on_gpu(Trial *trial, const int64_t *sizes, const Expected *expected,
                              Diags *diags) {
    if (trial->tester->gpu == NULL) return NULL;
    Arena *arena = arena_scratch(trial->arena);
    Launch *launch = prepare(trial, arena, sizes, diags);
    RunResult result;
    const char *wrong = NULL;
    if (launch == NULL)
        wrong = "its launch is refused the second time";
    else if (runtime_run(arena, trial->tester->gpu, launch, &(RuntimeOptions){0}, &result, diags) !=
             RUN_DONE)
        wrong = "it does not end on the GPU";
    else if (!right(trial, launch, expected))
        wrong = "its result on the GPU is wrong";
    else if (!launch_guards(launch, diags))
        wrong = "it writes outside of its tensors on the GPU";
    trial->tester->gpu_runs++;
    launch_free(launch);
    arena_free(arena);
    return wrong;
}

/* Runs once and compares with the expected result. False: there was a difference, which was
 * reported. */
static bool run(Trial *trial, const int64_t *sizes, int resident, uint64_t schedule, size_t most,
                Outcome *outcome, bool *unequal) {
    Arena *arena = arena_scratch(trial->arena);
    Diags *diags = diags_new(arena, trial->diags->source);
    Expected expected;
    graph_expect(trial->graph, sizes, resident, false, arena, &expected);
    *outcome = TOO_LONG;
    *unequal = !expected.balanced;
    bool hangs = expected.hangs, may_end = !hangs;
    if (hangs) {
        graph_expect(trial->graph, sizes, resident, true, arena, &expected);
        may_end = !expected.hangs;
    }
    const char *wrong = NULL;
    Launch *launch = expected.actions > most ? NULL : prepare(trial, arena, sizes, diags);
    if (launch != NULL) {
        EmulatorOptions options = {.seed = schedule, .resident = resident, .limit = LIMIT};
        RunResult result;
        RunStatus status = emulator_run(arena, launch, &options, &result, diags);
        trial->tester->runs++;
        *outcome = status == RUN_DONE       ? ENDED
                   : has_code(diags, P0730) ? HUNG
                   : status == RUN_FINDING  ? FOUND
                                            : UNUSABLE;
        if (*outcome == UNUSABLE)
            wrong = "the emulator gives up";
        else if (*outcome == HUNG && !hangs)
            wrong = "it hangs, and is expected to end";
        else if (*outcome == ENDED && !may_end)
            wrong = "it ends, and is expected to hang";
        else if (*outcome == FOUND && expected.balanced)
            wrong = "the emulator finds a mistake";
        else if (*outcome == ENDED && !right(trial, launch, &expected))
            wrong = "its result is wrong";
        else if (*outcome == ENDED && !launch_guards(launch, diags))
            wrong = "it writes outside of its tensors";
        if (*outcome == ENDED && hangs) *outcome = ENDED_EARLY;
        if (wrong == NULL && *outcome == ENDED && expected.balanced && schedule == 0)
            wrong = run_on_gpu(trial, sizes, &expected, diags);
    } else if (has_code(diags, P0608)) {
        *outcome = PRECONDITION;
        if (!trial->graph->mutated) wrong = "its launch is refused";
    } else if (diags->errors > 0) {
        wrong = "its launch is refused";
    }
    if (wrong != NULL)
        fail(trial,
             arena_printf(trial->arena,
                          "%s (M = %lld, K = %lld, L = %lld, q = %lld; %d resident, schedule %llu)",
                          wrong, (long long)sizes[0], (long long)sizes[1], (long long)sizes[2],
                          (long long)sizes[3], resident, (unsigned long long)schedule),
             diags->items.count > 0 ? diags : trial->diags);
    launch_free(launch);
    arena_free(arena);
    return wrong == NULL;
}

/* ---- accepted programs ----------------------------------------------------------------------- */

static bool try_accepted(Trial *trial) {
    static const int64_t fixed[][SYMBOLS] = {{1, 1, 1, 1}, {0, 0, 0, 0}, {2, 2, 2, 2}, {5, 3, 4, 2},
                                             {1, 0, 5, 3}, {3, 5, 0, 0}, {5, 5, 5, 5}};
    Random random = {trial->graph->seed + 5};
    for (size_t i = 0; i < COUNT_OF(fixed) + DRAWN; i++) {
        int64_t sizes[SYMBOLS];
        for (int s = 0; s < SYMBOLS; s++)
            sizes[s] = i < COUNT_OF(fixed) ? fixed[i][s] : (int64_t)draw(&random, LARGEST + 1);
        uint64_t schedules =
            i < COUNT_OF(fixed) && trial->tester->schedules > 1 ? trial->tester->schedules : 1;
        for (uint64_t k = 0; k < schedules; k++) {
            Outcome outcome;
            bool unequal;
            uint64_t seed = k == 0 && i % 2 == 0 ? 0 : trial->graph->seed * 1000 + i * 50 + k;
            if (!run(trial, sizes, 1 + (int)(seed % 3), seed, ACTIONS_MOST, &outcome, &unequal))
                return false;
            if (outcome == HUNG || outcome == FOUND || outcome == ENDED_EARLY) {
                fail(trial,
                     arena_printf(trial->arena,
                                  "it is accepted and hangs (M = %lld, K = %lld, L = %lld, q = "
                                  "%lld; schedule %llu)",
                                  (long long)sizes[0], (long long)sizes[1], (long long)sizes[2],
                                  (long long)sizes[3], (unsigned long long)seed),
                     NULL);
                return false;
            }
        }
    }
    return true;
}

/* ---- refused ones ---------------------------------------------------------------------------- */

/* The sizes in a message, as "K = 3"; missing ones are 1. False: there are none. */
static bool named_sizes(const Diag *verdict, int64_t *sizes) {
    bool any = false;
    for (int s = 0; s < SYMBOLS; s++) {
        sizes[s] = 1;
        bool found = false;
        for (size_t n = 0; n < verdict->notes.count && !found; n++) {
            const char *note = verdict->notes.items[n];
            for (const char *at = note; (at = strstr(at, symbol_names[s])) != NULL && !found;
                 at++) {
                bool alone = at == note || strchr(" ,(`", at[-1]) != NULL;
                found = alone && sscanf(at + 1, " = %lld", (long long *)&sizes[s]) == 1;
            }
        }
        any |= found;
    }
    return any;
}

/* Confirms the verdict for several numbers of resident blocks, because the message is about the
 * tiles of one block. Of a dynamic grid a single block is known to execute all tiles in order. */
static bool confirm(Trial *trial, bool *hangs, bool *early, bool *unequal) {
    int64_t sizes[SYMBOLS];
    *hangs = *early = *unequal = false;
    if (!named_sizes(trial->verdict, sizes)) {
        fail(trial, "its message names no sizes", trial->diags);
        return false;
    }
    int most = trial->graph->dynamic ? 1 : 8;
    for (int resident = 1; resident <= most && !*hangs; resident++) {
        Outcome outcome;
        bool differ;
        if (!run(trial, sizes, resident,
                 resident == 1 ? 0 : trial->graph->seed + (uint64_t)resident, NAMED_MOST, &outcome,
                 &differ))
            return false;
        if (outcome == TOO_LONG) {
            fail(trial, "the sizes that its message names are too large to be tried", trial->diags);
            return false;
        }
        *hangs |= outcome == HUNG;
        *early |= outcome == ENDED_EARLY;
        *unequal |= differ;
    }
    return true;
}

static void count_code(Tester *tester, const Trial *trial) {
    const char *code = code_rows[trial->verdict->code].name;
    int i = 0;
    while (i < CODES - 1 && tester->refused[i].code != NULL &&
           strcmp(tester->refused[i].code, code) != 0)
        i++;
    tester->refused[i].code = code;
    tester->refused[i].count++;
    tester->refused[i].well_formed += !trial->graph->mutated;
}

static bool try_refused(Trial *trial) {
    Tester *tester = trial->tester;
    bool hangs = false, early = false, unequal = false;
    Code code = trial->verdict->code;
    count_code(tester, trial);
    if (code == P0460 || code == P0450) {
        if (!confirm(trial, &hangs, &early, &unequal)) return false;
        tester->hangs_confirmed += hangs;
        tester->early_confirmed += !hangs && early;
        tester->unequal_confirmed += !hangs && !early && unequal;
        if (!hangs && !early && (code == P0460 || !unequal)) {
            fail(trial, "it does not hang at the sizes that the message names", trial->diags);
            return false;
        }
    }
    bool undecided = trial->verdict->severity == SEVERITY_INCOMPLETE;
    tester->incomplete += undecided;
    tester->undecided += undecided && !trial->graph->mutated;
    if (trial->graph->mutated || hangs || early || undecided) return true;
    fail(trial, "a well-formed program is refused", trial->diags);
    return false;
}

/* ---- one program ----------------------------------------------------------------------------- */

/* False: refused for another reason than counts or deadlock. */
static bool compile(Trial *trial) {
    Arena *arena = trial->arena;
    const Source *source = source_new(arena, "graph.pipe", trial->text, strlen(trial->text));
    Names *names = names_new(arena);
    trial->diags = diags_new(arena, source);
    const Ast *ast = parser_parse(arena, names, source, trial->diags);
    Prog *prog = trial->diags->errors > 0
                     ? NULL
                     : check_kernel_on_trial(arena, names, ast, "graph", trial->diags);
    if (prog == NULL) return false;
    for (size_t i = 0; i < trial->diags->items.count && trial->verdict == NULL; i++) {
        const Diag *diag = trial->diags->items.items[i];
        if (diag->severity == SEVERITY_ERROR || diag->severity == SEVERITY_INCOMPLETE)
            trial->verdict = diag;
    }
    trial->ptx = str_new(arena);
    trial->manifest = NEW(arena, Manifest);
    codegen_emit(arena, prog, &(CodegenOptions){0}, &trial->ptx, trial->manifest);
    trial->manifest->source = source;
    return true;
}

/* True if roles deadlock because some hold stages too long, or take them in another order */
static bool goes_too_far(Graph *graph) {
    Random random = {graph->seed + 9};
    bool hangs = false;
    for (int i = 0; i < 120 && !hangs; i++) {
        Arena *arena = arena_scratch(graph->arena);
        Expected expected;
        int64_t sizes[SYMBOLS];
        uint32_t below = i % 6 == 5 ? 17 : 9; /* `where` leaves half of the iterations out */
        for (int s = 0; s < SYMBOLS; s++) sizes[s] = i < 4 ? i : (int64_t)draw(&random, below);
        if (i >= 100) sizes[SYMBOL_Q] = -sizes[SYMBOL_Q]; /* the only size that may be negative */
        graph_expect(graph, sizes, 1, false, arena, &expected);
        hangs = expected.hangs;
        arena_free(arena);
    }
    return hangs;
}

/* Of four programs two are mutants, one has all variations, and one only those that keep it
 * right by construction. */
static Graph *draw_program(const Tester *tester, Arena *arena, uint64_t seed) {
    Graph *graph = graph_draw(arena, seed);
    graph_decorate(graph, seed % 4 != 0, tester->pieces);
    if (seed % 2 == 1) {
        graph_mutate(graph);
    } else if (!tester->draw && goes_too_far(graph)) { /* which does not change the text */
        graph->mutated = true;
        graph->mutation = "liberties that go too far";
    }
    return graph;
}

static void try_program(Tester *tester, uint64_t seed) {
    Arena *arena = arena_new();
    Trial trial = {.tester = tester, .arena = arena, .graph = draw_program(tester, arena, seed)};
    trial.text = graph_text(trial.graph);
    if (tester->draw) {
        drawn_print(tester->pieces ? "pieces" : "graph", seed, trial.text);
        arena_free(arena);
        return;
    }
    tester->programs++;
    tester->well_formed += !trial.graph->mutated;
    bool compiled = compile(&trial), fine = true;
    if (has_code(trial.diags, P0311))
        /* statements after a break that is always taken are unreachable */
        trial.graph->mutated = true;
    if (tester->verbose)
        printf("seed %llu%s: %s\n", (unsigned long long)seed,
               trial.graph->mutated ? ", mutant" : "",
               !compiled       ? "refused for another reason"
               : trial.verdict ? code_rows[trial.verdict->code].name
                               : "accepted");
    if (!compiled) {
        tester->other++;
        write_down(&trial, "refused");
        if (has_code(trial.diags, P0310))
            trial.graph->mutated = true; /* holds more stages than the ring has, at any size */
        if (!trial.graph->mutated)
            fail(&trial, "a well-formed program is refused", trial.diags), fine = false;
    } else if (trial.verdict == NULL) {
        tester->accepted++;
        tester->accepted_mutants += trial.graph->mutated;
        write_down(&trial, "accepted");
        fine = try_accepted(&trial);
    } else {
        write_down(&trial, code_rows[trial.verdict->code].name);
        fine = try_refused(&trial);
    }
    tester->passed += fine;
    arena_free(arena);
}

/* ---- main ------------------------------------------------------------------------------------ */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static bool read_words(Tester *tester, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool *flag = strcmp(word, "--verbose") == 0  ? &tester->verbose
                     : strcmp(word, "--pieces") == 0 ? &tester->pieces
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
            tester->seed = strtoull(value, NULL, 10), tester->count = 1;
        else if (strcmp(word, "--schedules") == 0)
            tester->schedules = strtoull(value, NULL, 10);
        else if (strcmp(word, "--show") == 0)
            tester->shown = atoi(value);
        else if (strcmp(word, "--time") == 0)
            tester->seconds = strtod(value, NULL), tester->count = UINT64_MAX;
        else if (strcmp(word, "--write") == 0)
            tester->folder = value;
        else
            return false;
    }
    return true;
}

static void report(const Tester *tester) {
    printf("%d programs, %d of them well-formed, %d runs; %d accepted, %d of them mutants\n",
           tester->programs, tester->well_formed, tester->runs, tester->accepted,
           tester->accepted_mutants);
    for (int i = 0; i < CODES && tester->refused[i].code != NULL; i++)
        printf("%d refused with %s, %d of them drawn as well-formed\n", tester->refused[i].count,
               tester->refused[i].code, tester->refused[i].well_formed);
    printf("%d hang as the message says, %d would if copied stages were not handed over early, %d "
           "end with unequal "
           "counts; %d incomplete; "
           "%d refused for other reasons\n",
           tester->hangs_confirmed, tester->early_confirmed, tester->unequal_confirmed,
           tester->incomplete, tester->other);
}

int main(int argc, char **argv) {
    Tester tester = {.seed = 1, .count = COUNT, .schedules = 2, .shown = SHOWN};
    double start = now();
    if (!read_words(&tester, argc, argv)) {
        fprintf(stderr, "graphs-test [--count N] [--seed S] [--only SEED] [--schedules N] [--time "
                        "SECONDS] [--show N] "
                        "[--write DIR] [--pieces] [--verbose] [--gpu] [--draw]\n");
        return 2;
    }
    Arena *arena = arena_new();
    if (tester.on_gpu) tester.gpu = open_gpu(arena, &tester.failed);
    for (uint64_t i = 0;
         i < tester.count && (tester.seconds <= 0 || now() - start < tester.seconds); i++)
        try_program(&tester, tester.seed + i);
    if (tester.draw) {
        arena_free(arena);
        return 0;
    }
    report(&tester);
    if (tester.gpu != NULL) printf("%d runs on the GPU\n", tester.gpu_runs);
    runtime_close(tester.gpu);
    arena_free(arena);
    if (tester.programs >= COUNT &&
        (tester.accepted - tester.accepted_mutants) * ACCEPTED_LEAST < tester.programs) {
        printf("too few well-formed programs are accepted: nothing is tested by the others\n");
        tester.failed++;
    }
    if (tester.programs >= COUNT &&
        tester.undecided * 100 >
            tester.well_formed * (tester.pieces ? PIECES_MOST : INCOMPLETE_MOST)) {
        printf("too many well-formed programs are not decided\n");
        tester.failed++;
    }
    printf("%d passed, %d failed\n", tester.passed, tester.failed);
    return tester.failed > 0;
}
