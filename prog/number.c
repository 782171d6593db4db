/* Arithmetic of known floating-point numbers: in doubles, and as a kernel computes it. */
#include "prog/number.h"

#include <math.h>

#define LEAST_NORMAL 0x1p-126

/* ---- in doubles ------------------------------------------------------------------------------ */

double number_smaller(double a, double b) {
    if (a == b) return signbit(a) ? a : b;
    return fmin(a, b);
}

double number_larger(double a, double b) {
    if (a == b) return signbit(a) ? b : a;
    return fmax(a, b);
}

double number_clamped(double a, double lo, double hi) {
    if (isnan(a) || isnan(lo) || isnan(hi)) return (double)NAN;
    return number_smaller(number_larger(a, lo), hi);
}

/* Not rint, which the rounding mode of the thread changes */
double number_whole(double a) {
    double below = floor(a), rest = a - below;
    if (isinf(a) || rest == 0) return a; /* keeps -0 */
    bool up = rest > 0.5 || (rest == 0.5 && fmod(below, 2) != 0);
    return copysign(up ? below + 1 : below, a);
}

double number_binary(BinaryOp op, double a, double b) {
    switch (op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_DIV: return a / b;
    case OP_MOD: return fmod(a, b);
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE: return number_compares(op, a, b);
    case OP_AND:
    case OP_OR: break; /* of truths only */
    }
    return (double)NAN;
}

bool number_compares(BinaryOp op, double a, double b) {
    switch (op) {
    case OP_EQ: return a == b;
    case OP_NE: return a != b;
    case OP_LT: return a < b;
    case OP_LE: return a <= b;
    case OP_GT: return a > b;
    case OP_GE: return a >= b;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_MOD:
    case OP_AND:
    case OP_OR: break;
    }
    return false;
}

double number_call(Intrinsic which, const double *args) {
    int count = intrinsic_rows[which].args;
    double a = args[0], b = count > 1 ? args[1] : 0, c = count > 2 ? args[2] : 0;
    switch (which) {
#define INTRINSIC(name, word, arguments, ops, exact_ops, ulp, accuracy, exact_accuracy, what,      \
                  value)                                                                           \
    case IN_##name:                                                                                \
        return value;
#include "prog/intrinsics.def"
#undef INTRINSIC
    case IN_COUNT: break;
    }
    return (double)NAN;
}

/* ---- conversions ----------------------------------------------------------------------------- */

double number_rounded(Element type, double value) {
    unsigned char stored[8];
    element_store(type, stored, value);
    return element_load(type, stored);
}

double number_epsilon(Element type) {
    double epsilon = 1;
    while (number_rounded(type, 1 + epsilon / 2) == 1 + epsilon / 2) epsilon /= 2;
    return epsilon;
}

int64_t number_to_integer(Element to, double value) {
    unsigned char stored[8];
    element_store(to, stored, value);
    return element_load_integer(to, stored);
}

double number_from_integer(Element from, Element to, int64_t value) {
    float rounded = from == E_U64 ? (float)(uint64_t)value : (float)value;
    return number_rounded(to, (double)rounded);
}

/* ---- in a kernel ----------------------------------------------------------------------------- */

static Number exactly(double value) { return (Number){value, true}; }

static Number single(double value) { return exactly(number_rounded(E_F32, value)); }

static Number about(double value) { return (Number){number_rounded(E_F32, value), false}; }

/* What `.ftz` makes of a number: subnormal ones become zeros of their sign */
static double flushed(double value) {
    return fabs(value) < LEAST_NORMAL ? copysign(0, value) : value;
}

static bool is_special(double value) { return value == 0 || isinf(value) || isnan(value); }

/* Sums, products, quotients and square roots of f32 in doubles round to the f32 that the exact ones
 * round to: 53 bits are at least 2 * 24 + 2. */
Number number_computed(BinaryOp op, Accuracy accuracy, double a, double b) {
    double value = number_binary(op, a, b);
    bool fast = op == OP_DIV && accuracy == ACCURACY_FAST;
    if (fast && !is_special(a) && !is_special(b) && fabs(b) != 1) return about(value);
    return single(value);
}

/* A result of a fast form with `.ftz`: known where it is flushed, except next to the limit */
static Number about_flushed(double value) {
    if (fabs(value) < LEAST_NORMAL / 2) return exactly(copysign(0, value));
    return about(flushed(value));
}

static Number power(Intrinsic which, double a) {
    double exponent = which == IN_exp ? a * 1.4426950408889634 : a;
    if (exponent > 129) return exactly((double)INFINITY);
    if (isnan(a) || a == 0) return exactly(number_call(which, &a));
    return about_flushed(number_call(which, &a));
}

/* Its exponential is infinite, or lost in the sum. */
static Number logistic(double a) {
    if (isnan(a)) return exactly(a);
    if (a > 25 || a < -90) return exactly(a > 0 ? 1 : 0);
    return about_flushed(number_call(IN_sigmoid, &a));
}

/* Near 0 they are x; erf rounds otherwise. */
static Number from_zero(Intrinsic which, double a) {
    double value = number_call(which, &a);
    if (which != IN_erf && fabs(a) < 0x1p-25) return exactly(a);
    return is_special(a) || is_special(value) ? exactly(value) : about(value);
}

/* Fast forms: PTX ISA 9.7.3, the tables of ex2, lg2, rcp, rsqrt, sqrt, sin, cos and tanh. Roots,
 * reciprocal and logarithm of 1 are exact. */
static Number approximated(Intrinsic which, double a) {
    double value;
    switch (which) {
    case IN_exp:
    case IN_exp2: return power(which, flushed(a));
    case IN_sigmoid: return logistic(a);
    case IN_expm1:
    case IN_log1p:
    case IN_erf: return from_zero(which, a);
    case IN_tanh:
        if (fabs(a) < LEAST_NORMAL) return exactly(a);
        return is_special(a) ? exactly(tanh(a)) : about(tanh(a));
    case IN_sin:
    case IN_cos:
    case IN_log:
    case IN_log2:
    case IN_sqrt:
    case IN_rsqrt:
    case IN_rcp:
        a = flushed(a), value = number_call(which, &a);
        if (is_special(a) || is_special(value)) return exactly(value);
        if (a == 1 && which != IN_sin && which != IN_cos) return exactly(value);
        return about_flushed(value);
    case IN_abs:
    case IN_min:
    case IN_max:
    case IN_fma:
    case IN_floor:
    case IN_ceil:
    case IN_round:
    case IN_clamp:
    case IN_isnan:
    case IN_pow: /* of two */
    case IN_ceil_div:
    case IN_bit_and:
    case IN_bit_or:
    case IN_bit_xor:
    case IN_shl:
    case IN_shr:
    case IN_mulhi:
    case IN_popc:
    case IN_clz:
    case IN_bits:
    case IN_random_bits:
    case IN_random:
    case IN_COUNT: break; /* IEEE defines them */
    }
    return single(number_call(which, &a));
}

Number number_called(Intrinsic which, Accuracy accuracy, const double *args) {
    if (which == IN_fma) /* of doubles it would round twice */
        return exactly((double)fmaf((float)args[0], (float)args[1], (float)args[2]));
    bool sine = which == IN_sin || which == IN_cos; /* exact(...) of them is within 2 ulp */
    if (which == IN_pow || (sine && accuracy == ACCURACY_EXACT)) {
        double value = number_call(which, args);
        bool is_known = is_special(value) || (sine && fabs(args[0]) < 0x1p-25);
        return is_known ? single(value) : about(value);
    }
    if (accuracy == ACCURACY_FAST && intrinsic_rows[which].ulp != 0)
        return approximated(which, args[0]);
    if (accuracy == ACCURACY_EXACT && which == IN_rsqrt)
        return single(1 / number_rounded(E_F32, sqrt(args[0])));
    return single(number_call(which, args));
}
