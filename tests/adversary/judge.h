/* Private to the tester: the checker's verdict on a program, and what happens. */
#ifndef TESTS_ADVERSARY_JUDGE_H
#define TESTS_ADVERSARY_JUDGE_H

#include "tests/adversary/adversary.h"
#include "tests/adversary/compile.h"

/* What an accepted program that is wrong shows of the checker */
typedef enum Fault {
    FAULT_NONE,
    FAULT_TURN,    /* the code of a turn whose end is under a condition of lanes */
    FAULT_WRAP,    /* numbers that leave 32 bits */
    FAULT_PADDING, /* what comes of padding reaches a sum */
    FAULT_PAYLOAD, /* a stage is handed over in part */
    FAULT_UNWRITTEN,
    FAULT_RACE,
    FAULT_CARRIED,
    FAULT_OUTSIDE, /* a subscript, without a wrap */
    FAULT_STAGES,  /* releases, hints, arrivals */
    FAULT_BALANCE,
    FAULT_RUN, /* the run finds or computes something that the interpreter does not know of */
    FAULTS
} Fault;
extern const char *const fault_names[FAULTS];

typedef struct Judgement {
    Compiled compiled;
    Harm harm; /* the first; HARM_LONG: some sizes were left out, and no harm at the others */
    Fault fault;
    bool dead;   /* some statement never ran */
    bool padded; /* as in an outcome, at some sizes */
    bool *ran;
    Sizes sizes; /* at which */
    int resident;
    uint64_t schedule;
    int runs;
    const char *finding; /* of the emulator at these sizes, or what differs; NULL: nothing */
    const Stmt *stmt;
} Judgement;

typedef struct JudgeOptions {
    int sizes, runs; /* how many sizes are interpreted, and runs on the emulator */
} JudgeOptions;

void judge_program(Program *program, Arena *arena, const JudgeOptions *options, Judgement *out);
/* The same fault at the same sizes? For programs that are accepted. */
bool shows_fault(Program *program, Arena *arena, const Judgement *like);
/* Without what the fault does not need; in the arena */
Program *shrink(Program *program, Arena *arena, const Judgement *like);
Program *shrink_alarm(Program *program, Arena *arena, const JudgeOptions *options,
                      const Diag *diag);

#endif
