/* balance: private to check/: a pipe is acquired equally often at both ends, and nobody waits for ever.
 *   balance.c        each pipe and consumer: same shape, else equal counts, else what is said
 *   balance_shape.c  what a role does with one pipe, as a tree; are two of them the same?
 *   balance_count.c  how often, as a formula; are two of them equal?
 *   balance_text.c   how often, in words
 *   sizes.c          small sizes, and formulas evaluated at them
 *   lockstep*.c      does anybody wait for ever, for whatever counts?
 *   net.c            what each role does at given sizes, and one greedy run of all of them
 *   net_sizes.c      sizes at which somebody waits for ever */
#ifndef PIPEC_BALANCE_H
#define PIPEC_BALANCE_H

#include "check/walk.h"

/* ---- shapes ------------------------------------------------------------------------------------------------------- */

typedef enum ShapeKind { SHAPE_ACQUIRE, SHAPE_GRID, SHAPE_FOR, SHAPE_IF, SHAPE_LEAVE, SHAPE_BLOCK } ShapeKind;

typedef struct Shape Shape;
typedef VEC(Shape *) Shapes;
struct Shape {
    ShapeKind kind;
    Stmt *stmt;
    int levels;        /* SHAPE_LEAVE: loops between it and its target; -1: leaves the role */
    Shapes body, otherwise;
};

typedef struct Balance {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    VEC(const Stmt *) said;    /* loops and conditions that have been said to differ: those that hold acquires of several pipes */
} Balance;

/* What a role does with one end of a pipe; statements that do not matter are left out */
Shapes shapes_of(Balance *balance, const Role *role, int pipe, End end);
/* `apart`: the first of each that are not the same; NULL: there is none */
bool shapes_same(Balance *balance, const Role *const *roles, const Shapes *shapes, const Shape **apart);
int shapes_leaves(const Shapes *shapes, const Shape **where); /* places at which a loop or the role is left early, and the first of them */
Span shapes_first(const Shapes *shapes);                      /* the first acquire */
int balance_symbol(Balance *balance, const char *name, bool counts); /* one more, for a while; `counts`: never negative */

/* ---- counts ------------------------------------------------------------------------------------------------------- */

typedef enum Emptiness { MAYBE_EMPTY, NONEMPTY, EMPTY } Emptiness;

const char *shapes_text(Balance *balance, const Role *role, const Shapes *shapes); /* NULL: more than a formula says */
/* Certainly equal? `known`: by domain, what is taken for granted */
bool counts_equal(Balance *balance, const Role *a_role, const Shapes *a, const Role *b_role, const Shapes *b, const Emptiness *known);
bool counts_nothing(Balance *balance, const Role *role, const Shapes *shapes, const Emptiness *known);
Expr *domain_nonempty(Balance *balance, int domain); /* lo < hi, over symbols and axes */
Expr *positive(Balance *balance, Expr *expr);        /* expr >= 1, said simply: ceil(K, 64) >= 1 is K >= 1 */
bool only_symbols(const Expr *expr);

/* ---- sizes -------------------------------------------------------------------------------------------------------- */

typedef struct Cell {  /* an element of a tensor that is only read */
    int param, rank;
    int64_t subs[PROG_MAX_RANK], value;
} Cell;

typedef struct Memory {
    Arena *arena;
    VEC(Cell) cells;            /* that have been asked for, in this order; they are 0 unless said otherwise */
} Memory;

typedef struct Env {   /* values at which formulas are evaluated */
    const Prog *prog;
    const Role *role;
    const int64_t *symbols, *axes;
    const int64_t *locals;      /* of the role; NULL: none is known */
    const bool *known;
    struct Reads *reads;        /* what memory holds; NULL: not known */
    const int *rank;            /* NULL: that of the only instance, or not known */
} Env;

#define READS_MOST 6

typedef struct Reads {          /* tensors of whole numbers that are only read hold something small, made up */
    Memory *memory;             /* or what it says; NULL: it is made up */
    uint64_t seed;
    int64_t most;               /* that an element holds */
    struct Read { int param; int64_t subs[PROG_MAX_RANK], value; } seen[READS_MOST]; /* the first that were read */
    int count;
} Reads;

void reads_print(const Reads *reads, const Prog *prog, Str *out); /* ", L[0] = 3" */
bool evaluate(const Env *env, const Expr *expr, int64_t *out); /* false: not known at these values */

typedef struct Sizes {
    Arena *arena;
    const Prog *prog;
    int64_t *values;            /* by symbol: the sizes now */
    VEC(int) free;              /* symbols that are tried at several values */
    struct Values { int64_t *items; size_t count, capacity; } *candidates; /* by symbol, ascending */
    int *at;
    int sum;                    /* of `at`: smaller sizes come first */
    int64_t *tile;              /* by symbol: the largest constant it meets, as in ceil(K, 64); at least 1 */
    int rounds;                 /* multiples of a constant that are tried */
    bool started, sparse;
    Memory *memory;             /* that goes with the sizes; NULL: none */
} Sizes;

/* Iterations of a loop that show what there is to see; where instances take turns, each comes twice and the first again */
int sizes_rounds(const Prog *prog);
/* `sparse`: only values that differ in how many tiles they make */
Sizes *sizes_new(Arena *arena, const Prog *prog, bool sparse);
void sizes_formula(Sizes *sizes, Expr *expr);   /* its symbols are tried, at values around its constants */
bool sizes_next(Sizes *sizes);                  /* the next smallest that `requires` allows */
bool sizes_wide(Sizes *sizes, int symbol, int64_t trips); /* one (-1: each) so large that loops over it go round so often, the rest small; false where `requires` forbids it */
bool sizes_allowed(const Sizes *sizes);
void sizes_print(const Sizes *sizes, Str *out); /* "M = 3, K = 65" */
bool sizes_tiles(const Sizes *sizes, int64_t *extents, int64_t *tiles); /* of the grid's axes, and their product */

/* ---- waiting for ever ----------------------------------------------------------------------------------------------- */

/* needs equal counts; proves that nobody waits for ever, whatever the counts, or refuses, or says that it is not known */
void lockstep_check(Arena *arena, Prog *prog, Diags *diags);
bool lockstep_proves(Arena *arena, Prog *prog); /* without a word */

/* ---- the net ------------------------------------------------------------------------------------------------------ */

#define ALL_INSTANCES (-1)

typedef enum StepKind { STEP_ACQUIRE, STEP_RELEASE, STEP_TAKE, STEP_PASS } StepKind; /* of a stage; of a turn */

typedef struct Step {
    StepKind kind;
    bool produce;           /* which end of the pipe */
    int pipe, number;       /* the how-manieth stage of this end, from 0; of a turn: which one, and the how-manieth of all instances */
    Span place;
} Step;

typedef struct Trace Trace;
struct Trace {              /* one process at one size */
    const Role *role;
    int instance;           /* ALL_INSTANCES, or the one that it is */
    VEC(Step) steps;
    size_t at;              /* of the run: the next step */
    size_t most;            /* steps that are followed; 0: as many as a run takes */
    Reads *reads;           /* NULL: what depends on memory is not known */
    void (*seen)(Trace *, const Stmt *tile, const Env *, const int *held); /* told of each tile statement; held: by handle, the number of its stage */
    void *data;
};

/* What it does in one block that runs these tiles of the grid; false where it depends on data from there on, or is too long */
bool net_trace(Arena *arena, const Prog *prog, const Sizes *sizes, const int64_t *extents, int64_t first, int64_t tiles, Trace *trace);

typedef enum NetOutcome { NET_UNKNOWN, NET_ENDS, NET_STUCK } NetOutcome;

/* One run; `tiles` of the grid in a block, from the `first` on; diags: NULL, or where it is said who waits for whom */
NetOutcome net_try(Arena *arena, Prog *prog, Diags *diags, const Sizes *sizes, const int64_t *extents, int64_t first, int64_t tiles, Reads *reads,
                   size_t *steps);
/* needs equal counts; refuses what waits for ever at sizes that are found; false where none are */
bool net_check(Arena *arena, Prog *prog, Diags *diags);
/* How often a role acquires an end of a pipe when its block runs `tiles` tiles of the grid, from `tile` on; false where that is not known */
bool net_acquires(Arena *arena, const Prog *prog, const Role *role, int pipe, End end, const Sizes *sizes, const int64_t *extents,
                  int64_t tile, int64_t tiles, int64_t *count);

#endif
