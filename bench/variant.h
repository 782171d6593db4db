/* One of our kernels, named by file and values: "FILE.pipe" or "FILE.pipe:BN=128,STAGES=5",
 * compiled in this process and loaded on the device. */
#ifndef BENCH_VARIANT_H
#define BENCH_VARIANT_H

#include "bench/cuda.h"
#include "include/pipec.h"

#define VARIANT_PARAMETERS 8

/* The value that the benchmark passes for a parameter, by its name: A[M, K], B[N, K], C[M, N];
 * scale_a and scale_b, the (equal) scales of the two tensors; scale, their product */
typedef enum Given { GIVEN_A, GIVEN_B, GIVEN_C, GIVEN_SCALE, GIVEN_PRODUCT } Given;

typedef struct Variant {
    const char *name; /* as given */
    char text[512];   /* split into file and values */
    PipecProgram *program;
    PipecKernel *kernel;
    Given given[VARIANT_PARAMETERS];
    size_t given_count;
    double compile_seconds; /* CPU time from the file to PTX: the median of several */
    /* wall-clock time of loading: mostly the driver's assembly of the PTX */
    double load_seconds;
    /* 0: it can be launched; otherwise an exit code, and the reason was printed */
    int status;
} Variant;

/* Needs no GPU; false: refused, which was reported. `name` must outlive the variant. */
bool variant_compile(Variant *variant, const char *name);
/* Compiles and loads it; sets `status` */
void variant_open(Variant *variant, const char *name);

void variant_close(Variant *variant);

typedef struct Operands {
    DevicePointer a, b, c;
    int64_t m, n, k;
    double scale; /* of A, and of B */
} Operands;

/* Launches without waiting; 0, or an exit code: refused for these operands, which was reported. */
int variant_launch(Variant *variant, const Operands *operands, void *stream);

#endif
