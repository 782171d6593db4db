/* Executions with disjoint elements. Subscripts are numbers in a mixed radix: the axes of the grid,
 * loops, the rank and the indexes are digits. */
#include "derive/order.h"

#include <stdlib.h>

typedef struct Radix {
    int atom;             /* -1: an index */
    int64_t step, extent; /* extent 0: unlimited */
} Radix;

typedef struct Radices {
    int count;
    Radix items[PROG_MAX_INDEXES + PROG_MAX_RANK + PLACE_LOOPS + 1];
} Radices;

static bool add_digit(Radices *digits, int atom, int64_t step, int64_t extent) {
    if (extent == 1) return true;
    if (step < 0) step = -step;
    if (step > INT32_MAX || extent > INT32_MAX ||
        digits->count == (int)(sizeof digits->items / sizeof *digits->items))
        return false;
    int at = digits->count++;
    for (; at > 0 && digits->items[at - 1].step > step; at--)
        digits->items[at] = digits->items[at - 1];
    digits->items[at] = (Radix){atom, step, extent};
    return true;
}

/* In a mixed radix a position determines all its digits. */
static bool determines_all(const Radices *digits) {
    int64_t reached = 0;
    for (int i = 0; i < digits->count; i++) {
        const Radix *digit = &digits->items[i];
        if (digit->step <= reached || (digit->extent == 0 && i + 1 < digits->count)) return false;
        reached += digit->extent ? digit->step * (digit->extent - 1) : 0;
    }
    return true;
}

typedef struct Variables { /* their values distinguish the executions of a statement */
    int count;
    int atoms[PROG_MAX_RANK + PLACE_LOOPS + 1];
    int64_t extents[PROG_MAX_RANK + PLACE_LOOPS + 1];
    bool determined[PROG_MAX_RANK + PLACE_LOOPS + 1];
    /* one instance takes its values one after the other */
    bool in_turn[PROG_MAX_RANK + PLACE_LOOPS + 1];
} Variables;

static void add_variable(Variables *v, int atom, int64_t extent, bool in_turn) {
    v->in_turn[v->count] = in_turn;
    v->atoms[v->count] = atom, v->extents[v->count++] = extent;
}

/* `alone`: of one block */
static bool find_variables(const Prog *prog, Algebra *algebra, const Place *place, bool alone,
                           Variables *v) {
    int64_t lo, hi;
    if (place->loop_count > PLACE_LOOPS) return false;
    for (size_t a = 0; a < prog->axes.count && (!alone || prog->persistent); a++) {
        int64_t extent;
        if (!expr_constant(prog->axes.items[a].padded, &extent)) extent = 0;
        add_variable(v, algebra_atom_axis(algebra, (int)a), extent, alone);
    }
    for (int i = 0; i < place->loop_count; i++) {
        const Region *loop = place->loops[i];
        if (loop->var < 0) return false;
        bool constant = expr_constant(loop->lo, &lo) && expr_constant(loop->hi, &hi);
        if (constant && hi <= lo) return true; /* never executed */
        add_variable(v, algebra_atom_local(algebra, place->role, loop->var), constant ? hi - lo : 0,
                     true);
    }
    if (place->role->instances > 1 && !place->role->in_turn)
        add_variable(v, algebra_atom_rank(algebra, place->role), place->role->instances, false);
    return true;
}

/* `(c*v + k) % m` is another number for each value of v, if c and m have no common factor and v has
 * at most m values: returns m. Otherwise 0. */
static int64_t permuted_by(Algebra *algebra, int id, int variable, int64_t extent) {
    const Atom atom = algebra->atoms.items[id];
    const Poly *rest;
    int64_t modulus, coef, constant;
    if (atom.kind != ATOM_MOD || !poly_is_constant(atom.args[1], &modulus) || modulus < 1 ||
        extent < 1 || extent > modulus)
        return 0;
    if (!poly_linear_in(algebra, atom.args[0], variable, &coef, &rest) ||
        !poly_is_constant(rest, &constant) || common_divisor(coef, modulus) != 1)
        return 0;
    return algebra_proves(algebra, CLAIM_NOT_NEGATIVE, atom.args[0]) ? modulus : 0;
}

/* The variables of a base as digits; false: they have another form */
static bool add_variables(Algebra *algebra, const Poly *base, const Variables *v, Radices *digits,
                          bool *mentioned) {
    for (int t = 0; t < base->count; t++)
        for (int i = 0; i < v->count; i++)
            for (int k = 0; k < base->terms[t].count; k++) {
                int atom = base->terms[t].atoms[k];
                int64_t extent = v->extents[i];
                if (atom != v->atoms[i]) {
                    if (!poly_mentions(algebra, poly_atom(algebra, atom), v->atoms[i])) continue;
                    extent = permuted_by(algebra, atom, v->atoms[i], extent);
                    if (extent == 0) return false;
                }
                if (base->terms[t].count > 1 ||
                    !add_digit(digits, atom, base->terms[t].coef, extent))
                    return false;
                mentioned[i] = true;
            }
    return true;
}

/* Marks the variables that the subscript along this axis determines: none if a term of it may
 * differ between executions in another way */
static void determine(Algebra *algebra, const Place *place, int d, Variables *v) {
    const Affine *affine = &place->access->affine[d];
    const IndexSpace *space = &place->tile->space;
    const Poly *base = affine->is ? algebra_poly(algebra, place->role, affine->base) : NULL;
    Radices digits = {0};
    bool mentioned[PROG_MAX_RANK + PLACE_LOOPS + 1] = {false};
    if (!base || poly_changes(algebra, base)) return;
    for (int i = 0; i < space->count; i++)
        if (affine->coef[i] && (space->items[i].extent < 0 ||
                                !add_digit(&digits, -1, affine->coef[i], space->items[i].extent)))
            return;
    if (!add_variables(algebra, base, v, &digits, mentioned)) return;
    for (int i = 0; i < v->count && determines_all(&digits); i++) v->determined[i] |= mentioned[i];
}

bool place_determines(const Prog *prog, Algebra *algebra, const Place *place, int atom) {
    Variables v = {0};
    if (!find_variables(prog, algebra, place, false, &v)) return false;
    for (int d = 0; d < place->access->rank; d++) determine(algebra, place, d, &v);
    for (int i = 0; i < v.count; i++)
        if (v.atoms[i] == atom) return v.determined[i];
    return false;
}

bool place_mentions(Algebra *algebra, const Place *place, int atom) {
    for (int d = 0; d < place->access->rank; d++) {
        const Affine *affine = &place->access->affine[d];
        const Poly *base = affine->is ? algebra_poly(algebra, place->role, affine->base) : NULL;
        if (!base || poly_changes(algebra, base) || poly_mentions(algebra, base, atom)) return true;
    }
    return false;
}

bool place_walks(const Place *place) {
    const IndexSpace *space = &place->tile->space;
    bool used[PROG_MAX_INDEXES] = {false};
    for (int d = 0; d < place->access->rank; d++) {
        if (!place->access->affine[d].is) return false;
        for (int i = 0; i < space->count; i++) {
            if (!place->access->affine[d].coef[i]) continue;
            if (used[i]) return false;
            used[i] = true;
        }
    }
    return true;
}

bool place_disjoint(const Prog *prog, Algebra *algebra, const Place *place, bool alone) {
    Variables v = {0};
    if (!find_variables(prog, algebra, place, alone, &v)) return false;
    for (int d = 0; d < place->access->rank; d++) determine(algebra, place, d, &v);
    for (int i = 0; i < v.count; i++) {
        bool again = v.in_turn[i] && place->transfer == TRANSFER_PLAIN &&
                     !place_mentions(algebra, place, v.atoms[i]);
        if (!v.determined[i] && v.extents[i] != 1 && !again) return false;
    }
    return true;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* True if a position's subscript determines all its variables, for indexes that reach this far */
static bool determined_within(const Prog *prog, Algebra *algebra, const Place *place,
                              const Poly *base, int64_t extent) {
    Variables v = {0};
    Radices digits = {0};
    bool mentioned[PROG_MAX_RANK + PLACE_LOOPS + 1] = {false};
    return find_variables(prog, algebra, place, true, &v) && add_digit(&digits, -1, 1, extent) &&
           add_variables(algebra, base, &v, &digits, mentioned) && determines_all(&digits);
}

/* Extent reached by the indexes of a subscript; false: unknown */
static bool reach_of(const Place *place, int d, int64_t *reach) {
    const IndexSpace *space = &place->tile->space;
    *reach = 0;
    for (int i = 0; i < space->count; i++) {
        int64_t coef = place->access->affine[d].coef[i];
        if (coef < 0 || (coef > 0 && (space->items[i].extent < 1 || coef > INT32_MAX)))
            return false;
        *reach += coef > 0 ? coef * (space->items[i].extent - 1) : 0;
    }
    return true;
}

/* True if the two access disjoint parts of the dimension, which the same digits determine */
static bool disjoint_along(const Prog *prog, Algebra *algebra, const Place *a, const Place *b,
                           int d) {
    const Affine *one = &a->access->affine[d], *two = &b->access->affine[d];
    int64_t distance, reach[2];
    if (!one->is || !two->is) return false;
    const Poly *base = algebra_poly(algebra, a->role, one->base);
    if (!base || poly_changes(algebra, base) ||
        !poly_is_constant(poly_sum(algebra, algebra_poly(algebra, b->role, two->base), base, -1),
                          &distance))
        return false;
    if (!reach_of(a, d, &reach[0]) || !reach_of(b, d, &reach[1])) return false;
    if (distance <= reach[0] && distance + reach[1] >= 0) return false;
    int64_t from = distance < 0 ? distance : 0,
            to = distance + reach[1] > reach[0] ? distance + reach[1] : reach[0];
    return determined_within(prog, algebra, a, base, to - from + 1);
}

bool place_parts_disjoint(const Prog *prog, Algebra *algebra, const Place *a, const Place *b) {
    for (int d = 0; d < a->access->rank; d++)
        if (disjoint_along(prog, algebra, a, b, d)) return true;
    return false;
}

typedef struct Stretch { /* of a subscript, without its variables */
    int64_t from, to;
} Stretch;

static int by_begin(const void *a, const void *b) {
    const Stretch *one = a, *two = b;
    return one->from < two->from ? -1 : one->from > two->from;
}

/* The same for several places: true if all pairs are disjoint along this axis */
static bool all_disjoint_along(const Prog *prog, Algebra *algebra, const Place *const *places,
                               size_t count, int d, Stretch *stretches) {
    const Affine *first = &places[0]->access->affine[d];
    const Poly *base = first->is ? algebra_poly(algebra, places[0]->role, first->base) : NULL;
    if (!base || poly_changes(algebra, base)) return false;
    for (size_t i = 0; i < count; i++) {
        const Affine *affine = &places[i]->access->affine[d];
        int64_t reach;
        if (!affine->is || !reach_of(places[i], d, &reach)) return false;
        const Poly *own = algebra_poly(algebra, places[i]->role, affine->base);
        if (!own || !poly_is_constant(poly_sum(algebra, own, base, -1), &stretches[i].from))
            return false;
        stretches[i].to = stretches[i].from + reach;
    }
    qsort(stretches, count, sizeof *stretches, by_begin);
    for (size_t i = 1; i < count; i++)
        if (stretches[i].from <= stretches[i - 1].to) return false;
    for (size_t i = 0; i < count; i++)
        if (!determined_within(
                prog, algebra, places[i],
                algebra_poly(algebra, places[i]->role, places[i]->access->affine[d].base),
                stretches[count - 1].to - stretches[0].from + 1))
            return false;
    return true;
}

bool place_all_disjoint(const Prog *prog, Algebra *algebra, const Place *const *places,
                        size_t count) {
    Stretch *stretches = NEW_ARRAY(algebra->arena, Stretch, count);
    for (int d = 0; d < places[0]->access->rank && count > 1; d++)
        if (all_disjoint_along(prog, algebra, places, count, d, stretches)) return true;
    return false;
}
