/* pieces: private to check/: loops that a role writes in several pieces, with other rows in each:
 *   a first iteration before the others   if lo < hi { rows } for k in lo + 1 .. hi { rows }
 *   ranges that follow each other
 *       for k in lo .. min(mid, hi) { rows } for k in mid .. hi { rows }
 *   live iterations by number, of a range with a `where`    [0 .. 2], [2 .. 5], from 5
 * A loop over the whole range may be cut in two at any of its iterations and does the same. So the
 * loops of the other roles are cut where one role cuts its own, and then the roles have the same
 * loops. */
#ifndef PIPEC_CHECK_PIECES_H
#define PIPEC_CHECK_PIECES_H

#include "algebra/algebra.h"
#include "flow/code.h"

typedef VEC(const Poly *) Polys;

/* The operands of a min or max (kind) of mins or maxs, else the formula itself */
void poly_operands(Arena *arena, const Algebra *algebra, AtomKind kind, const Poly *poly,
                   Polys *out);

/* Is there at most one iteration: lo .. min(lo + 1, ..)? */
bool range_is_once(Arena *arena, Algebra *algebra, const Poly *lo, const Poly *hi);

/* A piece that certainly reaches to the end of its range, live iterations [2 .. K] of 0 .. K, has
 * no `to` in the slice. */
void pieces_open(Arena *arena, FlowCode *slice);

/* Cuts the loops of all slices, of different roles, where one of them has pieces; each does what it
 * did. False: none was changed. The algebra is one of all roles. */
bool pieces_cut(Arena *arena, Algebra *algebra, FlowCode **slices, size_t count);

#endif
