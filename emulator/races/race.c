/* The race detector: who accesses, whether an earlier access is ordered before, and which two
 * accesses need no order. */
#include "emulator/races/race.h"

#include "emulator/order/order.h"
#include "emulator/races/shadow.h"

#include <assert.h>

typedef struct RegionPlane {
    uint64_t base;
    Plane *plane;
} RegionPlane;

/* Two writes of one statement that are not ordered, which is no race if they write the same: the
 * bytes of the first one, to be compared after the second one */
typedef struct Rewrite {
    Race race;
    const unsigned char *data;
    unsigned char bytes[GRANULE];
} Rewrite;

/* The access that is being checked */
typedef struct Check {
    Block *block;
    const Access *access;
    Block *home; /* NULL: global memory */
    uint64_t address;
    const unsigned char *data;
    Touch touch;
    Seen seen;      /* of the operation, or of the first lane; of all lanes if `same_view` */
    bool same_view; /* its lanes have one view, except that each one knows itself */
    bool all_same;  /* so have all of access->together */
    uint64_t series;
} Check;

/* The records of a run */
struct RaceRecords {
    Check check; /* of the last access, for the next lanes of its instruction */
    Shadow *shadow;
    VEC(RegionPlane) regions; /* of global memory that was accessed */
    VEC(Rewrite) rewrites;    /* by the last access, or by the present operation */
    const Async *operation;   /* that has rewritten; NULL: a thread */
    uint32_t operation_number;
    const Program *program; /* whose statements are known */
    uint32_t *statements;   /* by instruction, plus one; 0: unknown */
};

/* ---- who accesses ---------------------------------------------------------------------------- */

static uint32_t lanes_of(const Access *access) {
    if (access->lanes) return access->lanes;
    if (access->stride) return access->together;
    return access->piece && access->bytes > access->piece ? ALL_LANES : 1u << access->agent.lane;
}

static bool access_observes(const Access *access) {
    const Program *program = access->agent.warp->block->program;
    return access->kind == ACCESS_READ || program->code[access->agent.pc].opcode == OP_ATOM;
}

static uint8_t flags_of(const Access *access) {
    uint32_t flags = access->op ? TOUCH_OPERATION : 0;
    if (access->proxy == PROXY_ASYNC) flags |= TOUCH_ASYNC;
    if (access->kind != ACCESS_READ) flags |= TOUCH_WRITE;
    if (access->kind == ACCESS_ATOMIC) flags |= TOUCH_ATOMIC | TOUCH_STRONG;
    if (access->strong) flags |= TOUCH_STRONG;
    if (access->in_block) flags |= TOUCH_BLOCK;
    if (access->in_cluster) flags |= TOUCH_CLUSTER;
    if ((flags & TOUCH_STRONG) && !access->op && access_observes(access)) flags |= TOUCH_OBSERVES;
    return (uint8_t)flags;
}

/* A number that the instructions of one statement of one role share that write elements of one
 * size, by the marks of the manifest. Without marks, and for shared memory, which tiles of the grid
 * do not share, each instruction is a statement. (Writes of one value and one size that are not
 * ordered leave that value; the memory model says nothing about those of different sizes: PTX ISA
 * 8.7.2.) */
static uint32_t find_statement(const Machine *machine, uint32_t pc) {
    const ManifestMark *mark = mark_of_code(machine, pc), *first = machine->manifest->marks.items;
    if (!mark) return pc;
    while (first->span.lo != mark->span.lo || first->span.hi != mark->span.hi ||
           first->role != mark->role)
        first++;
    uint32_t place = (uint32_t)(first - machine->manifest->marks.items);
    uint32_t bytes = type_rows[inst_type(&machine->program->code[pc])].bytes;
    return machine->program->count + place * 16 + (bytes < 15 ? bytes : 15);
}

static uint32_t statement_of(const Check *check, uint32_t pc) {
    const Machine *machine = check->block->machine;
    struct RaceRecords *records = machine->race;
    if (check->home) return pc;
    if (records->program != machine->program) {
        records->program = machine->program;
        records->statements = NEW_ARRAY(machine->arena, uint32_t, machine->program->count);
    }
    if (!records->statements[pc]) records->statements[pc] = find_statement(machine, pc) + 1;
    return records->statements[pc] - 1;
}

static Touch touch_of(const Check *check, uint64_t address) {
    const Access *access = check->access;
    const Agent *agent = &access->agent;
    Epoch own = order_epoch(agent->warp, 0);
    Touch touch = {.cluster = (uint32_t)order_cluster(check->block->cluster),
                   .component = own.component,
                   .time = own.time,
                   .pc = agent->pc,
                   .flags = flags_of(access)};
    if (touch.flags & TOUCH_WRITE) touch.statement = statement_of(check, agent->pc);
    if (!access->op && access->kind == ACCESS_WRITE)
        touch.instance = order_store_number(agent->warp);
    if (access->op) {
        Epoch epoch = order_epoch_of(access->op, agent->lane, access->kind == ACCESS_READ);
        touch.component = epoch.component;
        touch.time = epoch.time;
        touch.lanes = own.component + agent->lane;
        touch.start = (uint32_t)agent->async;
    } else if (access->stride) {
        touch.start = (uint32_t)address - agent->lane * access->stride;
        touch.stride = (uint16_t)access->stride;
    } else if (access->lanes || access->bytes <= access->piece || !access->piece) {
        touch.lanes = lanes_of(access);
    } else {
        touch.start = (uint32_t)address;
        touch.stride = (uint16_t)access->piece;
    }
    return touch;
}

static Seen seen_of(const Access *access) {
    if (access->op) return order_seen_by(access->op, access->agent.lane);
    return order_seen(access->agent.warp, first_lane(lanes_of(access)));
}

/* The lanes that access the bytes of the granule; of an operation no matter what */
static uint32_t lanes_at(const Check *check, uint32_t bytes, uint64_t address) {
    const Touch *touch = &check->touch;
    if (touch->lanes || (touch->flags & TOUCH_OPERATION)) return touch->lanes;
    uint32_t lanes = 0;
    for (; bytes; bytes &= bytes - 1)
        lanes |= 1u << touch_thread(touch, address + first_lane(bytes)) % LANES;
    return lanes;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* The clock that must know the earlier access: that of the later one's proxy, if the earlier one is
 * in another. (Where the warning about overwritten reads has been given, it needs no fence.) */
static uint32_t clock_for(const Check *check, const Touch *old) {
    const Access *access = check->access;
    if (access->proxy == PROXY_MAPS) return VIEW_MAPS;
    bool fence = access->proxy == PROXY_ASYNC && !(old->flags & TOUCH_ASYNC) &&
                 ((old->flags & TOUCH_WRITE) ||
                  !finding_passed(check->block->machine, P0753, access->agent.pc));
    return !fence ? VIEW_GENERIC : check->home ? VIEW_ASYNC_SHARED : VIEW_ASYNC_GLOBAL;
}

/* The proxy fence that raises this clock */
static const char *fence_of(uint32_t clock) {
    return clock == VIEW_MAPS ? "fence.proxy.tensormap::generic" : "fence.proxy.async";
}

static bool same_operation(const Touch *a, const Touch *b) {
    return (a->flags & b->flags & TOUCH_OPERATION) && a->cluster == b->cluster &&
           a->component == b->component && a->start == b->start && a->lanes == b->lanes;
}

/* The earlier access was by threads of a warp. Of its lanes in `mask`: those that are unknown to
 * the performer, which is the lane `lane`, or an operation if it is LANES. */
static uint32_t unknown_lanes(const Check *check, const Touch *old, uint32_t mask, uint32_t lane,
                              uint32_t clock) {
    Seen other = {0};
    const Seen *seen = &check->seen;
    if (lane < LANES) {
        other = check->same_view ? check->seen : order_seen(check->access->agent.warp, lane);
        other.self = order_epoch(check->access->agent.warp, lane).component;
        seen = &other;
    }
    return order_unknown(seen, clock, old->cluster, old->component / LANES, mask, old->time);
}

/* The lanes that access this byte. *end: the next byte that others may access */
static uint32_t lanes_of_byte(const Touch *touch, uint64_t address, uint64_t *end) {
    if (touch->lanes) return touch->lanes;
    uint32_t thread = touch_thread(touch, address),
             past = touch->start + (thread + 1 - touch->component) * touch->stride;
    uint64_t left = past - (uint32_t)address;
    if (*end > address + left) *end = address + left;
    return 1u << thread % LANES;
}

/* Is the earlier access unknown to this lane, or to the operation if it is LANES? `mask`: lanes of
 * the earlier one */
static bool is_unknown(const Check *check, const Touch *old, uint32_t mask, uint32_t lane,
                       uint32_t clock) {
    if (!(old->flags & TOUCH_OPERATION)) return unknown_lanes(check, old, mask, lane, clock) != 0;
    Seen seen = order_seen(check->access->agent.warp, lane);
    return !order_knows(&seen, clock, old->cluster, (Epoch){old->component, old->time});
}

/* The bytes at which the earlier access is unknown to a lane that accesses them now. Looks once at
 * each run of bytes that the same lanes access on both sides. */
static uint32_t unknown_runs(const Check *check, const Touch *old, uint32_t bytes, uint64_t address,
                             uint32_t clock) {
    uint32_t unknown = 0;
    while (bytes) {
        uint64_t at = address + first_lane(bytes), end = address + GRANULE;
        uint32_t mask = old->flags & TOUCH_OPERATION ? 0 : lanes_of_byte(old, at, &end);
        uint32_t lanes = check->access->op ? 1 : lanes_of_byte(&check->touch, at, &end);
        uint32_t run = bytes & ((1u << (end - address)) - 1);
        bool found = false;
        for (; lanes && !found; lanes &= lanes - 1)
            found =
                is_unknown(check, old, mask, check->access->op ? LANES : first_lane(lanes), clock);
        if (found) unknown |= run;
        bytes &= ~run;
    }
    return unknown;
}

/* Each thread accesses the bytes that it accessed itself */
static bool same_pieces(const Touch *a, const Touch *b) {
    return !a->lanes && !b->lanes && !((a->flags | b->flags) & TOUCH_OPERATION) &&
           a->cluster == b->cluster && a->component == b->component && a->start == b->start &&
           a->stride == b->stride;
}

static bool is_one_lane(uint32_t lanes) { return lanes && (lanes & (lanes - 1)) == 0; }

static uint32_t unknown_of_operation(const Check *check, const Touch *old, uint32_t bytes,
                                     uint64_t address, uint32_t clock, bool *everywhere) {
    Epoch epoch = {old->component, old->time};
    if (same_operation(&check->touch, old)) return 0;
    if (check->access->op || check->same_view)
        return order_knows(&check->seen, clock, old->cluster, epoch) ? 0 : bytes;
    *everywhere = false;
    return unknown_runs(check, old, bytes, address, clock);
}

/* Of these bytes, those at which the earlier access is unknown, by the clock */
static uint32_t unknown_bytes(const Check *check, const Touch *old, uint32_t bytes,
                              uint64_t address, uint32_t clock, bool *everywhere) {
    if (old->flags & TOUCH_OPERATION)
        return unknown_of_operation(check, old, bytes, address, clock, everywhere);
    uint32_t mask = old->lanes ? old->lanes : ALL_LANES << old->component % LANES;
    if (check->access->op || check->same_view) {
        Seen seen = check->seen;
        if (!check->access->op) seen.self = UINT32_MAX;
        if (!order_unknown(&seen, clock, old->cluster, old->component / LANES, mask, old->time))
            return 0;
    }
    if (same_pieces(&check->touch, old) && check->access->proxy == PROXY_GENERIC) return 0;
    /* one thread on both sides */
    *everywhere = *everywhere && is_one_lane(old->lanes) &&
                  (check->access->op || is_one_lane(check->touch.lanes));
    return unknown_runs(check, old, bytes, address, clock);
}

static uint32_t unordered_bytes(void *data, const Touch *old, uint32_t bytes, uint64_t address,
                                bool *everywhere) {
    const Check *check = data;
    return unknown_bytes(check, old, bytes, address, clock_for(check, old), everywhere);
}

/* ---- what needs no order --------------------------------------------------------------------- */

/* Number of the warp of a component in its cluster: of a thread, or of the issuer of an operation
 */
static uint32_t warp_of(const Touch *touch) {
    return (touch->flags & TOUCH_OPERATION ? touch->lanes : touch->component) / LANES;
}

static bool same_block(const Check *check, const Touch *old) {
    uint32_t warps = check->block->warp_count;
    return old->cluster == check->touch.cluster &&
           warp_of(old) / warps == warp_of(&check->touch) / warps;
}

/* Two strong accesses whose scopes include each other; or one execution of an instruction of a
 * warp, of whose stores to one address one has effect. */
static bool is_allowed(const Check *check, const Touch *old) {
    const Touch *fresh = &check->touch;
    uint32_t both = fresh->flags & old->flags, any = fresh->flags | old->flags;
    if ((both & TOUCH_STRONG) && (!(any & TOUCH_BLOCK) || same_block(check, old)) &&
        (!(any & TOUCH_CLUSTER) || old->cluster == fresh->cluster))
        return true;
    return !(any & TOUCH_OPERATION) && (both & TOUCH_WRITE) && old->cluster == fresh->cluster &&
           old->component / LANES == fresh->component / LANES && old->time == fresh->time &&
           old->instance == fresh->instance && old->pc == fresh->pc;
}

/* Touches have the lower 32 bits of the number. */
static uint64_t cluster_of(const Check *check, const Touch *touch) {
    uint64_t now = order_cluster(check->block->cluster);
    return now + (uint64_t)(int32_t)(touch->cluster - (uint32_t)now);
}

static RaceSide side_of(const Check *check, const Touch *touch, uint32_t lanes) {
    uint64_t cluster = cluster_of(check, touch);
    const OrderLaunch *launch = order_launch_of(check->block->machine, cluster);
    bool operation = touch->flags & TOUCH_OPERATION;
    uint32_t rank = warp_of(touch) / launch->warp_count;
    uint64_t first = (cluster - launch->first) * launch->cluster_size;
    return (RaceSide){.actor = {.program = launch->program,
                                .launch = launch->index,
                                .block = first + rank,
                                .rank = rank,
                                .warp = warp_of(touch) % launch->warp_count,
                                .lanes = operation ? 0 : lanes,
                                .pc = touch->pc,
                                .async = operation},
                      .kind = touch->flags & TOUCH_ATOMIC  ? ACCESS_ATOMIC
                              : touch->flags & TOUCH_WRITE ? ACCESS_WRITE
                                                           : ACCESS_READ,
                      .async = (touch->flags & TOUCH_ASYNC) != 0,
                      .cluster = cluster,
                      .component = touch->component,
                      .time = touch->time,
                      .number = operation ? touch->start : 0};
}

/* True if it is decided after this access, see Rewrite. (stmatrix writes its rows only after it
 * has accessed all of them.) */
static bool may_rewrite(const Check *check, const Touch *old) {
    const Touch *fresh = &check->touch;
    uint32_t both = fresh->flags & old->flags, any = fresh->flags | old->flags;
    return (both & TOUCH_WRITE) && !(any & (TOUCH_STRONG | TOUCH_ATOMIC)) &&
           old->statement == fresh->statement &&
           cluster_of(check, old) >= order_launch_of(check->block->machine, UINT64_MAX)->first &&
           check->block->program->code[old->pc].opcode != OP_STMATRIX;
}

/* The race at these bytes, which are adjacent */
static Race race_at(Check *check, const Touch *old, uint32_t bytes, uint64_t address,
                    uint32_t clock) {
    bool everywhere = true;
    Check earlier = {.touch = *old};
    bool fence = clock != VIEW_GENERIC &&
                 !unknown_bytes(check, old, bytes, address, VIEW_GENERIC, &everywhere);
    return (Race){.earlier = side_of(check, old, lanes_at(&earlier, bytes, address)),
                  .later = side_of(check, &check->touch, lanes_at(check, bytes, address)),
                  .range = {check->home ? SPACE_SHARED : SPACE_GLOBAL,
                            check->home ? check->home->rank : 0, address + first_lane(bytes),
                            (uint32_t)__builtin_popcount(bytes)},
                  .fence = fence ? fence_of(clock) : NULL};
}

static void add_rewrite(Check *check, const Race *race) {
    struct RaceRecords *records = check->block->machine->race;
    const Async *op = check->access->op;
    Rewrite rewrite = {.race = *race, .data = check->data + (race->range.address - check->address)};
    memcpy(rewrite.bytes, rewrite.data, race->range.bytes);
    vec_push(check->block->machine->arena, &records->rewrites, rewrite);
    records->operation = op;
    records->operation_number = op ? op->agent.async : 0;
}

static Conflict judge_conflict(void *data, const Touch *old, uint32_t bytes, uint64_t address,
                               bool *everywhere) {
    Check *check = data;
    if (is_allowed(check, old)) return CONFLICT_ALLOWED;
    uint32_t clock = clock_for(check, old);
    while (bytes) {
        uint32_t first = first_lane(bytes),
                 length = (uint32_t)__builtin_ctz(~(bytes >> first)); /* adjacent bytes */
        uint32_t some = ((1u << length) - 1) << first;
        Race race = race_at(check, old, some, address, clock);
        if (!may_rewrite(check, old))
            return race_report(check->block->machine, &race) ? CONFLICT_ALLOWED : CONFLICT_RACE;
        add_rewrite(check, &race);
        *everywhere = false;
        bytes &= ~some;
    }
    return CONFLICT_ALIKE;
}

/* True if the access belongs to the operation that has rewritten: it may not have written yet. */
static bool rewrites_on(const struct RaceRecords *records, const Access *access) {
    return access->op && access->op == records->operation &&
           access->op->agent.async == records->operation_number;
}

bool race_finish(Machine *machine) {
    bool fine = true;
    size_t count = machine->race ? machine->race->rewrites.count : 0;
    for (size_t i = 0; i < count && fine; i++) {
        const Rewrite *rewrite = &machine->race->rewrites.items[i];
        fine = !memcmp(rewrite->bytes, rewrite->data, rewrite->race.range.bytes) ||
               race_report(machine, &rewrite->race);
    }
    if (count) machine->race->rewrites.count = 0;
    return fine;
}

/* ---- loads of constant data ------------------------------------------------------------------ */

/* `.nc` and ldu: the bytes must not be written while the kernel runs (PTX ISA 9.7.9) */
static bool reads_constant(const Access *access) {
    if (access->kind != ACCESS_READ || access->op) return false;
    const Inst *inst = &access->agent.warp->block->program->code[access->agent.pc];
    return inst->opcode == OP_LDU || (inst->opcode == OP_LD && inst->mods.choice == LOAD_CONSTANT);
}

/* Has the launch written some of these bytes? False: a finding ends the run. */
static bool check_piece(Check *check, const Plane *plane, uint64_t address, uint64_t bytes) {
    Machine *machine = check->block->machine;
    uint32_t first = (uint32_t)order_launch_of(machine, UINT64_MAX)->first, common;
    for (uint64_t end = address + bytes, at = address; at < end;) {
        uint64_t low = at & ~(uint64_t)(GRANULE - 1),
                 stop = end < low + GRANULE ? end : low + GRANULE;
        const Touch *touch =
            shadow_written(machine->race->shadow, plane, at, (uint32_t)(stop - at), first, &common);
        if (touch) {
            common &= ~((common >> first_lane(common)) + 1) << first_lane(common);
            Race race = race_at(check, touch, common, low, VIEW_GENERIC);
            return race_report_constant(machine, &race);
        }
        at = stop;
    }
    return true;
}

static bool check_constant(Check *check, const Plane *plane, uint64_t address) {
    const Access *access = check->access;
    if (!access->stride) return check_piece(check, plane, address, access->bytes);
    uint32_t first = first_lane(access->together);
    for (uint32_t left = access->together; left; left &= left - 1)
        if (!check_piece(check, plane, address + (first_lane(left) - first) * access->stride,
                         access->piece))
            return false;
    return true;
}

/* ---- the check ------------------------------------------------------------------------------- */

static Plane *plane_of_block(Block *home) {
    if (!home->plane)
        home->plane = plane_new(home->machine->arena, SHARED_BASE, home->shared_bytes);
    return home->plane;
}

static Plane *plane_of_region(Machine *machine, const Region *region) {
    struct RaceRecords *races = machine->race;
    for (size_t i = 0; i < races->regions.count; i++)
        if (races->regions.items[i].base == region->base) return races->regions.items[i].plane;
    Plane *plane = plane_new(machine->arena, region->base, region->bytes);
    vec_push(machine->arena, &races->regions, (RegionPlane){region->base, plane});
    return plane;
}

bool race_check(Block *block, const Access *access, Block *home, const Region *region,
                uint64_t address, const unsigned char *data) {
    Machine *machine = block->machine;
    if (region && (region->read_only || region->unread)) return true;
    if (!machine->race) {
        machine->race = NEW(machine->arena, struct RaceRecords);
        machine->race->shadow = shadow_new(machine->arena);
    }
    Plane *plane = home ? plane_of_block(home) : plane_of_region(machine, region);
    if (machine->race->rewrites.count && !rewrites_on(machine->race, access) &&
        !race_finish(machine))
        return false;
    Check *check = &machine->race->check;
    check->block = access->agent.warp->block;
    check->access = access;
    check->home = home;
    check->address = address;
    check->data = data;
    const Warp *warp = access->agent.warp;
    bool again = access->series && access->series == check->series;
    if (again && (access->op || check->all_same)) {
        if (!access->op) check->touch.lanes = lanes_of(access);
    } else {
        check->series = access->series;
        check->touch = touch_of(check, address);
        check->seen = seen_of(access);
        check->all_same =
            !access->op && access->together && order_same_view(warp, access->together);
        check->same_view = access->op || check->all_same || order_same_view(warp, lanes_of(access));
    }
    if (!home && plane_written(plane) && reads_constant(access) &&
        !check_constant(check, plane, address))
        return false;
    bool part = access->op && access->series;
    Judge judge = {unordered_bytes,          judge_conflict, check,
                   check->block->warp_count, part,           part && again};
    Shadow *shadow = machine->race->shadow;
    return access->stride
               ? shadow_access_lanes(shadow, plane, &check->touch, address, access->piece,
                                     access->together, &judge)
               : shadow_access(shadow, plane, &check->touch, address, access->bytes, &judge);
}

void race_clear(Block *block) {
    if (block->plane) plane_clear(block->machine->race->shadow, block->plane);
}
