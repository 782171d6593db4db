/* Integer and bit instructions: one loop over 32 lanes each, made by macros from one expression a row.
 *
 * All lanes are computed, then those of the mask are stored: the loops stay free of branches and the compiler makes
 * vectors of them. Values of 8 and 16 bits lie zero-extended in lanes of 32. */
#include "machine.h"

#define UNUSED_BLOCK (void)block

/* One function: operands read as Type x, y, z, the result stored as a lane of `lane` bits, cut to `cut` */
#define UNARY(name, Type, lane, cut, expression)                                                                       \
    static Step name(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {                                      \
        const uint##lane##_t *a = in##lane(warp, &inst->ops[1]);                                                       \
        uint##lane##_t out[LANES];                                                                                     \
        UNUSED_BLOCK;                                                                                                  \
        for (int i = 0; i < LANES; i++) {                                                                              \
            Type x = (Type)a[i];                                                                                       \
            out[i] = (uint##lane##_t)(cut)(expression);                                                                \
        }                                                                                                              \
        put##lane(warp, &inst->ops[0], out, mask);                                                                     \
        return STEP_NEXT;                                                                                              \
    }
#define BINARY(name, Type, lane, cut, expression)                                                                      \
    static Step name(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {                                      \
        const uint##lane##_t *a = in##lane(warp, &inst->ops[1]), *b = in##lane(warp, &inst->ops[2]);                   \
        uint##lane##_t out[LANES];                                                                                     \
        UNUSED_BLOCK;                                                                                                  \
        for (int i = 0; i < LANES; i++) {                                                                              \
            Type x = (Type)a[i], y = (Type)b[i];                                                                       \
            out[i] = (uint##lane##_t)(cut)(expression);                                                                \
        }                                                                                                              \
        put##lane(warp, &inst->ops[0], out, mask);                                                                     \
        return STEP_NEXT;                                                                                              \
    }
#define TERNARY(name, Type, lane, cut, expression)                                                                     \
    static Step name(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {                                      \
        const uint##lane##_t *a = in##lane(warp, &inst->ops[1]), *b = in##lane(warp, &inst->ops[2]),                   \
                             *c = in##lane(warp, &inst->ops[3]);                                                       \
        uint##lane##_t out[LANES];                                                                                     \
        UNUSED_BLOCK;                                                                                                  \
        for (int i = 0; i < LANES; i++) {                                                                              \
            Type x = (Type)a[i], y = (Type)b[i], z = (Type)c[i];                                                       \
            out[i] = (uint##lane##_t)(cut)(expression);                                                                \
        }                                                                                                              \
        put##lane(warp, &inst->ops[0], out, mask);                                                                     \
        return STEP_NEXT;                                                                                              \
    }

/* the six integer types of arithmetic; wrapping is done in unsigned types, `W` is that type */
#define EACH(MAKER, name, expression)                                                                                  \
    MAKER(name##_u16, uint16_t, 32, uint16_t, expression)                                                              \
    MAKER(name##_s16, int16_t, 32, uint16_t, expression)                                                               \
    MAKER(name##_u32, uint32_t, 32, uint32_t, expression)                                                              \
    MAKER(name##_s32, int32_t, 32, uint32_t, expression)                                                               \
    MAKER(name##_u64, uint64_t, 64, uint64_t, expression)                                                              \
    MAKER(name##_s64, int64_t, 64, uint64_t, expression)
#define EACH_BITS(MAKER, name, expression)                                                                             \
    MAKER(name##_b16, uint16_t, 32, uint16_t, expression)                                                              \
    MAKER(name##_b32, uint32_t, 32, uint32_t, expression)                                                              \
    MAKER(name##_b64, uint64_t, 64, uint64_t, expression)
#define ROW(name)                                                                                                      \
    {                                                                                                                  \
        [T_U16] = name##_u16, [T_S16] = name##_s16, [T_U32] = name##_u32, [T_S32] = name##_s32, [T_U64] = name##_u64,  \
        [T_S64] = name##_s64                                                                                           \
    }
/* where the sign does not matter, and bit instructions, which take .b types only */
#define ROW_WRAPPING(name)                                                                                             \
    {                                                                                                                  \
        [T_U16] = name##_b16, [T_S16] = name##_b16, [T_U32] = name##_b32, [T_S32] = name##_b32, [T_U64] = name##_b64,  \
        [T_S64] = name##_b64                                                                                           \
    }
#define ROW_BITS(name)                                                                                                 \
    { [T_B16] = name##_b16, [T_B32] = name##_b32, [T_B64] = name##_b64 }

EACH_BITS(BINARY, add, x + y)
EACH_BITS(BINARY, sub, x - y)
EACH_BITS(BINARY, mul_lo, (uint64_t)x *y)
EACH_BITS(TERNARY, mad_lo, (uint64_t)x *y + z)
EACH_BITS(UNARY, neg, 0 - (uint64_t)x)
EACH(BINARY, min, x < y ? x : y)
EACH(BINARY, max, x > y ? x : y)
EACH_BITS(BINARY, and, x &y)
EACH_BITS(BINARY, or, x | y)
EACH_BITS(BINARY, xor, x ^ y)
EACH_BITS(UNARY, not, ~x)
EACH_BITS(UNARY, cnot, x == 0)

/* division by zero: what the hardware gives, all ones and the dividend */
BINARY(div_u16, uint16_t, 32, uint16_t, y == 0 ? UINT16_MAX : x / y)
BINARY(div_s16, int16_t, 32, uint16_t, y == 0 ? -1 : x / y)
BINARY(div_u32, uint32_t, 32, uint32_t, y == 0 ? UINT32_MAX : x / y)
BINARY(div_s32, int32_t, 32, uint32_t, y == 0 ? -1 : (int64_t)x / y)
BINARY(div_u64, uint64_t, 64, uint64_t, y == 0 ? UINT64_MAX : x / y)
BINARY(div_s64, int64_t, 64, uint64_t, y == 0 ? -1 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y)
BINARY(rem_u16, uint16_t, 32, uint16_t, y == 0 ? x : x % y)
BINARY(rem_s16, int16_t, 32, uint16_t, y == 0 ? x : x % y)
BINARY(rem_u32, uint32_t, 32, uint32_t, y == 0 ? x : x % y)
BINARY(rem_s32, int32_t, 32, uint32_t, y == 0 ? x : (int64_t)x % y)
BINARY(rem_u64, uint64_t, 64, uint64_t, y == 0 ? x : x % y)
BINARY(rem_s64, int64_t, 64, uint64_t, y == 0 ? x : y == -1 ? 0 : x % y)

UNARY(abs_s16, int16_t, 32, uint16_t, x < 0 ? -x : x)
UNARY(abs_s32, int32_t, 32, uint32_t, x < 0 ? 0 - (uint32_t)x : (uint32_t)x)
UNARY(abs_s64, int64_t, 64, uint64_t, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)

BINARY(mul_hi_u16, uint16_t, 32, uint16_t, (uint32_t)x *y >> 16)
BINARY(mul_hi_s16, int16_t, 32, uint16_t, ((int32_t)x * y) >> 16)
BINARY(mul_hi_u32, uint32_t, 32, uint32_t, (uint64_t)x *y >> 32)
BINARY(mul_hi_s32, int32_t, 32, uint32_t, ((int64_t)x * y) >> 32)
__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 WideUnsigned;
BINARY(mul_hi_u64, uint64_t, 64, uint64_t, (WideUnsigned)x *y >> 64)
BINARY(mul_hi_s64, int64_t, 64, uint64_t, ((Wide)x * y) >> 64)
TERNARY(mad_hi_u16, uint16_t, 32, uint16_t, ((uint32_t)x * y >> 16) + z)
TERNARY(mad_hi_s16, int16_t, 32, uint16_t, (((int32_t)x * y) >> 16) + z)
TERNARY(mad_hi_u32, uint32_t, 32, uint32_t, ((uint64_t)x * y >> 32) + z)
TERNARY(mad_hi_s32, int32_t, 32, uint32_t, (((int64_t)x * y) >> 32) + z)
TERNARY(mad_hi_u64, uint64_t, 64, uint64_t, (uint64_t)((WideUnsigned)x *y >> 64) + z)
TERNARY(mad_hi_s64, int64_t, 64, uint64_t, (uint64_t)(((Wide)x * y) >> 64) + (uint64_t)z)
BINARY(mul24_u32, uint32_t, 32, uint32_t, (x & 0xffffff) * (y & 0xffffff))
BINARY(mul24_s32, int32_t, 32, uint32_t,
       (int64_t)((int32_t)((uint32_t)x << 8) >> 8) * ((int32_t)((uint32_t)y << 8) >> 8))

#define DISTANCE(W) (x > y ? (W)x - (W)y : (W)y - (W)x) + (W)z
TERNARY(sad_u16, uint16_t, 32, uint16_t, DISTANCE(uint32_t))
TERNARY(sad_s16, int16_t, 32, uint16_t, DISTANCE(uint32_t))
TERNARY(sad_u32, uint32_t, 32, uint32_t, DISTANCE(uint32_t))
TERNARY(sad_s32, int32_t, 32, uint32_t, DISTANCE(uint32_t))
TERNARY(sad_u64, uint64_t, 64, uint64_t, DISTANCE(uint64_t))
TERNARY(sad_s64, int64_t, 64, uint64_t, DISTANCE(uint64_t))

static inline int32_t saturate(int64_t value) {
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
}
BINARY(add_sat, int32_t, 32, uint32_t, saturate((int64_t)x + y))
BINARY(sub_sat, int32_t, 32, uint32_t, saturate((int64_t)x - y))

/* ---- products of double width ------------------------------------------------------------------------------------- */

#define WIDE_PRODUCT(name, Narrow, Broad, lane)                                                                        \
    static Step mul_wide_##name(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {                           \
        const uint32_t *a = in32(warp, &inst->ops[1]), *b = in32(warp, &inst->ops[2]);                                 \
        uint##lane##_t out[LANES];                                                                                     \
        UNUSED_BLOCK;                                                                                                  \
        for (int i = 0; i < LANES; i++) out[i] = (uint##lane##_t)((Broad)(Narrow)a[i] * (Broad)(Narrow)b[i]);          \
        put##lane(warp, &inst->ops[0], out, mask);                                                                     \
        return STEP_NEXT;                                                                                              \
    }                                                                                                                  \
    static Step mad_wide_##name(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {                           \
        const uint32_t *a = in32(warp, &inst->ops[1]), *b = in32(warp, &inst->ops[2]);                                 \
        const uint##lane##_t *c = in##lane(warp, &inst->ops[3]);                                                       \
        uint##lane##_t out[LANES];                                                                                     \
        UNUSED_BLOCK;                                                                                                  \
        for (int i = 0; i < LANES; i++) out[i] = (uint##lane##_t)((Broad)(Narrow)a[i] * (Broad)(Narrow)b[i]) + c[i];   \
        put##lane(warp, &inst->ops[0], out, mask);                                                                     \
        return STEP_NEXT;                                                                                              \
    }
WIDE_PRODUCT(u16, uint16_t, uint32_t, 32)
WIDE_PRODUCT(s16, int16_t, int32_t, 32)
WIDE_PRODUCT(u32, uint32_t, uint64_t, 64)
WIDE_PRODUCT(s32, int32_t, int64_t, 64)

/* ---- shifts and fields -------------------------------------------------------------------------------------------- */

/* amounts over the width are clamped (PTX ISA 9.7.8.9) */
#define SHIFT_BY(name, Type, lane, cut, expression)                                                                    \
    static Step name(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {                                      \
        const uint##lane##_t *a = in##lane(warp, &inst->ops[1]);                                                       \
        const uint32_t *b = in32(warp, &inst->ops[2]);                                                                 \
        uint##lane##_t out[LANES];                                                                                     \
        UNUSED_BLOCK;                                                                                                  \
        for (int i = 0; i < LANES; i++) {                                                                              \
            Type x = (Type)a[i];                                                                                       \
            uint32_t n = b[i];                                                                                         \
            out[i] = (uint##lane##_t)(cut)(expression);                                                                \
        }                                                                                                              \
        put##lane(warp, &inst->ops[0], out, mask);                                                                     \
        return STEP_NEXT;                                                                                              \
    }
SHIFT_BY(shl_b16, uint16_t, 32, uint16_t, n > 15 ? 0 : (uint32_t)x << n)
SHIFT_BY(shl_b32, uint32_t, 32, uint32_t, n > 31 ? 0 : x << n)
SHIFT_BY(shl_b64, uint64_t, 64, uint64_t, n > 63 ? 0 : x << n)
SHIFT_BY(shr_b16, uint16_t, 32, uint16_t, n > 15 ? 0 : x >> n)
SHIFT_BY(shr_b32, uint32_t, 32, uint32_t, n > 31 ? 0 : x >> n)
SHIFT_BY(shr_b64, uint64_t, 64, uint64_t, n > 63 ? 0 : x >> n)
SHIFT_BY(shr_s16, int16_t, 32, uint16_t, x >> (n > 15 ? 15 : n))
SHIFT_BY(shr_s32, int32_t, 32, uint32_t, x >> (n > 31 ? 31 : n))
SHIFT_BY(shr_s64, int64_t, 64, uint64_t, x >> (n > 63 ? 63 : n))

static uint32_t find_leading(uint64_t value, uint32_t bits) {
    return value ? (uint32_t)__builtin_clzll(value) - (64 - bits) : bits;
}
static uint64_t reverse(uint64_t value, uint32_t bits) {
    uint64_t out = 0;
    for (uint32_t i = 0; i < bits; i++) out |= (value >> i & 1) << (bits - 1 - i);
    return out;
}
static uint32_t permute_select(uint32_t choice, uint32_t selector) {
    uint32_t n = selector & 3;
    switch (choice) {
    case PERMUTE_F4E: return (n + 3) << 12 | (n + 2) << 8 | (n + 1) << 4 | n;
    case PERMUTE_B4E: return ((n + 5) & 7) << 12 | ((n + 6) & 7) << 8 | ((n + 7) & 7) << 4 | n;
    case PERMUTE_RC8: return n * 0x1111u;
    case PERMUTE_ECL: return 3u << 12 | (n > 2 ? n : 2u) << 8 | (n > 1 ? n : 1u) << 4 | n;
    case PERMUTE_ECR: return n << 12 | (n < 2 ? n : 2u) << 8 | (n < 1 ? n : 1u) << 4;
    case PERMUTE_RC16: return (n & 1) ? 0x3232u : 0x1010u;
    default: return selector;
    }
}
static uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t out = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t nibble = selector >> (4 * i) & 15, byte = (uint32_t)(bytes >> (8 * (nibble & 7))) & 255;
        if (nibble & 8) byte = byte & 128 ? 255 : 0;
        out |= byte << (8 * i);
    }
    return out;
}
static uint32_t logic3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t out = 0;
    for (uint32_t i = 0; i < 8; i++)
        if (table >> i & 1) out |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return out;
}
static uint32_t funnel(const Inst *inst, uint32_t low, uint32_t high, uint32_t amount) {
    uint32_t n = inst->mods.flags & FLAG_WRAP ? amount & 31 : amount > 32 ? 32 : amount;
    uint64_t both = (uint64_t)high << 32 | low;
    if (inst->mods.flags & FLAG_LEFT) return (uint32_t)(n == 32 ? both << 32 >> 32 : both << n >> 32);
    return (uint32_t)(both >> n);
}
/* PTX ISA 9.7.1.20: the sign bit fills what lies beyond the field or the register */
static uint64_t extract(Type type, uint64_t value, uint32_t at, uint32_t length) {
    uint32_t msb = type_rows[type].bytes == 8 ? 63 : 31;
    at &= 255;
    length &= 255;
    uint64_t sign = 0;
    if (type_is_signed(type) && length > 0) sign = value >> (at + length - 1 < msb ? at + length - 1 : msb) & 1;
    uint64_t out = 0;
    for (uint32_t i = 0; i <= msb; i++) out |= (i < length && at + i <= msb ? value >> (at + i) & 1 : sign) << i;
    return out;
}
static uint64_t insert(Type type, uint64_t value, uint64_t into, uint32_t at, uint32_t length) {
    uint32_t msb = type_rows[type].bytes == 8 ? 63 : 31;
    at &= 255;
    length &= 255;
    for (uint32_t i = 0; i < length && at + i <= msb; i++)
        into = (into & ~(UINT64_C(1) << (at + i))) | (value >> i & 1) << (at + i);
    return into;
}
static uint32_t find_bit(const Inst *inst, uint64_t value) {
    Type type = inst_type(inst);
    uint32_t bits = 8u * type_rows[type].bytes;
    if (type_is_signed(type) && (value >> (bits - 1) & 1)) value = ~value;
    if (bits < 64) value &= (UINT64_C(1) << bits) - 1;
    uint32_t leading = find_leading(value, bits);
    if (leading == bits) return UINT32_MAX;
    return inst->mods.flags & FLAG_SHIFTAMT ? leading : bits - 1 - leading;
}
static uint32_t dot4(const Inst *inst, uint32_t a, uint32_t b, uint32_t c) {
    bool a_signed = type_is_signed((Type)inst->mods.types[0]), b_signed = type_is_signed((Type)inst->mods.types[1]);
    for (int i = 0; i < 4; i++) {
        uint32_t x = a >> (8 * i) & 255, y = b >> (8 * i) & 255;
        int32_t p = a_signed ? (int8_t)x : (int32_t)x, q = b_signed ? (int8_t)y : (int32_t)y;
        c += (uint32_t)(p * q);
    }
    return c;
}

/* The rarer ones, lane by lane */
static uint64_t bits_of(const Inst *inst, const uint64_t *v) {
    Type type = inst_type(inst);
    uint32_t bits = 8u * type_rows[type].bytes;
    switch (inst->opcode) {
    case OP_CLZ: return find_leading(v[0], bits);
    case OP_POPC: return (uint32_t)__builtin_popcountll(v[0]);
    case OP_BREV: return reverse(v[0], bits);
    case OP_BFIND: return find_bit(inst, v[0]);
    case OP_BFE: return extract(type, v[0], (uint32_t)v[1], (uint32_t)v[2]);
    case OP_BFI: return insert(type, v[0], v[1], (uint32_t)v[2], (uint32_t)v[3]);
    case OP_PRMT: return permute((uint32_t)v[0], (uint32_t)v[1], permute_select(inst->mods.choice, (uint32_t)v[2]));
    case OP_SHF: return funnel(inst, (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]);
    case OP_DP4A: return dot4(inst, (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]);
    default: return 0;
    }
}
static Step run_bits(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    UNUSED_BLOCK;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        uint64_t v[4] = {0};
        for (uint32_t i = 1; i < inst->op_count; i++) v[i - 1] = in_lane(warp, &inst->ops[i], lane);
        put_lane(warp, &inst->ops[0], lane, bits_of(inst, v));
    }
    return STEP_NEXT;
}
static Step run_logic3(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    const uint32_t *a = in32(warp, &inst->ops[1]), *b = in32(warp, &inst->ops[2]), *c = in32(warp, &inst->ops[3]);
    uint32_t table = *in32(warp, &inst->ops[4]), out[LANES];
    UNUSED_BLOCK;
    for (int i = 0; i < LANES; i++) out[i] = logic3(a[i], b[i], c[i], table);
    put32(warp, &inst->ops[0], out, mask);
    return STEP_NEXT;
}

/* and, or, xor, not of predicates: a bit a lane */
static Step run_predicate(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint32_t a = in_mask(warp, &inst->ops[1]), b = inst->op_count > 2 ? in_mask(warp, &inst->ops[2]) : 0;
    UNUSED_BLOCK;
    uint32_t out = inst->opcode == OP_AND ? a & b : inst->opcode == OP_OR ? a | b : inst->opcode == OP_XOR ? a ^ b : ~a;
    put_mask(warp, &inst->ops[0], out, mask);
    return STEP_NEXT;
}

/* ---- the carry flag: add.cc and its kin (PTX ISA 9.7.2) ------------------------------------------------------------ */

static Step run_carry(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    bool subtracts = inst->opcode == OP_SUB || inst->opcode == OP_SUBC;
    bool with_carry = inst->opcode == OP_ADDC || inst->opcode == OP_SUBC;
    uint32_t bits = 8u * type_rows[inst_type(inst)].bytes;
    UNUSED_BLOCK;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        uint64_t a = in_lane(warp, &inst->ops[1], lane), b = in_lane(warp, &inst->ops[2], lane);
        uint32_t carry = with_carry ? warp->carry >> lane & 1 : 0;
        WideUnsigned sum = subtracts ? (WideUnsigned)a - b - carry : (WideUnsigned)a + b + carry;
        put_lane(warp, &inst->ops[0], lane, (uint64_t)sum);
        if (inst->mods.flags & FLAG_CC)
            warp->carry = (warp->carry & ~(1u << lane)) | (uint32_t)(sum >> bits & 1) << lane;
    }
    return STEP_NEXT;
}

/* ---- the tables --------------------------------------------------------------------------------------------------- */

static const Run handlers[OP_COUNT][T_COUNT] = {
    [OP_ADD] = ROW_WRAPPING(add),
    [OP_SUB] = ROW_WRAPPING(sub),
    [OP_DIV] = ROW(div),
    [OP_REM] = ROW(rem),
    [OP_MIN] = ROW(min),
    [OP_MAX] = ROW(max),
    [OP_SAD] = ROW(sad),
    [OP_NEG] = {[T_S16] = neg_b16, [T_S32] = neg_b32, [T_S64] = neg_b64},
    [OP_ABS] = {[T_S16] = abs_s16, [T_S32] = abs_s32, [T_S64] = abs_s64},
    [OP_AND] = ROW_BITS(and),
    [OP_OR] = ROW_BITS(or),
    [OP_XOR] = ROW_BITS(xor),
    [OP_NOT] = ROW_BITS(not ),
    [OP_CNOT] = ROW_BITS(cnot),
    [OP_SHL] = ROW_BITS(shl),
    [OP_SHR] = {[T_B16] = shr_b16,
                [T_U16] = shr_b16,
                [T_S16] = shr_s16,
                [T_B32] = shr_b32,
                [T_U32] = shr_b32,
                [T_S32] = shr_s32,
                [T_B64] = shr_b64,
                [T_U64] = shr_b64,
                [T_S64] = shr_s64},
    [OP_MUL24] = {[T_U32] = mul24_u32, [T_S32] = mul24_s32},
    [OP_LOP3] = {[T_B32] = run_logic3},
    [OP_CLZ] = {[T_B32] = run_bits, [T_B64] = run_bits},
    [OP_POPC] = {[T_B32] = run_bits, [T_B64] = run_bits},
    [OP_BREV] = {[T_B32] = run_bits, [T_B64] = run_bits},
    [OP_BFIND] = {[T_U32] = run_bits, [T_S32] = run_bits, [T_U64] = run_bits, [T_S64] = run_bits},
    [OP_BFE] = {[T_U32] = run_bits, [T_S32] = run_bits, [T_U64] = run_bits, [T_S64] = run_bits},
    [OP_BFI] = {[T_B32] = run_bits, [T_B64] = run_bits},
    [OP_PRMT] = {[T_B32] = run_bits},
    [OP_SHF] = {[T_B32] = run_bits},
    [OP_DP4A] = {[T_U32] = run_bits, [T_S32] = run_bits},
    [OP_ADDC] = {[T_U32] = run_carry, [T_S32] = run_carry, [T_U64] = run_carry, [T_S64] = run_carry},
    [OP_SUBC] = {[T_U32] = run_carry, [T_S32] = run_carry, [T_U64] = run_carry, [T_S64] = run_carry},
};
static const Run mul_low[T_COUNT] = ROW_WRAPPING(mul_lo), mad_low[T_COUNT] = ROW_WRAPPING(mad_lo);
static const Run mul_high[T_COUNT] = ROW(mul_hi), mad_high[T_COUNT] = ROW(mad_hi);
static const Run mul_wide[T_COUNT] = {
    [T_U16] = mul_wide_u16, [T_S16] = mul_wide_s16, [T_U32] = mul_wide_u32, [T_S32] = mul_wide_s32};
static const Run mad_wide[T_COUNT] = {
    [T_U16] = mad_wide_u16, [T_S16] = mad_wide_s16, [T_U32] = mad_wide_u32, [T_S32] = mad_wide_s32};

static Run pick_product(const Inst *inst, Type type) {
    bool adds = inst->opcode == OP_MAD;
    if (inst->mods.flags & (FLAG_CC | FLAG_SAT)) return NULL;
    if (inst->mods.flags & FLAG_WIDE) return adds ? mad_wide[type] : mul_wide[type];
    if (inst->mods.compare == COMPARE_HI) return adds ? mad_high[type] : mul_high[type];
    return inst->mods.compare == COMPARE_LO ? (adds ? mad_low[type] : mul_low[type]) : NULL;
}

Run pick_integer(const Inst *inst) {
    Type type = inst_type(inst);
    if (type == T_PRED) {
        bool logic =
            inst->opcode == OP_AND || inst->opcode == OP_OR || inst->opcode == OP_XOR || inst->opcode == OP_NOT;
        return logic ? run_predicate : NULL;
    }
    if (inst->mods.round || (inst->mods.flags & ~(uint32_t)(FLAG_SAT | FLAG_WIDE | FLAG_CC | FLAG_LEFT | FLAG_RIGHT |
                                                            FLAG_WRAP | FLAG_CLAMP | FLAG_SHIFTAMT)))
        return NULL;
    if (inst->opcode == OP_MUL || inst->opcode == OP_MAD) return pick_product(inst, type);
    if (inst->mods.flags & FLAG_SAT)
        return type != T_S32 ? NULL : inst->opcode == OP_ADD ? add_sat : inst->opcode == OP_SUB ? sub_sat : NULL;
    if (inst->mods.flags & FLAG_CC) return handlers[OP_ADDC][type] && inst->opcode <= OP_SUBC ? run_carry : NULL;
    return handlers[inst->opcode][type];
}

Run pick_arithmetic(const Inst *inst) {
    switch (inst_type(inst)) {
    case T_F32:
    case T_F64: return pick_float(inst);
    case T_F16:
    case T_BF16:
    case T_F16X2:
    case T_BF16X2: return pick_half(inst);
    case T_NONE:
    case T_PRED:
    case T_B8:
    case T_B16:
    case T_B32:
    case T_B64:
    case T_B128:
    case T_U8:
    case T_U16:
    case T_U32:
    case T_U64:
    case T_S8:
    case T_S16:
    case T_S32:
    case T_S64:
    case T_TF32:
    case T_E4M3:
    case T_E5M2:
    case T_E4M3X2:
    case T_E5M2X2:
    case T_COUNT: return pick_integer(inst);
    }
    return NULL;
}
