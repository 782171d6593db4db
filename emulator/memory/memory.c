/* Memory: the one function that every access passes through, and ld, st, atom, red.
 *
 * Global memory is the launch's arrays, each a region with unmapped gaps around it, so that
 * bounds are exact. Shared and local memory have one state byte per byte: is it written, does it
 * belong to an mbarrier. */
#include "emulator/races/flags.h"
#include "emulator/order/lifecycle.h"
#include "emulator/order/order.h"
#include "emulator/races/race.h"

typedef struct Place {
    unsigned char *data, *state; /* NULL: not mapped; no state */
    bool read_only;
    Space space;
    uint64_t offset; /* in its space or region */
    const Region *region;
    Block *home; /* shared memory: the owning block */
} Place;

const Region *memory_region(const Machine *machine, uint64_t address) {
    bool is_variable = address < GLOBAL_BASE && machine->variables->region_count > 0;
    const Region *regions = is_variable ? machine->variables->regions : machine->regions;
    uint32_t low = 0, high = is_variable ? machine->variables->region_count : machine->region_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (regions[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &regions[low - 1] : NULL;
}

static Space space_of(uint64_t address, uint64_t *offset) {
    static const struct {
        uint64_t base;
        Space space;
    } windows[] = {
        {WINDOW_SHARED, SPACE_SHARED}, {WINDOW_LOCAL, SPACE_LOCAL}, {WINDOW_PARAM, SPACE_PARAM}};
    for (size_t i = 0; i < COUNT_OF(windows); i++)
        if (address - windows[i].base < WINDOW_BYTES) {
            *offset = address - windows[i].base;
            return windows[i].space;
        }
    *offset = address;
    return SPACE_GLOBAL;
}

static bool inside(uint64_t at, uint64_t bytes, uint64_t size) {
    return at <= size && bytes <= size - at;
}

static Place locate(const Block *block, const Access *access) {
    Place place = {.space = access->space, .offset = access->address};
    /* the address of a function's parameter is one of local memory */
    bool of_function = place.space == SPACE_PARAM && access->address >= WINDOW_LOCAL;
    if (place.space == SPACE_GENERIC || of_function)
        place.space = space_of(access->address, &place.offset);
    const Program *program = block->program;
    const Warp *warp = access->agent.warp;
    switch (place.space) {
    case SPACE_SHARED: {
        Block *home = cluster_block(block, place.offset);
        bool foreign = access->space == SPACE_SHARED && !access->cluster && home != block;
        if (!home || foreign) break;
        place.home = home;
        place.offset &= OFFSET_MASK;
        if (place.offset >= SHARED_BASE &&
            inside(place.offset - SHARED_BASE, access->bytes, home->shared_bytes)) {
            place.data = home->shared + (place.offset - SHARED_BASE);
            place.state = home->shared_state + (place.offset - SHARED_BASE);
        }
        break;
    }
    case SPACE_PARAM:
        place.read_only = true;
        if (place.offset >= PARAMETER_BASE &&
            inside(place.offset - PARAMETER_BASE, access->bytes, program->parameter_bytes))
            place.data = block->machine->parameters + (place.offset - PARAMETER_BASE);
        break;
    case SPACE_LOCAL:
        if (inside(place.offset, access->bytes, program->local_bytes)) {
            place.data =
                warp->local + (size_t)access->agent.lane * program->local_bytes + place.offset;
            place.state = warp->local_state + (size_t)access->agent.lane * program->local_bytes +
                          place.offset;
        }
        break;
    case SPACE_CONST:
    case SPACE_GLOBAL:
        place.space = SPACE_GLOBAL;
        if (access->space != SPACE_GENERIC &&
            (access->space == SPACE_CONST) != is_constant_address(place.offset))
            break;
        place.region = memory_region(block->machine, place.offset);
        if (place.region &&
            inside(place.offset - place.region->base, access->bytes, place.region->bytes)) {
            place.data = place.region->data + (place.offset - place.region->base);
            place.read_only = place.region->read_only;
        }
        break;
    case SPACE_GENERIC: break;
    }
    return place;
}

static const char *verb(const Access *access) {
    return access->kind == ACCESS_READ    ? "reads"
           : access->kind == ACCESS_WRITE ? "writes"
                                          : "updates";
}

static void describe(const Block *block, const Access *access, Str *out) {
    Place place = locate(block, access);
    if (place.space == SPACE_SHARED && !place.home) {
        str_printf(out, "0x%llx, an address of another block of the cluster",
                   (unsigned long long)place.offset);
        return;
    }
    MemoryRange range = {place.space, place.home ? place.home->rank : 0, place.offset,
                         access->bytes};
    name_memory(block->machine, &range, out);
}

static bool complain(Block *block, Code code, const Access *access, const char *what) {
    Str where = str_new(block->machine->arena);
    describe(block, access, &where);
    Agent agent = access->agent;
    agent.alone = !agent.async && !access->lanes && access->bytes == access->piece;
    return finding(block, code, agent, "%s %llu bytes at %s%s", verb(access),
                   (unsigned long long)access->bytes, where.text, what);
}

/* True if all bytes are written and none belongs to a barrier; tests eight at a time */
static bool state_is_valid(const unsigned char *state, uint64_t bytes, uint64_t *bad) {
    uint64_t i = 0, word;
    for (; i + 8 <= bytes; i += 8) {
        memcpy(&word, state + i, 8);
        if (word != UINT64_C(0x0101010101010101) * BYTE_WRITTEN) break;
    }
    for (; i < bytes; i++)
        if (state[i] != BYTE_WRITTEN) {
            *bad = i;
            return false;
        }
    return true;
}

static bool holds_barrier(const unsigned char *state, uint64_t bytes) {
    return memchr(state, BYTE_BARRIER, bytes) != NULL;
}

/* A copy may be on its way there. */
static const char *unwritten(const Block *block, const Access *access) {
    const Machine *machine = block->machine;
    Place place = locate(block, access);
    const Async *op = place.home ? async_to(place.home, place.offset) : NULL;
    const char *full = place.home ? race_unawaited(access->agent.warp, place.offset) : NULL;
    if (!op && full)
        return arena_printf(machine->arena,
                            ", which no thread has written: it has not waited for %s", full);
    if (!op) return ", which no thread has written";
    Actor actor = actor_of(&op->agent);
    Str text = str_new(machine->arena);
    str_add(&text, ", which ");
    name_actor(machine, &actor, &text);
    str_printf(&text, " (%s) has not written yet: no wait for its mbarrier, %s, between",
               name_place(machine, &actor), name_barrier(machine, op->target, op->barrier));
    return text.text;
}

static bool check_state(Block *block, const Access *access, unsigned char *state, Space space) {
    uint64_t bad = 0;
    if (access->kind == ACCESS_WRITE) {
        if (space == SPACE_SHARED && holds_barrier(state, access->bytes))
            return complain(block, P0715, access, ": an mbarrier is stored there");
        memset(state, BYTE_WRITTEN, access->bytes);
        return true;
    }
    if (state_is_valid(state, access->bytes, &bad)) return true;
    Access piece = *access;
    piece.bytes = access->piece ? access->piece : access->bytes;
    if (access->piece && access->agent.async == 0)
        piece.agent.lane += (uint32_t)(bad / access->piece);
    piece.address += access->piece ? bad / access->piece * access->piece : bad;
    if (state[bad] & BYTE_BARRIER)
        return complain(block, P0715, &piece, ": an mbarrier is stored there");
    return complain(block, P0712, &piece, unwritten(block, &piece));
}

unsigned char *memory_access(Block *block, const Access *access) {
    if (access->alignment > 1 && access->address % access->alignment) {
        Str need = str_new(block->machine->arena);
        str_printf(&need, ": the address must be a multiple of %u", access->alignment);
        complain(block, P0711, access, need.text);
        return NULL;
    }
    Place place = locate(block, access);
    if (!place.data) {
        Access first = *access;
        for (first.bytes = access->piece ? access->piece : access->bytes;
             first.bytes < access->bytes && locate(block, &first).data;) {
            first.address += access->piece; /* reports the first lane that is out of bounds */
            first.agent.lane++;
            if (first.address - access->address + first.bytes >= access->bytes) break;
        }
        complain(block, P0710, &first, ": the kernel has no memory there");
        return NULL;
    }
    if (place.home && place.home->exited &&
        !complain(block, P0742, access, ": that block has exited"))
        return NULL;
    if (place.read_only && access->kind != ACCESS_READ) {
        complain(block, P0714, access,
                 place.space == SPACE_PARAM          ? ": parameters cannot be written"
                 : is_constant_address(place.offset) ? ": it is in constant memory"
                                                     : ": it is an `in` tensor");
        return NULL;
    }
    if (place.home && place.home != access->agent.warp->block)
        lifecycle_reaches(&access->agent, place.home);
    bool writes = place.home && access->kind != ACCESS_READ;
    if (writes && place.home->unwaited &&
        !matrices_check_write(place.home, access, (uint32_t)place.offset))
        return NULL;
    if (access->kind != ACCESS_READ && place.space == SPACE_GLOBAL)
        block->machine->written += access->bytes;
    if (place.state && !check_state(block, access, place.state, place.space)) return NULL;
    bool raced = place.home || place.region;
    if (block->machine->races && raced &&
        !race_check(block, access, place.home, place.region, place.offset, place.data))
        return NULL;
    return place.data;
}

/* ---- ld and st ------------------------------------------------------------------------------- */

static Space space_of_inst(const Inst *inst) {
    return inst->mods.space_count ? (Space)inst->mods.spaces[0] : SPACE_GENERIC;
}

static uint64_t address_of(const Warp *warp, const Operand *op, Space space, uint32_t lane) {
    uint64_t address = in_lane(warp, op, lane) + (uint64_t)op->add;
    return op->width == 4 || space == SPACE_SHARED ? (uint32_t)address : address;
}

/* Lanes whose pieces are adjacent (stride == piece) or identical (stride == 0) are one access. */
static bool common_stride(const uint64_t *address, uint32_t mask, uint64_t stride) {
    uint64_t next = address[0];
    if (mask != ALL_LANES) return false;
    for (uint32_t i = 1; i < LANES; i++) {
        next += stride;
        if (address[i] != next) return false;
    }
    return true;
}

/* The distance of adjacent lanes, if it is common, their pieces do not overlap, and it fits into a
 * record of the race detector; otherwise 0 */
static uint32_t stride_of(const uint64_t *address, uint32_t mask, uint32_t piece) {
    uint32_t rest = mask & (mask - 1), first = first_lane(mask);
    if (!rest) return 0;
    uint64_t distance = address[first_lane(rest)] - address[first], gap = first_lane(rest) - first,
             stride = gap == 1 ? distance : distance / gap;
    if (stride < piece || stride > UINT16_MAX) return 0;
    for (; rest; rest &= rest - 1)
        if (address[first_lane(rest)] != address[first] + (first_lane(rest) - first) * stride)
            return 0;
    return (uint32_t)stride;
}

static uint64_t load_element(const unsigned char *from, uint32_t bytes) {
    uint64_t value = 0;
    memcpy(&value, from, bytes);
    return value;
}

static uint64_t extend(Type type, uint64_t value) {
    uint32_t bits = 8u * type_rows[type].bytes;
    return type_is_signed(type) && bits < 64 && (value >> (bits - 1) & 1)
               ? value | UINT64_MAX << bits
               : value;
}

static void take(Warp *warp, const Inst *inst, const unsigned char *from, uint32_t lane) {
    uint32_t bytes = type_rows[inst_type(inst)].bytes;
    for (uint32_t i = 0; i < inst->vector; i++)
        put_lane(warp, &inst->ops[i], lane,
                 extend(inst_type(inst), load_element(from + i * bytes, bytes)));
}
static void give(const Warp *warp, const Inst *inst, const Operand *values, unsigned char *to,
                 uint32_t lane) {
    uint32_t bytes = type_rows[inst_type(inst)].bytes;
    for (uint32_t i = 0; i < inst->vector; i++) {
        uint64_t value = in_lane(warp, &values[i], lane);
        memcpy(to + i * bytes, &value, bytes);
    }
}

/* The inner loops for plain 32-bit elements */
static void take_all32(Warp *warp, const Inst *inst, const unsigned char *from) {
    uint32_t n = inst->vector;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t *to = (uint32_t *)(void *)(warp->banks[BANK_REGISTERS] + inst->ops[k].offset);
        for (uint32_t i = 0; i < LANES; i++) memcpy(&to[i], from + 4 * (i * n + k), 4);
    }
}
static void give_all32(const Warp *warp, const Inst *inst, const Operand *values,
                       unsigned char *to) {
    uint32_t n = inst->vector;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t *from = in32(warp, &values[k]);
        for (uint32_t i = 0; i < LANES; i++) memcpy(to + 4 * (i * n + k), &from[i], 4);
    }
}
static bool plain32(const Inst *inst, const Operand *values) {
    for (uint32_t k = 0; k < inst->vector; k++)
        if (values[k].width != 4) return false;
    return type_rows[inst_type(inst)].bytes == 4;
}

static void addresses(const Warp *warp, const Inst *inst, const Operand *op, uint32_t mask,
                      uint64_t *out) {
    Space space = space_of_inst(inst);
    if (mask == ALL_LANES && op->width == 8 && space != SPACE_SHARED) {
        const uint64_t *base = in64(warp, op);
        for (int i = 0; i < LANES; i++) out[i] = base[i] + (uint64_t)op->add;
        return;
    }
    if (mask == ALL_LANES && op->width == 4) {
        const uint32_t *base = in32(warp, op);
        for (int i = 0; i < LANES; i++) out[i] = (uint32_t)(base[i] + (uint32_t)op->add);
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1)
        out[first_lane(left)] = address_of(warp, op, space, first_lane(left));
}

static Access access_of(Block *block, Warp *warp, const Inst *inst, AccessKind kind, uint32_t lane,
                        uint64_t address) {
    uint32_t piece = (uint32_t)inst->vector * type_rows[inst_type(inst)].bytes;
    return (Access){.agent = agent_of(block, warp, lane),
                    .kind = kind,
                    .proxy = PROXY_GENERIC,
                    .space = space_of_inst(inst),
                    .address = address,
                    .bytes = piece,
                    .piece = piece,
                    .alignment = piece,
                    .cluster = inst->mods.cluster,
                    .strong = inst->mods.order > ORDER_WEAK,
                    .in_block = inst->mods.scope == SCOPE_CTA,
                    .in_cluster = inst->mods.scope == SCOPE_CLUSTER};
}
static bool is_local(Space space, uint64_t address) {
    return space == SPACE_LOCAL || ((space == SPACE_GENERIC || space == SPACE_PARAM) &&
                                    address - WINDOW_LOCAL < WINDOW_BYTES);
}

/* Not weak: these can also be part of a polling loop. */
static bool is_strong(const Inst *inst) { return inst->mods.order > ORDER_WEAK; }

/* Tells the order of accesses: each element is a location. */
static void order_loaded(Warp *warp, const Inst *inst, const unsigned char *from, uint32_t lane) {
    for (uint32_t i = 0; i < inst->vector; i++)
        order_load(warp, lane, from + i * type_rows[inst_type(inst)].bytes, (Order)inst->mods.order,
                   (Scope)inst->mods.scope);
}
static void order_loads(Warp *warp, const Inst *inst, const unsigned char *from, uint32_t stride) {
    if (!is_strong(inst)) return;
    for (uint32_t lane = 0; lane < LANES; lane++)
        order_loaded(warp, inst, from + (size_t)lane * stride, lane);
}
static void order_stored(Warp *warp, const Inst *inst, const unsigned char *to, uint32_t lane) {
    uint32_t bytes = type_rows[inst_type(inst)].bytes;
    for (uint32_t i = 0; i < inst->vector; i++)
        order_store(warp, lane, to + i * bytes, (Order)inst->mods.order, (Scope)inst->mods.scope);
}
/* The access of one lane, or of lanes with adjacent pieces */
static void order_stores(Warp *warp, const Inst *inst, const Access *access,
                         const unsigned char *to) {
    if (!warp->order) return;
    if (!is_strong(inst)) order_overwrite(warp->block, to, access->bytes);
    for (uint64_t at = 0; is_strong(inst) && at < access->bytes; at += access->piece)
        order_stored(warp, inst, to + at, access->agent.lane + (uint32_t)(at / access->piece));
}

/* How the race detector sees the lanes of a weak access: as one, or as a series */
static void set_series(Block *block, const Inst *inst, const uint64_t *address, uint32_t mask,
                       Access *access) {
    if (is_strong(inst)) return;
    access->together = mask;
    access->series = access_series(block);
    if (!is_local(access->space, access->address))
        access->stride = stride_of(address, mask, access->piece);
}

static bool states_fit(const Access *access, unsigned char *state) {
    uint64_t bad;
    for (uint32_t left = access->together; left; left &= left - 1) {
        unsigned char *at = state + (first_lane(left) - access->agent.lane) * access->stride;
        if (access->kind == ACCESS_READ ? !state_is_valid(at, access->piece, &bad)
                                        : holds_barrier(at, access->piece))
            return false;
    }
    return true;
}

/* The bytes of the first lane if the lanes of the access can perform it together. STEP_NEXT
 * without them: each of them must do so alone, since one may do something wrong, or something
 * that must be recorded for each. */
static unsigned char *access_together(Block *block, const Access *access, Step *step) {
    uint32_t mask = access->together, stride = access->stride;
    bool writes = access->kind != ACCESS_READ;
    Access span = *access;
    span.bytes =
        (31u - (uint32_t)__builtin_clz(mask) - first_lane(mask)) * (uint64_t)stride + access->piece;
    *step = STEP_NEXT;
    Place place = locate(block, &span);
    if (!place.data || (place.home && place.home != block) ||
        (writes && (place.read_only || (place.home && place.home->unwaited))) ||
        (access->address | stride) % access->alignment ||
        (place.state && !states_fit(access, place.state)))
        return NULL;
    if (writes && place.space == SPACE_GLOBAL)
        block->machine->written += access->piece * (uint32_t)__builtin_popcount(mask);
    for (uint32_t left = writes && place.state ? mask : 0; left; left &= left - 1)
        memset(place.state + (first_lane(left) - access->agent.lane) * stride, BYTE_WRITTEN,
               access->piece);
    if (block->machine->races && (place.home || place.region) &&
        !race_check(block, access, place.home, place.region, place.offset, place.data)) {
        *step = STEP_FAULT;
        return NULL;
    }
    return place.data;
}

/* Flags are looked for in global memory. */
static bool is_global(Space space, uint64_t address) {
    uint64_t offset;
    return space == SPACE_GLOBAL ||
           (space == SPACE_GENERIC && space_of(address, &offset) == SPACE_GLOBAL);
}

static void use_flags(Warp *warp, const Inst *inst, uint32_t mask, const uint64_t *address,
                      FlagUse use) {
    uint32_t bytes = (uint32_t)inst->vector * type_rows[inst_type(inst)].bytes;
    for (; is_strong(inst) && mask; mask &= mask - 1)
        if (is_global(space_of_inst(inst), address[first_lane(mask)]))
            flags_use(warp, inst, first_lane(mask), address[first_lane(mask)], bytes, use);
}

static Step run_load(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint64_t address[LANES];
    addresses(warp, inst, &inst->ops[inst->vector], mask, address);
    Access access =
        access_of(block, warp, inst, ACCESS_READ, first_lane(mask), address[first_lane(mask)]);
    if (is_strong(inst)) {
        if (is_global(access.space, access.address) && schedule_polls(block, inst))
            return STEP_AGAIN;
        warp->split->suspect = warp->split->tests = true;
        use_flags(warp, inst, mask, address, FLAG_LOAD);
    }
    bool local = is_local(access.space, access.address);
    if (!local && common_stride(address, mask, access.piece)) {
        access.bytes = (uint64_t)access.piece * LANES;
        const unsigned char *from = memory_access(block, &access);
        if (!from) return STEP_FAULT;
        order_loads(warp, inst, from, access.piece);
        if (plain32(inst, inst->ops)) {
            take_all32(warp, inst, from);
            return STEP_NEXT;
        }
        for (uint32_t lane = 0; lane < LANES; lane++)
            take(warp, inst, from + (size_t)lane * access.piece, lane);
        return STEP_NEXT;
    }
    if (!local && common_stride(address, mask, 0)) {
        access.lanes = mask;
        const unsigned char *from = memory_access(block, &access);
        if (!from) return STEP_FAULT;
        order_loads(warp, inst, from, 0);
        for (uint32_t lane = 0; lane < LANES; lane++) take(warp, inst, from, lane);
        return STEP_NEXT;
    }
    set_series(block, inst, address, mask, &access);
    if (access.stride) {
        Step step;
        const unsigned char *from = access_together(block, &access, &step);
        for (uint32_t left = from ? mask : 0; left; left &= left - 1)
            take(warp, inst, from + (first_lane(left) - first_lane(mask)) * access.stride,
                 first_lane(left));
        if (from || step == STEP_FAULT) return step;
        access.stride = 0;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        access.agent.lane = first_lane(left);
        access.address = address[access.agent.lane];
        const unsigned char *from = memory_access(block, &access);
        if (!from) return STEP_FAULT;
        if (is_strong(inst)) order_loaded(warp, inst, from, access.agent.lane);
        take(warp, inst, from, access.agent.lane);
    }
    return STEP_NEXT;
}

static Step run_store(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    uint64_t address[LANES];
    const Operand *values = &inst->ops[1];
    addresses(warp, inst, &inst->ops[0], mask, address);
    Access access =
        access_of(block, warp, inst, ACCESS_WRITE, first_lane(mask), address[first_lane(mask)]);
    effect(block, warp);
    order_store_begins(warp);
    use_flags(warp, inst, mask, address, FLAG_STORE);
    if (!is_local(access.space, access.address) && common_stride(address, mask, access.piece)) {
        access.bytes = (uint64_t)access.piece * LANES;
        unsigned char *to = memory_access(block, &access);
        if (!to) return STEP_FAULT;
        order_stores(warp, inst, &access, to);
        if (plain32(inst, values))
            give_all32(warp, inst, values, to);
        else
            for (uint32_t lane = 0; lane < LANES; lane++)
                give(warp, inst, values, to + (size_t)lane * access.piece, lane);
        return STEP_NEXT;
    }
    set_series(block, inst, address, mask, &access);
    if (access.stride) {
        Step step;
        unsigned char *to = access_together(block, &access, &step);
        for (uint32_t left = to ? mask : 0; left; left &= left - 1) {
            unsigned char *at = to + (first_lane(left) - first_lane(mask)) * access.stride;
            if (warp->order) order_overwrite(block, at, access.piece);
            give(warp, inst, values, at, first_lane(left));
        }
        if (to || step == STEP_FAULT) return step;
        access.stride = 0;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        access.agent.lane = first_lane(left);
        access.address = address[access.agent.lane];
        unsigned char *to = memory_access(block, &access);
        if (!to) return STEP_FAULT;
        order_stores(warp, inst, &access, to);
        give(warp, inst, values, to, access.agent.lane);
    }
    return STEP_NEXT;
}

/* ---- atomics --------------------------------------------------------------------------------- */

static uint16_t reduce_half(Reduce reduce, bool brain, uint16_t a, uint16_t b) {
    double x = (double)(brain ? bfloat_to_float(a) : half_to_float(a)),
           y = (double)(brain ? bfloat_to_float(b) : half_to_float(b));
    if (reduce == REDUCE_ADD) {
        double sum = x + y; /* exact: at most 41 bits (f16), or absorbed without a tie (bf16) */
        return sum != sum ? 0x7fff : brain ? bfloat_from_double(sum) : half_from_double(sum);
    }
    if (x != x || y != y) return x != x ? (y != y ? 0x7fff : b) : a;
    if (x == y) return reduce == REDUCE_MAX ? a & b : a | b;
    return (x < y) == (reduce == REDUCE_MIN) ? a : b;
}

static uint64_t reduce_float(Reduce reduce, Type type, uint64_t old, uint64_t value) {
    float a, b;
    double x, y;
    uint32_t low = (uint32_t)old, other = (uint32_t)value;
    if (type == T_F64) {
        memcpy(&x, &old, 8);
        memcpy(&y, &value, 8);
        x += y;
        memcpy(&old, &x, 8);
        return old;
    }
    if (type == T_F32) {
        memcpy(&a, &low, 4);
        memcpy(&b, &other, 4);
        a += b;
        memcpy(&low, &a, 4);
        return a != a ? 0x7fffffffu : low;
    }
    bool brain = type == T_BF16 || type == T_BF16X2, pair = type_rows[type].kind == TYPE_PACKED;
    uint32_t out = reduce_half(reduce, brain, (uint16_t)old, (uint16_t)value);
    return pair ? out | (uint32_t)reduce_half(reduce, brain, (uint16_t)(old >> 16),
                                              (uint16_t)(value >> 16))
                            << 16
                : out;
}

static uint64_t reduce_integer(Reduce reduce, Type type, uint64_t old, uint64_t value,
                               uint64_t compare) {
    int64_t a = (int64_t)extend(type, old), b = (int64_t)extend(type, value);
    bool less = type_is_signed(type) ? a < b : old < value;
    switch (reduce) {
    case REDUCE_ADD: return old + value;
    case REDUCE_MIN: return less ? old : value;
    case REDUCE_MAX: return less ? value : old;
    case REDUCE_AND: return old & value;
    case REDUCE_OR: return old | value;
    case REDUCE_XOR: return old ^ value;
    case REDUCE_EXCH: return value;
    case REDUCE_CAS: return old == compare ? value : old;
    case REDUCE_INC: return old >= value ? 0 : old + 1;
    case REDUCE_DEC: return old == 0 || old > value ? value : old - 1;
    case REDUCE_NONE: break;
    }
    return old;
}

uint64_t memory_reduce(Reduce reduce, Type type, unsigned char *at, uint64_t value,
                       uint64_t compare) {
    uint32_t bytes = type_rows[type].bytes;
    uint64_t old = load_element(at, bytes);
    bool by_float = type_is_float(type) && reduce != REDUCE_EXCH && reduce != REDUCE_CAS;
    uint64_t fresh = by_float ? reduce_float(reduce, type, old, value)
                              : reduce_integer(reduce, type, old, value, compare);
    memcpy(at, &fresh, bytes);
    return old;
}

void memory_reduce_all(Reduce reduce, Type type, unsigned char *to, const unsigned char *from,
                       uint32_t bytes) {
    uint32_t each = type_rows[type].bytes;
    for (uint32_t at = 0; at + each <= bytes; at += each)
        memory_reduce(reduce, type, to + at, load_element(from + at, each), 0);
}

/* An atomic operation that writes what it reads, whatever that is: programs poll by it. */
static bool only_reads(const Warp *warp, const Inst *inst, const Operand *values, uint32_t lane) {
    uint64_t value = in_lane(warp, &values[0], lane);
    switch ((Reduce)inst->mods.reduce) {
    case REDUCE_ADD: return value == 0 && !type_is_float(inst_type(inst));
    case REDUCE_OR:
    case REDUCE_XOR: return value == 0;
    case REDUCE_AND: return value == UINT64_MAX >> (64 - 8 * type_rows[inst_type(inst)].bytes);
    case REDUCE_CAS: return value == in_lane(warp, &values[1], lane);
    case REDUCE_MIN:
    case REDUCE_MAX:
    case REDUCE_EXCH:
    case REDUCE_INC:
    case REDUCE_DEC:
    case REDUCE_NONE: break;
    }
    return false;
}

static bool yields_at(Block *block, const Warp *warp, const Inst *inst, uint32_t lane) {
    const Operand *base = &inst->ops[1];
    Space space = space_of_inst(inst);
    return inst->opcode == OP_ATOM && only_reads(warp, inst, base + 1, lane) &&
           is_global(space, address_of(warp, base, space, lane)) && schedule_polls(block, inst);
}

/* ops of atom: d, [a], b, (c); of red: [a], b .. */
static Step run_atomic(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    bool gives = inst->opcode == OP_ATOM, changed = false;
    const Operand *base = &inst->ops[gives ? 1 : 0], *values = base + 1;
    Type type = inst_type(inst);
    uint32_t bytes = type_rows[type].bytes;
    if (yields_at(block, warp, inst, first_lane(mask))) return STEP_AGAIN;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint32_t lane = first_lane(left);
        Access access = access_of(block, warp, inst, ACCESS_ATOMIC, lane,
                                  address_of(warp, base, space_of_inst(inst), lane));
        unsigned char *at = memory_access(block, &access);
        if (!at) return STEP_FAULT;
        for (uint32_t i = 0; i < inst->vector; i++) {
            uint64_t value = in_lane(warp, &values[i], lane), compare = 0;
            if (inst->mods.reduce == REDUCE_CAS) {
                compare = value;
                value = in_lane(warp, &values[1], lane);
            }
            uint64_t old =
                memory_reduce((Reduce)inst->mods.reduce, type, at + i * bytes, value, compare);
            changed |= memcmp(at + i * bytes, &old, bytes) != 0;
            bool fails = inst->mods.reduce == REDUCE_CAS && old != compare;
            order_atomic(warp, lane, at + i * bytes, (Order)inst->mods.order,
                         (Scope)inst->mods.scope,
                         fails   ? ATOMIC_READS
                         : gives ? ATOMIC_BOTH
                                 : ATOMIC_WRITES);
            if (is_global(access.space, access.address))
                flags_use(warp, inst, lane, access.address + i * bytes, bytes,
                          fails   ? FLAG_LOAD
                          : gives ? FLAG_BOTH
                                  : FLAG_STORE);
            if (gives && !inst->ops[0].sink) put_lane(warp, &inst->ops[0], lane, old);
        }
    }
    block->cluster->drew |= gives && space_of_inst(inst) != SPACE_SHARED;
    if (changed)
        effect(block, warp);
    else
        warp->split->suspect = warp->split->tests = true;
    return STEP_NEXT;
}

static Run pick_atomic(const Inst *inst) {
    Type type = inst_type(inst);
    bool integer = type == T_U32 || type == T_S32 || type == T_U64 || type == T_S64;
    bool half = type == T_F16 || type == T_BF16 || type == T_F16X2 || type == T_BF16X2;
    bool third = inst->opcode == OP_ATOM && !inst->ops[3].absent && !inst->mods.cache_policy;
    switch ((Reduce)inst->mods.reduce) {
    case REDUCE_ADD:
        return !third && (integer || half || type == T_F32 || type == T_F64) ? run_atomic : NULL;
    case REDUCE_MIN:
    case REDUCE_MAX: return !third && (integer || half) ? run_atomic : NULL;
    case REDUCE_AND:
    case REDUCE_OR:
    case REDUCE_XOR: return !third && (type == T_B32 || type == T_B64) ? run_atomic : NULL;
    case REDUCE_EXCH: return !third && (type == T_B32 || type == T_B64) ? run_atomic : NULL;
    case REDUCE_CAS:
        return third && (type == T_B16 || type == T_B32 || type == T_B64) ? run_atomic : NULL;
    case REDUCE_INC:
    case REDUCE_DEC: return !third && type == T_U32 ? run_atomic : NULL;
    case REDUCE_NONE: break;
    }
    return NULL;
}

/* ---- prefetches and fences ------------------------------------------------------------------- */

static Step run_nothing(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)block, (void)warp, (void)inst, (void)mask;
    return STEP_NEXT;
}

/* Accesses are done in the order of the program; a fence changes only what is known of it. */
static Step run_fence(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    (void)block;
    flags_fence(warp, mask, inst);
    order_fence(warp, mask, inst);
    return STEP_NEXT;
}

Run pick_fence(const Inst *inst) {
    (void)inst;
    return run_fence;
}

Run pick_memory(const Inst *inst) {
    Type type = inst_type(inst);
    switch (inst->opcode) {
    case OP_LD:
    case OP_LDU:
    case OP_ST:
        if (type_rows[type].bytes == 0 || type == T_TF32 ||
            (uint32_t)inst->vector * type_rows[type].bytes > 32)
            return NULL;
        return inst->opcode == OP_ST ? run_store : run_load;
    case OP_ATOM:
    case OP_RED: return pick_atomic(inst);
    case OP_PREFETCH:
    case OP_PREFETCHU:
    case OP_APPLYPRIORITY: return run_nothing;
    default: return NULL;
    }
}
