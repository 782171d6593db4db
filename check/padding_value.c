/* What an expression holds along one axis of a statement: elements, zeros beyond the edge, or what was computed from them. Conditions of selects
 * are taken both ways; under each the reads that are then certainly inside of their tensors hold elements alone. */
#include "check/padding.h"
#include "flow/match.h"

#include <math.h>

#define CONDITIONS_MOST 4 /* of selects in one value, that are taken both ways */

static const Fill element = {.pads = PAD_ELEMENT};

static bool same_edge(const Edge *a, const Edge *b) {
    if (a->from.lo != b->from.lo || a->from.hi != b->from.hi || !a->sub != !b->sub) return false;
    return !a->sub || (poly_equal(a->sub, b->sub) && poly_equal(a->past, b->past));
}

void fill_add(Fill *to, const Fill *from) {
    to->pads |= from->pads;
    to->more |= from->more;
    for (int i = 0; i < from->count; i++) {
        bool known = false;
        for (int k = 0; k < to->count; k++) known |= same_edge(&to->edges[k], &from->edges[i]);
        if (known) continue;
        if (to->count == EDGES_MOST) to->more = true;
        else to->edges[to->count++] = from->edges[i];
    }
}

bool fill_same(const Fill *a, const Fill *b) {
    return a->pads == b->pads && a->count == b->count && a->more == b->more;
}

bool fill_padded(const Fill *fill) { return (fill->pads & (PAD_ZERO | PAD_ONE | PAD_DIRTY)) != 0; }

int padding_place(Padding *p) {
    const Poly *atom = algebra_version(p->code->algebra, NULL, -1, -1, "place", E_I32);
    return atom->terms[0].atoms[0];
}

/* ---- operations: pair by pair -------------------------------------------------------------------------------------------- */

typedef unsigned Pairing(Pad a, Pad b);

static bool is_padded(Pad a) { return a != PAD_ELEMENT && a != PAD_NOUGHT; }

static unsigned pair_sum(Pad a, Pad b) {
    if (a == PAD_NOUGHT) return b;
    if (b == PAD_NOUGHT || (a == b && a != PAD_ONE)) return a;
    return PAD_DIRTY; /* an element, or the same value everywhere, added to zeros */
}

static unsigned pair_product(Pad a, Pad b) {
    if (a == PAD_NOUGHT || b == PAD_NOUGHT) return PAD_NOUGHT;
    if (a == PAD_DIRTY || b == PAD_DIRTY) return PAD_DIRTY;
    if (a == PAD_ONE || b == PAD_ONE) return a == b || a == PAD_ZERO || b == PAD_ZERO ? (a == b ? PAD_ONE : PAD_ZERO) : PAD_DIRTY;
    return a == PAD_ZERO || b == PAD_ZERO ? PAD_ZERO : PAD_ELEMENT;
}

/* min and max: zero beyond the edge only where both are */
static unsigned pair_extreme(Pad a, Pad b) {
    if (a == b) return a;
    if (!is_padded(a) && !is_padded(b)) return PAD_ELEMENT;
    bool zeros = (a == PAD_ZERO || a == PAD_NOUGHT) && (b == PAD_ZERO || b == PAD_NOUGHT);
    return zeros ? PAD_ZERO : PAD_DIRTY;
}

/* Zero stays zero; but a divisor that may be 0 there gives anything */
static unsigned pair_quotient(Pad a, Pad b) { return is_padded(b) ? PAD_DIRTY : (unsigned)a; }

/* Of a function that is not zero for zeros */
static unsigned pair_anything(Pad a, Pad b) { return is_padded(a) || is_padded(b) ? PAD_DIRTY : PAD_ELEMENT; }

/* Do zeros of both lie at the same positions? */
static bool same_edges(const Fill *a, const Fill *b) {
    if (a->more || b->more || a->count != b->count) return false;
    for (int i = 0; i < a->count; i++) {
        const Edge *x = &a->edges[i], *y = &b->edges[i];
        if (!x->sub || !y->sub || !poly_equal(x->sub, y->sub) || !poly_equal(x->past, y->past)) return false;
    }
    return true;
}

/* exp, exp2 and cos: 1 for zeros */
static unsigned pair_one(Pad a, Pad b) { return a == PAD_ZERO ? PAD_ONE : pair_anything(a, b); }

static Fill combined(const Fill *a, const Fill *b, Pairing *pairing) {
    Fill out = {0};
    fill_add(&out, a);
    fill_add(&out, b);
    out.pads = 0;
    for (unsigned x = 1; x <= PAD_MOST; x <<= 1)
        for (unsigned y = 1; y <= PAD_MOST; y <<= 1)
            if (a->pads & x && b->pads & y) out.pads |= pairing((Pad)x, (Pad)y);
    if (pairing == pair_sum && a->pads & b->pads & PAD_ZERO && !same_edges(a, b)) out.pads |= PAD_DIRTY;
    if (!fill_padded(&out)) out.count = 0, out.more = false;
    return out;
}

/* ---- reads --------------------------------------------------------------------------------------------------------------- */

bool padding_mentions(Padding *p, Expr *expr, PadAxis axis) {
    if (!expr) return false;
    if (axis.index >= 0) return expr->indexes >> axis.index & 1;
    return poly_mentions(p->code->algebra, algebra_poly(p->code->algebra, p->code->role, expr), axis.atom);
}

static bool proved_inside(Padding *p, const Poly *sub, const Poly *past) {
    Algebra *algebra = p->code->algebra;
    if (!p->proofs || !sub || !past || poly_changes(algebra, sub) || poly_changes(algebra, past)) return false;
    return prove_at_least_zero(algebra, sub) &&
           prove_at_least_zero(algebra, poly_offset(algebra, poly_sum(algebra, past, sub, -1), -1));
}

/* Are all positions that the subscript reaches within the edges of all edges? */
static bool inside_edges(Padding *p, const Fill *fill, const Poly *place) {
    for (int i = 0; i < fill->count; i++) {
        const Edge *edge = &fill->edges[i];
        const Poly *sub = edge->sub ? poly_replace(p->code->algebra, edge->sub, padding_place(p), place) : NULL;
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
    if (inside_edges(p, fill, place)) *fill = element;
    algebra_undo(algebra, mark);
}

/* The edges of a stage's field, in the algebra and the loop variables of the role that consumes it */
static Fill translated(Padding *p, const Fill *fill, int handle) {
    const Pipe *pipe = &p->code->prog->pipes.items[p->code->role->handles.items[handle].pipe];
    FlowCode *producer = pipe->producer >= 0 ? p->code->prog->roles.items[pipe->producer].code : NULL;
    Algebra *algebra = p->code->algebra;
    Matches matches;
    Fill out = *fill;
    bool known = producer && match_loops(p->arena, producer, p->code, handle, &matches);
    for (int i = 0; i < out.count; i++) {
        Edge *edge = &out.edges[i];
        edge->sub = known && edge->sub ? algebra_import(algebra, producer->algebra, edge->sub) : NULL;
        edge->past = edge->past ? algebra_import(algebra, producer->algebra, edge->past) : NULL;
        for (size_t m = 0; known && m < matches.count && edge->sub; m++) {
            int from = algebra_atom_local(algebra, producer->role, matches.items[m].from);
            edge->sub = poly_replace(algebra, edge->sub, from, matches.items[m].to);
        }
    }
    return out;
}

static bool own_end(const Padding *p, int handle) { return p->code->role->handles.items[handle].end == END_PRODUCE; }

static Fill dim_fill(Padding *p, const Access *read, int d) {
    if (read->space == SPACE_STAGE) {
        const Handle *handle = &p->code->role->handles.items[read->object];
        if (handle->pipe < 0) return element;
        const Fill *fill = &p->fields[handle->pipe][read->field].dims[d];
        return own_end(p, read->object) ? *fill : translated(p, fill, read->object);
    }
    if (read->space == SPACE_SHARED || read->space == SPACE_REGISTER) return p->state[read->object].dims[d];
    return element;
}

/* What the read holds along the axis by its dimension d, which the axis subscripts */
static Fill read_dim(Padding *p, const Access *read, int d) {
    Algebra *algebra = p->code->algebra;
    const Poly *sub = algebra_poly(algebra, p->code->role, read->subs[d]);
    if (read->space != SPACE_GLOBAL) {
        Fill fill = dim_fill(p, read, d);
        if (fill_padded(&fill) && inside_edges(p, &fill, sub)) return element;
        for (int i = 0; i < fill.count; i++) {
            Edge *edge = &fill.edges[i];
            if (edge->sub) edge->sub = poly_replace(algebra, edge->sub, padding_place(p), sub);
        }
        return fill;
    }
    const Poly *past = algebra_poly(algebra, NULL, access_extent(p->tiles, p->code->role, read, d));
    if (proved_inside(p, sub, past)) return element;
    Fill fill = {.pads = PAD_ZERO, .count = 1};
    fill.edges[0] = (Edge){sub, past, read->span};
    return fill;
}

static bool same_element(const Padding *p, const Access *a) {
    const Access *b = p->target;
    if (!b || a->space != b->space || a->object != b->object || a->field != b->field || a->rank != b->rank) return false;
    Algebra *algebra = p->code->algebra;
    for (int d = 0; d < a->rank; d++)
        if (!poly_equal(algebra_poly(algebra, p->code->role, a->subs[d]), algebra_poly(algebra, p->code->role, b->subs[d]))) return false;
    return true;
}

static bool is_self(const Padding *p, const Expr *expr) {
    if (expr->kind == X_LOCAL) return p->target_local >= 0 && expr->index == p->target_local;
    return expr->kind == X_READ && expr->read && same_element(p, expr->read);
}

/* What is padding along another dimension is looked at along that one: here the read is inside of its tensor there. */
static void assume_others(Padding *p, const Access *read, int but) {
    Algebra *algebra = p->code->algebra;
    for (int d = 0; d < read->rank && p->proofs; d++) {
        if (d == but) continue;
        const Poly *sub = algebra_poly(algebra, p->code->role, read->subs[d]);
        if (read->space == SPACE_GLOBAL) {
            const Poly *past = algebra_poly(algebra, NULL, access_extent(p->tiles, p->code->role, read, d));
            if (sub && past) algebra_assume_range(algebra, sub, poly_constant(algebra, 0), past);
            continue;
        }
        Fill fill = dim_fill(p, read, d);
        bool one = fill.count == 1 && !fill.more && fill.edges[0].sub && fill.edges[0].past;
        const Poly *at = one ? poly_replace(algebra, fill.edges[0].sub, padding_place(p), sub) : NULL;
        if (at) algebra_assume_range(algebra, at, poly_constant(algebra, 0), fill.edges[0].past);
    }
}

static Fill read_fill(Padding *p, const Access *read, PadAxis axis) {
    Fill fill = {.pads = PAD_ELEMENT};
    bool along = false;
    for (int d = 0; d < read->rank; d++) {
        if (!padding_mentions(p, read->subs[d], axis)) continue;
        PathMark mark = {0};
        if (p->proofs) mark = algebra_mark(p->code->algebra), assume_others(p, read, d);
        Fill inner = padding_of(p, read->subs[d], axis); /* a gather by a padded table */
        Fill here = read_dim(p, read, d);
        if (p->proofs) algebra_undo(p->code->algebra, mark);
        if (fill_padded(&inner)) here = combined(&inner, &inner, pair_anything);
        if (along) here = combined(&fill, &here, pair_product);
        fill = here;
        along = true;
    }
    return fill;
}

/* ---- expressions --------------------------------------------------------------------------------------------------------- */

static Fill of(Padding *p, Expr *expr, PadAxis axis);

static Fill through(Padding *p, Expr *expr, PadAxis axis, Pairing *pairing) {
    Fill a = of(p, expr, axis);
    return combined(&a, &a, pairing);
}

static Fill both(Padding *p, Expr *left, Expr *right, PadAxis axis, Pairing *pairing) {
    Fill a = of(p, left, axis), b = of(p, right, axis);
    return combined(&a, &b, pairing);
}

static Fill call_fill(Padding *p, const Expr *expr, PadAxis axis) {
    Expr *const *args = expr->call.args;
    switch (expr->call.which) {
    case IN_abs: case IN_sqrt: case IN_sin: case IN_tanh: case IN_floor: case IN_ceil: return of(p, args[0], axis);
    case IN_min: case IN_max: return both(p, args[0], args[1], axis, pair_extreme);
    case IN_fma: {
        Fill product = both(p, args[0], args[1], axis, pair_product), more = of(p, args[2], axis);
        return combined(&product, &more, pair_sum);
    }
    case IN_exp: case IN_exp2: case IN_cos: return through(p, args[0], axis, pair_one);
    case IN_rsqrt: case IN_rcp: case IN_log: case IN_log2:
        return through(p, args[0], axis, pair_anything);
    case IN_ceil_div: return both(p, args[0], args[1], axis, pair_anything);
    case IN_COUNT: break;
    }
    return element;
}

static bool same_condition(const Expr *a, const Expr *b) { return a == b; }

static int decided(const Padding *p, const Expr *condition) {
    for (size_t i = 0; i < p->decided.count; i++)
        if (same_condition(p->decided.items[i].condition, condition)) return p->decided.items[i].truth;
    return -1;
}

/* A sum with it is infinite everywhere, as its author wants it. */
static bool is_infinite(const Padding *p, const Expr *expr) {
    if (expr->kind == X_CAST) return is_infinite(p, expr->cast);
    if (expr->kind == X_UNARY && expr->unary.op == OP_NEG) return is_infinite(p, expr->unary.operand);
    int truth = expr->kind == X_SELECT ? decided(p, expr->select.condition) : -1;
    if (truth >= 0) return is_infinite(p, truth ? expr->select.then : expr->select.otherwise);
    return expr->kind == X_CONST && expr->type == E_F32 && isinf(expr->constant.number);
}

static Fill binary_fill(Padding *p, const Expr *expr, PadAxis axis) {
    Expr *left = expr->binary.left, *right = expr->binary.right;
    switch (expr->binary.op) {
    case OP_ADD: case OP_SUB:
        if (is_infinite(p, left) || is_infinite(p, right)) return element;
        return both(p, left, right, axis, pair_sum);
    case OP_MUL: return both(p, left, right, axis, pair_product);
    case OP_DIV: case OP_MOD: return both(p, left, right, axis, pair_quotient);
    case OP_EQ: case OP_NE: case OP_LT: case OP_LE: case OP_GT: case OP_GE: case OP_AND: case OP_OR:
        return both(p, left, right, axis, pair_anything);
    }
    return element;
}

/* One of the two; a condition that is computed from padding decides by it. */
static Fill select_fill(Padding *p, const Expr *expr, PadAxis axis) {
    int truth = decided(p, expr->select.condition);
    if (truth >= 0) return of(p, truth ? expr->select.then : expr->select.otherwise, axis);
    Fill fill = of(p, expr->select.then, axis), otherwise = of(p, expr->select.otherwise, axis);
    Fill condition = of(p, expr->select.condition, axis);
    fill_add(&fill, &otherwise);
    if (fill_padded(&condition)) fill = combined(&fill, &condition, pair_anything);
    return fill;
}

static bool is_nought(const Expr *expr) {
    return expr->type == E_F32 ? expr->constant.number == 0 : expr->constant.integer == 0;
}

static Fill of(Padding *p, Expr *expr, PadAxis axis) {
    static const Fill nought = {.pads = PAD_NOUGHT};
    if (--p->work < 0) return (Fill){.pads = PAD_DIRTY, .more = true};
    if (is_self(p, expr)) return nought;
    switch (expr->kind) {
    case X_CONST: return is_nought(expr) ? nought : element;
    case X_READ: return read_fill(p, expr->read, axis);
    case X_UNARY: return expr->unary.op == OP_NEG ? of(p, expr->unary.operand, axis) : through(p, expr->unary.operand, axis, pair_anything);
    case X_BINARY: return binary_fill(p, expr, axis);
    case X_SELECT: return select_fill(p, expr, axis);
    case X_CAST: return of(p, expr->cast, axis);
    case X_CALL: return call_fill(p, expr, axis);
    case X_REDUCE:
        if (axis.index >= expr->reduce.first && axis.index < expr->reduce.first + expr->reduce.count) return element;
        return of(p, expr->reduce.body, axis);
    case X_POISON: case X_SYMBOL: case X_PARAM: case X_AXIS: case X_LOCAL: case X_RANK: case X_INDEX: break;
    }
    return element;
}

/* ---- conditions ---------------------------------------------------------------------------------------------------------- */

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

/* With the conditions from number `at` on taken both ways. What both ways give is what positions may hold; where neither is padded, the author has
 * told the padding apart. */
static Fill under(Padding *p, const Selects *selects, size_t at, Expr *expr) {
    Algebra *algebra = p->code->algebra;
    if (at == selects->conditions.count) return of(p, expr, selects->axis);
    Fill out = {0};
    for (int truth = 1; truth >= 0; truth--) {
        PathMark mark = algebra_mark(algebra);
        algebra_assume(algebra, p->code->role, selects->conditions.items[at], truth);
        vec_push(p->arena, &p->decided, (struct Decided){selects->conditions.items[at], truth});
        Fill way = under(p, selects, at + 1, expr);
        p->decided.count--;
        algebra_undo(algebra, mark);
        fill_add(&out, &way);
    }
    if (!fill_padded(&out) && out.pads != PAD_NOUGHT) out.pads = PAD_ELEMENT;
    return out;
}

Fill padding_of(Padding *p, Expr *expr, PadAxis axis) {
    Selects selects = {.p = p, .axis = axis};
    expr_visit(p->arena, expr, find_select, &selects);
    return under(p, &selects, 0, expr);
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
