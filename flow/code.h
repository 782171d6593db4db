/* Code: the representation of a role: a list of rows in nested regions. Control flow is
 * structured, without goto. Implied actions of statements are separate rows: scopes open and
 * close, stage blocks acquire and release, late sets are flushed, turns are passed, and the
 * actions of a leave precede it. Rules, the deadlock search and codegen read rows by their
 * columns; only lower.c reads `Stmt`. rows.def lists the rows. */
#ifndef PIPEC_FLOW_CODE_H
#define PIPEC_FLOW_CODE_H

#include "flow/effects.h"
#include "prog/prog.h"

typedef enum ONE_BYTE RegionKind {
    REGION_ROLE,  /* the whole role; its END is the last row before EXIT */
    REGION_BLOCK, /* body of an inlined function, which its `return` leaves */
    REGION_GRID,  /* one iteration per tile of the grid */
    REGION_FOR,
    REGION_IF,
    REGION_TURN /* between TAKE and PASS */
} RegionKind;

/* Regions are numbered in the order of their first rows; region 0 is the role. */
typedef struct Region {
    RegionKind kind;
    int parent;          /* -1 for the role */
    int depth;           /* number of enclosing loops, including itself */
    int loop;            /* the innermost loop: itself or an enclosing one, -1: none */
    int begin, end;      /* its first row (LOOP, IF, BLOCK) and its END */
    int next, otherwise; /* loops: the NEXT row; IF: the ELSE row; otherwise -1 */
    bool left;           /* some LEAVE has its END as target */
    Span span, head;     /* of the statement, and of its text before the body */
    /* of its rows: threads over which their execution varies; filled by uniform */
    Uniformity control;
    uint32_t along; /* the same, between blocks of a cluster */
    /* Loops */
    int var;         /* FOR: a local, -1: none */
    const int *axes; /* GRID: locals, one per axis of the grid */
    /* GRID of a dynamic grid, otherwise 0: the row after those that take the number of the tile,
     * and the first row of its body. As many rows after the END take the number that ends the
     * loop: an iteration begins with the same rows, so they are executed only there. Of the role
     * that draws: the row after those that wait for a tile to be begun. */
    int taken, body;
    Expr *lo, *hi, *where; /* FOR; where: NULL, or a filter of iterations */
    /* FOR: index in prog->domains of the range that it is a piece of, or -1 */
    int domain;
    bool whole;  /* FOR: all of that domain */
    bool unroll; /* FOR: emitted as copies, one per iteration */
    /* IF */
    Expr *condition; /* the whole condition */
    /* `condition` is true if prog->domains[nonempty] has an iteration; or -1 */
    int nonempty;
    /* nonempty, of a range with `where`: the loop in the whole Code that has searched for an
     * iteration; otherwise -1 */
    int search;
    /* a piece of the enclosing loop, which has a `where`: from its iteration number `from` to
     * `to` (NULL: the last one); from NULL: no piece */
    Expr *from, *to;
    int turn; /* TURN: its number, from 1 */
} Region;

/* Objects of OPEN and CLOSE */
typedef enum ONE_BYTE ObjectKind { OBJECT_TILE, OBJECT_LOCAL, OBJECT_HANDLE } ObjectKind;

/* What most rules read comes first. */
typedef struct Row {
    RowKind kind;
    ObjectKind object; /* OPEN, CLOSE */
    bool again;        /* LEAVE: to the next iteration of the target */
    bool leaving;      /* precedes a LEAVE and belongs to it */
    bool block;        /* ACQUIRE, RELEASE, KEEP: implied by a stage block */
    bool unwaited;     /* ACQUIRE: only advances the cursor */
    /* of the numbers of tiles: executed by all instances of a role in turn, in all iterations */
    bool every;
    /* begins a block, and another block precedes `statement`, possibly the arm that a constant
     * selected */
    bool after_block;
    /* LOOP, NEXT, IF, ELSE, BLOCK, END: that region; others: the innermost enclosing one */
    int region;
    /* ACQUIRE RELEASE DROP MOVE LEND KEEP: role->handles; MOVE: takes the stage of `other`;
     * CLOSE of a handle */
    int handle, other;
    int index;            /* OPEN, CLOSE: role->tiles, locals or handles */
    Tile *tile;           /* TILE, PREFETCH */
    Expr *value;          /* SET, IF */
    const Unsafe *unsafe; /* UNSAFE, STEP */
    int local;            /* SET: role->locals; UNSAFE: the local that it sets, -1: none */
    int hint;             /* ASK; ACQUIRE: its hint, -1: none */
    /* KEEP, FLUSH: code->lates; ACQUIRE: the set that keeps the stage afterwards, -1: none */
    int late;
    int lag;    /* ACQUIRE of a block: as written, -1: not written */
    int turn;   /* TAKE, PASS */
    int target; /* LEAVE: a region */
    /* of its statement; head: of compound statements the text before the body */
    Span span, head;
    /* head of the outermost statement of a block that begins with this row; otherwise empty */
    Span statement;
    Stmt *stmt; /* source of the row, used only as a key */
} Row;

/* Stages whose release a lagging `consume` block delays */
typedef struct Late {
    int handle, loop; /* loop: the region whose iterations are counted */
    int acquire;      /* the row of the block's acquire */
    int lag;          /* 0 releases at once; as written, then derived */
    /* the block is directly in the body of the loop, under no condition and in no other block */
    bool direct;
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
    Algebra *algebra;                /* of the role, shared by all rules */
    Questions *questions;            /* filled by the solver */
    Values *values;                  /* values.h */
    struct Intervals *intervals;     /* intervals.h; NULL: not computed yet */
    struct Fillings **fillings;      /* by handle: match.h; NULL: not computed yet */
    const Held *held;                /* held.h, with the derived lags; filled by check */
    const struct Arrivals *arrivals; /* arrivals.h; filled by check, NULL if unused */
    /* of a slice: indexes of its rows and regions in the whole Code */
    VEC(int) whole_rows, whole_regions;
} FlowCode;

/* Needs an elaborated role. Never NULL; a role without a body has only its EXIT. */
FlowCode *code_lower(Arena *arena, const Prog *prog, const Role *role);
struct Key; /* prog/key.h */
/* Adds the kernel and its rows, as lowering leaves them. */
void code_key(struct Key *key, const Prog *prog);
/* true if it is well formed, which every pass assumes */
bool code_valid(Arena *arena, const FlowCode *code, Str *why);
void code_print(const Prog *prog, Arena *arena, Str *out); /* --emit=code: all roles */
/* --emit=values: with the values of variables before each row */
void code_print_values(const Prog *prog, Arena *arena, Str *out);
/* --emit=uniform, stages, arrivals: print_facts.c */
void code_print_uniform(const Prog *prog, Arena *arena, Str *out);
void code_print_held(const Prog *prog, Arena *arena, Str *out);
void code_print_arrivals(const Prog *prog, Arena *arena, Str *out);
/* true if they are equal, or one contains the other */
bool code_inside(const FlowCode *code, int inner, int outer);
/* true for a loop over the grid, and regions in it */
bool code_in_grid(const FlowCode *code, int region);

/* By region: the row, an END or a NEXT, at which threads that diverged in the region have
 * rejoined: its own END, or the target of a LEAVE in it. `returns`: includes a LEAVE that ends
 * the role. */
int *code_meetings(Arena *arena, const FlowCode *code, bool returns);

/* The IF that makes a loop a piece of its range, and is its whole body; NULL: none */
const Region *code_piece(const FlowCode *code, const Region *loop);

static inline const Row *code_row(const FlowCode *code, int at) { return &code->rows.items[at]; }
static inline const Region *code_region(const FlowCode *code, int region) {
    return &code->regions.items[region];
}
/* True for a loop that is emitted as copies. Other loops jump back. */
static inline bool region_unrolled(const Region *region) {
    return region->kind == REGION_FOR && region->unroll;
}
static inline bool region_loops(const Region *region) {
    return region->kind == REGION_GRID || region->kind == REGION_FOR;
}

/* Visits each element read or written by one row, including subscripts, bounds and conditions. A
 * target that is also read (`+=`) is visited once, as written. */
void row_accesses(Arena *arena, const FlowCode *code, const Row *row,
                  void (*visit)(Access *, bool written, void *), void *data);
/* Visits expressions that one row evaluates: bounds (LOOP), conditions, values, subscripts of
 * the target */
void row_exprs(const FlowCode *code, const Row *row, void (*visit)(Expr *, void *), void *data);
/* True for the locals that a row sets: SET, UNSAFE (a value, outputs of inline PTX), LOOP (its
 * variables) */
bool row_sets(const FlowCode *code, const Row *row, int local);
/* False: it sets no local */
static inline bool row_may_set(const Row *row) {
    return row->kind == ROW_SET || row->kind == ROW_LOOP || row->kind == ROW_UNSAFE || row->unsafe;
}

#endif
