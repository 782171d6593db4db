/* Random matrix kernels: draws a shape from a seed; prints a program whose `ensures` is the
 * drawn product, and sizes to launch it with. */
#ifndef TESTS_MATRIX_H
#define TESTS_MATRIX_H

#include "prog/prog.h"
#include "tests/generate/generate.h"

/* Contents of the tensors, which decide the claim about the result */
typedef enum Filling {
    /* integers that encode their coordinates; sums are exact, and compared exactly */
    FILL_WITH_CODE,
    /* one operand selects single elements of the other, which encode theirs; also exact */
    FILL_WITH_CHOICE,
    FILL_AT_RANDOM, /* normal; compared within the bound of the types */
    FILLING_COUNT
} Filling;

/* origin of an epilogue's operand */
typedef enum Addend { FROM_NOWHERE, FROM_TENSOR, FROM_PIPE } Addend;
/* division of the tile among warpgroups */
typedef enum Sharing { BY_ROWS, BY_COLUMNS, BY_TILES } Sharing;
/* a second product added to the same sums */
typedef enum Second { NO_SECOND, IN_THE_STAGE, IN_A_LOOP } Second;

/* Clusters of a grid; the text is the program's. */
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
    int stages, out_stages;   /* out_stages 0: the threads write the sums to the tensor */
    int lag;                  /* -1: not written */
    Second second;
    bool a_by_columns, b_by_columns; /* contiguous along m, along n */
    /* flat: stages in variables; in_turn: cooperating groups issue contractions in turn */
    bool flat, in_turn;
    bool batch, persistent, n_first, separate, two_loads, peeled, swapped, scaled, scaled_before,
        relu;
    int grouped;
    Addend bias, residual;
    Element bias_type;
    const ClusterRow *cluster;
    int m, n, k, l, g; /* the sizes of the launch */
    /* the extent whose pitch violates a precondition, or NULL */
    const char *broken;
    int order[4]; /* order of the roles */
} Matrix;

Matrix matrix_draw(Arena *arena, uint64_t seed);
const char *matrix_text(const Matrix *matrix, Filling filling);
const char *matrix_sizes(const Matrix *matrix); /* "M=100 N=64 K=16": arguments of a launch */
/* tolerance of the claim for a normal filling; 0: exact */
double matrix_within(const Matrix *matrix);

#endif
