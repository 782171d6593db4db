/* The vectors of elements that a thread moves and computes at once, for statements of threads:
 * chunks.c evaluates and stores them, maps.c traverses them. */
#ifndef PIPEC_CHUNKS_H
#define PIPEC_CHUNKS_H

#include "codegen/gen.h"

typedef struct Walk {
    Gen *gen;
    const Tile *tile;
    const Moves *moves; /* planned */
    const Expr *value;  /* of an element: that of the plan, or without a factor */
    int vector, inner;  /* of the plan */
    int threads;
    const RegisterLayout *layout; /* of the statement, if it has register tiles; otherwise NULL */
    Lin parts[PROG_MAX_INDEXES];  /* the thread's part of each of its spreads */
    Point statement;              /* values that depend on no index */
    const Early *early;           /* of a statement that had to wait; otherwise NULL */
    bool wide;                    /* this copy of the statement accesses tensors by vectors */
} Walk;

/* A vector of elements: the point of the vector, and one for each of its elements. */
typedef struct Chunk {
    Point vector;
    Point *elements;
    /* with a layout: the registers' part of each spread's coordinate */
    int64_t at[PROG_MAX_INDEXES];
    int64_t number;            /* of the vector among those of its thread */
    Reg (*words)[VECTOR_MOST]; /* raw copies: the loaded words */
    Value *values;
    Value *factors; /* of a sum of products: its terms are values * factors; otherwise NULL */
    Reg *stored;    /* predicates: elements that are stored; NULL: all */
} Chunk;

/* packed.c: the predicate that a copy which the plan allows can move rows of any length by vectors,
 * and the copy */
Reg packed_holds(Walk *walk);
void packed_copy(Walk *walk);

/* Opens the vector at a position, or with a layout vector `number` of the thread */
void chunk_open(Walk *walk, Chunk *chunk, Lin flat, int64_t number);
/* Computes the values of a vector, and which of them are stored. */
void chunk_evaluate(Walk *walk, Chunk *chunk);
void chunk_store(Walk *walk, Chunk *chunk);
/* Evaluates `chunks` vectors from number `first` on, then stores them, so that loads overlap;
 * `flat`: the position of vector 0 */
void chunk_batch(Walk *walk, Lin flat, int64_t first, int chunks);

#endif
