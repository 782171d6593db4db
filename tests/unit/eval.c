/* The arithmetic of expressions compared with the same in 128 bits, truncated to the width: on
 * numbers near the limits of every type and near 0. */
#include "prog/eval.h"

#include <stdio.h>

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 WideBits;

static int failed;

static void expect(bool right, const char *what, Element type, int64_t a, int64_t b) {
    if (right) return;
    failed++;
    printf("eval: %s of %s: %lld, %lld\n", what, element_rows[type].spelling, (long long)a,
           (long long)b);
}

/* The number that the stored bits represent */
static Wide meant(Element type, int64_t held) {
    return type == E_U64 ? (Wide)(uint64_t)held : (Wide)held;
}

/* The low bits of a number, in the stored form */
static int64_t cut(Element type, Wide number) {
    uint64_t bits = (uint64_t)number;
    if (type == E_I32) return (int32_t)(uint32_t)bits;
    return type == E_U32 ? (int64_t)(uint32_t)bits : (int64_t)bits;
}

static bool wide_binary(BinaryOp op, Wide a, Wide b, Wide *out) {
    switch (op) {
    case OP_ADD: return *out = a + b, true;
    case OP_SUB: return *out = a - b, true;
    case OP_MUL: return *out = (Wide)((WideBits)a * (WideBits)b), true;
    case OP_DIV: return b != 0 && (*out = a / b, true);
    case OP_MOD: return b != 0 && (*out = a % b, true);
    case OP_EQ: return *out = a == b, true;
    case OP_NE: return *out = a != b, true;
    case OP_LT: return *out = a < b, true;
    case OP_LE: return *out = a <= b, true;
    case OP_GT: return *out = a > b, true;
    case OP_GE: return *out = a >= b, true;
    case OP_AND: return *out = a != 0 && b != 0, true;
    case OP_OR: return *out = a != 0 || b != 0, true;
    }
    return false;
}

static void binaries(Element type, int64_t a, int64_t b) {
    static const char *const names[] = {
        "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||"};
    for (BinaryOp op = OP_ADD; op <= OP_OR; op++) {
        int64_t value = 0;
        Wide wide = 0;
        bool defined = wide_binary(op, meant(type, a), meant(type, b), &wide);
        bool given = eval_binary(op, type, a, b, &value);
        expect(given == defined && (!given || value == cut(type, wide)), names[op], type, a, b);
        if (type != E_I64) continue;
        bool fits = defined && wide >= INT64_MIN && wide <= INT64_MAX;
        given = eval_exact(op, a, b, &value);
        expect(given == fits && (!given || value == (int64_t)wide), "exact", type, a, b);
    }
}

static void calls(Element type, int64_t a, int64_t b) {
    Wide x = meant(type, a), y = meant(type, b);
    int64_t args[2] = {a, b}, value = 0;
    expect(eval_call(IN_min, type, args, &value) && meant(type, value) == (x < y ? x : y), "min",
           type, a, b);
    expect(eval_call(IN_max, type, args, &value) && meant(type, value) == (x > y ? x : y), "max",
           type, a, b);
    expect(eval_call(IN_abs, type, args, &value) && value == cut(type, x < 0 ? -x : x), "abs", type,
           a, b);
    expect(eval_unary(OP_NEG, type, a) == cut(type, -x), "-", type, a, b);
    bool given = eval_call(IN_ceil_div, type, args, &value);
    expect(given == (y > 0), "ceil where it is defined", type, a, b);
    if (!given) return;
    Wide up = meant(type, value); /* up - 1 < x / y <= up */
    expect(up * y >= x && (up - 1) * y < x, "ceil", type, a, b);
}

static int64_t numbers[64];
static int count;

static void around(int64_t value) {
    for (int i = -2; i <= 2; i++) numbers[count++] = (int64_t)((uint64_t)value + (uint64_t)i);
}

static void casts(void) {
    static const Element types[] = {E_I8, E_U8, E_I32, E_U32, E_I64, E_U64};
    for (int i = 0; i < count; i++)
        for (size_t t = 0; t < COUNT_OF(types); t++) {
            int bits = 8 * element_rows[types[t]].bytes;
            Wide size = (Wide)1 << bits, low = ((Wide)numbers[i] % size + size) % size;
            bool is_signed = element_rows[types[t]].kind == ELEMENT_SIGNED;
            Wide kept = is_signed && low >= size / 2 ? low - size : low;
            int64_t value = eval_cast(types[t], numbers[i]);
            expect(meant(types[t], value) == kept, "cast", types[t], numbers[i], 0);
            expect(eval_fits(types[t], numbers[i]) == (kept == (Wide)numbers[i]), "fits", types[t],
                   numbers[i], 0);
        }
}

/* ---- expressions ----------------------------------------------------------------------------- */

static bool leaf(const void *data, const Expr *expr, int64_t *out) {
    const int64_t *values = data;
    return expr->kind == X_SYMBOL && expr->index >= 0 && (*out = values[expr->index], true);
}

static bool is(const int64_t *values, const Expr *expr, bool exact, bool known, int64_t wanted) {
    int64_t value = 0;
    EvalEnv env = {.leaf = leaf, .data = values, .exact = exact};
    return eval_expr(&env, expr, &value) == known && (!known || value == wanted);
}

static Expr *node(Arena *arena, ExprKind kind, Element type) {
    Expr *expr = NEW(arena, Expr);
    expr->kind = kind;
    expr->type = type;
    return expr;
}

static Expr *binary(Arena *arena, BinaryOp op, Element type, Expr *a, Expr *b) {
    Expr *expr = node(arena, X_BINARY, type);
    expr->binary.op = op, expr->binary.left = a, expr->binary.right = b;
    return expr;
}

static void expressions(Arena *arena) {
    int64_t values[] = {INT32_MAX, 7};
    Expr *big = node(arena, X_SYMBOL, E_I32), *seven = node(arena, X_SYMBOL, E_I32),
         *unknown = node(arena, X_SYMBOL, E_I32);
    big->index = 0, seven->index = 1, unknown->index = -1;
    Expr *one = expr_integer(arena, E_I32, 1, (Span){0, 0}),
         *zero = expr_integer(arena, E_I32, 0, (Span){0, 0});
    Expr *sum = binary(arena, OP_ADD, E_I32, big, one), *wide = node(arena, X_CAST, E_I64);
    wide->cast = sum;
    expect(is(values, sum, false, true, INT32_MIN), "an i32 wraps", E_I32, 0, 0);
    expect(is(values, sum, true, true, INT64_C(2147483648)), "a launch does not", E_I32, 0, 0);
    expect(is(values, wide, false, true, INT32_MIN), "it has wrapped before it is widened", E_I64,
           0, 0);
    Expr *no = binary(arena, OP_LT, E_BOOL, seven, one),
         *never = binary(arena, OP_LT, E_BOOL, unknown, one);
    expect(is(values, binary(arena, OP_AND, E_BOOL, never, no), false, true, 0), "false decides",
           E_BOOL, 0, 0);
    expect(is(values, binary(arena, OP_OR, E_BOOL, never, no), false, false, 0), "false does not",
           E_BOOL, 0, 0);
    Expr *select = node(arena, X_SELECT, E_I32);
    select->select.condition = no, select->select.then = unknown, select->select.otherwise = seven;
    expect(is(values, select, false, true, 7), "what is not chosen", E_I32, 0, 0);
    expect(is(values, binary(arena, OP_DIV, E_I32, seven, zero), false, false, 0), "/ 0", E_I32, 0,
           0);
    expect(is(values, unknown, false, false, 0), "not known", E_I32, 0, 0);
}

int main(void) {
    static const Element types[] = {E_I32, E_U32, E_I64, E_U64};
    Arena *arena = arena_new();
    if (!arena) return 1;
    around(0), around(7), around(INT32_MAX), around(INT32_MIN), around(UINT32_MAX),
        around(INT64_MAX), around(65536);
    for (size_t t = 0; t < COUNT_OF(types); t++)
        for (int i = 0; i < count; i++)
            for (int k = 0; k < count; k++) {
                int64_t a = cut(types[t], numbers[i]), b = cut(types[t], numbers[k]);
                binaries(types[t], a, b);
                calls(types[t], a, b);
            }
    casts();
    expressions(arena);
    arena_free(arena);
    return failed ? 1 : 0;
}
