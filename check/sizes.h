/* sizes: private to check/: small sizes at which counterexamples are looked for, and formulas evaluated at them. */
#ifndef PIPEC_SIZES_H
#define PIPEC_SIZES_H

#include "algebra/algebra.h"
#include "flow/code.h"

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
    bool exact;                 /* as a launch evaluates: integers have no width */
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
void sizes_code(Sizes *sizes, const FlowCode *code); /* formulas of all its bounds and conditions */
bool sizes_next(Sizes *sizes);                  /* the next smallest that `requires` allows */
/* One (-1: each) so large that loops over it go round so often, the rest small; false where `requires` forbids it */
bool sizes_wide(Sizes *sizes, int symbol, int64_t trips);
bool sizes_allowed(const Sizes *sizes);
void sizes_print(const Sizes *sizes, Str *out); /* "M = 3, K = 65" */
bool sizes_tiles(const Sizes *sizes, int64_t *extents, int64_t *tiles); /* of the grid's axes, and their product */

#endif
