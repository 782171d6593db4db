/* emulator, private: rows of products of mma.sync, between mma.c and mma_sum.c. */
#ifndef PIPEC_EMULATOR_MMA_H
#define PIPEC_EMULATOR_MMA_H

#include <stdbool.h>
#include <stdint.h>

enum { MMA_COLUMNS = 8, MMA_MOST_ROWS = 16, MMA_MOST_DEPTH = 64 };

/* A row of A, all columns of B: [k * MMA_COLUMNS + column], and the exponents of their elements */
typedef struct MmaRow {
    const float *a, *b;
    const int32_t *a_exponent, *b_exponent;
    uint32_t depth;
    bool to_half;     /* the sums are f16, otherwise f32 */
    bool has_special; /* an element of the tile is not finite */
} MmaRow;

/* Exponent of the first bit of a significand, which is `least` for subnormal numbers */
int32_t mma_exponent(double value, int32_t least);

/* Add the products of a row to the sums of its columns, as an H200 does: of f16, bf16, tf32; of
 * fp8; of m8n8k4. */
void mma_add_fused(const MmaRow *row, double *sums);
void mma_add_pairs(const MmaRow *row, double *sums);
void mma_add_chain(const MmaRow *row, double *sums);

#endif
