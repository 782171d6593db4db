/* lib: statics that the tensors of a call decide: an extent, or the type of elements, for which the
 * caller gave no value. A program has a sibling for each other such value, compiled when it comes
 * first; a sibling chooses among variants and its other statics as any program does. */
#include "lib/tune.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---------------------------------------------------------------------------------- */

/* What the first tensor that has it tells of this static */
static int64_t value_of(const PipecProgram *program, const char *name,
                        const DeviceArgument *arguments, const bool *given) {
    for (size_t i = 0; i < program->bound.count; i++) {
        const BoundStatic *row = &program->bound.items[i];
        const DeviceArgument *argument = &arguments[row->param];
        if (strcmp(row->name, name) != 0 || (given != NULL && !given[row->param])) continue;
        if (row->axis >= 0) return argument->extents[row->axis];
        if (argument->typed > 0) return argument->typed - 1;
    }
    return UNKNOWN;
}

static const BoundStatic *row_of(const PipecProgram *program, const char *name) {
    for (size_t i = 0; i < program->bound.count; i++)
        if (strcmp(program->bound.items[i].name, name) == 0) return &program->bound.items[i];
    return NULL;
}

static const char *word_of(const PipecProgram *program, Arena *arena, const char *name,
                           int64_t value) {
    bool is_type = row_of(program, name)->axis < 0;
    return is_type ? arena_printf(arena, "%s=%s", name, element_rows[value].spelling)
                   : arena_printf(arena, "%s=%" PRId64, name, value);
}

/* False: the type is not in the set of its static */
static bool check_type(const PipecProgram *program, const char *name, int64_t value, Diags *diags) {
    const Constant *constant = program_constant(program, name);
    const BoundStatic *row = row_of(program, name);
    Str list = str_new(diags->arena);
    if (row->axis >= 0 || constant == NULL || (constant->choices.count == 0 && value < E_COUNT))
        return true;
    for (size_t i = 0; i < constant->choices.count; i++) {
        if (constant->choices.items[i] == value) return true;
        str_printf(&list, "%s%s", i > 0 ? ", " : "",
                   constant_choice_text(diags->arena, constant, constant->choices.items[i]));
    }
    const ManifestParameter *parameter = &program->manifest->parameters.items[row->param];
    Diag *diag = manifest_diag(program->manifest, diags, P0624, parameter->span,
                               "`%s` cannot have elements of %s", parameter->name,
                               value < E_COUNT ? element_rows[value].spelling : "an unknown type");
    if (list.length > 0) diag_note(diags, diag, "it may have elements of %s", list.text);
    return false;
}

/* ---- siblings -------------------------------------------------------------------------------- */

typedef struct Making {
    PipecProgram *program;
    const int64_t *values;
    Arena *words;
    PipecProgram *made;
    Sibling *sibling;
} Making;

static void make(void *data) {
    Making *it = data;
    const PipecProgram *program = it->program;
    const Siblings *all = program->siblings;
    size_t count = 0;
    const char **words = NEW_ARRAY(it->words, const char *, program->static_count + all->count + 1);
    const char **given = choice_given(it->words, program);
    for (size_t i = 0; i < program->static_count; i++) words[count++] = given[i];
    for (size_t i = 0; i < all->count; i++)
        if (it->values[i] != UNKNOWN)
            words[count++] = word_of(program, it->words, all->names[i], it->values[i]);
    it->made = program_of_words(
        program, program->open_kernel != NULL ? program->open_kernel : program->kernel, words,
        count);
}

static void allocate(void *data) {
    Making *it = data;
    const Siblings *all = it->program->siblings;
    size_t bytes = all->count * sizeof *it->values;
    it->sibling = arena_alloc(all->arena, sizeof *it->sibling + bytes);
    memcpy(it->sibling->values, it->values, bytes);
}

/* NULL: no memory */
static Sibling *new_sibling(PipecProgram *program, const int64_t *values) {
    Siblings *all = program->siblings;
    Making it = {.program = program, .values = values, .words = arena_new()};
    if (all->arena != NULL && it.words != NULL && attempt(all->arena, allocate, &it) &&
        attempt(it.words, make, &it) && it.made != NULL) {
        it.made->invariant = program->invariant;
        it.made->fixed = program->fixed;
        it.made->fixed_file = program->fixed_file;
        it.sibling->program = it.made;
        it.sibling->next = all->first;
        all->first = it.sibling;
    }
    arena_free(it.words);
    return it.made != NULL ? it.sibling : NULL;
}

static Sibling *find_sibling(PipecProgram *program, const int64_t *values) {
    Siblings *all = program->siblings;
    pthread_mutex_lock(&all->lock);
    Sibling *at = all->first;
    while (at != NULL && memcmp(at->values, values, all->count * sizeof *values) != 0)
        at = at->next;
    if (at == NULL) at = new_sibling(program, values);
    pthread_mutex_unlock(&all->lock);
    return at;
}

/* Why no variant can run with these values */
static void report(const PipecProgram *program, const Sibling *sibling, const int64_t *values,
                   Diags *diags) {
    const Siblings *all = program->siblings;
    Str text = str_new(diags->arena);
    for (size_t i = 0; i < all->count; i++)
        if (values[i] != UNKNOWN)
            str_printf(&text, "%s%s", text.length > 0 ? ", " : "",
                       word_of(program, diags->arena, all->names[i], values[i]));
    const char *kernel = program->open_kernel != NULL ? program->open_kernel : program->kernel;
    Diag *diag = diag_plain(diags, P0623, "kernel `%s` cannot run with %s", kernel, text.text);
    const char *fault = program_fault(diags->arena, sibling->program);
    if (fault != NULL) diag_note(diags, diag, "`%s`: %s", sibling->program->kernel, fault);
    if (sibling->program->faults != NULL) diag_note(diags, diag, "%s", sibling->program->faults);
}

/* True if they are those of the program itself */
static bool read_values(const PipecProgram *program, const DeviceArgument *arguments,
                        const bool *given, int64_t *values) {
    const Siblings *all = program->siblings;
    bool own = true;
    for (size_t i = 0; i < all->count; i++) {
        values[i] = value_of(program, all->names[i], arguments, given);
        if (values[i] == all->own[i]) values[i] = UNKNOWN; /* as the text says */
        own = own && values[i] == UNKNOWN;
    }
    return own;
}

PipecProgram *program_known_for(PipecProgram *program, const DeviceArgument *arguments,
                                const bool *given) {
    Siblings *all = program->siblings;
    if (all == NULL) return program;
    int64_t values[all->count];
    if (read_values(program, arguments, given, values)) return program;
    pthread_mutex_lock(&all->lock);
    Sibling *at = all->first;
    while (at != NULL && memcmp(at->values, values, sizeof values) != 0) at = at->next;
    pthread_mutex_unlock(&all->lock);
    return at != NULL && at->program->status == PIPEC_FINE ? at->program : NULL;
}

static PipecProgram *program_with(PipecProgram *program, const int64_t *values, Diags *diags) {
    const Siblings *all = program->siblings;
    for (size_t i = 0; i < all->count; i++)
        if (values[i] != UNKNOWN && !check_type(program, all->names[i], values[i], diags))
            return NULL;
    const Sibling *sibling = find_sibling(program, values);
    if (sibling == NULL) arena_fail(diags->arena);
    if (sibling->program->status == PIPEC_FINE) return sibling->program;
    report(program, sibling, values, diags);
    return NULL;
}

PipecProgram *program_for(PipecProgram *program, const DeviceArgument *arguments, const bool *given,
                          Diags *diags) {
    if (program->siblings == NULL) return program;
    int64_t values[program->siblings->count];
    bool own = read_values(program, arguments, given, values);
    return own ? program : program_with(program, values, diags);
}

/* UNKNOWN: the words do not have it; E_COUNT: it is no type */
static int64_t value_in(const PipecProgram *program, const char *name, const Words *words) {
    size_t length = strlen(name);
    int64_t value = UNKNOWN;
    for (size_t i = 0; i < words->count; i++) {
        const char *word = words->items[i];
        Element type;
        if (strncmp(word, name, length) != 0 || word[length] != '=') continue;
        if (row_of(program, name)->axis >= 0)
            value = strtoll(word + length + 1, NULL, 10);
        else
            value = element_by_name(word + length + 1, &type) ? (int64_t)type : E_COUNT;
    }
    return value;
}

PipecProgram *program_for_words(PipecProgram *program, const PipecRunOptions *options, Arena *words,
                                Diags *diags) {
    const Siblings *all = program->siblings;
    if (all == NULL) return program;
    Words list = value_words(words, options->values, options->value_count, options->numbers,
                             options->number_count);
    int64_t values[all->count];
    bool own = true;
    for (size_t i = 0; i < all->count; i++) {
        values[i] = value_in(program, all->names[i], &list);
        if (values[i] == all->own[i]) values[i] = UNKNOWN;
        own = own && values[i] == UNKNOWN;
    }
    return own ? program : program_with(program, values, diags);
}

/* ---- files of a run -------------------------------------------------------------------------- */

/* The type of the elements of a file: that of the program, or another one of the set */
static int type_in_file(const PipecProgram *program, size_t parameter, const char *descr) {
    Element own = program->manifest->parameters.items[parameter].type;
    if (npy_holds(descr, own)) return own + 1;
    for (size_t i = 0; i < program->bound.count; i++) {
        const BoundStatic *row = &program->bound.items[i];
        const Constant *constant = program_constant(program, row->name);
        if (row->param != (int)parameter || row->axis >= 0 || constant == NULL) continue;
        for (size_t k = 0; k < constant->choices.count; k++)
            if (npy_holds(descr, (Element)constant->choices.items[k]))
                return (int)constant->choices.items[k] + 1;
    }
    return 0; /* the run reports it */
}

static bool read_file(const PipecProgram *program, size_t parameter, const Argument *argument,
                      Arena *words, DeviceArgument *out) {
    int rank;
    const char *descr;
    const ManifestParameter *to = &program->manifest->parameters.items[parameter];
    if (strcmp(argument->name, to->name) != 0 || argument->kind != ARGUMENT_FILL ||
        argument->fill.kind != FILL_FILE || to->kind != PARAMETER_TENSOR ||
        !npy_peek(words, argument->fill.file, &rank, out->extents, &descr) || rank != to->rank)
        return false;
    out->typed = (uint8_t)type_in_file(program, parameter, descr);
    return true;
}

PipecProgram *program_for_files(PipecProgram *program, const PipecRunOptions *options, Arena *words,
                                Diags *diags) {
    Argument *list;
    size_t count, parameters = program->manifest->parameters.count;
    if (program->siblings == NULL ||
        !run_words(words, program, options, &list, &count, diags_new(words, program->source)))
        return program;
    DeviceArgument *arguments = NEW_ARRAY(words, DeviceArgument, parameters + 1);
    bool *given = NEW_ARRAY(words, bool, parameters + 1);
    for (size_t i = 0; i < parameters; i++)
        for (size_t k = 0; k < count && !given[i]; k++)
            given[i] = read_file(program, i, &list[k], words, &arguments[i]);
    return program_for(program, arguments, given, diags);
}

/* ---- public functions ------------------------------------------------------------------------ */

typedef struct Call {
    PipecProgram *program, *found;
    const PipecArgument *arguments;
    size_t argument_size, count;
    const bool *given;
    Arena *words;
    PipecDiagnostics *published;
    PipecStatus status;
} Call;

static void find(void *data) {
    Call *it = data;
    size_t parameters = it->program->manifest->parameters.count;
    Diags *diags = diags_new(it->words, it->program->source);
    DeviceArgument *arguments = NEW_ARRAY(it->words, DeviceArgument, parameters + 1);
    if (it->count == parameters &&
        arguments_read(it->arguments, it->argument_size, it->count, arguments))
        it->found = program_for(it->program, arguments, it->given, diags);
    else
        arguments_report(it->program->manifest, it->argument_size, it->count, diags);
    it->status = it->found != NULL ? PIPEC_FINE : PIPEC_UNUSABLE;
    it->published = diagnostics_publish(diags);
    it->published->arena = it->words;
}

#define FEW 32

/* Without an arena, whose memory costs more than the rest. False: `find` must see */
static bool find_known(Call *it) {
    DeviceArgument arguments[FEW];
    if (it->program->manifest == NULL) return false;
    if (it->program->siblings == NULL)
        it->found = it->program;
    else if (it->count <= FEW && it->count == it->program->manifest->parameters.count &&
             arguments_read(it->arguments, it->argument_size, it->count, arguments))
        it->found = program_known_for(it->program, arguments, it->given);
    return it->found != NULL;
}

PIPEC_API PipecStatus pipec_program_for(PipecProgram *program, const PipecArgument *arguments,
                                        size_t argument_size, size_t count, const bool *given,
                                        PipecProgram **found, PipecDiagnostics **diagnostics) {
    Call it = {.program = program,
               .arguments = arguments,
               .argument_size = argument_size,
               .count = count,
               .given = given};
    if (find_known(&it)) {
        *found = it.found;
        if (diagnostics != NULL) *diagnostics = NULL;
        return PIPEC_FINE;
    }
    it.words = arena_new();
    if (it.words != NULL && program->manifest == NULL) {
        it.status = program_unusable(program, it.words, &it.published);
    } else if (it.words == NULL || !attempt(it.words, find, &it)) {
        it.published = (PipecDiagnostics *)&no_memory;
        it.status = PIPEC_UNUSABLE;
    }
    *found = it.found;
    diagnostics_hand_over(it.words, it.published, diagnostics);
    return it.status;
}

PIPEC_API const char *pipec_program_decided(const PipecProgram *program, size_t index,
                                            size_t *parameter, int *axis) {
    for (size_t i = 0; program->siblings != NULL && i < program->bound.count; i++) {
        const BoundStatic *row = &program->bound.items[i];
        if (static_is_given(program, row->name) || index-- > 0) continue;
        if (parameter != NULL) *parameter = (size_t)row->param;
        if (axis != NULL) *axis = row->axis;
        return row->name;
    }
    return NULL;
}
