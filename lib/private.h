/* lib, private: shared by the files of this floor. Each object of the interface has its own
 * arena; calls on it run under `attempt`, so that lack of memory becomes a return value. */
#ifndef PIPEC_LIB_PRIVATE_H
#define PIPEC_LIB_PRIVATE_H

#include "check/check.h"
#include "codegen/codegen.h"
#include "include/pipec.h"
#include "launch/launch.h"
#include "reference/reference.h"

#include "emulator/emulator.h"

#include <pthread.h>

_Static_assert(PIPEC_MAX_RANK == MAX_RANK && PIPEC_TEXT_MAX == SOURCE_MAX_BYTES,
               "one fact, said twice because pipec.h stands alone");

/* ---- memory ---------------------------------------------------------------------------------- */

/* Calls work(data) and catches the arena's failures. False: memory ran out during the work. */
bool attempt(Arena *arena, void (*work)(void *), void *data);

/* The version, and a sum of the sources: key of what one build keeps for itself */
extern const char pipec_stamp[];

/* ---- diagnostics ----------------------------------------------------------------------------- */

struct PipecDiagnostics {
    Arena *arena; /* that it is freed with by the caller; NULL: it belongs to an object */
    PipecDiagnostic *items;
    size_t count, errors;
    const char *text, *coloured, *json;
    const Diags *diags; /* NULL: memory ran out before the first one */
};

/* no_diagnostics: none; no_memory: memory ran out */
extern const PipecDiagnostics no_diagnostics, no_memory;

/* Sorts them and creates their public form, in the arena of the diags. */
PipecDiagnostics *diagnostics_publish(Diags *diags);
/* What pipec made and then rejects is its bug; what it read from files is wrong data. */
PipecStatus status_of_run(const Manifest *manifest, RunStatus status);
/* Gives the caller diagnostics that are in an arena of their own, or frees them if there are none,
 * or none are wanted. Others belong to an object, and pipec_diagnostics_free ignores them. */
void diagnostics_hand_over(Arena *arena, PipecDiagnostics *published,
                           PipecDiagnostics **diagnostics);

/* ---- structures of the caller ---------------------------------------------------------------- */

/* Reads a structure that begins with its size into ours, of `known` bytes; what a smaller one lacks
 * is zero; NULL is all zeros. False, and ours is all zeros: the size is not set, or members
 * that we do not know are not zero; size_report reports that. */
bool size_read(void *ours, size_t known, const void *given);
void size_report(Diags *diags, const char *name, size_t known, const void *given);
/* Fills as many bytes as the caller's structure has, except its size; false: that is not set. */
bool size_write(void *given, const void *ours, size_t known);

/* The words "NAME=VALUE" of the caller, followed by its numbers as such words */
typedef struct Words {
    const char *const *items;
    size_t count;
} Words;
Words value_words(Arena *arena, const char *const *values, size_t value_count,
                  const PipecValue *numbers, size_t number_count);
/* The value of "NAME=TEXT", a number, true or false */
PipecValue value_number(Arena *arena, const char *name, const char *text);
/* The words "NAME=VALUE NAME=VALUE" as numbers, for a trial or a choice of tuning */
size_t value_numbers(Arena *arena, const char *words, const PipecValue **numbers);
/* Reads `count` arguments of `size` bytes; false: not PipecArguments, or they use members that are
 * not known. */
bool arguments_read(const PipecArgument *arguments, size_t size, size_t count, DeviceArgument *to);
/* Reports that their number is wrong, or their size */
void arguments_report(const Manifest *manifest, size_t size, size_t count, Diags *diags);
/* Sets the strides of the tensors that a run stands for. False: its arguments are wrong. */
bool arguments_strides(const Manifest *manifest, const PipecRunOptions *options, DeviceArgument *to,
                       Diags *diags);

/* ---- sources --------------------------------------------------------------------------------- */

/* The text of a file, or of the shipped kernel that "kernels:NAME" names; NULL: reported */
const char *source_text(Arena *arena, const char *path, size_t *length, Diags *diags);
bool source_is_shipped(const char *path);

/* ---- programs -------------------------------------------------------------------------------- */

#define FORMS_MAX 32

typedef struct Description Description; /* describe.c */
typedef struct Family Family;           /* family.h */
typedef struct Bundle Bundle;           /* bundle.h */
typedef VEC(const Target *) Targets;

struct PipecProgram {
    Arena *arena;
    pthread_mutex_t lock; /* of the list of kernels, and of the family */
    PipecKernel *loaded;  /* one per device */
    Family *family;       /* what can be chosen; NULL: nothing was chosen yet */
    Arena *family_arena;  /* its memory */
    Names *names;
    const Source *source;
    const Ast *ast;   /* NULL if the text could not be read */
    const Prog *prog; /* NULL after errors, and if several kernels were checked */
    /* the same, also after errors: as far as the passes came; NULL: it was not elaborated */
    const Prog *whole;
    const char *const *kernels;
    size_t kernel_count;
    const char *wanted; /* of `kernels`: "gemm", "gemm:swapped", ":swapped"; NULL: all */
    /* name of the compiled kernel, or "KERNEL:VARIANT", otherwise NULL */
    const char *kernel;
    /* the kernel whose variants have been left open: `kernel` is the first that has the given
     * statics; NULL: none */
    const char *open_kernel;
    const Target *target; /* that the caller gave; NULL: none */
    /* those of which a launch takes one, if there are several: of the kernel, and of all variants
     * if they are open; `prog` is for the first one that the compiled variant names (targets.h) */
    Targets targets;
    PipecProgram *others, *next_other; /* the programs for other targets: first, and the next one */
    bool untuned;                      /* launches use the program itself */
    /* choices that are fixed, of the file; NULL: none (fixed.h) */
    const struct Choices *fixed;
    const char *fixed_file;
    Bundle *bundle; /* it was loaded from one; NULL: it was not */
    bool invariant; /* as of PipecOptions */
    size_t loaded_most;
    double patience; /* both as of PipecOptions */
    bool watchdog;   /* it is compiled in */
    /* values that have been given: by the caller, and from number given_count on, those of `bound`
     */
    const StaticValue *statics;
    size_t static_count, given_count;
    BoundStatics bound;        /* statics that tensors decide, of all units that were wanted */
    struct Siblings *siblings; /* programs for other such values (bound.c); NULL: none can be */
    const char *faults;        /* why other variants were not taken either; NULL: none were tried */
    const char **denied;       /* as given by the caller */
    size_t denied_count;
    const char **accepted; /* the same */
    size_t accepted_count;
    bool accepts[CODE_COUNT]; /* levels.accepted, once there is a kernel or it is checked */
    bool checked;             /* `check_only`: its kernels, to the end and without an error */
    /* levels of all diagnostics of the program, its kernels and its runs */
    Levels levels;
    Str ptx;                        /* empty if it was not requested, and if there is a cubin */
    const void *cubin;              /* machine code that was given instead of PTX; NULL: none */
    Manifest *manifest;             /* NULL if the PTX was not requested */
    const Description *description; /* NULL without a manifest */
    Diags *diags;
    const PipecDiagnostics *published;
    PipecStatus status;
    const char *manifest_text, *report, *times;
    /* texts that were printed before, one per row of lib/forms.c */
    const char *emitted[FORMS_MAX];
};

/* Programs for other values of statics that tensors decide (bound.c) */
typedef struct Sibling {
    struct Sibling *next;
    PipecProgram *program; /* also one with errors, which are reported again */
    int64_t values[];      /* by name */
} Sibling;

#define UNKNOWN INT64_MIN /* no tensor tells it, or that of the program */
typedef struct Siblings {
    pthread_mutex_t lock; /* of the list; one thread compiles */
    Arena *arena;         /* of the list; NULL: no memory */
    Sibling *first;
    const char **names; /* each once */
    size_t count;
    int64_t *own; /* values of the program; UNKNOWN: its variant has no such static */
} Siblings;

/* Why a program has no manifest: its own errors, or P0919 in the arena of the words */
PipecStatus program_unusable(const PipecProgram *program, Arena *words,
                             PipecDiagnostics **published);
/* The constant or static of the program; NULL: its variant has none of this name */
const Constant *program_constant(const PipecProgram *program, const char *name);
/* True if tensors of a call decide this static */
bool static_is_bound(const PipecProgram *program, const char *name);
/* The program for these tensors: itself, or a sibling; NULL: there is none, which `diags` says.
 * arguments: one per parameter; given: NULL: all */
PipecProgram *program_for(PipecProgram *program, const DeviceArgument *arguments, const bool *given,
                          Diags *diags);
/* The program for the statics among the words of a run that tensors would decide; as above */
PipecProgram *program_for_words(PipecProgram *program, const PipecRunOptions *options, Arena *words,
                                Diags *diags);
/* The same, NULL: it is not compiled yet, or there is none */
PipecProgram *program_known_for(PipecProgram *program, const DeviceArgument *arguments,
                                const bool *given);
/* The program for the files among the arguments of a run: itself, one to be freed by the caller, or
 * NULL: there is none, which `diags` says */
PipecProgram *program_for_files(PipecProgram *program, const PipecRunOptions *options, Arena *words,
                                Diags *diags);
/* Prepares for siblings, if some bound static has no value (decided.c) */
void siblings_begin(PipecProgram *program);
/* The same text and options as those of a program with a manifest, for any variant of `kernel`,
 * with `words` for the statics, and for any target unless the caller gave one; NULL: memory ran out
 */
PipecProgram *program_of_words(const PipecProgram *program, const char *kernel,
                               const char *const *words, size_t count);
/* The first error, or what is not proved: "P0203: .."; NULL: there is none */
const char *program_fault(Arena *arena, const PipecProgram *program);

/* Makes the description of a program that has a manifest (describe.c) */
void program_describe(PipecProgram *program);

/* pipec_compile and pipec_compile_file, but for what needs the other candidates (compile.c) */
PipecProgram *program_compile(const char *text, size_t length, const PipecOptions *options);
PipecProgram *program_compile_file(const char *path, const PipecOptions *options);
/* What was read for a program, without reading it again */
PipecProgram *program_compile_source(const Source *source, const PipecOptions *options);
/* An empty program; NULL: memory ran out */
PipecProgram *program_new(void);
/* Denies a code, or a word such as "warnings"; P0916: neither */
void levels_deny(Levels *levels, const char *word, Diags *diags);
/* Denies and accepts the codes of the options; errors are reported. */
void program_levels(PipecProgram *program, const PipecOptions *options);
/* Publishes the diagnostics, and sets the status that follows from them. */
void program_finish(PipecProgram *program);

/* Checks a kernel of the program for a target with the given statics, then with every other
 * combination of the sets of the other statics, at most `most` (0: the default), and reports all
 * that `build` would refuse (combinations.c). NULL after errors of the first; *whole: the first
 * one, also after errors; cover: gets those that can be built; may be NULL. */
const Prog *combinations_check(Arena *arena, PipecProgram *program, const char *kernel,
                               const Target *target, size_t most, Cover *cover, const Prog **whole);
/* True if the caller gave the static a value, so that its set is not used (combinations.c). */
bool static_is_given(const PipecProgram *program, const char *name);

/* Reads the suppressions of an execution; *out NULL: none. False: an error was reported. */
bool suppressions_read(Arena *arena, const char *file, EmulatorSuppressions **out, Diags *diags);

/* Parses the arguments of a run: its values except statics, and fills. False: an error was
 * reported. */
bool run_words(Arena *arena, const PipecProgram *program, const PipecRunOptions *options,
               Argument **given, size_t *count, Diags *diags);
/* The same, followed by the values of `example` for the other parameters */
bool run_arguments(Arena *arena, const PipecProgram *program, const PipecRunOptions *options,
                   Argument **all, size_t *count, Diags *diags);
/* The work of the last execution, as the manifest predicts it and as the emulator counted it;
 * false: a formula overflows */
bool run_work(const PipecRun *run, WorkTotals *expected, const RunResult **counted);
const char *arguments_text(Arena *arena, const Launch *launch); /* "X: f32[1000003], a = 2.5" */
const char *verdict_text(Arena *arena, const Verdict *verdict); /* one line */

#endif
