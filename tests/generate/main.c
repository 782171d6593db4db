/* generate-test [--count N] [--seed S] [--write DIR] [--only SEED] [--assemble] [--gpu]
 * [--refused] [--reductions] [--draw]
 *
 * Compiles random kernels, runs them on the emulator on several schedules, and compares with
 * `ensures`; with --gpu also on the GPU, in this process. If ptxas is found, a share of the
 * texts is assembled, with --assemble every second one. A failing program is printed. Refusals
 * that random programs may get (a copy that is not a box, too much shared memory) are counted,
 * and must be the minority. Many kernels are for several targets: the check of all must say what
 * the checks of each say, and each is run. --draw only prints the programs, for same-test. */
#include "emulator/emulator.h"
#include "lib/private.h"
#include "reference/reference.h"
#include "runtime/runtime.h"
#include "tests/generate/generate.h"
#include "tests/generate/targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define COUNT 40 /* an instrumented emulator is slow */
#else
#define COUNT 200
#endif
/* bytes: a random register tile may need all registers of a thread */
#define SPILLS 160

typedef struct Run {
    int passed, failed, tried, refused;
    const char *folder;
    int every; /* one in this many texts is assembled */
    bool assemble, show_refused, reductions, draw;
    Runtime *gpu;
} Run;

static bool fail(Run *run, const Generated *program, const char *what, const Diags *diags,
                 Arena *arena) {
    Str text = str_new(arena);
    str_add(&text, "");
    if (diags != NULL) diags_render(diags, false, &text);
    printf("---- %s\n%s%s\n", what, text.text, program->text);
    run->failed++;
    return false;
}

/* ---- one run --------------------------------------------------------------------------------- */

static const char *run_once(Run *run, const PipecProgram *program, const Argument *arguments,
                            size_t count, uint64_t schedule, Arena *arena, Diags *diags, bool gpu) {
    LaunchOptions options = {
        .seed = 7 + schedule, .watchdog_ns = 2000000000, .strided = schedule % 2 == 1};
    const char *what = NULL;
    Argument *all;
    size_t total;
    if (!reference_arguments(arena, program->prog, program->manifest, arguments, count, &all,
                             &total, diags))
        return "its arguments are refused";
    Launch *launch = launch_prepare(arena, program->manifest, program->ptx.text,
                                    program->ptx.length, all, total, &options, diags);
    if (launch == NULL) return "its launch is refused";
    Before before = {0};
    RunResult result = {0};
    EmulatorOptions emulator = {.seed = schedule, .resident = (int)(schedule % 5)};
    RuntimeOptions runtime = {0};
    if (!reference_before(arena, program->prog, launch, &before, diags))
        what = "nothing is kept of before";
    else if (gpu && runtime_run(arena, run->gpu, launch, &runtime, &result, diags) != RUN_DONE)
        what = "it does not run on the GPU";
    else if (!gpu && emulator_run(arena, launch, &emulator, &result, diags) != RUN_DONE)
        what = "it does not run on the emulator";
    else if (!launch_guards(launch, diags))
        what = "it writes outside of its tensors";
    if (what == NULL) {
        Verdict verdict;
        ReferenceOptions reference = {.seed = 1};
        reference_verdict(arena, program->prog, launch, &before, &reference, &verdict, diags);
        if (verdict.kind != VERDICT_RIGHT || verdict.wrong > 0 || verdict.untouched > 0)
            what = gpu ? "it is wrong on the GPU" : "it is wrong";
    }
    reference_before_free(&before);
    launch_free(launch);
    return what;
}

static bool run_sizes(Run *run, const PipecProgram *program, const Generated *generated, int size,
                      uint64_t schedule, bool gpu) {
    Arena *arena = arena_new();
    Diags *diags = diags_new(arena, program->source);
    VEC(Argument) arguments = {0};
    char *words = arena_copy(arena, generated->sizes[size], strlen(generated->sizes[size])), *rest;
    for (char *word = strtok_r(words, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        Argument argument;
        if (argument_parse(arena, word, &argument, diags)) vec_push(arena, &arguments, argument);
    }
    const char *what =
        run_once(run, program, arguments.items, arguments.count, schedule, arena, diags, gpu);
    bool fine = what == NULL;
    if (fine)
        run->passed++;
    else
        fail(run, generated,
             arena_printf(arena, "%s (%s, schedule %llu)", what, generated->sizes[size],
                          (unsigned long long)schedule),
             diags, arena);
    arena_free(arena);
    return fine;
}

/* ---- one program ----------------------------------------------------------------------------- */

/* True for errors that are expected of random kernels: not a box, too much shared memory,
 * threads or barriers; of older targets, that copies into stages are not `by lanes` */
static bool may_be_refused(const Diags *diags, const char *target) {
    bool lacks = !target_by_name(target)->has[CAP_COPY_ENGINE];
    static const Code allowed[] = {P0211, P0212, P0213, P0500, P0501, P0504, P0505};
    for (size_t i = 0; i < diags->items.count; i++) {
        Severity severity = code_rows[diags->items.items[i]->code].severity;
        bool found = severity == SEVERITY_WARNING || severity == SEVERITY_NOTE;
        found |= lacks && diags->items.items[i]->code == P0507;
        for (size_t a = 0; a < COUNT_OF(allowed); a++)
            found |= diags->items.items[i]->code == allowed[a];
        if (!found) return false;
    }
    return true;
}

static void write_program(const Run *run, const Generated *program, uint64_t seed, Arena *arena) {
    FILE *file = fopen(
        arena_printf(arena, "%s/random-%llu.pipe", run->folder, (unsigned long long)seed), "w");
    if (file == NULL) return;
    fputs("// A random program: each claim follows from how it was drawn.\n", file);
    fputs(program->text, file);
    fclose(file);
}

/* One target of a program */
static void try_target(Run *run, const Generated *generated, uint64_t seed, int number,
                       const char *target, Arena *arena) {
    PipecOptions options = {.size = sizeof options,
                            .name = "random.pipe",
                            .target = target,
                            .watchdog = number % 8 == 0};
    PipecProgram *program = pipec_compile(generated->text, strlen(generated->text), &options);
    const char *output = NULL;
    run->tried++;
    if (pipec_program_status(program) != PIPEC_FINE || program->manifest == NULL) {
        if (may_be_refused(program->diags, target)) {
            run->refused++;
            if (run->show_refused)
                fail(run, generated, "refused", program->diags, arena), run->failed--;
        } else {
            fail(run, generated, "it is refused", program->diags, arena);
        }
    } else if (run->assemble && number % run->every == 1 &&
               !assembles(arena, target, program->ptx.text, SPILLS, &output)) {
        fail(run, generated, arena_printf(arena, "ptxas complains: %s", output), NULL, arena);
    } else {
        bool fine = true;
        for (int size = 0; size < SIZES && fine; size++) {
            fine = run_sizes(run, program, generated, size,
                             size == 0 ? 0 : seed * SIZES + (uint64_t)size, false);
            bool runs = run->gpu != NULL && strcmp(target, "sm_90a") == 0;
            if (fine && runs) fine = run_sizes(run, program, generated, size, 0, true);
        }
    }
    pipec_program_free(program);
}

static void try_program(Run *run, uint64_t seed, int number) {
    Arena *arena = arena_new();
    Generated generated =
        run->reductions ? generate_reductions(arena, seed) : generate(arena, seed);
    if (run->draw) {
        drawn_print(run->reductions ? "reductions" : "generate", seed, generated.text);
        arena_free(arena);
        return;
    }
    TargetList targets = targets_draw(arena, seed);
    generated.text = targets_into(arena, generated.text, &targets);
    const char *differs = targets.count > 1 ? targets_agree(arena, generated.text, &targets) : NULL;
    if (differs != NULL) fail(run, &generated, differs, NULL, arena);
    for (int i = 0; i < targets.count; i++)
        try_target(run, &generated, seed, number, targets.names[i], arena);
    if (run->folder != NULL) write_program(run, &generated, seed, arena);
    arena_free(arena);
}
int main(int argc, char **argv) {
    Run run = {.every = 16, .assemble = system("ptxas --version >/dev/null 2>&1") == 0};
    uint64_t seed = 1, count = COUNT;
    Arena *arena = arena_new();
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--count") == 0 && more)
            count = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0 && more)
            seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0 && more)
            seed = strtoull(argv[++i], NULL, 10), count = 1, run.show_refused = true;
        else if (strcmp(argv[i], "--write") == 0 && more)
            run.folder = argv[++i];
        else if (strcmp(argv[i], "--assemble") == 0)
            run.every = 2;
        else if (strcmp(argv[i], "--gpu") == 0)
            run.gpu = open_gpu(arena, &run.failed);
        else if (strcmp(argv[i], "--refused") == 0)
            run.show_refused = true;
        else if (strcmp(argv[i], "--reductions") == 0)
            run.reductions = true;
        else if (strcmp(argv[i], "--draw") == 0)
            run.draw = true;
        else {
            fprintf(stderr, "generate-test [--count N] [--seed S] [--only SEED] [--write DIR] "
                            "[--assemble] [--gpu] [--refused] [--reductions] [--draw]\n");
            return 2;
        }
    }
    for (uint64_t i = 0; i < count; i++) try_program(&run, seed + i, (int)i);
    if (run.gpu != NULL) runtime_close(run.gpu);
    arena_free(arena);
    if (run.draw) return 0;
    if (count > 1 && run.refused * 2 > run.tried) {
        printf("%d of %d programs are refused: nothing is tested by them\n", run.refused,
               run.tried);
        run.failed++;
    }
    printf("%d of %d programs refused as no box or too large\n", run.refused, run.tried);
    printf("%d passed, %d failed\n", run.passed, run.failed);
    return run.failed > 0;
}
