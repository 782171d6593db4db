/* bounds: intervals of f32 values. Takes and returns intervals whose ends are f32 values; each
 * result contains all values that the operation can give, rounded as the kernel rounds. */
#include "prog/bounds.h"

#include <math.h>

FloatRange float_range_all(void) { return (FloatRange){-HUGE_VAL, HUGE_VAL}; }

bool float_range_has(FloatRange range, double value) {
    return range.lo <= value && value <= range.hi;
}

bool float_range_empty(FloatRange range) { return range.lo > range.hi; }

bool float_range_finite(FloatRange range) { return range.lo > -HUGE_VAL && range.hi < HUGE_VAL; }

FloatRange float_range_and(FloatRange a, FloatRange b) {
    return (FloatRange){a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
}

FloatRange float_range_below(double limit, bool equal) {
    FloatRange none = {HUGE_VAL, -HUGE_VAL};
    if (!equal && limit == -HUGE_VAL) return none;
    return (FloatRange){-HUGE_VAL, equal ? limit : (double)nextafterf((float)limit, -HUGE_VALF)};
}

FloatRange float_range_negated(FloatRange a) { return (FloatRange){-a.hi, -a.lo}; }

FloatRange float_range_above(double limit, bool equal) {
    return float_range_negated(float_range_below(-limit, equal));
}

/* Exact in double before it is rounded: 48 bits, and exponents down to -298 */
static double product(double a, double b) { return (double)(float)(a * b); }

bool float_range_product(FloatRange a, FloatRange b, FloatRange *out) {
    bool infinite_a = !float_range_finite(a), infinite_b = !float_range_finite(b);
    if (float_range_empty(a) || float_range_empty(b)) return false;
    if ((float_range_has(a, 0) && infinite_b) || (float_range_has(b, 0) && infinite_a))
        return false;
    /* Rounding keeps the order, so the extremes are at the corners */
    double corners[] = {product(a.lo, b.lo), product(a.lo, b.hi), product(a.hi, b.lo),
                        product(a.hi, b.hi)};
    *out = (FloatRange){corners[0], corners[0]};
    for (int i = 1; i < 4; i++) {
        if (corners[i] < out->lo) out->lo = corners[i];
        if (corners[i] > out->hi) out->hi = corners[i];
    }
    return true;
}
