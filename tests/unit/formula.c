/* Formulas: values, faults and their laziness, text with minimal parentheses. */
#include "launch/private.h"

#include "tests/unit/expect.h"
#include "tests/unit/sample.h"

#include <math.h>

#define LEAST                                                                                      \
    { F_CONST, INT64_MIN }
#define ONE                                                                                        \
    { F_CONST, 1 }
#define N                                                                                          \
    { F_SYMBOL, 0 }
#define M                                                                                          \
    { F_SYMBOL, 1 }

static void value(Formula formula, int64_t wanted, int line) {
    const int64_t symbols[] = {7, 3, 0};
    int64_t got;
    FormulaFault fault = formula_eval(&formula, symbols, &got);
    if (fault != FORMULA_FINE || got != wanted) {
        fprintf(stderr, "%s:%d: %lld, fault %d\n", __FILE__, line, (long long)got, (int)fault);
        failed_expectations++;
    }
}

static void faults(Formula formula, FormulaFault wanted, int line) {
    const int64_t symbols[] = {7, 3, 0};
    int64_t got;
    FormulaFault fault = formula_eval(&formula, symbols, &got);
    if (fault != wanted) {
        fprintf(stderr, "%s:%d: %lld, fault %d\n", __FILE__, line, (long long)got, (int)fault);
        failed_expectations++;
    }
}

#define VALUE(wanted, ...) value((Formula)STEPS(__VA_ARGS__), (wanted), __LINE__)
#define FAULT(wanted, ...) faults((Formula)STEPS(__VA_ARGS__), (wanted), __LINE__)

static void values(void) {
    VALUE(10, N, M, {F_ADD, 0});
    VALUE(4, N, M, {F_SUB, 0});
    VALUE(21, N, M, {F_MUL, 0});
    VALUE(2, N, M, {F_DIV, 0});
    VALUE(1, N, M, {F_MOD, 0});
    VALUE(3, N, M, {F_CEIL, 0});
    VALUE(3, N, M, {F_MIN, 0});
    VALUE(7, N, M, {F_MAX, 0});
    VALUE(-7, N, {F_NEG, 0});
    VALUE(0, N, {F_NOT, 0});
    VALUE(1, M, N, {F_LT, 0});
    VALUE(1, M, M, {F_LE, 0});
    VALUE(0, M, M, {F_LT, 0});
    VALUE(1, M, N, {F_NE, 0});
    VALUE(0, M, N, {F_EQ, 0});
    VALUE(1, N, M, {F_AND, 0});
    VALUE(7, ONE, N, M, {F_SELECT, 0});
    VALUE(3, {F_CONST, 0}, N, M, {F_SELECT, 0});
    /* C's quotient and remainder, and the ceiling, for each pair of signs */
    VALUE(-2, {F_CONST, -7}, M, {F_DIV, 0});
    VALUE(-1, {F_CONST, -7}, M, {F_MOD, 0});
    VALUE(-2, {F_CONST, -7}, M, {F_CEIL, 0});
    VALUE(3, {F_CONST, -7}, {F_CONST, -3}, {F_CEIL, 0});
    VALUE(-2, {F_CONST, 7}, {F_CONST, -3}, {F_CEIL, 0});
    VALUE(2, {F_CONST, 6}, M, {F_CEIL, 0});
    VALUE(0, {F_CONST, 0}, M, {F_CEIL, 0});
    VALUE(INT64_MAX, {F_CONST, INT64_MAX}, ONE, {F_CEIL, 0});
}

static void bounds(void) {
    FAULT(FORMULA_OVERFLOW, {F_CONST, INT64_MAX}, ONE, {F_ADD, 0});
    FAULT(FORMULA_OVERFLOW, LEAST, ONE, {F_SUB, 0});
    FAULT(FORMULA_OVERFLOW, {F_CONST, INT64_C(1) << 32}, {F_CONST, INT64_C(1) << 31}, {F_MUL, 0});
    FAULT(FORMULA_OVERFLOW, LEAST, {F_NEG, 0});
    FAULT(FORMULA_OVERFLOW, LEAST, {F_CONST, -1}, {F_DIV, 0});
    FAULT(FORMULA_OVERFLOW, LEAST, {F_CONST, -1}, {F_MOD, 0});
    FAULT(FORMULA_OVERFLOW, LEAST, {F_CONST, -1}, {F_CEIL, 0});
    FAULT(FORMULA_ZERO_DIVISOR, N, {F_SYMBOL, 2}, {F_DIV, 0});
    FAULT(FORMULA_ZERO_DIVISOR, N, {F_SYMBOL, 2}, {F_MOD, 0});
    FAULT(FORMULA_ZERO_DIVISOR, N, {F_SYMBOL, 2}, {F_CEIL, 0});
    FAULT(FORMULA_ZERO_DIVISOR, N, {F_SYMBOL, 2}, {F_DIV, 0}, ONE, {F_MIN, 0});
    /* A subtree that is not selected may fault */
    VALUE(0, {F_SYMBOL, 2}, N, {F_SYMBOL, 2}, {F_DIV, 0}, {F_AND, 0});
    VALUE(1, N, N, {F_SYMBOL, 2}, {F_DIV, 0}, {F_OR, 0});
    VALUE(7, ONE, N, N, {F_SYMBOL, 2}, {F_DIV, 0}, {F_SELECT, 0});
    FAULT(FORMULA_ZERO_DIVISOR, {F_SYMBOL, 2}, N, N, {F_SYMBOL, 2}, {F_DIV, 0}, {F_SELECT, 0});
    FAULT(FORMULA_ZERO_DIVISOR, N, N, {F_SYMBOL, 2}, {F_DIV, 0}, {F_AND, 0});
    FAULT(FORMULA_ZERO_DIVISOR, N, {F_SYMBOL, 2}, {F_DIV, 0}, ONE, {F_OR, 0});
    Formula none = {NULL, 0};
    value(none, 0, __LINE__);
}

static void text(Scratch *scratch, Formula formula, const char *wanted, int line) {
    Manifest *manifest = sample_manifest(scratch->arena);
    Str out = str_new(scratch->arena);
    formula_print(&formula, manifest, &out);
    if (strcmp(out.text, wanted) != 0) {
        fprintf(stderr, "%s:%d: printed \"%s\", wanted \"%s\"\n", __FILE__, line, out.text, wanted);
        failed_expectations++;
    }
}

#define TEXT(wanted, ...) text(scratch, (Formula)STEPS(__VA_ARGS__), (wanted), __LINE__)

/* Floats keep their order, and are compared as f32 compares them. */
static void floats(void) {
    static const double ascending[] = {-HUGE_VAL, -0x1.fffffep127, -1, -0x1p-149, 0,
                                       0x1p-149,  0x1p-126,        1,  0x1p127,   HUGE_VAL};
    for (size_t i = 0; i < COUNT_OF(ascending); i++) {
        EXPECT(formula_ordered(formula_order(ascending[i])) == ascending[i]);
        EXPECT(i == 0 || formula_order(ascending[i - 1]) < formula_order(ascending[i]));
        EXPECT(formula_order(-ascending[i]) == -formula_order(ascending[i]));
    }
    EXPECT(formula_order(-0.0) == 0);
    EXPECT(formula_order((double)NAN) == ORDER_NAN && isnan(formula_ordered(ORDER_NAN)));
}

static void texts(Scratch *scratch) {
    TEXT("N", N);
    TEXT("-3", {F_CONST, -3});
    TEXT("N + M * 2", N, M, {F_CONST, 2}, {F_MUL, 0}, {F_ADD, 0});
    TEXT("(N + M) * 2", N, M, {F_ADD, 0}, {F_CONST, 2}, {F_MUL, 0});
    TEXT("N - M - 1", N, M, {F_SUB, 0}, ONE, {F_SUB, 0});
    TEXT("N - (M - 1)", N, M, ONE, {F_SUB, 0}, {F_SUB, 0});
    TEXT("N * (M / 1)", N, M, ONE, {F_DIV, 0}, {F_MUL, 0});
    TEXT("N * 2 % 16 == 0", N, {F_CONST, 2}, {F_MUL, 0}, {F_CONST, 16}, {F_MOD, 0}, {F_CONST, 0},
         {F_EQ, 0});
    TEXT("ceil(N + 1, 4096)", N, ONE, {F_ADD, 0}, {F_CONST, 4096}, {F_CEIL, 0});
    TEXT("min(N, max(M, 1))", N, M, ONE, {F_MAX, 0}, {F_MIN, 0});
    TEXT("N < M && (M <= 1 || !N)", N, M, {F_LT, 0}, M, ONE, {F_LE, 0}, N, {F_NOT, 0}, {F_OR, 0},
         {F_AND, 0});
    TEXT("N < M || M == 1 && N", N, M, {F_LT, 0}, M, ONE, {F_EQ, 0}, N, {F_AND, 0}, {F_OR, 0});
    TEXT("(N < M) == (M < N)", N, M, {F_LT, 0}, M, N, {F_LT, 0}, {F_EQ, 0});
    TEXT("N ? M : M ? 1 : N", N, M, M, ONE, N, {F_SELECT, 0}, {F_SELECT, 0});
    TEXT("(N ? M : 1) + 1", N, M, ONE, {F_SELECT, 0}, ONE, {F_ADD, 0});
    TEXT("-(-N)", N, {F_NEG, 0}, {F_NEG, 0});
    TEXT("-(-3)", {F_CONST, -3}, {F_NEG, 0});
    TEXT("-(N + 1)", N, ONE, {F_ADD, 0}, {F_NEG, 0});
    TEXT("!!N", N, {F_NOT, 0}, {F_NOT, 0});
    TEXT("N - -3", N, {F_CONST, -3}, {F_SUB, 0});
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct Draw {
    FormulaStep steps[256];
    int count;
    uint64_t state;
} Draw;

static uint32_t draw(Draw *from, uint32_t below) {
    from->state = from->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(from->state >> 33) % below;
}

/* An operation of the type, which may be that of a float */
static FormulaOp draw_op(Draw *from, bool is_float) {
    static const FormulaOp of_floats[] = {F_NEG, F_MIN, F_MAX, F_SELECT};
    if (is_float) return of_floats[draw(from, COUNT_OF(of_floats))];
    return (FormulaOp)(F_NEG + draw(from, F_SELECT - F_NEG + 1));
}

static void draw_leaf(Draw *from, bool is_float) {
    static const int64_t values[] = {0, 1, 7, -1, -5, INT64_MIN, INT64_MAX};
    static const double numbers[] = {0, 0.1f, -1, 0x1p-149, HUGE_VAL, -HUGE_VAL};
    FormulaStep step;
    if (draw(from, 2))
        step = (FormulaStep){F_SYMBOL, is_float ? 3 + draw(from, 2) : draw(from, 3)};
    else if (is_float)
        step = (FormulaStep){F_FLOAT, formula_order(numbers[draw(from, COUNT_OF(numbers))])};
    else
        step = (FormulaStep){F_CONST, values[draw(from, COUNT_OF(values))]};
    from->steps[from->count++] = step;
}

/* A random formula, in postfix */
static void draw_formula(Draw *from, int depth, bool is_float) {
    if (depth == 0 || draw(from, 4) == 0) {
        draw_leaf(from, is_float);
        return;
    }
    FormulaOp op = draw_op(from, is_float);
    bool compares = op >= F_EQ && op <= F_LE;
    bool floats = compares ? draw(from, 3) == 0 : is_float;
    for (int i = 0; i < formula_operands(op); i++)
        draw_formula(from, depth - 1, floats && !(op == F_SELECT && i == 0));
    from->steps[from->count++] = (FormulaStep){op, 0};
}

/* The printed form is read as a formula with the same values, which is printed the same. */
static void read_back(const Manifest *manifest) {
    const int64_t symbols[][5] = {
        {0, 0, 0, 0, ORDER_NAN}, {7, 3, 1, 1, -1}, {-2, 4096, 5, 0x3DCCCCCD, 0}};
    for (uint64_t seed = 0; seed < 20000; seed++) {
        Scratch one = scratch_new();
        Draw from = {.state = seed};
        draw_formula(&from, 4, false);
        Formula formula = {from.steps, from.count}, read;
        Str first = str_new(one.arena), second = str_new(one.arena);
        formula_print(&formula, manifest, &first);
        bool fine = formula_read(one.arena, manifest, first.text, &read);
        if (fine) formula_print(&read, manifest, &second);
        fine = fine && strcmp(first.text, second.text) == 0;
        for (size_t i = 0; fine && i < COUNT_OF(symbols); i++) {
            int64_t a, b;
            FormulaFault fault = formula_eval(&formula, symbols[i], &a);
            fine =
                formula_eval(&read, symbols[i], &b) == fault && (fault != FORMULA_FINE || a == b);
        }
        if (!EXPECT(fine)) fprintf(stderr, "%s, read as %s\n", first.text, second.text);
        scratch_free(&one);
    }
}

#define MANY 20 /* operands that wait: then the other evaluation is taken */

/* 0 + (0 + .. (0 + formula)) has the same value, or the same fault. */
static void either_evaluation(void) {
    const int64_t symbols[][5] = {{0}, {7, 3, 1, 1, -1}, {-2, 4096, 5, 0x3DCCCCCD, 0}};
    for (uint64_t seed = 0; seed < 20000; seed++) {
        Draw from = {.state = seed}, many = {.state = seed};
        draw_formula(&from, 4, false);
        while (many.count < MANY) many.steps[many.count++] = (FormulaStep){F_CONST, 0};
        draw_formula(&many, 4, false);
        for (int i = 0; i < MANY; i++) many.steps[many.count++] = (FormulaStep){F_ADD, 0};
        for (size_t i = 0; i < COUNT_OF(symbols); i++) {
            int64_t a, b;
            FormulaFault fault = formula_eval(&(Formula){from.steps, from.count}, symbols[i], &a);
            EXPECT(formula_eval(&(Formula){many.steps, many.count}, symbols[i], &b) == fault &&
                   (fault != FORMULA_FINE || a == b));
        }
    }
}

/* The sample with two floating-point symbols */
static const Manifest *with_floats(Scratch *scratch) {
    Manifest *manifest = sample_manifest(scratch->arena);
    vec_push(scratch->arena, &manifest->symbols, ((ManifestSymbol){.name = "a", .is_float = true}));
    vec_push(scratch->arena, &manifest->symbols, ((ManifestSymbol){.name = "b", .is_float = true}));
    return manifest;
}

static void unreadable(Scratch *scratch) {
    static const char *const texts[] = {
        "", "N +", "N M", "(N", "N)", "N == M == 1", "N < M <= 1", "N ? M", "K", "ceil(N)",
        "ceil N", "min(N, M, 1)", "9223372036854775808", "1.5", "N & M", "N = M", "N > M", "-",
        "N % * M",
        /* floats */
        "a", "a < 1", "N < a", "a + b < a", "!a", "a && N", "a ? N : M", "N ? a : b",
        "(N ? a : M) < a", "max(a, N) < b", "ceil(a, b)", "0f7FC00000 < a", "0f3F8000 < a",
        "0f3F80000G < a", "0F3F800000 < a", "a < inf", "a < 1.5"};
    const Manifest *manifest = with_floats(scratch);
    Formula out;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (!EXPECT(!formula_read(scratch->arena, manifest, texts[i], &out)))
            fprintf(stderr, "%s\n", texts[i]);
    static const struct {
        const char *open, *close;
    } nests[] = {{"(", ")"},       {"-", ""},        {"!", ""},
                 {"max(1, ", ")"}, {"N ? ", " : 1"}, {"1 + ", ""}};
    for (size_t i = 0; i < COUNT_OF(nests); i++) {
        Str deep = str_new(scratch->arena);
        for (int n = 0; n < 100000; n++) str_add(&deep, nests[i].open);
        str_char(&deep, 'N');
        for (int n = 0; n < 100000; n++) str_add(&deep, nests[i].close);
        EXPECT(!formula_read(scratch->arena, manifest, deep.text, &out));
    }
}

int main(void) {
    Scratch scratch = scratch_new();
    values();
    bounds();
    texts(&scratch);
    floats();
    read_back(with_floats(&scratch));
    either_evaluation();
    unreadable(&scratch);
    scratch_free(&scratch);
    return expect_failures();
}
