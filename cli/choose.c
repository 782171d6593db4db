/* pipec choose: predicts the time of every variant and combination of statics for given sizes, on
 * a machine that need not be there, and prints the best, what limits it, and the next ones. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN 4 /* the best and the next three */

typedef struct Candidate {
    PipecTrial trial;
    const char *variant;
} Candidate;

typedef struct Choose {
    const Command *command;
    Words words;
    const char *machine;
    Format format;
    PipecTune **tunes; /* by variant */
    const char **names;
    size_t count;
    Candidate *candidates; /* of all variants */
    size_t known, unknown, unfit;
} Choose;

/* ---- candidates ------------------------------------------------------------------------------ */

/* "gemm" names the kernel "gemm", and the variants "gemm:wide", .. */
static bool is_of(const char *name, const Words *words) {
    size_t length = words->kernel != NULL ? strlen(words->kernel) : strcspn(name, ":");
    if (words->kernel != NULL &&
        (strncmp(name, words->kernel, length) != 0 || (name[length] != 0 && name[length] != ':')))
        return false;
    const char *variant = name[length] == ':' ? name + length + 1 : "";
    return words->variant == NULL || strcmp(variant, words->variant) == 0;
}

static PipecTune *predict(const Choose *choose, const char *kernel) {
    PipecTuneOptions options = {.size = sizeof options,
                                .kernel = kernel,
                                .values = choose->words.values.items,
                                .value_count = choose->words.values.count,
                                .machine = choose->machine,
                                .seed = 1};
    return pipec_tune_file(choose->words.file, &options);
}

static int by_time(const void *a, const void *b) {
    double x = ((const Candidate *)a)->trial.predicted, y = ((const Candidate *)b)->trial.predicted;
    return (x > y) - (x < y);
}

static bool take_trials(Choose *choose) {
    size_t all = 0;
    PipecTrial trial = {.size = sizeof trial};
    for (size_t t = 0; t < choose->count; t++)
        for (size_t i = 0; pipec_tune_trial(choose->tunes[t], i, &trial); i++) all++;
    choose->candidates = calloc(all + 1, sizeof *choose->candidates);
    if (choose->candidates == NULL) return false;
    for (size_t t = 0; t < choose->count; t++)
        for (size_t i = 0; pipec_tune_trial(choose->tunes[t], i, &trial); i++) {
            bool fits = trial.end == PIPEC_TRIAL_MEASURED;
            choose->unfit += !fits;
            choose->unknown += fits && !(trial.predicted > 0);
            if (fits && trial.predicted > 0)
                choose->candidates[choose->known++] = (Candidate){trial, choose->names[t]};
        }
    qsort(choose->candidates, choose->known, sizeof *choose->candidates, by_time);
    return true;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void print_candidate(const Candidate *it, const char *head) {
    const char *colon = strchr(it->variant, ':');
    printf("  %-7s %10.2f us  %-16s %s%s%s\n", head, it->trial.predicted * 1e6, it->trial.limit,
           colon != NULL ? colon + 1 : "", colon != NULL && it->trial.values[0] != 0 ? "  " : "",
           it->trial.values);
}

/* Why each variant without a prediction has none */
static void print_others(const Choose *choose) {
    for (size_t t = 0; t < choose->count; t++) {
        PipecTrial trial = {.size = sizeof trial};
        if (!pipec_tune_trial(choose->tunes[t], 0, &trial)) continue;
        bool fits = trial.end == PIPEC_TRIAL_MEASURED;
        if (fits && trial.predicted > 0) continue;
        const char *why = fits ? trial.limit : trial.remark;
        if (why != NULL) printf("  %s: %s\n", choose->names[t], why);
    }
}

static void print(const Choose *choose) {
    if (choose->known > 0) {
        printf("%s: kernel `%.*s`, predicted for %s\n", choose->words.file,
               (int)strcspn(choose->names[0], ":"), choose->names[0], choose->machine);
        for (size_t i = 0; i < choose->known && i < SHOWN; i++)
            print_candidate(&choose->candidates[i], i == 0 ? "chosen" : i == 1 ? "next" : "");
        printf("  %zu more that can run, %zu that cannot\n",
               choose->known - (choose->known < SHOWN ? choose->known : SHOWN) + choose->unknown,
               choose->unfit);
    }
    print_others(choose);
    fflush(stdout);
}

static void print_json(const Choose *choose, int status) {
    Json json = json_open(NULL, NULL, '{');
    json_text(&json, "file", choose->words.file);
    json_text(&json, "machine", choose->machine);
    json_integer(&json, "status", status);
    json_integer(&json, "unfit", (int64_t)choose->unfit);
    Json list = json_open(&json, "candidates", '[');
    for (size_t i = 0; i < choose->known; i++) {
        const Candidate *it = &choose->candidates[i];
        Json row = json_open(&list, NULL, '{');
        json_text(&row, "kernel", it->variant);
        json_text(&row, "values", it->trial.values);
        json_number(&row, "predicted", it->trial.predicted);
        json_text(&row, "limit", it->trial.limit);
        json_close(&row);
    }
    json_close(&list);
    json_close(&json);
    putchar('\n');
    fflush(stdout);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* A variant that cannot run is no error while another can. */
static int status_of(const Choose *choose) {
    int worst = PIPEC_FINE;
    for (size_t t = 0; t < choose->count; t++) {
        int status = (int)pipec_tune_status(choose->tunes[t]);
        if (status == PIPEC_BUG || (status != PIPEC_FINE && choose->known == 0)) {
            say_diagnostics(pipec_tune_diagnostics(choose->tunes[t]), choose->format);
            if (worst != PIPEC_BUG) worst = status;
        }
    }
    return worst;
}

static int choose_among(Choose *choose, const PipecProgram *program) {
    size_t all = 0;
    while (pipec_program_kernel(program, all) != NULL) all++;
    choose->tunes = calloc(all + 1, sizeof(PipecTune *));
    choose->names = calloc(all + 1, sizeof(char *));
    if (choose->tunes == NULL || choose->names == NULL) return out_of_memory();
    for (size_t i = 0; i < all; i++) {
        const char *name = pipec_program_kernel(program, i);
        if (!is_of(name, &choose->words)) continue;
        PipecTune *tune = predict(choose, name);
        if (tune == NULL) return out_of_memory();
        choose->names[choose->count] = name;
        choose->tunes[choose->count++] = tune;
    }
    if (!take_trials(choose)) return out_of_memory();
    int status = status_of(choose);
    if (choose->format == FORMAT_JSON)
        print_json(choose, status);
    else
        print(choose);
    return status;
}

static int choose_all(Choose *choose) {
    PipecOptions options = {.size = sizeof options,
                            .kernel = choose->words.kernel,
                            .variant = choose->words.variant,
                            .values = choose->words.values.items,
                            .value_count = choose->words.values.count,
                            .launch_values = true};
    PipecProgram *program = pipec_compile_file(choose->words.file, &options);
    if (program == NULL) return out_of_memory();
    int status = (int)pipec_program_status(program);
    bool named = pipec_program_compiled(program) != NULL;
    if (named)
        status = choose_among(choose, program);
    else
        say_diagnostics(pipec_program_diagnostics(program), choose->format);
    for (size_t t = 0; t < choose->count; t++) pipec_tune_free(choose->tunes[t]);
    free(choose->tunes);
    free(choose->names);
    free(choose->candidates);
    pipec_program_free(program);
    return status;
}

int command_choose(const Command *command, int argc, char **argv) {
    Choose choose = {.command = command, .machine = PIPEC_MACHINE};
    Texts words = {0};
    const Option options[] = {{"--machine", OPTION_TEXT, &choose.machine},
                              {"--format", OPTION_FORMAT, &choose.format}};
    int status = PIPEC_UNUSABLE;
    switch (
        options_parse(command, argc, argv, options, sizeof options / sizeof options[0], &words)) {
    case PARSED_FINE:
        if (words_split(command, &words, &choose.words)) status = choose_all(&choose);
        break;
    case PARSED_HELP: status = PIPEC_FINE; break;
    case PARSED_WRONG: break;
    }
    texts_free(&choose.words.values);
    texts_free(&words);
    return status;
}
