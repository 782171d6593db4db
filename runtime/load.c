/* runtime: loads PTX text as a kernel. Errors and warnings of the driver's assembler are quoted,
 * and their PTX lines mapped to places in the .pipe file. A loaded kernel owns its module and
 * all memory that launches need. */
#define PIPEC_OWN_MEMORY
#include "runtime/private.h"

#include <stdlib.h>
#include <string.h>

#define LOG_BYTES           (32u << 10)
#define QUOTED_LINES        12
#define WATCHDOG_DEFAULT_NS UINT64_C(10000000000)

/* ---- the assembler's logs -------------------------------------------------------------------- */

typedef struct Logs {
    char *info, *error; /* NUL-terminated */
} Logs;

static size_t line_length(const char *text) { return strcspn(text, "\n"); }

static const char *after_line(const char *text) {
    text += line_length(text);
    return text[0] == 0 ? text : text + 1;
}

/* The first line of the log that names a PTX line; stores that in *line. */
static const char *first_complaint(const Logs *logs, Diags *diags, uint32_t *line) {
    const char *text = "";
    *line = 0;
    for (const char *at = logs->error; at[0] != 0 && *line == 0; at = after_line(at)) {
        text = arena_copy(diags->arena, at, line_length(at));
        *line = assembler_line(text).line;
    }
    return assembler_words(text);
}

static void rejected(const Runtime *runtime, const Manifest *manifest, DriverError error,
                     const Logs *logs, Diags *diags) {
    uint32_t line;
    first_complaint(logs, diags, &line);
    const char *message = arena_printf(diags->arena, "the driver rejects the PTX of `%s`: %s (%s)",
                                       manifest->kernel, driver_error_name(&runtime->driver, error),
                                       driver_error_text(&runtime->driver, error));
    Diag *diag = assembler_diag(manifest, diags, P0801, line, message);
    int quoted = 0;
    for (const char *at = logs->error; at[0] != 0 && quoted < QUOTED_LINES; at = after_line(at))
        if (line_length(at) > 0) {
            diag_note(diags, diag, "%.*s", (int)line_length(at), at);
            quoted++;
        }
    assembler_note_line(manifest, diags, diag, line);
    note_blame(manifest, diags, diag, "this is a bug in pipec, or in the driver");
}

static DriverError load_module(const Driver *driver, const char *ptx, const Logs *logs,
                               DriverModule *module) {
    unsigned options[] = {JIT_INFO_LOG_BUFFER,  JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                          JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                          JIT_LOG_VERBOSE,      JIT_GENERATE_LINE_INFO};
    /* These options pass their numbers as pointer values */
    void *size = (void *)(uintptr_t)(LOG_BYTES - 1), *yes = (void *)(uintptr_t)1;
    void *values[] = {logs->info, size, logs->error, size, yes, yes};
    return driver->module_load(module, ptx, COUNT_OF(options), options, values);
}

/* True if the driver accepts the text without the author's inline PTX */
static bool inline_is_at_fault(const Runtime *runtime, const Manifest *manifest, const char *ptx,
                               Diags *diags) {
    Logs logs = {arena_alloc(diags->arena, LOG_BYTES), arena_alloc(diags->arena, LOG_BYTES)};
    DriverModule module = NULL;
    if (manifest->inline_ptx.count == 0) return false;
    const char *ours = manifest_without_inline(diags->arena, manifest, ptx, strlen(ptx));
    if (load_module(&runtime->driver, ours, &logs, &module) != DRIVER_SUCCESS) return false;
    runtime->driver.module_unload(module);
    return true;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static RuntimeKernel *kernel_new(Runtime *runtime, const Manifest *manifest) {
    RuntimeKernel *kernel = calloc(1, sizeof *kernel);
    if (kernel == NULL) return NULL;
    kernel->runtime = runtime;
    kernel->manifest = manifest;
    if (!prepared_open(kernel) || !counters_open(kernel) ||
        pthread_mutex_init(&kernel->lock, NULL) != 0) {
        free(kernel->counters);
        prepared_close(kernel);
        free(kernel);
        return NULL;
    }
    return kernel;
}

void kernel_unload(RuntimeKernel *kernel) {
    const Driver *driver = &kernel->runtime->driver;
    bool kept = atomic_load(&kernel->captured);
    if (kernel->empty != 0 && !kept) driver->memory_free(kernel->empty);
    counters_close(kernel);
    if (kernel->watchdog != NULL && !kept) driver->host_free(kernel->watchdog);
    if (kernel->module != NULL && !kept) driver->module_unload(kernel->module);
    pthread_mutex_destroy(&kernel->lock);
    prepared_close(kernel);
    free(kernel);
}

static bool assemble(RuntimeKernel *kernel, const char *ptx, Diags *diags, RunStatus *status) {
    const Runtime *runtime = kernel->runtime;
    Logs logs = {arena_alloc(diags->arena, LOG_BYTES), arena_alloc(diags->arena, LOG_BYTES)};
    DriverError error = load_module(&runtime->driver, ptx, &logs, &kernel->module);
    if (error == DRIVER_SUCCESS) {
        assembler_report(kernel->manifest, diags, P0802, logs.info);
        return true;
    }
    kernel->module = NULL;
    *status = RUN_REJECTED;
    if (error == DRIVER_ERROR_OUT_OF_MEMORY)
        *status = kernel_failed(kernel, error, "cuModuleLoadDataEx", diags);
    else if (error == DRIVER_ERROR_JIT_COMPILER_NOT_FOUND ||
             error == DRIVER_ERROR_JIT_COMPILATION_DISABLED ||
             error == DRIVER_ERROR_UNSUPPORTED_PTX_VERSION)
        *status = driver_failed(runtime, kernel->manifest, error, "cuModuleLoadDataEx", diags);
    else if (inline_is_at_fault(runtime, kernel->manifest, ptx, diags)) {
        uint32_t line;
        const char *why = first_complaint(&logs, diags, &line);
        manifest_report_inline(kernel->manifest, diags, line, why);
        *status = RUN_FINDING;
    } else
        rejected(runtime, kernel->manifest, error, &logs, diags);
    return false;
}

/* False, and *why: the driver does not take it */
static bool load_cubin(RuntimeKernel *kernel, const void *cubin, Arena *arena, const char **why) {
    const Driver *driver = &kernel->runtime->driver;
    DriverError error = driver->module_load(&kernel->module, cubin, 0, NULL, NULL);
    if (error == DRIVER_SUCCESS) return true;
    kernel->module = NULL;
    *why = arena_printf(arena, "the driver refuses it: %s (%s)", driver_error_name(driver, error),
                        driver_error_text(driver, error));
    return false;
}

/* The blocks of a cluster share a part of the device (a GPC), which may leave multiprocessors
 * unused: the driver says how many fit. */
static DriverError count_clusters(RuntimeKernel *kernel, int *clusters) {
    const Manifest *manifest = kernel->manifest;
    int size = manifest->cluster[0];
    DriverLaunchAttribute shape = {.id = LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value = {size, 1, 1}};
    DriverLaunchConfig config = {.grid_x = (unsigned)size,
                                 .grid_y = 1,
                                 .grid_z = 1,
                                 .block_x = (unsigned)manifest->threads,
                                 .block_y = 1,
                                 .block_z = 1,
                                 .shared_bytes = manifest->shared_bytes,
                                 .attributes = &shape,
                                 .attribute_count = 1};
    return kernel->runtime->driver.occupancy_clusters(
        clusters, kernel->function, (const struct CUlaunchConfig_st *)(const void *)&config);
}

/* Gets the entry, sets its shared memory, and asks how many of its blocks the device holds */
static bool measure(RuntimeKernel *kernel, Diags *diags, RunStatus *status) {
    const Runtime *runtime = kernel->runtime;
    const Driver *driver = &runtime->driver;
    const Manifest *manifest = kernel->manifest;
    const char *call = "cuModuleGetFunction";
    DriverError error =
        driver->module_function(&kernel->function, kernel->module, manifest->kernel);
    if (error == DRIVER_SUCCESS) {
        call = "cuFuncSetAttribute";
        error = driver->function_set(kernel->function, FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                     (int)manifest->shared_bytes);
    }
    if (error == DRIVER_SUCCESS) {
        call = "cuFuncGetAttribute";
        error = driver->function_get(&kernel->registers, FUNC_ATTRIBUTE_NUM_REGS, kernel->function);
    }
    int blocks = 0;
    if (error == DRIVER_SUCCESS) {
        call = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
        error =
            driver->occupancy(&blocks, kernel->function, manifest->threads, manifest->shared_bytes);
    }
    int clusters = 1;
    if (error == DRIVER_SUCCESS && blocks > 0 && manifest->cluster[0] > 1) {
        call = "cuOccupancyMaxActiveClusters";
        error = count_clusters(kernel, &clusters);
        if (error != DRIVER_SUCCESS) {
            *status = kernel_failed(kernel, error, call, diags);
            return false;
        }
    }
    /* The attribute's only invalid value is one above the limit of a block */
    bool too_large =
        error == DRIVER_SUCCESS ? blocks < 1 || clusters < 1 : error == DRIVER_ERROR_INVALID_VALUE;
    if (error == DRIVER_SUCCESS && !too_large) {
        kernel->blocks_per_multiprocessor = blocks;
        kernel->resident = manifest->cluster[0] > 1 ? clusters * manifest->cluster[0]
                                                    : blocks * runtime->facts.multiprocessors;
        return true;
    }
    *status = kernel_failed(kernel, too_large ? DRIVER_ERROR_LAUNCH_OUT_OF_RESOURCES : error, call,
                            diags);
    return false;
}

static bool set_watchdog(RuntimeKernel *kernel, Diags *diags, RunStatus *status) {
    const Driver *driver = &kernel->runtime->driver;
    void *area = NULL;
    if (!kernel->manifest->watchdog) return true;
    DriverError error = driver->host_new(&area, sizeof(WatchdogArea),
                                         MEMHOSTALLOC_PORTABLE | MEMHOSTALLOC_DEVICEMAP);
    if (error == DRIVER_SUCCESS) {
        memset(area, 0, sizeof(WatchdogArea));
        kernel->watchdog = area;
        kernel->watchdog->limit_ns = WATCHDOG_DEFAULT_NS;
        error = driver->host_pointer(&kernel->watchdog_address, area, 0);
    }
    if (error == DRIVER_SUCCESS) return true;
    *status = driver_failed(kernel->runtime, kernel->manifest, error, "cuMemHostAlloc", diags);
    return false;
}

/* Allocates the bytes that maps of empty tensors refer to (launch/manifest.h), because a launch
 * allocates nothing */
static bool set_empty(RuntimeKernel *kernel, Diags *diags, RunStatus *status) {
    const char *call;
    if (kernel->manifest->maps.count == 0) return true;
    DriverError error =
        zeros_new(&kernel->runtime->driver, 2 * (size_t)EMPTY_ROOM, &kernel->empty, &call);
    if (error == DRIVER_SUCCESS) return true;
    *status = kernel_failed(kernel, error, call, diags);
    return false;
}

/* A kernel whose module is not loaded yet; NULL and diagnostics: not enough memory */
static RuntimeKernel *kernel_empty(Runtime *runtime, const Manifest *manifest, Diags *diags) {
    RuntimeKernel *kernel = kernel_new(runtime, manifest);
    if (kernel == NULL)
        diag_plain(diags, P0610, "not enough host memory to load `%s`", manifest->kernel);
    return kernel;
}

RuntimeKernel *kernel_load(Runtime *runtime, const Manifest *manifest, const char *ptx,
                           Diags *diags, RunStatus *status) {
    RuntimeKernel *kernel = kernel_empty(runtime, manifest, diags);
    *status = RUN_UNAVAILABLE;
    if (kernel == NULL) return NULL;
    if (assemble(kernel, ptx, diags, status) && measure(kernel, diags, status) &&
        set_watchdog(kernel, diags, status) && set_empty(kernel, diags, status))
        return kernel;
    kernel_unload(kernel);
    return NULL;
}

/* The same from a cubin; *why: as runtime_load_cubin */
static RuntimeKernel *kernel_load_cubin(Runtime *runtime, const Manifest *manifest,
                                        const void *cubin, const char **why, Diags *diags) {
    RuntimeKernel *kernel = kernel_empty(runtime, manifest, diags);
    RunStatus status;
    if (kernel == NULL) return NULL;
    if (load_cubin(kernel, cubin, diags->arena, why) && measure(kernel, diags, &status)) {
        if (manifest->registers > 0 && kernel->registers != manifest->registers)
            *why = arena_printf(diags->arena,
                                "the driver starts a thread with %d registers instead of %d",
                                kernel->registers, manifest->registers);
        else if (set_watchdog(kernel, diags, &status) && set_empty(kernel, diags, &status))
            return kernel;
    }
    kernel_unload(kernel);
    return NULL;
}

typedef struct Loading {
    Runtime *runtime;
    const Manifest *manifest;
    const char *ptx;
    const void *cubin; /* NULL: the PTX is loaded */
    const char *why;
    Diags *diags;
} Loading;

/* In the device's context, also while a stream is captured */
static RuntimeKernel *load_inside(Loading *it) {
    Runtime *runtime = it->runtime;
    const Driver *driver = &runtime->driver;
    RuntimeKernel *kernel = NULL;
    Entered entered;
    unsigned before;
    RunStatus status;
    if (!runtime_enter(runtime, &entered, it->diags)) return NULL;
    DriverError error = capture_relax(driver, &before);
    if (error == DRIVER_SUCCESS) {
        kernel = it->cubin != NULL
                     ? kernel_load_cubin(runtime, it->manifest, it->cubin, &it->why, it->diags)
                     : kernel_load(runtime, it->manifest, it->ptx, it->diags, &status);
        capture_restore(driver, before);
    } else {
        driver_failed(runtime, NULL, error, "cuThreadExchangeStreamCaptureMode", it->diags);
    }
    runtime_leave(runtime, entered);
    return kernel;
}

RuntimeKernel *runtime_load(Arena *arena, Runtime *runtime, const Manifest *manifest,
                            const char *ptx, size_t length, Diags *diags) {
    Loading it = {.runtime = runtime,
                  .manifest = manifest,
                  .ptx = arena_copy(arena, ptx, length),
                  .diags = diags};
    return load_inside(&it);
}

RuntimeKernel *runtime_load_cubin(Runtime *runtime, const Manifest *manifest, const void *cubin,
                                  const char **why, Diags *diags) {
    Loading it = {.runtime = runtime, .manifest = manifest, .cubin = cubin, .diags = diags};
    RuntimeKernel *kernel = load_inside(&it);
    *why = it.why;
    return kernel;
}

/* Frees what it can: after a fault every call fails, and the resources are freed with the
 * context. */
void runtime_unload(RuntimeKernel *kernel) {
    if (kernel == NULL) return;
    const Runtime *runtime = kernel->runtime;
    Entered entered;
    unsigned before;
    bool inside = context_enter(runtime, &entered) == DRIVER_SUCCESS,
         relaxed = capture_relax(&runtime->driver, &before) == DRIVER_SUCCESS;
    kernel_unload(kernel);
    if (relaxed) capture_restore(&runtime->driver, before);
    if (inside) runtime_leave(runtime, entered);
}

int runtime_blocks_per_multiprocessor(const RuntimeKernel *kernel) {
    return kernel->blocks_per_multiprocessor;
}

int runtime_registers(const RuntimeKernel *kernel) { return kernel->registers; }

bool runtime_is_captured(const RuntimeKernel *kernel) { return atomic_load(&kernel->captured); }
