/* Context: facts known at one place of a path. */
#include "flow/context.h"
#include "prog/eval.h"

/* ---- known facts ----------------------------------------------------------------------------- */

static const Poly *bound_poly(const Context *context, const Poly *poly) {
    arena_count(context->algebra->arena, 1 + (uint64_t)context->bound_count);
    for (int i = context->bound_count; i-- > 0 && poly;)
        poly =
            poly_replace(context->algebra, poly, context->bound[i].atom, context->bound[i].value);
    return poly;
}

const Poly *context_poly(const Context *context, Expr *expr) {
    return bound_poly(context, algebra_poly(context->algebra, context->role, expr));
}

bool context_value(const Context *context, Expr *expr, int64_t *out) {
    return poly_is_constant(context_poly(context, expr), out);
}

const Poly *context_condition(const Context *context, Expr *condition, bool *truth) {
    *truth = true;
    while (condition && condition->kind == X_UNARY && condition->unary.op == OP_NOT)
        condition = condition->unary.operand, *truth = !*truth;
    /* for floats !(x < y) is not y <= x */
    if (condition && condition->kind == X_BINARY && condition->binary.left->type != E_F32) {
        BinaryOp op = condition->binary.op;
        Expr *left = condition->binary.left, *right = condition->binary.right;
        bool turned = op == OP_GT || op == OP_LE,
             negated = op == OP_LE || op == OP_GE || op == OP_NE;
        if (negated) *truth = !*truth;
        if (turned || negated)
            condition = expr_binary(context->algebra->arena, op == OP_NE ? OP_EQ : OP_LT,
                                    turned ? right : left, turned ? left : right, condition->span);
    }
    return condition ? context_poly(context, condition) : NULL;
}

bool context_follows(const Algebra *algebra, const Poly *poly) {
    for (int t = 0; t < poly->count; t++)
        for (int k = 0; k < poly->terms[t].count; k++)
            if (algebra->atoms.items[poly->terms[t].atoms[k]].foreign) return false;
    return true;
}

static int assumed_truth(const Context *context, Expr *condition) {
    bool truth;
    if (!context->assumed || !context->assumed->count) return -1;
    const Poly *poly = context_condition(context, condition, &truth);
    for (size_t i = 0; poly && i < context->assumed->count; i++) {
        const Assumed *assumed = &context->assumed->items[i];
        if (assumed->kind == ASSUMED_CONDITION &&
            poly_equal(bound_poly(context, assumed->condition), poly))
            return assumed->truth == truth;
    }
    return -1;
}

int context_nonempty(const Context *context, int domain) {
    for (size_t i = 0; context->assumed && i < context->assumed->count; i++) {
        const Assumed *assumed = &context->assumed->items[i];
        if (assumed->kind == ASSUMED_NONEMPTY && assumed->number == domain) return assumed->truth;
    }
    return -1;
}

static int plain_truth(const Context *context, Expr *condition);

/* Truth of conditions such as `rank == 0`, and of assumed ones: 1, 0, or -1: unknown */
int context_truth(const Context *context, Expr *condition) {
    int truth = condition ? plain_truth(context, condition) : -1;
    return truth < 0 && condition ? assumed_truth(context, condition) : truth;
}

static int plain_truth(const Context *context, Expr *condition) {
    int64_t a, b;
    if (condition->kind == X_UNARY && condition->unary.op == OP_NOT) {
        int inner = context_truth(context, condition->unary.operand);
        return inner < 0 ? -1 : !inner;
    }
    if (condition->kind != X_BINARY) return context_value(context, condition, &a) ? a != 0 : -1;
    BinaryOp op = condition->binary.op;
    if (op == OP_AND || op == OP_OR) {
        int left = context_truth(context, condition->binary.left),
            right = context_truth(context, condition->binary.right);
        if (left == (op == OP_OR) || right == (op == OP_OR)) return op == OP_OR;
        return left < 0 || right < 0 ? -1 : op != OP_OR; /* no side decides alone */
    }
    if (condition->binary.left->type == E_F32) return -1;
    if (!context_value(context, condition->binary.left, &a) ||
        !context_value(context, condition->binary.right, &b))
        return -1;
    return eval_binary(op, condition->binary.left->type, a, b, &a) ? a != 0 : -1;
}

void context_bind(Context *context, int atom, const Poly *value) {
    if (context->bound_count == context->bound_capacity) {
        size_t old = (size_t)context->bound_capacity, wanted = old + 8;
        context->bound = arena_grow(context->arena, context->bound, old * sizeof *context->bound,
                                    wanted * sizeof *context->bound);
        context->bound_capacity = (int)wanted;
    }
    context->bound[context->bound_count].atom = atom;
    context->bound[context->bound_count++].value = value;
}
