/* How the elements of a statement are distributed over the threads of its instance: the plan of the
 * statement takes it from here, and so do the rules and facts about order, before there is a plan.
 */
#include "derive/order.h"

/* ---- elements in memory ---------------------------------------------------------------------- */

bool access_adjacent(const Prog *prog, const Role *role, const Access *access, int inner,
                     int vector) {
    if (access->space != SPACE_STAGE && access->space != SPACE_SHARED) return false;
    if (inner < 0) return false;
    const Layout *layout = access_layout(prog, role, access);
    int last = access->rank - 1;
    if (layout->panel % vector != 0 || layout->padding % vector != 0) return false;
    for (int axis = 0; axis < access->rank; axis++) {
        const Affine *affine = &access->affine[axis];
        if (!affine->is || affine->coef[inner] != (axis == last ? 1 : 0)) return false;
    }
    const Affine *affine = &access->affine[last];
    for (int i = 0; i < PROG_MAX_INDEXES; i++)
        if (i != inner && affine->coef[i] % vector != 0) return false;
    return affine->multiple % vector == 0 &&
           (int64_t)vector * element_rows[access->type].bytes % 4 == 0;
}

/* ---- statements without register tiles ------------------------------------------------------- */

/* Tiles and tensors that are traversed along the innermost index */
typedef struct Along {
    Arena *arena;
    const Prog *prog;
    const Role *role;
    const Tile *tile;
    int inner;
    uint32_t added;              /* indexes on which the value depends besides its own */
    bool near, far;              /* some access is to a `shared` tile; to a tensor */
    bool global, wide;           /* some tensor along it; all memory allows vectors */
    VEC(const Access *) vectors; /* those that allow vectors */
    Traffic traffic;             /* of these */
    int64_t crooked;             /* what divides rows that are no whole vectors; 0: none known */
} Along;

static bool allows(const Along *along, const Access *access, int vector) {
    return access->space == SPACE_GLOBAL
               ? wide_fits(along->prog, access, along->inner, vector)
               : access_adjacent(along->prog, along->role, access, along->inner, vector);
}

static void add_along(Along *along, const Access *access) {
    bool global = access->space == SPACE_GLOBAL;
    bool fits = allows(along, access, global ? VECTOR_BYTES / element_rows[access->type].bytes : 4);
    along->global |= global;
    along->wide &= fits;
    if (!fits) return;
    int64_t crooked = crooked_rows(along->prog, access);
    if (crooked > 0) along->crooked = common_divisor(along->crooked, crooked);
    vec_push(along->arena, &along->vectors, access);
    traffic_add(&along->traffic, &along->tile->space, access);
}

static void add_read(Expr *expr, void *data) {
    Along *along = data;
    if (expr->kind != X_READ) return;
    along->near |= expr->read->space == SPACE_SHARED;
    along->far |= expr->read->space == SPACE_GLOBAL;
    if ((expr->indexes | along->added) >> along->inner & 1) add_along(along, expr->read);
}

static bool all_allow(const Along *along, int vector) {
    bool all = true;
    for (size_t i = 0; i < along->vectors.count; i++)
        all &= allows(along, along->vectors.items[i], vector);
    return all;
}

/* A value that reads tensors only where the condition holds depends on its indexes: `masks` */
static void add_all(Along *along, bool masks) {
    const Tile *tile = along->tile;
    along->near = tile->target.space == SPACE_SHARED;
    along->far = tile->target.space == SPACE_GLOBAL;
    add_along(along, &tile->target);
    along->added = masks ? tile->where->indexes : 0;
    expr_visit(along->arena, plan_value(along->arena, tile), add_read, along);
    along->added = 0;
    if (tile->where) expr_visit(along->arena, tile->where, add_read, along);
    for (int axis = 0; axis < tile->target.rank; axis++)
        expr_visit(along->arena, tile->target.subs[axis], add_read, along);
}

/* If some tensor does not allow vectors, adjacent threads access adjacent elements. */
static void take_vector(const Along *along, Distribution *distribution) {
    if ((along->global && !along->wide) || along->vectors.count == 0) return;
    const IndexSpace *space = &along->tile->space;
    int64_t threads = (int64_t)along->role->warps * 32;
    int vector = traffic_vector(&along->traffic);
    while (space->items[along->inner].extent % vector != 0) vector /= 2;
    distribution->crooked = along->crooked > 0;
    while (distribution->crooked && along->crooked % vector != 0) vector /= 2;
    while (vector > 1 && !all_allow(along, vector)) vector /= 2;
    /* all threads take part in traffic to global memory */
    while (along->global && vector > 1 && plan_elements(along->tile) < threads * vector)
        vector /= 2;
    distribution->vector = vector;
}

/* ---- all ------------------------------------------------------------------------------------- */

static WalkKind walk_of(const Tile *tile) {
    if (tile->spread != NULL) return WALK_REGISTERS;
    if (tile->space.bound == 0) return WALK_ONE;
    for (int i = 0; i < tile->space.bound; i++)
        if (tile->space.items[i].extent < 0) return WALK_LAUNCH;
    return WALK_FLAT;
}

typedef struct Written {
    const Prog *prog;
    bool found;
} Written;

static void find_written(Expr *expr, void *data) {
    Written *written = data;
    written->found |= plan_is_written(written->prog, expr);
}

Distribution distribution_of(Arena *arena, const Prog *prog, const Role *role, const Tile *tile) {
    Distribution distribution = {.walk = walk_of(tile), .vector = 1};
    Written written = {.prog = prog};
    int unused;
    if (tile->where) expr_visit(arena, plan_value(arena, tile), find_written, &written);
    distribution.masks = written.found;
    if (distribution.walk == WALK_REGISTERS)
        distribution.vector = layout_vector(tile->spread, &unused);
    if (tile->class == TILE_LANES) distribution.vector = tile->piece.elements;
    if (distribution.walk != WALK_FLAT || tile->class == TILE_LANES) return distribution;
    Along along = {.arena = arena,
                   .prog = prog,
                   .role = role,
                   .tile = tile,
                   .inner = tile->space.bound - 1,
                   .wide = true};
    add_all(&along, distribution.masks);
    take_vector(&along, &distribution);
    distribution.packs = along.near && along.far;
    return distribution;
}

/* A launch may decide that a copy of rows is by other threads. */
static bool same_walk(const Site *one, const Site *two) {
    const Distribution *a = &one->distribution, *b = &two->distribution;
    if (one->tile == two->tile) return true;
    return one->tile->class == TILE_MAP && two->tile->class == TILE_MAP && a->walk == b->walk &&
           layout_same(one->tile->spread, two->tile->spread) &&
           (a->walk != WALK_FLAT || a->vector == b->vector) && !a->packs && !b->packs;
}

/* One of the threads with replicas of an element writes it, and each of them reads it. */
static bool by_one_thread(const Site *site, const Access *access) {
    Digit replicas[2 * PROG_MAX_INDEXES + 1];
    return access == &site->tile->target || site->tile->spread == NULL ||
           layout_replicas(site->tile->spread, site->role->warps * 32, replicas) == 0;
}

bool distribution_same(const Site *one, const Access *a, const Site *two, const Access *b) {
    const IndexSpace *from = &one->tile->space, *to = &two->tile->space;
    bool same = from->bound == to->bound && a->rank == b->rank && same_walk(one, two) &&
                by_one_thread(one, a) && by_one_thread(two, b);
    for (int i = 0; i < from->bound && same; i++)
        same = from->items[i].extent == to->items[i].extent;
    for (int d = 0; d < a->rank && same; d++) {
        same = a->affine[d].is && b->affine[d].is;
        for (int i = 0; i < from->bound && same; i++)
            same = a->affine[d].coef[i] == b->affine[d].coef[i];
    }
    return same;
}
