/* pipec check: files go in, all their errors come out. */
#include "cli/cli.h"

#include <string.h>

typedef struct Check {
    const Command *command;
    Texts files, denied;
    const char *name; /* of standard input in messages; NULL: the library's own */
    Format format;
    PipecSarif *sarif;
    size_t errors;
} Check;

static bool usable(const Check *check) {
    size_t inputs = 0;
    for (size_t i = 0; i < check->files.count; i++) inputs += strcmp(check->files.items[i], "-") == 0;
    if (check->files.count == 0) return usage_error(check->command, "no file is named"), false;
    if (inputs > 1) return usage_error(check->command, "`-`, standard input, can be read once only"), false;
    if (check->name != NULL && inputs == 0)
        return usage_error(check->command, "`--name` names standard input, and `-` is not among the files"), false;
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

/* Is it the command's words that are wrong, and no file? Then that is said once. */
static bool of_the_words(const PipecDiagnostics *diagnostics) {
    for (size_t i = 0; i < pipec_diagnostics_count(diagnostics); i++)
        if (strcmp(pipec_diagnostics_get(diagnostics, i)->code, "P0916") == 0) return true;
    return false;
}

static int check_files(Check *check) {
    int status = PIPEC_FINE;
    bool more = true;
    for (size_t i = 0; i < check->files.count && more; i++) {
        PipecOptions options = {.name = strcmp(check->files.items[i], "-") == 0 ? check->name : NULL,
                                .denied = check->denied.items,
                                .denied_count = check->denied.count,
                                .check_only = true};
        PipecProgram *program = pipec_compile_file(check->files.items[i], &options);
        if (program == NULL || !say(check, pipec_program_diagnostics(program)))
            status = (int)pipec_worse((PipecStatus)status, (PipecStatus)out_of_memory());
        if (program == NULL) continue;
        status = (int)pipec_worse((PipecStatus)status, pipec_program_status(program));
        more = !of_the_words(pipec_program_diagnostics(program));
        pipec_program_free(program);
    }
    return status;
}

static int print_sarif(Check *check, int status) {
    const char *text = pipec_sarif_text(check->sarif);
    if (text == NULL) return (int)pipec_worse((PipecStatus)status, (PipecStatus)out_of_memory());
    fputs(text, stdout);
    return status;
}

static int check_all(Check *check) {
    if (!usable(check)) return PIPEC_UNUSABLE;
    if (check->format == FORMAT_SARIF && (check->sarif = pipec_sarif_new()) == NULL) return out_of_memory();
    int status = check_files(check);
    if (check->format == FORMAT_SARIF) status = print_sarif(check, status);
    if (check->format == FORMAT_TEXT && check->errors > 0)
        fprintf(stderr, "%zu %s\n", check->errors, check->errors == 1 ? "error" : "errors");
    pipec_sarif_free(check->sarif);
    return status;
}

int command_check(const Command *command, int argc, char **argv) {
    Check check = {.command = command};
    const Option options[] = {{"--format", OPTION_FORMATS, &check.format},
                              {"--name", OPTION_TEXT, &check.name},
                              {"-D", OPTION_LIST, &check.denied}};
    int status = PIPEC_UNUSABLE;
    switch (options_parse(command, argc, argv, options, sizeof options / sizeof options[0], &check.files)) {
    case PARSED_FINE: status = check_all(&check); break;
    case PARSED_HELP: status = PIPEC_FINE; break;
    case PARSED_WRONG: break;
    }
    texts_free(&check.files);
    texts_free(&check.denied);
    return status;
}
