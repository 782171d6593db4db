/* Intervals of variables; see intervals.h. A rule of the solver: a state is an interval for each
 * variable that is followed, joins are hulls. Loops of few constant iterations are followed one
 * by one; at the heads of others a growing end is widened to the next constant of the role, so
 * that the fixed point is reached after a few rounds. */
#include "flow/intervals.h"
#include "flow/solve.h"
#include "flow/values.h"
#include "prog/eval.h"

#include <stdlib.h>
#include <string.h>

/* most iterations of nested loops that are followed, multiplied */
#define TRIPS_MOST 64
#define GROWS_MOST 2    /* rounds at a head without widening */
#define NODES_MOST 2000 /* of one expression */
/* most rows times variables: above that nothing is known */
#define RECORDS_MOST 4000000

typedef struct Interval { /* least > most: empty */
    int64_t least, most;
} Interval;

struct Intervals {
    Arena *arena;
    const FlowCode *code;
    int count;
    int *slots;     /* by local: its index in a state, -1: not followed */
    int *locals;    /* the inverse */
    int *grown;     /* by region: number of rounds in which its head grew */
    Interval *rows; /* by row and slot: before the row, over all paths */
    /* of the role's expressions, ascending: limits for widening */
    VEC(int64_t) constants;
    int nodes; /* remaining for the expression under evaluation */
};

static const Interval nothing = {1, 0};

static bool is_nothing(Interval a) { return a.least > a.most; }

static Interval hull(Interval a, Interval b) {
    if (is_nothing(a) || is_nothing(b)) return is_nothing(a) ? b : a;
    return (Interval){a.least < b.least ? a.least : b.least, a.most > b.most ? a.most : b.most};
}

static Interval crossed(Interval a, Interval b) {
    return (Interval){a.least > b.least ? a.least : b.least, a.most < b.most ? a.most : b.most};
}

/* ---- types ----------------------------------------------------------------------------------- */

static bool is_integer(Element type) {
    ElementKind kind = element_rows[type].kind;
    return kind == ELEMENT_SIGNED || kind == ELEMENT_UNSIGNED || kind == ELEMENT_BOOLEAN;
}

/* 32 bits: sums of those are exact in 64. */
static bool has_interval(Element type) { return is_integer(type) && element_rows[type].bytes <= 4; }

static Interval of_type(Element type) {
    if (type == E_BOOL) return (Interval){0, 1};
    int bits = 8 * element_rows[type].bytes;
    if (element_rows[type].kind == ELEMENT_UNSIGNED) return (Interval){0, (INT64_C(1) << bits) - 1};
    int64_t past = INT64_C(1) << (bits - 1);
    return (Interval){-past, past - 1};
}

/* A value that exceeds the type wraps to any value of it. */
static Interval fitted(Element type, int64_t least, int64_t most) {
    Interval all = of_type(type);
    return least < all.least || most > all.most ? all : (Interval){least, most};
}

/* ---- expressions ----------------------------------------------------------------------------- */

static Interval of(struct Intervals *v, const Interval *state, const Expr *expr);

static Interval product(Element type, Interval a, Interval b) {
    const int64_t ends[][2] = {
        {a.least, b.least}, {a.least, b.most}, {a.most, b.least}, {a.most, b.most}};
    Interval all = nothing;
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        int64_t value;
        if (__builtin_mul_overflow(ends[i][0], ends[i][1], &value)) return of_type(type);
        all = hull(all, (Interval){value, value});
    }
    return fitted(type, all.least, all.most);
}

static Interval rest(Interval a, int64_t by) {
    int64_t most = a.most < by - 1 ? a.most : by - 1;
    if (a.least >= 0) return (Interval){0, most};
    return (Interval){1 - by, most < 0 ? 0 : most};
}

static Interval of_binary(struct Intervals *v, const Interval *state, const Expr *expr) {
    Interval a = of(v, state, expr->binary.left), b = of(v, state, expr->binary.right);
    Element type = expr->type;
    bool by_constant = b.least == b.most && b.least > 0;
    if (is_nothing(a) || is_nothing(b)) return nothing;
    switch (expr->binary.op) {
    case OP_ADD: return fitted(type, a.least + b.least, a.most + b.most);
    case OP_SUB: return fitted(type, a.least - b.most, a.most - b.least);
    case OP_MUL: return product(type, a, b);
    case OP_DIV:
        if (by_constant) return (Interval){a.least / b.least, a.most / b.least};
        break;
    case OP_MOD:
        if (by_constant) return rest(a, b.least);
        break;
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
    case OP_AND:
    case OP_OR: break;
    }
    return of_type(type);
}

/* With a mask that is not negative, and by a constant to the right */
static Interval of_bits(struct Intervals *v, const Interval *state, const Expr *expr) {
    Expr *const *args = expr->call.args;
    int64_t by;
    if (expr->call.which == IN_popc || expr->call.which == IN_clz) return (Interval){0, 64};
    if (expr->call.count < 2 || !expr_constant(args[1], &by) || by < 0) return of_type(expr->type);
    if (expr->call.which == IN_bit_and) return (Interval){0, by};
    if (expr->call.which != IN_shr || by > 63) return of_type(expr->type);
    Interval a = of(v, state, args[0]);
    return is_nothing(a) ? a : (Interval){a.least >> by, a.most >> by};
}

static Interval of_call(struct Intervals *v, const Interval *state, const Expr *expr) {
    if (intrinsic_of_bits(expr->call.which)) return of_bits(v, state, expr);
    bool max = expr->call.which == IN_max;
    if (!max && expr->call.which != IN_min) return of_type(expr->type);
    Interval a = of(v, state, expr->call.args[0]), b = of(v, state, expr->call.args[1]);
    if (is_nothing(a) || is_nothing(b)) return nothing;
    Interval all = hull(a, b), less = {all.least, a.most < b.most ? a.most : b.most};
    Interval more = {a.least > b.least ? a.least : b.least, all.most};
    return max ? more : less;
}

static Interval of_loop(struct Intervals *v, const Local *local, int index) {
    for (size_t r = 0; r < v->code->regions.count; r++) {
        const Region *region = &v->code->regions.items[r];
        int64_t lo, hi;
        if (region->kind != REGION_FOR || region->var != index) continue;
        if (!expr_constant(region->lo, &lo)) break;
        return (Interval){lo, expr_constant(region->hi, &hi) ? hi - 1 : of_type(local->type).most};
    }
    return of_type(local->type);
}

static Interval of_local(struct Intervals *v, const Interval *state, const Expr *expr) {
    const Local *local = &v->code->role->locals.items[expr->index];
    if (v->slots[expr->index] >= 0) return state[v->slots[expr->index]];
    if (local->kind == LOCAL_AXIS) return (Interval){0, EXTENT_MOST};
    if (local->kind == LOCAL_LOOP) return of_loop(v, local, expr->index);
    return of_type(local->type);
}

static Interval of_select(struct Intervals *v, const Interval *state, const Expr *expr) {
    return hull(of(v, state, expr->select.then), of(v, state, expr->select.otherwise));
}

static Interval of_cast(struct Intervals *v, const Interval *state, const Expr *expr) {
    if (!has_interval(expr->cast->type)) return of_type(expr->type);
    Interval a = of(v, state, expr->cast);
    return is_nothing(a) ? a : fitted(expr->type, a.least, a.most);
}

static Interval of(struct Intervals *v, const Interval *state, const Expr *expr) {
    if (!has_interval(expr->type)) return (Interval){INT64_MIN, INT64_MAX};
    if (--v->nodes < 0) return of_type(expr->type);
    switch (expr->kind) {
    case X_CONST: return (Interval){expr->constant.integer, expr->constant.integer};
    case X_SYMBOL:
        if (v->code->prog->symbols.items[expr->index].is_extent) return (Interval){0, EXTENT_MOST};
        break;
    case X_LOCAL: return of_local(v, state, expr);
    case X_BINARY: return of_binary(v, state, expr);
    case X_SELECT: return of_select(v, state, expr);
    case X_CALL: return of_call(v, state, expr);
    case X_CAST: return of_cast(v, state, expr);
    case X_UNARY: {
        Interval a = of(v, state, expr->unary.operand);
        if (expr->unary.op == OP_NEG && !is_nothing(a))
            return fitted(expr->type, -a.most, -a.least);
        break;
    }
    case X_POISON:
    case X_PARAM:
    case X_AXIS:
    case X_RANK:
    case X_INDEX:
    case X_READ:
    case X_REDUCE:
    case X_SCAN: break;
    }
    return of_type(expr->type);
}

static Interval evaluate(struct Intervals *v, const Interval *state, const Expr *expr) {
    v->nodes = NODES_MOST;
    return of(v, state, expr);
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* Values of a variable for which the comparison with some value of the interval holds */
static Interval compared(BinaryOp op, Interval with, Interval all) {
    if (is_nothing(with)) return nothing;
    switch (op) {
    case OP_EQ: return with;
    case OP_LT: return (Interval){all.least, with.most - 1};
    case OP_LE: return (Interval){all.least, with.most};
    case OP_GT: return (Interval){with.least + 1, all.most};
    case OP_GE: return (Interval){with.least, all.most};
    case OP_NE:
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_MOD:
    case OP_AND:
    case OP_OR: break;
    }
    return all;
}

static void narrow_side(struct Intervals *v, Interval *state, const Expr *side, BinaryOp op,
                        const Expr *other) {
    int slot = side->kind == X_LOCAL ? v->slots[side->index] : -1;
    if (slot < 0) return;
    Interval with = evaluate(v, state, other);
    state[slot] = crossed(state[slot], compared(op, with, of_type(side->type)));
}

#define NESTED_MOST 64

static void narrow(struct Intervals *v, Interval *state, const Expr *condition, bool truth,
                   int depth) {
    if (depth > NESTED_MOST) return;
    if (condition->kind == X_UNARY && condition->unary.op == OP_NOT)
        narrow(v, state, condition->unary.operand, !truth, depth + 1);
    if (condition->kind != X_BINARY) return;
    const Expr *left = condition->binary.left, *right = condition->binary.right;
    BinaryOp op = condition->binary.op;
    if (op == OP_AND || op == OP_OR) {
        if ((op == OP_AND) != truth) return;
        narrow(v, state, left, truth, depth + 1);
        narrow(v, state, right, truth, depth + 1);
    } else if (op >= OP_EQ && op <= OP_GE && has_interval(left->type)) {
        if (!truth) op = comparison_negated(op);
        narrow_side(v, state, left, op, right);
        narrow_side(v, state, right, comparison_turned(op), left);
    }
}

/* ---- states ---------------------------------------------------------------------------------- */

static void *start(Flow *flow) {
    struct Intervals *v = flow->data;
    Interval *state = NEW_ARRAY(flow->arena, Interval, v->count + 1);
    for (int i = 0; i < v->count; i++)
        state[i] = of_type(v->code->role->locals.items[v->locals[i]].type);
    return state;
}

static void *copy(Flow *flow, const void *from) {
    struct Intervals *v = flow->data;
    Interval *state = NEW_ARRAY(flow->arena, Interval, v->count + 1);
    memcpy(state, from, (size_t)v->count * sizeof *state);
    return state;
}

/* Widens a growing end at the head of a loop to the next constant. */
static Interval widened(const struct Intervals *v, Interval old, Interval now, Interval all) {
    Interval out = now;
    if (now.least < old.least) out.least = all.least;
    if (now.most > old.most) out.most = all.most;
    for (size_t i = 0; i < v->constants.count; i++) {
        int64_t constant = v->constants.items[i];
        if (now.least < old.least && constant <= now.least && constant > out.least)
            out.least = constant;
        if (now.most > old.most && constant >= now.most && constant < out.most) out.most = constant;
    }
    return out;
}

static bool join(Flow *flow, void *to, const void *from, int at, int source) {
    struct Intervals *v = flow->data;
    const Row *row = &v->code->rows.items[at];
    Interval *state = to;
    const Interval *other = from;
    bool grows = false, again = row->kind == ROW_LOOP && source > at;
    bool widens = again && v->grown[row->region] >= GROWS_MOST;
    for (int i = 0; i < v->count; i++) {
        Interval old = state[i], now = hull(old, other[i]);
        if (now.least == old.least && now.most == old.most) continue;
        Interval all = of_type(v->code->role->locals.items[v->locals[i]].type);
        state[i] = widens && !is_nothing(old) ? widened(v, old, now, all) : now;
        grows = true;
    }
    if (again && grows) v->grown[row->region]++;
    return grows;
}

static void record(struct Intervals *v, int at, const Interval *state) {
    Interval *row = &v->rows[(size_t)at * (size_t)v->count];
    for (int i = 0; i < v->count; i++) row[i] = hull(row[i], state[i]);
}

static void record_row(Flow *flow, int at, void *state) {
    if (flow->last) record(flow->data, at, state);
}

static void set_row(Flow *flow, int at, void *data) {
    struct Intervals *v = flow->data;
    const Row *row = code_row(v->code, at);
    Interval *state = data;
    if (row->local >= 0 && v->slots[row->local] >= 0)
        state[v->slots[row->local]] = evaluate(v, state, row->value);
}

static void unsafe_row(Flow *flow, int at, void *data) {
    const struct Intervals *v = flow->data;
    Interval *state = data;
    for (int i = 0; i < v->count; i++)
        if (row_sets(v->code, code_row(v->code, at), v->locals[i]))
            state[i] = of_type(v->code->role->locals.items[v->locals[i]].type);
}

static void enters(Flow *flow, int region, bool truth, void *state) {
    const Expr *condition = flow->code->regions.items[region].condition;
    if (condition) narrow(flow->data, state, condition, truth, 0);
}

/* Product of the iterations of the loop and its enclosing loops that are followed; 0: not
 * followed */
static int64_t trips_followed(const FlowCode *code, int region) {
    int64_t all = 1, lo, hi;
    for (int r = region; r >= 0; r = code->regions.items[r].parent) {
        const Region *loop = &code->regions.items[r];
        if (loop->kind != REGION_FOR) continue;
        bool constant =
            !loop->where && expr_constant(loop->lo, &lo) && expr_constant(loop->hi, &hi);
        bool few = constant && hi > lo && hi - lo <= TRIPS_MOST;
        if (!few && r == region) return 0;
        if (few) all *= hi - lo;
        if (all > TRIPS_MOST) return 0;
    }
    return all;
}

static bool follows(Flow *flow, int region, const void *state) {
    (void)state;
    return trips_followed(flow->code, region) > 0;
}

static const Rule rule = {
    .name = "intervals",
    .together = true,
    .start = start,
    .copy = copy,
    .join = join,
    .on = {.every = record_row, .access = {[ACCESS_SETS] = set_row, [ACCESS_RAW] = unsafe_row}},
    .enters = enters,
    .follows = follows};

/* ---- followed variables ---------------------------------------------------------------------- */

static void find_constant(Expr *expr, void *data) {
    struct Intervals *v = data;
    if (expr->kind == X_CONST && is_integer(expr->type))
        vec_push(v->arena, &v->constants, expr->constant.integer);
}

static void find_constants(Expr *expr, void *data) {
    expr_visit(((struct Intervals *)data)->arena, expr, find_constant, data);
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

typedef struct Mention {
    const struct Intervals *v;
    bool found;
} Mention;

static void find_followed(Expr *expr, void *data) {
    Mention *mention = data;
    mention->found |= expr->kind == X_LOCAL && mention->v->slots[expr->index] >= 0;
}

static bool mentions_followed(Expr *expr, struct Intervals *v) {
    Mention mention = {v, false};
    expr_visit(v->arena, expr, find_followed, &mention);
    return mention.found;
}

static void follow(struct Intervals *v, int local) {
    if (v->slots[local] >= 0 || !has_interval(v->code->role->locals.items[local].type)) return;
    v->locals[v->count] = local;
    v->slots[local] = v->count++;
}

/* Variables that loops change, and those set from them */
static void find_followed_locals(struct Intervals *v) {
    const FlowCode *code = v->code;
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        bool variable = row->kind == ROW_SET && row->local >= 0 &&
                        code->role->locals.items[row->local].kind == LOCAL_VAR;
        if (variable && code->regions.items[row->region].loop >= 0) follow(v, row->local);
    }
    for (int before = -1; before != v->count;) {
        before = v->count;
        for (size_t at = 0; at < code->rows.count && before > 0; at++) {
            const Row *row = &code->rows.items[at];
            if (row->kind != ROW_SET || row->local < 0 || v->slots[row->local] >= 0) continue;
            if (mentions_followed(row->value, v)) follow(v, row->local);
        }
    }
}

static struct Intervals *find(Arena *arena, FlowCode *code) {
    struct Intervals *v = NEW(arena, struct Intervals);
    size_t locals = code->role->locals.count, rows = code->rows.count;
    *v = (struct Intervals){.arena = arena, .code = code};
    v->slots = NEW_ARRAY(arena, int, locals + 1);
    v->locals = NEW_ARRAY(arena, int, locals + 1);
    for (size_t i = 0; i < locals; i++) v->slots[i] = -1;
    find_followed_locals(v);
    if ((size_t)v->count * rows > RECORDS_MOST) v->count = 0;
    if (!v->count) return v;
    v->grown = NEW_ARRAY(arena, int, code->regions.count + 1);
    v->rows = NEW_ARRAY(arena, Interval, rows * (size_t)v->count + 1);
    for (size_t i = 0; i < rows * (size_t)v->count; i++) v->rows[i] = nothing;
    for (size_t at = 0; at < rows; at++) row_exprs(code, &code->rows.items[at], find_constants, v);
    if (v->constants.count > 1)
        qsort(v->constants.items, v->constants.count, sizeof *v->constants.items, ascending);
    solve(arena, code, &rule, v);
    return v;
}

/* ---- assumptions ----------------------------------------------------------------------------- */

void intervals_assume(Arena *arena, FlowCode *code, int at) {
    /* cached for all callers */
    if (!code->intervals) code->intervals = find(code->algebra->arena, code);
    const struct Intervals *v = code->intervals;
    if (!v->count) return;
    Algebra *algebra = code->algebra;
    Bindings before = values_at(arena, code, at), now = algebra->bindings;
    (void)algebra_hold(algebra, before);
    for (int i = 0; i < v->count && now.locals; i++) {
        Interval row = v->rows[(size_t)at * (size_t)v->count + (size_t)i];
        Interval all = of_type(code->role->locals.items[v->locals[i]].type);
        const Poly *value = now.locals[v->locals[i]];
        int64_t known;
        if (is_nothing(row) || !value || poly_is_constant(value, &known) ||
            poly_changes(algebra, value))
            continue;
        if (row.least > all.least)
            algebra_assume_poly(algebra, poly_offset(algebra, value, -row.least));
        if (row.most < all.most)
            algebra_assume_poly(algebra,
                                poly_sum(algebra, poly_constant(algebra, row.most), value, -1));
    }
}
