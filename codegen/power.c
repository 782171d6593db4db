/* pow(x, y) of f32: 2^(y * log2(abs(x))), where the logarithm and the product are sums of two f32,
 * with the special cases of C (C11 F.10.4.4). Input: the arguments; output: the register of the
 * result. No branches, no tables.
 *
 * x = 2^e * m, m in [sqrt(1/2), sqrt(2)]; u = 2 * (m - 1) / (m + 1), whose rest is exact by fma;
 * log(m) = u * (1 + v * P(v)), v = u * u, and P(v) about 1/12. The logarithm is right to 2^-36, so
 * the power to 2^-29 where it is a number of f32. The coefficients are fits of least greatest
 * relative error, each rounded before the next one was fitted; bench/accuracy.py measures them. */
#include "codegen/gen.h"

#include <math.h>

typedef struct Pair { /* a number with twice the digits: high + low, where low is rounded off */
    Operand high, low;
} Pair;

static Operand one(Gen *gen, const char *op, Operand a) {
    return ptx_reg(PURE(gen->ptx, REG_32, op, a));
}

static Operand two(Gen *gen, const char *op, Operand a, Operand b) {
    return ptx_reg(PURE(gen->ptx, REG_32, op, a, b));
}

static Operand add(Gen *gen, Operand a, Operand b) { return two(gen, "add.rn.f32", a, b); }
static Operand subtract(Gen *gen, Operand a, Operand b) { return two(gen, "sub.rn.f32", a, b); }
static Operand times(Gen *gen, Operand a, Operand b) { return two(gen, "mul.rn.f32", a, b); }

static Operand fused(Gen *gen, Operand a, Operand b, Operand c) {
    return ptx_reg(PURE(gen->ptx, REG_32, "fma.rn.f32", a, b, c));
}

static Operand negative(Gen *gen, Operand a) { return one(gen, "neg.f32", a); }

static Reg holds(Gen *gen, const char *op, Operand a, Operand b) {
    return PURE(gen->ptx, REG_PRED, op, a, b);
}

static Operand chosen(Gen *gen, Operand yes, Operand no, Reg condition) {
    return ptx_reg(PURE(gen->ptx, REG_32, "selp.b32", yes, no, ptx_reg(condition)));
}

/* ---- sums of two ----------------------------------------------------------------------------- */

/* a + b of abs(a) >= abs(b), or a = 0 */
static Pair sum_of(Gen *gen, Operand a, Operand b) {
    Operand high = add(gen, a, b);
    return (Pair){high, add(gen, subtract(gen, a, high), b)};
}

static Pair product_of(Gen *gen, Pair a, Pair b) {
    Operand high = times(gen, a.high, b.high);
    Operand low = fused(gen, a.high, b.high, negative(gen, high));
    low = fused(gen, a.high, b.low, low);
    return (Pair){high, fused(gen, a.low, b.high, low)};
}

/* ---- the logarithm --------------------------------------------------------------------------- */

/* u * (1 + v * P(v)) */
static Pair series(Gen *gen, Pair u) {
    static const float terms[] = {0x1.999ap-7F, 0x1.24527ep-9F, 0x1.dfa1b8p-12F};
    Pair v = product_of(gen, u, u);
    Operand more = fused(gen, ptx_f32(terms[2]), v.high, ptx_f32(terms[1]));
    more = times(gen, fused(gen, more, v.high, ptx_f32(terms[0])), v.high);
    Pair sum = sum_of(gen, ptx_f32(0x1.555556p-4F), more); /* 1/12, in two parts */
    sum.low = add(gen, sum.low, ptx_f32(-0x1.555556p-29F));
    Pair rest = product_of(gen, u, product_of(gen, v, sum));
    sum = sum_of(gen, u.high, rest.high);
    sum.low = add(gen, sum.low, add(gen, rest.low, u.low));
    return sum_of(gen, sum.high, sum.low);
}

/* log2 of a number above 0 that is not infinite */
static Pair logarithm(Gen *gen, Operand size) {
    Reg subnormal = holds(gen, "setp.lt.f32", size, ptx_f32(0x1p-126F));
    Operand larger = times(gen, size, ptx_f32(0x1p24F));
    Operand bits = chosen(gen, larger, size, subnormal);
    Operand exponent = two(gen, "sub.s32", bits, ptx_int(0x3f3504f3)); /* sqrt(1/2) */
    exponent = two(gen, "and.b32", exponent, ptx_int(-(1 << 23)));
    Operand m = two(gen, "sub.s32", bits, exponent);
    Operand e = one(gen, "cvt.rn.f32.s32", two(gen, "shr.s32", exponent, ptx_int(23)));
    e = add(gen, e, chosen(gen, ptx_f32(-24), ptx_f32(0), subnormal));
    Operand less = subtract(gen, m, ptx_f32(1)), more = add(gen, m, ptx_f32(1));
    /* a step of Newton: the same bits on each machine, but for at most 18 of the numbers */
    Operand inverse = one(gen, "rcp.approx.ftz.f32", more);
    Operand error = fused(gen, negative(gen, more), inverse, ptx_f32(1));
    inverse = fused(gen, error, inverse, inverse);
    Operand u = times(gen, add(gen, less, less), inverse), apart = subtract(gen, less, u);
    Operand rest = fused(gen, negative(gen, u), less, add(gen, apart, apart));
    Pair log = series(gen, (Pair){u, times(gen, rest, inverse)});
    /* 1 / log(2) in two parts */
    log = product_of(gen, log, (Pair){ptx_f32(0x1.715476p+0F), ptx_f32(0x1.4ae0cp-26F)});
    Pair sum = sum_of(gen, e, log.high);
    sum.low = add(gen, sum.low, log.low);
    return sum_of(gen, sum.high, sum.low);
}

/* ---- the power ------------------------------------------------------------------------------- */

/* 2^(a + b); what is far outside of the numbers of f32 has the result of the limits. */
static Operand power_of_two(Gen *gen, Pair exponent) {
    static const float terms[] = {0x1.4172d6p-13F, 0x1.5f0978p-10F, 0x1.3b2ddap-7F,
                                  0x1.c6af7ap-5F,  0x1.ebfbdcp-3F,  0x1.62e43p-1F};
    Operand near = two(gen, "max.f32", exponent.high, ptx_f32(-160));
    near = two(gen, "min.f32", near, ptx_f32(130));
    Reg inside = holds(gen, "setp.eq.f32", near, exponent.high);
    Operand whole = one(gen, "cvt.rni.s32.f32", near);
    Operand part = subtract(gen, near, one(gen, "cvt.rn.f32.s32", whole));
    part = add(gen, part, chosen(gen, exponent.low, ptx_f32(0), inside));
    Operand sum = ptx_f32(terms[0]);
    for (size_t i = 1; i < COUNT_OF(terms); i++) sum = fused(gen, sum, part, ptx_f32(terms[i]));
    sum = fused(gen, sum, part, ptx_f32(1));
    /* in two steps, each by a normal number: only the second one rounds */
    Operand half = two(gen, "shr.s32", whole, ptx_int(1));
    Operand parts[] = {half, two(gen, "sub.s32", whole, half)};
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        Operand scale = two(gen, "add.s32", parts[i], ptx_int(127));
        sum = times(gen, sum, two(gen, "shl.b32", scale, ptx_int(23)));
    }
    return sum;
}

/* abs(x)^y of numbers that are not NaN; anything where 1 has an infinite exponent */
static Operand magnitude(Gen *gen, Operand size, Operand y) {
    Pair log = logarithm(gen, size);
    Reg zero = holds(gen, "setp.eq.f32", size, ptx_f32(0)),
        infinite = holds(gen, "setp.eq.f32", size, ptx_f32(INFINITY));
    log.high = chosen(gen, ptx_f32(-INFINITY), log.high, zero);
    log.high = chosen(gen, ptx_f32(INFINITY), log.high, infinite);
    return power_of_two(gen, product_of(gen, log, (Pair){y, ptx_f32(0)}));
}

static Reg is_whole(Gen *gen, Operand value) {
    return holds(gen, "setp.eq.f32", one(gen, "cvt.rzi.f32.f32", value), value);
}

Reg gen_power(Gen *gen, Reg x_reg, Reg y_reg) {
    Operand x = ptx_reg(x_reg), y = ptx_reg(y_reg), size = one(gen, "abs.f32", x);
    Operand value = magnitude(gen, size, y);
    /* the sign of x, if y is odd */
    Reg whole = is_whole(gen, y);
    Reg odd = holds(gen, "setp.neu.f32", times(gen, y, ptx_f32(0.5f)),
                    one(gen, "cvt.rzi.f32.f32", times(gen, y, ptx_f32(0.5f))));
    odd = ptx_both(gen->ptx, whole, odd);
    Operand sign = two(gen, "and.b32", x, ptx_int(INT64_C(0x80000000)));
    value = two(gen, "or.b32", value, chosen(gen, sign, ptx_int(0), odd));
    /* a root of a negative number, or NaN */
    Operand nan = ptx_f32(NAN);
    Reg not_whole = PURE(gen->ptx, REG_PRED, "not.pred", ptx_reg(whole));
    Reg negative_x = ptx_both(gen->ptx, holds(gen, "setp.lt.f32", x, ptx_f32(0)),
                              holds(gen, "setp.gt.f32", x, ptx_f32(-INFINITY)));
    value = chosen(gen, nan, value, ptx_both(gen->ptx, negative_x, not_whole));
    value = chosen(gen, nan, value, holds(gen, "setp.nan.f32", x, y));
    /* 1: of 1, for the exponent 0, and of -1 for an infinite one */
    Reg endless = holds(gen, "setp.eq.f32", one(gen, "abs.f32", y), ptx_f32(INFINITY));
    Reg unit = ptx_both(gen->ptx, endless, holds(gen, "setp.eq.f32", size, ptx_f32(1)));
    value = chosen(gen, ptx_f32(1), value, unit);
    value = chosen(gen, ptx_f32(1), value, holds(gen, "setp.eq.f32", x, ptx_f32(1)));
    return chosen(gen, ptx_f32(1), value, holds(gen, "setp.eq.f32", y, ptx_f32(0))).reg;
}
