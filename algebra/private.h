/* algebra, private: shared by the files of the floor. */
#ifndef PIPEC_ALGEBRA_PRIVATE_H
#define PIPEC_ALGEBRA_PRIVATE_H

#include "algebra/algebra.h"

/* poly.c */
Poly *poly_new(Algebra *algebra, int terms);
/* NULL: not exact for all values */
const Poly *poly_divide_exactly(Algebra *algebra, const Poly *a, const Poly *by);
/* a / b for b > 0, rounded down */
int64_t floor_of(int64_t a, int64_t b);
/* common divisor of all coefficients except the constant; 0: there are none */
int64_t poly_content(const Poly *poly);
const Poly *poly_divided(Algebra *algebra, const Poly *poly, int64_t by, bool whole);

/* atom.c */
int atom_simple(Algebra *algebra, AtomKind kind, int index, const Role *role, Element type);
/* equal only to itself */
const Poly *atom_by_place(Algebra *algebra, const Expr *expr, Element type, bool changes);
void poly_add_key(Str *key, const Poly *poly);

/* Operations with laws (form.c); `type`: of the atom, if one remains */
const Poly *form_ceil(Algebra *algebra, const Poly *a, const Poly *b, Element type);
const Poly *form_div(Algebra *algebra, const Poly *a, const Poly *b, Element type);
const Poly *form_mod(Algebra *algebra, const Poly *a, const Poly *b, Element type);
const Poly *form_extreme(Algebra *algebra, bool is_max, const Poly *a, const Poly *b, Element type);
/* An operation that is a function without laws, but perhaps commutes: its tag says which one. */
const Poly *form_opaque(Algebra *algebra, const char *tag, Element type, const Poly *const *args,
                        int count);

/* ---- ranges (range.c) ------------------------------------------------------------------------ */

__extension__ typedef __int128 Wide;
#define WIDE_MOST ((Wide)1 << 120) /* represents all greater values */

/* least <= value <= most */
struct Range {
    Wide least, most;
};

bool type_is_integer(Element type); /* false for BOOL */
Range range_of_type(Element type);  /* the widest range for floats */
Range range_of_atom(Algebra *algebra, int id);
Range range_of_poly(Algebra *algebra, const Poly *poly);
bool range_within(Range inner, Range outer);
/* A limit as a constant formula; NULL: beyond 64 bits */
const Poly *range_limit(Algebra *algebra, Range range, bool lower);
/* True if a precondition excludes that the formula is 0 */
bool stated_nonzero(Algebra *algebra, const Poly *poly);
/* True unless the range of the divisor or a precondition excludes 0; if it may be 0, the quotient
 * may be any number. */
bool divisor_may_be_zero(Algebra *algebra, const Poly *poly);
/* Distances of a polynomial to the limits of a type; both are >= 0 if it fits */
void range_rooms(Algebra *algebra, const Poly *poly, Element type, const Poly *out[2]);

/* ---- steps of the prover --------------------------------------------------------------------- */

void algebra_learn(Algebra *algebra); /* facts from preconditions (facts.c) */
/* of all that hold at the place; NULL: no more */
const Divides *divides_at(const Algebra *algebra, size_t i);

/* scale * atom >= poly (or <= poly), scale > 0 */
typedef struct AtomBound {
    int64_t scale;
    const Poly *poly;
} AtomBound;
typedef VEC(AtomBound) AtomBounds;
void atom_bounds(Algebra *algebra, int id, bool lower, AtomBounds *bounds); /* except operations */
bool bounds_prove(Algebra *algebra, const Poly *poly); /* >= 0, by ranges and bounds (bounds.c) */

/* Values of atoms, tested against the facts of a place (models.c) */
#define MODELS 13
typedef struct ModelValue {
    bool tried, known;
    const IndexSpace *space; /* the space of the value, if the atom contains an index */
    int64_t value;
} ModelValue;
typedef struct Model {
    int number;
    ModelValue *values; /* by atom */
    size_t room;
    size_t stated, divides; /* number of facts of the program that were checked */
    bool broken;            /* one of them is false */
} Model;
/* True if a model of the facts falsifies the claim: then there is no proof. */
bool models_deny(Algebra *algebra, PolyClaim claim, const Poly *poly);

/* A query and its answer, once known (queries.c) */
struct Query {
    uint64_t hash; /* of the query, which is: */
    PolyClaim claim;
    const Poly *poly;
    Facts facts; /* of the path, as the next two */
    VEC(Choice) choices;
    DividesList divides;
    const IndexSpace *space; /* that of the algebra */
    size_t stated;           /* number of facts known of the program */
    bool denied;             /* by a model: there is no proof */
    bool known;
    bool limited; /* a limit was reached in the search for the answer */
    Certainty certainty;
};
Query *prover_query(Algebra *algebra, PolyClaim claim, const Poly *poly); /* never NULL */

bool cases_prove(Algebra *algebra, PolyClaim claim, const Poly *poly); /* cases.c */
/* True if >= 0 is proved by linear elimination, without cases; of a normal form */
bool cases_known(Algebra *algebra, const Poly *poly);

/* True if no integers satisfy: all of these are >= 0. `also` NULL: uses all of them; otherwise
 * those related to `also`, and it (linear.c) */
bool polys_impossible(Algebra *algebra, const Poly *const *polys, size_t count, const Poly *also);

/* False: the atom `id` does not contain `inner`. Operands have lower ids than the atom. */
static inline bool atom_may_hold(const Atom *atom, int id, int inner) {
    return id >= inner && atom->within >> inner % 64 & 1;
}

#endif
