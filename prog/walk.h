/* walk: what the passes after `tiles` ask of a role's statements. Every walker is silent on NULL. */
#ifndef PIPEC_WALK_H
#define PIPEC_WALK_H

#include "prog/stmt.h"

/* Each element read or written by one statement itself (not by those inside it): subscripts, bounds and conditions too.
 * A target that is also read (`+=`) is visited once, as written. */
void walk_accesses(Arena *arena, Stmt *stmt, void (*visit)(Access *, bool written, void *), void *data);

/* Expressions that one statement itself evaluates: bounds, conditions, values, subscripts of the target */
void walk_exprs(Stmt *stmt, void (*visit)(Expr *, void *), void *data);

#endif
