/* Shared by tests of kernels that nvcc compiled (tests/cuda/NAME.cu; compile.sh makes the PTX).
 * Each runs right, clean and with races on, on several schedules; each of its two faults, a
 * barrier, fence, wait or order less, is named on the plain schedule by the finding of its row, at
 * the line of the source. Then each barrier, fence and wait for copies is removed from the PTX, one
 * at a time: the plain schedule must have a finding, unless the row says that it is not needed. */
#ifndef TESTS_CUDA_H
#define TESTS_CUDA_H

#include "emulator/emulator.h"

#include "tests/unit/expect.h"

#include <string.h>

enum { MOST_REGIONS = 6, SEEDS = 4, MOST_TEXT = 1 << 16 };

typedef struct Trial {
    Scratch scratch;
    EmulatorKernel kernel;
    EmulatorLaunch launch;
    EmulatorRegion regions[MOST_REGIONS];
    size_t region_count, parameter_count;
} Trial;

typedef struct Kernel {
    const char *name;
    void (*start)(Trial *trial);       /* the launch and its data */
    bool (*right)(const Trial *trial); /* the results are */
    Code faults[2];                    /* the first error of each fault */
    const char *says[2][3];            /* parts of the messages of each fault */
    /* so many instructions that begin in this way are not needed; NULL: none */
    const char *needless;
    int needless_count;
} Kernel;

#define KERNEL(kernel, first, second)                                                              \
    .name = #kernel, .start = start_##kernel, .right = right_##kernel, .faults = {first, second}

/* ---- launches -------------------------------------------------------------------------------- */

static inline void launch(Trial *trial, uint32_t grid, uint32_t block) {
    trial->launch.grid[0] = grid, trial->launch.block[0] = block;
}

static inline void pass(Trial *trial, const void *value, size_t bytes) {
    if (!EXPECT(trial->parameter_count < trial->kernel.parameter_count)) return;
    const EmulatorParameter *parameter = &trial->kernel.parameters[trial->parameter_count++];
    if (!EXPECT(bytes == parameter->bytes)) return;
    memcpy((unsigned char *)trial->launch.parameters + parameter->offset, value, bytes);
}

static inline void pass_int(Trial *trial, int value) { pass(trial, &value, sizeof value); }

static inline void pass_float(Trial *trial, float value) { pass(trial, &value, sizeof value); }

/* Zeros */
static inline void *region(Trial *trial, const char *name, size_t bytes) {
    EmulatorRegion *it = &trial->regions[trial->region_count++];
    *it = (EmulatorRegion){.data = NEW_ARRAY(trial->scratch.arena, unsigned char, bytes),
                           .bytes = bytes,
                           .name = name};
    emulator_place(trial->regions, trial->region_count);
    return it->data;
}

static inline void *pass_region(Trial *trial, const char *name, size_t bytes) {
    void *data = region(trial, name, bytes);
    pass(trial, &trial->regions[trial->region_count - 1].base, 8);
    return data;
}

/* Small whole numbers that repeat late: sums of them are exact in f32 */
static inline int number(size_t i) { return (int)(i * 2654435761u >> 7) % 17 - 8; }

static inline float *pass_floats(Trial *trial, size_t count) {
    float *data = pass_region(trial, "x", count * sizeof *data);
    for (size_t i = 0; i < count; i++) data[i] = (float)number(i);
    return data;
}

static inline int *pass_ints(Trial *trial, size_t count) {
    int *data = pass_region(trial, "x", count * sizeof *data);
    for (size_t i = 0; i < count; i++) data[i] = number(i);
    return data;
}

static const float *floats_of(const Trial *trial, int region) {
    return (const float *)(const void *)trial->regions[region].data;
}

static const int *ints_of(const Trial *trial, int region) {
    return (const int *)(const void *)trial->regions[region].data;
}

/* ---- runs and faults ------------------------------------------------------------------------- */

static bool says_all(const char *text, const char *const parts[3]) {
    for (int i = 0; i < 3; i++)
        if (parts[i] && !strstr(text, parts[i])) return false;
    return true;
}

/* NUL-terminated */
static char *read_text(Arena *arena, const char *file) {
    FILE *in = fopen(file, "rb");
    char *text = arena_alloc(arena, MOST_TEXT);
    size_t length = in ? fread(text, 1, MOST_TEXT - 1, in) : 0;
    if (in) fclose(in);
    EXPECT(length > 0 && length < MOST_TEXT - 1);
    text[length] = '\0';
    return text;
}

static RunStatus run_text(Trial *trial, const Kernel *kernel, const char *text, uint64_t seed) {
    Arena *arena = trial->scratch.arena;
    RunStatus status =
        emulator_read(arena, text, strlen(text), NULL, &trial->kernel, trial->scratch.diags);
    if (status != RUN_DONE) return status;
    trial->launch = (EmulatorLaunch){
        .kernel = &trial->kernel,
        .grid = {1, 1, 1},
        .block = {32, 1, 1},
        .parameters = NEW_ARRAY(arena, unsigned char, trial->kernel.parameter_bytes)};
    kernel->start(trial);
    EXPECT(trial->parameter_count == trial->kernel.parameter_count);
    EmulatorWork work = {.regions = trial->regions,
                         .region_count = trial->region_count,
                         .launches = &trial->launch,
                         .launch_count = 1};
    EmulatorOptions options = {.seed = seed, .races = RACES_ON};
    RunResult result;
    return emulator_run_work(arena, &work, &options, &result, trial->scratch.diags);
}

static RunStatus run(Trial *trial, const Kernel *kernel, const char *file, uint64_t seed) {
    *trial = (Trial){.scratch = scratch_new()};
    return run_text(trial, kernel, read_text(trial->scratch.arena, file), seed);
}

static void test_right(const Kernel *kernel, uint64_t seed) {
    char file[256];
    Trial trial;
    snprintf(file, sizeof file, "tests/cuda/%s.ptx", kernel->name);
    bool done = EXPECT(run(&trial, kernel, file, seed) == RUN_DONE);
    bool clean = EXPECT_CLEAN(&trial.scratch);
    if (!done || !clean || !EXPECT(kernel->right(&trial)))
        fprintf(stderr, "%s, schedule %d\n", file, (int)seed);
    scratch_free(&trial.scratch);
}

static void test_fault(const Kernel *kernel, int fault) {
    char file[256], source[256];
    Trial trial;
    snprintf(file, sizeof file, "tests/cuda/%s.fault%d.ptx", kernel->name, fault);
    snprintf(source, sizeof source, "%s.cu:", kernel->name);
    bool found = EXPECT(run(&trial, kernel, file, 0) == RUN_FINDING);
    const Diags *diags = trial.scratch.diags;
    const Diag *first = NULL;
    for (size_t i = 0; i < diags->items.count && first == NULL; i++)
        if (diags->items.items[i]->severity == SEVERITY_ERROR) first = diags->items.items[i];
    Str rendered = str_new(trial.scratch.arena);
    diags_render(diags, false, &rendered);
    if (!found || !EXPECT(first != NULL) || !EXPECT(first->code == kernel->faults[fault - 1]) ||
        !EXPECT(strstr(rendered.text, source) != NULL) ||
        !EXPECT(says_all(rendered.text, kernel->says[fault - 1])))
        fprintf(stderr, "%s:\n%s\n", file, rendered.text);
    scratch_free(&trial.scratch);
}

/* ---- removals -------------------------------------------------------------------------------- */

static bool synchronises(const char *line) {
    static const char *const starts[] = {"bar.",         "barrier.",      "fence.",
                                         "membar.",      "cp.async.wait", "cp.async.bulk.wait",
                                         "wgmma.fence.", "wgmma.wait"};
    for (size_t i = 0; i < COUNT_OF(starts); i++)
        if (!strncmp(line, starts[i], strlen(starts[i]))) return true;
    return false;
}

/* Runs without this statement. True: there is no finding */
static bool survives(const Kernel *kernel, const char *text, size_t at, size_t length) {
    Trial trial = {.scratch = scratch_new()};
    char *copy = NEW_ARRAY(trial.scratch.arena, char, strlen(text) + 1);
    memcpy(copy, text, strlen(text));
    memset(copy + at, ' ', length);
    RunStatus status = run_text(&trial, kernel, copy, 0);
    EXPECT(status == RUN_DONE || status == RUN_FINDING);
    bool silent = status == RUN_DONE && trial.scratch.diags->items.count == 0;
    scratch_free(&trial.scratch);
    return silent;
}

static void test_removals(const Kernel *kernel) {
    Scratch scratch = scratch_new();
    int left = 0, removed = 0;
    char file[256];
    snprintf(file, sizeof file, "tests/cuda/%s.ptx", kernel->name);
    const char *text = read_text(scratch.arena, file), *needless = kernel->needless;
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += strspn(line, "\n\t ");
        size_t length = strcspn(line, "\n");
        if (!synchronises(line)) continue;
        removed++;
        if (!survives(kernel, text, (size_t)(line - text), length)) continue;
        if (EXPECT(needless != NULL && !strncmp(line, needless, strlen(needless))))
            left++;
        else
            fprintf(stderr, "%s without `%.*s`\n", file, (int)length, line);
    }
    EXPECT(left == kernel->needless_count);
    EXPECT(removed > 0 || !strcmp(kernel->name, "semaphore")); /* it has only atomic operations */
    scratch_free(&scratch);
}

/* The exit code; only the kernel that the first argument names, if there is one */
static int test_kernels(const Kernel *kernels, size_t count, int argc, char **argv) {
    for (size_t i = 0; i < count; i++) {
        if (argc > 1 && strcmp(argv[1], kernels[i].name) != 0) continue;
        for (uint64_t seed = 0; seed < SEEDS; seed++) test_right(&kernels[i], seed);
        for (int fault = 1; fault <= 2; fault++) test_fault(&kernels[i], fault);
        test_removals(&kernels[i]);
    }
    return expect_failures();
}

#endif
