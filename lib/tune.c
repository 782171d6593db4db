/* lib: tuning. Takes a kernel whose variant or statics are open, and extents; takes the candidates
 * that the model expects to be the fastest, runs each once and compares it with `ensures`, times
 * the right ones on a GPU in turn, and stores what was measured. All use the same arrays. */
#include "lib/tune.h"

#include "lib/family.h"
#include "lib/fixed.h"
#include "lib/machine.h"
#include "lib/serve.h"
#include "lib/targets.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS      7
#define ROUNDS_MOST 1000
#define CANDIDATES  12   /* that are measured */
#define HOPELESS    3    /* times the best: a candidate is dropped after its first round */
#define LIMIT       10.0 /* seconds of a launch */
#define SHARE       0.25 /* of the elements that `run` checks, for all but the first right one */

typedef struct Trial {
    PipecTrial shown;
    size_t place; /* index among the candidates */
    const Candidate *candidate;
    PipecProgram *program; /* NULL: it was not needed */
    Launch launch;         /* on the shared arrays */
    bool early;            /* as it starts if it is chosen */
    size_t bench;          /* its index there */
    double *times;         /* one per round */
    int rounds;            /* that were measured */
    double ratio;          /* to the best in the first round; 0: it was not dropped */
} Trial;

struct PipecTune {
    Arena *arena;
    const char *path;
    PipecTuneOptions options;
    const PipecTuneOptions *unsized; /* the caller's, if they cannot be read; otherwise NULL */
    Words words;                     /* its values and numbers */
    PipecProgram *compiled;          /* with the statics' own values, which need not fit */
    PipecProgram *base;              /* that, or that for the target of the device */
    PipecProgram *other;             /* a candidate that can be built, if `base` cannot */
    const PipecProgram *lead;        /* that of them whose parameters are read; NULL: none */
    const Family *family;
    Trial *trials;
    size_t count;
    Argument *arguments; /* of the run */
    size_t argument_count;
    DeviceArgument *device_arguments; /* the same extents, for a choice */
    Launch *data;                     /* the arrays */
    const PipecProgram *maker;        /* whose shapes they have */
    Before before;
    Runtime *runtime;
    RuntimeBench *bench;
    size_t loaded;             /* kernels in it */
    bool right;                /* one was */
    bool undecided;            /* a claim was too costly to check */
    const MachineRow *machine; /* that times are predicted for; NULL: that of the device */
    const int64_t *symbols;    /* of `lead` */
    Diags *diags;
    const PipecDiagnostics *published;
    PipecStatus status;
    PipecTuneInfo info;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static bool fail(PipecTune *tune, PipecStatus status) {
    tune->status = pipec_worse(tune->status, status);
    return false;
}

static bool is_in(const Trial *trial) { return trial->shown.end == PIPEC_TRIAL_MEASURED; }

/* ---- progress -------------------------------------------------------------------------------- */

static const Trial *fastest(const PipecTune *tune) {
    const Trial *best = NULL;
    for (size_t i = 0; i < tune->count; i++) {
        const Trial *trial = &tune->trials[i];
        if (is_in(trial) && trial->shown.seconds > 0 &&
            (best == NULL || trial->shown.seconds < best->shown.seconds))
            best = trial;
    }
    return best;
}

/* False: the caller ends it. */
static bool progress(const PipecTune *tune, const char *what, size_t done, size_t of, double left) {
    if (tune->options.progress != NULL)
        tune->options.progress(tune->options.progress_data, what, done, of);
    bool goes_on = tune->options.next == NULL ||
                   tune->options.next(tune->options.progress_data, what, done, of);
    if (tune->options.watch == NULL) return goes_on;
    const Trial *best = fastest(tune);
    PipecTuneProgress shown = {.size = sizeof shown,
                               .what = what,
                               .done = done,
                               .of = of,
                               .best = best != NULL ? &best->shown : NULL,
                               .seconds_left = left};
    tune->options.watch(tune->options.progress_data, &shown);
    return goes_on;
}

/* ---- candidates ------------------------------------------------------------------------------ */

static bool report_no_device(PipecTune *tune, const char *why) {
    Diag *diag = diag_plain(tune->diags, P0800, "no GPU can be used: %s", why);
    diag_note(tune->diags, diag, "tuning measures times, which the emulator cannot give");
    return fail(tune, PIPEC_UNUSABLE);
}

/* What was compiled, for the target of the device if one is to be measured; NULL: none fits */
static PipecProgram *for_device(PipecTune *tune) {
    RuntimeLack lack;
    const char *why;
    if (tune->machine != NULL) return tune->compiled;
    PipecProgram *found =
        targets_on(tune->compiled, tune->options.device - 1, tune->arena, &lack, &why);
    if (found == NULL && why == NULL) arena_fail(tune->arena);
    if (found == NULL) report_no_device(tune, why);
    return found;
}

/* Compiles with the file's own values; an error may concern only these values. */
static bool open_base(PipecTune *tune) {
    PipecOptions options = {.size = sizeof options,
                            .kernel = tune->options.kernel,
                            .variant = tune->options.variant,
                            .values = tune->words.items,
                            .value_count = tune->words.count,
                            .launch_values = true,
                            .accepted = tune->options.accepted,
                            .accepted_count = tune->options.accepted_count,
                            .folder = tune->options.folder,
                            .files = tune->options.files,
                            .file_count = tune->options.file_count,
                            .target = tune->options.target};
    tune->compiled = pipec_compile_file(tune->path, &options);
    if (tune->compiled == NULL) arena_fail(tune->arena);
    PipecProgram *base = tune->base = for_device(tune);
    if (base == NULL) return false;
    tune->diags->source = base->source;
    bool named = base->kernel != NULL && base->ast != NULL;
    if (named && base->status != PIPEC_UNUSABLE) return true;
    tune->published = base->published;
    return fail(tune, base->status);
}

static void exclude(PipecTune *tune, Trial *trial, PipecTrialEnd end, const char *why) {
    trial->shown.end = end;
    trial->shown.remark =
        why != NULL ? arena_copy(tune->arena, why, strlen(why)) : "unknown reason";
}

static const char *remark(Arena *arena, const Diags *diags, Severity severity) {
    for (size_t i = 0; i < diags->items.count; i++) {
        const Diag *diag = diags->items.items[i];
        if (diag->severity == severity)
            return arena_printf(arena, "%s: %s", code_rows[diag->code].name, diag->message);
    }
    return NULL;
}

static void list_trials(PipecTune *tune) {
    tune->count = tune->family->count;
    tune->trials = NEW_ARRAY(tune->arena, Trial, tune->count + 1);
    for (size_t i = 0; i < tune->count; i++) {
        Trial *trial = &tune->trials[i];
        *trial = (Trial){.place = i, .candidate = &tune->family->items[i]};
        trial->shown.kernel = trial->candidate->kernel;
        trial->shown.values = trial->candidate->values;
        trial->shown.number_count =
            value_numbers(tune->arena, trial->shown.values, &trial->shown.numbers);
        if (trial->candidate->manifest == NULL)
            exclude(tune, trial,
                    trial->candidate->unproved ? PIPEC_TRIAL_UNPROVED : PIPEC_TRIAL_UNFIT,
                    trial->candidate->why);
    }
    /* the family leaves the verdict on the program itself to its caller */
    if (tune->base->status == PIPEC_INCOMPLETE && is_in(&tune->trials[0]))
        exclude(tune, &tune->trials[0], PIPEC_TRIAL_UNPROVED,
                remark(tune->arena, tune->base->diags, SEVERITY_INCOMPLETE));
}

static bool find_candidates(PipecTune *tune) {
    tune->family = family_of(tune->base);
    if (tune->family == NULL) arena_fail(tune->arena);
    const Family *family = tune->family;
    tune->info.kernel =
        tune->base->open_kernel != NULL ? tune->base->open_kernel : tune->base->kernel;
    if (family->beyond != NULL) {
        Diag *diag =
            diag_plain(tune->diags, P0914, "the sets of kernel `%s` have more than %d combinations",
                       family->beyond, COMBINATIONS_TRIED);
        diag_help(tune->diags, diag, "set some statics: `%s`", family->fixed);
        return fail(tune, PIPEC_UNUSABLE);
    }
    if (family->count == 1 && family->items[0].values[0] == 0 && tune->machine == NULL) {
        Diag *diag =
            diag_plain(tune->diags, P0913, "kernel `%s` has nothing to tune", tune->base->kernel);
        diag_note(
            tune->diags, diag,
            "every static with a set of choices has a value on the command line, or there is none");
        diag_help(tune->diags, diag, "declare choices: `static T = 128 in {64, 128, 256};`");
        return fail(tune, PIPEC_UNUSABLE);
    }
    list_trials(tune);
    return true;
}

/* ---- the launch ------------------------------------------------------------------------------ */

static Trial *first_in(PipecTune *tune) {
    for (size_t i = 0; i < tune->count; i++)
        if (is_in(&tune->trials[i])) return &tune->trials[i];
    return NULL;
}

/* The code of the first candidate that is not proved; empty: there is none */
static const char *unproved_code(const PipecTune *tune) {
    for (size_t i = 0; i < tune->count; i++) {
        const PipecTrial *trial = &tune->trials[i].shown;
        if (trial->end == PIPEC_TRIAL_UNPROVED)
            return arena_copy(tune->arena, trial->remark, strcspn(trial->remark, ":"));
    }
    return "";
}

static bool none_left(PipecTune *tune, PipecStatus status) {
    const Trial *first = &tune->trials[0];
    Diag *diag = diag_plain(tune->diags, P0915,
                            "none of the %zu combinations of kernel `%s` can be measured",
                            tune->count, tune->info.kernel);
    for (size_t i = 0; i < tune->count; i++) {
        const Trial *trial = &tune->trials[i];
        const char *kernel = trial->candidate->kernel;
        if (i > 0 && strcmp(kernel, tune->trials[i - 1].candidate->kernel) == 0) continue;
        const char *name =
            strcmp(kernel, first->candidate->kernel) == 0 && strchr(kernel, ':') == NULL
                ? "the first"
                : kernel;
        diag_note(tune->diags, diag, "%s%s%s: %s", name, trial->shown.values[0] != 0 ? ", " : "",
                  trial->shown.values, trial->shown.remark);
    }
    const char *code = unproved_code(tune);
    if (code[0] == 0 || status == PIPEC_REFUSED) return fail(tune, status);
    diag_help(tune->diags, diag,
              "to use one without the proof: `--accept %s` on the command line, "
              "`accept=[\"%s\"]` in Python",
              code, code);
    status = pipec_worse(status, PIPEC_INCOMPLETE);
    return fail(tune, status);
}

/* The program whose parameters the arguments are read for: all candidates have the same */
static bool find_lead(PipecTune *tune) {
    const Trial *first = first_in(tune);
    if (tune->base->manifest != NULL && tune->base->prog != NULL) {
        tune->lead = tune->base;
        return true;
    }
    if (first == NULL && tune->base->status != PIPEC_FINE) { /* no combination can correct it */
        tune->published = tune->base->published;
        return fail(tune, tune->base->status);
    }
    if (first == NULL) return none_left(tune, PIPEC_REFUSED);
    tune->lead = tune->other = family_program(tune->family, first->candidate);
    if (tune->other == NULL) arena_fail(tune->arena);
    return tune->lead->manifest != NULL || none_left(tune, PIPEC_REFUSED);
}

/* Rates each candidate for the launch on the machine. False: none can run */
static bool rate(PipecTune *tune, const MachineRow *machine) {
    Arena *words = arena_scratch(tune->arena);
    Chosen *all = NEW_ARRAY(words, Chosen, tune->count + 1);
    Wish wish = {.arguments = tune->device_arguments,
                 .machine = machine,
                 .invariant = tune->options.invariant};
    (void)family_rate(tune->family, &wish, words, all);
    for (size_t i = 0; i < tune->count; i++) {
        Trial *trial = &tune->trials[i];
        const Prediction *expected = &all[trial->place].predicted;
        if (!is_in(trial)) continue;
        if (all[trial->place].why != NULL) {
            exclude(tune, trial, PIPEC_TRIAL_UNFIT, all[trial->place].why);
            continue;
        }
        trial->shown.predicted = expected->seconds;
        trial->early = machine != NULL && starts_early(expected, machine->multiprocessors);
        trial->shown.limit =
            expected->unknown != NULL ? expected->unknown : model_terms[expected->limit];
    }
    arena_free(words);
    return first_in(tune) != NULL;
}

static bool bind(PipecTune *tune) {
    Arena *arena = tune->arena;
    if (!find_lead(tune)) return false;
    const PipecProgram *lead = tune->lead;
    PipecRunOptions options = {.size = sizeof options,
                               .values = tune->words.items,
                               .value_count = tune->words.count,
                               .fills = tune->options.fills,
                               .fill_count = tune->options.fill_count};
    int64_t *symbols = NEW_ARRAY(arena, int64_t, lead->manifest->symbols.count + 1);
    tune->device_arguments = NEW_ARRAY(arena, DeviceArgument, lead->manifest->parameters.count + 1);
    if (!run_arguments(arena, lead, &options, &tune->arguments, &tune->argument_count,
                       tune->diags) ||
        !launch_symbols(arena, lead->manifest, tune->arguments, tune->argument_count, symbols,
                        tune->diags) ||
        !family_arguments(lead->manifest, symbols, tune->device_arguments))
        return fail(tune, PIPEC_UNUSABLE);
    tune->symbols = symbols;
    tune->info.extents = NULL;
    return true;
}

/* ---- predictions ----------------------------------------------------------------------------- */

static bool find_machine(PipecTune *tune) {
    if (tune->options.machine == NULL) return true;
    tune->machine = machine_named(tune->arena, tune->options.machine, tune->diags);
    if (tune->machine == NULL) return fail(tune, PIPEC_UNUSABLE);
    tune->info.machine = tune->machine->name;
    tune->info.calibrated = tune->machine->calibrated;
    return true;
}

/* Those that can run first; then those that were measured, by their times; then by predictions */
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

/* The best as predicted stay, which includes those without a prediction if there is room. */
static size_t select_best(PipecTune *tune) {
    size_t most = tune->options.candidates > 0 ? tune->options.candidates : CANDIDATES, count = 0;
    qsort(tune->trials, tune->count, sizeof *tune->trials, by_merit);
    for (size_t i = 0; i < tune->count && is_in(&tune->trials[i]); i++) {
        if (i >= most)
            exclude(tune, &tune->trials[i], PIPEC_TRIAL_LEFT, "others are expected to be faster");
        else
            count++;
    }
    return count;
}

/* ---- on the GPU ------------------------------------------------------------------------------ */

static bool compile(PipecTune *tune, Trial *trial) {
    if (trial->program == NULL) trial->program = family_program(tune->family, trial->candidate);
    if (trial->program == NULL) arena_fail(tune->arena);
    if (trial->program->manifest != NULL) return true;
    exclude(tune, trial, PIPEC_TRIAL_UNFIT,
            remark(tune->arena, trial->program->diags, SEVERITY_ERROR));
    return false;
}

/* The arrays that all share, as the first that can run has them */
static bool make_data(PipecTune *tune) {
    Trial *first = first_in(tune);
    LaunchOptions launch = {.seed = tune->options.seed};
    if (!compile(tune, first)) return none_left(tune, PIPEC_REFUSED);
    const PipecProgram *maker = tune->maker = first->program;
    tune->data = launch_prepare(tune->arena, maker->manifest, maker->ptx.text, maker->ptx.length,
                                tune->arguments, tune->argument_count, &launch, tune->diags);
    if (tune->data == NULL) return fail(tune, PIPEC_UNUSABLE);
    tune->info.arguments = arguments_text(tune->arena, tune->data);
    return true;
}

static bool open_device(PipecTune *tune) {
    const Manifest *manifest = tune->data->manifest;
    RuntimeLack lack;
    const char *why = NULL;
    tune->runtime = runtime_open(tune->arena, tune->options.device - 1, manifest->target,
                                 manifest->ptx_major, manifest->ptx_minor, &lack, &why);
    if (tune->runtime == NULL) return report_no_device(tune, why);
    tune->bench = runtime_bench_new(tune->arena, tune->runtime);
    runtime_bench_limit(tune->bench, tune->options.limit > 0 ? tune->options.limit : LIMIT);
    const char *device = runtime_device_name(tune->runtime);
    tune->info.device = arena_copy(tune->arena, device, strlen(device));
    return reference_before(tune->arena, tune->maker->prog, tune->data, &tune->before,
                            tune->diags) ||
           fail(tune, PIPEC_UNUSABLE);
}

/* Ends the tuning: reports the failure for this combination. */
static bool stop(PipecTune *tune, Trial *trial, Diags *diags, PipecStatus status) {
    for (size_t i = 0; i < diags->items.count; i++)
        diag_note(diags, diags->items.items[i], "while %s ran; nothing more is measured",
                  trial->shown.values[0] != 0 ? trial->shown.values : trial->shown.kernel);
    tune->diags = diags;
    if (runtime_bench_is_stuck(tune->bench))
        exclude(tune, trial, PIPEC_TRIAL_ENDLESS, remark(tune->arena, diags, SEVERITY_ERROR));
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
    ReferenceOptions options = {.seed = tune->options.seed, .share = tune->right ? SHARE : 1};
    Verdict verdict;
    reference_verdict(it->words, program->prog, &it->trial->launch, &tune->before, &options,
                      &verdict, diags_new(it->words, program->source));
    tune->info.checked = verdict.kind != VERDICT_NOT_CHECKED;
    tune->right = tune->right || verdict.kind == VERDICT_RIGHT;
    tune->undecided = tune->undecided || verdict.undecided;
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

/* Compiles it, and makes its launch on the shared arrays */
static bool build(PipecTune *tune, Trial *trial) {
    if (!compile(tune, trial)) return false;
    const PipecProgram *program = trial->program;
    Diags *diags = diags_new(tune->arena, program->source);
    int64_t *symbols = NEW_ARRAY(tune->arena, int64_t, tune->family->symbols + 1);
    trial->launch = (Launch){.manifest = program->manifest,
                             .ptx = program->ptx.text,
                             .ptx_length = program->ptx.length,
                             .symbols = symbols,
                             .arrays = tune->data->arrays,
                             .scalars = tune->data->scalars};
    if (launch_symbols(tune->arena, program->manifest, tune->arguments, tune->argument_count,
                       symbols, diags)) {
        strides_set(program->manifest, NULL, symbols);
        if (launch_check(program->manifest, symbols, &trial->launch.tiles, diags)) return true;
    }
    exclude(tune, trial, PIPEC_TRIAL_UNFIT, remark(tune->arena, diags, SEVERITY_ERROR));
    return false;
}

/* Loads and runs it once. False: tuning cannot continue. */
static bool check_one(PipecTune *tune, Trial *trial) {
    Diags *diags = diags_new(tune->arena, trial->program->source);
    RunStatus status = runtime_bench_add(tune->bench, &trial->launch, trial->early, diags);
    if (status == RUN_REJECTED) {
        if (fits_device(diags)) fail(tune, PIPEC_BUG);
        exclude(tune, trial, PIPEC_TRIAL_UNFIT, remark(tune->arena, diags, SEVERITY_ERROR));
        return true;
    }
    if (status != RUN_DONE)
        return stop(tune, trial, diags, status_of_run(trial->launch.manifest, status));
    trial->bench = tune->loaded++;
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

/* The median of the rounds so far */
static void summarise(const PipecTune *tune, Trial *trial) {
    int rounds = trial->rounds;
    double *times = NEW_ARRAY(tune->arena, double, rounds);
    memcpy(times, trial->times, (size_t)rounds * sizeof *times);
    qsort(times, (size_t)rounds, sizeof *times, by_size);
    trial->shown.seconds =
        rounds % 2 == 1 ? times[rounds / 2] : (times[rounds / 2 - 1] + times[rounds / 2]) / 2;
    if (trial->shown.seconds > 0)
        trial->shown.spread = (times[rounds - 1] - times[0]) / trial->shown.seconds;
}

/* False: tuning cannot continue. */
static bool time_one(PipecTune *tune, Trial *trial, bool counts) {
    double seconds = 0;
    Diags *diags = diags_new(tune->arena, trial->program->source);
    RunStatus status = runtime_bench_time(tune->bench, trial->bench, &seconds, diags);
    if (status != RUN_DONE)
        return stop(tune, trial, diags, status_of_run(trial->launch.manifest, status));
    if (!counts) return true;
    trial->times[trial->rounds++] = seconds;
    summarise(tune, trial);
    return true;
}

/* Those far slower than the best: no further round can make them the best */
static void drop_hopeless(PipecTune *tune, size_t count) {
    const Trial *best = fastest(tune);
    for (size_t i = 0; best != NULL && i < count; i++) {
        Trial *trial = &tune->trials[i];
        if (!is_in(trial) || !(trial->shown.seconds > HOPELESS * best->shown.seconds)) continue;
        trial->ratio = trial->shown.seconds / best->shown.seconds;
        exclude(tune, trial, PIPEC_TRIAL_SLOW,
                arena_printf(tune->arena, "%.1f times the best in its first round", trial->ratio));
    }
}

/* Seconds that the rounds take which are left, 10 launches in each burst */
static double rounds_left(const PipecTune *tune, size_t count, int rounds) {
    double round = 0;
    for (size_t i = 0; i < count; i++)
        if (is_in(&tune->trials[i])) round += 10 * tune->trials[i].shown.seconds;
    return round * rounds;
}

/* Builds, checks and times each for the first time, after a burst that warms up. *ended: by the
 * caller */
static bool first_round(PipecTune *tune, size_t count, bool *ended) {
    double begun = now();
    for (size_t i = 0; i < count; i++) {
        Trial *trial = &tune->trials[i];
        double each = i > 0 ? (now() - begun) / (double)i : 0;
        double left = each * (double)(count - i) + rounds_left(tune, count, tune->info.rounds);
        *ended = !progress(tune, "checking", i, count, left);
        if (*ended) break;
        if (!build(tune, trial)) continue;
        if (!check_one(tune, trial)) return false;
        if (!is_in(trial)) continue;
        trial->times = NEW_ARRAY(tune->arena, double, tune->info.rounds);
        if (!time_one(tune, trial, false) || !time_one(tune, trial, true)) return false;
    }
    drop_hopeless(tune, count);
    return true;
}

static bool measure(PipecTune *tune, size_t count) {
    int rounds = tune->info.rounds;
    bool ended = false;
    if (!first_round(tune, count, &ended)) return false;
    if (first_in(tune) == NULL) return none_left(tune, PIPEC_REFUSED);
    for (int round = 1; round < rounds && !ended; round++) {
        double left = rounds_left(tune, count, rounds - round);
        ended = !progress(tune, "measuring", (size_t)round, (size_t)rounds, left);
        if (ended) break;
        for (size_t i = 0; i < count; i++)
            if (is_in(&tune->trials[i]) && !time_one(tune, &tune->trials[i], true)) return false;
    }
    return true;
}

/* ---- what is kept ---------------------------------------------------------------------------- */

/* Each that was measured by itself; one that is wrong removes what was kept of it. The clock
 * changes between rounds, so one that was dropped is as slow as it was beside the best. */
static Choices results(PipecTune *tune) {
    Choices out = {0};
    Choice key = tune->family->key;
    key.device = tune->info.device;
    key.extents = tune->info.extents;
    key.near = tune->options.near;
    for (size_t i = 0; i < tune->count; i++) {
        const Trial *trial = &tune->trials[i];
        bool wrong = trial->shown.end == PIPEC_TRIAL_WRONG;
        if (!wrong && !(trial->shown.seconds > 0)) continue;
        key.kernel = trial->candidate->kernel;
        key.values = trial->candidate->values;
        key.seconds = wrong              ? 0
                      : trial->ratio > 0 ? trial->ratio * fastest(tune)->shown.seconds
                                         : trial->shown.seconds;
        vec_push(tune->arena, &out, key);
    }
    return out;
}

static void keep(PipecTune *tune) {
    tune->info.extents = choice_extents(tune->arena, tune->lead->manifest, tune->symbols);
    Choices choices = results(tune);
    const char *why, *file = cache_file(tune->arena, &why);
    if (tune->options.forget)
        tune->info.not_kept = "as requested";
    else if (file == NULL)
        tune->info.not_kept = why;
    else if (cache_store(tune->arena, file, &choices, tune->diags))
        tune->info.kept = file;
    else
        fail(tune, PIPEC_UNUSABLE);
}

/* The best candidate becomes the fixed choice for these extents */
static void save(PipecTune *tune) {
    const Trial *best = &tune->trials[0];
    if (tune->options.save == NULL || tune->status != PIPEC_FINE || !is_in(best)) return;
    Choice choice = tune->family->key;
    choice.kernel = best->shown.kernel;
    choice.values = best->shown.values;
    choice.extents = choice_extents(tune->arena, tune->lead->manifest, tune->symbols);
    choice.device = tune->machine != NULL ? tune->machine->name : tune->info.device;
    choice.seconds = best->shown.seconds > 0 ? best->shown.seconds : best->shown.predicted;
    if (!fixed_save(tune->arena, tune->options.save, &choice, tune->diags))
        fail(tune, PIPEC_UNUSABLE);
}

/* A choice of results that nothing was compared with is kept, as one of a kernel without
 * `ensures` */
static void report_undecided(PipecTune *tune) {
    if (!tune->undecided) return;
    diag_plain(tune->diags, P0853,
               "the results are not checked: it would take too long on the host");
    fail(tune, PIPEC_INCOMPLETE);
}

static void measure_all(PipecTune *tune) {
    if (!make_data(tune) || !open_device(tune)) return;
    DeviceFacts device = runtime_facts(tune->runtime);
    device.name = tune->info.device;
    MachineRow row = machine_for(tune->arena, &device, tune->diags);
    tune->info.machine = row.name;
    tune->info.calibrated = row.calibrated;
    if (!rate(tune, &row)) {
        none_left(tune, PIPEC_UNUSABLE);
        return;
    }
    size_t count = select_best(tune);
    bool measured = measure(tune, count);
    /* what was measured before one that did not end stays */
    measured = measured || (runtime_bench_is_stuck(tune->bench) && fastest(tune) != NULL);
    for (size_t i = 0; i < tune->count; i++)
        if (is_in(&tune->trials[i]) && !(tune->trials[i].shown.seconds > 0))
            exclude(tune, &tune->trials[i], PIPEC_TRIAL_LEFT, "tuning ended before");
    qsort(tune->trials, tune->count, sizeof *tune->trials, by_merit);
    if (measured) keep(tune);
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
    } else if (find_machine(tune) && open_base(tune) && find_candidates(tune) && bind(tune)) {
        if (!rate(tune, tune->machine))
            none_left(tune, PIPEC_UNUSABLE);
        else if (tune->machine == NULL)
            measure_all(tune);
        if (tune->machine != NULL) qsort(tune->trials, tune->count, sizeof *tune->trials, by_merit);
        save(tune);
        report_undecided(tune);
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
    bool stuck = tune->bench != NULL && runtime_bench_is_stuck(tune->bench);
    runtime_bench_free(tune->bench);
    if (!stuck) runtime_close(tune->runtime);
    reference_before_free(&tune->before);
    launch_free(tune->data);
    for (size_t i = 0; i < tune->count; i++) pipec_program_free(tune->trials[i].program);
    pipec_program_free(tune->other);
    pipec_program_free(tune->compiled);
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
