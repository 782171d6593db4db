/* Tuning through pipec.h, on the stand-in driver: combinations that are measured, those that are
 * excluded and why, stored choices. */
#include "include/pipec.h"

#include "tests/unit/standin.h"

#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/pipec-tune-XXXXXX";
static Standin *standin;

/* Y does not change: right although the stand-in's launches do nothing. The number of blocks
 * identifies the combination. */
static const char same[] =
    "kernel same(inout Y: f32[N]) for sm_90a {\n"
    "    static T = 256 in {128, 256, 512, 100000, 256}, WIDE = false in {false, true};\n"
    "    ensures Y[i] == old Y[i];\n"
    "    example N = 1024;\n"
    "    grid (t: ceil(N, T));\n"
    "    pipe p[WIDE ? 2 : 1] load -> store { y: f32[T]; }\n"
    "    role load:  1 warp { for t in grid { produce <p> as s { s.y[i] = Y[t*T + i]; } } }\n"
    "    role store: 1 warp { for t in grid { consume <p> as s { Y[t*T + i] = s.y[i]; } } }\n"
    "}\n";

static const char *file_of(Scratch *scratch, const char *name, const char *text) {
    const char *path = arena_printf(scratch->arena, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    if (EXPECT(out != NULL)) {
        fputs(text, out);
        fclose(out);
    }
    return path;
}

static void spoil(void **parameters, unsigned blocks) {
    (void)parameters;
    float *data = (float *)(uintptr_t)standin->map.address;
    if (blocks == 8) data[3] += 1; /* T=128 */
}

static void spoil_four(void **parameters, unsigned blocks) {
    (void)parameters;
    float *data = (float *)(uintptr_t)standin->map.address;
    if (blocks == 4) data[3] += 1; /* T=256 */
}

static void stray(void **parameters, unsigned blocks) {
    (void)parameters;
    float *data = (float *)(uintptr_t)standin->map.address;
    if (blocks == 8) data[-1] = 5;
}

static bool has(const PipecTune *tune, const char *values, PipecTrialEnd end, const char *remark) {
    PipecTrial trial = {.size = sizeof trial};
    for (size_t i = 0; pipec_tune_trial(tune, i, &trial); i++)
        if (strcmp(trial.values, values) == 0)
            return trial.end == end && (remark == NULL) == (trial.remark == NULL) &&
                   (remark == NULL || strstr(trial.remark, remark) != NULL);
    return false;
}

static size_t trials(const PipecTune *tune) {
    PipecTrial trial = {.size = sizeof trial};
    size_t count = 0;
    while (pipec_tune_trial(tune, count, &trial)) count++;
    return count;
}

static void whole(Scratch *scratch) {
    const char *path = file_of(scratch, "same.pipe", same);
    PipecTuneOptions options = {.size = sizeof options, .rounds = 3};
    PipecTrial trial = {.size = sizeof trial}, last = trial;
    PipecTune *tune = pipec_tune_file(path, &options);
    const PipecTuneInfo *info = pipec_tune_info(tune);
    EXPECT(pipec_tune_status(tune) == PIPEC_FINE &&
           pipec_diagnostics_count(pipec_tune_diagnostics(tune)) == 0);
    /* a value that occurs twice counts once */
    EXPECT(trials(tune) == 8 && info->rounds == 3 && info->checked);
    EXPECT(strcmp(info->kernel, "same") == 0 && strcmp(info->device, "Stand-in") == 0);
    EXPECT(strcmp(info->arguments, "Y: f32[1024]") == 0 && strcmp(info->extents, "N=1024") == 0);
    EXPECT(info->kept != NULL && info->not_kept == NULL);
    EXPECT(has(tune, "T=100000 WIDE=1", PIPEC_TRIAL_UNFIT, "P0500: "));
    for (size_t i = 0; i < 6; i++) {
        EXPECT(pipec_tune_trial(tune, i, &trial) && trial.end == PIPEC_TRIAL_MEASURED &&
               trial.remark == NULL);
        EXPECT(trial.seconds > last.seconds && trial.spread > 0);
        last = trial;
    }
    /* the first that is measured: the stand-in's launches take longer and longer */
    EXPECT(pipec_tune_trial(tune, 0, &trial) && strcmp(trial.values, "T=256 WIDE=1") == 0);
    EXPECT(trial.number_count == 2 && strcmp(trial.numbers[1].name, "WIDE") == 0 &&
           trial.numbers[0].integer == 256 && !trial.numbers[0].is_float);
    EXPECT(strcmp(trial.kernel, "same") == 0);
    pipec_tune_free(tune);
    EXPECT(standin_is_clean(standin));
}

static bool is_tuned(PipecProgram *program, const PipecRunOptions *options, int device) {
    PipecProgram *tuned = pipec_program_tuned(program, options, device, NULL);
    bool is = tuned != NULL && pipec_program_status(tuned) == PIPEC_FINE;
    pipec_program_free(tuned);
    return is;
}

static unsigned launched; /* blocks of the last launch */
static void count(void **parameters, unsigned blocks) {
    (void)parameters;
    launched = blocks;
}

static unsigned blocks_for(PipecKernel *kernel, int64_t n) {
    PipecArgument argument = {.pointer = 1 << 20, .extents = {n}};
    PipecLaunch launch = {.size = sizeof launch,
                          .argument_size = sizeof argument,
                          .arguments = &argument,
                          .count = 1};
    launched = 0;
    EXPECT(pipec_kernel_launch(kernel, &launch, NULL) == PIPEC_FINE);
    return launched;
}

/* Exchanges the times of T=512 and of the fastest, which the model and the text have */
static void retune(Scratch *scratch) {
    char text[4096];
    FILE *file = fopen(arena_printf(scratch->arena, "%s/tune.json", folder), "r+");
    if (!EXPECT(file != NULL)) return;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    char *fast = strstr(text, "T=256 WIDE=1"), *slow = strstr(text, "T=512 WIDE=1");
    if (EXPECT(fast != NULL && slow != NULL)) {
        memcpy(fast, "T=512", 5);
        memcpy(slow, "T=256", 5);
    }
    rewind(file);
    fputs(text, file);
    fclose(file);
}

/* A launch takes what was tuned for its extents (T=512), otherwise what the model predicts; an
 * untuned one the value of the text (T=256) */
static void launched_as_tuned(Scratch *scratch, const char *path) {
    PipecKernel *kernel;
    retune(scratch);
    void (*before)(void **, unsigned) = standin->kernel;
    standin->kernel = count;
    for (int untuned = 0; untuned < 2; untuned++) {
        PipecOptions options = {.size = sizeof options, .untuned = untuned != 0};
        PipecProgram *program = pipec_compile_file(path, &options);
        if (EXPECT(pipec_kernel_load(program, 0, &kernel, NULL) == PIPEC_FINE)) {
            EXPECT(blocks_for(kernel, 1024) == (untuned ? 4 : 2));
            EXPECT(blocks_for(kernel, 4000) == (untuned ? 16 : 8));
            pipec_kernel_free(kernel);
        }
        pipec_program_free(program);
    }
    standin->kernel = before;
}

static void taken(Scratch *scratch) {
    const char *path = arena_printf(scratch->arena, "%s/same.pipe", folder),
               *values[] = {"N=1024", "T=256"};
    PipecOptions plain = {
        .size = sizeof plain, .values = values, .value_count = 1, .launch_values = true};
    PipecOptions given = {
        .size = sizeof given, .values = values, .value_count = 2, .launch_values = true};
    PipecRunOptions run = {.size = sizeof run, .values = values, .value_count = 1};
    PipecChoice choice = {.size = sizeof choice};
    PipecProgram *program = pipec_compile_file(path, &plain);
    PipecProgram *tuned = pipec_program_tuned(program, &run, 0, &choice);
    if (EXPECT(tuned != NULL)) {
        EXPECT(choice.number_count == 2 && strcmp(choice.numbers[0].name, "T") == 0 &&
               choice.numbers[0].integer == 256 && choice.numbers[1].integer == 1);
        EXPECT(strcmp(choice.values, "T=256 WIDE=1") == 0 &&
               strcmp(choice.extents, "N=1024") == 0 && strcmp(choice.device, "Stand-in") == 0);
        EXPECT(strstr(pipec_program_manifest(tuned), "{\"name\": \"T\", \"value\": \"256\"") !=
               NULL);
    }
    pipec_program_free(tuned);
    EXPECT(!is_tuned(program, &run, 1 + 7)); /* there is no such device */
    EXPECT(is_tuned(program, NULL, 0));      /* values of `example` */
    values[0] = "N=5";
    EXPECT(!is_tuned(program, &run, 0));
    values[0] = "M=5"; /* the run reports it */
    EXPECT(!is_tuned(program, &run, 0) &&
           pipec_diagnostics_count(pipec_program_diagnostics(program)) == 0);
    values[0] = "N=1024";
    pipec_program_free(program);
    program = pipec_compile_file(path, &given);
    EXPECT(!is_tuned(program, &run, 0));
    pipec_program_free(program);
    launched_as_tuned(scratch, path);
    EXPECT(standin_is_clean(standin));
}

/* A choice applies to a class of extents, some of which may not meet its preconditions. */
static void demands(Scratch *scratch) {
    static const char text[] =
        "kernel same(inout Y: f32[N]) for sm_90a {\n"
        "    static T = 256 in {256, 128};\n"
        "    requires T == 256 || N % 100 == 0;\n"
        "    ensures Y[i] == old Y[i];\n"
        "    grid (t: ceil(N, T));\n"
        "    pipe p[2] load -> store { y: f32[T]; }\n"
        "    role load:  1 warp { for t in grid { produce <p> as s { s.y[i] = Y[t*T + i]; } } }\n"
        "    role store: 1 warp { for t in grid { consume <p> as s { Y[t*T + i] = s.y[i]; } } }\n"
        "}\n";
    const char *path = file_of(scratch, "demands.pipe", text), *values[] = {"N=800"};
    PipecTuneOptions options = {
        .size = sizeof options, .values = values, .value_count = 1, .rounds = 1};
    PipecRunOptions run = {.size = sizeof run, .values = values, .value_count = 1};
    PipecTrial trial = {.size = sizeof trial};
    standin->kernel = spoil_four; /* T=256 is wrong */
    PipecTune *tune = pipec_tune_file(path, &options);
    EXPECT(pipec_tune_trial(tune, 0, &trial) && strcmp(trial.values, "T=128") == 0);
    EXPECT(pipec_tune_info(tune)->kept != NULL);
    pipec_tune_free(tune);
    standin->kernel = NULL;
    PipecOptions plain = {
        .size = sizeof plain, .values = values, .value_count = 1, .launch_values = true};
    PipecProgram *program = pipec_compile_file(path, &plain);
    EXPECT(is_tuned(program, &run, 0));
    values[0] = "N=801";
    EXPECT(!is_tuned(program, &run, 0));
    pipec_program_free(program);
}

/* A wrong combination is excluded, the fastest other one is chosen, and the status is
 * PIPEC_REFUSED. */
static void wrong(Scratch *scratch) {
    const char *path = arena_printf(scratch->arena, "%s/same.pipe", folder);
    PipecTuneOptions options = {.size = sizeof options, .rounds = 1};
    PipecTrial trial = {.size = sizeof trial};
    standin->kernel = spoil;
    PipecTune *tune = pipec_tune_file(path, &options);
    EXPECT(pipec_tune_status(tune) == PIPEC_REFUSED && pipec_tune_info(tune)->kept != NULL);
    EXPECT(has(tune, "T=128 WIDE=0", PIPEC_TRIAL_WRONG, "1 elements violate `ensures`"));
    EXPECT(has(tune, "T=128 WIDE=1", PIPEC_TRIAL_WRONG, "1 elements"));
    /* on data that the wrong ones did not change */
    EXPECT(has(tune, "T=256 WIDE=0", PIPEC_TRIAL_MEASURED, NULL));
    EXPECT(pipec_tune_trial(tune, 0, &trial) && strcmp(trial.values, "T=256 WIDE=1") == 0);
    pipec_tune_free(tune);
    standin->kernel = stray;
    tune = pipec_tune_file(path, &options);
    EXPECT(pipec_tune_status(tune) == PIPEC_REFUSED && pipec_tune_info(tune)->extents == NULL);
    EXPECT(strstr(pipec_diagnostics_text(pipec_tune_diagnostics(tune)), "while T=128 WIDE=1 ran") !=
           NULL);
    EXPECT(strstr(pipec_diagnostics_text(pipec_tune_diagnostics(tune)), "P0619") != NULL);
    pipec_tune_free(tune);
    standin->kernel = NULL;
    EXPECT(standin_is_clean(standin));
}

/* Values of a static that is an extent are those of the tensors, and not tried; those in the
 * formula of one are other problems. Some have preconditions that the extents do not meet. */
static void shapes(Scratch *scratch) {
    static const char text[] =
        "kernel rows(inout Y: f32[M, 2*H], X: f32[D]) for sm_90a {\n"
        "    static D = 64 in {64, 32}, H = 128 in {64, 128}, R = 8 in {4, 8, 16};\n"
        "    requires M % R == 0 && M >= D / 8;\n"
        "    example M = 24;\n"
        "    grid (m: M / R);\n"
        "    pipe p[2] load -> store { y: f32[R, 2*H]; }\n"
        "    role load:  1 warp { for m in grid { produce <p> as s { s.y[r, "
        "d] = Y[m*R + r, d]; } } }\n"
        "    role store: 1 warp { for m in grid { consume <p> as s { Y[m*R "
        "+ r, d] = s.y[r, d]; } } }\n"
        "}\n";
    const char *path = file_of(scratch, "rows.pipe", text);
    PipecTuneOptions options = {.size = sizeof options, .forget = true};
    PipecTune *tune = pipec_tune_file(path, &options);
    EXPECT(pipec_tune_status(tune) == PIPEC_FINE && !pipec_tune_info(tune)->checked);
    EXPECT(has(tune, "H=128 R=4", PIPEC_TRIAL_MEASURED, NULL) &&
           has(tune, "H=128 R=8", PIPEC_TRIAL_MEASURED, NULL));
    EXPECT(has(tune, "H=128 R=16", PIPEC_TRIAL_UNFIT, "P0608: "));
    EXPECT(has(tune, "H=64 R=8", PIPEC_TRIAL_UNFIT, "P0604: "));
    EXPECT(pipec_tune_info(tune)->kept == NULL && pipec_tune_info(tune)->not_kept != NULL);
    pipec_tune_free(tune);
}

/* Variants and their statics are tuned together, and launches take the fastest of them for exactly
 * these extents; near ones only if that was asked for */
static void variants(Scratch *scratch) {
    static const char text[] = "kernel same(inout Y: f32[N]) for sm_90a {\n"
                               "    ensures Y[i] == old Y[i];\n"
                               "    variant tiles {\n"
                               "        static T = 256 in {128, 256};\n"
                               "        grid (t: ceil(N, T));\n"
                               "        pipe p[2] load -> store { y: f32[T]; }\n"
                               "        role load:  1 warp { for t in grid { produce <p> as s { "
                               "s.y[i] = Y[t*T + i]; } } }\n"
                               "        role store: 1 warp { for t in grid { consume <p> as s { "
                               "Y[t*T + i] = s.y[i]; } } }\n"
                               "    }\n"
                               "    variant rows {\n"
                               "        requires N <= 2000;\n"
                               "        grid (t: ceil(N, 64));\n"
                               "        role all: 2 warps { for t in grid {\n"
                               "            Y[t*64 + i] = Y[t*64 + i] for i in 0 .. 64; } }\n"
                               "    }\n"
                               "}\n";
    const char *path = file_of(scratch, "kinds.pipe", text), *values[] = {"N=1000"};
    PipecTuneOptions options = {
        .size = sizeof options, .values = values, .value_count = 1, .rounds = 2};
    standin_says("clock=1000,slow=4"); /* T=256 */
    PipecTune *tune = pipec_tune_file(path, &options);
    PipecTrial trial = {.size = sizeof trial};
    EXPECT(pipec_tune_status(tune) == PIPEC_FINE && trials(tune) == 3);
    EXPECT(has(tune, "T=256", PIPEC_TRIAL_SLOW, "times the best in its first round"));
    EXPECT(has(tune, "", PIPEC_TRIAL_MEASURED, NULL));
    EXPECT(pipec_tune_trial(tune, 0, &trial));
    unsigned best = strcmp(trial.kernel, "same:rows") == 0 ? 16 : 8;
    EXPECT(best == 16 || strcmp(trial.kernel, "same:tiles") == 0);
    pipec_tune_free(tune);
    values[0] = "N=3000"; /* one of 24 blocks, the other of 12 */
    options.near = true;
    standin_says("clock=1000,slow=24");
    pipec_tune_free(pipec_tune_file(path, &options));
    options.candidates = 1;
    tune = pipec_tune_file(path, &options);
    EXPECT(trials(tune) == 3 && has(tune, "", PIPEC_TRIAL_UNFIT, "P0608: "));
    EXPECT(has(tune, "T=128", PIPEC_TRIAL_LEFT, "") != has(tune, "T=256", PIPEC_TRIAL_LEFT, ""));
    pipec_tune_free(tune);
    standin_says("");
    PipecOptions plain = {.size = sizeof plain, .any_variant = true};
    PipecProgram *program = pipec_compile_file(path, &plain);
    PipecKernel *kernel;
    standin->kernel = count;
    if (EXPECT(pipec_kernel_load(program, 0, &kernel, NULL) == PIPEC_FINE)) {
        EXPECT(blocks_for(kernel, 1000) == best && blocks_for(kernel, 3000) == 12);
        EXPECT(blocks_for(kernel, 3100) > 0 && blocks_for(kernel, 3000) == 12);
        pipec_kernel_free(kernel);
    }
    standin->kernel = NULL;
    pipec_program_free(program);
}

/* A launch that does not end is given up; what was measured before it is stored */
static void endless(Scratch *scratch) {
    const char *path = arena_printf(scratch->arena, "%s/same.pipe", folder), *values[] = {"N=2048"};
    PipecTuneOptions options = {
        .size = sizeof options, .values = values, .value_count = 1, .limit = 0.02};
    standin_says("clock=1000,endless=4"); /* T=512 */
    PipecTune *tune = pipec_tune_file(path, &options);
    EXPECT(pipec_tune_status(tune) == PIPEC_REFUSED && pipec_tune_info(tune)->kept != NULL);
    EXPECT(has(tune, "T=512 WIDE=1", PIPEC_TRIAL_ENDLESS, "P0813: "));
    EXPECT(has(tune, "T=512 WIDE=0", PIPEC_TRIAL_LEFT, "tuning ended before"));
    EXPECT(strstr(pipec_diagnostics_text(pipec_tune_diagnostics(tune)),
                  "while T=512 WIDE=1 ran; nothing more is measured") != NULL);
    pipec_tune_free(tune);
    standin_says("");
}

/* In a child: until it ends, the device and what the launch uses stay in use */
static void endless_in_child(Scratch *scratch) {
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        failed_expectations = 0;
        endless(scratch);
        _exit(expect_failures());
    }
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static const float *places[16]; /* where launches have written */
static size_t place_count;
static bool starts_early; /* a launch did */
static void write_five(void **parameters, unsigned blocks) {
    (void)blocks;
    float *y = *(float **)parameters[2];
    uint32_t n = *(const uint32_t *)parameters[3];
    for (uint32_t i = 0; i < n; i++) y[i] = 5;
    size_t at = 0;
    while (at < place_count && places[at] != y) at++;
    starts_early |= standin->programmatic;
    if (at == place_count && at < COUNT_OF(places)) places[place_count++] = y;
}

static size_t copies_of(const char *path, const char *elements) {
    const char *values[] = {elements};
    PipecTuneOptions options = {.size = sizeof options, .values = values, .value_count = 1};
    place_count = 0;
    starts_early = false;
    PipecTune *tune = pipec_tune_file(path, &options);
    EXPECT(pipec_tune_status(tune) == PIPEC_FINE);
    pipec_tune_free(tune);
    EXPECT(standin_is_clean(standin));
    return place_count;
}

/* The launches of a burst take copies of the data in turn: 3 MiB, at most 10, half of the memory */
static void copies(Scratch *scratch) {
    const char *path = file_of(
        scratch, "fresh.pipe",
        "kernel fresh(X: f32[N], out Y: f32[N]) for sm_90a {\n"
        "    static T = 256 in {128, 256};\n"
        "    ensures Y[i] == 5;\n"
        "    grid (t: ceil(N, T));\n"
        "    pipe p[1] load -> store { y: f32[T]; }\n"
        "    role load:  1 warp { for t in grid { produce <p> as s { s.y[i] = X[t*T + i]; } } }\n"
        "    role store: 1 warp { for t in grid { consume <p> as s { Y[t*T + i] = s.y[i]; } } }\n"
        "}\n");
    standin->kernel = write_five;
    EXPECT(copies_of(path, "N=1000") == 10 && starts_early); /* as a launch that is chosen */
    EXPECT(copies_of(path, "N=140000") == 3);
    EXPECT(copies_of(path, "N=1000000") == 1);
    EXPECT(copies_of(path, "N=16000000") == 1 && !starts_early);
    standin_says("memory=4000000");
    EXPECT(copies_of(path, "N=140000") == 2);
    static const char *const calls[] = {
        "cuMemGetInfo_v2",    "cuMemcpyDtoDAsync_v2",        "cuStreamBeginCapture_v2",
        "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch"};
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        standin_says(arena_printf(scratch->arena, "fail=%s", calls[i]));
        PipecTune *tune = pipec_tune_file(path, NULL);
        EXPECT(pipec_tune_status(tune) != PIPEC_FINE);
        pipec_tune_free(tune);
        EXPECT(standin_is_clean(standin));
    }
    standin->kernel = NULL;
    standin_says("clock=1000");
}

static void failures(Scratch *scratch) {
    const char *path = arena_printf(scratch->arena, "%s/same.pipe", folder);
    static const char *const calls[] = {
        "cuModuleLoadDataEx",   "cuStreamCreate",       "cuEventCreate",        "cuMemAlloc_v2",
        "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuLaunchKernelEx",
        "cuEventRecord",        "cuEventElapsedTime",   "cuCtxPushCurrent_v2"};
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        standin_says(arena_printf(scratch->arena, "fail=%s", calls[i]));
        PipecTune *tune = pipec_tune_file(path, NULL);
        if (!EXPECT(pipec_tune_status(tune) != PIPEC_FINE &&
                    pipec_diagnostics_errors(pipec_tune_diagnostics(tune)) > 0))
            fprintf(stderr, "%s\n", calls[i]);
        pipec_tune_free(tune);
        if (!EXPECT(standin_is_clean(standin))) fprintf(stderr, "after %s\n", calls[i]);
    }
    standin_says("");
    pipec_tune_free(NULL);
}

int main(void) {
    Scratch scratch = scratch_new();
    standin = standin_open();
    if (!EXPECT(mkdtemp(folder) != NULL)) return 1;
    setenv("PIPEC_CACHE", folder, 1);
    standin_says("clock=1000");
    whole(&scratch);
    taken(&scratch);
    demands(&scratch);
    wrong(&scratch);
    shapes(&scratch);
    variants(&scratch);
    copies(&scratch);
    failures(&scratch);
    endless_in_child(&scratch);
    if (system(arena_printf(scratch.arena, "rm -r %s", folder)) != 0) perror(folder);
    scratch_free(&scratch);
    return expect_failures();
}
