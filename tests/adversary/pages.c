/* Programs that read pages of a tensor, whose numbers they read from memory: stages and register
 * tiles of other pages than the present one, under masks of some page. */
#include "tests/adversary/draw.h"

typedef struct Sketch {
    Program *program;
    int input, table, output; /* tensors */
    int numbers;              /* the shared tile of the page numbers */
    int page, held, sum;      /* scalars: of this iteration, of an earlier one */
    int first;                /* number in the table */
    int lag;                  /* iterations from the copy of a page to its use */
    Stmts *out;               /* the body of the loop over the grid */
} Sketch;

static const Expr *n(Sketch *s, int64_t value) { return number(s->program, value); }

static int tensor_of(Sketch *s, const char *name, Mode mode, Contents contents, int symbol) {
    int tensor = tensor_new(s->program, name, mode, contents, 1);
    s->program->tensors[tensor].extents[0].symbol = symbol;
    if (symbol < 0) s->program->tensors[tensor].extents[0].number = WIDE;
    return tensor;
}

static void declare(Sketch *s, int local, const Expr *value) {
    Stmt *stmt = stmt_new(s->program, S_DECLARE);
    stmt->local = local;
    stmt->value = value;
    stmts_add(s->program, s->out, stmt);
}

static int scalar_new(Sketch *s) {
    int local = local_new(s->program, LOCAL_SCALAR);
    declare(s, local, n(s, 0));
    return local;
}

static void set(Sketch *s, int local, char op, const Expr *value, Stmts *out) {
    Stmt *stmt = stmt_new(s->program, S_SET);
    stmt->local = local;
    stmt->op = op;
    stmt->value = value;
    stmts_add(s->program, out, stmt);
}

static const Expr *tile_at(Sketch *s, int tile, const Expr *sub) {
    return element(s->program, X_TILE, tile, 0, sub, NULL, NULL);
}

/* Of the input: at an index, in the page with the number in the variable */
static const Expr *place(Sketch *s, int page, const Expr *index) {
    Program *program = s->program;
    const Expr *base = binary(program, DO_MUL, local_of(program, page), n(s, WIDE));
    return binary(program, DO_ADD, base, index);
}

static const Expr *input_at(Sketch *s, const Expr *index) {
    return element(s->program, X_TENSOR, s->input, 0, place(s, s->page, index), NULL, NULL);
}

/* The variables, and the numbers of the pages: of this role */
static Stmts *begin_role(Sketch *s, int role) {
    Program *program = s->program;
    Stmt *grid = stmt_new(program, S_GRID);
    grid->local = program->axes[0].local;
    stmts_add(program, &program->roles[role].body, grid);
    s->out = &grid->body;
    s->page = scalar_new(s), s->held = scalar_new(s), s->sum = scalar_new(s);
    s->numbers = tile_new(program, LOCAL_SHARED, 1, WIDE, 0);
    declare(s, s->numbers, NULL);
    const Expr *i = index_of(program, 0);
    stmts_add(program, s->out,
              assign(program, tile_at(s, s->numbers, i), '=',
                     element(program, X_TENSOR, s->table, 0, i, NULL, NULL)));
    return s->out;
}

static Stmt *loop_of(Sketch *s, int64_t trips) {
    Stmt *loop = for_new(s->program, local_new(s->program, LOCAL_LOOP), n(s, trips));
    stmts_add(s->program, s->out, loop);
    return loop;
}

/* Of an iteration from this one on */
static void read_number(Sketch *s, const Stmt *loop, int ahead, Stmts *out) {
    Program *program = s->program;
    const Expr *k = binary(program, DO_ADD, local_of(program, loop->local), n(s, s->first + ahead));
    const Expr *number = tile_at(s, s->numbers, k);
    set(s, s->page, '=', binary(program, DO_SUB, number, n(s, 1)), out);
}

static void write_sum(Sketch *s) {
    Program *program = s->program;
    stmts_add(program, s->out,
              assign(program,
                     element(program, X_TENSOR, s->output, 0, any_axis(program), NULL, NULL), '=',
                     local_of(program, s->sum)));
}

static Stmt *stage_of(Sketch *s, bool produce, Stmts *out) {
    Program *program = s->program;
    Stmt *block = stmt_of_handle(program, S_STAGE, local_new(program, LOCAL_HANDLE), -1);
    program->locals[block->local].pipe = 0;
    block->pipe = 0;
    block->produce = produce;
    stmts_add(program, out, block);
    return block;
}

static const Expr *field_at(Sketch *s, const Stmt *stage, const Expr *sub) {
    return element(s->program, X_FIELD, stage->local, 0, sub, NULL, NULL);
}

/* Copies the page into a stage, and perhaps keeps its number. */
static void fill(Sketch *s, Stmts *out) {
    Program *program = s->program;
    Stmt *stage = stage_of(s, true, out);
    const Expr *i = index_of(program, 0);
    Stmt *copy = assign(program, field_at(s, stage, i), '=', input_at(s, i));
    copy->by_lanes = true;
    stmts_add(program, &stage->body, copy);
    if (often(program, 50)) set(s, s->held, '=', local_of(program, s->page), out);
}

static void add(Sketch *s, const Expr *value, Stmts *out) {
    set(s, s->sum, '+', reduced(s->program, DO_ADD, 2, value), out);
}

/* A sum of a page, which padding changes, under a mask of a page or without one */
static const Expr *masked(Sketch *s, const Expr *value) {
    Program *program = s->program;
    const Expr *at = place(s, often(program, 60) ? s->page : s->held, index_of(program, 2));
    value = binary(program, DO_ADD, value, n(s, 1));
    if (often(program, 10)) return value;
    const Expr *mask = binary(program, DO_AND, binary(program, DO_GE, at, n(s, 0)),
                              binary(program, DO_LT, at, symbol(program, SYM_N)));
    return choose(program, mask, value, n(s, 0));
}

static void use(Sketch *s, Stmts *out) {
    Stmt *stage = stage_of(s, false, out);
    add(s, masked(s, field_at(s, stage, index_of(s->program, 2))), &stage->body);
}

/* A role that copies pages for itself, some iterations ahead */
static void draw_own(Sketch *s) {
    Program *program = s->program;
    int64_t trips = 2 + pick(program, 3);
    bool first = often(program, 50), late = often(program, 30);
    begin_role(s, 0);
    Stmt *loop = loop_of(s, trips + s->lag), *earlier, *later;
    const Expr *k = local_of(program, loop->local);
    if (!late) read_number(s, loop, 0, &loop->body);
    earlier = if_new(program, binary(program, DO_LT, k, n(s, trips)));
    later = if_new(program, binary(program, DO_GE, k, n(s, s->lag)));
    fill(s, &earlier->body);
    use(s, &later->body);
    stmts_add(program, &loop->body, first || s->lag == 0 ? earlier : later);
    if (late) read_number(s, loop, 0, &loop->body);
    stmts_add(program, &loop->body, first || s->lag == 0 ? later : earlier);
    write_sum(s);
}

/* The products of two stages, of one page or of two, where padding of one is no factor 0; some have
 * stages from two pages in an iteration */
static void draw_pairs(Sketch *s) {
    Program *program = s->program;
    bool same = often(program, 40);
    begin_role(s, 0);
    Stmt *loop = loop_of(s, 4);
    read_number(s, loop, 0, &loop->body);
    for (int i = 0; i <= same; i++) {
        if (i > 0 && often(program, 30)) read_number(s, loop, 1, &loop->body);
        fill(s, &loop->body);
    }
    begin_role(s, 1);
    loop = loop_of(s, same ? 4 : 2);
    Stmt *outer = stage_of(s, false, &loop->body), *inner = stage_of(s, false, &outer->body);
    const Expr *x = index_of(program, 2), *one = field_at(s, outer, x),
               *two = field_at(s, inner, x);
    add(s, binary(program, DO_MUL, one, binary(program, DO_ADD, two, n(s, 1))), &inner->body);
    write_sum(s);
}

/* The products of the page in a register tile, of this iteration or the one before, and another */
static void draw_kept(Sketch *s) {
    Program *program = s->program;
    begin_role(s, 0);
    int kept = tile_new(program, LOCAL_TILE, 1, WIDE, 0),
        now = tile_new(program, LOCAL_TILE, 1, WIDE, 0);
    const Expr *i = index_of(program, 0), *x = index_of(program, 2);
    declare(s, kept, NULL);
    stmts_add(program, s->out, assign(program, tile_at(s, kept, i), '=', n(s, 0)));
    Stmt *loop = loop_of(s, 4);
    read_number(s, loop, 0, &loop->body);
    Stmts *outer = s->out;
    s->out = &loop->body;
    declare(s, now, NULL);
    s->out = outer;
    stmts_add(program, &loop->body, assign(program, tile_at(s, now, i), '=', input_at(s, i)));
    Stmt *keep = assign(program, tile_at(s, kept, i), '=', tile_at(s, now, i));
    bool early = often(program, 40);
    if (early) stmts_add(program, &loop->body, keep);
    const Expr *value = binary(program, DO_ADD, tile_at(s, now, x), n(s, 1));
    add(s, binary(program, DO_MUL, tile_at(s, kept, x), value), &loop->body);
    if (!early) stmts_add(program, &loop->body, keep);
    write_sum(s);
}

void draw_pages(Program *program) {
    Sketch s = {.program = program, .first = (int)pick(program, 20), .lag = (int)pick(program, 3)};
    uint32_t kind = pick(program, 3);
    program->persistent = often(program, 50);
    program->tails = program->traits[TRAIT_PAGES] = true;
    axis_add(program, symbol(program, SYM_G), 1);
    program->role_count = kind == 1 ? 2 : 1;
    program->roles[0] = program->roles[1] = (Role){.warps = 1, .instances = 1};
    program->pipe_count = kind == 2 ? 0 : 1;
    program->pipes[0] = (Pipe){
        .depth = 3, .consumers = {kind == 1}, .consumer_count = 1, .used = true, .field_count = 1};
    program->pipes[0].fields[0] = (Field){.copied = true, .rank = 1, .extents = {WIDE}};
    s.input = tensor_of(&s, "X", TENSOR_IN, FILL_TAIL, SYM_N);
    s.table = tensor_of(&s, "P", TENSOR_IN, FILL_SMALL, -1);
    s.output = tensor_of(&s, "Y", TENSOR_OUT, FILL_TAIL, SYM_G);
    if (kind == 0) draw_own(&s);
    if (kind == 1) draw_pairs(&s);
    if (kind == 2) draw_kept(&s);
}
