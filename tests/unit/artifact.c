/* Programs without their source: from a manifest and its PTX or cubin; and kernels that are loaded
 * from cubins of ptxas, on the stand-in driver. */
#include "include/pipec.h"
#include "tests/unit/cubin.h"
#include "tests/unit/standin.h"

#include <sys/stat.h>

static char folder[] = "/tmp/pipec-artifact-XXXXXX";

typedef struct Built {
    PipecProgram *program;
    const char *manifest, *ptx;
    size_t length;
} Built;

static Built build(const char *file) {
    Built out = {.program = pipec_compile_file(file, NULL)};
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
    PipecRun *run = pipec_run_new(program, NULL);
    EXPECT(pipec_run_status(run) == PIPEC_UNUSABLE &&
           has_code(pipec_run_diagnostics(run), "P0922", "without its source"));
    pipec_run_free(run);
    pipec_program_free(program);
    pipec_program_free(from.program);
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

static void refuses(Scratch *scratch) {
    Built gemm = build("examples/gemm.pipe"), axpy = build("examples/axpy.pipe");
    Image image = image_of(168);
    refused("{}", gemm.ptx, gemm.length, "P0920", "not a manifest of pipec");
    refused("", gemm.ptx, gemm.length, "P0920", "line 1");
    refused(gemm.manifest, axpy.ptx, axpy.length, "P0923", "it has no entry `gemm`");
    refused(gemm.manifest, "", 0, "P0923", "it has no entry");
    refused(gemm.manifest, "\0\0", 2, "P0923", "NUL byte");
    refused(gemm.manifest, gemm.ptx, gemm.length / 50, "P0923", "its end is missing");
    const char *ptx = replaced(scratch, gemm.ptx, ".entry gemm(", ".entry gemm_2(");
    refused(gemm.manifest, ptx, strlen(ptx), "P0923", "it has no entry");
    ptx = replaced(scratch, gemm.ptx, ".target sm_90a", ".target sm_90");
    refused(gemm.manifest, ptx, strlen(ptx), "P0923", "its target is not sm_90a");
    ptx = replaced(scratch, gemm.ptx, ".reqntid 384", ".reqntid 256");
    refused(gemm.manifest, ptx, strlen(ptx), "P0923", "do not have 384 threads");
    ptx = replaced(scratch, gemm.ptx, ".param .u32 extent_M,", "");
    refused(gemm.manifest, ptx, strlen(ptx), "P0923", "parameters");
    refused(gemm.manifest, (const char *)&image, sizeof image, "P0923", "no cubin with a kernel");
    refused(axpy.manifest, (const char *)&image, sizeof image / 2, "P0923", "no cubin");
    const char *manifest = replaced(scratch, axpy.manifest, "\"registers\": 0, \"watchdog\"",
                                    "\"registers\": 160, \"watchdog\"");
    refused(manifest, (const char *)&image, sizeof image, "P0923", "168 registers instead of 160");
    PipecOptions unsized = {.name = "x"};
    PipecProgram *program =
        pipec_program_from(axpy.manifest, strlen(axpy.manifest), axpy.ptx, axpy.length, &unsized);
    EXPECT(has_code(pipec_program_diagnostics(program), "P0917", "PipecOptions"));
    pipec_program_free(program);
    pipec_program_free(gemm.program);
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
    Image image = image_of(registers);
    const char *manifest = replaced(scratch, axpy.manifest, "\"registers\": 0, \"watchdog\"",
                                    "\"registers\": 168, \"watchdog\"");
    PipecProgram *program =
        pipec_program_from(manifest, strlen(manifest), &image, sizeof image, NULL);
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
    standin_says("jit"); /* messages name the places, although there is no text */
    PipecKernel *kernel;
    PipecDiagnostics *diagnostics;
    EXPECT(pipec_kernel_load(program, 0, &kernel, &diagnostics) == PIPEC_BUG);
    EXPECT(has_code(diagnostics, "P0801", "at examples/axpy.pipe:"));
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
    refuses(&scratch);
    cubins(&scratch);
    texts();
    with_ptxas(&scratch);
    caches(&scratch);
    EXPECT(standin_is_clean(standin));
    if (system(arena_printf(scratch.arena, "rm -r %s", folder)) != 0) perror(folder);
    scratch_free(&scratch);
    return expect_failures();
}
