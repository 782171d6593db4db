/* Copies between a tensor and a tile as boxes of a tensor map, or the reason why that is
 * impossible.
 *
 * A box copies a dense block: each tensor axis contributes base + one index (or several that
 * traverse it without a gap, in mixed radix), in the order of the tile's dimensions. It has at
 * most 256 elements per axis, its inner extent is a multiple of 16 bytes, and each box must be
 * one dense run of shared memory that starts at a multiple of 128 bytes (PTX ISA, tensor
 * copies). A tile wider than a box, or swizzled, is divided into panels, see Layout. */
#include "derive/edit.h"
#include "derive/tiles.h"

#define BOX_INNER_BYTES 16
#define PROMOTED_BYTES  256 /* that L2 fetches at once */
#define BOX_START_BYTES 128
/* of a box with unused bytes after it, which has one of the divisors of a width: with narrower
 * ones, a copy by lanes is faster */
#define BOX_LEAST_BYTES 32
#define STRIDE_LIMIT    (INT64_C(1) << 40)

/* A tensor axis of the copy, outermost first */
typedef struct Walk {
    int64_t length; /* elements traversed, 1 without an index */
    int64_t stride; /* distance in the tile, in elements, of adjacent ones; 0 without an index */
    int inner;      /* the tile dimension of its fastest index, -1 */
} Walk;

static bool refuse(Reason *reason, Code code, Span span, const char *text, const char *help) {
    *reason = (Reason){code, span, text, help};
    return false;
}

static const char *const BY_LANES = "write `by lanes` after the copy: the lanes of the role then "
                                    "copy it in pieces";

/* ---- traversal of an axis -------------------------------------------------------------------- */

static bool axis_indexes(Tiles *tiles, Site *site, const Access *global, int axis, int *order,
                         int *count, Reason *reason) {
    const Affine *affine = &global->affine[axis];
    const IndexSpace *space = &site->tile->space;
    Span span = global->subs[axis]->span;
    *count = 0;
    if (!affine->is)
        return refuse(reason, P0211, span,
                      arena_printf(tiles->arena, "gather: `%s` is not a base plus an index",
                                   tiles_text(tiles, span)),
                      BY_LANES);
    for (int i = 0; i < space->count; i++) {
        if (affine->coef[i] == 0) continue;
        if (affine->coef[i] < 0)
            return refuse(reason, P0211, span,
                          arena_printf(tiles->arena, "reversed: `%s` decreases as `%s` increases",
                                       tiles_text(tiles, span), space->items[i].name),
                          BY_LANES);
        int at = (*count)++;
        for (; at > 0 && affine->coef[order[at - 1]] < affine->coef[i]; at--)
            order[at] = order[at - 1];
        order[at] = i; /* outermost first */
    }
    int64_t step = 1;
    for (int k = *count - 1; k >= 0; k--) {
        if (affine->coef[order[k]] != step)
            return refuse(reason, P0211, span,
                          arena_printf(tiles->arena,
                                       "strided: `%s` does not step element by element",
                                       tiles_text(tiles, span)),
                          BY_LANES);
        step *= space->items[order[k]].extent;
    }
    return true;
}

/* The tile dimension of each index, which it must subscript alone with coefficient 1 */
static bool tile_dimensions(Tiles *tiles, Site *site, const Access *local, int *dim_of,
                            Reason *reason) {
    const IndexSpace *space = &site->tile->space;
    for (int i = 0; i < space->count; i++) dim_of[i] = -1;
    for (int d = 0; d < local->rank; d++) {
        int used = 0;
        for (int i = 0; i < space->count && local->affine[d].is; i++) {
            if (local->affine[d].coef[i] == 0) continue;
            used++;
            if (local->affine[d].coef[i] == 1 && used == 1 && dim_of[i] < 0)
                dim_of[i] = d;
            else
                used = PROG_MAX_INDEXES;
        }
        if (!local->affine[d].is || used > 1)
            return refuse(reason, P0211, local->subs[d]->span,
                          arena_printf(tiles->arena,
                                       "`%s` does not advance through the tile element by element",
                                       tiles_text(tiles, local->subs[d]->span)),
                          BY_LANES);
    }
    return true;
}

/* Distance in elements along dimension d of the tile, within a panel */
static int64_t tile_stride(const Prog *prog, const Role *role, const Access *local,
                           const Layout *layout, int d) {
    int64_t stride = 1;
    for (int k = local->rank - 1; k > d; k--)
        stride *= k == local->rank - 1 ? layout->panel : tile_extent(prog, role, local, k);
    return stride;
}

/* Adds one index to the traversal of axis `a`. */
static bool walk_index(Tiles *tiles, Site *site, const Access *global, const Access *local,
                       const Layout *layout, int a, int index, int dim, Walk *walk,
                       Reason *reason) {
    int64_t stride = tile_stride(tiles->prog, site->role, local, layout, dim),
            extent = site->tile->space.items[index].extent;
    bool runs_on = walk->inner < 0 || walk->stride == stride * extent;
    if (dim == local->rank - 1 && walk->inner >= 0 &&
        layout->panel != tile_extent(tiles->prog, site->role, local, dim))
        runs_on = false;
    if (!runs_on)
        return refuse(reason, P0211, global->subs[a]->span,
                      arena_printf(tiles->arena,
                                   "`%s` steps through parts of the tile that are not contiguous",
                                   tiles_text(tiles, global->subs[a]->span)),
                      BY_LANES);
    walk->length *= extent;
    walk->stride = stride;
    walk->inner = dim;
    return true;
}

static bool walk_axes(Tiles *tiles, Site *site, const Access *global, const Access *local,
                      const Layout *layout, Walk *walks, Reason *reason) {
    const IndexSpace *space = &site->tile->space;
    int dim_of[PROG_MAX_INDEXES], order[PROG_MAX_INDEXES], count, last_dim = -1;
    bool seen[PROG_MAX_INDEXES] = {false};
    if (!tile_dimensions(tiles, site, local, dim_of, reason)) return false;
    for (int a = 0; a < global->rank; a++) {
        walks[a] = (Walk){.length = 1, .inner = -1};
        if (!axis_indexes(tiles, site, global, a, order, &count, reason)) return false;
        for (int k = 0; k < count; k++) {
            int i = order[k], d = dim_of[i];
            const char *name = space->items[i].name;
            if (d < 0 || seen[i])
                return refuse(reason, P0211, global->subs[a]->span,
                              arena_printf(tiles->arena,
                                           d < 0 ? "broadcast: `%s` is not an index of the tile"
                                                 : "diagonal: `%s` steps along two axes",
                                           name),
                              BY_LANES);
            if (d <= last_dim)
                return refuse(reason, P0211, global->subs[a]->span,
                              arena_printf(tiles->arena,
                                           "transposed: `%s` comes later in the axes of the tensor "
                                           "than in the dimensions of the tile",
                                           name),
                              BY_LANES);
            if (!walk_index(tiles, site, global, local, layout, a, i, d, &walks[a], reason))
                return false;
            seen[i] = true;
            last_dim = d;
        }
    }
    for (int i = 0; i < space->count; i++)
        if (dim_of[i] >= 0 && !seen[i])
            return refuse(reason, P0211, global->span,
                          arena_printf(tiles->arena,
                                       "broadcast: `%s` is not an index of the tensor",
                                       space->items[i].name),
                          BY_LANES);
    return true;
}

/* ---- box extents ----------------------------------------------------------------------------- */

static int64_t largest_divisor(int64_t length, int64_t limit, int64_t unit) {
    for (int64_t d = length < limit ? length : limit; d > 0; d--)
        if (length % d == 0 && d % unit == 0) return d;
    return 0;
}

/* The least number of elements of `bytes` bytes whose size is a multiple of `multiple`; all are
 * powers of two */
static int64_t unit_of(int64_t bytes, int64_t multiple) {
    return bytes >= multiple ? 1 : multiple / bytes;
}

/* The greatest power of two that divides `value`, at most `limit` */
static int64_t power_of_two(int64_t value, int64_t limit) {
    int64_t power = 1;
    while (power < limit && value % (power * 2) == 0) power *= 2;
    return power;
}

void boxes_panels(const Target *target, Element type, int rank, const int64_t *extents,
                  Layout *layout) {
    int64_t rows = 1, last = extents[rank - 1], bytes = element_rows[type].bytes;
    for (int d = 0; d + 1 < rank; d++) rows *= extents[d];
    if (last <= target->box_limit) return;
    int64_t unit = unit_of(bytes, BOX_INNER_BYTES), least = unit_of(bytes, BOX_LEAST_BYTES);
    while (unit < BOX_START_BYTES && rows * unit * bytes % BOX_START_BYTES != 0) unit *= 2;
    int64_t dense = largest_divisor(last, target->box_limit, unit);
    if (dense > 0 && rows == 1) return; /* one row is one run for any box */
    int64_t panel = dense > 0
                        ? dense
                        : largest_divisor(last, target->box_limit, unit_of(bytes, BOX_INNER_BYTES));
    if (panel == 0 || (dense == 0 && panel < least)) return;
    layout->panel = panel;
    layout->gap = -(rows * panel * bytes) & (BOX_START_BYTES - 1);
    layout->gap /= bytes;
}

/* Alignment of boxes in shared memory: that of the swizzle pattern, if there is one (PTX ISA
 * 5.5.7) */
static int64_t box_start(const Layout *layout) {
    return layout->swizzle ? (TILES_SPAN_LEAST / 2 << layout->swizzle) * TILES_SPAN_ROWS
                           : BOX_START_BYTES;
}

/* A box extent along an axis traversed in steps of stride * bytes: all of it, or a part whose
 * step keeps the starts aligned */
static int64_t cut(const Target *target, int64_t length, int64_t step_bytes, int64_t unit,
                   int64_t start) {
    if (length <= target->box_limit && length % unit == 0) return length;
    int64_t aligned = start / power_of_two(step_bytes, start);
    return largest_divisor(length, target->box_limit, aligned > unit ? aligned : unit);
}

/* Reports the reason, with the nearest possible extent, for which `unit` is given */
static bool not_cut(Tiles *tiles, const Access *global, int axis, int64_t length,
                    int64_t step_bytes, int64_t unit, int64_t start, Reason *reason) {
    const char *help =
        "choose an extent that a larger power of two divides, or write `by lanes` after the copy";
    for (int64_t more = length + 1; unit > 0 && more <= length + INT64_C(2) * BOX_START_BYTES;
         more++) {
        arena_count(tiles->arena, 64); /* divisors to try */
        if (cut(tiles->prog->target, more, step_bytes, unit, start) > 0) {
            help =
                arena_printf(tiles->arena, "use %lld elements, or write `by lanes` after the copy",
                             (long long)more);
            break;
        }
    }
    return refuse(
        reason, P0212, global->subs[axis]->span,
        arena_printf(tiles->arena,
                     "%lld elements along `%s` do not divide into boxes of at most %d elements, of "
                     "a multiple of 16 bytes each, that start at multiples of %lld bytes",
                     (long long)length, tiles_text(tiles, global->subs[axis]->span),
                     tiles->prog->target->box_limit, (long long)start),
        help);
}

/* The box extent along axis `a`, 0: none is possible. `run`: number of elements that the box has
 * in one dense run so far, 0: it cannot grow; `step`: distance in the tile of neighbours along
 * the axis. */
static int64_t box_extent(const Target *target, const Walk *walk, int64_t bytes, bool innermost,
                          int64_t start, int64_t *run) {
    int64_t box = 1;
    if (innermost)
        box =
            cut(target, walk->length, walk->stride * bytes, unit_of(bytes, BOX_INNER_BYTES), start);
    else if (walk->length == 1)
        return 1;
    else if (walk->stride == *run)
        box = cut(target, walk->length, walk->stride * bytes, 1, start);
    *run = box == walk->length ? *run * box : 0;
    return box;
}

static bool cut_axes(Tiles *tiles, Site *site, const Access *global, const Access *local,
                     const Layout *layout, const Walk *walks, BoxPlan *out, Reason *reason) {
    int64_t bytes = element_rows[global->type].bytes, run = 1, rows = 1, start = box_start(layout);
    int last = global->rank - 1;
    for (int d = 0; d + 1 < local->rank; d++)
        rows *= tile_extent(tiles->prog, site->role, local, d);
    bool panels = layout->panel != tile_extent(tiles->prog, site->role, local, local->rank - 1);
    *out = (BoxPlan){.copy = {.rank = global->rank}, .count = 1, .swizzle = layout->swizzle};
    for (int a = last; a >= 0; a--) {
        const Walk *walk = &walks[a];
        int map = last - a; /* dimensions of the map are innermost first */
        int64_t box, step = walk->stride;
        if (a == last && panels)
            box = run = layout->panel; /* a panel holds all rows */
        else
            box = box_extent(tiles->prog->target, walk, bytes, a == last, start, &run);
        if (box == 0)
            return not_cut(tiles, global, a, walk->length, walk->stride * bytes,
                           a == last ? unit_of(bytes, BOX_INNER_BYTES) : 1, start, reason);
        if (walk->length % box != 0)
            return not_cut(tiles, global, a, walk->length, 0, 0, start, reason);
        out->box[map] = box;
        out->copy.tile[map] = walk->length;
        step = a == last && panels ? layout_apart(layout, rows) : box * step;
        out->copy.step[map] = box == walk->length ? 0 : step * bytes;
        out->copy.start[map] = global->affine[a].base;
        out->count *= walk->length / box;
        if (out->copy.step[map] % start != 0)
            return not_cut(tiles, global, a, walk->length, 0, 0, start, reason);
    }
    return true;
}

/* Checks the start of the first box in the tile: a multiple of 128 bytes or of a swizzle
 * pattern, and of whole panels */
static bool start_aligned(Tiles *tiles, Site *site, const Access *local, const Layout *layout,
                          Reason *reason) {
    int64_t bytes = element_rows[local->type].bytes,
            extent = tile_extent(tiles->prog, site->role, local, local->rank - 1);
    int64_t rows = 1, start = box_start(layout);
    for (int d = 0; d + 1 < local->rank; d++)
        rows *= tile_extent(tiles->prog, site->role, local, d);
    for (int d = 0; d < local->rank; d++) {
        const Poly *base = algebra_poly(site->algebra, site->role, local->affine[d].base);
        int64_t step = tile_stride(tiles->prog, site->role, local, layout, d), unit = 1;
        if (d == local->rank - 1 && layout->panel != extent)
            step = layout_apart(layout, rows), unit = layout->panel;
        int64_t divisor = poly_divisor(site->algebra, base);
        int64_t steps = start / power_of_two(step * bytes, start);
        if (divisor % unit == 0 && divisor / unit % steps == 0) continue;
        return refuse(
            reason, P0212, local->subs[d]->span,
            arena_printf(
                tiles->arena,
                "cannot show that the copy starts at a multiple of %lld bytes in the tile: `%s`",
                (long long)start, tiles_text(tiles, local->subs[d]->span)),
            "begin at another row, or write `by lanes` after the copy");
    }
    return true;
}

/* Checks the start of the first box in the tensor: a multiple of 16 bytes along the last axis,
 * otherwise the copy engine traps (an illegal instruction on an H200, for loads and stores); any
 * coordinate along the other axes, also negative. */
static bool origin_aligned(Tiles *tiles, Site *site, const Access *global, Reason *reason) {
    int last = global->rank - 1;
    int64_t unit = unit_of(element_rows[global->type].bytes, BOX_INNER_BYTES);
    const Poly *base = algebra_poly(site->algebra, site->role, global->affine[last].base);
    if (poly_divisor(site->algebra, base) % unit == 0) return true;
    return refuse(reason, P0211, global->subs[last]->span,
                  arena_printf(tiles->arena,
                               "cannot show that `%s` starts at a multiple of %lld elements; "
                               "tensor copies start at multiples of 16 bytes",
                               tiles_text(tiles, global->subs[last]->span), (long long)unit),
                  "start the tile at such a multiple (with a wider halo), state the multiple with "
                  "`requires`, or write `by lanes` after the copy");
}

bool boxes_plan(Tiles *tiles, Site *site, const Access *global, const Access *local,
                const Layout *layout, BoxPlan *out, Reason *reason) {
    Walk walks[PROG_MAX_RANK] = {0};
    int last = global->rank - 1;
    if (element_rows[global->type].map < 0)
        return refuse(reason, P0211, global->span,
                      "the copy engine does not support this element type", BY_LANES);
    if (!walk_axes(tiles, site, global, local, layout, walks, reason)) return false;
    if (walks[last].inner != local->rank - 1)
        return refuse(reason, P0211, global->subs[last]->span,
                      walks[last].inner < 0
                          ? "strided: no index advances along the last axis of the "
                            "tensor, along which elements are contiguous"
                          : "no index advances along the last dimension of the "
                            "tile, along which elements are contiguous",
                      BY_LANES);
    return cut_axes(tiles, site, global, local, layout, walks, out, reason) &&
           start_aligned(tiles, site, local, layout, reason) &&
           origin_aligned(tiles, site, global, reason);
}

/* ---- parts for blocks of a cluster ----------------------------------------------------------- */

/* Divides into whole boxes along an axis if their number allows that; otherwise into slices
 * along the outermost axis of the boxes: those are dense runs too, and start at valid addresses. */
bool boxes_part(BoxPlan *plan, const Layout *layout, int64_t element_bytes, int parts,
                Multicast *out) {
    BoxCopy *copy = &plan->copy;
    int outer = 0;
    for (int d = copy->rank - 1; d >= 0; d--) {
        int64_t count = copy->tile[d] / plan->box[d];
        if (plan->box[d] > 1 && outer == 0) outer = d;
        if (count % parts != 0) continue;
        copy->tile[d] /= parts;
        plan->count /= parts;
        *out = (Multicast){.parts = parts,
                           .axis = d,
                           .elements = copy->tile[d],
                           .bytes = count / parts * copy->step[d]};
        return true;
    }
    int64_t pitch = element_bytes; /* distance of adjacent elements of that axis in a box */
    for (int d = 0; d < outer; d++) pitch *= plan->box[d];
    bool several = copy->tile[outer] != plan->box[outer];
    int64_t slice = plan->box[outer] / parts;
    if (plan->box[outer] % parts != 0 || slice * pitch % box_start(layout) != 0) return false;
    if (several && copy->step[outer] != plan->box[outer] * pitch) return false; /* panels */
    plan->box[outer] = slice;
    copy->tile[outer] /= parts;
    copy->step[outer] = several ? slice * pitch : 0;
    *out = (Multicast){.parts = parts,
                       .axis = outer,
                       .elements = copy->tile[outer],
                       .bytes = copy->tile[outer] * pitch};
    return true;
}

/* ---- pitches and maps ------------------------------------------------------------------------ */

/* Distance in bytes of adjacent elements of the axis: the size of the axes inside it */
static Expr *stride_of(Tiles *tiles, const Param *param, int axis) {
    Expr *stride = expr_integer(tiles->arena, E_I64, element_rows[param->type].bytes, param->span);
    Expr *product = NULL;
    for (int a = axis + 1; a < param->rank; a++) {
        Expr *extent = param->extents[a];
        int64_t value; /* launch formulas have no width; a product of constants may need 64 bits */
        if (expr_constant(extent, &value))
            extent = expr_integer(tiles->arena, E_I64, value, param->span);
        product =
            product ? expr_binary(tiles->arena, OP_MUL, product, extent, param->span) : extent;
    }
    return product ? expr_binary(tiles->arena, OP_MUL, product, stride, param->span) : stride;
}

bool boxes_pitch(Tiles *tiles, const Access *global, bool store, Reason *reason) {
    const Param *param = &tiles->prog->params.items[global->object];
    int64_t bytes;
    for (int a = param->rank - 2; a >= 0; a--) {
        if (!expr_constant(stride_of(tiles, param, a), &bytes)) continue;
        if (bytes % BOX_INNER_BYTES == 0 && bytes < STRIDE_LIMIT) continue;
        if (bytes >= STRIDE_LIMIT)
            return refuse(
                reason, P0213, global->span,
                arena_printf(
                    tiles->arena,
                    "the pitch of `%s` is %lld bytes, but tensor copies need less than 2^40",
                    param->name, (long long)bytes),
                BY_LANES);
        return refuse(
            reason, P0213, global->span,
            arena_printf(tiles->arena,
                         "the pitch of `%s` is %lld bytes, but tensor copies need a multiple of 16",
                         param->name, (long long)bytes),
            store ? "pad the tensor" : "pad the tensor, or write `by lanes` after the copy");
    }
    return true;
}

/* The innermost stride decides: the outer ones are its multiples. */
static void require_pitch(Tiles *tiles, int object, bool store, Span span) {
    const Param *param = &tiles->prog->params.items[object];
    Arena *arena = tiles->arena;
    Algebra *algebra = tiles->formulas;
    Expr *pitch = stride_of(tiles, param, param->rank - 2);
    if (poly_divisor(algebra, algebra_launched(algebra, pitch)) % BOX_INNER_BYTES == 0) return;
    Str text = str_new(arena);
    Expr *rest =
        expr_binary(arena, OP_MOD, pitch, expr_integer(arena, E_I64, BOX_INNER_BYTES, span), span);
    expr_print(pitch, tiles->prog, NULL, NULL, &text);
    Precondition row = {
        .condition = expr_binary(arena, OP_EQ, rest, expr_integer(arena, E_I64, 0, span), span),
        .text = arena_printf(arena, "%s %% %d == 0", text.text, BOX_INNER_BYTES),
        .reason = arena_printf(
            arena, "rows of `%s` are %s by TMA, which needs a pitch of a multiple of 16 bytes",
            param->name, store ? "stored" : "copied"),
        .help = "pad the rows of the tensor, or write `by lanes` after the statement",
        .span = span,
        .pitch_of = store ? 0 : object + 1};
    tiles_precondition(tiles, row);
}

static void require_near(Tiles *tiles, int object, bool store, Span span) {
    const Param *param = &tiles->prog->params.items[object];
    Arena *arena = tiles->arena;
    Algebra *algebra = tiles->formulas;
    Expr *far = stride_of(tiles, param, 0);
    const Poly *room = poly_sum(algebra, poly_constant(algebra, STRIDE_LIMIT - 1),
                                algebra_launched(algebra, far), -1);
    if (algebra_proves(algebra, CLAIM_NOT_NEGATIVE, room)) return;
    Str text = str_new(arena);
    Expr *limit = expr_integer(arena, E_I64, STRIDE_LIMIT, span);
    expr_print(far, tiles->prog, NULL, NULL, &text);
    Precondition row = {
        .condition = expr_binary(arena, OP_LT, far, limit, span),
        .text = arena_printf(arena, "%s < %lld", text.text, (long long)STRIDE_LIMIT),
        .reason = arena_printf(arena, "`%s` is %s by TMA, which needs strides below 2^40 bytes",
                               param->name, store ? "stored" : "copied"),
        .help = "write `by lanes` after the statement",
        .span = span};
    tiles_precondition(tiles, row);
}

/* Once for each tensor. A store needs the pitch of the tensor without gaps, whatever it has: TMA
 * clips a store to whole 16 bytes, so it would write to the gap after rows that end within them.
 * That is a fact for the statements that follow. */
void boxes_require(Tiles *tiles, Site *site, const Access *global, bool store) {
    Param *param = &tiles->prog->params.items[global->object];
    Pitched *pitched = &tiles->pitched[global->object];
    Span span = site->row->span;
    if (param->rank < 2) return;
    tiles_align_strides(param, BOX_INNER_BYTES);
    if (store && !pitched->stored) require_pitch(tiles, global->object, true, span);
    if (!store && !pitched->loaded) pitched->span = span;
    if (!pitched->loaded && !pitched->stored) require_near(tiles, global->object, store, span);
    *(store ? &pitched->stored : &pitched->loaded) = true;
}

void boxes_pitches(Tiles *tiles) {
    for (int i = 0; i < (int)tiles->prog->params.count; i++) {
        const Pitched *pitched = &tiles->pitched[i];
        if (pitched->loaded && !pitched->stored) require_pitch(tiles, i, false, pitched->span);
    }
}

/* TMA loads fill with zeros element by element, but TMA stores are clipped to whole 16 bytes
 * (seen on an H200): a tensor of one axis that may end within them would be overrun. (With
 * several axes the rows are whole 16 bytes, see boxes_require.) */
static int64_t store_granule(Tiles *tiles, const Param *param) {
    int64_t granule = BOX_INNER_BYTES / element_rows[param->type].bytes;
    if (param->rank > 1 ||
        poly_divisor(tiles->formulas, algebra_launched(tiles->formulas, param->extents[0])) %
                granule ==
            0)
        return 0;
    return granule;
}

/* Adjacent bytes in global memory of the whole copy */
static int64_t adjacent_bytes(const Param *param, const BoxPlan *plan) {
    int64_t bytes = element_rows[param->type].bytes, extent;
    for (int d = 0; d < plan->copy.rank; d++) {
        bytes *= plan->copy.tile[d];
        if (d >= param->rank || !expr_constant(param->extents[param->rank - 1 - d], &extent) ||
            extent != plan->copy.tile[d])
            break;
    }
    return bytes;
}

typedef struct Advance { /* does an expression change from iteration to iteration? */
    const Role *role;
    bool found;
} Advance;

static void find_advance(Expr *expr, void *data) {
    Advance *advance = data;
    advance->found |=
        expr->kind == X_LOCAL && advance->role->locals.items[expr->index].kind != LOCAL_AXIS;
}

/* A map may let L2 fetch adjacent bytes together with those of a copy. This helps if the same
 * block copies them in its next iteration. If another block copies them, L2 may fetch them twice,
 * so that map promotes nothing. */
void boxes_narrow(Tiles *tiles, const Site *site, const Access *global, BoxPlan *plan) {
    Advance advance = {.role = site->role};
    expr_visit(tiles->arena, plan->copy.start[0], find_advance, &advance);
    plan->narrow = !advance.found && adjacent_bytes(&tiles->prog->params.items[global->object],
                                                    plan) < PROMOTED_BYTES;
}

int boxes_map(Tiles *tiles, const Access *global, BoxPlan *plan, bool store) {
    const Param *param = &tiles->prog->params.items[global->object];
    Maps *maps = &edit_plan(tiles->prog)->maps;
    Expr *end = param->extents[param->rank - 1];
    plan->copy.granule = store ? store_granule(tiles, param) : 0;
    if (plan->copy.granule > 0) {
        Expr *granule = expr_integer(tiles->arena, E_I32, plan->copy.granule, global->span);
        end = expr_binary(tiles->arena, OP_MUL,
                          expr_binary(tiles->arena, OP_DIV, end, granule, global->span), granule,
                          global->span);
    }
    for (size_t i = 0; i < maps->count; i++) {
        Map *map = &maps->items[i];
        bool same = map->param == global->object && map->stored == store &&
                    map->rank == plan->copy.rank && map->swizzle == plan->swizzle;
        for (int d = 0; d < map->rank && same; d++) same = map->box[d] == plan->box[d];
        if (!same) continue;
        map->narrow &= plan->narrow;
        return (int)i;
    }
    Map map = {.param = global->object,
               .rank = plan->copy.rank,
               .swizzle = plan->swizzle,
               .stored = store,
               .narrow = plan->narrow};
    for (int d = 0; d < map.rank; d++) {
        map.extents[d] = d == 0 ? end : param->extents[param->rank - 1 - d];
        map.box[d] = plan->box[d];
    }
    vec_push(tiles->arena, maps, map);
    return (int)maps->count - 1;
}
