/* lib: which statics the tensors of a call decide, as the compilation finds them. */
#include "lib/tune.h"

#include <string.h>

bool choice_has_statics(const PipecProgram *program, const char *kernel) {
    for (size_t i = 0; i < program->given_count; i++)
        if (!check_is_static(program->ast, kernel, program->statics[i].name)) return false;
    return true;
}

bool static_is_bound(const PipecProgram *program, const char *name) {
    for (size_t i = 0; i < program->bound.count; i++)
        if (strcmp(program->bound.items[i].name, name) == 0) return true;
    return false;
}

const Constant *program_constant(const PipecProgram *program, const char *name) {
    for (size_t i = 0; i < program->prog->constants.count; i++)
        if (strcmp(program->prog->constants.items[i].name, name) == 0)
            return &program->prog->constants.items[i];
    return NULL;
}

void siblings_begin(PipecProgram *program) {
    Siblings all = {.names = NEW_ARRAY(program->arena, const char *, program->bound.count + 1),
                    .own = NEW_ARRAY(program->arena, int64_t, program->bound.count + 1)};
    for (size_t i = 0; i < program->bound.count; i++) {
        const char *name = program->bound.items[i].name;
        bool twice = static_is_given(program, name);
        for (size_t k = 0; k < all.count; k++) twice = twice || strcmp(all.names[k], name) == 0;
        const Constant *constant = program_constant(program, name);
        if (twice) continue;
        all.own[all.count] = constant != NULL ? constant->value->constant.integer : UNKNOWN;
        all.names[all.count++] = name;
    }
    if (all.count == 0 || program->untuned) return; /* untuned: the values of the text */
    all.arena = arena_new();
    program->siblings = NEW(program->arena, Siblings);
    *program->siblings = all;
    pthread_mutex_init(&program->siblings->lock, NULL); /* cannot fail: no attributes */
}
