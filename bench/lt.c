/* cuBLASLt is column-major, so it computes C^T = B * A^T: its first operand is our B, its rows
 * are our columns. Constants are those of cublasLt.h, cublas_api.h and library_types.h of CUDA
 * 13.0, unchanged since 11.8; e4m3 needs the first operand transposed and the second not, which
 * is the case for row-major A[M, K] and B[N, K]. */
#include "bench/lt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    COMPUTE_32F = 68, /* CUBLAS_COMPUTE_32F */
    R_32F = 0,        /* CUDA_R_32F, CUDA_R_16BF, CUDA_R_8F_E4M3 */
    R_16BF = 14,
    R_8F_E4M3 = 28,
    OP_N = 0, /* CUBLAS_OP_N, CUBLAS_OP_T */
    OP_T = 1,
    DESC_TRANSA = 3, /* CUBLASLT_MATMUL_DESC_.. */
    DESC_TRANSB = 4,
    DESC_A_SCALE_POINTER = 17,
    DESC_B_SCALE_POINTER = 18,
    DESC_FAST_ACCUM = 25,
    PREF_MAX_WORKSPACE_BYTES = 1, /* CUBLASLT_MATMUL_PREF_.. */
};

static void check(const Lt *lt, int status, const char *what) {
    if (status == 0) return;
    fflush(stdout);
    fprintf(stderr, "bench: %s: %s (%d)\n", what, lt->cublasLtGetStatusName(status), status);
    exit(2);
}

const char *lt_open(Lt *lt, const Cuda *cuda) {
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW);
    if (library == NULL)
        return "libcublasLt.so.13 (or .12) does not load; is it on LD_LIBRARY_PATH?";
#define CALL(name, result, parameters)                                                             \
    *(void **)&lt->name = dlsym(library, #name);                                                   \
    if (lt->name == NULL) return "cuBLASLt has no " #name;
    LT_CALLS(CALL)
#undef CALL
    if (lt->cublasLtCreate(&lt->handle) != 0) return "cublasLtCreate fails";
    cuda_check(cuda, cuda->cuMemAlloc(&lt->workspace, LT_WORKSPACE), "the workspace of cuBLASLt");
    return NULL;
}

static void set(const Lt *lt, void *description, int attribute, const void *value, size_t bytes) {
    check(lt, lt->cublasLtMatmulDescSetAttribute(description, attribute, value, bytes),
          "cublasLtMatmulDescSetAttribute");
}

void lt_describe(const Lt *lt, LtProblem *problem, int64_t m, int64_t n, int64_t k,
                 DevicePointer scale) {
    int transposed = OP_T, plain = OP_N, type = scale != 0 ? R_8F_E4M3 : R_16BF;
    void *preference;
    size_t workspace = LT_WORKSPACE;
    check(lt, lt->cublasLtMatmulDescCreate(&problem->description, COMPUTE_32F, R_32F),
          "cublasLtMatmulDescCreate");
    set(lt, problem->description, DESC_TRANSA, &transposed, sizeof transposed);
    set(lt, problem->description, DESC_TRANSB, &plain, sizeof plain);
    if (scale != 0) {
        int8_t fast = 1;
        set(lt, problem->description, DESC_A_SCALE_POINTER, &scale, sizeof scale);
        set(lt, problem->description, DESC_B_SCALE_POINTER, &scale, sizeof scale);
        set(lt, problem->description, DESC_FAST_ACCUM, &fast, sizeof fast);
    }
    uint64_t rows = (uint64_t)n, columns = (uint64_t)m, depth = (uint64_t)k;
    check(lt, lt->cublasLtMatrixLayoutCreate(&problem->a, type, depth, rows, k),
          "a layout of cuBLASLt");
    check(lt, lt->cublasLtMatrixLayoutCreate(&problem->b, type, depth, columns, k),
          "a layout of cuBLASLt");
    check(lt, lt->cublasLtMatrixLayoutCreate(&problem->c, R_16BF, rows, columns, n),
          "a layout of cuBLASLt");
    check(lt, lt->cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    check(lt,
          lt->cublasLtMatmulPreferenceSetAttribute(preference, PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                   sizeof workspace),
          "cublasLtMatmulPreferenceSetAttribute");
    LtResult results[LT_ALGORITHMS];
    int returned = 0;
    check(lt,
          lt->cublasLtMatmulAlgoGetHeuristic(lt->handle, problem->description, problem->a,
                                             problem->b, problem->c, problem->c, preference,
                                             LT_ALGORITHMS, results, &returned),
          "cublasLtMatmulAlgoGetHeuristic");
    problem->found = 0;
    for (int i = 0; i < returned; i++)
        if (results[i].state == 0) problem->results[problem->found++] = results[i];
    check(lt, problem->found > 0 ? 0 : 15 /* CUBLAS_STATUS_NOT_SUPPORTED */,
          "cuBLASLt proposes no algorithm");
}

void lt_launch(const Lt *lt, const LtProblem *problem, int algorithm, DevicePointer a,
               DevicePointer b, DevicePointer c, void *stream) {
    float one = 1, zero = 0;
    void *to = (void *)(uintptr_t)c;
    check(lt,
          lt->cublasLtMatmul(lt->handle, problem->description, &one, (void *)(uintptr_t)b,
                             problem->a, (void *)(uintptr_t)a, problem->b, &zero, to, problem->c,
                             to, problem->c, &problem->results[algorithm].algorithm,
                             (void *)(uintptr_t)lt->workspace, LT_WORKSPACE, stream),
          "cublasLtMatmul");
}
