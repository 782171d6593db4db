/* lib: a bundle: all that launches with some sizes can choose, in a folder, so that a program needs
 * neither the source nor a compiler. bundle.json:
 *
 *   {"pipec bundle": 1, "kernel": "linear", "machines": ["h200"],
 *    "sizes": [{"name": "M", "first": 1, "last": 8192}, ..],
 *    "candidates": [
 *   {"kernel": "linear:large", "values": "BM=128", "image": "linear.0.ptx", "manifest": ".."}
 *   ]}
 *
 * A manifest is that of pipec_program_manifest, as a text. Images and manifests are checked as
 * those of pipec_program_from. */
#include "lib/bundle.h"

#include "lib/machine.h"
#include "lib/targets.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#define SIZES_MOST 1000000
#define BATCH      256 /* choices with one scratch arena */

/* ---- files ----------------------------------------------------------------------------------- */

static bool unwritten(const char *path, int error, Diags *diags) {
    diag_plain(diags, P0935, "cannot write `%s` of the bundle: %s", path, strerror(error));
    return false;
}

static bool write_text(Arena *arena, const char *path, const char *text, size_t length,
                       Diags *diags) {
    Str copy = str_new(arena);
    str_add_bytes(&copy, text, length);
    int error = file_replace(arena, path, &copy);
    return error == 0 || unwritten(path, error, diags);
}

/* ---- which candidates ------------------------------------------------------------------------ */

/* The candidates for one target of the kernel */
typedef struct Part {
    const Family *family;
    bool *used; /* by candidate */
} Part;

typedef struct Bundling {
    PipecProgram *program;
    const PipecBundleOptions *options;
    Part *parts;
    size_t part_count;
    Arena *words;
    Diags *diags;
    const char **names; /* of the sizes, each once */
    size_t name_count;
    size_t *at;     /* by name: the row, and */
    int64_t *value; /* the value */
    size_t count, unfit;
    const char *first_unfit;
    PipecStatus status;
} Bundling;

static size_t find_row(const Bundling *it, size_t name, size_t from) {
    const PipecSizes *sizes = it->options->sizes;
    while (from < it->options->size_count && strcmp(sizes[from].name, it->names[name]) != 0) from++;
    return from;
}

static bool wrong(Bundling *it, const char *text) {
    diag_plain(it->diags, P0935, "%s", text);
    return false;
}

static bool read_sizes(Bundling *it) {
    const PipecBundleOptions *options = it->options;
    const Manifest *manifest = it->program->manifest;
    it->names = NEW_ARRAY(it->words, const char *, options->size_count + 1);
    it->at = NEW_ARRAY(it->words, size_t, options->size_count + 1);
    it->value = NEW_ARRAY(it->words, int64_t, options->size_count + 1);
    double all = 1;
    for (size_t i = 0; i < options->size_count; i++) {
        size_t known = 0;
        while (known < it->name_count && strcmp(it->names[known], options->sizes[i].name) != 0)
            known++;
        if (known == it->name_count) it->names[it->name_count++] = options->sizes[i].name;
        if (options->sizes[i].first > options->sizes[i].last || options->sizes[i].first < 0)
            return wrong(it, arena_printf(it->words, "the sizes of `%s` are not FIRST..LAST",
                                          options->sizes[i].name));
    }
    for (size_t n = 0; n < it->name_count; n++) {
        double count = 0;
        for (size_t row = find_row(it, n, 0); row < options->size_count;
             row = find_row(it, n, row + 1))
            count += (double)(options->sizes[row].last - options->sizes[row].first) + 1;
        all *= count;
    }
    if (all > SIZES_MOST)
        return wrong(it, arena_printf(it->words, "these are %.0f sizes; a bundle has at most %d",
                                      all, SIZES_MOST));
    for (size_t i = 0; i < manifest->symbols.count; i++) {
        bool found = !manifest->symbols.items[i].is_extent;
        for (size_t n = 0; n < it->name_count && !found; n++)
            found = strcmp(it->names[n], manifest->symbols.items[i].name) == 0;
        if (!found)
            return wrong(it, arena_printf(it->words, "no sizes are given for `%s`",
                                          manifest->symbols.items[i].name));
    }
    return true;
}

static const char *values_text(const Bundling *it) {
    Str text = str_new(it->words);
    for (size_t n = 0; n < it->name_count; n++)
        str_printf(&text, "%s%s=%" PRId64, n > 0 ? " " : "", it->names[n], it->value[n]);
    return text.text;
}

/* Marks what is chosen for the values on a machine */
static void choose_one(Bundling *it, Part *part, const MachineRow *machine, Arena *words) {
    const Manifest *manifest = part->family->program->manifest;
    int64_t *symbols = NEW_ARRAY(words, int64_t, manifest->symbols.count + 1);
    DeviceArgument *arguments = NEW_ARRAY(words, DeviceArgument, manifest->parameters.count + 1);
    for (size_t i = 0; i < manifest->symbols.count; i++)
        for (size_t n = 0; n < it->name_count; n++)
            if (strcmp(it->names[n], manifest->symbols.items[i].name) == 0)
                symbols[i] = it->value[n];
    Chosen *all = NEW_ARRAY(words, Chosen, part->family->count + 1), best = {0};
    Wish wish = {.arguments = arguments,
                 .machine = machine,
                 .invariant = it->program->invariant,
                 .only_best = true};
    if (family_arguments(manifest, symbols, arguments) &&
        family_rate(part->family, &wish, words, all).why == NULL)
        best = family_best(part->family, all);
    if (best.candidate != NULL)
        part->used[best.candidate - part->family->items] = true;
    else if (it->unfit++ == 0)
        it->first_unfit = values_text(it);
}

/* The next values, the last name first; false: these were the last ones */
static bool step(Bundling *it) {
    const PipecSizes *sizes = it->options->sizes;
    for (size_t n = it->name_count; n-- > 0;) {
        if (it->value[n]++ < sizes[it->at[n]].last) return true;
        it->at[n] = find_row(it, n, it->at[n] + 1);
        bool more = it->at[n] < it->options->size_count;
        if (!more) it->at[n] = find_row(it, n, 0);
        it->value[n] = sizes[it->at[n]].first;
        if (more) return true;
    }
    return false;
}

static bool choose_all(Bundling *it, Part *part) {
    const PipecBundleOptions *options = it->options;
    size_t before = it->count;
    part->used = NEW_ARRAY(it->words, bool, part->family->count + 1);
    for (size_t m = 0; m < options->machine_count; m++) {
        const MachineRow *row = machine_named(it->words, options->machines[m], it->diags);
        if (row == NULL) return false;
        MachineRow machine = *row;
        for (size_t n = 0; n < it->name_count; n++) {
            it->at[n] = find_row(it, n, 0);
            it->value[n] = options->sizes[it->at[n]].first;
        }
        Arena *words = NULL;
        size_t done = 0;
        do {
            if (done++ % BATCH == 0) {
                arena_free(words);
                words = arena_scratch(it->words);
            }
            choose_one(it, part, &machine, words);
        } while (step(it));
        arena_free(words);
    }
    for (size_t i = 0; i < part->family->count; i++) it->count += part->used[i];
    return it->count > before || wrong(it, "no variant can run for any of these sizes");
}

/* ---- writing --------------------------------------------------------------------------------- */

static const char *path_in(Arena *arena, const char *folder, const char *name) {
    return arena_printf(arena, "%s/%s", folder, name);
}

static bool write_image(Bundling *it, PipecProgram *program, const char *name) {
    const char *path = path_in(it->words, it->options->folder, name);
    if (!it->options->cubins)
        return write_text(it->words, path, program->ptx.text, program->ptx.length, it->diags);
    it->status = pipec_worse(it->status, pipec_program_assemble(program, path));
    if (it->status == PIPEC_FINE) return true;
    const char *fault = program_fault(it->words, program);
    return wrong(it, fault != NULL ? fault : "ptxas cannot assemble a candidate");
}

/* "sm_90a." in the name of a file; "": there is but one target */
static const char *target_part(const Bundling *it, const Part *part) {
    if (it->part_count < 2) return "";
    return arena_printf(it->words, "%s.", part->family->program->manifest->target);
}

static bool write_candidate(Bundling *it, const Part *part, size_t number,
                            const Candidate *candidate, Str *out) {
    PipecProgram *program = family_program(part->family, candidate);
    if (program == NULL) arena_fail(it->words);
    const char *name = arena_printf(
        it->words, "%.*s.%s%zu.%s", (int)strcspn(candidate->kernel, ":"), candidate->kernel,
        target_part(it, part), number, it->options->cubins ? "cubin" : "ptx");
    bool fine = program->manifest != NULL && write_image(it, program, name);
    if (fine) {
        str_printf(out, "%s\n{\"kernel\": ", number > 0 ? "," : "");
        str_json(out, candidate->kernel);
        str_add(out, ", \"values\": ");
        str_json(out, candidate->values);
        str_add(out, ", \"image\": ");
        str_json(out, name);
        str_add(out, ", \"manifest\": ");
        str_json(out, pipec_program_manifest(program));
        str_add(out, "}");
    }
    pipec_program_free(program);
    return fine;
}

static void print_head(const Bundling *it, Str *out) {
    const PipecBundleOptions *options = it->options;
    str_add(out, "{\"" BUNDLE_FORMAT "\": 1, \"kernel\": ");
    str_json(out,
             it->program->open_kernel != NULL ? it->program->open_kernel : it->program->kernel);
    str_add(out, ", \"machines\": [");
    for (size_t i = 0; i < options->machine_count; i++) {
        str_add(out, i > 0 ? ", " : "");
        str_json(out, options->machines[i]);
    }
    str_add(out, "],\n \"sizes\": [");
    for (size_t i = 0; i < options->size_count; i++) {
        str_add(out, i > 0 ? ", {\"name\": " : "{\"name\": ");
        str_json(out, options->sizes[i].name);
        str_printf(out, ", \"first\": %" PRId64 ", \"last\": %" PRId64 "}", options->sizes[i].first,
                   options->sizes[i].last);
    }
    str_add(out, "],\n \"candidates\": [");
}

/* The index is written last, so that a bundle that was cut off is none. */
static bool write_all(Bundling *it) {
    Str index = str_new(it->words);
    size_t number = 0;
    if (mkdir(it->options->folder, 0777) != 0 && errno != EEXIST)
        return unwritten(it->options->folder, errno, it->diags);
    print_head(it, &index);
    for (size_t p = 0; p < it->part_count; p++)
        for (size_t i = 0; i < it->parts[p].family->count; i++)
            if (it->parts[p].used[i] && !write_candidate(it, &it->parts[p], number++,
                                                         &it->parts[p].family->items[i], &index))
                return false;
    str_add(&index, "\n]}\n");
    return write_text(it->words, path_in(it->words, it->options->folder, BUNDLE_INDEX), index.text,
                      index.length, it->diags);
}

/* One part for each target of the kernel. False: the program for one is refused. */
static bool make_parts(Bundling *it) {
    PipecProgram *program = it->program;
    const Targets *targets = &program->targets;
    it->part_count = targets->count > 1 ? targets->count : 1;
    it->parts = NEW_ARRAY(it->words, Part, it->part_count);
    for (size_t i = 0; i < it->part_count; i++) {
        PipecProgram *one =
            targets->count > 1 ? targets_program(program, targets->items[i]) : program;
        if (one == NULL) arena_fail(program->arena);
        const char *fault = program_fault(it->words, one);
        if (one->manifest == NULL)
            return wrong(it, arena_printf(it->words, "for %s: %s", targets->items[i]->name,
                                          fault != NULL ? fault : "the kernel is refused"));
        it->parts[i].family = family_of(one);
        if (it->parts[i].family == NULL) arena_fail(program->arena);
    }
    return true;
}

static bool choose_parts(Bundling *it) {
    for (size_t i = 0; i < it->part_count; i++)
        if (!choose_all(it, &it->parts[i])) return false;
    return true;
}

static void bundle(void *data) {
    Bundling *it = data;
    PipecProgram *program = it->program;
    it->diags = diags_new(program->arena, program->source);
    diags_set_levels(it->diags, &program->levels);
    it->words = arena_scratch(program->arena);
    if (make_parts(it) && read_sizes(it) && choose_parts(it) && write_all(it) && it->unfit > 0) {
        Diag *diag = diag_plain(it->diags, P0937, "%zu of the sizes can run no variant", it->unfit);
        diag_note(it->diags, diag, "the first one is %s", it->first_unfit);
    }
    arena_free(it->words);
    program->published = diagnostics_publish(it->diags);
    if (it->diags->errors > 0) it->status = pipec_worse(it->status, PIPEC_UNUSABLE);
}

PIPEC_API PipecStatus pipec_program_bundle(PipecProgram *program, const PipecBundleOptions *given,
                                           size_t *candidates) {
    PipecBundleOptions options;
    Bundling it = {.program = program, .options = &options, .status = PIPEC_FINE};
    if (program->manifest == NULL || program->prog == NULL) return PIPEC_UNUSABLE;
    if (!size_read(&options, sizeof options, given) || options.folder == NULL)
        return PIPEC_UNUSABLE;
    if (!attempt(program->arena, bundle, &it)) {
        program->published = &no_memory;
        it.status = PIPEC_UNUSABLE;
    }
    if (candidates != NULL) *candidates = it.status == PIPEC_FINE ? it.count : 0;
    return it.status;
}
