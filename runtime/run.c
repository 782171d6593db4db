/* runtime: a whole run on the device. Copies the arrays of a Launch to the device with their
 * guard bands, launches and times the kernel by events, and copies the results back. Releases
 * everything on every path. */
#define PIPEC_OWN_MEMORY
#include "runtime/private.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct DeviceArray {
    DevicePointer block; /* guard, data, guard, as on the host; 0: none */
    /* copy of the data before the first launch, to restore it before the next ones; 0: none */
    DevicePointer backup;
} DeviceArray;

typedef struct Run {
    Arena *arena;
    const Launch *launch;
    const RuntimeOptions *options;
    RuntimeKernel *kernel;
    const Driver *driver;
    Diags *diags;
    RunResult *result;
    bool shares_data;          /* other kernels run on the same data */
    double limit;              /* seconds that a launch may take; 0: any */
    int waiting;               /* launches before the event that is waited for */
    bool stuck;                /* one took longer */
    DeviceArray *arrays;       /* one per parameter */
    DeviceArgument *arguments; /* one per parameter */
    DriverStream stream;
    DriverEvent start, end;
} Run;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Reports a failed call; only the first failure counts. */
static RunStatus check(Run *run, DriverError error, const char *call) {
    return error == DRIVER_SUCCESS ? RUN_DONE : kernel_failed(run->kernel, error, call, run->diags);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* After the shift of the data */
static size_t block_bytes(const Array *array) {
    return array_memory(array).bytes + 2 * (size_t)GUARD_BYTES;
}

static bool wants_backup(const Run *run, size_t parameter) {
    ParameterMode mode = run->launch->manifest->parameters.items[parameter].mode;
    return (run->options->timed > 0 && mode == MODE_INOUT) ||
           (run->shares_data && mode == MODE_OUT);
}

static RunStatus no_memory(Run *run, uint64_t needed, uint64_t available) {
    Diag *diag =
        diag_plain(run->diags, P0803,
                   "the tensors take %.1f MiB of device memory, but %.1f MiB are free on %s",
                   (double)needed / 0x1p20, (double)available / 0x1p20, run->kernel->runtime->name);
    if (run->options->timed > 0)
        diag_note(run->diags, diag,
                  "timed launches keep a second copy of each `inout` tensor on the device");
    return RUN_UNAVAILABLE;
}

static RunStatus allocate(Run *run) {
    const Manifest *manifest = run->launch->manifest;
    uint64_t needed = 0;
    for (size_t i = 0; i < manifest->parameters.count; i++)
        if (manifest->parameters.items[i].kind == PARAMETER_TENSOR)
            needed += run->launch->arrays[i].shift + block_bytes(&run->launch->arrays[i]) +
                      (wants_backup(run, i) ? array_memory(&run->launch->arrays[i]).bytes : 0);
    size_t available = 0, total = 0;
    DriverError error = run->driver->memory_info(&available, &total);
    if (error != DRIVER_SUCCESS) return check(run, error, "cuMemGetInfo");
    if (needed > available) return no_memory(run, needed, available);
    for (size_t i = 0; i < manifest->parameters.count && error == DRIVER_SUCCESS; i++) {
        const Array *array = &run->launch->arrays[i];
        if (manifest->parameters.items[i].kind != PARAMETER_TENSOR) continue;
        error = run->driver->memory_new(&run->arrays[i].block, array->shift + block_bytes(array));
        run->arguments[i].pointer = run->arrays[i].block + array->shift + GUARD_BYTES;
        size_t bytes = array_memory(array).bytes;
        if (error == DRIVER_SUCCESS && wants_backup(run, i) && bytes > 0)
            error = run->driver->memory_new(&run->arrays[i].backup, bytes);
    }
    if (error == DRIVER_ERROR_OUT_OF_MEMORY) return no_memory(run, needed, available);
    return check(run, error, "cuMemAlloc");
}

static RunStatus copy_in(Run *run) {
    launch_scatter(run->launch);
    for (size_t i = 0; i < run->launch->manifest->parameters.count; i++) {
        const Array *array = &run->launch->arrays[i];
        const DeviceArray *device = &run->arrays[i];
        ArrayMemory memory = array_memory(array);
        if (device->block == 0) continue;
        DriverError error =
            run->driver->copy_in(run->arguments[i].pointer - GUARD_BYTES, memory.data - GUARD_BYTES,
                                 block_bytes(array), run->stream);
        if (error == DRIVER_SUCCESS && device->backup != 0)
            error = run->driver->copy(device->backup, run->arguments[i].pointer, memory.bytes,
                                      run->stream);
        if (error != DRIVER_SUCCESS) return check(run, error, "cuMemcpyHtoDAsync");
    }
    return RUN_DONE;
}

/* Copies back tensors that the kernel may write, or that have gaps; of other `in` tensors only the
 * guard bands, to find stray writes. */
static RunStatus copy_out(Run *run) {
    DriverError error = DRIVER_SUCCESS;
    for (size_t i = 0; i < run->launch->manifest->parameters.count && error == DRIVER_SUCCESS;
         i++) {
        const Array *array = &run->launch->arrays[i];
        const DeviceArray *device = &run->arrays[i];
        if (device->block == 0) continue;
        ArrayMemory memory = array_memory(array);
        unsigned char *low = memory.data - GUARD_BYTES, *high = memory.data + memory.bytes;
        if (run->launch->manifest->parameters.items[i].mode != MODE_IN || array->image != NULL) {
            error = run->driver->copy_out(low, run->arguments[i].pointer - GUARD_BYTES,
                                          block_bytes(array), run->stream);
            continue;
        }
        error = run->driver->copy_out(low, run->arguments[i].pointer - GUARD_BYTES, GUARD_BYTES,
                                      run->stream);
        if (error == DRIVER_SUCCESS)
            error = run->driver->copy_out(high, run->arguments[i].pointer + memory.bytes,
                                          GUARD_BYTES, run->stream);
    }
    if (error == DRIVER_SUCCESS) error = run->driver->stream_wait(run->stream);
    launch_gather(run->launch);
    return check(run, error, "cuMemcpyDtoHAsync");
}

static void restore(Run *run, RunStatus *status) {
    for (size_t i = 0; i < run->launch->manifest->parameters.count && *status == RUN_DONE; i++)
        if (run->arrays[i].backup != 0)
            *status =
                check(run,
                      run->driver->copy(run->arguments[i].pointer, run->arrays[i].backup,
                                        array_memory(&run->launch->arrays[i]).bytes, run->stream),
                      "cuMemcpyDtoDAsync");
}

/* ---- launches -------------------------------------------------------------------------------- */

/* Polls, so that a trap is seen at once and short kernels are not delayed by sleeping. NOT_READY:
 * it took too long */
static DriverError wait_for_end(Run *run) {
    double begun = now();
    for (;;) {
        DriverError error = run->driver->event_query(run->end);
        run->stuck = error == DRIVER_ERROR_NOT_READY && run->limit > 0 &&
                     now() - begun > run->limit * run->waiting;
        if (error != DRIVER_ERROR_NOT_READY || run->stuck) return error;
        if (now() - begun > 2e-3) usleep(200);
    }
}

/* After a launch */
static RunStatus check_end(Run *run, DriverError error) {
    if (!run->stuck) return check(run, error, "the kernel");
    Diag *diag = diag_plain(run->diags, P0813, "`%s` does not end within %g s on %s",
                            run->kernel->manifest->kernel, run->limit, run->kernel->runtime->name);
    diag_note(run->diags, diag, "the device is in use until this process ends");
    return RUN_FINDING;
}

static RunStatus launch_plainly(Run *run, const DeviceArgument *arguments, bool early) {
    RuntimeLaunch how = {.stream = run->stream, .programmatic = early};
    return kernel_launch(run->kernel, arguments, &how, &run->result->blocks, run->diags);
}

static RunStatus launch_once(Run *run, double *seconds) {
    DriverError error = run->driver->event_record(run->start, run->stream);
    if (error != DRIVER_SUCCESS) return check(run, error, "cuEventRecord");
    RunStatus status = launch_plainly(run, run->arguments, false);
    if (status != RUN_DONE) return status;
    run->waiting = 1;
    error = run->driver->event_record(run->end, run->stream);
    if (error != DRIVER_SUCCESS) return check(run, error, "cuEventRecord");
    error = wait_for_end(run);
    if (error != DRIVER_SUCCESS) return check_end(run, error);
    float milliseconds = 0;
    error = run->driver->event_elapsed(&milliseconds, run->start, run->end);
    *seconds = (double)milliseconds * 1e-3;
    return check(run, error, "cuEventElapsedTime");
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times, int count) {
    qsort(times, (size_t)count, sizeof *times, by_size);
    return count % 2 == 1 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2;
}

/* The first launch gives the results and warms up; the others are timed. */
static RunStatus launch_all(Run *run) {
    double first = 0;
    RunStatus status = launch_once(run, &first);
    if (status == RUN_DONE) status = copy_out(run);
    run->result->seconds = first;
    run->result->timed = 1;
    int timed = run->options->timed;
    if (status != RUN_DONE || timed <= 0) return status;
    double *times = NEW_ARRAY(run->arena, double, timed);
    for (int i = 0; i < timed && status == RUN_DONE; i++) {
        restore(run, &status);
        if (status == RUN_DONE) status = launch_once(run, &times[i]);
    }
    if (status != RUN_DONE) return status;
    run->result->seconds = median(times, timed);
    run->result->timed = timed;
    return status;
}

/* ---- a whole run ----------------------------------------------------------------------------- */

static RunStatus prepare(Run *run) {
    size_t parameters = run->launch->manifest->parameters.count;
    run->arrays = NEW_ARRAY(run->arena, DeviceArray, parameters + 1);
    run->arguments = NEW_ARRAY(run->arena, DeviceArgument, parameters + 1);
    for (size_t i = 0; i < parameters; i++) {
        const Array *array = &run->launch->arrays[i];
        run->arguments[i].scalar = run->launch->scalars[i];
        memcpy(run->arguments[i].extents, array->extents, sizeof array->extents);
        if (array->image != NULL) image_strides(array, &run->arguments[i]);
    }
    DriverError error = run->driver->stream_new(&run->stream, STREAM_NON_BLOCKING);
    if (error == DRIVER_SUCCESS) error = run->driver->event_new(&run->start, EVENT_DEFAULT);
    if (error == DRIVER_SUCCESS) error = run->driver->event_new(&run->end, EVENT_DEFAULT);
    if (error != DRIVER_SUCCESS) return check(run, error, "cuStreamCreate");
    if (run->kernel->watchdog != NULL && run->launch->watchdog_ns > 0)
        run->kernel->watchdog->limit_ns = run->launch->watchdog_ns;
    RunStatus status = allocate(run);
    return status == RUN_DONE ? copy_in(run) : status;
}

/* After a fault these calls fail too; the resources are then freed with the context. */
static void release_all(Run *run) {
    for (size_t i = 0; run->arrays != NULL && i < run->launch->manifest->parameters.count; i++) {
        if (run->arrays[i].block != 0) run->driver->memory_free(run->arrays[i].block);
        if (run->arrays[i].backup != 0) run->driver->memory_free(run->arrays[i].backup);
    }
    if (run->start != NULL) run->driver->event_free(run->start);
    if (run->end != NULL) run->driver->event_free(run->end);
    if (run->stream != NULL) run->driver->stream_free(run->stream);
}

RunStatus runtime_run(Arena *arena, Runtime *runtime, const Launch *launch,
                      const RuntimeOptions *options, RunResult *result, Diags *diags) {
    *result = (RunResult){.status = RUN_UNAVAILABLE,
                          .device = arena_copy(arena, runtime->name, strlen(runtime->name))};
    Entered entered;
    if (!runtime_enter(runtime, &entered, diags)) return result->status;
    double begun = now();
    const char *text = arena_copy(arena, launch->ptx, launch->ptx_length);
    RuntimeKernel *kernel = kernel_load(runtime, launch->manifest, text, diags, &result->status);
    result->load_seconds = now() - begun;
    if (kernel != NULL) {
        Run run = {.arena = arena,
                   .launch = launch,
                   .options = options,
                   .kernel = kernel,
                   .driver = &runtime->driver,
                   .diags = diags,
                   .result = result};
        result->resident = kernel->resident;
        result->status = prepare(&run);
        if (result->status == RUN_DONE) result->status = launch_all(&run);
        release_all(&run);
        kernel_unload(kernel);
    }
    runtime_leave(runtime, entered);
    return result->status;
}

/* ---- several kernels on the same data -------------------------------------------------------- */

#define BENCH_LAUNCHES 10 /* launches per measurement */
/* of a burst: its data is this many times the L2, because that of a program is seldom in it */
#define BENCH_L2 3

typedef struct BenchKernel {
    RuntimeKernel *kernel;
    Launch launch;
    bool early;            /* as of RuntimeLaunch, in a burst */
    DriverGraphExec burst; /* NULL: not yet timed */
} BenchKernel;

struct RuntimeBench {
    Runtime *runtime;
    Run run; /* the kernel that runs now */
    RuntimeOptions options;
    RunResult result;
    VEC(BenchKernel) kernels;
    bool started; /* the arrays are on the device */
    /* the launches of a burst take them in turn: those of `run`, and copies */
    DeviceArgument *sets[BENCH_LAUNCHES];
    DevicePointer *blocks[BENCH_LAUNCHES]; /* of the copies: one per parameter */
    int set_count;
};

RuntimeBench *runtime_bench_new(Arena *arena, Runtime *runtime) {
    RuntimeBench *bench = NEW(arena, RuntimeBench);
    *bench = (RuntimeBench){.runtime = runtime, .options = {.timed = 1}};
    bench->run = (Run){.arena = arena,
                       .driver = &runtime->driver,
                       .options = &bench->options,
                       .result = &bench->result,
                       .shares_data = true};
    return bench;
}

void runtime_bench_limit(RuntimeBench *bench, double seconds) { bench->run.limit = seconds; }

bool runtime_bench_is_stuck(const RuntimeBench *bench) { return bench->run.stuck; }

/* The graph is gone, so that nothing refers to the kernel */
static void unload(RuntimeBench *bench, BenchKernel *entry) {
    if (entry->burst != NULL) bench->run.driver->executable_free(entry->burst);
    atomic_store(&entry->kernel->captured, false);
    kernel_unload(entry->kernel);
}

/* ---- copies of the data ---- */

static void free_set(RuntimeBench *bench, int set) {
    for (size_t i = 0; i < bench->run.launch->manifest->parameters.count; i++)
        if (bench->blocks[set][i] != 0) bench->run.driver->memory_free(bench->blocks[set][i]);
}

static size_t block_of(const Run *run, size_t i) {
    if (run->arrays[i].block == 0) return 0;
    return run->launch->arrays[i].shift + block_bytes(&run->launch->arrays[i]);
}

/* Copies the tensors on the device; DRIVER_ERROR_OUT_OF_MEMORY: some of them */
static DriverError copy_set(RuntimeBench *bench, int set) {
    Run *run = &bench->run;
    size_t parameters = run->launch->manifest->parameters.count;
    DeviceArgument *arguments = NEW_ARRAY(run->arena, DeviceArgument, parameters + 1);
    DevicePointer *blocks = NEW_ARRAY(run->arena, DevicePointer, parameters + 1);
    memcpy(arguments, run->arguments, parameters * sizeof *arguments);
    bench->sets[set] = arguments;
    bench->blocks[set] = blocks;
    DriverError error = DRIVER_SUCCESS;
    for (size_t i = 0; i < parameters && error == DRIVER_SUCCESS; i++) {
        size_t bytes = block_of(run, i);
        if (bytes == 0) continue;
        error = run->driver->memory_new(&blocks[i], bytes);
        if (error != DRIVER_SUCCESS) continue;
        arguments[i].pointer = blocks[i] + (run->arguments[i].pointer - run->arrays[i].block);
        error = run->driver->copy(blocks[i], run->arrays[i].block, bytes, run->stream);
    }
    return error;
}

static bool changes_data(const Manifest *manifest) {
    for (size_t i = 0; i < manifest->parameters.count; i++)
        if (manifest->parameters.items[i].kind == PARAMETER_TENSOR &&
            manifest->parameters.items[i].mode == MODE_INOUT)
            return true;
    return false;
}

/* As many copies as a burst needs, or fit half of the memory that is left */
static RunStatus copy_data(RuntimeBench *bench) {
    Run *run = &bench->run;
    bench->sets[0] = run->arguments;
    bench->set_count = 1;
    if (changes_data(run->launch->manifest)) return RUN_DONE;
    size_t available = 0, total = 0, bytes = 0;
    for (size_t i = 0; i < run->launch->manifest->parameters.count; i++) bytes += block_of(run, i);
    DriverError error = run->driver->memory_info(&available, &total);
    size_t wanted = BENCH_L2 * (size_t)runtime_facts(bench->runtime).l2_bytes;
    size_t most = wanted < available / 2 ? wanted : available / 2, have = bytes;
    for (; error == DRIVER_SUCCESS && bench->set_count < BENCH_LAUNCHES && have < most;
         have += bytes) {
        error = copy_set(bench, bench->set_count);
        if (error == DRIVER_SUCCESS)
            bench->set_count++;
        else
            free_set(bench, bench->set_count);
    }
    return error == DRIVER_ERROR_OUT_OF_MEMORY ? RUN_DONE : check(run, error, "a copy of the data");
}

void runtime_bench_free(RuntimeBench *bench) {
    if (bench == NULL || bench->run.stuck) return;
    Entered entered;
    bool inside = context_enter(bench->runtime, &entered) == DRIVER_SUCCESS;
    for (int i = 1; i < bench->set_count; i++) free_set(bench, i);
    if (bench->started) release_all(&bench->run);
    for (size_t i = 0; i < bench->kernels.count; i++) unload(bench, &bench->kernels.items[i]);
    if (inside) runtime_leave(bench->runtime, entered);
}

static void select_kernel(RuntimeBench *bench, const BenchKernel *entry, Diags *diags) {
    bench->run.launch = &entry->launch;
    bench->run.kernel = entry->kernel;
    bench->run.diags = diags;
}

static RunStatus first_launch(RuntimeBench *bench) {
    double seconds;
    RunStatus status = RUN_DONE;
    if (!bench->started) {
        bench->started = true;
        if (prepare(&bench->run) != RUN_DONE || copy_data(bench) != RUN_DONE)
            return RUN_UNAVAILABLE;
    } else {
        restore(&bench->run, &status);
    }
    if (status == RUN_DONE) status = launch_once(&bench->run, &seconds);
    return status == RUN_DONE ? copy_out(&bench->run) : status;
}

RunStatus runtime_bench_add(RuntimeBench *bench, const Launch *launch, bool early, Diags *diags) {
    RunStatus status = RUN_UNAVAILABLE;
    Entered entered;
    if (!runtime_enter(bench->runtime, &entered, diags)) return status;
    const char *text = arena_copy(bench->run.arena, launch->ptx, launch->ptx_length);
    RuntimeKernel *kernel = kernel_load(bench->runtime, launch->manifest, text, diags, &status);
    if (kernel != NULL) {
        BenchKernel entry = {kernel, *launch, early, NULL};
        vec_push(bench->run.arena, &bench->kernels, entry);
        select_kernel(bench, &bench->kernels.items[bench->kernels.count - 1], diags);
        status = first_launch(bench);
        if (status != RUN_DONE && !bench->run.stuck) {
            bench->kernels.count--;
            kernel_unload(kernel);
        }
    }
    runtime_leave(bench->runtime, entered);
    return status;
}

/* A graph: launches of their own take longer than small kernels */
static RunStatus record_burst(RuntimeBench *bench, BenchKernel *entry) {
    Run *run = &bench->run;
    const Driver *driver = run->driver;
    DriverError error = driver->capture_begin(run->stream, STREAM_CAPTURE_MODE_RELAXED);
    if (error != DRIVER_SUCCESS) return check(run, error, "cuStreamBeginCapture");
    RunStatus status = RUN_DONE;
    for (int i = 0; i < BENCH_LAUNCHES && status == RUN_DONE; i++)
        status = launch_plainly(run, bench->sets[i % bench->set_count], entry->early);
    DriverGraph graph = NULL;
    error = driver->capture_end(run->stream, &graph);
    if (status == RUN_DONE) status = check(run, error, "cuStreamEndCapture");
    if (status == RUN_DONE)
        status = check(run, driver->graph_new(&entry->burst, graph, 0), "cuGraphInstantiate");
    if (graph != NULL) driver->graph_free(graph);
    return status;
}

static RunStatus burst(RuntimeBench *bench, BenchKernel *entry, double *seconds) {
    Run *run = &bench->run;
    RunStatus status = entry->burst == NULL ? record_burst(bench, entry) : RUN_DONE;
    if (status != RUN_DONE) return status;
    DriverError error = run->driver->event_record(run->start, run->stream);
    if (error != DRIVER_SUCCESS) return check(run, error, "cuEventRecord");
    error = run->driver->graph_launch(entry->burst, run->stream);
    if (error != DRIVER_SUCCESS) return check(run, error, "cuGraphLaunch");
    run->waiting = BENCH_LAUNCHES;
    error = run->driver->event_record(run->end, run->stream);
    if (error == DRIVER_SUCCESS) error = wait_for_end(run);
    float milliseconds = 0;
    if (error == DRIVER_SUCCESS)
        error = run->driver->event_elapsed(&milliseconds, run->start, run->end);
    *seconds = (double)milliseconds * 1e-3 / BENCH_LAUNCHES;
    return error == DRIVER_SUCCESS ? RUN_DONE : check_end(run, error);
}

/* If a launch changes the input of the next one, each is timed separately and the data restored
 * between them. */
static RunStatus one_by_one(Run *run, double *seconds) {
    double times[BENCH_LAUNCHES];
    RunStatus status = RUN_DONE;
    for (int i = 0; i < BENCH_LAUNCHES && status == RUN_DONE; i++) {
        restore(run, &status);
        if (status == RUN_DONE) status = launch_once(run, &times[i]);
    }
    if (status == RUN_DONE) *seconds = median(times, BENCH_LAUNCHES);
    return status;
}

RunStatus runtime_bench_time(RuntimeBench *bench, size_t index, double *seconds, Diags *diags) {
    Entered entered;
    if (!runtime_enter(bench->runtime, &entered, diags)) return RUN_UNAVAILABLE;
    BenchKernel *entry = &bench->kernels.items[index];
    select_kernel(bench, entry, diags);
    RunStatus status = changes_data(bench->run.launch->manifest) ? one_by_one(&bench->run, seconds)
                                                                 : burst(bench, entry, seconds);
    runtime_leave(bench->runtime, entered);
    return status;
}
