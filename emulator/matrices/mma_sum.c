/* Sums of the products of mma.sync, as an H200 computes them: found by comparing random matrices of
 * each type bit for bit.
 *
 * In: a row of A and the columns of B, whose products are exact in f64. Out: the sums of the row,
 * rounded as on the hardware. */
#include "emulator/machine.h"
#include "emulator/matrices/mma.h"

#include <math.h>

/* Bits of a term after the binary point, below the largest exponent; the exponent of zero */
enum { KEPT_BITS = 25, NO_EXPONENT = -100000 };

int32_t mma_exponent(double value, int32_t least) {
    if (value == 0 || !isfinite(value)) return NO_EXPONENT;
    int32_t exponent = ilogb(value);
    return exponent < least ? least : exponent;
}

static double power_of_two(int32_t exponent) {
    uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The nearest f32 that is not larger; infinity beyond the largest one */
static double toward_zero(double value) {
    float near = (float)value;
    bool larger = isfinite(near) && fabs((double)near) > fabs(value);
    return fabs(value) >= 0x1p128 ? copysign(INFINITY, value)
           : isinf(near)          ? copysign((double)0x1.fffffep127f, value)
                                  : (double)(larger ? nextafterf(near, 0) : near);
}

static double round_half(double value) {
    return value != value ? value : (double)half_to_float(half_from_double(value));
}

/* The columns first .. end - 1 of add_step, whose numbers are finite. The terms are cut, toward
 * zero, to multiples of 2^-25 of the largest exponent among them, where the exponent of a product
 * is the sum of those of its factors. Their exact sum is rounded once: toward zero to f32, to
 * nearest to f16. */
static inline void add_columns(const MmaRow *row, const uint8_t *ks, uint32_t count, double *sums,
                               uint32_t first, uint32_t end) {
    int32_t most[MMA_COLUMNS];
    double scale[MMA_COLUMNS], total[MMA_COLUMNS];
    for (uint32_t i = first; i < end; i++)
        most[i] = mma_exponent(sums[i], row->to_half ? -14 : -126);
    for (uint32_t n = 0; n < count; n++) {
        const int32_t *b = row->b_exponent + ks[n] * MMA_COLUMNS, a = row->a_exponent[ks[n]];
        for (uint32_t i = first; i < end; i++) most[i] = a + b[i] > most[i] ? a + b[i] : most[i];
    }
    for (uint32_t i = first; i < end; i++) {
        scale[i] = most[i] < NO_EXPONENT / 2 ? 1 : power_of_two(KEPT_BITS - most[i]);
        total[i] = (double)(int32_t)(sums[i] * scale[i]);
    }
    for (uint32_t n = 0; n < count; n++) {
        const float *b = row->b + ks[n] * MMA_COLUMNS;
        double a = (double)row->a[ks[n]];
        for (uint32_t i = first; i < end; i++)
            total[i] += (double)(int32_t)(a * (double)b[i] * scale[i]);
    }
    for (uint32_t i = first; i < end; i++) {
        double sum = total[i] / scale[i];
        sums[i] = row->to_half ? round_half(sum) : toward_zero(sum);
    }
}

/* One step of the hardware: adds the products over the numbers `ks` along K. */
static void add_step(const MmaRow *row, const uint8_t *ks, uint32_t count, double *sums) {
    bool special = row->has_special;
    for (uint32_t i = 0; i < MMA_COLUMNS; i++) special |= !isfinite(sums[i]);
    if (!special) {
        add_columns(row, ks, count, sums, 0, MMA_COLUMNS);
        return;
    }
    for (uint32_t i = 0; i < MMA_COLUMNS; i++) {
        double plain = sums[i];
        for (uint32_t n = 0; n < count; n++)
            plain += (double)row->a[ks[n]] * (double)row->b[ks[n] * MMA_COLUMNS + i];
        if (isfinite(plain))
            add_columns(row, ks, count, sums, i, i + 1);
        else
            sums[i] = plain;
    }
}

void mma_add_fused(const MmaRow *row, double *sums) {
    uint8_t ks[MMA_MOST_DEPTH];
    for (uint32_t k = 0; k < row->depth; k++) ks[k] = (uint8_t)k;
    add_step(row, ks, row->depth, sums);
}

static void add_inner(const MmaRow *row, const double *inner, double *sums) {
    for (uint32_t i = 0; i < MMA_COLUMNS; i++) {
        double sum = sums[i] + inner[i];
        sums[i] = row->to_half ? round_half(sum) : (double)(float)sum;
    }
}

/* Two steps, over the first and the second pair of each four numbers along K. They begin at 0; C is
 * added to their result, rounded to nearest. */
void mma_add_pairs(const MmaRow *row, double *sums) {
    double inner[MMA_COLUMNS] = {0};
    for (uint32_t pair = 0; pair < 2; pair++) {
        uint8_t ks[MMA_MOST_DEPTH];
        uint32_t count = 0;
        for (uint32_t k = 0; k < row->depth; k++)
            if (k / 2 % 2 == pair) ks[count++] = (uint8_t)k;
        add_step(row, ks, count, inner);
    }
    add_inner(row, inner, sums);
}

/* A chain of f32 sums in the order of k, each rounded to nearest; C is added last. */
void mma_add_chain(const MmaRow *row, double *sums) {
    for (uint32_t i = 0; i < MMA_COLUMNS; i++) {
        float inner = 0;
        for (uint32_t k = 0; k < row->depth; k++)
            inner = fmaf(row->a[k], row->b[k * MMA_COLUMNS + i], inner);
        float sum = (float)sums[i] + inner;
        sums[i] = row->to_half ? round_half((double)sum) : (double)sum;
    }
}
