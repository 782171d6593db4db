/* Arithmetic with the condition code: add.cc, addc, sub.cc, subc, mad.cc, madc (PTX ISA 9.7.2). The
 * code, CC.CF, is one bit for each lane: the carry out of the adder. A subtraction adds the
 * complement, a + ~b + 1, so after it the bit says "no borrow", and `addc` reads it as such. (The
 * ISA says "borrow-out"; an H200 gives 1 after 5 - 3 and 7 - 7, and 0 after 3 - 5. nvcc relies on
 * it: it reads the bit of `sub.cc` by `addc` in 128-bit divisions.) */
#include "emulator/machine.h"

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 WideUnsigned;

/* The term that is added: b, or for mad the lower or upper half of a * b */
static uint64_t term_of(const Warp *warp, const Inst *inst, uint32_t lane) {
    uint64_t a = in_lane(warp, &inst->ops[1], lane), b = in_lane(warp, &inst->ops[2], lane);
    uint32_t bits = 8u * type_rows[inst_type(inst)].bytes;
    if (inst->opcode != OP_MAD && inst->opcode != OP_MADC) return b;
    WideUnsigned product = (WideUnsigned)a * b;
    if (type_is_signed(inst_type(inst)))
        product = bits == 64 ? (WideUnsigned)((Wide)(int64_t)a * (int64_t)b)
                             : (WideUnsigned)((Wide)(int32_t)a * (int32_t)b);
    if (inst->mods.compare == COMPARE_HI) product >>= bits;
    return bits == 64 ? (uint64_t)product : (uint32_t)product;
}

static Step run_carry(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    bool subtracts = inst->opcode == OP_SUB || inst->opcode == OP_SUBC;
    bool multiplies = inst->opcode == OP_MAD || inst->opcode == OP_MADC;
    bool with_carry = inst->opcode == OP_ADDC || inst->opcode == OP_SUBC || inst->opcode == OP_MADC;
    uint32_t bits = 8u * type_rows[inst_type(inst)].bytes;
    (void)block;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left),
                 carry = with_carry ? warp->carry >> lane & 1 : (uint32_t)subtracts;
        uint64_t a = in_lane(warp, &inst->ops[multiplies ? 3 : 1], lane),
                 b = term_of(warp, inst, lane);
        if (subtracts) b = bits == 64 ? ~b : (uint32_t)~b;
        WideUnsigned sum = (WideUnsigned)a + b + carry;
        put_lane(warp, &inst->ops[0], lane, (uint64_t)sum);
        if (inst->mods.flags & FLAG_CC)
            warp->carry = (warp->carry & ~(1u << lane)) | (uint32_t)(sum >> bits & 1) << lane;
    }
    return STEP_NEXT;
}

Run pick_carry(const Inst *inst) {
    Type type = inst_type(inst);
    bool multiplies = inst->opcode == OP_MAD || inst->opcode == OP_MADC,
         half = inst->mods.compare == COMPARE_LO || inst->mods.compare == COMPARE_HI;
    if ((inst->mods.flags & ~(uint32_t)FLAG_CC) || inst->mods.round || multiplies != half)
        return NULL;
    return type == T_U32 || type == T_S32 || type == T_U64 || type == T_S64 ? run_carry : NULL;
}
