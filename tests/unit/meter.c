/* The meter: if it ends a check anywhere, the verdict is incomplete; a check that it does not
 * end is unchanged. */
#include "include/pipec.h"
#include "lib/private.h"
#include "tests/unit/expect.h"

#define STOPS 40 /* number of steps at which the check of a file is ended */

static bool says(const PipecProgram *program, const char *code) {
    const PipecDiagnostics *diagnostics = pipec_program_diagnostics(program);
    for (size_t i = 0; i < pipec_diagnostics_count(diagnostics); i++)
        if (strcmp(pipec_diagnostics_get(diagnostics, i)->code, code) == 0) return true;
    return false;
}

/* Steps of the check, or of the whole build; *status: its status */
static uint64_t steps_of(const char *path, bool check_only, PipecStatus *status) {
    PipecOptions options = {.size = sizeof options, .check_only = check_only};
    PipecProgram *program = pipec_compile_file(path, &options);
    uint64_t steps = arena_meter(program->arena)->steps;
    *status = pipec_program_status(program);
    pipec_program_free(program);
    return steps;
}

static void end_at(const char *path, bool check_only, uint64_t work, PipecStatus whole) {
    PipecOptions options = {.size = sizeof options, .check_only = check_only, .work = work};
    PipecProgram *program = pipec_compile_file(path, &options);
    bool ended = says(program, "P0490"), some = says(program, "P0163");
    PipecStatus status = pipec_program_status(program);
    if (!EXPECT(ended || some ? status == PIPEC_INCOMPLETE || status == PIPEC_REFUSED
                              : status == whole) ||
        !EXPECT(check_only || (pipec_program_ptx(program, NULL) != NULL) == (status == PIPEC_FINE)))
        fprintf(stderr, "%s with %llu steps: status %d\n", path, (unsigned long long)work,
                (int)status);
    pipec_program_free(program);
}

static void test_file(const char *path, bool check_only) {
    PipecStatus whole;
    uint64_t steps = steps_of(path, check_only, &whole);
    for (uint64_t i = 1; i <= STOPS; i++)
        end_at(path, check_only, i * i * steps / (STOPS * STOPS) + 1, whole);
    end_at(path, check_only, 2 * steps, whole);
}

/* Steps used by one piece of work remain counted for the next. */
static void take_much(void *data) {
    Arena *scratch = arena_scratch(data);
    for (;;) (void)arena_alloc(scratch, 1000);
}

static void test_memory(void) {
    Arena *arena = arena_new();
    Meter *meter = arena_meter(arena);
    meter->bytes_most = 10 << 20;
    for (int i = 0; i < 3; i++)
        EXPECT(!arena_metered(arena, take_much, arena) && meter->bytes <= meter->bytes_most);
    (void)arena_alloc(arena, 20 << 20); /* no limits outside arena_metered */
    meter->bytes_most = UINT64_MAX, meter->steps_most = meter->steps + 1000;
    EXPECT(!arena_metered(arena, take_much, arena) && meter->steps > meter->steps_most);
    arena_free(arena);
}

static void add_kernel(Str *text, const char *name, const char *work) {
    str_printf(text, "kernel %s(X: f32[N], out Y: f32[N]) for sm_90a {\n", name);
    str_add(
        text,
        "    grid persistent (t: ceil(N, 128));\n    pipe p[2] load -> work { x: f32[128]; }\n");
    str_add(text, "    role load: 1 warp { for t in grid { produce <p> as s { s.x[i] = X[t*128 + "
                  "i]; } } }\n");
    str_printf(text, "    role work: 4 warps { for t in grid {\n%s", work);
    str_add(text, "        consume <p> as s { Y[t*128 + i] = s.x[i]; }\n    } }\n}\n");
}

/* A kernel that uses up its share of work does not reduce the share of later ones. */
static void test_neighbours(void) {
    Arena *arena = arena_new();
    Str text = str_new(arena), breaks = str_new(arena);
    str_add(&breaks, "        var c = 0;\n        for k in 0 .. t {\n");
    for (int i = 1; i < 60; i++)
        str_printf(&breaks, "            if c == %d { break; }\n            c = c + %d;\n", i, i);
    str_add(&breaks, "        }\n        if c > 3 { continue; }\n");
    add_kernel(&text, "long", breaks.text);
    for (int i = 0; i < 3; i++) add_kernel(&text, arena_printf(arena, "short%d", i), "");
    PipecOptions options = {.size = sizeof options, .check_only = true, .work = 2000000};
    PipecProgram *program = pipec_compile(text.text, text.length, &options);
    const PipecDiagnostics *diagnostics = pipec_program_diagnostics(program);
    EXPECT(pipec_program_status(program) == PIPEC_INCOMPLETE);
    if (EXPECT(pipec_diagnostics_count(diagnostics) == 1))
        EXPECT(strstr(pipec_diagnostics_get(diagnostics, 0)->message, "`long`") != NULL);
    pipec_program_free(program);
    arena_free(arena);
}

int main(void) {
    const char *const files[] = {"examples/axpy.pipe", "examples/gemm.pipe",
                                 "tests/check/P03xx/dropped-by-break.pipe",
                                 "tests/run/empty-loads.pipe"};
    for (size_t i = 0; i < COUNT_OF(files); i++) test_file(files[i], true);
    for (size_t i = 0; i < 2; i++) test_file(files[i], false);
    test_memory();
    test_neighbours();
    return expect_failures();
}
