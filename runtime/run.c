/* runtime: a whole run on the device. A Launch goes in: its arrays are copied to the device with their guard bands, the kernel is
 * launched and timed by events, and what it wrote is copied back. Whatever happens, all that was taken is given back. */
#define PIPEC_OWN_MEMORY
#include "runtime/private.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct DeviceArray {
    DevicePointer block;  /* guard, data, guard, as on the host; 0: none */
    DevicePointer backup; /* of the data before the first launch, where another is to find it so; 0: none */
} DeviceArray;

typedef struct Run {
    Arena *arena;
    const Launch *launch;
    const RuntimeOptions *options;
    RuntimeKernel *kernel;
    const Driver *driver;
    Diags *diags;
    RunResult *result;
    bool races;          /* other kernels follow on the same data */
    DeviceArray *arrays; /* one a parameter */
    uint64_t *pointers;  /* of the data, one a parameter */
    DriverStream stream;
    DriverEvent start, end;
} Run;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Says what failed; the first failure is the one that counts. */
static RunStatus check(Run *run, DriverError error, const char *call) {
    return error == DRIVER_SUCCESS ? RUN_DONE : kernel_failed(run->kernel, error, call, run->diags);
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

static size_t block_bytes(const Array *array) { return array->bytes + 2 * (size_t)GUARD_BYTES; }

static bool wants_backup(const Run *run, size_t parameter) {
    ParameterMode mode = run->launch->manifest->parameters.items[parameter].mode;
    return (run->options->timed > 0 && mode == MODE_INOUT) || (run->races && mode == MODE_OUT);
}

static RunStatus no_memory(Run *run, uint64_t needed, uint64_t available) {
    Diag *diag =
        diag_plain(run->diags, P0803, "the tensors take %.1f MiB of device memory, but %.1f MiB are free on %s",
                   (double)needed / 0x1p20, (double)available / 0x1p20, run->kernel->runtime->name);
    if (run->options->timed > 0)
        diag_note(run->diags, diag, "timed launches keep a second copy of each `inout` tensor on the device");
    return RUN_UNAVAILABLE;
}

static RunStatus allocate(Run *run) {
    const Manifest *manifest = run->launch->manifest;
    uint64_t needed = 0;
    for (size_t i = 0; i < manifest->parameters.count; i++)
        if (manifest->parameters.items[i].kind == PARAMETER_TENSOR)
            needed += block_bytes(&run->launch->arrays[i]) + (wants_backup(run, i) ? run->launch->arrays[i].bytes : 0);
    size_t available = 0, total = 0;
    DriverError error = run->driver->memory_info(&available, &total);
    if (error != DRIVER_SUCCESS) return check(run, error, "cuMemGetInfo");
    if (needed > available) return no_memory(run, needed, available);
    for (size_t i = 0; i < manifest->parameters.count && error == DRIVER_SUCCESS; i++) {
        const Array *array = &run->launch->arrays[i];
        if (manifest->parameters.items[i].kind != PARAMETER_TENSOR) continue;
        error = run->driver->memory_new(&run->arrays[i].block, block_bytes(array));
        run->pointers[i] = run->arrays[i].block + GUARD_BYTES;
        if (error == DRIVER_SUCCESS && wants_backup(run, i) && array->bytes > 0)
            error = run->driver->memory_new(&run->arrays[i].backup, array->bytes);
    }
    if (error == DRIVER_ERROR_OUT_OF_MEMORY) return no_memory(run, needed, available);
    return check(run, error, "cuMemAlloc");
}

static RunStatus copy_in(Run *run) {
    for (size_t i = 0; i < run->launch->manifest->parameters.count; i++) {
        const Array *array = &run->launch->arrays[i];
        const DeviceArray *device = &run->arrays[i];
        if (device->block == 0) continue;
        DriverError error =
            run->driver->copy_in(device->block, array->data - GUARD_BYTES, block_bytes(array), run->stream);
        if (error == DRIVER_SUCCESS && device->backup != 0)
            error = run->driver->copy(device->backup, run->pointers[i], array->bytes, run->stream);
        if (error != DRIVER_SUCCESS) return check(run, error, "cuMemcpyHtoDAsync");
    }
    return RUN_DONE;
}

/* What the kernel may write comes back whole; of `in` tensors the guard bands do, which it may have written too. */
static RunStatus copy_out(Run *run) {
    DriverError error = DRIVER_SUCCESS;
    for (size_t i = 0; i < run->launch->manifest->parameters.count && error == DRIVER_SUCCESS; i++) {
        const Array *array = &run->launch->arrays[i];
        const DeviceArray *device = &run->arrays[i];
        if (device->block == 0) continue;
        unsigned char *low = array->data - GUARD_BYTES, *high = array->data + array->bytes;
        if (run->launch->manifest->parameters.items[i].mode != MODE_IN) {
            error = run->driver->copy_out(low, device->block, block_bytes(array), run->stream);
            continue;
        }
        error = run->driver->copy_out(low, device->block, GUARD_BYTES, run->stream);
        if (error == DRIVER_SUCCESS)
            error = run->driver->copy_out(high, run->pointers[i] + array->bytes, GUARD_BYTES, run->stream);
    }
    if (error == DRIVER_SUCCESS) error = run->driver->stream_wait(run->stream);
    return check(run, error, "cuMemcpyDtoHAsync");
}

static void restore(Run *run, RunStatus *status) {
    for (size_t i = 0; i < run->launch->manifest->parameters.count && *status == RUN_DONE; i++)
        if (run->arrays[i].backup != 0)
            *status = check(
                run,
                run->driver->copy(run->pointers[i], run->arrays[i].backup, run->launch->arrays[i].bytes, run->stream),
                "cuMemcpyDtoDAsync");
}

/* ---- launches ------------------------------------------------------------------------------------------------------ */

/* Polls, so that a kernel that ends by a trap is seen at once; short kernels are not waited for by sleeping. */
static DriverError wait_for_end(const Run *run) {
    double begun = now();
    for (;;) {
        DriverError error = run->driver->event_query(run->end);
        if (error != DRIVER_ERROR_NOT_READY) return error;
        if (now() - begun > 2e-3) usleep(200);
    }
}

static RunStatus launch_once(Run *run, double *seconds) {
    const Launch *launch = run->launch;
    DriverError error = run->driver->event_record(run->start, run->stream);
    if (error != DRIVER_SUCCESS) return check(run, error, "cuEventRecord");
    RunStatus status = kernel_launch(run->kernel, run->pointers, launch->scalars, launch->symbols, launch->tiles,
                                     run->stream, &run->result->blocks, run->diags);
    if (status != RUN_DONE) return status;
    error = run->driver->event_record(run->end, run->stream);
    if (error != DRIVER_SUCCESS) return check(run, error, "cuEventRecord");
    error = wait_for_end(run);
    if (error != DRIVER_SUCCESS) return check(run, error, "the kernel");
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

/* The first launch gives the results, and warms up what the others are timed on. */
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

/* ---- the whole ----------------------------------------------------------------------------------------------------- */

static RunStatus prepare(Run *run) {
    size_t parameters = run->launch->manifest->parameters.count;
    run->arrays = NEW_ARRAY(run->arena, DeviceArray, parameters + 1);
    run->pointers = NEW_ARRAY(run->arena, uint64_t, parameters + 1);
    DriverError error = run->driver->stream_new(&run->stream, STREAM_NON_BLOCKING);
    if (error == DRIVER_SUCCESS) error = run->driver->event_new(&run->start, EVENT_DEFAULT);
    if (error == DRIVER_SUCCESS) error = run->driver->event_new(&run->end, EVENT_DEFAULT);
    if (error != DRIVER_SUCCESS) return check(run, error, "cuStreamCreate");
    if (run->kernel->watchdog != NULL && run->launch->watchdog_ns > 0)
        run->kernel->watchdog->limit_ns = run->launch->watchdog_ns;
    RunStatus status = allocate(run);
    return status == RUN_DONE ? copy_in(run) : status;
}

/* After a fault these calls fail too; what they would give back is then gone with the context. */
static void give_back(Run *run) {
    for (size_t i = 0; run->arrays != NULL && i < run->launch->manifest->parameters.count; i++) {
        if (run->arrays[i].block != 0) run->driver->memory_free(run->arrays[i].block);
        if (run->arrays[i].backup != 0) run->driver->memory_free(run->arrays[i].backup);
    }
    if (run->start != NULL) run->driver->event_free(run->start);
    if (run->end != NULL) run->driver->event_free(run->end);
    if (run->stream != NULL) run->driver->stream_free(run->stream);
}

RunStatus runtime_run(Arena *arena, Runtime *runtime, const Launch *launch, const RuntimeOptions *options,
                      RunResult *result, Diags *diags) {
    *result = (RunResult){.status = RUN_UNAVAILABLE, .device = arena_copy(arena, runtime->name, strlen(runtime->name))};
    if (!runtime_enter(runtime, diags)) return result->status;
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
        give_back(&run);
        kernel_unload(kernel);
    }
    runtime_leave(runtime);
    return result->status;
}

/* ---- several kernels on the same data ------------------------------------------------------------------------------ */

#define RACE_LAUNCHES 10 /* of one measurement */

typedef struct Racer {
    RuntimeKernel *kernel;
    Launch launch;
} Racer;

struct RuntimeRace {
    Runtime *runtime;
    Run run; /* of the one in turn */
    RuntimeOptions options;
    RunResult result;
    VEC(Racer) racers;
    bool started; /* the arrays are on the device */
};

RuntimeRace *runtime_race_new(Arena *arena, Runtime *runtime) {
    RuntimeRace *race = NEW(arena, RuntimeRace);
    *race = (RuntimeRace){.runtime = runtime, .options = {.timed = 1}};
    race->run =
        (Run){.arena = arena, .driver = &runtime->driver, .options = &race->options, .result = &race->result, .races = true};
    return race;
}

void runtime_race_free(RuntimeRace *race) {
    if (race == NULL) return;
    DriverContext before;
    bool entered = race->runtime->driver.context_push(race->runtime->context) == DRIVER_SUCCESS;
    if (race->started) give_back(&race->run);
    for (size_t i = 0; i < race->racers.count; i++) kernel_unload(race->racers.items[i].kernel);
    if (entered) race->runtime->driver.context_pop(&before);
}

static void set_in_turn(RuntimeRace *race, const Racer *racer, Diags *diags) {
    race->run.launch = &racer->launch;
    race->run.kernel = racer->kernel;
    race->run.diags = diags;
}

static RunStatus first_launch(RuntimeRace *race) {
    double seconds;
    RunStatus status = RUN_DONE;
    if (!race->started) {
        race->started = true;
        if (prepare(&race->run) != RUN_DONE) return RUN_UNAVAILABLE;
    } else {
        restore(&race->run, &status);
    }
    if (status == RUN_DONE) status = launch_once(&race->run, &seconds);
    return status == RUN_DONE ? copy_out(&race->run) : status;
}

RunStatus runtime_race_enter(RuntimeRace *race, const Launch *launch, Diags *diags) {
    RunStatus status = RUN_UNAVAILABLE;
    if (!runtime_enter(race->runtime, diags)) return status;
    const char *text = arena_copy(race->run.arena, launch->ptx, launch->ptx_length);
    RuntimeKernel *kernel = kernel_load(race->runtime, launch->manifest, text, diags, &status);
    if (kernel != NULL) {
        Racer racer = {kernel, *launch};
        vec_push(race->run.arena, &race->racers, racer);
        set_in_turn(race, &race->racers.items[race->racers.count - 1], diags);
        status = first_launch(race);
        if (status != RUN_DONE) {
            race->racers.count--;
            kernel_unload(kernel);
        }
    }
    runtime_leave(race->runtime);
    return status;
}

static RunStatus burst(Run *run, double *seconds) {
    const Launch *launch = run->launch;
    DriverError error = run->driver->event_record(run->start, run->stream);
    RunStatus status = check(run, error, "cuEventRecord");
    for (int i = 0; i < RACE_LAUNCHES && status == RUN_DONE; i++)
        status = kernel_launch(run->kernel, run->pointers, launch->scalars, launch->symbols, launch->tiles, run->stream,
                               &run->result->blocks, run->diags);
    if (status != RUN_DONE) return status;
    error = run->driver->event_record(run->end, run->stream);
    if (error == DRIVER_SUCCESS) error = wait_for_end(run);
    float milliseconds = 0;
    if (error == DRIVER_SUCCESS) error = run->driver->event_elapsed(&milliseconds, run->start, run->end);
    *seconds = (double)milliseconds * 1e-3 / RACE_LAUNCHES;
    return check(run, error, "the kernel");
}

/* Where a launch changes what the next one reads, each is timed alone and the data restored between them. */
static RunStatus one_by_one(Run *run, double *seconds) {
    double times[RACE_LAUNCHES];
    RunStatus status = RUN_DONE;
    for (int i = 0; i < RACE_LAUNCHES && status == RUN_DONE; i++) {
        restore(run, &status);
        if (status == RUN_DONE) status = launch_once(run, &times[i]);
    }
    if (status == RUN_DONE) *seconds = median(times, RACE_LAUNCHES);
    return status;
}

RunStatus runtime_race_time(RuntimeRace *race, size_t index, double *seconds, Diags *diags) {
    if (!runtime_enter(race->runtime, diags)) return RUN_UNAVAILABLE;
    set_in_turn(race, &race->racers.items[index], diags);
    const Manifest *manifest = race->run.launch->manifest;
    bool changes = false;
    for (size_t i = 0; i < manifest->parameters.count; i++)
        changes = changes || (manifest->parameters.items[i].kind == PARAMETER_TENSOR &&
                              manifest->parameters.items[i].mode == MODE_INOUT);
    RunStatus status = changes ? one_by_one(&race->run, seconds) : burst(&race->run, seconds);
    runtime_leave(race->runtime);
    return status;
}
