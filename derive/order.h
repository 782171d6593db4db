/* order: what an instance waits for before it accesses elements again, and which of its threads
 * accesses which element.
 *   order/order.c     what an instance waits for
 *   order/threads.c   how the elements of a statement are distributed over the threads
 *   order/places.c    accesses to tensors that the kernel writes
 *   order/disjoint.c  executions with disjoint elements */
#ifndef PIPEC_DERIVE_ORDER_H
#define PIPEC_DERIVE_ORDER_H

#include "derive/tiles.h"

/* ---- threads.c ------------------------------------------------------------------------------- */

/* True if `vector` elements along index `inner` of an access to a stage or `shared` tile, from a
 * multiple of it, are adjacent in memory, and aligned */
bool access_adjacent(const Prog *prog, const Role *role, const Access *access, int inner,
                     int vector);
/* Of a classified statement of threads or lanes */
Distribution distribution_of(Arena *arena, const Prog *prog, const Role *role, const Tile *tile);
/* True if both accesses, one of each statement, give each element to the same thread, where the
 * bases of their subscripts are equal */
bool distribution_same(const Site *one, const Access *a, const Site *two, const Access *b);

/* ---- places.c -------------------------------------------------------------------------------- */

#define PLACE_LOOPS 8 /* most enclosing loops of a statement */

typedef enum Transfer {
    TRANSFER_PLAIN, /* by the threads of the instance */
    TRANSFER_LANES, /* read by cp.async: done when the stage is full */
    /* read by the copy engine: the same; it does not see writes of threads without a fence */
    TRANSFER_LOADED,
    /* written by the copy engine: only the end of the kernel waits for it */
    TRANSFER_STORED
} Transfer;

/* An access to a tensor that the kernel writes */
typedef struct Place {
    const Role *role;
    int row;    /* of the role's Code: a TILE */
    Tile *tile; /* its statement */
    const Site *site;
    const Access *access;
    bool write;
    Transfer transfer;
    bool conditional; /* in an `if`, or in a loop with `where` */
    bool guarded;     /* only elements for which the statement's `where` holds are accessed */
    int loop_count;
    const Region *loops[PLACE_LOOPS]; /* around it, outermost first */
    struct RaceNotes *notes;          /* of the rule about races */
} Place;

typedef VEC(Place) Places;

/* Sorted by statement */
void places_find(Arena *arena, const Prog *prog, Places *places);

/* ---- disjoint.c ------------------------------------------------------------------------------ */

/* True if each subscript is a base plus multiples of its own indexes */
bool place_walks(const Place *place);
/* True if different executions access different elements, or the same threads the same ones in
 * order. `alone`: executions of one block */
bool place_disjoint(const Prog *prog, Algebra *algebra, const Place *place, bool alone);
/* True if executions that access one element have equal values of this variable */
bool place_determines(const Prog *prog, Algebra *algebra, const Place *place, int atom);
/* in a subscript; also if that is unknown */
bool place_mentions(Algebra *algebra, const Place *place, int atom);
/* True if executions of one block access different elements at the two places */
bool place_parts_disjoint(const Prog *prog, Algebra *algebra, const Place *a, const Place *b);
/* The same for all pairs of several places of one tensor; false: perhaps */
bool place_all_disjoint(const Prog *prog, Algebra *algebra, const Place *const *places,
                        size_t count);

/* ---- order.c --------------------------------------------------------------------------------- */

/* Sets RolePlan.order of each role. */
void order_find(Arena *arena, Prog *prog);
/* Sets RolePlan.stages of each role, as they are known from an equal Code */
void order_give(const Prog *prog, const StageOrder *stages);

#endif
