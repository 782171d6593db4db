/* Dependences of an expression on earlier tiles, and elements of a tile that an access reaches. */
#include "check/grid/carried.h"

#define NODES_MOST 20000 /* of one expression; shared nodes count each time */

int carried_tile(const Carried *c, const Access *access) {
    bool own = access->space == SPACE_SHARED || access->space == SPACE_REGISTER;
    return own && valid_index(access->object, c->role->tiles.count) ? access->object : -1;
}

/* ---- elements -------------------------------------------------------------------------------- */

void carried_add(uint64_t *bits, int64_t lo, int64_t hi) {
    for (; lo < hi && lo % 64 != 0; lo++) bits[lo / 64] |= UINT64_C(1) << (lo % 64);
    for (; lo + 64 <= hi; lo += 64) bits[lo / 64] = UINT64_MAX;
    for (; lo < hi; lo++) bits[lo / 64] |= UINT64_C(1) << (lo % 64);
}

bool carried_elements(const Carried *c, const Flow *flow, const IndexSpace *space,
                      const Access *access, uint64_t *bits) {
    const Object *object = &c->objects[carried_tile(c, access)];
    if (object->single) return false;
    const Standing place = {&flow->context, flow->code, -1};
    Touched what =
        touched(flow->arena, &place, space, access, &(Tiling){access->rank, object->extents, 1, 0});
    for (size_t i = 0; what.exact && what.all && i < what.all->count; i++)
        carried_add(bits, what.all->spans[i].lo, what.all->spans[i].hi);
    return what.exact && what.all;
}

/* Along dimension d, with one subscript or the subscripts of one index */
static bool place_dim(const Flow *flow, const IndexSpace *space, const Access *access, int d,
                      Place *out, int *index) {
    const Affine *affine = &access->affine[d];
    int64_t lo, hi;
    *index = -1;
    if (!affine->is) return false;
    for (int i = 0; space && i < space->count; i++) {
        if (!affine->coef[i]) continue;
        if (*index >= 0 || affine->coef[i] < -1 || affine->coef[i] > 1 ||
            space->items[i].extent < 1)
            return false;
        *index = i;
    }
    const Poly *base = context_poly(&flow->context, affine->base);
    if (!base || poly_changes(flow->context.algebra, base)) return false;
    bool constant = poly_is_constant(base, &lo);
    if (*index >= 0 && !constant) return false;
    out->point[d] = constant ? NULL : base;
    if (!constant) return true;
    hi = lo;
    if (*index >= 0 && affine->coef[*index] > 0) hi += space->items[*index].extent - 1;
    if (*index >= 0 && affine->coef[*index] < 0) lo -= space->items[*index].extent - 1;
    out->lo[d] = lo, out->hi[d] = hi;
    return true;
}

bool place_written(const Carried *c, const Flow *flow, const IndexSpace *space,
                   const Access *access, Place *out) {
    unsigned seen = 0;
    *out = (Place){.object = carried_tile(c, access), .rank = access->rank};
    for (int d = 0; d < access->rank; d++) {
        int index;
        if (!place_dim(flow, space, access, d, out, &index)) return false;
        if (index >= 0 && (seen >> index & 1)) return false; /* a diagonal */
        if (index >= 0) seen |= 1u << index;
    }
    return true;
}

bool place_holds(const Place *outer, const Place *inner) {
    if (outer->object != inner->object) return false;
    for (int d = 0; d < outer->rank; d++) {
        bool points = outer->point[d] && inner->point[d],
             ranges = !outer->point[d] && !inner->point[d];
        if (points && !poly_equal(outer->point[d], inner->point[d])) return false;
        if (!points && !(ranges && outer->lo[d] <= inner->lo[d] && inner->hi[d] <= outer->hi[d]))
            return false;
    }
    return true;
}

bool places_disjoint(const Place *a, const Place *b) {
    if (a->object != b->object) return true;
    for (int d = 0; d < a->rank; d++)
        if (!a->point[d] && !b->point[d] && (a->hi[d] < b->lo[d] || b->hi[d] < a->lo[d]))
            return true;
    return false;
}

/* True if all elements that the access reaches were written in the present tile of the grid, at
 * the same subscripts */
static bool was_written(const Carried *c, const Flow *flow, const CarriedState *state,
                        const IndexSpace *space, const Access *access) {
    Place place;
    if (!state->place_count) return false;
    place = (Place){.object = carried_tile(c, access), .rank = access->rank};
    for (int d = 0; d < access->rank; d++) {
        int index;
        if (!place_dim(flow, space, access, d, &place, &index)) return false;
    }
    for (int i = 0; i < state->place_count; i++)
        if (place_holds(&state->places[i], &place)) return true;
    return false;
}

/* ---- reads ----------------------------------------------------------------------------------- */

/* A read of the object at `span`, of which some elements are stale. */
static const Origin *read_of(Carried *c, const CarriedState *state, int object, Span span) {
    const Origin *origin = state->origins[object];
    if (origin != &c->crossed[object]) return origin;
    Origin *made = NEW(c->arena, Origin);
    *made = (Origin){object, span};
    return made;
}

static bool any_stale(const Carried *c, const CarriedState *state, int object) {
    const Object *row = &c->objects[object];
    for (size_t w = 0; w < row->words; w++)
        if (state->stale[row->first + w]) return true;
    return false;
}

static bool stale_elements(const Carried *c, const Flow *flow, const CarriedState *state,
                           const IndexSpace *space, const Access *access) {
    int object = carried_tile(c, access);
    const Object *row = &c->objects[object];
    uint64_t *bits = NEW_ARRAY(c->arena, uint64_t, row->words + 1);
    if (!carried_elements(c, flow, space, access, bits)) return true;
    for (size_t w = 0; w < row->words; w++)
        if (state->stale[row->first + w] & bits[w]) return true;
    return false;
}

typedef struct Walk {
    Carried *c;
    const Flow *flow;
    const CarriedState *state;
    const IndexSpace *space;
    int nodes;
} Walk;

static const Origin *walk(Walk *w, Expr *expr);

static const Origin *walk_subs(Walk *w, const Access *access) {
    const Origin *origin = access->element ? walk(w, access->element) : NULL;
    for (int d = 0; d < access->rank && !origin; d++) origin = walk(w, access->subs[d]);
    return origin;
}

static const Origin *walk_access(Walk *w, const Access *access) {
    int object = carried_tile(w->c, access);
    if (object >= 0 && was_written(w->c, w->flow, w->state, w->space, access)) return NULL;
    const Origin *origin = walk_subs(w, access);
    if (origin) return origin;
    if (access->space == SPACE_STAGE) object = carried_handle(w->c, access->object);
    if (object < 0 || !any_stale(w->c, w->state, object)) return NULL;
    bool stale =
        access->space == SPACE_STAGE || stale_elements(w->c, w->flow, w->state, w->space, access);
    return stale ? read_of(w->c, w->state, object, access->span) : NULL;
}

static const Origin *walk_local(Walk *w, const Expr *expr) {
    if (!valid_index(expr->index, w->c->role->locals.count)) return NULL;
    int object = carried_local(w->c, expr->index);
    return any_stale(w->c, w->state, object) ? read_of(w->c, w->state, object, expr->span) : NULL;
}

/* Instances in turn: earlier tiles decide which instance takes a tile */
static const Origin *walk_rank(const Walk *w, const Expr *expr) {
    if (!w->c->role->in_turn || w->c->role->instances < 2) return NULL;
    Origin *made = NEW(w->c->arena, Origin);
    *made = (Origin){OF_TURNS, expr->span};
    return made;
}

static const Origin *walk(Walk *w, Expr *expr) {
    const Origin *origin = NULL;
    if (!expr || --w->nodes < 0) return NULL;
    if (expr->kind == X_RANK) return walk_rank(w, expr);
    if (expr->kind == X_LOCAL) return walk_local(w, expr);
    if (expr->kind == X_READ) return walk_access(w, expr->read);
    ExprParts parts = expr_parts(expr);
    for (int i = 0; i < parts.count && !origin; i++) origin = walk(w, parts.items[i]);
    return origin;
}

/* A quick test that visits every node once and ignores places of tiles: it may find false
 * dependences, but misses none. */
typedef struct Quick {
    Walk *walk;
    const Origin *found;
} Quick;

static void visit_quick(Expr *expr, void *data) {
    Quick *quick = data;
    Walk *w = quick->walk;
    int object = -1;
    if (quick->found) return;
    if (expr->kind == X_LOCAL) quick->found = walk_local(w, expr);
    if (expr->kind == X_RANK) quick->found = walk_rank(w, expr);
    if (expr->kind == X_READ) object = carried_tile(w->c, expr->read);
    if (expr->kind == X_READ && expr->read->space == SPACE_STAGE)
        object = carried_handle(w->c, expr->read->object);
    if (object >= 0 && any_stale(w->c, w->state, object))
        quick->found = read_of(w->c, w->state, object, expr->read->span);
}

const Origin *carried_expr(Carried *c, const Flow *flow, const CarriedState *state,
                           const IndexSpace *space, Expr *expr) {
    Walk w = {c, flow, state, space, NODES_MOST};
    Quick quick = {&w, NULL};
    if (!expr) return NULL;
    expr_visit(c->arena, expr, visit_quick, &quick);
    if (!quick.found) return NULL;
    const Origin *origin = walk(&w, expr);
    return w.nodes < 0 ? quick.found : origin;
}

const Origin *carried_access(Carried *c, const Flow *flow, const CarriedState *state,
                             const IndexSpace *space, const Access *access) {
    Walk w = {c, flow, state, space, NODES_MOST};
    return walk_access(&w, access);
}

const Origin *carried_subscripts(Carried *c, const Flow *flow, const CarriedState *state,
                                 const IndexSpace *space, const Access *access) {
    const Origin *origin =
        access->element ? carried_expr(c, flow, state, space, access->element) : NULL;
    for (int d = 0; d < access->rank && !origin; d++)
        origin = carried_expr(c, flow, state, space, access->subs[d]);
    return origin;
}
