/* 100,000 mistakes of one kind: the first 20 places are reported, in less than 1 s and 120 MB.
 * Each kind is checked in a process of its own. */
#include "include/pipec.h"
#include "tests/unit/expect.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define SLOWER 20 /* slowdown by the sanitizers */
#else
#define SLOWER 1
#endif
#define MISTAKES     100000
#define SECONDS_MOST (1.0 * SLOWER)
#define MEGA_MOST    (120L * SLOWER)

static const struct {
    const char *before, *after; /* the number of the line between them */
    const char *code;
} kinds[] = {
    {"let a", " = other + 1;", NULL}, /* one missing declaration is one error */
    {"let a = b", " + 1;", "P0100"},  /* unknown names */
    {"let a = ; //", "", "P0001"},
    {"let a = ", "", "P0014"},
    {"let a: i32 = 1.5 * ", ";", "P0104"},
    {"let a = true + ", ";", "P0107"},
    {"t = ", ";", "P0117"},
    {"let a = f", "(1);", "P0121"},
    {"let t = ", ";", "P0101"},
    {"release s", ";", "P0100"},
    {"$ @", "", "P0002"},
};

static void write_kernel(Str *text, size_t kind) {
    str_add(text, "kernel k(X: f32[N], out Y: f32[N]) for sm_90a {\n    grid (t: ceil(N, 128));\n"
                  "    role work: 4 warps { for t in grid {\n");
    for (int i = 0; i < MISTAKES; i++)
        str_printf(text, "        %s%d%s\n", kinds[kind].before, i, kinds[kind].after);
    str_add(text, "    } }\n}\n");
}

static void check(Scratch *scratch, size_t kind) {
    Str text = str_new(scratch->arena);
    write_kernel(&text, kind);
    PipecOptions options = {.size = sizeof options, .check_only = true};
    PipecProgram *program = pipec_compile(text.text, text.length, &options);
    const PipecDiagnostics *diagnostics = pipec_program_diagnostics(program);
    size_t places = 0, others = 0;
    for (size_t i = 0; i < pipec_diagnostics_count(diagnostics); i++) {
        bool same = kinds[kind].code &&
                    strcmp(pipec_diagnostics_get(diagnostics, i)->code, kinds[kind].code) == 0;
        places += same, others += !same;
    }
    EXPECT(pipec_diagnostics_errors(diagnostics) > 0 && places == (kinds[kind].code ? 20 : 0) &&
           others <= 3);
    pipec_program_free(program);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double seconds = (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec * 1e-6;
    if (!EXPECT(seconds < SECONDS_MOST && used.ru_maxrss / 1024 < MEGA_MOST))
        fprintf(stderr, "`%s`: %.2f s, %ld MB\n", kinds[kind].before, seconds,
                used.ru_maxrss / 1024);
}

int main(void) {
    int failures = 0;
    for (size_t kind = 0; kind < COUNT_OF(kinds); kind++) {
        pid_t child = fork();
        if (child == 0) {
            Scratch scratch = scratch_new();
            check(&scratch, kind);
            scratch_free(&scratch);
            exit(expect_failures());
        }
        int status = 1;
        waitpid(child, &status, 0);
        failures += status != 0;
    }
    return failures > 0;
}
