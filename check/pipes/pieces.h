/* pieces, check private: loops that a role writes in several pieces with different rows:
 *   a first iteration before the others   if lo < hi { rows } for k in lo + 1 .. hi { rows }
 *   consecutive ranges
 *       for k in lo .. min(mid, hi) { rows } for k in mid .. hi { rows }
 *   live iterations by number, of a range with a `where`    [0 .. 2], [2 .. 5], from 5
 * A loop over the whole range can be divided at any iteration without changing its effect. So
 * the loops of the other roles are divided where one role divides its own, and then the roles
 * have the same loops. */
#ifndef PIPEC_CHECK_PIECES_H
#define PIPEC_CHECK_PIECES_H

#include "algebra/algebra.h"
#include "flow/code.h"

typedef VEC(const Poly *) Polys;

/* The operands of nested mins or maxs (kind), otherwise the formula itself */
void poly_operands(Arena *arena, const Algebra *algebra, AtomKind kind, const Poly *poly,
                   Polys *out);

/* True if there is at most one iteration: lo .. min(lo + 1, ..) */
bool range_is_once(Arena *arena, Algebra *algebra, const Poly *lo, const Poly *hi);

/* Removes the `to` of a piece that is proved to reach the end of its range: live iterations [2
 * .. K] of 0 .. K. */
void pieces_open(Arena *arena, FlowCode *slice);

/* Divides the loops of all slices, of different roles, where one of them has pieces; their
 * effect does not change. False: no slice was changed. All roles share the algebra. */
bool pieces_cut(Arena *arena, Algebra *algebra, FlowCode **slices, size_t count);

#endif
