/* runtime: what the files of this floor share and nobody else sees. */
#ifndef PIPEC_RUNTIME_PRIVATE_H
#define PIPEC_RUNTIME_PRIVATE_H

#include "runtime/driver.h"
#include "runtime/runtime.h"

#include <pthread.h>

struct Runtime {
    Driver driver;
    int device;
    int multiprocessors;
    DriverContext context; /* the device's primary one, retained */
    char name[256];
};

#define EMPTY_ROOM 256 /* of which EMPTY_BYTES count: the L2 promotion fetches so many, from a multiple of it on */

#define ENCODED_SETS 32 /* sets of tensor maps that a kernel keeps: a program that launches in a loop uses a few */

/* The tensor maps of one launch. The list of sets is not of an arena: kernels outlive compilations. */
typedef struct EncodedSet {
    uint64_t *addresses; /* of each map's tensor: the key, with the symbols */
    int64_t *symbols;
    unsigned char *maps; /* TENSOR_MAP_BYTES each, and aligned to that */
    uint64_t used;       /* the launch that used it last; 0: empty */
} EncodedSet;

typedef union PassedValue {
    uint64_t whole;
    unsigned char bytes[8];
} PassedValue;

struct RuntimeKernel {
    Runtime *runtime;
    const Manifest *manifest;
    DriverModule module;
    DriverFunction function;
    int resident;           /* blocks that fit the device at once */
    WatchdogArea *watchdog; /* page-locked; NULL without one */
    DevicePointer watchdog_address;
    DevicePointer empty; /* where maps of empty tensors lead: [ManifestMap.stored], EMPTY_ROOM bytes each; 0: there are no maps */

    pthread_mutex_t lock; /* of what follows: launches from several threads take turns */
    EncodedSet sets[ENCODED_SETS];
    uint64_t launches;
    void **parameters;   /* as cuLaunchKernelEx takes them: one a ManifestArgument */
    PassedValue *values; /* of those that are not tensor maps */
    void *block;         /* where all of these arrays lie */
};

/* Makes the primary context current, and puts back what was. Nothing of the driver is called outside of a pair. */
bool runtime_enter(const Runtime *runtime, Diags *diags);
void runtime_leave(const Runtime *runtime);

/* A driver's call that failed for no better known reason: "cuMemAlloc: CUDA_ERROR_... (...)". */
RunStatus driver_failed(const Runtime *runtime, DriverError error, const char *call, Diags *diags);
/* ... during or after a launch: a fault of the kernel, too much memory or too large a block are told apart. */
RunStatus kernel_failed(const RuntimeKernel *kernel, DriverError error, const char *call, Diags *diags);

/* text to a loaded kernel, in the current context; NULL with *status */
RuntimeKernel *kernel_load(Runtime *runtime, const Manifest *manifest, const char *ptx, Diags *diags,
                           RunStatus *status);
void kernel_unload(RuntimeKernel *kernel);
RunStatus kernel_launch(RuntimeKernel *kernel, const uint64_t *pointers, const Scalar *scalars, const int64_t *symbols,
                        int64_t tiles, DriverStream stream, int64_t *blocks, Diags *diags);

/* What the watchdog's records say, as one finding; false: there is no record. */
bool watchdog_report(const RuntimeKernel *kernel, Diags *diags);

#endif
