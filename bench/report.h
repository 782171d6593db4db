/* What was measured, as Markdown tables on standard output and as a plot. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "bench/contest.h"
#include "bench/rows.h"

/* Two lines about the machine and how it was measured */
void report_machine(const Bench *bench, int runs, bool quick);
/* Each kernel's time to PTX and to a cubin */
void report_kernels(const Variant *kernels, int count);
/* The run just made of one row, in one line on standard error: seen even where the program is stopped later */
void report_progress(const Row *row, const Contest *contest);
/* Everybody's rate, spread, clock and power */
void report_contenders(const Row *const *rows, const Contest *contests, int count);
/* Ours beside the best peer, run by run, one line a row and variant of ours, and how many of the lines hold */
void report_verdicts(const Row *const *rows, const Contest *contests, int count);
/* The first of our kernels of each row beside cuBLASLt; false: the file cannot be written, said. */
bool report_plot(const Row *const *rows, const Contest *contests, int count, const char *path);

#endif
