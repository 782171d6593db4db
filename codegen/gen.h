/* codegen, private: the generator's state and the functions of its files.
 *
 *   kernel.c    entry, prologue, role dispatch
 *   control.c   loops, branches, leaves, scalars
 *   pipes.c     acquire, release, watchdog
 *   copies.c    tensor, bulk and per-lane copies
 *   barriers.c  barriers of stages, instances, warps
 *   waits.c     waits for matrix instructions and stores
 *   maps.c      elementwise statements, and the thread's part of reductions
 *   chunks.c    the vectors of elements of these (chunks.h)
 *   functions.c functions of several instructions
 *   bits.c      random numbers
 *   packed.c    rows of any length by vectors
 *   vectors.c   adjacent elements in memory
 *   reductions.c  reductions between threads
 *   scans.c     scans between threads
 *   mma.c       matrix instructions
 *   ahead.c     reads before waits
 *   zero.c      accumulators that begin as zeros
 *   values.c    expressions to registers
 *   matrix_moves.c  stmatrix, ldmatrix
 *   turn.c      instances that take turns
 *   registers.c register tiles
 *   cluster.c   clusters: positions, multicast, remote arrivals
 *   coordinates.c  coordinates of tiles
 *   dynamic.c   tiles of a dynamic grid
 *   unsafe.c    `unsafe` statements
 *   layout.c    coordinates to addresses
 *   manifest.c  formulas, the manifest */
#ifndef PIPEC_GEN_H
#define PIPEC_GEN_H

#include "codegen/codegen.h"
#include "codegen/ptx.h"
#include "derive/plan/linear.h"
#include "derive/plan.h"

/* A value: a constant or a register. F32, I32 and U32 are in .b32, 64-bit integers in .b64, BOOL
 * in a predicate. */
typedef struct Value {
    Element type;
    Reg reg;         /* REG_NONE: a constant */
    int64_t integer; /* constants of integer type and BOOL */
    double number;   /* constants of type F32 */
} Value;

/* A coordinate: its register, its constant, and what is known of the register */
typedef struct Lin {
    Reg reg; /* .b32; REG_NONE: a constant */
    Linear is;
} Lin;

/* The point at which an expression is evaluated: the values of the statement's indexes, and the
 * values already computed there. */
typedef struct Point Point;

typedef struct RoleState RoleState;
typedef struct Early Early; /* values that were read before a wait (ahead.c) */

/* A thread's contribution to the coordinates of a spread */
typedef struct ThreadPart {
    const Spread *spread;
    Lin at;
    struct ThreadPart *next;
} ThreadPart;
/* Positions and masks of the blocks of a cluster, computed at entry; PTX_NONE if unused. */
typedef struct ClusterRegs {
    Reg along[PROG_MAX_RANK]; /* .b32: position of the block along each axis */
    /* .b32, by set of axes: index of this block among those along them */
    Reg part[1 << PROG_MAX_RANK];
    Reg group[1 << PROG_MAX_RANK]; /* .b32: mask of those blocks, by rank in the cluster */
    Reg mask[1 << PROG_MAX_RANK];  /* .b16: the same, for multicast */
} ClusterRegs;

typedef struct Gen {
    Arena *arena;
    const Prog *prog;
    const Plan *plan;
    const CodegenOptions *options;
    Manifest *manifest;
    Ptx *ptx;
    /* Loaded in the prologue */
    Reg shared;    /* .b32: address of the block's shared memory */
    Reg warp;      /* .b32: warp in the block, uniform */
    Reg *symbols;  /* .b32, one per symbol of prog */
    Reg *scalars;  /* .b32, one per floating point parameter */
    Reg *pointers; /* .b64 global addresses, one per parameter; REG_NONE without by_pointer */
    /* .b32 or .b64, in elements, by parameter * PROG_MAX_RANK + axis; REG_NONE of the last axis,
     * and without by_pointer */
    Reg *strides;
    Reg watchdog; /* .b64 global address of the WatchdogArea; REG_NONE without */
    Reg counter;  /* .b64 global address of the counter of tiles; REG_NONE without */
    Reg *maps;    /* .b64 generic addresses of tensor maps */
    ClusterRegs cluster;
    RoleState *role; /* the current role */
} Gen;

/* The two registers of a cursor: next stage, and the parity to wait for. */
typedef struct Cursor {
    Reg stage, parity;
} Cursor;

/* Stages that a late set (flow/code.h) has not released yet. Other stages of the ring may be
 * between them. */
typedef struct LateRegs {
    /* .b32 stage indexes, as many as its lag, oldest first; only the last `held` are valid */
    Reg *stages;
    Reg held;
} LateRegs;

/* Targets of leaves of a region */
typedef struct Exits {
    int leave_label;    /* after it */
    int continue_label; /* loops: the next iteration */
} Exits;

struct RoleState {
    const Role *role;
    int number; /* index in prog->roles */
    const RolePlan *plan;
    Reg rank;   /* .b32 rank of the instance, REG_NONE with one instance */
    Reg thread; /* .b32 thread of the instance; REG_NONE in a one-lane role */
    /* predicate: the lane of the instance that issues bulk copies; REG_NONE in a one-lane role */
    Reg leader;
    Reg arriver;        /* predicate: lane 0 of each warp; REG_NONE in a one-lane role */
    Cursor *cursors[2]; /* by End, one per pipe */
    /* one per pipe: predicate, this thread arrives at the block of its lane's number; in a
     * one-lane role .b32 mask */
    Reg *reached;
    Reg *handles; /* .b32 stage index of each handle */
    Reg *hints;   /* predicates: the stage was ready */
    /* register of each scalar local, or its constant while its loop is unrolled */
    Value *locals;
    Reg **tiles; /* registers of each register tile, indexed by layout_number */
    /* of each tile: predicate, its registers hold their value (zero.c); REG_NONE: always */
    Reg *filled;
    /* of the rows that are emitted: the role's, or those of skipped iterations */
    const FlowCode *code;
    const RowsPlan *rows;
    Exits *exits;    /* by region */
    LateRegs *lates; /* by late set */
    int end_label, idle_label;
    int expired_label; /* watchdog: records and traps */
    Reg expired_site, expired_stage;
    bool any_wait;
    bool diverged;     /* in control that diverges between lanes: no row may synchronise the warp */
    int64_t *unrolled; /* by local: its value while its loop is unrolled */
    Reg tile_number;   /* .b32, in a dynamic grid: the number taken last, or to be published */
    /* .b32, of a role in turn: iterations of the grid until the instance's next one; otherwise
     * REG_NONE */
    Reg until;
    bool skips; /* emits an iteration of another instance: an acquire only advances its cursor */
    ThreadPart *parts; /* for the role's register tiles */
    /* .b32: the half of the memory for partial results that the next exchange uses; the sum of the
     * addresses of both */
    Reg partials, partials_sum;
};

/* ---- values.c -------------------------------------------------------------------------------- */

struct Point {
    Lin indexes[PROG_MAX_INDEXES];
    Point *outer;         /* shares values that do not depend on `own` */
    uint32_t own;         /* indexes in which this point differs from `outer` */
    struct Memory *known; /* values already computed; NULL: none */
    Reg mask;             /* predicate of reads of tensors that are written; PTX_NONE: all */
};

Value value_integer(Element type, int64_t integer);
Value value_reg(Element type, Reg reg);
Reg value_in_reg(Gen *gen, Value value); /* moves constants to a register */
Operand value_operand(Value value);
RegClass class_of(Element type);
const char *suffix_of(Element type); /* "s32", "f32", ...: of the value's (widened) type */
Reg gen_expm1(Gen *gen, Reg x);
Reg gen_sine(Gen *gen, Reg x, bool is_cosine); /* sine.c: of exact(...) */
Reg gen_power(Gen *gen, Reg x, Reg y);         /* power.c */
Reg gen_log1p(Gen *gen, Reg x);
Reg gen_erf(Gen *gen, Reg x);
/* bits.c: `random_bits`, and `random` of its word */
Reg gen_random_bits(Gen *gen, Value seed, Value position);
Reg gen_random(Gen *gen, Reg word);
Value eval(Gen *gen, Point *point, const Expr *expr);
Value eval_scalar(Gen *gen, const Expr *expr);                /* contains no indexes */
Reg eval_condition(Gen *gen, Point *point, const Expr *expr); /* a predicate register */
/* the outermost point that shares the expression's value */
Point *point_home(Point *point, const Expr *expr);
void point_know(Gen *gen, Point *point, const Expr *expr, Value value);
bool point_knows(const Point *point, const Expr *expr, Value *out);
/* copies a value known at `from`, unless it is known at the point */
void point_share(Gen *gen, Point *point, const Point *from, const Expr *expr);
/* Memory form: converts `count` values of `type` (1, or a vector's) to and from the bits of 1,
 * 2, 4 or more .b32/.b16 registers. */
void widen_words(Gen *gen, Element type, const Reg *words, int count, Value *out);
/* how many .b32 words */
int narrow_words(Gen *gen, Element type, const Value *values, int count, Reg *words);
int pack_words(Gen *gen, Element type, const Reg *stored, int count,
               Reg *words); /* the same of stored bits, as read_bits gives them */
Reg read_bits(Gen *gen, Point *point, const Access *access);
/* the predicate that the element is inside of its tensor and not masked; PTX_NONE: always */
Reg read_guard(Gen *gen, Point *point, const Access *access);
/* loaded: .b16, .b32 or .b64 as load_suffix says */
Value widen_one(Gen *gen, Element type, Reg loaded);
/* of a value that has the type's precision already, if it is an 8-bit float */
Reg narrow_one(Gen *gen, Element type, Value value);
/* float8.c: e4m3 and e5m2 */
bool is_float8(Element type);
Reg float8_saturated(Gen *gen, Element type, Reg value); /* a cast: in the low byte of .b16 */
Reg float8_narrowed(Gen *gen, Element type, Reg value);
int float8_words(Gen *gen, Element type, const Reg *values, int count, Reg *words);
Reg float8_widened(Gen *gen, Element type, Reg pair, int which); /* pair: .b16 */
const char *memory_suffix(Element type);                         /* "b8", "b16", "b32", "b64" */
RegClass memory_class(Element type);                             /* b8 uses .b16 */
/* a `let` keeps a constant: emits nothing */
void local_set(Gen *gen, int local, Value value);

/* ---- layout.c -------------------------------------------------------------------------------- */

Lin lin_const(int64_t value);
Lin lin_reg(Reg reg, int64_t multiple, int64_t max);
Lin lin_of(Value value); /* an I32/U32 value */
Lin lin_add(Gen *gen, Lin a, Lin b);
Lin lin_scale(Gen *gen, Lin a, int64_t by);
void lin_divide(Gen *gen, Lin a, int64_t by, Lin *quotient, Lin *rest);
Reg lin_in_reg(Gen *gen, Lin a);
/* Coordinate `axis` of an access at a point: from its affine form if it has one, otherwise from
 * its expression. */
Lin access_coordinate(Gen *gen, Point *point, const Access *access, int axis);
/* Address in shared memory of an element before the swizzle: the start of copies and matrix
 * descriptors. */
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
/* of the tile itself: block address, stage, field, element, instance */
Lin shared_base(Gen *gen, const Access *access, Point *point);
/* The predicate that a coordinate which is not negative is below an expression over symbols, and
 * *known: it certainly is. REG_NONE: the coordinate may be negative. */
Reg lin_below(Gen *gen, Lin a, const Expr *limit, bool *known);
/* Global memory: a predicate that an element is inside (REG_NONE: proved), and its address. */
Reg global_inside(Gen *gen, Point *point, const Access *access);
Operand global_address(Gen *gen, Point *point, const Access *access);

/* Instructions that only some targets have are emitted only after asking for their capability. */
static inline bool target_has(const Gen *gen, Capability capability) {
    return gen->prog->target->has[capability];
}

/* ---- barriers.c ------------------------------------------------------------------------------ */

Operand stage_barrier(Gen *gen, const Pipe *pipe, bool full, Reg stage); /* [reg + offset] */
void barrier_test(Gen *gen, Reg done, Operand barrier, Reg parity);      /* does not wait */
/* may suspend the thread for a while; in a loop */
void barrier_try(Gen *gen, Reg done, Operand barrier, Reg parity);
void warp_join(Gen *gen);
void warp_sync(Gen *gen);        /* synchronises a warp, except in a one-lane role */
void instance_barrier(Gen *gen); /* synchronises all threads of the instance */
/* Instance k of the role executes `op` at named barrier first + (k + shift) % instances. */
void instances_barrier(Gen *gen, const char *op, int first, int shift, int threads);

/* ---- waits.c --------------------------------------------------------------------------------- */

void wait_before(Gen *gen, int at);  /* of a row; nothing if none is planned */
void wait_at_join(Gen *gen, int at); /* END of an IF: at the end of its second arm */
/* true if something that the row accesses is in flight */
bool waits_in_flight(const Gen *gen, int at);
/* What orders the statement of the row within its instance (RowOrder) */
void order_before(Gen *gen, const Row *row);
void order_after(Gen *gen, const Row *row);

static inline int row_number(const Gen *gen, const Row *row) {
    return (int)(row - gen->role->code->rows.items);
}

/* ---- other files ----------------------------------------------------------------------------- */

void gen_rows(Gen *gen, int from, int to); /* control.c: rows from .. to, `to` exclusive */
void gen_role(Gen *gen, int number);       /* control.c */

/* unsafe.c */
void gen_unsafe(Gen *gen, const Row *row);
void diverged_open(Gen *gen, int region);  /* at the beginning of a region */
void diverged_close(Gen *gen, int region); /* after it */

void pipe_ask(Gen *gen, const Row *row);
void pipe_acquire(Gen *gen, const Row *row); /* pipes.c */
void pipe_release(Gen *gen, const Row *row); /* RELEASE or KEEP */
/* an arrival may follow: the warp's accesses to the stage are complete */
void pipe_settle(Gen *gen, int handle);
void pipe_wait(Gen *gen, const Pipe *pipe, bool full, Reg stage, Reg parity, Span span);
void pipe_step(Gen *gen, End end, int pipe); /* the cursor */
void pipe_drain(Gen *gen, int late);         /* releases the stages that the late set holds */
void pipe_expired(Gen *gen);                 /* end of the role by the watchdog */
void pipe_finish(Gen *gen);                  /* waits for bulk stores before exit */
/* waits until no other block accesses what the role produced */
void pipe_leave(Gen *gen);
void pipe_skip(Gen *gen, int pipe, Reg stages); /* advances the cursor; stages REG_NONE: by one */
void cluster_open(Gen *gen);                    /* cluster.c: at entry, positions of this block */
/* synchronises all threads, of the cluster if its blocks share memory */
void cluster_start(Gen *gen);
void cluster_return(Gen *gen);    /* `ret`, after all accesses to other blocks' memory */
void cluster_open_role(Gen *gen); /* blocks at which the role's threads arrive */
/* true if the role fills stages of the pipe for other blocks too; if it waits for them at its end
 */
bool cluster_fills(const Gen *gen, int role, int pipe);
bool cluster_waits(const Gen *gen, int role);
void cluster_arrive_each(Gen *gen, int pipe, Operand barrier); /* by every thread that reaches it */
/* at the empty barrier of all blocks whose copies reach this one */
void cluster_arrive(Gen *gen, int pipe, Reg stage);

void turns_begin(Gen *gen);                     /* start of a role: gives out the first turn */
void turns_end(Gen *gen);                       /* end of a role: takes back the last one */
void turn_open(Gen *gen, const Row *row);       /* waits for the turn */
bool turn_passes_after(const Gen *gen, int at); /* true if a turn is passed on after the row */
void turn_pass_after(Gen *gen, int at);         /* passes it on, if planned */
/* in turn: jumps to the label in iterations of other instances; otherwise -1 */
int turn_iteration(Gen *gen);
/* In those iterations: steps cursors past a loop of equal acquires. False: its rows are emitted. */
bool turn_steps_at_once(Gen *gen, int region);

/* coordinates.c: numbers of clusters along the axes; returns their product */
Value grid_count(Gen *gen, Value *extents);
/* Sets the variables of the loop over the grid */
void grid_coordinates(Gen *gen, const Region *loop, const Value *extents, Reg tile);

/* dynamic.c */
void tile_begin(Gen *gen);                        /* start of a role */
void tile_take(Gen *gen, int pipe, Reg stage);    /* after an acquire: its number */
void tile_publish(Gen *gen, int pipe, Reg stage); /* before the arrival of a release */
void tile_test(Gen *gen, Value tiles, int leave); /* to the label if it is not below `tiles` */

/* The number on its way to the role that draws */
typedef struct TileDraws {
    /* .b32; next: relative to `first`, the first number that is drawn, so that nothing waits for
     * the draw until it is published */
    Reg next, first, bound;
} TileDraws;

void draws_open(Gen *gen, Value tiles, TileDraws *draws);
void draws_arrive(Gen *gen, const TileDraws *draws); /* it is the number to publish */
void draws_issue(Gen *gen, const TileDraws *draws);  /* draws the next one */

void gen_mma(Gen *gen, const Row *row); /* mma.c */

/* zero.c: accumulators that their first matrix instruction clears */
void zero_open(Gen *gen); /* at the start of the role */
/* the row assigns zero to such a tile, and needs nothing else */
bool zero_assigned(Gen *gen, const Row *row);
void zero_filled(Gen *gen, int tile); /* after a contraction into a tile */
/* before any other row: writes zeros that it needs to the registers */
void zero_settle(Gen *gen, const Row *row);

/* The matrices of one instruction: they begin at a row and column of the warpgroup's
 * accumulator; `row` and `column` are the indexes along them. */
typedef struct MatrixPlace {
    bool transposed; /* its columns are contiguous in memory */
    int row, column;
    int64_t at_row, at_column;
} MatrixPlace;

/* matrix_moves.c */
void matrix_store(Gen *gen, Point *statement, const Access *access, const MatrixPlace *place,
                  const Reg *words, int count);
void matrix_load(Gen *gen, Point *statement, const Access *access, const MatrixPlace *place,
                 Reg *words, int count);

void gen_tile(Gen *gen, const Row *row); /* copies.c */
void gen_prefetch(Gen *gen, const Row *row);
void gen_map(Gen *gen, const Row *row);   /* maps.c */
void gen_lanes(Gen *gen, const Row *row); /* maps.c */

/* ---- registers.c ----------------------------------------------------------------------------- */

void registers_open(Gen *gen);                        /* at the start of a role */
Lin registers_thread(Gen *gen, const Spread *spread); /* the thread's part of its coordinate */
/* predicate of threads with replicas; none: REG_NONE */
Reg registers_repeat(Gen *gen, const RegisterLayout *layout);
/* The register of an element, followed by its neighbours in a vector: the statement's registers,
 * plus the offset of the subscripts */
const Reg *registers_slot(Gen *gen, const Access *access, const RegisterLayout *statement,
                          const int64_t *coordinates);

/* ---- reductions.c ---------------------------------------------------------------------------- */

void reductions_open(Gen *gen);                   /* at the start of a role */
void reduction_begin(Gen *gen, const Tile *tile); /* sets the result to the neutral value */
/* to: a register, of the result */
void reduction_add(Gen *gen, const Tile *tile, Reg to, Value term);
/* Multiplies what each thread has reduced by a factor without indexes. */
void reduction_scale(Gen *gen, const Tile *tile, const Expr *factor);
void reduction_end(Gen *gen, const Tile *tile); /* exchanges between threads */
/* Where the register tile `variable` is declared, at row `at`: writes neutral values to its
 * registers if threads hold parts of it during some loop */
void reductions_declare(Gen *gen, int variable, int at);
/* Before a loop: of each variable of which threads hold parts during the loop, the first of the
 * threads that exchange keeps the value, the others take the neutral value */
void reductions_divide(Gen *gen, int region);
void reductions_complete(Gen *gen, int region); /* after the loop: combines the parts */

/* ---- scans.c --------------------------------------------------------------------------------- */

/* Replaces the elements in the registers of the result by what the scan makes of them. */
void scan_end(Gen *gen, const Tile *tile);

/* ---- vectors.c: adjacent elements in memory as .b32 words ----------------------------------- */

/* bytes: a multiple of 4. Words outside of a tensor are 0. */
void vector_load(Gen *gen, Point *point, const Access *access, int bytes, Reg *words);
/* where: a predicate for all of them, or PTX_NONE */
void vector_store(Gen *gen, Point *point, const Access *access, const Reg *words, int count,
                  Reg where);
/* A predicate that is the same in all threads of an instance: vectors of tensors are aligned, and
 * each is inside or outside as a whole; PTX_NONE: always, or there are none */
Reg vectors_hold(Gen *gen, const Wide *wide);
/* The predicate that a tensor begins at a multiple of a power of two */
Reg pointer_aligned(Gen *gen, int param, int bytes);

/* ahead.c: evaluates the planned expressions before a wait, at these points. */
Early *ahead_read(Gen *gen, const Ahead *ahead, Point **points, size_t count);
const Ahead *ahead_of(const Gen *gen, int at); /* NULL: none in this copy of the row */
/* makes the values of `early` known at the point of an element of the thread */
void ahead_know(const Early *early, Point *point, int64_t element);

void manifest_fill(Arena *arena, const Prog *prog, const CodegenOptions *options,
                   Manifest *manifest); /* manifest.c: all but marks and waits */

#endif
