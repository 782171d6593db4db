/* The checked program. One Prog is one kernel: statics are bound, functions inlined, names
 * resolved to indexes, every expression typed, every tile statement classified. What is derived
 * from it for a GPU (warps, registers, shared memory, waits) is its plan: derive/plan.h.
 *
 * The passes of check/passes.def fill it; "filled by" names the pass that sets a field:
 *   elaborate (names, types, inlining)     uniform (threads over which values vary)
 *   turns (instances in turn)              tiles (index ranges, classes, boxes, padding)
 *   stages (linear rule)                   counts (of acquires)
 *   resources (how ends of pipes arrive)
 * Expressions, tile statements, operations of `unsafe`, layouts and targets have headers of their
 * own, which are included here because a Prog consists of them.
 * A field that elaboration sets is also written in prog/key.c or prog/key_prog.c. */
#ifndef PIPEC_PROG_H
#define PIPEC_PROG_H

#include "prog/agents.h"
#include "prog/bounds.h"
#include "prog/expr.h"
#include "prog/layout.h"
#include "prog/target.h"
#include "prog/tile.h"
#include "prog/unsafe.h"

typedef struct Stmt Stmt; /* prog/stmt.h */

/* ---- roles ----------------------------------------------------------------------------------- */

typedef enum LocalKind { LOCAL_LET, LOCAL_VAR, LOCAL_LOOP, LOCAL_AXIS } LocalKind;

typedef struct Local {
    const char *name;
    Span span;
    LocalKind kind;
    Element type;
    Uniformity uniformity; /* the widest of all values assigned to it; filled by uniform */
    bool scoped;           /* in the `locals` of a block; filled by elaborate */
    /* declared in a loop over the grid: lives for one iteration */
    bool in_grid;
    /* variation over the blocks of a cluster, as in Expr; filled by uniform */
    uint32_t along;
    int axis;    /* LOCAL_AXIS: which grid axis */
    Expr *value; /* LOCAL_LET: its only value */
    /* of a loop variable: lo <= local < hi in the body; NULL: unknown */
    Expr *lo, *hi;
} Local;

typedef struct Handle { /* a linear stage variable */
    const char *name;
    Span span;
    int pipe;
    End end;
    bool variable;  /* declared with `var`: may be assigned again */
    bool parameter; /* parameter of a function that takes ownership of the stage */
    bool forgotten; /* an error was reported: its content is unknown */
} Handle;

typedef struct Hint { /* result of `try`, for the next acquire of that end */
    const char *name;
    Span span;
    int pipe;
    End end;
    bool variable; /* declared with `var`: may be assigned again */
} Hint;

typedef struct RoleTile { /* a `shared` tile or a `var` tile of a role */
    const char *name;
    Span span;
    bool in_registers;
    /* the result of a reduction, which every thread that needs it holds; filled by elaborate */
    bool reduced;
    Element type;
    int rank;
    int64_t extents[PROG_MAX_RANK];
    /* its scope ends before the role's tile of this index is declared; filled by elaborate */
    int until;
    bool address_taken; /* `unsafe` takes its address; filled by elaborate */
} RoleTile;

/* Use of a pipe by a role, over all its stage variables; filled by tiles */
typedef struct PipeUse {
    bool uses; /* acquires it */
    /* each stage goes to one instance: acquired in the loop over the grid of a role in turn;
     * filled by tiles */
    bool in_turn;
    Agents agents; /* which access its stages; ADDRESS: filled by elaborate */
    /* LANES_IN, and some consumer reads asynchronously: waits for the cp.async, then a fence and
     * a plain arrive */
    bool waits_copies;
    /* By end, how a release arrives: bits of Arrives; filled by resources.
     * WARPS, of a producer: for ordinary writes, waits_copies, tokens, and for several warps or
     * instances whose copies one lane issues: otherwise that lane could lap the others.
     * INSTANCE: only matrix instructions read its stages, on every path, and all warps of the
     * warpgroup have issued an instruction when it completes */
    unsigned arrives[2];
} PipeUse;

typedef struct Role {
    const char *name;
    Span span;
    int instances, warps; /* warps: of one instance */
    bool warpgroups;      /* declared in warpgroups */
    /* instance k takes iterations k, k + instances, .. of the loop over the grid */
    bool in_turn;
    int turns; /* number of `turn { }` blocks; filled by elaborate */
    int regs;  /* as written, 0: not written */
    /* only issues TMA and bulk copies: runs in one lane; filled by resources */
    bool one_lane;
    VEC(Local) locals;
    VEC(Handle) handles;
    VEC(Hint) hints;
    VEC(RoleTile) tiles;
    /* the `shared` tile through which warps combine reductions, -1: none; filled by tiles */
    int partials;
    const PipeUse *pipes; /* one per pipe of the kernel */
    /* an error was reported: an acquire, or a call that may contain some, is missing, or its
     * count is unknown */
    bool forgotten;
    Stmt *body;
    struct FlowCode *code; /* the same as rows: flow/code.h; filled by check */
} Role;

static inline int role_warps(const Role *role) { return role->instances * role->warps; }

/* ---- the kernel ------------------------------------------------------------------------------ */

typedef struct Symbol {
    const char *name;
    Span span;
    bool is_extent; /* otherwise an integer scalar parameter */
    /* the scalar, or the first tensor that has the extent */
    int param;
    /* of an extent that no axis has alone: this axis of the tensor has times * it + plus elements,
     * so that a launch can solve it. times 0: some axis has it alone */
    int axis, times, plus;
} Symbol;

/* What `requires` states of a floating-point scalar: true for every launch, since a launch compares
 * the value that the kernel gets. NaN meets no condition. `requires a >= 0` allows both zeros. */
typedef struct Stated {
    bool number;  /* never NaN; otherwise nothing is stated */
    bool nonzero; /* neither 0 nor -0 */
    FloatRange range;
} Stated;

typedef enum ParamMode { PARAM_IN, PARAM_OUT, PARAM_INOUT } ParamMode;

typedef struct Param {
    const char *name;
    Span span;
    bool is_tensor;
    ParamMode mode;
    Element type;
    int rank;
    Expr *extents[PROG_MAX_RANK]; /* X_SYMBOL or X_CONST, I32 */
    int symbol;                   /* scalars of integer type, otherwise -1 */
    Stated stated;                /* scalars of floating-point type; filled by elaborate */
    /* required alignment of its base in bytes: the element's, 16 for TMA and bulk; filled by
     * tiles */
    uint32_t alignment;
    /* of the strides of its outer axes in bytes, 0: any; filled by tiles */
    uint32_t stride_alignment;
    /* what divides the last extent if `requires` excludes that whole vectors do, 0: it does not;
     * filled by tiles */
    int64_t crooked;
    /* bit a: axis a follows axis a + 1 without a gap; filled by elaborate and tiles */
    uint32_t joined;
    /* some statement addresses it (not only through tensor maps); filled by tiles */
    bool by_pointer;
} Param;

typedef struct Field {
    const char *name;
    Span span;
    Element type;
    int count; /* tiles in the array, 1: a plain field */
    bool is_array;
    int rank;
    int64_t extents[PROG_MAX_RANK];
    int64_t elements; /* of one tile */
    /* indexed by End: `unsafe` takes its address there; filled by elaborate */
    bool address_taken[2];
} Field;

typedef struct Pipe {
    const char *name;
    Span span;
    int stages;
    int producer;       /* role */
    VEC(int) consumers; /* roles */
    VEC(Field) fields;  /* none: a token */
    /* indexed by End: arrivals per phase from `arrivals full`, `arrivals empty`; 0: derived; -1:
     * missing and reported */
    int64_t declared[2];
    Span declared_at[2];
    /* `unsafe` uses it in ways that cannot be counted; filled by elaborate */
    bool unproved;
    /* an error about its stages or ends was reported: counts reports nothing about it; filled by
     * stages */
    bool faulty;
    /* cluster axes along which the number of its acquires varies; filled by uniform */
    uint32_t along;
    /* bit s: some copy into it is multicast along the axes of the set s; 0: none; filled by
     * tiles */
    uint32_t multicast;
} Pipe;

/* range kt = lo .. hi where w; over symbols and grid axes (X_AXIS) */
typedef struct Domain {
    const char *name;
    Span span;
    Expr *lo, *hi, *where; /* where may be NULL */
} Domain;

typedef struct Axis {
    const char *name;
    Span span;
    Expr *extent; /* over symbols */
    int cluster;  /* blocks of a cluster along it, 1: none */
    /* the extent, rounded up to whole clusters: upper bound of the coordinates */
    Expr *padded;
} Axis;

/* a launch precondition; never constant */
typedef struct Precondition {
    /* BOOL over symbols; also comparisons of floating-point scalars and constants, or of their
     * negations, absolute values, minima and maxima. It does not hold if one of them is NaN */
    Expr *condition;
    const char *text, *reason, *help;
    Span span;
    /* keeps numbers within their type: no example of sizes is derived from it */
    bool of_width;
    bool of_text; /* stated by the program, or needed for the value of what it states */
    /* 1 + a tensor: the condition is that of its pitch, and holds for launches of it without gaps.
     * With gaps its strides are multiples of its stride_alignment: it is no fact about extents.
     * 0: none */
    int pitch_of;
} Precondition;

typedef struct Let { /* of `ensures` */
    const char *name;
    Span span;
    /* its bound indexes are the let's dimensions, in order of the target's subscripts */
    IndexSpace space;
    Element type;
    int rank;
    Expr *value;
} Let;

typedef struct Claim {
    Span span;
    IndexSpace space;
    /* SPACE_GLOBAL, an out or inout tensor; subscripts are indexes or constants */
    Access target;
    Expr *value;
    /* Largest error: the larger of within * (|value| + scale) and `absolute` */
    double within;   /* < 0: exact */
    double absolute; /* 0: none */
} Claim;

typedef enum ExampleKind { EXAMPLE_NUMBER, EXAMPLE_FILL, EXAMPLE_FORMULA } ExampleKind;

typedef struct Example {
    const char *name; /* extent, scalar or tensor */
    Span span;
    ExampleKind kind;
    double number;
    int64_t integer;
    bool is_integer;
    bool is_above;    /* an integer above 64 bits with a sign: the bits of a u64 */
    const char *fill; /* EXAMPLE_FILL: normal, uniform, iota, zeros */
    int param;        /* tensor, otherwise -1 */
    IndexSpace space; /* EXAMPLE_FORMULA: the tensor's axes in order */
    Expr *value;
} Example;

typedef struct Constant { /* for the report and the manifest */
    const char *name;
    Span span;
    bool is_static;
    bool read;            /* the kernel, or another constant, reads it */
    bool is_type;         /* it names an element type; the values are numbers of Element */
    Expr *value;          /* X_CONST */
    VEC(int64_t) choices; /* of a static: values for `tune` */
} Constant;
/* As a command line has it: "128", "true", "bf16"; `value` is one of its choices */
const char *constant_choice_text(Arena *arena, const Constant *constant, int64_t value);
const char *constant_value_text(Arena *arena, const Constant *constant);

/* Of a dynamic grid: who draws the numbers of tiles. The role publishes them on a pipe, without
 * fields, to all roles that loop over the grid; each takes the number of its next tile at the
 * head of an iteration, and one that ends the loop after the last tile. The other pipe, of tokens,
 * tells it that a tile is begun. -1: the grid is not dynamic */
typedef struct Draws {
    int role;
    int tiles, begun; /* pipes */
    Span span;        /* of the grid */
} Draws;

/* A place in the text that accesses an axis of a tensor, with all of its copies: an inlined
 * function and an unrolled loop have several */
typedef struct OutsideAccess {
    Span span, sub; /* of the access, and of its subscript */
    int param, axis;
    bool before;   /* the tensor; otherwise after it */
    bool written;  /* otherwise read */
    bool copied;   /* read into a stage by a copy, which may fill it with zeros on purpose */
    bool outside;  /* some copy is outside of the tensor in every launch */
    bool possible; /* some copy may be inside */
    bool limited;  /* a limit of the checker leaves it unknown for some copy */
} OutsideAccess;
typedef struct OutsideAccesses {
    VEC(OutsideAccess) list; /* in order of the text */
    bool cut;                /* some accesses were not looked at */
} OutsideAccesses;

typedef struct Prog {
    int passes; /* number of passes of check/passes.def that have run */
    const Source *source;
    const char *name;
    const char *variant; /* its name; NULL: the kernel has none */
    Span unit;           /* all of the variant, or of the kernel */
    Span span;           /* of the kernel's head */
    const Target *target;
    Span target_span; /* hi 0: the kernel does not name it */
    uint32_t lacks;   /* capabilities whose lack was reported */
    VEC(Constant) constants;
    VEC(Symbol) symbols;
    VEC(Param) params;
    VEC(Axis) axes;
    bool persistent; /* a dynamic one too */
    Draws draws;
    int cluster;          /* blocks per cluster; 1: no clusters */
    Span cluster_span;    /* empty without `cluster` */
    bool cluster_refused; /* an error was reported: the cluster is unknown */
    bool touches_peers;   /* `unsafe` may access other blocks' memory */
    /* 0, or the group size: coordinates traverse the first axis in groups of this size, for each
     * the whole second axis (L2) */
    int grouped;
    VEC(Domain) domains;
    VEC(Pipe) pipes;
    VEC(Role) roles;
    VEC(Precondition) preconditions; /* `requires` and derived ones */
    VEC(Let) lets;
    VEC(Claim) claims;
    VEC(Example) examples;
    OutsideAccesses outside; /* filled by outside */
    const struct Plan *plan; /* derive/plan.h; made by tiles */
    struct Tiles *tiles;     /* derive/tiles.h; filled by tiles, for later passes */
} Prog;

/* True for the pipes of a dynamic grid, which no statement names */
static inline bool pipe_is_implied(const Prog *prog, int pipe) {
    return prog->draws.role >= 0 && pipe >= prog->draws.tiles;
}

/* ---- questions about roles and accesses (prog.c) --------------------------------------------- */

/* Largest error of an element; size: |value| + scale. 0: none, the claim is exact */
double claim_allows(const Claim *claim, double size);
/* True if the role is one of the consumers of the pipe */
bool pipe_consumed_by(const Pipe *pipe, int role);
/* number of instances that take each stage of a pipe that the role acquires */
int role_takers(const Role *role, int pipe);
/* name of the access of a statement: "Y", "s.x", "acc" */
const char *access_name(Arena *arena, const Prog *prog, const Role *role, const Access *access);

/* ---- clusters (cluster.c) -------------------------------------------------------------------- */

/* The rank of a block counts along the clustered axes, the first fastest. */

/* set of axes along which a cluster has several blocks */
uint32_t cluster_axes(const Prog *prog);
/* distance in rank to the next block along the axis */
int cluster_stride(const Prog *prog, int axis);
int cluster_count(const Prog *prog, uint32_t axes); /* blocks that differ only along these axes */
uint32_t cluster_group(const Prog *prog, uint32_t axes); /* their ranks for block 0, one bit each */
/* blocks whose stages block 0 copies into, including itself */
uint32_t cluster_reach(const Prog *prog, const Pipe *pipe);
bool cluster_shares_memory(const Prog *prog); /* true if its blocks access each other's memory */
/* True if a block can leave once its multicast stages are empty: nobody accesses it afterwards. */
bool cluster_drains(const Prog *prog);

/* ---- printed forms (print.c, print_expr.c) --------------------------------------------------- */

/* An indented form of everything, including derived facts: --emit=prog */
void prog_print(const Prog *prog, Arena *arena, Str *out);
/* role, space may be NULL */
void expr_print(const Expr *expr, const Prog *prog, const Role *role, const IndexSpace *space,
                Str *out);
void access_print(const Access *access, const Prog *prog, const Role *role, const IndexSpace *space,
                  Str *out);

/* Sets uniformity, `along` and indexes from the operands; leaves those of a variable unchanged */
void expr_derive(const Role *role, Expr *expr);

static inline bool valid_index(int index, size_t count) {
    return index >= 0 && (size_t)index < count;
}

#endif
