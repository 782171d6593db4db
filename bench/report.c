/* Rates are in TFLOP/s. The clock's limit is 4096 FLOP per clock and multiprocessor for 16-bit
 * types, twice that for 8-bit types, at the median of the clocks read while the contender ran. */
#include "bench/report.h"
#include "bench/measure.h"
#include "bench/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Rate {
    double median, low, high; /* TFLOP/s: median and quartiles of all runs */
    /* limit: TFLOP/s at that clock; NaN without sensors */
    double mhz, watt, limit;
} Rate;

static Rate rate(const Contest *contest, const Contender *contender) {
    static double values[SENSOR_SAMPLES];
    double flop = contest_flop(&contest->shape) * 1e-12;
    Rate r = {NAN, NAN, NAN, NAN, NAN, NAN};
    if (contender->count > 0) {
        measure_sort(contender->seconds, contender->count);
        r.median = flop / measure_quantile(contender->seconds, contender->count, 0.5);
        r.low = flop / measure_quantile(contender->seconds, contender->count, 0.75);
        r.high = flop / measure_quantile(contender->seconds, contender->count, 0.25);
    }
    memcpy(values, contender->log.mhz, (size_t)contender->log.count * sizeof *values);
    r.mhz = measure_median(values, contender->log.count);
    memcpy(values, contender->log.watt, (size_t)contender->log.count * sizeof *values);
    r.watt = measure_median(values, contender->log.count);
    double flop_a_clock = contest->shape.type == TYPE_E4M3 ? 8192 : 4096;
    r.limit = contest->bench->cuda.multiprocessors * flop_a_clock * r.mhz * 1e-6;
    return r;
}

/* Rate of our kernel / rate of the best peer in one run; NaN if one of them was not measured */
static double ratio(const Row *row, const Contest *contest, const Contender *ours, int run) {
    const char *peer;
    return contest->peer[run] / ours->median[run] / row_factor(row, &peer);
}

static double median_ratio(const Row *row, const Contest *contest, const Contender *ours) {
    double ratios[MAX_RUNS];
    for (int r = 0; r < contest->runs; r++) ratios[r] = ratio(row, contest, ours, r);
    return measure_median(ratios, contest->runs);
}

/* Text of a table cell: a number, or a dash for NaN */
static const char *cell(char *buffer, size_t bytes, const char *format, double value) {
    if (!isfinite(value)) return "-";
    snprintf(buffer, bytes, format, value);
    return buffer;
}
#define CELL(format, value) cell((char[32]){0}, 32, format, value)

static const char *shape_text(char *buffer, size_t bytes, const Shape *s) {
    snprintf(buffer, bytes, "%lldx%lldx%lld%s%s", (long long)s->m, (long long)s->n, (long long)s->k,
             s->type == TYPE_E4M3 ? " e4m3" : "",
             s->regime == REGIME_SUSTAINED ? " sustained" : "");
    return buffer;
}
#define SHAPE(shape) shape_text((char[80]){0}, 80, shape)

void report_machine(const Bench *bench, int runs, bool quick) {
    const Protocol *p = &bench->protocol;
    size_t lt = bench->lt.cublasLtGetVersion();
    printf("%s, %d SMs, L2 %d MB, driver %s (CUDA %d.%d), cuBLASLt %zu; TFLOP/s%s\n\n",
           bench->cuda.device, bench->cuda.multiprocessors, bench->cuda.l2_bytes >> 20,
           sensors_driver(bench->sensors), bench->cuda.version / 1000,
           bench->cuda.version % 1000 / 10, lt, quick ? "; QUICK, not a measurement" : "");
    printf(
        "%d run%s in one process, the contenders interleaved; a run is %d bursts of %d launches, "
        "each burst after a pause of %g ms, or %g s after %g s of the same load (sustained). "
        "Power is NVML's mean over one second, pauses included.\n",
        runs, runs == 1 ? "" : "s", p->rounds, BURST, p->pause * 1e3, p->measure, p->warm);
    if (bench->sensors == NULL)
        printf("NVML is not available: clock and power were not measured.\n");
}

void report_kernels(const Variant *kernels, int count) {
    printf("\n| kernel | to PTX, ms CPU | PTX to cubin and loaded, by the driver, ms "
           "|\n|---|---|---|\n");
    for (int i = 0; i < count; i++) {
        bool compiled = kernels[i].kernel != NULL;
        printf(
            "| %s | %s | %s |\n", kernels[i].name,
            CELL("%.2f", compiled ? kernels[i].compile_seconds * 1e3 : NAN),
            CELL("%.1f", compiled && kernels[i].status == 0 ? kernels[i].load_seconds * 1e3 : NAN));
    }
}

void report_progress(const Row *row, const Contest *contest) {
    int run = contest->runs - 1;
    double flop = contest_flop(&contest->shape) * 1e-12;
    fprintf(stderr, "run %d, %s: heuristic %s, best of 8 (its %d.) %s", contest->runs, row->name,
            CELL("%.1f", flop / contest->contenders[HEURISTIC].median[run]),
            contest->contenders[BEST].algorithm + 1,
            CELL("%.1f", flop / contest->contenders[BEST].median[run]));
    for (int i = OURS; i < contest->count; i++) {
        const Contender *contender = &contest->contenders[i];
        fprintf(stderr, "; %s %s (%s)", contender->name,
                CELL("%.1f", flop / contender->median[run]),
                CELL("%.3f", ratio(row, contest, contender, run)));
    }
    fputc('\n', stderr);
}

void report_contenders(const Row *const *rows_shown, const Contest *contests, int count) {
    printf("\n| row | contender | TFLOP/s | quartiles | SM clock, MHz | power, W | of the clock's "
           "limit "
           "|\n|---|---|---|---|---|---|---|\n");
    for (int c = 0; c < count; c++) {
        const Contest *contest = &contests[c];
        for (int i = 0; i < contest->count; i++) {
            /* our kernels first */
            const Contender *contender = &contest->contenders[(i + OURS) % contest->count];
            Rate r = rate(contest, contender);
            printf("| %s | %s | %s | %s .. %s | %s | %s | %s |\n", rows_shown[c]->name,
                   contender->name, CELL("%.1f", r.median), CELL("%.1f", r.low),
                   CELL("%.1f", r.high), CELL("%.0f", r.mhz), CELL("%.0f", r.watt),
                   CELL("%.1f %%", 100 * r.median / r.limit));
        }
    }
}

/* Prints one line; returns the median of its ratios */
static double verdict(const Row *row, const Contest *contest, const Contender *ours, bool named) {
    const char *peer;
    double factor = row_factor(row, &peer), median = median_ratio(row, contest, ours);
    printf("| %s%s%s | %s | %s | %s |", SHAPE(&contest->shape), named ? ", " : "",
           named ? ours->name : "", CELL("%.1f", rate(contest, ours).median),
           CELL("%.1f", rate(contest, &contest->contenders[HEURISTIC]).median),
           CELL("%.1f", rate(contest, &contest->contenders[BEST]).median));
    if (factor > 1)
        printf(" %s, x %.3f |", peer, factor);
    else
        printf(" cuBLASLt |");
    for (int r = 0; r < contest->runs; r++)
        printf(" %s", CELL("%.3f", ratio(row, contest, ours, r)));
    printf(" | %s | %s | %s |\n", CELL("%.3f", median),
           CELL("%.0f", row->target > 0 ? row->target : NAN),
           ours->status != 0   ? "WRONG or cannot run"
           : !isfinite(median) ? "not measured"
           : median >= HELD    ? "held"
                               : "not held");
    return ours->status != 0 ? NAN : median;
}

void report_verdicts(const Row *const *rows_shown, const Contest *contests, int count) {
    printf("\n| M x N x K | ours | heuristic | best of 8 | best peer | ours / best peer, by run | "
           "median | target | |\n"
           "|---|---|---|---|---|---|---|---|---|\n");
    int lines = 0, held = 0;
    double least = INFINITY;
    const char *worst = "";
    for (int c = 0; c < count; c++) {
        bool several = contests[c].count > OURS + 1;
        for (int i = OURS; i < contests[c].count; i++, lines++) {
            double median =
                verdict(rows_shown[c], &contests[c], &contests[c].contenders[i], several);
            held += median >= HELD;
            if (!(median >= least)) least = median, worst = rows_shown[c]->name; /* NaN is kept */
        }
    }
    printf("\n%d of %d rows held (median at least %.3f); the lowest is %s (%s)\n", held, lines,
           HELD, CELL("%.3f", least), worst);
}

bool report_plot(const Row *const *rows_shown, const Contest *contests, int count,
                 const char *path) {
    static const int order[PLOT_BARS] = {OURS, HEURISTIC, BEST};
    PlotRow *plotted = calloc((size_t)count + 1, sizeof *plotted);
    char title[200];
    bool fine = plotted != NULL && count > 0;
    for (int c = 0; fine && c < count; c++) {
        plotted[c].label = rows_shown[c]->name;
        for (int b = 0; b < PLOT_BARS; b++) {
            Rate r = rate(&contests[c], &contests[c].contenders[order[b]]);
            plotted[c].value[b] = r.median, plotted[c].low[b] = r.low, plotted[c].high[b] = r.high;
            if (b == 0) plotted[c].limit = r.limit;
        }
    }
    if (fine) {
        snprintf(title, sizeof title, "C = A * B^T on %s: medians and quartiles",
                 contests[0].bench->cuda.device);
        Plot plot = {title,
                     "TFLOP/s",
                     "limit at our clock",
                     {"ours", "cuBLASLt, heuristic", "cuBLASLt, best of 8"},
                     plotted,
                     count};
        FILE *file = fopen(path, "w");
        fine = file != NULL && plot_write(&plot, file);
        if (file != NULL && fclose(file) != 0) fine = false;
    }
    free(plotted);
    if (fine)
        printf("\nplot: %s\n", path);
    else
        fprintf(stderr, "bench: %s cannot be written\n", path);
    return fine;
}
