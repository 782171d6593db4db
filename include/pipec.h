/* pipec: compiles Pipe, a language for warp-specialised GPU kernels, from a C program; loads and
 * launches the result.
 *
 * Input is text; output is PTX text, a manifest and diagnostics (PipecProgram). Then use either
 *   - PipecKernel: load the program on a GPU and launch it with device pointers, in the device's
 *     primary context; or
 *   - PipecRun: run it on host data, on a GPU or on the built-in emulator, and compare the result
 *     with `ensures`.
 *
 * No function exits, prints, or keeps global state. A function that fails says so by its return
 * value, and its object holds the diagnostics of that call; functions of kernels hand them to the
 * caller. Functions that return an object return NULL only when memory runs out. Returned strings
 * and arrays belong to the object and live as long as it does, or until a call that is documented
 * to replace them. A program must outlive the kernels and runs made from it.
 *
 * Threads: different threads may use different objects at once. A kernel may be used by any number
 * of threads at once; another object by one thread at a time, but several threads may load kernels
 * of one program.
 *
 * Structures that the caller makes begin with their size, so that they can grow:
 *     PipecOptions options = {.size = sizeof options};
 * The other members are zeros, or are set. NULL options are all zeros. A size of 0 is refused,
 * and so are values in members that the library does not know (P0917). Link with -lpipec, or with
 * libpipec.a and -lm -ldl -lpthread. */
#ifndef PIPEC_H
#define PIPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIPEC_VERSION_MAJOR 0
#define PIPEC_VERSION_MINOR 2
#define PIPEC_VERSION_PATCH 0
#define PIPEC_VERSION       "0.2.0"

#if defined(__GNUC__)
#define PIPEC_API __attribute__((visibility("default")))
#else
#define PIPEC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define PIPEC_MAX_RANK 5
#define PIPEC_TEXT_MAX (16u << 20) /* most bytes of a source text */

/* Version of the running library, which may differ from that of this header */
PIPEC_API const char *pipec_version(void);

/* How a call ended; also the exit codes of the command line. If several apply, the order is
 * PIPEC_BUG, PIPEC_REFUSED, PIPEC_INCOMPLETE, PIPEC_UNUSABLE. */
typedef enum PipecStatus {
    PIPEC_FINE = 0, /* right; or there is no `ensures` to check, with a note that says so */
    /* the program is refused, its result is wrong, or the run found a hang, a fault or a stray
     * write */
    PIPEC_REFUSED = 1,
    /* wrong argument, file, data, launch precondition or machine, or no memory */
    PIPEC_UNUSABLE = 2,
    /* a bug in pipec; also PTX that the driver or ptxas rejects */
    PIPEC_BUG = 3,
    /* could not be decided, or needs something that this version does not model */
    PIPEC_INCOMPLETE = 4
} PipecStatus;

/* The worse of two statuses, in the order given at PipecStatus */
PIPEC_API PipecStatus pipec_worse(PipecStatus a, PipecStatus b);

/* ---- diagnostics ----------------------------------------------------------------------------- */

/* PIPEC_UNDECIDED: an incomplete verdict; the compiled program, if any, can be used, and its
 * status is PIPEC_INCOMPLETE, unless it is `accepted` (PipecOptions) */
typedef enum PipecSeverity {
    PIPEC_ERROR,
    PIPEC_WARNING,
    PIPEC_NOTE,
    PIPEC_UNDECIDED
} PipecSeverity;

/* A span of a file of the source (pipec_diagnostics_file): lines and columns count from 1, columns
 * in characters; lo and hi are byte offsets, hi exclusive. */
typedef struct PipecLabel { /* its layout is fixed */
    uint32_t line, column, end_line, end_column;
    uint32_t lo, hi;
    const char *text; /* may be empty */
} PipecLabel;

typedef struct PipecDiagnostic {
    const char *code; /* "P0102"; see pipec_explain */
    PipecSeverity severity;
    const char *message;
    /* the first is the primary label; none if the diagnostic is about data, a file or the
     * machine */
    const PipecLabel *labels;
    size_t label_count;
    const char *const *notes; /* why */
    size_t note_count;
    const char *const *helps; /* how to correct it */
    size_t help_count;
} PipecDiagnostic;

typedef struct PipecDiagnostics PipecDiagnostics;

/* Frees diagnostics that a function has handed over by a PipecDiagnostics **. NULL is allowed */
PIPEC_API void pipec_diagnostics_free(PipecDiagnostics *diagnostics);
/* Number of diagnostics; pipec_diagnostics_get returns one of them, sorted by place */
PIPEC_API size_t pipec_diagnostics_count(const PipecDiagnostics *diagnostics);
/* The file of a label of the diagnostic `index`, with its name in messages; the label's lines and
 * bytes are those of this file. NULL: there is no such label */
PIPEC_API const char *pipec_diagnostics_file(const PipecDiagnostics *diagnostics, size_t index,
                                             size_t label);
/* number of errors among them */
PIPEC_API size_t pipec_diagnostics_errors(const PipecDiagnostics *diagnostics);
PIPEC_API const PipecDiagnostic *pipec_diagnostics_get(const PipecDiagnostics *diagnostics,
                                                       size_t index);
/* formatted for a terminal */
PIPEC_API const char *pipec_diagnostics_text(const PipecDiagnostics *diagnostics);
/* the same, with ANSI colours */
PIPEC_API const char *pipec_diagnostics_coloured(const PipecDiagnostics *diagnostics);
/* one line */
PIPEC_API const char *pipec_diagnostics_json(const PipecDiagnostics *diagnostics);

/* SARIF 2.1.0: the diagnostics of any number of texts as one log, which is one line. */
typedef struct PipecSarif PipecSarif;
PIPEC_API PipecSarif *pipec_sarif_new(void);
PIPEC_API void pipec_sarif_free(PipecSarif *sarif); /* NULL is allowed */
/* Copies the diagnostics, which may be freed afterwards. False: memory ran out, and the log is
 * unusable. */
PIPEC_API bool pipec_sarif_add(PipecSarif *sarif, const PipecDiagnostics *diagnostics);
/* the log of all added diagnostics; NULL: memory ran out */
PIPEC_API const char *pipec_sarif_text(PipecSarif *sarif);

/* The page of a code (upper or lower case): wrong program, why, right program. NULL: there is no
 * such code. */
PIPEC_API const char *pipec_explain(const char *code);
/* All codes that have a page, in order; NULL after the last. `title` may be NULL. */
PIPEC_API const char *pipec_code(size_t index, const char **title);
/* The existing code that is most similar, or NULL */
PIPEC_API const char *pipec_code_near(const char *code);

/* The one of `names` that is most similar to `wanted`, or NULL */
PIPEC_API const char *pipec_near(const char *wanted, const char *const *names, size_t count);

/* ---- programs -------------------------------------------------------------------------------- */

/* one compilation of one text: its results or its errors */
typedef struct PipecProgram PipecProgram;

/* A named number: a static, an extent or a scalar. Its layout is fixed. */
typedef struct PipecValue {
    const char *name;
    int64_t integer; /* a u64 above INT64_MAX is given as text */
    double number;   /* read if `is_float` */
    bool is_float;
} PipecValue;

/* A file of a program: its name, and its text. Its layout is fixed. */
typedef struct PipecFile {
    const char *name;
    const char *text;
    size_t length;
} PipecFile;

typedef struct PipecOptions {
    size_t size; /* sizeof(PipecOptions) */
    /* name of the text in messages and debug lines; NULL: "<text>", or the file's path */
    const char *name;
    const char *kernel;        /* kernel to compile; NULL: the only one of the file */
    const char *const *values; /* "NAME=VALUE" for statics */
    size_t value_count;
    const PipecValue *numbers; /* the same without text; both may be given */
    size_t number_count;
    /* codes that become errors: incomplete verdicts, warnings and notes, or "incomplete",
     * "warnings" or "notes"; also in runs and loads */
    const char *const *denied;
    size_t denied_count;
    /* values may also be meant for a launch (pipec_run_new): names that are no static are
     * ignored. Of several variants the first is compiled that has the given statics; then
     * pipec_program_variant finds the one for the data */
    bool launch_values;
    /* no PTX and no manifest. With kernel == NULL all kernels of the file are checked, each with
     * every combination of the sets of the statics that `values` leaves open */
    bool check_only;
    /* most combinations that a check tries; 0: 4096 */
    size_t combinations;
    /* most steps, of some 10 ns, for check and generation, above which the verdict is
     * PIPEC_INCOMPLETE; 0: the default for a text of its length */
    uint64_t work;
    /* measure the time of each part of the compilation, for pipec_program_times */
    bool times;
    /* compile a watchdog into the waits: a hang ends with a message */
    bool watchdog;
    const char *variant; /* of the kernel; NULL: its only one, or all with check_only */
    /* launches (pipec_kernel_launch) use this program, with the values of the text for statics that
     * were not given; otherwise the variant and values that are fastest for their arguments */
    bool untuned;
    /* of several variants, if none is named, the first is compiled that has the given statics;
     * launches take any of them, unless `untuned`. Implied by launch_values */
    bool any_variant;
    /* most combinations of variant and statics that launches of a kernel keep loaded on a device;
     * 0:
     * 40. Those that were not used for longest are unloaded, except the program itself, and those
     * in captured graphs, which do not count */
    size_t loaded_most;
    /* seconds that a launch waits until its choice is loaded, if another one that can run is
     * loaded: then it takes that one, and later launches the choice. So equal launches may give
     * other bits. 0: a launch waits as long as the load takes, and equal launches always run the
     * same kernel */
    double patience;
    /* a file that `pipec choose --save` has written: launches with the extents that are in it run
     * what it says, or are refused (P0933). A file that is damaged, or of another text, is an error
     * (P0931, P0932). NULL: none */
    const char *choices;
    /* the order of each sum depends on its own extents only, so that a row of a result has the same
     * bits for any number of rows (docs/choice.md): launches choose among such variants, which all
     * add in one order, or are refused (P0934) */
    bool invariant;
    /* codes of incomplete verdicts, or "incomplete", that become warnings: the program is used
     * without the proof. Errors are never accepted, nor is a check that ended early */
    const char *const *accepted;
    size_t accepted_count;
    /* of a text, or of standard input: the folder that its includes are relative to. NULL: an
     * include is refused (P0044), unless `files` are given. A file has its own folder */
    const char *folder;
    /* the files that can be included, by their names relative to the folder of the text:
     * "lib/sums.pipe"; then nothing is read from a disk. NULL: those of the folder */
    const PipecFile *files;
    size_t file_count;
    /* "sm_90a": compile for this target. Of a kernel with variants those that name it are taken; if
     * none does, or the kernel does not, it replaces the targets of the kernel. NULL: all that the
     * kernel names are checked; otherwise the first one is compiled, and launches, choices and
     * tuning for a device take the best one of the kernel for it: the newest that it can run, of
     * one generation that of the exact architecture */
    const char *target;
} PipecOptions;

/* Compiles a text of `length` bytes. Errors are in its diagnostics. NULL: memory ran out. */
PIPEC_API PipecProgram *pipec_compile(const char *text, size_t length, const PipecOptions *options);
/* Reads the text from a file; "-" is standard input, "kernels:linear" a kernel that is shipped. */
PIPEC_API PipecProgram *pipec_compile_file(const char *path, const PipecOptions *options);
/* A program without its source: the manifest that `pipec build` writes, and its PTX or cubin
 * (ELF), of the same build; P0923: they are of two builds, or the image was changed. It can be
 * loaded and described, and with PTX also run on host data, with all arguments given and no
 * verdict; what needs the source is refused or NULL: tuned choices, claims, the report. Of the
 * options, `name` and `denied` are read. */
PIPEC_API PipecProgram *pipec_program_from(const char *manifest, size_t manifest_length,
                                           const void *image, size_t image_length,
                                           const PipecOptions *options);
PIPEC_API void pipec_program_free(PipecProgram *program); /* NULL is allowed */

/* Sizes of an extent: first, first + 1, .. last. Its layout is fixed. */
typedef struct PipecSizes {
    const char *name;
    int64_t first, last;
} PipecSizes;
typedef struct PipecBundleOptions {
    size_t size;        /* sizeof(PipecBundleOptions) */
    const char *folder; /* made if it is not there */
    const PipecSizes
        *sizes; /* of all extents; several rows of one name add up; at most 10^6 in all */
    size_t size_count;
    const char *const *machines; /* of the model: "h200" */
    size_t machine_count;
    bool cubins; /* assemble them with ptxas; otherwise PTX is written */
} PipecBundleOptions;
/* Writes what launches with these sizes can choose on these machines, for contiguous tensors that
 * are aligned, with one index. *candidates: their number; may be NULL. Errors are in the
 * diagnostics of the program. */
PIPEC_API PipecStatus pipec_program_bundle(PipecProgram *program, const PipecBundleOptions *options,
                                           size_t *candidates);
/* A program from such a folder, as pipec_program_from: launches choose among what is in it. Sizes
 * that it was not made for are a warning of the first such launch (P0937). */
PIPEC_API PipecProgram *pipec_program_from_bundle(const char *folder, const PipecOptions *options);

/* The files that a program was compiled from: the first with its name in messages, then those that
 * it includes, by their names relative to the folder of the first one: PipecOptions.files of the
 * same program. False after the last, and for a program without its source. */
PIPEC_API bool pipec_program_file(const PipecProgram *program, size_t index, PipecFile *file);

/* The files that shipped kernels include; false after the last */
PIPEC_API bool pipec_shipped_file(size_t index, PipecFile *file);
/* Names of the kernels that are shipped, in order: "linear" is compiled by "kernels:linear". *text
 * is its source; `text` may be NULL. NULL after the last. */
PIPEC_API const char *pipec_shipped(size_t index, const char **text);

/* PIPEC_FINE, or the worst status of its diagnostics */
PIPEC_API PipecStatus pipec_program_status(const PipecProgram *program);
/* The diagnostics of the compilation */
PIPEC_API const PipecDiagnostics *pipec_program_diagnostics(const PipecProgram *program);

/* Names of the kernels of the text; NULL after the last. A kernel with variants has one for each:
 * "gemm:swapped" */
PIPEC_API const char *pipec_program_kernel(const PipecProgram *program, size_t index);
/* The one of them that was compiled; NULL: several were checked, or none was found */
PIPEC_API const char *pipec_program_compiled(const PipecProgram *program);
/* True if the "NAME=VALUE" names a static of this program */
PIPEC_API bool pipec_program_is_static(const PipecProgram *program, const char *value);

/* What the caller passes: one per parameter of the kernel, in order. False after the last, without
 * a manifest (after errors, or check_only), and if parameter->size is 0; so in the next function.
 */
typedef enum PipecMode { PIPEC_IN, PIPEC_OUT, PIPEC_INOUT } PipecMode;
typedef struct PipecParameter {
    size_t size;             /* sizeof(PipecParameter) */
    const char *name, *type; /* "A", "bf16" */
    size_t element_bytes;
    bool is_tensor;
    PipecMode mode;                      /* of a tensor; a scalar is PIPEC_IN */
    int rank;                            /* of a tensor; a scalar has 0 */
    const char *extents[PIPEC_MAX_RANK]; /* formulas in Pipe's syntax: "M", "2 * N", "64" */
    size_t alignment;                    /* bytes, of a tensor's address; at least 1 */
} PipecParameter;
PIPEC_API bool pipec_program_parameter(const PipecProgram *program, size_t index,
                                       PipecParameter *parameter);
/* The statics, with the values that the program was compiled with */
typedef struct PipecStatic {
    size_t size; /* sizeof(PipecStatic) */
    const char *name;
    PipecValue value;
    const int64_t *choices; /* its set, in order; none: choice_count is 0 */
    size_t choice_count;
    /* the same as texts: "128", "true", "bf16" */
    const char *text;
    const char *const *choice_texts;
    bool is_type; /* it is an element type; the numbers mean nothing then */
} PipecStatic;
PIPEC_API bool pipec_program_static(const PipecProgram *program, size_t index, PipecStatic *out);
/* What every launch must satisfy, in Pipe's syntax; NULL after the last. *reason: why; `reason` may
 * be NULL. */
PIPEC_API const char *pipec_program_precondition(const PipecProgram *program, size_t index,
                                                 const char **reason);
/* The claims of `ensures`, as written in the source but on one line each; NULL after the last */
PIPEC_API const char *pipec_program_ensures(const PipecProgram *program, size_t index);
/* "kernel axpy(X: f32[N], inout Y: f32[N], a: f32) for sm_90a"; NULL without a manifest */
PIPEC_API const char *pipec_program_head(const PipecProgram *program);

/* The targets of which a launch takes the best one for its device; of a kernel with one, and of a
 * program that the caller gave a target for, only that. NULL after the last, and without a
 * manifest. The program itself, its PTX and its manifest are for the first one that the kernel, or
 * the variant that was compiled, names. */
PIPEC_API const char *pipec_program_target(const PipecProgram *program, size_t index);
/* The best of them for device `device` (-1: the first that can run one); NULL: no device can */
PIPEC_API const char *pipec_program_target_on(PipecProgram *program, int device);

/* NUL-terminated PTX text; length may be NULL. NULL after errors, and for a program from a cubin.
 */
PIPEC_API const char *pipec_program_ptx(const PipecProgram *program, size_t *length);
/* JSON: the data that a launcher needs in addition to the PTX (docs/manifest.md). NULL after
 * errors. */
PIPEC_API const char *pipec_program_manifest(PipecProgram *program);
/* What was derived, and why: barriers, counts, bytes, layouts, registers, shared memory. NULL
 * after errors. */
PIPEC_API const char *pipec_program_report(PipecProgram *program);

/* Number of runs, CPU time and steps of the meter for each part of the compilation, one line
 * each. NULL if `times` was not set. */
PIPEC_API const char *pipec_program_times(const PipecProgram *program);

/* The printable forms of a compilation, one per step, in order; NULL after the last */
typedef struct PipecForm {
    const char *name; /* "tokens", "ast", "prog" .. "ptx" */
    const char *what; /* one line */
    /* not available from a program that was compiled with check_only */
    bool generated;
} PipecForm;
PIPEC_API const PipecForm *pipec_form(size_t index);
/* NULL if there is no such form, or if errors ended the compilation before it; the form of a
 * check pass is available even if that pass or a later one refuses the kernel */
PIPEC_API const char *pipec_program_emit(PipecProgram *program, const char *form);

/* Assembles the PTX with ptxas, found as docs/cache.md says, into a .cubin file; a temporary file
 * is renamed at the end. Messages of ptxas become diagnostics of the program, at the lines of its
 * source. */
PIPEC_API PipecStatus pipec_program_assemble(PipecProgram *program, const char *cubin_path);

/* ---- kernels on a GPU: your pointers, your stream -------------------------------------------- */

/* a program loaded on a device, in its primary context */
typedef struct PipecKernel PipecKernel;

/* Functions of kernels hand their diagnostics to the caller: *diagnostics is NULL if there are
 * none; otherwise pipec_diagnostics_free frees them. `diagnostics` may be NULL. */

/* Loads on device `device`, -1: the first capable one. *kernel is NULL unless the status is
 * PIPEC_FINE; then there may be warnings. The same program and device give the same kernel; each
 * load needs a pipec_kernel_free. A thread may load while a stream is captured. */
PIPEC_API PipecStatus pipec_kernel_load(PipecProgram *program, int device, PipecKernel **kernel,
                                        PipecDiagnostics **diagnostics);
/* The last call for a kernel unloads it; the driver waits for its launches. NULL is allowed. A
 * thread may free while a stream is captured. */
PIPEC_API void pipec_kernel_free(PipecKernel *kernel);

typedef struct PipecKernelInfo {
    size_t size;        /* sizeof(PipecKernelInfo) */
    const char *device; /* "NVIDIA H200" */
    int ordinal;        /* of the device */
    int multiprocessors;
    int blocks_per_multiprocessor; /* that fit at once */
    int registers;                 /* of a thread, when the kernel begins */
    double load_seconds;           /* from the program to the loaded kernel */
    /* "the driver": it assembled the PTX, or had it in its cache; "ptxas, cached in FILE", "ptxas":
     * from its cubin (docs/cache.md); "cubin": that of pipec_program_from */
    const char *loaded_by;
    /* combinations of variant and statics that are loaded now, the kernel itself among them; those
     * of them that were captured into graphs, which stay; and most of the others */
    size_t variants_loaded, variants_captured, variants_most;
    const char *target; /* that was taken for the device: "sm_90a" */
} PipecKernelInfo;
/* False: info->size is 0 */
PIPEC_API bool pipec_kernel_info(const PipecKernel *kernel, PipecKernelInfo *info);

/* One per parameter of the kernel, in order. The parameter decides which members are read. */
typedef struct PipecArgument {
    uint64_t pointer;                /* a tensor: its device address; ignored without elements */
    int64_t extents[PIPEC_MAX_RANK]; /* a tensor: elements along each axis */
    int64_t strides[PIPEC_MAX_RANK]; /* in elements, if `strided`; of the last axis: 1 */
    double number;                   /* a scalar of a float type */
    int64_t integer;                 /* a scalar of an integer type; the bits of a u64 */
    /* false: C order without gaps. True: as `strides` says: rows may have gaps, and the axes before
     * the last any order in memory; P0621 if the kernel cannot run on them. The stride of an axis
     * with less than two elements does not matter. */
    bool strided;
    /* a tensor: the type of its elements, "bf16"; NULL: the one that the program has */
    const char *type;
} PipecArgument;

typedef struct PipecLaunch {
    size_t size;          /* sizeof(PipecLaunch) */
    size_t argument_size; /* sizeof(PipecArgument) */
    const PipecArgument *arguments;
    size_t count;
    void *stream; /* a CUstream; NULL: the default stream */
    /* a persistent grid has no more blocks than fill this many multiprocessors; 0: all; refused for
     * other grids */
    int multiprocessors;
    /* may start before the kernel ahead of it in the stream has ended, and waits itself until that
     * has ended (programmatic launch). A launch that was chosen among variants and is predicted to
     * take less than 15 us, 7 us if it leaves some multiprocessors free, does so anyway. */
    bool programmatic;
    /* not 0: a short launch does not start early either, unless `programmatic` is set */
    int ordered;
} PipecLaunch;

/* The program for the tensors of a call: an element type or an extent that is a static without a
 * given value is that of the tensor. *found: `program` itself, or one that is compiled when such
 * tensors come first, and lives as long as `program`. `given`: which of the arguments are known;
 * NULL: all. Launches (pipec_kernel_launch) do this themselves. Several threads may call it. */
PIPEC_API PipecStatus pipec_program_for(PipecProgram *program, const PipecArgument *arguments,
                                        size_t argument_size, size_t count, const bool *given,
                                        PipecProgram **found, PipecDiagnostics **diagnostics);
/* Statics that tensors of a call decide, as above, one for each place: its name, and in *parameter
 * and *axis the tensor and the axis whose extent it is, or -1: the type of its elements. NULL after
 * the last. `parameter` and `axis` may be NULL. */
PIPEC_API const char *pipec_program_decided(const PipecProgram *program, size_t index,
                                            size_t *parameter, int *axis);
/* Sets the extents of the tensors that are not `given` (one per argument: outputs and workspaces
 * that the caller is about to allocate), from the extents of the given ones, from given integer
 * scalars, and from `extents`, integers by name. An extent that nothing determines is an error
 * (P0603). Reads and writes `count` arguments of argument_size bytes, one per parameter. */
PIPEC_API PipecStatus pipec_program_infer(const PipecProgram *program, PipecArgument *arguments,
                                          size_t argument_size, size_t count, const bool *given,
                                          const PipecValue *extents, size_t extent_count,
                                          PipecDiagnostics **diagnostics);

/* The extents of a launch with these arguments, by name, as PipecRunOptions takes them: also those
 * that a launch solves for, such as B of `C: i32[B + 1]`. Writes at most `most` of them and returns
 * how many there are. `arguments` NULL: only the names; those of no launch (P0604): 0. */
PIPEC_API size_t pipec_program_extents(const PipecProgram *program, const PipecArgument *arguments,
                                       size_t argument_size, size_t count, PipecValue *extents,
                                       size_t most);

/* Checks extents, strides and preconditions, then launches without waiting for the end. Makes the
 * primary context of the kernel's device current for the launch, if another one is. Can be
 * captured into a graph. Repeated launches with the same tensors only pass the arguments on, and
 * allocate nothing. A tensor that the kernel writes must not share memory with another one (P0622):
 * what pipec has proved assumes that.
 *
 * `grid dynamic`: the kernel has a counter for each stream and one for each launch that is captured
 * into a graph, so launches on several streams, early starts (programmatic launch) and graphs may
 * overlap. One case is not covered: two executable graphs of the same capture, or two copies of it
 * in one graph, share a counter and must not run at the same time; capture the launch once for
 * each.
 *
 * A kernel may be freed before graphs that have captured its launches: its code then stays on the
 * device. */
PIPEC_API PipecStatus pipec_kernel_launch(PipecKernel *kernel, const PipecLaunch *launch,
                                          PipecDiagnostics **diagnostics);

/* Chooses, compiles and loads what launches of some shapes will use */
typedef struct PipecPrepareOptions {
    size_t size; /* sizeof(PipecPrepareOptions) */
    /* values of all extents, of scalars, and of statics that tensors decide: "M=512 K=64 T=f16".
     * Tensors are contiguous and aligned */
    const struct PipecRunOptions *shapes;
    size_t shape_size; /* sizeof(PipecRunOptions) */
    size_t shape_count;
    int threads; /* at most 8; 0: one for each processor */
    /* NULL, or called by the thread of the caller when another shape is ready; false: the shapes
     * that were not begun are left out */
    bool (*progress)(void *data, size_t done, size_t of);
    void *progress_data;
} PipecPrepareOptions;
/* Ends with the first shape that a launch would refuse. A warning says if not all variants can stay
 * loaded (P0930). */
PIPEC_API PipecStatus pipec_kernel_prepare(PipecKernel *kernel, const PipecPrepareOptions *options,
                                           PipecDiagnostics **diagnostics);

/* ---- runs on host data ----------------------------------------------------------------------- */

/* bind arguments, allocate and fill arrays; then run; then verify */
typedef struct PipecRun PipecRun;

typedef struct PipecRunOptions {
    size_t size; /* sizeof(PipecRunOptions) */
    /* "N=4096", "a=2.5", "A=a.npy"; values of statics are ignored */
    const char *const *values;
    size_t value_count;
    const PipecValue *numbers; /* extents and scalars without text; both may be given */
    size_t number_count;
    /* "A=normal", uniform, iota, zeros or a number; default: as in `example`, otherwise normal */
    const char *const *fills;
    size_t fill_count;
    uint64_t seed;
    /* limit of one wait in seconds, if the program was compiled with the watchdog; 0: 10 */
    double watchdog_seconds;
    /* Each tensor begins at an address that is aligned as the kernel requires, and no further, as
     * a part of a larger tensor can be. Otherwise it begins at a page boundary. */
    bool least_aligned;
    /* Tensors have gaps after the rows of each axis, as views of larger tensors have, where the
     * kernel accepts that. Stray writes to the gaps are found. */
    bool strided;
    /* NULL, or an argument for each parameter, for tensors whose elements the caller copies into
     * the arrays: the kernel gets them with the strides of those that are `strided`, and the run is
     * refused, as a launch would be, if it cannot run on these (P0621). Nothing else of them is
     * read. */
    const PipecArgument *arguments;
    size_t argument_size, argument_count;
} PipecRunOptions;

typedef enum PipecWhere {
    /* the GPU if there is a capable one, otherwise the emulator */
    PIPEC_ON_ANY,
    PIPEC_ON_GPU,
    PIPEC_ON_EMULATOR
} PipecWhere;

/* Progress of a run on the emulator. `part` is an estimate, 0 to 1, from the blocks that have
 * ended, before the first from the results that were written. */
typedef struct PipecProgress {
    double part; /* over all schedules */
    int schedule, schedules;
    uint64_t instructions; /* warp instructions executed in this schedule */
} PipecProgress;

typedef struct PipecExecuteOptions {
    size_t size; /* sizeof(PipecExecuteOptions) */
    PipecWhere where;
    int device; /* 1 + ordinal of the GPU; 0: the first capable one */
    int timed;  /* launches to time after the first; 0: time the first */
    /* NULL, or called every few milliseconds while the emulator runs; false ends the run as
     * PIPEC_INCOMPLETE (P0760) */
    bool (*progress)(void *data, const PipecProgress *progress);
    void *progress_data;
    /* Number of schedules of the emulator (which warp runs, when asynchronous work is done,
     * which waits end early), each from the same data: seeds `schedule`, `schedule` + 1, ..; 0
     * is the plain order. The run ends with the first finding, or with the first schedule whose
     * result differs from the first one's, and names its seed; otherwise it returns the results
     * of the first schedule. A positive number (0: one), or a `schedule`, needs the emulator:
     * otherwise PIPEC_UNUSABLE. */
    int schedules;
    uint64_t schedule;
    /* file with findings of the emulator that are not reported (docs/emulator.md); NULL: none */
    const char *suppressions;
    /* the emulator does not look for races between accesses to memory (P0751, P0752) */
    bool no_races;
} PipecExecuteOptions;

typedef struct PipecArray {
    size_t size;             /* sizeof(PipecArray) */
    const char *name, *type; /* "Y", "bf16" */
    int rank;
    int64_t extents[PIPEC_MAX_RANK];
    size_t bytes;
    void *data; /* C order; may be written before pipec_run_execute */
} PipecArray;

typedef struct PipecRunInfo {
    const char *device; /* "NVIDIA H200", "emulator" */
    /* PIPEC_ON_ANY used the emulator: "no GPU" on a machine without one, "no GPU: " and why if
     * none can be used; otherwise NULL */
    const char *no_gpu;
    bool on_gpu;
    int64_t blocks; /* number of launched blocks */
    int64_t tiles;  /* coordinates of the grid */
    /* time of one launch; the median if several were timed; emulator: wall clock */
    double seconds;
    /* number of launches in the median */
    int timed;
    uint64_t bytes;        /* of the tensors read plus those written, each once */
    uint64_t instructions; /* emulator: warp instructions executed, on the first schedule */
    /* emulator: number of schedules that were run and agree */
    int schedules;
} PipecRunInfo;

/* The time in seconds that the model expects of a launch on the GPU that ran, and in *limit what
 * takes longest, or why it expects nothing; 0: it knows none, or no GPU ran. `limit` may be NULL */
PIPEC_API double pipec_run_predicted(const PipecRun *run, const char **limit);

typedef enum PipecVerdict { PIPEC_RIGHT, PIPEC_WRONG, PIPEC_NOT_CHECKED } PipecVerdict;

/* Binds the arguments of a run, allocates and fills its arrays. Errors are in its status and
 * diagnostics. NULL: memory ran out. */
PIPEC_API PipecRun *pipec_run_new(PipecProgram *program, const PipecRunOptions *options);
/* NULL is allowed */
PIPEC_API void pipec_run_free(PipecRun *run);
/* the worst status of all calls so far, not including the program's own */
PIPEC_API PipecStatus pipec_run_status(const PipecRun *run);
PIPEC_API const PipecDiagnostics *pipec_run_diagnostics(const PipecRun *run); /* of the last call */

/* Arrays in the order of the parameters; false after the last, and if array->size is 0 */
PIPEC_API bool pipec_run_array(const PipecRun *run, size_t index, PipecArray *array);
PIPEC_API bool pipec_run_array_named(const PipecRun *run, const char *name, PipecArray *array);
/* "X: f32[1000003], a = 2.5": parameters with their extents and values */
PIPEC_API const char *pipec_run_arguments(PipecRun *run);

/* Runs once; the arrays then hold the results. */
PIPEC_API PipecStatus pipec_run_execute(PipecRun *run, const PipecExecuteOptions *options);
PIPEC_API const PipecRunInfo *pipec_run_info(const PipecRun *run); /* of the last execution */

/* Compares the arrays with `ensures` and looks for stray and missing writes. PIPEC_WRONG adds
 * diagnostics. PIPEC_NOT_CHECKED: there is no `ensures`; or no element of a claim was checked, then
 * the status of the run is PIPEC_INCOMPLETE, and a diagnostic says why. */
PIPEC_API PipecVerdict pipec_run_verify(PipecRun *run);

typedef struct PipecVerifyOptions {
    size_t size; /* sizeof(PipecVerifyOptions) */
    /* NULL, or called every few milliseconds with the part of the comparison that is done, an
     * estimate, and no schedules; false ends it: PIPEC_NOT_CHECKED, and the status of the run is
     * PIPEC_INCOMPLETE */
    bool (*progress)(void *data, const PipecProgress *progress);
    void *progress_data;
} PipecVerifyOptions;
/* The same; PIPEC_UNUSABLE is the status of the run if the options cannot be read. */
PIPEC_API PipecVerdict pipec_run_verify_with(PipecRun *run, const PipecVerifyOptions *options);
PIPEC_API const char *pipec_run_verdict(PipecRun *run); /* one line, after pipec_run_verify */
/* Compares two runs: bit for bit, or within twice the tolerance of `ensures` if approximate
 * instructions are used. Differences become diagnostics of `run`; *text is one line that names
 * the kind of comparison. */
PIPEC_API PipecStatus pipec_run_compare(PipecRun *run, const PipecRun *other, const char **text);

/* Writes an array as .npy, by way of a temporary file that is renamed. `word` is
 * "NAME=FILE.npy". */
PIPEC_API PipecStatus pipec_run_save(PipecRun *run, const char *word);
/* Checks that NAME of "NAME=FILE.npy" is a tensor, before a long run.
 * Otherwise as pipec_run_save. */
PIPEC_API PipecStatus pipec_run_can_save(PipecRun *run, const char *word);

/* ---- tuning: finds the fastest values of the statics that have sets -------------------------- */

typedef struct PipecTune PipecTune; /* one tuning of one kernel, extents and device */

typedef struct PipecTuneProgress PipecTuneProgress;

typedef struct PipecTuneOptions {
    size_t size;        /* sizeof(PipecTuneOptions) */
    const char *kernel; /* as in PipecOptions */
    /* statics, which are then fixed; extents, scalars, "A=a.npy" */
    const char *const *values;
    size_t value_count;
    const PipecValue *numbers; /* statics, extents and scalars without text; both may be given */
    size_t number_count;
    const char *const *fills; /* as in PipecRunOptions; so is the seed */
    size_t fill_count;
    uint64_t seed;
    int device; /* 1 + ordinal of the GPU; 0: the first capable one */
    /* each round measures every candidate once; 0: 7 */
    int rounds;
    bool forget; /* store nothing */
    /* NULL, or called before each step: "checking", "measuring" */
    void (*progress)(void *data, const char *what, size_t done, size_t of);
    void *progress_data;
    const char *variant; /* as in PipecOptions; NULL: the first that can run on these data */
    /* predict the times instead, without a GPU, for this machine ("h200", "h100", or a device that
     * was calibrated, "NVIDIA H200"), and store nothing; NULL: measure. An unknown name:
     * PIPEC_UNUSABLE */
    const char *machine;
    size_t candidates; /* measure so many, those that the model expects to be fastest; 0: 12 */
    /* what is stored also counts for extents that differ by at most 10 %, if the model expects at
     * most 5 % more than the least time */
    bool near;
    double limit; /* seconds after which a launch is given up; 0: 10 */
    /* NULL, or called before each step, with progress_data */
    void (*watch)(void *data, const PipecTuneProgress *now);
    /* a file of choices (PipecOptions) that the best one is added to; NULL: none */
    const char *save;
    bool invariant; /* as in PipecOptions; so is `accepted` */
    const char *const *accepted;
    size_t accepted_count;
    /* NULL, or called before each step, with progress_data, as `progress`; false: candidates that
     * were not measured are left out, and no more rounds begin */
    bool (*next)(void *data, const char *what, size_t done, size_t of);
    /* that the file includes, as in PipecOptions; NULL: those of its folder */
    const PipecFile *files;
    size_t file_count;
    const char *folder; /* of standard input, as in PipecOptions */
    const char *target; /* as in PipecOptions */
} PipecTuneOptions;

typedef enum PipecTrialEnd {
    PIPEC_TRIAL_MEASURED,
    /* refused by the compiler, by a launch precondition or by the device */
    PIPEC_TRIAL_UNFIT,
    PIPEC_TRIAL_WRONG,   /* its result does not satisfy `ensures` */
    PIPEC_TRIAL_SLOW,    /* after its first round, which took 3 times the best */
    PIPEC_TRIAL_LEFT,    /* not measured: the model expects others to be faster */
    PIPEC_TRIAL_ENDLESS, /* a launch did not end within the limit; nothing more was measured */
    PIPEC_TRIAL_UNPROVED /* a verdict on it is incomplete, and not among `accepted` */
} PipecTrialEnd;

/* One candidate: a variant with values. The measured, or predicted, ones come first, fastest first;
 * the others follow in the order of the text. */
typedef struct PipecTrial {
    size_t size;               /* sizeof(PipecTrial) */
    const char *values;        /* "BM=128 STAGES=4" */
    const PipecValue *numbers; /* the same as numbers */
    size_t number_count;
    PipecTrialEnd end;
    /* one line: why it was excluded, or a warning; may be NULL */
    const char *remark;
    double seconds; /* time of one launch, median of the rounds */
    /* (slowest round - fastest round) / median */
    double spread;
    /* time that the model expects, in seconds; 0: it knows none, and `limit` says why */
    double predicted;
    const char *limit;  /* what takes longest: "matrix units" */
    const char *kernel; /* "gemm", or the variant "gemm:wide" */
} PipecTrial;

struct PipecTuneProgress {
    size_t size;            /* sizeof(PipecTuneProgress) */
    const char *what;       /* "checking" or "measuring" */
    size_t done, of;        /* candidates, or rounds */
    const PipecTrial *best; /* the fastest so far; NULL: none was measured */
    double seconds_left;    /* about */
};

typedef struct PipecTuneInfo {
    const char *kernel;
    /* NULL: the tuning ended before a device was chosen */
    const char *device;
    const char *arguments; /* as pipec_run_arguments */
    /* extents that were measured: "M=4096 K=64"; empty if there are none */
    const char *extents;
    /* file that the times were written to; NULL: none */
    const char *kept;
    /* reason why it was not written, if that is no error */
    const char *not_kept;
    int rounds;
    bool checked; /* the results were compared with `ensures` */
    /* the row of the model that predicted ("h200", or a device that was calibrated), NULL: none
     * did; and whether the model was compared with times of this machine, or it was measured */
    const char *machine;
    bool calibrated;
} PipecTuneInfo;

/* Takes the variants and combinations of statics that the model expects to be fastest, runs each
 * once on a GPU and compares its result, times the right ones in rounds, and stores their times:
 * launches with these extents, and pipec_program_tuned, take the fastest. PIPEC_REFUSED if some
 * result was wrong, or a launch did not end, even if there is a choice. */
PIPEC_API PipecTune *pipec_tune_file(const char *path, const PipecTuneOptions *options);
PIPEC_API void pipec_tune_free(PipecTune *tune);
PIPEC_API PipecStatus pipec_tune_status(const PipecTune *tune);
PIPEC_API const PipecDiagnostics *pipec_tune_diagnostics(const PipecTune *tune);
PIPEC_API const PipecTuneInfo *pipec_tune_info(const PipecTune *tune);
/* false after the last, and if trial->size is 0 */
PIPEC_API bool pipec_tune_trial(const PipecTune *tune, size_t index, PipecTrial *trial);

/* texts live as long as the program that was passed */
typedef struct PipecChoice {
    size_t size;               /* sizeof(PipecChoice) */
    const char *values;        /* "BM=128 STAGES=4" */
    const PipecValue *numbers; /* the same as numbers, for PipecOptions */
    size_t number_count;
    const char *extents; /* as in PipecTuneInfo, if tuning chose; otherwise NULL */
    const char *device;
    const char *kernel;  /* "gemm", or the variant "gemm:wide" */
    const char *machine; /* "h200": the row of the model; NULL: it was not asked */
    double predicted;    /* time that the model expects, in seconds; 0: it knows none */
    const char *limit;   /* what takes longest: "matrix units"; NULL: it knows none */
    size_t candidates;   /* number of variants and values among which it was chosen */
    bool calibrated;     /* the model was compared with times of the machine, or it was measured */
    const char *fixed;   /* the file that says so (PipecOptions.choices); NULL: it was chosen */
} PipecChoice;

/* The machine that the emulator stands for, in choices */
#define PIPEC_MACHINE "h200"

typedef struct PipecChooseOptions {
    size_t size; /* sizeof(PipecChooseOptions) */
    int device;  /* 1 + ordinal; 0: the first capable one, or the nearest of the model's machines */
    const char *machine; /* predict for this machine ("h200") and ignore what tuning kept */
    bool untuned;        /* the values of the text, in the first variant that can run */
    /* not 0: wrong values are errors of this call, not only of a run that follows; and so it is if
     * no combination of statics can run */
    uint64_t strict;
} PipecChooseOptions;

/* The program of another variant of its kernel, to be freed by the caller, if none was named and
 * this one cannot run on these data: the first in the text whose launch preconditions they meet.
 * NULL: `program` itself; or none, which its diagnostics report (P0623); or memory ran out. */
PIPEC_API PipecProgram *pipec_program_variant(PipecProgram *program,
                                              const PipecRunOptions *options);

/* The program compiled with the values that tuning has chosen for these statics, extents and
 * device (1 + ordinal, 0: the first capable one), to be freed by the caller. NULL: nothing was
 * chosen, the extents do not meet its launch preconditions, there is no GPU, or memory ran out.
 * If the stored choices cannot be read, the diagnostics of `program` have a warning. `choice`
 * may be NULL. */
PIPEC_API PipecProgram *pipec_program_tuned(PipecProgram *program, const PipecRunOptions *options,
                                            int device, PipecChoice *choice);

/* The program of the variant and the statics that are the fastest for a run, to be freed by the
 * caller: what tuning has chosen, otherwise what the model predicts; statics that were given, and a
 * variant that was named, stay. NULL: `program` itself, or an error: no variant can run (P0623), no
 * such machine (P0925), or memory ran out. `choice` may be NULL. */
PIPEC_API PipecProgram *pipec_program_chosen(PipecProgram *program, const PipecRunOptions *options,
                                             const PipecChooseOptions *how, PipecChoice *choice);

/* ---- machines (docs/choice.md) ----------------------------------------------------------------
 */

/* Measures a GPU for the model that predicts times, which takes some 10 s, and writes its numbers
 */
typedef struct PipecCalibration PipecCalibration;

typedef struct PipecCalibrateOptions {
    size_t size;        /* sizeof(PipecCalibrateOptions) */
    int device;         /* 1 + ordinal of the GPU; 0: the first capable one */
    const char *output; /* the file; NULL: machines.json in the folder of the cache */
    bool quick;         /* do not wait until the clock is that of a long load */
    /* NULL, or called before each part: "matrix units" */
    void (*progress)(void *data, const char *what);
    void *progress_data;
} PipecCalibrateOptions;

typedef struct PipecMachine {
    size_t size;        /* sizeof(PipecMachine) */
    const char *device; /* "NVIDIA H200" */
    const char *file;   /* that it was written to; NULL: none, which the diagnostics explain */
    int multiprocessors;
    int megahertz;   /* of the matrix units under load */
    int memory_rate; /* GB/s */
    int l2_rate;     /* bytes per cycle and multiprocessor */
    int latency;     /* of a copy, in ns */
    int launch;      /* of one of many launches, in ns */
    int barrier;     /* of a hand-over between two roles, in ns */
    int block;       /* of the start of a block on a multiprocessor, in ns */
    int64_t l2_bytes, memory_bytes;
} PipecMachine;

/* NULL: memory ran out */
PIPEC_API PipecCalibration *pipec_calibrate(const PipecCalibrateOptions *options);
PIPEC_API void pipec_calibration_free(PipecCalibration *calibration); /* NULL is allowed */
PIPEC_API PipecStatus pipec_calibration_status(const PipecCalibration *calibration);
PIPEC_API const PipecDiagnostics *
pipec_calibration_diagnostics(const PipecCalibration *calibration);
/* What was measured, also if it was not written; false: nothing was */
PIPEC_API bool pipec_calibration_machine(const PipecCalibration *calibration,
                                         PipecMachine *machine);

/* ---- the cache of cubins that ptxas made (docs/cache.md) --------------------------------------
 */

typedef struct PipecCache PipecCache; /* what the cache holds when it is opened */

typedef struct PipecCacheInfo {
    size_t size;         /* sizeof(PipecCacheInfo) */
    const char *folder;  /* NULL: there is none */
    const char *off;     /* why the driver loads all kernels; NULL: the cache is used */
    const char *ptxas;   /* path; NULL: none was found */
    const char *version; /* "13.0.88"; NULL: unknown */
    size_t entries;
    uint64_t bytes, bytes_most; /* of the entries, and their limit */
} PipecCacheInfo;

typedef struct PipecCacheEntry {
    size_t size; /* sizeof(PipecCacheEntry) */
    const char *file, *kernel, *target;
    const char *version; /* of ptxas: "13.0.88" */
    uint64_t bytes;
    int64_t used; /* when it was used last, in seconds since 1970 */
} PipecCacheEntry;

/* NULL only when memory runs out */
PIPEC_API PipecCache *pipec_cache_open(void);
PIPEC_API void pipec_cache_free(PipecCache *cache);
/* False: info->size is 0 */
PIPEC_API bool pipec_cache_info(const PipecCache *cache, PipecCacheInfo *info);
/* The last used first; false after the last, and if entry->size is 0 */
PIPEC_API bool pipec_cache_entry(const PipecCache *cache, size_t index, PipecCacheEntry *entry);
/* Removes all entries, not the choices of tuning. */
PIPEC_API PipecStatus pipec_cache_clear(PipecCache *cache, size_t *removed, uint64_t *bytes,
                                        PipecDiagnostics **diagnostics);
/* Which cache a load uses, ours or the driver's, for the program or, if it is NULL, in general:
 * lines of text, of which those that begin with "warning: " name what defeats it. NULL when memory
 * runs out. */
PIPEC_API const char *pipec_cache_why(PipecCache *cache, const PipecProgram *program);

/* ---- other PTX on the emulator --------------------------------------------------------------- */

/* PTX of any compiler on the emulator: read it and describe its launches; then execute; then save.
 * docs/emulator.md, "Any PTX", describes arguments and launch files. */
typedef struct PipecEmulation PipecEmulation;

typedef struct PipecEmulationOptions {
    size_t size;          /* sizeof(PipecEmulationOptions) */
    const char *launches; /* a launch file; then the members up to `arguments` are not read */
    /* one launch; `ptx` is a file, `entry` NULL: its only one */
    const char *ptx, *entry;
    /* "X", "X,Y" or "X,Y,Z"; block and cluster NULL: what the kernel requires */
    const char *grid, *block, *cluster;
    uint32_t shared_bytes; /* dynamic shared memory */
    const char *const *arguments;
    size_t argument_count;
    const char *const *denied; /* as in PipecOptions */
    size_t denied_count;
    /* most blocks that wait for others at once; 0: 132 */
    int resident;
    /* The run ends as PIPEC_INCOMPLETE (P0760) before more blocks begin, or after these seconds; 0:
     * no limit */
    uint64_t blocks;
    double seconds;
    bool cooperative; /* of the one launch: its blocks run at once and may wait for each other */
} PipecEmulationOptions;

/* Reads the description, the PTX and the arrays. Errors are in its status and diagnostics: wrong
 * descriptions, files and texts are PIPEC_UNUSABLE, instructions that the emulator does not know
 * PIPEC_INCOMPLETE. NULL: memory ran out. */
PIPEC_API PipecEmulation *pipec_emulation_new(const PipecEmulationOptions *options);
/* NULL is allowed */
PIPEC_API void pipec_emulation_free(PipecEmulation *emulation);
PIPEC_API PipecStatus pipec_emulation_status(const PipecEmulation *emulation); /* worst so far */
/* of the last call */
PIPEC_API const PipecDiagnostics *pipec_emulation_diagnostics(const PipecEmulation *emulation);
/* Runs all launches. The members of the options that are for a GPU are not read. */
PIPEC_API PipecStatus pipec_emulation_execute(PipecEmulation *emulation,
                                              const PipecExecuteOptions *options);
/* Of the last execution: blocks of all launches, instructions, seconds, schedules */
PIPEC_API const PipecRunInfo *pipec_emulation_info(const PipecEmulation *emulation);
/* Writes the arrays of the arguments `out` and `inout`. */
PIPEC_API PipecStatus pipec_emulation_save(PipecEmulation *emulation);

/* An entry of a PTX text and what its launches need */
typedef struct PipecEntry {
    size_t size; /* sizeof(PipecEntry) */
    const char *name;
    size_t parameters;
    uint32_t block[3];     /* threads that it requires along x, y, z; 0, 0, 0: any */
    uint32_t most_threads; /* of a block; 0: any number */
    uint32_t cluster[3];   /* blocks that it requires; 0, 0, 0: any */
} PipecEntry;

typedef struct PipecEntryParameter {
    size_t size; /* sizeof(PipecEntryParameter) */
    const char *name;
    const char *type; /* of PTX: ".u64"; ".b8": a structure or tensor map */
    uint32_t bytes, alignment;
} PipecEntryParameter;

/* Reads the declarations of a text; for pipec_emulation_entry only. NULL: memory ran out. */
PIPEC_API PipecEmulation *pipec_emulation_list(const char *ptx);
/* False after the last, and if the structure's size is 0 */
PIPEC_API bool pipec_emulation_entry(const PipecEmulation *emulation, size_t index,
                                     PipecEntry *entry);
PIPEC_API bool pipec_emulation_parameter(const PipecEmulation *emulation, size_t entry,
                                         size_t index, PipecEntryParameter *parameter);

#ifdef __cplusplus
}
#endif

#endif
