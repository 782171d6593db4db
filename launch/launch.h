/* launch: binds arguments and data to a kernel. Public header of the floor.
 *
 * Manifest + arguments (NAME=value, NAME=file.npy, fills) + arrays -> Launch, or diagnostics
 * with exit code 2. A Launch is complete: the emulator and the driver runtime need nothing else. */
#ifndef PIPEC_LAUNCH_H
#define PIPEC_LAUNCH_H

#include "launch/manifest.h"

/* A tensor's data on the host, C order. `data` is not in the arena: see launch_free. GUARD_BYTES
 * bytes before and after the data of every array are filled with GUARD_BYTE, so that stray
 * writes are found (launch_guards). */
#define GUARD_BYTES 4096u
#define GUARD_BYTE  0xA5u

typedef struct Array {
    Element type;
    int rank;
    int64_t extents[MAX_RANK];
    int64_t count; /* number of elements */
    size_t bytes;  /* count * element bytes */
    unsigned char *data;
    void *block;  /* the allocation: guard, data, guard */
    size_t shift; /* bytes from a page boundary to the data, there and on the device */
    /* NULL: `data` is what a kernel gets. Otherwise a kernel gets an image of it, in which the
     * elements have `strides`, in elements; the gaps and both ends are guards */
    struct ArrayImage *image;
} Array;

typedef struct ArrayImage {
    int64_t strides[MAX_RANK];
    unsigned char *data;
    size_t bytes;
    void *block; /* the allocation: guard, data, guard */
} ArrayImage;

/* A scalar argument; the parameter's type decides which member is used */
typedef struct Scalar {
    double number;   /* floats, and integers that a double holds */
    int64_t integer; /* integers */
} Scalar;

/* How a scalar is passed to the entry: "f32", "s32", "u32", "s64" or "u64". */
const char *scalar_passed(Element type);
size_t scalar_pack(Element type, const Scalar *scalar, unsigned char out[8]);
/* The value of its symbol; that of a float is of the value that the kernel gets */
int64_t scalar_symbol(Element type, const Scalar *scalar);
Scalar scalar_of_symbol(Element type, int64_t symbol); /* one with this symbol */

typedef struct Launch {
    const Manifest *manifest;
    const char *ptx; /* NUL-terminated */
    size_t ptx_length;
    const int64_t *symbols; /* values of manifest->symbols */
    /* one per parameter; unused for a scalar */
    Array *arrays;
    /* one per parameter; unused for a tensor */
    Scalar *scalars;
    int64_t tiles; /* value of manifest->tiles, >= 0 */
    /* limit of a wait in nanoseconds; used only if manifest->watchdog */
    uint64_t watchdog_ns;
} Launch;

/* ---- result of a run: the same for the emulator and the GPU ---------------------------------- */

typedef enum RunStatus {
    RUN_DONE,        /* ran to its end; the arrays hold the results */
    RUN_FINDING,     /* hang, fault, race, misuse: exit 1 */
    RUN_UNAVAILABLE, /* no GPU, wrong GPU, old driver, no memory: exit 2 */
    RUN_REJECTED,    /* the driver, ptxas or the PTX reader rejects our PTX: exit 3 */
    RUN_INCOMPLETE   /* an instruction that is not modelled, or the limit of instructions: exit 4 */
} RunStatus;

typedef struct RunResult {
    RunStatus status;
    const char *device; /* "NVIDIA H200", "emulator" */
    int64_t blocks;     /* number of launched blocks */
    /* blocks that fit the device at once, or that the emulator treats so */
    int resident;
    /* time of one launch: median of the timed ones on a GPU; wall clock on the emulator */
    double seconds;
    int timed;             /* number of launches in the median */
    double load_seconds;   /* time from text to loaded module */
    uint64_t instructions; /* emulator: warp instructions executed */
    /* emulator: bytes that copy engines brought into shared memory and out of it, and matrix
     * instructions of warpgroups */
    uint64_t copied_in, copied_out, matrices;
} RunResult;
/* Findings and refusals are reported to the Diags that the run gets. */

/* ---- arguments to a Launch ------------------------------------------------------------------- */

typedef enum FillKind {
    FILL_NORMAL,
    FILL_UNIFORM,
    FILL_IOTA,
    FILL_ZEROS,
    FILL_VALUE,
    FILL_ARRAY,
    FILL_FILE
} FillKind;

/* A number as it was given */
typedef struct Numeral {
    double number;
    int64_t integer;  /* the same exactly */
    bool is_integer;  /* of 64 bits with a sign */
    bool is_above;    /* an integer above these: the bits of a u64 */
    const char *text; /* as it was written; NULL: it was not */
} Numeral;

/* The contents of a tensor before the run. Element i depends only on the seed, the tensor's
 * position among the parameters and i.
 *   normal   mean 0, deviation 1; integers: 16 times that, rounded, saturated to the type's range
 *   uniform  floats: 0 <= x < 1; integers: 0 .. 99
 *   iota     the index in C order, modulo the count of integers from 0 that the type holds
 *            exactly: f32 2^24, f16 and tf32 2048, bf16 256, e4m3 16, e5m2 8, i8 128, u8 256,
 *            i32 2^31, u32 2^32, i64 and u64 2^63
 * Default: FILL_NORMAL for `in` and `inout`, poison for `out`. */
typedef struct Fill {
    FillKind kind;
    Numeral value;    /* FILL_VALUE */
    const char *file; /* FILL_FILE: .npy */
    /* FILL_ARRAY: computed by the reference floor from an `example` fill, one value per element */
    const double *values;
    const int64_t *integers; /* the same of integers, as their type stores them; else NULL */
    int64_t count;
} Fill;

typedef struct Argument {
    const char *name;
    enum { ARGUMENT_NUMBER, ARGUMENT_FILL } kind;
    Numeral value; /* extents and scalars */
    Fill fill;
    /* given by the file's `example`; a value from the user has precedence */
    bool from_example;
} Argument;

/* The argument of one parameter in a launch with device pointers; the parameter decides which
 * members are read. */
typedef struct DeviceArgument {
    uint64_t pointer;
    int64_t extents[MAX_RANK];
    int64_t strides[MAX_RANK]; /* in elements, if `strided`; otherwise C order without gaps */
    Scalar scalar;
    bool strided;
    uint8_t typed; /* 1 + Element of a tensor, if the caller tells it; E_COUNT + 1: none that is
                      known */
} DeviceArgument;

typedef struct LaunchOptions {
    uint64_t seed;
    uint64_t watchdog_ns;
    /* most bytes of host memory for all arrays; 0: the memory of the machine */
    uint64_t memory_limit;
    /* each tensor begins at the first address after a page boundary that is aligned as the kernel
     * requires, and no further */
    bool least_aligned;
    /* Tensors have gaps after the rows of each axis, where the kernel accepts that, of the least
     * size that it accepts; with an odd seed they are multiples of 16 bytes. With bit 1 of the
     * seed, outer axes are in reverse order. */
    bool strided;
    /* one per parameter, whose `strides` tensors have if `strided`; NULL: none are given */
    const DeviceArgument *given;
} LaunchOptions;

/* Parses one word of the command line: "M=4096", "a=2.5", "A=a.npy". False and a diagnostic if
 * it has none of these forms. */
bool argument_parse(Arena *arena, const char *word, Argument *out, Diags *diags);
/* A number in C's syntax in any locale, also inf and nan; false: the text is none */
bool text_double(const char *text, double *out);
/* Parses "A=iota" after --fill: normal, uniform, iota, zeros or a number */
bool argument_parse_fill(Arena *arena, const char *word, Argument *out, Diags *diags);

/* Binds arguments: checks that extents agree (those of .npy files too) and preconditions hold,
 * allocates and fills the arrays, poisons `out` arrays (NaN for floats, 0xA5 bytes for
 * integers). On failure NULL and diagnostics; nothing stays allocated. */
Launch *launch_prepare(Arena *arena, const Manifest *manifest, const char *ptx, size_t ptx_length,
                       const Argument *arguments, size_t count, const LaunchOptions *options,
                       Diags *diags);
void launch_free(Launch *launch); /* frees the arrays; the rest is in the arena */

/* Computes only the symbols, by the same rules and without arrays: an `example` fill depends on
 * them before launch_prepare. */
bool launch_symbols(Arena *arena, const Manifest *manifest, const Argument *arguments, size_t count,
                    int64_t *symbols, Diags *diags);

/* Preconditions and the number of tiles, for symbols that are known, strides too. diags NULL: does
 * not say what does not hold */
bool launch_check(const Manifest *manifest, const int64_t *symbols, int64_t *tiles, Diags *diags);

/* False: the caller tells another type of some tensor. diags NULL: does not say it */
bool launch_types(const Manifest *manifest, const DeviceArgument *arguments, Diags *diags);
/* Only the symbols and preconditions, for callers that bring device pointers (lib/): one argument
 * per parameter. */
bool launch_bind(const Manifest *manifest, const DeviceArgument *arguments, int64_t *symbols,
                 int64_t *tiles, Diags *diags);
/* Sets the extents of the tensors that are not given, from those that are, from given scalars and
 * from named extents (name and integer are read). `symbols` and `known`: room for all symbols of
 * the manifest. diags NULL: does not say why it returns false. */
bool launch_infer(const Manifest *manifest, DeviceArgument *arguments, const bool *given,
                  const Argument *named, size_t count, int64_t *symbols, bool *known, Diags *diags);

/* Sets the symbols of strides, from those of extents; arguments NULL: tensors have no gaps. If the
 * formula of an extent has no value, they are 0. */
void strides_set(const Manifest *manifest, const DeviceArgument *arguments, int64_t *symbols);
/* P0621: the kernel cannot run on these strides. P0622: a tensor that it writes shares memory with
 * another one. */
bool launch_strides(const Manifest *manifest, const DeviceArgument *arguments,
                    const int64_t *symbols, Diags *diags);

/* Type of an argument of the entry, other than a tensor map: "u64" */
const char *manifest_passed(const Manifest *manifest, const ManifestArgument *argument);
/* A stride is passed in 64 bits, otherwise in 32 */
bool stride_is_wide(const Manifest *manifest, const ManifestSymbol *stride);

/* A diagnostic at a place of the manifest's source; where `diags` speaks of another source, or
 * of none, a note names the place. */
Diag *manifest_diag(const Manifest *manifest, Diags *diags, Code code, Span span,
                    const char *format, ...) PRINTF_LIKE(5, 6);
/* The mark that a line of the PTX belongs to; NULL before the first mark. */
const ManifestMark *manifest_mark(const Manifest *manifest, uint32_t line);
/* The inline PTX that contains the line, or the last one before it; NULL: the text has none. */
const ManifestInline *manifest_inline(const Manifest *manifest, uint32_t line);
/* A copy of the text in which all inline PTX is blank: the part that pipec generated, which
 * every reader accepts. */
char *manifest_without_inline(Arena *arena, const Manifest *manifest, const char *ptx,
                              size_t length);
/* P0704: only inline PTX prevents the text from being read. */
void manifest_report_inline(const Manifest *manifest, Diags *diags, uint32_t line, const char *why);

/* ---- messages of the assembler --------------------------------------------------------------- */

/* One line of output of ptxas (with -v), or of the driver's assembler with its verbose log */
typedef struct AssemblerLine {
    enum {
        ASSEMBLER_NOTHING, /* nothing to report */
        ASSEMBLER_ERROR,
        ASSEMBLER_WARNING, /* quoted */
        ASSEMBLER_NUMBER,  /* "(C7510)": matrix instructions, setmaxnreg */
        ASSEMBLER_MEMORY   /* spills, a stack frame, other local memory */
    } kind;
    int number;                         /* 7510; 0: none */
    uint32_t line;                      /* of the PTX text, from 1; 0: no line is named */
    unsigned long frame, stores, loads; /* bytes */
} AssemblerLine;
/* Classifies one line of output */
AssemblerLine assembler_line(const char *text);
const char *assembler_words(const char *text); /* the text after "ptxas FILE, line 12; " */
const char *assembler_cause(int number);       /* from the row; NULL: there is no row */
/* Warnings for all lines except errors: P0810, P0811, P0812, and `warning` for quoted lines. */
void assembler_report(const Manifest *manifest, Diags *diags, Code warning, const char *words);
/* A diagnostic at the place of a PTX line, or without a place; a note names line, role and pipe. */
Diag *assembler_diag(const Manifest *manifest, Diags *diags, Code code, uint32_t line,
                     const char *message);
void assembler_note_line(const Manifest *manifest, Diags *diags, Diag *diag, uint32_t line);

/* True if the guard bands are unchanged. Otherwise reports the parameter, the side and the first
 * byte. */
bool launch_guards(const Launch *launch, Diags *diags);

/* ---- .npy ------------------------------------------------------------------------------------ */

/* Reads a file of the given element type, C or Fortran order, versions 1 to 3, little endian.
 * False and a diagnostic for a missing, unreadable, truncated, malformed or different file. The
 * array is in C order with guard bands. */
bool npy_read(Arena *arena, const char *file, Element type, Array *out, Diags *diags);
/* Only the header of a regular file: shape and dtype, "<f4"; false: it has none that a tensor can
 * have, which reading it reports */
bool npy_peek(Arena *arena, const char *file, int *rank, int64_t *shape, const char **descr);
bool npy_holds(const char *descr, Element type); /* elements of this type, or their bits */
/* Writes a temporary file, then renames it: no partial file is left. */
bool npy_write(Arena *arena, const char *file, const Array *array, Diags *diags);

/* A .npy file of any type with elements of up to 16 bytes; `data` is in C order and is the
 * caller's. */
#define NPY_MAX_RANK 32
typedef struct NpyData {
    const char *descr; /* as in the header: "<f4" */
    uint32_t element_bytes;
    int rank;
    int64_t shape[NPY_MAX_RANK];
    unsigned char *data;
    size_t bytes;
} NpyData;
/* Reads such a file into a new array of its bytes, with guard bands. */
bool npy_read_any(Arena *arena, const char *file, NpyData *out, Array *bytes, Diags *diags);
bool npy_write_any(Arena *arena, const char *file, const NpyData *npy, Diags *diags);
/* Product of the shape and the bytes of an element; false: it does not fit */
bool npy_size(NpyData *npy);

/* Reads a text file of at most SOURCE_MAX_BYTES; NULL and a diagnostic on failure. "-" is standard
 * input. */
const char *file_text(Arena *arena, const char *path, size_t *length, Diags *diags);
/* The same of an open file that has likely so many bytes. NULL: errno says why; EFBIG: it has more
 * than SOURCE_MAX_BYTES */
const char *file_bytes(Arena *arena, int file, size_t likely, size_t *length);

/* Arrays outside the arena. False: no memory. */
bool array_new(Array *array, Element type, int rank, const int64_t *extents);
/* Moves the data of a new array, which is not written yet, from the page boundary. */
#define SHIFT_MOST 16
void array_shift(Array *array, size_t bytes);
bool array_copy(Array *to, const Array *from); /* with its shift, without an image */
void array_free(Array *array);

/* ---- what a kernel gets ---------------------------------------------------------------------- */

/* The bytes of a tensor, with GUARD_BYTES before and after them: its data, or its image */
typedef struct ArrayMemory {
    unsigned char *data;
    size_t bytes;
} ArrayMemory;
ArrayMemory array_memory(const Array *array);
/* Gives the array an image with these strides, in elements. False: no memory. */
bool array_stride(Array *array, const int64_t *strides);
void image_strides(const Array *array, DeviceArgument *argument); /* of an array with an image */
/* Before and after a run: the data to the images, and back */
void launch_scatter(const Launch *launch);
void launch_gather(const Launch *launch);

/* ---- work ------------------------------------------------------------------------------------ */

/* What a byte takes that the copy engine moves: of the SM, and of L2, which all SMs share */
typedef struct ByteCost {
    double block, all;
} ByteCost;

/* Of all instances of one role */
typedef struct RoleWork {
    double amount[WORK_KINDS]; /* by kind, in its unit, of all blocks */
    double beside;             /* part of ISSUE in loops with matrix instructions */
} RoleWork;

typedef struct WorkTotals {
    double amount[WORK_KINDS]; /* of all roles */
    double beside;             /* as of RoleWork */
    double pieces[WORK_KINDS]; /* instructions of the copy engine and of the matrix unit */
    double own;                /* bytes of COPY_IN that a block requests for itself or others */
    ByteCost cost;             /* of what the copy engine moves, each by the cost of its tensor */
    /* some condition is decided by data, or a loop may end early: the amounts are at most these */
    bool bounded;
    bool unknown; /* data decide how often a loop is executed: it counts as one iteration; or a
                   * part is `unsafe` */
    bool sampled; /* too many tiles that differ: some of them stand for all */
} WorkTotals;

/* The number of symbols, axes and variables of work */
size_t work_symbols(const Manifest *manifest);
/* The values of manifest->symbols, with room for those of the axes and variables */
int64_t *work_values(Arena *arena, const Manifest *manifest, const int64_t *symbols);
/* Adds up the work with such values; work outside of loops over the grid counts once per block.
 * `costs`: of a byte of each parameter; NULL: no cost. `roles`: one for each of manifest->roles is
 * set. False: a formula overflows or divides by 0 */
bool work_total(const Manifest *manifest, int64_t *values, int64_t blocks, const ByteCost *costs,
                RoleWork *roles, WorkTotals *out);

/* ---- predicted time -------------------------------------------------------------------------- */

/* A row of machines.def, or one that `pipec calibrate` measured */
typedef struct MachineRow {
    const char *name, *device;
    int multiprocessors, megahertz, memory_rate, l2_rate, l2_size, latency, launch;
    bool calibrated; /* the model was compared with times of this machine */
} MachineRow;

/* What tells devices apart whose times differ: a part of a GPU has the same name */
typedef struct DeviceFacts {
    const char *name; /* "NVIDIA H200" */
    int multiprocessors;
    int64_t l2_bytes, memory_bytes;
} DeviceFacts;

typedef enum ModelTerm {
    MODEL_MATRIX, /* the matrix units */
    MODEL_COPY,   /* bytes from L2 to an SM and back */
    MODEL_SHARED, /* shared memory */
    MODEL_ISSUE,  /* instructions of all warps */
    MODEL_FLIGHT, /* copies that wait for their data, with all stages in flight */
    MODEL_ROLE,   /* one role after another tile */
    MODEL_L2,     /* bytes from L2 to all SMs and back */
    MODEL_MEMORY, /* the memory of the GPU */
    MODEL_STARTS, /* blocks that an SM starts, one after the other; no fact of the correction */
    MODEL_TERMS
} ModelTerm;

extern const char *const model_terms[MODEL_TERMS]; /* "matrix units" */

/* A row of facts.def */
typedef enum ModelFact {
#define FACT(name, what) FACT_##name,
#include "launch/facts.def"
#undef FACT
    MODEL_FACTS
} ModelFact;

extern const char *const model_facts[MODEL_FACTS]; /* what each is */

typedef struct Prediction {
    double seconds;            /* of one launch among others; 0: not known */
    double terms[MODEL_TERMS]; /* seconds that each would take alone */
    ModelTerm limit;           /* the longest */
    double overhead;           /* seconds of the launch, until the first and after the last copy */
    double modelled;           /* seconds without the correction */
    double correction;         /* model_correction of it, if it was asked for; otherwise 0 */
    int64_t tiles, blocks;     /* of the launch */
    const char *unknown;       /* why there is no prediction; NULL: there is one */
    bool joined;               /* the time is known; otherwise it is at least this */
    float facts[MODEL_FACTS];  /* if there is a prediction */
} Prediction;

/* The row of this name ("h200"); NULL: none */
const MachineRow *machine_by_name(const char *name);
/* The rows in order; NULL after the last */
const MachineRow *machine_at(size_t index);
/* P0925: there is no such row; names those that exist */
void machine_report_unknown(const char *name, Diags *diags);
/* The row of the device, otherwise the nearest, which is then not calibrated; with its
 * multiprocessors */
MachineRow machine_of_device(const DeviceFacts *device);
/* Predicts the time of a launch with these work_values. */
void model_predict(Arena *arena, const Manifest *manifest, int64_t *values, int64_t tiles,
                   const MachineRow *machine, Prediction *out);
/* The same in two steps, because the first is faster: most candidates of a choice cannot be the
 * best. model_bound sets the terms, and `seconds` to no more than the time; model_join the time. */
void model_bound(Arena *arena, const Manifest *manifest, int64_t *values, int64_t tiles,
                 const MachineRow *machine, Prediction *out);
void model_join(Prediction *prediction);
/* A choice corrects the candidates whose predicted time is at most so many times the least one.
 * bench/fit.py reads the number. */
#define MODEL_NEAR 1.22
/* Measured time / predicted time, as launches with such facts had it (trees.def); 1: no launch with
 * matrix instructions and such facts was measured. */
double model_correction(const Prediction *prediction);

#endif
