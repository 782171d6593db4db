/* Integer formulas to canonical polynomials over atoms. Formulas that differ only in spelling (K
 * * 2 + K and 3 * K, `let`s, exact divisions) get the same polynomial. Other operations (ceil,
 * min, a load from memory) become atoms, compared by the canonical forms of their operands.
 * Equal forms are equal values; the converse does not hold. */
#include "algebra/private.h"
#include "prog/rounding.h"

#include <stdlib.h>
#include <string.h>

/* ---- operations with laws -------------------------------------------------------------------- */

/* NULL: not exact for all values, or the divisor may be 0 */
static const Poly *divided_exactly(Algebra *algebra, const Poly *a, const Poly *b) {
    const Poly *exact = poly_divide_exactly(algebra, a, b);
    return exact && !divisor_may_be_zero(algebra, b) ? exact : NULL;
}

/* ceil((c * a + r) / c) = a + ceil(r / c) for every sign, so the exact part is taken out */
const Poly *form_ceil(Algebra *algebra, const Poly *a, const Poly *b, Element type) {
    const Poly *exact = divided_exactly(algebra, a, b);
    int64_t by;
    if (exact) return exact;
    if (!a || !b) return NULL;
    const Poly *whole = poly_constant(algebra, 0);
    if (poly_is_constant(b, &by) && by > 0) {
        Poly *rest = poly_new(algebra, a->count);
        for (int i = 0; i < a->count; i++) {
            Poly *one = poly_new(algebra, 1);
            Term term = a->terms[i];
            int64_t remainder =
                term.count > 0 && term.coef % by != 0 ? term.coef : ((term.coef % by) + by) % by;
            one->count = 1;
            one->terms[0] = term;
            one->terms[0].coef = (term.coef - remainder) / by;
            if (one->terms[0].coef != 0) whole = poly_sum(algebra, whole, one, 1);
            term.coef = remainder;
            if (remainder != 0) rest->terms[rest->count++] = term;
        }
        int64_t left;
        if (poly_is_constant(rest, &left))
            return poly_sum(algebra, whole, poly_constant(algebra, left > 0), 1);
        a = rest;
    }
    return poly_sum(algebra, whole,
                    algebra_operation(algebra, ATOM_CEIL, "ceil", type, (const Poly *[]){a, b}, 2),
                    1);
}

const Poly *form_div(Algebra *algebra, const Poly *a, const Poly *b, Element type) {
    const Poly *exact = divided_exactly(algebra, a, b);
    int64_t left, right;
    if (exact) return exact;
    if (poly_is_constant(a, &left) && poly_is_constant(b, &right) && right != 0 && right != -1)
        return poly_constant(algebra, left / right);
    return algebra_operation(algebra, ATOM_DIV, "div", type, (const Poly *[]){a, b}, 2);
}

const Poly *form_mod(Algebra *algebra, const Poly *a, const Poly *b, Element type) {
    int64_t left, right;
    if (divided_exactly(algebra, a, b)) return poly_constant(algebra, 0);
    if (poly_is_constant(a, &left) && poly_is_constant(b, &right) && right != 0 && right != -1)
        return poly_constant(algebra, left % right);
    return algebra_operation(algebra, ATOM_MOD, "mod", type, (const Poly *[]){a, b}, 2);
}

/* True if the operands of an operation that commutes are not in the one order */
static bool swaps(Algebra *algebra, const Poly *a, const Poly *b) {
    Str left = str_new(algebra->arena), right = str_new(algebra->arena);
    poly_add_key(&left, a);
    poly_add_key(&right, b);
    return strcmp(left.text, right.text) > 0;
}

const Poly *form_extreme(Algebra *algebra, bool is_max, const Poly *a, const Poly *b,
                         Element type) {
    int64_t distance;
    if (poly_is_constant(poly_sum(algebra, a, b, -1), &distance))
        return (distance > 0) == is_max ? a : b;
    if (!a || !b) return NULL;
    bool swap = swaps(algebra, a, b);
    return algebra_operation(algebra, is_max ? ATOM_MAX : ATOM_MIN, is_max ? "max" : "min", type,
                             (const Poly *[]){swap ? b : a, swap ? a : b}, 2);
}

const Poly *poly_extreme(Algebra *algebra, bool is_max, const Poly *a, const Poly *b) {
    return form_extreme(algebra, is_max, a, b, E_I64);
}

const Poly *form_opaque(Algebra *algebra, const char *tag, Element type, const Poly *const *args,
                        int count) {
    static const char *const commutative[] = {"f.add", "f.mul", "f.fma", "f.min",
                                              "f.max", "eq",    "and",   "or"};
    const Poly *turned[3] = {NULL, NULL, NULL};
    for (int i = 0; i < count; i++)
        if (!(turned[i] = args[i])) return NULL;
    for (size_t i = 0; i < COUNT_OF(commutative); i++)
        if (strcmp(tag, commutative[i]) == 0 && swaps(algebra, args[0], args[1]))
            turned[0] = args[1], turned[1] = args[0];
    return algebra_operation(algebra, ATOM_OPAQUE, tag, type, turned, count);
}

/* A formula if both are numbers. An atom has, of a condition and its opposite, the one whose last
 * term is positive. */
const Poly *poly_select(Algebra *algebra, const Poly *truth, const Poly *a, const Poly *b,
                        Element type) {
    int64_t known, one, other, more;
    if (!truth || !a || !b) return NULL;
    if (poly_is_constant(truth, &known)) return known ? a : b;
    if (poly_equal(a, b)) return a;
    if (poly_is_constant(a, &one) && poly_is_constant(b, &other) &&
        !__builtin_sub_overflow(one, other, &more))
        return poly_sum(algebra, b, truth, more);
    bool opposite = truth->terms[truth->count - 1].coef < 0;
    if (opposite) truth = poly_sum(algebra, poly_constant(algebra, 1), truth, -1);
    const Poly *const args[] = {truth, opposite ? b : a, opposite ? a : b};
    return truth ? algebra_operation(algebra, ATOM_SELECT, "select", type, args, 3) : NULL;
}

/* ---- expressions ----------------------------------------------------------------------------- */

/* A comparison of integers tests whether a difference is >= 0, and conditions are
 * numbers 0 and 1: every spelling of a condition gives the same polynomial. NULL: compares
 * floats, or is too large. */
static const Poly *truth_poly(Algebra *algebra, const Expr *expr, const Poly *left,
                              const Poly *right) {
    Element type = expr->binary.left->type;
    if (!type_is_integer(type) && type != E_BOOL) return NULL;
    const Poly *less = poly_sum(algebra, left, right, -1),
               *more = poly_sum(algebra, right, left, -1);
    const Poly *one = poly_constant(algebra, 1), *equal;
    switch (expr->binary.op) {
    case OP_LT: return poly_truth(algebra, poly_offset(algebra, more, -1));
    case OP_LE: return poly_truth(algebra, more);
    case OP_GT: return poly_truth(algebra, poly_offset(algebra, less, -1));
    case OP_GE: return poly_truth(algebra, less);
    case OP_EQ:
    case OP_NE:
        equal = poly_sum(algebra, poly_truth(algebra, less),
                         poly_truth(algebra, poly_offset(algebra, less, -1)), -1);
        return expr->binary.op == OP_EQ ? equal : poly_sum(algebra, one, equal, -1);
    case OP_AND: return poly_product(algebra, left, right);
    case OP_OR:
        return poly_sum(algebra, poly_sum(algebra, left, right, 1),
                        poly_product(algebra, left, right), -1);
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_MOD: break;
    }
    return NULL;
}

/* A launch computes with integers of all types in the same way. */
static Element exact_type(const Algebra *algebra, const Expr *expr) {
    return algebra->launched && type_is_integer(expr->type) ? E_I64 : expr->type;
}

/* `+ - *`: no value is observed, so truncation is harmless. NULL: another operation, or too
 * large */
static const Poly *sum_or_product(Algebra *algebra, const Role *role, const Expr *expr) {
    BinaryOp op = expr->binary.op;
    if (!type_is_integer(expr->type) || (op != OP_ADD && op != OP_SUB && op != OP_MUL)) return NULL;
    const Poly *left = algebra_residue(algebra, role, expr->binary.left);
    const Poly *right = algebra_residue(algebra, role, expr->binary.right);
    return op == OP_MUL ? poly_product(algebra, left, right)
                        : poly_sum(algebra, left, right, op == OP_ADD ? 1 : -1);
}

static bool is_float(Element type) { return element_rows[type].kind == ELEMENT_FLOAT; }

static const Poly *opaque_pair(Algebra *algebra, const char *name, Element type, const Poly *a,
                               const Poly *b) {
    return form_opaque(algebra, name, type, (const Poly *[]){a, b}, 2);
}

/* a * b + c, rounded once */
static const Poly *fused_poly(Algebra *algebra, const Poly *a, const Poly *b, const Poly *c) {
    return form_opaque(algebra, "f.fma", E_F32, (const Poly *[]){a, b, c}, 3);
}

static const Poly *float_constant(Algebra *algebra, double number, Element type) {
    return algebra_operation(algebra, ATOM_OPAQUE, arena_printf(algebra->arena, "#%a", number),
                             type, NULL, 0);
}

static const Poly *float_negated(Algebra *algebra, const Poly *poly) {
    return algebra_operation(algebra, ATOM_OPAQUE, "f.neg", E_F32, &poly, 1);
}

/* A float operation is a function of its operands without laws, because it rounds. Its name is that
 * of the instructions that compute it. */
static const Poly *float_poly(Algebra *algebra, const Role *role, const Expr *expr) {
    static const char *const own[] = {[OP_ADD] = "f.add",
                                      [OP_SUB] = "f.sub",
                                      [OP_MUL] = "f.mul",
                                      [OP_DIV] = "f.div",
                                      [OP_MOD] = "f.mod"};
    Rounding rounding = rounding_of(role, expr);
    const Poly *a = algebra_poly(algebra, role, rounding.a),
               *b = algebra_poly(algebra, role, rounding.b), *c;
    bool exact = expr->binary.op == OP_DIV && expr->binary.accuracy == ACCURACY_EXACT;
    switch (rounding.form) {
    case ROUNDING_FUSED:
        c = algebra_poly(algebra, role, rounding.c);
        if (expr->binary.op == OP_SUB) c = float_negated(algebra, c);
        return fused_poly(algebra, a, b, c);
    case ROUNDING_INVERSE:
        return opaque_pair(algebra, "f.mul", E_F32, a,
                           float_constant(algebra, rounding.inverse, E_F32));
    case ROUNDING_SCALED: return opaque_pair(algebra, "f.div.scaled", E_F32, a, b);
    case ROUNDING_OWN: break;
    }
    return opaque_pair(algebra, exact ? "f.div.exact" : own[expr->binary.op], E_F32, a, b);
}

/* Of floats, or too large for a polynomial. a > b is b < a, but not the opposite of a <= b: NaN. */
static const Poly *opaque_truth(Algebra *algebra, const Expr *expr, const Poly *a, const Poly *b) {
    const Poly *equal;
    switch (expr->binary.op) {
    case OP_LT: return opaque_pair(algebra, "lt", E_BOOL, a, b);
    case OP_GT: return opaque_pair(algebra, "lt", E_BOOL, b, a);
    case OP_LE: return opaque_pair(algebra, "le", E_BOOL, a, b);
    case OP_GE: return opaque_pair(algebra, "le", E_BOOL, b, a);
    case OP_EQ:
    case OP_NE:
        equal = opaque_pair(algebra, "eq", E_BOOL, a, b);
        if (expr->binary.op == OP_EQ) return equal;
        return poly_sum(algebra, poly_constant(algebra, 1), equal, -1);
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_MOD: break;
    case OP_AND: return opaque_pair(algebra, "and", E_BOOL, a, b);
    case OP_OR: return opaque_pair(algebra, "or", E_BOOL, a, b);
    }
    return NULL;
}

static const Poly *binary_poly(Algebra *algebra, const Role *role, const Expr *expr) {
    BinaryOp op = expr->binary.op;
    if (is_float(expr->type)) return float_poly(algebra, role, expr);
    const Poly *sum = sum_or_product(algebra, role, expr);
    if (sum) return sum;
    const Poly *left = algebra_poly(algebra, role, expr->binary.left);
    const Poly *right = algebra_poly(algebra, role, expr->binary.right);
    int64_t by; /* by -1 the least number gives itself, because its negation wraps */
    bool turns = type_is_integer(expr->type) && poly_is_constant(right, &by) && by == -1;
    if (turns && op == OP_DIV) return poly_minus(algebra, left);
    if (turns && op == OP_MOD) return poly_constant(algebra, 0);
    if (type_is_integer(expr->type) && op == OP_DIV)
        return form_div(algebra, left, right, exact_type(algebra, expr));
    if (type_is_integer(expr->type) && op == OP_MOD)
        return form_mod(algebra, left, right, exact_type(algebra, expr));
    const Poly *truth = truth_poly(algebra, expr, left, right);
    if (truth) return truth;
    truth = opaque_truth(algebra, expr, left, right);
    return is_float(expr->binary.left->type) ? truth : poly_cut(algebra, truth);
}

/* k for 2^k, k < 63; -1: another number */
static int power_of(int64_t value) {
    if (value <= 0 || (value & (value - 1)) != 0) return -1;
    return __builtin_ctzll((uint64_t)value);
}

/* a >> k is floor(a / 2^k) of the value with its sign, and a & 2^k - 1 the rest, which is also that
 * of any residue. NULL: not of this form */
static const Poly *bits_poly(Algebra *algebra, const Role *role, const Expr *expr, const Poly *b) {
    Intrinsic which = expr->call.which;
    int64_t by;
    if (algebra->launched || !poly_is_constant(b, &by)) return NULL;
    const Poly *a = which == IN_shr ? algebra_poly(algebra, role, expr->call.args[0])
                                    : algebra_residue(algebra, role, expr->call.args[0]);
    int power = which == IN_shr ? (by >= 0 && by < 31 ? (int)by : -1)
                : which == IN_bit_and && by >= 0 && by < INT32_MAX ? power_of(by + 1)
                                                                   : -1;
    if (power < 0 || !a) return NULL;
    const Poly *divisor = poly_constant(algebra, INT64_C(1) << power),
               *quotient = poly_floor(algebra, a, divisor);
    if (which == IN_shr) return quotient;
    return poly_sum(algebra, a, poly_product(algebra, quotient, divisor), -1);
}

static const Poly *call_poly(Algebra *algebra, const Role *role, const Expr *expr) {
    const Poly *args[3] = {NULL, NULL, NULL};
    Element type = exact_type(algebra, expr);
    for (int i = 0; i < expr->call.count; i++)
        args[i] = algebra_poly(algebra, role, expr->call.args[i]);
    if (type_is_integer(type)) {
        if (expr->call.which == IN_ceil_div) return form_ceil(algebra, args[0], args[1], type);
        if (expr->call.which == IN_min) return form_extreme(algebra, false, args[0], args[1], type);
        if (expr->call.which == IN_max) return form_extreme(algebra, true, args[0], args[1], type);
    }
    if (expr->call.which == IN_bit_and || expr->call.which == IN_shr) {
        const Poly *known = bits_poly(algebra, role, expr, args[1]);
        if (known) return known;
    }
    if (expr->call.which == IN_fma && is_float(expr->type))
        return fused_poly(algebra, args[0], args[1], args[2]);
    if (expr->call.which == IN_min) return opaque_pair(algebra, "f.min", type, args[0], args[1]);
    if (expr->call.which == IN_max) return opaque_pair(algebra, "f.max", type, args[0], args[1]);
    bool commutes = expr->call.which == IN_bit_and || expr->call.which == IN_bit_or ||
                    expr->call.which == IN_bit_xor || expr->call.which == IN_mulhi;
    if (commutes && args[0] && args[1] && swaps(algebra, args[0], args[1])) {
        const Poly *first = args[0];
        args[0] = args[1], args[1] = first;
    }
    /* A launch does not truncate values that kernels truncate */
    const char *where = algebra->launched && type_is_integer(expr->type) ? "launch" : "call";
    Accuracy accuracy = intrinsic_rows[expr->call.which].ulp != 0 ? expr->call.accuracy
                                                                  : ACCURACY_FAST; /* no matter */
    return algebra_operation(algebra, ATOM_OPAQUE,
                             arena_printf(algebra->arena, "%s%d.%d.%d", where,
                                          (int)expr->call.which, (int)accuracy,
                                          (int)expr->call.args[0]->type),
                             expr->type, args, expr->call.count);
}

/* The residue of the local's value */
static const Poly *local_poly(Algebra *algebra, const Role *role, const Expr *expr) {
    if (!role || expr->index < 0) return atom_by_place(algebra, expr, expr->type, true);
    const Local *local = &role->locals.items[expr->index];
    const Bindings *bindings = &algebra->bindings;
    if (role == algebra->role && bindings->locals && bindings->locals[expr->index]) {
        algebra->held = true;
        return bindings->locals[expr->index];
    }
    if (local->kind == LOCAL_LET && local->value) {
        const Poly *value = algebra_residue(algebra, role, local->value);
        if (!poly_changes(algebra, value)) return value; /* otherwise it may have changed */
    }
    const Poly *poly = poly_atom(algebra, algebra_atom_local(algebra, role, expr->index));
    algebra->held |= local->kind == LOCAL_VAR || local->kind == LOCAL_LET;
    return poly;
}

/* A load from a tensor that no role writes is a function of its subscripts; other memory may
 * change. */
static const Poly *read_poly(Algebra *algebra, const Role *role, const Expr *expr) {
    const Access *read = expr->read;
    /* a narrow one is widened by the load */
    Element type = type_is_integer(read->type) ? read->type : expr->type;
    if (read->space != SPACE_GLOBAL || read->object < 0 || read->rank > 3 ||
        algebra->prog->params.items[read->object].mode != PARAM_IN)
        return atom_by_place(algebra, expr, type, true);
    const Poly *subs[3];
    for (int i = 0; i < read->rank; i++) subs[i] = algebra_poly(algebra, role, read->subs[i]);
    return algebra_operation(algebra, ATOM_OPAQUE,
                             arena_printf(algebra->arena, "read%d", read->object), type, subs,
                             read->rank);
}

static const Poly *cast_poly(Algebra *algebra, const Role *role, const Expr *expr) {
    Element from = expr->cast->type, to = expr->type;
    bool integers = type_is_integer(to) && (type_is_integer(from) || from == E_BOOL);
    if (from == to || (integers && element_rows[to].bytes <= element_rows[from].bytes))
        return algebra_residue(algebra, role, expr->cast);
    const Poly *value = algebra_poly(algebra, role, expr->cast);
    if (integers) return value;
    return algebra_operation(algebra, ATOM_OPAQUE,
                             arena_printf(algebra->arena, "cast%d.%d", (int)to, (int)from), to,
                             &value, 1);
}

static const Poly *unary_poly(Algebra *algebra, const Role *role, const Expr *expr) {
    if (expr->unary.op == OP_NEG && type_is_integer(expr->type))
        return poly_minus(algebra, algebra_residue(algebra, role, expr->unary.operand));
    const Poly *operand = algebra_poly(algebra, role, expr->unary.operand);
    if (expr->unary.op == OP_NOT) return poly_sum(algebra, poly_constant(algebra, 1), operand, -1);
    return float_negated(algebra, operand);
}

static const Poly *constant_poly(Algebra *algebra, const Expr *expr) {
    if (type_is_integer(expr->type) || expr->type == E_BOOL)
        return poly_constant(algebra, expr->constant.integer);
    return float_constant(algebra, expr->constant.number, expr->type);
}

/* The residue */
static const Poly *form(Algebra *algebra, const Role *role, Expr *expr) {
    const Poly *args[3] = {NULL, NULL, NULL};
    switch (expr->kind) {
    case X_CONST: return constant_poly(algebra, expr);
    case X_SYMBOL:
        return poly_atom(algebra, atom_simple(algebra, ATOM_SYMBOL, expr->index, NULL, expr->type));
    case X_PARAM:
        return algebra_operation(algebra, ATOM_OPAQUE,
                                 arena_printf(algebra->arena, "param%d", expr->index), expr->type,
                                 args, 0);
    case X_AXIS:
        return poly_atom(algebra, atom_simple(algebra, ATOM_AXIS, expr->index, NULL, expr->type));
    case X_LOCAL: return local_poly(algebra, role, expr);
    case X_RANK:
        if (!role) return atom_by_place(algebra, expr, expr->type, false);
        if (role->instances == 1) return poly_constant(algebra, 0);
        return poly_atom(algebra, algebra_atom_rank(algebra, role));
    case X_INDEX: return poly_atom(algebra, algebra_atom_index(algebra, expr->index));
    case X_READ: return read_poly(algebra, role, expr);
    case X_UNARY: return unary_poly(algebra, role, expr);
    case X_BINARY: return binary_poly(algebra, role, expr);
    case X_SELECT:
        args[0] = algebra_poly(algebra, role, expr->select.condition);
        args[1] = algebra_poly(algebra, role, expr->select.then);
        args[2] = algebra_poly(algebra, role, expr->select.otherwise);
        return poly_select(algebra, args[0], args[1], args[2], exact_type(algebra, expr));
    case X_CAST: return cast_poly(algebra, role, expr);
    case X_CALL: return call_poly(algebra, role, expr);
    case X_REDUCE:
    case X_SCAN:
    case X_POISON: return atom_by_place(algebra, expr, expr->type, true);
    }
    return NULL;
}

/* ---- cache of formulas ----------------------------------------------------------------------- */

/* version of formulas without variables */
#define EVERYWHERE (-1)
#define LAUNCHED   (-2) /* of formulas that are evaluated at launch */

static const IndexSpace *space_of(const Algebra *algebra, const Expr *expr) {
    return expr->indexes ? algebra->space : NULL;
}

static size_t memo_slot(const Algebra *algebra, const Expr *expr, int version,
                        const IndexSpace *space) {
    /* mixed: else the versions of one expression lie where its neighbours do */
    uint64_t key =
        ((uintptr_t)expr >> 4) + (uint64_t)version * 40503u + ((uintptr_t)space >> 4) * 7;
    size_t slot = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (algebra->memo_capacity - 1);
    for (;; slot = (slot + 1) & (algebra->memo_capacity - 1)) {
        const struct Memo *memo = &algebra->memo[slot];
        if (!memo->expr || (memo->expr == expr && memo->version == version && memo->space == space))
            return slot;
    }
}

static struct Memo *remember(Algebra *algebra, struct Memo made) {
    if (algebra->memo_count * 4 >= algebra->memo_capacity * 3) {
        struct Memo *old = algebra->memo;
        size_t count = algebra->memo_capacity;
        algebra->memo_capacity = count ? count * 2 : 32;
        algebra->memo = NEW_ARRAY(algebra->arena, struct Memo, algebra->memo_capacity);
        for (size_t i = 0; i < count; i++)
            if (old[i].expr)
                algebra->memo[memo_slot(algebra, old[i].expr, old[i].version, old[i].space)] =
                    old[i];
    }
    struct Memo *place = &algebra->memo[memo_slot(algebra, made.expr, made.version, made.space)];
    algebra->memo_count++;
    *place = made;
    return place;
}

/* NULL: not in the cache for this version */
static struct Memo *find_made(Algebra *algebra, const Expr *expr) {
    if (!algebra->memo_capacity) return NULL;
    const IndexSpace *space = space_of(algebra, expr);
    int version = algebra->launched ? LAUNCHED : EVERYWHERE;
    for (;; version = algebra->bindings.version) {
        struct Memo *found = &algebra->memo[memo_slot(algebra, expr, version, space)];
        if (found->expr) {
            algebra->held |= version != EVERYWHERE;
            return found;
        }
        if (version != EVERYWHERE) return NULL;
    }
}

/* Of an expression that is not in the cache; valid until the next one is added */
static struct Memo *make_residue(Algebra *algebra, const Role *role, Expr *expr) {
    bool held = algebra->held;
    algebra->held = false;
    const Poly *poly = form(algebra, role, expr);
    if (!poly) poly = poly_cut(algebra, atom_by_place(algebra, expr, expr->type, true));
    int version = algebra->launched ? LAUNCHED
                  : algebra->held   ? algebra->bindings.version
                                    : EVERYWHERE;
    algebra->held |= held;
    return remember(algebra, (struct Memo){expr, version, space_of(algebra, expr), poly, NULL});
}

const Poly *algebra_residue(Algebra *algebra, const Role *role, Expr *expr) {
    if (!expr) return NULL;
    const struct Memo *found = find_made(algebra, expr);
    return found ? found->residue : make_residue(algebra, role, expr)->residue;
}

const Poly *algebra_poly(Algebra *algebra, const Role *role, Expr *expr) {
    if (!expr || algebra->launched || !type_is_integer(expr->type))
        return algebra_residue(algebra, role, expr);
    struct Memo *made = find_made(algebra, expr);
    if (!made) made = make_residue(algebra, role, expr);
    if (made->value) return made->value;
    const Poly *value = algebra_value(algebra, made->residue, expr->type);
    if (!value) value = poly_cut(algebra, atom_by_place(algebra, expr, expr->type, true));
    find_made(algebra, expr)->value = value; /* the table may have been reallocated */
    return value;
}

const Poly *algebra_subscript(Algebra *algebra, const Role *role, const Access *access, int d) {
    const Affine *affine = &access->affine[d];
    if (!affine->is) return algebra_poly(algebra, role, access->subs[d]);
    const Poly *sum = algebra_poly(algebra, role, affine->base);
    for (int i = 0; i < PROG_MAX_INDEXES; i++)
        if (affine->coef[i])
            sum = poly_sum(algebra, sum, poly_atom(algebra, algebra_atom_index(algebra, i)),
                           affine->coef[i]);
    return sum;
}

const Poly *algebra_launched(Algebra *algebra, Expr *expr) {
    bool before = algebra->launched;
    algebra->launched = true;
    const Poly *poly = algebra_residue(algebra, NULL, expr);
    algebra->launched = before;
    return poly;
}
