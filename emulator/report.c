/* Text of findings: who (role, warp, lane), what, where (`.pipe` place, PTX line), which stage
 * of which pipe.
 *
 * The names come from the manifest: ranges of shared memory, roles by warp, marks by PTX line.
 * Findings in foreign PTX name only warps, addresses and PTX lines. */
#include "machine.h"

static const ManifestMark *mark_of(const Machine *machine, uint32_t line) {
    const ManifestMark *best = NULL;
    for (size_t i = 0; i < machine->manifest->marks.count; i++)
        if (machine->manifest->marks.items[i].line <= line)
            best = &machine->manifest->marks.items[i];
    return best;
}

static const ManifestRole *role_of(const Machine *machine, uint32_t warp) {
    for (size_t i = 0; i < machine->manifest->roles.count; i++) {
        const ManifestRole *role = &machine->manifest->roles.items[i];
        if (warp >= (uint32_t)role->first_warp &&
            warp - (uint32_t)role->first_warp < (uint32_t)role->warps)
            return role;
    }
    return NULL;
}

/* "line 12 of the PTX: `ld.shared ...`" */
static const char *quote(const Machine *machine, uint32_t line) {
    const char *at = machine->program->text, *end = at + machine->program->length;
    for (uint32_t n = 1; n < line && at < end; n++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        at = newline ? newline + 1 : end;
    }
    while (at < end && (*at == ' ' || *at == '\t')) at++;
    size_t length = 0;
    while (at + length < end && at[length] != '\n' && length < 110) length++;
    while (length > 0 && (at[length - 1] == ' ' || at[length - 1] == '\r')) length--;
    return arena_printf(machine->arena, "PTX line %u: `%.*s`", line, (int)length, at);
}

/* ---- shared memory --------------------------------------------------------------------------- */

typedef struct Named {
    const ManifestShared *range;
    uint32_t stage, byte;
} Named;

static Named name_shared(const Machine *machine, uint64_t address) {
    Named named = {0};
    if (address < machine->dynamic_base) return named;
    uint64_t offset = address - machine->dynamic_base;
    for (size_t i = 0; i < machine->manifest->shared.count && !named.range; i++) {
        const ManifestShared *range = &machine->manifest->shared.items[i];
        bool barrier = range->kind == SHARED_FULL || range->kind == SHARED_EMPTY;
        uint64_t stride = barrier ? 8 : range->stride, bytes = barrier ? 8 : range->bytes;
        for (uint32_t stage = 0; stage < range->stages; stage++)
            if (offset - range->offset - stage * stride < bytes &&
                offset >= range->offset + stage * stride) {
                named = (Named){range, stage, (uint32_t)(offset - range->offset - stage * stride)};
                break;
            }
    }
    return named;
}

const char *report_shared(const Machine *machine, Arena *arena, uint64_t address) {
    Named named = name_shared(machine, address);
    const ManifestShared *range = named.range;
    if (!range) return NULL;
    const char *pipe = range->pipe ? range->pipe : "?", *field = range->field ? range->field : "?";
    switch (range->kind) {
    case SHARED_FULL:
        return arena_printf(arena, "the full barrier of stage %u of `%s`", named.stage, pipe);
    case SHARED_EMPTY:
        return arena_printf(arena, "the empty barrier of stage %u of `%s`", named.stage, pipe);
    case SHARED_FIELD:
        return arena_printf(arena, "byte %u of field `%s`, stage %u of `%s`", named.byte, field,
                            named.stage, pipe);
    case SHARED_TILE: return arena_printf(arena, "byte %u of the tile `%s`", named.byte, field);
    case SHARED_SCRATCH:
        return arena_printf(arena, "byte %u of the scratch of `%s`", named.byte,
                            range->field ? field : pipe);
    }
    return NULL;
}

/* ---- findings -------------------------------------------------------------------------------- */

static void describe_agent(const Machine *machine, Agent agent, Str *out) {
    const ManifestRole *role = role_of(machine, agent.warp->index);
    bool matrix = machine->program->code[agent.pc].opcode == OP_WGMMA;
    if (agent.async) str_add(out, matrix ? "a wgmma of " : "a copy of ");
    if (role)
        str_printf(out, "role `%s` (warp %u)", role->name, agent.warp->index);
    else
        str_printf(out, "warp %u", agent.warp->index);
    if (machine->cluster_size > 1) str_printf(out, " of rank %u", agent.warp->block->rank);
}

static Diag *diag_of(Machine *machine, Code code, uint32_t line, const char *message) {
    const ManifestMark *mark = mark_of(machine, line);
    if (!mark || !machine->diags->source) return diag_plain(machine->diags, code, "%s", message);
    Diag *diag = diag_at(machine->diags, code, mark->span, "%s", message);
    if (mark->what) diag_primary(machine->diags, diag, "%s", mark->what);
    return diag;
}

static void note_place(Machine *machine, const Block *block, Diag *diag, uint32_t line) {
    diag_note(machine->diags, diag, "%s", quote(machine, line));
    if (machine->blocks > 1)
        diag_note(machine->diags, diag, "in block %llu of %llu", (unsigned long long)block->index,
                  (unsigned long long)machine->blocks);
    if (machine->seed)
        diag_note(machine->diags, diag, "schedule of seed %llu", (unsigned long long)machine->seed);
}

static void report(Block *block, Code code, Agent agent, const char *format, va_list args) {
    Machine *machine = block->machine;
    Str message = str_new(machine->arena);
    uint32_t line = machine->program->code[agent.pc].line;
    describe_agent(machine, agent, &message);
    str_add(&message, ": ");
    str_vprintf(&message, format, args);
    note_place(machine, agent.warp->block, diag_of(machine, code, line, message.text), line);
    machine->status = RUN_FINDING;
}

bool finding(Block *block, Code code, Agent agent, const char *format, ...) {
    va_list args;
    va_start(args, format);
    report(block, code, agent, format, args);
    va_end(args);
    return false;
}

Step fault(Block *block, Code code, Agent agent, const char *format, ...) {
    va_list args;
    va_start(args, format);
    report(block, code, agent, format, args);
    va_end(args);
    return STEP_FAULT;
}

/* ---- deadlocks ------------------------------------------------------------------------------- */

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

static void describe_phase(Block *block, const Split *split, Str *out) {
    Machine *machine = block->machine;
    const Barrier *barrier = block->barriers[(split->wait_address - SHARED_BASE) / 8];
    Named named = name_shared(machine, split->wait_address);
    const char *pipe = named.range && named.range->pipe ? named.range->pipe : NULL;
    if (pipe && named.range->kind == SHARED_FULL)
        str_printf(out, "waits for a full stage of `%s`, stage %u", pipe, named.stage);
    else if (pipe && named.range->kind == SHARED_EMPTY)
        str_printf(out, "waits for an empty stage of `%s`, stage %u", pipe, named.stage);
    else
        str_printf(out, "waits for the mbarrier at shared address %llu",
                   (unsigned long long)split->wait_address);
    str_printf(out, ", phase %llu (parity %llu): missing %u of %u arrival%s",
               (unsigned long long)barrier->generation,
               (unsigned long long)(barrier->generation & 1), barrier->pending, barrier->count,
               plural(barrier->count));
    if (barrier->tx) str_printf(out, " and %lld bytes", (long long)barrier->tx);
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
    const NamedBarrier *named = &block->named[split->wait_address % NAMED_BARRIERS];
    switch (split->wait) {
    case WAIT_PHASE: describe_phase(block, split, out); break;
    case WAIT_NAMED:
        str_printf(out, "waits at named barrier %llu: %u of %u threads have arrived",
                   (unsigned long long)split->wait_address, named->arrived,
                   named->whole_block ? block->running * LANES : named->expected);
        break;
    case WAIT_LANES:
        str_printf(out, "lanes 0x%08x wait at `%s` for lanes 0x%08x of their warp", split->mask,
                   opcode_spellings[inst->opcode], split->wait_mask & warp->live & ~split->mask);
        break;
    case WAIT_GROUP: str_printf(out, "waits for its copies"); break;
    case WAIT_MATRIX: describe_matrices(block, warp, split, out); break;
    case WAIT_CLUSTER: str_printf(out, "waits at the cluster barrier"); break;
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
    str_printf(out, " (PTX line %u)", inst->line);
}

typedef struct Waiter {
    const Warp *warp;
    const Split *split;
    const char *text;
} Waiter;

/* True if these warps of one block and one role wait for the same thing */
static bool alike(const Machine *machine, const Waiter *a, const Waiter *b) {
    return a->warp->block == b->warp->block && !strcmp(a->text, b->text) &&
           role_of(machine, a->warp->index) == role_of(machine, b->warp->index);
}

static const char *warps_phrase(const Machine *machine, const Waiter *waiters, uint32_t count,
                                uint32_t from) {
    Str out = str_new(machine->arena);
    const ManifestRole *role = role_of(machine, waiters[from].warp->index);
    uint32_t same = 0;
    Str list = str_new(machine->arena);
    for (uint32_t i = from; i < count; i++)
        if (alike(machine, &waiters[i], &waiters[from]))
            str_printf(&list, "%s%u", same++ ? ", " : "", waiters[i].warp->index);
    if (role)
        str_printf(&out, "role `%s` (warp%s %s)", role->name, plural(same), list.text);
    else
        str_printf(&out, "warp%s %s", plural(same), list.text);
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
        const ManifestMark *mark =
            mark_of(machine, machine->program->code[waiters[i].split->pc].line);
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
        const ManifestRole *role = role_of(machine, w);
        str_printf(&out, "%s%u", count++ ? ", " : "", w);
        if (role) str_printf(&out, " (`%s`)", role->name);
    }
    const char *rank =
        machine->cluster_size > 1 ? arena_printf(machine->arena, " of rank %u", block->rank) : "";
    if (count)
        diag_note(machine->diags, diag, "warp%s %s%s %s exited", plural(count), out.text, rank,
                  count == 1 ? "has" : "have");
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
    uint32_t line = machine->program->code[waiters[0].split->pc].line;
    Diag *diag = diag_of(machine, code, line, what);
    for (uint32_t i = 0; i < count; i++)
        if (!already_reported(machine, waiters, i))
            diag_note(machine->diags, diag, "%s %s", warps_phrase(machine, waiters, count, i),
                      waiters[i].text);
    label_waiters(machine, diag, waiters, count);
    for (uint32_t b = 0; b < cluster->size; b++) report_exited(cluster->blocks[b], diag);
    note_place(machine, waiters[0].warp->block, diag, line);
    machine->status = RUN_FINDING;
}
