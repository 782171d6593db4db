/* The order that strong accesses to memory make: fences, and loads, stores and atomic operations
 * with .acquire and .release (PTX ISA 8.7, 8.8).
 *
 * A location has what was released there by the store that it holds and by the atomic operations
 * since (which continue its release sequence), by the scope of the release. A load or atomic
 * operation learns this at once, or when relaxed at the next fence of its lane.
 *
 * A fence.sc need not be in the thread that stores or loads: threads write, fence, and meet at a
 * barrier, after which one of them counts the block. Let F1 be before a write W (causality order),
 * and F2 after a read R of it. Fence-SC order has F1 and F2. Were F2 before F1, they would
 * synchronise, and R would be before W, which it reads (PTX ISA 8.9.4, 8.10.6). So F1 is before
 * F2. */
#include "emulator/order/order_state.h"

/* What was released at a location, for one reach. Lanes of one block or cluster have done it, or
 * of several. */
typedef struct Released {
    View view;
    uint64_t block, cluster; /* SEVERAL: more than one */
} Released;
#define SEVERAL UINT64_MAX

static bool is_empty(const Released *released) {
    const Clock *clock = &released->view.clocks[VIEW_GENERIC];
    return !clock->rows && !clock->others;
}

struct Location {
    const unsigned char *at;
    Released released[REACHES];
    View fenced; /* VIEW_OBSERVED: what fence.sc before its writes knew; of global memory */
    uint64_t writer_cluster; /* the lane that stored it */
    uint32_t writer;
};

uint32_t order_reach(Scope scope) {
    switch (scope) {
    case SCOPE_CTA: return REACH_BLOCK;
    case SCOPE_CLUSTER: return REACH_CLUSTER;
    case SCOPE_NONE:
    case SCOPE_GPU:
    case SCOPE_SYS: break;
    }
    return REACH_DEVICE;
}

/* ---- the table of locations ------------------------------------------------------------------ */

static size_t slot_of(const Locations *locations, const unsigned char *at) {
    uint64_t hash = (uint64_t)(uintptr_t)at * UINT64_C(0x9e3779b97f4a7c15);
    size_t mask = locations->capacity - 1, slot = (size_t)(hash >> 20) & mask;
    while (locations->slots[slot] && locations->slots[slot]->at != at) slot = (slot + 1) & mask;
    return slot;
}

static Location *find_location(const Locations *locations, const unsigned char *at) {
    if (at < locations->low || at >= locations->high || !locations->count) return NULL;
    return locations->slots[slot_of(locations, at)];
}

static void grow_locations(Arena *arena, Locations *locations) {
    Locations old = *locations;
    locations->capacity = old.capacity ? 2 * old.capacity : 64;
    locations->slots = NEW_ARRAY(arena, Location *, locations->capacity);
    for (uint32_t i = 0; i < old.capacity; i++)
        if (old.slots[i]) locations->slots[slot_of(locations, old.slots[i]->at)] = old.slots[i];
}

static Location *get_location(Arena *arena, Locations *locations, const unsigned char *at) {
    Location *location = find_location(locations, at);
    if (location) return location;
    if (2 * (locations->count + 1) > locations->capacity) grow_locations(arena, locations);
    location = NEW(arena, Location);
    *location = (Location){.at = at, .writer = UINT32_MAX};
    locations->slots[slot_of(locations, at)] = location;
    if (!locations->count || at < locations->low) locations->low = at;
    if (!locations->count || at >= locations->high) locations->high = at + 1;
    locations->count++;
    return location;
}

static void clear_location(struct ClusterOrder *order, Location *location) {
    for (uint32_t reach = 0; reach < REACHES; reach++)
        view_clear(order->clocks, &location->released[reach].view);
    view_clear(order->clocks, &location->fenced);
    location->writer = UINT32_MAX;
}

void locations_clear(struct ClusterOrder *order, Locations *locations) {
    if (!locations->count) return;
    for (uint32_t i = 0; i < locations->capacity; i++)
        if (locations->slots[i]) clear_location(order, locations->slots[i]);
}

/* The table of a location; *shared: it is in shared memory of the cluster */
static Locations *table_of(const Block *block, const unsigned char *at, bool *shared) {
    struct ClusterOrder *order = block->cluster->order;
    for (uint32_t rank = 0; rank < block->cluster->size; rank++) {
        const Block *home = block->cluster->blocks[rank];
        *shared = at >= home->shared && at < home->shared + home->shared_bytes;
        if (*shared) return &order->shared;
    }
    return &order->machine->order->global;
}

/* ---- acquire --------------------------------------------------------------------------------- */

static uint64_t block_number(const Warp *warp) {
    return warp->block->cluster->order->number * MAX_CLUSTER + warp->block->rank;
}

/* The distance of those that released to the lane: REACH_BLOCK: of its own block */
static uint32_t distance_of(const Released *released, const Warp *warp) {
    if (released->block == block_number(warp)) return REACH_BLOCK;
    return released->cluster == warp->block->cluster->order->number ? REACH_CLUSTER : REACH_DEVICE;
}

static LaneFences *lane_fences(Warp *warp, uint32_t lane) {
    struct WarpOrder *own = warp->order;
    if (!own->lane_fences)
        own->lane_fences = NEW_ARRAY(warp->block->machine->arena, LaneFences, LANES);
    return &own->lane_fences[lane];
}

void order_acquire_later(Warp *warp, uint32_t lane, uint32_t reach, const View *from) {
    view_join(warp->block->cluster->order->clocks, &lane_fences(warp, lane)->pending[reach], from);
}

/* The next fence.sc after this read follows those before the writes of the location. */
static void observe(Warp *warp, uint32_t lane, const Location *location) {
    struct ClusterOrder *order = warp->block->cluster->order;
    const Clock *fenced = &location->fenced.clocks[VIEW_OBSERVED];
    if (!fenced->rows && !fenced->others) return;
    View learned = {0};
    view_adopt(order->clocks, &learned, &location->fenced, order->number);
    order_acquire(warp, 1u << lane, &learned);
    view_clear(order->clocks, &learned);
}

/* The lane has read the location: now, or at its next fence, it knows what was released there. */
static void acquire_from(Warp *warp, uint32_t lane, const Location *location, bool shared,
                         Order kind, Scope scope) {
    struct ClusterOrder *order = warp->block->cluster->order;
    bool now = kind == ORDER_ACQUIRE || kind == ORDER_ACQ_REL;
    observe(warp, lane, location);
    for (uint32_t reach = 0; reach < REACHES; reach++) {
        const Released *released = &location->released[reach];
        if (is_empty(released)) continue;
        uint32_t distance = distance_of(released, warp);
        /* each of both scopes must include the other thread */
        if (distance > reach || distance > order_reach(scope)) continue;
        View learned = {0};
        if (shared)
            view_share(&learned, &released->view);
        else
            view_adopt(order->clocks, &learned, &released->view, order->number);
        if (now)
            order_acquire(warp, 1u << lane, &learned);
        else
            order_acquire_later(warp, lane, distance, &learned);
        view_clear(order->clocks, &learned);
    }
}

/* ---- release --------------------------------------------------------------------------------- */

static void add_released(Warp *warp, Released *released, uint32_t reach, View *view, bool shared) {
    struct ClusterOrder *order = warp->block->cluster->order;
    uint64_t block = block_number(warp);
    bool empty = is_empty(released);
    /* what another block or cluster has released for itself alone is of no use to this one */
    if (!empty && ((reach == REACH_BLOCK && released->block != block) ||
                   (reach == REACH_CLUSTER && released->cluster != order->number))) {
        view_clear(order->clocks, &released->view);
        empty = true;
    }
    released->block = empty || released->block == block ? block : SEVERAL;
    released->cluster = empty || released->cluster == order->number ? order->number : SEVERAL;
    if (!shared) view_publish(order->clocks, view, order->number);
    view_join(order->clocks, &released->view, view);
}

void order_release_fenced(Warp *warp, uint32_t lane, uint32_t least, View *into) {
    struct ClusterOrder *order = warp->block->cluster->order;
    struct WarpOrder *own = warp->order;
    if (own->inits_fenced[lane])
        view_set(order->clocks, into, 1u << VIEW_GENERIC, own->inits_row, 1u << lane,
                 own->inits_fenced[lane]);
    for (uint32_t reach = least; own->lane_fences && reach < REACHES; reach++)
        if (own->lane_fences[lane].released[reach])
            order_add_snapshot(order, own->lane_fences[lane].released[reach], into);
}

static bool releases(Order kind) { return kind == ORDER_RELEASE || kind == ORDER_ACQ_REL; }

/* True if the lane knows of a fence.sc, its own or another one */
static bool knows_fence(const Warp *warp, uint32_t lane) {
    const Clock *fenced = &order_view(warp, lane)->clocks[VIEW_FENCED];
    return warp->order->fenced[VIEW_FENCED][lane] || fenced->rows || fenced->others;
}

/* True if a store of the lane releases something */
static bool has_released(const Warp *warp, uint32_t lane, Order kind, bool shared) {
    const LaneFences *fences = warp->order->lane_fences;
    bool fenced = !shared && knows_fence(warp, lane);
    for (uint32_t reach = 0; fences && reach < REACHES; reach++)
        fenced |= fences[lane].released[reach] != NULL;
    return fenced || releases(kind);
}

/* What was before a fence.sc that is before this write */
static void release_fences(Warp *warp, uint32_t lane, Location *location) {
    struct ClusterOrder *order = warp->block->cluster->order;
    const struct WarpOrder *own = warp->order;
    View view = {0};
    view_observe(order->clocks, &view, order_view(warp, lane));
    if (own->fenced[VIEW_FENCED][lane])
        view_set(order->clocks, &view, 1u << VIEW_OBSERVED, own->row, 1u << lane,
                 own->fenced[VIEW_FENCED][lane]);
    view_publish(order->clocks, &view, order->number);
    view_join(order->clocks, &location->fenced, &view);
    view_clear(order->clocks, &view);
}

/* A release fence before a store releases what was known at the fence, within both scopes. */
static void release_to(Warp *warp, uint32_t lane, Location *location, bool shared, Order kind,
                       Scope scope) {
    struct ClusterOrder *order = warp->block->cluster->order;
    uint32_t most = order_reach(scope);
    if (!shared && knows_fence(warp, lane)) release_fences(warp, lane, location);
    for (uint32_t reach = 0; warp->order->lane_fences && reach < REACHES; reach++) {
        const Snapshot *fenced = warp->order->lane_fences[lane].released[reach];
        uint32_t least = reach < most ? reach : most;
        if (!fenced) continue;
        View view = {0};
        order_add_snapshot(order, fenced, &view);
        add_released(warp, &location->released[least], least, &view, shared);
        view_clear(order->clocks, &view);
    }
    if (!releases(kind)) return;
    View view = {0};
    order_release(warp, 1u << lane, &view);
    add_released(warp, &location->released[most], most, &view, shared);
    view_clear(order->clocks, &view);
}

/* ---- accesses -------------------------------------------------------------------------------- */

static void note_flag(Warp *warp, MomentKind kind, uint32_t lane, bool relaxed) {
    order_note(
        warp,
        (Moment){.kind = kind, .object = OBJECT_MEMORY, .lanes = 1u << lane, .relaxed = relaxed});
}

void order_load(Warp *warp, uint32_t lane, const unsigned char *at, Order kind, Scope scope) {
    if (!warp->order) return;
    bool shared;
    const Location *location = find_location(table_of(warp->block, at, &shared), at);
    if (!location) return;
    note_flag(warp, MOMENT_ACQUIRE, lane, kind == ORDER_RELAXED || kind == ORDER_NONE);
    acquire_from(warp, lane, location, shared, kind, scope);
}

void order_store(Warp *warp, uint32_t lane, const unsigned char *at, Order kind, Scope scope) {
    if (!warp->order) return;
    struct ClusterOrder *order = warp->block->cluster->order;
    bool shared;
    Locations *table = table_of(warp->block, at, &shared);
    bool has = has_released(warp, lane, kind, shared);
    Location *location =
        has ? get_location(order->machine->arena, table, at) : find_location(table, at);
    if (!location) return;
    /* a release and later stores of the same lane are one release pattern */
    uint32_t writer = order_epoch(warp, lane).component;
    if (location->writer != writer || location->writer_cluster != order->number)
        clear_location(order, location);
    location->writer = writer;
    location->writer_cluster = order->number;
    if (!has) return;
    note_flag(warp, MOMENT_RELEASE, lane, false);
    release_to(warp, lane, location, shared, kind, scope);
}

void order_atomic(Warp *warp, uint32_t lane, const unsigned char *at, Order kind, Scope scope,
                  AtomicPart part) {
    if (!warp->order) return;
    struct ClusterOrder *order = warp->block->cluster->order;
    bool shared;
    Locations *table = table_of(warp->block, at, &shared);
    bool has = part != ATOMIC_READS && has_released(warp, lane, kind, shared);
    Location *location =
        has ? get_location(order->machine->arena, table, at) : find_location(table, at);
    if (!location) return;
    note_flag(warp, has ? MOMENT_RELEASE : MOMENT_ACQUIRE, lane, false);
    if (part != ATOMIC_WRITES) acquire_from(warp, lane, location, shared, kind, scope);
    if (has) release_to(warp, lane, location, shared, kind, scope);
    if (part != ATOMIC_READS) location->writer = UINT32_MAX;
}

void order_overwrite(Block *block, const unsigned char *at, uint64_t bytes) {
    struct ClusterOrder *order = block->cluster->order;
    if (!order) return;
    bool shared;
    Locations *table = table_of(block, at, &shared);
    if (!table->count || at + bytes <= table->low || at >= table->high) return;
    for (uint64_t i = 0; i < bytes; i++) {
        Location *location = find_location(table, at + i);
        if (location) clear_location(order, location);
    }
}

/* ---- fences ---------------------------------------------------------------------------------- */

/* The clocks that a proxy fence raises */
static uint32_t clocks_of(const Inst *inst) {
    uint32_t flags = inst->mods.flags;
    if (flags & FLAG_TENSORMAP) return inst->mods.order == ORDER_RELEASE ? 0 : 1u << VIEW_MAPS;
    if (!(flags & FLAG_ASYNC)) return 0;
    if (inst->mods.space_count)
        return inst->mods.spaces[0] == SPACE_SHARED ? 1u << VIEW_ASYNC_SHARED
                                                    : 1u << VIEW_ASYNC_GLOBAL;
    return 1u << VIEW_ASYNC_SHARED | 1u << VIEW_ASYNC_GLOBAL;
}

/* Each lane's own cp.async become part of its view. */
static void learn_copies(Warp *warp, uint32_t mask) {
    struct WarpOrder *own = warp->order;
    for (; own->copies_row && mask; mask &= mask - 1) {
        uint32_t lane = first_lane(mask);
        if (own->copied[lane])
            order_learn(warp, 1u << lane, 1u << VIEW_GENERIC, own->copies_row, 1u << lane,
                        own->copied[lane]);
    }
}

static void fence_proxy(Warp *warp, uint32_t mask, uint32_t clocks) {
    struct WarpOrder *own = warp->order;
    learn_copies(warp, mask);
    order_fence_views(warp, mask, clocks);
    for (uint32_t clock = 1; clock < VIEW_CLOCKS; clock++)
        for (uint32_t left = clocks >> clock & 1 ? mask : 0; left; left &= left - 1)
            own->fenced[clock][first_lane(left)] = own->time;
    own->fences |= mask;
    own->time++;
}

/* fence.sc of the device: it learns what was observed; its own knowledge travels on */
static void fence_sc(Warp *warp, uint32_t mask) {
    order_take_observed(warp, mask);
    fence_proxy(warp, mask, 1u << VIEW_FENCED);
}

static void fence_memory(Warp *warp, uint32_t mask, Order kind, uint32_t reach) {
    struct ClusterOrder *order = warp->block->cluster->order;
    for (uint32_t left = mask; left && kind != ORDER_RELEASE; left &= left - 1) {
        LaneFences *fences = lane_fences(warp, first_lane(left));
        for (uint32_t i = 0; i <= reach; i++) {
            order_acquire(warp, 1u << first_lane(left), &fences->pending[i]);
            view_clear(order->clocks, &fences->pending[i]);
        }
    }
    for (uint32_t left = mask; left && kind != ORDER_ACQUIRE; left &= left - 1) {
        LaneFences *fences = lane_fences(warp, first_lane(left));
        for (uint32_t i = 0; i <= reach; i++) order_forget(order, &fences->released[i]);
        fences->released[reach] = order_snapshot(warp, first_lane(left));
    }
}

void order_fence(Warp *warp, uint32_t mask, const Inst *inst) {
    struct WarpOrder *own = warp->order;
    if (!own) return;
    order_note(warp, (Moment){.kind = MOMENT_FENCE, .object = OBJECT_MEMORY, .lanes = mask});
    Order kind = (Order)inst->mods.order;
    bool inits = inst->mods.choice == FENCE_MBARRIER_INIT;
    for (uint32_t left = mask; left && (inits || clocks_of(inst) >> VIEW_ASYNC_SHARED & 1);
         left &= left - 1)
        own->inits_visible[first_lane(left)] = own->inits[first_lane(left)];
    if (inits) {
        for (; mask; mask &= mask - 1)
            own->inits_fenced[first_lane(mask)] = own->inits[first_lane(mask)];
        return;
    }
    bool proxy = inst->mods.flags & FLAG_PROXY;
    bool memory = !proxy || kind != ORDER_NONE;
    if (memory && kind != ORDER_RELEASE)
        fence_memory(warp, mask, ORDER_ACQUIRE, order_reach((Scope)inst->mods.scope));
    if (clocks_of(inst)) fence_proxy(warp, mask, clocks_of(inst));
    if ((inst->opcode == OP_MEMBAR || kind == ORDER_SC) &&
        order_reach((Scope)inst->mods.scope) == REACH_DEVICE)
        fence_sc(warp, mask);
    if (memory && kind != ORDER_ACQUIRE)
        fence_memory(warp, mask, ORDER_RELEASE, order_reach((Scope)inst->mods.scope));
}
