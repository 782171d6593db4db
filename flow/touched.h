/* Touched: the elements of a stage or tile that an access touches over its indexes, as far as the bases of its subscripts are known. */
#ifndef PIPEC_FLOW_TOUCHED_H
#define PIPEC_FLOW_TOUCHED_H

#include "flow/code.h"
#include "flow/context.h"
#include "flow/elements.h"

typedef struct Standing { /* where the access stands, on the paths of a case */
    const Context *context;
    const FlowCode *code;
    int at; /* the row; -1: loops around it are not looked at */
} Standing;

typedef struct Tiling { /* how elements are numbered */
    int rank;
    const int64_t *extents;
    int64_t tiles; /* of an array field */
    int64_t start; /* number of the first element */
} Tiling;

typedef struct Touched {
    const Elements *all;     /* that it may touch; NULL: a set of too many spans */
    bool exact;              /* it touches all of these */
    const Elements *within;  /* where only the bases of subscripts are not known: the elements for bases of 0; else NULL */
    const Poly *bases[PROG_MAX_RANK + 1]; /* of dimensions, for `within`: they stay the same through an iteration; NULL: known */
} Touched;

Touched touched(Arena *arena, const Standing *place, const IndexSpace *space, const Access *access, const Tiling *tiling);

#endif
