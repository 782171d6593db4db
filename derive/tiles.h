/* tiles: the state of the pass, and the functions of its files.
 *   tiles/tiles.c              order; every statement once, `ensures`, uses of pipes and tensors
 *   launch/tiles_launch.c      what a launch must satisfy
 *   tiles/tiles_index.c        extents of indexes; affine subscripts; subscripts inside of their
 *                              tiles
 *   tiles/tiles_rules.c        notation: what may be on either side
 *   tiles/tiles_copy.c         possible copies: boxes, contiguous pieces, pieces per lane; layouts
 *   tiles/tiles_mma.c          contractions that are matrix instructions
 *   threads/tiles_registers.c  distribution of register tiles over threads (spread.h)
 *   tiles/tiles_objects.c      what is accessed: objects, shapes, names; what an expression reads
 *   reductions/exchange.c      reductions between threads
 *   reductions/partials.c      sums over a loop, whose parts are combined after it
 *   threads/vectors.c          adjacent elements that a thread accesses at once
 *   tiles/boxes.c              a copy as boxes of a tensor map
 *   tiles/multicast.c          copies that one block of a cluster issues for several */
#ifndef PIPEC_TILES_H
#define PIPEC_TILES_H

#include "algebra/algebra.h"
#include "flow/code.h"
#include "derive/derive.h"
#include "derive/plan.h"

typedef VEC(Access *) Accesses;

/* A tile statement */
typedef struct Site {
    const Row *row;
    Tile *tile;
    Role *role;
    Algebra *algebra;
    Accesses reads;            /* all X_READ of the value and of subscripts, without duplicates */
    Distribution distribution; /* of a statement of threads or lanes */
    bool poisoned;             /* an error was reported: later checks ignore the statement */
    bool placed;               /* a store: `before` is known */
    bool before;               /* it may start before the tensor */
} Site;

typedef struct ScalarRead { /* of an `inout` tensor, outside of tile statements */
    const Role *role;
    const Access *access;
} ScalarRead;

typedef struct Pitched { /* what TMA does with a tensor of several axes */
    bool loaded, stored;
    Span span; /* of the first load */
} Pitched;

/* Of loops whose variables reach the same, see tiles_rules.c */
typedef struct LoopBounds {
    const Poly *lo, *hi;
} LoopBounds;

struct Tiles {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    Algebra **algebras;     /* one per role */
    Algebra *formulas;      /* of prog-level formulas */
    Pitched *pitched;       /* by parameter, see boxes_require */
    VEC(Site *) prefetches; /* statements that only affect L2: rules and layouts ignore them */
    VEC(Site *) sites;      /* roles in order, statements in order of the text */
    VEC(ScalarRead) scalars;
    VEC(LoopBounds) bounds;
    /* of tiles_site: statements are usually requested in order */
    size_t cursor;
};

/* tiles.c: the Site of an S_TILE; never NULL for statements of roles */
Site *tiles_site(Tiles *tiles, const Stmt *stmt);

/* ---- tiles_objects.c: names for messages ----------------------------------------------------- */

/* source text, shortened */
const char *tiles_text(Tiles *tiles, Span span);
/* "`x` of `loaded`", "`A`" */
const char *tiles_object(Tiles *tiles, const Role *role, const Access *access);
Span tiles_declared(Tiles *tiles, const Role *role, const Access *access);

/* ---- tiles_objects.c: shapes ----------------------------------------------------------------- */

/* SPACE_STAGE, otherwise NULL */
const Field *access_field(const Prog *prog, const Role *role, const Access *access);
/* not global memory */
bool is_tile_space(Space space);
/* Extent of dimension d of the accessed object, as a formula; constant except for tensors and
 * lets. NULL: unknown. */
Expr *access_extent(Tiles *tiles, const Role *role, const Access *access, int d);
/* stage, shared, register */
int64_t tile_extent(const Prog *prog, const Role *role, const Access *access, int d);
/* stage and shared, otherwise NULL */
Layout *access_layout(const Prog *prog, const Role *role, const Access *access);
bool same_object(const Access *a, const Access *b);

/* an error about the object was reported; role: NULL outside of roles */
bool tiles_poisoned(const Prog *prog, const Role *role, const Access *access);
/* Adds all reads of the subscripts of a target. True if some part is poison. */
bool tiles_target_reads(Tiles *tiles, const Role *role, const Access *target, Accesses *reads);
/* adds all reads of the expression; true if some part is poison */
bool tiles_reads(Tiles *tiles, const Role *role, Expr *expr, Accesses *reads);

/* ---- parts ----------------------------------------------------------------------------------- */

/* Sets the extents of the indexes of a statement or claim. False after an error. */
bool tiles_ranges(Tiles *tiles, const Role *role, IndexSpace *space, Access *target,
                  const Accesses *reads, bool in_ensures);
/* Removes from quotients the indexes that do not change them. Needs the ranges. */
void tiles_quotients(Tiles *tiles, const Site *site);
/* The place of a subscript */
typedef struct SubPlace {
    const Role *role; /* NULL: a formula of the kernel */
    Algebra *algebra;
    const IndexSpace *space;
    int at; /* row of the role's Code, or -1 */
} SubPlace;
/* Sets affine forms; proves tile subscripts inside. False after an error. */
bool tiles_subscripts(Tiles *tiles, const SubPlace *place, Access *access);
/* Proves that ranges of indexes are inside of the tensor of a claim. False after an error. */
bool tiles_claimed(Tiles *tiles, const SubPlace *place, const Access *target);
/* True if each affine subscript of the access is proved to begin at 0 or later */
bool tiles_starts_inside(Tiles *tiles, const SubPlace *place, const Access *access);
/* Refuses a statement that breaks a rule of the notation (tiles_rules.c). */
void tiles_rules(Tiles *tiles, Site *site);
void tiles_refuse_output(Tiles *tiles, const Access *read); /* of an `out` tensor */
void tiles_scalar_rule(Tiles *tiles, const ScalarRead *read);
void tiles_copies(Tiles *tiles);     /* layouts, classes, maps */
void tiles_prefetches(Tiles *tiles); /* needs layouts */
void tiles_banks(Tiles *tiles);      /* layouts' padding */

/* The exact range of a polynomial over the indexes of a space; false: unknown */
bool poly_interval(Algebra *algebra, const IndexSpace *space, const Poly *poly, int64_t *lo,
                   int64_t *hi);

/* ---- tiles_mma.c: contractions --------------------------------------------------------------- */

#define TILES_SPAN_MOST  128 /* most bytes of a swizzled row */
#define TILES_SPAN_LEAST 32
#define TILES_SPAN_ROWS  8  /* period of the swizzle in rows */
#define TILES_SLAB_ROWS  64 /* rows of one matrix instruction */

/* classifies a statement that reduces, refuses it, or leaves it unclassified */
void tiles_mma(Tiles *tiles, Site *site);
/* The widest swizzle span of the operand in bytes. If it is contiguous along m or n, of which an
 * instruction uses `part`, that must be whole spans. */
int64_t tiles_operand_span(const Tiles *tiles, const Site *site, const MmaOperand *operand,
                           int64_t part);

/* ---- tiles_registers.c ----------------------------------------------------------------------- */

/* Place of a digit of a statement whose rounds are a loop: it varies slowest, along an index that
 * subscripts no register tile */
#define TILES_LOOPED 6

/* needs classified matrix instructions; sets TilePlan.held, Tile.spread */
void tiles_registers(Tiles *tiles);

/* ---- exchange.c: reductions between threads -------------------------------------------------- */

/* `layout`: of the statement, over all its indexes; `held`: of the result */
Exchange exchange_of(const Tile *tile, const RegisterLayout *layout, const RegisterLayout *held);
/* Finds variables of which each thread holds a part during a loop; needs layouts and exchanges. */
void partials_find(Tiles *tiles, Role *role);
/* Finds reductions that share an exchange, and declares the shared tile for the largest of them;
 * needs layouts, exchanges and such variables. */
void exchange_memory(Tiles *tiles, Role *role);

/* ---- vectors.c: elements at once ------------------------------------------------------------- */

#define TRAFFIC_SIZES 4 /* elements of 1, 2, 4 and 8 bytes */
#define BANK_BYTES    4 /* of shared memory */

/* Elements that a statement accesses in memory along an index, by their size */
typedef struct Traffic {
    int64_t elements[TRAFFIC_SIZES];
} Traffic;

int64_t extent_product(int64_t a, int64_t b); /* at most INT64_MAX */
/* `space`: of the statement, with constant extents */
void traffic_add(Traffic *traffic, const IndexSpace *space, const Access *access);
/* Elements that a thread accesses at once: 16 bytes of those that most of the work is about */
int traffic_vector(const Traffic *traffic);
void tiles_crooked(Tiles *tiles); /* of each tensor */
/* What divides the rows of a tensor that are at no launch whole vectors, otherwise 0: lanes whose
 * elements would be accessed one by one are neighbours */
int64_t crooked_rows(const Prog *prog, const Access *access);

/* ---- copies ---------------------------------------------------------------------------------- */

/* Why a copy is no box: a code, the place, and the sentence */
typedef struct Reason {
    Code code;
    Span span;
    const char *text, *help;
} Reason;

typedef struct BoxPlan {
    BoxCopy copy; /* map: set when the plan is used */
    int64_t box[PROG_MAX_RANK];
    int64_t count; /* number of boxes, saturated */
    int swizzle;   /* of the tile's layout, and of the map */
    bool narrow;   /* of the map */
} BoxPlan;

/* Plans a copy between a tensor and a tile as boxes under this layout; false and the reason if
 * that is impossible. */
bool boxes_plan(Tiles *tiles, Site *site, const Access *global, const Access *local,
                const Layout *layout, BoxPlan *out, Reason *reason);
/* False and the reason if the pitch is never a multiple of 16 bytes. */
bool boxes_pitch(Tiles *tiles, const Access *global, bool store, Reason *reason);
/* Adds the launch preconditions that are not proved, except those of boxes_pitches */
void boxes_require(Tiles *tiles, Site *site, const Access *global, bool store);
/* Adds those of the pitches of tensors that TMA only loads. After all of boxes_require: a tensor
 * that it also stores has a stricter one. */
void boxes_pitches(Tiles *tiles);
/* Sets plan->narrow of the whole copy, before blocks of a cluster share it. */
void boxes_narrow(Tiles *tiles, const Site *site, const Access *global, BoxPlan *plan);
/* also sets plan->copy.granule */
int boxes_map(Tiles *tiles, const Access *global, BoxPlan *plan, bool store);
/* Divides the rows of a tile into panels, if it is wider than a box. */
void boxes_panels(const Target *target, Element type, int rank, const int64_t *extents,
                  Layout *layout);

/* Divides the copy into equal parts for several blocks; the plan becomes one part, `out` their
 * positions. False: impossible. */
bool boxes_part(BoxPlan *plan, const Layout *layout, int64_t element_bytes, int parts,
                Multicast *out);

/* ---- tiles_launch.c -------------------------------------------------------------------------- */

/* Requires that the index of a grid tile fits its type; sets the least alignment of tensors */
void tiles_launch(Tiles *tiles);
/* Launches of the tensor need strides that are multiples of so many bytes */
void tiles_align_strides(Param *param, uint32_t bytes);
/* Launches need this axis and those inside it without gaps */
void tiles_join_axes(Param *param, int axis);
/* Adds a launch precondition, unless there is the same one */
void tiles_precondition(Tiles *tiles, Precondition row);

/* ---- divisors.c, expressions.c --------------------------------------------------------------- */

bool divisors_require(Arena *arena, Prog *prog); /* true if it added a precondition */

#define EXPRESSION_NODES 4096 /* most nodes of an expression of a launch */
/* The polynomial as an expression that a launch can evaluate; takes its nodes from `nodes`. NULL:
 * it has other variables than extents and scalars, or too many nodes */
Expr *expression_of(Arena *arena, const Algebra *algebra, const Poly *poly, Span span, int *nodes);
/* The same for amounts of work: also of axes, variables of loops, truths and selects */
Expr *expression_counted(Arena *arena, const Algebra *algebra, const Poly *poly, Span span,
                         int *nodes);
/* a constant of type I32, or I64 if it is too large */
Expr *expression_integer(Arena *arena, int64_t value, Span span);

/* ---- multicast.c: loads into stages that the blocks of a cluster share ----------------------- */

void multicast_boxes(Tiles *tiles, Site *site, BoxPlan *plan, const Layout *layout);
void multicast_piece(Tiles *tiles, Site *site); /* needs `bulk` for the whole piece */
/* once all copies are classified: those that cannot be shared after all are not */
void multicast_withdraw(const Tiles *tiles);
/* reports control that prevents multicast; checks `multicast required` */
void multicast_check(Tiles *tiles, Site *site);

/* Linear position in elements, over indexes and locals */
const Poly *global_position(Tiles *tiles, Site *site, const Access *access);
/* NULL: not a single polynomial */
const Poly *local_position(Tiles *tiles, Site *site, const Access *access, const Layout *layout);

#endif
