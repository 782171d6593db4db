#include "derive/plan/linear.h"

#include <assert.h>

#define CHUNK_BYTES  16
#define SWIZZLE_ROWS 8 /* the pattern repeats after so many rows */

Linear linear_constant(int64_t value) { return (Linear){true, value, 1, 0}; }
Linear linear_register(int64_t multiple, int64_t max) { return (Linear){false, 0, multiple, max}; }

Linear linear_base(const Affine *affine, int64_t extent) {
    return linear_register(affine->multiple, extent - 1);
}

Linear linear_sum(Linear a, Linear b) {
    Linear sum = a.constant ? b : a;
    sum.add = a.add + b.add;
    if (a.constant || b.constant) return sum;
    sum.multiple = common_divisor(a.multiple, b.multiple);
    sum.max = a.max < 0 || b.max < 0 ? -1 : a.max + b.max;
    return sum;
}

Linear linear_scaled(Linear a, int64_t by) {
    if (by == 0) return linear_constant(0);
    if (a.constant) return linear_constant(a.add * by);
    if (by < 0) return (Linear){false, a.add * by, 1, -1};
    return (Linear){false, a.add * by, a.multiple * by, a.max < 0 ? -1 : a.max * by};
}

static int64_t at_most(int64_t max, int64_t by) { return max < 0 ? -1 : max / by; }

/* The constant stays out of the register if the register is certainly not negative and no carry
 * from the constant into the quotient is possible: the register is a multiple of `by`, or too
 * small, or a multiple of something that the remainder of the constant cannot complete. */
Split linear_split(Linear a, int64_t by) {
    if (a.constant)
        return (Split){.quotient = linear_constant(a.add / by),
                       .rest = linear_constant(a.add % by)};
    if (by == 1) return (Split){.quotient = a, .rest = linear_constant(0)};
    int64_t over = a.add == 0 || (a.add > 0 && a.max >= 0) ? a.add % by : -1;
    if (over >= 0 && a.multiple % by == 0)
        return (Split){.quotient = {false, a.add / by, a.multiple / by, at_most(a.max, by)},
                       .rest = linear_constant(over)};
    if (over >= 0 && a.max >= 0 && a.max + over < by)
        return (Split){.quotient = linear_constant(a.add / by),
                       .rest = {false, over, a.multiple, a.max},
                       .within = true};
    if (over >= 0 && by % a.multiple == 0 && over < a.multiple)
        return (Split){.quotient = {false, a.add / by, 1, at_most(a.max, by)},
                       .rest = {false, over, a.multiple, by - a.multiple}};
    int64_t max = a.max < 0 || a.add < 0 ? -1 : (a.max + a.add) / by;
    return (Split){
        .quotient = linear_register(1, max), .rest = linear_register(1, by - 1), .joined = true};
}

/* True if a column's register and the constant part of its chunk have no common bits and no
 * carry: then their sum equals their XOR. */
static bool chunk_separate(Linear column, int64_t chunk) {
    int64_t reach = 1;
    if (column.max < 0 || column.multiple % CHUNK_BYTES != 0) return false;
    while (reach <= column.max) reach *= 2;
    return chunk % reach == 0;
}

/* True if the column's register may reach beyond the chunk of its constant */
static bool is_loose(Linear column, int64_t within) {
    return !column.constant && (column.max < 0 || column.max + within >= CHUNK_BYTES);
}

Swizzled linear_swizzle(int swizzle, Linear row, Linear column) {
    assert(swizzle > 0);
    int64_t chunk = column.add & ~INT64_C(15), within = column.add & 15;
    bool loose = is_loose(column, within);
    if (row.add % SWIZZLE_ROWS == 0) row.add = 0;
    Swizzled out = {.form = SWIZZLED_WHOLE,
                    .row = row,
                    .shift = 3 - swizzle,
                    .mask = (1 << swizzle) - 1,
                    .chunk = chunk,
                    .within = within,
                    .column = column};
    out.bits = (row.add >> out.shift & out.mask) * CHUNK_BYTES;
    if (row.constant && !loose) {
        out.form = SWIZZLED_CONSTANT;
        out.column.add = (chunk ^ out.bits) + within;
    } else if (!row.constant && !loose) {
        out.form = SWIZZLED_CHUNK;
        out.column.add = within;
    } else if (!row.constant && chunk_separate(column, chunk)) {
        out.form = SWIZZLED_APART;
    }
    return out;
}
