/* Normal forms of integer formulas: selects, quotients and remainders are expressed by two kinds
 * of atoms, TRUTH (is it >= 0?) and FLOOR (a quotient rounded down), so that only the laws of
 * these two are needed. Takes and returns polynomials, of the same value if all divisors of
 * `ceil` are positive, as the language requires. */
#include "algebra/private.h"

#include <string.h>

/* most values of an operand whose quotient is expressed by thresholds */
#define THRESHOLDS_MOST 64
/* most terms of a sum that are split off for a constant in its limit */
#define PEELED_MOST 16

static int64_t constant_of(const Poly *poly) {
    return poly->count && poly->terms[0].count == 0 ? poly->terms[0].coef : 0;
}

static const Poly *one_term(Algebra *algebra, const Term *term) {
    Poly *poly = arena_alloc(algebra->arena, sizeof(Poly) + sizeof(Term));
    poly->count = 1;
    poly->terms[0] = *term;
    return poly;
}

/* Least and greatest value of a sum of truths and remainders; false: it has other atoms */
static bool narrow(const Algebra *algebra, const Poly *poly, int64_t *least, int64_t *most) {
    *least = *most = 0;
    for (int i = 0; i < poly->count; i++) {
        int64_t coef = poly->terms[i].coef, limit = 1, to;
        for (int k = 0; k < poly->terms[i].count; k++) {
            const Atom *atom = &algebra->atoms.items[poly->terms[i].atoms[k]];
            int64_t by;
            if (atom->type == E_BOOL) continue;
            if (atom->kind != ATOM_REST || !poly_is_constant(atom->args[0], &by) ||
                __builtin_mul_overflow(limit, by - 1, &limit))
                return false;
        }
        if (__builtin_mul_overflow(coef, limit, &to)) return false;
        int64_t *low = coef < 0 ? least : most;
        if (__builtin_add_overflow(*low, to, low)) return false;
        if (poly->terms[i].count == 0 &&
            __builtin_add_overflow(coef < 0 ? *most : *least, to, coef < 0 ? most : least))
            return false;
    }
    return true;
}

/* ---- truths ---------------------------------------------------------------------------------- */

const Poly *poly_truth(Algebra *algebra, const Poly *poly) {
    int64_t value, least, most;
    if (!poly) return NULL;
    if (poly_is_constant(poly, &value)) return poly_constant(algebra, value >= 0);
    int64_t common = poly_content(poly);
    if (common > 1) poly = poly_divided(algebra, poly, common, true);
    const Term *last = &poly->terms[poly->count - 1];
    if (last->coef < 0) { /* one form for a question and its opposite */
        const Poly *opposite = poly_offset(algebra, poly_minus(algebra, poly), -1);
        return opposite
                   ? poly_sum(algebra, poly_constant(algebra, 1), poly_truth(algebra, opposite), -1)
                   : NULL;
    }
    if (narrow(algebra, poly, &least, &most)) {
        if (least >= 0 || most < 0) return poly_constant(algebra, least >= 0);
        if (last->count == 1 && poly->count == 1 + (constant_of(poly) != 0) &&
            algebra->atoms.items[last->atoms[0]].type == E_BOOL)
            return poly_atom(algebra, last->atoms[0]);
    }
    return algebra_operation(algebra, ATOM_TRUTH, "truth", E_BOOL, (const Poly *[]){poly}, 1);
}

/* A truth in the polynomial that follows from the decided one: both are about the same sum, with
 * another constant. -1: none */
static int follows(Algebra *algebra, const Poly *poly, const Poly *of, bool value,
                   Visited *visited) {
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++) {
            const Atom atom = algebra->atoms.items[poly->terms[i].atoms[k]];
            int64_t more;
            if (visit_again(algebra, visited, poly->terms[i].atoms[k])) continue;
            if (atom.kind == ATOM_TRUTH &&
                poly_is_constant(poly_sum(algebra, atom.args[0], of, -1), &more) &&
                (value ? more >= 0 : more <= 0))
                return poly->terms[i].atoms[k];
            for (int a = 0; a < 3 && atom.args[a]; a++) {
                int inner = follows(algebra, atom.args[a], of, value, visited);
                if (inner >= 0) return inner;
            }
        }
    return -1;
}

const Poly *poly_decided(Algebra *algebra, const Poly *poly, int truth, bool value) {
    const Poly *of =
        algebra->atoms.items[truth].kind == ATOM_TRUTH ? algebra->atoms.items[truth].args[0] : NULL;
    poly = poly_replace(algebra, poly, truth, poly_constant(algebra, value));
    for (int other; poly && of && (other = follows(algebra, poly, of, value, &(Visited){0})) >= 0;)
        poly = poly_replace(algebra, poly, other, poly_constant(algebra, value));
    return poly;
}

static const Poly *chosen(Algebra *algebra, const Poly *truth, const Poly *then,
                          const Poly *otherwise) {
    return poly_sum(algebra, otherwise,
                    poly_product(algebra, truth, poly_sum(algebra, then, otherwise, -1)), 1);
}

const Poly *poly_spelled(Algebra *algebra, int extreme) {
    const Atom atom = algebra->atoms.items[extreme];
    bool is_max = atom.kind == ATOM_MAX;
    return chosen(algebra, poly_truth(algebra, poly_sum(algebra, atom.args[1], atom.args[0], -1)),
                  atom.args[is_max], atom.args[!is_max]);
}

/* ---- quotients ------------------------------------------------------------------------------- */

/* floor(floor(a / d) + y, c) = floor((a + d * y) / (c * d)) */
static const Poly *flattened(Algebra *algebra, const Poly *poly, int64_t by) {
    for (int i = 0; i < poly->count; i++) {
        const Term *term = &poly->terms[i];
        int64_t inner, product;
        if (term->count != 1 || term->coef != 1) continue;
        const Atom atom = algebra->atoms.items[term->atoms[0]];
        if (atom.kind != ATOM_FLOOR || !poly_is_constant(atom.args[1], &inner) ||
            __builtin_mul_overflow(inner, by, &product) || product > INT32_MAX)
            continue;
        const Poly *others = poly_sum(algebra, poly, poly_atom(algebra, term->atoms[0]), -1);
        return poly_floor(algebra, poly_sum(algebra, atom.args[0], others, inner),
                          poly_constant(algebra, product));
    }
    return NULL;
}

/* floor((c * a + r) / c) = a + floor(r / c) */
static const Poly *floor_by_constant(Algebra *algebra, const Poly *poly, int64_t by) {
    int64_t value, least, most;
    const Poly *whole = poly_divided(algebra, poly, by, true),
               *rest = poly_divided(algebra, poly, by, false);
    if (poly_is_constant(rest, &value)) return whole;
    /* a common divisor of all terms except the constant */
    int64_t common = common_divisor(poly_content(rest), by);
    if (common > 1) {
        rest = poly_divided(algebra, rest, common, true);
        by /= common;
        if (by == 1) return poly_sum(algebra, whole, rest, 1);
    }
    const Poly *flat = flattened(algebra, rest, by);
    if (flat) return poly_sum(algebra, whole, flat, 1);
    if (narrow(algebra, rest, &least, &most) &&
        floor_of(most, by) - floor_of(least, by) <= THRESHOLDS_MOST) {
        const Poly *sum = poly_offset(algebra, whole, floor_of(least, by));
        for (int64_t i = floor_of(least, by) + 1; i <= floor_of(most, by); i++)
            sum =
                poly_sum(algebra, sum, poly_truth(algebra, poly_offset(algebra, rest, -i * by)), 1);
        return sum;
    }
    return poly_sum(algebra, whole,
                    algebra_operation(algebra, ATOM_FLOOR, "floor", E_I64,
                                      (const Poly *[]){rest, poly_constant(algebra, by)}, 2),
                    1);
}

const Poly *poly_floor(Algebra *algebra, const Poly *poly, const Poly *by) {
    int64_t constant;
    if (!poly || !by) return NULL;
    if (poly_is_constant(by, &constant)) {
        if (constant > 0) return floor_by_constant(algebra, poly, constant);
        /* undefined in the language */
        return algebra_operation(algebra, ATOM_DIV, "div", E_I64, (const Poly *[]){poly, by}, 2);
    }
    const Poly *whole = poly_constant(algebra, 0), *rest = poly;
    for (int i = 0; i < poly->count && by->count == 1 && whole && rest; i++) { /* by * a + r */
        const Term *term = &poly->terms[i], *divisor = &by->terms[0];
        Term quotient = {.coef = term->coef};
        int used = 0;
        for (int k = 0; k < term->count; k++) {
            if (used < divisor->count && term->atoms[k] == divisor->atoms[used])
                used++;
            else
                quotient.atoms[quotient.count++] = term->atoms[k];
        }
        if (used != divisor->count || divisor->coef <= 0 || term->coef % divisor->coef != 0)
            continue;
        quotient.coef = term->coef / divisor->coef;
        whole = poly_sum(algebra, whole, one_term(algebra, &quotient), 1);
        rest = poly_sum(algebra, rest, one_term(algebra, term), -1);
    }
    if (!rest || (rest->count == 0)) return whole;
    return poly_sum(
        algebra, whole,
        algebra_operation(algebra, ATOM_FLOOR, "floor", E_I64, (const Poly *[]){rest, by}, 2), 1);
}

/* Nothing may be concluded from a division by 0. */
static bool is_positive(Algebra *algebra, const Poly *divisor) {
    bool may_be_zero = divisor_may_be_zero(algebra, divisor);
    return bounds_prove(algebra, may_be_zero ? poly_offset(algebra, divisor, -1) : divisor);
}

/* True unless the divisor is proved not to be 0; a remainder or a `ceil` is then not expanded. */
static bool stays_divided(Algebra *algebra, const Poly *divisor) {
    return divisor_may_be_zero(algebra, divisor) && !is_positive(algebra, divisor);
}

/* C's quotient is rounded towards zero. */
static const Poly *quotient(Algebra *algebra, const Poly *a, const Poly *b) {
    int64_t by;
    const Poly *opposite = poly_minus(algebra, a);
    if (!a || !b || !opposite) return NULL;
    bool constant = poly_is_constant(b, &by);
    if (constant && by == 0)
        return algebra_operation(algebra, ATOM_DIV, "div", E_I64, (const Poly *[]){a, b}, 2);
    if (constant && by < 0)
        return by == INT64_MIN
                   ? NULL
                   : poly_minus(algebra, quotient(algebra, a, poly_constant(algebra, -by)));
    if (!constant && !is_positive(algebra, b))
        return algebra_operation(algebra, ATOM_DIV, "div", E_I64, (const Poly *[]){a, b}, 2);
    if (bounds_prove(algebra, a)) return poly_floor(algebra, a, b);
    if (bounds_prove(algebra, opposite))
        return poly_minus(algebra, poly_floor(algebra, opposite, b));
    return chosen(algebra, poly_truth(algebra, a), poly_floor(algebra, a, b),
                  poly_minus(algebra, poly_floor(algebra, opposite, b)));
}

/* ---- sums ------------------------------------------------------------------------------------ */

static int outermost_bound(const Algebra *algebra, const Poly *poly) {
    int best = -1, index = 0;
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++) {
            const Atom *atom = &algebra->atoms.items[poly->terms[i].atoms[k]];
            if (atom->bounds > index) index = atom->bounds, best = atom->bound;
        }
    return best;
}

/* A constant in the limit adds or removes that many terms. */
const Poly *poly_sums(Algebra *algebra, const Poly *limit, const Poly *body) {
    if (!limit || !body) return NULL;
    int64_t constant = constant_of(limit);
    int bound = outermost_bound(algebra, body);
    if (bound < 0) return poly_product(algebra, limit, body);
    if (constant > PEELED_MOST || constant < -PEELED_MOST) constant = 0;
    const Poly *base = poly_offset(algebra, limit, -constant);
    const Poly *sum = poly_constant(algebra, 0);
    for (int64_t i = constant < 0 ? constant : 0; i < (constant < 0 ? 0 : constant); i++)
        sum = poly_sum(algebra, sum,
                       poly_replace(algebra, body, bound, poly_offset(algebra, base, i)),
                       constant < 0 ? -1 : 1);
    int64_t zero;
    if (!base || (poly_is_constant(base, &zero) && zero == 0)) return base ? sum : NULL;
    return poly_sum(
        algebra, sum,
        algebra_operation(algebra, ATOM_SUM, "sum", E_I64, (const Poly *[]){base, body}, 2), 1);
}

/* ---- normal form ----------------------------------------------------------------------------- */

#define CACHED 64

/* Normal forms of atoms that occur often in one formula */
typedef struct Normals {
    Algebra *algebra;
    int ids[CACHED]; /* 1 + id */
    const Poly *made[CACHED];
} Normals;

static const Poly *normal(Normals *n, const Poly *poly);

/* The same operation of other operands */
static const Poly *operation_again(Algebra *algebra, const Atom *atom, const Poly *const *args,
                                   int count) {
    const char *tag = arena_copy(algebra->arena, atom->key, strcspn(atom->key, "("));
    return algebra_operation(algebra, atom->kind, tag, atom->type, args, count);
}

static const Poly *make_normal(Normals *n, int id) {
    Algebra *algebra = n->algebra;
    const Atom atom = algebra->atoms.items[id];
    const Poly *args[3] = {NULL, NULL, NULL}, *one = poly_constant(algebra, 1);
    int count = 0;
    for (; count < 3 && atom.args[count]; count++) {
        args[count] = normal(n, atom.args[count]);
        if (!args[count]) return NULL;
    }
    switch (atom.kind) {
    case ATOM_SYMBOL:
    case ATOM_AXIS:
    case ATOM_LOCAL:
    case ATOM_RANK:
    case ATOM_INDEX:
    case ATOM_WHOLE:
    case ATOM_REST:
    case ATOM_BOUND: return poly_atom(algebra, id);
    case ATOM_DIV: return quotient(algebra, args[0], args[1]);
    case ATOM_MOD:
        if (stays_divided(algebra, args[1])) return operation_again(algebra, &atom, args, count);
        return poly_sum(algebra, args[0],
                        poly_product(algebra, args[1], quotient(algebra, args[0], args[1])), -1);
    case ATOM_CEIL:
        if (stays_divided(algebra, args[1])) return operation_again(algebra, &atom, args, count);
        return poly_floor(
            algebra, poly_sum(algebra, poly_sum(algebra, args[0], args[1], 1), one, -1), args[1]);
    case ATOM_MIN:
    case ATOM_MAX: return poly_extreme(algebra, atom.kind == ATOM_MAX, args[0], args[1]);
    case ATOM_SELECT:
        return atom.type == E_F32 ? poly_atom(algebra, id)
                                  : chosen(algebra, args[0], args[1], args[2]);
    case ATOM_TRUTH: return poly_truth(algebra, args[0]);
    case ATOM_WRAP: return algebra_value(algebra, args[0], atom.type);
    case ATOM_FLOOR: return poly_floor(algebra, args[0], args[1]);
    case ATOM_SUM: return poly_sums(algebra, args[0], args[1]);
    case ATOM_FIRST:
    case ATOM_OPAQUE:
        return count == 0 ? poly_atom(algebra, id) : operation_again(algebra, &atom, args, count);
    }
    return NULL;
}

static const Poly *normal_atom(Normals *n, int id) {
    if (n->ids[id % CACHED] == id + 1) return n->made[id % CACHED];
    const Poly *made = make_normal(n, id);
    n->ids[id % CACHED] = id + 1;
    n->made[id % CACHED] = made;
    return made;
}

static bool is_plain(const Algebra *algebra, const Term *term) {
    for (int k = 0; k < term->count; k++) {
        const Atom *atom = &algebra->atoms.items[term->atoms[k]];
        if (atom->args[0] && atom->kind != ATOM_REST) return false;
    }
    return true;
}

static const Poly *normal(Normals *n, const Poly *poly) {
    Algebra *algebra = n->algebra;
    const Poly *sum = poly_constant(algebra, 0);
    Poly *plain = poly_new(algebra, poly->count);
    for (int i = 0; i < poly->count && sum; i++) {
        if (is_plain(algebra, &poly->terms[i])) {
            plain->terms[plain->count++] = poly->terms[i];
            continue;
        }
        const Poly *product = poly_constant(algebra, poly->terms[i].coef);
        for (int k = 0; k < poly->terms[i].count; k++)
            product = poly_product(algebra, product, normal_atom(n, poly->terms[i].atoms[k]));
        sum = poly_sum(algebra, sum, product, 1);
    }
    return poly_sum(algebra, plain, sum, 1);
}

const Poly *poly_normal(Algebra *algebra, const Poly *poly) {
    int plain = 0;
    while (poly && plain < poly->count && is_plain(algebra, &poly->terms[plain])) plain++;
    if (!poly || plain == poly->count) return poly;
    Normals n = {.algebra = algebra};
    return normal(&n, poly);
}

bool poly_linear_in(Algebra *algebra, const Poly *poly, int atom, int64_t *coef,
                    const Poly **rest) {
    const Poly *factor;
    return poly_split(algebra, poly, atom, &factor, rest) && poly_is_constant(factor, coef) &&
           *coef != 0;
}
