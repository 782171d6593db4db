/* The checked program. One Prog is one kernel: statics are bound, functions inlined, names
 * resolved to indexes, every expression typed, every tile statement classified. What is derived
 * from it for a GPU (warps, registers, shared memory, waits) is its plan: derive/plan.h.
 *
 * The passes of check/passes.def fill it; "filled by" names the pass that sets a field:
 *   elaborate (names, types, inlining)     uniform (threads over which values vary)
 *   turns (instances in turn)              tiles (index ranges, classes, boxes, padding)
 *   stages (linear rule)                   counts (of acquires)
 *   resources (how ends of pipes arrive)
 * A field that elaboration sets is also written in prog/key.c or prog/key_prog.c. */
#ifndef PIPEC_PROG_H
#define PIPEC_PROG_H

#include "util/util.h"

#define PROG_MAX_RANK    5
#define PROG_MAX_INDEXES 10

typedef struct Expr Expr;
typedef struct Stmt Stmt; /* prog/stmt.h */

/* ---- expressions ----------------------------------------------------------------------------- */

/* How a value varies over the threads of a role: the same in all, the same within an instance,
 * or free. In a role in turn UNIFORM_ROLE means: the same for every instance that could run an
 * iteration of the grid. Variation over the blocks of a cluster is in `along`. */
typedef enum Uniformity { UNIFORM_ROLE, UNIFORM_INSTANCE, UNIFORM_LANE } Uniformity;

typedef enum ExprKind {
    X_POISON, /* an error was reported; later checks ignore it */
    X_CONST,
    X_SYMBOL, /* prog->symbols[index]: an extent or an integer scalar parameter, known at launch */
    X_PARAM,  /* prog->params[index]: a floating point scalar parameter */
    /* grid axis `index`; only in range, grid and precondition formulas (in a role the loop binds
     * a local) */
    X_AXIS,
    X_LOCAL, /* role->locals[index] */
    X_RANK,  /* rank of the instance in its role */
    X_INDEX, /* space.items[index] of the statement or claim */
    X_READ,  /* an element of a tensor or tile */
    X_UNARY,
    X_BINARY,
    X_SELECT,
    X_CAST,  /* to `type` */
    X_CALL,  /* an intrinsic */
    X_REDUCE /* over space.items[first .. first + count) */
} ExprKind;

typedef enum UnaryOp { OP_NEG, OP_NOT } UnaryOp;

typedef enum BinaryOp {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_AND,
    OP_OR
} BinaryOp;

typedef enum ReduceOp { REDUCE_SUM, REDUCE_MAX, REDUCE_MIN } ReduceOp;

/* Intrinsics: intrinsics.def, one row each */
typedef enum Intrinsic {
#define INTRINSIC(name, ...) IN_##name,
#include "prog/intrinsics.def"
#undef INTRINSIC
    IN_COUNT
} Intrinsic;

/* ACCURACY_EXACT: inside `exact(...)` */
typedef enum Accuracy { ACCURACY_FAST, ACCURACY_EXACT } Accuracy;

/* subscript = base + sum over indexes of coef[i] * index i; `base` contains no index (it is at
 * least a constant 0). is == false: not of this form (a gather, a product of indexes); then only
 * the subscript's Expr is valid. */
typedef struct Affine {
    bool is;
    Expr *base;
    int64_t coef[PROG_MAX_INDEXES];
    int64_t multiple; /* divides base; 0: base is 0 */
} Affine;

typedef enum Space {
    SPACE_GLOBAL,   /* object: prog->params */
    SPACE_STAGE,    /* object: role->handles; field: of its pipe */
    SPACE_SHARED,   /* object: role->tiles, in shared memory of the instance */
    SPACE_REGISTER, /* object: role->tiles, in registers of the instance */
    SPACE_LET       /* object: prog->lets, in `ensures` */
} Space;

typedef struct Access {
    Space space;
    int object, field;
    Expr *element; /* tile of an array field; NULL: the field is one tile */
    bool old;      /* `old Y[i]`, in `ensures` */
    Element type;  /* type in memory */
    /* of the object, and the length of the three arrays; a copy of an Access shares them */
    int rank;
    Expr **subs;
    Affine *affine; /* filled by tiles */
    /* the subscript is proved to be within the extent (tiles: always); filled by tiles */
    bool *inside;
    Span span;
} Access;

struct Expr {
    ExprKind kind;
    /* of the value: F32, I32, U32, I64, U64, BOOL after widening; X_READ: also widened (an
     * implied cast) */
    Element type;
    /* over the threads that evaluate it; of variables: filled by uniform */
    Uniformity uniformity;
    /* bit a: may differ between blocks of a cluster along grid axis a (only bits of cluster_axes
     * are used) */
    uint32_t along;
    uint32_t indexes; /* bit i: depends on space.items[i] */
    Span span;
    union {
        /* integer types and BOOL: integer; F32: number */
        struct {
            int64_t integer;
            double number;
        } constant;
        int index; /* SYMBOL, PARAM, AXIS, LOCAL, INDEX */
        Access *read;
        struct {
            UnaryOp op;
            Expr *operand;
        } unary;
        /* operands of one type */
        struct {
            BinaryOp op;
            Expr *left, *right;
            Accuracy accuracy;
        } binary;
        struct {
            Expr *condition, *then, *otherwise;
        } select;
        Expr *cast;
        struct {
            Intrinsic which;
            Expr *args[3];
            int count;
            Accuracy accuracy;
        } call;
        struct {
            ReduceOp op;
            int first, count;
            Expr *body;
        } reduce;
    };
};
/* Subexpressions may be shared (a parameter of an inlined `fn`, a `let`): the tree is a DAG; a
 * traversal must remember visited nodes if it could visit a shared node often. */

/* ---- index spaces ---------------------------------------------------------------------------- */

typedef struct Index {
    const char *name;
    Span span;      /* first use */
    int64_t extent; /* constant, or -1: see `dynamic` */
    /* extent of a global tensor, known at launch (`ensures`, and statements without a tile) */
    Expr *dynamic;
} Index;

/* indexes of the destination first, in its order; then those of reductions; filled by elaborate,
 * extents by tiles */
typedef struct IndexSpace {
    int count;
    /* number of indexes of the destination (the others belong to reductions) */
    int bound;
    Index items[PROG_MAX_INDEXES];
    bool overflows; /* there are more than the table holds; reported */
} IndexSpace;

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
bool layout_accumulates(const RegisterLayout *layout); /* has rows and columns of accumulators */
void layout_print(const RegisterLayout *layout, int threads, Str *out); /* as text */

/* ---- tile statements ------------------------------------------------------------------------- */

typedef enum TileClass { /* filled by tiles */
                         TILE_UNCLASSIFIED,
                         TILE_TENSOR_LOAD, /* cp.async.bulk.tensor, global to stage: `box` */
                         /* cp.async.bulk, global to stage, one contiguous piece proved to be
                            inside: `bulk` */
                         TILE_BULK_LOAD,
                         /* `by lanes`, global to stage: `piece` elements per lane at once */
                         TILE_LANES,
                         /* cp.async.bulk.tensor, stage or shared to global: `box` */
                         TILE_TENSOR_STORE,
                         TILE_BULK_STORE, /* cp.async.bulk, stage or shared to global: `bulk` */
                         TILE_MAP, /* evaluated by the instance's threads, element by element */
                         /* a contraction by the warpgroup's matrix unit, into a register tile:
                            `mma` */
                         TILE_MMA,
                         /* contains sum[x], max[x] or min[x]; checked, but build refuses it */
                         TILE_REDUCTION
} TileClass;

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

typedef enum AssignOp { ASSIGN_SET, ASSIGN_ADD, ASSIGN_SUB, ASSIGN_MUL, ASSIGN_DIV } AssignOp;

/* What a statement waits for before it accesses elements that its instance has accessed before */
enum {
    ORDER_THREADS = 1, /* the other threads of the instance */
    ORDER_STORES = 2,  /* its copies out of stages have completed */
    ORDER_FENCE = 4    /* a proxy fence: writes of threads become visible to the copy engine */
};

typedef struct Tile {
    TileClass class;
    IndexSpace space;
    Access target;
    /* for a target of 8 or 16 bits the sum is computed in the widened type */
    AssignOp op;
    /* of the target's type, or of its widened type if an explicit cast narrows it */
    Expr *value;
    /* layout of the bound indexes, if an elementwise statement has register tiles; otherwise
     * NULL; filled by tiles */
    const RegisterLayout *spread;
    int order;               /* ORDER_* flags; filled by tiles (stages) and races (tensors) */
    bool by_lanes;           /* as written */
    bool prefetch;           /* only loads the source of the copy into L2 */
    bool multicast_required; /* as written */
    Span lanes_span;
    /* cluster axes along which it varies whether, or how often, the statement is executed;
     * filled by uniform */
    uint32_t along;
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
    };
} Tile;

/* ---- parts of statements (the statements: prog/stmt.h) --------------------------------------- */

typedef enum End { END_PRODUCE, END_CONSUME } End;

typedef enum UnsafeKind {
    UNSAFE_VALUE, /* locals[local] = the operation `value` */
    /* at a barrier; also expects `amount` bytes */
    UNSAFE_ARRIVE,
    UNSAFE_WAIT,   /* for the phase of parity `amount` of a barrier */
    UNSAFE_EXPECT, /* expect-tx of `amount` bytes at a barrier */
    UNSAFE_STEP,   /* advances the cursor of an end */
    UNSAFE_PTX     /* text, with operands */
} UnsafeKind;

typedef enum UnsafeValue {
    VALUE_INDEX,   /* I32: of a stage, or of the cursor */
    VALUE_PHASE,   /* U32: parity for the cursor's next wait */
    VALUE_BARRIER, /* U32: its address in shared memory */
    VALUE_ADDRESS, /* of a tile: U32 for shared memory, U64 for a tensor */
    VALUE_LANE,    /* I32: index of the thread in its warp */
    VALUE_WARP     /* I32: index of the thread in its instance */
} UnsafeValue;

typedef struct PtxOperand {
    Span span;
    Expr *value; /* input, NULL: none */
    int local;   /* output, -1: none */
    /* type in the PTX text: F16 and BF16 are passed as their bits */
    Element type;
} PtxOperand;

typedef struct Unsafe {
    UnsafeKind kind;
    UnsafeValue value;
    int local;
    /* stage variable, -1: the stage of the cursor, or number `stage` */
    int handle;
    int pipe; /* -1: none */
    End end;
    Expr *stage; /* number of a stage in the ring, or NULL */
    bool full;   /* the full barrier of the stage, otherwise the empty one */
    /* arrives as a release of `handle` does: also at the other blocks that its copies reach */
    bool own;
    Expr *at;     /* block of the cluster that it arrives at, NULL: this one */
    Expr *amount; /* or NULL */
    Access *tile; /* VALUE_ADDRESS: subscripts are ignored */
    const char *text;
    VEC(PtxOperand) operands;
} Unsafe;

/* ---- roles ----------------------------------------------------------------------------------- */

typedef enum LocalKind { LOCAL_LET, LOCAL_VAR, LOCAL_LOOP, LOCAL_AXIS } LocalKind;

typedef struct Local {
    const char *name;
    Span span;
    LocalKind kind;
    Element type;
    Uniformity uniformity; /* the widest of all values assigned to it; filled by uniform */
    bool scoped;           /* in the `locals` of a block; filled by elaborate */
    /* declared in a loop over the grid: lives for one iteration */
    bool in_grid;
    /* variation over the blocks of a cluster, as in Expr; filled by uniform */
    uint32_t along;
    int axis;    /* LOCAL_AXIS: which grid axis */
    Expr *value; /* LOCAL_LET: its only value */
    /* of a loop variable: lo <= local < hi in the body; NULL: unknown */
    Expr *lo, *hi;
} Local;

typedef struct Handle { /* a linear stage variable */
    const char *name;
    Span span;
    int pipe;
    End end;
    bool variable;  /* declared with `var`: may be assigned again */
    bool parameter; /* parameter of a function that takes ownership of the stage */
    bool forgotten; /* an error was reported: its content is unknown */
} Handle;

typedef struct Hint { /* result of `try`, for the next acquire of that end */
    const char *name;
    Span span;
    int pipe;
    End end;
    bool variable; /* declared with `var`: may be assigned again */
} Hint;

/* Layout of the elements of a tile: row-major over panels. The last dimension is divided into
 * panels of `panel` elements; a panel holds all rows, so element (r.., c) is at ((c / panel) *
 * rows + r) * panel + c % panel elements; then the swizzle XORs its 16-byte chunk. panel == last
 * extent and SWIZZLE none: plain row-major. Only codegen/layout.c converts it to addresses. */
typedef struct Layout {
    int64_t panel; /* elements; filled by tiles */
    int swizzle;   /* Swizzle of launch/manifest.h: 0 none */
    /* required alignment of the tile in bytes: 16, 128 for tensor copies, 1024 for a 128-byte
     * swizzle */
    uint32_t alignment;
    /* unused elements after each row, against bank conflicts; dropped if memory does not suffice */
    int64_t padding;
    int64_t rounds; /* rounds of a warp's worst access without padding */
    /* `unsafe` takes its address: row-major, unless matrix instructions read it */
    bool addressed;
} Layout;

typedef struct RoleTile { /* a `shared` tile or a `var` tile of a role */
    const char *name;
    Span span;
    bool in_registers;
    Element type;
    int rank;
    int64_t extents[PROG_MAX_RANK];
    /* its scope ends before the role's tile of this index is declared; filled by elaborate */
    int until;
    bool address_taken;  /* `unsafe` takes its address; filled by elaborate */
    Layout layout;       /* of a shared tile */
    RegisterLayout held; /* of a register tile; filled by tiles */
    /* a contraction into it was refused: its layout is unknown; filled by tiles */
    bool unspread;
} RoleTile;

/* of a register tile: true if adjacent 16-bit elements share a register; registers.c */
bool tile_pairs(const RoleTile *tile);
/* 32-bit registers per thread for a register tile; registers.c */
int64_t tile_registers(const RoleTile *tile);

/* Use of a pipe by a role, over all its stage variables; filled by tiles */
typedef struct PipeUse {
    bool uses; /* acquires it */
    /* each stage goes to one instance: acquired in the loop over the grid of a role in turn;
     * filled by turns */
    bool in_turn;
    /* written by copies that complete by bytes (TMA, bulk) */
    bool tensor_in;
    bool lanes_in;    /* written by cp.async */
    bool generic_in;  /* written by ordinary stores */
    bool generic_out; /* read by ordinary loads */
    bool bulk_out;    /* read by TMA or bulk stores */
    bool mma_out;     /* read by matrix instructions */
    /* `unsafe` takes the address of a field, so the kind of access is unknown; filled by
     * elaborate */
    bool address_taken;
    /* lanes_in, and some consumer reads asynchronously: waits for the cp.async, then a fence and
     * a plain arrive */
    bool waits_copies;
    /* How a release of this end arrives; filled by resources */
    /* producer: one lane per instance arrives with the expected bytes (tensor_in) */
    bool tx_arrives;
    /* producer: every lane arrives when its cp.async are complete (lanes_in by cp.async, not
     * waits_copies) */
    bool lanes_arrive;
    /* producer: one lane of every warp arrives, for ordinary writes, waits_copies, tokens, and
     * for several warps or instances whose copies one lane issues: otherwise that lane could lap
     * the others */
    bool warps_arrive;
    /* consumer: one lane of the instance arrives, not one of every warp: only matrix
     * instructions read its stages, on every path, and all warps of the warpgroup have issued an
     * instruction when it completes */
    bool instance_arrives;
    uint32_t tx_bytes; /* bytes that one instance's copies write to a stage */
} PipeUse;

typedef struct Role {
    const char *name;
    Span span;
    int instances, warps; /* warps: of one instance */
    bool warpgroups;      /* declared in warpgroups */
    /* instance k takes iterations k, k + instances, .. of the loop over the grid */
    bool in_turn;
    int turns; /* number of `turn { }` blocks; filled by elaborate */
    int regs;  /* as written, 0: not written */
    /* only issues TMA and bulk copies: runs in one lane; filled by resources */
    bool one_lane;
    VEC(Local) locals;
    VEC(Handle) handles;
    VEC(Hint) hints;
    VEC(RoleTile) tiles;
    PipeUse *pipes; /* one per pipe of the kernel */
    /* an error was reported: an acquire, or a call that may contain some, is missing, or its
     * count is unknown */
    bool forgotten;
    Stmt *body;
    struct FlowCode *code; /* the same as rows: flow/code.h; filled by check */
} Role;

static inline int role_warps(const Role *role) { return role->instances * role->warps; }

/* registers.c: true if a role holds this register tile at the declaration of tile number
 * `where`, by scope */
bool role_holds_tile(const Role *role, size_t tile, size_t where);
/* most 32-bit registers per thread for register tiles; *where: the tile at which this is reached */
int role_tile_registers(const Role *role, size_t *where);

/* ---- the kernel ------------------------------------------------------------------------------ */

typedef struct Symbol {
    const char *name;
    Span span;
    bool is_extent; /* otherwise an integer scalar parameter */
    /* the scalar, or the first tensor that has the extent */
    int param;
} Symbol;

typedef enum ParamMode { PARAM_IN, PARAM_OUT, PARAM_INOUT } ParamMode;

typedef struct Param {
    const char *name;
    Span span;
    bool is_tensor;
    ParamMode mode;
    Element type;
    int rank;
    Expr *extents[PROG_MAX_RANK]; /* X_SYMBOL or X_CONST, I32 */
    int symbol;                   /* scalars of integer type, otherwise -1 */
    /* required alignment of its base in bytes: the element's, 16 for TMA and bulk; filled by
     * tiles */
    uint32_t alignment;
    /* some statement addresses it (not only through tensor maps); filled by tiles */
    bool by_pointer;
} Param;

typedef struct Field {
    const char *name;
    Span span;
    Element type;
    int count; /* tiles in the array, 1: a plain field */
    bool is_array;
    int rank;
    int64_t extents[PROG_MAX_RANK];
    int64_t elements; /* of one tile */
    Layout layout;    /* filled by tiles */
    /* indexed by End: `unsafe` takes its address there; filled by elaborate */
    bool address_taken[2];
} Field;

typedef struct Pipe {
    const char *name;
    Span span;
    int stages;
    int producer;       /* role */
    VEC(int) consumers; /* roles */
    VEC(Field) fields;  /* none: a token */
    /* indexed by End: arrivals per phase from `arrivals full`, `arrivals empty`; 0: derived; -1:
     * missing and reported */
    int64_t declared[2];
    Span declared_at[2];
    /* `unsafe` uses it in ways that cannot be counted; filled by elaborate */
    bool unproved;
    /* an error about its stages or ends was reported: counts reports nothing about it; filled by
     * stages */
    bool faulty;
    /* cluster axes along which the number of its acquires varies; filled by uniform */
    uint32_t along;
    /* bit s: some copy into it is multicast along the axes of the set s; 0: none; filled by
     * tiles */
    uint32_t multicast;
} Pipe;

/* range kt = lo .. hi where w; over symbols and grid axes (X_AXIS) */
typedef struct Domain {
    const char *name;
    Span span;
    Expr *lo, *hi, *where; /* where may be NULL */
} Domain;

typedef struct Axis {
    const char *name;
    Span span;
    Expr *extent; /* over symbols */
    int cluster;  /* blocks of a cluster along it, 1: none */
    /* the extent, rounded up to whole clusters: upper bound of the coordinates */
    Expr *padded;
} Axis;

/* a launch precondition; never constant */
typedef struct Precondition {
    Expr *condition; /* BOOL over symbols */
    const char *text, *reason, *help;
    Span span;
    /* keeps numbers within their type: no example of sizes is derived from it */
    bool of_width;
} Precondition;

typedef struct Let { /* of `ensures` */
    const char *name;
    Span span;
    /* its bound indexes are the let's dimensions, in order of the target's subscripts */
    IndexSpace space;
    Element type;
    int rank;
    Expr *value;
} Let;

typedef struct Claim {
    Span span;
    IndexSpace space;
    /* SPACE_GLOBAL, an out or inout tensor; subscripts are indexes or constants */
    Access target;
    Expr *value;
    double within; /* < 0: exact */
} Claim;

typedef enum ExampleKind { EXAMPLE_NUMBER, EXAMPLE_FILL, EXAMPLE_FORMULA } ExampleKind;

typedef struct Example {
    const char *name; /* extent, scalar or tensor */
    Span span;
    ExampleKind kind;
    double number;
    int64_t integer;
    bool is_integer;
    const char *fill; /* EXAMPLE_FILL: normal, uniform, iota, zeros */
    int param;        /* tensor, otherwise -1 */
    IndexSpace space; /* EXAMPLE_FORMULA: the tensor's axes in order */
    Expr *value;
} Example;

typedef struct Constant { /* for the report and the manifest */
    const char *name;
    Span span;
    bool is_static;
    bool read;            /* the kernel, or another constant, reads it */
    Expr *value;          /* X_CONST */
    VEC(int64_t) choices; /* of a static: values for `tune` */
} Constant;

typedef struct Target Target; /* prog/targets.def: a row of limits and capabilities */

/* prog/capabilities.def: features that only some targets have */
typedef enum Capability {
#define CAPABILITY(name, what) CAP_##name,
#include "prog/capabilities.def"
#undef CAPABILITY
    CAP_COUNT
} Capability;

typedef struct Prog {
    int passes; /* number of passes of check/passes.def that have run */
    const Source *source;
    const char *name;
    Span span; /* of the kernel's head */
    const Target *target;
    Span target_span;
    uint32_t lacks; /* capabilities whose lack was reported */
    VEC(Constant) constants;
    VEC(Symbol) symbols;
    VEC(Param) params;
    VEC(Axis) axes;
    bool persistent;
    int cluster;          /* blocks per cluster; 1: no clusters */
    Span cluster_span;    /* empty without `cluster` */
    bool cluster_refused; /* an error was reported: the cluster is unknown */
    bool touches_peers;   /* `unsafe` may access other blocks' memory */
    /* 0, or the group size: coordinates traverse the first axis in groups of this size, for each
     * the whole second axis (L2) */
    int grouped;
    VEC(Domain) domains;
    VEC(Pipe) pipes;
    VEC(Role) roles;
    VEC(Precondition) preconditions; /* `requires` and derived ones */
    VEC(Let) lets;
    VEC(Claim) claims;
    VEC(Example) examples;
    struct Plan *plan;   /* derive/plan.h; made by tiles */
    struct Tiles *tiles; /* derive/tiles.h; filled by tiles, for later passes */
} Prog;

/* ---- tables ---------------------------------------------------------------------------------- */

struct Target {
    const char *name;         /* "sm_90a" */
    bool generated;           /* otherwise its kernels are only checked */
    int ptx_major, ptx_minor; /* the .version to emit */
    uint32_t shared_limit;    /* most bytes of shared memory per block */
    int threads_limit, registers_pool, registers_max;
    int named_barriers;
    int box_limit; /* most elements of a box along an axis */
    /* most blocks of a cluster without special permission */
    int cluster_limit;
    int parameter_limit; /* most bytes of launch parameters */
    /* limits of an SM over all blocks: bytes of shared memory, threads, blocks */
    int sm_shared, sm_threads, sm_blocks;
    bool has[CAP_COUNT];
};
extern const Target target_rows[];
extern const size_t target_count;
const Target *target_by_name(const char *name); /* NULL: there is none */
const Target *target_default(void);             /* the first generated one */
/* "`sm_90` and `sm_90a`": the targets for which wanted(target, what) is true */
const char *targets_listed(Arena *arena, bool (*wanted)(const Target *, int what), int what);
/* Reports that the target lacks a capability, with the targets that have it. Once per kernel:
 * otherwise NULL. */
Diag *target_lacks(Arena *arena, Diags *diags, Prog *prog, Capability capability, Span span);

typedef struct IntrinsicRow {
    const char *name;
    int args;
    /* error bound of the fast form and of exact(...), for the documentation */
    const char *accuracy, *exact_accuracy;
    /* error bound of the fast form, in units in the last place of f32; -1: absolute, see the
     * text */
    double ulp;
    const char *what;
} IntrinsicRow;
extern const IntrinsicRow intrinsic_rows[IN_COUNT];
extern const MmaRow mma_rows[MMA_COUNT];

/* True if the role is one of the consumers of the pipe */
bool pipe_consumed_by(const Pipe *pipe, int role);
/* number of instances that take each stage of a pipe that the role acquires */
int role_takers(const Role *role, int pipe);
/* name of the access of a statement: "Y", "s.x", "acc" */
const char *access_name(Arena *arena, const Prog *prog, const Role *role, const Access *access);
/* "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16" */
const char *mma_instruction(Arena *arena, const Mma *mma);
/* of a load by the copy engine (one part of it); 0: not such a load */
int64_t copy_bytes(const Tile *tile);
/* bytes that arrive in the stage, including parts of other blocks */
int64_t copy_arrives(const Tile *tile);

/* ---- clusters (cluster.c) -------------------------------------------------------------------- */

/* The rank of a block counts along the clustered axes, the first fastest. */

/* set of axes along which a cluster has several blocks */
uint32_t cluster_axes(const Prog *prog);
/* distance in rank to the next block along the axis */
int cluster_stride(const Prog *prog, int axis);
int cluster_count(const Prog *prog, uint32_t axes); /* blocks that differ only along these axes */
uint32_t cluster_group(const Prog *prog, uint32_t axes); /* their ranks for block 0, one bit each */
/* blocks whose stages block 0 copies into, including itself */
uint32_t cluster_reach(const Prog *prog, const Pipe *pipe);
bool cluster_shares_memory(const Prog *prog); /* true if its blocks access each other's memory */

/* True if the threads of an instance synchronise before the statement: for its order, or because
 * it writes a tensor that threads with replicas of the same elements may still read (one of them
 * writes). */
bool tile_synchronises(const Prog *prog, const Role *role, const Tile *tile); /* registers.c */

/* An indented form of everything, including derived facts: --emit=prog */
void prog_print(const Prog *prog, Arena *arena, Str *out);
/* role, space may be NULL */
void expr_print(const Expr *expr, const Prog *prog, const Role *role, const IndexSpace *space,
                Str *out);
void access_print(const Access *access, const Prog *prog, const Role *role, const IndexSpace *space,
                  Str *out);

/* Calls visit for all subexpressions and then the expression, including subscripts of reads,
 * once for each shared node. */
void expr_visit(Arena *arena, Expr *expr, void (*visit)(Expr *, void *), void *data);
/* Calls visit for each element that an expression reads; `written` is false. expr.c */
void expr_reads(Arena *arena, Expr *expr, void (*visit)(Access *, bool written, void *),
                void *data);
/* Calls visit for the expressions that an access or an `unsafe` operation evaluates itself */
void access_exprs(const Access *access, void (*visit)(Expr *, void *), void *data);
void unsafe_exprs(const Unsafe *unsafe, void (*visit)(Expr *, void *), void *data);
/* True if it consists only of constants and symbols: a launch can compute it. expr.c */
bool expr_is_launch_constant(const Expr *expr);

/* ---- constructors (expr.c) ------------------------------------------------------------------- */

bool expr_constant(const Expr *expr, int64_t *out); /* an integer constant after folding */
/* Small constructors with folding, for passes that build formulas */
Expr *expr_integer(Arena *arena, Element type, int64_t value, Span span);
Expr *expr_binary(Arena *arena, BinaryOp op, Expr *left, Expr *right, Span span);
/* Allocates the arrays of an access; its rank must be set. */
void access_allocate(Arena *arena, Access *access);
/* Sets uniformity, `along` and indexes from the operands; leaves those of a variable unchanged */
void expr_derive(const Role *role, Expr *expr);

static inline bool valid_index(int index, size_t count) {
    return index >= 0 && (size_t)index < count;
}

#endif
