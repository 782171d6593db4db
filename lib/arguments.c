/* lib: arguments and numbers of a caller, without text: a launch's arguments, named numbers, and
 * the extents that follow from given tensors. */
#include "lib/family.h"

#include <stddef.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

Words value_words(Arena *arena, const char *const *values, size_t value_count,
                  const PipecValue *numbers, size_t number_count) {
    const char **words = NEW_ARRAY(arena, const char *, value_count + number_count + 1);
    for (size_t i = 0; i < value_count; i++) words[i] = values[i];
    for (size_t i = 0; i < number_count; i++)
        words[value_count + i] =
            numbers[i].is_float
                ? arena_printf(arena, "%s=%.17g", numbers[i].name, numbers[i].number)
                : arena_printf(arena, "%s=%lld", numbers[i].name, (long long)numbers[i].integer);
    return (Words){words, value_count + number_count};
}

PipecValue value_number(Arena *arena, const char *name, const char *text) {
    Argument argument;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return (PipecValue){.name = name, .integer = text[0] == 't'};
    bool fine = argument_parse(arena, arena_printf(arena, "%s=%s", name, text), &argument,
                               diags_new(arena, NULL));
    if (!fine || argument.kind != ARGUMENT_NUMBER) return (PipecValue){.name = name};
    const Numeral *value = &argument.value;
    bool is_integer = value->is_integer || value->is_above;
    return (PipecValue){name, value->integer, value->number, !is_integer};
}

size_t value_numbers(Arena *arena, const char *words, const PipecValue **numbers) {
    VEC(PipecValue) list = {0};
    for (const char *at = words; *at != 0; at += strspn(at, " ")) {
        size_t name = strcspn(at, "="), length = strcspn(at, " ");
        if (name < length)
            vec_push(arena, &list,
                     value_number(arena, arena_copy(arena, at, name),
                                  arena_copy(arena, at + name + 1, length - name - 1)));
        at += length;
    }
    *numbers = list.items;
    return list.count;
}

/* ---- arguments of a launch ------------------------------------------------------------------- */

/* of the first version of the structure */
#define ARGUMENT_LEAST 112
_Static_assert(sizeof(PipecArgument) >= ARGUMENT_LEAST, "members are never removed");

/* An argument of another version's size */
static bool argument_read(const unsigned char *from, size_t size, PipecArgument *to) {
    *to = (PipecArgument){.pointer = 0};
    memcpy(to, from, size < sizeof *to ? size : sizeof *to);
    for (size_t byte = sizeof *to; byte < size; byte++)
        if (from[byte] != 0) return false;
    return true;
}

bool arguments_read(const PipecArgument *arguments, size_t size, size_t count, DeviceArgument *to) {
    const unsigned char *from = (const unsigned char *)arguments;
    if (size < ARGUMENT_LEAST) return false;
    for (size_t i = 0; i < count; i++, from += size) {
        PipecArgument other;
        const PipecArgument *argument = (const PipecArgument *)(const void *)from;
        if (size != sizeof other) {
            if (!argument_read(from, size, &other)) return false;
            argument = &other;
        }
        to[i] = (DeviceArgument){.pointer = argument->pointer,
                                 .scalar = {argument->number, argument->integer},
                                 .strided = argument->strided};
        memcpy(to[i].extents, argument->extents, sizeof argument->extents);
        if (argument->type != NULL) {
            Element type = E_COUNT;
            (void)element_by_name(argument->type, &type);
            to[i].typed = (uint8_t)(type + 1);
        }
        if (argument->strided) memcpy(to[i].strides, argument->strides, sizeof argument->strides);
    }
    return true;
}

void arguments_report(const Manifest *manifest, size_t size, size_t count, Diags *diags) {
    if (count != manifest->parameters.count) {
        diag_plain(diags, P0910, "kernel `%s` has %zu parameters, but %zu arguments are given",
                   manifest->kernel, manifest->parameters.count, count);
        return;
    }
    Diag *diag =
        diag_plain(diags, P0917, "an argument of %zu bytes is not a `PipecArgument`, which has %zu",
                   size, sizeof(PipecArgument));
    diag_help(diags, diag, "give `sizeof(PipecArgument)` as the size of an argument");
}

bool arguments_strides(const Manifest *manifest, const PipecRunOptions *options, DeviceArgument *to,
                       Diags *diags) {
    if (options->arguments == NULL) return true;
    const unsigned char *from = (const unsigned char *)options->arguments;
    bool fine = options->argument_count == manifest->parameters.count;
    for (size_t i = 0; fine && i < manifest->parameters.count; i++) {
        DeviceArgument one;
        const void *at = from + i * options->argument_size;
        fine = arguments_read(at, options->argument_size, 1, &one);
        if (!fine || !one.strided) continue;
        to[i].strided = true;
        memcpy(to[i].strides, one.strides, sizeof one.strides);
    }
    if (!fine) arguments_report(manifest, options->argument_size, options->argument_count, diags);
    return fine;
}

/* ---- extents --------------------------------------------------------------------------------- */

typedef struct Infer {
    const PipecProgram *program;
    Arena *words; /* of the diagnostics */
    PipecArgument *arguments;
    size_t argument_size, count;
    const bool *given;
    const PipecValue *extents;
    size_t extent_count;
    PipecDiagnostics *published;
    PipecStatus status;
} Infer;

static void write_extents(const Infer *it, const DeviceArgument *from) {
    unsigned char *at = (unsigned char *)it->arguments + offsetof(PipecArgument, extents);
    for (size_t i = 0; i < it->count; i++, at += it->argument_size)
        if (!it->given[i]) memcpy(at, from[i].extents, sizeof from[i].extents);
}

/* What an inference works with */
typedef struct Room {
    DeviceArgument *arguments;
    Argument *named;
    int64_t *symbols;
    bool *known;
} Room;

static bool infer_in(const Infer *it, const Room *room, Diags *diags) {
    const Manifest *manifest = it->program->manifest;
    for (size_t i = 0; i < it->extent_count; i++)
        room->named[i] =
            (Argument){.name = it->extents[i].name, .value = {.integer = it->extents[i].integer}};
    if (!launch_infer(manifest, room->arguments, it->given, room->named, it->extent_count,
                      room->symbols, room->known, diags))
        return false;
    write_extents(it, room->arguments);
    return true;
}

/* So many parameters, symbols and named extents are inferred without an arena, whose memory costs
 * more than the inference */
#define FEW 32

/* False: there are more, or the caller is wrong, which infer_from reports */
static bool infer_few(const Infer *it) {
    const Manifest *manifest = it->program->manifest;
    DeviceArgument arguments[FEW];
    Argument named[FEW];
    int64_t symbols[FEW];
    bool known[FEW];
    return it->count <= FEW && it->count == manifest->parameters.count && it->extent_count <= FEW &&
           manifest->symbols.count <= FEW &&
           arguments_read(it->arguments, it->argument_size, it->count, arguments) &&
           infer_in(it, &(Room){arguments, named, symbols, known}, NULL);
}

static bool infer_from(const Infer *it, Diags *diags) {
    const Manifest *manifest = it->program->manifest;
    size_t symbols = manifest->symbols.count;
    Room room = {.arguments = NEW_ARRAY(it->words, DeviceArgument, it->count + 1),
                 .named = NEW_ARRAY(it->words, Argument, it->extent_count + 1),
                 .symbols = NEW_ARRAY(it->words, int64_t, symbols + 1),
                 .known = NEW_ARRAY(it->words, bool, symbols + 1)};
    if (it->count == manifest->parameters.count &&
        arguments_read(it->arguments, it->argument_size, it->count, room.arguments))
        return infer_in(it, &room, diags);
    arguments_report(manifest, it->argument_size, it->count, diags);
    return false;
}

static void infer(void *data) {
    Infer *it = data;
    Diags *diags = diags_new(it->words, it->program->source);
    it->status = infer_from(it, diags) ? PIPEC_FINE : PIPEC_UNUSABLE;
    it->published = diagnostics_publish(diags);
    it->published->arena = it->words;
}

PIPEC_API PipecStatus pipec_program_infer(const PipecProgram *program, PipecArgument *arguments,
                                          size_t argument_size, size_t count, const bool *given,
                                          const PipecValue *extents, size_t extent_count,
                                          PipecDiagnostics **diagnostics) {
    Infer it = {.program = program,
                .arguments = arguments,
                .argument_size = argument_size,
                .count = count,
                .given = given,
                .extents = extents,
                .extent_count = extent_count};
    if (program->manifest != NULL && infer_few(&it)) {
        if (diagnostics != NULL) *diagnostics = NULL;
        return PIPEC_FINE;
    }
    it.words = arena_new();
    if (it.words != NULL && program->manifest == NULL) {
        it.status = program_unusable(program, it.words, &it.published);
    } else if (it.words == NULL || !attempt(it.words, infer, &it)) {
        it.published = (PipecDiagnostics *)&no_memory;
        it.status = PIPEC_UNUSABLE;
    }
    diagnostics_hand_over(it.words, it.published, diagnostics);
    return it.status;
}

typedef struct Extents {
    const PipecProgram *program;
    Arena *arena;
    const PipecArgument *arguments; /* NULL: only names are wanted */
    size_t argument_size, count;
    PipecValue *to;
    size_t most, found;
} Extents;

/* NULL: no launch has these arguments. */
static const int64_t *values_of(const Extents *it) {
    const Manifest *manifest = it->program->manifest;
    size_t symbols = manifest->symbols.count;
    DeviceArgument *arguments = NEW_ARRAY(it->arena, DeviceArgument, it->count + 1);
    int64_t *values = NEW_ARRAY(it->arena, int64_t, symbols + 1);
    bool *given = NEW_ARRAY(it->arena, bool, it->count + 1),
         *known = NEW_ARRAY(it->arena, bool, symbols + 1);
    if (it->count != manifest->parameters.count ||
        !arguments_read(it->arguments, it->argument_size, it->count, arguments))
        return NULL;
    for (size_t i = 0; i < it->count; i++) given[i] = true;
    if (!launch_infer(manifest, arguments, given, NULL, 0, values, known, NULL)) return NULL;
    for (size_t s = 0; s < symbols; s++)
        if (manifest->symbols.items[s].is_extent && !known[s]) return NULL;
    return values;
}

static void find_extents(void *data) {
    Extents *it = data;
    const Manifest *manifest = it->program->manifest;
    const int64_t *values = it->arguments != NULL ? values_of(it) : NULL;
    if (it->arguments != NULL && values == NULL) return;
    for (size_t s = 0; s < manifest->symbols.count; s++) {
        if (!manifest->symbols.items[s].is_extent) continue;
        if (it->found < it->most)
            it->to[it->found] = (PipecValue){.name = manifest->symbols.items[s].name,
                                             .integer = values != NULL ? values[s] : 0};
        it->found++;
    }
}

PIPEC_API size_t pipec_program_extents(const PipecProgram *program, const PipecArgument *arguments,
                                       size_t argument_size, size_t count, PipecValue *extents,
                                       size_t most) {
    Extents it = {.program = program,
                  .arena = program->manifest != NULL ? arena_new() : NULL,
                  .arguments = arguments,
                  .argument_size = argument_size,
                  .count = count,
                  .to = extents,
                  .most = most};
    if (it.arena == NULL || !attempt(it.arena, find_extents, &it)) it.found = 0;
    arena_free(it.arena);
    return it.found;
}

/* ---- arguments without data ------------------------------------------------------------------ */

/* Addresses that differ, are aligned and so far apart that no tensors meet */
#define TENSOR_ROOM (UINT64_C(1) << 56)

bool family_arguments(const Manifest *manifest, const int64_t *symbols, DeviceArgument *arguments) {
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &manifest->parameters.items[i];
        DeviceArgument *argument = &arguments[i];
        *argument = (DeviceArgument){.pointer = (i + 1) % 255 * TENSOR_ROOM};
        if (parameter->kind == PARAMETER_SCALAR && parameter->symbol >= 0)
            argument->scalar = scalar_of_symbol(parameter->type, symbols[parameter->symbol]);
        for (int axis = 0; parameter->kind == PARAMETER_TENSOR && axis < parameter->rank; axis++)
            if (formula_eval(&parameter->extents[axis], symbols, &argument->extents[axis]) !=
                FORMULA_FINE)
                return false;
    }
    return true;
}
