/* The manifest: the data that a launcher needs in addition to the PTX text. Made by codegen/,
 * read by the emulator, the driver runtime, and (as JSON, docs/manifest.md) by launchers in
 * other languages. Tensor maps are given as the fields to encode, not as CUtensorMap. Sizes that
 * depend on the launch are formulas over symbols. */
#ifndef PIPEC_MANIFEST_H
#define PIPEC_MANIFEST_H

#include "util/util.h"

#define MAX_RANK  5
#define MAX_WARPS 32

/* ---- formulas -------------------------------------------------------------------------------- */

/* An integer formula without side effects, in postfix, over the manifest's symbols, evaluated in
 * 64 bits; overflow and a zero divisor are errors. Comparisons and logic give 0 or 1. `/` and
 * `%` are C's; CEIL(a, b) is the least integer >= a/b. */
typedef enum FormulaOp {
    F_CONST,  /* push value */
    F_FLOAT,  /* push value, the formula_order of an f32 constant */
    F_SYMBOL, /* push symbols[value] */
    F_NEG,
    F_NOT,
    F_ADD,
    F_SUB,
    F_MUL,
    F_DIV,
    F_MOD,
    F_CEIL,
    F_MIN,
    F_MAX,
    F_EQ,
    F_NE,
    F_LT,
    F_LE,
    F_AND,
    F_OR,
    F_SELECT /* pops else, then, condition */
} FormulaOp;

typedef struct FormulaStep {
    FormulaOp op;
    int64_t value;
} FormulaStep;

typedef struct Formula {
    const FormulaStep *steps;
    int count; /* 0: no formula */
} Formula;

typedef enum FormulaFault { FORMULA_FINE, FORMULA_OVERFLOW, FORMULA_ZERO_DIVISOR } FormulaFault;
/* Floats in formulas are only compared, negated and chosen, so that an integer in their order does
 * for each: f32 values as their bits, with the sign of the bits, both zeros as 0. ORDER_NAN is in
 * no formula: a precondition that names a NaN does not hold. */
#define ORDER_NAN INT64_MIN
int64_t formula_order(double value);   /* of a value that f32 holds */
double formula_ordered(int64_t order); /* the value; 0 for both zeros */

/* Values that a step takes; it gives one. */
int formula_operands(FormulaOp op);

/* The value of an operation on operands that have one; those that it does not take do not matter.
 * False: it has none */
bool formula_apply(FormulaOp op, int64_t a, int64_t b, int64_t c, int64_t *out);

FormulaFault formula_eval_steps(const Formula *formula, const int64_t *symbols, int64_t *out);
/* Evaluates a formula with the values of manifest->symbols. On a fault *out is undefined. */
static inline FormulaFault formula_eval(const Formula *formula, const int64_t *symbols,
                                        int64_t *out) {
    if (formula->count != 1 || formula->steps->op != F_SYMBOL) /* most extents and strides */
        return formula_eval_steps(formula, symbols, out);
    *out = symbols[formula->steps->value];
    return FORMULA_FINE;
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* A symbol: a named integer known at launch. Extents come from the shapes of tensors (equal
 * names are equal extents) or from NAME=value; integer scalar parameters are symbols too, so
 * that ranges and grids can depend on them. The strides of each tensor follow, "A.stride0". */
typedef struct ManifestSymbol {
    const char *name;
    bool is_extent;
    bool is_row; /* an extent that counts rows of a result: along any axis but the last */
    /* elements from one to the next along an axis of a tensor, any but the last. Neither: the
     * value of the integer scalar parameter of this name */
    bool is_stride;
    /* of a stride, and of an extent that no axis has alone: this axis has times * it + plus
     * elements. times 0: some axis has it alone */
    int parameter, axis, times, plus;
    /* the value of the floating-point scalar parameter of this name, as formula_order gives it;
     * only preconditions use it */
    bool is_float;
} ManifestSymbol;

typedef enum ParameterKind { PARAMETER_TENSOR, PARAMETER_SCALAR } ParameterKind;
typedef enum ParameterMode { MODE_IN, MODE_OUT, MODE_INOUT } ParameterMode;

/* A parameter of the kernel as the author wrote it, in order. */
typedef struct ManifestParameter {
    const char *name;
    ParameterKind kind;
    ParameterMode mode; /* tensors */
    Element type;
    int rank; /* tensors: 1 .. MAX_RANK; elements are adjacent along the last axis */
    Formula extents[MAX_RANK];
    int symbol; /* scalars: index in symbols, or -1 */
    /* scalars of u64 and floating-point ones: a formula of the launch names it, a precondition or
     * an extent; see manifest_find_compared */
    bool compared;
    uint32_t alignment; /* tensors: required alignment of the base in bytes */
    /* of the strides in bytes; 0: any */
    uint32_t stride_alignment;
    /* bit a: axis a follows axis a + 1 without a gap: its stride is the extent of axis a + 1 times
     * that stride */
    uint32_t joined;
    bool moves_in, moves_out; /* tensors: some work reads them, writes them */
    int64_t vector; /* elements that threads store at once, at most; 0: threads store none */
    Span span;
} ManifestParameter;

/* A parameter of the PTX entry, in order. */
typedef enum ArgumentKind {
    ARGUMENT_TENSOR_MAP, /* index: maps[]; 128 bytes, aligned to 64 */
    ARGUMENT_POINTER,    /* index: parameters[] (a tensor); u64 */
    /* index: symbols[], a stride; u32 for the axis before the last, otherwise u64 */
    ARGUMENT_STRIDE,
    ARGUMENT_EXTENT, /* index: symbols[]; u32 */
    /* index: parameters[] (a scalar); its own type, 16-bit floats widened to f32, 8-bit integers
     * to s32 */
    ARGUMENT_SCALAR,
    /* u64 device address of the counter of a dynamic grid: a u32, COUNTER_BYTES for itself, 0
     * before its first launch. Each launch leaves it 0; launches that may overlap need one each. */
    ARGUMENT_COUNTER,
    ARGUMENT_WATCHDOG /* u64 device address of a WatchdogArea; always the last */
} ArgumentKind;

/* A sector of L2: counters of launches that overlap do not share one. */
#define COUNTER_BYTES 32u

typedef struct ManifestArgument {
    ArgumentKind kind;
    int index;
} ManifestArgument;

/* The fields of a tiled tensor map, innermost dimension first, as cuTensorMapEncodeTiled takes
 * them. */
/* CUtensorMapSwizzle's values */
typedef enum Swizzle { SWIZZLE_NONE, SWIZZLE_32, SWIZZLE_64, SWIZZLE_128 } Swizzle;
/* CUtensorMapL2promotion's values: what a load fetches into L2 at least */
typedef enum Promotion { PROMOTION_NONE, PROMOTION_128 = 2, PROMOTION_256 = 3 } Promotion;

typedef struct ManifestMap {
    int parameter; /* the tensor */
    Element type;
    int rank; /* 1 .. 5 dimensions: the axes of the tensor, innermost first */
    /* in elements; if one is 0, map_evaluate decides what is encoded */
    Formula extents[MAX_RANK];
    Formula strides[MAX_RANK]; /* in bytes, of dimensions 1 ..; [0] is unused */
    uint32_t box[MAX_RANK];    /* in elements, 1 .. 256 */
    Swizzle swizzle;
    Promotion promotion;
    /* used by stores; otherwise by loads, never by both: bytes stored to an empty tensor must
     * not be read */
    bool stored;
} ManifestMap;

/* A tensor map with the numbers of a launch, innermost dimension first. The driver has no maps
 * for tensors without elements. If an extent is 0, the map refers to EMPTY_BYTES bytes that the
 * launcher owns: one element, extents of 1, strides of EMPTY_BYTES. For loads these bytes are
 * zero at all coordinates and never overwritten; for stores they are never read. */
#define EMPTY_BYTES 16u /* a store through a map writes whole 16 bytes */

typedef struct MapShape {
    bool is_empty; /* the map refers to the launcher's bytes */
    uint64_t extents[MAX_RANK];
    uint64_t strides[MAX_RANK]; /* [0]: size of an element */
    Promotion promotion;
} MapShape;

/* Evaluates the extents (elements) and strides (bytes) of a tensor map with the values of
 * manifest->symbols. On a fault *out is undefined. */
FormulaFault map_evaluate(const ManifestMap *map, const int64_t *symbols, MapShape *out);

/* A launch precondition: if it is zero, or a floating-point symbol in it is NaN, the launch is
 * refused with exit code 2. */
typedef struct ManifestPrecondition {
    Formula condition;
    /* the condition in Pipe's syntax: "K * 2 % 16 == 0" */
    const char *text;
    /* why: "rows of `A` are copied by TMA, whose pitch is a multiple of 16 bytes" */
    const char *reason;
    const char *help; /* how to correct it; may be NULL */
    Span span;        /* source of the condition */
} ManifestPrecondition;

/* ---- names for the emulator, the watchdog and debuggers -------------------------------------- */

typedef enum SharedKind {
    SHARED_FULL,
    SHARED_EMPTY,
    SHARED_FIELD,
    SHARED_TILE,
    SHARED_SCRATCH
} SharedKind;

/* A range of the block's shared memory. Stage s of a pipe's field is at offset + s * stride,
 * `bytes` long; barrier s at offset + s * 8. Tiles of a role have stages == 1. */
typedef struct ManifestShared {
    SharedKind kind;
    const char *pipe;  /* name, or NULL */
    const char *field; /* name of the field or tile, or NULL */
    /* for --report: reason for its size, place or layout */
    const char *reason;
    uint32_t offset, bytes, stages, stride;
    /* barriers: the arrive count of their init */
    uint32_t count;
} ManifestShared;

typedef struct ManifestRole {
    const char *name;
    /* warps: number for all instances, so a multiple of instances */
    int first_warp, warps, instances;
    int registers; /* setmaxnreg value, 0: none */
    Span span;
    int held;     /* registers per thread for its register tiles */
    bool in_turn; /* an instance has a tile for itself; see work_find_facts */
} ManifestRole;

/* Source of the PTX lines from `line` (from 1) up to the next mark. Sorted by line. */
typedef struct ManifestMark {
    uint32_t line;
    Span span;
    int role;         /* index in roles, -1: the kernel's prologue */
    const char *pipe; /* the pipe of the operation, or NULL */
    /* "waits for a full stage of `loaded`", "copies `X` into `s.x`", ... ; may be NULL */
    const char *what;
} ManifestMark;

/* Lines of inline PTX (`unsafe`), and the statement that contains them */
typedef struct ManifestInline {
    uint32_t first, last;
    Span span;
} ManifestInline;

/* A wait site: the watchdog's records refer to its number. */
typedef struct ManifestWait {
    int role;
    const char *pipe; /* NULL: a named barrier */
    /* waits for a full stage (a consumer), otherwise for an empty one (a producer) */
    bool full;
    Span span;
} ManifestWait;

/* What a role does: loops and conditions, and in them amounts for one execution by one instance
 * (util/work.def). Formulas are over the symbols, then the axes of the grid, then the variables of
 * loops, in this order; a missing one is decided by data. Nothing but predictions of time uses
 * it. */
typedef struct ManifestWork {
    WorkKind kind;
    int role, parent; /* parent: an earlier item, which contains it; -1: none */
    int of;           /* ELSE: its IF */
    int variable;     /* LOOP: index of its variable among the symbols; -1: none */
    Formula lo, hi;   /* LOOP: its bounds; IF: `lo` is not 0 where it holds */
    Formula times;    /* multiplies the amount; missing: nothing does */
    int parameter;    /* the tensor, -1: none */
    const char *pipe; /* WAIT, COPY_IN: of whose stage; otherwise NULL */
    int64_t amount;   /* GRID: instances that execute a tile */
    int64_t own;      /* COPY_IN: what the block requests; the rest arrives from its cluster */
    /* instructions of the copy engine or the matrix unit; STORE: elements that a thread stores at
     * once, where its address is a multiple of their size */
    int64_t pieces;
    bool bound;  /* LOOP, IF: a part may be left early, or iterations are filtered */
    bool varies; /* LOOP, GRID: a formula inside names its variable, or an axis */
    /* ISSUE: in a loop with matrix instructions, which other warps execute meanwhile */
    bool beside;
    int end; /* the next item that is not inside; see work_find_facts */
    Span span;
} ManifestWork;

/* The same as lists, for manifests with places for formulas (launch/common.h) whose loops do not
 * vary: how often something is executed, and what */
typedef struct WorkCount {
    int of;       /* an earlier count that this one multiplies; -1: `first` */
    int place;    /* of the value that it is multiplied by; -1: the blocks */
    double first; /* instances */
} WorkCount;
typedef struct WorkAmount {
    WorkKind kind;
    int role, count;
    int cost; /* of a byte: index; -1: none */
    double amount, own, pieces;
    bool beside;
} WorkAmount;
#define WORK_COUNTS_MOST 64
typedef struct WorkLists {
    VEC(WorkCount) counts; /* at most WORK_COUNTS_MOST */
    VEC(WorkAmount) amounts;
} WorkLists;

/* A sum of floating-point numbers, and in which order it adds */
typedef struct ManifestSum {
    const char *text;
    /* why the order depends on more than the extents of the sum; NULL: it does not */
    const char *why;
    bool
        threads; /* threads add, in an order that their layouts decide; otherwise the matrix unit */
    Span span;
} ManifestSum;

typedef struct ManifestAxis {
    const char *name;
    Formula extent; /* coordinates, in whole clusters */
} ManifestAxis;

typedef struct ManifestConstant {
    const char *name;
    const char *value; /* value as text */
    bool is_static;
} ManifestConstant;

typedef struct Manifest {
    const char *kernel;       /* the PTX entry */
    const char *target;       /* "sm_90a" */
    int ptx_major, ptx_minor; /* .version */
    uint64_t ptx_hash;        /* fnv1a of the text */
    const Source *source;     /* spans refer to it */
    Span head;                /* span of the kernel's head */

    VEC(ManifestSymbol) symbols;
    VEC(ManifestParameter) parameters;
    VEC(ManifestArgument) arguments;
    VEC(ManifestMap) maps;
    VEC(ManifestPrecondition) preconditions;
    VEC(ManifestConstant) constants;

    /* number of grid coordinates, each axis rounded up to whole clusters; a precondition proves
     * <= EXTENT_MOST */
    Formula tiles;
    /* blocks = max(blocks of a cluster, persistent ? min(tiles, resident blocks) : tiles) */
    bool persistent;
    bool dynamic;          /* persistent; its tiles are drawn from the counter */
    bool ordered;          /* does not wait for the grid before: a launch must not start early */
    int threads;           /* per block */
    uint32_t shared_bytes; /* dynamic shared memory per block */
    /* in blocks; resident blocks are counted in whole clusters */
    int cluster[3];
    /* per thread at launch, if roles change their registers by setmaxnreg: an assembler that
     * allocates another number has ignored setmaxnreg. 0: no role uses it */
    int registers;

    VEC(ManifestShared) shared;
    VEC(ManifestRole) roles;
    VEC(ManifestMark) marks;
    VEC(ManifestInline) inline_ptx;
    VEC(ManifestWait) waits;
    VEC(ManifestAxis) axes;
    VEC(ManifestWork) work;
    const WorkLists *lists;      /* of `work`; NULL: there are none */
    VEC(ManifestSum) sums;       /* none in a file of an earlier version */
    VEC(const char *) variables; /* of loops, by work */
    uint64_t staged_bytes;       /* of the stages of a block that copies fill */
    /* read from a file, by manifest_read: what is wrong with it, or with its PTX, is the data's
     * fault, not a bug in pipec */
    bool is_read;
    bool watchdog; /* the watchdog is compiled into the text, with its argument as the last one */
} Manifest;

/* Page-locked host memory (or emulated memory) that the watchdog's code reads and writes. A warp
 * whose wait exceeds the limit stores one record, 16 bytes at once, at records[warp of the
 * block]. */
typedef struct WatchdogRecord {
    uint32_t site; /* 1 + index in waits; 0: empty */
    /* index of the stage it waited for, times 2, plus the parity */
    uint32_t stage;
    uint32_t block;
    uint32_t rank; /* rank of the instance */
} WatchdogRecord;

typedef struct WatchdogArea {
    uint64_t limit_ns; /* limit of one wait in nanoseconds */
    uint64_t reserved;
    WatchdogRecord records[MAX_WARPS];
} WatchdogArea;

/* The format of the JSON: grows when a reader of the old one would go wrong. The lowest one that
 * has all is written: 2 has conditions of floating-point parameters, 3 extents that are solved. */
#define MANIFEST_FORMAT         1
#define MANIFEST_FORMAT_FLOAT   2
#define MANIFEST_FORMAT_SOLVED  3
#define MANIFEST_FORMAT_ORDERED 4

/* True if it compares floats */
bool formula_has_floats(const Formula *formula, const Manifest *manifest);
void manifest_find_compared(Manifest *manifest); /* sets `compared`, for all preconditions */
void work_find_facts(Manifest *manifest);        /* sets what predictions read of the work */
/* The manifest with the axes and variables of its work as further symbols, to print and read the
 * work's formulas */
Manifest manifest_of_work(Arena *arena, const Manifest *manifest);
/* infix, in Pipe's syntax */
void formula_print(const Formula *formula, const Manifest *manifest, Str *out);
void manifest_json(const Manifest *manifest, Str *out); /* docs/manifest.md describes the fields */
/* Reads such a text; manifest_json then prints it again, byte for byte. Its source has the places
 * of the original one, but not its text. NULL and P0920 if a field is missing or malformed, or if
 * the format is another one. */
Manifest *manifest_read(Arena *arena, const char *text, size_t length, Diags *diags);

#endif
