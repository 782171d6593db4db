/* linear: coordinates and offsets in tiles as codegen forms them, a constant plus a register: what
 * is known of the register, and which instructions that allows. The plan has no row for each of
 * them, because constants differ between copies of an unrolled loop and between elements of a
 * thread; codegen asks these rules instead, and emits what they answer. */
#ifndef PIPEC_LINEAR_H
#define PIPEC_LINEAR_H

#include "prog/prog.h"

/* register + add; a constant has no register */
typedef struct Linear {
    bool constant;
    int64_t add;
    int64_t multiple; /* divides the register; 1 if unknown */
    int64_t max;      /* 0 <= register <= max; -1: unknown */
} Linear;

Linear linear_constant(int64_t value);
Linear linear_register(int64_t multiple, int64_t max);
/* The base of a subscript of a tile in shared memory, in a register: it is inside the tile, as the
 * subscript is if all indexes are 0. */
Linear linear_base(const Affine *affine, int64_t extent);
Linear linear_sum(Linear a, Linear b);
Linear linear_scaled(Linear a, int64_t by);

/* Quotient and remainder of a coordinate that is not negative, by a positive constant. A part that
 * is not constant is the quotient or the remainder of one register, plus a constant. */
typedef struct Split {
    Linear quotient, rest;
    bool joined; /* that register is register + add, otherwise the register alone */
    bool within; /* the register is its own remainder */
} Split;

Split linear_split(Linear a, int64_t by);

/* A swizzle permutes the 16-byte chunks of a row: chunk number XOR bits of the row number (CUDA
 * driver API, CUtensorMapSwizzle; a panel is one span wide, and its rows are one span apart). */
typedef enum SwizzleForm {
    SWIZZLED_CONSTANT, /* only the column's constant changes: `column` */
    SWIZZLED_WHOLE,    /* the column, in a register, XOR the bits of the row */
    /* The column's register XOR the bits of the row, then XOR its constant `chunk`; plus `within`
     */
    SWIZZLED_APART,
    /* The bits of the row XOR the constant `chunk`; plus the column without it: `column` */
    SWIZZLED_CHUNK
} SwizzleForm;

typedef struct Swizzled {
    SwizzleForm form;
    Linear row; /* its bits from `shift` under `mask`, times 16 */
    int shift, mask;
    int64_t bits; /* these, of a constant row */
    int64_t chunk, within;
    Linear column;
} Swizzled;

/* The element in `row` and at byte `column`, below the span, of a panel. One XOR should serve as
 * many elements of a thread as possible. */
Swizzled linear_swizzle(int swizzle, Linear row, Linear column);

#endif
