/* The last moments of a warp, in a ring. */
#include "emulator/order/timeline.h"

#include "emulator/order/order.h"

static bool same_step(const Moment *a, const Moment *b) {
    return a->cluster == b->cluster && a->pc == b->pc && a->kind == b->kind &&
           a->object == b->object && a->rank == b->rank && a->address == b->address &&
           a->value == b->value;
}

void timeline_add(Warp *warp, uint32_t time, Moment moment) {
    Timeline *timeline = warp->timeline;
    if (!timeline) timeline = warp->timeline = NEW(warp->block->machine->arena, Timeline);
    moment.cluster = order_cluster(warp->block->cluster);
    moment.time = time;
    if (timeline->count) {
        Moment *last = &timeline->moments[(timeline->count - 1) % TIMELINE];
        if (same_step(last, &moment)) {
            last->lanes |= moment.lanes;
            last->time = time;
            return;
        }
    }
    timeline->moments[timeline->count++ % TIMELINE] = moment;
}
