/* Choices that a file fixes: launches with its extents run what it says, or are refused; other
 * extents are chosen as usual. A file that is damaged, or of another text, is an error. */
#include "tests/unit/kernels.h"

#include <sys/stat.h>

static char folder[] = "/tmp/pipec-fixed-XXXXXX";

/* All variants take these lengths; the model prefers `fast` */
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
    "    variant fast {\n"
    "        grid (t: ceil(N, 1024));\n"
    "        role all: 4 warps { for t in grid { Y[t*1024 + i] = X[t*1024 + i] for i in 0 .. 1024; "
    "} }\n"
    "    }\n"
    "    variant copies {\n"
    "        requires N % 4 == 0;\n"
    "        grid (t: ceil(N, 256));\n"
    "        pipe p[2] load -> store { x: f32[256]; }\n"
    "        role load: 1 warp { for t in grid { produce <p> as s { s.x[i] = X[t*256 + i]; } } }\n"
    "        role store: 1 warp { for t in grid { consume <p> as s { Y[t*256 + i] = s.x[i]; } } }\n"
    "    }\n"
    "}\n";

static const char lengths[] =
    "kernel rows(X: f32[M, D], out Y: f32[M, D]) for sm_90a {\n"
    "    static D = 64, T = 32 in {32, 64};\n"
    "    grid (m: M, d: ceil(D, T));\n"
    "    role all: 1 warp {\n"
    "        for (m, d) in grid { Y[m, d*T + i] = X[m, d*T + i] for i in 0 .. T; }\n"
    "    }\n"
    "}\n";

static unsigned launched;
static void look(void **parameters, unsigned blocks) {
    (void)parameters;
    launched = blocks;
}

static const char *path_of(const char *name) {
    static char path[2][128];
    static int next;
    next = !next;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

static void write_file(const char *name, const char *bytes, size_t length) {
    FILE *file = fopen(path_of(name), "w");
    if (EXPECT(file != NULL)) {
        fwrite(bytes, 1, length, file);
        fclose(file);
    }
}

static size_t read_file(const char *name, char *out, size_t room) {
    FILE *file = fopen(path_of(name), "r");
    size_t length = file != NULL ? fread(out, 1, room - 1, file) : 0;
    if (file != NULL) fclose(file);
    out[length] = 0;
    return length;
}

/* The best of the variant, or of all, for these words, is added to c.json */
static PipecStatus save(const char *source, const char *variant, const char *const *words,
                        size_t count, const char *code) {
    write_file("k.pipe", source, strlen(source));
    PipecTuneOptions options = {.size = sizeof options,
                                .variant = variant,
                                .values = words,
                                .value_count = count,
                                .machine = "h200",
                                .save = path_of("c.json")};
    PipecTune *tune = pipec_tune_file(path_of("k.pipe"), &options);
    PipecStatus status = pipec_tune_status(tune);
    EXPECT(code == NULL || has_code(pipec_tune_diagnostics(tune), code));
    pipec_tune_free(tune);
    return status;
}

static bool saves(const char *source, const char *variant, const char *word) {
    return save(source, variant, &word, 1, NULL) == PIPEC_FINE;
}

static PipecProgram *compile_fixed(const char *source, const char *name, PipecOptions options) {
    options.size = sizeof options;
    options.any_variant = options.variant == NULL;
    options.choices = path_of(name);
    return pipec_compile(source, strlen(source), &options);
}

/* True: the file is refused with this code; NULL: it is taken */
static bool is_refused(const char *source, const char *name, const char *code) {
    PipecProgram *program = compile_fixed(source, name, (PipecOptions){0});
    PipecStatus status = pipec_program_status(program);
    bool fine = code == NULL ? status == PIPEC_FINE
                             : status == PIPEC_UNUSABLE &&
                                   has_code(pipec_program_diagnostics(program), code);
    if (!fine) fputs(pipec_diagnostics_text(pipec_program_diagnostics(program)), stderr);
    pipec_program_free(program);
    return fine;
}

static bool launch_for(PipecKernel *kernel, int64_t n, uint64_t address, const char *code) {
    PipecArgument arguments[2] = {{.pointer = address, .extents = {n}},
                                  {.pointer = UINT64_C(1) << 40, .extents = {n}}};
    PipecLaunch launch = launch_of(arguments, 2);
    launched = 0;
    return launches(kernel, &launch, code);
}

static void obeyed(void) {
    EXPECT(saves(text, "slow", "N=100000") && saves(text, "copies", "N=8000"));
    EXPECT(saves(text, "copies", "N=300000") && saves(text, "slow", "N=300000")); /* replaced */
    PipecProgram *program = compile_fixed(text, "c.json", (PipecOptions){0});
    PipecKernel *kernel;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        for (int round = 0; round < 2; round++) {
            EXPECT(launch_for(kernel, 100000, 1 << 20, NULL) && launched == 1);
            EXPECT(launch_for(kernel, 300000, 1 << 20, NULL) && launched == 1);
            EXPECT(launch_for(kernel, 8000, 1 << 20, NULL) && launched == 32);
            EXPECT(launch_for(kernel, 200000, 1 << 20, NULL) && launched == 196); /* chosen */
            /* no tensor map takes this address */
            EXPECT(launch_for(kernel, 8000, (1 << 20) + 4, "P0933"));
        }
        pipec_kernel_free(kernel);
    }
    pipec_program_free(program);
}

static void of_runs(void) {
    PipecProgram *program = compile_fixed(text, "c.json", (PipecOptions){0});
    PipecChoice choice = {.size = sizeof choice};
    const char *words[] = {"N=100000", "N=200000"};
    for (size_t i = 0; i < 2; i++) {
        PipecRunOptions data = {.size = sizeof data, .values = &words[i], .value_count = 1};
        PipecChooseOptions how = {.size = sizeof how, .machine = "h200"};
        pipec_program_free(pipec_program_chosen(program, &data, &how, &choice));
        EXPECT(strcmp(choice.kernel, i == 0 ? "copy:slow" : "copy:fast") == 0);
        EXPECT(i == 0 ? strcmp(choice.fixed, path_of("c.json")) == 0 : choice.fixed == NULL);
    }
    pipec_program_free(program);
    /* a variant that is named, and the one that is fixed */
    PipecRunOptions data = {.size = sizeof data, .values = words, .value_count = 1};
    program = compile_fixed(text, "c.json", (PipecOptions){.variant = "slow"});
    pipec_program_free(pipec_program_chosen(program, &data, NULL, &choice));
    EXPECT(choice.fixed != NULL);
    pipec_program_free(program);
}

/* Lengths that tensors decide have choices of their own. */
static void siblings(void) {
    static const char *const words[2][2] = {{"M=10", "D=100"}, {"M=10", "D=128"}};
    remove(path_of("c.json"));
    for (int i = 0; i < 2; i++) EXPECT(save(lengths, NULL, words[i], 2, NULL) == PIPEC_FINE);
    PipecProgram *program = compile_fixed(lengths, "c.json", (PipecOptions){0});
    PipecKernel *kernel;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        for (int64_t d = 99; d <= 101; d++) {
            PipecArgument arguments[2] = {{.pointer = 1 << 20, .extents = {10, d}},
                                          {.pointer = UINT64_C(1) << 40, .extents = {10, d}}};
            PipecLaunch launch = launch_of(arguments, 2);
            EXPECT(launches(kernel, &launch, NULL) && launched > 0);
        }
        pipec_kernel_free(kernel);
    }
    pipec_program_free(program);
}

static void refused(void) {
    char good[4096], bad[4096];
    remove(path_of("c.json"));
    EXPECT(saves(text, NULL, "N=1000"));
    size_t length = read_file("c.json", good, sizeof good);
    EXPECT(is_refused(text, "c.json", NULL));
    EXPECT(is_refused(text, "missing.json", "P0931"));
    for (size_t cut = 0; cut + 1 < length; cut += 7) {
        write_file("cut.json", good, cut);
        EXPECT(is_refused(text, "cut.json", "P0931"));
    }
    for (size_t at = 0; at + 1 < length; at += 3) {
        memcpy(bad, good, length);
        bad[at] ^= 4;
        write_file("bad.json", bad, length);
        EXPECT(is_refused(text, "bad.json", "P0931"));
    }
    write_file("tune.json", "{\"pipec tune\": 1, \"choices\": [\n]}\n", 35);
    EXPECT(is_refused(text, "tune.json", "P0931"));
    EXPECT(is_refused(lengths, "c.json", "P0931")); /* none of this kernel */
    char edited[sizeof text + 64];
    snprintf(edited, sizeof edited, "%s", text);
    memcpy(strstr(edited, "ceil(N, 1024)"), "ceil(N, 1023)", 13);
    EXPECT(is_refused(edited, "c.json", "P0932"));
    memcpy(strstr(edited, "ceil(N, 1023)"), "ceil(N, 1024)", 13);
    strcat(edited, "// a comment\n");
    EXPECT(is_refused(edited, "c.json", NULL));
    PipecProgram *untuned = compile_fixed(text, "c.json", (PipecOptions){.untuned = true});
    EXPECT(has_code(pipec_program_diagnostics(untuned), "P0931"));
    pipec_program_free(untuned);
    /* files that are not ours are not overwritten */
    const char *word = "N=1000";
    write_file("c.json", "mine", 4);
    EXPECT(save(text, NULL, &word, 1, "P0931") == PIPEC_UNUSABLE);
    EXPECT(read_file("c.json", bad, sizeof bad) == 4);
    write_file("c.json", good, length);
    memcpy(strstr(edited, "ceil(N, 1024)"), "ceil(N, 1023)", 13);
    EXPECT(save(edited, NULL, &word, 1, "P0932") == PIPEC_UNUSABLE);
}

int main(void) {
    Standin *standin = standin_open();
    if (mkdtemp(folder) == NULL) return 1;
    setenv("PIPEC_PTXAS", "", 1);
    setenv("PIPEC_CACHE", "", 1);
    standin->kernel = look;
    obeyed();
    of_runs();
    siblings();
    refused();
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    EXPECT(system(command) == 0);
    EXPECT(standin_is_clean(standin));
    return expect_failures();
}
