/* Matches loops of different roles: a track is a set of equal loops, with bounds that are
 * numbers. Loops over the same pipes and number are a group: their counters advance together. */
#include "check/deadlock/deadlock_search.h"

#define FIXED_MOST 64 /* most iterations that are all distinguished */

static int track_of(const Part *part, int side, int loop) {
    return loop < 0 ? -1 : loop_of(part, side, loop)->track;
}

/* ---- loops ----------------------------------------------------------------------------------- */

static bool same_piece(const Loop *a, const Loop *b) {
    if (a->first != b->first || a->bound_count != b->bound_count) return false;
    return a->bound_count < 2 || a->bounds[1].plus == b->bounds[1].plus;
}

/* True if exactly one of two conditions holds */
static bool are_contrary(Algebra *algebra, const Under *a, const Under *b) {
    int64_t sum;
    if (poly_changes(algebra, a->condition) || poly_changes(algebra, b->condition)) return false;
    if (poly_equal(a->condition, b->condition)) return a->holds != b->holds;
    bool opposite = poly_is_constant(poly_sum(algebra, a->condition, b->condition, 1), &sum);
    return opposite && sum == 1 && a->holds == b->holds;
}

/* True if at most one of the two loops runs, in one iteration of the enclosing loop */
static bool never_both(const Part *part, int side, const Track *a, const Track *b) {
    Algebra *algebra = part_algebra(part, side, b->shape.outer);
    for (size_t i = 0; i < a->under.count; i++)
        for (size_t k = 0; k < b->under.count; k++)
            if (are_contrary(algebra, &a->under.items[i], &b->under.items[k])) return true;
    return false;
}

static void find_conditions(Part *part, int side, const Loop *loop, Track *track) {
    const FlowCode *slice = part->sides.items[side].slice;
    for (int r = loop->region->parent; r >= 0 && r != loop->outer;
         r = slice->regions.items[r].parent) {
        const Region *region = &slice->regions.items[r];
        if (region->kind != REGION_IF || !region->condition) continue;
        const Poly *condition =
            part_formula(part, side, region->loop, region->begin, region->condition);
        bool holds = loop->region->begin < region->otherwise;
        if (condition) vec_push(part->arena, &track->under, ((Under){condition, holds}));
    }
}

static bool same_loop(const Part *part, int side, const Track *track, const Track *wanted) {
    const Region *a = track->region, *b = wanted->region;
    if (track->outer != wanted->outer || a->kind != b->kind) return false;
    if (a->kind == REGION_GRID) return true;
    if (track->changes || wanted->changes) return false;
    bool domain = a->domain >= 0 && a->domain == b->domain;
    if ((a->where || b->where) && !(a->where && b->where && domain)) return false;
    if (a->where && !same_piece(&track->shape, &wanted->shape)) return false;
    Algebra *algebra = part_algebra(part, side, wanted->shape.outer);
    return part_equal(algebra, track->lo, wanted->lo) && part_equal(algebra, track->hi, wanted->hi);
}

static bool among(const Polys *polys, const Poly *poly) {
    for (size_t i = 0; i < polys->count; i++)
        if (poly_equal(polys->items[i], poly)) return true;
    return false;
}

/* True if the formula is at most one of these */
static bool is_within(Algebra *algebra, const Poly *poly, const Polys *bounds) {
    if (among(bounds, poly)) return true;
    for (size_t i = 0; i < bounds->count; i++)
        if (algebra_proves(algebra, CLAIM_NOT_NEGATIVE,
                           poly_sum(algebra, bounds->items[i], poly, -1)))
            return true;
    return false;
}

/* The previous loop in the same list if this loop continues where that one ended. Then its
 * counter starts at the end of that loop: at the bound where this one begins, or at another
 * bound, which also ends this one. */
static int continued(Part *part, int side, const Loop *loop, const Track *wanted,
                     const Polys *ends) {
    const Side *row = &part->sides.items[side];
    Algebra *algebra = part_algebra(part, side, loop->outer);
    Polys begins = {0}, before_ends = {0}, before_begins = {0};
    int before = row->latest[loop->depth - 1] - 1;
    if (before < 0) return -1;
    const Loop *last = &row->loops[before];
    const Track *track = &part->tracks.items[last->track];
    if (last->outer != loop->outer || last->arm != loop->arm || last->left || last->group < 0 ||
        last->region->kind != REGION_FOR || last->region->where || track->changes)
        return -1;
    int64_t zero;
    if (!poly_is_constant(track->base, &zero) || zero != 0) return -1;
    poly_operands(part->arena, algebra, ATOM_MAX, wanted->lo, &begins);
    poly_operands(part->arena, algebra, ATOM_MIN, track->hi, &before_ends);
    poly_operands(part->arena, algebra, ATOM_MAX, track->lo, &before_begins);
    const Poly *joint = NULL;
    for (size_t i = 0; i < begins.count && !joint; i++)
        if (among(&before_ends, begins.items[i])) joint = begins.items[i];
    if (!joint) return -1;
    for (size_t i = 0; i < before_ends.count; i++)
        if (before_ends.items[i] != joint && !poly_equal(before_ends.items[i], joint) &&
            !among(ends, before_ends.items[i]))
            return -1;
    for (size_t i = 0; i < before_begins.count; i++)
        if (!among(&begins, before_begins.items[i]) &&
            !algebra_proves(algebra, CLAIM_NOT_NEGATIVE,
                            poly_sum(algebra, joint, before_begins.items[i], -1)))
            return -1;
    for (size_t i = 0; i < begins.count; i++)
        if (!poly_equal(begins.items[i], joint) &&
            !is_within(algebra, begins.items[i], &before_begins))
            return -1;
    return before;
}

/* The same for pieces of a range with a `where` */
static int continued_piece(const Part *part, int side, const Loop *loop) {
    const Side *row = &part->sides.items[side];
    int before = row->latest[loop->depth - 1] - 1;
    const Loop *last = before < 0 ? NULL : &row->loops[before];
    if (!loop->piece || !last || !last->piece || last->bound_count < 2) return -1;
    if (last->outer != loop->outer || last->arm != loop->arm || last->left || last->group < 0)
        return -1;
    if (last->bounds[0].number != loop->bounds[0].number || last->first > loop->first) return -1;
    return last->bounds[1].plus == loop->first ? before : -1;
}

/* True if the loops are in different arms of one IF */
static bool in_other_arms(const FlowCode *slice, const Region *a, const Region *b) {
    for (int r = b->parent; r >= 0; r = slice->regions.items[r].parent) {
        const Region *region = &slice->regions.items[r];
        if (region->kind != REGION_IF || a->begin < region->begin || a->begin > region->end)
            continue;
        if ((a->begin > region->otherwise) != (b->begin > region->otherwise)) return true;
    }
    return false;
}

/* True if the loop may join the group: no loop of the same side in it can run in the same
 * iteration of the enclosing loop */
static bool fits(const Part *part, int side, const Loop *loop, int group) {
    const Side *own = &part->sides.items[side];
    if (loop->after >= 0) return own->loops[loop->after].group == group;
    for (size_t r = 0; r < own->slice->regions.count; r++) {
        const Loop *other = &own->loops[r];
        if (other->region && other->group == group &&
            !in_other_arms(own->slice, other->region, loop->region))
            return false;
    }
    return true;
}

/* True if the group has a loop over the same pipes that may run in the same iteration */
static bool goes_with(const Part *part, int side, const Track *track, int group) {
    for (size_t i = 0; i < part->tracks.count; i++) {
        const Track *other = &part->tracks.items[i];
        if (other->shape.group == group && (other->pipes & track->pipes) &&
            !never_both(part, side, other, track))
            return true;
    }
    return false;
}

/* The first group with loops over the same pipes and number, and none of this side; -1: none */
static int group_of(const Part *part, int side, const Track *track) {
    if (track->shape.after >= 0) return part->sides.items[side].loops[track->shape.after].group;
    for (size_t i = 0; i < part->views.count; i++) {
        const Group *group = &part->groups.items[part->views.items[i].group];
        if (group->outer != track->outer || !(group->pipes & track->pipes) ||
            !fits(part, side, &track->shape, part->views.items[i].group) ||
            !goes_with(part, side, track, part->views.items[i].group))
            continue;
        for (int b = 0; b < track->shape.bound_count; b++)
            if (track->shape.bounds[b].number == part->views.items[i].number)
                return part->views.items[i].group;
    }
    return -1;
}

static int view_of(Part *part, int number, int group) {
    for (size_t i = 0; i < part->views.count; i++)
        if (part->views.items[i].number == number && part->views.items[i].group == group)
            return (int)i;
    vec_push(part->arena, &part->views, (View){number, group});
    part->groups.items[group].views++;
    return (int)part->views.count - 1;
}

static void add_bound(Part *part, int side, Loop *loop, bool changes, const Poly *most) {
    Algebra *algebra = part_algebra(part, side, loop->outer);
    Bound *bound = &loop->bounds[loop->bound_count++];
    *bound = (Bound){.number = -1, .view = -1, .times = 1};
    if (poly_is_constant(most, &bound->plus)) {
        loop->constant = true;
        return;
    }
    const Poly *rest =
        most && !changes ? part_primitive(part, most, &bound->times, &bound->plus) : NULL;
    if (rest && bound->plus < NEVER / 2 && bound->plus > -NEVER / 2 && bound->times < NEVER) {
        bound->number = number_of(part, side, loop->outer, rest);
        return;
    }
    bound->times = 1; /* a separate number */
    bound->plus = 0;
    bound->number = number_new(part, algebra,
                               (Number){.poly = most ? most : poly_constant(algebra, 0),
                                        .track = track_of(part, side, loop->outer),
                                        .where = -1,
                                        .changes = true,
                                        .in_grid = in_grid(part, side, loop->outer)});
}

static bool known_end(Part *part, int side, const Loop *loop, const Region *piece, Expr *end,
                      int64_t *out) {
    if (!poly_is_constant(part_formula(part, side, loop->outer, piece->begin, end), out))
        return false;
    return *out > -NEVER / 2 && *out < NEVER / 2;
}

/* A piece with known ends is a loop from one to the other. */
static void add_piece(Part *part, int side, Loop *loop) {
    const Region *piece = code_piece(part->sides.items[side].slice, loop->region);
    int64_t from, to = 0;
    if (!piece || !known_end(part, side, loop, piece, piece->from, &from)) return;
    if (piece->to && !known_end(part, side, loop, piece, piece->to, &to)) return;
    loop->piece = true;
    loop->first = from > 0 ? from : 0;
    if (!piece->to) return;
    loop->constant = true;
    loop->bounds[loop->bound_count++] = (Bound){.number = -1, .view = -1, .times = 1, .plus = to};
}

/* The live iterations of a range: equal for equal ranges */
static void add_where(Part *part, int side, Loop *loop, const Track *track) {
    Algebra *algebra = part_algebra(part, side, loop->outer);
    const Region *region = loop->region;
    const Poly *range = track->changes ? NULL : poly_sum(algebra, track->hi, track->lo, -1);
    int whole = part->sides.items[side].slice->whole_rows.items[region->begin];
    int number = number_live(part, side, loop->outer, region, whole, range);
    loop->bounds[loop->bound_count++] = (Bound){.number = number, .view = -1, .times = 1};
    add_piece(part, side, loop);
}

static void add_grid(Part *part, Loop *loop) {
    Bound bound = {.number = -1, .view = -1, .times = 1, .plus = 1};
    if (part->prog->persistent) {
        bound.plus = 0;
        for (size_t i = 0; i < part->numbers.count; i++)
            if (part->numbers.items[i].grid) bound.number = (int)i;
        if (bound.number < 0)
            bound.number = number_new(part, part->algebra[0],
                                      (Number){.track = -1, .where = -1, .grid = true});
    } else
        loop->constant = true;
    loop->bounds[loop->bound_count++] = bound;
}

/* Sets the bounds of the counter, which is the loop variable if its first value is known,
 * otherwise the number of iterations */
static void add_bounds(Part *part, int side, Loop *loop, Track *track) {
    Algebra *algebra = part_algebra(part, side, loop->outer);
    Polys ends = {0};
    const Region *region = loop->region;
    track->base = poly_constant(algebra, 0);
    loop->after = -1;
    if (region->kind == REGION_GRID) {
        add_grid(part, loop);
        return;
    }
    if (region->where) {
        add_where(part, side, loop, track);
        loop->after = continued_piece(part, side, loop);
        return;
    }
    poly_operands(part->arena, algebra, ATOM_MIN, track->hi, &ends);
    if (!track->changes) loop->after = continued(part, side, loop, track, &ends);
    if (loop->after < 0 && (!poly_is_constant(track->lo, &loop->first) || loop->first > NEVER / 2 ||
                            loop->first < -NEVER / 2)) {
        track->base = track->lo;
        loop->first = 0;
    }
    if (ends.count > BOUNDS_MOST) ends.count = 0, vec_push(part->arena, &ends, track->hi);
    for (size_t i = 0; i < ends.count; i++)
        add_bound(part, side, loop, track->changes,
                  poly_sum(algebra, ends.items[i], track->base, -1));
}

static void settle(Part *part, Track *track, int group) {
    Loop *shape = &track->shape;
    shape->group = -1;
    shape->times = 1;
    for (int b = 0; b < shape->bound_count; b++)
        if (shape->bounds[b].number >= 0) shape->group = 0, shape->times = shape->bounds[b].times;
    if (shape->group < 0) return;
    if (group < 0) {
        size_t sides = part->sides.count;
        Group fresh = {.outer = track->outer, .exact = part->exact, .period = 1};
        fresh.last = NEW_ARRAY(part->arena, int, sides);
        for (size_t i = 0; i < sides; i++) fresh.last[i] = -1;
        vec_push(part->arena, &part->groups, fresh);
        group = (int)part->groups.count - 1;
    }
    shape->group = group;
    for (int b = 0; b < shape->bound_count; b++) {
        Bound *bound = &shape->bounds[b];
        if (bound->number < 0) continue;
        bound->view = view_of(part, bound->number, shape->group);
        Group *row = &part->groups.items[group];
        row->scaled |= bound->times != 1;
        row->fixed |= part->numbers.items[bound->number].high <= FIXED_MOST ||
                      (row->scaled && row->views > 1);
    }
}

static bool may_join(const Part *part, int side, const Track *track, const Track *wanted,
                     int group) {
    if (!same_loop(part, side, track, wanted) ||
        (track->shape.after >= 0) != (wanted->shape.after >= 0))
        return false;
    if (track->loop[side] >= 0 || never_both(part, side, track, wanted)) return false;
    if (track->shape.group < 0) return true;
    return group >= 0 ? group == track->shape.group
                      : fits(part, side, &wanted->shape, track->shape.group);
}

/* True if a side with loops of both tracks over these pipes reaches that of `a` first */
static bool comes_before(const Part *part, const Track *a, const Track *b, uint64_t pipes) {
    for (size_t i = 0; i < part->sides.count; i++) {
        const Loop *loops = part->sides.items[i].loops;
        if (a->loop[i] < 0 || b->loop[i] < 0) continue;
        if ((loops[a->loop[i]].pipes & pipes) && (loops[b->loop[i]].pipes & pipes))
            return a->loop[i] < b->loop[i];
    }
    return false;
}

/* A track over the same pipes: the first one that other sides reach */
static int track_shared(const Part *part, int side, const Track *wanted, int group) {
    const Track *first = NULL;
    for (size_t i = 0; i < part->tracks.count; i++) {
        const Track *track = &part->tracks.items[i];
        if (!(track->pipes & wanted->pipes)) continue;
        if (!may_join(part, side, track, wanted, group)) continue;
        if (!first || comes_before(part, track, first, wanted->pipes)) first = track;
    }
    return first ? (int)(first - part->tracks.items) : -1;
}

static bool is_apart(const Part *part, int side, int region) {
    for (size_t i = 0; i < part->excluded.count; i++)
        if (part->excluded.items[i].side == side && part->excluded.items[i].region == region)
            return true;
    return false;
}

/* A track over other pipes, for which this role has no better loop */
static int track_other(const Part *part, int side, int region, const Track *wanted, int group,
                       uint64_t elsewhere) {
    bool grid = wanted->region->kind == REGION_GRID;
    if (!grid && is_apart(part, side, region)) return -1;
    for (size_t i = 0; i < part->tracks.count; i++) {
        const Track *track = &part->tracks.items[i];
        if ((grid || !(track->pipes & elsewhere)) && may_join(part, side, track, wanted, group))
            return (int)i;
    }
    return -1;
}

/* True if the track has a loop over pipes of this one that the track's loop of this side does
 * not share */
static bool takes_place(const Part *part, int side, const Track *track, const Track *wanted) {
    uint64_t own = part->sides.items[side].loops[track->loop[side]].pipes;
    for (size_t k = 0; k < part->sides.count; k++) {
        int loop = track->loop[k];
        uint64_t pipes = (int)k == side || loop < 0 ? 0 : part->sides.items[k].loops[loop].pipes;
        if ((pipes & wanted->pipes) && !(pipes & own)) return true;
    }
    return false;
}

/* If a loop of another role was matched with loops over other pipes in place of this one, that
 * match is excluded. found: this one has another match */
static bool part_again(Part *part, int side, const Track *wanted, bool found) {
    for (size_t i = 0; i < part->tracks.count; i++) {
        const Track *track = &part->tracks.items[i];
        if (track->loop[side] < 0 || !(track->pipes & wanted->pipes)) continue;
        if (!same_loop(part, side, track, wanted)) continue;
        if (found && !takes_place(part, side, track, wanted)) continue;
        for (size_t k = 0; k < part->sides.count; k++) {
            int loop = track->loop[k];
            bool joined = (int)k != side && loop >= 0 && part->sides.items[k].loops[loop].joined;
            if (!joined || is_apart(part, (int)k, loop)) continue;
            vec_push(part->arena, &part->excluded, ((Excluded){(int)k, loop}));
            return true;
        }
    }
    return false;
}

static Track track_wanted(Part *part, int side, const Loop *loop, uint64_t pipes) {
    const Region *region = loop->region;
    Algebra *algebra = part_algebra(part, side, loop->outer);
    Track wanted = {.outer = track_of(part, side, loop->outer),
                    .depth = loop->depth,
                    .region = region,
                    .pipes = pipes};
    wanted.role = part->sides.items[side].role;
    if (region->kind == REGION_FOR) {
        wanted.lo = part_formula(part, side, loop->outer, region->begin, region->lo);
        wanted.hi = part_formula(part, side, loop->outer, region->begin, region->hi);
        wanted.changes = poly_changes(algebra, wanted.lo) || poly_changes(algebra, wanted.hi);
        wanted.once = !region->where && !wanted.changes &&
                      range_is_once(part->arena, algebra, wanted.lo, wanted.hi);
    }
    wanted.shape = *loop;
    add_bounds(part, side, &wanted.shape, &wanted);
    find_conditions(part, side, loop, &wanted);
    return wanted;
}

static int track_new(Part *part, Track track, int group) {
    track.loop = NEW_ARRAY(part->arena, int, part->sides.count);
    for (size_t i = 0; i < part->sides.count; i++) track.loop[i] = -1;
    settle(part, &track, group);
    vec_push(part->arena, &part->tracks, track);
    return (int)part->tracks.count - 1;
}

/* The track of the loop, -1: an earlier loop has its place */
static int track_for(Part *part, int side, int region, Loop *loop, uint64_t pipes,
                     uint64_t elsewhere) {
    Track wanted = track_wanted(part, side, loop, pipes);
    loop->after = wanted.shape.after;
    int at = track_shared(part, side, &wanted, -1), group;
    if (wanted.region->kind != REGION_GRID && part_again(part, side, &wanted, at >= 0)) return -1;
    if (at >= 0) return at;
    group = group_of(part, side, &wanted);
    if (group >= 0) at = track_shared(part, side, &wanted, group);
    if (at < 0) {
        at = track_other(part, side, region, &wanted, group, elsewhere);
        loop->joined = at >= 0;
    }
    return at >= 0 ? at : track_new(part, wanted, group);
}

bool part_loop(Part *part, int side, int region, Loop *loop, uint64_t pipes, uint64_t elsewhere) {
    int at = track_for(part, side, region, loop, pipes, elsewhere);
    if (at < 0) return false;
    Track *track = &part->tracks.items[at];
    Loop own = *loop;
    *loop = track->shape;
    loop->region = own.region, loop->outer = own.outer, loop->depth = own.depth;
    loop->arm = own.arm, loop->left = own.left, loop->after = own.after;
    loop->joined = own.joined, loop->pipes = pipes;
    loop->track = at;
    track->loop[side] = region;
    part->sides.items[side].latest[loop->depth - 1] = region + 1;
    track->pipes |= pipes;
    if (loop->group < 0) return true;
    Group *with = &part->groups.items[loop->group];
    with->pipes |= pipes;
    with->last[side] = region;
    return true;
}
