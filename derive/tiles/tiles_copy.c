/* Copies: statements that the copy engines can execute, layouts of the tiles for them, and the
 * class of each statement.
 *
 * First all layouts, because every copy of a tile must agree with the others, and with the
 * matrix instructions that read the tile; then the classes. A statement that is no copy, or a
 * store that fits no box, is a map that the role's threads compute. */
#include "derive/edit.h"
#include "derive/tiles.h"

/* ---- positions ------------------------------------------------------------------------------- */

static const Poly *linear(Tiles *tiles, Site *site, const Access *access,
                          const Poly *const *pitches) {
    Algebra *algebra = site->algebra;
    const Poly *sum = poly_constant(algebra, 0);
    algebra->space = &site->tile->space;
    for (int d = 0; d < access->rank; d++)
        sum = poly_sum(
            algebra, sum,
            poly_product(algebra, algebra_subscript(algebra, site->role, access, d), pitches[d]),
            1);
    algebra->space = NULL;
    (void)tiles;
    return sum;
}

/* Distances in elements along the axes of a tensor without gaps */
static void dense_pitches(Tiles *tiles, Site *site, const Access *access, const Poly **pitches) {
    const Poly *pitch = poly_constant(site->algebra, 1);
    for (int d = access->rank - 1; d >= 0; d--) {
        pitches[d] = pitch;
        pitch = poly_product(
            site->algebra, pitch,
            algebra_launched(site->algebra, access_extent(tiles, site->role, access, d)));
    }
}

const Poly *global_position(Tiles *tiles, Site *site, const Access *access) {
    const Poly *pitches[PROG_MAX_RANK];
    dense_pitches(tiles, site, access, pitches);
    return linear(tiles, site, access, pitches);
}

/* The access was shown to be aligned in a tensor without gaps: it is with gaps too, if all strides
 * are multiples. Otherwise the sum of strides was, and there may be no gaps. */
static void keep_aligned(Tiles *tiles, Site *site, const Access *access, uint32_t bytes) {
    const Poly *pitches[PROG_MAX_RANK];
    Param *param = &tiles->prog->params.items[access->object];
    bool each = true;
    dense_pitches(tiles, site, access, pitches);
    for (int d = 0; d + 1 < access->rank; d++)
        each &=
            poly_divisor(site->algebra, pitches[d]) * element_rows[param->type].bytes % bytes == 0;
    if (each)
        tiles_align_strides(param, bytes);
    else
        tiles_join_axes(param, 0);
}

const Poly *local_position(Tiles *tiles, Site *site, const Access *access, const Layout *layout) {
    const Poly *pitches[PROG_MAX_RANK], *pitch = poly_constant(site->algebra, 1);
    int last = access->rank - 1;
    if (layout->swizzle || layout->panel != tile_extent(tiles->prog, site->role, access, last))
        return NULL;
    for (int d = last; d >= 0; d--) {
        pitches[d] = pitch;
        pitch = poly_product(
            site->algebra, pitch,
            poly_constant(site->algebra, tile_extent(tiles->prog, site->role, access, d)));
    }
    return linear(tiles, site, access, pitches);
}

/* ---- requested layouts ----------------------------------------------------------------------- */

typedef enum Wish { WISH_NONE, WISH_LOAD, WISH_STORE, WISH_LANES } Wish;

/* A store of a box that starts before its tensor, along any axis, ends with an illegal instruction
 * (seen on an H200; a load gives zeros, and a store after the tensor is dropped). */
static bool may_start_before(Tiles *tiles, Site *site) {
    const SubPlace place = {site->role, site->algebra, &site->tile->space,
                            (int)(site->row - site->role->code->rows.items)};
    if (!site->placed) site->before = !tiles_starts_inside(tiles, &place, &site->tile->target);
    site->placed = true;
    return site->before;
}

static Wish wish_of(Tiles *tiles, Site *site) {
    const Tile *tile = site->tile;
    bool engine = tiles->prog->target->has[CAP_COPY_ENGINE];
    if (site->poisoned || tile_combines(tile) || tile->class == TILE_REFUSED ||
        tile->op != ASSIGN_SET || tile->value->kind != X_READ || tile->where)
        return WISH_NONE;
    const Access *read = tile->value->read;
    /* a conversion is a computation */
    if (!element_same_bits(tile->target.type, read->type)) return WISH_NONE;
    if (tile->target.space == SPACE_STAGE && read->space == SPACE_GLOBAL)
        return tile->by_lanes ? WISH_LANES : WISH_LOAD;
    /* its threads have just written it */
    bool produced =
        read->space == SPACE_STAGE && site->role->handles.items[read->object].end == END_PRODUCE;
    if (tile->target.space == SPACE_GLOBAL &&
        (read->space == SPACE_STAGE || read->space == SPACE_SHARED))
        return tile->by_lanes || produced || !engine || may_start_before(tiles, site) ? WISH_NONE
                                                                                      : WISH_STORE;
    return WISH_NONE;
}

static Access *tensor_of(const Site *site) {
    return site->tile->target.space == SPACE_GLOBAL ? &site->tile->target : site->tile->value->read;
}
static Access *tile_of(const Site *site) {
    return site->tile->target.space == SPACE_GLOBAL ? site->tile->value->read : &site->tile->target;
}

/* ---- contiguous pieces ----------------------------------------------------------------------- */

static bool certainly_inside(Tiles *tiles, Site *site, const Access *global) {
    Algebra *algebra = site->algebra;
    bool inside = true;
    algebra->space = &site->tile->space;
    for (int d = 0; d < global->rank && inside; d++) {
        const Poly *sub = algebra_subscript(algebra, site->role, global, d);
        const Poly *past = algebra_launched(algebra, access_extent(tiles, site->role, global, d));
        const Poly *room =
            poly_sum(algebra, poly_sum(algebra, past, sub, -1), poly_constant(algebra, 1), -1);
        inside = algebra_proves(algebra, CLAIM_NOT_NEGATIVE, sub) &&
                 algebra_proves(algebra, CLAIM_NOT_NEGATIVE, room);
    }
    algebra->space = NULL;
    return inside;
}

/* The position without its indexes; steps[i]: the distance that index i advances it */
static const Poly *walk_of(Site *site, const Poly *position, int64_t *steps) {
    const Poly *factor, *rest = position;
    for (int i = 0; i < site->tile->space.count; i++) {
        if (!poly_split(site->algebra, rest, algebra_atom_index(site->algebra, i), &factor, &rest))
            return NULL;
        if (!poly_is_constant(factor, &steps[i])) return NULL;
    }
    return rest;
}

/* True for one contiguous piece on both sides, traversed in the same order, at multiples of 16
 * bytes, and proved to be inside the tensor */
static bool one_piece(Tiles *tiles, Site *site, const Access *global, const Access *local,
                      const Layout *layout, uint32_t *bytes) {
    int64_t from_steps[PROG_MAX_INDEXES] = {0}, to_steps[PROG_MAX_INDEXES] = {0}, step = 1,
            element = element_rows[global->type].bytes;
    const IndexSpace *space = &site->tile->space;
    for (int d = 0; d < global->rank; d++)
        if (!global->affine[d].is) return false;
    const Poly *position = local_position(tiles, site, local, layout);
    const Poly *from = walk_of(site, global_position(tiles, site, global), from_steps);
    const Poly *to = position ? walk_of(site, position, to_steps) : NULL;
    if (!from || !to) return false;
    bool done[PROG_MAX_INDEXES] = {false};
    /* the indexes in mixed radix: 1, then the extent, then the product .. */
    for (int n = 0; n < space->count; n++) {
        int next = -1;
        for (int i = 0; i < space->count; i++)
            if (!done[i] && from_steps[i] == step && to_steps[i] == step &&
                (next < 0 || space->items[i].extent == 1))
                next = i;
        for (int i = 0; i < space->count && next < 0; i++)
            if (!done[i] && space->items[i].extent == 1) next = i;
        if (next < 0) return false;
        done[next] = true;
        if (__builtin_mul_overflow(step, space->items[next].extent, &step)) return false;
    }
    if (step * element % 16 != 0 || step * element >= (INT64_C(1) << 20)) return false;
    if (poly_divisor(site->algebra, from) * element % 16 != 0 ||
        poly_divisor(site->algebra, to) * element % 16 != 0)
        return false;
    *bytes = (uint32_t)(step * element);
    return certainly_inside(tiles, site, global);
}

/* ---- layouts --------------------------------------------------------------------------------- */

static Layout plain(int rank, const int64_t *extents, bool addressed) {
    return (Layout){.panel = rank ? extents[rank - 1] : 1, .alignment = 16, .addressed = addressed};
}

static void plain_layouts(const Prog *prog) {
    for (size_t p = 0; p < prog->pipes.count; p++)
        for (size_t f = 0; f < prog->pipes.items[p].fields.count; f++) {
            const Field *field = &prog->pipes.items[p].fields.items[f];
            bool addressed = field->address_taken[END_PRODUCE] || field->address_taken[END_CONSUME];
            prog->plan->pipes[p].fields[f].layout = plain(field->rank, field->extents, addressed);
        }
    for (size_t r = 0; r < prog->roles.count; r++)
        for (size_t t = 0; t < prog->roles.items[r].tiles.count; t++) {
            const RoleTile *tile = &prog->roles.items[r].tiles.items[t];
            edit_tile(prog, &prog->roles.items[r], (int)t)->layout =
                plain(tile->rank, tile->extents, tile->address_taken);
        }
}

/* One span per panel; the swizzle depends on address bits, and repeats after 8 rows (PTX ISA
 * 5.5.7, 9.7.15.5.1) */
static Layout swizzled(Element type, int64_t span) {
    int swizzle = span == 128 ? 3 : span == 64 ? 2 : 1;
    return (Layout){.panel = span / element_rows[type].bytes,
                    .swizzle = swizzle,
                    .alignment = (uint32_t)(TILES_SPAN_ROWS * span)};
}

/* The narrowest span that all operands of a tile allow */
static void operand_layouts(Tiles *tiles) {
    for (size_t i = 0; i < tiles->sites.count; i++) {
        const Site *site = tiles->sites.items[i];
        if (site->tile->class != TILE_MMA) continue;
        const Mma *mma = &site->tile->mma;
        const MmaOperand *operands[] = {&mma->a, &mma->b};
        for (int k = 0; k < 2; k++) {
            Layout *layout = access_layout(tiles->prog, site->role, operands[k]->tile);
            if (layout == NULL) continue; /* in registers */
            Layout wanted = swizzled(
                operands[k]->tile->type,
                tiles_operand_span(tiles, site, operands[k], k == 0 ? TILES_SLAB_ROWS : mma->n));
            if (!layout->swizzle || wanted.swizzle < layout->swizzle) *layout = wanted;
        }
    }
}

/* True if all tensor copies of the tile are possible with this layout */
static bool copies_agree(Tiles *tiles, const Layout *of, const Layout *layout) {
    for (size_t i = 0; i < tiles->sites.count; i++) {
        Site *site = tiles->sites.items[i];
        Wish wish = wish_of(tiles, site);
        BoxPlan plan;
        Reason reason;
        if ((wish != WISH_LOAD && wish != WISH_STORE) ||
            access_layout(tiles->prog, site->role, tile_of(site)) != of)
            continue;
        if (!boxes_plan(tiles, site, tensor_of(site), tile_of(site), layout, &plan, &reason) ||
            !boxes_pitch(tiles, tensor_of(site), wish == WISH_STORE, &reason))
            return false;
    }
    return true;
}

static bool is_accumulator(const Tiles *tiles, const Site *site, const Access *access) {
    return access->space == SPACE_REGISTER &&
           layout_accumulates(&plan_tile(tiles->prog, site->role, access->object)->held);
}

static bool meets_accumulator(const Tiles *tiles, const Site *site) {
    if (site->poisoned || site->tile->class != TILE_UNCLASSIFIED) return false;
    bool any = is_accumulator(tiles, site, &site->tile->target);
    for (size_t i = 0; i < site->reads.count; i++)
        any |= is_accumulator(tiles, site, site->reads.items[i]);
    return any;
}

/* Threads of a warp move eight rows of an accumulator at once: without a swizzle these would use
 * the same banks. Rows that only a span of 32 bytes divides use them in pairs, which costs less
 * than boxes of 32 bytes. */
static void accumulator_layout(Tiles *tiles, const Site *site, const Access *access) {
    Layout *layout = access_layout(tiles->prog, site->role, access);
    if (layout == NULL || access->rank < 2 || layout->addressed) return;
    int last = access->rank - 1;
    int64_t row =
        tile_extent(tiles->prog, site->role, access, last) * element_rows[access->type].bytes;
    for (int64_t span = TILES_SPAN_MOST; span > TILES_SPAN_LEAST && !layout->swizzle; span /= 2) {
        Layout wanted = swizzled(access->type, span);
        bool whole = row == span ||
                     tile_extent(tiles->prog, site->role, access, last - 1) % TILES_SPAN_ROWS == 0;
        if (row % span == 0 && whole && copies_agree(tiles, layout, &wanted)) *layout = wanted;
    }
}

static void accumulator_layouts(Tiles *tiles) {
    for (size_t i = 0; i < tiles->sites.count; i++) {
        const Site *site = tiles->sites.items[i];
        if (!meets_accumulator(tiles, site)) continue;
        accumulator_layout(tiles, site, &site->tile->target);
        for (size_t k = 0; k < site->reads.count; k++)
            accumulator_layout(tiles, site, site->reads.items[k]);
    }
}

/* Panels for a copy that cannot be a single piece */
static void choose_layouts(Tiles *tiles) {
    plain_layouts(tiles->prog);
    operand_layouts(tiles);
    accumulator_layouts(tiles);
    for (size_t i = 0; i < tiles->sites.count; i++) {
        Site *site = tiles->sites.items[i];
        Wish wish = wish_of(tiles, site);
        if (wish != WISH_LOAD && wish != WISH_STORE) continue;
        const Access *local = tile_of(site);
        Layout *layout = access_layout(tiles->prog, site->role, local);
        int64_t extents[PROG_MAX_RANK];
        uint32_t bytes;
        BoxPlan plan;
        Reason reason;
        if (local->rank == 0 || layout->swizzle || layout->addressed) continue;
        for (int d = 0; d < local->rank; d++)
            extents[d] = tile_extent(tiles->prog, site->role, local, d);
        Layout panels = *layout;
        boxes_panels(tiles->prog->target, local->type, local->rank, extents, &panels);
        if (panels.panel == layout->panel ||
            one_piece(tiles, site, tensor_of(site), local, layout, &bytes))
            continue;
        if (boxes_plan(tiles, site, tensor_of(site), local, &panels, &plan, &reason))
            *layout = panels;
    }
}

/* A piece of several rows: these have no gaps */
static void join_piece(Tiles *tiles, Site *site, const Access *global) {
    const IndexSpace *space = &site->tile->space;
    for (int d = 0; d < global->rank; d++)
        for (int i = 0; i < space->count; i++)
            if (global->affine[d].coef[i] != 0 && space->items[i].extent > 1) {
                tiles_join_axes(&tiles->prog->params.items[global->object], d);
                return;
            }
}

/* ---- pieces of a lane ------------------------------------------------------------------------ */

/* True if `elements` adjacent elements along index `last` are contiguous and aligned to their
 * size at every position */
static bool aligned_pieces(Site *site, const Poly *position, int last, int64_t elements) {
    int64_t steps[PROG_MAX_INDEXES] = {0};
    const Poly *factor, *rest, *base = position;
    if (!poly_split(site->algebra, base, algebra_atom_index(site->algebra, last), &factor, &rest))
        return false;
    if (!poly_is_constant(factor, &steps[last]) || steps[last] != 1) return false;
    return poly_divisor(site->algebra, rest) % elements == 0;
}

static void lane_pieces(Tiles *tiles, Site *site) {
    Tile *tile = site->tile;
    Access *local = &tile->target, *global = tile->value->read;
    int64_t bytes = element_rows[global->type].bytes, elements = 16 / bytes;
    int last = tile->space.bound - 1, final = local->rank - 1;
    Layout *layout = access_layout(tiles->prog, site->role, local);
    Layout plain = *layout;
    plain.panel = tile_extent(tiles->prog, site->role, local, final), plain.swizzle = 0;
    /* A piece stays within a panel if the panel is a multiple of it, and within 16 bytes that a
     * swizzle moves together: the row-major position suffices */
    const Poly *to = local_position(tiles, site, local, &plain),
               *from = global_position(tiles, site, global);
    bool last_axis = last >= 0 && local->affine[final].is && global->affine[global->rank - 1].is;
    for (int d = 0; d + 1 < global->rank && last_axis; d++)
        last_axis = !expr_depends(global->subs[d], last);
    for (; elements > 1; elements /= 2) {
        if (!last_axis || tile->space.items[last].extent % elements != 0 ||
            layout->panel % elements != 0)
            continue;
        /* The last coordinate too: a piece that begins before the tensor's first column would
         * count as outside */
        const Poly *column =
            algebra_poly(site->algebra, site->role, global->affine[global->rank - 1].base);
        if (poly_divisor(site->algebra, column) % elements != 0) continue;
        if (aligned_pieces(site, to, last, elements) && aligned_pieces(site, from, last, elements))
            break;
    }
    tile->class = TILE_LANES;
    tile->piece.elements = (int)elements;
    tile->piece.asynchronous = elements * bytes >= 4;
    Param *param = &tiles->prog->params.items[global->object];
    if (param->alignment < elements * bytes) param->alignment = (uint32_t)(elements * bytes);
    keep_aligned(tiles, site, global, (uint32_t)(elements * bytes));
}

/* ---- classes --------------------------------------------------------------------------------- */

static bool is_prefetch(const Site *site) { return site->row->kind == ROW_PREFETCH; }

static void refuse_copy(Tiles *tiles, Site *site, const Reason *reason) {
    const Param *param = &tiles->prog->params.items[tensor_of(site)->object];
    Diag *diag;
    if (reason->code == P0211)
        diag = diag_at(tiles->diags, P0211, reason->span,
                       "the copy engine cannot do this copy of "
                       "`%s`: it is not a dense box",
                       param->name);
    else if (reason->code == P0212)
        diag = diag_at(tiles->diags, P0212, reason->span, "the tile cannot be cut into boxes");
    else
        diag = diag_at(tiles->diags, reason->code, reason->span, "%s", reason->text);
    if (reason->code == P0213)
        diag_label(tiles->diags, diag, param->span, "declared here");
    else
        diag_primary(tiles->diags, diag, "%s", reason->text);
    if (!is_prefetch(site))
        diag_help(tiles->diags, diag, "%s", reason->help);
    else
        diag_help(tiles->diags, diag,
                  "prefetch only elements that one copy of the copy engine reads");
    site->poisoned = true;
}

static void take_boxes(Tiles *tiles, Site *site, BoxPlan *plan, bool store) {
    Access *global = tensor_of(site);
    Param *param = &tiles->prog->params.items[global->object];
    site->tile->class = store ? TILE_TENSOR_STORE : TILE_TENSOR_LOAD;
    if (!store) boxes_narrow(tiles, site, global, plan);
    if (!store && !is_prefetch(site))
        multicast_boxes(tiles, site, plan, access_layout(tiles->prog, site->role, tile_of(site)));
    int map = boxes_map(tiles, global, plan, store);
    site->tile->box = plan->copy;
    site->tile->box.map = map;
    if (plan->copy.granule > 0) param->by_pointer = true;
    Layout *layout = access_layout(tiles->prog, site->role, tile_of(site));
    if (layout->alignment < 128 && !is_prefetch(site)) layout->alignment = 128;
    if (param->alignment < 16) param->alignment = 16;
    boxes_require(tiles, site, global, store);
}

/* A load on a target without a copy engine: by the lanes, and only if that is written */
static bool refuse_engine(Tiles *tiles, Site *site) {
    if (tiles->prog->target->has[CAP_COPY_ENGINE]) return false;
    Diag *diag =
        target_lacks(tiles->arena, tiles->diags, tiles->prog, CAP_COPY_ENGINE, site->row->span);
    if (diag)
        diag_help(tiles->diags, diag, "%s",
                  is_prefetch(site) ? "remove the `prefetch`" : "write `by lanes` after each copy");
    site->poisoned = true;
    return true;
}

static void classify_copy(Tiles *tiles, Site *site, bool store) {
    Access *global = tensor_of(site), *local = tile_of(site);
    const Layout *layout = access_layout(tiles->prog, site->role, local);
    Tile *tile = site->tile;
    BoxPlan plan;
    Reason reason = {P0211, tile->target.span, "the tile has no dimension",
                     "copy it element by element"};
    uint32_t bytes;
    if (refuse_engine(tiles, site)) return;
    bool boxes = local->rank > 0 &&
                 boxes_plan(tiles, site, global, local, layout, &plan, &reason) &&
                 boxes_pitch(tiles, global, store, &reason);
    bool piece = local->rank > 0 && (!boxes || plan.count > 1) &&
                 one_piece(tiles, site, global, local, layout, &bytes);
    if (piece) {
        Param *param = &tiles->prog->params.items[global->object];
        tile->class = store ? TILE_BULK_STORE : TILE_BULK_LOAD;
        tile->bulk.bytes = bytes;
        if (!store && !is_prefetch(site)) multicast_piece(tiles, site);
        if (param->alignment < 16) param->alignment = 16;
        join_piece(tiles, site, global);
        keep_aligned(tiles, site, global, 16);
    } else if (boxes) {
        take_boxes(tiles, site, &plan, store);
    } else if (store) {
        tile->class = TILE_MAP;
    } else {
        refuse_copy(tiles, site, &reason);
    }
}

void tiles_copies(Tiles *tiles) {
    choose_layouts(tiles);
    for (size_t i = 0; i < tiles->sites.count; i++) {
        Site *site = tiles->sites.items[i];
        switch (wish_of(tiles, site)) {
        case WISH_LOAD: classify_copy(tiles, site, false); break;
        case WISH_STORE: classify_copy(tiles, site, true); break;
        case WISH_LANES: lane_pieces(tiles, site); break;
        case WISH_NONE:
            if (!site->poisoned && site->tile->class == TILE_UNCLASSIFIED)
                site->tile->class = TILE_MAP;
            break;
        }
    }
    multicast_withdraw(tiles);
    for (size_t i = 0; i < tiles->sites.count; i++) multicast_check(tiles, tiles->sites.items[i]);
}

/* ---- prefetches ------------------------------------------------------------------------------ */

static void refuse_prefetch(Tiles *tiles, Site *site, Span span, const char *reason) {
    Diag *diag = diag_at(tiles->diags, P0230, span, "the copy engine cannot prefetch this");
    diag_primary(tiles->diags, diag, "%s", reason);
    diag_help(
        tiles->diags, diag,
        "write `prefetch A[..] as s.a[i, j];` for a copy `s.a[i, j] = A[..];` of a tensor into "
        "a stage");
    site->poisoned = true;
}

static bool may_be_prefetched(Tiles *tiles, Site *site) {
    const Tile *tile = site->tile;
    const Access *target = &tile->target, *read = tile->value->read;
    const char *reason = NULL;
    Span span = tile->value->span;
    if (target->space != SPACE_STAGE)
        reason = "not a field of a stage", span = target->span;
    else if (tile->value->kind != X_READ || read->space != SPACE_GLOBAL)
        reason = "not an element of a tensor";
    else if (!element_same_bits(target->type, read->type))
        reason =
            arena_printf(tiles->arena, "holds `%s`, and the tensor `%s`",
                         element_rows[target->type].spelling, element_rows[read->type].spelling),
        span = target->span;
    else if (tiles->prog->params.items[read->object].mode == PARAM_OUT)
        reason = "an `out` tensor, which is not read";
    else if (site->reads.count > 1)
        reason = "its subscripts read elements: read them by a `let` before";
    if (reason) refuse_prefetch(tiles, site, span, reason);
    return reason == NULL;
}

void tiles_prefetches(Tiles *tiles) {
    for (size_t i = 0; i < tiles->prefetches.count; i++) {
        Site *site = tiles->prefetches.items[i];
        if (site->poisoned || !may_be_prefetched(tiles, site)) continue;
        classify_copy(tiles, site, false);
        if (site->tile->class == TILE_BULK_LOAD)
            tiles->prog->params.items[tensor_of(site)->object].by_pointer = true;
    }
}
