/* Polynomials compared with numbers: random formulas of all widths, evaluated in their width by
 * prog/eval.c and exactly as polynomials. The value of a formula equals that of its polynomial
 * and of its normal form, is in its range, and satisfies all that is proved about it. */
#include "algebra/private.h"
#include "prog/eval.h"

#include <stdio.h>

#define FORMULAS 4000
#define SAMPLES  24
#define SYMBOLS  4 /* i32, i32, u32, i64 */

static uint64_t state = 7;

static int below(int limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)((state >> 11) % (uint64_t)limit);
}

static const Element types[SYMBOLS] = {E_I32, E_I32, E_U32, E_I64};

/* ---- formulas -------------------------------------------------------------------------------- */

static Expr *node(Arena *arena, ExprKind kind, Element type) {
    Expr *expr = NEW(arena, Expr);
    expr->kind = kind;
    expr->type = type;
    return expr;
}

static Expr *cast(Arena *arena, Expr *from, Element type) {
    if (from->type == type) return from;
    Expr *expr = node(arena, X_CAST, type);
    expr->cast = from;
    return expr;
}

static Expr *formula(Arena *arena, Element type, int depth);

static Expr *leaf(Arena *arena, Element type) {
    static const int64_t limits[] = {0, 1, 2, 3, 7, 8, 61, 128, 65536, INT32_MAX};
    if (below(3) == 0)
        return expr_integer(arena, type, limits[below(COUNT_OF(limits))], (Span){0, 0});
    int index = below(SYMBOLS);
    Expr *expr = node(arena, X_SYMBOL, types[index]);
    expr->index = index;
    return cast(arena, expr, type);
}

static Expr *condition(Arena *arena, int depth) {
    static const BinaryOp ops[] = {OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE};
    Element type = types[below(SYMBOLS)];
    Expr *expr = node(arena, X_BINARY, E_BOOL);
    expr->binary.op = ops[below(6)];
    expr->binary.left = formula(arena, type, depth);
    expr->binary.right = formula(arena, type, depth);
    return expr;
}

static Expr *call(Arena *arena, Intrinsic which, Element type, int depth) {
    Expr *expr = node(arena, X_CALL, type);
    expr->call.which = which;
    expr->call.count = 2;
    expr->call.args[0] = formula(arena, type, depth);
    expr->call.args[1] = which == IN_ceil_div
                             ? expr_integer(arena, type, 1 + below(70), (Span){0, 0})
                             : formula(arena, type, depth);
    return expr;
}

static Expr *formula(Arena *arena, Element type, int depth) {
    static const BinaryOp ops[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MOD, OP_ADD, OP_SUB, OP_MUL};
    static const Element narrow[] = {E_I8, E_U8};
    if (depth <= 0) return leaf(arena, type);
    int which = below(12);
    if (which < 8) {
        Expr *expr = node(arena, X_BINARY, type);
        expr->binary.op = ops[which];
        expr->binary.left = formula(arena, type, depth - 1);
        expr->binary.right = which == 3 || which == 4
                                 ? expr_integer(arena, type, 1 + below(70), (Span){0, 0})
                                 : formula(arena, type, depth - 1);
        return expr;
    }
    if (which == 8) return cast(arena, formula(arena, types[below(SYMBOLS)], depth - 1), type);
    if (which == 9)
        return cast(arena, cast(arena, formula(arena, E_I32, depth - 1), narrow[below(2)]), type);
    if (which == 10)
        return call(arena,
                    below(3) == 0 ? IN_ceil_div
                    : below(2)    ? IN_min
                                  : IN_max,
                    type, depth - 1);
    Expr *expr = node(arena, X_SELECT, type);
    expr->select.condition = condition(arena, depth - 1);
    expr->select.then = formula(arena, type, depth - 1);
    expr->select.otherwise = formula(arena, type, depth - 1);
    return expr;
}

/* ---- polynomials ----------------------------------------------------------------------------- */

typedef struct Numbers {
    const Algebra *algebra;
    const int64_t *symbols;
    bool lost; /* an unknown atom, or a value that is too large */
} Numbers;

static Wide value_of(Numbers *numbers, const Poly *poly);

static Wide floor_wide(Wide a, Wide b) { return a / b - (a % b < 0); }

static Wide cut_off(Wide value, Element type) {
    Range range = range_of_type(type);
    Wide past = range.most - range.least + 1, rest = (value - range.least) % past;
    return range.least + (rest < 0 ? rest + past : rest);
}

static Wide value_of_atom(Numbers *numbers, int id) {
    const Atom *atom = &numbers->algebra->atoms.items[id];
    Wide args[3] = {0, 1, 0};
    if (atom->kind == ATOM_SYMBOL) return numbers->symbols[atom->index];
    for (int i = 0; i < 3 && atom->args[i]; i++) args[i] = value_of(numbers, atom->args[i]);
    bool divides = atom->kind == ATOM_DIV || atom->kind == ATOM_MOD || atom->kind == ATOM_CEIL ||
                   atom->kind == ATOM_FLOOR;
    numbers->lost |= divides && args[1] <= 0;
    if (numbers->lost) return 0;
    if (atom->kind == ATOM_DIV) return args[0] / args[1];
    if (atom->kind == ATOM_MOD) return args[0] % args[1];
    if (atom->kind == ATOM_CEIL) return -floor_wide(-args[0], args[1]);
    if (atom->kind == ATOM_FLOOR) return floor_wide(args[0], args[1]);
    if (atom->kind == ATOM_MIN) return args[0] < args[1] ? args[0] : args[1];
    if (atom->kind == ATOM_MAX) return args[0] > args[1] ? args[0] : args[1];
    if (atom->kind == ATOM_SELECT) return args[0] ? args[1] : args[2];
    if (atom->kind == ATOM_TRUTH) return args[0] >= 0;
    if (atom->kind == ATOM_WRAP) return cut_off(args[0], atom->type);
    numbers->lost = true;
    return 0;
}

static Wide value_of(Numbers *numbers, const Poly *poly) {
    Wide sum = 0;
    for (int i = 0; i < poly->count; i++) {
        Wide product = poly->terms[i].coef;
        for (int k = 0; k < poly->terms[i].count; k++) {
            Wide factor = value_of_atom(numbers, poly->terms[i].atoms[k]), most = (Wide)1 << 62;
            numbers->lost |=
                factor > 4 * most || factor < -4 * most || product > most || product < -most;
            if (numbers->lost) return 0;
            product *= factor;
        }
        numbers->lost |= product > WIDE_MOST || product < -WIDE_MOST;
        if (numbers->lost) return 0;
        sum += product;
    }
    return sum;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int64_t sample(Element type) {
    static const int64_t least[] = {0, 1, -1, INT32_MAX, INT32_MIN, UINT32_MAX, 65536, 46341};
    Wide value = below(2) ? least[below(COUNT_OF(least))] + below(3) - 1
                          : (int64_t)(state * 0x9E3779B97F4A7C15u) >> below(60);
    return (int64_t)cut_off(value, type);
}

static bool leaf_value(const void *data, const Expr *expr, int64_t *out) {
    const int64_t *symbols = data;
    if (expr->kind != X_SYMBOL) return false;
    *out = symbols[expr->index];
    return true;
}

typedef struct Tried {
    const Poly *poly, *normal;
    const Poly *proved; /* >= 0, or NULL */
    Range range;
    int compared;
} Tried;

static bool agrees(Algebra *algebra, const Expr *expr, const int64_t *symbols, Tried *tried) {
    int64_t value;
    Numbers numbers = {algebra, symbols, false};
    if (!eval_expr(&(EvalEnv){.leaf = leaf_value, .data = symbols}, expr, &value)) return true;
    Wide wanted = expr->type == E_U64 ? (Wide)(uint64_t)value : value;
    Wide plain = value_of(&numbers, tried->poly);
    if (numbers.lost) return true;
    tried->compared++;
    bool right = plain == wanted && wanted >= tried->range.least && wanted <= tried->range.most;
    if (tried->proved) right &= value_of(&numbers, tried->proved) >= 0;
    if (tried->normal) {
        Wide normal = value_of(&numbers, tried->normal);
        right &= numbers.lost || normal == wanted;
    }
    if (!right)
        printf("widths: %lld is wanted, and the polynomial gives %lld\n", (long long)value,
               (long long)plain);
    return right;
}

static bool one(Arena *arena, const Prog *prog, int *compared) {
    Algebra *algebra = algebra_new(arena, prog, NULL);
    algebra->proof_work = PROOF_WORK;
    algebra_work_anew(algebra);
    Expr *expr = formula(arena, types[below(SYMBOLS)], 1 + below(4));
    Tried tried = {.poly = algebra_poly(algebra, NULL, expr)};
    bool right = true;
    if (!tried.poly) return true;
    tried.range = range_of_poly(algebra, tried.poly);
    tried.normal = poly_normal(algebra, tried.poly);
    tried.proved = poly_offset(algebra, tried.poly, below(2) ? 0 : below(100) - 50);
    if (!algebra_proves(algebra, CLAIM_NOT_NEGATIVE, tried.proved)) tried.proved = NULL;
    for (int i = 0; i < SAMPLES && right; i++) {
        int64_t symbols[SYMBOLS];
        for (int s = 0; s < SYMBOLS; s++) symbols[s] = sample(types[s]);
        right = agrees(algebra, expr, symbols, &tried);
    }
    if (!right) {
        Str text = str_new(arena);
        expr_print(expr, prog, NULL, NULL, &text);
        str_add(&text, "\n    ");
        poly_print(algebra, tried.poly, &text);
        printf("    %s\n", text.text);
    }
    *compared += tried.compared;
    return right;
}

int main(void) {
    static const char *const names[SYMBOLS] = {"a", "b", "u", "l"};
    int failed = 0, compared = 0;
    for (int i = 0; i < FORMULAS; i++) {
        Arena *arena = arena_new();
        Prog prog = {0};
        for (int s = 0; s < SYMBOLS; s++)
            vec_push(arena, &prog.symbols, (Symbol){.name = names[s]});
        failed += !one(arena, &prog, &compared);
        arena_free(arena);
    }
    if (compared < FORMULAS * SAMPLES / 2)
        failed++, printf("widths: only %d values were compared\n", compared);
    return failed ? 1 : 0;
}
