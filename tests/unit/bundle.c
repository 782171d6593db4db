/* Bundles: launches without the source run what is in the bundle, which has all that is chosen for
 * its sizes; other sizes run the best that is in it, with one warning. A bundle that is damaged is
 * refused. */
#include "tests/unit/kernels.h"

#include <sys/stat.h>

static char folder[] = "/tmp/pipec-bundle-XXXXXX";

static const char text[] =
    "kernel copy(X: f32[N], out Y: f32[N]) for sm_90a {\n"
    "    variant slow {\n"
    "        static T = 32 in {32, 64};\n"
    "        grid (t: 1);\n"
    "        role all: 1 warp {\n"
    "            for t in grid { for p in 0 .. ceil(N, T) { Y[p*T + i] = X[p*T + i] for i in 0 .. "
    "T; "
    "} }\n"
    "        }\n"
    "    }\n"
    "    variant tiles {\n"
    "        static T = 128 in {128, 512, 1024, 2048};\n"
    "        requires N >= 500;\n"
    "        grid (t: ceil(N, T));\n"
    "        role all: 4 warps { for t in grid { Y[t*T + i] = X[t*T + i] for i in 0 .. T; } }\n"
    "    }\n"
    "}\n";

static unsigned launched;
static void look(void **parameters, unsigned blocks) {
    (void)parameters;
    launched = blocks;
}

static PipecProgram *compile_open(void) {
    PipecOptions options = {.size = sizeof options, .any_variant = true};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    return program;
}

static PipecStatus bundle(const PipecSizes *sizes, size_t count, size_t *candidates,
                          const char *code) {
    static const char *const machines[] = {"h200", "h100"};
    PipecProgram *program = compile_open();
    PipecBundleOptions options = {.size = sizeof options,
                                  .folder = folder,
                                  .sizes = sizes,
                                  .size_count = count,
                                  .machines = machines,
                                  .machine_count = 2};
    PipecStatus status = pipec_program_bundle(program, &options, candidates);
    const PipecDiagnostics *said = pipec_program_diagnostics(program);
    EXPECT(code == NULL ? pipec_diagnostics_count(said) == 0 : has_code(said, code));
    pipec_program_free(program);
    return status;
}

static PipecStatus launch_for(PipecKernel *kernel, int64_t n, bool *warned) {
    PipecArgument arguments[2] = {{.pointer = 1 << 20, .extents = {n}},
                                  {.pointer = UINT64_C(1) << 40, .extents = {n}}};
    PipecLaunch launch = launch_of(arguments, 2);
    PipecDiagnostics *said = NULL;
    launched = 0;
    PipecStatus status = pipec_kernel_launch(kernel, &launch, &said);
    *warned = said != NULL && has_code(said, "P0937");
    EXPECT(said == NULL || *warned);
    pipec_diagnostics_free(said);
    return status;
}

/* The index has what the model chooses for these machines. */
static void holds_choices(int64_t n) {
    static char index[1 << 20];
    char path[128], row[256];
    PipecProgram *source = compile_open();
    snprintf(path, sizeof path, "%s/bundle.json", folder);
    FILE *file = fopen(path, "r");
    if (EXPECT(file != NULL)) {
        index[fread(index, 1, sizeof index - 1, file)] = 0;
        fclose(file);
    }
    for (int i = 0; i < 2; i++) {
        PipecValue value = {.name = "N", .integer = n};
        PipecRunOptions data = {.size = sizeof data, .numbers = &value, .number_count = 1};
        PipecChooseOptions how = {.size = sizeof how, .machine = i == 0 ? "h200" : "h100"};
        PipecChoice choice = {.size = sizeof choice};
        pipec_program_free(pipec_program_chosen(source, &data, &how, &choice));
        snprintf(row, sizeof row, "{\"kernel\": \"%s\", \"values\": \"%s\"", choice.kernel,
                 choice.values);
        EXPECT(strstr(index, row) != NULL);
    }
    pipec_program_free(source);
}

static void launched_without_source(Standin *standin) {
    static const PipecSizes sizes[] = {{"N", 1, 600}, {"N", 100000, 100100}};
    size_t candidates = 0;
    EXPECT(bundle(sizes, 2, &candidates, NULL) == PIPEC_FINE && candidates >= 2 && candidates < 6);
    PipecProgram *from = pipec_program_from_bundle(folder, NULL);
    PipecKernel *kernel;
    bool warned;
    if (EXPECT(pipec_program_status(from) == PIPEC_FINE &&
               loads(from, 0, &kernel, PIPEC_FINE, NULL))) {
        for (int64_t n = 1; n <= 100100; n += n == 600 ? 99400 : 1)
            EXPECT(launch_for(kernel, n, &warned) == PIPEC_FINE && !warned && launched > 0);
        for (int64_t n = 1; n <= 100100; n += n == 586 ? 99450 : 45) holds_choices(n);
        EXPECT(launch_for(kernel, 5000, &warned) == PIPEC_FINE && warned && launched > 0);
        EXPECT(launch_for(kernel, 5000, &warned) == PIPEC_FINE && !warned);
        EXPECT(launch_for(kernel, 7000, &warned) == PIPEC_FINE && !warned);
        pipec_kernel_free(kernel);
    }
    pipec_program_free(from);
    EXPECT(standin_is_clean(standin));
}

/* What was unloaded is made again from the bundle. */
static void bounded(Standin *standin) {
    PipecOptions options = {.size = sizeof options, .loaded_most = 1};
    PipecProgram *from = pipec_program_from_bundle(folder, &options);
    PipecKernel *kernel;
    bool warned;
    if (EXPECT(loads(from, 0, &kernel, PIPEC_FINE, NULL))) {
        for (int64_t i = 0; i < 50; i++) {
            EXPECT(launch_for(kernel, i % 2 == 0 ? 10 : 100000, &warned) == PIPEC_FINE);
            EXPECT(standin->modules <= 2);
        }
        pipec_kernel_free(kernel);
    }
    pipec_program_free(from);
    EXPECT(standin_is_clean(standin));
}

static bool is_refused(const char *where) {
    PipecProgram *program = pipec_program_from_bundle(where, NULL);
    bool refused = pipec_program_status(program) == PIPEC_UNUSABLE &&
                   has_code(pipec_program_diagnostics(program), "P0936");
    pipec_program_free(program);
    return refused;
}

static void run(const char *format) {
    char command[256];
    snprintf(command, sizeof command, format, folder, folder, folder, folder);
    EXPECT(system(command) == 0);
}

static void refused(void) {
    static const PipecSizes many[] = {{"N", 1, 1000001}}, backwards[] = {{"N", 9, 1}},
                            other[] = {{"K", 1, 2}};
    EXPECT(bundle(many, 1, NULL, "P0935") == PIPEC_UNUSABLE);
    EXPECT(bundle(backwards, 1, NULL, "P0935") == PIPEC_UNUSABLE);
    EXPECT(bundle(other, 1, NULL, "P0935") == PIPEC_UNUSABLE);
    EXPECT(is_refused("/nowhere"));
    EXPECT(!is_refused(folder));
    run("mv %s/copy.0.ptx %s/away");
    EXPECT(is_refused(folder));
    run("head -c 100 %s/away > %s/copy.0.ptx");
    EXPECT(is_refused(folder)); /* P0923: it is another text */
    run("mv %s/away %s/copy.0.ptx && cp %s/bundle.json %s.index");
    EXPECT(!is_refused(folder));
    run("sed 's/pipec bundle/pipec tune/' %s.index > %s/bundle.json");
    EXPECT(is_refused(folder));
    run("head -c 3000 %s.index > %s/bundle.json");
    EXPECT(is_refused(folder));
    run("sed 's,copy.1.ptx,../copy.1.ptx,' %s.index > %s/bundle.json");
    EXPECT(is_refused(folder));
    run("mv %s.index %s/bundle.json");
    EXPECT(!is_refused(folder));
}

int main(void) {
    Standin *standin = standin_open();
    if (mkdtemp(folder) == NULL) return 1;
    setenv("PIPEC_PTXAS", "", 1);
    setenv("PIPEC_CACHE", "", 1);
    standin->kernel = look;
    launched_without_source(standin);
    bounded(standin);
    refused();
    run("rm -r %s");
    return expect_failures();
}
