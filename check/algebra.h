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
#define POLY_MORE_TERMS 400
#define PROOF_WORK 500000 /* some 30 ms */

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
    ATOM_TRUTH,                                                /* args[0] >= 0 ? 1 : 0 */
    ATOM_FLOOR,                                                /* floor(args[0] / args[1]); of normal forms, as are those below */
    ATOM_WHOLE, ATOM_REST,                                     /* parts of another atom: any integer; at least 0 and below args[0] */
    ATOM_BOUND,                                                /* variable of the sum or search around it; index: 1 + those inside */
    ATOM_SUM,                                                  /* sum of args[1] over 0 <= bound < args[0]; below 0: less what it then lacks */
    ATOM_FIRST,                                                /* args[0] <= it <= args[1]: behind the first bound of which args[2] is true */
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
    int64_t work;              /* left: terms that are added and multiplied, rows of linear.c; behind it nothing is known */
    int most_terms;            /* of a polynomial: POLY_MAX_TERMS, or POLY_MORE_TERMS where counts are compared */
    VEC(const Poly *) known;   /* normal forms, each >= 0 here: facts, and the ranges of loops around (equal.c) */
    int parts;                 /* WHOLE and REST atoms made so far */
    void *rows;                /* room for linear.c */
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
int algebra_atom_axis(Algebra *algebra, int axis);
int algebra_atom_index(Algebra *algebra, int index);
int algebra_atom_local(Algebra *algebra, const Role *role, int local);

/* p = factor * atom + rest, neither of which mentions the atom; false where it is not of this form */
bool poly_split(Algebra *algebra, const Poly *poly, int atom, const Poly **factor, const Poly **rest);

/* ---- normal forms (normal.c): what balance proves counts equal in --------------------------------------------------------
 * SELECT, DIV, MOD and CEIL are spelled out in TRUTH and FLOOR atoms. NULL passes through. */
const Poly *poly_normal(Algebra *algebra, const Poly *poly);
const Poly *poly_truth(Algebra *algebra, const Poly *poly);                     /* poly >= 0 ? 1 : 0 */
const Poly *poly_floor(Algebra *algebra, const Poly *poly, const Poly *by);     /* floor(poly / by), by > 0 */
const Poly *poly_sums(Algebra *algebra, const Poly *limit, const Poly *body);   /* an ATOM_SUM, over the outermost bound of the body */
int algebra_part(Algebra *algebra, int64_t limit); /* a new atom: 0 <= it < limit; limit 0: any integer */
int algebra_bound(Algebra *algebra, const Poly *body); /* the variable of a sum around it */
int poly_bounds(const Algebra *algebra, const Poly *poly); /* index of the outermost ATOM_BOUND below it; 0: none */
const Poly *algebra_operation(Algebra *algebra, AtomKind kind, const char *tag, Element type, const Poly *const *args, int count);
const Poly *poly_extreme(Algebra *algebra, bool is_max, const Poly *a, const Poly *b);
const Poly *poly_spelled(Algebra *algebra, int extreme); /* an ATOM_MIN or ATOM_MAX, by a TRUTH */
const Poly *poly_offset(Algebra *algebra, const Poly *poly, int64_t value); /* poly + value */
const Poly *poly_minus(Algebra *algebra, const Poly *poly);
bool poly_linear_in(Algebra *algebra, const Poly *poly, int atom, int64_t *coef, const Poly **rest); /* coef * atom + rest, coef not 0 */

const Poly *poly_decided(Algebra *algebra, const Poly *poly, int truth, bool value); /* with what follows for others in it */

const Poly *poly_larger(Algebra *algebra, const Poly *a, const Poly *b); /* the normal form of it; plainly so where that is known */
const Poly *poly_smaller(Algebra *algebra, const Poly *a, const Poly *b);

/* The sum of `body`, in normal form, over lo <= atom < hi, where lo <= hi is certain; it must come out whole (sums.c) */
const Poly *poly_sum_over(Algebra *algebra, int atom, const Poly *lo, const Poly *hi, const Poly *body);
/* Iterations lo <= atom < it are made of a loop that ends with the first of which `stop`, 0 or 1, is 1 */
const Poly *poly_first(Algebra *algebra, int atom, const Poly *lo, const Poly *hi, const Poly *stop);

/* Is there certainly no integer solution of: all of these are >= 0? (linear.c) */
bool polys_impossible(Algebra *algebra, const Poly *const *polys, size_t count, const Poly *also);
/* Certainly 0 wherever what is known holds? (equal.c) */
bool poly_proves_zero(Algebra *algebra, const Poly *poly);
/* Certainly >= 0, by `known`? A quick answer: what is known of atoms by themselves counts, cases do not (equal.c) */
bool poly_known(Algebra *algebra, const Poly *poly);
void algebra_know(Algebra *algebra, const Poly *poly); /* is >= 0 from now on */
void algebra_know_facts(Algebra *algebra, const Poly *about); /* preconditions, and what is known of the atoms; `about` may be NULL */
void algebra_learn(Algebra *algebra); /* facts from preconditions; facts.c */

bool poly_at_least_zero(Algebra *algebra, const Poly *poly); /* certainly >= 0? */
int64_t poly_divisor(Algebra *algebra, const Poly *poly);

#endif
