/* The work that a manifest lists is what the emulator counts: bytes of the copy engine in both
 * directions and matrix instructions, for the kernels of examples/, tests/run and tests/corpus with
 * the sizes of their examples. What data decide, or may end early, is at least that. `work 1`
 * takes all programs, `work N` every Nth. */
#include "lib/private.h"
#include "tests/unit/expect.h"

#include <glob.h>
#include <math.h>
#include <stdlib.h>

#define TEXT_MOST 65536

static size_t exact, most; /* kernels that were compared, and those with a bound */

static bool read_text(const char *path, char *text) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return false;
    size_t length = fread(text, 1, TEXT_MOST, file);
    fclose(file);
    text[length < TEXT_MOST ? length : 0] = 0;
    return true;
}

static void compare(const char *path, const char *kernel, const char *what, double expected,
                    uint64_t counted, bool bounded) {
    double number = (double)counted;
    bool fine = bounded ? expected >= number : expected == number;
    if (!EXPECT(fine))
        fprintf(stderr, "%s, kernel %s: %s: expected %s%.0f, counted %.0f\n", path, kernel, what,
                bounded ? "at most " : "", expected, number);
}

static void compare_run(const char *path, const char *kernel, PipecRun *run) {
    WorkTotals expected;
    const RunResult *counted;
    if (!EXPECT(run_work(run, &expected, &counted)) || expected.sampled || expected.unknown) return;
    bool bounded = expected.bounded;
    *(bounded ? &most : &exact) += 1;
    compare(path, kernel, "copies in", expected.amount[WORK_COPY_IN], counted->copied_in, bounded);
    compare(path, kernel, "copies out", expected.amount[WORK_COPY_OUT], counted->copied_out,
            bounded);
    compare(path, kernel, "matrix instructions", expected.pieces[WORK_MATRIX], counted->matrices,
            bounded);
}

static void run_kernel(const char *path, const char *text, const char *kernel) {
    PipecOptions options = {.size = sizeof options, .name = path, .kernel = kernel};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    if (pipec_diagnostics_errors(pipec_program_diagnostics(program)) == 0) {
        PipecRunOptions given = {.size = sizeof given};
        PipecRun *run = pipec_run_new(program, &given);
        PipecExecuteOptions execute = {
            .size = sizeof execute, .where = PIPEC_ON_EMULATOR, .no_races = true};
        if (pipec_run_execute(run, &execute) == PIPEC_FINE) compare_run(path, kernel, run);
        pipec_run_free(run);
    }
    pipec_program_free(program);
}

/* Each kernel of the file, by the line that begins it */
static void run_file(const char *path, const char *text) {
    for (const char *at = text; at != NULL; at = strstr(at + 1, "\nkernel ")) {
        char name[64];
        if (sscanf(at, " kernel %63[A-Za-z0-9_]", name) == 1) run_kernel(path, text, name);
    }
}

/* Instructions beside those of the matrix unit are those of the loop around both */
static void expect_beside(const char *path, bool some) {
    static char text[TEXT_MOST + 1];
    if (!EXPECT(read_text(path, text))) return;
    PipecOptions options = {.size = sizeof options, .name = path, .untuned = true};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    if (EXPECT(program->manifest != NULL)) {
        size_t beside = 0;
        for (size_t i = 0; i < program->manifest->work.count; i++)
            beside += program->manifest->work.items[i].beside;
        EXPECT((beside > 0) == some);
    }
    pipec_program_free(program);
}

int main(int argc, char **argv) {
    static const char *const patterns[] = {"examples/*.pipe", "tests/run/*.pipe",
                                           "tests/corpus/*.pipe"};
    static char text[TEXT_MOST + 1];
    long step = argc > 1 ? strtol(argv[1], NULL, 10) : 7;
    if (argc > 2) { /* one file */
        if (EXPECT(read_text(argv[2], text))) run_file(argv[2], text);
        return expect_failures();
    }
    expect_beside("bench/attention/whole.pipe", true);
    expect_beside("examples/gemm.pipe", false);
    for (size_t p = 0; p < COUNT_OF(patterns); p++) {
        glob_t files = {0};
        EXPECT(glob(patterns[p], 0, NULL, &files) == 0);
        for (size_t i = p; i < files.gl_pathc; i += (size_t)step)
            if (EXPECT(read_text(files.gl_pathv[i], text))) run_file(files.gl_pathv[i], text);
        globfree(&files);
    }
    printf("%zu kernels exactly, %zu at most\n", exact, most);
    EXPECT(exact > 10 && most > 0);
    return expect_failures();
}
