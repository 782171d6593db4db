/* lib: the candidates that add alike, whatever the number of rows. Two candidates add in one order
 * if they are one, or if they are of one variant, whose expressions are the same, and add with the
 * same matrix instructions in the same loops. The order of a launch is that of the first candidate
 * that can run for one row and for many with the launch's other extents: so it does not depend on
 * the rows. */
#include "lib/invariant.h"

#include "lib/fixed.h"

#include <string.h>

#define MANY (INT64_C(1) << 20) /* rows */

const char *invariant_fault(Arena *arena, const Manifest *manifest) {
    for (size_t i = 0; i < manifest->sums.count; i++)
        if (manifest->sums.items[i].why != NULL)
            return arena_printf(arena, "its sum %s: %s", manifest->sums.items[i].text,
                                manifest->sums.items[i].why);
    return NULL;
}

bool invariant_alike(const Candidate *a, const Candidate *b) {
    if (a == b) return true;
    const Manifest *x = a->manifest, *y = b->manifest;
    if (x == NULL || y == NULL || strcmp(a->kernel, b->kernel) != 0 ||
        x->sums.count != y->sums.count)
        return false;
    for (size_t i = 0; i < x->sums.count; i++)
        if (x->sums.items[i].threads || strcmp(x->sums.items[i].text, y->sums.items[i].text) != 0)
            return false;
    return true;
}

/* Can it run with so many rows? `symbols`: of the launch */
static bool fits(Arena *words, const Manifest *manifest, const int64_t *symbols, int64_t rows) {
    size_t count = manifest->symbols.count;
    int64_t *probe = NEW_ARRAY(words, int64_t, count + 1), tiles;
    DeviceArgument *arguments = NEW_ARRAY(words, DeviceArgument, manifest->parameters.count + 1);
    for (size_t i = 0; i < count; i++)
        probe[i] = manifest->symbols.items[i].is_row ? rows : symbols[i];
    return family_arguments(manifest, probe, arguments) &&
           launch_bind(manifest, arguments, probe, &tiles, diags_new(words, NULL));
}

const Candidate *invariant_reference(const Family *family, const DeviceArgument *arguments,
                                     Arena *words) {
    int64_t tiles, *symbols = NEW_ARRAY(words, int64_t, family->symbols + 1);
    for (size_t i = 0; i < family->count; i++) {
        const Manifest *manifest = family->items[i].manifest;
        if (manifest == NULL || invariant_fault(words, manifest) != NULL) continue;
        /* sets the symbols, also if a precondition does not hold */
        (void)launch_bind(manifest, arguments, symbols, &tiles, diags_new(words, NULL));
        if (fits(words, manifest, symbols, 1) && fits(words, manifest, symbols, MANY))
            return &family->items[i];
    }
    return NULL;
}

void limits_report(const PipecProgram *program, const Limits *limits, Diags *diags) {
    if (limits->fixed != NULL) {
        fixed_report(program, limits->fixed, limits->why, diags);
        return;
    }
    const char *name = program->open_kernel != NULL ? program->open_kernel : program->kernel;
    Diag *diag = diag_plain(diags, P0934, "kernel `%s` cannot be invariant here", name);
    diag_note(diags, diag, "%s", limits->why);
    diag_help(diags, diag,
              "without `invariant` the order of a sum may depend on the number of rows");
}
