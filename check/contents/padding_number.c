/* Intervals of numbers, and operations on them, as a kernel computes them: the result of f32 is
 * rounded, and infinite beyond the greatest number; integers that leave their type wrap. */
#include "check/padding/padding.h"
#include "prog/bits.h"
#include "prog/number.h"

#include <float.h>
#include <math.h>

/* Elements are taken to be at most this, and arithmetic on them too, so products of two numbers
 * of padding that are elements of the tensors do not overflow either. */
#define ELEMENT_MOST 0x1p63
#define F32_LEAST    0x1p-149 /* the least positive number */

const Value pad_none = {.lo = INFINITY, .hi = -INFINITY};

static bool is_float(Element type) { return element_rows[type].kind == ELEMENT_FLOAT; }

static Value settled(Value value) {
    value.nonzero |= value.lo > 0 || value.hi < 0;
    value.two &= value.lo < value.hi;
    return value;
}

static Value between(double lo, double hi) { return settled((Value){.lo = lo, .hi = hi}); }

Value pad_number(double number) {
    if (isnan(number)) return pad_any();
    return between(number, number);
}

Value pad_any(void) { return (Value){.lo = -INFINITY, .hi = INFINITY, .nan = true}; }

static Value truths(double lo, double hi) {
    return settled((Value){.lo = lo, .hi = hi, .two = true});
}

Value pad_bool(void) { return truths(0, 1); }

/* The least and the greatest number of an integer type, widened to double */
static void integer_limits(Element type, double *lo, double *hi) {
    int bits = 8 * (int)element_rows[type].bytes;
    bool is_signed = element_rows[type].kind == ELEMENT_SIGNED;
    *hi = is_signed ? ldexp(1, bits - 1) - 1 : ldexp(1, bits) - 1;
    *lo = is_signed ? -ldexp(1, bits - 1) : 0;
}

static double most_of(Element type) {
    return type == E_F16 ? 65504 : type == E_E4M3 ? 448 : type == E_E5M2 ? 57344 : ELEMENT_MOST;
}

Value pad_of_type(Element type) {
    if (type == E_BOOL) return pad_bool();
    if (is_float(type)) return between(-most_of(type), most_of(type));
    Value value = {0};
    integer_limits(type, &value.lo, &value.hi);
    return settled(value);
}

static bool is_number(Value value) { return value.lo == value.hi && !value.nan; }

/* The numbers that it may be, if they are at most two; otherwise 0 */
static int numbers_of(Value value, double numbers[2]) {
    if (value.nan || (value.lo != value.hi && !value.two)) return 0;
    numbers[0] = value.lo, numbers[1] = value.hi;
    return value.lo == value.hi ? 1 : 2;
}

/* One of these numbers: the least and the greatest one, or also those between them */
static Value one_of(const double *numbers, int count) {
    Value out = between(INFINITY, -INFINITY);
    for (int i = 0; i < count; i++)
        out.lo = fmin(out.lo, numbers[i]), out.hi = fmax(out.hi, numbers[i]);
    out.two = out.lo < out.hi, out.nonzero = true;
    for (int i = 0; i < count; i++) {
        out.two &= numbers[i] == out.lo || numbers[i] == out.hi;
        out.nonzero &= numbers[i] != 0;
    }
    return out;
}

/* ---- joins ----------------------------------------------------------------------------------- */

bool pad_is_stated(const Value *value) {
    bool own = value->marks & MARK_OWN && !(value->marks & MARK_MIXED) && !pad_is(*value, 0);
    return value->marks & MARK_STATED && !own;
}

Value pad_join(Value a, Value b) {
    if (!pad_exists(a)) return b;
    if (!pad_exists(b)) return a;
    Value out = {.lo = fmin(a.lo, b.lo), .hi = fmax(a.hi, b.hi), .nan = a.nan || b.nan};
    double numbers[4];
    int count = numbers_of(a, numbers), more = count ? numbers_of(b, numbers + count) : 0;
    out.two = more > 0 && one_of(numbers, count + more).two;
    out.nonzero = a.nonzero && b.nonzero;
    out.marks = (uint16_t)((a.marks & b.marks) | ((a.marks | b.marks) & MARKS_ANY));
    if (!(out.marks & MARK_OWN) && !(pad_is_stated(&a) && pad_is_stated(&b)))
        out.marks &= (uint16_t)~MARK_STATED;
    out.self = a.self == b.self ? a.self : 0;
    return out;
}

static double step_above(double bound) {
    static const double steps[] = {-FLT_MAX, -ELEMENT_MOST, -65504,  -1,     -F32_LEAST,
                                   0,        0x1p-32,       1,       0x1p32, ELEMENT_MOST,
                                   0x1p96,   FLT_MAX,       INFINITY};
    for (size_t i = 0; i < COUNT_OF(steps); i++)
        if (bound <= steps[i]) return steps[i];
    return INFINITY;
}

Value pad_widened(Value old, Value next) {
    Value out = pad_join(old, next);
    if (!pad_exists(old) || !pad_exists(next)) return out;
    double lo = out.lo, hi = out.hi;
    if (out.lo < old.lo) out.lo = -step_above(-out.lo);
    if (out.hi > old.hi) out.hi = step_above(out.hi);
    out.two &= out.lo == lo && out.hi == hi;
    return out;
}

Value pad_within(Value value, BinaryOp op, double number) {
    bool below = op == OP_LT || op == OP_LE, above = op == OP_GT || op == OP_GE;
    if (!pad_exists(value)) return value;
    if (op == OP_NE && pad_is(value, number)) return pad_none;
    if (value.two && !value.nan) {
        bool least = number_compares(op, value.lo, number),
             greatest = number_compares(op, value.hi, number);
        if (!least && !greatest) return pad_none;
        if (!least || !greatest) value.lo = value.hi = least ? value.lo : value.hi;
        return settled(value);
    }
    if (below || above || op == OP_EQ) value.nan = false;
    if (op == OP_EQ || below) value.hi = fmin(value.hi, number);
    if (op == OP_EQ || above) value.lo = fmax(value.lo, number);
    if (number == 0 && op == OP_GT) value.lo = fmax(value.lo, F32_LEAST);
    if (number == 0 && op == OP_LT) value.hi = fmin(value.hi, -F32_LEAST);
    if (number == 0 && (op == OP_NE || op == OP_GT || op == OP_LT)) value.nonzero = true;
    if (number == 0 && op == OP_NE && value.lo == 0) value.lo = F32_LEAST;
    return pad_exists(value) ? settled(value) : pad_none;
}

/* ---- results --------------------------------------------------------------------------------- */

static double rounded_down(double value) {
    double near = number_rounded(E_F32, value);
    return near > value ? nextafterf((float)near, -INFINITY) : near;
}

static double rounded_up(double value) { return -rounded_down(-value); }

/* The interval in the type of the result */
static Value in_type(Value value, Element type) {
    if (!pad_exists(value)) return pad_none;
    if (is_float(type)) {
        bool number = value.lo == value.hi;
        value.lo = number ? number_rounded(E_F32, value.lo) : rounded_down(value.lo);
        value.hi = number ? value.lo : rounded_up(value.hi);
    } else if (type != E_BOOL) {
        Value all = pad_of_type(type);
        bool exact = fabs(value.lo) < 0x1p53 && fabs(value.hi) < 0x1p53;
        if (value.nan || !exact || value.lo < all.lo || value.hi > all.hi) return all;
        value.lo = trunc(value.lo), value.hi = trunc(value.hi);
        value.nonzero = false;
    }
    return settled(value);
}

uint16_t pad_neutral(Value value, Element type) {
    if (!pad_exists(value) || !is_number(value)) return 0;
    Value all = is_float(type) ? between(-INFINITY, INFINITY) : pad_of_type(type);
    if (value.lo == 0) return MARK_SUM | MARK_READ | (type == E_BOOL ? 0 : MARK_STATED);
    return value.lo == all.lo ? MARK_MAX : value.hi == all.hi ? MARK_MIN : 0;
}

Value pad_tainted(Value value, Element type) {
    if (!pad_exists(value)) return value;
    unsigned earlier = value.marks & MARKS_EARLIER;
    if (earlier) earlier = value.self ? MARK_HOLDS : MARK_CARRIED;
    value.marks = (uint16_t)(pad_neutral(value, type) | earlier);
    return value;
}

/* ---- operations of two ----------------------------------------------------------------------- */

typedef double Corner(double, double);

static double add(double a, double b) { return a + b; }
static double multiply(double a, double b) { return a * b; }
static double divide(double a, double b) { return a / b; }

/* For an operation that is monotone in each operand */
static Value corners(Value a, Value b, Corner *of) {
    const double results[] = {of(a.lo, b.lo), of(a.lo, b.hi), of(a.hi, b.lo), of(a.hi, b.hi)};
    Value out = pad_none;
    for (size_t i = 0; i < COUNT_OF(results); i++) {
        if (isnan(results[i])) {
            out.nan = true;
            continue;
        }
        out.lo = fmin(out.lo, results[i]);
        out.hi = fmax(out.hi, results[i]);
    }
    if (out.lo > out.hi) return pad_any();
    return out;
}

static bool has_infinity(Value value) { return isinf(value.lo) || isinf(value.hi); }

static Value product(Value a, Value b) {
    bool nan = (pad_has_zero(a) && has_infinity(b)) || (pad_has_zero(b) && has_infinity(a));
    if (pad_is(a, 0) || pad_is(b, 0)) {
        Value zero = pad_number(0);
        zero.nan = nan;
        return zero;
    }
    Value out = corners(a, b, multiply);
    out.nan = nan;
    if (nan || pad_has_zero(a) || pad_has_zero(b))
        out.lo = fmin(out.lo, 0), out.hi = fmax(out.hi, 0);
    return out;
}

static Value quotient(Value a, Value b, Element type) {
    bool crosses = b.lo <= 0 && b.hi >= 0;
    if (!is_float(type) && (pad_has_zero(b) || crosses))
        return pad_is(a, 0) && b.nonzero ? a : pad_any();
    if (pad_has_zero(b)) return pad_any();
    if (pad_is(a, 0)) return pad_number(0);
    if (crosses) return (Value){.lo = -INFINITY, .hi = INFINITY, .nan = has_infinity(a)};
    Value out = corners(a, b, divide);
    if (pad_has_zero(a)) out.lo = fmin(out.lo, 0), out.hi = fmax(out.hi, 0);
    return out;
}

/* max and min of NaN and another value give the other value. */
static Value extreme(Value a, Value b, bool max) {
    Value out = max ? between(fmax(a.lo, b.lo), fmax(a.hi, b.hi))
                    : between(fmin(a.lo, b.lo), fmin(a.hi, b.hi));
    if (a.nan) out.lo = fmin(out.lo, b.lo), out.hi = fmax(out.hi, b.hi);
    if (b.nan) out.lo = fmin(out.lo, a.lo), out.hi = fmax(out.hi, a.hi);
    out.nan = a.nan && b.nan;
    out.nonzero = a.nonzero && b.nonzero;
    return out;
}

/* The same, but NaN if one of them is */
static Value bound(Value a, Value b, bool least) {
    bool nan = a.nan || b.nan;
    a.nan = b.nan = false;
    Value out = extreme(a, b, least);
    out.nan = nan;
    return out;
}

/* 0, of a zero with an exponent above it; not negative, if the base is not. A zero may be -0, whose
 * power with a negative exponent may be -infinity. */
static Value power(Value a, Value b) {
    if (pad_is(a, 0) && !a.nan && b.lo > 0 && !b.nan) return pad_number(0);
    Value out = pad_any();
    if (a.lo > 0 || (a.lo == 0 && b.lo >= 0)) out.lo = 0, out.nan = a.nan || b.nan;
    return out;
}

static Value compared(BinaryOp op, Value a, Value b) {
    bool equal = is_number(a) && is_number(b) && a.lo == b.lo;
    bool apart = a.hi < b.lo || b.hi < a.lo, nan = a.nan || b.nan;
    bool less = a.hi<b.lo, greater = a.lo> b.hi, most = a.hi <= b.lo, least = a.lo >= b.hi;
    bool yes = false, no = false;
    switch (op) {
    case OP_EQ: yes = equal, no = apart; break;
    case OP_NE: yes = apart, no = equal; break;
    case OP_LT: yes = less, no = least; break;
    case OP_LE: yes = most, no = greater; break;
    case OP_GT: yes = greater, no = most; break;
    case OP_GE: yes = least, no = less; break;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_MOD:
    case OP_AND:
    case OP_OR: break;
    }
    if (yes && (!nan || op == OP_NE)) return pad_number(1);
    return no && (!nan || op != OP_NE) ? pad_number(0) : pad_bool();
}

/* The result of an integer of 32 bits, which wraps */
static double wrapped(Element type, uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    return element_rows[type].kind == ELEMENT_SIGNED ? (double)(int32_t)low : (double)low;
}

/* Of two numbers; false: not computed exactly here */
static bool of_numbers(Operation operation, double a, double b, double *out) {
    bool word = !is_float(operation.type) && element_rows[operation.type].bytes == 4;
    bool arithmetic = operation.op == PAD_ADD || operation.op == PAD_SUB || operation.op == PAD_MUL;
    if (operation.op == PAD_COMPARE) return *out = number_compares(operation.compare, a, b), true;
    if (operation.op == PAD_MAX || operation.op == PAD_AT_LEAST) return *out = fmax(a, b), true;
    if (operation.op == PAD_MIN || operation.op == PAD_AT_MOST) return *out = fmin(a, b), true;
    bool bits = operation.op == PAD_BITS;
    if (!(arithmetic || bits) || !word || fabs(a) > UINT32_MAX || fabs(b) > UINT32_MAX)
        return false;
    uint64_t x = (uint64_t)(int64_t)a, y = (uint64_t)(int64_t)b;
    int64_t given[] = {(int64_t)a, (int64_t)b}, result;
    if (bits)
        return bits_call(operation.bits, operation.type, given, &result) &&
               (*out = (double)result, true);
    *out = wrapped(operation.type, operation.op == PAD_ADD   ? x + y
                                   : operation.op == PAD_SUB ? x - y
                                                             : x * y);
    return true;
}

/* Each operand is one of at most two numbers. */
static bool by_numbers(Operation operation, Value a, Value b, Value *out) {
    double as[2], bs[2], results[4];
    int a_count = numbers_of(a, as), b_count = numbers_of(b, bs), count = 0;
    for (int i = 0; i < a_count; i++)
        for (int k = 0; k < b_count; k++)
            if (!of_numbers(operation, as[i], bs[k], &results[count++])) return false;
    if (count == 0) return false;
    *out = one_of(results, count);
    return true;
}

/* Where a zero decides */
static Value bits_of_zero(Operation operation, Value a, Value b) {
    Intrinsic which = operation.bits;
    bool left = which != IN_bit_or && which != IN_bit_xor,
         right = which == IN_bit_and || which == IN_mulhi;
    if ((left && pad_is(a, 0)) || (right && pad_is(b, 0))) return pad_number(0);
    return in_type(pad_any(), operation.type);
}

Value pad_binary(Operation operation, Value a, Value b) {
    Value minus = {.lo = -b.hi, .hi = -b.lo, .nan = b.nan, .nonzero = b.nonzero}, out = pad_any();
    Element type = operation.type;
    if (!pad_exists(a) || !pad_exists(b)) return pad_none;
    if (by_numbers(operation, a, b, &out)) return out;
    switch (operation.op) {
    case PAD_ADD: out = corners(a, b, add); break;
    case PAD_SUB: out = corners(a, minus, add); break;
    case PAD_MUL: out = product(a, b); break;
    case PAD_DIV: out = quotient(a, b, type); break;
    case PAD_MAX:
    case PAD_MIN: return extreme(a, b, operation.op == PAD_MAX);
    case PAD_AT_LEAST:
    case PAD_AT_MOST: return bound(a, b, operation.op == PAD_AT_LEAST);
    case PAD_AND: return truths(fmin(a.lo, b.lo), fmin(a.hi, b.hi));
    case PAD_OR: return truths(fmax(a.lo, b.lo), fmax(a.hi, b.hi));
    case PAD_COMPARE: return compared(operation.compare, a, b);
    case PAD_POWER: return power(a, b);
    case PAD_BITS: return bits_of_zero(operation, a, b);
    case PAD_OTHER: return type == E_BOOL ? pad_bool() : in_type(pad_any(), type);
    }
    out.nan |= a.nan || b.nan;
    return in_type(out, type);
}

/* ---- operations of one ----------------------------------------------------------------------- */

/* A bound of a fast form, below or above its error */
static double called(Intrinsic which, double argument, double error) {
    Number number = number_called(which, ACCURACY_FAST, &argument);
    if (number.exact || isinf(number.value)) return number.value;
    return number.value + error * (fabs(number.value) * 0x1p-10 + F32_LEAST);
}

static Value monotone(Intrinsic which, Value a) {
    bool number = is_number(a) && number_called(which, ACCURACY_FAST, &a.lo).exact;
    Value out = {.lo = called(which, a.lo, number ? 0 : -1),
                 .hi = called(which, a.hi, number ? 0 : 1),
                 .nan = a.nan};
    return isnan(out.lo) || isnan(out.hi) ? pad_any() : out;
}

static Value absolute(Value a) {
    double most = fmax(fabs(a.lo), fabs(a.hi)), least = fmin(fabs(a.lo), fabs(a.hi));
    if (a.lo <= 0 && a.hi >= 0) least = a.nonzero ? F32_LEAST : 0;
    return (Value){.lo = least, .hi = most, .nan = a.nan, .nonzero = a.nonzero};
}

/* exp and exp2 flush subnormal results to 0. */
static Value exponential(Intrinsic which, Value a) {
    Value out = monotone(which, a);
    if (out.lo < FLT_MIN * 2) out.lo = 0;
    return out;
}

/* In [0, 1]; results that `rcp` flushes are 0. */
static Value logistic(Value a) {
    Value out = exponential(IN_sigmoid, a);
    out.lo = fmax(out.lo, 0), out.hi = fmin(out.hi, 1);
    return out;
}

/* Of a function that is NaN below the least argument */
static Value from_least(Intrinsic which, Value a, double least) {
    Value inside = {.lo = fmax(a.lo, least), .hi = fmax(a.hi, least)};
    Value out = monotone(which, inside);
    out.nan |= a.nan || a.lo < least;
    return out;
}

static Value root(Value a) {
    Value out = from_least(IN_sqrt, a, 0);
    if (out.lo < 0) out.lo = 0;
    return out;
}

Value pad_call(Intrinsic which, Element type, Value a) {
    static const Value one = {.lo = 1, .hi = 1, .nonzero = true};
    Value out = pad_any();
    if (!pad_exists(a)) return pad_none;
    switch (which) {
    case IN_abs: out = absolute(a); break;
    case IN_tanh:
    case IN_expm1:
    case IN_erf:
    case IN_floor:
    case IN_ceil:
    case IN_round: out = monotone(which, a); break;
    case IN_sin:
    case IN_cos:
        /* the fast sine of a subnormal number is 0, the exact one is not */
        if (is_number(a) && (a.lo == 0 || fabs(a.lo) >= FLT_MIN)) out = monotone(which, a);
        if (!is_number(a) || !is_number(out)) out = between(-1, 1), out.nan = !pad_finite(a);
        break;
    case IN_sqrt: out = root(a); break;
    case IN_log:
    case IN_log2: out = from_least(which, a, 0); break;
    case IN_log1p: out = from_least(which, a, -1); break;
    case IN_exp:
    case IN_exp2: out = exponential(which, a); break;
    case IN_sigmoid: out = logistic(a); break;
    case IN_rcp: out = quotient(one, a, type); break;
    case IN_rsqrt:
        out = quotient(one, root(a), type);
        if (a.lo >= 0) out.lo = fmax(out.lo, 0);
        out.nan |= a.nan || a.lo < 0;
        break;
    case IN_min:
    case IN_max:
    case IN_fma:
    case IN_pow:
    case IN_ceil_div:
    case IN_clamp:
    case IN_isnan:
    case IN_bit_and:
    case IN_bit_or:
    case IN_bit_xor:
    case IN_shl:
    case IN_shr:
    case IN_mulhi:
    case IN_bits:
    case IN_random_bits:
    case IN_COUNT: break;
    case IN_popc: out = pad_is(a, 0) ? pad_number(0) : between(0, 64); break;
    case IN_clz: out = between(0, 64); break;
    case IN_random: out = between(0, 1); break;
    }
    return in_type(out, type);
}

/* To a float: rounded, infinite beyond the greatest number; to an integer: clamped, NaN is 0 */
Value pad_cast(Value a, Element from, Element to) {
    Value out = a;
    out.self = 0;
    if (!pad_exists(a) || from == to) return a;
    if (to == E_BOOL || from == E_BOOL) return to == E_BOOL ? pad_bool() : a;
    if (is_float(to)) {
        out.lo = number_rounded(to, a.lo), out.hi = number_rounded(to, a.hi);
        out.nonzero = false;
        out.self = a.self;
        return settled(out);
    }
    Value all = pad_of_type(to);
    if (!is_float(from) && a.lo >= all.lo && a.hi <= all.hi) return a;
    all.marks = a.marks & MARKS_EARLIER ? MARK_CARRIED : 0;
    if (!is_float(from)) return all;
    out = between(fmax(all.lo, fmin(all.hi, trunc(a.lo))), fmax(all.lo, fmin(all.hi, trunc(a.hi))));
    if (a.nan) out.lo = fmin(out.lo, 0), out.hi = fmax(out.hi, 0);
    out.nonzero = out.lo > 0 || out.hi < 0;
    out.marks = all.marks;
    return out;
}

/* ---- elements -------------------------------------------------------------------------------- */

/* Arithmetic on elements does not overflow, and NaN is not followed. `pole`: it may be infinite. */
static Value tamed(Value value, bool pole) {
    if (!pad_exists(value)) return value;
    value.nan = false;
    if (value.lo == value.hi || pole) return value;
    value.lo = fmin(fmax(value.lo, -ELEMENT_MOST), ELEMENT_MOST);
    value.hi = fmax(fmin(value.hi, ELEMENT_MOST), -ELEMENT_MOST);
    return settled(value);
}

/* The finite part, and the infinities */
static int parts_of(Value value, Value parts[3]) {
    int count = 0;
    Value finite = value;
    finite.lo = fmax(value.lo, -FLT_MAX), finite.hi = fmin(value.hi, FLT_MAX);
    if (!isinf(value.lo)) finite.lo = value.lo;
    if (!isinf(value.hi)) finite.hi = value.hi;
    if (finite.lo <= finite.hi) parts[count++] = finite;
    if (value.lo == -INFINITY) parts[count++] = between(-INFINITY, -INFINITY);
    if (value.hi == INFINITY) parts[count++] = between(INFINITY, INFINITY);
    return count;
}

Value pad_element_binary(Operation operation, Value a, Value b) {
    Value as[3], bs[3], out = pad_none;
    if (!pad_exists(a) || !pad_exists(b)) return pad_none;
    int a_count = parts_of(a, as), b_count = parts_of(b, bs);
    for (int i = 0; i < a_count; i++)
        for (int k = 0; k < b_count; k++) {
            bool infinite = has_infinity(as[i]) || has_infinity(bs[k]);
            bool pole = operation.op == PAD_DIV && pad_has_zero(bs[k]);
            Value part = pad_binary(operation, as[i], bs[k]);
            if (infinite && part.nan && part.lo == -INFINITY && part.hi == INFINITY && !pole &&
                operation.op != PAD_MUL)
                continue; /* inf - inf */
            out = pad_join(out, tamed(part, infinite || pole));
        }
    return pad_exists(out) ? out : between(-ELEMENT_MOST, ELEMENT_MOST);
}

Value pad_element_call(Intrinsic which, Element type, Value a) {
    bool zero_is_pole = which == IN_log || which == IN_log2 || which == IN_rcp || which == IN_rsqrt;
    Value parts[3], out = pad_none;
    int count = parts_of(a, parts);
    for (int i = 0; i < count; i++) {
        bool pole = has_infinity(parts[i]) || (zero_is_pole && pad_has_zero(parts[i])) ||
                    (which == IN_log1p && parts[i].lo <= -1);
        out = pad_join(out, tamed(pad_call(which, type, parts[i]), pole));
    }
    return out;
}

Value pad_element_cast(Value a, Element from, Element to) {
    Value out = pad_cast(a, from, to);
    return to == E_F16 || !pad_finite(a) ? out : tamed(out, false);
}

Value pad_sum(Value a, double count, bool padding) {
    Value out = a;
    out.two = false;
    out.lo = a.lo == 0 ? 0 : fmin(0, a.lo * count);
    out.hi = a.hi == 0 ? 0 : fmax(0, a.hi * count);
    out.nan |= padding && !pad_finite(a);
    out.nonzero = false;
    return padding || !pad_finite(a) ? out : tamed(out, false);
}
