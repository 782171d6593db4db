/* pipec cache: lists or removes the kernels that ptxas has assembled, or says which cache a load
 * uses. */
#include "cli/cli.h"

#include <string.h>
#include <time.h>

/* "71 kB" */
static void print_bytes(uint64_t bytes) {
    if (bytes < UINT64_C(10) << 20)
        printf("%.0f kB", (double)bytes / 1e3);
    else
        printf("%.0f MB", (double)bytes / 1e6);
}

static void print_json(const PipecCache *cache, const PipecCacheInfo *info) {
    PipecCacheEntry entry = {.size = sizeof entry};
    Json json = json_open(NULL, NULL, '{');
    json_text(&json, "folder", info->folder);
    json_text(&json, "off", info->off);
    json_text(&json, "ptxas", info->ptxas);
    json_text(&json, "version", info->version);
    json_integer(&json, "bytes", (int64_t)info->bytes);
    json_integer(&json, "bytes_most", (int64_t)info->bytes_most);
    Json entries = json_open(&json, "entries", '[');
    for (size_t i = 0; pipec_cache_entry(cache, i, &entry); i++) {
        Json row = json_open(&entries, NULL, '{');
        json_text(&row, "kernel", entry.kernel);
        json_text(&row, "target", entry.target);
        json_text(&row, "version", entry.version);
        json_integer(&row, "used", entry.used);
        json_integer(&row, "bytes", (int64_t)entry.bytes);
        json_text(&row, "file", entry.file);
        json_close(&row);
    }
    json_close(&entries);
    json_close(&json);
    putchar('\n');
}

static int list(PipecCache *cache, Format format) {
    PipecCacheInfo info = {.size = sizeof info};
    PipecCacheEntry entry = {.size = sizeof entry};
    pipec_cache_info(cache, &info);
    if (format == FORMAT_JSON) {
        print_json(cache, &info);
        return PIPEC_FINE;
    }
    for (size_t i = 0; pipec_cache_entry(cache, i, &entry); i++) {
        char used[32] = "";
        time_t when = (time_t)entry.used;
        struct tm parts;
        if (localtime_r(&when, &parts) != NULL)
            strftime(used, sizeof used, "%Y-%m-%d %H:%M", &parts);
        printf("%-20s  %s  ptxas %-9s  %s  ", entry.kernel, entry.target, entry.version, used);
        print_bytes(entry.bytes);
        putchar('\n');
    }
    if (info.folder == NULL) {
        printf("there is no cache: %s\n", info.off);
        return PIPEC_FINE;
    }
    printf("%zu kernel%s, ", info.entries, info.entries == 1 ? "" : "s");
    print_bytes(info.bytes);
    printf(" of ");
    print_bytes(info.bytes_most);
    printf(", in %s\n", info.folder);
    return PIPEC_FINE;
}

static int clear(PipecCache *cache) {
    PipecDiagnostics *diagnostics;
    size_t removed;
    uint64_t bytes;
    PipecStatus status = pipec_cache_clear(cache, &removed, &bytes, &diagnostics);
    if (diagnostics != NULL) say_diagnostics(diagnostics, FORMAT_TEXT);
    pipec_diagnostics_free(diagnostics);
    printf("removed %zu file%s, ", removed, removed == 1 ? "" : "s");
    print_bytes(bytes);
    putchar('\n');
    return (int)status;
}

/* folder: of standard input, for its includes, or NULL; target: NULL: the first of the kernel */
static int why(PipecCache *cache, const Words *words, const char *folder, const char *target) {
    PipecOptions options = {.size = sizeof options,
                            .kernel = words->kernel,
                            .variant = words->variant,
                            .values = words->values.items,
                            .value_count = words->values.count,
                            .folder = folder,
                            .target = target,
                            .launch_values = true};
    PipecProgram *program = NULL;
    int status = PIPEC_FINE;
    if (words->file != NULL) {
        program = pipec_compile_file(words->file, &options);
        if (program == NULL) return out_of_memory();
        status = (int)pipec_program_status(program);
        if (pipec_diagnostics_errors(pipec_program_diagnostics(program)) > 0)
            say_diagnostics(pipec_program_diagnostics(program), FORMAT_TEXT);
    }
    const char *text = pipec_cache_why(cache, program);
    if (text != NULL) fputs(text, stdout);
    pipec_program_free(program);
    return text != NULL ? status : out_of_memory();
}

static int act(const Command *command, Texts *words, Format format, const char *folder,
               const char *target) {
    const char *verb = words->count > 0 ? words->items[0] : NULL;
    bool is_why = verb != NULL && strcmp(verb, "why") == 0;
    if (verb == NULL || (!is_why && strcmp(verb, "list") != 0 && strcmp(verb, "clear") != 0))
        return usage_error(command, "write `list`, `clear` or `why` after `cache`");
    if (!is_why && words->count > 1)
        return usage_error(command, "`cache %s` takes no `%s`", verb, words->items[1]);
    if (format != FORMAT_TEXT && strcmp(verb, "list") != 0)
        return usage_error(command, "`cache %s` takes no `--format`", verb);
    if (folder != NULL && (!is_why || words->count == 1))
        return usage_error(command, "`--folder` is for `cache why -`");
    if (target != NULL && (!is_why || words->count == 1))
        return usage_error(command, "`--target` is for `cache why FILE`");
    Words rest = {0};
    Texts others = {words->items + 1, words->count - 1};
    if (others.count > 0 &&
        !(words_split(command, &others, &rest) && folder_fits(command, folder, rest.file))) {
        texts_free(&rest.values);
        return PIPEC_UNUSABLE;
    }
    PipecCache *cache = pipec_cache_open();
    int status = cache == NULL    ? out_of_memory()
                 : is_why         ? why(cache, &rest, folder, target)
                 : verb[0] == 'l' ? list(cache, format)
                                  : clear(cache);
    pipec_cache_free(cache);
    texts_free(&rest.values);
    return status;
}

int command_cache(const Command *command, int argc, char **argv) {
    Texts words = {0};
    Format format = FORMAT_TEXT;
    const char *folder = NULL, *target = NULL;
    const Option options[] = {{"--folder", OPTION_TEXT, &folder},
                              {"--target", OPTION_TEXT, &target},
                              {"--format", OPTION_FORMAT, &format}};
    int status = PIPEC_UNUSABLE;
    switch (
        options_parse(command, argc, argv, options, sizeof options / sizeof options[0], &words)) {
    case PARSED_FINE: status = act(command, &words, format, folder, target); break;
    case PARSED_HELP: status = PIPEC_FINE; break;
    case PARSED_WRONG: break;
    }
    texts_free(&words);
    return status;
}
