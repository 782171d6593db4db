/* pipec check: reports all errors of files. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct Check {
    const Command *command;
    Texts files, values, denied, accepted;
    bool *taken; /* one per value: some file has such a static */
    /* name of standard input in messages; NULL: the library's default */
    const char *name;
    const char *target; /* NULL: all that each kernel names */
    const char *folder; /* that its includes are relative to; NULL: it has none */
    Format format;
    bool times;
    PipecSarif *sarif;
    size_t errors;
} Check;

static bool usable(const Check *check) {
    size_t inputs = 0;
    for (size_t i = 0; i < check->files.count; i++)
        inputs += strcmp(check->files.items[i], "-") == 0;
    if (check->files.count == 0) return usage_error(check->command, "no file is given"), false;
    if (inputs > 1)
        return usage_error(check->command, "`-` (standard input) is given twice"), false;
    if ((check->name != NULL || check->folder != NULL) && inputs == 0)
        return usage_error(check->command,
                           "`%s` is for standard input, but `-` is not among the files",
                           check->name != NULL ? "--name" : "--folder"),
               false;
    return true;
}

static bool say(Check *check, const PipecDiagnostics *diagnostics) {
    check->errors += pipec_diagnostics_errors(diagnostics);
    switch (check->format) {
    case FORMAT_TEXT:
        say_diagnostics(diagnostics, FORMAT_TEXT);
        if (pipec_diagnostics_count(diagnostics) > 0) fputc('\n', stderr);
        return true;
    case FORMAT_JSON: fputs(pipec_diagnostics_json(diagnostics), stdout); return true;
    case FORMAT_SARIF: return pipec_sarif_add(check->sarif, diagnostics);
    }
    return true;
}

/* True if the errors concern only the command's arguments: then they are reported once. */
static bool is_usage_error(const PipecDiagnostics *diagnostics) {
    for (size_t i = 0; i < pipec_diagnostics_count(diagnostics); i++)
        if (strcmp(pipec_diagnostics_get(diagnostics, i)->code, "P0916") == 0 ||
            strcmp(pipec_diagnostics_get(diagnostics, i)->code, "P0938") == 0)
            return true;
    return false;
}

/* True for NAME=VALUE with a valid NAME; all other arguments are files, "./a=b.pipe" too */
static bool is_value(const char *word) {
    size_t length = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return length > 0 && word[length] == '=';
}

static bool split(Check *check, const Texts *words) {
    check->files.items = calloc(words->count + 1, sizeof *check->files.items);
    check->values.items = calloc(words->count + 1, sizeof *check->values.items);
    check->taken = calloc(words->count + 1, sizeof *check->taken);
    if (check->files.items == NULL || check->values.items == NULL || check->taken == NULL)
        return false;
    for (size_t i = 0; i < words->count; i++) {
        Texts *texts = is_value(words->items[i]) ? &check->values : &check->files;
        texts->items[texts->count++] = words->items[i];
    }
    return true;
}

/* With several files, each uses the values of its own statics; a value that no file uses is an
 * error. */
static int report_unused(const Check *check) {
    int status = PIPEC_FINE;
    for (size_t i = 0; check->files.count > 1 && i < check->values.count; i++) {
        if (check->taken[i]) continue;
        const char *value = check->values.items[i];
        say_error("no file has a static `%.*s`", (int)strcspn(value, "="), value);
        status = PIPEC_UNUSABLE;
    }
    return status;
}

static int check_files(Check *check) {
    int status = PIPEC_FINE;
    bool more = true;
    for (size_t i = 0; i < check->files.count && more; i++) {
        PipecOptions options = {.size = sizeof options,
                                .variant = variant_cut(check->files.items[i]),
                                .name =
                                    strcmp(check->files.items[i], "-") == 0 ? check->name : NULL,
                                .folder = check->folder,
                                .values = check->values.items,
                                .value_count = check->values.count,
                                .launch_values = check->files.count > 1,
                                .denied = check->denied.items,
                                .denied_count = check->denied.count,
                                .accepted = check->accepted.items,
                                .accepted_count = check->accepted.count,
                                .target = check->target,
                                .check_only = true,
                                .times = check->times};
        PipecProgram *program = pipec_compile_file(check->files.items[i], &options);
        if (program == NULL || !say(check, pipec_program_diagnostics(program)))
            status = (int)pipec_worse((PipecStatus)status, (PipecStatus)out_of_memory());
        if (program == NULL) continue;
        status = (int)pipec_worse((PipecStatus)status, pipec_program_status(program));
        if (check->times) fputs(pipec_program_times(program), stderr);
        for (size_t v = 0; v < check->values.count; v++)
            check->taken[v] =
                check->taken[v] || pipec_program_is_static(program, check->values.items[v]);
        more = !is_usage_error(pipec_program_diagnostics(program));
        pipec_program_free(program);
    }
    return more ? (int)pipec_worse((PipecStatus)status, (PipecStatus)report_unused(check)) : status;
}

static int print_sarif(Check *check, int status) {
    const char *text = pipec_sarif_text(check->sarif);
    if (text == NULL) return (int)pipec_worse((PipecStatus)status, (PipecStatus)out_of_memory());
    fputs(text, stdout);
    return status;
}

static int check_all(Check *check) {
    if (!usable(check)) return PIPEC_UNUSABLE;
    if (check->format == FORMAT_SARIF && (check->sarif = pipec_sarif_new()) == NULL)
        return out_of_memory();
    int status = check_files(check);
    if (check->format == FORMAT_SARIF) status = print_sarif(check, status);
    if (check->format == FORMAT_TEXT && check->errors > 0)
        fprintf(stderr, "%zu %s\n", check->errors, check->errors == 1 ? "error" : "errors");
    pipec_sarif_free(check->sarif);
    return status;
}

int command_check(const Command *command, int argc, char **argv) {
    Check check = {.command = command};
    const Option options[] = {
        {"--format", OPTION_FORMATS, &check.format}, {"--name", OPTION_TEXT, &check.name},
        {"--folder", OPTION_TEXT, &check.folder},    {"--times", OPTION_FLAG, &check.times},
        {"--target", OPTION_TEXT, &check.target},    {"-D", OPTION_LIST, &check.denied},
        {"--accept", OPTION_LIST, &check.accepted}};
    Texts words = {0};
    int status = PIPEC_UNUSABLE;
    switch (
        options_parse(command, argc, argv, options, sizeof options / sizeof options[0], &words)) {
    case PARSED_FINE: status = split(&check, &words) ? check_all(&check) : out_of_memory(); break;
    case PARSED_HELP: status = PIPEC_FINE; break;
    case PARSED_WRONG: break;
    }
    free(check.taken);
    texts_free(&words);
    texts_free(&check.values);
    texts_free(&check.files);
    texts_free(&check.denied);
    texts_free(&check.accepted);
    return status;
}
