/* The life of mbarriers, of named barriers and of a block's shared memory: what must be ordered, so
 * that no schedule can break it.
 *
 * A barrier remembers who used it, with the order of each use. A phase that others can complete
 * before a waiting lane looks, an arrival that can fall into the phase before, an exit while
 * another block can still access memory: all are found although this schedule does not show them.
 */
#include "emulator/order/lifecycle.h"

#include "emulator/findings/names.h"
#include "emulator/order/order.h"
#include "emulator/order/steps.h"

static bool is_on(const Block *block) { return block->cluster->order != NULL; }

BarrierUse lifecycle_use(const Agent *agent, uint64_t bytes) {
    const Block *block = agent->warp->block;
    BarrierUse use = {.rank = block->rank,
                      .warp = agent->warp->index,
                      .lanes = 1u << agent->lane,
                      .pc = agent->pc,
                      .async = agent->async != 0,
                      .bytes = bytes};
    if (!is_on(block)) return use;
    Epoch epoch = order_epoch(agent->warp, agent->lane);
    use.row = epoch.component / ROW;
    use.time = epoch.time;
    use.step = steps_now(agent->warp);
    return use;
}

/* Times of the lanes of one instruction differ only by its own releases: the first one is kept. */
void lifecycle_remember(Arena *arena, BarrierUses *uses, BarrierUse one) {
    for (size_t i = 0; i < uses->items.count; i++) {
        BarrierUse *old = &uses->items.items[i];
        if (old->rank != one.rank || old->warp != one.warp || old->pc != one.pc ||
            old->async != one.async || (!one.async && (old->lanes & one.lanes)))
            continue;
        old->lanes |= one.lanes;
        old->bytes += one.bytes;
        return;
    }
    vec_push(arena, &uses->items, one);
}

/* "warp 3, lane 0 (PTX line 30: `..`)" */
static const char *name_use(const Machine *machine, const BarrierUse *use, uint32_t lanes) {
    Str out = str_new(machine->arena);
    Actor actor = {.rank = use->rank,
                   .warp = use->warp,
                   .lanes = lanes == ALL_LANES ? 0 : lanes,
                   .pc = use->pc,
                   .async = use->async};
    name_actor(machine, &actor, &out);
    str_printf(&out, " (%s)", name_code(machine, use->pc));
    return out.text;
}

static uint32_t index_of(const Block *block, const BarrierUse *use) {
    return use->rank * block->warp_count + use->warp;
}

/* The lanes of a use that may be later than the lane's instruction: neither the order of accesses
 * nor that of execution forbids it. */
static uint32_t may_be_later(const Seen *seen, const Warp *warp, const BarrierUse *use) {
    if (steps_knows(warp->steps, index_of(warp->block, use), use->step)) return 0;
    return order_unknown(seen, VIEW_GENERIC, seen->cluster, use->row, use->lanes, use->time);
}

/* The first use by threads that may be later; *lanes: those lanes; NULL: none */
static const BarrierUse *unknown_use(const Agent *agent, const BarrierUses *uses, uint32_t *lanes) {
    Seen seen = order_seen(agent->warp, agent->lane);
    for (size_t i = 0; i < uses->items.count; i++) {
        const BarrierUse *use = &uses->items.items[i];
        if (use->async) continue;
        *lanes = may_be_later(&seen, agent->warp, use);
        if (*lanes) return use;
    }
    return NULL;
}

/* ---- mbarriers ------------------------------------------------------------------------------- */

bool lifecycle_initialised(Block *block, Agent agent, const Barrier *barrier, const char *what) {
    if (!is_on(block) || agent.async || order_knows_init(agent.warp, agent.lane, barrier))
        return true;
    const Machine *machine = block->machine;
    return finding(block, P0726, agent,
                   "%s at %s is not ordered after its init by %s: no barrier is between them", what,
                   name_barrier(machine, barrier->home, barrier->address),
                   name_use(machine, &barrier->init, barrier->init.lanes));
}

bool lifecycle_copied(Block *block, Agent agent, const Barrier *barrier) {
    Agent lane = agent;
    lane.async = 0;
    if (!lifecycle_initialised(block, lane, barrier, "a copy that completes")) return false;
    if (!is_on(block) || order_init_fenced(agent.warp, agent.lane, barrier)) return true;
    const Machine *machine = block->machine;
    return finding(block, P0727, lane,
                   "a copy completes at %s, but no fence makes its init by %s visible to copies: "
                   "fence.mbarrier_init or fence.proxy.async",
                   name_barrier(machine, barrier->home, barrier->address),
                   name_use(machine, &barrier->init, barrier->init.lanes));
}

void lifecycle_arrived(Block *block, const Agent *agent, Barrier *barrier) {
    lifecycle_remember(block->machine->arena, barrier->now, lifecycle_use(agent, 0));
    if (!agent->async) steps_add_own(agent->warp, &barrier->steps_now);
}

bool lifecycle_arrives(Block *block, Agent agent, const Barrier *barrier) {
    uint32_t lanes = 0;
    bool judged = is_on(block) && !agent.async && barrier->home == agent.warp->block;
    const BarrierUse *use = judged ? unknown_use(&agent, barrier->last, &lanes) : NULL;
    const Machine *machine = block->machine;
    return !use || use->rank != barrier->home->rank ||
           finding(block, P0728, agent,
                   "arrives at %s in phase %llu, but can be counted in phase %llu: it is not "
                   "ordered after the arrival of %s",
                   name_barrier(machine, barrier->home, barrier->address),
                   (unsigned long long)barrier->generation,
                   (unsigned long long)barrier->generation - 1, name_use(machine, use, lanes));
}

/* The warp has arrived in the last complete phase. That is judged when it arrives. */
static bool has_arrived(const Warp *warp, const Barrier *barrier) {
    for (size_t i = 0; i < barrier->last->items.count; i++) {
        const BarrierUse *use = &barrier->last->items.items[i];
        if (!use->async && use->rank == warp->block->rank && use->warp == warp->index) return true;
    }
    return false;
}

/* Two phases earlier the parity was the same. A warp that has waited for the phase before cannot
 * look that early. */
bool lifecycle_looks(Block *block, Agent agent, Barrier *barrier) {
    uint64_t now = barrier->generation, *looked = &barrier->looked[agent.warp->index];
    bool first = *looked + 1 < now && now >= 2;
    *looked = now;
    if (!is_on(block) || !first || has_arrived(agent.warp, barrier) ||
        order_knows_phase_before(agent.warp, agent.lane, barrier))
        return true;
    unsigned long long phase = now - 1;
    return finding(block, P0725, agent,
                   "waits for phase %llu of %s, but can look before phase %llu is complete, and "
                   "the parity is the same then: no wait for that phase is ordered before this one",
                   phase, name_barrier(block->machine, barrier->home, barrier->address), phase - 1);
}

/* A later wait of the same lanes for the same phase is not judged: it only repeats the answer. */
void lifecycle_sees(Warp *warp, uint32_t mask, Barrier *barrier) {
    const Block *block = warp->block;
    BarrierUses *seen = barrier->seen;
    if (!is_on(block) || !mask) return;
    steps_take(warp, barrier->steps_done);
    for (size_t i = 0; i < seen->items.count; i++)
        if (seen->items.items[i].warp == warp->index) mask &= ~seen->items.items[i].lanes;
    if (!mask) return;
    Agent agent = agent_of(block, warp, first_lane(mask));
    BarrierUse use = lifecycle_use(&agent, 0);
    use.lanes = mask;
    vec_push(block->machine->arena, &seen->items, use);
}

static const BarrierUse *first_arrival(const BarrierUses *uses) {
    for (size_t i = 0; i < uses->items.count; i++)
        if (!uses->items.items[i].async) return &uses->items.items[i];
    return NULL;
}

static bool report_missed(Block *block, const Barrier *barrier, const BarrierUse *use,
                          uint32_t lanes) {
    const Machine *machine = block->machine;
    const BarrierUse *arrival = first_arrival(barrier->last);
    Warp *warp = &block->cluster->blocks[use->rank]->warps[use->warp];
    Agent waiter = {warp, first_lane(lanes), use->pc, 0, false};
    unsigned long long phase = barrier->generation - 1;
    return finding(block, P0725, waiter,
                   "lane %u waits for the phase before phase %llu of %s, but phase %llu can be "
                   "complete before it looks, and the parity is then the old one again: the "
                   "arrival of %s is not ordered after this wait",
                   first_lane(lanes), phase, name_barrier(machine, barrier->home, barrier->address),
                   phase, name_use(machine, arrival, arrival->lanes));
}

/* Execution as a whole orders the waits of the warp before the arrivals of the phase, but only some
 * of its lanes have released them: the others are expected to keep pace, which PTX does not
 * promise. */
static bool report_behind(Block *block, const Barrier *barrier, const BarrierUse *use,
                          uint32_t lanes) {
    const Machine *machine = block->machine;
    Warp *warp = &block->cluster->blocks[use->rank]->warps[use->warp];
    Agent waiter = {warp, first_lane(lanes), use->pc, 0, false};
    return finding(block, P0729, waiter,
                   "lane %u can still wait for the phase before phase %llu of %s when that is "
                   "complete: only lane %u is ordered before, and nothing makes the lanes meet",
                   first_lane(lanes), (unsigned long long)barrier->generation - 1,
                   name_barrier(machine, barrier->home, barrier->address),
                   first_lane(use->lanes & ~lanes));
}

bool lifecycle_completes(Block *block, Barrier *barrier) {
    bool fine = true;
    if (!is_on(block)) return true;
    steps_turn(block->cluster, &barrier->steps_now, &barrier->steps_done);
    for (size_t i = 0; i < barrier->seen->items.count && fine; i++) {
        const BarrierUse *use = &barrier->seen->items.items[i];
        uint32_t lanes = order_phase_unknown(barrier, use->row, use->lanes, use->time);
        if (!lanes || !first_arrival(barrier->last)) continue;
        if (!steps_knows(barrier->steps_done, index_of(block, use), use->step))
            fine = report_missed(block, barrier, use, lanes);
        else if (lanes != use->lanes)
            fine = report_behind(block, barrier, use, lanes);
    }
    barrier->seen->items.count = 0;
    return fine;
}

bool lifecycle_ends(Block *block, Agent agent, const Barrier *barrier) {
    const BarrierUses *all[] = {barrier->now, barrier->last, barrier->seen};
    const Machine *machine = block->machine;
    for (size_t i = 0; i < COUNT_OF(all) && is_on(block); i++) {
        uint32_t lanes = 0;
        const BarrierUse *use = unknown_use(&agent, all[i], &lanes);
        if (use)
            return finding(block, P0726, agent, "mbarrier.inval of %s is not ordered after %s",
                           name_barrier(machine, barrier->home, barrier->address),
                           name_use(machine, use, lanes));
    }
    return true;
}

/* ---- named barriers -------------------------------------------------------------------------- */

bool lifecycle_enters(Block *block, Agent agent, const NamedBarrier *barrier, uint32_t id) {
    if (!is_on(block)) return true;
    Seen seen = order_seen(agent.warp, agent.lane);
    for (uint32_t left = barrier->last_warps; left; left &= left - 1) {
        const BarrierUse *use = &barrier->uses[1][first_lane(left)];
        if (may_be_later(&seen, agent.warp, use))
            return finding(block, P0736, agent,
                           "enters named barrier %u, but can be counted in its phase before: it is "
                           "not ordered after the arrival of %s",
                           id, name_use(block->machine, use, use->lanes));
    }
    return true;
}

void lifecycle_entered(Warp *warp, uint32_t mask, NamedBarrier *barrier, uint32_t id) {
    if (!is_on(warp->block)) return;
    BarrierUse *own = &barrier->uses[0][warp->index];
    Agent agent = agent_of(warp->block, warp, first_lane(mask));
    uint32_t others = own->lanes;
    uint32_t time = own->time;
    *own = lifecycle_use(&agent, 0);
    own->lanes = mask | others;
    if (others) own->time = time;
    steps_give(warp, &warp->block->named_steps[id]);
}

/* ---- blocks of a cluster --------------------------------------------------------------------- */

void lifecycle_reaches(const Agent *agent, Block *home) {
    const Warp *warp = agent->warp;
    const Cluster *cluster = home->cluster;
    if (!is_on(home) || agent->async) return;
    if (!home->remote)
        home->remote = NEW_ARRAY(home->machine->arena, RemoteUse, cluster->size * home->warp_count);
    RemoteUse *use = &home->remote[warp->block->rank * home->warp_count + warp->index];
    Epoch epoch = order_epoch(warp, agent->lane);
    use->lanes |= 1u << agent->lane;
    use->pc = agent->pc;
    use->row = epoch.component / ROW;
    use->times[agent->lane] = epoch.time;
    use->step = steps_now(warp);
}

static uint32_t not_before_exit(const Block *block, const RemoteUse *use, uint32_t index) {
    uint32_t lanes = 0;
    if (steps_knows(block->exit_steps, index, use->step)) return 0;
    for (uint32_t left = use->lanes; left; left &= left - 1)
        lanes |= order_exit_unknown(block, use->row, left & -left, use->times[first_lane(left)]);
    return lanes;
}

bool lifecycle_exited(Block *block) {
    bool fine = true;
    uint32_t count = block->remote ? block->cluster->size * block->warp_count : 0;
    for (uint32_t i = 0; i < count; i++) {
        const RemoteUse *use = &block->remote[i];
        uint32_t lanes = not_before_exit(block, use, i);
        if (!lanes) continue;
        Warp *warp = &block->cluster->blocks[i / block->warp_count]->warps[i % block->warp_count];
        Agent agent = {warp, first_lane(lanes), use->pc, 0, false};
        fine &= finding(block, P0742, agent,
                        "accesses shared memory of rank %u, which can exit before: its threads do "
                        "not wait for this access, neither at the cluster barrier nor at an "
                        "mbarrier",
                        block->rank);
    }
    return fine;
}
