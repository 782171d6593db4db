/* The order of execution, by a vector of steps for each warp, barrier and copy. */
#include "emulator/order/steps.h"

static uint32_t size_of(const Cluster *cluster) {
    return cluster->size * cluster->blocks[0]->warp_count;
}

static uint32_t *room(const Cluster *cluster, uint32_t **steps) {
    if (!*steps) *steps = NEW_ARRAY(cluster->blocks[0]->machine->arena, uint32_t, size_of(cluster));
    return *steps;
}

void steps_clear(const Cluster *cluster, uint32_t *steps) {
    if (steps) memset(steps, 0, size_of(cluster) * sizeof *steps);
}

uint32_t steps_index(const Warp *warp) {
    return warp->block->rank * warp->block->warp_count + warp->index;
}

uint32_t steps_now(const Warp *warp) { return warp->steps ? warp->steps[steps_index(warp)] : 0; }

void steps_start(Cluster *cluster) {
    if (!cluster->order) return;
    steps_clear(cluster, cluster->steps_now);
    steps_clear(cluster, cluster->steps_done);
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        Block *block = cluster->blocks[rank];
        steps_clear(cluster, block->exit_steps);
        for (uint32_t i = 0; i < NAMED_BARRIERS; i++) steps_clear(cluster, block->named_steps[i]);
        for (uint32_t i = 0; i < MAX_WARPGROUPS; i++) steps_clear(cluster, block->group_steps[i]);
        for (uint32_t w = 0; w < block->warp_count; w++) {
            Warp *warp = &block->warps[w];
            steps_clear(cluster, room(cluster, &warp->steps));
            warp->steps[steps_index(warp)] = 1;
        }
    }
}

void steps_add(const Cluster *cluster, uint32_t **into, const uint32_t *from) {
    uint32_t *to = from ? room(cluster, into) : NULL;
    for (uint32_t i = 0; to && i < size_of(cluster); i++)
        if (to[i] < from[i]) to[i] = from[i];
}

void steps_add_own(const Warp *warp, uint32_t **into) {
    steps_add(warp->block->cluster, into, warp->steps);
}

void steps_next(Warp *warp) {
    if (warp->steps) warp->steps[steps_index(warp)]++;
}

void steps_give(Warp *warp, uint32_t **into) {
    steps_add_own(warp, into);
    steps_next(warp);
}

void steps_take(Warp *warp, const uint32_t *from) {
    uint32_t own = steps_now(warp);
    if (!warp->steps) return;
    steps_add(warp->block->cluster, &warp->steps, from);
    warp->steps[steps_index(warp)] = own;
}

void steps_turn(const Cluster *cluster, uint32_t **now, uint32_t **done) {
    uint32_t *old = *done;
    *done = *now;
    *now = old;
    steps_clear(cluster, old);
}
