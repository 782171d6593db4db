/* Splits a size by its remainder: if K, K / 2 and K % 2 decide, K = 2 * q + 0 and K = 2 * q + 1
 * are searched one after the other, for any q >= 0. Then loops over K and over K / 2 have counts
 * of one number. */
#include "check/deadlock/deadlock_search.h"

#define BY_MOST 8

/* scale * symbol + plus, for a symbol that is never negative; scale > 0 */
static bool is_scaled(Algebra *algebra, const Poly *poly, int *symbol, int64_t *scale,
                      int64_t *plus) {
    if (!poly || poly->count < 1 || poly->count > 2) return false;
    const Term *last = &poly->terms[poly->count - 1];
    *plus = poly->count == 2 ? poly->terms[0].coef : 0;
    if (last->count != 1 || last->coef <= 0 || last->coef > NEVER ||
        (poly->count == 2 && poly->terms[0].count))
        return false;
    const Atom *atom = &algebra->atoms.items[last->atoms[0]];
    *symbol = last->atoms[0], *scale = last->coef;
    return atom->kind == ATOM_SYMBOL && *plus >= 0 && *plus < NEVER &&
           algebra_proves(algebra, CLAIM_NOT_NEGATIVE, poly_atom(algebra, last->atoms[0]));
}

static bool divides(AtomKind kind) {
    return kind == ATOM_DIV || kind == ATOM_MOD || kind == ATOM_CEIL;
}

static bool find_in(Algebra *algebra, const Poly *poly, Split *split) {
    arena_count(algebra->arena, 1);
    int64_t by, scale, plus;
    for (int t = 0; poly && t < poly->count; t++)
        for (int k = 0; k < poly->terms[t].count; k++) {
            const Atom atom = algebra->atoms.items[poly->terms[t].atoms[k]];
            int symbol;
            if (divides(atom.kind) && poly_is_constant(atom.args[1], &by) && by > 1 &&
                by <= BY_MOST && is_scaled(algebra, atom.args[0], &symbol, &scale, &plus)) {
                *split = (Split){.symbol = algebra->atoms.items[symbol].index, .by = by};
                return true;
            }
            for (int a = 0; a < 3 && atom.args[a]; a++)
                if (find_in(algebra, atom.args[a], split)) return true;
        }
    return false;
}

bool part_split_find(const Part *part, Split *split) {
    for (size_t i = 0; i < part->numbers.count; i++) {
        const Number *number = &part->numbers.items[i];
        if (!number->changes && find_in(part->algebra[number->in_grid], number->poly, split))
            return true;
    }
    return false;
}

/* The quotient or remainder of scale * (by * quotient + rest) + plus; NULL: unchanged */
static const Poly *divided(Part *part, Algebra *algebra, const Atom *atom, int64_t scale,
                           int64_t plus) {
    const Split *split = &part->split;
    int64_t by, rest = scale * split->rest + plus;
    if (!poly_is_constant(atom->args[1], &by) || by <= 0 || scale * split->by % by != 0)
        return NULL;
    if (atom->kind == ATOM_MOD) return poly_constant(algebra, rest % by);
    int64_t more = rest / by + (atom->kind == ATOM_CEIL && rest % by != 0);
    const Poly *whole = split->quotient[algebra == part->algebra[1]];
    return poly_sum(algebra, poly_constant(algebra, more), whole, scale * split->by / by);
}

/* A division of the symbol in the formula, and its value; -1: none */
static int find_division(Part *part, Algebra *algebra, const Poly *poly, const Poly **value) {
    arena_count(algebra->arena, 1);
    int64_t scale, plus;
    for (int t = 0; poly && t < poly->count; t++)
        for (int k = 0; k < poly->terms[t].count; k++) {
            const Atom atom = algebra->atoms.items[poly->terms[t].atoms[k]];
            int symbol;
            if (divides(atom.kind) && is_scaled(algebra, atom.args[0], &symbol, &scale, &plus) &&
                algebra->atoms.items[symbol].index == part->split.symbol &&
                (*value = divided(part, algebra, &atom, scale, plus)) != NULL)
                return poly->terms[t].atoms[k];
            for (int a = 0; a < 3 && atom.args[a]; a++) {
                int inner = find_division(part, algebra, atom.args[a], value);
                if (inner >= 0) return inner;
            }
        }
    return -1;
}

static int find_symbol(const Part *part, const Algebra *algebra) {
    for (size_t i = 0; i < algebra->atoms.count; i++)
        if (algebra->atoms.items[i].kind == ATOM_SYMBOL &&
            algebra->atoms.items[i].index == part->split.symbol)
            return (int)i;
    return -1;
}

void part_split_begin(Part *part) {
    for (int i = 0; i < 2; i++) {
        Algebra *algebra = part->algebra[i];
        part->split.quotient[i] = poly_atom(algebra, algebra_part(algebra, 0));
        algebra_assume_poly(algebra, part->split.quotient[i]);
    }
}

const Poly *part_split(Part *part, Algebra *algebra, const Poly *poly) {
    const Poly *value;
    if (!part->split.by) return poly;
    for (int atom; poly && (atom = find_division(part, algebra, poly, &value)) >= 0;)
        poly = poly_replace(algebra, poly, atom, value);
    int symbol = find_symbol(part, algebra);
    if (!poly || symbol < 0) return poly;
    const Poly *quotient = part->split.quotient[algebra == part->algebra[1]];
    value = poly_sum(algebra, poly_constant(algebra, part->split.rest), quotient, part->split.by);
    return poly_replace(algebra, poly, symbol, value);
}
