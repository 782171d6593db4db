/* Scans: reductions over the elements up to a position, for each position. */
#include "prog/expr.h"

#include <math.h>

void reduce_neutral(ReduceOp op, Element type, int64_t *integer, double *number) {
    bool wide = element_rows[type].bytes == 8, max = op == REDUCE_MAX;
    *integer = 0, *number = 0;
    if (op == REDUCE_SUM) return;
    *number = max ? -(double)INFINITY : (double)INFINITY;
    if (element_rows[type].kind == ELEMENT_UNSIGNED)
        *integer = max ? 0 : wide ? -1 : (int64_t)UINT32_MAX;
    else
        *integer = max ? (wide ? INT64_MIN : INT32_MIN) : (wide ? INT64_MAX : INT32_MAX);
}

static bool is_neutral(ReduceOp op, const Expr *expr) {
    int64_t integer;
    double number;
    reduce_neutral(op, expr->type, &integer, &number);
    if (expr->kind == X_CAST && expr->type == E_U64) { /* a literal above the greatest i64 */
        const Expr *bits = expr->cast;
        return bits->kind == X_CONST && bits->type == E_I64 && bits->constant.integer == integer;
    }
    if (expr->kind != X_CONST) return false;
    if (element_rows[expr->type].kind == ELEMENT_FLOAT) return expr->constant.number == number;
    if (element_rows[expr->type].bytes == 4)
        return (uint32_t)expr->constant.integer == (uint32_t)integer;
    return expr->constant.integer == integer;
}

bool expr_scan_form(const Expr *reduction, ScanForm *out) {
    if (reduction->kind != X_REDUCE || reduction->reduce.count != 1) return false;
    const Expr *body = reduction->reduce.body;
    if (body->kind != X_SELECT || body->select.condition->kind != X_BINARY) return false;
    const Expr *condition = body->select.condition, *left = condition->binary.left,
               *right = condition->binary.right;
    BinaryOp op = condition->binary.op;
    int own = reduction->reduce.first;
    if (op != OP_LE && op != OP_LT && op != OP_GE && op != OP_GT) return false;
    if (left->kind != X_INDEX || right->kind != X_INDEX) return false;
    bool turned = left->index != own;
    *out = (ScanForm){.own = own,
                      .along = turned ? left->index : right->index,
                      .relation = turned ? comparison_turned(op) : op,
                      .body = body->select.then};
    return (turned ? right : left)->index == own && out->along != own &&
           !(out->body->indexes >> out->along & 1) &&
           is_neutral(reduction->reduce.op, body->select.otherwise);
}
