/* Functions of several instructions: expm1, log1p and erf of an f32. Input: the argument;
 * output: the register of the result. Polynomials approximate them near 0, so that small results
 * are as accurate as large ones. The coefficients are fits of least greatest relative error, each
 * rounded to f32 before the next one was fitted; bench/accuracy.py measures the results. */
#include "codegen/gen.h"

static Reg one(Gen *gen, const char *op, Operand a) { return PURE(gen->ptx, REG_32, op, a); }

static Reg two(Gen *gen, const char *op, Operand a, Operand b) {
    return PURE(gen->ptx, REG_32, op, a, b);
}

static Reg fused(Gen *gen, Operand a, Operand b, Operand c) {
    return PURE(gen->ptx, REG_32, "fma.rn.f32", a, b, c);
}

/* The lowest coefficient is the first one. */
static Reg polynomial(Gen *gen, const float *terms, int count, Reg x) {
    Reg sum = fused(gen, ptx_f32(terms[count - 1]), ptx_reg(x), ptx_f32(terms[count - 2]));
    for (int i = count - 3; i >= 0; i--)
        sum = fused(gen, ptx_reg(sum), ptx_reg(x), ptx_f32(terms[i]));
    return sum;
}

static Reg chosen(Gen *gen, Reg yes, Reg no, Reg condition) {
    return PURE(gen->ptx, REG_32, "selp.b32", ptx_reg(yes), ptx_reg(no), ptx_reg(condition));
}

/* Near 0 both are x, also -0 and subnormal numbers, of which the steps lose the sign or bits. */
static Reg or_small(Gen *gen, Reg x, Reg value) {
    Reg size = one(gen, "abs.f32", ptx_reg(x));
    Reg small = PURE(gen->ptx, REG_PRED, "setp.lt.f32", ptx_reg(size), ptx_f32(0x1p-25F));
    return chosen(gen, x, value, small);
}

/* x = k * log(2) + r: 2 * (2^(k-1) * expm1(r) + 2^(k-1) - 1/2), where k may be 128. Arguments
 * outside of [-30, 89] have the results of these; NaN stays. */
Reg gen_expm1(Gen *gen, Reg x) {
    static const float terms[] = {0x1.fffffep-2F, 0x1.5554b2p-3F, 0x1.5556f2p-5F, 0x1.1226d8p-7F,
                                  0x1.6b9dd6p-10F};
    Reg near = two(gen, "max.NaN.f32", ptx_reg(x), ptx_f32(-30));
    near = two(gen, "min.NaN.f32", ptx_reg(near), ptx_f32(89));
    Reg scaled = two(gen, "mul.rn.f32", ptx_reg(near), ptx_f32(1.4426950408889634f));
    Reg exponent = one(gen, "cvt.rni.s32.f32", ptx_reg(scaled));
    Reg k = one(gen, "cvt.rn.f32.s32", ptx_reg(exponent));
    /* log(2) in two parts; k times the first is exact */
    Reg rest = fused(gen, ptx_reg(k), ptx_f32(-0.693359375f), ptx_reg(near));
    rest = fused(gen, ptx_reg(k), ptx_f32(0x1.bd0106p-13F), ptx_reg(rest));
    Reg sum = polynomial(gen, terms, (int)COUNT_OF(terms), rest);
    sum = two(gen, "mul.rn.f32", ptx_reg(sum), ptx_reg(rest));
    sum = fused(gen, ptx_reg(sum), ptx_reg(rest), ptx_reg(rest));
    Reg half = two(gen, "add.s32", ptx_reg(exponent), ptx_int(126));
    half = two(gen, "shl.b32", ptx_reg(half), ptx_int(23));
    Reg more = two(gen, "add.rn.f32", ptx_reg(half), ptx_f32(-0.5f));
    Reg value = fused(gen, ptx_reg(half), ptx_reg(sum), ptx_reg(more));
    value = two(gen, "mul.rn.f32", ptx_reg(value), ptx_f32(2));
    return or_small(gen, x, value);
}

/* 1 + x = 2^k * (1 + m), m in [-1/4, 1/2]: k * log(2) + log1p(m). `lg2` gives -inf, NaN and inf
 * where 1 + x is not positive and finite. */
Reg gen_log1p(Gen *gen, Reg x) {
    static const float terms[] = {0x1.5555a4p-2F, -0x1.000044p-2F, 0x1.99694ep-3F, -0x1.54ee1ep-3F,
                                  0x1.288724p-3F, -0x1.0da15p-3F,  0x1.acd5eep-4F, -0x1.7179p-5F};
    Reg whole = two(gen, "add.rn.f32", ptx_reg(x), ptx_f32(1));
    Reg exponent = two(gen, "sub.s32", ptx_reg(whole), ptx_int(0x3f400000)); /* the bits of 3/4 */
    exponent = two(gen, "and.b32", ptx_reg(exponent), ptx_int(-(1 << 23)));
    Reg k = two(gen, "shr.s32", ptx_reg(exponent), ptx_int(23));
    k = one(gen, "cvt.rn.f32.s32", ptx_reg(k));
    /* 4 * 2^-k is normal for each k, and x / 4 is exact unless x is small */
    Reg scale = two(gen, "sub.s32", ptx_int(0x40800000), ptx_reg(exponent));
    Reg quarter = two(gen, "mul.rn.f32", ptx_reg(x), ptx_f32(0.25f));
    Reg m = fused(gen, ptx_reg(scale), ptx_f32(0.25f), ptx_f32(-1));
    m = fused(gen, ptx_reg(scale), ptx_reg(quarter), ptx_reg(m));
    Reg sum = polynomial(gen, terms, (int)COUNT_OF(terms), m);
    Reg square = two(gen, "mul.rn.f32", ptx_reg(m), ptx_reg(m));
    sum = fused(gen, ptx_reg(sum), ptx_reg(m), ptx_f32(-0.5f));
    sum = fused(gen, ptx_reg(sum), ptx_reg(square), ptx_reg(m));
    sum = fused(gen, ptx_reg(k), ptx_f32(0.6931471805599453f), ptx_reg(sum));
    Reg before = two(gen, "add.s32", ptx_reg(whole), ptx_int(-1));
    Reg positive = PURE(gen->ptx, REG_PRED, "setp.lt.u32", ptx_reg(before), ptx_int(0x7f7fffff));
    Reg other = one(gen, "lg2.approx.ftz.f32", ptx_reg(whole));
    return or_small(gen, x, chosen(gen, sum, other, positive));
}

/* Below 1: x + x * P(x * x); else 1 - 2^Q(abs(x)) with the sign of x. Above 4 it rounds to 1. */
Reg gen_erf(Gen *gen, Reg x) {
    static const float low[] = {0x1.06eba8p-3F, -0x1.81273ep-2F,  0x1.ce2ce6p-4F, -0x1.b7f71ap-6F,
                                0x1.53f224p-8F, -0x1.a3515ep-11F, 0x1.4771fcp-14F};
    static const float high[] = {-0x1.c67672p-12F, -0x1.a053e6p+0F, -0x1.d72db4p-1F, -0x1.314bap-3F,
                                 0x1.034e02p-5F,   -0x1.190a34p-8F, 0x1.1da52ap-12F};
    Reg square = two(gen, "mul.rn.f32", ptx_reg(x), ptx_reg(x));
    Reg near = polynomial(gen, low, (int)COUNT_OF(low), square);
    near = fused(gen, ptx_reg(near), ptx_reg(x), ptx_reg(x));
    Reg size = one(gen, "abs.f32", ptx_reg(x));
    Reg most = two(gen, "min.NaN.f32", ptx_reg(size), ptx_f32(4));
    Reg far = polynomial(gen, high, (int)COUNT_OF(high), most);
    far = one(gen, "ex2.approx.ftz.f32", ptx_reg(far));
    far = two(gen, "sub.rn.f32", ptx_f32(1), ptx_reg(far));
    far = two(gen, "copysign.f32", ptx_reg(x), ptx_reg(far));
    Reg below = PURE(gen->ptx, REG_PRED, "setp.lt.f32", ptx_reg(size), ptx_f32(1));
    return chosen(gen, near, far, below);
}
