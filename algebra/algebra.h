/* algebra: polynomials over atoms, and what is proved of them. Public header of the floor.
 *
 * A polynomial is an exact formula of integers, and the value of each atom is an exact integer.
 * A kernel's `+ - *` are polynomials modulo 2^w: intermediate truncation does not change the
 * result. If a value is observed and the polynomial is not proved to fit its type, an ATOM_WRAP
 * represents it. A NULL Poly means "unknown" (a coefficient overflowed, or the polynomial became
 * too large); every function passes it on. */
#ifndef PIPEC_ALGEBRA_H
#define PIPEC_ALGEBRA_H

#include "prog/prog.h"

#define POLY_MAX_DEGREE 6
#define POLY_MAX_TERMS  64
#define POLY_MORE_TERMS 400
#define PROOF_WORK      500000 /* some 30 ms */

typedef struct Term {
    int64_t coef;               /* never 0 */
    int count;                  /* degree */
    int atoms[POLY_MAX_DEGREE]; /* ids, ascending; a power repeats its atom */
} Term;

typedef struct Poly {
    int count;
    /* sorted by degree and atoms; the constant term, if any, is the first */
    Term terms[];
} Poly;

typedef enum AtomKind {
    ATOM_SYMBOL,
    ATOM_AXIS,
    ATOM_LOCAL,
    ATOM_RANK,
    ATOM_INDEX, /* index says which one */
    ATOM_DIV,
    ATOM_MOD,
    ATOM_CEIL,
    ATOM_MIN,
    ATOM_MAX,    /* of args[0] and args[1] */
    ATOM_SELECT, /* args[0] ? args[1] : args[2] */
    ATOM_TRUTH,  /* args[0] >= 0 ? 1 : 0 */
    ATOM_WRAP,   /* args[0] modulo 2^width, as a value of its type */
    /* floor(args[0] / args[1]); in normal forms, as are those below */
    ATOM_FLOOR,
    /* parts of another atom: any integer; at least 0 and below args[0] */
    ATOM_WHOLE,
    ATOM_REST,
    /* variable of the enclosing sum or search; index: 1 + number of bounds inside */
    ATOM_BOUND,
    /* sum of args[1] over 0 <= bound < args[0]; for a negative limit minus the sum over args[0]
     * <= bound < 0 */
    ATOM_SUM,
    /* args[0] <= value <= args[1]: one after the first bound for which args[2] is true */
    ATOM_FIRST,
    /* other expressions, equal if their keys are; of versions index is the row */
    ATOM_OPAQUE
} AtomKind;

typedef struct Range Range;

typedef struct Atom {
    AtomKind kind;
    int index;
    const Role *role; /* LOCAL, RANK */
    Element type;
    const Poly *args[3]; /* NULL beyond its operands */
    int level;           /* bounds of an atom contain atoms of lower levels */
    bool changes; /* may change between two evaluations: `var` locals, memory that is written */
    bool foreign; /* contains, or is, something that changes and is no local */
    int bounds;   /* index of the outermost ATOM_BOUND in it, or its own; 0: none */
    int bound;    /* id of that; -1: none */
    /* id of a truth, min or max in it, or its own, that contains no other one and no bound; -1:
     * none */
    int question;
    /* id of an ATOM_FLOOR by a constant in it, or its own, that contains no other one; -1: none */
    int quotient;
    uint64_t within;    /* bit id % 64 for each atom in it, so a missing bit excludes an atom */
    bool wraps;         /* contains an ATOM_WRAP */
    bool cut;           /* stands for a formula that is too large, or contains such an atom */
    bool indexed;       /* contains an index: its range depends on the statement */
    bool of_symbols;    /* contains only extents and scalars */
    const Range *range; /* NULL: not computed yet (range.c) */
    const IndexSpace *space; /* the space of that range, if it contains an index */
    const char *key;
    const Poly *self; /* the atom as a formula; NULL: not made yet */
} Atom;

/* A cached atom that its kind, index and role determine; found without the table of atoms */
typedef struct SimpleAtom {
    AtomKind kind;
    int index;
    const Role *role;
    int id; /* 1 + id, 0: free */
} SimpleAtom;
#define SIMPLE_CACHED 16

/* One of two sets of facts holds: `a || b`, a != b */
typedef struct Choice {
    const Poly *const *facts[2]; /* each fact >= 0 */
    size_t counts[2];
} Choice;

typedef VEC(const Poly *) Facts;

/* `by` divides the formula. */
typedef struct Divides {
    const Poly *poly;
    int64_t by;
} Divides;
typedef VEC(Divides) DividesList;

typedef struct NormalFact {
    const Poly *poly, *normal;
} NormalFact;
typedef VEC(NormalFact) NormalFacts;

/* Earlier queries of the prover, by hash */
typedef struct Query Query;
typedef struct QueryTable {
    Query **items; /* NULL: free */
    size_t count, room;
} QueryTable;

/* Values of a role's variables at one place, by local; NULL: unchanged. `version` identifies the
 * set: 0 is none. */
typedef struct Bindings {
    int version;
    const Poly *const *locals;
} Bindings;

/* The facts at one place of a role. The caller sets `space` and `rank` for each statement. */
typedef struct Algebra {
    Arena *arena;
    const Prog *prog;
    const Role *role;        /* NULL: formulas of the kernel */
    const IndexSpace *space; /* its extents bound the X_INDEX atoms; NULL: no bounds */
    VEC(Atom) atoms;
    int *buckets; /* hash table of atoms by key: 1 + id, 0: free */
    size_t bucket_count;
    SimpleAtom simple[SIMPLE_CACHED]; /* the most recent results, by kind and index */
    struct Memo {
        const Expr *expr;
        int version;
        const IndexSpace *space;
        const Poly *residue, *value;
    } * memo;
    size_t memo_count, memo_capacity;
    Facts facts;                            /* of the path, each >= 0 */
    VEC(Choice) choices;                    /* of the path */
    Facts stated;                           /* of preconditions and extents, each >= 0 */
    Facts stated_nonzero;                   /* from preconditions: divisors that are not 0 */
    size_t params_seen, preconditions_seen; /* those that `stated` contains */
    bool dense;    /* speaks of tensors without gaps: conditions of their pitches hold */
    int fitting;   /* nesting depth of proofs that a polynomial fits */
    bool launched; /* the current formula is evaluated at launch */
    /* normal forms of the facts, by index, valid if `poly` is the fact's current polynomial */
    NormalFacts normals, stated_normals;
    /* path: identifies the set of facts; normals_path: the set whose normal forms these are */
    int path, normals_path;
    DividesList divides, stated_divides; /* from the path, and from preconditions */
    int steps;                           /* remaining steps of the search for a proof */
    /* most terms for formulas and one proof; INT64_MAX: only the arena's meter ends them */
    int64_t proof_work;
    /* remaining work: terms that are added and multiplied, rows of linear.c; at 0 nothing is
     * proved */
    int64_t work;
    /* most terms of a polynomial: POLY_MAX_TERMS, or POLY_MORE_TERMS for counts */
    int most_terms;
    int parts;         /* number of WHOLE and REST atoms */
    uint64_t limits;   /* how often a limit of sizes, or of the search for a proof, was reached */
    Bindings bindings; /* see algebra_hold */
    bool held;         /* the current formula depends on `bindings` */
    void *rows;        /* buffer of linear.c */
    QueryTable queries;
    struct Model *models; /* see models.c; NULL: not made yet */
    Str key;              /* buffer for the key of an atom */
    const Poly *small[3]; /* the constants -1, 0 and 1; NULL: not made yet */
} Algebra;

/* An algebra for the formulas of one role; NULL: for formulas of the kernel */
Algebra *algebra_new(Arena *arena, const Prog *prog, const Role *role);
/* For formulas of whole loops, for all roles: they may be long, with a tighter bound on their
 * proofs */
Algebra *algebra_of_counts(Arena *arena, const Prog *prog);

/* The value of the expression as the kernel computes it: truncated to the width of its type.
 * Formulas are cached by the address of their expression, which must live as long as the
 * algebra. */
const Poly *algebra_poly(Algebra *algebra, const Role *role, Expr *expr);
/* Equal to the value modulo 2^width; algebra_value converts it to the value. */
const Poly *algebra_residue(Algebra *algebra, const Role *role, Expr *expr);
const Poly *algebra_value(Algebra *algebra, const Poly *residue, Element type);
/* The position of an access along axis d, exact if it is inside an extent: positions beyond 32
 * bits are outside, truncated or not (derive/tiles/tiles_index.c makes only such subscripts
 * affine). */
const Poly *algebra_subscript(Algebra *algebra, const Role *role, const Access *access, int d);
/* An equivalent residue, without intermediate truncations to as many bits */
const Poly *algebra_whole(Algebra *algebra, const Poly *residue, Element type);
/* The exact value as a launch computes it: for preconditions, extents and axes */
const Poly *algebra_launched(Algebra *algebra, Expr *expr);
/* sets the bindings; returns the previous ones */
static inline Bindings algebra_hold(Algebra *algebra, Bindings bindings) {
    Bindings before = algebra->bindings;
    algebra->bindings = bindings;
    return before;
}
/* Converts a formula of another algebra of the program */
const Poly *algebra_import(Algebra *algebra, Algebra *from, const Poly *poly);
/* The unknown value that local `local` (-1: none) gets at `row` of its role's code: equal only
 * to itself */
const Poly *algebra_version(Algebra *algebra, const Role *role, int local, int row, const char *tag,
                            Element type);
/* The value that a version had when another role, or an earlier iteration, filled the stage that is
 * acquired at `row` of the role's code */
const Poly *algebra_filled(Algebra *algebra, int version, const Role *role, int row);
bool atom_is_filled(const Atom *atom);
/* states that the value is between them */
void algebra_bounded(Algebra *algebra, const Poly *version, int64_t least, int64_t most);
const Poly *poly_constant(Algebra *algebra, int64_t value);
/* a + scale * b */
const Poly *poly_sum(Algebra *algebra, const Poly *a, const Poly *b, int64_t scale);
const Poly *poly_product(Algebra *algebra, const Poly *a, const Poly *b);
const Poly *poly_atom(Algebra *algebra, int atom);
/* also inside other atoms */
const Poly *poly_replace(Algebra *algebra, const Poly *poly, int atom, const Poly *by);
/* size of its text, including nested atoms */
size_t poly_size(const Algebra *algebra, const Poly *poly);
bool poly_is_constant(const Poly *poly, int64_t *out);
bool poly_equal(const Poly *a, const Poly *b);
bool poly_wraps(const Algebra *algebra, const Poly *poly); /* contains an ATOM_WRAP */
bool poly_changes(const Algebra *algebra, const Poly *poly);
bool poly_is_cut(const Algebra *algebra, const Poly *poly); /* contains an atom that is `cut` */
/* The formula, whose new atoms stand for one that is too large */
const Poly *poly_cut(Algebra *algebra, const Poly *poly);
/* also inside other atoms */
bool poly_mentions(const Algebra *algebra, const Poly *poly, int atom);
/* The atoms that a traversal visited last, because formulas share many. */
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

int algebra_atom_rank(Algebra *algebra, const Role *role);
int algebra_atom_axis(Algebra *algebra, int axis);
int algebra_atom_index(Algebra *algebra, int index);
int algebra_atom_local(Algebra *algebra, const Role *role, int local);

/* A version in the formula, also inside other atoms, for which the test is true; -1: none */
typedef bool AtomTest(const Atom *atom, const void *data);
int poly_find_version(const Algebra *algebra, const Poly *poly, AtomTest *test, const void *data);
/* True if the formula contains a version that the role sets at a row from `first` to `last`. */
bool poly_has_version(const Algebra *algebra, const Poly *poly, const Role *role, int first,
                      int last);

/* p = factor * atom + rest, neither of which contains the atom; false if it does not have this
 * form */
bool poly_split(Algebra *algebra, const Poly *poly, int atom, const Poly **factor,
                const Poly **rest);

/* ---- normal forms (normal.c) ----------------------------------------------------------------- */

/* SELECT, DIV, MOD and CEIL are expressed by TRUTH and FLOOR atoms; counts are compared in this
 * form. NULL is passed on. */
const Poly *poly_normal(Algebra *algebra, const Poly *poly);
const Poly *poly_truth(Algebra *algebra, const Poly *poly); /* poly >= 0 ? 1 : 0 */
/* floor(poly / by), by > 0 */
const Poly *poly_floor(Algebra *algebra, const Poly *poly, const Poly *by);
/* an ATOM_SUM, over the outermost bound of the body */
const Poly *poly_sums(Algebra *algebra, const Poly *limit, const Poly *body);
/* a new atom with 0 <= value < limit; limit 0: any integer */
int algebra_part(Algebra *algebra, int64_t limit);
int algebra_bound(Algebra *algebra, const Poly *body); /* the variable of a sum over the body */
/* index of the outermost ATOM_BOUND in it; 0: none */
int poly_bounds(const Algebra *algebra, const Poly *poly);
const Poly *algebra_operation(Algebra *algebra, AtomKind kind, const char *tag, Element type,
                              const Poly *const *args, int count);
const Poly *poly_extreme(Algebra *algebra, bool is_max, const Poly *a, const Poly *b);
/* truth ? a : b; truth is 0 or 1 */
const Poly *poly_select(Algebra *algebra, const Poly *truth, const Poly *a, const Poly *b,
                        Element type);
const Poly *poly_spelled(Algebra *algebra, int extreme); /* an ATOM_MIN or ATOM_MAX as a TRUTH */
const Poly *poly_offset(Algebra *algebra, const Poly *poly, int64_t value); /* poly + value */
const Poly *poly_minus(Algebra *algebra, const Poly *poly);
/* coef * atom + rest, coef not 0 */
bool poly_linear_in(Algebra *algebra, const Poly *poly, int atom, int64_t *coef, const Poly **rest);

/* with the truth replaced by `value`, and its consequences for other truths in the polynomial */
const Poly *poly_decided(Algebra *algebra, const Poly *poly, int truth, bool value);

/* normal form of the maximum; one of the operands if that is known */
const Poly *poly_larger(Algebra *algebra, const Poly *a, const Poly *b);
const Poly *poly_smaller(Algebra *algebra, const Poly *a, const Poly *b);

/* The sum of `body`, in normal form, over lo <= atom < hi, where lo <= hi is proved; NULL unless
 * it is complete (sums.c) */
const Poly *poly_sum_over(Algebra *algebra, int atom, const Poly *lo, const Poly *hi,
                          const Poly *body);
/* End of a loop from `lo` that leaves after the first iteration in which `stop`, 0 or 1, is 1 */
const Poly *poly_first(Algebra *algebra, int atom, const Poly *lo, const Poly *hi,
                       const Poly *stop);

/* The variable that the atom represents, if its limits are known; otherwise NULL */
const Local *atom_limited(const Atom *atom);

typedef enum Certainty { NOT_CERTAIN = -1, CERTAINLY_NOT, CERTAINLY } Certainty;

/* ---- facts of a path (path.c): a stack ------------------------------------------------------- */

/* Facts are valid while nothing in them changes: the caller removes them before a change, or uses
 * versions for changing values. */
typedef struct PathMark {
    size_t facts, choices, divides;
} PathMark;

/* The current top of the stack of facts, for algebra_undo */
PathMark algebra_mark(Algebra *algebra);
void algebra_undo(Algebra *algebra, PathMark mark); /* removes the assumptions made since */
void algebra_assume(Algebra *algebra, const Role *role, Expr *condition, bool truth);
/* lo <= value < hi */
void algebra_assume_range(Algebra *algebra, const Poly *value, const Poly *lo, const Poly *hi);
void algebra_assume_poly(Algebra *algebra, const Poly *poly); /* it is >= 0 */
/* the truth of the condition under the facts */
Certainty algebra_decides(Algebra *algebra, const Role *role, Expr *condition);

/* True if the formula, or a fact of the path about one of its atoms, stands for one that is too
 * large: then a claim about it may be unproved for that reason */
bool algebra_is_cut(const Algebra *algebra, const Poly *poly);

/* the facts contradict each other: the path is never taken */
bool algebra_impossible(Algebra *algebra);

void poly_print(const Algebra *algebra, const Poly *poly, Str *out); /* print.c */

/* A constant that divides the value of the polynomial; 0 for a constant 0 */
int64_t poly_divisor(Algebra *algebra, const Poly *poly);

/* ---- the prover (prove.c) -------------------------------------------------------------------- */

/* Proves that a claim about a formula holds under the facts: preconditions, extents, the limits of
 * axes, loops, ranks, indexes and types, and the facts of the path. An ATOM_WRAP counts as its
 * formula if that is proved to fit its type, otherwise as any value of its type.
 * Steps, up to the first answer:
 *   0. a model that satisfies the facts but not the claim (models.c);
 *   1. ranges of atoms, and their bounds substituted one after the other (bounds.c);
 *   2. linear elimination (linear.c) in each case of questions, extremes, quotients and choices
 *      (cases.c).
 * A proof takes at most `algebra->proof_work` terms, which also count on the meter of the arena.
 * NULL is an unknown formula: the answer is NOT_CERTAIN. */
typedef enum PolyClaim { CLAIM_NOT_NEGATIVE, CLAIM_ZERO, CLAIM_NOT_ZERO } PolyClaim;

/* CERTAINLY: the claim is proved; CERTAINLY_NOT: its opposite is proved; NOT_CERTAIN: unknown */
Certainty algebra_prove(Algebra *algebra, PolyClaim claim, const Poly *poly);
bool algebra_proves(Algebra *algebra, PolyClaim claim, const Poly *poly); /* is it CERTAINLY? */
/* True if it is at least 0 by its range, without the facts of the path (range.c) */
bool algebra_never_negative(Algebra *algebra, const Poly *poly);
/* Resets the remaining work for formulas and one proof to `proof_work` terms. */
void algebra_work_anew(Algebra *algebra);

/* ---- equality of expressions ----------------------------------------------------------------- */

/* True if both are equal for all values of symbols, axes and locals that `requires` allows.
 * Converts both to polynomials over atoms (symbols, axes, loop locals, ranks, indexes, truths,
 * quotients, and opaque terms such as read-only loads, compared by their canonical form);
 * expands lets; proves that the difference is 0 (CLAIM_ZERO). False means "unknown". */
bool algebra_equal(Arena *arena, const Prog *prog, const Role *a_role, Expr *a, const Role *b_role,
                   Expr *b);
/* True if the formulas differ at most in spelling. Faster; for callers that do not need every
 * equality */
bool algebra_same(Algebra *algebra, Expr *a, Expr *b);
/* True if each launch meets the condition, because a precondition states it */
bool algebra_required(Algebra *algebra, Expr *condition);
/* A value that divides it (0 for a constant 0), from constants, coefficients and `requires ... %
 * n == 0`, for tensors without gaps: no proof, but a choice of examples */
int64_t algebra_divisor(Arena *arena, const Prog *prog, const Role *role, Expr *expr);
/* True if a <= b is proved, from constants, `requires`, 0 <= axis < its extent, lo <= loop
 * variable < hi, extents >= 0. */
bool algebra_at_most(Arena *arena, const Prog *prog, const Role *role, Expr *a, Expr *b);

#endif
