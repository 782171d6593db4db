/* runtime, private: shared by the files of this floor. */
#ifndef PIPEC_RUNTIME_PRIVATE_H
#define PIPEC_RUNTIME_PRIVATE_H

#include "runtime/driver.h"
#include "runtime/runtime.h"

#include <pthread.h>

struct Runtime {
    Driver driver;
    int device;
    int multiprocessors;
    DriverContext context; /* the device's primary context, retained */
    char name[256];
};

/* allocation for an empty tensor, of which EMPTY_BYTES are used: L2 promotion fetches aligned
 * EMPTY_ROOM bytes */
#define EMPTY_ROOM 256

/* number of tensor map sets that a kernel caches: a program that launches in a loop uses a few */
#define ENCODED_SETS 32

/* The tensor maps of one launch. Not in an arena, because kernels outlive compilations. */
typedef struct EncodedSet {
    /* address of each map's tensor: the key, together with the symbols */
    uint64_t *addresses;
    int64_t *symbols;
    unsigned char *maps; /* TENSOR_MAP_BYTES each, and aligned to that */
    /* number of the launch that used it last; 0: empty */
    uint64_t used;
} EncodedSet;

typedef union PassedValue {
    uint64_t whole;
    unsigned char bytes[8];
} PassedValue;

typedef struct Counters Counters; /* counters.c */

struct RuntimeKernel {
    Runtime *runtime;
    const Manifest *manifest;
    DriverModule module;
    DriverFunction function;
    int resident;           /* blocks that fit the device at once */
    WatchdogArea *watchdog; /* page-locked; NULL without one */
    DevicePointer watchdog_address;
    /* base addresses for maps of empty tensors: [ManifestMap.stored], EMPTY_ROOM bytes each; 0:
     * no maps */
    DevicePointer empty;

    /* protects the members below when several threads launch */
    pthread_mutex_t lock;
    EncodedSet sets[ENCODED_SETS];
    uint64_t launches;
    void **parameters;     /* in the form of cuLaunchKernelEx: one per ManifestArgument */
    PassedValue *values;   /* of those that are not tensor maps */
    void *block;           /* the allocation that holds these arrays */
    Counters *counters;    /* NULL: the grid is not dynamic */
    DevicePointer counter; /* of the present launch */
};

/* The counters of a dynamic grid. False: not enough host memory */
bool counters_open(RuntimeKernel *kernel);
void counters_close(RuntimeKernel *kernel); /* frees them */
/* Address of the counter for a launch on the stream, which no other launch shares that may overlap
 * it; 0 if the grid is not dynamic. *call: the failed call. Needs the kernel's lock. */
DriverError counters_find(RuntimeKernel *kernel, DriverStream stream, DevicePointer *counter,
                          const char **call);

/* runtime_enter makes the primary context current, runtime_leave restores the previous one.
 * Driver calls are allowed only between the two. */
bool runtime_enter(const Runtime *runtime, Diags *diags);
void runtime_leave(const Runtime *runtime);

/* Reports a failed driver call: "cuMemAlloc: CUDA_ERROR_... (...)". */
RunStatus driver_failed(const Runtime *runtime, DriverError error, const char *call, Diags *diags);
/* The same during or after a launch: distinguishes a fault of the kernel, lack of memory, and
 * too large a block. */
RunStatus kernel_failed(const RuntimeKernel *kernel, DriverError error, const char *call,
                        Diags *diags);

/* Loads the text in the current context; NULL: *status says why */
RuntimeKernel *kernel_load(Runtime *runtime, const Manifest *manifest, const char *ptx,
                           Diags *diags, RunStatus *status);
void kernel_unload(RuntimeKernel *kernel);
RunStatus kernel_launch(RuntimeKernel *kernel, const uint64_t *pointers, const Scalar *scalars,
                        const int64_t *symbols, int64_t tiles, DriverStream stream, int64_t *blocks,
                        Diags *diags);

/* Reports the watchdog's records as one finding; false: there is no record. */
bool watchdog_report(const RuntimeKernel *kernel, Diags *diags);

#endif
