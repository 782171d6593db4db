/* A launch that a Manifest describes, as one of any PTX: its arrays become regions, its arguments
 * the bytes of the parameters, its tensor maps their 128 bytes. */
#include "emulator/machine.h"

#include <time.h>

typedef struct Described { /* the launch while it is made */
    Arena *arena;
    Diags *diags;
    const Launch *from;
    const Manifest *manifest;
    EmulatorKernel kernel;
    EmulatorLaunch launch;
    unsigned char *parameters;
    EmulatorRegion *regions;
    uint32_t region_count;
    /* numbers of regions: of each parameter's array; of the counter, the watchdog's area and the
     * maps of empty tensors [ManifestMap.stored] */
    uint32_t *arrays;
    uint32_t counter, watchdog, empty[2];
    RunStatus status;
} Described;

static const Manifest no_manifest = {0};

static bool reject(Described *it, const char *why) {
    diag_plain(it->diags, P0702, "%s", why);
    it->status = RUN_REJECTED;
    return false;
}

/* ---- regions --------------------------------------------------------------------------------- */

static uint32_t add_region(Described *it, EmulatorRegion region) {
    it->regions[it->region_count] = region;
    return it->region_count++;
}

/* Maps of empty tensors: zeros that are never overwritten, and bytes that are never read */
static void add_empty(Described *it) {
    static const char *const names[] = {"zeros, for loads from empty tensors",
                                        "scratch, for stores to empty tensors"};
    for (int stored = 0; stored < 2; stored++)
        it->empty[stored] = add_region(
            it, (EmulatorRegion){.data = NEW_ARRAY(it->arena, unsigned char, EMPTY_BYTES),
                                 .bytes = EMPTY_BYTES,
                                 .read_only = !stored,
                                 .unread = stored,
                                 .name = names[stored]});
}

static void add_arrays(Described *it) {
    for (size_t i = 0; i < it->manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &it->manifest->parameters.items[i];
        if (parameter->kind != PARAMETER_TENSOR) continue;
        const Array *array = &it->from->arrays[i];
        ArrayMemory memory = array_memory(array);
        it->arrays[i] = add_region(it, (EmulatorRegion){.data = memory.data,
                                                        .bytes = memory.bytes,
                                                        .shift = (uint32_t)array->shift,
                                                        .read_only = parameter->mode == MODE_IN,
                                                        .name = parameter->name});
        emulator_shape(&it->regions[it->arrays[i]], (uint32_t)element_rows[array->type].bytes,
                       array->rank, array->extents, array->image ? array->image->strides : NULL);
    }
}

static void add_regions(Described *it) {
    const Manifest *manifest = it->manifest;
    it->regions = NEW_ARRAY(it->arena, EmulatorRegion, manifest->parameters.count + 4);
    it->arrays = NEW_ARRAY(it->arena, uint32_t, manifest->parameters.count + 1);
    add_arrays(it);
    if (manifest->maps.count > 0) add_empty(it);
    if (manifest->dynamic)
        it->counter = add_region(
            it, (EmulatorRegion){.data = NEW_ARRAY(it->arena, unsigned char, COUNTER_BYTES),
                                 .bytes = COUNTER_BYTES,
                                 .name = "the counter of tiles"});
    if (manifest->watchdog) {
        /* The emulator detects deadlocks itself, so the watchdog's time must never run out. */
        WatchdogArea *area = NEW(it->arena, WatchdogArea);
        area->limit_ns = INT64_MAX;
        it->watchdog = add_region(it, (EmulatorRegion){.data = (unsigned char *)area,
                                                       .bytes = sizeof *area,
                                                       .name = "watchdog"});
    }
    emulator_place(it->regions, it->region_count);
}

void emulator_shape(EmulatorRegion *region, uint32_t element_bytes, int rank,
                    const int64_t *extents, const int64_t *strides) {
    int64_t stride = element_bytes;
    if (rank > MAX_RANK) return;
    region->rank = (uint32_t)rank;
    region->element_bytes = element_bytes;
    for (int axis = rank - 1; axis >= 0; axis--) {
        region->extents[axis] = extents[axis];
        region->strides[axis] = strides ? strides[axis] * (int64_t)element_bytes : stride;
        stride *= extents[axis];
    }
}

/* ---- parameters ------------------------------------------------------------------------------ */

static bool encode_map(Described *it, const ManifestMap *from, unsigned char *out) {
    const ManifestParameter *parameter = &it->manifest->parameters.items[from->parameter];
    EmulatorMap map = {.type = (uint32_t)element_rows[from->type].map,
                       .rank = (uint32_t)from->rank,
                       .swizzle = from->swizzle};
    MapShape shape = {0};
    bool ranked = from->rank >= 1 && from->rank <= MAX_RANK;
    if (ranked && map_evaluate(from, it->from->symbols, &shape) != FORMULA_FINE) {
        diag_plain(it->diags, P0703,
                   "the driver would reject the tensor map of `%s`: an extent or a stride "
                   "overflows",
                   parameter->name);
        it->status = RUN_REJECTED;
        return false;
    }
    uint32_t region = shape.is_empty ? it->empty[from->stored] : it->arrays[from->parameter];
    map.address = it->regions[region].base;
    memcpy(map.extents, shape.extents, sizeof map.extents);
    memcpy(map.strides, shape.strides, sizeof map.strides);
    memcpy(map.box, from->box, sizeof map.box);
    it->status = emulator_encode_map(&map, parameter->name, out, it->diags);
    return it->status == RUN_DONE;
}

/* Bytes of one argument other than a tensor map */
static uint32_t argument_bytes(const Described *it, const ManifestArgument *argument,
                               unsigned char *out) {
    const Manifest *manifest = it->manifest;
    uint64_t bits = 0;
    uint32_t bytes = 8;
    switch (argument->kind) {
    case ARGUMENT_TENSOR_MAP: return EMULATOR_MAP_BYTES;
    case ARGUMENT_POINTER: bits = it->regions[it->arrays[argument->index]].base; break;
    case ARGUMENT_STRIDE:
        bits = (uint64_t)it->from->symbols[argument->index];
        bytes = stride_is_wide(manifest, &manifest->symbols.items[argument->index]) ? 8 : 4;
        break;
    case ARGUMENT_EXTENT:
        bits = (uint64_t)it->from->symbols[argument->index];
        bytes = 4;
        break;
    case ARGUMENT_SCALAR: {
        Element type = element_rows[manifest->parameters.items[argument->index].type].widens;
        const Scalar *scalar = &it->from->scalars[argument->index];
        if (element_rows[type].kind == ELEMENT_FLOAT)
            element_store(type, out, scalar->number);
        else
            element_store_integer(type, out, scalar->integer);
        return (uint32_t)element_rows[type].bytes;
    }
    case ARGUMENT_COUNTER: bits = it->regions[it->counter].base; break;
    case ARGUMENT_WATCHDOG: bits = it->regions[it->watchdog].base; break;
    }
    memcpy(out, &bits, bytes);
    return bytes;
}

static bool fill_parameter(Described *it, const ManifestArgument *argument,
                           const EmulatorParameter *parameter) {
    unsigned char value[8] = {0}, *to = it->parameters + parameter->offset;
    uint32_t bytes = argument_bytes(it, argument, value);
    bool map = argument->kind == ARGUMENT_TENSOR_MAP;
    if (bytes != parameter->bytes || (map && parameter->alignment < EMULATOR_MAP_ALIGNMENT))
        return reject(it, arena_printf(it->arena,
                                       "parameter `%s` has %u bytes, but the launch gives %u%s",
                                       parameter->name, parameter->bytes, bytes,
                                       map ? ", aligned to 64" : ""));
    if (map) return encode_map(it, &it->manifest->maps.items[argument->index], to);
    memcpy(to, value, bytes);
    return true;
}

static bool fill_parameters(Described *it) {
    size_t wanted = it->kernel.parameter_count, given = it->manifest->arguments.count;
    it->parameters = NEW_ARRAY(it->arena, unsigned char, it->kernel.parameter_bytes + 1);
    if (wanted != given)
        return reject(it, arena_printf(it->arena,
                                       "kernel `%s` has %zu parameters, but the launch gives %zu",
                                       it->kernel.name, wanted, given));
    for (size_t i = 0; i < wanted; i++)
        if (!fill_parameter(it, &it->manifest->arguments.items[i], &it->kernel.parameters[i]))
            return false;
    return true;
}

/* ---- grid and block -------------------------------------------------------------------------- */

static void size_block(Described *it) {
    const uint32_t *required = it->kernel.required_block;
    uint32_t *block = it->launch.block;
    uint32_t product = required[0] * required[1] * required[2];
    block[0] = it->manifest->threads > 0 ? (uint32_t)it->manifest->threads
               : product                 ? product
                                         : LANES;
    block[1] = block[2] = 1;
    if (product == block[0]) memcpy(block, required, sizeof it->launch.block);
}

/* Whole clusters; a persistent grid has as many as are resident, but at least one */
static bool size_grid(Described *it, uint32_t resident) {
    const Manifest *manifest = it->manifest;
    uint64_t size = 1, tiles = it->from->tiles > 0 ? (uint64_t)it->from->tiles : 1;
    for (int i = 0; i < 3; i++) {
        it->launch.cluster[i] = manifest->cluster[i] > 1    ? (uint32_t)manifest->cluster[i]
                                : it->kernel.cluster[i] > 0 ? it->kernel.cluster[i]
                                                            : 1;
        if (i > 0 && it->launch.cluster[i] > 1)
            return reject(it, "the cluster has several dimensions, but the grid has one");
        size *= it->launch.cluster[i];
    }
    uint64_t clusters = (tiles + size - 1) / size, most = resident / size ? resident / size : 1,
             blocks = (manifest->persistent && clusters > most ? most : clusters) * size;
    if (blocks > INT32_MAX) return reject(it, "the grid has more than 2147483647 blocks");
    it->launch.grid[0] = (uint32_t)blocks;
    it->launch.grid[1] = it->launch.grid[2] = 1;
    return true;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Decides whether the author's `unsafe` text or pipec is at fault: the text is read again
 * without `unsafe`. */
static RunStatus unreadable(const Described *it, ReadStatus status, const ReadFault *fault) {
    const Manifest *manifest = it->manifest;
    const char *why = read_fault_text(it->arena, fault);
    size_t length = it->from->ptx_length;
    if (status == READ_REJECTED && manifest->inline_ptx.count > 0) {
        Program *program;
        ReadFault other;
        const char *ours = manifest_without_inline(it->arena, manifest, it->from->ptx, length);
        if (program_read(it->arena, ours, length, manifest->kernel, false, &program, &other) ==
            READ_FINE) {
            manifest_report_inline(manifest, it->diags, fault->line, why);
            return RUN_FINDING;
        }
    }
    const ManifestMark *mark = fault->line ? manifest_mark(manifest, fault->line) : NULL;
    Diag *diag = mark ? manifest_diag(manifest, it->diags, fault->code, mark->span, "%s", why)
                      : diag_plain(it->diags, fault->code, "%s", why);
    read_fault_more(it->diags, diag, fault);
    return status == READ_INCOMPLETE ? RUN_INCOMPLETE : RUN_REJECTED;
}

/* The next launch on the same counter begins where this one ended. */
static RunStatus check_counter(const Described *it) {
    uint32_t count = 0;
    if (it->manifest->dynamic) memcpy(&count, it->regions[it->counter].data, sizeof count);
    if (count == 0) return RUN_DONE;
    manifest_diag(it->manifest, it->diags, P0743, it->manifest->head,
                  "the counter of tiles is %u after the launch, but must be 0", count);
    return RUN_FINDING;
}

static RunStatus describe(Described *it, const EmulatorOptions *options) {
    Program *program;
    ReadFault fault;
    ReadStatus read = program_read(it->arena, it->from->ptx, it->from->ptx_length,
                                   it->manifest->kernel, false, &program, &fault);
    if (read != READ_FINE) return unreadable(it, read, &fault);
    kernel_describe(it->arena, program, &it->kernel);
    add_regions(it);
    size_block(it);
    if (!fill_parameters(it) || !size_grid(it, emulator_resident(options))) return it->status;
    it->launch.kernel = &it->kernel;
    it->launch.shared_bytes = it->manifest->shared_bytes;
    it->launch.parameters = it->parameters;
    return RUN_DONE;
}

RunStatus emulator_run(Arena *arena, const Launch *launch, const EmulatorOptions *options,
                       RunResult *result, Diags *diags) {
    Described it = {.arena = arena,
                    .diags = diags,
                    .from = launch,
                    .manifest = launch->manifest ? launch->manifest : &no_manifest};
    struct timespec begin, ready;
    *result = (RunResult){.device = "emulator"};
    launch_scatter(launch);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    RunStatus status = describe(&it, options);
    clock_gettime(CLOCK_MONOTONIC, &ready);
    if (status == RUN_DONE) {
        EmulatorWork work = {.regions = it.regions,
                             .region_count = it.region_count,
                             .launches = &it.launch,
                             .launch_count = 1,
                             .names = it.manifest};
        status = emulator_run_work(arena, &work, options, result, diags);
        if (status == RUN_DONE) status = check_counter(&it);
    }
    launch_gather(launch);
    result->load_seconds =
        (double)(ready.tv_sec - begin.tv_sec) + (double)(ready.tv_nsec - begin.tv_nsec) * 1e-9;
    result->status = status;
    return status;
}
