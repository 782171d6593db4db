/* lib: the open statics of a kernel, and their combinations as words. */
#include "lib/family.h"

#include <inttypes.h>
#include <string.h>

OpenStatics statics_open(Arena *arena, const Prog *constants, const PipecProgram *program) {
    OpenStatics open = {0};
    for (size_t i = 0; i < constants->constants.count; i++) {
        const Constant *constant = &constants->constants.items[i];
        OpenStatic one = {.name = constant->name};
        if (constant->choices.count == 0 || constant->is_type ||
            static_is_given(program, constant->name) || static_is_bound(program, constant->name))
            continue;
        for (size_t c = 0; c < constant->choices.count; c++) {
            bool twice = false;
            for (size_t k = 0; k < c; k++)
                twice = twice || constant->choices.items[k] == constant->choices.items[c];
            if (!twice) vec_push(arena, &one.values, constant->choices.items[c]);
        }
        vec_push(arena, &open, one);
    }
    return open;
}

size_t statics_combinations(const OpenStatics *open) {
    size_t count = 1;
    for (size_t i = 0; i < open->count && count <= COMBINATIONS_TRIED; i++)
        count *= open->items[i].values.count;
    return count <= COMBINATIONS_TRIED ? count : COMBINATIONS_TRIED + 1;
}

const char **statics_words(Arena *arena, const OpenStatics *open, size_t place) {
    const char **words = NEW_ARRAY(arena, const char *, open->count + 1);
    for (size_t i = open->count; i-- > 0;) {
        const OpenStatic *one = &open->items[i];
        words[i] = arena_printf(arena, "%s=%" PRId64, one->name,
                                one->values.items[place % one->values.count]);
        place /= one->values.count;
    }
    return words;
}

const char *statics_text(Arena *arena, const char *const *words, size_t count) {
    Str text = str_new(arena);
    str_add(&text, "");
    for (size_t i = 0; i < count; i++) str_printf(&text, "%s%s", i > 0 ? " " : "", words[i]);
    return text.text;
}
