/* Places of tensors as formulas: private to check/races_proof.c, which compares them, and
 * check/races_ways.c, which makes them. A subscript that selects between two is one way and
 * another; each is a set of formulas of its own. */
#ifndef PIPEC_RACES_PROOF_H
#define PIPEC_RACES_PROOF_H

#include "check/races.h"

typedef VEC(const Poly *) Polys;

typedef struct Reach { /* of a subscript: an interval over its indexes */
    int64_t lo, hi;
    bool known;
} Reach;

typedef struct RaceDigit { /* sub = factor * (atom + more) + rest, 0 <= rest < |factor| */
    int atom;
    const Poly *factor, *rest;
    int64_t more;
} RaceDigit;

typedef struct RaceDigits { /* of a subscript as a number of a mixed radix, the first one first */
    bool found;         /* they have been looked for */
    VEC(RaceDigit) items;
} RaceDigits;

typedef struct Formulas { /* a place as formulas: one way through the selects in its subscripts */
    const Place *place;
    FlowCode *code;
    int at;              /* its row */
    Polys facts;         /* each >= 0 */
    VEC(Choice) choices; /* one of two sets of facts holds */
    const Poly *subs[PROG_MAX_RANK];
    Reach reach[PROG_MAX_RANK]; /* in all tiles; known where indexes alone decide */
    RaceDigits *digits;             /* by dimension: each a proof, so made once, where it is asked for */
} Formulas;

#define WAYS_MOST 16

typedef struct RaceWays {
    int count;
    Formulas ways[WAYS_MOST];
} RaceWays;

const RaceWays *race_ways(Arena *arena, const Prog *prog, Place *place); /* made once a place */
Reach race_reach(const Formulas *f, const Poly *sub);

#endif
