/* Random data, number formats, order statistics, memory and clocks, shared by the benchmarks. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdint.h>

/* Number of random values of a run: a prime, so that no two rows begin with the same ones */
#define MEASURE_NOISE 4194301

double measure_uniform(uint64_t *state); /* splitmix64, in (0, 1] */
double measure_normal(uint64_t *state);

uint16_t measure_bf16(double value); /* rounded to nearest even; no NaN */
double measure_from_bf16(uint16_t bits);
uint8_t measure_e4m3(double value); /* rounded to nearest even, saturated at 448; no NaN */
double measure_from_e4m3(uint8_t bits);

void measure_sort(double *values, int count); /* ascending */
/* Quantile of sorted values, interpolated; `part` 0.5 is the median. NaN if there are none. */
double measure_quantile(const double *sorted, int count, double part);
double measure_median(double *values, int count); /* sorts them */

/* The result of malloc or calloc; ends the process with 2 if there is no memory. */
void *measure_memory(void *memory);

double measure_wall(void); /* seconds */
double measure_cpu(void);  /* seconds of this process's CPU time */

#endif
