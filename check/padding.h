/* padding: private to check/padding*.c.
 *
 * A tile at a tensor's edge is filled with zeros where the tensor ends: padding. What is computed
 * there belongs to no element. The rule follows what stands beyond the edges: zeros do no harm to a
 * sum, -inf none to a maximum; all else must not be reduced.
 *   padding_pad.c    the values beyond an edge, and what operations make of them
 *   padding_value.c  what an expression holds along one axis of a statement
 *   padding_sign.c   which expressions are never below zero
 *   padding_roles.c  which roles it is a question for
 *   padding.c        the rule over Code: tiles, stages, reductions and loops that reduce */
#ifndef PIPEC_PADDING_H
#define PIPEC_PADDING_H

#include "check/passes.h"
#include "derive/tiles.h"
#include "flow/solve.h"
#include "flow/values.h"

/* What positions along an axis may hold, as a set: one of these, which one may differ from path to
 * path. The first six do not depend on where a tensor ends; the others hold elements inside of the
 * edges, and beyond them what their name says. */
typedef enum Pad {
    PAD_ELEMENT = 1 << 0,    /* an element, or a value that the author chose */
    PAD_SELF = 1 << 1,       /* what the statement adds up, or takes the maximum of, before it */
    PAD_CONST_ZERO = 1 << 2, /* a constant 0, */
    PAD_CONST_LOW = 1 << 3,  /* -inf */
    PAD_CONST_HIGH = 1 << 4, /* or inf */
    PAD_LIVE = 1 << 5,       /* the author's own zeros beyond the edge, any value inside of it: a mask in a tile */
    PAD_MASKED = 1 << 6,     /* zeros that the author selects there */
    PAD_ZERO = 1 << 7,       /* zeros */
    PAD_ONE = 1 << 8,        /* ones: exp of zeros */
    PAD_LOW = 1 << 9,        /* -inf */
    PAD_HIGH = 1 << 10,      /* inf */
    PAD_FINITE = 1 << 11,    /* numbers that were computed from zeros */
    PAD_ANY = 1 << 12,       /* the same, perhaps infinite, or no numbers */
    PAD_MOST = PAD_ANY
} Pad;

#define PADS_BEYOND   (PAD_MASKED | PAD_ZERO | PAD_ONE | PAD_LOW | PAD_HIGH | PAD_FINITE | PAD_ANY)
#define PADS_UNSUMMED (PAD_ONE | PAD_LOW | PAD_HIGH | PAD_FINITE | PAD_ANY) /* that a sum must not take */

typedef enum PadOp { PAD_ADD, PAD_SUB, PAD_MUL, PAD_DIV, PAD_MAX, PAD_MIN, PAD_OTHER } PadOp;

#define EDGES_MOST 3

/* Where the edge is: positions at which 0 <= sub < past does not hold are padding. */
typedef struct Edge {
    const Poly *sub; /* of the atom `place`, in the algebra of the role; NULL: not known */
    const Poly *past;
    Span from; /* the read that brought the padding */
} Edge;

typedef struct Fill {
    unsigned pads; /* of Pad; 0: nothing written yet */
    int count;
    Edge edges[EDGES_MOST];
    bool more; /* edges than there is room for */
} Fill;

/* What was computed in an iteration of a loop from what lies beyond an edge along its variable */
typedef struct LoopFill {
    int local; /* the loop's */
    Fill fill; /* empty: nothing along this loop */
} LoopFill;

#define LOOPS_MOST 2

typedef struct TileFill {
    Fill dims[PROG_MAX_RANK];
    LoopFill loops[LOOPS_MOST];
    bool more_loops; /* than there is room for */
    bool below_zero; /* an element may be; false: nothing written yet, or all are known not to be */
} TileFill;

/* An axis of a statement: an index, or the variable of a loop around it */
typedef struct PadAxis {
    int index;  /* -1: a loop's */
    int atom;   /* in the role's algebra */
    int local;  /* of the loop, -1: an index */
    bool fixed; /* neither: positions that constants name */
} PadAxis;

typedef struct Padding {
    Tiles *tiles;
    Arena *arena;
    TileFill **fields; /* by pipe and field: what all producers write */
    bool *reads;       /* by role, then pipe: what it knows depends on what the pipe's stages hold */
    bool *follows;     /* by role, as padding_roles says */
    bool *again;       /* by role: a pipe that it reads has grown since it was followed */
    int *refused;      /* by role: how often, when it was followed last */
    bool
        proofs; /* take reads that are proved inside of their tensors for elements: costly, so only where something is refused */
    bool report;
    VEC(Span) reported;
    /* of the role, and the statement looked at */
    FlowCode *code;
    int at;
    const IndexSpace *space;
    TileFill *state;
    const Expr *self; /* what the statement adds up: held to be 0 */
    const Access *target;
    int target_local;
    VEC(struct Decided {
        Expr *condition;
        bool truth;
        Fill beyond; /* what the condition holds, where its truth beyond an edge may be this one */
        bool masks;  /* an arm was chosen in place of padding, and all of the other way is inside of the edges */
    })
    decided;
    long work; /* nodes left for this statement */
} Padding;

/* ---- padding_pad.c */

void fill_add(Fill *to, const Fill *from); /* either of them */
bool fill_same(const Fill *a, const Fill *b);
bool fill_padded(const Fill *fill);
Fill fill_of(unsigned pads); /* without edges */
/* What `a op b` holds, position by position. Where the edges of both differ, a position beyond one of them may be inside of the other. */
Fill fill_pair(const Fill *a, const Fill *b, PadOp op);
Fill fill_call(const Fill *a, Intrinsic which); /* of one argument */
Fill fill_cast(const Fill *a, Element to);
Fill fill_negated(const Fill *a);
/* Beyond the edges of `where`, the value itself: a constant that is chosen there stands for padding. */
Fill fill_chosen(const Fill *a, const Fill *where);
/* Inside of the edges of `where`: elements, if the value has the same edges */
Fill fill_inside(const Fill *a, const Fill *where);
/* What the author selects in place of the padding `masked`: zeros and infinities stand beyond its edges. */
Fill fill_mask(const Fill *chosen, const Fill *masked);
/* The number that stands beyond the edges, or the constant; false where it is not known */
bool fill_number(const Fill *fill, double *number);

/* ---- padding_value.c */

/* The atom that stands for a position along a dimension of a tile */
int padding_place(Padding *p);
/* What the expression holds along the axis, at the row that is looked at */
Fill padding_of(Padding *p, Expr *expr, PadAxis axis);
bool padding_mentions(Padding *p, Expr *expr, PadAxis axis);
/* What a tile holds where the conditions that are assumed hold: elements alone, if all its places are then certainly inside of the edges */
void padding_refine(Padding *p, Fill *fill, int64_t extent);
bool padding_reads_self(Padding *p, Expr *expr);

/* ---- padding_roles.c */

/* Marks the roles that the rule must follow; false: nothing can be refused in any. */
bool padding_roles(Arena *arena, const Prog *prog, bool *follows);

/* ---- padding_sign.c */

/* Is each value of the expression at least zero, or no number? */
bool padding_at_least_zero(Padding *p, const Expr *expr);
/* What is known of the tile or stage that the access names, in the state before the row; NULL: nothing */
TileFill *padding_tile(Padding *p, const Access *access);
/* The same, to be read: the role is followed again when what a stage holds has grown after that. */
const TileFill *padding_read(Padding *p, const Access *access);

#endif
