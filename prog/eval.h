/* eval: compile-time arithmetic of integers and truths, as the language defines it. A `u64` is
 * held as an int64_t with the same bits. `i8` and `u8` are computed as `i32`. Floats are not
 * evaluated.
 *
 * `+ - *`, unary `-`, `abs` and `/ -1` keep the low bits of the exact result. `/` and `%`
 * truncate towards zero. Division by zero and `ceil` by less than 1 are undefined: the functions
 * return false. */
#ifndef PIPEC_EVAL_H
#define PIPEC_EVAL_H

#include "prog/expr.h"

/* true if the type represents the value; a `u64` must be below 2^63 */
bool eval_fits(Element type, int64_t value);
/* keeps the low bits */
int64_t eval_cast(Element type, int64_t value);

/* A binary operation on two operands of one type, widened */
bool eval_binary(BinaryOp op, Element type, int64_t a, int64_t b, int64_t *out);
int64_t eval_unary(UnaryOp op, Element type, int64_t a);
/* abs, min, max, ceil of two, those of bits; of arguments of this type */
bool eval_call(Intrinsic which, Element type, const int64_t *args, int64_t *out);

/* The same in 64 bits, as a launch evaluates formulas: also false if the result does not fit */
bool eval_exact(BinaryOp op, int64_t a, int64_t b, int64_t *out);

typedef struct EvalEnv {
    /* Value of a symbol, axis, local, rank, index or read; false: unknown */
    bool (*leaf)(const void *data, const Expr *expr, int64_t *out);
    const void *data;
    bool exact; /* as eval_exact */
    /* its meter counts the work, which shared subexpressions multiply; NULL: not counted */
    Arena *arena;
} EvalEnv;

/* false: unknown or undefined */
bool eval_expr(const EvalEnv *env, const Expr *expr, int64_t *out);

#endif
