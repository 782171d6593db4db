/* The least value of each extent that a launch can have: `requires` and derived preconditions that
 * compare it with a constant. Threads need not ask whether elements below it are inside of a
 * tensor. */
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

void plan_least(Arena *arena, const Prog *prog) {
    int64_t *least = NEW_ARRAY(arena, int64_t, prog->symbols.count + 1);
    for (size_t i = 0; i < prog->symbols.count; i++)
        least[i] = prog->symbols.items[i].is_extent ? 0 : INT64_MIN;
    for (size_t i = 0; i < prog->preconditions.count; i++)
        note_condition(least, prog->preconditions.items[i].condition);
    prog->plan->least = least;
}

int64_t plan_at_least(const Plan *plan, const Expr *expr) {
    int64_t value;
    if (expr_constant(expr, &value)) return value;
    return expr->kind == X_SYMBOL ? plan->least[expr->index] : INT64_MIN;
}
