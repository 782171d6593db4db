/* Instructions for which the lanes of a warp must converge: bar.warp.sync, shfl, vote, match,
 * elect, redux, activemask.
 *
 * Lanes diverge after a branch, so each lane waits (schedule_lanes) until all lanes of its
 * member mask that have not exited are at the same instruction. */
#include "emulator/order/order.h"

static uint32_t member_mask(const Warp *warp, const Operand *op, uint32_t mask) {
    return (uint32_t)in_lane(warp, op, first_lane(mask));
}

/* Those of the lanes `mask` that have this member mask */
static uint32_t lanes_with(const Warp *warp, const Operand *op, uint32_t mask, uint32_t members) {
    uint32_t lanes = 0;
    if (op->bank != BANK_REGISTERS) return member_mask(warp, op, mask) == members ? mask : 0;
    for (uint32_t left = mask; left; left &= left - 1)
        if ((uint32_t)in_lane(warp, op, first_lane(left)) == members) lanes |= left & -left;
    return lanes;
}

/* A lane that is not a member itself is a finding. */
static bool are_members(Block *block, Warp *warp, uint32_t mask, uint32_t members) {
    if (!(mask & ~members)) return true;
    uint32_t lane = first_lane(mask & ~members);
    fault(block, P0732, agent_of(block, warp, lane),
          "lane %u executes this with member mask 0x%08x, which excludes it", lane, members);
    return false;
}

/* Lanes may have different member masks, such as tiles of a warp: those of each mask execute the
 * instruction together, when all members have reached it. */
static Step run_members(Block *block, Warp *warp, const Inst *inst, uint32_t mask, uint32_t operand,
                        Run body) {
    const Operand *op = &inst->ops[operand];
    uint32_t done = 0, missing = 0;
    for (uint32_t left = mask; left;) {
        uint32_t members = member_mask(warp, op, left), lanes = lanes_with(warp, op, left, members);
        left &= ~lanes;
        if (!are_members(block, warp, lanes, members)) return STEP_FAULT;
        missing |= members & warp->live & ~lanes;
        if (members & warp->live & ~lanes) continue;
        order_meet(warp, lanes);
        Step step = body(block, warp, inst, lanes);
        if (step != STEP_NEXT) return step;
        done |= lanes;
    }
    if (done == mask) return STEP_NEXT;
    for (uint32_t i = 0; i < inst->def_count; i++) warp->valid[inst->defs[i]] |= done;
    if (done) schedule_pass(warp, warp->split, done);
    return schedule_lanes(block, warp, 0, missing);
}

/* Lanes of other splits that wait at a bar.warp.sync with this member mask */
static uint32_t waiting_with(const Block *block, const Warp *warp, const Split *split,
                             uint32_t members) {
    const Inst *inst = &block->program->code[split->pc];
    if (split == warp->split || split->wait != WAIT_LANES || inst->opcode != OP_BAR_WARP) return 0;
    return lanes_with(warp, &inst->ops[0], split->mask, members);
}

/* Lanes of this split arrive. True: all members have, and those of other splits go on. */
static bool arrive(const Block *block, Warp *warp, uint32_t lanes, uint32_t members) {
    uint32_t arrived = lanes, count = warp->split_count;
    for (uint32_t i = 0; i < count; i++)
        arrived |= waiting_with(block, warp, &warp->splits[i], members);
    if ((members & warp->live) & ~arrived) return false;
    order_meet_barrier(warp, arrived);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t others = waiting_with(block, warp, &warp->splits[i], members);
        if (others) schedule_pass(warp, &warp->splits[i], others);
    }
    return true;
}

/* bar.warp.sync may synchronise lanes at different instructions with the same mask (PTX ISA
 * 9.7.13.2) */
static Step run_bar_warp(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint32_t done = 0, wanted = 0;
    for (uint32_t left = mask; left;) {
        uint32_t members = member_mask(warp, &inst->ops[0], left),
                 lanes = lanes_with(warp, &inst->ops[0], left, members);
        left &= ~lanes;
        if (!are_members(block, warp, lanes, members)) return STEP_FAULT;
        if (arrive(block, warp, lanes, members))
            done |= lanes;
        else
            wanted |= members;
    }
    if (done == mask) return STEP_NEXT;
    if (done) schedule_pass(warp, warp->split, done);
    warp->split->wait_mask = wanted;
    return schedule_wait(warp, WAIT_LANES, warp->live);
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
static Step shuffle(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
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
static Step vote(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)block;
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
static Step match(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)block;
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
static Step elect(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)block;
    uint32_t leader = first_lane(mask);
    if (!inst->ops[0].sink)
        for (uint32_t left = mask; left; left &= left - 1)
            put_lane(warp, &inst->ops[0], first_lane(left), leader);
    if (!inst->ops[1].sink) put_mask(warp, &inst->ops[1], 1u << leader, mask);
    return STEP_NEXT;
}

/* ops: d, a, membermask */
static Step redux(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)block;
    const uint32_t *a = in32(warp, &inst->ops[1]);
    uint32_t sum = a[first_lane(mask)];
    for (uint32_t left = mask & (mask - 1); left; left &= left - 1)
        memory_reduce((Reduce)inst->mods.reduce, inst_type(inst), (unsigned char *)&sum,
                      a[first_lane(left)], 0);
    for (uint32_t left = mask; left; left &= left - 1)
        put_lane(warp, &inst->ops[0], first_lane(left), sum);
    return STEP_NEXT;
}

static Step run_shuffle(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    return run_members(block, warp, inst, mask, 5, shuffle);
}

static Step run_vote(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    return run_members(block, warp, inst, mask, 2, vote);
}

static Step run_match(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    return run_members(block, warp, inst, mask, 3, match);
}

static Step run_elect(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    return run_members(block, warp, inst, mask, 2, elect);
}

static Step run_redux(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    return run_members(block, warp, inst, mask, 2, redux);
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
