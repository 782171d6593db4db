/* sweep-test [--count N] [--seed S] [--only NUMBER] [--filter TEXT] [--gpu] [--show]
 *
 * Runs every kernel of examples/ and bench/ on N random shapes and compares the results with
 * `ensures` in f64. Each shape runs on two schedules of the emulator, which must agree bit for bit;
 * with --gpu also twice on the GPU, whose runs must agree bit for bit with each other, and with the
 * emulator bit for bit or within twice the tolerance (pipec_run_compare). A refused shape must
 * violate a documented condition; others are drawn instead of it. --only runs the shape of that
 * number; --show prints all of them. */
#include "lib/private.h"
#include "runtime/runtime.h"
#include "tests/sweep/sweep.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* shapes of a kernel that run */
#if defined(__SANITIZE_ADDRESS__)
#define COUNT     1 /* an instrumented emulator is slow */
#define SCHEDULES 1
#else
#define COUNT     5
#define SCHEDULES 2
#endif
#define TRIES_MOST 12 /* shapes drawn for one that runs */
#define PITCH      16 /* bytes: rows that TMA copies are a multiple of it */
#define BOX_MOST   256
#define BOX_ALIGN  128 /* bytes: boxes of a tile start at multiples of it */

typedef struct Sweep {
    int count, only; /* only: number of one shape; -1: all */
    uint64_t seed;
    const char *filter;
    bool show;
    Runtime *gpu;
    int passed, failed, refused;
} Sweep;

typedef struct Trial { /* one shape of one kernel */
    Sweep *sweep;
    const char *path;
    const PipecProgram *plain; /* with the default statics */
    Shape shape;
    int number;
    PipecProgram *program; /* with those of the shape */
} Trial;

typedef enum Outcome { RAN, REFUSED, FAILED } Outcome;

static Outcome fail(const Trial *trial, const char *what, const PipecDiagnostics *diagnostics) {
    printf("---- %s %s %s: %s\n%s", trial->path, trial->plain->kernel, trial->shape.text, what,
           diagnostics != NULL ? pipec_diagnostics_text(diagnostics) : "");
    printf("repeat: sweep-test --seed %llu --filter %s --only %d\n",
           (unsigned long long)trial->sweep->seed, trial->path, trial->number);
    trial->sweep->failed++;
    return FAILED;
}

/* ---- documented refusals --------------------------------------------------------------------- */

/* True if all errors have codes in from .. to */
static bool only_codes(const PipecDiagnostics *diagnostics, const char *from, const char *to) {
    for (size_t i = 0; i < pipec_diagnostics_count(diagnostics); i++) {
        const PipecDiagnostic *diagnostic = pipec_diagnostics_get(diagnostics, i);
        if (diagnostic->severity != PIPEC_ERROR) continue;
        if (strcmp(diagnostic->code, from) < 0 || strcmp(diagnostic->code, to) > 0) return false;
    }
    return pipec_diagnostics_errors(diagnostics) > 0;
}

/* True if a tile of this length divides into boxes of TMA, as P0212 documents it */
static bool divides_into_boxes(int64_t length, int bytes) {
    for (int64_t box = 1; box <= BOX_MOST && box <= length; box++)
        if (length % box == 0 && box * bytes % PITCH == 0 &&
            (box == length || box * bytes % BOX_ALIGN == 0))
            return true;
    return false;
}

/* Value of a static in the shape */
static int64_t value_of(const Shape *shape, const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < shape->count; i++)
        if (strncmp(shape->values[i], name, length) == 0 && shape->values[i][length] == '=')
            return strtoll(shape->values[i] + length + 1, NULL, 10);
    return 0;
}

/* True if rows of a static extent of the shape do not divide into boxes */
static bool has_ragged_rows(const Trial *trial) {
    const Prog *prog = trial->plain->prog;
    for (size_t c = 0; c < prog->constants.count; c++) {
        const Constant *constant = &prog->constants.items[c];
        if (!static_is_extent(prog, constant)) continue;
        int64_t length = value_of(&trial->shape, constant->name);
        for (size_t p = 0; p < prog->params.count; p++) {
            const Param *param = &prog->params.items[p];
            if (param->is_tensor && !divides_into_boxes(length, element_rows[param->type].bytes))
                return true;
        }
    }
    return false;
}

/* True if the shape gives a value to a static that has a set */
static bool changes_statics(const Trial *trial) {
    const Prog *prog = trial->plain->prog;
    for (size_t c = 0; c < prog->constants.count; c++)
        if (prog->constants.items[c].choices.count > 0 &&
            value_of(&trial->shape, prog->constants.items[c].name) != 0)
            return true;
    return false;
}

/* P0212 and P0213 are documented for rows that do not divide into boxes, P0500 to P0508 for
 * combinations of statics that need more than a block has. */
static bool compiler_may_refuse(const Trial *trial, const PipecDiagnostics *diagnostics) {
    return (only_codes(diagnostics, "P0212", "P0213") && has_ragged_rows(trial)) ||
           (only_codes(diagnostics, "P0500", "P0508") && changes_statics(trial));
}

/* True if a tensor of the shape has rows whose pitch TMA does not take */
static bool has_odd_pitch(const Trial *trial) {
    const Prog *prog = trial->program->prog;
    for (size_t p = 0; p < prog->params.count; p++) {
        const Param *param = &prog->params.items[p];
        if (!param->is_tensor || param->rank < 2) continue;
        const Expr *last = param->extents[param->rank - 1];
        int64_t length = last->kind == X_SYMBOL
                             ? value_of(&trial->shape, prog->symbols.items[last->index].name)
                             : last->constant.integer;
        if (length * element_rows[param->type].bytes % PITCH != 0) return true;
    }
    return false;
}

static bool is_of_requires(const PipecDiagnostic *diagnostic) {
    for (size_t i = 0; i < diagnostic->note_count; i++)
        if (strstr(diagnostic->notes[i], "stated by `requires`") != NULL) return true;
    return false;
}

/* P0608 is documented for `requires` and for such pitches. */
static bool launch_may_refuse(const Trial *trial, const PipecDiagnostics *diagnostics) {
    bool odd = has_odd_pitch(trial);
    for (size_t i = 0; i < pipec_diagnostics_count(diagnostics); i++)
        if (!odd && !is_of_requires(pipec_diagnostics_get(diagnostics, i))) return false;
    return only_codes(diagnostics, "P0608", "P0608");
}

/* ---- one shape ------------------------------------------------------------------------------- */

static PipecRun *execute(const Trial *trial, bool gpu) {
    PipecRunOptions options = {.size = sizeof options,
                               .values = trial->shape.values,
                               .value_count = trial->shape.count,
                               .seed = trial->sweep->seed + (uint64_t)trial->number,
                               .strided = trial->number / 4 % 2 == 1};
    PipecExecuteOptions how = {.size = sizeof how,
                               .where = gpu ? PIPEC_ON_GPU : PIPEC_ON_EMULATOR,
                               .schedules = gpu ? 0 : SCHEDULES,
                               .schedule = gpu ? 0 : (uint64_t)trial->number};
    PipecRun *run = pipec_run_new(trial->program, &options);
    if (pipec_run_status(run) == PIPEC_FINE) pipec_run_execute(run, &how);
    return run;
}

static const char *judge(PipecRun *run) {
    if (pipec_run_status(run) != PIPEC_FINE) return "it does not run";
    return pipec_run_verify(run) == PIPEC_RIGHT ? NULL : "it is wrong";
}

static bool bit_equal(const PipecRun *a, const PipecRun *b) {
    PipecArray x = {.size = sizeof x}, y = {.size = sizeof y};
    for (size_t i = 0; pipec_run_array(a, i, &x) && pipec_run_array(b, i, &y); i++)
        if (memcmp(x.data, y.data, x.bytes) != 0) return false;
    return true;
}

static Outcome run_on_gpu(const Trial *trial, const PipecRun *emulated) {
    PipecRun *first = execute(trial, true), *second = execute(trial, true);
    const char *what = judge(first), *how = "";
    Outcome outcome = RAN;
    if (what != NULL)
        outcome = fail(trial, what, pipec_run_diagnostics(first));
    else if (pipec_run_status(second) != PIPEC_FINE || !bit_equal(first, second))
        outcome = fail(trial, "two runs on the GPU differ", NULL);
    else if (pipec_run_compare(first, emulated, &how) != PIPEC_FINE)
        outcome = fail(trial, how, pipec_run_diagnostics(first));
    pipec_run_free(first);
    pipec_run_free(second);
    return outcome;
}

static Outcome run_program(const Trial *trial) {
    PipecRun *run = execute(trial, false);
    Outcome outcome = RAN;
    if (pipec_run_status(run) == PIPEC_UNUSABLE &&
        launch_may_refuse(trial, pipec_run_diagnostics(run))) {
        outcome = REFUSED;
    } else {
        const char *what = judge(run);
        if (what != NULL)
            outcome = fail(trial, what, pipec_run_diagnostics(run));
        else if (trial->sweep->gpu != NULL)
            outcome = run_on_gpu(trial, run);
    }
    pipec_run_free(run);
    return outcome;
}

static Outcome try_shape(Trial *trial) {
    PipecOptions options = {.size = sizeof options,
                            .kernel = trial->plain->kernel,
                            .values = trial->shape.values,
                            .value_count = trial->shape.count,
                            .launch_values = true,
                            .watchdog = true};
    Outcome outcome;
    trial->program = pipec_compile_file(trial->path, &options);
    const PipecDiagnostics *diagnostics = pipec_program_diagnostics(trial->program);
    if (pipec_program_status(trial->program) == PIPEC_FINE)
        outcome = run_program(trial);
    else if (compiler_may_refuse(trial, diagnostics))
        outcome = REFUSED;
    else
        outcome = fail(trial, "it is refused", diagnostics);
    pipec_program_free(trial->program);
    return outcome;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static Outcome run_number(Sweep *sweep, const char *path, const PipecProgram *plain, int number) {
    static const char *const names[] = {"ran", "refused", "FAILED"};
    Arena *arena = arena_new();
    Trial trial = {.sweep = sweep, .path = path, .plain = plain, .number = number};
    trial.shape = shape_draw(arena, plain->prog, plain->manifest, sweep->seed, (uint64_t)number);
    Outcome outcome = try_shape(&trial);
    if (sweep->show)
        printf("%s %s %s: %s\n", path, plain->kernel, trial.shape.text, names[outcome]);
    arena_free(arena);
    return outcome;
}

static void sweep_kernel(Sweep *sweep, const char *path, const PipecProgram *plain) {
    int ran = 0, number = 0;
    if (sweep->only >= 0) {
        sweep->passed += run_number(sweep, path, plain, sweep->only) != FAILED;
        return;
    }
    for (; ran < sweep->count && number < sweep->count * TRIES_MOST; number++) {
        Outcome outcome = run_number(sweep, path, plain, number);
        if (outcome == FAILED) return;
        ran += outcome == RAN;
        sweep->refused += outcome == REFUSED;
    }
    sweep->passed += ran;
    if (ran == sweep->count) return;
    printf("%s %s: only %d of %d shapes run\n", path, plain->kernel, ran, number);
    sweep->failed++;
}

static void sweep_file(Sweep *sweep, const char *path) {
    PipecOptions all = {.size = sizeof all, .check_only = true, .combinations = 1};
    PipecProgram *names = pipec_compile_file(path, &all);
    const char *kernel;
    for (size_t i = 0; (kernel = pipec_program_kernel(names, i)) != NULL; i++) {
        PipecOptions options = {.size = sizeof options, .kernel = kernel};
        PipecProgram *plain = pipec_compile_file(path, &options);
        if (plain->manifest != NULL) {
            sweep_kernel(sweep, path, plain);
        } else {
            printf("%s %s: it is refused\n", path, kernel);
            sweep->failed++;
        }
        pipec_program_free(plain);
    }
    pipec_program_free(names);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int is_program(const struct dirent *entry) {
    size_t length = strlen(entry->d_name);
    return length > 5 && strcmp(entry->d_name + length - 5, ".pipe") == 0;
}

static void sweep_folder(Sweep *sweep, const char *folder) {
    struct dirent **entries;
    char path[512];
    int count = scandir(folder, &entries, is_program, alphasort);
    if (count < 0) {
        perror(folder);
        sweep->failed++;
    }
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        free(entries[i]);
        if (sweep->filter == NULL || strstr(path, sweep->filter) != NULL) sweep_file(sweep, path);
    }
    if (count >= 0) free(entries);
}

static bool read_options(Sweep *sweep, Arena *arena, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--count") == 0 && more)
            sweep->count = atoi(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0 && more)
            sweep->seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0 && more)
            sweep->only = atoi(argv[++i]), sweep->show = true;
        else if (strcmp(argv[i], "--filter") == 0 && more)
            sweep->filter = argv[++i];
        else if (strcmp(argv[i], "--show") == 0)
            sweep->show = true;
        else if (strcmp(argv[i], "--gpu") == 0)
            sweep->gpu = open_gpu(arena, &sweep->failed);
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv) {
    static const char *const folders[] = {"examples", "bench", "bench/rows"};
    Sweep sweep = {.count = COUNT, .only = -1, .seed = 1};
    Arena *arena = arena_new();
    if (!read_options(&sweep, arena, argc, argv)) {
        fprintf(stderr, "sweep-test [--count N] [--seed S] [--only NUMBER] [--filter TEXT] [--gpu] "
                        "[--show]\n");
        return 2;
    }
    for (size_t i = 0; i < COUNT_OF(folders); i++) sweep_folder(&sweep, folders[i]);
    if (sweep.gpu != NULL) runtime_close(sweep.gpu);
    arena_free(arena);
    printf("%d shapes refused, each for a documented reason\n", sweep.refused);
    printf("%d passed, %d failed\n", sweep.passed, sweep.failed);
    return sweep.failed > 0;
}
