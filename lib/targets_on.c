/* lib: the program for the target of a device. A program is compiled for one target; it has a
 * program for each other one of its kernel, compiled when a device needs it. */
#include "lib/targets.h"

#include "lib/bundle.h"
#include "lib/tune.h"

#include <string.h>

typedef struct Making {
    PipecProgram *program, *made;
    const Target *target;
    Arena *words;
} Making;

static void compile(void *data) {
    Making *it = data;
    PipecProgram *program = it->program;
    PipecOptions options = {.size = sizeof options,
                            .kernel = program->open_kernel != NULL ? program->open_kernel
                                                                   : program->kernel,
                            .values = choice_given(it->words, program),
                            .value_count = program->static_count,
                            .denied = program->denied,
                            .denied_count = program->denied_count,
                            .accepted = program->accepted,
                            .accepted_count = program->accepted_count,
                            .watchdog = program->watchdog,
                            .untuned = program->untuned,
                            .invariant = program->invariant,
                            .loaded_most = program->loaded_most,
                            .patience = program->patience,
                            .target = it->target->name,
                            .any_variant = true};
    it->made = program->bundle != NULL ? bundle_for(program, it->target->name)
                                       : program_compile_source(program->source, &options);
    if (it->made == NULL) return;
    it->made->fixed = program->fixed;
    it->made->fixed_file = program->fixed_file;
}

PipecProgram *targets_program(PipecProgram *program, const Target *target) {
    if (strcmp(program->manifest->target, target->name) == 0) return program;
    pthread_mutex_lock(&program->lock);
    PipecProgram *at = program->others;
    while (at != NULL && at->target != target) at = at->next_other;
    Making it = {.program = program, .target = target};
    if (at == NULL && (it.words = arena_new()) != NULL) {
        (void)attempt(it.words, compile, &it);
        arena_free(it.words);
        at = it.made;
        if (at != NULL) at->target = target, at->next_other = program->others, program->others = at;
    }
    pthread_mutex_unlock(&program->lock);
    return at;
}

static int pick(const PipecProgram *program, int device, Arena *words, RuntimeLack *lack,
                const char **why) {
    const Targets *targets = &program->targets;
    RuntimeTarget *rows = NEW_ARRAY(words, RuntimeTarget, targets->count + 1);
    for (size_t i = 0; i < targets->count; i++)
        rows[i] = (RuntimeTarget){targets->items[i]->name, targets->items[i]->ptx_major,
                                  targets->items[i]->ptx_minor};
    return runtime_pick(words, device, rows, (int)targets->count, lack, why);
}

PIPEC_API const char *pipec_program_target(const PipecProgram *program, size_t index) {
    if (program->manifest == NULL) return NULL;
    if (program->targets.count < 2) return index == 0 ? program->manifest->target : NULL;
    return index < program->targets.count ? program->targets.items[index]->name : NULL;
}

typedef struct Picking {
    const PipecProgram *program;
    Arena *words;
    int device, best;
} Picking;

static void pick_only(void *data) {
    Picking *it = data;
    RuntimeLack lack;
    const char *why;
    const Manifest *manifest = it->program->manifest;
    RuntimeTarget own = {manifest->target, manifest->ptx_major, manifest->ptx_minor};
    it->best = it->program->targets.count < 2
                   ? runtime_pick(it->words, it->device, &own, 1, &lack, &why)
                   : pick(it->program, it->device, it->words, &lack, &why);
}

PIPEC_API const char *pipec_program_target_on(PipecProgram *program, int device) {
    Picking it = {.program = program, .words = arena_new(), .device = device, .best = -1};
    if (it.words == NULL || program->manifest == NULL || !attempt(it.words, pick_only, &it))
        it.best = -1;
    arena_free(it.words);
    return it.best < 0 ? NULL : pipec_program_target(program, (size_t)it.best);
}

PipecProgram *targets_on(PipecProgram *program, int device, Arena *words, RuntimeLack *lack,
                         const char **why) {
    *lack = RUNTIME_FINE;
    *why = NULL;
    if (program->targets.count < 2 || program->manifest == NULL) return program;
    int best = pick(program, device, words, lack, why);
    return best < 0 ? NULL : targets_program(program, program->targets.items[best]);
}

Runtime *targets_open(Arena *arena, const PipecProgram *program, int device, RuntimeLack *lack,
                      const char **why) {
    const Manifest *manifest = program->manifest;
    Runtime *runtime = runtime_open(arena, device, manifest->target, manifest->ptx_major,
                                    manifest->ptx_minor, lack, why);
    if (runtime != NULL || *lack != RUNTIME_WRONG_DEVICE || program->targets.count < 2)
        return runtime;
    RuntimeLack all;
    const char *none;
    if (pick(program, device, arena, &all, &none) < 0) *why = none;
    return NULL;
}
