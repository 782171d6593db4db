/* The prover's first step: tests if a formula is at least 0 by the ranges of its atoms, or by
 * substituting their bounds one after the other. Bounds come from the limits of axes, loops,
 * ranks and indexes, from facts, and from the laws of quotients, min and max. "False" means
 * "unknown". */
#include "algebra/private.h"

#define BOUND_STEPS 600
#define BOUND_DEPTH 12
#define SLACK_LIMIT (INT64_C(1) << 40)

/* ---- bounds of atoms ------------------------------------------------------------------------- */

static void add_bound(Algebra *algebra, AtomBounds *bounds, int64_t scale, const Poly *poly) {
    if (poly) vec_push(algebra->arena, bounds, (AtomBound){scale, poly});
}

static bool prove(Algebra *algebra, const Poly *poly, int depth, int64_t slack);

/* A quotient q of C's a / b for b > 0 and a >= 0: b*q <= a <= b*q + b - 1; a remainder: 0 <= r
 * <= b - 1 and r <= a; ceil for b > 0: a <= b*q <= a + b - 1, and b*q == a if b divides a */
static void bounds_of_division(Algebra *algebra, const Atom *atom, bool lower, AtomBounds *bounds,
                               int depth) {
    const Poly *a = atom->args[0], *b = atom->args[1], *slack;
    int64_t by;
    if (!poly_is_constant(b, &by) || by <= 0) return;
    slack = poly_constant(algebra, by - 1);
    if (atom->kind == ATOM_CEIL) {
        bool exact = poly_divisor(algebra, a) % by == 0;
        add_bound(algebra, bounds, by, lower || exact ? a : poly_sum(algebra, a, slack, 1));
        return;
    }
    bool whole = prove(algebra, a, depth - 1, 0);
    if (atom->kind == ATOM_DIV && whole)
        add_bound(algebra, bounds, by, lower ? poly_sum(algebra, a, slack, -1) : a);
    if (atom->kind == ATOM_DIV && whole && lower)
        add_bound(algebra, bounds, 1, poly_constant(algebra, 0));
    if (atom->kind == ATOM_MOD && lower)
        add_bound(algebra, bounds, 1,
                  whole ? poly_constant(algebra, 0) : poly_constant(algebra, 1 - by));
    if (atom->kind == ATOM_MOD && !lower) {
        add_bound(algebra, bounds, 1, slack);
        if (whole) add_bound(algebra, bounds, 1, a);
    }
}

static void bound_constant(Algebra *algebra, AtomBounds *bounds, int64_t value) {
    add_bound(algebra, bounds, 1, poly_constant(algebra, value));
}

/* of a coordinate below `extent`, which is known at launch */
static void bound_below(Algebra *algebra, AtomBounds *bounds, Expr *extent) {
    const Poly *one = poly_constant(algebra, 1);
    add_bound(algebra, bounds, 1, poly_sum(algebra, algebra_launched(algebra, extent), one, -1));
}

static void bounds_of_index(Algebra *algebra, const Atom *atom, bool lower, AtomBounds *bounds) {
    if (!algebra->space || atom->index >= algebra->space->count) return;
    const Index *index = &algebra->space->items[atom->index];
    if (lower)
        bound_constant(algebra, bounds, 0);
    else if (index->extent >= 0)
        bound_constant(algebra, bounds, index->extent - 1);
    else if (index->dynamic)
        bound_below(algebra, bounds, index->dynamic);
}

/* A loop variable: the bounds use the values at the start of the loop */
static void bounds_of_local(Algebra *algebra, const Atom *atom, bool lower, AtomBounds *bounds) {
    const Local *local = atom->role == algebra->role ? atom_limited(atom) : NULL;
    if (!local) return;
    Bindings now = algebra_hold(algebra, (Bindings){0});
    const Poly *bound = algebra_poly(algebra, atom->role, lower ? local->lo : local->hi);
    if (!lower) bound = poly_sum(algebra, bound, poly_constant(algebra, 1), -1);
    (void)algebra_hold(algebra, now);
    if (bound && !poly_changes(algebra, bound)) add_bound(algebra, bounds, 1, bound);
}

void atom_bounds(Algebra *algebra, int id, bool lower, AtomBounds *bounds) {
    const Atom copy = algebra->atoms.items[id], *atom = &copy;
    switch (atom->kind) {
    case ATOM_SYMBOL:
        add_bound(algebra, bounds, 1, range_limit(algebra, range_of_atom(algebra, id), lower));
        break;
    case ATOM_AXIS:
        if (lower)
            bound_constant(algebra, bounds, 0);
        else
            bound_below(algebra, bounds, algebra->prog->axes.items[atom->index].padded);
        break;
    case ATOM_RANK: bound_constant(algebra, bounds, lower ? 0 : atom->role->instances - 1); break;
    case ATOM_INDEX: bounds_of_index(algebra, atom, lower, bounds); break;
    case ATOM_LOCAL: bounds_of_local(algebra, atom, lower, bounds); break;
    case ATOM_DIV:
    case ATOM_MOD:
    case ATOM_CEIL:
    case ATOM_MIN:
    case ATOM_MAX:
    case ATOM_SELECT:
    case ATOM_TRUTH:
    case ATOM_FLOOR:
    case ATOM_WHOLE:
    case ATOM_REST:
    case ATOM_BOUND:
    case ATOM_SUM:
    case ATOM_FIRST: break;
    case ATOM_WRAP:
    case ATOM_OPAQUE:
        add_bound(algebra, bounds, 1, range_limit(algebra, range_of_atom(algebra, id), lower));
        break;
    }
}

/* Of the term that is this atom; 0: there is none */
static int64_t coef_of(const Poly *poly, int atom) {
    for (int i = 0; i < poly->count; i++)
        if (poly->terms[i].count == 1 && poly->terms[i].atoms[0] == atom)
            return poly->terms[i].coef;
    return 0;
}

static void add_fact_bound(Algebra *algebra, const Poly *fact, int id, bool lower,
                           AtomBounds *bounds) {
    const Poly *factor, *rest;
    int64_t coef = coef_of(fact, id);
    if (coef == 0 || (coef > 0) != lower || coef == INT64_MIN) return;
    if (!poly_split(algebra, fact, id, &factor, &rest) || !poly_is_constant(factor, &coef)) return;
    add_bound(algebra, bounds, coef > 0 ? coef : -coef, lower ? poly_minus(algebra, rest) : rest);
}

static AtomBounds bounds_of(Algebra *algebra, int id, bool lower, int depth) {
    Atom atom = algebra->atoms.items[id];
    AtomBounds bounds = {0};
    int64_t by;
    switch (atom.kind) {
    case ATOM_SYMBOL:
    case ATOM_AXIS:
    case ATOM_RANK:
    case ATOM_INDEX:
    case ATOM_LOCAL: atom_bounds(algebra, id, lower, &bounds); break;
    case ATOM_DIV:
    case ATOM_MOD:
    case ATOM_CEIL: bounds_of_division(algebra, &atom, lower, &bounds, depth); break;
    case ATOM_MIN:
    case ATOM_MAX:
        if ((atom.kind == ATOM_MAX) == lower) {
            add_bound(algebra, &bounds, 1, atom.args[0]);
            add_bound(algebra, &bounds, 1, atom.args[1]);
        } /* prove() handles the other side by cases */
        break;
    case ATOM_TRUTH: add_bound(algebra, &bounds, 1, poly_constant(algebra, lower ? 0 : 1)); break;
    case ATOM_FLOOR: /* by * value <= a <= by * value + by - 1 */
        if (poly_is_constant(atom.args[1], &by))
            add_bound(algebra, &bounds, by,
                      lower ? poly_offset(algebra, atom.args[0], 1 - by) : atom.args[0]);
        break;
    case ATOM_WHOLE:
    case ATOM_REST:
    case ATOM_BOUND:
    case ATOM_SUM:
    case ATOM_FIRST: break;
    case ATOM_SELECT:
    case ATOM_WRAP:
    case ATOM_OPAQUE: break;
    }
    if (bounds.count == 0 && atom.kind != ATOM_SYMBOL)
        add_bound(algebra, &bounds, 1, range_limit(algebra, range_of_atom(algebra, id), lower));
    for (size_t i = 0; i < algebra->stated.count; i++)
        add_fact_bound(algebra, algebra->stated.items[i], id, lower, &bounds);
    for (size_t i = 0; i < algebra->facts.count; i++)
        add_fact_bound(algebra, algebra->facts.items[i], id, lower, &bounds);
    return bounds;
}

/* ---- the search ------------------------------------------------------------------------------ */

static int64_t rank_of(const Algebra *algebra, int id) {
    return (int64_t)algebra->atoms.items[id].level * 65536 + id;
}

static int highest_atom(const Algebra *algebra, const Poly *poly, int below) {
    int64_t top = -1, limit = below < 0 ? INT64_MAX : rank_of(algebra, below);
    int best = -1;
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++) {
            int64_t rank = rank_of(algebra, poly->terms[i].atoms[k]);
            if (rank > top && rank < limit) best = poly->terms[i].atoms[k], top = rank;
        }
    return best;
}

/* min, max and a select are one of their operands: what holds for both operands holds for them. */
static bool by_cases(Algebra *algebra, const Poly *poly, int id, int depth, int64_t slack) {
    Atom atom = algebra->atoms.items[id];
    if (atom.kind != ATOM_MIN && atom.kind != ATOM_MAX && atom.kind != ATOM_SELECT) return false;
    int first = atom.kind == ATOM_SELECT ? 1 : 0;
    return prove(algebra, poly_replace(algebra, poly, id, atom.args[first]), depth - 1, slack) &&
           prove(algebra, poly_replace(algebra, poly, id, atom.args[first + 1]), depth - 1, slack);
}

/* True if a precondition states it, or a stronger fact */
static bool is_stated(Algebra *algebra, const Poly *poly) {
    int64_t more;
    for (size_t i = 0; poly && i < algebra->stated.count; i++) {
        const Poly *fact = algebra->stated.items[i];
        if (fact->count < 2 || fact->terms[fact->count - 1].count < 2) continue;
        if (poly_is_constant(poly_sum(algebra, poly, fact, -1), &more) && more >= 0) return true;
    }
    return false;
}

/* 1: never negative; -1: never positive; 0: unknown. A constant counts as the proofs about it. */
static int sign_of(Algebra *algebra, const Poly *poly, int depth) {
    int64_t value;
    if (poly_is_constant(poly, &value)) {
        algebra->steps -= value < 0 ? 2 : 1;
        return value < 0 ? -1 : 1;
    }
    if (prove(algebra, poly, depth, 0)) return 1;
    return prove(algebra, poly_minus(algebra, poly), depth, 0) ? -1 : 0;
}

/* True if poly >= -slack is proved. Eliminates the highest atom by one of its bounds and
 * recurses; atoms of the same level (symbols) are tried in each order. A bound of scale k
 * multiplies all by k, so that an integer greater than -k is at least 0. */
static bool prove(Algebra *algebra, const Poly *poly, int depth, int64_t slack) {
    if (!poly || depth <= 0 || algebra->steps-- <= 0) return false;
    int64_t common = poly_content(poly);
    if (common > 1) {
        poly = poly_offset(algebra, poly, slack), slack = 0;
        poly = poly ? poly_divided(algebra, poly, common, true) : NULL;
    }
    if (!poly) return false;
    if (range_of_poly(algebra, poly).least >= -slack || is_stated(algebra, poly)) return true;
    if (poly->count == 0 || poly->terms[poly->count - 1].count == 0) return false;
    for (int id = highest_atom(algebra, poly, -1), first = id; id >= 0;
         id = highest_atom(algebra, poly, id)) {
        const Poly *factor, *rest;
        if (algebra->atoms.items[id].level != algebra->atoms.items[first].level &&
            algebra->atoms.items[first].level > 0)
            break;
        if (!poly_split(algebra, poly, id, &factor, &rest)) continue;
        int sign = sign_of(algebra, factor, depth - 1);
        AtomBounds bounds = {0};
        if (sign != 0) bounds = bounds_of(algebra, id, sign > 0, depth);
        for (size_t i = 0; i < bounds.count; i++) {
            const Poly *with = poly_product(algebra, factor, bounds.items[i].poly);
            int64_t scale = bounds.items[i].scale, more;
            if (__builtin_mul_overflow(slack + 1, scale, &more) || more > SLACK_LIMIT) more = 1;
            if (prove(algebra, poly_sum(algebra, with, rest, scale), depth - 1, more - 1))
                return true;
        }
        if (by_cases(algebra, poly, id, depth, slack)) return true;
    }
    return false;
}

bool bounds_prove(Algebra *algebra, const Poly *poly) {
    int before = algebra->steps; /* of an enclosing search */
    algebra_learn(algebra);
    algebra->steps = BOUND_STEPS;
    bool proved = prove(algebra, poly, BOUND_DEPTH, 0);
    algebra->steps = before;
    return proved;
}
