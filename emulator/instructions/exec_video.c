/* SIMD video instructions, vadd2 .. vabsdiff4 (PTX ISA 9.7.17), and products of packed integers,
 * dp2a and dp4a. */
#include "emulator/machine.h"

/* Element i of a word that has `count` of them */
static int32_t element(Type type, uint32_t word, uint32_t i, uint32_t count) {
    uint32_t bits = 32 / count, part = word >> i * bits;
    return type_is_signed(type) ? (int32_t)(part << (32 - bits)) >> (32 - bits)
                                : (int32_t)(part & ((1u << bits) - 1));
}

static int32_t operate(uint32_t opcode, int32_t a, int32_t b) {
    switch (opcode) {
    case OP_VADD2:
    case OP_VADD4: return a + b;
    case OP_VSUB2:
    case OP_VSUB4: return a - b;
    case OP_VAVRG2:
    case OP_VAVRG4: return (a + b + (a + b >= 0)) >> 1;
    case OP_VABSDIFF2:
    case OP_VABSDIFF4: return a > b ? a - b : b - a;
    case OP_VMIN2:
    case OP_VMIN4: return a < b ? a : b;
    default: return a > b ? a : b;
    }
}

static uint32_t elements_of(uint32_t opcode) {
    const char *spelling = opcode_spellings[opcode];
    return spelling[strlen(spelling) - 1] == '2' ? 2 : 4;
}

/* vop.dtype.atype.btype{.sat} d, a, b, c: every element of d; with .add, d = c + their sum */
static Step run_video(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Type to = (Type)inst->mods.types[0], a = (Type)inst->mods.types[1],
         b = (Type)inst->mods.types[2];
    uint32_t count = elements_of(inst->opcode), bits = 32 / count;
    int32_t most = type_is_signed(to) ? (1 << (bits - 1)) - 1 : (1 << bits) - 1,
            least = type_is_signed(to) ? -most - 1 : 0;
    (void)block;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left), packed = 0, x = in32(warp, &inst->ops[1])[lane],
                 y = in32(warp, &inst->ops[2])[lane], sum = in32(warp, &inst->ops[3])[lane];
        for (uint32_t i = 0; i < count; i++) {
            int32_t value = operate(inst->opcode, element(a, x, i, count), element(b, y, i, count));
            if (inst->mods.flags & FLAG_SAT)
                value = value > most ? most : value < least ? least : value;
            packed |= ((uint32_t)value & ((1u << bits) - 1)) << i * bits;
            sum += (uint32_t)element(to, (uint32_t)value, 0, count);
        }
        put_lane(warp, &inst->ops[0], lane, inst->mods.reduce == REDUCE_ADD ? sum : packed);
    }
    return STEP_NEXT;
}

/* dp4a d, a, b, c: c plus four products of bytes; dp2a: the halves of a by two bytes of b */
static Step run_dot(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Type a = (Type)inst->mods.types[0], b = (Type)inst->mods.types[1];
    uint32_t count = inst->opcode == OP_DP4A ? 4 : 2,
             first = inst->mods.compare == COMPARE_HI ? 2 : 0;
    (void)block;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left), x = in32(warp, &inst->ops[1])[lane],
                 y = in32(warp, &inst->ops[2])[lane], sum = in32(warp, &inst->ops[3])[lane];
        for (uint32_t i = 0; i < count; i++)
            sum += (uint32_t)(element(a, x, i, count) * element(b, y, first + i, 4));
        put_lane(warp, &inst->ops[0], lane, sum);
    }
    return STEP_NEXT;
}

static bool is_word(uint32_t type) { return type == T_U32 || type == T_S32; }

Run pick_video(const Inst *inst) {
    const Mods *mods = &inst->mods;
    if (inst->opcode == OP_DP4A || inst->opcode == OP_DP2A) {
        bool half = mods->compare == COMPARE_LO || mods->compare == COMPARE_HI;
        return is_word(mods->types[0]) && is_word(mods->types[1]) && mods->type_count == 2 &&
                       half == (inst->opcode == OP_DP2A)
                   ? run_dot
                   : NULL;
    }
    bool adds = mods->reduce == REDUCE_ADD, saturates = mods->flags == FLAG_SAT;
    if (mods->type_count != 3 || (mods->flags && !saturates) || (adds && saturates) ||
        (mods->reduce && !adds))
        return NULL;
    return is_word(mods->types[0]) && is_word(mods->types[1]) && is_word(mods->types[2]) ? run_video
                                                                                         : NULL;
}
