/* stmt: the statements of a role, as a tree. For elaborate/, which makes them; flow/ lowers them to
 * rows (flow/code.h), reference/ reads them. All others read rows. */
#ifndef PIPEC_STMT_H
#define PIPEC_STMT_H

#include "prog/prog.h"

typedef VEC(Stmt *) Stmts;

typedef enum StmtKind {
    S_BLOCK,    /* a list; also the target of an inlined function's `return` */
    S_SCALAR,   /* role->locals[local] = value */
    S_TILE,
    S_GRID,     /* for (axes) in grid: body once for each coordinate of this block */
    S_FOR,      /* for var in lo .. hi (hi not included, step 1; no iteration where hi <= lo) */
    S_IF,
    S_LEAVE,    /* break, continue, return */
    S_TRY,      /* hint = try consume <p>: is the next acquire's stage ready? */
    S_ACQUIRE,  /* let s = consume <p>; */
    S_RELEASE,
    S_MOVE,     /* handle `to` takes over what `from` held */
    S_STAGE,    /* consume <p> as s { }: acquire, body, release on every way out (late by `lag`) */
    S_UNSAFE    /* one operation of an `unsafe` block, or a value of a pipe that is no formula: s.index */
} StmtKind;

typedef enum LeaveKind { LEAVE_BREAK, LEAVE_CONTINUE } LeaveKind; /* out of the target; to the target loop's next iteration */

typedef struct Loan {      /* a stage that an inlined function borrows */
    int handle;
    Span span;             /* of the argument */
} Loan;

struct Stmt {
    StmtKind kind;
    Span span;
    Span head;  /* of compound statements: what stands before the body */
    union {
        struct {
            Stmts body;
            int turn;  /* number of the `turn { }` in its role, from 1; 0: a plain block */
            bool left; /* some S_LEAVE has it as its target */
            VEC(int) tiles;  /* role->tiles whose scope it is */
            VEC(int) locals; /* `var`s of role->locals whose scope it is */
            VEC(Loan) loans; /* of an inlined function */
            Span close;      /* of an inlined function: where its body ends */
        } block;
        struct { int local; Expr *value; IndexSpace *space; } scalar; /* space: of the value's reductions, NULL without one */
        Tile *tile;
        struct { int vars[PROG_MAX_RANK]; Stmt *body; } grid;   /* locals, one an axis */
        struct {
            int var;            /* a local, I32 */
            Expr *lo, *hi, *where; /* role-uniform where the body holds pipe operations; where: NULL, or skips iterations */
            int domain;         /* prog->domains of which this is a piece, or -1 */
            bool whole;         /* the whole of that domain */
            bool unroll;        /* bounds of constants and variables of unrolled loops around it, and the variable subscripts a register tile or an array field */
            Stmt *body;
        } loop;
        struct {
            Expr *condition;
            int nonempty;       /* a domain, or -1 */
            Stmt *search;       /* nonempty, of a range with `where`: the loop before it that has looked for an iteration */
            Expr *from, *to;    /* a piece of a range with `where`: holds from its iteration number `from` up to `to`; else NULL */
            Stmt *then, *otherwise; /* otherwise may be NULL */
        } branch;
        struct {
            LeaveKind kind;
            Stmt *target;       /* S_GRID, S_FOR, or an S_BLOCK for an inlined return; NULL: leaves the role (return) */
        } leave;
        struct { int hint; } ask;
        struct { int handle, hint; bool unwaited; } acquire; /* hint: -1 without one; unwaited: steps only */
        struct { int handle; bool silent; } release; /* silent: without signal */
        struct { int to, from; } move;
        struct {
            int handle, hint;   /* hint: -1 without one */
            bool unwaited;      /* as of `acquire` */
            int lag;            /* as written, -1: not written */
            Stmt *body;
        } stage;
        Unsafe *unsafe;
    };
};

/* Each statement before the ones inside it, in order of the text; silent on NULL. */
void stmt_visit(Stmt *stmt, void (*visit)(Stmt *, void *), void *data);

#endif
