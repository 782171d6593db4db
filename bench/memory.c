/* Compares memory-bound kernels with limit kernels that move the same bytes, on one GPU, in one
 * process: the rows of bench/memory.def. Method: bench/traffic.h.
 *
 * Exits with 0 if everything was measured; 1: one of our kernels is refused or wrong; 2: usage or
 * machine. */
#include "bench/measure.h"
#include "bench/traffic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: bench/memory [OPTIONS], from the root of the repository; without options all rows:\n"
    "  --row NAME       this row of bench/memory.def; can be repeated\n"
    "  --try KERNEL     instead of the row's kernel: FILE.pipe or FILE.pipe:NAME=VALUE,..;\n"
    "                   can be repeated: the kernels are measured side by side\n"
    "  --rounds N       bursts of each contender, 1 to 99 (default 15)\n"
    "  --quick          three bursts of 1/256 of each row, to test that everything works\n"
    "  --list           prints the rows and their kernels; needs no GPU\n";

#define QUICK_PART 256

static const MemoryRow memory_rows[] = {
#define MEMORY_ROW(name, operation, m, d, graph, kernel) {name, operation, m, d, graph, kernel},
#include "bench/memory.def"
#undef MEMORY_ROW
};

enum { MEMORY_ROWS = sizeof memory_rows / sizeof *memory_rows };

typedef struct Options {
    bool chosen[MEMORY_ROWS];
    int chosen_count, rounds;
    bool quick, list;
    const char *kernels[VARIANTS]; /* instead of the row's */
    int kernel_count;
} Options;

static void refuse(const char *what, const char *word) {
    fprintf(stderr, "bench: %s %s\n%s", what, word, usage);
    exit(2);
}

static void choose(Options *options, const char *name) {
    for (int i = 0; i < MEMORY_ROWS; i++) {
        if (strcmp(memory_rows[i].name, name) != 0) continue;
        options->chosen[i] = true;
        options->chosen_count++;
        return;
    }
    refuse("there is no row", name);
}

static void take(Options *options, const char *option, const char *value) {
    if (strcmp(option, "--row") == 0) {
        choose(options, value);
    } else if (strcmp(option, "--try") == 0) {
        if (options->kernel_count == VARIANTS) refuse("too many kernels:", value);
        options->kernels[options->kernel_count++] = value;
    } else if (strcmp(option, "--rounds") == 0) {
        char *end;
        long rounds = strtol(value, &end, 10);
        if (*end != 0 || rounds < 1 || rounds > TRAFFIC_ROUNDS)
            refuse("--rounds takes a number from 1 to 99, not", value);
        options->rounds = (int)rounds;
    } else {
        refuse("unknown option or missing value:", option);
    }
}

static void parse(Options *options, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            options->quick = true;
        } else if (strcmp(argv[i], "--list") == 0) {
            options->list = true;
        } else if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            exit(0);
        } else if (i + 1 == argc) {
            refuse("unknown option or missing value:", argv[i]);
        } else {
            take(options, argv[i], argv[i + 1]);
            i++;
        }
    }
    if (options->kernel_count > 0 && options->chosen_count == 0) refuse("--try needs", "--row");
    if (options->rounds == 0) options->rounds = options->quick ? 3 : 15;
    for (int i = 0; options->chosen_count == 0 && i < MEMORY_ROWS; i++) options->chosen[i] = true;
}

static void list(const Options *options) {
    for (int i = 0; i < MEMORY_ROWS; i++) {
        const MemoryRow *row = &memory_rows[i];
        if (options->chosen[i])
            printf("%-14s %7lld x %4lld, %8.1f MB: %s\n", row->name, (long long)row->m,
                   (long long)row->d, row_bytes(row) * 1e-6, row->kernel);
    }
}

/* The exit code of the row */
static int report(RowRun *run, int rounds) {
    double bytes = row_bytes(&run->row), median[VARIANTS + LIMITS], limit = INFINITY;
    int status = 0;
    for (int i = 0; i < run->count; i++) {
        median[i] = measure_median(run->contenders[i].seconds, rounds);
        if (i >= run->ours) limit = fmin(limit, median[i]);
    }
    for (int i = 0; i < run->count; i++) {
        const Contender *contender = &run->contenders[i];
        const double *sorted = contender->seconds;
        status = (int)pipec_worse((PipecStatus)status, (PipecStatus)contender->status);
        if (contender->status != 0)
            printf("| %s | %s | failed | | | |\n", run->row.name, contender->name);
        else
            printf("| %s | %s | %.2f | %.0f | %.3f | %.1f %% |\n", run->row.name, contender->name,
                   median[i] * 1e6, bytes / median[i] * 1e-9, limit / median[i],
                   100 * (sorted[rounds - 1] - sorted[0]) / median[i]);
    }
    fflush(stdout);
    return status;
}

int main(int argc, char **argv) {
    static Options options;
    static Traffic traffic;
    static RowRun run;
    int status = 0;
    parse(&options, argc, argv);
    if (options.list) return list(&options), 0;
    traffic_open(&traffic);
    if (options.quick) traffic.pause = 0.001;
    printf("%s, CUDA %d. Medians over %d bursts of %d launches; GB/s of necessary bytes; of limit: "
           "compared with the fastest limit kernel.\n\n"
           "| row | kernel | us | GB/s | of limit | spread |\n|---|---|---|---|---|---|\n",
           traffic.cuda.device, traffic.cuda.version, options.rounds, TRAFFIC_BURST);
    for (int i = 0; i < MEMORY_ROWS; i++) {
        if (!options.chosen[i]) continue;
        MemoryRow row = memory_rows[i];
        if (options.quick) row.m = row.m < QUICK_PART ? 1 : row.m / QUICK_PART;
        row_open(&run, &traffic, &row, options.kernels, options.kernel_count);
        row_measure(&run, options.rounds);
        int worse = report(&run, options.rounds);
        status = (int)pipec_worse((PipecStatus)status, (PipecStatus)worse);
        row_close(&run);
    }
    traffic_close(&traffic);
    return status;
}
