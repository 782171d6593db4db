/* Random data from a counter, the same on every machine; number formats; medians and quantiles;
 * clocks. */
#include "bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double measure_uniform(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0 + 0x1p-54;
}

double measure_normal(uint64_t *state) {
    double radius = sqrt(-2 * log(measure_uniform(state)));
    return radius * cos(6.283185307179586 * measure_uniform(state));
}

uint16_t measure_bf16(double value) {
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double measure_from_bf16(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* 1 sign, 4 exponent (bias 7), 3 mantissa; no infinity; NaN only with all seven bits set. Steps
 * of 2^-9 below 2^-6. */
uint8_t measure_e4m3(double value) {
    uint8_t sign = signbit(value) ? 0x80 : 0;
    double size = fabs(value);
    if (size >= 448) return sign | 0x7e;
    int exponent;
    frexp(size, &exponent); /* size is in [2^(exponent - 1), 2^exponent) */
    if (size == 0 || exponent < -5) exponent = -5;
    double steps = nearbyint(ldexp(size, 4 - exponent)); /* 0 .. 16 units in the last place */
    return (uint8_t)(sign | ((exponent + 5) * 8 + (int)steps));
}

double measure_from_e4m3(uint8_t bits) {
    int exponent = bits >> 3 & 15, mantissa = bits & 7;
    if ((bits & 0x7f) == 0x7f) return NAN;
    double size = exponent == 0 ? ldexp(mantissa, -9) : ldexp(8 + mantissa, exponent - 10);
    return bits & 0x80 ? -size : size;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void measure_sort(double *values, int count) {
    if (count > 0) qsort(values, (size_t)count, sizeof(double), ascending);
}

double measure_quantile(const double *sorted, int count, double part) {
    if (count == 0) return NAN;
    double at = part * (count - 1);
    int below = (int)at;
    if (below + 1 >= count) return sorted[count - 1];
    return sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]);
}

double measure_median(double *values, int count) {
    measure_sort(values, count);
    return measure_quantile(values, count, 0.5);
}

static double read_clock(clockid_t which) {
    struct timespec time;
    clock_gettime(which, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void *measure_memory(void *memory) {
    if (memory != NULL) return memory;
    fprintf(stderr, "bench: no memory\n");
    exit(2);
}

double measure_wall(void) { return read_clock(CLOCK_MONOTONIC); }
double measure_cpu(void) { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }
