/* runtime: runs a Launch on a GPU. Public header of the floor.
 *
 * PTX text + Launch -> memory and times, through libcuda.so.1, opened by dlopen and declared in
 * runtime/driver.h. */
#ifndef PIPEC_RUNTIME_H
#define PIPEC_RUNTIME_H

#include "launch/launch.h"

typedef struct Runtime Runtime; /* one open device, in its primary context */

/* Reason why there is no usable device */
typedef enum RuntimeLack {
    RUNTIME_FINE,
    RUNTIME_NO_DRIVER, /* libcuda.so.1 does not load */
    RUNTIME_NO_DEVICE, /* cuInit fails, or the device count is 0 */
    /* no device has the compute capability that the target needs; names the existing ones */
    RUNTIME_WRONG_DEVICE,
    RUNTIME_OLD_DRIVER, /* the driver does not know the PTX version */
    RUNTIME_FAILED      /* another driver error */
} RuntimeLack;

/* Opens device `ordinal` (-1: the first capable one) for a target ("sm_90a") and PTX version.
 * NULL on failure, with *lack and a sentence in *why (in the arena); reports nothing, because
 * the caller may use the emulator instead. The Runtime is not in the arena: runtime_close
 * releases it and the primary context. */
Runtime *runtime_open(Arena *arena, int ordinal, const char *target, int ptx_major, int ptx_minor,
                      RuntimeLack *lack, const char **why);

/* A target that a kernel has code for, and the version of its PTX */
typedef struct RuntimeTarget {
    const char *name;
    int ptx_major, ptx_minor;
} RuntimeTarget;

/* The one of the targets that is the best for device `ordinal` (-1: the first that can run any of
 * them): the newest, and of one generation that of the exact architecture; one whose PTX the driver
 * reads before the others. -1 on failure, with *lack and *why as above. */
int runtime_pick(Arena *arena, int ordinal, const RuntimeTarget *targets, int count,
                 RuntimeLack *lack, const char **why);
void runtime_close(Runtime *runtime);
/* The device that runtime_open would open, without opening it; false: there is none */
bool runtime_find(Arena *arena, int ordinal, const char *target, int ptx_major, int ptx_minor,
                  DeviceFacts *facts);
/* Facts of the open device; the name lives as long as the runtime */
DeviceFacts runtime_facts(const Runtime *runtime);
const char *runtime_device_name(const Runtime *runtime);
int runtime_ordinal(const Runtime *runtime);
int runtime_multiprocessors(const Runtime *runtime);

typedef struct RuntimeOptions {
    /* number of launches to time after the first; inputs of inout tensors are restored before
     * each; 0: time the first */
    int timed;
} RuntimeOptions;

/* Copies the arrays to the device, launches, copies `out` and `inout` arrays back (results of
 * the first launch), guard bands included. */
RunStatus runtime_run(Arena *arena, Runtime *runtime, const Launch *launch,
                      const RuntimeOptions *options, RunResult *result, Diags *diags);

/* ---- several kernels on the same data -------------------------------------------------------- */

/* Compares the times of kernels of one signature that share arrays, symbols and scalars; the
 * arrays are on the device once for all of them. */
typedef struct RuntimeBench RuntimeBench;

/* An empty comparison on the runtime, which must outlive it */
RuntimeBench *runtime_bench_new(Arena *arena, Runtime *runtime);
/* Seconds after which a launch is given up, and a burst after as many times more; 0: never */
void runtime_bench_limit(RuntimeBench *bench, double seconds);
/* True if a launch was given up: it may never end, so nothing of the bench or its runtime can be
 * freed, and the device is in use until the process ends. */
bool runtime_bench_is_stuck(const RuntimeBench *bench);
/* Unloads its kernels and frees the arrays on the device. NULL is allowed */
void runtime_bench_free(RuntimeBench *bench);
/* Loads the launch's kernel and runs it once on fresh data; its arrays then hold the results.
 * early: its launches in a burst start before the one ahead has ended (RuntimeLaunch.programmatic).
 * If that ends with RUN_DONE the kernel gets the next index, from 0. After RUN_FINDING or
 * RUN_UNAVAILABLE no further call is allowed. */
RunStatus runtime_bench_add(RuntimeBench *bench, const Launch *launch, bool early, Diags *diags);
/* Time of one launch of kernel `index` in seconds, averaged over several launches in a row. */
RunStatus runtime_bench_time(RuntimeBench *bench, size_t index, double *seconds, Diags *diags);

/* ---- times without data ---------------------------------------------------------------------- */

/* Median of the times of `bursts` bursts of `launches`, in seconds of one launch, on tensors of
 * random bits of small numbers, which are allocated for it. The symbols are those of the launch;
 * its arrays are not read. */
RunStatus runtime_time(Arena *arena, Runtime *runtime, const Launch *launch, int bursts,
                       int launches, double *seconds, Diags *diags);

/* ---- for embedding: caller's device pointers, caller's stream -------------------------------- */

typedef struct RuntimeKernel RuntimeKernel; /* a loaded module and its entry */

/* Loads PTX text as a kernel, also while a stream is captured. NULL and diagnostics if the driver
 * rejects it. The kernel is not in the arena. */
RuntimeKernel *runtime_load(Arena *arena, Runtime *runtime, const Manifest *manifest,
                            const char *ptx, size_t length, Diags *diags);
/* The same from a cubin, aligned to 8. NULL and *why, in the arena of the diagnostics: the driver
 * refuses it, or starts its kernel with other registers than the manifest says; the PTX can then be
 * loaded instead. NULL, *why is NULL: another error, which is reported. */
RuntimeKernel *runtime_load_cubin(Runtime *runtime, const Manifest *manifest, const void *cubin,
                                  const char **why, Diags *diags);
/* False: the device is of another generation than the target, and its driver compiles the PTX */
bool runtime_takes_cubin(const Runtime *runtime, const char *target);
/* Unloads the kernel and frees its memory */
void runtime_unload(RuntimeKernel *kernel);
int runtime_blocks_per_multiprocessor(const RuntimeKernel *kernel);
int runtime_registers(const RuntimeKernel *kernel); /* of a thread, at the entry */
/* True if a launch was captured into a graph */
bool runtime_is_captured(const RuntimeKernel *kernel);

typedef struct RuntimeLaunch {
    void *stream; /* a CUstream, NULL: the default stream */
    /* a persistent grid has no more blocks than fill so many; 0: all of the device */
    int multiprocessors;
    bool programmatic; /* programmatic stream serialisation */
} RuntimeLaunch;

/* Several threads may launch one kernel at once. One argument per parameter. Checks them, encodes
 * the tensor maps, and keeps both for the next launches with the same tensors. Returns without
 * waiting for the kernel. */
RunStatus runtime_launch(RuntimeKernel *kernel, const DeviceArgument *arguments,
                         const RuntimeLaunch *how, Diags *diags);
/* The same for tensors of an earlier launch. False: there was none, or an error: runtime_launch
 * launches, or reports it. */
bool runtime_launch_again(RuntimeKernel *kernel, const DeviceArgument *arguments,
                          const RuntimeLaunch *how);

#endif
