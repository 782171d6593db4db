/* runtime: one launch of a loaded kernel. Takes one argument per parameter, starts the kernel on a
 * stream. Embedding programs call this in their loops, from several threads: it allocates nothing
 * (except counters of a dynamic grid, when it meets a stream, and room for tensors that it has not
 * met), waits for nothing, and formats text only for errors. What it computes from the tensors and
 * integers (symbols, tiles, tensor maps) is kept for the next launches with the same ones. */
#include "runtime/private.h"

#include <string.h>

/* The memory of one launch, on the stack of its thread. A launch passes at most 4352 bytes (P0508),
 * so it is small. */
typedef union PassedValue {
    uint64_t whole;
    unsigned char bytes[8];
} PassedValue;

typedef struct Call {
    Bound bound;         /* its maps are aligned to TENSOR_MAP_BYTES */
    PassedValue *values; /* one per ManifestArgument, unused for a tensor map */
    void **parameters;   /* in the form of cuLaunchKernelEx: one per ManifestArgument */
    DevicePointer counter;
} Call;

static size_t call_bytes(const Manifest *manifest) {
    return TENSOR_MAP_BYTES + manifest->maps.count * TENSOR_MAP_BYTES +
           manifest->symbols.count * sizeof(int64_t) +
           manifest->arguments.count * (sizeof(PassedValue) + sizeof(void *));
}

static Call call_in(const Manifest *manifest, unsigned char *room) {
    Call call = {.bound = {.tiles = 0}};
    unsigned char *at = room + -(uintptr_t)room % TENSOR_MAP_BYTES;
    call.bound.maps = at;
    at += manifest->maps.count * TENSOR_MAP_BYTES;
    call.bound.symbols = (int64_t *)(void *)at;
    at += manifest->symbols.count * sizeof(int64_t);
    call.values = (PassedValue *)(void *)at;
    call.parameters = (void **)(void *)(at + manifest->arguments.count * sizeof(PassedValue));
    return call;
}

/* ---- tensor maps ----------------------------------------------------------------------------- */

static RunStatus map_refused(const RuntimeKernel *kernel, const ManifestMap *map,
                             const MapShape *shape, DriverError error, Diags *diags) {
    const Runtime *runtime = kernel->runtime;
    const ManifestParameter *parameter = &kernel->manifest->parameters.items[map->parameter];
    Diag *diag = manifest_diag(kernel->manifest, diags, P0807, parameter->span,
                               "the driver refuses the tensor map of `%s`: %s (%s)",
                               parameter->name, driver_error_name(&runtime->driver, error),
                               driver_error_text(&runtime->driver, error));
    Str text = str_new(diags->arena);
    str_printf(&text, "%s, innermost first: extents", element_rows[map->type].spelling);
    for (int axis = 0; axis < map->rank; axis++)
        str_printf(&text, " %llu", (unsigned long long)shape->extents[axis]);
    str_add(&text, ", strides in bytes");
    for (int axis = 1; axis < map->rank; axis++)
        str_printf(&text, " %llu", (unsigned long long)shape->strides[axis]);
    str_add(&text, ", box");
    for (int axis = 0; axis < map->rank; axis++) str_printf(&text, " %u", map->box[axis]);
    diag_note(diags, diag, "%s", text.text);
    note_blame(kernel->manifest, diags, diag,
               "this is a bug in pipec: a launch precondition should have refused these sizes");
    return RUN_REJECTED;
}

static RunStatus formula_failed(const RuntimeKernel *kernel, const ManifestMap *map, Diags *diags) {
    const ManifestParameter *parameter = &kernel->manifest->parameters.items[map->parameter];
    diag_plain(diags, P0609, "a size in the tensor map of `%s` does not fit 64 bits",
               parameter->name);
    return RUN_UNAVAILABLE;
}

static RunStatus encode(const RuntimeKernel *kernel, const ManifestMap *map, uint64_t address,
                        const int64_t *symbols, unsigned char *out, Diags *diags) {
    MapShape shape;
    uint32_t ones[MAX_RANK];
    if (map_evaluate(map, symbols, &shape) != FORMULA_FINE)
        return formula_failed(kernel, map, diags);
    if (shape.is_empty) address = kernel->empty + (map->stored ? EMPTY_ROOM : 0);
    for (int axis = 0; axis < map->rank; axis++) ones[axis] = 1;
    DriverError error = kernel->runtime->driver.map_encode(
        (struct CUtensorMap_st *)(void *)out, (unsigned)element_rows[map->type].map,
        (uint32_t)map->rank, (void *)(uintptr_t)address, shape.extents, shape.strides + 1, map->box,
        ones, TENSOR_MAP_INTERLEAVE_NONE, (unsigned)map->swizzle, (unsigned)shape.promotion,
        TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return error == DRIVER_SUCCESS ? RUN_DONE : map_refused(kernel, map, &shape, error, diags);
}

static RunStatus encode_all(const RuntimeKernel *kernel, const DeviceArgument *arguments,
                            const Call *call, Diags *diags) {
    RunStatus status = RUN_DONE;
    for (size_t i = 0; status == RUN_DONE && i < kernel->manifest->maps.count; i++) {
        const ManifestMap *map = &kernel->manifest->maps.items[i];
        status = encode(kernel, map, arguments[map->parameter].pointer, call->bound.symbols,
                        call->bound.maps + i * TENSOR_MAP_BYTES, diags);
    }
    return status;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static void set_parameters(const RuntimeKernel *kernel, const DeviceArgument *arguments,
                           const Call *call) {
    const Manifest *manifest = kernel->manifest;
    for (size_t i = 0; i < manifest->arguments.count; i++) {
        const ManifestArgument *argument = &manifest->arguments.items[i];
        PassedValue *value = &call->values[i];
        call->parameters[i] = value;
        switch (argument->kind) {
        case ARGUMENT_TENSOR_MAP:
            call->parameters[i] = call->bound.maps + (size_t)argument->index * TENSOR_MAP_BYTES;
            break;
        case ARGUMENT_POINTER: value->whole = arguments[argument->index].pointer; break;
        case ARGUMENT_STRIDE:
        case ARGUMENT_EXTENT: /* the lower half is the u32 */
            value->whole = (uint64_t)call->bound.symbols[argument->index];
            break;
        case ARGUMENT_SCALAR:
            scalar_pack(manifest->parameters.items[argument->index].type,
                        &arguments[argument->index].scalar, value->bytes);
            break;
        case ARGUMENT_COUNTER: value->whole = call->counter; break;
        case ARGUMENT_WATCHDOG: value->whole = kernel->watchdog_address; break;
        }
    }
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool is_empty(const ManifestParameter *parameter, const DeviceArgument *argument) {
    for (int axis = 0; axis < parameter->rank; axis++)
        if (argument->extents[axis] == 0) return true;
    return false;
}

static bool pointers_fit(const Manifest *manifest, const DeviceArgument *arguments, Diags *diags) {
    bool fine = true;
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &manifest->parameters.items[i];
        uint64_t pointer = arguments[i].pointer;
        if (parameter->kind != PARAMETER_TENSOR || is_empty(parameter, &arguments[i])) continue;
        bool crooked = parameter->alignment > 1 && pointer % parameter->alignment != 0;
        if (pointer != 0 && !crooked) continue;
        fine = false;
        if (pointer == 0)
            manifest_diag(manifest, diags, P0620, parameter->span,
                          "`%s` has elements, but its device pointer is null", parameter->name);
        else
            manifest_diag(manifest, diags, P0620, parameter->span,
                          "`%s` is at 0x%llx, but its base must be a multiple of %u bytes",
                          parameter->name, (unsigned long long)pointer, parameter->alignment);
    }
    return fine;
}

static RunStatus prepare(RuntimeKernel *kernel, const DeviceArgument *arguments, Call *call,
                         Diags *diags) {
    const Manifest *manifest = kernel->manifest;
    if (!launch_bind(manifest, arguments, call->bound.symbols, &call->bound.tiles, diags) ||
        !pointers_fit(manifest, arguments, diags))
        return RUN_UNAVAILABLE;
    RunStatus status = encode_all(kernel, arguments, call, diags);
    if (status == RUN_DONE) prepared_remember(kernel, arguments, &call->bound);
    return status;
}

/* ---- the grid -------------------------------------------------------------------------------- */

/* The most blocks of a persistent grid, a multiple of a cluster's; 0: the limit does not fit the
 * grid. */
static int64_t most_blocks(const RuntimeKernel *kernel, int multiprocessors) {
    const Manifest *manifest = kernel->manifest;
    int64_t cluster = manifest->cluster[0];
    if (multiprocessors == 0) return kernel->resident;
    if (multiprocessors < 0 || !manifest->persistent) return 0;
    int64_t fill = (int64_t)multiprocessors * kernel->blocks_per_multiprocessor / cluster * cluster;
    return fill < kernel->resident ? fill : kernel->resident;
}

static void refuse_limit(const RuntimeKernel *kernel, int multiprocessors, Diags *diags) {
    const Manifest *manifest = kernel->manifest;
    if (!manifest->persistent) {
        Diag *diag =
            diag_plain(diags, P0918, "the multiprocessors of a launch of `%s` cannot be limited",
                       manifest->kernel);
        diag_note(diags, diag, "its grid is not persistent: each of its tiles is a block");
        return;
    }
    Diag *diag = diag_plain(diags, P0918, "`%s` cannot run on %d multiprocessor%s",
                            manifest->kernel, multiprocessors, multiprocessors == 1 ? "" : "s");
    if (multiprocessors > 0)
        diag_note(diags, diag, "a cluster has %d blocks, and %d fit a multiprocessor",
                  manifest->cluster[0], kernel->blocks_per_multiprocessor);
}

static int64_t count_blocks(const RuntimeKernel *kernel, int64_t tiles, int64_t most) {
    int64_t cluster = kernel->manifest->cluster[0],
            wanted = kernel->manifest->persistent && tiles > most ? most : tiles;
    return wanted < 1 ? cluster : wanted; /* both are multiples of a cluster's blocks */
}

/* ---- the launch ------------------------------------------------------------------------------ */

/* Is the stream captured? Notes that a graph then refers to the kernel. CUDA does not capture the
 * legacy default stream, which therefore is not asked. */
static DriverError find_capture(RuntimeKernel *kernel, DriverStream stream, bool *captured,
                                const char **failed) {
    unsigned status = STREAM_CAPTURE_STATUS_NONE;
    *captured = false;
    if (stream == NULL) return DRIVER_SUCCESS;
    *failed = "cuStreamIsCapturing";
    DriverError error = kernel->runtime->driver.capturing(stream, &status);
    *captured = status != STREAM_CAPTURE_STATUS_NONE;
    if (*captured) atomic_store(&kernel->captured, true);
    return error;
}

/* The kernel itself waits for the one before it (griddepcontrol.wait). */
static DriverLaunchAttribute early = {.id = LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                      .value = {1}};

/* *failed: the failed call */
static DriverError start(RuntimeKernel *kernel, const DeviceArgument *arguments, Call *call,
                         const RuntimeLaunch *how, int64_t blocks, const char **failed) {
    const Manifest *manifest = kernel->manifest;
    bool captured;
    DriverError error = find_capture(kernel, how->stream, &captured, failed);
    if (error == DRIVER_SUCCESS)
        error = counters_find(kernel, how->stream, captured, &call->counter, failed);
    if (error != DRIVER_SUCCESS) return error;
    set_parameters(kernel, arguments, call);
    /* The shape of a cluster is in the text: .reqnctapercluster */
    DriverLaunchConfig config = {.grid_x = (unsigned)blocks,
                                 .grid_y = 1,
                                 .grid_z = 1,
                                 .block_x = (unsigned)manifest->threads,
                                 .block_y = 1,
                                 .block_z = 1,
                                 .shared_bytes = manifest->shared_bytes,
                                 .stream = how->stream,
                                 .attributes = &early,
                                 .attribute_count = how->programmatic && !manifest->ordered};
    *failed = "cuLaunchKernelEx";
    return kernel->runtime->driver.launch((const struct CUlaunchConfig_st *)(const void *)&config,
                                          kernel->function, call->parameters, NULL);
}

RunStatus kernel_launch(RuntimeKernel *kernel, const DeviceArgument *arguments,
                        const RuntimeLaunch *how, int64_t *blocks, Diags *diags) {
    unsigned char room[call_bytes(kernel->manifest)];
    Call call = call_in(kernel->manifest, room);
    const char *failed;
    int64_t most = most_blocks(kernel, how->multiprocessors);
    if (most == 0) {
        refuse_limit(kernel, how->multiprocessors, diags);
        return RUN_UNAVAILABLE;
    }
    if (!prepared_recall(kernel, arguments, &call.bound)) {
        RunStatus status = prepare(kernel, arguments, &call, diags);
        if (status != RUN_DONE) return status;
    }
    *blocks = count_blocks(kernel, call.bound.tiles, most);
    DriverError error = start(kernel, arguments, &call, how, *blocks, &failed);
    return error == DRIVER_SUCCESS ? RUN_DONE : kernel_failed(kernel, error, failed, diags);
}

RunStatus runtime_launch(RuntimeKernel *kernel, const DeviceArgument *arguments,
                         const RuntimeLaunch *how, Diags *diags) {
    Entered entered;
    int64_t blocks;
    if (!runtime_enter(kernel->runtime, &entered, diags)) return RUN_UNAVAILABLE;
    RunStatus status = kernel_launch(kernel, arguments, how, &blocks, diags);
    runtime_leave(kernel->runtime, entered);
    return status;
}

bool runtime_launch_again(RuntimeKernel *kernel, const DeviceArgument *arguments,
                          const RuntimeLaunch *how) {
    unsigned char room[call_bytes(kernel->manifest)];
    Call call = call_in(kernel->manifest, room);
    const char *failed;
    Entered entered;
    int64_t most = most_blocks(kernel, how->multiprocessors);
    if (most == 0 || !prepared_recall(kernel, arguments, &call.bound) ||
        context_enter(kernel->runtime, &entered) != DRIVER_SUCCESS)
        return false;
    int64_t blocks = count_blocks(kernel, call.bound.tiles, most);
    bool started = start(kernel, arguments, &call, how, blocks, &failed) == DRIVER_SUCCESS;
    runtime_leave(kernel->runtime, entered);
    return started;
}
