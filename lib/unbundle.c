/* lib: a program from a bundle. Its family is what the bundle holds: launches choose among it by
 * the manifests, as they would by the source. */
#include "lib/bundle.h"
#include "lib/targets.h"

#include "launch/pack.h"
#include "util/json.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MOST (256 << 20) /* bytes */

typedef struct Unbundling {
    PipecProgram *program; /* the first candidate; before it is known, one for errors */
    const char *folder;
    const char *target; /* of the candidates that are taken; NULL: that of the first */
    const PipecOptions *options;
    Arena *words;
    const JsonValue *index;
    const char *why; /* it is refused */
    PipecProgram *made;
} Unbundling;

/* NULL: *why */
static char *read_file(Arena *arena, const char *path, size_t *length, const char **why) {
    struct stat about;
    int from = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    *why = from < 0 ? arena_printf(arena, "`%s`: %s", path, strerror(errno))
                    : arena_printf(arena, "`%s` is no file, or too large", path);
    if (from < 0) return NULL;
    char *text = NULL;
    size_t used = 0;
    if (fstat(from, &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= FILE_MOST) {
        size_t size = (size_t)about.st_size;
        text = arena_alloc(arena, size + 1);
        for (ssize_t got = 1; got > 0 && used<size; used += got> 0 ? (size_t)got : 0)
            got = read(from, text + used, size - used);
        if (used < size) text = NULL;
    }
    close(from);
    *length = used;
    return text;
}

static const char *text_in(const JsonValue *row, const char *name) {
    const JsonValue *value = json_field(row, name);
    return value != NULL && value->kind == JSON_TEXT ? value->text : NULL;
}

static bool number_in(const JsonValue *row, const char *name, int64_t *out) {
    const JsonValue *value = json_field(row, name);
    if (value == NULL || value->kind != JSON_NUMBER || !value->is_integer) return false;
    *out = value->integer;
    return true;
}

static const JsonValue *list_in(const JsonValue *row, const char *name) {
    const JsonValue *value = json_field(row, name);
    return value != NULL && value->kind == JSON_LIST ? value->first : NULL;
}

/* ---- the index ------------------------------------------------------------------------------- */

static bool read_index(Unbundling *it) {
    size_t length;
    const char *path = arena_printf(it->words, "%s/" BUNDLE_INDEX, it->folder), *why;
    const char *text = read_file(it->words, path, &length, &it->why);
    if (text == NULL) return false;
    it->index = json_read(it->words, text, length, &why);
    const JsonValue *format = json_field(it->index, BUNDLE_FORMAT);
    it->why = arena_printf(it->words, "`%s` is not the index of a bundle of this version", path);
    return format != NULL && format->number == 1 && list_in(it->index, "candidates") != NULL;
}

/* A name of a file in the folder, not a path */
static bool is_plain(const char *name) {
    return name != NULL && name[0] != 0 && name[0] != '.' && strchr(name, '/') == NULL;
}

/* In the arena; false: it->why */
static bool read_piece(Unbundling *it, Arena *arena, const JsonValue *row, BundlePiece *out) {
    const char *manifest = text_in(row, "manifest"), *name = text_in(row, "image");
    it->why = "a candidate lacks its manifest or its image";
    if (manifest == NULL || !is_plain(name)) return false;
    out->manifest = arena_copy(arena, manifest, strlen(manifest));
    out->image = read_file(arena, arena_printf(it->words, "%s/%s", it->folder, name),
                           &out->image_length, &it->why);
    return out->image != NULL;
}

static PipecProgram *program_of(const BundlePiece *piece, const PipecOptions *options) {
    return pipec_program_from(piece->manifest, strlen(piece->manifest), piece->image,
                              piece->image_length, options);
}

PipecProgram *bundle_program(const Bundle *bundle, size_t index) {
    return program_of(&bundle->pieces[index], NULL);
}

/* Checks the piece as a program; false: it->why */
static bool add_candidate(Unbundling *it, Arena *arena, const JsonValue *row,
                          const BundlePiece *piece, Candidate *out) {
    const char *kernel = text_in(row, "kernel"), *values = text_in(row, "values");
    it->why = "a candidate lacks its name";
    if (kernel == NULL || values == NULL) return false;
    it->made = program_of(piece, NULL);
    if (it->made == NULL) arena_fail(arena);
    const char *fault = program_fault(it->words, it->made);
    it->why = arena_printf(it->words, "`%s %s`: %s", kernel, values, fault != NULL ? fault : "");
    if (it->made->manifest == NULL) return false;
    *out = (Candidate){.kernel = arena_copy(arena, kernel, strlen(kernel)),
                       .values = arena_copy(arena, values, strlen(values)),
                       .manifest = manifest_packed(arena, it->made->manifest)};
    pipec_program_free(it->made);
    it->made = NULL;
    return true;
}

/* Whether the candidate is for the target that is taken. Notes its target. */
static bool is_taken(Unbundling *it, const Candidate *candidate) {
    const Target *target = target_by_name(candidate->manifest->target);
    Targets *all = &it->program->targets;
    if (target != NULL && !targets_has(all, target)) vec_push(it->program->arena, all, target);
    return strcmp(candidate->manifest->target, it->program->manifest->target) == 0;
}

static size_t count_list(const JsonValue *at) {
    size_t count = 0;
    for (; at != NULL; at = at->next) count++;
    return count;
}

static bool read_sizes(Unbundling *it, Bundle *bundle) {
    Arena *arena = it->program->arena;
    const JsonValue *row = list_in(it->index, "sizes");
    bundle->sizes = NEW_ARRAY(arena, PipecSizes, count_list(row) + 1);
    it->why = "its sizes cannot be read";
    for (; row != NULL; row = row->next) {
        PipecSizes *size = &bundle->sizes[bundle->size_count++];
        const char *name = text_in(row, "name");
        if (name == NULL || !number_in(row, "first", &size->first) ||
            !number_in(row, "last", &size->last))
            return false;
        size->name = arena_copy(arena, name, strlen(name));
    }
    return true;
}

/* The bundle and its family, in the arena of the program */
static bool attach(Unbundling *it) {
    Arena *arena = it->program->arena;
    const JsonValue *row = list_in(it->index, "candidates");
    size_t count = count_list(row);
    Bundle *bundle = NEW(arena, Bundle);
    Family *family = NEW(arena, Family);
    bundle->folder = arena_copy(arena, it->folder, strlen(it->folder));
    bundle->pieces = NEW_ARRAY(arena, BundlePiece, count + 1);
    *family = (Family){.arena = arena,
                       .program = it->program,
                       .items = NEW_ARRAY(arena, Candidate, count + 1),
                       .key = {.source = "", .given = ""}};
    for (; row != NULL; row = row->next) {
        BundlePiece *piece = &bundle->pieces[family->count];
        Candidate *candidate = &family->items[family->count];
        if (!read_piece(it, arena, row, piece) || !add_candidate(it, arena, row, piece, candidate))
            return false;
        family->count += is_taken(it, candidate);
    }
    if (!read_sizes(it, bundle)) return false;
    family_finish(family);
    PipecOptions options;
    if (size_read(&options, sizeof options, it->options)) {
        it->program->loaded_most = options.loaded_most;
        it->program->patience = options.patience;
    }
    it->program->bundle = bundle;
    it->program->family = family;
    return true;
}

/* ---- the program ----------------------------------------------------------------------------- */

static void refuse(Unbundling *it) {
    PipecProgram *program = it->program;
    if (program->diags == NULL) {
        program->source = source_new(program->arena, it->folder, "", 0);
        program->diags = diags_new(program->arena, program->source);
    }
    diag_plain(program->diags, P0936, "cannot use the bundle `%s`: %s", it->folder, it->why);
    program->manifest = NULL;
    program->ptx = str_new(program->arena);
    program_finish(program);
}

/* The first candidate, or the first for the target, becomes it->made; false: it->why */
static bool make_first(Unbundling *it) {
    BundlePiece piece;
    const JsonValue *row = list_in(it->index, "candidates");
    for (; row != NULL && read_piece(it, it->program->arena, row, &piece); row = row->next) {
        it->made = program_of(&piece, it->options);
        if (it->made == NULL) arena_fail(it->program->arena);
        const Manifest *manifest = it->made->manifest;
        if (manifest != NULL && (it->target == NULL || strcmp(manifest->target, it->target) == 0))
            return true;
        const char *fault = program_fault(it->words, it->made);
        it->why = manifest != NULL ? arena_printf(it->words, "it has none for %s", it->target)
                  : fault != NULL  ? fault
                                   : "its first candidate cannot be read";
        pipec_program_free(it->made);
        it->made = NULL;
        if (manifest == NULL) return false;
    }
    return false;
}

/* The program is that of the first candidate. */
static void begin(void *data) {
    Unbundling *it = data;
    if (!read_index(it) || !make_first(it)) refuse(it);
}

static void finish(void *data) {
    Unbundling *it = data;
    if (it->program->manifest != NULL && !attach(it)) refuse(it);
    if (it->target != NULL) it->program->targets.count = 0; /* it is chosen */
}

static PipecProgram *unbundle(const char *folder, const char *target, const PipecOptions *options) {
    PipecProgram *start = program_new();
    Unbundling it = {.program = start,
                     .folder = folder,
                     .target = target,
                     .options = options,
                     .words = arena_new()};
    bool fine = start != NULL && it.words != NULL && attempt(start->arena, begin, &it);
    if (fine && it.made != NULL) {
        pipec_program_free(start);
        it.program = it.made;
        it.made = NULL;
        fine = attempt(it.program->arena, finish, &it);
    }
    pipec_program_free(it.made);
    arena_free(it.words);
    if (fine) return it.program;
    pipec_program_free(it.program);
    return NULL;
}

PIPEC_API PipecProgram *pipec_program_from_bundle(const char *folder, const PipecOptions *given) {
    PipecOptions options;
    bool read = size_read(&options, sizeof options, given);
    return unbundle(folder, read ? options.target : NULL, given);
}

PipecProgram *bundle_for(const PipecProgram *program, const char *target) {
    PipecOptions options = {.size = sizeof options,
                            .name = program->source->name,
                            .denied = program->denied,
                            .denied_count = program->denied_count,
                            .loaded_most = program->loaded_most,
                            .patience = program->patience};
    return unbundle(program->bundle->folder, target, &options);
}

bool bundle_lacks(const Bundle *bundle, const Manifest *manifest, const int64_t *symbols) {
    for (size_t i = 0; i < manifest->symbols.count; i++) {
        bool named = false, held = false;
        for (size_t k = 0; k < bundle->size_count; k++) {
            const PipecSizes *size = &bundle->sizes[k];
            if (strcmp(size->name, manifest->symbols.items[i].name) != 0) continue;
            named = true;
            held = held || (size->first <= symbols[i] && symbols[i] <= size->last);
        }
        if (named && !held) return true;
    }
    return false;
}
