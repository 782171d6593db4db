/* cases.c for other suites: one run of a program, given by a line of its head, such as
 * `M=3 --fill A=iota`. Returns the status, the verdict and all diagnostics. */
#ifndef TESTS_CASES_H
#define TESTS_CASES_H

#include "tests/driver/suite.h"

typedef struct Case {
    const char *line; /* as written; "" for the run of an example without arguments */
    const char *kernel;
    Words values, fills;
    uint64_t seed;
    bool least_aligned, strided;
    int schedules, exit;
    Words codes;
    bool unchecked;
} Case;

/* One case on one machine */
typedef struct Attempt {
    PipecProgram *program;
    PipecRun *run;
    PipecStatus compiled, status; /* of the compilation; of everything */
    PipecVerdict verdict;
    bool executed;
    double seconds;
    Str diagnostics; /* text of all diagnostics */
} Attempt;

/* `[KERNEL] N=5 [--fill A=iota] [--seed 7] [--schedules 4]`; an unknown word is a failure of the
 * test. */
Case case_read(Test *test, const char *line);
Attempt case_attempt(Test *test, const Case *c, const char *text, size_t length, PipecWhere where);
void case_drop(Attempt *attempt);

#endif
