/* emulator, private: the race detector. Every access to shared memory, and to global memory that
 * is not read-only, passes race_check: it is compared with the recorded accesses to the same bytes
 * (shadow.h) by the order of both (order.h), and then recorded. Nothing depends on the schedule. */
#ifndef PIPEC_EMULATOR_RACE_H
#define PIPEC_EMULATOR_RACE_H

#include "emulator/findings/names.h"

/* One of the two accesses of a race */
typedef struct RaceSide {
    Actor actor;
    AccessKind kind;
    bool async; /* performed in the async proxy */
    /* as order.h counts them; of the operation, or of the first lane */
    uint64_t cluster;
    uint32_t component, time;
    uint64_t number; /* of the operation; 0: threads */
} RaceSide;

typedef struct Race {
    RaceSide earlier, later; /* in the order of this schedule */
    MemoryRange range;       /* bytes that both access */
    /* They are ordered, but the proxy of the later one does not see the earlier one: the fence
     * that is missing; NULL: they are not ordered */
    const char *fence;
} Race;

/* An access at `address` of the shared memory of `home`, or if that is NULL of a region of global
 * memory; `data`: the bytes, before they are written. False: a race, which it has reported */
bool race_check(Block *block, const Access *access, Block *home, const Region *region,
                uint64_t address, const unsigned char *data);
/* the end of a launch: reports a race that shows only after the last write. False: a finding */
bool race_finish(Machine *machine);
/* forgets the accesses to the block's shared memory, before another block begins in it */
void race_clear(Block *block);
/* What is missing between both accesses: for the message, and what to change; NULL: nothing more
 * to say. */
typedef struct RaceCause {
    const char *text, *help;
} RaceCause;
RaceCause race_cause(Machine *machine, const Race *race);
/* The same by the flag through which the threads of both sides tried to synchronise */
RaceCause race_flag(Machine *machine, const Race *race);
/* The place where the later side has waited for this phase, but `.relaxed`; NULL: it has not */
const char *race_relaxed_wait(Machine *machine, const Race *race, const Barrier *barrier,
                              uint64_t phase);
/* Adds the last steps of both sides that order accesses, and the elements that copies through
 * tensor maps have there. */
void race_timeline(Machine *machine, Diag *diag, const Race *race);
/* The full barrier of the stage that this address of shared memory belongs to, if the manifest
 * has one and the warp has certainly not waited for it; otherwise NULL */
const char *race_unawaited(const Warp *warp, uint64_t address);
/* Reports it. True: the run continues. */
bool race_report(Machine *machine, const Race *race);
/* The same if the later side reads by `.nc`, what the earlier one has written in this launch,
 * ordered or not */
bool race_report_constant(Machine *machine, const Race *race);

#endif
