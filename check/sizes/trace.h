/* trace, check private: runs roles at given sizes, and finds deadlocks at them.
 *   trace.c         the machine with an oracle that evaluates conditions and bounds
 *   trace_text.c    the message about a deadlock
 *   trace_sizes.c   sizes at which roles deadlock */
#ifndef PIPEC_TRACE_H
#define PIPEC_TRACE_H

#include "check/sizes/sizes.h"
#include "flow/machine.h"

/* most events of one process at one size, and iterations of a loop */
#define TRACE_EVENTS 100000

/* The relevant part of the kernel. Made once for all sizes. */
typedef struct Traced {
    Arena *arena;
    const Prog *prog;
    FlowCode **codes; /* by role */
    Budget work;      /* for all runs; when it is used up nothing is known */
} Traced;

/* The tiles of the grid that one block runs one after the other, and contents of memory */
typedef struct BlockRun {
    const Sizes *sizes;
    int64_t extents[PROG_MAX_RANK], first, tiles;
    Reads *reads; /* NULL: values that depend on memory are unknown */
} BlockRun;

/* A run: the machine with the data of its oracle */
typedef struct Run {
    Traced *traced;
    const BlockRun *block;
    Machine *machine;
    State state;
    struct Known *known; /* by process */
    /* Called for each kept tile statement, in the order of the run; NULL: not called */
    void (*tile)(struct Run *run, const Position *place, const Row *row, const Env *env);
    void (*event)(struct Run *run, const Position *place, const Event *event);
    void (*leave)(struct Run *run, const Position *place, const Row *row); /* NULL: not called */
    void *data;
} Run;

typedef bool TileWanted(const Row *row, const void *data);

#define ALL_PIPES (-1)

/* Keeps the operations on all pipes without explicit signals, and the turns; or the acquires of
 * one pipe. Also keeps the control that decides about them, and wanted tile statements (NULL:
 * none) with the values of their subscripts. */
Traced *trace_new(Arena *arena, const Prog *prog, int pipe, TileWanted *wanted, const void *data);

/* All roles; each_instance: a process per instance, even if instances run together */
Run *trace_run_new(Arena *arena, Traced *traced, const BlockRun *block, bool each_instance,
                   int events_most);

Outcome trace_run(Run *run);

typedef enum TraceOutcome { TRACE_UNKNOWN, TRACE_ENDS, TRACE_STUCK } TraceOutcome;

TraceOutcome trace_try(Arena *arena, Traced *traced, const BlockRun *block,
                       size_t *steps); /* one run; adds its steps */

/* Needs equal counts; refuses a deadlock at sizes that were found; false: none were found */
bool trace_check(Arena *arena, Prog *prog, Diags *diags);

typedef struct Acquires { /* of one end of a pipe, in one block */
    int64_t count;
    int64_t number; /* number of the acquire whose place is wanted, from 0 */
    Span place;     /* empty: there are fewer */
} Acquires;

/* The number of acquires of an end of a pipe by a role in the block; false: unknown */
bool trace_acquires(Arena *arena, Traced *traced, const Role *role, int pipe, End end,
                    const BlockRun *block, Acquires *acquires);

/* The events of a single process; false: not known to its end */
typedef VEC(Event) Events;
bool trace_events(Arena *arena, Traced *traced, const BlockRun *block, const Role *role,
                  int instance, Events *events);

/* The message about a deadlocked block */
void trace_refuse(Arena *arena, Prog *prog, Traced *traced, Diags *diags, const BlockRun *block);

#endif
