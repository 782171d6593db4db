/* Match: the iteration of a producer that filled the stage of a consumer. */
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

/* Compares the loops around the producer's only acquire of `handle`'s pipe with those around the
 * consumer's acquires. True if the stage of `handle` was filled in the iteration given by `out`:
 * both ends acquire once per iteration, unconditionally, of loops over the same ranges; the
 * consumer's may be divided into consecutive pieces and single iterations, or unrolled. */
bool match_loops(Arena *arena, FlowCode *producer, FlowCode *consumer, int handle, Matches *out);

/* True if the stage of `handle` was filled for the same tile of the grid, for pipes whose ends are
 * acquired equally often: both ends are acquired only in one loop over the grid, which no loop
 * encloses. */
bool match_tile(Arena *arena, const FlowCode *producer, const FlowCode *consumer, int handle);

#endif
