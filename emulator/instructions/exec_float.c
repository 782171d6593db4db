/* f32 and f64: arithmetic as the GPU does it, bit for bit where PTX defines the result.
 *
 * IEEE operations use the host's (x86-64 and AArch64 round f32 and f64 as the GPU does);
 * directed roundings switch the host's rounding mode around the operation. NaN results of f32
 * are 0x7fffffff as on the GPU. The .approx functions are computed in f64 and rounded once: more
 * exact than the documented bound, see docs/emulator.md. */
#include "emulator/machine.h"

#include <fenv.h>
#include <math.h>

static inline float as_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value != value ? 0x7fffffffu : bits;
}
static inline double as_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline uint64_t double_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline uint32_t flush(uint32_t bits) {
    return bits & 0x7f800000u ? bits : bits & 0x80000000u;
}

/* min and max return the other operand for a NaN and order -0 below +0 (PTX ISA 9.7.3.11) */
static inline uint32_t min_bits(uint32_t a, uint32_t b) {
    float x = as_float(a), y = as_float(b);
    return x != x ? (y != y ? 0x7fffffffu : b) : y != y ? a : x == y ? a | b : x < y ? a : b;
}
static inline uint32_t max_bits(uint32_t a, uint32_t b) {
    float x = as_float(a), y = as_float(b);
    return x != x ? (y != y ? 0x7fffffffu : b) : y != y ? a : x == y ? a & b : x > y ? a : b;
}

/* ---- fast forms: round to nearest, no flushing, no saturation -------------------------------- */

#define FAST(name, operands, expression)                                                           \
    static Step name(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {                  \
        const uint32_t *a = in32(warp, &inst->ops[1]);                                             \
        const uint32_t *b = operands > 1 ? in32(warp, &inst->ops[2]) : a;                          \
        uint32_t out[LANES];                                                                       \
        (void)block;                                                                               \
        for (int i = 0; i < LANES; i++) {                                                          \
            uint32_t p = a[i], q = b[i];                                                           \
            (void)q;                                                                               \
            out[i] = (expression);                                                                 \
        }                                                                                          \
        put32(warp, &inst->ops[0], out, mask);                                                     \
        return STEP_NEXT;                                                                          \
    }
FAST(fast_add, 2, float_bits(as_float(p) + as_float(q)))
FAST(fast_sub, 2, float_bits(as_float(p) - as_float(q)))
FAST(fast_mul, 2, float_bits(as_float(p) * as_float(q)))
FAST(fast_div, 2, float_bits(as_float(p) / as_float(q)))
FAST(fast_min, 2, min_bits(p, q))
FAST(fast_max, 2, max_bits(p, q))
FAST(fast_abs, 1, p & 0x7fffffffu)
FAST(fast_neg, 1, p ^ 0x80000000u)

/* The product of two f32 is exact in f64. If the sum with c is inexact, its last bit is set to
 * 1, so that the second rounding, to f32, is correct (Boldo and Melquiond, "round to odd"). */
static inline double add_odd(double a, double b) {
    double sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
    uint64_t bits = double_bits(sum);
    bool inexact = error != 0 && error == error && !(bits & 1);
    bool away = (error > 0) == (sum > 0);
    bits += inexact ? (away ? 1u : UINT64_MAX) : 0;
    return as_double(bits);
}
static inline float fused(float a, float b, float c) {
    return (float)add_odd((double)a * (double)b, (double)c);
}

static Step fast_fma(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    const uint32_t *a = in32(warp, &inst->ops[1]), *b = in32(warp, &inst->ops[2]),
                   *c = in32(warp, &inst->ops[3]);
    uint32_t out[LANES];
    (void)block;
    for (int i = 0; i < LANES; i++)
        out[i] = float_bits(fused(as_float(a[i]), as_float(b[i]), as_float(c[i])));
    put32(warp, &inst->ops[0], out, mask);
    return STEP_NEXT;
}

/* ---- f32, all forms -------------------------------------------------------------------------- */

static double reciprocal_root(double x) { return 1.0 / sqrt(x); }

static float operate(const Inst *inst, float a, float b, float c) {
    /* volatile: the compiler does not know the rounding mode and must not move operations */
    volatile float x = a, y = b, z = c;
    switch (inst->opcode) {
    case OP_ADD: return x + y;
    case OP_SUB: return x - y;
    case OP_MUL: return x * y;
    case OP_FMA:
    case OP_MAD: return fmaf(x, y, z);
    case OP_DIV: return x / y;
    case OP_RCP: return 1.0f / x;
    case OP_SQRT: return sqrtf(x);
    case OP_RSQRT: return (float)reciprocal_root((double)a);
    case OP_EX2: return (float)exp2((double)a);
    case OP_LG2: return (float)log2((double)a);
    case OP_SIN: return (float)sin((double)a);
    case OP_COS: return (float)cos((double)a);
    case OP_TANH: return (float)tanh((double)a);
    case OP_MIN: return as_float(min_bits(float_bits(a), float_bits(b)));
    case OP_MAX: return as_float(max_bits(float_bits(a), float_bits(b)));
    case OP_ABS: return fabsf(a);
    case OP_NEG: return -a;
    default: return 0;
    }
}

static int host_rounding(Round round) {
    return round == ROUND_RZ   ? FE_TOWARDZERO
           : round == ROUND_RM ? FE_DOWNWARD
           : round == ROUND_RP ? FE_UPWARD
                               : FE_TONEAREST;
}

static Step run_f32(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint32_t v[3][LANES] = {{0}}, out[LANES], flags = inst->mods.flags;
    bool directed = inst->mods.round > ROUND_RN;
    bool propagates = (inst->opcode == OP_MIN || inst->opcode == OP_MAX) && (flags & FLAG_NAN);
    (void)block;
    for (uint32_t n = 1; n < inst->op_count && n < 4; n++)
        for (int i = 0; i < LANES; i++)
            v[n - 1][i] = flags & FLAG_FTZ ? flush(in32(warp, &inst->ops[n])[i])
                                           : in32(warp, &inst->ops[n])[i];
    if (directed) fesetround(host_rounding((Round)inst->mods.round));
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t i = first_lane(left);
        float a = as_float(v[0][i]), b = as_float(v[1][i]);
        out[i] = float_bits(operate(inst, a, b, as_float(v[2][i])));
        if (propagates && (a != a || b != b)) out[i] = 0x7fffffffu;
    }
    if (directed) fesetround(FE_TONEAREST);
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t i = first_lane(left);
        if (flags & FLAG_FTZ) out[i] = flush(out[i]);
        if (flags & FLAG_SAT) /* to [0, 1], NaN to +0 */
            out[i] = as_float(out[i]) > 0.0f ? (as_float(out[i]) > 1.0f ? 0x3f800000u : out[i]) : 0;
        if ((flags & FLAG_RELU) && (out[i] >> 31) && out[i] != 0x7fffffffu) out[i] = 0;
    }
    put32(warp, &inst->ops[0], out, mask);
    return STEP_NEXT;
}

/* ---- f64 ------------------------------------------------------------------------------------- */

/* rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 use the upper 32 bits of their operand, and give 20
 * bits of fraction (PTX ISA 9.7.3.14); subnormal numbers are zero. */
static double upper_half(double value) {
    bool tiny = fpclassify(value) == FP_SUBNORMAL;
    return tiny ? copysign(0, value) : as_double(double_bits(value) & UINT64_C(0xffffffff00000000));
}
static double gross(double value) { return value != value ? value : upper_half(value); }

static double operate_double(const Inst *inst, double a, double b, double c) {
    volatile double x = a, y = b, z = c;
    switch (inst->opcode) {
    case OP_ADD: return x + y;
    case OP_SUB: return x - y;
    case OP_MUL: return x * y;
    case OP_FMA:
    case OP_MAD: return fma(x, y, z);
    case OP_DIV: return x / y;
    case OP_RCP: return inst->mods.flags & FLAG_APPROX ? gross(1.0 / upper_half(a)) : 1.0 / x;
    case OP_SQRT: return sqrt(x);
    case OP_RSQRT:
        return inst->mods.flags & FLAG_FTZ ? gross(reciprocal_root(upper_half(a)))
                                           : reciprocal_root(a);
    case OP_MIN: return a != a ? b : b != b ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
    case OP_MAX: return a != a ? b : b != b ? a : a == b ? (signbit(a) ? b : a) : a > b ? a : b;
    case OP_ABS: return fabs(a);
    case OP_NEG: return -a;
    default: return 0;
    }
}

static Step run_f64(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint64_t out[LANES];
    bool directed = inst->mods.round > ROUND_RN;
    (void)block;
    if (directed) fesetround(host_rounding((Round)inst->mods.round));
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t i = first_lane(left);
        double v[3] = {0};
        for (uint32_t n = 1; n < inst->op_count && n < 4; n++)
            v[n - 1] = as_double(in64(warp, &inst->ops[n])[i]);
        out[i] = double_bits(operate_double(inst, v[0], v[1], v[2]));
    }
    if (directed) fesetround(FE_TONEAREST);
    put64(warp, &inst->ops[0], out, mask);
    return STEP_NEXT;
}

/* ---- sign and class -------------------------------------------------------------------------- */

/* copysign.f32 d, a, b: the sign of a, the magnitude of b (PTX ISA 9.7.3.1) */
static Step run_copysign(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint64_t sign = inst_type(inst) == T_F64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
    (void)block;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t i = first_lane(left);
        put_lane(warp, &inst->ops[0], i,
                 (in_lane(warp, &inst->ops[1], i) & sign) |
                     (in_lane(warp, &inst->ops[2], i) & ~sign));
    }
    return STEP_NEXT;
}

static bool is_of_class(uint32_t choice, double value, bool subnormal) {
    switch (choice) {
    case TEST_FINITE: return isfinite(value);
    case TEST_INFINITE: return isinf(value);
    case TEST_NUMBER: return !isnan(value);
    case TEST_NOTANUMBER: return isnan(value);
    case TEST_NORMAL: return isfinite(value) && !subnormal && value != 0;
    case TEST_SUBNORMAL: return subnormal || value == 0; /* zero counts too (PTX ISA 9.7.3.2) */
    default: return false;
    }
}
static Step run_class(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint32_t out = 0;
    (void)block;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t i = first_lane(left);
        uint64_t bits = in_lane(warp, &inst->ops[2], i);
        bool is_double = inst_type(inst) == T_F64;
        double value = is_double ? as_double(bits) : (double)as_float((uint32_t)bits);
        bool subnormal = is_double ? fpclassify(value) == FP_SUBNORMAL
                                   : (bits & 0x7f800000u) == 0 && (bits & 0x7fffffu);
        out |= (uint32_t)is_of_class(inst->mods.choice, value, subnormal) << i;
    }
    put_mask(warp, &inst->ops[0], out, mask);
    return STEP_NEXT;
}

/* ---- selection of the handler ---------------------------------------------------------------- */

static Run pick_fast(const Inst *inst) {
    switch (inst->opcode) {
    case OP_ADD: return fast_add;
    case OP_SUB: return fast_sub;
    case OP_MUL: return fast_mul;
    case OP_FMA: return fast_fma;
    case OP_DIV: return fast_div;
    case OP_MIN: return fast_min;
    case OP_MAX: return fast_max;
    case OP_ABS: return fast_abs;
    case OP_NEG: return fast_neg;
    default: return run_f32;
    }
}

/* True if the opcode has this form: IEEE operations need a rounding, the others .approx (or
 * .full) */
static bool form_exists(const Inst *inst, bool is_double) {
    bool rounded = inst->mods.round >= ROUND_RN && inst->mods.round <= ROUND_RP;
    bool approximate = (inst->mods.flags & (FLAG_APPROX | FLAG_FULL)) != 0;
    switch (inst->opcode) {
    case OP_ADD:
    case OP_SUB:
    case OP_MUL: return !approximate && (rounded || !inst->mods.round);
    case OP_FMA:
    case OP_MAD: return rounded && !approximate;
    case OP_RCP:
        if (is_double && approximate && !rounded) return (inst->mods.flags & FLAG_FTZ) != 0;
        return is_double ? rounded && !approximate : rounded != approximate;
    case OP_DIV:
    case OP_SQRT: return is_double ? rounded && !approximate : rounded != approximate;
    case OP_RSQRT: return approximate && !rounded;
    case OP_EX2:
    case OP_LG2:
    case OP_SIN:
    case OP_COS:
    case OP_TANH: return approximate && !rounded && !is_double;
    case OP_MIN:
    case OP_MAX:
    case OP_ABS:
    case OP_NEG: return !rounded && !approximate;
    default: return false;
    }
}

Run pick_float(const Inst *inst) {
    Type type = inst_type(inst);
    if (type != T_F32 && type != T_F64) return NULL;
    if (inst->opcode == OP_COPYSIGN) return run_copysign;
    if (inst->opcode == OP_TESTP) return inst->mods.choice ? run_class : NULL;
    if (!form_exists(inst, type == T_F64)) return NULL;
    bool is_gross =
        (inst->opcode == OP_RCP || inst->opcode == OP_RSQRT) && (inst->mods.flags & FLAG_APPROX);
    uint32_t other = FLAG_SAT | FLAG_RELU | FLAG_NAN | (is_gross ? 0 : (uint32_t)FLAG_FTZ);
    if (type == T_F64) return inst->mods.flags & other ? NULL : run_f64;
    bool plain = inst->mods.round <= ROUND_RN &&
                 !(inst->mods.flags & (FLAG_SAT | FLAG_FTZ | FLAG_RELU | FLAG_NAN));
    return plain ? pick_fast(inst) : run_f32;
}
