/* Launches of a kernel whose variant or statics are open: each takes a variant in whose domain its
 * arguments are, the same arguments take the same one, and a launch that was seen allocates
 * nothing. */
#include "lib/serve.h"
#include "tests/unit/kernels.h"

#include <pthread.h>
#include <time.h>

static const char text[] =
    "kernel copy(X: f32[N], out Y: f32[N]) for sm_90a {\n"
    "    variant short {\n"
    "        requires N <= 1000;\n"
    "        static T = 64 in {64, 128};\n"
    "        grid (t: ceil(N, T));\n"
    "        role all: 4 warps { for t in grid { Y[t*T + i] = X[t*T + i] for i in 0 .. T; } }\n"
    "    }\n"
    "    variant long {\n"
    "        requires N > 500 && N % 2 == 0;\n"
    "        grid persistent (t: ceil(N, 1024));\n"
    "        pipe p[4] load -> store { x: f32[1024]; }\n"
    "        role load: 1 warp { for t in grid { produce <p> as s { s.x[i] = X[t*1024 + i]; } } }\n"
    "        role store: 1 warp { for t in grid { consume <p> as s { Y[t*1024 + i] = s.x[i]; } } "
    "}\n"
    "    }\n"
    "}\n";

/* Blocks of the last launch of this thread; those of `long` are at most the four multiprocessors */
static _Thread_local unsigned launched;
static void look(void **parameters, unsigned blocks) {
    (void)parameters;
    launched = blocks;
}

static PipecProgram *compile_open(const char *source, bool untuned) {
    PipecOptions options = {.size = sizeof options, .any_variant = true, .untuned = untuned};
    PipecProgram *program = pipec_compile(source, strlen(source), &options);
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    return program;
}

static bool launch_for(PipecKernel *kernel, int64_t n, int multiprocessors, const char *code) {
    PipecArgument arguments[2] = {{.pointer = 1 << 20, .extents = {n}},
                                  {.pointer = UINT64_C(1) << 40, .extents = {n}}};
    PipecLaunch launch = launch_of(arguments, 2);
    launch.multiprocessors = multiprocessors;
    launched = 0;
    return launches(kernel, &launch, code);
}

/* True: a variant ran in whose domain n is */
static bool is_in_domain(int64_t n) {
    unsigned tiles = (unsigned)((n + 1023) / 1024);
    bool is_long = launched == (tiles < 4 ? tiles : 4) && n > 500 && n % 2 == 0;
    bool is_short = n <= 1000 && (launched == (n + 63) / 64 || launched == (n + 127) / 128);
    return is_long || is_short;
}

static void domains(PipecKernel *kernel) {
    for (int round = 0; round < 2; round++)
        for (int64_t n = 1; n <= 9000; n++) { /* more than the table holds */
            bool covered = n <= 1000 || n % 2 == 0;
            EXPECT(launch_for(kernel, n, 0, covered ? NULL : "P0608"));
            if (covered) EXPECT(is_in_domain(n));
        }
    /* a limit of multiprocessors: the persistent grid only */
    EXPECT(launch_for(kernel, 900, 2, NULL) && launched == 1);
    EXPECT(launch_for(kernel, 9000, 2, NULL) && launched == 2);
    EXPECT(launch_for(kernel, 9000, 0, NULL) && launched == 4);
    EXPECT(launch_for(kernel, 100, 2, "P0918"));
    EXPECT(launch_for(kernel, 100, -1, "P0918"));
}

/* What gains: short launches, and of those that leave some SMs free only the shortest */
static void early_gains(void) {
    static const struct {
        double seconds;
        int64_t blocks;
        bool early;
    } rows[] = {{0, 132, false},    {14e-6, 66, true},  {14e-6, 67, false}, {6e-6, 67, true},
                {8e-6, 109, false}, {14e-6, 110, true}, {14e-6, 132, true}, {16e-6, 132, false},
                {14e-6, 900, true}, {14e-6, 0, true}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        Prediction launch = {.seconds = rows[i].seconds, .blocks = rows[i].blocks};
        EXPECT(starts_early(&launch, 132) == rows[i].early);
    }
}

/* A short launch starts early, unless the caller forbids it; one that is not chosen does not. */
static void early_starts(PipecKernel *chosen, PipecKernel *fixed, const Standin *standin) {
    PipecArgument arguments[2] = {{.pointer = 1 << 20, .extents = {900}},
                                  {.pointer = UINT64_C(1) << 40, .extents = {900}}};
    PipecLaunch launch = launch_of(arguments, 2);
    for (int again = 0; again < 2; again++)
        EXPECT(launches(chosen, &launch, NULL) && standin->programmatic);
    launch.ordered = 1;
    EXPECT(launches(chosen, &launch, NULL) && !standin->programmatic);
    launch.programmatic = true;
    EXPECT(launches(chosen, &launch, NULL) && standin->programmatic);
    launch = launch_of(arguments, 2);
    EXPECT(launches(fixed, &launch, NULL) && !standin->programmatic);
    arguments[0].extents[0] = arguments[1].extents[0] = 1 << 25; /* 128 MiB each */
    EXPECT(launches(chosen, &launch, NULL) && !standin->programmatic);
}

static void alignments(PipecKernel *kernel) {
    PipecArgument arguments[2] = {{.pointer = (1 << 20) + 4, .extents = {800}},
                                  {.pointer = UINT64_C(1) << 40, .extents = {800}}};
    PipecLaunch launch = launch_of(arguments, 2);
    EXPECT(launches(kernel, &launch, NULL) && launched > 1); /* no tensor map takes this address */
    arguments[0].extents[0] = arguments[1].extents[0] = 2000;
    EXPECT(launches(kernel, &launch, "P0608") || launches(kernel, &launch, "P0620"));
    arguments[1].extents[0] = 1999;
    EXPECT(launches(kernel, &launch, "P0604"));
}

typedef struct Worker {
    pthread_t thread;
    PipecKernel *kernel;
    int wrong;
} Worker;

static void *launch_many(void *data) {
    Worker *worker = data;
    for (int64_t i = 0; i < 4000; i++) {
        int64_t n = 2 * (1 + i * 7919 % 3000);
        worker->wrong += !launch_for(worker->kernel, n, 0, NULL) || !is_in_domain(n);
    }
    return NULL;
}

static void threads(void) {
    PipecProgram *program = compile_open(text, false);
    PipecKernel *kernel;
    Worker workers[8];
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        for (size_t i = 0; i < 8; i++) {
            workers[i] = (Worker){.kernel = kernel};
            pthread_create(&workers[i].thread, NULL, launch_many, &workers[i]);
        }
        for (size_t i = 0; i < 8; i++) {
            pthread_join(workers[i].thread, NULL);
            EXPECT(workers[i].wrong == 0);
        }
        pipec_kernel_free(kernel);
    }
    pipec_program_free(program);
}

/* The program itself, whatever is faster */
static void untuned(void) {
    PipecProgram *program = compile_open(text, true);
    PipecKernel *kernel;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        EXPECT(launch_for(kernel, 900, 0, NULL) && launched == 15);
        EXPECT(launch_for(kernel, 2000, 0, "P0608"));
        pipec_kernel_free(kernel);
    }
    pipec_program_free(program);
}

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* With an argument: what the choice costs a launch, and a new shape */
static void costs(PipecKernel *kernel, PipecKernel *fixed) {
    double spent[2] = {1, 1};
    for (int round = 0; round < 20; round++)
        for (int k = 0; k < 2; k++) {
            double begin = seconds();
            for (int i = 0; i < 10000; i++) launch_for(k == 0 ? kernel : fixed, 900, 0, NULL);
            double each = (seconds() - begin) / 10000;
            if (each < spent[k]) spent[k] = each;
        }
    double begin = seconds();
    for (int64_t n = 1; n <= 1000; n++) launch_for(kernel, n, 0, NULL);
    double shape = (seconds() - begin) / 1000;
    printf("a launch: %.0f ns, %.0f ns without a choice; a new shape: %.1f us\n", spent[0] * 1e9,
           spent[1] * 1e9, shape * 1e6);
}

int main(int argc, char **argv) {
    Standin *standin = standin_open();
    (void)argv;
    setenv("PIPEC_PTXAS", "", 1);
    setenv("PIPEC_CACHE", "", 1);
    standin->kernel = look;
    early_gains();
    PipecProgram *program = compile_open(text, false), *fixed = compile_open(text, true);
    PipecKernel *kernel, *other;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL) &&
               loads(fixed, 0, &other, PIPEC_FINE, NULL))) {
        if (argc > 1) costs(kernel, other);
        domains(kernel);
        alignments(kernel);
        early_starts(kernel, other, standin);
        pipec_kernel_free(kernel);
        pipec_kernel_free(other);
    }
    pipec_program_free(program);
    pipec_program_free(fixed);
    threads();
    untuned();
    EXPECT(standin_is_clean(standin));
    return expect_failures();
}
