/* lib: finds the variant for the data of a run, and the choice of tuning for a program: its key,
 * and the look-up before a run. */
#include "lib/tune.h"

#include "runtime/runtime.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Hash of the file's tokens, which ignores comments and layout, and of pipec's version */
static const char *source_hash(Arena *arena, const PipecProgram *program) {
    Str text = str_new(arena);
    str_add(&text, "");
    ast_print(program->ast, &text);
    uint64_t version = fnv1a(FNV_START, PIPEC_VERSION, strlen(PIPEC_VERSION));
    return arena_printf(arena, "%016" PRIx64, fnv1a(version, text.text, text.length));
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const StaticValue *)a)->name, ((const StaticValue *)b)->name);
}

/* "BK=32", one per static that was given, sorted by name */
static const char **given_words(Arena *arena, const PipecProgram *program) {
    StaticValue *sorted = NEW_ARRAY(arena, StaticValue, program->static_count + 1);
    const char **words = NEW_ARRAY(arena, const char *, program->static_count + 1);
    for (size_t i = 0; i < program->static_count; i++) sorted[i] = program->statics[i];
    qsort(sorted, program->static_count, sizeof *sorted, by_name);
    for (size_t i = 0; i < program->static_count; i++)
        words[i] = sorted[i].is_type ? arena_printf(arena, "%s=%s", sorted[i].name,
                                                    element_rows[sorted[i].integer].spelling)
                   : sorted[i].is_integer
                       ? arena_printf(arena, "%s=%" PRId64, sorted[i].name, sorted[i].integer)
                       : arena_printf(arena, "%s=%.17g", sorted[i].name, sorted[i].number);
    return words;
}

static const char *given_text(Arena *arena, const PipecProgram *program) {
    Str text = str_new(arena);
    const char **words = given_words(arena, program);
    str_add(&text, "");
    for (size_t i = 0; i < program->static_count; i++)
        str_printf(&text, "%s%s", i > 0 ? " " : "", words[i]);
    return text.text;
}

static const char *classes_text(Arena *arena, const Manifest *manifest, const int64_t *symbols) {
    Str text = str_new(arena);
    str_add(&text, "");
    for (size_t i = 0; i < manifest->symbols.count; i++)
        if (manifest->symbols.items[i].is_extent)
            str_printf(&text, "%s%s=%s", text.length > 0 ? " " : "",
                       manifest->symbols.items[i].name, extent_class(arena, symbols[i]));
    return text.text;
}

Choice choice_key(Arena *arena, const PipecProgram *program, const Manifest *manifest,
                  const int64_t *symbols, const char *device) {
    return (Choice){.kernel = program->kernel,
                    .source = source_hash(arena, program),
                    .given = given_text(arena, program),
                    .device = device,
                    .extents = classes_text(arena, manifest, symbols)};
}

/* ---- variants -------------------------------------------------------------------------------- */

typedef struct Find {
    PipecProgram *program;
    const PipecRunOptions *options;
    Diags *diags;
    PipecProgram *found;
} Find;

/* The same text and options, with `words` for the statics */
static PipecProgram *compile_again(PipecProgram *program, const char *kernel, const char **words,
                                   size_t count) {
    PipecOptions options = {.size = sizeof options,
                            .name = program->source->name,
                            .kernel = kernel,
                            .values = words,
                            .value_count = count,
                            .denied = program->denied,
                            .denied_count = program->denied_count,
                            .watchdog = program->manifest->watchdog};
    return pipec_compile(program->source->text, program->source->length, &options);
}

/* True if the data meet the launch preconditions of the program; otherwise reports which not */
static bool can_run(const PipecProgram *program, const PipecRunOptions *options, Arena *arena,
                    Diags *diags) {
    Argument *given;
    size_t count;
    int64_t tiles, *symbols = NEW_ARRAY(arena, int64_t, program->manifest->symbols.count + 1);
    return run_words(arena, program, options, &given, &count, diags) &&
           reference_symbols(arena, program->prog, program->manifest, given, count, symbols,
                             diags) &&
           launch_check(program->manifest, symbols, &tiles, diags);
}

/* Only preconditions exclude a variant: other errors are those of the data. */
static bool is_excluded(const Diags *diags) {
    for (size_t i = 0; i < diags->items.count; i++)
        if (diags->items.items[i]->code != P0608) return false;
    return diags->items.count > 0;
}

static void note_reason(Find *it, Diag *diag, const char *kernel, const char *why) {
    diag_note(it->diags, diag, "`%s`: %s", kernel, why);
}

static bool has_statics(const PipecProgram *program, const char *kernel) {
    for (size_t i = 0; i < program->static_count; i++)
        if (!check_is_static(program->ast, kernel, program->statics[i].name)) return false;
    return true;
}

static void find_variant(void *data) {
    Find *it = data;
    PipecProgram *program = it->program;
    Arena *arena = program->arena;
    Diags *own = diags_new(arena, program->source);
    it->diags = diags_new(arena, program->source);
    if (can_run(program, it->options, arena, own) || !is_excluded(own)) return;
    Diag *none = diag_plain(it->diags, P0623, "no variant of kernel `%s` can run on these data",
                            program->open_kernel);
    note_reason(it, none, program->kernel, own->items.items[0]->message);
    const char **words = given_words(arena, program);
    for (size_t i = 0; i < program->kernel_count; i++) {
        const char *kernel = program->kernels[i];
        if (!check_is_named(kernel, program->open_kernel) || strcmp(kernel, program->kernel) == 0 ||
            !has_statics(program, kernel))
            continue;
        PipecProgram *other = compile_again(program, kernel, words, program->static_count);
        if (other == NULL) return;
        Diags *why = diags_new(arena, program->source);
        it->found = other;
        if (other->manifest == NULL || can_run(other, it->options, arena, why) || !is_excluded(why))
            return;
        note_reason(it, none, kernel, why->items.items[0]->message);
        it->found = NULL;
        pipec_program_free(other);
    }
    program->published = diagnostics_publish(it->diags);
    program->status = pipec_worse(program->status, PIPEC_UNUSABLE);
}

PIPEC_API PipecProgram *pipec_program_variant(PipecProgram *program,
                                              const PipecRunOptions *options) {
    PipecRunOptions known;
    Find it = {.program = program, .options = &known};
    if (program->manifest == NULL || program->open_kernel == NULL) return NULL;
    if (!size_read(&known, sizeof known, options)) return NULL; /* pipec_run_new reports it */
    if (!attempt(program->arena, find_variant, &it)) program->published = &no_memory;
    return it.found;
}

/* ---- the look-up ----------------------------------------------------------------------------- */

typedef struct LookUp {
    PipecProgram *program;
    const PipecRunOptions *given; /* the caller's; `options`: the members that are known */
    const PipecRunOptions *options;
    int device;
    PipecChoice choice;
    PipecProgram *tuned;
} LookUp;

static bool may_be_tuned(const PipecProgram *program) {
    for (size_t i = 0; i < program->prog->constants.count; i++) {
        const Constant *constant = &program->prog->constants.items[i];
        bool tuned = constant->choices.count > 0 && !constant->is_type;
        if (tuned && !static_is_given(program, constant->name)) return true;
    }
    return false;
}

static PipecProgram *compile(PipecProgram *program, const Choice *choice) {
    Arena *arena = program->arena;
    const char **given = given_words(arena, program);
    VEC(const char *) words = {0};
    for (size_t i = 0; i < program->static_count; i++) vec_push(arena, &words, given[i]);
    for (const char *at = choice->values; *at != 0; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        vec_push(arena, &words, arena_copy(arena, at, length));
        at += length;
    }
    return compile_again(program, program->kernel, words.items, words.count);
}

/* True if "T=96" is in the set of the static `T`. The choices come from a file and are not
 * trusted. */
static bool is_choice(const PipecProgram *program, const char *word) {
    size_t length = strcspn(word, "=");
    char *end;
    long long value = word[length] == '=' ? strtoll(word + length + 1, &end, 10) : 0;
    if (word[length] != '=' || end == word + length + 1 || (*end != ' ' && *end != 0)) return false;
    for (size_t i = 0; i < program->prog->constants.count; i++) {
        const Constant *constant = &program->prog->constants.items[i];
        if (strlen(constant->name) != length || memcmp(constant->name, word, length) != 0) continue;
        for (size_t k = 0; k < constant->choices.count; k++)
            if (constant->choices.items[k] == value)
                return !static_is_given(program, constant->name);
    }
    return false;
}

/* The choice, or NULL with a warning if one of its values is not in the set */
static const Choice *within_sets(const LookUp *it, const Choice *choice, const char *file,
                                 Diags *diags) {
    for (const char *at = choice->values; *at != 0; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (!is_choice(it->program, at)) {
            Diag *diag = diag_plain(
                diags, P0911, "the tuned choice `%.*s` in `%s` is not a choice of kernel `%s`",
                (int)length, at, file, it->program->kernel);
            diag_note(diags, diag, "the run uses the values of the source file");
            return NULL;
        }
        at += length;
    }
    return choice;
}

/* Checks the preconditions of the tuned program, which may differ from those of the requested
 * one. */
static bool suits(const PipecProgram *tuned, const int64_t *symbols, Arena *arena) {
    int64_t tiles;
    return tuned != NULL && tuned->manifest != NULL &&
           launch_check(tuned->manifest, symbols, &tiles, diags_new(arena, tuned->source));
}

/* Finds the choice for these symbols. Asks for the device only if there are candidates, because
 * its driver starts slowly. */
static const Choice *find(LookUp *it, const int64_t *symbols) {
    PipecProgram *program = it->program;
    Arena *arena = program->arena;
    const Manifest *manifest = program->manifest;
    const char *why, *file = cache_file(arena, &why);
    if (file == NULL || !cache_is_there(file)) return NULL;
    Diags *diags = diags_new(arena, program->source);
    Choice key = choice_key(arena, program, manifest, symbols, NULL);
    const Choice *choice = cache_find(arena, file, &key, diags);
    if (choice == NULL && diags->items.count == 0) return NULL;
    key.device = runtime_find(arena, it->device - 1, manifest->target, manifest->ptx_major,
                              manifest->ptx_minor);
    if (key.device == NULL) return NULL;
    if (choice != NULL) choice = cache_find(arena, file, &key, diags_new(arena, program->source));
    if (choice != NULL) choice = within_sets(it, choice, file, diags);
    if (diags->items.count > 0) program->published = diagnostics_publish(diags);
    return choice;
}

static void look_up(void *data) {
    LookUp *it = data;
    PipecProgram *program = it->program;
    Arena *arena = program->arena;
    Argument *given;
    size_t count;
    /* the run that follows reports wrong words */
    Diags *silent = diags_new(arena, program->source);
    int64_t *symbols = NEW_ARRAY(arena, int64_t, program->manifest->symbols.count + 1);
    if (!may_be_tuned(program) || !run_words(arena, program, it->options, &given, &count, silent) ||
        !reference_symbols(arena, program->prog, program->manifest, given, count, symbols, silent))
        return;
    const Choice *choice = find(it, symbols);
    if (choice == NULL) return;
    it->choice = (PipecChoice){
        .values = choice->values, .extents = choice->extents, .device = choice->device};
    it->choice.number_count = value_numbers(arena, choice->values, &it->choice.numbers);
    it->tuned = compile(program, choice);
    if (suits(it->tuned, symbols, arena)) return;
    pipec_program_free(it->tuned);
    it->tuned = NULL;
}

static void refuse_options(void *data) {
    const LookUp *it = data;
    Diags *diags = diags_new(it->program->arena, it->program->source);
    size_report(diags, "PipecRunOptions", sizeof *it->options, it->given);
    it->program->published = diagnostics_publish(diags);
}

PIPEC_API PipecProgram *pipec_program_tuned(PipecProgram *program, const PipecRunOptions *options,
                                            int device, PipecChoice *choice) {
    PipecRunOptions known;
    LookUp it = {.program = program, .given = options, .options = &known, .device = device};
    if (program->manifest == NULL || program->prog == NULL) return NULL;
    bool sized = size_read(&known, sizeof known, options);
    program->published = &no_diagnostics;
    if (!attempt(program->arena, sized ? look_up : refuse_options, &it))
        program->published = &no_memory;
    if (choice != NULL) size_write(choice, &it.choice, sizeof it.choice);
    return it.tuned;
}
