/* Kernels, and the runs of their mutants on the emulator. */
#ifndef TESTS_PTXMUTANTS_JUDGE_H
#define TESTS_PTXMUTANTS_JUDGE_H

#include "lib/private.h"
#include "tests/ptxmutants/ptxmutants.h"

typedef enum Fate {
    FATE_UNKNOWN,  /* the process died, or the kernel itself is not clean or not right */
    FATE_NAMED,    /* the emulator reports a finding: an error or a warning */
    FATE_WRONG,    /* the results are wrong */
    FATE_ENDLESS,  /* stopped at the limit of instructions */
    FATE_SURVIVES, /* right on every schedule */
    FATE_REJECTED, /* the emulator does not run the text */
    FATE_COUNT
} Fate;

typedef struct Judgement {
    Fate fate;
    char code[8];  /* "P0730"; empty: none */
    uint64_t seed; /* of the schedule that decided */
} Judgement;

#define SIZES_MAX 2

typedef struct Sizes {
    VEC(const char *) values;
    uint64_t instructions; /* of the unmutated run; 0: it has not run yet */
    VEC(Array) right;      /* the arrays after it, one per parameter */
    bool verified;         /* they fit `ensures` */
} Sizes;

typedef struct Kernel {
    Arena *arena;
    const char *file, *name; /* the name is the file with its values */
    Sizes sizes[SIZES_MAX];
    size_t size_count;
    int resident;
    PipecProgram *program;
    Lines lines;
    Mutants mutants;
} Kernel;

/* Reads "FILE [--resident N] NAME=VALUE .. [--or NAME=VALUE ..]", compiles the kernel and lists its
 * mutants. NULL, with the diagnostics in *why: it cannot be compiled. */
Kernel *kernel_open(Arena *arena, const char *line, const char **why);
void kernel_close(Kernel *kernel);
/* Runs the kernel itself, unless it has run. False, with the reason: not clean. */
bool kernel_check(Kernel *kernel, const char **why);
/* Runs a mutant of a kernel that is clean, with all sizes and schedules until it is caught. *why
 * gets the text of the diagnostics. */
Judgement kernel_judge(Kernel *kernel, const Mutant *mutant, uint64_t schedules, Str *why);

#endif
