/* cuBLASLt, opened by dlopen: C[M, N] = A[M, K] * B[N, K]^T, all row-major, sums in f32, C in
 * bf16. */
#ifndef BENCH_LT_H
#define BENCH_LT_H

#include "bench/cuda.h"

#include <stdbool.h>

#define LT_ALGORITHMS 8
#define LT_WORKSPACE  ((size_t)64 << 20)

typedef struct LtAlgorithm {
    uint64_t data[8];
} LtAlgorithm; /* cublasLtMatmulAlgo_t */

typedef struct LtResult {
    LtAlgorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} LtResult; /* cublasLtMatmulHeuristicResult_t */

#define LT_CALLS(CALL)                                                                             \
    CALL(cublasLtCreate, int, (void **))                                                           \
    CALL(cublasLtGetVersion, size_t, (void))                                                       \
    CALL(cublasLtGetStatusName, const char *, (int))                                               \
    CALL(cublasLtMatmulDescCreate, int, (void **, int, int))                                       \
    CALL(cublasLtMatmulDescSetAttribute, int, (void *, int, const void *, size_t))                 \
    CALL(cublasLtMatrixLayoutCreate, int, (void **, int, uint64_t, uint64_t, int64_t))             \
    CALL(cublasLtMatmulPreferenceCreate, int, (void **))                                           \
    CALL(cublasLtMatmulPreferenceSetAttribute, int, (void *, int, const void *, size_t))           \
    CALL(cublasLtMatmulAlgoGetHeuristic, int,                                                      \
         (void *, void *, void *, void *, void *, void *, void *, int, LtResult *, int *))         \
    CALL(cublasLtMatmul, int,                                                                      \
         (void *, void *, const void *, const void *, void *, const void *, void *, const void *,  \
          const void *, void *, void *, void *, const LtAlgorithm *, void *, size_t, void *))

typedef struct Lt {
#define CALL(name, result, parameters) result(*name) parameters;
    LT_CALLS(CALL)
#undef CALL
    void *handle;
    DevicePointer workspace;
} Lt;

/* One problem and the algorithms that the library proposes for it, in its order of preference */
typedef struct LtProblem {
    void *description, *a, *b, *c; /* layouts */
    LtResult results[LT_ALGORITHMS];
    int found;
} LtProblem;

const char *lt_open(Lt *lt, const Cuda *cuda); /* NULL, or the reason why it is not available */

/* `scale`: device address of the f32 factor of both A and B, for e4m3; otherwise 0, for bf16.
 * Exits with 2 if the library refuses. */
void lt_describe(const Lt *lt, LtProblem *problem, int64_t m, int64_t n, int64_t k,
                 DevicePointer scale);
void lt_launch(const Lt *lt, const LtProblem *problem, int algorithm, DevicePointer a,
               DevicePointer b, DevicePointer c, void *stream);

#endif
