/* The meter: wherever it ends a check, the verdict is incomplete, and a check that it leaves alone says what it says without. */
#include "include/pipec.h"
#include "lib/private.h"
#include "tests/unit/expect.h"

#define STOPS 40 /* at which the check of a file is ended */

static bool says(const PipecProgram *program, const char *code) {
    const PipecDiagnostics *said = pipec_program_diagnostics(program);
    for (size_t i = 0; i < pipec_diagnostics_count(said); i++)
        if (strcmp(pipec_diagnostics_get(said, i)->code, code) == 0) return true;
    return false;
}

/* Steps that the check, or the whole build, takes; its status too */
static uint64_t steps_of(const char *path, bool check_only, PipecStatus *status) {
    PipecOptions options = {.check_only = check_only};
    PipecProgram *program = pipec_compile_file(path, &options);
    uint64_t steps = arena_meter(program->arena)->steps;
    *status = pipec_program_status(program);
    pipec_program_free(program);
    return steps;
}

static void end_at(const char *path, bool check_only, uint64_t work, PipecStatus whole) {
    PipecOptions options = {.check_only = check_only, .work = work};
    PipecProgram *program = pipec_compile_file(path, &options);
    bool ended = says(program, "P0490"), some = says(program, "P0163");
    PipecStatus status = pipec_program_status(program);
    if (!EXPECT(ended || some ? status == PIPEC_INCOMPLETE || status == PIPEC_REFUSED : status == whole) ||
        !EXPECT(check_only || (pipec_program_ptx(program, NULL) != NULL) == (status == PIPEC_FINE)))
        fprintf(stderr, "%s with %llu steps: status %d\n", path, (unsigned long long)work, (int)status);
    pipec_program_free(program);
}

static void test_file(const char *path, bool check_only) {
    PipecStatus whole;
    uint64_t steps = steps_of(path, check_only, &whole);
    for (uint64_t i = 1; i <= STOPS; i++) end_at(path, check_only, i * i * steps / (STOPS * STOPS) + 1, whole);
    end_at(path, check_only, 2 * steps, whole);
}

/* What one piece of work leaves, the next one has again; steps stay counted. */
static void take_much(void *data) {
    Arena *scratch = arena_scratch(data);
    for (;;) (void)arena_alloc(scratch, 1000);
}

static void test_memory(void) {
    Arena *arena = arena_new();
    Meter *meter = arena_meter(arena);
    meter->bytes_most = 10 << 20;
    for (int i = 0; i < 3; i++) EXPECT(!arena_metered(arena, take_much, arena) && meter->bytes <= meter->bytes_most);
    (void)arena_alloc(arena, 20 << 20); /* nothing is limited outside */
    meter->bytes_most = UINT64_MAX, meter->steps_most = meter->steps + 1000;
    EXPECT(!arena_metered(arena, take_much, arena) && meter->steps > meter->steps_most);
    arena_free(arena);
}

int main(void) {
    const char *const files[] = {"examples/axpy.pipe", "examples/gemm.pipe", "tests/check/dropped-by-break.pipe",
                                 "tests/run/empty-loads.pipe"};
    for (size_t i = 0; i < COUNT_OF(files); i++) test_file(files[i], true);
    for (size_t i = 0; i < 2; i++) test_file(files[i], false);
    test_memory();
    return expect_failures();
}
