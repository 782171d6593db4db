/* Coordinates to addresses. The only place that uses the layout of tiles in shared memory and of
 * tensors in global memory. */
#include "codegen/gen.h"

/* ---- coordinates ----------------------------------------------------------------------------- */

Lin lin_const(int64_t value) { return (Lin){PTX_NONE, linear_constant(value)}; }
Lin lin_reg(Reg reg, int64_t multiple, int64_t max) {
    return (Lin){reg, linear_register(multiple, max)};
}

Lin lin_of(Value value) {
    return value.reg.class == REG_NONE ? lin_const(value.integer) : lin_reg(value.reg, 1, -1);
}

Lin lin_add(Gen *gen, Lin a, Lin b) {
    Reg reg = a.reg;
    if (a.is.constant)
        reg = b.reg;
    else if (!b.is.constant)
        reg = PURE(gen->ptx, REG_32, "add.s32", ptx_reg(a.reg), ptx_reg(b.reg));
    return (Lin){reg, linear_sum(a.is, b.is)};
}

static bool power_of_two(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

static int64_t log2_of(int64_t value) {
    int64_t bits = 0;
    while (value > 1) {
        value >>= 1;
        bits++;
    }
    return bits;
}

Lin lin_scale(Gen *gen, Lin a, int64_t by) {
    Linear product = linear_scaled(a.is, by);
    if (product.constant) return (Lin){PTX_NONE, product};
    if (by == 1) return a;
    Reg reg = power_of_two(by)
                  ? PURE(gen->ptx, REG_32, "shl.b32", ptx_reg(a.reg), ptx_int(log2_of(by)))
                  : PURE(gen->ptx, REG_32, "mul.lo.s32", ptx_reg(a.reg), ptx_int(by));
    return (Lin){reg, product};
}

static Reg divide_reg(Gen *gen, Reg reg, int64_t by) {
    if (by == 1) return reg;
    return power_of_two(by) ? PURE(gen->ptx, REG_32, "shr.u32", ptx_reg(reg), ptx_int(log2_of(by)))
                            : PURE(gen->ptx, REG_32, "div.u32", ptx_reg(reg), ptx_int(by));
}

static Reg rest_reg(Gen *gen, Reg reg, int64_t by) {
    return power_of_two(by) ? PURE(gen->ptx, REG_32, "and.b32", ptx_reg(reg), ptx_int(by - 1))
                            : PURE(gen->ptx, REG_32, "rem.u32", ptx_reg(reg), ptx_int(by));
}

void lin_divide(Gen *gen, Lin a, int64_t by, Lin *quotient, Lin *rest) {
    Split split = linear_split(a.is, by);
    Reg reg = split.joined ? lin_in_reg(gen, a) : a.reg;
    *quotient = (Lin){PTX_NONE, split.quotient};
    *rest = (Lin){PTX_NONE, split.rest};
    if (!split.quotient.constant) quotient->reg = divide_reg(gen, reg, by);
    if (!split.rest.constant) rest->reg = split.within ? reg : rest_reg(gen, reg, by);
}

Reg lin_in_reg(Gen *gen, Lin a) {
    if (a.is.constant) return PURE(gen->ptx, REG_32, "mov.b32", ptx_int(a.is.add));
    if (a.is.add == 0) return a.reg;
    return PURE(gen->ptx, REG_32, "add.s32", ptx_reg(a.reg), ptx_int(a.is.add));
}

static const Field *access_field(const Gen *gen, const Access *access) {
    const Handle *handle = &gen->role->role->handles.items[access->object];
    return &gen->prog->pipes.items[handle->pipe].fields.items[access->field];
}

TileShape access_shape(const Gen *gen, const Access *access) {
    if (access->space == SPACE_STAGE) {
        const Field *field = access_field(gen, access);
        const Handle *handle = &gen->role->role->handles.items[access->object];
        const FieldPlan *plan = &gen->plan->pipes[handle->pipe].fields[access->field];
        return (TileShape){field->type, field->rank, field->extents, plan->layout};
    }
    const RoleTile *tile = &gen->role->role->tiles.items[access->object];
    const TilePlan *plan = &gen->role->plan->tiles[access->object];
    return (TileShape){tile->type, tile->rank, tile->extents, plan->layout};
}

Lin access_coordinate(Gen *gen, Point *point, const Access *access, int axis) {
    const Affine *affine = &access->affine[axis];
    if (!affine->is) return lin_of(eval(gen, point, access->subs[axis]));
    Lin sum = lin_of(eval(gen, point, affine->base));
    bool shared = access->space == SPACE_STAGE || access->space == SPACE_SHARED;
    if (!sum.is.constant && shared)
        sum.is = linear_base(affine, access_shape(gen, access).extents[axis]);
    for (int i = 0; i < PROG_MAX_INDEXES; i++) {
        if (affine->coef[i] == 0) continue;
        sum = lin_add(gen, lin_scale(gen, point->indexes[i], affine->coef[i]), sum);
    }
    return sum;
}

/* ---- shared memory --------------------------------------------------------------------------- */

/* The address of a tile's first byte. */
Lin shared_base(Gen *gen, const Access *access, Point *point) {
    const RoleState *state = gen->role;
    Lin base = lin_reg(gen->shared, 1, -1);
    if (access->space == SPACE_STAGE) {
        const Handle *handle = &state->role->handles.items[access->object];
        const Pipe *pipe = &gen->prog->pipes.items[handle->pipe];
        const PipePlan *plan = &gen->plan->pipes[handle->pipe];
        const FieldPlan *field = &plan->fields[access->field];
        base.is.add += (int64_t)plan->offset + field->offset;
        if (pipe->stages > 1)
            base = lin_add(
                gen, lin_scale(gen, lin_reg(state->handles[access->object], 1, -1), plan->stride),
                base);
        if (access->element != NULL)
            base = lin_add(
                gen, lin_scale(gen, lin_of(eval(gen, point, access->element)), field->bytes), base);
        return base;
    }
    const TilePlan *tile = &state->plan->tiles[access->object];
    base.is.add += tile->offset;
    if (state->rank.class != REG_NONE)
        base = lin_add(gen, lin_scale(gen, lin_reg(state->rank, 1, -1), tile->stride), base);
    return base;
}

/* Rows of a panelled tile: the product of all extents except the last. */
static int64_t tile_rows(const TileShape *shape) {
    int64_t rows = 1;
    for (int axis = 0; axis + 1 < shape->rank; axis++) rows *= shape->extents[axis];
    return rows;
}

/* Row and column of an element: all axes except the last flattened, and the last. */
static void rows_and_column(Gen *gen, Point *point, const Access *access, const TileShape *shape,
                            Lin *row, Lin *column) {
    *row = lin_const(0);
    for (int axis = 0; axis + 1 < shape->rank; axis++)
        *row = lin_add(gen, lin_scale(gen, *row, shape->extents[axis]),
                       access_coordinate(gen, point, access, axis));
    *column = access_coordinate(gen, point, access, shape->rank - 1);
}

/* Offset in bytes from the tile's start, without the panel's part; *column: the column in its
 * panel. */
static Lin panel_offset(Gen *gen, const TileShape *shape, Lin row, Lin *column) {
    int64_t bytes = element_rows[shape->type].bytes, panel = shape->layout.panel;
    Lin offset = lin_scale(gen, row, (panel + shape->layout.padding) * bytes);
    if (panel < shape->extents[shape->rank - 1]) {
        Lin number, rest;
        lin_divide(gen, *column, panel, &number, &rest);
        offset =
            lin_add(gen, offset,
                    lin_scale(gen, number, layout_apart(&shape->layout, tile_rows(shape)) * bytes));
        *column = rest;
    }
    return offset;
}

Lin shared_linear(Gen *gen, Point *point, const Access *access) {
    TileShape shape = access_shape(gen, access);
    Lin row, column;
    rows_and_column(gen, point, access, &shape, &row, &column);
    Lin offset = panel_offset(gen, &shape, row, &column);
    offset = lin_add(gen, offset, lin_scale(gen, column, element_rows[shape.type].bytes));
    return lin_add(gen, offset, shared_base(gen, access, point));
}

/* The bits of the row that the swizzle takes, in their place in the column */
static Operand swizzle_bits(Gen *gen, Reg row, const Swizzled *swizzled) {
    if (swizzled->row.constant) return ptx_int(swizzled->bits);
    Reg bits = lin_in_reg(gen, (Lin){row, swizzled->row});
    bits = PURE(gen->ptx, REG_32, "shr.u32", ptx_reg(bits), ptx_int(swizzled->shift));
    bits = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(bits), ptx_int(swizzled->mask));
    return ptx_reg(PURE(gen->ptx, REG_32, "shl.b32", ptx_reg(bits), ptx_int(4)));
}

static Lin swizzled_column(Gen *gen, const Layout *layout, Lin row, Lin column) {
    Swizzled swizzled = linear_swizzle(layout->swizzle, row.is, column.is);
    Operand bits = swizzle_bits(gen, row.reg, &swizzled);
    Lin rest = {column.reg, swizzled.column};
    Reg reg = PTX_NONE;
    switch (swizzled.form) {
    case SWIZZLED_CONSTANT: return rest;
    case SWIZZLED_WHOLE:
        reg = PURE(gen->ptx, REG_32, "xor.b32", ptx_reg(lin_in_reg(gen, column)), bits);
        return lin_reg(reg, 1, -1);
    case SWIZZLED_APART:
        reg = PURE(gen->ptx, REG_32, "xor.b32", ptx_reg(column.reg), bits);
        if (swizzled.chunk != 0)
            reg = PURE(gen->ptx, REG_32, "xor.b32", ptx_reg(reg), ptx_int(swizzled.chunk));
        return lin_add(gen, lin_reg(reg, 1, -1), lin_const(swizzled.within));
    case SWIZZLED_CHUNK:
        reg = PURE(gen->ptx, REG_32, "xor.b32", bits, ptx_int(swizzled.chunk));
        return lin_add(gen, lin_reg(reg, 1, -1), rest);
    }
    return rest;
}

Operand shared_address(Gen *gen, Point *point, const Access *access) {
    TileShape shape = access_shape(gen, access);
    Lin address;
    if (shape.layout.swizzle == SWIZZLE_NONE) {
        address = shared_linear(gen, point, access);
    } else {
        Lin row, column;
        rows_and_column(gen, point, access, &shape, &row, &column);
        Lin offset = panel_offset(gen, &shape, row, &column);
        column = swizzled_column(gen, &shape.layout, row,
                                 lin_scale(gen, column, element_rows[shape.type].bytes));
        offset = lin_add(gen, column, lin_add(gen, offset, shared_base(gen, access, point)));
        address = offset;
    }
    return ptx_at(address.reg, address.is.add);
}

/* ---- global memory --------------------------------------------------------------------------- */

/* One difference serves all constants that are added to a register. Between multiples of what
 * divides both the register and the limit, the first coordinate stands for all. */
Reg lin_below(Gen *gen, Lin a, const Expr *limit, bool *known) {
    int64_t least = plan_at_least(gen->plan, limit);
    *known = false;
    if (a.is.add > 0)
        a.is.add -= a.is.add % common_divisor(a.is.multiple, plan_divisor(gen->plan, limit));
    if (a.is.add < 0 || a.is.max < 0 || a.is.max + a.is.add > INT32_MAX || least < 0)
        return PTX_NONE;
    *known = a.is.max + a.is.add < least;
    if (*known) return PTX_NONE;
    Operand end = value_operand(eval_scalar(gen, limit));
    if (a.is.constant || a.is.add == 0)
        return PURE(gen->ptx, REG_PRED, "setp.lt.u32", ptx_reg(lin_in_reg(gen, a)), end);
    Reg left = PURE(gen->ptx, REG_32, "sub.s32", end, ptx_reg(a.reg));
    return PURE(gen->ptx, REG_PRED, "setp.gt.s32", ptx_reg(left), ptx_int(a.is.add));
}

/* Otherwise 0 <= coordinate < extent is one unsigned comparison; both are 32-bit, extents below
 * 2^31. */
static Reg inside_axis(Gen *gen, Reg inside, Lin coordinate, const Expr *extent) {
    bool known;
    Reg one = lin_below(gen, coordinate, extent, &known);
    if (known) return inside;
    if (one.class == REG_NONE)
        one = PURE(gen->ptx, REG_PRED, "setp.lt.u32", ptx_reg(lin_in_reg(gen, coordinate)),
                   value_operand(eval_scalar(gen, extent)));
    return ptx_both(gen->ptx, inside, one);
}

Reg global_inside(Gen *gen, Point *point, const Access *access) {
    const Param *param = &gen->prog->params.items[access->object];
    Reg inside = PTX_NONE;
    for (int axis = 0; axis < access->rank; axis++)
        inside = inside_axis(gen, inside, access_coordinate(gen, point, access, axis),
                             param->extents[axis]);
    return inside;
}

/* An offset that an instruction's address can have: 32 bits, signed, with margin for additions. */
static bool fits_address(int64_t offset) {
    return offset >= -(INT64_C(1) << 24) && offset <= INT64_C(1) << 24;
}

/* sum + coordinate * stride, in 64 bits; REG_NONE is 0 */
static Reg along_axis(Gen *gen, Reg sum, Lin coordinate, Reg stride) {
    if (coordinate.is.constant && coordinate.is.add == 0) return sum;
    Reg wide = PURE(gen->ptx, REG_64, "cvt.s64.s32", ptx_reg(lin_in_reg(gen, coordinate)));
    if (stride.class == REG_NONE) return wide;
    if (stride.class == REG_32) stride = PURE(gen->ptx, REG_64, "cvt.u64.u32", ptx_reg(stride));
    if (sum.class == REG_NONE)
        return PURE(gen->ptx, REG_64, "mul.lo.s64", ptx_reg(wide), ptx_reg(stride));
    return PURE(gen->ptx, REG_64, "mad.lo.s64", ptx_reg(wide), ptx_reg(stride), ptx_reg(sum));
}

/* The constant part of the last coordinate stays in the address if it fits; those of the others
 * are added to the address of the registers, which elements of several rows share. */
Operand global_address(Gen *gen, Point *point, const Access *access) {
    int64_t bytes = element_rows[access->type].bytes, offset = 0, steps[PROG_MAX_RANK] = {0};
    const Reg *strides = &gen->strides[access->object * PROG_MAX_RANK];
    Reg address = gen->pointers[access->object], sum = PTX_NONE;
    for (int axis = access->rank - 1; axis >= 0; axis--) {
        Lin coordinate = access_coordinate(gen, point, access, axis);
        bool last = axis + 1 == access->rank;
        int64_t step = coordinate.is.add * bytes;
        if (last ? fits_address(step)
                 : step > 0 && fits_address(step) && strides[axis].class == REG_32) {
            if (last) offset = step;
            if (!last) steps[axis] = step;
            coordinate.is.add = 0;
        }
        sum = along_axis(gen, sum, coordinate, strides[axis]);
    }
    if (sum.class != REG_NONE)
        address =
            PURE(gen->ptx, REG_64, "mad.lo.s64", ptx_reg(sum), ptx_int(bytes), ptx_reg(address));
    for (int axis = 0; axis + 1 < access->rank; axis++)
        if (steps[axis] != 0)
            address = PURE(gen->ptx, REG_64, "mad.wide.u32", ptx_reg(strides[axis]),
                           ptx_int(steps[axis]), ptx_reg(address));
    return ptx_at(address, offset);
}
