/* runtime, private: shared by the files of this floor. */
#ifndef PIPEC_RUNTIME_PRIVATE_H
#define PIPEC_RUNTIME_PRIVATE_H

#include "runtime/driver.h"
#include "runtime/runtime.h"

#include <pthread.h>
#include <stdatomic.h>

struct Runtime {
    Driver driver;
    int ordinal, device;
    int major, minor;      /* compute capability */
    DeviceFacts facts;     /* but the name */
    DriverContext context; /* the device's primary context, retained */
    char name[256];
};

/* allocation for an empty tensor, of which EMPTY_BYTES are used: L2 promotion fetches aligned
 * EMPTY_ROOM bytes */
#define EMPTY_ROOM 256

/* What a launch computes from its tensors and integers */
typedef struct Bound {
    int64_t *symbols;
    int64_t tiles;
    unsigned char *maps; /* TENSOR_MAP_BYTES each */
} Bound;

typedef struct PreparedTable PreparedTable; /* prepared.c */

typedef struct Counters Counters; /* counters.c */

struct RuntimeKernel {
    Runtime *runtime;
    const Manifest *manifest;
    DriverModule module;
    DriverFunction function;
    int resident; /* blocks that fit the device at once */
    int blocks_per_multiprocessor, registers;
    WatchdogArea *watchdog; /* page-locked; NULL without one */
    DevicePointer watchdog_address;
    /* base addresses for maps of empty tensors: [ManifestMap.stored], EMPTY_ROOM bytes each; 0:
     * no maps */
    DevicePointer empty;

    /* protects the members below when several threads launch */
    pthread_mutex_t lock;
    PreparedTable *prepared;
    Counters *counters; /* NULL: the grid is not dynamic */

    /* A launch was captured. Its graph may outlive the kernel, so the module and the memory on the
     * device stay until the context ends. */
    atomic_bool captured;
};

/* What earlier launches have computed. Not in an arena, because kernels outlive compilations.
 * False: not enough host memory */
bool prepared_open(RuntimeKernel *kernel);
void prepared_close(RuntimeKernel *kernel);
/* Copies what an earlier launch with the same tensors and integers has computed; false: there is
 * none. */
bool prepared_recall(RuntimeKernel *kernel, const DeviceArgument *arguments, Bound *bound);
void prepared_remember(RuntimeKernel *kernel, const DeviceArgument *arguments, const Bound *bound);

/* The counters of a dynamic grid. False: not enough host memory */
bool counters_open(RuntimeKernel *kernel);
void counters_close(RuntimeKernel *kernel); /* frees them */
/* Address of the counter for a launch on the stream, which no other launch shares that may overlap
 * it; 0 if the grid is not dynamic. captured: the stream is. *call: the failed call. */
DriverError counters_find(RuntimeKernel *kernel, DriverStream stream, bool captured,
                          DevicePointer *counter, const char **call);

/* context_enter makes the primary context current, if another one is; context_leave restores that
 * one. Driver calls are allowed only between the two. */
typedef struct Entered {
    bool pushed;
} Entered;
DriverError context_enter(const Runtime *runtime, Entered *entered);
bool runtime_enter(const Runtime *runtime, Entered *entered, Diags *diags); /* reports a failure */
void runtime_leave(const Runtime *runtime, Entered entered);

/* Between the two calls, a capture of a stream does not forbid this thread to allocate, to load
 * and to copy on streams of its own. */
DriverError capture_relax(const Driver *driver, unsigned *before);
DriverError capture_restore(const Driver *driver, unsigned before);

/* Allocates `bytes` zeros on the device, at most ZEROS_MOST. Uses a stream of its own, which a
 * capture does not concern. *call: the failed call. */
#define ZEROS_MOST 16384
DriverError zeros_new(const Driver *driver, size_t bytes, DevicePointer *base, const char **call);

/* Reports a failed driver call: "cuMemAlloc: CUDA_ERROR_... (...)". manifest: of the kernel; NULL:
 * the call is about none */
RunStatus driver_failed(const Runtime *runtime, const Manifest *manifest, DriverError error,
                        const char *call, Diags *diags);
/* Notes who is to blame: `bug`, unless the manifest and its PTX were read from files */
void note_blame(const Manifest *manifest, Diags *diags, Diag *diag, const char *bug);
/* The same during or after a launch: distinguishes a fault of the kernel, lack of memory, and
 * too large a block. */
RunStatus kernel_failed(const RuntimeKernel *kernel, DriverError error, const char *call,
                        Diags *diags);

/* Loads the text in the current context; NULL: *status says why */
RuntimeKernel *kernel_load(Runtime *runtime, const Manifest *manifest, const char *ptx,
                           Diags *diags, RunStatus *status);
void kernel_unload(RuntimeKernel *kernel);
/* runtime_launch in the current context; *blocks: their number */
RunStatus kernel_launch(RuntimeKernel *kernel, const DeviceArgument *arguments,
                        const RuntimeLaunch *how, int64_t *blocks, Diags *diags);

/* Reports the watchdog's records as one finding; false: there is no record. */
bool watchdog_report(const RuntimeKernel *kernel, Diags *diags);

#endif
