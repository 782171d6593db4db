/* The rows of the table (bench/rows.def) and the limits that they must hold. */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include "bench/contest.h"

/* a row holds if the median over the runs of ours / best peer is at least this */
#define HELD 0.995

typedef struct Row {
    const char *name;
    Shape shape;
    double lt, cutlass, deepgemm, target; /* TFLOP/s; 0: unknown */
    const char *kernel;
} Row;

extern const Row rows[];
extern const int row_count;

const Row *row_named(const char *name); /* NULL: there is none */
/* Best peer / cuBLASLt's best of 8, at least 1; *peer: its name, "" for cuBLASLt itself. */
double row_factor(const Row *row, const char **peer);

#endif
