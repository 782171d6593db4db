/* The public functions: a Launch in, results in its arrays, findings in the diagnostics.
 *
 * Reads the PTX, lays out the arrays in an address space with gaps, fills the parameters as the
 * driver does, then runs the clusters of blocks, one after the other unless one waits for
 * another. */
#include "machine.h"

#include <time.h>

enum { DEFAULT_RESIDENT = 4, REGISTERS_OF_AN_SM = 65536, MAX_SHARED = 232448 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static bool reject(Machine *machine, const char *why) {
    diag_plain(machine->diags, P0702, "%s", why);
    machine->status = RUN_REJECTED;
    return false;
}

/* ---- memory and parameters ------------------------------------------------------------------- */

static void add_region(Machine *machine, const char *name, unsigned char *data, uint64_t bytes,
                       size_t shift, bool read_only) {
    uint64_t base = GLOBAL_BASE;
    if (machine->region_count > 0) {
        const Region *last = &machine->regions[machine->region_count - 1];
        base = (last->base + last->bytes + 2 * GLOBAL_GAP - 1) & ~(GLOBAL_GAP - 1);
    }
    machine->regions[machine->region_count++] =
        (Region){base + shift, bytes, data, read_only, name};
    if (!read_only) machine->results += bytes;
}

/* Base addresses for maps of empty tensors: zeros that are never overwritten, and bytes that are
 * never read */
static void map_empty(Machine *machine) {
    static const char *const names[] = {"zeros, for loads from empty tensors",
                                        "scratch, for stores to empty tensors"};
    for (int stored = 0; stored < 2; stored++) {
        add_region(machine, names[stored], NEW_ARRAY(machine->arena, unsigned char, EMPTY_BYTES),
                   EMPTY_BYTES, 0, !stored);
        machine->base_of_empty[stored] = machine->regions[machine->region_count - 1].base;
    }
}

static void map_arrays(Machine *machine, const Launch *launch) {
    const Manifest *manifest = machine->manifest;
    machine->regions = NEW_ARRAY(machine->arena, Region, manifest->parameters.count + 4);
    machine->base_of_parameter =
        NEW_ARRAY(machine->arena, uint64_t, manifest->parameters.count + 1);
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &manifest->parameters.items[i];
        if (parameter->kind != PARAMETER_TENSOR) continue;
        ArrayMemory memory = array_memory(&launch->arrays[i]);
        add_region(machine, parameter->name, memory.data, memory.bytes, launch->arrays[i].shift,
                   parameter->mode == MODE_IN);
        machine->base_of_parameter[i] = machine->regions[machine->region_count - 1].base;
    }
    if (manifest->maps.count > 0) map_empty(machine);
    if (manifest->dynamic) {
        machine->counter = NEW_ARRAY(machine->arena, unsigned char, COUNTER_BYTES);
        add_region(machine, "the counter of tiles", machine->counter, COUNTER_BYTES, 0, false);
        machine->base_of_counter = machine->regions[machine->region_count - 1].base;
    }
    if (manifest->watchdog) {
        /* The emulator detects deadlocks itself, so the watchdog's time must never run out. */
        WatchdogArea *area = NEW(machine->arena, WatchdogArea);
        area->limit_ns = INT64_MAX;
        add_region(machine, "watchdog", (unsigned char *)area, sizeof *area, 0, false);
    }
}

/* Bytes of one argument; 0: no value fits */
static uint32_t argument_bytes(Machine *machine, const Launch *launch,
                               const ManifestArgument *argument, unsigned char *out) {
    const Manifest *manifest = machine->manifest;
    uint64_t bits = 0;
    uint32_t bytes = 8;
    switch (argument->kind) {
    case ARGUMENT_TENSOR_MAP: return 128;
    case ARGUMENT_POINTER: bits = machine->base_of_parameter[argument->index]; break;
    case ARGUMENT_STRIDE:
        bits = (uint64_t)launch->symbols[argument->index];
        bytes = stride_is_wide(manifest, &manifest->symbols.items[argument->index]) ? 8 : 4;
        break;
    case ARGUMENT_EXTENT:
        bits = (uint64_t)launch->symbols[argument->index];
        bytes = 4;
        break;
    case ARGUMENT_SCALAR: {
        Element type = element_rows[manifest->parameters.items[argument->index].type].widens;
        const Scalar *scalar = &launch->scalars[argument->index];
        if (element_rows[type].kind == ELEMENT_FLOAT)
            element_store(type, out, scalar->number);
        else
            element_store_integer(type, out, scalar->integer);
        return (uint32_t)element_rows[type].bytes;
    }
    case ARGUMENT_COUNTER: bits = machine->base_of_counter; break;
    case ARGUMENT_WATCHDOG: bits = machine->regions[machine->region_count - 1].base; break;
    }
    memcpy(out, &bits, bytes);
    return bytes;
}

static bool fill_parameters(Machine *machine, const Launch *launch) {
    const Program *program = machine->program;
    const Manifest *manifest = machine->manifest;
    size_t wanted = program->parameters.count, given = manifest->arguments.count;
    machine->parameters = arena_alloc(machine->arena, program->parameter_bytes + 1u);
    machine->map_of_argument = NEW_ARRAY(machine->arena, int32_t, wanted + 1);
    if (wanted != given)
        return reject(machine,
                      arena_printf(machine->arena,
                                   "kernel `%s` has %zu parameters, but the launch gives %zu",
                                   program->entry, wanted, given));
    for (size_t i = 0; i < wanted; i++) {
        const Parameter *parameter = &program->parameters.items[i];
        unsigned char value[8] = {0};
        const ManifestArgument *argument = &manifest->arguments.items[i];
        uint32_t bytes = argument_bytes(machine, launch, argument, value);
        machine->map_of_argument[i] = argument->kind == ARGUMENT_TENSOR_MAP ? argument->index : -1;
        if (bytes != parameter->bytes || (bytes == 128 && parameter->alignment < 64))
            return reject(machine,
                          arena_printf(machine->arena,
                                       "parameter `%s` has %u bytes, but the launch gives %u%s",
                                       parameter->name, parameter->bytes, bytes,
                                       bytes == 128 ? ", aligned to 64" : ""));
        if (argument->kind != ARGUMENT_TENSOR_MAP)
            memcpy(machine->parameters + parameter->offset, value, bytes);
    }
    return true;
}

/* The shape of a cluster can be given in the text, in the manifest, or in both. */
static bool size_cluster(Machine *machine) {
    const Program *program = machine->program;
    machine->cluster_size = 1;
    for (int i = 0; i < 3; i++) {
        uint32_t asked = machine->manifest->cluster[i] > 1 ? (uint32_t)machine->manifest->cluster[i]
                                                           : 1,
                 required = program->cluster[i] ? program->cluster[i] : asked;
        machine->cluster[i] = required;
        if (asked > MAX_CLUSTER || (asked > 1 && asked != required))
            return reject(
                machine,
                arena_printf(machine->arena,
                             "the launch has clusters of %u blocks, but the kernel requires %u",
                             asked, required));
        if (i > 0 && required > 1)
            return reject(machine, "the cluster has several dimensions, but the grid has one");
        machine->cluster_size *= required;
    }
    machine->explicit_cluster = program->explicit_cluster || machine->cluster_size > 1;
    return true;
}

static bool size_blocks(Machine *machine, const Launch *launch, uint32_t resident) {
    const Program *program = machine->program;
    const Manifest *manifest = machine->manifest;
    machine->threads = manifest->threads > 0       ? (uint32_t)manifest->threads
                       : program->required_threads ? program->required_threads
                                                   : LANES;
    machine->dynamic_bytes = manifest->shared_bytes;
    uint32_t mask = program->shared_alignment - 1;
    machine->dynamic_base = (SHARED_BASE + program->shared_bytes + mask) & ~mask;
    if (!size_cluster(machine)) return false;
    /* Whole clusters; a persistent grid has as many as are resident, but at least one */
    uint64_t tiles = launch->tiles > 0 ? (uint64_t)launch->tiles : 1,
             clusters = (tiles + machine->cluster_size - 1) / machine->cluster_size,
             most = resident / machine->cluster_size ? resident / machine->cluster_size : 1;
    machine->blocks =
        (manifest->persistent && clusters > most ? most : clusters) * machine->cluster_size;
    if (machine->threads > 1024 ||
        (program->required_threads && program->required_threads != machine->threads) ||
        (program->most_threads && program->most_threads < machine->threads))
        return reject(
            machine, arena_printf(machine->arena,
                                  "the launch has blocks of %u threads, but the kernel requires %u",
                                  machine->threads,
                                  program->required_threads ? program->required_threads
                                  : program->most_threads   ? program->most_threads
                                                            : 1024));
    if (machine->dynamic_base + (uint64_t)machine->dynamic_bytes - SHARED_BASE > MAX_SHARED)
        return reject(machine,
                      arena_printf(machine->arena,
                                   "a block needs more shared memory than the limit of %d bytes",
                                   MAX_SHARED));
    return true;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Registers per thread at the start, as ptxas allocates them if setmaxnreg is used. 0: ptxas
 * ignores setmaxnreg (C7508), because it needs .maxnreg, or .minnctapersm together with .reqntid
 * or .maxntid. */
static uint32_t entry_registers(const Machine *machine) {
    const Program *program = machine->program;
    if (program->most_registers) return program->most_registers;
    if ((!program->required_threads && !program->most_threads) || !program->least_blocks) return 0;
    uint32_t share =
        REGISTERS_OF_AN_SM / program->least_blocks / ((machine->threads + 127) / 128 * 128) / 8 * 8;
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
    return cluster;
}

enum {
#define SPECIAL(name, spelling, bytes) SPECIAL_##name,
#include "specials.def"
#undef SPECIAL
    SPECIAL_COUNT
};

static uint64_t special_value(const Block *block, const Warp *warp, int which, uint32_t lane) {
    const Machine *machine = block->machine;
    switch (which) {
    case SPECIAL_TID_X: return warp->index * LANES + lane;
    case SPECIAL_NTID_X: return machine->threads;
    case SPECIAL_CTAID_X: return block->index;
    case SPECIAL_NCTAID_X: return machine->blocks;
    case SPECIAL_NTID_Y:
    case SPECIAL_NTID_Z:
    case SPECIAL_NCTAID_Y:
    case SPECIAL_NCTAID_Z:
    case SPECIAL_NCLUSTERID_Y:
    case SPECIAL_NCLUSTERID_Z:
    case SPECIAL_CLUSTER_NCTAID_Y:
    case SPECIAL_CLUSTER_NCTAID_Z:
    case SPECIAL_NSMID: return 1;
    case SPECIAL_CLUSTERID_X: return block->index / machine->cluster_size;
    case SPECIAL_NCLUSTERID_X: return machine->blocks / machine->cluster_size;
    case SPECIAL_CLUSTER_CTAID_X:
    case SPECIAL_CLUSTER_RANK: return block->rank;
    case SPECIAL_CLUSTER_NCTAID_X:
    case SPECIAL_CLUSTER_COUNT: return machine->cluster_size;
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
    default: return 0;
    }
}

static void start_warp(const Block *block, Warp *warp, uint32_t index) {
    const Program *program = block->program;
    Warp fresh = {.block = warp->block,
                  .matrices = warp->matrices,
                  .banks = {warp->banks[0], warp->banks[1]},
                  .valid = warp->valid,
                  .test_registers = warp->test_registers,
                  .snapshot = warp->snapshot,
                  .local = warp->local,
                  .local_state = warp->local_state};
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
    block->running = block->warp_count;
    block->next_warp = 0;
    memset(block->shared, 0xff, block->shared_bytes);
    memset(block->shared_state, 0, block->shared_bytes);
    for (uint32_t i = 0; i < block->barrier_slots; i++)
        if (block->barriers[i]) *block->barriers[i] = (Barrier){0};
    memset(block->named, 0, sizeof block->named);
    for (uint32_t i = 0; i < MAX_WARPGROUPS; i++)
        block->warpgroups[i] = (Warpgroup){.spare = block->warpgroups[i].spare};
    block->unwaited = 0;
    block->exited = false;
    block->pool = 0;
    schedule_start(block);
    block->clock = 1000;
    for (uint32_t w = 0; w < block->warp_count; w++) start_warp(block, &block->warps[w], w);
}

static void start_cluster(Cluster *cluster, uint64_t first) {
    cluster->next_block = 0;
    cluster->drew = false;
    for (uint32_t rank = 0; rank < cluster->size; rank++)
        start_block(cluster->blocks[rank], first + rank);
}

/* ---- the grid -------------------------------------------------------------------------------- */

typedef struct Grid {
    Machine *machine;
    /* suspended clusters: they poll memory that another cluster may change */
    Cluster **waiting;
    uint32_t waiting_count, resident;
    Cluster *spare[64];
    uint32_t spare_count;
    uint64_t started; /* number of blocks */
} Grid;

static bool run_one(Grid *grid, Cluster *cluster, bool last_chance) {
    uint64_t effects = cluster->effects;
    ClusterState state = schedule_run(cluster, last_chance);
    grid->machine->effects += cluster->effects - effects;
    if (state == CLUSTER_STOPPED) return false;
    if (state == CLUSTER_SUSPENDED) {
        grid->waiting[grid->waiting_count++] = cluster;
        return true;
    }
    grid->machine->done += cluster->size;
    if (grid->spare_count < COUNT_OF(grid->spare)) grid->spare[grid->spare_count++] = cluster;
    return true;
}

/* Runs the suspended clusters again whenever something has changed; `last`: nothing else will
 * change. */
static bool run_waiting(Grid *grid, bool last) {
    uint32_t count = grid->waiting_count;
    grid->waiting_count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!run_one(grid, grid->waiting[i], last && i == 0)) return false;
    return true;
}

static bool run_grid(Grid *grid) {
    Machine *machine = grid->machine;
    uint32_t size = machine->cluster_size, most = grid->resident / size ? grid->resident / size : 1;
    grid->waiting = NEW_ARRAY(machine->arena, Cluster *, most);
    while (machine->done < machine->blocks) {
        if (grid->started < machine->blocks && grid->waiting_count < most) {
            Cluster *cluster =
                grid->spare_count ? grid->spare[--grid->spare_count] : new_cluster(machine);
            start_cluster(cluster, grid->started);
            grid->started += size;
            if (!run_one(grid, cluster, false)) return false;
            continue;
        }
        uint64_t effects = machine->effects, done = machine->done;
        if (!run_waiting(grid, false)) return false;
        if (machine->effects == effects && machine->done == done && !run_waiting(grid, true))
            return false;
    }
    return true;
}

/* ---- public functions ------------------------------------------------------------------------ */

static const Manifest no_manifest = {0};

static const char *fault_text(Arena *arena, const ReadFault *fault) {
    return fault->line ? arena_printf(arena, "PTX line %u: %s", fault->line, fault->why)
                       : fault->why;
}

/* Decides whether the author's `unsafe` text or pipec is at fault: the text is read again
 * without `unsafe`. */
static RunStatus unreadable(Machine *machine, const Launch *launch, ReadStatus status,
                            const ReadFault *fault) {
    const Manifest *manifest = machine->manifest;
    const char *why = fault_text(machine->arena, fault);
    if (status == READ_REJECTED && manifest->inline_ptx.count > 0) {
        Program *program;
        ReadFault other;
        const char *ours =
            manifest_without_inline(machine->arena, manifest, launch->ptx, launch->ptx_length);
        if (program_read(machine->arena, ours, launch->ptx_length, manifest->kernel, false,
                         &program, &other) == READ_FINE) {
            manifest_report_inline(manifest, machine->diags, fault->line, why);
            return RUN_FINDING;
        }
    }
    const ManifestMark *mark = fault->line ? manifest_mark(manifest, fault->line) : NULL;
    if (mark)
        manifest_diag(manifest, machine->diags, fault->code, mark->span, "%s", why);
    else
        diag_plain(machine->diags, fault->code, "%s", why);
    return status == READ_INCOMPLETE ? RUN_INCOMPLETE : RUN_REJECTED;
}

/* The next launch on the same counter begins where this one ended. */
static bool counter_is_reset(Machine *machine) {
    uint32_t count = 0;
    if (machine->counter) memcpy(&count, machine->counter, sizeof count);
    if (count == 0) return true;
    manifest_diag(machine->manifest, machine->diags, P0743, machine->manifest->head,
                  "the counter of tiles is %u after the launch, but must be 0", count);
    return false;
}

static RunStatus run(Machine *machine, const Launch *launch, const EmulatorOptions *options,
                     RunResult *result) {
    double start = now();
    Program *program;
    ReadFault fault;
    ReadStatus read = program_read(machine->arena, launch->ptx, launch->ptx_length,
                                   machine->manifest->kernel, false, &program, &fault);
    if (read != READ_FINE) return unreadable(machine, launch, read, &fault);
    machine->program = program;
    uint32_t resident = options->resident > 0 ? (uint32_t)options->resident : DEFAULT_RESIDENT;
    map_arrays(machine, launch);
    if (!fill_parameters(machine, launch) || !size_blocks(machine, launch, resident) ||
        !maps_encode(machine, launch))
        return machine->status;
    result->load_seconds = now() - start;
    result->blocks = (int64_t)machine->blocks;
    result->resident = (int)resident;
    Grid grid = {.machine = machine, .resident = resident};
    start = now();
    bool fine = run_grid(&grid);
    result->seconds = now() - start;
    result->timed = 1;
    result->instructions = machine->instructions;
    if (fine && !counter_is_reset(machine)) return RUN_FINDING;
    return fine ? RUN_DONE : machine->status;
}

RunStatus emulator_run(Arena *arena, const Launch *launch, const EmulatorOptions *options,
                       RunResult *result, Diags *diags) {
    Machine *machine = NEW(arena, Machine);
    machine->arena = arena;
    machine->diags = diags;
    machine->manifest = launch->manifest ? launch->manifest : &no_manifest;
    machine->seed = options->seed;
    machine->limit = options->limit;
    machine->options = options;
    machine->next_progress = options->progress != NULL ? PROGRESS_INTERVAL : UINT64_MAX;
    *result = (RunResult){.device = "emulator"};
    launch_scatter(launch);
    result->status = run(machine, launch, options, result);
    launch_gather(launch);
    return result->status;
}

bool emulator_accepts(Arena *arena, const char *ptx, size_t length, Diags *diags) {
    Program *program;
    ReadFault fault;
    if (program_read(arena, ptx, length, NULL, true, &program, &fault) == READ_FINE) return true;
    diag_plain(diags, fault.code, "%s", fault_text(arena, &fault));
    return false;
}
