/* arrivals: how often each stage that is given up is arrived at, where `unsafe` does it by hand. */
#ifndef PIPEC_FLOW_ARRIVALS_H
#define PIPEC_FLOW_ARRIVALS_H

#include "flow/code.h"

#define ARRIVALS_MANY (INT64_C(1) << 40) /* any number */

typedef struct Arrive { /* a row that arrives at a stage on some path */
    int row;
    const struct Arrive *next;
} Arrive;

/* What one instance does for a stage that it gives up, on all paths */
typedef struct Share {
    bool comes;          /* it gives the stage up here at all */
    int64_t least, most; /* arrivals */
    bool attained;       /* some paths have `least`, and some have `most`; else they are bounds */
    uint32_t warps;      /* those that arrive on every path */
} Share;

typedef struct Site { /* a row that gives a stage up: for each instance, or for the one that has it */
    int row, pipe;
    int instance;          /* in turn: which one; else -1: all */
    Share *shares;         /* by instance */
    const Arrive *arrives; /* of all instances */
    bool late;             /* the stage is touched after its last arrival, here: */
    Span touched_at, arrived_at;
} Site;

typedef struct Arrivals {
    bool complete;   /* else it has more warps than are followed */
    VEC(Site) sites; /* in the order in which they were found */
} Arrivals;

/* Of the pipes with declared arrivals of which `unsafe` does no more than can be followed. Needs uniformity, and how
 * the releases of each pipe arrive (PipeUse). */
const Arrivals *flow_arrivals(Arena *arena, FlowCode *code);

#endif
