/* Instructions for which the lanes of a warp must converge: bar.warp.sync, shfl, vote, match,
 * elect, redux, activemask.
 *
 * Lanes diverge after a branch, so each lane waits (schedule_lanes) until all lanes of its
 * member mask that have not exited are at the same instruction. */
#include "order.h"

static uint32_t member_mask(const Warp *warp, const Operand *op, uint32_t mask) {
    return (uint32_t)in_lane(warp, op, first_lane(mask));
}

/* Waits for the members; a lane that is not a member itself is a finding. */
static Step meet(Block *block, Warp *warp, uint32_t mask, uint32_t members) {
    if (mask & ~members) {
        uint32_t lane = first_lane(mask & ~members);
        return fault(block, P0732, agent_of(block, warp, lane),
                     "lane %u executes this with member mask 0x%08x, which excludes it", lane,
                     members);
    }
    Step step = schedule_lanes(block, warp, mask, members & warp->live);
    if (step == STEP_NEXT) order_meet(warp, mask);
    return step;
}

/* bar.warp.sync may synchronise lanes at different instructions with the same mask (PTX ISA
 * 9.7.13.2) */
static Step run_bar_warp(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint32_t members = member_mask(warp, &inst->ops[0], mask), arrived = mask;
    if (mask & ~members) return meet(block, warp, mask, members);
    for (uint32_t i = 0; i < warp->split_count; i++) {
        const Split *split = &warp->splits[i];
        if (split != warp->split && split->wait == WAIT_LANES &&
            block->program->code[split->pc].opcode == OP_BAR_WARP && split->wait_mask == members)
            arrived |= split->mask;
    }
    if ((members & warp->live) & ~arrived) {
        warp->split->wait_mask = members;
        return schedule_wait(warp, WAIT_LANES, warp->live);
    }
    order_meet(warp, arrived);
    for (uint32_t i = 0; i < warp->split_count; i++) {
        Split *split = &warp->splits[i];
        if (split != warp->split && split->wait == WAIT_LANES &&
            block->program->code[split->pc].opcode == OP_BAR_WARP && split->wait_mask == members) {
            split->wait = WAIT_NONE;
            split->pc++;
        }
    }
    return STEP_NEXT;
}

/* PTX ISA 9.7.9.6: c holds the segment and the clamp */
static bool shuffle_source(uint32_t choice, uint32_t lane, uint32_t b, uint32_t c,
                           uint32_t *source) {
    uint32_t segment = c >> 8 & 31, clamp = c & 31, highest = (lane & segment) | (clamp & ~segment),
             lowest = lane & segment;
    b &= 31;
    switch (choice) {
    case SHUFFLE_UP: *source = lane - b; return (int32_t)(lane - b) >= (int32_t)highest;
    case SHUFFLE_DOWN: *source = lane + b; return lane + b <= highest;
    case SHUFFLE_BFLY: *source = lane ^ b; return (lane ^ b) <= highest;
    default: *source = lowest | (b & ~segment); return *source <= highest;
    }
}

/* ops: d, p, a, b, c, membermask */
static Step run_shuffle(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint32_t members = member_mask(warp, &inst->ops[5], mask);
    Step step = meet(block, warp, mask, members);
    if (step != STEP_NEXT) return step;
    const uint32_t *a = in32(warp, &inst->ops[2]), *b = in32(warp, &inst->ops[3]),
                   *c = in32(warp, &inst->ops[4]);
    uint32_t out[LANES] = {0}, inside = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left), source = lane;
        bool in_range = shuffle_source(inst->mods.choice, lane, b[lane], c[lane], &source);
        if (!in_range) source = lane;
        if (!(mask >> source & 1))
            return fault(block, P0713, agent_of(block, warp, lane),
                         "lane %u takes the value of lane %u, which does not participate", lane,
                         source);
        out[lane] = a[source];
        inside |= (uint32_t)in_range << lane;
    }
    put32(warp, &inst->ops[0], out, mask);
    if (!inst->ops[1].sink) put_mask(warp, &inst->ops[1], inside, mask);
    return STEP_NEXT;
}

/* ops: d, p, membermask */
static Step run_vote(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Step step = meet(block, warp, mask, member_mask(warp, &inst->ops[2], mask));
    if (step != STEP_NEXT) return step;
    uint32_t votes = in_mask(warp, &inst->ops[1]) & mask;
    uint32_t out[LANES];
    switch (inst->mods.choice) {
    case VOTE_BALLOT:
        for (int i = 0; i < LANES; i++) out[i] = votes;
        put32(warp, &inst->ops[0], out, mask);
        break;
    case VOTE_ALL: put_mask(warp, &inst->ops[0], votes == mask ? ALL_LANES : 0, mask); break;
    case VOTE_ANY: put_mask(warp, &inst->ops[0], votes ? ALL_LANES : 0, mask); break;
    default: put_mask(warp, &inst->ops[0], votes == mask || !votes ? ALL_LANES : 0, mask); break;
    }
    return STEP_NEXT;
}

/* ops: d, p, a, membermask */
static Step run_match(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Step step = meet(block, warp, mask, member_mask(warp, &inst->ops[3], mask));
    if (step != STEP_NEXT) return step;
    uint32_t all = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left), equal = 0;
        for (uint32_t other = mask; other; other &= other - 1) {
            uint32_t i = first_lane(other);
            equal |=
                (uint32_t)(in_lane(warp, &inst->ops[2], i) == in_lane(warp, &inst->ops[2], lane))
                << i;
        }
        all |= (uint32_t)(equal == mask) << lane;
        if (inst->opcode == OP_MATCH_ALL) equal = equal == mask ? mask : 0;
        put_lane(warp, &inst->ops[0], lane, equal);
    }
    if (!inst->ops[1].sink) put_mask(warp, &inst->ops[1], all, mask);
    return STEP_NEXT;
}

static Step run_activemask(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)block;
    for (uint32_t left = mask; left; left &= left - 1)
        put_lane(warp, &inst->ops[0], first_lane(left), mask);
    return STEP_NEXT;
}

/* ops: d, p, membermask; the lowest lane is elected */
static Step run_elect(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Step step = meet(block, warp, mask, member_mask(warp, &inst->ops[2], mask));
    if (step != STEP_NEXT) return step;
    uint32_t leader = first_lane(mask);
    if (!inst->ops[0].sink)
        for (uint32_t left = mask; left; left &= left - 1)
            put_lane(warp, &inst->ops[0], first_lane(left), leader);
    if (!inst->ops[1].sink) put_mask(warp, &inst->ops[1], 1u << leader, mask);
    return STEP_NEXT;
}

/* ops: d, a, membermask */
static Step run_redux(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Step step = meet(block, warp, mask, member_mask(warp, &inst->ops[2], mask));
    if (step != STEP_NEXT) return step;
    const uint32_t *a = in32(warp, &inst->ops[1]);
    uint32_t sum = a[first_lane(mask)];
    for (uint32_t left = mask & (mask - 1); left; left &= left - 1)
        memory_reduce((Reduce)inst->mods.reduce, inst_type(inst), (unsigned char *)&sum,
                      a[first_lane(left)], 0);
    for (uint32_t left = mask; left; left &= left - 1)
        put_lane(warp, &inst->ops[0], first_lane(left), sum);
    return STEP_NEXT;
}

Run pick_warp(const Inst *inst) {
    Type type = inst_type(inst);
    bool bits = inst->mods.reduce == REDUCE_AND || inst->mods.reduce == REDUCE_OR ||
                inst->mods.reduce == REDUCE_XOR;
    bool numbers = inst->mods.reduce == REDUCE_ADD || inst->mods.reduce == REDUCE_MIN ||
                   inst->mods.reduce == REDUCE_MAX;
    switch (inst->opcode) {
    case OP_BAR_WARP: return run_bar_warp;
    case OP_SHFL: return inst->mods.choice && type_rows[type].bytes == 4 ? run_shuffle : NULL;
    case OP_VOTE:
        return inst->mods.choice && (type == T_PRED) == (inst->mods.choice != VOTE_BALLOT) &&
                       (type == T_PRED || type == T_B32)
                   ? run_vote
                   : NULL;
    case OP_MATCH_ANY:
    case OP_MATCH_ALL: return type == T_B32 || type == T_B64 ? run_match : NULL;
    case OP_ACTIVEMASK: return run_activemask;
    case OP_ELECT: return run_elect;
    case OP_REDUX:
        return (bits && type == T_B32) || (numbers && (type == T_U32 || type == T_S32)) ? run_redux
                                                                                        : NULL;
    default: return NULL;
    }
}
