/* facts: what the model knows of every variant of a kernel and every combination of its statics.
 *
 *     facts FILE.pipe MACHINE < SIZES
 *
 * A line of SIZES has values of the extents ("M=1 N=2 K=3"). Prints for each candidate that can
 * run: the line's number from 0, its name as bench/shapes.py writes it, the predicted microseconds
 * without the correction, and the facts of launch/facts.def, separated by tabs. bench/fit.py reads
 * them. */
#include "lib/family.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/pipec.h"

#define LINE_MOST 4096

/* Values of the symbols by name; false: a word is no "NAME=NUMBER" */
static bool read_values(const Manifest *manifest, char *line, int64_t *symbols) {
    for (char *word = strtok(line, " \n"); word != NULL; word = strtok(NULL, " \n")) {
        char *value = strchr(word, '=');
        if (value == NULL) return false;
        *value++ = 0;
        for (size_t i = 0; i < manifest->symbols.count; i++)
            if (strcmp(manifest->symbols.items[i].name, word) == 0)
                symbols[i] = strtoll(value, NULL, 10);
    }
    return true;
}

static void print(int line, const Candidate *candidate, const Prediction *prediction) {
    const char *variant = strchr(candidate->kernel, ':');
    printf("%d\t%s%s%s\t%.9g", line, variant != NULL ? variant + 1 : "",
           variant != NULL ? ": " : "", candidate->values, prediction->seconds * 1e6);
    for (int f = 0; f < MODEL_FACTS; f++) printf("\t%.9g", (double)prediction->facts[f]);
    putchar('\n');
}

static void predict(Arena *arena, const Candidate *candidate, const DeviceArgument *arguments,
                    const MachineRow *machine, int line) {
    const Manifest *manifest = candidate->manifest;
    if (manifest == NULL) return;
    int64_t *symbols = NEW_ARRAY(arena, int64_t, manifest->symbols.count + 1), tiles;
    Diags *refused = diags_new(arena, NULL);
    Prediction prediction;
    if (!launch_bind(manifest, arguments, symbols, &tiles, refused)) return;
    model_predict(arena, manifest, work_values(arena, manifest, symbols), tiles, machine,
                  &prediction);
    if (prediction.seconds > 0) print(line, candidate, &prediction);
}

static bool predict_all(const Family *family, const Manifest *first, const MachineRow *machine,
                        int number, char *line) {
    Arena *arena = arena_new();
    int64_t *symbols = NEW_ARRAY(arena, int64_t, first->symbols.count + 1);
    DeviceArgument *arguments = NEW_ARRAY(arena, DeviceArgument, first->parameters.count + 1);
    bool fine = read_values(first, line, symbols) && family_arguments(first, symbols, arguments);
    for (size_t i = 0; fine && i < family->count; i++)
        predict(arena, &family->items[i], arguments, machine, number);
    arena_free(arena);
    return fine;
}

static int fail(const char *what, const char *of) {
    fprintf(stderr, "facts: %s: %s\n", of, what);
    return 2;
}

int main(int argc, char **argv) {
    const MachineRow *machine = argc == 3 ? machine_by_name(argv[2]) : NULL;
    if (machine == NULL) return fail("facts FILE.pipe h200|h100 < SIZES", "usage");
    PipecOptions options = {.size = sizeof options, .any_variant = true};
    PipecProgram *program = pipec_compile_file(argv[1], &options);
    bool fine = program != NULL && pipec_program_status(program) == PIPEC_FINE;
    const Family *family = fine ? family_of(program) : NULL;
    const Manifest *first = NULL;
    for (size_t i = 0; family != NULL && i < family->count && first == NULL; i++)
        first = family->items[i].manifest;
    if (first == NULL) return fail("no variant of it can be built", argv[1]);
    char line[LINE_MOST];
    for (int number = 0; fgets(line, sizeof line, stdin) != NULL; number++)
        if (!predict_all(family, first, machine, number, line))
            return fail("no extents of it", "the line on standard input");
    pipec_program_free(program);
    return 0;
}
