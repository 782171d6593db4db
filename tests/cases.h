/* The door of tests/cases.c: one run of a program, as a line of its head says it.
 *
 * `M=3 --fill A=iota` goes in; the status, the verdict and all diagnostics come out. Shared by the
 * suites that run programs. */
#ifndef TESTS_CASES_H
#define TESTS_CASES_H

#include "tests/suite.h"

typedef struct Case {
    const char *line; /* as written; "" for the bare run of an example */
    const char *kernel;
    Words values, fills;
    uint64_t seed;
    int schedules, exit;
    Words codes;
    bool unchecked;
} Case;

/* One case on one machine */
typedef struct Attempt {
    PipecProgram *program;
    PipecRun *run;
    PipecStatus compiled, status; /* of the compilation; of all */
    PipecVerdict verdict;
    bool executed;
    double seconds;
    Str said; /* all diagnostics */
} Attempt;

/* `[KERNEL] N=5 [--fill A=iota] [--seed 7] [--schedules 4]`; a word that is not understood is a
 * failure of the test. */
Case case_read(Test *test, const char *line);
Attempt case_attempt(Test *test, const Case *c, const char *text, size_t length, PipecWhere where);
void case_drop(Attempt *attempt);

#endif
