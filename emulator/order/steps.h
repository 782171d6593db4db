/* emulator, private: the order of execution. It tells which steps of other warps have certainly
 * been executed, on every schedule.
 *
 * It says nothing about memory (order.h does): `.relaxed` arrivals carry it too, and a copy carries
 * what its issuer had executed. For each warp of the cluster it counts the last known step; a step
 * of a warp ends when the warp gives what it knows. NULL: nothing is known. */
#ifndef PIPEC_EMULATOR_STEPS_H
#define PIPEC_EMULATOR_STEPS_H

#include "emulator/machine.h"

/* Before the cluster runs: nobody knows anything. Does nothing if no races are looked for. */
void steps_start(Cluster *cluster);
/* Index of a warp in its cluster, and its present step */
uint32_t steps_index(const Warp *warp);
uint32_t steps_now(const Warp *warp);
/* Adds what the warp knows, and its own step. */
void steps_add_own(const Warp *warp, uint32_t **into);
void steps_next(Warp *warp); /* its step ends */
/* both */
void steps_give(Warp *warp, uint32_t **into);
void steps_add(const Cluster *cluster, uint32_t **into, const uint32_t *from);
/* The warp learns `from`. */
void steps_take(Warp *warp, const uint32_t *from);
/* A phase is complete: `done` becomes `now`, which becomes empty. */
void steps_turn(const Cluster *cluster, uint32_t **now, uint32_t **done);
void steps_clear(const Cluster *cluster, uint32_t *steps);
/* true if the step of this warp is known */
static inline bool steps_knows(const uint32_t *steps, uint32_t index, uint32_t step) {
    return steps && steps[index] >= step;
}

#endif
