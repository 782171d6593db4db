/* Match: the iterations of a producer that filled the stage of a consumer.
 *
 * Both ends of a pipe acquire its stages in the order of the ring, so the k-th stage that is
 * consumed is the k-th that was produced. The stages before an acquire are counted at both ends,
 * as formulas; a division of a range into pieces, single iterations or passes at one end is found
 * at the other by these numbers. Holds where both ends acquire equally often in each tile of the
 * grid, which the rule of counts proves. */
#ifndef PIPEC_FLOW_MATCH_H
#define PIPEC_FLOW_MATCH_H

#include "algebra/algebra.h"
#include "flow/code.h"

/* a loop variable of the producer, and its value as a formula of the consumer's variables, in
 * the consumer's algebra */
typedef struct Matched {
    int from; /* a local of the producer's role */
    const Poly *to;
} Matched;

typedef VEC(Matched) Matches;

/* One way in which a stage may have been filled */
typedef struct Filling {
    int row, handle; /* the producer's acquire, and its handle */
    Matches loops;   /* the loops around that acquire, outermost first */
    Facts facts;     /* in the consumer's algebra: each is >= 0 if it was filled in this way */
} Filling;

typedef struct Fillings Fillings;
struct Fillings {
    bool known;     /* in one of the ways `items`; false: in any way */
    bool same_tile; /* for the same tile of the grid; also if `known` is false */
    int acquire;    /* the row that acquires it; -1: there are several */
    VEC(Filling) items;
    /* of stages that are acquired before it, in the same iteration, from the same producer */
    VEC(const Fillings *) earlier;
};

/* How the stage of a consumer's handle was filled. Computed once; needs the values of both roles
 * (flow_values). */
const Fillings *match_stage(Arena *arena, FlowCode *producer, FlowCode *consumer, int handle);

/* A formula of the producer's algebra, as it was when the stage was filled in this way, in the
 * algebra of the consumer. way: NULL: any; fillings: NULL: unknown. NULL: no such formula.
 * versions.c */
const Poly *match_formula(const Fillings *fillings, const Filling *way, FlowCode *producer,
                          FlowCode *consumer, const Poly *poly);

#endif
