/* eval: the arithmetic of integers and truths as the language has it, for whoever computes while
 * compiling. A value of type `u64` is held as the same bits; all others as themselves. `i8` and
 * `u8` are computed as `i32`. Floats are not evaluated.
 *
 * `+ - *`, unary `-`, `abs` and `/ -1` keep the low bits of the exact result. `/` and `%` cut
 * towards zero. Division by zero and `ceil` by less than 1 are not defined: the functions return
 * false. */
#ifndef PIPEC_EVAL_H
#define PIPEC_EVAL_H

#include "prog/prog.h"

bool eval_fits(Element type, int64_t value);    /* of a `u64`: below 2^63 */
int64_t eval_cast(Element type, int64_t value); /* the low bits */

/* Of two operands of one type, widened */
bool eval_binary(BinaryOp op, Element type, int64_t a, int64_t b, int64_t *out);
int64_t eval_unary(UnaryOp op, Element type, int64_t a);
bool eval_call(Intrinsic which, Element type, const int64_t *args,
               int64_t *out); /* abs, min, max, ceil of two */

/* The same without a width, as a launch evaluates formulas: false too where the result does not
 * fit 64 bits */
bool eval_exact(BinaryOp op, int64_t a, int64_t b, int64_t *out);

typedef struct EvalEnv {
    /* Value of a symbol, axis, local, rank, index or read; false: not known */
    bool (*leaf)(const void *data, const Expr *expr, int64_t *out);
    const void *data;
    bool exact; /* without a width */
} EvalEnv;

bool eval_expr(const EvalEnv *env, const Expr *expr,
               int64_t *out); /* false: not known, or not defined */

#endif
