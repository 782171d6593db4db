/* machine: processes over rings. A process runs a slice of a role's Code: a role is one process,
 * or one per instance if instances run independently. A ring hands over the stages of a pipe, by
 * number; a turn has one taker at a time.
 *
 * A stage is numbered and a token has one taker, so no step of one process disables a step of
 * another: one order of the steps represents all. The machine does not know conditions and
 * iteration counts: an oracle answers, from given sizes, or with both answers one after the
 * other. */
#ifndef PIPEC_FLOW_MACHINE_H
#define PIPEC_FLOW_MACHINE_H

#include "flow/slice.h"

#define ALL_INSTANCES (-1)

typedef enum Answer { ANSWER_NO, ANSWER_YES, ANSWER_OPEN } Answer;
typedef enum Outcome { OUTCOME_ENDED, OUTCOME_STUCK, OUTCOME_OPEN, OUTCOME_BEYOND } Outcome;

typedef struct Machine Machine;

/* Positions of all processes, and contents of the rings. Memory of fixed size, which can be
 * copied and compared. */
typedef struct State {
    int32_t *words;
    uint8_t *bytes;
    void *decided; /* data of the oracle */
} State;

typedef struct Member {   /* a role in the machine */
    const FlowCode *code; /* of the whole role, or a slice */
    const Role *role;
    int processes, first; /* number of processes, and index of the first */
    /* by handle: the cursor of the member that its acquire advances; -1: its pipe is not in the
     * machine */
    int *cursor;
    const Row **acquires; /* by handle: the first row that acquires to it; NULL: none */
    const Row **takes;    /* by turn, from 1: the first row that takes it */
    VEC(int) ends;        /* by cursor: 2 * ring + (1 for a producer) */
    int depth;            /* nesting depth of loops */
    int held, kept;       /* most stages in variables and in late sets */
    int grid;             /* its region of the loop over the grid, -1: none */
    int passed;           /* index of the word of its first turn */
} Member;

typedef struct Process {
    int member, instance; /* instance: ALL_INSTANCES, or its rank */
    int at;               /* index of its words */
} Process;

typedef struct Ring {
    /* producers, consumers: number of processes that take each stage */
    int pipe, stages, producers, consumers;
    int window; /* number of stages that are tracked at a time */
    /* base: word with the number of the first of them; at: its first byte */
    int base, at;
} Ring;

/* One process in one state: pointers to its words */
typedef struct Position {
    const Member *member;
    int process, instance;
    /* 2 * row, plus 1 at a LOOP whose next iteration is requested */
    int32_t *step;
    /* by depth of the loop, minus 1: iterations; the oracle may count differently */
    int32_t *trips;
    int32_t *cursors, *held_count, *held, *turned, *kept_count, *kept;
} Position;

enum { HELD_HANDLE, HELD_NUMBER, HELD_WORDS }; /* of each held stage, by handle */
enum { KEPT_LATE, KEPT_NUMBER, KEPT_WORDS };   /* of each stage in late sets, oldest first */

typedef enum EventKind { STEP_ACQUIRE, STEP_RELEASE, STEP_TAKE, STEP_PASS } EventKind;

typedef struct Event {
    EventKind kind;
    bool produce; /* end of the pipe */
    /* number of the stage, from 0; turn: its index from 0, and its number over all instances */
    int pipe, number;
    Span place;
    int row; /* in the member's Code */
} Event;

typedef struct Oracle {
    void *data;
    /* Start of a loop: returns its initial count; NULL: 0 */
    int32_t (*enter)(const Machine *m, const Position *place, int region);
    /* True if the loop has another iteration */
    Answer (*trip)(Machine *m, const State *state, const Position *place, int region);
    /* True if the condition of the IF holds */
    Answer (*holds)(Machine *m, const State *state, const Position *place, int region);
    /* True if an IF or loop with an open answer may be skipped; NULL: none */
    bool (*passes)(Machine *m, const Position *place, int region);
    /* Called for each other row, and for each LEAVE before it; NULL: not called */
    void (*row)(Machine *m, const State *state, const Position *place, const Row *row);
    /* Called after an action; NULL: not called */
    void (*event)(Machine *m, const State *state, const Position *place, const Event *event);
    /* True if `a` runs before `b`, up to the end of an iteration or turn; NULL: any process that
     * can */
    bool (*before)(const Machine *m, const State *state, const Position *a, const Position *b);
} Oracle;

struct Machine {
    Arena *arena;
    const Prog *prog;
    Oracle oracle;
    VEC(Member) members;
    VEC(Process) processes;
    VEC(Ring) rings;
    int *ring_of; /* by pipe, -1: not in the machine */
    int words, bytes;
    /* acquires and turns do not wait, and no stage is handed over */
    bool alone;
    /* a process whose next step is open stays there, and the others continue */
    bool halts;
    bool *halted;       /* by process */
    int *events;        /* by process: number of events */
    int events_most;    /* most events of a process; 0: no limit. It halts there. */
    Budget work;        /* when it is used up, the run is beyond */
    const char *beyond; /* reason why the run could not continue */
    int decider;        /* OUTCOME_OPEN: the process whose step is open */
};

/* In this order: machine_make, machine_add for each role, machine_lay_out, machine_state */
Machine *machine_make(Arena *arena, const Prog *prog, Oracle oracle, Budget work);
/* `several`: one process per instance */
void machine_add(Machine *m, const FlowCode *code, bool several);
/* `compact`: no member holds more stages than its rings have */
void machine_lay_out(Machine *m, bool compact);
State machine_state(const Machine *m); /* the initial one, or memory for one */

/* Copies a state */
void machine_copy(const Machine *m, State *to, const State *from);
/* Runs all processes until each has ended, waits or is open */
Outcome machine_run(Machine *m, State *state);
/* Runs one process to its end, without the others */
Outcome machine_run_alone(Machine *m, State *state, int process);

/* True if its instances run independently */
bool role_is_several(const Role *role);
Position machine_position(const Machine *m, const State *state, int process);
const Row *position_row(const Position *place);
int position_loop(const Position *place); /* the region of its present loop, -1: none */
bool position_ended(const Position *place);
/* The ring of the stage variable's pipe */
const Ring *ring_of_handle(const Machine *m, const Position *place, int handle);
int held_number(const Position *place, int handle); /* number of the variable's stage, -1: none */
void held_drop(const Position *place, int index);   /* removes a held stage */
/* Number of the turn's next execution over all instances */
int turn_number(const Position *place, int turn);

#endif
