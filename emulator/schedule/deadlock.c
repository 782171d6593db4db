/* Deadlocks: the agents that wait, and what each waits for.
 *
 * Warps of one role that wait for the same thing share a note. If lanes of a warp wait for each
 * other, or a warp for registers, that is reported as the cause. */
#include "emulator/findings/names.h"

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

static void describe_phase(Block *block, const Split *split, Str *out) {
    Machine *machine = block->machine;
    const Barrier *barrier = block->barriers[(split->wait_address - SHARED_BASE) / 8];
    uint32_t stage = 0, byte = 0;
    const ManifestShared *range = shared_range(machine, split->wait_address, &stage, &byte);
    const char *pipe = range ? range->pipe : NULL;
    if (pipe && range->kind == SHARED_FULL)
        str_printf(out, "waits for a full stage of `%s`, stage %u", pipe, stage);
    else if (pipe && range->kind == SHARED_EMPTY)
        str_printf(out, "waits for an empty stage of `%s`, stage %u", pipe, stage);
    else
        str_printf(out, "waits for %s", name_mbarrier(machine, split->wait_address));
    str_printf(out, ", phase %llu (parity %llu): missing %u of %u arrival%s",
               (unsigned long long)barrier->generation,
               (unsigned long long)(barrier->generation & 1), barrier->pending, barrier->count,
               plural(barrier->count));
    if (barrier->tx) str_printf(out, " and %lld bytes", (long long)barrier->tx);
}

/* "warps 0, 1" */
static void list_warps(uint32_t warps, Str *out) {
    for (uint32_t left = warps; left; left &= left - 1)
        str_printf(out,
                   left != warps         ? ", %u"
                   : (left & (left - 1)) ? "warps %u"
                                         : "warp %u",
                   first_lane(left));
}

/* "3 of 4 ..: warps 0, 1, 2; in the phase before: warps 0, 1, 2, 3" */
static void describe_named(const Block *block, const Split *split, Str *out) {
    const NamedBarrier *barrier = &block->named[split->wait_address % NAMED_BARRIERS];
    str_printf(out, "waits at named barrier %llu: %u of %u threads have arrived",
               (unsigned long long)split->wait_address, barrier->arrived,
               barrier->whole_block ? block->running * LANES : barrier->expected);
    str_add(out, barrier->warps ? ": " : "");
    list_warps(barrier->warps, out);
    str_add(out, barrier->last_warps ? "; in the phase before: " : "");
    list_warps(barrier->last_warps, out);
}

/* "waits at the cluster barrier for warps 0, 1 of rank 1" */
static void describe_cluster(const Block *block, Str *out) {
    const Cluster *cluster = block->cluster;
    const char *before = " for ";
    str_add(out, "waits at the cluster barrier");
    for (uint32_t b = 0; b < cluster->size; b++) {
        uint32_t missing = 0;
        for (uint32_t w = 0; w < cluster->blocks[b]->warp_count; w++) {
            const Warp *warp = &cluster->blocks[b]->warps[w];
            if (warp->live & ~warp->cluster_arrived) missing |= 1u << w;
        }
        if (!missing) continue;
        str_add(out, before);
        list_warps(missing, out);
        str_printf(out, " of rank %u", b);
        before = ", ";
    }
}

/* A group of wgmma runs only after all warps of the warpgroup have committed it. */
static void describe_matrices(const Block *block, const Warp *warp, const Split *split, Str *out) {
    uint32_t first = warp->index & ~3u, missing = 0;
    str_add(out, "waits for its wgmmas");
    for (uint32_t w = first; w < first + 4 && w < block->warp_count; w++)
        if (block->warps[w].matrices->committed <= split->wait_address)
            str_printf(out, "%s%u", missing++ ? ", " : ", which these warps have not issued: ", w);
}

static void describe(Block *block, const Warp *warp, const Split *split, Str *out) {
    const Inst *inst = &block->program->code[split->pc];
    switch (split->wait) {
    case WAIT_PHASE: describe_phase(block, split, out); break;
    case WAIT_NAMED: describe_named(block, split, out); break;
    case WAIT_LANES:
        str_printf(out, "lanes 0x%08x wait at `%s` for lanes 0x%08x of their warp", split->mask,
                   opcode_spellings[inst->opcode], split->wait_mask & warp->live & ~split->mask);
        break;
    case WAIT_GROUP: str_printf(out, "waits for its copies"); break;
    case WAIT_MATRIX: describe_matrices(block, warp, split, out); break;
    case WAIT_CLUSTER: describe_cluster(block, out); break;
    case WAIT_REGISTERS:
        str_printf(
            out,
            "waits for registers: setmaxnreg.inc from %u to %llu needs %llu more, but %u are free",
            warp->registers, (unsigned long long)split->wait_address,
            (unsigned long long)(split->wait_address - warp->registers) * LANES, block->pool);
        break;
    case WAIT_MEMORY: str_printf(out, "polls memory that no thread will change"); break;
    case WAIT_NONE: str_printf(out, "can run"); break;
    }
    Actor actor = {.pc = split->pc};
    str_printf(out, " (%s)", name_place(block->machine, &actor));
}

typedef struct Waiter {
    const Warp *warp;
    const Split *split;
    const char *text;
} Waiter;

/* True if these warps of one block and one role wait for the same thing */
static bool alike(const Machine *machine, const Waiter *a, const Waiter *b) {
    return a->warp->block == b->warp->block && !strcmp(a->text, b->text) &&
           role_of_warp(machine, a->warp->index) == role_of_warp(machine, b->warp->index);
}

static const char *warps_phrase(const Machine *machine, const Waiter *waiters, uint32_t count,
                                uint32_t from) {
    Str out = str_new(machine->arena);
    const ManifestRole *role = role_of_warp(machine, waiters[from].warp->index);
    uint32_t same = 0;
    Str list = str_new(machine->arena);
    for (uint32_t i = from; i < count; i++)
        if (alike(machine, &waiters[i], &waiters[from]))
            str_printf(&list, "%s%u", same++ ? ", " : "", waiters[i].warp->index);
    if (role)
        str_printf(&out, "role `%s` (warp%s %s)", role->name, plural(same), list.text);
    else
        str_printf(&out, "%s %s", same > 1 ? "each of warps" : "warp", list.text);
    if (machine->cluster_size > 1) str_printf(&out, " of rank %u", waiters[from].warp->block->rank);
    return out.text;
}

static bool already_reported(const Machine *machine, const Waiter *waiters, uint32_t i) {
    for (uint32_t j = 0; j < i; j++)
        if (alike(machine, &waiters[j], &waiters[i])) return true;
    return false;
}

static void label_waiters(Machine *machine, Diag *diag, const Waiter *waiters, uint32_t count) {
    for (uint32_t i = 1; i < count && diag->label_count < DIAG_MAX_LABELS && diag->has_place; i++) {
        const ManifestMark *mark = mark_of_code(machine, waiters[i].split->pc);
        bool fresh = mark && !already_reported(machine, waiters, i);
        for (int j = 0; fresh && j < diag->label_count; j++)
            fresh = diag->labels[j].span.lo != mark->span.lo ||
                    diag->labels[j].span.hi != mark->span.hi;
        if (fresh)
            diag_label(machine->diags, diag, mark->span, "%s",
                       mark->what ? mark->what : "waits here");
    }
}

static void report_exited(Block *block, Diag *diag) {
    Machine *machine = block->machine;
    Str out = str_new(machine->arena);
    uint32_t count = 0;
    for (uint32_t w = 0; w < block->warp_count; w++) {
        if (block->warps[w].live) continue;
        const ManifestRole *role = role_of_warp(machine, w);
        str_printf(&out, "%s%u", count++ ? ", " : "", w);
        if (role) str_printf(&out, " (`%s`)", role->name);
    }
    const char *rank =
        machine->cluster_size > 1 ? arena_printf(machine->arena, " of rank %u", block->rank) : "";
    if (count)
        diag_note(machine->diags, diag, "warp%s %s%s %s exited", plural(count), out.text, rank,
                  count == 1 ? "has" : "have");
}

/* ---- who arrived ----------------------------------------------------------------------------- */

enum { MOST_ARRIVALS = 8 };

/* "role `load` (warp 0) at PTX line 20, a copy of warp 1 of PTX line 24 (4096 bytes)" */
static void describe_arrivals(const Machine *machine, const BarrierUses *arrivals, Str *out) {
    size_t count = arrivals->items.count;
    for (size_t i = 0; i < count && i < MOST_ARRIVALS; i++) {
        const BarrierUse *one = &arrivals->items.items[i];
        Actor actor = {.rank = one->rank, .warp = one->warp, .pc = one->pc, .async = one->async};
        str_add(out, i > 0 ? ", " : "");
        name_actor(machine, &actor, out);
        str_printf(out, " at %s", name_place(machine, &actor));
        if (one->bytes) str_printf(out, " (%llu bytes)", (unsigned long long)one->bytes);
    }
    if (count == 0) str_add(out, "nothing");
    if (count > MOST_ARRIVALS) str_printf(out, " and %zu others", count - MOST_ARRIVALS);
}

static void report_arrivals(Machine *machine, const Barrier *barrier, Diag *diag) {
    Str out = str_new(machine->arena);
    str_printf(&out, "at %s: in phase %llu ",
               name_barrier(machine, barrier->home, barrier->address),
               (unsigned long long)barrier->generation);
    describe_arrivals(machine, barrier->now, &out);
    str_add(&out, " arrived");
    if (barrier->generation > 0) {
        str_printf(&out, ", in phase %llu ", (unsigned long long)barrier->generation - 1);
        describe_arrivals(machine, barrier->last, &out);
    }
    diag_note(machine->diags, diag, "%s", out.text);
}

static const Barrier *awaited(const Waiter *waiter) {
    return waiter->split->wait == WAIT_PHASE
               ? waiter->warp->block->barriers[(waiter->split->wait_address - SHARED_BASE) / 8]
               : NULL;
}

/* Each mbarrier that somebody waits for: those that have arrived, and those that did so in the
 * phase before, and so could arrive */
static void report_barriers(Machine *machine, const Waiter *waiters, uint32_t count, Diag *diag) {
    for (uint32_t i = 0; i < count; i++) {
        const Barrier *barrier = awaited(&waiters[i]);
        bool fresh = barrier != NULL;
        for (uint32_t j = 0; j < i && fresh; j++) fresh = awaited(&waiters[j]) != barrier;
        if (fresh) report_arrivals(machine, barrier, diag);
    }
}

/* The splits of a cluster that wait; those that show the cause come first. */
static uint32_t collect_waiters(const Cluster *cluster, Waiter *waiters, Wait first_wait) {
    uint32_t count = 0, first = 0;
    for (uint32_t b = 0; b < cluster->size; b++)
        for (uint32_t w = 0; w < cluster->blocks[b]->warp_count; w++)
            for (uint32_t s = 0; s < cluster->blocks[b]->warps[w].split_count; s++) {
                Block *block = cluster->blocks[b];
                const Split *split = &block->warps[w].splits[s];
                Str text = str_new(block->machine->arena);
                describe(block, &block->warps[w], split, &text);
                waiters[count] = (Waiter){&block->warps[w], split, text.text};
                if (split->wait == first_wait) {
                    Waiter swap = waiters[first];
                    waiters[first++] = waiters[count];
                    waiters[count] = swap;
                }
                count++;
            }
    return count;
}

static bool has_waiter(const Cluster *cluster, Wait wait) {
    for (uint32_t b = 0; b < cluster->size; b++)
        for (uint32_t w = 0; w < cluster->blocks[b]->warp_count; w++)
            for (uint32_t s = 0; s < cluster->blocks[b]->warps[w].split_count; s++)
                if (cluster->blocks[b]->warps[w].splits[s].wait == wait) return true;
    return false;
}

/* True if a split waits for lanes that are only blocked by lanes of their own warp: if those
 * wait for a stage, that is the cause. */
static bool lanes_diverged(const Cluster *cluster) {
    for (uint32_t b = 0; b < cluster->size; b++)
        for (uint32_t w = 0; w < cluster->blocks[b]->warp_count; w++) {
            const Warp *warp = &cluster->blocks[b]->warps[w];
            uint32_t wanted = 0, held_up = 0;
            for (uint32_t s = 0; s < warp->split_count; s++) {
                const Split *split = &warp->splits[s];
                bool for_others = split->wait != WAIT_LANES && split->wait != WAIT_NAMED &&
                                  split->wait != WAIT_CLUSTER;
                if (split->wait == WAIT_LANES) wanted |= split->wait_mask & ~split->mask;
                if (for_others) held_up |= split->mask;
            }
            if (wanted & ~held_up) return true;
        }
    return false;
}

void report_deadlock(Cluster *cluster) {
    Machine *machine = cluster->blocks[0]->machine;
    Code code = P0730;
    const char *what = "deadlock: nothing can run and nothing is in flight";
    Wait first = WAIT_NONE;
    if (lanes_diverged(cluster)) {
        code = P0732;
        what = "the lanes of a warp diverged before an instruction that needs all of them";
        first = WAIT_LANES;
    } else if (has_waiter(cluster, WAIT_REGISTERS)) {
        code = P0733;
        what = "setmaxnreg asks for more registers than the block has";
        first = WAIT_REGISTERS;
    }
    Waiter *waiters = NEW_ARRAY(machine->arena, Waiter,
                                (size_t)cluster->size * cluster->blocks[0]->warp_count * LANES);
    uint32_t count = collect_waiters(cluster, waiters, first);
    uint32_t pc = waiters[0].split->pc;
    Diag *diag = diag_of_code(machine, code, pc, what);
    for (uint32_t i = 0; i < count; i++)
        if (!already_reported(machine, waiters, i))
            diag_note(machine->diags, diag, "%s %s", warps_phrase(machine, waiters, count, i),
                      waiters[i].text);
    report_barriers(machine, waiters, count, diag);
    label_waiters(machine, diag, waiters, count);
    for (uint32_t b = 0; b < cluster->size; b++) report_exited(cluster->blocks[b], diag);
    note_run(machine, diag, waiters[0].warp->block->index, pc);
    machine->status = RUN_FINDING;
}
