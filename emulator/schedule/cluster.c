/* Clusters: blocks that run together and can access each other's shared memory.
 *
 * Addresses of other blocks come from mapa, which puts the rank into the upper bits; an address
 * without a rank is in the block itself, because the window of shared::cta lies in that of
 * shared::cluster (PTX ISA 4.4.1.9). Also: the barrier of the cluster, and the stores and
 * reductions that complete at an mbarrier. */
#include "emulator/order/order.h"
#include "emulator/order/steps.h"

Block *cluster_block(const Block *block, uint64_t address) {
    const Cluster *cluster = block->cluster;
    uint64_t rank = address >> RANK_SHIFT;
    if (rank == 0) return cluster->blocks[block->rank];
    return rank <= cluster->size ? cluster->blocks[rank - 1] : NULL;
}

bool cluster_owns(const Block *block, uint64_t address) {
    return cluster_block(block, address) == block;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* ops: d, a, rank. Without .shared::cluster both addresses are generic. */
static Step run_mapa(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint64_t window = inst->mods.space_count ? 0 : WINDOW_SHARED;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left), rank = in32(warp, &inst->ops[2])[lane];
        Agent agent = agent_of(block, warp, lane);
        uint64_t address = in_lane(warp, &inst->ops[1], lane) - window;
        if (rank >= block->cluster->size)
            return fault(block, P0734, agent, "mapa to rank %u in a cluster of %u blocks", rank,
                         block->cluster->size);
        if (address >= WINDOW_BYTES)
            return fault(block, P0710, agent,
                         "mapa of 0x%llx, which is not a shared memory address",
                         (unsigned long long)(address + window));
        put_lane(warp, &inst->ops[0], lane,
                 window + ((uint64_t)(rank + 1) << RANK_SHIFT | (address & OFFSET_MASK)));
    }
    return STEP_NEXT;
}

/* ops: d, a */
static Step run_rank_of(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint64_t window = inst->mods.space_count ? 0 : WINDOW_SHARED;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        const Block *home = cluster_block(block, in_lane(warp, &inst->ops[1], lane) - window);
        if (!home)
            return fault(block, P0710, agent_of(block, warp, lane),
                         "getctarank of 0x%llx, which is not a shared memory address",
                         (unsigned long long)in_lane(warp, &inst->ops[1], lane));
        put_lane(warp, &inst->ops[0], lane, home->rank);
    }
    return STEP_NEXT;
}

/* ---- the barrier ----------------------------------------------------------------------------- */

/* A phase completes when every lane of the cluster that has not exited has arrived. */
void cluster_recheck(Cluster *cluster) {
    bool any = false;
    for (uint32_t b = 0; b < cluster->size; b++)
        for (uint32_t w = 0; w < cluster->blocks[b]->warp_count; w++) {
            const Warp *warp = &cluster->blocks[b]->warps[w];
            if (warp->live & ~warp->cluster_arrived) return;
            any |= warp->cluster_arrived != 0;
        }
    if (!any) return;
    for (uint32_t b = 0; b < cluster->size; b++)
        for (uint32_t w = 0; w < cluster->blocks[b]->warp_count; w++)
            cluster->blocks[b]->warps[w].cluster_arrived = 0;
    order_cluster_complete(cluster);
    steps_turn(cluster, &cluster->steps_now, &cluster->steps_done);
    cluster->generation++;
    cluster->effects++;
}

static Step run_barrier(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    bool arrives = inst->opcode == OP_CLUSTER_ARRIVE;
    if (inst->mods.flags & FLAG_ALIGNED) {
        Step step = schedule_lanes(block, warp, mask, warp->live);
        if (step != STEP_NEXT) return step;
    }
    uint32_t wrong = arrives ? mask & warp->cluster_pending : mask & ~warp->cluster_pending;
    if (wrong)
        return fault(block, P0734, agent_of(block, warp, first_lane(wrong)),
                     arrives
                         ? "lane %u arrives at the cluster barrier twice without a wait in between"
                         : "lane %u waits at the cluster barrier without having arrived",
                     first_lane(wrong));
    if (arrives) {
        warp->cluster_arrived |= mask;
        warp->cluster_pending |= mask;
        steps_give(warp, &block->cluster->steps_now);
        order_cluster_arrive(warp, mask, inst->mods.order == ORDER_RELAXED);
        effect(block, warp);
        cluster_recheck(block->cluster);
        return STEP_NEXT;
    }
    if (mask & warp->cluster_arrived)
        return schedule_wait(warp, WAIT_CLUSTER, block->cluster->generation);
    warp->cluster_pending &= ~mask;
    steps_take(warp, block->cluster->steps_done);
    order_cluster_wait(warp, mask, inst->mods.order == ORDER_RELAXED);
    return STEP_NEXT;
}

/* ---- st.async, red.async --------------------------------------------------------------------- */

/* ops: [a], values, [mbarrier]; both addresses are of one block */
static Step run_remote(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint32_t bytes = type_rows[inst_type(inst)].bytes;
    const Operand *values = &inst->ops[1];
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        Agent agent = agent_of(block, warp, lane);
        uint64_t address = barrier_address(warp, inst, &inst->ops[0], lane),
                 barrier = barrier_address(warp, inst, &inst->ops[inst->op_count - 1], lane);
        Block *target = cluster_block(block, address);
        Async *op = async_new(block, warp, ASYNC_REMOTE, lane, 1u << lane);
        op->type = inst_type(inst);
        op->reduce = (Reduce)inst->mods.reduce;
        op->bytes = bytes * inst->vector;
        for (uint32_t i = 0; i < inst->vector; i++) {
            uint64_t value = in_lane(warp, &values[i], lane);
            memcpy(op->value + i * bytes, &value, bytes);
        }
        if (!target || cluster_block(block, barrier) != target)
            return fault(block, P0716, agent,
                         "`%s` to 0x%llx completes at mbarrier 0x%llx of another block",
                         opcode_spellings[inst->opcode], (unsigned long long)address,
                         (unsigned long long)barrier);
        if (address % op->bytes)
            return fault(block, P0711, agent,
                         "`%s` to 0x%llx: the address must be a multiple of %u",
                         opcode_spellings[inst->opcode], (unsigned long long)address, op->bytes);
        op->target = target;
        op->shared = (uint32_t)address & OFFSET_MASK;
        op->barrier = (uint32_t)barrier & OFFSET_MASK;
        if (!barrier_at(target, agent, op->barrier, opcode_spellings[inst->opcode]))
            return STEP_FAULT;
        async_enqueue(block, op);
    }
    return STEP_NEXT;
}

Run pick_remote(const Inst *inst) {
    Type type = inst_type(inst);
    bool shared = inst->mods.space_count == 0 || inst->mods.cluster;
    bool number =
        type_rows[type].bytes >= 4 && type != T_TF32 && type_rows[type].kind != TYPE_PACKED;
    if (!shared || inst->mods.flags != FLAG_COMPLETE_TX || !number) return NULL;
    if (inst->opcode == OP_ST_ASYNC)
        return inst->vector * type_rows[type].bytes <= 16 ? run_remote : NULL;
    switch ((Reduce)inst->mods.reduce) {
    case REDUCE_ADD: return type == T_U32 || type == T_S32 || type == T_U64 ? run_remote : NULL;
    case REDUCE_MIN:
    case REDUCE_MAX: return type == T_U32 || type == T_S32 ? run_remote : NULL;
    case REDUCE_INC:
    case REDUCE_DEC: return type == T_U32 ? run_remote : NULL;
    case REDUCE_AND:
    case REDUCE_OR:
    case REDUCE_XOR: return type == T_B32 ? run_remote : NULL;
    case REDUCE_EXCH:
    case REDUCE_CAS:
    case REDUCE_NONE: break;
    }
    return NULL;
}

Run pick_cluster(const Inst *inst) {
    Type type = inst_type(inst);
    switch (inst->opcode) {
    case OP_MAPA:
        return (type == T_U32 && inst->mods.cluster) ||
                       (type == T_U64 && inst->mods.space_count <= inst->mods.cluster)
                   ? run_mapa
                   : NULL;
    case OP_RANK_OF: return type == T_U32 || type == T_U64 ? run_rank_of : NULL;
    case OP_CLUSTER_ARRIVE:
    case OP_CLUSTER_WAIT: return run_barrier;
    default: return NULL;
    }
}
