/* Polynomials over atoms: what tiles, padding and coverage compute with. The door of the floor.
 *
 * A polynomial is an exact formula of integers, and so is the value of each atom. A kernel's `+ - *` are polynomials modulo 2^w: what was cut off on
 * the way does no harm. Where a value is observed and the polynomial does not certainly fit the type, an ATOM_WRAP stands for it. A NULL Poly means
 * "not known" (a coefficient overflowed, or the form grew too large); every function passes it on. */
#ifndef PIPEC_ALGEBRA_H
#define PIPEC_ALGEBRA_H

#include "prog/prog.h"

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
    ATOM_WRAP,                                                 /* the value of its type that is args[0] modulo 2^width */
    ATOM_FLOOR,                                                /* floor(args[0] / args[1]); of normal forms, as are those below */
    ATOM_WHOLE, ATOM_REST,                                     /* parts of another atom: any integer; at least 0 and below args[0] */
    ATOM_BOUND,                                                /* variable of the sum or search around it; index: 1 + those inside */
    ATOM_SUM,                                                  /* sum of args[1] over 0 <= bound < args[0]; below 0: less what it then lacks */
    ATOM_FIRST,                                                /* args[0] <= it <= args[1]: after the first bound for which args[2] is true */
    ATOM_OPAQUE                                                /* anything else, equal where its key is; versions: index says at which row */
} AtomKind;

typedef struct Range Range;

typedef struct Atom {
    AtomKind kind;
    int index;
    const Role *role;          /* LOCAL, RANK */
    Element type;
    const Poly *args[3];       /* NULL where there are fewer */
    int level;                 /* bounds of an atom speak of atoms of lower levels */
    bool changes;              /* may differ between two moments: `var` locals, memory that is written */
    bool foreign;              /* what changes and is no local is in it, or is it itself */
    int bounds;                /* index of the outermost ATOM_BOUND in it, or its own; 0: none */
    int bound;                 /* id of that; -1: none */
    int question;              /* id of a truth, min or max in it, or itself, that holds no other and no bound; -1: none */
    int quotient;              /* id of an ATOM_FLOOR by a constant in it, or itself, that holds no other; -1: none */
    uint64_t within;           /* bit id % 64 for each atom in it: one whose bit is missing is not */
    bool wraps;                /* an ATOM_WRAP is in it */
    bool indexed;              /* an index is in it: its range is a matter of the statement */
    bool of_symbols;           /* nothing but extents and scalars is in it */
    const Range *range;        /* NULL: not asked yet (range.c) */
    const IndexSpace *space;   /* to which that belongs, of what is indexed */
    const char *key;
    const Poly *self;          /* the atom as a formula; NULL: not asked yet */
} Atom;

/* One of two sets of facts holds: `a || b`, a != b */
typedef struct Choice {
    const Poly *const *facts[2]; /* each >= 0 */
    size_t counts[2];
} Choice;

typedef VEC(const Poly *) Facts;

/* `by` certainly divides the formula. */
typedef struct Divides {
    const Poly *poly;
    int64_t by;
} Divides;
typedef VEC(Divides) DividesList;

typedef struct NormalFact {
    const Poly *poly, *normal;
} NormalFact;
typedef VEC(NormalFact) NormalFacts;

/* What the prover was asked so far, by hash */
typedef struct Asked Asked;
typedef struct AskedTable {
    Asked **items; /* NULL: free */
    size_t count, room;
} AskedTable;

/* What the variables of a role hold at one place, by local; NULL: what is written there says. The version names the set: 0 is none. */
typedef struct Bindings {
    int version;
    const Poly *const *locals;
} Bindings;

/* What is known at one place of a role. `space` and `rank` are set by the caller, per statement. */
typedef struct Algebra {
    Arena *arena;
    const Prog *prog;
    const Role *role;          /* NULL: prog-level formulas */
    const IndexSpace *space;   /* whose extents bound the X_INDEX atoms; NULL: they are not bounded */
    VEC(Atom) atoms;
    int *buckets;              /* of atoms by key: 1 + id, 0: free */
    size_t bucket_count;
    struct Memo { const Expr *expr; int version; const IndexSpace *space; const Poly *residue, *value; } *memo;
    size_t memo_count, memo_capacity;
    Facts facts;               /* of the path, each certainly >= 0 */
    VEC(Choice) choices;       /* of the path */
    Facts stated;              /* each certainly >= 0, by preconditions and extents */
    size_t params_seen, preconditions_seen; /* that are in there */
    int fitting;               /* proofs under way that a polynomial fits */
    bool launched;             /* the formula that is being made is evaluated at the launch */
    NormalFacts normals, stated_normals; /* of facts, by their number, where `poly` is still that fact */
    int path, normals_path;    /* the set of facts, numbered; that in which the normal forms were made */
    DividesList divides, stated_divides; /* by facts of the path, and by preconditions */
    int steps;                 /* left of the search for a proof */
    int64_t proof_work;        /* terms that formulas and one proof may take; INT64_MAX: the meter of the arena alone ends them */
    int64_t work;              /* left of it: terms that are added and multiplied, rows of linear.c; after that nothing is proved */
    int most_terms;            /* of a polynomial: POLY_MAX_TERMS, or POLY_MORE_TERMS where counts are compared */
    int parts;                 /* WHOLE and REST atoms made so far */
    Bindings bindings;           /* algebra_hold */
    bool held;                 /* the formula that is being made took something from `bindings` */
    void *rows;                /* room for linear.c */
    AskedTable asked;
    struct Model *models;      /* models.c; NULL: not made yet */
    Str key;                   /* room for the key of an atom */
    const Poly *small[3];      /* the constants -1, 0 and 1; NULL: not asked yet */
} Algebra;

Algebra *algebra_new(Arena *arena, const Prog *prog, const Role *role);
/* For formulas of whole loops, of all roles: they may be long, and proofs of them end early */
Algebra *algebra_of_counts(Arena *arena, const Prog *prog);

/* The value of the expression, as the kernel computes it: cut off to the width of its type. Formulas are
 * kept by the address of their expression, which therefore must live as long as the algebra. */
const Poly *algebra_poly(Algebra *algebra, const Role *role, Expr *expr);
/* Equal to the value modulo 2^width; algebra_value makes the value of it. */
const Poly *algebra_residue(Algebra *algebra, const Role *role, Expr *expr);
const Poly *algebra_value(Algebra *algebra, const Poly *residue, Element type);
/* Where an access lies along axis d, exactly, if it is in an extent at all: what exceeds 32 bits between its first and its last element is outside,
 * cut off or not (derive/tiles_index.c sees to it that so much only is affine). */
const Poly *algebra_subscript(Algebra *algebra, const Role *role, const Access *access, int d);
/* A residue as good as this one, without what cuts off as many bits on the way */
const Poly *algebra_whole(Algebra *algebra, const Poly *residue, Element type);
/* The value as a launch computes it, exactly: of preconditions, extents and axes */
const Poly *algebra_launched(Algebra *algebra, Expr *expr);
Bindings algebra_hold(Algebra *algebra, Bindings bindings); /* from now on; what it was until now */
/* The same formula, of another algebra of the program, in this one */
const Poly *algebra_import(Algebra *algebra, Algebra *from, const Poly *poly);
/* A value without a formula, that local `local` (-1: none) got at `row` of its role's code: equal to itself alone */
const Poly *algebra_version(Algebra *algebra, const Role *role, int local, int row, const char *tag, Element type);
void algebra_bounded(Algebra *algebra, const Poly *version, int64_t least, int64_t most); /* it certainly lies between them */
const Poly *poly_constant(Algebra *algebra, int64_t value);
const Poly *poly_sum(Algebra *algebra, const Poly *a, const Poly *b, int64_t scale); /* a + scale * b */
const Poly *poly_product(Algebra *algebra, const Poly *a, const Poly *b);
const Poly *poly_atom(Algebra *algebra, int atom);
const Poly *poly_replace(Algebra *algebra, const Poly *poly, int atom, const Poly *by); /* inside of other atoms too */
size_t poly_size(const Algebra *algebra, const Poly *poly); /* of its text, atoms within atoms included */
bool poly_is_constant(const Poly *poly, int64_t *out);
bool poly_equal(const Poly *a, const Poly *b);
bool poly_wraps(const Algebra *algebra, const Poly *poly); /* an ATOM_WRAP is in it */
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

/* The variable that the atom stands for, where its limits are known; else NULL */
const Local *atom_limited(const Atom *atom);

typedef enum Certainty { NOT_CERTAIN = -1, CERTAINLY_NOT, CERTAINLY } Certainty;

/* ---- facts of a path (path.c): a stack -----------------------------------------------------------------------------------
 * They hold while nothing that they mention changes: the caller undoes them before, or writes what changes as versions of its own. */
typedef struct PathMark {
    size_t facts, choices, divides;
} PathMark;

PathMark algebra_mark(Algebra *algebra);
void algebra_undo(Algebra *algebra, PathMark mark); /* forgets what was assumed since */
void algebra_assume(Algebra *algebra, const Role *role, Expr *condition, bool truth);
void algebra_assume_range(Algebra *algebra, const Poly *value, const Poly *lo, const Poly *hi); /* lo <= value < hi */
void algebra_assume_poly(Algebra *algebra, const Poly *poly); /* it is >= 0 */
Certainty algebra_decides(Algebra *algebra, const Role *role, Expr *condition); /* is it true here? */

bool algebra_impossible(Algebra *algebra); /* the facts contradict each other: nothing comes here */

void poly_print(const Algebra *algebra, const Poly *poly, Str *out); /* print.c */

int64_t poly_divisor(Algebra *algebra, const Poly *poly);

/* ---- the prover (prove.c) --------------------------------------------------------------------
 * Does a claim about a formula hold wherever the facts do: preconditions, extents, the limits of
 * axes, loops, ranks, indexes and types, and the facts of the path? An ATOM_WRAP counts as its
 * formula where that is shown to fit its type here, else as any value of its type.
 * Tried in this order, up to the first answer:
 *   0. numbers for which the facts hold and the claim does not (models.c);
 *   1. ranges of atoms, and their bounds put in one after the other (bounds.c);
 *   2. linear elimination (linear.c) in each of the cases that questions, extremes, quotients and
 *      choices leave (cases.c).
 * A proof takes at most `algebra->proof_work` terms; what it takes counts on the meter of the
 * arena too. NULL is a formula that is not known: the answer is NOT_CERTAIN. */
typedef enum PolyClaim { CLAIM_NOT_NEGATIVE, CLAIM_ZERO, CLAIM_NOT_ZERO } PolyClaim;

Certainty algebra_prove(Algebra *algebra, PolyClaim claim, const Poly *poly);
bool algebra_proves(Algebra *algebra, PolyClaim claim, const Poly *poly); /* is it CERTAINLY? */
/* The work that is left for formulas and one proof begins anew: `proof_work` terms. */
void algebra_work_anew(Algebra *algebra);

/* ---- algebra: what the passes know of integers (algebra.c) -------------------------------------------------------- */

/* Equal for all values of symbols, axes and locals that `requires` allows? Both are brought to polynomials over atoms (symbols, axes, loop
 * locals, ranks, indexes, truths, quotients, and opaque terms such as read-only loads compared by their own canonical form); lets are expanded; what
 * differs is proved (CLAIM_ZERO). False means "not known". */
bool algebra_equal(Arena *arena, const Prog *prog, const Role *a_role, Expr *a, const Role *b_role, Expr *b);
/* The same formula but for its spelling? Quicker, for where a no does no harm */
bool algebra_same(Algebra *algebra, Expr *a, Expr *b);
/* A value that certainly divides it (0 for a constant 0), from constants, coefficients and `requires ... % n == 0`. */
int64_t algebra_divisor(Arena *arena, const Prog *prog, const Role *role, Expr *expr);
/* Certainly a <= b? From constants, `requires`, 0 <= axis < its extent, lo <= loop variable < hi, extents >= 0. */
bool algebra_at_most(Arena *arena, const Prog *prog, const Role *role, Expr *a, Expr *b);

#endif
