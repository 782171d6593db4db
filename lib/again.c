/* lib: a program compiled again, with the same text and options but other values. */
#include "lib/targets.h"
#include "lib/tune.h"

static PipecProgram *again(const PipecProgram *program, const char *kernel,
                           const char *const *words, size_t count, const char *target,
                           bool any_variant) {
    PipecOptions options = {.size = sizeof options,
                            .kernel = kernel,
                            .values = words,
                            .value_count = count,
                            .denied = program->denied,
                            .denied_count = program->denied_count,
                            .accepted = program->accepted,
                            .accepted_count = program->accepted_count,
                            .watchdog = program->watchdog,
                            .target = target,
                            .any_variant = any_variant};
    return program_compile_source(program->source, &options);
}

PipecProgram *program_again(const PipecProgram *program, const char *kernel,
                            const char *const *words, size_t count) {
    PipecProgram *made = again(program, kernel, words, count, targets_for(program, kernel), false);
    if (made == NULL || program->target != NULL || targets_reopen(made)) return made;
    pipec_program_free(made);
    return NULL;
}

PipecProgram *program_of_words(const PipecProgram *program, const char *kernel,
                               const char *const *words, size_t count) {
    const char *target = program->target != NULL ? program->target->name : NULL;
    return again(program, kernel, words, count, target, true);
}
