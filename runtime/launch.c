/* runtime: one launch of a loaded kernel. Takes device addresses, scalars and symbols, starts
 * the kernel on a stream. Embedding programs call this in their loops: it allocates nothing
 * (except counters of a dynamic grid, when it meets a stream), waits for nothing, reuses tensor
 * maps that were encoded for the same addresses and symbols, and formats text only for errors. */
#include "runtime/private.h"

#include <string.h>

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
    diag_note(diags, diag,
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
        ones, TENSOR_MAP_INTERLEAVE_NONE, (unsigned)map->swizzle, (unsigned)map->promotion,
        TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return error == DRIVER_SUCCESS ? RUN_DONE : map_refused(kernel, map, &shape, error, diags);
}

static bool is_set_of(const RuntimeKernel *kernel, const EncodedSet *set, const uint64_t *pointers,
                      const int64_t *symbols) {
    const Manifest *manifest = kernel->manifest;
    if (set->used == 0) return false;
    for (size_t i = 0; i < manifest->symbols.count; i++)
        if (set->symbols[i] != symbols[i]) return false;
    for (size_t i = 0; i < manifest->maps.count; i++)
        if (set->addresses[i] != pointers[manifest->maps.items[i].parameter]) return false;
    return true;
}

/* The set for these addresses and symbols: a cached one, or a new one in place of the least
 * recently used */
static EncodedSet *encoded_set(RuntimeKernel *kernel, const uint64_t *pointers,
                               const int64_t *symbols, RunStatus *status, Diags *diags) {
    const Manifest *manifest = kernel->manifest;
    EncodedSet *oldest = &kernel->sets[0];
    for (int i = 0; i < ENCODED_SETS; i++) {
        EncodedSet *set = &kernel->sets[i];
        if (is_set_of(kernel, set, pointers, symbols)) {
            set->used = ++kernel->launches;
            return set;
        }
        if (set->used < oldest->used) oldest = set;
    }
    /* invalid while it is only partly encoded */
    oldest->used = 0;
    for (size_t i = 0; i < manifest->maps.count; i++) {
        oldest->addresses[i] = pointers[manifest->maps.items[i].parameter];
        *status = encode(kernel, &manifest->maps.items[i], oldest->addresses[i], symbols,
                         oldest->maps + i * TENSOR_MAP_BYTES, diags);
        if (*status != RUN_DONE) return NULL;
    }
    if (manifest->symbols.count > 0)
        memcpy(oldest->symbols, symbols, manifest->symbols.count * sizeof *symbols);
    oldest->used = ++kernel->launches;
    return oldest;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static void set_parameters(RuntimeKernel *kernel, const EncodedSet *set, const uint64_t *pointers,
                           const Scalar *scalars, const int64_t *symbols) {
    const Manifest *manifest = kernel->manifest;
    for (size_t i = 0; i < manifest->arguments.count; i++) {
        const ManifestArgument *argument = &manifest->arguments.items[i];
        PassedValue *value = &kernel->values[i];
        kernel->parameters[i] = value;
        switch (argument->kind) {
        case ARGUMENT_TENSOR_MAP:
            kernel->parameters[i] = set->maps + (size_t)argument->index * TENSOR_MAP_BYTES;
            break;
        case ARGUMENT_POINTER: value->whole = pointers[argument->index]; break;
        case ARGUMENT_EXTENT:
            value->whole = (uint64_t)symbols[argument->index]; /* the lower half is the u32 */
            break;
        case ARGUMENT_SCALAR:
            scalar_pack(manifest->parameters.items[argument->index].type, &scalars[argument->index],
                        value->bytes);
            break;
        case ARGUMENT_COUNTER: value->whole = kernel->counter; break;
        case ARGUMENT_WATCHDOG: value->whole = kernel->watchdog_address; break;
        }
    }
}

static bool is_empty(const ManifestParameter *parameter, const int64_t *symbols) {
    for (int axis = 0; axis < parameter->rank; axis++) {
        int64_t extent;
        if (formula_eval(&parameter->extents[axis], symbols, &extent) == FORMULA_FINE &&
            extent == 0)
            return true;
    }
    return false;
}

static bool pointers_fit(const RuntimeKernel *kernel, const uint64_t *pointers,
                         const int64_t *symbols, Diags *diags) {
    const Manifest *manifest = kernel->manifest;
    bool fine = true;
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &manifest->parameters.items[i];
        if (parameter->kind != PARAMETER_TENSOR) continue;
        bool missing = pointers[i] == 0 && !is_empty(parameter, symbols);
        bool crooked = parameter->alignment > 1 && pointers[i] % parameter->alignment != 0;
        if (!missing && !crooked) continue;
        fine = false;
        if (missing)
            manifest_diag(manifest, diags, P0620, parameter->span,
                          "`%s` has elements, but its device pointer is null", parameter->name);
        else
            manifest_diag(manifest, diags, P0620, parameter->span,
                          "`%s` is at 0x%llx, but its base must be a multiple of %u bytes",
                          parameter->name, (unsigned long long)pointers[i], parameter->alignment);
    }
    return fine;
}

/* ---- the launch ------------------------------------------------------------------------------ */

static RunStatus launch_locked(RuntimeKernel *kernel, const uint64_t *pointers,
                               const Scalar *scalars, const int64_t *symbols, int64_t blocks,
                               DriverStream stream, Diags *diags) {
    const Manifest *manifest = kernel->manifest;
    RunStatus status = RUN_DONE;
    const EncodedSet *set = encoded_set(kernel, pointers, symbols, &status, diags);
    if (set == NULL) return status;
    const char *call = NULL;
    DriverError error = counters_find(kernel, stream, &kernel->counter, &call);
    if (error != DRIVER_SUCCESS) return kernel_failed(kernel, error, call, diags);
    set_parameters(kernel, set, pointers, scalars, symbols);
    /* The kernel waits for the previous grid itself (griddepcontrol.wait), so it may start while
     * that one ends. The shape of a cluster is in the text: .reqnctapercluster */
    DriverLaunchAttribute early = {.id = LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                   .value = {1}};
    DriverLaunchConfig config = {.grid_x = (unsigned)blocks,
                                 .grid_y = 1,
                                 .grid_z = 1,
                                 .block_x = (unsigned)manifest->threads,
                                 .block_y = 1,
                                 .block_z = 1,
                                 .shared_bytes = manifest->shared_bytes,
                                 .stream = stream,
                                 .attributes = &early,
                                 .attribute_count = 1};
    error = kernel->runtime->driver.launch((const struct CUlaunchConfig_st *)(const void *)&config,
                                           kernel->function, kernel->parameters, NULL);
    return error == DRIVER_SUCCESS ? RUN_DONE
                                   : kernel_failed(kernel, error, "cuLaunchKernelEx", diags);
}

RunStatus kernel_launch(RuntimeKernel *kernel, const uint64_t *pointers, const Scalar *scalars,
                        const int64_t *symbols, int64_t tiles, DriverStream stream, int64_t *blocks,
                        Diags *diags) {
    if (!pointers_fit(kernel, pointers, symbols, diags)) return RUN_UNAVAILABLE;
    int64_t wanted =
                kernel->manifest->persistent && tiles > kernel->resident ? kernel->resident : tiles,
            cluster = kernel->manifest->cluster[0];
    *blocks = wanted < 1 ? cluster : wanted; /* both are multiples of a cluster's blocks */
    pthread_mutex_lock(&kernel->lock);
    RunStatus status = launch_locked(kernel, pointers, scalars, symbols, *blocks, stream, diags);
    pthread_mutex_unlock(&kernel->lock);
    return status;
}

RunStatus runtime_launch(RuntimeKernel *kernel, const uint64_t *pointers, const Scalar *scalars,
                         const int64_t *symbols, int64_t tiles, void *stream, Diags *diags) {
    if (!runtime_enter(kernel->runtime, diags)) return RUN_UNAVAILABLE;
    int64_t blocks;
    RunStatus status =
        kernel_launch(kernel, pointers, scalars, symbols, tiles, stream, &blocks, diags);
    runtime_leave(kernel->runtime);
    return status;
}
