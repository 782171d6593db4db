/* arrivals: number of arrivals at each released stage, for explicit arrivals of `unsafe`. */
#ifndef PIPEC_FLOW_ARRIVALS_H
#define PIPEC_FLOW_ARRIVALS_H

#include "flow/code.h"

#define ARRIVALS_MANY (INT64_C(1) << 40) /* any number */

typedef struct Arrive { /* a row that arrives at a stage on some path */
    int row;
    const struct Arrive *next;
} Arrive;

/* Arrivals of one instance at a stage that it releases, over all paths */
typedef struct Share {
    bool comes;          /* it reaches this release */
    int64_t least, most; /* arrivals */
    /* some paths have `least`, and some have `most`; otherwise they are bounds */
    bool attained;
    uint32_t warps; /* warps that arrive on every path */
} Share;

typedef struct Site { /* a row that releases a stage: for each instance, or for the one in turn */
    int row, pipe;
    int instance;          /* in turn: the instance; otherwise -1: all */
    Share *shares;         /* by instance */
    const Arrive *arrives; /* of all instances */
    bool late;             /* the stage is accessed after its last arrival, at: */
    Span touched_at, arrived_at;
} Site;

typedef struct Arrivals {
    bool complete;   /* otherwise it has more warps than the analysis follows */
    VEC(Site) sites; /* in the order of their discovery */
} Arrivals;

/* For the pipes with declared arrivals whose use by `unsafe` can be followed. Needs uniformity,
 * and the kind of arrival of each pipe's releases (PipeUse). */
const Arrivals *flow_arrivals(Arena *arena, FlowCode *code);

#endif
