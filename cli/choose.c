/* pipec choose: predicts the time of every variant and combination of statics for given sizes, on
 * a machine that need not be there, and prints the best, what limits it, and the next ones. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN 4 /* the best and the next three */

typedef struct Choose {
    const Command *command;
    Words words;
    const char *machine, *save, *target;
    const char *folder; /* of standard input, for its includes; NULL: none */
    Texts accepted;
    bool invariant;
    Format format;
    PipecTune *tune;
    /* candidates with a prediction, which come first; without; that cannot run; not proved */
    size_t known, unknown, unfit, unproved;
} Choose;

static void count_trials(Choose *choose) {
    PipecTrial trial = {.size = sizeof trial};
    for (size_t i = 0; pipec_tune_trial(choose->tune, i, &trial); i++) {
        bool fits = trial.end == PIPEC_TRIAL_MEASURED;
        choose->unproved += trial.end == PIPEC_TRIAL_UNPROVED;
        choose->unfit += !fits && trial.end != PIPEC_TRIAL_UNPROVED;
        choose->unknown += fits && !(trial.predicted > 0);
        choose->known += fits && trial.predicted > 0;
    }
}

/* ---- output ---------------------------------------------------------------------------------- */

static const char *variant_of(const PipecTrial *trial) {
    const char *colon = strchr(trial->kernel, ':');
    return colon != NULL ? colon + 1 : "";
}

static void print_candidate(const PipecTrial *trial, const char *head) {
    const char *variant = variant_of(trial);
    printf("  %-7s %10.2f us  %-16s %s%s%s\n", head, trial->predicted * 1e6, trial->limit, variant,
           variant[0] != 0 && trial->values[0] != 0 ? "  " : "", trial->values);
}

/* True if a candidate of this variant has a prediction */
static bool is_known(const Choose *choose, const char *kernel) {
    PipecTrial trial = {.size = sizeof trial};
    for (size_t i = 0; i < choose->known && pipec_tune_trial(choose->tune, i, &trial); i++)
        if (strcmp(trial.kernel, kernel) == 0) return true;
    return false;
}

/* Why each variant without a prediction has none: of its first candidate */
static void print_others(const Choose *choose) {
    PipecTrial trial = {.size = sizeof trial}, before = trial;
    for (size_t i = choose->known; pipec_tune_trial(choose->tune, i, &trial); i++) {
        bool same = i > choose->known && strcmp(trial.kernel, before.kernel) == 0;
        const char *why = trial.end == PIPEC_TRIAL_MEASURED ? trial.limit : trial.remark;
        if (!same && why != NULL && !is_known(choose, trial.kernel))
            printf("  %s: %s\n", trial.kernel, why);
        before = trial;
    }
}

static void print(const Choose *choose) {
    PipecTrial trial = {.size = sizeof trial};
    if (choose->known > 0) {
        const PipecTuneInfo *info = pipec_tune_info(choose->tune);
        printf("%s: kernel `%s`, predicted for %s%s\n", choose->words.file, info->kernel,
               choose->machine, info->calibrated ? "" : ", not calibrated");
        for (size_t i = 0; i < choose->known && i < SHOWN; i++)
            if (pipec_tune_trial(choose->tune, i, &trial))
                print_candidate(&trial, i == 0 ? "chosen" : i == 1 ? "next" : "");
        printf("  %zu more that can run, %zu that cannot",
               choose->known - (choose->known < SHOWN ? choose->known : SHOWN) + choose->unknown,
               choose->unfit);
        if (choose->unproved > 0) printf(", %zu that are not proved", choose->unproved);
        printf("\n");
    }
    if (pipec_diagnostics_count(pipec_tune_diagnostics(choose->tune)) == 0) print_others(choose);
    fflush(stdout);
}

static void print_json(const Choose *choose, int status) {
    Json json = json_open(NULL, NULL, '{');
    json_text(&json, "file", choose->words.file);
    json_text(&json, "machine", choose->machine);
    json_integer(&json, "status", status);
    json_integer(&json, "unfit", (int64_t)choose->unfit);
    json_integer(&json, "unproved", (int64_t)choose->unproved);
    Json list = json_open(&json, "candidates", '[');
    PipecTrial trial = {.size = sizeof trial};
    for (size_t i = 0; i < choose->known && pipec_tune_trial(choose->tune, i, &trial); i++) {
        Json row = json_open(&list, NULL, '{');
        json_text(&row, "kernel", trial.kernel);
        json_text(&row, "values", trial.values);
        json_number(&row, "predicted", trial.predicted);
        json_text(&row, "limit", trial.limit);
        json_close(&row);
    }
    json_close(&list);
    json_close(&json);
    putchar('\n');
    fflush(stdout);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int choose_all(Choose *choose) {
    PipecTuneOptions options = {.size = sizeof options,
                                .kernel = choose->words.kernel,
                                .variant = choose->words.variant,
                                .values = choose->words.values.items,
                                .value_count = choose->words.values.count,
                                .machine = choose->machine,
                                .save = choose->save,
                                .folder = choose->folder,
                                .target = choose->target,
                                .accepted = choose->accepted.items,
                                .accepted_count = choose->accepted.count,
                                .invariant = choose->invariant,
                                .seed = 1};
    choose->tune = pipec_tune_file(choose->words.file, &options);
    if (choose->tune == NULL) return out_of_memory();
    int status = (int)pipec_tune_status(choose->tune);
    const PipecDiagnostics *said = pipec_tune_diagnostics(choose->tune);
    if (pipec_diagnostics_count(said) > 0) say_diagnostics(said, choose->format);
    count_trials(choose);
    if (choose->format == FORMAT_JSON)
        print_json(choose, status);
    else
        print(choose);
    pipec_tune_free(choose->tune);
    return status;
}

int command_choose(const Command *command, int argc, char **argv) {
    Choose choose = {.command = command, .machine = PIPEC_MACHINE};
    Texts words = {0};
    const Option options[] = {{"--machine", OPTION_TEXT, &choose.machine},
                              {"--save", OPTION_TEXT, &choose.save},
                              {"--invariant", OPTION_FLAG, &choose.invariant},
                              {"--folder", OPTION_TEXT, &choose.folder},
                              {"--target", OPTION_TEXT, &choose.target},
                              {"--accept", OPTION_LIST, &choose.accepted},
                              {"--format", OPTION_FORMAT, &choose.format}};
    int status = PIPEC_UNUSABLE;
    switch (
        options_parse(command, argc, argv, options, sizeof options / sizeof options[0], &words)) {
    case PARSED_FINE:
        if (words_split(command, &words, &choose.words) &&
            folder_fits(command, choose.folder, choose.words.file))
            status = choose_all(&choose);
        break;
    case PARSED_HELP: status = PIPEC_FINE; break;
    case PARSED_WRONG: break;
    }
    texts_free(&choose.words.values);
    texts_free(&choose.accepted);
    texts_free(&words);
    return status;
}
