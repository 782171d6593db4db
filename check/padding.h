/* padding: private to check/padding*.c. A tile at a tensor's edge is filled with zeros where the tensor ends: padding. What is computed there
 * belongs to no element. Zeros pass through products and sums; what is not zero for zeros must not be reduced, and max and min must not see
 * the zeros either.
 *   padding_value.c  what an expression holds along one axis of a statement
 *   padding.c        the rule over Code: tiles, stages, reductions and loops that reduce */
#ifndef PIPEC_PADDING_H
#define PIPEC_PADDING_H

#include "check/passes.h"
#include "derive/tiles.h"
#include "flow/solve.h"
#include "flow/values.h"

/* What positions along an axis may hold, as a set. A position holds one of these; which one may differ from path to path. */
typedef enum Pad {
    PAD_ELEMENT = 1, /* an element, or a value that the author chose */
    PAD_NOUGHT = 2,  /* a constant 0 */
    PAD_ZERO = 4,    /* elements, and zeros beyond the edge */
    PAD_ONE = 8,     /* elements, and ones beyond the edge: exp of zeros */
    PAD_DIRTY = 16,  /* elements, and beyond the edge what was computed from zeros */
    PAD_MOST = PAD_DIRTY
} Pad;

#define EDGES_MOST 3

/* Where the edge is: positions at which 0 <= sub < past does not hold are padding. */
typedef struct Edge {
    const Poly *sub;  /* of the atom `place`, in the algebra of the role; NULL: not known */
    const Poly *past;
    Span from;        /* the read that brought the padding */
} Edge;

typedef struct Fill {
    unsigned pads;    /* of Pad; 0: nothing written yet */
    int count;
    Edge edges[EDGES_MOST];
    bool more;        /* edges than there is room for */
} Fill;

typedef struct TileFill {
    Fill dims[PROG_MAX_RANK];
} TileFill;

/* An axis of a statement: an index, or the variable of a loop around it */
typedef struct PadAxis {
    int index;        /* -1: a loop's */
    int atom;         /* in the role's algebra */
    int local;        /* of the loop, -1: an index */
} PadAxis;

typedef struct Padding {
    Tiles *tiles;
    Arena *arena;
    TileFill **fields; /* by pipe and field: what all producers write */
    bool changed;      /* one of them grew in this round */
    bool proofs;       /* take reads that are proved inside of their tensors for elements: costly, so only where something is refused */
    bool report;
    int refused;
    VEC(Span) reported;
    /* of the role, and the statement looked at */
    FlowCode *code;
    int at;
    const IndexSpace *space;
    const TileFill *state;
    const Expr *self;  /* what the statement adds up: held to be 0 */
    const Access *target;
    int target_local;
    VEC(struct Decided { Expr *condition; bool truth; }) decided;
    long work;         /* nodes left for this statement */
} Padding;

void fill_add(Fill *to, const Fill *from); /* either of them */
bool fill_same(const Fill *a, const Fill *b);
bool fill_padded(const Fill *fill);

/* The atom that stands for a position along a dimension of a tile */
int padding_place(Padding *p);
/* What the expression holds along the axis, at the row that is looked at */
Fill padding_of(Padding *p, Expr *expr, PadAxis axis);
bool padding_mentions(Padding *p, Expr *expr, PadAxis axis);
/* What a tile holds where the conditions that are assumed hold: elements alone, if all its places are then certainly inside of the edges */
void padding_refine(Padding *p, Fill *fill, int64_t extent);
bool padding_reads_self(Padding *p, Expr *expr);

#endif
