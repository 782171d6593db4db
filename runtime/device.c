/* runtime: opens a device for a target and PTX version. Returns a Runtime in the device's
 * primary context, or the reason why there is none, as a sentence that names the devices of the
 * machine. The caller's current context is kept. */
#define PIPEC_OWN_MEMORY
#include "runtime/private.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* ---- versions -------------------------------------------------------------------------------- */

/* First CUDA release whose driver reads a PTX version: PTX ISA, "Release Notes" */
static const struct {
    int ptx_major, ptx_minor, cuda_major, cuda_minor;
} readers[] = {{7, 8, 11, 8}, {8, 0, 12, 0}, {8, 1, 12, 1}, {8, 2, 12, 2},
               {8, 3, 12, 3}, {8, 4, 12, 4}, {8, 5, 12, 5}, {8, 6, 12, 7},
               {8, 7, 12, 8}, {8, 8, 12, 9}, {9, 0, 13, 0}, {9, 1, 13, 1}};

/* In the format of cuDriverGetVersion: 12030. 0 for versions that are not in the table: then
 * only the driver's assembler decides. */
static int version_needed(int ptx_major, int ptx_minor) {
    for (size_t i = 0; i < COUNT_OF(readers); i++)
        if (readers[i].ptx_major > ptx_major ||
            (readers[i].ptx_major == ptx_major && readers[i].ptx_minor >= ptx_minor))
            return readers[i].cuda_major * 1000 + readers[i].cuda_minor * 10;
    return 0;
}

/* "sm_90a" runs on 9.0 only, "sm_100f" on 10.x, "sm_80" on 8.0 and all later ones. */
static bool capable(const char *target, int major, int minor) {
    if (strncmp(target, "sm_", 3) != 0) return false;
    char *suffix;
    long number = strtol(target + 3, &suffix, 10);
    long wanted_major = number / 10, wanted_minor = number % 10;
    if (suffix[0] == 'a') return major == wanted_major && minor == wanted_minor;
    if (suffix[0] == 'f') return major == wanted_major && minor >= wanted_minor;
    return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
}

/* A cubin of ptxas runs on the devices of its generation that are not older; PTX without a suffix
 * also on newer generations, whose driver compiles it (CUDA C Programming Guide, "Binary
 * Compatibility"). */
bool runtime_takes_cubin(const Runtime *runtime, const char *target) {
    return capable(target, runtime->major, runtime->minor) &&
           strtol(target + 3, NULL, 10) / 10 == runtime->major;
}

static const char *capability_text(Arena *arena, const char *target) {
    char *suffix;
    long number = strtol(target + 3, &suffix, 10);
    const char *which = suffix[0] == 'a'   ? "exactly"
                        : suffix[0] == 'f' ? "the family of"
                                           : "at least";
    return arena_printf(arena, "%s %ld.%ld", which, number / 10, number % 10);
}

/* Of targets that a device can run, that with the largest number is the best: the newest one, and
 * of one generation that of the exact architecture, then that of the family. */
static long merit(const char *target) {
    char *suffix;
    long number = strtol(target + 3, &suffix, 10);
    return 3 * number + (suffix[0] == 'a' ? 2 : suffix[0] == 'f' ? 1 : 0);
}

/* ---- opening --------------------------------------------------------------------------------- */

typedef struct Opening {
    Arena *arena;
    Driver driver;
    const RuntimeTarget *targets;
    int count; /* of them */
    int ordinal;
    int found;        /* index of the selected device */
    int major, minor; /* its compute capability */
    RuntimeLack lack;
    const char *why;
} Opening;

static bool lacks(Opening *opening, RuntimeLack lack, const char *format, ...) PRINTF_LIKE(3, 4);
static bool lacks(Opening *opening, RuntimeLack lack, const char *format, ...) {
    va_list args;
    va_start(args, format);
    opening->lack = lack;
    opening->why = arena_vprintf(opening->arena, format, args);
    va_end(args);
    return false;
}

static bool call_failed(Opening *opening, DriverError error, const char *call) {
    const char *name = driver_error_name(&opening->driver, error),
               *text = driver_error_text(&opening->driver, error);
    RuntimeLack lack = RUNTIME_FAILED;
    if (error == DRIVER_ERROR_NO_DEVICE || error == DRIVER_ERROR_INVALID_DEVICE)
        lack = RUNTIME_NO_DEVICE;
    if (error == DRIVER_ERROR_STUB_LIBRARY) lack = RUNTIME_NO_DRIVER;
    if (error == DRIVER_ERROR_CALL_REQUIRES_NEWER_DRIVER ||
        error == DRIVER_ERROR_SYSTEM_DRIVER_MISMATCH ||
        error == DRIVER_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE)
        lack = RUNTIME_OLD_DRIVER;
    return lacks(opening, lack, "%s says %s (%s)", call, name, text);
}

static bool open_library(Opening *opening) {
    const char *missing;
    if (driver_open(&opening->driver, &missing)) return true;
    if (missing != NULL)
        return lacks(opening, RUNTIME_OLD_DRIVER,
                     "the NVIDIA driver is too old: it has no %s, which CUDA 12.0 introduced",
                     missing);
    const char *reason = dlerror();
    return lacks(opening, RUNTIME_NO_DRIVER, "cannot load the library of the NVIDIA driver: %s",
                 reason != NULL ? reason : "libcuda.so.1");
}

/* Reads name and capability of device i; appends "device 0 is NVIDIA A100 (8.0)" to the list. */
static bool inspect_device(Opening *opening, int i, bool *fits, Str *list) {
    const Driver *driver = &opening->driver;
    int device, major, minor;
    char name[256] = "";
    DriverError error = driver->device_get(&device, i);
    if (error == DRIVER_SUCCESS) error = driver->device_name(name, sizeof name, device);
    if (error == DRIVER_SUCCESS)
        error = driver->device_attribute(&major, DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (error == DRIVER_SUCCESS)
        error = driver->device_attribute(&minor, DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    if (error != DRIVER_SUCCESS) return call_failed(opening, error, "the query of a device");
    str_printf(list, "%sdevice %d is %s (%d.%d)", list->length > 0 ? ", " : "", i, name, major,
               minor);
    *fits = false;
    for (int t = 0; t < opening->count; t++)
        *fits = *fits || capable(opening->targets[t].name, major, minor);
    opening->major = major, opening->minor = minor;
    return true;
}

/* "sm_90a, which needs compute capability exactly 9.0, or sm_80, which .." */
static const char *wanted_text(const Opening *opening) {
    Str text = str_new(opening->arena);
    for (int t = 0; t < opening->count; t++) {
        const char *name = opening->targets[t].name;
        str_printf(&text, "%s%s, which needs compute capability %s", t > 0 ? ", or " : "", name,
                   capability_text(opening->arena, name));
    }
    return text.text;
}

static bool choose_device(Opening *opening) {
    int count = 0;
    DriverError error = opening->driver.init(0);
    if (error != DRIVER_SUCCESS) return call_failed(opening, error, "cuInit");
    error = opening->driver.device_count(&count);
    if (error != DRIVER_SUCCESS) return call_failed(opening, error, "cuDeviceGetCount");
    if (count == 0) return lacks(opening, RUNTIME_NO_DEVICE, "the NVIDIA driver finds no GPU");
    Str list = str_new(opening->arena);
    for (int i = 0; i < count; i++) {
        bool fits = false;
        if (!inspect_device(opening, i, &fits, &list)) return false;
        if (fits && (opening->ordinal < 0 || opening->ordinal == i)) {
            opening->found = i;
            return true;
        }
    }
    if (opening->ordinal >= count)
        return lacks(opening, RUNTIME_WRONG_DEVICE, "device %d does not exist: %s",
                     opening->ordinal, list.text);
    const char *wanted = wanted_text(opening);
    if (opening->ordinal >= 0)
        return lacks(opening, RUNTIME_WRONG_DEVICE, "device %d cannot run %s: %s", opening->ordinal,
                     wanted, list.text);
    return lacks(opening, RUNTIME_WRONG_DEVICE, "no device can run %s: %s", wanted, list.text);
}

static bool driver_reads(Opening *opening, const RuntimeTarget *target) {
    int ptx_major = target->ptx_major, ptx_minor = target->ptx_minor;
    int version = 0, needed = version_needed(ptx_major, ptx_minor);
    DriverError error = opening->driver.version(&version);
    if (error != DRIVER_SUCCESS) return call_failed(opening, error, "cuDriverGetVersion");
    if (version >= needed) return true;
    return lacks(opening, RUNTIME_OLD_DRIVER,
                 "the NVIDIA driver is too old for PTX %d.%d: this needs CUDA %d.%d, but the "
                 "driver has %d.%d",
                 ptx_major, ptx_minor, needed / 1000, needed % 1000 / 10, version / 1000,
                 version % 1000 / 10);
}

static DriverError read_facts(const Driver *driver, int device, DeviceFacts *facts) {
    size_t memory = 0;
    int l2 = 0;
    DriverError error = driver->device_attribute(&facts->multiprocessors,
                                                 DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    if (error == DRIVER_SUCCESS)
        error = driver->device_attribute(&l2, DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
    if (error == DRIVER_SUCCESS) error = driver->device_memory(&memory, device);
    facts->l2_bytes = l2, facts->memory_bytes = (int64_t)memory;
    return error;
}

/* The remaining steps, in an order in which each can be undone */
static Runtime *take_device(Opening *opening) {
    Runtime *runtime = calloc(1, sizeof *runtime);
    if (runtime == NULL) {
        lacks(opening, RUNTIME_FAILED, "not enough host memory for the state of the device");
        return NULL;
    }
    runtime->driver = opening->driver;
    runtime->ordinal = opening->found;
    runtime->major = opening->major, runtime->minor = opening->minor;
    const Driver *driver = &runtime->driver;
    const char *call = "cuDeviceGet";
    DriverError error = driver->device_get(&runtime->device, opening->found);
    if (error == DRIVER_SUCCESS)
        error = driver->device_name(runtime->name, sizeof runtime->name - 1, runtime->device);
    if (error == DRIVER_SUCCESS) error = read_facts(driver, runtime->device, &runtime->facts);
    if (error == DRIVER_SUCCESS) {
        call = "cuDevicePrimaryCtxRetain";
        error = driver->context_retain(&runtime->context, runtime->device);
    }
    if (error == DRIVER_SUCCESS) return runtime;
    call_failed(opening, error, call);
    free(runtime);
    return NULL;
}

Runtime *runtime_open(Arena *arena, int ordinal, const char *target, int ptx_major, int ptx_minor,
                      RuntimeLack *lack, const char **why) {
    RuntimeTarget only = {target, ptx_major, ptx_minor};
    Opening opening = {.arena = arena, .targets = &only, .count = 1, .ordinal = ordinal};
    Runtime *runtime = NULL;
    if (open_library(&opening) && choose_device(&opening) && driver_reads(&opening, &only))
        runtime = take_device(&opening);
    if (runtime == NULL) driver_close(&opening.driver);
    *lack = opening.lack;
    *why = opening.why;
    return runtime;
}

bool runtime_find(Arena *arena, int ordinal, const char *target, int ptx_major, int ptx_minor,
                  DeviceFacts *facts) {
    RuntimeTarget only = {target, ptx_major, ptx_minor};
    Opening opening = {.arena = arena, .targets = &only, .count = 1, .ordinal = ordinal};
    char name[256] = "";
    int device;
    bool found = open_library(&opening) && choose_device(&opening) &&
                 driver_reads(&opening, &only) &&
                 opening.driver.device_get(&device, opening.found) == DRIVER_SUCCESS &&
                 opening.driver.device_name(name, sizeof name - 1, device) == DRIVER_SUCCESS &&
                 read_facts(&opening.driver, device, facts) == DRIVER_SUCCESS;
    driver_close(&opening.driver);
    facts->name = arena_copy(arena, name, strlen(name));
    return found;
}

/* One whose PTX the driver cannot read is the best only if there is no other: it is reported when
 * it is opened. */
static int best_target(Opening *opening) {
    int best = -1;
    bool best_read = false;
    for (int t = 0; t < opening->count; t++) {
        const RuntimeTarget *target = &opening->targets[t];
        if (!capable(target->name, opening->major, opening->minor)) continue;
        bool read = driver_reads(opening, target);
        bool newer = best < 0 || merit(target->name) > merit(opening->targets[best].name);
        if (best >= 0 && (read != best_read ? best_read : !newer)) continue;
        best = t, best_read = read;
    }
    return best;
}

int runtime_pick(Arena *arena, int ordinal, const RuntimeTarget *targets, int count,
                 RuntimeLack *lack, const char **why) {
    Opening opening = {.arena = arena, .targets = targets, .count = count, .ordinal = ordinal};
    int best = open_library(&opening) && choose_device(&opening) ? best_target(&opening) : -1;
    driver_close(&opening.driver);
    *lack = best < 0 ? opening.lack : RUNTIME_FINE;
    *why = opening.why;
    return best;
}

void runtime_close(Runtime *runtime) {
    if (runtime == NULL) return;
    runtime->driver.context_release(runtime->device);
    driver_close(&runtime->driver);
    free(runtime);
}

const char *runtime_device_name(const Runtime *runtime) { return runtime->name; }
int runtime_ordinal(const Runtime *runtime) { return runtime->ordinal; }
int runtime_multiprocessors(const Runtime *runtime) { return runtime->facts.multiprocessors; }

DeviceFacts runtime_facts(const Runtime *runtime) {
    DeviceFacts facts = runtime->facts;
    facts.name = runtime->name;
    return facts;
}

/* ---- the caller's context -------------------------------------------------------------------- */

DriverError context_enter(const Runtime *runtime, Entered *entered) {
    DriverContext current = NULL;
    entered->pushed = false;
    DriverError error = runtime->driver.context_current(&current);
    if (error == DRIVER_SUCCESS && current == runtime->context) return error;
    error = runtime->driver.context_push(runtime->context);
    entered->pushed = error == DRIVER_SUCCESS;
    return error;
}

bool runtime_enter(const Runtime *runtime, Entered *entered, Diags *diags) {
    DriverError error = context_enter(runtime, entered);
    if (error == DRIVER_SUCCESS) return true;
    driver_failed(runtime, NULL, error, "cuCtxPushCurrent", diags);
    return false;
}

void runtime_leave(const Runtime *runtime, Entered entered) {
    DriverContext context;
    if (entered.pushed) runtime->driver.context_pop(&context);
}

/* ---- while streams are captured -------------------------------------------------------------- */

DriverError capture_relax(const Driver *driver, unsigned *before) {
    *before = STREAM_CAPTURE_MODE_RELAXED;
    return driver->capture_mode(before);
}

DriverError capture_restore(const Driver *driver, unsigned before) {
    return driver->capture_mode(&before);
}

static DriverError write_zeros(const Driver *driver, size_t bytes, DevicePointer base,
                               const char **call) {
    static const unsigned char zeros[ZEROS_MOST];
    DriverStream stream;
    *call = "cuStreamCreate";
    DriverError error = driver->stream_new(&stream, STREAM_NON_BLOCKING);
    if (error != DRIVER_SUCCESS) return error;
    *call = "cuMemcpyHtoDAsync";
    error = driver->copy_in(base, zeros, bytes, stream);
    if (error == DRIVER_SUCCESS) {
        *call = "cuStreamSynchronize";
        error = driver->stream_wait(stream);
    }
    DriverError freed = driver->stream_free(stream);
    return error == DRIVER_SUCCESS ? freed : error;
}

DriverError zeros_new(const Driver *driver, size_t bytes, DevicePointer *base, const char **call) {
    assert(bytes <= ZEROS_MOST);
    *call = "cuMemAlloc";
    DriverError error = driver->memory_new(base, bytes);
    if (error == DRIVER_SUCCESS) {
        error = write_zeros(driver, bytes, *base, call);
        if (error != DRIVER_SUCCESS) driver->memory_free(*base);
    }
    if (error != DRIVER_SUCCESS) *base = 0;
    return error;
}
