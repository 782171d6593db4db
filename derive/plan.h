/* plan: all derived facts in one struct: derive/ fills it, --emit=plan prints it, the report
 * explains it, the manifest copies from it, and codegen obeys it; codegen computes none itself.
 *
 * Facts that rules of flow/ and check/ read lie in what they are about instead, and in no second
 * place: the class of a statement, with its box, piece, matrix shape and distribution (Tile);
 * accesses of an end of a pipe and how it arrives (PipeUse, Pipe.multicast, Role.one_lane); how
 * late it releases (Late.lag); how a launch passes a tensor (Param). Rules take the Code of a role
 * without a plan, and some of these facts decide whether there is one.
 *
 *   plan/plan_open.c            the empty plan
 *   plan/plan.c                 completes it
 *   plan/plan_rows.c            rows of one Code, by these:
 *   plan/plan_control.c         places where turns are passed on, regions with diverged lanes,
 *                               zeros
 *   waits/plan_waits.c          commits of and waits for matrix instructions
 *   waits/plan_ahead.c          reads before a wait
 *   waits/plan_releases.c       releases that move up to the last read of their stage
 *   plan/plan_contractions.c    operands of matrix instructions
 *   reductions/plan_scaled.c    factors that are taken out of maxima and minima
 *   plan/plan_moves.c           elementwise statements of threads
 *   order/order.c               what statements wait for, because of earlier ones of the instance
 *   written/written.c           the same for stages that the role produces, and their bytes
 *   plan/plan_uses.c            what a row does, and elements at which values are equal, for
 *                               several of these
 *   plan/plan_skip.c            iterations that belong to another instance
 *   plan/plan_block.c           facts about the whole block: shared memory, warpgroups
 *   resources/plan_occupancy.c  blocks of an SM, their registers and bytes in flight
 *   launch/work.c               what each role does, for predictions of its time
 *   resources/resources.c       and its files: warps, registers, barriers, arrivals, offsets
 *   tiles/boxes.c               tensor maps
 *   plan/linear.c               instructions for coordinates: a rule that codegen asks (linear.h
 *                               says why)
 *   report/plan_print.c, report/plan_print_rows.c  --emit=plan
 *   report/report.c, report/report_role.c, report/report_json.c  --report */
#ifndef PIPEC_DERIVE_PLAN_H
#define PIPEC_DERIVE_PLAN_H

#include "flow/code.h"

#define PLAN_ANY INT64_MIN /* value of a variable whose loop is not unrolled */

/* A wait for matrix instructions, before a row */
typedef struct Wait {
    /* the copy of the row, if enclosing loops are unrolled: the values of their variables,
     * innermost first */
    int64_t *copy;
    int depth; /* groups that may stay in flight */
    /* an object of matrix instructions that needs the wait; both -1: none, but the assembler
     * must see that an accumulator is at rest */
    int tile, handle;
    /* a handle: a spin at its barrier keeps arithmetic before the wait; -1: none */
    int pin;
    /* some object of the row is in flight: other objects may be read before the wait */
    bool in_flight;
} Wait;

typedef VEC(Wait) Waits;

/* A part of a value that is evaluated before a wait */
typedef struct AheadRead {
    const Expr *expr;
    int *first; /* by element of a thread: the first element at which it has the same value */
} AheadRead;

/* Work before a wait of a row that leaves some of its objects in flight */
typedef struct Ahead {
    VEC(AheadRead) reads;
    /* a row: a release of a stage that only these reads still needed, executed at the wait; -1:
     * none */
    int release;
} Ahead;

/* How threads move the elements of an access, for `vector` elements of a statement at once */
typedef enum MoveKind {
    MOVE_EACH,      /* one element after another */
    MOVE_VECTOR,    /* adjacent elements in shared memory, at once */
    MOVE_WIDE,      /* adjacent elements in global memory: at once if Wide holds, else one by one */
    MOVE_REGISTERS, /* a register tile: no instruction */
    MOVE_MATRICES,  /* stmatrix or ldmatrix: rows of the accumulator are rows in memory */
    MOVE_TRANSPOSED /* stmatrix or ldmatrix: rows of the accumulator are columns in memory */
} MoveKind;

/* A statement of threads in which a factor is taken out of a maximum or minimum */
typedef struct Scaled {
    Expr *value;     /* of the statement; NULL: as it is written */
    Expr *unscaled;  /* the same without the factor, computed instead; NULL: it has none */
    Expr *written;   /* that factor */
    Expr *when;      /* only where this holds, the same in all threads; NULL: always */
    bool kept;       /* then nothing is computed: the tile holds these elements already */
    Expr *result_by; /* multiplies the result of a reduction; NULL: nothing does */
} Scaled;

typedef struct MovedRead {
    const Expr *expr; /* X_READ */
    MoveKind kind;
    /* as register tiles: by vector of a thread: the first one that reads the same elements */
    int *first;
} MovedRead;

/* The order in which the elements of a statement are distributed */
typedef enum WalkKind {
    WALK_ONE,  /* a single element: one thread */
    WALK_FLAT, /* vectors in sequence, last index innermost: adjacent vectors to adjacent threads */
    WALK_LAUNCH,   /* extents are known at launch: the last index is distributed over the threads */
    WALK_REGISTERS /* as register tiles: Tile.spread */
} WalkKind;

/* How the elements of a statement are distributed over the threads of its instance */
typedef struct Distribution {
    WalkKind walk;
    int vector;   /* elements that a thread accesses at once */
    bool crooked; /* rows of some tensor are at no launch whole vectors */
    /* the value reads tensors that are written, only where the statement's condition holds */
    bool masks;
    /* a launch may decide that a copy of rows is distributed in another way (codegen/packed.c) */
    bool packs;
} Distribution;

/* A tensor whose base, strides, or both, must be multiples of `bytes` */
typedef struct WideTensor {
    int param, bytes;
    bool base, strides;
} WideTensor;

/* When vectors of global memory are aligned, and each is inside of its tensor or outside */
typedef struct Wide {
    bool any;         /* some access is MOVE_WIDE */
    const Expr *when; /* the same for all threads of the instance; NULL: always */
    WideTensor tensors[PROG_MAX_INDEXES]; /* and these, which only a launch knows */
    int tensor_count;
} Wide;

#define VECTOR_BYTES 16 /* of the widest load or store of a thread */
#define VECTOR_MOST  16 /* elements that it accesses or computes at once */

/* A copy between a `shared` tile and rows of a tensor, from their beginning on: where a launch has
 * rows without gaps, vectors of the tensor that belong to two rows (codegen/packed.c) */
typedef struct Packed {
    const Access *tile, *rows; /* NULL: the statement is no such copy */
    int64_t count, columns;    /* of the tile: rows, and the most elements of a row */
    int64_t pitch;             /* of the tile, in elements */
} Packed;

/* A statement that threads execute */
typedef struct Moves {
    WalkKind walk;
    const Expr *value;    /* of the target's widened type, including a compound assignment */
    const Scaled *scaled; /* NULL: no factor is taken out */
    bool bits;            /* a copy between equal types, without widening */
    bool crooked;         /* rows of some tensor are at no launch whole vectors */
    VEC(MovedRead) reads; /* of the value and of the target's subscripts */
    /* the value reads tensors that are written, only where the statement's condition holds */
    bool masks;
    MoveKind target;
    Wide wide;
    Packed packed;
    int vector, inner; /* elements at once, and their index; -1: none */
    int batch;         /* vectors that a thread has in flight */
    int rows, columns; /* indexes along an accumulator's; -1: others or none */
    int64_t total;     /* FLAT: number of elements */
    /* FLAT: number of rounds with one vector per thread. REGISTERS: along the spread `looping` */
    int64_t rounds;
    /* number of iterations that are emitted as a loop: FLAT: batches; REGISTERS: `unrolled` rounds
     * each */
    int64_t looped, unrolled;
    int looping;     /* REGISTERS: the spread whose rounds may be a loop; -1: none, one round */
    int64_t vectors; /* REGISTERS: of a thread, in all rounds */
    /* REGISTERS: by vector: bit s: only threads hold it whose part of spread s ends within its
     * extent; NULL: all threads hold all vectors */
    uint32_t *ends;
    /* with rows and columns, by vector: it and the next three are matrices of the same rows, so
     * that one instruction moves four; otherwise two */
    bool *quads;
} Moves;

/* An operand of matrix instructions; distances in bytes of shared memory */
typedef struct Matrix {
    bool in_memory;          /* otherwise in registers, and the rest is 0 */
    int swizzle;             /* as in Layout */
    int64_t leading, stride; /* offsets of the descriptor */
    int64_t step;            /* between instructions along the contraction, within a panel */
    /* number of instructions per panel; 0: the contraction is within one */
    int64_t panel_steps;
    int64_t panel; /* between panels */
    int64_t slab;  /* between slabs of 64 rows */
} Matrix;

typedef struct ContractionPlan {
    Matrix a, b;
    int sums; /* registers per thread for the accumulators of 64 rows */
} ContractionPlan;

typedef VEC(int) Handles; /* role->handles */

/* Of the rows and regions of one Code: of a role, or of a slice of it */
typedef struct RowsPlan {
    int *passes;    /* by row: the turn that is passed on after it; 0: none */
    bool *diverged; /* by region: lanes of a warp diverge in it, and enter it together */
    /* by row: a handle: the row arrives in place of a release of that stage, so the warp's
     * accesses to it must be complete; -1: none */
    int *signals;
    /* by region with diverged lanes: the handles of such rows in it, whose accesses are
     * completed before it */
    Handles *due;
    /* by tile: NULL, or for an accumulator that its first contraction clears, by row: its
     * registers must hold the zeros if no contraction was executed */
    bool **zeros;
    bool *clears;  /* by row: assigns zero to such an accumulator, by a predicate */
    bool *commits; /* by row: the last contraction of its group */
    Waits *waits;  /* by row: before it */
    Waits *joins;  /* by row, END of an IF: at the end of its second arm */
    Ahead **ahead; /* by row; NULL: none */
    /* by row: a row, the release of a stage whose last read it is, executed when the elements are
     * in registers; -1: none */
    int *releases;
    bool *released;                 /* by row: such a release */
    ContractionPlan **contractions; /* by row; NULL: no contraction */
    Scaled **scaled;                /* by row; NULL: no factor is taken out */
    Moves **moves;                  /* by row; NULL: not a statement of threads */
    /* by region, in a slice of skipped iterations: for a loop that acquires the same in each
     * iteration, how many stages, by pipe; NULL: its rows are emitted */
    int64_t **steps;
} RowsPlan;

/* Work in iterations of other instances */
typedef struct Skipped {
    /* a slice of the role: acquires, which advance cursors, and what decides about them */
    FlowCode *code;
    const RowsPlan *rows; /* of the slice */
    int grid;             /* its loop over the grid, -1: none */
} Skipped;

typedef struct TilePlan {
    /* `shared` */
    Layout layout;
    uint32_t offset; /* of instance 0's tile in the block's shared memory */
    uint32_t stride; /* bytes from one instance's tile to the next's */
    /* in registers */
    RegisterLayout held;
    bool unspread; /* a contraction into it was refused: its layout is unknown */
    int packed;    /* adjacent elements in a register: two of 16 bits, four 8-bit floats, or 1 */
    int64_t registers; /* of 32 bits, per thread */
} TilePlan;

/* How a statement is ordered with what its instance has accessed before. First it waits for: */
typedef struct RowOrder {
    bool fence;   /* a fence between proxies: the copy engine then sees what threads wrote */
    bool threads; /* the other threads of the instance */
    bool stores;  /* the instance's copies out of stages */
    /* after it a fence, and the threads synchronise: the copy engine may then read its target */
    bool publishes;
} RowOrder;

/* Of the stages that a role produces */
typedef struct StageOrder {
    /* by row: it accesses elements that other threads of the instance have accessed since they
     * synchronised */
    const bool *waits;
    const uint32_t *bytes; /* by pipe: that one instance's copies write to a stage */
} StageOrder;

typedef struct RolePlan {
    int first_warp;
    int registers;      /* setmaxnreg value of its warpgroup; 0: none */
    int tile_registers; /* most 32-bit registers per thread for its register tiles at once */
    size_t fullest;     /* the tile at whose declaration it holds these */
    bool accumulates;   /* some tile is held as matrix instructions hold accumulators */
    /* named barrier of instance 0 (instance k: barrier + k), for data that its threads share; 0:
     * none */
    int barrier;
    /* named barrier at which instance 0 waits for turn 1: for turn t of instance k it is tokens
     * + (t - 1) * instances + k */
    int tokens;
    bool direct;      /* its warps branch to it from the entry, otherwise from their warpgroup */
    int entered_with; /* direct: setmaxnreg at its entry; 0: none */
    bool drains;      /* waits for copies out of shared memory before the role ends */
    /* by End and pipe: fence.proxy.async before a release or arrival: this end accesses its
     * stages by ordinary accesses, the other end through the async proxy */
    bool *fenced[2];
    const TilePlan *tiles; /* by tile */
    StageOrder stages;
    const RowOrder *order; /* by row */
    const RowsPlan *rows;
    Skipped skipped; /* of a role in turn */
} RolePlan;

typedef struct FieldPlan {
    Layout layout;
    uint32_t offset; /* in the stage */
    uint32_t bytes;  /* of one tile, in an array rounded up to its alignment */
} FieldPlan;

typedef struct PipePlan {
    uint32_t offset, stride; /* of stage 0 in shared memory; bytes from stage to stage */
    /* Of the full barriers (END_PRODUCE) and of the empty ones (END_CONSUME) */
    uint32_t barriers[2];   /* offset of the first one in shared memory */
    uint32_t arrivals[2];   /* per phase */
    const char *reasons[2]; /* "1 (tensor copies of `load`) + 4 warps of `add`" */
    FieldPlan *fields;
} PipePlan;

/* a tensor map to encode; equal ones are shared */
typedef struct Map {
    int param;
    int rank;                     /* the tensor's axes, innermost first */
    Expr *extents[PROG_MAX_RANK]; /* elements */
    int64_t box[PROG_MAX_RANK];
    int swizzle;
    /* used by stores; otherwise by loads, never by both: see launch/manifest.h */
    bool stored;
    /* rows of all its copies are shorter than what L2 fetches at once, and the next ones are not
     * adjacent */
    bool narrow;
} Map;

typedef VEC(Map) Maps;

typedef enum RangeKind { RANGE_FULL, RANGE_EMPTY, RANGE_FIELD, RANGE_TILE } RangeKind;

/* A range of shared memory: `count` objects, `stride` bytes apart */
typedef struct Range {
    RangeKind kind;
    const char *pipe, *name; /* NULL: none */
    const char *note;        /* arrivals and their roles; the layout; the role */
    uint32_t offset, bytes, count, stride;
    uint32_t arrivals; /* of barriers */
} Range;

/* A warpgroup with several roles or idle warps, if setmaxnreg is used: sets its registers before
 * its warps diverge. */
typedef struct SharedGroup {
    int first_warp;
    int registers; /* setmaxnreg; 0: none */
    VEC(int) roles;
} SharedGroup;

typedef enum PassedKind {
    PASSED_MAP,     /* plan->maps */
    PASSED_POINTER, /* prog->params, a tensor */
    PASSED_STRIDE,  /* prog->params, a tensor; of one of its axes but the last */
    PASSED_EXTENT,  /* prog->symbols */
    PASSED_SCALAR,  /* prog->params */
    PASSED_COUNTER, /* of the tiles of a dynamic grid */
    PASSED_KINDS
} PassedKind;

typedef struct Passed {
    PassedKind kind;
    int index, bytes;
    int axis; /* of a stride */
} Passed;

typedef VEC(Passed) PassedList;

/* What a role does, in the order of its text: work.c. Loops and conditions contain later items. */
typedef struct Work {
    WorkKind kind;
    int role, parent; /* parent: the item that contains it, -1: none */
    int of;           /* ELSE: its IF */
    int local;        /* LOOP: its variable, -1: none */
    /* LOOP: its bounds; IF: `lo` is not 0 where it holds; NULL: data decide */
    Expr *lo, *hi;
    Expr *times;    /* multiplies the amount; NULL: nothing does */
    int param;      /* COPY_IN, COPY_OUT, LOAD, STORE: the tensor; otherwise -1 */
    int pipe;       /* WAIT, COPY_IN: of whose stage; otherwise -1 */
    int64_t amount; /* GRID: instances that execute a tile; others: in the unit of its kind */
    int64_t own;    /* COPY_IN: of the amount, what the block itself requests; others: the amount */
    int64_t pieces; /* instructions of the copy engine or matrix unit */
    bool bound;     /* LOOP, IF: a part may be left early, or iterations are filtered */
    Span span;
} Work;

/* In which order a sum adds: sums.c */
typedef struct SumPlan {
    const char *text; /* "`acc` of `math`: wgmma..m64n256k16.., 4 in a row, for 0 .. ceil(K, 64)" */
    /* why its order depends on more than its own extents; NULL: it does not */
    const char *why;
    bool threads; /* threads add, in an order that layouts decide; otherwise the matrix unit */
    Span span;
} SumPlan;

typedef struct Plan {
    bool complete; /* false: some error prevents it; only what passes before them derive */
    int warps;     /* of a block, including idle ones */
    /* registers per thread at launch, from which setmaxnreg raises or lowers; 0: no role uses
     * it */
    int launch_registers;
    /* what the assembler gives a thread at the entry, if any group changes its registers: the same,
     * or the target's most, which is no multiple of 8; otherwise 0 */
    int entry_registers;
    uint32_t shared_bytes;
    const PipePlan *pipes; /* by pipe */
    const RolePlan *roles; /* by role */
    Maps maps;
    PassedList arguments; /* of a launch, in their order */
    VEC(Range) memory;
    VEC(SharedGroup) groups;
    /* number of blocks of an SM that certainly fit, and the resource that limits it; up to
     * `most_blocks` fit if threads use fewer registers than the most that codegen allows */
    int64_t blocks, most_blocks;
    const char *limited;
    int predicted;      /* registers per thread, no fewer than the assembler needs */
    int most_registers; /* that it may use: on average, with setmaxnreg */
    int64_t in_flight;  /* bytes of a block's stages that tensor copies fill */
    int64_t loaded;     /* bytes of tensors that a block's threads load at once */
    int64_t *divisors;  /* by symbol: divides it in every launch; 1 or more */
    int64_t *least;     /* by symbol: no launch has a smaller one; of scalars INT64_MIN */
    VEC(Work) work;     /* roles in order */
    VEC(SumPlan) sums;  /* of floating-point numbers, roles in order */
} Plan;

/* Makes the plan of the program, without facts. */
void plan_open(Arena *arena, Prog *prog);
/* Adds a tile to a role: memory that a derived fact needs. */
void plan_add_tile(Arena *arena, Prog *prog, Role *role, RoleTile tile);

/* Needs all other facts, and no errors except those about deadlocks and races (P0450 and later).
 * Completes the plan. */
void plan_make(Arena *arena, Prog *prog);

/* The part of a role, and of a pipe, of the program */
static inline const RolePlan *plan_role(const Prog *prog, const Role *role) {
    return &prog->plan->roles[role - prog->roles.items];
}
static inline const PipePlan *plan_pipe(const Prog *prog, const Pipe *pipe) {
    return &prog->plan->pipes[pipe - prog->pipes.items];
}

static inline const TilePlan *plan_tile(const Prog *prog, const Role *role, int tile) {
    return &plan_role(prog, role)->tiles[tile];
}

/* An expression over symbols is at least this in every launch; INT64_MIN: unknown */
int64_t plan_at_least(const Plan *plan, const Expr *expr);
/* Divides an expression over symbols in every launch; 1: nothing is known */
int64_t plan_divisor(const Plan *plan, const Expr *expr);

/* True if the extent counts rows of a result, whose bits --invariant keeps (sums.c) */
bool sums_is_row(const Prog *prog, int symbol);

int64_t plan_boxes(const Plan *plan, const BoxCopy *copy); /* number of instructions: one per box */

/* The wait of a row in one copy; `values`: of loop variables, by local. NULL: none */
const Wait *plan_wait(const FlowCode *code, const Waits *waits, int at, const int64_t *values);

/* The layout of a tile in shared memory as text; `inner`: its last extent */
const char *plan_layout(Arena *arena, const Prog *prog, const Layout *layout, Element type,
                        int64_t inner);
MoveKind plan_move(const Moves *moves, const Expr *read); /* of one of its reads */

/* Distance in bytes from an operand's first matrix to that of a step along the contraction and
 * of a slab of 64 rows */
int64_t plan_matrix_at(const Matrix *matrix, int step, int slab);

void plan_print(const Prog *prog, Arena *arena, Str *out); /* --emit=plan */

/* What was derived and why, for a reader, as text and as JSON, both in the arena of `text`
 * (docs/report.md) */
void report_print(const Prog *prog, Str *text, Str *json);

/* ---- private to the floor -------------------------------------------------------------------- */

static inline bool plan_contracts(const Row *row) {
    return row->kind == ROW_TILE && row->tile->class == TILE_MMA;
}

/* true if it signals as a release of its stage does */
bool plan_unsafe_signals(const Unsafe *what);
/* Marks, by index in the role, the register tiles that an ordinary row reads or writes and the
 * `shared` tile that it writes. */
void plan_names(Arena *arena, const Row *row, bool *tiles);
/* True if it assigns to all elements of a register tile, each at an index of its own */
bool plan_assigns_all(const Role *role, const Tile *tile);
/* True if it reads a tensor that the kernel also writes */
bool plan_is_written(const Prog *prog, const Expr *expr);
int64_t plan_elements(const Tile *tile); /* that a statement writes; its extents are constant */
/* The value that a statement of threads computes for an element, including a compound assignment */
Expr *plan_value(Arena *arena, const Tile *tile);
RowsPlan *plan_rows(Arena *arena, FlowCode *code);
void plan_scaled(Arena *arena, const FlowCode *code, RowsPlan *plan);
void plan_control(Arena *arena, const FlowCode *code, RowsPlan *plan);
void plan_waits(Arena *arena, FlowCode *code, RowsPlan *plan);
void plan_ahead(Arena *arena, const FlowCode *code, RowsPlan *plan);    /* needs waits and turns */
void plan_releases(Arena *arena, const FlowCode *code, RowsPlan *plan); /* needs reads ahead */
void plan_contractions(Arena *arena, const FlowCode *code, RowsPlan *plan);
/* plan_wide.c. True if `vector` elements along index `inner` of an access to a tensor, from a
 * multiple of it, are adjacent and can be aligned */
bool wide_fits(const Prog *prog, const Access *access, int inner, int vector);
/* Adds what the access of the statement needs. False: too many tensors */
bool wide_require(Arena *arena, const Prog *prog, const Tile *tile, const Access *access,
                  int vector, Wide *wide);
/* The copy of FLAT, if rows can be packed */
Packed wide_packed(const Prog *prog, const Role *role, const Tile *tile, const Moves *moves);
void plan_moves(Arena *arena, const FlowCode *code, RowsPlan *plan);
/* By each `step` elements of a thread: the first ones at which these indexes are the same */
int *plan_first(Arena *arena, const RegisterLayout *layout, uint32_t indexes, int step);
Skipped plan_skipped(Arena *arena, const FlowCode *code);
void plan_block(Arena *arena, const Prog *prog); /* sets what concerns the whole block */
void plan_occupancy(Arena *arena, const Prog *prog, Plan *plan); /* needs shared memory and rows */
void plan_work(Arena *arena, const Prog *prog);                  /* needs rows */
void plan_sums(Arena *arena, const Prog *prog);
void plan_least(Arena *arena, const Prog *prog);
/* The expression over what a launch knows; NULL: data decide it, or it is large */
Expr *plan_launched(Arena *arena, FlowCode *code, int at, Expr *expr);
void plan_print_row(const FlowCode *code, const RowsPlan *plan, int at, Str *out);
PassedList resources_arguments(Arena *arena, const Prog *prog);

#endif
