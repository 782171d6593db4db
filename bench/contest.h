/* One shape: our kernels and cuBLASLt on the same data and stream, in turn. C[M, N] = A[M, K] * B[N, K]^T.
 *
 * Data is random normal, for e4m3 quantised with one scale a tensor; sets of buffers rotate, together at least three times the L2. Before it is
 * first measured, everybody computes into a C full of NaNs, of which a sample is compared with sums in f64 of the host.
 *
 * Burst: BURST launches between two events behind a pause of 50 ms. Sustained: one contender at a time without pauses, first until the
 * clock has settled, then measured in batches of about 50 ms. */
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

/* How much is measured */
typedef struct Protocol {
    int rounds;           /* bursts of each contender a run */
    int trials;           /* bursts of each algorithm that is tried */
    double pause;         /* seconds in front of a burst */
    double warm, measure; /* seconds of sustained load */
    double trial;         /* seconds of sustained load of each algorithm that is tried */
} Protocol;

typedef struct Bench {
    Cuda cuda;
    Lt lt;
    Sensors *sensors; /* NULL: there are none */
    void *stream;
    void *events[3];
    Protocol protocol;
    uint16_t *bf16; /* NOISE normal values in each format */
    uint8_t *e4m3;
    double scale;         /* of e4m3: a value is this times what is stored */
    DevicePointer scales; /* the same as an f32 on the device */
} Bench;

typedef struct Contender {
    const char *name;
    Variant *variant; /* NULL: cuBLASLt */
    int algorithm;    /* then: which one, in this run */
    double *seconds;  /* of a launch, one a burst or batch, of all runs */
    int count, room;
    double median[MAX_RUNS]; /* of each run */
    SensorLog log;
    int status; /* 0, or an exit code: it is wrong or cannot run; it has been said */
} Contender;

enum { HEURISTIC, BEST, OURS }; /* order of the contenders: variants of ours from OURS on */

typedef struct Contest {
    Bench *bench;
    const char *name;
    Shape shape;
    int sets, next; /* rotating buffers */
    DevicePointer a[MAX_SETS], b[MAX_SETS], c[MAX_SETS];
    LtProblem problem;
    Contender *contenders;
    int count, runs;
    double peer[MAX_RUNS]; /* seconds of cuBLASLt in each run: its first algorithm or the best by trial, the faster */
    double *expected;      /* of the sampled elements of C */
} Contest;

/* Ends the program with 2 where there is no GPU, cuBLASLt or memory. */
void bench_open(Bench *bench, const Protocol *protocol);
void bench_close(Bench *bench);

void contest_open(Contest *contest, Bench *bench, const char *name, const Shape *shape);
void contest_add(Contest *contest, Variant *variant); /* what cannot run is not measured */
void contest_run(Contest *contest);                   /* one run: everybody once through */
void contest_close(Contest *contest);

double contest_flop(const Shape *shape);

#endif
