/* Is a formula certainly 0, or at least 0? Cases and substitution: each question (ATOM_TRUTH) that what is known does not answer is answered both ways,
 * variables under quotients are replaced by c * whole + rest, and where two conditions leave a value no choice it is put in. What
 * remains is a polynomial that is 0 or is not. Takes any formula; promises that a yes holds for all integers. */
#include "algebra/private.h"

#define STEPS_MOST 500
#define PARTS_MOST 1024 /* values of a remainder */
#define SPLITS_MOST 5   /* questions and choices within each other, of `at least 0` */

typedef VEC(const Poly *) Polys;

typedef struct Case {
    Algebra *algebra;
    Polys facts;   /* each >= 0 */
    const Poly *poly;
    bool least;     /* the question: at least 0; else: 0 */
    Choice *choices; /* that are not made yet, in normal form */
    size_t choice_count;
    int splits;     /* cases that it may still be taken apart in */
} Case;

static void know(Case *now, const Poly *fact) {
    int64_t value;
    if (fact && !(poly_is_constant(fact, &value) && value >= 0)) vec_push(now->algebra->arena, &now->facts, fact);
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

/* Both sets of facts, replaced or in normal form */
static Choice of_choice(Algebra *algebra, const Choice *choice, const Put *put) {
    Choice out = *choice;
    for (int side = 0; side < 2; side++) {
        const Poly **facts = NEW_ARRAY(algebra->arena, const Poly *, choice->counts[side] + 1);
        for (size_t i = 0; i < choice->counts[side]; i++) facts[i] = in_choice(algebra, choice->facts[side][i], put);
        out.facts[side] = facts;
    }
    return out;
}

static void replace(Case *now, int atom, const Poly *by) {
    const Atom old = now->algebra->atoms.items[atom];
    if (old.kind == ATOM_FLOOR) { /* what it was remains true: 0 <= a - it * b <= b - 1 */
        const Poly *rest = poly_sum(now->algebra, old.args[0], poly_product(now->algebra, by, old.args[1]), -1);
        know(now, rest);
        know(now, poly_offset(now->algebra, poly_sum(now->algebra, old.args[1], rest, -1), -1));
    }
    size_t count = now->facts.count;
    const Poly **facts = now->facts.items;
    now->facts = (Polys){0};
    for (size_t i = 0; i < count; i++) know(now, poly_replace(now->algebra, facts[i], atom, by));
    Choice *choices = now->choices;
    now->choices = NEW_ARRAY(now->algebra->arena, Choice, now->choice_count + 1);
    for (size_t i = 0; i < now->choice_count; i++) now->choices[i] = of_choice(now->algebra, &choices[i], &(Put){atom, by});
    now->poly = poly_replace(now->algebra, now->poly, atom, by);
}

/* ---- what is known of atoms ------------------------------------------------------------------------------------------ */

/* All atoms below a polynomial, each once */
static void reach(Algebra *algebra, const Poly *poly, bool **seen, size_t *room) {
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++) {
            size_t id = (size_t)poly->terms[i].atoms[k];
            if (id >= *room) {
                bool *more = NEW_ARRAY(algebra->arena, bool, algebra->atoms.count * 2 + 1);
                for (size_t n = 0; n < *room; n++) more[n] = (*seen)[n];
                *seen = more;
                *room = algebra->atoms.count * 2 + 1;
            }
            if ((*seen)[id]) continue;
            (*seen)[id] = true;
            for (int a = 0; a < 3; a++)
                if (algebra->atoms.items[id].args[a]) reach(algebra, algebra->atoms.items[id].args[a], seen, room);
        }
}

static bool is_unsigned(Element type) { return element_rows[type].kind == ELEMENT_UNSIGNED; }

static void know_bounds(Case *now) {
    Algebra *algebra = now->algebra;
    bool *seen = NULL;
    size_t room = 0;
    reach(algebra, now->poly, &seen, &room);
    for (size_t i = 0; i < now->facts.count; i++) reach(algebra, now->facts.items[i], &seen, &room);
    for (size_t id = 0; id < room && id < algebra->atoms.count; id++) {
        const Atom atom = algebra->atoms.items[id];
        const Poly *self = poly_atom(algebra, (int)id);
        if (!seen[id]) continue;
        bool counts = atom.kind == ATOM_SYMBOL && algebra->prog->symbols.items[atom.index].is_extent;
        if (counts || atom.kind == ATOM_AXIS || is_unsigned(atom.type)) know(now, self);
        if (atom.kind != ATOM_AXIS) continue;
        const Poly *limit = poly_normal(algebra, algebra_launched(algebra, algebra->prog->axes.items[atom.index].padded));
        if (!limit) continue;
        reach(algebra, limit, &seen, &room); /* symbols, which come by earlier or later ids */
        know(now, poly_offset(algebra, poly_sum(algebra, limit, self, -1), -1));
    }
}

/* ---- questions ------------------------------------------------------------------------------------------------------- */

/* One whose own operand holds no other, a min or max among them; -1: none */
static int question(const Algebra *algebra, const Poly *poly) {
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++) {
            int id = algebra->atoms.items[poly->terms[i].atoms[k]].question;
            if (id >= 0) return id;
        }
    return -1;
}

static const Poly *denied(Algebra *algebra, const Poly *poly) { return poly_offset(algebra, poly_minus(algebra, poly), -1); }

static bool zero(Case now);
static bool at_least(Case now);

static bool proved(Case now) { return now.least ? at_least(now) : zero(now); }

static bool is_extreme(const Atom *atom) { return atom->kind == ATOM_MIN || atom->kind == ATOM_MAX; }

/* Is it >= 0? Of a min or max: the second operand less the first. NULL: a question without a formula */
static const Poly *asked_by(Algebra *algebra, const Atom *atom) {
    if (is_extreme(atom)) return poly_sum(algebra, atom->args[1], atom->args[0], -1);
    return atom->kind == ATOM_TRUTH ? atom->args[0] : NULL;
}

static bool answer(Case now, int id, bool value) {
    Atom atom = now.algebra->atoms.items[id];
    Polys facts = {0};
    const Poly *asked = asked_by(now.algebra, &atom);
    for (size_t i = 0; i < now.facts.count; i++)
        vec_push(now.algebra->arena, &facts, is_extreme(&atom) ? now.facts.items[i] : poly_decided(now.algebra, now.facts.items[i], id, value));
    now.facts = facts;
    if (asked) know(&now, value ? asked : denied(now.algebra, asked));
    if (is_extreme(&atom)) replace(&now, id, atom.args[value == (atom.kind == ATOM_MAX)]);
    else now.poly = poly_decided(now.algebra, now.poly, id, value);
    return proved(now);
}

static bool by_answers(Case now, int id) {
    Atom atom = now.algebra->atoms.items[id];
    const Poly *asked = asked_by(now.algebra, &atom);
    if (asked && impossible(&now, asked)) return answer(now, id, false);
    if (asked && impossible(&now, denied(now.algebra, asked))) return answer(now, id, true);
    return answer(now, id, true) && answer(now, id, false);
}

/* ---- quotients ------------------------------------------------------------------------------------------------------- */

/* A quotient by a constant whose operand holds no other; -1: none */
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

/* What divides all divisors of quotients right above the atom; 0: too large */
static int64_t divisor(Algebra *algebra, const Poly *poly, int atom, int64_t so_far) {
    for (int i = 0; i < poly->count && so_far; i++)
        for (int k = 0; k < poly->terms[i].count && so_far; k++) {
            const Atom above = algebra->atoms.items[poly->terms[i].atoms[k]];
            int64_t by;
            bool stands = above.kind == ATOM_FLOOR && poly_is_constant(above.args[1], &by) && stands_in(above.args[0], atom);
            if (stands && (__builtin_mul_overflow(so_far / common_divisor(so_far, by), by, &so_far) || so_far > INT32_MAX)) return 0;
            for (int n = 0; n < 3 && above.args[n]; n++) so_far = divisor(algebra, above.args[n], atom, so_far);
        }
    return so_far;
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
    for (int i = 0; i < under->count; i++) /* not one of those that are parts already, where there is another */
        for (int k = 0; k < under->terms[i].count; k++) {
            int found = under->terms[i].atoms[k];
            if (atom < 0 || algebra->atoms.items[atom].kind == ATOM_REST || (algebra->atoms.items[atom].kind == ATOM_WHOLE && algebra->atoms.items[found].kind != ATOM_REST && found < atom))
                atom = found;
        }
    if (algebra->atoms.items[atom].kind == ATOM_REST) { /* with others, in a product: value by value */
        int64_t limit;
        if (!poly_is_constant(algebra->atoms.items[atom].args[0], &limit) || limit > 16) return false;
        for (int64_t value = 0; value < limit; value++) {
            Case one = now;
            replace(&one, atom, poly_constant(algebra, value));
            if (!impossible(&one, NULL) && !zero(one)) return false;
        }
        return true;
    }
    int64_t by = divisor(algebra, now.poly, atom, 1);
    if (by < 2 || by > PARTS_MOST) return false;
    bool nonlinear = nonlinear_in(algebra, under, atom);
    if (nonlinear && by > 16) return false;
    int whole = algebra_part(algebra, 0);
    const Poly *multiple = poly_sum(algebra, poly_constant(algebra, 0), poly_atom(algebra, whole), by);
    if (!nonlinear) {
        replace(&now, atom, poly_sum(algebra, multiple, poly_atom(algebra, algebra_part(algebra, by)), 1));
        return zero(now);
    }
    for (int64_t rest = 0; rest < by; rest++) {
        Case one = now;
        replace(&one, atom, poly_offset(algebra, multiple, rest));
        if (!impossible(&one, NULL) && !zero(one)) return false;
    }
    return true;
}

/* ---- values without a choice ----------------------------------------------------------------------------------------- */

/* fact = coef * atom + rest with a coef of 1 or -1, so that the atom is known where the fact is 0; -1: none */
static int solvable(Algebra *algebra, const Poly *fact, const Poly **value) {
    for (int i = fact->count; i-- > 0;) {
        const Poly *rest;
        int64_t coef;
        if (fact->terms[i].count != 1 || (fact->terms[i].coef != 1 && fact->terms[i].coef != -1)) continue;
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

/* A condition that holds with no room to spare: of the facts, or the limits of a remainder */
static bool substitute(Case *now) {
    for (size_t i = 0; i < now->facts.count; i++)
        if (forced(now, now->facts.items[i])) return true;
    for (int i = 0; i < now->poly->count; i++)
        for (int k = 0; k < now->poly->terms[i].count; k++) {
            int id = now->poly->terms[i].atoms[k];
            const Atom atom = now->algebra->atoms.items[id];
            const Poly *self = poly_atom(now->algebra, id);
            if (atom.kind == ATOM_REST && (forced(now, self) || forced(now, poly_offset(now->algebra, poly_sum(now->algebra, atom.args[0], self, -1), -1))))
                return true;
        }
    return false;
}

/* ---- the search ------------------------------------------------------------------------------------------------------- */

static bool zero(Case now) {
    int id;
    if (!now.poly) return false;
    if (now.poly->count == 0) return true;
    if (now.algebra->steps-- <= 0 || now.algebra->work < 0) return false;
    if ((id = question(now.algebra, now.poly)) >= 0) return by_answers(now, id);
    if ((id = quotient(now.algebra, now.poly)) >= 0) {
        if (by_parts(now, id)) return true;
    }
    if (substitute(&now)) return zero(now);
    return impossible(&now, NULL);
}

/* A question that a fact asks: which of two is the least, is it true? */
static int asked_in_facts(const Case *now) {
    for (size_t i = 0; i < now->facts.count; i++) {
        int id = question(now->algebra, now->facts.items[i]);
        if (id >= 0 && asked_by(now->algebra, &now->algebra->atoms.items[id])) return id;
    }
    return -1;
}

static bool by_choice(Case now) {
    const Choice choice = now.choices[--now.choice_count];
    for (int side = 0; side < 2; side++) {
        Case one = now;
        one.facts = (Polys){0};
        for (size_t i = 0; i < now.facts.count; i++) vec_push(now.algebra->arena, &one.facts, now.facts.items[i]);
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
    if (now.algebra->work < 0 || impossible(&now, denied(now.algebra, now.poly)) || impossible(&now, NULL)) return now.algebra->work >= 0;
    if (now.splits-- <= 0) return false;
    if ((id = question(now.algebra, now.poly)) >= 0 && asked_by(now.algebra, &now.algebra->atoms.items[id])) return by_answers(now, id);
    if (now.choice_count > 0) return by_choice(now);
    return (id = asked_in_facts(&now)) >= 0 && by_answers(now, id);
}

void algebra_know(Algebra *algebra, const Poly *poly) {
    int64_t value;
    if (poly && !(poly_is_constant(poly, &value) && value >= 0)) vec_push(algebra->arena, &algebra->known, poly);
}

void algebra_know_facts(Algebra *algebra, const Poly *about) {
    algebra_learn(algebra);
    for (size_t i = 0; i < algebra->stated.count; i++) algebra_know(algebra, poly_normal(algebra, algebra->stated.items[i]));
    for (size_t i = 0; i < algebra->facts.count; i++) algebra_know(algebra, poly_normal(algebra, algebra->facts.items[i]));
    Case now = {.algebra = algebra, .poly = about ? about : poly_constant(algebra, 0)};
    for (size_t i = 0; i < algebra->known.count; i++) know(&now, algebra->known.items[i]);
    know_bounds(&now);
    for (size_t i = algebra->known.count; i < now.facts.count; i++) algebra_know(algebra, now.facts.items[i]);
}

bool poly_known(Algebra *algebra, const Poly *poly) {
    int64_t value;
    if (poly_is_constant(poly, &value)) return value >= 0;
    return poly && polys_impossible(algebra, algebra->known.items, algebra->known.count, denied(algebra, poly));
}

static const Poly *normal_fact(Algebra *algebra, NormalFacts *made, const Poly *fact, size_t i) {
    while (made->count <= i) vec_push(algebra->arena, made, ((NormalFact){NULL, NULL}));
    if (made->items[i].poly != fact) made->items[i] = (NormalFact){fact, poly_normal(algebra, fact)};
    return made->items[i].normal;
}

/* What atoms by themselves are, those that bounds bring in included */
static void know_ranges(Case *now) {
    Algebra *algebra = now->algebra;
    bool *seen = NULL, *done = NULL;
    size_t room = 0, done_room = 0;
    reach(algebra, now->poly, &seen, &room);
    for (size_t i = 0; i < now->facts.count; i++) reach(algebra, now->facts.items[i], &seen, &room);
    for (size_t i = 0; i < 2 * now->choice_count; i++)
        for (size_t n = 0; n < now->choices[i / 2].counts[i % 2]; n++)
            if (now->choices[i / 2].facts[i % 2][n]) reach(algebra, now->choices[i / 2].facts[i % 2][n], &seen, &room);
    for (bool more = true; more;) {
        more = false;
        for (size_t id = 0; id < room && id < algebra->atoms.count; id++) {
            if (!seen[id] || (id < done_room && done[id])) continue;
            if (id >= done_room) {
                done = arena_grow(algebra->arena, done, done_room, room);
                done_room = room;
            }
            done[id] = more = true;
            for (int lower = 0; lower < 2; lower++) {
                AtomBounds bounds = {0};
                atom_bounds(algebra, (int)id, lower, &bounds);
                for (size_t b = 0; b < bounds.count; b++) {
                    const Poly *limit = poly_normal(algebra, bounds.items[b].poly);
                    const Poly *self = poly_product(algebra, poly_atom(algebra, (int)id), poly_constant(algebra, bounds.items[b].scale));
                    if (!limit) continue;
                    reach(algebra, limit, &seen, &room);
                    know(now, lower ? poly_sum(algebra, self, limit, -1) : poly_sum(algebra, limit, self, -1));
                }
            }
        }
    }
}

/* What n divides is n times another number, so that quotients of it come out whole. */
static void spell_multiples(Case *now) {
    Algebra *algebra = now->algebra;
    for (size_t i = 0; i < algebra->divides_count; i++) {
        const Poly *unit = algebra->divides[i].poly;
        if (unit->count != 1 || unit->terms[0].count != 1 || unit->terms[0].coef != 1) continue;
        const Poly *whole = poly_atom(algebra, algebra_part(algebra, 0));
        replace(now, unit->terms[0].atoms[0], poly_product(algebra, whole, poly_constant(algebra, algebra->divides[i].by)));
    }
}

static bool prove_case(Algebra *algebra, const Poly *poly) {
    Case now = {.algebra = algebra, .poly = poly_normal(algebra, poly), .least = true, .splits = SPLITS_MOST};
    if (!now.poly) return false;
    now.choices = NEW_ARRAY(algebra->arena, Choice, algebra->choices.count + 1);
    while (now.choice_count < algebra->choices.count) {
        now.choices[now.choice_count] = of_choice(algebra, &algebra->choices.items[now.choice_count], NULL);
        now.choice_count++;
    }
    for (size_t i = 0; i < algebra->stated.count; i++)
        know(&now, normal_fact(algebra, &algebra->stated_normals, algebra->stated.items[i], i));
    for (size_t i = 0; i < algebra->facts.count; i++) know(&now, normal_fact(algebra, &algebra->normals, algebra->facts.items[i], i));
    know_ranges(&now);
    spell_multiples(&now);
    return at_least(now);
}

bool proves_least(Algebra *algebra, const Poly *poly) {
    return poly && (poly_at_least_zero(algebra, poly) || prove_case(algebra, poly));
}

/* The facts, settled; those as they were, to be put back */
static Facts settle_facts(Algebra *algebra, Ids *tried) {
    Facts before = algebra->facts, after = {0};
    bool any = false;
    for (size_t i = 0; i < before.count; i++) any |= poly_wraps(algebra, before.items[i]);
    for (size_t i = 0; any && i < before.count; i++) vec_push(algebra->arena, &after, poly_settled(algebra, before.items[i], tried));
    if (any) algebra->facts = after;
    return before;
}

bool prove_at_least_zero(Algebra *algebra, const Poly *poly) {
    Ids tried = {0};
    const Poly *settled = poly_settled(algebra, poly, &tried);
    Facts before = settle_facts(algebra, &tried);
    bool proved = proves_least(algebra, settled);
    algebra->facts = before;
    return proved;
}

bool algebra_impossible(Algebra *algebra) {
    Ids tried = {0};
    algebra_learn(algebra);
    Facts before = settle_facts(algebra, &tried);
    bool impossible = prove_case(algebra, poly_constant(algebra, -1));
    algebra->facts = before;
    return impossible;
}

bool poly_proves_zero(Algebra *algebra, const Poly *poly) {
    Case now = {.algebra = algebra, .poly = poly_normal(algebra, poly)};
    if (!now.poly || poly_changes(algebra, now.poly)) return now.poly && now.poly->count == 0;
    if (now.poly->count == 0) return true;
    algebra->known.count = 0;
    algebra_know_facts(algebra, now.poly);
    for (size_t i = 0; i < algebra->known.count; i++) know(&now, algebra->known.items[i]);
    spell_multiples(&now);
    algebra->steps = STEPS_MOST;
    return zero(now);
}
