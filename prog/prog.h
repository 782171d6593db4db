/* The checked program: what was proved. One Prog is one kernel, with statics bound, functions inlined, names resolved to
 * indexes, every expression typed, every tile statement classified, every stage path proved, every derived fact (arrive
 * counts, bytes, layouts, offsets, warps) computed once. codegen/ and reference/ read this and nothing else of the floors that fill it.
 *
 * Passes of check/ fill it in this order; "filled by" names the pass behind a field:
 *   elaborate (names, types, fn inlining)  uniform (over what values vary)  turns (instances in turn)
 *   tiles (index ranges, classes, boxes, padding)
 *   stages (linear rule)  balance (counts of acquires)  resources (warps, shared memory, counts, registers) */
#ifndef PIPEC_PROG_H
#define PIPEC_PROG_H

#include "util/util.h"

#define PROG_MAX_RANK 5
#define PROG_MAX_INDEXES 10

typedef struct Expr Expr;
typedef struct Stmt Stmt; /* prog/stmt.h */

/* ---- expressions ------------------------------------------------------------------------------------------------- */

/* How a value varies over the threads of a role: the same in all, the same within an instance, free. In a role in turn: the same
 * whichever instance evaluates it in an iteration of the grid. Over the blocks of a cluster: `along` */
typedef enum Uniformity { UNIFORM_ROLE, UNIFORM_INSTANCE, UNIFORM_LANE } Uniformity;

typedef enum ExprKind {
    X_POISON,  /* an error was reported; later checks are silent */
    X_CONST,
    X_SYMBOL,  /* prog->symbols[index]: an extent or an integer scalar parameter, known at launch */
    X_PARAM,   /* prog->params[index]: a floating point scalar parameter */
    X_AXIS,    /* grid axis `index`; in range, grid and precondition formulas only (in a role the loop binds a local) */
    X_LOCAL,   /* role->locals[index] */
    X_RANK,    /* number of the instance in its role */
    X_INDEX,   /* the statement's (or claim's) space.items[index] */
    X_READ,    /* an element of a tensor or tile */
    X_UNARY, X_BINARY, X_SELECT,
    X_CAST,    /* to `type` */
    X_CALL,    /* an intrinsic */
    X_REDUCE   /* over space.items[first .. first + count) */
} ExprKind;

typedef enum UnaryOp { OP_NEG, OP_NOT } UnaryOp;

typedef enum BinaryOp {
    OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MOD,
    OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE,
    OP_AND, OP_OR
} BinaryOp;

typedef enum ReduceOp { REDUCE_SUM, REDUCE_MAX, REDUCE_MIN } ReduceOp;

/* Intrinsics: intrinsics.def, one row each */
typedef enum Intrinsic {
#define INTRINSIC(name, ...) IN_##name,
#include "prog/intrinsics.def"
#undef INTRINSIC
    IN_COUNT
} Intrinsic;

typedef enum Accuracy { ACCURACY_FAST, ACCURACY_EXACT } Accuracy; /* ACCURACY_EXACT: inside `exact(...)` */

/* subscript = base + sum over indexes of coef[i] * index i; `base` has no index in it (a constant 0 at least).
 * is == false: not of this form (a gather, a product of indexes); then only the subscript's Expr counts. */
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
    Expr *element;  /* which tile of an array field; NULL where the field is one tile */
    bool old;       /* `old Y[i]`, in `ensures` */
    Element type;   /* as stored */
    int rank;
    Expr *subs[PROG_MAX_RANK];
    Affine affine[PROG_MAX_RANK]; /* filled by tiles */
    bool inside[PROG_MAX_RANK];   /* the subscript is certainly within the extent (tiles: always proved); filled by tiles */
    Span span;
} Access;

struct Expr {
    ExprKind kind;
    Element type;   /* of the value: F32, I32, U32, I64, U64, BOOL after widening; X_READ: widened too (a cast is implied) */
    Uniformity uniformity; /* in the rows that evaluate it; with variables in it filled by uniform */
    uint32_t along;   /* bit a: may differ between blocks of a cluster along grid axis a (only bits of cluster_axes count) */
    uint32_t indexes; /* bit i: depends on space.items[i] */
    Span span;
    union {
        struct { int64_t integer; double number; } constant; /* integer types and BOOL: integer; F32: number */
        int index;      /* SYMBOL, PARAM, AXIS, LOCAL, INDEX */
        Access *read;
        struct { UnaryOp op; Expr *operand; } unary;
        struct { BinaryOp op; Expr *left, *right; Accuracy accuracy; } binary; /* both sides of one type */
        struct { Expr *condition, *then, *otherwise; } select;
        Expr *cast;
        struct { Intrinsic which; Expr *args[3]; int count; Accuracy accuracy; } call;
        struct { ReduceOp op; int first, count; Expr *body; } reduce;
    };
};
/* Subexpressions may be shared (an inlined `fn`'s parameter, a `let`): the tree is a DAG; walkers that could meet a shared
 * node often must remember what they have seen. */

/* ---- index spaces ------------------------------------------------------------------------------------------------ */

typedef struct Index {
    const char *name;
    Span span;          /* where it was first seen */
    int64_t extent;     /* constant extent, or -1: `dynamic` holds it */
    Expr *dynamic;      /* extent of a global tensor known at launch (ensures, and statements without a tile) */
} Index;

typedef struct IndexSpace { /* those of the destination first, in its order; then those of reductions; filled by elaborate, extents by tiles */
    int count;
    int bound;          /* how many are of the destination (the rest belong to reductions) */
    Index items[PROG_MAX_INDEXES];
    bool overflows; /* there are more, as has been said */
} IndexSpace;

/* ---- register tiles ---------------------------------------------------------------------------------------------- */

/* Where a register tile's elements are: a map from (thread of the instance, register) to coordinates. A coordinate is a sum of digits times
 * strides, digits of the thread's number and of the register's number. A thread's digit that no axis takes makes replicas: threads that differ
 * in it alone hold the same elements. Statements over register tiles walk their indexes in the same way (Tile.spread). */
typedef struct Digit {
    bool in_thread; /* thread / place % extent; else of the register's number: digits of lower `place` run faster, of the same the later axis's */
    int place;
    int64_t extent, stride;
} Digit;

typedef enum SpreadKind {
    SPREAD_ROWS,    /* as the rows of wgmma's accumulator, 64 after 64: PTX ISA 9.7.15.5.1.1.3, figure "WGMMA .m64nNk16 D fragment" */
    SPREAD_COLUMNS, /* as its columns, 8 after 8 */
    SPREAD_EVERY,   /* every thread has all of them: what constants subscript */
    SPREAD_BLOCKED  /* vectors of neighbours, thread after thread */
} SpreadKind;

typedef struct Spread {   /* of one axis, or of several flattened, the last one innermost */
    SpreadKind kind;
    int members, axes[PROG_MAX_RANK]; /* axes of the tile, or indexes of the statement */
    int64_t extent;       /* of all of them; where the digits reach further there is nothing */
    int64_t granule;      /* parts begin and end at multiples of it: the stride of the last digit */
    int count;
    Digit digits[4];      /* strides ascend; the last one, of the register, runs over the granules */
} Spread;

typedef struct RegisterLayout {
    int count;
    Spread spreads[PROG_MAX_INDEXES];
} RegisterLayout;

/* registers.c */
int64_t layout_registers(const RegisterLayout *layout); /* elements that a thread holds */
/* The registers' part of each spread's coordinate, and back */
void layout_coordinates(const RegisterLayout *layout, int64_t number, int64_t *coordinates);
int64_t layout_number(const RegisterLayout *layout, const int64_t *coordinates);
int layout_vector(const RegisterLayout *layout, int *axis); /* registers that hold neighbours, and along which axis; 1 and -1 */
int layout_replicas(const RegisterLayout *layout, int threads, Digit *digits); /* digits of the thread that nothing takes; at most 2 a spread, and 1 */
const Spread *layout_spread(const RegisterLayout *layout, int axis, int *number); /* that the axis belongs to; NULL where it is in none */
bool layout_same(const RegisterLayout *a, const RegisterLayout *b);                /* NULL is like NULL alone */
bool layout_accumulates(const RegisterLayout *layout);                            /* has rows and columns of accumulators */
void layout_print(const RegisterLayout *layout, int threads, Str *out);           /* in words */

/* ---- tile statements --------------------------------------------------------------------------------------------- */

typedef enum TileClass {  /* filled by tiles */
    TILE_UNCLASSIFIED,
    TILE_TENSOR_LOAD,   /* cp.async.bulk.tensor, global to stage: `box` */
    TILE_BULK_LOAD,     /* cp.async.bulk, global to stage, one contiguous piece certainly inside: `bulk` */
    TILE_LANES,         /* `by lanes`, global to stage: per lane, `piece` elements at once */
    TILE_TENSOR_STORE,  /* cp.async.bulk.tensor, stage or shared to global: `box` */
    TILE_BULK_STORE,    /* cp.async.bulk, stage or shared to global: `bulk` */
    TILE_MAP,           /* evaluated by the instance's threads, element by element */
    TILE_MMA,           /* a contraction by the warpgroup's matrix unit, into a register tile: `mma` */
    TILE_REDUCTION      /* holds sum[x], max[x], min[x]: read and checked; build refuses it until it is generated */
} TileClass;

typedef struct BoxCopy {
    int map;                      /* prog->maps; its box gives the size of one box */
    int rank;                     /* of the map; dimensions innermost first, as in the map */
    Expr *start[PROG_MAX_RANK];   /* first coordinate, I32, in elements */
    int64_t tile[PROG_MAX_RANK];  /* elements that the copy covers; a multiple of the box */
    int64_t step[PROG_MAX_RANK];  /* bytes in shared memory from one box to the next along the dimension */
    int64_t granule;              /* 0, or elements in 16 bytes: a store to a tensor of one axis that may end within them. TMA clips stores
                                   * to whole 16 bytes (seen on an H200), so the map ends at a multiple and the lane stores the rest */
} BoxCopy;

/* A load into a stage that one block of a cluster makes for several: multicast */
typedef struct Multicast {
    uint32_t axes;                /* grid axes along which blocks share it; 0: each block loads for itself */
    int parts;                    /* 0, or each of so many blocks loads its part for all; 1: the first of them loads everything */
    int axis;                     /* of the map (innermost first), along which the tile is parted */
    int64_t elements, bytes;      /* from one part to the next: along that axis (bulk: in the piece), and in shared memory */
} Multicast;

typedef struct BulkCopy {
    uint32_t bytes;               /* multiple of 16; source and destination addresses are too */
} BulkCopy;                       /* the global piece starts at the access's subscripts with all indexes 0 */

/* Matrix instructions: mma.def, one row a pair of operand types */
typedef enum MmaKind {
#define MMA(name, ...) MMA_##name,
#include "prog/mma.def"
#undef MMA
    MMA_COUNT
} MmaKind;

typedef struct MmaRow {
    const char *name;         /* "f32.bf16.bf16", as the PTX opcode spells it: D, A, B */
    Element operands, sum;    /* of A and B; of the register tile */
    int k;                    /* contraction extent of one instruction */
    int n_step, n_step_large; /* columns: multiples of n_step up to 32, of n_step_large beyond */
    bool either_major;        /* operands may be MN-major: 16-bit types */
    double bound;             /* relative error of a sum of products, for the documentation */
} MmaRow;

/* One operand in shared memory, or the first in registers (then [row, summed index]): a matrix of (m or n) x contraction, whatever the order of its axes */
typedef struct MmaOperand {
    const Access *tile;       /* rank 2 and more; all axes but two are index-free */
    int free, inner;          /* axes subscripted by the free index (i or j) and by the contraction's */
    bool mn_major;            /* the free axis is the last one: contiguous along m or n */
} MmaOperand;

/* acc[i, j] (=, +=) sum[x] a[.. i .., .. x ..] * b[.. j .., .. x ..] */
typedef struct Mma {
    MmaKind kind;
    int slabs;                /* of 64 rows: rows of the register tile / 64 */
    int n;                    /* columns of the register tile, one instruction wide */
    int steps;                /* instructions along the contraction: its extent / row.k */
    MmaOperand a, b;
} Mma;

typedef enum AssignOp { ASSIGN_SET, ASSIGN_ADD, ASSIGN_SUB, ASSIGN_MUL, ASSIGN_DIV } AssignOp;

/* What a statement waits for before it touches elements that its instance has touched before */
enum {
    ORDER_THREADS = 1, /* the other threads of the instance */
    ORDER_STORES = 2,  /* its copies out of stages: they have written */
    ORDER_FENCE = 4    /* what threads have written is to be seen by the copy engine */
};

typedef struct Tile {
    TileClass class;
    IndexSpace space;
    Access target;
    AssignOp op;           /* for a target of 8- or 16-bit type the sum is formed in the widened type */
    Expr *value;           /* of the target's type, or of its widened type where the target stores narrower by a written cast */
    const RegisterLayout *spread; /* of the bound indexes, where register tiles stand in an elementwise statement; else NULL; filled by tiles */
    int order;             /* ORDER_*, joined; filled by tiles (stages) and races (tensors) */
    bool by_lanes;         /* as written */
    bool multicast_required; /* as written */
    Span lanes_span;
    uint32_t along;        /* cluster axes along which it differs whether, or how often, the statement is executed; filled by uniform */
    Multicast multicast;   /* of TENSOR_LOAD and BULK_LOAD; what `box` and `bulk` say is one part */
    union {
        BoxCopy box;
        BulkCopy bulk;
        Mma mma;
        struct { int elements; bool asynchronous; } piece; /* TILE_LANES: elements a lane moves at once; by cp.async, else ld and st */
    };
} Tile;

/* ---- what statements hold (the statements: prog/stmt.h) --------------------------------------------------------------- */

typedef enum End { END_PRODUCE, END_CONSUME } End;

typedef enum UnsafeKind {
    UNSAFE_VALUE,  /* locals[local] = what `value` says */
    UNSAFE_ARRIVE, /* at a barrier; by `amount` bytes it expects as well */
    UNSAFE_WAIT,   /* for the phase of parity `amount` of a barrier */
    UNSAFE_EXPECT, /* `amount` bytes at a barrier */
    UNSAFE_STEP,   /* the cursor of an end */
    UNSAFE_PTX     /* text, with operands */
} UnsafeKind;

typedef enum UnsafeValue {
    VALUE_INDEX,   /* I32: of a stage, or of the cursor's */
    VALUE_PHASE,   /* U32: parity that the cursor waits for next */
    VALUE_BARRIER, /* U32: its address in shared memory */
    VALUE_ADDRESS, /* of a tile: U32 in shared memory, U64 of a tensor */
    VALUE_LANE,    /* I32: of the thread in its warp */
    VALUE_WARP     /* I32: of the thread in its instance */
} UnsafeValue;

typedef struct PtxOperand {
    Span span;
    Expr *value;   /* what goes in, NULL: nothing */
    int local;     /* what comes out, -1: nothing */
    Element type;  /* as the text sees it: F16 and BF16 are their bits */
} PtxOperand;

typedef struct Unsafe {
    UnsafeKind kind;
    UnsafeValue value;
    int local;
    int handle;    /* whose stage, -1: that of the cursor, or number `stage` */
    int pipe;      /* -1: about none */
    End end;
    Expr *stage;   /* number of a stage in the ring, or NULL */
    bool full;     /* which barrier of the stage */
    bool own;      /* an arrival as a release of `handle` would make it: also at the other blocks that its copies reach */
    Expr *at;      /* block of the cluster at which it arrives, NULL: this one */
    Expr *amount;  /* or NULL */
    Access *tile;  /* VALUE_ADDRESS: subscripts are not looked at */
    const char *text;
    VEC(PtxOperand) operands;
} Unsafe;

/* ---- roles ------------------------------------------------------------------------------------------------------- */

typedef enum LocalKind { LOCAL_LET, LOCAL_VAR, LOCAL_LOOP, LOCAL_AXIS } LocalKind;

typedef struct Local {
    const char *name;
    Span span;
    LocalKind kind;
    Element type;
    Uniformity uniformity; /* the widest of all that it ever holds; filled by uniform */
    bool scoped;           /* a block has it in its `locals`; filled by elaborate */
    bool in_grid;          /* declared inside of a loop over the grid: of one iteration */
    uint32_t along;        /* the same over the blocks of a cluster, as in Expr; filled by uniform */
    int axis;              /* LOCAL_AXIS: which grid axis */
    Expr *value;           /* LOCAL_LET: its only value */
    Expr *lo, *hi;         /* lo <= the local < hi: of a loop, in its body; NULL: unknown */
} Local;

typedef struct Handle {    /* a linear stage variable */
    const char *name;
    Span span;
    int pipe;
    End end;
    bool variable;         /* declared with `var`: may be assigned again */
    bool parameter;        /* of a function that takes the stage over */
    bool forgotten;        /* an error was reported: what it holds is unknown */
} Handle;

typedef struct Hint {      /* what `try` has found out, for the next acquire of that end */
    const char *name;
    Span span;
    int pipe;
    End end;
    bool variable;         /* declared with `var`: may be assigned again */
} Hint;

/* How elements of a tile are laid out. Row-major over panels: the last dimension is cut into panels of `panel` elements,
 * a panel holds all rows, so element (r.., c) lies at ((c / panel) * rows + r) * panel + c % panel elements, then its
 * 16-byte chunks are XORed by the swizzle. panel == last extent, SWIZZLE none: plain row-major. The one place that
 * turns it into addresses is codegen/layout.c. */
typedef struct Layout {
    int64_t panel;      /* elements; filled by tiles */
    int swizzle;        /* Swizzle of launch/manifest.h: 0 none */
    uint32_t alignment; /* bytes that a tile's start needs: 16, or 128 for tensor copies, 1024 for a 128-byte swizzle */
    int64_t padding;    /* elements left free behind each row, against bank conflicts; given up where memory does not suffice */
    int64_t rounds;     /* that the worst access of a warp would take without it */
    bool addressed;     /* `unsafe` takes its address: row-major, unless matrix instructions read it */
} Layout;

typedef struct RoleTile {  /* a `shared` tile or a `var` tile of a role */
    const char *name;
    Span span;
    bool in_registers;
    Element type;
    int rank;
    int64_t extents[PROG_MAX_RANK];
    int until;             /* its scope ends before the role's tile of this number is declared; filled by elaborate */
    bool by_hand;          /* `unsafe` takes its address; filled by elaborate */
    Layout layout;         /* of a shared tile */
    RegisterLayout held;   /* of a register tile; filled by tiles */
    bool unspread;         /* a contraction into it was refused: how threads would share it is not known; filled by tiles */
    uint32_t offset;       /* shared: of instance 0, in the block's shared memory; filled by resources */
    uint32_t stride;       /* shared: bytes from one instance's tile to the next's */
} RoleTile;

bool tile_pairs(const RoleTile *tile); /* of a register tile: 16-bit elements side by side share a register; registers.c */
int64_t tile_registers(const RoleTile *tile); /* of 32 bits, that a thread holds of a register tile; registers.c */

/* What a role does with one pipe, over all its handles; filled by tiles */
typedef struct PipeUse {
    bool uses;             /* acquires it at all */
    bool in_turn;          /* each stage is taken by one instance: acquired in the loop over the grid of a role in turn; filled by turns */
    bool tensor_in;        /* copies that complete by bytes (TMA, bulk) write its stages */
    bool lanes_in;         /* cp.async writes them */
    bool generic_in;       /* ordinary stores write them */
    bool generic_out;      /* ordinary loads read them */
    bool bulk_out;         /* TMA or bulk stores read them */
    bool mma_out;          /* matrix instructions read them */
    bool by_hand;          /* `unsafe` takes the address of a field: ordinary or asynchronous work, nobody knows; filled by elaborate */
    bool waits_copies;     /* lanes_in, and some consumer reads asynchronously: wait for the cp.async, fence, plain arrive */
    /* how a release of this end arrives; filled by resources */
    bool tx_arrives;       /* producer: one lane an instance arrives with the bytes it expects (tensor_in) */
    bool lanes_arrive;     /* producer: every lane arrives when its cp.async are done (lanes_in by cp.async, not waits_copies) */
    bool warps_arrive;     /* producer: one lane of every warp arrives: of ordinary writes, waits_copies, tokens, and of several warps or
                            * instances whose copies one lane issues: else the others could be lapped */
    bool instance_arrives; /* consumer: one lane of the instance arrives, in place of one of every warp: its stages are read by matrix instructions
                            * alone, on every path, which all warps of the warpgroup have issued when one is done */
    bool fenced[2];        /* by End: fence.proxy.async before a release or arrival: this end touches its stages by ordinary accesses, the other
                            * end through the async proxy */
    uint32_t tx_bytes;     /* that one instance's copies bring into a stage */
} PipeUse;

typedef struct Role {
    const char *name;
    Span span;
    int instances, warps;  /* warps of one instance */
    bool warpgroups;       /* declared in warpgroups */
    bool in_turn;          /* instance k takes iterations k, k + instances, .. of the loop over the grid */
    int turns;             /* `turn { }` blocks; filled by elaborate */
    int tokens;            /* named barrier at which instance 0 waits for turn 1: of turn t, instance k it is tokens + (t - 1) * instances + k;
                            * filled by resources */
    int regs;              /* as written, 0: not */
    int first_warp;        /* filled by resources */
    int registers;         /* setmaxnreg value of its warpgroup, 0: none; filled by resources */
    bool one_lane;         /* only issues TMA and bulk work: runs in one lane; filled by resources */
    int barrier;           /* named barrier of instance 0 (instance k: barrier + k), 0: none; needed by `shared` tiles; filled by resources */
    VEC(Local) locals;
    VEC(Handle) handles;
    VEC(Hint) hints;
    VEC(RoleTile) tiles;
    PipeUse *pipes;        /* one a pipe of the kernel */
    bool forgotten;        /* an error was reported: some acquire of it, or a call that may hold some, is missing, or how often it comes is unknown */
    Stmt *body;
    struct FlowCode *code; /* the same, as rows: flow/code.h; filled by check */
} Role;

/* registers.c: a role holds register tiles by their scopes; where its tile number `where` is declared it holds those of which this is true */
bool role_holds_tile(const Role *role, size_t tile, size_t where);
int role_tile_registers(const Role *role, size_t *where); /* of 32 bits, that a thread holds in register tiles at most, and where */

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

typedef struct Symbol {
    const char *name;
    Span span;
    bool is_extent;  /* else an integer scalar parameter */
    int param;       /* of the scalar, or the first tensor that has the extent */
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
    int symbol;                   /* scalars of integer type, else -1 */
    uint32_t alignment;           /* bytes that its base needs: the element's, 16 for TMA and bulk; filled by tiles */
    bool by_pointer;              /* some statement addresses it (not only through tensor maps); filled by tiles */
} Param;

typedef struct Field {
    const char *name;
    Span span;
    Element type;
    int count;        /* tiles in the array, 1 for a plain field */
    bool is_array;
    int rank;
    int64_t extents[PROG_MAX_RANK];
    int64_t elements; /* of one tile */
    Layout layout;    /* filled by tiles */
    bool by_hand[2];  /* by End: `unsafe` takes its address there; filled by elaborate */
    uint32_t offset;  /* in the stage; filled by resources */
    uint32_t bytes;   /* of one tile, rounded up to its alignment where it is an array; filled by resources */
} Field;

typedef struct Pipe {
    const char *name;
    Span span;
    int stages;
    int producer;             /* role */
    VEC(int) consumers;       /* roles */
    VEC(Field) fields;        /* none: a token */
    int64_t declared[2];      /* by End: `arrivals full`, `arrivals empty`, of a phase; 0: derived, -1: missed, and
                                 that was said */
    Span declared_at[2];
    bool unproved;            /* `unsafe` does more to it than can be counted; filled by elaborate */
    bool faulty;              /* an error about its stages or ends was reported: balance is silent on it; filled by stages */
    uint32_t along;           /* cluster axes along which it differs how often it is acquired; filled by uniform */
    uint32_t multicast;       /* bit s: some copy into it is multicast along the axes of the set s; 0: none; filled by tiles */
    /* filled by resources */
    uint32_t offset, stride;  /* of stage 0 in shared memory; bytes from stage to stage */
    uint32_t full, empty;     /* offsets of the barrier arrays */
    uint32_t full_count, empty_count;
    const char *full_reason, *empty_reason; /* "1 (tensor copies of `load`) + 4 warps of `add`", for --report */
} Pipe;

typedef struct Domain {       /* range kt = lo .. hi where w; over symbols and grid axes (X_AXIS) */
    const char *name;
    Span span;
    Expr *lo, *hi, *where;    /* where may be NULL */
} Domain;

typedef struct Axis {
    const char *name;
    Span span;
    Expr *extent;             /* over symbols */
    int cluster;              /* blocks of a cluster along it, 1: no cluster */
    Expr *padded;             /* the extent, rounded up to whole clusters: coordinates stay below this */
} Axis;

typedef struct Map {          /* a tensor map to encode; filled by tiles, equal ones shared */
    int param;
    int rank;                 /* dimensions innermost first */
    Expr *extents[PROG_MAX_RANK]; /* elements */
    Expr *strides[PROG_MAX_RANK]; /* bytes, I64 formulas; [0] NULL */
    int64_t box[PROG_MAX_RANK];
    int swizzle;
    bool stored;              /* stores go through it; else loads, never both: see launch/manifest.h */
} Map;

typedef struct Precondition { /* a launch precondition; conditions that are constant never get here */
    Expr *condition;          /* BOOL over symbols */
    const char *text, *reason, *help;
    Span span;
    bool of_width;            /* keeps numbers within their type: of sizes at which something goes wrong it says nothing */
} Precondition;

typedef struct Let {          /* of `ensures` */
    const char *name;
    Span span;
    IndexSpace space;         /* bound indexes are its dimensions, in order of the target's subscripts */
    Element type;
    int rank;
    Expr *value;
} Let;

typedef struct Claim {
    Span span;
    IndexSpace space;
    Access target;            /* SPACE_GLOBAL, an out or inout tensor; bare indexes or constants */
    Expr *value;
    double within;            /* < 0: exact */
} Claim;

typedef enum ExampleKind { EXAMPLE_NUMBER, EXAMPLE_FILL, EXAMPLE_FORMULA } ExampleKind;

typedef struct Example {
    const char *name;         /* extent, scalar or tensor */
    Span span;
    ExampleKind kind;
    double number;
    int64_t integer;
    bool is_integer;
    const char *fill;         /* EXAMPLE_FILL: normal, uniform, iota, zeros */
    int param;                /* of a tensor, else -1 */
    IndexSpace space;         /* EXAMPLE_FORMULA: the tensor's axes in order */
    Expr *value;
} Example;

typedef struct Constant {     /* for the report and the manifest */
    const char *name;
    Span span;
    bool is_static;
    bool read;                /* the kernel, or another constant, asks for its value */
    Expr *value;              /* X_CONST */
    VEC(int64_t) choices;     /* of a static, what `tune` may try */
} Constant;

typedef struct Target Target; /* prog/targets.def: a row of limits and capabilities */

/* prog/capabilities.def: what some targets have and others lack */
typedef enum Capability {
#define CAPABILITY(name, what) CAP_##name,
#include "prog/capabilities.def"
#undef CAPABILITY
    CAP_COUNT
} Capability;

typedef struct Prog {
    int passes;               /* of the check, that it went through so far: check/passes.def */
    const Source *source;
    const char *name;
    Span span;                /* of the kernel's head */
    const Target *target;
    Span target_span;
    uint32_t lacks;           /* capabilities that the target was said to lack */
    VEC(Constant) constants;
    VEC(Symbol) symbols;
    VEC(Param) params;
    VEC(Axis) axes;
    bool persistent;
    int cluster;              /* blocks of a cluster; 1: none */
    Span cluster_span;        /* empty without `cluster` */
    bool cluster_refused;     /* what was meant is not known */
    bool talks;               /* `unsafe` may touch other blocks' memory */
    int grouped;              /* 0, or: coordinates go through the first axis in groups of so many, for each the whole second axis (L2) */
    VEC(Domain) domains;
    VEC(Pipe) pipes;
    VEC(Role) roles;
    VEC(Map) maps;
    VEC(Precondition) preconditions; /* `requires` and derived ones */
    VEC(Let) lets;
    VEC(Claim) claims;
    VEC(Example) examples;
    struct Tiles *tiles;      /* derive/tiles.h; filled by tiles, for the rules after it */
    /* filled by resources */
    int warps;                /* of a block, idle ones included */
    int launch_registers;     /* of a thread at launch, from which setmaxnreg raises or lowers; 0: no role states any */
    uint32_t shared_bytes;
} Prog;

/* ---- tables read by codegen/ and reference/ too ------------------------------------------------------------------- */

struct Target {
    const char *name;         /* "sm_90a" */
    bool generated;           /* else its kernels are only checked */
    int ptx_major, ptx_minor; /* the .version to emit */
    uint32_t shared_limit;    /* bytes of shared memory a block may have */
    int threads_limit, registers_pool, registers_max;
    int named_barriers;
    int box_limit;            /* elements of a box along an axis */
    int cluster_limit;        /* blocks of a cluster that need no special permission */
    int parameter_limit;      /* bytes that a launch hands over */
    int sm_shared, sm_threads, sm_blocks; /* of all blocks on an SM: bytes of shared memory, threads; and how many */
    bool has[CAP_COUNT];
};
extern const Target target_rows[];
extern const size_t target_count;
const Target *target_by_name(const char *name); /* NULL: there is none */
const Target *target_default(void);             /* the first that is generated */
/* "`sm_90` and `sm_90a`": those that are wanted, of which `what` is asked */
const char *targets_listed(Arena *arena, bool (*wanted)(const Target *, int what), int what);
/* Refuses what needs something that the target lacks, with the targets that have it. Once a kernel: NULL where it has been said. */
Diag *target_lacks(Arena *arena, Diags *diags, Prog *prog, Capability capability, Span span);

typedef struct IntrinsicRow {
    const char *name;
    int args;
    const char *accuracy, *exact_accuracy; /* bound of the fast form and of exact(...), for the documentation */
    double ulp;                            /* bound of the fast form, in units in the last place of f32; -1: absolute, see the text */
    const char *what;
} IntrinsicRow;
extern const IntrinsicRow intrinsic_rows[IN_COUNT];
extern const MmaRow mma_rows[MMA_COUNT];

bool pipe_consumed_by(const Pipe *pipe, int role);
int role_takes(const Role *role, int pipe); /* how many instances take each stage of a pipe that the role acquires */
const char *access_name(Arena *arena, const Prog *prog, const Role *role, const Access *access); /* "Y", "s.x", "acc": of a statement */
int64_t copy_boxes(const Prog *prog, const BoxCopy *copy); /* instructions: one a box */
int64_t copy_bytes(const Tile *tile); /* of a load by the copy engine (one part of it); 0: it is none */
int64_t copy_lands(const Tile *tile); /* in the stage, parts of other blocks included */

/* ---- clusters: a block's number in its cluster counts along the clustered axes, the first of them fastest (cluster.c) --------- */

uint32_t cluster_axes(const Prog *prog);                        /* the set of axes along which a cluster has several blocks */
int cluster_stride(const Prog *prog, int axis);                 /* from one block to the next along the axis */
int cluster_count(const Prog *prog, uint32_t axes);             /* blocks that differ along these axes only */
uint32_t cluster_group(const Prog *prog, uint32_t axes);        /* which, of block 0: a bit each */
uint32_t cluster_reach(const Prog *prog, const Pipe *pipe);     /* blocks into whose stages block 0 copies, itself included */
bool cluster_talks(const Prog *prog);                           /* do its blocks touch each other's memory? */

/* Do the threads of an instance wait for one another before the statement? For its order; or it writes a tensor that threads which hold the same
 * elements may still read; one of them writes. */
bool tile_waits(const Prog *prog, const Role *role, const Tile *tile); /* registers.c */

/* An indented form of everything, derived facts included: --emit=prog */
void prog_print(const Prog *prog, Arena *arena, Str *out);
void expr_print(const Expr *expr, const Prog *prog, const Role *role, const IndexSpace *space, Str *out); /* role, space may be NULL */
void access_print(const Access *access, const Prog *prog, const Role *role, const IndexSpace *space, Str *out);

/* Walks an expression and all below it, subscripts of reads included, each shared node once, what is below first. */
void expr_visit(Arena *arena, Expr *expr, void (*visit)(Expr *, void *), void *data);
/* Each element that an expression reads; `written` is false. expr.c */
void expr_reads(Arena *arena, Expr *expr, void (*visit)(Access *, bool written, void *),
                void *data);
/* The expressions that an access or an operation of `unsafe` evaluates itself */
void access_exprs(const Access *access, void (*visit)(Expr *, void *), void *data);
void unsafe_exprs(const Unsafe *unsafe, void (*visit)(Expr *, void *), void *data);
/* Is it a formula of constants and symbols alone, which a launch can compute? expr.c */
bool expr_of_symbols(const Expr *expr);

/* ---- constructors (expr.c) ----------------------------------------------------------------------------------------- */

bool expr_constant(const Expr *expr, int64_t *out); /* an integer constant after folding */
/* Small constructors, folded: used by passes that form formulas */
Expr *expr_integer(Arena *arena, Element type, int64_t value, Span span);
Expr *expr_binary(Arena *arena, BinaryOp op, Expr *left, Expr *right, Span span);
/* uniformity, `along` and indexes, from its operands; those of a variable are left as they are */
void expr_derive(const Role *role, Expr *expr);

static inline bool valid_index(int index, size_t count) { return index >= 0 && (size_t)index < count; }

#endif
