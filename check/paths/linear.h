/* linear, check private: the linear rule, one role at a time.
 *   linear.c        the rule: which rows are which events
 *   linear_event.c  transitions of a stage's state as a matrix, and the messages
 *   linear_join.c   joins; several stages lost at one place are one message
 *   linear_path.c   states, which share memory
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
    STATE_POISON, /* an error was reported: no further ones */
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

/* The state of one stage variable on one path. Two are equal if both are held, both are not, or
 * both are poison; the other fields are for messages. Rows are stored instead of spans. */
typedef struct Hold {
    StageState state;
    int handle;
    int since;    /* the row that set this state */
    int acquired; /* the acquire of the stage that it holds, or held last */
    int moved_to; /* STATE_MOVED: the handle that has the stage */
} Hold;

typedef struct HoldChunk HoldChunk;

typedef struct Path { /* a state of the rule: the variables in scope, outermost first */
    size_t count;
    int *owner;         /* changed by copying too: later writes must copy chunks */
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
    int *slot; /* by handle: its index in the scope, -1: none */
    /* by region: under control that differs between instances, which uniform reports */
    bool *differs;
    Uses *uses; /* by row: the stages that it reads or writes */
    int owners; /* number of owner ids used by paths */
    bool last;  /* the last round, which reports */
    /* by handle: the row that released or moved it, on some path that has left its scope since;
     * -1: none */
    int *given;
    Diag *refused;     /* by the last refused event */
    const Stmt *leave; /* the last leave that dropped a stage, and its message */
    Diag *dropped;
    int dropped_last; /* the last handle named in it */
    bool *reached;    /* by row: some path reaches it */
    bool *drops;      /* by row: LEAVE: a stage is dropped there */
} Linear;

/* ---- events ---------------------------------------------------------------------------------- */

/* Applies an event at `span`, in row `at`, to a stage variable; a refusal is reported and
 * poisons it. False after a refusal or on poison. */
bool linear_event(Linear *linear, Path *path, int handle, StageEvent event, int at, Span span);
void linear_fault(Linear *linear, int handle); /* an error about this stage was reported */
static inline bool is_held(const Hold *hold) {
    return hold->state == STATE_HELD || hold->state == STATE_BLOCK;
}
/* NULL: not in scope */
const Hold *linear_hold(const Linear *linear, const Path *path, int handle);
Hold *linear_change(Linear *linear, Path *path, int handle); /* for an immediate write */
Span linear_span(const Linear *linear, int row);

/* ---- paths ----------------------------------------------------------------------------------- */

Path *path_new(Linear *linear);
Path *path_copy(Linear *linear, const Path *path);
const Hold *path_hold(const Path *path, size_t slot);
/* for a write, before the next copy */
Hold *path_change(Linear *linear, Path *path, size_t slot);
Hold *path_push(Linear *linear, Path *path); /* adds a variable to the scope */
/* the next one that may differ; >= count: none */
size_t path_differs(const Path *a, const Path *b, size_t slot, size_t count);
/* keeps the facts that hold on both */
bool path_join(Linear *linear, Path *to, const Path *from);

/* Reports stages that are held on only some of the paths that meet at a row, and those that an
 * iteration does not restore. */
void linear_meets(Linear *linear, int at, Path *const *paths, const int *sources, size_t count);

void linear_reached(Linear *linear); /* refuses statements that no path reaches */

#endif
