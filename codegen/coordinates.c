/* Coordinates of a tile from its number: the first axis fastest, or in groups. With clusters, the
 * numbers are those of clusters, and a block adds its position in the cluster. */
#include "codegen/gen.h"

static void set_axis(Gen *gen, const Region *loop, size_t axis, Operand value) {
    INS(gen->ptx, "mov.b32", ptx_reg(gen->role->locals[loop->axes[axis]].reg), value);
}

/* Converts a coordinate of clusters to one of this block: times the cluster's size along the
 * axis, plus the block's position. */
static void set_coordinate(Gen *gen, const Region *loop, size_t axis, Reg coordinate) {
    int size = gen->prog->axes.items[axis].cluster;
    if (size > 1)
        coordinate = PURE(gen->ptx, REG_32, "mad.lo.s32", ptx_reg(coordinate), ptx_int(size),
                          ptx_reg(gen->cluster.along[axis]));
    set_axis(gen, loop, axis, ptx_reg(coordinate));
}

/* Computes the coordinates of the axes from `first` on from the number `rest`, the first of them
 * fastest. */
static void set_plain_axes(Gen *gen, const Region *loop, const Value *extents, Reg rest,
                           size_t first) {
    size_t count = gen->prog->axes.count;
    for (size_t a = first; a < count; a++) {
        bool last = a + 1 == count;
        Reg coordinate =
            last ? rest
                 : PURE(gen->ptx, REG_32, "rem.u32", ptx_reg(rest), value_operand(extents[a]));
        if (!last)
            rest = PURE(gen->ptx, REG_32, "div.u32", ptx_reg(rest), value_operand(extents[a]));
        set_coordinate(gen, loop, a, coordinate);
    }
}

/* `grouped n`: n coordinates of the first axis (fewer in its last group) with all of the second,
 * then the next n: so that concurrent blocks share rows and columns in L2. */
void grid_coordinates(Gen *gen, const Region *loop, const Value *extents, Reg tile) {
    int grouped = gen->prog->grouped / gen->prog->axes.items[0].cluster;
    if (grouped == 0) {
        set_plain_axes(gen, loop, extents, tile, 0);
        return;
    }
    Reg plane =
        PURE(gen->ptx, REG_32, "mul.lo.s32", value_operand(extents[0]), value_operand(extents[1]));
    Reg rest = PURE(gen->ptx, REG_32, "div.u32", ptx_reg(tile), ptx_reg(plane)), in_plane = tile;
    if (gen->prog->axes.count > 2)
        in_plane = PURE(gen->ptx, REG_32, "rem.u32", ptx_reg(tile), ptx_reg(plane));
    Reg whole = PURE(gen->ptx, REG_32, "mul.lo.s32", value_operand(extents[1]), ptx_int(grouped));
    Reg group = PURE(gen->ptx, REG_32, "div.u32", ptx_reg(in_plane), ptx_reg(whole));
    Reg inside = PURE(gen->ptx, REG_32, "rem.u32", ptx_reg(in_plane), ptx_reg(whole));
    Reg first = PURE(gen->ptx, REG_32, "mul.lo.s32", ptx_reg(group), ptx_int(grouped));
    Reg left = PURE(gen->ptx, REG_32, "sub.s32", value_operand(extents[0]), ptx_reg(first));
    Reg rows = PURE(gen->ptx, REG_32, "min.s32", ptx_reg(left), ptx_int(grouped));
    Reg row = PURE(gen->ptx, REG_32, "rem.u32", ptx_reg(inside), ptx_reg(rows));
    set_coordinate(gen, loop, 0, PURE(gen->ptx, REG_32, "add.s32", ptx_reg(first), ptx_reg(row)));
    set_coordinate(gen, loop, 1, PURE(gen->ptx, REG_32, "div.u32", ptx_reg(inside), ptx_reg(rows)));
    set_plain_axes(gen, loop, extents, rest, 2);
}

static Value clusters_along(Gen *gen, const Axis *axis) {
    Value extent = eval_scalar(gen, axis->extent);
    if (axis->cluster == 1) return extent;
    if (extent.reg.class == REG_NONE)
        return value_integer(E_I32, (extent.integer + axis->cluster - 1) / axis->cluster);
    Reg up = PURE(gen->ptx, REG_32, "add.s32", ptx_reg(extent.reg), ptx_int(axis->cluster - 1));
    return value_reg(E_I32, PURE(gen->ptx, REG_32, "div.u32", ptx_reg(up), ptx_int(axis->cluster)));
}

Value grid_count(Gen *gen, Value *extents) {
    const Prog *prog = gen->prog;
    Value total = value_integer(E_I32, 1);
    for (size_t a = 0; a < prog->axes.count; a++) {
        extents[a] = clusters_along(gen, &prog->axes.items[a]);
        total = a == 0 ? extents[a]
                       : value_reg(E_I32, PURE(gen->ptx, REG_32, "mul.lo.s32", value_operand(total),
                                               value_operand(extents[a])));
    }
    return total;
}
