/* sizes, check private: small sizes for counterexamples, and evaluation of formulas at them. */
#ifndef PIPEC_SIZES_H
#define PIPEC_SIZES_H

#include "algebra/algebra.h"
#include "flow/code.h"

typedef struct Cell { /* an element of a tensor that is only read */
    int param, rank;
    int64_t subs[PROG_MAX_RANK], value;
} Cell;

typedef struct Memory {
    Arena *arena;
    /* cells that were read, in this order; 0 unless set */
    VEC(Cell) cells;
} Memory;

typedef struct Env { /* values at which formulas are evaluated */
    Arena *arena;    /* whose meter counts the work */
    const Prog *prog;
    const Role *role;
    const int64_t *symbols, *axes;
    const int64_t *locals; /* of the role; NULL: none is known */
    const bool *known;
    struct Reads *reads; /* contents of memory; NULL: unknown */
    const int *rank;     /* NULL: that of the only instance, or unknown */
    bool exact;          /* as a launch evaluates: integers without width */
} Env;

#define READS_MOST 6

typedef struct Reads { /* invented small contents of integer tensors that are only read */
    Memory *memory;    /* or explicit contents; NULL: invented */
    uint64_t seed;
    int64_t most; /* largest value of an element */
    /* the first reads */
    struct Read {
        int param;
        int64_t subs[PROG_MAX_RANK], value;
    } seen[READS_MOST];
    int count;
} Reads;

void reads_print(const Reads *reads, const Prog *prog, Str *out); /* ", L[0] = 3" */
bool evaluate(const Env *env, const Expr *expr, int64_t *out); /* false: unknown at these values */

typedef struct Sizes {
    Arena *arena;
    const Prog *prog;
    int64_t *values; /* by symbol: the present sizes */
    VEC(int) free;   /* symbols with several values */
    /* by symbol, ascending */
    struct Values {
        int64_t *items;
        size_t count, capacity;
    } * candidates;
    int *at;
    int sum; /* of `at`: smaller sizes come first */
    /* by symbol: the largest constant with it, as in ceil(K, 64); at least 1 */
    int64_t *tile;
    int rounds;  /* multiples of a constant that are tried */
    size_t most; /* candidates of a symbol */
    bool started, sparse;
    Memory *memory; /* for the present sizes; NULL: none */
} Sizes;

/* Sufficient number of iterations of a loop; with instances in turn, each has two and the first
 * one more */
int sizes_rounds(const Prog *prog);
/* `sparse`: only values with different numbers of tiles */
Sizes *sizes_new(Arena *arena, const Prog *prog, bool sparse);
void sizes_formula(Sizes *sizes, Expr *expr); /* adds its symbols, with values near its constants */
/* adds formulas of all its bounds and conditions */
void sizes_code(Sizes *sizes, const FlowCode *code);
bool sizes_next(Sizes *sizes); /* the next smallest that `requires` allows */
/* One symbol (-1: each) so large that loops over it have so many iterations, the others small;
 * false if `requires` forbids it */
bool sizes_wide(Sizes *sizes, int symbol, int64_t trips);
bool sizes_allowed(const Sizes *sizes);
void sizes_print(const Sizes *sizes, Str *out); /* "M = 3, K = 65" */
/* of the grid's axes, and their product */
bool sizes_tiles(const Sizes *sizes, int64_t *extents, int64_t *tiles);

#endif
