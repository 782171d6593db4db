/* mbarriers: init, inval, arrivals, transactions and waits (PTX ISA 9.7.13.15).
 *
 * The state of a barrier is stored outside shared memory and counted by generation: the number
 * of completed phases. The eight bytes in shared memory are opaque; an ordinary access to them
 * is a finding. A wait that fails puts its split to sleep until some phase of the block
 * completes, or, with a seed, for a random time at most. Arrivals and transactions can come from
 * other blocks of the cluster. */
#include "emulator/order/lifecycle.h"
#include "emulator/findings/names.h"
#include "emulator/order/steps.h"
#include "emulator/order/order.h"

static Barrier **slot_of(Block *block, uint32_t address) {
    uint32_t index = (address - SHARED_BASE) / 8;
    return address >= SHARED_BASE && index < block->barrier_slots ? &block->barriers[index] : NULL;
}

static const char *name_of(const Block *home, uint64_t address) {
    return name_barrier(home->machine, home, address);
}

/* The running block whose shared memory holds this address; NULL after a finding: not aligned,
 * or outside */
static Block *home_of(Block *block, Agent agent, uint64_t address, const char *what) {
    Block *home = cluster_block(block, address);
    if (address % 8) {
        finding(block, P0711, agent,
                "%s at shared address %llu: the address of an mbarrier must be a multiple of 8",
                what, (unsigned long long)address);
        return NULL;
    }
    uint32_t offset = (uint32_t)address & OFFSET_MASK;
    if (!home || !slot_of(home, offset) || offset - SHARED_BASE + 8 > home->shared_bytes) {
        finding(block, P0710, agent, "%s at shared address %llu, outside of shared memory", what,
                (unsigned long long)address);
        return NULL;
    }
    if (home->exited && !finding(block, P0742, agent, "%s at %s, a block that has exited", what,
                                 name_of(home, offset)))
        return NULL;
    return home;
}

void barrier_clear(Barrier *barrier) {
    Barrier kept = {.now = barrier->now,
                    .last = barrier->last,
                    .seen = barrier->seen,
                    .steps_now = barrier->steps_now,
                    .steps_done = barrier->steps_done,
                    .order = barrier->order};
    kept.now->items.count = kept.last->items.count = kept.seen->items.count = 0;
    if (barrier->home) {
        steps_clear(barrier->home->cluster, kept.steps_now);
        steps_clear(barrier->home->cluster, kept.steps_done);
    }
    *barrier = kept;
}

Barrier *barrier_at(Block *block, Agent agent, uint64_t address, const char *what) {
    Block *home = home_of(block, agent, address, what);
    if (!home) return NULL;
    uint32_t offset = (uint32_t)address & OFFSET_MASK;
    Barrier *barrier = *slot_of(home, offset);
    if (home != block) lifecycle_reaches(&agent, home);
    if (barrier && barrier->live)
        return lifecycle_initialised(block, agent, barrier, what) ? barrier : NULL;
    finding(block, P0720, agent, "%s at %s, which %s", what, name_of(home, offset),
            barrier && barrier->count ? "was invalidated" : "has not been initialised");
    return NULL;
}

static bool complete_phase(Barrier *barrier) {
    if (barrier->pending > 0 || barrier->tx != 0) return true;
    BarrierUses *last = barrier->last;
    barrier->last = barrier->now;
    barrier->now = last;
    last->items.count = 0;
    order_barrier_complete(barrier);
    barrier->generation++;
    barrier->pending = barrier->count;
    barrier->home->phase_epoch++;
    barrier->home->cluster->effects++;
    return lifecycle_completes(barrier->home, barrier);
}

bool barrier_arrive(Block *block, Agent agent, Barrier *barrier, uint32_t count) {
    if (count > barrier->pending)
        return finding(block, P0723, agent,
                       "%u arrival%s at %s, but its phase %llu expects %u more of %u", count,
                       count == 1 ? "" : "s", name_of(barrier->home, barrier->address),
                       (unsigned long long)barrier->generation, barrier->pending, barrier->count);
    barrier->pending -= count;
    effect(block, agent.warp);
    return complete_phase(barrier);
}

bool barrier_transact(Block *block, Agent agent, Barrier *barrier, int64_t bytes) {
    barrier->tx += bytes;
    /* no thread can expect these bytes in this phase any more */
    bool late = barrier->tx < 0 && barrier->pending == 0;
    if (barrier->tx > MAX_TX || barrier->tx < -MAX_TX || late)
        return finding(block, P0722, agent, "the tx-count of %s becomes %lld in phase %llu%s",
                       name_of(barrier->home, barrier->address), (long long)barrier->tx,
                       (unsigned long long)barrier->generation,
                       late ? ": more bytes arrived than were expected"
                            : ": the range is -1048575 to 1048575");
    if (bytes < 0)
        lifecycle_remember(block->machine->arena, barrier->now,
                           lifecycle_use(&agent, (uint64_t)-bytes));
    effect(block, agent.warp);
    return complete_phase(barrier);
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* Shared address of an mbarrier operand. An address in another block is valid only if the
 * instruction allows it; other addresses are mapped to one that is reported as out of bounds. */
uint64_t barrier_address(const Warp *warp, const Inst *inst, const Operand *op, uint32_t lane) {
    uint64_t address = in_lane(warp, op, lane) + (uint64_t)op->add;
    uint64_t outside = UINT64_C(1) << 40;
    if (!inst->mods.space_count)
        return address - WINDOW_SHARED < WINDOW_BYTES ? address - WINDOW_SHARED : address | outside;
    address = (uint32_t)address;
    return inst->mods.cluster || cluster_owns(warp->block, address) ? address : address | outside;
}

/* True if an earlier lane of `mask` executes this instruction with the same address. */
static bool earlier_lane(const Warp *warp, const Inst *inst, uint32_t mask, uint32_t lane) {
    uint64_t address = barrier_address(warp, inst, &inst->ops[0], lane);
    for (uint32_t left = mask; first_lane(left) < lane; left &= left - 1)
        if (barrier_address(warp, inst, &inst->ops[0], first_lane(left)) == address) return true;
    return false;
}

/* An init of a live barrier. PTX leaves it undefined also if lanes execute one init together, but
 * then all of them write the same state. */
static bool init_again(Block *block, Agent agent, const Barrier *barrier, uint32_t count,
                       bool together) {
    const char *name = name_of(barrier->home, barrier->address);
    if (together && barrier->count == count)
        return finding(block, P0724, agent,
                       "several lanes execute the same mbarrier.init of %s with the same count",
                       name);
    return finding(block, P0721, agent, "mbarrier.init of %s, which is already initialised", name);
}

static void start_barrier(Block *home, Barrier **slot, uint32_t address, uint32_t count) {
    Arena *arena = home->machine->arena;
    if (!*slot) {
        *slot = NEW(arena, Barrier);
        (*slot)->now = NEW(arena, BarrierUses);
        (*slot)->last = NEW(arena, BarrierUses);
        (*slot)->seen = NEW(arena, BarrierUses);
    }
    barrier_clear(*slot);
    (*slot)->live = true;
    (*slot)->home = home;
    (*slot)->address = address;
    (*slot)->count = (*slot)->pending = count;
    memset(home->shared_state + (address - SHARED_BASE), BYTE_BARRIER, 8);
}

static Step run_init(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left), count = in32(warp, &inst->ops[1])[lane];
        Agent agent = agent_of(block, warp, lane);
        uint64_t address = barrier_address(warp, inst, &inst->ops[0], lane);
        Block *home = home_of(block, agent, address, "mbarrier.init");
        if (!home) return STEP_FAULT;
        address &= OFFSET_MASK;
        Barrier **slot = slot_of(home, (uint32_t)address);
        bool live = *slot && (*slot)->live;
        if (live && !init_again(block, agent, *slot, count, earlier_lane(warp, inst, mask, lane)))
            return STEP_FAULT;
        if (count == 0 || count > MAX_TX)
            return fault(block, P0723, agent,
                         "mbarrier.init of %s with count %u: the count must be 1 to 1048575",
                         name_of(home, address), count);
        start_barrier(home, slot, (uint32_t)address, count);
        (*slot)->init = lifecycle_use(&agent, 0);
        order_barrier_init(warp, lane, *slot);
        effect(block, warp);
    }
    return STEP_NEXT;
}

static Step run_inval(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        Barrier *barrier =
            barrier_at(block, agent_of(block, warp, lane),
                       barrier_address(warp, inst, &inst->ops[0], lane), "mbarrier.inval");
        if (!barrier || !lifecycle_ends(block, agent_of(block, warp, lane), barrier))
            return STEP_FAULT;
        barrier->live = false;
        memset(barrier->home->shared_state + (barrier->address - SHARED_BASE), 0, 8);
        effect(block, warp);
    }
    return STEP_NEXT;
}

/* mbarrier.arrive and arrive_drop; ops: (state,) [address], (count or bytes). Returns the state
 * before the arrival. */
static Step run_arrive(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    bool drop = inst->opcode == OP_MB_DROP, expects = (inst->mods.flags & FLAG_EXPECT_TX) != 0;
    uint32_t at = inst->op_count == 3 ? 1 : 0;
    const Operand *state = at ? &inst->ops[0] : NULL, *number = &inst->ops[at + 1];
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left), value = number->absent ? 1 : in32(warp, number)[lane];
        Agent agent = agent_of(block, warp, lane);
        Barrier *barrier =
            barrier_at(block, agent, barrier_address(warp, inst, &inst->ops[at], lane),
                       opcode_spellings[inst->opcode]);
        if (!barrier) return STEP_FAULT;
        if (state && !state->sink)
            put_lane(warp, state, lane, barrier->generation << 32 | barrier->pending);
        uint32_t count = expects ? 1 : value;
        if (count == 0)
            return fault(block, P0723, agent, "arrival with count 0 at %s",
                         name_of(barrier->home, barrier->address));
        bool completes = count == barrier->pending && barrier->tx == 0;
        if ((inst->mods.flags & FLAG_NO_COMPLETE) && completes)
            return fault(block, P0723, agent,
                         "arrival with .noComplete completes the phase of %s: it is undefined then",
                         name_of(barrier->home, barrier->address));
        if (expects) {
            /* expect-tx comes first, so the phase cannot be completed between the two */
            barrier->tx += value;
            if (barrier->tx > MAX_TX) {
                barrier->tx -= value;
                return barrier_transact(block, agent, barrier, value) ? STEP_NEXT : STEP_FAULT;
            }
        }
        if (drop && count <= barrier->pending)
            barrier->count -= count <= barrier->count ? count : barrier->count;
        bool relaxed = inst->mods.order == ORDER_RELAXED;
        if (!lifecycle_arrives(block, agent, barrier)) return STEP_FAULT;
        lifecycle_arrived(block, &agent, barrier);
        /* .cta has no thread of another block (PTX ISA 8.5); no scope at all is customary there */
        bool in_scope = barrier->home == block || inst->mods.scope != SCOPE_CTA;
        if (in_scope) order_barrier_arrive(warp, lane, barrier, relaxed);
        if (!barrier_arrive(block, agent, barrier, count)) return STEP_FAULT;
    }
    steps_next(warp); /* the lanes arrive together */
    return STEP_NEXT;
}

static Step run_transact(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    bool expects = inst->opcode == OP_MB_EXPECT;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left), bytes = in32(warp, &inst->ops[1])[lane];
        Agent agent = agent_of(block, warp, lane);
        Barrier *barrier =
            barrier_at(block, agent, barrier_address(warp, inst, &inst->ops[0], lane),
                       opcode_spellings[inst->opcode]);
        if (!barrier || !lifecycle_arrives(block, agent, barrier) ||
            !barrier_transact(block, agent, barrier, expects ? (int64_t)bytes : -(int64_t)bytes))
            return STEP_FAULT;
    }
    return STEP_NEXT;
}

/* ---- waits ----------------------------------------------------------------------------------- */

static void observe(Barrier *barrier) {
    if (barrier->observed < barrier->generation) barrier->observed = barrier->generation;
}

/* A loop that waits by parity sees only every other phase: if the next one is complete before it
 * looks again, it waits for another phase than the one that it began to wait for. */
static bool is_lapped(const Warp *warp, uint32_t pc, const Barrier *barrier) {
    const Split *split = warp->split;
    return split->unmet.pc == pc + 1 && split->unmet.barrier == barrier &&
           split->unmet.effects == warp->effects && barrier->generation > split->unmet.phase + 1;
}

static void note_unmet(const Warp *warp, uint32_t pc, const Barrier *barrier, bool over) {
    Split *split = warp->split;
    bool same = split->unmet.pc == pc + 1 && split->unmet.barrier == barrier &&
                split->unmet.effects == warp->effects;
    if (over)
        split->unmet.pc = 0;
    else if (!same)
        split->unmet.phase = barrier->generation;
    if (over || same) return;
    split->unmet.pc = pc + 1;
    split->unmet.barrier = barrier;
    split->unmet.effects = warp->effects;
}

/* True if the phase that this lane waits for is complete. Stores its generation in the split. */
static bool is_over(Warp *warp, const Inst *inst, Barrier *barrier, uint32_t lane) {
    uint64_t asked = in_lane(warp, &inst->ops[3], lane);
    bool parity = inst->mods.flags & FLAG_PARITY;
    bool over =
        parity ? (barrier->generation & 1) != (asked & 1) : barrier->generation != asked >> 32;
    if (over) observe(barrier);
    if (parity) note_unmet(warp, warp->split->pc, barrier, over);
    warp->split->wait_address = barrier->address;
    warp->split->wait_phase = barrier->generation;
    return over;
}

/* True if the split is at the test_wait that failed last and nothing has changed since, not even
 * a register: it then fails again until the phase completes. */
static bool tests_again(const Block *block, const Warp *warp) {
    const Split *split = warp->split;
    return split->test_pc == split->pc + 1 && split->test_effects == warp->effects &&
           memcmp(warp->test_registers, warp->banks[BANK_REGISTERS],
                  block->program->register_bytes) == 0;
}

static void remember_test(Block *block, Warp *warp) {
    size_t bytes = block->program->register_bytes;
    warp->split->test_pc = warp->split->pc + 1;
    warp->split->test_effects = warp->effects;
    if (warp->test_registers == NULL)
        warp->test_registers = arena_alloc(block->machine->arena, bytes);
    memcpy(warp->test_registers, warp->banks[BANK_REGISTERS], bytes);
}

/* These lanes have seen a phase complete: they acquire it, lanes of the same barrier together. */
static void acquire(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    while (block->machine->races && mask) {
        uint64_t address = barrier_address(warp, inst, &inst->ops[2], first_lane(mask));
        uint32_t same = 0;
        for (uint32_t left = mask; left; left &= left - 1)
            if (barrier_address(warp, inst, &inst->ops[2], first_lane(left)) == address)
                same |= 1u << first_lane(left);
        Barrier *barrier =
            barrier_at(block, agent_of(block, warp, first_lane(mask)), address, "a wait");
        order_barrier_wait(warp, same, barrier, inst->mods.order == ORDER_RELAXED);
        lifecycle_sees(warp, same, barrier);
        mask &= ~same;
    }
}

/* ops: p, (q,) [address], parity or state, (time) */
static Step run_wait(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Split *split = warp->split;
    uint32_t over = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        Barrier *barrier = barrier_at(block, agent_of(block, warp, lane),
                                      barrier_address(warp, inst, &inst->ops[2], lane), "a wait");
        if (!barrier) return STEP_FAULT;
        if (inst->ignored) continue;
        if (is_lapped(warp, split->pc, barrier) &&
            !finding(block, P0725, agent_of(block, warp, lane),
                     "phase %llu of %s, for which it waits, and the next one are both complete "
                     "before it looks: the parity is the old one again",
                     (unsigned long long)split->unmet.phase,
                     name_of(barrier->home, barrier->address)))
            return STEP_FAULT;
        if (!is_over(warp, inst, barrier, lane)) continue;
        over |= 1u << lane;
        if ((inst->mods.flags & FLAG_PARITY) &&
            !lifecycle_looks(block, agent_of(block, warp, lane), barrier))
            return STEP_FAULT;
    }
    /* The lanes go on whatever it answers, so it answers at once that the phase is not complete */
    if (inst->ignored) {
        put_mask(warp, &inst->ops[0], 0, mask);
        return STEP_NEXT;
    }
    if (!over && inst->opcode == OP_MB_TRY && schedule_gives_up(block, split)) split->expire = true;
    if (!over && !split->expire) {
        if (inst->opcode == OP_MB_TRY || tests_again(block, warp))
            return schedule_wait(warp, WAIT_PHASE, block->phase_epoch);
    }
    acquire(block, warp, inst, over);
    put_mask(warp, &inst->ops[0], over, mask);
    if (!over) split->suspect = split->tests = true;
    if (!over && inst->opcode == OP_MB_TEST) remember_test(block, warp);
    split->expire = false;
    return STEP_NEXT;
}

static Step run_pending(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)block;
    for (uint32_t left = mask; left; left &= left - 1)
        put_lane(warp, &inst->ops[0], first_lane(left),
                 (uint32_t)in_lane(warp, &inst->ops[1], first_lane(left)));
    return STEP_NEXT;
}

Run pick_mbarrier(const Inst *inst) {
    if (inst->opcode != OP_MB_PENDING && inst_type(inst) != T_B64) return NULL;
    if (inst->mods.space_count && inst->mods.spaces[0] != SPACE_SHARED) return NULL;
    bool local = inst->opcode == OP_MB_INIT || inst->opcode == OP_MB_INVAL ||
                 inst->opcode == OP_MB_TEST || inst->opcode == OP_MB_TRY;
    if (local && inst->mods.cluster) return NULL;
    switch (inst->opcode) {
    case OP_MB_INIT: return run_init;
    case OP_MB_INVAL: return run_inval;
    case OP_MB_ARRIVE:
    case OP_MB_DROP: return run_arrive;
    case OP_MB_EXPECT:
    case OP_MB_COMPLETE: return run_transact;
    case OP_MB_TEST:
    case OP_MB_TRY: return run_wait;
    case OP_MB_PENDING: return run_pending;
    default: return NULL;
    }
}
