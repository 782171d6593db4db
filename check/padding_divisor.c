/* Divisors that are certainly not 0: 0 / d is 0 only for those. Known from constants, from the
 * signs of terms, from the conditions of selects in the same value, and from the facts of the
 * path: IFs, loops and preconditions. */
#include "check/padding.h"

static bool is_float(const Expr *expr) { return element_rows[expr->type].kind == ELEMENT_FLOAT; }

static bool is_number(const Expr *expr, double *number) {
    if (expr->kind == X_UNARY && expr->unary.op == OP_NEG && is_number(expr->unary.operand, number))
        return *number = -*number, true;
    if (expr->kind == X_CAST && expr->type == E_F32) return is_number(expr->cast, number);
    if (expr->kind != X_CONST) return false;
    *number = is_float(expr) ? expr->constant.number : (double)expr->constant.integer;
    return true;
}

/* The value of a `let` that is the same at all places, else the expression itself */
static Expr *resolved(Padding *p, Expr *expr) {
    while (expr->kind == X_LOCAL && expr->index >= 0) {
        const Local *local = &p->code->role->locals.items[expr->index];
        if (local->kind != LOCAL_LET || !local->value) break;
        Algebra *algebra = p->code->algebra;
        if (poly_changes(algebra, algebra_poly(algebra, p->code->role, local->value))) break;
        expr = local->value;
    }
    return expr;
}

/* ---- signs ----------------------------------------------------------------------------------- */

/* True if the value is greater than 0, or NaN. A product of two may be rounded to 0. */
static bool is_positive(Padding *p, const Expr *expr) {
    double number;
    if (is_number(expr, &number)) return number > 0;
    if (!is_float(expr)) return false;
    if (expr->kind == X_BINARY && expr->binary.op == OP_ADD) {
        const Expr *left = expr->binary.left, *right = expr->binary.right;
        return (is_positive(p, left) && padding_at_least_zero(p, right)) ||
               (is_positive(p, right) && padding_at_least_zero(p, left));
    }
    if (expr->kind != X_CALL) return false;
    Expr *const *args = expr->call.args;
    if (expr->call.which == IN_max) return is_positive(p, args[0]) || is_positive(p, args[1]);
    if (expr->call.which == IN_min) return is_positive(p, args[0]) && is_positive(p, args[1]);
    if (expr->call.which == IN_abs) return padding_not_zero(p, args[0]);
    return expr->call.which == IN_sqrt && is_positive(p, args[0]);
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* `value op number` is false for 0 */
static bool excludes_zero(BinaryOp op, double number) {
    switch (op) {
    case OP_EQ: return number != 0;
    case OP_NE: return number == 0;
    case OP_LT: return !(0 < number);
    case OP_LE: return !(0 <= number);
    case OP_GT: return !(0 > number);
    case OP_GE: return !(0 >= number);
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_MOD:
    case OP_AND:
    case OP_OR: break;
    }
    return false;
}

/* The argument of abs, which is 0 where its result is; otherwise the expression */
static const Expr *magnitude(const Expr *expr) {
    return expr->kind == X_CALL && expr->call.which == IN_abs ? expr->call.args[0] : expr;
}

/* True if the condition, with this truth, excludes that the value of the same statement is 0 */
static bool condition_excludes(Padding *p, const Expr *condition, bool truth, const Expr *value) {
    double number;
    if (condition->kind == X_UNARY && condition->unary.op == OP_NOT)
        return condition_excludes(p, condition->unary.operand, !truth, value);
    if (condition->kind != X_BINARY) return false;
    BinaryOp op = condition->binary.op;
    const Expr *left = condition->binary.left, *right = condition->binary.right;
    if (op == OP_AND || op == OP_OR) {
        bool a = condition_excludes(p, left, truth, value),
             b = condition_excludes(p, right, truth, value);
        return (op == OP_AND) == truth ? a || b : a && b;
    }
    if (is_number(right, &number) && padding_same(p, magnitude(left), value))
        return excludes_zero(truth ? op : comparison_negated(op), number);
    if (is_number(left, &number) && padding_same(p, magnitude(right), value))
        return excludes_zero(comparison_turned(truth ? op : comparison_negated(op)), number);
    return false;
}

static bool select_excludes(Padding *p, const Expr *value) {
    for (size_t i = 0; i < p->decided.count; i++)
        if (condition_excludes(p, p->decided.items[i].condition, p->decided.items[i].truth, value))
            return true;
    return false;
}

/* By the facts of the path. Conditions on floats are facts about their whole truth, so the
 * comparisons with 0 are tried one by one. */
static bool path_excludes(Padding *p, Expr *value) {
    static const struct {
        BinaryOp op;
        Certainty truth;
    } rows[] = {{OP_NE, CERTAINLY}, {OP_EQ, CERTAINLY_NOT}, {OP_GT, CERTAINLY}, {OP_LT, CERTAINLY}};
    Algebra *algebra = p->code->algebra;
    bool excluded = false;
    if (!p->proofs) return false;
    Bindings before = values_at(p->arena, p->code, p->at);
    if (!is_float(value))
        excluded =
            algebra_proves(algebra, CLAIM_NOT_ZERO, algebra_poly(algebra, p->code->role, value));
    for (size_t i = 0; is_float(value) && i < COUNT_OF(rows) && !excluded; i++) {
        Expr *zero = expr_integer(p->arena, value->type, 0, value->span);
        Expr *condition = expr_binary(p->arena, rows[i].op, value, zero, value->span);
        excluded = algebra_decides(algebra, p->code->role, condition) == rows[i].truth;
    }
    (void)algebra_hold(algebra, before);
    return excluded;
}

bool padding_not_zero(Padding *p, Expr *expr) {
    double number;
    if (--p->work < 0) return false;
    if (select_excludes(p, expr)) return true;
    expr = resolved(p, expr);
    if (is_number(expr, &number)) return number != 0;
    if (is_positive(p, expr) || select_excludes(p, expr)) return true;
    if (expr->kind == X_UNARY && expr->unary.op == OP_NEG && is_float(expr))
        return padding_not_zero(p, expr->unary.operand);
    if (expr->kind == X_CAST && is_float(expr) && (!is_float(expr->cast) || expr->type == E_F32))
        return padding_not_zero(p, expr->cast);
    if (expr->kind == X_SELECT) {
        int truth = padding_decided(p, expr->select.condition);
        bool then = truth == 0 || padding_not_zero(p, expr->select.then);
        return then && (truth == 1 || padding_not_zero(p, expr->select.otherwise));
    }
    return path_excludes(p, expr);
}

/* ---- poles ----------------------------------------------------------------------------------- */

/* The argument for which the operation is infinite if it is 0; NULL: none */
static Expr *pole(const Expr *expr) {
    if (!is_float(expr)) return NULL;
    if (expr->kind == X_BINARY) return expr->binary.op == OP_DIV ? expr->binary.right : NULL;
    if (expr->kind != X_CALL) return NULL;
    switch (expr->call.which) {
    case IN_rcp:
    case IN_rsqrt:
    case IN_log:
    case IN_log2: return expr->call.args[0];
    case IN_abs:
    case IN_min:
    case IN_max:
    case IN_fma:
    case IN_sqrt:
    case IN_exp:
    case IN_exp2:
    case IN_sin:
    case IN_cos:
    case IN_tanh:
    case IN_floor:
    case IN_ceil:
    case IN_ceil_div:
    case IN_COUNT: break;
    }
    return NULL;
}

bool padding_has_pole(Padding *p, Expr *expr) {
    if (--p->work < 0) return true;
    expr = resolved(p, expr);
    Expr *argument = pole(expr);
    if (argument && !padding_not_zero(p, argument)) return true;
    if (expr->kind == X_UNARY) return padding_has_pole(p, expr->unary.operand);
    if (expr->kind == X_CAST) return padding_has_pole(p, expr->cast);
    if (expr->kind == X_BINARY)
        return padding_has_pole(p, expr->binary.left) || padding_has_pole(p, expr->binary.right);
    if (expr->kind == X_SELECT) {
        int truth = padding_decided(p, expr->select.condition);
        return (truth != 0 && padding_has_pole(p, expr->select.then)) ||
               (truth != 1 && padding_has_pole(p, expr->select.otherwise));
    }
    bool found = false;
    for (int i = 0; expr->kind == X_CALL && i < expr->call.count; i++)
        found |= padding_has_pole(p, expr->call.args[i]);
    return found;
}
