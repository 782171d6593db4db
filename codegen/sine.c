/* exact(sin(x)), exact(cos(x)) of an f32, for each of its numbers, without branches, tables in
 * memory and local variables. Input: the argument; output: the register of the result.
 *
 * |x| / (pi/2) modulo 4 is a product of the 24 bits of x with 96 bits of 2/pi, which its exponent
 * selects (Payne, Hanek: Radian reduction for trigonometric functions, 1983); 62 bits of its
 * fraction are right, of which the least one that an f32 has, 2^-31, leaves 31. Up to pi/4 x stays
 * as it is. A polynomial of r, in [-pi/4, pi/4], gives the sine or the cosine. */
#include "codegen/gen.h"

#include <math.h>

#define WORDS  8 /* of 2/pi; the first one is what is before the point */
#define WINDOW 4 /* words that a shift makes 3 of */

static Reg one(Gen *gen, const char *op, Operand a) { return PURE(gen->ptx, REG_32, op, a); }

static Reg two(Gen *gen, const char *op, Operand a, Operand b) {
    return PURE(gen->ptx, REG_32, op, a, b);
}

static Reg wide(Gen *gen, const char *op, Operand a, Operand b) {
    return PURE(gen->ptx, REG_64, op, a, b);
}

static Operand chosen(Gen *gen, Operand yes, Operand no, Reg condition) {
    return ptx_reg(PURE(gen->ptx, REG_32, "selp.b32", yes, no, ptx_reg(condition)));
}

static Reg has_bit(Gen *gen, Reg value, int bit) {
    Reg masked = two(gen, "and.b32", ptx_reg(value), ptx_int(bit));
    return PURE(gen->ptx, REG_PRED, "setp.ne.u32", ptx_reg(masked), ptx_int(0));
}

/* The 96 bits of 2/pi from bit `at` of the words on; the first word is the upper one. */
static void select_bits(Gen *gen, Reg at, Reg out[3]) {
    static const uint32_t two_by_pi[WORDS] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                              0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
    Operand words[WORDS];
    for (int i = 0; i < WORDS; i++) words[i] = ptx_int(two_by_pi[i]);
    /* by 4, 2 and 1 words, of which at most 4 are left out */
    for (int by = WORDS - WINDOW; by > 0; by /= 2) {
        Reg skips = has_bit(gen, at, 32 * by);
        for (int i = 0; i < WINDOW + by - 1 && i + by < WORDS; i++)
            words[i] = chosen(gen, words[i + by], words[i], skips);
    }
    for (int i = 0; i < 3; i++)
        out[i] = PURE(gen->ptx, REG_32, "shf.l.wrap.b32", words[i + 1], words[i], ptx_reg(at));
}

/* r, and the number of quarters, of a finite number above 1/2 */
static Reg reduced(Gen *gen, Reg size, Reg *quarters) {
    Reg bits[3];
    Reg exponent = two(gen, "shr.u32", ptx_reg(size), ptx_int(23));
    select_bits(gen, two(gen, "sub.s32", ptx_reg(exponent), ptx_int(120)), bits);
    Reg fraction = two(gen, "and.b32", ptx_reg(size), ptx_int(0x7fffff));
    fraction = two(gen, "or.b32", ptx_reg(fraction), ptx_int(0x800000));
    Operand number = ptx_reg(fraction);
    /* the product modulo 2^64: 2 bits of quarters, 62 of their fraction */
    Reg low = two(gen, "mul.hi.u32", number, ptx_reg(bits[2]));
    Reg sum = PURE(gen->ptx, REG_64, "cvt.u64.u32", ptx_reg(low));
    sum = PURE(gen->ptx, REG_64, "mad.wide.u32", number, ptx_reg(bits[1]), ptx_reg(sum));
    Reg high = two(gen, "mul.lo.u32", number, ptx_reg(bits[0]));
    Reg upper = PURE(gen->ptx, REG_64, "cvt.u64.u32", ptx_reg(high));
    upper = wide(gen, "shl.b64", ptx_reg(upper), ptx_int(32));
    sum = wide(gen, "add.u64", ptx_reg(sum), ptx_reg(upper));
    /* rounded to the nearest quarter */
    Reg three = wide(gen, "shr.u64", ptx_reg(sum), ptx_int(61));
    Reg count = PURE(gen->ptx, REG_32, "cvt.u32.u64", ptx_reg(three));
    count = two(gen, "add.u32", ptx_reg(count), ptx_int(1));
    *quarters = two(gen, "shr.u32", ptx_reg(count), ptx_int(1));
    Reg rest = wide(gen, "shl.b64", ptx_reg(sum), ptx_int(2)); /* signed, in 2^-64 quarters */
    /* pi/2 * 2^62 */
    rest = wide(gen, "mul.hi.s64", ptx_reg(rest), ptx_int(INT64_C(0x6487ed5110b4611a)));
    Reg r = one(gen, "cvt.rn.f32.s64", ptx_reg(rest));
    return two(gen, "mul.rn.f32", ptx_reg(r), ptx_f32(0x1p-62F));
}

/* The sine of r if the number of quarters is even, the cosine if it is odd */
static Reg of_quarter(Gen *gen, Reg r, Reg quarters) {
    static const float sine[] = {-0x1.995408p-13F, 0x1.110778p-7F, -0x1.555546p-3F},
                       cosine[] = {0x1.99e80cp-16F, -0x1.6c0c28p-10F, 0x1.55554ap-5F, -0.5F};
    Reg odd = has_bit(gen, quarters, 1);
    Operand square = ptx_reg(two(gen, "mul.rn.f32", ptx_reg(r), ptx_reg(r)));
    Operand first = chosen(gen, ptx_f32(1), ptx_reg(r), odd);
    Operand by = ptx_reg(two(gen, "mul.rn.f32", square, first));
    Operand sum = chosen(gen, ptx_f32(cosine[0]), ptx_f32(0), odd);
    for (int i = 0; i < 3; i++)
        sum = ptx_reg(PURE(gen->ptx, REG_32, "fma.rn.f32", sum, square,
                           chosen(gen, ptx_f32(cosine[i + 1]), ptx_f32(sine[i]), odd)));
    return PURE(gen->ptx, REG_32, "fma.rn.f32", sum, by, first);
}

Reg gen_sine(Gen *gen, Reg x, bool is_cosine) {
    Reg size = one(gen, "abs.f32", ptx_reg(x)), quarters;
    Reg near = PURE(gen->ptx, REG_PRED, "setp.le.f32", ptx_reg(size), ptx_f32(0x1.921fb4p-1F));
    Operand r = chosen(gen, ptx_reg(size), ptx_reg(reduced(gen, size, &quarters)), near);
    quarters = chosen(gen, ptx_int(0), ptx_reg(quarters), near).reg;
    if (is_cosine) quarters = two(gen, "add.u32", ptx_reg(quarters), ptx_int(1));
    Reg value = of_quarter(gen, r.reg, quarters);
    Reg sign = two(gen, "shl.b32", ptx_reg(quarters), ptx_int(30));
    if (!is_cosine) sign = two(gen, "xor.b32", ptx_reg(sign), ptx_reg(x));
    sign = two(gen, "and.b32", ptx_reg(sign), ptx_int(INT64_C(0x80000000)));
    value = two(gen, "xor.b32", ptx_reg(value), ptx_reg(sign));
    Reg finite = PURE(gen->ptx, REG_PRED, "setp.lt.f32", ptx_reg(size), ptx_f32(INFINITY));
    Reg nan = two(gen, "sub.rn.f32", ptx_reg(x), ptx_reg(x));
    return chosen(gen, ptx_reg(value), ptx_reg(nan), finite).reg;
}
