/* Context: what is known at one place of one path of one instance: values of its rank and of the variables of loops that are followed trip
 * by trip, and the conditions that its path assumes. Rules ask it for formulas, truths and sets of elements. */
#ifndef PIPEC_FLOW_CONTEXT_H
#define PIPEC_FLOW_CONTEXT_H

#include "algebra/algebra.h"

#define MAX_TRIPS 1024    /* of a constant loop that is followed trip by trip */

/* ---- what is known ------------------------------------------------------------------------------------------------------ */

typedef enum AssumedKind {
    ASSUMED_CONDITION, /* `condition`, spelled as context_condition spells it, is `truth` */
    ASSUMED_NONEMPTY,  /* prog->domains[number] has an iteration, or has none */
    ASSUMED_TRIP       /* this iteration of the loop `number` (a region) is its iteration `trip`, from 0; not: one from `trip` on */
} AssumedKind;

typedef struct Assumed {
    AssumedKind kind;
    const Poly *condition;
    int number;
    bool truth;
    int trip;
    Expr *expr;   /* CONDITION: as written, for the prover */
    bool as;      /* and its truth as written */
    int made;     /* the row at which the path assumed it */
    int until;    /* the last row that asks for it; dropped where paths meet after this row */
} Assumed;

typedef VEC(Assumed) Assumptions;

typedef struct Context {
    Arena *arena;
    Algebra *algebra;
    const Role *role;
    struct Bound { int atom; const Poly *value; } *bound;
    int bound_count, bound_capacity;
    const Assumptions *assumed; /* of the path; NULL: nothing */
} Context;

void context_bind(Context *context, int atom, const Poly *value); /* undone by bound_count-- */
const Poly *context_poly(const Context *context, Expr *expr);
bool context_value(const Context *context, Expr *expr, int64_t *out);
int context_truth(const Context *context, Expr *condition); /* 1, 0, or -1: not known */
int context_nonempty(const Context *context, int domain);   /* the same, of a range */

/* The one spelling of a condition: x < y for y > x and, with *truth false, for y <= x. NULL: not known. */
const Poly *context_condition(const Context *context, Expr *condition, bool *truth);

/* Does the formula depend on nothing that changes unseen, such as memory that is written? Variables of the role change seen. */
bool context_follows(const Algebra *algebra, const Poly *poly);

#endif
