/* trace: private to check/: what roles do at given sizes, and whether they wait for each other
 * for ever at them.
 *   trace.c         the machine with an oracle that evaluates conditions and bounds
 *   trace_text.c    who waits for whom, where that is for ever
 *   trace_sizes.c   sizes at which roles wait for ever */
#ifndef PIPEC_TRACE_H
#define PIPEC_TRACE_H

#include "check/sizes.h"
#include "flow/machine.h"

#define TRACE_EVENTS 100000 /* of one process at one size; and trips of a loop that are followed */

/* The kernel as far as runs at given sizes need it. Made once for all sizes. */
typedef struct Traced {
    Arena *arena;
    const Prog *prog;
    FlowCode **codes; /* by role */
    Budget work;       /* of all runs together; after it nothing is known */
} Traced;

/* The tiles of the grid that one block runs one after the other, and what memory holds */
typedef struct BlockRun {
    const Sizes *sizes;
    int64_t extents[PROG_MAX_RANK], first, tiles;
    Reads *reads; /* NULL: what depends on memory is not known */
} BlockRun;

/* A run: the machine with what its oracle knows */
typedef struct Run {
    Traced *traced;
    const BlockRun *block;
    Machine *machine;
    State state;
    struct Known *known; /* by process */
    /* told of each tile statement that is kept, in the order of the run; NULL: of none */
    void (*tile)(struct Run *run, const Position *place, const Row *row, const Env *env);
    void (*event)(struct Run *run, const Position *place, const Event *event);
    void (*leave)(struct Run *run, const Position *place, const Row *row); /* NULL: is not told */
    void *data;
} Run;

typedef bool TileWanted(const Row *row, const void *data);

#define ALL_PIPES (-1)

/* Keeps the operations on all pipes but those that are signalled by hand, and the turns; or how
 * often one pipe is acquired. With what decides about them; and tile statements that are wanted
 * (NULL: none) with what their subscripts need. */
Traced *trace_new(Arena *arena, const Prog *prog, int pipe, TileWanted *wanted, const void *data);

/* All roles; each_instance: a process an instance, even of roles whose instances go together */
Run *trace_run_new(Arena *arena, Traced *traced, const BlockRun *block, bool each_instance,
                   int events_most);

Outcome trace_run(Run *run);

typedef enum TraceOutcome { TRACE_UNKNOWN, TRACE_ENDS, TRACE_STUCK } TraceOutcome;

/* One run; adds the steps that it took. diags: NULL, or where it is said who waits for whom */
TraceOutcome trace_try(Arena *arena, Prog *prog, Traced *traced, Diags *diags,
                       const BlockRun *block, size_t *steps);

/* needs equal counts; refuses what waits for ever at sizes that are found; false where none are */
bool trace_check(Arena *arena, Prog *prog, Diags *diags);

typedef struct Acquires { /* of one end of a pipe, in one block */
    int64_t count;
    int64_t number; /* the one whose place is asked for, from 0 */
    Span place;     /* empty: there are not so many */
} Acquires;

/* How often a role acquires an end of a pipe in the block; false where that is not known */
bool trace_acquires(Arena *arena, Traced *traced, const Role *role, int pipe, End end,
                    const BlockRun *block, Acquires *acquires);

/* The events of one process on its own; false where they are not known to its end */
typedef VEC(Event) Events;
bool trace_events(Arena *arena, Traced *traced, const BlockRun *block, const Role *role,
                  int instance, Events *events);

/* What is said of a block that is stuck */
void trace_refuse(Arena *arena, Prog *prog, Traced *traced, Diags *diags, const BlockRun *block);

#endif
