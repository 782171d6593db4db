/* number: the arithmetic of floating-point numbers, for all that computes with known ones.
 *
 * In doubles, without rounding between operations: constants are folded so, and `ensures` is
 * evaluated so. In a kernel: each operation rounds to f32, and fast forms have an error; the
 * results that they have for certain arguments (zeros, infinities, NaN, numbers that they flush)
 * are known all the same. */
#ifndef PIPEC_NUMBER_H
#define PIPEC_NUMBER_H

#include "prog/expr.h"

/* ---- in doubles ------------------------------------------------------------------------------ */

/* + - * / % */
double number_binary(BinaryOp op, double a, double b);
/* == != < <= > >=, as setp: NaN differs from all */
bool number_compares(BinaryOp op, double a, double b);
/* The larger of a and lo, the smaller of that and hi; NaN if one of them is */
double number_clamped(double a, double lo, double hi);
/* The nearest whole number; of two, the even one */
double number_whole(double a);
/* An intrinsic of floats */
double number_call(Intrinsic which, const double *args);
/* As min.f32 and max.f32: the other number if one is NaN, and -0 is below 0 */
double number_smaller(double a, double b);
double number_larger(double a, double b);

/* ---- conversions, as a kernel has them ------------------------------------------------------- */

/* The nearest number of the floating-point type, to even for ties; beyond the greatest one it is
 * infinite, in an 8-bit type the greatest */
/* The distance from 1 to the next number of a floating-point type */
double number_epsilon(Element type);
double number_rounded(Element type, double value);
/* Truncated and clamped to the integer type; NaN gives 0 */
int64_t number_to_integer(Element to, double value);
/* Rounded to f32, and from there to the floating-point type */
double number_from_integer(Element from, Element to, int64_t value);

/* ---- in a kernel ----------------------------------------------------------------------------- */

/* What an operation of a kernel gives for known operands, which are numbers of f32. Not exact: the
 * value is within the error bound of the fast form, so it may be finite where the kernel has an
 * infinity, or the other way round, only next to the limits of f32. */
typedef struct Number {
    double value;
    bool exact; /* the kernel has this number, NaN and the sign of zero included */
} Number;

/* + - * /, each with its own rounding; a sum that takes a product in is IN_fma (see rounding.h) */
Number number_computed(BinaryOp op, Accuracy accuracy, double a, double b);
Number number_called(Intrinsic which, Accuracy accuracy, const double *args);

#endif
