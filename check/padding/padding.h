/* padding, check private: for padding/ and contents/.
 *
 * A tile at a tensor's edge is filled with zeros beyond the end of the tensor: padding. Values
 * computed from it belong to no element. Zeros do not change a sum, -inf does not change a
 * maximum; other values must not be reduced, nor combined by a loop.
 *
 * The contents of an expression along an axis (a Fill) are a product of two lattices:
 *   1. which edges a position crosses: a set of Edge;
 *   2. for each such set, the possible values there: those of elements, and those computed from
 *      padding, each an interval (a known number, finite, or anything).
 * An operation is applied set by set, so the sum of two tensors that end at different positions
 * has elements where only one of them ends, and zeros where both do. No value at a set means that
 * no position crosses these edges: a condition, or the path, excludes it. Values that a condition
 * on padding chose are computed from padding. The join is set by set, and intervals grow by steps
 * of a short list (pad_join), so that loops end.
 *
 * Elements are taken to be finite, and arithmetic on elements is taken not to overflow; poles
 * (1 / 0, log of 0) and infinities of the program are followed. Arithmetic on padding is computed
 * as the kernel does it, and may overflow.
 *
 * A program may also name an element of a tile, as a neighbour, `w[i + 1]`. Then padding must be
 * zero, or of the program's own (MARK_STATED); otherwise the value is marked (MARK_NAMED), and must
 * not reach an element of a tensor that is inside of it.
 *
 *   contents/padding_number.c  intervals
 *   contents/padding_table.c   contents, each once
 *   contents/padding_fill.c    sets of edges, and operations on them
 *   contents/padding_value.c   contents of an expression along one axis of a statement
 *   contents/padding_read.c    contents of what it reads
 *   contents/padding_stage.c   contents of the stages of pipes
 *   contents/padding_known.c   what conditions state of values: not 0, positive
 *   contents/padding_state.c   contents of tiles and scalars at a place
 *   padding_loops.c            values that loops compute, in tiles and scalars; conditions of the
 *                              path
 *   padding_first.c            first iterations of loops by hand, and loops that end in padding
 *   padding_roles.c            roles that the rule must follow
 *   padding_text.c             masks, as helps show them
 *   padding_refuse.c           refused reductions, loops and exits
 *   padding_named.c            refused elements of tensors that are computed from padding by name
 *   padding.c                  the rule over Code: contents of tiles, stages and scalars */
#ifndef PIPEC_PADDING_H
#define PIPEC_PADDING_H

#include "check/passes.h"
#include "derive/tiles.h"
#include "flow/solve.h"
#include "flow/values.h"

#include <math.h>
#include <stdint.h>

/* ---- values (padding_number.c) --------------------------------------------------------------- */

typedef enum Mark {
    /* of values computed from padding: they do not change a sum, a maximum, a minimum. They are
     * 0 or an infinity, or elements that were combined with such values. Of elements: they are
     * inside of edges (all three), or 0 or an infinity; what is combined with them may be neutral.
     * In `x - mean` the mean is no such element */
    MARK_SUM = 1 << 0,
    MARK_MAX = 1 << 1,
    MARK_MIN = 1 << 2,
    /* zeros or infinities that the author selected in the place of padding, and what keeps them */
    MARK_CHOSEN = 1 << 3,
    /* computed from a value of an earlier iteration */
    MARK_CARRIED = 1 << 4,
    /* of a value that is computed from padding: it may be the value of an earlier iteration,
     * unchanged */
    MARK_HOLDS = 1 << 5,
    /* the same, or computed from it by the program, and then combined with what is neutral */
    MARK_SCALED = 1 << 7,
    MARKS_EARLIER = MARK_CARRIED | MARK_HOLDS | MARK_SCALED,
    /* zeros as they were read, and earlier values combined with them; for messages */
    MARK_READ = 1 << 6,
    /* a program may name it, though it is computed from padding: it is zero, OWN or MIXED. Of
     * elements: zero, or inside of edges */
    MARK_STATED = 1 << 8,
    /* an element was combined with it */
    MARK_MIXED = 1 << 9,
    /* selected in the place of padding, and what is computed from such values alone */
    MARK_OWN = 1 << 10,
    /* a program has named what is not STATED; and what is computed from such a value */
    MARK_NAMED = 1 << 11,
    MARKS_ANY = MARKS_EARLIER | MARK_NAMED, /* of some of the values */
    MARKS_NEUTRAL = MARK_SUM | MARK_MAX | MARK_MIN
} Mark;

typedef struct Value { /* of a number; bools are 0 and 1 */
    double lo, hi;     /* lo > hi: none */
    bool nan;          /* may be NaN; not tracked for elements, which would be NaN alike */
    bool nonzero;      /* certainly not 0 */
    bool two;          /* lo or hi, and nothing between them, as a select of constants gives */
    uint16_t marks;    /* set of Mark */
    int self;          /* 1 + the object whose previous value it is, unchanged; 0: none */
} Value;

typedef enum PadOp {
    PAD_ADD,
    PAD_SUB,
    PAD_MUL,
    PAD_DIV,
    PAD_MAX,
    PAD_MIN,
    PAD_AT_LEAST, /* max and min of floats that keep NaN */
    PAD_AT_MOST,
    PAD_AND,
    PAD_OR,
    PAD_COMPARE, /* the comparison is given as well */
    PAD_POWER,
    PAD_BITS, /* of integers: the intrinsic is given as well */
    PAD_OTHER /* any number */
} PadOp;

typedef struct Operation {
    PadOp op;
    BinaryOp compare; /* COMPARE */
    Element type;     /* of the operands */
    Intrinsic bits;   /* BITS */
} Operation;

extern const Value pad_none;
Value pad_number(double number);
Value pad_of_type(Element type); /* an element of a tensor */
Value pad_any(void);             /* any number, infinity or NaN */
Value pad_bool(void);
static inline bool pad_exists(Value value) { return value.lo <= value.hi; }
static inline bool pad_is(Value value, double number) { /* exactly this number */
    return value.lo == number && value.hi == number && !value.nan;
}
static inline bool pad_finite(Value value) {
    return !value.nan && !isinf(value.lo) && !isinf(value.hi);
}
static inline bool pad_has_zero(Value value) {
    return value.lo <= 0 && value.hi >= 0 && !value.nonzero;
}
static inline bool pad_same(Value a, Value b) {
    if (!pad_exists(a) || !pad_exists(b)) return pad_exists(a) == pad_exists(b);
    return a.lo == b.lo && a.hi == b.hi && a.nan == b.nan && a.nonzero == b.nonzero &&
           a.two == b.two && a.marks == b.marks && a.self == b.self;
}
/* Of a condition: what the author selected for padding decides in one way. */
static inline bool pad_is_own_decision(const Value *condition) {
    return condition->marks & MARK_OWN && condition->lo == condition->hi && !condition->nan;
}
/* Zero, or an element that was combined with zeros */
bool pad_is_stated(const Value *value);
Value pad_join(Value a, Value b);
Value pad_widened(Value old, Value next);                  /* the join, in steps of a short list */
Value pad_within(Value value, BinaryOp op, double number); /* where `value op number` holds */
Value pad_binary(Operation operation, Value a, Value b);
Value pad_call(Intrinsic which, Element type, Value a);
Value pad_cast(Value a, Element from, Element to);
/* The same for elements, whose arithmetic does not overflow */
Value pad_element_binary(Operation operation, Value a, Value b);
Value pad_element_call(Intrinsic which, Element type, Value a);
Value pad_element_cast(Value a, Element from, Element to);
/* Of a number of values, or fewer */
Value pad_sum(Value a, double count, bool padding);
/* The marks of a number by itself */
uint16_t pad_neutral(Value value, Element type);
/* Values of padding, or that padding has chosen */
Value pad_tainted(Value value, Element type);

/* ---- contents (padding_fill.c) --------------------------------------------------------------- */

#define EDGES_MOST 3
#define SETS_MOST  (1 << EDGES_MOST)

/* The edge: positions for which 0 <= sub < past does not hold are padding. */
typedef struct Edge {
    /* formula of the atoms `place`, in the algebra of the role; NULL: unknown */
    const Poly *sub;
    const Poly *past;
    Span from;   /* the read that introduced the padding */
    Span text;   /* of its subscript */
    bool direct; /* of a tensor, by the statement itself or into a scalar, not into a tile */
    /* the masks of its read show 0 <= sub, or sub < past */
    bool above, below;
    bool earlier; /* only of earlier iterations: a mask here is of no use */
    bool starts;  /* where it was read, the first position along the axis is an element */
} Edge;

typedef struct Cell { /* the values at a set of edges */
    Value element, padding;
} Cell;

/* Contents along an axis. Equal ones are the same object, which never changes; see fill_made. */
typedef struct Fill {
    int count;
    /* there are more edges than fit: then there are values of padding at set 0 */
    bool more;
    bool padded;         /* some value is computed from padding */
    bool earlier;        /* some value has one of MARKS_EARLIER */
    bool zero, infinite; /* some value may be */
    const Edge *edges;
    uint64_t hash;
    /* by set of crossed edges, as bits; number 0 is inside */
    Cell at[];
} Fill;

typedef struct Draft { /* contents to be made */
    int count;
    bool more;
    Edge edges[EDGES_MOST];
    Cell at[SETS_MOST];
} Draft;

typedef enum FillOp {
    FILL_OPERATION,
    FILL_CELL,
    FILL_JOIN,
    FILL_WIDEN,
    FILL_BOTH,
    FILL_SELECT,
    FILL_CASES,
    FILL_READ,
    FILL_IMPORT
} FillOp;

typedef struct FillKey { /* an operation: what determines its result */
    FillOp op;
    uint32_t more;
    const void *of[3];
} FillKey;

typedef struct FillResult {
    FillKey key;
    const Fill *out; /* NULL: none */
} FillResult;

typedef struct Fills { /* hash tables, whose room is a power of two */
    Arena *arena;
    const Fill **made; /* by content */
    size_t count, room;
    FillResult *results;
    size_t result_count, result_room;
} Fills;

/* ---- padding_table.c */
const Fill *fill_made(Fills *fills, Draft *draft);
const Fill *fill_of(Fills *fills, Value element);
void fill_draft(const Fill *fill, Draft *out);
/* The result of an earlier operation; NULL: none yet */
const Fill *fill_recall(const Fills *fills, const FillKey *key);
const Fill *fill_remember(Fills *fills, const FillKey *key, const Fill *out);

/* ---- padding_fill.c */
bool fill_written(const Fill *fill); /* false: no value yet */
Value fill_all(const Fill *fill);    /* all values that it may have */
const Fill *fill_join(Fills *fills, const Fill *a, const Fill *b);
const Fill *fill_widen(Fills *fills, const Fill *old, const Fill *next); /* at a join of paths */
const Fill *fill_binary(Fills *fills, Operation operation, const Fill *a, const Fill *b);
const Fill *fill_map(Fills *fills, const Fill *a, Value (*map)(Value, bool padding, const void *),
                     const void *data);
/* The arm of a select that is the target of the statement, alone */
typedef enum Stays { STAYS_NOT, STAYS_THEN, STAYS_OTHERWISE } Stays;
/* `then` where the condition holds, `otherwise` elsewhere */
const Fill *fill_select(Fills *fills, const Fill *condition, const Fill *then,
                        const Fill *otherwise, Stays stays, Element type);
/* The same if they are the whole value under the condition: nothing is selected for padding. */
const Fill *fill_cases(Fills *fills, const Fill *condition, const Fill *then, const Fill *otherwise,
                       Element type);
/* `a` on paths on which the condition has this truth: `kept`, the previous value stays elsewhere */
const Fill *fill_controlled(Fills *fills, const Fill *a, const Fill *condition, bool truth,
                            Element type);
/* both views hold */
const Fill *fill_both(Fills *fills, const Fill *a, const Fill *b);
/* No position crosses edge number i. */
void draft_exclude(Draft *draft, int edge);
/* Edges whose formula became unknown are one edge. */
void draft_merge_unknown(Draft *draft);

/* ---- states ---------------------------------------------------------------------------------- */

/* Values computed in an iteration of a loop from padding along its variable */
typedef struct LoopFill {
    int local; /* the loop variable; below -1: positions given by constants in a loop */
    const Fill *fill;
} LoopFill;

#define OBJECT_MEMORY (-2) /* a tensor or stage, as the object of a statement */
#define LOOPS_MOST    8
#define SINGLES       PROG_MAX_RANK
#define ALONE         (2 * PROG_MAX_RANK)
#define DIMS_MOST     (ALONE + 1)
#define ALL_LOOPS     UINT32_MAX

/* Of a tile or scalar; scalars have no dimensions. Fills are never changed, only replaced. */
typedef struct TileFill {
    /* by dimension; from SINGLES on: what was written at one position of it; ALONE: what was
     * computed from elements that a role names one by one. NULL: not written yet */
    const Fill *dims[DIMS_MOST];
    const Fill *element; /* all elements, without edges; NULL: not written yet */
    LoopFill loops[LOOPS_MOST];
    int loop_count;
    bool more_loops; /* there are more than fit */
    bool edged;      /* in a state: some fill has edges */
} TileFill;

typedef struct ObjectState {
    const TileFill *fill;
    /* by depth of the enclosing loop: all of the value was assigned in this iteration */
    uint32_t assigned;
} ObjectState;

typedef struct Consulted { /* contents that a row depends on */
    int slot;
    ObjectState state;
} Consulted;

typedef struct RowMemo {
    size_t first, count; /* in the list of consulted contents */
    uint32_t firsts;     /* by depth of the loops around the row: this is a first iteration */
    uint32_t leaves;     /* version of where padding may end loops */
    int slot;            /* of the object that it writes; -1: none */
    ObjectState result;
    int older; /* another one of the row; -1: none */
} RowMemo;

/* An axis of a statement: an index, or the variable of an enclosing loop */
typedef struct PadAxis {
    int index;  /* -1: a loop variable */
    int atom;   /* in the role's algebra */
    int local;  /* the loop variable, -1: an index, below: a number for the positions */
    bool fixed; /* neither: positions given by constants */
    /* neither: the elements that one execution of the statement writes at one position; reads of
     * them have subscripts without indexes */
    bool single;
    /* an index of the target of a statement in a loop: the target keeps each of its positions */
    bool kept;
    int region; /* of a loop variable, otherwise -1 */
} PadAxis;

typedef struct Assigned { /* a value, and how it becomes that of a tile or scalar */
    Expr *value;
    AssignOp op;
    bool covers; /* all elements are written */
    int object;  /* OBJECT_MEMORY: a tensor or stage */
} Assigned;

typedef struct Padding {
    Tiles *tiles;
    Arena *arena;
    Fills fills;
    const Fill *unwritten, *typed[E_COUNT]; /* any element of the type; NULL: not made yet */
    TileFill **fields;                      /* by pipe, then handle of its producer and field */
    uint32_t *versions; /* by pipe: number of times that its contents have grown */
    bool *moves;        /* by pipe: handles of its producer take over stages of others */
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
    /* tells first iterations of some loops apart, and follows where loops end: only before the
     * refusal of a loop */
    bool orders;
    bool any_apart;
    bool **apart; /* by role, then region: some statement in this loop is refused otherwise */
    /* the same: where padding may end the loop; NULL: it does not */
    const Fill ***leaves;
    bool **ends;                /* the same: an iteration that it leaves out has an effect */
    uint32_t left;              /* number of changes of these two */
    const Assumptions *assumed; /* of the present paths; NULL: nothing */
    bool report;
    VEC(Span) reported;
    /* of the role: a read whose value a mask selects, and which decides what is refused; NULL: none
     */
    const char *own_read, *own_number;
    bool combined; /* a reduction, or a loop, was refused: what it computes is no reason again */
    /* Of the role, and of the present statement */
    FlowCode *code;
    VEC(int) * writes;         /* by object: the rows that write it */
    VEC(int) unsafe;           /* rows of `unsafe` */
    VEC(int) objects;          /* those that are written, by their place in a state */
    int *slots;                /* by object: its place, -1: never written */
    int places[PROG_MAX_RANK]; /* see padding_place; 1 + atom, 0: not asked yet */
    const int *opened;         /* see padding_opened */
    bool constants;            /* some tile is read at a position given by a constant */
    bool names;                /* some role names elements of tiles */
    int at;
    const IndexSpace *space;
    ObjectState *state;
    VEC(Consulted) consulted;
    VEC(RowMemo) memos;
    int *latest;  /* by row: its latest memo; -1: none */
    RowMemo memo; /* of the present row */
    const Access *target;
    int loop; /* values of earlier iterations of this region are told apart; -1: none */
    VEC(struct Decided {
        Expr *condition;
        bool truth;
    })
    decided;      /* the path, and the selects around the present expression */
    PadAxis axis; /* of the present expression */
    /* an operand of a condition is computed, to narrow the other one */
    bool bounding;
    long work; /* remaining nodes for this statement */
} Padding;

/* ---- padding_value.c */

extern const PadAxis padding_no_axis; /* all reads are elements */
/* Contents of the expression along the axis, at the present row */
const Fill *padding_of(Padding *p, Expr *expr, PadAxis axis);
bool padding_reads_self(Padding *p, Expr *expr);

/* ---- padding_read.c */

const Fill *padding_of_read(Padding *p, const Access *read, PadAxis axis);
const Fill *padding_of_scalar(Padding *p, int object, PadAxis axis);
/* The atom for a position along dimension d of a tile */
int padding_place(Padding *p, int d);
/* Notes which half of `0 <= sub < past` is proved; true if both are. */
bool padding_prove_inside(Padding *p, Edge *edge);
/* Some position crosses these edges and no others: false if it is proved to be inside of one of
 * them where it is inside of the others, which may be the same edge in another form. */
bool padding_is_possible(Padding *p, const Fill *fill, unsigned set);
/* Without the values at sets of edges that no position crosses */
const Fill *padding_possible(Padding *p, const Fill *fill);
bool padding_mentions(Padding *p, Expr *expr, PadAxis axis);
/* Assumes that positions are inside of the tile. */
void padding_assume_places(Padding *p, const RoleTile *tile);
/* Contents of a tile under the assumed conditions: edges that all its positions are then proved
 * to be inside of are not crossed */
const Fill *padding_inside(Padding *p, const Fill *fill, const RoleTile *tile);
/* The same at the subscripts of a read, where edges are by place; NULL: they are not */
const Fill *padding_at_read(Padding *p, const Fill *fill, const Access *read);
bool padding_is_target(const Padding *p, const Access *read); /* of the present statement */
/* The contents; NULL: not written, no value */
const Fill *padding_written(Padding *p, const Fill *fill);
/* Any element of the type */
const Fill *padding_typed(Padding *p, Element type);

/* ---- padding_stage.c */

void padding_open_fields(Padding *p, int pipe);
/* The field of a stage that the role, its producer, fills by this handle; NULL: something else */
TileFill *padding_produced(const Padding *p, const Access *access);
/* Replaces these contents. Roles that have read them are repeated if they have grown. */
void padding_produce(Padding *p, const Access *target, const TileFill *next);
/* What a read of a stage sees; of a consumer only the elements, see padding_consumed */
const TileFill *padding_stage(Padding *p, const Access *read);
/* Contents of a consumed stage's field at the positions of the read, over all ways to fill it */
const Fill *padding_consumed(Padding *p, const Access *read, int d);

/* ---- padding_known.c */

/* The expression of row `from` still has its value at the present row */
bool padding_is_stable(Padding *p, Expr *expr, int from);
/* True if both have the same value wherever they occur in the same statement */
bool padding_same(Padding *p, const Expr *a, const Expr *b);
bool padding_same_element(const Padding *p, const Access *a, const Access *b);
/* MAX for `a > b ? a : b`, unless one is NaN; MIN; otherwise OTHER */
PadOp padding_extreme(Padding *p, const Expr *select);
/* At the end of an arm of the IF: what its condition states of variables */
void padding_narrow(Padding *p, const Region *asked, bool truth);
/* Adds the conditions of the path to the present row to `decided`. */
void padding_decide_path(Padding *p);

/* What the conditions of the selects around the expression, and `requires`, state of its value */
const Fill *padding_stated(Padding *p, const Expr *expr, const Fill *fill);
/* The value of a `let` that is the same at all places, else the expression itself */
Expr *padding_resolved(Padding *p, Expr *expr);
/* The same with facts of the path, for a divisor or a factor whose sign is asked */
const Fill *padding_learned(Padding *p, Expr *expr, const Fill *fill);

/* ---- padding_state.c */

/* Objects: tiles, then scalars */
size_t padding_objects(const FlowCode *code);
int padding_scalar_object(const FlowCode *code, int local);       /* -1: none */
int padding_tile_object(const Access *access);                    /* -1: none */
int padding_written_object(const FlowCode *code, const Row *row); /* -1: none */
void padding_list_objects(Padding *p);
const TileFill *padding_object(Padding *p, int object);
void padding_consult_pipe(Padding *p, int pipe);
/* A row that depends on the same contents as before leaves the same: true if it has. All that the
 * row reads and a later row writes must be such contents (padding_object, padding_stage): what is
 * kept elsewhere is not compared. */
void padding_begin(Padding *p, int at);
bool padding_recall(Padding *p, int at);
void padding_remember(Padding *p, int at);
/* `whole`: all of its value is assigned */
void padding_put(Padding *p, int object, const TileFill *next, bool whole);
void padding_open(Padding *p, int object);
TileFill padding_any(Padding *p); /* any value */
/* What a limit leaves open: any value, which padding may have made of an earlier one */
const Fill *padding_unknown(Padding *p);
/* Of the rule */
void *padding_start(Flow *flow);
void *padding_copy(Flow *flow, const void *state);
bool padding_join(Flow *flow, void *to, const void *from, int at, int source);
/* At the end of an arm of an IF, its tiles are refined by the condition. */
void padding_refine(Flow *flow, int region, bool truth, void *state);
/* What another path, or another write, adds */
const Fill *padding_widened(Padding *p, const Fill *old, const Fill *next);
/* Its value at the present row is one of an earlier iteration of the region. */
bool padding_carried(Padding *p, int object, int region);
/* The first row from `from` on that writes the object; INT_MAX: none */
int padding_written_from(const Padding *p, int object, int from);
/* An iteration of the loop begins */
void padding_iterate(Padding *p, int region);
/* Removes facts about this iteration before the next one (`goes_on`), or after the last one. */
void padding_forget(Padding *p, const Region *region, bool goes_on);
void padding_add_loop(Padding *p, TileFill *tile, int local, const Fill *fill);
/* Values that iterations of the loop over this variable computed; NULL: no padding */
const Fill *padding_loop_fill(Padding *p, const TileFill *tile, int local);

/* ---- padding_loops.c */

PadAxis padding_fixed(int region);   /* positions given by constants */
extern const PadAxis padding_single; /* the position that a statement writes */
PadAxis padding_loop_axis(const FlowCode *code, int region);
/* By object, and then by handle: the row that opens it */
int *padding_opened(Arena *arena, const FlowCode *code);
/* Contents of `target op value` along the axis */
const Fill *padding_updated(Padding *p, Expr *value, AssignOp op, PadAxis axis);
/* The same on the path to the present row, with values of earlier iterations told apart */
const Fill *padding_in_loop(Padding *p, const Assigned *assigned, PadAxis axis);
/* Refuses what iterations of the loops around the present row combine with padding, and adds to
 * `next` what they compute from it. */
void padding_in_loops(Padding *p, Assigned assigned, TileFill *next);
/* `fill` on the path to the present row inside of the loop of the axis */
const Fill *padding_controlled(Padding *p, PadAxis axis, const Fill *fill);

/* ---- padding_first.c */

/* Tells the first iterations of the loops around the present row apart, in the next round. */
void padding_tell_apart(Padding *p);
/* Number of first iterations of the loop that are told apart */
int padding_trips(const Padding *p, int region);
/* By depth of the loops around the row: the present iteration is the first one */
uint32_t padding_firsts(const Padding *p, int at);
/* The contents that a statement computes for the object, without those of padding in a first
 * iteration, where it was combined with no element yet. OBJECT_MEMORY: unchanged */
const Fill *padding_first(Padding *p, const Fill *fill, int object);
/* The contents without those of padding in a first iteration */
const Fill *padding_without_first(Padding *p, const Fill *fill);
/* Padding may end the loop, with these contents of the condition */
void padding_note_leave(Padding *p, int region, const Fill *fill);
/* An iteration has an effect that padding may leave out. */
void padding_keep_end(Padding *p, int region);
/* `fill`, computed in the loop of the axis, where padding may have ended that before */
const Fill *padding_left(Padding *p, PadAxis axis, const Fill *fill);
/* True if it does not matter that padding executes the LEAVE, with these contents of its
 * condition: only iterations in the padding are left out, and they have no effect */
bool padding_may_end(Padding *p, const Row *row, PadAxis axis, const Fill *fill);

/* ---- padding.c */

/* Edges in terms of the position in the target of the present row, if there is one; `along`: the
 * atom of the axis, -1: none */
const Fill *padding_by_place(Padding *p, const Fill *fill, int along);

/* ---- padding_refuse.c */

/* An expression of the present statement: refused if it is a reduction of padding. `data` is the
 * Padding. */
void padding_visit_reduction(Expr *expr, void *data);
/* Refuses a value of the loop of the axis that combines its object with padding. */
void padding_check_loop(Padding *p, const Assigned *assigned, PadAxis axis, const Fill *fill);
/* Refuses an expression of the present statement, which writes a tensor: padding that the program
 * names, at these sets of edges */
void padding_refuse_named(Padding *p, Expr *expr, PadAxis axis, const Fill *fill, unsigned sets);
/* The same of a subscript of what is written */
void padding_refuse_place(Padding *p, Expr *sub, PadAxis axis, const Fill *fill, unsigned sets);
/* Refuses a LEAVE of a loop that padding decides. */
void padding_check_leave(Padding *p, const Row *row);
/* True if the formula may have another value in the next iteration of the loop */
bool padding_of_iteration(const FlowCode *code, const Region *region, const Poly *poly);

/* ---- padding_named.c */

/* Subscript d is no index: the program names the element of a tile or stage. */
bool padding_is_named(const FlowCode *code, const Access *access, int d);
/* The contents as a program names them */
const Fill *padding_named(Padding *p, const Fill *fill);
const Fill *padding_as_variable(Padding *p, const Fill *fill);
/* Adds what the statement computes for its object from elements that it names one by one. */
void padding_add_single(Padding *p, const Assigned *assigned, TileFill *next);
/* At the end of an IF: its condition decides what its arms have written. */
void padding_choose(Padding *p, const Region *asked);
/* A value, maybe from memory, decides which elements of a tensor the statement writes. */
bool padding_scatters(Arena *arena, const Role *role, const Tile *tile);
/* Refuses a statement that writes a tensor, if padding that the program names reaches an element
 * inside of it. */
void padding_check_named(Padding *p, const Tile *tile);

/* ---- padding_text.c */

typedef struct Mask {
    /* in the tensor, as the statement could write it, or as the read of the tensor is written */
    const char *position;  /* NULL: unknown */
    bool here;             /* the first of these */
    const char *condition; /* 0 <= position < extent, or the half that is missing */
} Mask;

/* `name`: of the axis */
/* As the program writes it, on one line; NULL: too long, or in another file */
const char *padding_written_text(const Padding *p, Span span);
Mask padding_mask(const Padding *p, const Edge *edge, const char *name);

/* ---- padding_roles.c */

/* Marks the roles that the rule must follow; false: no role can be refused. *names: some role names
 * elements of tiles. */
bool padding_roles(Arena *arena, const Prog *prog, bool *follows, bool *names);

#endif
