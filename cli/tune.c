/* pipec tune: prints a table of all combinations of a kernel's statics with their times, and
 * stores the fastest for `pipec run`. */
#include "cli/cli.h"

#include <string.h>

typedef struct Tune {
    const Command *command;
    Words words;
    Texts fills;
    const char *on;
    uint64_t seed;
    int device, rounds; /* -1: not given */
    bool forget;
    Format format;
} Tune;

static void show_progress(void *data, const char *what, size_t done, size_t of) {
    (void)data;
    fprintf(stderr, "\r%s %zu of %zu\033[K", what, done + 1, of);
}

/* ---- the table ------------------------------------------------------------------------------- */

static int longest_values(const PipecTune *tune) {
    PipecTrial trial = {.size = sizeof trial};
    size_t most = 0;
    for (size_t i = 0; pipec_tune_trial(tune, i, &trial); i++)
        if (strlen(trial.values) > most) most = strlen(trial.values);
    return (int)most;
}

static void print_trial(const PipecTrial *trial, int width, bool best) {
    printf("  %-*s  ", width, trial->values);
    if (trial->end == PIPEC_TRIAL_MEASURED)
        printf("%11.2f us  %5.1f %%  %8.2f us%s%s%s\n", trial->seconds * 1e6, trial->spread * 100,
               trial->predicted * 1e6, best ? "  best" : "", trial->remark != NULL ? "  " : "",
               trial->remark != NULL ? trial->remark : "");
    else
        printf("%14s  %s\n", trial->end == PIPEC_TRIAL_WRONG ? "wrong" : "out", trial->remark);
}

static void print_table(const PipecTune *tune) {
    int width = longest_values(tune);
    PipecTrial trial = {.size = sizeof trial};
    printf("  %-*s  %14s  %7s  %11s\n", width, "", "time", "spread", "predicted");
    for (size_t i = 0; pipec_tune_trial(tune, i, &trial); i++)
        if (trial.end != PIPEC_TRIAL_MEASURED || trial.seconds > 0)
            print_trial(&trial, width, i == 0 && trial.end == PIPEC_TRIAL_MEASURED);
}

static void print_choice(const PipecTune *tune) {
    const PipecTuneInfo *info = pipec_tune_info(tune);
    PipecTrial best = {.size = sizeof best};
    if (info->extents == NULL || !pipec_tune_trial(tune, 0, &best)) return; /* there is no choice */
    if (!info->checked) printf("  not checked: the kernel has no `ensures`\n");
    if (info->kept != NULL)
        printf("  kept for %s on %s: %s (%s)\n",
               info->extents[0] != 0 ? info->extents : "all extents", info->device, best.values,
               info->kept);
    else
        printf("  not kept%s%s\n", info->not_kept != NULL ? ": " : "",
               info->not_kept != NULL ? info->not_kept : "");
}

static void print(const Tune *run, const PipecTune *tune) {
    const PipecTuneInfo *info = pipec_tune_info(tune);
    PipecTrial trial = {.size = sizeof trial};
    if (info->device != NULL)
        printf("%s: kernel `%s` on %s\n  %s\n  the median of %d rounds:\n", run->words.file,
               info->kernel, info->device, info->arguments, info->rounds);
    if (pipec_tune_trial(tune, 0, &trial) &&
        (info->device != NULL || trial.end != PIPEC_TRIAL_MEASURED))
        print_table(tune);
    print_choice(tune);
    fflush(stdout);
}

/* ---- the same as JSON, one object ------------------------------------------------------------ */

static void print_trials(Json *json, const PipecTune *tune) {
    static const char *const ends[] = {[PIPEC_TRIAL_MEASURED] = "measured",
                                       [PIPEC_TRIAL_UNFIT] = "out",
                                       [PIPEC_TRIAL_WRONG] = "wrong"};
    PipecTrial trial = {.size = sizeof trial};
    Json list = json_open(json, "trials", '[');
    for (size_t i = 0; pipec_tune_trial(tune, i, &trial); i++) {
        bool measured = trial.end == PIPEC_TRIAL_MEASURED;
        if (measured && !(trial.seconds > 0)) continue;
        Json row = json_open(&list, NULL, '{');
        json_text(&row, "values", trial.values);
        json_text(&row, "end", ends[trial.end]);
        if (measured) json_number(&row, "seconds", trial.seconds);
        if (measured) json_number(&row, "spread", trial.spread);
        if (measured) json_number(&row, "predicted", trial.predicted);
        if (measured) json_text(&row, "limit", trial.limit);
        json_text(&row, "remark", trial.remark);
        json_close(&row);
    }
    json_close(&list);
}

static void print_json(const Tune *run, const PipecTune *tune) {
    const PipecTuneInfo *info = pipec_tune_info(tune);
    Json json = json_open(NULL, NULL, '{');
    json_text(&json, "file", run->words.file);
    json_text(&json, "kernel", info->kernel);
    json_integer(&json, "status", (int)pipec_tune_status(tune));
    json_text(&json, "device", info->device);
    json_text(&json, "arguments", info->arguments);
    json_text(&json, "extents", info->extents);
    json_integer(&json, "rounds", info->rounds);
    json_bool(&json, "checked", info->checked);
    json_text(&json, "kept", info->kept);
    json_text(&json, "not_kept", info->not_kept);
    print_trials(&json, tune);
    json_close(&json);
    putchar('\n');
    fflush(stdout);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int tune_all(const Tune *run) {
    PipecTuneOptions options = {.size = sizeof options,
                                .kernel = run->words.kernel,
                                .variant = run->words.variant,
                                .values = run->words.values.items,
                                .value_count = run->words.values.count,
                                .fills = run->fills.items,
                                .fill_count = run->fills.count,
                                .seed = run->seed,
                                .device = run->device + 1,
                                .rounds = run->rounds,
                                .forget = run->forget,
                                .progress = output_terminal() ? show_progress : NULL};
    PipecTune *tune = pipec_tune_file(run->words.file, &options);
    if (tune == NULL) return out_of_memory();
    if (output_terminal()) fputs("\r\033[K", stderr);
    if (run->format == FORMAT_JSON)
        print_json(run, tune);
    else
        print(run, tune);
    if (pipec_diagnostics_count(pipec_tune_diagnostics(tune)) > 0)
        say_diagnostics(pipec_tune_diagnostics(tune), run->format);
    int status = (int)pipec_tune_status(tune);
    pipec_tune_free(tune);
    return status;
}

static bool options_are_right(const Tune *run) {
    if (run->on != NULL && strcmp(run->on, "gpu") != 0) {
        usage_error(run->command,
                    strcmp(run->on, "emulator") == 0
                        ? "`--on %s`: tuning measures times, which the emulator cannot give"
                        : "`--on` takes only gpu for tuning, not `%s`",
                    run->on);
        return false;
    }
    if (run->rounds == 0 || run->rounds > 1000) {
        usage_error(run->command, "`--rounds` must be 1 to 1000");
        return false;
    }
    return true;
}

int command_tune(const Command *command, int argc, char **argv) {
    Tune run = {.command = command, .seed = 1, .device = -1, .rounds = 7};
    Texts words = {0};
    const Option options[] = {
        {"--fill", OPTION_LIST, &run.fills},      {"--seed", OPTION_SEED, &run.seed},
        {"--on", OPTION_TEXT, &run.on},           {"--device", OPTION_NUMBER, &run.device},
        {"--rounds", OPTION_NUMBER, &run.rounds}, {"--forget", OPTION_FLAG, &run.forget},
        {"--format", OPTION_FORMAT, &run.format}};
    int status = PIPEC_UNUSABLE;
    switch (
        options_parse(command, argc, argv, options, sizeof options / sizeof options[0], &words)) {
    case PARSED_FINE:
        if (words_split(command, &words, &run.words) && options_are_right(&run))
            status = tune_all(&run);
        break;
    case PARSED_HELP: status = PIPEC_FINE; break;
    case PARSED_WRONG: break;
    }
    texts_free(&run.words.values);
    texts_free(&run.fills);
    texts_free(&words);
    return status;
}
