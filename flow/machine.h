/* machine: processes over rings. A process runs a slice of a role's Code: a role is one process,
 * or one an instance where these go each at its own pace. A ring hands the stages of a pipe
 * over, by number; a turn has one taker at a time.
 *
 * A stage is numbered and a token has one taker, so that no step of one process is ever undone
 * by another's: one order of the steps stands for all. What the machine does not know are
 * conditions and trips: an oracle answers, from given sizes, or both ways one after the other. */
#ifndef PIPEC_FLOW_MACHINE_H
#define PIPEC_FLOW_MACHINE_H

#include "flow/slice.h"

#define ALL_INSTANCES (-1)

typedef enum Answer { ANSWER_NO, ANSWER_YES, ANSWER_OPEN } Answer;
typedef enum Outcome { OUTCOME_ENDED, OUTCOME_STUCK, OUTCOME_OPEN, OUTCOME_BEYOND } Outcome;

typedef struct Machine Machine;

/* Where all processes stand, and what the rings hold. Memory of fixed size: it can be copied and
 * compared. */
typedef struct State {
    int32_t *words;
    uint8_t *bytes;
    void *decided; /* the oracle's own */
} State;

typedef struct Member {   /* a role in the machine */
    const FlowCode *code; /* of the whole role, or a slice */
    const Role *role;
    int processes, first; /* how many, and the number of the first */
    int *cursor;    /* by handle: the cursor of the member that steps with it; -1: its pipe is
                       not in the machine */
    const Row **acquires; /* by handle: the first row that acquires to it; NULL: there is none */
    const Row **takes;    /* by turn, from 1: the first row that takes it */
    VEC(int) ends;  /* by cursor: 2 * ring + (it produces) */
    int depth;      /* loops in each other */
    int held, kept; /* stages by variables and in late sets, at most */
    int grid;       /* its region of the loop over the grid, -1: none */
    int passed;     /* the word of its first turn */
} Member;

typedef struct Process {
    int member, instance; /* instance: ALL_INSTANCES, or the one that it is */
    int at;               /* of its words */
} Process;

typedef struct Ring {
    int pipe, stages, producers, consumers; /* processes that take each stage */
    int window;   /* stages that are kept track of at a time */
    int base, at; /* the word with the number of the first of them; its first byte */
} Ring;

/* One process in one state: pointers into its words */
typedef struct Position {
    const Member *member;
    int process, instance;
    int32_t *step; /* 2 * row, and 1 more at a LOOP whose next trip is asked for */
    int32_t *trips; /* by depth of the loop, less 1: iterations; the oracle may count otherwise */
    int32_t *cursors, *held_count, *held, *turned, *kept_count, *kept;
} Position;

enum { HELD_HANDLE, HELD_NUMBER, HELD_WORDS }; /* of each stage that is held, by handle */
enum { KEPT_LATE, KEPT_NUMBER, KEPT_WORDS };   /* of each stage in late sets, oldest first */

typedef enum EventKind { STEP_ACQUIRE, STEP_RELEASE, STEP_TAKE, STEP_PASS } EventKind;

typedef struct Event {
    EventKind kind;
    bool produce;     /* which end of the pipe */
    int pipe, number; /* the stage, from 0; of a turn: which one from 0, and its number among those
                         of all instances */
    Span place;
    int row; /* of the member's Code */
} Event;

typedef struct Oracle {
    void *data;
    /* A loop begins: what its trips are; NULL: 0 */
    int32_t (*enter)(const Machine *m, const Position *place, int region);
    /* Does it have another one? */
    Answer (*trip)(Machine *m, const State *state, const Position *place, int region);
    /* Does the condition of the IF hold? */
    Answer (*holds)(Machine *m, const State *state, const Position *place, int region);
    /* May an IF or loop be passed over, of which that is open? NULL: none */
    bool (*passes)(Machine *m, const Position *place, int region);
    /* Any other row, and each LEAVE before it goes; NULL: none matters */
    void (*row)(Machine *m, const State *state, const Position *place, const Row *row);
    /* Something was done; NULL: is not told */
    void (*event)(Machine *m, const State *state, const Position *place, const Event *event);
    /* Does `a` go first, up to the end of an iteration or turn? NULL: each process that can */
    bool (*before)(const Machine *m, const State *state, const Position *a, const Position *b);
} Oracle;

struct Machine {
    Arena *arena;
    const Prog *prog;
    Oracle oracle;
    VEC(Member) members;
    VEC(Process) processes;
    VEC(Ring) rings;
    int *ring_of; /* by pipe, -1: it is not in the machine */
    int words, bytes;
    bool alone;         /* acquires and turns do not wait, and nothing is handed over */
    bool halts;         /* a process whose next step is open stays there, and the others go on */
    bool *halted;       /* by process */
    int *events;        /* by process: done so far */
    int events_most;    /* of a process; 0: no bound. It halts there. */
    Budget work;         /* that it may take; then it is beyond */
    const char *beyond; /* why it could not go on */
    int decider;        /* OUTCOME_OPEN: the process whose step is open */
};

/* In this order: machine_make, machine_add for each role, machine_lay_out, machine_state */
Machine *machine_make(Arena *arena, const Prog *prog, Oracle oracle, Budget work);
/* `several`: a process for each instance */
void machine_add(Machine *m, const FlowCode *code, bool several);
/* `compact`: no member holds more stages than its rings have */
void machine_lay_out(Machine *m, bool compact);
State machine_state(const Machine *m); /* the first one, or room for one */

void machine_copy(const Machine *m, State *to, const State *from);
Outcome machine_run(Machine *m, State *state);
/* To its end, whatever the others do */
Outcome machine_run_alone(Machine *m, State *state, int process);

/* Do its instances go each at its own pace? */
bool role_is_several(const Role *role);
Position machine_position(const Machine *m, const State *state, int process);
const Row *position_row(const Position *place);
int position_loop(const Position *place); /* the region of the loop in which it is, -1: in none */
bool position_ended(const Position *place);
const Ring *ring_of_handle(const Machine *m, const Position *place, int handle);
int held_number(const Position *place, int handle); /* of the variable's stage, -1: none */
void held_drop(const Position *place, int index);   /* forgets a stage that is held */
/* Of the turn's next execution among those of all instances */
int turn_number(const Position *place, int turn);

#endif
