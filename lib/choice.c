/* lib: which choice of tuning holds for a program: its key, and the look-up before a run. */
#include "lib/tune.h"

#include "runtime/runtime.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a */
static uint64_t hash(uint64_t from, const char *text) {
    for (; *text != 0; text++) from = (from ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return from;
}

/* Of what the file says, comments and layout aside, and of the pipec that compiles it */
static const char *source_hash(Arena *arena, const PipecProgram *program) {
    Str text = str_new(arena);
    str_add(&text, "");
    ast_print(program->ast, &text);
    return arena_printf(arena, "%016" PRIx64, hash(hash(UINT64_C(0xcbf29ce484222325), PIPEC_VERSION), text.text));
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const StaticValue *)a)->name, ((const StaticValue *)b)->name);
}

static const char *given_text(Arena *arena, const PipecProgram *program) {
    Str text = str_new(arena);
    StaticValue *sorted = NEW_ARRAY(arena, StaticValue, program->static_count + 1);
    str_add(&text, "");
    for (size_t i = 0; i < program->static_count; i++) sorted[i] = program->statics[i];
    qsort(sorted, program->static_count, sizeof *sorted, by_name);
    for (size_t i = 0; i < program->static_count; i++) {
        str_printf(&text, "%s%s=", i > 0 ? " " : "", sorted[i].name);
        if (sorted[i].is_integer)
            str_printf(&text, "%" PRId64, sorted[i].integer);
        else
            str_printf(&text, "%.17g", sorted[i].number);
    }
    return text.text;
}

static const char *classes_text(Arena *arena, const Manifest *manifest, const int64_t *symbols) {
    Str text = str_new(arena);
    str_add(&text, "");
    for (size_t i = 0; i < manifest->symbols.count; i++)
        if (manifest->symbols.items[i].is_extent)
            str_printf(&text, "%s%s=%s", text.length > 0 ? " " : "", manifest->symbols.items[i].name,
                       extent_class(arena, symbols[i]));
    return text.text;
}

Choice choice_key(Arena *arena, const PipecProgram *program, const Manifest *manifest, const int64_t *symbols,
                  const char *device) {
    return (Choice){.kernel = program->kernel,
                    .source = source_hash(arena, program),
                    .given = given_text(arena, program),
                    .device = device,
                    .extents = classes_text(arena, manifest, symbols)};
}

bool static_is_given(const PipecProgram *program, const char *name) {
    for (size_t i = 0; i < program->static_count; i++)
        if (strcmp(program->statics[i].name, name) == 0) return true;
    return false;
}

/* ---- the look-up ---------------------------------------------------------------------------------------------------- */

typedef struct LookUp {
    PipecProgram *program;
    const PipecRunOptions *options;
    int device;
    PipecChoice *choice;
    bool found;
} LookUp;

static bool may_be_tuned(const PipecProgram *program) {
    for (size_t i = 0; i < program->prog->constants.count; i++) {
        const Constant *constant = &program->prog->constants.items[i];
        if (constant->choices.count > 0 && !static_is_given(program, constant->name)) return true;
    }
    return false;
}

/* The words of `values`, apart */
static void take_apart(Arena *arena, const Choice *from, PipecChoice *choice) {
    VEC(const char *) words = {0};
    for (const char *at = from->values; *at != 0; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        vec_push(arena, &words, arena_copy(arena, at, length));
        at += length;
    }
    *choice = (PipecChoice){words.items, words.count, from->values, from->extents, from->device};
}

static void look_up(void *data) {
    LookUp *it = data;
    PipecProgram *program = it->program;
    Arena *arena = program->arena;
    const Manifest *manifest = program->manifest;
    const char *why, *file = cache_file(arena, &why), *device;
    Argument *all;
    size_t count;
    /* what is wrong with the arguments is said by the run that follows */
    Diags *diags = diags_new(arena, program->source), *silent = diags_new(arena, program->source);
    int64_t *symbols = NEW_ARRAY(arena, int64_t, manifest->symbols.count + 1);
    if (file == NULL || !may_be_tuned(program) || !cache_is_there(file)) return;
    device = runtime_find(arena, it->device - 1, manifest->target, manifest->ptx_major, manifest->ptx_minor);
    if (device == NULL || !run_arguments(arena, program, it->options, &all, &count, silent) ||
        !launch_symbols(arena, manifest, all, count, symbols, silent))
        return;
    Choice key = choice_key(arena, program, manifest, symbols, device);
    const Choice *choice = cache_find(arena, file, &key, diags);
    program->published = diagnostics_publish(diags);
    if (choice == NULL) return;
    take_apart(arena, choice, it->choice);
    it->found = true;
}

PIPEC_API bool pipec_program_tuned(PipecProgram *program, const PipecRunOptions *options, int device,
                                   PipecChoice *choice) {
    static const PipecRunOptions plain;
    LookUp it = {program, options != NULL ? options : &plain, device, choice, false};
    program->published = &no_diagnostics;
    if (program->manifest == NULL) return false;
    if (!attempt(program->arena, look_up, &it)) program->published = &no_memory;
    return it.found;
}
