/* The grid: makes the blocks of clusters, gives them their registers and shared memory, and runs
 * the clusters, one after the other unless one waits for another. */
#include "emulator/findings/demangle.h"
#include "emulator/order/order.h"
#include "emulator/races/race.h"
#include "emulator/order/steps.h"

/* MOST_YIELDED: so many clusters that have yielded wait before they go on: enough for one that
 * looks at two before it, few for the memory and the caches of the host */
enum { REGISTERS_OF_AN_SM = 65536, MOST_YIELDED = 4 };

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Registers per thread at the start, as ptxas allocates them if setmaxnreg is used. 0: ptxas
 * ignores setmaxnreg (C7508), because it needs .maxnreg, .reqntid or .maxntid. */
static uint32_t entry_registers(const Machine *machine) {
    const Program *program = machine->program;
    if (program->most_registers) return program->most_registers;
    if (!program->required_block[0] && !program->most_threads) return 0;
    uint32_t blocks = program->least_blocks ? program->least_blocks : 1,
             threads = (machine->threads + 127) / 128 * 128,
             share = REGISTERS_OF_AN_SM / blocks / threads / 8 * 8;
    return share > 255 ? 255 / 8 * 8 : share;
}

static Matrices *new_matrices(Arena *arena, const Program *program) {
    Matrices *matrices = NEW(arena, Matrices);
    matrices->group = NEW_ARRAY(arena, uint32_t, program->slots);
    matrices->user = NEW_ARRAY(arena, const Inst *, program->slots);
    matrices->written = NEW_ARRAY(arena, uint32_t, program->slots);
    return matrices;
}

/* The constants of a block in a cluster: shared addresses contain its own rank. */
static unsigned char *own_constants(const Machine *machine, uint32_t rank) {
    const Program *program = machine->program;
    if (machine->cluster_size == 1) return program->constants;
    unsigned char *own = arena_alloc(machine->arena, program->constant_bytes + 1u);
    if (program->constant_bytes > 0) memcpy(own, program->constants, program->constant_bytes);
    for (size_t i = 0; i < program->shared_addresses.count; i++)
        for (uint32_t lane = 0; lane < LANES; lane++) {
            const SharedAddress *at = &program->shared_addresses.items[i];
            uint64_t value = 0;
            memcpy(&value, own + at->offset + lane * at->width, at->width);
            value |= (uint64_t)(rank + 1) << RANK_SHIFT;
            memcpy(own + at->offset + lane * at->width, &value, at->width);
        }
    return own;
}

static Block *new_block(Machine *machine, uint32_t rank) {
    Arena *arena = machine->arena;
    const Program *program = machine->program;
    Block *block = NEW(arena, Block);
    block->machine = machine;
    block->program = program;
    block->rank = rank;
    unsigned char *constants = own_constants(machine, rank);
    block->warp_count = (machine->threads + LANES - 1) / LANES;
    block->shared_bytes = machine->dynamic_base + machine->dynamic_bytes - SHARED_BASE;
    block->shared = arena_alloc(arena, block->shared_bytes + 1u);
    block->shared_state = arena_alloc(arena, block->shared_bytes + 1u);
    block->barrier_slots = block->shared_bytes / 8;
    block->barriers = NEW_ARRAY(arena, Barrier *, block->barrier_slots + 1);
    block->warps = NEW_ARRAY(arena, Warp, block->warp_count);
    for (uint32_t w = 0; w < block->warp_count; w++) {
        Warp *warp = &block->warps[w];
        warp->banks[BANK_REGISTERS] = arena_alloc(arena, program->register_bytes);
        warp->banks[BANK_CONSTANTS] = constants;
        warp->valid = NEW_ARRAY(arena, uint32_t, program->slots);
        warp->local = arena_alloc(arena, (size_t)program->local_bytes * LANES + 1);
        warp->local_state = arena_alloc(arena, (size_t)program->local_bytes * LANES + 1);
        warp->block = block;
        if (program->multiplies) warp->matrices = new_matrices(arena, program);
    }
    return block;
}

static Cluster *new_cluster(Machine *machine) {
    Cluster *cluster = NEW(machine->arena, Cluster);
    cluster->size = machine->cluster_size;
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        cluster->blocks[rank] = new_block(machine, rank);
        cluster->blocks[rank]->cluster = cluster;
    }
    vec_push(machine->arena, &machine->made, cluster);
    return cluster;
}

enum {
#define SPECIAL(name, spelling, bytes) SPECIAL_##name,
#include "emulator/text/specials.def"
#undef SPECIAL
    SPECIAL_COUNT
};

/* Coordinate `axis` of position `index` in a box of these extents, counted along x first */
static uint32_t coordinate(uint64_t index, const uint32_t *extents, int axis) {
    for (int i = 0; i < axis; i++) index /= extents[i];
    return (uint32_t)(index % extents[axis]);
}

/* Coordinates of a block. Blocks are counted cluster by cluster. */
static void place_block(const Machine *machine, uint64_t block, uint32_t *at) {
    uint64_t cluster = block / machine->cluster_size, rank = block % machine->cluster_size;
    for (int i = 0; i < 3; i++)
        at[i] = coordinate(cluster, machine->clusters, i) * machine->cluster[i] +
                coordinate(rank, machine->cluster, i);
}

static uint64_t special_value(const Block *block, const Warp *warp, int which, uint32_t lane) {
    const Machine *machine = block->machine;
    switch (which) {
    case SPECIAL_TID_X:
    case SPECIAL_TID_Y:
    case SPECIAL_TID_Z:
        return coordinate(warp->index * LANES + lane, machine->block, which - SPECIAL_TID_X);
    case SPECIAL_NTID_X:
    case SPECIAL_NTID_Y:
    case SPECIAL_NTID_Z: return machine->block[which - SPECIAL_NTID_X];
    case SPECIAL_CTAID_X:
    case SPECIAL_CTAID_Y:
    case SPECIAL_CTAID_Z: return block->at[which - SPECIAL_CTAID_X];
    case SPECIAL_NCTAID_X:
    case SPECIAL_NCTAID_Y:
    case SPECIAL_NCTAID_Z: return machine->grid[which - SPECIAL_NCTAID_X];
    case SPECIAL_CLUSTERID_X:
    case SPECIAL_CLUSTERID_Y:
    case SPECIAL_CLUSTERID_Z:
        return block->at[which - SPECIAL_CLUSTERID_X] /
               machine->cluster[which - SPECIAL_CLUSTERID_X];
    case SPECIAL_NCLUSTERID_X:
    case SPECIAL_NCLUSTERID_Y:
    case SPECIAL_NCLUSTERID_Z: return machine->clusters[which - SPECIAL_NCLUSTERID_X];
    case SPECIAL_CLUSTER_CTAID_X:
    case SPECIAL_CLUSTER_CTAID_Y:
    case SPECIAL_CLUSTER_CTAID_Z:
        return coordinate(block->rank, machine->cluster, which - SPECIAL_CLUSTER_CTAID_X);
    case SPECIAL_CLUSTER_NCTAID_X:
    case SPECIAL_CLUSTER_NCTAID_Y:
    case SPECIAL_CLUSTER_NCTAID_Z: return machine->cluster[which - SPECIAL_CLUSTER_NCTAID_X];
    case SPECIAL_CLUSTER_RANK: return block->rank;
    case SPECIAL_CLUSTER_COUNT: return machine->cluster_size;
    case SPECIAL_NSMID: return 1;
    case SPECIAL_LANEID: return lane;
    case SPECIAL_WARPID: return warp->index;
    case SPECIAL_NWARPID: return block->warp_count;
    case SPECIAL_MASK_EQ: return 1u << lane;
    case SPECIAL_MASK_LT: return (1u << lane) - 1;
    case SPECIAL_MASK_LE: return (2u << lane) - 1;
    case SPECIAL_MASK_GT: return ~((2u << lane) - 1);
    case SPECIAL_MASK_GE: return ~((1u << lane) - 1);
    case SPECIAL_DYNAMIC_SHARED: return machine->dynamic_bytes;
    case SPECIAL_TOTAL_SHARED: return block->shared_bytes;
    case SPECIAL_ENVIRONMENT_1: return machine->launch->workspace >> 32;
    case SPECIAL_ENVIRONMENT_2: return machine->launch->workspace & UINT32_MAX;
    default: return 0;
    }
}

static void start_warp(const Block *block, Warp *warp, uint32_t index) {
    const Program *program = block->program;
    Warp fresh = {.block = warp->block,
                  .matrices = warp->matrices,
                  .calls = warp->calls,
                  .banks = {warp->banks[0], warp->banks[1]},
                  .valid = warp->valid,
                  .test_registers = warp->test_registers,
                  .snapshot = warp->snapshot,
                  .local = warp->local,
                  .local_state = warp->local_state,
                  .steps = warp->steps,
                  .order = warp->order,
                  .marks = warp->marks};
    *warp = fresh;
    warp->index = index;
    uint32_t left = block->machine->threads - index * LANES;
    warp->live = left >= LANES ? ALL_LANES : (1u << left) - 1;
    warp->splits[0].mask = warp->live;
    warp->split_count = 1;
    warp->split = &warp->splits[0];
    warp->registers = entry_registers(block->machine);
    memset(warp->valid, 0, program->slots * sizeof *warp->valid);
    /* Registers that were never written are NaN in every float type */
    memset(warp->banks[BANK_REGISTERS], 0xff, program->register_bytes);
    memset(warp->local_state, 0, (size_t)program->local_bytes * LANES);
    if (warp->matrices) {
        Matrices *old = warp->matrices;
        memset(old->group, 0, program->slots * sizeof *old->group);
        memset(old->written, 0, program->slots * sizeof *old->written);
        *old = (Matrices){.group = old->group, .user = old->user, .written = old->written};
    }
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        if (!program->specials[i]) continue;
        warp->valid[program->special_slots[i]] = ALL_LANES;
        if (i == SPECIAL_EXPLICIT_CLUSTER) {
            uint32_t bits = block->machine->explicit_cluster ? ALL_LANES : 0;
            memcpy(warp->banks[BANK_REGISTERS] + program->specials[i], &bits, sizeof bits);
            continue;
        }
        for (uint32_t lane = 0; lane < LANES; lane++) {
            uint64_t value = special_value(block, warp, i, lane);
            size_t bytes = i == SPECIAL_GRIDID ? 8 : 4;
            memcpy(warp->banks[BANK_REGISTERS] + program->specials[i] + lane * bytes, &value,
                   bytes);
        }
    }
}

static void start_block(Block *block, uint64_t index) {
    block->index = index;
    place_block(block->machine, index, block->at);
    block->running = block->warp_count;
    block->next_warp = 0;
    memset(block->shared, 0xff, block->shared_bytes);
    memset(block->shared_state, 0, block->shared_bytes);
    for (uint32_t i = 0; i < block->barrier_slots; i++)
        if (block->barriers[i]) barrier_clear(block->barriers[i]);
    memset(block->named, 0, sizeof block->named);
    for (uint32_t i = 0; i < MAX_WARPGROUPS; i++)
        block->warpgroups[i] = (Warpgroup){.spare = block->warpgroups[i].spare};
    block->unwaited = 0;
    block->exited = false;
    race_clear(block);
    if (block->remote)
        memset(block->remote, 0, block->cluster->size * block->warp_count * sizeof *block->remote);
    block->pool = 0;
    schedule_start(block);
    block->clock = 1000;
    for (uint32_t w = 0; w < block->warp_count; w++) start_warp(block, &block->warps[w], w);
}

static void start_cluster(Cluster *cluster, uint64_t first) {
    cluster->next_block = 0;
    cluster->drew = cluster->polls = false;
    if (cluster->polled)
        memset(cluster->polled, 0, cluster->blocks[0]->program->count * sizeof(bool));
    for (uint32_t rank = 0; rank < cluster->size; rank++)
        start_block(cluster->blocks[rank], first + rank);
    order_start(cluster, first);
    steps_start(cluster);
}

/* ---- the grid -------------------------------------------------------------------------------- */

typedef struct Grid {
    Machine *machine;
    /* suspended clusters: they poll memory that another cluster may change */
    Cluster **waiting;
    uint32_t waiting_count;
    uint32_t yielded; /* those of them that can go on */
    Cluster *spare[64];
    uint32_t spare_count;
    uint64_t started; /* number of blocks */
} Grid;

static bool run_one(Grid *grid, Cluster *cluster, bool last_chance) {
    uint64_t effects = cluster->effects;
    ClusterState state = schedule_run(cluster, last_chance);
    grid->machine->effects += cluster->effects - effects;
    if (state == CLUSTER_STOPPED || !race_finish(grid->machine)) return false;
    if (state != CLUSTER_DONE) {
        grid->yielded += state == CLUSTER_YIELDS;
        grid->waiting[grid->waiting_count++] = cluster;
        return true;
    }
    Machine *machine = grid->machine;
    machine->done += cluster->size;
    machine->settled.instructions = machine->instructions - machine->settled.first;
    machine->settled.begun = machine->begun - machine->settled.before;
    if (grid->spare_count < COUNT_OF(grid->spare)) grid->spare[grid->spare_count++] = cluster;
    return true;
}

/* Runs the suspended clusters again whenever something has changed; `last`: nothing else will
 * change. If some of them have yielded at a poll, the one that began last is the first to go on: it
 * looks at clusters that have published a part of their results and have not ended. */
static bool run_waiting(Grid *grid, bool last) {
    uint32_t count = grid->waiting_count;
    for (uint32_t i = 0; i < count / 2 && grid->yielded && !grid->machine->seed; i++) {
        Cluster *other = grid->waiting[count - 1 - i];
        grid->waiting[count - 1 - i] = grid->waiting[i];
        grid->waiting[i] = other;
    }
    grid->waiting_count = grid->yielded = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!run_one(grid, grid->waiting[i], last && i == 0)) return false;
    return true;
}

bool grid_give_up(Machine *machine, const char *why) {
    Diag *diag =
        diag_plain(machine->diags, P0760, "the emulation stopped %s, after %llu warp instructions",
                   why, (unsigned long long)machine->instructions);
    const char *launch = machine->launch_count > 1
                             ? arena_printf(machine->arena, " in launch %zu of %zu",
                                            machine->launch_index + 1, machine->launch_count)
                             : "";
    diag_note(machine->diags, diag, "%llu of %llu blocks of kernel `%s` have ended%s",
              (unsigned long long)machine->done, (unsigned long long)machine->blocks,
              demangle_or_keep(machine->arena, machine->program->entry), launch);
    machine->status = RUN_INCOMPLETE;
    return false;
}

static bool run_clusters(Grid *grid) {
    Machine *machine = grid->machine;
    uint32_t size = machine->cluster_size, resident = machine->resident;
    if (machine->launch->workspace) resident = (uint32_t)machine->blocks;
    uint32_t most = resident / size ? resident / size : 1;
    grid->waiting = NEW_ARRAY(machine->arena, Cluster *, most);
    while (machine->done < machine->blocks) {
        if (grid->started < machine->blocks && grid->waiting_count < most &&
            (machine->seed || grid->yielded < MOST_YIELDED)) {
            if (machine->options->blocks && machine->begun + size > machine->options->blocks)
                return grid_give_up(machine, "before further blocks");
            Cluster *cluster =
                grid->spare_count ? grid->spare[--grid->spare_count] : new_cluster(machine);
            start_cluster(cluster, grid->started);
            grid->started += size;
            machine->begun += size;
            if (!run_one(grid, cluster, false)) return false;
            continue;
        }
        uint64_t effects = machine->effects, done = machine->done;
        if (!run_waiting(grid, false)) return false;
        /* what a cluster waits for may be done by one that has yielded, or has not begun */
        bool more =
            grid->yielded || (grid->started < machine->blocks && grid->waiting_count < most);
        if (machine->effects == effects && machine->done == done && !more &&
            !run_waiting(grid, true))
            return false;
    }
    return true;
}

bool grid_run(Machine *machine) {
    Grid grid = {.machine = machine};
    order_launch(machine, machine->blocks / machine->cluster_size, machine->launch->programmatic);
    return run_clusters(&grid);
}

const char *grid_place(const Machine *machine, uint64_t block) {
    uint32_t at[3];
    if (machine->grid[1] == 1 && machine->grid[2] == 1)
        return arena_printf(machine->arena, "in block %llu of %llu", (unsigned long long)block,
                            (unsigned long long)machine->blocks);
    place_block(machine, block, at);
    return arena_printf(machine->arena, "in block (%u, %u, %u) of %s", at[0], at[1], at[2],
                        extents_text(machine->arena, machine->grid));
}
