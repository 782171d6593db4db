/* The passes of check/, in order; private to the floor. Each runs also after errors of the ones before (all errors of a file
 * in one run) and is silent on poison: X_POISON expressions, handles and roles whose index is -1, tiles left
 * TILE_UNCLASSIFIED. check.c is the only caller. */
#ifndef PIPEC_PASSES_H
#define PIPEC_PASSES_H

#include "check/check.h"

/* needs a tree; leaves names resolved, statics bound, functions inlined, expressions typed, uniformity known */
Prog *elaborate(Arena *arena, Names *names, const Ast *ast, const AstItem *kernel, const StaticValue *statics, size_t count,
                Diags *diags);

/* needs elaborated; leaves `turn` blocks numbered, each in its place, and the pipes known whose stages are one instance's */
void turns_check(Arena *arena, Prog *prog, Diags *diags);
/* needs pipe uses; leaves the order proved in which the instances of a role in turn acquire */
void turns_order(Arena *arena, Prog *prog, Diags *diags);

/* needs elaborated; leaves index extents, affine subscripts, classes, boxes, maps, layouts, pipe uses, preconditions; payload
 * and disjointness of instances' writes proved, padding tracked */
void tiles_check(Arena *arena, Prog *prog, Diags *diags);

/* needs elaborated and pipe uses; leaves every stage path proved, lags derived, leave.releases filled */
void stages_check(Arena *arena, Prog *prog, Diags *diags);

/* needs proved stages; leaves equal counts of acquires at both ends of every pipe, or says which differ */
void balance_check(Arena *arena, Prog *prog, Diags *diags);

/* needs a program without errors so far; leaves nobody to write, or to write and read, an element of a tensor beside another, as far as sizes
 * that are tried show it */
void races_check(Arena *arena, Prog *prog, Diags *diags);

/* needs classes and pipe uses; leaves warps, lanes, registers, barriers, counts and the shared-memory map */
void resources_check(Arena *arena, Prog *prog, Diags *diags);

/* needs proved stages; leaves releases without signal where the last arrival is, and what is not proved out of balance and net */
void unsafe_order(Arena *arena, Prog *prog);
/* needs resources; leaves declared arrivals proved, or named as not proved, and in the place of derived ones */
void unsafe_check(Arena *arena, Prog *prog, Diags *diags);

/* ---- algebra: what the passes know of integers (algebra.c) -------------------------------------------------------- */

/* Equal for all values of symbols, axes and locals that `requires` allows? Both are brought to polynomials over atoms (symbols, axes, loop
 * locals, ranks, indexes, truths, quotients, and opaque terms such as read-only loads compared by their own canonical form); lets are expanded; what
 * differs is proved by cases (equal.c). False means "not known". */
bool algebra_equal(Arena *arena, const Prog *prog, const Role *a_role, Expr *a, const Role *b_role, Expr *b);
/* The same formula but for its spelling? Quicker, for where a no does no harm */
bool algebra_same(Arena *arena, const Prog *prog, Expr *a, Expr *b);
/* A value that certainly divides it (0 for a constant 0), from constants, coefficients and `requires ... % n == 0`. */
int64_t algebra_divisor(Arena *arena, const Prog *prog, const Role *role, Expr *expr);
/* Certainly a <= b? From constants, `requires`, 0 <= axis < its extent, lo <= loop variable < hi, extents >= 0. */
bool algebra_at_most(Arena *arena, const Prog *prog, const Role *role, Expr *a, Expr *b);
bool algebra_constant(const Expr *expr, int64_t *out); /* an integer constant after folding */
/* Small constructors, folded: used by passes that form formulas */
Expr *expr_integer(Arena *arena, Element type, int64_t value, Span span);
Expr *expr_binary(Arena *arena, BinaryOp op, Expr *left, Expr *right, Span span);

#endif
