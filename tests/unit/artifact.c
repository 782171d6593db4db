/* Programs without their source: from a manifest and its PTX or cubin; and kernels that are loaded
 * from cubins of ptxas, on the stand-in driver. */
#include "include/pipec.h"
#include "tests/unit/cubin.h"
#include "tests/unit/standin.h"

#include <inttypes.h>
#include <sys/stat.h>

static char folder[] = "/tmp/pipec-artifact-XXXXXX";

typedef struct Built {
    PipecProgram *program;
    const char *manifest, *ptx;
    size_t length;
} Built;

static Built build_with(const char *file, const PipecOptions *options) {
    Built out = {.program = pipec_compile_file(file, options)};
    out.manifest = pipec_program_manifest(out.program);
    out.ptx = pipec_program_ptx(out.program, &out.length);
    EXPECT(out.manifest != NULL && out.ptx != NULL);
    return out;
}

static bool has_code(const PipecDiagnostics *diagnostics, const char *code, const char *text) {
    for (size_t i = 0; i < pipec_diagnostics_count(diagnostics); i++)
        if (strcmp(pipec_diagnostics_get(diagnostics, i)->code, code) == 0 &&
            strstr(pipec_diagnostics_text(diagnostics), text) != NULL)
            return true;
    if (diagnostics != NULL) fputs(pipec_diagnostics_text(diagnostics), stderr);
    return false;
}

static Built build(const char *file) { return build_with(file, NULL); }

/* A kernel `axpy` without code, as `pipec build` writes it */
typedef struct Cubin {
    Image image;
    char mark[sizeof "pipec 0123456789abcdef\n"];
} Cubin;
#define CUBIN_BYTES (sizeof(Cubin) - 1)

static Cubin cubin_of(const char *ptx, size_t length, int registers) {
    Cubin out = {.image = image_of(registers)};
    uint64_t hash = fnv1a(fnv1a(FNV_START, ptx, length), &out.image, sizeof out.image);
    snprintf(out.mark, sizeof out.mark, "pipec %016" PRIx64 "\n", hash);
    return out;
}

/* ---- what is known of it --------------------------------------------------------------------- */

static void describes(void) {
    Built from = build("examples/gemm.pipe");
    PipecProgram *program =
        pipec_program_from(from.manifest, strlen(from.manifest), from.ptx, from.length, NULL);
    PipecParameter a = {.size = sizeof a}, b = {.size = sizeof b};
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    EXPECT(strcmp(pipec_program_manifest(program), from.manifest) == 0);
    EXPECT(strcmp(pipec_program_ptx(program, NULL), from.ptx) == 0);
    EXPECT(strcmp(pipec_program_head(program), pipec_program_head(from.program)) == 0);
    EXPECT(strcmp(pipec_program_kernel(program, 0), "gemm") == 0);
    for (size_t i = 0; pipec_program_parameter(from.program, i, &a); i++)
        EXPECT(pipec_program_parameter(program, i, &b) && strcmp(a.name, b.name) == 0 &&
               a.rank == b.rank && strcmp(a.extents[0], b.extents[0]) == 0);
    for (size_t i = 0; pipec_program_precondition(from.program, i, NULL) != NULL; i++)
        EXPECT(strcmp(pipec_program_precondition(program, i, NULL),
                      pipec_program_precondition(from.program, i, NULL)) == 0);
    EXPECT(pipec_program_ensures(program, 0) == NULL && pipec_program_report(program) == NULL);
    for (size_t i = 0; pipec_form(i) != NULL; i++) {
        const char *name = pipec_form(i)->name;
        bool given = strcmp(name, "manifest") == 0 || strcmp(name, "ptx") == 0;
        EXPECT((pipec_program_emit(program, name) != NULL) == given);
    }
    EXPECT(pipec_program_tuned(program, NULL, 0, NULL) == NULL);
    pipec_program_free(program);
    pipec_program_free(from.program);
}

/* The emulator runs the PTX with the manifest: the same results, which nothing is compared with. */
static void runs(void) {
    Built axpy = build("examples/axpy.pipe");
    PipecValue values[] = {{.name = "N", .integer = 5000},
                           {.name = "a", .number = 2, .is_float = true}};
    PipecRunOptions options = {.size = sizeof options, .numbers = values, .number_count = 2};
    PipecExecuteOptions how = {.size = sizeof how, .where = PIPEC_ON_EMULATOR, .schedules = 2};
    PipecProgram *program =
        pipec_program_from(axpy.manifest, strlen(axpy.manifest), axpy.ptx, axpy.length, NULL);
    PipecRun *run = pipec_run_new(program, &options),
             *whole = pipec_run_new(axpy.program, &options);
    EXPECT(pipec_run_execute(run, &how) == PIPEC_FINE);
    EXPECT(pipec_run_execute(whole, &how) == PIPEC_FINE);
    EXPECT(pipec_run_compare(run, whole, NULL) == PIPEC_FINE);
    EXPECT(pipec_run_verify(whole) == PIPEC_RIGHT && pipec_run_verify(run) == PIPEC_NOT_CHECKED);
    EXPECT(strcmp(pipec_run_verdict(run), "not checked") == 0);
    pipec_run_free(run);
    options.number_count = 1; /* there is no `example` that names the others */
    run = pipec_run_new(program, &options);
    EXPECT(pipec_run_status(run) == PIPEC_UNUSABLE &&
           has_code(pipec_run_diagnostics(run), "P0603", "`a`"));
    pipec_run_free(run);
    pipec_run_free(whole);
    pipec_program_free(program);
    pipec_program_free(axpy.program);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void refused(const char *manifest, const char *image, size_t length, const char *code,
                    const char *text) {
    PipecProgram *program = pipec_program_from(manifest, strlen(manifest), image, length, NULL);
    if (!EXPECT(pipec_program_status(program) == PIPEC_UNUSABLE &&
                has_code(pipec_program_diagnostics(program), code, text)))
        fprintf(stderr, "%s %s\n", code, text);
    EXPECT(pipec_program_manifest(program) == NULL && pipec_program_ptx(program, NULL) == NULL);
    EXPECT(pipec_program_head(program) == NULL);
    PipecKernel *kernel;
    EXPECT(pipec_kernel_load(program, 0, &kernel, NULL) == PIPEC_UNUSABLE && kernel == NULL);
    pipec_program_free(program);
}

static const char *replaced(Scratch *scratch, const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    if (!EXPECT(at != NULL)) return text;
    return arena_printf(scratch->arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* What only a run shows to be wrong is wrong data too, and not a bug in pipec. */
static void runs_wrong(const char *manifest, const char *ptx, const char *code) {
    PipecValue values[] = {{.name = "N", .integer = 5000},
                           {.name = "a", .number = 2, .is_float = true}};
    PipecRunOptions options = {.size = sizeof options, .numbers = values, .number_count = 2};
    PipecExecuteOptions how = {.size = sizeof how, .where = PIPEC_ON_EMULATOR};
    PipecProgram *program = pipec_program_from(manifest, strlen(manifest), ptx, strlen(ptx), NULL);
    PipecRun *run = pipec_run_new(program, &options);
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    EXPECT(pipec_run_execute(run, &how) == PIPEC_UNUSABLE);
    if (!EXPECT(has_code(pipec_run_diagnostics(run), code, "")))
        fprintf(stderr, "%s\n", pipec_diagnostics_text(pipec_run_diagnostics(run)));
    pipec_run_free(run);
    pipec_program_free(program);
}

static void edited(Scratch *scratch) {
    Built axpy = build("examples/axpy.pipe");
    const char *text = ".version 8.0\n.target sm_90a\n.address_size 64\nnothing\n";
    Arena *arena = scratch->arena;
    const char *old =
        arena_printf(arena, "%016llx", (unsigned long long)fnv1a(FNV_START, axpy.ptx, axpy.length));
    const char *hash =
        arena_printf(arena, "%016llx", (unsigned long long)fnv1a(FNV_START, text, strlen(text)));
    runs_wrong(replaced(scratch, axpy.manifest, old, hash), text, "P0700");
    runs_wrong(replaced(scratch, axpy.manifest, "\"kernel\": \"axpy\"", "\"kernel\": \"other\""),
               axpy.ptx, "P0702");
    pipec_program_free(axpy.program);
}

static void refuses_texts(Scratch *scratch) {
    Built gemm = build("examples/gemm.pipe"), axpy = build("examples/axpy.pipe");
    refused("{}", gemm.ptx, gemm.length, "P0920", "not a manifest of pipec");
    refused("", gemm.ptx, gemm.length, "P0920", "line 1");
    refused(gemm.manifest, axpy.ptx, axpy.length, "P0923", "it is another text");
    refused(gemm.manifest, "", 0, "P0923", "it is another text");
    refused(gemm.manifest, gemm.ptx, gemm.length - 1, "P0923", "it is another text");
    refused(gemm.manifest, gemm.ptx, gemm.length + 2, "P0923", "it is another text");
    const char *ptx = replaced(scratch, gemm.ptx, "bar.sync", "bar.sinc");
    refused(gemm.manifest, ptx, strlen(ptx), "P0923", "it is another text");
    pipec_program_free(gemm.program);
    pipec_program_free(axpy.program);
}

/* The same kernel with other statics: entry, threads and parameters are the same. */
static void refuses_other_statics(void) {
    PipecValue value = {.name = "BN", .integer = 192};
    PipecOptions options = {.size = sizeof options, .numbers = &value, .number_count = 1};
    Built gemm = build("examples/gemm.pipe"), other = build_with("examples/gemm.pipe", &options);
    refused(gemm.manifest, other.ptx, other.length, "P0923", "it is another text");
    refused(other.manifest, gemm.ptx, gemm.length, "P0923", "pass the two files of one build");
    pipec_program_free(gemm.program);
    pipec_program_free(other.program);
}

static void refuses_cubins(Scratch *scratch) {
    Built gemm = build("examples/gemm.pipe"), axpy = build("examples/axpy.pipe");
    Cubin cubin = cubin_of(axpy.ptx, axpy.length, 168);
    const char *bytes = (const char *)&cubin, *made = "did not make it of the PTX";
    refused(gemm.manifest, bytes, CUBIN_BYTES, "P0923", "no cubin with a kernel");
    refused(axpy.manifest, bytes, sizeof(Image) / 2, "P0923", "no cubin");
    refused(axpy.manifest, bytes, sizeof(Image), "P0923", made); /* ptxas by hand */
    refused(axpy.manifest, bytes, CUBIN_BYTES - 1, "P0923", made);
    refused(axpy.manifest, bytes, CUBIN_BYTES + 1, "P0923", made);
    PipecOptions options = {.size = sizeof options, .watchdog = true};
    Built other = build_with("examples/axpy.pipe", &options);
    refused(other.manifest, bytes, CUBIN_BYTES, "P0923", made);
    pipec_program_free(other.program);
    cubin.image.info[12]++; /* its registers */
    refused(axpy.manifest, bytes, CUBIN_BYTES, "P0923", made);
    cubin.image.info[12]--;
    const char *manifest = replaced(scratch, axpy.manifest, "\"registers\": 0, \"watchdog\"",
                                    "\"registers\": 160, \"watchdog\"");
    refused(manifest, bytes, CUBIN_BYTES, "P0923", "168 registers instead of 160");
    pipec_program_free(gemm.program);
    pipec_program_free(axpy.program);
}

static void refuses_options(void) {
    Built axpy = build("examples/axpy.pipe");
    PipecOptions unsized = {.name = "x"};
    PipecProgram *program =
        pipec_program_from(axpy.manifest, strlen(axpy.manifest), axpy.ptx, axpy.length, &unsized);
    EXPECT(has_code(pipec_program_diagnostics(program), "P0917", "PipecOptions"));
    pipec_program_free(program);
    pipec_program_free(axpy.program);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Loads it; *by: who loaded it. True: with this status and, unless NULL, this code */
static bool loads(PipecProgram *program, PipecStatus status, const char *code, const char *by) {
    PipecKernel *kernel;
    PipecDiagnostics *diagnostics;
    PipecKernelInfo info = {.size = sizeof info};
    bool fine = pipec_kernel_load(program, 0, &kernel, &diagnostics) == status &&
                (code == NULL ? diagnostics == NULL : has_code(diagnostics, code, ""));
    if (kernel != NULL && pipec_kernel_info(kernel, &info))
        fine = fine && by != NULL && strncmp(info.loaded_by, by, strlen(by)) == 0;
    else
        fine = fine && by == NULL;
    if (!fine && kernel != NULL) fprintf(stderr, "loaded by %s\n", info.loaded_by);
    if (diagnostics != NULL && !fine) fputs(pipec_diagnostics_text(diagnostics), stderr);
    pipec_diagnostics_free(diagnostics);
    pipec_kernel_free(kernel);
    return fine;
}

/* A kernel `axpy` that uses setmaxnreg, as far as its manifest says */
static PipecProgram *from_cubin(Scratch *scratch, int registers) {
    Built axpy = build("examples/axpy.pipe");
    Cubin cubin = cubin_of(axpy.ptx, axpy.length, registers);
    const char *manifest = replaced(scratch, axpy.manifest, "\"registers\": 0, \"watchdog\"",
                                    "\"registers\": 168, \"watchdog\"");
    PipecProgram *program =
        pipec_program_from(manifest, strlen(manifest), &cubin, CUBIN_BYTES, NULL);
    pipec_program_free(axpy.program);
    return program;
}

static void cubins(Scratch *scratch) {
    PipecProgram *program = from_cubin(scratch, 168);
    standin_says("registers=168");
    EXPECT(loads(program, PIPEC_FINE, NULL, "cubin"));
    standin_says("registers=162"); /* the driver is not what the cubin says */
    EXPECT(loads(program, PIPEC_UNUSABLE, "P0923", NULL));
    standin_says("registers=168,cubin=200");
    EXPECT(loads(program, PIPEC_UNUSABLE, "P0923", NULL));
    standin_says("registers=168");
    EXPECT(pipec_program_ptx(program, NULL) == NULL && pipec_program_emit(program, "ptx") == NULL);
    PipecRun *run = pipec_run_new(program, NULL);
    EXPECT(pipec_run_status(run) == PIPEC_UNUSABLE &&
           has_code(pipec_run_diagnostics(run), "P0922", "loaded from a cubin"));
    pipec_run_free(run);
    EXPECT(pipec_program_assemble(program, "none.cubin") == PIPEC_UNUSABLE);
    EXPECT(has_code(pipec_program_diagnostics(program), "P0922", "no PTX to assemble"));
    pipec_program_free(program);
}

static void texts(void) {
    Built axpy = build("examples/axpy.pipe");
    PipecProgram *program = pipec_program_from(axpy.manifest, strlen(axpy.manifest), axpy.ptx,
                                               axpy.length + 1, NULL); /* with its NUL */
    standin_says("");
    EXPECT(loads(program, PIPEC_FINE, NULL, "the driver"));
    /* It is data: messages name the places, although there is no text, and blame the files. */
    standin_says("jit");
    PipecKernel *kernel;
    PipecDiagnostics *diagnostics;
    EXPECT(pipec_kernel_load(program, 0, &kernel, &diagnostics) == PIPEC_UNUSABLE);
    EXPECT(has_code(diagnostics, "P0801", "at examples/axpy.pipe:"));
    EXPECT(has_code(diagnostics, "P0801", "the kernel was loaded from files"));
    pipec_diagnostics_free(diagnostics);
    standin_says("");
    pipec_program_free(program);
    pipec_program_free(axpy.program);
}

/* A ptxas that copies a cubin of so many registers */
static void put_ptxas(Scratch *scratch, int registers) {
    Image image = image_of(registers);
    const char *path = arena_printf(scratch->arena, "%s/ptxas", folder);
    FILE *out = fopen(arena_printf(scratch->arena, "%s/image", folder), "w");
    EXPECT(out != NULL && fwrite(&image, sizeof image, 1, out) == 1 && fclose(out) == 0);
    out = fopen(path, "w");
    if (!EXPECT(out != NULL)) return;
    fprintf(out,
            "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'release 1, V1.%d'; exit; }\n"
            "cat %s/image >\"$4\"\n",
            registers, folder);
    fclose(out);
    chmod(path, 0755);
    setenv("PIPEC_PTXAS", path, 1);
}

/* What pipec_program_assemble writes is accepted with the manifest. */
static void assembled(Scratch *scratch) {
    Built axpy = build("examples/axpy.pipe");
    char bytes[2 * sizeof(Cubin)];
    put_ptxas(scratch, 64);
    const char *path = arena_printf(scratch->arena, "%s/axpy.cubin", folder);
    EXPECT(pipec_program_assemble(axpy.program, path) == PIPEC_FINE);
    FILE *in = fopen(path, "r");
    if (!EXPECT(in != NULL)) return;
    size_t length = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    EXPECT(length == CUBIN_BYTES);
    PipecProgram *program =
        pipec_program_from(axpy.manifest, strlen(axpy.manifest), bytes, length, NULL);
    EXPECT(loads(program, PIPEC_FINE, NULL, "cubin"));
    setenv("PIPEC_PTXAS", "", 1);
    pipec_program_free(program);
    pipec_program_free(axpy.program);
}

static void with_ptxas(Scratch *scratch) {
    Built axpy = build("examples/axpy.pipe");
    setenv("PIPEC_CACHE", arena_printf(scratch->arena, "%s/cache", folder), 1);
    put_ptxas(scratch, 64);
    EXPECT(loads(axpy.program, PIPEC_FINE, NULL, "ptxas, cached in /tmp/"));
    standin_says("cubin=209"); /* made for a newer driver */
    EXPECT(loads(axpy.program, PIPEC_FINE, "P0921", "the driver"));
    standin_says("fail=cuModuleGetFunction");
    EXPECT(loads(axpy.program, PIPEC_UNUSABLE, "P0806", NULL));
    standin_says("");
    setenv("PIPEC_CACHE", "", 1);
    EXPECT(loads(axpy.program, PIPEC_FINE, NULL, "the driver"));
    setenv("PIPEC_PTXAS", "", 1);
    pipec_program_free(axpy.program);
}

/* ---- the cache, for its user ----------------------------------------------------------------- */

static const char *why_of(Scratch *scratch, const PipecProgram *program) {
    PipecCache *cache = pipec_cache_open();
    const char *text = pipec_cache_why(cache, program);
    text = arena_copy(scratch->arena, text, strlen(text));
    pipec_cache_free(cache);
    return text;
}

static void caches(Scratch *scratch) {
    Built axpy = build("examples/axpy.pipe");
    PipecCacheInfo info = {.size = sizeof info}, unsized = {.size = 0};
    PipecCacheEntry entry = {.size = sizeof entry};
    PipecProgram *given = from_cubin(scratch, 168);
    setenv("PIPEC_CACHE", arena_printf(scratch->arena, "%s/other", folder), 1);
    put_ptxas(scratch, 64);
    EXPECT(strstr(why_of(scratch, axpy.program), "its first load runs ptxas") != NULL);
    EXPECT(strstr(why_of(scratch, given), "no cache is needed") != NULL);
    EXPECT(loads(axpy.program, PIPEC_FINE, NULL, "ptxas, cached in"));
    EXPECT(strstr(why_of(scratch, axpy.program), "`axpy` is loaded from /tmp/") != NULL);
    PipecCache *cache = pipec_cache_open();
    EXPECT(pipec_cache_info(cache, &info) && info.off == NULL && info.entries == 1 &&
           strcmp(info.version, "1.64") == 0 && info.bytes > axpy.length);
    EXPECT(!pipec_cache_info(cache, &unsized));
    EXPECT(pipec_cache_entry(cache, 0, &entry) && strcmp(entry.kernel, "axpy") == 0 &&
           strcmp(entry.target, "sm_90a") == 0 && entry.used > 1000000000);
    EXPECT(!pipec_cache_entry(cache, 1, &entry));
    size_t removed;
    uint64_t bytes;
    PipecDiagnostics *diagnostics;
    EXPECT(pipec_cache_clear(cache, &removed, &bytes, &diagnostics) == PIPEC_FINE &&
           diagnostics == NULL && removed == 2 && bytes == info.bytes);
    pipec_cache_free(cache);
    EXPECT(system(arena_printf(scratch->arena, "rm -r %s/other/cubins; touch %s/other/cubins",
                               folder, folder)) == 0);
    cache = pipec_cache_open();
    EXPECT(pipec_cache_clear(cache, &removed, &bytes, &diagnostics) == PIPEC_UNUSABLE &&
           has_code(diagnostics, "P0924", "cannot clear the cache"));
    pipec_diagnostics_free(diagnostics);
    EXPECT(strstr(pipec_cache_why(cache, axpy.program), "the driver loads it") != NULL);
    pipec_cache_free(cache);
    setenv("PIPEC_PTXAS", "", 1);
    EXPECT(strstr(why_of(scratch, NULL), "the driver loads the PTX of all kernels") != NULL);
    pipec_program_free(given);
    pipec_program_free(axpy.program);
}

int main(void) {
    Scratch scratch = scratch_new();
    Standin *standin = standin_open();
    if (!EXPECT(mkdtemp(folder) != NULL)) return 1;
    standin_says("");
    describes();
    runs();
    edited(&scratch);
    refuses_texts(&scratch);
    refuses_other_statics();
    refuses_cubins(&scratch);
    refuses_options();
    cubins(&scratch);
    texts();
    assembled(&scratch);
    with_ptxas(&scratch);
    caches(&scratch);
    EXPECT(standin_is_clean(standin));
    if (system(arena_printf(scratch.arena, "rm -r %s", folder)) != 0) perror(folder);
    scratch_free(&scratch);
    return expect_failures();
}
