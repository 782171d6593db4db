/* The least value of each extent that a launch can have, and what divides it: `requires` and
 * derived preconditions that compare it, or its remainder, with a constant. Threads need not ask
 * whether elements below the least value are inside of a tensor, and ask once for as many as the
 * divisor. */
#include "derive/edit.h"
#include "derive/plan.h"

static void note(int64_t *least, const Expr *symbol, int64_t value) {
    if (symbol->kind == X_SYMBOL && least[symbol->index] < value) least[symbol->index] = value;
}

/* a < b, or with `add` 0 a <= b */
static void note_less(int64_t *least, const Expr *a, const Expr *b, int64_t add) {
    int64_t value;
    if (expr_constant(a, &value) && value < INT32_MAX) note(least, b, value + add);
}

static void note_condition(int64_t *least, const Expr *condition) {
    if (condition->kind != X_BINARY) return;
    const Expr *left = condition->binary.left, *right = condition->binary.right;
    if (condition->binary.op == OP_AND) {
        note_condition(least, left);
        note_condition(least, right);
    }
    if (condition->binary.op == OP_LT) note_less(least, left, right, 1);
    if (condition->binary.op == OP_LE) note_less(least, left, right, 0);
    if (condition->binary.op == OP_GT) note_less(least, right, left, 1);
    if (condition->binary.op == OP_GE) note_less(least, right, left, 0);
}

/* symbol % constant == 0 */
static void note_divisor(int64_t *divisors, const Expr *condition) {
    int64_t by, rest;
    if (condition->kind != X_BINARY) return;
    const Expr *left = condition->binary.left, *right = condition->binary.right;
    if (condition->binary.op == OP_AND) {
        note_divisor(divisors, left);
        note_divisor(divisors, right);
    }
    if (condition->binary.op != OP_EQ || left->kind != X_BINARY || left->binary.op != OP_MOD ||
        left->binary.left->kind != X_SYMBOL || !expr_constant(left->binary.right, &by) ||
        !expr_constant(right, &rest) || rest != 0 || by <= 0 || by > INT32_MAX)
        return;
    int64_t *divisor = &divisors[left->binary.left->index];
    if (by % *divisor == 0) *divisor = by;
}

void plan_least(Arena *arena, const Prog *prog) {
    int64_t *least = NEW_ARRAY(arena, int64_t, prog->symbols.count + 1),
            *divisors = NEW_ARRAY(arena, int64_t, prog->symbols.count + 1);
    for (size_t i = 0; i < prog->symbols.count; i++) {
        least[i] = prog->symbols.items[i].is_extent ? 0 : INT64_MIN;
        divisors[i] = 1;
    }
    for (size_t i = 0; i < prog->preconditions.count; i++) {
        const Precondition *row = &prog->preconditions.items[i];
        if (row->pitch_of != 0) continue; /* extents may differ from it */
        note_condition(least, row->condition);
        note_divisor(divisors, row->condition);
    }
    edit_plan(prog)->least = least;
    edit_plan(prog)->divisors = divisors;
}

int64_t plan_divisor(const Plan *plan, const Expr *expr) {
    return expr->kind == X_SYMBOL ? plan->divisors[expr->index] : 1;
}

int64_t plan_at_least(const Plan *plan, const Expr *expr) {
    int64_t value;
    if (expr_constant(expr, &value)) return value;
    return expr->kind == X_SYMBOL ? plan->least[expr->index] : INT64_MIN;
}
