/* unsafe: the operations of `unsafe` blocks, and the values of a pipe that are no formulas. */
#ifndef PIPEC_UNSAFE_H
#define PIPEC_UNSAFE_H

#include "prog/expr.h"

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

/* Calls visit for the expressions that the operation evaluates itself. expr.c */
void unsafe_exprs(const Unsafe *unsafe, void (*visit)(Expr *, void *), void *data);

#endif
