/* Proofs that two executions are disjoint. Both places are formulas over separate variables -
 * axes of the grid, loops, rank, indexes - with the conditions of their paths; it must be
 * impossible that they access one element although an axis, the rank or an index differs.
 * Subscripts are first taken as numbers in a mixed radix: equal numbers have equal digits. */
#include "check/races/races_proof.h"

#include <string.h>

typedef struct Equal {
    int atom; /* replaces this variable of the second place */
    const Poly *value;
} Equal;

typedef struct Proof {
    Arena *arena;
    const Prog *prog;
    Algebra *algebra; /* of the first place's role */
    Formulas one, two;
    bool same; /* both are one place, */
    /* and one choice of its selects: a fact about the two holds with their roles exchanged */
    bool mirrored;
    uint32_t determined; /* axes of the grid along which both have equal coordinates */
    /* variables of the second place that the subscripts give in terms of the first one's */
    VEC(Equal) digits;
    Polys zeros; /* other equations from the subscripts: each is 0 */
} Proof;

/* True if the places of all tiles are disjoint along one dimension */
static bool disjoint_tiles(const Formulas *one, const Formulas *two) {
    for (int d = 0; d < one->place->access->rank; d++)
        if (!race_overlaps(&one->reach[d], &two->reach[d])) return true;
    return false;
}

static const Poly *axis_name(const Proof *p, int axis) {
    return algebra_version(p->algebra, NULL, axis, -1, "axis", E_I32);
}

/* The replacement of the second place's variable; NULL: it is shared */
static const Poly *fresh(const Proof *p, const Atom *atom) {
    Algebra *algebra = p->algebra;
    bool loop = atom->kind == ATOM_LOCAL && atom->role == p->two.code->role &&
                atom->role->locals.items[atom->index].kind == LOCAL_LOOP;
    if (atom->kind == ATOM_AXIS && p->determined >> atom->index & 1) return NULL;
    if (atom->kind == ATOM_AXIS) return axis_name(p, atom->index);
    if (loop) return algebra_version(algebra, NULL, atom->index, -1, "loop", E_I32);
    if (atom->kind == ATOM_INDEX)
        return algebra_version(algebra, NULL, atom->index, -1, "index", E_I32);
    if (atom->kind == ATOM_RANK && atom->role->instances > 1)
        return algebra_version(algebra, NULL, 0, -1, "rank", E_I32);
    return NULL;
}

/* A variable of the second place in the formula without a replacement yet; -1: none */
static int own_variable(const Proof *p, const Poly *poly) {
    arena_count(p->algebra->arena, 1);
    for (int t = 0; t < poly->count; t++)
        for (int k = 0; k < poly->terms[t].count; k++) {
            int id = poly->terms[t].atoms[k], inner = -1;
            const Atom *atom = &p->algebra->atoms.items[id];
            if (!atom->args[0] && fresh(p, atom)) return id;
            for (int a = 0; a < 3 && inner < 0 && atom->args[a]; a++)
                inner = own_variable(p, atom->args[a]);
            if (inner >= 0) return inner;
        }
    return -1;
}

/* Replaces the second place's variables by new atoms, or by their known values. */
static const Poly *renamed(const Proof *p, const Poly *poly) {
    Algebra *algebra = p->algebra;
    for (int id; poly && (id = own_variable(p, poly)) >= 0;)
        poly = poly_replace(algebra, poly, id, fresh(p, &algebra->atoms.items[id]));
    for (size_t i = 0; i < p->digits.count && poly; i++)
        poly = poly_replace(algebra, poly, p->digits.items[i].atom, p->digits.items[i].value);
    return poly;
}

static const Poly *other_axis(const Proof *p, int axis) {
    return renamed(p, poly_atom(p->algebra, algebra_atom_axis(p->algebra, axis)));
}

static const Poly *other_index(const Proof *p, int index) {
    return renamed(p, poly_atom(p->algebra, algebra_atom_index(p->algebra, index)));
}

static const Poly *other_rank(const Proof *p) {
    return renamed(p, poly_atom(p->algebra, algebra_atom_rank(p->algebra, p->two.code->role)));
}

/* Versions of variables have the same atoms in both places but different values. */
static bool has_versions(const Algebra *algebra, const Poly *poly) {
    arena_count(algebra->arena, 1);
    for (int t = 0; poly && t < poly->count; t++)
        for (int k = 0; k < poly->terms[t].count; k++) {
            const Atom *atom = &algebra->atoms.items[poly->terms[t].atoms[k]];
            if (atom->kind == ATOM_OPAQUE && (atom->role || strncmp(atom->key, "tile", 4) == 0))
                return true;
            for (int a = 0; a < 3; a++)
                if (atom->args[a] && has_versions(algebra, atom->args[a])) return true;
        }
    return false;
}

static const Poly *second(const Proof *p, const Poly *poly) {
    const Poly *own = algebra_import(p->algebra, p->two.code->algebra, poly);
    if (own && has_versions(p->algebra, own)) return NULL;
    return renamed(p, own);
}

static void assume_zero(const Proof *p, const Poly *poly) {
    algebra_assume_poly(p->algebra, poly);
    algebra_assume_poly(p->algebra, poly_minus(p->algebra, poly));
}

/* The choice in terms of the second place's variables; unknown facts are left out of both sets. */
static Choice second_choice(const Proof *p, const Choice *choice) {
    Choice out = {{NULL, NULL}, {0, 0}};
    for (int side = 0; side < 2; side++) {
        const Poly **facts = NEW_ARRAY(p->arena, const Poly *, choice->counts[side] + 1);
        for (size_t i = 0; i < choice->counts[side]; i++) {
            const Poly *fact = second(p, choice->facts[side][i]);
            if (fact) facts[out.counts[side]++] = fact;
        }
        out.facts[side] = facts;
    }
    return out;
}

static void assume_paths(const Proof *p) {
    for (size_t i = 0; i < p->one.facts.count; i++)
        algebra_assume_poly(p->algebra, p->one.facts.items[i]);
    for (size_t i = 0; i < p->two.facts.count; i++)
        algebra_assume_poly(p->algebra, second(p, p->two.facts.items[i]));
    for (size_t i = 0; i < p->one.choices.count; i++)
        vec_push(p->algebra->arena, &p->algebra->choices, p->one.choices.items[i]);
    for (size_t i = 0; i < p->two.choices.count; i++)
        vec_push(p->algebra->arena, &p->algebra->choices,
                 second_choice(p, &p->two.choices.items[i]));
}

static void assume_same_element(const Proof *p) {
    assume_paths(p);
    for (int d = 0; d < p->one.place->access->rank; d++) {
        const Poly *a = p->one.subs[d], *b = p->two.subs[d] ? second(p, p->two.subs[d]) : NULL;
        if (a && b) assume_zero(p, poly_sum(p->algebra, a, b, -1));
    }
    for (size_t i = 0; i < p->zeros.count; i++) assume_zero(p, p->zeros.items[i]);
}

static bool is_assumed(const Proof *p, const Poly *poly) {
    for (size_t i = 0; i < p->algebra->facts.count; i++)
        if (poly_equal(p->algebra->facts.items[i], poly)) return true;
    return false;
}

/* True if a > b contradicts the assumptions */
static bool never_above(const Proof *p, const Poly *a, const Poly *b) {
    if (is_assumed(p, poly_sum(p->algebra, b, a, -1))) return true;
    PathMark mark = algebra_mark(p->algebra);
    algebra_assume_poly(p->algebra, poly_offset(p->algebra, poly_sum(p->algebra, a, b, -1), -1));
    bool never = algebra_impossible(p->algebra);
    algebra_undo(p->algebra, mark);
    return never;
}

static bool always_equal(const Proof *p, const Poly *a, const Poly *b) {
    if (poly_equal(a, b)) return true;
    return never_above(p, a, b) && (p->mirrored || never_above(p, b, a));
}

/* True if the assumptions contradict each other. Not for a place with itself: an execution
 * accesses its own elements. */
static bool never_meet(const Proof *p) { return !p->mirrored && algebra_impossible(p->algebra); }

/* True if the formula contains no variable of a place */
static bool is_free(const Algebra *algebra, const Poly *poly) {
    arena_count(algebra->arena, 1);
    for (int t = 0; t < poly->count; t++)
        for (int k = 0; k < poly->terms[t].count; k++) {
            const Atom *atom = &algebra->atoms.items[poly->terms[t].atoms[k]];
            if (atom->kind != ATOM_SYMBOL && !atom->args[0]) return false;
            for (int a = 0; a < 3 && atom->args[a]; a++)
                if (!is_free(algebra, atom->args[a])) return false;
        }
    return true;
}

/* ---- digits ---------------------------------------------------------------------------------- */

#define DIGITS_MOST 16

static bool is_variable(const Atom *atom) {
    return atom->kind == ATOM_AXIS || atom->kind == ATOM_LOCAL || atom->kind == ATOM_RANK ||
           atom->kind == ATOM_INDEX;
}

/* For a factor without variables of the place: then the first digit of the subscript is the
 * atom. */
static bool first_digit(const Formulas *f, const Poly *sub, int atom, RaceDigit *out) {
    Algebra *algebra = f->code->algebra;
    int64_t factor;
    *out = (RaceDigit){.atom = atom};
    if (!poly_split(algebra, sub, atom, &out->factor, &out->rest) || !out->rest ||
        !is_free(algebra, out->factor))
        return false;
    bool constant = out->rest->count && out->rest->terms[0].count == 0;
    const Poly *width = out->factor;
    if (poly_is_constant(out->factor, &factor) && factor != 0 && factor > -INT32_MAX) {
        int64_t value = constant ? out->rest->terms[0].coef : 0, by = factor < 0 ? -factor : factor;
        /* for a descending digit, its complement ascends */
        int64_t whole = value / by - (value % by < 0);
        out->more = factor < 0 ? -whole : whole;
        out->rest = poly_offset(algebra, out->rest, -whole * by);
        width = poly_constant(algebra, by);
    }
    PathMark mark = algebra_mark(algebra);
    for (size_t i = 0; i < f->facts.count; i++) algebra_assume_poly(algebra, f->facts.items[i]);
    const Poly *below = poly_offset(algebra, poly_sum(algebra, width, out->rest, -1), -1);
    bool within = algebra_proves(algebra, CLAIM_NOT_NEGATIVE, out->rest) &&
                  algebra_proves(algebra, CLAIM_NOT_NEGATIVE, below);
    algebra_undo(algebra, mark);
    return within;
}

/* The first digit of the subscript; false: unknown */
static bool find_digit(const Formulas *f, const Poly *sub, RaceDigit *out) {
    for (int t = 0; sub && t < sub->count; t++)
        for (int k = 0; k < sub->terms[t].count; k++) {
            int atom = sub->terms[t].atoms[k];
            if (is_variable(&f->code->algebra->atoms.items[atom]) && first_digit(f, sub, atom, out))
                return true;
        }
    return false;
}

/* The second place's variable equals this value, in terms of the first one's. */
static void note_equal(Proof *p, int atom, const Poly *value) {
    const Poly *imported =
        algebra_import(p->algebra, p->two.code->algebra, poly_atom(p->two.code->algebra, atom));
    if (!imported || !value) return;
    const Poly *own = renamed(p, imported);
    int id = imported->terms[0].atoms[0];
    const Poly *name = fresh(p, &p->algebra->atoms.items[id]);
    if (name && own && poly_equal(name, own))
        vec_push(p->arena, &p->digits, ((Equal){name->terms[0].atoms[0], value}));
    else if (own)
        vec_push(p->arena, &p->zeros, poly_sum(p->algebra, own, value, -1));
}

/* All digits of the subscript that are determined, from the first one on */
static const RaceDigits *digits_of(const Proof *p, const Formulas *f, int d) {
    RaceDigits *digits = &f->digits[d];
    const Poly *sub = f->subs[d];
    RaceDigit digit;
    if (digits->found) return digits;
    digits->found = true;
    while (digits->items.count < DIGITS_MOST && find_digit(f, sub, &digit)) {
        vec_push(p->arena, &digits->items, digit);
        sub = digit.rest;
    }
    return digits;
}

/* Two equal sums with the same leading digits: the digits are equal, and so are the rests. */
static void match_digits(Proof *p, int d) {
    const RaceDigits *a = digits_of(p, &p->one, d), *b = digits_of(p, &p->two, d);
    size_t count = a->items.count < b->items.count ? a->items.count : b->items.count, same = 0;
    for (; same < count; same++) {
        const RaceDigit *one = &a->items.items[same], *two = &b->items.items[same];
        const Poly *factor = algebra_import(p->algebra, p->two.code->algebra, two->factor);
        if (!factor || !poly_equal(one->factor, factor)) break;
        const Poly *value = poly_atom(p->algebra, one->atom);
        note_equal(p, two->atom, poly_offset(p->algebra, value, one->more - two->more));
    }
    if (!same) return;
    const Poly *rest = second(p, b->items.items[same - 1].rest);
    vec_push(p->arena, &p->zeros, poly_sum(p->algebra, a->items.items[same - 1].rest, rest, -1));
}

/* ---- grids of few tiles, one by one ---------------------------------------------------------- */

#define TILES_MOST 256

/* The subscript in the tile of these coordinates */
static RaceReach reach_in(const Proof *p, const Formulas *f, int d, const int64_t *coordinates) {
    Algebra *algebra = f->code->algebra;
    const Poly *sub = f->subs[d];
    for (size_t a = 0; a < p->prog->axes.count && sub; a++)
        sub = poly_replace(algebra, sub, algebra_atom_axis(algebra, (int)a),
                           poly_constant(algebra, coordinates[a]));
    return race_reach(algebra, &f->place->tile->space, sub);
}

static void coordinates_of(const Prog *prog, const int64_t *extents, int64_t tile, int64_t *out) {
    for (size_t a = prog->axes.count; a-- > 0; tile /= extents[a]) out[a] = tile % extents[a];
}

/* True if all pairs of tiles of a small grid reach different positions along some dimension */
static bool disjoint_one_by_one(const Proof *p) {
    int64_t extents[PROG_MAX_RANK], total = 1, at[PROG_MAX_RANK];
    int rank = p->one.place->access->rank;
    for (size_t a = 0; a < p->prog->axes.count; a++) {
        if (!expr_constant(p->prog->axes.items[a].padded, &extents[a]) || extents[a] < 1 ||
            extents[a] > TILES_MOST)
            return false;
        if ((total *= extents[a]) > TILES_MOST) return false;
    }
    RaceReach *one = NEW_ARRAY(p->arena, RaceReach, total * rank + 1),
              *two = NEW_ARRAY(p->arena, RaceReach, total * rank + 1);
    for (int64_t t = 0; t < total; t++)
        for (int d = 0; d < rank; d++) {
            coordinates_of(p->prog, extents, t, at);
            one[t * rank + d] = reach_in(p, &p->one, d, at);
            two[t * rank + d] = reach_in(p, &p->two, d, at);
        }
    for (int64_t t = 0; t < total; t++)
        for (int64_t u = 0; u < total; u++) {
            bool disjoint = t == u;
            for (int d = 0; d < rank && !disjoint; d++) {
                const RaceReach *a = &one[t * rank + d], *b = &two[u * rank + d];
                disjoint = !race_overlaps(a, b);
            }
            if (!disjoint) return false;
        }
    return true;
}

static uint32_t axes_equal(Proof *p) {
    uint32_t determined = 0;
    if (disjoint_one_by_one(p)) return UINT32_MAX;
    for (size_t a = 0; a < p->prog->axes.count; a++) {
        const Poly *own = poly_atom(p->algebra, algebra_atom_axis(p->algebra, (int)a));
        if ((p->determined >> a & 1) || always_equal(p, own, other_axis(p, (int)a)))
            determined |= (uint32_t)1 << a;
    }
    return determined;
}

static bool all_axes(const Proof *p, uint32_t axes) {
    return !(~axes & (((uint32_t)1 << p->prog->axes.count) - 1));
}

static bool ranks_equal(const Proof *p) {
    const Role *role = p->one.code->role;
    if (role != p->two.code->role || role->instances < 2 || role->in_turn) return true;
    const Poly *own = poly_atom(p->algebra, algebra_atom_rank(p->algebra, role));
    return always_equal(p, own, other_rank(p));
}

/* Only for a place that sizes do not show. */
static bool indexes_equal(const Proof *p) {
    const IndexSpace *space = &p->one.place->tile->space;
    for (int i = 0; i < space->bound && p->same && p->one.place->notes->unseen; i++) {
        const Poly *own = poly_atom(p->algebra, algebra_atom_index(p->algebra, i));
        if (space->items[i].extent == 1) continue;
        if (!always_equal(p, own, other_index(p, i))) return false;
    }
    return true;
}

/* Assumes that both places are in one tile, with its known facts. */
static void assume_same_tile(const Proof *p) {
    for (size_t a = 0; a < p->prog->axes.count; a++) {
        const Poly *own = poly_atom(p->algebra, algebra_atom_axis(p->algebra, (int)a));
        assume_zero(p, poly_sum(p->algebra, own, axis_name(p, (int)a), -1));
    }
    for (size_t i = 0; i < p->digits.count; i++) {
        const Equal *digit = &p->digits.items[i];
        assume_zero(p, poly_sum(p->algebra, poly_atom(p->algebra, digit->atom), digit->value, -1));
    }
}

/* In one tile, two reads of one element of a tensor that no role writes give the same value. */
static void prove_within(Proof *p, RaceProof *out) {
    p->determined = UINT32_MAX;
    PathMark mark = algebra_mark(p->algebra);
    assume_same_element(p);
    assume_same_tile(p);
    out->within = never_meet(p);
    out->instances = out->within || ranks_equal(p);
    out->threads = out->within || indexes_equal(p);
    algebra_undo(p->algebra, mark);
}

/* If all axes are determined, `within` implies `never`. */
static RaceProof prove(Proof *p) {
    const RaceProof never = {UINT32_MAX, true, true, true, true};
    RaceProof out = {0};
    for (int d = 0; d < p->one.place->access->rank; d++) match_digits(p, d);
    for (bool more = true; more;) { /* a determined axis may determine others */
        PathMark mark = algebra_mark(p->algebra);
        assume_same_element(p);
        out.never = never_meet(p);
        out.axes = out.never ? UINT32_MAX : axes_equal(p);
        algebra_undo(p->algebra, mark);
        if (out.never) return never;
        more = (out.axes & ~p->determined) != 0 && !all_axes(p, out.axes);
        p->determined |= out.axes;
    }
    prove_within(p, &out);
    return out;
}

RaceProof race_proof(Arena *arena, const Prog *prog, Place *one, Place *two) {
    const RaceChoices *a = race_choices(arena, prog, one), *b = race_choices(arena, prog, two);
    RaceProof all = {UINT32_MAX, true, true, true, true};
    bool same = one == two;
    for (size_t i = 0; i < a->ways.count; i++)
        for (size_t k = same ? i : 0; k < b->ways.count; k++) {
            if (disjoint_tiles(&a->ways.items[i], &b->ways.items[k])) continue;
            Proof each = {.arena = arena, .prog = prog, .algebra = one->role->code->algebra};
            each.one = a->ways.items[i], each.two = b->ways.items[k];
            each.same = same, each.mirrored = same && i == k;
            RaceProof proof = prove(&each);
            all.axes &= proof.axes;
            all.instances &= proof.instances, all.threads &= proof.threads;
            all.within &= proof.within, all.never &= proof.never;
        }
    return all;
}
