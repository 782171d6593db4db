/* Random data and medians, the same for all benchmarks. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdint.h>

double measure_uniform(uint64_t *state); /* splitmix64, in (0, 1] */
double measure_normal(uint64_t *state);
double measure_median(double *values, int count);  /* sorts them */
void measure_check(int result, const char *what);  /* ends the program with 2 where a call has failed */

#endif
