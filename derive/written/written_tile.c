/* Checks that every element of a role's tiles, and every variable, is written before it is read,
 * on every path (P0228). A write under a condition is recorded with the condition (Guard), and
 * counts where the condition is proved; a write at subscripts that are unknown but do not change
 * is recorded with them (Slab). */
#include "derive/written.h"

#define GUARDS_MOST 32 /* most in a state */
#define SLABS_MOST  16

/* ---- objects --------------------------------------------------------------------------------- */

void written_find_objects(Written *w) {
    const Role *role = w->role;
    w->count = role->tiles.count + role->locals.count;
    w->objects = NEW_ARRAY(w->arena, Object, w->count + 1);
    for (size_t i = 0; i < role->tiles.count; i++) {
        const RoleTile *tile = &role->tiles.items[i];
        int64_t elements = 1;
        for (int d = 0; d < tile->rank && elements; d++) {
            bool fits = tile->extents[d] > 0 && tile->extents[d] <= MAX_ELEMENTS / elements;
            elements = fits ? elements * tile->extents[d] : 0;
        }
        w->objects[i] = (Object){.name = tile->name,
                                 .span = tile->span,
                                 .tile = tile,
                                 .elements = tile->address_taken ? 0 : elements};
    }
    for (size_t i = 0; i < role->locals.count; i++) {
        const Local *local = &role->locals.items[i];
        bool follows = local->kind == LOCAL_VAR || (local->kind == LOCAL_LET && !local->value);
        w->objects[role->tiles.count + i] =
            (Object){.name = local->name, .span = local->span, .elements = follows};
    }
}

/* -1: not followed */
static int object_of(const Written *w, const Access *access) {
    bool tile = access->space == SPACE_REGISTER || access->space == SPACE_SHARED;
    if (!tile || !valid_index(access->object, w->role->tiles.count) ||
        !w->objects[access->object].elements)
        return -1;
    return access->object;
}

static int variable_of(const Written *w, int local) {
    int object = (int)w->role->tiles.count + local;
    return valid_index(local, w->role->locals.count) && w->objects[object].elements ? object : -1;
}

static Touched touched_by(Written *w, const IndexSpace *space, const Access *access, int object) {
    const RoleTile *tile = w->objects[object].tile;
    return written_touched(w, space, access, (Tiling){tile->rank, tile->extents, 1, 0});
}

static const Elements *less(Written *w, const Elements *a, const Elements *b) {
    return written_known(w, elements_less(w->arena, a, b), elements_none());
}

static const Elements *both(Written *w, const Elements *a, const Elements *b) {
    return written_known(w, elements_union(w->arena, a, b), a);
}

/* ---- guards ---------------------------------------------------------------------------------- */

static bool same_guard(const Guard *a, const Guard *b) {
    return a == b || (a->region == b->region && a->object == b->object && a->truth == b->truth &&
                      elements_equal(a->set, b->set));
}

static bool has_guard(const Guards *guards, const Guard *guard) {
    for (size_t i = 0; i < guards->count; i++)
        if (same_guard(guards->items[i], guard)) return true;
    return false;
}

static void add_guard(Written *w, Guards *guards, const Guard *guard) {
    if (guards->count >= GUARDS_MOST || has_guard(guards, guard)) return;
    const Guard **made = NEW_ARRAY(w->arena, const Guard *, guards->count + 1);
    for (size_t i = 0; i < guards->count; i++) made[i] = guards->items[i];
    made[guards->count] = guard;
    *guards = (Guards){made, guards->count + 1};
}

/* On the paths of `where`, the condition of the region is `truth`: records what they have
 * written and `other` has not */
static void guard(Written *w, Guards *guards, const State *where, const State *other, int region,
                  bool truth) {
    for (size_t i = 0; i < w->count && guards->count < GUARDS_MOST; i++) {
        if (where->must[i] == other->must[i] || elements_hold(other->must[i], where->must[i]))
            continue;
        Guard *made = NEW(w->arena, Guard);
        *made = (Guard){.region = region, .object = (int)i, .truth = truth, .set = where->must[i]};
        add_guard(w, guards, made);
    }
}

/* Adds the elements of guards that hold on the paths into this arm of the IF. */
static void apply_guards(Written *w, State *state, const State *other, int region, bool arm) {
    for (size_t i = 0; i < state->guards.count; i++) {
        const Guard *what = state->guards.items[i];
        if (what->region == region || elements_hold(state->must[what->object], what->set)) continue;
        if (elements_hold(state->must[what->object], other->must[what->object])) continue;
        if (flow_decides(w->flow, w->code->regions.items[region].begin, arm, what->region) ==
            what->truth)
            written_set(w, state, what->object, both(w, state->must[what->object], what->set));
    }
}

void written_learn(Written *w, State *to, State *from, int at, int source) {
    int region = w->code->rows.items[at].region;
    const Region *row = &w->code->regions.items[region];
    Guards learnt = {0};
    if (at != row->end || to->must == from->must) return;
    if (row->kind == REGION_IF && to->arm == row->otherwise && source == row->end) {
        apply_guards(w, to, from, region, true);
        apply_guards(w, from, to, region, false);
        guard(w, &learnt, to, from, region, true);
        guard(w, &learnt, from, to, region, false);
    }
    if (row->kind == REGION_FOR && (source == row->begin || to->arm == row->begin)) {
        if (w->flow->last) w->skipped[region] = true;
        if (to->arm == row->next) guard(w, &learnt, to, from, region, true);
        if (to->arm == row->begin && from->arm == row->next)
            guard(w, &learnt, from, to, region, true);
    }
    for (size_t i = 0; i < learnt.count; i++) {
        add_guard(w, &to->guards, learnt.items[i]);
        add_guard(w, &from->guards, learnt.items[i]);
    }
}

static void join_slabs(Written *w, State *to, const State *from);

static bool same_guards(const Guards *a, const Guards *b) {
    bool same = a->count == b->count;
    for (size_t i = 0; i < a->count && same; i++) same = a->items[i] == b->items[i];
    return same;
}

/* Keeps the common guards, and those whose elements the other paths have all written */
void written_join_guards(Written *w, State *to, const State *from) {
    Guards kept = {0};
    for (size_t i = 0; i < to->guards.count; i++) {
        const Guard *what = to->guards.items[i];
        if (has_guard(&from->guards, what) || elements_hold(from->must[what->object], what->set))
            add_guard(w, &kept, what);
    }
    for (size_t i = 0; i < from->guards.count; i++) {
        const Guard *what = from->guards.items[i];
        if (elements_hold(to->must[what->object], what->set)) add_guard(w, &kept, what);
    }
    if (!same_guards(&kept, &to->guards)) to->guards = kept;
    join_slabs(w, to, from);
}

/* ---- slabs ----------------------------------------------------------------------------------- */

static bool same_bases(const Poly *const *a, const Poly *const *b) {
    for (int d = 0; d < PROG_MAX_RANK + 1; d++)
        if (!a[d] != !b[d] || (a[d] && !poly_equal(a[d], b[d]))) return false;
    return true;
}

static bool has_slab(const Slabs *slabs, const Slab *slab) {
    for (size_t i = 0; i < slabs->count; i++) {
        const Slab *other = slabs->items[i];
        if (other == slab) return true;
        if (other->object == slab->object && same_bases(other->bases, slab->bases) &&
            elements_hold(other->within, slab->within))
            return true;
    }
    return false;
}

static void add_slab(Written *w, Slabs *slabs, const Slab *slab) {
    if (slabs->count >= SLABS_MOST || has_slab(slabs, slab)) return;
    const Slab **made = NEW_ARRAY(w->arena, const Slab *, slabs->count + 1);
    for (size_t i = 0; i < slabs->count; i++) made[i] = slabs->items[i];
    made[slabs->count] = slab;
    *slabs = (Slabs){made, slabs->count + 1};
}

static void join_slabs(Written *w, State *to, const State *from) {
    Slabs kept = {0};
    for (size_t i = 0; i < to->slabs.count; i++)
        if (has_slab(&from->slabs, to->slabs.items[i])) add_slab(w, &kept, to->slabs.items[i]);
    if (kept.count != to->slabs.count) to->slabs = kept;
}

static void note_slab(Written *w, State *state, int object, const Touched *what) {
    Slab *made = NEW(w->arena, Slab);
    const Poly **bases = NEW_ARRAY(w->arena, const Poly *, PROG_MAX_RANK + 1);
    for (int d = 0; d < PROG_MAX_RANK + 1; d++) bases[d] = what->bases[d];
    *made = (Slab){.made = w->at, .object = object, .within = what->within, .bases = bases};
    add_slab(w, &state->slabs, made);
}

static bool in_slab(const State *state, int object, const Touched *what) {
    if (!what->within) return false;
    const Slab wanted = {.object = object, .within = what->within, .bases = what->bases};
    return has_slab(&state->slabs, &wanted);
}

/* ---- scopes ---------------------------------------------------------------------------------- */

static bool made_in(const Region *loop, int row) { return row > loop->begin && row < loop->end; }

void written_forget(Written *w, State *state, int region) {
    const Region *loop = &w->code->regions.items[region];
    Guards guards = {0};
    Slabs slabs = {0};
    for (size_t i = 0; i < state->guards.count; i++)
        if (!made_in(loop, w->code->regions.items[state->guards.items[i]->region].begin))
            add_guard(w, &guards, state->guards.items[i]);
    for (size_t i = 0; i < state->slabs.count; i++)
        if (!made_in(loop, state->slabs.items[i]->made)) add_slab(w, &slabs, state->slabs.items[i]);
    state->guards = guards, state->slabs = slabs;
}

void written_open(Written *w, State *state, int object) {
    Guards guards = {0};
    Slabs slabs = {0};
    for (size_t i = 0; i < state->guards.count; i++)
        if (state->guards.items[i]->object != object) add_guard(w, &guards, state->guards.items[i]);
    for (size_t i = 0; i < state->slabs.count; i++)
        if (state->slabs.items[i]->object != object) add_slab(w, &slabs, state->slabs.items[i]);
    state->guards = guards, state->slabs = slabs;
    if (state->must[object]->count) written_set(w, state, object, elements_none());
}

/* ---- reads ----------------------------------------------------------------------------------- */

static void find(Written *w, int object, Span at, int64_t element, bool kept) {
    Object *row = &w->objects[object];
    if (row->reported) return;
    row->reported = true;
    vec_push(w->arena, &w->findings,
             (Finding){.object = object,
                       .row = w->at,
                       .at = at,
                       .written = row->written,
                       .any = row->any,
                       .kept = kept,
                       .element = element});
}

/* Only in the last round: each missing value is reported once, and does not change the state. */
static void require(Written *w, const State *state, int object, const Touched *what, Span at,
                    bool kept) {
    if (!w->flow->last || w->objects[object].reported ||
        elements_hold(state->must[object], what->all) || in_slab(state, object, what))
        return;
    const Elements *missing = less(w, what->all, state->must[object]);
    for (size_t i = 0; i < state->guards.count && missing->count; i++) {
        const Guard *guarded = state->guards.items[i];
        if (guarded->object != object || elements_first_common(guarded->set, missing) < 0) continue;
        if (flow_decides(w->flow, w->at, -1, guarded->region) == guarded->truth)
            missing = less(w, missing, guarded->set);
    }
    if (missing->count) find(w, object, at, elements_first(missing), kept);
}

typedef struct Reads {
    Written *w;
    const State *state;
    const IndexSpace *space;
} Reads;

static void visit_read(Expr *expr, void *data) {
    const Reads *reads = data;
    Written *w = reads->w;
    int local = expr->kind == X_LOCAL ? variable_of(w, expr->index) : -1;
    if (local >= 0) {
        Touched one = {.all = elements_span(w->arena, 0, 1), .exact = true};
        require(w, reads->state, local, &one, expr->span, false);
    }
    int object = expr->kind == X_READ && expr->read ? object_of(w, expr->read) : -1;
    if (object < 0) return;
    Touched what = touched_by(w, reads->space, expr->read, object);
    require(w, reads->state, object, &what, expr->read->span, expr->read->kept);
}

static void visit_root(Expr *expr, void *data) {
    expr_visit(((Reads *)data)->w->arena, expr, visit_read, data);
}

void written_reads(Written *w, State *state, const Row *row) {
    if (!w->flow->last) return;
    Reads reads = {w, state, row->kind == ROW_TILE ? &row->tile->space : NULL};
    row_exprs(w->code, row, visit_root, &reads);
}

/* ---- writes ---------------------------------------------------------------------------------- */

static void record(Written *w, int object, const Elements *set, Span span) {
    if (!w->flow->last) return;
    w->objects[object].any = true, w->objects[object].written = span;
    for (size_t i = w->recorded[w->at]; i > 0; i = w->records.items[i - 1].before) {
        Record *known = &w->records.items[i - 1];
        if (known->object != object) continue;
        known->set = both(w, known->set, set);
        return;
    }
    vec_push(w->arena, &w->records, (Record){w->at, object, set, w->recorded[w->at]});
    w->recorded[w->at] = w->records.count;
}

static void wrote(Written *w, State *state, int object, const Elements *set, Span span) {
    record(w, object, set, span);
    if (!elements_hold(state->must[object], set))
        written_set(w, state, object, both(w, state->must[object], set));
}

static void wrote_local(Written *w, State *state, int local, Span span) {
    int object = variable_of(w, local);
    if (object >= 0) wrote(w, state, object, elements_span(w->arena, 0, 1), span);
}

static void write_tile(Written *w, State *state, const Tile *tile) {
    const Access *target = &tile->target;
    int object = object_of(w, target);
    if (object < 0) return;
    Touched what = touched_by(w, &tile->space, target, object);
    if (tile->op != ASSIGN_SET) require(w, state, object, &what, target->span, false);
    if (what.exact) {
        wrote(w, state, object, what.all, target->span);
        return;
    }
    record(w, object, what.all, target->span);
    if (what.within) note_slab(w, state, object, &what);
}

void written_writes(Written *w, State *state, const Row *row) {
    if (row->kind == ROW_TILE) write_tile(w, state, row->tile);
    if (row_computes(row->kind)) wrote_local(w, state, row->local, row->span);
    for (size_t i = 0; row->unsafe && i < row->unsafe->operands.count; i++)
        wrote_local(w, state, row->unsafe->operands.items[i].local, row->span);
}
