/* held: stages of a pipe's end that a role holds at once, and the age of the oldest. */
#ifndef PIPEC_FLOW_HELD_H
#define PIPEC_FLOW_HELD_H

#include "flow/code.h"

/* For one end of a pipe. The n-th acquire of the end gets its n-th stage. A stage is held from
 * its acquire to its release; the stages of a late set are held too. Stages skipped by `step`
 * are not counted: nothing is proved about such a pipe. */
typedef struct HeldEnd {
    int most; /* most stages held at once */
    /* greatest difference between the number of an acquire and that of the oldest stage held
     * while it waits; 0 if none is held; limited to the length of the ring */
    int window;
} HeldEnd;

/* A held stage */
typedef struct Holding {
    /* handle that has it, or had it when the late set took it */
    int handle;
    int late;     /* the late set that contains it, -1: none */
    int age;      /* acquires of the end since its own, inclusive */
    int acquired; /* its row */
} Holding;

/* After this acquire more stages are held than the ring has: it waits for itself. */
typedef struct Overfull {
    int row;
    VEC(Holding) holdings; /* of that end, including the stage of this acquire */
} Overfull;

struct Held {
    HeldEnd *ends; /* by 2 * pipe + End */
    /* by row: ACQUIRE: most stages of its end that are held after it */
    int *at;
    VEC(Overfull) overfulls; /* the first one of each pipe */
};

/* With the present lags of the late sets */
const Held *flow_held(Arena *arena, FlowCode *code);

#endif
