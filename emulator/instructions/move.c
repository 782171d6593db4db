/* mov (plain, packing, unpacking), addresses between spaces, clocks, and createpolicy, which
 * does nothing. */
#include "emulator/machine.h"

static Step run_mov32(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)block;
    put32(warp, &inst->ops[0], in32(warp, &inst->ops[1]), mask);
    return STEP_NEXT;
}
static Step run_mov64(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)block;
    put64(warp, &inst->ops[0], in64(warp, &inst->ops[1]), mask);
    return STEP_NEXT;
}
static Step run_mov_predicate(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)block;
    put_mask(warp, &inst->ops[0], in_mask(warp, &inst->ops[1]), mask);
    return STEP_NEXT;
}
static Step run_pack(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint32_t bits = 8u * type_rows[inst_type(inst)].bytes / inst->vector;
    (void)block;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        uint64_t out = 0;
        for (uint32_t i = 0; i < inst->vector; i++)
            out |= in_lane(warp, &inst->ops[1 + i], lane) << (i * bits);
        put_lane(warp, &inst->ops[0], lane, out);
    }
    return STEP_NEXT;
}
static Step run_unpack(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint32_t bits = 8u * type_rows[inst_type(inst)].bytes / inst->vector;
    const Operand *from = &inst->ops[inst->vector];
    (void)block;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        uint64_t value = in_lane(warp, from, lane), part = (UINT64_C(1) << bits) - 1;
        for (uint32_t i = 0; i < inst->vector; i++)
            if (!inst->ops[i].sink) put_lane(warp, &inst->ops[i], lane, value >> (i * bits) & part);
    }
    return STEP_NEXT;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static uint64_t window_of(Space space) {
    switch (space) {
    case SPACE_SHARED: return WINDOW_SHARED;
    case SPACE_LOCAL: return WINDOW_LOCAL;
    case SPACE_PARAM: return WINDOW_PARAM;
    case SPACE_GENERIC:
    case SPACE_GLOBAL:
    case SPACE_CONST: break;
    }
    return 0;
}

/* cvta.shared: into the window of generic addresses; cvta.to.shared: out of it */
static Step run_cvta(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint64_t window = window_of((Space)inst->mods.spaces[0]);
    (void)block;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        uint64_t address = in_lane(warp, &inst->ops[1], lane);
        put_lane(warp, &inst->ops[0], lane,
                 inst->mods.flags & FLAG_TO ? address - window : address + window);
    }
    return STEP_NEXT;
}

static Step run_isspacep(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Space space = (Space)inst->mods.spaces[0];
    uint64_t window = window_of(space);
    uint32_t out = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        uint64_t address = in64(warp, &inst->ops[2])[lane];
        bool inside = space == SPACE_CONST ? is_constant_address(address)
                      : space == SPACE_GLOBAL
                          ? address < WINDOW_SHARED && !is_constant_address(address)
                          : address - window < WINDOW_BYTES;
        if (inside && space == SPACE_SHARED && !inst->mods.cluster)
            inside = cluster_owns(block, address - window);
        out |= (uint32_t)inside << lane;
    }
    put_mask(warp, &inst->ops[0], out, mask);
    return STEP_NEXT;
}

/* ---- clocks and policies --------------------------------------------------------------------- */

/* Reading the clock does not advance it, see schedule.c. */
static Step run_clock(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint64_t value = 0;
    switch ((ClockKind)inst->mods.choice) {
    case CLOCK_LOW:
    case CLOCK_CYCLES: value = block->clock * 2; break;
    case CLOCK_HIGH: value = block->clock * 2 >> 32; break;
    case CLOCK_NS:
    case CLOCK_NS_LOW: value = block->clock; break;
    case CLOCK_NS_HIGH: value = block->clock >> 32; break;
    }
    warp->split->suspect = warp->split->reads_clock = true;
    for (uint32_t left = mask; left; left &= left - 1)
        put_lane(warp, &inst->ops[0], first_lane(left), value);
    return STEP_NEXT;
}

static Step run_policy(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)block;
    for (uint32_t left = mask; left; left &= left - 1)
        put_lane(warp, &inst->ops[0], first_lane(left), 0);
    return STEP_NEXT;
}

Run pick_move(const Inst *inst) {
    Type type = inst_type(inst);
    switch (inst->opcode) {
    case OP_MOV:
        if (inst->mods.choice == MOVE_PACK) return run_pack;
        if (inst->mods.choice == MOVE_UNPACK) return run_unpack;
        return type == T_PRED               ? run_mov_predicate
               : type_rows[type].bytes == 8 ? run_mov64
               : type_rows[type].bytes >= 2 ? run_mov32
                                            : NULL;
    case OP_CVTA:
        return inst->mods.space_count == 1 && (type == T_U64 || type == T_U32) ? run_cvta : NULL;
    case OP_ISSPACEP: return inst->mods.space_count == 1 ? run_isspacep : NULL;
    case OP_CLOCK: return run_clock;
    case OP_CREATEPOLICY:
    case OP_CREATEPOLICY_RANGE: return type == T_B64 ? run_policy : NULL;
    default: return NULL;
    }
}
