/* The order of accesses: what lanes know, and the edges between lanes and barriers.
 *
 * Lanes of a warp share a view until one of them learns something alone; when they meet, they
 * share one again. What a lane knows of itself is not in its view: it is added when it releases,
 * after which the warp's time advances, so that later accesses are not covered. */
#include "emulator/order/order_state.h"

#include <assert.h>

/* ---- the timeline ---------------------------------------------------------------------------- */

void order_note(Warp *warp, Moment moment) {
    if (!warp->order || !warp->split) return;
    if (!moment.pc) moment.pc = warp->split->pc;
    timeline_add(warp, warp->order->time, moment);
    /* Later accesses have another time. */
    if (moment.kind == MOMENT_ACQUIRE) warp->order->time++;
}

static void note_barrier(Warp *warp, MomentKind kind, uint32_t lanes, const Barrier *barrier,
                         uint64_t phase, bool relaxed) {
    order_note(warp, (Moment){.kind = kind,
                              .object = OBJECT_MBARRIER,
                              .lanes = lanes,
                              .rank = barrier->home->rank,
                              .address = barrier->address,
                              .value = phase,
                              .relaxed = relaxed});
}

/* ---- set-up ---------------------------------------------------------------------------------- */

void order_begin(Machine *machine) {
    if (!machine->races) return;
    machine->order = NEW(machine->arena, struct OrderMachine);
    machine->order->clocks = clocks_new(machine->arena);
}

void order_launch(Machine *machine, uint64_t clusters, bool programmatic) {
    struct OrderMachine *all = machine->order;
    if (!all) return;
    /* a programmatic launch may begin as early as the one before it */
    if (!programmatic) all->below = all->next;
    all->first = all->next;
    all->next += clusters;
    OrderLaunch launch = {.first = all->first,
                          .index = machine->launch_index,
                          .program = machine->program,
                          .cluster_size = machine->cluster_size,
                          .warp_count = (machine->threads + LANES - 1) / LANES};
    vec_push(machine->arena, &all->launches, launch);
}

const OrderLaunch *order_launch_of(const Machine *machine, uint64_t cluster) {
    const struct OrderMachine *all = machine->order;
    size_t i = all->launches.count - 1;
    while (i > 0 && all->launches.items[i].first > cluster) i--;
    return &all->launches.items[i];
}

uint32_t order_take_row(struct ClusterOrder *order) { return order->rows++; }

static void start_warp(struct ClusterOrder *order, Warp *warp) {
    struct WarpOrder *own = warp->order;
    if (!own) own = warp->order = NEW(order->machine->arena, struct WarpOrder);
    for (uint32_t left = own->in_use; left; left &= left - 1)
        view_clear(order->clocks, &own->views[first_lane(left)]);
    for (uint32_t lane = 0; own->lane_fences && lane < LANES; lane++)
        for (uint32_t reach = 0; reach < REACHES; reach++) {
            order_forget(order, &own->lane_fences[lane].released[reach]);
            view_clear(order->clocks, &own->lane_fences[lane].pending[reach]);
        }
    *own = (struct WarpOrder){.row = order_take_row(order),
                              .absent = ~warp->live,
                              .time = 1,
                              .in_use = 1,
                              .lanes = {ALL_LANES},
                              .lane_fences = own->lane_fences};
    own->views[0].below = order->machine->order->below;
}

void order_start(Cluster *cluster, uint64_t first_block) {
    Machine *machine = cluster->blocks[0]->machine;
    if (!machine->order) return;
    struct ClusterOrder *order = cluster->order;
    if (!order) order = cluster->order = NEW(machine->arena, struct ClusterOrder);
    order->machine = machine;
    order->clocks = machine->order->clocks;
    order->number = machine->order->first + first_block / cluster->size;
    order->first_block = first_block;
    order->rows = 0;
    order->barriers = ROW;
    view_clear(order->clocks, &order->gather);
    view_clear(order->clocks, &order->done);
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        view_clear(order->clocks, &order->exits[rank]);
        view_clear(order->clocks, &order->gather_near[rank]);
        view_clear(order->clocks, &order->done_near[rank]);
    }
    locations_clear(order, &order->shared);
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        Block *block = cluster->blocks[rank];
        order->matrix_rows[rank] = 0;
        for (uint32_t id = 0; id < NAMED_BARRIERS; id++)
            view_clear(order->clocks, &order->named[rank][id]);
        for (uint32_t w = 0; w < block->warp_count; w++) start_warp(order, &block->warps[w]);
    }
}

/* ---- questions ------------------------------------------------------------------------------- */

uint64_t order_cluster(const Cluster *cluster) { return cluster->order->number; }

Epoch order_epoch(const Warp *warp, uint32_t lane) {
    return (Epoch){ROW * warp->order->row + lane, warp->order->time};
}

void order_store_begins(Warp *warp) {
    struct WarpOrder *own = warp->order;
    if (own && !++own->stores) own->time++;
}

uint16_t order_store_number(const Warp *warp) { return warp->order->stores; }

Seen order_seen(const Warp *warp, uint32_t lane) {
    const struct WarpOrder *order = warp->order;
    Seen seen = {.view = &order->views[order->of[lane]],
                 .cluster = warp->block->cluster->order->number,
                 .self = ROW * order->row + lane,
                 .copies = order->copies_row ? ROW * order->copies_row + lane : UINT32_MAX,
                 .copied = order->copied[lane]};
    seen.times[VIEW_GENERIC] = UINT32_MAX;
    for (uint32_t clock = 1; clock < VIEW_CLOCKS; clock++)
        seen.times[clock] = order->fenced[clock][lane];
    return seen;
}

bool order_shares_view(const Warp *warp, uint32_t mask) {
    const struct WarpOrder *order = warp->order;
    return !order || !(mask & ~order->lanes[order->of[first_lane(mask)]]);
}

bool order_same_view(const Warp *warp, uint32_t mask) {
    struct WarpOrder *order = warp->order;
    if (!order_shares_view(warp, mask)) return false;
    const Rows *rows = order_view(warp, first_lane(mask))->clocks[VIEW_GENERIC].rows;
    for (uint32_t left = mask & order->waited; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        if (rows_unknown(rows, order->copies_row, 1u << lane, order->copied[lane])) return false;
        order->waited &= ~(1u << lane);
    }
    return true;
}

/* ---- views of lanes -------------------------------------------------------------------------- */

/* Gives these lanes of a view a view of their own, unless it is used by no others. */
static uint32_t part_view(Warp *warp, uint32_t index, uint32_t part) {
    struct WarpOrder *order = warp->order;
    if (!(order->lanes[index] & warp->live & ~part)) return index;
    uint32_t fresh = first_lane(~order->in_use);
    view_share(&order->views[fresh], &order->views[index]);
    order->in_use |= 1u << fresh;
    order->lanes[index] &= ~part;
    order->lanes[fresh] = part;
    for (; part; part &= part - 1) order->of[first_lane(part)] = (uint8_t)fresh;
    return fresh;
}

/* The lanes of view `from` get view `to`. */
static void move_lanes(Warp *warp, uint32_t from, uint32_t to) {
    struct WarpOrder *order = warp->order;
    for (uint32_t left = order->lanes[from]; left; left &= left - 1)
        order->of[first_lane(left)] = (uint8_t)to;
    order->lanes[to] |= order->lanes[from];
    order->lanes[from] = 0;
    order->in_use &= ~(1u << from);
    view_clear(warp->block->cluster->order->clocks, &order->views[from]);
}

/* The views of these lanes, one bit each */
static uint32_t views_of(const Warp *warp, uint32_t mask) {
    const struct WarpOrder *order = warp->order;
    uint32_t views = 0;
    while (mask) {
        uint32_t view = order->of[first_lane(mask)];
        views |= 1u << view;
        mask &= ~order->lanes[view];
    }
    return views;
}

/* Lanes that have learned the same share their view again. */
static void unite_views(Warp *warp, uint32_t views) {
    struct WarpOrder *order = warp->order;
    for (; views & (views - 1); views &= views - 1) {
        uint32_t first = first_lane(views);
        for (uint32_t left = views & (views - 1); left; left &= left - 1) {
            uint32_t other = first_lane(left);
            if (memcmp(&order->views[first], &order->views[other], sizeof(View)) != 0) continue;
            move_lanes(warp, other, first);
            views &= ~(1u << other);
        }
    }
}

/* Sets the components of lanes to a time of each. */
static void set_each(struct ClusterOrder *order, View *into, uint32_t which, uint32_t row,
                     uint32_t mask, const uint32_t *times) {
    while (mask) {
        uint32_t time = times[first_lane(mask)], same = 0;
        for (uint32_t left = mask; left; left &= left - 1)
            if (times[first_lane(left)] == time) same |= 1u << first_lane(left);
        mask &= ~same;
        if (time) view_set(order->clocks, into, which, row, same, time);
    }
}

void order_add_self(Warp *warp, uint32_t mask, View *into) {
    struct ClusterOrder *order = warp->block->cluster->order;
    struct WarpOrder *own = warp->order;
    view_set(order->clocks, into, 1u << VIEW_GENERIC, own->row, mask | own->absent, own->time);
    for (uint32_t clock = 1; clock < VIEW_CLOCKS && (mask & own->fences); clock++)
        set_each(order, into, 1u << clock, own->row, mask & own->fences, own->fenced[clock]);
    if (own->inits_row) set_each(order, into, 1u << VIEW_GENERIC, own->inits_row, mask, own->inits);
    if (own->copies_row)
        set_each(order, into, 1u << VIEW_GENERIC, own->copies_row, mask, own->copied);
    own->time++;
}

void order_release(Warp *warp, uint32_t mask, View *into) {
    struct ClusterOrder *order = warp->block->cluster->order;
    if (!order) return;
    for (uint32_t views = views_of(warp, mask); views; views &= views - 1)
        view_join(order->clocks, into, &warp->order->views[first_lane(views)]);
    order_add_self(warp, mask, into);
}

void order_acquire(Warp *warp, uint32_t mask, const View *from) {
    struct ClusterOrder *order = warp->block->cluster->order;
    if (!order) return;
    uint32_t views = views_of(warp, mask), after = 0;
    for (uint32_t left = views; left; left &= left - 1) {
        uint32_t index = first_lane(left);
        if (!view_covers(&warp->order->views[index], from)) {
            index = part_view(warp, index, warp->order->lanes[index] & mask);
            view_join(order->clocks, &warp->order->views[index], from);
        }
        after |= 1u << index;
    }
    unite_views(warp, after);
}

void order_learn(Warp *warp, uint32_t mask, uint32_t which, uint32_t row, uint32_t components,
                 uint32_t time) {
    struct ClusterOrder *order = warp->block->cluster->order;
    for (uint32_t left = views_of(warp, mask); left; left &= left - 1) {
        uint32_t index = first_lane(left);
        const View *view = &warp->order->views[index];
        uint32_t unknown = 0;
        for (uint32_t clock = 0; clock < VIEW_CLOCKS; clock++)
            if (which >> clock & 1)
                unknown |= rows_unknown(view->clocks[clock].rows, row, components, time);
        if (!unknown) continue;
        index = part_view(warp, index, warp->order->lanes[index] & mask);
        view_set(order->clocks, &warp->order->views[index], which, row, components, time);
    }
}

void order_fence_views(Warp *warp, uint32_t mask, uint32_t clocks) {
    for (uint32_t left = views_of(warp, mask); left; left &= left - 1) {
        uint32_t index = first_lane(left);
        index = part_view(warp, index, warp->order->lanes[index] & mask);
        view_fence(warp->block->cluster->order->clocks, &warp->order->views[index], clocks);
    }
}

void order_take_observed(Warp *warp, uint32_t mask) {
    for (uint32_t left = views_of(warp, mask); left; left &= left - 1) {
        uint32_t index = first_lane(left);
        const Clock *observed = &warp->order->views[index].clocks[VIEW_OBSERVED];
        if (!observed->rows && !observed->others) continue;
        index = part_view(warp, index, warp->order->lanes[index] & mask);
        view_take_observed(warp->block->cluster->order->clocks, &warp->order->views[index]);
    }
}

void order_meet(Warp *warp, uint32_t mask) {
    struct ClusterOrder *order = warp->block->cluster->order;
    if (!order || !(mask & (mask - 1))) return;
    uint32_t views = views_of(warp, mask), first = first_lane(views);
    uint32_t joined = part_view(warp, first, warp->order->lanes[first] & mask);
    for (views &= views - 1; views; views &= views - 1) {
        uint32_t index = first_lane(views),
                 part = part_view(warp, index, warp->order->lanes[index] & mask);
        view_join(order->clocks, &warp->order->views[joined], &warp->order->views[part]);
        move_lanes(warp, part, joined);
    }
    order_add_self(warp, mask, &warp->order->views[joined]);
}

void order_meet_barrier(Warp *warp, uint32_t mask) {
    order_note(warp, (Moment){.kind = MOMENT_RELEASE, .object = OBJECT_LANES, .lanes = mask});
    order_meet(warp, mask);
}

void order_griddepcontrol_wait(Warp *warp, uint32_t mask) {
    struct ClusterOrder *order = warp->block->cluster->order;
    if (!order) return;
    order_note(warp, (Moment){.kind = MOMENT_ACQUIRE, .object = OBJECT_LAUNCH, .lanes = mask});
    View earlier = {.below = order->machine->order->first};
    order_acquire(warp, mask, &earlier);
}

void order_exit(Warp *warp, uint32_t mask) {
    struct ClusterOrder *order = warp->block->cluster->order;
    if (order) order_release(warp, mask, &order->exits[warp->block->rank]);
}

uint32_t order_exit_unknown(const Block *block, uint32_t row, uint32_t mask, uint32_t time) {
    const struct ClusterOrder *order = block->cluster->order;
    return rows_unknown(order->exits[block->rank].clocks[VIEW_GENERIC].rows, row, mask, time);
}

/* ---- mbarriers ------------------------------------------------------------------------------- */

/* A phase is complete. */
static void turn(Clocks *clocks, View *gather, View *done) {
    view_clear(clocks, done);
    *done = *gather;
    *gather = (View){0};
}

void order_barrier_init(Warp *warp, uint32_t lane, Barrier *barrier) {
    struct ClusterOrder *order = warp->block->cluster->order;
    if (!order) return;
    struct BarrierOrder *own = barrier->order;
    if (!own) own = barrier->order = NEW(order->machine->arena, struct BarrierOrder);
    view_clear(order->clocks, &own->gather);
    view_clear(order->clocks, &own->done);
    view_clear(order->clocks, &own->before);
    if (own->cluster != order->number + 1) {
        if (order->barriers == ROW) {
            order->barrier_row = order_take_row(order);
            order->barriers = 0;
        }
        own->cluster = order->number + 1;
        own->component = ROW * order->barrier_row + order->barriers++;
        own->phase = 0;
    }
    own->phase++; /* a copy that lands late is not in a phase of the new barrier */
    if (!warp->order->inits_row) warp->order->inits_row = order_take_row(order);
    own->init = (Epoch){ROW * warp->order->inits_row + lane, ++warp->order->inits[lane]};
    own->initialiser = warp;
}

bool order_knows_init(const Warp *warp, uint32_t lane, const Barrier *barrier) {
    const struct ClusterOrder *order = warp->block->cluster->order;
    if (!order || !barrier->order) return true;
    Epoch init = barrier->order->init;
    if (warp->order->inits_row == init.component / ROW && lane == init.component % ROW) return true;
    return view_knows(order_view(warp, lane), VIEW_GENERIC, order->number, order->number,
                      init.component, init.time);
}

bool order_init_fenced(const Warp *warp, uint32_t lane, const Barrier *barrier) {
    const struct ClusterOrder *order = warp->block->cluster->order;
    if (!order || !barrier->order) return true;
    Epoch init = barrier->order->init;
    if (init.time <= barrier->order->initialiser->order->inits_visible[init.component % ROW])
        return true;
    return view_knows(order_view(warp, lane), VIEW_ASYNC_SHARED, order->number, order->number,
                      init.component, init.time);
}

bool order_knows_phase_before(const Warp *warp, uint32_t lane, const Barrier *barrier) {
    const struct ClusterOrder *order = warp->block->cluster->order;
    const struct BarrierOrder *own = barrier->order;
    if (!order || !own) return true;
    const View *view = order_view(warp, lane);
    if (view_knows(view, VIEW_GENERIC, order->number, order->number, own->component,
                   own->phase - 1))
        return true;
    /* or all arrivals in it */
    View arrivals = {0};
    view_share(&arrivals, view);
    view_set(order->clocks, &arrivals, EVERY_CLOCK, own->component / ROW,
             1u << own->component % ROW, own->phase - 1);
    bool all = view_covers(&arrivals, &own->before);
    view_clear(order->clocks, &arrivals);
    return all;
}

uint32_t order_phase_unknown(const Barrier *barrier, uint32_t row, uint32_t mask, uint32_t time) {
    return rows_unknown(barrier->order->done.clocks[VIEW_GENERIC].rows, row, mask, time);
}

void order_barrier_arrive(Warp *warp, uint32_t lane, Barrier *barrier, bool relaxed) {
    if (!warp->block->cluster->order) return;
    uint32_t reach = barrier->home == warp->block ? REACH_BLOCK : REACH_CLUSTER;
    note_barrier(warp, MOMENT_RELEASE, 1u << lane, barrier, barrier->generation, relaxed);
    if (relaxed)
        order_release_fenced(warp, lane, reach, &barrier->order->gather);
    else
        order_release(warp, 1u << lane, &barrier->order->gather);
}

void order_barrier_complete(Barrier *barrier) {
    struct ClusterOrder *order = barrier->home->cluster->order;
    if (!order) return;
    struct BarrierOrder *own = barrier->order;
    view_clear(order->clocks, &own->before);
    own->before = own->done;
    own->done = (View){0};
    turn(order->clocks, &own->gather, &own->done);
    view_set(order->clocks, &own->done, EVERY_CLOCK, own->component / ROW,
             1u << own->component % ROW, ++own->phase);
}

void order_barrier_wait(Warp *warp, uint32_t mask, const Barrier *barrier, bool relaxed) {
    if (!warp->block->cluster->order) return;
    const View *done = &barrier->order->done;
    note_barrier(warp, MOMENT_ACQUIRE, mask, barrier, barrier->generation - 1, relaxed);
    if (!relaxed) {
        order_acquire(warp, mask, done);
        return;
    }
    uint32_t reach = barrier->home == warp->block ? REACH_BLOCK : REACH_CLUSTER;
    for (; mask; mask &= mask - 1) order_acquire_later(warp, first_lane(mask), reach, done);
}

/* ---- barriers of the block and the cluster --------------------------------------------------- */

void order_named_arrive(Warp *warp, uint32_t mask, uint32_t id) {
    struct ClusterOrder *order = warp->block->cluster->order;
    if (!order) return;
    order_note(
        warp,
        (Moment){.kind = MOMENT_RELEASE, .object = OBJECT_NAMED, .lanes = mask, .address = id});
    order_release(warp, mask, &order->named[warp->block->rank][id]);
}

void order_named_wait(Warp *warp, uint32_t mask, uint32_t id) {
    struct ClusterOrder *order = warp->block->cluster->order;
    if (!order) return;
    Moment moment = {.kind = MOMENT_ACQUIRE, .object = OBJECT_NAMED, .lanes = mask, .address = id};
    /* the lanes may have slept, while others of their warp ran */
    for (uint32_t s = 0; s < warp->split_count; s++)
        if (warp->splits[s].mask == mask) moment.pc = warp->splits[s].pc;
    order_note(warp, moment);
    order_acquire(warp, mask, &order->named[warp->block->rank][id]);
}

void order_named_reset(Block *block, uint32_t id) {
    struct ClusterOrder *order = block->cluster->order;
    if (order) view_clear(order->clocks, &order->named[block->rank][id]);
}

void order_cluster_arrive(Warp *warp, uint32_t mask, bool relaxed) {
    struct ClusterOrder *order = warp->block->cluster->order;
    if (!order) return;
    order_note(warp, (Moment){.kind = MOMENT_RELEASE,
                              .object = OBJECT_CLUSTER,
                              .lanes = mask,
                              .value = warp->block->cluster->generation,
                              .relaxed = relaxed});
    if (!relaxed) {
        order_release(warp, mask, &order->gather);
        return;
    }
    View *near = &order->gather_near[warp->block->rank];
    for (; mask; mask &= mask - 1) {
        order_release_fenced(warp, first_lane(mask), REACH_CLUSTER, &order->gather);
        order_release_fenced(warp, first_lane(mask), REACH_BLOCK, near);
    }
}

void order_cluster_complete(Cluster *cluster) {
    struct ClusterOrder *order = cluster->order;
    if (!order) return;
    turn(order->clocks, &order->gather, &order->done);
    for (uint32_t rank = 0; rank < cluster->size; rank++)
        turn(order->clocks, &order->gather_near[rank], &order->done_near[rank]);
}

void order_cluster_wait(Warp *warp, uint32_t mask, bool relaxed) {
    struct ClusterOrder *order = warp->block->cluster->order;
    if (!order) return;
    const View *near = &order->done_near[warp->block->rank];
    order_note(warp, (Moment){.kind = MOMENT_ACQUIRE,
                              .object = OBJECT_CLUSTER,
                              .lanes = mask,
                              .value = warp->block->cluster->generation - 1,
                              .relaxed = relaxed});
    if (!relaxed) {
        order_acquire(warp, mask, &order->done);
        order_acquire(warp, mask, near);
        return;
    }
    for (; mask; mask &= mask - 1) {
        order_acquire_later(warp, first_lane(mask), REACH_CLUSTER, &order->done);
        order_acquire_later(warp, first_lane(mask), REACH_BLOCK, near);
    }
}
