/* Normal forms: formulas of equal value have the same form; divisors and bounds hold; nothing
 * false is proved. */
#include "algebra/algebra.h"

#include <stdio.h>

typedef struct Bench {
    Arena *arena;
    Prog prog;
    Role role;
    int failed;
} Bench;

static Expr *node(Bench *bench, ExprKind kind, int index) {
    Expr *expr = NEW(bench->arena, Expr);
    expr->kind = kind;
    expr->type = E_I32;
    expr->index = index;
    return expr;
}

static Expr *number(Bench *bench, int64_t value) {
    return expr_integer(bench->arena, E_I32, value, (Span){0, 0});
}
static Expr *symbol(Bench *bench, int index) { return node(bench, X_SYMBOL, index); }
static Expr *local(Bench *bench, int index) { return node(bench, X_LOCAL, index); }
static Expr *make(Bench *bench, BinaryOp op, Expr *a, Expr *b) {
    return expr_binary(bench->arena, op, a, b, (Span){0, 0});
}

static Expr *call(Bench *bench, Intrinsic which, Expr *a, Expr *b) {
    Expr *expr = node(bench, X_CALL, 0);
    expr->call.which = which;
    expr->call.args[0] = a;
    expr->call.args[1] = b;
    expr->call.args[2] = NULL;
    expr->call.count = 2;
    return expr;
}

/* The operand widened to 64 bits */
static Expr *wide(Bench *bench, Expr *a) {
    Expr *expr = node(bench, X_CAST, 0);
    expr->type = E_I64;
    expr->cast = a;
    return expr;
}

static void expect(Bench *bench, bool right, const char *what) {
    if (right) return;
    bench->failed++;
    printf("algebra: %s\n", what);
}

static bool equal(Bench *bench, Expr *a, Expr *b) {
    return algebra_equal(bench->arena, &bench->prog, &bench->role, a, &bench->role, b);
}

static bool at_most(Bench *bench, Expr *a, Expr *b) {
    return algebra_at_most(bench->arena, &bench->prog, &bench->role, a, b);
}

static void require(Bench *bench, Expr *condition) {
    vec_push(bench->arena, &bench->prog.preconditions, (Precondition){.condition = condition});
}

/* symbols: 0 N, 1 K, 2 M, 3 a scalar; locals: 0 the axis t of ceil(N, 64), 1 a `for k in 0 ..
 * ceil(K, 16)`, 2 let, 3 var */
static void set_up(Bench *bench) {
    static const char *const names[] = {"N", "K", "M", "a"};
    for (int i = 0; i < 4; i++)
        vec_push(bench->arena, &bench->prog.symbols,
                 (Symbol){.name = names[i], .is_extent = i < 3});
    Expr *extent = call(bench, IN_ceil_div, symbol(bench, 0), number(bench, 64));
    vec_push(bench->arena, &bench->prog.axes,
             ((Axis){.name = "t", .extent = extent, .cluster = 1, .padded = extent}));
    vec_push(bench->arena, &bench->role.locals,
             (Local){.name = "t", .kind = LOCAL_AXIS, .type = E_I32});
    vec_push(bench->arena, &bench->role.locals,
             (Local){.name = "k",
                     .kind = LOCAL_LOOP,
                     .type = E_I32,
                     .lo = number(bench, 0),
                     .hi = call(bench, IN_ceil_div, symbol(bench, 1), number(bench, 16))});
    vec_push(bench->arena, &bench->role.locals,
             (Local){.name = "l",
                     .kind = LOCAL_LET,
                     .type = E_I32,
                     .value = make(bench, OP_MUL, local(bench, 0), number(bench, 64))});
    vec_push(bench->arena, &bench->role.locals,
             (Local){.name = "v", .kind = LOCAL_VAR, .type = E_I32});
    bench->role.instances = 2;
    vec_push(bench->arena, &bench->prog.roles, bench->role);
}

static void forms(Bench *b) {
    Expr *n = symbol(b, 0), *k = symbol(b, 1), *t = local(b, 0);
    expect(b,
           equal(b, make(b, OP_ADD, make(b, OP_MUL, k, number(b, 2)), k),
                 make(b, OP_MUL, number(b, 3), k)),
           "2K + K is 3K");
    expect(b, equal(b, make(b, OP_SUB, make(b, OP_ADD, n, k), n), k), "N + K - N is K");
    expect(b, equal(b, local(b, 2), make(b, OP_MUL, number(b, 64), t)), "a let is its value");
    expect(b, equal(b, t, node(b, X_AXIS, 0)), "an axis is its axis");
    expect(b,
           equal(b,
                 make(b, OP_DIV, make(b, OP_MUL, node(b, X_RANK, 0), number(b, 128)), number(b, 2)),
                 make(b, OP_MUL, number(b, 64), node(b, X_RANK, 0))),
           "rank * 128 / 2 is 64 rank");
    expect(b,
           equal(b, call(b, IN_ceil_div, make(b, OP_ADD, n, number(b, 64)), number(b, 64)),
                 make(b, OP_ADD, call(b, IN_ceil_div, n, number(b, 64)), number(b, 1))),
           "ceil(N + 64, 64) is ceil(N, 64) + 1");
    expect(b, equal(b, call(b, IN_min, n, k), call(b, IN_min, k, n)), "min commutes");
    expect(b, equal(b, make(b, OP_LT, n, k), make(b, OP_GT, k, n)), "N < K is K > N");
    expect(b, !equal(b, make(b, OP_LT, n, k), make(b, OP_LE, n, k)), "< is not <=");
    expect(b, !equal(b, make(b, OP_DIV, n, number(b, 2)), make(b, OP_DIV, n, number(b, 3))),
           "N / 2 is not N / 3");
    expect(b, !equal(b, make(b, OP_MUL, make(b, OP_DIV, n, number(b, 2)), number(b, 2)), n),
           "N / 2 * 2 is not N");
    expect(b, !equal(b, symbol(b, 0), symbol(b, 1)), "N is not K");
}

static void bounds(Bench *b) {
    Expr *n = symbol(b, 0), *k = symbol(b, 1), *m = symbol(b, 2), *t = local(b, 0);
    Expr *first = make(b, OP_MUL, t, number(b, 64)), *last = make(b, OP_ADD, first, number(b, 63));
    expect(b, at_most(b, number(b, 0), n), "an extent is no less than 0");
    expect(b, !at_most(b, number(b, 1), n), "an extent may be 0");
    expect(b, at_most(b, make(b, OP_ADD, first, number(b, 1)), n),
           "the first element of a tile is inside");
    expect(b, !at_most(b, make(b, OP_ADD, last, number(b, 1)), n),
           "the last element of a tile may be outside");
    expect(b, at_most(b, number(b, 0), first), "a tile starts at 0 or later");
    expect(b, at_most(b, make(b, OP_MUL, local(b, 1), number(b, 16)), k), "k * 16 is at most K");
    expect(b, at_most(b, node(b, X_RANK, 0), number(b, 1)), "rank of two is at most 1");
    expect(b, !at_most(b, local(b, 3), number(b, 1000)), "nothing is known of a var");
    expect(
        b,
        at_most(b,
                make(b, OP_MUL, wide(b, make(b, OP_SUB, call(b, IN_ceil_div, n, number(b, 64)), t)),
                     wide(b, k)),
                make(b, OP_MUL, wide(b, call(b, IN_ceil_div, n, number(b, 64))), wide(b, k))),
        "products with extents");
    expect(b, at_most(b, call(b, IN_min, n, k), k), "min(N, K) <= K");
    expect(b, at_most(b, make(b, OP_MOD, n, number(b, 8)), number(b, 7)), "N % 8 <= 7");
    expect(b, !at_most(b, m, k), "nothing orders M and K yet");
    require(b, make(b, OP_AND, make(b, OP_GE, k, m),
                    make(b, OP_EQ, make(b, OP_MOD, n, number(b, 64)), number(b, 0))));
    expect(b, at_most(b, m, k), "requires K >= M");
    expect(b, at_most(b, make(b, OP_ADD, last, number(b, 1)), n),
           "N % 64 == 0: every tile is whole");
    expect(b, !at_most(b, k, m), "K <= M does not follow");
}

static void divisors(Bench *b) {
    Expr *n = symbol(b, 0), *k = symbol(b, 1), *m = symbol(b, 2);
    Expr *twice = make(b, OP_MUL, k, number(b, 2));
    expect(b, algebra_divisor(b->arena, &b->prog, &b->role, number(b, 0)) == 0,
           "0 is divisible by all");
    expect(b, algebra_divisor(b->arena, &b->prog, &b->role, n) == 64, "requires N % 64 == 0");
    expect(b, algebra_divisor(b->arena, &b->prog, &b->role, twice) == 2, "2K is even");
    require(b, make(b, OP_EQ, make(b, OP_MOD, twice, number(b, 16)), number(b, 0)));
    expect(b, algebra_divisor(b->arena, &b->prog, &b->role, k) == 8,
           "2K % 16 == 0 gives K % 8 == 0");
    expect(b,
           algebra_divisor(b->arena, &b->prog, &b->role,
                           make(b, OP_ADD, make(b, OP_MUL, k, m), number(b, 12))) == 4,
           "8KM' + 12");
    require(b, make(b, OP_EQ, make(b, OP_MOD, make(b, OP_ADD, m, k), number(b, 32)), number(b, 0)));
    expect(b,
           algebra_divisor(b->arena, &b->prog, &b->role,
                           make(b, OP_ADD, make(b, OP_ADD, m, k), number(b, 16))) == 16,
           "(M + K) % 32 == 0");
}

static Expr *choose(Bench *bench, Expr *condition, Expr *then, Expr *otherwise) {
    Expr *expr = node(bench, X_SELECT, 0);
    expr->select.condition = condition;
    expr->select.then = then;
    expr->select.otherwise = otherwise;
    return expr;
}

static Expr *negated(Bench *bench, Expr *operand) {
    Expr *expr = node(bench, X_UNARY, 0);
    expr->type = E_BOOL;
    expr->unary.op = OP_NOT;
    expr->unary.operand = operand;
    return expr;
}

/* True if the condition (or its negation) proves least <= most, and if that is unknown without
 * it */
static bool follows(Bench *b, Expr *condition, bool truth, Expr *least, Expr *most) {
    Algebra *algebra = algebra_new(b->arena, &b->prog, &b->role);
    const Poly *room = poly_sum(algebra, algebra_poly(algebra, &b->role, most),
                                algebra_poly(algebra, &b->role, least), -1);
    bool before = algebra_proves(algebra, CLAIM_NOT_NEGATIVE, room);
    PathMark mark = algebra_mark(algebra);
    algebra_assume(algebra, &b->role, condition, truth);
    bool inside = algebra_proves(algebra, CLAIM_NOT_NEGATIVE, room);
    algebra_undo(algebra, mark);
    return inside && !before && !algebra_proves(algebra, CLAIM_NOT_NEGATIVE, room);
}

/* Facts of a path: symbol 3 is a scalar of any value, local 3 a variable */
static void paths(Bench *b) {
    Expr *a = symbol(b, 3), *v = local(b, 3), *n = symbol(b, 0), *m = symbol(b, 2);
    Expr *zero = number(b, 0), *one = number(b, 1);
    Expr *below = make(b, OP_LT, v, n), *within = make(b, OP_AND, make(b, OP_GE, v, zero), below);
    Expr *past = make(b, OP_ADD, v, one);
    expect(b, follows(b, below, true, past, n), "v < n: v + 1 <= n");
    expect(b, follows(b, below, false, n, v), "not v < n: n <= v");
    expect(b, follows(b, within, true, zero, v) && follows(b, within, true, past, n),
           "v >= 0 && v < n");
    expect(b, !follows(b, within, false, n, v), "not (v >= 0 && v < n) leaves two cases");
    expect(b,
           follows(b, negated(b, make(b, OP_OR, make(b, OP_LT, v, zero), make(b, OP_GE, v, n))),
                   true, past, n),
           "not (v < 0 || v >= n)");
    expect(b,
           follows(b, make(b, OP_OR, below, make(b, OP_LT, v, make(b, OP_SUB, n, one))), true, past,
                   n),
           "either of two that both say so");
    expect(b, !follows(b, make(b, OP_OR, below, make(b, OP_LT, v, m)), true, past, n),
           "either of two of which one says so");
    expect(b,
           follows(b, make(b, OP_EQ, v, n), true, v, n) &&
               follows(b, make(b, OP_EQ, v, n), true, n, v),
           "v == n");
    expect(b,
           follows(b, make(b, OP_AND, make(b, OP_NE, v, n), make(b, OP_LE, v, n)), true, past, n),
           "v != n and v <= n");
    expect(b, follows(b, make(b, OP_LT, call(b, IN_max, v, a), n), true, past, n), "max(v, a) < n");
    expect(b, follows(b, make(b, OP_LT, v, call(b, IN_min, a, n)), true, past, n), "v < min(a, n)");
    expect(b, !follows(b, make(b, OP_LT, v, call(b, IN_max, a, n)), true, past, n),
           "v < max(a, n)");
    expect(b, follows(b, make(b, OP_LT, v, choose(b, make(b, OP_LT, n, m), n, m)), true, past, n),
           "v below the smaller, by a choice");
}

/* The same of quotients, remainders and roundings */
static void paths_of_quotients(Bench *b) {
    Expr *a = symbol(b, 3), *v = local(b, 3), *n = symbol(b, 0), *k = symbol(b, 1);
    Expr *zero = number(b, 0), *one = number(b, 1), *eight = number(b, 8);
    Expr *past = make(b, OP_ADD, v, one);
    Expr *whole = make(b, OP_AND, make(b, OP_GE, v, zero),
                       make(b, OP_LT, make(b, OP_DIV, v, eight), make(b, OP_DIV, n, eight)));
    expect(b, follows(b, whole, true, past, n), "v / 8 < n / 8: v + 1 <= n");
    Expr *below_eighth = make(b, OP_LT, v, make(b, OP_DIV, n, eight)),
         *natural = make(b, OP_GE, v, zero);
    Expr *after = make(b, OP_ADD, make(b, OP_MUL, v, eight), eight);
    expect(b, follows(b, make(b, OP_AND, natural, below_eighth), true, after, n),
           "v >= 0 && v < n / 8: 8 * v + 8 <= n");
    expect(b, !follows(b, below_eighth, true, after, n),
           "8 * v + 8 of a large negative v is positive");
    expect(b,
           follows(b, make(b, OP_AND, natural, make(b, OP_LT, v, call(b, IN_ceil_div, k, eight))),
                   true, make(b, OP_ADD, make(b, OP_MUL, v, eight), one), k),
           "v >= 0 && v < ceil(k, 8): 8 * v + 1 <= k");
    expect(b,
           !follows(b, make(b, OP_LT, v, call(b, IN_ceil_div, k, eight)), true,
                    make(b, OP_ADD, make(b, OP_MUL, v, eight), number(b, 2)), k),
           "v < ceil(k, 8): 8 * v + 2 may be more than k");
    expect(b,
           follows(b, make(b, OP_EQ, make(b, OP_MOD, a, eight), zero), true,
                   make(b, OP_MUL, call(b, IN_ceil_div, a, eight), eight), a),
           "a % 8 == 0: ceil(a, 8) * 8 <= a");
}

static void undone_paths(Bench *b) {
    Expr *v = local(b, 3), *n = symbol(b, 0), *below = make(b, OP_LT, v, n);
    Algebra *algebra = algebra_new(b->arena, &b->prog, &b->role);
    PathMark mark = algebra_mark(algebra);
    expect(b, algebra_decides(algebra, &b->role, below) == NOT_CERTAIN, "v < n is not known");
    algebra_assume(algebra, &b->role, below, true);
    expect(b, algebra_decides(algebra, &b->role, below) == CERTAINLY, "v < n is asked again");
    expect(b, algebra_decides(algebra, &b->role, make(b, OP_GE, v, n)) == CERTAINLY_NOT,
           "v >= n where v < n");
    expect(b, !algebra_impossible(algebra), "v < n is possible");
    algebra_assume(algebra, &b->role, make(b, OP_GT, v, n), true);
    expect(b, algebra_impossible(algebra), "v < n and v > n is not");
    algebra_undo(algebra, mark);
    expect(b, !algebra_impossible(algebra), "what is undone is forgotten");
}

/* Conclusions on one path do not hold on another: symbol 3 is a scalar of any value. */
static void other_paths(Bench *b) {
    Expr *a = symbol(b, 3), *zero = number(b, 0), *two = number(b, 2);
    Expr *below_zero = make(b, OP_LT, a, zero), *odd = make(b, OP_MOD, a, two);
    Algebra *algebra = algebra_new(b->arena, &b->prog, &b->role);
    PathMark begin = algebra_mark(algebra);
    algebra_assume(algebra, &b->role, make(b, OP_LE, make(b, OP_DIV, a, two), two), true);
    PathMark branch = algebra_mark(algebra);
    algebra_assume(algebra, &b->role, below_zero, true);
    expect(b, !algebra_impossible(algebra), "a < 0 and a / 2 <= 2");
    algebra_undo(algebra, branch);
    algebra_assume(algebra, &b->role, below_zero, false);
    const Poly *value = algebra_poly(algebra, &b->role, a);
    const Poly *four = poly_offset(algebra, poly_minus(algebra, value), 4);
    expect(b, !algebra_proves(algebra, CLAIM_NOT_NEGATIVE, four), "a / 2 <= 2: a may be 5");
    expect(b, algebra_proves(algebra, CLAIM_NOT_NEGATIVE, poly_offset(algebra, four, 1)),
           "a / 2 <= 2: a <= 5");
    algebra_undo(algebra, begin);
    /* If a is even, this is the greatest i32; otherwise it wraps */
    Expr *round = make(b, OP_MUL, call(b, IN_ceil_div, a, two), two);
    Expr *most = make(b, OP_ADD, make(b, OP_SUB, round, a), number(b, INT32_MAX));
    algebra_assume(algebra, &b->role, make(b, OP_EQ, odd, zero), true);
    (void)algebra_poly(algebra, &b->role, most);
    algebra_undo(algebra, begin);
    value = algebra_poly(algebra, &b->role, most);
    expect(b, !algebra_proves(algebra, CLAIM_NOT_NEGATIVE, value), "an odd a rounds up past 2^31");
}

/* a >= `least` on a path with `a >= 3` and the condition; number of steps in *steps */
static bool beside(Bench *b, Algebra *algebra, Expr *condition, int64_t least, uint64_t *steps) {
    Expr *a = symbol(b, 3);
    PathMark mark = algebra_mark(algebra);
    algebra_assume(algebra, &b->role, make(b, OP_GE, a, number(b, 3)), true);
    algebra_assume(algebra, &b->role, condition, true);
    const Poly *room = poly_offset(algebra, algebra_poly(algebra, &b->role, a), -least);
    uint64_t before = arena_meter(b->arena)->steps;
    bool proved = algebra_proves(algebra, CLAIM_NOT_NEGATIVE, room);
    *steps = arena_meter(b->arena)->steps - before;
    algebra_undo(algebra, mark);
    return proved;
}

/* A query has the choices and the divisors of its path: it is answered once for these. */
static void kept_answers(Bench *b) {
    Expr *a = symbol(b, 3), *zero = number(b, 0), *three = number(b, 3), *four = number(b, 4);
    Expr *not_three = make(b, OP_NE, a, three), *not_four = make(b, OP_NE, a, four);
    Expr *even = make(b, OP_EQ, make(b, OP_MOD, a, number(b, 2)), zero);
    Expr *threefold = make(b, OP_EQ, make(b, OP_MOD, a, three), zero);
    Algebra *algebra = algebra_new(b->arena, &b->prog, &b->role);
    uint64_t first, again;
    expect(b, beside(b, algebra, not_three, 4, &first), "a >= 3 and a != 3: a >= 4");
    expect(b, !beside(b, algebra, not_four, 4, &again), "a >= 3 and a != 4: a may be 3");
    expect(b, beside(b, algebra, not_three, 4, &again) && again < first / 4, "it is kept");
    expect(b, beside(b, algebra, even, 4, &first), "a >= 3 and a % 2 == 0: a >= 4");
    expect(b, !beside(b, algebra, threefold, 4, &again), "a >= 3 and a % 3 == 0: a may be 3");
    expect(b, beside(b, algebra, even, 4, &again) && again < first / 4, "it is kept");
}

/* The result of algebra_prove for a - c, with 0 <= a < 8 on the path */
static Certainty asked(Bench *b, PolyClaim claim, Expr *formula, int64_t c) {
    Expr *a = symbol(b, 3), *natural = make(b, OP_GE, a, number(b, 0));
    Expr *within = make(b, OP_AND, natural, make(b, OP_LT, a, number(b, 8)));
    Algebra *algebra = algebra_new(b->arena, &b->prog, &b->role);
    algebra_assume(algebra, &b->role, within, true);
    const Poly *poly = algebra_poly(algebra, &b->role, formula);
    return algebra_prove(algebra, claim, poly_offset(algebra, poly, -c));
}

static void claims(Bench *b) {
    Expr *a = symbol(b, 3), *eighth = make(b, OP_DIV, a, number(b, 8)), *n = symbol(b, 0);
    expect(b, asked(b, CLAIM_NOT_NEGATIVE, a, 0) == CERTAINLY, "a >= 0");
    expect(b, asked(b, CLAIM_NOT_NEGATIVE, a, 1) == NOT_CERTAIN, "a >= 1 is not known");
    expect(b, asked(b, CLAIM_NOT_NEGATIVE, n, INT32_MAX) == CERTAINLY_NOT, "no extent is so large");
    expect(b, asked(b, CLAIM_ZERO, eighth, 0) == CERTAINLY, "a / 8 == 0");
    expect(b, asked(b, CLAIM_ZERO, a, 3) == NOT_CERTAIN, "a == 3 is not known");
    expect(b, asked(b, CLAIM_ZERO, n, -1) == CERTAINLY_NOT, "N + 1 is not 0");
    expect(b, asked(b, CLAIM_NOT_ZERO, a, 8) == CERTAINLY, "a != 8");
    expect(b, asked(b, CLAIM_NOT_ZERO, make(b, OP_MUL, a, number(b, 3)), 7) == CERTAINLY,
           "3a != 7");
    expect(b, asked(b, CLAIM_NOT_ZERO, a, 7) == NOT_CERTAIN, "a != 7 is not known");
    expect(b, asked(b, CLAIM_NOT_ZERO, number(b, 4), 4) == CERTAINLY_NOT, "4 - 4 is 0");
    /* Truncated to 32 bits, but exact on this path */
    Expr *large = make(b, OP_MUL, a, number(b, 1 << 28));
    expect(b, asked(b, CLAIM_NOT_NEGATIVE, large, 0) == CERTAINLY, "a << 28 fits below 8");
    expect(b, asked(b, CLAIM_NOT_NEGATIVE, make(b, OP_ADD, large, large), 0) == NOT_CERTAIN,
           "a << 29 is cut off");
    expect(b,
           asked(b, CLAIM_ZERO, make(b, OP_SUB, make(b, OP_DIV, large, number(b, 1 << 28)), a),
                 0) == CERTAINLY,
           "(a << 28) / (1 << 28) is a");
}

int main(void) {
    Bench bench = {.arena = arena_new()};
    if (!bench.arena) return 1;
    set_up(&bench);
    bench.prog.roles.items[0] = bench.role;
    forms(&bench);
    claims(&bench);
    other_paths(&bench);
    kept_answers(&bench);
    paths(&bench); /* before there are any preconditions */
    paths_of_quotients(&bench);
    undone_paths(&bench);
    bounds(&bench);
    divisors(&bench);
    arena_free(bench.arena);
    return bench.failed ? 1 : 0;
}
