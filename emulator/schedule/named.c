/* bar and barrier: the sixteen named barriers of a block; setmaxnreg and its register pool.
 *
 * A warp has arrived at a barrier when all its lanes that have not exited have arrived; it then
 * counts as 32 threads. The .aligned forms (bar.* and barrier.*.aligned) need all lanes at the
 * same instruction. */
#include "emulator/order/lifecycle.h"
#include "emulator/order/order.h"
#include "emulator/order/steps.h"

static void release(Block *block, uint32_t id) {
    NamedBarrier *barrier = &block->named[id];
    barrier->last_warps = barrier->warps;
    memcpy(barrier->uses[1], barrier->uses[0], sizeof barrier->uses[1]);
    memset(barrier->uses[0], 0, sizeof barrier->uses[0]);
    memset(barrier->lanes, 0, sizeof barrier->lanes);
    barrier->expected = barrier->arrived = barrier->warps = 0;
    barrier->whole_block = false;
    for (uint32_t w = 0; w < block->warp_count; w++)
        for (uint32_t s = 0; s < block->warps[w].split_count; s++) {
            Split *split = &block->warps[w].splits[s];
            if (split->wait == WAIT_NAMED && split->wait_address == id) {
                order_named_wait(&block->warps[w], split->mask, id);
                steps_take(&block->warps[w], block->named_steps[id]);
                split->wait = WAIT_NONE;
                split->pc++;
            }
        }
    order_named_reset(block, id);
    steps_clear(block->cluster, block->named_steps[id]);
    block->cluster->effects++;
}

static bool is_full(const Block *block, const NamedBarrier *barrier) {
    uint32_t expected = barrier->whole_block ? block->running * LANES : barrier->expected;
    return barrier->arrived > 0 && barrier->arrived >= expected;
}

/* Counts the warp as arrived once all its live lanes have arrived. */
static void count_warp(Warp *warp, NamedBarrier *barrier) {
    uint32_t *lanes = &barrier->lanes[warp->index];
    if (*lanes && !(warp->live & ~*lanes)) {
        *lanes = 0;
        barrier->arrived += LANES;
        barrier->warps |= 1u << warp->index;
    }
}

void named_recheck(Block *block) {
    for (uint32_t id = 0; id < NAMED_BARRIERS; id++) {
        NamedBarrier *barrier = &block->named[id];
        if (!barrier->expected && !barrier->whole_block) continue;
        for (uint32_t w = 0; w < block->warp_count; w++)
            if (block->warps[w].live) count_warp(&block->warps[w], barrier);
        if (is_full(block, barrier)) release(block, id);
    }
}

static bool check_count(Block *block, Agent agent, const NamedBarrier *barrier, uint32_t id,
                        uint32_t count, bool whole_block) {
    if (id >= NAMED_BARRIERS)
        return finding(block, P0731, agent, "named barrier %u: the barriers are 0 to 15", id);
    if (!whole_block && (count == 0 || count % LANES || count > block->warp_count * LANES))
        return finding(block, P0731, agent,
                       "named barrier %u with a count of %u threads: the count must be a multiple "
                       "of 32 up to %u, the threads of the block",
                       id, count, block->warp_count * LANES);
    bool begun = barrier->expected || barrier->whole_block;
    if (begun &&
        (barrier->whole_block != whole_block || (!whole_block && barrier->expected != count)))
        return finding(
            block, P0731, agent,
            "named barrier %u is entered with count %u, but warp %u entered it with count %u", id,
            whole_block ? block->warp_count * LANES : count, barrier->first.warp->index,
            barrier->whole_block ? block->warp_count * LANES : barrier->expected);
    return true;
}

static bool is_aligned(const Inst *inst) {
    bool bar = inst->opcode == OP_BAR_SYNC || inst->opcode == OP_BAR_CTA_SYNC ||
               inst->opcode == OP_BAR_ARRIVE || inst->opcode == OP_BAR_CTA_ARRIVE;
    return bar || (inst->mods.flags & FLAG_ALIGNED);
}

/* ops: id, (count) */
static Step run_named(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    bool waits = inst->opcode == OP_BAR_SYNC || inst->opcode == OP_BAR_CTA_SYNC ||
                 inst->opcode == OP_BARRIER_SYNC || inst->opcode == OP_BARRIER_CTA_SYNC;
    if (is_aligned(inst)) {
        Step step = schedule_lanes(block, warp, mask, warp->live);
        if (step != STEP_NEXT) return step;
    }
    uint32_t lane = first_lane(mask), id = in32(warp, &inst->ops[0])[lane];
    bool whole_block = inst->ops[1].absent;
    uint32_t count = whole_block ? 0 : in32(warp, &inst->ops[1])[lane];
    Agent agent = agent_of(block, warp, lane);
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t i = first_lane(left);
        if (in32(warp, &inst->ops[0])[i] != id ||
            (!whole_block && in32(warp, &inst->ops[1])[i] != count))
            return fault(block, P0731, agent_of(block, warp, i),
                         "lanes %u and %u enter different named barriers, or with different counts",
                         lane, i);
    }
    NamedBarrier *barrier = &block->named[id < NAMED_BARRIERS ? id : 0];
    if (!check_count(block, agent, barrier, id, count, whole_block)) return STEP_FAULT;
    if (!barrier->expected && !barrier->whole_block) {
        barrier->expected = count;
        barrier->whole_block = whole_block;
        barrier->first = agent;
    }
    if (!lifecycle_enters(block, agent, barrier, id)) return STEP_FAULT;
    lifecycle_entered(warp, mask, barrier, id);
    barrier->lanes[warp->index] |= mask;
    order_named_arrive(warp, mask, id);
    effect(block, warp);
    count_warp(warp, barrier);
    if (!whole_block && barrier->arrived > count)
        return fault(block, P0731, agent,
                     "named barrier %u is entered by %u threads, but its count is %u", id,
                     barrier->arrived, count);
    bool full = is_full(block, barrier);
    /* this split never slept: it continues without being woken */
    if (full && waits) {
        order_named_wait(warp, mask, id);
        steps_take(warp, block->named_steps[id]);
    }
    if (full) release(block, id);
    if (full || !waits) return STEP_NEXT;
    warp->split->wait_address = id;
    return schedule_wait(warp, WAIT_NAMED, 0);
}

/* ---- setmaxnreg ------------------------------------------------------------------------------ */

/* All warps of a warpgroup must use the same value; registers are taken from and returned to the
 * block's pool. */
static bool check_group(Block *block, Agent agent, uint32_t value) {
    Warp *warp = agent.warp;
    uint32_t n = warp->register_changes, first = warp->index & ~3u;
    for (uint32_t w = first; w < first + 4 && w < block->warp_count; w++) {
        const Warp *other = &block->warps[w];
        if (other != warp && n < COUNT_OF(other->register_history) && other->register_changes > n &&
            other->register_history[n] != value)
            return finding(
                block, P0733, agent,
                "setmaxnreg %u, but warp %u of the same warpgroup executed setmaxnreg %u", value, w,
                other->register_history[n]);
        if (other != warp && !other->live && other->register_changes <= n)
            return finding(block, P0733, agent,
                           "setmaxnreg %u, but warp %u of the same warpgroup exited without it",
                           value, w);
    }
    return true;
}

/* Without .maxnreg and .minnctapersm, ptxas honours setmaxnreg only if the kernel needs all
 * registers that its thread count leaves; otherwise it warns (C7508) and ignores it. */
static bool is_honoured(Block *block, Agent agent) {
    const Program *program = block->program;
    if (agent.warp->registers == 0)
        return finding(block, P0733, agent,
                       "ptxas ignores setmaxnreg: the kernel needs .maxnreg, or .minnctapersm "
                       "together with .reqntid");
    return program->most_registers || program->least_blocks ||
           finding(block, P0735, agent,
                   "ptxas ignores setmaxnreg if the kernel needs fewer than %u registers: write "
                   ".minnctapersm 1 too",
                   agent.warp->registers);
}

static Step run_setmaxnreg(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Step step = schedule_lanes(block, warp, mask, warp->live);
    if (step != STEP_NEXT) return step;
    uint32_t value = in32(warp, &inst->ops[0])[first_lane(mask)];
    bool grows = inst->mods.reduce == REDUCE_INC;
    Agent agent = agent_of(block, warp, first_lane(mask));
    if (!is_honoured(block, agent)) return STEP_FAULT;
    if (value % 8 || value < 24 || value > 256)
        return fault(block, P0733, agent,
                     "setmaxnreg %u: the count must be a multiple of 8 from 24 to 256", value);
    if (grows ? value < warp->registers : value > warp->registers)
        return fault(block, P0733, agent, "setmaxnreg.%s to %u from %u registers",
                     grows ? "inc" : "dec", value, warp->registers);
    if (!check_group(block, agent, value)) return STEP_FAULT;
    uint32_t difference = (grows ? value - warp->registers : warp->registers - value) * LANES;
    if (grows && difference > block->pool) {
        warp->split->wait_address = value;
        return schedule_wait(warp, WAIT_REGISTERS, block->pool_epoch);
    }
    block->pool = grows ? block->pool - difference : block->pool + difference;
    block->pool_epoch++;
    warp->registers = value;
    if (warp->register_changes < COUNT_OF(warp->register_history))
        warp->register_history[warp->register_changes] = value;
    warp->register_changes++;
    effect(block, warp);
    return STEP_NEXT;
}

Run pick_named(const Inst *inst) {
    if (inst->opcode != OP_SETMAXNREG) return run_named;
    return inst_type(inst) == T_U32 &&
                   (inst->mods.reduce == REDUCE_INC || inst->mods.reduce == REDUCE_DEC)
               ? run_setmaxnreg
               : NULL;
}
