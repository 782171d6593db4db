/* Values: what the variables of a role hold at each row, as polynomials over versions, and the facts of the path to a row.
 *
 * A version is an atom that stands for one value in one iteration of the loops around it: it never changes, so a formula in versions stays true
 * for the rest of the iteration. At a loop a variable that changes by the same amount in every iteration is v0 + c * trips; one that changes in
 * another way is an atom made of its first value and of what an iteration makes of it, so that two roles that count in the same way hold the
 * same formula. Where the arms of an IF meet, the value is a select. */
#ifndef PIPEC_FLOW_VALUES_H
#define PIPEC_FLOW_VALUES_H

#include "algebra/algebra.h"
#include "flow/code.h"

/* Computed once a role; NULL where it has no variables. */
const Values *flow_values(Arena *arena, FlowCode *code);

/* The role's algebra speaks of the values at row `at` from here on; gives back what it spoke of. Undone by algebra_hold. */
Bindings values_at(Arena *arena, FlowCode *code, int at);
/* The formula as it is at row `at` */
const Poly *values_poly(Arena *arena, FlowCode *code, int at, Expr *expr);
/* The position that an access names along axis d, as algebra_subscript has it */
const Poly *values_subscript(Arena *arena, FlowCode *code, int at, const Access *access, int d);

/* The same in another algebra of the program: formulas of several roles meet there. */
const Poly *values_import(Arena *arena, FlowCode *code, int at, Expr *expr, Algebra *to);

/* Assumes, in the role's algebra, what the path to row `at` has decided: conditions of the IFs around it, ranges of the loops around it and their
 * `where`, and the conditions of IFs that the path did not leave through. Undone by algebra_undo. */
PathMark values_assume(Arena *arena, FlowCode *code, int at);
void values_assume_if(Arena *arena, FlowCode *code, int region, bool truth); /* the condition of the IF alone */

#endif
