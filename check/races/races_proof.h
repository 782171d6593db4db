/* Places of tensors as formulas: private to races_proof.c, which compares them, and
 * races_choices.c, which makes them. A subscript that selects one of two values gives two
 * sets of formulas. */
#ifndef PIPEC_RACES_PROOF_H
#define PIPEC_RACES_PROOF_H

#include "check/races/races.h"

typedef VEC(const Poly *) Polys;

typedef struct RaceDigit { /* sub = factor * (atom + more) + rest, 0 <= rest < |factor| */
    int atom;
    const Poly *factor, *rest;
    int64_t more;
} RaceDigit;

typedef struct RaceDigits { /* digits of a subscript in a mixed radix, most significant first */
    bool found;             /* they have been computed */
    VEC(RaceDigit) items;
} RaceDigits;

typedef struct Formulas { /* a place as formulas: one choice of the selects in its subscripts */
    const Place *place;
    FlowCode *code;
    int at;              /* its row */
    Polys facts;         /* each >= 0 */
    VEC(Choice) choices; /* one of two sets of facts holds */
    const Poly *subs[PROG_MAX_RANK];
    RaceReach reach[PROG_MAX_RANK]; /* in all tiles; known if only indexes decide */
    RaceDigits *digits;             /* by dimension: each needs a proof, so computed on first use */
} Formulas;

#define WAYS_MOST 16

typedef struct RaceChoices {
    VEC(Formulas) ways; /* at most WAYS_MOST */
} RaceChoices;

/* computed once per place */
const RaceChoices *race_choices(Arena *arena, const Prog *prog, Place *place);

#endif
