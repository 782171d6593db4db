/* pipec check: files go in, all their errors come out. */
#include "cli/cli.h"

int command_check(const Command *command, int argc, char **argv) {
    bool json = false;
    Texts files = {0};
    const Option options[] = {{"--format", OPTION_FORMAT, &json}};
    int status = PIPEC_FINE;
    size_t errors = 0;
    switch (options_parse(command, argc, argv, options, 1, &files)) {
    case PARSED_FINE: break;
    case PARSED_HELP: texts_free(&files); return PIPEC_FINE;
    case PARSED_WRONG: texts_free(&files); return PIPEC_UNUSABLE;
    }
    if (files.count == 0) status = usage_error(command, "no file is named");
    for (size_t i = 0; i < files.count; i++) {
        PipecOptions compile = {.check_only = true};
        PipecProgram *program = pipec_compile_file(files.items[i], &compile);
        if (program == NULL) {
            status = (int)pipec_worse((PipecStatus)status, (PipecStatus)out_of_memory());
            continue;
        }
        const PipecDiagnostics *diagnostics = pipec_program_diagnostics(program);
        if (json)
            fputs(pipec_diagnostics_json(diagnostics), stdout);
        else
            say_diagnostics(diagnostics, false);
        if (!json && pipec_diagnostics_count(diagnostics) > 0) fputc('\n', stderr);
        errors += pipec_diagnostics_errors(diagnostics);
        status = (int)pipec_worse((PipecStatus)status, pipec_program_status(program));
        pipec_program_free(program);
    }
    if (!json && errors > 0) fprintf(stderr, "%zu %s\n", errors, errors == 1 ? "error" : "errors");
    texts_free(&files);
    return status;
}
