/* carried: private to check/: values that a block of a persistent grid takes from one tile into a later one.
 *   carried.c        the rule, and what it refuses
 *   carried_read.c   what an expression depends on; places of a tile that were written in this one of the grid
 *   carried_arms.c   arms of a condition that do the same with other rings
 *   carried_pipes.c  stages that belong to another tile of the grid; loops over the grid that are left */
#ifndef PIPEC_CARRIED_H
#define PIPEC_CARRIED_H

#include "check/passes.h"
#include "flow/solve.h"
#include "flow/touched.h"

typedef enum ObjectOf { OF_TILE, OF_LOCAL, OF_HANDLE } ObjectOf;

/* What holds a value from row to row: a tile, a variable, a stage variable. Numbered in this order. */
typedef struct Object {
    ObjectOf of;
    const char *name;
    Span span;
    const int64_t *extents; /* OF_TILE */
    int64_t elements;       /* that are told apart; 0: nothing is known of it, or needs to be */
    size_t first, words;    /* of its bits in a state */
    bool single;            /* a write sets all of it */
    Span written;           /* the last write in the loop over the grid */
} Object;

/* Two origins that are no objects and still count the tiles that the block took before: negative, as objects are numbered from 0 */
enum { OF_STAGES = -1, OF_TURNS = -2 };

/* Why a value may depend on the tiles of the grid that the block took before */
typedef struct Origin {
    int object; /* OF_STAGES: the number of a stage in its ring; OF_TURNS: the rank, of instances in turn */
    Span read;  /* where it was read; empty: not yet */
} Origin;

/* Elements of a tile that were written in this tile of the grid: by dimension one place, or all of lo .. hi */
typedef struct Place {
    int object, rank;
    const Poly *point[PROG_MAX_RANK]; /* NULL: lo .. hi, hi included */
    int64_t lo[PROG_MAX_RANK], hi[PROG_MAX_RANK];
} Place;

#define PLACES_MOST 8

typedef struct CarriedState {
    uint64_t *stale;        /* bits that may depend on earlier tiles of the grid */
    uint64_t *written;      /* bits that may have been written in the loop over the grid */
    const Origin **origins; /* by object: why, where a bit is stale */
    const Origin **control; /* by region, two: earlier tiles decide about its rows up to its END, or its NEXT */
    int place_count;
    Place places[PLACES_MOST];
} CarriedState;

typedef struct Carried {
    Arena *arena;
    const Prog *prog;
    Diags *diags;
    FlowCode *code;
    const Role *role;
    size_t count, words;
    Object *objects;
    Origin *crossed;        /* by object: it was written in an earlier tile, and is not read yet */
    const int *meetings;    /* by region: code_meetings */
    bool *same_arms;        /* by region of an IF: both arms do the same, with other rings */
    bool *unaligned;        /* by pipe: that is said apart */
    bool found;             /* something is to be refused */
    bool *reported; /* by object, and for OF_STAGES and OF_TURNS */
} Carried;

static inline int carried_local(const Carried *c, int local) { return (int)c->role->tiles.count + local; }
static inline int carried_handle(const Carried *c, int handle) {
    return (int)(c->role->tiles.count + c->role->locals.count) + handle;
}

/* The tile that an access names, where its elements are followed; else -1 */
int carried_tile(const Carried *c, const Access *access);

/* ---- carried_read.c ---------------------------------------------------------------------------------------------- */

/* NULL: the value is the same whatever tiles came before */
const Origin *carried_expr(Carried *c, const Flow *flow, const CarriedState *state, const IndexSpace *space,
                           Expr *expr);
const Origin *carried_access(Carried *c, const Flow *flow, const CarriedState *state, const IndexSpace *space,
                             const Access *access);
const Origin *carried_subscripts(Carried *c, const Flow *flow, const CarriedState *state, const IndexSpace *space,
                                 const Access *access);
void carried_add(uint64_t *bits, int64_t lo, int64_t hi); /* the elements from `lo` to before `hi` */
/* Which elements an access touches, each of them; false: not known */
bool carried_elements(const Carried *c, const Flow *flow, const IndexSpace *space, const Access *access,
                      uint64_t *bits);
/* The place that a write covers; false: it is none */
bool place_written(const Carried *c, const Flow *flow, const IndexSpace *space, const Access *access, Place *out);
bool place_holds(const Place *outer, const Place *inner);
bool places_disjoint(const Place *a, const Place *b);

/* ---- carried_arms.c ---------------------------------------------------------------------------------------------- */

/* Finds the IFs of the role whose arms do the same but for the rings that they use, where those hold the same. */
bool *carried_arms(Arena *arena, const Prog *prog, const FlowCode *code);

/* ---- carried_pipes.c --------------------------------------------------------------------------------------------- */

bool carried_in_grid(const FlowCode *code, int at);
/* Pipes of which the two ends count differently before the loop over the grid; leaves `unaligned`, by pipe */
bool *carried_pipes(Arena *arena, const Prog *prog, Diags *diags);
void carried_leaves(Carried *c); /* loops over the grid that one tile leaves */

#endif
