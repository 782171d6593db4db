/* Programs whose tiles are padded: loops by hand over their elements, with extremes, positions,
 * flags, counts, breaks, functions; factors that are infinite, or leave a type; masks of locals.
 * The reference runs the same program without the padding: loops over elements end with the
 * tensor, and reductions leave the other terms out. */
#include "tests/adversary/draw.h"

#include <math.h>

typedef struct Sketch {
    Program *program;
    Type type;                  /* of the elements */
    Symbol end;                 /* elements of the tensor, along the tile */
    bool rows;                  /* it has a row for each tile, of at most WIDE elements */
    int input, factors, counts; /* tensors: an element for each tile; counts: numbers */
    int handle;                 /* of the stage that the tile is a field of; -1: none */
    int tile;
    int handles; /* of further factors in field 1; -1: none */
    Stmts *out;
} Sketch;

static const Expr *n(Sketch *t, int64_t value) { return number(t->program, value); }
static const Expr *axis_of(Sketch *t) { return local_of(t->program, t->program->axes[0].local); }
static bool is_float(const Sketch *t) { return t->type != TYPE_INT; }

/* A number of the type of the elements */
static const Expr *constant(Sketch *t, double value) {
    return is_float(t) ? real(t->program, value) : n(t, (int64_t)value);
}

static const Expr *least(Sketch *t) {
    return is_float(t) ? real(t->program, often(t->program, 70) ? -INFINITY : -1e30)
                       : n(t, -2147483647);
}

/* Of a maximum, or of a minimum without elements */
static const Expr *bound(Sketch *t, bool most) {
    return most ? least(t) : unary(t->program, DO_NEGATE, least(t));
}

static const Expr *at(Sketch *t, const Expr *sub) {
    if (t->handle >= 0) return element(t->program, X_FIELD, t->handle, 0, sub, NULL, NULL);
    return element(t->program, X_TILE, t->tile, 0, sub, NULL, NULL);
}

/* The subscript in the tensor, of the position in the tile */
static const Expr *position(Sketch *t, const Expr *sub) {
    if (t->rows) return sub;
    return binary(t->program, DO_ADD, binary(t->program, DO_MUL, axis_of(t), n(t, WIDE)), sub);
}

/* How many elements of the tile are inside of the tensor */
static const Expr *count_inside(Sketch *t) {
    const Expr *left = symbol(t->program, t->end);
    if (!t->rows)
        left = binary(t->program, DO_SUB, left, binary(t->program, DO_MUL, axis_of(t), n(t, WIDE)));
    return left;
}

static int scalar_new(Sketch *t, Type type, bool is_let) {
    int local = local_new(t->program, LOCAL_SCALAR);
    t->program->locals[local].type = type;
    t->program->locals[local].is_let = is_let;
    return local;
}

static Stmt *declared(Sketch *t, int local, const Expr *value, Stmts *out) {
    Stmt *stmt = stmt_new(t->program, S_DECLARE);
    stmt->local = local;
    stmt->value = value;
    stmts_add(t->program, out, stmt);
    return stmt;
}

static void set(Sketch *t, int local, char op, const Expr *value, Stmts *out) {
    Stmt *stmt = stmt_new(t->program, S_SET);
    stmt->local = local;
    stmt->op = op;
    stmt->value = value;
    if (is_formula(value) && often(t->program, 8)) stmt->called = ++t->program->functions;
    stmts_add(t->program, out, stmt);
}

static int variable(Sketch *t, Type type, const Expr *value) {
    int local = scalar_new(t, type, false);
    declared(t, local, value, t->out);
    return local;
}

/* The value, or a name of it */
static const Expr *named(Sketch *t, const Expr *value, int percent, Stmts *out) {
    Program *program = t->program;
    if (!often(program, percent)) return value;
    Type type = expr_type(program, value);
    int local = scalar_new(t, type == TYPE_HALF ? TYPE_REAL : type, often(program, 70));
    if (type == TYPE_HALF) value = binary(program, DO_ADD, value, real(program, 0));
    if (!program->locals[local].is_let && often(program, 60)) {
        const Expr *none = type == TYPE_BOOL  ? truth(program, false)
                           : type == TYPE_INT ? n(t, 0)
                                              : real(program, 0);
        declared(t, local, none, out);
        set(t, local, '=', value, out);
        return local_of(program, local);
    }
    Stmt *stmt = declared(t, local, value, out);
    if (is_formula(value) && often(program, 30)) stmt->called = ++program->functions;
    return local_of(program, local);
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* True for the elements, of locals in several ways; sometimes wrong by one */
static const Expr *mask(Sketch *t, const Expr *sub, Stmts *before, Stmts *inside) {
    Program *program = t->program;
    int wrong = often(program, 12) ? 1 : 0, locals = program->theme == THEME_MASKS ? 75 : 20;
    const Expr *end = symbol(program, t->end);
    if (often(program, 50)) {
        const Expr *count = count_inside(t);
        if (wrong) count = binary(program, DO_ADD, count, n(t, 1));
        if (often(program, 30)) count = binary(program, DO_MIN, count, n(t, WIDE));
        count = named(t, count, locals, before);
        if (often(program, 25)) sub = named(t, sub, inside != NULL ? locals : 0, inside);
        return often(program, 50) ? binary(program, DO_LT, sub, count)
                                  : binary(program, DO_GT, count, sub);
    }
    end = named(t, end, locals, before);
    if (!t->rows) {
        const Expr *base = binary(program, DO_MUL, axis_of(t), n(t, WIDE));
        base = named(t, base, locals, before);
        sub = binary(program, DO_ADD, base, sub);
    }
    sub = named(t, sub, inside != NULL ? locals : 0, inside);
    if (wrong) return binary(program, DO_LE, sub, end);
    return often(program, 60) ? binary(program, DO_LT, sub, end)
                              : binary(program, DO_LE, binary(program, DO_ADD, sub, n(t, 1)), end);
}

/* ---- factors --------------------------------------------------------------------------------- */

/* An element of the tensor with one for each tile */
static const Expr *factor(Sketch *t) {
    return element(t->program, X_TENSOR, t->factors, 0, axis_of(t), NULL, NULL);
}

static const Expr *uniform(Sketch *t) {
    Program *program = t->program;
    if (often(program, 50))
        return binary(program, DO_GT, symbol(program, SYM_Q), n(t, pick(program, 3)));
    return binary(program, DO_GT, factor(t), real(program, pick(program, 2)));
}

/* Infinite where e is 0, or never */
static const Expr *inverse(Sketch *t, const Expr *e) {
    Program *program = t->program;
    const Expr *one = real(program, 1 + pick(program, 2));
    uint32_t dice = pick(program, 9);
    program->traits[TRAIT_POLE] |= dice < 6;
    switch (dice) {
    case 0:
    case 1:
    case 2: return binary(program, DO_DIV, one, e);
    case 3: return unary(program, DO_RCP, e);
    case 4: return choose(program, uniform(t), real(program, INFINITY), one);
    case 5: return choose(program, uniform(t), binary(program, DO_DIV, one, e), one);
    case 6: /* finite for 1e30 too: data and what is computed from it are taken to be */
        e = unary(program, DO_ABS, e);
        return often(program, 50) ? unary(program, DO_SQRT, e)
                                  : binary(program, DO_POWER, e, real(program, 0.75));
    case 7: return binary(program, DO_DIV, one, binary(program, DO_MAX, e, real(program, 0.5)));
    default:
        e = binary(program, DO_MUL, e, e);
        return binary(program, DO_DIV, one, binary(program, DO_ADD, e, one));
    }
}

/* Of an element: what is computed from its padding may be infinite. Numbers that are computed
 * from data without padding are taken to be finite, except inverses. */
static const Expr *pole(Sketch *t, const Expr *e) {
    static const double large[] = {3e38, 1e38, 2e38};
    Program *program = t->program;
    uint32_t dice = pick(program, 8);
    program->traits[TRAIT_OVERFLOW] |= dice < 4;
    switch (dice) {
    case 0:
    case 1: return unary(program, DO_HALF, binary(program, DO_ADD, e, real(program, 100000)));
    case 2:
        e = binary(program, DO_ADD, e, real(program, 9));
        return binary(program, DO_MUL, e, real(program, large[pick(program, COUNT_OF(large))]));
    case 3: return unary(program, DO_EXP, binary(program, DO_SUB, real(program, 100), e));
    default: return inverse(t, e);
    }
}

/* A tile of values that may be infinite, each computed from an element */
static const Expr *pole_tile(Sketch *t, const Expr *x) {
    Program *program = t->program;
    int tile = tile_new(program, often(program, 70) ? LOCAL_TILE : LOCAL_SHARED, 1, WIDE, 0);
    bool half = often(program, 30);
    program->locals[tile].type = half ? TYPE_HALF : TYPE_REAL;
    declared(t, tile, NULL, t->out);
    const Expr *i = index_of(program, 0), *to = element(program, X_TILE, tile, 0, i, NULL, NULL);
    const Expr *value = often(program, 60) ? pole(t, at(t, i)) : inverse(t, factor(t));
    if (often(program, 10)) value = unary(program, DO_E4M3, value); /* finite, unless it is NaN */
    Stmt *stmt = assign(program, to, '=', value), *guard = if_new(program, uniform(t));
    if (often(program, 25)) { /* in one arm, or after another value */
        Stmt *other = assign(program, to, '=', real(program, 1));
        if (often(program, 50))
            stmts_add(program, &guard->otherwise, other);
        else
            stmts_add(program, t->out, other);
        stmts_add(program, &guard->body, stmt);
        stmt = guard;
    }
    stmts_add(program, t->out, stmt);
    return element(program, X_TILE, tile, 0, x, NULL, NULL);
}

/* A number for the tile: a `let`, a variable that arms set, a value of a function */
static const Expr *pole_number(Sketch *t) {
    Program *program = t->program;
    const Expr *value = inverse(t, factor(t));
    if (often(program, 30)) {
        int local = variable(t, TYPE_REAL, real(program, pick(program, 2)));
        Stmt *guard = if_new(program, uniform(t));
        set(t, local, '=', value, often(program, 50) ? t->out : &guard->body);
        if (guard->body.count > 0) stmts_add(program, t->out, guard);
        return local_of(program, local);
    }
    return named(t, value, 75, t->out);
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* A value of an element: its padding is 0, or not */
static const Expr *term(Sketch *t, const Expr *e, bool clean) {
    Program *program = t->program;
    if (t->type == TYPE_HALF) e = binary(program, DO_ADD, e, real(program, 0));
    if (clean) {
        switch (pick(program, 6)) {
        case 0: return binary(program, DO_MUL, e, e);
        case 1: return unary(program, DO_ABS, e);
        case 2: return binary(program, DO_MUL, e, constant(t, 3));
        case 3: return binary(program, DO_MAX, e, constant(t, 0));
        default: return e;
        }
    }
    switch (pick(program, 4)) {
    case 0: return binary(program, DO_SUB, e, constant(t, 5));
    case 1: return unary(program, DO_NEGATE, e);
    case 2: return binary(program, DO_ADD, e, constant(t, 1));
    default: return e;
    }
}

static int output_new(Sketch *t, Type type) {
    Program *program = t->program;
    int tensor = tensor_new(program, arena_printf(program->arena, "Y%d", program->tensor_count),
                            TENSOR_OUT, FILL_SMALL, 1);
    program->tensors[tensor].type = type;
    program->tensors[tensor].extents[0].symbol = SYM_G;
    return tensor;
}

static void output(Sketch *t, const Expr *value) {
    Program *program = t->program;
    Type type = expr_type(program, value);
    if (program->tensor_count >= MAX_TENSORS) return;
    if (type == TYPE_BOOL) {
        value = choose(program, value, n(t, 1), n(t, 0));
        type = TYPE_INT;
    }
    const Expr *to = element(program, X_TENSOR, output_new(t, type), 0, axis_of(t), NULL, NULL);
    stmts_add(program, t->out, assign(program, to, '=', value));
}

static void sum_of_poles(Sketch *t) {
    Program *program = t->program;
    const Expr *x = index_of(program, 2), *e = at(t, x);
    bool field = t->handles >= 0 && often(program, 40);
    const Expr *by = field                ? element(program, X_FIELD, t->handles, 1, x, NULL, NULL)
                     : often(program, 50) ? pole_tile(t, x)
                                          : pole_number(t);
    const Expr *value =
        often(program, 50) ? binary(program, DO_MUL, e, by) : binary(program, DO_MUL, by, e);
    Op op = often(program, 85) ? DO_ADD : DO_MAX;
    if (often(program, 10)) value = binary(program, DO_DIV, e, factor(t));
    if (often(program, 25)) {
        const Expr *none = op == DO_ADD ? real(program, 0) : bound(t, true);
        value = choose(program, mask(t, x, t->out, NULL), value, none);
    }
    output(t, reduced(program, op, 2, value));
}

static void reduction(Sketch *t) {
    Program *program = t->program;
    const Expr *x = index_of(program, 2), *value;
    static const Op ops[] = {DO_ADD, DO_MAX, DO_MIN};
    Op op = ops[pick(program, COUNT_OF(ops))];
    bool clean = often(program, 50);
    value = term(t, at(t, x), clean);
    if (!clean || op == DO_MIN || often(program, 60)) {
        const Expr *none = op == DO_ADD ? constant(t, 0) : bound(t, op == DO_MAX);
        value = choose(program, mask(t, x, t->out, NULL), value, none);
    }
    output(t, reduced(program, op, 2, value));
}

/* ---- loops by hand --------------------------------------------------------------------------- */

typedef struct Loop {
    Stmt *stmt;
    const Expr *at, *value; /* the position, the value there */
    const Expr *limit;
    int sum, place, flag, count; /* variables */
    bool most;                   /* a maximum, or a minimum */
} Loop;

static const Expr *above(Sketch *t, const Loop *loop) {
    Program *program = t->program;
    Op op = often(program, 70) ? DO_GT : often(program, 50) ? DO_GE : DO_LT;
    return often(program, 70)
               ? binary(program, op, loop->value, loop->limit)
               : binary(program, op == DO_LT ? DO_GT : DO_LT, loop->limit, loop->value);
}

static Stmt *leave_new(Program *program, Leave how) {
    Stmt *leave = stmt_new(program, S_LEAVE);
    leave->leave = how;
    return leave;
}

/* s = max(s, v), in several ways; with its position */
static void extreme(Sketch *t, Loop *loop, Stmts *out) {
    Program *program = t->program;
    bool most = loop->most;
    const Expr *s = local_of(program, loop->sum);
    const Expr *better = binary(program, most ? DO_GT : DO_LT, loop->value, s);
    Stmt *guard = if_new(program, better);
    switch (pick(program, 4)) {
    case 0:
        set(t, loop->sum, '=', binary(program, most ? DO_MAX : DO_MIN, s, loop->value), out);
        break;
    case 1: set(t, loop->sum, '=', choose(program, better, loop->value, s), out); break;
    default:
        guard->condition = named(t, better, 15, out);
        if (often(program, 60)) set(t, loop->place, '=', loop->at, &guard->body);
        set(t, loop->sum, '=', loop->value, &guard->body);
        stmts_add(program, out, guard);
        break;
    }
}

/* A flag, a position or a count of the elements above a limit */
static void found(Sketch *t, Loop *loop, Stmts *out) {
    Program *program = t->program;
    const Expr *condition = named(t, above(t, loop), 20, out),
               *flag = local_of(program, loop->flag);
    Stmt *guard = if_new(program, condition);
    switch (pick(program, 6)) {
    case 0: set(t, loop->flag, '=', binary(program, DO_OR, flag, condition), out); return;
    case 1:
        set(t, loop->flag, '=', choose(program, condition, truth(program, true), flag), out);
        return;
    case 2: set(t, loop->count, '+', choose(program, condition, n(t, 1), n(t, 0)), out); return;
    case 3: set(t, loop->flag, '=', truth(program, true), &guard->body); break;
    case 4: set(t, loop->count, '+', n(t, 1), &guard->body); break;
    default: set(t, loop->place, '=', loop->at, &guard->body); break;
    }
    if (often(program, 35)) stmts_add(program, &guard->body, leave_new(program, LEAVE_BREAK));
    stmts_add(program, out, guard);
}

static void skipped(Sketch *t, Loop *loop, Stmts *out) {
    Program *program = t->program;
    Stmt *guard = if_new(program, above(t, loop));
    stmts_add(program, &guard->body,
              leave_new(program, often(program, 50) ? LEAVE_CONTINUE : LEAVE_BREAK));
    stmts_add(program, out, guard);
    if (often(program, 50))
        set(t, loop->count, '+', n(t, 1), out);
    else
        set(t, loop->sum, '+', loop->value, out);
}

static void step(Sketch *t, Loop *loop, Stmts *out) {
    Program *program = t->program;
    switch (pick(program, 7)) {
    case 0:
    case 1:
    case 2: extreme(t, loop, out); break;
    case 3:
    case 4: found(t, loop, out); break;
    case 5: skipped(t, loop, out); break;
    default: {
        const Expr *s = local_of(program, loop->sum);
        if (!is_float(t) && often(program, 35)) /* wraps, of its own earlier value */
            set(t, loop->sum, '=',
                unary(program, DO_BYTE,
                      binary(program, DO_ADD, binary(program, DO_MUL, s, n(t, 3)), loop->value)),
                out);
        else if (often(program, 50))
            set(t, loop->sum, '+', loop->value, out);
        else
            set(t, loop->sum, '=', binary(program, DO_ADD, s, loop->value), out);
        break;
    }
    }
}

/* All of the tile, masked or not; or as many as the tensor has */
static void by_hand(Sketch *t) {
    Program *program = t->program;
    Type type = is_float(t) ? TYPE_REAL : TYPE_INT;
    program->traits[TRAIT_HAND] = true;
    static const double limits[] = {0, 0, 1, -2, -0.5, 5};
    Loop loop = {.limit = constant(t, limits[pick(program, COUNT_OF(limits))])};
    int local = local_new(program, LOCAL_LOOP);
    bool most = often(program, 65);
    const Expr *start = often(program, 20) ? constant(t, 0) : bound(t, most);
    loop.most = most;
    loop.sum = variable(t, type, start);
    loop.place = variable(t, TYPE_INT, n(t, -1));
    loop.flag = variable(t, TYPE_BOOL, truth(program, false));
    loop.count = variable(t, TYPE_INT, n(t, 0));
    if (often(program, 30)) loop.limit = named(t, loop.limit, 100, t->out);
    loop.at = local_of(program, local);
    loop.stmt = for_new(program, local, n(t, WIDE));
    loop.stmt->inside = count_inside(t);
    Stmts *out = &loop.stmt->body;
    bool clean = often(program, 60), masked = often(program, 55);
    uint32_t way = masked ? pick(program, 3) : 3;
    if (way == 0) { /* the loop ends with the tensor */
        const Expr *count = binary(program, DO_MIN, count_inside(t), n(t, WIDE));
        loop.stmt->hi = named(t, count, 40, t->out);
    } else if (way == 1) {
        Stmt *guard = if_new(program, mask(t, loop.at, t->out, out));
        stmts_add(program, out, guard);
        out = &guard->body;
    } else if (way == 2) {
        Stmt *guard = if_new(program, unary(program, DO_NOT, mask(t, loop.at, t->out, out)));
        stmts_add(program, &guard->body,
                  leave_new(program, often(program, 50) ? LEAVE_CONTINUE : LEAVE_BREAK));
        stmts_add(program, out, guard);
    }
    loop.value = named(t, term(t, at(t, loop.at), clean), 60, out);
    for (uint32_t steps = 1 + pick(program, 2); steps > 0; steps--) step(t, &loop, out);
    stmts_add(program, t->out, loop.stmt);
    output(t, local_of(program, loop.sum));
    output(t, local_of(program, loop.place));
    output(t, local_of(program, loop.flag));
    output(t, local_of(program, loop.count));
}

/* ---- the tile -------------------------------------------------------------------------------- */

static int input_new(Sketch *t, const char *name, Contents contents, Type type, bool rows) {
    Program *program = t->program;
    int tensor = tensor_new(program, name, TENSOR_IN, contents, rows ? 2 : 1);
    program->tensors[tensor].type = type;
    program->tensors[tensor].extents[0].symbol = rows ? SYM_G : (int)t->end;
    program->tensors[tensor].extents[1].symbol = (int)t->end;
    return tensor;
}

static const Expr *input_at(Sketch *t, int tensor, const Expr *sub) {
    if (t->rows) return element(t->program, X_TENSOR, tensor, 0, axis_of(t), sub, NULL);
    return element(t->program, X_TENSOR, tensor, 0, position(t, sub), NULL, NULL);
}

static Stmt *grid_of(Sketch *t, int role) {
    Stmt *grid = stmt_new(t->program, S_GRID);
    grid->local = t->program->axes[0].local;
    stmts_add(t->program, &t->program->roles[role].body, grid);
    return grid;
}

/* A stage that another role fills: by a copy; with factors that it computes, or none */
static void draw_stage(Sketch *t, bool factors) {
    Program *program = t->program;
    const Expr *i = index_of(program, 0);
    int last = program->role_count - 1;
    program->pipe_count = 1;
    program->pipes[0] = (Pipe){.depth = 1 + (int)pick(program, 3),
                               .consumers = {last},
                               .consumer_count = 1,
                               .used = true,
                               .field_count = factors ? 2 : 1};
    program->pipes[0].fields[0] =
        (Field){.copied = true, .type = t->type, .rank = 1, .extents = {WIDE}};
    program->pipes[0].fields[1] = (Field){.type = TYPE_REAL, .rank = 1, .extents = {WIDE}};
    int handle = local_new(program, LOCAL_HANDLE);
    program->locals[handle].pipe = 0;
    Stmt *block = stmt_of_handle(program, S_STAGE, handle, -1);
    block->produce = true;
    stmts_add(program, &grid_of(t, 0)->body, block);
    stmts_add(program, &block->body,
              assign(program, element(program, X_FIELD, handle, 0, i, NULL, NULL), '=',
                     input_at(t, t->input, i)));
    if (factors) {
        const Expr *by =
            often(program, 50) ? pole(t, input_at(t, t->input, i)) : inverse(t, factor(t));
        stmts_add(program, &block->body,
                  assign(program, element(program, X_FIELD, handle, 1, i, NULL, NULL), '=', by));
    }
    Stmt *use = stmt_of_handle(program, S_STAGE, local_new(program, LOCAL_HANDLE), -1);
    program->locals[use->local].pipe = 0;
    stmts_add(program, t->out, use);
    t->handle = use->local;
    if (factors) t->handles = use->local;
    t->out = &use->body;
}

static void draw_tile(Sketch *t, bool shared) {
    Program *program = t->program;
    t->tile = tile_new(program, shared ? LOCAL_SHARED : LOCAL_TILE, 1, WIDE, 0);
    program->locals[t->tile].type = t->type;
    declared(t, t->tile, NULL, t->out);
    const Expr *i = index_of(program, 0);
    stmts_add(program, t->out, assign(program, at(t, i), '=', input_at(t, t->input, i)));
}

/* ---- rows in registers ----------------------------------------------------------------------- */

#define ROWS 8

/* A tile of ROWS rows; a loop over its columns combines each row in a vector. */
typedef struct Columns {
    int tile, sums, places, counts; /* register tiles */
    const Expr *at, *value;         /* the column; an element of it, of row j */
    bool most;
} Columns;

static const Expr *row_of(Sketch *t, int tile) {
    return element(t->program, X_TILE, tile, 0, index_of(t->program, 1), NULL, NULL);
}

static int vector_new(Sketch *t, Type type, const Expr *value) {
    int tile = tile_new(t->program, LOCAL_TILE, 1, ROWS, 0);
    t->program->locals[tile].type = type;
    declared(t, tile, value, t->out);
    return tile;
}

static void combine_column(Sketch *t, const Columns *c, Stmts *out) {
    static const double limits[] = {0, 0, 1, -2};
    Program *program = t->program;
    const Expr *sum = row_of(t, c->sums), *place = row_of(t, c->places),
               *count = row_of(t, c->counts);
    const Expr *better = binary(program, c->most ? DO_GT : DO_LT, c->value, sum);
    const Expr *found =
        binary(program, DO_GT, c->value, constant(t, limits[pick(program, COUNT_OF(limits))]));
    const Expr *best = choose(program, better, c->value, sum);
    switch (pick(program, 5)) {
    case 0: best = binary(program, c->most ? DO_MAX : DO_MIN, sum, c->value); break;
    case 1:
        stmts_add(program, out, assign(program, place, '=', choose(program, better, c->at, place)));
        break;
    case 2: stmts_add(program, out, assign(program, sum, '+', c->value)); return;
    case 3:
        stmts_add(program, out,
                  assign(program, count, '+', choose(program, found, n(t, 1), n(t, 0))));
        return;
    default: break;
    }
    stmts_add(program, out, assign(program, sum, '=', best));
}

static void output_rows(Sketch *t, int tile) {
    Program *program = t->program;
    int tensor = output_new(t, program->locals[tile].type);
    program->tensors[tensor].rank = 2;
    program->tensors[tensor].extents[1].number = ROWS;
    const Expr *to = element(program, X_TENSOR, tensor, 0, axis_of(t), index_of(program, 1), NULL);
    stmts_add(program, t->out, assign(program, to, '=', row_of(t, tile)));
}

/* All columns of the tile, masked or not */
static void loop_over_columns(Sketch *t, Columns *c) {
    Program *program = t->program;
    int local = local_new(program, LOCAL_LOOP);
    Stmt *loop = for_new(program, local, n(t, WIDE));
    Stmts *out = &loop->body;
    bool clean = often(program, 60);
    loop->inside = count_inside(t);
    c->at = local_of(program, local);
    c->value =
        term(t, element(program, X_TILE, c->tile, 0, index_of(program, 1), c->at, NULL), clean);
    if (often(program, 50)) { /* through a vector */
        int vector = vector_new(t, program->locals[c->sums].type, NULL);
        stmts_add(program, out, assign(program, row_of(t, vector), '=', c->value));
        c->value = row_of(t, vector);
    }
    if (often(program, 55)) {
        Stmt *guard = if_new(program, mask(t, c->at, t->out, NULL));
        stmts_add(program, out, guard);
        out = &guard->body;
    }
    for (uint32_t steps = 1 + pick(program, 2); steps > 0; steps--) combine_column(t, c, out);
    stmts_add(program, t->out, loop);
}

static void rows_by_hand(Sketch *t) {
    Program *program = t->program;
    const Expr *i = index_of(program, 0), *j = index_of(program, 1);
    Type type = is_float(t) ? TYPE_REAL : TYPE_INT;
    Columns c = {.most = often(program, 65)};
    program->traits[TRAIT_HAND] = true;
    c.tile = tile_new(program, LOCAL_TILE, 2, ROWS, WIDE);
    program->locals[c.tile].type = t->type;
    declared(t, c.tile, NULL, t->out);
    stmts_add(program, t->out,
              assign(program, element(program, X_TILE, c.tile, 0, j, i, NULL), '=',
                     element(program, X_TENSOR, t->input, 0, axis_of(t), j, i)));
    c.sums = vector_new(t, type, often(program, 20) ? constant(t, 0) : bound(t, c.most));
    c.places = vector_new(t, TYPE_INT, n(t, -1));
    c.counts = vector_new(t, TYPE_INT, n(t, 0));
    loop_over_columns(t, &c);
    output_rows(t, c.sums);
    output_rows(t, c.places);
    output_rows(t, c.counts);
}

/* ---- operands of matrix instructions --------------------------------------------------------- */

#define HEIGHT  64
#define COLUMNS 8

/* The product of a tile, with or without poles, and of a field: both end with the tensor */
static void product_of_tiles(Sketch *t, int handle) {
    Program *program = t->program;
    const Expr *i = index_of(program, 0), *j = index_of(program, 1), *x = index_of(program, 2);
    const Expr *left = element(program, X_FIELD, handle, 0, i, x, NULL);
    int tile = tile_new(program, LOCAL_TILE, 2, HEIGHT, WIDE);
    program->locals[tile].type = TYPE_HALF;
    const Expr *to = element(program, X_TILE, tile, 0, i, x, NULL), *value;
    declared(t, tile, NULL, t->out);
    value = often(program, 50) ? pole(t, left) : binary(program, DO_MUL, left, pole_number(t));
    if (often(program, 35))
        value = choose(program, mask(t, x, t->out, NULL), value, real(program, 0));
    stmts_add(program, t->out, assign(program, to, '=', value));
    Stmt *contract = stmt_new(program, S_CONTRACT);
    int acc = tile_new(program, LOCAL_TILE, 2, HEIGHT, COLUMNS);
    bool adds = often(program, 50);
    program->locals[acc].type = TYPE_REAL;
    declared(t, acc, adds ? real(program, 0) : NULL, t->out);
    contract->target = element(program, X_TILE, acc, 0, i, j, NULL);
    contract->op = adds ? '+' : '=';
    contract->left = to;
    contract->right = element(program, X_FIELD, handle, 1, j, x, NULL);
    stmts_add(program, t->out, contract);
    int tensor = output_new(t, TYPE_REAL);
    program->tensors[tensor].rank = 3;
    program->tensors[tensor].extents[1].number = HEIGHT;
    program->tensors[tensor].extents[2].number = COLUMNS;
    stmts_add(program, t->out,
              assign(program, element(program, X_TENSOR, tensor, 0, axis_of(t), i, j), '=',
                     contract->target));
}

static void draw_operands(Sketch *t) {
    Program *program = t->program;
    const Expr *i = index_of(program, 0), *j = index_of(program, 1), *x = index_of(program, 2);
    int right = tensor_new(program, "B", TENSOR_IN, FILL_SMALL, 2);
    program->tensors[right].type = TYPE_HALF;
    program->tensors[right].extents[0].number = COLUMNS;
    program->tensors[right].extents[1].symbol = (int)t->end;
    program->pipe_count = 1;
    program->pipes[0] = (Pipe){.depth = 1 + (int)pick(program, 2),
                               .consumers = {1},
                               .consumer_count = 1,
                               .used = true,
                               .field_count = 2};
    for (int f = 0; f < 2; f++)
        program->pipes[0].fields[f] = (Field){.type = TYPE_HALF,
                                              .copied = true,
                                              .rank = 2,
                                              .extents = {f == 0 ? HEIGHT : COLUMNS, WIDE}};
    Stmt *blocks[2];
    for (int r = 0; r < 2; r++) {
        blocks[r] = stmt_of_handle(program, S_STAGE, local_new(program, LOCAL_HANDLE), -1);
        blocks[r]->produce = r == 0;
        program->locals[blocks[r]->local].pipe = 0;
        stmts_add(program, r == 0 ? &grid_of(t, 0)->body : t->out, blocks[r]);
    }
    int handle = blocks[0]->local;
    stmts_add(program, &blocks[0]->body,
              assign(program, element(program, X_FIELD, handle, 0, i, x, NULL), '=',
                     element(program, X_TENSOR, t->input, 0, axis_of(t), i, x)));
    stmts_add(program, &blocks[0]->body,
              assign(program, element(program, X_FIELD, handle, 1, j, x, NULL), '=',
                     element(program, X_TENSOR, right, 0, j, x, NULL)));
    t->out = &blocks[1]->body;
    product_of_tiles(t, blocks[1]->local);
}

/* ---- the program ----------------------------------------------------------------------------- */

typedef enum Shape { SHAPE_TILE, SHAPE_ROWS, SHAPE_OPERANDS } Shape;

static void draw_inputs(Sketch *t, Shape shape) {
    Program *program = t->program;
    if (t->rows) program->requires[program->require_count++] = (Require){t->end, DO_LE, WIDE};
    t->input = input_new(t, "X", FILL_TAIL, t->type, t->rows);
    if (shape != SHAPE_TILE) { /* several rows for each tile */
        Tensor *input = &program->tensors[t->input];
        input->rank = 3;
        input->extents[1].symbol = -1;
        input->extents[1].number = shape == SHAPE_OPERANDS ? HEIGHT : ROWS;
        input->extents[2].symbol = (int)t->end;
    }
    t->factors = tensor_new(program, "S", TENSOR_IN, FILL_POLE, 1);
    program->tensors[t->factors].type = TYPE_REAL;
    program->tensors[t->factors].extents[0].symbol = SYM_G;
}

static void draw_roles(Sketch *t, bool staged, Shape shape) {
    Program *program = t->program;
    int warps = often(program, 50) ? 4 : 1;
    program->role_count = staged ? 2 : 1;
    program->roles[0] = (Role){.warps = 1, .instances = 1};
    program->roles[staged] = (Role){.warps = warps, .instances = 1};
    if (shape == SHAPE_OPERANDS)
        program->roles[staged] = (Role){.warps = 4, .instances = 1, .warpgroups = true};
    t->out = &grid_of(t, staged)->body;
}

/* Factors, loops by hand, or masks */
typedef enum Kind { KIND_POLES, KIND_HANDS, KIND_MASKS, KINDS } Kind;

static void use_tile(Sketch *t, Kind kind) {
    Program *program = t->program;
    bool element = t->handle >= 0 || program->locals[t->tile].kind == LOCAL_SHARED;
    switch (kind) {
    case KIND_POLES:
        for (uint32_t sums = 1 + pick(program, 2); sums > 0; sums--) sum_of_poles(t);
        break;
    case KIND_HANDS: by_hand(t); break;
    case KIND_MASKS:
    case KINDS:
        program->traits[TRAIT_MASK] = true;
        reduction(t);
        if (element && often(program, 40)) by_hand(t);
        break;
    }
}

void draw_tails(Program *program) {
    static const Type types[] = {TYPE_REAL, TYPE_REAL, TYPE_INT, TYPE_HALF};
    Sketch t = {.program = program, .handle = -1, .handles = -1};
    Kind kind = (Kind)pick(program, KINDS);
    if (program->theme >= THEME_POLES && program->theme <= THEME_MASKS)
        kind = (Kind)(program->theme - THEME_POLES);
    Shape shape = kind == KIND_POLES && often(program, 10)   ? SHAPE_OPERANDS
                  : kind == KIND_HANDS && often(program, 25) ? SHAPE_ROWS
                                                             : SHAPE_TILE;
    t.type = types[pick(program, kind == KIND_POLES ? 2 : COUNT_OF(types))];
    if (shape == SHAPE_OPERANDS) t.type = TYPE_HALF;
    t.rows = shape != SHAPE_TILE || often(program, 50);
    t.end = t.rows || often(program, 50) ? SYM_N : SYM_M;
    program->tails = true;
    program->large = shape != SHAPE_TILE;
    program->persistent = often(program, 80);
    axis_add(program, symbol(program, SYM_G), 1);
    draw_inputs(&t, shape);
    bool staged = shape == SHAPE_OPERANDS || (shape == SHAPE_TILE && often(program, 45));
    draw_roles(&t, staged, shape);
    if (shape == SHAPE_OPERANDS) {
        draw_operands(&t);
    } else if (shape == SHAPE_ROWS) {
        rows_by_hand(&t);
    } else {
        if (staged)
            draw_stage(&t, kind == KIND_POLES && often(program, 50));
        else
            draw_tile(&t, kind == KIND_HANDS || often(program, 40));
        use_tile(&t, kind);
    }
}
