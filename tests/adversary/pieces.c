/* Programs whose roles cut a range into different parts, with masks in some of them; and programs
 * that loops leave at conditions on several counters. */
#include "tests/adversary/draw.h"

typedef struct Sketch {
    Program *program;
    int rows, input, output; /* tensors */
    int role, sum;           /* sum: of the role that consumes */
    bool most;               /* it is a maximum */
} Sketch;

static const Expr *n(Sketch *s, int64_t value) { return number(s->program, value); }

static int tensor_of(Sketch *s, const char *name, Mode mode, int rank) {
    int tensor = tensor_new(s->program, name, mode, FILL_TAIL, rank);
    s->program->tensors[tensor].extents[0].symbol = SYM_G;
    return tensor;
}

static void roles_of(Sketch *s) {
    Program *program = s->program;
    program->persistent = often(program, 80);
    axis_add(program, symbol(program, SYM_G), 1);
    program->role_count = 2;
    program->roles[0] = (Role){.warps = 1, .instances = 1};
    program->roles[1] = (Role){.warps = 4, .instances = 1, .warpgroups = often(program, 50)};
    program->pipe_count = 1;
    program->pipes[0] = (Pipe){.depth = 2 + (int)pick(program, 3),
                               .consumers = {1},
                               .consumer_count = 1,
                               .used = true,
                               .field_count = 1};
    program->pipes[0].fields[0] = (Field){.copied = true, .rank = 1, .extents = {WIDE}};
}

static Stmt *stage_of(Sketch *s, Stmts *out) {
    Program *program = s->program;
    Stmt *block = stmt_of_handle(program, S_STAGE, local_new(program, LOCAL_HANDLE), -1);
    program->locals[block->local].pipe = 0;
    block->pipe = 0;
    block->produce = s->role == 0;
    stmts_add(program, out, block);
    return block;
}

static const Expr *field_at(Sketch *s, int handle, const Expr *sub) {
    return element(s->program, X_FIELD, handle, 0, sub, NULL, NULL);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Where the range is cut: constants; the number of whole tiles; what data or parameters say */
static const Expr *cut(Sketch *s) {
    Program *program = s->program;
    const Expr *whole = binary(program, DO_DIV, symbol(program, SYM_N), n(s, WIDE));
    switch (pick(program, 5)) {
    case 0: return n(s, 1 + pick(program, 2));
    case 1: return binary(program, DO_MAX, n(s, 1), whole);
    case 2:
        return binary(program, DO_MIN,
                      binary(program, DO_MAX, symbol(program, SYM_Q), n(s, 0)), n(s, 3));
    default: return whole;
    }
}

/* A tile of the range: copied, or added to the sum */
static void tile_of_piece(Sketch *s, const Expr *k, bool masked, Stmts *out) {
    Program *program = s->program;
    Stmt *block = stage_of(s, out);
    const Expr *i = index_of(program, 0), *x = index_of(program, 2);
    const Expr *base = binary(program, DO_MUL, k, n(s, WIDE));
    if (s->role == 0) {
        const Expr *from = element(program, X_TENSOR, s->input, 0, any_axis(program),
                                   binary(program, DO_ADD, base, i), NULL);
        stmts_add(program, &block->body,
                  assign(program, field_at(s, block->local, i), '=', from));
        return;
    }
    bool most = s->most;
    const Expr *value = field_at(s, block->local, x);
    if (!most) value = binary(program, DO_ADD, value, n(s, 1));
    if (masked)
        value = choose(program,
                       binary(program, DO_LT, binary(program, DO_ADD, base, x),
                              symbol(program, SYM_N)),
                       value, n(s, most ? -2147483647 : 0));
    value = reduced(program, most ? DO_MAX : DO_ADD, 2, value);
    Stmt *add = stmt_new(program, S_SET);
    add->local = s->sum;
    add->op = most ? '=' : '+';
    add->value = most ? binary(program, DO_MAX, local_of(program, s->sum), value) : value;
    stmts_add(program, &block->body, add);
}

/* From lo to hi; hi: NULL: the rest */
static void piece(Sketch *s, const Expr *lo, const Expr *hi, bool masked, Stmts *out) {
    Program *program = s->program;
    const Expr *end = program->ranges[0];
    Stmt *loop = for_new(program, local_new(program, LOCAL_LOOP), hi);
    bool first = lo->kind == X_NUMBER && lo->number == 0;
    if (often(program, 70)) { /* of the range */
        loop->range = 0;
        loop->sliced = hi != NULL || !first;
        loop->lo = lo;
    } else {
        loop->lo = lo;
        loop->hi = hi == NULL ? end : binary(program, DO_MIN, hi, end);
    }
    tile_of_piece(s, local_of(program, loop->local), masked, &loop->body);
    stmts_add(program, out, loop);
}

static void pieces_of(Sketch *s, const Expr *const *cuts, uint32_t count, Stmts *out) {
    Program *program = s->program;
    const Expr *lo = n(s, 0);
    for (uint32_t c = 0; c <= count; c++) {
        const Expr *hi = c < count ? cuts[c] : NULL;
        bool masked = often(program, hi == NULL ? 85 : 40);
        if (often(program, 3)) lo = binary(program, DO_ADD, lo, n(s, 1)); /* one is left out */
        piece(s, lo, hi, masked, out);
        lo = hi;
    }
}

static void draw_piece_role(Sketch *s) {
    Program *program = s->program;
    Stmt *grid = stmt_new(program, S_GRID);
    grid->local = program->axes[0].local;
    stmts_add(program, &program->roles[s->role].body, grid);
    if (s->role == 1) {
        Stmt *declare = stmt_new(program, S_DECLARE);
        declare->local = s->sum;
        declare->value = n(s, s->most ? -2147483647 : 0);
        stmts_add(program, &grid->body, declare);
    }
    const Expr *cuts[] = {cut(s), cut(s)};
    uint32_t count = pick(program, 3);
    if (count == 2) cuts[1] = binary(program, DO_MAX, cuts[0], cuts[1]);
    pieces_of(s, cuts, count, &grid->body);
    if (s->role == 1)
        stmts_add(program, &grid->body,
                  assign(program,
                         element(program, X_TENSOR, s->output, 0, any_axis(program), NULL, NULL),
                         '=', local_of(program, s->sum)));
}

void draw_pieces(Program *program) {
    Sketch s = {.program = program};
    roles_of(&s);
    program->tails = program->traits[TRAIT_PIECES] = true;
    s.input = tensor_of(&s, "X", TENSOR_IN, 2);
    program->tensors[s.input].extents[1].symbol = SYM_N;
    s.output = tensor_of(&s, "Y", TENSOR_OUT, 1);
    range_of(program, binary(program, DO_CEIL, symbol(program, SYM_N), n(&s, WIDE)));
    s.sum = local_new(program, LOCAL_SCALAR);
    s.most = often(program, 50);
    for (s.role = 0; s.role < 2; s.role++) draw_piece_role(&s);
}

/* ---- exits ----------------------------------------------------------------------------------- */

/* m * factor + t against q, in one of several ways */
static const Expr *exit_condition(Sketch *s, const Expr *m, const Expr *t, int64_t factor,
                                  uint32_t form) {
    Program *program = s->program;
    const Expr *q = symbol(program, SYM_Q), *sum;
    sum = binary(program, DO_ADD, binary(program, DO_MUL, m, n(s, factor)), t);
    switch (form) {
    case 0: return binary(program, DO_GE, sum, q);
    case 1: return binary(program, DO_LE, q, sum);
    case 2: return binary(program, DO_GT, binary(program, DO_ADD, sum, n(s, 1)), q);
    case 3:
        return binary(program, DO_GE, binary(program, DO_MUL, sum, n(s, 2)),
                      binary(program, DO_MUL, q, n(s, 2)));
    default:
        return binary(program, DO_GE, t,
                      binary(program, DO_SUB, q, binary(program, DO_MUL, m, n(s, factor))));
    }
}

static void draw_exit_role(Sketch *s, Leave how, int64_t factor, bool extra) {
    Program *program = s->program;
    const Expr *i = index_of(program, 0), *rows = symbol(program, SYM_K);
    Stmt *grid = stmt_new(program, S_GRID), *leave = stmt_new(program, S_LEAVE);
    Stmt *outer = for_new(program, local_new(program, LOCAL_LOOP), rows),
         *inner = for_new(program, local_new(program, LOCAL_LOOP), symbol(program, SYM_R));
    const Expr *m = local_of(program, outer->local), *t = local_of(program, inner->local);
    grid->local = program->axes[0].local;
    leave->leave = how;
    Stmt *guard = if_new(program, exit_condition(s, m, t, factor,
                                                 often(program, 60) ? 0 : pick(program, 5)));
    stmts_add(program, &guard->body, leave);
    stmts_add(program, &inner->body, guard);
    for (int more = 0; more <= extra; more++) {
        Stmt *block = stage_of(s, more ? &outer->body : &inner->body);
        const Expr *field = field_at(s, block->local, i);
        const Expr *from = element(program, X_TENSOR, s->input, 0, m, more ? n(s, 0) : t, i);
        const Expr *to = element(program, X_TENSOR, s->output, 0, any_axis(program),
                                 more ? n(s, 0) : binary(program, DO_ADD, t, n(s, 1)), i);
        if (often(program, 30) && s->program->pipes[0].depth > 2 && s->role == 1) block->lag = 1;
        stmts_add(program, &block->body,
                  s->role == 0 ? assign(program, field, '=', from)
                               : assign(program, to, '=', field));
    }
    stmts_add(program, &outer->body, inner);
    stmts_add(program, &grid->body, outer);
    stmts_add(program, &program->roles[s->role].body, grid);
}

void draw_exits(Program *program) {
    static const int64_t factors[] = {1, 2, 10, 100, 1000, 100000, 7, 97};
    static const Leave leaves[] = {LEAVE_RETURN, LEAVE_RETURN, LEAVE_BREAK, LEAVE_CONTINUE};
    Sketch s = {.program = program};
    roles_of(&s);
    program->persistent &= often(program, 30);
    program->traits[TRAIT_EXITS] = true;
    s.input = tensor_of(&s, "X", TENSOR_IN, 3);
    program->tensors[s.input].extents[0].symbol = SYM_K;
    program->tensors[s.input].extents[1].symbol = SYM_R;
    program->tensors[s.input].extents[2].number = WIDE;
    s.output = tensor_of(&s, "Y", TENSOR_OUT, 3);
    program->tensors[s.output].extents[1].number = 8;
    program->tensors[s.output].extents[2].number = WIDE;
    Leave how = leaves[pick(program, COUNT_OF(leaves))];
    int64_t factor = factors[pick(program, COUNT_OF(factors))];
    bool extra = often(program, 40);
    for (s.role = 0; s.role < 2; s.role++) {
        if (s.role == 1 && often(program, 30)) factor = factors[pick(program, COUNT_OF(factors))];
        draw_exit_role(&s, how, factor, extra);
    }
}
