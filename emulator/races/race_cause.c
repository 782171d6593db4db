/* What is missing between the two accesses of a race, by the last steps of both sides, and these
 * steps as notes.
 *
 * The earlier side must release after its access (an asynchronous operation: after it was waited
 * for) what the later side acquires before its own. So a release is looked for that the later side
 * has acquired and that nevertheless does not carry the access; otherwise no wait was there. */
#include "emulator/order/order.h"
#include "emulator/races/race.h"
#include "emulator/order/timeline.h"

enum { MOST_BEFORE = 3, MOST_AFTER = 2 }; /* moments that are shown */

typedef struct Track {
    const Moment *moments[TIMELINE]; /* of the cluster, in order */
    uint32_t count;
    uint32_t at;         /* moments before the access, or before the issue of the operation */
    const Moment *issue; /* of the operation; NULL: threads, or it is not kept */
    bool kept;           /* false: the steps at the access are gone */
} Track;

/* ---- the steps of one side ------------------------------------------------------------------- */

static void collect(const Timeline *timeline, uint64_t cluster, Track *track) {
    uint64_t first = timeline->count > TIMELINE ? timeline->count - TIMELINE : 0;
    for (uint64_t i = first; i < timeline->count; i++) {
        const Moment *moment = &timeline->moments[i % TIMELINE];
        if (moment->cluster == cluster) track->moments[track->count++] = moment;
    }
}

static bool is_issue(const Moment *moment, const RaceSide *side) {
    if (moment->kind != MOMENT_ISSUE) return false;
    return moment->object == OBJECT_MATRICES ? moment->value + 1 == side->time
                                             : moment->value == side->number;
}

/* A warp is used again by later clusters, so its moments may be gone. */
static Track track_of(const Machine *machine, const RaceSide *side) {
    Track track = {.count = 0};
    bool running = false;
    for (size_t i = 0; i < machine->made.count && !track.count; i++) {
        const Cluster *cluster = machine->made.items[i];
        if (side->actor.rank >= cluster->size) continue;
        running |= order_cluster(cluster) == side->cluster;
        const Block *block = cluster->blocks[side->actor.rank];
        if (side->actor.warp < block->warp_count && block->warps[side->actor.warp].timeline)
            collect(block->warps[side->actor.warp].timeline, side->cluster, &track);
    }
    bool matrix = actor_inst(machine, &side->actor)->opcode == OP_WGMMA;
    for (uint32_t i = 0; i < track.count; i++) {
        const Moment *moment = track.moments[i];
        bool of_kind = (moment->object == OBJECT_MATRICES) == matrix;
        if (side->actor.async && of_kind && is_issue(moment, side)) {
            track.issue = moment;
            track.at = i;
        } else if (!side->actor.async && moment->time < side->time) {
            track.at = i + 1;
        }
    }
    track.kept = side->actor.async ? track.issue != NULL : track.count > 0 || running;
    return track;
}

/* ---- names ----------------------------------------------------------------------------------- */

static const char *name_of_barrier(const Machine *machine, const Moment *moment) {
    const char *name = name_mbarrier(machine, moment->address);
    return machine->cluster_size > 1
               ? arena_printf(machine->arena, "%s of rank %u", name, moment->rank)
               : name;
}

/* "the empty barrier of stage 1 of `ab`, phase 3" */
static const char *name_object(const Machine *machine, const Moment *moment) {
    switch (moment->object) {
    case OBJECT_MBARRIER:
        if (moment->value == UINT64_MAX) /* a wait for the phase before the first one */
            return arena_printf(machine->arena, "%s, before its first phase",
                                name_of_barrier(machine, moment));
        return arena_printf(machine->arena, "%s, phase %llu", name_of_barrier(machine, moment),
                            (unsigned long long)moment->value);
    case OBJECT_NAMED: return arena_printf(machine->arena, "named barrier %u", moment->address);
    case OBJECT_CLUSTER: return "the cluster barrier";
    case OBJECT_GROUPS: return "its copies";
    case OBJECT_MATRICES: return "its wgmmas";
    case OBJECT_LAUNCH: return "the launch before";
    case OBJECT_OPERATION:
    case OBJECT_MEMORY:
    case OBJECT_LANES: break;
    }
    return "the lanes of its warp";
}

static Actor actor_at(const RaceSide *side, const Moment *moment) {
    Actor actor = side->actor;
    actor.pc = moment->pc;
    actor.async = false;
    return actor;
}

static const char *verb_of(const Machine *machine, const RaceSide *side, const Moment *moment) {
    Actor actor = actor_at(side, moment);
    const char *words = name_opcode(machine, &actor);
    Arena *arena = machine->arena;
    if (moment->object == OBJECT_LANES || moment->kind == MOMENT_FENCE)
        return arena_printf(arena, "executes `%s`", words);
    if (moment->object == OBJECT_MEMORY)
        return arena_printf(arena, "%s by `%s`",
                            moment->kind == MOMENT_RELEASE ? "releases" : "acquires", words);
    switch (moment->kind) {
    case MOMENT_ISSUE:
        return moment->object == OBJECT_MATRICES ? "commits its wgmmas" : "issues a copy";
    case MOMENT_RELEASE: return arena_printf(arena, "arrives at %s", name_object(machine, moment));
    case MOMENT_ACQUIRE:
        return arena_printf(arena, "has waited for %s", name_object(machine, moment));
    case MOMENT_FENCE: break;
    }
    return words;
}

/* ---- the cause ------------------------------------------------------------------------------- */

static const char *past(AccessKind kind) {
    return kind == ACCESS_READ ? "read" : kind == ACCESS_WRITE ? "write" : "update";
}

static bool matches(const Moment *release, const Moment *acquire) {
    if (release->kind != MOMENT_RELEASE || acquire->kind != MOMENT_ACQUIRE) return false;
    return (release->object == OBJECT_MBARRIER || release->object == OBJECT_CLUSTER) &&
           release->object == acquire->object && release->rank == acquire->rank &&
           release->address == acquire->address && release->value == acquire->value;
}

/* True if the operation, issued at track->at, was waited for before moment `end` */
static bool was_awaited(const Machine *machine, const RaceSide *side, const Track *track,
                        uint32_t end) {
    const Inst *inst = actor_inst(machine, &side->actor);
    MomentObject object = inst->opcode == OP_WGMMA ? OBJECT_MATRICES : OBJECT_GROUPS;
    for (uint32_t i = track->at; i < end; i++) {
        const Moment *moment = track->moments[i];
        if (moment->kind != MOMENT_ACQUIRE || moment->object != object) continue;
        if (inst->opcode == OP_CP_ASYNC || moment->value >= side->time) return true;
    }
    return false;
}

static const char *group_wait(const Machine *machine, const RaceSide *side) {
    switch (actor_inst(machine, &side->actor)->opcode) {
    case OP_WGMMA: return "wgmma.wait_group";
    case OP_CP_ASYNC: return "cp.async.wait_group";
    default: break;
    }
    return side->kind == ACCESS_READ ? "cp.async.bulk.wait_group.read" : "cp.async.bulk.wait_group";
}

/* The range of the manifest that a barrier belongs to, if it is that of the stage raced for */
static const ManifestShared *barrier_of_stage(const Machine *machine, const Race *race,
                                              const Moment *moment) {
    uint32_t stage = 0, other = 0, byte = 0;
    if (race->range.space != SPACE_SHARED || moment->object != OBJECT_MBARRIER) return NULL;
    const ManifestShared *range = shared_range(machine, race->range.address, &stage, &byte),
                         *barrier = shared_range(machine, moment->address, &other, &byte);
    if (!range || !barrier || !range->pipe || !barrier->pipe || stage != other) return NULL;
    return strcmp(range->pipe, barrier->pipe) == 0 ? barrier : NULL;
}

/* The release at `from` precedes the access of the same round: nothing was waited for between */
static bool is_early(const Machine *machine, const Race *race, const Track *track, uint32_t from) {
    bool named = machine->manifest->shared.count > 0;
    if (named && !barrier_of_stage(machine, race, track->moments[from])) return false;
    for (uint32_t i = from + 1; i < track->at; i++) {
        const Moment *moment = track->moments[i];
        if (moment->kind != MOMENT_ACQUIRE || moment->object != OBJECT_MBARRIER) continue;
        if (!named || barrier_of_stage(machine, race, moment)) return false;
    }
    return true;
}

static RaceCause early(Machine *machine, const Race *race, const Moment *release) {
    const RaceSide *earlier = &race->earlier;
    const ManifestShared *range = barrier_of_stage(machine, race, release);
    Actor actor = actor_at(earlier, release);
    const char *place = name_place(machine, &actor), *what = past(earlier->kind), *text;
    Arena *arena = machine->arena;
    if (range && range->kind == SHARED_EMPTY)
        text = arena_printf(arena, "the stage was released (%s) before its last %s", place, what);
    else if (range)
        text = arena_printf(arena, "the stage was given on (%s) before its last %s", place, what);
    else
        text = arena_printf(arena, "it arrived at %s (%s) before its last %s",
                            name_object(machine, release), place, what);
    return (RaceCause){
        text, arena_printf(arena, "arrive after the last %s, or wait again before it", what)};
}

/* The later side has acquired this release, which follows the access: why does it not carry it? */
static RaceCause broken(Machine *machine, const Race *race, const Track *track, uint32_t from,
                        const Moment *acquire) {
    const RaceSide *earlier = &race->earlier;
    const Moment *release = track->moments[from];
    Actor arrival = actor_at(earlier, release), wait = actor_at(&race->later, acquire);
    const char *name = name_object(machine, release);
    Arena *arena = machine->arena;
    bool by_groups = earlier->actor.async;
    if (by_groups && !was_awaited(machine, earlier, track, from))
        return (RaceCause){
            arena_printf(arena, "no `%s` for it before the arrival at %s (%s)",
                         group_wait(machine, earlier), name, name_place(machine, &arrival)),
            arena_printf(arena, "commit its group and execute `%s` before the arrival",
                         group_wait(machine, earlier))};
    if (release->relaxed)
        return (RaceCause){arena_printf(arena,
                                        "the arrival at %s (%s) is `.relaxed` and so releases "
                                        "nothing",
                                        name, name_place(machine, &arrival)),
                           "arrive with `.release`, which is the default"};
    if (acquire->relaxed)
        return (RaceCause){arena_printf(arena,
                                        "the wait for %s (%s) is `.relaxed` and so acquires "
                                        "nothing",
                                        name, name_place(machine, &wait)),
                           "wait with `.acquire`, which is the default"};
    if (!by_groups && earlier->actor.lanes & ~release->lanes)
        return (RaceCause){arena_printf(arena,
                                        "no `bar.warp.sync` before another lane arrives at %s (%s)",
                                        name, name_place(machine, &arrival)),
                           "execute `bar.warp.sync` between the access and the arrival"};
    return (RaceCause){NULL, NULL};
}

const char *race_relaxed_wait(Machine *machine, const Race *race, const Barrier *barrier,
                              uint64_t phase) {
    Track track = track_of(machine, &race->later);
    for (uint32_t i = track.at; i-- > 0;) {
        const Moment *moment = track.moments[i];
        if (moment->kind != MOMENT_ACQUIRE || moment->object != OBJECT_MBARRIER) continue;
        if (moment->rank != barrier->home->rank || moment->address != barrier->address) continue;
        if (!moment->relaxed || moment->value == UINT64_MAX || moment->value < phase) return NULL;
        Actor actor = actor_at(&race->later, moment);
        return name_place(machine, &actor);
    }
    return NULL;
}

/* The barrier that orders the stages of a pipe: by the manifest, or where the earlier side has
 * arrived since. NULL: none is known. */
static const char *expected_barrier(Machine *machine, const Race *race, const Track *track) {
    uint32_t stage = 0, byte = 0;
    const ManifestShared *range = race->range.space == SPACE_SHARED
                                      ? shared_range(machine, race->range.address, &stage, &byte)
                                      : NULL;
    bool roles = role_of_warp(machine, race->earlier.actor.warp) !=
                 role_of_warp(machine, race->later.actor.warp);
    if (range && range->kind == SHARED_FIELD && range->pipe && roles)
        return arena_printf(machine->arena, "the %s barrier of stage %u of `%s`",
                            race->later.kind == ACCESS_READ ? "full" : "empty", stage, range->pipe);
    bool own = race->earlier.actor.warp == race->later.actor.warp &&
               race->earlier.actor.rank == race->later.actor.rank;
    for (uint32_t i = track->at; i < track->count && !own; i++) {
        const Moment *moment = track->moments[i];
        if (race->range.space == SPACE_SHARED && moment->kind == MOMENT_RELEASE &&
            moment->object == OBJECT_MBARRIER)
            return name_of_barrier(machine, moment);
    }
    return NULL;
}

/* The later side has waited for the stage in this round, and nevertheless does not know the access:
 * no arrival of that phase follows it. A round ends with an arrival at the other barrier of the
 * stage; producers that copy arrive there before the copy. */
static const char *unrelated_phase(Machine *machine, const Race *race, const Track *to) {
    SharedKind kind = race->later.kind == ACCESS_READ ? SHARED_FULL : SHARED_EMPTY;
    uint32_t rounds = 0, allowed = kind == SHARED_EMPTY && race->later.actor.async;
    for (uint32_t i = to->at; i-- > 0;) {
        const Moment *moment = to->moments[i];
        const ManifestShared *barrier = barrier_of_stage(machine, race, moment);
        if (!barrier) continue;
        if (barrier->kind != kind) {
            rounds += moment->kind == MOMENT_RELEASE;
            continue;
        }
        if (moment->kind != MOMENT_ACQUIRE) continue;
        if (rounds > allowed || moment->value == UINT64_MAX) return NULL;
        return arena_printf(machine->arena, "%s, was complete without an arrival after this %s",
                            name_object(machine, moment), past(race->earlier.kind));
    }
    return NULL;
}

RaceCause race_cause(Machine *machine, const Race *race) {
    const RaceSide *earlier = &race->earlier, *later = &race->later;
    Track from = track_of(machine, earlier), to = track_of(machine, later);
    if (!from.kept || !to.kept || earlier->cluster != later->cluster)
        return (RaceCause){NULL, NULL};
    RaceCause cause = {NULL, NULL};
    for (uint32_t i = to.at; i-- > 0;)
        for (uint32_t k = from.count; k-- > 0 && !cause.text;) {
            if (!matches(from.moments[k], to.moments[i])) continue;
            if (k >= from.at)
                cause = broken(machine, race, &from, k, to.moments[i]);
            else if (is_early(machine, race, &from, k))
                cause = early(machine, race, from.moments[k]);
        }
    if (!cause.text) cause.text = unrelated_phase(machine, race, &to);
    if (cause.text) return cause;
    const char *barrier = expected_barrier(machine, race, &from);
    if (!barrier) return (RaceCause){NULL, NULL};
    return (RaceCause){arena_printf(machine->arena, "no wait for %s between", barrier), NULL};
}

const char *race_unawaited(const Warp *warp, uint64_t address) {
    const Machine *machine = warp->block->machine;
    const Timeline *timeline = warp->timeline;
    uint32_t stage = 0, byte = 0;
    const ManifestShared *field = shared_range(machine, address, &stage, &byte);
    if (!machine->order || !field || field->kind != SHARED_FIELD || !field->pipe) return NULL;
    if (timeline && timeline->count > TIMELINE) return NULL;
    for (uint32_t i = 0; timeline && i < timeline->count; i++) {
        const Moment *moment = &timeline->moments[i];
        uint32_t other = 0;
        if (moment->kind != MOMENT_ACQUIRE || moment->object != OBJECT_MBARRIER) continue;
        const ManifestShared *barrier = shared_range(machine, moment->address, &other, &byte);
        if (barrier && barrier->pipe && other == stage && !strcmp(barrier->pipe, field->pipe))
            return NULL;
    }
    return arena_printf(machine->arena, "the full barrier of stage %u of `%s`", stage, field->pipe);
}

/* ---- the timeline ---------------------------------------------------------------------------- */

static void add_step(Machine *machine, const RaceSide *side, const Moment *moment, Str *out) {
    Actor actor = actor_at(side, moment);
    str_printf(out, "\n%s%s (%s)", verb_of(machine, side, moment),
               moment->relaxed ? ", `.relaxed`," : "", name_place(machine, &actor));
}

static void add_track(Machine *machine, Diag *diag, const RaceSide *side, bool is_last) {
    Track track = track_of(machine, side);
    Str out = str_new(machine->arena);
    Actor actor = side->actor;
    actor.async = false;
    name_actor(machine, &actor, &out);
    str_printf(&out, " in %s:", name_block(machine, &side->actor));
    if (!track.kept) {
        diag_note(machine->diags, diag, "%s its steps are not kept", out.text);
        return;
    }
    uint32_t first = track.at > MOST_BEFORE ? track.at - MOST_BEFORE : 0, after = 0;
    for (uint32_t i = first; i < track.at; i++) add_step(machine, side, track.moments[i], &out);
    bool matrix = actor_inst(machine, &side->actor)->opcode == OP_WGMMA;
    str_printf(&out, "\n> %s%s (%s)",
               !side->actor.async ? ""
               : matrix           ? "issues the wgmma that "
                                  : "issues the copy that ",
               side->kind == ACCESS_READ    ? "reads"
               : side->kind == ACCESS_WRITE ? "writes"
                                            : "updates",
               name_place(machine, &side->actor));
    /* then what may have released it */
    for (uint32_t i = track.at; i < track.count && after < MOST_AFTER && !is_last; i++)
        if (track.moments[i]->kind != MOMENT_ISSUE) {
            add_step(machine, side, track.moments[i], &out);
            after++;
        }
    diag_note(machine->diags, diag, "%s", out.text);
}

/* "the copy of role `load` brings `A[128, 64]` there" */
static void add_element(Machine *machine, Diag *diag, const Race *race, const RaceSide *side) {
    Track track = track_of(machine, side);
    const Moment *issue = track.issue;
    int64_t at[MAX_RANK];
    if (!issue || !issue->map || race->range.space != SPACE_SHARED ||
        !tensor_element(issue->map, issue->shared, issue->coordinates,
                        (uint32_t)race->range.address, at))
        return;
    Str out = str_new(machine->arena);
    Actor actor = side->actor;
    name_actor(machine, &actor, &out);
    str_add(&out, side->kind == ACCESS_READ ? " copies it to " : " copies ");
    name_coordinates(issue->map, at, &out);
    if (side->kind != ACCESS_READ) str_add(&out, " there");
    diag_note(machine->diags, diag, "%s", out.text);
}

void race_timeline(Machine *machine, Diag *diag, const Race *race) {
    add_element(machine, diag, race, &race->earlier);
    add_element(machine, diag, race, &race->later);
    add_track(machine, diag, &race->earlier, false);
    add_track(machine, diag, &race->later, true);
}
