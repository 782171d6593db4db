/* linear: private to check/linear*.c: the linear rule, one role at a time.
 *   linear.c        the rule: which rows are which events
 *   linear_event.c  what may happen to a stage in which state, as a matrix, and the messages
 *   linear_join.c   paths that meet; several stages that one place forgets are one message
 *   linear_path.c   states, which share what they have in common
 *   reached.c       statements that no path reaches */
#ifndef PIPEC_LINEAR_H
#define PIPEC_LINEAR_H

#include "check/passes.h"
#include "flow/solve.h"

typedef enum StageState {
    STATE_FREE,  /* not acquired yet */
    STATE_HELD,  /* acquired by the flat form */
    STATE_BLOCK, /* acquired by a block, which releases it */
    STATE_RELEASED,
    STATE_MOVED,
    STATE_POISON, /* an error was reported: nothing more is said */
    STATE_COUNT
} StageState;

typedef enum StageEvent {
    EVENT_ACQUIRE,
    EVENT_USE,
    EVENT_RELEASE,
    EVENT_MOVE_OUT,
    EVENT_MOVE_IN,
    EVENT_SCOPE_END,
    EVENT_LEAVE, /* break, continue or return out of its scope */
    EVENT_COUNT
} StageEvent;

/* Of one stage variable on one path. Two of them are the same where both are held, both are not, or
 * both are poison; the rest is for messages. Rows are kept in place of spans. */
typedef struct Hold {
    StageState state;
    int handle;
    int since;    /* the row that put it into this state */
    int acquired; /* the row at which the stage that it holds, or held last, was acquired */
    int moved_to; /* STATE_MOVED: the handle that took it over */
} Hold;

typedef struct HoldChunk HoldChunk;

typedef struct Path { /* a state of the rule: the variables in scope, outermost first */
    size_t count;
    int *owner;         /* changed by copying too: what has been written is shared from there on */
    size_t capacity;    /* in chunks */
    HoldChunk **chunks; /* linear_path.c */
} Path;

typedef struct Use {
    int handle;
    Span span;
} Use;

typedef VEC(Use) Uses;

typedef struct Linear {
    Arena *arena;
    Prog *prog;
    FlowCode *code;
    const Role *role;
    Diags *diags;
    int *slot;     /* by handle: its place in the scope, -1: it never has one */
    bool *differs; /* by region: under control that differs between instances: uniformity says what
                      is wrong there */
    Uses *uses;    /* by row: the stages that it reads or writes */
    int owners;    /* numbers that paths have taken */
    bool last;     /* the round that reports */
    bool unproved; /* the end of an iteration came without how it began */
    int *given;    /* by handle: the row that released or moved it, on some path that left its scope
                      since; -1: none */
    Diag *refused; /* by the last event that was */
    const Stmt *leave; /* the last leave that dropped a stage, and what was said of it */
    Diag *dropped;
    int dropped_last; /* the last handle that it names */
    bool *reached;    /* by row: some path gets there */
    bool *drops;      /* by row: LEAVE: a stage is dropped there */
} Linear;

/* ---- events ---------------------------------------------------------------------------------- */

/* Something happens to a stage variable at `span`, in row `at`; a refusal is reported and poisons
 * it. False after a refusal or on poison. */
bool linear_event(Linear *linear, Path *path, int handle, StageEvent event, int at, Span span);
void linear_fault(Linear *linear, int handle); /* something was said of this stage */
bool is_held(const Hold *hold);
const Hold *linear_hold(const Linear *linear, const Path *path,
                        int handle);                         /* NULL: not in scope */
Hold *linear_change(Linear *linear, Path *path, int handle); /* to be written, at once */
Span linear_span(const Linear *linear, int row);

/* ---- paths ----------------------------------------------------------------------------------- */

Path *path_new(Linear *linear);
Path *path_copy(Linear *linear, const Path *path);
const Hold *path_hold(const Path *path, size_t slot);
Hold *path_change(Linear *linear, Path *path,
                  size_t slot);              /* to be written, before the next copy */
Hold *path_push(Linear *linear, Path *path); /* one more variable in scope */
size_t path_differs(const Path *a, const Path *b, size_t slot,
                    size_t count); /* the next that may differ; >= count: none */
bool path_join(Linear *linear, Path *to,
               const Path *from); /* what is true on both; true: `to` has changed */

/* Reports stages that are held on some of the paths that meet at a row only, and what an iteration
 * does not restore. */
void linear_meets(Linear *linear, int at, Path *const *paths, const int *sources, size_t count);

void linear_reached(Linear *linear); /* refuses what no path reaches */

#endif
