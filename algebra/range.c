/* Ranges: least and greatest value of polynomials and atoms, and the observed value of a
 * polynomial that may not fit its type. Uses types, preconditions, extents and the limits of
 * loops, but no path. Computed in 128 bits, which do not overflow. */
#include "algebra/private.h"

#include <string.h>

#define FITTING_MOST 3 /* nesting depth of proofs that a polynomial fits */

/* ---- numbers --------------------------------------------------------------------------------- */

static const Range everything = {-WIDE_MOST, WIDE_MOST};

static Wide clamped(Wide value) {
    return value > WIDE_MOST ? WIDE_MOST : value < -WIDE_MOST ? -WIDE_MOST : value;
}

static Wide times(Wide a, Wide b) {
    Wide product;
    if (__builtin_mul_overflow(a, b, &product)) return (a < 0) == (b < 0) ? WIDE_MOST : -WIDE_MOST;
    return clamped(product);
}

static Range hull(Range a, Range b) {
    return (Range){a.least < b.least ? a.least : b.least, a.most > b.most ? a.most : b.most};
}

static Range of_product(Range a, Range b) {
    Wide w = times(a.least, b.least), x = times(a.least, b.most), y = times(a.most, b.least),
         z = times(a.most, b.most);
    return hull((Range){w < x ? w : x, w < x ? x : w}, (Range){y < z ? y : z, y < z ? z : y});
}

/* Most numbers have 64 bits, which one instruction multiplies. */
static Wide scaled(Wide a, int64_t by) {
    return a == (int64_t)a ? (Wide)(int64_t)a * by : times(a, by);
}

static Range of_multiple(Range a, int64_t by) {
    if (by == 1) return a;
    Wide x = scaled(a.least, by), y = scaled(a.most, by);
    return by < 0 ? (Range){y, x} : (Range){x, y};
}

bool range_within(Range inner, Range outer) {
    return inner.least >= outer.least && inner.most <= outer.most;
}

static Range crossed(Range a, Range b) {
    Range both = {a.least > b.least ? a.least : b.least, a.most < b.most ? a.most : b.most};
    return both.least <= both.most ? both : a; /* an empty range is on a path that is never taken */
}

bool type_is_integer(Element type) {
    ElementKind kind = element_rows[type].kind;
    return kind == ELEMENT_SIGNED || kind == ELEMENT_UNSIGNED;
}

static int bits_of(Element type) { return 8 * element_rows[type].bytes; }

Range range_of_type(Element type) {
    if (type == E_BOOL) return (Range){0, 1};
    if (!type_is_integer(type)) return everything;
    bool sign = element_rows[type].kind == ELEMENT_SIGNED;
    Wide past = (Wide)1 << (bits_of(type) - sign);
    return (Range){sign ? -past : 0, past - 1};
}

const Poly *range_limit(Algebra *algebra, Range range, bool lower) {
    Wide limit = lower ? range.least : range.most;
    return limit < INT64_MIN || limit > INT64_MAX ? NULL : poly_constant(algebra, (int64_t)limit);
}

/* ---- of atoms -------------------------------------------------------------------------------- */

typedef enum Rounding { TO_ZERO, DOWN, UP } Rounding;

static Wide divided(Wide a, Wide b, Rounding rounding) {
    Wide quotient = a / b, rest = a % b;
    if (rounding == DOWN) return quotient - (rest < 0);
    return quotient + (rounding == UP && rest > 0);
}

static bool is_of_symbols(const Algebra *algebra, const Poly *poly) {
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++)
            if (!algebra->atoms.items[poly->terms[i].atoms[k]].of_symbols) return false;
    return true;
}

bool stated_nonzero(Algebra *algebra, const Poly *poly) {
    algebra_learn(algebra);
    for (size_t i = 0; i < algebra->stated_nonzero.count; i++)
        if (poly_equal(algebra->stated_nonzero.items[i], poly)) return true;
    return false;
}

/* true for a divisor that preconditions, or the checks of the launch, exclude from being 0 */
static bool is_nonzero(Algebra *algebra, const Poly *poly) {
    if (algebra->launched || stated_nonzero(algebra, poly)) return true;
    return is_of_symbols(algebra, poly) && bounds_prove(algebra, poly_offset(algebra, poly, -1));
}

static bool spans_zero(Algebra *algebra, const Poly *poly, Range range) {
    return range.least <= 0 && range.most >= 0 && !is_nonzero(algebra, poly);
}

bool divisor_may_be_zero(Algebra *algebra, const Poly *poly) {
    return spans_zero(algebra, poly, range_of_poly(algebra, poly));
}

/* Of a quotient with a positive divisor, or with one that is only known not to be 0 */
static Range of_quotient(Range a, Range b, Rounding rounding) {
    Wide far = a.most > -a.least ? a.most : -a.least;
    if (b.least < 1) return (Range){-far, far};
    Wide w = divided(a.least, b.least, rounding), x = divided(a.least, b.most, rounding);
    Wide y = divided(a.most, b.least, rounding), z = divided(a.most, b.most, rounding);
    return (Range){w < x ? w : x, y > z ? y : z};
}

/* It has the sign of the dividend, and its absolute value is less than the divisor's */
static Range of_remainder(Range a, Range b) {
    Range out = {a.least < 0 ? a.least : 0, a.most > 0 ? a.most : 0};
    return b.least < 1 ? out : crossed(out, (Range){1 - b.most, b.most - 1});
}

static int find_term(const Poly *poly, const Term *term) {
    for (int i = 0; i < poly->count; i++) {
        const Term *other = &poly->terms[i];
        if (other->count == term->count &&
            memcmp(other->atoms, term->atoms, (size_t)term->count * sizeof *term->atoms) == 0)
            return i;
    }
    return -1;
}

/* Narrowed by preconditions on the product of these atoms, with the ranges of their other atoms */
static Range stated_range(Algebra *algebra, const Term *term, Range range) {
    if (algebra->fitting == FITTING_MOST) return range;
    algebra_learn(algebra);
    algebra->fitting++;
    for (size_t i = 0; i < algebra->stated.count; i++) {
        const Poly *poly = algebra->stated.items[i];
        int at = find_term(poly, term);
        if (at < 0) continue;
        Wide coef = poly->terms[at].coef;
        const Term self = {.coef = -poly->terms[at].coef, .count = term->count};
        Poly *own = poly_new(algebra, 1);
        own->terms[own->count++] = self;
        memcpy(own->terms[0].atoms, term->atoms, sizeof self.atoms);
        Wide rest = range_of_poly(algebra, poly_sum(algebra, poly, own, 1)).most;
        range = crossed(range, coef > 0 ? (Range){divided(-rest, coef, UP), WIDE_MOST}
                                        : (Range){-WIDE_MOST, divided(rest, -coef, DOWN)});
    }
    algebra->fitting--;
    return range;
}

static Range of_symbol(Algebra *algebra, int id) {
    const Atom *atom = &algebra->atoms.items[id];
    bool extent = algebra->prog->symbols.items[atom->index].is_extent;
    const Term self = {.coef = 1, .count = 1, .atoms = {id}};
    return stated_range(algebra, &self,
                        extent ? (Range){0, EXTENT_MOST} : range_of_type(atom->type));
}

/* 0 <= value < past, for the range of past */
static Range below(Range past) { return (Range){0, past.most > 1 ? past.most - 1 : 0}; }

static Range of_index(Algebra *algebra, const Atom *atom) {
    if (!algebra->space || atom->index >= algebra->space->count) return (Range){0, EXTENT_MOST};
    const Index *index = &algebra->space->items[atom->index];
    if (index->extent >= 0) return below((Range){index->extent, index->extent});
    if (!index->dynamic) return (Range){0, EXTENT_MOST};
    return crossed((Range){0, EXTENT_MOST},
                   below(range_of_poly(algebra, algebra_launched(algebra, index->dynamic))));
}

static Range of_local(Algebra *algebra, const Atom *atom) {
    Range type = range_of_type(atom->type);
    const Local *local = atom_limited(atom);
    if (!local) return type;
    /* bounds use the values at the start of the loop */
    Bindings now = algebra_hold(algebra, (Bindings){0});
    Range lo = range_of_poly(algebra, algebra_poly(algebra, atom->role, local->lo));
    Range hi = range_of_poly(algebra, algebra_poly(algebra, atom->role, local->hi));
    (void)algebra_hold(algebra, now);
    return crossed(type, (Range){lo.least, hi.most > lo.least ? hi.most - 1 : lo.least});
}

static Range of_axis(Algebra *algebra, const Atom *atom) {
    if (!valid_index(atom->index, algebra->prog->axes.count)) return range_of_type(atom->type);
    return crossed(
        (Range){0, EXTENT_MOST},
        below(range_of_poly(
            algebra, algebra_launched(algebra, algebra->prog->axes.items[atom->index].padded))));
}

static Range of_operation(const Atom *atom, Range a, Range b) {
    switch (atom->kind) {
    case ATOM_DIV: return of_quotient(a, b, TO_ZERO);
    case ATOM_MOD: return of_remainder(a, b);
    case ATOM_CEIL: return of_quotient(a, b, UP);
    case ATOM_FLOOR: return b.least < 1 ? everything : of_quotient(a, b, DOWN);
    case ATOM_MIN:
        return (Range){a.least < b.least ? a.least : b.least, a.most < b.most ? a.most : b.most};
    case ATOM_MAX:
        return (Range){a.least > b.least ? a.least : b.least, a.most > b.most ? a.most : b.most};
    case ATOM_FIRST: return (Range){a.least, b.most > a.least ? b.most : a.least};
    case ATOM_SYMBOL:
    case ATOM_AXIS:
    case ATOM_LOCAL:
    case ATOM_RANK:
    case ATOM_INDEX:
    case ATOM_SELECT:
    case ATOM_TRUTH:
    case ATOM_WRAP:
    case ATOM_WHOLE:
    case ATOM_REST:
    case ATOM_BOUND:
    case ATOM_SUM:
    case ATOM_OPAQUE: break;
    }
    return everything;
}

static Range compute(Algebra *algebra, int id) {
    const Atom atom = algebra->atoms.items[id];
    switch (atom.kind) {
    case ATOM_SYMBOL: return of_symbol(algebra, id);
    case ATOM_AXIS: return of_axis(algebra, &atom);
    case ATOM_LOCAL: return of_local(algebra, &atom);
    case ATOM_RANK: return (Range){0, atom.role->instances - 1};
    case ATOM_INDEX: return of_index(algebra, &atom);
    case ATOM_SELECT:
        return hull(range_of_poly(algebra, atom.args[1]), range_of_poly(algebra, atom.args[2]));
    case ATOM_REST: return below(range_of_poly(algebra, atom.args[0]));
    case ATOM_TRUTH:
    case ATOM_WRAP:
    case ATOM_OPAQUE: return range_of_type(atom.type);
    case ATOM_WHOLE:
    case ATOM_BOUND:
    case ATOM_SUM: return everything;
    case ATOM_DIV:
    case ATOM_MOD:
    case ATOM_CEIL:
    case ATOM_FLOOR:
    case ATOM_MIN:
    case ATOM_MAX:
    case ATOM_FIRST: break;
    }
    Range a = range_of_poly(algebra, atom.args[0]), b = range_of_poly(algebra, atom.args[1]);
    bool divides = atom.kind == ATOM_DIV || atom.kind == ATOM_MOD || atom.kind == ATOM_CEIL;
    if (divides && spans_zero(algebra, atom.args[1], b)) return range_of_type(atom.type);
    return of_operation(&atom, a, b);
}

static const Range *keep(Algebra *algebra, Range range) {
    Range *kept = NEW(algebra->arena, Range);
    *kept = range;
    return kept;
}

Range range_of_atom(Algebra *algebra, int id) {
    Atom *atom = &algebra->atoms.items[id];
    const IndexSpace *space = atom->indexed ? algebra->space : NULL;
    if (atom->range && atom->space == space) return *atom->range;
    /* Limits of a loop that contain the variable itself, in a program that is refused */
    atom->range = keep(algebra, atom->kind == ATOM_LOCAL ? range_of_type(atom->type) : everything);
    atom->space = space;
    Range range = compute(algebra, id);
    bool whole = algebra->fitting < FITTING_MOST; /* otherwise preconditions were not used */
    algebra->atoms.items[id].range = whole ? keep(algebra, range) : NULL;
    return range;
}

void algebra_bounded(Algebra *algebra, const Poly *version, int64_t least, int64_t most) {
    algebra->atoms.items[version->terms[0].atoms[0]].range = keep(algebra, (Range){least, most});
}

Range range_of_poly(Algebra *algebra, const Poly *poly) {
    Range sum = {0, 0};
    if (!poly) return everything;
    for (int i = 0; i < poly->count; i++) {
        const Term *term = &poly->terms[i];
        Range product = term->count > 0 ? range_of_atom(algebra, term->atoms[0]) : (Range){1, 1};
        for (int k = 1; k < term->count; k++)
            product = of_product(product, range_of_atom(algebra, term->atoms[k]));
        if (term->count > 1) product = stated_range(algebra, term, product);
        product = of_multiple(product, term->coef);
        sum = (Range){clamped(sum.least + product.least), clamped(sum.most + product.most)};
    }
    return sum;
}

bool algebra_never_negative(Algebra *algebra, const Poly *poly) {
    algebra_learn(algebra);
    return poly && range_of_poly(algebra, poly).least >= 0;
}

/* ---- observed values ------------------------------------------------------------------------- */

/* Reduces coefficients modulo 2^bits, nearest to 0; removes truncations to at least as many
 * bits. */
static const Poly *reduced(Algebra *algebra, const Poly *poly, int bits) {
    const Poly *out = poly_constant(algebra, 0);
    for (int i = 0; i < poly->count && out; i++) {
        Term term = poly->terms[i];
        if (bits < 64) {
            int64_t past = (int64_t)1 << bits,
                    rest = (int64_t)((uint64_t)term.coef & (uint64_t)(past - 1));
            term.coef = rest >= past / 2 ? rest - past : rest;
        }
        const Poly *product = poly_constant(algebra, term.coef);
        for (int k = 0; k < term.count; k++) {
            const Atom *atom = &algebra->atoms.items[term.atoms[k]];
            bool whole = atom->kind == ATOM_WRAP && bits_of(atom->type) >= bits;
            product = poly_product(algebra, product,
                                   whole ? reduced(algebra, atom->args[0], bits)
                                         : poly_atom(algebra, term.atoms[k]));
        }
        out = poly_sum(algebra, out, product, 1);
    }
    return out;
}

const Poly *algebra_whole(Algebra *algebra, const Poly *residue, Element type) {
    return residue && type_is_integer(type) && poly_wraps(algebra, residue)
               ? reduced(algebra, residue, bits_of(type))
               : residue;
}

void range_rooms(Algebra *algebra, const Poly *poly, Element type, const Poly *out[2]) {
    Range range = range_of_type(type);
    const Poly *least = range_limit(algebra, range, true),
               *most = range_limit(algebra, range, false);
    out[0] = poly_sum(algebra, poly, least, -1);
    out[1] = poly_sum(algebra, most, poly, -1);
}

/* By preconditions and limits of loops, without a path: the result holds at every place. */
static bool fits_everywhere(Algebra *algebra, const Poly *poly, Element type) {
    const Poly *room[2];
    if (algebra->fitting == FITTING_MOST || bits_of(type) > 32) return false;
    size_t facts = algebra->facts.count, divides = algebra->divides.count;
    range_rooms(algebra, poly, type, room);
    algebra->facts.count = algebra->divides.count = 0;
    algebra->fitting++;
    bool fits = bounds_prove(algebra, room[0]) && bounds_prove(algebra, room[1]);
    algebra->fitting--;
    algebra->facts.count = facts, algebra->divides.count = divides;
    return fits;
}

static const Poly *cut_off(Algebra *algebra, int64_t value, Element type) {
    int bits = bits_of(type);
    uint64_t rest = bits == 64 ? (uint64_t)value : (uint64_t)value & (((uint64_t)1 << bits) - 1);
    bool negative = element_rows[type].kind == ELEMENT_SIGNED && rest >> (bits - 1);
    if (bits < 64)
        return poly_constant(algebra, (int64_t)rest - (negative ? (int64_t)1 << bits : 0));
    return element_rows[type].kind == ELEMENT_SIGNED ? poly_constant(algebra, value) : NULL;
}

const Poly *algebra_value(Algebra *algebra, const Poly *residue, Element type) {
    int64_t constant;
    if (!residue || algebra->launched || !type_is_integer(type)) return residue;
    Range range = range_of_type(type);
    if (range_within(range_of_poly(algebra, residue), range)) return residue;
    const Poly *poly = reduced(algebra, residue, bits_of(type));
    if (!poly) return NULL;
    if (range_within(range_of_poly(algebra, poly), range)) return poly;
    const Poly *cut = poly_is_constant(poly, &constant) ? cut_off(algebra, constant, type) : NULL;
    if (cut) return cut;
    if (fits_everywhere(algebra, poly, type)) return poly;
    return algebra_operation(algebra, ATOM_WRAP, element_rows[type].spelling, type, &poly, 1);
}
