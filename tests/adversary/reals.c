/* Arithmetic of f32 as the language defines it: intervals of all results that a compiler may
 * give. A product may be contracted with the sum that it is an operand of. */
#include "tests/adversary/machine.h"

#include <float.h>
#include <math.h>

#define ULP 0x1p-23 /* relative, at most */

Real real_point(double x) { return (Real){x, x, x}; }
static Real any(void) { return (Real){NAN, -INFINITY, INFINITY}; }
bool real_is_nan(Real r) { return isnan(r.lo); }
bool real_is_any(Real r) { return r.lo == -INFINITY && r.hi == INFINITY; }
static bool is_point(Real r) { return r.lo == r.hi; }

/* Through memory: gcc 12 drops both conversions of `(double)(float)x` where it makes vectors. */
static double nearest(double x) {
    volatile float near = (float)x;
    return (double)near;
}

/* To so many bits, or to a multiple of 2^least of a smaller number */
static double rounded(double x, int bits, int least) {
    int exponent, unit;
    if (!isfinite(x) || x == 0) return x;
    frexp(x, &exponent);
    unit = exponent - bits < least ? least : exponent - bits;
    return ldexp(nearbyint(ldexp(x, -unit)), unit);
}

double real_half(double x) {
    double near = rounded(x, 11, -24);
    return fabs(near) > 65504 ? copysign(INFINITY, x) : near;
}

static double saturated(double x) { return fmax(-448, fmin(448, rounded(x, 4, -9))); }
static Real in_e4m3(Real r) { return (Real){saturated(r.x), saturated(r.lo), saturated(r.hi)}; }

Real real_stored(Real r, bool is_half) {
    Real out = {nearest(r.x), nearest(r.lo), nearest(r.hi)};
    if (is_half) out = (Real){real_half(out.x), real_half(out.lo), real_half(out.hi)};
    return out;
}

/* The least and the greatest of the ends; NaN: of points NaN, else anything */
static Real spanned(const double *ends, int count, Real a, Real b, double x) {
    Real out = {x, INFINITY, -INFINITY};
    for (int i = 0; i < count; i++) {
        if (isnan(ends[i])) return is_point(a) && is_point(b) ? real_point(NAN) : any();
        out.lo = fmin(out.lo, ends[i]);
        out.hi = fmax(out.hi, ends[i]);
    }
    return out;
}

/* By so much relative to the ends, and by so much at least */
static Real widened(Real r, double relative, double least) {
    if (real_is_nan(r) || real_is_any(r)) return r;
    double lo = isinf(r.lo) ? r.lo : r.lo - fabs(r.lo) * relative - least;
    double hi = isinf(r.hi) ? r.hi : r.hi + fabs(r.hi) * relative + least;
    return (Real){r.x, nearest(lo), nearest(hi)};
}

static Real add(Real a, Real b) {
    const double ends[] = {a.lo + b.lo, a.hi + b.hi};
    Real out = spanned(ends, 2, a, b, nearest(a.x + b.x));
    if (real_is_nan(out) || real_is_any(out)) return out;
    /* sums of floats far apart are rounded in double first */
    bool exact = out.lo - a.lo == b.lo && out.lo - b.lo == a.lo && is_point(a) && is_point(b);
    if (exact || isinf(out.lo) || isinf(out.hi))
        return (Real){out.x, nearest(out.lo), nearest(out.hi)};
    return (Real){out.x, nearest(nextafter(out.lo, -INFINITY)),
                  nearest(nextafter(out.hi, INFINITY))};
}

static Real negated(Real a) { return (Real){-a.x, -a.hi, -a.lo}; }

static Real product(Real a, Real b) {
    const double ends[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
    return spanned(ends, 4, a, b, nearest(a.x * b.x));
}

/* Rounded, or exact in a sum */
static Real contractible(Real r) {
    if (real_is_nan(r) || real_is_any(r)) return r;
    return (Real){r.x, fmin(r.lo, nearest(r.lo)), fmax(r.hi, nearest(r.hi))};
}

static Real quotient(Real a, Real b) {
    if (is_point(b) && b.lo == 0) return is_point(a) ? real_point(a.lo / b.lo) : any();
    if (b.lo <= 0 && b.hi >= 0) return any();
    const double ends[] = {a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi};
    return spanned(ends, 4, a, b, nearest(a.x / b.x));
}

static Real reciprocal(Real a) {
    bool normal = (a.lo >= 0x1p-126 && a.hi <= 0x1p126) || (a.hi <= -0x1p-126 && a.lo >= -0x1p126);
    if (is_point(a) && a.lo == 0) return real_point(1 / a.lo);
    return normal ? widened(quotient(real_point(1), a), ULP, 0) : any();
}

static Real exponential(Real a) {
    Real out = {nearest(exp(a.x)), exp(a.lo), exp(a.hi)};
    if (isnan(a.lo) || real_is_any(a)) return a;
    double most = fmax(fabs(a.lo), fabs(a.hi));
    out = widened(out, (4 + 1.2 * fmin(most, 200)) * ULP, 0);
    if (out.lo < 0x1p-126) out.lo = 0;
    return out;
}

static Real root(Real a) {
    if (is_point(a) && a.lo < 0) return real_point(NAN);
    if (a.lo < 0) return any();
    Real out = widened((Real){nearest(sqrt(a.x)), sqrt(a.lo), sqrt(a.hi)}, 2 * ULP, 0x1p-149);
    if (a.lo < 0x1p-126) out.lo = 0;
    return out;
}

static Real extreme(Op op, Real a, Real b) {
    bool least = op == DO_MIN;
    if (real_is_nan(a)) return b;
    if (real_is_nan(b)) return a;
    if (real_is_any(a) || real_is_any(b)) return any();
    return least ? (Real){fmin(a.x, b.x), fmin(a.lo, b.lo), fmin(a.hi, b.hi)}
                 : (Real){fmax(a.x, b.x), fmax(a.lo, b.lo), fmax(a.hi, b.hi)};
}

/* Of a point; otherwise it is not followed. */
static Real about(Real a, Real b, double value) {
    if (!is_point(a) || !is_point(b)) return any();
    return isnan(value) ? real_point(NAN)
                        : widened((Real){nearest(value), value, value}, 2 * ULP, 0x1p-148);
}

static Real absolute(Real a) {
    if (a.lo >= 0) return a;
    if (a.hi <= 0) return negated(a);
    return (Real){fabs(a.x), 0, fmax(-a.lo, a.hi)};
}

static bool is_sum(Op op) { return op == DO_ADD || op == DO_SUB || op == DO_FMA; }

Real real_operate(Op op, Real a, Real b, Real c) {
    if (!is_sum(op)) a = real_stored(a, false), b = real_stored(b, false);
    bool extremes = op == DO_MIN || op == DO_MAX, two = op != DO_NEGATE && op != DO_ABS;
    if (!extremes && (real_is_nan(a) || (two && real_is_nan(b)))) return real_point(NAN);
    if (!extremes && (real_is_any(a) || real_is_any(b))) return any();
    switch (op) {
    case DO_ADD: return add(a, b);
    case DO_SUB: return add(a, negated(b));
    case DO_MUL: return contractible(product(a, b));
    case DO_EXACT_MUL: return real_stored(product(a, b), false);
    case DO_DIV: return widened(quotient(a, b), 2 * ULP, 0x1p-148);
    case DO_EXACT_DIV: return real_stored(quotient(a, b), false);
    case DO_FMA:
        if (real_is_nan(c) || real_is_any(c)) return c;
        a = real_stored(a, false), b = real_stored(b, false), c = real_stored(c, false);
        a = product(a, b);
        if (real_is_nan(a) || real_is_any(a)) return a;
        b = add(a, c);
        b.x = nearest(fma(1, c.x, a.lo)); /* a.lo: exact, of points */
        return b;
    case DO_MIN:
    case DO_MAX: return extreme(op, a, b);
    case DO_ABS: return absolute(a);
    case DO_NEGATE: return negated(a);
    case DO_RCP: return reciprocal(a);
    case DO_EXP: return exponential(a);
    case DO_SQRT: return root(a);
    case DO_HALF: return real_stored(a, true);
    case DO_E4M3: return in_e4m3(a);
    case DO_SINE: return about(a, a, sin(a.x));
    case DO_POWER: return about(a, b, pow(a.x, b.x));
    case DO_MOD:
    case DO_CEIL:
    case DO_EQ:
    case DO_NE:
    case DO_LT:
    case DO_LE:
    case DO_GT:
    case DO_GE:
    case DO_AND:
    case DO_OR:
    case DO_UNSIGNED_DIV:
    case DO_UNSIGNED_MOD:
    case DO_UNSIGNED_LT:
    case DO_SCALED:
    case DO_BYTE:
    case DO_BIT_AND:
    case DO_BIT_OR:
    case DO_BIT_XOR:
    case DO_SHIFT_LEFT:
    case DO_SHIFT_RIGHT:
    case DO_UNSIGNED_SHIFT:
    case DO_POPC:
    case DO_CLZ:
    case DO_HIGH_PRODUCT:
    case DO_NOT:
    case DO_TO_REAL:
    case DO_TO_INT:
    case OPS: break;
    }
    return any();
}

static bool holds(Op op, double a, double b) {
    switch ((int)op) {
    case DO_EQ: return a == b;
    case DO_NE: return a != b;
    case DO_LT: return a < b;
    case DO_LE: return a <= b;
    case DO_GT: return a > b;
    default: return a >= b;
    }
}

bool real_compare(Op op, Real a, Real b, bool *sure) {
    a = real_stored(a, false), b = real_stored(b, false);
    bool unknown = real_is_any(a) || real_is_any(b);
    *sure = real_is_nan(a) || real_is_nan(b) || (is_point(a) && is_point(b)) ||
            (!unknown && (a.hi < b.lo || a.lo > b.hi));
    /* at their common end only */
    *sure |= !unknown && (op == DO_LT || op == DO_GE) && a.lo >= b.hi;
    *sure |= !unknown && (op == DO_GT || op == DO_LE) && a.hi <= b.lo;
    if (real_is_nan(a) || real_is_nan(b)) return op == DO_NE;
    return *sure ? holds(op, a.lo, b.hi) : holds(op, a.x, b.x);
}

bool real_has(Real r, double got) {
    if (real_is_nan(r)) return isnan(got);
    r = real_stored(r, false);
    return real_is_any(r) || (got >= r.lo && got <= r.hi);
}

bool real_meets(Real a, Real b) {
    if (real_is_any(a) || real_is_any(b)) return true;
    if (real_is_nan(a) || real_is_nan(b)) return real_is_nan(a) && real_is_nan(b);
    a = real_stored(a, false), b = real_stored(b, false);
    return a.lo <= b.hi && b.lo <= a.hi;
}

Real real_add_terms(Real sum, Real term, double *magnitude) {
    double most = fmax(fabs(term.lo), fabs(term.hi));
    if (isfinite(most)) *magnitude += most;
    if (real_is_nan(sum) || real_is_nan(term)) return real_point(NAN);
    if (real_is_any(sum) || real_is_any(term)) return any();
    const double ends[] = {sum.lo + term.lo, sum.hi + term.hi};
    return spanned(ends, 2, sum, term, nearest(sum.x + term.x));
}

Real real_of_sum(Real sum, double magnitude) {
    double error = magnitude * 128 * 0x1p-24;
    if (real_is_nan(sum) || real_is_any(sum)) return sum;
    if (magnitude + error >= FLT_MAX) return any();
    return widened(sum, 0, error);
}
