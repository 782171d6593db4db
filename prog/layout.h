/* layout: where the elements of tiles are, in registers and in shared memory. */
#ifndef PIPEC_LAYOUT_H
#define PIPEC_LAYOUT_H

#include "prog/expr.h"

/* ---- register tiles -------------------------------------------------------------------------- */

/* The elements of a register tile: a map from (thread of the instance, register) to coordinates.
 * A coordinate is a sum of digits times strides, digits of the thread number and of the register
 * number. A thread digit that no axis uses makes replicas: threads that differ only in it hold
 * the same elements. Statements over register tiles traverse their indexes in the same way
 * (Tile.spread). */
typedef struct Digit {
    /* the digit is thread / place % extent; otherwise of the register number: digits of lower
     * `place` vary faster, at the same place the later axis's */
    bool in_thread;
    int place;
    int64_t extent, stride;
} Digit;

typedef enum SpreadKind {
    /* the rows of wgmma's accumulator, 64 per slab: PTX ISA 9.7.15.5.1.1.3, figure "WGMMA
     * .m64nNk16 D fragment" */
    SPREAD_ROWS,
    SPREAD_COLUMNS, /* its columns, in groups of 8 */
    /* every thread holds all elements: needed for constant subscripts */
    SPREAD_EVERY,
    SPREAD_BLOCKED /* vectors of adjacent elements, distributed thread by thread */
} SpreadKind;

/* of one axis, or of several flattened ones, the last one innermost */
typedef struct Spread {
    SpreadKind kind;
    int members, axes[PROG_MAX_RANK]; /* axes of the tile, or indexes of the statement */
    /* product of the extents; digits beyond it hold no element */
    int64_t extent;
    /* parts begin and end at multiples of it: the stride of the last digit */
    int64_t granule;
    int count;
    /* ascending strides; the last one, of the register, counts granules */
    Digit digits[4];
} Spread;

typedef struct RegisterLayout {
    int count;
    Spread *spreads;
} RegisterLayout;

/* registers.c */
int64_t layout_registers(const RegisterLayout *layout); /* elements per thread */
/* Contribution of a register number to each spread's coordinate, and the inverse */
void layout_coordinates(const RegisterLayout *layout, int64_t number, int64_t *coordinates);
int64_t layout_number(const RegisterLayout *layout, const int64_t *coordinates);
/* number of registers that hold adjacent elements, and their axis; 1 and -1 */
int layout_vector(const RegisterLayout *layout, int *axis);
/* thread digits that no axis uses; at most 2 per spread, plus 1 */
int layout_replicas(const RegisterLayout *layout, int threads, Digit *digits);
/* the spread that contains the axis; NULL: none */
const Spread *layout_spread(const RegisterLayout *layout, int axis, int *number);
bool layout_same(const RegisterLayout *a, const RegisterLayout *b); /* NULL equals only NULL */
bool layout_is_blocked(const RegisterLayout *layout);               /* no axis of an accumulator */
bool layout_accumulates(const RegisterLayout *layout); /* has rows and columns of accumulators */
void layout_print(const RegisterLayout *layout, int threads, Str *out); /* as text */

/* ---- tiles in shared memory ------------------------------------------------------------------ */

/* Layout of the elements of a tile: row-major over panels. The last dimension is divided into
 * panels of `panel` elements; a panel holds all rows, so element (r.., c) is at c / panel *
 * layout_apart + r * panel + c % panel elements; then the swizzle XORs its 16-byte chunk. panel ==
 * last extent and SWIZZLE none: plain row-major. Only codegen/layout.c converts it to addresses. */
typedef struct Layout {
    int64_t panel; /* elements */
    /* unused elements after each panel, so that the next one is aligned as boxes are */
    int64_t gap;
    int swizzle; /* Swizzle of launch/manifest.h: 0 none */
    /* required alignment of the tile in bytes: 16, 128 for tensor copies, 1024 for a 128-byte
     * swizzle */
    uint32_t alignment;
    /* unused elements after each row, against bank conflicts; dropped if memory does not suffice */
    int64_t padding;
    int64_t rounds; /* rounds of a warp's worst access without padding */
    /* `unsafe` takes its address: row-major, unless matrix instructions read it */
    bool addressed;
} Layout;

/* Elements from one panel to the next, of a tile with so many rows */
static inline int64_t layout_apart(const Layout *layout, int64_t rows) {
    return rows * layout->panel + layout->gap;
}

#endif
