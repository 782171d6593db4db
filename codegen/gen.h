/* What the parts of codegen/ share: the generator's state and each part's entry points. Private to the floor.
 *
 *   kernel.c   entry, prologue, role dispatch        control.c  loops, branches, leaving, scalars
 *   pipes.c    acquire, release, watchdog            copies.c   tensor, bulk and per-lane copies
 *   barriers.c barriers of stages, instances, warps  waits.c    waits for matrix instructions and stores
 *   maps.c     elementwise statements                mma.c      matrix instructions    ahead.c  reads before their waits
 *   zero.c     accumulators that begin as zeros
 *   values.c   expressions to registers              matrix_moves.c  stmatrix, ldmatrix
 *   turn.c     instances that take turns              registers.c  register tiles
 *   cluster.c  blocks that run together: who is who, multicast, remote arrivals
 *   unsafe.c   what `unsafe` says
 *   layout.c   coordinates to addresses              manifest.c formulas, the manifest   report.c  --report */
#ifndef PIPEC_GEN_H
#define PIPEC_GEN_H

#include "codegen/codegen.h"
#include "codegen/ptx.h"
#include "derive/plan.h"

/* A value: a constant or a register. F32, I32 and U32 are in .b32, 64-bit integers in .b64, BOOL in a predicate. */
typedef struct Value {
    Element type;
    Reg reg;         /* REG_NONE: a constant */
    int64_t integer; /* constants of integer type and BOOL */
    double number;   /* constants of type F32 */
} Value;

/* A coordinate: reg + add. Where `max` is known, reg is non-negative as well, and divisions by constant extents turn into
 * immediates (lin_divide). */
typedef struct Lin {
    Reg reg; /* .b32, or REG_NONE */
    int64_t add;
    int64_t multiple; /* divides reg; 1 where nothing is known */
    int64_t max;      /* 0 <= reg <= max; -1: unknown */
} Lin;

/* Where an expression is evaluated: the values of the statement's indexes, and what was already computed there. */
typedef struct Point Point;

typedef struct RoleState RoleState;
typedef struct Early Early;     /* values that were read before a wait (ahead.c) */

/* A thread's part of the coordinates of a spread */
typedef struct ThreadPart {
    const Spread *spread;
    Lin at;
    struct ThreadPart *next;
} ThreadPart;
/* What the blocks of a cluster know of each other, computed at entry; PTX_NONE where nothing asks for it. */
typedef struct ClusterRegs {
    Reg along[PROG_MAX_RANK];      /* .b32: place of the block along each axis */
    Reg part[1 << PROG_MAX_RANK];  /* .b32, by set of axes: which of the blocks along them it is */
    Reg group[1 << PROG_MAX_RANK]; /* .b32: a bit for each of those blocks, by its number in the cluster */
    Reg mask[1 << PROG_MAX_RANK];  /* .b16: the same, as multicast takes it */
} ClusterRegs;

typedef struct Gen {
    Arena *arena;
    const Prog *prog;
    const CodegenOptions *options;
    Manifest *manifest;
    Ptx *ptx;
    /* loaded in the prologue, read everywhere */
    Reg shared;    /* .b32: address of the block's shared memory */
    Reg warp;      /* .b32: warp in the block, uniform */
    Reg *symbols;  /* .b32, one a symbol of prog */
    Reg *scalars;  /* .b32, one a floating point parameter */
    Reg *pointers; /* .b64 global addresses, one a parameter; REG_NONE without by_pointer */
    Reg watchdog;  /* .b64 global address of the WatchdogArea; REG_NONE without */
    Reg *maps;     /* .b64 generic addresses of tensor maps */
    ClusterRegs cluster;
    RoleState *role; /* the role being generated */
} Gen;

/* The two registers of a cursor: next stage, and the parity to wait for. */
typedef struct Cursor {
    Reg stage, parity;
} Cursor;

/* The stages that a late set (flow/code.h) has not yet released. Others of the ring may lie between them. */
typedef struct LateRegs {
    Reg *stages; /* .b32 stage indexes, as many as its lag, oldest first; the last `held` of them count */
    Reg held;
} LateRegs;

/* Where rows leave a region to */
typedef struct Exits {
    int leave_label;    /* after it */
    int continue_label; /* loops: the next iteration */
} Exits;

struct RoleState {
    const Role *role;
    int number;         /* index in prog->roles */
    Reg rank;           /* .b32 instance, REG_NONE with one instance */
    Reg thread;         /* .b32 thread of the instance; REG_NONE in a one-lane role */
    Reg leader;         /* predicate: the one lane of the instance that issues bulk work; REG_NONE in a one-lane role */
    Reg arriver;        /* predicate: lane 0 of each warp; REG_NONE in a one-lane role */
    Cursor *cursors[2]; /* by End, one a pipe */
    Reg *reached; /* one a pipe: predicate, it arrives at the block of its lane's number; in a one-lane role .b32, a bit for each */
    Reg *handles;       /* .b32 stage index of each handle */
    Reg *hints;                   /* predicates: was the stage ready? */
    Value *locals;      /* register of each scalar local, or its constant while its loop is unrolled */
    Reg **tiles;        /* registers of each register tile, as layout_number counts them */
    Reg *filled;        /* of each tile: predicate, its registers hold what it says (zero.c); REG_NONE: always */
    const FlowCode *code;
    const Plan *plan;
    Exits *exits;       /* by region */
    LateRegs *lates;    /* by late set */
    int end_label;
    int expired_label; /* watchdog: records and traps */
    Reg expired_site, expired_stage;
    bool any_wait;
    bool apart;         /* under control that differs between lanes: nothing waits for a whole warp */
    int64_t *unrolled; /* by local: its value, while its loop is unrolled */
    Reg until;         /* .b32, of a role in turn: iterations of the grid until the next of its own; else REG_NONE */
    ThreadPart *parts; /* of the role's register tiles */
};

/* ---- values.c ---------------------------------------------------------------------------------------------------- */

struct Point {
    Lin indexes[PROG_MAX_INDEXES];
    Point *outer;        /* shares what does not depend on `own` */
    uint32_t own;        /* indexes in which this point differs from `outer` */
    struct Memory *known; /* values already here; NULL: none */
};

Value value_integer(Element type, int64_t integer);
Value value_reg(Element type, Reg reg);
Reg value_in_reg(Gen *gen, Value value); /* constants are moved into a register */
Operand value_operand(Value value);
RegClass class_of(Element type);
const char *suffix_of(Element type); /* "s32", "f32", ...: of a value's (widened) type */
Value eval(Gen *gen, Point *point, const Expr *expr);
Value eval_scalar(Gen *gen, const Expr *expr);                /* no indexes in it */
Reg eval_condition(Gen *gen, Point *point, const Expr *expr); /* a predicate register */
Point *point_home(Point *point, const Expr *expr);            /* the outermost that shares its value */
void point_know(Gen *gen, Point *point, const Expr *expr, Value value);
bool point_knows(const Point *point, const Expr *expr, Value *out);
void point_share(Gen *gen, Point *point, const Point *from, const Expr *expr); /* what is known there, where it is not known here */
/* Memory form: `count` values of `type` (1, or a vector's) to and from the bits of 1, 2, 4 or more .b32/.b16 registers. */
void widen_words(Gen *gen, Element type, const Reg *words, int count, Value *out);
int narrow_words(Gen *gen, Element type, const Value *values, int count, Reg *words); /* how many .b32 words */
int pack_words(Gen *gen, Element type, const Reg *stored, int count,
               Reg *words); /* the same of stored bits, as read_bits gives them */
Reg read_bits(Gen *gen, Point *point, const Access *access);
Value widen_one(Gen *gen, Element type, Reg loaded); /* loaded: .b16, .b32 or .b64 as load_suffix says */
Reg narrow_one(Gen *gen, Element type, Value value);
const char *memory_suffix(Element type); /* "b8", "b16", "b32", "b64" */
RegClass memory_class(Element type);     /* b8 is moved through .b16 */
void local_set(Gen *gen, int local, Value value); /* a `let` keeps a constant: nothing is emitted */

/* ---- layout.c ---------------------------------------------------------------------------------------------------- */

Lin lin_const(int64_t value);
Lin lin_reg(Reg reg, int64_t multiple, int64_t max);
Lin lin_of(Value value); /* an I32/U32 value */
Lin lin_add(Gen *gen, Lin a, Lin b);
Lin lin_scale(Gen *gen, Lin a, int64_t by);
void lin_divide(Gen *gen, Lin a, int64_t by, Lin *quotient, Lin *rest);
Reg lin_in_reg(Gen *gen, Lin a);
/* Coordinate `axis` of an access at a point: by its affine form where it has one, else by its expression. */
Lin access_coordinate(Gen *gen, Point *point, const Access *access, int axis);
/* Address in shared memory of an element before its tile's swizzle: where copies and matrix descriptors start. */
Lin shared_linear(Gen *gen, Point *point, const Access *access);
/* Address in shared memory of an element of a stage field or shared tile. */
Operand shared_address(Gen *gen, Point *point, const Access *access);
/* Extents, element type and layout of the tile that an access names (stage, shared, register). */
typedef struct TileShape {
    Element type;
    int rank;
    const int64_t *extents;
    Layout layout;
} TileShape;
TileShape access_shape(const Gen *gen, const Access *access);
Lin shared_base(Gen *gen, const Access *access,
                Point *point); /* of the tile itself: block address, stage, field, element, instance */
/* Global memory: a predicate that an element lies inside (REG_NONE: certainly), and its address. */
Reg global_inside(Gen *gen, Point *point, const Access *access);
Operand global_address(Gen *gen, Point *point, const Access *access);

/* ---- barriers.c ----------------------------------------------------------------------------- */

Operand stage_barrier(Gen *gen, const Pipe *pipe, bool full, Reg stage); /* [reg + offset] */
void barrier_try(Gen *gen, Reg done, Operand barrier, Reg parity);
void warp_join(Gen *gen);
void warp_sync(Gen *gen);        /* joins a warp, but in a one-lane role */
void instance_barrier(Gen *gen); /* joins all threads of the instance */
/* Instance k of the role executes `op` at named barrier first + (k + shift) % instances. */
void instances_barrier(Gen *gen, const char *op, int first, int shift, int threads);

/* ---- waits.c -------------------------------------------------------------------------------- */

void wait_before(Gen *gen, int at);  /* a row; nothing where none is planned */
void wait_at_join(Gen *gen, int at); /* END of an IF: at the end of its second arm */
bool waits_in_flight(const Gen *gen, int at); /* is something that the row touches in flight? */
void wait_for_stores(Gen *gen, const Tile *tile); /* where its order asks for it */

static inline int row_number(const Gen *gen, const Row *row) {
    return (int)(row - gen->role->code->rows.items);
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

void gen_rows(Gen *gen, int from, int to); /* control.c: rows from .. to, `to` not included */
void gen_role(Gen *gen, int number);       /* control.c */

/* unsafe.c */
void gen_unsafe(Gen *gen, const Row *row);
void apart_open(Gen *gen, int region);  /* where a region begins */
void apart_close(Gen *gen, int region); /* after it */

void pipe_ask(Gen *gen, const Row *row);
void pipe_acquire(Gen *gen, const Row *row); /* pipes.c */
void pipe_release(Gen *gen, const Row *row); /* RELEASE or KEEP */
void pipe_settle(Gen *gen, int handle);  /* an arrival may follow: the warp is done with what it has done to the stage */
void pipe_wait(Gen *gen, const Pipe *pipe, bool full, Reg stage, Reg parity, Span span);
void pipe_step(Gen *gen, End end, int pipe); /* the cursor */
void pipe_drain(Gen *gen, int late);                                     /* releases what the late set still holds */
void pipe_expired(Gen *gen);                                             /* the watchdog's end of the role */
void pipe_finish(Gen *gen);                                              /* bulk stores are complete before exit */
void pipe_skip(Gen *gen, int pipe, Reg stages);                          /* steps the cursor; stages REG_NONE: by one */
void cluster_open(Gen *gen);      /* cluster.c: at entry, who this block is */
void cluster_start(Gen *gen);     /* joins all threads: of the cluster where its blocks talk */
void cluster_return(Gen *gen);    /* `ret`, once no block touches another's memory */
void cluster_open_role(Gen *gen); /* whom its threads arrive at */
void cluster_arrive_each(Gen *gen, int pipe, Operand barrier); /* the same by every thread that gets here */
void cluster_arrive(Gen *gen, int pipe, Reg stage); /* at the empty barrier of all whose copies reach this block */

void turns_begin(Gen *gen);                 /* a role starts: the first turn is given out */
void turns_end(Gen *gen);                   /* and ends: the last one is taken back */
void turn_open(Gen *gen, const Row *row);   /* waits for the turn */
bool turn_passes_after(const Gen *gen, int at); /* is a turn passed on after the row? */
void turn_pass_after(Gen *gen, int at);         /* does it; nothing elsewhere */
int turn_iteration(Gen *gen); /* in turn: jumps to the label in the iterations of other instances; else -1 */
void turn_skipped(Gen *gen, int label); /* and what is done in those */

const char *mma_instruction(Arena *arena, const Mma *mma); /* its name */
void gen_mma(Gen *gen, const Row *row); /* mma.c */

/* zero.c: accumulators that their first matrix instruction clears */
void zero_open(Gen *gen);                       /* at the role's begin */
bool zero_assigned(Gen *gen, const Row *row);   /* the row assigns zero to such a tile: nothing else is to be done for it */
void zero_filled(Gen *gen, int tile);           /* after a contraction into a tile */
void zero_settle(Gen *gen, const Row *row);     /* before any other row: what it names is in the registers */

/* One instruction's matrices: they begin at a row and column of the warpgroup's accumulator; `row` and `column` are the indexes along them. */
typedef struct MatrixPlace {
    bool transposed; /* its columns are contiguous in memory */
    int row, column;
    int64_t at_row, at_column;
} MatrixPlace;

/* matrix_moves.c */
void matrix_store(Gen *gen, Point *statement, const Access *access, const MatrixPlace *place, const Reg *words,
                  int count);
void matrix_load(Gen *gen, Point *statement, const Access *access, const MatrixPlace *place, Reg *words, int count);

void gen_tile(Gen *gen, const Row *row);    /* copies.c */
void gen_prefetch(Gen *gen, const Row *row);
void gen_map(Gen *gen, const Row *row);     /* maps.c */
void gen_lanes(Gen *gen, const Row *row);   /* maps.c */

/* ---- registers.c ------------------------------------------------------------------------------------------------- */

void registers_open(Gen *gen);                        /* at a role's beginning */
Lin registers_thread(Gen *gen, const Spread *spread); /* the thread's part of its coordinate */
Reg registers_repeat(Gen *gen,
                     const RegisterLayout *layout); /* a predicate of threads that others repeat; none: REG_NONE */
/* The register of an element, neighbours of a vector behind it: where the statement's registers are, and what the subscripts add */
const Reg *registers_slot(Gen *gen, const Access *access, const RegisterLayout *statement, const int64_t *coordinates);

/* ahead.c: evaluates before a wait, at these points, what the plan lists. */
Early *ahead_read(Gen *gen, const Ahead *ahead, Point **points, size_t count);
const Ahead *ahead_of(const Gen *gen, int at); /* NULL: nothing is, in this copy of the row */
void ahead_know(const Early *early, Point *point); /* what was read for it is known there */

void manifest_fill(Arena *arena, const Prog *prog, const CodegenOptions *options,
                   Manifest *manifest); /* manifest.c: all but marks and waits */

#endif
