/* Operations on contents, set by set of crossed edges. */
#include "check/padding/padding.h"

#include <math.h>
#include <string.h>

static bool cell_exists(const Cell *cell) {
    return pad_exists(cell->element) || pad_exists(cell->padding);
}

static void cell_join(Cell *to, const Cell *from) {
    to->element = pad_join(to->element, from->element);
    to->padding = pad_join(to->padding, from->padding);
}

static const Cell cell_none = {{.lo = INFINITY, .hi = -INFINITY},
                               {.lo = INFINITY, .hi = -INFINITY}};

static unsigned sets(const Fill *fill) { return 1u << fill->count; }

bool fill_written(const Fill *fill) { return cell_exists(&fill->at[0]); }

Value fill_all(const Fill *fill) {
    Value all = pad_none;
    for (unsigned s = 0; s < sets(fill); s++)
        all = pad_join(all, pad_join(fill->at[s].element, fill->at[s].padding));
    return all;
}

/* ---- edges of two ---------------------------------------------------------------------------- */

static bool same_poly(const Poly *a, const Poly *b) {
    return a == b || (a && b && poly_equal(a, b));
}

static bool same_edge(const Edge *a, const Edge *b) {
    if (!a->sub != !b->sub || !same_poly(a->sub, b->sub) || !same_poly(a->past, b->past))
        return false;
    return a->sub || (a->from.lo == b->from.lo && a->from.hi == b->from.hi);
}

/* Some position crosses the edge. */
static bool is_crossed(const Fill *fill, int edge) {
    for (unsigned s = 0; s < sets(fill); s++)
        if (s >> edge & 1 && cell_exists(&fill->at[s])) return true;
    return false;
}

static const Fill *without_uncrossed(Fills *fills, const Fill *fill) {
    Draft out;
    int kept[EDGES_MOST], count = 0;
    for (int i = 0; i < fill->count; i++)
        if (is_crossed(fill, i)) out.edges[count] = fill->edges[i], kept[count++] = i;
    if (count == fill->count) return fill;
    out.count = count, out.more = fill->more;
    for (unsigned s = 0; s < 1u << count; s++) {
        unsigned own = 0;
        for (int i = 0; i < count; i++) own |= (s >> i & 1) << kept[i];
        out.at[s] = fill->at[own];
    }
    return fill_made(fills, &out);
}

static int count_edges(const Fill *const *of, int count) {
    int sum = 0;
    for (int i = 0; i < count; i++)
        for (int e = 0; e < of[i]->count; e++) {
            bool found = false;
            for (int k = 0; k < i && !found; k++)
                for (int f = 0; f < of[k]->count && !found; f++)
                    found = same_edge(&of[i]->edges[e], &of[k]->edges[f]);
            sum += !found;
        }
    return sum;
}

/* If the edges of all do not fit, those that no position crosses are left out. */
static void make_fit(Fills *fills, const Fill **of, int count) {
    int sum = 0;
    for (int i = 0; i < count; i++) sum += of[i]->count;
    if (sum <= EDGES_MOST || count_edges(of, count) <= EDGES_MOST) return;
    for (int i = 0; i < count; i++) of[i] = without_uncrossed(fills, of[i]);
}

typedef struct Both {       /* the edges of two contents */
    Draft out;              /* without values */
    int second[EDGES_MOST]; /* by edge of `out`: its number in the second; -1: none */
    unsigned shared;        /* edges of both whose position is unknown, so they may differ */
    unsigned dropped;       /* edges of the second that do not fit */
} Both;

/* Adds the edges of the second to those in `out`. */
static void add_edges(Both *both, const Fill *b) {
    Draft *out = &both->out;
    out->more |= b->more;
    both->shared = 0, both->dropped = 0;
    for (int i = 0; i < EDGES_MOST; i++) both->second[i] = -1;
    for (int k = 0; k < b->count; k++) {
        int found = -1;
        for (int i = 0; i < out->count && found < 0; i++)
            if (same_edge(&out->edges[i], &b->edges[k])) found = i;
        if (found < 0 && out->count == EDGES_MOST) {
            both->dropped |= 1u << k;
            out->more = true;
            continue;
        }
        if (found < 0)
            out->edges[found = out->count++] = b->edges[k];
        else if (!b->edges[k].sub)
            both->shared |= 1u << found;
        Edge *edge = &out->edges[found];
        edge->above &= b->edges[k].above, edge->below &= b->edges[k].below;
        edge->earlier &= b->edges[k].earlier, edge->starts &= b->edges[k].starts;
        both->second[found] = k;
    }
    for (unsigned s = 0; s < 1u << out->count; s++) out->at[s] = cell_none;
}

static Both edges_of(const Fill *a, const Fill *b) {
    Both both;
    both.out.count = a->count, both.out.more = a->more;
    for (int i = 0; i < a->count; i++) both.out.edges[i] = a->edges[i];
    add_edges(&both, b);
    return both;
}

/* The values at a set of the edges of both. An edge of unknown position, and one that does not
 * fit, may be crossed or not. */
static Cell cells_of(const Fill *a, unsigned own, unsigned open) {
    Cell cell = cell_none;
    for (unsigned without = open;; without = (without - 1) & open) {
        cell_join(&cell, &a->at[own & ~without]);
        if (without == 0) break;
    }
    return cell;
}

/* The set as one of edges of the second */
static unsigned second_set(const Both *both, unsigned set) {
    unsigned own = 0;
    for (int i = 0; i < both->out.count; i++)
        if (both->second[i] >= 0 && set >> i & 1) own |= 1u << both->second[i];
    return own;
}

static Cell first_at(const Both *both, const Fill *a, unsigned set) {
    unsigned own = set & (sets(a) - 1);
    return cells_of(a, own, own & both->shared);
}

static Cell second_at(const Both *both, const Fill *b, unsigned set) {
    unsigned own = second_set(both, set);
    return cells_of(b, own | both->dropped, second_set(both, set & both->shared) | both->dropped);
}

/* ---- joins ----------------------------------------------------------------------------------- */

static const Fill *joined(Fills *fills, FillOp op, const Fill *a, const Fill *b) {
    if (a == b || !fill_written(b)) return a;
    if (!fill_written(a)) return b;
    FillKey key = {op, 0, {a, b}};
    const Fill *known = fill_recall(fills, &key);
    if (known) return known;
    Value (*join)(Value, Value) = op == FILL_WIDEN ? pad_widened : pad_join;
    const Fill *fit[] = {a, b};
    make_fit(fills, fit, 2);
    a = fit[0], b = fit[1];
    Both both = edges_of(a, b);
    both.shared = 0; /* the paths are alternatives */
    for (unsigned s = 0; s < 1u << both.out.count; s++) {
        Cell x = first_at(&both, a, s), y = second_at(&both, b, s);
        both.out.at[s] = (Cell){join(x.element, y.element), join(x.padding, y.padding)};
    }
    return fill_remember(fills, &key, fill_made(fills, &both.out));
}

const Fill *fill_join(Fills *fills, const Fill *a, const Fill *b) {
    return joined(fills, FILL_JOIN, a, b);
}

const Fill *fill_widen(Fills *fills, const Fill *old, const Fill *next) {
    return joined(fills, FILL_WIDEN, old, next);
}

const Fill *fill_both(Fills *fills, const Fill *a, const Fill *b) {
    FillKey key = {FILL_BOTH, 0, {a, b}};
    const Fill *known = fill_recall(fills, &key), *fit[] = {a, b};
    if (known) return known;
    make_fit(fills, fit, 2);
    a = fit[0], b = fit[1];
    Both both = edges_of(a, b);
    for (unsigned s = 0; s < 1u << both.out.count; s++) {
        Cell x = first_at(&both, a, s), y = second_at(&both, b, s), *out = &both.out.at[s];
        if (!cell_exists(&x) || !cell_exists(&y)) continue;
        out->padding = pad_join(x.padding, y.padding);
        if (pad_exists(x.element) && pad_exists(y.element)) out->element = x.element;
    }
    return fill_remember(fills, &key, fill_made(fills, &both.out));
}

void draft_exclude(Draft *draft, int edge) {
    for (unsigned s = 0; s < 1u << draft->count; s++)
        if (s >> edge & 1) draft->at[s] = cell_none;
}

void draft_merge_unknown(Draft *draft) {
    for (int i = 0; i < draft->count; i++)
        for (int k = draft->count - 1; k > i; k--) {
            if (!same_edge(&draft->edges[i], &draft->edges[k])) continue;
            Draft out = *draft;
            for (unsigned s = 0; s < SETS_MOST; s++) out.at[s] = cell_none;
            for (unsigned s = 0; s < 1u << draft->count; s++) {
                unsigned low = s & ((1u << k) - 1), high = s >> (k + 1) << k;
                unsigned merged = low | high | ((s >> k & 1) << i);
                cell_join(&out.at[merged], &draft->at[s]);
            }
            out.edges[i].starts &= out.edges[k].starts;
            for (int e = k; e + 1 < draft->count; e++) out.edges[e] = out.edges[e + 1];
            out.count--;
            *draft = out;
        }
}

/* ---- operations ------------------------------------------------------------------------------ */

typedef struct Operand {
    Value value;
    bool padding;
} Operand;

static unsigned neutral_marks(const Operand *a) {
    bool earlier = !a->padding && a->value.marks & MARKS_EARLIER;
    return earlier ? MARKS_NEUTRAL : a->value.marks & MARKS_NEUTRAL;
}

static bool is_inside(const Value *element) {
    return (element->marks & MARKS_NEUTRAL) == MARKS_NEUTRAL;
}

/* Each operand is zero, or has an element; so is the result. */
static bool keeps_stated(PadOp op, const Value *a, const Value *b) {
    bool keeps = op == PAD_ADD || op == PAD_SUB || op == PAD_MUL || op == PAD_MAX || op == PAD_MIN;
    return keeps && pad_is_stated(a) && pad_is_stated(b) && pad_finite(*a) && pad_finite(*b);
}

/* Of the result of two elements: it exists where one of them does. */
static unsigned element_marks(PadOp op, const Value *left, const Value *right) {
    unsigned a = left->marks, b = right->marks;
    if (is_inside(left) || is_inside(right)) return MARKS_NEUTRAL | MARK_STATED;
    unsigned stated = keeps_stated(op, left, right) ? MARK_STATED : 0;
    if (op == PAD_DIV) return pad_has_zero(*right) ? 0 : a & MARK_SUM;
    if (op == PAD_ADD || op == PAD_SUB) return stated | (a & b & MARK_SUM);
    if (op == PAD_MUL) return stated | ((a | b) & MARK_SUM);
    return stated | (op == PAD_MAX ? a & b & MARK_MAX : op == PAD_MIN ? a & b & MARK_MIN : 0);
}

/* Reductions that the result does not change */
static unsigned kept_marks(Operation operation, const Operand *a, const Operand *b) {
    PadOp op = operation.op;
    unsigned both = neutral_marks(a) & neutral_marks(b);
    unsigned scaled = (a->padding ? a->value.marks : MARK_SUM) & MARK_SUM;
    switch (op) {
    case PAD_ADD:
    case PAD_SUB: return both & MARK_SUM;
    case PAD_MUL: return scaled & (b->padding ? b->value.marks : MARK_SUM);
    case PAD_DIV: /* an integer quotient by zero is any number */
        if (b->padding ||
            (element_rows[operation.type].kind != ELEMENT_FLOAT && pad_has_zero(b->value)))
            return 0;
        return scaled;
    case PAD_MAX:
        if (a->value.lo >= 0 && b->value.lo >= 0) return both & (MARK_MAX | MARK_SUM);
        return both & MARK_MAX;
    case PAD_MIN: return both & MARK_MIN;
    case PAD_AT_LEAST:
    case PAD_AT_MOST:
    case PAD_AND:
    case PAD_OR:
    case PAD_COMPARE:
    case PAD_POWER:
    case PAD_BITS:
    case PAD_OTHER: break;
    }
    return 0;
}

/* The operation leaves `a` as it is. */
static bool leaves(PadOp op, bool right, const Value *a, const Value *b) {
    switch (op) {
    case PAD_ADD: return pad_is(*b, 0);
    case PAD_SUB: return right && pad_is(*b, 0);
    case PAD_MUL: return pad_is(*b, 1);
    case PAD_DIV: return right && pad_is(*b, 1);
    case PAD_OR:
    case PAD_MAX: return !b->nan && b->hi <= a->lo;
    case PAD_AND:
    case PAD_MIN: return !b->nan && b->lo >= a->hi;
    case PAD_AT_LEAST:
    case PAD_AT_MOST:
    case PAD_COMPARE:
    case PAD_POWER:
    case PAD_BITS:
    case PAD_OTHER: break;
    }
    return false;
}

/* What the author selected for padding keeps its meaning: as the same number, and in what a loop
 * combines. */
static bool keeps_chosen(PadOp op, const Operand *a, const Operand *b, const Value *result) {
    const Operand *operands[] = {a, b};
    bool carried = (a->value.marks | b->value.marks) & MARKS_EARLIER, same = false;
    for (int i = 0; i < 2; i++) {
        const Value *value = &operands[i]->value;
        if (operands[i]->padding && !(value->marks & MARK_CHOSEN)) return false;
        same |= operands[i]->padding && value->lo == value->hi && pad_is(*result, value->lo);
        if (!operands[i]->padding || value->marks & MARKS_EARLIER || !carried) continue;
        if ((op == PAD_ADD || op == PAD_SUB) && !pad_is(*value, 0)) return false;
        if (op == PAD_MAX && value->hi == INFINITY) return false;
        if (op == PAD_MIN && value->lo == -INFINITY) return false;
    }
    return carried || same;
}

/* The same with what does not change such a reduction of earlier values, or exists */
static bool keeps(PadOp op, bool right, const Operand *a, const Operand *b) {
    unsigned neutral = a->padding || b->padding ? b->value.marks : 0;
    if (leaves(op, right, &a->value, &b->value)) return true;
    if (op == PAD_ADD || (op == PAD_SUB && right)) return neutral & MARK_SUM;
    return op == PAD_MAX ? neutral & MARK_MAX : op == PAD_MIN && neutral & MARK_MIN;
}

/* Whether the result is, or is computed from, a value of an earlier iteration */
static void set_earlier(PadOp op, const Operand *a, const Operand *b, Value *out) {
    unsigned first = a->value.marks & MARKS_EARLIER, second = b->value.marks & MARKS_EARLIER;
    bool elements = !a->padding && !b->padding;
    out->self = 0;
    if (first && leaves(op, true, &a->value, &b->value))
        second = 0;
    else if (second && leaves(op, false, &b->value, &a->value))
        first = 0;
    bool keeps_first = first && keeps(op, true, a, b),
         keeps_second = second && keeps(op, false, b, a);
    if (keeps_first && !second) out->self = a->value.self;
    if (keeps_second && !first) out->self = b->value.self;
    for (int i = 0; i < 2; i++) {
        const Operand *operand = i == 0 ? a : b;
        unsigned own = i == 0 ? first : second, hard = operand->padding ? MARK_CARRIED : 0;
        bool holds = operand->padding ? own == MARK_HOLDS : operand->value.self != 0;
        bool kept = (i == 0 ? keeps_first : keeps_second) && !elements && !(own & hard);
        if (own) out->marks |= !kept ? MARK_CARRIED : holds ? MARK_HOLDS : MARK_SCALED;
    }
}

/* An infinity that was selected for padding is not subtracted from one of the same sign: the
 * elements would be NaN alike. */
static void take_finite(PadOp op, const Operand *infinite, Operand *other) {
    bool sum = op == PAD_ADD || op == PAD_SUB, all = isinf(infinite->value.lo);
    if (!sum || !infinite->padding || other->padding || !all || other->value.lo == other->value.hi)
        return;
    other->value.lo = fmax(other->value.lo, -0x1p63),
    other->value.hi = fmin(other->value.hi, 0x1p63);
}

/* An element is in it, which may be combined with padding. */
static bool has_element(const Operand *a) {
    return a->padding ? a->value.marks & MARK_MIXED : is_inside(&a->value);
}

/* Whether a program may name the result, and whether it has named an operand */
static unsigned naming_marks(Operation operation, const Operand *a, const Operand *b,
                             const Value *out) {
    PadOp op = operation.op;
    bool truth = op == PAD_COMPARE || operation.type == E_BOOL;
    unsigned named = (a->padding ? a->value.marks : 0) | (b->padding ? b->value.marks : 0);
    bool own =
        (!a->padding || a->value.marks & MARK_OWN) && (!b->padding || b->value.marks & MARK_OWN);
    named = (named & MARK_NAMED) | (own ? MARK_OWN | MARK_STATED : 0);
    if (has_element(a) || has_element(b)) return named | MARK_MIXED | MARK_STATED;
    if (pad_is(*out, 0) && !truth) return (op == PAD_MUL ? named & MARK_OWN : named) | MARK_STATED;
    return named | (keeps_stated(op, &a->value, &b->value) ? MARK_STATED : 0);
}

static Value of_operands(Operation operation, const Operand *first, const Operand *second) {
    Operand x = *first, y = *second;
    const Operand *a = &x, *b = &y;
    if (!pad_exists(x.value) || !pad_exists(y.value)) return pad_none;
    take_finite(operation.op, &x, &y), take_finite(operation.op, &y, &x);
    bool elements = !a->padding && !b->padding;
    Value out = elements ? pad_element_binary(operation, a->value, b->value)
                         : pad_binary(operation, a->value, b->value);
    unsigned marks = out.nan ? 0 : kept_marks(operation, a, b);
    if (elements) {
        marks = element_marks(operation.op, &a->value, &b->value) |
                (pad_neutral(out, operation.type) & (MARKS_NEUTRAL | MARK_STATED));
    } else {
        Element type = operation.op == PAD_COMPARE ? E_BOOL : operation.type;
        bool read = (a->padding ? a->value.marks : MARK_READ) &
                    (b->padding ? b->value.marks : MARK_READ) & MARK_READ;
        if (!out.nan) marks |= pad_neutral(out, type);
        if (!out.nan && keeps_chosen(operation.op, a, b, &out)) marks |= MARK_CHOSEN;
        if (marks & MARK_CHOSEN && pad_is(out, 0)) marks |= MARKS_NEUTRAL;
        if (read && (a->value.marks | b->value.marks) & MARKS_EARLIER) marks |= MARK_READ;
        marks |= naming_marks(operation, a, b, &out);
    }
    out.marks = (uint16_t)marks;
    set_earlier(operation.op, a, b, &out);
    return out;
}

/* An element decides `false && x`, whatever x is. */
static bool decides(PadOp op, const Operand *operand) {
    return !operand->padding && ((op == PAD_AND && pad_is(operand->value, 0)) ||
                                 (op == PAD_OR && pad_is(operand->value, 1)));
}

/* The element is inside of the edges, so its result with what the author selected for the other
 * operand is one, too. What loops combine is reduced: there it must be neutral. */
static bool stays_element(const Operand *element, const Operand *other) {
    unsigned marks = element->value.marks, chosen = other->value.marks;
    return !element->padding && (marks & MARKS_NEUTRAL) == MARKS_NEUTRAL && other->padding &&
           chosen & MARK_CHOSEN && !((marks | chosen) & MARKS_EARLIER);
}

/* The operands in a cell; of && and ||, false and true are told apart: one of them decides. */
static int operands_of(PadOp op, const Cell *cell, Operand out[3]) {
    int count = 0;
    bool parts = (op == PAD_AND || op == PAD_OR) && cell->element.lo == 0 && cell->element.hi == 1;
    out[count++] = (Operand){cell->padding, true};
    out[count++] = (Operand){cell->element, false};
    if (!parts) return count;
    for (int truth = 0; truth < 2; truth++) {
        Value *value = &out[truth + 1].value;
        Value number = pad_number(truth);
        number.marks = cell->element.marks, number.self = cell->element.self;
        out[truth + 1].padding = false;
        *value = number;
    }
    return count + 1;
}

static Cell cell_binary(Operation operation, const Cell *x, const Cell *y) {
    PadOp op = operation.op;
    Operand xs[3], ys[3];
    int x_count = operands_of(op, x, xs), y_count = operands_of(op, y, ys);
    Cell out = cell_none;
    for (int i = 0; i < x_count; i++)
        for (int k = 0; k < y_count; k++) {
            Value value = of_operands(operation, &xs[i], &ys[k]);
            bool beside = stays_element(&xs[i], &ys[k]) || stays_element(&ys[k], &xs[i]);
            bool element = (beside && !value.nan) || (!xs[i].padding && !ys[k].padding);
            if (beside && element) value.marks = MARKS_NEUTRAL | MARK_STATED;
            if (pad_exists(value) && (decides(op, &xs[i]) || decides(op, &ys[k])))
                value = pad_number(op == PAD_OR), element = true;
            Value *to = element ? &out.element : &out.padding;
            *to = pad_join(*to, value);
        }
    return out;
}

/* The cell alone, as contents without edges */
static const Fill *single(Fills *fills, Cell cell) {
    Draft draft;
    draft.count = 0, draft.more = false, draft.at[0] = cell;
    return fill_made(fills, &draft);
}

static bool is_single(const Fill *fill) { return fill->count == 0 && !fill->more; }

static void singles(Fills *fills, const Fill *fill, const Fill **out) {
    if (is_single(fill)) {
        out[0] = fill;
        return;
    }
    for (unsigned s = 0; s < sets(fill); s++) out[s] = single(fills, fill->at[s]);
}

static uint32_t operation_bits(Operation operation) {
    return (uint32_t)operation.op | (uint32_t)operation.compare << 8 |
           (uint32_t)operation.type << 16;
}

/* An operation on two cells. Many are equal, so the result is remembered. */
static const Cell *of_cells(Fills *fills, Operation operation, const Fill *a, const Fill *b) {
    FillKey key = {FILL_CELL, operation_bits(operation), {a, b}};
    const Fill *out = fill_recall(fills, &key);
    if (!out)
        out =
            fill_remember(fills, &key, single(fills, cell_binary(operation, &a->at[0], &b->at[0])));
    return &out->at[0];
}

typedef struct Operands {
    Fills *fills;
    Operation operation;
    Both both;
    const Fill *first[SETS_MOST], *second[SETS_MOST]; /* by set of the edges of each */
} Operands;

/* One of two edges of unknown position may be crossed alone. */
static Cell set_binary(const Operands *on, unsigned set, unsigned first_sets) {
    const Both *both = &on->both;
    unsigned first = set & (first_sets - 1), open = set & both->shared;
    Cell out = cell_none;
    for (unsigned x_without = open;; x_without = (x_without - 1) & open) {
        for (unsigned y_without = open & ~x_without;;
             y_without = (y_without - 1) & ~x_without & open) {
            unsigned second = second_set(both, set & ~y_without);
            for (unsigned more = both->dropped;; more = (more - 1) & both->dropped) {
                cell_join(&out, of_cells(on->fills, on->operation, on->first[first & ~x_without],
                                         on->second[second | more]));
                if (more == 0) break;
            }
            if (y_without == 0) break;
        }
        if (x_without == 0) break;
    }
    return out;
}

/* Each operand of && and || is evaluated where the other one does not decide. */
static void evaluate_alone(PadOp op, const Cell *a, const Cell *b, Cell *out) {
    if ((op == PAD_AND || op == PAD_OR) && cell_exists(a) != cell_exists(b))
        out->element = pad_number(op == PAD_OR);
}

static const Fill *of_both(Fills *fills, Operation operation, const Fill *a, const Fill *b) {
    PadOp op = operation.op;
    if (is_single(a) && is_single(b)) /* most have no edges */
        return single(fills, cell_binary(operation, &a->at[0], &b->at[0]));
    const Fill *fit[] = {a, b};
    make_fit(fills, fit, 2);
    a = fit[0], b = fit[1];
    Operands on;
    on.fills = fills, on.operation = operation, on.both = edges_of(a, b);
    singles(fills, a, on.first), singles(fills, b, on.second);
    Draft *out = &on.both.out;
    for (unsigned s = 0; s < 1u << out->count; s++) {
        out->at[s] = set_binary(&on, s, sets(a));
        if (op != PAD_AND && op != PAD_OR) continue;
        Cell x = first_at(&on.both, a, s), y = second_at(&on.both, b, s);
        evaluate_alone(op, &x, &y, &out->at[s]);
    }
    return fill_made(fills, out);
}

const Fill *fill_binary(Fills *fills, Operation operation, const Fill *a, const Fill *b) {
    FillKey key = {FILL_OPERATION, operation_bits(operation), {a, b}};
    const Fill *known = fill_recall(fills, &key);
    if (known) return known;
    bool written = fill_written(a) && fill_written(b);
    return fill_remember(fills, &key,
                         written ? of_both(fills, operation, a, b) : fill_of(fills, pad_none));
}

const Fill *fill_map(Fills *fills, const Fill *a, Value (*map)(Value, bool padding, const void *),
                     const void *data) {
    Draft out;
    bool changed = false;
    arena_count(fills->arena, 2 * sets(a));
    fill_draft(a, &out);
    for (unsigned s = 0; s < sets(a); s++) {
        Cell *cell = &out.at[s];
        const Cell *old = &a->at[s];
        if (pad_exists(cell->element)) cell->element = map(cell->element, false, data);
        if (pad_exists(cell->padding)) cell->padding = map(cell->padding, true, data);
        changed = changed || !pad_same(cell->element, old->element) ||
                  !pad_same(cell->padding, old->padding);
    }
    if (!changed) return a;
    return fill_made(fills, &out);
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* Zeros and infinities, the least and the greatest integer, that are selected in the place of
 * padding */
static Cell chosen(Cell cell, Element type) {
    uint16_t marks = pad_neutral(cell.element, type);
    if (!marks) return cell;
    cell.element.marks |= marks | MARK_CHOSEN | MARK_STATED | MARK_OWN;
    if (pad_is(cell.element, 0)) cell.element.marks |= MARKS_NEUTRAL;
    cell.padding = pad_join(cell.padding, cell.element);
    cell.element = pad_none;
    return cell;
}

static bool may_be(Value truth, bool yes) {
    return pad_exists(truth) && (yes ? truth.hi > 0 : truth.lo < 1);
}

/* The marks of what a condition on padding has chosen */
static void name_chosen(Value *value, const Value *condition, const Value *arm) {
    bool mixed = (is_inside(arm) && value != arm) || (arm->marks | condition->marks) & MARK_MIXED;
    if (mixed) value->marks |= MARK_MIXED;
    bool own = value != arm || arm->marks & MARK_OWN;
    if (own && !(condition->marks & MARK_OWN)) value->marks &= (uint16_t) ~(MARK_OWN | MARK_STATED);
    if (own && condition->marks & MARK_OWN) value->marks |= MARK_OWN | MARK_STATED;
    if (mixed || pad_is(*value, 0) || (value != arm && arm->marks & MARK_STATED))
        value->marks |= MARK_STATED;
    value->marks |= condition->marks & MARK_NAMED;
}

/* Adds the arm where the condition selects it. `carried`: padding decides between it and a value of
 * an earlier iteration. An earlier value that decides about padding is in the result, too.
 * `stays`: the arm is the target, which a decision for it leaves as it is. */
static void add_arm(Cell *out, const Cell *condition, const Cell *arm, bool truth, bool carried,
                    bool stays, Element type) {
    if (may_be(condition->element, truth)) {
        Cell own = *arm;
        bool earlier = condition->element.marks & MARKS_EARLIER;
        if (earlier && pad_exists(own.padding) && !(own.padding.marks & MARK_HOLDS))
            own.padding.marks |= MARK_CARRIED;
        cell_join(out, &own);
    }
    if (!may_be(condition->padding, truth)) return;
    if (stays && pad_is_own_decision(&condition->padding)) {
        cell_join(out, arm);
        return;
    }
    Value values[] = {pad_tainted(arm->element, type), arm->padding};
    /* a zero that was selected for other padding, and an element that was added to zeros, are the
     * choice of this padding, too */
    if (pad_is(values[1], 0))
        values[1].marks &= (uint16_t) ~(MARK_CHOSEN | MARK_MAX | MARK_MIN);
    else if (!carried)
        values[1].marks &= (uint16_t)(~MARKS_NEUTRAL | pad_neutral(values[1], type));
    name_chosen(&values[0], &condition->padding, &arm->element);
    name_chosen(&values[1], &condition->padding, &values[1]);
    for (int i = 0; i < 2; i++) {
        if (!pad_exists(values[i])) continue;
        if (carried && !(values[i].marks & MARK_HOLDS)) values[i].marks |= MARK_CARRIED;
        out->padding = pad_join(out->padding, values[i]);
    }
}

static Cell unchanged(Cell cell, Element type) {
    (void)type;
    return cell;
}

/* Some earlier value is in the cell. Padding has no mark of it where it is as it was. */
static bool is_earlier(const Fill *arm, const Cell *cell) {
    bool marked = cell->element.marks & MARKS_EARLIER;
    return marked || (arm->earlier && !pad_exists(cell->element) && pad_exists(cell->padding));
}

static const Fill *select_between(Fills *fills, FillOp op, const Fill *condition, const Fill *then,
                                  const Fill *otherwise, Stays stays, Element type) {
    Cell (*instead)(Cell, Element) = op == FILL_SELECT ? chosen : unchanged;
    const Fill *fit[] = {condition, then, otherwise};
    make_fit(fills, fit, 3);
    condition = fit[0], then = fit[1], otherwise = fit[2];
    Both with_then = edges_of(then, otherwise);
    add_edges(&with_then, condition);
    Both with_other = with_then, with_condition = with_then;
    add_edges(&with_then, then), add_edges(&with_other, otherwise);
    add_edges(&with_condition, condition);
    Draft *all = &with_condition.out;
    for (unsigned s = 0; s < 1u << all->count; s++) {
        Cell c = second_at(&with_condition, condition, s), x = second_at(&with_then, then, s),
             y = second_at(&with_other, otherwise, s), *out = &all->at[s];
        bool decided =
            pad_exists(c.element) && !pad_exists(c.padding) && c.element.lo == c.element.hi;
        if (!cell_exists(&c)) continue;
        /* an arm that is evaluated only inside of the edges */
        if (s != 0 && cell_exists(&x) != cell_exists(&y)) {
            *out = cell_exists(&x) ? instead(x, type) : instead(y, type);
        } else if (s != 0 && decided) {
            *out = pad_is(c.element, 1) ? instead(x, type) : instead(y, type);
        } else {
            bool carried = c.padding.marks & MARKS_EARLIER || is_earlier(then, &x) ||
                           is_earlier(otherwise, &y);
            add_arm(out, &c, &x, true, carried, stays == STAYS_THEN, type);
            add_arm(out, &c, &y, false, carried, stays == STAYS_OTHERWISE, type);
        }
    }
    return fill_made(fills, all);
}

static const Fill *selected(Fills *fills, FillOp op, const Fill *condition, const Fill *then,
                            const Fill *otherwise, Stays stays, Element type) {
    if (!fill_written(condition)) return fill_of(fills, pad_none);
    FillKey key = {op, (uint32_t)type | (uint32_t)stays << 8, {condition, then, otherwise}};
    const Fill *known = fill_recall(fills, &key);
    if (known) return known;
    const Fill *made = select_between(fills, op, condition, then, otherwise, stays, type);
    return fill_remember(fills, &key, made);
}

const Fill *fill_select(Fills *fills, const Fill *condition, const Fill *then,
                        const Fill *otherwise, Stays stays, Element type) {
    return selected(fills, FILL_SELECT, condition, then, otherwise, stays, type);
}

const Fill *fill_cases(Fills *fills, const Fill *condition, const Fill *then, const Fill *otherwise,
                       Element type) {
    return selected(fills, FILL_CASES, condition, then, otherwise, STAYS_NOT, type);
}

const Fill *fill_controlled(Fills *fills, const Fill *a, const Fill *condition, bool truth,
                            Element type) {
    const Fill *fit[] = {a, condition};
    make_fit(fills, fit, 2);
    a = fit[0], condition = fit[1];
    Both both = edges_of(a, condition);
    for (unsigned s = 0; s < 1u << both.out.count; s++) {
        Cell x = first_at(&both, a, s), c = second_at(&both, condition, s);
        Cell *out = &both.out.at[s];
        add_arm(out, &c, &x, truth, true, false, type); /* elsewhere the previous value stays */
    }
    return fill_made(fills, &both.out);
}
