/* A libcublasLt.so.13 that needs no GPU; it computes in the memory of the stand-in driver: C[M,
 * N] = A[M, K] * B[N, K]^T as bench/lt.c requests it. Everything else is refused, as is what the
 * real one refuses. It proposes eight algorithms, of which the third is invalid. It also makes a
 * launch of our kernels compute the same, with the parameters of examples/gemm.pipe and
 * examples/gemm_fp8.pipe, unless PIPEC_STANDIN contains the word `idle`. */
#include "bench/measure.h"
#include "tests/standin/standin.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
enum { FINE = 0, REFUSED = 7, NOT_SUPPORTED = 15 }; /* CUBLAS_STATUS_.. */

typedef struct Description {
    int attributes[64]; /* those of at most four bytes */
    float *scales[2];
} Description;

typedef struct Layout {
    int type;
    uint64_t rows, columns;
    int64_t leading;
} Layout;

typedef struct Result { /* cublasLtMatmulHeuristicResult_t */
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} Result;

static double element(const void *from, int64_t index, bool e4m3) {
    return e4m3 ? measure_from_e4m3(((const uint8_t *)from)[index])
                : measure_from_bf16(((const uint16_t *)from)[index]);
}

static void multiply(const void *a, const void *b, uint16_t *c, int64_t m, int64_t n, int64_t k,
                     bool e4m3, double scale) {
    double *row = malloc((size_t)k * sizeof *row + 1);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t x = 0; x < k; x++) row[x] = scale * element(a, i * k + x, e4m3);
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t x = 0; x < k; x++) sum += row[x] * element(b, j * k + x, e4m3);
            c[i * n + j] = measure_bf16(sum);
        }
    }
    free(row);
}

/* A launch of our kernels: maps of A, B and C, whose first bytes are the address in the stand-in
 * driver; M, K, N; for e4m3 the scales. `blocks` is unused. The number of parameters is known
 * only to the caller, so PIPEC_STANDIN contains `e4m3` for that kernel. */
static void launch(void **parameters, unsigned blocks) {
    (void)blocks;
    uint64_t address[3];
    uint32_t m, k, n;
    float scales[2] = {1, 1};
    bool e4m3 = strstr(getenv("PIPEC_STANDIN"), "e4m3") != NULL;
    for (int i = 0; i < 3; i++) memcpy(&address[i], parameters[i], sizeof *address);
    memcpy(&m, parameters[3], sizeof m);
    memcpy(&k, parameters[4], sizeof k);
    memcpy(&n, parameters[5], sizeof n);
    for (int i = 0; e4m3 && i < 2; i++) memcpy(&scales[i], parameters[6 + i], sizeof *scales);
    multiply((const void *)(uintptr_t)address[0], (const void *)(uintptr_t)address[1],
             (uint16_t *)(uintptr_t)address[2], m, n, k, e4m3,
             (double)scales[0] * (double)scales[1]);
}

EXPORTED int cublasLtCreate(void **handle);
int cublasLtCreate(void **handle) {
    const char *words = getenv("PIPEC_STANDIN");
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    Standin *standin = driver != NULL ? dlsym(driver, "standin") : NULL;
    *handle = standin;
    if (standin == NULL) return REFUSED;
    if (words != NULL && strstr(words, "idle") == NULL) standin->kernel = launch;
    return FINE;
}

EXPORTED size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void) { return 130000; }

EXPORTED const char *cublasLtGetStatusName(int status);
const char *cublasLtGetStatusName(int status) {
    return status == NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_INVALID_VALUE";
}

EXPORTED int cublasLtMatmulDescCreate(void **description, int compute, int type);
int cublasLtMatmulDescCreate(void **description, int compute, int type) {
    *description = calloc(1, sizeof(Description));
    return compute == 68 && type == 0 ? FINE : REFUSED;
}

EXPORTED int cublasLtMatmulDescSetAttribute(void *description, int attribute, const void *value,
                                            size_t bytes);
int cublasLtMatmulDescSetAttribute(void *description, int attribute, const void *value,
                                   size_t bytes) {
    Description *d = description;
    bool scale = attribute == 17 || attribute == 18, fast = attribute == 25;
    if (!scale && !fast && attribute != 3 && attribute != 4) return REFUSED;
    if (bytes != (scale ? 8 : fast ? 1 : 4)) return REFUSED;
    if (scale)
        memcpy(&d->scales[attribute - 17], value, bytes);
    else
        memcpy(&d->attributes[attribute], value, bytes);
    return FINE;
}

EXPORTED int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns,
                                        int64_t leading);
int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns,
                               int64_t leading) {
    Layout *made = calloc(1, sizeof *made);
    *made = (Layout){type, rows, columns, leading};
    *layout = made;
    return FINE;
}

EXPORTED int cublasLtMatmulPreferenceCreate(void **preference);
int cublasLtMatmulPreferenceCreate(void **preference) {
    *preference = NULL;
    return FINE;
}

EXPORTED int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute,
                                                  const void *value, size_t bytes);
int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value,
                                         size_t bytes) {
    (void)preference, (void)value;
    return attribute == 1 && bytes == sizeof(size_t) ? FINE : REFUSED;
}

EXPORTED int cublasLtMatmulAlgoGetHeuristic(void *handle, void *description, void *a, void *b,
                                            void *c, void *d, void *preference, int wanted,
                                            Result *results, int *found);
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *description, void *a, void *b, void *c,
                                   void *d, void *preference, int wanted, Result *results,
                                   int *found) {
    (void)handle, (void)description, (void)a, (void)b, (void)c, (void)d, (void)preference;
    memset(results, 0, (size_t)wanted * sizeof *results);
    for (int i = 0; i < wanted; i++) results[i].state = i == 2 ? NOT_SUPPORTED : FINE;
    *found = wanted;
    return FINE;
}

EXPORTED int cublasLtMatmul(void *handle, void *description, const void *alpha, const void *a,
                            void *layout_a, const void *b, void *layout_b, const void *beta,
                            const void *c, void *layout_c, void *d, void *layout_d,
                            const void *algorithm, void *workspace, size_t workspace_bytes,
                            void *stream);
int cublasLtMatmul(void *handle, void *description, const void *alpha, const void *a,
                   void *layout_a, const void *b, void *layout_b, const void *beta, const void *c,
                   void *layout_c, void *d, void *layout_d, const void *algorithm, void *workspace,
                   size_t workspace_bytes, void *stream) {
    (void)handle, (void)algorithm, (void)workspace, (void)workspace_bytes, (void)stream;
    const Description *how = description;
    const Layout *la = layout_a, *lb = layout_b, *lc = layout_c;
    bool e4m3 = la->type == 28;
    float one, zero;
    memcpy(&one, alpha, sizeof one);
    memcpy(&zero, beta, sizeof zero);
    bool fits = la->rows == lb->rows && lc->rows == la->columns && lc->columns == lb->columns &&
                la->leading == (int64_t)la->rows && lb->leading == (int64_t)lb->rows &&
                lc->leading == (int64_t)lc->rows;
    bool types = lb->type == la->type && (e4m3 || la->type == 14) && lc->type == 14;
    bool scaled = e4m3
                      ? how->scales[0] != NULL && how->scales[1] != NULL && how->attributes[25] == 1
                      : how->scales[0] == NULL;
    if (!fits || !types || !scaled || how->attributes[3] != 1 || how->attributes[4] != 0 ||
        one != 1 || zero != 0 || c != d || layout_c != layout_d)
        return REFUSED;
    /* Column-major: its A is our B */
    multiply(b, a, d, (int64_t)lb->columns, (int64_t)la->columns, (int64_t)la->rows, e4m3,
             e4m3 ? (double)*how->scales[0] * (double)*how->scales[1] : 1);
    return FINE;
}
