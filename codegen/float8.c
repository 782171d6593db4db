/* 8-bit floats, e4m3 and e5m2: casts from f32, and values to and from memory. PTX converts them in
 * pairs (PTX ISA 9.7.9.21, cvt): from two f32, where what is too large saturates; to two f16, which
 * have each of their values. A cast saturates, but a value that has the type is stored as it is:
 * e5m2 is the upper byte of f16, and so keeps an infinity that was read. */
#include "codegen/gen.h"

bool is_float8(Element type) { return type == E_E4M3 || type == E_E5M2; }

/* The first source is the upper byte. */
static Reg pair_of(Gen *gen, Element type, Operand low, Operand high) {
    const char *op = type == E_E4M3 ? "cvt.rn.satfinite.e4m3x2.f32" : "cvt.rn.satfinite.e5m2x2.f32";
    return PURE(gen->ptx, REG_16, op, high, low);
}

Reg float8_saturated(Gen *gen, Element type, Reg value) {
    return pair_of(gen, type, ptx_reg(value), ptx_f32(0));
}

Reg float8_narrowed(Gen *gen, Element type, Reg value) {
    if (type == E_E4M3) return float8_saturated(gen, type, value);
    Reg half = PURE(gen->ptx, REG_16, "cvt.rn.f16.f32", ptx_reg(value));
    return PURE(gen->ptx, REG_16, "shr.u16", ptx_reg(half), ptx_int(8));
}

int float8_words(Gen *gen, Element type, const Reg *values, int count, Reg *words) {
    for (int i = 0; i < count; i += 4) {
        Reg pairs[2];
        for (int p = 0; p < 2; p++) {
            Operand low = ptx_reg(values[i + 2 * p]), high = ptx_reg(values[i + 2 * p + 1]);
            pairs[p] = type == E_E4M3 ? pair_of(gen, type, low, high)
                                      : PURE(gen->ptx, REG_32, "cvt.rn.f16x2.f32", high, low);
        }
        words[i / 4] = type == E_E4M3 ? PURE(gen->ptx, REG_32, "mov.b32", ptx_vector(pairs, 2))
                                      : PURE(gen->ptx, REG_32, "prmt.b32", ptx_reg(pairs[0]),
                                             ptx_reg(pairs[1]), ptx_int(0x7531));
    }
    return count / 4;
}

Reg float8_widened(Gen *gen, Element type, Reg pair, int which) {
    const char *op = type == E_E4M3 ? "cvt.rn.f16x2.e4m3x2" : "cvt.rn.f16x2.e5m2x2";
    Reg both = PURE(gen->ptx, REG_32, op, ptx_reg(pair));
    if (which) both = PURE(gen->ptx, REG_32, "shr.u32", ptx_reg(both), ptx_int(16));
    Reg half = PURE(gen->ptx, REG_16, "cvt.u16.u32", ptx_reg(both));
    return PURE(gen->ptx, REG_32, "cvt.f32.f16", ptx_reg(half));
}
