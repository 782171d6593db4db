/* Any bytes as a manifest: refused with one error, or printed and read again to the same text, and
 * its formulas can be evaluated. */
#include "launch/launch.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void evaluate(Arena *arena, const Manifest *manifest) {
    int64_t *symbols = NEW_ARRAY(arena, int64_t, manifest->symbols.count + 1), value;
    MapShape shape;
    for (size_t i = 0; i < manifest->symbols.count; i++) symbols[i] = (int64_t)i + 3;
    Prediction expected;
    model_predict(arena, manifest, work_values(arena, manifest, symbols), 100, machine_at(0),
                  &expected);
    (void)formula_eval(&manifest->tiles, symbols, &value);
    for (size_t i = 0; i < manifest->preconditions.count; i++)
        (void)formula_eval(&manifest->preconditions.items[i].condition, symbols, &value);
    for (size_t i = 0; i < manifest->maps.count; i++)
        (void)map_evaluate(&manifest->maps.items[i], symbols, &shape);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    Arena *arena = arena_new();
    Diags *diags = diags_new(arena, NULL);
    const Manifest *manifest = manifest_read(arena, (const char *)data, size, diags);
    if ((manifest == NULL) != (diags->errors == 1)) abort();
    if (manifest != NULL) {
        Str first = str_new(arena), second = str_new(arena);
        manifest_json(manifest, &first);
        const Manifest *again = manifest_read(arena, first.text, first.length, diags);
        if (again == NULL) abort();
        manifest_json(again, &second);
        if (strcmp(first.text, second.text) != 0) abort();
        evaluate(arena, manifest);
    }
    arena_free(arena);
    return 0;
}
