/* The prover's second step: cases and substitution. Each question (ATOM_TRUTH) that the facts do
 * not answer gives two cases; for claims of equality, variables in quotients are replaced by c *
 * whole + rest, and a value that two conditions determine is substituted. In each case, linear
 * elimination decides. Takes any formula; a yes holds for all integers. */
#include "algebra/private.h"

#define STEPS_MOST  500
#define PARTS_MOST  1024 /* most values of a remainder */
#define SPLITS_MOST 5    /* nesting depth of questions and choices, for `at least 0` */

typedef VEC(const Poly *) Polys;

typedef struct Case {
    Algebra *algebra;
    Polys facts; /* each fact >= 0 */
    const Poly *poly;
    bool least;      /* the claim: true: at least 0; false: 0 */
    Choice *choices; /* unresolved ones, in normal form */
    size_t choice_count;
    int splits; /* remaining depth of cases */
} Case;

static void know(Case *now, const Poly *fact) {
    int64_t value;
    if (fact && !(poly_is_constant(fact, &value) && value >= 0))
        vec_push(now->algebra->arena, &now->facts, fact);
}

static bool limited(const Case *now) {
    now->algebra->limits++;
    return false;
}

static bool impossible(const Case *now, const Poly *also) {
    return polys_impossible(now->algebra, now->facts.items, now->facts.count, also);
}

typedef struct Put {
    int atom;
    const Poly *by;
} Put;

static const Poly *in_choice(Algebra *algebra, const Poly *fact, const Put *put) {
    return put ? poly_replace(algebra, fact, put->atom, put->by) : poly_normal(algebra, fact);
}

/* Both sets of facts, after replacement or in normal form */
static Choice of_choice(Algebra *algebra, const Choice *choice, const Put *put) {
    Choice out = *choice;
    for (int side = 0; side < 2; side++) {
        const Poly **facts = NEW_ARRAY(algebra->arena, const Poly *, choice->counts[side] + 1);
        for (size_t i = 0; i < choice->counts[side]; i++)
            facts[i] = in_choice(algebra, choice->facts[side][i], put);
        out.facts[side] = facts;
    }
    return out;
}

/* What replaces a quotient or a rest has its limits: 0 <= a - value * b < b, 0 <= value < a */
static void know_definition(Case *now, const Atom *old, const Poly *value) {
    Algebra *algebra = now->algebra;
    if (old->kind != ATOM_FLOOR && old->kind != ATOM_REST) return;
    bool is_rest = old->kind == ATOM_REST;
    const Poly *limit = old->args[is_rest ? 0 : 1], *rest = value;
    if (!is_rest) rest = poly_sum(algebra, old->args[0], poly_product(algebra, value, limit), -1);
    know(now, rest);
    know(now, poly_offset(algebra, poly_sum(algebra, limit, rest, -1), -1));
}

static void replace(Case *now, int atom, const Poly *by) {
    const Atom old = now->algebra->atoms.items[atom];
    know_definition(now, &old, by);
    size_t count = now->facts.count;
    const Poly **facts = now->facts.items;
    now->facts = (Polys){0};
    for (size_t i = 0; i < count; i++) know(now, poly_replace(now->algebra, facts[i], atom, by));
    Choice *choices = now->choices;
    now->choices = NEW_ARRAY(now->algebra->arena, Choice, now->choice_count + 1);
    for (size_t i = 0; i < now->choice_count; i++)
        now->choices[i] = of_choice(now->algebra, &choices[i], &(Put){atom, by});
    now->poly = poly_replace(now->algebra, now->poly, atom, by);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* A question whose operand contains no other one, min and max included; -1: none */
static int question(const Algebra *algebra, const Poly *poly) {
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++) {
            int id = algebra->atoms.items[poly->terms[i].atoms[k]].question;
            if (id >= 0) return id;
        }
    return -1;
}

static const Poly *denied(Algebra *algebra, const Poly *poly) {
    return poly_offset(algebra, poly_minus(algebra, poly), -1);
}

static bool zero(Case now);
static bool at_least(Case now);

static bool proved(Case now) { return now.least ? at_least(now) : zero(now); }

static bool is_extreme(const Atom *atom) {
    return atom->kind == ATOM_MIN || atom->kind == ATOM_MAX;
}

/* The formula that is >= 0 if the answer is yes. For a min or max: the second operand minus the
 * first. NULL: not a formula */
static const Poly *claim_of(Algebra *algebra, const Atom *atom) {
    if (is_extreme(atom)) return poly_sum(algebra, atom->args[1], atom->args[0], -1);
    return atom->kind == ATOM_TRUTH ? atom->args[0] : NULL;
}

static bool answer(Case now, int id, bool value) {
    Atom atom = now.algebra->atoms.items[id];
    Polys facts = now.facts;
    const Poly *question_claim = claim_of(now.algebra, &atom);
    now.facts = (Polys){0};
    for (size_t i = 0; i < facts.count; i++)
        know(&now, is_extreme(&atom) ? facts.items[i]
                                     : poly_decided(now.algebra, facts.items[i], id, value));
    if (question_claim) know(&now, value ? question_claim : denied(now.algebra, question_claim));
    if (is_extreme(&atom))
        replace(&now, id, atom.args[value == (atom.kind == ATOM_MAX)]);
    else
        now.poly = poly_decided(now.algebra, now.poly, id, value);
    return proved(now);
}

static bool by_answers(Case now, int id) {
    Atom atom = now.algebra->atoms.items[id];
    const Poly *question_claim = claim_of(now.algebra, &atom);
    if (question_claim && impossible(&now, question_claim)) return answer(now, id, false);
    if (question_claim && impossible(&now, denied(now.algebra, question_claim)))
        return answer(now, id, true);
    return answer(now, id, true) && answer(now, id, false);
}

/* ---- quotients ------------------------------------------------------------------------------- */

/* A quotient by a constant whose operand contains no other one; -1: none */
static int quotient(const Algebra *algebra, const Poly *poly) {
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++) {
            int id = algebra->atoms.items[poly->terms[i].atoms[k]].quotient;
            if (id >= 0) return id;
        }
    return -1;
}

static bool stands_in(const Poly *poly, int atom) {
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++)
            if (poly->terms[i].atoms[k] == atom) return true;
    return false;
}

/* Quotients that contain an atom directly */
typedef struct Divisors {
    Algebra *algebra;
    int atom;
    int64_t multiple; /* of all their divisors; 0: too large */
    Visited visited;
} Divisors;

static void divisors(Divisors *d, const Poly *poly) {
    for (int i = 0; i < poly->count && d->multiple; i++)
        for (int k = 0; k < poly->terms[i].count && d->multiple; k++) {
            int id = poly->terms[i].atoms[k];
            const Atom above = d->algebra->atoms.items[id];
            int64_t by;
            if (!atom_may_hold(&above, id, d->atom) || visit_again(d->algebra, &d->visited, id))
                continue;
            bool stands = above.kind == ATOM_FLOOR && poly_is_constant(above.args[1], &by) &&
                          stands_in(above.args[0], d->atom);
            int64_t times = stands ? by / common_divisor(d->multiple, by) : 1;
            if (__builtin_mul_overflow(d->multiple, times, &d->multiple) || d->multiple > INT32_MAX)
                d->multiple = 0;
            for (int n = 0; n < 3 && above.args[n]; n++) divisors(d, above.args[n]);
        }
}

static bool nonlinear_in(Algebra *algebra, const Poly *poly, int atom) {
    int64_t coef;
    const Poly *rest;
    return !poly_linear_in(algebra, poly, atom, &coef, &rest);
}

/* atom = by * whole + rest, everywhere */
static bool by_parts(Case now, int id) {
    Algebra *algebra = now.algebra;
    const Poly *under = algebra->atoms.items[id].args[0];
    int atom = -1;
    for (int i = 0; i < under->count; i++) /* prefers an atom that is not a part already */
        for (int k = 0; k < under->terms[i].count; k++) {
            int found = under->terms[i].atoms[k];
            if (atom < 0 || algebra->atoms.items[atom].kind == ATOM_REST ||
                (algebra->atoms.items[atom].kind == ATOM_WHOLE &&
                 algebra->atoms.items[found].kind != ATOM_REST && found < atom))
                atom = found;
        }
    /* in a product with others: by its values */
    if (algebra->atoms.items[atom].kind == ATOM_REST) {
        int64_t limit;
        if (!poly_is_constant(algebra->atoms.items[atom].args[0], &limit) || limit > 16)
            return false;
        for (int64_t value = 0; value < limit; value++) {
            Case one = now;
            replace(&one, atom, poly_constant(algebra, value));
            if (!impossible(&one, NULL) && !zero(one)) return false;
        }
        return true;
    }
    Divisors found = {.algebra = algebra, .atom = atom, .multiple = 1};
    divisors(&found, now.poly);
    int64_t by = found.multiple;
    if (by < 2 || by > PARTS_MOST) return false;
    bool nonlinear = nonlinear_in(algebra, under, atom);
    if (nonlinear && by > 16) return false;
    int whole = algebra_part(algebra, 0);
    const Poly *multiple =
        poly_sum(algebra, poly_constant(algebra, 0), poly_atom(algebra, whole), by);
    if (!nonlinear) {
        replace(&now, atom,
                poly_sum(algebra, multiple, poly_atom(algebra, algebra_part(algebra, by)), 1));
        return zero(now);
    }
    for (int64_t rest = 0; rest < by; rest++) {
        Case one = now;
        replace(&one, atom, poly_offset(algebra, multiple, rest));
        if (!impossible(&one, NULL) && !zero(one)) return false;
    }
    return true;
}

/* ---- determined values ----------------------------------------------------------------------- */

/* An atom with coefficient 1 or -1, and its value for which the fact is 0; -1: none */
static int solvable(Algebra *algebra, const Poly *fact, const Poly **value) {
    for (int i = fact->count; i-- > 0;) {
        const Poly *rest;
        int64_t coef;
        if (fact->terms[i].count != 1 || (fact->terms[i].coef != 1 && fact->terms[i].coef != -1))
            continue;
        int atom = fact->terms[i].atoms[0];
        if (!poly_linear_in(algebra, fact, atom, &coef, &rest)) continue;
        *value = coef > 0 ? poly_minus(algebra, rest) : rest;
        if (*value) return atom;
    }
    return -1;
}

static bool concerns(Algebra *algebra, const Poly *fact, const Poly *poly) {
    for (int i = 0; i < fact->count; i++)
        for (int k = 0; k < fact->terms[i].count; k++)
            if (poly_mentions(algebra, poly, fact->terms[i].atoms[k])) return true;
    return false;
}

static bool forced(Case *now, const Poly *fact) {
    const Poly *value;
    if (!fact || !concerns(now->algebra, fact, now->poly)) return false;
    int atom = solvable(now->algebra, fact, &value);
    if (atom < 0 || !impossible(now, poly_offset(now->algebra, fact, -1))) return false;
    replace(now, atom, value);
    return true;
}

/* Substitutes the value of a condition that holds with equality: of the facts, or of the limits
 * of a remainder */
static bool substitute(Case *now) {
    for (size_t i = 0; i < now->facts.count; i++)
        if (forced(now, now->facts.items[i])) return true;
    for (int i = 0; i < now->poly->count; i++)
        for (int k = 0; k < now->poly->terms[i].count; k++) {
            int id = now->poly->terms[i].atoms[k];
            const Atom atom = now->algebra->atoms.items[id];
            const Poly *self = poly_atom(now->algebra, id);
            if (atom.kind == ATOM_REST &&
                (forced(now, self) ||
                 forced(now, poly_offset(now->algebra,
                                         poly_sum(now->algebra, atom.args[0], self, -1), -1))))
                return true;
        }
    return false;
}

/* ---- the search ------------------------------------------------------------------------------ */

static bool zero(Case now) {
    int id;
    if (!now.poly) return false;
    if (now.poly->count == 0) return true;
    if (now.algebra->steps-- <= 0 || now.algebra->work < 0) return limited(&now);
    if ((id = question(now.algebra, now.poly)) >= 0) return by_answers(now, id);
    if ((id = quotient(now.algebra, now.poly)) >= 0) {
        if (by_parts(now, id)) return true;
    }
    if (substitute(&now)) return zero(now);
    return impossible(&now, NULL);
}

/* A question in a fact: which of two is the least, is it true; -1: none */
static int question_in_facts(const Case *now) {
    for (size_t i = 0; i < now->facts.count; i++) {
        int id = question(now->algebra, now->facts.items[i]);
        if (id >= 0 && claim_of(now->algebra, &now->algebra->atoms.items[id])) return id;
    }
    return -1;
}

static bool by_choice(Case now) {
    const Choice choice = now.choices[--now.choice_count];
    for (int side = 0; side < 2; side++) {
        Case one = now;
        one.facts = (Polys){0};
        for (size_t i = 0; i < now.facts.count; i++)
            vec_push(now.algebra->arena, &one.facts, now.facts.items[i]);
        for (size_t i = 0; i < choice.counts[side]; i++) know(&one, choice.facts[side][i]);
        if (!at_least(one)) return false;
    }
    return true;
}

static bool at_least(Case now) {
    int64_t value;
    int id;
    if (!now.poly) return false;
    if (poly_is_constant(now.poly, &value) && value >= 0) return true;
    if (now.algebra->work < 0 || impossible(&now, denied(now.algebra, now.poly)) ||
        impossible(&now, NULL))
        return now.algebra->work >= 0 || limited(&now);
    if (now.splits-- <= 0) return limited(&now);
    if ((id = question(now.algebra, now.poly)) >= 0 &&
        claim_of(now.algebra, &now.algebra->atoms.items[id]))
        return by_answers(now, id);
    if (now.choice_count > 0) return by_choice(now);
    return (id = question_in_facts(&now)) >= 0 && by_answers(now, id);
}

/* ---- facts at the start of a proof ----------------------------------------------------------- */

/* All atoms in polynomials, without duplicates; the limits of the first `done` are already
 * added. */
typedef struct Reached {
    Algebra *algebra;
    bool *seen, *done;
    size_t room; /* of both arrays */
} Reached;

static void make_room(Reached *reached) {
    size_t room = reached->algebra->atoms.count * 2 + 1;
    Arena *arena = reached->algebra->arena;
    reached->seen = arena_grow(arena, reached->seen, reached->room, room);
    reached->done = arena_grow(arena, reached->done, reached->room, room);
    reached->room = room;
}

static void reach(Reached *reached, const Poly *poly) {
    for (int i = 0; poly && i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++) {
            size_t id = (size_t)poly->terms[i].atoms[k];
            if (id >= reached->room) make_room(reached);
            if (reached->seen[id]) continue;
            reached->seen[id] = true;
            for (int a = 0; a < 3; a++) reach(reached, reached->algebra->atoms.items[id].args[a]);
        }
}

static void know_limit(Case *now, Reached *reached, int id, bool lower, const AtomBound *bound) {
    Algebra *algebra = now->algebra;
    const Poly *limit = poly_normal(algebra, bound->poly);
    const Poly *self =
        poly_product(algebra, poly_atom(algebra, id), poly_constant(algebra, bound->scale));
    if (!limit) return;
    reach(reached, limit);
    know(now, lower ? poly_sum(algebra, self, limit, -1) : poly_sum(algebra, limit, self, -1));
}

static void know_limits(Case *now, Reached *reached, int id) {
    for (int lower = 0; lower < 2; lower++) {
        AtomBounds bounds = {0};
        atom_bounds(now->algebra, id, lower, &bounds);
        for (size_t b = 0; b < bounds.count; b++)
            know_limit(now, reached, id, lower, &bounds.items[b]);
    }
}

/* Adds the ranges of all atoms, including those that occur only in limits */
static void know_ranges(Case *now) {
    Reached reached = {.algebra = now->algebra};
    reach(&reached, now->poly);
    for (size_t i = 0; i < now->facts.count; i++) reach(&reached, now->facts.items[i]);
    for (size_t i = 0; i < 2 * now->choice_count; i++) {
        const Choice *choice = &now->choices[i / 2];
        for (size_t n = 0; n < choice->counts[i % 2]; n++) reach(&reached, choice->facts[i % 2][n]);
    }
    for (bool more = true; more;) {
        more = false;
        for (size_t id = 0; id < reached.room && id < now->algebra->atoms.count; id++) {
            if (!reached.seen[id] || reached.done[id]) continue;
            reached.done[id] = more = true;
            know_limits(now, &reached, (int)id);
        }
    }
}

static const Poly *normal_fact(Algebra *algebra, NormalFacts *made, const Poly *fact, size_t i) {
    while (made->count <= i) vec_push(algebra->arena, made, ((NormalFact){NULL, NULL}));
    if (made->items[i].poly != fact)
        made->items[i] = (NormalFact){fact, poly_normal(algebra, fact)};
    return made->items[i].normal;
}

/* Replaces a multiple of n by n times a new atom, so that quotients of it are exact. */
static void spell_multiples(Case *now) {
    Algebra *algebra = now->algebra;
    const Divides *divides;
    for (size_t i = 0; (divides = divides_at(algebra, i)); i++) {
        const Poly *unit = divides->poly;
        if (unit->count != 1 || unit->terms[0].count != 1 || unit->terms[0].coef != 1) continue;
        const Poly *whole = poly_atom(algebra, algebra_part(algebra, 0));
        replace(now, unit->terms[0].atoms[0],
                poly_product(algebra, whole, poly_constant(algebra, divides->by)));
    }
}

/* Of a normal form */
static Case case_of(Algebra *algebra, const Poly *normal) {
    const Facts *stated = &algebra->stated, *facts = &algebra->facts;
    Case now = {.algebra = algebra, .poly = normal, .splits = SPLITS_MOST};
    if (algebra->normals_path != algebra->path) /* they use signs that are known on a path */
        algebra->normals.count = algebra->stated_normals.count = 0;
    algebra->normals_path = algebra->path;
    now.choices = NEW_ARRAY(algebra->arena, Choice, algebra->choices.count + 1);
    for (size_t i = 0; i < algebra->choices.count; i++)
        now.choices[now.choice_count++] = of_choice(algebra, &algebra->choices.items[i], NULL);
    for (size_t i = 0; i < stated->count; i++)
        know(&now, normal_fact(algebra, &algebra->stated_normals, stated->items[i], i));
    for (size_t i = 0; i < facts->count; i++)
        know(&now, normal_fact(algebra, &algebra->normals, facts->items[i], i));
    know_ranges(&now);
    return now;
}

bool cases_known(Algebra *algebra, const Poly *poly) {
    int64_t value;
    if (!poly || poly_is_constant(poly, &value)) return poly && value >= 0;
    Case now = case_of(algebra, poly);
    return impossible(&now, denied(algebra, poly));
}

bool cases_prove(Algebra *algebra, PolyClaim claim, const Poly *poly) {
    const Poly *normal = poly_normal(algebra, poly);
    if (!normal) return false;
    if (claim == CLAIM_ZERO && poly_changes(algebra, normal)) return normal->count == 0;
    Case now = case_of(algebra, normal);
    now.least = claim != CLAIM_ZERO;
    if (claim == CLAIM_NOT_ZERO) { /* assumes that it is 0, and proves a contradiction */
        know(&now, normal);
        know(&now, poly_minus(algebra, normal));
        now.poly = poly_constant(algebra, -1);
    }
    spell_multiples(&now);
    algebra->steps = STEPS_MOST;
    return proved(now);
}
