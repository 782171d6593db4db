/* What is stated of a value: by the conditions of the selects around it, by the facts of the path
 * (IFs, loops), and by `requires`. */
#include "check/padding/padding.h"
#include "flow/values.h"

#include <math.h>

static bool is_float(const Expr *expr) { return element_rows[expr->type].kind == ELEMENT_FLOAT; }

static bool is_number(const Expr *expr, double *number) {
    if (expr->kind == X_UNARY && expr->unary.op == OP_NEG && is_number(expr->unary.operand, number))
        return *number = -*number, true;
    if (expr->kind == X_CAST && expr->type == E_F32) return is_number(expr->cast, number);
    if (expr->kind != X_CONST) return false;
    *number = is_float(expr) ? expr->constant.number : (double)expr->constant.integer;
    return true;
}

#define NARROWING_MOST 10000 /* most nodes that one condition is followed through */

/* ---- values that stay the same --------------------------------------------------------------- */

typedef struct Stable { /* the values in a condition, between its row and the present one */
    Padding *p;
    int from, to; /* the rows between, exclusive */
    bool stable;
} Stable;

static bool is_written(const Stable *s, int object) {
    return padding_written_from(s->p, object, s->from + 1) < s->to;
}

static bool read_is_stable(const Stable *s, const Access *read) {
    const FlowCode *code = s->p->code;
    if (read->space == SPACE_GLOBAL) return code->prog->params.items[read->object].mode == PARAM_IN;
    if (read->space != SPACE_STAGE) return !is_written(s, read->object);
    if (code->role->handles.items[read->object].end != END_CONSUME) return false;
    for (int at = s->from + 1; at < s->to; at++) {
        const Row *row = code_row(code, at);
        if (row->handle == read->object || row->other == read->object) return false;
    }
    return true;
}

static void find_unstable(Expr *expr, void *data) {
    Stable *s = data;
    int object = expr->kind == X_LOCAL ? padding_scalar_object(s->p->code, expr->index) : -1;
    if (object >= 0) s->stable &= !is_written(s, object);
    if (expr->kind == X_READ) s->stable &= expr->read && read_is_stable(s, expr->read);
}

bool padding_is_stable(Padding *p, Expr *expr, int from) {
    const FlowCode *code = p->code;
    Stable s = {p, from, p->at, true};
    for (int r = code->rows.items[p->at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        if (region->begin > from && region_loops(region) && region->end > s.to) s.to = region->end;
    }
    for (size_t i = 0; i < p->unsafe.count; i++)
        if (p->unsafe.items[i] > from && p->unsafe.items[i] < s.to) return false;
    arena_count(p->arena, 1 + p->unsafe.count / 8);
    expr_visit(p->arena, expr, find_unstable, &s);
    return s.stable;
}

/* The last row before the present one that sets the variable, if every path to it does; -1 */
static int last_write(const Padding *p, int object) {
    const FlowCode *code = p->code;
    int last = -1;
    for (size_t i = 0; i < p->writes[object].count; i++)
        if (p->writes[object].items[i] < p->at) last = p->writes[object].items[i];
    if (last < 0 || code_row(code, last)->kind != ROW_SET) return -1;
    const Region *around = code_region(code, code_row(code, last)->region);
    bool other_arm =
        around->kind == REGION_IF && last < around->otherwise && around->otherwise < p->at;
    bool inside = around->begin <= p->at && p->at <= around->end;
    return inside && !other_arm ? last : -1;
}

static void find_local(Expr *expr, void *data) {
    const Expr *local = ((const Expr **)data)[0];
    if (expr->kind == X_LOCAL && expr->index == local->index) ((const Expr **)data)[1] = expr;
}

/* What the variable was set to, if that is still its value at the present row; otherwise NULL */
static Expr *set_to(Padding *p, const Expr *expr) {
    int object = expr->kind == X_LOCAL ? padding_scalar_object(p->code, expr->index) : -1;
    int row = object >= 0 ? last_write(p, object) : -1;
    Expr *value = row >= 0 ? code_row(p->code, row)->value : NULL;
    const Expr *own[] = {expr, NULL};
    if (!value || !padding_is_stable(p, (Expr *)expr, row) || !padding_is_stable(p, value, row))
        return NULL;
    expr_visit(p->arena, value, find_local, own);
    return own[1] ? NULL : value;
}

/* ---- equal expressions ----------------------------------------------------------------------- */

bool padding_same_element(const Padding *p, const Access *a, const Access *b) {
    Algebra *algebra = p->code->algebra;
    if (!same_object(a, b) || a->field != b->field || a->rank != b->rank) return false;
    for (int d = 0; d < a->rank; d++)
        if (!poly_equal(algebra_poly(algebra, p->code->role, a->subs[d]),
                        algebra_poly(algebra, p->code->role, b->subs[d])))
            return false;
    return true;
}

static bool same_call(Padding *p, const Expr *a, const Expr *b) {
    bool same = a->call.which == b->call.which && a->call.count == b->call.count;
    for (int i = 0; same && i < a->call.count; i++)
        same = padding_same(p, a->call.args[i], b->call.args[i]);
    return same;
}

bool padding_same(Padding *p, const Expr *a, const Expr *b) {
    const Expr *a_value = NULL, *b_value = NULL;
    if (a == b) return true;
    if (a->kind != b->kind && a->kind == X_LOCAL) a_value = set_to(p, a);
    if (a->kind != b->kind && b->kind == X_LOCAL) b_value = set_to(p, b);
    if (a_value || b_value) return padding_same(p, a_value ? a_value : a, b_value ? b_value : b);
    if (a->kind != b->kind || a->type != b->type || --p->work < 0) return false;
    switch (a->kind) {
    case X_CONST:
        return is_float(a) ? a->constant.number == b->constant.number
                           : a->constant.integer == b->constant.integer;
    case X_LOCAL:
        if (a->index == b->index) return true;
        a_value = set_to(p, a), b_value = set_to(p, b);
        return (a_value || b_value) &&
               padding_same(p, a_value ? a_value : a, b_value ? b_value : b);
    case X_PARAM:
    case X_SYMBOL: return a->index == b->index;
    case X_CAST: return padding_same(p, a->cast, b->cast);
    case X_UNARY:
        return a->unary.op == b->unary.op && padding_same(p, a->unary.operand, b->unary.operand);
    case X_BINARY:
        return a->binary.op == b->binary.op && padding_same(p, a->binary.left, b->binary.left) &&
               padding_same(p, a->binary.right, b->binary.right);
    case X_CALL: return same_call(p, a, b);
    case X_READ: return a->read && b->read && padding_same_element(p, a->read, b->read);
    case X_SELECT:
    case X_REDUCE:
    case X_SCAN:
    case X_POISON:
    case X_AXIS:
    case X_RANK:
    case X_INDEX: break;
    }
    return false;
}

PadOp padding_extreme(Padding *p, const Expr *select) {
    const Expr *condition = select->select.condition, *then = select->select.then,
               *otherwise = select->select.otherwise;
    if (condition->kind != X_BINARY || condition->binary.left->type != select->type)
        return PAD_OTHER;
    BinaryOp op = condition->binary.op;
    bool more = op == OP_GT || op == OP_GE, less = op == OP_LT || op == OP_LE;
    const Expr *left = condition->binary.left, *right = condition->binary.right;
    if (!more && !less) return PAD_OTHER;
    if (padding_same(p, left, then) && padding_same(p, right, otherwise))
        return more ? PAD_MAX : PAD_MIN;
    if (padding_same(p, left, otherwise) && padding_same(p, right, then))
        return more ? PAD_MIN : PAD_MAX;
    return PAD_OTHER;
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* The argument of abs, which is 0 where its result is */
static const Expr *magnitude(const Expr *expr) {
    return expr->kind == X_CALL && expr->call.which == IN_abs ? expr->call.args[0] : NULL;
}

/* The value where `tested op number` holds */
static Value where(Padding *p, const Expr *tested, BinaryOp op, double number, const Expr *expr,
                   Value value) {
    const Expr *inner = magnitude(tested);
    if (padding_same(p, tested, expr)) return pad_within(value, op, number);
    if (!inner || !padding_same(p, inner, expr)) return value;
    bool apart = op == OP_GT ? number >= 0 : op == OP_NE ? number == 0 : op == OP_GE && number > 0;
    return apart ? pad_within(value, OP_NE, 0) : value;
}

/* The value where `tested op other` holds, if `tested` is the expression */
static Value against(Padding *p, const Expr *tested, BinaryOp op, const Expr *other,
                     const Expr *expr, Value value, bool truth) {
    if (p->bounding || !padding_same(p, tested, expr)) return value;
    p->bounding = true; /* the other value is not narrowed by this one */
    Value limit = fill_all(padding_of(p, (Expr *)other, p->axis));
    p->bounding = false;
    bool below = op == OP_LT || op == OP_LE, above = op == OP_GT || op == OP_GE;
    if (!pad_exists(limit) || (!truth && limit.nan)) return value;
    if (below || op == OP_EQ) value = pad_within(value, below ? op : OP_LE, limit.hi);
    if (above || op == OP_EQ) value = pad_within(value, above ? op : OP_GE, limit.lo);
    return value;
}

/* The value where the condition has this truth */
static Value narrowed(Padding *p, const Expr *condition, bool truth, const Expr *expr,
                      Value value) {
    double number;
    arena_count(p->arena, 3);
    if (condition->kind == X_UNARY && condition->unary.op == OP_NOT)
        return narrowed(p, condition->unary.operand, !truth, expr, value);
    Expr *named = set_to(p, condition);
    if (named) return narrowed(p, named, truth, expr, value);
    if (condition->kind != X_BINARY || !pad_exists(value)) return value;
    BinaryOp op = condition->binary.op;
    const Expr *left = condition->binary.left, *right = condition->binary.right;
    if (op == OP_AND || op == OP_OR) {
        Value first = narrowed(p, left, truth, expr, value);
        if ((op == OP_AND) == truth) return narrowed(p, right, truth, expr, first);
        return pad_join(first, narrowed(p, right, truth, expr, value));
    }
    if (op < OP_EQ) return value;
    if (!truth) { /* of floats it is false for NaN, too */
        if (is_float(left) && op != OP_EQ && op != OP_NE && value.nan) return value;
        op = comparison_negated(op);
    }
    if (is_number(right, &number)) return where(p, left, op, number, expr, value);
    if (is_number(left, &number))
        return where(p, right, comparison_turned(op), number, expr, value);
    value = against(p, left, op, right, expr, value, truth);
    return against(p, right, comparison_turned(op), left, expr, value, truth);
}

static Value all_narrowed(Padding *p, const Expr *expr, Value value) {
    for (size_t i = 0; i < p->decided.count; i++)
        value = narrowed(p, p->decided.items[i].condition, p->decided.items[i].truth, expr, value);
    return value;
}

/* Conditions may exclude elements, or padding. If they exclude both, the cell stays: whether it is
 * chosen is then known from the condition itself. */
static void narrow_cell(Padding *p, const Expr *expr, Cell *cell) {
    Value element = all_narrowed(p, expr, cell->element),
          padding = all_narrowed(p, expr, cell->padding);
    if (!pad_exists(element) && !pad_exists(padding)) return;
    cell->element = element, cell->padding = padding;
}

static const Fill *required(Padding *p, const Stated *known, const Fill *fill) {
    Value value = fill->at[0].element;
    if (!known->number) return fill;
    value.lo = fmax(value.lo, known->range.lo), value.hi = fmin(value.hi, known->range.hi);
    value.nonzero |= known->nonzero;
    return fill_of(&p->fills, value);
}

const Fill *padding_stated(Padding *p, const Expr *expr, const Fill *fill) {
    bool param = expr->kind == X_PARAM;
    if (param) fill = required(p, &p->code->prog->params.items[expr->index].stated, fill);
    if (p->decided.count == 0 || expr->kind == X_CONST || expr->kind == X_INDEX) return fill;
    Draft out;
    fill_draft(fill, &out);
    for (unsigned s = 0; s < 1u << out.count; s++) narrow_cell(p, expr, &out.at[s]);
    return fill_made(&p->fills, &out);
}

/* ---- the path -------------------------------------------------------------------------------- */

static void decide(Padding *p, const Region *asked, bool truth, int from) {
    if (asked->condition && padding_is_stable(p, asked->condition, from))
        vec_push(p->arena, &p->decided, (struct Decided){asked->condition, truth});
}

typedef struct Narrowing { /* of the variables in a condition */
    Padding *p;
    Expr *condition;
    bool truth;
    int from; /* its row */
} Narrowing;

static void narrow_variable(Expr *expr, void *data) {
    const Narrowing *n = data;
    Padding *p = n->p;
    int object = expr->kind == X_LOCAL ? padding_scalar_object(p->code, expr->index) : -1;
    if (object < 0 || p->slots[object] < 0 || !padding_is_stable(p, n->condition, n->from)) return;
    TileFill next = *padding_object(p, object);
    if (!next.element) return;
    Value value = narrowed(p, n->condition, n->truth, expr, next.element->at[0].element);
    next.element = pad_exists(value) ? fill_of(&p->fills, value) : NULL;
    padding_put(p, object, &next, false);
}

/* No element decides like this: the path has none. */
static void forget_elements(Padding *p) {
    for (size_t i = 0; i < p->objects.count; i++) {
        TileFill next = *p->state[i].fill;
        next.element = NULL;
        padding_put(p, p->objects.items[i], &next, false);
    }
}

void padding_narrow(Padding *p, const Region *asked, bool truth) {
    const FlowCode *code = p->code;
    Expr *condition = asked->condition;
    if (!p->orders || !condition) return;
    p->at = truth ? asked->otherwise : asked->end;
    p->work = NARROWING_MOST;
    for (int r = asked->parent; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        if (region->kind != REGION_FOR || region->var < 0) continue;
        const Fill *fill = padding_of(p, condition, padding_loop_axis(code, r));
        if (padding_without_first(p, fill)->padded) return;
    }
    Value decides = padding_of(p, condition, padding_no_axis)->at[0].element;
    if (pad_is(decides, !truth)) forget_elements(p);
    p->axis = padding_no_axis;
    expr_visit(p->arena, condition, narrow_variable,
               &(Narrowing){p, condition, truth, truth ? asked->begin : asked->otherwise});
}

void padding_decide_path(Padding *p) {
    const FlowCode *code = p->code;
    if (!p->proofs || !flow_values(p->arena, p->code)) return;
    for (int r = code->rows.items[p->at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        bool truth;
        size_t next = 0;
        for (int left; (left = values_left(code, r, p->at, &next, &truth)) >= 0;)
            decide(p, code_region(code, left), truth, code_region(code, left)->begin);
        bool first = p->at < region->otherwise;
        if (region->kind == REGION_IF)
            decide(p, region, first, first ? region->begin : region->otherwise);
    }
}

/* The value of a `let` that is the same at all places, else the expression itself */
Expr *padding_resolved(Padding *p, Expr *expr) {
    while (expr->kind == X_LOCAL && expr->index >= 0) {
        const Local *local = &p->code->role->locals.items[expr->index];
        if (local->kind != LOCAL_LET || !local->value) break;
        Algebra *algebra = p->code->algebra;
        if (poly_changes(algebra, algebra_poly(algebra, p->code->role, local->value))) break;
        expr = local->value;
    }
    return expr;
}

static Value map_nonzero(Value value, bool padding, const void *data) {
    Value out = pad_within(value, OP_NE, 0);
    (void)padding, (void)data;
    return pad_exists(out) ? out : value;
}

const Fill *padding_learned(Padding *p, Expr *expr, const Fill *fill) {
    Algebra *algebra = p->code->algebra;
    if (!p->proofs || --p->work < 0) return fill;
    expr = padding_resolved(p, expr);
    while (expr->kind == X_CAST && is_float(expr) && (!is_float(expr->cast) || expr->type == E_F32))
        expr = padding_resolved(p, expr->cast);
    if (is_float(expr)) return fill;
    Bindings before = values_at(p->arena, p->code, p->at);
    bool nonzero =
        algebra_proves(algebra, CLAIM_NOT_ZERO, algebra_poly(algebra, p->code->role, expr));
    (void)algebra_hold(algebra, before);
    return nonzero ? fill_map(&p->fills, fill, map_nonzero, NULL) : fill;
}
