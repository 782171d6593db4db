/* The strong accesses to flags, in tables of fixed size: an entry is replaced by a newer one. */
#include "emulator/races/flags.h"

/* The last fences of a lane, by scope */
typedef struct LaneMarks {
    FlagFence released[REACHES], acquired[REACHES];
} LaneMarks;

static uint64_t next_serial(Machine *machine) { return ++machine->flag_serial; }

static uint32_t mix(uint64_t a, uint64_t b) {
    uint64_t hash = (a * UINT64_C(0x9e3779b97f4a7c15)) ^ (b * UINT64_C(0xd1b54a32d192ed03));
    return (uint32_t)(hash >> 40);
}

static uint32_t slot_of(uint64_t word, uint64_t cluster, uint32_t rank) {
    return mix(word, cluster * MAX_CLUSTER + rank) % FLAG_WRITES;
}

static void new_writes(Machine *machine) {
    machine->flag_writes = NEW_ARRAY(machine->arena, FlagWrite, FLAG_WRITES);
    machine->flag_fences = NEW_ARRAY(machine->arena, FlagFence, FLAG_WRITES * REACHES);
}

static void note_write(Warp *warp, uint32_t lane, uint32_t pc, uint64_t word) {
    Machine *machine = warp->block->machine;
    Epoch epoch = order_epoch(warp, lane);
    if (!machine->flag_writes) new_writes(machine);
    uint64_t cluster = order_cluster(warp->block->cluster);
    uint32_t slot = slot_of(word, cluster, warp->block->rank);
    FlagFence *released = NULL;
    if (warp->marks) {
        released = &machine->flag_fences[REACHES * slot];
        memcpy(released, warp->marks[lane].released, REACHES * sizeof *released);
    }
    machine->flag_writes[slot] = (FlagWrite){.word = word,
                                             .cluster = cluster,
                                             .serial = next_serial(machine),
                                             .rank = warp->block->rank,
                                             .component = epoch.component,
                                             .time = epoch.time,
                                             .pc = pc,
                                             .released = released};
}

static void note_read(Warp *warp, uint32_t lane, uint32_t pc, uint64_t address, uint32_t bytes,
                      uint64_t serial) {
    Machine *machine = warp->block->machine;
    uint32_t component = order_epoch(warp, lane).component;
    uint64_t cluster = order_cluster(warp->block->cluster);
    if (!machine->flag_reads) machine->flag_reads = NEW_ARRAY(machine->arena, FlagRead, FLAG_READS);
    uint32_t slot = mix(address + cluster, (uint64_t)component << 32 | pc) % FLAG_READS;
    machine->flag_reads[slot] = (FlagRead){.address = address,
                                           .cluster = cluster,
                                           .serial = serial,
                                           .bytes = bytes,
                                           .component = component,
                                           .pc = pc};
}

void flags_use(Warp *warp, const Inst *inst, uint32_t lane, uint64_t address, uint32_t bytes,
               FlagUse use) {
    if (!warp->order) return;
    Machine *machine = warp->block->machine;
    uint32_t pc = (uint32_t)(inst - warp->block->program->code);
    if (use != FLAG_STORE) note_read(warp, lane, pc, address, bytes, next_serial(machine));
    for (uint64_t word = address / 4; use != FLAG_LOAD && word <= (address + bytes - 1) / 4; word++)
        note_write(warp, lane, pc, word);
}

void flags_fence(Warp *warp, uint32_t mask, const Inst *inst) {
    bool proxy = inst->mods.flags & FLAG_PROXY, inits = inst->mods.choice == FENCE_MBARRIER_INIT;
    Order kind = (Order)inst->mods.order;
    if (!warp->order || inits || (proxy && kind == ORDER_NONE)) return;
    Machine *machine = warp->block->machine;
    if (!warp->marks) warp->marks = NEW_ARRAY(machine->arena, LaneMarks, LANES);
    FlagFence fence = {.cluster = order_cluster(warp->block->cluster),
                       .serial = next_serial(machine),
                       .pc = (uint32_t)(inst - warp->block->program->code)};
    uint32_t reach = order_reach((Scope)inst->mods.scope);
    for (; mask; mask &= mask - 1) {
        LaneMarks *marks = &warp->marks[first_lane(mask)];
        fence.time = order_epoch(warp, first_lane(mask)).time;
        if (kind != ORDER_ACQUIRE) marks->released[reach] = fence;
        if (kind != ORDER_RELEASE) marks->acquired[reach] = fence;
    }
}

const FlagWrite *flags_written(const Machine *machine, uint64_t word, uint64_t cluster,
                               uint32_t rank) {
    if (!machine->flag_writes) return NULL;
    const FlagWrite *write = &machine->flag_writes[slot_of(word, cluster, rank)];
    bool found =
        write->serial && write->word == word && write->cluster == cluster && write->rank == rank;
    return found ? write : NULL;
}

const FlagWrite *flags_last_written(const Machine *machine, uint64_t word, uint64_t serial) {
    const FlagWrite *newest = NULL;
    for (uint32_t i = 0; machine->flag_writes && i < FLAG_WRITES; i++) {
        const FlagWrite *write = &machine->flag_writes[i];
        if (!write->serial || write->word != word || write->serial >= serial) continue;
        if (!newest || write->serial > newest->serial) newest = write;
    }
    return newest;
}

const FlagRead *flags_read_before(const Machine *machine, uint64_t cluster, uint64_t serial) {
    const FlagRead *newest = NULL;
    for (uint32_t i = 0; machine->flag_reads && i < FLAG_READS; i++) {
        const FlagRead *read = &machine->flag_reads[i];
        if (!read->serial || read->cluster != cluster || read->serial >= serial) continue;
        if (!newest || read->serial > newest->serial) newest = read;
    }
    return newest;
}

const FlagFence *flags_acquired(const Warp *warp, uint32_t lane, uint32_t reach) {
    const FlagFence *newest = NULL;
    uint64_t own = order_cluster(warp->block->cluster);
    for (; warp->marks && reach < REACHES; reach++) {
        const FlagFence *fence = &warp->marks[lane].acquired[reach];
        if (!fence->serial || fence->cluster != own) continue;
        if (!newest || fence->serial > newest->serial) newest = fence;
    }
    return newest;
}
