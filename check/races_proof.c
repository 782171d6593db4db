/* Proofs that two executions never touch one element. Both places are written as formulas over variables of their own - axes of the grid, loops,
 * rank, indexes - with what the paths to them have decided; that they touch the same element although an axis, the rank or an index differs
 * must be impossible. */
#include "check/races.h"
#include "flow/values.h"

#include <string.h>

typedef VEC(const Poly *) Polys;

typedef struct Reach { /* of a subscript: an interval over its indexes */
    int64_t lo, hi;
    bool known;
} Reach;

typedef struct RaceFormulas { /* a place as formulas */
    const Place *place;
    FlowCode *code;
    int at;            /* its row */
    Polys facts;       /* each >= 0 */
    const Poly *subs[PROG_MAX_RANK];
    Reach reach[PROG_MAX_RANK]; /* in all tiles; known where indexes alone decide */
} Formulas;

typedef struct Proof {
    Arena *arena;
    const Prog *prog;
    Algebra *algebra;  /* of the first place's role */
    Formulas one, two;
    bool same;         /* both are one place */
    uint32_t indexes;  /* indexes that are the same in both */
    uint32_t told;     /* axes of the grid along which both are known to have one coordinate */
} Proof;

static int row_of(const FlowCode *code, const Stmt *stmt) {
    for (size_t at = 0; at < code->rows.count; at++)
        if (code->rows.items[at].kind == ROW_TILE && code->rows.items[at].stmt == stmt) return (int)at;
    return -1;
}

/* 0 <= value < extent */
static void add_range(Algebra *algebra, Arena *arena, Polys *facts, const Poly *value, const Poly *extent) {
    const Poly *below = poly_offset(algebra, poly_sum(algebra, extent, value, -1), -1);
    vec_push(arena, facts, value);
    if (extent && below) vec_push(arena, facts, below);
}

/* Ranges that the algebra would know of the atoms themselves; the second place's get other names, of which it knows none. */
static void add_ranges(const Proof *p, Formulas *f) {
    Algebra *algebra = f->code->algebra;
    const IndexSpace *space = &f->place->stmt->tile->space;
    for (size_t a = 0; a < p->prog->axes.count; a++) {
        const Poly *extent = algebra_poly(algebra, NULL, p->prog->axes.items[a].padded);
        add_range(algebra, p->arena, &f->facts, poly_atom(algebra, algebra_atom_axis(algebra, (int)a)), extent);
    }
    for (int i = 0; i < space->count; i++) {
        const Index *index = &space->items[i];
        const Poly *extent = index->extent >= 0 ? poly_constant(algebra, index->extent) : algebra_poly(algebra, NULL, index->dynamic);
        add_range(algebra, p->arena, &f->facts, poly_atom(algebra, algebra_atom_index(algebra, i)), extent);
    }
    const Poly *rank = poly_atom(algebra, algebra_atom_rank(algebra, f->code->role));
    if (f->code->role->instances > 1) add_range(algebra, p->arena, &f->facts, rank, poly_constant(algebra, f->code->role->instances));
}

static Reach reach_of(const Formulas *f, const Poly *sub) {
    const Algebra *algebra = f->code->algebra;
    Reach out = {.known = sub != NULL};
    for (int t = 0; out.known && t < sub->count; t++) {
        const Term *term = &sub->terms[t];
        const Atom *atom = term->count == 1 ? &algebra->atoms.items[term->atoms[0]] : NULL;
        const IndexSpace *space = &f->place->stmt->tile->space;
        bool index = atom && atom->kind == ATOM_INDEX && atom->index < space->count && space->items[atom->index].extent > 0;
        int64_t most = index ? space->items[atom->index].extent - 1 : 1, far;
        out.known = (term->count == 0 || index) && !__builtin_mul_overflow(term->coef, most, &far);
        if (!out.known) break;
        if (term->count == 0) out.lo += term->coef, out.hi += term->coef;
        else if (far > 0) out.hi += far;
        else out.lo += far;
    }
    return out;
}

static void formulate(const Proof *p, Formulas *f) {
    Algebra *algebra = f->code->algebra;
    const Access *access = f->place->access;
    PathMark mark = values_assume(p->arena, f->code, f->at);
    for (size_t i = mark.facts; i < algebra->facts.count; i++) vec_push(p->arena, &f->facts, algebra->facts.items[i]);
    algebra_undo(algebra, mark);
    add_ranges(p, f);
    for (int d = 0; d < access->rank; d++) {
        f->subs[d] = values_poly(p->arena, f->code, f->at, access->subs[d]);
        if (!f->subs[d] || poly_changes(algebra, f->subs[d])) f->subs[d] = NULL;
        f->reach[d] = reach_of(f, f->subs[d]);
    }
}

/* Made once a place */
static Formulas *formulas_of(const Proof *p, Place *place) {
    if (place->formulas) return place->formulas;
    FlowCode *code = place->role->code;
    Formulas *f = place->formulas = NEW(p->arena, Formulas);
    *f = (Formulas){.place = place, .code = code, .at = row_of(code, place->stmt)};
    if (f->at >= 0) formulate(p, f);
    return f;
}

static bool meets(const Reach *a, const Reach *b) { return !a->known || !b->known || (a->hi >= b->lo && b->hi >= a->lo); }

/* Are the places of all tiles apart along one dimension? */
static bool far_apart(const Proof *p) {
    for (int d = 0; d < p->one.place->access->rank; d++)
        if (!meets(&p->one.reach[d], &p->two.reach[d])) return true;
    return false;
}

/* The coordinate of the second place */
static const Poly *other_axis(const Proof *p, int axis) {
    if (p->told >> axis & 1) return poly_atom(p->algebra, algebra_atom_axis(p->algebra, axis));
    return algebra_version(p->algebra, NULL, axis, -1, "axis", E_I32);
}

/* The second place's own variables get names of their own. */
static const Poly *renamed(const Proof *p, const Poly *poly) {
    Algebra *algebra = p->algebra;
    const Role *role = p->two.code->role;
    const IndexSpace *space = &p->two.place->stmt->tile->space;
    for (size_t a = 0; a < p->prog->axes.count && poly; a++)
        if (!(p->told >> a & 1)) poly = poly_replace(algebra, poly, algebra_atom_axis(algebra, (int)a), other_axis(p, (int)a));
    for (size_t v = 0; v < role->locals.count && poly; v++) {
        if (role->locals.items[v].kind != LOCAL_LOOP) continue;
        int atom = algebra_atom_local(algebra, role, (int)v);
        if (poly_mentions(algebra, poly, atom)) poly = poly_replace(algebra, poly, atom, algebra_version(algebra, NULL, (int)v, -1, "loop", E_I32));
    }
    for (int i = 0; i < space->count && poly; i++)
        if (!(p->indexes >> i & 1))
            poly = poly_replace(algebra, poly, algebra_atom_index(algebra, i), algebra_version(algebra, NULL, i, -1, "index", E_I32));
    if (poly && role->instances > 1)
        poly = poly_replace(algebra, poly, algebra_atom_rank(algebra, role), algebra_version(algebra, NULL, 0, -1, "rank", E_I32));
    return poly;
}

/* Versions of variables: what the second place mentions of them differs from the first place's, though the names are the same. */
static bool has_versions(const Algebra *algebra, const Poly *poly) {
    for (int t = 0; poly && t < poly->count; t++)
        for (int k = 0; k < poly->terms[t].count; k++) {
            const Atom *atom = &algebra->atoms.items[poly->terms[t].atoms[k]];
            if (atom->kind == ATOM_OPAQUE && (atom->role || strncmp(atom->key, "tile", 4) == 0)) return true;
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

static void assume_same_element(const Proof *p) {
    for (size_t i = 0; i < p->one.facts.count; i++) algebra_assume_poly(p->algebra, p->one.facts.items[i]);
    for (size_t i = 0; i < p->two.facts.count; i++) algebra_assume_poly(p->algebra, second(p, p->two.facts.items[i]));
    for (int d = 0; d < p->one.place->access->rank; d++) {
        const Poly *a = p->one.subs[d], *b = p->two.subs[d] ? second(p, p->two.subs[d]) : NULL;
        const Poly *less = a && b ? poly_sum(p->algebra, a, b, -1) : NULL;
        if (!less) continue;
        algebra_assume_poly(p->algebra, less);
        algebra_assume_poly(p->algebra, poly_minus(p->algebra, less));
    }
}

/* Is a > b impossible, with what is assumed? */
static bool never_above(const Proof *p, const Poly *a, const Poly *b) {
    PathMark mark = algebra_mark(p->algebra);
    algebra_assume_poly(p->algebra, poly_offset(p->algebra, poly_sum(p->algebra, a, b, -1), -1));
    bool never = algebra_impossible(p->algebra);
    algebra_undo(p->algebra, mark);
    return never;
}

static bool always_equal(const Proof *p, const Poly *a, const Poly *b) {
    return never_above(p, a, b) && (p->same || never_above(p, b, a));
}

/* Is nothing in the formula a place's own? */
static bool is_free(const Algebra *algebra, const Poly *poly) {
    for (int t = 0; t < poly->count; t++)
        for (int k = 0; k < poly->terms[t].count; k++) {
            const Atom *atom = &algebra->atoms.items[poly->terms[t].atoms[k]];
            if (atom->kind != ATOM_SYMBOL && !atom->args[0]) return false;
            for (int a = 0; a < 3 && atom->args[a]; a++)
                if (!is_free(algebra, atom->args[a])) return false;
        }
    return true;
}

/* base = factor * digit + rest, 0 <= rest < factor, where nothing in the factor is the place's own: the subscript tells the digit, an axis or an
 * index. */
static const Poly *radix_of(const Formulas *f, int d, int digit) {
    Algebra *algebra = f->code->algebra;
    const Poly *factor, *rest;
    if (!f->subs[d] || !poly_split(algebra, f->subs[d], digit, &factor, &rest)) return NULL;
    if (!is_free(algebra, factor)) return NULL;
    PathMark mark = algebra_mark(algebra);
    for (size_t i = 0; i < f->facts.count; i++) algebra_assume_poly(algebra, f->facts.items[i]);
    bool within = prove_at_least_zero(algebra, rest) &&
                  prove_at_least_zero(algebra, poly_offset(algebra, poly_sum(algebra, factor, rest, -1), -1));
    algebra_undo(algebra, mark);
    return within ? factor : NULL;
}

/* `one` and `two`: the atom in the algebra of either place's role */
static bool told_by_radix(const Proof *p, int one, int two) {
    for (int d = 0; d < p->one.place->access->rank; d++) {
        const Poly *own = radix_of(&p->one, d, one), *other = own ? radix_of(&p->two, d, two) : NULL;
        other = other ? algebra_import(p->algebra, p->two.code->algebra, other) : NULL;
        if (other && poly_equal(own, other)) return true;
    }
    return false;
}

/* ---- grids of few tiles, each looked at ---------------------------------------------------------------------------------- */

#define TILES_MOST 256

/* The subscript in the tile of these coordinates */
static Reach reach_in(const Proof *p, const Formulas *f, int d, const int64_t *coordinates) {
    Algebra *algebra = f->code->algebra;
    const Poly *sub = f->subs[d];
    for (size_t a = 0; a < p->prog->axes.count && sub; a++)
        sub = poly_replace(algebra, sub, algebra_atom_axis(algebra, (int)a), poly_constant(algebra, coordinates[a]));
    return reach_of(f, sub);
}

static void coordinates_of(const Prog *prog, const int64_t *extents, int64_t tile, int64_t *out) {
    for (size_t a = prog->axes.count; a-- > 0; tile /= extents[a]) out[a] = tile % extents[a];
}

/* Do all pairs of tiles of a small grid reach different places along some dimension? */
static bool apart_one_by_one(const Proof *p) {
    int64_t extents[PROG_MAX_RANK], total = 1, at[PROG_MAX_RANK];
    int rank = p->one.place->access->rank;
    for (size_t a = 0; a < p->prog->axes.count; a++) {
        if (!expr_constant(p->prog->axes.items[a].padded, &extents[a]) || extents[a] < 1 || extents[a] > TILES_MOST) return false;
        if ((total *= extents[a]) > TILES_MOST) return false;
    }
    Reach *one = NEW_ARRAY(p->arena, Reach, total * rank + 1), *two = NEW_ARRAY(p->arena, Reach, total * rank + 1);
    for (int64_t t = 0; t < total; t++)
        for (int d = 0; d < rank; d++) {
            coordinates_of(p->prog, extents, t, at);
            one[t * rank + d] = reach_in(p, &p->one, d, at);
            two[t * rank + d] = reach_in(p, &p->two, d, at);
        }
    for (int64_t t = 0; t < total; t++)
        for (int64_t u = 0; u < total; u++) {
            bool apart = t == u;
            for (int d = 0; d < rank && !apart; d++) {
                const Reach *a = &one[t * rank + d], *b = &two[u * rank + d];
                apart = !meets(a, b);
            }
            if (!apart) return false;
        }
    return true;
}

static uint32_t axes_equal(Proof *p) {
    uint32_t told = 0;
    if (apart_one_by_one(p)) return UINT32_MAX;
    for (size_t a = 0; a < p->prog->axes.count; a++) {
        const Poly *own = poly_atom(p->algebra, algebra_atom_axis(p->algebra, (int)a));
        bool equal = (p->told >> a & 1) || always_equal(p, own, other_axis(p, (int)a));
        if (equal || told_by_radix(p, algebra_atom_axis(p->algebra, (int)a), algebra_atom_axis(p->two.code->algebra, (int)a))) told |= (uint32_t)1 << a;
    }
    return told;
}

static bool ranks_equal(const Proof *p) {
    const Role *role = p->one.code->role;
    if (role != p->two.code->role || role->instances < 2 || role->in_turn) return true;
    const Poly *own = poly_atom(p->algebra, algebra_atom_rank(p->algebra, role));
    return always_equal(p, own, algebra_version(p->algebra, NULL, 0, -1, "rank", E_I32));
}

static bool indexes_equal(const Proof *p) {
    const IndexSpace *space = &p->one.place->stmt->tile->space;
    for (int i = 0; i < space->bound && p->same; i++) {
        const Poly *own = poly_atom(p->algebra, algebra_atom_index(p->algebra, i));
        if (space->items[i].extent == 1 || p->indexes >> i & 1) continue;
        if (!always_equal(p, own, algebra_version(p->algebra, NULL, i, -1, "index", E_I32))) return false;
    }
    return true;
}

static void assume_same_tile(const Proof *p) {
    for (size_t a = 0; a < p->prog->axes.count; a++) {
        const Poly *own = poly_atom(p->algebra, algebra_atom_axis(p->algebra, (int)a));
        const Poly *less = poly_sum(p->algebra, own, other_axis(p, (int)a), -1);
        algebra_assume_poly(p->algebra, less);
        algebra_assume_poly(p->algebra, poly_minus(p->algebra, less));
    }
}

RaceProof race_proof(Arena *arena, const Prog *prog, Place *one, Place *two) {
    Proof p = {.arena = arena, .prog = prog, .algebra = one->role->code->algebra, .same = one == two};
    p.one = *formulas_of(&p, one), p.two = *formulas_of(&p, two);
    if (p.one.at < 0 || p.two.at < 0) return (RaceProof){0};
    if (far_apart(&p)) return (RaceProof){UINT32_MAX, true, true, true};
    RaceProof out = {0};
    for (int i = 0; p.same && i < one->stmt->tile->space.count; i++)
        if (told_by_radix(&p, algebra_atom_index(p.algebra, i), algebra_atom_index(p.algebra, i))) p.indexes |= (uint32_t)1 << i;
    for (bool more = true; more;) { /* an axis that is told helps to tell others */
        PathMark mark = algebra_mark(p.algebra);
        assume_same_element(&p);
        out.never = algebra_impossible(p.algebra);
        out.axes = out.never ? UINT32_MAX : axes_equal(&p);
        more = !out.never && (out.axes & ~p.told) != 0;
        if (!more) {
            assume_same_tile(&p);
            out.instances = out.never || ranks_equal(&p);
            out.threads = out.never || indexes_equal(&p);
            out.never |= algebra_impossible(p.algebra);
        }
        algebra_undo(p.algebra, mark);
        p.told |= out.axes;
    }
    return out;
}
