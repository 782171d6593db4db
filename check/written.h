/* written: private to check/written*.c: what has been written, element by element, on the paths to each row. One rule over Code follows the
 * stages that a role produces (P0209, P0214 to P0217, P0309) and its tiles and variables (P0228).
 *   written.c          the rule: states, where paths meet, rows, which loops are followed trip by trip
 *   written_stage.c    what is written to a produced stage, and read of it
 *   written_verdict.c  what each release hands over
 *   written_tile.c     tiles and variables that are read; what was written under conditions
 *   written_loops.c    which loops are followed trip by trip, and which first iterations are told apart */
#ifndef PIPEC_WRITTEN_H
#define PIPEC_WRITTEN_H

#include "check/passes.h"
#include "derive/tiles.h"
#include "flow/elements.h"
#include "flow/solve.h"
#include "flow/touched.h"

#define WRITES_MOST 2048 /* into stages, of a loop that is followed trip by trip */

/* ---- states ---------------------------------------------------------------------------------------------------------------- */

typedef struct Mark Mark;
struct Mark { /* what one statement wrote into a stage, newest first; states share their lists */
    const Mark *before;
    const Site *site;
    const Elements *set;
    bool vague; /* where is not known: `set` is all it could be */
};

typedef struct Hold { /* a stage that is produced; never changed once it is shared */
    int pipe;
    int acquire; /* the row */
    bool poisoned;
    const Elements *must, *may; /* written on every path, on some path */
    const Elements *own;        /* by this instance's threads, on every path */
    const Elements *flying;     /* by copies that may still be under way */
    const Elements *fresh, *seen; /* written, and read, by threads that have not waited for one another since */
    int64_t bytes; /* that copies bring; where `differs`, on one of the paths */
    bool differs;  /* not the same on the paths that met */
    Span differs_at;
    bool open; /* not followed to the end */
    Span open_at;
    const Mark *marks;
} Hold;

/* Written as well, on the paths on which the condition of an IF holds or does not, or on which a loop has an iteration */
typedef struct Guard {
    int region, object;
    bool truth;
    const Elements *set;
} Guard;

/* Written at subscripts that are not known, but stay the same through an iteration */
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

typedef struct Holdings { /* the stages that are produced now, by handle; never changed */
    const Holding *items;
    size_t count;
} Holdings;

typedef struct State {
    Holdings holds;
    const Elements **must; /* by object: written on every path */
    bool shared;           /* others have the same list: it is copied before it changes */
    Guards guards;
    Slabs slabs;
    int arm; /* the ELSE, NEXT or LOOP that all its paths have passed last, since the IF or LOOP; -1: none */
} State;

/* ---- the rule -------------------------------------------------------------------------------------------------------------- */

typedef struct Object { /* a tile of the role, or a variable */
    const char *name;
    Span span;
    const RoleTile *tile; /* NULL: a variable */
    int64_t elements;     /* 0: not followed */
    bool said;
    bool any;             /* some statement before has written it: the last one there */
    Span written;
} Object;

typedef struct Record { /* what a row writes, as the last round meets it */
    int row, object;
    const Elements *set;
} Record;

typedef struct Finding { /* P0228, said after all that is wrong with stages */
    int object, row;
    Span at, written;
    bool any;
    int64_t element;
} Finding;

/* What every instance had written at one place of release */
typedef struct Release {
    int row;
    const Hold **holds; /* one an instance, NULL: never came here */
} Release;

typedef struct Said {
    int acquire, field;
} Said;

typedef struct Written {
    Tiles *tiles;
    Arena *arena;
    Role *role;
    FlowCode *code;
    Algebra *algebra;
    const Flow *flow; /* of the row that is looked at */
    int at;
    Object *objects; /* tiles, then locals */
    size_t count;
    struct LoopFacts *loops; /* by region */
    bool cut;    /* a loop has more iterations than are followed */
    bool beyond; /* a set of elements has too many spans */
    bool *skipped; /* by region of a loop: a path comes without an iteration */
    VEC(Record) records;
    VEC(Finding) findings;
    Release *releases; /* by row */
    VEC(Said) said;    /* of missing fields */
} Written;

const Hold *written_hold(const State *state, int handle); /* NULL: not held, or consumed */
Hold *written_change(Written *w, State *state, int handle); /* to be written at once */
void written_set(Written *w, State *state, int object, const Elements *must);

Touched written_touched(Written *w, const IndexSpace *space, const Access *access, Tiling tiling);
/* The result where it is known, else `otherwise`, and the role is not followed to its end */
const Elements *written_known(Written *w, const Elements *result, const Elements *otherwise);

/* ---- stages ---------------------------------------------------------------------------------------------------------------- */

int64_t written_field_elements(const Field *field);
int64_t written_field_start(const Pipe *pipe, int field);
Span written_place_of(const Written *w, int acquire);
const Hold *written_acquire(Written *w, int pipe, int acquire); /* NULL: a token, or too large to exist */
/* `to` itself where it says as much as the result */
const Hold *written_join_hold(Written *w, const Hold *to, const Hold *from, Span at);
void written_stage_row(Written *w, State *state, Site *site);
void written_judge(Written *w, size_t before); /* before: errors that were there when it began */
/* Was an error found in this text, among the first so many? Then statements may be missing, and what they would have written is not. */
bool tiles_reported(const Tiles *tiles, size_t before, Span span);

/* ---- tiles and variables --------------------------------------------------------------------------------------------------- */

void written_find_objects(Written *w);
void written_reads(Written *w, State *state, const Row *row);
void written_writes(Written *w, State *state, const Row *row);
void written_open(Written *w, State *state, int object);
void written_forget(Written *w, State *state, int region); /* what speaks of one iteration of the loop */
/* Paths `from` meet paths `to` at the end of an IF or loop: what is known of its condition is kept. Before their sets are joined */
void written_learn(Written *w, State *to, State *from, int at, int source);
void written_join_guards(Written *w, State *to, const State *from);
void written_report(Written *w);

/* ---- loops ----------------------------------------------------------------------------------------------------------------- */

void written_find_loops(Written *w);
bool written_decide_loop(Written *w, const Flow *flow, const State *state, int region);
bool written_follows(const Written *w, int region);
int written_trips(const Written *w, int region);

#endif
