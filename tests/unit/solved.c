/* Extents that no axis has alone: a launch solves them, from the source, from a manifest and from a
 * bundle; what has no solution is refused everywhere. */
#define PIPEC_OWN_MEMORY
#include "tests/unit/kernels.h"

#include <stdlib.h>

static char folder[] = "/tmp/pipec-solved-XXXXXX";

/* One block for each of B, K times; the variant depends on B. */
static const char text[] =
    "kernel odd(X: f32[2*B + 1, K - 1], out Y: f32[B + 2]) for sm_90a {\n"
    "    example B = 10, K = 3;\n"
    "    variant few { requires B <= 100; grid (b: B + 2);\n"
    "        role all: 1 warp { for b in grid { Y[b] = X[b, 0] + f32(K); } } }\n"
    "    variant many { requires B > 100; static R = 2 in {2, 4}; grid (b: ceil(B + 2, R));\n"
    "        role all: 1 warp { for b in grid { Y[b*R + i] = X[b*R + i, 0] for i in 0 .. R; } } }\n"
    "}\n";

enum { X, Y, PARAMETERS };

static unsigned launched;
static void look(void **parameters, unsigned blocks) {
    (void)parameters;
    launched = blocks;
}

static PipecProgram *compile_open(void) {
    PipecOptions options = {.size = sizeof options, .any_variant = true};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    if (!EXPECT(pipec_program_status(program) == PIPEC_FINE))
        fputs(pipec_diagnostics_text(pipec_program_diagnostics(program)), stderr);
    return program;
}

static bool infers(const PipecProgram *program, int64_t rows, int64_t columns, int64_t wanted,
                   const char *code) {
    bool given[PARAMETERS] = {[X] = true};
    PipecArgument arguments[PARAMETERS] = {[X] = {.extents = {rows, columns}}};
    PipecDiagnostics *said;
    PipecStatus status = pipec_program_infer(program, arguments, sizeof arguments[0], PARAMETERS,
                                             given, NULL, 0, &said);
    bool fine = code == NULL ? status == PIPEC_FINE && arguments[Y].extents[0] == wanted
                             : status == PIPEC_UNUSABLE && has_code(said, code);
    pipec_diagnostics_free(said);
    return fine;
}

static void inferred(void) {
    PipecProgram *program = compile_open();
    EXPECT(infers(program, 21, 2, 12, NULL) && infers(program, 1, 0, 2, NULL));
    EXPECT(infers(program, 20, 2, 0, "P0604"));
    EXPECT(infers(program, 0, 2, 0, "P0604"));
    EXPECT(infers(program, -1, 2, 0, "P0604")); /* B would be -1 */
    EXPECT(infers(program, INT64_MAX, 2, 0, "P0604"));
    pipec_program_free(program);
}

static bool runs(PipecKernel *kernel, int64_t rows, int64_t columns, int64_t out, unsigned blocks,
                 const char *code) {
    PipecArgument arguments[PARAMETERS] = {{.pointer = 1 << 20, .extents = {rows, columns}},
                                           {.pointer = UINT64_C(1) << 40, .extents = {out}}};
    PipecLaunch launch = launch_of(arguments, PARAMETERS);
    launched = 0;
    return launches(kernel, &launch, code) && launched == blocks;
}

static void launched_by(PipecProgram *program, bool chooses) {
    PipecKernel *kernel;
    if (!EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) return;
    EXPECT(runs(kernel, 21, 2, 12, 12, NULL) && runs(kernel, 1, 0, 2, 2, NULL));
    EXPECT(!chooses || runs(kernel, 2001, 2, 1002, 501, NULL) ||
           runs(kernel, 2001, 2, 1002, 251, NULL));
    EXPECT(runs(kernel, 20, 2, 12, 0, "P0604"));
    EXPECT(runs(kernel, 0, 2, 2, 0, "P0604"));
    EXPECT(runs(kernel, 21, 2, 11, 0, "P0604"));
    EXPECT(runs(kernel, 4294967291, 2, 12, 0, "P0605"));
    pipec_kernel_free(kernel);
}

/* A manifest of one variant */
static PipecProgram *again(char *(*change)(char *)) {
    PipecOptions options = {.size = sizeof options, .variant = "few"};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    size_t length;
    const char *ptx = pipec_program_ptx(program, &length);
    char *manifest = strdup(pipec_program_manifest(program));
    EXPECT(strstr(manifest, "\"format\": 3,") != NULL);
    EXPECT(strstr(manifest,
                  "{\"name\": \"B\", \"kind\": \"extent\", \"parameter\": \"X\", \"axis\": "
                  "0, \"times\": 2, \"plus\": 1") != NULL);
    EXPECT(strstr(manifest, "\"times\": 1, \"plus\": -1") != NULL);
    if (change != NULL) EXPECT(change(manifest) != NULL);
    PipecProgram *read = pipec_program_from(manifest, strlen(manifest), ptx, length, NULL);
    if (change == NULL) EXPECT(strcmp(pipec_program_manifest(read), manifest) == 0);
    free(manifest);
    pipec_program_free(program);
    return read;
}

static char *replace(char *manifest, const char *old, const char *new) {
    char *at = strstr(manifest, old);
    return at != NULL ? memcpy(at, new, strlen(new)) : NULL;
}

static char *no_times(char *manifest) { return replace(manifest, "\"times\": 2", "\"times\": 0"); }
static char *no_axis(char *manifest) {
    return replace(manifest, "\"axis\": 0, \"times\"", "\"axis\": 2, \"times\"");
}
static char *no_tensor(char *manifest) {
    return replace(manifest, "\"parameter\": \"X\", \"axis\": 0, \"t",
                   "\"parameter\": \"Z\", \"axis\": 0, \"t");
}
static char *another_line(char *manifest) {
    return replace(manifest, "\"times\": 2, \"plus\": 1", "\"times\": 1, \"plus\": 0");
}

static void manifests(void) {
    PipecProgram *program = again(NULL);
    EXPECT(pipec_program_status(program) == PIPEC_FINE && infers(program, 21, 2, 12, NULL));
    launched_by(program, false);
    pipec_program_free(program);
    static char *(*const changes[])(char *) = {no_times, no_axis, no_tensor};
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        program = again(changes[i]);
        EXPECT(has_code(pipec_program_diagnostics(program), "P0920"));
        pipec_program_free(program);
    }
    program = again(another_line); /* refused: the extent is not that of its formula */
    PipecKernel *kernel;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        EXPECT(runs(kernel, 21, 2, 12, 0, "P0604"));
        pipec_kernel_free(kernel);
    }
    pipec_program_free(program);
}

static void bundled(void) {
    static const char *const machines[] = {"h200"};
    static const PipecSizes sizes[] = {{"B", 0, 200}, {"B", 1000, 1000}, {"K", 1, 3}};
    PipecBundleOptions options = {.size = sizeof options,
                                  .folder = folder,
                                  .sizes = sizes,
                                  .size_count = COUNT_OF(sizes),
                                  .machines = machines,
                                  .machine_count = 1};
    size_t candidates;
    PipecProgram *program = compile_open();
    EXPECT(pipec_program_bundle(program, &options, &candidates) == PIPEC_FINE && candidates >= 2);
    pipec_program_free(program);
    program = pipec_program_from_bundle(folder, NULL);
    launched_by(program, true);
    pipec_program_free(program);
}

static void tuned(void) {
    static const char *const values[] = {"B=1000"};
    PipecTuneOptions options = {
        .size = sizeof options, .values = values, .value_count = 1, .machine = "h200"};
    PipecTrial best = {.size = sizeof best};
    char path[100];
    (void)snprintf(path, sizeof path, "%s/odd.pipe", folder);
    FILE *file = fopen(path, "w");
    if (!EXPECT(file != NULL)) return;
    fputs(text, file);
    fclose(file);
    PipecTune *tune = pipec_tune_file(path, &options);
    EXPECT(pipec_tune_status(tune) == PIPEC_FINE && pipec_tune_trial(tune, 0, &best));
    EXPECT(strcmp(best.kernel, "odd:many") == 0 && best.predicted > 0);
    pipec_tune_free(tune);
}

int main(void) {
    Standin *standin = standin_open();
    if (!EXPECT(mkdtemp(folder) != NULL)) return 1;
    setenv("PIPEC_CACHE", "", 1);
    standin->kernel = look;
    inferred();
    PipecProgram *program = compile_open();
    launched_by(program, true);
    pipec_program_free(program);
    manifests();
    bundled();
    tuned();
    EXPECT(standin_is_clean(standin));
    char command[100];
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command) != 0) perror(folder);
    return expect_failures();
}
