/* The normal form of a state: decisions that are no longer needed are dropped, and iterations,
 * stages and turns are counted relative to the slowest process. States with the same normal form
 * have the same successors. */
#include "check/deadlock/deadlock_search.h"

#include <string.h>

static int side_of(const Search *s, int process) {
    return s->machine->processes.items[process].member;
}

static const Side *own_side(const Search *s, int process) {
    return &s->part->sides.items[side_of(s, process)];
}

static Position place_of(const Search *s, const State *state, int process) {
    return machine_position(s->machine, state, process);
}

static int processes(const Search *s) { return (int)s->machine->processes.count; }

/* The loop whose counter continues in the next piece of its range, -1: none */
static int carried_at(const Search *s, const Position *place) {
    return *place->step % 2 ? -1 : own_side(s, place->process)->carried[*place->step / 2];
}

/* The innermost loop of the process, or the one whose counter it keeps; -1: none */
static int innermost(const Search *s, const Position *place) {
    int carried = carried_at(s, place);
    return carried >= 0 ? carried : position_loop(place);
}

/* ---- decisions ------------------------------------------------------------------------------- */

/* Position of a process relative to one iteration of a track: -1 before it, 0 in it, 1 after it */
static int standing(const Search *s, const State *state, int process, int track,
                    const int32_t *path) {
    int chain[DEPTH_MOST], depth = search_depth(s, track);
    Position place = place_of(s, state, process);
    for (int i = depth; i-- > 0; track = s->part->tracks.items[track].outer) chain[i] = track;
    for (int i = 0; i < depth; i++) {
        int loop = s->part->tracks.items[chain[i]].loop[side_of(s, process)];
        if (loop < 0) return 1;
        const Region *region = own_side(s, process)->loops[loop].region;
        if (*place.step <= 2 * region->begin) return -1;
        if (*place.step > 2 * region->next) return 1;
        if (place.trips[i] != path[i]) return place.trips[i] < path[i] ? -1 : 1;
    }
    return 0;
}

/* The last step of the side that needs the decision, -1: none */
static int last_asking(const Search *s, int what, int side) {
    int numbers = (int)s->part->numbers.count;
    if (what < numbers) return s->part->numbers.items[what].last[side];
    int last = s->part->groups.items[s->part->views.items[what - numbers].group].last[side];
    return last < 0 ? -1 : 2 * s->part->sides.items[side].loops[last].region->next;
}

static bool will_ask(const Search *s, const State *state, const Decision *decision, int process) {
    int last = last_asking(s, decision->what, side_of(s, process));
    if (last < 0) return false;
    int at = standing(s, state, process, search_track(s, decision->what), decision->path);
    return at < 0 || (at == 0 && *place_of(s, state, process).step <= last);
}

static void forget_decisions(const Search *s, State *state) {
    Decided *decided = decided_of(state);
    int kept = 0;
    for (int i = 0; i < decided->count; i++) {
        bool live = false;
        for (int p = 0; p < processes(s) && !live; p++)
            live = will_ask(s, state, &decided->items[i], p);
        if (live) decided->items[kept++] = decided->items[i];
    }
    decided->count = kept;
}

static int compare_decisions(const Decision *a, const Decision *b) {
    if (a->what != b->what) return a->what < b->what ? -1 : 1;
    for (int i = 0; i < DEPTH_MOST; i++)
        if (a->path[i] != b->path[i]) return a->path[i] < b->path[i] ? -1 : 1;
    return 0;
}

static void sort_decisions(State *state) {
    Decided *decided = decided_of(state);
    for (int i = 1; i < decided->count; i++)
        for (int k = i; k > 0 && compare_decisions(&decided->items[k], &decided->items[k - 1]) < 0;
             k--) {
            Decision swap = decided->items[k];
            decided->items[k] = decided->items[k - 1];
            decided->items[k - 1] = swap;
        }
}

/* ---- iterations ------------------------------------------------------------------------------ */

static void clear_unused(const Search *s, State *state) {
    for (int p = 0; p < processes(s); p++) {
        Position place = place_of(s, state, p);
        int loop = innermost(s, &place), depth = loop < 0 ? 0 : own_side(s, p)->loops[loop].depth;
        memset(place.trips + depth, 0, (size_t)(place.member->depth - depth) * sizeof *place.trips);
        if (position_ended(&place))
            memset(place.cursors, 0, place.member->ends.count * sizeof *place.cursors);
    }
}

/* The loop of a group that the process is in, or whose counter it keeps for the next piece;
 * NULL: none */
static const Loop *round_of(const Search *s, const Position *place, int group) {
    const Side *side = own_side(s, place->process);
    int loop = innermost(s, place);
    while (loop >= 0 && side->loops[loop].group != group) loop = side->loops[loop].outer;
    return loop < 0 ? NULL : &side->loops[loop];
}

/* Number of a process's iterations that can be dropped for one of its loops */
static int64_t rounds_done(const Position *place, const Loop *loop, int32_t exact) {
    int64_t counter = place->trips[loop->depth - 1];
    int64_t rounds = floor_div(counter - exact, loop->times);
    for (int b = 0; b < loop->bound_count; b++) {
        int64_t above = floor_div(counter - loop->bounds[b].plus, loop->bounds[b].times) - exact;
        if (above < rounds) rounds = above;
    }
    return rounds;
}

/* Number of iterations that all processes in a group's loops, in one iteration of the enclosing
 * loop, have completed and can drop */
static int64_t common_rounds(const Search *s, const State *state, const Group *group, int index,
                             const int32_t *path) {
    int64_t least = NEVER;
    for (int p = 0; p < processes(s); p++) {
        Position place = place_of(s, state, p);
        const Loop *loop = round_of(s, &place, index);
        if (group->last[side_of(s, p)] < 0) continue;
        int where = standing(s, state, p, group->outer, path);
        if (where > 0 || (where == 0 && !loop && search_standing(s, &place, index) > 0)) continue;
        if (where < 0 || !loop || loop->constant) return 0;
        int64_t rounds = rounds_done(&place, loop, group->exact);
        if (rounds < least) least = rounds;
    }
    return least == NEVER || least < 0 ? 0 : least;
}

/* The depth at which a decision's path passes through a loop of the group, -1: it does not */
static int passes(const Search *s, const Decision *decision, int group, const int32_t *path,
                  int64_t *times) {
    int outer = search_depth(s, s->part->groups.items[group].outer),
        track = search_track(s, decision->what);
    while (search_depth(s, track) > outer + 1) track = s->part->tracks.items[track].outer;
    if (search_depth(s, track) != outer + 1 || s->part->tracks.items[track].shape.group != group)
        return -1;
    if (memcmp(decision->path, path, (size_t)outer * sizeof *path) != 0) return -1;
    *times = s->part->tracks.items[track].shape.times;
    return outer;
}

static void shift_decision(const Search *s, Decision *decision, int group, const int32_t *path,
                           int64_t rounds) {
    int outer = search_depth(s, s->part->groups.items[group].outer),
        numbers = (int)s->part->numbers.count;
    int64_t times;
    int at = passes(s, decision, group, path, &times);
    if (at >= 0) decision->path[at] -= (int32_t)(times * rounds);
    if (decision->what < numbers || s->part->views.items[decision->what - numbers].group != group)
        return;
    if (memcmp(decision->path, path, (size_t)outer * sizeof *path) != 0) return;
    int32_t exact = s->part->groups.items[group].exact;
    decision->low -= (int32_t)rounds;
    if (decision->low < exact - 1) decision->low = exact - 1;
    if (decision->high != NEVER) decision->high -= (int32_t)rounds;
    if (decision->high < exact) decision->high = exact;
}

/* Transfers the known limits of the number to the view of the group, before its counters are no
 * longer absolute. */
static void know_view(const Search *s, State *state, int view, const int32_t *path) {
    const View *row = &s->part->views.items[view];
    int what = (int)s->part->numbers.count + view;
    const Decision *number = search_find(s, state, row->number, path);
    Decision *known = search_find(s, state, what, path);
    int32_t high = number ? number->high : s->part->numbers.items[row->number].high;
    Decided *decided = decided_of(state);
    if (high == NEVER || (known && known->high <= high)) return;
    if (known) {
        known->high = high;
    } else if (decided->count < DECISIONS_MOST) {
        int32_t low = s->part->groups.items[row->group].exact - 1;
        Decision fresh = {.what = what, .low = low, .high = high};
        memcpy(fresh.path, path, (size_t)search_depth(s, search_track(s, what)) * sizeof *path);
        decided->items[decided->count++] = fresh;
    }
}

static void know_views(const Search *s, State *state, int group, const int32_t *path) {
    for (int v = 0; v < (int)s->part->views.count; v++)
        if (s->part->views.items[v].group == group) know_view(s, state, v, path);
}

static void forget_rounds(const Search *s, State *state, int group, const int32_t *path,
                          int64_t rounds) {
    know_views(s, state, group, path);
    Decided *decided = decided_of(state);
    for (int i = 0; i < decided->count; i++)
        shift_decision(s, &decided->items[i], group, path, rounds);
    for (int p = 0; p < processes(s); p++) {
        Position place = place_of(s, state, p);
        const Loop *loop = round_of(s, &place, group);
        if (loop && standing(s, state, p, s->part->groups.items[group].outer, path) == 0)
            place.trips[loop->depth - 1] -= (int32_t)(loop->times * rounds);
    }
}

/* The next group with a process in its loops, or with a kept counter; -1: none */
static int next_group(const Search *s, const State *state, int before) {
    int next = -1;
    for (int p = 0; p < processes(s); p++) {
        Position place = place_of(s, state, p);
        const Side *side = own_side(s, p);
        for (int loop = innermost(s, &place); loop >= 0; loop = side->loops[loop].outer) {
            int group = side->loops[loop].group;
            if (group > before && (next < 0 || group < next)) next = group;
        }
    }
    return next;
}

static void count_iterations(const Search *s, State *state) {
    for (int g = next_group(s, state, -1); g >= 0; g = next_group(s, state, g)) {
        const Group *group = &s->part->groups.items[g];
        for (int p = 0; p < processes(s) && !group->fixed; p++) {
            Position place = place_of(s, state, p);
            int32_t path[DEPTH_MOST] = {0};
            if (!round_of(s, &place, g)) continue;
            memcpy(path, place.trips, (size_t)place.member->depth * sizeof *path);
            int64_t rounds = common_rounds(s, state, group, g, path);
            rounds -= rounds % (group->outer < 0 ? group->period * s->round : group->period);
            if (rounds > 0) forget_rounds(s, state, g, path, rounds);
        }
    }
}

/* ---- stages and turns ------------------------------------------------------------------------ */

static int base_of(const Search *s, const State *state, const Position *place, int handle) {
    return state->words[ring_of_handle(s->machine, place, handle)->base];
}

static void count_stages(const Search *s, State *state) {
    const Machine *m = s->machine;
    for (int p = 0; p < processes(s); p++) {
        Position place = place_of(s, state, p);
        bool ended = position_ended(&place);
        for (size_t c = 0; c < place.member->ends.count && !ended; c++)
            place.cursors[c] -= state->words[m->rings.items[place.member->ends.items[c] / 2].base];
        for (int i = 0; i < *place.held_count && !ended;) {
            int32_t *held = place.held + HELD_WORDS * i;
            held[HELD_NUMBER] -= base_of(s, state, &place, held[HELD_HANDLE]);
            if (held[HELD_NUMBER] < 0)
                held_drop(&place, i); /* all other processes are done with it */
            else
                i++;
        }
        for (int i = 0; i < *place.kept_count; i++) {
            int32_t *kept = place.kept + KEPT_WORDS * i;
            int handle = place.member->code->lates.items[kept[KEPT_LATE]].handle;
            kept[KEPT_NUMBER] -= base_of(s, state, &place, handle);
        }
    }
    for (size_t r = 0; r < m->rings.count; r++) state->words[m->rings.items[r].base] = 0;
}

static void count_turn(const Search *s, State *state, const Member *member, int turn) {
    int32_t least = NEVER;
    for (int k = 0; k < member->processes; k++) {
        Position place = place_of(s, state, member->first + k);
        if (place.turned[turn] < least) least = place.turned[turn];
    }
    for (int k = 0; k < member->processes; k++)
        place_of(s, state, member->first + k).turned[turn] -= least;
    state->words[member->passed + turn] -=
        member->role->in_turn ? least : least * member->role->instances;
}

void search_normalise(Search *s, State *state) {
    clear_unused(s, state);
    forget_decisions(s, state);
    count_iterations(s, state);
    count_stages(s, state);
    for (size_t i = 0; i < s->machine->members.count; i++) {
        const Member *member = &s->machine->members.items[i];
        for (int t = 0; t < member->role->turns && member->processes > 1; t++)
            count_turn(s, state, member, t);
    }
    sort_decisions(state);
}
