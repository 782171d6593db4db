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

/* B and K of a launch, by name; rows -1: none */
static bool named(const PipecProgram *program, int64_t rows, int64_t columns, int64_t out,
                  int64_t b, int64_t k) {
    PipecArgument arguments[PARAMETERS] = {{.extents = {rows, columns}}, {.extents = {out}}};
    PipecValue extents[3] = {{.name = ""}, {.name = ""}, {.name = "none"}};
    size_t found = pipec_program_extents(program, rows < 0 ? NULL : arguments, sizeof arguments[0],
                                         PARAMETERS, extents, 2);
    return found == 2 && strcmp(extents[0].name, "B") == 0 && strcmp(extents[1].name, "K") == 0 &&
           strcmp(extents[2].name, "none") == 0 && extents[0].integer == b &&
           extents[1].integer == k;
}

static void by_name(void) {
    PipecProgram *program = compile_open();
    PipecValue one = {.name = NULL};
    PipecArgument arguments[PARAMETERS] = {{.extents = {21, 2}}, {.extents = {11}}};
    EXPECT(named(program, -1, 0, 0, 0, 0) && named(program, 21, 2, 12, 10, 3));
    EXPECT(named(program, 1, 0, 2, 0, 1));
    EXPECT(pipec_program_extents(program, NULL, 0, 0, &one, 1) == 2 && strcmp(one.name, "B") == 0);
    EXPECT(pipec_program_extents(program, arguments, sizeof arguments[0], PARAMETERS, &one, 1) ==
           0);
    EXPECT(pipec_program_extents(program, arguments, sizeof arguments[0], 1, &one, 1) == 0);
    EXPECT(pipec_program_extents(program, arguments, 8, PARAMETERS, &one, 1) == 0);
    pipec_program_free(program);
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

/* ---- files ----------------------------------------------------------------------------------- */

/* N stands alone only in the output; M is a factor that another file has alone. */
static const char halves[] =
    "kernel halves(X: f32[2*N + 1], W: f32[M*N], out Y: f32[N], out Z: f32[M]) for sm_90a {\n"
    "    %s\n"
    "    grid (b: 1);\n"
    "    role all: 1 warp { for b in grid { for n in 0 .. N { Y[n] = f32(N); }\n"
    "                                       for m in 0 .. M { Z[m] = f32(M); } } }\n"
    "}\n";

static const char *saved(const char *name, int count) {
    static char paths[2][100];
    char *path = paths[name[0] == 'w'];
    char head[] = "\x93NUMPY\x01\x00\x76\x00";
    (void)snprintf(path, sizeof paths[0], "%s/%s.npy", folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(head, 1, 10, file) != 10) return "";
    fprintf(file, "{'descr': '<f4', 'fortran_order': False, 'shape': (%9d,), }%*s\n", count, 52,
            "");
    for (int i = 0; i < count; i++) (void)fwrite(&(float){0}, 4, 1, file);
    fclose(file);
    return path;
}

/* The arguments of a run on files with so many elements; w 0: no file of W; `name`: a number. The
 * code of an error otherwise. */
static bool binds(const char *example, int x, int w, const char *name, const char *wanted) {
    char source[1000], words[3][120] = {"", "", ""};
    const char *values[3] = {words[0]};
    size_t count = 1;
    (void)snprintf(source, sizeof source, halves, example);
    (void)snprintf(words[0], sizeof words[0], "X=%s", saved("x", x));
    if (w > 0) {
        (void)snprintf(words[1], sizeof words[1], "W=%s", saved("w", w));
        values[count++] = words[1];
    }
    if (name != NULL) values[count++] = name;
    PipecProgram *program = compile(source);
    PipecRunOptions options = {.size = sizeof options, .values = values, .value_count = count};
    PipecRun *run = pipec_run_new(program, &options);
    bool is_code = wanted[0] == 'P';
    bool fine = is_code ? has_code(pipec_run_diagnostics(run), wanted)
                        : strcmp(pipec_run_arguments(run), wanted) == 0;
    if (!fine)
        fprintf(stderr, "%s: %s\n%s", wanted, pipec_run_arguments(run),
                pipec_diagnostics_text(pipec_run_diagnostics(run)));
    pipec_run_free(run);
    pipec_program_free(program);
    return fine;
}

static void files(void) {
    static const char *const examples[] = {"", "example N = 64, M = 3;"};
    for (size_t i = 0; i < COUNT_OF(examples); i++) {
        EXPECT(binds(examples[i], 21, 40, NULL, "X: f32[21], W: f32[40], Y: f32[10], Z: f32[4]"));
        EXPECT(binds(examples[i], 21, 0, "M=5", "X: f32[21], W: f32[50], Y: f32[10], Z: f32[5]"));
        EXPECT(binds(examples[i], 21, 40, "N=10", "X: f32[21], W: f32[40], Y: f32[10], Z: f32[4]"));
        EXPECT(binds(examples[i], 21, 40, "N=11", "P0604"));
        EXPECT(binds(examples[i], 20, 40, NULL, "P0604"));
        EXPECT(binds(examples[i], 21, 41, NULL, "P0604"));
        EXPECT(binds(examples[i], 21, 40, "M=5", "P0604"));
    }
    EXPECT(binds(examples[0], 21, 0, NULL, "P0603"));
    EXPECT(binds(examples[1], 21, 0, NULL, "X: f32[21], W: f32[30], Y: f32[10], Z: f32[3]"));
}

/* ---- launches -------------------------------------------------------------------------------- */

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
    by_name();
    files();
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
