/* What a race between threads lacks, by the flag through which they tried to synchronise: a word
 * that the earlier side has written by a strong access, and the later side has read since by one.
 *
 * Such a pair synchronises if both scopes include the other thread, the write is a release or
 * follows a fence, and the read is an acquire or precedes one (PTX ISA 8.7, 8.9.4). The first of
 * these that is missing is named, otherwise the barrier within one of the two blocks. */
#include "emulator/races/flags.h"
#include "emulator/races/race.h"

typedef struct Flag {
    Machine *machine;
    const Race *race;
    const Cluster *cluster; /* of the later side */
    const FlagRead *read;
    const FlagWrite *write;
    const Warp *reader;
    uint32_t reach; /* that both scopes need */
} Flag;

static const char *narrow_scope(uint32_t reach) {
    return reach == REACH_BLOCK ? "`.cta` orders threads of one block only"
                                : "`.cluster` orders threads of one cluster only";
}

static const char *scope_word(uint32_t reach) {
    return reach == REACH_BLOCK ? ".cta" : reach == REACH_CLUSTER ? ".cluster" : ".gpu";
}

static uint32_t scope_reach(const Inst *inst) { return order_reach((Scope)inst->mods.scope); }

/* How far apart both sides are */
static uint32_t distance_of(const Race *race) {
    if (race->earlier.cluster != race->later.cluster) return REACH_DEVICE;
    return race->earlier.actor.rank == race->later.actor.rank ? REACH_BLOCK : REACH_CLUSTER;
}

static const char *noun(AccessKind kind) {
    return kind == ACCESS_READ ? "read" : kind == ACCESS_WRITE ? "write" : "update";
}

/* ---- the flag itself ------------------------------------------------------------------------- */

static bool is_strong(const Machine *machine, const RaceSide *side) {
    return side->kind == ACCESS_ATOMIC ||
           actor_inst(machine, &side->actor)->mods.order > ORDER_WEAK;
}

/* "`st.release.cta.u32` (PTX line 30)" */
static const char *name_access(Machine *machine, const Actor *actor) {
    return arena_printf(machine->arena, "`%s` (%s)", name_opcode(machine, actor),
                        name_place(machine, actor));
}

static RaceCause race_for_flag(Machine *machine, const Race *race) {
    const Actor *earlier = &race->earlier.actor, *later = &race->later.actor;
    uint32_t first = scope_reach(actor_inst(machine, earlier)),
             second = scope_reach(actor_inst(machine, later)), need = distance_of(race);
    Arena *arena = machine->arena;
    if (first >= need && second >= need) return (RaceCause){NULL, NULL};
    const char *who = second >= need  ? name_access(machine, earlier)
                      : first >= need ? name_access(machine, later)
                                      : "both accesses";
    return (RaceCause){arena_printf(arena, "%s, and that is the scope of %s",
                                    narrow_scope(first < second ? first : second), who),
                       arena_printf(arena, "give both accesses the scope `%s`", scope_word(need))};
}

/* One side takes the word for a flag, the other one accesses it as ordinary data. */
static RaceCause race_for_data(Machine *machine, const Race *race) {
    const Actor *weak =
        is_strong(machine, &race->earlier) ? &race->later.actor : &race->earlier.actor;
    const char *scope = scope_word(distance_of(race));
    return (RaceCause){
        arena_printf(machine->arena,
                     "one access is strong, but %s is an ordinary one, which neither releases nor "
                     "acquires",
                     name_access(machine, weak)),
        arena_printf(machine->arena,
                     "if it is a flag, access it by `.release%s` and `.acquire%s` on the two sides",
                     scope, scope)};
}

/* ---- another word ---------------------------------------------------------------------------- */

/* "the flag `state[3]`" */
static const char *name_flag(const Flag *flag) {
    uint64_t address = flag->write->word * 4;
    Str out = str_new(flag->machine->arena);
    str_add(&out, "the flag ");
    name_word(flag->machine, address < flag->read->address ? flag->read->address : address, &out);
    return out.text;
}

static Actor actor_at(const Flag *flag, const RaceSide *side, uint32_t component, uint32_t pc) {
    Actor actor = side->actor;
    actor.warp = component / LANES % flag->cluster->blocks[0]->warp_count;
    actor.lanes = 1u << component % LANES;
    actor.pc = pc;
    actor.async = false;
    return actor;
}

static Actor writer_of(const Flag *flag) {
    return actor_at(flag, &flag->race->earlier, flag->write->component, flag->write->pc);
}

/* False: a third block has written the flag, which knows of the earlier side */
static bool by_earlier_block(const Flag *flag) {
    return flag->write->cluster == flag->race->earlier.cluster &&
           flag->write->rank == flag->race->earlier.actor.rank;
}

static Actor reader_of(const Flag *flag) {
    return actor_at(flag, &flag->race->later, flag->read->component, flag->read->pc);
}

static const char *access_of(const Flag *flag, bool written) {
    Actor actor = written ? writer_of(flag) : reader_of(flag);
    return arena_printf(flag->machine->arena, "%s is %s by %s", name_flag(flag),
                        written ? "written" : "read", name_access(flag->machine, &actor));
}

static uint32_t earlier_component(const Race *race) {
    return race->earlier.component + first_lane(race->earlier.actor.lanes);
}

/* The thread that writes the flag has also made the earlier access. */
static bool same_thread(const Flag *flag) {
    return by_earlier_block(flag) && flag->write->component == earlier_component(flag->race);
}

/* The last fence of this reach, of the block that writes the flag, before it does; NULL: none */
static const FlagFence *release_fence(const Flag *flag, uint32_t reach) {
    const FlagFence *fence = flag->write->released ? &flag->write->released[reach] : NULL;
    return fence && fence->serial && fence->cluster == flag->write->cluster ? fence : NULL;
}

/* True if the fence comes after the earlier access, as far as their warps tell */
static bool covers(const Flag *flag, const FlagFence *fence) {
    bool same_warp = by_earlier_block(flag) &&
                     flag->write->component / LANES == flag->race->earlier.component / LANES;
    return !same_warp || fence->time >= flag->race->earlier.time;
}

static RaceCause narrow(const Flag *flag, bool written) {
    const Actor actor = written ? writer_of(flag) : reader_of(flag);
    const Inst *inst = actor_inst(flag->machine, &actor);
    return (RaceCause){
        arena_printf(flag->machine->arena, "%s: %s", access_of(flag, written),
                     narrow_scope(scope_reach(inst))),
        arena_printf(flag->machine->arena, "give it the scope `%s`", scope_word(flag->reach))};
}

/* A fence that does not do: too narrow, or too early */
static RaceCause poor_fence(const Flag *flag, bool written, const FlagFence *fence,
                            uint32_t reach) {
    Actor actor = written ? writer_of(flag) : reader_of(flag);
    Arena *arena = flag->machine->arena;
    actor.pc = fence->pc;
    const char *access = access_of(flag, written), *name = name_access(flag->machine, &actor);
    if (reach >= flag->reach)
        return (RaceCause){arena_printf(arena,
                                        "%s, and the fence before it, %s, comes before this %s",
                                        access, name, noun(flag->race->earlier.kind)),
                           arena_printf(arena, "execute the fence between the %s and the flag",
                                        noun(flag->race->earlier.kind))};
    return (RaceCause){arena_printf(arena, "%s, and the fence %s it is %s: %s", access,
                                    written ? "before" : "after", name, narrow_scope(reach)),
                       arena_printf(arena,
                                    "let the fence have the scope `%s` (in CUDA "
                                    "`__threadfence()`)",
                                    scope_word(flag->reach))};
}

/* What the write of the flag lacks; no text: nothing */
static RaceCause unreleased(const Flag *flag) {
    Actor writer = writer_of(flag);
    const Inst *inst = actor_inst(flag->machine, &writer);
    Order order = (Order)inst->mods.order;
    Arena *arena = flag->machine->arena;
    if (scope_reach(inst) < flag->reach) return narrow(flag, true);
    if (order == ORDER_RELEASE || order == ORDER_ACQ_REL) return (RaceCause){NULL, NULL};
    const FlagFence *poor = NULL;
    uint32_t reach = 0;
    for (uint32_t i = REACHES; i-- > 0;) {
        const FlagFence *fence = release_fence(flag, i);
        if (!fence) continue;
        if (i >= flag->reach && covers(flag, fence)) return (RaceCause){NULL, NULL};
        if (poor && !covers(flag, fence)) continue;
        poor = fence;
        reach = i;
    }
    if (poor) return poor_fence(flag, true, poor, reach);
    const char *where = by_earlier_block(flag) ? arena_printf(arena, "between this %s and it",
                                                              noun(flag->race->earlier.kind))
                                               : "before it";
    return (RaceCause){
        arena_printf(arena, "%s, which is no release, without a fence %s", access_of(flag, true),
                     where),
        arena_printf(arena,
                     "write the flag by `.release%s`, or execute `fence.acq_rel%s` before "
                     "it (in CUDA `__threadfence()`)",
                     scope_word(flag->reach), scope_word(flag->reach))};
}

/* What the read of the flag lacks */
static RaceCause unacquired(const Flag *flag) {
    Actor reader = reader_of(flag);
    const Inst *inst = actor_inst(flag->machine, &reader);
    Order order = (Order)inst->mods.order;
    uint32_t lane = flag->read->component % LANES;
    Arena *arena = flag->machine->arena;
    if (scope_reach(inst) < flag->reach) return narrow(flag, false);
    if (order == ORDER_ACQUIRE || order == ORDER_ACQ_REL) return (RaceCause){NULL, NULL};
    const FlagFence *fence = flags_acquired(flag->reader, lane, flag->reach);
    if (fence && fence->serial > flag->read->serial) return (RaceCause){NULL, NULL};
    fence = flags_acquired(flag->reader, lane, REACH_BLOCK);
    if (fence && fence->serial > flag->read->serial) {
        const Inst *at = &flag->machine->program->code[fence->pc];
        return poor_fence(flag, false, fence, scope_reach(at));
    }
    const char *what = noun(flag->race->later.kind);
    return (RaceCause){
        arena_printf(arena, "%s, which is no acquire, without a fence between it and this %s",
                     access_of(flag, false), what),
        arena_printf(arena,
                     "read the flag by `.acquire%s`, or execute `fence.acq_rel%s` after it "
                     "(in CUDA `__threadfence()`)",
                     scope_word(flag->reach), scope_word(flag->reach))};
}

static const char *name_thread(const Flag *flag, const Actor *actor) {
    Str out = str_new(flag->machine->arena);
    name_actor(flag->machine, actor, &out);
    return out.text;
}

/* The fence that makes the write of the flag a release; NULL: it is one by itself */
static const FlagFence *releasing_fence(const Flag *flag) {
    Actor writer = writer_of(flag);
    Order order = (Order)actor_inst(flag->machine, &writer)->mods.order;
    const FlagFence *newest = NULL;
    if (order == ORDER_RELEASE || order == ORDER_ACQ_REL) return NULL;
    for (uint32_t i = flag->reach; i < REACHES; i++) {
        const FlagFence *fence = release_fence(flag, i);
        if (fence && (!newest || fence->serial > newest->serial)) newest = fence;
    }
    return newest;
}

/* Both threads synchronise: a step within one of the blocks is missing. */
static RaceCause unconnected(const Flag *flag) {
    const Race *race = flag->race;
    Actor writer = writer_of(flag), reader = reader_of(flag);
    Arena *arena = flag->machine->arena;
    Seen seen = order_seen(flag->reader, flag->read->component % LANES);
    Epoch access = {earlier_component(race), race->earlier.time};
    bool known = order_knows(&seen, VIEW_GENERIC, race->earlier.cluster, access);
    if (known)
        return (RaceCause){
            arena_printf(arena, "%s, but no barrier is between that and this %s",
                         access_of(flag, false), noun(race->later.kind)),
            arena_printf(arena, "let %s and this thread meet at a barrier after the flag was read",
                         name_thread(flag, &reader))};
    if (same_thread(flag) && flag->write->time >= race->earlier.time)
        return (RaceCause){NULL, NULL};
    if (same_thread(flag))
        return (RaceCause){
            arena_printf(arena, "%s before this %s", access_of(flag, true),
                         noun(race->earlier.kind)),
            arena_printf(arena, "write the flag after the last %s", noun(race->earlier.kind))};
    const FlagFence *fence = releasing_fence(flag);
    if (fence) {
        writer.pc = fence->pc;
        return (RaceCause){arena_printf(arena,
                                        "%s, but no barrier is between this %s and the fence "
                                        "before it, %s",
                                        access_of(flag, true), noun(race->earlier.kind),
                                        name_access(flag->machine, &writer)),
                           "let the thread that writes the flag execute a fence after a barrier "
                           "with the threads whose accesses it announces"};
    }
    return (RaceCause){
        arena_printf(arena, "%s, but no barrier is between this %s and that", access_of(flag, true),
                     noun(race->earlier.kind)),
        arena_printf(arena,
                     "let %s and the thread of this %s meet at a barrier before the flag is "
                     "written",
                     name_thread(flag, &writer), noun(race->earlier.kind))};
}

/* ---- which flag ------------------------------------------------------------------------------ */

/* The write that this read may have seen; NULL: none is known */
static const FlagWrite *write_for(const Flag *flag, const FlagRead *read) {
    const RaceSide *earlier = &flag->race->earlier;
    uint32_t block = LANES * flag->cluster->blocks[0]->warp_count;
    if (read->component / block != flag->race->later.actor.rank) return NULL;
    for (uint64_t word = read->address / 4; word <= (read->address + read->bytes - 1) / 4; word++) {
        const FlagWrite *write =
            flags_written(flag->machine, word, earlier->cluster, earlier->actor.rank);
        bool raced = word * 4 + 4 > flag->race->range.address &&
                     word * 4 < flag->race->range.address + flag->race->range.bytes;
        bool own = write && earlier->cluster == flag->race->later.cluster &&
                   write->component / LANES == read->component / LANES;
        if (write && !own && !raced && write->serial < read->serial) return write;
    }
    return NULL;
}

/* The newest read of a flag; better one that was not written before the access */
static bool find_flag(Flag *flag) {
    uint64_t serial = UINT64_MAX;
    const FlagRead *read;
    flag->read = NULL;
    uint64_t own = flag->race->later.cluster;
    while ((read = flags_read_before(flag->machine, own, serial)) != NULL) {
        serial = read->serial;
        const FlagWrite *write = write_for(flag, read);
        if (!write) continue;
        const FlagWrite *before = flag->write;
        if (!flag->read) flag->read = read;
        flag->write = write;
        if (same_thread(flag) && write->time < flag->race->earlier.time) {
            if (before) flag->write = before;
            continue;
        }
        flag->read = read;
        return true;
    }
    return flag->read != NULL;
}

static const Cluster *cluster_of(const Machine *machine, uint64_t number) {
    for (size_t i = 0; i < machine->made.count; i++)
        if (order_cluster(machine->made.items[i]) == number) return machine->made.items[i];
    return NULL;
}

/* True if the block that has written the flag had read one that the earlier side has written */
static bool passes_on(const Flag *flag) {
    const RaceSide *earlier = &flag->race->earlier;
    uint64_t third = flag->write->cluster;
    const FlagRead *read = flags_read_before(flag->machine, third, flag->write->serial);
    for (; read; read = flags_read_before(flag->machine, third, read->serial)) {
        const FlagWrite *write =
            flags_written(flag->machine, read->address / 4, earlier->cluster, earlier->actor.rank);
        if (write && write->serial < read->serial) return true;
    }
    return false;
}

/* The newest read of a flag by which a third block has passed on what it knew of the earlier side.
 * Only what this pair lacks is known. */
static bool find_third(Flag *flag) {
    uint64_t own = flag->race->later.cluster;
    const FlagRead *read = flags_read_before(flag->machine, own, UINT64_MAX);
    for (; read; read = flags_read_before(flag->machine, own, read->serial)) {
        uint64_t word = read->address / 4;
        flag->write = flags_last_written(flag->machine, word, read->serial);
        flag->read = read;
        bool raced = word == flag->race->range.address / 4;
        if (flag->write && !raced && flag->write->cluster != own && passes_on(flag)) return true;
    }
    return false;
}

/* Another store has replaced the value that was released. */
static RaceCause overwritten(const Flag *flag) {
    const FlagWrite *last =
        flags_last_written(flag->machine, flag->write->word, flag->read->serial);
    if (!last || last->serial <= flag->write->serial ||
        flag->machine->program->code[last->pc].opcode != OP_ST ||
        (last->cluster == flag->write->cluster && last->component == flag->write->component))
        return (RaceCause){NULL, NULL};
    Actor actor = actor_at(flag, &flag->race->earlier, last->component, last->pc);
    return (RaceCause){arena_printf(flag->machine->arena,
                                    "%s, but %s of another thread has replaced that before it is "
                                    "read",
                                    access_of(flag, true), name_access(flag->machine, &actor)),
                       "let each thread of a sequence write the flag by an atomic operation"};
}

static const Warp *reader_warp(const Flag *flag) {
    uint32_t warp = flag->read->component / LANES, warps = flag->cluster->blocks[0]->warp_count;
    return &flag->cluster->blocks[warp / warps]->warps[warp % warps];
}

RaceCause race_flag(Machine *machine, const Race *race) {
    Flag flag = {.machine = machine, .race = race, .reach = distance_of(race)};
    RaceCause none = {NULL, NULL};
    if (race->range.space != SPACE_GLOBAL || race->earlier.actor.async) return none;
    bool strong[] = {is_strong(machine, &race->earlier),
                     !race->later.actor.async && is_strong(machine, &race->later)},
         data = (strong[0] || strong[1]) && flag.reach > REACH_BLOCK && !race->later.actor.async;
    if (strong[0] && strong[1]) return race_for_flag(machine, race);
    flag.cluster = cluster_of(machine, race->later.cluster);
    bool direct = flag.cluster && find_flag(&flag);
    if (!direct && data) return race_for_data(machine, race);
    if (!direct && (!flag.cluster || flag.reach == REACH_BLOCK || !find_third(&flag))) return none;
    flag.reader = reader_warp(&flag);
    RaceCause cause = unreleased(&flag);
    if (!cause.text) cause = unacquired(&flag);
    if (!cause.text && direct) cause = overwritten(&flag);
    return cause.text || !direct ? cause : unconnected(&flag);
}
