/* The rows of the table (bench/rows.def) and what a row is held to. */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include "bench/contest.h"

#define HELD 0.995 /* a row holds when the median over the runs of ours / best peer is at least this */

typedef struct Row {
    const char *name;
    Shape shape;
    double lt, cutlass, deepgemm, target; /* TFLOP/s; 0: not known */
    const char *kernel;
} Row;

extern const Row rows[];
extern const int row_count;

const Row *row_named(const char *name); /* NULL: there is none */
/* Best peer / cuBLASLt's best of 8, at least 1; `who` is its name, "" for cuBLASLt itself. */
double row_factor(const Row *row, const char **who);

#endif
