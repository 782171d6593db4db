/* f16, bf16 and their pairs. Every operation is done in f64, where sums and products of two are
 * exact or rounded to odd, and then rounded once: bit for bit as on the GPU. NaN results are
 * 0x7fff. */
#include "emulator/machine.h"

#include <math.h>

static double add_odd(double a, double b) {
    double sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (error != 0 && error == error && !(bits & 1))
        bits += (error > 0) == (sum > 0) ? 1u : UINT64_MAX;
    memcpy(&sum, &bits, sizeof sum);
    return sum;
}

typedef struct Half {
    bool brain;
    uint32_t flags, opcode;
} Half;

static double widen(const Half *half, uint16_t bits) {
    if ((half->flags & FLAG_FTZ) && !(bits & 0x7c00) && !half->brain) bits &= 0x8000;
    return (double)(half->brain ? bfloat_to_float(bits) : half_to_float(bits));
}
static uint16_t narrow(const Half *half, double value) {
    if (value != value) return 0x7fff;
    uint16_t bits = half->brain ? bfloat_from_double(value) : half_from_double(value);
    return (half->flags & FLAG_FTZ) && !half->brain && !(bits & 0x7c00) ? bits & 0x8000 : bits;
}

static uint16_t smaller(uint16_t a, uint16_t b, double x, double y, bool wants_max) {
    if (x == y) return wants_max ? a & b : a | b; /* -0 is below +0 */
    return (x < y) != wants_max ? a : b;
}

static uint16_t operate(const Half *half, const uint16_t *v) {
    double x = widen(half, v[0]), y = widen(half, v[1]), z = widen(half, v[2]);
    uint16_t out;
    switch (half->opcode) {
    case OP_ADD: out = narrow(half, add_odd(x, y)); break;
    case OP_SUB: out = narrow(half, add_odd(x, -y)); break;
    case OP_MUL: out = narrow(half, x * y); break;
    case OP_FMA: out = narrow(half, add_odd(x * y, z)); break;
    case OP_NEG: return v[0] ^ 0x8000;
    case OP_ABS: return v[0] & 0x7fff;
    case OP_EX2: out = narrow(half, exp2(x)); break;
    case OP_TANH: out = narrow(half, tanh(x)); break;
    case OP_MIN:
    case OP_MAX:
        if ((half->flags & FLAG_NAN) && (x != x || y != y)) return 0x7fff;
        if (x != x || y != y) return x != x ? (y != y ? 0x7fff : v[1]) : v[0];
        return smaller(v[0], v[1], x, y, half->opcode == OP_MAX);
    default: return 0;
    }
    bool is_nan = out == 0x7fff;
    if (half->flags & FLAG_SAT) {
        double value = widen(half, out);
        out = is_nan || !(value > 0) ? 0 : value > 1 ? (half->brain ? 0x3f80 : 0x3c00) : out;
    }
    if ((half->flags & FLAG_RELU) && !is_nan && (out & 0x8000)) out = 0;
    return out;
}

static Step run_half(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Type type = inst_type(inst);
    bool pair = type == T_F16X2 || type == T_BF16X2;
    Half half = {type == T_BF16 || type == T_BF16X2, inst->mods.flags, inst->opcode};
    uint32_t out[LANES];
    (void)block;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        uint16_t low[3] = {0}, high[3] = {0};
        for (uint32_t n = 1; n < inst->op_count && n < 4; n++) {
            uint32_t bits = in32(warp, &inst->ops[n])[lane];
            low[n - 1] = (uint16_t)bits;
            high[n - 1] = (uint16_t)(bits >> 16);
        }
        out[lane] = operate(&half, low) | (pair ? (uint32_t)operate(&half, high) << 16 : 0);
    }
    put32(warp, &inst->ops[0], out, mask);
    return STEP_NEXT;
}

Run pick_half(const Inst *inst) {
    bool approximate = (inst->mods.flags & FLAG_APPROX) != 0;
    if (inst->mods.round > ROUND_RN || (inst->mods.flags & FLAG_FULL)) return NULL;
    switch (inst->opcode) {
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_NEG:
    case OP_ABS:
    case OP_MIN:
    case OP_MAX: return approximate ? NULL : run_half;
    case OP_FMA: return approximate || inst->mods.round != ROUND_RN ? NULL : run_half;
    case OP_EX2: return run_half; /* ex2.approx, and ex2.approx.ftz.bf16 */
    case OP_TANH: return approximate ? run_half : NULL;
    default: return NULL;
    }
}
