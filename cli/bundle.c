/* pipec build --bundle: writes all that launches with some sizes can choose into a folder. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct Making {
    const BundleWords *words;
    const char **values; /* of the compilation */
    PipecSizes *sizes;
    char **texts; /* to be freed: copies that are cut into names */
    size_t value_count, size_count, text_count;
    const char *machines[16];
    size_t machine_count;
    PipecProgram *program;
} Making;

/* "4096,14336" and "1..8192" are sizes, not values. */
static bool is_plain(const char *word) {
    const char *value = strchr(word, '=');
    return strchr(value, ',') == NULL && strstr(value, "..") == NULL;
}

static bool read_number(const char **at, int64_t *out) {
    char *end;
    errno = 0;
    *out = strtoll(*at, &end, 10);
    bool fine = end > *at && errno == 0 && **at >= '0' && **at <= '9';
    *at = end;
    return fine;
}

/* "A", "A..B" and "A,B..C,.." */
static bool read_sizes(Making *it, const char *word) {
    char *name = strdup(word);
    const char *at = strchr(word, '=') + 1;
    if (name == NULL) return out_of_memory() == PIPEC_FINE;
    it->texts[it->text_count++] = name;
    *strchr(name, '=') = 0;
    for (;;) {
        PipecSizes *size = &it->sizes[it->size_count++];
        size->name = name;
        bool fine = read_number(&at, &size->first);
        size->last = size->first;
        if (fine && strncmp(at, "..", 2) == 0) {
            at += 2;
            fine = read_number(&at, &size->last);
        }
        if (fine && *at == 0) return true;
        if (!fine || *at++ != ',') break;
    }
    usage_error(it->words->command, "`%s` is not NAME=SIZES, such as M=1..8192 or K=64,128", word);
    return false;
}

/* "h200,h100" */
static bool read_machines(Making *it) {
    char *text = strdup(it->words->machine);
    if (text == NULL) return out_of_memory() == PIPEC_FINE;
    it->texts[it->text_count++] = text;
    for (char *at = text; at != NULL && it->machine_count < 16;) {
        it->machines[it->machine_count++] = at;
        at = strchr(at, ',');
        if (at != NULL) *at++ = 0;
    }
    return true;
}

static int compile(Making *it) {
    const BundleWords *words = it->words;
    for (size_t i = 0; i < words->values->count; i++)
        if (is_plain(words->values->items[i]))
            it->values[it->value_count++] = words->values->items[i];
    PipecOptions options = {.size = sizeof options,
                            .folder = words->includes,
                            .kernel = words->kernel,
                            .variant = words->variant,
                            .values = it->values,
                            .value_count = it->value_count,
                            .denied = words->denied->items,
                            .denied_count = words->denied->count,
                            .accepted = words->accepted->items,
                            .accepted_count = words->accepted->count,
                            .invariant = words->invariant,
                            .target = words->target,
                            .launch_values = true};
    it->program = pipec_compile_file(words->file, &options);
    if (it->program == NULL) return out_of_memory();
    say_diagnostics(pipec_program_diagnostics(it->program), words->format);
    return (int)pipec_program_status(it->program);
}

static int write_bundle(Making *it) {
    const BundleWords *words = it->words;
    size_t candidates;
    for (size_t i = 0; i < words->values->count; i++)
        if (!pipec_program_is_static(it->program, words->values->items[i]) &&
            !read_sizes(it, words->values->items[i]))
            return PIPEC_UNUSABLE;
    PipecBundleOptions options = {.size = sizeof options,
                                  .folder = words->folder,
                                  .sizes = it->sizes,
                                  .size_count = it->size_count,
                                  .machines = it->machines,
                                  .machine_count = it->machine_count,
                                  .cubins = words->cubins};
    int status = (int)pipec_program_bundle(it->program, &options, &candidates);
    say_diagnostics(pipec_program_diagnostics(it->program), words->format);
    if (status == PIPEC_FINE)
        printf("%s: %zu %s of kernel `%.*s`\n", words->folder, candidates,
               candidates == 1 ? "candidate" : "candidates",
               (int)strcspn(pipec_program_compiled(it->program), ":"),
               pipec_program_compiled(it->program));
    return status;
}

int bundle_write(const BundleWords *words) {
    size_t room = 1;
    for (size_t i = 0; i < words->values->count; i++) room += strlen(words->values->items[i]);
    Making it = {.words = words,
                 .values = calloc(room, sizeof *it.values),
                 .sizes = calloc(room, sizeof *it.sizes),
                 .texts = calloc(room + 1, sizeof *it.texts)};
    int status = PIPEC_UNUSABLE;
    if (it.values == NULL || it.sizes == NULL || it.texts == NULL)
        status = out_of_memory();
    else if (read_machines(&it) && (status = compile(&it)) == PIPEC_FINE)
        status = write_bundle(&it);
    pipec_program_free(it.program);
    for (size_t i = 0; i < it.text_count; i++) free(it.texts[i]);
    free(it.texts);
    free(it.sizes);
    free(it.values);
    return status;
}
