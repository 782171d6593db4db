/* How float sums, differences and quotients are computed; see rounding.h. */
#include "prog/rounding.h"

#include <math.h>

static bool is_product(const Expr *expr) {
    return expr->kind == X_BINARY && expr->binary.op == OP_MUL &&
           expr->binary.accuracy == ACCURACY_FAST;
}

/* a * b + c, c + a * b or a * b - c. In c - a * b the product has its own rounding. */
static bool is_fused(const Expr *expr, Rounding *out) {
    Expr *left = expr->binary.left, *right = expr->binary.right;
    bool add = expr->binary.op == OP_ADD;
    if (expr->binary.accuracy == ACCURACY_EXACT) return false;
    if (!add && expr->binary.op != OP_SUB) return false;
    if (!is_product(left) && (!add || !is_product(right))) return false;
    const Expr *product = is_product(left) ? left : right;
    *out = (Rounding){.form = ROUNDING_FUSED,
                      .a = product->binary.left,
                      .b = product->binary.right,
                      .c = product == left ? right : left};
    return true;
}

bool rounding_adds_products(const Expr *expr, Expr **a, Expr **b) {
    if (expr->kind != X_REDUCE || expr->reduce.op != REDUCE_SUM || expr->type != E_F32 ||
        !is_product(expr->reduce.body))
        return false;
    *a = expr->reduce.body->binary.left;
    *b = expr->reduce.body->binary.right;
    return true;
}

bool rounding_known(const Role *role, const Expr *expr, double *out) {
    for (;;) {
        bool keeps = expr->kind == X_CAST && (expr->type == E_F32 || expr->type == E_TF32) &&
                     element_rows[expr->cast->type].kind == ELEMENT_FLOAT;
        if (keeps) {
            expr = expr->cast;
        } else if (expr->kind == X_LOCAL && role && expr->index >= 0 &&
                   role->locals.items[expr->index].kind == LOCAL_LET &&
                   role->locals.items[expr->index].value) {
            expr = role->locals.items[expr->index].value;
        } else {
            *out = expr->constant.number;
            return expr->kind == X_CONST;
        }
    }
}

Rounding rounding_of(const Role *role, const Expr *expr) {
    Rounding made = {.form = ROUNDING_OWN, .a = expr->binary.left, .b = expr->binary.right};
    double divisor;
    if (is_fused(expr, &made)) return made;
    if (expr->binary.op != OP_DIV || expr->binary.accuracy == ACCURACY_EXACT) return made;
    if (rounding_known(role, made.b, &divisor)) {
        float inverse = (float)(1 / divisor);
        if (!isnormal(inverse)) return made;
        made.form = ROUNDING_INVERSE;
        made.inverse = (double)inverse;
    } else if (made.b->indexes == 0 && expr->indexes != 0) {
        made.form = ROUNDING_SCALED;
    }
    return made;
}
