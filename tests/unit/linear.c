/* Coordinates of a constant plus a register: what linear.h says of sums, products, quotients,
 * remainders and swizzled columns holds for each value of the register. */
#include "derive/plan/linear.h"
#include "tests/unit/expect.h"

#define REACH 96 /* registers up to it are tried */

static const int64_t multiples[] = {1, 2, 3, 4, 6, 8, 12, 16, 32};

static bool admits(Linear is, int64_t reg) {
    return reg % is.multiple == 0 && (is.max < 0 || (reg >= 0 && reg <= is.max));
}

/* Visits coordinates: constants, and registers with each multiple and some maxima. */
static void each_linear(void (*visit)(Linear is)) {
    for (int64_t add = -8; add < 40; add++) {
        visit(linear_constant(add));
        for (size_t m = 0; m < COUNT_OF(multiples); m++)
            for (int64_t times = -1; times < 5; times++) {
                Linear is = linear_register(multiples[m], times < 0 ? -1 : times * multiples[m]);
                is.add = add;
                visit(is);
            }
    }
}

/* ---- quotients ------------------------------------------------------------------------------- */

static bool splits(Linear is, const Split *split, int64_t by, int64_t reg) {
    int64_t value = is.constant ? is.add : reg + is.add, base = split->joined ? value : reg;
    int64_t quotient = split->quotient.constant ? 0 : base / by;
    int64_t rest = split->rest.constant ? 0 : split->within ? base : base % by;
    return quotient + split->quotient.add == value / by && rest + split->rest.add == value % by &&
           (split->quotient.constant || admits(split->quotient, quotient)) &&
           (split->rest.constant || admits(split->rest, rest));
}

static int wrong_splits;

static void try_splits(Linear is) {
    static const int64_t divisors[] = {1, 2, 3, 4, 8, 12, 16, 24, 64};
    for (size_t d = 0; d < COUNT_OF(divisors); d++) {
        Split split = linear_split(is, divisors[d]);
        for (int64_t reg = 0; reg < REACH; reg++)
            if ((is.constant || admits(is, reg)) && is.add + (is.constant ? 0 : reg) >= 0)
                wrong_splits += !splits(is, &split, divisors[d], reg);
    }
}

/* ---- swizzles -------------------------------------------------------------------------------- */

/* As codegen emits it */
static int64_t emitted(const Swizzled *swizzled, int64_t row, int64_t column, int64_t full_column) {
    int64_t taken = swizzled->row.constant ? swizzled->row.add : row + swizzled->row.add;
    int64_t bits = (taken >> swizzled->shift & swizzled->mask) * 16;
    int64_t rest = swizzled->column.add + (swizzled->column.constant ? 0 : column);
    switch (swizzled->form) {
    case SWIZZLED_CONSTANT: return rest;
    case SWIZZLED_WHOLE: return full_column ^ bits;
    case SWIZZLED_APART: return ((column ^ bits) ^ swizzled->chunk) + swizzled->within;
    case SWIZZLED_CHUNK: return (bits ^ swizzled->chunk) + rest;
    }
    return -1;
}

static int wrong_swizzles;
static Linear column_of_rows;
static int swizzle_of_rows;

static void try_row(Linear row) {
    int64_t span = 16 << swizzle_of_rows;
    Linear column = column_of_rows;
    Swizzled swizzled = linear_swizzle(swizzle_of_rows, row, column);
    for (int64_t r = 0; r < 24; r++)
        for (int64_t c = 0; c < span; c++) {
            int64_t at = row.add + (row.constant ? 0 : r),
                    byte = column.add + (column.constant ? 0 : c);
            if ((!row.constant && !admits(row, r)) || (!column.constant && !admits(column, c)) ||
                at < 0 || byte >= span)
                continue;
            int64_t bits = at >> (3 - swizzle_of_rows) & ((1 << swizzle_of_rows) - 1);
            wrong_swizzles += emitted(&swizzled, r, c, byte) != (byte ^ bits * 16);
        }
}

static void try_rows(Linear column) {
    if (column.add < 0 || column.add % 4 != 0) return;
    column_of_rows = column;
    for (int64_t add = 0; add < 18; add += 3) {
        try_row(linear_constant(add));
        Linear row = linear_register(1, -1);
        row.add = add / 3 * 4;
        try_row(row);
    }
}

/* ---- sums and products ----------------------------------------------------------------------- */

static int wrong_sums;

static void try_sums(Linear is) {
    static const int64_t factors[] = {-3, 0, 1, 2, 12};
    Linear other = linear_register(6, 18);
    other.add = 5;
    Linear sum = linear_sum(is, other);
    for (int64_t reg = 0; reg < REACH; reg++) {
        if (is.constant ? reg > 0 : !admits(is, reg)) continue;
        for (int64_t b = 0; b <= 18; b += 6)
            wrong_sums += sum.add != is.add + 5 || !admits(sum, (is.constant ? 0 : reg) + b);
        for (size_t f = 0; f < COUNT_OF(factors); f++) {
            Linear product = linear_scaled(is, factors[f]);
            int64_t scaled = product.constant ? 0 : reg * factors[f],
                    value = (is.constant ? is.add : reg + is.add) * factors[f];
            wrong_sums +=
                scaled + product.add != value || (!product.constant && !admits(product, scaled));
        }
    }
}

int main(void) {
    each_linear(try_splits);
    EXPECT(wrong_splits == 0);
    each_linear(try_sums);
    EXPECT(wrong_sums == 0);
    for (swizzle_of_rows = 1; swizzle_of_rows <= 3; swizzle_of_rows++) each_linear(try_rows);
    EXPECT(wrong_swizzles == 0);
    return expect_failures();
}
