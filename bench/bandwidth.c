/* Compares memory-bound kernels with cuMemcpyDtoD in one process, interleaved: bytes per second
 * of each, and the ratio to the copy.
 *
 *   bench/bandwidth [LOG2N] [ROUNDS]      default 28 and 15
 *
 * Each round times the copy and every kernel once, REPEAT launches between two events; prints
 * the median over the rounds. Data is random normal. Before the timing, each kernel's result is
 * compared with the host's on a sample. */
#include "bench/cuda.h"
#include "bench/measure.h"
#include "include/pipec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPEAT     5
#define MAX_ROUNDS 99
#define BLOCK      (1u << 22) /* elements of random data, repeated */

typedef struct Bench {
    Cuda cuda;
    void *stream, *start, *end;
    int64_t n;
    DevicePointer x, y, z; /* n elements each: f32, f32, bf16 */
    float *block;          /* BLOCK normal values, the content of x and y, repeated */
} Bench;

typedef struct Contest {
    const char *name;
    double bytes; /* read plus written by one launch */
    PipecProgram *program;
    PipecKernel *kernel; /* NULL: the copy */
    PipecArgument arguments[4];
    size_t argument_count;
    bool (*right)(Bench *, const struct Contest *);
    double seconds[MAX_ROUNDS];
} Contest;

static void fill(Bench *bench, DevicePointer to) {
    for (int64_t done = 0; done < bench->n; done += BLOCK) {
        int64_t count = bench->n - done < BLOCK ? bench->n - done : BLOCK;
        cuda_check(
            &bench->cuda,
            bench->cuda.cuMemcpyHtoD(to + (uint64_t)done * 4, bench->block, (size_t)count * 4),
            "a copy to the device");
    }
}

static void launch(Bench *bench, Contest *contest) {
    if (contest->kernel == NULL) {
        size_t bytes = (size_t)(contest->bytes / 2);
        cuda_check(&bench->cuda,
                   bench->cuda.cuMemcpyDtoDAsync(bench->y, bench->x, bytes, bench->stream),
                   "cuMemcpyDtoD");
        return;
    }
    PipecLaunch launch = {.size = sizeof launch,
                          .argument_size = sizeof *contest->arguments,
                          .arguments = contest->arguments,
                          .count = contest->argument_count,
                          .stream = bench->stream,
                          .programmatic = true};
    PipecDiagnostics *diagnostics;
    if (pipec_kernel_launch(contest->kernel, &launch, &diagnostics) == PIPEC_FINE) return;
    fputs(pipec_diagnostics_text(diagnostics), stderr);
    exit(1);
}

static double time_once(Bench *bench, Contest *contest) {
    float milliseconds;
    cuda_check(&bench->cuda, bench->cuda.cuEventRecord(bench->start, bench->stream), "an event");
    for (int i = 0; i < REPEAT; i++) launch(bench, contest);
    cuda_check(&bench->cuda, bench->cuda.cuEventRecord(bench->end, bench->stream), "an event");
    cuda_check(&bench->cuda, bench->cuda.cuEventSynchronize(bench->end), contest->name);
    cuda_check(&bench->cuda,
               bench->cuda.cuEventElapsedTime(&milliseconds, bench->start, bench->end), "an event");
    return milliseconds * 1e-3 / REPEAT;
}

/* ---- verification ---------------------------------------------------------------------------- */

#define SAMPLE 4096

static bool axpy_right(Bench *bench, const Contest *contest) {
    float got[SAMPLE];
    for (int64_t at = 0; at + SAMPLE <= bench->n; at += bench->n / 61) {
        cuda_check(&bench->cuda,
                   bench->cuda.cuMemcpyDtoH(got, bench->y + (uint64_t)at * 4, sizeof got),
                   "a copy from the device");
        for (int64_t i = 0; i < SAMPLE; i++) {
            double x = bench->block[(at + i) % BLOCK], want = contest->arguments[2].number * x + x;
            if (!(fabs(got[i] - want) <= 1e-6 * (fabs(want) + 1))) return false;
        }
    }
    return true;
}

static bool cast_right(Bench *bench, const Contest *contest) {
    uint16_t got[SAMPLE];
    (void)contest;
    for (int64_t at = 0; at + SAMPLE <= bench->n; at += bench->n / 61) {
        cuda_check(&bench->cuda,
                   bench->cuda.cuMemcpyDtoH(got, bench->z + (uint64_t)at * 2, sizeof got),
                   "a copy from the device");
        for (int64_t i = 0; i < SAMPLE; i++) {
            uint32_t bits = (uint32_t)got[i] << 16;
            float back, x = bench->block[(at + i) % BLOCK];
            memcpy(&back, &bits, sizeof back);
            if (!(fabsf(back - x) <= 0x1p-8f * fabsf(x))) return false;
        }
    }
    return true;
}

/* ---- measurement ----------------------------------------------------------------------------- */

static void load(Contest *contest, const char *path) {
    contest->program = pipec_compile_file(path, NULL);
    if (contest->program == NULL || pipec_program_status(contest->program) != PIPEC_FINE) {
        fputs(contest->program != NULL
                  ? pipec_diagnostics_text(pipec_program_diagnostics(contest->program))
                  : "no memory\n",
              stderr);
        exit(1);
    }
    PipecDiagnostics *diagnostics;
    if (pipec_kernel_load(contest->program, 0, &contest->kernel, &diagnostics) != PIPEC_FINE) {
        fputs(pipec_diagnostics_text(diagnostics), stderr);
        exit(2);
    }
    pipec_diagnostics_free(diagnostics);
}

static void open_bench(Bench *bench) {
    cuda_need(&bench->cuda);
    cuda_check(&bench->cuda, bench->cuda.cuStreamCreate(&bench->stream, 0), "a stream");
    cuda_check(&bench->cuda, bench->cuda.cuEventCreate(&bench->start, 0), "an event");
    cuda_check(&bench->cuda, bench->cuda.cuEventCreate(&bench->end, 0), "an event");
    cuda_check(&bench->cuda, bench->cuda.cuMemAlloc(&bench->x, (size_t)bench->n * 4),
               "device memory");
    cuda_check(&bench->cuda, bench->cuda.cuMemAlloc(&bench->y, (size_t)bench->n * 4),
               "device memory");
    cuda_check(&bench->cuda, bench->cuda.cuMemAlloc(&bench->z, (size_t)bench->n * 2),
               "device memory");
    bench->block = malloc(BLOCK * sizeof(float));
    if (bench->block == NULL) exit(2);
    uint64_t state = 20240607;
    for (size_t i = 0; i < BLOCK; i++) bench->block[i] = (float)measure_normal(&state);
}

int main(int argc, char **argv) {
    Bench bench = {.n = (int64_t)1 << (argc > 1 ? atoi(argv[1]) : 28)};
    int rounds = argc > 2 ? atoi(argv[2]) : 15;
    if (rounds < 1 || rounds > MAX_ROUNDS) rounds = 15;
    open_bench(&bench);
    PipecArgument x = {.pointer = bench.x, .extents = {bench.n}},
                  y = {.pointer = bench.y, .extents = {bench.n}};
    PipecArgument z = {.pointer = bench.z, .extents = {bench.n}}, a = {.number = 2.5};
    double n = (double)bench.n;
    static Contest contests[3];
    contests[0] = (Contest){.name = "cuMemcpyDtoD", .bytes = 8 * n};
    contests[1] = (Contest){.name = "axpy",
                            .bytes = 12 * n,
                            .arguments = {x, y, a},
                            .argument_count = 3,
                            .right = axpy_right};
    contests[2] = (Contest){.name = "cast",
                            .bytes = 6 * n,
                            .arguments = {x, z},
                            .argument_count = 2,
                            .right = cast_right};
    load(&contests[1], "examples/axpy.pipe");
    load(&contests[2], "examples/cast.pipe");
    for (int c = 1; c < 3; c++) {
        fill(&bench, bench.x);
        fill(&bench, bench.y);
        launch(&bench, &contests[c]);
        cuda_check(&bench.cuda, bench.cuda.cuStreamSynchronize(bench.stream), contests[c].name);
        if (contests[c].right(&bench, &contests[c])) continue;
        fprintf(stderr, "bench: %s: wrong result\n", contests[c].name);
        return 1;
    }
    for (int c = 0; c < 3; c++) time_once(&bench, &contests[c]); /* warm-up */
    for (int r = 0; r < rounds; r++)
        for (int c = 0; c < 3; c++) contests[c].seconds[r] = time_once(&bench, &contests[c]);
    PipecKernelInfo info = {.size = sizeof info};
    pipec_kernel_info(contests[1].kernel, &info);
    printf("%s, N = %lld, %d rounds of %d launches, medians\n", info.device, (long long)bench.n,
           rounds, REPEAT);
    printf("%-14s %10s %10s %10s %10s\n", "", "us", "GB/s", "vs copy", "spread");
    double copy = 0;
    for (int c = 0; c < 3; c++) {
        double median = measure_median(contests[c].seconds, rounds),
               rate = contests[c].bytes / median;
        if (c == 0) copy = rate;
        printf("%-14s %10.1f %10.1f %9.1f%% %9.1f%%\n", contests[c].name, median * 1e6, rate * 1e-9,
               100 * rate / copy,
               100 * (contests[c].seconds[rounds - 1] - contests[c].seconds[0]) / median);
    }
    return 0;
}
