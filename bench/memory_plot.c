/* Plots the tables that bench/memory and bench/rows_peers.py print: per row the fastest of our
 * kernels, of PyTorch and of Triton, and the fastest limit kernel.
 *
 * Exits with 0 if the plot was written; 2: usage, or the tables have no rows. */
#include "bench/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 64
#define NAME_SIZE 64

static const char usage[] = "usage: bench/memory_plot PLOT.svg TABLE..\n";

enum { OURS, TORCH, TRITON };

typedef struct Rows {
    PlotRow items[ROWS_MOST];
    char names[ROWS_MOST][NAME_SIZE];
    int count;
} Rows;

static PlotRow *row_named(Rows *rows, const char *name) {
    for (int i = 0; i < rows->count; i++)
        if (strcmp(rows->names[i], name) == 0) return &rows->items[i];
    if (rows->count == ROWS_MOST) return NULL;
    PlotRow *row = &rows->items[rows->count];
    snprintf(rows->names[rows->count], NAME_SIZE, "%s", name);
    *row = (PlotRow){.label = rows->names[rows->count++], .limit = NAN};
    for (int b = 0; b < PLOT_BARS; b++) row->value[b] = row->low[b] = row->high[b] = NAN;
    return row;
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* A line of a table: | row | kernel | us | GB/s | ..; others are skipped */
static void take(Rows *rows, const char *line) {
    char name[NAME_SIZE], kernel[256];
    double us, rate;
    if (sscanf(line, "| %63s | %255[^|]| %lf | %lf |", name, kernel, &us, &rate) != 4) return;
    PlotRow *row = row_named(rows, name);
    if (row == NULL) return;
    double *to = begins(kernel, "limit_")   ? &row->limit
                 : begins(kernel, "torch")  ? &row->value[TORCH]
                 : begins(kernel, "Triton") ? &row->value[TRITON]
                                            : &row->value[OURS];
    *to = fmax(*to, rate); /* which ignores NaN */
}

static bool read_table(Rows *rows, const char *path) {
    char line[1024];
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    while (fgets(line, sizeof line, file) != NULL) take(rows, line);
    fclose(file);
    return true;
}

static int fails(const char *path, const char *what) {
    fprintf(stderr, "bench: %s %s\n%s", path, what, usage);
    return 2;
}

int main(int argc, char **argv) {
    static Rows rows;
    if (argc < 3) return fails("the plot", "needs a table");
    for (int i = 2; i < argc; i++)
        if (!read_table(&rows, argv[i])) return fails(argv[i], "cannot be read");
    if (rows.count == 0) return fails(argv[2], "has no rows");
    Plot plot = {"Memory-bound kernels: medians, GB/s of necessary bytes",
                 "GB/s",
                 "plain kernel, same bytes",
                 {"pipec", "PyTorch", "Triton"},
                 rows.items,
                 rows.count};
    FILE *file = fopen(argv[1], "w");
    bool fine = file != NULL && plot_write(&plot, file);
    if (file != NULL && fclose(file) != 0) fine = false;
    if (!fine) return fails(argv[1], "cannot be written");
    printf("plot: %s\n", argv[1]);
    return 0;
}
