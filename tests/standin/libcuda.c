/* A libcuda.so.1 that needs no GPU: device memory is host memory, a launch does what the test
 * defines, and the environment selects errors. To use it, build it and name it in PIPEC_LIBCUDA:
 *
 *     make build/release/standin/libcuda.so.1
 *     PIPEC_LIBCUDA=build/release/standin/libcuda.so.1 PIPEC_STANDIN=hang \
 *         pipec run examples/axpy.pipe
 *
 * PIPEC_STANDIN is a comma-separated list of words; cuInit reads it. Without words there is one
 * device of capability 9.0 with unlimited memory and a new driver, and launches do nothing.
 *
 *     init=N          cuInit fails with error N: 100 no device, 803 driver mismatch, ...
 *     devices=N       there are N devices, also 0
 *     shared=N        most bytes of shared memory of a block
 *     capability=M.m  of all devices: 8.0 is older than sm_90a, 12.0 newer; 8.0:9.0:10.0: of each
 *                     device, the last one of all that follow
 *     driver=N        cuDriverGetVersion: 11080, 12030, ...
 *     memory=BYTES    of the device
 *     jit             the PTX is rejected, with a log in the form of ptxas, which names line `line`
 *     text=WORD       for jit: only PTX that contains the word is rejected
 *     line=N          for jit and warn; default 24
 *     warn            the PTX is accepted, with a C7510, a spill and a warning in the log
 *     jit=N           cuModuleLoadDataEx fails with error N and an empty log
 *     cubin=N         cuModuleLoadDataEx fails with error N for cubins
 *     registers=N     of a thread, when a kernel begins; default 64
 *     hang            a launch does not end; then two warps have written records of the watchdog
 *                     and it has trapped
 *     endless=BLOCKS  a launch of so many blocks does not end
 *     slow=BLOCKS     the time of a launch of so many blocks is 100 times as long
 *     clock=N         milliseconds that each time has more; default 0
 *     fault=N         a launch ends with error N: 700 illegal address, ...
 *     launch=N        cuLaunchKernelEx fails with error N
 *     map             tensor maps are refused
 *     large           no block fits a multiprocessor
 *     apart           no cluster fits the device
 *     fail=FUNCTION   that function, for example cuMemAlloc_v2, fails with error 999 */
#include "runtime/driver.h"
#include "tests/standin/standin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

#define DRIVER(field, function, symbol, ...)                                                       \
    EXPORTED DriverError standin_##field __VA_ARGS__ __asm__(symbol);
#include "runtime/driver.def"
#undef DRIVER

EXPORTED extern Standin standin;
Standin standin;

/* Threads may call at once. */
#define COUNT(member, change) ((void)__atomic_add_fetch(&standin.member, change, __ATOMIC_SEQ_CST))

/* The thread's stack of contexts, and its mode of capture */
#define CONTEXTS_MOST 16
static _Thread_local struct {
    DriverContext contexts[CONTEXTS_MOST];
    int depth;
    unsigned capture_mode;
} thread;

/* The layout of WatchdogArea (launch/manifest.h), repeated on purpose */
typedef struct Area {
    uint64_t limit_ns, reserved;
    uint32_t records[32][4]; /* site, stage, block, rank */
} Area;

static struct {
    char words[1024];
    size_t memory_left;
    Area *area;
    int polls;        /* of the hanging launch */
    bool endless;     /* the last launch does not end */
    DriverError lost; /* result of every call after a fault */
} state;

/* ---- environment ----------------------------------------------------------------------------- */

/* The text after `word` in PIPEC_STANDIN: "" for a word without '='; NULL: not present */
static const char *option(const char *word) {
    size_t length = strlen(word);
    for (const char *at = state.words; *at != 0;) {
        size_t whole = strcspn(at, ",");
        if (whole >= length && strncmp(at, word, length) == 0 &&
            (whole == length || at[length] == '='))
            return at + length + (at[length] == '=');
        at += whole + (at[whole] == ',');
    }
    return NULL;
}

static long number(const char *word, long otherwise) {
    const char *text = option(word);
    return text != NULL && *text != 0 && *text != ',' ? strtol(text, NULL, 10) : otherwise;
}

static DriverError failing(const char *symbol) {
    const char *wanted = option("fail");
    size_t length = strlen(symbol);
    return wanted != NULL && strncmp(wanted, symbol, length) == 0 &&
                   (wanted[length] == 0 || wanted[length] == ',')
               ? 999
               : 0;
}

#define ERROR_INVALID_CONTEXT     201
#define ERROR_CAPTURE_UNSUPPORTED 900

/* Of calls that need a context, and that a capture forbids in other modes than the relaxed one */
static DriverError allowed(void) {
    if (thread.depth == 0) return ERROR_INVALID_CONTEXT;
    return standin.captures != 0 && thread.capture_mode != STREAM_CAPTURE_MODE_RELAXED
               ? ERROR_CAPTURE_UNSUPPORTED
               : 0;
}

/* Every function that can fail by option, or because the context is lost, begins with this. */
#define BEGIN(symbol)                                                                              \
    do {                                                                                           \
        if (failing(symbol) != 0) return 999;                                                      \
        if (state.lost != DRIVER_SUCCESS) return state.lost;                                       \
    } while (0)

/* ---- errors ---------------------------------------------------------------------------------- */

static const struct {
    DriverError error;
    const char *name, *text;
} errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"}};

DriverError standin_error_name(DriverError error, const char **text) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error) {
            *text = errors[i].name;
            return 0;
        }
    *text = NULL;
    return DRIVER_ERROR_INVALID_VALUE;
}

DriverError standin_error_text(DriverError error, const char **text) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error) {
            *text = errors[i].text;
            return 0;
        }
    *text = NULL;
    return DRIVER_ERROR_INVALID_VALUE;
}

/* ---- devices and contexts -------------------------------------------------------------------- */

DriverError standin_init(unsigned flags) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const char *words = getenv("PIPEC_STANDIN");
    if (words == NULL) words = "";
    pthread_mutex_lock(&lock);
    /* other threads may read them */
    if (strcmp(words, state.words) != 0) snprintf(state.words, sizeof state.words, "%s", words);
    pthread_mutex_unlock(&lock);
    state.memory_left = (size_t)number("memory", 1L << 46);
    state.lost = DRIVER_SUCCESS;
    state.polls = 0;
    state.endless = false;
    if (flags != 0) return DRIVER_ERROR_INVALID_VALUE;
    return (DriverError)number("init", 0);
}

DriverError standin_version(int *version) {
    BEGIN("cuDriverGetVersion");
    *version = (int)number("driver", 13000);
    return 0;
}

DriverError standin_device_count(int *count) {
    BEGIN("cuDeviceGetCount");
    *count = (int)number("devices", 1);
    return 0;
}

DriverError standin_device_get(int *device, int ordinal) {
    BEGIN("cuDeviceGet");
    if (ordinal < 0 || ordinal >= number("devices", 1)) return DRIVER_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return 0;
}

DriverError standin_device_name(char *name, int length, int device) {
    BEGIN("cuDeviceGetName");
    snprintf(name, (size_t)length, device == 0 ? "Stand-in" : "Stand-in %d", device);
    return 0;
}

static void capability_of(int device, int *major, int *minor) {
    const char *at = option("capability");
    for (int i = 0; at != NULL && i < device; i++) {
        size_t length = strcspn(at, ":,");
        if (at[length] != ':') break;
        at += length + 1;
    }
    if (at != NULL) sscanf(at, "%d.%d", major, minor);
}

DriverError standin_device_attribute(int *value, unsigned attribute, int device) {
    BEGIN("cuDeviceGetAttribute");
    int major = 9, minor = 0;
    capability_of(device, &major, &minor);
    *value = attribute == 13   ? 1980000 /* kHz */
             : attribute == 16 ? 4
             : attribute == 36 ? 2619000 /* kHz */
             : attribute == 37 ? 5120
             : attribute == 38 ? 1 << 20
             : attribute == 75 ? major
             : attribute == 76 ? minor
             : attribute == 97 ? 232448
                               : -1;
    return *value < 0 ? DRIVER_ERROR_INVALID_VALUE : 0;
}

DriverError standin_device_memory(size_t *bytes, int device) {
    BEGIN("cuDeviceTotalMem_v2");
    (void)device;
    *bytes = (size_t)number("memory", 1L << 46);
    return 0;
}

DriverError standin_context_retain(DriverContext *context, int device) {
    BEGIN("cuDevicePrimaryCtxRetain");
    COUNT(contexts, 1);
    *context = (DriverContext)(void *)(uintptr_t)(0x1000 + device);
    return 0;
}

DriverError standin_context_release(int device) {
    (void)device;
    COUNT(contexts, -1);
    return state.lost;
}

static DriverContext current(void) {
    return thread.depth > 0 ? thread.contexts[thread.depth - 1] : NULL;
}

DriverError standin_context_current(DriverContext *context) {
    *context = current();
    return 0;
}

DriverError standin_context_push(DriverContext context) {
    if (failing("cuCtxPushCurrent_v2") != 0) return 999;
    if (thread.depth == CONTEXTS_MOST) return DRIVER_ERROR_INVALID_VALUE;
    thread.contexts[thread.depth++] = context;
    COUNT(pushed, 1);
    COUNT(pushes, 1);
    return 0;
}

DriverError standin_context_pop(DriverContext *context) {
    *context = current();
    if (*context == NULL) return ERROR_INVALID_CONTEXT;
    thread.depth--;
    COUNT(pushed, -1);
    return 0;
}

/* ---- modules --------------------------------------------------------------------------------- */

/* Modules and device memory that are never freed are found by their counts, which tests compare. */
extern void __lsan_ignore_object(const void *block) __attribute__((weak));
static void count_only(const void *block) {
    if (__lsan_ignore_object != NULL) __lsan_ignore_object(block);
}

/* The last ones that were unloaded are kept, so that a later use is found */
#define UNLOADED_KEPT 64
typedef struct Module {
    int launching; /* threads that are in cuLaunchKernelEx */
    bool unloaded, captured;
    char target[16];
} Module;

/* The target of a text; "": it is a cubin */
static void note_target(Module *module, const char *image) {
    const char *at = image[0] != 0x7f ? strstr(image, "\n.target ") : NULL;
    if (at != NULL) sscanf(at, "\n.target %15s", module->target);
    memcpy(standin.loaded, module->target, sizeof standin.loaded);
}

static void set_log(unsigned count, const unsigned *options, void **values, unsigned which,
                    const char *text) {
    char *buffer = NULL;
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == which) buffer = values[i];
        if (options[i] == which + 1) bytes = (size_t)(uintptr_t)values[i];
    }
    if (buffer != NULL && bytes > 0) snprintf(buffer, bytes, "%s", text);
}

DriverError standin_module_load(DriverModule *module, const void *image, unsigned count,
                                unsigned *options, void **values) {
    BEGIN("cuModuleLoadDataEx");
    if (allowed() != 0) return allowed();
    char log[1024] = "", word[64] = "";
    long line = number("line", 24), error = number("jit", 0);
    if (error != 0) return (DriverError)error;
    if (memcmp(image,
               "\x7f"
               "ELF",
               4) == 0)
        error = number("cubin", 0);
    if (error != 0) return (DriverError)error;
    if (option("text") != NULL)
        snprintf(word, sizeof word, "%.*s", (int)strcspn(option("text"), ","), option("text"));
    if (option("jit") != NULL && (word[0] == 0 || strstr(image, word) != NULL)) {
        snprintf(log, sizeof log,
                 "ptxas application ptx input, line %ld; error   : Arguments mismatch for "
                 "instruction 'mov'\n"
                 "ptxas application ptx input, line %ld; error   : Unknown symbol '%%foo'\n"
                 "ptxas fatal   : Ptx assembly aborted due to errors\n",
                 line, line);
        set_log(count, options, values, 5, log);
        return DRIVER_ERROR_INVALID_PTX;
    }
    if (option("warn") != NULL)
        snprintf(
            log, sizeof log,
            "ptxas info    : 0 bytes gmem\n"
            "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
            "serialized due to "
            "wgmma pipeline crossing function boundary at a function call in the function 'axpy'\n"
            "ptxas info    : Function properties for 'axpy'\n"
            "ptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
            "ptxas application ptx input, line %ld; warning : a warning with a line\n",
            line);
    set_log(count, options, values, 3, log);
    if (standin.load_milliseconds > 0) usleep((useconds_t)standin.load_milliseconds * 1000);
    *module = (DriverModule)(void *)calloc(1, sizeof(Module));
    note_target((Module *)(void *)*module, image);
    count_only(*module);
    COUNT(modules, 1);
    COUNT(loads, 1);
    return 0;
}

DriverError standin_module_unload(DriverModule given) {
    Module *module = (Module *)(void *)given;
    bool stale = __atomic_load_n(&module->launching, __ATOMIC_SEQ_CST) != 0 ||
                 __atomic_load_n(&module->captured, __ATOMIC_SEQ_CST);
    stale |= __atomic_exchange_n(&module->unloaded, true, __ATOMIC_SEQ_CST);
    if (stale) COUNT(stale, 1);
    COUNT(modules, -1);
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static Module *last[UNLOADED_KEPT];
    static unsigned next;
    pthread_mutex_lock(&lock);
    free(last[next]);
    last[next] = module;
    next = (next + 1) % UNLOADED_KEPT;
    pthread_mutex_unlock(&lock);
    return state.lost;
}

DriverError standin_module_function(DriverFunction *function, DriverModule module,
                                    const char *name) {
    BEGIN("cuModuleGetFunction");
    (void)name;
    *function = (DriverFunction)(void *)module;
    return 0;
}

DriverError standin_function_set(DriverFunction function, unsigned attribute, int value) {
    BEGIN("cuFuncSetAttribute");
    (void)function;
    long most = number("shared", 232448);
    return attribute != 8 || value < 0 || value > most ? DRIVER_ERROR_INVALID_VALUE : 0;
}

DriverError standin_function_get(int *value, unsigned attribute, DriverFunction function) {
    BEGIN("cuFuncGetAttribute");
    (void)function;
    *value = attribute == 4 ? (int)number("registers", 64) : 0;
    return 0;
}

DriverError standin_occupancy(int *blocks, DriverFunction function, int threads,
                              size_t shared_bytes) {
    BEGIN("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    (void)function, (void)threads, (void)shared_bytes;
    *blocks = option("large") != NULL ? 0 : 1;
    return 0;
}

DriverError standin_occupancy_clusters(int *clusters, DriverFunction function,
                                       const struct CUlaunchConfig_st *given) {
    BEGIN("cuOccupancyMaxActiveClusters");
    const DriverLaunchConfig *config = (const void *)given;
    const DriverLaunchAttribute *shape = config->attributes;
    if (function == NULL || config->attribute_count != 1 ||
        shape->id != LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION || shape->value[0] < 2 ||
        config->grid_x % (unsigned)shape->value[0] != 0)
        return DRIVER_ERROR_INVALID_VALUE;
    *clusters = option("apart") != NULL ? 0 : 4 / shape->value[0]; /* four multiprocessors */
    return 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

DriverError standin_memory_info(size_t *available, size_t *total) {
    BEGIN("cuMemGetInfo_v2");
    *available = state.memory_left;
    *total = (size_t)number("memory", 1L << 46);
    return 0;
}

DriverError standin_memory_new(DevicePointer *pointer, size_t bytes) {
    BEGIN("cuMemAlloc_v2");
    if (allowed() != 0) return allowed();
    if (bytes == 0) return DRIVER_ERROR_INVALID_VALUE;
    if (bytes > state.memory_left) return DRIVER_ERROR_OUT_OF_MEMORY;
    void *block = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (block == NULL) return DRIVER_ERROR_OUT_OF_MEMORY;
    *pointer = (DevicePointer)(uintptr_t)block;
    count_only(block);
    COUNT(allocations, 1);
    return 0;
}

/* A real driver refuses after a fault, and frees memory with the context; the stand-in would
 * leak. */
DriverError standin_memory_free(DevicePointer pointer) {
    free((void *)(uintptr_t)pointer);
    COUNT(allocations, -1);
    return state.lost;
}

DriverError standin_host_new(void **pointer, size_t bytes, unsigned flags) {
    BEGIN("cuMemHostAlloc");
    if ((flags & MEMHOSTALLOC_DEVICEMAP) == 0) return DRIVER_ERROR_INVALID_VALUE;
    *pointer = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    state.area = *pointer;
    COUNT(host_allocations, 1);
    return 0;
}

DriverError standin_host_pointer(DevicePointer *device, void *host, unsigned flags) {
    BEGIN("cuMemHostGetDevicePointer_v2");
    *device = (DevicePointer)(uintptr_t)host;
    return flags != 0 ? DRIVER_ERROR_INVALID_VALUE : 0;
}

DriverError standin_host_free(void *pointer) {
    free(pointer);
    state.area = NULL;
    COUNT(host_allocations, -1);
    return state.lost;
}

DriverError standin_copy_in(DevicePointer to, const void *from, size_t bytes, DriverStream stream) {
    BEGIN("cuMemcpyHtoDAsync_v2");
    if (allowed() != 0) return allowed();
    if (standin.captures != 0 && stream == NULL) return ERROR_CAPTURE_UNSUPPORTED;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

DriverError standin_copy_out(void *to, DevicePointer from, size_t bytes, DriverStream stream) {
    BEGIN("cuMemcpyDtoHAsync_v2");
    (void)stream;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

DriverError standin_copy(DevicePointer to, DevicePointer from, size_t bytes, DriverStream stream) {
    BEGIN("cuMemcpyDtoDAsync_v2");
    (void)stream;
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

/* The rules of cuTensorMapEncodeTiled that depend on a launch; the encoded "map" is only an
 * identifier. */
DriverError standin_map_encode(struct CUtensorMap_st *map, unsigned type, uint32_t rank,
                               void *address, const uint64_t *extents, const uint64_t *strides,
                               const uint32_t *box, const uint32_t *element_strides,
                               unsigned interleave, unsigned swizzle, unsigned promotion,
                               unsigned fill) {
    BEGIN("cuTensorMapEncodeTiled");
    bool fine = option("map") == NULL && (uintptr_t)map % TENSOR_MAP_BYTES == 0 &&
                address != NULL && (uintptr_t)address % 16 == 0 && rank >= 1 && rank <= 5;
    StandinMap seen = {.type = type,
                       .swizzle = swizzle,
                       .interleave = interleave,
                       .promotion = promotion,
                       .fill = fill,
                       .rank = rank,
                       .address = (uintptr_t)address};
    for (uint32_t i = 0; fine && i < rank; i++) {
        fine = extents[i] >= 1 && extents[i] <= UINT64_C(1) << 32 && box[i] >= 1 && box[i] <= 256 &&
               element_strides[i] == 1 && (i == 0 || strides[i - 1] % 16 == 0);
        seen.extents[i] = extents[i], seen.box[i] = box[i],
        seen.element_strides[i] = element_strides[i];
        if (i > 0) seen.strides[i - 1] = strides[i - 1];
    }
    if (!fine) return DRIVER_ERROR_INVALID_VALUE;
    standin.map = seen;
    COUNT(encoded, 1);
    memset(map, 0, TENSOR_MAP_BYTES);
    memcpy(map, &seen.address, sizeof seen.address);
    return 0;
}

/* ---- launches -------------------------------------------------------------------------------- */

static DriverError launch(const DriverLaunchConfig *config, void **parameters) {
    if (option("launch") != NULL) return (DriverError)number("launch", 999);
    if (standin.kernel != NULL) standin.kernel(parameters, config->grid_x);
    if (option("hang") != NULL && state.area != NULL) {
        static const uint32_t records[2][4] = {{1, 3, 0, 0}, {2, 4, 7, 1}};
        memcpy(state.area->records, records, sizeof records);
        state.polls = 3;
    }
    state.endless = number("endless", -1) == (long)config->grid_x;
    return 0;
}

DriverError standin_launch(const struct CUlaunchConfig_st *given, DriverFunction function,
                           void **parameters, void **extra) {
    BEGIN("cuLaunchKernelEx");
    if (thread.depth == 0) return ERROR_INVALID_CONTEXT;
    const DriverLaunchConfig *config = (const void *)given;
    if (function == NULL || config->grid_x < 1 || config->grid_y != 1 || config->grid_z != 1 ||
        config->block_y != 1 || config->block_z != 1 || config->attribute_count > 1 ||
        extra != NULL)
        return DRIVER_ERROR_INVALID_VALUE;
    standin.grid = config->grid_x, standin.block = config->block_x,
    standin.shared_bytes = config->shared_bytes;
    standin.stream = config->stream;
    standin.programmatic =
        config->attribute_count == 1 &&
        config->attributes->id == LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
        config->attributes->value[0] == 1;
    COUNT(launches, 1);
    Module *module = (Module *)(void *)function;
    __atomic_add_fetch(&module->launching, 1, __ATOMIC_SEQ_CST);
    memcpy(standin.launched, module->target, sizeof standin.launched);
    if (config->stream != NULL && standin.captures != 0)
        __atomic_store_n(&module->captured, true, __ATOMIC_SEQ_CST);
    DriverError error = launch(config, parameters);
    __atomic_sub_fetch(&module->launching, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&module->unloaded, __ATOMIC_SEQ_CST)) COUNT(stale, 1);
    return error;
}

DriverError standin_stream_new(DriverStream *stream, unsigned flags) {
    BEGIN("cuStreamCreate");
    (void)flags;
    *stream = malloc(1);
    COUNT(streams, 1);
    return 0;
}

DriverError standin_stream_wait(DriverStream stream) {
    BEGIN("cuStreamSynchronize");
    (void)stream;
    return 0;
}

DriverError standin_stream_number(DriverStream stream, unsigned long long *number) {
    BEGIN("cuStreamGetId");
    *number = (unsigned long long)(uintptr_t)stream;
    return 0;
}

DriverError standin_capturing(DriverStream stream, unsigned *status) {
    BEGIN("cuStreamIsCapturing");
    *status = stream != NULL ? standin.captures : STREAM_CAPTURE_STATUS_NONE;
    return 0;
}

DriverError standin_capture_mode(unsigned *mode) {
    BEGIN("cuThreadExchangeStreamCaptureMode");
    if (standin.stays_relaxed && *mode != STREAM_CAPTURE_MODE_RELAXED)
        return DRIVER_ERROR_INVALID_VALUE;
    unsigned before = thread.capture_mode;
    standin.capture_mode = thread.capture_mode = *mode;
    *mode = before;
    return 0;
}

DriverError standin_stream_free(DriverStream stream) {
    free(stream);
    COUNT(streams, -1);
    return state.lost;
}

DriverError standin_event_new(DriverEvent *event, unsigned flags) {
    BEGIN("cuEventCreate");
    (void)flags;
    *event = malloc(1);
    COUNT(events, 1);
    return 0;
}

DriverError standin_event_record(DriverEvent event, DriverStream stream) {
    BEGIN("cuEventRecord");
    (void)event, (void)stream;
    return 0;
}

DriverError standin_event_query(DriverEvent event) {
    BEGIN("cuEventQuery");
    (void)event;
    if (state.endless) return DRIVER_ERROR_NOT_READY;
    if (state.polls > 1) {
        state.polls--;
        return DRIVER_ERROR_NOT_READY;
    }
    if (state.polls == 1) state.lost = DRIVER_ERROR_LAUNCH_FAILED;
    if (option("fault") != NULL) state.lost = (DriverError)number("fault", 700);
    return state.lost;
}

DriverError standin_event_elapsed(float *milliseconds, DriverEvent start, DriverEvent end) {
    BEGIN("cuEventElapsedTime");
    (void)start, (void)end;
    /* distinct values, so that the test sees the median */
    *milliseconds = (float)(number("clock", 0) + standin.launches);
    if (number("slow", -1) == (long)standin.grid) *milliseconds *= 100;
    if (standin.milliseconds > 0) *milliseconds = standin.milliseconds;
    return 0;
}

DriverError standin_event_free(DriverEvent event) {
    free(event);
    COUNT(events, -1);
    return state.lost;
}

/* ---- functions used only by the Python package ------------------------------------------------
 */

EXPORTED int standin_context_wait(void) __asm__("cuCtxSynchronize");
int standin_context_wait(void) {
    standin.waits++;
    return state.lost;
}

/* ---- functions used only by the benchmarks (bench/cuda.h) ------------------------------------ */

EXPORTED int standin_bus(char *text, int length, int device) __asm__("cuDeviceGetPCIBusId");
int standin_bus(char *text, int length, int device) {
    snprintf(text, (size_t)length, "0000:%02x:00.0", device + 1);
    return 0;
}

EXPORTED int standin_context_set(void *context) __asm__("cuCtxSetCurrent");
int standin_context_set(void *context) {
    if (context == NULL) return DRIVER_ERROR_INVALID_VALUE;
    if (thread.depth == 0) thread.depth = 1;
    thread.contexts[thread.depth - 1] = context;
    return 0;
}

EXPORTED int standin_set_bytes(DevicePointer to, unsigned char value, size_t bytes,
                               void *stream) __asm__("cuMemsetD8Async");
int standin_set_bytes(DevicePointer to, unsigned char value, size_t bytes, void *stream) {
    (void)stream;
    memset((void *)(uintptr_t)to, value, bytes);
    return 0;
}

EXPORTED int standin_copy_in_now(DevicePointer to, const void *from,
                                 size_t bytes) __asm__("cuMemcpyHtoD_v2");
int standin_copy_in_now(DevicePointer to, const void *from, size_t bytes) {
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

EXPORTED int standin_copy_out_now(void *to, DevicePointer from,
                                  size_t bytes) __asm__("cuMemcpyDtoH_v2");
int standin_copy_out_now(void *to, DevicePointer from, size_t bytes) {
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

EXPORTED int standin_event_wait(void *event) __asm__("cuEventSynchronize");
int standin_event_wait(void *event) {
    return event == NULL ? DRIVER_ERROR_INVALID_VALUE : (int)state.lost;
}

EXPORTED int standin_launch_plain(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                  unsigned block_x, unsigned block_y, unsigned block_z,
                                  unsigned shared_bytes, void *stream, void **parameters,
                                  void **extra) __asm__("cuLaunchKernel");
int standin_launch_plain(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                         unsigned block_x, unsigned block_y, unsigned block_z,
                         unsigned shared_bytes, void *stream, void **parameters, void **extra) {
    (void)stream, (void)shared_bytes;
    COUNT(launches, 1);
    bool fine = function != NULL && grid_x > 0 && grid_y == 1 && grid_z == 1 && block_x > 0 &&
                block_y == 1 && block_z == 1 && parameters != NULL && extra == NULL;
    return fine ? (int)state.lost : DRIVER_ERROR_INVALID_VALUE;
}

/* ---- graphs: what is captured is launched at once, and graphs do nothing -------------------- */

DriverError standin_capture_begin(DriverStream stream, unsigned mode) {
    BEGIN("cuStreamBeginCapture_v2");
    return stream == NULL || mode != STREAM_CAPTURE_MODE_RELAXED ? DRIVER_ERROR_INVALID_VALUE : 0;
}

DriverError standin_capture_end(DriverStream stream, DriverGraph *graph) {
    BEGIN("cuStreamEndCapture");
    *graph = malloc(1);
    return stream == NULL ? DRIVER_ERROR_INVALID_VALUE : 0;
}

DriverError standin_graph_new(DriverGraphExec *executable, DriverGraph graph,
                              unsigned long long flags) {
    BEGIN("cuGraphInstantiateWithFlags");
    *executable = malloc(1);
    return graph == NULL || flags != 0 ? DRIVER_ERROR_INVALID_VALUE : 0;
}

DriverError standin_graph_launch(DriverGraphExec executable, DriverStream stream) {
    BEGIN("cuGraphLaunch");
    COUNT(launches, 1);
    return executable == NULL || stream == NULL ? DRIVER_ERROR_INVALID_VALUE : 0;
}

DriverError standin_executable_free(DriverGraphExec executable) {
    free(executable);
    return state.lost;
}

DriverError standin_graph_free(DriverGraph graph) {
    free(graph);
    return state.lost;
}
