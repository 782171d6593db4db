/* `requires`: conditions of extents and scalars that every launch meets, or is refused. Leaves a
 * precondition for each part, which a launch can check and report alone, and in each
 * floating-point scalar what they state of it. Floats are only compared: the host and the kernel
 * then agree exactly. */
#include "elaborate/items.h"

#include <math.h>

/* ---- where a floating-point scalar may stand ------------------------------------------------- */

/* The first part of a float operand of a comparison that a launch cannot compare exactly; NULL:
 * none. Negation, abs, min and max only choose and change signs. */
static const Expr *computed(const Expr *x) {
    const Expr *found = NULL;
    switch (x->kind) {
    case X_CONST:
    case X_PARAM:
    case X_POISON: return NULL;
    case X_UNARY: return computed(x->unary.operand);
    case X_CALL:
        if (x->call.which != IN_abs && x->call.which != IN_min && x->call.which != IN_max) return x;
        for (int i = 0; i < x->call.count && !found; i++) found = computed(x->call.args[i]);
        return found;
    case X_BINARY:
    case X_SELECT:
    case X_CAST:
    case X_SYMBOL:
    case X_AXIS:
    case X_LOCAL:
    case X_RANK:
    case X_INDEX:
    case X_READ:
    case X_REDUCE:
    case X_SCAN: break;
    }
    return x;
}

static bool is_comparison(const Expr *x) {
    return x->kind == X_BINARY && x->binary.op >= OP_EQ && x->binary.op <= OP_GE &&
           x->binary.left->type == E_F32;
}

static void find_float(Expr *x, void *data) {
    const Expr **found = data;
    if (*found == NULL && (x->type == E_F32 || x->kind == X_PARAM)) *found = x;
}

/* The first part of a condition that computes with floats */
static const Expr *computation(Elab *e, Expr *x) {
    if (is_comparison(x)) {
        const Expr *left = computed(x->binary.left);
        return left ? left : computed(x->binary.right);
    }
    const Expr *found = NULL;
    if (x->type != E_BOOL) { /* an integer: no float may be cast to it */
        expr_visit(e->arena, x, find_float, &found);
        return found;
    }
    if (x->kind == X_UNARY) return computation(e, x->unary.operand);
    if (x->kind == X_SELECT) {
        found = computation(e, x->select.condition);
        if (!found) found = computation(e, x->select.then);
        return found ? found : computation(e, x->select.otherwise);
    }
    if (x->kind != X_BINARY) return NULL;
    found = computation(e, x->binary.left);
    return found ? found : computation(e, x->binary.right);
}

static void find_param(Expr *x, void *data) {
    const Expr **found = data;
    if (*found == NULL && x->kind == X_PARAM) *found = x;
}

static void report_computation(Elab *e, Expr *condition, const Expr *at) {
    const Expr *param = NULL;
    Diag *diag =
        elab_error(e, P0144, at->span, "`requires` cannot compute with floating-point values");
    NOTE(e, diag,
         "a launch compares floating-point parameters, their `abs`, `min` and `max`, with "
         "constants and with each other");
    expr_visit(e->arena, condition, find_param, &param);
    if (param)
        HELP(e, diag, "compare `%s` itself with a constant expression",
             e->prog->params.items[param->index].name);
    e->broken = true;
}

/* ---- what it states of a scalar -------------------------------------------------------------- */

static void narrow(Stated *stated, FloatRange range) {
    stated->range = float_range_and(stated->range, range);
}

/* `|x| op limit`, for op <, <= and == */
static void narrow_both(Stated *stated, double limit, bool equal) {
    narrow(stated, float_range_below(limit, equal));
    narrow(stated, float_range_above(-limit, equal));
}

static void state_absolute(Stated *stated, BinaryOp op, double limit) {
    if (op == OP_LT || op == OP_LE || op == OP_EQ) narrow_both(stated, limit, op != OP_LT);
    if (op == OP_NE && limit == HUGE_VAL) narrow_both(stated, limit, false);
    if ((op == OP_GT && limit >= 0) || ((op == OP_GE || op == OP_EQ) && limit > 0) ||
        (op == OP_NE && limit == 0))
        stated->nonzero = true;
    if ((op == OP_GT && limit == HUGE_VAL) || (op == OP_EQ && limit < 0))
        narrow(stated, float_range_below(-HUGE_VAL, false)); /* no value */
}

static void state_value(Stated *stated, BinaryOp op, double limit) {
    if (op == OP_LT || op == OP_LE || op == OP_EQ)
        narrow(stated, float_range_below(limit, op != OP_LT));
    if (op == OP_GT || op == OP_GE || op == OP_EQ)
        narrow(stated, float_range_above(limit, op != OP_GT));
    if (op != OP_NE) return;
    stated->nonzero |= limit == 0;
    if (limit == HUGE_VAL) narrow(stated, float_range_below(limit, false));
    if (limit == -HUGE_VAL) narrow(stated, float_range_above(limit, false));
}

/* `x op limit`; x is a scalar, or its negation or absolute value */
static void state_comparison(Elab *e, const Expr *x, BinaryOp op, double limit) {
    bool absolute = x->kind == X_CALL && x->call.which == IN_abs;
    const Expr *inner = absolute ? x->call.args[0] : x;
    while (inner->kind == X_UNARY) {
        inner = inner->unary.operand;
        if (!absolute) op = comparison_turned(op), limit = -limit;
    }
    if (inner->kind != X_PARAM) return;
    Stated *stated = &e->prog->params.items[inner->index].stated;
    if (absolute)
        state_absolute(stated, op, limit);
    else
        state_value(stated, op, limit);
}

/* NaN meets no condition, so that the negation of a comparison is the opposite one. */
static BinaryOp opposite(BinaryOp op) {
    static const BinaryOp ops[] = {[OP_EQ] = OP_NE, [OP_NE] = OP_EQ, [OP_LT] = OP_GE,
                                   [OP_GE] = OP_LT, [OP_GT] = OP_LE, [OP_LE] = OP_GT};
    return ops[op];
}

static void state(Elab *e, const Expr *x, bool holds) {
    if (x->kind == X_UNARY && x->unary.op == OP_NOT) {
        state(e, x->unary.operand, !holds);
        return;
    }
    if (x->kind != X_BINARY) return;
    const Expr *left = x->binary.left, *right = x->binary.right;
    if (x->binary.op == (holds ? OP_AND : OP_OR)) {
        state(e, left, holds);
        state(e, right, holds);
        return;
    }
    if (!is_comparison(x)) return;
    BinaryOp op = holds ? x->binary.op : opposite(x->binary.op);
    if (right->kind == X_CONST) state_comparison(e, left, op, right->constant.number);
    if (left->kind == X_CONST)
        state_comparison(e, right, comparison_turned(op), left->constant.number);
}

static void state_number(Expr *x, void *data) {
    Elab *e = data;
    if (x->kind != X_PARAM) return;
    Stated *stated = &e->prog->params.items[x->index].stated;
    if (!stated->number) *stated = (Stated){.number = true, .range = float_range_all()};
}

static void find_nan(Expr *x, void *data) {
    if (x->kind == X_CONST && x->type == E_F32 && isnan(x->constant.number))
        *(const Expr **)data = x;
}

static void never_holds(Elab *e, Span span, const char *why) {
    Diag *diag = elab_error(e, P0145, span, "this condition can never hold");
    NOTE(e, diag, "%s", why);
}

/* False, with an error, if no value of a scalar meets this part and those before it */
static bool state_part(Elab *e, Expr *x) {
    const Expr *nan = NULL;
    expr_visit(e->arena, x, find_nan, &nan);
    if (nan) {
        never_holds(e, nan->span, "a comparison with NaN holds for no value");
        return false;
    }
    expr_visit(e->arena, x, state_number, e);
    state(e, x, true);
    for (size_t i = 0; i < e->prog->params.count; i++) {
        const Param *param = &e->prog->params.items[i];
        Stated *stated = &e->prog->params.items[i].stated;
        bool zero = stated->range.lo == 0 && stated->range.hi == 0;
        if (!stated->number || !(float_range_empty(stated->range) || (stated->nonzero && zero)))
            continue;
        never_holds(e, x->span,
                    arena_printf(e->arena, "no value of `%s` meets it and the conditions before it",
                                 param->name));
        *stated = (Stated){0}; /* reported once */
        return false;
    }
    return true;
}

/* Excludes 0 from a bound at 0 */
static void finish(Stated *stated) {
    if (!stated->number) return;
    if (!float_range_has(stated->range, 0)) stated->nonzero = true;
    if (stated->nonzero && stated->range.lo == 0) narrow(stated, float_range_above(0, false));
    if (stated->nonzero && stated->range.hi == 0) narrow(stated, float_range_below(0, false));
}

/* ---- the items ------------------------------------------------------------------------------- */

static void one_requirement(Elab *e, Expr *x) {
    /* a launch can check and report each part */
    if (x->kind == X_BINARY && x->binary.op == OP_AND) {
        one_requirement(e, x->binary.left);
        one_requirement(e, x->binary.right);
        return;
    }
    const Expr *wrong = computation(e, x);
    if (wrong) {
        report_computation(e, x, wrong);
        return;
    }
    if (!state_part(e, x)) return;
    vec_push(e->arena, &e->prog->preconditions,
             ((Precondition){.condition = x,
                             .text = elab_text_of(e, x->span),
                             .reason = "stated by `requires`",
                             .span = x->span,
                             .of_text = true}));
}

void elab_requires_item(Elab *e, const AstItem *item) {
    e->requiring = true;
    Val v = elab_condition(
        e, elab_operand(e, elab_expr_at(e, item->requires_, PLACE_GRID, "`requires`")));
    e->requiring = false;
    if (elab_is_poison(v)) {
        e->broken = true;
        return;
    }
    if (elab_is_const(v.x)) {
        if (!v.x->constant.integer)
            never_holds(e, item->requires_->span,
                        "with these constants and statics it is false for every launch");
        return;
    }
    one_requirement(e, v.x);
    for (size_t i = 0; i < e->prog->params.count; i++) finish(&e->prog->params.items[i].stated);
}
