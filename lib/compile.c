/* lib: programs for the caller: what program.c compiles, and what is asked of all its candidates.
 */
#include "lib/invariant.h"

#include <string.h>

/* Refuses a program of which no candidate is invariant, each variant with its reason. */
static void refuse_all(PipecProgram *program, Diags *diags) {
    Arena *arena = program->arena;
    const char *own = invariant_fault(arena, program->manifest);
    if (own == NULL) return;
    bool chooses = !program->untuned && family_is_open(program);
    const Family *family = chooses ? family_of(program) : NULL;
    if (chooses && family == NULL) arena_fail(arena);
    for (size_t i = 0; family != NULL && i < family->count; i++)
        if (family->items[i].manifest != NULL &&
            invariant_fault(arena, family->items[i].manifest) == NULL)
            return;
    const char *name = program->open_kernel != NULL ? program->open_kernel : program->kernel;
    Diag *diag = diag_plain(diags, P0934, "no variant of kernel `%s` is invariant", name);
    diag_note(diags, diag, "`%s`: %s", program->kernel, own);
    for (size_t i = 1; family != NULL && i < family->count; i++)
        if (family->items[i].manifest != NULL &&
            strcmp(family->items[i].kernel, family->items[i - 1].kernel) != 0)
            diag_note(diags, diag, "`%s`: %s", family->items[i].kernel,
                      invariant_fault(arena, family->items[i].manifest));
    diag_help(diags, diag,
              "without `invariant` the order of a sum may depend on the number of rows");
}

static void check(void *data) {
    PipecProgram *program = data;
    size_t errors = program->diags->errors;
    refuse_all(program, program->diags);
    if (program->diags->errors == errors) return;
    program->manifest = NULL; /* what was generated is not used */
    program->description = NULL;
    program->ptx = str_new(program->arena);
    program_finish(program);
}

/* NULL: memory ran out */
static PipecProgram *checked(PipecProgram *program) {
    if (program == NULL || program->manifest == NULL || !program->invariant ||
        attempt(program->arena, check, program))
        return program;
    pipec_program_free(program);
    return NULL;
}

PIPEC_API PipecProgram *pipec_compile(const char *text, size_t length,
                                      const PipecOptions *options) {
    return checked(program_compile(text, length, options));
}

PIPEC_API PipecProgram *pipec_compile_file(const char *path, const PipecOptions *options) {
    return checked(program_compile_file(path, options));
}
