/* Random programs against an oracle: a few threads access the same bytes of
 * global and shared memory, by loads, stores and copies, between edges of all
 * kinds. While a program is drawn, the oracle keeps for each thread the set of
 * earlier accesses that come before its next one; a race is a pair of
 * conflicting accesses, neither of which is in the set of the other. The
 * emulator must find a race in exactly those programs, on each schedule.
 *
 *   emulator_random [--count N] [--only SEED] [--ptx] */
#include "emulator/emulator.h"

#include "tests/unit/expect.h"

#include <stdlib.h>

/* of each of three warps: lane 0, lane 1, and the others, which act together
 * only */
enum { AGENTS = 9, OTHERS = 2, EVENTS = 64 };
enum { FLAGS = 16, BYTES = 96, STEPS = 44, SCHEDULES = 3 };
enum { FLAGS_AT = 2048, BARRIERS_AT = 0, SHARED_AT = 1024 };
enum { NEAR, FAR, REACHES };                   /* scopes: the block, the device */
enum { GENERIC, IN_GLOBAL, IN_SHARED, VIEWS }; /* who sees: as the clocks of the emulator */

typedef uint64_t Set; /* of events */
typedef struct Known {
    Set of[VIEWS];
} Known;

typedef struct Event {
    Known before;
    uint32_t at, bytes;
    bool shared, writes, strong, near, async;
    int agent;
    /* of lanes together: lane i, or 31 - i if `reversed`, accesses `piece` bytes at start +
     * i * stride; stride 0: all of `bytes` */
    uint32_t start, stride, piece;
    bool reversed;
} Event;

typedef struct Flag {
    Known near, far;
    uint32_t value;
    int block;            /* of the thread that has set it */
    bool polled, is_near; /* .cta */
} Flag;

typedef struct Group {
    Set reads, writes;
} Group;

typedef struct Agent {
    Known now;
    Set apart;               /* other lanes: accesses that each lane knows only its part of */
    Known released[REACHES]; /* at the last fence of this scope */
    Known pending[REACHES];  /* from relaxed loads, by the distance of the writer */
    Group bulk[STEPS], copies[STEPS];
    uint32_t bulk_count, copies_count;
} Agent;

typedef struct Random {
    uint64_t state;
    Str text;
    bool blocks;  /* each warp is a block of its own */
    bool cluster; /* the blocks are one */
    bool fixed;   /* the next accesses are to the 16 bytes at `at` of shared memory */
    uint32_t at;
    Agent agents[AGENTS];
    Event events[EVENTS];
    uint32_t event_count;
    Flag flags[FLAGS];
    uint32_t flag_count, label, value;
    Flag barriers[FLAGS]; /* mbarriers, of one phase */
    uint32_t barrier_count;
} Random;

static uint32_t draw(Random *all, uint32_t choices) {
    all->state = all->state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(all->state >> 33) % choices;
}

static void add(Known *to, const Known *from) {
    for (int i = 0; i < VIEWS; i++) to->of[i] |= from->of[i];
}
static void add_all(Known *to, Set events) {
    for (int i = 0; i < VIEWS; i++) to->of[i] |= events;
}

static int block_of(const Random *all, int agent) { return all->blocks ? agent / 3 : 0; }

/* ---- accesses -------------------------------------------------------------------------------- */

static Set add_event(Random *all, Event event, int agent) {
    event.agent = agent;
    event.before = all->agents[agent].now;
    all->events[all->event_count] = event;
    return (Set)1 << all->event_count++;
}

static const char *base(bool shared) { return shared ? "%s" : "%y"; }

static void access_memory(Random *all, int agent) {
    static const char *const types[] = {"u8", "u16", "u32", "u64", "v2.u64"};
    uint32_t size = all->fixed ? 4 : draw(all, 5), bytes = 1u << size;
    bool shared = all->fixed || (!all->blocks && draw(all, 2)), writes = all->fixed || draw(all, 2),
         strong = writes && size == 2 && draw(all, 3) == 0, near = strong && draw(all, 2);
    Event event = {.at = all->fixed ? all->at : draw(all, BYTES / bytes) * bytes,
                   .bytes = bytes,
                   .shared = shared,
                   .writes = writes,
                   .strong = strong,
                   .near = near};
    const char *space = shared ? "shared" : "global", *registers = size == 4 ? "{%d, %d}" : "%d";
    uint32_t at = event.at + (shared ? SHARED_AT : 0);
    if (writes)
        str_printf(&all->text, "  mov.u64 %%d, %u; @%%t%d st%s.%s.%s [%s+%u], %s;\n", ++all->value,
                   agent,
                   !strong ? ""
                   : near  ? ".relaxed.cta"
                           : ".relaxed.gpu",
                   space, types[size], base(shared), at, registers);
    else
        str_printf(&all->text, "  @%%t%d ld.%s.%s %s, [%s+%u];\n", agent, space, types[size],
                   size == 4 ? "{%d, %e}" : "%d", base(shared), at);
    all->agents[agent].now.of[GENERIC] |= add_event(all, event, agent);
}

/* All lanes of a warp, or those from 2 on, access pieces that are adjacent, or at a distance, in
 * the order of the lanes or the other way round. */
static void access_together(Random *all, uint32_t warp) {
    uint32_t piece = 1 + draw(all, 2), stride = piece + (piece == 1 ? draw(all, 3) : 0);
    bool shared = !all->blocks && draw(all, 2), writes = draw(all, 2), rest = draw(all, 3) == 0,
         reversed = draw(all, 3) == 0;
    uint32_t at = draw(all, (BYTES - 31 * stride - piece) / piece + 1) * piece;
    const char *space = shared ? "shared" : "global", *lanes = rest ? "rest" : "warp";
    str_printf(&all->text,
               "  xor.b32 %%r, %%l, %u; mul.lo.u32 %%r, %%r, %u; cvt.u64.u32 %%d, %%r;\n"
               "  add.u64 %%e, %%y, %%d;\n",
               reversed ? 31 : 0, stride);
    str_printf(&all->text, "  add.u32 %%r, %%r, %%s; mov.u64 %%d, %u;\n", ++all->value);
    const char *address = shared ? "%r" : "%e";
    uint32_t offset = at + (shared ? SHARED_AT : 0);
    if (writes)
        str_printf(&all->text, "  @%%%s%u st.%s.u%u [%s+%u], %%d;\n", lanes, warp, space, 8 * piece,
                   address, offset);
    else
        str_printf(&all->text, "  @%%%s%u ld.%s.u%u %%d, [%s+%u];\n", lanes, warp, space, 8 * piece,
                   address, offset);
    for (uint32_t i = rest ? OTHERS : 0; i < 3; i++) {
        uint32_t first = !reversed ? i : i == OTHERS ? 0 : 31 - i;
        Event event = {.at = at + first * stride,
                       .bytes = (i == OTHERS ? 29 * stride : 0) + piece,
                       .shared = shared,
                       .writes = writes,
                       .start = at,
                       .stride = stride,
                       .piece = piece,
                       .reversed = reversed};
        Agent *own = &all->agents[3 * warp + i];
        Set one = add_event(all, event, (int)(3 * warp + i));
        *(i == OTHERS ? &own->apart : &own->now.of[GENERIC]) |= one;
    }
}

/* ---- edges between lanes and warps ----------------------------------------------------------- */

static void join(Random *all, const bool *gives, const bool *takes) {
    Known sum = {{0}};
    for (int i = 0; i < AGENTS; i++)
        if (gives[i]) {
            add(&sum, &all->agents[i].now);
            sum.of[GENERIC] |= all->agents[i].apart;
        }
    for (int i = 0; i < AGENTS; i++)
        if (takes[i]) add(&all->agents[i].now, &sum);
}

static void release_fenced(const Random *all, int agent, bool near, Flag *flag);

/* Relaxed arrivals carry what was fenced, with the scope of the block only to the same block. */
static void meet_cluster(Random *all) {
    bool relaxed = draw(all, 2);
    Flag given[AGENTS];
    memset(given, 0, sizeof given);
    for (int i = 0; i < AGENTS; i++) {
        release_fenced(all, i, false, &given[i]);
        if (relaxed) continue;
        add(&given[i].near, &all->agents[i].now);
        given[i].near.of[GENERIC] |= all->agents[i].apart;
        given[i].far = given[i].near;
    }
    for (int i = 0; i < AGENTS; i++)
        for (int k = 0; k < AGENTS; k++)
            add(&all->agents[i].now,
                block_of(all, i) == block_of(all, k) ? &given[k].near : &given[k].far);
    str_printf(&all->text,
               "  barrier.cluster.arrive%s.aligned; barrier.cluster.wait.acquire.aligned;\n",
               relaxed ? ".relaxed" : ".release");
}

static void meet(Random *all) {
    uint32_t warp = draw(all, 3), other = (warp + 1 + draw(all, 2)) % 3, kind = draw(all, 6),
             id = 1 + all->label++ % 14;
    bool first[AGENTS] = {0}, second[AGENTS] = {0}, both[AGENTS] = {0}, every[AGENTS], two[AGENTS];
    for (uint32_t i = 0; i < AGENTS; i++) {
        first[i] = i / 3 == warp;
        two[i] = first[i] && i % 3 != OTHERS;
        second[i] = i / 3 == other;
        both[i] = first[i] || second[i];
        every[i] = true;
    }
    if (kind == 0) {
        str_printf(&all->text, "  @%%pair%u bar.warp.sync 3;\n", warp);
        join(all, two, two);
    } else if (kind == 1) {
        str_printf(&all->text, "  @%%warp%u bar.warp.sync 0xffffffff;\n", warp);
        join(all, first, first);
    } else if (all->cluster && kind > 3) {
        meet_cluster(all);
    } else if (all->blocks) {
        str_printf(&all->text, "  @%%warp%u bar.sync 0;\n", warp);
        join(all, first, first);
    } else if (kind == 2) {
        str_printf(&all->text, "  @%%warp%u bar.arrive %u, 64; @%%warp%u bar.sync %u, 64;\n", warp,
                   id, other, id);
        join(all, both, second);
    } else if (kind == 3) {
        str_printf(&all->text, "  @%%warp%u bar.sync %u, 64; @%%warp%u bar.sync %u, 64;\n", warp,
                   id, other, id);
        join(all, both, both);
    } else {
        str_add(&all->text, "  bar.sync 0;\n");
        join(all, every, every);
    }
}

/* ---- fences ---------------------------------------------------------------------------------- */

static void fence(Random *all, int agent) {
    Agent *own = &all->agents[agent];
    bool near = draw(all, 2);
    if (draw(all, 2)) {
        static const char *const spaces[] = {"", ".global", ".shared::cta"};
        uint32_t space = draw(all, 3);
        str_printf(&all->text, "  @%%t%d fence.proxy.async%s;\n", agent, spaces[space]);
        for (uint32_t i = 1; i < VIEWS; i++)
            if (space == 0 || space == i) own->now.of[i] |= own->now.of[GENERIC];
        return;
    }
    const char *far = all->cluster && draw(all, 2) ? "cluster" : "gpu";
    str_printf(&all->text, "  @%%t%d fence.acq_rel.%s;\n", agent, near ? "cta" : far);
    add(&own->now, &own->pending[NEAR]);
    if (!near) add(&own->now, &own->pending[FAR]);
    own->released[near ? NEAR : FAR] = own->now;
}

/* What a relaxed write of the agent releases, to its own block and to others */
static void release_fenced(const Random *all, int agent, bool near, Flag *flag) {
    const Agent *own = &all->agents[agent];
    add(&flag->near, &own->released[NEAR]);
    add(&flag->near, &own->released[FAR]);
    if (!near) add(&flag->far, &own->released[FAR]);
}

/* ---- flags and mbarriers --------------------------------------------------------------------- */

static void set_flag(Random *all, int agent) {
    Flag *flag = &all->flags[all->flag_count];
    bool near = draw(all, 4) == 0, relaxed = draw(all, 2);
    *flag = (Flag){.value = 1, .block = block_of(all, agent), .is_near = near};
    release_fenced(all, agent, near, flag);
    if (!relaxed) {
        add(&flag->near, &all->agents[agent].now);
        if (!near) add(&flag->far, &all->agents[agent].now);
    }
    str_printf(&all->text, "  @%%t%d st.%s.%s.global.u32 [%%y+%u], 1;\n", agent,
               relaxed ? "relaxed" : "release", near ? "cta" : "gpu",
               FLAGS_AT + 4 * all->flag_count++);
}

static void learn(Random *all, int agent, const Flag *flag, bool near, bool relaxed) {
    Agent *own = &all->agents[agent];
    bool same = flag->block == block_of(all, agent);
    const Known *given = same ? &flag->near : &flag->far;
    if (!same && near) return;
    add(relaxed ? &own->pending[same ? NEAR : FAR] : &own->now, given);
}

static void poll(Random *all, int agent, const char *words, uint32_t flag) {
    uint32_t label = all->label++;
    str_printf(&all->text,
               "  @!%%t%d bra S%u;\nL%u: ld.%s.global.u32 %%r, [%%y+%u]; "
               "setp.lt.u32 %%q, %%r, %u;\n"
               "  @%%q bra L%u;\nS%u:\n",
               agent, label, label, words, FLAGS_AT + 4 * flag, all->flags[flag].value, label,
               label);
}

static void see_flag(Random *all, int agent) {
    uint32_t index = draw(all, all->flag_count);
    Flag *flag = &all->flags[index];
    bool near = draw(all, 4) == 0, relaxed = draw(all, 2);
    /* otherwise the flag itself is a race */
    if ((near || flag->is_near) && flag->block != block_of(all, agent)) return;
    poll(all, agent,
         near      ? relaxed ? "relaxed.cta" : "acquire.cta"
         : relaxed ? "relaxed.gpu"
                   : "acquire.gpu",
         index);
    flag->polled = true;
    learn(all, agent, flag, near, relaxed);
}

/* A thread polls a flag and adds 1 to it by `red`, which releases what the store before has
 * released. Only flags that no thread has polled: later ones wait for the new value. */
static void pass_flag(Random *all, int agent) {
    uint32_t index = draw(all, all->flag_count);
    Flag *flag = &all->flags[index];
    if (flag->polled || block_of(all, agent) != flag->block) return;
    poll(all, agent, "relaxed.gpu", index);
    learn(all, agent, flag, false, true);
    str_printf(&all->text, "  @%%t%d red.relaxed.gpu.global.add.u32 [%%y+%u], 1;\n", agent,
               FLAGS_AT + 4 * index);
    release_fenced(all, agent, false, flag);
    flag->value++;
}

static void arrive(Random *all, int agent) {
    Flag *barrier = &all->barriers[all->barrier_count];
    bool relaxed = draw(all, 3) == 0;
    release_fenced(all, agent, false, barrier);
    if (!relaxed) add(&barrier->near, &all->agents[agent].now);
    str_printf(&all->text, "  @%%t%d mbarrier.arrive%s.shared::cta.b64 _, [%%s+%u];\n", agent,
               relaxed ? ".relaxed.cta" : "", BARRIERS_AT + 8 * all->barrier_count++);
}

static void wait_barrier(Random *all, int agent, uint32_t index, bool relaxed) {
    uint32_t label = all->label++;
    str_printf(&all->text,
               "  @!%%t%d bra S%u;\nL%u: "
               "mbarrier.try_wait.parity%s.shared::cta.b64 %%q, [%%s+%u], "
               "0;\n  @!%%q bra L%u;\nS%u:\n",
               agent, label, label, relaxed ? ".relaxed.cta" : "", BARRIERS_AT + 8 * index, label,
               label);
    Agent *own = &all->agents[agent];
    add(relaxed ? &own->pending[NEAR] : &own->now, &all->barriers[index].near);
    all->barriers[index].polled = true;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static Event part(Random *all, uint32_t bytes, bool shared, bool writes, bool async) {
    bool fixed = all->fixed && shared;
    return (Event){.at = fixed ? all->at : draw(all, BYTES / bytes) * bytes,
                   .bytes = bytes,
                   .shared = shared,
                   .writes = writes,
                   .async = async};
}

static void load_bulk(Random *all, int agent) {
    uint32_t at = BARRIERS_AT + 8 * all->barrier_count;
    Flag *barrier = &all->barriers[all->barrier_count++];
    release_fenced(all, agent, false, barrier);
    add(&barrier->near, &all->agents[agent].now);
    Event from = part(all, 16, false, false, true), to = part(all, 16, true, true, true);
    str_printf(&all->text,
               "  @%%t%d mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%s+%u], "
               "16;\n  @%%t%d "
               "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
               "bytes [%%s+%u], "
               "[%%y+%u], 16, [%%s+%u];\n",
               agent, at, agent, SHARED_AT + to.at, from.at, at);
    Set events = add_event(all, from, agent);
    add_all(&barrier->near, events | add_event(all, to, agent));
    barrier->value = 1 + (uint32_t)agent; /* the copy must be waited for */
}

static void store_bulk(Random *all, int agent) {
    Agent *own = &all->agents[agent];
    Event from = part(all, 16, true, false, true), to = part(all, 16, false, true, true);
    str_printf(&all->text,
               "  @%%t%d cp.async.bulk.global.shared::cta.bulk_group [%%y+%u], "
               "[%%s+%u], 16;\n"
               "  @%%t%d cp.async.bulk.commit_group;\n",
               agent, to.at, SHARED_AT + from.at, agent);
    Group *group = &own->bulk[own->bulk_count++];
    group->reads = add_event(all, from, agent);
    group->writes = add_event(all, to, agent);
}

static void copy(Random *all, int agent) {
    Agent *own = &all->agents[agent];
    uint32_t bytes = 4u << draw(all, 3);
    Event from = part(all, bytes, false, false, false), to = part(all, bytes, true, true, false);
    str_printf(&all->text,
               "  @%%t%d cp.async.ca.shared.global [%%s+%u], [%%y+%u], %u;\n"
               "  @%%t%d cp.async.commit_group;\n",
               agent, SHARED_AT + to.at, from.at, bytes, agent);
    Group *group = &own->copies[own->copies_count++];
    group->reads = add_event(all, from, agent);
    group->writes = add_event(all, to, agent);
}

static void wait_groups(Random *all, int agent) {
    Agent *own = &all->agents[agent];
    bool bulk = draw(all, 2), reads = bulk && draw(all, 2);
    uint32_t kept = draw(all, 3), count = bulk ? own->bulk_count : own->copies_count;
    str_printf(&all->text, "  @%%t%d cp.async.%swait_group%s %u;\n", agent, bulk ? "bulk." : "",
               reads ? ".read" : "", kept);
    for (uint32_t i = 0; i + kept < count; i++) {
        const Group *group = bulk ? &own->bulk[i] : &own->copies[i];
        Set events = group->reads | (reads ? 0 : group->writes);
        if (bulk)
            add_all(&own->now, events);
        else
            own->now.of[GENERIC] |= events;
    }
}

static void meet_all(Random *all) {
    bool every[AGENTS];
    memset(every, true, sizeof every);
    str_add(&all->text, "  bar.sync 0;\n");
    join(all, every, every);
}

/* What a thread has written is copied by another one, mostly with all edges between. */
static void hand_over(Random *all, int agent) {
    int other = (int)(3 * draw(all, 3) + draw(all, 2));
    if (draw(all, 4)) meet_all(all);
    all->at = draw(all, BYTES / 16) * 16;
    all->fixed = true;
    access_memory(all, agent);
    if (draw(all, 2)) fence(all, agent);
    if (draw(all, 6)) meet_all(all);
    if (draw(all, 2)) fence(all, other);
    if (draw(all, 2))
        store_bulk(all, other);
    else
        load_bulk(all, other);
    all->fixed = false;
}

/* ---- programs -------------------------------------------------------------------------------- */

static void step(Random *all) {
    uint32_t warp = draw(all, 3);
    int agent = (int)(3 * warp + draw(all, 2));
    bool room = all->event_count + 4 <= EVENTS, shared = !all->blocks;
    switch (draw(all, 23)) {
    case 0:
    case 1:
    case 2:
        if (room) access_memory(all, agent);
        break;
    case 3:
    case 22:
        if (room) access_together(all, warp);
        break;
    case 4:
    case 16:
    case 17:
    case 20:
    case 21: meet(all); break;
    case 18:
    case 19:
        if (shared && room && all->barrier_count < FLAGS) hand_over(all, agent);
        break;
    case 5:
    case 6: fence(all, agent); break;
    case 7:
    case 8:
        if (room && all->flag_count < FLAGS) set_flag(all, agent);
        break;
    case 9:
    case 10:
        if (room && all->flag_count) see_flag(all, agent);
        break;
    case 11:
        if (room && all->flag_count) pass_flag(all, agent);
        break;
    case 12:
        if (shared && all->barrier_count < FLAGS) arrive(all, agent);
        break;
    case 13:
        if (shared && all->barrier_count)
            wait_barrier(all, agent, draw(all, all->barrier_count), draw(all, 3) == 0);
        break;
    case 14:
        if (!shared || !room || all->barrier_count == FLAGS) break;
        if (draw(all, 2))
            load_bulk(all, agent);
        else if (draw(all, 2))
            store_bulk(all, agent);
        else
            copy(all, agent);
        break;
    default:
        if (shared) wait_groups(all, agent);
    }
}

static const char head[] =
    ".version 8.6\n.target sm_90a\n.address_size 64\n"
    ".visible .entry kernel(.param .u64 Y)\n{\n"
    "  .reg .b32 %g, %w, %l, %r, %s; .reg .b64 %y, %d, %e; .reg .pred %q, "
    "%few;\n"
    "  .reg .pred %t<8>, %pair<3>, %warp<3>, %rest<3>;\n"
    "  .shared .align 1024 .b8 smem[2048];\n"
    "  ld.param.u64 %y, [Y]; mov.u32 %s, smem; mov.u32 %g, %ctaid.x; mov.u32 "
    "%r, %ntid.x;\n"
    "  mov.u32 %w, %tid.x; mad.lo.u32 %g, %g, %r, %w; and.b32 %l, %g, 31; "
    "shr.u32 %w, %g, 5;\n"
    "  setp.lt.u32 %few, %l, 2;\n";

static void begin(Random *all) {
    str_add(&all->text, head);
    for (uint32_t i = 0; i < AGENTS / 3; i++)
        str_printf(&all->text,
                   "  setp.eq.u32 %%warp%u, %%w, %u; and.pred %%pair%u, %%warp%u, %%few;\n"
                   "  setp.eq.u32 %%t%u, %%g, %u; setp.eq.u32 %%t%u, %%g, %u;\n"
                   "  setp.gt.and.u32 %%rest%u, %%l, 1, %%warp%u;\n",
                   i, i, i, i, 3 * i, 32 * i, 3 * i + 1, 32 * i + 1, i, i);
    for (uint32_t i = 0; i < FLAGS; i++)
        str_printf(&all->text, "  @%%t0 mbarrier.init.shared::cta.b64 [%%s+%u], 1;\n",
                   BARRIERS_AT + 8 * i);
    str_printf(&all->text, "  mov.u64 %%d, 0; mov.u64 %%e, 0;\n");
    for (uint32_t i = 0; i < BYTES; i += 8)
        str_printf(&all->text, "  @%%t0 st.shared.u64 [%%s+%u], %%d;\n", SHARED_AT + i);
    str_add(&all->text, "  fence.proxy.async; bar.sync 0;\n");
}

static void end(Random *all) {
    for (uint32_t i = 0; i < all->barrier_count; i++)
        if (all->barriers[i].value) wait_barrier(all, (int)all->barriers[i].value - 1, i, false);
    str_add(&all->text, "  cp.async.wait_all; cp.async.bulk.wait_group 0;\n  ret;\n}\n");
}

/* ---- the verdict of the oracle --------------------------------------------------------------- */

static bool is_before(uint32_t index, const Event *b, uint32_t view) {
    return b->before.of[view] >> index & 1;
}

static bool accesses(const Event *event, uint32_t byte) {
    return byte >= event->at && byte < event->at + event->bytes &&
           (!event->stride || (byte - event->start) % event->stride < event->piece);
}

static bool overlap(const Event *a, const Event *b) {
    for (uint32_t i = 0; i < BYTES && a->shared == b->shared; i++)
        if (accesses(a, i) && accesses(b, i)) return true;
    return false;
}

static uint32_t lane_of(const Event *event, uint32_t byte) {
    uint32_t lane = (byte - event->start) / event->stride;
    return event->reversed ? 31 - lane : lane;
}

/* Each of the other lanes of a warp accesses only bytes that it accessed itself, if any. */
static bool same_lanes(const Event *a, const Event *b) {
    if (a->agent != b->agent || a->agent % 3 != OTHERS) return false;
    for (uint32_t i = 0; i < BYTES; i++)
        if (accesses(a, i) && accesses(b, i) && lane_of(a, i) != lane_of(b, i)) return false;
    return true;
}

/* P0751, P0752 if only a proxy fence is missing, or NULL */
static const char *judge_pair(const Random *all, uint32_t i, uint32_t j) {
    const Event *a = &all->events[i], *b = &all->events[j];
    bool near = a->near || b->near,
         strong = a->strong && b->strong &&
                  (!near || block_of(all, a->agent) == block_of(all, b->agent));
    if (!overlap(a, b) || (!a->writes && !b->writes) || strong) return NULL;
    if (!is_before(i, b, GENERIC) && !same_lanes(a, b)) return "P0751";
    if (!b->async || a->async || !a->writes) return NULL;
    return is_before(i, b, b->shared ? IN_SHARED : IN_GLOBAL) ? NULL : "P0752";
}

typedef struct Verdict {
    const char *code;          /* NULL: no race */
    uint32_t races, conflicts; /* pairs; conflicts are ordered */
} Verdict;

static bool conflict(const Event *a, const Event *b) {
    return overlap(a, b) && (a->writes || b->writes) && a->agent != b->agent;
}

static Verdict judge(const Random *all) {
    Verdict verdict = {NULL, 0, 0};
    for (uint32_t j = 0; j < all->event_count; j++)
        for (uint32_t i = 0; i < j; i++) {
            const char *one = judge_pair(all, i, j);
            verdict.races += one != NULL;
            verdict.conflicts += !one && conflict(&all->events[i], &all->events[j]);
            if (one && (!verdict.code || !strcmp(one, "P0751"))) verdict.code = one;
        }
    return verdict;
}

/* One race hides another one, so that programs with one or two tell most. At most two of three
 * programs have one. */
static bool is_telling(const Verdict *verdict, const uint32_t *counts) {
    return verdict->races <= 2 && verdict->conflicts >= 2 &&
           (!verdict->races || counts[1] + counts[2] <= 2 * counts[0]);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* The finding of a run; "": none; NULL: something else */
static const char *run(Scratch *scratch, const Random *all, uint64_t seed) {
    EmulatorKernel kernel;
    EmulatorRegion region = {
        .bytes = 4096, .data = NEW_ARRAY(scratch->arena, unsigned char, 4096), .name = "Y"};
    if (emulator_read(scratch->arena, all->text.text, all->text.length, NULL, &kernel,
                      scratch->diags) != RUN_DONE)
        return NULL;
    emulator_place(&region, 1);
    EmulatorLaunch launch = {.kernel = &kernel,
                             .grid = {all->blocks ? 3 : 1, 1, 1},
                             .block = {all->blocks ? 32 : 96, 1, 1},
                             .cluster = {all->cluster ? 3 : 1, 1, 1},
                             .parameters = (const unsigned char *)&region.base};
    EmulatorWork work = {
        .regions = &region, .region_count = 1, .launches = &launch, .launch_count = 1};
    EmulatorOptions options = {.seed = seed};
    RunResult result;
    RunStatus status = emulator_run_work(scratch->arena, &work, &options, &result, scratch->diags);
    if (status == RUN_DONE) return "";
    const Diag *last = scratch->diags->items.items[scratch->diags->items.count - 1];
    return status == RUN_FINDING ? code_rows[last->code].name : NULL;
}

static void draw_program(Random *all, Arena *arena, uint64_t seed) {
    *all = (Random){.state = seed * UINT64_C(0x9e3779b97f4a7c15), .text = str_new(arena)};
    draw(all, 2);
    all->blocks = draw(all, 2) == 0;
    all->cluster = all->blocks && draw(all, 2);
    begin(all);
    for (uint32_t i = 0, steps = 6 + draw(all, STEPS - 6); i < steps; i++) step(all);
    end(all);
}

static void complain(Scratch *scratch, const Random *all, uint64_t seed, uint64_t schedule,
                     const char *wanted, const char *found) {
    Str text = str_new(scratch->arena);
    str_add(&text, "");
    diags_render(scratch->diags, false, &text);
    fprintf(stderr,
            "program %llu, schedule %llu: the oracle says %s, the emulator "
            "%s\n%s\n%s\n",
            (unsigned long long)seed, (unsigned long long)schedule, wanted ? wanted : "no race",
            !found   ? "something else"
            : *found ? found
                     : "no race",
            text.text, all->text.text);
    failed_expectations++;
}

/* False: the program tells little, and was not run */
static bool test(uint64_t seed, bool always, bool print, uint32_t *counts) {
    Scratch scratch = scratch_new();
    Random *all = NEW(scratch.arena, Random);
    draw_program(all, scratch.arena, seed);
    Verdict verdict = judge(all);
    bool runs = always || is_telling(&verdict, counts);
    const char *wanted = verdict.code;
    if (runs) counts[!wanted ? 0 : !strcmp(wanted, "P0751") ? 1 : 2]++;
    if (print) printf("%s%s\n", all->text.text, wanted ? wanted : "no race");
    for (uint64_t schedule = 0; runs && schedule < SCHEDULES; schedule++) {
        scratch.diags = diags_new(scratch.arena, NULL);
        const char *found = run(&scratch, all, schedule);
        /* a missing fence may be found before a missing edge */
        bool fine = found && (wanted ? !strcmp(found, wanted) ||
                                           (!strcmp(wanted, "P0751") && !strcmp(found, "P0752"))
                                     : !*found);
        if (!fine) complain(&scratch, all, seed, schedule, wanted, found);
        if (!fine) break;
    }
    scratch_free(&scratch);
    return runs;
}

int main(int argc, char **argv) {
    uint64_t count = 600, only = 0, seed = 1;
    bool print = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--count") && i + 1 < argc) count = strtoull(argv[++i], NULL, 0);
        if (!strcmp(argv[i], "--only") && i + 1 < argc) only = strtoull(argv[++i], NULL, 0);
        print |= !strcmp(argv[i], "--ptx");
    }
    uint32_t counts[3] = {0};
    if (only) {
        test(only, true, print, counts);
        return expect_failures();
    }
    for (uint64_t ran = 0; ran < count && failed_expectations < 5; seed++)
        ran += test(seed, false, print, counts);
    EXPECT(counts[0] > count / 10 && counts[1] > count / 10 && counts[2] > 0);
    printf("%u clean, %u races, %u of them by a missing proxy fence, of %llu programs\n", counts[0],
           counts[1] + counts[2], counts[2], (unsigned long long)seed);
    return expect_failures();
}
