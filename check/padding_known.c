/* What is stated of a value: by the conditions of the selects around it, by the facts of the path
 * (IFs, loops), and by `requires`. */
#include "check/padding.h"

#include <math.h>

static bool is_float(const Expr *expr) { return element_rows[expr->type].kind == ELEMENT_FLOAT; }

static bool is_number(const Expr *expr, double *number) {
    if (expr->kind == X_UNARY && expr->unary.op == OP_NEG && is_number(expr->unary.operand, number))
        return *number = -*number, true;
    if (expr->kind == X_CAST && expr->type == E_F32) return is_number(expr->cast, number);
    if (expr->kind != X_CONST) return false;
    *number = is_float(expr) ? expr->constant.number : (double)expr->constant.integer;
    return true;
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* The argument of abs, which is 0 where its result is */
static const Expr *magnitude(const Expr *expr) {
    return expr->kind == X_CALL && expr->call.which == IN_abs ? expr->call.args[0] : NULL;
}

/* The value where `tested op number` holds */
static Value where(Padding *p, const Expr *tested, BinaryOp op, double number, const Expr *expr,
                   Value value) {
    const Expr *inner = magnitude(tested);
    if (padding_same(p, tested, expr)) return pad_within(value, op, number);
    if (!inner || !padding_same(p, inner, expr)) return value;
    bool apart = op == OP_GT ? number >= 0 : op == OP_NE ? number == 0 : op == OP_GE && number > 0;
    return apart ? pad_within(value, OP_NE, 0) : value;
}

/* The value where the condition has this truth */
static Value narrowed(Padding *p, const Expr *condition, bool truth, const Expr *expr,
                      Value value) {
    double number;
    if (condition->kind == X_UNARY && condition->unary.op == OP_NOT)
        return narrowed(p, condition->unary.operand, !truth, expr, value);
    if (condition->kind != X_BINARY || !pad_exists(value)) return value;
    BinaryOp op = condition->binary.op;
    const Expr *left = condition->binary.left, *right = condition->binary.right;
    if (op == OP_AND || op == OP_OR) {
        Value first = narrowed(p, left, truth, expr, value);
        if ((op == OP_AND) == truth) return narrowed(p, right, truth, expr, first);
        return pad_join(first, narrowed(p, right, truth, expr, value));
    }
    if (op < OP_EQ) return value;
    if (!truth) { /* of floats it is false for NaN, too */
        if (is_float(left) && op != OP_EQ && op != OP_NE && value.nan) return value;
        op = comparison_negated(op);
    }
    if (is_number(right, &number)) return where(p, left, op, number, expr, value);
    if (is_number(left, &number))
        return where(p, right, comparison_turned(op), number, expr, value);
    return value;
}

typedef struct Conditions { /* of this expression */
    Padding *p;
    const Expr *of;
} Conditions;

static Value map_stated(Value value, bool padding, const void *data) {
    const Conditions *conditions = data;
    Padding *p = conditions->p;
    Value out = value;
    (void)padding;
    for (size_t i = 0; i < p->decided.count; i++)
        out = narrowed(p, p->decided.items[i].condition, p->decided.items[i].truth, conditions->of,
                       out);
    return pad_exists(out) ? out : value;
}

static const Fill *required(Padding *p, const Stated *known, const Fill *fill) {
    Value value = fill->at[0].element;
    if (!known->number) return fill;
    value.lo = fmax(value.lo, known->range.lo), value.hi = fmin(value.hi, known->range.hi);
    value.nonzero |= known->nonzero;
    return fill_of(&p->fills, value);
}

const Fill *padding_stated(Padding *p, const Expr *expr, const Fill *fill) {
    bool param = expr->kind == X_PARAM;
    if (param) fill = required(p, &p->code->prog->params.items[expr->index].stated, fill);
    if (p->decided.count == 0 || (expr->kind != X_READ && expr->kind != X_LOCAL && !param))
        return fill;
    return fill_map(&p->fills, fill, map_stated, &(Conditions){p, expr});
}

/* ---- the path -------------------------------------------------------------------------------- */

/* Facts about floats are those of whole conditions, so the comparisons with 0 are tried one by
 * one. */
static bool path_states(Padding *p, Expr *expr, BinaryOp op) {
    Algebra *algebra = p->code->algebra;
    Expr *zero = expr_integer(p->arena, expr->type, 0, expr->span);
    Expr *condition = expr_binary(p->arena, op, expr, zero, expr->span);
    if (algebra_decides(algebra, p->code->role, condition) == CERTAINLY) return true;
    if (op != OP_NE) return false;
    condition = expr_binary(p->arena, OP_EQ, expr, zero, expr->span);
    return algebra_decides(algebra, p->code->role, condition) == CERTAINLY_NOT;
}

/* The value of a `let` that is the same at all places, else the expression itself */
Expr *padding_resolved(Padding *p, Expr *expr) {
    while (expr->kind == X_LOCAL && expr->index >= 0) {
        const Local *local = &p->code->role->locals.items[expr->index];
        if (local->kind != LOCAL_LET || !local->value) break;
        Algebra *algebra = p->code->algebra;
        if (poly_changes(algebra, algebra_poly(algebra, p->code->role, local->value))) break;
        expr = local->value;
    }
    return expr;
}

static Value map_learned(Value value, bool padding, const void *data) {
    Value out = pad_within(value, *(const BinaryOp *)data, 0);
    (void)padding;
    return pad_exists(out) ? out : value;
}

const Fill *padding_learned(Padding *p, Expr *expr, const Fill *fill) {
    static const BinaryOp ops[] = {OP_NE, OP_GT, OP_LT, OP_GE};
    Algebra *algebra = p->code->algebra;
    if (!p->proofs || --p->work < 0) return fill;
    expr = padding_resolved(p, expr);
    while (expr->kind == X_CAST && is_float(expr) && (!is_float(expr->cast) || expr->type == E_F32))
        expr = padding_resolved(p, expr->cast);
    Bindings before = values_at(p->arena, p->code, p->at);
    const Poly *poly = is_float(expr) ? NULL : algebra_poly(algebra, p->code->role, expr);
    bool nonzero = poly && algebra_proves(algebra, CLAIM_NOT_ZERO, poly);
    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        if (!is_float(expr) && !(nonzero && ops[i] == OP_NE)) continue;
        if (nonzero || path_states(p, expr, ops[i]))
            fill = fill_map(&p->fills, fill, map_learned, &ops[i]);
    }
    (void)algebra_hold(algebra, before);
    return fill;
}
