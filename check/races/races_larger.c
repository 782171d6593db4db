/* Limits of small sizes: a loop or an axis must reach a value beyond the iterations that are run
 * before a condition, a quotient or an extreme of it changes. Needs the rows that decide about
 * operations and places. */
#include "check/races/races.h"

typedef struct Far {
    Arena *arena;
    int64_t most; /* least number of iterations that are run */
    bool sums;    /* includes summands */
    bool local;   /* the operand contains a variable */
    bool found;
} Far;

static void find_local(Expr *expr, void *data) { ((Far *)data)->local |= expr->kind == X_LOCAL; }

static bool is_far(Far *far, const Expr *constant, Expr *other) {
    int64_t value;
    if (!expr_constant(constant, &value) || (value <= far->most && value >= -far->most))
        return false;
    far->local = false;
    expr_visit(far->arena, other, find_local, far);
    return far->local;
}

static bool decides(const Far *far, BinaryOp op) {
    switch (op) {
    case OP_DIV:
    case OP_MOD:
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE: return true;
    case OP_ADD:
    case OP_SUB: return far->sums;
    case OP_MUL:
    case OP_AND:
    case OP_OR: break;
    }
    return false;
}

static void find_far(Expr *expr, void *data) {
    Far *far = data;
    Expr *a = NULL, *b = NULL;
    if (expr->kind == X_BINARY && decides(far, expr->binary.op))
        a = expr->binary.left, b = expr->binary.right;
    if (expr->kind == X_CALL && expr->call.count == 2)
        a = expr->call.args[0], b = expr->call.args[1];
    if (a) far->found |= is_far(far, a, b) || is_far(far, b, a);
}

static void find_in(Expr *expr, void *data) {
    expr_visit(((Far *)data)->arena, expr, find_far, data);
}

static void find_in_rows(Far *far, const FlowCode *code) {
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        far->sums = row->kind == ROW_IF;
        if (row_decides(row->kind) || row->kind == ROW_SET) row_exprs(code, row, find_in, far);
    }
}

bool race_needs_larger(Arena *arena, const Traced *traced, const Places *places) {
    Far far = {.arena = arena, .most = sizes_rounds(traced->prog)};
    for (size_t r = 0; r < traced->prog->roles.count; r++) find_in_rows(&far, traced->codes[r]);
    far.sums = false;
    for (size_t i = 0; i < places->count; i++)
        for (int d = 0; d < places->items[i].access->rank; d++)
            find_in(places->items[i].access->subs[d], &far);
    return far.found;
}
