/* lib, private: the kernels that launches of one kernel have loaded on one device. Their number is
 * bounded: a load unloads those that were not used for longest, except those that some thread is
 * launching, those in captured graphs, and those of the caller. */
#ifndef PIPEC_LIB_POOL_H
#define PIPEC_LIB_POOL_H

#include "lib/private.h"

#include <stdatomic.h>

#define LOADED_MOST 40 /* unless PipecOptions.loaded_most says otherwise */

/* Room for one kernel. `lock` of the pool guards it, except its number of users. */
typedef struct Slot Slot;
struct Slot {
    Slot *next;            /* of the loaded ones */
    void *server;          /* of launches, that it belongs to */
    PipecKernel *kernel;   /* NULL: it is not loaded */
    PipecProgram *program; /* that is freed with the kernel; NULL: none */
    uint64_t used;         /* the time of the last use, by the clock of the pool */
    atomic_int users;      /* launches that have not returned */
    bool loading;          /* a thread loads it */
    double begun;          /* when that began, in seconds */
    bool stays;            /* it is the caller's kernel */
};

/* How kernels are loaded and freed (kernel.c) */
typedef struct Loader {
    PipecStatus (*load)(PipecProgram *program, int device, PipecKernel **kernel,
                        PipecDiagnostics **diagnostics);
    void (*free)(PipecKernel *kernel);
    bool (*is_captured)(const PipecKernel *kernel);
} Loader;

typedef struct Pool {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a load has ended */
    const Loader *loader;
    Slot *loaded;
    uint64_t clock;
    size_t most; /* of those that are not captured */
    int threads; /* that load in the background */
} Pool;

/* most 0: LOADED_MOST */
void pool_open(Pool *pool, const Loader *loader, size_t most);
/* No slot is used any more. */
void pool_close(Pool *pool);
/* Waits until no thread loads in the background. */
void pool_settle(Pool *pool);
void pool_count(Pool *pool, size_t *loaded, size_t *captured);

/* Uses the slot for a launch, which pool_release ends. False: it is not loaded. Needs the lock. */
bool pool_use(Pool *pool, Slot *slot);
void pool_release(Slot *slot);
/* The slot holds this kernel from now on. Needs the lock. */
void pool_add(Pool *pool, Slot *slot, PipecKernel *kernel, PipecProgram *program);
/* Unloads what is over the limit. Not with the lock: the driver waits for launches. */
void pool_trim(Pool *pool);

double pool_now(void); /* seconds of the clock that the pool waits by */
/* Waits for a change, at most until then; 0: any time. Needs the lock. False: the time is over. */
bool pool_wait(Pool *pool, double until);

#endif
