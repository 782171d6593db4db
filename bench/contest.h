/* One shape: our kernels and cuBLASLt on the same data and stream, in turn. C[M, N] = A[M, K] *
 * B[N, K]^T.
 *
 * Data is random normal, quantised for e4m3 with one scale per tensor; buffer sets rotate and
 * are together at least three times the size of L2. Before its first measurement, each contender
 * writes to a C full of NaNs, of which a sample is compared with sums in f64 on the host.
 *
 * Burst: BURST launches between two events, after a pause of 50 ms. Sustained: one contender at
 * a time without pauses, first until the clock is stable, then measured in batches of about 50
 * ms. */
#ifndef BENCH_CONTEST_H
#define BENCH_CONTEST_H

#include "bench/cuda.h"
#include "bench/variant.h"
#include "bench/lt.h"
#include "bench/sensors.h"

#define BURST        10
#define MAX_RUNS     9
#define MAX_VARIANTS 16
#define MAX_SETS     64

typedef enum Type { TYPE_BF16, TYPE_E4M3 } Type;
typedef enum Regime { REGIME_BURST, REGIME_SUSTAINED } Regime;

typedef struct Shape {
    int64_t m, n, k;
    Type type;
    Regime regime;
} Shape;

/* Amount of measurement */
typedef struct Protocol {
    int rounds;           /* bursts per contender and run */
    int trials;           /* bursts per tried algorithm */
    double pause;         /* seconds before a burst */
    double warm, measure; /* seconds of sustained load */
    double trial;         /* seconds of sustained load per tried algorithm */
} Protocol;

typedef struct Bench {
    Cuda cuda;
    Lt lt;
    Sensors *sensors; /* NULL: not available */
    void *stream;
    void *events[3];
    Protocol protocol;
    uint16_t *bf16; /* MEASURE_NOISE normal values in each format */
    uint8_t *e4m3;
    double scale;         /* of e4m3: value = scale * stored value */
    DevicePointer scales; /* the scale as an f32 on the device */
} Bench;

typedef struct Contender {
    const char *name;
    Variant *variant; /* NULL: cuBLASLt */
    int algorithm;    /* of cuBLASLt: index of the algorithm in this run */
    double *seconds;  /* time of a launch, one per burst or batch, over all runs */
    int count, room;
    double median[MAX_RUNS]; /* of each run */
    SensorLog log;
    int status; /* 0, or an exit code: wrong or cannot run; reported */
} Contender;

enum { HEURISTIC, BEST, OURS }; /* order of the contenders; our variants start at OURS */

typedef struct Contest {
    Bench *bench;
    const char *name;
    Shape shape;
    int sets, next; /* rotating buffers */
    DevicePointer a[MAX_SETS], b[MAX_SETS], c[MAX_SETS];
    LtProblem problem;
    Contender *contenders;
    int count, runs;
    /* seconds of cuBLASLt in each run: the faster one of its first algorithm and the best by
     * trial */
    double peer[MAX_RUNS];
    double *expected; /* sampled elements of C */
} Contest;

/* Parameters that a kernel may have: A[M, K], B[N, K], C[M, N]; scale_a and scale_b, the (equal)
 * scales of the two tensors; scale, their product */
extern const char *const contest_parameters[];

/* Exits with 2 if there is no GPU, cuBLASLt or memory. */
void bench_open(Bench *bench, const Protocol *protocol);
void bench_close(Bench *bench);

void contest_open(Contest *contest, Bench *bench, const char *name, const Shape *shape);
/* skips variants that cannot run */
void contest_add(Contest *contest, Variant *variant);
void contest_run(Contest *contest); /* one run: each contender once */
void contest_close(Contest *contest);

double contest_flop(const Shape *shape);

#endif
