/* Values: the values of a role's variables at each row, as polynomials over versions, and the
 * facts of the path to a row.
 *
 * A version is an atom for one value in one iteration of the enclosing loops: it never changes,
 * so a formula of versions is valid for the rest of the iteration. At a loop a variable that
 * changes by the same amount in every iteration is v0 + c * iterations; other changing variables
 * become an atom of the first value and of the value after an iteration, so that two roles that
 * count in the same way have the same formula. At the join of an IF the value is a select. */
#ifndef PIPEC_FLOW_VALUES_H
#define PIPEC_FLOW_VALUES_H

#include "algebra/algebra.h"
#include "flow/code.h"

/* Computed once per role; NULL if it has no variables. */
const Values *flow_values(Arena *arena, FlowCode *code);

/* Makes the role's algebra use the values at row `at`; returns the previous bindings, for
 * algebra_hold. */
Bindings values_at(Arena *arena, FlowCode *code, int at);
/* The formula of an expression at row `at` */
const Poly *values_poly(Arena *arena, FlowCode *code, int at, Expr *expr);
/* The position of an access along axis d, as algebra_subscript */
const Poly *values_subscript(Arena *arena, FlowCode *code, int at, const Access *access, int d);

/* The same in another algebra of the program, to compare formulas of several roles. */
const Poly *values_import(Arena *arena, FlowCode *code, int at, Expr *expr, Algebra *to);

/* The number of tiles of the grid before this one: an atom that all roles share */
int values_tile_number(Algebra *algebra);

/* Assumes, in the role's algebra, the facts of the path to row `at`: conditions of enclosing
 * IFs, ranges of enclosing loops and their `where`, and the conditions of IFs through which the
 * path did not leave. Undone by algebra_undo. */
PathMark values_assume(Arena *arena, FlowCode *code, int at);
/* The next IF that stands directly in the region, before row `at`, and leaves the region in one of
 * its arms, so that the path to the row decides its condition; -1: none. `next` begins as 0.
 * Needs flow_values. */
int values_left(const FlowCode *code, int region, int at, size_t *next, bool *truth);
/* only the condition of the IF */
void values_assume_if(Arena *arena, FlowCode *code, int region, bool truth);

#endif
