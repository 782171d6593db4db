/* Programs whose producer holds stages from tile to tile of the grid. Its consumer takes some of
 * the additional stages before its loop over the grid, and the rest after it. */
#include "tests/adversary/draw.h"

#define WINDOW_MOST 3

typedef struct Sketch {
    Program *program;
    int holder, user, other; /* roles; other: -1: none */
    int start, held, extra;  /* pipes; -1: none */
    int handles[WINDOW_MOST], window;
    bool early, by_tile; /* stages are filled when they are acquired; with the number of the tile */
} Sketch;

static const Expr *n(Sketch *h, int64_t value) { return number(h->program, value); }

static int handle_new(Sketch *h, int pipe, bool is_let) {
    int handle = local_new(h->program, LOCAL_HANDLE);
    h->program->locals[handle].pipe = pipe;
    h->program->locals[handle].is_let = is_let;
    return handle;
}

static const Expr *element_of(Sketch *h, int handle) {
    return element(h->program, X_FIELD, handle, 0, index_of(h->program, 0), NULL, NULL);
}

static void fill(Sketch *h, int handle, bool in_grid, Stmts *out) {
    Program *program = h->program;
    const Expr *value = binary(program, DO_MUL, index_of(program, 0), n(h, 3));
    if (in_grid && h->by_tile) value = binary(program, DO_ADD, value, any_axis(program));
    stmts_add(program, out, assign(program, element_of(h, handle), '=', value));
}

/* Assigned to the variable, or into a new one */
static void acquire(Sketch *h, int handle, bool fresh, Stmts *out) {
    Stmt *stmt = stmt_of_handle(h->program, S_ACQUIRE, handle, -1);
    stmt->pipe = h->held;
    stmt->produce = true;
    stmt->fresh = fresh;
    stmts_add(h->program, out, stmt);
}

static Stmt *block_of(Sketch *h, int pipe, bool produce, Stmts *out) {
    Stmt *block = stmt_of_handle(h->program, S_STAGE, handle_new(h, pipe, true), -1);
    block->pipe = pipe;
    block->produce = produce;
    stmts_add(h->program, out, block);
    if (produce) fill(h, block->local, false, &block->body);
    return block;
}

static Stmt *grid_new(Sketch *h, int role) {
    Stmt *grid = stmt_new(h->program, S_GRID);
    grid->local = h->program->axes[0].local;
    stmts_add(h->program, &h->program->roles[role].body, grid);
    return grid;
}

/* ---- the producer ---------------------------------------------------------------------------- */

/* One stage is passed on and one is acquired: after that, or before it into another variable. */
static void shift(Sketch *h, Stmts *out) {
    Program *program = h->program;
    int last = h->window - 1, next = -1;
    if (often(program, 50)) {
        next = handle_new(h, h->held, true);
        acquire(h, next, true, out);
        if (h->early) fill(h, next, true, out);
    }
    if (!h->early) fill(h, h->handles[0], true, out);
    stmts_add(program, out, stmt_of_handle(h->program, S_RELEASE, h->handles[0], -1));
    for (int d = 0; d < last; d++)
        stmts_add(program, out,
                  stmt_of_handle(h->program, S_MOVE, h->handles[d], h->handles[d + 1]));
    if (next >= 0) {
        stmts_add(program, out, stmt_of_handle(h->program, S_MOVE, h->handles[last], next));
        return;
    }
    acquire(h, h->handles[last], false, out);
    if (h->early) fill(h, h->handles[last], true, out);
}

static void draw_holder(Sketch *h) {
    Program *program = h->program;
    Stmts *body = &program->roles[h->holder].body;
    if (h->start >= 0) block_of(h, h->start, false, body);
    for (int d = 0; d < h->window; d++) {
        h->handles[d] = handle_new(h, h->held, false);
        acquire(h, h->handles[d], true, body);
        if (h->early) fill(h, h->handles[d], false, body);
    }
    Stmt *grid = grid_new(h, h->holder);
    shift(h, &grid->body);
    for (int d = 0; d < h->window; d++) {
        if (!h->early) fill(h, h->handles[d], false, body);
        stmts_add(program, body, stmt_of_handle(h->program, S_RELEASE, h->handles[d], -1));
    }
}

/* ---- the others ------------------------------------------------------------------------------ */

/* Y[t, i] = y[i] */
static void output(Sketch *h, int tile, Stmts *out) {
    Program *program = h->program;
    const char *name = arena_printf(program->arena, "Y%d", program->tensor_count);
    int tensor = tensor_new(program, name, TENSOR_OUT, FILL_ROWS, 2);
    const Expr *i = index_of(program, 0), *axis = local_of(program, program->axes[0].local);
    program->tensors[tensor].extents[0].symbol = SYM_G;
    program->tensors[tensor].extents[1].number = WIDE;
    stmts_add(program, out,
              assign(program, element(program, X_TENSOR, tensor, 0, axis, i, NULL), '=',
                     element(program, X_TILE, tile, 0, i, NULL, NULL)));
}

/* Sums the stages of a tile and stores the sums */
static void sum_stages(Sketch *h, int pipe, bool reads, Stmts *out) {
    Program *program = h->program;
    Stmt *declare = stmt_new(program, S_DECLARE);
    int tile = declare->local = tile_new(program, LOCAL_TILE, 1, WIDE, 0);
    const Expr *sum = element(program, X_TILE, tile, 0, index_of(program, 0), NULL, NULL);
    declare->value = n(h, 1);
    stmts_add(program, out, declare);
    Stmt *block = block_of(h, pipe, false, out);
    if (reads)
        stmts_add(program, &block->body, assign(program, sum, '+', element_of(h, block->local)));
    output(h, tile, out);
}

static void draw_user(Sketch *h) {
    Program *program = h->program;
    Stmts *body = &program->roles[h->user].body;
    int before = often(program, 40) ? h->window : (int)pick(program, (uint32_t)h->window + 1);
    if (h->start >= 0) block_of(h, h->start, true, body);
    for (int d = 0; d < before; d++) block_of(h, h->held, false, body);
    Stmt *grid = grid_new(h, h->user);
    bool first = often(program, 50);
    if (h->extra >= 0 && first) block_of(h, h->extra, true, &grid->body);
    sum_stages(h, h->held, often(program, 70), &grid->body);
    if (h->extra >= 0 && !first) block_of(h, h->extra, true, &grid->body);
    for (int d = before; d < h->window; d++) block_of(h, h->held, false, body);
}

static int pipe_new(Sketch *h, int producer, int consumer, int depth) {
    Program *program = h->program;
    Pipe *pipe = &program->pipes[program->pipe_count];
    *pipe = (Pipe){.depth = depth,
                   .producer = producer,
                   .consumers = {consumer},
                   .consumer_count = 1,
                   .used = true,
                   .field_count = 1};
    pipe->fields[0] = (Field){.rank = 1, .extents = {WIDE}};
    return program->pipe_count++;
}

void draw_held(Program *program) {
    Sketch h = {.program = program, .other = -1, .start = -1, .extra = -1};
    program->persistent = often(program, 95);
    axis_add(program, symbol(program, SYM_G), 1);
    program->role_count = often(program, 30) ? 3 : 2;
    for (int r = 0; r < program->role_count; r++)
        program->roles[r] = (Role){.warps = 1, .instances = 1};
    h.holder = (int)pick(program, (uint32_t)program->role_count);
    h.user = (h.holder + 1) % program->role_count;
    if (program->role_count == 3) h.other = (h.holder + 2) % 3;
    h.window = 1 + (int)pick(program, WINDOW_MOST);
    h.early = often(program, 50);
    h.by_tile = often(program, 15);
    if (often(program, 65)) h.start = pipe_new(&h, h.user, h.holder, 1);
    h.held = pipe_new(&h, h.holder, h.user, h.window + (int)pick(program, 4));
    if (h.other >= 0) h.extra = pipe_new(&h, h.user, h.other, 1 + (int)pick(program, 3));
    draw_holder(&h);
    draw_user(&h);
    if (h.other >= 0) sum_stages(&h, h.extra, true, &grid_new(&h, h.other)->body);
}
