/* Random data by a counter, so that it is the same on every machine; medians; failed calls. */
#include "bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double measure_median(double *values, int count) {
    qsort(values, (size_t)count, sizeof(double), ascending);
    return values[count / 2];
}

void measure_check(int result, const char *what) {
    if (result == 0) return;
    fprintf(stderr, "bench: %s fails with error %d\n", what, result);
    exit(2);
}
