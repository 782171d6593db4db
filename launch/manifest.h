/* The manifest: all that a launcher needs beside the PTX text. Made by codegen/, read by the emulator, the driver
 * runtime, and (as JSON, docs/manifest.md) by launchers in other languages. Tensor maps travel as the fields to encode,
 * never as CUtensorMap. Sizes that depend on the launch are formulas over symbols. */
#ifndef PIPEC_MANIFEST_H
#define PIPEC_MANIFEST_H

#include "util/util.h"

#define MAX_RANK 5
#define MAX_WARPS 32

/* ---- formulas ---------------------------------------------------------------------------------------------------- */

/* A pure integer formula in postfix over the manifest's symbols, evaluated in 64 bits; overflow and a zero divisor are
 * errors, never values. Comparisons and logic give 0 or 1. `/` and `%` are C's; CEIL(a, b) is the least integer >= a/b. */
typedef enum FormulaOp {
    F_CONST,  /* push value */
    F_SYMBOL, /* push symbols[value] */
    F_NEG, F_NOT,
    F_ADD, F_SUB, F_MUL, F_DIV, F_MOD, F_CEIL, F_MIN, F_MAX,
    F_EQ, F_NE, F_LT, F_LE, F_AND, F_OR,
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
FormulaFault formula_eval(const Formula *formula, const int64_t *symbols, int64_t *out);

/* ---- what is passed ---------------------------------------------------------------------------------------------- */

/* A symbol: a named integer known at launch. Extents come from the shapes of tensors (equal names are equal extents)
 * or from NAME=value; integer scalar parameters are symbols too, so that ranges and grids may depend on them. */
typedef struct ManifestSymbol {
    const char *name;
    bool is_extent; /* else the value of the integer scalar parameter of this name */
} ManifestSymbol;

typedef enum ParameterKind { PARAMETER_TENSOR, PARAMETER_SCALAR } ParameterKind;
typedef enum ParameterMode { MODE_IN, MODE_OUT, MODE_INOUT } ParameterMode;

/* One of the kernel's parameters as the author wrote it, in order. */
typedef struct ManifestParameter {
    const char *name;
    ParameterKind kind;
    ParameterMode mode; /* tensors */
    Element type;
    int rank;                  /* tensors: 1 .. MAX_RANK; C order, the last axis is contiguous */
    Formula extents[MAX_RANK]; /* a symbol or a constant each */
    int symbol;                /* scalars of integer type: index into symbols, else -1 */
    uint32_t alignment;        /* tensors: bytes to which the base must be aligned */
    Span span;
} ManifestParameter;

/* One parameter of the PTX entry, in order. */
typedef enum ArgumentKind {
    ARGUMENT_TENSOR_MAP, /* index: maps[]; 128 bytes, aligned to 64 */
    ARGUMENT_POINTER,    /* index: parameters[] (a tensor); u64 */
    ARGUMENT_EXTENT,     /* index: symbols[]; u32 */
    ARGUMENT_SCALAR,     /* index: parameters[] (a scalar); its own type, 16-bit floats widened to f32, 8-bit integers to s32 */
    ARGUMENT_WATCHDOG    /* u64 device address of a WatchdogArea; always the last */
} ArgumentKind;

typedef struct ManifestArgument {
    ArgumentKind kind;
    int index;
} ManifestArgument;

/* The fields of a tiled tensor map, innermost dimension first, as cuTensorMapEncodeTiled takes them. */
typedef enum Swizzle { SWIZZLE_NONE, SWIZZLE_32, SWIZZLE_64, SWIZZLE_128 } Swizzle; /* CUtensorMapSwizzle's values */

typedef struct ManifestMap {
    int parameter;              /* the tensor */
    Element type;
    int rank;                   /* of the map: 1 .. 5, may differ from the tensor's (a re-view) */
    Formula extents[MAX_RANK];  /* in elements; where one is 0, map_evaluate says what is encoded */
    Formula strides[MAX_RANK];  /* in bytes, of dimensions 1 ..; [0] is unused */
    uint32_t box[MAX_RANK];     /* in elements, 1 .. 256 */
    Swizzle swizzle;
    bool stored;                /* stores go through it; else loads, never both: what is stored to an empty tensor must not be read */
} ManifestMap;

/* A tensor map in the numbers of a launch, innermost dimension first. The driver has no maps of tensors without elements. Where an
 * extent is 0, the map is one of EMPTY_BYTES bytes that the launcher owns: one element, extents of 1, strides of EMPTY_BYTES. Of
 * maps for loads they are zeros, at all coordinates, which nobody overwrites; of maps for stores nobody reads them. */
#define EMPTY_BYTES 16u /* a store through a map writes whole 16 bytes */

typedef struct MapShape {
    bool is_empty; /* the map is of the launcher's bytes */
    uint64_t extents[MAX_RANK];
    uint64_t strides[MAX_RANK]; /* [0]: of an element */
} MapShape;

FormulaFault map_evaluate(const ManifestMap *map, const int64_t *symbols, MapShape *out);

/* A launch precondition: must be nonzero, else the launch is refused with exit code 2. */
typedef struct ManifestPrecondition {
    Formula condition;
    const char *text;    /* the condition as a person reads it: "K * 2 % 16 == 0" */
    const char *reason;  /* why: "rows of `A` are copied by TMA, whose pitch is a multiple of 16 bytes" */
    const char *help;    /* the way out; may be NULL */
    Span span;           /* the place in the source that asks for it */
} ManifestPrecondition;

/* ---- names for the emulator, the watchdog and debuggers ---------------------------------------------------------- */

typedef enum SharedKind { SHARED_FULL, SHARED_EMPTY, SHARED_FIELD, SHARED_TILE, SHARED_SCRATCH } SharedKind;

/* A range of the block's shared memory. Stage s of a pipe's field lies at offset + s * stride, `bytes` long;
 * barrier s at offset + s * 8. Tiles of a role have stages == 1. */
typedef struct ManifestShared {
    SharedKind kind;
    const char *pipe;  /* name, or NULL */
    const char *field; /* name of the field or tile, or NULL */
    const char *reason; /* for --report: why it is this large, lies here, has this layout */
    uint32_t offset, bytes, stages, stride;
    uint32_t count;    /* barriers: the arrive count they are initialised with */
} ManifestShared;

typedef struct ManifestRole {
    const char *name;
    int first_warp, warps, instances; /* warps in all; instances * warps-an-instance == warps */
    int registers;                    /* setmaxnreg value, 0: none */
    Span span;
    int held;                         /* registers a thread that its register tiles take */
} ManifestRole;

/* What the PTX lines from `line` on (1-based, up to the next mark) belong to. Sorted by line. */
typedef struct ManifestMark {
    uint32_t line;
    Span span;
    int role;          /* index into roles, -1: the kernel's prologue */
    const char *pipe;  /* the pipe whose operation it is, or NULL */
    const char *what;  /* "waits for a full stage of `loaded`", "copies `X` into `s.x`", ... ; may be NULL */
} ManifestMark;

/* Lines of the PTX that an author has written, and the statement that holds them */
typedef struct ManifestByHand {
    uint32_t first, last;
    Span span;
} ManifestByHand;

/* A wait site: what the watchdog's record number means. */
typedef struct ManifestWait {
    int role;
    const char *pipe; /* NULL: a named barrier */
    bool full;        /* waits for a full stage (a consumer) or for an empty one (a producer) */
    Span span;
} ManifestWait;

typedef struct ManifestConstant {
    const char *name;
    const char *value; /* as text */
    bool is_static;
} ManifestConstant;

typedef struct Manifest {
    const char *kernel; /* the PTX entry */
    const char *target; /* "sm_90a" */
    int ptx_major, ptx_minor; /* .version */
    const Source *source; /* spans refer to it */
    Span head;            /* of the kernel */

    VEC(ManifestSymbol) symbols;
    VEC(ManifestParameter) parameters;
    VEC(ManifestArgument) arguments;
    VEC(ManifestMap) maps;
    VEC(ManifestPrecondition) preconditions;
    VEC(ManifestConstant) constants;

    Formula tiles;    /* number of grid coordinates, each axis rounded up to whole clusters; proved <= EXTENT_MOST by a precondition */
    bool persistent;  /* blocks = max(blocks of a cluster, persistent ? min(tiles, resident blocks) : tiles) */
    int threads;      /* a block */
    uint32_t shared_bytes; /* dynamic shared memory a block */
    int cluster[3];   /* blocks; resident blocks are counted in whole clusters */

    VEC(ManifestShared) shared;
    VEC(ManifestRole) roles;
    VEC(ManifestMark) marks;
    VEC(ManifestByHand) by_hand;
    VEC(ManifestWait) waits;
    bool watchdog;    /* the text has the watchdog compiled in, and the last argument */
} Manifest;

/* Page-locked host memory (or emulated memory) that the watchdog's code reads and writes.
 * A waiting warp whose patience ends stores one record, 16 bytes at once, at records[warp of the block]. */
typedef struct WatchdogRecord {
    uint32_t site;  /* 1 + index into waits; 0: nothing written */
    uint32_t stage; /* index of the stage waited for, times 2, plus the parity waited for */
    uint32_t block;
    uint32_t rank;  /* instance */
} WatchdogRecord;

typedef struct WatchdogArea {
    uint64_t limit_ns; /* how long a wait may last */
    uint64_t reserved;
    WatchdogRecord records[MAX_WARPS];
} WatchdogArea;

void formula_print(const Formula *formula, const Manifest *manifest, Str *out); /* infix, as Pipe would write it */
void manifest_json(const Manifest *manifest, Str *out); /* docs/manifest.md describes the fields */

#endif
