/* Expression nodes: construction, types and conversions. Integer constants, statics and extents
 * are converted to the float type of the other operand, narrow types widen, everything else
 * needs an explicit cast, which the message contains. */
#include "elaborate/private.h"
#include "prog/eval.h"
#include "prog/number.h"

#include <math.h>
#include <string.h>

/* ---- facts of types -------------------------------------------------------------------------- */

bool elab_is_float(Element type) { return element_rows[type].kind == ELEMENT_FLOAT; }
bool elab_is_integer(Element type) {
    return element_rows[type].kind == ELEMENT_SIGNED || element_rows[type].kind == ELEMENT_UNSIGNED;
}
bool elab_is_narrow(Element type) {
    return type != E_BOOL && (element_rows[type].widens != type && type != E_TF32);
}
bool elab_is_const(const Expr *x) { return x->kind == X_CONST; }
const char *elab_type_name(Element type) { return element_rows[type].spelling; }

/* ---- making ---------------------------------------------------------------------------------- */

Expr *elab_node(Elab *e, ExprKind kind, Element type, Span span) {
    Expr *x = NEW(e->nodes, Expr);
    x->kind = kind;
    x->type = type;
    x->span = span;
    return x;
}

Val elab_poison(Elab *e, Span span) {
    return (Val){elab_node(e, X_POISON, E_I32, span), FLEX_NONE};
}
bool elab_is_poison(Val v) { return v.x->kind == X_POISON; }

bool elab_float_fits(Element type, double value) {
    return isnan(value) || number_rounded(type, value) == value;
}

Expr *elab_make_integer(Elab *e, Element type, int64_t value, Span span) {
    Expr *x = elab_node(e, X_CONST, type, span);
    x->constant.integer = value;
    return x;
}

Val elab_val_integer(Elab *e, int64_t value, Span span) {
    return (Val){elab_make_integer(e, eval_fits(E_I32, value) ? E_I32 : E_I64, value, span),
                 FLEX_ANY};
}

Val elab_val_number(Elab *e, double value, Span span) {
    Expr *x = elab_node(e, X_CONST, E_F32, span);
    x->constant.number = value;
    return (Val){x, FLEX_ANY};
}

Val elab_val_bool(Elab *e, bool value, Span span) {
    return (Val){elab_make_integer(e, E_BOOL, value, span), FLEX_ANY};
}

Expr *elab_make_local(Elab *e, int local, Span span) {
    Expr *x = elab_node(e, X_LOCAL, e->role->locals.items[local].type, span);
    x->index = local;
    expr_derive(e->role, x);
    return x;
}

Expr *elab_make_index(Elab *e, int index, Span span) {
    Expr *x = elab_node(e, X_INDEX, E_I32, span);
    x->index = index;
    expr_derive(e->role, x);
    return x;
}

Expr *elab_make_read(Elab *e, Access *access, Span span) {
    Expr *x = elab_node(e, X_READ, element_rows[access->type].widens, span);
    x->read = access;
    expr_derive(e->role, x);
    return x;
}

static Expr *make_cast(Elab *e, Expr *operand_, Element type, Span span) {
    Expr *x = elab_node(e, X_CAST, type, span);
    x->cast = operand_;
    expr_derive(e->role, x);
    return x;
}

Expr *elab_make_unsigned(Elab *e, uint64_t value, Span span) {
    return make_cast(e, elab_make_integer(e, E_I64, (int64_t)value, span), E_U64, span);
}

/* ---- conversions ----------------------------------------------------------------------------- */

Expr *elab_settled(Elab *e, Val v) {
    Expr *x = v.x;
    if (x->kind != X_CONST || x->type != E_F32 || isnan(x->constant.number)) return x;
    float rounded = (float)x->constant.number;
    if ((double)rounded == x->constant.number) return x;
    if (isinf(rounded)) {
        Diag *diag =
            elab_error(e, P0109, x->span, "the constant %g does not fit f32", x->constant.number);
        HELP(e, diag, "write `inf` for infinity");
        return elab_poison(e, x->span).x;
    }
    if (rounded == 0) {
        Diag *diag =
            elab_error(e, P0109, x->span, "the constant %g rounds to 0 in f32", x->constant.number);
        HELP(e, diag, "write a magnitude of at least 1.4e-45, or 0");
        return elab_poison(e, x->span).x;
    }
    return elab_val_number(e, (double)rounded, x->span).x;
}

static Expr *too_large(Elab *e, int64_t value, Element type, Span span) {
    elab_error(e, P0109, span, "the constant %lld does not fit %s", (long long)value,
               elab_type_name(type));
    return elab_poison(e, span).x;
}

static Expr *cast_constant(Elab *e, Expr *x, Element type, Span span) {
    bool from_float = x->type == E_F32;
    if (elab_is_float(type)) {
        double value = from_float ? number_rounded(type, x->constant.number)
                                  : number_from_integer(x->type, type, x->constant.integer);
        Expr *number = elab_val_number(e, value, span).x;
        return type == E_F32 ? number : make_cast(e, number, type, span);
    }
    int64_t value = x->constant.integer;
    if (from_float) {
        double number = trunc(x->constant.number);
        if (!(number >= -9.2e18 && number <= 9.2e18)) {
            elab_error(e, P0109, span, "the constant %g does not fit %s", x->constant.number,
                       elab_type_name(type));
            return elab_poison(e, span).x;
        }
        value = (int64_t)number;
    }
    if (!eval_fits(type, value)) return too_large(e, value, type, span);
    if (elab_is_narrow(type))
        return make_cast(e, elab_make_integer(e, E_I32, value, span), type, span);
    return elab_make_integer(e, type, value, span);
}

Expr *elab_cast_to(Elab *e, Val v, Element type, Span span) {
    Expr *x = v.x;
    if (x->kind == X_POISON || x->type == type) return x;
    if (x->kind == X_CONST) return cast_constant(e, x, type, span);
    if (x->kind == X_CAST && x->type != E_BOOL && element_rows[x->type].widens == type &&
        x->cast->kind == X_CONST)
        return x->cast; /* a narrowed constant, widened again */
    return make_cast(e, x, type, span);
}

Val elab_operand(Elab *e, Val v) {
    if (elab_is_poison(v)) return v;
    Element wide = element_rows[v.x->type].widens;
    if (wide != v.x->type) return (Val){elab_cast_to(e, v, wide, v.x->span), FLEX_NONE};
    return v;
}

static const char *cast_text(Elab *e, Element type, Span span) {
    return arena_printf(e->arena, "%s(%s)", elab_type_name(type), elab_text_of(e, span));
}

/* The host evaluates `ensures` and `example` in f64, so an integer combined with a float becomes
 * one. */
static bool on_host(const Elab *e) { return e->place == PLACE_CLAIM || e->place == PLACE_EXAMPLE; }

bool elab_loses_bits(const Expr *x, Element to) {
    return x->kind != X_CONST && elab_is_integer(x->type) && elab_is_integer(to) &&
           element_rows[to].bytes < element_rows[x->type].bytes;
}

/* True if one integer type converts implicitly to the other: only to a wider one of the same
 * signedness. */
static bool widens_to(Element from, Element to) {
    return (from == E_I32 && to == E_I64) || (from == E_U32 && to == E_U64);
}

Expr *elab_coerce(Elab *e, Val v, Element type, const char *what) {
    v = elab_operand(e, v);
    Expr *x = v.x;
    if (elab_is_poison(v)) return x;
    if (x->type == type) return elab_settled(e, v);
    if (type == E_BOOL) return elab_condition(e, v).x;
    if (x->type == E_BOOL) {
        Diag *diag = elab_error(e, P0107, x->span, "%s must be a number, but this is a bool", what);
        HELP(e, diag, "write a number: `%s ? 1 : 0`", elab_text_of(e, x->span));
        return elab_poison(e, x->span).x;
    }
    bool implied = elab_is_integer(x->type) && !elab_loses_bits(x, type) &&
                   (v.flex == FLEX_ANY || (v.flex == FLEX_INT && elab_is_integer(type)) ||
                    widens_to(x->type, type) || (type == E_F32 && on_host(e)));
    if (implied) return elab_cast_to(e, v, type, x->span);
    Diag *diag = elab_error(e, P0104, x->span, "%s must be %s, but this is %s", what,
                            elab_type_name(type), elab_type_name(x->type));
    if (e->role && x->kind == X_REDUCE)
        HELP(e, diag, "sum into a tile of %s, and cast where that tile is read",
             elab_type_name(x->type));
    else
        HELP(e, diag, "cast it: `%s`", cast_text(e, type, x->span));
    return elab_poison(e, x->span).x;
}

/* True if the value has the precision of the stored type already: casts to it, copies of it,
 * constants that it represents, and selects of such values; `left` bounds the traversal of
 * shared nodes. */
static bool has_precision(const Expr *x, Element type, int *left) {
    if (--*left < 0) return false;
    switch (x->kind) {
    case X_READ: return x->read->type == type || (type == E_TF32 && x->read->type == E_F32);
    case X_CAST:
        return x->type == type ||
               (x->type == element_rows[type].widens && has_precision(x->cast, type, left));
    case X_SELECT:
        return has_precision(x->select.then, type, left) &&
               has_precision(x->select.otherwise, type, left);
    case X_CONST:
        if (type == E_TF32) return true;
        return elab_is_float(type) ? x->type == E_F32 && elab_float_fits(type, x->constant.number)
                                   : eval_fits(type, x->constant.integer);
    case X_POISON: return true;
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_LOCAL:
    case X_RANK:
    case X_INDEX:
    case X_UNARY:
    case X_BINARY:
    case X_CALL:
    case X_REDUCE:
    case X_SCAN: break;
    }
    return false;
}

static Expr *stored_narrow(Elab *e, Val v, Element type, Span target, const char *target_text) {
    Element wide = element_rows[type].widens;
    Expr *x = v.x;
    if (x->type == type) return x; /* the explicit cast itself */
    v = elab_operand(e, v);
    if (elab_is_poison(v)) return v.x;
    if (x->type != wide && v.flex == FLEX_ANY && elab_is_integer(v.x->type))
        v.x = elab_cast_to(e, v, wide, x->span);
    int left = 10000;
    if (v.x->type == wide && has_precision(v.x, type, &left)) return v.x;
    Diag *diag;
    if (type == E_TF32) {
        diag = elab_error(e, P0131, x->span,
                          "only elements of f32 tensors can be copied to `%s`, which is tf32",
                          target_text);
        NOTE(e, diag, "tf32 is stored as f32, and multiplied with 10 mantissa bits");
    } else {
        diag = elab_error(e, P0105, x->span, "`%s` is %s, but this value is %s", target_text,
                          elab_type_name(type), elab_type_name(v.x->type));
        LABEL(e, diag, target, "stores %s", elab_type_name(type));
        HELP(e, diag, "write the cast: `%s`", cast_text(e, type, x->span));
    }
    return elab_poison(e, x->span).x;
}

Expr *elab_stored(Elab *e, Val v, Element type, Span target, const char *target_text) {
    if (elab_is_poison(v)) return v.x;
    bool narrow = elab_is_narrow(type) || type == E_TF32;
    if (!narrow) v = elab_operand(e, v);
    if (!narrow && v.x->type == type) return elab_settled(e, v);
    const char *text = target_text ? target_text : elab_text_of(e, target);
    if (narrow) return stored_narrow(e, v, type, target, text);
    return elab_coerce(e, v, type, arena_printf(e->arena, "`%s`", text));
}

/* ---- two values of one type ------------------------------------------------------------------ */

static void report_pair(Elab *e, const Expr *a, const Expr *b, const char *op, Span span,
                        const Expr *guilty, Element wanted) {
    Diag *diag = elab_error(e, P0104, span, "`%s` between %s and %s", op, elab_type_name(a->type),
                            elab_type_name(b->type));
    LABEL(e, diag, a->span, "this is %s", elab_type_name(a->type));
    LABEL(e, diag, b->span, "this is %s", elab_type_name(b->type));
    if (elab_is_integer(a->type) && elab_is_integer(b->type))
        NOTE(e, diag, "signed and unsigned integers are not converted to each other");
    const Local *local = guilty->kind == X_LOCAL ? &e->role->locals.items[guilty->index] : NULL;
    if (local && wanted == E_F32 && guilty->index == e->assigned) {
        HELP(e, diag, "declare it: `var %s: f32 = ..;`", local->name);
        e->role->locals.items[guilty->index].type = E_F32; /* as if it were */
        return;
    }
    HELP(e, diag, "cast one: `%s`", cast_text(e, wanted, guilty->span));
}

static bool adapt(Elab *e, Val *v, Element type) {
    v->x = elab_cast_to(e, *v, type, v->x->span);
    v->flex = FLEX_NONE;
    return v->x->kind != X_POISON;
}

static bool unify_float(Elab *e, Val *a, Val *b, Span span, const char *op) {
    Val *integer = a->x->type == E_F32 ? b : a;
    if (integer->flex == FLEX_ANY || on_host(e)) {
        bool flexible = a->flex == FLEX_ANY && b->flex == FLEX_ANY && elab_is_const(integer->x);
        if (elab_is_const(integer->x)) /* not rounded yet: constants are folded in f64 */
            integer->x =
                elab_val_number(e, (double)integer->x->constant.integer, integer->x->span).x;
        else
            adapt(e, integer, E_F32);
        if (!flexible) integer->flex = FLEX_NONE;
        return true;
    }
    report_pair(e, a->x, b->x, op, span, integer->x, E_F32);
    return false;
}

bool elab_unify(Elab *e, Val *a, Val *b, Span span, const char *op) {
    *a = elab_operand(e, *a), *b = elab_operand(e, *b);
    if (elab_is_poison(*a) || elab_is_poison(*b)) return false;
    Element ta = a->x->type, tb = b->x->type;
    if (ta == tb) return true;
    if (ta == E_BOOL || tb == E_BOOL) {
        const Expr *guilty = ta == E_BOOL ? a->x : b->x;
        Diag *diag = elab_error(e, P0107, guilty->span, "`%s` between a bool and a number", op);
        HELP(e, diag, "write a number: `%s ? 1 : 0`", elab_text_of(e, guilty->span));
        return false;
    }
    if (ta == E_F32 || tb == E_F32) return unify_float(e, a, b, span, op);
    if (a->flex && b->flex) { /* i32 and i64 */
        Val *small = ta == E_I32 ? a : b;
        Flex flex = small->flex;
        bool fine = adapt(e, small, E_I64);
        small->flex = flex;
        return fine;
    }
    if (a->flex) return adapt(e, a, tb);
    if (b->flex) return adapt(e, b, ta);
    if (widens_to(ta, tb)) return adapt(e, a, tb);
    if (widens_to(tb, ta)) return adapt(e, b, ta);
    bool left_wide = element_rows[ta].bytes >= element_rows[tb].bytes;
    report_pair(e, a->x, b->x, op, span, left_wide ? b->x : a->x, left_wide ? ta : tb);
    return false;
}

Val elab_condition(Elab *e, Val v) {
    if (elab_is_poison(v) || v.x->type == E_BOOL) return v;
    Diag *diag = elab_error(e, P0106, v.x->span, "a condition must be a bool, but this is %s",
                            elab_type_name(v.x->type));
    HELP(e, diag, "compare it: `%s != 0`", elab_text_of(e, v.x->span));
    return elab_poison(e, v.x->span);
}
