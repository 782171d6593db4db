/* plan: what is emitted beside the rows of a role, and where. Codegen obeys it and asks nothing else.
 *   plan.c        where turns are passed on, which control parts the lanes of a warp, zeros
 *   plan_skip.c   what an iteration does in the instances that leave it to another one
 *   waits.c       where matrix instructions are committed and waited for
 *   plan_ahead.c  what is read before a wait
 *   plan_print.c  --emit=plan */
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

/* What the role does in iterations of other instances */
typedef struct Skipped {
    FlowCode *code;       /* a slice: acquires, which step cursors, and what decides about them */
    int64_t **acquires;   /* by its region: a loop that acquires the same in each iteration: how
                           * many stages, by pipe; NULL: its rows are gone through */
} Skipped;

typedef struct Plan {
    int *passes;   /* by row: the turn that is passed on after it; 0: none */
    bool *apart;   /* by region: lanes of a warp go through it apart, and to it together */
    bool **zeros;  /* by tile: NULL, or an accumulator that its first contraction clears. By row:
                    * what it touches must hold zeros, where no contraction came before */
    bool *clears;  /* by row: assigns zero to such an accumulator, by a predicate */
    bool *commits; /* by row: a contraction that is the last one of its group */
    Waits *waits;  /* by row: before it */
    Waits *joins;  /* by row, END of an IF: at the end of its second arm */
    Ahead **ahead;   /* by row; NULL: nothing */
    Skipped skipped; /* of a role in turn */
} Plan;

/* needs lags, classes, turns and uniformity, and no errors up to there */
const Plan *plan_role(Arena *arena, FlowCode *code);

/* The wait of a row in one copy; `values`: of loop variables, by local. NULL: none */
const Wait *plan_wait(const FlowCode *code, const Waits *waits, int at, const int64_t *values);

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

#endif
