/* GEMM beside cuBLASLt, in one process, interleaved: C[M, N] = A[M, K] * B[N, K]^T, bf16, f32 sums.
 *
 *   bench/gemm FILE.pipe [ROUNDS] [MxNxK ..]      default 5 rounds of the shapes of the table below
 *
 * Peers: the first algorithm that cublasLtMatmulAlgoGetHeuristic names, and the best of its first 8 by trial. Data is random normal; buffers rotate past L2.
 * Burst: 10 launches between two events after a pause of 50 ms. Each round measures everybody once, in turn; what is printed is the median, and the
 * ratio of medians to the best peer. The limit is 4096 FLOP a clock on each of 132 SMs at the clock that was read. */
#include "bench/cuda.h"
#include "bench/measure.h"
#include "include/pipec.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BURST 10
#define MAX_ROUNDS 99
#define SETS 4
#define ALGORITHMS 8
#define WORKSPACE ((size_t)64 << 20)

/* ---- cuBLASLt, by dlopen: the few entry points and constants used (cublasLt.h) ------------------------------------- */

typedef struct { uint64_t data[8]; } LtAlgorithm;
typedef struct { LtAlgorithm algo; size_t workspace; int state; float waves; int reserved[4]; } LtResult;
enum { LT_COMPUTE_32F = 68, LT_R_32F = 0, LT_R_16BF = 14, LT_TRANSA = 3, LT_TRANSB = 4, LT_WORKSPACE = 1, LT_OP_T = 1, LT_OP_N = 0 };

#define LT_CALLS(CALL)                                                                  \
    CALL(cublasLtCreate, (void **))                                                     \
    CALL(cublasLtMatmulDescCreate, (void **, int, int))                                 \
    CALL(cublasLtMatmulDescSetAttribute, (void *, int, const void *, size_t))           \
    CALL(cublasLtMatrixLayoutCreate, (void **, int, uint64_t, uint64_t, int64_t))       \
    CALL(cublasLtMatmulPreferenceCreate, (void **))                                     \
    CALL(cublasLtMatmulPreferenceSetAttribute, (void *, int, const void *, size_t))     \
    CALL(cublasLtMatmulAlgoGetHeuristic, (void *, void *, void *, void *, void *, void *, void *, int, LtResult *, int *)) \
    CALL(cublasLtMatmul, (void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *, \
                          void *, void *, void *, const LtAlgorithm *, void *, size_t, void *))

typedef struct Lt {
#define CALL(name, parameters) int(*name) parameters;
    LT_CALLS(CALL)
#undef CALL
    void *handle;
} Lt;

typedef struct Shape { int64_t m, n, k; } Shape;

typedef struct Bench {
    Cuda cuda;
    Lt lt;
    void *stream, *start, *end;
    DevicePointer a[SETS], b[SETS], c[SETS], workspace;
    PipecKernel *kernel;
    int next; /* of the rotating sets */
} Bench;

typedef struct Problem {
    Shape shape;
    void *desc, *la, *lb, *lc;
    LtResult results[ALGORITHMS];
    int found, best;
} Problem;

static void open_lt(Lt *lt) {
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
    void *library = NULL;
    for (size_t i = 0; i < 3 && library == NULL; i++) library = dlopen(names[i], RTLD_NOW);
    if (library == NULL) { fprintf(stderr, "bench: libcublasLt does not load\n"); exit(2); }
#define CALL(name, parameters)                     \
    *(void **)&lt->name = dlsym(library, #name);   \
    if (lt->name == NULL) { fprintf(stderr, "bench: no " #name "\n"); exit(2); }
    LT_CALLS(CALL)
#undef CALL
    measure_check(lt->cublasLtCreate(&lt->handle), "cublasLtCreate");
}

/* ---- data ----------------------------------------------------------------------------------------------------------- */

static uint16_t normal_bf16(uint64_t *state) {
    float value = (float)measure_normal(state);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double widen(uint16_t value) {
    uint32_t bits = (uint32_t)value << 16;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

#define NOISE (1u << 22)
static uint16_t noise[NOISE];

static void fill(Bench *bench, DevicePointer to, int64_t elements, size_t from) {
    for (int64_t done = 0; done < elements;) {
        int64_t count = (int64_t)(NOISE - from) < elements - done ? (int64_t)(NOISE - from) : elements - done;
        measure_check(bench->cuda.cuMemcpyHtoD(to + (uint64_t)done * 2, noise + from, (size_t)count * 2), "a copy to the device");
        done += count;
        from = 0;
    }
}

/* ---- who runs -------------------------------------------------------------------------------------------------------- */

static void launch_ours(Bench *bench, const Problem *problem, int set) {
    const Shape *s = &problem->shape;
    PipecArgument arguments[3] = {{.pointer = bench->a[set], .extents = {s->m, s->k}},
                                  {.pointer = bench->b[set], .extents = {s->n, s->k}},
                                  {.pointer = bench->c[set], .extents = {s->m, s->n}}};
    if (pipec_kernel_launch(bench->kernel, arguments, 3, bench->stream) == PIPEC_FINE) return;
    fputs(pipec_diagnostics_text(pipec_kernel_diagnostics(bench->kernel)), stderr);
    exit(1);
}

static void launch_lt(Bench *bench, const Problem *problem, int algorithm, int set) {
    float one = 1, zero = 0;
    void *c = (void *)(uintptr_t)bench->c[set];
    measure_check(bench->lt.cublasLtMatmul(bench->lt.handle, problem->desc, &one, (void *)(uintptr_t)bench->b[set], problem->la,
                                   (void *)(uintptr_t)bench->a[set], problem->lb, &zero, c, problem->lc, c, problem->lc,
                                   &problem->results[algorithm].algo, (void *)(uintptr_t)bench->workspace, WORKSPACE, bench->stream),
          "cublasLtMatmul");
}

/* who: -1 ours, else an algorithm of cuBLASLt. Seconds of one launch in a burst. */
static double burst(Bench *bench, const Problem *problem, int who) {
    float milliseconds;
    usleep(50000);
    measure_check(bench->cuda.cuEventRecord(bench->start, bench->stream), "an event");
    for (int i = 0; i < BURST; i++) {
        int set = bench->next++ % SETS;
        if (who < 0) launch_ours(bench, problem, set);
        else launch_lt(bench, problem, who, set);
    }
    measure_check(bench->cuda.cuEventRecord(bench->end, bench->stream), "an event");
    measure_check(bench->cuda.cuEventSynchronize(bench->end), who < 0 ? "our kernel" : "cuBLASLt");
    measure_check(bench->cuda.cuEventElapsedTime(&milliseconds, bench->start, bench->end), "an event");
    return milliseconds * 1e-3 / BURST;
}

/* C^T (N x M, column-major) = B^T A with B and A as column-major K x N and K x M. */
static void describe(Bench *bench, Problem *problem) {
    const Shape *s = &problem->shape;
    Lt *lt = &bench->lt;
    void *preference;
    int32_t t = LT_OP_T, n = LT_OP_N;
    size_t workspace = WORKSPACE;
    measure_check(lt->cublasLtMatmulDescCreate(&problem->desc, LT_COMPUTE_32F, LT_R_32F), "a matmul descriptor");
    measure_check(lt->cublasLtMatmulDescSetAttribute(problem->desc, LT_TRANSA, &t, sizeof t), "an attribute");
    measure_check(lt->cublasLtMatmulDescSetAttribute(problem->desc, LT_TRANSB, &n, sizeof n), "an attribute");
    measure_check(lt->cublasLtMatrixLayoutCreate(&problem->la, LT_R_16BF, (uint64_t)s->k, (uint64_t)s->n, s->k), "a layout");
    measure_check(lt->cublasLtMatrixLayoutCreate(&problem->lb, LT_R_16BF, (uint64_t)s->k, (uint64_t)s->m, s->k), "a layout");
    measure_check(lt->cublasLtMatrixLayoutCreate(&problem->lc, LT_R_16BF, (uint64_t)s->n, (uint64_t)s->m, s->n), "a layout");
    measure_check(lt->cublasLtMatmulPreferenceCreate(&preference), "a preference");
    measure_check(lt->cublasLtMatmulPreferenceSetAttribute(preference, LT_WORKSPACE, &workspace, sizeof workspace), "an attribute");
    measure_check(lt->cublasLtMatmulAlgoGetHeuristic(lt->handle, problem->desc, problem->la, problem->lb, problem->lc, problem->lc, preference,
                                             ALGORITHMS, problem->results, &problem->found), "the heuristic");
    double least = INFINITY;
    for (int i = 0; i < problem->found; i++) {
        burst(bench, problem, i);
        double seconds = burst(bench, problem, i);
        if (seconds < least) least = seconds, problem->best = i;
    }
}

/* ---- right first ------------------------------------------------------------------------------------------------------ */

static bool right(Bench *bench, const Problem *problem) {
    const Shape *s = &problem->shape;
    uint16_t *row = malloc((size_t)s->n * 2);
    bool fine = row != NULL;
    uint64_t state = 7;
    for (int sample = 0; sample < 24 && fine; sample++) {
        int64_t m = sample == 0 ? 0 : sample == 1 ? s->m - 1 : (int64_t)(measure_uniform(&state) * (double)s->m) % s->m;
        measure_check(bench->cuda.cuMemcpyDtoH(row, bench->c[0] + (uint64_t)(m * s->n) * 2, (size_t)s->n * 2), "a copy from the device");
        for (int64_t j = 0; j < s->n && fine; j += j + 97 < s->n ? 97 : 1) {
            double sum = 0;
            for (int64_t k = 0; k < s->k; k++) sum += widen(noise[(m * s->k + k) % NOISE]) * widen(noise[(12345 + j * s->k + k) % NOISE]);
            fine = fabs(widen(row[j]) - sum) <= 1e-2 * (fabs(sum) + sqrt((double)s->k));
            if (!fine) fprintf(stderr, "bench: C[%lld, %lld] is %g, not %g\n", (long long)m, (long long)j, widen(row[j]), sum);
        }
    }
    free(row);
    return fine;
}

/* ---- the contest ------------------------------------------------------------------------------------------------------ */

static void contest(Bench *bench, const Shape *shape, int rounds) {
    Problem problem = {.shape = *shape};
    static double ours[MAX_ROUNDS], heuristic[MAX_ROUNDS], best[MAX_ROUNDS];
    for (int i = 0; i < SETS; i++) {
        measure_check(bench->cuda.cuMemAlloc(&bench->a[i], (size_t)(shape->m * shape->k) * 2), "device memory");
        measure_check(bench->cuda.cuMemAlloc(&bench->b[i], (size_t)(shape->n * shape->k) * 2), "device memory");
        measure_check(bench->cuda.cuMemAlloc(&bench->c[i], (size_t)(shape->m * shape->n) * 2), "device memory");
        fill(bench, bench->a[i], shape->m * shape->k, 0);
        fill(bench, bench->b[i], shape->n * shape->k, 12345);
    }
    launch_ours(bench, &problem, 0);
    measure_check(bench->cuda.cuStreamSynchronize(bench->stream), "our kernel");
    bool fine = right(bench, &problem);
    describe(bench, &problem);
    for (int r = 0; r < rounds; r++) {
        ours[r] = burst(bench, &problem, -1);
        heuristic[r] = burst(bench, &problem, 0);
        best[r] = burst(bench, &problem, problem.best);
    }
    double flop = 2.0 * (double)shape->m * (double)shape->n * (double)shape->k * 1e-12;
    double o = measure_median(ours, rounds), h = measure_median(heuristic, rounds), p = measure_median(best, rounds);
    printf("%6lldx%6lldx%6lld %9.1f %9.1f %9.1f %8.3f %s\n", (long long)shape->m, (long long)shape->n, (long long)shape->k, flop / o, flop / h,
           flop / p, p / o, fine ? "right" : "WRONG");
    fflush(stdout);
    for (int i = 0; i < SETS; i++) {
        bench->cuda.cuMemFree(bench->a[i]);
        bench->cuda.cuMemFree(bench->b[i]);
        bench->cuda.cuMemFree(bench->c[i]);
    }
}

int main(int argc, char **argv) {
    static const Shape table[] = {{8192, 8192, 8192}, {4096, 4096, 4096}, {2048, 2048, 2048}, {8192, 8192, 1024},
                                  {4096, 14336, 4096}, {4096, 4096, 14336}, {512, 4096, 4096}};
    Bench bench = {0};
    const char *lack = cuda_open(&bench.cuda);
    if (lack != NULL || argc < 2) {
        fprintf(stderr, lack != NULL ? "bench: needs a GPU: %s\n" : "usage: gemm FILE.pipe [ROUNDS] [MxNxK ..]\n", lack);
        return 2;
    }
    int rounds = argc > 2 ? atoi(argv[2]) : 5;
    if (rounds < 1 || rounds > MAX_ROUNDS) rounds = 5;
    open_lt(&bench.lt);
    measure_check(bench.cuda.cuStreamCreate(&bench.stream, 0), "a stream");
    measure_check(bench.cuda.cuEventCreate(&bench.start, 0), "an event");
    measure_check(bench.cuda.cuEventCreate(&bench.end, 0), "an event");
    measure_check(bench.cuda.cuMemAlloc(&bench.workspace, WORKSPACE), "device memory");
    uint64_t state = 20240607;
    for (size_t i = 0; i < NOISE; i++) noise[i] = normal_bf16(&state);
    PipecProgram *program = pipec_compile_file(argv[1], NULL);
    if (program == NULL || pipec_program_status(program) != PIPEC_FINE) {
        fputs(program != NULL ? pipec_diagnostics_text(pipec_program_diagnostics(program)) : "no memory\n", stderr);
        return 1;
    }
    bench.kernel = pipec_kernel_load(program, 0);
    if (bench.kernel == NULL || pipec_kernel_status(bench.kernel) != PIPEC_FINE) {
        fputs(bench.kernel != NULL ? pipec_diagnostics_text(pipec_kernel_diagnostics(bench.kernel)) : "no memory\n", stderr);
        return 2;
    }
    printf("%s, bursts of %d, TFLOP/s, medians of %d\n%-20s %9s %9s %9s %8s\n", pipec_kernel_device(bench.kernel), BURST, rounds, "MxNxK", "ours",
           "cuBLASLt", "best of 8", "ratio");
    for (size_t i = 0; argc <= 3 && i < sizeof table / sizeof *table; i++) contest(&bench, &table[i], rounds);
    for (int i = 3; i < argc; i++) {
        long long m, n, k;
        if (sscanf(argv[i], "%lldx%lldx%lld", &m, &n, &k) == 3) contest(&bench, &(Shape){m, n, k}, rounds);
    }
    return 0;
}
