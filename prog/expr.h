/* expr: the typed expressions of a program, the elements that they access, and their indexes.
 * "Filled by" names the pass of check/passes.def that sets a field. */
#ifndef PIPEC_EXPR_H
#define PIPEC_EXPR_H

#include "util/util.h"

#define PROG_MAX_RANK    5
#define PROG_MAX_INDEXES 10

typedef struct Expr Expr;

/* How a value varies over the threads of a role: the same in all, the same within an instance,
 * or free. In a role in turn UNIFORM_ROLE means: the same for every instance that could run an
 * iteration of the grid. Variation over the blocks of a cluster is in `along`. */
typedef enum ONE_BYTE Uniformity { UNIFORM_ROLE, UNIFORM_INSTANCE, UNIFORM_LANE } Uniformity;

typedef enum ONE_BYTE ExprKind {
    /* leaves come first */
    X_POISON, /* an error was reported; later checks ignore it */
    X_CONST,
    X_SYMBOL, /* prog->symbols[index]: an extent or an integer scalar parameter, known at launch */
    X_PARAM,  /* prog->params[index]: a floating point scalar parameter */
    /* grid axis `index`; only in range, grid and precondition formulas (in a role the loop binds
     * a local) */
    X_AXIS,
    X_LOCAL, /* role->locals[index] */
    X_RANK,  /* rank of the instance in its role */
    X_INDEX, /* space.items[index] of the statement or claim */
    X_READ,  /* an element of a tensor or tile */
    X_UNARY,
    X_BINARY,
    X_SELECT,
    X_CAST,   /* to `type` */
    X_CALL,   /* an intrinsic */
    X_REDUCE, /* over space.items[first .. first + count) */
    X_SCAN    /* the value of a statement: along space.items[along] */
} ExprKind;

typedef enum ONE_BYTE UnaryOp { OP_NEG, OP_NOT } UnaryOp;

typedef enum ONE_BYTE BinaryOp {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_AND,
    OP_OR
} BinaryOp;

typedef enum ONE_BYTE ReduceOp { REDUCE_SUM, REDUCE_MAX, REDUCE_MIN } ReduceOp;

/* Intrinsics: intrinsics.def, one row each */
typedef enum ONE_BYTE Intrinsic {
#define INTRINSIC(name, ...) IN_##name,
#include "prog/intrinsics.def"
#undef INTRINSIC
    IN_COUNT
} Intrinsic;

/* ACCURACY_EXACT: inside `exact(...)` */
typedef enum ONE_BYTE Accuracy { ACCURACY_FAST, ACCURACY_EXACT } Accuracy;

/* subscript = base + sum over indexes of coef[i] * index i; `base` contains no index (it is at
 * least a constant 0). is == false: not of this form (a gather, a product of indexes); then only
 * the subscript's Expr is valid. */
typedef struct Affine {
    bool is;
    Expr *base;
    int64_t multiple; /* divides base; 0: base is 0 */
    int64_t coef[PROG_MAX_INDEXES];
    /* is == false: 1 + the index whose values reach different positions, for all values of the
     * others: a rotation, (i + 3) % 8; it is in no other subscript. 0: none */
    int rotated;
} Affine;

typedef enum ONE_BYTE Space {
    SPACE_GLOBAL,   /* object: prog->params */
    SPACE_STAGE,    /* object: role->handles; field: of its pipe */
    SPACE_SHARED,   /* object: role->tiles, in shared memory of the instance */
    SPACE_REGISTER, /* object: role->tiles, in registers of the instance */
    SPACE_LET       /* object: prog->lets, in `ensures` */
} Space;

typedef struct Access {
    Space space;
    Element type; /* type in memory */
    bool old;     /* `old Y[i]`, in `ensures` */
    bool kept;    /* the value that `where` leaves in an element */
    int object, field;
    Expr *element; /* tile of an array field; NULL: the field is one tile */
    /* of the object, and the length of both arrays; a copy of an Access shares them */
    int rank;
    Expr **subs;
    Affine *affine; /* filled by tiles */
    Span span;
} Access;

struct Expr {
    ExprKind kind;
    /* of the value: F32, I32, U32, I64, U64, BOOL after widening; X_READ: also widened (an
     * implied cast) */
    Element type;
    /* over the threads that evaluate it; of variables: filled by uniform */
    Uniformity uniformity;
    /* bit a: may differ between blocks of a cluster along grid axis a (only bits of cluster_axes
     * are used) */
    uint16_t along;
    uint16_t indexes; /* bit i: depends on space.items[i] */
    Span span;
    union {
        /* integer types and BOOL: integer; F32: number */
        struct {
            int64_t integer;
            double number;
        } constant;
        int index; /* SYMBOL, PARAM, AXIS, LOCAL, INDEX */
        Access *read;
        struct {
            UnaryOp op;
            Expr *operand;
        } unary;
        /* operands of one type */
        struct {
            BinaryOp op;
            Accuracy accuracy;
            union {
                struct {
                    Expr *left, *right;
                };
                Expr *both[2];
            };
        } binary;
        struct {
            union {
                struct {
                    Expr *condition, *then, *otherwise;
                };
                Expr *all[3];
            };
        } select;
        Expr *cast;
        struct {
            Intrinsic which;
            Accuracy accuracy;
            int count;
            Expr *args[3];
        } call;
        struct {
            ReduceOp op;
            int first, count;
            Expr *body;
        } reduce;
        /* At position k of the index: of the bodies at its positions j with `j relation k`, where
         * the relation is OP_LE, OP_LT, OP_GE or OP_GT */
        struct {
            ReduceOp op;
            BinaryOp relation;
            int along;
            Expr *body;
        } scan;
    };
};
/* Subexpressions may be shared (a parameter of an inlined `fn`, a `let`): the tree is a DAG; a
 * traversal must remember visited nodes if it could visit a shared node often. */

/* True if both are spelled alike, apart from their places; false too for expressions of more than
 * a thousand nodes. expr.c */
bool expr_same(const Expr *a, const Expr *b);
/* for comparisons with each of a list: the nodes count as work */
bool expr_same_counted(Arena *arena, const Expr *a, const Expr *b);
bool access_same(const Access *a, const Access *b);
/* The comparison that is true where `op` is false; of floats only for == and != */
BinaryOp comparison_negated(BinaryOp op);
/* The comparison `b .. a` for `a op b` */
BinaryOp comparison_turned(BinaryOp op);

/* ---- scans (scan.c) -------------------------------------------------------------------------- */

/* A reduction whose index is compared with one of the result: `sum[j] (j <= k ? x[j] : 0)` */
typedef struct ScanForm {
    int own, along;    /* numbers of j and k */
    BinaryOp relation; /* `j relation k`: OP_LE, OP_LT, OP_GE or OP_GT */
    Expr *body;        /* x[j], which does not depend on k */
} ScanForm;

/* True if the reduction has this form: the value for other j is the neutral element. */
bool expr_scan_form(const Expr *reduction, ScanForm *out);
/* The index whose values the expression has, and where its range begins: such an index is written
 * as `from + index`; -1: another expression */
int expr_index(const Expr *expr, int64_t *from);
/* The value that does not change the result of the operation on elements of a widened type */
void reduce_neutral(ReduceOp op, Element type, int64_t *integer, double *number);

/* ---- index spaces ---------------------------------------------------------------------------- */

typedef struct Index {
    const char *name;
    Span span;      /* first use */
    int64_t extent; /* constant, or -1: see `dynamic` */
    /* extent of a global tensor, known at launch (`ensures`, and statements without a tile) */
    Expr *dynamic;
    Span range; /* the range that its statement or claim gives it; empty: none */
} Index;

static inline bool index_ranged(const Index *index) { return index->range.hi > 0; }

/* indexes of the destination first, in its order; then those of reductions; filled by elaborate,
 * extents by tiles */
typedef struct IndexSpace {
    int count; /* at most PROG_MAX_INDEXES */
    /* number of indexes of the destination (the others belong to reductions) */
    int bound;
    Index *items;   /* a copy of an IndexSpace shares them */
    bool overflows; /* the text has more; reported */
} IndexSpace;

/* Adds an index of unknown extent; there must be room. expr.c */
void index_space_add(Arena *arena, IndexSpace *space, const char *name, Span span);

/* ---- tables ---------------------------------------------------------------------------------- */

/* Whether a function of a file may have the name of an intrinsic */
typedef enum ONE_BYTE IntrinsicWord { WORD_RESERVED, WORD_LATER, WORD_OPERATOR } IntrinsicWord;

typedef struct IntrinsicRow {
    const char *name;
    int args;
    int instructions[2]; /* of the PTX of one element, by Accuracy */
    /* error bound of the fast form and of exact(...), for the documentation */
    const char *accuracy, *exact_accuracy;
    /* error bound of the fast form, in units in the last place of f32; -1: absolute, see the
     * text */
    double ulp;
    const char *what;
    IntrinsicWord word;
} IntrinsicRow;
extern const IntrinsicRow intrinsic_rows[IN_COUNT];
/* Of the bits of integers: little is proved of its value, and a launch does not compute it */
static inline bool intrinsic_of_bits(Intrinsic which) { return which >= IN_bit_and; }
/* The operator; NULL: it is written as a call. print_expr.c */
const char *intrinsic_operator(Intrinsic which);

/* ---- visits (expr.c) ------------------------------------------------------------------------- */

static inline bool expr_is_leaf(const Expr *expr) { return expr->kind < X_READ; }

typedef struct ExprParts {
    int count;
    Expr **items; /* never NULL */
} ExprParts;

/* The expressions of which this one consists; none of a read: see access_exprs */
static inline ExprParts expr_parts(Expr *expr) {
    switch (expr->kind) {
    case X_UNARY: return (ExprParts){1, &expr->unary.operand};
    case X_BINARY: return (ExprParts){2, expr->binary.both};
    case X_SELECT: return (ExprParts){3, expr->select.all};
    case X_CAST: return (ExprParts){1, &expr->cast};
    case X_CALL: return (ExprParts){expr->call.count, expr->call.args};
    case X_REDUCE: return (ExprParts){1, &expr->reduce.body};
    case X_SCAN: return (ExprParts){1, &expr->scan.body};
    case X_POISON:
    case X_CONST:
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_LOCAL:
    case X_RANK:
    case X_INDEX:
    case X_READ: break;
    }
    return (ExprParts){0, NULL};
}

/* Calls visit for all subexpressions and then the expression, including subscripts of reads,
 * once for each shared node. */
void expr_visit(Arena *arena, Expr *expr, void (*visit)(Expr *, void *), void *data);
/* Calls visit for each element that an expression reads; `written` is false. */
void expr_reads(Arena *arena, Expr *expr, void (*visit)(Access *, bool written, void *),
                void *data);
/* Calls visit for the expressions that an access evaluates itself */
void access_exprs(const Access *access, void (*visit)(Expr *, void *), void *data);
/* True if it depends on this index of its statement; -1: none */
bool expr_depends(const Expr *expr, int index);
/* True if it consists only of constants, symbols and operations of launches: a launch can compute
 * it. */
bool expr_is_launch_constant(Expr *expr);

/* ---- constructors (expr.c) ------------------------------------------------------------------- */

bool expr_constant(const Expr *expr, int64_t *out); /* an integer constant after folding */
/* Small constructors with folding, for passes that build formulas */
Expr *expr_integer(Arena *arena, Element type, int64_t value, Span span);
Expr *expr_binary(Arena *arena, BinaryOp op, Expr *left, Expr *right, Span span);
/* Allocates the arrays of an access, those that later passes fill in `facts`; its rank must be
 * set. */
void access_allocate(Arena *arena, Arena *facts, Access *access);

#endif
