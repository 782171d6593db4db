/* Compares GEMM kernels with cuBLASLt on one GPU, in one process: the rows of bench/rows.def, or
 * any shape and kernels. Method: bench/contest.h; tables: bench/report.h.
 *
 * Exits with 0 if everything was measured, whether the rows hold or not; 1: one of our kernels
 * is refused, wrong, faults or hangs; 2: usage or machine. */
#include "bench/contest.h"
#include "bench/report.h"
#include "bench/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: bench/gemm [OPTIONS], from the root of the repository; without options all rows, three "
    "runs:\n"
    "  --row NAME       this row of bench/rows.def; can be repeated\n"
    "  --shape MxNxK    this shape; can be repeated; --type e4m3 and --sustained after it set its "
    "type and regime\n"
    "  --try KERNEL     instead of the row's kernel: FILE.pipe or FILE.pipe:NAME=VALUE,..; can "
    "be repeated; all are compared\n"
    "  --runs N         interleaved runs, 1 to 9 (default 3; with --try or --shape 1)\n"
    "  --rounds N       bursts of each contender per run, 1 to 99 (default 15)\n"
    "  --quick          few bursts and a short load, to test that everything works\n"
    "  --plot FILE      writes the plot there, as SVG\n"
    "  --list           prints the rows and their kernels; needs no GPU\n";

#define MAX_ROWS   32
#define MAX_LOADED (MAX_ROWS + MAX_VARIANTS)

typedef struct Options {
    Row made[MAX_ROWS]; /* from --shape */
    const Row *rows[MAX_ROWS];
    int row_count, made_count;
    const char *tries[MAX_VARIANTS];
    int try_count;
    int runs, rounds; /* 0: not given */
    bool quick, list;
    const char *plot;
} Options;

static void refuse(const char *what, const char *word) {
    fprintf(stderr, "bench: %s%s%s\n%s", what, word[0] ? " " : "", word, usage);
    exit(2);
}

static void add_row(Options *options, const Row *row) {
    if (options->row_count == MAX_ROWS) refuse("too many rows", "");
    options->rows[options->row_count++] = row;
}

static void add_shape(Options *options, const char *word) {
    long long m, n, k;
    char rest;
    if (options->made_count == MAX_ROWS) refuse("too many rows", "");
    if (sscanf(word, "%lldx%lldx%lld%c", &m, &n, &k, &rest) != 3 || m < 1 || n < 1 || k < 1 ||
        m > 1 << 20 || n > 1 << 20 || k > 1 << 20)
        refuse("--shape takes MxNxK, not", word);
    Row *row = &options->made[options->made_count++];
    *row = (Row){
        .name = word, .shape = {m, n, k, TYPE_BF16, REGIME_BURST}, .kernel = "examples/gemm.pipe"};
    add_row(options, row);
}

static int number(const char *option, const char *word, int most) {
    char *end;
    long value = strtol(word, &end, 10);
    if (*end != 0 || value < 1 || value > most) refuse(option, "takes a number in range");
    return (int)value;
}

static Row *last_made(Options *options, const char *option) {
    if (options->made_count == 0) refuse(option, "must follow --shape");
    return &options->made[options->made_count - 1];
}

static void parse(Options *options, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(option, "--quick") == 0)
            options->quick = true;
        else if (strcmp(option, "--list") == 0)
            options->list = true;
        else if (strcmp(option, "--sustained") == 0)
            last_made(options, option)->shape.regime = REGIME_SUSTAINED;
        else if (strcmp(option, "--help") == 0) {
            fputs(usage, stdout);
            exit(0);
        } else if (value == NULL)
            refuse("unknown option or missing value:", option);
        else if (i++, strcmp(option, "--row") == 0) {
            const Row *row = row_named(value);
            if (row == NULL) refuse("there is no row", value);
            add_row(options, row);
        } else if (strcmp(option, "--shape") == 0)
            add_shape(options, value);
        else if (strcmp(option, "--type") == 0) {
            Row *row = last_made(options, option);
            if (strcmp(value, "e4m3") == 0)
                row->shape.type = TYPE_E4M3, row->kernel = "examples/gemm_fp8.pipe";
            else if (strcmp(value, "bf16") != 0)
                refuse("--type takes bf16 or e4m3, not", value);
        } else if (strcmp(option, "--try") == 0) {
            if (options->try_count == MAX_VARIANTS) refuse("too many kernels", "");
            options->tries[options->try_count++] = value;
        } else if (strcmp(option, "--runs") == 0)
            options->runs = number(option, value, MAX_RUNS);
        else if (strcmp(option, "--rounds") == 0)
            options->rounds = number(option, value, 99);
        else if (strcmp(option, "--plot") == 0)
            options->plot = value;
        else
            refuse("unknown option or missing value:", option);
    }
    if (options->try_count > 0 && options->row_count == 0)
        refuse("--try needs --row or --shape", "");
    bool table = options->row_count == 0;
    for (int i = 0; table && i < row_count; i++) add_row(options, &rows[i]);
    if (options->runs == 0)
        options->runs = options->quick || options->try_count > 0 || options->made_count > 0 ? 1 : 3;
}

static void list(const Options *options) {
    for (int i = 0; i < options->row_count; i++) {
        const Row *row = options->rows[i];
        const char *peer;
        printf("%-10s %5lldx%5lldx%5lld %s %s, best peer %.3f x cuBLASLt: %s\n", row->name,
               (long long)row->shape.m, (long long)row->shape.n, (long long)row->shape.k,
               row->shape.type == TYPE_E4M3 ? "e4m3" : "bf16",
               row->shape.regime == REGIME_SUSTAINED ? "sustained" : "burst",
               row_factor(row, &peer), row->kernel);
    }
}

/* The kernel of that name, compiled and loaded once */
static Variant *variant_for(Variant *variants, int *count, const char *name) {
    for (int i = 0; i < *count; i++)
        if (strcmp(variants[i].name, name) == 0) return &variants[i];
    variant_open(&variants[*count], name, contest_parameters);
    return &variants[(*count)++];
}

/* The worse exit code: 3, then 1, 4, 2, as everywhere in pipec */
static int worse(int a, int b) { return (int)pipec_worse((PipecStatus)a, (PipecStatus)b); }

int main(int argc, char **argv) {
    static Options options;
    static Variant variants[MAX_LOADED];
    static Contest contests[MAX_ROWS];
    Bench bench;
    int variant_count = 0, status = 0;
    parse(&options, argc, argv);
    if (options.list) return list(&options), 0;
    /* Without the driver's cache, so that the time from PTX to cubin is measured. */
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    Protocol protocol = {
        .rounds = 15, .trials = 5, .pause = 0.05, .warm = 3, .measure = 2, .trial = 0.5};
    if (options.quick)
        protocol = (Protocol){
            .rounds = 3, .trials = 1, .pause = 0.005, .warm = 0.2, .measure = 0.2, .trial = 0.05};
    if (options.rounds > 0) protocol.rounds = options.rounds;
    bench_open(&bench, &protocol);
    for (int c = 0; c < options.row_count; c++) {
        const Row *row = options.rows[c];
        contest_open(&contests[c], &bench, row->name, &row->shape);
        for (int t = 0; t < options.try_count; t++)
            contest_add(&contests[c], variant_for(variants, &variant_count, options.tries[t]));
        if (options.try_count == 0)
            contest_add(&contests[c], variant_for(variants, &variant_count, row->kernel));
    }
    for (int run = 0; run < options.runs; run++) {
        for (int c = 0; c < options.row_count; c++) {
            contest_run(&contests[c]);
            report_progress(options.rows[c], &contests[c]);
        }
    }
    report_machine(&bench, options.runs, options.quick);
    report_kernels(variants, variant_count);
    report_contenders(options.rows, contests, options.row_count);
    report_verdicts(options.rows, contests, options.row_count);
    if (options.plot != NULL &&
        !report_plot(options.rows, contests, options.row_count, options.plot))
        status = 2;
    for (int c = 0; c < options.row_count; c++) {
        for (int i = 0; i < contests[c].count; i++)
            status = worse(status, contests[c].contenders[i].status);
        contest_close(&contests[c]);
    }
    for (int i = 0; i < variant_count; i++) variant_close(&variants[i]);
    bench_close(&bench);
    return status;
}
