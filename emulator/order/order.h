/* emulator, private: the order of memory accesses across lanes and asynchronous operations, as
 * the PTX memory model defines it (PTX ISA 8), by vector clocks (clock.h).
 *
 * Every function does nothing, or answers "known", if the run does not look for races:
 * cluster->order is then NULL. A lane knows its own accesses. It learns about others at an edge:
 * what one lane *releases* (its view and its own accesses so far) is what another one *acquires*.
 *
 * Components (clock.h) of a cluster are its threads, then in rows that are taken on first use:
 * - each mbarrier: copies that complete at it; time: the phase that they land in, from 1;
 * - each lane, for its bulk stores: the reads of its groups, and their writes; time: the number
 *   of the group, from 1;
 * - each lane, for cp.async; time: groups committed and cp.async.mbarrier.arrives so far, plus 1;
 * - each warpgroup, for its groups of wgmma; time: the number of the group, from 1;
 * - each lane, for its mbarrier.init; time: their number.
 * So the number of components is bounded by threads and barriers, and nobody knows an operation
 * before its completion was waited for, not even its issuer.
 *
 * Lanes of a warp share their time, which advances after each release, and mostly their view. */
#ifndef PIPEC_EMULATOR_ORDER_H
#define PIPEC_EMULATOR_ORDER_H

#include "emulator/order/clock.h"
#include "emulator/machine.h"

/* How far a scope reaches; the device also stands for the system */
enum { REACH_BLOCK, REACH_CLUSTER, REACH_DEVICE, REACHES };
uint32_t order_reach(Scope scope);

/* ---- questions of the race detector ---------------------------------------------------------- */

/* An access is recorded with its component and the time of that component. */
typedef struct Epoch {
    uint32_t component, time;
} Epoch;

/* What the performer of an access knows: a lane, or an asynchronous operation since its issue.
 * Valid until the next edge of the lane, or until the operation is over. */
typedef struct Seen {
    const View *view;
    uint64_t cluster; /* number of the cluster, counted over all launches */
    /* Components that it knows besides the view; UINT32_MAX: none. Its lane, until times[clock];
     * its cp.async, until `copied`, for the generic proxy */
    uint32_t self, times[VIEW_CLOCKS], copies, copied;
} Seen;

/* A launch of the run: a range of clusters */
typedef struct OrderLaunch {
    uint64_t first; /* number of its first cluster */
    size_t index;
    const Program *program;
    uint32_t cluster_size, warp_count; /* blocks of a cluster, warps of a block */
} OrderLaunch;
/* The launch that this cluster belongs to */
const OrderLaunch *order_launch_of(const Machine *machine, uint64_t cluster);

/* The number of the cluster that accesses are recorded with; unique in a sequence of kernels */
uint64_t order_cluster(const Cluster *cluster);
/* A lane's access now. Lanes 0 .. 31 of a warp have consecutive components from a multiple of 32,
 * and the same time. */
Epoch order_epoch(const Warp *warp, uint32_t lane);
/* A store instruction of the warp begins; the number of the present one among those of its time */
void order_store_begins(Warp *warp);
uint16_t order_store_number(const Warp *warp);
Seen order_seen(const Warp *warp, uint32_t lane);
/* True if these lanes have one view, except that each one knows its own accesses (but not more of
 * its own cp.async) */
bool order_same_view(const Warp *warp, uint32_t mask);
/* An access that the operation performs now. `lane`: the lane whose copy it is, for cp.async;
 * ignored for others. Stores: what is asked for reads is another component than for writes. */
Epoch order_epoch_of(const Async *op, uint32_t lane, bool reads);
/* For wgmma: of the wgmma of its group that runs now, what all four warps knew when they issued
 * it */
Seen order_seen_by(const Async *op, uint32_t lane);

/* The mbarrier that copies of this component complete at, and the phase of it that they land in
 * (the one that completes at `time`); NULL: it was initialised again by another block */
const Barrier *order_barrier_of(const Cluster *cluster, Epoch epoch, uint64_t *phase);

/* True if the performer knows this access of `cluster`. `clock`: by its proxy, VIEW_GENERIC .. */
static inline bool order_knows(const Seen *seen, uint32_t clock, uint64_t cluster, Epoch access) {
    if (cluster == seen->cluster) {
        if (access.component == seen->self && access.time <= seen->times[clock]) return true;
        if (access.component == seen->copies && access.time <= seen->copied &&
            clock == VIEW_GENERIC)
            return true;
    }
    return view_knows(seen->view, clock, seen->cluster, cluster, access.component, access.time);
}

/* The same for 32 accesses of the time `time`, of the components 32 * row .. 32 * row + 31 that
 * are in `mask`: those that it does not know */
static inline uint32_t order_unknown(const Seen *seen, uint32_t clock, uint64_t cluster,
                                     uint32_t row, uint32_t mask, uint32_t time) {
    const Clock *at = &seen->view->clocks[clock];
    if (cluster < seen->view->below) return 0;
    if (cluster != seen->cluster)
        return rows_unknown(others_find(at->others, cluster), row, mask, time);
    if (seen->self / ROW == row && time <= seen->times[clock]) mask &= ~(1u << seen->self % ROW);
    if (seen->copies / ROW == row && time <= seen->copied && clock == VIEW_GENERIC)
        mask &= ~(1u << seen->copies % ROW);
    return rows_unknown(at->rows, row, mask, time);
}

/* True if the lane knows that this mbarrier was initialised; `barrier` must be live. In a
 * cluster, this takes the cluster's barrier after the init, with .release or after
 * fence.mbarrier_init. */
bool order_knows_init(const Warp *warp, uint32_t lane, const Barrier *barrier);

/* True if the async proxy sees the init: a fence.mbarrier_init or proxy fence of the initialising
 * lane has followed it, or a proxy fence of this lane after it knew the init. */
bool order_init_fenced(const Warp *warp, uint32_t lane, const Barrier *barrier);
/* True if the lane knows that the phase before the last complete one is complete. */
bool order_knows_phase_before(const Warp *warp, uint32_t lane, const Barrier *barrier);
/* Of these accesses, of a row at a time: those that the arrivals of the last complete phase do
 * not know; or that none of the exited lanes of the block knows */
uint32_t order_phase_unknown(const Barrier *barrier, uint32_t row, uint32_t mask, uint32_t time);
uint32_t order_exit_unknown(const Block *block, uint32_t row, uint32_t mask, uint32_t time);
void order_exit(Warp *warp, uint32_t mask); /* these lanes exit */

/* ---- set-up ---------------------------------------------------------------------------------- */

/* Before the first launch: machine->races says whether to look for races. */
void order_begin(Machine *machine);
/* Before each launch, of `clusters` clusters. All accesses of earlier launches are known, or, in a
 * `programmatic` launch, become known to a lane by griddepcontrol.wait. */
void order_launch(Machine *machine, uint64_t clusters, bool programmatic);
/* when the blocks of the cluster start, after their warps were set up */
void order_start(Cluster *cluster, uint64_t first_block);

/* ---- edges between lanes --------------------------------------------------------------------- */

/* `mask`: lanes of the warp */

/* Adds what each of these lanes knows, and its own accesses. */
void order_release(Warp *warp, uint32_t mask, View *into);
/* Each of these lanes learns `from`. */
void order_acquire(Warp *warp, uint32_t mask, const View *from);
/* These lanes learn what each of them knows: bar.warp.sync, shfl.sync, vote.sync, match.sync,
 * redux.sync, elect.sync, wgmma. (The ISA orders memory for the first one only; it is customary
 * to rely on the others.) */
void order_meet(Warp *warp, uint32_t mask);
/* The same for bar.warp.sync */
void order_meet_barrier(Warp *warp, uint32_t mask);
/* fence of all kinds, membar */
void order_fence(Warp *warp, uint32_t mask, const Inst *inst);
void order_griddepcontrol_wait(Warp *warp, uint32_t mask);

/* ---- barriers -------------------------------------------------------------------------------- */

void order_barrier_init(Warp *warp, uint32_t lane, Barrier *barrier);
/* An arrival; before it is counted. `relaxed`: it carries only what a fence has released */
void order_barrier_arrive(Warp *warp, uint32_t lane, Barrier *barrier, bool relaxed);
void order_barrier_complete(Barrier *barrier); /* its phase is complete */
/* These lanes have seen the last phase complete. `relaxed`: they learn it at their next fence */
void order_barrier_wait(Warp *warp, uint32_t mask, const Barrier *barrier, bool relaxed);

/* the named barriers of a block */
void order_named_arrive(Warp *warp, uint32_t mask, uint32_t id);
void order_named_wait(Warp *warp, uint32_t mask, uint32_t id); /* it is complete */
void order_named_reset(Block *block, uint32_t id); /* all of its lanes have been released */

/* the barrier of the cluster */
void order_cluster_arrive(Warp *warp, uint32_t mask, bool relaxed);
void order_cluster_complete(Cluster *cluster);
void order_cluster_wait(Warp *warp, uint32_t mask, bool relaxed);

/* ---- asynchronous operations ----------------------------------------------------------------- */

/* true if these lanes can issue one cp.async together */
bool order_shares_view(const Warp *warp, uint32_t mask);
/* The operation sees what its lanes know now. */
void order_issue(Async *op);
void order_over(Async *op); /* it has completed, and its Async will be reused */
/* cp.async.mbarrier.arrive arrives, for one lane */
void order_copies_arrive(const Async *op, uint32_t lane, Barrier *barrier);
/* before a group of cp.async is committed */
void order_copies_commit(Warp *warp, uint32_t mask);
/* The groups below `limit` of this lane are complete: all, or of bulk stores their reads. */
void order_groups_wait(Warp *warp, uint32_t lane, bool bulk, uint32_t limit, bool reads_only);
void order_copies_wait_all(Warp *warp, uint32_t mask);

/* This warp issues the wgmma; `first`: it is the first warp to do so. */
void order_matrix_issue(Warp *warp, Matrix *matrix, bool first);
/* It commits the group of this number. */
void order_matrix_commit(Warp *warp, uint32_t number);
/* The operation runs this wgmma of its group next. */
void order_matrix_run(Async *op, const Matrix *matrix);
void order_matrix_over(Cluster *cluster, Matrix *matrix); /* it will be reused */
/* groups of the warpgroup below `limit` are complete */
void order_matrix_wait(Warp *warp, uint32_t limit);

/* ---- memory locations ------------------------------------------------------------------------ */

/* A strong load, store or atomic operation of one lane at `at` in the emulator's memory, after it
 * has been performed. Weak accesses make no edges. */
void order_load(Warp *warp, uint32_t lane, const unsigned char *at, Order order, Scope scope);
void order_store(Warp *warp, uint32_t lane, const unsigned char *at, Order order, Scope scope);
/* The read of `red` is in no acquire pattern, and a compare-and-swap that fails does not write (PTX
 * ISA 8.4, 8.8). */
typedef enum AtomicPart { ATOMIC_BOTH, ATOMIC_READS, ATOMIC_WRITES } AtomicPart;
void order_atomic(Warp *warp, uint32_t lane, const unsigned char *at, Order order, Scope scope,
                  AtomicPart part);
/* A weak store to these bytes: what was released there cannot be acquired any more. */
void order_overwrite(Block *block, const unsigned char *at, uint64_t bytes);

#endif
