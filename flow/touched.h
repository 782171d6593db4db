/* Touched: elements of a stage or tile that an access reaches over its indexes, if the bases of
 * its subscripts are known. */
#ifndef PIPEC_FLOW_TOUCHED_H
#define PIPEC_FLOW_TOUCHED_H

#include "flow/code.h"
#include "flow/context.h"
#include "flow/elements.h"

typedef struct Standing { /* position of the access, on the paths of a case */
    const Context *context;
    const FlowCode *code;
    int at; /* the row; -1: ignores enclosing loops */
} Standing;

typedef struct Tiling { /* numbering of the elements */
    int rank;
    const int64_t *extents;
    int64_t tiles; /* number of tiles of an array field */
    int64_t start; /* number of the first element */
} Tiling;

typedef struct Touched {
    /* elements that it may reach; NULL: a set of too many spans */
    const Elements *all;
    bool exact; /* it reaches all of these */
    /* if only bases of subscripts are unknown: the elements for bases of 0; otherwise NULL */
    const Elements *within;
    /* bases of dimensions, for `within`, which do not change in an iteration; NULL: known */
    const Poly *bases[PROG_MAX_RANK + 1];
} Touched;

/* The elements that an access reaches over the indexes of its space */
Touched touched(Arena *arena, const Standing *place, const IndexSpace *space, const Access *access,
                const Tiling *tiling);

#endif
