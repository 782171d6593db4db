/* Values beyond an edge, and operations on them. Known numbers are computed as the kernel does:
 * exp of zeros is one, its logarithm is -inf. */
#include "check/padding.h"

#include <math.h>

/* Knowledge about the value at a position beyond the edge */
typedef struct Beyond {
    enum { NUMBER, FINITE, UNKNOWN } kind;
    double number; /* of NUMBER: may be infinite */
} Beyond;

static const Beyond some_number = {FINITE, 0}, unknown = {UNKNOWN, 0};

static Beyond number(double value) { return isnan(value) ? unknown : (Beyond){NUMBER, value}; }

static Beyond value_of(Pad pad) {
    switch (pad) {
    case PAD_CONST_ZERO:
    case PAD_MASKED:
    case PAD_ZERO: return number(0);
    case PAD_ONE: return number(1);
    case PAD_CONST_LOW:
    case PAD_LOW: return number(-INFINITY);
    case PAD_CONST_HIGH:
    case PAD_HIGH: return number(INFINITY);
    case PAD_ELEMENT:
    case PAD_SELF:
    case PAD_LIVE:
    case PAD_INSIDE:
    case PAD_WITH_ZERO:
    case PAD_FINITE: return some_number;
    case PAD_WITH_LOW:
    case PAD_WITH_HIGH:
    case PAD_ANY: break;
    }
    return unknown;
}

/* The Pad for this value beyond the edge */
static Pad pad_beyond(Beyond value, bool masked) {
    if (value.kind == UNKNOWN) return PAD_ANY;
    if (value.kind == FINITE) return PAD_FINITE;
    if (value.number == 0) return masked ? PAD_MASKED : PAD_ZERO;
    if (value.number == 1) return PAD_ONE;
    if (isinf(value.number)) return value.number < 0 ? PAD_LOW : PAD_HIGH;
    return PAD_FINITE;
}

static Pad pad_constant(Beyond value) {
    if (value.kind != NUMBER) return PAD_ELEMENT;
    if (value.number == 0) return PAD_CONST_ZERO;
    if (isinf(value.number)) return value.number < 0 ? PAD_CONST_LOW : PAD_CONST_HIGH;
    return PAD_ELEMENT;
}

/* ---- sets ------------------------------------------------------------------------------------ */

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
        if (to->count == EDGES_MOST)
            to->more = true;
        else
            to->edges[to->count++] = from->edges[i];
    }
}

bool fill_same(const Fill *a, const Fill *b) {
    return a->pads == b->pads && a->count == b->count && a->more == b->more;
}

bool fill_padded(const Fill *fill) { return (fill->pads & PADS_BEYOND) != 0; }

Fill fill_of(unsigned pads) { return (Fill){.pads = pads}; }

/* Without padding there are no edges, except those of an explicit mask, and of elements that are
 * known to be inside. */
static Fill settled(Fill fill) {
    if (!(fill.pads & (PADS_BEYOND | PAD_LIVE | PAD_INSIDE))) fill.count = 0, fill.more = false;
    return fill;
}

/* True if each edge of `a` is one of `b`: all that is beyond one of `a` is beyond one of `b` */
static bool edges_within(const Fill *a, const Fill *b) {
    for (int i = 0; i < a->count; i++) {
        const Edge *x = &a->edges[i];
        bool found = false;
        for (int k = 0; k < b->count && x->sub && !found; k++)
            found = b->edges[k].sub && poly_equal(x->sub, b->edges[k].sub) &&
                    poly_equal(x->past, b->edges[k].past);
        if (!found) return false;
    }
    return !a->more;
}

bool fill_one_edge(const Fill *fill) {
    Fill first = *fill;
    first.count = fill->count > 0;
    return edges_within(fill, &first);
}

/* True if both end at the same positions, on all paths */
static bool same_edges(const Fill *a, const Fill *b) {
    return fill_one_edge(a) && fill_one_edge(b) && edges_within(a, b) && edges_within(b, a);
}

Fill fill_common(const Fill *a, const Fill *b) {
    Fill out = {0};
    for (int i = 0; i < a->count; i++) {
        Fill one = {.count = 1, .edges = {a->edges[i]}};
        if (edges_within(&one, b)) fill_add(&out, &one);
    }
    return out;
}

bool fill_number(const Fill *fill, double *out) {
    unsigned constants = PAD_CONST_ZERO | PAD_CONST_LOW | PAD_CONST_HIGH;
    bool any = false;
    for (unsigned x = 1; x <= PAD_MOST; x <<= 1) {
        if (!(fill->pads & x)) continue;
        Beyond value = value_of((Pad)x);
        if (!(x & (PADS_BEYOND | constants)) || value.kind != NUMBER) return false;
        if (any && value.number != *out) return false;
        *out = value.number, any = true;
    }
    return any;
}

/* ---- binary operations ----------------------------------------------------------------------- */

static Beyond sum(Beyond a, Beyond b) {
    if (a.kind == UNKNOWN || b.kind == UNKNOWN) return unknown;
    if (a.kind == NUMBER && b.kind == NUMBER) return number(a.number + b.number);
    if (a.kind == NUMBER && isinf(a.number)) return a;
    if (b.kind == NUMBER && isinf(b.number)) return b;
    return some_number;
}

/* Elements are taken to be finite. */
static Beyond product(Beyond a, Beyond b) {
    if (a.kind == UNKNOWN || b.kind == UNKNOWN) return unknown;
    if (a.kind == NUMBER && b.kind == NUMBER) return number(a.number * b.number);
    const Beyond *known = a.kind == NUMBER ? &a : &b;
    if (known->kind == FINITE) return some_number;
    if (known->number == 0) return number(0);
    return isinf(known->number) ? unknown : some_number; /* of unknown sign */
}

static Beyond quotient(Beyond a, Beyond b, bool by_nonzero) {
    if (a.kind == UNKNOWN || b.kind == UNKNOWN) return unknown;
    if (a.kind == NUMBER && b.kind == NUMBER)
        return b.number == 0 ? unknown : number(a.number / b.number);
    if (b.kind == NUMBER)
        return b.number == 0 ? unknown : isinf(b.number) ? number(0) : some_number;
    if (!by_nonzero || (a.kind == NUMBER && isinf(a.number))) return unknown;
    return a.kind == NUMBER && a.number == 0 ? a : some_number;
}

/* max and min of NaN and another value give the other value. */
static Beyond extreme(Beyond a, Beyond b, bool max) {
    if (a.kind == UNKNOWN || b.kind == UNKNOWN) return unknown;
    if (a.kind == NUMBER && b.kind == NUMBER)
        return number(max ? fmax(a.number, b.number) : fmin(a.number, b.number));
    const Beyond *known = a.kind == NUMBER ? &a : &b;
    bool wins = known->kind == NUMBER && isinf(known->number) && (known->number > 0) == max;
    return wins ? *known : some_number;
}

static Beyond apply(PadOp op, Beyond a, Beyond b) {
    Beyond minus = {b.kind, -b.number};
    switch (op) {
    case PAD_ADD: return sum(a, b);
    case PAD_SUB: return sum(a, minus);
    case PAD_MUL: return product(a, b);
    case PAD_DIV: return quotient(a, b, false);
    case PAD_DIV_NONZERO: return quotient(a, b, true);
    case PAD_MAX:
    case PAD_MAX_POSITIVE: return extreme(a, b, true);
    case PAD_MIN: return extreme(a, b, false);
    case PAD_OTHER: break;
    }
    return unknown;
}

#define ZEROS                                                                                      \
    { PAD_CONST_ZERO | PAD_MASKED | PAD_ZERO, PAD_WITH_ZERO }

/* Contents that do not change the other operand of an operation, and those of a value that it
 * combines of such contents and elements */
static const struct Neutral {
    unsigned pads;
    Pad with;
} neutrals[] = {[PAD_ADD] = ZEROS,
                [PAD_SUB] = ZEROS,
                [PAD_MAX] = {PAD_CONST_LOW | PAD_LOW, PAD_WITH_LOW},
                [PAD_MAX_POSITIVE] = ZEROS,
                [PAD_MIN] = {PAD_CONST_HIGH | PAD_HIGH, PAD_WITH_HIGH},
                [PAD_OTHER] = {0}};

static bool keeps_inside(Pad a, Pad b, PadOp op) {
    unsigned both = a | b, neutral = PAD_INSIDE | neutrals[op].pads;
    if (op == PAD_MUL) neutral |= PAD_ELEMENT;
    if (op == PAD_DIV_NONZERO) return a == PAD_INSIDE && b & (PAD_ELEMENT | PAD_INSIDE);
    return both & PAD_INSIDE && !(both & ~neutral) && (op == PAD_MUL || neutrals[op].pads != 0);
}

/* No operand depends on an edge. */
static Pad pair_clean(Pad a, Pad b, PadOp op) {
    bool mul = op == PAD_MUL, add = op == PAD_ADD || op == PAD_SUB;
    if (mul && (a == PAD_CONST_ZERO || b == PAD_CONST_ZERO)) return PAD_CONST_ZERO;
    if (add && b == PAD_CONST_ZERO) return a;
    if (op == PAD_ADD && a == PAD_CONST_ZERO) return b;
    if ((mul || op == PAD_DIV_NONZERO) && a == PAD_LIVE) return PAD_LIVE;
    if (mul && b == PAD_LIVE) return PAD_LIVE;
    if (keeps_inside(a, b, op)) return PAD_INSIDE;
    Beyond x = value_of(a), y = value_of(b);
    if (add && (isinf(x.number) || isinf(y.number))) return pad_constant(apply(op, x, y));
    return x.kind == NUMBER && y.kind == NUMBER ? pad_constant(apply(op, x, y)) : PAD_ELEMENT;
}

/* What the operation makes of elements that are combined with values that do not change them; 0:
 * numbers computed from zeros. An element that exists beyond the edges, too, is no neutral
 * operand, but may scale a sum. */
static Pad pair_combined(Pad a, Pad b, PadOp op) {
    const struct Neutral *neutral = &neutrals[op];
    unsigned both = a | b, scales = PAD_ELEMENT | PAD_LIVE | PAD_INSIDE | PAD_WITH_ZERO;
    if (both & (neutral->with | PAD_INSIDE) &&
        !(both & ~(neutral->pads | neutral->with | PAD_INSIDE)))
        return neutral->with;
    bool scaled = op == PAD_MUL ? both & PAD_WITH_ZERO && !(both & ~scales)
                                : op == PAD_DIV_NONZERO && a == PAD_WITH_ZERO &&
                                      b & (PAD_ELEMENT | PAD_INSIDE);
    return scaled ? PAD_WITH_ZERO : 0;
}

/* `aligned`: both end at the same positions. An explicit mask is zero there; at other positions
 * it may have any value. */
static Pad pair(Pad a, Pad b, PadOp op, bool aligned) {
    bool a_beyond = a & PADS_BEYOND, b_beyond = b & PADS_BEYOND;
    /* in a sum or an extreme, reduced values do not change the other operand */
    if (op != PAD_MUL && op != PAD_DIV && op != PAD_DIV_NONZERO && op != PAD_OTHER) {
        if (a == PAD_SELF) return b;
        if (b == PAD_SELF) return a;
    }
    if (!a_beyond && !b_beyond) return pair_clean(a, b, op);
    Pad combined = pair_combined(a, b, op);
    if (combined) return combined;
    Beyond x = value_of(a), y = value_of(b);
    if (a == PAD_LIVE && aligned) x = number(0);
    if (b == PAD_LIVE && aligned) y = number(0);
    bool masked = (!a_beyond || a == PAD_MASKED) && (!b_beyond || b == PAD_MASKED);
    return pad_beyond(apply(op, x, y), masked);
}

static Pad lowest(unsigned pads) { return (Pad)(pads & -pads); }

static unsigned pairs(const Fill *a, const Fill *b, PadOp op, bool aligned) {
    unsigned out = 0;
    for (unsigned left = a->pads; left != 0; left &= left - 1)
        for (unsigned right = b->pads; right != 0; right &= right - 1)
            out |= pair(lowest(left), lowest(right), op, aligned);
    return out;
}

/* Contents inside of the edges, as operands of the operation */
static Fill inside(const Fill *fill, PadOp op) {
    unsigned combined = neutrals[op].pads | neutrals[op].with, beyond = fill->pads & PADS_BEYOND;
    return fill_of((fill->pads & ~(unsigned)PADS_BEYOND) |
                   (beyond & combined ? neutrals[op].with : 0) |
                   (beyond & ~combined ? PAD_ELEMENT : 0));
}

Fill fill_pair(const Fill *a, const Fill *b, PadOp op) {
    Fill out = {0};
    bool aligned = same_edges(a, b);
    fill_add(&out, a);
    fill_add(&out, b);
    out.pads = pairs(a, b, op, aligned);
    if (!aligned && fill_padded(a) && fill_padded(b)) {
        Fill a_inside = inside(a, op), b_inside = inside(b, op);
        out.pads |= pairs(&a_inside, b, op, false) | pairs(a, &b_inside, op, false);
    }
    return settled(out);
}

/* ---- unary operations ------------------------------------------------------------------------ */

static Beyond call(Intrinsic which, Beyond a) {
    bool known = a.kind == NUMBER;
    double x = a.number;
    switch (which) {
    case IN_abs: return known ? number(fabs(x)) : a;
    case IN_floor: return known ? number(floor(x)) : a;
    case IN_ceil: return known ? number(ceil(x)) : a;
    case IN_tanh: return known ? number(tanh(x)) : a;
    case IN_sin: return known ? number(sin(x)) : a;
    case IN_cos: return known ? number(cos(x)) : a;
    case IN_sqrt: return known ? number(sqrt(x)) : unknown;
    case IN_exp: return known ? number(exp(x)) : unknown;
    case IN_exp2: return known ? number(exp2(x)) : unknown;
    case IN_log: return known ? number(log(x)) : unknown;
    case IN_log2: return known ? number(log2(x)) : unknown;
    case IN_rcp: return known ? number(1 / x) : unknown;
    case IN_rsqrt: return known ? number(1 / sqrt(x)) : unknown;
    case IN_min:
    case IN_max:
    case IN_fma:
    case IN_ceil_div:
    case IN_COUNT: break;
    }
    return unknown;
}

static bool is_zero_for_zero(Intrinsic which) {
    Beyond value = call(which, number(0));
    return value.kind == NUMBER && value.number == 0;
}

Fill fill_call(const Fill *a, Intrinsic which) {
    Fill out = *a;
    out.pads = 0;
    for (unsigned x = 1; x <= PAD_MOST; x <<= 1) {
        if (!(a->pads & x)) continue;
        Beyond value = call(which, value_of((Pad)x));
        if (x & PADS_BEYOND)
            out.pads |= pad_beyond(value, x == PAD_MASKED);
        else if (x & (PAD_LIVE | PAD_INSIDE) && is_zero_for_zero(which))
            out.pads |= x;
        else
            out.pads |= pad_constant(value);
    }
    return settled(out);
}

/* In a type without infinity it becomes the greatest number, or NaN. */
Fill fill_cast(const Fill *a, Element to) {
    const unsigned infinite = PAD_LOW | PAD_HIGH | PAD_WITH_LOW | PAD_WITH_HIGH;
    Fill out = *a;
    if (to != E_F32 && to != E_BF16 && to != E_F16 && to != E_TF32 && a->pads & infinite)
        out.pads = (out.pads & ~infinite) | PAD_ANY;
    return out;
}

Fill fill_negated(const Fill *a) {
    Fill zero = fill_of(PAD_CONST_ZERO), out = fill_pair(&zero, a, PAD_SUB);
    if (a->pads & PAD_LIVE) out.pads |= PAD_LIVE;
    return out;
}

/* ---- selects --------------------------------------------------------------------------------- */

Fill fill_chosen(const Fill *a, const Fill *where) {
    Fill out = *a;
    out.pads &= PADS_BEYOND | PAD_SELF;
    for (unsigned x = 1; x <= PAD_MOST; x <<= 1)
        if (a->pads & x && !(x & (PADS_BEYOND | PAD_SELF)))
            out.pads |= pad_beyond(value_of((Pad)x), false);
    bool beyond = fill_one_edge(a) && edges_within(where, a); /* all that is beyond `where` */
    if (fill_padded(a) && !beyond) out.pads |= PAD_FINITE;
    Fill edges = *where;
    edges.pads = 0;
    fill_add(&out, &edges);
    return out;
}

Fill fill_mask(const Fill *chosen, const Fill *masked) {
    static const struct {
        Pad constant, beyond;
    } rows[] = {{PAD_CONST_ZERO, PAD_MASKED}, {PAD_CONST_LOW, PAD_LOW}, {PAD_CONST_HIGH, PAD_HIGH}};
    Fill out = *chosen, edges = *masked;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (out.pads & rows[i].constant)
            out.pads = (out.pads & ~(unsigned)rows[i].constant) | rows[i].beyond;
    edges.pads = 0;
    if (fill_padded(&out)) fill_add(&out, &edges);
    return out;
}

Fill fill_within(const Fill *a) {
    Fill out = *a;
    if (!fill_padded(a)) return *a;
    out.pads = (a->pads & ~(unsigned)PADS_BEYOND) | PAD_INSIDE;
    return out;
}

Fill fill_inside(const Fill *a, const Fill *where) {
    return a->count > 0 && edges_within(a, where) ? fill_within(a) : *a;
}
