/* emulator, private: the last steps of each warp that order its accesses, for findings: where it
 * arrived, what it waited for, which asynchronous operations it issued. Constant memory per warp,
 * and nothing is kept unless the run looks for races. The order itself is in order.h. */
#ifndef PIPEC_EMULATOR_TIMELINE_H
#define PIPEC_EMULATOR_TIMELINE_H

#include "emulator/machine.h"

#define TIMELINE 24 /* moments of a warp that are kept */

typedef enum MomentKind {
    MOMENT_ISSUE,   /* issues an asynchronous operation */
    MOMENT_RELEASE, /* those that wait for it learn of the accesses before it */
    MOMENT_ACQUIRE, /* has waited */
    MOMENT_FENCE
} MomentKind;

/* What a moment is about */
typedef enum MomentObject {
    OBJECT_OPERATION,
    OBJECT_MBARRIER, /* at `address` of the block `rank` */
    OBJECT_NAMED,    /* the named barrier `address` */
    OBJECT_CLUSTER,
    OBJECT_GROUPS, /* bulk copies of its lanes, or their cp.async */
    OBJECT_MATRICES,
    OBJECT_MEMORY, /* a flag that it stores with .release or loads with .acquire */
    OBJECT_LANES,  /* bar.warp.sync */
    OBJECT_LAUNCH  /* griddepcontrol.wait */
} MomentObject;

typedef struct Moment {
    MomentKind kind;
    MomentObject object;
    uint32_t lanes, pc, rank, address;
    /* mbarriers: number of the phase; operations: their number; groups: those below it */
    uint64_t value;
    bool relaxed;
    /* filled in: the cluster that ran, and the time of the warp's accesses before it */
    uint64_t cluster;
    uint32_t time;
    /* a copy through a tensor map: where in shared memory, and the coordinates of its box */
    const TensorMap *map;
    uint32_t shared;
    int32_t coordinates[MAX_RANK];
} Moment;

typedef struct Timeline {
    uint64_t count; /* moments so far; the last ones are kept */
    Moment moments[TIMELINE];
} Timeline;

/* Adds a moment. Several lanes that do the same in one instruction are one moment. */
void timeline_add(Warp *warp, uint32_t time, Moment moment);

#endif
