/* Versions of a producer's variables in formulas that a consumer uses. Of the floor: match.c makes
 * the matches; other floors call match_formula (match.h). */
#ifndef PIPEC_FLOW_VERSIONS_H
#define PIPEC_FLOW_VERSIONS_H

#include "flow/match.h"

/* Versions that a producer sets in its iteration, from the view of the consumer */
typedef struct Versions {
    const FlowCode *producer;
    const Matches *is; /* its loop variables; NULL: it is the same iteration */
    Algebra *algebra;
    bool same; /* the two ends are of one role */
    /* Of the stage; NULL: a version of another stage may not be the same */
    const Fillings *fillings;
} Versions;

/* The formula of the producer with its versions as those that filled the stage that the consumer
 * acquires at `row`; NULL: unknown */
const Poly *versions_filled(const Versions *v, const Poly *poly, const Role *consumer, int row);
/* The formula with the values of the role's loop variables */
const Poly *versions_matched(Algebra *algebra, const Role *role, const Matches *is,
                             const Poly *poly);

#endif
