/* Programs that name elements of tiles, some beyond the edge of the tensor that the tile was read
 * from: neighbours, the other end, the element at an extent, one at a time. Masks replace some of
 * them; others are zero, or what the program has computed from zeros. */
#include "tests/adversary/draw.h"

#define TILES_MOST 3

typedef struct Sketch {
    Program *program;
    int handle, axis, data; /* handle: -1: the role reads the tensors itself; data: of the tiles */
    int fields;
    int tiles[TILES_MOST], tile_count;
    Symbol ends[MAX_FIELDS]; /* extents of the tensors */
    Stmts *out;
} Sketch;

static const Expr *n(Sketch *s, int64_t value) { return number(s->program, value); }

static const Expr *more(Sketch *s, Op op, const Expr *a, const Expr *b) {
    return binary(s->program, op, a, b);
}

/* Of a field of the stage, or of a tile that was computed before */
static const Expr *source_at(Sketch *s, int which, const Expr *sub) {
    if (which < s->fields) return element(s->program, X_FIELD, s->handle, which, sub, NULL, NULL);
    return element(s->program, X_TILE, s->tiles[which - s->fields], 0, sub, NULL, NULL);
}

static int any_source(Sketch *s) {
    int count = s->fields + s->tile_count;
    bool last = s->tile_count > 0 && often(s->program, 50);
    return last ? count - 1 : (int)pick(s->program, (uint32_t)count);
}

static const Expr *position(Sketch *s, const Expr *sub) {
    return more(s, DO_ADD, more(s, DO_MUL, local_of(s->program, s->axis), n(s, WIDE)), sub);
}

/* ---- positions ------------------------------------------------------------------------------- */

/* Of an element, or of a neighbour or the one at the other end */
static const Expr *moved(Sketch *s, const Expr *at) {
    Program *program = s->program;
    int64_t by = 1 + pick(program, 3);
    switch (pick(program, 6)) {
    case 0:
    case 1: return more(s, DO_MIN, more(s, DO_ADD, at, n(s, by)), n(s, WIDE - 1));
    case 2: return more(s, DO_MAX, more(s, DO_SUB, at, n(s, by)), n(s, 0));
    case 3: return more(s, DO_SUB, n(s, WIDE - 1), at);
    case 4: return more(s, DO_MOD, more(s, DO_ADD, at, n(s, by)), n(s, WIDE));
    default: return at;
    }
}

/* Of one element: a number, the last one inside, the first one beyond, one of all tiles */
static const Expr *single(Sketch *s) {
    Program *program = s->program;
    const Expr *end = symbol(program, s->ends[pick(program, MAX_FIELDS)]),
               *left = more(s, DO_SUB, end, position(s, n(s, pick(program, 2))));
    switch (pick(program, 5)) {
    case 0:
    case 1: return n(s, often(program, 50) ? 0 : pick(program, WIDE));
    case 2: return more(s, DO_MIN, more(s, DO_MAX, left, n(s, 0)), n(s, WIDE - 1));
    case 3: return more(s, DO_MIN, end, n(s, WIDE - 1));
    default: return more(s, DO_MIN, local_of(program, s->axis), n(s, WIDE - 1));
    }
}

/* Most are right for one of the tensors; some are of another position, or wrong by one element. */
static const Expr *mask(Sketch *s, const Expr *sub) {
    Program *program = s->program;
    bool other = expr_mentions(sub, X_INDEX, 0) && often(program, 10);
    const Expr *end = symbol(program, s->ends[pick(program, MAX_FIELDS)]),
               *at = other ? index_of(program, 0) : sub;
    const Expr *condition = more(s, often(program, 90) ? DO_LT : DO_LE, position(s, at), end);
    if (often(program, 25))
        condition = more(s, DO_AND, condition, more(s, DO_GE, position(s, at), n(s, 0)));
    return condition;
}

/* ---- values ---------------------------------------------------------------------------------- */

static const Expr *computed(Sketch *s, const Expr *x) {
    Program *program = s->program;
    switch (pick(program, 9)) {
    case 0: return more(s, DO_ADD, x, n(s, 5));
    case 1: return more(s, DO_MUL, x, n(s, 2));
    case 2: return more(s, DO_MAX, x, n(s, pick(program, 2)));
    case 3: return choose(program, more(s, DO_GT, x, n(s, 0)), n(s, 1), n(s, 2 * pick(program, 2)));
    case 4: return more(s, DO_SUB, x, symbol(program, SYM_Q));
    case 6:
        return more(s, DO_ADD, x,
                    element(program, X_TENSOR, s->data, 0, local_of(program, s->axis), NULL, NULL));
    case 5: return more(s, DO_MUL, x, x);
    default: return x;
    }
}

/* Of the element at `sub`; of one source, or what a mask chose for it */
static const Expr *term(Sketch *s, const Expr *sub, int masked) {
    Program *program = s->program;
    const Expr *x = source_at(s, any_source(s), sub);
    if (often(program, 30)) x = computed(s, x);
    if (!often(program, (uint32_t)masked)) return x;
    return choose(program, mask(s, sub), x, n(s, often(program, 70) ? 0 : 7));
}

static const Expr *value(Sketch *s, const Expr *at, int masked) {
    static const Op ops[] = {DO_ADD, DO_ADD, DO_MAX, DO_MIN, DO_MUL, DO_SUB};
    Program *program = s->program;
    const Expr *x = term(s, often(program, 50) ? at : moved(s, at), masked);
    if (often(program, 40))
        x = more(s, ops[pick(program, COUNT_OF(ops))], x, term(s, moved(s, at), masked));
    if (often(program, 10))
        x = choose(program, more(s, DO_GT, term(s, moved(s, at), masked), n(s, pick(program, 2))),
                   x, n(s, pick(program, 2)));
    return x;
}

/* ---- statements ------------------------------------------------------------------------------ */

static Stmt *write(Sketch *s, const Expr *to, const Expr *from, Stmts *out) {
    int extents[MAX_INDEXES] = {0};
    Stmt *stmt = assign(s->program, to, '=', from);
    find_extents(s->program, to, extents);
    find_extents(s->program, from, extents);
    bool indexed = expr_mentions(to, X_INDEX, 0) || expr_mentions(from, X_INDEX, 0);
    if (indexed && extents[0] == 0) stmt->ranged = WIDE;
    stmts_add(s->program, out, stmt);
    return stmt;
}

static int tile_of(Sketch *s) {
    Stmt *declare = stmt_new(s->program, S_DECLARE);
    declare->local = tile_new(s->program, LOCAL_SHARED, 1, WIDE, 0);
    stmts_add(s->program, s->out, declare);
    return declare->local;
}

static const Expr *input(Sketch *s, int which) {
    static const char *const names[MAX_FIELDS] = {"U", "V"};
    Program *program = s->program;
    int tensor = tensor_new(program, names[which], TENSOR_IN, FILL_TAIL, 1);
    const Expr *at = position(s, index_of(program, 0));
    program->tensors[tensor].extents[0].symbol = (int)s->ends[which];
    if (often(program, 12)) at = more(s, DO_ADD, at, n(s, 4));
    return element(program, X_TENSOR, tensor, 0, at, NULL, NULL);
}

static void draw_tile(Sketch *s) {
    Program *program = s->program;
    const Expr *i = index_of(program, 0), *from = value(s, i, 25);
    int tile = tile_of(s);
    write(s, element(program, X_TILE, tile, 0, i, NULL, NULL), from, s->out);
    s->tiles[s->tile_count++] = tile;
}

static const Expr *output(Sketch *s, int symbol, const Expr *at) {
    Program *program = s->program;
    const char *name = arena_printf(program->arena, "Y%d", program->tensor_count);
    int tensor = tensor_new(program, name, TENSOR_OUT, FILL_TAIL, 1);
    program->tensors[tensor].extents[0].symbol = symbol;
    return element(program, X_TENSOR, tensor, 0, at, NULL, NULL);
}

static void write_tile(Sketch *s) {
    Program *program = s->program;
    const Expr *i = index_of(program, 0);
    int end = (int)s->ends[often(program, 80) ? 0 : 1];
    Stmt *stmt = write(s, output(s, end, position(s, i)), value(s, i, 40), s->out);
    if (often(program, 20)) stmt->condition = mask(s, i);
}

/* Elements one by one */
static void write_by_hand(Sketch *s) {
    Program *program = s->program;
    int counter = local_new(program, LOCAL_LOOP);
    const Expr *c = local_of(program, counter);
    Stmt *loop = for_new(program, counter, n(s, WIDE)), *guard = if_new(program, mask(s, c));
    bool guards = often(program, 30);
    const Expr *to = output(s, (int)s->ends[0], position(s, c));
    write(s, to, value(s, c, 20), guards ? &guard->body : &loop->body);
    if (guards) stmts_add(program, &loop->body, guard);
    stmts_add(program, s->out, loop);
}

static const Expr *within(Sketch *s, const Expr *value, int64_t most) {
    return more(s, DO_MIN, more(s, DO_MAX, value, n(s, 0)), n(s, most));
}

/* A named element decides where an element is written, or how often one is added to */
static void write_decided(Sketch *s, const Expr *to, const Expr *from) {
    Program *program = s->program;
    if (often(program, 50)) {
        const Expr *at = more(s, DO_ADD, more(s, DO_MUL, local_of(program, s->axis), n(s, 4)),
                              within(s, from, 3));
        int tensor = to->of;
        program->tensors[tensor].extents[0].symbol = -1;
        program->tensors[tensor].extents[0].number = 4 * 50;
        write(s, element(program, X_TENSOR, tensor, 0, at, NULL, NULL), n(s, 1), s->out);
        return;
    }
    Stmt *declare = stmt_new(program, S_DECLARE), *add = stmt_new(program, S_SET),
         *loop = for_new(program, local_new(program, LOCAL_LOOP), within(s, from, 4));
    declare->local = add->local = local_new(program, LOCAL_SCALAR);
    declare->value = n(s, 0);
    add->op = '+';
    add->value = n(s, 1);
    stmts_add(program, &loop->body, add);
    stmts_add(program, s->out, declare);
    stmts_add(program, s->out, loop);
    write(s, to, local_of(program, declare->local), s->out);
}

/* An element of the output for the tile, from one of the tile: alone, through a variable, or as a
 * condition */
static void write_single(Sketch *s) {
    Program *program = s->program;
    const Expr *to = output(s, SYM_G, local_of(program, s->axis)), *from = value(s, single(s), 40);
    uint32_t dice = pick(program, 5);
    if (dice == 3) {
        write_decided(s, to, from);
        return;
    }
    if (dice == 1) {
        Stmt *declare = stmt_new(program, S_DECLARE);
        declare->local = local_new(program, LOCAL_SCALAR);
        declare->value = from;
        stmts_add(program, s->out, declare);
        from = computed(s, local_of(program, declare->local));
    }
    Stmt *arms = if_new(program, more(s, DO_GT, from, n(s, pick(program, 2))));
    if (dice == 2) {
        write(s, to, n(s, 1), &arms->body);
        if (often(program, 50)) write(s, to, n(s, 2), &arms->otherwise);
        stmts_add(program, s->out, arms);
    } else if (dice == 4) {
        Stmt *declare = stmt_new(program, S_DECLARE), *set = stmt_new(program, S_SET);
        declare->local = set->local = local_new(program, LOCAL_SCALAR);
        declare->value = n(s, 0);
        set->op = '=';
        set->value = n(s, 3);
        stmts_add(program, &arms->body, set);
        stmts_add(program, s->out, declare);
        stmts_add(program, s->out, arms);
        write(s, to, local_of(program, set->local), s->out);
    } else {
        write(s, to, from, s->out);
    }
}

/* ---- the program ----------------------------------------------------------------------------- */

static Stmts *begin_role(Sketch *s, int role) {
    Program *program = s->program;
    Stmt *grid = stmt_new(program, S_GRID);
    grid->local = s->axis;
    stmts_add(program, &program->roles[role].body, grid);
    return &grid->body;
}

static Stmt *stage_of(Sketch *s, bool produce, Stmts *out) {
    Stmt *block = stmt_new(s->program, S_STAGE);
    block->produce = produce;
    block->local = s->handle;
    block->pipe = s->program->locals[s->handle].pipe;
    stmts_add(s->program, out, block);
    return block;
}

/* A role that copies both tensors into stages */
static void draw_load(Sketch *s) {
    Program *program = s->program;
    s->handle = local_new(program, LOCAL_HANDLE);
    program->locals[s->handle].pipe = 0;
    program->pipe_count = 1;
    program->pipes[0] = (Pipe){.depth = 1 + (int)pick(program, 3),
                               .consumers = {1},
                               .consumer_count = 1,
                               .used = true,
                               .field_count = MAX_FIELDS};
    Stmt *block = stage_of(s, true, begin_role(s, 0));
    s->fields = MAX_FIELDS;
    for (int f = 0; f < MAX_FIELDS; f++) {
        program->pipes[0].fields[f] = (Field){.copied = true, .rank = 1, .extents = {WIDE}};
        write(s, source_at(s, f, index_of(program, 0)), input(s, f), &block->body);
    }
    s->out = &stage_of(s, false, begin_role(s, 1))->body;
}

static void draw_reads(Sketch *s) {
    Program *program = s->program;
    s->out = begin_role(s, 0);
    for (int f = 0; f < MAX_FIELDS; f++) {
        int tile = tile_of(s);
        write(s, element(program, X_TILE, tile, 0, index_of(program, 0), NULL, NULL), input(s, f),
              s->out);
        s->tiles[s->tile_count++] = tile;
    }
}

/* What was computed goes through another pipe; its consumer writes the outputs. */
static void pass_on(Sketch *s) {
    Program *program = s->program;
    int pipe = program->pipe_count++, role = program->role_count++;
    program->roles[role] = (Role){.warps = 1, .instances = 1};
    program->pipes[pipe] = (Pipe){.depth = 1 + (int)pick(program, 2),
                                  .producer = role - 1,
                                  .consumers = {role},
                                  .consumer_count = 1,
                                  .used = true,
                                  .field_count = 1};
    program->pipes[pipe].fields[0] = (Field){.rank = 1, .extents = {WIDE}};
    const Expr *from = value(s, index_of(program, 0), 25);
    if (often(program, 25)) from = more(s, DO_ADD, from, value(s, single(s), 25));
    s->handle = local_new(program, LOCAL_HANDLE);
    program->locals[s->handle].pipe = pipe;
    Stmt *block = stage_of(s, true, s->out);
    const Expr *i = index_of(program, 0);
    write(s, element(program, X_FIELD, s->handle, 0, i, NULL, NULL), from, &block->body);
    s->fields = 1, s->tile_count = 0;
    s->out = &stage_of(s, false, begin_role(s, role))->body;
}

void draw_named(Program *program) {
    static const Symbol ends[] = {SYM_N, SYM_N, SYM_M};
    Sketch s = {.program = program, .handle = -1};
    program->persistent = often(program, 60);
    program->tails = program->named = program->traits[TRAIT_NAMED] = true;
    axis_add(program, symbol(program, SYM_G), 1);
    s.axis = program->axes[0].local;
    for (int f = 0; f < MAX_FIELDS; f++) s.ends[f] = ends[pick(program, COUNT_OF(ends))];
    s.data = tensor_new(program, "D", TENSOR_IN, FILL_SMALL, 1);
    program->tensors[s.data].extents[0].symbol = SYM_G;
    bool pipe = often(program, 60);
    program->role_count = 1 + pipe;
    for (int r = 0; r <= pipe; r++) program->roles[r] = (Role){.warps = 1, .instances = 1};
    if (pipe)
        draw_load(&s);
    else
        draw_reads(&s);
    while (s.tile_count < TILES_MOST && often(program, 75)) draw_tile(&s);
    if (often(program, 30)) pass_on(&s);
    for (uint32_t outputs = 1 + pick(program, 2); outputs > 0; outputs--) {
        uint32_t dice = pick(program, 10);
        if (dice < 5)
            write_tile(&s);
        else if (dice < 6)
            write_by_hand(&s);
        else
            write_single(&s);
    }
}
