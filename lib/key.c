/* lib: the key under which tuning keeps its choice for a program: what a choice depends on. */
#include "lib/targets.h"
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
    if (targets_matter(program))
        str_printf(&text, "target=%s%s", program->prog->target->name,
                   program->static_count > 0 ? " " : "");
    for (size_t i = 0; i < program->static_count; i++)
        str_printf(&text, "%s%s", i > 0 ? " " : "", words[i]);
    return text.text;
}

const char *choice_extents(Arena *arena, const Manifest *manifest, const int64_t *symbols) {
    Str text = str_new(arena);
    str_add(&text, "");
    for (size_t i = 0; i < manifest->symbols.count; i++)
        if (manifest->symbols.items[i].is_extent)
            str_printf(&text, "%s%s=%" PRId64, text.length > 0 ? " " : "",
                       manifest->symbols.items[i].name, symbols[i]);
    return text.text;
}

Choice choice_of_text(Arena *arena, const PipecProgram *program) {
    return (Choice){.source = choice_source(arena, program), .given = given_text(arena, program)};
}

/* "M=4096 K=64": the value of the name; false: it is not there, or no number */
static bool value_in(const char *words, const char *name, int64_t *value) {
    size_t length = strlen(name);
    for (const char *at = words; *at != 0; at += strcspn(at, " "), at += strspn(at, " ")) {
        char *end;
        if (strncmp(at, name, length) != 0 || at[length] != '=') continue;
        *value = strtoll(at + length + 1, &end, 10);
        return end > at + length + 1 && (*end == 0 || *end == ' ');
    }
    return false;
}

bool choice_is_near(const Choice *choice, const Manifest *manifest, const int64_t *symbols,
                    double within) {
    for (size_t i = 0; i < manifest->symbols.count; i++) {
        int64_t value;
        if (!manifest->symbols.items[i].is_extent) continue;
        if (!value_in(choice->extents, manifest->symbols.items[i].name, &value)) return false;
        double a = (double)value, b = (double)symbols[i];
        if (a > b * (1 + within) || b > a * (1 + within)) return false;
    }
    return true;
}
