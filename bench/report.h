/* The results, as Markdown tables on standard output and as a plot. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "bench/contest.h"
#include "bench/rows.h"

/* Two lines about the machine and the method */
void report_machine(const Bench *bench, int runs, bool quick);
/* Each kernel's time to PTX and to a cubin */
void report_kernels(const Variant *kernels, int count);
/* One line on standard error about the last run of a row: printed even if the program is stopped
 * later */
void report_progress(const Row *row, const Contest *contest);
/* Rate, spread, clock and power of each contender */
void report_contenders(const Row *const *rows, const Contest *contests, int count);
/* Our kernels compared with the best peer in each run: one line per row and variant, then the
 * number of lines that hold */
void report_verdicts(const Row *const *rows, const Contest *contests, int count);
/* Our first kernel of each row and cuBLASLt; false: the file cannot be written, which was
 * reported. */
bool report_plot(const Row *const *rows, const Contest *contests, int count, const char *path);

#endif
