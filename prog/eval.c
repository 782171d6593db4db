/* Arithmetic of expressions: integers of their width and truths. Evaluates constants, or an
 * expression with the values of its leaves, as the generated code does. */
#include "prog/eval.h"

#include "prog/bits.h"

static bool is_unsigned(Element type) {
    return element_rows[type].kind == ELEMENT_UNSIGNED && element_rows[type].bytes >= 4;
}

bool eval_fits(Element type, int64_t value) {
    if (element_rows[type].kind == ELEMENT_FLOAT) return false;
    if (type == E_U64) return value >= 0;
    return eval_cast(type, value) == value;
}

int64_t eval_cast(Element type, int64_t value) {
    switch (element_rows[type].bytes) {
    case 1:
        if (type == E_BOOL) return value != 0;
        return type == E_I8 ? (int8_t)value : (int64_t)(uint8_t)value;
    case 4: return type == E_I32 ? (int32_t)value : (int64_t)(uint32_t)value;
    }
    return value;
}

/* ---- two operands ---------------------------------------------------------------------------- */

static bool quotient(BinaryOp op, bool without_sign, int64_t a, int64_t b, int64_t *out) {
    if (b == 0) return false;
    if (without_sign) {
        *out = (int64_t)(op == OP_DIV ? (uint64_t)a / (uint64_t)b : (uint64_t)a % (uint64_t)b);
    } else if (b == -1) { /* the exact quotient of the least number does not fit */
        *out = op == OP_DIV ? (int64_t)(0 - (uint64_t)a) : 0;
    } else {
        *out = op == OP_DIV ? a / b : a % b;
    }
    return true;
}

static bool below(bool without_sign, int64_t a, int64_t b) {
    return without_sign ? (uint64_t)a < (uint64_t)b : a < b;
}

bool eval_binary(BinaryOp op, Element type, int64_t a, int64_t b, int64_t *out) {
    bool without_sign = is_unsigned(type);
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    type = element_rows[type].widens;
    switch (op) {
    case OP_ADD: return *out = eval_cast(type, (int64_t)(x + y)), true;
    case OP_SUB: return *out = eval_cast(type, (int64_t)(x - y)), true;
    case OP_MUL: return *out = eval_cast(type, (int64_t)(x * y)), true;
    case OP_DIV:
    case OP_MOD:
        if (!quotient(op, without_sign, a, b, out)) return false;
        return *out = eval_cast(type, *out), true;
    case OP_EQ: return *out = a == b, true;
    case OP_NE: return *out = a != b, true;
    case OP_LT: return *out = below(without_sign, a, b), true;
    case OP_LE: return *out = !below(without_sign, b, a), true;
    case OP_GT: return *out = below(without_sign, b, a), true;
    case OP_GE: return *out = !below(without_sign, a, b), true;
    case OP_AND: return *out = a && b, true;
    case OP_OR: return *out = a || b, true;
    }
    return false;
}

bool eval_exact(BinaryOp op, int64_t a, int64_t b, int64_t *out) {
    if (op == OP_ADD) return !__builtin_add_overflow(a, b, out);
    if (op == OP_SUB) return !__builtin_sub_overflow(a, b, out);
    if (op == OP_MUL) return !__builtin_mul_overflow(a, b, out);
    if (op == OP_DIV && a == INT64_MIN && b == -1) return false;
    return eval_binary(op, E_I64, a, b, out);
}

int64_t eval_unary(UnaryOp op, Element type, int64_t a) {
    return op == OP_NOT ? !a : eval_cast(element_rows[type].widens, (int64_t)(0 - (uint64_t)a));
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool ceil_of(Element type, int64_t a, int64_t b, int64_t *out) {
    int64_t rest;
    if (b == 0 || below(is_unsigned(type), b, 0) || !below(is_unsigned(type), 0, b)) return false;
    quotient(OP_MOD, is_unsigned(type), a, b, &rest);
    quotient(OP_DIV, is_unsigned(type), a, b, out);
    /* Computed as unsigned: the quotient of the greatest u64 by 2 is the greatest i64 */
    *out = (int64_t)((uint64_t)*out + below(is_unsigned(type), 0, rest));
    return true;
}

bool eval_call(Intrinsic which, Element type, const int64_t *args, int64_t *out) {
    int64_t a = args[0];
    if (which == IN_abs)
        return *out = !is_unsigned(type) && a < 0 ? eval_unary(OP_NEG, type, a) : a, true;
    if (which == IN_min) return *out = below(is_unsigned(type), a, args[1]) ? a : args[1], true;
    if (which == IN_max) return *out = below(is_unsigned(type), a, args[1]) ? args[1] : a, true;
    if (which == IN_ceil_div) return ceil_of(type, a, args[1], out);
    return bits_call(which, type, args, out);
}

/* ---- expressions ----------------------------------------------------------------------------- */

#define NODES_COUNTED                                                                              \
    64 /* the meter counts so many nodes at a time; smaller expressions are free */

typedef struct Evaluation {
    const EvalEnv *env;
    unsigned nodes; /* evaluated: a shared subexpression each time that it occurs */
} Evaluation;

static bool value_of(Evaluation *now, const Expr *expr, int64_t *out);

static bool is_float(Element type) { return element_rows[type].kind == ELEMENT_FLOAT; }

/* If the left side decides, the right side is not evaluated. */
static bool logic(Evaluation *now, const Expr *expr, int64_t *out) {
    int64_t a = 0, b = 0, decides = expr->binary.op == OP_OR;
    bool left = value_of(now, expr->binary.left, &a);
    if (left && (a != 0) == decides) return *out = decides, true;
    bool right = value_of(now, expr->binary.right, &b);
    if (right && (b != 0) == decides) return *out = decides, true;
    return left && right && (*out = !decides, true);
}

static bool binary(Evaluation *now, const Expr *expr, int64_t *out) {
    int64_t a, b;
    Element type = expr->binary.left->type;
    if (expr->binary.op == OP_AND || expr->binary.op == OP_OR) return logic(now, expr, out);
    if (is_float(type) || !value_of(now, expr->binary.left, &a) ||
        !value_of(now, expr->binary.right, &b))
        return false;
    return now->env->exact ? eval_exact(expr->binary.op, a, b, out)
                           : eval_binary(expr->binary.op, type, a, b, out);
}

static bool call(Evaluation *now, const Expr *expr, int64_t *out) {
    int64_t args[3] = {0, 0, 0};
    for (int i = 0; i < expr->call.count; i++)
        if (!value_of(now, expr->call.args[i], &args[i])) return false;
    if (now->env->exact && expr->call.which == IN_abs && args[0] == INT64_MIN) return false;
    if (now->env->exact && intrinsic_of_bits(expr->call.which)) return false;
    return eval_call(expr->call.which, now->env->exact ? E_I64 : expr->call.args[0]->type, args,
                     out);
}

static bool value_of(Evaluation *now, const Expr *expr, int64_t *out) {
    int64_t value;
    if (!expr || is_float(expr->type)) return false;
    if (++now->nodes % NODES_COUNTED == 0 && now->env->arena)
        arena_count(now->env->arena, NODES_COUNTED);
    switch (expr->kind) {
    case X_CONST: return *out = expr->constant.integer, true;
    case X_UNARY:
        if (!value_of(now, expr->unary.operand, &value)) return false;
        if (now->env->exact && expr->unary.op == OP_NEG) return eval_exact(OP_SUB, 0, value, out);
        return *out = eval_unary(expr->unary.op, expr->type, value), true;
    case X_BINARY: return binary(now, expr, out);
    case X_SELECT:
        if (!value_of(now, expr->select.condition, &value)) return false;
        return value_of(now, value ? expr->select.then : expr->select.otherwise, out);
    case X_CAST:
        if (!value_of(now, expr->cast, &value)) return false;
        return *out = now->env->exact ? value : eval_cast(expr->type, value), true;
    case X_CALL: return call(now, expr, out);
    case X_SYMBOL:
    case X_AXIS:
    case X_LOCAL:
    case X_RANK:
    case X_INDEX:
    case X_READ: return now->env->leaf != NULL && now->env->leaf(now->env->data, expr, out);
    case X_POISON:
    case X_PARAM:
    case X_REDUCE:
    case X_SCAN: break;
    }
    return false;
}

bool eval_expr(const EvalEnv *env, const Expr *expr, int64_t *out) {
    return value_of(&(Evaluation){env, 0}, expr, out);
}
