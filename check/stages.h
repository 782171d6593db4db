/* stages: private to check/stages*.c: the linear rule, one role at a time.
 *   stages.c          walks the statements of a role: branches join, loops restore, leaves let go
 *   stages_event.c    what may happen to a stage in which state, as a matrix, and what is said where it may not
 *   stages_path.c     paths as data
 *   stages_join.c     two paths that meet; several stages that one place forgets are one message
 *   stages_lag.c      how late a `consume` block releases
 *   hints.c           what `try` has found out is given to the next acquire
 *   roles.c, uniform.c  who acquires which end, under which control */
#ifndef PIPEC_STAGES_H
#define PIPEC_STAGES_H

#include "check/walk.h"

typedef enum StageState {
    STATE_FREE,     /* not acquired, or its scope has ended */
    STATE_HELD,     /* acquired by the flat form */
    STATE_BLOCK,    /* acquired by a block, which releases it */
    STATE_RELEASED,
    STATE_MOVED,
    STATE_POISON,   /* an error was reported: nothing more is said */
    STATE_COUNT
} StageState;

typedef enum StageEvent {
    EVENT_ACQUIRE,
    EVENT_USE,
    EVENT_RELEASE,
    EVENT_MOVE_OUT,
    EVENT_MOVE_IN,
    EVENT_SCOPE_END,
    EVENT_LEAVE,    /* break, continue or return out of its scope */
    EVENT_COUNT
} StageEvent;

/* Of one stage variable on one path */
typedef struct Hold {
    StageState state;
    Span since;        /* what put it into this state */
    Span acquired;     /* where the stage it holds, or held last, was acquired */
    int moved_to;      /* STATE_MOVED: the handle that took it over */
} Hold;

typedef struct HoldChunk HoldChunk;

typedef struct Path {
    bool live;         /* control gets here */
    bool expected;     /* not live, and no message about what follows */
    size_t count;      /* as Linear.scope when it was taken */
    int owner;
    size_t capacity;   /* in chunks */
    HoldChunk **chunks; /* stages_path.c */
} Path;

typedef struct Exit {  /* a leave on its way to the end of its target */
    Path path;
    Stmt *leave;
} Exit;

typedef struct Frame Frame;
struct Frame {         /* something that a leave may target */
    Frame *outer;
    Stmt *target;
    size_t depth;      /* scopes that the target found */
    VEC(Exit) exits;
};

typedef struct BlockUse { /* a `consume` block, for its lag */
    Stmt *stmt;
    int role;
    Stmt *loop;        /* whose body it stands in directly, or NULL */
    int held;          /* stages of the pipe held when it is acquired, this one included */
} BlockUse;

typedef struct Linear {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    int role_index;
    Role *role;
    VEC(int) scope;    /* handles in scope, outermost first */
    int *slot;         /* by handle: where in `scope`, -1: not in it */
    Path path;         /* the one being followed; holds as `scope` */
    int owners;        /* numbers that paths have taken */
    Frame *frame;
    Stmt *loop;        /* the innermost loop */
    bool direct;       /* the statement stands directly in that loop's body */
    Span left;         /* the last leave */
    Span *given;       /* by handle: where it was released or moved, on some path that left its scope since */
    bool differs;      /* the statement stands under control that differs between instances: uniformity says what is wrong there */
    Diag *refused;     /* by the last event that was */
    int *late;         /* by pipe: stages that lagging blocks of the loops around keep */
    VEC(const Stmt *) lagging; /* these blocks */
    bool *crowded;     /* by pipe: that too many are held was said */
    int *producer_most; /* by pipe: most stages that its producer holds at once; kept over all roles */
    VEC(BlockUse) blocks; /* kept over all roles */
} Linear;

/* ---- events ------------------------------------------------------------------------------------------------------- */

/* Something happens to a stage variable at `span`; a refusal is reported and poisons it. False after a refusal or on poison. */
bool stage_event(Linear *linear, int handle, StageEvent event, Span span);
void stage_fault(Linear *linear, int handle); /* something was said of this stage */
bool is_held(const Hold *hold);
const Hold *hold_of(const Linear *linear, int handle); /* NULL: not in scope */
Hold *hold_change(Linear *linear, int handle);          /* to be written, at once */
const char *word_of(End end);              /* "consume" */

/* ---- paths -------------------------------------------------------------------------------------------------------- */

Path path_new(Linear *linear);
Path path_copy(Linear *linear, Path *path, size_t count);
const Hold *path_hold(const Path *path, size_t slot);
Hold *path_change(Linear *linear, Path *path, size_t slot); /* to be written, before the next copy */
Hold *path_push(Linear *linear, Path *path);                /* one more variable in scope */
size_t path_differs(const Path *a, const Path *b, size_t slot, size_t count); /* the next that may differ; >= count: none */
/* What is true on both; stages held on one only are reported at `join`, the statement at whose end they meet: `then` and
 * `otherwise` of an S_IF, or the end of an S_BLOCK and a return */
Path path_join(Linear *linear, Path *a, Path *b, Stmt *join);
/* A path that ends an iteration (leave == NULL: at the end of the body) against the one that entered the loop */
void path_restored(Linear *linear, const Path *entry, Path *end, Stmt *loop, const Stmt *leave);

Span closing_of(const Stmt *stmt); /* its last character: the brace */

/* ---- lag ---------------------------------------------------------------------------------------------------------- */

void lag_written(Linear *linear, Stmt *stmt, bool direct); /* refuses one that cannot stand there */
void lags_derive(Linear *linear);

/* ---- hints --------------------------------------------------------------------------------------------------------- */

void hints_check(Arena *arena, Prog *prog, Diags *diags); /* no acquire comes between a `try` and the one it is for */

/* ---- roles and uniformity ----------------------------------------------------------------------------------------- */

bool words_failed(const Diags *diags);                       /* the text was not understood: statements may be missing */
void roles_check(Arena *arena, Prog *prog, Diags *diags);   /* who may acquire which end */
void uniform_check(Arena *arena, Prog *prog, Diags *diags); /* control around pipe operations is the same in all threads of a role */

#endif
