/* The library as a C program uses it: everything through pipec.h. */
#include "include/pipec.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define EXPECT(condition) expect_that((condition), __LINE__, #condition)

static bool expect_that(bool fine, int line, const char *text) {
    if (!fine) {
        fprintf(stderr, "tests/unit/lib.c:%d: expected %s\n", line, text);
        failures++;
    }
    return fine;
}

static const char copy[] =
    "kernel copy(X: f32[N], out Y: f32[N]) for sm_90a {\n"
    "    static T = 256;\n"
    "    ensures Y[i] == X[i];\n"
    "    example N = 1000;\n"
    "    grid (t: ceil(N, T));\n"
    "    pipe p[2] load -> store { x: f32[T]; }\n"
    "    role load:  1 warp { for t in grid { produce <p> as s { s.x[i] = X[t*T + i]; } } }\n"
    "    role store: 1 warp { for t in grid { consume <p> as s { Y[t*T + i] = s.x[i]; } } }\n"
    "}\n";

static bool has_code(const PipecDiagnostics *diagnostics, const char *code) {
    for (size_t i = 0; i < pipec_diagnostics_count(diagnostics); i++)
        if (strcmp(pipec_diagnostics_get(diagnostics, i)->code, code) == 0) return true;
    return false;
}

static void test_program(void) {
    PipecProgram *program = pipec_compile(copy, strlen(copy), NULL);
    size_t length = 0;
    EXPECT(pipec_program_status(program) == PIPEC_FINE &&
           pipec_diagnostics_count(pipec_program_diagnostics(program)) == 0);
    EXPECT(pipec_program_ptx(program, &length) != NULL &&
           strlen(pipec_program_ptx(program, NULL)) == length);
    EXPECT(strstr(pipec_program_ptx(program, NULL), "\"<text>\"") != NULL);
    EXPECT(strstr(pipec_program_manifest(program), "\"copy\"") != NULL &&
           pipec_program_report(program) != NULL);
    EXPECT(pipec_program_emit(program, "ast") != NULL &&
           pipec_program_emit(program, "tokens") != NULL);
    EXPECT(pipec_program_emit(program, "ast") == pipec_program_emit(program, "ast"));
    size_t forms = 0;
    for (const PipecForm *form; (form = pipec_form(forms)) != NULL; forms++)
        EXPECT(pipec_program_emit(program, form->name) != NULL && form->what[0] != 0);
    EXPECT(forms >= 5 && pipec_program_emit(program, "llvm") == NULL);
    EXPECT(strcmp(pipec_program_kernel(program, 0), "copy") == 0 &&
           pipec_program_kernel(program, 1) == NULL);
    EXPECT(pipec_program_is_static(program, "T=5") && !pipec_program_is_static(program, "N=5") &&
           !pipec_program_is_static(program, "T"));
    pipec_program_free(program);
    pipec_program_free(NULL);
}

static void test_diagnostics(void) {
    static const char text[] =
        "kernel k(X: f32[N]) for sm_90a {\n    requires Q > 0;\n    grid (t: R);\n}\n";
    PipecOptions options = {.size = sizeof options, .name = "k.pipe", .check_only = true};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    const PipecDiagnostics *diagnostics = pipec_program_diagnostics(program);
    EXPECT(pipec_program_status(program) == PIPEC_REFUSED &&
           pipec_diagnostics_errors(diagnostics) >= 2);
    /* the kernel has no role */
    const PipecDiagnostic *first = pipec_diagnostics_get(diagnostics, 0);
    EXPECT(strcmp(first->code, "P0136") == 0 && first->labels[0].line == 1);
    first = pipec_diagnostics_get(diagnostics, 1);
    EXPECT(strcmp(first->code, "P0100") == 0 && first->severity == PIPEC_ERROR &&
           first->label_count >= 1);
    EXPECT(first->labels[0].line == 2 && first->labels[0].column == 14 &&
           first->labels[0].end_column == 15);
    EXPECT(text[first->labels[0].lo] == 'Q' && first->labels[0].hi == first->labels[0].lo + 1);
    EXPECT(strstr(pipec_diagnostics_text(diagnostics), "--> k.pipe:2:14") != NULL);
    EXPECT(strstr(pipec_diagnostics_text(diagnostics), "\033[") == NULL &&
           strstr(pipec_diagnostics_coloured(diagnostics), "\033[") != NULL);
    EXPECT(strstr(pipec_diagnostics_json(diagnostics),
                  "{\"file\":\"k.pipe\",\"diagnostics\":[{\"code\":\"P0136\"") != NULL);
    EXPECT(pipec_diagnostics_get(diagnostics, 1000) == NULL);
    EXPECT(pipec_program_ptx(program, NULL) == NULL && pipec_program_manifest(program) == NULL &&
           pipec_program_report(program) == NULL);
    EXPECT(pipec_program_emit(program, "prog") == NULL &&
           pipec_program_assemble(program, "k.cubin") == PIPEC_REFUSED);
    PipecRun *run = pipec_run_new(program, NULL); /* of a program that was refused */
    EXPECT(pipec_run_status(run) == PIPEC_REFUSED && pipec_run_execute(run, NULL) == PIPEC_REFUSED);
    EXPECT(pipec_run_verify(run) == PIPEC_NOT_CHECKED && strcmp(pipec_run_arguments(run), "") == 0);
    pipec_run_free(run);
    PipecKernel *kernel;
    PipecDiagnostics *handed;
    EXPECT(pipec_kernel_load(program, -1, &kernel, &handed) == PIPEC_REFUSED && kernel == NULL);
    EXPECT(handed == diagnostics);
    pipec_diagnostics_free(handed);
    EXPECT(pipec_diagnostics_count(diagnostics) > 0);
    pipec_program_free(program);
}

static void test_values(void) {
    const char *values[] = {"T=128", "N=5"};
    PipecOptions options = {.size = sizeof options, .values = values, .value_count = 2};
    PipecProgram *program = pipec_compile(copy, strlen(copy), &options);
    EXPECT(pipec_program_status(program) == PIPEC_UNUSABLE &&
           has_code(pipec_program_diagnostics(program), "P0904"));
    pipec_program_free(program);
    options.launch_values = true;
    program = pipec_compile(copy, strlen(copy), &options);
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    PipecRunOptions run_options = {.size = sizeof run_options, .values = values, .value_count = 2};
    PipecRun *run = pipec_run_new(program, &run_options);
    EXPECT(pipec_run_status(run) == PIPEC_FINE &&
           strcmp(pipec_run_arguments(run), "X: f32[5], Y: f32[5]") == 0);
    pipec_run_free(run);
    pipec_program_free(program);
    PipecProgram *missing = pipec_compile_file("no such file", NULL);
    EXPECT(pipec_program_status(missing) == PIPEC_UNUSABLE &&
           has_code(pipec_program_diagnostics(missing), "P0900"));
    EXPECT(pipec_program_emit(missing, "tokens") == NULL);
    pipec_program_free(missing);
}

/* A check tries every combination of the sets; a compilation only the requested one */
static void test_combinations(void) {
    static const char text[] =
        "kernel k(X: f32[N], out Y: f32[N]) for sm_90a {\n"
        "    static KEEP = 0 in {0, 1};\n"
        "    ensures Y[i] == X[i];\n"
        "    grid (t: ceil(N, 128));\n"
        "    pipe p[2] a -> b { x: f32[128]; }\n"
        "    role a: 1 warp { for t in grid { produce <p> as s { s.x[i] = X[t*128 + i]; } } }\n"
        "    role b: 1 warp { for t in grid { let s = consume <p>; Y[t*128 + i] = s.x[i];\n"
        "                                     if KEEP == 0 { release s; } } }\n"
        "}\n";
    const char *zero = "KEEP=0", *one = "KEEP=1";
    PipecOptions options = {.size = sizeof options, .check_only = true};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    const PipecDiagnostics *diagnostics = pipec_program_diagnostics(program);
    EXPECT(pipec_program_status(program) == PIPEC_REFUSED &&
           pipec_diagnostics_count(diagnostics) == 1);
    const PipecDiagnostic *first = pipec_diagnostics_get(diagnostics, 0);
    EXPECT(first->note_count == 1 && strcmp(first->notes[0], "with KEEP = 1") == 0);
    pipec_program_free(program);
    options.combinations = 1;
    program = pipec_compile(text, strlen(text), &options);
    EXPECT(pipec_program_status(program) == PIPEC_INCOMPLETE);
    EXPECT(has_code(pipec_program_diagnostics(program), "P0163"));
    pipec_program_free(program);
    options.combinations = 0, options.values = &zero, options.value_count = 1;
    program = pipec_compile(text, strlen(text), &options);
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    pipec_program_free(program);
    options.values = &one;
    program = pipec_compile(text, strlen(text), &options);
    first = pipec_diagnostics_get(pipec_program_diagnostics(program), 0);
    EXPECT(pipec_program_status(program) == PIPEC_REFUSED && first != NULL &&
           first->note_count == 0);
    pipec_program_free(program);
    program = pipec_compile(text, strlen(text), NULL);
    EXPECT(pipec_program_status(program) == PIPEC_FINE && pipec_program_ptx(program, NULL) != NULL);
    pipec_program_free(program);
}

typedef struct Heard {
    int calls, schedule;
    double part;
    bool ascends;
} Heard;

static bool hear(void *data, const PipecProgress *progress) {
    Heard *heard = data;
    heard->ascends = heard->ascends && progress->part >= heard->part && progress->part <= 1 &&
                     progress->schedules == 2 && progress->instructions > 0;
    heard->calls++, heard->part = progress->part, heard->schedule = progress->schedule;
    return true;
}

/* 2,000,000 elements on two schedules: long enough for several calls */
static bool progress_is_said(PipecProgram *program) {
    const char *values[] = {"N=2000000"};
    PipecRunOptions options = {.size = sizeof options, .values = values, .value_count = 1};
    Heard heard = {.ascends = true};
    PipecExecuteOptions execute = {.size = sizeof execute,
                                   .where = PIPEC_ON_EMULATOR,
                                   .schedules = 2,
                                   .progress = hear,
                                   .progress_data = &heard};
    PipecRun *run = pipec_run_new(program, &options);
    bool fine = pipec_run_execute(run, &execute) == PIPEC_FINE;
    pipec_run_free(run);
    return fine && heard.ascends && heard.calls >= 4 && heard.schedule == 2 && heard.part > 0.8;
}

typedef struct Parts {
    int count;
    double part[1000], instructions[1000];
} Parts;

static bool note_part(void *data, const PipecProgress *progress) {
    Parts *parts = data;
    if (parts->count == 1000) return true;
    parts->part[parts->count] = progress->part;
    parts->instructions[parts->count++] = (double)progress->instructions;
    return true;
}

/* Each of 150 blocks writes the whole result: the parts are those of the instructions all the
 * same. */
static bool progress_is_right(void) {
    static const char text[] = "kernel all(X: f32[M, 128], out Y: f32[M, 128]) for sm_90a {\n"
                               "    grid (m: M);\n"
                               "    role work: 4 warps { Y[m, k] = X[m, k]; }\n"
                               "}\n";
    PipecOptions options = {.size = sizeof options};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    const char *values[] = {"M=150"};
    PipecRunOptions data = {.size = sizeof data, .values = values, .value_count = 1};
    Parts parts = {0};
    PipecExecuteOptions execute = {.size = sizeof execute,
                                   .where = PIPEC_ON_EMULATOR,
                                   .progress = note_part,
                                   .progress_data = &parts};
    PipecRun *run = pipec_run_new(program, &data);
    bool right = pipec_run_execute(run, &execute) == PIPEC_FINE && parts.count >= 10;
    double whole = (double)pipec_run_info(run)->instructions;
    for (int i = 0; i < parts.count; i++)
        right = right && fabs(parts.part[i] - parts.instructions[i] / whole) < 0.02;
    pipec_run_free(run);
    pipec_program_free(program);
    return right;
}

static bool stop(void *data, const PipecProgress *progress) {
    (void)data, (void)progress;
    return false;
}

/* A comparison that the caller ends is no success, nor one with options that cannot be read. */
static bool verify_is_stopped(void) {
    static const char text[] = "kernel pairs(X: f32[N], out Y: f32[N]) for sm_90a {\n"
                               "    ensures Y[i] ~ X[i] + 0 * sum[a] X[a] * X[i] within 1e-3;\n"
                               "    example N = 4000;\n"
                               "    grid (t: ceil(N, 256));\n"
                               "    role all: 1 warp { for t in grid { Y[t*256 + i] = X[t*256 + i] "
                               "for i in 0 .. 256; } }\n"
                               "}\n";
    PipecProgram *program = pipec_compile(text, strlen(text), NULL);
    PipecExecuteOptions emulator = {.size = sizeof emulator, .where = PIPEC_ON_EMULATOR};
    PipecVerifyOptions options = {.size = sizeof options, .progress = stop};
    PipecRun *run = pipec_run_new(program, NULL);
    bool right = pipec_run_execute(run, &emulator) == PIPEC_FINE &&
                 pipec_run_verify_with(run, &options) == PIPEC_NOT_CHECKED &&
                 pipec_run_status(run) == PIPEC_INCOMPLETE && pipec_run_verify(run) == PIPEC_RIGHT;
    struct {
        PipecVerifyOptions known;
        int64_t newer;
    } later = {.known.size = sizeof later, .newer = 1};
    right = right && pipec_run_verify_with(run, &later.known) == PIPEC_NOT_CHECKED &&
            has_code(pipec_run_diagnostics(run), "P0917");
    pipec_run_free(run);
    pipec_program_free(program);
    return right;
}

static bool run_is_stopped(PipecProgram *program) {
    const char *values[] = {"N=2000000"};
    PipecRunOptions options = {.size = sizeof options, .values = values, .value_count = 1};
    PipecExecuteOptions execute = {
        .size = sizeof execute, .where = PIPEC_ON_EMULATOR, .progress = stop};
    PipecRun *run = pipec_run_new(program, &options);
    bool stopped = pipec_run_execute(run, &execute) == PIPEC_INCOMPLETE;
    const PipecDiagnostics *diagnostics = pipec_run_diagnostics(run);
    stopped = stopped && pipec_diagnostics_count(diagnostics) == 1 &&
              strcmp(pipec_diagnostics_get(diagnostics, 0)->code, "P0760") == 0;
    pipec_run_free(run);
    return stopped;
}

static void test_run(void) {
    PipecProgram *program = pipec_compile(copy, strlen(copy), NULL);
    PipecRun *run = pipec_run_new(program, NULL), *other = pipec_run_new(program, NULL);
    PipecExecuteOptions emulator = {.size = sizeof emulator, .where = PIPEC_ON_EMULATOR};
    PipecArray x = {.size = sizeof x}, y = {.size = sizeof y}, none = {.size = sizeof none};
    EXPECT(pipec_run_array(run, 0, &x) && pipec_run_array(run, 1, &y) &&
           !pipec_run_array(run, 2, &none));
    EXPECT(pipec_run_array_named(run, "Y", &none) && none.data == y.data &&
           !pipec_run_array_named(run, "Z", &none));
    EXPECT(x.rank == 1 && x.extents[0] == 1000 && x.bytes == 4000 && strcmp(x.type, "f32") == 0);
    for (int i = 0; i < 1000; i++) ((float *)x.data)[i] = (float)i;
    EXPECT(pipec_run_verify(run) == PIPEC_NOT_CHECKED); /* there was no run */
    EXPECT(pipec_run_execute(run, &emulator) == PIPEC_FINE && pipec_run_verify(run) == PIPEC_RIGHT);
    EXPECT(memcmp(x.data, y.data, x.bytes) == 0 &&
           strncmp(pipec_run_verdict(run), "right", 5) == 0);
    EXPECT(progress_is_said(program));
    EXPECT(progress_is_right());
    EXPECT(run_is_stopped(program));
    EXPECT(verify_is_stopped());
    const PipecRunInfo *info = pipec_run_info(run);
    EXPECT(!info->on_gpu && info->tiles == 4 && info->blocks == 4 && info->bytes == 8000 &&
           info->seconds > 0);
    const char *how = NULL;
    EXPECT(pipec_run_execute(other, &emulator) == PIPEC_FINE);
    EXPECT(pipec_run_compare(run, other, &how) == PIPEC_REFUSED &&
           has_code(pipec_run_diagnostics(run), "P0852"));
    EXPECT(how != NULL && strstr(how, "bit for bit") != NULL);
    ((float *)y.data)[17] = 3;
    EXPECT(pipec_run_verify(run) == PIPEC_WRONG && has_code(pipec_run_diagnostics(run), "P0850"));
    EXPECT(pipec_run_status(run) == PIPEC_REFUSED);
    pipec_run_free(run);
    pipec_run_free(other);
    pipec_program_free(program);
}

/* Runs of approximate instructions agree within twice what `ensures` allows, by either bound. */
static void test_compare_within(void) {
    static const char text[] = "kernel f(X: f32[N], out Y: f32[N]) for sm_90a {\n"
                               "    ensures Y[i] ~ exp(X[i]) within 1e-6 or 0.5;\n"
                               "    example N = 100;\n"
                               "    grid (t: ceil(N, 128));\n"
                               "    role all: 4 warps { for t in grid { var x: f32[128];\n"
                               "        x[i] = X[t*128 + i]; Y[t*128 + i] = exp(x[i]); } }\n"
                               "}\n";
    PipecProgram *program = pipec_compile(text, strlen(text), NULL);
    EXPECT(strstr(pipec_program_emit(program, "ast"), "within 1e-06 or 0.5\n") != NULL);
    EXPECT(strstr(pipec_program_emit(program, "prog"), "within 1e-06 or 0.5\n") != NULL);
    PipecRun *run = pipec_run_new(program, NULL), *other = pipec_run_new(program, NULL);
    PipecExecuteOptions emulator = {.size = sizeof emulator, .where = PIPEC_ON_EMULATOR};
    EXPECT(pipec_run_execute(run, &emulator) == PIPEC_FINE &&
           pipec_run_execute(other, &emulator) == PIPEC_FINE);
    PipecArray y = {.size = sizeof y};
    EXPECT(pipec_run_array_named(run, "Y", &y));
    ((float *)y.data)[3] += 0.9f;
    EXPECT(pipec_run_compare(run, other, NULL) == PIPEC_FINE);
    EXPECT(pipec_run_verify(run) == PIPEC_WRONG && has_code(pipec_run_diagnostics(run), "P0850"));
    ((float *)y.data)[3] += 0.2f;
    EXPECT(pipec_run_compare(run, other, NULL) == PIPEC_REFUSED &&
           has_code(pipec_run_diagnostics(run), "P0852"));
    pipec_run_free(run);
    pipec_run_free(other);
    pipec_program_free(program);
}

/* Y is read and written: each schedule must begin with the same Y. */
static void test_schedules(void) {
    static const char add[] =
        "kernel add(X: f32[N], inout Y: f32[N]) for sm_90a {\n"
        "    ensures Y[i] == X[i] + old Y[i];\n    example N = 1000;\n    const T = 128;\n"
        "    grid persistent (t: ceil(N, T));\n    pipe p[2] load -> work { x: f32[T]; }\n"
        "    role load: 1 warp { for t in grid { produce <p> as s { s.x[i] = X[t*T + i]; } } }\n"
        "    role work: 2 warps { for t in grid { consume <p> as s { Y[t*T + i] += s.x[i]; } } "
        "}\n}\n";
    PipecProgram *program = pipec_compile(add, strlen(add), NULL);
    PipecRun *run = pipec_run_new(program, NULL);
    PipecExecuteOptions options = {.size = sizeof options, .schedules = 4, .schedule = 3};
    EXPECT(pipec_run_execute(run, &options) == PIPEC_FINE && pipec_run_info(run)->schedules == 4);
    EXPECT(!pipec_run_info(run)->on_gpu && pipec_run_verify(run) == PIPEC_RIGHT);
    options.schedules = 0;
    EXPECT(pipec_run_execute(run, &options) == PIPEC_FINE && pipec_run_info(run)->schedules == 1);
    options.where = PIPEC_ON_GPU;
    EXPECT(pipec_run_execute(run, &options) == PIPEC_UNUSABLE &&
           has_code(pipec_run_diagnostics(run), "P0800"));
    pipec_run_free(run);
    pipec_program_free(program);
}

static void test_refused_runs(void) {
    static const struct {
        const char *value, *fill, *code;
    } rows[] = {{"N=-1", NULL, "P0605"},
                {"Q=3", NULL, "P0601"},
                {"N", NULL, "P0600"},
                {"N=3", "X=odd", "P0600"},
                {"N=3", "Y=iota", "P0607"}};
    PipecProgram *program = pipec_compile(copy, strlen(copy), NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        PipecRunOptions options = {.size = sizeof options,
                                   .values = &rows[i].value,
                                   .value_count = 1,
                                   .fills = &rows[i].fill,
                                   .fill_count = rows[i].fill != NULL};
        PipecRun *run = pipec_run_new(program, &options);
        if (!EXPECT(pipec_run_status(run) == PIPEC_UNUSABLE &&
                    has_code(pipec_run_diagnostics(run), rows[i].code)))
            fprintf(stderr, "for %s: %s", rows[i].code,
                    pipec_diagnostics_text(pipec_run_diagnostics(run)));
        pipec_run_free(run);
    }
    PipecRun *run = pipec_run_new(program, NULL);
    EXPECT(pipec_run_can_save(run, "Y=y.npy") == PIPEC_FINE &&
           pipec_run_can_save(run, "W=y.npy") == PIPEC_UNUSABLE);
    EXPECT(has_code(pipec_run_diagnostics(run), "P0906"));
    pipec_run_free(run);
    pipec_program_free(program);
}

/* Options without a size are refused where their object says so. */
static void test_unsized(void) {
    PipecOptions options = {.size = 0};
    PipecProgram *program = pipec_compile(copy, strlen(copy), &options);
    EXPECT(pipec_program_status(program) == PIPEC_UNUSABLE &&
           has_code(pipec_program_diagnostics(program), "P0917"));
    pipec_program_free(program);
    program = pipec_compile(copy, strlen(copy), NULL);
    PipecRun *run = pipec_run_new(program, &(PipecRunOptions){.size = 0});
    EXPECT(pipec_run_status(run) == PIPEC_UNUSABLE &&
           has_code(pipec_run_diagnostics(run), "P0917"));
    pipec_run_free(run);
    run = pipec_run_new(program, NULL);
    EXPECT(pipec_run_execute(run, &(PipecExecuteOptions){.size = 0}) == PIPEC_UNUSABLE &&
           has_code(pipec_run_diagnostics(run), "P0917"));
    PipecArray array = {.size = 0};
    EXPECT(!pipec_run_array(run, 0, &array) && !pipec_run_array_named(run, "X", &array));
    pipec_run_free(run);
    EXPECT(pipec_program_tuned(program, &(PipecRunOptions){.size = 0}, 0, NULL) == NULL &&
           has_code(pipec_program_diagnostics(program), "P0917"));
    PipecTune *tune = pipec_tune_file("no file", &(PipecTuneOptions){.size = 0});
    EXPECT(pipec_tune_status(tune) == PIPEC_UNUSABLE &&
           has_code(pipec_tune_diagnostics(tune), "P0917"));
    PipecTrial trial = {.size = sizeof trial};
    EXPECT(!pipec_tune_trial(tune, 0, &trial));
    pipec_tune_free(tune);
    pipec_program_free(program);
}

/* Numbers have the meaning of their text. */
static void test_numbers(void) {
    PipecValue statics[] = {{.name = "T", .integer = 128}}, extents[] = {{"N", 5, 0, false}};
    PipecOptions options = {.size = sizeof options, .numbers = statics, .number_count = 1};
    PipecProgram *program = pipec_compile(copy, strlen(copy), &options);
    EXPECT(strstr(pipec_program_manifest(program), "{\"name\": \"T\", \"value\": \"128\"") != NULL);
    PipecRunOptions run_options = {
        .size = sizeof run_options, .numbers = extents, .number_count = 1};
    PipecRun *run = pipec_run_new(program, &run_options);
    EXPECT(strcmp(pipec_run_arguments(run), "X: f32[5], Y: f32[5]") == 0);
    pipec_run_free(run);
    pipec_program_free(program);
    statics[0] = (PipecValue){.name = "T", .number = 0.5, .is_float = true};
    program = pipec_compile(copy, strlen(copy), &options);
    EXPECT(pipec_program_status(program) != PIPEC_FINE);
    pipec_program_free(program);
}

static void test_words(void) {
    const char *title;
    EXPECT(strcmp(pipec_version(), PIPEC_VERSION) == 0);
    EXPECT(pipec_worse(PIPEC_UNUSABLE, PIPEC_INCOMPLETE) == PIPEC_INCOMPLETE &&
           pipec_worse(PIPEC_REFUSED, PIPEC_INCOMPLETE) == PIPEC_REFUSED);
    EXPECT(pipec_worse(PIPEC_REFUSED, PIPEC_BUG) == PIPEC_BUG &&
           pipec_worse(PIPEC_FINE, PIPEC_UNUSABLE) == PIPEC_UNUSABLE);
    EXPECT(pipec_explain("p0850") != NULL && pipec_explain("P9999") == NULL &&
           pipec_code_near("P08500") != NULL);
    EXPECT(pipec_code(0, &title) != NULL && title[0] != 0 && pipec_code(100000, NULL) == NULL);
}

static const char scatter[] =
    "kernel scatter(X: f32[R, 64], To: i32[R], out Y: f32[R, 64]) for sm_90a {\n"
    "    grid persistent (r: R);\n"
    "    pipe p[2] load -> put { x: f32[64]; }\n"
    "    role load: 1 warp { for r in grid { produce <p> as s { s.x[d] = X[r, d]; } } }\n"
    "    role put:  1 warp { for r in grid { consume <p> as s { Y[To[r], d] = s.x[d]; } } }\n"
    "}\n";

/* An incomplete verdict that is accepted is a warning. */
static void test_accepted(void) {
    static const struct {
        const char *accepted, *denied;
        PipecStatus status;
        bool check_only;
    } cases[] = {{NULL, NULL, PIPEC_INCOMPLETE, false},    {"P0237", NULL, PIPEC_FINE, false},
                 {"incomplete", NULL, PIPEC_FINE, false},  {"P0461", NULL, PIPEC_INCOMPLETE, false},
                 {"P0237", "P0237", PIPEC_REFUSED, false}, {"P0100", NULL, PIPEC_UNUSABLE, false},
                 {"incomplete", NULL, PIPEC_FINE, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PipecOptions options = {.size = sizeof options,
                                .accepted = &cases[i].accepted,
                                .accepted_count = cases[i].accepted != NULL,
                                .denied = &cases[i].denied,
                                .denied_count = cases[i].denied != NULL,
                                .check_only = cases[i].check_only};
        PipecProgram *program = pipec_compile(scatter, strlen(scatter), &options);
        EXPECT(pipec_program_status(program) == cases[i].status);
        EXPECT(cases[i].status == PIPEC_UNUSABLE ||
               has_code(pipec_program_diagnostics(program), "P0237"));
        pipec_program_free(program);
    }
}

/* A run stands for tensors with gaps: what a launch refuses, it refuses. */
static void test_strides_of_a_run(void) {
    PipecOptions options = {.size = sizeof options, .kernel = "scale", .variant = "copied"};
    PipecProgram *program = pipec_compile_file("tests/run/variants.pipe", &options);
    PipecArgument arguments[3] = {{.strides = {32, 1}, .strided = true}};
    PipecRunOptions run = {.size = sizeof run,
                           .arguments = arguments,
                           .argument_size = sizeof *arguments,
                           .argument_count = 3};
    PipecRun *fine = pipec_run_new(program, &run);
    EXPECT(pipec_run_status(fine) == PIPEC_FINE);
    pipec_run_free(fine);
    arguments->strides[0] = 30;
    PipecRun *refused = pipec_run_new(program, &run);
    EXPECT(pipec_run_status(refused) == PIPEC_UNUSABLE &&
           has_code(pipec_run_diagnostics(refused), "P0621"));
    pipec_run_free(refused);
    run.argument_count = 2;
    PipecRun *few = pipec_run_new(program, &run);
    EXPECT(pipec_run_status(few) == PIPEC_UNUSABLE &&
           has_code(pipec_run_diagnostics(few), "P0910"));
    pipec_run_free(few);
    pipec_program_free(program);
}

int main(void) {
    setenv("PIPEC_LIBCUDA", "/nonexistent/libcuda.so.1", 1);
    test_words();
    test_accepted();
    test_strides_of_a_run();
    test_program();
    test_diagnostics();
    test_values();
    test_combinations();
    test_run();
    test_compare_within();
    test_schedules();
    test_refused_runs();
    test_unsized();
    test_numbers();
    return failures > 0;
}
