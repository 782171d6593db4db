/* check, private: values that a block of a persistent grid carries from one tile to a later one.
 *   carried.c        the rule, and its messages
 *   carried_read.c   dependences of expressions; places of a tile written in the present tile
 *                    of the grid
 *   carried_arms.c   arms of a condition that do the same with different rings
 *   carried_same.c   statements that do the same in all tiles
 *   carried_pipes.c  stages of another tile of the grid; early exits of loops over the grid */
#ifndef PIPEC_CARRIED_H
#define PIPEC_CARRIED_H

#include "check/passes.h"
#include "flow/solve.h"
#include "flow/touched.h"

typedef enum ObjectOf { OF_TILE, OF_LOCAL, OF_HANDLE } ObjectOf;

/* An object that holds a value: a tile, a variable, a stage variable. Numbered in this order. */
typedef struct Object {
    ObjectOf of;
    const char *name;
    Span span;
    const int64_t *extents; /* OF_TILE */
    int64_t elements;       /* that are distinguished; 0: its content is unknown or irrelevant */
    size_t first, words;    /* range of its bits in a state */
    bool single;            /* a write sets all of it */
    Span written;           /* the last write in the loop over the grid */
} Object;

/* Two origins that are no objects but depend on earlier tiles of the block: negative, because
 * objects are numbered from 0 */
enum { OF_STAGES = -1, OF_TURNS = -2 };

/* The reason why a value may depend on earlier tiles of the block */
typedef struct Origin {
    /* OF_STAGES: the number of a stage in its ring; OF_TURNS: the rank, for instances in turn */
    int object;
    Span read; /* the read; empty: none yet */
} Origin;

/* Elements of a tile that were written in the present tile of the grid: one position or a range
 * for each dimension */
typedef struct Place {
    int object, rank;
    const Poly *point[PROG_MAX_RANK]; /* NULL: lo .. hi, inclusive */
    int64_t lo[PROG_MAX_RANK], hi[PROG_MAX_RANK];
} Place;

#define PLACES_MOST 8

typedef struct CarriedState {
    uint64_t *stale;        /* bits that may depend on earlier tiles of the grid */
    uint64_t *written;      /* bits that may have been written in the loop over the grid */
    const Origin **origins; /* by object: the reason, if a bit is stale */
    /* by region, two: control of its rows up to its END, or its NEXT, depends on earlier tiles */
    const Origin **control;
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
    Origin *crossed;     /* by object: it was written in an earlier tile, and not read yet */
    const int *meetings; /* by region: code_meetings */
    bool *same_arms;     /* by region of an IF: both arms do the same, with different rings */
    bool *unaligned;     /* by pipe: reported separately */
    bool found;          /* there is something to refuse */
    bool *reported;      /* by object, and for OF_STAGES and OF_TURNS */
} Carried;

static inline int carried_local(const Carried *c, int local) {
    return (int)c->role->tiles.count + local;
}
static inline int carried_handle(const Carried *c, int handle) {
    return (int)(c->role->tiles.count + c->role->locals.count) + handle;
}

/* The tile that an access names, if its elements are distinguished; otherwise -1 */
int carried_tile(const Carried *c, const Access *access);

/* ---- carried_read.c -------------------------------------------------------------------------- */

/* NULL: the value does not depend on earlier tiles */
const Origin *carried_expr(Carried *c, const Flow *flow, const CarriedState *state,
                           const IndexSpace *space, Expr *expr);
const Origin *carried_access(Carried *c, const Flow *flow, const CarriedState *state,
                             const IndexSpace *space, const Access *access);
const Origin *carried_subscripts(Carried *c, const Flow *flow, const CarriedState *state,
                                 const IndexSpace *space, const Access *access);
/* the elements from `lo` to `hi`, exclusive */
void carried_add(uint64_t *bits, int64_t lo, int64_t hi);
/* The exact elements that an access reaches; false: unknown */
bool carried_elements(const Carried *c, const Flow *flow, const IndexSpace *space,
                      const Access *access, uint64_t *bits);
/* The place that a write covers; false: not of this form */
bool place_written(const Carried *c, const Flow *flow, const IndexSpace *space,
                   const Access *access, Place *out);
bool place_holds(const Place *outer, const Place *inner);
bool places_disjoint(const Place *a, const Place *b);

/* ---- carried_arms.c -------------------------------------------------------------------------- */

/* Finds the IFs of the role whose arms do the same with different rings of equal contents. */
bool *carried_arms(Arena *arena, const Prog *prog, const FlowCode *code);

/* ---- carried_same.c -------------------------------------------------------------------------- */

/* True if the expression has the same value in all tiles of the grid; NULL: yes */
bool carried_is_same(Arena *arena, const Role *role, Expr *expr);
/* True if the TILE is executed in each tile of the grid, or after all of them, and writes the same
 * values to the same elements, whatever the tile */
bool carried_writes_same(Arena *arena, const FlowCode *code, int at);
/* True if all stages of the pipe get the same contents */
bool carried_fills_same(Arena *arena, const FlowCode *producer, int pipe);

/* ---- carried_pipes.c ------------------------------------------------------------------------- */

/* Pipes whose two ends count differently before the loop over the grid; sets `unaligned`, by
 * pipe */
bool *carried_pipes(Arena *arena, const Prog *prog, Diags *diags);
void carried_leaves(Carried *c); /* loops over the grid that a tile may leave early */

#endif
