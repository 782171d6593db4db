/* runtime: run it on a GPU. The door of the floor.
 *
 * PTX text + Launch -> memory and times, through libcuda.so.1 opened by dlopen with our own declarations. */
#ifndef PIPEC_RUNTIME_H
#define PIPEC_RUNTIME_H

#include "launch/launch.h"

typedef struct Runtime Runtime; /* one open device, in its primary context */

/* Why there is no usable device, for the sentence that says so. */
typedef enum RuntimeLack {
    RUNTIME_FINE,
    RUNTIME_NO_DRIVER,   /* libcuda.so.1 does not load */
    RUNTIME_NO_DEVICE,   /* cuInit or the device count says no */
    RUNTIME_WRONG_DEVICE, /* none has the compute capability that the target needs; names those there are */
    RUNTIME_OLD_DRIVER,  /* the driver does not know the PTX version */
    RUNTIME_FAILED       /* another driver error */
} RuntimeLack;

/* Opens device `ordinal` (-1: the first capable one) for a target ("sm_90a") and PTX version. NULL with *lack and a sentence in
 * *why (of the arena) otherwise; nothing is reported, the caller decides whether that is an error or the emulator's turn.
 * The Runtime is not of the arena: runtime_close releases the primary context. */
Runtime *runtime_open(Arena *arena, int ordinal, const char *target, int ptx_major, int ptx_minor, RuntimeLack *lack,
                      const char **why);
void runtime_close(Runtime *runtime);
/* The name of the device that runtime_open would take, without taking it; NULL where there is none. */
const char *runtime_find(Arena *arena, int ordinal, const char *target, int ptx_major, int ptx_minor);
const char *runtime_device_name(const Runtime *runtime);

typedef struct RuntimeOptions {
    int timed; /* launches to time after the first, inputs of inout tensors restored before each; 0: time the first */
} RuntimeOptions;

/* Copies arrays in, launches, copies `out` and `inout` arrays back (results of the first launch), guard bands included. */
RunStatus runtime_run(Arena *arena, Runtime *runtime, const Launch *launch, const RuntimeOptions *options, RunResult *result,
                      Diags *diags);

/* ---- several kernels on the same data ------------------------------------------------------------------------------- */

/* Launches of one signature that share arrays, symbols and scalars; the arrays lie on the device once for all of them. */
typedef struct RuntimeRace RuntimeRace;

RuntimeRace *runtime_race_new(Arena *arena, Runtime *runtime);
void runtime_race_free(RuntimeRace *race);
/* Loads the launch's kernel and runs it once on fresh data; arrays hold its results then. It is in the race under the next number
 * where that ends with RUN_DONE. After RUN_FINDING and RUN_UNAVAILABLE the race is over. */
RunStatus runtime_race_enter(RuntimeRace *race, const Launch *launch, Diags *diags);
/* Seconds of one launch of number `index`, over several in a row. */
RunStatus runtime_race_time(RuntimeRace *race, size_t index, double *seconds, Diags *diags);

/* ---- for embedding: caller's device pointers, caller's stream ------------------------------------------------------ */

typedef struct RuntimeKernel RuntimeKernel; /* a loaded module and its entry */

RuntimeKernel *runtime_load(Arena *arena, Runtime *runtime, const Manifest *manifest, const char *ptx, size_t length,
                            Diags *diags);
void runtime_unload(RuntimeKernel *kernel);
/* pointers: one device address a parameter (tensors); symbols as launch_bind gave them; stream: a CUstream, NULL: default.
 * Encoded tensor maps are kept by address and extents, so that repeated launches cost no encoding. */
RunStatus runtime_launch(RuntimeKernel *kernel, const uint64_t *pointers, const Scalar *scalars, const int64_t *symbols,
                         int64_t tiles, void *stream, Diags *diags);

#endif
