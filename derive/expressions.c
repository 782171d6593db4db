/* Polynomials over extents and scalars as expressions that a launch can evaluate. */
#include "derive/tiles.h"

#define NESTED_MOST 16

typedef struct Builder {
    Arena *arena;
    const Algebra *algebra;
    Span span;  /* of all nodes */
    int *nodes; /* most further nodes */
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

/* NULL: not of extents and scalars only, or not available in launch formulas */
static Expr *of_atom(Builder *builder, int id, int depth) {
    const Atom atom = builder->algebra->atoms.items[id];
    if (atom.kind == ATOM_SYMBOL) {
        Expr *expr = NEW(builder->arena, Expr);
        *expr = (Expr){.kind = X_SYMBOL, .type = atom.type, .span = builder->span};
        expr->index = atom.index;
        return expr;
    }
    bool known = atom.kind == ATOM_DIV || atom.kind == ATOM_MOD || atom.kind == ATOM_CEIL ||
                 atom.kind == ATOM_MIN || atom.kind == ATOM_MAX;
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
    Builder builder = {arena, algebra, span, nodes};
    return poly ? expression(&builder, poly, NESTED_MOST) : NULL;
}
