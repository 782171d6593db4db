/* Contents of an expression along one axis of a statement. Each arm of a select is followed under
 * its condition: a read that is then proved to be inside of its tensor does not cross the edge. */
#include "check/padding/padding.h"

#include <math.h>

/* most conditions of selects in one value for which both outcomes are considered */
#define CONDITIONS_MOST 4

const PadAxis padding_no_axis = {.index = -1, .local = -1, .region = -1};

/* ---- operations ------------------------------------------------------------------------------ */

static const Fill *of(Padding *p, Expr *expr, PadAxis axis);

static const Fill *both(Padding *p, PadOp op, Expr *left, Expr *right, PadAxis axis) {
    const Fill *a = of(p, left, axis), *b = of(p, right, axis);
    return fill_binary(&p->fills, (Operation){.op = op, .type = left->type}, a, b);
}

static const Fill *local_fill(Padding *p, Expr *expr, PadAxis axis) {
    int object = padding_scalar_object(p->code, expr->index);
    if (object < 0) return padding_typed(p, expr->type);
    const Fill *fill = padding_of_scalar(p, object, axis);
    Expr *value = fill->infinite ? padding_resolved(p, expr) : expr;
    return value == expr ? fill : of(p, value, axis); /* conditions may exclude its pole */
}

/* Whether a divisor may be 0, and which sign a factor of infinity has, may follow from the path. */
static const Fill *learned(Padding *p, Expr *expr, const Fill *fill) {
    return fill->zero ? padding_learned(p, expr, fill) : fill;
}

static const Fill *product(Padding *p, Expr *left, Expr *right, PadAxis axis) {
    const Fill *a = of(p, left, axis), *b = of(p, right, axis);
    if (a->infinite) b = learned(p, right, b);
    if (b->infinite) a = learned(p, left, a);
    return fill_binary(&p->fills, (Operation){.op = PAD_MUL, .type = left->type}, a, b);
}

static const Fill *quotient(Padding *p, Expr *left, Expr *right, PadAxis axis) {
    const Fill *a = of(p, left, axis), *b = learned(p, right, of(p, right, axis));
    return fill_binary(&p->fills, (Operation){.op = PAD_DIV, .type = left->type}, a, b);
}

/* The rest of 0 is 0 for a divisor that is not. */
static const Fill *rest(Padding *p, Expr *left, Expr *right, PadAxis axis) {
    const Fill *a = of(p, left, axis), *b = learned(p, right, of(p, right, axis));
    const Fill *whole =
        fill_binary(&p->fills, (Operation){.op = PAD_DIV, .type = left->type}, a, b);
    const Fill *any =
        fill_binary(&p->fills, (Operation){.op = PAD_OTHER, .type = left->type}, a, b);
    Draft out;
    fill_draft(any, &out);
    for (unsigned s = 0; s < 1u << out.count; s++) {
        if (pad_is(whole->at[s].padding, 0)) out.at[s].padding = whole->at[s].padding;
        out.at[s].element.marks |= whole->at[s].element.marks & MARK_SUM;
    }
    return fill_made(&p->fills, &out);
}

typedef struct Mapped {
    Intrinsic which;
    Element from, to;
} Mapped;

/* The marks of a function's result for an element that is inside, or is 0, as its marks state */
static uint16_t of_element(Value argument, bool keeps_zero) {
    uint16_t marks = argument.marks & MARKS_NEUTRAL;
    uint16_t stated = argument.marks & MARK_STATED;
    return marks == MARKS_NEUTRAL ? marks | stated : keeps_zero ? (marks & MARK_SUM) | stated : 0;
}

/* A function's result for padding: that of a chosen zero is chosen too, if it is 0. */
static Value of_padding(Value argument, Value out, Element type) {
    out = pad_tainted(out, type);
    out.marks |= argument.marks & (MARK_MIXED | MARK_OWN | MARK_NAMED);
    if (argument.marks & (MARK_MIXED | MARK_OWN)) out.marks |= MARK_STATED;
    if (argument.marks & MARK_CHOSEN && pad_is(argument, 0) && pad_is(out, 0))
        out.marks |= MARK_CHOSEN | MARKS_NEUTRAL;
    return out;
}

static Value map_call(Value value, bool padding, const void *data) {
    const Mapped *map = data;
    Value out = padding ? pad_call(map->which, map->from, value)
                        : pad_element_call(map->which, map->from, value);
    out.marks = value.marks & MARKS_EARLIER ? MARK_CARRIED : 0, out.self = 0;
    if (!padding) {
        out.marks |= of_element(value, pad_is(pad_call(map->which, map->from, pad_number(0)), 0));
        out.marks |= pad_neutral(out, map->from) & MARKS_NEUTRAL;
        return out;
    }
    return of_padding(value, out, map->from);
}

static Value changed(Value value) {
    value.self = 0;
    if (value.marks & MARK_HOLDS) value.marks |= MARK_CARRIED;
    return value;
}

static Value map_negation(Value value, bool padding, const void *data) {
    Value out = changed(value);
    (void)padding, (void)data;
    out.lo = -value.hi, out.hi = -value.lo;
    out.marks &= (uint16_t) ~(MARK_MAX | MARK_MIN);
    if (value.marks & MARK_MAX) out.marks |= MARK_MIN;
    if (value.marks & MARK_MIN) out.marks |= MARK_MAX;
    return out;
}

static Value map_not(Value value, bool padding, const void *data) {
    Value out = {
        .lo = 1 - value.hi, .hi = 1 - value.lo, .marks = changed(value).marks & MARK_CARRIED};
    (void)data;
    return padding ? of_padding(value, out, E_BOOL) : out;
}

static Value map_cast(Value value, bool padding, const void *data) {
    const Mapped *map = data;
    if (!padding) {
        Value element = pad_element_cast(value, map->from, map->to);
        element.marks |= of_element(value, true);
        return element;
    }
    Value out = pad_cast(value, map->from, map->to);
    if (element_rows[map->to].kind != ELEMENT_FLOAT) out = of_padding(value, out, map->to);
    if (out.nan) out.marks &= MARKS_ANY;
    bool saturates = element_rows[map->to].bytes == 1; /* -inf is not neutral afterwards */
    if (saturates && (isinf(value.lo) || isinf(value.hi)))
        out.marks &= (uint16_t) ~(MARK_MAX | MARK_MIN);
    return out;
}

static const Fill *call_fill(Padding *p, const Expr *expr, PadAxis axis) {
    Expr *const *args = expr->call.args;
    Mapped map = {.which = expr->call.which, .from = expr->type};
    switch (expr->call.which) {
    case IN_min: return both(p, PAD_MIN, args[0], args[1], axis);
    case IN_max: return both(p, PAD_MAX, args[0], args[1], axis);
    case IN_pow: return both(p, PAD_POWER, args[0], args[1], axis);
    case IN_ceil_div: return both(p, PAD_OTHER, args[0], args[1], axis);
    case IN_clamp: {
        const Fill *least = both(p, PAD_AT_LEAST, args[0], args[1], axis),
                   *most = of(p, args[2], axis);
        return fill_binary(&p->fills, (Operation){.op = PAD_AT_MOST, .type = expr->type}, least,
                           most);
    }
    case IN_fma: {
        const Fill *by = product(p, args[0], args[1], axis), *more = of(p, args[2], axis);
        return fill_binary(&p->fills, (Operation){.op = PAD_ADD, .type = expr->type}, by, more);
    }
    case IN_bit_and:
    case IN_bit_or:
    case IN_bit_xor:
    case IN_shl:
    case IN_shr:
    case IN_mulhi:
        return fill_binary(
            &p->fills, (Operation){.op = PAD_BITS, .bits = expr->call.which, .type = expr->type},
            of(p, args[0], axis), of(p, args[1], axis));
    case IN_random_bits:
        return fill_binary(&p->fills, (Operation){.op = PAD_OTHER, .type = expr->type},
                           of(p, args[0], axis), of(p, args[1], axis));
    case IN_random: {
        const Fill *any = fill_binary(&p->fills, (Operation){.op = PAD_OTHER, .type = E_U32},
                                      of(p, args[0], axis), of(p, args[1], axis));
        return fill_map(&p->fills, any, map_call, &map);
    }
    case IN_log1p:
    case IN_rcp:
    case IN_rsqrt:
    case IN_log:
    case IN_log2: {
        const Fill *argument = learned(p, args[0], of(p, args[0], axis));
        return fill_map(&p->fills, argument, map_call, &map);
    }
    case IN_abs:
    case IN_sqrt:
    case IN_sin:
    case IN_tanh:
    case IN_floor:
    case IN_ceil:
    case IN_round:
    case IN_isnan:
    case IN_sigmoid:
    case IN_expm1:
    case IN_erf:
    case IN_exp:
    case IN_exp2:
    case IN_cos:
    case IN_popc:
    case IN_clz:
    case IN_bits:
    case IN_COUNT: break;
    }
    return fill_map(&p->fills, of(p, args[0], axis), map_call, &map);
}

/* ---- conditions ------------------------------------------------------------------------------ */

static void find_read(Expr *expr, void *data) { *(bool *)data |= expr->kind == X_READ; }

static void assume(Padding *p, Expr *condition, bool truth) {
    if (p->proofs) algebra_assume(p->code->algebra, p->code->role, condition, truth);
}

/* The expression where the condition has this truth */
static const Fill *under(Padding *p, Expr *condition, bool truth, Expr *expr, PadAxis axis) {
    Algebra *algebra = p->code->algebra;
    PathMark mark = algebra_mark(algebra);
    assume(p, condition, truth);
    vec_push(p->arena, &p->decided, (struct Decided){condition, truth});
    const Fill *fill = of(p, expr, axis);
    p->decided.count--;
    algebra_undo(algebra, mark);
    return fill;
}

/* The same where the other operand of && or || does not decide: positions that it excludes have
 * no value, but values are not narrowed, since each operand would be by the other one. */
static const Fill *operand_under(Padding *p, Expr *condition, bool truth, Expr *expr,
                                 PadAxis axis) {
    Algebra *algebra = p->code->algebra;
    PathMark mark = algebra_mark(algebra);
    assume(p, condition, truth);
    const Fill *fill = of(p, expr, axis);
    algebra_undo(algebra, mark);
    return fill;
}

/* The position crosses the edge, or does not. */
static void assume_side(Algebra *algebra, const Edge *edge, bool crossed) {
    const Poly *sub = edge->sub, *past = edge->past;
    if (!sub || !past || poly_changes(algebra, sub) || poly_changes(algebra, past)) return;
    if (!crossed)
        algebra_assume_range(algebra, sub, poly_constant(algebra, 0), past);
    else if (algebra_proves(algebra, CLAIM_NOT_NEGATIVE, sub))
        algebra_assume_poly(algebra, poly_sum(algebra, sub, past, -1));
}

/* The truth of a condition on the position at each set of the edges of the other operand */
static const Fill *by_sets(Padding *p, Expr *condition, const Fill *fill, const Fill *other,
                           PadAxis axis) {
    Algebra *algebra = p->code->algebra;
    Draft out;
    bool compares = condition->kind == X_BINARY && condition->binary.op >= OP_EQ &&
                    condition->binary.op <= OP_GE && padding_mentions(p, condition, axis);
    bool reads = false;
    if (compares) expr_visit(p->arena, condition, find_read, &reads);
    if (!p->proofs || !compares || reads || fill->count > 0 || fill->more || fill->padded ||
        fill->at[0].element.lo == fill->at[0].element.hi || other->count == 0 || other->more)
        return fill;
    fill_draft(other, &out);
    for (unsigned s = 0; s < 1u << other->count; s++) {
        PathMark mark = algebra_mark(algebra);
        for (int i = 0; i < other->count; i++) assume_side(algebra, &other->edges[i], s >> i & 1);
        Certainty truth = algebra_decides(algebra, p->code->role, condition);
        algebra_undo(algebra, mark);
        out.at[s] = fill->at[0];
        if (truth != NOT_CERTAIN) out.at[s].element = pad_number(truth == CERTAINLY);
    }
    return fill_made(&p->fills, &out);
}

static Value map_square(Value value, bool padding, const void *data) {
    (void)padding, (void)data;
    if (value.lo < 0) value.lo = 0;
    return value;
}

static const Fill *square(Padding *p, Expr *left, Expr *right, PadAxis axis) {
    const Fill *a = of(p, left, axis);
    const Fill *out = fill_binary(&p->fills, (Operation){.op = PAD_MUL, .type = left->type}, a, a);
    (void)right;
    return fill_map(&p->fills, out, map_square, NULL);
}

static const Fill *binary_fill(Padding *p, const Expr *expr, PadAxis axis) {
    Expr *left = expr->binary.left, *right = expr->binary.right;
    switch (expr->binary.op) {
    case OP_ADD: return both(p, PAD_ADD, left, right, axis);
    case OP_SUB: return both(p, PAD_SUB, left, right, axis);
    case OP_MUL:
        if (element_rows[expr->type].kind == ELEMENT_FLOAT && padding_same(p, left, right))
            return square(p, left, right, axis);
        return product(p, left, right, axis);
    case OP_DIV: return quotient(p, left, right, axis);
    case OP_MOD: return rest(p, left, right, axis);
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE: {
        const Fill *a = of(p, left, axis), *b = of(p, right, axis);
        Operation compare = {.op = PAD_COMPARE, .compare = expr->binary.op, .type = left->type};
        return fill_binary(&p->fills, compare, a, b);
    }
    case OP_AND:
    case OP_OR: break;
    }
    bool both_hold = expr->binary.op == OP_AND;
    const Fill *a = operand_under(p, right, both_hold, left, axis),
               *b = under(p, left, both_hold, right, axis);
    a = by_sets(p, left, a, b, axis), b = by_sets(p, right, b, a, axis);
    return fill_binary(&p->fills, (Operation){.op = both_hold ? PAD_AND : PAD_OR, .type = E_BOOL},
                       a, b);
}

/* Where `position < end` does not hold, a tile has explicit zeros: an edge of its own. */
static bool live_edge(Padding *p, Expr *condition, PadAxis axis, Edge *edge) {
    Algebra *algebra = p->code->algebra;
    if (!p->proofs || condition->kind != X_BINARY) return false;
    Expr *left = condition->binary.left, *right = condition->binary.right;
    if (condition->binary.op == OP_AND)
        return live_edge(p, left, axis, edge) || live_edge(p, right, axis, edge);
    if (condition->binary.op != OP_LT || !padding_mentions(p, left, axis) ||
        padding_mentions(p, right, axis))
        return false;
    *edge = (Edge){.sub = algebra_poly(algebra, p->code->role, left),
                   .past = algebra_poly(algebra, p->code->role, right),
                   .from = condition->span};
    return edge->sub && edge->past && algebra_proves(algebra, CLAIM_NOT_NEGATIVE, edge->sub);
}

static const Fill *add_live(Padding *p, Expr *condition, PadAxis axis, const Fill *otherwise,
                            const Fill *fill) {
    Draft out;
    bool zero = otherwise->count == 0 && pad_is(otherwise->at[0].element, 0);
    if (fill->count > 0 || !zero || !live_edge(p, condition, axis, &out.edges[0])) return fill;
    out.count = 1, out.more = fill->more;
    out.at[0] = fill->at[0];
    out.at[1] = (Cell){otherwise->at[0].element, pad_none};
    return fill_made(&p->fills, &out);
}

/* The target is combined with something, or stays: nothing is selected for it then. */
static bool is_kept(Padding *p, Expr *then, Expr *otherwise) {
    bool alone = then->kind == X_READ || then->kind == X_LOCAL || otherwise->kind == X_READ ||
                 otherwise->kind == X_LOCAL;
    return alone && padding_reads_self(p, then) && padding_reads_self(p, otherwise);
}

static bool is_target_alone(Padding *p, Expr *arm) {
    return (arm->kind == X_READ || arm->kind == X_LOCAL) && padding_reads_self(p, arm);
}

static Stays stays_of(Padding *p, const Expr *select) {
    if (is_target_alone(p, select->select.then)) return STAYS_THEN;
    return is_target_alone(p, select->select.otherwise) ? STAYS_OTHERWISE : STAYS_NOT;
}

static const Fill *select_fill(Padding *p, const Expr *expr, PadAxis axis) {
    Expr *condition = expr->select.condition;
    for (size_t i = 0; i < p->decided.count; i++)
        if (p->decided.items[i].condition == condition)
            return of(p, p->decided.items[i].truth ? expr->select.then : expr->select.otherwise,
                      axis);
    PadOp op = padding_extreme(p, expr);
    if (op != PAD_OTHER) {
        const Fill *a = of(p, condition->binary.left, axis),
                   *b = of(p, condition->binary.right, axis);
        if (!fill_all(a).nan && !fill_all(b).nan)
            return fill_binary(&p->fills, (Operation){.op = op, .type = expr->type}, a, b);
    }
    const Fill *decides = of(p, condition, axis),
               *then = under(p, condition, true, expr->select.then, axis),
               *otherwise = under(p, condition, false, expr->select.otherwise, axis);
    bool kept = is_kept(p, expr->select.then, expr->select.otherwise);
    decides = by_sets(p, condition, decides, then->count > 0 ? then : otherwise, axis);
    const Fill *fill =
        kept ? fill_cases(&p->fills, decides, then, otherwise, expr->type)
             : fill_select(&p->fills, decides, then, otherwise, stays_of(p, expr), expr->type);
    return add_live(p, condition, axis, otherwise, fill);
}

/* ---- reductions ------------------------------------------------------------------------------ */

typedef struct Reduced {
    ReduceOp op;
    double count; /* of elements */
} Reduced;

static Value map_reduced(Value value, bool padding, const void *data) {
    const Reduced *reduced = data;
    Value out = changed(value);
    if (reduced->op == REDUCE_SUM) {
        out = pad_sum(out, reduced->count, padding);
        if (padding || (value.marks & MARKS_NEUTRAL) != MARKS_NEUTRAL)
            out.marks &= (uint16_t) ~(MARK_MAX | MARK_MIN);
        if (padding && pad_is(out, 0)) out.marks = value.marks;
        return out;
    }
    /* the maximum of no elements is -inf; it is taken to be of some */
    bool max = reduced->op == REDUCE_MAX;
    if (!padding && max && out.lo < out.hi && isinf(out.lo)) out.lo = -0x1p63;
    if (!padding && !max && out.lo < out.hi && isinf(out.hi)) out.hi = 0x1p63;
    return out;
}

/* A tile that extends outside of the tensor along a reduced index has elements and neutral values,
 * or none of its elements is inside: then the first one is not. */
static const Fill *reduce_edges(Padding *p, const Fill *fill, int first, int count) {
    Algebra *algebra = p->code->algebra;
    Draft out;
    if (fill->count == 0) return fill;
    fill_draft(fill, &out);
    for (int k = first; k < first + count; k++)
        for (int i = 0; i < out.count; i++) {
            int atom = algebra_atom_index(algebra, k);
            Edge *edge = &out.edges[i];
            const Poly *factor, *rest;
            int64_t coef;
            if (!edge->sub || !poly_mentions(algebra, edge->sub, atom)) continue;
            bool linear = poly_split(algebra, edge->sub, atom, &factor, &rest) &&
                          poly_is_constant(factor, &coef) && coef > 0;
            edge->sub = linear ? rest : NULL;
            for (unsigned s = 0; s < 1u << out.count; s++)
                if (s >> i & 1)
                    out.at[s].element = pad_join(out.at[s].element, out.at[s & ~(1u << i)].element);
            if (linear && padding_prove_inside(p, edge)) draft_exclude(&out, i);
        }
    draft_merge_unknown(&out);
    return fill_made(&p->fills, &out);
}

static const Fill *reduced_fill(Padding *p, ReduceOp op, Expr *body, int first, int count,
                                PadAxis axis) {
    bool own = axis.index >= first && axis.index < first + count;
    const Fill *fill = of(p, body, own ? padding_no_axis : axis);
    Reduced reduced = {op, 1};
    for (int k = first; k < first + count; k++) {
        int64_t extent = p->space->items[k].extent;
        reduced.count *= extent > 0 ? (double)extent : 0x1p31;
    }
    fill = reduce_edges(p, fill, first, count);
    return fill_map(&p->fills, fill, map_reduced, &reduced);
}

/* Along the scan a position beyond the edge has the elements before it, or after it. */
static const Fill *scan_fill(Padding *p, const Expr *expr, PadAxis axis) {
    int along = expr->scan.along;
    if (axis.index != along) return reduced_fill(p, expr->scan.op, expr->scan.body, along, 1, axis);
    const Fill *fill = of(p, expr->scan.body, axis);
    Reduced reduced = {expr->scan.op, 0x1p31};
    Draft out;
    fill_draft(fill, &out);
    for (unsigned s = 0; s < 1u << out.count; s++) {
        Value *padding = &out.at[s].padding;
        if (!pad_exists(*padding)) continue;
        *padding = pad_join(*padding, out.at[0].element);
        padding->marks &= MARK_NAMED;
    }
    return fill_map(&p->fills, fill_made(&p->fills, &out), map_reduced, &reduced);
}

/* ---- expressions ----------------------------------------------------------------------------- */

static const Fill *constant_fill(Padding *p, const Expr *expr) {
    bool real = element_rows[expr->type].kind == ELEMENT_FLOAT;
    bool is_unsigned = element_rows[expr->type].kind == ELEMENT_UNSIGNED;
    double number = real ? expr->constant.number
                    : is_unsigned
                        ? (double)((uint64_t)expr->constant.integer &
                                   UINT64_MAX >> (64 - 8 * element_rows[expr->type].bytes))
                        : (double)expr->constant.integer;
    Value value = pad_number(number);
    value.marks = pad_neutral(value, expr->type) & (MARKS_NEUTRAL | MARK_STATED);
    return fill_of(&p->fills, value);
}

static const Fill *fill_by_kind(Padding *p, Expr *expr, PadAxis axis) {
    switch (expr->kind) {
    case X_CONST: return constant_fill(p, expr);
    case X_READ: return padding_of_read(p, expr->read, axis);
    case X_UNARY:
        return fill_map(&p->fills, of(p, expr->unary.operand, axis),
                        expr->unary.op == OP_NEG ? map_negation : map_not, NULL);
    case X_BINARY: return binary_fill(p, expr, axis);
    case X_SELECT: return select_fill(p, expr, axis);
    case X_CAST: {
        Mapped map = {.from = expr->cast->type, .to = expr->type};
        return fill_map(&p->fills, of(p, expr->cast, axis), map_cast, &map);
    }
    case X_CALL: return call_fill(p, expr, axis);
    case X_LOCAL: return local_fill(p, expr, axis);
    case X_REDUCE:
        return reduced_fill(p, expr->reduce.op, expr->reduce.body, expr->reduce.first,
                            expr->reduce.count, axis);
    case X_SCAN: return scan_fill(p, expr, axis);
    case X_POISON:
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_RANK:
    case X_INDEX: break;
    }
    return padding_typed(p, expr->type);
}

static const Fill *of(Padding *p, Expr *expr, PadAxis axis) {
    arena_count(p->arena, 4);
    /* anything, also what the program names */
    if (--p->work < 0) return padding_named(p, padding_unknown(p));
    return padding_stated(p, expr, fill_by_kind(p, expr, axis));
}

typedef struct Selects {
    Padding *p;
    PadAxis axis;
    VEC(Expr *) conditions;
} Selects;

static bool is_constant(const Expr *expr) {
    if (expr->kind == X_UNARY) return is_constant(expr->unary.operand);
    return expr->kind == X_CONST || (expr->kind == X_CAST && is_constant(expr->cast));
}

/* A mask of constants, which is combined with values; or the same for all positions */
static void find_select(Expr *expr, void *data) {
    Selects *selects = data;
    if (expr->kind != X_SELECT || selects->conditions.count >= CONDITIONS_MOST) return;
    Expr *condition = expr->select.condition;
    bool along = padding_mentions(selects->p, condition, selects->axis),
         constant = is_constant(expr->select.then) && is_constant(expr->select.otherwise);
    if (!along || !constant) return;
    for (size_t i = 0; i < selects->conditions.count; i++)
        if (selects->conditions.items[i] == condition) return;
    vec_push(selects->p->arena, &selects->conditions, condition);
}

/* The last condition first, which encloses those before it */
static const Fill *in_cases(Padding *p, const Selects *selects, size_t count, Expr *expr) {
    if (count == 0) return of(p, expr, selects->axis);
    Algebra *algebra = p->code->algebra;
    Expr *condition = selects->conditions.items[count - 1];
    const Fill *decides = of(p, condition, selects->axis), *arms[2];
    for (int truth = 0; truth < 2; truth++) {
        PathMark mark = algebra_mark(algebra);
        assume(p, condition, truth);
        vec_push(p->arena, &p->decided, (struct Decided){condition, truth});
        arms[truth] = in_cases(p, selects, count - 1, expr);
        p->decided.count--;
        algebra_undo(algebra, mark);
    }
    const Fill *fill = fill_cases(&p->fills, decides, arms[1], arms[0], expr->type);
    return add_live(p, condition, selects->axis, arms[0], fill);
}

/* A condition on the position holds, or does not, for the whole value: `x + (c ? 0 : -inf)`. */
const Fill *padding_of(Padding *p, Expr *expr, PadAxis axis) {
    Selects selects = {.p = p, .axis = axis};
    if (p->proofs && !p->bounding && expr->kind != X_SELECT)
        expr_visit(p->arena, expr, find_select, &selects);
    PadAxis outer = p->axis;
    p->axis = axis;
    const Fill *fill = in_cases(p, &selects, selects.conditions.count, expr);
    p->axis = outer;
    return fill;
}

static void find_self(Expr *expr, void *data) {
    Padding *p = ((void **)data)[0];
    int local = *(int *)((void **)data)[2];
    bool self = expr->kind == X_LOCAL
                    ? local >= 0 && expr->index == local
                    : expr->kind == X_READ && expr->read && padding_is_target(p, expr->read);
    if (self) *(bool *)((void **)data)[1] = true;
}

bool padding_reads_self(Padding *p, Expr *expr) {
    const Row *row = code_row(p->code, p->at);
    int local = row->kind == ROW_SET ? row->local : -1;
    bool found = false;
    expr_visit(p->arena, expr, find_self, (void *[]){p, &found, &local});
    return found;
}
