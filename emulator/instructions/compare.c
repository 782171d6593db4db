/* setp, set, selp, slct. Comparisons of 32 lanes give a mask, one bit per lane. */
#include "emulator/machine.h"

/* One mask of 32 comparisons: six loops per type, so that the loops contain no branch */
#define MASK_LOOP(operator)                                                                        \
    for (int i = 0; i < LANES; i++) out |= (uint32_t)((Value)a[i] operator(Value) b[i]) << i;

#define COMPARE_LANES(name, Type, lane)                                                            \
    static uint32_t name(Compare compare, const uint##lane##_t *a, const uint##lane##_t *b) {      \
        typedef Type Value;                                                                        \
        uint32_t out = 0;                                                                          \
        switch (compare) {                                                                         \
        case COMPARE_EQ: MASK_LOOP(==) break;                                                      \
        case COMPARE_NE: MASK_LOOP(!=) break;                                                      \
        case COMPARE_LT:                                                                           \
        case COMPARE_LO: MASK_LOOP(<) break;                                                       \
        case COMPARE_LE:                                                                           \
        case COMPARE_LS: MASK_LOOP(<=) break;                                                      \
        case COMPARE_GT:                                                                           \
        case COMPARE_HI: MASK_LOOP(>) break;                                                       \
        case COMPARE_GE:                                                                           \
        case COMPARE_HS: MASK_LOOP(>=) break;                                                      \
        case COMPARE_NONE:                                                                         \
        case COMPARE_EQU:                                                                          \
        case COMPARE_NEU:                                                                          \
        case COMPARE_LTU:                                                                          \
        case COMPARE_LEU:                                                                          \
        case COMPARE_GTU:                                                                          \
        case COMPARE_GEU:                                                                          \
        case COMPARE_NUM:                                                                          \
        case COMPARE_NAN: break;                                                                   \
        }                                                                                          \
        return out;                                                                                \
    }
COMPARE_LANES(compare_u16, uint16_t, 32)
COMPARE_LANES(compare_s16, int16_t, 32)
COMPARE_LANES(compare_u32, uint32_t, 32)
COMPARE_LANES(compare_s32, int32_t, 32)
COMPARE_LANES(compare_u64, uint64_t, 64)
COMPARE_LANES(compare_s64, int64_t, 64)

static double widen(Type type, uint64_t bits, bool flush) {
    double wide;
    float single;
    uint32_t word = (uint32_t)bits;
    if (type == T_F16 || type == T_F16X2)
        return (double)half_to_float((uint16_t)(flush && !(bits & 0x7c00) ? bits & 0x8000 : bits));
    if (type == T_BF16 || type == T_BF16X2) return (double)bfloat_to_float((uint16_t)bits);
    if (type == T_F64) {
        memcpy(&wide, &bits, sizeof wide);
        return wide;
    }
    if (flush && !(word & 0x7f800000u)) word &= 0x80000000u;
    memcpy(&single, &word, sizeof single);
    return (double)single;
}

static bool holds(Compare compare, double x, double y) {
    bool unordered = x != x || y != y;
    switch (compare) {
    case COMPARE_EQ: return x == y;
    case COMPARE_NE: return !unordered && x != y;
    case COMPARE_LT: return x < y;
    case COMPARE_LE: return x <= y;
    case COMPARE_GT: return x > y;
    case COMPARE_GE: return x >= y;
    case COMPARE_EQU: return unordered || x == y;
    case COMPARE_NEU: return x != y;
    case COMPARE_LTU: return unordered || x < y;
    case COMPARE_LEU: return unordered || x <= y;
    case COMPARE_GTU: return unordered || x > y;
    case COMPARE_GEU: return unordered || x >= y;
    case COMPARE_NUM: return !unordered;
    case COMPARE_NAN: return unordered;
    case COMPARE_NONE:
    case COMPARE_LO:
    case COMPARE_LS:
    case COMPARE_HI:
    case COMPARE_HS: break;
    }
    return false;
}

static uint32_t compare_floats(const Warp *warp, const Inst *inst, Type type, const Operand *a,
                               const Operand *b, uint32_t shift, uint32_t mask) {
    uint32_t out = 0;
    bool flush = (inst->mods.flags & FLAG_FTZ) != 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t i = first_lane(left);
        double x = widen(type, in_lane(warp, a, i) >> shift, flush),
               y = widen(type, in_lane(warp, b, i) >> shift, flush);
        out |= (uint32_t)holds((Compare)inst->mods.compare, x, y) << i;
    }
    return out;
}

static uint32_t compare_lanes(const Warp *warp, const Inst *inst, Type type, const Operand *a,
                              const Operand *b, uint32_t mask) {
    Compare compare = (Compare)inst->mods.compare;
    switch (type) {
    case T_B16:
    case T_U16: return compare_u16(compare, in32(warp, a), in32(warp, b));
    case T_S16: return compare_s16(compare, in32(warp, a), in32(warp, b));
    case T_B32:
    case T_U32: return compare_u32(compare, in32(warp, a), in32(warp, b));
    case T_S32: return compare_s32(compare, in32(warp, a), in32(warp, b));
    case T_B64:
    case T_U64: return compare_u64(compare, in64(warp, a), in64(warp, b));
    case T_S64: return compare_s64(compare, in64(warp, a), in64(warp, b));
    case T_F16:
    case T_BF16:
    case T_F32:
    case T_F64:
    case T_F16X2:
    case T_BF16X2: return compare_floats(warp, inst, type, a, b, 0, mask);
    case T_NONE:
    case T_PRED:
    case T_B1:
    case T_U4:
    case T_S4:
    case T_B8:
    case T_B128:
    case T_U8:
    case T_S8:
    case T_TF32:
    case T_E4M3:
    case T_E5M2:
    case T_E4M3X2:
    case T_E5M2X2:
    case T_COUNT: break;
    }
    return 0;
}

static uint32_t combine(const Inst *inst, uint32_t bits, uint32_t with) {
    return inst->mods.reduce == REDUCE_AND   ? bits & with
           : inst->mods.reduce == REDUCE_OR  ? bits | with
           : inst->mods.reduce == REDUCE_XOR ? bits ^ with
                                             : bits;
}

/* ops: p, q, a, b, c. q is the opposite of the comparison, combined in the same way; for a pair
 * it is the result of the upper half */
static Step run_setp(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Type type = inst_type(inst);
    const Operand *a = &inst->ops[2], *b = &inst->ops[3], *c = &inst->ops[4];
    uint32_t bits = compare_lanes(warp, inst, type, a, b, mask), opposite = ~bits;
    uint32_t with = c->absent ? 0 : in_mask(warp, c);
    (void)block;
    if (type_rows[type].kind == TYPE_PACKED)
        opposite = compare_floats(warp, inst, type, a, b, 16, mask);
    put_mask(warp, &inst->ops[0], combine(inst, bits, with), mask);
    if (!inst->ops[1].sink) put_mask(warp, &inst->ops[1], combine(inst, opposite, with), mask);
    return STEP_NEXT;
}

static Step run_set(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Type to = inst_type(inst);
    const Operand *c = &inst->ops[3];
    uint32_t bits =
        compare_lanes(warp, inst, (Type)inst->mods.types[1], &inst->ops[1], &inst->ops[2], mask);
    uint64_t yes = to == T_F32 ? 0x3f800000u : UINT64_MAX;
    (void)block;
    bits = combine(inst, bits, c->absent ? 0 : in_mask(warp, c));
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t i = first_lane(left);
        put_lane(warp, &inst->ops[0], i, bits >> i & 1 ? yes : 0);
    }
    return STEP_NEXT;
}

Run pick_compare(const Inst *inst) {
    bool set = inst->opcode == OP_SET;
    Type type = (Type)inst->mods.types[set ? 1 : 0], to = inst_type(inst);
    bool combined = inst->mods.reduce == REDUCE_AND || inst->mods.reduce == REDUCE_OR ||
                    inst->mods.reduce == REDUCE_XOR;
    bool third = !inst->ops[inst->op_count - 1].absent;
    if (combined != third || (inst->mods.reduce && !combined) ||
        inst->mods.compare == COMPARE_NONE || type_rows[type].bytes < 2 || type == T_TF32 ||
        type == T_E4M3X2 || type == T_E5M2X2)
        return NULL;
    if (!type_is_float(type) && inst->mods.compare >= COMPARE_EQU) return NULL;
    if (type_is_float(type) && inst->mods.compare >= COMPARE_LO && inst->mods.compare <= COMPARE_HS)
        return NULL;
    if (set && ((to != T_F32 && to != T_U32 && to != T_S32) || type_rows[type].kind == TYPE_PACKED))
        return NULL;
    return set ? run_set : run_setp;
}

/* ---- selection ------------------------------------------------------------------------------- */

static Step run_selp(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint32_t chosen = in_mask(warp, &inst->ops[3]);
    (void)block;
    if (inst->ops[0].width == 8) {
        const uint64_t *a = in64(warp, &inst->ops[1]), *b = in64(warp, &inst->ops[2]);
        uint64_t out[LANES];
        for (int i = 0; i < LANES; i++) out[i] = chosen >> i & 1 ? a[i] : b[i];
        put64(warp, &inst->ops[0], out, mask);
    } else {
        const uint32_t *a = in32(warp, &inst->ops[1]), *b = in32(warp, &inst->ops[2]);
        uint32_t out[LANES];
        for (int i = 0; i < LANES; i++) out[i] = chosen >> i & 1 ? a[i] : b[i];
        put32(warp, &inst->ops[0], out, mask);
    }
    return STEP_NEXT;
}

/* slct d, a, b, c: a where c >= 0, else b; a NaN c gives b */
static Step run_slct(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    bool by_float = inst->mods.types[1] == T_F32;
    (void)block;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t i = first_lane(left), c = in32(warp, &inst->ops[3])[i];
        bool first =
            by_float ? widen(T_F32, c, (inst->mods.flags & FLAG_FTZ) != 0) >= 0 : (int32_t)c >= 0;
        put_lane(warp, &inst->ops[0], i, in_lane(warp, &inst->ops[first ? 1 : 2], i));
    }
    return STEP_NEXT;
}

Run pick_select(const Inst *inst) {
    Type type = inst_type(inst);
    if (type_rows[type].bytes < 2 || type_rows[type].kind == TYPE_PACKED) return NULL;
    if (inst->opcode == OP_SELP) return run_selp;
    return inst->mods.types[1] == T_S32 || inst->mods.types[1] == T_F32 ? run_slct : NULL;
}
