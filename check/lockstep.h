/* lockstep: private to check/lockstep*.c: does anybody wait for ever, for some counts of the loops?
 *   lockstep.c         which pipes close a ring of roles, part by part; what is said
 *   lockstep_code.c    what a role does with the pipes of a part, as a list of steps
 *   lockstep_roll.c    loops that are written in several pieces, taken for one
 *   lockstep_clock.c   which loops and conditions of different roles are one and the same
 *   lockstep_state.c   one state: who can go on, what is decided, what a step changes
 *   lockstep_search.c  all states, each once
 *
 * Steps of one process are never undone by another's (see net.c), so one order of them stands for all: the roles are kept together, always
 * the one that is furthest behind goes on. What is not known are the decisions: does this loop go on, does this condition hold. A decision is
 * taken by the first who needs it, both ways, and kept for those who follow. States are compared as seen from the one furthest behind, so
 * that a loop comes back to where it was: then it is right however often it is gone round. */
#ifndef PIPEC_LOCKSTEP_H
#define PIPEC_LOCKSTEP_H

#include "algebra/algebra.h"
#include "check/counts.h"
#include "check/deadlock.h"
#include "prog/walk.h"

bool trace_check(Arena *arena, Prog *prog, Diags *diags); /* of trace.h */

#define DEPTH_MOST 8      /* loops in each other */
#define EXACT 2           /* iterations that are told apart from all later ones */
#define NEVER INT32_MAX
#define ALWAYS INT32_MIN

typedef struct Part {     /* roles that pipes connect in a ring, and these pipes */
    VEC(int) roles;
    VEC(int) pipes;
    bool **consumes;      /* by pipe of the kernel and role: the edge between producer and consumer belongs to this part; NULL: the pipe does not */
} Part;

/* ---- steps -------------------------------------------------------------------------------------------------------- */

typedef enum ActKind {
    ACT_ACQUIRE, ACT_RELEASE, ACT_MOVE, /* of a stage */
    ACT_KEEP,                    /* the end of a lagging block */
    ACT_FLUSH,                   /* what lagging blocks of a loop have kept */
    ACT_TAKE, ACT_PASS,         /* of a turn */
    ACT_ENTER, ACT_TEST, ACT_AGAIN, /* of a loop */
    ACT_ASK,                     /* goes to `to` where the condition does not hold */
    ACT_GOTO, ACT_END
} ActKind;

typedef struct Act {
    ActKind kind;
    int loop;             /* innermost around it, -1: none; ENTER, TEST, AGAIN: this one */
    int to;
    int handle, other;    /* slots of the member; MOVE: `handle` takes over from `other`; KEEP, FLUSH: `other` is the loop that the block stands in */
    int lag, turn;
    int number;           /* ASK: holds where the number is greater than `above`, or where it is not */
    int64_t above;
    bool negated;
    int counted;          /* ASK: 0, or 1 + the loop whose counter is compared: with times * number + `above` */
    Span place;
} Act;

typedef struct Bound {    /* a loop goes on while its counter is less than times * number + plus */
    int number, view;     /* -1: less than plus */
    int64_t times, plus;
} Bound;

#define BOUNDS_MOST 4

typedef struct Loop {     /* of a member */
    const Stmt *stmt;
    int begin, end;       /* its ENTER and its AGAIN */
    int outer, depth;     /* depth 1: the outermost */
    int track, group;     /* group: -1 where all bounds are constant */
    int arm;              /* what it stands in: loops of the same are gone through one after the other */
    int after;            /* the loop whose counter it goes on with: the next piece of a range; -1: none */
    bool left;            /* some break leaves it */
    int64_t first;        /* else its counter begins with this */
    int bound_count;
    Bound bounds[BOUNDS_MOST];
    bool constant;        /* one of them is constant */
    int64_t times;        /* of those that are not */
} Loop;

typedef struct Slot {     /* a stage variable of a member */
    int end;              /* 2 * pipe of the part + produces */
    int cursor;           /* which of the member's */
} Slot;

typedef struct Member {   /* a role, as far as a part concerns it */
    const Role *role;
    int processes;        /* one, or one an instance */
    VEC(Act) code;
    VEC(Loop) loops;
    VEC(Slot) slots;
    int *slot_of;         /* by handle */
    int cursors;          /* ends of pipes that it acquires */
    VEC(int) cursor_ends; /* by cursor, as in Slot */
    int rings;            /* stages that these have together: it can hold no more */
    int held;             /* by its variables, at most */
    int latest[DEPTH_MOST]; /* by depth less 1: 1 + the last loop so far, 0: none yet */
    int *carried;         /* by step: the loop whose counter is carried there to the next piece of its range, -1: none */
    int grid;             /* its loop over the grid, -1: none */
    int kept;             /* stages that lagging blocks keep at most */
} Member;

/* ---- clocks ------------------------------------------------------------------------------------------------------- */

typedef VEC(const Poly *) Polys;

typedef struct Track {    /* loops of several members that go round equally often with equal values, each once in an iteration of `outer` */
    int outer, depth;
    const Stmt *stmt;     /* of the first member */
    const Role *role;
    const Poly *lo, *hi;  /* in terms of the first members' loop variables */
    const Poly *base;     /* the loop variable is this and the counter */
    bool changes;         /* nobody else's loop is known to be the same */
    uint64_t pipes;       /* of the part, acquired or released in it */
    Loop shape;           /* bounds, group, times and first counter of its loops */
    int *loop;            /* by member, -1: none */
} Track;

typedef struct Number {   /* how often, or whether: the same for all who ask in the same iteration of `track` */
    const Poly *poly;
    int track;            /* -1: the same all the time */
    int where;            /* a range whose iterations are left out, -1: none */
    bool changes, grid;
    bool in_grid;         /* asked for in a loop over the grid */
    int counter;          /* the track whose loop variable it is, -1: of none */
    int32_t from;         /* less this */
    int32_t modulo;       /* 0, or: it is the rest of the loop variable, divided by this */
    int32_t low, high;    /* known at first: greater than low, not greater than high */
    int *last;            /* by member: the last step that asks, -1: none does */
} Number;

typedef struct View {     /* what coupled loops have found out of their number beyond EXACT */
    int number, group;
} View;

typedef struct Group {    /* coupled loops: their counters run together, and are counted from the one furthest behind */
    int outer;            /* the track around them */
    uint64_t pipes;
    int views;
    int *first, *last;    /* by member: of its loops, -1: none */
    int64_t period;       /* rests of the counters that somebody asks for */
    bool scaled;          /* some bound has its number several times */
    bool fixed;           /* they are counted from the start */
} Group;

typedef struct Rolled {   /* a loop that stands for several statements */
    Stmt *loop, *whole;   /* whole: in which these are */
} Rolled;

typedef struct Clocks {
    Arena *arena;
    const Prog *prog;
    const Part *part;
    Algebra *algebra[2];  /* outside of the grid, and in it: where no axis is empty */
    VEC(Track) tracks;
    VEC(Number) numbers;
    VEC(View) views;
    VEC(Group) groups;
    VEC(Member) members;
    bool rolls;           /* loops in several pieces are taken for one where they are */
    VEC(Rolled) rolled;
    long rolling;         /* steps compared for that, of this member */
    const char *beyond;   /* why this cannot be decided here, NULL: it can */
    Span beyond_at;
} Clocks;

bool member_compile(Clocks *clocks, int member); /* false: clocks->beyond says why */
int part_pipe(const Part *part, int pipe);       /* its number in the part, -1: not in it */
bool part_takes(const Part *part, const Prog *prog, const Role *role, int pipe, End end);
/* The statements of a list, with one loop for those that are pieces of one; of such a loop, and of any other: the statement that it stands for */
Stmts lockstep_roll(Clocks *clocks, int member, int around, const Stmts *list);
Stmt *lockstep_rolled_from(const Clocks *clocks, Stmt *loop);
Algebra *clocks_algebra(const Clocks *clocks, int member, int around);
/* The operands of a min or max of mins or maxs, else the formula itself */
void clocks_operands(Clocks *clocks, const Algebra *algebra, AtomKind kind, const Poly *poly, Polys *out);
/* Gives the loop its track, bounds and group; pipes: that are acquired in it, elsewhere: by the role outside of it */
void clocks_loop(Clocks *clocks, int member, Loop *loop, uint64_t pipes, uint64_t elsewhere);
/* Greater than 0 where the comparison of whole numbers holds, 0 where it asks for equality and they are equal; NULL: it is none */
const Poly *clocks_difference(Clocks *clocks, int member, int around, const Expr *condition);
const Poly *clocks_plus_one(Clocks *clocks, int member, int around, const Poly *poly);
/* A min or max in it: it is greater than 0 where `both` of the halves are, or one of them; false where there is none */
bool clocks_halves(Clocks *clocks, int member, int around, const Poly *poly, const Poly *halves[2], bool *both);
/* The question whether it is greater than 0, or whether a condition of any other kind holds; false: that is known, *holds */
bool clocks_positive(Clocks *clocks, int member, int around, const Poly *poly, Act *ask, bool *holds);
bool clocks_truth(Clocks *clocks, int member, int around, Expr *condition, Act *ask, bool *holds);

/* ---- states ------------------------------------------------------------------------------------------------------- */

typedef struct Fact {     /* of a number or, behind them, of a view, in one iteration */
    int32_t what;
    int32_t path[DEPTH_MOST];
    int32_t low, high;    /* greater than low, not greater than high */
} Fact;

#define FACTS_MOST 48

typedef struct State {
    int32_t *words;       /* where the processes are; see Layout in lockstep_state.c */
    uint8_t *bytes;       /* the rings */
    Fact *facts;
    int fact_count;
} State;

typedef struct Process {
    int member, instance; /* instance: ALL_INSTANCES, or the one that it is */
    int at;               /* of its words */
} Process;

typedef struct Ring {
    int stages, producers, consumers, window, base, at; /* base: the word that holds the number of the first stage; at: of its bytes */
} Ring;

typedef struct Machine {
    Arena *arena;
    const Clocks *clocks;
    VEC(Process) processes;
    Ring *rings;          /* by pipe of the part */
    int *passed;          /* by member: the word of its first turn */
    int words, bytes;
    int round;            /* iterations of the grid after which turns are as before */
    long steps;           /* taken so far */
    int states;           /* found by the search */
    const char *beyond;
    Fact open;            /* the decision that is needed: is it greater than `low`? */
    int decider;          /* the process that needed the last one, -1: none */
} Machine;

typedef enum Outcome { OUTCOME_OPEN, OUTCOME_ENDED, OUTCOME_STUCK, OUTCOME_BEYOND } Outcome;

Machine *lockstep_new(Arena *arena, const Clocks *clocks);
State lockstep_state(const Machine *machine);                  /* the first one, or room for one */
void lockstep_copy(const Machine *machine, State *to, const State *from);
Outcome lockstep_run(Machine *machine, State *state);           /* until a decision is needed */
void lockstep_decide(Machine *machine, State *state, const Fact *open, bool greater);
void lockstep_normalise(Machine *machine, State *state);
const Act *lockstep_waits(const Machine *machine, const State *state, int process); /* NULL: it has ended */

typedef enum Verdict { VERDICT_CLEAN, VERDICT_STUCK, VERDICT_BEYOND } Verdict;

Verdict lockstep_search(Machine *machine, State *stuck);

#endif
