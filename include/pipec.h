/* pipec: compile Pipe, a language for warp-specialised GPU kernels, from a C program; load what comes out and launch
 * it.
 *
 * Text goes in; PTX text, a manifest and diagnostics come out (PipecProgram). From there either
 *   - PipecKernel: load the program on a GPU and launch it with device pointers, in the device's primary context; or
 *   - PipecRun: run it on data of the host, on a GPU or on the built-in emulator, and compare the result with `ensures`.
 *
 * Nothing here exits, prints, or keeps global state. A function that fails says so in its value, and the object it was
 * called on keeps the diagnostics of that call. Functions that return an object return NULL only when memory runs out.
 * Strings and arrays that are returned belong to the object and live as long as it does, or until a call that is
 * documented to replace them. Different objects may be used by different threads at once; one object by one thread at
 * a time. A program must outlive the kernels and runs made of it.
 *
 * Options are passed in structures that start as zeros: `PipecOptions options = {0};`. NULL options are all zeros.
 * Link with -lpipec, or with libpipec.a and -lm -ldl -lpthread. */
#ifndef PIPEC_H
#define PIPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIPEC_VERSION_MAJOR 0
#define PIPEC_VERSION_MINOR 1
#define PIPEC_VERSION_PATCH 0
#define PIPEC_VERSION       "0.1.0"

#if defined(__GNUC__)
#define PIPEC_API __attribute__((visibility("default")))
#else
#define PIPEC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define PIPEC_MAX_RANK 5
#define PIPEC_TEXT_MAX (16u << 20) /* bytes of a source text */

/* Of the library that is running, which may be another than this header */
PIPEC_API const char *pipec_version(void);

/* How a call ended; also the exit codes of the command line. Of several, PIPEC_BUG is the worst, then PIPEC_REFUSED,
 * PIPEC_INCOMPLETE, PIPEC_UNUSABLE. */
typedef enum PipecStatus {
    PIPEC_FINE = 0, /* right; or not checked, and said so */
    PIPEC_REFUSED =
        1, /* the program is refused, its result is wrong, or the run found a hang, a fault, a stray write */
    PIPEC_UNUSABLE = 2,  /* an argument, a file, data, a launch precondition, the machine, or memory */
    PIPEC_BUG = 3,       /* a mistake in pipec; so is PTX that the driver or ptxas rejects */
    PIPEC_INCOMPLETE = 4 /* could not be decided, or needs what this version does not model */
} PipecStatus;

PIPEC_API PipecStatus pipec_worse(PipecStatus a, PipecStatus b);

/* ---- diagnostics ------------------------------------------------------------------------------------------------ */

/* PIPEC_UNDECIDED: a verdict that is incomplete; what was compiled, if anything was, can be used, and its status is
 * PIPEC_INCOMPLETE */
typedef enum PipecSeverity { PIPEC_ERROR, PIPEC_WARNING, PIPEC_NOTE, PIPEC_UNDECIDED } PipecSeverity;

/* A piece of the source: lines and columns count from 1, columns in characters; lo and hi are byte offsets, hi behind
 * the end. */
typedef struct PipecLabel {
    uint32_t line, column, end_line, end_column;
    uint32_t lo, hi;
    const char *text; /* may be empty */
} PipecLabel;

typedef struct PipecDiagnostic {
    const char *code; /* "P0102"; see pipec_explain */
    PipecSeverity severity;
    const char *message;
    const PipecLabel *labels; /* the first is the primary one; none where it is about data, a file or the machine */
    size_t label_count;
    const char *const *notes; /* explanations */
    size_t note_count;
    const char *const *helps; /* ways out */
    size_t help_count;
} PipecDiagnostic;

typedef struct PipecDiagnostics PipecDiagnostics;

PIPEC_API size_t pipec_diagnostics_count(const PipecDiagnostics *diagnostics);
PIPEC_API size_t pipec_diagnostics_errors(const PipecDiagnostics *diagnostics); /* how many of them are errors */
PIPEC_API const PipecDiagnostic *pipec_diagnostics_get(const PipecDiagnostics *diagnostics, size_t index);
PIPEC_API const char *pipec_diagnostics_text(const PipecDiagnostics *diagnostics);     /* as a person reads them */
PIPEC_API const char *pipec_diagnostics_coloured(const PipecDiagnostics *diagnostics); /* the same, with ANSI colours */
PIPEC_API const char *pipec_diagnostics_json(const PipecDiagnostics *diagnostics);     /* one line */

/* SARIF 2.1.0: the diagnostics of any number of texts as one log, which is one line. */
typedef struct PipecSarif PipecSarif;
PIPEC_API PipecSarif *pipec_sarif_new(void);
PIPEC_API void pipec_sarif_free(PipecSarif *sarif); /* NULL is allowed */
/* What was added may be freed then. False: memory ran out, and the log is of no use. */
PIPEC_API bool pipec_sarif_add(PipecSarif *sarif, const PipecDiagnostics *diagnostics);
PIPEC_API const char *pipec_sarif_text(PipecSarif *sarif); /* of all that was added; NULL: memory ran out */

/* The page of a code (in any case): wrong program, why, right program. NULL: there is no such code. */
PIPEC_API const char *pipec_explain(const char *code);
/* All codes that have a page, in order; NULL behind the last. `title` may be NULL. */
PIPEC_API const char *pipec_code(size_t index, const char **title);
/* The code that was probably meant, or NULL */
PIPEC_API const char *pipec_code_near(const char *code);

/* "Did you mean": the one of `names` that was probably meant, or NULL */
PIPEC_API const char *pipec_near(const char *wanted, const char *const *names, size_t count);

/* ---- programs --------------------------------------------------------------------------------------------------- */

typedef struct PipecProgram PipecProgram; /* one compilation of one text: its results, or its errors */

typedef struct PipecOptions {
    const char *name;          /* of the text, in messages and debug lines; NULL: "<text>", or the file's path */
    const char *kernel;        /* which kernel of the file; NULL: the only one */
    const char *const *values; /* "NAME=VALUE" for statics */
    size_t value_count;
    const char *const *denied; /* become errors: codes of incomplete verdicts, warnings and notes, or "incomplete", "warnings" or "notes"; in runs and loads as well */
    size_t denied_count;
    bool launch_values; /* values may also be meant for a launch (pipec_run_new): names of no static are left alone */
    bool check_only;    /* no PTX and no manifest. With kernel == NULL all kernels of the file are checked, each with every
                         * combination of the sets of the statics that `values` leaves open */
    size_t combinations; /* of a check: how many of them at most; 0: 4096 */
    uint64_t work; /* steps of some 10 ns that its check and generation take at most, before the verdict is PIPEC_INCOMPLETE; 0: as is
                    * usual for a text of its length */
    bool times;         /* measure how long each part of the compilation takes, for pipec_program_times */
    bool watchdog;      /* compile the watchdog of the waits in: a hang ends with a message */
} PipecOptions;

PIPEC_API PipecProgram *pipec_compile(const char *text, size_t length, const PipecOptions *options);
/* Reads the text from a file; "-" is standard input. */
PIPEC_API PipecProgram *pipec_compile_file(const char *path, const PipecOptions *options);
PIPEC_API void pipec_program_free(PipecProgram *program); /* NULL is allowed */

PIPEC_API PipecStatus pipec_program_status(const PipecProgram *program);
PIPEC_API const PipecDiagnostics *pipec_program_diagnostics(const PipecProgram *program);

/* The kernels of the text; NULL behind the last */
PIPEC_API const char *pipec_program_kernel(const PipecProgram *program, size_t index);
/* Is the value "NAME=VALUE" one for a static of this program? */
PIPEC_API bool pipec_program_is_static(const PipecProgram *program, const char *value);

/* PTX text, ended by a NUL; length may be NULL. NULL where there were errors. */
PIPEC_API const char *pipec_program_ptx(const PipecProgram *program, size_t *length);
/* JSON: all that a launcher needs beside the PTX (docs/manifest.md). NULL where there were errors. */
PIPEC_API const char *pipec_program_manifest(PipecProgram *program);
/* What was derived and why: barriers, counts, bytes, layouts, registers, shared memory. NULL after errors. */
PIPEC_API const char *pipec_program_report(PipecProgram *program);

/* How often each part of the compilation ran, and what it took: time of the processor and steps of the meter, a line
 * a part. NULL where `times` was not asked for. */
PIPEC_API const char *pipec_program_times(const PipecProgram *program);

/* The printed forms of a compilation, one for each of its steps, in their order; NULL after the last */
typedef struct PipecForm {
    const char *name; /* "tokens", "ast", "prog" .. "ptx" */
    const char *what; /* one line */
    bool generated;   /* there is none of a program that was compiled with check_only */
} PipecForm;
PIPEC_API const PipecForm *pipec_form(size_t index);
/* NULL where there is no such form, or where errors kept the compilation from reaching it; what a pass of the check leaves is
 * there also where that pass, or a later one, refuses the kernel */
PIPEC_API const char *pipec_program_emit(PipecProgram *program, const char *form);

/* Assembles the PTX with ptxas, found along PATH, into a .cubin file, which is written beside and then renamed.
 * What ptxas says becomes diagnostics of the program, at the lines of its source. */
PIPEC_API PipecStatus pipec_program_assemble(PipecProgram *program, const char *cubin_path);

/* ---- kernels on a GPU: your pointers, your stream --------------------------------------------------------------- */

typedef struct PipecKernel PipecKernel; /* a program loaded on a device, in its primary context */

/* One a parameter of the kernel, in order. The members that count depend on the parameter. */
typedef struct PipecArgument {
    uint64_t pointer;                /* a tensor: its device address, C order, last axis contiguous; any without elements */
    int64_t extents[PIPEC_MAX_RANK]; /* a tensor: elements along each axis */
    double number;                   /* a scalar of a float type */
    int64_t integer;                 /* a scalar of an integer type */
} PipecArgument;

/* Loads on device `ordinal`, -1: the first that can run it. Never NULL but without memory; see its status. */
PIPEC_API PipecKernel *pipec_kernel_load(PipecProgram *program, int ordinal);
PIPEC_API void pipec_kernel_free(PipecKernel *kernel);
PIPEC_API PipecStatus pipec_kernel_status(const PipecKernel *kernel);                  /* of the last call */
PIPEC_API const PipecDiagnostics *pipec_kernel_diagnostics(const PipecKernel *kernel); /* of the last call */
PIPEC_API const char *pipec_kernel_device(const PipecKernel *kernel); /* "NVIDIA H200"; NULL where loading failed */
/* Checks extents and preconditions, then launches on a CUstream (NULL: the default stream), without waiting for its
 * end. The primary context of the kernel's device is made current for the launch. */
PIPEC_API PipecStatus pipec_kernel_launch(PipecKernel *kernel, const PipecArgument *arguments, size_t count,
                                          void *stream);

/* ---- runs on data of the host ----------------------------------------------------------------------------------- */

typedef struct PipecRun PipecRun; /* arguments bound, arrays allocated and filled; then run; then checked */

typedef struct PipecRunOptions {
    const char *const *values; /* "N=4096", "a=2.5", "A=a.npy"; values of statics are passed over */
    size_t value_count;
    const char *const *fills; /* "A=normal", uniform, iota, zeros or a number; else what `example` says, else normal */
    size_t fill_count;
    uint64_t seed;
    double watchdog_seconds; /* patience of a wait, where the program was compiled with the watchdog; 0: 10 */
} PipecRunOptions;

typedef enum PipecWhere {
    PIPEC_ON_ANY, /* the GPU if there is one that can run it, else the emulator */
    PIPEC_ON_GPU,
    PIPEC_ON_EMULATOR
} PipecWhere;

/* Of a run on the emulator. `part` is an estimate, 0 to 1, from the blocks that have ended and the results that were written. */
typedef struct PipecProgress {
    double part; /* of all schedules */
    int schedule, schedules;
    uint64_t instructions; /* warp instructions executed, of this schedule */
} PipecProgress;

typedef struct PipecExecuteOptions {
    PipecWhere where;
    int device;    /* 1 + ordinal of the GPU; 0: the first that can run it */
    int timed;     /* launches to time after the first; 0: time the first */
    /* Called every few milliseconds while the emulator runs, where it is there */
    void (*progress)(void *data, const PipecProgress *progress);
    void *progress_data;
    /* How many schedules of the emulator (which warp runs, when asynchronous work is done, which waits end early), each
     * from the same data: seeds `schedule`, `schedule` + 1, ..; 0 is the plain one. The run ends with the first finding,
     * or with the first that leaves another result than the first one, which names its seed; else with the results of the
     * first. Asked for (0: one), or with a `schedule`, only of the emulator: else PIPEC_UNUSABLE. */
    int schedules;
    uint64_t schedule;
} PipecExecuteOptions;

typedef struct PipecArray {
    const char *name, *type; /* "Y", "bf16" */
    int rank;
    int64_t extents[PIPEC_MAX_RANK];
    size_t bytes;
    void *data; /* C order; may be written before pipec_run_execute */
} PipecArray;

typedef struct PipecRunInfo {
    const char *device; /* "NVIDIA H200", "emulator" */
    const char *no_gpu; /* PIPEC_ON_ANY took the emulator: why; else NULL */
    bool on_gpu;
    int64_t blocks;        /* launched */
    int64_t tiles;         /* coordinates of the grid */
    double seconds;        /* of one launch; the median where several were timed; of the emulator: wall clock */
    int timed;             /* launches behind `seconds` */
    uint64_t bytes;        /* of the tensors read plus those written, each once */
    uint64_t instructions; /* emulator: warp instructions executed, on the first schedule */
    int schedules;         /* emulator: that were run, and agree */
} PipecRunInfo;

typedef enum PipecVerdict { PIPEC_RIGHT, PIPEC_WRONG, PIPEC_NOT_CHECKED } PipecVerdict;

PIPEC_API PipecRun *pipec_run_new(PipecProgram *program, const PipecRunOptions *options);
PIPEC_API void pipec_run_free(PipecRun *run);
PIPEC_API PipecStatus pipec_run_status(const PipecRun *run);                  /* the worst of all calls so far; beside it stands the program's own */
PIPEC_API const PipecDiagnostics *pipec_run_diagnostics(const PipecRun *run); /* of the last call */

/* Arrays in the order of the parameters; false behind the last */
PIPEC_API bool pipec_run_array(const PipecRun *run, size_t index, PipecArray *array);
PIPEC_API bool pipec_run_array_named(const PipecRun *run, const char *name, PipecArray *array);
/* "X: f32[1000003], a = 2.5": parameters with their sizes and values */
PIPEC_API const char *pipec_run_arguments(PipecRun *run);

/* Runs once. Results are in the arrays afterwards. */
PIPEC_API PipecStatus pipec_run_execute(PipecRun *run, const PipecExecuteOptions *options);
PIPEC_API const PipecRunInfo *pipec_run_info(const PipecRun *run); /* of the last execution */

/* Compares the arrays with `ensures` and looks for stray and missing writes. PIPEC_WRONG comes with diagnostics. */
PIPEC_API PipecVerdict pipec_run_verify(PipecRun *run);
PIPEC_API const char *pipec_run_verdict(PipecRun *run); /* one line, behind pipec_run_verify */
/* Do two runs agree? Bit for bit, or, where approximate instructions are used, within twice the tolerance of `ensures`.
 * Differences become diagnostics of `run`; `text` gets one line that says which comparison was made. */
PIPEC_API PipecStatus pipec_run_compare(PipecRun *run, const PipecRun *other, const char **text);

/* Writes an array as .npy, beside and then renamed. `word` is "NAME=FILE.npy". */
PIPEC_API PipecStatus pipec_run_save(PipecRun *run, const char *word);
/* Is NAME of "NAME=FILE.npy" a tensor? To find a mistake before a long run; else as a refused save. */
PIPEC_API PipecStatus pipec_run_can_save(PipecRun *run, const char *word);

/* ---- tuning: which values of the statics that have sets are the fastest here --------------------------------------- */

typedef struct PipecTune PipecTune; /* one tuning of one kernel, extents and device */

typedef struct PipecTuneOptions {
    const char *kernel;        /* as in PipecOptions */
    const char *const *values; /* statics, which then stay as they are, extents, scalars, "A=a.npy" */
    size_t value_count;
    const char *const *fills; /* as in PipecRunOptions, and so is the seed */
    size_t fill_count;
    uint64_t seed;
    int device;  /* 1 + ordinal of the GPU; 0: the first that can run it */
    int rounds;  /* in each of which all are measured once; 0: 7 */
    bool forget; /* do not keep the choice */
    /* Called before each step, where it is there: "building", "checking", "measuring" */
    void (*progress)(void *data, const char *what, size_t done, size_t of);
    void *progress_data;
} PipecTuneOptions;

typedef enum PipecTrialEnd {
    PIPEC_TRIAL_MEASURED,
    PIPEC_TRIAL_UNFIT, /* refused by the compiler, by a launch precondition or by the device */
    PIPEC_TRIAL_WRONG  /* its result is not as `ensures` says */
} PipecTrialEnd;

/* One combination. Measured ones come first, the fastest before the others; then the rest, as the sets give them. */
typedef struct PipecTrial {
    const char *values; /* "BM=128 STAGES=4" */
    PipecTrialEnd end;
    const char *remark; /* one line: why it is out, or a warning; may be NULL */
    double seconds;     /* of one launch, median of the rounds */
    double spread;      /* from the fastest round to the slowest, as a part of the median */
} PipecTrial;

typedef struct PipecTuneInfo {
    const char *kernel;
    const char *device;    /* NULL: it did not come so far */
    const char *arguments; /* as pipec_run_arguments */
    const char *extents;   /* the class that the choice holds for: "M=3073..4096 K=64"; empty where there are none */
    const char *kept;      /* the file that the choice was written to; NULL: none */
    const char *not_kept;  /* why not, where that is no error */
    int rounds;
    bool checked; /* there is an `ensures` */
} PipecTuneInfo;

/* Compiles all combinations, runs each once and compares its result, then times those that are right on a GPU, in rounds, and
 * keeps the fastest for pipec_program_tuned. PIPEC_REFUSED where some result was wrong, the choice notwithstanding. */
PIPEC_API PipecTune *pipec_tune_file(const char *path, const PipecTuneOptions *options);
PIPEC_API void pipec_tune_free(PipecTune *tune);
PIPEC_API PipecStatus pipec_tune_status(const PipecTune *tune);
PIPEC_API const PipecDiagnostics *pipec_tune_diagnostics(const PipecTune *tune);
PIPEC_API const PipecTuneInfo *pipec_tune_info(const PipecTune *tune);
PIPEC_API bool pipec_tune_trial(const PipecTune *tune, size_t index, PipecTrial *trial); /* false behind the last */

typedef struct PipecChoice { /* texts live as long as the program that was asked */
    const char *values;  /* "BM=128 STAGES=4" */
    const char *extents; /* as in PipecTuneInfo */
    const char *device;
} PipecChoice;

/* What tuning has chosen for this program with the statics that it was given, for these extents and this device (1 + ordinal,
 * 0: the first): the program compiled with it, to be freed by the caller. NULL: nothing was chosen, the extents do not meet its
 * launch preconditions, or there is no GPU; and memory. Where the kept choices cannot be read, the diagnostics of the program
 * that was asked warn. `choice` may be NULL. */
PIPEC_API PipecProgram *pipec_program_tuned(PipecProgram *program, const PipecRunOptions *options, int device,
                                            PipecChoice *choice);

#ifdef __cplusplus
}
#endif

#endif
