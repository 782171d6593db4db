/* Small constructors for the formulas that passes form themselves: integer constants and folded binary operations. */
#include "check/passes.h"

bool algebra_constant(const Expr *expr, int64_t *out) {
    if (!expr) return false;
    if (expr->kind == X_CAST && (expr->type == E_I32 || expr->type == E_I64)) {
        if (!algebra_constant(expr->cast, out)) return false;
        return expr->type == E_I64 || (*out >= INT32_MIN && *out <= INT32_MAX);
    }
    if (expr->kind != X_CONST || expr->type == E_F32) return false;
    *out = expr->constant.integer;
    return true;
}

Expr *expr_integer(Arena *arena, Element type, int64_t value, Span span) {
    Expr *expr = NEW(arena, Expr);
    expr->kind = X_CONST;
    expr->type = type;
    expr->span = span;
    expr->constant.integer = value;
    expr->constant.number = (double)value;
    return expr;
}

static bool fold(BinaryOp op, int64_t a, int64_t b, int64_t *out) {
    switch (op) {
    case OP_ADD: return !__builtin_add_overflow(a, b, out);
    case OP_SUB: return !__builtin_sub_overflow(a, b, out);
    case OP_MUL: return !__builtin_mul_overflow(a, b, out);
    case OP_DIV:
        if (b == 0 || b == -1) return false;
        *out = a / b;
        return true;
    case OP_MOD:
        if (b == 0 || b == -1) return false;
        *out = a % b;
        return true;
    case OP_EQ: *out = a == b; return true;
    case OP_NE: *out = a != b; return true;
    case OP_LT: *out = a < b; return true;
    case OP_LE: *out = a <= b; return true;
    case OP_GT: *out = a > b; return true;
    case OP_GE: *out = a >= b; return true;
    case OP_AND: *out = a && b; return true;
    case OP_OR: *out = a || b; return true;
    }
    return false;
}

static bool gives_truth(BinaryOp op) {
    return op != OP_ADD && op != OP_SUB && op != OP_MUL && op != OP_DIV && op != OP_MOD;
}

/* Both sides of one type: where one is 64 bits wide, the other is widened. */
static Expr *widened(Arena *arena, Expr *expr, Element type) {
    int64_t value;
    if (expr->type == type || type == E_BOOL || expr->type == E_BOOL) return expr;
    if (algebra_constant(expr, &value)) return expr_integer(arena, type, value, expr->span);
    Expr *cast = NEW(arena, Expr);
    *cast = (Expr){
        .kind = X_CAST, .type = type, .uniformity = expr->uniformity, .indexes = expr->indexes, .span = expr->span};
    cast->cast = expr;
    return cast;
}

Expr *expr_binary(Arena *arena, BinaryOp op, Expr *left, Expr *right, Span span) {
    int64_t a = 0, b = 0, value;
    bool is_a = algebra_constant(left, &a), is_b = algebra_constant(right, &b);
    if (left->kind == X_POISON || right->kind == X_POISON) return left->kind == X_POISON ? left : right;
    Element type = element_rows[left->type].bytes >= element_rows[right->type].bytes ? left->type : right->type;
    if (is_a && !is_b && element_rows[right->type].bytes >= 4) type = right->type; /* a constant adapts */
    if (is_b && !is_a && element_rows[left->type].bytes >= 4) type = left->type;
    if (is_a && is_b && fold(op, a, b, &value))
        return expr_integer(arena, gives_truth(op) ? E_BOOL : type, value, span);
    if (!gives_truth(op)) {
        if (is_b && ((b == 0 && (op == OP_ADD || op == OP_SUB)) || (b == 1 && (op == OP_MUL || op == OP_DIV))))
            return left;
        if (is_a && ((a == 0 && op == OP_ADD) || (a == 1 && op == OP_MUL))) return right;
        if (op == OP_MUL && ((is_a && a == 0) || (is_b && b == 0))) return expr_integer(arena, type, 0, span);
    }
    Expr *expr = NEW(arena, Expr);
    expr->kind = X_BINARY;
    expr->type = gives_truth(op) ? E_BOOL : type;
    expr->uniformity = left->uniformity > right->uniformity ? left->uniformity : right->uniformity;
    expr->indexes = left->indexes | right->indexes;
    expr->span = span;
    expr->binary.op = op;
    expr->binary.left = widened(arena, left, type);
    expr->binary.right = widened(arena, right, type);
    return expr;
}
