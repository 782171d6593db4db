/* Scheduling: which warp and which of its splits runs, when asynchronous work is done, which
 * splits sleep and wake, what is a deadlock.
 *
 * Lanes of a warp that diverge at a branch become splits. The split whose instruction has the
 * lowest rank runs first, so that splits reconverge at the join (flow.c), but a split that waits
 * does not block the others: lanes progress independently. Seed 0 is the plain order: warps
 * round-robin, copies done in the order of issue after a few slices. Other seeds randomise this:
 * which warps are slow, how late copies are, and which waits end before their phase completes.
 *
 * The clock advances only when something happens, not when it is read. So a loop that only polls
 * returns to the same registers, which is how it is recognised; it then sleeps until memory
 * changes. When nothing can run and nothing is in flight, failed waits return false once, as if
 * they had timed out; when all splits sleep again and nothing was done in between, that is a
 * deadlock. */
#include "emulator/order/lifecycle.h"
#include "emulator/order/order.h"
#include "emulator/order/steps.h"

enum { SLICE = 256, COPY_DELAY = 3, QUIET_BRANCHES = 255 };

/* With other seeds: a slow warp runs in one of SLOW slices, a wait ends early with odds of one in
 * GIVES_UP, copies take LEAST_DELAY to LEAST_DELAY + DELAYS slices */
enum { SLOW = 8, GIVES_UP = 4, LEAST_DELAY = 4, DELAYS = 8 };

static uint64_t draw(Block *block) {
    uint64_t x = block->random; /* xorshift64*, Marsaglia and Vigna */
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    block->random = x;
    return x * UINT64_C(2685821657736338717) >> 16;
}

/* Hashes the seed (splitmix64; Steele, Lea and Flood), so that adjacent seeds and blocks are
 * independent. */
void schedule_start(Block *block) {
    uint64_t z = block->machine->seed * UINT64_C(0x9e3779b97f4a7c15) +
                 block->index * UINT64_C(0xd1b54a32d192ed03);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    block->random = z ? z : 1;
    block->slow = 0;
    if (!block->machine->seed) return;
    block->delay = (uint32_t)LEAST_DELAY << draw(block) % DELAYS;
    if (draw(block) % 2) block->slow = (uint32_t)draw(block);
}

bool schedule_gives_up(Block *block, Split *split) {
    /* at most once per effect, the same as when nothing else can run */
    uint64_t now = block->cluster->effects + 1;
    if (!block->machine->seed || split->expired == now || draw(block) % GIVES_UP) return false;
    split->expired = now;
    return true;
}

/* ---- sleeping -------------------------------------------------------------------------------- */

Step schedule_wait(Warp *warp, Wait wait, uint64_t seen) {
    warp->split->wait = wait;
    warp->split->seen = seen;
    return STEP_WAIT;
}

Step schedule_lanes(Block *block, Warp *warp, uint32_t mask, uint32_t wanted) {
    (void)block;
    if (!(wanted & ~mask)) return STEP_NEXT;
    warp->split->wait_mask = wanted;
    return schedule_wait(warp, WAIT_LANES, warp->live);
}

static bool is_ready(const Block *block, const Warp *warp, const Split *split) {
    switch (split->wait) {
    case WAIT_NONE: return true;
    case WAIT_PHASE: return split->expire || split->seen != block->phase_epoch;
    case WAIT_NAMED: return false;
    case WAIT_LANES: return split->seen != warp->live;
    case WAIT_GROUP: return split->seen != block->async_epoch;
    case WAIT_REGISTERS: return split->seen != block->pool_epoch;
    case WAIT_MATRIX: return split->seen != block->async_epoch;
    case WAIT_CLUSTER: return split->seen != block->cluster->generation;
    case WAIT_MEMORY:
        return split->seen != block->cluster->effects ||
               split->seen_machine != block->machine->effects;
    }
    return false;
}

static void remove_split(Warp *warp, uint32_t index) {
    Split *last = &warp->splits[--warp->split_count];
    if (&warp->splits[index] != last) warp->splits[index] = *last;
}

/* Merges splits at the same instruction if that helps: those that can run, and those that wait
 * for lanes. */
static void merge_splits(const Block *block, Warp *warp) {
    for (uint32_t i = 0; i < warp->split_count; i++)
        for (uint32_t j = i + 1; j < warp->split_count;) {
            Split *a = &warp->splits[i], *b = &warp->splits[j];
            bool both = (a->wait == WAIT_LANES || is_ready(block, warp, a)) &&
                        (b->wait == WAIT_LANES || is_ready(block, warp, b));
            if (a->pc == b->pc && both) {
                a->mask |= b->mask;
                a->wait = WAIT_NONE;
                a->expire |= b->expire;
                a->suspect = a->reads_clock = a->tests = false;
                a->poll_pc = a->quiet = 0;
                remove_split(warp, j);
            } else {
                j++;
            }
        }
}

/* Selects the split to run; *limit: the rank from which another runnable split must be
 * considered again. */
static Split *choose_split(Block *block, Warp *warp, uint32_t *limit) {
    const Inst *code = block->program->code;
    *limit = UINT32_MAX;
    if (warp->split_count == 1)
        return is_ready(block, warp, &warp->splits[0]) ? &warp->splits[0] : NULL;
    merge_splits(block, warp);
    Split *best = NULL;
    /* so that a loop of low rank cannot starve the others */
    bool any = (warp->selections++ & 7) == 7;
    uint32_t skip = any ? warp->selections >> 3 : 0, ready = 0;
    for (uint32_t i = 0; i < warp->split_count; i++)
        ready += is_ready(block, warp, &warp->splits[i]);
    skip = ready ? skip % ready : 0;
    for (uint32_t i = 0; i < warp->split_count; i++) {
        Split *split = &warp->splits[i];
        if (!is_ready(block, warp, split)) continue;
        if (any ? skip-- == 0 : !best || code[split->pc].rank < code[best->pc].rank) best = split;
        if (any && best) break;
    }
    for (uint32_t i = 0; best && !any && i < warp->split_count; i++) {
        Split *split = &warp->splits[i];
        if (split != best && is_ready(block, warp, split) && code[split->pc].rank < *limit)
            *limit = code[split->pc].rank;
    }
    return best;
}

/* Moves the lanes `mask` of the running split to `pc`; the other lanes stay. */
static Split *split_off(Warp *warp, uint32_t mask, uint32_t pc) {
    Split *fresh = &warp->splits[warp->split_count++];
    *fresh = (Split){.mask = mask, .pc = pc};
    warp->split->mask &= ~mask;
    return fresh;
}

void schedule_pass(Warp *warp, Split *split, uint32_t mask) {
    if (mask == split->mask) {
        split->wait = WAIT_NONE;
        split->pc++;
        return;
    }
    warp->splits[warp->split_count++] = (Split){.mask = mask, .pc = split->pc + 1};
    split->mask &= ~mask;
}

Step schedule_exit(Block *block, Warp *warp, uint32_t mask) {
    Split *split = warp->split;
    if (!async_check_exit(block, warp, mask) || !matrices_check_exit(block, warp))
        return STEP_FAULT;
    order_exit(warp, mask);
    steps_give(warp, &block->exit_steps);
    warp->live &= ~mask;
    split->mask &= ~mask;
    if (split->mask)
        split->pc++;
    else
        remove_split(warp, (uint32_t)(split - warp->splits));
    if (!warp->live) block->running--;
    effect(block, warp);
    named_recheck(block);
    cluster_recheck(block->cluster);
    return STEP_JUMP;
}

/* ---- polling --------------------------------------------------------------------------------- */

/* At a backward branch: if the loop only polls, its split sleeps. Registers are compared only
 * after an instruction that is typical of polling, or after many iterations without effect, so
 * that ordinary loops cost nothing. */
static void watch_loop(Block *block, Warp *warp, Split *split, uint32_t pc) {
    const Program *program = block->program;
    if (split->poll_effects != warp->effects) {
        split->poll_effects = warp->effects;
        split->poll_pc = split->quiet = 0;
        split->suspect = split->reads_clock = split->tests = false;
        return;
    }
    bool compares = split->poll_pc == pc + 1;
    if (!split->suspect && !compares && ++split->quiet % QUIET_BRANCHES) return;
    if (!warp->snapshot)
        warp->snapshot = arena_alloc(block->machine->arena, program->register_bytes);
    if (compares && warp->snapshot_mask == split->mask &&
        !memcmp(warp->snapshot, warp->banks[BANK_REGISTERS], program->register_bytes)) {
        split->wait = WAIT_MEMORY;
        split->seen = block->cluster->effects;
        split->seen_machine = block->machine->effects;
        return;
    }
    if (compares && !split->suspect) {
        split->poll_pc = 0;
        return;
    }
    memcpy(warp->snapshot, warp->banks[BANK_REGISTERS], program->register_bytes);
    warp->snapshot_mask = split->mask;
    split->poll_pc = pc + 1;
    split->suspect = split->reads_clock = split->tests = false;
}

Step schedule_branch(Block *block, Warp *warp, const Inst *inst, uint32_t mask, uint32_t target) {
    Split *split = warp->split;
    uint32_t pc = (uint32_t)(inst - block->program->code);
    bool backward = target <= pc;
    if (split->mask & ~mask) {
        uint32_t rest = split->mask & ~mask;
        split_off(warp, rest, pc + 1);
    }
    split->pc = target;
    if (backward) watch_loop(block, warp, split, pc);
    return STEP_JUMP;
}

Step schedule_scatter(Warp *warp, uint32_t mask, const uint32_t *targets) {
    Split *split = warp->split;
    uint32_t rest = split->mask & ~mask;
    if (rest) split_off(warp, rest, split->pc + 1);
    for (;;) {
        uint32_t target = targets[first_lane(mask)], together = 0;
        for (uint32_t left = mask; left; left &= left - 1)
            together |= (uint32_t)(targets[first_lane(left)] == target) << first_lane(left);
        if (together == mask) {
            split->pc = target;
            return STEP_JUMP;
        }
        split_off(warp, together, target);
        mask &= ~together;
    }
}

/* ---- running --------------------------------------------------------------------------------- */

static bool use_of_unwritten(Block *block, Warp *warp, const Inst *inst, uint32_t slot,
                             uint32_t missing) {
    uint32_t lane = first_lane(missing), place = 0;
    if (matrices_in_flight(warp, slot))
        return matrices_report_use(block, warp, inst, slot, lane, "reads");
    for (uint32_t i = 0; i < inst->op_count; i++)
        if (inst->ops[i].bank == BANK_REGISTERS && inst->ops[i].slot == slot &&
            !inst->ops[i].sink && !inst->ops[i].absent)
            place = i + 1;
    return finding(block, P0713, agent_of(block, warp, lane),
                   "lane %u uses a register that it has not written (%s %u of `%s`)", lane,
                   place ? "operand" : "the guard, operand", place, opcode_spellings[inst->opcode]);
}

/* The lanes of the split that execute the instruction; false: a finding */
static bool active_lanes(Block *block, Warp *warp, const Inst *inst, uint32_t *out) {
    uint32_t mask = warp->split->mask;
    if (inst->guarded) {
        uint32_t missing = mask & ~warp->valid[inst->guard_slot], bits;
        if (missing) return use_of_unwritten(block, warp, inst, inst->guard_slot, missing);
        memcpy(&bits, warp->banks[BANK_REGISTERS] + inst->guard_offset, sizeof bits);
        mask &= inst->guard_negated ? ~bits : bits;
    }
    *out = mask;
    if (!mask) return true;
    for (uint32_t i = 0; i < inst->use_count; i++) {
        uint32_t missing = mask & ~warp->valid[inst->uses[i]];
        if (missing) return use_of_unwritten(block, warp, inst, inst->uses[i], missing);
    }
    return true;
}

/* Lanes whose guard is false continue when the instruction blocks the others. */
static void unblock_inactive(Warp *warp, uint32_t mask) {
    uint32_t rest = warp->split->mask & ~mask;
    if (rest) split_off(warp, rest, warp->split->pc + 1);
}

/* Runs one split of a warp, for at most `budget` instructions. False: a finding. */
static bool run_warp(Block *block, Warp *warp, Split *split, uint32_t limit, uint32_t budget) {
    const Inst *code = block->program->code;
    uint32_t done = 0;
    warp->split = split;
    for (; done < budget; done++) {
        const Inst *inst = &code[split->pc];
        if (inst->rank >= limit && done > 0) break;
        uint32_t mask = 0;
        if (!active_lanes(block, warp, inst, &mask)) return false;
        if (!mask) {
            split->pc++;
            continue;
        }
        if (warp->matrices && !matrices_allow(block, warp, inst, mask)) return false;
        Step step = inst->run(block, warp, inst, mask);
        if (step == STEP_NEXT) {
            for (uint32_t i = 0; i < inst->def_count; i++) warp->valid[inst->defs[i]] |= mask;
            split->pc++;
            continue;
        }
        if (step == STEP_FAULT) return false;
        if (step == STEP_WAIT) {
            unblock_inactive(warp, mask);
            merge_splits(block, warp); /* lanes that wait for each other */
        } else if (step == STEP_JUMP && warp->split_count == 1 && split == &warp->splits[0] &&
                   split->wait == WAIT_NONE && warp->live) {
            continue; /* all lanes took the branch */
        }
        break;
    }
    block->machine->instructions += done + 1;
    return true;
}

static bool warp_ready(const Block *block, const Warp *warp) {
    for (uint32_t i = 0; i < warp->split_count; i++)
        if (is_ready(block, warp, &warp->splits[i])) return true;
    return false;
}

/* ---- nothing can run ------------------------------------------------------------------------- */

/* Failed waits return false once per effect, because a `try_wait` may be only a test. */
static bool expire_waits(Block *block) {
    bool any = false;
    uint64_t now = block->cluster->effects + 1;
    for (uint32_t w = 0; w < block->warp_count; w++)
        for (uint32_t s = 0; s < block->warps[w].split_count; s++) {
            Split *split = &block->warps[w].splits[s];
            if (split->wait == WAIT_PHASE && split->expired != now) {
                split->expire = true;
                split->expired = now;
                any = true;
            }
        }
    return any;
}

/* Loops that only read the clock are pauses: advances the clock for them. */
static bool advance_clock(Block *block) {
    bool any = false;
    for (uint32_t w = 0; w < block->warp_count; w++)
        for (uint32_t s = 0; s < block->warps[w].split_count; s++) {
            Split *split = &block->warps[w].splits[s];
            if (split->wait == WAIT_MEMORY && split->reads_clock && !split->tests) {
                split->wait = WAIT_NONE;
                any = true;
            }
        }
    if (any) block->clock += block->clock / 2 + 1000;
    return any;
}

static bool polls_memory(const Block *block) {
    for (uint32_t w = 0; w < block->warp_count; w++)
        for (uint32_t s = 0; s < block->warps[w].split_count; s++)
            if (block->warps[w].splits[s].wait == WAIT_MEMORY) return true;
    return false;
}

/* Expires waits; if there is none, advances the clock; *polls: some block polls memory. False:
 * nothing helped. */
static bool wake_some(Cluster *cluster, bool *polls) {
    bool any = false;
    *polls = false;
    for (uint32_t b = 0; b < cluster->size; b++) any |= expire_waits(cluster->blocks[b]);
    for (uint32_t b = 0; !any && b < cluster->size; b++) any |= advance_clock(cluster->blocks[b]);
    for (uint32_t b = 0; b < cluster->size; b++) *polls |= polls_memory(cluster->blocks[b]);
    return any;
}

static Warp *choose_warp(Block *block) {
    uint32_t start =
        block->machine->seed ? (uint32_t)(draw(block) % block->warp_count) : block->next_warp;
    /* the last runnable one, used if all are slow */
    Warp *late = NULL;
    for (uint32_t i = 0; i < block->warp_count; i++) {
        Warp *warp = &block->warps[(start + i) % block->warp_count];
        if (!warp->live || !warp_ready(block, warp)) continue;
        late = warp;
        if ((block->slow >> warp->index & 1) && draw(block) % SLOW) continue;
        break;
    }
    if (late) block->next_warp = (late->index + 1) % block->warp_count;
    return late;
}

/* The blocks of a cluster run round-robin, as do their warps. */
static Warp *choose(Cluster *cluster) {
    Block *first = cluster->blocks[0];
    uint32_t start = cluster->size == 1          ? 0
                     : first->machine->seed != 0 ? (uint32_t)(draw(first) % cluster->size)
                                                 : cluster->next_block;
    for (uint32_t i = 0; i < cluster->size; i++) {
        Block *block = cluster->blocks[(start + i) % cluster->size];
        Warp *warp = block->running ? choose_warp(block) : NULL;
        if (!warp) continue;
        cluster->next_block = (block->rank + 1) % cluster->size;
        return warp;
    }
    return NULL;
}

static bool run_slice(Block *block, Warp *warp) {
    uint32_t limit, budget = block->machine->seed ? 1 + (uint32_t)(draw(block) % 97) : SLICE;
    Split *split = choose_split(block, warp, &limit);
    uint64_t effects = block->cluster->effects;
    split->wait = WAIT_NONE;
    if (!run_warp(block, warp, split, limit, budget)) return false;
    block->slice++;
    block->clock += block->cluster->effects - effects;
    return async_step(block, false);
}

/* All threads of a block have exited: completes the asynchronous work, then ends the block. */
static bool end_block(Block *block) {
    while (!async_idle(block))
        if (!async_step(block, true)) return false;
    block->exited = true;
    return async_check_end(block) && lifecycle_exited(block);
}

/* Executes a step of an operation in flight; *any: there was one. */
static bool step_copies(Cluster *cluster, bool *any) {
    *any = false;
    for (uint32_t b = 0; b < cluster->size && !*any; b++) {
        Block *block = cluster->blocks[b];
        uint64_t epoch = block->async_epoch;
        if (!async_idle(block) && !async_step(block, true)) return false;
        *any = block->async_epoch != epoch;
    }
    return true;
}

static bool is_running(const Cluster *cluster) {
    for (uint32_t b = 0; b < cluster->size; b++)
        if (!cluster->blocks[b]->exited) return true;
    return false;
}

/* Estimates the part of this launch that is done, as if the blocks that have begun had the lengths
 * of those that have ended. Before one has ended, by the bytes of results that were written: a
 * program may write them many times. It is never more than has begun, nor less than has ended. */
static double part_done(const Machine *machine) {
    double blocks = (double)machine->blocks, part = 0;
    double ended = (double)machine->done / blocks;
    double begun = (double)(machine->begun - machine->settled.before) / blocks;
    double now = (double)(machine->instructions - machine->settled.first);
    if (machine->done > 0)
        part =
            now / (double)machine->settled.instructions * (double)machine->settled.begun / blocks;
    else if (machine->results > 0)
        part = (double)machine->written / (double)machine->results;
    part = part > begun ? begun : part < ended ? ended : part;
    return part > 0.99 ? 0.99 : part;
}

/* False: the caller ends the run, or its time is over. */
static bool report_progress(Machine *machine) {
    const EmulatorOptions *options = machine->options;
    double launches = (double)machine->launch_count;
    double part = ((double)machine->launch_index + part_done(machine)) / launches;
    machine->next_progress = machine->instructions + PROGRESS_INTERVAL;
    if (options->seconds > 0 && emulator_clock() >= machine->deadline)
        return grid_give_up(machine, "after its seconds");
    return !options->progress ||
           options->progress(options->progress_data, part, machine->instructions) ||
           grid_give_up(machine, "at the caller's request");
}

/* On seed 0, before a cluster first polls by an instruction, others run: so it finds what they have
 * published so far, and not only what they leave when they end. */
bool schedule_polls(Block *block, const Inst *inst) {
    const Machine *machine = block->machine;
    Cluster *cluster = block->cluster;
    size_t pc = (size_t)(inst - block->program->code);
    if (machine->seed || machine->blocks == machine->cluster_size) return false;
    if (!cluster->polled) cluster->polled = NEW_ARRAY(machine->arena, bool, block->program->count);
    if (cluster->polled[pc]) return false;
    cluster->polled[pc] = cluster->polls = true;
    return true;
}

/* With a seed, half of the atomic operations on global memory let other clusters run. */
static bool lets_others_run(Cluster *cluster) {
    bool drew = cluster->drew, polls = cluster->polls;
    cluster->drew = cluster->polls = false;
    Block *first = cluster->blocks[0];
    return polls || (drew && first->machine->seed && draw(first) % 2);
}

/* Another cluster may change the memory that this one polls: then it is suspended, unless
 * `last_chance`. */
ClusterState schedule_run(Cluster *cluster, bool last_chance) {
    Machine *machine = cluster->blocks[0]->machine;
    while (is_running(cluster)) {
        if (machine->limit && machine->instructions >= machine->limit &&
            !grid_give_up(machine, "at its limit"))
            return CLUSTER_STOPPED;
        if (machine->instructions >= machine->next_progress && !report_progress(machine))
            return CLUSTER_STOPPED;
        Warp *warp = choose(cluster);
        bool any = true, polls;
        if (warp) {
            Block *block = warp->block;
            if (!run_slice(block, warp) || (!block->running && !end_block(block)))
                return CLUSTER_STOPPED;
            if (lets_others_run(cluster) && is_running(cluster)) return CLUSTER_YIELDS;
            continue;
        }
        if (!step_copies(cluster, &any)) return CLUSTER_STOPPED;
        if (any || wake_some(cluster, &polls)) continue;
        if (polls && !last_chance) return CLUSTER_SUSPENDED;
        report_deadlock(cluster);
        return CLUSTER_STOPPED;
    }
    return CLUSTER_DONE;
}

uint64_t schedule_due(Block *block) {
    return block->machine->seed ? block->slice + draw(block) % block->delay
                                : block->slice + COPY_DELAY;
}

/* Selects the next operation in flight: the first, or with a seed one of the first few */
uint32_t schedule_pick(Block *block, uint32_t choices) {
    return block->machine->seed && choices > 1 ? (uint32_t)(draw(block) % choices) : 0;
}
