/* Constants: integers are folded in 64 bits, floats in f64 and rounded when combined with a
 * value. Reports overflow and division by zero. */
#include "elaborate/private.h"
#include "prog/eval.h"
#include "prog/number.h"

static bool overflow(Elab *e, Span span, Element type, Val *out) {
    elab_error(e, P0109, span, "the constant `%s` does not fit %s", elab_text_of(e, span),
               elab_type_name(type));
    *out = elab_poison(e, span);
    return true;
}

static bool divisor_bad(Elab *e, Val b, BinaryOp op, Val *out, Span span) {
    bool zero = b.x->type == E_F32 ? b.x->constant.number == 0 : b.x->constant.integer == 0;
    if (!zero) return false;
    Diag *diag =
        elab_error(e, P0108, b.x->span, "`%s` by a constant zero", op == OP_DIV ? "/" : "%");
    if (b.x->type == E_F32) HELP(e, diag, "write `inf` or `nan` if that is intended");
    *out = elab_poison(e, span);
    return true;
}

/* A flexible result gets the type that holds it; a typed one must fit its type. */
static bool give_integer(Elab *e, int64_t value, Element type, Flex flex, Span span, Val *out) {
    if (flex) {
        *out = elab_val_integer(e, value, span);
        out->flex = flex;
        return true;
    }
    if (!eval_fits(type, value)) return overflow(e, span, type, out);
    *out = (Val){elab_make_integer(e, type, value, span), FLEX_NONE};
    return true;
}

static bool fold_integers(Elab *e, BinaryOp op, Val a, Val b, Span span, Val *out) {
    int64_t value;
    if (!eval_exact(op, a.x->constant.integer, b.x->constant.integer, &value))
        return overflow(e, span, E_I64, out);
    if (op >= OP_EQ) return *out = elab_val_bool(e, value != 0, span), true;
    return give_integer(e, value, a.x->type, a.flex < b.flex ? a.flex : b.flex, span, out);
}

static bool fold_floats(Elab *e, BinaryOp op, Val a, Val b, Span span, Val *out) {
    double x = a.x->constant.number, y = b.x->constant.number;
    if (op == OP_MOD || op == OP_AND || op == OP_OR) return false;
    *out = op >= OP_EQ ? elab_val_bool(e, number_compares(op, x, y), span)
                       : elab_val_number(e, number_binary(op, x, y), span);
    return true;
}

/* Results that one constant operand decides: `false && x`, `true && x`, x / 0 */
static bool fold_half(Elab *e, BinaryOp op, Val a, Val b, Span span, Val *out) {
    if (op == OP_AND || op == OP_OR) {
        bool decides = op == OP_OR;
        if (elab_is_const(a.x))
            return *out = (a.x->constant.integer != 0) == decides ? elab_val_bool(e, decides, span)
                                                                  : b,
                   true;
        if (elab_is_const(b.x))
            return *out = (b.x->constant.integer != 0) == decides ? elab_val_bool(e, decides, span)
                                                                  : a,
                   true;
    }
    return false;
}

bool elab_fold_binary(Elab *e, BinaryOp op, Val a, Val b, Span span, Val *out) {
    if ((op == OP_DIV || op == OP_MOD) && elab_is_const(b.x) && divisor_bad(e, b, op, out, span))
        return true;
    if (!elab_is_const(a.x) || !elab_is_const(b.x)) return fold_half(e, op, a, b, span, out);
    return a.x->type == E_F32 ? fold_floats(e, op, a, b, span, out)
                              : fold_integers(e, op, a, b, span, out);
}

bool elab_fold_unary(Elab *e, UnaryOp op, Val a, Span span, Val *out) {
    if (!elab_is_const(a.x)) return false;
    if (op == OP_NOT) return *out = elab_val_bool(e, !a.x->constant.integer, span), true;
    if (a.x->type == E_F32) {
        *out = elab_val_number(e, -a.x->constant.number, span);
        return true;
    }
    if (a.x->constant.integer == INT64_MIN) return overflow(e, span, E_I64, out);
    return give_integer(e, -a.x->constant.integer, a.x->type, a.flex, span, out);
}

static bool fold_integer_call(Elab *e, Intrinsic which, Val *args, int count, Span span, Val *out) {
    int64_t given[3] = {0, 0, 0}, value;
    for (int i = 0; i < count; i++) given[i] = args[i].x->constant.integer;
    Flex flex = count > 1 && args[1].flex < args[0].flex ? args[1].flex : args[0].flex;
    if (which == IN_abs && given[0] == INT64_MIN) return overflow(e, span, E_I64, out);
    if (!eval_call(which, E_I64, given, &value)) return false;
    return give_integer(e, value, args[0].x->type, flex, span, out);
}

bool elab_fold_call(Elab *e, Intrinsic which, Val *args, int count, Span span, Val *out) {
    for (int i = 0; i < count; i++)
        if (!elab_is_const(args[i].x)) return false;
    if (args[0].x->type != E_F32) return fold_integer_call(e, which, args, count, span, out);
    if (which == IN_ceil_div) return false;
    double given[3] = {0, 0, 0};
    for (int i = 0; i < count; i++) given[i] = args[i].x->constant.number;
    *out = elab_val_number(e, number_call(which, given), span);
    return true;
}
