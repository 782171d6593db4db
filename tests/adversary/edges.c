/* Programs whose fields are padded from different positions on: conditions over several fields
 * decide what a reduction includes; tiles are computed from one field or another, and then changed
 * by further assignments. */
#include "tests/adversary/draw.h"

#define TILES_MOST 2

typedef struct Sketch {
    Program *program;
    int handle, axis, data; /* data: of the tensors with an element for each tile */
    int tiles[TILES_MOST], tile_count;
    Symbol ends[MAX_FIELDS]; /* extents of the tensors that the fields are copied from */
} Sketch;

static const Expr *n(Sketch *e, int64_t value) { return number(e->program, value); }

static const Expr *field_at(Sketch *e, int field, const Expr *sub) {
    return element(e->program, X_FIELD, e->handle, field, sub, NULL, NULL);
}

static const Expr *tile_at(Sketch *e, int tile, const Expr *sub) {
    return element(e->program, X_TILE, tile, 0, sub, NULL, NULL);
}

/* An element of a field, or of a tile that was computed before */
static const Expr *source(Sketch *e, const Expr *sub) {
    int which = (int)pick(e->program, (uint32_t)(MAX_FIELDS + e->tile_count));
    return which < MAX_FIELDS ? field_at(e, which, sub)
                              : tile_at(e, e->tiles[which - MAX_FIELDS], sub);
}

static const Expr *position(Sketch *e, const Expr *sub) {
    const Expr *tile = binary(e->program, DO_MUL, local_of(e->program, e->axis), n(e, WIDE));
    return binary(e->program, DO_ADD, tile, sub);
}

/* ---- conditions ------------------------------------------------------------------------------ */

static Op any_comparison(Program *program) {
    static const Op ops[] = {DO_GT, DO_GE, DO_LT, DO_LE, DO_EQ, DO_NE};
    return ops[pick(program, COUNT_OF(ops))];
}

/* The same for all elements */
static const Expr *uniform(Sketch *e) {
    Program *program = e->program;
    const Expr *datum =
        element(program, X_TENSOR, e->data, 0, local_of(program, e->axis), NULL, NULL);
    return binary(program, any_comparison(program),
                  often(program, 60) ? symbol(program, SYM_Q) : datum, n(e, pick(program, 3)));
}

static const Expr *comparison(Sketch *e, const Expr *sub) {
    static const int numbers[] = {0, 0, 0, 0, 1, 3, -1};
    Program *program = e->program;
    if (often(program, 8))
        return binary(program, DO_LT, position(e, sub),
                      symbol(program, e->ends[pick(program, MAX_FIELDS)]));
    if (often(program, 50)) /* false for padding */
        return binary(program, DO_GT, source(e, sub), n(e, pick(program, 2)));
    return binary(program, any_comparison(program), source(e, sub),
                  often(program, 10) ? source(e, sub)
                                     : n(e, numbers[pick(program, COUNT_OF(numbers))]));
}

static const Expr *condition(Sketch *e, const Expr *sub) {
    Program *program = e->program;
    const Expr *first = comparison(e, sub);
    if (often(program, 35)) return first;
    return binary(program, often(program, 60) ? DO_AND : DO_OR, first, comparison(e, sub));
}

/* ---- values ---------------------------------------------------------------------------------- */

static const Expr *value(Sketch *e, const Expr *sub) {
    Program *program = e->program;
    const Expr *from = source(e, sub);
    switch (pick(program, 9)) {
    case 6:
    case 0: return binary(program, DO_SUB, from, n(e, 5));
    case 1: return binary(program, DO_MUL, from, source(e, sub));
    case 2: return binary(program, DO_MUL, from, from);
    case 3: return binary(program, DO_MAX, from, n(e, 0));
    case 4:
    case 5: return choose(program, condition(e, sub), n(e, 1 + pick(program, 5)), n(e, 0));
    default: return from;
    }
}

/* Assigns one of two values to all of a tile; in two arms, or in a choice */
static void set_either(Sketch *e, const Expr *to, const Expr *first, const Expr *second,
                       Stmts *out) {
    Program *program = e->program;
    Stmt *arms = if_new(program, uniform(e));
    if (often(program, 50)) {
        stmts_add(program, out,
                  assign(program, to, '=', choose(program, arms->condition, first, second)));
        return;
    }
    stmts_add(program, &arms->body, assign(program, to, '=', first));
    stmts_add(program, &arms->otherwise, assign(program, to, '=', second));
    stmts_add(program, out, arms);
}

/* y *= 1 << 30 */
static void change(Sketch *e, const Expr *to, char op, Stmts *out) {
    static const int factors[] = {2, 1 << 30, 1 << 30, 715827883};
    Program *program = e->program;
    const Expr *by = op == '*' ? n(e, factors[pick(program, COUNT_OF(factors))])
                               : value(e, index_of(program, 0));
    Stmt *stmt = assign(program, to, op, by), *guard = if_new(program, uniform(e));
    bool guards = often(program, 15);
    stmts_add(program, &guard->body, stmt);
    stmts_add(program, out, guards ? guard : stmt);
}

/* Few if a condition holds, and then multiplied; one field or the other; any values */
static void draw_tile(Sketch *e, Stmts *out) {
    Program *program = e->program;
    const Expr *i = index_of(program, 0);
    Stmt *declare = stmt_new(program, S_DECLARE);
    int tile = declare->local =
        tile_new(program, often(program, 80) ? LOCAL_TILE : LOCAL_SHARED, 1, WIDE, 0);
    const Expr *to = tile_at(e, tile, i);
    uint32_t dice = pick(program, 100);
    stmts_add(program, out, declare);
    if (dice < 30) {
        const Expr *few = n(e, 2 + pick(program, 2));
        stmts_add(program, out,
                  assign(program, to, '=', choose(program, comparison(e, i), few, n(e, 0))));
        change(e, to, '*', out);
    } else {
        bool fields = dice < 60;
        int first = (int)pick(program, MAX_FIELDS);
        set_either(e, to, fields ? field_at(e, first, i) : value(e, i),
                   fields ? field_at(e, 1 - first, i) : value(e, i), out);
        if (often(program, fields ? 20 : 50)) change(e, to, "*+-"[pick(program, 3)], out);
    }
    e->tiles[e->tile_count++] = tile;
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* Of a tile; of the values for which a condition holds, or for which it does not; of all values */
static const Expr *reduction(Sketch *e) {
    static const Op ops[] = {DO_ADD, DO_ADD, DO_MAX, DO_MIN};
    Program *program = e->program;
    Op op = ops[pick(program, COUNT_OF(ops))];
    const Expr *x = index_of(program, 2), *term = value(e, x), *none = n(e, 0);
    uint32_t dice = pick(program, 100);
    if (e->tile_count > 0 && dice < 40)
        return reduced(program, often(program, 75) ? DO_MAX : DO_ADD, 2,
                       tile_at(e, e->tiles[pick(program, (uint32_t)e->tile_count)], x));
    if (op != DO_ADD && often(program, 80)) none = n(e, op == DO_MAX ? INT32_MIN : INT32_MAX);
    if (dice < 80)
        term = choose(program, condition(e, x), term, none);
    else if (dice < 92)
        term = choose(program, condition(e, x), none, term);
    return reduced(program, op, 2, term);
}

/* The elements one by one: those for which the condition holds */
static void sum_in_loop(Sketch *e, int sum, Stmts *out) {
    Program *program = e->program;
    int counter = local_new(program, LOCAL_LOOP);
    const Expr *at = local_of(program, counter);
    Sketch fields = *e;
    fields.tile_count = 0; /* one thread alone has an element of a tile in registers */
    Stmt *loop = for_new(program, counter, n(e, WIDE)),
         *guard = if_new(program, condition(&fields, at)), *add = stmt_new(program, S_SET);
    add->local = sum;
    add->op = '+';
    add->value = value(&fields, at);
    stmts_add(program, &guard->body, add);
    stmts_add(program, &loop->body, guard);
    stmts_add(program, out, loop);
}

static void output(Sketch *e, Stmts *out) {
    Program *program = e->program;
    const char *name = arena_printf(program->arena, "Y%d", program->tensor_count);
    int tensor = tensor_new(program, name, TENSOR_OUT, FILL_SMALL, 1);
    const Expr *to = element(program, X_TENSOR, tensor, 0, local_of(program, e->axis), NULL, NULL);
    program->tensors[tensor].extents[0].symbol = SYM_G;
    if (often(program, 85)) {
        stmts_add(program, out, assign(program, to, '=', reduction(e)));
        return;
    }
    Stmt *declare = stmt_new(program, S_DECLARE);
    declare->local = local_new(program, LOCAL_SCALAR);
    declare->value = n(e, 0);
    stmts_add(program, out, declare);
    sum_in_loop(e, declare->local, out);
    stmts_add(program, out, assign(program, to, '=', local_of(program, declare->local)));
}

/* ---- the program ----------------------------------------------------------------------------- */

static Stmt *grid_of_block(Sketch *e, int role, bool produce) {
    Program *program = e->program;
    Stmt *grid = stmt_new(program, S_GRID), *block = stmt_new(program, S_STAGE);
    grid->local = e->axis;
    block->produce = produce;
    block->local = e->handle;
    stmts_add(program, &grid->body, block);
    stmts_add(program, &program->roles[role].body, grid);
    return block;
}

/* An input of so many elements; the positions of its field may begin before those of the others */
static void load(Sketch *e, int field, Stmt *block) {
    static const char *const names[MAX_FIELDS] = {"U", "V"};
    Program *program = e->program;
    const Expr *i = index_of(program, 0), *at = position(e, i);
    int tensor = tensor_new(program, names[field], TENSOR_IN, FILL_DATA, 1);
    program->tensors[tensor].extents[0].symbol = (int)e->ends[field];
    if (often(program, 15)) at = binary(program, DO_ADD, at, n(e, 4));
    stmts_add(program, &block->body,
              assign(program, field_at(e, field, i), '=',
                     element(program, X_TENSOR, tensor, 0, at, NULL, NULL)));
}

void draw_edges(Program *program) {
    static const Symbol ends[] = {SYM_N, SYM_N, SYM_M, SYM_M, SYM_K};
    Sketch e = {.program = program};
    program->edges = true;
    program->persistent = often(program, 80);
    axis_add(program, symbol(program, SYM_G), 1);
    e.axis = program->axes[0].local;
    e.handle = local_new(program, LOCAL_HANDLE);
    program->locals[e.handle].pipe = 0;
    program->role_count = 2;
    program->roles[0] = (Role){.warps = 1, .instances = 1};
    program->roles[1] = (Role){.warps = 4, .instances = 1, .warpgroups = often(program, 50)};
    program->pipe_count = 1;
    Pipe *pipe = &program->pipes[0];
    *pipe = (Pipe){.depth = 1 + (int)pick(program, 3),
                   .consumers = {1},
                   .consumer_count = 1,
                   .used = true,
                   .field_count = MAX_FIELDS};
    Stmt *block = grid_of_block(&e, 0, true);
    for (int f = 0; f < MAX_FIELDS; f++) {
        pipe->fields[f] = (Field){.copied = true, .rank = 1, .extents = {WIDE}};
        e.ends[f] = ends[pick(program, COUNT_OF(ends))];
        load(&e, f, block);
    }
    e.data = tensor_new(program, "D", TENSOR_IN, FILL_DATA, 1);
    program->tensors[e.data].extents[0].symbol = SYM_G;
    block = grid_of_block(&e, 1, false);
    for (int tiles = 1 + (int)pick(program, TILES_MOST); tiles > 0; tiles--)
        draw_tile(&e, &block->body);
    for (uint32_t outputs = 1 + pick(program, 2); outputs > 0; outputs--) output(&e, &block->body);
}
