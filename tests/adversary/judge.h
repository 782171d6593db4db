/* The tester, private: the checker's verdict on a program, and its real behaviour. */
#ifndef TESTS_ADVERSARY_JUDGE_H
#define TESTS_ADVERSARY_JUDGE_H

#include "tests/adversary/adversary.h"
#include "tests/adversary/compile.h"

/* The fault that a wrong accepted program shows */
typedef enum Fault {
    FAULT_NONE,
    FAULT_TURN,    /* code of a turn that ends under a lane condition */
    FAULT_WRAP,    /* numbers that leave 32 bits */
    FAULT_PADDING, /* values computed from padding reach a sum */
    FAULT_PAYLOAD, /* a stage is handed over partly written */
    FAULT_UNWRITTEN,
    FAULT_RACE,
    FAULT_CARRIED,
    FAULT_OUTSIDE, /* a subscript is outside, without a wrap */
    FAULT_STAGES,  /* releases, hints, arrivals */
    FAULT_BALANCE,
    /* a finding or result of the run that the interpreter does not predict */
    FAULT_RUN,
    FAULTS
} Fault;
extern const char *const fault_names[FAULTS];

typedef struct Judgement {
    Compiled compiled;
    /* the first one; HARM_LONG: some sizes were skipped, and no harm at the others */
    Harm harm;
    Fault fault;
    bool dead;   /* some statement never ran */
    bool padded; /* as in an outcome, or seen in the statement that is not accepted; some sizes */
    int vague;   /* runs of which only the findings count */
    Seen *seen;  /* by number of the statement */
    Sizes sizes; /* sizes that show it */
    int resident;
    uint64_t schedule;
    int runs, gpu_runs;
    /* of the run at these sizes, or the difference of results; NULL: none */
    const char *finding;
    const Stmt *stmt;
} Judgement;

typedef struct JudgeOptions {
    int sizes, runs;     /* number of interpreted sizes, and of runs on the emulator */
    struct Runtime *gpu; /* what the emulator finds right runs here as well; NULL: no GPU */
} JudgeOptions;

void judge_program(Program *program, Arena *arena, const JudgeOptions *options, Judgement *out);
const Diag *first_reason(const Compiled *compiled); /* why it is not accepted; NULL: it is */
/* True if the program shows the same fault at the same sizes. For accepted programs. */
bool shows_fault(Program *program, Arena *arena, const Judgement *like);
/* A smaller program with the same fault; in the arena */
Program *shrink(Program *program, Arena *arena, const Judgement *like);
Program *shrink_alarm(Program *program, Arena *arena, const JudgeOptions *options,
                      const Diag *diag);

#endif
