/* Random graphs of roles and pipes: drawn, printed, interpreted and mutated.
 *
 * A program begins as a script: events in one order for all roles, each the hand-over of one
 * stage, in loops over ranges and under conditions. A role is the script's projection on its own
 * events, so the ends of a pipe agree by construction, and the role of the next event in the
 * script can always continue. Roles are then varied (nested blocks, flat stages that are
 * released later, exchanged orders, lag, hints, pieces of ranges, stages in variables over
 * iterations), and mutants lose a property that makes them right. */
#ifndef TESTS_GRAPHS_H
#define TESTS_GRAPHS_H

#include "tests/generate/generate.h"

#define WIDTH      32 /* elements of a stage's only field */
#define MAX_PIPES  6
#define MAX_ROLES  5
#define MAX_RANGES 4
#define MAX_NAMES  256 /* loops and stages of a program */

/* ---- structure ------------------------------------------------------------------------------- */

typedef enum GraphSymbol {
    SYMBOL_M,
    SYMBOL_K,
    SYMBOL_L,
    SYMBOL_Q,
    SYMBOLS
} GraphSymbol; /* extents M, K, L; Q is a scalar parameter */
extern const char *const symbol_names[SYMBOLS];

typedef enum TermKind { TERM_NUMBER, TERM_SYMBOL, TERM_TILE, TERM_LOOP } TermKind;
typedef struct Term { /* (what + add) % modulus */
    TermKind kind;
    /* the number, symbol, grid axis, or name of the loop */
    int of;
    int add, modulus; /* 0: none */
} Term;

typedef enum RangeForm { RANGE_PLAIN, RANGE_LEAST, RANGE_HALF, RANGE_LESS, RANGE_FORMS } RangeForm;
typedef struct Range { /* from 0 to a, min(a, b), ceil(a, 2), a - b */
    RangeForm form;
    Term a, b;
    int parity; /* iterations with index % 2 == parity; -1: all */
} Range;

typedef struct Condition {
    int nonempty; /* a range, or -1: left op right */
    Term left, right;
    int op; /* of OPERATORS */
} Condition;
extern const char *const operators[];
#define OPERATORS 6

typedef enum NodeKind {
    NODE_LIST,  /* body */
    NODE_FOR,   /* over a range, or from `from` to `to` of it */
    NODE_IF,    /* body, otherwise */
    NODE_LEAVE, /* if the condition holds: break, or continue */
    NODE_EVENT, /* of a script: hands over one stage of a pipe */
    /* of a script: one event, then one per iteration; consumers hold the last stage meanwhile */
    NODE_ROTATE,
    NODE_STAGE,   /* of a role: a block */
    NODE_ACQUIRE, /* without a block */
    NODE_USE,     /* reads, or fills, a flat stage */
    NODE_RELEASE,
    NODE_MOVE,
    NODE_HINT
} NodeKind;

/* How a statement reads a stage into the vector of its role, or writes it */
typedef enum Form {
    FORM_PLAIN,
    FORM_RANGE, /* with the range of its index */
    /* reads: adds a reduction of all elements, for which the warps exchange */
    FORM_SUM,
    FORM_MAX,
    FORM_MIN,
    FORM_WHERE, /* reads: only the elements that are no multiples of 3 */
    FORMS
} Form;

typedef struct Node Node;
typedef VEC(Node *) Nodes;
struct Node {
    NodeKind kind;
    Nodes body, otherwise;
    Condition condition;
    int range, loop; /* index of the range, and name of the loop variable */
    int from, to;    /* of the range; -1: all */
    /* the first iteration of a nonempty range: its variable is 0 */
    bool unrolled;
    bool goes_on; /* NODE_LEAVE: continue */
    int pipe;
    bool produce, is_var, by_call;
    Form form;        /* of the statement on the stage */
    int stage, other; /* names of stages; `other` moves into `stage` */
    int lag;          /* -1: not written */
    int hint;         /* name of the hint; -1: none */
    int constant,
        /* added to the value that is read; a written value is constant + 7 * term, or row term +
         * constant of a tensor */
        copy;
    Term term; /* copy: 0 of A, 1 of B, -1: computed */
};

typedef struct GraphPipe {
    int depth, producer, consumers[MAX_ROLES], consumer_count;
    bool token, copied,
        /* copied: each stage is copied from a tensor; outside: handed over before the loop over
         * the grid */
        outside;
    bool used;
} GraphPipe;

typedef struct GraphRole {
    int warps, instances; /* instances > 1: of a warpgroup each */
    /* writes: it reads stages, and writes a result to its tensor */
    bool in_turn, writes;
    Form form; /* of the statement that writes it: plain, with a range, or in two with `where` */
    Nodes before, body, after; /* before, in and after the loop over the grid */
} GraphRole;

typedef struct Graph {
    Arena *arena;
    Random random;
    uint64_t seed;
    GraphPipe pipes[MAX_PIPES];
    GraphRole roles[MAX_ROLES];
    Range ranges[MAX_RANGES];
    int pipe_count, role_count, range_count, axes, names;
    int cluster; /* along the first axis */
    /* dynamic: of the persistent ones; by_call: a function releases some stage */
    bool persistent, dynamic, by_call;
    bool mutated, freely;
    const char *mutation; /* description of the mutation */
} Graph;

/* ---- operations ------------------------------------------------------------------------------ */

Node *node_new(Graph *graph, NodeKind kind);
void nodes_insert(Graph *graph, Nodes *nodes, size_t at, Node *node);
Node *nodes_remove(Nodes *nodes, size_t at);
Node *node_copy(Graph *graph, const Node *node); /* renames the stages of blocks */
Term term_draw(Graph *graph, const int *loops, int loop_count, bool outside);
Condition condition_draw(Graph *graph, const int *loops, int loop_count);

Graph *graph_draw(Arena *arena, uint64_t seed); /* the plain projections */
/* Varies the roles. Not `freely`: only variations that hold no stage longer; `in_pieces`: some
 * roles iterate over parts of a range, one after the other. */
void graph_decorate(Graph *graph, bool freely, bool in_pieces);
void graph_mutate(Graph *graph);
const char *graph_text(Graph *graph);

/* The expected result at given sizes: each block's roles as lists of actions, executed until
 * none can continue. By the reference a stage is handed over at its release; `early`: as
 * generated code does it, a stage filled by copies is full as soon as they have completed. */
typedef struct Expected {
    bool hangs;
    int produced[MAX_PIPES],
        /* acquires, by pipe and consumer; of the first block that differs */
        consumed[MAX_PIPES][MAX_ROLES];
    bool balanced;
    /* expected content of each role's tensor; NULL if it has none */
    int32_t *results[MAX_ROLES];
    size_t actions; /* of all blocks */
} Expected;
void graph_expect(Graph *graph, const int64_t *sizes, int resident, bool early, Arena *arena,
                  Expected *out);
/* contents of the tensors: 0 is A, 1 is B */
int32_t graph_input(int tensor, int64_t row, int element);

#endif
