/* One row of memory-bound kernels: ours and the limit kernels (bench/limits.ptx) on the same data
 * and stream, in turn.
 *
 * Data is random normal; buffer sets rotate and are together at least three times the size of
 * L2. Before its first measurement, each of our kernels writes to a Y full of NaNs, of which
 * some rows are compared with sums in f64 on the host. A burst is TRAFFIC_BURST launches of the
 * kernel, or of a graph of its launches, between two events after a pause. */
#ifndef BENCH_TRAFFIC_H
#define BENCH_TRAFFIC_H

#include "bench/cuda.h"
#include "bench/variant.h"

#define TRAFFIC_BURST  10
#define TRAFFIC_ROUNDS 99
#define TRAFFIC_SETS   64
#define VARIANTS       16 /* most kernels of ours that are measured together */
#define LIMITS         3  /* block sizes that are tried for a limit kernel */

typedef enum Operation {
    AXPY,
    CAST,
    SOFTMAX,
    RMSNORM,
    LAYERNORM,
    ROWSUM,
    COLSUM,
    CROSS_ENTROPY,
    TRANSPOSE
} Operation;

typedef struct MemoryRow {
    const char *name;
    Operation operation;
    int64_t m, d;
    int graph; /* launches per graph; 1: no graph */
    const char *kernel;
} MemoryRow;

typedef struct Traffic {
    Cuda cuda;
    void *stream, *start, *end;
    void *limits;   /* the module */
    float *f32;     /* normal values */
    uint16_t *bf16; /* the same, rounded */
    double pause;   /* seconds before a burst */
} Traffic;

/* Our kernel, or the limit kernel with one block size */
typedef struct Contender {
    char name[80];
    Variant *variant; /* NULL: the limit kernel */
    void *function;   /* of the limit kernel */
    unsigned threads; /* of its blocks */
    void *graph;      /* NULL: plain launches */
    double seconds[TRAFFIC_ROUNDS];
    int status; /* 0, or an exit code; reported */
} Contender;

typedef struct RowRun {
    Traffic *traffic;
    MemoryRow row;
    int sets, next; /* rotating buffers */
    DevicePointer x[TRAFFIC_SETS], y[TRAFFIC_SETS], g, b, labels;
    Variant variants[VARIANTS];
    Contender contenders[VARIANTS + LIMITS]; /* ours first */
    int ours, count;
} RowRun;

/* Parameters that our kernels may have: X[M, D], Y, weights G[D] and biases B[D], labels L[M],
 * a and eps */
extern const char *const traffic_parameters[];

/* Exits with 2 if there is no GPU or memory. */
void traffic_open(Traffic *traffic);
void traffic_close(Traffic *traffic);

/* `kernels`: at most VARIANTS, instead of the row's own if there are any */
void row_open(RowRun *run, Traffic *traffic, const MemoryRow *row, const char *const *kernels,
              int count);
void row_measure(RowRun *run, int rounds); /* all contenders once per round, in rotating order */
void row_close(RowRun *run);
double row_bytes(const MemoryRow *row); /* necessary traffic of one launch, without G, B and L */

#endif
