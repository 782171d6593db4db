/* What a role holds of its pipes: how many stages of an end at once, and how far back the oldest of
 * them lies. */
#ifndef PIPEC_FLOW_HELD_H
#define PIPEC_FLOW_HELD_H

#include "flow/code.h"

/* Of one end of a pipe. The n-th acquire of the end takes its n-th stage. A stage is held from its
 * acquire to its release; the stages that a late set keeps are held too. What `step` passes over is
 * not counted: nothing is proved of such a pipe. */
typedef struct HeldEnd {
    int most;   /* stages that are held at once, at most */
    int window; /* number of an acquire less the number of the oldest stage that is held while it
                 * waits; 0 where none is held; at most; larger ones than the ring are given as the
                 * ring */
} HeldEnd;

/* One stage that is held */
typedef struct Holding {
    int handle;   /* that has it, or had it when the late set took it over */
    int late;     /* the late set that keeps it, -1: none */
    int age;      /* acquires of the end since its own, itself included */
    int acquired; /* the row */
} Holding;

/* More stages than the ring has are held at once after this acquire: it waits for itself. */
typedef struct Crowd {
    int row;
    VEC(Holding) holdings; /* of that end, the stage of this acquire among them */
} Crowd;

struct Held {
    HeldEnd *ends; /* by 2 * pipe + End */
    int *at;       /* by row: ACQUIRE: the stages of its end that are held from there on, at most */
    VEC(Crowd) crowds; /* the first one of each pipe */
};

/* With the lags that the late sets have now */
const Held *flow_held(Arena *arena, FlowCode *code);

#endif
