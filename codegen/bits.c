/* Random numbers: Philox 4x32-10 in the registers of each thread. Input: seed and position, of 64
 * bits; output: the register of the first word, or of a number in [0, 1). prog/bits.c computes the
 * same. */
#include "codegen/gen.h"
#include "prog/bits.h"

static Reg one(Gen *gen, const char *op, Operand a) { return PURE(gen->ptx, REG_32, op, a); }

static Reg two(Gen *gen, const char *op, Operand a, Operand b) {
    return PURE(gen->ptx, REG_32, op, a, b);
}

/* The lower and the upper half of a number of 64 bits */
static void halves(Gen *gen, Value value, Operand out[2]) {
    if (value.reg.class == REG_NONE) {
        out[0] = ptx_int((int64_t)(uint32_t)value.integer);
        out[1] = ptx_int((int64_t)((uint64_t)value.integer >> 32));
        return;
    }
    Reg upper = PURE(gen->ptx, REG_64, "shr.u64", ptx_reg(value.reg), ptx_int(32));
    out[0] = ptx_reg(one(gen, "cvt.u32.u64", ptx_reg(value.reg)));
    out[1] = ptx_reg(one(gen, "cvt.u32.u64", ptx_reg(upper)));
}

/* A word of the key in a round: of a constant seed, a constant */
static Operand round_key(Gen *gen, Value seed, const Operand halves_of[2], int word, int round) {
    uint32_t bump = (uint32_t)round * (word ? PHILOX_K1 : PHILOX_K0);
    if (seed.reg.class == REG_NONE)
        return ptx_int((uint32_t)((uint64_t)seed.integer >> 32 * word) + bump);
    if (round == 0) return halves_of[word];
    return ptx_reg(two(gen, "add.u32", halves_of[word], ptx_int(bump)));
}

static Operand mixed(Gen *gen, Reg high, Operand word, Operand key) {
    Reg mixed_once = two(gen, "xor.b32", ptx_reg(high), word);
    return ptx_reg(two(gen, "xor.b32", ptx_reg(mixed_once), key));
}

/* As bits_random; the last round makes only the first word. */
Reg gen_random_bits(Gen *gen, Value seed, Value position) {
    Operand key[2], c[4];
    halves(gen, seed, key);
    halves(gen, position, c);
    if (position.reg.class == REG_NONE) c[0] = ptx_reg(one(gen, "mov.b32", c[0]));
    c[2] = c[3] = ptx_int(0);
    Operand m0 = ptx_int(PHILOX_M0), m1 = ptx_int(PHILOX_M1);
    for (int round = 0;; round++) {
        Operand k0 = round_key(gen, seed, key, 0, round), k1 = round_key(gen, seed, key, 1, round);
        if (round == 0) { /* the product with the third word is 0 */
            Reg high = two(gen, "mul.hi.u32", c[0], m0);
            Operand first = ptx_reg(two(gen, "xor.b32", c[1], k0));
            c[3] = ptx_reg(two(gen, "mul.lo.u32", c[0], m0));
            c[2] = ptx_reg(two(gen, "xor.b32", ptx_reg(high), k1));
            c[0] = first, c[1] = ptx_int(0);
            continue;
        }
        Reg b_high = two(gen, "mul.hi.u32", c[2], m1);
        Operand first = mixed(gen, b_high, c[1], k0);
        if (round == PHILOX_ROUNDS - 1) return first.reg;
        Reg b_low = two(gen, "mul.lo.u32", c[2], m1), a_high = two(gen, "mul.hi.u32", c[0], m0);
        Reg a_low = two(gen, "mul.lo.u32", c[0], m0);
        c[2] = mixed(gen, a_high, c[3], k1);
        c[0] = first, c[1] = ptx_reg(b_low), c[3] = ptx_reg(a_low);
    }
}

/* As bits_uniform */
Reg gen_random(Gen *gen, Reg word) {
    Reg sign = two(gen, "shr.s32", ptx_reg(word), ptx_int(31));
    Reg magnitude = two(gen, "xor.b32", ptx_reg(word), ptx_reg(sign));
    Reg number = one(gen, "cvt.rn.f32.s32", ptx_reg(magnitude));
    return two(gen, "mul.rn.f32", ptx_reg(number), ptx_f32(UNIFORM_SCALE));
}
