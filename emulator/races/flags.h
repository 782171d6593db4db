/* emulator, private: flags, the words of global memory by which threads may have tried to
 * synchronise: which strong accesses wrote and read them, and which fences the lanes executed.
 * Only messages of races use this; the order itself is in order.h.
 *
 * Memory is bounded, so that old accesses can be forgotten, and a message then does not name them.
 * Every function does nothing unless the run looks for races. */
#ifndef PIPEC_EMULATOR_FLAGS_H
#define PIPEC_EMULATOR_FLAGS_H

#include "emulator/order/order.h"

/* The last fence of a lane that orders memory in one direction; valid in this cluster */
typedef struct FlagFence {
    uint64_t cluster, serial; /* serial: counts the events of this file; 0: there was none */
    uint32_t time, pc;        /* time: as order.h counts it */
} FlagFence;

/* The last strong write of a word by a block */
typedef struct FlagWrite {
    uint64_t word;            /* its address / 4 */
    uint64_t cluster, serial; /* serial 0: none */
    uint32_t rank, component, time, pc;
    const FlagFence
        *released; /* [REACHES], by scope: the last fences of the lane before it; or NULL */
} FlagWrite;

/* The last strong read of some words by a lane at an instruction */
typedef struct FlagRead {
    uint64_t address, cluster, serial; /* serial 0: none */
    uint32_t bytes, component, pc;
} FlagRead;

enum { FLAG_WRITES = 1024, FLAG_READS = 1024 };

typedef enum FlagUse { FLAG_LOAD, FLAG_STORE, FLAG_BOTH } FlagUse;
/* The lane accesses `bytes` bytes of global memory by a strong access. */
void flags_use(Warp *warp, const Inst *inst, uint32_t lane, uint64_t address, uint32_t bytes,
               FlagUse use);
/* The lanes execute a fence. */
void flags_fence(Warp *warp, uint32_t mask, const Inst *inst);

/* The last write of this word by the block; NULL: none is known */
const FlagWrite *flags_written(const Machine *machine, uint64_t word, uint64_t cluster,
                               uint32_t rank);
/* The last write of this word by any block before `serial`; NULL: none is known */
const FlagWrite *flags_last_written(const Machine *machine, uint64_t word, uint64_t serial);
/* The next older read of the cluster: the newest of those before `serial`; NULL: none is known */
const FlagRead *flags_read_before(const Machine *machine, uint64_t cluster, uint64_t serial);
/* The last fence of the lane that acquires, with at least this reach; NULL: none */
const FlagFence *flags_acquired(const Warp *warp, uint32_t lane, uint32_t reach);

#endif
