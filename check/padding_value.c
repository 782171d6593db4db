/* Contents of an expression along one axis of a statement: elements, zeros beyond the edge, or
 * values computed from them. Both outcomes of each select's condition are considered; under
 * each, reads that are then proved to be inside of their tensors are only elements. */
#include "check/padding.h"
#include "flow/match.h"

#include <math.h>

/* most conditions of selects in one value for which both outcomes are considered */
#define CONDITIONS_MOST 4

static const Fill element = {.pads = PAD_ELEMENT};

int padding_place(Padding *p) {
    const Poly *atom = algebra_version(p->code->algebra, NULL, -1, -1, "place", E_I32);
    return atom->terms[0].atoms[0];
}

/* ---- reads ----------------------------------------------------------------------------------- */

bool padding_mentions(Padding *p, Expr *expr, PadAxis axis) {
    if (!expr) return false;
    if (axis.index >= 0) return expr->indexes >> axis.index & 1;
    int64_t position;
    if (axis.single) return expr->indexes == 0;
    if (axis.fixed)
        return poly_is_constant(algebra_poly(p->code->algebra, p->code->role, expr), &position);
    return poly_mentions(p->code->algebra, algebra_poly(p->code->algebra, p->code->role, expr),
                         axis.atom);
}

/* Constant extents need no proof, so that no second round follows only because of them. */
static bool within_constant(Algebra *algebra, const Poly *sub, const Poly *past) {
    int64_t extent, lo, hi;
    return sub && past && poly_is_constant(past, &extent) &&
           poly_interval(algebra, algebra->space, sub, &lo, &hi) && lo >= 0 && hi < extent;
}

static bool proved_inside(Padding *p, const Poly *sub, const Poly *past) {
    Algebra *algebra = p->code->algebra;
    if (within_constant(algebra, sub, past)) return true;
    if (!p->proofs || !sub || !past || poly_changes(algebra, sub) || poly_changes(algebra, past))
        return false;
    const Poly *room = poly_offset(algebra, poly_sum(algebra, past, sub, -1), -1);
    return algebra_proves(algebra, CLAIM_NOT_NEGATIVE, sub) &&
           algebra_proves(algebra, CLAIM_NOT_NEGATIVE, room);
}

/* True if all positions that the subscript reaches are within all edges; NULL: the edges are not
 * by position in a tile */
static bool inside_edges(Padding *p, const Fill *fill, const Poly *place) {
    for (int i = 0; i < fill->count; i++) {
        const Edge *edge = &fill->edges[i];
        const Poly *sub = edge->sub;
        if (sub && place) sub = poly_replace(p->code->algebra, sub, padding_place(p), place);
        if (!proved_inside(p, sub, edge->past)) return false;
    }
    return !fill->more;
}

void padding_refine(Padding *p, Fill *fill, int64_t extent) {
    Algebra *algebra = p->code->algebra;
    const Poly *place = poly_atom(algebra, padding_place(p));
    if (!fill_padded(fill)) return;
    PathMark mark = algebra_mark(algebra);
    algebra_assume_range(algebra, place, poly_constant(algebra, 0), poly_constant(algebra, extent));
    if (inside_edges(p, fill, place)) *fill = fill_within(fill);
    algebra_undo(algebra, mark);
}

/* True if the formula is the same in all iterations for one tile of the grid */
static bool is_of_tile(const FlowCode *code, const Poly *poly) {
    if (poly_changes(code->algebra, poly)) return false;
    for (size_t v = 0; v < code->role->locals.count; v++)
        if (code->role->locals.items[v].kind != LOCAL_AXIS &&
            poly_mentions(code->algebra, poly,
                          algebra_atom_local(code->algebra, code->role, (int)v)))
            return false;
    return true;
}

/* Contents that the producer has written, in the algebra and the loop variables of this role, for
 * one way in which the stage may have been filled; NULL: any way */
static Fill translated(Padding *p, const Fill *fill, FlowCode *producer, const Filling *way,
                       bool same_tile) {
    Algebra *algebra = p->code->algebra;
    Fill out = *fill;
    for (int i = 0; i < out.count; i++) {
        Edge *edge = &out.edges[i];
        bool known = way || (same_tile && edge->sub && is_of_tile(producer, edge->sub));
        edge->sub =
            known && edge->sub ? algebra_import(algebra, producer->algebra, edge->sub) : NULL;
        edge->past = edge->past ? algebra_import(algebra, producer->algebra, edge->past) : NULL;
        for (size_t m = 0; way && m < way->loops.count && edge->sub; m++)
            edge->sub =
                poly_replace(algebra, edge->sub,
                             algebra_atom_local(algebra, producer->role, way->loops.items[m].from),
                             way->loops.items[m].to);
    }
    return out;
}

/* Contents of a consumed stage's field along its dimension d, over all ways to fill it */
static Fill stage_fill(Padding *p, const Access *read, int d) {
    const Prog *prog = p->code->prog;
    int pipe = p->code->role->handles.items[read->object].pipe;
    int role = prog->pipes.items[pipe].producer;
    FlowCode *producer = role >= 0 ? prog->roles.items[role].code : NULL;
    const Fillings *ways =
        p->proofs && producer ? match_stage(p->arena, producer, p->code, read->object) : NULL;
    Fill out = {0};
    if (ways && ways->known) {
        for (size_t i = 0; i < ways->items.count; i++) {
            const Filling *way = &ways->items.items[i];
            const TileFill *field = padding_field(p, pipe, way->handle, read->field);
            PathMark mark = algebra_mark(p->code->algebra);
            for (size_t k = 0; k < way->facts.count; k++)
                algebra_assume_poly(p->code->algebra, way->facts.items[k]);
            Fill fill = translated(p, &field->dims[d], producer, way, false);
            if (ways->items.count > 1)
                padding_refine(p, &fill,
                               prog->pipes.items[pipe].fields.items[read->field].extents[d]);
            algebra_undo(p->code->algebra, mark);
            fill_add(&out, &fill);
        }
        return out;
    }
    for (int h = 0; h < padding_writers(p, pipe); h++) {
        const TileFill *field = padding_field(p, pipe, h, read->field);
        Fill fill = producer
                        ? translated(p, &field->dims[d], producer, NULL, ways && ways->same_tile)
                        : field->dims[d];
        fill_add(&out, &fill);
    }
    return out;
}

static bool own_end(const Padding *p, int handle) {
    return p->code->role->handles.items[handle].end == END_PRODUCE;
}

static Fill dim_fill(Padding *p, const Access *read, int d) {
    if (read->space == SPACE_STAGE) {
        const TileFill *stage = padding_read(p, read);
        if (!stage) return element;
        return own_end(p, read->object) ? stage->dims[d] : stage_fill(p, read, d);
    }
    if (read->space == SPACE_SHARED || read->space == SPACE_REGISTER)
        return p->state[read->object].dims[d];
    return element;
}

/* Contents of the read along the axis by its dimension d, which the axis subscripts */
static Fill read_dim(Padding *p, const Access *read, int d) {
    Algebra *algebra = p->code->algebra;
    const Poly *sub = algebra_poly(algebra, p->code->role, read->subs[d]);
    if (read->space != SPACE_GLOBAL) {
        Fill fill = dim_fill(p, read, d);
        if (fill_padded(&fill) && inside_edges(p, &fill, sub)) fill = fill_within(&fill);
        for (int i = 0; i < fill.count; i++) {
            Edge *edge = &fill.edges[i];
            if (edge->sub) edge->sub = poly_replace(algebra, edge->sub, padding_place(p), sub);
        }
        return fill;
    }
    const Poly *past = algebra_launched(algebra, access_extent(p->tiles, p->code->role, read, d));
    if (within_constant(algebra, sub, past)) return element;
    Fill fill = {.pads = PAD_ZERO, .count = 1};
    fill.edges[0] = (Edge){sub, past, read->span, true};
    return proved_inside(p, sub, past) ? fill_within(&fill) : fill;
}

static bool same_element(const Padding *p, const Access *a) {
    const Access *b = p->target;
    if (!b || a->space != b->space || a->object != b->object || a->field != b->field ||
        a->rank != b->rank)
        return false;
    Algebra *algebra = p->code->algebra;
    for (int d = 0; d < a->rank; d++)
        if (!poly_equal(algebra_poly(algebra, p->code->role, a->subs[d]),
                        algebra_poly(algebra, p->code->role, b->subs[d])))
            return false;
    return true;
}

static bool is_self(const Padding *p, const Expr *expr) {
    if (expr->kind == X_LOCAL) return p->target_local >= 0 && expr->index == p->target_local;
    return expr->kind == X_READ && expr->read && same_element(p, expr->read);
}

/* Padding along another dimension is checked along that one: here the read is assumed to be
 * inside of its tensor there. */
static void assume_others(Padding *p, const Access *read, int but) {
    Algebra *algebra = p->code->algebra;
    for (int d = 0; d < read->rank && p->proofs; d++) {
        if (d == but) continue;
        const Poly *sub = algebra_poly(algebra, p->code->role, read->subs[d]);
        if (read->space == SPACE_GLOBAL) {
            const Poly *past =
                algebra_launched(algebra, access_extent(p->tiles, p->code->role, read, d));
            if (sub && past) algebra_assume_range(algebra, sub, poly_constant(algebra, 0), past);
            continue;
        }
        Fill fill = dim_fill(p, read, d);
        bool one = fill.count == 1 && !fill.more && fill.edges[0].sub && fill.edges[0].past;
        const Poly *at =
            one ? poly_replace(algebra, fill.edges[0].sub, padding_place(p), sub) : NULL;
        if (at) algebra_assume_range(algebra, at, poly_constant(algebra, 0), fill.edges[0].past);
    }
}

/* Values that iterations of the loop of the axis computed; empty: no padding */
static Fill loop_fill(Padding *p, const TileFill *tile, PadAxis axis) {
    bool looped = tile && (axis.local >= 0 || axis.fixed);
    Fill fill = looped ? padding_loop_fill(tile, axis.local) : (Fill){0};
    return fill_padded(&fill) && inside_edges(p, &fill, NULL) ? element : fill;
}

static void find_memory(Expr *expr, void *data) {
    *(bool *)data |= expr->kind == X_READ || expr->kind == X_LOCAL;
}

/* True if the value may depend on memory, now or by a variable */
static bool reads_memory(Padding *p, Expr *expr) {
    bool found = false;
    if (expr->kind != X_CONST && expr->kind != X_INDEX)
        expr_visit(p->arena, expr, find_memory, &found);
    return found;
}

static Fill read_fill(Padding *p, const Access *read, PadAxis axis) {
    bool stage = read->space == SPACE_STAGE;
    Fill fill = loop_fill(p, stage ? NULL : padding_tile(p, read), axis);
    bool along = fill_padded(&fill);
    if (!fill.pads) fill = element;
    for (int d = 0; d < read->rank; d++) {
        bool mentions = padding_mentions(p, read->subs[d], axis);
        if (!mentions && !reads_memory(p, read->subs[d])) continue;
        PathMark mark = {0};
        if (p->proofs) mark = algebra_mark(p->code->algebra), assume_others(p, read, d);
        Fill inner = padding_of(p, read->subs[d], axis); /* a gather with a padded table */
        Fill by_dimension = mentions ? read_dim(p, read, d) : element;
        if (p->proofs) algebra_undo(p->code->algebra, mark);
        if (!mentions && !fill_padded(&inner)) continue;
        if (fill_padded(&inner)) by_dimension = fill_pair(&inner, &inner, PAD_OTHER);
        if (along) by_dimension = fill_pair(&fill, &by_dimension, PAD_MUL);
        fill = by_dimension;
        along = true;
    }
    return fill;
}

/* ---- expressions ----------------------------------------------------------------------------- */

static Fill of(Padding *p, Expr *expr, PadAxis axis);

static Fill both(Padding *p, Expr *left, Expr *right, PadAxis axis, PadOp op) {
    Fill a = of(p, left, axis), b = of(p, right, axis);
    return fill_pair(&a, &b, op);
}

/* Zeros do not change a maximum of values that are never negative. */
static Fill max_fill(Padding *p, Expr *left, Expr *right, PadAxis axis) {
    Fill a = of(p, left, axis), b = of(p, right, axis);
    bool padded = fill_padded(&a) || fill_padded(&b);
    bool positive = padded && padding_at_least_zero(p, left) && padding_at_least_zero(p, right);
    return fill_pair(&a, &b, positive ? PAD_MAX_POSITIVE : PAD_MAX);
}

/* A factor of zeros is taken to be finite, unless the value itself divides by what may be 0. */
static Fill product_fill(Padding *p, Expr *left, Expr *right, PadAxis axis) {
    Fill a = of(p, left, axis), b = of(p, right, axis);
    bool pole = (fill_padded(&a) && padding_has_pole(p, right)) ||
                (fill_padded(&b) && padding_has_pole(p, left));
    return fill_pair(&a, &b, pole ? PAD_OTHER : PAD_MUL);
}

static Fill call_fill(Padding *p, const Expr *expr, PadAxis axis) {
    Expr *const *args = expr->call.args;
    switch (expr->call.which) {
    case IN_min: return both(p, args[0], args[1], axis, PAD_MIN);
    case IN_max: return max_fill(p, args[0], args[1], axis);
    case IN_ceil_div: return both(p, args[0], args[1], axis, PAD_OTHER);
    case IN_fma: {
        Fill product = product_fill(p, args[0], args[1], axis), more = of(p, args[2], axis);
        return fill_pair(&product, &more, PAD_ADD);
    }
    case IN_abs:
    case IN_sqrt:
    case IN_sin:
    case IN_tanh:
    case IN_floor:
    case IN_ceil:
    case IN_exp:
    case IN_exp2:
    case IN_cos:
    case IN_rsqrt:
    case IN_rcp:
    case IN_log:
    case IN_log2:
    case IN_COUNT: break;
    }
    Fill of_argument = of(p, args[0], axis);
    return fill_call(&of_argument, expr->call.which);
}

static bool same_condition(const Expr *a, const Expr *b) { return a == b; }

/* Index of the condition among the decided ones; -1: open */
static int decided(const Padding *p, const Expr *condition) {
    for (size_t i = 0; i < p->decided.count; i++)
        if (same_condition(p->decided.items[i].condition, condition)) return (int)i;
    return -1;
}

int padding_decided(const Padding *p, const Expr *condition) {
    int at = decided(p, condition);
    return at < 0 ? -1 : p->decided.items[at].truth;
}

static Fill quotient_fill(Padding *p, const Expr *expr, PadAxis axis) {
    Fill a = of(p, expr->binary.left, axis), b = of(p, expr->binary.right, axis);
    bool asked = fill_padded(&a) || a.pads & PAD_LIVE; /* otherwise both give the same */
    return fill_pair(&a, &b,
                     asked && padding_not_zero(p, expr->binary.right) ? PAD_DIV_NONZERO : PAD_DIV);
}

static Fill binary_fill(Padding *p, const Expr *expr, PadAxis axis) {
    Expr *left = expr->binary.left, *right = expr->binary.right;
    switch (expr->binary.op) {
    case OP_ADD: return both(p, left, right, axis, PAD_ADD);
    case OP_SUB: return both(p, left, right, axis, PAD_SUB);
    case OP_MUL: return product_fill(p, left, right, axis);
    case OP_DIV: return quotient_fill(p, expr, axis);
    case OP_MOD: {
        Fill a = of(p, left, axis), b = of(p, right, axis);
        double rest;
        bool zero = fill_number(&a, &rest) && rest == 0 && padding_not_zero(p, right);
        return fill_pair(&a, &b, zero ? PAD_DIV_NONZERO : PAD_OTHER);
    }
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
    case OP_AND:
    case OP_OR: return both(p, left, right, axis, PAD_OTHER);
    }
    return element;
}

/* `position < end` in a condition that holds only there: the edge of an explicit mask in a tile */
static bool live_edge(Padding *p, Expr *condition, PadAxis axis, Edge *edge) {
    Algebra *algebra = p->code->algebra;
    if (!p->proofs || condition->kind != X_BINARY) return false;
    Expr *left = condition->binary.left, *right = condition->binary.right;
    if (condition->binary.op == OP_AND)
        return live_edge(p, left, axis, edge) || live_edge(p, right, axis, edge);
    if (condition->binary.op != OP_LT || !padding_mentions(p, left, axis) ||
        padding_mentions(p, right, axis))
        return false;
    *edge = (Edge){algebra_poly(algebra, p->code->role, left),
                   algebra_poly(algebra, p->code->role, right), condition->span, false};
    return edge->sub && edge->past && algebra_proves(algebra, CLAIM_NOT_NEGATIVE, edge->sub);
}

/* An arm of a select that gives the outcome gives it too. */
static Fill arm_fill(Padding *p, Expr *arm, PadAxis axis, bool outcome) {
    p->outcome = outcome;
    Fill fill = of(p, arm, axis);
    p->outcome = false;
    return fill;
}

/* The arm that the condition selects. If the condition is computed from padding, its constants
 * are the values beyond the edge; if only the other arm is padded, this arm explicitly replaces
 * the padding. */
static Fill decided_fill(Padding *p, const Expr *expr, PadAxis axis, bool outcome, size_t at) {
    bool truth = p->decided.items[at].truth;
    Expr *arm = truth ? expr->select.then : expr->select.otherwise;
    Fill chosen = arm_fill(p, arm, axis, outcome);
    Fill beyond = p->decided.items[at].beyond;
    if (fill_padded(&beyond)) return fill_chosen(&chosen, &beyond);
    if (fill_padded(&chosen)) return chosen;
    Fill other = of(p, truth ? expr->select.otherwise : expr->select.then, axis);
    Fill live = fill_of(PAD_LIVE);
    if (fill_padded(&other)) {
        p->decided.items[at].masks = true;
        return fill_mask(&chosen, &other);
    }
    if (truth || chosen.pads != PAD_CONST_ZERO ||
        !live_edge(p, expr->select.condition, axis, &live.edges[0]))
        return chosen;
    p->decided.items[at].masks = true;
    live.count = 1;
    return live;
}

static Fill select_fill(Padding *p, const Expr *expr, PadAxis axis, bool outcome) {
    int at = decided(p, expr->select.condition);
    if (at >= 0) return decided_fill(p, expr, axis, outcome, (size_t)at);
    Fill fill = arm_fill(p, expr->select.then, axis, outcome),
         otherwise = arm_fill(p, expr->select.otherwise, axis, outcome);
    Fill condition = of(p, expr->select.condition, axis);
    fill_add(&fill, &otherwise);
    return fill_padded(&condition) ? fill_chosen(&fill, &condition) : fill;
}

unsigned padding_of_constant(const Expr *expr) {
    if (expr->kind != X_CONST) return PAD_ELEMENT;
    bool is_float = element_rows[expr->type].kind == ELEMENT_FLOAT;
    double number = is_float ? expr->constant.number : (double)expr->constant.integer;
    if (number == 0) return PAD_CONST_ZERO;
    if (is_float && isinf(number)) return number < 0 ? PAD_CONST_LOW : PAD_CONST_HIGH;
    return PAD_ELEMENT;
}

/* The least and the greatest integer are what infinities are to floats, but only in comparisons:
 * sums of them wrap. */
static unsigned pad_of_outcome(const Expr *expr) {
    bool is_signed = element_rows[expr->type].kind == ELEMENT_SIGNED;
    int bits = 8 * (int)element_rows[expr->type].bytes - is_signed;
    if (!is_signed && element_rows[expr->type].kind != ELEMENT_UNSIGNED)
        return padding_of_constant(expr);
    uint64_t most = UINT64_MAX >> (64 - bits), number = (uint64_t)expr->constant.integer;
    if (number == most || (!is_signed && (number & most) == most)) return PAD_CONST_HIGH;
    return is_signed && number == ~most ? PAD_CONST_LOW : padding_of_constant(expr);
}

static Fill unary_fill(Padding *p, const Expr *expr, PadAxis axis) {
    Fill fill = of(p, expr->unary.operand, axis);
    return expr->unary.op == OP_NEG ? fill_negated(&fill) : fill_pair(&fill, &fill, PAD_OTHER);
}

static Fill local_fill(Padding *p, int local, PadAxis axis) {
    Fill fill = loop_fill(p, padding_scalar(p, local), axis);
    return fill.pads ? fill : element;
}

/* Of several elements with these contents along the axis: a sum of ones is not one. */
static Fill combined(ReduceOp op, Fill fill) {
    return op == REDUCE_SUM && fill_padded(&fill) ? fill_pair(&fill, &fill, PAD_ADD) : fill;
}

/* Along the scan a position beyond the edge has the elements before it, or after it. */
static Fill scan_fill(Padding *p, const Expr *expr, PadAxis axis) {
    Fill fill = of(p, expr->scan.body, axis);
    if (axis.index != expr->scan.along) return combined(expr->scan.op, fill);
    if (!fill_padded(&fill)) return element;
    fill.pads = PAD_ANY;
    return fill;
}

static Fill fill_by_kind(Padding *p, Expr *expr, PadAxis axis, bool outcome) {
    switch (expr->kind) {
    case X_CONST: return fill_of(outcome ? pad_of_outcome(expr) : padding_of_constant(expr));
    case X_READ: return read_fill(p, expr->read, axis);
    case X_UNARY: return unary_fill(p, expr, axis);
    case X_BINARY: return binary_fill(p, expr, axis);
    case X_SELECT: return select_fill(p, expr, axis, outcome);
    case X_CAST: {
        Fill fill = of(p, expr->cast, axis);
        return fill_cast(&fill, expr->type);
    }
    case X_CALL: return call_fill(p, expr, axis);
    case X_LOCAL: return local_fill(p, expr->index, axis);
    case X_REDUCE:
        if (axis.index >= expr->reduce.first &&
            axis.index < expr->reduce.first + expr->reduce.count)
            return element;
        return combined(expr->reduce.op, of(p, expr->reduce.body, axis));
    case X_SCAN: return scan_fill(p, expr, axis);
    case X_POISON:
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_RANK:
    case X_INDEX: break;
    }
    return element;
}

static Fill of(Padding *p, Expr *expr, PadAxis axis) {
    bool outcome = p->outcome;
    if (--p->work < 0) return (Fill){.pads = PAD_ANY, .more = true};
    if (is_self(p, expr)) return fill_of(PAD_SELF);
    p->outcome = false;
    Fill fill = fill_by_kind(p, expr, axis, outcome);
    p->outcome = outcome;
    return fill;
}

/* ---- conditions ------------------------------------------------------------------------------ */

typedef struct Selects {
    Padding *p;
    PadAxis axis;
    VEC(Expr *) conditions;
} Selects;

static void find_select(Expr *expr, void *data) {
    Selects *selects = data;
    if (expr->kind != X_SELECT || selects->conditions.count >= CONDITIONS_MOST) return;
    for (size_t i = 0; i < selects->conditions.count; i++)
        if (same_condition(selects->conditions.items[i], expr->select.condition)) return;
    vec_push(selects->p->arena, &selects->conditions, expr->select.condition);
}

static bool number_of(const Expr *expr, const Fill *fill, double *number) {
    if (expr->kind == X_CAST) return number_of(expr->cast, fill, number);
    if (expr->kind == X_CONST) {
        *number = element_rows[expr->type].kind == ELEMENT_FLOAT ? expr->constant.number
                                                                 : (double)expr->constant.integer;
        return true;
    }
    return fill_number(fill, number);
}

static bool compares(BinaryOp op, double a, double b) {
    switch (op) {
    case OP_EQ: return a == b;
    case OP_NE: return a != b;
    case OP_LT: return a < b;
    case OP_LE: return a <= b;
    case OP_GT: return a > b;
    case OP_GE: return a >= b;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_MOD:
    case OP_AND:
    case OP_OR: break;
    }
    return false;
}

/* The edges beyond which the comparison certainly does not have this truth */
static Fill excluded_by_number(Padding *p, const Expr *expr, bool truth, PadAxis axis) {
    Expr *left = expr->binary.left, *right = expr->binary.right;
    Fill a = of(p, left, axis), b = of(p, right, axis);
    const Fill *padded = fill_padded(&a) ? &a : &b;
    double x, y;
    if (expr->binary.op < OP_EQ || expr->binary.op > OP_GE || fill_padded(&a) == fill_padded(&b) ||
        !fill_one_edge(padded) || !number_of(left, &a, &x) || !number_of(right, &b, &y) ||
        compares(expr->binary.op, x, y) == truth)
        return (Fill){0};
    Fill edges = *padded;
    edges.pads = 0;
    return edges;
}

/* The edges beyond which the condition certainly does not have this truth */
static Fill excluded(Padding *p, Expr *expr, bool truth, PadAxis axis) {
    if (expr->kind == X_UNARY && expr->unary.op == OP_NOT)
        return excluded(p, expr->unary.operand, !truth, axis);
    if (expr->kind != X_BINARY) return (Fill){0};
    /* all operands have this truth; otherwise at least one of them */
    bool all = (expr->binary.op == OP_AND) == truth;
    if (expr->binary.op != OP_AND && expr->binary.op != OP_OR)
        return excluded_by_number(p, expr, truth, axis);
    Fill a = excluded(p, expr->binary.left, truth, axis),
         b = excluded(p, expr->binary.right, truth, axis);
    if (!all) return fill_common(&a, &b);
    fill_add(&a, &b);
    return a;
}

typedef struct Control { /* the conditions on the path to a row, in one iteration of a loop */
    Padding *p;
    PadAxis axis;
    bool collects; /* first, the edges that some condition excludes */
    Fill inside;
    Fill *fill;
    bool chosen;
} Control;

/* A tensor that the role itself reads, at subscripts that its author has written, may decide. */
static bool is_direct(const Fill *fill) {
    for (int i = 0; i < fill->count; i++)
        if (!fill->edges[i].direct) return false;
    return !fill->more;
}

static void control(Control *c, Expr *condition, bool truth) {
    Fill decides = condition ? of(c->p, condition, c->axis) : element;
    if (!fill_padded(&decides) || is_direct(&decides)) return;
    if (c->collects) {
        Fill inside = excluded(c->p, condition, truth, c->axis);
        fill_add(&c->inside, &inside);
        return;
    }
    decides = fill_inside(&decides, &c->inside);
    if (!fill_padded(&decides)) return;
    *c->fill = fill_chosen(c->fill, &decides);
    c->chosen = true;
}

static void control_path(Control *c) {
    const FlowCode *code = c->p->code;
    int at = c->p->at;
    for (int r = code->rows.items[at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        bool truth;
        for (int left = -1; (left = values_left(code, r, at, left, &truth)) >= 0;)
            control(c, code->regions.items[left].condition, truth);
        if (region->kind == REGION_FOR && region->var == c->axis.local) break;
        if (region->kind == REGION_IF) control(c, region->condition, at < region->otherwise);
    }
}

bool padding_controlled(Padding *p, PadAxis axis, Fill *fill) {
    Control c = {.p = p, .axis = axis, .collects = true, .fill = fill};
    if (!flow_values(p->arena, p->code)) return false;
    control_path(&c);
    c.collects = false;
    *fill = fill_inside(fill, &c.inside);
    control_path(&c);
    return c.chosen;
}

static Fill under(Padding *p, const Selects *selects, size_t at, Expr *expr);

/* Contents of the expression under one truth of the condition. `masks`: a select replaced
 * padding there, so that positions with the other truth are inside of the edges. */
static Fill one_way(Padding *p, const Selects *selects, size_t at, Expr *expr, bool truth,
                    bool *masks) {
    Algebra *algebra = p->code->algebra;
    Expr *condition = selects->conditions.items[at - 1];
    PathMark mark = algebra_mark(algebra);
    algebra_assume(algebra, p->code->role, condition, truth);
    Fill decides = of(p, condition, selects->axis),
         inside = excluded(p, condition, truth, selects->axis),
         beyond = fill_inside(&decides, &inside);
    struct Decided way = {.condition = condition,
                          .truth = truth,
                          .beyond = fill_padded(&beyond) ? beyond : (Fill){0}};
    vec_push(p->arena, &p->decided, way);
    Fill chosen = under(p, selects, at - 1, expr), fill = fill_inside(&chosen, &inside);
    *masks = p->decided.items[--p->decided.count].masks;
    algebra_undo(algebra, mark);
    return fill;
}

static bool depends_on_edges(const Fill *fill) {
    return fill_padded(fill) || fill->pads & PAD_LIVE;
}

/* Considers both outcomes of the conditions, the last one first, which encloses those before it:
 * from number `at` - 1 down. If one outcome replaces
 * padding, and the other one is inside of the edges, the first gives the value beyond; if no
 * outcome depends on an edge, the author has distinguished elements. */
static Fill under(Padding *p, const Selects *selects, size_t at, Expr *expr) {
    if (at == 0) return of(p, expr, selects->axis);
    bool masks[2];
    Fill holds = one_way(p, selects, at, expr, true, &masks[true]);
    Fill fails = one_way(p, selects, at, expr, false, &masks[false]);
    if (masks[false] && !depends_on_edges(&holds)) return fails;
    if (masks[true] && !depends_on_edges(&fails)) return holds;
    fill_add(&holds, &fails);
    bool several = holds.pads & (holds.pads - 1);
    if (several && !depends_on_edges(&holds)) holds.pads = PAD_ELEMENT | (holds.pads & PAD_SELF);
    return holds;
}

Fill padding_of(Padding *p, Expr *expr, PadAxis axis) {
    Selects selects = {.p = p, .axis = axis};
    expr_visit(p->arena, expr, find_select, &selects);
    return under(p, &selects, selects.conditions.count, expr);
}

static void find_self(Expr *expr, void *data) {
    Padding *p = ((void **)data)[0];
    if (is_self(p, expr)) *(bool *)((void **)data)[1] = true;
}

bool padding_reads_self(Padding *p, Expr *expr) {
    bool found = false;
    expr_visit(p->arena, expr, find_self, (void *[]){p, &found});
    return found;
}
