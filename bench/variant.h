/* One of our kernels, named by file and values: "FILE.pipe" or "FILE.pipe:BN=128,STAGES=5",
 * compiled in this process and loaded on the device. */
#ifndef BENCH_VARIANT_H
#define BENCH_VARIANT_H

#include "bench/cuda.h"
#include "include/pipec.h"

#define VARIANT_PARAMETERS 8

typedef struct Variant {
    const char *name; /* as given */
    char text[512];   /* split into file and values */
    PipecProgram *program;
    PipecKernel *kernel;
    /* for each parameter, the index of its name among the known ones */
    size_t given[VARIANT_PARAMETERS];
    size_t given_count;
    double compile_seconds; /* CPU time from the file to PTX: the median of several */
    /* wall-clock time of loading: mostly the driver's assembly of the PTX */
    double load_seconds;
    /* 0: it can be launched; otherwise an exit code, and the reason was printed */
    int status;
} Variant;

/* Needs no GPU; false: refused, which was reported. `known`: names that its parameters may have,
 * ended by NULL. `name` must outlive the variant. */
bool variant_compile(Variant *variant, const char *name, const char *const *known);
/* Compiles and loads it; sets `status` */
void variant_open(Variant *variant, const char *name, const char *const *known);

void variant_close(Variant *variant);

/* Launches without waiting, so that it may start while the launch before it ends; `values` has one
 * value per known name, in their order. 0, or an exit code: refused for these values, which was
 * reported. */
int variant_launch(Variant *variant, const PipecArgument *values, void *stream);

#endif
