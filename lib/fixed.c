/* lib: the file of fixed choices. JSON, one choice per line:
 *
 *   {"pipec choices": 1, "hash": "..", "choices": [
 *   {"kernel": "gemm:wide", "source": "..", "given": "", "device": "h200",
 *    "extents": "M=4096", "values": "BM=128", "seconds": 1e-4, "near": false}
 *   ]}
 *
 * The hash is that of all lines after the first, so that a changed file is found. The file decides
 * what runs: unlike that of tuning, one that is damaged or stale is an error. */
#include "lib/fixed.h"

#include "lib/tune.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define FORMAT "pipec choices"

static const char *hash_text(Arena *arena, uint64_t hash) {
    return arena_printf(arena, "%016" PRIx64, hash);
}

/* NULL: it was read; otherwise why it was not */
static const char *read_file(Arena *arena, const char *file, Choices *out) {
    const char *why;
    ChoicesHash hash;
    Found found = choices_load(arena, file, FORMAT, out, &hash, &why);
    if (found == FOUND_NOTHING) return "there is no such file";
    if (found == FOUND_UNREADABLE) return why;
    if (hash.said == NULL || strcmp(hash.said, hash_text(arena, hash.actual)) != 0)
        return "it was changed after `pipec choose --save` has written it";
    return NULL;
}

static bool unreadable(const char *file, const char *why, Diags *diags) {
    Diag *diag = diag_plain(diags, P0931, "cannot use the choices in `%s`: %s", file, why);
    diag_help(diags, diag, "`pipec choose FILE M=.. --save CHOICES` writes such a file");
    return false;
}

/* "gemm" of "gemm:wide" */
static bool is_same_kernel(const char *a, const char *b) {
    size_t length = strcspn(a, ":");
    return length == strcspn(b, ":") && strncmp(a, b, length) == 0;
}

/* A choice of the kernel that was made for another text */
static const Choice *find_stale(const Choices *choices, const char *kernel, const char *source) {
    for (size_t i = 0; i < choices->count; i++)
        if (is_same_kernel(choices->items[i].kernel, kernel) &&
            strcmp(choices->items[i].source, source) != 0)
            return &choices->items[i];
    return NULL;
}

static bool stale(const char *file, const Choice *choice, Diags *diags) {
    Diag *diag =
        diag_plain(diags, P0932,
                   "the choice of `%s` for %s in `%s` is of another text of the kernel, or "
                   "of another version of pipec",
                   choice->kernel, choice->extents[0] != 0 ? choice->extents : "all sizes", file);
    diag_help(diags, diag,
              "remove the file, and save the choices again with `pipec choose --save`");
    return false;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* True if some choice can be of the program. Tensors may decide more statics than were given, and a
 * device the target. */
static bool has_choice(Arena *arena, const PipecProgram *program, const Choices *choices,
                       const Choice *like) {
    if (program->bound.count == 0 && program->targets.count < 2)
        return kept_of(arena, choices, like, NULL).count > 0;
    for (size_t i = 0; i < choices->count; i++)
        if (strcmp(choices->items[i].source, like->source) == 0) return true;
    return false;
}

void fixed_read(PipecProgram *program, const char *file, Diags *diags) {
    Arena *arena = program->arena;
    Choices *choices = NEW(arena, Choices);
    const char *why = read_file(arena, file, choices);
    if (program->untuned) why = "the program is `untuned`, so that nothing is chosen";
    if (why != NULL) {
        unreadable(file, why, diags);
        return;
    }
    Choice like = choice_of_text(arena, program);
    const Choice *old = find_stale(choices, program->kernel, like.source);
    if (old != NULL) {
        stale(file, old, diags);
        return;
    }
    if (!has_choice(arena, program, choices, &like)) {
        const char *name = program->open_kernel != NULL ? program->open_kernel : program->kernel;
        unreadable(file,
                   arena_printf(arena, "it has none of kernel `%s`%s%s", name,
                                like.given[0] != 0 ? " with " : "", like.given),
                   diags);
        return;
    }
    program->fixed = choices;
    program->fixed_file = arena_copy(arena, file, strlen(file));
}

Kept fixed_of(Arena *arena, const PipecProgram *program, const Choice *like) {
    return program->fixed != NULL ? kept_of(arena, program->fixed, like, NULL) : (Kept){0};
}

void fixed_report(const PipecProgram *program, const Choice *fixed, const char *why, Diags *diags) {
    Diag *diag = diag_plain(diags, P0933, "the fixed choice `%s`%s%s for %s cannot run",
                            fixed->kernel, fixed->values[0] != 0 ? " " : "", fixed->values,
                            fixed->extents[0] != 0 ? fixed->extents : "all sizes");
    diag_note(diags, diag, "%s", why);
    diag_note(diags, diag, "it is in `%s`", program->fixed_file);
    diag_help(diags, diag, "choose again for these sizes with `pipec choose --save %s`",
              program->fixed_file);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* One choice for a text, given statics and extents, whatever the machine */
static bool is_same_key(const Choice *a, const Choice *b) {
    return is_same_kernel(a->kernel, b->kernel) && strcmp(a->source, b->source) == 0 &&
           strcmp(a->given, b->given) == 0 && strcmp(a->extents, b->extents) == 0;
}

static void print(Arena *arena, const Choices *choices, Str *out) {
    Str rest = str_new(arena);
    choices_print(choices, &rest);
    str_add(&rest, "]}\n");
    str_printf(out, "{\"" FORMAT "\": 1, \"hash\": \"%s\", \"choices\": [\n%s",
               hash_text(arena, choices_hash(rest.text, rest.length)), rest.text);
}

/* Called while the folder is locked */
static bool add_choice(Arena *arena, const char *file, const Choice *choice, Diags *diags) {
    Choices old = {0}, all = {0};
    const char *why = cache_is_there(file) ? read_file(arena, file, &old) : NULL;
    if (why != NULL) return unreadable(file, why, diags);
    const Choice *other = find_stale(&old, choice->kernel, choice->source);
    if (other != NULL) return stale(file, other, diags);
    for (size_t i = 0; i < old.count; i++)
        if (!is_same_key(&old.items[i], choice)) vec_push(arena, &all, old.items[i]);
    vec_push(arena, &all, *choice);
    Str text = str_new(arena);
    print(arena, &all, &text);
    int error = file_replace(arena, file_resolved(arena, file), &text);
    if (error == 0) return true;
    diag_plain(diags, P0931, "cannot write the choices to `%s`: %s", file, strerror(error));
    return false;
}

bool fixed_save(Arena *arena, const char *file, const Choice *choice, Diags *diags) {
    int lock = folder_lock(arena, file_resolved(arena, file));
    bool saved = add_choice(arena, file, choice, diags);
    if (lock >= 0) close(lock);
    return saved;
}
