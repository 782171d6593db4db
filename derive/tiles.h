/* tiles: the state of the pass and what its files offer.
 *   tiles.c            order; every statement once, `ensures`, uses of pipes and tensors, preconditions of formulas
 *   tiles_index.c      over which range an index runs; affine subscripts; subscripts inside of their tiles
 *   tiles_rules.c      one notation: what may stand left and right
 *   tiles_copy.c       which copies are possible: boxes, contiguous pieces, pieces of a lane; layouts
 *   tiles_mma.c        which contractions are matrix instructions
 *   tiles_registers.c  how register tiles are spread over threads
 *   boxes.c            a copy as boxes of a tensor map
 *   multicast.c        copies that one block of a cluster makes for several */
#ifndef PIPEC_TILES_H
#define PIPEC_TILES_H

#include "algebra/algebra.h"
#include "flow/code.h"
#include "derive/derive.h"

typedef VEC(Access *) Accesses;

/* One tile statement */
typedef struct Site {
    const Row *row;
    Tile *tile;
    Role *role;
    Algebra *algebra;
    Accesses reads;    /* all X_READ of the value and of subscripts, each once */
    bool poisoned;     /* an error was reported, here or before: later questions are silent */
} Site;

struct Tiles {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    Algebra **algebras; /* one a role */
    Algebra *formulas;  /* of prog-level formulas */
    VEC(Site *) sites;  /* roles in order, statements in order of the text */
    size_t cursor;      /* of tiles_site: statements are mostly asked for in order */
};

Site *tiles_site(Tiles *tiles, const Stmt *stmt); /* of an S_TILE; never NULL for statements of roles */

/* ---- names for messages ------------------------------------------------------------------------------------------- */

const char *tiles_text(Tiles *tiles, Span span);                                   /* source text, shortened */
const char *tiles_object(Tiles *tiles, const Role *role, const Access *access);    /* "`x` of `loaded`", "`A`" */
Span tiles_declared(Tiles *tiles, const Role *role, const Access *access);

/* ---- shapes ------------------------------------------------------------------------------------------------------- */

const Field *access_field(const Prog *prog, const Role *role, const Access *access); /* SPACE_STAGE, else NULL */
bool is_tile_space(Space space);                                                     /* not global memory */
/* Extent of dimension d of what is accessed, as a formula; constant for all but tensors and lets. NULL: not known. */
Expr *access_extent(Tiles *tiles, const Role *role, const Access *access, int d);
int64_t tile_extent(const Prog *prog, const Role *role, const Access *access, int d); /* stage, shared, register */
Layout *access_layout(Prog *prog, const Role *role, const Access *access);            /* stage and shared, else NULL */
bool same_object(const Access *a, const Access *b);

bool tiles_reads(Tiles *tiles, const Role *role, Expr *expr, Accesses *reads); /* adds all; true where something is poison */

/* ---- parts -------------------------------------------------------------------------------------------------------- */

/* Extents of the indexes of one statement or claim. False after an error. */
bool tiles_ranges(Tiles *tiles, const Role *role, IndexSpace *space, Access *target, const Accesses *reads, bool in_ensures);
/* Indexes that no quotient of the value depends on do not stand in it. Needs the ranges. */
void tiles_quotients(Tiles *tiles, const Site *site);
/* Affine forms; tile subscripts proved inside. False after an error. */
/* Where something is subscripted */
typedef struct Place {
    const Role *role;        /* NULL: in formulas of the kernel */
    Algebra *algebra;
    const IndexSpace *space;
    int at;                  /* row of the role's Code, or -1 */
} Place;
bool tiles_subscripts(Tiles *tiles, const Place *place, Access *access);
void tiles_rules(Tiles *tiles, Site *site);
void tiles_copies(Tiles *tiles); /* layouts, classes, maps */
void tiles_banks(Tiles *tiles);  /* layouts' padding */

bool poly_interval(Algebra *algebra, const IndexSpace *space, const Poly *poly, int64_t *lo, int64_t *hi); /* exact */

/* ---- tiles_mma.c: contractions -------------------------------------------------------------------------------------- */

#define TILES_SPAN_MOST  128 /* bytes over which a swizzle goes */
#define TILES_SPAN_LEAST 32
#define TILES_SPAN_ROWS  8   /* after which its pattern repeats */
#define TILES_SLAB_ROWS  64  /* of one matrix instruction */

void tiles_mma(Tiles *tiles, Site *site); /* classifies a statement that reduces, or refuses it, or leaves it */
/* The widest swizzle span in bytes that the operand can have. Where it is contiguous along m or n, of which an instruction takes
 * `part`, that is whole spans. */
int64_t tiles_operand_span(const Tiles *tiles, const Site *site, const MmaOperand *operand, int64_t part);

/* ---- tiles_registers.c ------------------------------------------------------------------------------------------------ */

void tiles_registers(Tiles *tiles); /* needs matrix instructions classified and nothing else; leaves RoleTile.held, Tile.spread */

/* ---- copies ------------------------------------------------------------------------------------------------------- */

/* Why a copy is no box: a code, the place that says it, and the sentence */
typedef struct Reason {
    Code code;
    Span span;
    const char *text, *help;
} Reason;

typedef struct BoxPlan {
    BoxCopy copy;           /* map: filled when the plan is taken */
    int64_t box[PROG_MAX_RANK];
    int64_t count;          /* boxes, saturated */
    int swizzle;            /* of the tile's layout, and of the map */
} BoxPlan;

/* The copy between a tensor and a tile as boxes under this layout; false and the reason where it is none. */
bool boxes_plan(Tiles *tiles, Site *site, const Access *global, const Access *local, const Layout *layout, BoxPlan *out,
                Reason *reason);
/* Can the pitch be a multiple of 16 bytes at all? False and the reason where it never is. */
bool boxes_pitch(Tiles *tiles, const Access *global, bool store, Reason *reason);
/* Adds the launch preconditions that are not proved */
void boxes_require(Tiles *tiles, Site *site, const Access *global, bool store);
int boxes_map(Tiles *tiles, const Access *global, BoxPlan *plan, bool store); /* sets plan->copy.granule too */
int64_t boxes_panel(const Target *target, Element type, int rank, const int64_t *extents); /* the one rule for a tile's panels */

/* Parts of equal size, one for each of several blocks; leaves one part in the plan and how they lie in `out`. False: there are none. */
bool boxes_part(BoxPlan *plan, const Layout *layout, int64_t element_bytes, int parts, Multicast *out);

/* ---- multicast.c: loads into stages that the blocks of a cluster share ------------------------------------------------- */

void multicast_boxes(Tiles *tiles, Site *site, BoxPlan *plan, const Layout *layout);
void multicast_piece(Tiles *tiles, Site *site); /* needs `bulk`, of the whole piece */
void multicast_check(Tiles *tiles, Site *site); /* says where control keeps a copy from it; `multicast required` */

/* Linear position in elements, over indexes and locals */
const Poly *global_position(Tiles *tiles, Site *site, const Access *access);
const Poly *local_position(Tiles *tiles, Site *site, const Access *access, const Layout *layout); /* NULL: not one polynomial */

void tiles_precondition(Tiles *tiles, Expr *condition, const char *text, const char *reason, const char *help, Span span);

#endif
