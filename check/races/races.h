/* races, check private: unordered accesses to the same elements of a tensor.
 *   races.c          tensors that may race; verdicts
 *   races_run.c      accesses of the blocks of adjacent tiles at given sizes, and their order
 *   races_larger.c   what these sizes cannot show
 *   races_near.c     pairs of places that may access a common element
 *   races_proof.c    proofs that two executions are disjoint, with formulas from races_choices.c
 *   races_value.c    dependence of a value on axes of the grid */
#ifndef PIPEC_RACES_H
#define PIPEC_RACES_H

#include "algebra/algebra.h"
#include "check/sizes/trace.h"
#include "derive/order.h"

/* What the rule notes about a place */
typedef struct RaceNotes {
    bool data; /* contents of memory decide about its subscripts */
    /* 1 + the axis along which the subscript is a position in a part whose begin is read from
     * memory; 0: none */
    int part;
    /* sizes do not show it: for that reason, or because memory decides whether it is executed, or
     * its subscripts are not sums of a base and indexes */
    bool unseen;
    bool reported;
    struct RaceChoices *formulas; /* races_proof.h; NULL: not computed yet */
} RaceNotes;

typedef struct Side { /* the positions lo, lo + step, .. along one axis */
    int64_t lo, step, count;
} Side;

typedef struct Touch { /* one execution of a place */
    Place *place;
    int process, instance;
    int time;         /* number of earlier steps of the process */
    int pipe, number; /* LANES, LOADED: the stage that it fills */
    const int *clock; /* of its process at that time */
    Side sides[PROG_MAX_RANK];
} Touch;

typedef struct Block { /* a block that runs one tile of the grid */
    int64_t axes[PROG_MAX_RANK];
    VEC(Touch) touches; /* ordered within each process */
    int processes;
    /* some process was not run to its end: contents of memory decide, or it is too long */
    bool cut;
} Block;

/* places are sorted by statement */
Traced *race_traced(Arena *arena, const Prog *prog, const Places *places);
/* Runs all roles. Accesses that depend on data, or are never reached, are missing. */
Block *race_block(Arena *arena, Traced *traced, Places *places, const Sizes *sizes,
                  const int64_t *extents, int64_t tile);
/* True if the operations or places depend on more iterations than are run */
bool race_needs_larger(Arena *arena, const Traced *traced, const Places *places);
/* true if `a` is complete and visible when `b` begins */
bool race_before(const Block *block, const Touch *a, const Touch *b);
/* true if they access a common element; *at: its index */
bool race_meet(const Touch *a, const Touch *b, int64_t *at);

/* True if the value written to an element differs between tiles that differ along these axes: 1,
 * 0, or -1: unknown */
int race_value_differs(Arena *arena, const Prog *prog, Algebra *algebra, const Place *place,
                       uint32_t axes);

/* ---- races_near.c ---------------------------------------------------------------------------- */

typedef struct RaceReach { /* of a subscript: the interval of its positions */
    int64_t lo, hi;
    bool known;
} RaceReach;

/* Known if the subscript is a sum of constants and of indexes of the space */
RaceReach race_reach(const Algebra *algebra, const IndexSpace *space, const Poly *sub);
bool race_overlaps(const RaceReach *a, const RaceReach *b); /* also if one is not known */

typedef struct RacePair { /* of places, by index: first <= second */
    int first, second;
} RacePair;

typedef VEC(RacePair) RacePairs;

/* All pairs of which one writes, but those that reach different positions; sorted */
RacePairs race_pairs(Arena *arena, const Prog *prog, const Places *places);

/* ---- races_proof.c */

/* proved for all sizes, contents and paths: executions of the two places that access a common
 * element .. */
typedef struct RaceProof {
    uint32_t axes;  /* .. have the same coordinate along these axes of the grid */
    bool instances; /* .. and in one tile of one instance, where both are of one role */
    /* .. and of one element of the statement, where both are one unseen place */
    bool threads;
    bool within; /* .. are in different tiles */
    bool never;  /* .. do not exist */
} RaceProof;

RaceProof race_proof(Arena *arena, const Prog *prog, Place *one, Place *two);

#endif
