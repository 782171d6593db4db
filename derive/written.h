/* written: elements written on the paths to each row. One rule over Code follows the stages that a
 * role produces, and its tiles and variables. Its facts are the order of statements that access
 * stages, and the bytes of stages (StageOrder); check/paths/ states verdicts about what it finds.
 *   written/written.c        the rule: joins, rows
 *   written/written_state.c  states
 *   written/written_stage.c  writes to a produced stage, and reads of it
 *   written/written_tile.c   reads of tiles and variables; writes under conditions
 *   written/written_loops.c    loops that are followed iteration by iteration, and first iterations
 * that are distinguished */
#ifndef PIPEC_DERIVE_WRITTEN_H
#define PIPEC_DERIVE_WRITTEN_H

#include "derive/order.h"
#include "flow/elements.h"
#include "flow/solve.h"
#include "flow/touched.h"

/* most writes to stages in a loop that is followed iteration by iteration */
#define WRITES_MOST 2048

/* ---- states ---------------------------------------------------------------------------------- */

typedef struct Mark Mark;
/* the elements that one statement wrote into a stage, newest first; states share their lists */
struct Mark {
    const Mark *before;
    const Site *site;
    const Elements *set;
    bool vague; /* the elements are unknown: `set` is an upper bound */
};

typedef struct Hold { /* a produced stage; immutable once it is shared */
    int pipe;
    int acquire; /* its row */
    bool poisoned;
    const Elements *must, *may; /* written on every path, on some path */
    const Elements *own;        /* by this instance's threads, on every path */
    const Elements *flying;     /* by copies that may still be in flight */
    /* written, and read, by threads that have not synchronised since */
    const Elements *fresh, *seen;
    int64_t bytes; /* bytes of copies; if `differs`, on one of the paths */
    bool differs;  /* differs between the paths that joined */
    Span differs_at;
    bool open; /* not followed to the end */
    Span open_at;
    const Mark *marks;
} Hold;

/* Also written on the paths on which the condition of an IF is true or false, or on which a loop
 * has an iteration */
typedef struct Guard {
    int region, object;
    bool truth;
    const Elements *set;
} Guard;

/* Written at subscripts that are unknown, but do not change in an iteration */
typedef struct Slab {
    int made, object; /* made: the row */
    const Elements *within;
    const Poly *const *bases; /* as in Touched */
} Slab;

typedef struct Guards {
    const Guard *const *items;
    size_t count;
} Guards;

typedef struct Slabs {
    const Slab *const *items;
    size_t count;
} Slabs;

typedef struct Holding {
    int handle;
    const Hold *hold;
} Holding;

typedef struct Holdings { /* the stages produced at present, by handle; immutable */
    const Holding *items;
    size_t count;
} Holdings;

typedef struct State {
    Holdings holds;
    const Elements **must; /* by object: written on every path */
    bool shared;           /* other states have the same list: copied before a change */
    Guards guards;
    Slabs slabs;
    /* the ELSE, NEXT or LOOP that all its paths have passed last, since the IF or LOOP; -1: none */
    int arm;
} State;

/* ---- the rule -------------------------------------------------------------------------------- */

typedef struct Object { /* a tile of the role, or a variable */
    const char *name;
    Span span;
    const RoleTile *tile; /* NULL: a variable */
    int64_t elements;     /* 0: not followed */
    bool reported;
    bool any; /* some earlier statement has written it: the last one */
    Span written;
} Object;

typedef struct Record { /* elements written by a row, in the last round */
    int row, object;
    const Elements *set;
    size_t before; /* 1 + the record of the row before it; 0: none */
} Record;

typedef struct Finding { /* a read of a tile or variable that may have no value */
    int object, row;
    Span at, written;
    bool any, kept; /* kept: read by `where` */
    int64_t element;
} Finding;

typedef enum StageFaultKind {
    FAULT_TWICE,    /* written a second time, and nothing orders the two writes */
    FAULT_NO_VALUE, /* `+=` to elements without a value */
    FAULT_UNWRITTEN /* read before it is written */
} StageFaultKind;

typedef struct StageFault { /* of a statement that accesses a stage */
    StageFaultKind kind;
    const Site *site;
    const Hold *hold;   /* before it */
    const Access *read; /* UNWRITTEN */
    int64_t element;    /* UNWRITTEN: the first one that is not written */
    const Mark *first;  /* TWICE: the first write */
    bool exact;         /* TWICE: the elements that the second one writes are known */
} StageFault;

/* Elements written by every instance at one release */
typedef struct Release {
    int row;
    const Hold **holds; /* one per instance, NULL: never reached */
} Release;

typedef struct Written {
    Tiles *tiles;
    Arena *arena;
    Role *role;
    FlowCode *code;
    Algebra *algebra;
    const Flow *flow; /* of the present row */
    int at;
    Object *objects; /* tiles, then locals */
    size_t count;
    struct LoopFacts *loops; /* by region */
    bool cut;                /* a loop has more iterations than are followed */
    bool beyond;             /* a set of elements has too many spans */
    bool *skipped;           /* by region of a loop: some path has no iteration */
    VEC(Record) records;
    size_t *recorded; /* by row: 1 + its newest record, 0: none */
    VEC(Finding) findings;
    VEC(StageFault) faults;
    Release *releases; /* by row */
    bool *waits;       /* by row, as in StageOrder */
} Written;

/* Follows a role; sets RolePlan.stages. NULL: it has no statements */
Written *written_follow(Arena *arena, Tiles *tiles, Role *role);

const Hold *written_hold(const State *state, int handle);   /* NULL: not held, or consumed */
Hold *written_change(Written *w, State *state, int handle); /* for an immediate write */
void written_keep(Written *w, State *state, int handle, const Hold *hold); /* NULL: not held */
void written_set(Written *w, State *state, int object, const Elements *must);

Touched written_touched(Written *w, const IndexSpace *space, const Access *access, Tiling tiling);
/* The result if it is known, otherwise `otherwise`, and the role is not followed to its end */
const Elements *written_known(Written *w, const Elements *result, const Elements *otherwise);

/* ---- stages ---------------------------------------------------------------------------------- */

int64_t written_field_elements(const Field *field);
int64_t written_field_start(const Pipe *pipe, int field);
Span written_place_of(const Written *w, int acquire);
/* NULL: a token, or too large to exist */
const Hold *written_acquire(Written *w, int pipe, int acquire);
/* `to` itself where it says as much as the result */
const Hold *written_join_hold(Written *w, const Hold *to, const Hold *from, Span at);
void written_stage_row(Written *w, State *state, const Site *site);

/* ---- tiles and variables --------------------------------------------------------------------- */

void written_find_objects(Written *w);
void written_reads(Written *w, State *state, const Row *row);
void written_writes(Written *w, State *state, const Row *row);
void written_open(Written *w, State *state, int object);
/* removes facts about one iteration of the loop */
void written_forget(Written *w, State *state, int region);
/* Paths `from` join paths `to` at the end of an IF or loop: keeps what is known of its
 * condition. Called before their sets are joined */
void written_learn(Written *w, State *to, State *from, int at, int source);
void written_join_guards(Written *w, State *to, const State *from);

/* ---- loops ----------------------------------------------------------------------------------- */

void written_find_loops(Written *w);
bool written_decide_loop(Written *w, const Flow *flow, const State *state, int region);
bool written_follows(const Written *w, int region);
int written_trips(const Written *w, int region);

#endif
