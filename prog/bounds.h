/* bounds: intervals of f32 values, for what is known of them before a launch. The bounds are f32
 * values held as doubles; infinities belong to the interval like other values. */
#ifndef PIPEC_BOUNDS_H
#define PIPEC_BOUNDS_H

#include <stdbool.h>

typedef struct FloatRange {
    double lo, hi; /* both inclusive; lo > hi: no value */
} FloatRange;

FloatRange float_range_all(void); /* every value except NaN */
bool float_range_has(FloatRange range, double value);
bool float_range_empty(FloatRange range);
bool float_range_finite(FloatRange range);
FloatRange float_range_and(FloatRange a, FloatRange b);
/* The values that are less, or greater, than a constant; with `equal` also the constant itself */
FloatRange float_range_below(double limit, bool equal);
FloatRange float_range_above(double limit, bool equal);

/* The results of one operation that is rounded to the nearest f32, subnormal numbers included
 * (mul.rn.f32). False: it may be NaN, as 0 * inf. */
bool float_range_product(FloatRange a, FloatRange b, FloatRange *out);
FloatRange float_range_negated(FloatRange a);

#endif
