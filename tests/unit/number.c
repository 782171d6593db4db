/* Arithmetic of known floating-point numbers compared with that of C in single precision, on zeros,
 * ones, infinities, NaN, subnormal numbers and numbers near the limits of f32. */
#include "prog/number.h"
#include "tests/unit/expect.h"

#include <math.h>

static const float numbers[] = {0.0f,
                                -0.0f,
                                1.0f,
                                -1.0f,
                                2.0f,
                                0.5f,
                                3.0f,
                                -3.0f,
                                0.1f,
                                -0.3f,
                                1.00024414f,
                                0x1p-126f,
                                0x1p-149f,
                                0x1.8p-127f,
                                0x1p126f,
                                -0x1p127f,
                                0x1p-100f,
                                0x1p100f,
                                0x1.fffffep127f,
                                88.8f,
                                -87.4f,
                                -104.0f,
                                1e-39f,
                                16777216.0f,
                                INFINITY,
                                -INFINITY,
                                NAN};

/* The same number: the sign of zero counts */
static bool same(double a, float b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == (double)b && !signbit(a) == !signbit(b);
}

static void operations(float a, float b) {
    struct {
        BinaryOp op;
        volatile float value;
    } rows[] = {{OP_ADD, a + b}, {OP_SUB, a - b}, {OP_MUL, a * b}, {OP_DIV, a / b}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        Number fast = number_computed(rows[i].op, ACCURACY_FAST, (double)a, (double)b);
        Number exact = number_computed(rows[i].op, ACCURACY_EXACT, (double)a, (double)b);
        EXPECT(exact.exact && same(exact.value, rows[i].value));
        EXPECT(same(fast.value, rows[i].value));
        EXPECT(fast.exact || rows[i].op == OP_DIV);
    }
    EXPECT(number_compares(OP_LT, (double)a, (double)b) == (a < b));
    EXPECT(number_compares(OP_GE, (double)a, (double)b) == (a >= b));
    EXPECT(number_compares(OP_NE, (double)a, (double)b) == !(a == b));
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        volatile float fused = fmaf(a, b, numbers[i]);
        const double args[] = {(double)a, (double)b, (double)numbers[i]};
        Number given = number_called(IN_fma, ACCURACY_FAST, args);
        EXPECT(given.exact && same(given.value, fused));
    }
}

static Number fast(Intrinsic which, double a) { return number_called(which, ACCURACY_FAST, &a); }

static bool exactly(Number number, double value) {
    return number.exact && same(number.value, (float)value);
}

/* The tables of the PTX ISA for the fast forms */
static void tables(void) {
    const double inf = (double)INFINITY, nan = (double)NAN, tiny = (double)1e-39f;
    EXPECT(exactly(fast(IN_exp, 0), 1) && exactly(fast(IN_exp, -inf), 0));
    EXPECT(exactly(fast(IN_exp, tiny), 1) && exactly(fast(IN_exp2, -tiny), 1));
    EXPECT(exactly(fast(IN_exp, -89), 0) && exactly(fast(IN_exp, 90), inf));
    EXPECT(!fast(IN_exp, 88.72).exact && !fast(IN_exp2, 1).exact);
    EXPECT(exactly(fast(IN_log, 0), -inf) && exactly(fast(IN_log2, tiny), -inf));
    EXPECT(exactly(fast(IN_log, 1), 0) && exactly(fast(IN_log, -1), nan));
    EXPECT(exactly(fast(IN_rcp, tiny), inf) && exactly(fast(IN_rcp, -0.0), -inf));
    EXPECT(exactly(fast(IN_rcp, 0x1p127), 0) == false && exactly(fast(IN_rcp, -0x1.8p127), -0.0));
    EXPECT(exactly(fast(IN_rcp, 1), 1) && !fast(IN_rcp, 3).exact);
    EXPECT(exactly(fast(IN_rsqrt, -tiny), -inf) && exactly(fast(IN_rsqrt, tiny), inf));
    EXPECT(exactly(fast(IN_rsqrt, inf), 0) && exactly(fast(IN_rsqrt, -1), nan));
    EXPECT(exactly(fast(IN_sqrt, -tiny), -0.0) && exactly(fast(IN_sqrt, -1), nan));
    EXPECT(exactly(fast(IN_sin, inf), nan) && exactly(fast(IN_cos, tiny), 1));
    EXPECT(exactly(number_called(IN_sin, ACCURACY_EXACT, &tiny), tiny));
    EXPECT(exactly(number_called(IN_cos, ACCURACY_EXACT, (double[]){-inf}), nan));
    EXPECT(!number_called(IN_sin, ACCURACY_EXACT, (double[]){1e30}).exact);
    EXPECT(exactly(fast(IN_tanh, -inf), -1) && exactly(fast(IN_tanh, tiny), tiny));
    EXPECT(fast(IN_exp, 1).value == (double)(float)exp(1) && !fast(IN_exp, 1).exact);
    const double pair[] = {0.0, -0.0, 0};
    EXPECT(exactly(fast(IN_sigmoid, inf), 1) && exactly(fast(IN_sigmoid, -inf), 0));
    EXPECT(exactly(fast(IN_sigmoid, -1e4), 0) && exactly(fast(IN_sigmoid, nan), nan));
    EXPECT(fast(IN_sigmoid, 0).value == 0.5 && !fast(IN_sigmoid, 0).exact);
    EXPECT(exactly(fast(IN_expm1, -0.0), -0.0) && exactly(fast(IN_expm1, -inf), -1));
    EXPECT(exactly(fast(IN_log1p, 0x1p-140), 0x1p-140) && exactly(fast(IN_log1p, -1), -inf));
    EXPECT(exactly(fast(IN_log1p, -1.5), nan) && exactly(fast(IN_expm1, inf), inf));
    EXPECT(exactly(number_called(IN_pow, ACCURACY_FAST, (double[]){-0.0, -3}), -inf));
    EXPECT(!number_called(IN_pow, ACCURACY_EXACT, (double[]){3, 0.5}).exact);
    EXPECT(exactly(fast(IN_erf, -inf), -1) && exactly(fast(IN_erf, nan), nan));
    EXPECT(!fast(IN_erf, 1).exact && fast(IN_erf, 1).value == (double)(float)erf(1));
    EXPECT(exactly(fast(IN_round, 2.5), 2) && exactly(fast(IN_round, -3.5), -4));
    EXPECT(exactly(fast(IN_round, -0.5), -0.0) && exactly(fast(IN_round, -0.0), -0.0));
    EXPECT(exactly(fast(IN_round, 0.49999997), 0) && exactly(fast(IN_round, 0.75), 1));
    EXPECT(exactly(fast(IN_round, -inf), -inf) && exactly(fast(IN_round, nan), nan));
    EXPECT(exactly(number_called(IN_min, ACCURACY_FAST, pair), -0.0));
    EXPECT(exactly(number_called(IN_max, ACCURACY_FAST, pair), 0.0));
    EXPECT(exactly(number_called(IN_rsqrt, ACCURACY_EXACT, (double[]){0.1}),
                   (double)(1 / sqrtf(0.1f))));
}

static void conversions(void) {
    EXPECT(number_from_integer(E_I64, E_F32, (1LL << 53) + (1LL << 29) + 1) ==
           (double)((1LL << 53) + (1LL << 30)));
    EXPECT(number_from_integer(E_U64, E_F32, -1) == 0x1p64);
    EXPECT(number_from_integer(E_I32, E_BF16, (1 << 24) + (1 << 16) + 1) == 0x1p24);
    EXPECT(number_rounded(E_F16, 65520) == (double)INFINITY && number_rounded(E_E4M3, 1e9) == 448);
    EXPECT(number_to_integer(E_I32, 3e9) == INT32_MAX && number_to_integer(E_U8, -1.5) == 0);
    EXPECT(number_to_integer(E_I64, (double)NAN) == 0 && number_to_integer(E_I8, -1.9) == -1);
}

int main(void) {
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        for (size_t k = 0; k < COUNT_OF(numbers); k++) operations(numbers[i], numbers[k]);
    tables();
    conversions();
    return expect_failures();
}
