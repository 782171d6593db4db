/* Divisors: launch preconditions under which the kernel does not divide by zero. Needs the lowered
 * program; adds a precondition for each divisor that is a formula of only extents and scalars and
 * is not proved, without facts of a path, to differ from 0. The quotient by any other divisor that
 * may be 0 may be any number (algebra/range.c). */
#include "derive/tiles.h"
#include "flow/code.h"

typedef struct Divisors {
    Arena *arena;
    Prog *prog;
    Algebra *formulas; /* for formulas of the kernel */
    const Role *role;  /* NULL: formulas of the kernel */
    bool of_text;      /* they stand in what the program states */
} Divisors;

/* The divisor as a formula of symbols, with `let`s and parameters of functions replaced by their
 * values; NULL: it contains other variables */
static Expr *of_symbols(const Divisors *d, Expr *divisor) {
    if (expr_is_launch_constant(divisor) || !d->role)
        return expr_is_launch_constant(divisor) ? divisor : NULL;
    Algebra *algebra = d->role->code->algebra;
    const Poly *value = algebra_poly(algebra, d->role, divisor);
    int nodes = EXPRESSION_NODES;
    return expression_of(d->arena, algebra, value, divisor->span, &nodes);
}

static bool is_proved(const Divisors *d, Expr *divisor, bool positive) {
    const Poly *value = algebra_poly(d->formulas, NULL, divisor);
    if (!positive) return algebra_proves(d->formulas, CLAIM_NOT_ZERO, value);
    return algebra_proves(d->formulas, CLAIM_NOT_NEGATIVE, poly_offset(d->formulas, value, -1));
}

static void require(const Divisors *d, Expr *divisor, bool positive) {
    if (is_proved(d, divisor, positive)) return;
    Expr *zero = expr_integer(d->arena, divisor->type, 0, divisor->span);
    Expr *condition = expr_binary(d->arena, positive ? OP_GT : OP_NE, divisor, zero, divisor->span);
    if (algebra_required(d->formulas, condition)) return;
    Str text = str_new(d->arena);
    expr_print(divisor, d->prog, NULL, NULL, &text);
    str_add(&text, positive ? " > 0" : " != 0");
    const char *reason = "the kernel divides by it";
    vec_push(
        d->arena, &d->prog->preconditions,
        ((Precondition){condition, text.text, reason, NULL, divisor->span, false, d->of_text, 0}));
}

static void visit(Expr *expr, void *data) {
    const Divisors *d = data;
    Expr *divisor = NULL;
    bool ceil = expr->kind == X_CALL && expr->call.which == IN_ceil_div;
    if (ceil) divisor = expr->call.args[1];
    if (expr->kind == X_BINARY && (expr->binary.op == OP_DIV || expr->binary.op == OP_MOD))
        divisor = expr->binary.right;
    if (!divisor || divisor->type == E_F32 || divisor->kind == X_CONST) return;
    divisor = of_symbols(d, divisor);
    if (divisor && divisor->kind != X_CONST) require(d, divisor, ceil);
}

static void visit_whole(Expr *expr, void *data) {
    if (expr) expr_visit(((const Divisors *)data)->arena, expr, visit, data);
}

/* A divisor of ceil must be positive. */
bool divisors_require(Arena *arena, Prog *prog) {
    Divisors d = {arena, prog, algebra_new(arena, prog, NULL), NULL, false};
    size_t stated = prog->preconditions.count;
    for (size_t i = 0; i < stated; i++) {
        d.of_text = prog->preconditions.items[i].of_text;
        visit_whole(prog->preconditions.items[i].condition, &d);
    }
    d.of_text = false;
    for (size_t i = 0; i < prog->axes.count; i++) visit_whole(prog->axes.items[i].extent, &d);
    for (size_t i = 0; i < prog->params.count; i++)
        for (int axis = 0; axis < prog->params.items[i].rank; axis++)
            visit_whole(prog->params.items[i].extents[axis], &d);
    for (size_t i = 0; i < prog->domains.count; i++) {
        visit_whole(prog->domains.items[i].lo, &d);
        visit_whole(prog->domains.items[i].hi, &d);
        visit_whole(prog->domains.items[i].where, &d);
    }
    for (size_t i = 0; i < prog->lets.count; i++) visit_whole(prog->lets.items[i].value, &d);
    for (size_t i = 0; i < prog->claims.count; i++) visit_whole(prog->claims.items[i].value, &d);
    for (size_t r = 0; r < prog->roles.count; r++) {
        d.role = &prog->roles.items[r];
        const FlowCode *code = d.role->code;
        for (size_t at = 0; at < code->rows.count; at++)
            row_exprs(code, &code->rows.items[at], visit_whole, &d);
    }
    return prog->preconditions.count > stated;
}
