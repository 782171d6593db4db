/* emulator, private: the life of barriers and of shared memory, judged by the order of accesses
 * (order.h) and not by the schedule that happens to run.
 *
 * All functions do nothing and return true if the run does not look for races. false: a finding
 * ends the run. */
#ifndef PIPEC_EMULATOR_LIFECYCLE_H
#define PIPEC_EMULATOR_LIFECYCLE_H

#include "emulator/machine.h"

/* A use that is remembered. Its order is that of the lane now. */
BarrierUse lifecycle_use(const Agent *agent, uint64_t bytes);
/* Adds it; lanes of one execution of an instruction are one use. */
void lifecycle_remember(Arena *arena, BarrierUses *uses, BarrierUse one);

/* ---- mbarriers ------------------------------------------------------------------------------- */

/* The lane executes `what` at the mbarrier: is the init ordered before it? */
bool lifecycle_initialised(Block *block, Agent agent, const Barrier *barrier, const char *what);
/* It issues a copy that completes there: is the init also visible to the async proxy? */
bool lifecycle_copied(Block *block, Agent agent, const Barrier *barrier);
/* Remembers an arrival; before its order. */
void lifecycle_arrived(Block *block, const Agent *agent, Barrier *barrier);
/* Before an arrival: can it be counted in the phase before? Only between threads of one block:
 * arrivals of several blocks may be counted in either phase as long as the copies are ordered. */
bool lifecycle_arrives(Block *block, Agent agent, const Barrier *barrier);
/* The wait of this lane for a parity ends: could it have ended two phases earlier? */
bool lifecycle_looks(Block *block, Agent agent, Barrier *barrier);
/* These lanes have seen the last phase complete. */
void lifecycle_sees(Warp *warp, uint32_t mask, Barrier *barrier);
/* A phase is complete: have all lanes that wait for the one before certainly seen that? */
bool lifecycle_completes(Block *block, Barrier *barrier);
/* Before an inval: can another lane still use the mbarrier? */
bool lifecycle_ends(Block *block, Agent agent, const Barrier *barrier);

/* ---- named barriers -------------------------------------------------------------------------- */

/* Before an arrival: can it be counted in the phase before? */
bool lifecycle_enters(Block *block, Agent agent, const NamedBarrier *barrier, uint32_t id);
/* These lanes of a warp have arrived; before the order of their arrival */
void lifecycle_entered(Warp *warp, uint32_t mask, NamedBarrier *barrier, uint32_t id);

/* ---- blocks of a cluster --------------------------------------------------------------------- */

/* A lane accesses shared memory of another block. */
void lifecycle_reaches(const Agent *agent, Block *home);
/* All threads of the block have exited: is every access of other blocks ordered before? */
bool lifecycle_exited(Block *block);

#endif
