/* Polynomials over atoms: what tiles, padding and coverage compute with. Private to check/; the wider floor uses the few
 * functions of check/passes.h, which rest on these.
 *
 * Integers are taken as ideal ones: subscripts, extents and counts that overflow 32 bits are refused at launch, not here. A
 * NULL Poly means "not known" (a coefficient overflowed, or the form grew too large); every function passes it on. */
#ifndef PIPEC_ALGEBRA_H
#define PIPEC_ALGEBRA_H

#include "check/passes.h"

#define POLY_MAX_DEGREE 6
#define POLY_MAX_TERMS 64

typedef struct Term {
    int64_t coef;              /* never 0 */
    int count;                 /* degree */
    int atoms[POLY_MAX_DEGREE]; /* ids, ascending; a power repeats its atom */
} Term;

typedef struct Poly {
    int count;
    Term terms[];              /* sorted by degree and atoms; the constant term, if any, is the first */
} Poly;

typedef enum AtomKind {
    ATOM_SYMBOL, ATOM_AXIS, ATOM_LOCAL, ATOM_RANK, ATOM_INDEX, /* index says which */
    ATOM_DIV, ATOM_MOD, ATOM_CEIL, ATOM_MIN, ATOM_MAX,         /* of args[0] and args[1] */
    ATOM_SELECT,                                               /* args[0] ? args[1] : args[2] */
    ATOM_OPAQUE                                                /* anything else, equal where its key is */
} AtomKind;

typedef struct Atom {
    AtomKind kind;
    int index;
    const Role *role;          /* LOCAL, RANK */
    Element type;
    const Poly *args[3];       /* NULL where there are fewer */
    int level;                 /* bounds of an atom speak of atoms of lower levels */
    bool changes;              /* may differ between two moments: `var` locals, memory that is written */
    const char *key;
} Atom;

/* What is known at one place of a role. `space` and `rank` are set by the caller, per statement. */
typedef struct Algebra {
    Arena *arena;
    const Prog *prog;
    const Role *role;          /* NULL: prog-level formulas */
    const IndexSpace *space;   /* whose extents bound the X_INDEX atoms; NULL: they are not bounded */
    VEC(Atom) atoms;
    int *buckets;              /* of atoms by key: 1 + id, 0: free */
    size_t bucket_count;
    struct Memo { const Expr *expr; const Poly *poly; } *memo;
    size_t memo_count, memo_capacity;
    Expr **loop_lo, **loop_hi; /* by local of the role; NULL: not a loop variable */
    VEC(const Poly *) facts;   /* each certainly >= 0 */
    struct Divides { const Poly *poly; int64_t by; } *divides; /* each poly certainly divisible */
    size_t divides_count, divides_capacity;
    size_t preconditions_seen;
    int steps;                 /* left of the search for a proof */
} Algebra;

Algebra *algebra_new(Arena *arena, const Prog *prog, const Role *role);

const Poly *algebra_poly(Algebra *algebra, const Role *role, Expr *expr);
const Poly *poly_constant(Algebra *algebra, int64_t value);
const Poly *poly_sum(Algebra *algebra, const Poly *a, const Poly *b, int64_t scale); /* a + scale * b */
const Poly *poly_product(Algebra *algebra, const Poly *a, const Poly *b);
const Poly *poly_atom(Algebra *algebra, int atom);
const Poly *poly_replace(Algebra *algebra, const Poly *poly, int atom, const Poly *by); /* inside of other atoms too */
bool poly_is_constant(const Poly *poly, int64_t *out);
bool poly_equal(const Poly *a, const Poly *b);
bool poly_changes(const Algebra *algebra, const Poly *poly);
bool poly_mentions(const Algebra *algebra, const Poly *poly, int atom); /* inside of other atoms too */
int algebra_atom_rank(Algebra *algebra, const Role *role);
int algebra_atom_index(Algebra *algebra, int index);
int algebra_atom_local(Algebra *algebra, const Role *role, int local);

/* p = factor * atom + rest, neither of which mentions the atom; false where it is not of this form */
bool poly_split(Algebra *algebra, const Poly *poly, int atom, const Poly **factor, const Poly **rest);

bool poly_at_least_zero(Algebra *algebra, const Poly *poly); /* certainly >= 0? */
int64_t poly_divisor(Algebra *algebra, const Poly *poly);

#endif
