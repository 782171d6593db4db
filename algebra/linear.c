/* Fourier-Motzkin elimination over the monomials of polynomials, each taken as a variable. Takes
 * sums that are all >= 0; proves that no integers satisfy them. Conditions that become too large
 * are dropped, and then the answer is "unknown": a system with fewer conditions has more
 * solutions. */
#include "algebra/private.h"

#include <limits.h>
#include <string.h>

#define VARIABLES_MOST 32
#define ROWS_MOST      240

typedef struct Row {
    int64_t constant, coefs[VARIABLES_MOST];
} Row;

typedef struct Rows {
    Row *items; /* only the coefficients of the system's variables are set */
    size_t capacity;
} Rows;

typedef struct System {
    Algebra *algebra;
    const Term *terms[VARIABLES_MOST]; /* the monomials */
    /* expanded: variables whose atoms' bounds were added */
    int variables, expanded;
    Rows rows, spare;
    int count;
    bool impossible;
    const Poly *const *given;
    size_t given_count;
} System;

static bool same_term(const Term *a, const Term *b) {
    if (a->count != b->count) return false;
    for (int i = 0; i < a->count; i++)
        if (a->atoms[i] != b->atoms[i]) return false;
    return true;
}

static int find(const System *system, const Term *term) {
    for (int v = 0; v < system->variables; v++)
        if (same_term(system->terms[v], term)) return v;
    return -1;
}

/* Divides the row by the common divisor of its coefficients; the constant is rounded down.
 * False: there are none. */
static bool reduce(const System *system, Row *row) {
    int64_t common = 0;
    for (int v = 0; v < system->variables && common != 1; v++)
        if (row->coefs[v] != 0) common = common_divisor(common, row->coefs[v]);
    if (common == 0) return false;
    if (common == 1) return true;
    for (int v = 0; v < system->variables; v++) row->coefs[v] /= common;
    row->constant = row->constant / common - (row->constant % common < 0);
    return true;
}

static bool same_coefs(const System *system, const Row *a, const Row *b) {
    for (int v = 0; v < system->variables; v++)
        if (a->coefs[v] != b->coefs[v]) return false;
    return true;
}

static void copy_row(const System *system, Row *to, const Row *from) {
    to->constant = from->constant;
    memcpy(to->coefs, from->coefs, (size_t)system->variables * sizeof *from->coefs);
}

/* Adds a row in lowest terms; of two that differ only in the constant the stronger one is kept.
 * Changes the row. */
static void add_row(System *system, Row *row) {
    Rows *rows = &system->rows;
    if (!reduce(system, row)) {
        system->impossible |= row->constant < 0;
        return;
    }
    for (int r = 0; r < system->count; r++) {
        if (!same_coefs(system, &rows->items[r], row)) continue;
        if (row->constant < rows->items[r].constant) rows->items[r].constant = row->constant;
        return;
    }
    if (system->count == ROWS_MOST) {
        system->algebra->limits++;
        return;
    }
    vec_reserve(system->algebra->arena, (void **)&rows->items, &rows->capacity,
                (size_t)system->count + 1, sizeof *row);
    copy_row(system, &rows->items[system->count++], row);
}

static int add_variable(System *system, const Term *term) {
    int v = system->variables++;
    system->terms[v] = term;
    for (int r = 0; r < system->count; r++) system->rows.items[r].coefs[v] = 0;
    return v;
}

static bool add_poly(System *system, const Poly *poly) {
    Row row = {0};
    if (!poly) return false;
    int more = 0;
    for (int i = 0; i < poly->count; i++)
        more += poly->terms[i].count > 0 && find(system, &poly->terms[i]) < 0;
    if (system->variables + more > VARIABLES_MOST) {
        system->algebra->limits++;
        return false;
    }
    for (int i = 0; i < poly->count; i++) {
        const Term *term = &poly->terms[i];
        if (term->count == 0) {
            row.constant = term->coef;
            continue;
        }
        int v = find(system, term);
        if (v < 0) v = add_variable(system, term);
        row.coefs[v] = term->coef;
    }
    add_row(system, &row);
    return true;
}

/* By its range, or by a condition with no other atom */
static bool never_negative(const System *system, int id) {
    const Algebra *algebra = system->algebra;
    const Atom *atom = &algebra->atoms.items[id];
    for (size_t i = 0; i < system->given_count; i++) {
        const Poly *poly = system->given[i];
        int last = poly ? poly->count - 1 : -1;
        if (last >= 0 && last <= 1 && poly->terms[last].count == 1 &&
            poly->terms[last].atoms[0] == id && poly->terms[last].coef > 0 &&
            (last == 0 || (poly->terms[0].count == 0 && poly->terms[0].coef <= 0)))
            return true;
    }
    return atom->type == E_BOOL || element_rows[atom->type].kind == ELEMENT_UNSIGNED ||
           atom->kind == ATOM_REST || atom->kind == ATOM_AXIS ||
           (atom->kind == ATOM_SYMBOL && algebra->prog->symbols.items[atom->index].is_extent);
}

/* 0 <= a - floor(a / b) * b <= b - 1; within a product if b is no constant */
static void add_quotient(System *system, int id, bool alone) {
    Algebra *algebra = system->algebra;
    const Atom atom = algebra->atoms.items[id];
    int64_t by;
    if (atom.kind != ATOM_FLOOR || (!alone && poly_is_constant(atom.args[1], &by))) return;
    const Poly *self = poly_atom(algebra, id),
               *rest =
                   poly_sum(algebra, atom.args[0], poly_product(algebra, self, atom.args[1]), -1);
    add_poly(system, rest);
    add_poly(system, poly_offset(algebra, poly_sum(algebra, atom.args[1], rest, -1), -1));
    if (!poly_is_constant(atom.args[1], &by) && bounds_prove(algebra, atom.args[0]))
        add_poly(system, self);
}

/* Adds the known bounds of a monomial */
static void add_bounds(System *system, const Term *term) {
    Algebra *algebra = system->algebra;
    bool truths = true, positive = true;
    for (int k = 0; k < term->count; k++) {
        truths &= algebra->atoms.items[term->atoms[k]].type == E_BOOL;
        if (k + 1 < term->count && term->atoms[k] == term->atoms[k + 1])
            k++; /* a square */
        else
            positive &= never_negative(system, term->atoms[k]);
    }
    Poly *self = arena_alloc(algebra->arena, sizeof(Poly) + sizeof(Term));
    self->count = 1;
    self->terms[0] = *term;
    self->terms[0].coef = 1;
    if (positive) add_poly(system, self);
    if (truths) add_poly(system, poly_offset(algebra, poly_minus(algebra, self), 1));
    for (int k = 0; k < term->count; k++) add_quotient(system, term->atoms[k], term->count == 1);
    /* no square of an integer is less than its root */
    if (term->count == 2 && term->atoms[0] == term->atoms[1]) {
        const Poly *root = poly_atom(algebra, term->atoms[0]);
        add_poly(system, poly_sum(algebra, self, root, -1));
        add_poly(system, poly_sum(algebra, self, root, 1));
    }
    if (term->count != 1) return;
    const Atom atom = algebra->atoms.items[term->atoms[0]];
    if (atom.kind == ATOM_REST)
        add_poly(system, poly_offset(algebra, poly_sum(algebra, atom.args[0], self, -1), -1));
    for (int a = 0; a < 2 && (atom.kind == ATOM_MIN || atom.kind == ATOM_MAX); a++) {
        const Poly *more = poly_sum(algebra, self, atom.args[a], -1);
        add_poly(system, atom.kind == ATOM_MAX ? more : poly_minus(algebra, more));
    }
    if (atom.kind == ATOM_FIRST) {
        add_poly(system, poly_sum(algebra, self, atom.args[0], -1));
        add_poly(system, poly_sum(algebra, atom.args[1], self, -1));
    }
}

/* True if it shares a monomial with the system, or contains a quotient or extreme of one */
static bool touches_in(const System *system, const Poly *poly, Visited *visited) {
    for (int i = 0; i < poly->count; i++)
        if (poly->terms[i].count > 0 && find(system, &poly->terms[i]) >= 0) return true;
    for (int i = 0; i < poly->count; i++) {
        if (poly->terms[i].count != 1) continue;
        const Atom *atom = &system->algebra->atoms.items[poly->terms[i].atoms[0]];
        bool bounded = atom->kind == ATOM_FLOOR || atom->kind == ATOM_MIN || atom->kind == ATOM_MAX;
        if (!bounded || visit_again(system->algebra, visited, poly->terms[i].atoms[0])) continue;
        for (int a = 0; a < 2; a++)
            if (touches_in(system, atom->args[a], visited)) return true;
    }
    return false;
}

static bool touches(const System *system, const Poly *poly) {
    return touches_in(system, poly, &(Visited){0});
}

/* Adds the conditions that share monomials with the system, directly or indirectly */
static void collect(System *system, const Poly *const *polys, size_t count) {
    bool *in = NEW_ARRAY(system->algebra->arena, bool, count + 1);
    for (bool more = true; more;) {
        more = false;
        while (system->expanded < system->variables)
            add_bounds(system, system->terms[system->expanded++]);
        for (size_t i = 0; i < count; i++) {
            if (in[i] || !polys[i] || !touches(system, polys[i])) continue;
            in[i] = more = true;
            add_poly(system, polys[i]);
        }
    }
}

typedef struct Choosing { /* the cost of eliminating a variable */
    int rows;             /* number of rows after it */
    bool exact; /* loses no integers: in each combination one of the two coefficients is 1 */
} Choosing;

static Choosing weigh(const System *system, int v) {
    int above = 0, below = 0;
    bool above_once = true, below_once = true;
    for (int r = 0; r < system->count; r++) {
        int64_t coef = system->rows.items[r].coefs[v];
        above += coef > 0, below += coef < 0;
        above_once &= coef <= 1, below_once &= coef >= -1;
    }
    if (above + below == 0) return (Choosing){INT_MAX, false};
    return (Choosing){system->count - above - below + above * below, above_once || below_once};
}

/* The variable to eliminate next: an exact elimination if possible, then one with the fewest new
 * rows; -1: none is left, or all are too expensive */
static int cheapest(const System *system) {
    int best = -1;
    Choosing least = {ROWS_MOST, false};
    for (int v = 0; v < system->variables; v++) {
        Choosing one = weigh(system, v);
        system->algebra->limits += one.rows >= ROWS_MOST && one.rows < INT_MAX;
        bool better = one.exact != least.exact ? one.exact : one.rows < least.rows;
        if (one.rows < ROWS_MOST && better) best = v, least = one;
    }
    return best;
}

static bool combined(const System *system, const Row *above, const Row *below, int v, Row *out) {
    int64_t common = common_divisor(above->coefs[v], below->coefs[v]),
            a = -below->coefs[v] / common, b = above->coefs[v] / common, x, y;
    for (int i = -1; i < system->variables; i++) {
        if (__builtin_mul_overflow(i < 0 ? above->constant : above->coefs[i], a, &x) ||
            __builtin_mul_overflow(i < 0 ? below->constant : below->coefs[i], b, &y) ||
            __builtin_add_overflow(x, y, i < 0 ? &out->constant : &out->coefs[i]))
            return false;
    }
    return true;
}

static void eliminate(System *system, int v) {
    Rows before = system->rows;
    Row *old = before.items, row;
    int count = system->count;
    system->rows = system->spare;
    system->spare = before;
    system->count = 0;
    for (int r = 0; r < count && !system->impossible; r++) {
        if (old[r].coefs[v] == 0) add_row(system, &old[r]);
        for (int s = 0; s < count && old[r].coefs[v] > 0 && !system->impossible; s++) {
            system->algebra->work -= 8; /* in terms, by their time */
            if (old[s].coefs[v] < 0 && combined(system, &old[r], &old[s], v, &row))
                add_row(system, &row);
        }
    }
}

bool polys_impossible(Algebra *algebra, const Poly *const *polys, size_t count, const Poly *also) {
    int64_t before = algebra->work;
    if (!algebra->rows) algebra->rows = NEW_ARRAY(algebra->arena, Rows, 2);
    Rows *room = algebra->rows;
    System system = {.algebra = algebra, .given = polys, .given_count = count};
    system.rows = room[0], system.spare = room[1];
    if (also) {
        if (!add_poly(&system, also)) return false;
    } else {
        for (size_t i = 0; i < count; i++) add_poly(&system, polys[i]);
    }
    collect(&system, polys, count);
    for (int v; !system.impossible && algebra->work > 0 && (v = cheapest(&system)) >= 0;)
        eliminate(&system, v);
    room[0] = system.rows, room[1] = system.spare;
    arena_count(algebra->arena, (uint64_t)(before - algebra->work) * 2);
    return system.impossible;
}
