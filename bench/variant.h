/* A kernel of ours from its name: "FILE.pipe" or "FILE.pipe:BN=128,STAGES=5", compiled in this process and loaded on the device. */
#ifndef BENCH_VARIANT_H
#define BENCH_VARIANT_H

#include "bench/cuda.h"
#include "include/pipec.h"

#define VARIANT_PARAMETERS 8

/* What the benchmark gives for a parameter, found by its name: A[M, K], B[N, K], C[M, N]; scale_a and scale_b, the scales of the two tensors, which are
 * equal here; scale, their product */
typedef enum Given { GIVEN_A, GIVEN_B, GIVEN_C, GIVEN_SCALE, GIVEN_PRODUCT } Given;

typedef struct Variant {
    const char *name; /* as it was asked for */
    char text[512];   /* the same, cut into file and values */
    PipecProgram *program;
    PipecKernel *kernel;
    Given given[VARIANT_PARAMETERS];
    size_t given_count;
    double compile_seconds; /* CPU time from the file to PTX: the median of several */
    double load_seconds;    /* wall clock of loading: what the driver takes from PTX to a cubin, and little more */
    int status;             /* 0: it can be launched; else an exit code, and what is wrong has been printed */
} Variant;

/* `name` must outlive the variant. */
bool variant_compile(Variant *variant, const char *name); /* needs no GPU; false: refused, and said */
void variant_open(Variant *variant, const char *name);

void variant_close(Variant *variant);

typedef struct Operands {
    DevicePointer a, b, c;
    int64_t m, n, k;
    double scale; /* of A, and of B */
} Operands;

/* Launches without waiting; 0, or an exit code: refused for these operands, and said. */
int variant_launch(Variant *variant, const Operands *operands, void *stream);

#endif
