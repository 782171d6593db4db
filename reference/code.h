/* reference, private: expressions as straight-line code over lanes.
 *
 * An expression becomes a Function: steps over registers of LANES values each, so that one
 * dispatch computes many elements. Steps that do not depend on the index of a reduction are
 * outside its loop. A Machine holds the environment of functions: symbols, scalars, arrays, and
 * the cached values of `let`s. */
#ifndef PIPEC_REFERENCE_CODE_H
#define PIPEC_REFERENCE_CODE_H

#include "reference/reference.h"

#define LANES 256

typedef union Value {
    double number;   /* of float types */
    int64_t integer; /* of all other types; u64: its bits */
} Value;

typedef enum StepOp {
    STEP_NEG,
    STEP_NOT,
    STEP_ADD,
    STEP_SUB,
    STEP_MUL,
    STEP_DIV,
    STEP_MOD,
    STEP_EQ,
    STEP_NE,
    STEP_LT,
    STEP_LE,
    STEP_AND,
    STEP_OR,
    STEP_SELECT, /* a ? b : c */
    STEP_CAST,   /* from `type` to `to` */
    STEP_CALL,   /* intrinsic `which` of a, b, c */
    STEP_PLACE,  /* flat index a, and subscript b of one more dimension; -1: outside */
    STEP_READ,   /* an element of an array, at flat index a */
    STEP_LET,    /* an element of a let, at flat index a */
    STEP_REDUCE,
    STEP_SCAN
} StepOp;

typedef struct Step Step;
typedef struct Block {
    Step *items;
    size_t count, capacity;
    double cost; /* operations for one lane, without those of loops inside */
} Block;

typedef struct Read {
    Element type;
    int64_t extent, stride;    /* STEP_PLACE, of the dimension */
    const unsigned char *data; /* STEP_READ */
    const Value *bytes;        /* STEP_READ of a type of one byte: the values of all bytes */
    int let;                   /* STEP_LET: index of the let */
} Read;

typedef struct Loop {
    ReduceOp op;
    int count;
    int indexes[PROG_MAX_INDEXES]; /* registers of the indexes */
    int64_t trips[PROG_MAX_INDEXES];
    int value; /* register of the body's value */
    Block body;
} Loop;

/* `sum[j] (j <= k ? x[j] : 0)`: x[j] is a function of its own over all indexes. The results of a
 * row, the positions of k for fixed values of the others, are computed at once, and those of some
 * rows are kept. */
typedef struct Scan {
    ReduceOp op;
    BinaryOp relation; /* `j relation k` */
    struct Function *body;
    int own, along;               /* the index j of the body; the register of k */
    int64_t trips;                /* extent of j */
    int count;                    /* indexes that the body depends on, without j */
    int others[PROG_MAX_INDEXES]; /* their numbers in the body */
    int regs[PROG_MAX_INDEXES];   /* and their registers */
    int64_t extents[PROG_MAX_INDEXES];
    int64_t kept;  /* rows */
    int64_t *rows; /* by place: its number; -1: empty. NULL: not yet allocated */
    Value *values; /* by place: of 0 .. trips elements from the start, or from 0 .. trips on */
} Scan;

struct Step {
    StepOp op;
    Element type; /* of the operands */
    Element to;
    Intrinsic which;
    int out, a, b, c; /* registers */
    const Read *read;
    Loop *loop;
    Scan *scan;
};

/* Reads of a let by a function. The element that is read depends on some of the indexes only */
typedef struct LetUse {
    int let;
    double times; /* number of reads per execution of the function for one element */
    /* of the let's axes: the indexes of the function that its subscript contains, as bits, and the
     * number of values that other indexes, those of reductions, give it */
    uint64_t indexes[PROG_MAX_RANK];
    double own[PROG_MAX_RANK];
} LetUse;

typedef struct Function {
    int bound;                         /* number of indexes, in registers 0 .. */
    int64_t extents[PROG_MAX_INDEXES]; /* of the indexes */
    int64_t count;                     /* product of the extents; -1: over 2^62 */
    Block steps;
    int registers;
    Value *frame; /* registers * LANES */
    int result;
    Element type; /* of the result */
    int got;      /* claims: register of the target's element */
    double cost;  /* operations per element, without lets */
    VEC(LetUse) uses;
} Function;

/* Values of a let are cached: direct-mapped by flat index; small lets are cached completely */
#define REMEMBERED_MAX (1 << 20)
typedef struct Remembered {
    Function *function; /* NULL: not yet compiled */
    int64_t size;       /* slots; 0: not yet allocated */
    int64_t *keys;      /* flat index, -1: empty */
    /* requested in the current batch; the value's integer is its index there */
    bool *pending;
    Value *values;
} Remembered;

#define SCAN_TRIPS ((int64_t)1 << 27) /* longer scans are computed as reductions */

typedef struct Machine {
    Arena *arena;
    const Prog *prog;
    const int64_t *symbols;
    const Scalar *scalars; /* one per parameter; NULL: none are read */
    const Array *arrays;   /* one per parameter; NULL: none are read */
    const Array *before;
    Remembered *lets; /* one per let of the prog */
    /* lets in the order in which their compilation ended: a let follows those that it reads */
    int *order, ordered;
    double done;               /* operations so far, as costs count them */
    double next_watch;         /* value of `done` at the next call of `watch` */
    bool (*watch)(void *data); /* NULL, or called now and then; false: `stopped` */
    void *watch_data;
    bool stopped; /* nothing more is computed, and results have no meaning */
} Machine;

Machine *machine_new(Arena *arena, const Prog *prog, const int64_t *symbols, const Scalar *scalars,
                     const Array *arrays, const Array *before);
/* Compiles an expression over an index space. `target`: of a claim, otherwise NULL */
Function *function_compile(Machine *machine, const IndexSpace *space, const Expr *value,
                           const Access *target);
/* Runs a function for `lanes` elements, whose indexes are in registers 0 .. bound - 1; stores
 * the result, and the target's element. */
void function_run(Machine *machine, const Function *function, int lanes);
/* Loads the index registers with consecutive elements, first .. first + lanes, or with those of
 * a list. */
void function_place(const Function *function, int64_t first, int lanes);
void function_place_list(const Function *function, const int64_t *flat, int lanes);
/* Number of operations for `elements` elements, including lets. */
double function_cost(Machine *machine, const Function *function, double elements);

static inline Value *register_of(const Function *function, int which) {
    return function->frame + (size_t)which * LANES;
}
static inline bool is_number(Element type) { return element_rows[type].kind == ELEMENT_FLOAT; }

/* sample.c: the elements to check. Flat indexes, sorted, without duplicates. */
typedef struct Elements {
    bool all;
    int64_t count;
    const int64_t *flat; /* unless all are checked */
} Elements;
void elements_choose(Arena *arena, const Prog *prog, const Claim *claim, const Function *function,
                     int64_t wanted, const int64_t *extra, int64_t extra_count, uint64_t seed,
                     Elements *out);

/* untouched.c: elements of `out` tensors that still hold the poison of launch/ */
typedef struct Untouched {
    int64_t count;
    int64_t *first; /* the first ones, flat indexes */
    int64_t listed;
} Untouched;
bool element_untouched(Element type, const unsigned char *at);
void untouched_find(Arena *arena, const Array *array, Untouched *out);

#endif
