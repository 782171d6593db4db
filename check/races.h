/* races: private to check/: who writes, or writes and reads, the same elements of a tensor without an order.
 *   races.c          which tensors are in question; verdicts
 *   races_apart.c    which executions touch elements of their own; the order of those of one instance
 *   races_follow.c   what the blocks of neighbouring tiles touch at given sizes, and in which order
 *   races_far.c      what these sizes cannot show
 *   races_proof.c    proofs that two executions touch no element in common, of formulas that races_ways.c makes
 *   races_value.c    does a value depend on an axis of the grid? */
#ifndef PIPEC_RACES_H
#define PIPEC_RACES_H

#include "algebra/algebra.h"
#include "check/trace.h"

#define RACE_LOOPS 8 /* around a statement, that are looked at */

typedef enum Manner {
    MANNER_PLAIN,  /* by the threads of the instance */
    MANNER_LANES,  /* read by cp.async: done when the stage is full */
    MANNER_LOADED, /* read by the copy engine: the same, and what threads have written is not seen without a fence */
    MANNER_STORED  /* written by the copy engine: nothing waits for it but the end of the kernel */
} Manner;

/* An access to a tensor that the kernel writes */
typedef struct Place {
    const Role *role;
    int row;          /* of the role's Code: a TILE */
    Tile *tile;       /* its statement */
    const Access *access;
    bool write;
    Manner manner;
    bool conditional; /* stands in an `if`, or in a loop with `where` */
    bool data;        /* contents of memory decide where or whether it is executed */
    bool unseen;      /* sizes do not show it: for that, or as its subscripts are no sums of a base and of indexes */
    int loop_count;
    const Region *loops[RACE_LOOPS]; /* around it, outermost first */
    bool said;
    struct RaceWays *formulas; /* races_proof.h; NULL: not asked yet */
} Place;

typedef VEC(Place) Places;

typedef struct Side { /* the places lo, lo + step, .. of one axis */
    int64_t lo, step, count;
} Side;

typedef struct Touch { /* a place, executed once */
    Place *place;
    int process, instance;
    int time;         /* steps of the process before it */
    int pipe, number; /* LANES, LOADED: the stage that it fills */
    const int *clock; /* of its process then */
    Side sides[PROG_MAX_RANK];
} Touch;

typedef struct Block { /* one that runs one tile of the grid */
    int64_t axes[PROG_MAX_RANK];
    VEC(Touch) touches; /* in each process in its order */
    int processes;
    bool cut;           /* some process could not be followed to its end: contents of memory decide, or it is too long */
} Block;

Traced *race_traced(Arena *arena, const Prog *prog, const Places *places); /* places are sorted by statement */
/* Follows all roles. Touches that depend on data, or that are never reached, are left out. */
Block *race_block(Arena *arena, Traced *traced, Places *places, const Sizes *sizes, const int64_t *extents, int64_t tile);
/* Does more than the iterations that are followed decide about operations or places? */
bool race_is_far(Arena *arena, const Traced *traced, const Places *places);
bool race_before(const Block *block, const Touch *a, const Touch *b); /* is the one done, and seen, when the other begins? */
bool race_meet(const Touch *a, const Touch *b, int64_t *at);          /* do they touch the same element, and which? */

/* Does what the place writes differ along the axis other than by where it is written? 1, 0, or -1: not known */
int race_value_differs(Arena *arena, const Prog *prog, Algebra *algebra, const Place *place, int axis);

/* ---- races_proof.c */

typedef struct RaceProof { /* certainly, for all sizes, contents and paths: executions of the two places that touch one element .. */
    uint32_t axes;         /* .. have the same coordinate along these axes of the grid */
    bool instances;        /* .. and in one tile of one instance, where both are of one role */
    bool threads;          /* .. and of one element of the statement, where both are one unseen place */
    bool within;           /* .. are in different tiles */
    bool never;            /* there are none */
} RaceProof;

RaceProof race_proof(Arena *arena, const Prog *prog, Place *one, Place *two);

/* ---- races_apart.c */

/* Is each subscript a base plus multiples of indexes of its own? */
bool race_walks(const Place *place);
/* Do different executions touch different elements, or the same threads the same ones one after another? `alone`: those of one block */
bool race_apart(const Prog *prog, Algebra *algebra, const Place *place, bool alone);
bool race_mentions(Algebra *algebra, const Place *place, int atom); /* in a subscript, or it is not known */
void race_order(const Prog *prog, Algebra *algebra, Places *places); /* fills Tile.order of what one instance does to a tensor more than once */

#endif
