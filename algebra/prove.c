/* The prover. algebra_prove takes a claim about a formula. It first resolves values that may be
 * truncated, then tries models, then ranges and bounds, then cases. A yes holds for all integers
 * that the facts allow. Then functions for queries about expressions. */
#include "algebra/private.h"

#include <assert.h>

/* Sanitised builds try to prove what a model denies. */
#if defined(__SANITIZE_ADDRESS__)
#define VALIDATED true
#else
#define VALIDATED false
#endif

/* ---- values that may be truncated ------------------------------------------------------------ */

typedef VEC(int) Ids;

static bool not_negative(Algebra *algebra, const Poly *poly) {
    return bounds_prove(algebra, poly) || cases_prove(algebra, CLAIM_NOT_NEGATIVE, poly);
}

/* The first ATOM_WRAP, inner ones first, that was not tried; -1: none */
static int next_wrap(const Algebra *algebra, const Poly *poly, const Ids *tried) {
    for (size_t id = 0; id < algebra->atoms.count; id++) {
        bool known = algebra->atoms.items[id].kind != ATOM_WRAP;
        for (size_t t = 0; t < tried->count && !known; t++) known = tried->items[t] == (int)id;
        if (!known && poly_mentions(algebra, poly, (int)id)) return (int)id;
    }
    return -1;
}

/* The value of the ATOM_WRAP is its formula. An `i32` that wraps past its greatest number, by less
 * than the numbers below 0, is below 0: one that is not has not wrapped. */
static bool fits(Algebra *algebra, int id) {
    const Atom atom = algebra->atoms.items[id];
    const Poly *room[2];
    range_rooms(algebra, atom.args[0], atom.type, room);
    if (!not_negative(algebra, room[0])) return false;
    if (not_negative(algebra, room[1])) return true;
    return atom.type == E_I32 && not_negative(algebra, poly_atom(algebra, id)) &&
           not_negative(algebra, poly_offset(algebra, room[1], INT64_C(1) << 31));
}

/* Replaces each ATOM_WRAP whose formula is proved to fit its type; `tried` collects those that
 * do not fit. */
static const Poly *settled(Algebra *algebra, const Poly *poly, Ids *tried) {
    while (poly && poly_wraps(algebra, poly) && algebra->work > 0) {
        int id = next_wrap(algebra, poly, tried);
        if (id < 0) return poly;
        if (fits(algebra, id))
            poly = poly_replace(algebra, poly, id, algebra->atoms.items[id].args[0]);
        else
            vec_push(algebra->arena, tried, id);
    }
    return poly;
}

/* Resolves the facts; returns the previous ones, which the caller restores */
static Facts settle_facts(Algebra *algebra, Ids *tried) {
    Facts before = algebra->facts, after = {0};
    bool any = false;
    for (size_t i = 0; i < before.count; i++) any |= poly_wraps(algebra, before.items[i]);
    for (size_t i = 0; any && i < before.count; i++)
        vec_push(algebra->arena, &after, settled(algebra, before.items[i], tried));
    if (any) algebra->facts = after;
    return before;
}

/* ---- entry ----------------------------------------------------------------------------------- */

static bool by_bounds(Algebra *algebra, PolyClaim claim, const Poly *poly) {
    const Poly *minus = poly_minus(algebra, poly);
    switch (claim) {
    case CLAIM_NOT_NEGATIVE: return bounds_prove(algebra, poly);
    case CLAIM_ZERO: return bounds_prove(algebra, poly) && bounds_prove(algebra, minus);
    case CLAIM_NOT_ZERO:
        return bounds_prove(algebra, poly_offset(algebra, poly, -1)) ||
               bounds_prove(algebra, poly_offset(algebra, minus, -1));
    }
    return false;
}

/* True if the formula's range contradicts the claim. */
static bool never(Algebra *algebra, PolyClaim claim, const Poly *poly) {
    Range range = range_of_poly(algebra, poly);
    bool not_zero = range.least > 0 || range.most < 0, zero = range.least == 0 && range.most == 0;
    return claim == CLAIM_NOT_NEGATIVE ? range.most < 0 : claim == CLAIM_ZERO ? not_zero : zero;
}

void algebra_work_anew(Algebra *algebra) { algebra->work = algebra->proof_work; }

static bool is_proved(Algebra *algebra, PolyClaim claim, const Poly *poly) {
    return by_bounds(algebra, claim, poly) || cases_prove(algebra, claim, poly);
}

/* A limit that only this attempt reaches decides nothing. */
static void validate_denial(Algebra *algebra, PolyClaim claim, const Poly *poly) {
    uint64_t limits = algebra->limits;
    assert(!is_proved(algebra, claim, poly));
    algebra->limits = limits;
}

static Certainty prove(Algebra *algebra, PolyClaim claim, const Poly *poly, bool denied) {
    if (VALIDATED && denied) validate_denial(algebra, claim, poly);
    if (!denied && is_proved(algebra, claim, poly)) return CERTAINLY;
    return never(algebra, claim, poly) ? CERTAINLY_NOT : NOT_CERTAIN;
}

static Certainty prove_settled(Algebra *algebra, PolyClaim claim, const Poly *poly, bool denied) {
    Ids tried = {0};
    const Poly *exact = settled(algebra, poly, &tried);
    if (!exact) return NOT_CERTAIN;
    Facts before = settle_facts(algebra, &tried);
    Certainty proof = prove(algebra, claim, exact, denied);
    algebra->facts = before;
    return proof;
}

/* `only_yes`: whether the claim is certainly false does not matter */
static Certainty answer(Algebra *algebra, PolyClaim claim, const Poly *poly, bool only_yes) {
    algebra_work_anew(algebra);
    algebra_learn(algebra);
    if (!poly) return NOT_CERTAIN;
    if (claim == CLAIM_NOT_ZERO && stated_nonzero(algebra, poly)) return CERTAINLY;
    Query *query = prover_query(algebra, claim, poly);
    if (query->known) {
        algebra->limits += query->limited;
        return query->certainty;
    }
    /* before the facts are resolved: if they contradict each other, everything fits its type */
    query->denied = query->denied || models_deny(algebra, claim, poly);
    if (query->denied && only_yes && !VALIDATED) return NOT_CERTAIN;
    uint64_t limits = algebra->limits;
    query->certainty = prove_settled(algebra, claim, poly, query->denied);
    if (query->denied && only_yes) algebra->limits = limits; /* other builds did not try */
    query->limited = algebra->limits > limits;
    query->known = true;
    return query->certainty;
}

Certainty algebra_prove(Algebra *algebra, PolyClaim claim, const Poly *poly) {
    return answer(algebra, claim, poly, false);
}

bool algebra_proves(Algebra *algebra, PolyClaim claim, const Poly *poly) {
    return answer(algebra, claim, poly, true) == CERTAINLY;
}

bool algebra_impossible(Algebra *algebra) {
    return algebra_proves(algebra, CLAIM_NOT_NEGATIVE, poly_constant(algebra, -1));
}

/* ---- expressions ----------------------------------------------------------------------------- */

bool algebra_equal(Arena *arena, const Prog *prog, const Role *a_role, Expr *a, const Role *b_role,
                   Expr *b) {
    if (a->kind == X_POISON || b->kind == X_POISON) return true; /* no report about poison */
    Algebra *algebra = algebra_of_counts(arena, prog);
    const Poly *x = algebra_poly(algebra, a_role, a), *y = algebra_poly(algebra, b_role, b);
    return poly_equal(x, y) || algebra_proves(algebra, CLAIM_ZERO, poly_sum(algebra, x, y, -1));
}

bool algebra_same(Algebra *algebra, Expr *a, Expr *b) {
    bool poison = a->kind == X_POISON || b->kind == X_POISON;
    return poison || poly_equal(algebra_launched(algebra, a), algebra_launched(algebra, b));
}

int64_t algebra_divisor(Arena *arena, const Prog *prog, const Role *role, Expr *expr) {
    Algebra *algebra = algebra_new(arena, prog, role);
    algebra->dense = true;
    return poly_divisor(algebra, algebra_poly(algebra, role, expr));
}

bool algebra_at_most(Arena *arena, const Prog *prog, const Role *role, Expr *a, Expr *b) {
    Algebra *algebra = algebra_new(arena, prog, role);
    const Poly *x = algebra_poly(algebra, role, a), *y = algebra_poly(algebra, role, b);
    return algebra_proves(algebra, CLAIM_NOT_NEGATIVE, poly_sum(algebra, y, x, -1));
}
