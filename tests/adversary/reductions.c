/* Sums, maxima and minima of stages and tiles that a role reads: of rows, columns and both, up to
 * each element; in statements, in variables, and in variables that decide. */
#include "tests/adversary/draw.h"

static const Expr *n(Scope *scope, int64_t value) { return number(scope->program, value); }

static Op any_op(Program *program) {
    static const Op ops[] = {DO_ADD, DO_ADD, DO_MAX, DO_MIN};
    return ops[pick(program, COUNT_OF(ops))];
}

/* A term computed from an element: some may be smaller than zero, some select a position */
static const Expr *term_of(Scope *scope, const Expr *at) {
    Program *program = scope->program;
    const Expr *x = index_of(program, 2), *few = n(scope, pick(program, 40));
    switch (pick(program, 8)) {
    case 0: return binary(program, DO_SUB, few, at);
    case 1: return choose(program, binary(program, DO_LT, x, few), at, n(scope, 0));
    case 2: return choose(program, binary(program, DO_GT, at, few), x, n(scope, WIDE));
    case 3: return binary(program, DO_ADD, binary(program, DO_MUL, at, n(scope, 3)), x);
    case 4: return choose(program, condition_draw(scope), at, few);
    default: return at;
    }
}

const Expr *reduction_over(Scope *scope, const Expr *element_at_x) {
    Program *program = scope->program;
    return reduced(program, any_op(program), 2, term_of(scope, element_at_x));
}

static int field_of_rows(const Pipe *pipe) {
    for (int f = 0; f < pipe->field_count; f++)
        if (pipe->fields[f].rank == 2 && !pipe->fields[f].tiles) return f;
    return -1;
}

/* A scan along an index: of the elements x up to each */
static const Expr *scan_along(Scope *scope, int index, const Expr *element_at_x) {
    static const Op relations[] = {DO_LE, DO_LE, DO_LT, DO_GE, DO_GT};
    Program *program = scope->program;
    Op op = any_op(program), relation = relations[pick(program, COUNT_OF(relations))];
    const Expr *none = n(scope, op == DO_ADD   ? 0
                                : op == DO_MAX ? INT32_MIN
                                               : INT32_MAX),
               *before = binary(program, relation, index_of(program, 2), index_of(program, index));
    return reduced(program, op, 2, choose(program, before, term_of(scope, element_at_x), none));
}

/* A reduction over rows, which may be padding, of a scan along them */
static const Expr *scan_of_rows(Scope *scope, int handle, int rows) {
    Program *program = scope->program;
    const Expr *x = index_of(program, 2), *j = index_of(program, 1), *lane = lane_of(scope);
    const Expr *own = element(program, X_FIELD, handle, rows, j, lane, NULL),
               *scan = scan_along(scope, 1, element(program, X_FIELD, handle, rows, x, lane, NULL));
    return reduced(program, any_op(program), 1,
                   binary(program, often(program, 50) ? DO_SUB : DO_MAX, scan, own));
}

static const Expr *scan_draw(Scope *scope, int handle, int pipe, int rows) {
    Program *program = scope->program;
    const Expr *x = index_of(program, 2);
    if (rows >= 0 && often(program, 40)) return scan_of_rows(scope, handle, rows);
    return scan_along(scope, 0,
                      often(program, 70) ? stage_row(scope, handle, pipe, x)
                                         : element(program, X_TILE, scope->sums, 0, x, NULL, NULL));
}

/* A vector over i, or a scalar */
static const Expr *reduction_draw(Scope *scope, int handle, int pipe) {
    Program *program = scope->program;
    const Expr *x = index_of(program, 2), *j = index_of(program, 1);
    int rows = field_of_rows(&program->pipes[pipe]);
    uint32_t dice = pick(program, 5);
    if (dice == 4 && scope->width == WIDE) return scan_draw(scope, handle, pipe, rows);
    if (dice == 0 && rows >= 0)
        return reduction_over(scope,
                              element(program, X_FIELD, handle, rows, x, lane_of(scope), NULL));
    if (dice == 1 && rows >= 0) {
        const Expr *all = element(program, X_FIELD, handle, rows, j, x, NULL);
        return reduced(program, any_op(program), 1, reduction_over(scope, all));
    }
    if (dice == 2)
        return reduction_over(scope, element(program, X_TILE, scope->sums, 0, x, NULL, NULL));
    return reduction_over(scope, stage_row(scope, handle, pipe, x));
}

/* A scalar reduction in a variable, which may decide whether a statement is executed */
static void use_in_scalar(Scope *scope, int handle, int pipe, Stmts *out) {
    Program *program = scope->program;
    int local;
    stmts_add(program, out, declare_scalar(scope, often(program, 50) ? n(scope, 1) : NULL, &local));
    stmts_add(
        program, out,
        set_scalar(scope, local, '=',
                   reduction_over(scope, stage_row(scope, handle, pipe, index_of(program, 2)))));
    const Expr *value = local_of(program, local);
    if (often(program, 50)) {
        Stmt *arms = if_new(program, binary(program, often(program, 50) ? DO_LT : DO_GT, value,
                                            n(scope, pick(program, 2000))));
        stmts_add(program, &arms->body, add_to_sums(scope, reduction_draw(scope, handle, pipe)));
        stmts_add(program, out, arms);
    }
    stmts_add(program, out, add_to_sums(scope, value));
}

void use_reduction(Scope *scope, int handle, int pipe, Stmts *out) {
    Program *program = scope->program;
    if (often(program, 30)) {
        use_in_scalar(scope, handle, pipe, out);
        return;
    }
    const Expr *value = reduction_draw(scope, handle, pipe);
    if (often(program, 40))
        value = binary(program, often(program, 50) ? DO_ADD : DO_SUB,
                       stage_row(scope, handle, pipe, lane_of(scope)), value);
    stmts_add(program, out, add_to_sums(scope, value));
}
