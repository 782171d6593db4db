/* pipec emulate: runs PTX of any compiler on the emulator; lists the entries of a text. */
#include "cli/cli.h"

#include <string.h>

typedef struct Emulate {
    const Command *command;
    const char *file;
    bool list, races;
    Texts arguments, denied;
    PipecEmulationOptions options;
    const char *suppressions;
    uint64_t schedule, blocks;
    int shared, schedules, resident;
    double seconds;
    Format format;
    PipecSarif *sarif; /* FORMAT_SARIF: gets all diagnostics */
} Emulate;

static void say(const Emulate *it, const PipecEmulation *emulation) {
    const PipecDiagnostics *diagnostics = pipec_emulation_diagnostics(emulation);
    if (pipec_diagnostics_count(diagnostics) == 0) return;
    if (it->format == FORMAT_SARIF) /* what fails is reported when the log is printed */
        (void)pipec_sarif_add(it->sarif, diagnostics);
    else
        say_diagnostics(diagnostics, it->format);
}

/* ---- the list of entries --------------------------------------------------------------------- */

/* "  block 128,1,1", if the entry requires it */
static void print_extents(const char *what, const uint32_t *extents) {
    if (extents[0] == 0) return;
    printf("  %s %u,%u,%u\n", what, extents[0], extents[1], extents[2]);
}

static void print_entry(const PipecEmulation *list, size_t index, const PipecEntry *entry) {
    PipecEntryParameter parameter = {.size = sizeof parameter};
    printf("%s\n", entry->name);
    print_extents("block", entry->block);
    print_extents("cluster", entry->cluster);
    if (entry->most_threads > 0) printf("  at most %u threads\n", entry->most_threads);
    for (size_t i = 0; pipec_emulation_parameter(list, index, i, &parameter); i++)
        printf("  %zu: %s %s, %u bytes, aligned to %u\n", i, parameter.type, parameter.name,
               parameter.bytes, parameter.alignment);
}

static void json_extents(Json *json, const char *field, const uint32_t *extents) {
    if (extents[0] == 0) {
        json_text(json, field, NULL);
        return;
    }
    Json list = json_open(json, field, '[');
    for (int i = 0; i < 3; i++) json_integer(&list, NULL, extents[i]);
    json_close(&list);
}

static void print_json_entry(const PipecEmulation *list, size_t index, const PipecEntry *entry) {
    PipecEntryParameter parameter = {.size = sizeof parameter};
    Json json = json_open(NULL, NULL, '{');
    json_text(&json, "entry", entry->name);
    json_extents(&json, "block", entry->block);
    json_extents(&json, "cluster", entry->cluster);
    json_integer(&json, "most_threads", entry->most_threads);
    Json parameters = json_open(&json, "parameters", '[');
    for (size_t i = 0; pipec_emulation_parameter(list, index, i, &parameter); i++) {
        Json row = json_open(&parameters, NULL, '{');
        json_text(&row, "name", parameter.name);
        json_text(&row, "type", parameter.type);
        json_integer(&row, "bytes", parameter.bytes);
        json_integer(&row, "alignment", parameter.alignment);
        json_close(&row);
    }
    json_close(&parameters);
    json_close(&json);
    putchar('\n');
}

static int list_entries(const Emulate *it) {
    PipecEntry entry = {.size = sizeof entry};
    PipecEmulation *list = pipec_emulation_list(it->file);
    if (list == NULL) return out_of_memory();
    say(it, list);
    for (size_t i = 0; pipec_emulation_entry(list, i, &entry); i++)
        (it->format == FORMAT_JSON ? print_json_entry : print_entry)(list, i, &entry);
    int status = (int)pipec_emulation_status(list);
    pipec_emulation_free(list);
    return status;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void print_run(const Emulate *it, const PipecRunInfo *info) {
    printf("%s: %lld %s on the emulator\n  ", it->file, (long long)info->blocks,
           info->blocks == 1 ? "block" : "blocks");
    print_time(info->seconds);
    printf(" (emulated, %llu warp instructions)\n", (unsigned long long)info->instructions);
    if (info->schedules > 1) printf("  no finding on %d schedules\n", info->schedules);
}

static void print_json(const Emulate *it, const PipecRunInfo *info, int status) {
    Json json = json_open(NULL, NULL, '{');
    json_text(&json, "file", it->file);
    json_integer(&json, "status", status);
    json_integer(&json, "blocks", info->blocks);
    json_number(&json, "seconds", info->seconds);
    json_integer(&json, "schedules", info->schedules);
    json_integer(&json, "instructions", (int64_t)info->instructions);
    json_close(&json);
    putchar('\n');
    fflush(stdout);
}

static int run(const Emulate *it, PipecEmulation *emulation) {
    say(it, emulation);
    if (pipec_emulation_status(emulation) != PIPEC_FINE)
        return (int)pipec_emulation_status(emulation);
    Progress progress = progress_begin("emulating");
    PipecExecuteOptions options = {.size = sizeof options,
                                   .progress = it->format == FORMAT_TEXT ? progress_show : NULL,
                                   .progress_data = &progress,
                                   .schedules = it->schedules,
                                   .schedule = it->schedule,
                                   .suppressions = it->suppressions,
                                   .no_races = !it->races};
    PipecStatus status = pipec_emulation_execute(emulation, &options);
    progress_end(&progress);
    if (status == PIPEC_FINE && it->format == FORMAT_TEXT)
        print_run(it, pipec_emulation_info(emulation));
    fflush(stdout);
    say(it, emulation);
    if (status == PIPEC_FINE && pipec_emulation_save(emulation) != PIPEC_FINE) say(it, emulation);
    return (int)pipec_emulation_status(emulation);
}

static int emulate(Emulate *it) {
    it->options.arguments = it->arguments.items;
    it->options.argument_count = it->arguments.count;
    it->options.denied = it->denied.items;
    it->options.denied_count = it->denied.count;
    it->options.shared_bytes = (uint32_t)it->shared;
    it->options.resident = it->resident;
    it->options.blocks = it->blocks;
    it->options.seconds = it->seconds;
    PipecEmulation *emulation = pipec_emulation_new(&it->options);
    if (emulation == NULL) return out_of_memory();
    int status = run(it, emulation);
    if (it->format == FORMAT_JSON) print_json(it, pipec_emulation_info(emulation), status);
    pipec_emulation_free(emulation);
    return status;
}

/* ---- the command line ------------------------------------------------------------------------ */

static bool ends_in_json(const char *file) {
    size_t length = strlen(file);
    return length > 5 && strcmp(file + length - 5, ".json") == 0;
}

/* The options of one launch do not go with a launch file, nor a run's with --list. */
static bool check_options(Emulate *it, const Texts *words) {
    PipecEmulationOptions *options = &it->options;
    bool one = options->entry != NULL || options->grid != NULL || options->block != NULL ||
               options->cluster != NULL || it->arguments.count > 0 || it->shared > 0 ||
               options->cooperative;
    if (words->count != 1) {
        usage_error(it->command,
                    words->count == 0 ? "no file is given" : "more than one file is given");
        return false;
    }
    it->file = words->items[0];
    bool described = ends_in_json(it->file);
    *(described ? &options->launches : &options->ptx) = it->file;
    if (described && (one || it->list))
        usage_error(it->command, "a launch file describes its launches: it takes no `%s`",
                    it->list ? "--list" : "--entry, --grid, --block, --cluster, --smem and --arg");
    else if (it->list && (one || it->format == FORMAT_SARIF))
        usage_error(it->command, "`--list` runs nothing: it takes only `--format=text|json`");
    else if (!described && !it->list && options->grid == NULL)
        usage_error(it->command, "`--grid` is missing");
    else if (it->schedules == 0)
        usage_error(it->command, "`--schedules` must be 1 or more");
    else
        return true;
    return false;
}

static int act(Emulate *it) {
    if (it->list) return list_entries(it);
    if (it->format != FORMAT_SARIF) return emulate(it);
    it->sarif = pipec_sarif_new();
    if (it->sarif == NULL) return out_of_memory();
    int status = output_sarif(it->sarif, emulate(it));
    pipec_sarif_free(it->sarif);
    return status;
}

int command_emulate(const Command *command, int argc, char **argv) {
    Emulate it = {
        .command = command, .options = {.size = sizeof it.options}, .schedules = 1, .races = true};
    Texts words = {0};
    const Option options[] = {{"--list", OPTION_FLAG, &it.list},
                              {"--entry", OPTION_TEXT, &it.options.entry},
                              {"--grid", OPTION_TEXT, &it.options.grid},
                              {"--block", OPTION_TEXT, &it.options.block},
                              {"--cluster", OPTION_TEXT, &it.options.cluster},
                              {"--smem", OPTION_NUMBER, &it.shared},
                              {"--cooperative", OPTION_FLAG, &it.options.cooperative},
                              {"--arg", OPTION_LIST, &it.arguments},
                              {"--schedules", OPTION_NUMBER, &it.schedules},
                              {"--schedule", OPTION_SEED, &it.schedule},
                              {"--resident", OPTION_NUMBER, &it.resident},
                              {"--blocks", OPTION_SEED, &it.blocks},
                              {"--seconds", OPTION_SECONDS, &it.seconds},
                              {"--suppress", OPTION_TEXT, &it.suppressions},
                              {"--races", OPTION_SWITCH, &it.races},
                              {"-D", OPTION_LIST, &it.denied},
                              {"--format", OPTION_FORMATS, &it.format}};
    int status = PIPEC_UNUSABLE;
    switch (
        options_parse(command, argc, argv, options, sizeof options / sizeof options[0], &words)) {
    case PARSED_FINE:
        if (check_options(&it, &words)) status = act(&it);
        break;
    case PARSED_HELP: status = PIPEC_FINE; break;
    case PARSED_WRONG: break;
    }
    texts_free(&it.arguments);
    texts_free(&it.denied);
    texts_free(&words);
    return status;
}
