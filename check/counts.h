/* counts: private to check/: each pipe is acquired equally often at both of its ends.
 *   counts.c          each pipe and consumer: the same control, else equal counts, else a message
 *   counts_same.c     the control of two roles, side by side
 *   counts_formula.c  how often a role acquires an end, as a formula
 *   counts_text.c     how often, in words
 *   counts_sizes.c    sizes at which two roles acquire unequally often */
#ifndef PIPEC_COUNTS_H
#define PIPEC_COUNTS_H

#include "algebra/algebra.h"
#include "flow/slice.h"

/* What a role does with one end of a pipe: its acquires, and what decides how often they come */
typedef struct EndCode {
    const Role *role;
    FlowCode *slice;
} EndCode;

EndCode end_code(Arena *arena, const Role *role, int pipe, End end);
Span end_first(const EndCode *end);                    /* the first acquire; empty: there is none */
int end_leaves(const EndCode *end, const Row **first); /* LEAVEs, and the first of them */
/* A bound or condition of a row of the slice, in an algebra of all roles */
const Poly *end_poly(Arena *arena, const EndCode *end, int at, Expr *expr, Algebra *algebra);

/* ---- side by side ---------------------------------------------------------------------------- */

/* Certainly the same loops, conditions and leaves in the same order? `apart`: the first rows that
 * are not the same, -1: the end of a list */
bool counts_same(Arena *arena, Prog *prog, const EndCode *ends, int *apart);
/* The same, where one of them writes loops in pieces (pieces.h) */
bool counts_same_in_pieces(Arena *arena, Prog *prog, const EndCode *ends);

/* ---- formulas -------------------------------------------------------------------------------- */

typedef enum Emptiness { MAYBE_EMPTY, NONEMPTY, EMPTY } Emptiness;

/* Certainly equal? `known`: by domain, what is taken for granted */
bool counts_equal(Arena *arena, Prog *prog, const EndCode *ends, const Emptiness *known);
bool counts_nothing(Arena *arena, Prog *prog, const EndCode *end, const Emptiness *known);
/* Two numbers, in each tile of the grid, that are not equal; false: they are, or are none */
bool counts_constant(Arena *arena, const Prog *prog, const EndCode *ends, int64_t *acquired);
Expr *domain_nonempty(Arena *arena, const Prog *prog,
                      int domain); /* lo < hi, of symbols and axes */
/* expr >= 1, said simply: ceil(K, 64) >= 1 is K >= 1 */
Expr *positive(Arena *arena, Expr *expr);

/* ---- texts, sizes ---------------------------------------------------------------------------- */

const char *counts_text(Arena *arena, const Prog *prog,
                        const EndCode *end); /* NULL: not in words */
typedef struct Difference {
    Str where;           /* the sizes, and what memory holds; empty: anywhere */
    int64_t acquired[2]; /* at both ends */
    Span surplus;        /* the acquire of one end that is not matched by the other; empty: not known */
} Difference;

/* Sizes at which the two roles acquire the pipe unequally often; false: none are found */
bool counts_difference(Arena *arena, const Prog *prog, int pipe, const EndCode *ends, Difference *difference);

#endif
