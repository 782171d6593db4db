/* The order of asynchronous operations: what they know from their issue, and who learns of their
 * completion. */
#include "emulator/order/order_state.h"

#include <assert.h>

/* ---- snapshots ------------------------------------------------------------------------------- */

static Snapshot *new_snapshot(struct ClusterOrder *order) {
    struct OrderMachine *all = order->machine->order;
    Snapshot *snapshot = all->spare;
    if (snapshot)
        all->spare = snapshot->next;
    else
        snapshot = NEW(order->machine->arena, Snapshot);
    *snapshot = (Snapshot){.self = UINT32_MAX, .copies = UINT32_MAX};
    return snapshot;
}

Snapshot *order_snapshot(Warp *warp, uint32_t lane) {
    struct ClusterOrder *order = warp->block->cluster->order;
    struct WarpOrder *own = warp->order;
    Snapshot *snapshot = new_snapshot(order);
    view_share(&snapshot->view, order_view(warp, lane));
    snapshot->self = ROW * own->row + lane;
    snapshot->times[VIEW_GENERIC] = own->time++;
    for (uint32_t clock = 1; clock < VIEW_CLOCKS; clock++)
        snapshot->times[clock] = own->fenced[clock][lane];
    if (own->copies_row) snapshot->copies = ROW * own->copies_row + lane;
    snapshot->copied = own->copied[lane];
    return snapshot;
}

void order_forget(struct ClusterOrder *order, Snapshot **snapshot) {
    if (!*snapshot) return;
    view_clear(order->clocks, &(*snapshot)->view);
    (*snapshot)->next = order->machine->order->spare;
    order->machine->order->spare = *snapshot;
    *snapshot = NULL;
}

void order_add_snapshot(struct ClusterOrder *order, const Snapshot *snapshot, View *into) {
    view_join(order->clocks, into, &snapshot->view);
    for (uint32_t clock = 0; clock < VIEW_CLOCKS; clock++)
        if (snapshot->times[clock])
            view_set(order->clocks, into, 1u << clock, snapshot->self / ROW,
                     1u << snapshot->self % ROW, snapshot->times[clock]);
    if (snapshot->copied)
        view_set(order->clocks, into, 1u << VIEW_GENERIC, snapshot->copies / ROW,
                 1u << snapshot->copies % ROW, snapshot->copied);
}

/* ---- issue ----------------------------------------------------------------------------------- */

/* The time of the next cp.async of a lane; operations with a lower time are in an earlier group,
 * or before an earlier cp.async.mbarrier.arrive */
static uint32_t copies_time(const Warp *warp, uint32_t lane) {
    return warp->copies.committed[lane] + warp->order->arrives[lane] + 1;
}

static void take_rows(struct ClusterOrder *order, const Async *op) {
    struct WarpOrder *own = op->agent.warp->order;
    if (op->kind == ASYNC_LANES && !own->copies_row) own->copies_row = order_take_row(order);
    if ((op->kind == ASYNC_BULK_STORE || op->kind == ASYNC_TENSOR_STORE) && !own->reads_row) {
        own->reads_row = order_take_row(order);
        own->writes_row = order_take_row(order);
    }
}

static void note_issue(const Async *op) {
    Moment moment = {.kind = MOMENT_ISSUE,
                     .object = OBJECT_OPERATION,
                     .lanes = op->lanes,
                     .pc = op->agent.pc,
                     .value = op->agent.async};
    if (op->kind == ASYNC_TENSOR_LOAD || op->kind == ASYNC_TENSOR_STORE) {
        moment.map = op->map;
        moment.shared = op->shared;
        memcpy(moment.coordinates, op->coordinates, sizeof moment.coordinates);
    }
    order_note(op->agent.warp, moment);
}

void order_issue(Async *op) {
    Warp *warp = op->agent.warp;
    struct ClusterOrder *order = warp->block->cluster->order;
    if (!order || op->kind == ASYNC_MATRIX) return;
    take_rows(order, op);
    if (op->kind != ASYNC_LANES_ARRIVE) note_issue(op);
    if (op->kind == ASYNC_LANES || op->kind == ASYNC_LANES_ARRIVE)
        for (uint32_t left = op->lanes; left; left &= left - 1) {
            uint32_t lane = first_lane(left);
            op->per_lane->times[lane] = copies_time(warp, lane);
            op->per_lane->copied[lane] = warp->order->copied[lane];
            if (op->kind == ASYNC_LANES_ARRIVE) warp->order->arrives[lane]++;
        }
    if (op->kind != ASYNC_LANES_ARRIVE) op->order = order_snapshot(warp, op->agent.lane);
}

void order_over(Async *op) {
    struct ClusterOrder *order = op->agent.warp->block->cluster->order;
    /* that of wgmma belongs to its group */
    if (order && op->kind != ASYNC_MATRIX) order_forget(order, &op->order);
}

/* ---- questions ------------------------------------------------------------------------------- */

static Epoch epoch_at_barrier(const Async *op) {
    const Barrier *barrier = op->target->barriers[(op->barrier - SHARED_BASE) / 8];
    return (Epoch){barrier->order->component, barrier->order->phase + 1};
}

const Barrier *order_barrier_of(const Cluster *cluster, Epoch epoch, uint64_t *phase) {
    for (uint32_t rank = 0; rank < cluster->size; rank++)
        for (uint32_t i = 0; i < cluster->blocks[rank]->barrier_slots; i++) {
            const Barrier *barrier = cluster->blocks[rank]->barriers[i];
            const struct BarrierOrder *own = barrier ? barrier->order : NULL;
            if (!own || own->cluster != cluster->order->number + 1) continue;
            if (own->component != epoch.component) continue;
            *phase = barrier->generation + epoch.time - own->phase - 1;
            return barrier;
        }
    return NULL;
}

Epoch order_epoch_of(const Async *op, uint32_t lane, bool reads) {
    const Warp *warp = op->agent.warp;
    const struct WarpOrder *own = warp->order;
    switch (op->kind) {
    case ASYNC_BULK_LOAD:
    case ASYNC_TENSOR_LOAD:
    case ASYNC_REMOTE: return epoch_at_barrier(op);
    case ASYNC_BULK_STORE:
    case ASYNC_TENSOR_STORE:
        return (Epoch){ROW * (reads ? own->reads_row : own->writes_row) + op->agent.lane,
                       op->group + 1};
    case ASYNC_LANES: return (Epoch){ROW * own->copies_row + lane, op->per_lane->times[lane]};
    case ASYNC_MATRIX: {
        const struct ClusterOrder *order = warp->block->cluster->order;
        return (Epoch){ROW * order->matrix_rows[warp->block->rank] + warp->index / 4,
                       op->matrices->number + 1};
    }
    case ASYNC_LANES_ARRIVE: break;
    }
    assert(false);
    return (Epoch){0, 0};
}

Seen order_seen_by(const Async *op, uint32_t lane) {
    const Warp *warp = op->agent.warp;
    Seen seen = {.view = &op->order->view,
                 .cluster = warp->block->cluster->order->number,
                 .self = op->order->self,
                 .copies = op->order->copies,
                 .copied = op->order->copied};
    memcpy(seen.times, op->order->times, sizeof seen.times);
    if (op->kind != ASYNC_LANES) return seen;
    /* lanes of equal view have issued it together */
    seen.self = ROW * warp->order->row + lane;
    seen.copies = ROW * warp->order->copies_row + lane;
    seen.copied = op->per_lane->copied[lane];
    return seen;
}

/* ---- completion ------------------------------------------------------------------------------ */

void order_copies_arrive(const Async *op, uint32_t lane, Barrier *barrier) {
    struct ClusterOrder *order = barrier->home->cluster->order;
    const struct WarpOrder *own = op->agent.warp->order;
    if (!order || !own->copies_row) return;
    view_set(order->clocks, &barrier->order->gather, 1u << VIEW_GENERIC, own->copies_row,
             1u << lane, op->per_lane->times[lane]);
}

void order_copies_commit(Warp *warp, uint32_t mask) {
    struct WarpOrder *own = warp->order;
    if (!own) return;
    for (; mask; mask &= mask - 1) {
        uint32_t lane = first_lane(mask), group = warp->copies.committed[lane];
        own->arrives_at[group % COUNT_OF(own->arrives_at)][lane] = own->arrives[lane];
    }
}

/* The greatest time such that all cp.async of the lane until then are in groups below `limit` */
static uint32_t time_of_groups(const Warp *warp, uint32_t lane, uint32_t limit) {
    const struct WarpOrder *own = warp->order;
    uint32_t committed = warp->copies.committed[lane], kept = COUNT_OF(own->arrives_at);
    if (limit == 0) return 0;
    if (committed - limit >= kept) return limit; /* arrivals long ago are not counted */
    return limit + own->arrives_at[(limit - 1) % kept][lane];
}

static void copies_known(struct WarpOrder *own, uint32_t lane, uint32_t time) {
    if (!own->copies_row || own->copied[lane] >= time) return;
    own->copied[lane] = time;
    own->waited |= 1u << lane;
}

void order_groups_wait(Warp *warp, uint32_t lane, bool bulk, uint32_t limit, bool reads_only) {
    struct WarpOrder *own = warp->order;
    if (!own) return;
    uint32_t mask = 1u << lane;
    order_note(
        warp,
        (Moment){.kind = MOMENT_ACQUIRE, .object = OBJECT_GROUPS, .lanes = mask, .value = limit});
    if (!bulk) {
        uint32_t time = time_of_groups(warp, lane, limit);
        copies_known(own, lane, time);
        return;
    }
    if (!own->reads_row) return;
    order_learn(warp, mask, EVERY_CLOCK, own->reads_row, mask, limit);
    if (!reads_only) order_learn(warp, mask, EVERY_CLOCK, own->writes_row, mask, limit);
}

void order_copies_wait_all(Warp *warp, uint32_t mask) {
    struct WarpOrder *own = warp->order;
    if (!own) return;
    order_note(warp, (Moment){.kind = MOMENT_ACQUIRE,
                              .object = OBJECT_GROUPS,
                              .lanes = mask,
                              .value = UINT32_MAX});
    for (; mask; mask &= mask - 1)
        copies_known(own, first_lane(mask), copies_time(warp, first_lane(mask)));
}

/* ---- wgmma ----------------------------------------------------------------------------------- */

void order_matrix_issue(Warp *warp, Matrix *matrix, bool first) {
    struct ClusterOrder *order = warp->block->cluster->order;
    if (!order) return;
    uint32_t *row = &order->matrix_rows[warp->block->rank];
    if (!*row) *row = order_take_row(order);
    /* the lanes have met, and made no access since: the view has all that they know */
    View view = {0};
    view_share(&view, order_view(warp, first_lane(warp->live)));
    if (first) {
        matrix->order = new_snapshot(order);
        matrix->order->view = view;
        return;
    }
    view_intersect(order->clocks, &matrix->order->view, &view);
    view_clear(order->clocks, &view);
}

void order_matrix_commit(Warp *warp, uint32_t number) {
    order_note(warp, (Moment){.kind = MOMENT_ISSUE,
                              .object = OBJECT_MATRICES,
                              .lanes = warp->live,
                              .value = number});
}

void order_matrix_run(Async *op, const Matrix *matrix) { op->order = matrix->order; }

void order_matrix_over(Cluster *cluster, Matrix *matrix) {
    if (cluster->order) order_forget(cluster->order, &matrix->order);
}

void order_matrix_wait(Warp *warp, uint32_t limit) {
    struct ClusterOrder *order = warp->block->cluster->order;
    if (!order || !order->matrix_rows[warp->block->rank]) return;
    order_note(warp, (Moment){.kind = MOMENT_ACQUIRE,
                              .object = OBJECT_MATRICES,
                              .lanes = warp->live,
                              .value = limit});
    order_learn(warp, warp->live, EVERY_CLOCK, order->matrix_rows[warp->block->rank],
                1u << warp->index / 4, limit);
}
