/* tile: tile statements: their classes, and what is derived for each class. "Filled by" names the
 * pass of check/passes.def that sets a field. */
#ifndef PIPEC_TILE_H
#define PIPEC_TILE_H

#include "prog/agents.h"
#include "prog/expr.h"
#include "prog/layout.h"

/* filled by tiles */
typedef enum ONE_BYTE TileClass {
#define CLASS(name, ...) TILE_##name,
#include "prog/classes.def"
#undef CLASS
} TileClass;

enum {
#define CLASS(...) +1
    TILE_CLASSES = 0
#include "prog/classes.def"
#undef CLASS
};

typedef enum ONE_BYTE MovedBy {
    MOVER_NOBODY,
    MOVER_ENGINE, /* the copy engine; one lane issues */
    MOVER_LANES,
    MOVER_THREADS, /* of the instance */
    MOVER_MATRIX   /* the matrix unit */
} MovedBy;

typedef enum ONE_BYTE MovedWay { WAY_NOWHERE, WAY_IN, WAY_OUT } MovedWay;

typedef enum ONE_BYTE MovedWords {
    WORDS_NOTHING,
    WORDS_BOXES, /* of a tensor map */
    WORDS_BYTES,
    WORDS_PIECES,
    WORDS_ELEMENTS,
    WORDS_SLABS
} MovedWords;

typedef struct ClassRow {
    const char *text;
    MovedBy mover;
    MovedWay way;
    MovedWords words;
    Agent fills, reads; /* AGENT_NONE: none */
} ClassRow;

extern const ClassRow class_rows[TILE_CLASSES];

typedef struct BoxCopy {
    int map;                    /* plan->maps; its box has the size of one copy */
    int rank;                   /* of the map; dimensions innermost first, as in the map */
    Expr *start[PROG_MAX_RANK]; /* first coordinate, I32, in elements */
    /* elements of the whole copy; multiples of the box */
    int64_t tile[PROG_MAX_RANK];
    /* bytes in shared memory from one box to the next along the dimension */
    int64_t step[PROG_MAX_RANK];
    /* 0, or the elements in 16 bytes: a store to a tensor of one axis that may end within them.
     * TMA clips stores to whole 16 bytes (seen on an H200), so the map ends at a multiple and
     * the lane stores the remaining elements */
    int64_t granule;
} BoxCopy;

/* A load into a stage that one block of a cluster issues for several: multicast */
typedef struct Multicast {
    /* grid axes along which blocks share it; 0: each block loads for itself */
    uint32_t axes;
    /* 0, or the number of blocks that each load a part for all; 1: the first block loads
     * everything */
    int parts;
    /* axis of the map (innermost first) along which the tile is divided */
    int axis;
    /* distance from one part to the next: along that axis (bulk: in the piece), and in shared
     * memory */
    int64_t elements, bytes;
} Multicast;

typedef struct BulkCopy {
    uint32_t bytes; /* multiple of 16; so are both addresses */
    /* the global piece starts at the access's subscripts with all indexes 0 */
} BulkCopy;

/* Matrix instructions: mma.def, one row per pair of operand types */
typedef enum MmaKind {
#define MMA(name, ...) MMA_##name,
#include "prog/mma.def"
#undef MMA
    MMA_COUNT
} MmaKind;

typedef struct MmaRow {
    const char *name;         /* D, A, B in the PTX opcode: "f32.bf16.bf16" */
    Element operands, sum;    /* of A and B; of the register tile */
    int k;                    /* contraction extent of one instruction */
    int n_step, n_step_large; /* columns: multiples of n_step up to 32, of n_step_large beyond */
    bool either_major;        /* operands may be MN-major: 16-bit types */
    /* relative error of a sum of products, for the documentation */
    double bound;
} MmaRow;

/* An operand in shared memory, or the first one in registers (then [row, summed index]): a
 * matrix of (m or n) x contraction, in any order of its axes */
typedef struct MmaOperand {
    const Access *tile; /* rank 2 or more; all axes except two have no index */
    /* axes subscripted by the free index (i or j) and by the summed index */
    int free, inner;
    bool mn_major; /* the free axis is the last one: contiguous along m or n */
} MmaOperand;

/* acc[i, j] (=, +=) sum[x] a[.. i .., .. x ..] * b[.. j .., .. x ..] */
typedef struct Mma {
    MmaKind kind;
    int slabs; /* of 64 rows */
    /* columns of the register tile, and of one instruction */
    int n;
    int steps; /* instructions along the contraction: extent / row.k */
    MmaOperand a, b;
} Mma;

typedef enum ONE_BYTE AssignOp {
    ASSIGN_SET,
    ASSIGN_ADD,
    ASSIGN_SUB,
    ASSIGN_MUL,
    ASSIGN_DIV
} AssignOp;

/* How the threads of an instance combine their parts of a reduction: first the lanes of a warp,
 * in pairs at each distance, from the nearest; then warps, through shared memory, in ascending
 * order. Then all threads that need the result have it. For a scan the parts are the totals of
 * groups of adjacent elements (codegen/scans.c), and an exchange is never shared. */
typedef struct Exchange {
    uint32_t lanes; /* bit b: lanes that differ in bit b hold parts */
    /* digits of the warp's number in which warps with parts differ: number / place % extent */
    int digits;
    struct {
        int place, extent;
    } warps[PROG_MAX_INDEXES];
    int lane_count, warp_count; /* lanes of a warp, and warps, that combine their parts */
    int64_t parts;              /* of a thread, that warps pass on */
    /* Between warps: reductions that do not need each other's results share one exchange, which
     * takes place after the last of them. */
    struct Tile *before; /* the one before it in its exchange, or NULL */
    bool later;          /* the exchange takes place after another one */
    int64_t at;          /* its first 32-bit word in the memory of the exchange */
    /* 0, or a loop (region) in which each thread adds its part of the reduction to its own part of
     * a variable of the role, a scalar (`local`) or a register tile: the parts of the variable are
     * combined once, after the loop, instead of those of the reduction in each iteration */
    int loop, variable;
    bool local;
} Exchange;

typedef struct Tile {
    TileClass class;
    /* for a target of 8 or 16 bits the sum is computed in the widened type */
    AssignOp op;
    bool by_lanes;           /* as written */
    bool prefetch;           /* only loads the source of the copy into L2 */
    bool multicast_required; /* as written */
    bool rewritten;          /* tiles of the grid may write one element, with one value; by races */
    /* cluster axes along which it varies whether, or how often, the statement is executed;
     * filled by uniform */
    uint32_t along;
    /* of the target's type, or of its widened type if an explicit cast narrows it */
    Expr *value;
    /* BOOL: elements for which it is false are not stored; NULL: all are. Only of a target in a
     * tensor: elements of tiles that are not stored keep their value, which is a select in
     * `value` */
    Expr *where;
    IndexSpace space;
    Access target;
    /* layout of the bound indexes, if an elementwise statement has register tiles; otherwise
     * NULL; filled by tiles */
    const RegisterLayout *spread;
    Span lanes_span;
    /* of TENSOR_LOAD and BULK_LOAD; `box` and `bulk` then describe one part */
    Multicast multicast;
    union {
        BoxCopy box;
        BulkCopy bulk;
        Mma mma;
        /* TILE_LANES: elements that a lane copies at once; by cp.async, otherwise by ld and st */
        struct {
            int elements;
            bool asynchronous;
        } piece;
        Exchange exchange; /* TILE_REDUCTION, TILE_SCAN */
    };
} Tile;

/* Loaded or stored by the copy engine */
static inline bool tile_is_load(const Tile *tile) {
    const ClassRow *row = &class_rows[tile->class];
    return row->mover == MOVER_ENGINE && row->way == WAY_IN;
}
static inline bool tile_is_store(const Tile *tile) {
    return class_rows[tile->class].way == WAY_OUT;
}
static inline bool tile_has_boxes(const Tile *tile) {
    return class_rows[tile->class].words == WORDS_BOXES;
}
/* By lanes, which do not wait for the data */
static inline bool tile_is_lanes(const Tile *tile) {
    return tile->class == TILE_LANES && tile->piece.asynchronous;
}
/* A copy into a stage that is complete later than the statement */
static inline bool tile_is_unawaited(const Tile *tile) {
    return tile_is_load(tile) || tile_is_lanes(tile);
}
/* Elements are evaluated by the instance's threads */
static inline bool tile_by_threads(const Tile *tile) {
    return class_rows[tile->class].mover == MOVER_THREADS;
}
/* A copy from one tensor: the read is not part of an expression */
static inline bool tile_is_copy(const Tile *tile) {
    return class_rows[tile->class].way != WAY_NOWHERE;
}
/* A reduction or a scan: combines elements along some index */
static inline bool tile_reduces(const Tile *tile) {
    bool scans = tile->value != NULL && tile->value->kind == X_SCAN;
    return scans || tile->space.count > tile->space.bound;
}
/* One that the threads of the instance compute, which exchange values */
static inline bool tile_combines(const Tile *tile) {
    return tile->class == TILE_REDUCTION || tile->class == TILE_SCAN;
}

extern const MmaRow mma_rows[MMA_COUNT];
/* "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16" */
const char *mma_instruction(Arena *arena, const Mma *mma);
/* of a load by the copy engine (one part of it); 0: not such a load */
int64_t copy_bytes(const Tile *tile);
/* bytes that arrive in the stage, including parts of other blocks */
int64_t copy_arrives(const Tile *tile);

#endif
