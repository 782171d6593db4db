/* Asynchronous copies: cp.async, bulk and tensor copies, their groups and completion.
 *
 * Each is an Async, a separate agent in the async proxy: issued by an instruction, done later
 * when schedule.c decides. Loads are done in one step that also completes the bytes at the
 * mbarrier; a multicast is one load per block. Stores read their source in one step and write in
 * a second one, so that `wait_group.read` and `wait_group` differ as on the GPU. */
#include "emulator/order/lifecycle.h"
#include "emulator/findings/names.h"
#include "emulator/order/order.h"
#include "emulator/order/steps.h"

/* ---- operations in flight -------------------------------------------------------------------- */

bool async_idle(const Block *block) { return block->first == NULL; }

Async *async_new(Block *block, Warp *warp, AsyncKind kind, uint32_t lane, uint32_t lanes) {
    Async *op = block->spare;
    struct AsyncLanes *per_lane = op ? op->per_lane : NULL;
    uint32_t *steps = op ? op->steps : NULL;
    if (op)
        block->spare = op->next;
    else
        op = NEW(block->machine->arena, Async);
    *op = (Async){.kind = kind,
                  .agent = agent_of(block, warp, lane),
                  .lanes = lanes,
                  .due = schedule_due(block),
                  .target = block,
                  .source = SPACE_GLOBAL,
                  .per_lane = per_lane,
                  .steps = steps};
    op->agent.async = ++block->async_count;
    if ((kind == ASYNC_LANES || kind == ASYNC_LANES_ARRIVE) && !per_lane)
        op->per_lane = NEW(block->machine->arena, struct AsyncLanes);
    return op;
}

const Async *async_to(const Block *home, uint64_t address) {
    const Cluster *cluster = home->cluster;
    for (uint32_t rank = 0; rank < cluster->size; rank++)
        for (const Async *op = cluster->blocks[rank]->first; op; op = op->next) {
            bool loads = op->kind == ASYNC_BULK_LOAD || op->kind == ASYNC_TENSOR_LOAD ||
                         op->kind == ASYNC_REMOTE;
            if (loads && op->target == home && address >= op->shared &&
                address - op->shared < op->bytes)
                return op;
        }
    return NULL;
}

void async_enqueue(Block *block, Async *op) {
    op->next = NULL;
    op->previous = block->last;
    if (block->last)
        block->last->next = op;
    else
        block->first = op;
    block->last = op;
    order_issue(op);
    steps_clear(block->cluster, op->steps);
    steps_give(op->agent.warp, &op->steps);
    effect(block, op->agent.warp);
}

static void dequeue(Block *block, Async *op) {
    *(op->previous ? &op->previous->next : &block->first) = op->next;
    *(op->next ? &op->next->previous : &block->last) = op->previous;
    order_over(op);
    op->next = block->spare;
    block->spare = op;
}

/* Buffers for the bytes that a store has read have a power of two as size and are reused. */
static void take_buffer(Block *block, Async *op) {
    uint32_t class = 4;
    while ((1u << class) < op->bytes) class ++;
    op->buffer_class = class;
    op->buffer = block->spare_buffers[class];
    if (op->buffer)
        memcpy(&block->spare_buffers[class], op->buffer, sizeof(void *));
    else
        op->buffer = arena_alloc(block->machine->arena, (size_t)1 << class);
}
static void give_buffer(Block *block, Async *op) {
    memcpy(op->buffer, &block->spare_buffers[op->buffer_class], sizeof(void *));
    block->spare_buffers[op->buffer_class] = op->buffer;
    op->buffer = NULL;
}

/* ---- execution ------------------------------------------------------------------------------- */

static unsigned char *reach(Block *block, const Async *op, AccessKind kind, Space space,
                            uint64_t address, uint32_t bytes) {
    /* bulk copies only are in the async proxy (PTX ISA 9.7.9.25) */
    bool generic = op->kind == ASYNC_LANES || op->kind == ASYNC_REMOTE;
    Access access = {.agent = op->agent,
                     .kind = kind,
                     .proxy = generic ? PROXY_GENERIC : PROXY_ASYNC,
                     .space = space,
                     .address = address,
                     .bytes = bytes,
                     .op = op};
    return memory_access(block, &access);
}

bool async_land(Block *block, const Async *op) {
    Barrier *barrier = barrier_at(op->target, op->agent, op->barrier, "the completion of a copy");
    if (!barrier) return false;
    barrier->landed = barrier->generation + 1;
    barrier->last_copy = op->agent;
    steps_add(block->cluster, &barrier->steps_now, op->steps);
    return barrier_transact(block, op->agent, barrier, -(int64_t)op->bytes);
}

static bool load_bulk(Block *block, const Async *op) {
    AccessKind kind = op->reduce ? ACCESS_ATOMIC : ACCESS_WRITE;
    const unsigned char *from = reach(block, op, ACCESS_READ, op->source, op->global, op->bytes);
    unsigned char *to =
        from ? reach(op->target, op, kind, SPACE_SHARED, op->shared, op->bytes) : NULL;
    if (!to) return false;
    if (op->reduce)
        memory_reduce_all(op->reduce, op->type, to, from, op->bytes);
    else
        memmove(to, from, op->bytes);
    return async_land(block, op);
}

static bool read_source(Block *block, Async *op) {
    op->read_done = true;
    if (op->kind == ASYNC_TENSOR_STORE) {
        take_buffer(block, op);
        return tensor_read_box(block, op);
    }
    /* first: a wrong program may ask for any number of bytes */
    const unsigned char *from = reach(block, op, ACCESS_READ, SPACE_SHARED, op->shared, op->bytes);
    if (!from) return false;
    take_buffer(block, op);
    memcpy(op->buffer, from, op->bytes);
    return true;
}

static bool store_bulk(Block *block, Async *op) {
    AccessKind kind = op->reduce ? ACCESS_ATOMIC : ACCESS_WRITE;
    unsigned char *to = reach(block, op, kind, SPACE_GLOBAL, op->global, op->bytes);
    if (!to) return false;
    if (op->reduce)
        memory_reduce_all(op->reduce, op->type, to, op->buffer, op->bytes);
    else
        memcpy(to, op->buffer, op->bytes);
    return true;
}

static bool copy_lanes(Block *block, Async *op) {
    for (uint32_t left = op->lanes; left; left &= left - 1) {
        uint32_t lane = first_lane(left), bytes = op->per_lane->source_bytes[lane];
        op->agent.lane = lane;
        unsigned char *to =
            reach(block, op, ACCESS_WRITE, SPACE_SHARED, op->per_lane->shared[lane], op->bytes);
        const unsigned char *from = to && bytes ? reach(block, op, ACCESS_READ, SPACE_GLOBAL,
                                                        op->per_lane->global[lane], bytes)
                                                : to;
        if (!from) return false;
        if (bytes) memcpy(to, from, bytes);
        memset(to + bytes, 0, op->bytes - bytes);
    }
    return true;
}

static bool store_remote(Block *block, const Async *op) {
    uint32_t bytes = type_rows[op->type].bytes;
    unsigned char *to = reach(op->target, op, op->reduce ? ACCESS_ATOMIC : ACCESS_WRITE,
                              SPACE_SHARED, op->shared, op->bytes);
    if (!to) return false;
    if (op->reduce) {
        uint64_t value = 0;
        memcpy(&value, op->value, bytes);
        memory_reduce(op->reduce, op->type, to, value, 0);
    } else {
        memcpy(to, op->value, op->bytes);
    }
    return async_land(block, op);
}

static bool arrive_lanes(Block *block, Async *op) {
    for (uint32_t left = op->lanes; left; left &= left - 1) {
        op->agent.lane = first_lane(left);
        Barrier *barrier = barrier_at(block, op->agent, op->per_lane->shared[op->agent.lane],
                                      "cp.async.mbarrier.arrive");
        if (!barrier) return false;
        barrier->landed = barrier->generation + 1;
        barrier->last_copy = op->agent;
        lifecycle_arrived(block, &op->agent, barrier);
        steps_add(block->cluster, &barrier->steps_now, op->steps);
        order_copies_arrive(op, op->agent.lane, barrier);
        if (!barrier_arrive(block, op->agent, barrier, 1)) return false;
    }
    return true;
}

/* Executes one step of an operation; *over: it was the last step. */
static bool advance(Block *block, Async *op, bool *over) {
    *over = true;
    switch (op->kind) {
    case ASYNC_BULK_LOAD: block->machine->copied_in += op->bytes; return load_bulk(block, op);
    case ASYNC_TENSOR_LOAD:
        block->machine->copied_in += op->bytes;
        return tensor_load(block, op) && async_land(block, op);
    case ASYNC_REMOTE: return store_remote(block, op);
    case ASYNC_MATRIX: return matrices_run(block, op);
    case ASYNC_LANES: return copy_lanes(block, op);
    case ASYNC_LANES_ARRIVE: return arrive_lanes(block, op);
    case ASYNC_BULK_STORE:
    case ASYNC_TENSOR_STORE:
        if (!op->read_done) {
            *over = false;
            op->due = schedule_due(block);
            return read_source(block, op);
        }
        if (!(op->kind == ASYNC_BULK_STORE ? store_bulk(block, op) : tensor_store(block, op)))
            return false;
        block->machine->copied_out += op->bytes;
        give_buffer(block, op);
        return true;
    }
    return false;
}

/* The arrival of cp.async.mbarrier.arrive waits for the earlier copies of its lanes; a group of
 * wgmma waits for the earlier groups of its warpgroup. */
static bool may_advance(const Async *op) {
    if (op->kind != ASYNC_LANES_ARRIVE && op->kind != ASYNC_MATRIX) return true;
    AsyncKind awaited = op->kind == ASYNC_MATRIX ? ASYNC_MATRIX : ASYNC_LANES;
    for (const Async *earlier = op->previous; earlier; earlier = earlier->previous)
        if (earlier->kind == awaited && earlier->agent.warp == op->agent.warp &&
            (earlier->lanes & op->lanes))
            return false;
    return true;
}

bool async_step(Block *block, bool force) {
    enum { CHOICES = 8 };
    while (block->first) {
        Async *choices[CHOICES];
        uint32_t count = 0;
        uint32_t wanted = block->machine->seed ? CHOICES : 1;
        for (Async *op = block->first; op && count < wanted; op = op->next)
            if (may_advance(op) && (force || op->due <= block->slice)) choices[count++] = op;
        if (count == 0) return true;
        Async *op = choices[schedule_pick(block, count)];
        bool over;
        if (!advance(block, op, &over)) return false;
        if (over) dequeue(block, op);
        block->async_epoch++;
        block->cluster->effects++;
        force = false;
    }
    return true;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static bool is_bulk(const Async *op) {
    return op->kind == ASYNC_BULK_STORE || op->kind == ASYNC_TENSOR_STORE;
}

/* True if an operation of this lane is in flight whose group is below `limit` */
static bool in_flight(const Block *block, const Warp *warp, uint32_t lane, bool bulk,
                      uint32_t limit, bool reads_only) {
    for (const Async *op = block->first; op; op = op->next) {
        if (op->agent.warp != warp || !(op->lanes >> lane & 1) || op->group >= limit) continue;
        if (bulk ? is_bulk(op) && !(reads_only && op->read_done) : op->kind == ASYNC_LANES)
            return true;
    }
    return false;
}

static Step wait_groups(Block *block, Warp *warp, uint32_t mask, bool bulk, uint32_t allowed,
                        bool reads_only) {
    Groups *groups = bulk ? &warp->bulk : &warp->copies;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left), committed = groups->committed[lane],
                 limit = committed > allowed ? committed - allowed : 0;
        if (in_flight(block, warp, lane, bulk, limit, reads_only)) {
            warp->split->wait_address = allowed;
            return schedule_wait(warp, WAIT_GROUP, block->async_epoch);
        }
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left), committed = groups->committed[lane],
                 limit = committed > allowed ? committed - allowed : 0;
        if (groups->waited[lane] < limit) groups->waited[lane] = limit;
        order_groups_wait(warp, lane, bulk, limit, reads_only);
    }
    return STEP_NEXT;
}

static Step run_commit(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Groups *groups = inst->opcode == OP_BULK_COMMIT ? &warp->bulk : &warp->copies;
    (void)block;
    if (inst->opcode == OP_CP_COMMIT) order_copies_commit(warp, mask);
    for (uint32_t left = mask; left; left &= left - 1) groups->committed[first_lane(left)]++;
    return STEP_NEXT;
}

static Step run_wait(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint32_t allowed = in32(warp, &inst->ops[0])[first_lane(mask)];
    return wait_groups(block, warp, mask, inst->opcode == OP_BULK_WAIT, allowed,
                       (inst->mods.flags & FLAG_READ) != 0);
}

/* cp.async.wait_all: a commit, then a wait for all groups (PTX ISA 9.7.9.25.3.4) */
static Step run_wait_all(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)inst;
    for (uint32_t left = mask; left; left &= left - 1)
        if (in_flight(block, warp, first_lane(left), false, UINT32_MAX, false))
            return schedule_wait(warp, WAIT_GROUP, block->async_epoch);
    order_copies_wait_all(warp, mask);
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        warp->copies.waited[lane] = ++warp->copies.committed[lane];
    }
    return STEP_NEXT;
}

static void join_group(Groups *groups, Async *op, uint32_t lane) {
    op->group = groups->committed[lane];
    groups->issued[lane] = op->group + 1;
}

bool async_check_exit(Block *block, Warp *warp, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        bool bulk = warp->bulk.issued[lane] > warp->bulk.waited[lane];
        if (bulk || warp->copies.issued[lane] > warp->copies.waited[lane])
            return finding(block, P0740, agent_of(block, warp, lane),
                           "lane %u exits while its copies may still be in flight, and shared "
                           "memory be %s: no `%s` follows them",
                           lane, bulk ? "read" : "written",
                           bulk ? "cp.async.bulk.wait_group" : "cp.async.wait_group");
    }
    return true;
}

bool async_check_end(Block *block) {
    for (uint32_t i = 0; i < block->barrier_slots; i++) {
        const Barrier *barrier = block->barriers[i];
        if (!barrier || !barrier->live || barrier->landed <= barrier->observed) continue;
        return finding(block, P0741, barrier->last_copy,
                       "the block ended, but no thread waited for this copy: phase %llu of %s",
                       (unsigned long long)(barrier->landed - 1),
                       name_barrier(block->machine, barrier->home, barrier->address));
    }
    return true;
}

/* ---- cp.async -------------------------------------------------------------------------------- */

static uint64_t shared_of(const Warp *warp, const Inst *inst, const Operand *op, uint32_t lane) {
    uint64_t address = in_lane(warp, op, lane) + (uint64_t)op->add;
    if (!inst->mods.space_count && address - WINDOW_SHARED < WINDOW_BYTES) address -= WINDOW_SHARED;
    return (uint32_t)address;
}
static uint64_t global_of(const Warp *warp, const Operand *op, uint32_t lane) {
    return in_lane(warp, op, lane) + (uint64_t)op->add;
}

static bool check_alignment(Block *block, Agent agent, uint64_t address, uint32_t alignment,
                            const char *what) {
    if (address % alignment == 0) return true;
    return finding(block, P0711, agent, "%s 0x%llx of a copy must be a multiple of %u", what,
                   (unsigned long long)address, alignment);
}

/* ops: [dst], [src], bytes, (source bytes or a predicate that ignores the source), (policy) */
static Step run_cp_async(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint32_t bytes = *in32(warp, &inst->ops[2]), left = mask;
    const Operand *size = &inst->ops[3];
    bool whole = inst->mods.flags & FLAG_CG; /* PTX ISA 9.7.9.25.3.1 */
    if (bytes != 16 && (whole || (bytes != 4 && bytes != 8)))
        return fault(block, P0716, agent_of(block, warp, first_lane(mask)),
                     "cp.async.%s of %u bytes: it copies %s", whole ? "cg" : "ca", bytes,
                     whole ? "16" : "4, 8 or 16");
    while (left) {
        /* Lanes whose copies belong to the same group number, and which know the same of others,
         * are issued as one operation. */
        uint32_t leader = first_lane(left), lanes = 0;
        Async *op = async_new(block, warp, ASYNC_LANES, leader, 0);
        op->bytes = bytes;
        for (uint32_t each = left; each; each &= each - 1) {
            uint32_t lane = first_lane(each);
            if (warp->copies.committed[lane] != warp->copies.committed[leader] ||
                !order_shares_view(warp, 1u << lane | 1u << leader))
                continue;
            Agent agent = agent_of(block, warp, lane);
            uint64_t from = global_of(warp, &inst->ops[1], lane),
                     to = shared_of(warp, inst, &inst->ops[0], lane);
            uint32_t source = size->absent       ? bytes
                              : size->width == 0 ? (in_mask(warp, size) >> lane & 1 ? 0 : bytes)
                                                 : in32(warp, size)[lane];
            if (!check_alignment(block, agent, to, bytes, "the shared address") ||
                !check_alignment(block, agent, from, bytes, "the global address"))
                return STEP_FAULT;
            if (source > bytes)
                return fault(block, P0716, agent,
                             "cp.async of %u bytes with %u source bytes: the source is larger",
                             bytes, source);
            op->per_lane->global[lane] = from;
            op->per_lane->shared[lane] = (uint32_t)to;
            op->per_lane->source_bytes[lane] = source;
            join_group(&warp->copies, op, lane);
            lanes |= 1u << lane;
        }
        op->lanes = lanes;
        left &= ~lanes;
        async_enqueue(block, op);
    }
    return STEP_NEXT;
}

/* ops: [barrier]. Without .noinc the phase also expects one more arrival. */
static Step run_cp_arrive(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Async *op = async_new(block, warp, ASYNC_LANES_ARRIVE, first_lane(mask), mask);
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        op->per_lane->shared[lane] = (uint32_t)shared_of(warp, inst, &inst->ops[0], lane);
        Barrier *barrier = barrier_at(block, agent_of(block, warp, lane),
                                      op->per_lane->shared[lane], "cp.async.mbarrier.arrive");
        if (!barrier) return STEP_FAULT;
        if (!(inst->mods.flags & FLAG_NOINC)) barrier->pending++;
        /* from now on the barrier, not a group, says when the copies are complete */
        warp->copies.issued[lane] = 0;
    }
    async_enqueue(block, op);
    return STEP_NEXT;
}

/* ---- bulk copies ----------------------------------------------------------------------------- */

static bool is_load(const Inst *inst) {
    return inst->mods.spaces[0] == SPACE_SHARED && inst->opcode != OP_TENSOR_REDUCE;
}

static bool check_bulk(Block *block, const Async *op) {
    if (op->bytes == 0 || op->bytes % 16)
        return finding(block, P0716, op->agent,
                       "bulk copy of %u bytes: the size must be a multiple of 16", op->bytes);
    const char *source = op->source == SPACE_SHARED ? "the source address" : "the global address";
    return check_alignment(block, op->agent, op->shared, 16, "the shared address") &&
           check_alignment(block, op->agent, op->global, 16, source);
}

/* A load writes to the block of its address, or to the same offset in each block of the mask:
 * one operation per block. */
static bool issue_load(Block *block, Async *op, uint64_t to, uint64_t barrier, bool multicast,
                       uint32_t ranks) {
    const Cluster *cluster = block->cluster;
    const Block *home = cluster_block(block, to);
    if (!home || cluster_block(block, barrier) != home)
        return finding(block, P0716, op->agent,
                       "copy to 0x%llx completes at mbarrier 0x%llx of another block",
                       (unsigned long long)to, (unsigned long long)barrier);
    if (!multicast) ranks = 1u << home->rank;
    if (ranks == 0 || ranks >> cluster->size)
        return finding(block, P0716, op->agent,
                       "multicast to blocks 0x%x in a cluster of %u blocks", ranks, cluster->size);
    op->shared = (uint32_t)to & OFFSET_MASK;
    op->barrier = (uint32_t)barrier & OFFSET_MASK;
    for (; ranks; ranks &= ranks - 1) {
        Async *one = op;
        if (ranks & (ranks - 1)) {
            one = async_new(block, op->agent.warp, op->kind, op->agent.lane, op->lanes);
            Agent agent = one->agent;
            uint64_t due = one->due;
            /* kept with the Async when it is reused */
            struct AsyncLanes *per_lane = one->per_lane;
            uint32_t *steps = one->steps;
            *one = *op;
            one->agent = agent;
            one->due = due;
            one->per_lane = per_lane;
            one->steps = steps;
        }
        one->target = cluster->blocks[first_lane(ranks)];
        const Barrier *at = barrier_at(one->target, one->agent, one->barrier, "a copy");
        if (!at || !lifecycle_copied(block, one->agent, at)) return false;
        async_enqueue(block, one);
    }
    return true;
}

static uint32_t ranks_of(const Warp *warp, const Inst *inst, const Operand *op, uint32_t lane) {
    return inst->mods.multicast ? in32(warp, op)[lane] & 0xffff : 0;
}

/* The bulk operations of one lane; ops of a load: [dst], [src], bytes, [barrier], (blocks); of a
 * store: [dst], [src], bytes */
static Step run_bulk(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    bool load = is_load(inst);
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        Async *op =
            async_new(block, warp, load ? ASYNC_BULK_LOAD : ASYNC_BULK_STORE, lane, 1u << lane);
        op->shared = (uint32_t)shared_of(warp, inst, &inst->ops[load ? 0 : 1], lane);
        op->global = global_of(warp, &inst->ops[load ? 1 : 0], lane);
        op->bytes = in32(warp, &inst->ops[2])[lane];
        op->reduce = (Reduce)inst->mods.reduce;
        op->type = inst_type(inst);
        if (load && inst->mods.spaces[1] == SPACE_SHARED) op->source = SPACE_SHARED;
        if (!check_bulk(block, op)) return STEP_FAULT;
        if (load) {
            uint64_t barrier = shared_of(warp, inst, &inst->ops[3], lane);
            if (!issue_load(block, op, op->shared, barrier, inst->mods.multicast,
                            ranks_of(warp, inst, &inst->ops[4], lane)))
                return STEP_FAULT;
        } else {
            join_group(&warp->bulk, op, lane);
            async_enqueue(block, op);
        }
    }
    return STEP_NEXT;
}

static Step run_tensor(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    bool load = is_load(inst), prefetch = inst->opcode == OP_TENSOR_PREFETCH;
    uint32_t rank = inst->mods.dimensions, map_at = load ? 1 : 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        Agent agent = agent_of(block, warp, lane);
        const TensorMap *map = map_read(block, agent, global_of(warp, &inst->ops[map_at], lane));
        if (!map) return STEP_FAULT;
        if (map->rank != rank)
            return fault(block, P0716, agent,
                         "copy of %u dimensions with the tensor map of `%s`, which has %u", rank,
                         map->name, map->rank);
        if (prefetch) continue;
        Async *op =
            async_new(block, warp, load ? ASYNC_TENSOR_LOAD : ASYNC_TENSOR_STORE, lane, 1u << lane);
        op->map = map;
        op->bytes = map->box_bytes;
        op->reduce = (Reduce)inst->mods.reduce;
        for (uint32_t i = 0; i < rank; i++)
            op->coordinates[i] = (int32_t)in32(warp, &inst->ops[map_at + 1 + i])[lane];
        int64_t first = (int64_t)op->coordinates[0] * map->element_bytes;
        if (first % 16 != 0) /* hardware traps with an illegal instruction (seen on an H200) */
            return fault(block, P0711, agent,
                         "tensor copy of `%s` starts at coordinate %d, %lld bytes along its "
                         "innermost dimension: this must be a multiple of 16",
                         map->name, op->coordinates[0], (long long)first);
        for (uint32_t i = 0; i < rank && !load; i++)
            if (op->coordinates[i] < 0) /* the same, even if a part of the box is inside */
                return fault(block, P0711, agent,
                             "tensor store to `%s` starts at coordinate %d of dimension %u: a box "
                             "must not begin before the tensor",
                             map->name, op->coordinates[i], i);
        op->shared = (uint32_t)shared_of(warp, inst, &inst->ops[load ? 0 : rank + 1], lane);
        if (!check_alignment(block, agent, op->shared, 128, "the shared address"))
            return STEP_FAULT;
        if (load) {
            uint64_t barrier = shared_of(warp, inst, &inst->ops[rank + 2], lane);
            uint32_t ranks = ranks_of(warp, inst, &inst->ops[rank + 3], lane);
            if (!issue_load(block, op, op->shared, barrier, inst->mods.multicast, ranks))
                return STEP_FAULT;
        } else {
            join_group(&warp->bulk, op, lane);
            async_enqueue(block, op);
        }
    }
    return STEP_NEXT;
}

static Step run_prefetch(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)block, (void)warp, (void)inst, (void)mask;
    return STEP_NEXT;
}

/* ---- selection of the handler ---------------------------------------------------------------- */

static bool copies_between(const Inst *inst, Space to, Space from) {
    return inst->mods.space_count == 2 && inst->mods.spaces[0] == to &&
           inst->mods.spaces[1] == from;
}

/* A reduction from shared memory into that of a block of the cluster: of the types with 8 bytes,
 * only .add.u64 (PTX ISA 9.7.9.25.4.2) */
static bool reduces_shared(const Inst *inst) {
    Type type = inst_type(inst);
    bool taken = type == T_B32 || type == T_U32 || type == T_S32 ||
                 (type == T_U64 && inst->mods.reduce == REDUCE_ADD);
    return taken && inst->opcode == OP_BULK_REDUCE &&
           copies_between(inst, SPACE_SHARED, SPACE_SHARED);
}

static Run pick_bulk(const Inst *inst) {
    bool tensor = inst->opcode == OP_TENSOR || inst->opcode == OP_TENSOR_REDUCE;
    bool load = copies_between(inst, SPACE_SHARED, SPACE_GLOBAL) ||
                (!tensor && copies_between(inst, SPACE_SHARED, SPACE_SHARED)),
         store = copies_between(inst, SPACE_GLOBAL, SPACE_SHARED);
    bool reduces = inst->opcode == OP_BULK_REDUCE || inst->opcode == OP_TENSOR_REDUCE;
    uint32_t load_ops = tensor ? 5u + inst->mods.dimensions : 6,
             flags = inst->mods.flags & (FLAG_BULK_GROUP | FLAG_COMPLETE_TX | FLAG_READ);
    Type type = inst_type(inst);
    if (tensor && !inst->mods.dimensions) return NULL;
    if (load ? flags != FLAG_COMPLETE_TX || inst->op_count != load_ops ||
                   (reduces && !reduces_shared(inst))
             : !store || flags != FLAG_BULK_GROUP || inst->op_count == load_ops)
        return NULL;
    if (reduces != (inst->mods.reduce != REDUCE_NONE) || inst->mods.reduce == REDUCE_EXCH ||
        inst->mods.reduce == REDUCE_CAS)
        return NULL;
    bool float_add_only = type == T_F32 || type == T_F64;
    if (inst->opcode == OP_BULK_REDUCE && (type_rows[type].bytes < 2 || type == T_TF32 ||
                                           (float_add_only && inst->mods.reduce != REDUCE_ADD)))
        return NULL;
    return tensor ? run_tensor : run_bulk;
}

static Run pick_cp_async(const Inst *inst) {
    const Operand *size = &inst->ops[2];
    return copies_between(inst, SPACE_SHARED, SPACE_GLOBAL) && size->bank == BANK_CONSTANTS
               ? run_cp_async
               : NULL;
}

Run pick_copy(const Inst *inst) {
    switch (inst->opcode) {
    case OP_CP_ASYNC: return pick_cp_async(inst);
    case OP_CP_COMMIT:
    case OP_BULK_COMMIT: return run_commit;
    case OP_CP_WAIT:
    case OP_BULK_WAIT: return inst->ops[0].bank == BANK_CONSTANTS ? run_wait : NULL;
    case OP_CP_WAIT_ALL: return run_wait_all;
    case OP_CP_ARRIVE: return inst_type(inst) == T_B64 ? run_cp_arrive : NULL;
    case OP_BULK:
    case OP_BULK_REDUCE:
    case OP_TENSOR:
    case OP_TENSOR_REDUCE: return pick_bulk(inst);
    case OP_BULK_PREFETCH: return run_prefetch;
    case OP_TENSOR_PREFETCH: return inst->mods.dimensions ? run_tensor : NULL;
    default: return NULL;
    }
}
