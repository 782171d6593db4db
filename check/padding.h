/* padding, check private (check/padding*.c).
 *
 * A tile at a tensor's edge is filled with zeros beyond the end of the tensor: padding. Values
 * computed from it belong to no element. The rule follows the values beyond the edges: zeros do
 * not change a sum, -inf does not change a maximum; other values must not be reduced.
 *   padding_pad.c      values beyond an edge, and operations on them
 *   padding_value.c    contents of an expression along one axis of a statement
 *   padding_sign.c     expressions that are never negative
 *   padding_loops.c    values that loops compute from padding, in tiles and scalars
 *   padding_divisor.c  divisors that are certainly not 0
 *   padding_roles.c    roles that the rule must follow
 *   padding_refuse.c   refused reductions, and refused loops that reduce
 *   padding.c          the rule over Code: contents of tiles, stages and scalars */
#ifndef PIPEC_PADDING_H
#define PIPEC_PADDING_H

#include "check/passes.h"
#include "derive/tiles.h"
#include "flow/solve.h"
#include "flow/values.h"

#include <stdint.h>

/* Possible contents of positions along an axis, as a set, because paths may differ. The first
 * six do not depend on the end of a tensor; the others are elements inside of the edges, and
 * beyond them what their name says. */
typedef enum Pad {
    PAD_ELEMENT = 1 << 0,    /* an element, or a value that the author chose */
    PAD_SELF = 1 << 1,       /* the previous value of a sum or maximum in a loop */
    PAD_CONST_ZERO = 1 << 2, /* a constant 0 */
    PAD_CONST_LOW = 1 << 3,  /* -inf */
    PAD_CONST_HIGH = 1 << 4, /* inf */
    /* explicit zeros beyond the edge, any value inside of it: a mask in a tile */
    PAD_LIVE = 1 << 5,
    /* an element that a condition or the path shows to be inside of the edges, and its multiples:
     * it exists, so values beyond other edges that do not change it may be combined with it */
    PAD_INSIDE = 1 << 6,
    PAD_MASKED = 1 << 7, /* zeros selected explicitly beyond the edge */
    PAD_ZERO = 1 << 8,   /* zeros */
    PAD_ONE = 1 << 9,    /* ones: exp of zeros */
    PAD_LOW = 1 << 10,   /* -inf */
    PAD_HIGH = 1 << 11,  /* inf */
    /* elements within some of the edges, combined with values beyond others that do not change
     * them: sums of elements and zeros, maxima of elements and -inf, minima of elements and inf;
     * beyond all edges only these zeros or infinities */
    PAD_WITH_ZERO = 1 << 12,
    PAD_WITH_LOW = 1 << 13,
    PAD_WITH_HIGH = 1 << 14,
    PAD_FINITE = 1 << 15, /* numbers computed from zeros */
    PAD_ANY = 1 << 16,    /* the same, possibly infinite or NaN */
    PAD_MOST = PAD_ANY
} Pad;

/* contents that a sum must not include */
#define PADS_UNSUMMED                                                                              \
    (PAD_ONE | PAD_LOW | PAD_HIGH | PAD_WITH_LOW | PAD_WITH_HIGH | PAD_FINITE | PAD_ANY)
#define PADS_BEYOND (PAD_MASKED | PAD_ZERO | PAD_WITH_ZERO | PADS_UNSUMMED)

typedef enum PadOp {
    PAD_ADD,
    PAD_SUB,
    PAD_MUL,
    PAD_DIV,         /* by what may be 0 */
    PAD_DIV_NONZERO, /* by what is certainly not 0 */
    PAD_MAX,
    PAD_MAX_POSITIVE, /* of two that are never negative */
    PAD_MIN,
    PAD_OTHER
} PadOp;

#define EDGES_MOST 3

/* The edge: positions for which 0 <= sub < past does not hold are padding. */
typedef struct Edge {
    /* formula of the atom `place`, in the algebra of the role; NULL: unknown */
    const Poly *sub;
    const Poly *past;
    Span from;   /* the read that introduced the padding */
    bool direct; /* of a tensor, by the statement itself or into a scalar, not into a tile */
} Edge;

typedef struct Fill {
    unsigned pads; /* set of Pad; 0: not written yet */
    int count;
    Edge edges[EDGES_MOST];
    bool more; /* there are more edges than fit */
} Fill;

/* Values computed in an iteration of a loop from padding along its variable */
typedef struct LoopFill {
    int local; /* the loop variable; -1: positions given by constants */
    Fill fill; /* empty: no padding along this loop */
} LoopFill;

#define LOOPS_MOST 4
#define ALL_LOOPS  UINT32_MAX

/* Of a tile or scalar; scalars have no dimensions. */
typedef struct TileFill {
    Fill dims[PROG_MAX_RANK];
    LoopFill loops[LOOPS_MOST];
    unsigned base;   /* contents along other loops; 0: not written yet */
    bool more_loops; /* there are more than fit */
    /* by depth of the enclosing loop: all of the value was assigned in this iteration */
    uint32_t assigned;
    /* some element may be negative; false: not written yet, or all are known not to be */
    bool below_zero;
} TileFill;

/* An axis of a statement: an index, or the variable of an enclosing loop */
typedef struct PadAxis {
    int index;  /* -1: a loop variable */
    int atom;   /* in the role's algebra */
    int local;  /* the loop variable, -1: an index */
    bool fixed; /* neither: positions given by constants */
    /* neither: the elements that one execution of the statement writes at one position; reads of
     * them have subscripts without indexes */
    bool single;
    /* an index of the target of a statement in a loop: the target keeps each of its positions */
    bool kept;
} PadAxis;

/* The scalars of a role that may hold values read from memory */
typedef struct Scalars {
    int *numbers; /* by local; -1: none */
    size_t count;
} Scalars;

typedef struct Assigned { /* a value, and how it becomes that of a tile or scalar */
    Expr *value;
    AssignOp op;
    bool own;    /* it is computed from the previous value */
    bool covers; /* all elements are written */
} Assigned;

typedef struct Padding {
    Tiles *tiles;
    Arena *arena;
    TileFill **fields; /* by pipe; then padding_field */
    bool *moves;       /* by pipe: a produced stage moves between handles */
    /* by role, then pipe: its state depends on the contents of the pipe's stages */
    bool *reads;
    bool *follows; /* by role, see padding_roles */
    /* by role: the contents of a pipe that it reads have grown since its last round */
    bool *again;
    int *refused; /* by role: number of refusals in its last round */
    bool
        /* proves that reads are inside of their tensors, so that they are elements: expensive,
         * so only before a refusal */
        proofs;
    bool report;
    VEC(Span) reported;
    Scalars *scalars_of; /* by role */
    /* Of the role, and of the present statement */
    const Scalars *scalars;
    FlowCode *code;
    int at;
    const IndexSpace *space;
    TileFill *state;
    const Expr *self; /* the old value of a sum in a loop: counts as 0 */
    const Access *target;
    int target_local;
    VEC(struct Decided {
        Expr *condition;
        bool truth;
        /* contents under the condition, for positions beyond an edge where it may have this
         * truth */
        Fill beyond;
        /* an arm was selected in place of padding, and all other positions are inside of the
         * edges */
        bool masks;
    })
    decided;
    /* the next expression is the outcome of that which `max` or `min` reduces, not an operand */
    bool outcome;
    long work; /* remaining nodes for this statement */
} Padding;

/* ---- padding_pad.c */

void fill_add(Fill *to, const Fill *from); /* union */
bool fill_same(const Fill *a, const Fill *b);
bool fill_padded(const Fill *fill);
Fill fill_of(unsigned pads); /* without edges */
/* Contents of `a op b`, position by position. If the edges of both differ, a position beyond one
 * of them may be inside of the other. */
Fill fill_pair(const Fill *a, const Fill *b, PadOp op);
Fill fill_call(const Fill *a, Intrinsic which); /* of one argument */
Fill fill_cast(const Fill *a, Element to);
Fill fill_negated(const Fill *a);
/* The value for positions beyond the edges of `where`: a selected constant represents padding. */
Fill fill_chosen(const Fill *a, const Fill *where);
/* The value where it is known to be inside of its edges */
Fill fill_within(const Fill *a);
/* True if the value ends at the same positions on all paths: otherwise, what is beyond one of its
 * edges may be an element of another path. */
bool fill_one_edge(const Fill *fill);
/* The edges of `a` that are edges of `b`, too */
Fill fill_common(const Fill *a, const Fill *b);
/* For positions inside of all edges of `where`: elements, if these are all edges of the value */
Fill fill_inside(const Fill *a, const Fill *where);
/* Explicit values in place of the padding `masked`: beyond its edges they are zeros or
 * infinities. */
Fill fill_mask(const Fill *chosen, const Fill *masked);
/* The number beyond the edges, or the constant; false: unknown */
bool fill_number(const Fill *fill, double *number);

/* ---- padding_value.c */

/* The atom for a position along a dimension of a tile */
int padding_place(Padding *p);
/* Contents of the expression along the axis, at the present row */
Fill padding_of(Padding *p, Expr *expr, PadAxis axis);
bool padding_mentions(Padding *p, Expr *expr, PadAxis axis);
unsigned padding_of_constant(const Expr *expr); /* ELEMENT for all other expressions */
/* Contents of a tile under the assumed conditions: only elements, if all its positions are then
 * proved to be inside of the edges */
void padding_refine(Padding *p, Fill *fill, int64_t extent);
bool padding_reads_self(Padding *p, Expr *expr);
/* Truth of the condition that the present case of its selects assumes; -1: none */
int padding_decided(const Padding *p, const Expr *condition);

/* `fill` on the path to the present row inside of the loop of the axis: only elements, if a
 * condition does not hold for values beyond its edges; true if another condition may hold there */
bool padding_controlled(Padding *p, PadAxis axis, Fill *fill);

/* ---- padding_loops.c */

extern const PadAxis padding_fixed;  /* positions given by constants */
extern const PadAxis padding_single; /* the position that a statement writes */
PadAxis padding_loop_axis(const FlowCode *code, int local);
Scalars padding_scalars(Arena *arena, const FlowCode *code);
TileFill *padding_scalar(const Padding *p, int local);       /* NULL: not followed */
bool padding_join_loops(TileFill *to, const TileFill *from); /* true if `to` has changed */
/* An iteration of the loop begins or ends */
void padding_iterate(TileFill *tile, const Region *loop);
/* True if all of its value was assigned in this iteration of the loop */
bool padding_assigned(const TileFill *tile, const Region *loop);
/* The value `old op by`, where `by` has the contents `value` */
Fill padding_updated(Padding *p, const Fill *old, const Fill *value, AssignOp op, Expr *by);
/* Adds to `next` what iterations of the loops around the present row compute from padding. */
void padding_write_loops(Padding *p, Assigned assigned, const TileFill *old, TileFill *next);
/* Values that iterations of the loop over this variable computed */
Fill padding_loop_fill(const TileFill *tile, int local);

/* ---- padding_refuse.c */

/* An expression of the present statement: refused if it is a reduction of padding. `data` is the
 * Padding. */
void padding_visit_reduction(Expr *expr, void *data);
/* Refuses padding in loops around the present row that combine it with `target` or
 * `target_local`. */
void padding_check_loops(Padding *p, Expr *value, AssignOp op);
/* True if the formula contains the variable of the loop, or an axis of the loop over the grid */
bool padding_of_iteration(const FlowCode *code, const Region *region, const Poly *poly);

/* ---- padding_roles.c */

/* Marks the roles that the rule must follow; false: no role can be refused. */
bool padding_roles(Arena *arena, const Prog *prog, bool *follows);

/* ---- padding_sign.c */

/* True if each value of the expression is at least zero, or NaN */
bool padding_at_least_zero(Padding *p, const Expr *expr);
/* True if both have the same value wherever they occur in the same statement */
bool padding_same(Padding *p, const Expr *a, const Expr *b);
/* Facts about the tile or stage of the access, in the state before the row; NULL: none */
TileFill *padding_tile(Padding *p, const Access *access);
/* Contents of a field that the producer writes by this handle; their number */
TileFill *padding_field(const Padding *p, int pipe, int handle, int field);
int padding_writers(const Padding *p, int pipe);
/* The same for a read: the role is repeated if the contents of the stage grow after it. */
const TileFill *padding_read(Padding *p, const Access *access);

/* ---- padding_divisor.c */

/* True if the value at the present row is certainly not 0, or NaN */
bool padding_not_zero(Padding *p, Expr *expr);
/* True if the value may be infinite because it divides by what may be 0, or takes a root or
 * logarithm of that */
bool padding_has_pole(Padding *p, Expr *expr);

#endif
