/* lib: what the files of this floor share. Each object of the interface lives in an arena of its own; a call on it
 * runs under `attempt`, so that memory which runs out becomes a value. */
#ifndef PIPEC_LIB_PRIVATE_H
#define PIPEC_LIB_PRIVATE_H

#include "check/check.h"
#include "codegen/codegen.h"
#include "include/pipec.h"
#include "launch/launch.h"
#include "reference/reference.h"

_Static_assert(PIPEC_MAX_RANK == MAX_RANK && PIPEC_TEXT_MAX == SOURCE_MAX_BYTES,
               "one fact, said twice because pipec.h stands alone");

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* Runs work(data) with the arena's failures caught. False: memory ran out, and the work is half done. */
bool attempt(Arena *arena, void (*work)(void *), void *data);

/* ---- diagnostics ------------------------------------------------------------------------------------------------ */

struct PipecDiagnostics {
    PipecDiagnostic *items;
    size_t count, errors;
    const char *text, *coloured, *json;
    const Diags *diags; /* NULL: memory ran out before there were any */
};

extern const PipecDiagnostics no_diagnostics, no_memory; /* nothing to say; memory ran out */

/* Sorts them and makes their public form, in the arena of the diags. */
const PipecDiagnostics *diagnostics_publish(Diags *diags);
PipecStatus status_of_run(RunStatus status);

/* ---- programs --------------------------------------------------------------------------------------------------- */

#define FORMS_MAX 32

struct PipecProgram {
    Arena *arena;
    Names *names;
    const Source *source;
    const Ast *ast;   /* NULL where the text could not be had */
    const Prog *prog; /* NULL after errors, and where several kernels were checked */
    const Prog *whole; /* the same, also after errors: what the passes left; NULL: it was not even elaborated */
    const char *const *kernels;
    size_t kernel_count;
    const char *kernel; /* the one that was compiled, else NULL */
    const StaticValue *statics; /* given from outside */
    size_t static_count;
    const char **denied;   /* as they were given */
    size_t denied_count;
    Levels levels; /* of all diagnostics of the program, of its kernels and of its runs */
    Str ptx;            /* empty where it was not asked for */
    Manifest *manifest; /* NULL as well then */
    Diags *diags;
    const PipecDiagnostics *published;
    PipecStatus status;
    const char *manifest_text, *report, *times;
    const char *emitted[FORMS_MAX]; /* what was printed already, one a row of lib/forms.c */
};

/* Checks a kernel of the program with the statics that were given, then with every other combination
 * of the sets of the rest, `most` of them (0: as many as is usual), and reports all that `build`
 * would refuse (combinations.c). NULL after errors of the first; *whole: that one, also then. */
const Prog *combinations_check(Arena *arena, PipecProgram *program, const char *kernel,
                               size_t most, const Prog **whole);
bool static_is_given(const PipecProgram *program, const char *name);

/* The words of a run: its values, statics aside, and fills. False: said what is wrong. */
bool run_words(Arena *arena, const PipecProgram *program, const PipecRunOptions *options, Argument **given,
               size_t *count, Diags *diags);
/* ... and what `example` says of the rest */
bool run_arguments(Arena *arena, const PipecProgram *program, const PipecRunOptions *options, Argument **all,
                   size_t *count, Diags *diags);
const char *arguments_text(Arena *arena, const Launch *launch); /* "X: f32[1000003], a = 2.5" */
const char *verdict_text(Arena *arena, const Verdict *verdict); /* one line */

/* A file's bytes, or NULL and a diagnostic. "-" is standard input. */
const char *file_read(Arena *arena, const char *path, size_t *length, Diags *diags);

#endif
