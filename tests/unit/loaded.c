/* Variants that launches load: at most as many as the program says stay loaded, no launch runs one
 * that was unloaded, those in graphs stay, memory does not grow with the number of shapes. A launch
 * of limited patience takes another variant until its choice is loaded. `make threads` runs this
 * under ThreadSanitizer. */
#include "tests/unit/kernels.h"

#include <malloc.h>
#include <pthread.h>
#include <time.h>

/* A length has one value of R in whose domain it is, and R + 1 blocks */
static const char residues[] =
    "kernel copy(X: f32[N], out Y: f32[N]) for sm_90a {\n"
    "    static R = 1 in {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,\n"
    "        21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41,\n"
    "        42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60};\n"
    "    requires N % 61 == R;\n"
    "    grid (t: R + 1);\n"
    "    role all: 4 warps {\n"
    "        for t in grid {\n"
    "            for p in 0 .. ceil(N, 128 * (R + 1)) {\n"
    "                Y[(p*(R + 1) + t)*128 + i] = X[(p*(R + 1) + t)*128 + i] for i in 0 .. 128;\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "}\n";

/* Both variants take these lengths; `slow` is the program itself, and worse */
static const char either[] =
    "kernel copy(X: f32[N], out Y: f32[N]) for sm_90a {\n"
    "    variant slow {\n"
    "        grid (t: 1);\n"
    "        role all: 1 warp {\n"
    "            for t in grid {\n"
    "                for p in 0 .. ceil(N, 32) { Y[p*32 + i] = X[p*32 + i] for i in 0 .. 32; }\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "    variant fast {\n"
    "        requires N >= 1000;\n"
    "        grid (t: ceil(N, 1024));\n"
    "        role all: 4 warps { for t in grid { Y[t*1024 + i] = X[t*1024 + i] for i in 0 .. 1024; "
    "} }\n"
    "    }\n"
    "}\n";

static const char lengths[] =
    "kernel copy(X: f32[M, D], out Y: f32[M, D]) for sm_90a {\n"
    "    static D = 64;\n"
    "    grid (m: M, d: ceil(D, 32));\n"
    "    role all: 1 warp {\n"
    "        for (m, d) in grid { Y[m, d*32 + i] = X[m, d*32 + i] for i in 0 .. 32; }\n"
    "    }\n"
    "}\n";

static _Thread_local unsigned launched; /* blocks of the last launch of this thread */
static void look(void **parameters, unsigned blocks) {
    (void)parameters;
    launched = blocks;
}

/* Long enough for other threads to unload what is launched */
static void look_slowly(void **parameters, unsigned blocks) {
    look(parameters, blocks);
    usleep(100);
}

static PipecProgram *compile_open(const char *text, size_t most, double patience) {
    PipecOptions options = {
        .size = sizeof options, .any_variant = true, .loaded_most = most, .patience = patience};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    if (!EXPECT(pipec_program_status(program) == PIPEC_FINE))
        fputs(pipec_diagnostics_text(pipec_program_diagnostics(program)), stderr);
    return program;
}

static PipecKernelInfo info_of(const PipecKernel *kernel) {
    PipecKernelInfo info = {.size = sizeof info};
    EXPECT(pipec_kernel_info(kernel, &info));
    return info;
}

static unsigned blocks_for(PipecKernel *kernel, int64_t n, void *stream) {
    PipecArgument arguments[2] = {{.pointer = 1 << 20, .extents = {n}},
                                  {.pointer = UINT64_C(1) << 40, .extents = {n}}};
    PipecLaunch launch = launch_of(arguments, 2);
    launch.stream = stream;
    launched = 0;
    EXPECT(launches(kernel, &launch, NULL));
    return launched;
}

static unsigned blocks_wanted(int64_t n) { return (unsigned)(n % 61 + 1); }

static int64_t next_length(int64_t i) { return 61 * (1 + i % 97) + 1 + i * 7919 % 60; }

static size_t host_bytes(void) { return mallinfo2().uordblks; }

static void flat(const Standin *standin) {
    PipecProgram *program = compile_open(residues, 0, 0);
    PipecKernel *kernel;
    size_t before = 0;
    int most = 0;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        for (int64_t i = 0; i < 1000; i++) {
            int64_t n = next_length(i);
            EXPECT(blocks_for(kernel, n, NULL) == blocks_wanted(n));
            if (standin->modules > most) most = standin->modules;
            if (i == 400) before = host_bytes();
        }
        /* the kernels themselves differ by some KB */
        EXPECT(host_bytes() < before + (1 << 20));
        EXPECT(most == 40 && standin->modules == 40);
        PipecKernelInfo info = info_of(kernel);
        EXPECT(info.variants_loaded == 40 && info.variants_captured == 0 &&
               info.variants_most == 40);
        int loaded = standin->loads;
        for (int i = 0; i < 10; i++) EXPECT(blocks_for(kernel, next_length(999), NULL) > 0);
        EXPECT(standin->loads == loaded); /* what is used stays */
        pipec_kernel_free(kernel);
    }
    EXPECT(standin_is_clean(standin));
    pipec_program_free(program);
}

/* Graphs refer to what was captured: it stays, and does not count. */
static void captured(Standin *standin) {
    PipecProgram *program = compile_open(residues, 2, 0);
    PipecKernel *kernel;
    int stream;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        standin->captures = 1;
        for (int64_t r = 1; r <= 5; r++) EXPECT(blocks_for(kernel, 61 + r, &stream) == r + 1);
        standin->captures = 0;
        PipecKernelInfo info = info_of(kernel);
        EXPECT(info.variants_loaded == 5 && info.variants_captured == 5);
        for (int64_t r = 60; r >= 6; r--) EXPECT(blocks_for(kernel, 61 + r, &stream) == r + 1);
        info = info_of(kernel);
        EXPECT(info.variants_loaded == 7 && info.variants_captured == 5 && info.variants_most == 2);
        int loaded = standin->loads;
        for (int64_t r = 1; r <= 5; r++) EXPECT(blocks_for(kernel, 61 + r, NULL) == r + 1);
        EXPECT(standin->loads == loaded);
        pipec_kernel_free(kernel);
    }
    EXPECT(standin->modules == 5 && standin->stale == 0);
    standin->modules = standin->allocations = 0; /* those of the graphs */
    pipec_program_free(program);
}

/* A length that is a static has a program of its own; what is loaded of them is bounded too. */
static void siblings(const Standin *standin) {
    PipecProgram *program = compile_open(lengths, 10, 0);
    PipecKernel *kernel;
    int most = 0;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        for (int round = 0; round < 2; round++)
            for (int64_t d = 1; d <= 200; d++) {
                PipecArgument arguments[2] = {{.pointer = 1 << 20, .extents = {10, d}},
                                              {.pointer = UINT64_C(1) << 40, .extents = {10, d}}};
                PipecLaunch launch = launch_of(arguments, 2);
                EXPECT(launches(kernel, &launch, NULL) && launched == 10 * ((d + 31) / 32));
                if (standin->modules > most) most = standin->modules;
            }
        EXPECT(most == 10 && info_of(kernel).variants_loaded == 10);
        pipec_kernel_free(kernel);
    }
    EXPECT(standin_is_clean(standin));
    pipec_program_free(program);
}

typedef struct Worker {
    pthread_t thread;
    PipecKernel *kernel;
    int64_t number;
    int wrong;
} Worker;

static void *launch_many(void *data) {
    Worker *worker = data;
    for (int64_t i = 0; i < 400; i++) {
        int64_t n = 61 + 1 + (i / 4 + worker->number * 3) % 12;
        worker->wrong += blocks_for(worker->kernel, n, NULL) != blocks_wanted(n);
    }
    return NULL;
}

static void threads(Standin *standin, double patience) {
    PipecProgram *program = compile_open(residues, 3, patience);
    PipecKernel *kernel;
    Worker workers[8];
    standin->kernel = look_slowly;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        for (int i = 0; i < 8; i++) {
            workers[i] = (Worker){.kernel = kernel, .number = i};
            pthread_create(&workers[i].thread, NULL, launch_many, &workers[i]);
        }
        for (size_t i = 0; i < 8; i++) {
            pthread_join(workers[i].thread, NULL);
            EXPECT(workers[i].wrong == 0);
        }
        pipec_kernel_free(kernel);
    }
    standin->kernel = look;
    EXPECT(standin_is_clean(standin));
    pipec_program_free(program);
}

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* While a choice loads for longer than the patience, launches run another combination. */
static void patience(Standin *standin) {
    PipecProgram *program = compile_open(either, 0, 0.05);
    PipecKernel *kernel;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        EXPECT(blocks_for(kernel, 900, NULL) == 1); /* its family is compiled */
        standin->load_milliseconds = 1000;
        double begin = seconds(), first, last;
        EXPECT(blocks_for(kernel, 100000, NULL) == 1);
        first = seconds() - begin;
        EXPECT(first >= 0.05 && first < 0.9);
        begin = seconds();
        EXPECT(blocks_for(kernel, 100000, NULL) == 1); /* waits no more */
        EXPECT(seconds() - begin < 0.5);
        do last = seconds() - begin;
        while (blocks_for(kernel, 100000, NULL) == 1 && last < 10);
        EXPECT(blocks_for(kernel, 100000, NULL) == 98 && blocks_for(kernel, 200000, NULL) == 196);
        standin->load_milliseconds = 0;
        pipec_kernel_free(kernel);
    }
    /* freed while a thread loads */
    EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL));
    standin->load_milliseconds = 200;
    EXPECT(blocks_for(kernel, 100000, NULL) == 1);
    pipec_kernel_free(kernel);
    standin->load_milliseconds = 0;
    EXPECT(standin_is_clean(standin));
    pipec_program_free(program);
}

/* Without a limit of patience the first launch runs its choice already. */
static void waits(Standin *standin) {
    PipecProgram *program = compile_open(either, 0, 0);
    PipecKernel *kernel;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        standin->load_milliseconds = 100;
        EXPECT(blocks_for(kernel, 100000, NULL) == 98);
        standin->load_milliseconds = 0;
        pipec_kernel_free(kernel);
    }
    pipec_program_free(program);
}

/* The launch that has no patience reports why its choice cannot be loaded. */
static void fails(void) {
    PipecProgram *program = compile_open(either, 0, 5);
    PipecKernel *kernel;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        PipecArgument arguments[2] = {{.pointer = 1 << 20, .extents = {5000}},
                                      {.pointer = UINT64_C(1) << 40, .extents = {5000}}};
        PipecLaunch launch = launch_of(arguments, 2);
        PipecDiagnostics *said = NULL;
        standin_says("jit=2");
        PipecKernel *none; /* reads the words */
        EXPECT(pipec_kernel_load(program, 0, &none, NULL) == PIPEC_FINE);
        pipec_kernel_free(none);
        PipecProgram *second = compile_open(lengths, 0, 0);
        EXPECT(pipec_kernel_load(second, 0, &none, NULL) == PIPEC_UNUSABLE);
        pipec_program_free(second);
        for (int i = 0; i < 2; i++) {
            EXPECT(pipec_kernel_launch(kernel, &launch, &said) == PIPEC_UNUSABLE && said != NULL);
            pipec_diagnostics_free(said);
        }
        standin_says("");
        pipec_kernel_free(kernel);
    }
    pipec_program_free(program);
}

/* ---- prepared shapes ------------------------------------------------------------------------- */

typedef struct Steps {
    size_t count, last, end; /* ends at so many; 0: never */
} Steps;

static bool step(void *data, size_t done, size_t of) {
    Steps *steps = data;
    EXPECT(done > steps->last && done <= of);
    steps->count++;
    steps->last = done;
    return steps->end == 0 || done < steps->end;
}

#define SHAPES 12

/* Lengths 62 .. 73 of `residues`, or of the extent `name` */
static PipecStatus prepare(PipecKernel *kernel, const char *name, int64_t first, Steps *steps,
                           PipecDiagnostics **said) {
    PipecValue values[SHAPES][2];
    PipecRunOptions shapes[SHAPES];
    for (int64_t i = 0; i < SHAPES; i++) {
        values[i][0] = (PipecValue){.name = name, .integer = first + i};
        values[i][1] = (PipecValue){.name = "M", .integer = 10};
        shapes[i] = (PipecRunOptions){
            .size = sizeof *shapes, .numbers = values[i], .number_count = name[0] == 'D' ? 2 : 1};
    }
    PipecPrepareOptions options = {.size = sizeof options,
                                   .shapes = shapes,
                                   .shape_size = sizeof *shapes,
                                   .shape_count = SHAPES,
                                   .threads = 4,
                                   .progress = step,
                                   .progress_data = steps};
    return pipec_kernel_prepare(kernel, &options, said);
}

static void prepared(Standin *standin) {
    PipecProgram *program = compile_open(residues, 0, 0);
    PipecKernel *kernel;
    PipecDiagnostics *said;
    Steps steps = {0}, ends = {.end = 3};
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        EXPECT(prepare(kernel, "N", 62, &steps, &said) == PIPEC_FINE && said == NULL);
        EXPECT(steps.last == SHAPES && info_of(kernel).variants_loaded == SHAPES);
        int loaded = standin->loads;
        for (int64_t n = 62; n < 62 + SHAPES; n++) EXPECT(blocks_for(kernel, n, NULL) == n - 60);
        EXPECT(standin->loads == loaded);
        standin->load_milliseconds = 50;
        EXPECT(prepare(kernel, "N", 90, &ends, &said) == PIPEC_FINE && said == NULL);
        standin->load_milliseconds = 0;
        EXPECT(ends.last >= 3 && ends.last < SHAPES);
        /* 122 is in no domain; K is no extent */
        EXPECT(prepare(kernel, "N", 117, &(Steps){0}, &said) == PIPEC_UNUSABLE &&
               has_code(said, "P0608") &&
               strstr(pipec_diagnostics_text(said), "the shape is N=122") != NULL);
        pipec_diagnostics_free(said);
        EXPECT(prepare(kernel, "K", 62, &(Steps){0}, &said) == PIPEC_UNUSABLE && said != NULL);
        pipec_diagnostics_free(said);
        PipecPrepareOptions unsized = {0};
        EXPECT(pipec_kernel_prepare(kernel, &unsized, &said) == PIPEC_UNUSABLE &&
               has_code(said, "P0917"));
        pipec_diagnostics_free(said);
        pipec_kernel_free(kernel);
    }
    EXPECT(standin_is_clean(standin));
    pipec_program_free(program);
}

/* More than stay loaded: a warning; and lengths that are statics */
static void prepared_too_many(const Standin *standin) {
    PipecProgram *program = compile_open(residues, 3, 0), *each = compile_open(lengths, 0, 0);
    PipecKernel *kernel;
    PipecDiagnostics *said;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        EXPECT(prepare(kernel, "N", 62, &(Steps){0}, &said) == PIPEC_FINE &&
               has_code(said, "P0930"));
        pipec_diagnostics_free(said);
        pipec_kernel_free(kernel);
    }
    if (EXPECT(loads(each, 0, &kernel, PIPEC_FINE, NULL))) {
        EXPECT(prepare(kernel, "D", 100, &(Steps){0}, &said) == PIPEC_FINE && said == NULL);
        EXPECT(info_of(kernel).variants_loaded == 1 + SHAPES);
        int loaded = standin->loads;
        PipecArgument arguments[2] = {{.pointer = 1 << 20, .extents = {10, 105}},
                                      {.pointer = UINT64_C(1) << 40, .extents = {10, 105}}};
        PipecLaunch launch = launch_of(arguments, 2);
        EXPECT(launches(kernel, &launch, NULL) && standin->loads == loaded);
        pipec_kernel_free(kernel);
    }
    EXPECT(standin_is_clean(standin));
    pipec_program_free(program);
    pipec_program_free(each);
}

int main(void) {
    Standin *standin = standin_open();
    setenv("PIPEC_PTXAS", "", 1);
    setenv("PIPEC_CACHE", "", 1);
    standin->kernel = look;
    flat(standin);
    captured(standin);
    siblings(standin);
    threads(standin, 0);
    threads(standin, 0.001);
    patience(standin);
    waits(standin);
    fails();
    prepared(standin);
    prepared_too_many(standin);
    return expect_failures();
}
