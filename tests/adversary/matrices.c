/* Programs that multiply tiles whose tails are padded with zeros: operands used as loaded, or
 * computed, masked, in arms and loops; sums without `sum`. */
#include "tests/adversary/draw.h"

#define ROWS    64
#define COLUMNS 8
#define DEPTH   32 /* of a contraction of 8-bit numbers */

typedef struct Sketch {
    Program *program;
    /* the tensors; `sums`: of explicit sums, -1: none */
    int handle, loop, a, b, c, sums;
    int acc, explicit_sum, kept; /* kept: sums over the range at each position; -1: none */
    Scope scope;
} Sketch;

static const Expr *n(Sketch *k, int64_t value) { return number(k->program, value); }

/* An element of an operand: i (the first) or j is its row, x the summed index */
static const Expr *operand(Sketch *k, ExprKind kind, int of, int which) {
    return element(k->program, kind, of, which, index_of(k->program, which),
                   index_of(k->program, 2), NULL);
}

static const Expr *position(Sketch *k, const Expr *x) {
    return binary(k->program, DO_ADD,
                  binary(k->program, DO_MUL, local_of(k->program, k->loop), n(k, DEPTH)), x);
}

/* True if x is an index of the sum */
static const Expr *mask_of(Sketch *k, const Expr *x) {
    const Expr *end = symbol(k->program, SYM_K), *at = position(k, x);
    switch (pick(k->program, 3)) {
    case 0: return binary(k->program, DO_GT, end, at);
    case 1: return binary(k->program, DO_LE, binary(k->program, DO_ADD, at, n(k, 1)), end);
    default: return binary(k->program, DO_LT, at, end);
    }
}

static const Expr *masked(Sketch *k, const Expr *value) {
    return choose(k->program, mask_of(k, index_of(k->program, 2)), value, n(k, 0));
}

static const Expr *clean_value(Sketch *k, const Expr *from) {
    switch (pick(k->program, 3)) {
    case 0: return binary(k->program, DO_MUL, from, n(k, 2 + pick(k->program, 3)));
    case 1: return binary(k->program, DO_SUB, n(k, 0), from);
    default: return binary(k->program, DO_MAX, from, n(k, 0));
    }
}

static const Expr *dirty_value(Sketch *k, const Expr *from) {
    switch (pick(k->program, 3)) {
    case 0: return binary(k->program, DO_SUB, n(k, 3), from);
    case 1: return binary(k->program, DO_MAX, from, n(k, 2));
    default: return binary(k->program, DO_ADD, from, n(k, 1 + pick(k->program, 3)));
    }
}

static Stmt *declare(Sketch *k, int local, const Expr *value) {
    Stmt *stmt = stmt_new(k->program, S_DECLARE);
    stmt->local = local;
    stmt->value = value;
    return stmt;
}

static void clean_into(Sketch *k, const Expr *to, const Expr *from, int depth, Stmts *out);

/* In arms; in a loop with an early exit; all tiles and then the last one again */
static void clean_by_control(Sketch *k, const Expr *to, const Expr *from, int depth, Stmts *out) {
    Program *program = k->program;
    uint32_t dice = pick(program, 100);
    if (dice < 30) {
        Stmt *arms = if_new(program, condition_draw(&k->scope));
        clean_into(k, to, from, depth + 1, &arms->body);
        clean_into(k, to, from, depth + 1, &arms->otherwise);
        stmts_add(program, out, arms);
    } else if (dice < 40) {
        const Expr *next = binary(program, DO_ADD, local_of(program, k->loop), n(k, 1));
        Stmt *last =
            if_new(program, binary(program, DO_GT, binary(program, DO_MUL, next, n(k, DEPTH)),
                                   symbol(program, SYM_K)));
        const Expr *value = dirty_value(k, from);
        stmts_add(program, out, assign(program, to, '=', value));
        stmts_add(program, &last->body, assign(program, to, '=', masked(k, value)));
        stmts_add(program, out, last);
    } else {
        Stmt *loop = for_new(program, local_new(program, LOCAL_LOOP), n(k, 1 + pick(program, 3)));
        Stmt *condition = if_new(program, condition_draw(&k->scope)),
             *leave = stmt_new(program, S_LEAVE);
        leave->leave = often(program, 60) ? LEAVE_BREAK : LEAVE_CONTINUE;
        stmts_add(program, &condition->body, leave);
        if (dice < 65) clean_into(k, to, from, depth + 1, out);
        if (often(program, 50))
            stmts_add(program, &loop->body, assign(program, to, '=', dirty_value(k, from)));
        clean_into(k, to, from, depth + 1, &loop->body);
        stmts_add(program, &loop->body, condition);
        if (often(program, 40)) clean_into(k, to, from, depth + 1, &loop->body);
        stmts_add(program, out, loop);
    }
}

/* Writes `to` so that it is zero where `from` is padding. */
static void clean_into(Sketch *k, const Expr *to, const Expr *from, int depth, Stmts *out) {
    Program *program = k->program;
    static const int weights[] = {0, 1, 1, 1, 2, 2, 3, 4, 4, 4};
    switch (weights[pick(program, depth < 2 ? 10 : 7)]) {
    case 0: stmts_add(program, out, assign(program, to, '=', clean_value(k, from))); break;
    case 1:
        stmts_add(program, out, assign(program, to, '=', masked(k, dirty_value(k, from))));
        break;
    case 2:
        stmts_add(program, out, assign(program, to, '=', dirty_value(k, from)));
        stmts_add(program, out, assign(program, to, '=', masked(k, to)));
        break;
    case 3: stmts_add(program, out, assign(program, to, '=', from)); break;
    default: clean_by_control(k, to, from, depth, out); break;
    }
}

/* An operand: as loaded, or a shared tile computed from it; `clean`: zero in the padding */
static const Expr *operand_draw(Sketch *k, int which, bool clean, Stmts *out) {
    Program *program = k->program;
    const Expr *from = operand(k, X_FIELD, k->handle, which);
    if (often(program, clean ? 20 : 10)) return from;
    int tile = tile_new(program, LOCAL_SHARED, 2, which == 0 ? ROWS : COLUMNS, DEPTH);
    program->locals[tile].tiny = true;
    const Expr *to =
        element(program, X_TILE, tile, 0, index_of(program, which), index_of(program, 2), NULL);
    stmts_add(program, out, declare(k, tile, NULL));
    if (clean) {
        clean_into(k, to, from, 0, out);
    } else if (often(program, 75)) {
        stmts_add(program, out, assign(program, to, '=', n(k, 1)));
        /* 0 * x may be refused: for floats it need not be zero */
    } else {
        stmts_add(program, out, assign(program, to, '=', dirty_value(k, from)));
        program->textual = true;
    }
    return to;
}

/* ---- sums without `sum` ---------------------------------------------------------------------- */

/* A divisor that may be 0: from memory, or the number of the iteration */
static const Expr *divisor(Sketch *k) {
    Program *program = k->program;
    if (often(program, 40)) return local_of(program, k->loop);
    return element(program, X_TENSOR, k->scope.data, 0, any_axis(program), NULL, NULL);
}

/* 0 for 0 */
static const Expr *clean_term(Sketch *k, const Expr *at) {
    Program *program = k->program;
    const Expr *by = divisor(k);
    switch (pick(program, 8)) {
    case 0: return binary(program, DO_DIV, at, binary(program, DO_MAX, by, n(k, 1)));
    case 1:
        return choose(program, binary(program, DO_NE, by, n(k, 0)), binary(program, DO_DIV, at, by),
                      n(k, 0));
    case 2: return binary(program, DO_MOD, at, n(k, 3));
    case 3: return choose(program, binary(program, DO_GT, at, n(k, 1)), at, n(k, 0));
    case 4: return binary(program, DO_MUL, at, by);
    default: return at;
    }
}

static const Expr *dirty_term(Sketch *k, const Expr *at) {
    Program *program = k->program;
    switch (pick(program, 6)) {
    case 0: return binary(program, DO_DIV, at, divisor(k));
    case 1: return choose(program, binary(program, DO_LE, at, n(k, 0)), n(k, 2), at);
    case 2: return binary(program, DO_MAX, at, n(k, 1));
    default: return binary(program, DO_ADD, at, n(k, 1));
    }
}

/* The term by a tile, or by a variable for the first row, which is inside of the tensor */
static const Expr *term_kept(Sketch *k, const Expr *at, const Expr *term, Stmts *before,
                             Stmts *out) {
    Program *program = k->program;
    if (often(program, 40)) {
        int local = local_new(program, LOCAL_SCALAR);
        const Expr *one = element(program, at->kind, at->of, at->field, n(k, 0), at->subs[1], NULL);
        stmts_add(program, out, declare(k, local, expr_replace(program, term, at, one)));
        return local_of(program, local);
    }
    int tile = tile_new(program, LOCAL_TILE, 1, ROWS, 0);
    const Expr *to = element(program, X_TILE, tile, 0, index_of(program, 0), NULL, NULL);
    stmts_add(program, often(program, 50) ? before : out, declare(k, tile, NULL));
    if (often(program, 50)) {
        stmts_add(program, out, assign(program, to, '=', at));
        term = expr_replace(program, term, at, to);
    }
    stmts_add(program, out, assign(program, to, '=', term));
    return to;
}

static const Expr *kept_position(Sketch *k) {
    return element(k->program, X_TILE, k->kept, 0, index_of(k->program, 0), index_of(k->program, 2),
                   NULL);
}

/* Terms of padding are 0, or else masked */
static Stmt *keep(Sketch *k, const Expr *from) {
    const Expr *value = from;
    switch (pick(k->program, 4)) {
    case 0: value = masked(k, dirty_term(k, from)); break;
    case 1: value = clean_term(k, from); break;
    case 2: value = binary(k->program, DO_MUL, from, from); break;
    default: break;
    }
    return assign(k->program, kept_position(k), often(k->program, 80) ? '+' : '-', value);
}

/* A maximum may be refused though a position without elements does not change it. */
static Stmt *sum_of_kept(Sketch *k) {
    Program *program = k->program;
    const Expr *value = kept_position(k);
    Op op = often(program, 85) ? DO_ADD : DO_MAX;
    if (often(program, 40)) value = binary(program, DO_MUL, value, n(k, pick(program, 4)));
    program->textual |= op == DO_MAX;
    return assign(program,
                  element(program, X_TILE, k->explicit_sum, 0, index_of(program, 0), NULL, NULL),
                  '+', reduced(program, op, 2, value));
}

/* Of a row; masked by what does not change it, or not */
static const Expr *reduction_draw(Sketch *k, const Expr *from, bool clean) {
    static const Op ops[] = {DO_ADD, DO_ADD, DO_MAX, DO_MIN};
    Program *program = k->program;
    Op op = ops[pick(program, COUNT_OF(ops))];
    const Expr *x = index_of(program, 2);
    const Expr *value =
        element(program, from->kind, from->of, from->field, index_of(program, 0), x, NULL);
    bool masks = !clean || (op != DO_ADD && often(program, 70));
    if (!clean) value = binary(program, DO_ADD, value, n(k, 1));
    program->textual |= !masks && op != DO_ADD; /* may be refused though no element is negative */
    const Expr *none = n(k, op == DO_ADD ? 0 : op == DO_MAX ? -1000 : 1000);
    if (masks) value = choose(program, mask_of(k, x), value, none);
    return reduced(program, op, 2, value);
}

/* In a loop, each term computed from an element; `clean`: terms of padding are 0, or else masked */
static void sum_explicitly(Sketch *k, const Expr *from, bool clean, Stmts *out) {
    Program *program = k->program;
    const Expr *target =
        element(program, X_TILE, k->explicit_sum, 0, index_of(program, 0), NULL, NULL);
    if (often(program, 50)) {
        stmts_add(program, out, assign(program, target, '+', reduction_draw(k, from, clean)));
        return;
    }
    int local = local_new(program, LOCAL_LOOP);
    const Expr *c = local_of(program, local), *i = index_of(program, 0);
    const Expr *at = element(program, from->kind, from->of, from->field, i, c, NULL);
    const Expr *value = clean ? clean_term(k, at) : dirty_term(k, at);
    Stmt *loop = for_new(program, local, n(k, DEPTH));
    if (often(program, 40)) value = term_kept(k, at, value, out, &loop->body);
    if (!clean) value = choose(program, mask_of(k, c), value, n(k, 0));
    stmts_add(program, &loop->body, assign(program, target, '+', value));
    stmts_add(program, out, loop);
}

static void draw_math(Sketch *k, Stmts *out) {
    Program *program = k->program;
    bool explicit_sum = k->sums >= 0, first = explicit_sum || often(program, 60);
    const Expr *left = operand_draw(k, 0, first, out), *right = operand_draw(k, 1, !first, out);
    Stmt *contract = stmt_new(program, S_CONTRACT);
    contract->target =
        element(program, X_TILE, k->acc, 0, index_of(program, 0), index_of(program, 1), NULL);
    contract->op = '+';
    contract->left = left;
    contract->right = right;
    stmts_add(program, out, contract);
    if (k->kept >= 0) stmts_add(program, out, keep(k, left));
    if (explicit_sum) sum_explicitly(k, left, often(program, 50), out);
}

static void draw_loader(Sketch *k) {
    Program *program = k->program;
    const Expr *x = index_of(program, 2);
    Stmt *grid = stmt_new(program, S_GRID), *loop = for_new(program, k->loop, program->ranges[0]);
    Stmt *block = stmt_new(program, S_STAGE);
    grid->local = program->axes[0].local;
    loop->range = 0;
    block->produce = true;
    block->local = k->handle;
    for (int which = 0; which < 2; which++) {
        const Expr *row = index_of(program, which);
        if (which == 0)
            row = binary(program, DO_ADD, binary(program, DO_MUL, any_axis(program), n(k, ROWS)),
                         row);
        const Expr *from =
            element(program, X_TENSOR, which == 0 ? k->a : k->b, 0, row, position(k, x), NULL);
        stmts_add(program, &block->body,
                  assign(program, operand(k, X_FIELD, k->handle, which), '=', from));
    }
    stmts_add(program, &loop->body, block);
    stmts_add(program, &grid->body, loop);
    stmts_add(program, &program->roles[0].body, grid);
}

static void draw_multiplier(Sketch *k) {
    Program *program = k->program;
    const Expr *i = index_of(program, 0), *j = index_of(program, 1);
    Stmt *grid = stmt_new(program, S_GRID), *loop = for_new(program, k->loop, program->ranges[0]);
    Stmt *block = stmt_new(program, S_STAGE);
    grid->local = program->axes[0].local;
    loop->range = 0;
    block->local = k->handle;
    k->acc = tile_new(program, LOCAL_TILE, 2, ROWS, COLUMNS);
    stmts_add(program, &grid->body, declare(k, k->acc, n(k, 0)));
    if (k->sums >= 0) {
        k->explicit_sum = tile_new(program, LOCAL_TILE, 1, ROWS, 0);
        stmts_add(program, &grid->body, declare(k, k->explicit_sum, n(k, 0)));
    }
    if (k->sums >= 0 && often(program, 40)) {
        k->kept = tile_new(program, LOCAL_TILE, 2, ROWS, DEPTH);
        stmts_add(program, &grid->body, declare(k, k->kept, n(k, 0)));
    }
    draw_math(k, &block->body);
    stmts_add(program, &loop->body, block);
    stmts_add(program, &grid->body, loop);
    if (k->kept >= 0) stmts_add(program, &grid->body, sum_of_kept(k));
    const Expr *base = binary(program, DO_MUL, any_axis(program), n(k, ROWS));
    const Expr *row = binary(program, DO_ADD, base, i);
    stmts_add(program, &grid->body,
              assign(program, element(program, X_TENSOR, k->c, 0, row, j, NULL), '=',
                     element(program, X_TILE, k->acc, 0, i, j, NULL)));
    if (k->sums >= 0)
        stmts_add(program, &grid->body,
                  assign(program, element(program, X_TENSOR, k->sums, 0, row, NULL, NULL), '=',
                         element(program, X_TILE, k->explicit_sum, 0, i, NULL, NULL)));
    stmts_add(program, &program->roles[1].body, grid);
}

static int matrix_new(Program *program, const char *name, Mode mode, int first, int rows,
                      int second) {
    int tensor = tensor_new(program, name, mode, FILL_SMALL, 2);
    program->tensors[tensor].tiny = mode == TENSOR_IN;
    program->tensors[tensor].extents[0].symbol = first;
    program->tensors[tensor].extents[0].number = rows;
    program->tensors[tensor].extents[1].symbol = second;
    program->tensors[tensor].extents[1].number = COLUMNS;
    return tensor;
}

void draw_matrices(Program *program) {
    Sketch k = {.program = program, .sums = -1, .kept = -1};
    program->matrix = true;
    program->persistent = often(program, 80);
    axis_add(program, binary(program, DO_CEIL, symbol(program, SYM_M), number(program, ROWS)), 1);
    k.a = matrix_new(program, "A", TENSOR_IN, SYM_M, 0, SYM_K);
    k.b = matrix_new(program, "B", TENSOR_IN, -1, COLUMNS, SYM_K);
    k.c = matrix_new(program, "C", TENSOR_OUT, SYM_M, 0, -1);
    int data = tensor_new(program, "D", TENSOR_IN, FILL_DATA, 1);
    program->tensors[data].extents[0].symbol = SYM_G;
    if (often(program, program->theme == THEME_PADDING ? 60 : 40)) {
        k.sums = tensor_new(program, "L", TENSOR_OUT, FILL_SMALL, 1);
        program->tensors[k.sums].extents[0].symbol = SYM_M;
    }
    k.loop = local_new(program, LOCAL_LOOP);
    range_of(program, binary(program, DO_CEIL, symbol(program, SYM_K), number(program, DEPTH)));
    program->role_count = 2;
    program->roles[0] = (Role){.warps = 1, .instances = 1};
    program->roles[1] = (Role){.warps = 4, .instances = 1, .warpgroups = true};
    program->pipe_count = 1;
    Pipe *pipe = &program->pipes[0];
    *pipe = (Pipe){.depth = 1 + (int)pick(program, 3),
                   .consumers = {1},
                   .consumer_count = 1,
                   .used = true,
                   .field_count = 2};
    for (int f = 0; f < 2; f++)
        pipe->fields[f] = (Field){
            .tiny = true, .copied = true, .rank = 2, .extents = {f == 0 ? ROWS : COLUMNS, DEPTH}};
    k.handle = local_new(program, LOCAL_HANDLE);
    program->locals[k.handle].pipe = 0;
    k.scope = (Scope){.program = program,
                      .role = 1,
                      .loops = {k.loop},
                      .loop_count = 1,
                      .data = data,
                      .trips = data};
    draw_loader(&k);
    draw_multiplier(&k);
}
