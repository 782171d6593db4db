/* Evaluation of expressions and tile statements. */
#include "tests/adversary/machine.h"

#include <string.h>

void machine_harm(Machine *m, Harm harm) {
    if (m->harm != HARM_NONE) return;
    m->harm = harm;
    m->harm_stmt = m->stmt;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static int32_t cut(Machine *m, int64_t value) {
    if (m->deciding > 0 && value != (int32_t)value) m->wrapped = true;
    return (int32_t)(uint32_t)(uint64_t)value;
}

/* A quotient by 0: as the hardware computes it, or as a subscript may find it */
static int32_t by_zero(Machine *m, int32_t plain) {
    m->by_zero = true, m->divided = true;
    return m->any != 0 ? m->any : plain;
}

/* Bits of `above` and `word`; all of `word` are shifted out from 32 on. */
static uint32_t shifted_right(int32_t above, uint32_t word, uint32_t by) {
    uint64_t both = (uint64_t)(uint32_t)above << 32 | word;
    return (uint32_t)(both >> (by < 32 ? by : 32));
}

static int32_t operate(Machine *m, Op op, int32_t x, int32_t y) {
    int64_t a = x, b = y;
    switch (op) {
    case DO_ADD: return cut(m, a + b);
    case DO_SUB: return cut(m, a - b);
    case DO_MUL: return cut(m, a * b);
    case DO_DIV: return b == 0 ? by_zero(m, -1) : cut(m, a / b);
    case DO_MOD: return b == 0 ? by_zero(m, x) : cut(m, a % b);
    case DO_MIN: return a < b ? x : y;
    case DO_MAX: return a > b ? x : y;
    case DO_CEIL: return b == 0 ? 0 : cut(m, a / b + (a % b > 0)); /* b > 0 */
    case DO_EQ: return a == b;
    case DO_NE: return a != b;
    case DO_LT: return a < b;
    case DO_LE: return a <= b;
    case DO_GT: return a > b;
    case DO_GE: return a >= b;
    case DO_AND: return a && b;
    case DO_OR: return a || b;
    case DO_ABS: return cut(m, a < 0 ? -a : a);
    case DO_UNSIGNED_DIV: return b == 0 ? by_zero(m, -1) : (int32_t)((uint32_t)x / (uint32_t)y);
    case DO_UNSIGNED_MOD: return b == 0 ? by_zero(m, x) : (int32_t)((uint32_t)x % (uint32_t)y);
    case DO_UNSIGNED_LT: return (uint32_t)x < (uint32_t)y;
    case DO_SCALED: return b == 0 ? 0 : x;
    case DO_BYTE: return (int8_t)(uint8_t)x;
    case DO_BIT_AND: return x & y;
    case DO_BIT_OR: return x | y;
    case DO_BIT_XOR: return x ^ y;
    case DO_SHIFT_LEFT: return cut(m, a * (INT64_C(1) << y)); /* a product for the compiler */
    case DO_SHIFT_RIGHT: return (int32_t)shifted_right(x < 0 ? -1 : 0, (uint32_t)x, (uint32_t)y);
    case DO_UNSIGNED_SHIFT: return (int32_t)shifted_right(0, (uint32_t)x, (uint32_t)y);
    case DO_POPC: return __builtin_popcount((uint32_t)x);
    case DO_CLZ: return x == 0 ? 32 : __builtin_clz((uint32_t)x);
    case DO_HIGH_PRODUCT: return (int32_t)((uint64_t)(a * b) >> 32);
    case DO_NOT: return a == 0;
    case DO_NEGATE: return cut(m, -a);
    case DO_FMA:
    case DO_EXACT_DIV:
    case DO_EXACT_MUL:
    case DO_RCP:
    case DO_EXP:
    case DO_SQRT:
    case DO_TO_REAL:
    case DO_TO_INT:
    case DO_HALF:
    case DO_E4M3:
    case DO_SINE:
    case DO_POWER:
    case OPS: break;
    }
    return 0;
}

static Value real_value(Real r, bool pad) { return (Value){.real = true, .r = r, .pad = pad}; }
static bool compares(Op op) { return op >= DO_EQ && op <= DO_GE; }

/* Out of range, or on both sides of a whole number: unknown */
static int32_t whole(Machine *m, Real r) {
    r = real_stored(r, false);
    bool inside = r.lo > -2147483648.0 && r.hi < 2147483648.0;
    if (!inside || (int32_t)r.lo != (int32_t)r.hi) m->vague = true;
    return inside ? (int32_t)r.x : 0;
}

/* An operation of which an operand or the result is a float */
static Value operate_reals(Machine *m, Process *p, const Expr *expr, Value a, Value b) {
    bool sure, pad = a.pad || b.pad;
    if (expr->op == DO_TO_REAL)
        return real_value(a.real ? a.r : real_point((double)(float)a.v), pad);
    if (expr->op == DO_TO_INT) {
        int32_t v = whole(m, a.r);
        return (Value){.v = v, .w = v, .pad = pad};
    }
    if (compares(expr->op)) {
        bool holds = real_compare(expr->op, a.r, b.r, &sure);
        m->vague |= !sure;
        return (Value){.v = holds, .w = holds, .pad = pad};
    }
    Value c = {0};
    if (expr->c != NULL) c = evaluate_expr(m, p, expr->c);
    return real_value(real_operate(expr->op, a.r, b.r, c.r), pad || c.pad);
}

static Value decided(Machine *m, Process *p, const Expr *expr) {
    m->deciding++;
    Value value = evaluate_expr(m, p, expr);
    m->deciding--;
    return value;
}

int32_t decide(Machine *m, Process *p, const Expr *expr) { return decided(m, p, expr).v; }

/* ---- elements -------------------------------------------------------------------------------- */

#define OUTSIDE (-1)
#define BEYOND  (-2) /* outside along the last axis, the summed one of matrices */

static int64_t tensor_at(Machine *m, Process *p, const Expr *expr) {
    const Tensor *tensor = &m->program->tensors[expr->of];
    int64_t at = 0;
    bool inside = true, last = true;
    for (int s = 0; s < expr->rank; s++) {
        int64_t extent = tensor_extent(tensor, s, m->sizes), sub = decide(m, p, expr->subs[s]);
        last = sub >= 0 && sub < extent;
        inside &= last;
        at = at * extent + sub;
    }
    return inside ? at : last ? OUTSIDE : BEYOND;
}

static bool ordered(const Process *p, int other, uint32_t clock) {
    return other == p->number || p->clock[other] >= clock;
}

static Value read_tensor(Machine *m, Process *p, const Expr *expr) {
    int64_t at = tensor_at(m, p, expr);
    bool operand = m->program->tensors[expr->of].rank > 1; /* others have no summed axis */
    if (at < 0)
        return (Value){.pad = (at == BEYOND && operand) || !m->program->matrix,
                       .real = m->program->tensors[expr->of].type >= TYPE_REAL};
    GlobalCell *cell = &m->tensors[expr->of][at];
    bool floats = m->program->tensors[expr->of].type >= TYPE_REAL;
    if (m->program->tensors[expr->of].mode == TENSOR_IN)
        return (Value){.v = cell->v,
                       .w = cell->w,
                       .real = floats,
                       .r = cell->r,
                       .element = m->program->named && expr_mentions(expr, X_INDEX, -1)};
    if (cell->written && (cell->tile != p->tile || !ordered(p, cell->writer, cell->clock)))
        machine_harm(m, HARM_RACE);
    cell->reader_tile = cell->reader_tile == -1 || cell->reader_tile == p->tile ? (int)p->tile : -2;
    cell->reader = p->number;
    cell->reader_clock = p->clock[p->number];
    return (Value){.v = cell->v, .w = cell->w, .real = floats, .r = cell->r};
}

/* True if each tile that wrote the element stored the same value in it, by the same statement */
bool cell_again(const GlobalCell *cell) {
    return !cell->again || (cell->left.v == cell->v && cell->left.w == cell->w);
}

/* A number becomes a float where one is stored */
static Value converted(Value value, Type type) {
    if (value.real || type < TYPE_REAL) return value;
    return real_value(real_point((double)(float)value.v), value.pad);
}

static void write_tensor(Machine *m, Process *p, const Expr *expr, char op, Value value) {
    int64_t at = tensor_at(m, p, expr);
    if (at < 0) return;
    value = converted(value, m->program->tensors[expr->of].type);
    GlobalCell *cell = &m->tensors[expr->of][at];
    if (cell->stamp == m->stamp) machine_harm(m, HARM_THREADS);
    bool other = cell->written && cell->tile != p->tile;
    if (other && (op != '=' || cell->stmt != m->stmt || !cell_again(cell)))
        machine_harm(m, HARM_RACE);
    if (other) cell->left = (Left){cell->v, cell->w}, cell->again = true;
    if (cell->written && !other && !ordered(p, cell->writer, cell->clock))
        machine_harm(m, HARM_RACE);
    if (cell->reader_tile == -2 ||
        (cell->reader_tile >= 0 &&
         (cell->reader_tile != p->tile || !ordered(p, cell->reader, cell->reader_clock))))
        machine_harm(m, HARM_RACE);
    cell->stamp = m->stamp;
    cell->stmt = m->stmt;
    cell->written = true;
    cell->tile = (int)p->tile;
    cell->writer = p->number;
    cell->clock = p->clock[p->number];
    bool half = m->program->tensors[expr->of].type == TYPE_HALF;
    if (value.real)
        cell->r = real_stored(
            op == '=' ? value.r : real_operate(DO_ADD, cell->r, value.r, (Real){0}), half);
    int32_t old = op == '=' ? 0 : cell->v, old_w = op == '=' ? 0 : cell->w;
    cell->v = (int32_t)((uint32_t)old + (uint32_t)value.v);
    cell->w = (int32_t)((uint32_t)old_w + (uint32_t)value.w);
}

/* True if the subscript is inside, whatever numbers divisions by zero give in it */
static bool is_inside(Machine *m, Process *p, const Expr *expr, int extent, int32_t *sub) {
    static const int32_t any[] = {-1, INT32_MAX};
    m->by_zero = false;
    *sub = decide(m, p, expr);
    bool inside = *sub >= 0 && *sub < extent;
    for (size_t i = 0; i < COUNT_OF(any) && inside && m->by_zero; i++) {
        m->any = any[i];
        int32_t other = decide(m, p, expr);
        inside = other >= 0 && other < extent;
    }
    m->any = 0;
    return inside;
}

/* Index of an element in its tile; -1, and a harm: outside */
static int64_t tile_at(Machine *m, Process *p, const Expr *expr, const int *extents) {
    int64_t at = 0;
    for (int s = 0; s < expr->rank; s++) {
        int32_t sub;
        if (!is_inside(m, p, expr->subs[s], extents[s], &sub)) {
            machine_harm(m, HARM_OUTSIDE);
            return -1;
        }
        at = at * extents[s] + sub;
    }
    return at;
}

Cell *cell_at(Machine *m, Process *p, const Expr *expr, bool write) {
    const Local *local = &m->program->locals[expr->of];
    if (expr->kind == X_TILE) {
        int64_t at = tile_at(m, p, expr, local->extents);
        if (at < 0) return NULL;
        if (p->tiles[expr->of] == NULL) {
            machine_harm(m, HARM_UNWRITTEN);
            return NULL;
        }
        return &p->tiles[expr->of][at];
    }
    const Held *held = &p->handles[expr->of];
    if (!held->held || held->produce != write) {
        if (!held->held || write) {
            machine_harm(m, held->held ? HARM_RACE : HARM_LINEAR);
            return NULL;
        }
    }
    if (held->arrived) machine_harm(m, HARM_ARRIVALS);
    int64_t at = tile_at(m, p, expr, m->program->pipes[held->pipe].fields[expr->field].extents);
    return at < 0 ? NULL : &slot_of(m, held->pipe, held->number)->cells[expr->field][at];
}

static Value without_padding(Value value, bool without) {
    value.pad &= !without;
    return value;
}

/* The program names the element by another subscript than an index. */
static bool is_named(const Expr *expr) {
    for (int s = 0; s < expr->rank; s++)
        if (expr->subs[s]->kind != X_INDEX) return true;
    return false;
}

/* What the program computed from zeros beyond the edge alone, and then names, is to be zero. */
static Value intended(const Machine *m, const Expr *expr, Value value) {
    bool named = m->program->named, beyond = named && m->inside && value.pad && !value.element;
    if (beyond && is_named(expr)) value.v = value.w = 0;
    /* the same for all elements that the statement computes: it makes none of them an element, or
     * padding */
    if (named && !expr_mentions(expr, X_INDEX, -1)) value.element = value.pad = false;
    return value;
}

static Value read_cell(Machine *m, Process *p, const Expr *expr) {
    const Cell *cell = cell_at(m, p, expr, false);
    if (cell == NULL) return (Value){.v = POISON, .w = POISON};
    bool own = expr->kind == X_FIELD && p->handles[expr->of].produce;
    if (!cell->set) machine_harm(m, HARM_UNWRITTEN);
    if (expr->kind == X_FIELD) {
        m->found.padding |= cell->pad && cell->copied;
        m->found.elements |= !cell->pad;
    }
    if (own && (cell->copied || cell->writer != p->number)) machine_harm(m, HARM_RACE);
    bool element = cell->element || (expr->kind == X_FIELD && !cell->pad);
    Value value = {cell->v, cell->w, cell->pad, cell->real, cell->r, element};
    return intended(m, expr,
                    without_padding(value, expr->kind == X_TILE && expr->of == m->updated));
}

/* The index of the result, of a scan; -1: it is none */
static int scanned_along(const Expr *expr) {
    const Expr *select = expr->a, *condition = select->kind == X_SELECT ? select->c : NULL;
    if (condition == NULL || condition->kind != X_BINARY || condition->a->kind != X_INDEX ||
        condition->a->of != expr->of || condition->b->kind != X_INDEX)
        return -1;
    return condition->b->of;
}

/* A scan belongs to no element where its own element is padding. */
static bool stands_on_padding(Machine *m, Process *p, const Expr *expr) {
    int along = scanned_along(expr);
    if (along < 0) return false;
    Found found = m->found;
    p->index[expr->of] = p->index[along];
    bool pad = evaluate_expr(m, p, expr->a->a).pad;
    m->found = found;
    return pad;
}

/* The terms in one order, or in any if it does not matter; NaN is the result of a NaN */
static Real combine(Op op, Real sum, Real term, double *magnitude) {
    if (op == DO_ADD) return real_add_terms(sum, term, magnitude);
    if (real_is_nan(sum) || real_is_nan(term)) return real_is_nan(sum) ? sum : term;
    return real_operate(op, sum, term, (Real){0});
}

/* Over all terms, or over those that are not padding; *count: how many they are */
static Value reduce_terms(Machine *m, Process *p, const Expr *expr, bool inside, int *count) {
    int extents[MAX_INDEXES] = {0};
    int32_t none = expr->op == DO_ADD ? 0 : expr->op == DO_MAX ? INT32_MIN : INT32_MAX;
    double magnitude = 0;
    Value out = {.v = none};
    find_extents(m->program, expr->a, extents);
    *count = 0;
    for (int32_t x = 0; x < extents[expr->of] && m->harm == HARM_NONE; x++) {
        p->index[expr->of] = x;
        Value term = evaluate_expr(m, p, expr->a);
        if (inside && term.pad) continue;
        if ((*count)++ == 0)
            out = term;
        else if (term.real)
            out.r = combine(expr->op, out.r, term.r, &magnitude);
        else
            out.v = operate(m, expr->op, out.v, term.v);
        if (*count == 1 && term.real && expr->op == DO_ADD)
            out.r = combine(DO_ADD, (Real){0}, term.r, &magnitude);
        out.pad &= term.pad;
    }
    if (out.real && expr->op == DO_ADD) out.r = real_of_sum(out.r, magnitude);
    out.w = out.v;
    return out;
}

/* The padding of a tile that is all padding belongs to no element of a result. */
static Value reduce_tail(Machine *m, Process *p, const Expr *expr) {
    int count = 0;
    int32_t outer = p->index[expr->of];
    Value out = reduce_terms(m, p, expr, m->inside, &count);
    if (count == 0) out = reduce_terms(m, p, expr, false, &count);
    p->index[expr->of] = outer;
    return out;
}

/* `w` and `pad`: without the elements that are padding, unless all are */
static Value reduce(Machine *m, Process *p, const Expr *expr) {
    if (m->program->tails) return reduce_tail(m, p, expr);
    int extents[MAX_INDEXES] = {0};
    int32_t outer = p->index[expr->of], none = expr->op == DO_ADD   ? 0
                                               : expr->op == DO_MAX ? INT32_MIN
                                                                    : INT32_MAX;
    Value out = {.v = none, .w = none, .pad = true};
    Found outer_found = m->found;
    m->found = (Found){0};
    int32_t elements = none; /* without padding */
    find_extents(m->program, expr->a, extents);
    for (int32_t x = 0; x < extents[expr->of] && m->harm == HARM_NONE; x++) {
        p->index[expr->of] = x;
        Value term = evaluate_expr(m, p, expr->a);
        out.v = operate(m, expr->op, out.v, term.v);
        if (term.pad) continue;
        elements = operate(m, expr->op, elements, term.v);
        out.w = operate(m, expr->op, out.w, term.w);
        out.pad = false;
    }
    if (out.pad) out.w = out.v;
    /* The edge crosses the reduction. If every term is padding, what makes it so does not: a
     * condition that is the same for all terms read an element outside of its own tensor. */
    bool along = m->found.padding && m->found.elements && !out.pad;
    if (along && out.v != elements) machine_harm(m, HARM_PADDING);
    if (out.v != out.w) padded_note(m);
    m->found.padding |= outer_found.padding, m->found.elements |= outer_found.elements;
    out.pad |= stands_on_padding(m, p, expr);
    p->index[expr->of] = outer;
    return out;
}

Value evaluate_expr(Machine *m, Process *p, const Expr *expr) {
    int64_t plain = 0;
    switch (expr->kind) {
    case X_NUMBER:
    case X_TRUTH: plain = expr->number; break;
    case X_REAL: return real_value(real_point(expr->real), false);
    case X_PARAM: return real_value(real_point(m->sizes->reals[expr->of]), false);
    case X_SYMBOL: plain = m->sizes->values[expr->of]; break;
    case X_INDEX: plain = p->index[expr->of]; break;
    case X_RANK: plain = p->instance; break;
    case X_LANE: plain = p->lane; break;
    case X_LOCAL:
        if (!p->set[expr->of]) machine_harm(m, HARM_UNWRITTEN);
        return without_padding(p->env[expr->of], expr->of == m->updated);
    case X_BINARY: {
        Value a = evaluate_expr(m, p, expr->a);
        if ((expr->op == DO_AND && a.v == 0) || (expr->op == DO_OR && a.v != 0)) {
            /* the other operand may decide as well, by elements alone */
            if (a.pad && m->program->edges) {
                Value other = evaluate_expr(m, p, expr->b);
                a.pad = other.pad || (other.v != 0) != (a.v != 0);
                a.w = operate(m, expr->op, a.w, other.w);
            }
            return a;
        }
        Value b = {0};
        if (expr->b != NULL) b = evaluate_expr(m, p, expr->b);
        if (a.real || expr->op == DO_TO_REAL) return operate_reals(m, p, expr, a, b);
        bool alone = (expr->op == DO_AND && b.v == 0) || (expr->op == DO_OR && b.v != 0);
        return (Value){.v = operate(m, expr->op, a.v, b.v),
                       .w = operate(m, expr->op, a.w, b.w),
                       .pad = (a.pad && !alone) || b.pad, /* alone: `b` alone decides */
                       .element =
                           (m->program->named || !compares(expr->op)) && (a.element || b.element)};
    }
    case X_SELECT: {
        Value truth = decided(m, p, expr->c);
        Value value = evaluate_expr(m, p, truth.v != 0 ? expr->a : expr->b);
        if (m->program->edges && !truth.v != !truth.w) /* the intended value is that of this arm */
            value.w = evaluate_expr(m, p, truth.w != 0 ? expr->a : expr->b).w;
        value.pad |= truth.pad;
        value.element |= m->program->named && truth.element;
        return value;
    }
    case X_REDUCE: return reduce(m, p, expr);
    case X_TENSOR: return read_tensor(m, p, expr);
    case X_FIELD:
    case X_TILE: return read_cell(m, p, expr);
    }
    return (Value){.v = (int32_t)plain, .w = (int32_t)plain};
}

/* ---- statements ------------------------------------------------------------------------------ */

/* The extents of indexes: those of the tile dimensions that are subscripted by the bare index */
void find_extents(const Program *program, const Expr *expr, int *extents) {
    if (expr == NULL) return;
    if (expr->kind == X_REDUCE) { /* its index is its own */
        int outer = extents[expr->of];
        find_extents(program, expr->a, extents);
        extents[expr->of] = outer;
        return;
    }
    const int *of = NULL;
    if (expr->kind == X_TILE) of = program->locals[expr->of].extents;
    if (expr->kind == X_FIELD)
        of = program->pipes[program->locals[expr->of].pipe].fields[expr->field].extents;
    for (int s = 0; s < expr->rank; s++) {
        if (of != NULL && expr->subs[s]->kind == X_INDEX) extents[expr->subs[s]->of] = of[s];
        find_extents(program, expr->subs[s], extents);
    }
    find_extents(program, expr->a, extents);
    find_extents(program, expr->b, extents);
    find_extents(program, expr->c, extents);
}

static bool is_copy(const Stmt *stmt) {
    return stmt->target->kind == X_FIELD && stmt->value->kind == X_TENSOR && stmt->op == '=' &&
           !stmt->by_lanes;
}

static Value narrowed(Value value) {
    return (Value){.v = (int8_t)(uint8_t)(uint32_t)value.v,
                   .w = (int8_t)(uint8_t)(uint32_t)value.w,
                   .pad = value.pad};
}

/* A sum must not include padding. With an element added, padding is an element; with padding added,
 * an element is one, and a number of the program is padding. */
static Value accumulated(Machine *m, const Cell *cell, const Stmt *stmt, Value by) {
    Op op = stmt->op == '+' ? DO_ADD : stmt->op == '-' ? DO_SUB : DO_MUL;
    if (by.real) return real_value(real_operate(op, cell->r, by.r, (Real){0}), cell->pad || by.pad);
    bool element =
        m->program->edges && op != DO_MUL && cell->pad && !by.pad &&
        (expr_mentions(stmt->value, X_FIELD, -1) || expr_mentions(stmt->value, X_TILE, -1));
    bool number = m->program->edges && op != DO_MUL && by.pad && !cell->element;
    Value out = {.v = operate(m, op, cell->v, by.v),
                 .pad = number || (cell->pad && !element),
                 .element = cell->element || by.element};
    out.w = by.pad && op != DO_MUL ? cell->w : operate(m, op, element ? 0 : cell->w, by.w);
    return out;
}

static void write_cell(Machine *m, Process *p, const Stmt *stmt, Value value) {
    const Expr *target = stmt->target;
    Cell *cell = cell_at(m, p, target, true);
    if (cell == NULL) return;
    bool field = target->kind == X_FIELD, copy = is_copy(stmt);
    value = converted(value, expr_type(m->program, target));
    if (cell->stamp == m->stamp) machine_harm(m, HARM_THREADS);
    if (stmt->op != '=' && !cell->set) machine_harm(m, HARM_UNWRITTEN);
    if (field && cell->set && (cell->writer != p->number || cell->copied || copy))
        machine_harm(m, HARM_RACE);
    if (stmt->op != '=') value = accumulated(m, cell, stmt, value);
    if (is_tiny(m->program, target)) value = narrowed(value);
    bool half = value.real && expr_type(m->program, target) == TYPE_HALF;
    *cell = (Cell){.v = value.v,
                   .w = value.w,
                   .real = value.real,
                   .set = true,
                   .pad = value.pad,
                   .element = value.element,
                   .copied = copy,
                   .writer = p->number,
                   .stamp = m->stamp};
    if (value.real) cell->r = real_stored(value.r, half);
    if (copy) {
        const Held *held = &p->handles[target->of];
        const Field *row = &m->program->pipes[held->pipe].fields[target->field];
        int bytes = row->tiny ? 1 : row->type == TYPE_HALF ? 2 : 4;
        slot_of(m, held->pipe, held->number)->bytes += bytes;
    }
}

/* Reads everything before it writes anything. */
void run_assignment(Machine *m, Process *p, const Stmt *stmt) {
    int extents[MAX_INDEXES] = {0};
    find_extents(m->program, stmt->target, extents);
    find_extents(m->program, stmt->value, extents);
    if (stmt->condition != NULL) find_extents(m->program, stmt->condition, extents);
    if (extents[0] == 0) extents[0] = stmt->ranged; /* only tensors have the index */
    int64_t count = 1, at = 0;
    for (int d = 0; d < MAX_INDEXES; d++) count *= extents[d] > 0 ? extents[d] : 1;
    Value *values = NEW_ARRAY(m->arena, Value, count);
    bool *stored = NEW_ARRAY(m->arena, bool, count);
    m->stamp++;
    m->steps += count / 8;
    for (int write = 0; write < 2; write++) {
        at = 0;
        for (int32_t i = 0; i < (extents[0] ? extents[0] : 1); i++)
            for (int32_t j = 0; j < (extents[1] ? extents[1] : 1); j++)
                for (int32_t x = 0; x < (extents[2] ? extents[2] : 1) && m->harm == HARM_NONE;
                     x++, at++) {
                    p->index[0] = i;
                    p->index[1] = j;
                    p->index[2] = x;
                    if (!write)
                        stored[at] = stmt->condition == NULL || decide(m, p, stmt->condition) != 0;
                    if (!stored[at]) continue;
                    if (!write) {
                        values[at] = evaluate_expr(m, p, stmt->value);
                        if (values[at].pad) padded_update(m, p, stmt, values[at]);
                    }
                    if (write && stmt->target->kind == X_TENSOR)
                        write_tensor(m, p, stmt->target, stmt->op, values[at]);
                    else if (write)
                        write_cell(m, p, stmt, values[at]);
                }
    }
}

/* An operand's elements, row by row; `rows` is the index of its rows */
static Value *operand_values(Machine *m, Process *p, const Expr *expr, int rows,
                             const int *extents) {
    Value *values = NEW_ARRAY(m->arena, Value, extents[rows] * extents[2]);
    for (int32_t row = 0; row < extents[rows]; row++)
        for (int32_t x = 0; x < extents[2]; x++) {
            p->index[rows] = row;
            p->index[2] = x;
            values[row * extents[2] + x] = evaluate_expr(m, p, expr);
        }
    return values;
}

/* Without the terms that are padded, unless all are; in `f32`, in any order */
static Real sum_products(const Machine *m, const Value *left, const Value *right, int count,
                         const Real *before) {
    Real sum = {0};
    double magnitude = 0;
    int terms = 0;
    for (int pass = 0; pass < 2 && terms == 0; pass++)
        for (int x = 0; x < count; x++) {
            bool pad = left[x].pad || right[x].pad;
            if (m->inside && pass == 0 && pad) continue;
            Real term = real_operate(DO_EXACT_MUL, left[x].r, right[x].r, (Real){0});
            sum = real_add_terms(sum, term, &magnitude);
            terms++;
        }
    if (before != NULL) sum = real_add_terms(sum, *before, &magnitude);
    return real_of_sum(sum, magnitude);
}

void run_contraction(Machine *m, Process *p, const Stmt *stmt) {
    int extents[MAX_INDEXES] = {0};
    find_extents(m->program, stmt->target, extents);
    find_extents(m->program, stmt->left, extents);
    find_extents(m->program, stmt->right, extents);
    m->steps += 1000;
    const Value *left = operand_values(m, p, stmt->left, 0, extents),
                *right = operand_values(m, p, stmt->right, 1, extents);
    for (int32_t i = 0; i < extents[0]; i++)
        for (int32_t j = 0; j < extents[1] && m->harm == HARM_NONE; j++) {
            p->index[0] = i;
            p->index[1] = j;
            Cell *cell = cell_at(m, p, stmt->target, true);
            if (cell == NULL) return;
            if (stmt->op == '+' && !cell->set) machine_harm(m, HARM_UNWRITTEN);
            if (left->real) {
                Real r = sum_products(m, left + i * extents[2], right + j * extents[2], extents[2],
                                      stmt->op == '+' ? &cell->r : NULL);
                *cell = (Cell){.real = true, .r = r, .set = true, .writer = p->number};
                continue;
            }
            uint32_t v = stmt->op == '+' ? (uint32_t)cell->v : 0,
                     w = stmt->op == '+' ? (uint32_t)cell->w : 0;
            for (int32_t x = 0; x < extents[2]; x++) {
                Value a = left[i * extents[2] + x], b = right[j * extents[2] + x];
                v += (uint32_t)(a.v * b.v);
                if (!a.pad && !b.pad) w += (uint32_t)(a.w * b.w);
            }
            *cell = (Cell){.v = (int32_t)v, .w = (int32_t)w, .set = true, .writer = p->number};
        }
}
