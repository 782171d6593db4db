/* Vectors in global memory: 16 bytes at once, as long as rows of the tensor are aligned, which a
 * launch decides. Otherwise the same threads access the same elements one by one. */
#include "derive/plan.h"
#include "derive/tiles.h"

/* A tile of so many elements may lie beyond a tensor without a subscript that wraps */
#define REACH_MOST (1 << 20)
#define WORD_BYTES 4 /* the least that is a vector */

bool wide_fits(const Prog *prog, const Access *access, int inner, int vector) {
    int last = access->rank - 1;
    int64_t extent;
    if (access->space != SPACE_GLOBAL || inner < 0 || last < 0 || vector <= 1) return false;
    if (vector * element_rows[access->type].bytes < WORD_BYTES) return false;
    for (int axis = 0; axis < access->rank; axis++) {
        const Affine *affine = &access->affine[axis];
        if (!affine->is || affine->coef[inner] != (axis == last ? 1 : 0)) return false;
    }
    const Affine *affine = &access->affine[last];
    for (int i = 0; i < PROG_MAX_INDEXES; i++)
        if (i != inner && (affine->coef[i] < 0 || affine->coef[i] % vector != 0)) return false;
    const Expr *along = prog->params.items[access->object].extents[last];
    bool ragged = access->rank > 1 && expr_constant(along, &extent) && extent % vector != 0;
    return affine->multiple % vector == 0 && !ragged;
}

static const Expr *both(Arena *arena, const Expr *a, Expr *b) {
    return a == NULL ? b : expr_binary(arena, OP_AND, (Expr *)(uintptr_t)a, b, b->span);
}

static Expr *is_multiple(Arena *arena, Expr *extent, int vector, Span span) {
    Expr *rest = expr_binary(arena, OP_MOD, extent, expr_integer(arena, E_I32, vector, span), span);
    return expr_binary(arena, OP_EQ, rest, expr_integer(arena, E_I32, 0, span), span);
}

/* Elements from the first to the last that the statement reaches along the last axis; 0: too many
 */
static int64_t reach_of(const IndexSpace *space, const Affine *affine) {
    int64_t reach = 1, steps;
    for (int i = 0; i < space->count; i++) {
        if (affine->coef[i] == 0) continue;
        if (space->items[i].extent < 0 ||
            __builtin_mul_overflow(affine->coef[i], space->items[i].extent - 1, &steps) ||
            __builtin_add_overflow(reach, steps, &reach) || reach > REACH_MOST)
            return 0;
    }
    return reach;
}

/* Tiles may write an element without an order, in words of 4 bytes or alone: all must write it in
 * the same size (PTX ISA 8.7.2). */
static bool in_one_size(const Tile *tile) {
    return tile->rewritten && element_rows[tile->target.type].bytes < 4;
}

/* The rows of a tensor begin at multiples of the vector, and end there. A tensor of one axis can
 * end anywhere: then the tile must end before. */
static bool condition_of(Arena *arena, const Prog *prog, const Tile *tile, const Access *access,
                         int vector, Expr **out) {
    int last = access->rank - 1;
    int64_t extent;
    Expr *along = prog->params.items[access->object].extents[last];
    *out = NULL;
    if (expr_constant(along, &extent) && extent % vector == 0) return true;
    *out = is_multiple(arena, along, vector, access->span);
    if (access->rank > 1 || in_one_size(tile)) return true;
    const Affine *affine = &access->affine[last];
    int64_t reach = reach_of(&tile->space, affine);
    if (reach == 0) return false;
    Expr *end = expr_binary(arena, OP_ADD, affine->base,
                            expr_integer(arena, E_I32, reach, access->span), access->span);
    Expr *ends = expr_binary(arena, OP_LE, end, along, access->span);
    *out = expr_binary(arena, OP_OR, *out, ends, access->span);
    return true;
}

/* Strides are multiples of `bytes` in each launch: because the kernel needs that anyway, or because
 * the tensor has no gaps, and then if its rows are. */
static bool strides_known(const Param *param, int bytes) {
    uint32_t outer = (1u << (param->rank - 1)) - 1;
    return (param->joined & outer) == outer ||
           (param->stride_alignment > 0 && param->stride_alignment % (uint32_t)bytes == 0);
}

static bool add_tensor(Wide *wide, WideTensor tensor) {
    for (int i = 0; i < wide->tensor_count; i++)
        if (wide->tensors[i].param == tensor.param) {
            WideTensor *old = &wide->tensors[i];
            if (old->bytes < tensor.bytes) old->bytes = tensor.bytes;
            old->base |= tensor.base, old->strides |= tensor.strides;
            return true;
        }
    if (wide->tensor_count == PROG_MAX_INDEXES) return false;
    wide->tensors[wide->tensor_count++] = tensor;
    return true;
}

bool wide_require(Arena *arena, const Prog *prog, const Tile *tile, const Access *access,
                  int vector, Wide *wide) {
    Expr *condition;
    const Param *param = &prog->params.items[access->object];
    int bytes = vector * (int)element_rows[access->type].bytes;
    if (bytes > VECTOR_BYTES) bytes = VECTOR_BYTES;
    if (!condition_of(arena, prog, tile, access, vector, &condition)) return false;
    WideTensor tensor = {access->object, bytes, param->alignment % (uint32_t)bytes != 0,
                         !strides_known(param, bytes)};
    if ((tensor.base || tensor.strides) && !add_tensor(wide, tensor)) return false;
    if (condition != NULL) wide->when = both(arena, wide->when, condition);
    wide->any = true;
    return true;
}

/* ---- rows of any length ---------------------------------------------------------------------- */

#define PACKED_ROUNDS 8         /* vectors of a thread; more would be long code */
#define PACKED_MOST   (1 << 16) /* elements: codegen divides their numbers in f32 */

/* The subscripts are the two indexes, the first plus a multiple of `unit`, or for 0 alone */
static bool is_plain(const Access *access, int64_t unit) {
    const Affine *affine = access->affine;
    if (access->rank != 2 || access->element != NULL) return false;
    for (int axis = 0; axis < 2; axis++)
        for (int i = 0; i < PROG_MAX_INDEXES; i++)
            if (!affine[axis].is || affine[axis].coef[i] != (i == axis ? 1 : 0)) return false;
    bool multiple = unit == 0 ? affine[0].multiple == 0 : affine[0].multiple % unit == 0;
    return multiple && affine[1].multiple == 0;
}

/* Rows of a tile that fill whole vectors, whatever their length */
static bool fits_packed(const Prog *prog, const Tile *tile, const Access *near, const Access *far,
                        int64_t threads) {
    int64_t bytes = element_rows[far->type].bytes, per = VECTOR_BYTES / bytes;
    int64_t rows = tile->space.items[0].extent, columns = tile->space.items[1].extent;
    if (bytes != 2 && bytes != 4) return false;
    if (near->space != SPACE_SHARED || far->space != SPACE_GLOBAL) return false;
    if (!is_plain(near, 0) || !is_plain(far, per) || rows % per != 0) return false;
    if (prog->params.items[far->object].extents[1]->kind != X_SYMBOL) return false;
    return rows * columns <= PACKED_MOST && columns > per &&
           rows * columns <= PACKED_ROUNDS * threads * per;
}

Packed wide_packed(const Prog *prog, const Role *role, const Tile *tile, const Moves *moves) {
    Packed packed = {0};
    if (!moves->bits || tile->class != TILE_MAP || tile->where != NULL) return packed;
    if (tile->space.bound != 2 || moves->reads.count != 1) return packed;
    const Access *read = moves->value->read, *target = &tile->target;
    bool loads = target->space == SPACE_SHARED;
    const Access *near = loads ? target : read, *far = loads ? read : target;
    if (!fits_packed(prog, tile, near, far, role->warps * 32)) return packed;
    if (crooked_rows(prog, far) * element_rows[far->type].bytes >= WORD_BYTES) return packed;
    const Layout *layout = &plan_tile(prog, role, near->object)->layout;
    int64_t columns = tile->space.items[1].extent;
    const RoleTile *shape = &role->tiles.items[near->object];
    int64_t pitch = layout->panel + layout->padding;
    if (layout->swizzle != 0 || layout->panel != columns) return packed;
    if (shape->extents[0] != tile->space.items[0].extent || shape->extents[1] != columns)
        return packed;
    if (shape->extents[0] * pitch * element_rows[far->type].bytes % VECTOR_BYTES != 0)
        return packed;
    return (Packed){near, far, shape->extents[0], columns, pitch};
}
