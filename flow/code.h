/* Code: the one form of a role. A role is a list of rows in nested regions; control flow is structured, there is no goto. Everything that
 * a statement implies is a row of its own: scopes open and close, blocks of stages acquire and release, late sets are flushed, turns are
 * passed, and what a leave does on its way out stands in front of it. Rules, the deadlock search and the emission read rows by
 * their columns; `Stmt` is known to lower.c alone. rows.def lists the rows. */
#ifndef PIPEC_FLOW_CODE_H
#define PIPEC_FLOW_CODE_H

#include "prog/prog.h"

typedef enum RowKind {
#define ROW(name, ...) ROW_##name,
#include "flow/rows.def"
#undef ROW
    ROW_COUNT
} RowKind;

typedef enum RegionKind {
    REGION_ROLE,  /* the whole role; its END is the last row but EXIT */
    REGION_BLOCK, /* an inlined function's body, which its `return` leaves */
    REGION_GRID,  /* one iteration a tile of the grid */
    REGION_FOR,
    REGION_IF,
    REGION_TURN   /* between TAKE and PASS */
} RegionKind;

/* Regions are numbered in the order of their first rows; region 0 is the role. */
typedef struct Region {
    RegionKind kind;
    int parent;                  /* -1: of the role */
    int depth;                   /* loops around it, itself included */
    int loop;                    /* the innermost loop: itself or around it, -1: none */
    int begin, end;              /* its first row (LOOP, IF, BLOCK) and its END */
    int next, otherwise;         /* loops: the NEXT row; IF: the ELSE row; else -1 */
    bool left;                   /* some LEAVE goes to its END */
    Span span, head;             /* of the statement, and of what stands before its body */
    Uniformity control;          /* of its rows: over what it varies whether they are executed; filled by uniform */
    uint32_t along;              /* the same, between blocks of a cluster */
    /* loops */
    int var;                     /* FOR: a local, -1: none */
    const int *axes;             /* GRID: locals, one an axis of the grid */
    Expr *lo, *hi, *where;       /* FOR; where: NULL, or it skips iterations */
    int domain;                  /* FOR: prog->domains of which it is a piece, or -1 */
    bool whole;                  /* FOR: the whole of that domain */
    bool unroll;                 /* FOR: is emitted as copies, one a trip */
    /* IF */
    Expr *condition;             /* the whole condition */
    int nonempty;                /* `condition` says that prog->domains[nonempty] has an iteration, or -1 */
    int search;                  /* nonempty, of a range with `where`: the loop that has looked for one, in the whole Code; else -1 */
    Expr *from, *to;             /* a piece of the loop around, which has a `where`: from its iteration number `from` up to `to`
                                    (NULL: to the last one); from NULL: no piece */
    int turn;                    /* TURN: from 1 */
} Region;

/* What OPEN and CLOSE speak of */
typedef enum ObjectKind { OBJECT_TILE, OBJECT_LOCAL, OBJECT_HANDLE } ObjectKind;

typedef struct Row {
    RowKind kind;
    int region;                  /* LOOP, NEXT, IF, ELSE, BLOCK, END: that region; others: the innermost around the row */
    Span span, head;             /* of the statement that it comes from; head: of compound statements what stands before the body */
    int handle, other;           /* ACQUIRE RELEASE DROP MOVE LEND KEEP: role->handles; MOVE: takes over from `other`; CLOSE of a handle */
    int hint;                    /* ASK; ACQUIRE: what it was told, -1: nothing */
    int late;                    /* KEEP, FLUSH: code->lates; ACQUIRE: the set that keeps the stage later, -1: none */
    int lag;                     /* ACQUIRE of a block: as written, -1: not written */
    int turn;                    /* TAKE, PASS */
    int target;                  /* LEAVE: a region */
    bool again;                  /* LEAVE: to the next iteration of the target */
    bool leaving;                /* stands in front of a LEAVE and belongs to it */
    bool block;                  /* ACQUIRE, RELEASE, KEEP: of a stage block, not written */
    Span statement;              /* a statement of a block begins with this row: its head, of the outermost that does; else empty */
    bool after_block;            /* and a block of its own stands before it, perhaps the arm that a constant chose */
    bool unwaited;               /* ACQUIRE: steps only */
    ObjectKind object;           /* OPEN, CLOSE */
    int index;                   /* OPEN, CLOSE: role->tiles, locals or handles */
    int local;                   /* SET: role->locals; UNSAFE: the value that it sets, -1: none */
    Expr *value;                 /* SET, IF */
    IndexSpace *space;           /* SET: of the reductions in the value, or NULL */
    Tile *tile;                  /* TILE */
    const Unsafe *unsafe;        /* UNSAFE, STEP */
    Stmt *stmt;                  /* what it was lowered from: a key, nothing looks into it */
} Row;

/* Stages that a lagging `consume` block holds back */
typedef struct Late {
    int handle, loop;            /* loop: the region whose iterations count */
    int acquire;                 /* the row of the block's acquire */
    int lag;                     /* 0 releases at once; as written, until derive fills it in */
    bool direct;                 /* the block stands directly in the body of the loop, under no condition and in no other block */
    Span head;
} Late;

typedef struct Questions Questions;
typedef struct Held Held;
typedef struct Values Values;
typedef struct Algebra Algebra;

typedef struct FlowCode {
    const Prog *prog;
    const Role *role;
    VEC(Row) rows;
    VEC(Region) regions;
    VEC(Late) lates;
    Algebra *algebra;            /* of the role: shared by all rules */
    Questions *questions;        /* filled by the solver */
    Values *values;              /* values.h */
    struct Intervals *intervals; /* intervals.h; NULL: not asked for yet */
    const Held *held;            /* held.h, with the lags as derived; filled by check */
    const struct Arrivals *arrivals; /* arrivals.h; filled by check, NULL where it was not asked for */
    const struct Plan *plan;     /* derive/plan.h: what is emitted beside the rows; NULL after errors */
    VEC(int) whole_rows, whole_regions; /* of a slice: what its rows and regions are in the whole Code */
} FlowCode;

extern const char *const row_names[ROW_COUNT];

/* Needs an elaborated role. Never NULL; a role without a body has its EXIT alone. */
FlowCode *code_lower(Arena *arena, const Prog *prog, const Role *role);
bool code_valid(Arena *arena, const FlowCode *code, Str *why); /* is it well formed? what every pass relies on */
void code_print(const Prog *prog, Arena *arena, Str *out); /* --emit=code: all roles */
void code_print_values(const Prog *prog, Arena *arena, Str *out); /* --emit=values: with what variables hold before each row */
void code_print_uniform(const Prog *prog, Arena *arena, Str *out);  /* --emit=uniform, stages, arrivals: print_facts.c */
void code_print_held(const Prog *prog, Arena *arena, Str *out);
void code_print_arrivals(const Prog *prog, Arena *arena, Str *out);
bool code_inside(const FlowCode *code, int inner, int outer); /* is one region the other, or in it? */

/* By region: the row, an END or a NEXT, at which threads that took different ways in the region have
 * joined again: its own END, or the target of a LEAVE in it. `returns`: a LEAVE that ends the role
 * counts too. */
int *code_meetings(Arena *arena, const FlowCode *code, bool returns);

/* The IF that makes a loop a piece of its range, and is all of its body; NULL: there is none */
const Region *code_piece(const FlowCode *code, const Region *loop);

static inline const Row *code_row(const FlowCode *code, int at) { return &code->rows.items[at]; }
static inline const Region *code_region(const FlowCode *code, int region) {
    return &code->regions.items[region];
}
/* Is it a loop that is emitted as copies? Other loops jump back. */
static inline bool region_unrolled(const Region *region) { return region->kind == REGION_FOR && region->unroll; }
static inline bool region_loops(const Region *region) { return region->kind == REGION_GRID || region->kind == REGION_FOR; }

/* Each element read or written by one row: subscripts, bounds and conditions too. A target that is also read (`+=`) is visited
 * once, as written. */
void row_accesses(Arena *arena, const FlowCode *code, const Row *row, void (*visit)(Access *, bool written, void *), void *data);
/* Expressions that one row evaluates: bounds (LOOP), conditions, values, subscripts of the target */
void row_exprs(const FlowCode *code, const Row *row, void (*visit)(Expr *, void *), void *data);
/* Locals that a row sets: SET, UNSAFE (a value, outputs of inline PTX), LOOP (its variables) */
bool row_sets(const FlowCode *code, const Row *row, int local);

#endif
