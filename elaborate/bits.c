/* The bits of integers: operators, shifts, `mulhi`, `popc`, `clz`, `bits`, and random numbers,
 * which are functions of integers. A shift to the left by a constant is a product, of which more is
 * known. A launch computes none of the others: where it would have to, they are refused. */
#include "elaborate/private.h"
#include "prog/bits.h"
#include "prog/eval.h"

#include <math.h>
#include <string.h>

static int width_of(Element type) { return 8 * element_rows[type].bytes; }

static bool is_unsigned(Element type) { return element_rows[type].kind == ELEMENT_UNSIGNED; }

/* The operator or the name, for messages */
static const char *word_of(Intrinsic which) {
    const char *text = intrinsic_operator(which);
    return text ? text : intrinsic_rows[which].name;
}

/* ---- operands -------------------------------------------------------------------------------- */

/* What `&` and its like are for conditions; NULL: nothing */
static const char *of_conditions(const char *word) {
    static const char *const pairs[][2] = {{"&", "&&"}, {"|", "||"}, {"^", "!="}, {"~", "!"}};
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        if (strcmp(pairs[i][0], word) == 0) return pairs[i][1];
    return NULL;
}

static bool integer_operand(Elab *e, const char *word, Val *v) {
    *v = elab_operand(e, *v);
    if (elab_is_poison(*v)) return false;
    if (elab_is_integer(v->x->type)) return true;
    const char *text = elab_text_of(e, v->x->span), *logical = of_conditions(word);
    Diag *diag;
    if (v->x->type == E_BOOL) {
        diag = elab_error(e, P0107, v->x->span, "`%s` of a bool", word);
        if (logical)
            HELP(e, diag, "write `%s` for conditions", logical);
        else
            HELP(e, diag, "write a number: `%s ? 1 : 0`", text);
        return false;
    }
    diag = elab_error(e, P0104, v->x->span, "`%s` of a float", word);
    HELP(e, diag, "take its bits, `bits(u32, %s)`, or cast it, `i32(%s)`", text, text);
    return false;
}

/* Two bools are one mistake. */
static bool integer_operands(Elab *e, Intrinsic which, Val *a, Val *b) {
    bool left = integer_operand(e, word_of(which), a);
    if (!left && a->x->type == E_BOOL && b->x->type == E_BOOL) return false;
    return integer_operand(e, word_of(which), b) && left;
}

/* A constant beside a value of a type stands for its bits: -8 and 0xfffffff8 are the same u32, and
 * the same i32. */
static bool fits_as_bits(Element type, int64_t value) {
    if (width_of(type) == 64) return true;
    return value >= INT32_MIN && value <= UINT32_MAX;
}

static void take_bits(Elab *e, Val *constant, const Val *other) {
    int64_t value;
    if (constant->flex == FLEX_NONE || other->flex != FLEX_NONE || !elab_is_const(constant->x))
        return;
    value = constant->x->constant.integer;
    Element type = other->x->type;
    Span span = constant->x->span;
    if (!fits_as_bits(type, value)) return; /* the conversion reports it */
    Expr *x = type == E_U64 && value < 0 ? elab_make_unsigned(e, (uint64_t)value, span)
                                         : elab_make_integer(e, type, eval_cast(type, value), span);
    *constant = (Val){x, FLEX_NONE};
}

static bool pair(Elab *e, Intrinsic which, Val *a, Val *b, Span span) {
    if (!integer_operands(e, which, a, b)) return false;
    take_bits(e, a, b);
    take_bits(e, b, a);
    return elab_unify(e, a, b, span, word_of(which));
}

/* ---- results --------------------------------------------------------------------------------- */

static Val made(Elab *e, Intrinsic which, Element type, const Val *args, int count, Flex flex,
                Span span) {
    bool at_launch = e->place == PLACE_GRID;
    if (at_launch) {
        Diag *diag =
            elab_error(e, P0144, span, "`%s` cannot be used in %s", word_of(which), e->place_words);
        NOTE(e, diag, "a launch computes with `+ - * / %%`, `min`, `max`, `abs` and `ceil`");
        if (which == IN_bit_and || which == IN_shr)
            HELP(e, diag, "write `x / 8` for `x >> 3`, and `x %% 8` for `x & 7`");
        return elab_poison(e, span);
    }
    Expr *x = elab_node(e, X_CALL, type, span);
    x->call.which = which, x->call.count = count;
    for (int i = 0; i < count; i++) x->call.args[i] = elab_settled(e, args[i]);
    expr_derive(e->role, x);
    return (Val){x, flex};
}

/* The value of constants; false: an argument is none */
static bool folded(Intrinsic which, const Val *args, int count, int64_t *out) {
    int64_t given[2] = {0, 0};
    for (int i = 0; i < count; i++) {
        if (!elab_is_const(args[i].x)) return false;
        given[i] = args[i].x->constant.integer;
    }
    return bits_call(which, args[0].x->type, given, out);
}

static Flex least(Flex a, Flex b) { return a < b ? a : b; }

/* ---- operators ------------------------------------------------------------------------------- */

/* `& | ^`. Of constants, they are numbers of 64 bits, as all constants. */
static Val logic(Elab *e, Intrinsic which, Val a, Val b, Span span, Span op_span) {
    if (!pair(e, which, &a, &b, op_span)) return elab_poison(e, span);
    Flex flex = least(a.flex, b.flex);
    int64_t value;
    if (elab_is_const(a.x)) { /* a mask is on the right */
        Val mask = a;
        a = b, b = mask;
    }
    if (!folded(which, (Val[]){a, b}, 2, &value))
        return made(e, which, a.x->type, (Val[]){a, b}, 2, flex, span);
    if (!flex) return (Val){elab_make_integer(e, a.x->type, value, span), FLEX_NONE};
    Val constant = elab_val_integer(e, value, span);
    constant.flex = flex;
    return constant;
}

static bool amount_refused(Elab *e, int64_t amount, int width, const Expr *shifted, Span span) {
    if (amount >= 0 && amount < width) return false;
    Diag *diag = elab_error(e, P0173, span, "a shift by %lld of a number of %d bits",
                            (long long)amount, width);
    LABEL(e, diag, shifted->span, "this is %s", elab_type_name(shifted->type));
    if (amount >= width && amount < 64)
        HELP(e, diag, "shift a number of 64 bits: `%s(%s)`",
             is_unsigned(shifted->type) ? "u64" : "i64", elab_text_of(e, shifted->span));
    else
        HELP(e, diag, "shift by 0 to %d", width - 1);
    return true;
}

/* By constants: `a << 3` is a * 8. */
static Val shifted(Elab *e, Intrinsic which, Val a, int64_t by, Val amount, Span span,
                   Span op_span) {
    bool constant = elab_is_const(a.x) && a.flex, left = which == IN_shl;
    int64_t value;
    if (amount_refused(e, by, constant ? 64 : width_of(a.x->type), a.x, amount.x->span))
        return elab_poison(e, span);
    if (constant) {
        int64_t args[] = {a.x->constant.integer, by};
        (void)bits_call(which, E_I64, args, &value);
        if (!left || value >> by == args[0]) return elab_val_integer(e, value, span);
        elab_error(e, P0109, span, "the constant `%s` does not fit i64", elab_text_of(e, span));
        return elab_poison(e, span);
    }
    /* the host computes products of i32 in 64 bits */
    bool on_host = e->place == PLACE_CLAIM || e->place == PLACE_EXAMPLE;
    if (left && !on_host && !elab_is_const(a.x) && !(a.x->type == E_U64 && by == 63)) {
        int64_t factor = eval_cast(a.x->type, (int64_t)(UINT64_C(1) << by));
        Val by_value = {elab_make_integer(e, a.x->type, factor, span), a.flex};
        return elab_make_binary(e, OP_MUL, a, by_value, span, op_span);
    }
    Val args[] = {a, {elab_make_integer(e, E_I32, by, amount.x->span), FLEX_NONE}};
    if (folded(which, args, 2, &value) && eval_fits(a.x->type, value))
        return (Val){elab_make_integer(e, a.x->type, value, span), FLEX_NONE};
    return made(e, which, a.x->type, args, 2, a.flex, span);
}

static Val shift(Elab *e, Intrinsic which, Val a, Val b, Span span, Span op_span) {
    if (!integer_operands(e, which, &a, &b)) return elab_poison(e, span);
    if (elab_is_const(b.x)) return shifted(e, which, a, b.x->constant.integer, b, span, op_span);
    if (width_of(b.x->type) == 64) {
        Diag *diag =
            elab_error(e, P0104, b.x->span, "the amount of a shift has 32 bits, but this is %s",
                       elab_type_name(b.x->type));
        HELP(e, diag, "cast it: `u32(%s)`", elab_text_of(e, b.x->span));
        return elab_poison(e, span);
    }
    b.flex = FLEX_NONE;
    return made(e, which, a.x->type, (Val[]){a, b}, 2, elab_is_const(a.x) ? FLEX_NONE : a.flex,
                span);
}

Val elab_make_bits(Elab *e, Intrinsic which, Val a, Val b, Span span, Span op_span) {
    if (which == IN_shl || which == IN_shr) return shift(e, which, a, b, span, op_span);
    return logic(e, which, a, b, span, op_span);
}

/* ~x is x ^ -1 */
Val elab_make_complement(Elab *e, Val a, Span span) {
    if (!integer_operand(e, "~", &a)) return elab_poison(e, span);
    return logic(e, IN_bit_xor, a, elab_val_integer(e, -1, span), span, span);
}

/* ---- functions ------------------------------------------------------------------------------- */

static Val high_product(Elab *e, Val *args, Span span) {
    int64_t value;
    if (!pair(e, IN_mulhi, &args[0], &args[1], span)) return elab_poison(e, span);
    Element type = args[0].x->type;
    if (folded(IN_mulhi, args, 2, &value) && eval_fits(type, value))
        return (Val){elab_make_integer(e, type, value, span), FLEX_NONE};
    return made(e, IN_mulhi, type, args, 2, FLEX_NONE, span);
}

static Val counted(Elab *e, Intrinsic which, Val *args, Span span) {
    int64_t value;
    if (!integer_operand(e, word_of(which), &args[0])) return elab_poison(e, span);
    if (folded(which, args, 1, &value)) return elab_val_integer(e, value, span);
    return made(e, which, E_I32, args, 1, FLEX_NONE, span);
}

static Val random_number(Elab *e, Intrinsic which, Val *args, Span span) {
    for (int i = 0; i < 2; i++) {
        if (!integer_operand(e, word_of(which), &args[i])) return elab_poison(e, span);
        Span at = args[i].x->span;
        bool negative = elab_is_const(args[i].x) && args[i].x->constant.integer < 0;
        args[i].x = negative ? elab_make_unsigned(e, (uint64_t)args[i].x->constant.integer, at)
                             : elab_cast_to(e, args[i], E_U64, at);
        args[i].flex = FLEX_NONE;
    }
    return made(e, which, which == IN_random ? E_F32 : E_U32, args, 2, FLEX_NONE, span);
}

Val elab_call_bits(Elab *e, Intrinsic which, Val *args, Span span) {
    if (which == IN_mulhi) return high_product(e, args, span);
    if (which == IN_popc || which == IN_clz) return counted(e, which, args, span);
    return random_number(e, which, args, span);
}

/* ---- bits(T, x) ------------------------------------------------------------------------------ */

static Val different_size(Elab *e, Element type, Val v, Span span) {
    Diag *diag = elab_error(e, P0104, v.x->span, "`bits(%s, ..)` takes %d bits, but this is %s",
                            elab_type_name(type), width_of(type), elab_type_name(v.x->type));
    const char *text = elab_text_of(e, v.x->span), *name = elab_type_name(type);
    if (v.x->type == E_F32)
        HELP(e, diag, "take its 32 bits and cast them: `%s(bits(u32, %s))`", name, text);
    else if (type == E_F32)
        HELP(e, diag, "take its lower half: `bits(f32, u32(%s))`", text);
    else
        HELP(e, diag, "cast it: `%s(%s)`", name, text);
    return elab_poison(e, span);
}

static Val constant_bits(Elab *e, Element type, Val v, Span span) {
    bool number = v.x->type == E_F32;
    int64_t value = number ? bits_of_number(v.x->constant.number) : v.x->constant.integer;
    if (!number && !fits_as_bits(type, value)) return different_size(e, type, v, span);
    if (type != E_F32)
        return (Val){elab_make_integer(e, type, eval_cast(type, value), span), FLEX_NONE};
    double result = bits_to_number((uint32_t)value);
    if (!isnan(result)) return (Val){elab_val_number(e, result, span).x, FLEX_NONE};
    v = (Val){elab_make_integer(e, E_U32, eval_cast(E_U32, value), span), FLEX_NONE};
    return made(e, IN_bits, type, &v, 1, FLEX_NONE, span); /* it keeps the bits of its NaN */
}

Val elab_bits(Elab *e, Element type, Val v, Span span) {
    v = elab_operand(e, v);
    if (elab_is_poison(v)) return v;
    bool integer = elab_is_integer(type) && width_of(type) >= 32;
    if (!integer && type != E_F32) {
        Diag *diag = elab_error(e, P0131, span, "no `bits` of type %s", elab_type_name(type));
        NOTE(e, diag, "`bits` takes `f32`, `i32`, `u32`, `i64` and `u64`");
        return elab_poison(e, span);
    }
    if (v.x->type == E_BOOL) {
        Diag *diag = elab_error(e, P0107, v.x->span, "`bits` of a bool");
        HELP(e, diag, "write a number: `%s ? 1 : 0`", elab_text_of(e, v.x->span));
        return elab_poison(e, span);
    }
    if (v.flex == FLEX_ANY && elab_is_const(v.x) && width_of(type) == 32)
        return constant_bits(e, type, v, span);
    if (v.flex != FLEX_NONE && elab_is_const(v.x)) v.flex = FLEX_NONE;
    if (width_of(v.x->type) != width_of(type)) return different_size(e, type, v, span);
    bool integers = elab_is_integer(v.x->type) && type != E_F32;
    if (integers || v.x->type == type)
        return (Val){elab_cast_to(e, (Val){v.x, FLEX_NONE}, type, span), FLEX_NONE};
    return made(e, IN_bits, type, &v, 1, FLEX_NONE, span);
}
