/* plan: what is emitted beside the rows of a role, and where. Codegen obeys it and asks nothing else.
 *   plan.c        where turns are passed on, which control parts the lanes of a warp, zeros
 *   plan_skip.c   what an iteration does in the instances that leave it to another one
 *   waits.c       where matrix instructions are committed and waited for
 *   plan_ahead.c  what is read before a wait
 *   plan_moves.c  how threads carry out a statement element by element
 *   plan_contractions.c  where operands of matrix instructions lie
 *   plan_kernel.c what is of the whole block: shared memory, warpgroups
 *   plan_print.c, plan_print_rows.c  --emit=plan */
#ifndef PIPEC_DERIVE_PLAN_H
#define PIPEC_DERIVE_PLAN_H

#include "flow/code.h"

#define PLAN_ANY INT64_MIN /* value of a variable whose loop is followed as a whole */

/* A wait for matrix instructions, before a row */
typedef struct Wait {
    int64_t *copy;  /* which copy of the row, where loops around it are unrolled: the values of
                     * their variables, the innermost first */
    int depth;      /* groups that it may leave in flight */
    int tile, handle; /* what matrix instructions use that may need the wait; both -1: nothing does,
                       * but the assembler must see that an accumulator is at rest */
    int pin;        /* a handle: the spin at its barrier keeps arithmetic before the wait; -1: none */
    bool in_flight; /* some of what the row touches is: reads of other things may be made before */
} Wait;

typedef VEC(Wait) Waits;

/* What a row, whose wait leaves some of what it touches in flight, does before that wait */
typedef struct Ahead {
    VEC(const Expr *) exprs; /* parts of the value that are evaluated before */
    int release; /* a row: nothing but these needed the stage, it is released at the wait; -1: none */
} Ahead;

/* How threads move what an access names, for `vector` elements of a statement at once */
typedef enum MoveKind {
    MOVE_EACH,      /* one element after another */
    MOVE_VECTOR,    /* neighbours in memory, at once */
    MOVE_REGISTERS, /* a register tile: nothing is moved */
    MOVE_MATRICES,  /* accumulators, by stmatrix or ldmatrix: their rows lie in memory as rows, */
    MOVE_TRANSPOSED /* or as columns */
} MoveKind;

typedef struct MovedRead {
    const Expr *expr; /* X_READ */
    MoveKind kind;
} MovedRead;

/* In which order a statement's elements are gone through */
typedef enum WalkKind {
    WALK_ONE,      /* there is one: a thread takes it */
    WALK_FLAT,     /* vector after vector, last index innermost: the next thread takes the next */
    WALK_LAUNCH,   /* extents are known at launch: the last index over the threads */
    WALK_REGISTERS /* as register tiles hold them: Tile.spread */
} WalkKind;

/* A statement that threads carry out */
typedef struct Moves {
    WalkKind walk;
    const Expr *value;     /* of the target's widened type, compound assignment included */
    bool bits;             /* a copy between equal types: nothing is widened */
    VEC(MovedRead) reads;  /* of the value and of the target's subscripts */
    MoveKind target;
    int vector, inner;     /* elements at once, and the index along which they lie; -1: none */
    int batch;             /* vectors that a thread has in flight */
    int rows, columns;     /* indexes along an accumulator's; -1 where there are others or none */
    int64_t total, rounds; /* FLAT: elements; rounds in which each thread takes a vector */
    int64_t looped;        /* FLAT: batches that are emitted as a loop */
    bool joins;            /* the instance's threads join before: the readers of its target are done */
    bool publishes;        /* and after, with a fence: the copy engine may read what is written */
} Moves;

/* An operand of matrix instructions, in bytes of shared memory */
typedef struct Matrix {
    bool in_memory;      /* else in registers, and the rest is 0 */
    int swizzle;         /* as in Layout */
    int64_t leading, stride; /* offsets of the descriptor */
    int64_t step;        /* from one instruction to the next along the contraction, in a panel */
    int64_t panel_steps; /* instructions to a panel; 0: the contraction goes through none */
    int64_t panel;       /* from one panel to the next */
    int64_t slab;        /* from 64 rows to the next 64 */
} Matrix;

typedef struct Contraction {
    Matrix a, b;
    int sums; /* registers of a thread for the accumulators of 64 rows */
} Contraction;

/* What the role does in iterations of other instances */
typedef struct Skipped {
    FlowCode *code;       /* a slice: acquires, which step cursors, and what decides about them */
    int64_t **acquires;   /* by its region: a loop that acquires the same in each iteration: how
                           * many stages, by pipe; NULL: its rows are gone through */
} Skipped;

typedef VEC(int) Handles; /* role->handles */

typedef struct Plan {
    int *passes;   /* by row: the turn that is passed on after it; 0: none */
    bool *apart;   /* by region: lanes of a warp go through it apart, and to it together */
    int *signals;  /* by row: a handle: it arrives where a release of that stage would, for which the
                    * warp is done with the stage before; -1: it does not */
    Handles *due;  /* by region that is gone through apart: the handles of such rows in it, for which
                    * that is done before the region */
    bool direct;   /* its warps go to it from the entry, else from their warpgroup */
    int registers; /* direct: setmaxnreg; 0: none */
    bool drains;   /* copies out of shared memory are complete before the role ends */
    bool **zeros;  /* by tile: NULL, or an accumulator that its first contraction clears. By row:
                    * what it touches must hold zeros, where no contraction came before */
    bool *clears;  /* by row: assigns zero to such an accumulator, by a predicate */
    bool *commits; /* by row: a contraction that is the last one of its group */
    Waits *waits;  /* by row: before it */
    Waits *joins;  /* by row, END of an IF: at the end of its second arm */
    Ahead **ahead;   /* by row; NULL: nothing */
    Contraction **contractions; /* by row; NULL: no contraction */
    Moves **moves;   /* by row; NULL: no statement of threads */
    Skipped skipped; /* of a role in turn */
} Plan;

typedef enum RangeKind { RANGE_FULL, RANGE_EMPTY, RANGE_FIELD, RANGE_TILE } RangeKind;

/* Of shared memory: what is there `count` times, `stride` bytes apart */
typedef struct Range {
    RangeKind kind;
    const char *pipe, *name; /* NULL: none */
    const char *note;        /* arrivals and whose they are; the layout; the role */
    uint32_t offset, bytes, count, stride;
    uint32_t arrivals;       /* of barriers */
} Range;

/* A warpgroup that roles share or that has idle warps, where registers are handed out: sets its
 * registers before its warps part. */
typedef struct SharedGroup {
    int first_warp;
    int registers; /* setmaxnreg; 0: none */
    VEC(int) roles;
} SharedGroup;

typedef struct KernelPlan {
    VEC(Range) memory;
    VEC(SharedGroup) groups;
    int64_t blocks;      /* that an SM holds, and what keeps it from more. Registers count where they
                          * are handed out; else the assembler may ask for more than is known here */
    const char *limited;
    int64_t in_flight;   /* bytes of a block's stages that copies from tensors fill */
} KernelPlan;

/* Needs all other facts, and no errors but of what holds whenever the kernel runs (P0450 and after).
 * Leaves the plan of each role in its Code, and the kernel's in the program. */
void plan_make(Arena *arena, Prog *prog);

/* The wait of a row in one copy; `values`: of loop variables, by local. NULL: none */
const Wait *plan_wait(const FlowCode *code, const Waits *waits, int at, const int64_t *values);

/* How a tile lies in shared memory, in words; `inner`: its last extent */
const char *plan_layout(Arena *arena, const Prog *prog, const Layout *layout, Element type,
                        int64_t inner);
MoveKind plan_move(const Moves *moves, const Expr *read); /* of one of its reads */

/* Bytes from an operand's first matrix to that of a step along the contraction and of 64 rows */
int64_t plan_matrix_at(const Matrix *matrix, int step, int slab);

void plan_print(const Prog *prog, Arena *arena, Str *out); /* --emit=plan */

/* ---- private to the floor ------------------------------------------------------------------- */

static inline bool plan_contracts(const Row *row) {
    return row->kind == ROW_TILE && row->tile->class == TILE_MMA;
}

bool plan_unsafe_signals(const Unsafe *what); /* what a release of the stage that it names would */
/* Marks, by number in the role, the register tiles that an ordinary row reads or writes and the
 * `shared` tile that it writes. */
void plan_names(Arena *arena, const Row *row, bool *tiles);
void plan_skipped(Arena *arena, FlowCode *code, Plan *plan);
void plan_waits(Arena *arena, FlowCode *code, Plan *plan);
void plan_ahead(Arena *arena, const FlowCode *code, Plan *plan); /* needs waits and turns */
void plan_print_row(const FlowCode *code, const Plan *plan, int at, Str *out);
void plan_entry(const Prog *prog, const Role *role, Plan *plan);
const KernelPlan *plan_kernel(Arena *arena, const Prog *prog);
void plan_contractions(Arena *arena, const FlowCode *code, Plan *plan);
void plan_moves(Arena *arena, const FlowCode *code, Plan *plan);

#endif
