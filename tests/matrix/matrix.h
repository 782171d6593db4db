/* Random matrix kernels: a seed goes in, a shape comes out, and of it the text of a program whose `ensures` is the product that was
 * drawn, with sizes to launch it with. */
#ifndef TESTS_MATRIX_H
#define TESTS_MATRIX_H

#include "prog/prog.h"
#include "tests/generate/generate.h"

/* What goes into the tensors, and with it what is claimed of the result */
typedef enum Filling {
    FILL_WITH_CODE,   /* whole numbers that tell their coordinates; sums are exact, and compared as such */
    FILL_WITH_CHOICE, /* one operand picks single elements of the other, which tell theirs; exact too */
    FILL_AT_RANDOM,   /* normal; compared within the bound of the types */
    FILLING_COUNT
} Filling;

typedef enum Addend { FROM_NOWHERE, FROM_TENSOR, FROM_PIPE } Addend; /* how an epilogue's operand comes */
typedef enum Sharing { BY_ROWS, BY_COLUMNS, BY_TILES } Sharing;      /* what tells the warpgroups apart */
typedef enum Second { NO_SECOND, IN_THE_STAGE, IN_A_LOOP } Second;   /* a second product into the same sums */

/* Clusters of a grid; the words are the program's. */
typedef struct ClusterRow {
    const char *words;
    int m, n;
    int weight;
} ClusterRow;

typedef struct Matrix {
    Arena *arena;
    Random random;
    uint64_t seed;
    MmaKind kind;
    Element out;
    int groups;
    Sharing sharing;
    int rows, columns, inner; /* of the tile of a block; of a stage's k tile */
    int copies;               /* k tiles of a stage, as an array; 0: one, plain */
    int stages, out_stages;   /* out_stages 0: the sums are written to the tensor by the threads */
    int lag;                  /* -1: not written */
    Second second;
    bool a_by_columns, b_by_columns; /* contiguous along m, along n */
    bool flat, in_turn;              /* stages held by variables; contractions of cooperating groups issued in turn */
    bool batch, persistent, n_first, apart, two_loads, peeled, swapped, scaled, scaled_before, relu;
    int grouped;
    Addend bias, residual;
    Element bias_type;
    const ClusterRow *cluster;
    int m, n, k, l, g;  /* the sizes of the launch */
    const char *broken; /* the extent whose pitch breaks a precondition, or NULL */
    int order[4];       /* in which the roles stand */
} Matrix;

Matrix matrix_draw(Arena *arena, uint64_t seed);
const char *matrix_text(const Matrix *matrix, Filling filling);
const char *matrix_sizes(const Matrix *matrix); /* "M=100 N=64 K=16": arguments of a launch */
double matrix_within(const Matrix *matrix);     /* what a normal filling is claimed within; 0: exact */

#endif
