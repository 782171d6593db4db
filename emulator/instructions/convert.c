/* cvt: every pair of integer and float types, all roundings, saturation; and the two halves of
 * x2 types.
 *
 * A value is split into sign, exponent and a 64-bit significand with its top bit set, then
 * rounded once to the target format: exact for every pair, in every mode. The pairs of inner
 * loops have fast paths. */
#include "emulator/machine.h"

typedef struct Format {
    int exponent_bits, fraction_bits;
    bool finite; /* e4m3: no infinity, one NaN */
} Format;

static const Format formats[T_COUNT] = {
    [T_F16] = {5, 10, false},  [T_BF16] = {8, 7, false},  [T_F32] = {8, 23, false},
    [T_F64] = {11, 52, false}, [T_TF32] = {8, 10, false}, [T_E4M3] = {4, 3, true},
    [T_E5M2] = {5, 2, false},
};

typedef enum Kind { KIND_ZERO, KIND_NUMBER, KIND_INFINITE, KIND_NAN } Kind;
typedef struct Parts {
    Kind kind;
    bool negative, sticky; /* sticky: the exact value is slightly further from zero */
    int exponent;          /* value = significand / 2^63 * 2^exponent */
    uint64_t significand;
} Parts;

/* ---- unpacking ------------------------------------------------------------------------------- */

static Parts from_integer(uint64_t magnitude, bool negative) {
    if (magnitude == 0) return (Parts){.kind = KIND_ZERO};
    int shift = __builtin_clzll(magnitude);
    return (Parts){KIND_NUMBER, negative, false, 63 - shift, magnitude << shift};
}

static Parts from_float(const Format *format, uint64_t bits) {
    int total = format->exponent_bits + format->fraction_bits;
    uint64_t fraction = bits & ((UINT64_C(1) << format->fraction_bits) - 1);
    int top = (1 << format->exponent_bits) - 1,
        exponent = (int)(bits >> format->fraction_bits) & top;
    int bias = (1 << (format->exponent_bits - 1)) - 1;
    bool negative = bits >> total & 1;
    if (exponent == top &&
        (!format->finite || fraction == (UINT64_C(1) << format->fraction_bits) - 1))
        return (Parts){.kind = fraction ? KIND_NAN : KIND_INFINITE, .negative = negative};
    if (exponent == 0 && fraction == 0) return (Parts){.kind = KIND_ZERO, .negative = negative};
    if (exponent == 0) {
        int shift = __builtin_clzll(fraction);
        return (Parts){KIND_NUMBER, negative, false, 63 - shift + 1 - bias - format->fraction_bits,
                       fraction << shift};
    }
    return (Parts){KIND_NUMBER, negative, false, exponent - bias,
                   (UINT64_C(1) << 63) | fraction << (63 - format->fraction_bits)};
}

/* ---- rounding -------------------------------------------------------------------------------- */

/* significand >> shift, rounded; any shift from 0 */
static uint64_t round_shift(const Parts *parts, int shift, Round mode) {
    uint64_t kept = shift >= 64 ? 0 : parts->significand >> shift;
    bool half = shift >= 1 && shift <= 64 && (parts->significand >> (shift - 1) & 1);
    bool rest =
        parts->sticky || (shift > 64 ? parts->significand != 0
                                     : shift >= 2 && (parts->significand << (65 - shift)) != 0);
    bool inexact = half || rest, up = false;
    switch (mode) {
    case ROUND_NONE:
    case ROUND_RN:
    case ROUND_RNI: up = half && (rest || (kept & 1)); break;
    case ROUND_RNA: up = half; break;
    case ROUND_RZ:
    case ROUND_RZI: break;
    case ROUND_RM:
    case ROUND_RMI: up = inexact && parts->negative; break;
    case ROUND_RP:
    case ROUND_RPI: up = inexact && !parts->negative; break;
    }
    return kept + up;
}

static uint64_t nan_bits(Type type) {
    if (type == T_F16 || type == T_BF16) return 0x7fff;
    if (type == T_E4M3 || type == T_E5M2) return 0x7f;
    return type == T_F64 ? UINT64_C(0x7fffffffffffffff) : 0x7fffffff;
}

/* The largest finite value, or infinity, depending on the mode (always finite with .satfinite) */
static uint64_t overflow_bits(const Format *format, bool negative, Round mode, bool finite) {
    uint64_t infinity = ((UINT64_C(1) << format->exponent_bits) - 1) << format->fraction_bits;
    bool to_largest = finite || format->finite || mode == ROUND_RZ ||
                      (mode == ROUND_RM && !negative) || (mode == ROUND_RP && negative);
    return !to_largest      ? infinity
           : format->finite ? (infinity | ((UINT64_C(1) << format->fraction_bits) - 2))
                            : infinity - 1;
}

static uint64_t pack_float(Type type, const Parts *parts, Round mode, bool satfinite) {
    const Format *format = &formats[type];
    uint64_t sign = (uint64_t)parts->negative << (format->exponent_bits + format->fraction_bits);
    uint64_t infinity = ((UINT64_C(1) << format->exponent_bits) - 1) << format->fraction_bits;
    int bias = (1 << (format->exponent_bits - 1)) - 1;
    if (parts->kind == KIND_NAN) return nan_bits(type);
    if (parts->kind == KIND_ZERO) return sign;
    if (parts->kind == KIND_INFINITE)
        return sign |
               (satfinite || format->finite ? overflow_bits(format, parts->negative, mode, true)
                                            : infinity);
    int exponent = parts->exponent + bias, shift = 63 - format->fraction_bits;
    if (exponent < 1) {
        shift += 1 - exponent;
        exponent = 1;
    }
    uint64_t rounded = round_shift(parts, shift, mode);
    /* A carry out of the fraction increments the exponent, because the hidden bit counts as 1
     * there */
    uint64_t limit =
        format->finite ? infinity | ((UINT64_C(1) << format->fraction_bits) - 1) : infinity;
    if (exponent > (1 << format->exponent_bits))
        return sign | overflow_bits(format, parts->negative, mode, satfinite);
    uint64_t bits = ((uint64_t)(exponent - 1) << format->fraction_bits) + rounded;
    if (bits >= limit) return sign | overflow_bits(format, parts->negative, mode, satfinite);
    return sign | bits;
}

/* Out of range: the nearest value of the type. NaN: 0, or only the top bit set if f64 or a
 * 64-bit integer takes part. */
static uint64_t pack_integer(Type type, Type from, const Parts *parts, Round mode) {
    uint32_t bits = 8u * type_rows[type].bytes;
    bool is_signed = type_is_signed(type);
    uint64_t highest = UINT64_MAX >> (64 - bits + is_signed), lowest = is_signed ? highest + 1 : 0;
    if (parts->kind == KIND_NAN) return bits == 64 || from == T_F64 ? UINT64_C(1) << (bits - 1) : 0;
    if (parts->kind == KIND_ZERO) return 0;
    bool huge = parts->kind == KIND_INFINITE || parts->exponent > 63;
    uint64_t magnitude = huge ? UINT64_MAX : round_shift(parts, 63 - parts->exponent, mode);
    if (parts->negative)
        return !is_signed ? 0 : huge || magnitude > lowest ? lowest : 0 - magnitude;
    return huge || magnitude > highest ? highest : magnitude;
}

/* ---- one value ------------------------------------------------------------------------------- */

static uint64_t sign_extend(uint64_t value, uint32_t bits) {
    return bits < 64 && (value >> (bits - 1) & 1) ? value | UINT64_MAX << bits : value;
}
static uint64_t cut(uint64_t value, uint32_t bits) {
    return bits < 64 ? value & ((UINT64_C(1) << bits) - 1) : value;
}

static uint64_t integer_to_integer(Type to, Type from, uint64_t value, bool saturates) {
    uint32_t to_bits = 8u * type_rows[to].bytes;
    bool negative = type_is_signed(from) && (int64_t)value < 0;
    if (!saturates) return value;
    uint64_t highest = UINT64_MAX >> (64 - to_bits + type_is_signed(to));
    if (negative)
        return !type_is_signed(to)                      ? 0
               : (int64_t)value < -(int64_t)highest - 1 ? highest + 1
                                                        : value;
    return value > highest ? highest : value;
}

static uint64_t flush(Type type, uint64_t bits) {
    uint64_t exponent = ((UINT64_C(1) << formats[type].exponent_bits) - 1)
                        << formats[type].fraction_bits;
    return bits & exponent
               ? bits
               : bits &
                     (UINT64_C(1) << (formats[type].exponent_bits + formats[type].fraction_bits));
}

static uint64_t saturate_unit(Type type, uint64_t bits) {
    Parts parts = from_float(&formats[type], bits);
    if (parts.kind == KIND_NAN || parts.kind == KIND_ZERO || parts.negative) return 0;
    if (parts.kind == KIND_INFINITE || parts.exponent >= 0) {
        Parts one = from_integer(1, false);
        return pack_float(type, &one, ROUND_RN, false);
    }
    return bits;
}

/* A NaN as an H200 converts it: f64, and f32 from f64 or bf16, keep the upper bits of its fraction;
 * the others are fixed. */
static uint64_t convert_nan(const Inst *inst, Type to, Type from, uint64_t value) {
    bool flushes = (inst->mods.flags & FLAG_FTZ) && from == T_F32;
    if (to == T_TF32)
        return inst->mods.round == ROUND_RNA ? value & ~UINT64_C(0x1fff) : UINT64_C(0x7fffe000);
    if (to == T_F32 && from == T_BF16) return value << 16;
    if (!(to == T_F64 && (from == T_F32 || from == T_F16)) && !(to == T_F32 && from == T_F64))
        return nan_bits(to);
    if (flushes) value = nan_bits(T_F32);
    const Format *source = &formats[from], *target = &formats[to];
    uint64_t fraction = value << (64 - source->fraction_bits) >> (64 - target->fraction_bits),
             quiet = ((UINT64_C(2) << target->exponent_bits) - 1) << (target->fraction_bits - 1),
             sign = flushes ? 0 : value >> (source->exponent_bits + source->fraction_bits) & 1;
    return sign << (target->exponent_bits + target->fraction_bits) | quiet | fraction;
}

static uint64_t convert(const Inst *inst, Type to, Type from, uint64_t value) {
    uint32_t flags = inst->mods.flags, from_bits = 8u * type_rows[from].bytes;
    Round mode = (Round)inst->mods.round;
    value = cut(value, from_bits);
    if (!type_is_float(from)) {
        if (type_is_signed(from)) value = sign_extend(value, from_bits);
        if (!type_is_float(to)) return integer_to_integer(to, from, value, (flags & FLAG_SAT) != 0);
        bool negative = type_is_signed(from) && (int64_t)value < 0;
        Parts parts = from_integer(negative ? 0 - value : value, negative);
        uint64_t out = pack_float(to, &parts, mode, false);
        return flags & FLAG_SAT ? saturate_unit(to, out) : out;
    }
    if ((flags & FLAG_FTZ) && from == T_F32) value = flush(from, value);
    Parts parts = from_float(&formats[from], value);
    if (!type_is_float(to)) return pack_integer(to, from, &parts, mode);
    if ((flags & FLAG_RELU) && parts.negative && parts.kind != KIND_NAN)
        parts = (Parts){.kind = KIND_ZERO};
    if (mode >= ROUND_RNI && parts.kind == KIND_NUMBER && parts.exponent < 63) {
        /* Rounds to an integral value of the same type */
        uint64_t integral = round_shift(&parts, 63 - parts.exponent, mode);
        bool negative = parts.negative;
        parts = from_integer(integral, negative);
        parts.negative = negative;
    }
    uint64_t out = parts.kind == KIND_NAN
                       ? convert_nan(inst, to, from, value)
                       : pack_float(to, &parts, mode, (flags & FLAG_SATFINITE) != 0);
    if ((flags & FLAG_FTZ) && to == T_F32) out = flush(to, out);
    /* the 19 bits of a tf32 are the upper bits of an f32 */
    if (to == T_TF32 && parts.kind != KIND_NAN) out <<= 13;
    return flags & FLAG_SAT ? saturate_unit(to, out) : out;
}

/* ---- handlers -------------------------------------------------------------------------------- */

static Step run_convert(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Type to = (Type)inst->mods.types[0], from = (Type)inst->mods.types[1];
    uint32_t to_bits = 8u * type_rows[to].bytes;
    (void)block;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t i = first_lane(left);
        uint64_t out = convert(inst, to, from, in_lane(warp, &inst->ops[1], i));
        /* A wider destination register gets the sign-extended result */
        out = type_is_signed(to) ? sign_extend(cut(out, to_bits), to_bits) : cut(out, to_bits);
        put_lane(warp, &inst->ops[0], i, out);
    }
    return STEP_NEXT;
}

/* cvt.rn.bf16x2.f32 d, a, b: a goes into the upper half. cvt.rn.f16x2.e4m3x2 d, a: half by half. */
static Type half_of(Type type) {
    return type == T_F16X2    ? T_F16
           : type == T_BF16X2 ? T_BF16
           : type == T_E4M3X2 ? T_E4M3
           : type == T_E5M2X2 ? T_E5M2
                              : type;
}
static Step run_pairs(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Type to = half_of((Type)inst->mods.types[0]), from = (Type)inst->mods.types[1],
         part = half_of(from);
    uint32_t bits = 8u * type_rows[to].bytes, from_bits = 8u * type_rows[part].bytes;
    (void)block;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t i = first_lane(left);
        uint64_t high = in_lane(warp, &inst->ops[1], i),
                 low = part == from ? in_lane(warp, &inst->ops[2], i) : high;
        if (part != from) high >>= from_bits;
        put_lane(warp, &inst->ops[0], i,
                 convert(inst, to, part, high) << bits | convert(inst, to, part, low));
    }
    return STEP_NEXT;
}

static inline uint32_t bfloat_nearest(uint32_t bits) {
    return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}
static Step bfloat_from_f32(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    const uint32_t *a = in32(warp, &inst->ops[1]);
    uint32_t out[LANES];
    (void)block;
    for (int i = 0; i < LANES; i++) out[i] = bfloat_nearest(a[i]);
    put32(warp, &inst->ops[0], out, mask);
    return STEP_NEXT;
}
static Step bfloats_from_f32(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    const uint32_t *a = in32(warp, &inst->ops[1]), *b = in32(warp, &inst->ops[2]);
    uint32_t out[LANES];
    (void)block;
    for (int i = 0; i < LANES; i++) out[i] = bfloat_nearest(a[i]) << 16 | bfloat_nearest(b[i]);
    put32(warp, &inst->ops[0], out, mask);
    return STEP_NEXT;
}
static Step bfloat_to_f32(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    const uint32_t *a = in32(warp, &inst->ops[1]);
    uint32_t out[LANES];
    (void)block;
    for (int i = 0; i < LANES; i++) out[i] = a[i] << 16;
    put32(warp, &inst->ops[0], out, mask);
    return STEP_NEXT;
}
/* The most frequent integer conversions: between registers of 32 and 64 bits */
static Step widen_signed(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    const uint32_t *a = in32(warp, &inst->ops[1]);
    uint64_t out[LANES];
    (void)block;
    for (int i = 0; i < LANES; i++) out[i] = (uint64_t)(int64_t)(int32_t)a[i];
    put64(warp, &inst->ops[0], out, mask);
    return STEP_NEXT;
}
static Step widen_unsigned(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    const uint32_t *a = in32(warp, &inst->ops[1]);
    uint64_t out[LANES];
    (void)block;
    for (int i = 0; i < LANES; i++) out[i] = a[i];
    put64(warp, &inst->ops[0], out, mask);
    return STEP_NEXT;
}

static bool is_64(Type type) { return type_rows[type].bytes == 8; }
static bool is_bits(Type type) {
    return type_rows[type].kind == TYPE_BITS || type_rows[type].kind == TYPE_PREDICATE;
}

static Run pick_pairs(const Inst *inst, Type to, Type from) {
    bool two = !inst->ops[2].absent;
    if (type_rows[to].kind != TYPE_PACKED || (from == T_F32) != two ||
        (inst->mods.flags & FLAG_SAT))
        return NULL;
    bool to_zero =
        inst->mods.round == ROUND_RZ && from == T_F32 && (to == T_F16X2 || to == T_BF16X2);
    if (inst->mods.round != ROUND_RN && !to_zero) return NULL;
    bool narrow = to == T_E4M3X2 || to == T_E5M2X2,
         from_narrow = from == T_E4M3X2 || from == T_E5M2X2;
    if (narrow && !(inst->mods.flags & FLAG_SATFINITE)) return NULL;
    if (!(from == T_F32 || (narrow && from == T_F16X2) || (from_narrow && to == T_F16X2)))
        return NULL;
    return to == T_BF16X2 && inst->mods.flags == 0 && !to_zero ? bfloats_from_f32 : run_pairs;
}

Run pick_convert(const Inst *inst) {
    Type to = (Type)inst->mods.types[0], from = (Type)inst->mods.types[1];
    uint32_t flags = inst->mods.flags;
    if (is_bits(to) || is_bits(from) || to == T_E4M3 || to == T_E5M2 || from == T_E4M3 ||
        from == T_E5M2 || from == T_TF32)
        return NULL;
    if (type_rows[to].kind == TYPE_PACKED || type_rows[from].kind == TYPE_PACKED)
        return pick_pairs(inst, to, from);
    if (!inst->ops[2].absent || (flags & (FLAG_APPROX | FLAG_FULL | FLAG_NAN | FLAG_NOFTZ)))
        return NULL;
    bool integral = inst->mods.round >= ROUND_RNI, same_float = to == from;
    if (type_is_float(from) && !type_is_float(to) && !integral)
        return NULL; /* PTX ISA 9.7.9.21: integer rounding is required */
    if (type_is_float(from) && type_is_float(to) && integral && !same_float) return NULL;
    if (flags == 0 && inst->ops[0].width == type_rows[to].bytes &&
        inst->ops[1].width == type_rows[from].bytes) {
        if (to == T_BF16 && from == T_F32 && inst->mods.round == ROUND_RN) return bfloat_from_f32;
        if (to == T_F32 && from == T_BF16) return bfloat_to_f32;
        if (is_64(to) && !type_is_float(to) && (from == T_S32 || from == T_U32))
            return from == T_S32 ? widen_signed : widen_unsigned;
    }
    return run_convert;
}

/* ---- functions for other files --------------------------------------------------------------- */

float half_to_float(uint16_t bits) {
    Parts parts = from_float(&formats[T_F16], bits);
    uint32_t out = (uint32_t)pack_float(T_F32, &parts, ROUND_RN, false);
    float value;
    memcpy(&value, &out, sizeof value);
    return value;
}
float bfloat_to_float(uint16_t bits) {
    uint32_t out = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &out, sizeof value);
    return value;
}
static uint16_t narrow_double(Type type, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    Parts parts = from_float(&formats[T_F64], bits);
    return (uint16_t)pack_float(type, &parts, ROUND_RN, false);
}
uint16_t half_from_double(double value) { return narrow_double(T_F16, value); }
uint16_t bfloat_from_double(double value) { return narrow_double(T_BF16, value); }
