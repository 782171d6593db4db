/* pipec tune: prints a table of the candidates that were measured, and stores their times for
 * launches with the same extents. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct Tune {
    const Command *command;
    Words words;
    Texts fills, accepted;
    const char *on;
    const char *folder; /* of standard input, for its includes; NULL: none */
    const char *target; /* NULL: that of the device */
    uint64_t seed;
    int device, rounds;     /* -1: not given */
    const char *candidates; /* NULL: not given */
    size_t most;            /* the same as a number */
    double limit;
    bool forget, near;
    Format format;
} Tune;

/* "gemm:wide" and "T=128": "wide T=128" */
static void say_candidate(FILE *to, const PipecTrial *trial, int width) {
    const char *colon = strchr(trial->kernel, ':'), *variant = colon != NULL ? colon + 1 : "";
    const char *gap = variant[0] != 0 && trial->values[0] != 0 ? " " : "";
    int used = (int)(strlen(variant) + strlen(gap) + strlen(trial->values));
    fprintf(to, "%s%s%s%*s", variant, gap, trial->values, width > used ? width - used : 0, "");
}

static void show_progress(void *data, const PipecTuneProgress *now) {
    (void)data;
    fprintf(stderr, "\r%s %zu of %zu", now->what, now->done + 1, now->of);
    if (now->best != NULL) {
        fprintf(stderr, ", best %.2f us ", now->best->seconds * 1e6);
        say_candidate(stderr, now->best, 0);
    }
    if (now->seconds_left > 0) fprintf(stderr, ", about %.0f s left", now->seconds_left);
    fprintf(stderr, "\033[K");
    fflush(stderr);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const char *const ends[] = {
    [PIPEC_TRIAL_MEASURED] = "measured", [PIPEC_TRIAL_UNFIT] = "out",
    [PIPEC_TRIAL_WRONG] = "wrong",       [PIPEC_TRIAL_SLOW] = "slow",
    [PIPEC_TRIAL_LEFT] = "left",         [PIPEC_TRIAL_ENDLESS] = "endless",
    [PIPEC_TRIAL_UNPROVED] = "unproved"};

/* Those that do not fit or are not proved, and those that were left out, are counted */
static bool has_line(const PipecTrial *trial) {
    return trial->end != PIPEC_TRIAL_UNFIT && trial->end != PIPEC_TRIAL_LEFT &&
           trial->end != PIPEC_TRIAL_UNPROVED &&
           (trial->end != PIPEC_TRIAL_MEASURED || trial->seconds > 0);
}

static int longest_name(const PipecTune *tune) {
    PipecTrial trial = {.size = sizeof trial};
    size_t most = 0;
    for (size_t i = 0; pipec_tune_trial(tune, i, &trial); i++) {
        const char *colon = strchr(trial.kernel, ':');
        size_t length = strlen(trial.values) + (colon != NULL ? strlen(colon) : 0);
        if (has_line(&trial) && length > most) most = length;
    }
    return (int)most;
}

static void print_trial(const PipecTrial *trial, int width, bool best) {
    printf("  ");
    say_candidate(stdout, trial, width);
    if (trial->end == PIPEC_TRIAL_MEASURED)
        printf("  %11.2f us  %5.1f %%  %8.2f us%s%s%s\n", trial->seconds * 1e6, trial->spread * 100,
               trial->predicted * 1e6, best ? "  best" : "", trial->remark != NULL ? "  " : "",
               trial->remark != NULL ? trial->remark : "");
    else
        printf("  %14s  %s\n", ends[trial->end], trial->remark);
}

/* "11 do not fit, the first T=100000: P0500: .." */
static void print_count(const PipecTune *tune, PipecTrialEnd end, const char *what) {
    PipecTrial trial = {.size = sizeof trial}, first = trial;
    size_t count = 0;
    for (size_t i = 0; pipec_tune_trial(tune, i, &trial); i++)
        if (trial.end == end && count++ == 0) first = trial;
    if (count == 0) return;
    printf("  %zu %s", count, what);
    if (end != PIPEC_TRIAL_LEFT) {
        printf(", the first ");
        say_candidate(stdout, &first, 0);
        printf(": %s", first.remark);
    }
    printf("\n");
}

static void print_table(const PipecTune *tune) {
    int width = longest_name(tune);
    PipecTrial trial = {.size = sizeof trial};
    if (width > 0) printf("  %-*s  %14s  %7s  %11s\n", width, "", "time", "spread", "predicted");
    for (size_t i = 0; pipec_tune_trial(tune, i, &trial); i++)
        if (has_line(&trial)) print_trial(&trial, width, i == 0);
    print_count(tune, PIPEC_TRIAL_UNFIT, "do not fit");
    print_count(tune, PIPEC_TRIAL_UNPROVED, "are not proved");
    print_count(tune, PIPEC_TRIAL_LEFT, "were not measured: others are expected to be faster");
}

static void print_choice(const Tune *run, const PipecTune *tune) {
    const PipecTuneInfo *info = pipec_tune_info(tune);
    PipecTrial best = {.size = sizeof best};
    if (info->extents == NULL || !pipec_tune_trial(tune, 0, &best)) return; /* there is no choice */
    if (!info->checked)
        printf("  not checked%s\n",
               pipec_tune_status(tune) == PIPEC_INCOMPLETE ? "" : ": the kernel has no `ensures`");
    if (info->kept != NULL) {
        printf("  kept for %s%s on %s: ", run->near ? "nearly " : "",
               info->extents[0] != 0 ? info->extents : "all extents", info->device);
        say_candidate(stdout, &best, 0);
        printf(" (%s)\n", info->kept);
    } else
        printf("  not kept%s%s\n", info->not_kept != NULL ? ": " : "",
               info->not_kept != NULL ? info->not_kept : "");
}

static void print(const Tune *run, const PipecTune *tune) {
    const PipecTuneInfo *info = pipec_tune_info(tune);
    PipecTrial trial = {.size = sizeof trial};
    if (info->device != NULL)
        printf("%s: kernel `%s` on %s%s\n  %s\n  the median of %d rounds:\n", run->words.file,
               info->kernel, info->device, info->calibrated ? "" : " (not calibrated)",
               info->arguments, info->rounds);
    if (pipec_tune_trial(tune, 0, &trial) &&
        (info->device != NULL || trial.end != PIPEC_TRIAL_MEASURED))
        print_table(tune);
    print_choice(run, tune);
    fflush(stdout);
}

/* ---- the same as JSON, one object ------------------------------------------------------------ */

static void print_trials(Json *json, const PipecTune *tune) {
    PipecTrial trial = {.size = sizeof trial};
    Json list = json_open(json, "trials", '[');
    for (size_t i = 0; pipec_tune_trial(tune, i, &trial); i++) {
        bool measured = trial.seconds > 0;
        if (trial.end == PIPEC_TRIAL_MEASURED && !measured) continue;
        Json row = json_open(&list, NULL, '{');
        json_text(&row, "kernel", trial.kernel);
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
                                .candidates = run->most,
                                .near = run->near,
                                .limit = run->limit,
                                .folder = run->folder,
                                .target = run->target,
                                .accepted = run->accepted.items,
                                .accepted_count = run->accepted.count,
                                .watch = output_terminal() ? show_progress : NULL};
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

/* "all", or a number */
static bool read_candidates(Tune *run) {
    char *end;
    if (run->candidates == NULL) return true;
    long most = strtol(run->candidates, &end, 10);
    bool all = strcmp(run->candidates, "all") == 0;
    if (!all && (end == run->candidates || *end != 0 || most < 1 || most > 1000000)) {
        usage_error(run->command, "`--candidates` must be `all` or 1 to 1000000");
        return false;
    }
    run->most = all ? SIZE_MAX : (size_t)most;
    return true;
}

static bool options_are_right(Tune *run) {
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
    return read_candidates(run);
}

int command_tune(const Command *command, int argc, char **argv) {
    Tune run = {.command = command, .seed = 1, .device = -1, .rounds = 7};
    Texts words = {0};
    const Option options[] = {{"--fill", OPTION_LIST, &run.fills},
                              {"--seed", OPTION_SEED, &run.seed},
                              {"--on", OPTION_TEXT, &run.on},
                              {"--device", OPTION_NUMBER, &run.device},
                              {"--rounds", OPTION_NUMBER, &run.rounds},
                              {"--forget", OPTION_FLAG, &run.forget},
                              {"--candidates", OPTION_TEXT, &run.candidates},
                              {"--near", OPTION_FLAG, &run.near},
                              {"--limit", OPTION_SECONDS, &run.limit},
                              {"--folder", OPTION_TEXT, &run.folder},
                              {"--target", OPTION_TEXT, &run.target},
                              {"--accept", OPTION_LIST, &run.accepted},
                              {"--format", OPTION_FORMAT, &run.format}};
    int status = PIPEC_UNUSABLE;
    switch (
        options_parse(command, argc, argv, options, sizeof options / sizeof options[0], &words)) {
    case PARSED_FINE:
        if (words_split(command, &words, &run.words) && options_are_right(&run) &&
            folder_fits(command, run.folder, run.words.file))
            status = tune_all(&run);
        break;
    case PARSED_HELP: status = PIPEC_FINE; break;
    case PARSED_WRONG: break;
    }
    texts_free(&run.words.values);
    texts_free(&run.fills);
    texts_free(&run.accepted);
    texts_free(&words);
    return status;
}
