/* coverage: private to check/coverage*.c: what has been written into the stages that a role produces.
 *   coverage.c          every path of every instance
 *   coverage_verdict.c  what each release hands over */
#ifndef PIPEC_COVERAGE_H
#define PIPEC_COVERAGE_H

#include "check/passes.h"
#include "derive/tiles.h"
#include "prog/walk.h"

#define MAX_WRITES 2048 /* of a role; loops are followed no further beyond */

/* What one statement wrote into a stage that is held */
typedef struct Mark {
    Site *site;
    Bits bits;
    bool vague; /* where is not known: `bits` is all it could be */
} Mark;

typedef struct Hold {
    int pipe;
    Stmt *acquire; /* S_ACQUIRE or S_STAGE */
    bool poisoned;
    size_t words;
    Bits must, own, may, flying;
    Bits fresh, seen; /* written, and read, by threads that have not waited for one another since */
    int64_t bytes; /* that copies bring */
    bool differs;  /* `bytes` is not the same on the paths that met */
    Span differs_at;
    bool open; /* not followed to the end */
    Span open_at;
    VEC(Mark) marks;
} Hold;

/* What one role writes to global memory (instances.c) */
typedef struct GlobalWrite {
    Site *site;
    int rank;
} GlobalWrite;
typedef VEC(GlobalWrite) GlobalWrites;
void tiles_disjoint(Tiles *tiles, const Role *role, const GlobalWrites *writes);

typedef struct State {
    bool live;
    Hold **holds; /* one a handle; NULL: not held, or consumed */
} State;

typedef struct Frame Frame;
struct Frame {
    Frame *outer;
    Stmt *stmt; /* what can be left: S_BLOCK, S_FOR, S_GRID, S_STAGE */
    State breaks, continues;
};

/* What every instance had written at one place of release */
typedef struct Release {
    Stmt *stmt;
    int handle;
    Span span;
    Hold **holds; /* one an instance, NULL: never came here */
} Release;

typedef struct Said {
    Stmt *acquired;
    int field;
} Said;

typedef struct Coverage {
    Tiles *tiles;
    Role *role;
    Algebra *algebra;
    int rank;
    Frame *frame;
    VEC(Release) releases;
    VEC(Said) said; /* of missing fields */
    GlobalWrites writes;
    int written;      /* statements followed so far */
    int apart;        /* conditions around that differ between instances: what is acquired there is refused for that */
    bool again;       /* a later iteration, followed for the order of what threads do alone */
    Here here;        /* loops followed turn by turn, and the rank */
} Coverage;

int64_t coverage_first_common(Bits a, Bits b, size_t words); /* -1: none */
int64_t coverage_field_bits(const Field *field);
int64_t coverage_field_start(const Pipe *pipe, int field); /* its first bit */
Span coverage_place_of(const Stmt *acquire);

/* `before`: errors that were there when it began */
void coverage_judge(Coverage *c, size_t before);

#endif
