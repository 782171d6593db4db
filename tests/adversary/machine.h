/* The interpreter, private: a program as flat code, and the machine that runs it. */
#ifndef TESTS_ADVERSARY_MACHINE_H
#define TESTS_ADVERSARY_MACHINE_H

#include "tests/adversary/adversary.h"

#define PROCESSES (2 * MAX_ROLES)
#define POISON    0x5eed0bad /* value of an unwritten element */

typedef enum InstrKind {
    I_STMT,    /* declare, set, tile, contract, move, hint, arrive */
    I_ACQUIRE, /* also of a block */
    I_RELEASE,
    I_KEEP,  /* a lagging block ends */
    I_FLUSH, /* end of the loop `stmt`: releases the stages that its blocks keep */
    I_ENTER, /* a loop: the bounds */
    I_TEST,  /* jumps to `target` at the end of the loop */
    I_NEXT,  /* to `target`, the test */
    I_GRID,
    I_GRID_NEXT,
    I_BRANCH, /* jumps to `target` if the condition is false */
    I_JUMP,
    I_TAKE,
    I_PASS,
    I_END
} InstrKind;

typedef struct Instr {
    InstrKind kind;
    const Stmt *stmt, *loop; /* I_KEEP: the loop around the block */
    int target;
} Instr;
typedef VEC(Instr) Instrs;

/* v: value of the machine. w: intended value, in which sums exclude padding. */
typedef struct Value {
    int32_t v, w;
    bool pad;  /* computed from an element outside a tensor */
    bool real; /* a float, `r` */
    Real r;
    bool element; /* an element, or computed from one; not only selected by one */
} Value;

typedef struct Cell {
    int32_t v, w;
    bool set, pad, copied, real, element;
    Real r;
    int writer;
    uint32_t stamp;
} Cell;

typedef struct Left {
    int32_t v, w;
} Left;

typedef struct GlobalCell {
    int32_t v, w;
    Real r;
    bool written, again;                   /* again: written by several tiles */
    Left left;                             /* state after the tile before this one */
    const Stmt *stmt;                      /* the last writer */
    int tile, writer, reader, reader_tile; /* reader_tile: -1 none, -2 several */
    uint32_t clock, reader_clock, stamp;
} GlobalCell;

typedef struct Held {
    bool held, produce, arrived;
    int pipe, number;
} Held;

typedef struct Slot { /* a stage of a ring, by its number */
    int fills, drains, arrivals;
    uint32_t full[PROCESSES], empty[PROCESSES]; /* clocks passed on by a release */
    Cell *cells[MAX_FIELDS];
    int64_t bytes;
} Slot;

typedef struct Ring {
    VEC(Slot *) slots;
    int fills_wanted, drains_wanted;
    int64_t bytes; /* bytes of copies; -1: unknown yet */
} Ring;

typedef struct Late {
    const Stmt *block, *loop;
    Held held;
} Late;

typedef struct Process {
    const Role *role;
    int number, role_number, instance;
    const Instrs *code;
    int pc;
    Value env[MAX_LOCALS];
    bool set[MAX_LOCALS];
    int32_t hi[MAX_LOCALS];
    Held handles[MAX_LOCALS];
    int hints[MAX_LOCALS]; /* number of the requested stage; -1: none */
    Cell *tiles[MAX_LOCALS];
    int cursors[MAX_PIPES][2];
    uint32_t clock[PROCESSES];
    int32_t index[MAX_INDEXES];
    int lane, turns, iteration;
    int taken, begun; /* numbers that a dynamic grid has drawn, and tiles begun */
    int64_t tile;
    bool skipping, ended;
    VEC(Late) late;
} Process;

/* What the terms of a reduction have read of stages. Values that a role has computed from a row
 * outside of its tensor are its own. */
typedef struct Found {
    bool padding, elements;
} Found;

/* The numbers of the tiles of a dynamic grid (draws.c) */
typedef struct Draws {
    int first; /* the role that tells that it begins a tile; -1: the grid is not dynamic */
    int kept;  /* numbers, at most, that some role has not taken yet */
} Draws;

typedef struct Machine {
    const Program *program;
    Draws draws;
    Arena *arena;
    const Sizes *sizes;
    int resident, blocks, block;
    int64_t tiles, extents[MAX_AXES]; /* of whole clusters */
    Instrs codes[MAX_ROLES];
    Process *processes[PROCESSES];
    int process_count;
    Ring rings[MAX_PIPES];
    int passed[MAX_ROLES];
    /* the clock passed on by the end of a turn */
    uint32_t turned[MAX_ROLES][PROCESSES];
    GlobalCell *tensors[MAX_TENSORS];
    int64_t counts[MAX_TENSORS]; /* number of elements */
    uint32_t stamp;
    int64_t steps;
    /* nonzero while a bound, condition or subscript is computed */
    int deciding;
    bool wrapped, vague, by_zero;
    bool divided; /* by zero, at some time */
    int32_t any;  /* what a division by zero gives; 0: what the hardware computes */
    bool inside;  /* the run without padding */
    Found found;
    const Stmt *stmt;        /* the running statement */
    Seen *seen;              /* NULL: nobody asks */
    bool scaled[MAX_LOCALS]; /* variables that some statement does not only add to */
    int updated;             /* its padding is left out; -1: none */
    Harm harm;
    const Stmt *harm_stmt;
} Machine;

/* ---- floats (reals.c) ------------------------------------------------------------------------ */

Real real_point(double x);
Real real_operate(Op op, Real a, Real b, Real c);
Real real_stored(Real r, bool half); /* in a variable or an element */
/* *sure: the numbers decide, whatever is contracted */
bool real_compare(Op op, Real a, Real b, bool *sure);
bool real_is_nan(Real r);
bool real_is_any(Real r);
Real real_add_terms(Real sum, Real term, double *magnitude); /* in any order; see real_of_sum */
Real real_of_sum(Real sum, double magnitude);

void padded_begin(Machine *m);
void padded_note(Machine *m); /* the statement includes padding */
/* The statement updates its variable by the value. */
void padded_update(Machine *m, Process *p, const Stmt *stmt, Value value);

Draws draws_of(const Program *program);
bool draws_have_next(const Machine *m, const Process *p); /* false: the process must wait */

void flatten(const Program *program, Arena *arena, const Role *role, Instrs *out);

void machine_harm(Machine *m, Harm harm); /* only the first one is kept */
Value evaluate_expr(Machine *m, Process *p, const Expr *expr);
int32_t decide(Machine *m, Process *p, const Expr *expr); /* a subscript, bound or condition */
void run_assignment(Machine *m, Process *p, const Stmt *stmt);
void run_contraction(Machine *m, Process *p, const Stmt *stmt);
bool cell_again(const GlobalCell *cell);
Cell *cell_at(Machine *m, Process *p, const Expr *expr, bool write); /* NULL: a harm */
Slot *slot_of(Machine *m, int pipe, int number);

#endif
