/* pipec run: runs a kernel on data; prints the device, the time and the verdict. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#define BENCH_LAUNCHES 20
#define NOT_SAID       (-1)
#define NO_CHECK       "not checked (--no-check)"

typedef struct Run {
    const Command *command;
    Words words;
    Texts denied, accepted;
    Texts saves, fills;
    const char *on, *suppressions, *choices;
    const char *folder; /* of standard input, for its includes; NULL: none */
    const char *target; /* NULL: that of the device */
    uint64_t seed, schedule;
    int schedules, device; /* or NOT_SAID */
    double watchdog;
    bool bench, untuned, races, invariant, no_check, all, strided, least_aligned;
    Format format;
    PipecSarif *sarif; /* FORMAT_SARIF: gets all diagnostics */
    PipecProgram *program;
    /* if another variant or other values were chosen for `program`: the requested one */
    PipecProgram *asked;
    PipecChoice choice; /* kernel NULL: there was none */
    int judged;         /* runs that have ended with results, right or not */
    /* --all: the combination that runs, and the width of the longest; NULL: there are no others */
    const char *combination;
    int width;
} Run;

/* ---- output ---------------------------------------------------------------------------------- */

static void say(const Run *run, const PipecDiagnostics *diagnostics) {
    if (pipec_diagnostics_count(diagnostics) == 0) return;
    if (run->format == FORMAT_SARIF) /* what fails is reported when the log is printed */
        (void)pipec_sarif_add(run->sarif, diagnostics);
    else
        say_diagnostics(diagnostics, run->format);
}

static void print_rate(double bytes, double seconds) {
    if (!(seconds > 0) || bytes <= 0) return;
    double rate = bytes / seconds;
    if (rate < 1e8)
        printf(", %.3g MB/s", rate * 1e-6);
    else
        printf(", %.4g GB/s", rate * 1e-9);
}

static const char *kernel_of(const Run *run) {
    const char *compiled = pipec_program_compiled(run->program);
    return compiled != NULL ? compiled : run->words.kernel;
}

/* Beside a time that was measured as the model means it */
static void print_predicted(const Run *run, const PipecRun *it) {
    const char *limit;
    double seconds = pipec_run_predicted(it, &limit);
    if (!run->bench || !(seconds > 0)) return;
    printf("\n  ");
    print_time(seconds);
    printf(" predicted: %s", limit);
}

/* What was chosen, and by what */
static void print_choice(const Run *run) {
    const PipecChoice *choice = &run->choice;
    const char *variant = choice->kernel != NULL ? strchr(choice->kernel, ':') : NULL;
    if (choice->kernel == NULL || choice->candidates < 2) return;
    bool tuned = choice->device != NULL;
    const char *head = choice->fixed != NULL ? "fixed" : tuned ? "tuned" : "chosen";
    printf("%s: %s%s%s (", head, variant != NULL ? variant + 1 : "",
           variant != NULL && choice->values[0] != 0 ? " " : "", choice->values);
    if (choice->fixed != NULL)
        printf("by %s", choice->fixed);
    else if (tuned)
        printf("pipec tune, %s%son %s", choice->extents, choice->extents[0] != 0 ? " " : "",
               choice->device);
    else if (choice->limit != NULL)
        printf("of %zu, the fastest on %s as predicted%s", choice->candidates, choice->machine,
               choice->calibrated ? "" : ", not calibrated");
    else
        printf("of %zu, the first that can run", choice->candidates);
    printf(")\n  ");
}

/* It was chosen among several targets of the kernel, or given. */
static bool has_targets(const Run *run) {
    const PipecProgram *first = run->asked != NULL ? run->asked : run->program;
    return run->target != NULL || pipec_program_target(first, 1) != NULL;
}

/* What runs, and where */
static void print_head(const Run *run, PipecRun *it, size_t length) {
    const PipecRunInfo *info = pipec_run_info(it);
    printf("%s: kernel `%.*s`", run->words.file, (int)length, kernel_of(run));
    if (has_targets(run)) printf(" for %s", pipec_program_target(run->program, 0));
    printf(" on %s", info->on_gpu ? info->device : "the emulator");
    if (info->no_gpu != NULL) printf(" (%s)", info->no_gpu);
    printf("\n  %s\n", pipec_run_arguments(it));
    if (run->strided) printf("  with gaps between rows, where the kernel takes them\n");
}

static void print_run(const Run *run, PipecRun *it) {
    const PipecRunInfo *info = pipec_run_info(it);
    print_head(run, it, strlen(kernel_of(run)));
    printf("  %lld %s in %lld %s\n  ", (long long)info->tiles, info->tiles == 1 ? "tile" : "tiles",
           (long long)info->blocks, info->blocks == 1 ? "block" : "blocks");
    print_choice(run);
    print_time(info->seconds);
    print_rate((double)info->bytes, info->seconds);
    if (info->on_gpu && info->timed > 1) printf(" (median of %d launches)", info->timed);
    if (!info->on_gpu)
        printf(" (emulated, %llu warp instructions%s)", (unsigned long long)info->instructions,
               run->bench ? "; `--bench` measures a GPU only" : "");
    print_predicted(run, it);
    printf("\n");
    if (info->schedules > 1)
        printf("  the same result on %d schedules of the emulator\n", info->schedules);
}

static const char *verdict_of(const Run *run, PipecRun *it) {
    return run->no_check ? NO_CHECK : pipec_run_verdict(it);
}

/* One object per run: device, time and result. `verdict` is NULL if there is none. */
static void print_json(const Run *run, PipecRun *it, const char *verdict, int status) {
    const PipecRunInfo *info = it != NULL ? pipec_run_info(it) : NULL;
    bool ran = info != NULL && verdict != NULL;
    Json json = json_open(NULL, NULL, '{');
    json_text(&json, "file", run->words.file);
    json_text(&json, "kernel", kernel_of(run));
    json_text(&json, "target", pipec_program_target(run->program, 0));
    json_text(&json, "verdict", verdict != NULL ? verdict : "none");
    json_integer(&json, "status", status);
    if (ran) {
        json_text(&json, "text", verdict_of(run, it));
        json_text(&json, "on", info->on_gpu ? "gpu" : "emulator");
        json_text(&json, "device", info->device);
        json_text(&json, "no_gpu", info->no_gpu);
        json_text(&json, "arguments", pipec_run_arguments(it));
        json_text(&json, "tuned", run->choice.device != NULL ? run->choice.values : NULL);
        json_text(&json, "variant", run->choice.kernel);
        json_text(&json, "chosen", run->choice.kernel != NULL ? run->choice.values : NULL);
        json_integer(&json, "tiles", info->tiles);
        json_integer(&json, "blocks", info->blocks);
        json_number(&json, "seconds", info->seconds);
        json_integer(&json, "launches", info->timed);
        if (info->on_gpu) json_number(&json, "predicted", pipec_run_predicted(it, NULL));
        json_integer(&json, "bytes", (int64_t)info->bytes);
        json_integer(&json, "schedules", info->schedules);
        json_integer(&json, "instructions", (int64_t)info->instructions);
    }
    json_close(&json);
    putchar('\n');
    fflush(stdout);
}

/* ---- one run --------------------------------------------------------------------------------- */

/* The result of one of all combinations; the time is that of the launch */
static void print_line(const Run *run, PipecRun *it) {
    if (run->judged == 1) print_head(run, it, strcspn(kernel_of(run), ":"));
    printf("  %-*s  %s, ", run->width, run->combination, verdict_of(run, it));
    print_time(pipec_run_info(it)->seconds);
    printf("\n");
}

/* Says how far it is on a terminal only. */
static PipecVerdict verify(const Run *run, PipecRun *it) {
    Progress progress = progress_begin("evaluating `ensures`");
    bool shown = run->format == FORMAT_TEXT && progress.terminal;
    PipecVerifyOptions options = {.size = sizeof options,
                                  .progress = shown ? progress_show : NULL,
                                  .progress_data = &progress};
    PipecVerdict verdict = pipec_run_verify_with(it, &options);
    progress_end(&progress);
    return verdict;
}

/* Compares the results with `ensures` and prints the verdict; a log of diagnostics has no place for
 * one that is right, or not wanted. */
static int judge(Run *run, PipecRun *it) {
    static const char *const words[] = {
        [PIPEC_RIGHT] = "right", [PIPEC_WRONG] = "wrong", [PIPEC_NOT_CHECKED] = "not checked"};
    run->judged++;
    PipecVerdict verdict = run->no_check ? PIPEC_NOT_CHECKED : verify(run, it);
    if (run->format == FORMAT_TEXT && run->combination != NULL)
        print_line(run, it);
    else if (run->format == FORMAT_TEXT)
        printf("  %s\n", verdict_of(run, it));
    if (run->format == FORMAT_SARIF && run->no_check) fprintf(stderr, "%s\n", NO_CHECK);
    fflush(stdout);
    if (!run->no_check) say(run, pipec_run_diagnostics(it));
    int worst = (int)pipec_worse(pipec_program_status(run->program), pipec_run_status(it));
    if (run->format == FORMAT_JSON) print_json(run, it, words[verdict], worst);
    return (int)pipec_run_status(it);
}

static int one_run(Run *run, PipecRun *it, PipecWhere where) {
    Progress progress = progress_begin("emulating");
    PipecExecuteOptions options = {.size = sizeof options,
                                   .where = where,
                                   .device = run->device + 1,
                                   .timed = run->bench ? BENCH_LAUNCHES : 1,
                                   .progress = run->format == FORMAT_TEXT ? progress_show : NULL,
                                   .progress_data = &progress,
                                   .no_races = !run->races};
    if (where == PIPEC_ON_EMULATOR) {
        options.schedules = run->schedules == NOT_SAID ? 0 : run->schedules;
        options.schedule = run->schedule;
        options.suppressions = run->suppressions;
    }
    PipecStatus status = pipec_run_execute(it, &options);
    progress_end(&progress);
    if (run->format == FORMAT_TEXT && run->combination != NULL && status != PIPEC_FINE)
        printf("  %s: no result\n", run->combination);
    else if (run->format == FORMAT_TEXT && run->combination == NULL && status == PIPEC_FINE)
        print_run(run, it);
    fflush(stdout);
    say(run, pipec_run_diagnostics(it));
    if (status == PIPEC_FINE) return judge(run, it);
    if (run->format == FORMAT_JSON) print_json(run, it, NULL, (int)status);
    return (int)status;
}

static int save(const Run *run, PipecRun *it) {
    PipecStatus status = PIPEC_FINE;
    for (size_t i = 0; i < run->saves.count; i++) {
        PipecStatus saved = pipec_run_save(it, run->saves.items[i]);
        if (saved != PIPEC_FINE) say(run, pipec_run_diagnostics(it));
        status = pipec_worse(status, saved);
    }
    return (int)status;
}

/* "NAME=FILE.npy" -> the file; a word without `=` is refused later */
static const char *file_of(const char *word) {
    const char *equals = strchr(word, '=');
    return equals != NULL ? equals + 1 : word;
}

/* True if no two tensors are saved to the same file */
static bool saves_differ(const Run *run) {
    for (size_t i = 0; i < run->saves.count; i++) {
        const char *word = run->saves.items[i];
        if (same_file(file_of(word), run->words.file)) {
            say_error("`--save %s` would overwrite the source", word);
            return false;
        }
        for (size_t k = 0; k < i; k++) {
            if (!same_file(file_of(word), file_of(run->saves.items[k]))) continue;
            say_error("`--save %s` and `--save %s` write the same file", run->saves.items[k], word);
            return false;
        }
    }
    return true;
}

/* NULL: an error was reported, *status is the exit code */
static PipecRun *prepare(const Run *run, int *status) {
    PipecRunOptions options = {.size = sizeof options,
                               .values = run->words.values.items,
                               .value_count = run->words.values.count,
                               .fills = run->fills.items,
                               .fill_count = run->fills.count,
                               .seed = run->seed,
                               .watchdog_seconds = run->watchdog,
                               .least_aligned = run->least_aligned,
                               .strided = run->strided};
    PipecRun *it = pipec_run_new(run->program, &options);
    if (it == NULL) {
        *status = out_of_memory();
        return NULL;
    }
    for (size_t i = 0; pipec_run_status(it) == PIPEC_FINE && i < run->saves.count; i++)
        pipec_run_can_save(it, run->saves.items[i]);
    *status = (int)pipec_run_status(it);
    if (*status == PIPEC_FINE) return it;
    say(run, pipec_run_diagnostics(it));
    if (run->format == FORMAT_JSON) print_json(run, NULL, NULL, *status);
    pipec_run_free(it);
    return NULL;
}

static int compare(const Run *run, PipecRun *gpu, PipecRun *emulator) {
    const char *how = NULL;
    PipecStatus status = pipec_run_compare(gpu, emulator, &how);
    if (run->format == FORMAT_TEXT) {
        printf("emulator and GPU %s (%s)\n", status == PIPEC_FINE ? "agree" : "DISAGREE",
               how != NULL ? how : "not compared");
    } else if (run->format == FORMAT_JSON) {
        Json json = json_open(NULL, NULL, '{');
        json_bool(&json, "agree", status == PIPEC_FINE);
        json_text(&json, "text", how);
        json_close(&json);
        putchar('\n');
    }
    fflush(stdout);
    if (status != PIPEC_FINE) say(run, pipec_run_diagnostics(gpu));
    return (int)status;
}

static int run_both(Run *run, PipecRun *gpu) {
    int status;
    PipecRun *emulator = prepare(run, &status);
    if (emulator == NULL) return status;
    int first = one_run(run, gpu, PIPEC_ON_GPU),
        second = first == PIPEC_UNUSABLE ? first : one_run(run, emulator, PIPEC_ON_EMULATOR);
    status = (int)pipec_worse((PipecStatus)first, (PipecStatus)second);
    bool ran = pipec_run_info(gpu)->device != NULL && pipec_run_info(emulator)->device != NULL;
    if (run->judged == 2 || (ran && status == PIPEC_REFUSED))
        status = (int)pipec_worse((PipecStatus)status, (PipecStatus)compare(run, gpu, emulator));
    pipec_run_free(emulator);
    return status;
}

static PipecRunOptions data_of(const Run *run) {
    return (PipecRunOptions){.size = sizeof(PipecRunOptions),
                             .values = run->words.values.items,
                             .value_count = run->words.values.count,
                             .fills = run->fills.items,
                             .fill_count = run->fills.count};
}

/* Takes the variant and the statics that are the fastest for the data. On the emulator alone
 * nothing that tuning measured is used. False: an error was reported. */
static bool choose(Run *run) {
    PipecRunOptions data = data_of(run);
    bool emulated = run->on != NULL && strcmp(run->on, "emulator") == 0;
    PipecChooseOptions how = {.size = sizeof how,
                              .device = run->device + 1,
                              .machine = emulated ? PIPEC_MACHINE : NULL,
                              .untuned = run->untuned};
    PipecProgram *other = pipec_program_chosen(run->program, &data, &how, &run->choice);
    const PipecDiagnostics *diagnostics = pipec_program_diagnostics(run->program);
    bool refused = other == NULL && pipec_diagnostics_errors(diagnostics) > 0;
    say(run, diagnostics);
    if (other == NULL) return !refused;
    run->asked = run->program;
    run->program = other;
    return pipec_program_ptx(other, NULL) != NULL;
}

static int run_program(Run *run) {
    int status;
    PipecRun *it = prepare(run, &status);
    if (it == NULL) return status;
    if (run->on != NULL && strcmp(run->on, "both") == 0)
        status = run_both(run, it);
    else
        status = one_run(run, it,
                         run->on == NULL               ? PIPEC_ON_ANY
                         : strcmp(run->on, "gpu") == 0 ? PIPEC_ON_GPU
                                                       : PIPEC_ON_EMULATOR);
    if (status == PIPEC_FINE || (status == PIPEC_INCOMPLETE && run->judged > 0) ||
        (status == PIPEC_REFUSED && pipec_run_verdict(it)[0] == 'W'))
        status = (int)pipec_worse((PipecStatus)status, (PipecStatus)save(run, it));
    pipec_run_free(it);
    return status;
}

static PipecOptions options_of(const Run *run) {
    return (PipecOptions){.size = sizeof(PipecOptions),
                          .folder = run->folder,
                          .kernel = run->words.kernel,
                          .variant = run->words.variant,
                          .values = run->words.values.items,
                          .value_count = run->words.values.count,
                          .denied = run->denied.items,
                          .denied_count = run->denied.count,
                          .accepted = run->accepted.items,
                          .accepted_count = run->accepted.count,
                          .launch_values = true,
                          .choices = run->choices,
                          .target = run->target,
                          .invariant = run->invariant,
                          .watchdog = run->watchdog > 0 && !run->bench};
}

static int run_chosen(Run *run) {
    PipecOptions options = options_of(run);
    run->program = pipec_compile_file(run->words.file, &options);
    if (run->program == NULL) return out_of_memory();
    int status = (int)pipec_program_status(run->program);
    say(run, pipec_program_diagnostics(run->program));
    if (pipec_program_ptx(run->program, NULL) == NULL) {
        if (run->format == FORMAT_JSON) print_json(run, NULL, NULL, status);
        return status;
    }
    if (!choose(run)) {
        if (run->format == FORMAT_JSON) print_json(run, NULL, NULL, PIPEC_UNUSABLE);
        return (int)pipec_program_status(run->program);
    }
    return (int)pipec_worse(pipec_program_status(run->program), (PipecStatus)run_program(run));
}

/* ---- --all ----------------------------------------------------------------------------------- */

static const char *variant_of(const PipecTrial *trial) {
    const char *colon = strchr(trial->kernel, ':');
    return colon != NULL ? colon + 1 : "";
}

/* "gemm:wide" and "BM=128": "wide BM=128"; NULL: no memory */
static char *name_of(const PipecTrial *trial) {
    const char *variant = variant_of(trial);
    size_t bytes = strlen(variant) + strlen(trial->values) + 2;
    char *name = malloc(bytes);
    bool both = variant[0] != 0 && trial->values[0] != 0;
    if (name != NULL) snprintf(name, bytes, "%s%s%s", variant, both ? " " : "", trial->values);
    return name;
}

static int run_compiled(Run *run) {
    int status = (int)pipec_program_status(run->program);
    say(run, pipec_program_diagnostics(run->program));
    if (pipec_program_ptx(run->program, NULL) == NULL) return status;
    return (int)pipec_worse((PipecStatus)status, (PipecStatus)run_program(run));
}

/* Compiles one combination and runs it */
static int run_trial(Run *run, const PipecTrial *trial) {
    PipecOptions options = options_of(run);
    char *name = name_of(trial), *kernel = strdup(trial->kernel);
    const char *variant = variant_of(trial);
    if (name != NULL && kernel != NULL) {
        kernel[strcspn(kernel, ":")] = 0;
        options.kernel = kernel;
        options.variant = variant[0] != 0 ? variant : NULL;
        options.numbers = trial->numbers;
        options.number_count = trial->number_count;
        run->choice.kernel = trial->kernel;
        run->choice.values = trial->values;
        run->combination = name;
        run->program = pipec_compile_file(run->words.file, &options);
    }
    int status = run->program != NULL ? run_compiled(run) : out_of_memory();
    pipec_program_free(run->program);
    run->program = NULL;
    free(kernel);
    free(name);
    return status;
}

/* Prints how many were not run for this reason, and why the first was not; returns their count */
static size_t count_others(const Run *run, const PipecTune *tune, PipecTrialEnd end,
                           const char *what) {
    PipecTrial trial = {.size = sizeof trial}, first = trial;
    size_t count = 0;
    for (size_t i = 0; pipec_tune_trial(tune, i, &trial); i++)
        if (trial.end == end && count++ == 0) first = trial;
    if (count == 0 || run->judged == 0 || run->format != FORMAT_TEXT) return count;
    char *name = name_of(&first);
    printf("  %zu %s, the first %s: %s\n", count, what, name != NULL ? name : "",
           first.remark != NULL ? first.remark : "it is refused");
    free(name);
    return count;
}

static int run_trials(Run *run, const PipecTune *tune) {
    PipecTrial trial = {.size = sizeof trial};
    int status = (int)pipec_tune_status(tune);
    for (size_t i = 0; pipec_tune_trial(tune, i, &trial); i++) {
        size_t variant = strlen(variant_of(&trial)), values = strlen(trial.values);
        int width = (int)(variant + (variant > 0 && values > 0) + values);
        if (trial.end == PIPEC_TRIAL_MEASURED && width > run->width) run->width = width;
    }
    for (size_t i = 0; pipec_tune_trial(tune, i, &trial); i++)
        if (trial.end == PIPEC_TRIAL_MEASURED)
            status = (int)pipec_worse((PipecStatus)status, (PipecStatus)run_trial(run, &trial));
    (void)count_others(run, tune, PIPEC_TRIAL_UNFIT, "cannot run");
    if (count_others(run, tune, PIPEC_TRIAL_UNPROVED, "are not proved and were not run") > 0)
        status = (int)pipec_worse((PipecStatus)status, PIPEC_INCOMPLETE);
    return status;
}

/* The combinations that can be built and launched with these data, those first that the model
 * expects to be fastest. If there is but one, it is a plain run. */
static int run_all_for(Run *run) {
    PipecTuneOptions options = {.size = sizeof options,
                                .kernel = run->words.kernel,
                                .variant = run->words.variant,
                                .values = run->words.values.items,
                                .value_count = run->words.values.count,
                                .fills = run->fills.items,
                                .fill_count = run->fills.count,
                                .machine = PIPEC_MACHINE,
                                .invariant = run->invariant,
                                .target = run->target,
                                .accepted = run->accepted.items,
                                .accepted_count = run->accepted.count,
                                .seed = run->seed};
    PipecTune *tune = pipec_tune_file(run->words.file, &options);
    if (tune == NULL) return out_of_memory();
    PipecTrial second = {.size = sizeof second};
    bool several = pipec_tune_trial(tune, 1, &second);
    if (several) say(run, pipec_tune_diagnostics(tune));
    int status = several ? run_trials(run, tune) : run_chosen(run);
    pipec_tune_free(tune);
    return status;
}

/* Of a kernel with several targets, that of the device, unless the emulator runs it; otherwise it
 * stays empty. False: no memory */
static bool target_of_device(const Run *run, char *target, size_t room) {
    bool emulated = run->on != NULL && strcmp(run->on, "emulator") == 0;
    PipecOptions options = options_of(run);
    PipecProgram *program = emulated ? NULL : pipec_compile_file(run->words.file, &options);
    if (program == NULL) return emulated;
    const char *best = pipec_program_target(program, 1) != NULL
                           ? pipec_program_target_on(program, run->device)
                           : NULL;
    if (best != NULL) snprintf(target, room, "%s", best);
    pipec_program_free(program);
    return true;
}

static int run_all(Run *run) {
    char target[16] = "";
    if (run->target == NULL && !target_of_device(run, target, sizeof target))
        return out_of_memory();
    if (target[0] != 0) run->target = target;
    int status = run_all_for(run);
    if (target[0] != 0) run->target = NULL;
    return status;
}

/* Checks that the options agree. If only schedules are given, the emulator runs. */
static bool check_options(Run *run) {
    bool scheduled = run->schedules != NOT_SAID || run->schedule != 0;
    const char *option = run->schedules != NOT_SAID ? "--schedules" : "--schedule";
    if (run->on != NULL && strcmp(run->on, "gpu") != 0 && strcmp(run->on, "emulator") != 0 &&
        strcmp(run->on, "both") != 0) {
        usage_error(run->command, "`--on` takes gpu, emulator or both, not `%s`", run->on);
    } else if (run->untuned && run->choices != NULL) {
        usage_error(run->command, "`--untuned` chooses nothing, so there are no `--choices`");
    } else if (run->all && (run->untuned || run->choices != NULL || run->saves.count > 0)) {
        usage_error(run->command, "`--all` runs each combination, so `%s` does not go with it",
                    run->untuned           ? "--untuned"
                    : run->choices != NULL ? "--choices"
                                           : "--save");
    } else if (run->all && strcmp(run->words.file, "-") == 0) {
        usage_error(run->command, "`--all` reads the file several times, and not standard input");
    } else if (run->all && run->on != NULL && strcmp(run->on, "both") == 0) {
        usage_error(run->command, "`--all` runs on one machine, so there is no `--on both`");
    } else if (run->schedules == 0) {
        usage_error(run->command, "`--schedules` must be 1 or more");
    } else if (scheduled && run->on != NULL && strcmp(run->on, "gpu") == 0) {
        usage_error(run->command, "`%s` is for the emulator, which `--on gpu` does not use",
                    option);
    } else if (scheduled && run->on == NULL && (run->device >= 0 || run->bench)) {
        usage_error(run->command,
                    "`%s` is for the emulator and `%s` for the GPU: write `--on both` to use both",
                    option, run->bench ? "--bench" : "--device");
    } else {
        if (scheduled && run->on == NULL) run->on = "emulator";
        return true;
    }
    return false;
}

int command_run(const Command *command, int argc, char **argv) {
    Run run = {.command = command,
               .choice = {.size = sizeof run.choice},
               .seed = 1,
               .device = NOT_SAID,
               .schedules = NOT_SAID,
               .races = true,
               .watchdog = 10};
    Texts words = {0};
    const Option options[] = {{"--save", OPTION_LIST, &run.saves},
                              {"--fill", OPTION_LIST, &run.fills},
                              {"--seed", OPTION_SEED, &run.seed},
                              {"--strided", OPTION_FLAG, &run.strided},
                              {"--least-aligned", OPTION_FLAG, &run.least_aligned},
                              {"--on", OPTION_TEXT, &run.on},
                              {"--device", OPTION_NUMBER, &run.device},
                              {"--bench", OPTION_FLAG, &run.bench},
                              {"--untuned", OPTION_FLAG, &run.untuned},
                              {"--choices", OPTION_TEXT, &run.choices},
                              {"--invariant", OPTION_FLAG, &run.invariant},
                              {"--no-check", OPTION_FLAG, &run.no_check},
                              {"--all", OPTION_FLAG, &run.all},
                              {"--watchdog", OPTION_SECONDS, &run.watchdog},
                              {"--schedules", OPTION_NUMBER, &run.schedules},
                              {"--schedule", OPTION_SEED, &run.schedule},
                              {"--suppress", OPTION_TEXT, &run.suppressions},
                              {"--races", OPTION_SWITCH, &run.races},
                              {"--folder", OPTION_TEXT, &run.folder},
                              {"--target", OPTION_TEXT, &run.target},
                              {"-D", OPTION_LIST, &run.denied},
                              {"--accept", OPTION_LIST, &run.accepted},
                              {"--format", OPTION_FORMATS, &run.format}};
    int status = PIPEC_UNUSABLE;
    switch (
        options_parse(command, argc, argv, options, sizeof options / sizeof options[0], &words)) {
    case PARSED_FINE:
        if (!words_split(command, &words, &run.words)) break;
        if (!folder_fits(command, run.folder, run.words.file)) break;
        if (!check_options(&run) || !saves_differ(&run)) break;
        if (run.format == FORMAT_SARIF && (run.sarif = pipec_sarif_new()) == NULL) {
            status = out_of_memory();
            break;
        }
        status = run.all ? run_all(&run) : run_chosen(&run);
        if (run.format == FORMAT_SARIF) status = output_sarif(run.sarif, status);
        break;
    case PARSED_HELP: status = PIPEC_FINE; break;
    case PARSED_WRONG: break;
    }
    pipec_sarif_free(run.sarif);
    pipec_program_free(run.program);
    pipec_program_free(run.asked);
    texts_free(&run.words.values);
    texts_free(&run.denied);
    texts_free(&run.accepted);
    texts_free(&run.saves);
    texts_free(&run.fills);
    texts_free(&words);
    return status;
}
