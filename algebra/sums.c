/* Loops as formulas: the sum of a body over the iterations, and the end of a loop with an early
 * exit. Takes normal forms with the loop variable as an atom; returns normal forms without it.
 * Conditions on the variable divide the range, quotients are split by remainder, polynomials
 * have closed forms; the rest becomes an ATOM_SUM, which is equal for equal bodies. NULL:
 * unknown. */
#include "algebra/private.h"

#define REMAINDERS_MOST 64
#define DEPTH_MOST      24
#define STEPS_MOST      500

static const Poly *over(Algebra *algebra, int atom, const Poly *lo, const Poly *hi,
                        const Poly *body, int depth);

static const Poly *extreme(Algebra *algebra, bool is_max, const Poly *a, const Poly *b) {
    if (!a || !b) return NULL;
    if (cases_known(algebra, poly_sum(algebra, b, a, -1))) return is_max ? b : a;
    if (cases_known(algebra, poly_sum(algebra, a, b, -1))) return is_max ? a : b;
    return poly_extreme(algebra, is_max, a, b);
}

const Poly *poly_larger(Algebra *algebra, const Poly *a, const Poly *b) {
    return extreme(algebra, true, a, b);
}
const Poly *poly_smaller(Algebra *algebra, const Poly *a, const Poly *b) {
    return extreme(algebra, false, a, b);
}

/* ---- search in atoms ------------------------------------------------------------------------- */

typedef bool Wanted(Algebra *algebra, const Atom *atom, int of);

/* An atom in the polynomial, inner ones first; -1: none */
static int seek_in(Algebra *algebra, const Poly *poly, Wanted *wanted, int of, Visited *visited) {
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++) {
            const Atom atom = algebra->atoms.items[poly->terms[i].atoms[k]];
            if (visit_again(algebra, visited, poly->terms[i].atoms[k])) continue;
            for (int a = 0; a < 3 && atom.args[a]; a++) {
                int inner = seek_in(algebra, atom.args[a], wanted, of, visited);
                if (inner >= 0) return inner;
            }
            if (wanted(algebra, &atom, of)) return poly->terms[i].atoms[k];
        }
    return -1;
}

static int seek(Algebra *algebra, const Poly *poly, Wanted *wanted, int of) {
    return seek_in(algebra, poly, wanted, of, &(Visited){0});
}

static bool linear_truth(Algebra *algebra, const Atom *atom, int of) {
    const Poly *rest;
    int64_t coef;
    return atom->kind == ATOM_TRUTH && poly_linear_in(algebra, atom->args[0], of, &coef, &rest);
}

static bool extreme_of(Algebra *algebra, const Atom *atom, int of) {
    return (atom->kind == ATOM_MIN || atom->kind == ATOM_MAX) &&
           (poly_mentions(algebra, atom->args[0], of) || poly_mentions(algebra, atom->args[1], of));
}

static bool quotient_of(Algebra *algebra, const Atom *atom, int of) {
    int64_t by;
    (void)algebra;
    if (atom->kind != ATOM_FLOOR || !poly_is_constant(atom->args[1], &by)) return false;
    /* the variable itself, not atoms that contain it */
    for (int i = 0; i < atom->args[0]->count; i++)
        for (int k = 0; k < atom->args[0]->terms[i].count; k++)
            if (atom->args[0]->terms[i].atoms[k] == of) return true;
    return false;
}

static bool free_truth(Algebra *algebra, const Atom *atom, int of) {
    return atom->type == E_BOOL && (!atom->args[0] || !poly_mentions(algebra, atom->args[0], of)) &&
           (!atom->args[1] || !poly_mentions(algebra, atom->args[1], of)) &&
           (!atom->args[2] || !poly_mentions(algebra, atom->args[2], of));
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* coef * atom + rest >= 0 holds from some value on (coef > 0), or up to it: the first value on
 * the other side */
static const Poly *turning_point(Algebra *algebra, int64_t coef, const Poly *rest) {
    if (coef > 0)
        return poly_floor(algebra, poly_offset(algebra, poly_minus(algebra, rest), coef - 1),
                          poly_constant(algebra, coef));
    return poly_offset(algebra, poly_floor(algebra, rest, poly_constant(algebra, -coef)), 1);
}

static const Poly *cut(Algebra *algebra, int atom, const Poly *lo, const Poly *hi, const Poly *body,
                       int truth, int depth) {
    const Poly *rest, *at;
    int64_t coef;
    if (!poly_linear_in(algebra, algebra->atoms.items[truth].args[0], atom, &coef, &rest) ||
        !(at = turning_point(algebra, coef, rest)))
        return NULL;
    const Poly *before = poly_decided(algebra, body, truth, coef < 0),
               *after = poly_decided(algebra, body, truth, coef > 0);
    if (cases_known(algebra, poly_sum(algebra, lo, at, -1)))
        return over(algebra, atom, lo, hi, after, depth);
    if (cases_known(algebra, poly_sum(algebra, at, hi, -1)))
        return over(algebra, atom, lo, hi, before, depth);
    at = poly_larger(algebra, lo, poly_smaller(algebra, hi, at));
    return poly_sum(algebra, over(algebra, atom, lo, at, before, depth),
                    over(algebra, atom, at, hi, after, depth), 1);
}

static int64_t least_common(Algebra *algebra, const Poly *poly, int atom, int64_t so_far) {
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++) {
            const Atom inner = algebra->atoms.items[poly->terms[i].atoms[k]];
            int64_t by;
            if (quotient_of(algebra, &inner, atom) && poly_is_constant(inner.args[1], &by)) {
                if (so_far > 1 << 20 || by > 1 << 20) return INT64_MAX;
                so_far = so_far / common_divisor(so_far, by) * by;
            }
            for (int n = 0; n < 3 && inner.args[n]; n++)
                so_far = least_common(algebra, inner.args[n], atom, so_far);
        }
    return so_far;
}

/* atom = by * q + r, for each r */
static const Poly *by_remainders(Algebra *algebra, int atom, const Poly *lo, const Poly *hi,
                                 const Poly *body, int64_t by, int depth) {
    const Poly *sum = poly_constant(algebra, 0), *divisor = poly_constant(algebra, by);
    int whole = algebra_part(algebra, 0);
    for (int64_t r = 0; r < by && sum; r++) {
        const Poly *value =
            poly_sum(algebra, poly_constant(algebra, r), poly_atom(algebra, whole), by);
        const Poly *from = poly_floor(algebra, poly_offset(algebra, lo, by - 1 - r), divisor),
                   *to = poly_floor(algebra, poly_offset(algebra, hi, by - 1 - r), divisor);
        sum = poly_sum(
            algebra, sum,
            over(algebra, whole, from, to, poly_replace(algebra, body, atom, value), depth), 1);
    }
    return sum;
}

/* `over` * the sum of k^degree for 0 <= k < n */
static const Poly *power_sum(Algebra *algebra, const Poly *n, int degree, int64_t *below) {
    static const struct {
        int64_t below, coefs[5];
    } rows[] = {
        {1, {0, 1, 0, 0, 0}}, {2, {0, -1, 1, 0, 0}}, {6, {0, 1, -3, 2, 0}}, {4, {0, 0, 1, -2, 1}}};
    const Poly *sum = poly_constant(algebra, 0), *power = poly_constant(algebra, 1);
    for (int i = 0; i <= degree + 1; i++, power = poly_product(algebra, power, n))
        if (rows[degree].coefs[i]) sum = poly_sum(algebra, sum, power, rows[degree].coefs[i]);
    *below = rows[degree].below;
    return sum;
}

static const Poly *exactly(Algebra *algebra, const Poly *poly, int64_t by) {
    const Poly *sum = poly_constant(algebra, 0);
    for (int i = 0; poly && i < poly->count; i++) {
        Poly *one = arena_alloc(algebra->arena, sizeof(Poly) + sizeof(Term));
        if (poly->terms[i].coef % by != 0) return NULL;
        one->count = 1;
        one->terms[0] = poly->terms[i];
        one->terms[0].coef /= by;
        sum = poly_sum(algebra, sum, one, 1);
    }
    return poly ? sum : NULL;
}

/* Splits a product of atoms: those without the variable, its power, and the rest */
static const Poly *of_term(Algebra *algebra, int atom, const Poly *lo, const Poly *hi,
                           const Term *term) {
    const Poly *outer = poly_constant(algebra, term->coef), *inner = poly_constant(algebra, 1),
               *sum;
    int degree = 0;
    int64_t below = 1;
    bool plain = true;
    for (int k = 0; k < term->count; k++) {
        const Poly *factor = poly_atom(algebra, term->atoms[k]);
        if (term->atoms[k] == atom)
            degree++;
        else if (poly_mentions(algebra, factor, atom))
            plain = false, inner = poly_product(algebra, inner, factor);
        else
            outer = poly_product(algebra, outer, factor);
    }
    if (plain && degree > 3) return NULL;
    if (plain) {
        sum = poly_sum(algebra, power_sum(algebra, hi, degree, &below),
                       power_sum(algebra, lo, degree, &below), -1);
    } else {
        for (int i = 0; i < degree; i++)
            inner = poly_product(algebra, inner, poly_atom(algebra, atom));
        if (!inner) return NULL;
        inner =
            poly_replace(algebra, inner, atom, poly_atom(algebra, algebra_bound(algebra, inner)));
        sum = poly_sum(algebra, poly_sums(algebra, hi, inner), poly_sums(algebra, lo, inner), -1);
    }
    return exactly(algebra, poly_product(algebra, outer, sum), below);
}

static const Poly *over(Algebra *algebra, int atom, const Poly *lo, const Poly *hi,
                        const Poly *body, int depth) {
    const Poly *sum = poly_constant(algebra, 0);
    if (!lo || !hi || !body || depth <= 0 || algebra->steps-- <= 0) return NULL;
    if (body->count == 0) return sum;
    int extreme_atom = seek(algebra, body, extreme_of, atom);
    if (extreme_atom >= 0)
        return over(algebra, atom, lo, hi,
                    poly_replace(algebra, body, extreme_atom, poly_spelled(algebra, extreme_atom)),
                    depth - 1);
    int truth = seek(algebra, body, linear_truth, atom);
    if (truth >= 0) return cut(algebra, atom, lo, hi, body, truth, depth - 1);
    if (seek(algebra, body, quotient_of, atom) >= 0) {
        int64_t by = least_common(algebra, body, atom, 1);
        if (by <= REMAINDERS_MOST) return by_remainders(algebra, atom, lo, hi, body, by, depth - 1);
    }
    for (int i = 0; i < body->count && sum; i++)
        sum = poly_sum(algebra, sum, of_term(algebra, atom, lo, hi, &body->terms[i]), 1);
    return sum;
}

const Poly *poly_sum_over(Algebra *algebra, int atom, const Poly *lo, const Poly *hi,
                          const Poly *body) {
    algebra->steps = STEPS_MOST;
    return over(algebra, atom, lo, hi, body, DEPTH_MOST);
}

/* ---- loops with early exits ------------------------------------------------------------------ */

/* at + 1 if `at` is an iteration; otherwise the whole range */
static const Poly *after_exit(Algebra *algebra, const Poly *at, const Poly *hi) {
    return poly_smaller(algebra, hi, poly_offset(algebra, at, 1));
}

static const Poly *first(Algebra *algebra, int atom, const Poly *lo, const Poly *hi,
                         const Poly *stop, int depth) {
    int64_t value, coef, coef2;
    const Poly *rest;
    if (!lo || !hi || !stop || depth <= 0) return NULL;
    if (poly_is_constant(stop, &value)) return value ? after_exit(algebra, lo, hi) : hi;
    int extreme_atom = seek(algebra, stop, extreme_of, atom);
    if (extreme_atom >= 0)
        return first(algebra, atom, lo, hi,
                     poly_replace(algebra, stop, extreme_atom, poly_spelled(algebra, extreme_atom)),
                     depth - 1);
    int truth = seek(algebra, stop, free_truth, atom);
    if (truth >= 0) {
        const Poly *then =
            first(algebra, atom, lo, hi, poly_decided(algebra, stop, truth, 1), depth - 1);
        const Poly *otherwise =
            first(algebra, atom, lo, hi, poly_decided(algebra, stop, truth, 0), depth - 1);
        return poly_sum(algebra, otherwise,
                        poly_product(algebra, poly_atom(algebra, truth),
                                     poly_sum(algebra, then, otherwise, -1)),
                        1);
    }
    truth = seek(algebra, stop, linear_truth, atom);
    if (truth >= 0 &&
        poly_linear_in(algebra, algebra->atoms.items[truth].args[0], atom, &coef, &rest)) {
        /* `stop` up to the turning point, then after it: the first exit of the two */
        const Poly *at = turning_point(algebra, coef, rest),
                   *early = poly_decided(algebra, stop, truth, coef < 0),
                   *late = poly_decided(algebra, stop, truth, coef > 0);
        if (!at || !early || !late) return NULL;
        at = poly_larger(algebra, lo, poly_smaller(algebra, hi, at));
        if (early->count == 0) return first(algebra, atom, at, hi, late, depth - 1);
        if (late->count == 0 && poly_is_constant(early, &coef2)) {
            const Poly *leaves_first =
                poly_truth(algebra, poly_offset(algebra, poly_sum(algebra, at, lo, -1), -1));
            const Poly *once = after_exit(algebra, lo, hi);
            return poly_sum(algebra, hi,
                            poly_product(algebra, leaves_first, poly_sum(algebra, once, hi, -1)),
                            1);
        }
        if (late->count == 0) { /* ends within the first part, or never */
            const Poly *end = first(algebra, atom, lo, at, early, depth - 1),
                       *last = end ? poly_offset(algebra, end, -1) : NULL;
            if (!last) return NULL;
            const Poly *stops = poly_replace(algebra, early, atom, last),
                       *any = poly_truth(algebra, poly_sum(algebra, last, lo, -1));
            return poly_sum(algebra, hi,
                            poly_product(algebra, poly_product(algebra, any, stops),
                                         poly_sum(algebra, end, hi, -1)),
                            1);
        }
    }
    const Poly *bound = poly_atom(algebra, algebra_bound(algebra, stop));
    return algebra_operation(algebra, ATOM_FIRST, "first", E_I64,
                             (const Poly *[]){lo, hi, poly_replace(algebra, stop, atom, bound)}, 3);
}

const Poly *poly_first(Algebra *algebra, int atom, const Poly *lo, const Poly *hi,
                       const Poly *stop) {
    return first(algebra, atom, lo, hi, stop, 8);
}
