/* lib: tuning. Takes a kernel whose statics have sets, and extents; compiles every combination,
 * runs those that fit once and compares them with `ensures`, times the right ones on a GPU in
 * turn, and stores the fastest. All use the same arrays. */
#include "lib/family.h"
#include "lib/tune.h"

#include "runtime/runtime.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS      7
#define ROUNDS_MOST 1000

typedef struct Trial {
    PipecTrial shown;
    size_t place;          /* index among the combinations, in the order of the sets */
    const char **words;    /* one per dimension */
    PipecProgram *program; /* NULL if the compiler refuses it */
    Launch launch;         /* on the shared arrays */
    double *times;         /* one per round */
} Trial;

struct PipecTune {
    Arena *arena;
    const char *path, *text;
    size_t length;
    PipecTuneOptions options;
    const PipecTuneOptions *unsized; /* the caller's, if they cannot be read; otherwise NULL */
    Words words;                     /* its values and numbers */
    PipecProgram *base;              /* compiled with the statics' own values, which need not fit */
    const Prog *shape;               /* its parameters are those of all combinations */
    OpenStatics open;
    Trial *trials;
    size_t count;
    Launch *data;     /* the arrays */
    const Prog *prog; /* the program that they were allocated for */
    Before before;
    Runtime *runtime;
    RuntimeBench *bench;
    const MachineRow *machine; /* that times are predicted for; NULL: that of the device */
    const int64_t *symbols;
    Diags *diags;
    const PipecDiagnostics *published;
    PipecStatus status;
    PipecTuneInfo info;
};

static void progress(const PipecTune *tune, const char *what, size_t done, size_t of) {
    if (tune->options.progress != NULL)
        tune->options.progress(tune->options.progress_data, what, done, of);
}

static bool fail(PipecTune *tune, PipecStatus status) {
    tune->status = pipec_worse(tune->status, status);
    return false;
}

/* ---- combinations ---------------------------------------------------------------------------- */

static PipecProgram *compile(PipecTune *tune, const char *const *words, size_t count) {
    size_t given = tune->words.count;
    const char **values = NEW_ARRAY(tune->arena, const char *, given + count + 1);
    for (size_t i = 0; i < given; i++) values[i] = tune->words.items[i];
    for (size_t i = 0; i < count; i++) values[given + i] = words[i];
    PipecOptions options = {.size = sizeof options,
                            .name = strcmp(tune->path, "-") == 0 ? "<stdin>" : tune->path,
                            .kernel = tune->base ? tune->base->kernel : tune->options.kernel,
                            .variant = tune->base ? NULL : tune->options.variant,
                            .values = values,
                            .value_count = given + count,
                            .launch_values = true};
    PipecProgram *program = pipec_compile(tune->text, tune->length, &options);
    if (program == NULL) arena_fail(tune->arena);
    return program;
}

/* Takes another variant, if none is named and the first cannot run on these data */
static void open_variant(PipecTune *tune) {
    PipecRunOptions options = {.size = sizeof options,
                               .values = tune->options.values,
                               .value_count = tune->options.value_count,
                               .numbers = tune->options.numbers,
                               .number_count = tune->options.number_count};
    PipecProgram *other = pipec_program_variant(tune->base, &options);
    if (other == NULL) return;
    pipec_program_free(tune->base);
    tune->base = other;
}

/* Compiles with the file's own values; an error may concern only these values. */
static bool open_base(PipecTune *tune) {
    tune->text = source_text(tune->arena, tune->path, &tune->length, tune->diags);
    if (tune->text == NULL) return fail(tune, PIPEC_UNUSABLE);
    tune->base = compile(tune, NULL, 0);
    open_variant(tune);
    const PipecProgram *base = tune->base;
    const Prog *constants = NULL;
    if (base->kernel != NULL && base->status != PIPEC_UNUSABLE)
        constants = check_constants(base->arena, base->names, base->ast, base->source, base->kernel,
                                    base->statics, base->static_count);
    if (constants == NULL) {
        tune->published = base->published;
        return fail(tune, base->status);
    }
    tune->shape = constants;
    tune->info.kernel = base->kernel;
    tune->open = statics_open(tune->arena, constants, base);
    tune->diags->source = base->source;
    return true;
}

static void combine(PipecTune *tune, size_t place) {
    Trial *trial = &tune->trials[place];
    trial->place = place;
    trial->words = statics_words(tune->arena, &tune->open, place);
    trial->shown.values = statics_text(tune->arena, trial->words, tune->open.count);
    trial->shown.number_count =
        value_numbers(tune->arena, trial->shown.values, &trial->shown.numbers);
}

static bool list_combinations(PipecTune *tune) {
    tune->count = statics_combinations(&tune->open);
    if (tune->open.count == 0 && tune->machine == NULL) {
        Diag *diag =
            diag_plain(tune->diags, P0913, "kernel `%s` has nothing to tune", tune->base->kernel);
        diag_note(
            tune->diags, diag,
            "every static with a set of choices has a value on the command line, or there is none");
        diag_help(tune->diags, diag, "declare choices: `static T = 128 in {64, 128, 256};`");
        tune->count = 0;
        return fail(tune, PIPEC_UNUSABLE);
    }
    if (tune->count > COMBINATIONS_TRIED) {
        Diag *diag =
            diag_plain(tune->diags, P0914, "the sets of kernel `%s` have more than %d combinations",
                       tune->base->kernel, COMBINATIONS_TRIED);
        diag_help(tune->diags, diag, "set some statics: `%s=%" PRId64 "`", tune->open.items[0].name,
                  tune->open.items[0].values.items[0]);
        tune->count = 0;
        return fail(tune, PIPEC_UNUSABLE);
    }
    tune->trials = NEW_ARRAY(tune->arena, Trial, tune->count);
    for (size_t i = 0; i < tune->count; i++) combine(tune, i);
    return true;
}

/* ---- combinations that fit ------------------------------------------------------------------- */

static const char *remark(Arena *arena, const Diags *diags, Severity severity) {
    for (size_t i = 0; i < diags->items.count; i++) {
        const Diag *diag = diags->items.items[i];
        if (diag->severity == severity)
            return arena_printf(arena, "%s: %s", code_rows[diag->code].name, diag->message);
    }
    return NULL;
}

static void exclude(PipecTune *tune, Trial *trial, PipecTrialEnd end, const char *why) {
    trial->shown.end = end;
    trial->shown.remark =
        why != NULL ? arena_copy(tune->arena, why, strlen(why)) : "unknown reason";
}

static bool is_in(const Trial *trial) {
    return trial->program != NULL && trial->shown.end == PIPEC_TRIAL_MEASURED;
}

static void build_all(PipecTune *tune) {
    for (size_t i = 0; i < tune->count; i++) {
        Trial *trial = &tune->trials[i];
        progress(tune, "building", i, tune->count);
        trial->program = compile(tune, trial->words, tune->open.count);
        bool unproved = trial->program->status == PIPEC_INCOMPLETE;
        if (trial->program->manifest != NULL && !unproved) continue;
        if (trial->program->status == PIPEC_BUG) tune->status = PIPEC_BUG;
        exclude(tune, trial, PIPEC_TRIAL_UNFIT,
                remark(tune->arena, trial->program->diags,
                       unproved ? SEVERITY_INCOMPLETE : SEVERITY_ERROR));
        pipec_program_free(trial->program);
        trial->program = NULL;
    }
}

static Trial *first_in(PipecTune *tune) {
    for (size_t i = 0; i < tune->count; i++)
        if (is_in(&tune->trials[i])) return &tune->trials[i];
    return NULL;
}

static bool none_left(PipecTune *tune, PipecStatus status) {
    Diag *diag = diag_plain(tune->diags, P0915,
                            "none of the %zu combinations of kernel `%s` can be measured",
                            tune->count, tune->base->kernel);
    diag_note(tune->diags, diag, "the first, %s: %s", tune->trials[0].shown.values,
              tune->trials[0].shown.remark);
    return fail(tune, status);
}

static const char *extent_text(Arena *arena, const Prog *prog, const Expr *extent) {
    Str text = str_new(arena);
    expr_print(extent, prog, NULL, NULL, &text);
    return text.text;
}

/* If a static is part of an extent, its values define different problems. */
static const char *other_shape(Arena *arena, const Prog *a, const Prog *b) {
    for (size_t i = 0; i < a->params.count; i++)
        for (int axis = 0; a->params.items[i].is_tensor && axis < a->params.items[i].rank; axis++)
            if (strcmp(extent_text(arena, a, a->params.items[i].extents[axis]),
                       extent_text(arena, b, b->params.items[i].extents[axis])) != 0)
                return a->params.items[i].name;
    return NULL;
}

static void exclude_shapes(PipecTune *tune) {
    for (size_t i = 0; i < tune->count; i++) {
        Trial *trial = &tune->trials[i];
        const char *other =
            is_in(trial) ? other_shape(tune->arena, tune->shape, trial->program->prog) : NULL;
        if (other != NULL)
            exclude(tune, trial, PIPEC_TRIAL_UNFIT,
                    arena_printf(tune->arena, "it gives `%s` another shape", other));
    }
}

/* Checks the preconditions of each, and makes its launch on the shared arrays */
static void bind_each(PipecTune *tune, const int64_t *symbols) {
    for (size_t i = 0; i < tune->count; i++) {
        Trial *trial = &tune->trials[i];
        if (!is_in(trial)) continue;
        Diags *diags = diags_new(tune->arena, trial->program->source);
        trial->launch = (Launch){.manifest = trial->program->manifest,
                                 .ptx = trial->program->ptx.text,
                                 .ptx_length = trial->program->ptx.length,
                                 .symbols = symbols};
        if (!launch_check(trial->program->manifest, symbols, &trial->launch.tiles, diags))
            exclude(tune, trial, PIPEC_TRIAL_UNFIT, remark(tune->arena, diags, SEVERITY_ERROR));
    }
}

/* Binds the symbols from the arguments, then each combination's preconditions, then the arrays. */
static bool bind(PipecTune *tune) {
    Arena *arena = tune->arena;
    Argument *all;
    size_t count;
    exclude_shapes(tune);
    const Trial *first = first_in(tune);
    if (first == NULL && tune->base->status != PIPEC_FINE) { /* no combination can correct it */
        tune->published = tune->base->published;
        return fail(tune, tune->base->status);
    }
    if (first == NULL) return none_left(tune, PIPEC_REFUSED);
    const PipecProgram *program = first->program;
    PipecRunOptions options = {.size = sizeof options,
                               .values = tune->words.items,
                               .value_count = tune->words.count,
                               .fills = tune->options.fills,
                               .fill_count = tune->options.fill_count};
    int64_t *symbols = NEW_ARRAY(arena, int64_t, program->manifest->symbols.count + 1);
    if (!run_arguments(arena, program, &options, &all, &count, tune->diags) ||
        !launch_symbols(arena, program->manifest, all, count, symbols, tune->diags))
        return fail(tune, PIPEC_UNUSABLE);
    bind_each(tune, symbols);
    first = first_in(tune);
    if (first == NULL) return none_left(tune, PIPEC_UNUSABLE);
    tune->symbols = symbols;
    if (tune->machine != NULL) return true; /* no data are needed */
    program = first->program;
    LaunchOptions launch = {.seed = tune->options.seed};
    tune->data = launch_prepare(arena, program->manifest, program->ptx.text, program->ptx.length,
                                all, count, &launch, tune->diags);
    if (tune->data == NULL) return fail(tune, PIPEC_UNUSABLE);
    tune->prog = program->prog;
    tune->info.arguments = arguments_text(arena, tune->data);
    for (size_t i = 0; i < tune->count; i++) {
        tune->trials[i].launch.arrays = tune->data->arrays;
        tune->trials[i].launch.scalars = tune->data->scalars;
    }
    return true;
}

/* ---- predictions ----------------------------------------------------------------------------- */

static bool find_machine(PipecTune *tune) {
    if (tune->options.machine == NULL) return true;
    tune->machine = machine_by_name(tune->options.machine);
    if (tune->machine != NULL) return true;
    machine_report_unknown(tune->options.machine, tune->diags);
    return fail(tune, PIPEC_UNUSABLE);
}

static void predict_each(PipecTune *tune, const MachineRow *machine) {
    for (size_t i = 0; i < tune->count; i++) {
        Trial *trial = &tune->trials[i];
        Prediction expected;
        if (!is_in(trial)) continue;
        model_predict(tune->arena, trial->program->manifest, tune->symbols, trial->launch.tiles,
                      machine, &expected);
        trial->shown.predicted = expected.seconds;
        trial->shown.limit =
            expected.unknown != NULL ? expected.unknown : model_terms[expected.limit];
    }
}

/* ---- on the GPU ------------------------------------------------------------------------------ */

static bool open_device(PipecTune *tune) {
    const Manifest *manifest = tune->data->manifest;
    RuntimeLack lack;
    const char *why = NULL;
    tune->runtime = runtime_open(tune->arena, tune->options.device - 1, manifest->target,
                                 manifest->ptx_major, manifest->ptx_minor, &lack, &why);
    if (tune->runtime == NULL) {
        Diag *diag = diag_plain(tune->diags, P0800, "no GPU can be used: %s", why);
        diag_note(tune->diags, diag, "tuning measures times, which the emulator cannot give");
        return fail(tune, PIPEC_UNUSABLE);
    }
    tune->bench = runtime_bench_new(tune->arena, tune->runtime);
    const char *device = runtime_device_name(tune->runtime);
    tune->info.device = arena_copy(tune->arena, device, strlen(device));
    return reference_before(tune->arena, tune->prog, tune->data, &tune->before, tune->diags) ||
           fail(tune, PIPEC_UNUSABLE);
}

/* Ends the tuning: reports the failure for this combination. */
static bool stop(PipecTune *tune, const Trial *trial, Diags *diags, PipecStatus status) {
    for (size_t i = 0; i < diags->items.count; i++)
        diag_note(diags, diags->items.items[i], "while %s ran; nothing more is measured",
                  trial->shown.values);
    tune->diags = diags;
    return fail(tune, status);
}

typedef struct Judge {
    PipecTune *tune;
    Trial *trial;
    /* of one verdict, freed after it, because there may be many */
    Arena *words;
} Judge;

static void judge(void *data) {
    const Judge *it = data;
    PipecTune *tune = it->tune;
    const PipecProgram *program = it->trial->program;
    ReferenceOptions options = {.seed = tune->options.seed};
    Verdict verdict;
    reference_verdict(it->words, program->prog, &it->trial->launch, &tune->before, &options,
                      &verdict, diags_new(it->words, program->source));
    tune->info.checked = verdict.kind != VERDICT_NOT_CHECKED;
    if (verdict.kind != VERDICT_WRONG) return;
    const char *text = verdict_text(it->words, &verdict), *detail = strstr(text, ": ");
    exclude(tune, it->trial, PIPEC_TRIAL_WRONG, detail != NULL ? detail + 2 : text);
    fail(tune, PIPEC_REFUSED);
}

static bool fits_device(const Diags *diags) {
    for (size_t i = 0; i < diags->items.count; i++)
        if (diags->items.items[i]->code == P0808) return false;
    return true;
}

/* Loads and runs it once. False: tuning cannot continue. */
static bool check_one(PipecTune *tune, Trial *trial) {
    Diags *diags = diags_new(tune->arena, trial->program->source);
    RunStatus status = runtime_bench_add(tune->bench, &trial->launch, diags);
    if (status == RUN_REJECTED) {
        if (fits_device(diags)) fail(tune, PIPEC_BUG);
        exclude(tune, trial, PIPEC_TRIAL_UNFIT, remark(tune->arena, diags, SEVERITY_ERROR));
        return true;
    }
    if (status != RUN_DONE)
        return stop(tune, trial, diags, status_of_run(trial->launch.manifest, status));
    trial->shown.remark = remark(tune->arena, diags, SEVERITY_WARNING);
    if (!launch_guards(&trial->launch, diags)) return stop(tune, trial, diags, PIPEC_REFUSED);
    Judge it = {tune, trial, arena_new()};
    bool judged = it.words != NULL && attempt(it.words, judge, &it);
    arena_free(it.words);
    if (!judged) arena_fail(tune->arena);
    return true;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarise(Trial *trial, int rounds) {
    double *times = trial->times;
    qsort(times, (size_t)rounds, sizeof *times, by_size);
    trial->shown.seconds =
        rounds % 2 == 1 ? times[rounds / 2] : (times[rounds / 2 - 1] + times[rounds / 2]) / 2;
    if (trial->shown.seconds > 0)
        trial->shown.spread = (times[rounds - 1] - times[0]) / trial->shown.seconds;
}

/* Measures `candidates`, the right ones; wrong ones keep their number but are not timed. */
static bool measure_all(PipecTune *tune, Trial *const *candidates, size_t count) {
    int rounds = tune->info.rounds;
    for (int round = -1; round < rounds; round++) { /* the round before the first warms up */
        progress(tune, "measuring", (size_t)(round + 1), (size_t)rounds + 1);
        for (size_t i = 0; i < count; i++) {
            double seconds = 0;
            if (!is_in(candidates[i])) continue;
            Diags *diags = diags_new(tune->arena, candidates[i]->program->source);
            RunStatus status = runtime_bench_time(tune->bench, i, &seconds, diags);
            if (status != RUN_DONE)
                return stop(tune, candidates[i], diags,
                            status_of_run(candidates[i]->launch.manifest, status));
            if (round >= 0) candidates[i]->times[round] = seconds;
        }
    }
    for (size_t i = 0; i < count; i++)
        if (is_in(candidates[i])) summarise(candidates[i], rounds);
    return true;
}

static bool measure_candidates(PipecTune *tune) {
    Trial **candidates = NEW_ARRAY(tune->arena, Trial *, tune->count);
    size_t count = 0;
    for (size_t i = 0; i < tune->count; i++) {
        Trial *trial = &tune->trials[i];
        progress(tune, "checking", i, tune->count);
        if (!is_in(trial)) continue;
        if (!check_one(tune, trial)) return false;
        if (trial->shown.end == PIPEC_TRIAL_UNFIT) continue;
        trial->times = NEW_ARRAY(tune->arena, double, tune->info.rounds);
        candidates[count++] = trial;
    }
    if (first_in(tune) == NULL) return none_left(tune, PIPEC_REFUSED);
    return measure_all(tune, candidates, count);
}

/* ---- the choice ------------------------------------------------------------------------------ */

static int by_merit(const void *a, const void *b) {
    const Trial *x = a, *y = b;
    bool out_x = !is_in(x), out_y = !is_in(y);
    if (out_x != out_y) return out_x - out_y;
    if (!out_x && x->shown.seconds != y->shown.seconds)
        return x->shown.seconds < y->shown.seconds ? -1 : 1;
    bool known_x = x->shown.predicted > 0, known_y = y->shown.predicted > 0;
    if (!out_x && known_x != known_y) return known_x ? -1 : 1;
    if (!out_x && x->shown.predicted != y->shown.predicted)
        return x->shown.predicted < y->shown.predicted ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static void keep(PipecTune *tune) {
    const Trial *best = &tune->trials[0];
    Choice choice = choice_key(tune->arena, tune->base, tune->base->kernel, tune->data->manifest,
                               tune->data->symbols, tune->info.device);
    choice.values = best->shown.values;
    choice.seconds = best->shown.seconds;
    tune->info.extents = choice.extents;
    const char *why, *file = cache_file(tune->arena, &why);
    if (tune->options.forget)
        tune->info.not_kept = "as requested";
    else if (file == NULL)
        tune->info.not_kept = why;
    else if (cache_store(tune->arena, file, &choice, tune->diags))
        tune->info.kept = file;
    else
        fail(tune, PIPEC_UNUSABLE);
}

static void tune_all(void *data) {
    PipecTune *tune = data;
    int rounds = tune->options.rounds;
    tune->diags = diags_new(tune->arena, NULL);
    tune->words = value_words(tune->arena, tune->options.values, tune->options.value_count,
                              tune->options.numbers, tune->options.number_count);
    tune->info.rounds = rounds <= 0 ? ROUNDS : rounds > ROUNDS_MOST ? ROUNDS_MOST : rounds;
    if (tune->unsized != NULL) {
        size_report(tune->diags, "PipecTuneOptions", sizeof tune->options, tune->unsized);
        fail(tune, PIPEC_UNUSABLE);
    } else if (find_machine(tune) && open_base(tune) && list_combinations(tune)) {
        build_all(tune);
        bool bound = bind(tune), exact;
        if (bound && tune->machine != NULL) predict_each(tune, tune->machine);
        bool measured = bound && tune->machine == NULL && open_device(tune);
        if (measured) predict_each(tune, machine_of_device(tune->info.device, &exact));
        measured = measured && measure_candidates(tune);
        qsort(tune->trials, tune->count, sizeof *tune->trials, by_merit);
        if (measured) keep(tune);
    }
    if (tune->published == &no_diagnostics) tune->published = diagnostics_publish(tune->diags);
}

/* ---- public functions ------------------------------------------------------------------------ */

static void new_tune(void *data) {
    PipecTune **tune = data;
    PipecTune start = **tune;
    *tune = NEW(start.arena, PipecTune);
    **tune = start;
}

PIPEC_API PipecTune *pipec_tune_file(const char *path, const PipecTuneOptions *options) {
    Arena *arena = arena_new();
    PipecTune start = {.arena = arena, .path = path, .published = &no_diagnostics}, *tune = &start;
    if (arena == NULL) return NULL;
    if (!size_read(&start.options, sizeof start.options, options)) start.unsized = options;
    if (!attempt(arena, new_tune, &tune)) {
        arena_free(arena);
        return NULL;
    }
    if (!attempt(arena, tune_all, tune)) {
        tune->published = &no_memory;
        tune->status = pipec_worse(tune->status, PIPEC_UNUSABLE);
    }
    return tune;
}

PIPEC_API void pipec_tune_free(PipecTune *tune) {
    if (tune == NULL) return;
    runtime_bench_free(tune->bench);
    runtime_close(tune->runtime);
    reference_before_free(&tune->before);
    launch_free(tune->data);
    for (size_t i = 0; i < tune->count; i++) pipec_program_free(tune->trials[i].program);
    pipec_program_free(tune->base);
    arena_free(tune->arena);
}

PIPEC_API PipecStatus pipec_tune_status(const PipecTune *tune) { return tune->status; }
PIPEC_API const PipecDiagnostics *pipec_tune_diagnostics(const PipecTune *tune) {
    return tune->published;
}
PIPEC_API const PipecTuneInfo *pipec_tune_info(const PipecTune *tune) { return &tune->info; }

PIPEC_API bool pipec_tune_trial(const PipecTune *tune, size_t index, PipecTrial *trial) {
    if (tune->trials == NULL || index >= tune->count) return false;
    return size_write(trial, &tune->trials[index].shown, sizeof tune->trials[index].shown);
}
