/* Several targets of a kernel, on devices of different generations: the best one is loaded on each,
 * what is chosen and kept for one is not used for another, and where none fits the error names all.
 */
#include "tests/unit/kernels.h"

#include "lib/targets.h"

#include <glob.h>
#include <sys/stat.h>

#define DEVICES "devices=4,capability=8.0:9.0:10.0:12.0"

static Standin *standin;
static char folder[] = "/tmp/pipec-targets-XXXXXX";

#define COPY(targets)                                                                              \
    "kernel copy(X: T[N], out Y: T[N]) for " targets " {\n"                                        \
    "    static T = f32 in {f32, bf16};\n"                                                         \
    "    static B = 128 in {128, 256};\n"                                                          \
    "    grid (t: ceil(N, B));\n"                                                                  \
    "    role all: 4 warps { for t in grid { Y[t*B + i] = X[t*B + i] for i in 0 .. B; } }\n"       \
    "}\n"

static PipecProgram *compiled(const char *text, const char *target) {
    PipecOptions options = {.size = sizeof options, .target = target, .any_variant = true};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    if (!EXPECT(pipec_program_status(program) == PIPEC_FINE))
        fputs(pipec_diagnostics_text(pipec_program_diagnostics(program)), stderr);
    return program;
}

/* Launches with f32, then with bf16, which a sibling is compiled for. */
static void launch_both(PipecKernel *kernel, const char *target) {
    for (int second = 0; second < 2; second++) {
        PipecArgument arguments[2] = {{.pointer = 1 << 20, .extents = {1000}},
                                      {.pointer = UINT64_C(1) << 40, .extents = {1000}}};
        for (int i = 0; i < 2; i++) arguments[i].type = second ? "bf16" : "f32";
        PipecLaunch launch = launch_of(arguments, 2);
        standin->launched[0] = 0;
        EXPECT(pipec_kernel_launch(kernel, &launch, NULL) == PIPEC_FINE);
        if (!EXPECT(strcmp(standin->launched, target) == 0))
            fprintf(stderr, "launched %s, not %s\n", standin->launched, target);
    }
}

/* wanted: the target that is loaded on the device; NULL: none fits */
static void loads_on(PipecProgram *program, int device, const char *wanted) {
    PipecKernel *kernel = NULL;
    bool fine = loads(program, device, &kernel, wanted ? PIPEC_FINE : PIPEC_UNUSABLE,
                      wanted ? NULL : "P0800");
    const char *best = pipec_program_target_on(program, device);
    EXPECT(wanted == NULL ? best == NULL : best != NULL && strcmp(best, wanted) == 0);
    if (!EXPECT(fine) || wanted == NULL) return;
    PipecKernelInfo info = {.size = sizeof info};
    pipec_kernel_info(kernel, &info);
    if (!EXPECT(strcmp(info.target, wanted) == 0 && strcmp(standin->loaded, wanted) == 0))
        fprintf(stderr, "device %d: %s, not %s\n", device, info.target, wanted);
    launch_both(kernel, wanted);
    PipecKernel *again;
    EXPECT(loads(program, device, &again, PIPEC_FINE, NULL) && again == kernel);
    pipec_kernel_free(again);
    pipec_kernel_free(kernel);
}

typedef struct Row {
    const char *text;
    const char *on[5]; /* the first device that can run one, then devices 0 to 3 */
} Row;

static const Row rows[] = {
    {COPY("sm_90a, sm_100a"), {"sm_90a", NULL, "sm_90a", "sm_100a", NULL}},
    {COPY("sm_100a, sm_90a"), {"sm_90a", NULL, "sm_90a", "sm_100a", NULL}},
    {COPY("sm_90a, sm_80"), {"sm_80", "sm_80", "sm_90a", "sm_80", "sm_80"}},
    {COPY("sm_80, sm_90, sm_90a"), {"sm_80", "sm_80", "sm_90a", "sm_90", "sm_90"}},
    {COPY("sm_100a, sm_103a"), {"sm_100a", NULL, NULL, "sm_100a", NULL}},
    {COPY("sm_103a, sm_89"), {"sm_89", NULL, "sm_89", "sm_89", "sm_89"}},
    {COPY("sm_90a"), {"sm_90a", NULL, "sm_90a", NULL, NULL}},
};

static void each_device(void) {
    standin_says(DEVICES);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        PipecProgram *program = compiled(rows[i].text, NULL);
        for (int device = -1; device < 4; device++)
            loads_on(program, device, rows[i].on[device + 1]);
        for (int device = 3; device >= -1; device--)
            loads_on(program, device, rows[i].on[device + 1]);
        pipec_program_free(program);
        EXPECT(standin_is_clean(standin));
    }
}

/* A target that is given is the only one. */
static void given(void) {
    standin_says(DEVICES);
    PipecProgram *program = compiled(COPY("sm_90a, sm_100a"), "sm_80");
    EXPECT(strcmp(pipec_program_target(program, 0), "sm_80") == 0);
    EXPECT(pipec_program_target(program, 1) == NULL);
    for (int device = -1; device < 4; device++) loads_on(program, device, "sm_80");
    pipec_program_free(program);
    program = compiled(COPY("sm_90a, sm_100a"), NULL);
    EXPECT(strcmp(pipec_program_target(program, 1), "sm_100a") == 0);
    EXPECT(pipec_program_target(program, 2) == NULL);
    EXPECT(strstr(pipec_program_head(program), ") for sm_90a, sm_100a") != NULL);
    pipec_program_free(program);
}

/* Of two targets that a device can run, that whose PTX the driver reads */
static void old_driver(void) {
    standin_says("capability=10.0,driver=12060");
    PipecProgram *program = compiled(COPY("sm_100a, sm_90"), NULL);
    loads_on(program, -1, "sm_90");
    pipec_program_free(program);
    PipecKernel *kernel;
    program = compiled(COPY("sm_100a, sm_103a"), NULL);
    EXPECT(loads(program, -1, &kernel, PIPEC_UNUSABLE, "P0800"));
    pipec_program_free(program);
}

static void no_device(void) {
    standin_says("capability=12.0");
    PipecKernel *kernel;
    PipecDiagnostics *said;
    PipecProgram *program = compiled(COPY("sm_90a, sm_100a"), NULL);
    EXPECT(pipec_kernel_load(program, -1, &kernel, &said) == PIPEC_UNUSABLE);
    EXPECT(strstr(pipec_diagnostics_text(said),
                  "no device can run sm_90a, which needs compute capability exactly 9.0, or "
                  "sm_100a, which needs compute capability exactly 10.0: device 0 is Stand-in "
                  "(12.0)") != NULL);
    pipec_diagnostics_free(said);
    pipec_program_free(program);
}

/* ---- variants -------------------------------------------------------------------------------- */

#define WORK "role all: 4 warps { for t in grid { Y[t*B + i] = X[t*B + i] for i in 0 .. B; } }"
static const char variants[] = "kernel copy(X: f32[N], out Y: f32[N]) for sm_90a, sm_80 {\n"
                               "    variant few for sm_80 { const B = 128;\n"
                               "        grid (t: ceil(N, B));\n        " WORK " }\n"
                               "    variant many { const B = 256;\n"
                               "        grid (t: ceil(N, B));\n        " WORK " }\n"
                               "    variant last for sm_100a { const B = 512;\n"
                               "        grid (t: ceil(N, B));\n        " WORK " }\n"
                               "}\n";

static unsigned blocks;
static void look(void **parameters, unsigned count) {
    (void)parameters;
    blocks = count;
}

/* A launch chooses among the variants that name the target of its device. */
static void variant_for(PipecProgram *program, int device, unsigned either, unsigned other) {
    PipecKernel *kernel;
    if (!EXPECT(loads(program, device, &kernel, PIPEC_FINE, NULL))) return;
    PipecArgument arguments[2] = {{.pointer = 1 << 20, .extents = {1024}},
                                  {.pointer = UINT64_C(1) << 40, .extents = {1024}}};
    PipecLaunch launch = launch_of(arguments, 2);
    standin->kernel = look;
    EXPECT(pipec_kernel_launch(kernel, &launch, NULL) == PIPEC_FINE);
    if (!EXPECT(blocks == either || blocks == other)) fprintf(stderr, "%u blocks\n", blocks);
    standin->kernel = NULL;
    pipec_kernel_free(kernel);
}

static void of_variants(void) {
    standin_says(DEVICES);
    PipecProgram *program = compiled(variants, NULL);
    EXPECT(strcmp(pipec_program_target(program, 0), "sm_80") == 0);
    variant_for(program, 0, 8, 4); /* few or many, for sm_80 */
    variant_for(program, 1, 4, 4); /* many, for sm_90a */
    variant_for(program, 2, 2, 2); /* last, for sm_100a */
    variant_for(program, 3, 8, 4);
    pipec_program_free(program);
    program = compiled(variants, "sm_90a"); /* those that name it */
    EXPECT(strcmp(pipec_program_compiled(program), "copy:many") == 0);
    pipec_program_free(program);
    program = compiled(variants, "sm_103a"); /* none names it: all are compiled for it */
    EXPECT(strcmp(pipec_program_compiled(program), "copy:few") == 0);
    EXPECT(strcmp(pipec_program_target(program, 0), "sm_103a") == 0);
    pipec_program_free(program);
}

/* ---- bundles --------------------------------------------------------------------------------- */

static size_t count_files(const char *pattern) {
    char path[128];
    glob_t found;
    snprintf(path, sizeof path, "%s/%s", folder, pattern);
    size_t count = glob(path, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    if (count > 0) globfree(&found);
    return count;
}

static void bundles(void) {
    static const char *const machines[] = {"h200"};
    static const PipecSizes sizes[] = {{"N", 1000, 1000}};
    PipecProgram *program = compiled(COPY("sm_90a, sm_80"), NULL);
    PipecBundleOptions options = {.size = sizeof options,
                                  .folder = folder,
                                  .sizes = sizes,
                                  .size_count = 1,
                                  .machines = machines,
                                  .machine_count = 1};
    size_t candidates = 0;
    EXPECT(pipec_program_bundle(program, &options, &candidates) == PIPEC_FINE && candidates == 2);
    pipec_program_free(program);
    EXPECT(count_files("copy.sm_90a.*.ptx") == 1 && count_files("copy.sm_80.*.ptx") == 1);
    standin_says(DEVICES);
    program = pipec_program_from_bundle(folder, NULL);
    static const char *const wanted[] = {"sm_80", "sm_90a", "sm_80", "sm_80"};
    for (int device = 0; device < 4; device++) {
        PipecKernel *kernel;
        PipecKernelInfo info = {.size = sizeof info};
        if (!EXPECT(loads(program, device, &kernel, PIPEC_FINE, NULL))) continue;
        pipec_kernel_info(kernel, &info);
        EXPECT(strcmp(info.target, wanted[device]) == 0);
        pipec_kernel_free(kernel);
    }
    pipec_program_free(program);
    PipecOptions one = {.size = sizeof one, .target = "sm_80"};
    program = pipec_program_from_bundle(folder, &one);
    EXPECT(strcmp(pipec_program_target(program, 0), "sm_80") == 0);
    pipec_program_free(program);
    one.target = "sm_100a";
    program = pipec_program_from_bundle(folder, &one);
    EXPECT(has_code(pipec_program_diagnostics(program), "P0936"));
    pipec_program_free(program);
}

/* ---- choices --------------------------------------------------------------------------------- */

/* What tuning and `choose --save` keep of one target is not that of another. */
static void keys_differ(void) {
    PipecProgram *two = compiled(COPY("sm_90a, sm_80"), NULL);
    PipecProgram *other = compiled(COPY("sm_90a, sm_80"), "sm_80");
    PipecProgram *one = compiled(COPY("sm_90a"), NULL), *named = compiled(COPY("sm_90a"), "sm_90a");
    PipecProgram *replaced = compiled(COPY("sm_90a"), "sm_80");
    EXPECT(targets_matter(two) && targets_matter(other) && targets_matter(replaced));
    EXPECT(!targets_matter(one) && !targets_matter(named));
    PipecProgram *all[] = {two, other, one, named, replaced};
    for (size_t i = 0; i < COUNT_OF(all); i++) pipec_program_free(all[i]);
}

int main(void) {
    setenv("PIPEC_CACHE", mkdtemp(folder), 1);
    standin = standin_open();
    each_device();
    each_device(); /* with what the first ones kept */
    given();
    old_driver();
    no_device();
    of_variants();
    bundles();
    keys_differ();
    EXPECT(standin_is_clean(standin));
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    EXPECT(system(command) == 0);
    return expect_failures();
}
