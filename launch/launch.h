/* launch: what is started, on which data. The door of the floor.
 *
 * Manifest + arguments (NAME=value, NAME=file.npy, fills) + arrays -> Launch, or diagnostics with exit code 2.
 * A Launch is complete: the emulator and the driver runtime take the same one and need nothing else. */
#ifndef PIPEC_LAUNCH_H
#define PIPEC_LAUNCH_H

#include "manifest.h"

/* A tensor's data on the host, C order. `data` is not of the arena: see launch_free. Guard bands of GUARD_BYTES lie
 * before and after the data of every array, filled with GUARD_BYTE, so that stray writes are found (launch_guards). */
#define GUARD_BYTES 4096u
#define GUARD_BYTE 0xA5u

typedef struct Array {
    Element type;
    int rank;
    int64_t extents[MAX_RANK];
    int64_t count;     /* elements */
    size_t bytes;      /* count * element bytes */
    unsigned char *data;
    void *block;       /* what was allocated: guard, data, guard */
} Array;

/* A scalar argument; which member counts follows from the parameter's type */
typedef struct Scalar {
    double number;   /* floats, and integers that a double holds */
    int64_t integer; /* integers */
} Scalar;

/* How a scalar is passed to the entry: "f32", "s32", "u32", "s64" or "u64"; its bytes, 4 or 8, as they lie in the parameter. */
const char *scalar_passed(Element type);
size_t scalar_pack(Element type, const Scalar *scalar, unsigned char out[8]);

typedef struct Launch {
    const Manifest *manifest;
    const char *ptx; /* ends with a NUL */
    size_t ptx_length;
    const int64_t *symbols; /* values of manifest->symbols */
    Array *arrays;          /* one a parameter; unused where the parameter is a scalar */
    Scalar *scalars;        /* one a parameter; unused where it is a tensor */
    int64_t tiles;          /* manifest->tiles evaluated, >= 0 */
    uint64_t watchdog_ns;   /* patience of a wait; counts only where manifest->watchdog */
} Launch;

/* ---- how a run ended: the same for the emulator and the GPU -------------------------------------------------------- */

typedef enum RunStatus {
    RUN_DONE,        /* ran to its end; arrays hold the results */
    RUN_FINDING,     /* hang, fault, race, misuse: exit 1 */
    RUN_UNAVAILABLE, /* no GPU, wrong GPU, old driver, no memory: exit 2 */
    RUN_REJECTED,    /* the driver, ptxas or the PTX reader rejects our PTX: exit 3 */
    RUN_INCOMPLETE   /* an instruction that is not modelled: exit 4 */
} RunStatus;

typedef struct RunResult {
    RunStatus status;
    const char *device;   /* "NVIDIA H200", "emulator" */
    int64_t blocks;       /* launched */
    int resident;         /* blocks that fit the device at once, or how many the emulator ran as if they did */
    double seconds;       /* one launch: median of the timed ones on a GPU; wall clock on the emulator */
    int timed;            /* launches behind `seconds` */
    double load_seconds;  /* text to loaded module */
    uint64_t instructions; /* emulator: warp instructions executed */
} RunResult;
/* Findings and refusals go to the Diags that the run is given. */

/* ---- arguments to a Launch ----------------------------------------------------------------------------------------- */

typedef enum FillKind { FILL_NORMAL, FILL_UNIFORM, FILL_IOTA, FILL_ZEROS, FILL_VALUE, FILL_ARRAY, FILL_FILE } FillKind;

/* What goes into a tensor before the run. Element i depends on the seed, the tensor's place among the parameters and i alone.
 *   normal   mean 0, deviation 1; integers: 16 times that, rounded, and kept within the type's range
 *   uniform  floats: 0 <= x < 1; integers: 0 .. 99
 *   iota     the index in C order, modulo the count of whole numbers from 0 on that the type holds exactly: f32 2^24, f16 and
 *            tf32 2048, bf16 256, e4m3 16, e5m2 8, i8 128, u8 256, i32 2^31, u32 2^32, i64 and u64 2^63
 * Default: FILL_NORMAL for `in` and `inout`, poison for `out`. */
typedef struct Fill {
    FillKind kind;
    double value;         /* FILL_VALUE */
    const char *file;     /* FILL_FILE: .npy */
    const double *values; /* FILL_ARRAY: computed by the reference floor from an `example` fill, count elements */
    int64_t count;
} Fill;

typedef struct Argument {
    const char *name;
    enum { ARGUMENT_NUMBER, ARGUMENT_FILL } kind;
    double number;       /* extents and scalars; integers also exact in `integer` */
    int64_t integer;
    bool is_integer;
    Fill fill;
    bool from_example;   /* given by the file's `example`, not by the user: a user's word wins over it */
} Argument;

typedef struct LaunchOptions {
    uint64_t seed;
    uint64_t watchdog_ns;
    uint64_t memory_limit; /* bytes of host memory that the arrays may take together; 0: what the machine has */
} LaunchOptions;

/* Parses one word of the command line: "M=4096", "a=2.5", "A=a.npy". False (with a diagnostic) when it is neither. */
bool argument_parse(Arena *arena, const char *word, Argument *out, Diags *diags);
/* "--fill A=iota": normal, uniform, iota, zeros or a number */
bool argument_parse_fill(Arena *arena, const char *word, Argument *out, Diags *diags);

/* Binds arguments: extents agree (those of .npy files too), preconditions hold, arrays are allocated and filled, `out`
 * arrays poisoned (NaN for floats, 0xA5 bytes for integers). NULL and diagnostics otherwise, nothing stays allocated. */
Launch *launch_prepare(Arena *arena, const Manifest *manifest, const char *ptx, size_t ptx_length,
                       const Argument *arguments, size_t count, const LaunchOptions *options, Diags *diags);
void launch_free(Launch *launch); /* the arrays' memory; the rest is the arena's */

/* Only the symbols, by the same rules and without arrays: an `example` fill is computed from them before launch_prepare. */
bool launch_symbols(Arena *arena, const Manifest *manifest, const Argument *arguments, size_t count, int64_t *symbols,
                    Diags *diags);

/* Preconditions and the number of tiles, for symbols that are known. */
bool launch_check(const Manifest *manifest, const int64_t *symbols, int64_t *tiles, Diags *diags);

/* Only the symbols and preconditions, for callers that bring device pointers (lib/): extents by parameter and axis. */
bool launch_bind(const Manifest *manifest, const int64_t (*extents)[MAX_RANK], const Scalar *scalars, int64_t *symbols,
                 int64_t *tiles, Diags *diags);

/* A diagnostic at a place of the manifest's source; where `diags` speaks of another source, or of none, a note names the place. */
Diag *manifest_diag(const Manifest *manifest, Diags *diags, Code code, Span span, const char *format, ...) PRINTF_LIKE(5, 6);
/* What a line of the PTX belongs to; NULL before the first mark. */
const ManifestMark *manifest_mark(const Manifest *manifest, uint32_t line);
/* The inline PTX that a line is of, or that stands before it; NULL: the text has none. */
const ManifestByHand *manifest_by_hand(const Manifest *manifest, uint32_t line);
/* The same text with blanks for all inline PTX: pipec's own part, which every reader takes. */
char *manifest_without_hand(Arena *arena, const Manifest *manifest, const char *ptx, size_t length);
/* P0704: nothing but inline PTX keeps the text from being read. */
void manifest_blame_hand(const Manifest *manifest, Diags *diags, uint32_t line, const char *why);

/* ---- what the assembler says --------------------------------------------------------------------------------------- */

/* One line of what ptxas (with -v), or the driver's assembler with its verbose log, prints */
typedef struct AssemblerLine {
    enum {
        ASSEMBLER_NOTHING, /* that concerns anybody */
        ASSEMBLER_ERROR,
        ASSEMBLER_WARNING, /* in its own words alone */
        ASSEMBLER_NUMBER,  /* "(C7510)": matrix instructions, setmaxnreg */
        ASSEMBLER_MEMORY   /* spills, a stack frame, other local memory */
    } says;
    int number;                         /* 7510; 0: none */
    uint32_t line;                      /* of the PTX text, from 1; 0: none is named */
    unsigned long frame, stores, loads; /* bytes */
} AssemblerLine;
AssemblerLine assembler_line(const char *text);
const char *assembler_words(const char *text); /* behind "ptxas FILE, line 12; " */
const char *assembler_cause(int number); /* in our words; NULL: there is no row */
/* Warnings for all lines but errors: P0810, P0811, P0812, and `warning` for what is said in its own words. */
void assembler_report(const Manifest *manifest, Diags *diags, Code warning, const char *words);
/* At the place of a PTX line, or without one; and a note that names line, role and pipe. */
Diag *assembler_diag(const Manifest *manifest, Diags *diags, Code code, uint32_t line, const char *message);
void assembler_note_line(const Manifest *manifest, Diags *diags, Diag *diag, uint32_t line);

/* Are the guard bands whole? A broken one is reported with the parameter, before or after, and the first byte. */
bool launch_guards(const Launch *launch, Diags *diags);

/* ---- .npy ---------------------------------------------------------------------------------------------------------- */

/* Reads a file of the wanted element type, C or Fortran order, versions 1 to 3, little endian. False and a diagnostic for
 * missing, unreadable, truncated, hostile or differing files. The array comes back in C order with guard bands. */
bool npy_read(Arena *arena, const char *file, Element type, Array *out, Diags *diags);
/* Writes beside the file, then renames: no partial file is left. */
bool npy_write(Arena *arena, const char *file, const Array *array, Diags *diags);

/* Arrays outside the arena. False: no memory. */
bool array_new(Array *array, Element type, int rank, const int64_t *extents);
bool array_copy(Array *to, const Array *from);
void array_free(Array *array);

#endif
