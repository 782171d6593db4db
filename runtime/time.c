/* runtime: the time of a kernel without data of a caller, to measure a device. Tensors are
 * allocated and filled with small numbers, because the clock of a GPU depends on the bits that
 * change. */
#define PIPEC_OWN_MEMORY
#include "runtime/private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILL_BYTES ((size_t)1 << 20)

typedef struct Timing {
    Runtime *runtime;
    const Driver *driver;
    const Launch *launch;
    RuntimeKernel *kernel;
    DeviceArgument *arguments; /* one per parameter */
    uint16_t *pattern;         /* FILL_BYTES */
    DriverStream stream;
    DriverEvent start, end;
    Diags *diags;
} Timing;

static RunStatus check(Timing *timing, DriverError error, const char *call) {
    return error == DRIVER_SUCCESS ? RUN_DONE
                                   : kernel_failed(timing->kernel, error, call, timing->diags);
}

/* bf16 of either sign, between 1/8 and 2; a pair is such an f32 too */
static void make_pattern(uint16_t *pattern) {
    uint64_t state = UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = 0; i < FILL_BYTES / sizeof *pattern; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        pattern[i] = (uint16_t)(0x3E00 + (state >> 33 & 0x1FF) + (state >> 60 & 1) * 0x8000);
    }
}

static DriverError fill(const Timing *timing, DevicePointer to, size_t bytes) {
    DriverError error = DRIVER_SUCCESS;
    for (size_t at = 0; at < bytes && error == DRIVER_SUCCESS; at += FILL_BYTES) {
        size_t now = bytes - at < FILL_BYTES ? bytes - at : FILL_BYTES;
        error = timing->driver->copy_in(to + at, timing->pattern, now, timing->stream);
    }
    return error;
}

static RunStatus make_tensor(Timing *timing, size_t index) {
    const Launch *launch = timing->launch;
    const ManifestParameter *parameter = &launch->manifest->parameters.items[index];
    DeviceArgument *argument = &timing->arguments[index];
    int64_t bytes = element_rows[parameter->type].bytes;
    for (int axis = 0; axis < parameter->rank; axis++) {
        int64_t extent = 0;
        (void)formula_eval(&parameter->extents[axis], launch->symbols, &extent);
        argument->extents[axis] = extent;
        bytes *= extent;
    }
    DevicePointer block = 0;
    DriverError error = timing->driver->memory_new(&block, (size_t)bytes);
    argument->pointer = block;
    if (error == DRIVER_SUCCESS && parameter->mode != MODE_OUT)
        error = fill(timing, block, (size_t)bytes);
    return check(timing, error, "cuMemAlloc");
}

static RunStatus prepare(Timing *timing) {
    const Launch *launch = timing->launch;
    DriverError error = timing->driver->stream_new(&timing->stream, STREAM_NON_BLOCKING);
    if (error == DRIVER_SUCCESS) error = timing->driver->event_new(&timing->start, EVENT_DEFAULT);
    if (error == DRIVER_SUCCESS) error = timing->driver->event_new(&timing->end, EVENT_DEFAULT);
    RunStatus status = check(timing, error, "cuStreamCreate");
    for (size_t i = 0; i < launch->manifest->parameters.count && status == RUN_DONE; i++) {
        const ManifestParameter *parameter = &launch->manifest->parameters.items[i];
        if (parameter->kind == PARAMETER_TENSOR)
            status = make_tensor(timing, i);
        else if (parameter->symbol >= 0)
            timing->arguments[i].scalar =
                scalar_of_symbol(parameter->type, launch->symbols[parameter->symbol]);
    }
    return status;
}

static void release(Timing *timing) {
    for (size_t i = 0; i < timing->launch->manifest->parameters.count; i++)
        if (timing->arguments[i].pointer != 0)
            timing->driver->memory_free(timing->arguments[i].pointer);
    if (timing->start != NULL) timing->driver->event_free(timing->start);
    if (timing->end != NULL) timing->driver->event_free(timing->end);
    if (timing->stream != NULL) timing->driver->stream_free(timing->stream);
    kernel_unload(timing->kernel);
}

static RunStatus burst(Timing *timing, int launches, double *seconds) {
    RuntimeLaunch how = {.stream = timing->stream};
    int64_t blocks;
    float milliseconds = 0;
    RunStatus status =
        check(timing, timing->driver->event_record(timing->start, timing->stream), "cuEventRecord");
    for (int i = 0; i < launches && status == RUN_DONE; i++)
        status = kernel_launch(timing->kernel, timing->arguments, &how, &blocks, timing->diags);
    if (status != RUN_DONE) return status;
    DriverError error = timing->driver->event_record(timing->end, timing->stream);
    if (error == DRIVER_SUCCESS) error = timing->driver->stream_wait(timing->stream);
    if (error == DRIVER_SUCCESS)
        error = timing->driver->event_elapsed(&milliseconds, timing->start, timing->end);
    *seconds = (double)milliseconds * 1e-3 / launches;
    return check(timing, error, "the kernel");
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

RunStatus runtime_time(Arena *arena, Runtime *runtime, const Launch *launch, int bursts,
                       int launches, double *seconds, Diags *diags) {
    RunStatus status = RUN_UNAVAILABLE;
    Entered entered;
    if (!runtime_enter(runtime, &entered, diags)) return status;
    const char *text = arena_copy(arena, launch->ptx, launch->ptx_length);
    Timing timing = {.runtime = runtime,
                     .driver = &runtime->driver,
                     .launch = launch,
                     .diags = diags,
                     .pattern = NEW_ARRAY(arena, uint16_t, FILL_BYTES / sizeof(uint16_t)),
                     .kernel = kernel_load(runtime, launch->manifest, text, diags, &status)};
    if (timing.kernel != NULL) {
        double *times = NEW_ARRAY(arena, double, bursts + 1);
        timing.arguments = NEW_ARRAY(arena, DeviceArgument, launch->manifest->parameters.count + 1);
        make_pattern(timing.pattern);
        status = prepare(&timing);
        for (int i = 0; i <= bursts && status == RUN_DONE; i++) /* the first warms up */
            status = burst(&timing, launches, &times[i > 0 ? i - 1 : bursts]);
        qsort(times, (size_t)bursts, sizeof *times, by_size);
        *seconds = times[bursts / 2];
        release(&timing);
    }
    runtime_leave(runtime, entered);
    return status;
}
