/* Elements of a stage or tile that an access reaches over its indexes; see touched.h. */
#include "flow/touched.h"

/* most enclosing loops whose variables are followed in one subscript */
#define RANGES_MOST 4

typedef struct Dim {
    const Affine *sub;
    int64_t extent, pitch;
    bool known; /* the base is `value` */
    bool rotated;
    /* the base is `value` plus multiples of variables of loops with constant bounds */
    bool ranged;
    int64_t value;
    int ranges;
    int64_t coefs[RANGES_MOST], trips[RANGES_MOST];
    /* unknown, but a formula that does not change; otherwise NULL */
    const Poly *base;
} Dim;

static bool reach(int64_t coef, int64_t extent, int64_t *lo, int64_t *hi) {
    int64_t span;
    if (coef == 0) return true;
    if (extent < 1 || __builtin_mul_overflow(coef, extent - 1, &span)) return false;
    return !__builtin_add_overflow(span < 0 ? *lo : *hi, span, span < 0 ? lo : hi);
}

/* True if the subscript is inside for all indexes, with this base. A refused one may not be. */
static bool stays_inside(const IndexSpace *space, const Dim *dim, int64_t base) {
    int64_t lo = base, hi = base;
    for (int i = 0; space && i < space->count; i++)
        if (!reach(dim->sub->coef[i], space->items[i].extent, &lo, &hi)) return false;
    for (int i = 0; i < dim->ranges; i++)
        if (!reach(dim->coefs[i], dim->trips[i], &lo, &hi)) return false;
    return lo >= 0 && hi < dim->extent;
}

/* Recognises a base that is a sum of constants times the variables of enclosing constant loops */
static void find_ranges(const Standing *place, const IndexSpace *space, Dim *dim,
                        const Poly *base) {
    const Context *context = place->context;
    const FlowCode *code = place->code;
    Algebra *algebra = context->algebra;
    for (int r = place->at < 0 ? -1 : code->rows.items[place->at].region;
         r >= 0 && dim->ranges < RANGES_MOST; r = code->regions.items[r].parent) {
        const Region *loop = &code->regions.items[r];
        const Poly *factor, *rest;
        int64_t lo, hi, coef;
        if (loop->kind != REGION_FOR || loop->var < 0 || !context_value(context, loop->lo, &lo) ||
            !context_value(context, loop->hi, &hi))
            continue;
        if (!poly_split(algebra, base, algebra_atom_local(algebra, code->role, loop->var), &factor,
                        &rest))
            continue;
        if (!poly_is_constant(factor, &coef) || coef == 0 || hi <= lo) continue;
        base = poly_offset(algebra, rest, coef * lo);
        dim->coefs[dim->ranges] = coef, dim->trips[dim->ranges++] = hi - lo;
    }
    dim->ranged = poly_is_constant(base, &dim->value) && stays_inside(space, dim, dim->value);
    if (!dim->ranged) dim->ranges = 0;
}

static Dim dim_of(const Standing *place, const IndexSpace *space, const Affine *sub, int64_t extent,
                  int64_t pitch) {
    Dim dim = {.sub = sub, .extent = extent, .pitch = pitch};
    if (sub->rotated && space && space->items[sub->rotated - 1].extent == extent) {
        dim.known = dim.rotated = true; /* all positions, one for each value of the index */
        return dim;
    }
    if (!sub->is) return dim;
    const Poly *base = context_poly(place->context, sub->base);
    if (!base) return dim;
    if (poly_is_constant(base, &dim.value)) {
        dim.known = stays_inside(space, &dim, dim.value);
        return dim;
    }
    if (!poly_changes(place->context->algebra, base) && stays_inside(space, &dim, 0))
        dim.base = base;
    find_ranges(place, space, &dim, base);
    return dim;
}

/* A dimension with unknown base counts as whole, or, with `within`, as if its base were 0. */
static const Elements *places(Arena *arena, const IndexSpace *space, const Dim *dims, int count,
                              int64_t start, bool within) {
    ElementSteps steps = {.start = start};
    for (int i = 0; space && i < space->count; i++)
        steps.extents[steps.count++] = space->items[i].extent;
    for (int d = 0; d < count; d++) {
        const Dim *dim = &dims[d];
        if (!dim->known && !within && !dim->ranged) {
            steps.steps[steps.count] = dim->pitch, steps.extents[steps.count++] = dim->extent;
            continue;
        }
        if (dim->known || !within) steps.start += dim->value * dim->pitch;
        for (int i = 0; i < dim->ranges && !within; i++)
            steps.steps[steps.count] = dim->coefs[i] * dim->pitch,
            steps.extents[steps.count++] = dim->trips[i];
        for (int i = 0; space && i < space->count; i++)
            steps.steps[i] += dim->sub->coef[i] * dim->pitch;
        if (dim->rotated) steps.steps[dim->sub->rotated - 1] += dim->pitch;
    }
    for (int i = 0; space && i < space->count; i++)
        if (steps.extents[i] < 1 && steps.steps[i] == 0) steps.extents[i] = 1;
    return elements_steps(arena, &steps);
}

Touched touched(Arena *arena, const Standing *place, const IndexSpace *space, const Access *access,
                const Tiling *tiling) {
    Dim dims[PROG_MAX_RANK + 1];
    Affine element = {.is = access->element != NULL, .base = access->element};
    int64_t pitch = 1;
    int count = tiling->rank + (access->element != NULL);
    bool within = true;
    Touched made = {.exact = true};
    for (int d = tiling->rank; d-- > 0; pitch *= tiling->extents[d])
        dims[d] = dim_of(place, space, &access->affine[d], tiling->extents[d], pitch);
    if (access->element) dims[tiling->rank] = dim_of(place, NULL, &element, tiling->tiles, pitch);
    for (int d = 0; d < count; d++) {
        if (dims[d].known) continue;
        made.exact = false;
        made.bases[d] = dims[d].base;
        within &= dims[d].base != NULL;
    }
    made.all = places(arena, space, dims, count, tiling->start, false);
    if (!made.exact && within) made.within = places(arena, space, dims, count, tiling->start, true);
    return made;
}
