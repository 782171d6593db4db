/* Compiles by libpipec, several times to measure the time, loads once, and reads the parameters
 * from the manifest. */
#include "bench/variant.h"
#include "bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMPILATIONS 5
#define VALUES       16

static int fails(const Variant *variant, int status, const char *what) {
    fflush(stdout);
    fprintf(stderr, "bench: %s: %s%s", variant->name, what, strchr(what, '\n') != NULL ? "" : "\n");
    return status;
}

static int compile(Variant *variant) {
    const char *values[VALUES];
    PipecOptions options = {.size = sizeof options, .values = values, .untuned = true};
    char *text = variant->text;
    if (snprintf(text, sizeof variant->text, "%s", variant->name) >= (int)sizeof variant->text)
        return fails(variant, 2, "the name is too long");
    char *rest = strchr(text, ':');
    if (rest != NULL) *rest++ = 0;
    for (char *value = rest != NULL ? strtok(rest, ",") : NULL; value != NULL;
         value = strtok(NULL, ",")) {
        if (options.value_count == VALUES) return fails(variant, 2, "too many values");
        values[options.value_count++] = value;
    }
    double seconds[COMPILATIONS];
    for (int i = 0; i < COMPILATIONS; i++) {
        pipec_program_free(variant->program);
        double start = measure_cpu();
        variant->program = pipec_compile_file(text, &options);
        seconds[i] = measure_cpu() - start;
        if (variant->program == NULL) return fails(variant, 2, "no memory");
        PipecStatus status = pipec_program_status(variant->program);
        if (status != PIPEC_FINE)
            return fails(variant, (int)status,
                         pipec_diagnostics_text(pipec_program_diagnostics(variant->program)));
    }
    variant->compile_seconds = measure_median(seconds, COMPILATIONS);
    return 0;
}

static int fails_names(const Variant *variant, const char *const *known) {
    char text[256] = "has parameters other than";
    for (size_t i = 0; known[i] != NULL; i++) {
        size_t length = strlen(text);
        const char *between = i == 0 ? "" : known[i + 1] != NULL ? "," : " and";
        snprintf(text + length, sizeof text - length, "%s %s", between, known[i]);
    }
    return fails(variant, 2, text);
}

/* The objects between "parameters" and "arguments" of the manifest, one per parameter, each with
 * its name (docs/manifest.md) */
static int bind(Variant *variant, const char *const *known) {
    const char *manifest = pipec_program_manifest(variant->program);
    const char *at = manifest != NULL ? strstr(manifest, "\"parameters\"") : NULL;
    const char *end = at != NULL ? strstr(at, "\"arguments\"") : NULL;
    if (end == NULL) return fails(variant, 3, "its manifest has no parameters");
    while ((at = strstr(at, "{\"name\": \"")) != NULL && at < end) {
        char name[64] = "";
        size_t g = 0;
        if (sscanf(at, "{\"name\": \"%63[^\"]\"", name) != 1 ||
            variant->given_count == VARIANT_PARAMETERS)
            return fails(variant, 3, "its manifest lists parameters in an unknown format");
        while (known[g] != NULL && strcmp(known[g], name) != 0) g++;
        if (known[g] == NULL) return fails_names(variant, known);
        variant->given[variant->given_count++] = g;
        at++;
    }
    return 0;
}

bool variant_compile(Variant *variant, const char *name, const char *const *known) {
    *variant = (Variant){.name = name};
    variant->status = compile(variant);
    if (variant->status == 0) variant->status = bind(variant, known);
    return variant->status == 0;
}

void variant_open(Variant *variant, const char *name, const char *const *known) {
    if (!variant_compile(variant, name, known)) return;
    double start = measure_wall();
    PipecDiagnostics *diagnostics;
    variant->status = (int)pipec_kernel_load(variant->program, 0, &variant->kernel, &diagnostics);
    variant->load_seconds = measure_wall() - start;
    /* includes warnings: C75xx of the driver */
    if (diagnostics != NULL) fails(variant, 0, pipec_diagnostics_text(diagnostics));
    pipec_diagnostics_free(diagnostics);
}

void variant_close(Variant *variant) {
    pipec_kernel_free(variant->kernel);
    pipec_program_free(variant->program);
}

int variant_launch(Variant *variant, const PipecArgument *values, void *stream) {
    PipecArgument arguments[VARIANT_PARAMETERS] = {0};
    for (size_t i = 0; i < variant->given_count; i++) arguments[i] = values[variant->given[i]];
    PipecLaunch launch = {.size = sizeof launch,
                          .argument_size = sizeof *arguments,
                          .arguments = arguments,
                          .count = variant->given_count,
                          .stream = stream,
                          .programmatic = true};
    PipecDiagnostics *diagnostics;
    PipecStatus status = pipec_kernel_launch(variant->kernel, &launch, &diagnostics);
    if (status == PIPEC_FINE) return 0;
    fails(variant, (int)status, pipec_diagnostics_text(diagnostics));
    pipec_diagnostics_free(diagnostics);
    return (int)status;
}
