/* stmt: the statements of a role, as a tree. elaborate/ makes them, flow/ lowers them to rows
 * (flow/code.h), reference/ reads them. All other floors read rows. */
#ifndef PIPEC_STMT_H
#define PIPEC_STMT_H

#include "prog/expr.h"
#include "prog/tile.h"
#include "prog/unsafe.h"

typedef struct Stmt Stmt;

typedef VEC(Stmt *) Stmts;

typedef enum StmtKind {
    S_BLOCK,  /* a list; also the target of an inlined function's `return` */
    S_SCALAR, /* role->locals[local] = value */
    S_TILE,
    /* for (axes) in grid: body once per coordinate of this block */
    S_GRID,
    S_FOR, /* for var in lo .. hi (hi exclusive, step 1) */
    S_IF,
    S_LEAVE,   /* break, continue, return */
    S_TRY,     /* hint = try consume <p>: true if the next acquire's stage is ready */
    S_ACQUIRE, /* let s = consume <p>; */
    S_RELEASE,
    S_MOVE, /* handle `to` takes ownership of the stage of `from` */
    /* consume <p> as s { }: acquire, body, release on every way out (delayed by `lag`) */
    S_STAGE,
    /* one operation of an `unsafe` block, or a value of a pipe that is no formula: s.index */
    S_UNSAFE
} StmtKind;

/* out of the target; to the target loop's next iteration */
typedef enum LeaveKind { LEAVE_BREAK, LEAVE_CONTINUE } LeaveKind;

typedef struct Loan { /* a stage that an inlined function borrows */
    int handle;
    Span span; /* of the argument */
} Loan;

struct Stmt {
    StmtKind kind;
    Span span;
    Span head; /* of compound statements: the text before the body */
    union {
        struct {
            Stmts body;
            /* index of the `turn { }` in its role, from 1; 0: a plain block */
            int turn;
            bool left;       /* some S_LEAVE has it as its target */
            VEC(int) tiles;  /* role->tiles that are declared in it */
            VEC(int) locals; /* `var`s of role->locals that are declared in it */
            VEC(Loan) loans; /* of an inlined function */
            Span close;      /* of an inlined function: end of its body */
        } block;
        struct {
            int local;
            Expr *value;
        } scalar;
        Tile *tile;
        struct {
            int vars[PROG_MAX_RANK]; /* one local per axis */
            /* Of a dynamic grid, handles: the number of each tile, and that a tile is begun; -1:
             * none */
            int tile, begun;
            Stmt *body; /* NULL: of the role that draws the numbers */
        } grid;
        struct {
            int var; /* a local, I32 */
            /* role-uniform if the body holds pipe operations; where: NULL, or a filter of
             * iterations */
            Expr *lo, *hi, *where;
            int domain; /* the index in prog->domains of the range that it is a piece of, or -1 */
            bool whole; /* all of that domain */
            /* bounds consist of constants and variables of enclosing unrolled loops, and the
             * variable subscripts a register tile or an array field */
            bool unroll;
            Stmt *body;
        } loop;
        struct {
            Expr *condition;
            int nonempty; /* a domain, or -1 */
            /* nonempty, of a range with `where`: the loop before it that has searched for an
             * iteration */
            Stmt *search;
            /* a piece of a range with `where`: true for its iterations number `from` to `to`;
             * otherwise NULL */
            Expr *from, *to;
            Stmt *then, *otherwise; /* otherwise may be NULL */
        } branch;
        struct {
            LeaveKind kind;
            /* S_GRID, S_FOR, or an S_BLOCK for an inlined return; NULL: the role (return) */
            Stmt *target;
        } leave;
        struct {
            int hint;
        } ask;
        /* hint: -1: none; unwaited: only advances */
        struct {
            int handle, hint;
            bool unwaited;
        } acquire;
        struct {
            int handle;
            bool silent;
        } release; /* silent: without signal */
        struct {
            int to, from;
        } move;
        struct {
            int handle, hint; /* -1: none */
            bool unwaited;    /* as for `acquire` */
            int lag;          /* as written, -1: not written */
            Stmt *body;
        } stage;
        Unsafe *unsafe;
    };
};

/* Visits each statement before those inside it, in order of the text; nothing for NULL. */
void stmt_visit(Stmt *stmt, void (*visit)(Stmt *, void *), void *data);

#endif
