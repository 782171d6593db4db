/* check, private: each pipe is acquired equally often at both of its ends.
 *   counts.c          each pipe and consumer: the same control, otherwise equal counts, otherwise a
 *                     message
 *   counts_same.c     compares the control of two roles
 *   counts_formula.c  the number of acquires of an end, as a formula
 *   counts_text.c     the number of acquires, as text
 *   counts_sizes.c    sizes at which two roles acquire unequally often */
#ifndef PIPEC_COUNTS_H
#define PIPEC_COUNTS_H

#include "algebra/algebra.h"
#include "flow/slice.h"

/* A role and one end of a pipe: its acquires, and the control that decides their number */
typedef struct EndCode {
    const Role *role;
    FlowCode *slice;
} EndCode;

EndCode end_code(Arena *arena, const Role *role, int pipe, End end);
Span end_first(const EndCode *end);                    /* the first acquire; empty: none */
int end_leaves(const EndCode *end, const Row **first); /* number of LEAVEs, and the first of them */
/* The formula of a bound or condition of a row of the slice, in an algebra of all roles */
const Poly *end_poly(Arena *arena, const EndCode *end, int at, Expr *expr, Algebra *algebra);

/* ---- comparison of control ------------------------------------------------------------------- */

/* True if both have the same loops, conditions and leaves in the same order. `first_difference`:
 * the first rows that differ, -1: the end of a list */
bool counts_same(Arena *arena, Prog *prog, const EndCode *ends, int *first_difference);
/* The same, if one of them has loops in pieces (pieces.h) */
bool counts_same_in_pieces(Arena *arena, Prog *prog, const EndCode *ends);

/* ---- formulas -------------------------------------------------------------------------------- */

typedef enum Emptiness { MAYBE_EMPTY, NONEMPTY, EMPTY } Emptiness;

/* True if the counts are proved equal. `known`: by domain, assumptions */
bool counts_equal(Arena *arena, Prog *prog, const EndCode *ends, const Emptiness *known);
/* The same if no sum or difference in them needs more bits than its type has */
bool counts_equal_unless_wraps(Arena *arena, Prog *prog, const EndCode *ends);
bool counts_nothing(Arena *arena, Prog *prog, const EndCode *end, const Emptiness *known);
/* Two different constant counts per tile of the grid; false: equal, or not constant */
bool counts_constant(Arena *arena, const Prog *prog, const EndCode *ends, int64_t *acquired);
/* lo < hi, of symbols and axes */
Expr *domain_nonempty(Arena *arena, const Prog *prog, int domain);
/* expr >= 1 in a simpler form: ceil(K, 64) >= 1 is K >= 1 */
Expr *positive(Arena *arena, Expr *expr);

/* ---- text, sizes ----------------------------------------------------------------------------- */

/* NULL: has no text */
const char *counts_text(Arena *arena, const Prog *prog, const EndCode *end);
typedef struct Difference {
    Str where;           /* the sizes, and contents of memory; empty: any */
    int64_t acquired[2]; /* at both ends */
    Span surplus;        /* the acquire of one end without a match at the other; empty: unknown */
} Difference;

/* Sizes at which the two roles acquire the pipe unequally often; false: none were found */
bool counts_difference(Arena *arena, const Prog *prog, int pipe, const EndCode *ends,
                       Difference *difference);

#endif
