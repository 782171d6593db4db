/* again: what is known of a value that a role reads from memory a second time. */
#ifndef PIPEC_FLOW_AGAIN_H
#define PIPEC_FLOW_AGAIN_H

#include "algebra/algebra.h"
#include "flow/code.h"

/* The atom has this value. */
typedef struct Same {
    int atom;
    const Poly *value;
} Same;

typedef struct Again {
    Arena *arena;
    FlowCode *code;
    int at; /* the row whose reads are collected */
    VEC(struct Seen) seen;
    VEC(Same) same;
    VEC(struct Answer) answers;
} Again;

/* At a row, in formulas of the role's algebra: a read of memory that may change has the value of an
 * earlier read of the same element, if nothing writes it in between, and a variable has the value
 * that a row set it to. */
Again again_find(Arena *arena, FlowCode *code, int at);
/* The formula with these values; NULL: too large */
const Poly *again_poly(const Again *again, const Poly *poly);
/* Assumes the facts of the path since then once more, with these values. Undone by algebra_undo. */
void again_assume(const Again *again, PathMark since);

#endif
