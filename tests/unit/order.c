/* Edges of the order of accesses, step by step: after each one, who knows an access. */
#include "emulator/order/order.h"

#include "tests/unit/expect.h"

enum { WARPS = 4 };

/* Two clusters of two blocks of four warps */
typedef struct World {
    Scratch scratch;
    Machine machine;
    Cluster clusters[2];
    Block blocks[2][2];
    Warp warps[2][2][WARPS];
    Barrier barriers[2]; /* of the first block of the first cluster */
    Barrier *slots[2];
    unsigned char flag[8]; /* global memory */
} World;

static World *world_new(void) {
    Scratch scratch = scratch_new();
    World *world = NEW(scratch.arena, World);
    world->scratch = scratch;
    world->machine = (Machine){.arena = scratch.arena, .races = true};
    order_begin(&world->machine);
    order_launch(&world->machine, 2, false);
    for (uint32_t c = 0; c < 2; c++) {
        world->clusters[c].size = 2;
        for (uint32_t b = 0; b < 2; b++) {
            Block *block = world->clusters[c].blocks[b] = &world->blocks[c][b];
            *block = (Block){.machine = &world->machine,
                             .cluster = &world->clusters[c],
                             .rank = b,
                             .warps = world->warps[c][b],
                             .warp_count = WARPS,
                             .barriers = world->slots,
                             .shared = arena_alloc(scratch.arena, 64),
                             .shared_bytes = 64};
            for (uint32_t w = 0; w < WARPS; w++)
                world->warps[c][b][w] = (Warp){.block = block, .index = w, .live = ALL_LANES};
        }
        order_start(&world->clusters[c], 2 * c);
    }
    for (uint32_t i = 0; i < 2; i++) {
        world->slots[i] = &world->barriers[i];
        world->barriers[i].home = &world->blocks[0][0];
        order_barrier_init(&world->warps[0][0][0], 0, &world->barriers[i]);
    }
    return world;
}

static void world_free(World *world) {
    Scratch scratch = world->scratch;
    scratch_free(&scratch);
}

/* An access of a lane now, which its later releases cover */
typedef struct Past {
    uint64_t cluster;
    Epoch epoch;
} Past;

static Past access_by(const Warp *warp, uint32_t lane) {
    return (Past){order_cluster(warp->block->cluster), order_epoch(warp, lane)};
}
static bool knows_by(const Warp *warp, uint32_t lane, uint32_t clock, Past past) {
    Seen seen = order_seen(warp, lane);
    return order_knows(&seen, clock, past.cluster, past.epoch);
}
static bool knows(const Warp *warp, uint32_t lane, Past past) {
    return knows_by(warp, lane, VIEW_GENERIC, past);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static void lanes_meet(World *world) {
    Warp *warp = &world->warps[0][0][0];
    Past past = access_by(warp, 3);
    EXPECT(knows(warp, 3, past) && !knows(warp, 4, past));
    order_meet(warp, 0x0000fff0);
    EXPECT(!knows(warp, 4, past));
    order_meet(warp, 0x000000ff);
    EXPECT(knows(warp, 4, past) && !knows(warp, 8, past));
    Past later = access_by(warp, 3);
    EXPECT(!knows(warp, 4, later));
    order_meet(warp, 0xffffff80);
    EXPECT(knows(warp, 31, past) && !knows(warp, 31, later));
    order_meet(warp, ALL_LANES);
    EXPECT(knows(warp, 31, later) && order_same_view(warp, ALL_LANES));
}

/* A lane that waits alone knows more than the others until they meet. */
static void lane_waits_alone(World *world) {
    Warp *from = &world->warps[0][0][0], *to = &world->warps[0][0][1];
    Barrier *barrier = &world->barriers[0];
    Past past = access_by(from, 0);
    order_barrier_arrive(from, 0, barrier, false);
    Past late = access_by(from, 0);
    order_barrier_complete(barrier);
    EXPECT(!knows(to, 5, past));
    order_barrier_wait(to, 1u << 5, barrier, false);
    EXPECT(knows(to, 5, past) && !knows(to, 6, past) && !knows(to, 5, late));
    EXPECT(!order_same_view(to, ALL_LANES) && order_same_view(to, ~(1u << 5)));
    order_meet(to, ALL_LANES);
    EXPECT(knows(to, 6, past) && order_same_view(to, ALL_LANES));
}

/* ---- barriers -------------------------------------------------------------------------------- */

static void phases(World *world) {
    Warp *a = &world->warps[0][0][0], *b = &world->warps[0][0][1], *c = &world->warps[0][0][2];
    Barrier *barrier = &world->barriers[0];
    Past first = access_by(a, 0);
    order_barrier_arrive(a, 0, barrier, false);
    order_barrier_complete(barrier);
    Past second = access_by(b, 0);
    order_barrier_arrive(b, 0, barrier, false);
    order_barrier_wait(c, 1, barrier, false);
    EXPECT(knows(c, 0, first) && !knows(c, 0, second)); /* nothing of the phase that has begun */
    order_barrier_complete(barrier);
    order_barrier_wait(c, 2, barrier, false);
    EXPECT(!knows(c, 1, first) && knows(c, 1, second));
}

static void relaxed_arrivals(World *world) {
    Warp *a = &world->warps[0][0][0], *b = &world->warps[0][0][1];
    Barrier *barrier = &world->barriers[0];
    Inst fence = {.mods = {.order = ORDER_ACQ_REL, .scope = SCOPE_CLUSTER}};
    Past past = access_by(a, 0);
    order_barrier_arrive(a, 0, barrier, true);
    order_barrier_complete(barrier);
    order_barrier_wait(b, 1, barrier, false);
    EXPECT(!knows(b, 0, past));
    order_fence(a, 1, &fence);
    Past late = access_by(a, 0);
    order_barrier_arrive(a, 0, barrier, true);
    order_barrier_complete(barrier);
    order_barrier_wait(b, 2, barrier, true);
    EXPECT(!knows(b, 1, past));
    order_fence(b, 2, &fence);
    EXPECT(knows(b, 1, past) && !knows(b, 1, late));
}

static void named_barriers(World *world) {
    Warp *a = &world->warps[0][0][0], *b = &world->warps[0][0][1];
    Past gives = access_by(a, 0), takes = access_by(b, 0);
    order_named_arrive(a, ALL_LANES, 3); /* bar.arrive */
    Past late = access_by(a, 0);
    order_named_arrive(b, ALL_LANES, 3); /* bar.sync */
    order_named_wait(b, ALL_LANES, 3);
    order_named_reset(a->block, 3);
    EXPECT(knows(b, 9, gives) && !knows(b, 9, late) && !knows(a, 0, takes));
    EXPECT(order_same_view(b, ALL_LANES));
    order_named_arrive(b, ALL_LANES, 3);
    order_named_wait(a, ALL_LANES, 3);
    EXPECT(knows(a, 0, takes));
}

static void cluster_barrier(World *world) {
    Warp *a = &world->warps[0][0][0], *b = &world->warps[0][1][0];
    Inst init = {.mods = {.choice = FENCE_MBARRIER_INIT}};
    Past past = access_by(a, 0);
    EXPECT(order_knows_init(a, 0, &world->barriers[0]) &&
           !order_knows_init(a, 1, &world->barriers[0]));
    order_cluster_arrive(a, ALL_LANES, true);
    order_cluster_complete(&world->clusters[0]);
    order_cluster_wait(b, ALL_LANES, false);
    EXPECT(!knows(b, 0, past) && !order_knows_init(b, 0, &world->barriers[0]));
    order_fence(a, 1, &init);
    order_cluster_arrive(a, ALL_LANES, true);
    order_cluster_complete(&world->clusters[0]);
    order_cluster_wait(b, ALL_LANES, false);
    EXPECT(!knows(b, 0, past) && order_knows_init(b, 0, &world->barriers[0]));
    order_cluster_arrive(a, ALL_LANES, false);
    order_cluster_complete(&world->clusters[0]);
    order_cluster_wait(b, 1, false);
    EXPECT(knows(b, 0, past) && !knows(b, 1, past));
}

/* ---- asynchronous operations ----------------------------------------------------------------- */

static Async new_op(World *world, Warp *warp, uint32_t lane, AsyncKind kind) {
    return (Async){.kind = kind,
                   .agent = {.warp = warp, .lane = lane},
                   .lanes = 1u << lane,
                   .target = &world->blocks[0][0],
                   .barrier = SHARED_BASE};
}
static Past past_of(const Async *op, uint32_t lane, bool reads) {
    return (Past){order_cluster(op->agent.warp->block->cluster), order_epoch_of(op, lane, reads)};
}
static bool op_knows(const Async *op, uint32_t clock, Past past) {
    Seen seen = order_seen_by(op, op->agent.lane);
    return order_knows(&seen, clock, past.cluster, past.epoch);
}

/* The completion of a copy carries the copy, not what its issuer knows. */
static void copies_at_barriers(World *world) {
    Warp *a = &world->warps[0][0][0], *b = &world->warps[0][0][1];
    Past past = access_by(a, 0);
    Async op = new_op(world, a, 0, ASYNC_BULK_LOAD);
    order_issue(&op);
    Past late = access_by(a, 0), copy = past_of(&op, 0, false);
    EXPECT(op_knows(&op, VIEW_GENERIC, past) && !op_knows(&op, VIEW_GENERIC, late));
    EXPECT(!op_knows(&op, VIEW_GENERIC, copy) && !knows(a, 0, copy));
    order_barrier_complete(&world->barriers[0]);
    order_over(&op);
    EXPECT(!knows(a, 0, copy));
    order_barrier_wait(b, 1, &world->barriers[0], false);
    EXPECT(knows(b, 0, copy) && !knows(b, 0, past) && !knows(a, 0, copy));
    EXPECT(knows_by(b, 0, VIEW_ASYNC_SHARED, copy));
    Async next = new_op(world, a, 0, ASYNC_BULK_LOAD);
    order_issue(&next);
    EXPECT(!knows(b, 0, past_of(&next, 0, false)));
}

static void proxies(World *world) {
    Warp *a = &world->warps[0][0][0], *b = &world->warps[0][0][1];
    Inst shared = {.mods = {.flags = FLAG_PROXY | FLAG_ASYNC, .spaces = {SPACE_SHARED}}};
    shared.mods.space_count = 1;
    Past fenced = access_by(a, 1), of_lane_0 = access_by(a, 0);
    order_fence(a, 2, &shared);
    Past late = access_by(a, 1);
    order_meet(a, ALL_LANES);
    Async op = new_op(world, a, 0, ASYNC_BULK_STORE);
    order_issue(&op);
    EXPECT(op_knows(&op, VIEW_ASYNC_SHARED, fenced) && !op_knows(&op, VIEW_ASYNC_GLOBAL, fenced));
    EXPECT(!op_knows(&op, VIEW_ASYNC_SHARED, late) && op_knows(&op, VIEW_GENERIC, late));
    EXPECT(!op_knows(&op, VIEW_ASYNC_SHARED, of_lane_0));
    /* a fence of the other side is enough */
    order_named_arrive(a, ALL_LANES, 0);
    order_named_wait(b, ALL_LANES, 0);
    order_fence(b, 1, &shared);
    Async other = new_op(world, b, 0, ASYNC_BULK_STORE);
    order_issue(&other);
    EXPECT(op_knows(&other, VIEW_ASYNC_SHARED, late) && !op_knows(&other, VIEW_ASYNC_GLOBAL, late));
}

static void bulk_groups(World *world) {
    Warp *a = &world->warps[0][0][0];
    Async first = new_op(world, a, 0, ASYNC_BULK_STORE), second = first;
    second.group = 1;
    order_issue(&first);
    order_issue(&second);
    order_groups_wait(a, 0, true, 1, true);
    EXPECT(knows(a, 0, past_of(&first, 0, true)) && !knows(a, 0, past_of(&first, 0, false)));
    EXPECT(!knows(a, 0, past_of(&second, 0, true)) && !knows(a, 1, past_of(&first, 0, true)));
    order_groups_wait(a, 0, true, 2, false);
    EXPECT(knows(a, 0, past_of(&second, 0, false)));
}

static void copies_of_lanes(World *world) {
    Warp *a = &world->warps[0][0][0], *b = &world->warps[0][0][1];
    struct AsyncLanes lanes[3] = {0};
    Async ops[3];
    for (int i = 0; i < 3; i++) {
        ops[i] = new_op(world, a, 0, i == 1 ? ASYNC_LANES_ARRIVE : ASYNC_LANES);
        ops[i].lanes = 3;
        ops[i].per_lane = &lanes[i];
        order_issue(&ops[i]);
    }
    Past first = past_of(&ops[0], 1, false), second = past_of(&ops[2], 1, false);
    order_copies_arrive(&ops[1], 1, &world->barriers[0]);
    order_barrier_complete(&world->barriers[0]);
    order_barrier_wait(b, 1, &world->barriers[0], false);
    EXPECT(knows(b, 0, first) && !knows(b, 0, second) && !knows(b, 0, past_of(&ops[0], 0, false)));
    order_copies_commit(a, 3);
    a->copies.committed[0] = a->copies.committed[1] = 1;
    order_groups_wait(a, 1, false, 1, false);
    EXPECT(knows(a, 1, second) && !knows(a, 0, second));
    EXPECT(!order_same_view(a, 3) && order_shares_view(a, 3));
    EXPECT(!knows_by(a, 1, VIEW_ASYNC_SHARED, second)); /* generic proxy */
    order_meet(a, ALL_LANES);
    EXPECT(knows(a, 0, second) && order_same_view(a, 2));
}

static void matrices(World *world) {
    Warp *warps = world->warps[0][0];
    Matrix matrix = {0};
    MatrixGroup group = {.number = 4};
    Past of_all = access_by(&warps[0], 0), of_some = access_by(&warps[1], 0);
    order_named_arrive(&warps[0], ALL_LANES, 1);
    for (int w = 0; w < WARPS; w++) order_named_wait(&warps[w], ALL_LANES, 1);
    order_meet(&warps[0], ALL_LANES);
    order_named_arrive(&warps[1], ALL_LANES, 1);
    for (int w = 0; w < 3; w++) order_named_wait(&warps[w], ALL_LANES, 1);
    for (int w = 0; w < WARPS; w++) order_matrix_issue(&warps[w], &matrix, w == 0);
    Async op = new_op(world, &warps[0], 0, ASYNC_MATRIX);
    op.matrices = &group;
    order_matrix_run(&op, &matrix);
    EXPECT(op_knows(&op, VIEW_GENERIC, of_all) && !op_knows(&op, VIEW_GENERIC, of_some));
    Past reads = past_of(&op, 0, true);
    order_matrix_wait(&warps[2], 4);
    EXPECT(!knows(&warps[2], 0, reads));
    order_matrix_wait(&warps[2], 5);
    EXPECT(knows(&warps[2], 31, reads) && !knows(&warps[3], 0, reads));
    order_matrix_over(&world->clusters[0], &matrix);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void release_and_acquire(World *world) {
    Warp *a = &world->warps[0][0][0], *b = &world->warps[1][0][0], *c = &world->warps[0][1][0];
    Past past = access_by(a, 0);
    order_store(a, 0, world->flag, ORDER_RELEASE, SCOPE_GPU);
    Past late = access_by(a, 0);
    order_load(b, 0, world->flag, ORDER_RELAXED, SCOPE_GPU);
    order_load(b, 1, world->flag, ORDER_ACQUIRE, SCOPE_CLUSTER);
    EXPECT(!knows(b, 0, past) && !knows(b, 1, past));
    order_load(b, 0, world->flag, ORDER_ACQUIRE, SCOPE_GPU);
    EXPECT(knows(b, 0, past) && !knows(b, 0, late) && !knows(b, 1, past));
    /* and from there back into the first cluster */
    order_atomic(b, 0, world->flag + 4, ORDER_RELEASE, SCOPE_SYS, ATOMIC_BOTH);
    order_load(c, 0, world->flag + 4, ORDER_ACQUIRE, SCOPE_GPU);
    EXPECT(knows(c, 0, past));
    order_store(b, 2, world->flag, ORDER_RELAXED, SCOPE_GPU); /* not of the release pattern */
    order_load(b, 3, world->flag, ORDER_ACQUIRE, SCOPE_GPU);
    EXPECT(!knows(b, 3, past));
}

static void release_sequence(World *world) {
    Warp *a = &world->warps[0][0][0], *b = &world->warps[1][0][0], *c = &world->warps[1][1][0];
    Past first = access_by(a, 0), second = access_by(b, 0);
    order_store(a, 0, world->flag, ORDER_RELEASE, SCOPE_GPU);
    order_atomic(b, 0, world->flag, ORDER_RELAXED, SCOPE_GPU,
                 ATOMIC_BOTH); /* carries nothing of its own */
    order_load(c, 0, world->flag, ORDER_ACQUIRE, SCOPE_GPU);
    EXPECT(knows(c, 0, first) && !knows(c, 0, second));
    order_overwrite(b->block, world->flag, 8);
    order_load(c, 1, world->flag, ORDER_ACQUIRE, SCOPE_GPU);
    EXPECT(!knows(c, 1, first));
}

static void fences(World *world) {
    Warp *a = &world->warps[0][0][0], *b = &world->warps[0][1][0], *c = &world->warps[1][0][0];
    Inst wide = {.mods = {.order = ORDER_ACQ_REL, .scope = SCOPE_GPU}},
         narrow = {.mods = {.order = ORDER_SC, .scope = SCOPE_CLUSTER}};
    Past past = access_by(a, 0);
    order_fence(a, 1, &narrow);
    order_store(a, 0, world->flag, ORDER_VOLATILE, SCOPE_NONE);
    order_load(b, 0, world->flag, ORDER_VOLATILE, SCOPE_NONE);
    order_load(c, 0, world->flag, ORDER_VOLATILE, SCOPE_NONE);
    EXPECT(!knows(b, 0, past));
    order_fence(b, 1, &wide);
    order_fence(c, 1, &wide);
    EXPECT(knows(b, 0, past) && !knows(c, 0, past)); /* the first fence is of its cluster */
    order_fence(a, 1, &wide);
    order_atomic(a, 0, world->flag, ORDER_RELAXED, SCOPE_GPU, ATOMIC_BOTH);
    order_atomic(c, 0, world->flag, ORDER_RELAXED, SCOPE_GPU, ATOMIC_BOTH);
    EXPECT(!knows(c, 0, past));
    order_fence(c, 1, &narrow);
    EXPECT(!knows(c, 0, past));
    order_fence(c, 1, &wide);
    EXPECT(knows(c, 0, past));
}

static void kernels(World *world) {
    Warp *warp = &world->warps[0][0][0];
    Past first = access_by(warp, 0);
    order_launch(&world->machine, 2, false);
    order_start(&world->clusters[0], 0);
    Past second = access_by(warp, 0);
    EXPECT(knows(warp, 3, first) && knows_by(warp, 3, VIEW_ASYNC_GLOBAL, first));
    order_launch(&world->machine, 2, true);
    order_start(&world->clusters[0], 0);
    EXPECT(knows(warp, 3, first) && !knows(warp, 3, second));
    order_griddepcontrol_wait(warp, 1u << 3);
    EXPECT(knows(warp, 3, second) && !knows(warp, 4, second));
}

int main(void) {
    static void (*const tests[])(World *) = {
        lanes_meet,      lane_waits_alone,    phases,           relaxed_arrivals, named_barriers,
        cluster_barrier, copies_at_barriers,  proxies,          bulk_groups,      copies_of_lanes,
        matrices,        release_and_acquire, release_sequence, fences,           kernels};
    for (size_t i = 0; i < COUNT_OF(tests); i++) {
        World *world = world_new();
        tests[i](world);
        world_free(world);
    }
    return expect_failures();
}
