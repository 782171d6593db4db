/* Polynomials over extents and scalars as expressions that a launch can evaluate. */
#include "derive/tiles.h"

#define NESTED_MOST 16

typedef struct Builder {
    Arena *arena;
    const Algebra *algebra;
    Span span;    /* of all nodes */
    int *nodes;   /* most further nodes */
    bool counted; /* also atoms that only amounts of work contain */
} Builder;

Expr *expression_integer(Arena *arena, int64_t value, Span span) {
    bool fits = value >= INT32_MIN && value <= INT32_MAX;
    return expr_integer(arena, fits ? E_I32 : E_I64, value, span);
}

static Expr *expression(Builder *builder, const Poly *poly, int depth);

static Expr *call(const Builder *builder, Intrinsic which, Expr *a, Expr *b) {
    Expr *expr = NEW(builder->arena, Expr);
    *expr = (Expr){.kind = X_CALL, .type = a->type, .span = builder->span};
    expr->call.which = which;
    expr->call.args[0] = a, expr->call.args[1] = b;
    expr->call.count = 2;
    return expr;
}

static Expr *named(const Builder *builder, ExprKind kind, const Atom *atom) {
    Expr *expr = NEW(builder->arena, Expr);
    *expr = (Expr){.kind = kind, .type = atom->type, .span = builder->span};
    expr->index = atom->index;
    return expr;
}

/* Atoms of amounts of work; instances count as the first one. */
static Expr *of_counted(Builder *builder, const Atom *atom, int depth) {
    if (depth <= 0 || (*builder->nodes)-- <= 0) return NULL;
    Expr *zero = expression_integer(builder->arena, 0, builder->span), *args[3];
    if (atom->kind == ATOM_AXIS) return named(builder, X_AXIS, atom);
    if (atom->kind == ATOM_LOCAL) return named(builder, X_LOCAL, atom);
    if (atom->kind == ATOM_RANK) return zero;
    int count = atom->kind == ATOM_SELECT ? 3 : atom->kind == ATOM_FLOOR ? 2 : 1;
    if (count == 1 && atom->kind != ATOM_TRUTH && atom->kind != ATOM_WRAP) return NULL;
    for (int i = 0; i < count; i++)
        if (!(args[i] = expression(builder, atom->args[i], depth - 1))) return NULL;
    if (atom->kind == ATOM_WRAP) return args[0];
    if (atom->kind == ATOM_TRUTH)
        return expr_binary(builder->arena, OP_LE, zero, args[0], builder->span);
    if (atom->kind == ATOM_FLOOR)
        return expr_binary(builder->arena, OP_DIV, args[0], args[1], builder->span);
    Expr *select = NEW(builder->arena, Expr);
    *select = (Expr){.kind = X_SELECT, .type = atom->type, .span = builder->span};
    select->select.condition = args[0], select->select.then = args[1];
    select->select.otherwise = args[2];
    return select;
}

/* NULL: not of extents and scalars only, or not available in launch formulas */
static Expr *of_atom(Builder *builder, int id, int depth) {
    const Atom atom = builder->algebra->atoms.items[id];
    if (atom.kind == ATOM_SYMBOL) return named(builder, X_SYMBOL, &atom);
    bool known = atom.kind == ATOM_DIV || atom.kind == ATOM_MOD || atom.kind == ATOM_CEIL ||
                 atom.kind == ATOM_MIN || atom.kind == ATOM_MAX;
    if (!known && builder->counted) return of_counted(builder, &atom, depth);
    if (!known || depth <= 0 || (*builder->nodes)-- <= 0) return NULL;
    Expr *a = expression(builder, atom.args[0], depth - 1);
    Expr *b = expression(builder, atom.args[1], depth - 1);
    if (!a || !b) return NULL;
    if (atom.kind == ATOM_DIV || atom.kind == ATOM_MOD)
        return expr_binary(builder->arena, atom.kind == ATOM_DIV ? OP_DIV : OP_MOD, a, b,
                           builder->span);
    return call(builder,
                atom.kind == ATOM_CEIL  ? IN_ceil_div
                : atom.kind == ATOM_MIN ? IN_min
                                        : IN_max,
                a, b);
}

/* Absolute value of the term */
static Expr *of_term(Builder *builder, const Term *term, int depth) {
    Expr *product = expression_integer(builder->arena, term->coef < 0 ? -term->coef : term->coef,
                                       builder->span);
    for (int k = 0; k < term->count && product; k++) {
        Expr *factor = of_atom(builder, term->atoms[k], depth);
        product =
            factor ? expr_binary(builder->arena, OP_MUL, product, factor, builder->span) : NULL;
    }
    return product;
}

static Expr *expression(Builder *builder, const Poly *poly, int depth) {
    int first = poly->count > 0 && poly->terms[0].count == 0; /* the constant comes last */
    Expr *sum = NULL;
    for (int i = 0; i < poly->count; i++) {
        const Term *term = &poly->terms[(i + first) % poly->count];
        if (term->coef == INT64_MIN) return NULL;
        Expr *next = of_term(builder, term, depth);
        if (!next) return NULL;
        if (!sum && term->coef < 0) sum = expression_integer(builder->arena, 0, builder->span);
        sum = sum ? expr_binary(builder->arena, term->coef < 0 ? OP_SUB : OP_ADD, sum, next,
                                builder->span)
                  : next;
    }
    return sum ? sum : expression_integer(builder->arena, 0, builder->span);
}

Expr *expression_of(Arena *arena, const Algebra *algebra, const Poly *poly, Span span, int *nodes) {
    Builder builder = {arena, algebra, span, nodes, false};
    return poly ? expression(&builder, poly, NESTED_MOST) : NULL;
}

Expr *expression_counted(Arena *arena, const Algebra *algebra, const Poly *poly, Span span,
                         int *nodes) {
    Builder builder = {arena, algebra, span, nodes, true};
    return poly ? expression(&builder, poly, NESTED_MOST) : NULL;
}
