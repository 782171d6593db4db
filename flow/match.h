/* Match: which iteration of a producer filled the stage that a consumer holds. */
#ifndef PIPEC_FLOW_MATCH_H
#define PIPEC_FLOW_MATCH_H

#include "algebra/algebra.h"
#include "flow/code.h"

typedef struct Matched { /* a loop variable of the producer, and its value in terms of the consumer's, in the consumer's algebra */
    int from;            /* a local of the producer's role */
    const Poly *to;
} Matched;

typedef VEC(Matched) Matches;

/* Loops around the only acquire of the producer's end of `handle`'s pipe against those around the consumer's acquires. True where the stage that
 * `handle` holds was filled in the iteration that `out` names: both ends acquire once in each iteration, under no condition, of loops over the
 * same ranges; the consumer's may be cut into pieces and single iterations that follow each other, or written out. */
bool match_loops(Arena *arena, FlowCode *producer, FlowCode *consumer, int handle, Matches *out);

#endif
