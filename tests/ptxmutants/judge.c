/* Runs of kernels and of their mutants.
 *
 * A mutant is right if the emulator reports nothing and the results fit `ensures`. Results that
 * are bitwise those of the kernel itself are not compared again. */
#include "tests/ptxmutants/judge.h"

#include "emulator/emulator.h"
#include "reference/reference.h"

#include <stdlib.h>
#include <string.h>

/* a mutant may take this many times as many instructions as its kernel, and some more */
#define LIMIT_FACTOR 6
#define LIMIT_MORE   200000

/* One run: `launch` holds the results until free_run */
typedef struct Trial {
    Arena *arena;
    Diags *diags;
    const PipecProgram *program;
    Launch *launch; /* NULL: it could not be prepared */
    Before before;
    RunStatus status;
    RunResult result;
} Trial;

/* ---- one run --------------------------------------------------------------------------------- */

static Launch *prepare(Kernel *kernel, const Sizes *sizes, const char *ptx, Trial *trial) {
    const PipecProgram *program = kernel->program;
    LaunchOptions options = {.seed = 1};
    VEC(Argument) given = {0};
    Argument argument, *all;
    size_t count;
    for (size_t i = 0; i < sizes->values.count; i++)
        if (!pipec_program_is_static(program, sizes->values.items[i]) &&
            argument_parse(trial->arena, sizes->values.items[i], &argument, trial->diags))
            vec_push(trial->arena, &given, argument);
    if (!reference_arguments(trial->arena, program->prog, program->manifest, given.items,
                             given.count, &all, &count, trial->diags))
        return NULL;
    return launch_prepare(trial->arena, program->manifest, ptx, strlen(ptx), all, count, &options,
                          trial->diags);
}

static Trial run(Kernel *kernel, const Sizes *sizes, const char *ptx, uint64_t seed) {
    Trial trial = {.arena = arena_new(), .program = kernel->program, .status = RUN_UNAVAILABLE};
    EmulatorOptions options = {.seed = seed, .resident = kernel->resident};
    if (sizes->instructions > 0) options.limit = LIMIT_FACTOR * sizes->instructions + LIMIT_MORE;
    trial.diags = diags_new(trial.arena, kernel->program->source);
    trial.launch = prepare(kernel, sizes, ptx, &trial);
    if (trial.launch != NULL && reference_before(trial.arena, kernel->program->prog, trial.launch,
                                                 &trial.before, trial.diags))
        trial.status =
            emulator_run(trial.arena, trial.launch, &options, &trial.result, trial.diags);
    return trial;
}

static void end_run(Trial *trial) {
    reference_before_free(&trial->before);
    if (trial->launch != NULL) launch_free(trial->launch);
    arena_free(trial->arena);
}

static bool is_right(Trial *trial) {
    Verdict verdict = {.kind = VERDICT_WRONG};
    if (!launch_guards(trial->launch, trial->diags)) return false;
    reference_verdict(trial->arena, trial->program->prog, trial->launch, &trial->before,
                      &(ReferenceOptions){.seed = 1}, &verdict, trial->diags);
    return verdict.kind == VERDICT_RIGHT;
}

static bool is_same(const Sizes *sizes, const Launch *launch) {
    for (size_t i = 0; i < sizes->right.count; i++) {
        const Array *right = &sizes->right.items[i];
        if (right->data != NULL && memcmp(right->data, launch->arrays[i].data, right->bytes) != 0)
            return false;
    }
    return true;
}

/* The first finding; "": none. An error comes before warnings, after which the run goes on. */
static const char *finding_of(const Diags *diags) {
    const char *first = "";
    for (size_t i = 0; i < diags->items.count; i++) {
        const CodeRow *row = &code_rows[diags->items.items[i]->code];
        if (row->severity == SEVERITY_ERROR || row->severity == SEVERITY_INCOMPLETE)
            return row->name;
        if (row->severity == SEVERITY_WARNING && *first == '\0') first = row->name;
    }
    return first;
}

/* ---- kernels --------------------------------------------------------------------------------- */

Kernel *kernel_open(Arena *arena, const char *line, const char **why) {
    Kernel *kernel = NEW(arena, Kernel);
    char *rest, *words = arena_copy(arena, line, strlen(line));
    const char *resident = NULL;
    kernel->arena = arena;
    kernel->size_count = 1;
    kernel->name = arena_copy(arena, line, strlen(line));
    kernel->file = strtok_r(words, " ", &rest);
    for (char *word; (word = strtok_r(NULL, " ", &rest)) != NULL;) {
        if (strcmp(word, "--resident") == 0)
            resident = strtok_r(NULL, " ", &rest);
        else if (strcmp(word, "--or") == 0 && kernel->size_count < SIZES_MAX)
            kernel->size_count++;
        else
            vec_push(arena, &kernel->sizes[kernel->size_count - 1].values, word);
    }
    PipecOptions options = {.size = sizeof options,
                            .values = kernel->sizes[0].values.items,
                            .value_count = kernel->sizes[0].values.count,
                            .launch_values = true};
    kernel->program = pipec_compile_file(kernel->file, &options);
    if (kernel->program == NULL || kernel->program->manifest == NULL) {
        Str text = str_new(arena);
        str_add(&text, "");
        if (kernel->program != NULL) diags_render(kernel->program->diags, false, &text);
        return *why = text.text, NULL;
    }
    kernel->resident = resident != NULL ? atoi(resident) : 1;
    /* the loop over the grid is the same in all PTX */
    kernel->program->manifest->persistent |= resident != NULL;
    /* `.relaxed` arrivals and waits need PTX 8.6 */
    char *version = strstr(kernel->program->ptx.text, ".version 8.0");
    if (version) memcpy(version, ".version 8.6", 12);
    lines_read(arena, kernel->program->ptx.text, &kernel->lines);
    mutants_of(arena, &kernel->lines, &kernel->mutants);
    return kernel;
}

void kernel_close(Kernel *kernel) {
    for (size_t s = 0; s < kernel->size_count; s++)
        for (size_t i = 0; i < kernel->sizes[s].right.count; i++)
            if (kernel->sizes[s].right.items[i].data != NULL)
                array_free(&kernel->sizes[s].right.items[i]);
    pipec_program_free(kernel->program);
}

static void keep(Kernel *kernel, Sizes *sizes, const Launch *launch) {
    for (size_t i = 0; i < kernel->program->manifest->parameters.count; i++) {
        Array copy = {0};
        if (launch->arrays[i].data != NULL && !array_copy(&copy, &launch->arrays[i]))
            copy.data = NULL;
        vec_push(kernel->arena, &sizes->right, copy);
    }
}

static bool is_clean(Kernel *kernel, Sizes *sizes, const char **why) {
    Trial trial = run(kernel, sizes, kernel->program->ptx.text, 0);
    bool clean = trial.status == RUN_DONE && *finding_of(trial.diags) == '\0';
    Str text = str_new(kernel->arena);
    str_add(&text, "");
    if (clean) {
        keep(kernel, sizes, trial.launch);
        sizes->instructions = trial.result.instructions + 1;
    } else {
        diags_render(trial.diags, false, &text);
    }
    end_run(&trial);
    *why = text.text;
    return clean;
}

bool kernel_check(Kernel *kernel, const char **why) {
    bool clean = true;
    for (size_t s = 0; s < kernel->size_count && clean; s++)
        if (kernel->sizes[s].instructions == 0) clean = is_clean(kernel, &kernel->sizes[s], why);
    return clean;
}

/* The results of the kernel itself fit `ensures`. Asked only when a mutant has others, because
 * that takes longer than the run. */
static bool kernel_is_right(Kernel *kernel, Sizes *sizes) {
    if (sizes->verified) return true;
    Trial trial = run(kernel, sizes, kernel->program->ptx.text, 0);
    sizes->verified = trial.status == RUN_DONE && is_right(&trial);
    end_run(&trial);
    return sizes->verified;
}

/* ---- mutants --------------------------------------------------------------------------------- */

static Fate fate_of(Kernel *kernel, Sizes *sizes, Trial *trial) {
    switch (trial->status) {
    case RUN_DONE:
        if (*finding_of(trial->diags) != '\0') return FATE_NAMED;
        if (is_same(sizes, trial->launch)) return FATE_SURVIVES;
        if (!kernel_is_right(kernel, sizes)) return FATE_UNKNOWN;
        return is_right(trial) ? FATE_SURVIVES : FATE_WRONG;
    case RUN_FINDING: return FATE_NAMED;
    case RUN_INCOMPLETE:
        return strcmp(finding_of(trial->diags), "P0760") == 0 ? FATE_ENDLESS : FATE_REJECTED;
    case RUN_REJECTED:
    case RUN_UNAVAILABLE: return FATE_REJECTED;
    }
    return FATE_UNKNOWN;
}

Judgement kernel_judge(Kernel *kernel, const Mutant *mutant, uint64_t schedules, Str *why) {
    Judgement judgement = {.fate = FATE_SURVIVES};
    Arena *arena = arena_new();
    const char *ptx = mutant_text(arena, &kernel->lines, mutant);
    for (uint64_t i = 0; judgement.fate == FATE_SURVIVES && i < schedules * kernel->size_count;
         i++) {
        Sizes *sizes = &kernel->sizes[i / schedules];
        judgement.seed = i % schedules;
        Trial trial = run(kernel, sizes, ptx, judgement.seed);
        judgement.fate = fate_of(kernel, sizes, &trial);
        strncpy(judgement.code, finding_of(trial.diags), sizeof judgement.code - 1);
        diags_render(trial.diags, false, why);
        end_run(&trial);
    }
    arena_free(arena);
    return judgement;
}
