/* Writes of a statement to a stage that its role produces, and its reads of it (P0209, P0217).
 * An instance may read, and write again, what it has written itself: then its threads
 * synchronise before (StageOrder.waits). */
#include "derive/written.h"

/* ---- holds ----------------------------------------------------------------------------------- */

int64_t written_field_elements(const Field *field) {
    return field->elements * (field->count > 0 ? field->count : 1);
}

int64_t written_field_start(const Pipe *pipe, int field) {
    int64_t start = 0;
    for (int f = 0; f < field; f++) start += written_field_elements(&pipe->fields.items[f]);
    return start;
}

Span written_place_of(const Written *w, int acquire) { return w->code->rows.items[acquire].span; }

const Hold *written_acquire(Written *w, int pipe, int acquire) {
    const Pipe *row = &w->tiles->prog->pipes.items[pipe];
    int64_t total = 0;
    for (size_t f = 0; f < row->fields.count; f++) {
        int64_t count = written_field_elements(&row->fields.items[f]);
        if (count <= 0 || count > MAX_ELEMENTS || row->fields.items[f].elements > MAX_ELEMENTS)
            return NULL;
        total += count;
    }
    if (total == 0 || total > MAX_ELEMENTS) return NULL;
    const Elements *none = elements_none();
    Hold *hold = NEW(w->arena, Hold);
    *hold = (Hold){.pipe = pipe,
                   .acquire = acquire,
                   .must = none,
                   .own = none,
                   .may = none,
                   .flying = none,
                   .fresh = none,
                   .seen = none};
    /* a field whose address is taken counts as written */
    arena_count(w->arena, row->fields.count);
    int64_t start = 0, end;
    for (size_t f = 0; f < row->fields.count; f++, start = end) {
        end = start + written_field_elements(&row->fields.items[f]);
        if (!row->fields.items[f].address_taken[END_PRODUCE]) continue;
        hold->must = written_known(
            w, elements_union(w->arena, hold->must, elements_span(w->arena, start, end)),
            hold->must);
        hold->own = hold->must;
    }
    return hold;
}

/* ---- joins ----------------------------------------------------------------------------------- */

static bool has_mark(const Written *w, const Mark *list, const Mark *mark) {
    for (; list; list = list->before) {
        arena_count(w->arena, 1);
        if (list->site == mark->site && list->vague == mark->vague &&
            elements_equal(list->set, mark->set))
            return true;
    }
    return false;
}

static const Mark *add_mark(Written *w, const Mark *list, const Mark *what) {
    if (has_mark(w, list, what)) return list;
    Mark *made = NEW(w->arena, Mark);
    *made = *what;
    made->before = list;
    return made;
}

static const Mark *join_marks(Written *w, const Mark *to, const Mark *from) {
    VEC(const Mark *) others = {0};
    for (; from && from != to; from = from->before)
        if (!has_mark(w, to, from)) vec_push(w->arena, &others, from);
    for (size_t i = others.count; i-- > 0;) to = add_mark(w, to, others.items[i]);
    return to;
}

static const Elements *common(Written *w, const Elements *a, const Elements *b) {
    return written_known(w, elements_common(w->arena, a, b), elements_none());
}

static const Elements *both(Written *w, const Elements *a, const Elements *b) {
    return written_known(w, elements_union(w->arena, a, b), a);
}

/* The bytes are equal, or `differs` is set. */
static bool same_hold(const Hold *a, const Hold *b) {
    const Elements *one[] = {a->must, a->own, a->may, a->flying, a->fresh, a->seen};
    const Elements *two[] = {b->must, b->own, b->may, b->flying, b->fresh, b->seen};
    for (size_t i = 0; i < COUNT_OF(one); i++)
        if (!elements_equal(one[i], two[i])) return false;
    return a->marks == b->marks && a->differs == b->differs && a->open == b->open &&
           a->poisoned == b->poisoned;
}

const Hold *written_join_hold(Written *w, const Hold *to, const Hold *from, Span at) {
    if (to == from) return to;
    Hold *made = NEW(w->arena, Hold);
    *made = *to;
    /* for the message */
    if (to->acquire != from->acquire && !elements_hold(from->must, to->must))
        made->acquire = from->acquire;
    made->must = common(w, to->must, from->must), made->own = common(w, to->own, from->own);
    made->may = both(w, to->may, from->may), made->flying = both(w, to->flying, from->flying);
    made->fresh = both(w, to->fresh, from->fresh), made->seen = both(w, to->seen, from->seen);
    made->poisoned |= from->poisoned;
    if (from->open) made->open = true, made->open_at = from->open_at;
    if (!made->differs && (from->differs || to->bytes != from->bytes)) {
        made->differs = true;
        made->differs_at = to->bytes != from->bytes ? at : from->differs_at;
    }
    made->marks = join_marks(w, to->marks, from->marks);
    return same_hold(made, to) ? to : made;
}

/* ---- order between statements ---------------------------------------------------------------- */

#define SAME_THREAD_STEPS 10

/* If the statement accesses elements that threads have written, or writes elements that they
 * have read, since they synchronised: the threads synchronise before it. */
static void wait_for_threads(Written *w, State *state) {
    if (w->flow->last) w->waits[w->at] = true;
    const Holdings held = state->holds;
    for (size_t i = 0; i < held.count; i++) {
        if (!held.items[i].hold->fresh->count && !held.items[i].hold->seen->count) continue;
        Hold *hold = written_change(w, state, held.items[i].handle);
        hold->fresh = hold->seen = elements_none();
    }
}

/* True if the threads that write these elements now are the ones that wrote them last. */
static bool same_threads(const Written *w, const Hold *hold, const Site *site,
                         const Elements *set) {
    if (elements_first_common(hold->seen, set) >= 0) return false;
    for (const Mark *before = hold->marks; before; before = before->before) {
        arena_count(w->arena, 1);
        if (elements_first_common(before->set, set) < 0) continue;
        arena_count(w->arena, SAME_THREAD_STEPS);
        /* then the bases of the two are equal */
        if (before->vague || !elements_equal(before->set, set) ||
            !distribution_same(before->site, &before->site->tile->target, site,
                               &site->tile->target))
            return false;
    }
    return true;
}

/* ---- writes ---------------------------------------------------------------------------------- */

static Touched touched_by(Written *w, const Site *site, const Access *access, const Pipe *pipe) {
    const Field *field = &pipe->fields.items[access->field];
    int64_t tiles = field->count > 0 ? field->count : 1;
    return written_touched(
        w, &site->tile->space, access,
        (Tiling){field->rank, field->extents, tiles, written_field_start(pipe, access->field)});
}

/* Notes a fault of the hold, which is then ignored. */
static void fault(Written *w, State *state, int handle, StageFault what) {
    what.hold = written_hold(state, handle);
    vec_push(w->arena, &w->faults, what);
    written_change(w, state, handle)->poisoned = true;
}

/* A copy, and other writes to the elements that it copies */
static void check_copies(Written *w, State *state, const Site *site, int handle,
                         const Touched *what) {
    const Hold *hold = written_hold(state, handle);
    bool copies = tile_is_unawaited(site->tile);
    const Mark *first = NULL;
    if (!w->flow->last || elements_first_common(copies ? hold->may : hold->flying, what->all) < 0)
        return;
    for (const Mark *before = hold->marks; before; before = before->before) {
        arena_count(w->arena, 1);
        if ((copies || tile_is_unawaited(before->site->tile)) &&
            elements_first_common(before->set, what->all) >= 0)
            first = before;
    }
    if (first)
        fault(
            w, state, handle,
            (StageFault){.kind = FAULT_TWICE, .site = site, .first = first, .exact = what->exact});
}

static void check_sum(Written *w, State *state, const Site *site, int handle, const Touched *what) {
    const Hold *hold = written_hold(state, handle);
    const Tile *tile = site->tile;
    if (!w->flow->last || tile->op == ASSIGN_SET || hold->poisoned ||
        elements_hold(hold->must, what->all))
        return;
    fault(w, state, handle, (StageFault){.kind = FAULT_NO_VALUE, .site = site});
}

static void write_stage(Written *w, State *state, const Site *site, int handle) {
    const Tile *tile = site->tile;
    const Hold *before = written_hold(state, handle);
    bool copies = tile_is_unawaited(tile);
    Touched what = touched_by(w, site, &tile->target, &w->tiles->prog->pipes.items[before->pipe]);
    if (!before->poisoned) check_copies(w, state, site, handle, &what);
    check_sum(w, state, site, handle, &what);
    bool again = elements_first_common(before->fresh, what.all) >= 0 ||
                 elements_first_common(before->seen, what.all) >= 0;
    if (!copies && again && !(what.exact && same_threads(w, before, site, what.all)))
        wait_for_threads(w, state);
    Hold *hold = written_change(w, state, handle);
    if (what.exact) hold->must = both(w, hold->must, what.all);
    if (what.exact && !copies) hold->own = both(w, hold->own, what.all);
    hold->may = both(w, hold->may, what.all);
    if (copies)
        hold->flying = both(w, hold->flying, what.all);
    else
        hold->fresh = both(w, hold->fresh, what.all);
    if (!hold->differs) hold->bytes += copy_arrives(tile);
    hold->marks =
        add_mark(w, hold->marks, &(Mark){.site = site, .set = what.all, .vague = !what.exact});
}

/* ---- reads ----------------------------------------------------------------------------------- */

/* Reads of a stage that the instance produces: all of it is its own work. */
static void read_stages(Written *w, State *state, const Site *site) {
    for (size_t i = 0; i < site->reads.count; i++) {
        const Access *read = site->reads.items[i];
        const Hold *hold = read->space == SPACE_STAGE ? written_hold(state, read->object) : NULL;
        if (!hold || hold->poisoned) continue;
        Touched what = touched_by(w, site, read, &w->tiles->prog->pipes.items[hold->pipe]);
        const Elements *missing =
            written_known(w, elements_less(w->arena, what.all, hold->own), elements_none());
        if (missing->count) {
            if (!w->flow->last) continue;
            fault(w, state, read->object,
                  (StageFault){.kind = FAULT_UNWRITTEN,
                               .site = site,
                               .read = read,
                               .element = elements_first(missing)});
            continue;
        }
        if (elements_first_common(hold->fresh, what.all) >= 0) wait_for_threads(w, state);
        Hold *changed = written_change(w, state, read->object);
        changed->seen = both(w, changed->seen, what.all);
    }
}

void written_stage_row(Written *w, State *state, const Site *site) {
    const Access *target = &site->tile->target;
    if (site->poisoned) {
        const Holdings held = state->holds;
        for (size_t i = 0; i < held.count; i++)
            written_change(w, state, held.items[i].handle)->poisoned = true;
        return;
    }
    read_stages(w, state, site);
    if (target->space == SPACE_STAGE && written_hold(state, target->object))
        write_stage(w, state, site, target->object);
}
