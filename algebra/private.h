/* What the files of the floor share. */
#ifndef PIPEC_ALGEBRA_PRIVATE_H
#define PIPEC_ALGEBRA_PRIVATE_H

#include "algebra/algebra.h"

Poly *poly_new(Algebra *algebra, int terms);                                             /* poly.c */
const Poly *poly_divide_exactly(Algebra *algebra, const Poly *a, const Poly *by);        /* NULL: it is not exact for all values */
int64_t common_divisor(int64_t a, int64_t b);                                            /* the greatest, 0 of two zeros */
int64_t floor_of(int64_t a, int64_t b);                                                  /* a / b for b > 0, rounded down */
int64_t poly_content(const Poly *poly);                                                  /* what divides all coefficients but the constant; 0: there are none */
const Poly *poly_divided(Algebra *algebra, const Poly *poly, int64_t by, bool whole);

int atom_simple(Algebra *algebra, AtomKind kind, int index, const Role *role, Element type); /* atom.c */
const Poly *atom_by_place(Algebra *algebra, const Expr *expr, Element type, bool changes);  /* equal only to itself */
void poly_add_key(Str *key, const Poly *poly);

/* Operations that have laws (form.c); `type` is that of the atom, where one is left */
const Poly *form_ceil(Algebra *algebra, const Poly *a, const Poly *b, Element type);
const Poly *form_div(Algebra *algebra, const Poly *a, const Poly *b, Element type);
const Poly *form_mod(Algebra *algebra, const Poly *a, const Poly *b, Element type);
const Poly *form_extreme(Algebra *algebra, bool is_max, const Poly *a, const Poly *b, Element type);

/* ---- ranges (range.c) -------------------------------------------------------------------------------------------- */

__extension__ typedef __int128 Wide;
#define WIDE_MOST ((Wide)1 << 120) /* stands for all that is greater */

/* least <= value <= most */
struct Range {
    Wide least, most;
};

bool type_is_integer(Element type); /* a BOOL is none */
Range range_of_type(Element type);  /* all, of floats */
Range range_of_atom(Algebra *algebra, int id);
Range range_of_poly(Algebra *algebra, const Poly *poly);
bool range_within(Range inner, Range outer);
/* A limit as a constant formula; NULL: it has none that 64 bits hold */
const Poly *range_limit(Algebra *algebra, Range range, bool lower);
/* The limits of a type, less a polynomial; each is >= 0 where it fits */
void range_rooms(Algebra *algebra, const Poly *poly, Element type, const Poly *out[2]);

/* ---- steps of the prover, in their order ---------------------------------------------------- */

void algebra_learn(Algebra *algebra); /* facts from preconditions (facts.c) */
const Divides *divides_at(const Algebra *algebra, size_t i); /* of all that hold here; NULL: no more */

/* scale * atom >= poly (or <= poly), scale > 0 */
typedef struct AtomBound {
    int64_t scale;
    const Poly *poly;
} AtomBound;
typedef VEC(AtomBound) AtomBounds;
void atom_bounds(Algebra *algebra, int id, bool lower, AtomBounds *bounds); /* of what is no operation */
bool bounds_prove(Algebra *algebra, const Poly *poly); /* >= 0, by ranges and bounds (bounds.c) */

/* Numbers for atoms, with which what is known at a place holds or does not (models.c) */
#define MODELS 10
typedef struct ModelValue {
    bool tried, known;
    int64_t value;
} ModelValue;
typedef struct Model {
    int number;
    ModelValue *values; /* by atom */
    size_t room;
    size_t stated, divides; /* of the program, that were looked at */
    bool broken;            /* one of them does not hold */
} Model;
/* Do numbers show that the claim does not hold wherever the facts do? Then it cannot be proved. */
bool models_deny(Algebra *algebra, PolyClaim claim, const Poly *poly);

/* What was asked, and the answer, once it is known (asked.c) */
struct Asked {
    uint64_t hash; /* of the question: */
    PolyClaim claim;
    const Poly *poly;
    Facts facts;             /* of the path; no choices and divisors */
    const IndexSpace *space; /* that of the algebra */
    size_t stated;           /* facts that were known of the program */
    bool known;
    Certainty certainty;
};
Asked *prover_asked(Algebra *algebra, PolyClaim claim, const Poly *poly); /* never NULL */

bool cases_prove(Algebra *algebra, PolyClaim claim, const Poly *poly); /* cases.c */
/* >= 0 by linear elimination, without cases; of a normal form */
bool cases_known(Algebra *algebra, const Poly *poly);

/* Is there certainly no integer solution of: all of these are >= 0? NULL for `also`: all count;
 * else those that have to do with it, and it (linear.c) */
bool polys_impossible(Algebra *algebra, const Poly *const *polys, size_t count, const Poly *also);

/* Formulas share much: atoms that a walk has been at, the last ones. */
typedef struct Visited {
    int ids[64]; /* 1 + id */
} Visited;

static inline bool visit_again(const Algebra *algebra, Visited *visited, int id) {
    int *slot = &visited->ids[id % 64];
    bool again = *slot == id + 1;
    *slot = id + 1;
    arena_count(algebra->arena, 1);
    return again;
}

#endif
