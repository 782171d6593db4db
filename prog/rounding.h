/* rounding: the instructions by which a kernel computes a float sum, difference or quotient. The
 * choice changes the rounding of the result, so it is made here, once: codegen emits what is
 * chosen, and rules take two values for the same only if the same instructions compute them from
 * the same operands. */
#ifndef PIPEC_ROUNDING_H
#define PIPEC_ROUNDING_H

#include "prog/prog.h"

typedef enum RoundingForm {
    ROUNDING_OWN,     /* one instruction for the operation alone, with its operands a and b */
    ROUNDING_FUSED,   /* a * b + c, or a * b - c, rounded once */
    ROUNDING_INVERSE, /* a divided by a constant: a * inverse */
    ROUNDING_SCALED   /* a divided by b, the same for several elements: (a * s) * (1 / (b * s)) */
} RoundingForm;

typedef struct Rounding {
    RoundingForm form;
    Expr *a, *b, *c;
    double inverse; /* of INVERSE; a normal number of f32 */
} Rounding;

/* `expr` is a sum, difference, product or quotient of floats in `role`. */
Rounding rounding_of(const Role *role, const Expr *expr);

/* Does `sum[k] a * b` of floats add its products by fma? Then *a and *b are the factors. */
bool rounding_adds_products(const Expr *expr, Expr **a, Expr **b);

/* A float that is known without running: also through `let`s */
bool rounding_known(const Role *role, const Expr *expr, double *out);

/* By which s of SCALED multiplies: beyond these limits the reciprocal of an f32 is infinite, or
 * subnormal and therefore not exact enough. In between s is 1. */
#define ROUNDING_LARGE       0x1p125 /* above: s = ROUNDING_LARGE_SCALE */
#define ROUNDING_LARGE_SCALE 0x1p-2
#define ROUNDING_SMALL       0x1p-126 /* below: s = ROUNDING_SMALL_SCALE */
#define ROUNDING_SMALL_SCALE 0x1p24

#endif
