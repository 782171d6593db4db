/* Tiles of the grid that write nothing, whatever the sizes. An axis has ceil(E, D) tiles, each
 * write of the kernel begins at axis * S or later in a dimension of E elements, and S is at least 2
 * * D: then the tiles from ceil(E, S) on write only outside of their tensors. A note: the result is
 * right, but these blocks are started for nothing. Subscripts that are not a sum of the axis,
 * constants and indexes are not judged. */
#include "algebra/algebra.h"
#include "check/passes.h"
#include "check/races/races.h"

typedef struct Axle { /* an axis with ceil(elements, by) tiles */
    int axis;
    const Expr *elements;
    int64_t by, stride; /* stride: the least of the writes */
    const Access *first;
} Axle;

/* ceil(E, D), E / D, or E alone, with a constant D */
static bool is_parted(const Expr *extent, Axle *out) {
    *out = (Axle){.elements = extent, .by = 1, .stride = INT64_MAX};
    if (extent->kind == X_CALL && extent->call.which == IN_ceil_div) {
        out->elements = extent->call.args[0];
        return expr_constant(extent->call.args[1], &out->by) && out->by > 0;
    }
    if (extent->kind == X_BINARY && extent->binary.op == OP_DIV) {
        out->elements = extent->binary.left;
        return expr_constant(extent->binary.right, &out->by) && out->by > 0;
    }
    return extent->kind != X_CONST;
}

/* How far apart the writes of adjacent tiles are along this dimension; 0: unknown */
static int64_t stride_of(const Role *role, const Tile *tile, const Axle *axle, int d) {
    Algebra *algebra = role->code->algebra;
    const Poly *sub = algebra_subscript(algebra, role, &tile->target, d), *rest;
    int64_t stride;
    if (!sub ||
        !poly_linear_in(algebra, sub, algebra_atom_axis(algebra, axle->axis), &stride, &rest))
        return 0;
    RaceReach reach = race_reach(algebra, &tile->space, rest);
    return reach.known && reach.lo >= 0 ? stride : 0;
}

/* False: the last tiles may write something */
static bool add_write(const Prog *prog, const Role *role, const Tile *tile, Axle *axle) {
    const Param *param = &prog->params.items[tile->target.object];
    int64_t most = 0;
    for (int d = 0; d < param->rank; d++) {
        if (!expr_same(param->extents[d], axle->elements)) continue;
        int64_t stride = stride_of(role, tile, axle, d);
        if (stride > most) most = stride;
    }
    if (most < axle->stride) axle->stride = most;
    if (!axle->first) axle->first = &tile->target;
    return most / 2 >= axle->by;
}

static bool add_writes(const Prog *prog, const Role *role, Axle *axle) {
    for (size_t at = 0; at < role->code->rows.count; at++) {
        const Row *row = code_row(role->code, (int)at);
        if (row->kind == ROW_UNSAFE || row->unsafe) return false;
        if (row->kind != ROW_TILE || !row->tile || row->tile->target.space != SPACE_GLOBAL)
            continue;
        if (!valid_index(row->tile->target.object, prog->params.count) ||
            !add_write(prog, role, row->tile, axle))
            return false;
    }
    return true;
}

static void report(Arena *arena, const Prog *prog, const Axle *axle, Diags *diags) {
    const Axis *axis = &prog->axes.items[axle->axis];
    Str elements = str_new(arena), extent = str_new(arena);
    expr_print(axle->elements, prog, NULL, NULL, &elements);
    expr_print(axis->extent, prog, NULL, NULL, &extent);
    Diag *diag =
        diag_at(diags, P0245, axis->span, "tiles of `%s` from `ceil(%s, %lld)` on write nothing",
                axis->name, elements.text, (long long)axle->stride);
    diag_primary(diags, diag, "`%s` tiles", extent.text);
    diag_label(diags, diag, axle->first->span, "in those, all of this is outside of `%s`",
               prog->params.items[axle->first->object].name);
    diag_help(diags, diag, "write `%s: ceil(%s, %lld)`", axis->name, elements.text,
              (long long)axle->stride);
}

void empty_check(Arena *arena, Prog *prog, Diags *diags) {
    for (size_t a = 0; a < prog->axes.count; a++) {
        Axle axle;
        bool all = is_parted(prog->axes.items[a].extent, &axle);
        axle.axis = (int)a;
        for (size_t r = 0; r < prog->roles.count && all; r++)
            all = add_writes(prog, &prog->roles.items[r], &axle);
        if (all && axle.first) report(arena, prog, &axle, diags);
    }
}
