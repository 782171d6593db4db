/* matrix-test [--count N] [--seed S] [--only SEED] [--keep DIR] [--assemble] [--refused] [--gpu]
 *             [--draw]
 *
 * Compiles random matrix kernels and runs them on the emulator, each filling on another
 * schedule; with --gpu also on the GPU, twice. Inputs are exactly known, `out` tensors are
 * poisoned, and results are compared with `ensures` in f64. The launch of a shape whose pitch
 * violates a precondition must be refused. Programs that need more than a block has are counted,
 * and must be few. A failing case is printed, with the command that repeats it. --draw only
 * prints the programs, for same-test. */
#include "emulator/emulator.h"
#include "lib/private.h"
#include "reference/reference.h"
#include "runtime/runtime.h"
#include "tests/matrix/matrix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define COUNT 12 /* an instrumented emulator is slow */
#else
#define COUNT 240
#endif
#define REFUSED_MOST 15 /* percent */
#define ASSEMBLED    24 /* one in this many, if ptxas is found */

typedef struct Tester {
    int passed, failed, right, broken, refused;
    const char *folder;
    int every; /* one in this many texts is assembled; 0: none */
    bool show_refused, draw;
    Runtime *gpu;
} Tester;

typedef struct Trial { /* one program on one filling */
    Tester *tester;
    Arena *arena;
    const Matrix *matrix;
    Filling filling;
    const char *text;
    PipecProgram *program;
    Diags *diags;
} Trial;

/* ---- output ---------------------------------------------------------------------------------- */

static const char *const filling_names[FILLING_COUNT] = {"coordinates", "choice", "normal"};

static void keep(const Trial *trial) {
    const char *name =
        arena_printf(trial->arena, "%s/matrix-%llu-%s.pipe", trial->tester->folder,
                     (unsigned long long)trial->matrix->seed, filling_names[trial->filling]);
    FILE *file = fopen(name, "w");
    if (file == NULL) return;
    fprintf(file, "// A random matrix kernel.\n//> run\n%s%s",
            trial->matrix->broken != NULL ? "//> exit 2\n//> says P0608\n" : "", trial->text);
    fclose(file);
}

static void show(const Trial *trial, const char *what, const Diags *diags) {
    Str text = str_new(trial->arena);
    str_add(&text, "");
    if (diags != NULL) diags_render(diags, false, &text);
    printf("---- %s, %s\n%s%s", matrix_sizes(trial->matrix), what, text.text, trial->text);
    printf("repeat: matrix-test --only %llu\n", (unsigned long long)trial->matrix->seed);
}

static bool fail(const Trial *trial, const char *what, const Diags *diags) {
    show(trial, what, diags);
    trial->tester->failed++;
    return false;
}

/* ---- one run --------------------------------------------------------------------------------- */

static bool poisoned(const Launch *launch) {
    for (size_t p = 0; p < launch->manifest->parameters.count; p++) {
        const Array *array = &launch->arrays[p];
        size_t bytes = (size_t)element_rows[array->type].bytes;
        if (launch->manifest->parameters.items[p].mode != MODE_OUT) continue;
        for (int64_t i = 0; i < array->count; i++) {
            const unsigned char *at = array->data + (size_t)i * bytes;
            bool is = element_rows[array->type].kind == ELEMENT_FLOAT
                          ? isnan(element_load(array->type, at))
                          : *at == GUARD_BYTE;
            if (!is) return false;
        }
    }
    return true;
}

static bool is_strided(const Trial *trial) { return trial->matrix->seed / 4 % 2 == 1; }

static Launch *prepare(Trial *trial) {
    LaunchOptions options = {
        .seed = trial->matrix->seed, .watchdog_ns = 2000000000, .strided = is_strided(trial)};
    const PipecProgram *program = trial->program;
    Argument *all;
    size_t count;
    if (!reference_arguments(trial->arena, program->prog, program->manifest, NULL, 0, &all, &count,
                             trial->diags))
        return NULL;
    return launch_prepare(trial->arena, program->manifest, program->ptx.text, program->ptx.length,
                          all, count, &options, trial->diags);
}

/* The error of a run, or NULL; the results are in the launch */
static const char *run(Trial *trial, Launch *launch, bool gpu) {
    Before before = {0};
    RunResult result = {0};
    uint64_t schedule = trial->filling == FILL_WITH_CODE
                            ? 0
                            : trial->matrix->seed * FILLING_COUNT + (uint64_t)trial->filling;
    EmulatorOptions emulator = {.seed = schedule, .resident = 1 + (int)(schedule % 5)};
    RuntimeOptions runtime = {0};
    Verdict verdict;
    ReferenceOptions reference = {.seed = 1};
    if (!poisoned(launch)) return "its result is not poisoned";
    if (gpu && runtime_run(trial->arena, trial->tester->gpu, launch, &runtime, &result,
                           trial->diags) != RUN_DONE)
        return "it does not run on the GPU";
    if (!gpu && emulator_run(trial->arena, launch, &emulator, &result, trial->diags) != RUN_DONE)
        return "it does not run on the emulator";
    if (!launch_guards(launch, trial->diags)) return "it writes outside of its tensors";
    reference_verdict(trial->arena, trial->program->prog, launch, &before, &reference, &verdict,
                      trial->diags);
    if (verdict.kind == VERDICT_RIGHT && verdict.wrong == 0 && verdict.untouched == 0) return NULL;
    return gpu ? "it is wrong on the GPU" : "it is wrong";
}

/* True if the results of two runs are equal, or within the tolerance of the claim */
static bool alike(const Launch *a, const Launch *b, double within) {
    for (size_t p = 0; p < a->manifest->parameters.count; p++) {
        const Array *x = &a->arrays[p], *y = &b->arrays[p];
        size_t bytes = (size_t)element_rows[x->type].bytes;
        double squares = 0;
        if (a->manifest->parameters.items[p].mode != MODE_OUT ||
            memcmp(x->data, y->data, x->bytes) == 0)
            continue;
        if (within == 0) return false;
        for (int64_t i = 0; i < y->count; i++) {
            double value = element_load(y->type, y->data + (size_t)i * bytes);
            squares += value * value;
        }
        double size = sqrt(squares / (double)y->count);
        for (int64_t i = 0; i < x->count; i++) {
            double left = element_load(x->type, x->data + (size_t)i * bytes),
                   right = element_load(y->type, y->data + (size_t)i * bytes);
            if (!(fabs(left - right) <= within * (fabs(right) + size))) return false;
        }
    }
    return true;
}

static const char *run_on_gpu(Trial *trial, const Launch *emulated) {
    Launch *runs[2];
    const char *what = NULL;
    double within = trial->filling == FILL_AT_RANDOM ? matrix_within(trial->matrix) : 0;
    for (int i = 0; i < 2; i++) {
        runs[i] = prepare(trial);
        if (what == NULL && runs[i] != NULL) what = run(trial, runs[i], true);
    }
    if (runs[0] == NULL || runs[1] == NULL) what = "its second launch is refused";
    if (what == NULL && !alike(runs[0], runs[1], 0)) what = "two runs on the GPU differ";
    /* Each is within the tolerance of the exact value, perhaps on opposite sides */
    if (what == NULL && !alike(runs[0], emulated, 2 * within))
        what = "the GPU and the emulator differ";
    for (int i = 0; i < 2; i++)
        if (runs[i] != NULL) launch_free(runs[i]);
    return what;
}

/* Has a launch with an extent that is no multiple of 16 bytes this end? Gaps can mend the pitch of
 * a tensor that is loaded, not of one that is stored. A single row needs no pitch. */
static bool is_named(const Trial *trial, bool strided) {
    bool stored = trial->matrix->broken[0] == 'N' && trial->matrix->out_stages > 0, named = true;
    for (size_t i = 0; i < trial->diags->items.count; i++)
        named &= trial->diags->items.items[i]->code == P0608;
    return named && trial->diags->items.count > 0 && (stored || !strided);
}

static bool run_filling(Trial *trial) {
    Tester *tester = trial->tester;
    const char *what = NULL, *broken = trial->matrix->broken;
    trial->diags = diags_new(trial->arena, trial->program->source);
    Launch *launch = prepare(trial);
    if (broken != NULL && launch == NULL) {
        if (!is_named(trial, is_strided(trial)))
            return fail(
                trial, arena_printf(trial->arena, "the pitch of `%s` is refused otherwise", broken),
                trial->diags);
        tester->broken++;
        return true;
    }
    if (launch == NULL) return fail(trial, "its launch is refused", trial->diags);
    what = run(trial, launch, false);
    if (what == NULL && tester->gpu != NULL) what = run_on_gpu(trial, launch);
    launch_free(launch);
    if (what != NULL)
        return fail(
            trial,
            arena_printf(trial->arena, "%s filling: %s", filling_names[trial->filling], what),
            trial->diags);
    tester->passed++;
    return true;
}

/* ---- one shape ------------------------------------------------------------------------------- */

static bool needs_too_much(const Diags *diags) {
    static const Code codes[] = {P0500, P0501, P0503, P0504, P0505};
    for (size_t i = 0; i < diags->items.count; i++) {
        bool found = false;
        for (size_t c = 0; c < COUNT_OF(codes); c++)
            found |= diags->items.items[i]->code == codes[c];
        if (!found) return false;
    }
    return diags->items.count > 0;
}

static bool try_filling(Trial *trial, bool assemble) {
    Tester *tester = trial->tester;
    PipecOptions options = {
        .size = sizeof options, .name = "matrix.pipe", .watchdog = tester->gpu != NULL};
    const char *output = NULL;
    bool fine = false;
    trial->text = matrix_text(trial->matrix, trial->filling);
    if (tester->folder != NULL) keep(trial);
    trial->program = pipec_compile(trial->text, strlen(trial->text), &options);
    if (trial->program->manifest != NULL) {
        fine = assemble && !assembles(trial->arena, "sm_90a", trial->program->ptx.text, 0, &output)
                   ? fail(trial, arena_printf(trial->arena, "ptxas complains: %s", output), NULL)
                   : run_filling(trial);
    } else if (needs_too_much(trial->program->diags)) {
        tester->refused++;
        if (tester->show_refused) show(trial, "refused", trial->program->diags);
    } else {
        fail(trial, "it is refused", trial->program->diags);
    }
    pipec_program_free(trial->program);
    return fine;
}

static void try_shape(Tester *tester, uint64_t seed) {
    Arena *arena = arena_new();
    Matrix matrix = matrix_draw(arena, seed);
    Trial trial = {.tester = tester, .arena = arena, .matrix = &matrix};
    Filling exact = seed % 3 == 0 ? FILL_WITH_CHOICE : FILL_WITH_CODE;
    bool fine = true;
    if (tester->draw) {
        drawn_print("matrix", seed, matrix_text(&matrix, seed % 2 == 0 ? FILL_AT_RANDOM : exact));
        arena_free(arena);
        return;
    }
    for (int f = 0; f < FILLING_COUNT && fine; f++) {
        trial.filling = (Filling)f;
        if (f != (int)exact && f != FILL_AT_RANDOM) continue;
        fine = try_filling(&trial, f == FILL_AT_RANDOM && tester->every > 0 &&
                                       seed % (uint64_t)tester->every == 0);
        if (matrix.broken != NULL) break;
    }
    tester->right += fine && matrix.broken == NULL;
    arena_free(arena);
}

int main(int argc, char **argv) {
    Tester tester = {.every = system("ptxas --version >/dev/null 2>&1") == 0 ? ASSEMBLED : 0};
    uint64_t seed = 1, count = COUNT;
    Arena *arena = arena_new();
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--count") == 0 && more)
            count = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0 && more)
            seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0 && more)
            seed = strtoull(argv[++i], NULL, 10), count = 1, tester.show_refused = true;
        else if (strcmp(argv[i], "--keep") == 0 && more)
            tester.folder = argv[++i];
        else if (strcmp(argv[i], "--assemble") == 0)
            tester.every = 1;
        else if (strcmp(argv[i], "--refused") == 0)
            tester.show_refused = true;
        else if (strcmp(argv[i], "--gpu") == 0)
            tester.gpu = open_gpu(arena, &tester.failed);
        else if (strcmp(argv[i], "--draw") == 0)
            tester.draw = true;
        else {
            fprintf(stderr, "matrix-test [--count N] [--seed S] [--only SEED] [--keep DIR] "
                            "[--assemble] [--refused] [--gpu] [--draw]\n");
            return 2;
        }
    }
    for (uint64_t i = 0; i < count; i++) try_shape(&tester, seed + i);
    if (tester.gpu != NULL) runtime_close(tester.gpu);
    arena_free(arena);
    if (tester.draw) return 0;
    if (count > 1 && (uint64_t)tester.refused * 100 > count * REFUSED_MOST) {
        printf("%d of %llu shapes are refused: nothing is tested by them\n", tester.refused,
               (unsigned long long)count);
        tester.failed++;
    }
    printf("%d shapes right, %d refused at their launch as they must be, %d need more than a block "
           "has\n",
           tester.right, tester.broken, tester.refused);
    printf("%d passed, %d failed\n", tester.passed + tester.broken, tester.failed);
    return tester.failed > 0;
}
