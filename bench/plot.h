/* A bar chart as SVG: one group of bars per row, with the quartiles of each bar and a line at
 * the limit of the row. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include <stdbool.h>
#include <stdio.h>

#define PLOT_BARS 3

typedef struct PlotRow {
    const char *label;
    double value[PLOT_BARS], low[PLOT_BARS], high[PLOT_BARS]; /* NaN: not measured */
    double limit;                                             /* NaN: unknown */
} PlotRow;

typedef struct Plot {
    const char *title, *unit, *limit_name;
    const char *bars[PLOT_BARS]; /* names */
    const PlotRow *rows;
    int count;
} Plot;

bool plot_write(const Plot *plot, FILE *to); /* false: writing failed */

#endif
