/* Refusals of padding: reductions, and loops that reduce, of values that belong to no element. */
#include "check/padding.h"

/* ---- refusals -------------------------------------------------------------------------------- */

typedef struct Mask { /* a condition of a select that depends on the axis */
    Padding *p;
    PadAxis axis;
    Expr *found;
} Mask;

static void find_mask(Expr *expr, void *data) {
    Mask *mask = data;
    if (expr->kind != X_SELECT || mask->found) return;
    if (padding_mentions(mask->p, expr->select.condition, mask->axis))
        mask->found = expr->select.condition;
}

static bool was_reported(Padding *p, Span span) {
    for (size_t i = 0; i < p->reported.count; i++)
        if (p->reported.items[i].lo == span.lo && p->reported.items[i].hi == span.hi) return true;
    vec_push(p->arena, &p->reported, span);
    return false;
}

static bool all_known(const Fill *fill) {
    for (int i = 0; i < fill->count; i++)
        if (!fill->edges[i].sub) return false;
    return !fill->more;
}

/* `what` uses padding: "`sum[x]`", "the loop over `c`" */
static void refuse(Padding *p, Expr *value, Span span, PadAxis axis, const char *what,
                   const char *neutral, const Fill *fill) {
    Diags *diags = p->tiles->diags;
    Mask mask = {p, axis, NULL};
    const char *name = axis.fixed        ? NULL
                       : axis.index >= 0 ? p->space->items[axis.index].name
                                         : p->code->role->locals.items[axis.local].name;
    p->refused[p->code->role - p->tiles->prog->roles.items]++;
    if (!p->report || was_reported(p, span)) return;
    expr_visit(p->arena, value, find_mask, &mask);
    bool unknown = axis.fixed || ((mask.found || axis.kept) && !all_known(fill));
    Diag *diag = unknown
                     ? diag_at(diags, P0236, span, "cannot show that %s includes no padding", what)
                     : diag_at(diags, P0219, span, "%s includes padding", what);
    diag_primary(diags, diag,
                 !(fill->pads & PADS_UNSUMMED) ? "includes zeros that were read outside of the "
                                                 "tensor"
                                               : "includes values that were computed from zeros "
                                                 "outside of the tensor");
    for (int i = 0; i < fill->count && i < 2; i++) {
        if (i > 0 && fill->edges[0].from.lo == fill->edges[i].from.lo) continue;
        diag_label(diags, diag, fill->edges[i].from,
                   "may extend outside of the tensor%s; those "
                   "elements are zero",
                   name ? arena_printf(p->arena, " along `%s`", name) : "");
    }
    if (mask.found && mask.found->span.hi)
        diag_label(diags, diag, mask.found->span,
                   "this condition may also hold outside of the "
                   "tensor");
    if (axis.fixed)
        diag_help(diags, diag,
                  "compare the position in the tensor with its extent before the read");
    else if (unknown)
        diag_help(diags, diag,
                  "loop over the same `range` in both roles, and compare the position in the "
                  "tensor with its extent");
    else
        diag_help(diags, diag, "mask it: `.. + %s < extent ? .. : %s`", name, neutral);
}

/* The operation that combines values: zeros are neutral for a sum, -inf for a maximum; zeros too
 * if no value is negative */
typedef enum Joining { JOIN_SUM, JOIN_MAX, JOIN_MIN, JOIN_OTHER } Joining;

static const char *const neutral[] = {
    [JOIN_SUM] = "0", [JOIN_MAX] = "-inf", [JOIN_MIN] = "inf", [JOIN_OTHER] = "the value before"};

static bool takes_padding(Padding *p, const Fill *fill, Joining joining, const Expr *value) {
    unsigned harmless = PAD_MASKED;
    switch (joining) {
    case JOIN_SUM: return (fill->pads & PADS_UNSUMMED) != 0;
    case JOIN_MAX: harmless |= PAD_LOW | PAD_WITH_LOW; break;
    case JOIN_MIN: harmless |= PAD_HIGH | PAD_WITH_HIGH; break;
    case JOIN_OTHER: harmless |= PAD_LOW | PAD_HIGH; break;
    }
    if (joining == JOIN_MAX && padding_at_least_zero(p, value))
        harmless |= PAD_ZERO | PAD_WITH_ZERO;
    return (fill->pads & PADS_BEYOND & ~harmless) != 0;
}

/* Elements along an index of the statement, which the expression combines */
static void check_combined(Padding *p, const Expr *expr, ReduceOp op, Expr *body, int index) {
    static const struct {
        const char *name;
        Joining joining;
    } rows[] = {[REDUCE_SUM] = {"sum", JOIN_SUM},
                [REDUCE_MAX] = {"max", JOIN_MAX},
                [REDUCE_MIN] = {"min", JOIN_MIN}};
    Joining joining = rows[op].joining;
    PadAxis axis = {
        .index = index, .atom = algebra_atom_index(p->code->algebra, index), .local = -1};
    p->outcome = joining != JOIN_SUM;
    Fill fill = padding_of(p, body, axis);
    p->outcome = false;
    if (!takes_padding(p, &fill, joining, body)) return;
    const char *what =
        arena_printf(p->arena, "`%s[%s]`", rows[op].name, p->space->items[index].name);
    refuse(p, body, expr->span, axis, what, neutral[joining], &fill);
}

void padding_visit_reduction(Expr *expr, void *data) {
    if (expr->kind == X_SCAN)
        check_combined(data, expr, expr->scan.op, expr->scan.body, expr->scan.along);
    if (expr->kind != X_REDUCE) return;
    for (int i = expr->reduce.first; i < expr->reduce.first + expr->reduce.count; i++)
        check_combined(data, expr, expr->reduce.op, expr->reduce.body, i);
}

/* ---- loops that reduce ----------------------------------------------------------------------- */

/* The operation with which the value combines its old value and other values; OTHER if it is
 * none of these. */
static Joining joining_of(Padding *p, Expr *expr) {
    if (expr->kind == X_READ || expr->kind == X_LOCAL) return JOIN_SUM;
    if (expr->kind == X_CAST) return joining_of(p, expr->cast);
    if (expr->kind == X_UNARY && expr->unary.op == OP_NEG)
        return joining_of(p, expr->unary.operand);
    bool max = expr->kind == X_CALL && expr->call.which == IN_max,
         min = expr->kind == X_CALL && expr->call.which == IN_min;
    bool sum = expr->kind == X_BINARY && (expr->binary.op == OP_ADD || expr->binary.op == OP_SUB);
    if (!sum && !max && !min) return JOIN_OTHER;
    Expr *left = sum ? expr->binary.left : expr->call.args[0],
         *right = sum ? expr->binary.right : expr->call.args[1];
    Joining joining = sum ? JOIN_SUM : max ? JOIN_MAX : JOIN_MIN;
    Expr *self = padding_reads_self(p, left) ? left : padding_reads_self(p, right) ? right : NULL;
    if (!self || (self == left && padding_reads_self(p, right))) return JOIN_OTHER;
    bool alone = self->kind == X_READ || self->kind == X_LOCAL;
    return alone || joining_of(p, self) == joining ? joining : JOIN_OTHER;
}

static bool target_mentions(Padding *p, PadAxis axis) {
    for (int d = 0; p->target && d < p->target->rank; d++)
        if (padding_mentions(p, p->target->subs[d], axis)) return true;
    return false;
}

typedef struct Direct {
    Padding *p;
    PadAxis axis;
    bool found;
} Direct;

static void find_direct(Expr *expr, void *data) {
    Direct *direct = data;
    const FlowCode *code = direct->p->code;
    for (int d = 0; expr->kind == X_READ && expr->read && d < expr->read->rank; d++) {
        const Poly *factor, *rest,
            *sub = algebra_poly(code->algebra, code->role, expr->read->subs[d]);
        int64_t coef;
        bool linear = poly_split(code->algebra, sub, direct->axis.atom, &factor, &rest) &&
                      poly_is_constant(factor, &coef);
        direct->found |=
            linear && coef != 0 && !poly_mentions(code->algebra, rest, direct->axis.atom);
    }
}

/* True if the loop visits elements one after the other. `k % 3` does not. */
static bool goes_through_elements(Padding *p, Expr *value, PadAxis axis) {
    Direct direct = {p, axis, axis.fixed};
    if (!axis.fixed) expr_visit(p->arena, value, find_direct, &direct);
    return direct.found;
}

/* How the statement combines values with the old value of its target */
static Joining joining_of_statement(Padding *p, Expr *value, AssignOp op) {
    bool self = padding_reads_self(p, value), adds = op == ASSIGN_ADD || op == ASSIGN_SUB;
    if (op == ASSIGN_SET) return self ? joining_of(p, value) : JOIN_OTHER;
    return adds && (!self || joining_of(p, value) == JOIN_SUM) ? JOIN_SUM : JOIN_OTHER;
}

static const char *loop_name(Padding *p, int local) {
    return arena_printf(p->arena, "the loop over `%s`", p->code->role->locals.items[local].name);
}

static void check_loop(Padding *p, Expr *value, AssignOp op, PadAxis axis) {
    bool self = padding_reads_self(p, value);
    Fill fill = padding_of(p, value, axis);
    bool chosen = padding_controlled(p, axis, &fill);
    if (target_mentions(p, axis) || (op == ASSIGN_SET && !self && !chosen)) return;
    Joining joining = joining_of_statement(p, value, op);
    /* Single positions of a recurrence are no reduction */
    if (joining == JOIN_OTHER && (axis.fixed || !goes_through_elements(p, value, axis))) return;
    if (!takes_padding(p, &fill, joining, value)) return;
    const char *what = axis.fixed ? "the loop" : loop_name(p, axis.local);
    refuse(p, value, value->span, axis, what, neutral[joining], &fill);
}

bool padding_of_iteration(const FlowCode *code, const Region *region, const Poly *poly) {
    for (size_t v = 0; v < code->role->locals.count; v++) {
        bool own = region->kind == REGION_FOR ? (int)v == region->var
                                              : code->role->locals.items[v].kind == LOCAL_AXIS;
        if (own && poly_mentions(code->algebra, poly,
                                 algebra_atom_local(code->algebra, code->role, (int)v)))
            return true;
    }
    return false;
}

/* True if each iteration of the region writes the object anew */
static bool is_written_anew(const Padding *p, const Region *region) {
    const Access *target = p->target;
    if (target && target->space == SPACE_GLOBAL) return false;
    if (!target || target->space != SPACE_STAGE) {
        const TileFill *fill =
            target ? &p->state[target->object] : padding_scalar(p, p->target_local);
        return fill && padding_assigned(fill, region);
    }
    for (int at = region->begin; at <= region->end; at++) {
        const Row *row = &p->code->rows.items[at];
        if (row->kind == ROW_OPEN && row->object == OBJECT_HANDLE && row->index == target->object)
            return true;
    }
    return false;
}

/* True if other positions may be beyond the edges in another iteration of the loop */
static bool edges_move(const FlowCode *code, const Region *loop, const Fill *fill) {
    bool moves = fill->more;
    for (int i = 0; i < fill->count; i++) {
        const Poly *sub = fill->edges[i].sub;
        moves |= poly_changes(code->algebra, sub) || padding_of_iteration(code, loop, sub);
    }
    return moves;
}

typedef struct Factors { /* what a statement multiplies the old value of its target by */
    Padding *p;
    PadAxis axis;
    Fill fill;
} Factors;

static void find_factor(Expr *expr, void *data) {
    Factors *factors = data;
    Padding *p = factors->p;
    if (expr->kind != X_BINARY || (expr->binary.op != OP_MUL && expr->binary.op != OP_DIV)) return;
    bool left = padding_reads_self(p, expr->binary.left),
         right = padding_reads_self(p, expr->binary.right);
    if (left == right) return;
    Fill fill = padding_of(p, left ? expr->binary.right : expr->binary.left, factors->axis);
    fill_add(&factors->fill, &fill);
}

/* A product keeps no element that it multiplies by a zero of padding. A recurrence has no other
 * values that are neutral. */
static bool scales_by_padding(Padding *p, Expr *value, AssignOp op, PadAxis axis, Fill *out) {
    Factors factors = {.p = p, .axis = axis};
    if (op == ASSIGN_MUL || op == ASSIGN_DIV) factors.fill = padding_of(p, value, axis);
    expr_visit(p->arena, value, find_factor, &factors);
    *out = factors.fill;
    return (out->pads & PADS_BEYOND & ~(unsigned)(PAD_MASKED | PAD_ONE)) != 0;
}

/* Positions of the target that some iterations of the loop combine with elements, and others with
 * padding */
static void check_positions(Padding *p, Expr *value, AssignOp op, const Region *loop) {
    Algebra *algebra = p->code->algebra;
    Joining joining = joining_of_statement(p, value, op);
    if (!p->target || target_mentions(p, padding_loop_axis(p->code, loop->var))) return;
    for (int i = 0; i < p->space->bound; i++) {
        PadAxis axis = {
            .index = i, .atom = algebra_atom_index(algebra, i), .local = -1, .kept = true};
        if (!target_mentions(p, axis)) continue;
        Fill fill = {0};
        bool taken = joining == JOIN_OTHER && scales_by_padding(p, value, op, axis, &fill);
        if (joining != JOIN_OTHER) {
            fill = padding_of(p, value, axis);
            taken = takes_padding(p, &fill, joining, value);
        }
        if (!taken || !edges_move(p->code, loop, &fill)) continue;
        refuse(p, value, value->span, axis, loop_name(p, loop->var), neutral[joining], &fill);
    }
}

void padding_check_loops(Padding *p, Expr *value, AssignOp op) {
    const FlowCode *code = p->code;
    bool inside = false;
    for (int r = code->rows.items[p->at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        if (region->kind != REGION_FOR || region->var < 0 || is_written_anew(p, region)) continue;
        check_loop(p, value, op, padding_loop_axis(code, region->var));
        check_positions(p, value, op, region);
        inside = true;
    }
    if (inside) check_loop(p, value, op, padding_fixed);
}
