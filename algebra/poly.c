/* Polynomials over atoms: sums of products with 64-bit coefficients, in one order, so that equal
 * ones have equal terms. NULL means "unknown" and is passed on; it results if a coefficient
 * overflows or a polynomial becomes too large. */
#include "algebra/private.h"

#include <stdlib.h>
#include <string.h>

#define PRODUCTS_MOST 16384 /* most terms before equal ones are combined */

static size_t bytes_of(int terms) {
    return sizeof(Poly) + (size_t)(terms > 0 ? terms : 1) * sizeof(Term);
}

Poly *poly_new(Algebra *algebra, int terms) { return arena_alloc(algebra->arena, bytes_of(terms)); }

/* Frees the room for terms that were never written. */
static Poly *trimmed(Algebra *algebra, Poly *poly, int terms) {
    arena_trim(algebra->arena, poly, bytes_of(terms), bytes_of(poly->count));
    return poly;
}

static int compare_terms(const Term *a, const Term *b) {
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    for (int i = 0; i < a->count; i++)
        if (a->atoms[i] != b->atoms[i]) return a->atoms[i] < b->atoms[i] ? -1 : 1;
    return 0;
}

static const Poly *make_constant(Algebra *algebra, int64_t value) {
    Poly *poly = poly_new(algebra, 1);
    if (value != 0) poly->terms[poly->count++].coef = value;
    return poly;
}

const Poly *poly_constant(Algebra *algebra, int64_t value) {
    if (value < -1 || value > 1) return make_constant(algebra, value);
    const Poly **small = &algebra->small[value + 1];
    if (!*small) *small = make_constant(algebra, value);
    return *small;
}

const Poly *poly_atom(Algebra *algebra, int atom) {
    const Poly *self = algebra->atoms.items[atom].self;
    if (self) return self;
    Poly *poly = poly_new(algebra, 1);
    poly->count = 1;
    poly->terms[0] = (Term){.coef = 1, .count = 1, .atoms = {atom}};
    return algebra->atoms.items[atom].self = poly;
}

bool poly_is_constant(const Poly *poly, int64_t *out) {
    if (!poly || poly->count > 1 || (poly->count == 1 && poly->terms[0].count > 0)) return false;
    *out = poly->count == 1 ? poly->terms[0].coef : 0;
    return true;
}

bool poly_equal(const Poly *a, const Poly *b) {
    if (!a || !b || a->count != b->count) return false;
    for (int i = 0; i < a->count; i++)
        if (a->terms[i].coef != b->terms[i].coef || compare_terms(&a->terms[i], &b->terms[i]) != 0)
            return false;
    return true;
}

static const Poly *limited(Algebra *algebra) {
    algebra->limits++;
    return NULL;
}

/* The polynomial if it is within the limits of size and work, otherwise NULL */
static const Poly *accepted(Algebra *algebra, const Poly *poly) {
    algebra->work -= poly->count;
    return poly->count > algebra->most_terms || algebra->work < 0 ? limited(algebra) : poly;
}

const Poly *poly_sum(Algebra *algebra, const Poly *a, const Poly *b, int64_t scale) {
    if (!a || !b) return NULL;
    if (a->count == 0 && scale == 1) return accepted(algebra, b);
    if (b->count == 0) return accepted(algebra, a);
    int room = a->count + b->count;
    Poly *sum = poly_new(algebra, room);
    int i = 0, j = 0;
    while (i < a->count || j < b->count) {
        int order = i == a->count   ? 1
                    : j == b->count ? -1
                                    : compare_terms(&a->terms[i], &b->terms[j]);
        Term term = order <= 0 ? a->terms[i] : b->terms[j];
        int64_t other = 0;
        if (order >= 0 && __builtin_mul_overflow(b->terms[j].coef, scale, &other)) return NULL;
        if (__builtin_add_overflow(order <= 0 ? term.coef : 0, other, &term.coef)) return NULL;
        i += order <= 0;
        j += order >= 0;
        if (term.coef != 0) sum->terms[sum->count++] = term;
    }
    return accepted(algebra, trimmed(algebra, sum, room));
}

/* 0 or 1: its square is itself */
static bool is_truth(const Algebra *algebra, int id) {
    return algebra->atoms.items[id].type == E_BOOL;
}

/* Two questions about the same sum with different constants, where a yes to one implies a yes to
 * the other: the stronger one; -1: they are not */
static int stronger(const Algebra *algebra, int a, int b) {
    if (algebra->atoms.items[a].kind != ATOM_TRUTH || algebra->atoms.items[b].kind != ATOM_TRUTH)
        return -1;
    const Poly *p = algebra->atoms.items[a].args[0], *q = algebra->atoms.items[b].args[0];
    int i = p->terms[0].count == 0, j = q->terms[0].count == 0;
    if (p->count - i != q->count - j) return -1;
    for (; i < p->count; i++, j++)
        if (p->terms[i].coef != q->terms[j].coef || compare_terms(&p->terms[i], &q->terms[j]) != 0)
            return -1;
    int64_t x = p->terms[0].count == 0 ? p->terms[0].coef : 0,
            y = q->terms[0].count == 0 ? q->terms[0].coef : 0;
    return x <= y ? a : b;
}

static bool multiply_terms(const Algebra *algebra, const Term *a, const Term *b, Term *out) {
    if (__builtin_mul_overflow(a->coef, b->coef, &out->coef)) return false;
    int i = 0, j = 0;
    out->count = 0;
    while (i < a->count || j < b->count) {
        int atom = j == b->count || (i < a->count && a->atoms[i] <= b->atoms[j]) ? a->atoms[i++]
                                                                                 : b->atoms[j++];
        if (out->count > 0 && out->atoms[out->count - 1] == atom && is_truth(algebra, atom))
            continue;
        int other = out->count - 1, both = -1;
        for (; other >= 0 && (both = stronger(algebra, out->atoms[other], atom)) < 0;) other--;
        if (both == atom) { /* replaces the other, in the order of ids */
            memmove(&out->atoms[other], &out->atoms[other + 1],
                    (size_t)(out->count - other - 1) * sizeof *out->atoms);
            out->count--;
        }
        if (both >= 0 && both != atom) continue;
        if (out->count == POLY_MAX_DEGREE) return false;
        out->atoms[out->count++] = atom;
    }
    return true;
}

static int by_order(const void *a, const void *b) { return compare_terms(a, b); }

/* Sorts and combines terms, in place */
static const Poly *gathered(Algebra *algebra, Poly *poly) {
    int count = 0;
    bool sorted = true;
    for (int i = 1; i < poly->count && sorted; i++)
        sorted = compare_terms(&poly->terms[i - 1], &poly->terms[i]) < 0;
    if (!sorted) qsort(poly->terms, (size_t)poly->count, sizeof *poly->terms, by_order);
    for (int i = 0; i < poly->count;) {
        Term term = poly->terms[i++];
        for (; i < poly->count && compare_terms(&term, &poly->terms[i]) == 0; i++)
            if (__builtin_add_overflow(term.coef, poly->terms[i].coef, &term.coef)) return NULL;
        if (term.coef != 0) poly->terms[count++] = term;
    }
    poly->count = count;
    return count > algebra->most_terms ? limited(algebra) : poly;
}

const Poly *poly_product(Algebra *algebra, const Poly *a, const Poly *b) {
    int64_t value;
    if (!a || !b) return NULL;
    if (poly_is_constant(a, &value) && value == 1) return b;
    if (poly_is_constant(b, &value) && value == 1) return a;
    algebra->work -= a->count * b->count;
    if (a->count * b->count > PRODUCTS_MOST || algebra->work < 0) return limited(algebra);
    Poly *product = poly_new(algebra, a->count * b->count);
    for (int i = 0; i < a->count; i++)
        for (int j = 0; j < b->count; j++)
            if (!multiply_terms(algebra, &a->terms[i], &b->terms[j],
                                &product->terms[product->count++]))
                return limited(algebra);
    return gathered(algebra, product);
}

const Poly *poly_offset(Algebra *algebra, const Poly *poly, int64_t value) {
    if (!poly) return NULL;
    bool constant = poly->count > 0 && poly->terms[0].count == 0;
    Term first = {.coef = constant ? poly->terms[0].coef : 0};
    if (__builtin_add_overflow(first.coef, value, &first.coef)) return NULL;
    Poly *sum = poly_new(algebra, poly->count + 1);
    if (first.coef != 0) sum->terms[sum->count++] = first;
    for (int i = constant; i < poly->count; i++) sum->terms[sum->count++] = poly->terms[i];
    return accepted(algebra, trimmed(algebra, sum, poly->count + 1));
}

const Poly *poly_minus(Algebra *algebra, const Poly *poly) {
    if (!poly) return NULL;
    Poly *minus = poly_new(algebra, poly->count);
    for (int i = 0; i < poly->count; i++) {
        minus->terms[i] = poly->terms[i];
        if (__builtin_sub_overflow((int64_t)0, poly->terms[i].coef, &minus->terms[i].coef))
            return NULL;
    }
    minus->count = poly->count;
    return accepted(algebra, minus);
}

/* a / by if that is exact for all values: every term of `a` is a multiple of the single term of
 * `by` */
const Poly *poly_divide_exactly(Algebra *algebra, const Poly *a, const Poly *by) {
    if (!a || !by || by->count != 1) return NULL;
    const Poly *quotient = poly_constant(algebra, 0);
    for (int i = 0; i < a->count && quotient; i++) {
        const Term *term = &a->terms[i], *divisor = &by->terms[0];
        if (divisor->coef == -1 || term->coef % divisor->coef != 0) return NULL;
        Poly *one = poly_new(algebra, 1);
        int used = 0;
        one->count = 1;
        one->terms[0].coef = term->coef / divisor->coef;
        for (int k = 0; k < term->count; k++) {
            if (used < divisor->count && term->atoms[k] == divisor->atoms[used])
                used++;
            else
                one->terms[0].atoms[one->terms[0].count++] = term->atoms[k];
        }
        if (used != divisor->count) return NULL;
        quotient = poly_sum(algebra, quotient, one, 1);
    }
    return quotient;
}

int64_t floor_of(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* Common divisor of all terms except the constant one; 0: there are none */
int64_t poly_content(const Poly *poly) {
    int64_t common = 0;
    for (int i = 0; i < poly->count; i++)
        if (poly->terms[i].count > 0) common = common_divisor(common, poly->terms[i].coef);
    return common;
}

/* Divides each coefficient, rounded down; `whole` false: the remainders of these divisions */
const Poly *poly_divided(Algebra *algebra, const Poly *poly, int64_t by, bool whole) {
    Poly *out =
        arena_alloc(algebra->arena, sizeof(Poly) + (size_t)(poly->count + 1) * sizeof(Term));
    out->count = 0;
    for (int i = 0; i < poly->count; i++) {
        Term term = poly->terms[i];
        int64_t part = floor_of(term.coef, by);
        term.coef = whole ? part : term.coef - part * by;
        if (term.coef != 0) out->terms[out->count++] = term;
    }
    return out;
}

static int find_factor(const Term *term, int atom) {
    int at = 0;
    while (at < term->count && term->atoms[at] != atom) at++;
    return at < term->count ? at : -1;
}

/* The terms with the atom, without it */
static const Poly *factor_of(Algebra *algebra, const Poly *poly, int atom, int count) {
    Poly *factor = poly_new(algebra, count);
    for (int i = 0, at; i < poly->count; i++) {
        if ((at = find_factor(&poly->terms[i], atom)) < 0) continue;
        Term *out = &factor->terms[factor->count++];
        *out = poly->terms[i];
        out->count--;
        memmove(&out->atoms[at], &out->atoms[at + 1],
                (size_t)(out->count - at) * sizeof *out->atoms);
    }
    return gathered(algebra, factor); /* they may be out of order */
}

bool poly_split(Algebra *algebra, const Poly *poly, int atom, const Poly **factor,
                const Poly **rest) {
    if (!poly) return false;
    int count = 0, last = -1;
    for (int i = 0; i < poly->count; i++)
        if (find_factor(&poly->terms[i], atom) >= 0) count++, last = i;
    *factor = poly_constant(algebra, 0), *rest = poly;
    if (count > 0) {
        bool alone = count == 1 && poly->terms[last].count == 1;
        *factor = alone ? poly_constant(algebra, poly->terms[last].coef)
                        : factor_of(algebra, poly, atom, count);
        Poly *others = poly_new(algebra, poly->count - count);
        for (int i = 0; i < poly->count; i++)
            if (find_factor(&poly->terms[i], atom) < 0)
                others->terms[others->count++] = poly->terms[i];
        *rest = others;
    }
    return *factor && !poly_mentions(algebra, *factor, atom) &&
           !poly_mentions(algebra, *rest, atom);
}
