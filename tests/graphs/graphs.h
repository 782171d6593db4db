/* Random role/pipe programs: what is drawn, printed, run by hand and mutated.
 *
 * A program begins as a script: events in one order for all roles, each the hand-over of one stage, in loops over ranges and under
 * conditions. A role is the script's projection on its own events; so the ends of a pipe agree by construction, and whoever is first in
 * the script can always go on. Roles then take liberties (nested blocks, flat stages that are released later, orders exchanged, lag, hints,
 * pieces of ranges, stages in variables over iterations), and mutants lose what makes them right. */
#ifndef TESTS_GRAPHS_H
#define TESTS_GRAPHS_H

#include "tests/generate/generate.h"

#define WIDTH      32 /* elements of a stage's only field */
#define MAX_PIPES  6
#define MAX_ROLES  5
#define MAX_RANGES 4
#define MAX_NAMES  256 /* loops and stages of a program */

/* ---- what it is made of ------------------------------------------------------------------------------------------------- */

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
    int of;           /* the number, symbol, axis of the grid, or name of the loop */
    int add, modulus; /* 0: none */
} Term;

typedef enum RangeForm { RANGE_PLAIN, RANGE_LEAST, RANGE_HALF, RANGE_LESS, RANGE_FORMS } RangeForm;
typedef struct Range { /* from 0 to a, min(a, b), ceil(a, 2), a - b */
    RangeForm form;
    Term a, b;
    int parity; /* where its index % 2 is that; -1: all */
} Range;

typedef struct Condition {
    int nonempty; /* a range, or -1: left op right */
    Term left, right;
    int op; /* of OPERATORS */
} Condition;
extern const char *const operators[];
#define OPERATORS 6

typedef enum NodeKind {
    NODE_LIST,    /* body */
    NODE_FOR,     /* over a range, or from `from` to `to` of it */
    NODE_IF,      /* body, otherwise */
    NODE_LEAVE,   /* if the condition holds: break, or continue */
    NODE_EVENT,   /* of a script: one stage of a pipe is handed over */
    NODE_ROTATE,  /* of a script: one event and one an iteration; consumers hold the last one of them meanwhile */
    NODE_STAGE,   /* of a role: a block */
    NODE_ACQUIRE, /* flat */
    NODE_USE,     /* reads, or fills, a flat stage */
    NODE_RELEASE,
    NODE_MOVE,
    NODE_HINT
} NodeKind;

typedef struct Node Node;
typedef VEC(Node *) Nodes;
struct Node {
    NodeKind kind;
    Nodes body, otherwise;
    Condition condition;
    int range, loop; /* NODE_FOR: which, and the name of its variable */
    int from, to;    /* of the range; -1: all */
    bool unrolled;   /* the first trip of a range that is not empty: its variable is 0 */
    bool goes_on;    /* NODE_LEAVE: continue */
    int pipe;
    bool produce, is_var, by_call;
    int stage, other; /* names of stages; `other` moves into `stage` */
    int lag;          /* -1: not said */
    int hint;         /* the name of a hint; -1: none */
    int constant,
        copy; /* what is added to what is read; what is written is constant + 7 * term, or row term + constant of a tensor */
    Term term; /* copy: 0 of A, 1 of B, -1: computed */
};

typedef struct GraphPipe {
    int depth, producer, consumers[MAX_ROLES], consumer_count;
    bool token, copied,
        outside; /* copied: each stage is, from a tensor; outside: handed over before the loop over the grid */
    bool used;
} GraphPipe;

typedef struct GraphRole {
    int warps, instances;       /* instances > 1: of a warpgroup each */
    bool in_turn, writes;       /* writes: it reads something, and leaves what comes of it in its tensor */
    Nodes before, body, behind; /* before the loop over the grid, in it, behind it */
} GraphRole;

typedef struct Graph {
    Arena *arena;
    Random random;
    uint64_t seed;
    GraphPipe pipes[MAX_PIPES];
    GraphRole roles[MAX_ROLES];
    Range ranges[MAX_RANGES];
    int pipe_count, role_count, range_count, axes, names;
    int cluster;              /* along the first axis */
    bool persistent, by_call; /* some stage is released by a function */
    bool mutated, freely;
    const char *mutation; /* what was done */
} Graph;

/* ---- what is done with it ----------------------------------------------------------------------------------------------- */

Node *node_new(Graph *graph, NodeKind kind);
void nodes_insert(Graph *graph, Nodes *nodes, size_t at, Node *node);
Node *nodes_remove(Nodes *nodes, size_t at);
Node *node_copy(Graph *graph, const Node *node); /* stages of blocks get other names */
Term term_draw(Graph *graph, const int *loops, int loop_count, bool outside);
Condition condition_draw(Graph *graph, const int *loops, int loop_count);

Graph *graph_draw(Arena *arena, uint64_t seed); /* plain projections */
/* Takes the liberties. Not `freely`: only those with which nobody holds a stage for longer; `in_pieces`: loops over parts of a range, one
 * behind the other, in some of the roles. */
void graph_decorate(Graph *graph, bool freely, bool in_pieces);
void graph_mutate(Graph *graph);
const char *graph_text(Graph *graph);

/* A run by hand at given sizes: each block's roles as lists of actions, carried out until nobody can go on. By the reference a stage is
 * handed over where it is released; `early`: as it is generated, one that copies fill is full when these have landed. */
typedef struct Expected {
    bool hangs;
    int produced[MAX_PIPES],
        consumed[MAX_PIPES][MAX_ROLES]; /* acquires, by pipe and consumer; of the first block that differs */
    bool balanced;
    int32_t *results[MAX_ROLES]; /* what each role leaves in its tensor; NULL where it has none */
    size_t actions;              /* of all blocks */
} Expected;
void graph_expect(Graph *graph, const int64_t *sizes, int resident, bool early, Arena *arena, Expected *out);
int32_t graph_input(int tensor, int64_t row, int element); /* what the tensors hold: 0 is A, 1 is B */

#endif
