/* lib: the key under which tuning keeps its choice for a program, and the program compiled again
 * with other values. */
#include "lib/tune.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Hash of the file's tokens, which ignores comments and layout, and of pipec's version */
const char *choice_source(Arena *arena, const PipecProgram *program) {
    Str text = str_new(arena);
    str_add(&text, "");
    ast_print(program->ast, &text);
    uint64_t version = fnv1a(FNV_START, PIPEC_VERSION, strlen(PIPEC_VERSION));
    return arena_printf(arena, "%016" PRIx64, fnv1a(version, text.text, text.length));
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const StaticValue *)a)->name, ((const StaticValue *)b)->name);
}

/* "BK=32", one per static that was given, sorted by name */
const char **choice_given(Arena *arena, const PipecProgram *program) {
    StaticValue *sorted = NEW_ARRAY(arena, StaticValue, program->static_count + 1);
    const char **words = NEW_ARRAY(arena, const char *, program->static_count + 1);
    for (size_t i = 0; i < program->static_count; i++) sorted[i] = program->statics[i];
    qsort(sorted, program->static_count, sizeof *sorted, by_name);
    for (size_t i = 0; i < program->static_count; i++)
        words[i] = sorted[i].is_type ? arena_printf(arena, "%s=%s", sorted[i].name,
                                                    element_rows[sorted[i].integer].spelling)
                   : sorted[i].is_integer
                       ? arena_printf(arena, "%s=%" PRId64, sorted[i].name, sorted[i].integer)
                       : arena_printf(arena, "%s=%.17g", sorted[i].name, sorted[i].number);
    return words;
}

static const char *given_text(Arena *arena, const PipecProgram *program) {
    Str text = str_new(arena);
    const char **words = choice_given(arena, program);
    str_add(&text, "");
    for (size_t i = 0; i < program->static_count; i++)
        str_printf(&text, "%s%s", i > 0 ? " " : "", words[i]);
    return text.text;
}

const char *choice_extents(Arena *arena, const Manifest *manifest, const int64_t *symbols) {
    Str text = str_new(arena);
    str_add(&text, "");
    for (size_t i = 0; i < manifest->symbols.count; i++)
        if (manifest->symbols.items[i].is_extent)
            str_printf(&text, "%s%s=%s", text.length > 0 ? " " : "",
                       manifest->symbols.items[i].name, extent_class(arena, symbols[i]));
    return text.text;
}

Choice choice_of_text(Arena *arena, const PipecProgram *program) {
    return (Choice){.source = choice_source(arena, program), .given = given_text(arena, program)};
}

Choice choice_key(Arena *arena, const PipecProgram *program, const char *kernel,
                  const Manifest *manifest, const int64_t *symbols, const char *device) {
    Choice key = choice_of_text(arena, program);
    key.kernel = kernel;
    key.device = device;
    key.extents = choice_extents(arena, manifest, symbols);
    return key;
}

/* ---- the same text with other values --------------------------------------------------------- */

static PipecProgram *again(const PipecProgram *program, const char *kernel,
                           const char *const *words, size_t count, bool any_variant) {
    PipecOptions options = {.size = sizeof options,
                            .name = program->source->name,
                            .kernel = kernel,
                            .values = words,
                            .value_count = count,
                            .denied = program->denied,
                            .denied_count = program->denied_count,
                            .watchdog = program->manifest->watchdog,
                            .any_variant = any_variant};
    return pipec_compile(program->source->text, program->source->length, &options);
}

PipecProgram *program_again(const PipecProgram *program, const char *kernel,
                            const char *const *words, size_t count) {
    return again(program, kernel, words, count, false);
}

PipecProgram *program_of_words(const PipecProgram *program, const char *kernel,
                               const char *const *words, size_t count) {
    return again(program, kernel, words, count, true);
}
