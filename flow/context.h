/* Context: facts known at one place of one path of one instance: values of its rank and of the
 * variables of loops that are followed iteration by iteration, and the conditions that its path
 * assumes. Rules query it for formulas, truths and sets of elements. */
#ifndef PIPEC_FLOW_CONTEXT_H
#define PIPEC_FLOW_CONTEXT_H

#include "algebra/algebra.h"

/* most iterations of a constant loop that is followed iteration by iteration */
#define MAX_TRIPS 1024

/* ---- known facts ----------------------------------------------------------------------------- */

typedef enum AssumedKind {
    ASSUMED_CONDITION, /* `condition`, in the form of context_condition, is `truth` */
    ASSUMED_NONEMPTY,  /* prog->domains[number] has an iteration, or none */
    /* this iteration of the loop `number` (a region) is its iteration `trip`, from 0; false: one
     * from `trip` on */
    ASSUMED_TRIP
} AssumedKind;

typedef struct Assumed {
    AssumedKind kind;
    const Poly *condition;
    int number;
    bool truth;
    int trip;
    Expr *expr; /* CONDITION: as written, for the prover */
    bool as;    /* and its truth as written */
    int made;   /* the row at which the path assumed it */
    int until;  /* the last row that tests it; dropped at joins after this row */
} Assumed;

typedef VEC(Assumed) Assumptions;

typedef struct Context {
    Arena *arena;
    Algebra *algebra;
    const Role *role;
    struct Bound {
        int atom;
        const Poly *value;
    } * bound;
    int bound_count, bound_capacity;
    const Assumptions *assumed; /* of the path; NULL: nothing */
} Context;

void context_bind(Context *context, int atom, const Poly *value); /* undone by bound_count-- */
const Poly *context_poly(const Context *context, Expr *expr);
/* The value of an integer expression; false: unknown */
bool context_value(const Context *context, Expr *expr, int64_t *out);
int context_truth(const Context *context, Expr *condition); /* 1, 0, or -1: unknown */
int context_nonempty(const Context *context, int domain);   /* the same for a range */

/* The canonical form of a condition: x < y for y > x and, with *truth false, for y <= x. NULL:
 * unknown. */
const Poly *context_condition(const Context *context, Expr *condition, bool *truth);

/* True if the formula depends on nothing that changes unnoticed, such as memory that is written.
 * Changes of the role's variables are noticed. */
bool context_follows(const Algebra *algebra, const Poly *poly);

#endif
