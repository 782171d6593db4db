/* lib: the candidates of a text, kept in the cache for the next process: what a choice reads of
 * their manifests. The key is all that they depend on, with the sources of pipec. */
#include "lib/family.h"
#include "lib/store.h"
#include "lib/tune.h"

#include "launch/pack.h"

#include <string.h>

/* Pieces of an entry; those before KEY_COUNT are its key */
enum {
    KIND,
    STAMP,
    KERNEL,
    VARIANTS,
    STATICS,
    DENIED,
    ACCEPTED,
    WATCHDOG,
    TARGET,
    TEXT,
    FILES,
    KEY_COUNT,
    ITEMS = KEY_COUNT,
    COUNT
};
#define KIND_FAMILY "family 4"

static Piece words_piece(Arena *arena, const char *const *words, size_t count) {
    return piece_text(statics_text(arena, words, count));
}

/* Where each file of the text ends */
static const char *files_text(Arena *arena, const Source *source) {
    Str text = str_new(arena);
    str_add(&text, "");
    for (uint32_t i = 0; i < source->file_count; i++)
        str_printf(&text, "%s%u", i > 0 ? " " : "", (unsigned)source->files[i].hi);
    return text.text;
}

/* Its own, and whether the caller gave it */
static const char *target_text(Arena *arena, const PipecProgram *program) {
    return arena_printf(arena, "%s%s", program->prog != NULL ? program->prog->target->name : "",
                        program->target != NULL ? " given" : "");
}

static void set_key(Arena *arena, const PipecProgram *program, Piece *pieces) {
    pieces[KIND] = piece_text(KIND_FAMILY);
    pieces[STAMP] = piece_text(pipec_stamp);
    pieces[KERNEL] = piece_text(program->kernel);
    pieces[VARIANTS] = piece_text(program->open_kernel != NULL ? program->open_kernel : "");
    pieces[STATICS] = words_piece(arena, choice_given(arena, program), program->static_count);
    pieces[DENIED] = words_piece(arena, program->denied, program->denied_count);
    pieces[ACCEPTED] = words_piece(arena, program->accepted, program->accepted_count);
    pieces[WATCHDOG] = piece_text(program->watchdog ? "watchdog" : "");
    pieces[TARGET] = piece_text(target_text(arena, program));
    pieces[TEXT] = (Piece){program->source->text, program->source->length};
    pieces[FILES] = piece_text(files_text(arena, program->source));
}

/* ---- candidates ------------------------------------------------------------------------------ */

static void pack_word(Pack *pack, const char **word) { PACK_TEXT(pack, *word); }

static void pack_candidate(Pack *pack, Candidate *candidate) {
    VEC(const char *) words = {candidate->words, candidate->word_count, 0};
    PACK_TEXT(pack, candidate->kernel);
    PACK_TEXT(pack, candidate->values);
    PACK_ROWS(pack, &words, pack_word);
    candidate->words = words.items;
    candidate->word_count = words.count;
    PACK_TEXT(pack, candidate->why);
    candidate->unproved = pack_number(pack, candidate->unproved) != 0;
    Manifest manifest = {0}, *read = NULL;
    if (candidate->manifest != NULL) manifest = *candidate->manifest;
    bool has = pack_number(pack, candidate->manifest != NULL) != 0;
    if (!has) return;
    pack_manifest(pack, &manifest);
    if (pack->out != NULL) return;
    read = NEW(pack->arena, Manifest);
    *read = manifest;
    candidate->manifest = read;
}

static Piece items_piece(Arena *arena, const Family *family) {
    Str out = str_new(arena);
    Pack pack = {.arena = arena, .out = &out};
    VEC(Candidate) items = {family->items, family->count, 0};
    const char *beyond = family->beyond, *fixed = family->fixed;
    PACK_TEXT(&pack, beyond);
    PACK_TEXT(&pack, fixed);
    PACK_ROWS(&pack, &items, pack_candidate);
    return (Piece){out.text, out.length};
}

/* The first candidate is the program itself, which is compiled: its bytes must be the same. */
static bool is_own(Arena *arena, const Candidate *first, const Manifest *own) {
    if (first->manifest == NULL || own == NULL) return first->manifest == NULL && own == NULL;
    Str read = str_new(arena), made = str_new(arena);
    Manifest kept = *first->manifest, compiled = *own;
    Pack a = {.arena = arena, .out = &read}, b = {.arena = arena, .out = &made};
    pack_manifest(&a, &kept);
    pack_manifest(&b, &compiled);
    return read.length == made.length && memcmp(read.text, made.text, read.length) == 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

bool family_recall(Family *family) {
    Arena *arena = family->arena;
    Piece pieces[COUNT];
    Store store;
    StoreFound found;
    const char *why;
    VEC(Candidate) items = {0};
    if (!store_open(arena, &store, &why)) return false;
    set_key(arena, family->program, pieces);
    if (!store_find(arena, &store, pieces, KEY_COUNT, COUNT, &found)) return false;
    const char *bytes = pieces[ITEMS].bytes;
    Pack pack = {.arena = arena, .at = bytes, .end = bytes + pieces[ITEMS].length};
    PACK_TEXT(&pack, family->beyond);
    PACK_TEXT(&pack, family->fixed);
    PACK_ROWS(&pack, &items, pack_candidate);
    if (pack.damaged || items.count == 0 ||
        !is_own(arena, &items.items[0], family->program->manifest))
        return false;
    family->items = items.items;
    family->count = items.count;
    return true;
}

void family_keep(const Family *family) {
    Arena *arena = arena_scratch(family->arena);
    Piece pieces[COUNT];
    Store store;
    const char *why;
    if (store_open(arena, &store, &why)) {
        StoreFound found;
        set_key(arena, family->program, pieces);
        (void)store_find(arena, &store, pieces, KEY_COUNT, COUNT, &found);
        pieces[ITEMS] = items_piece(arena, family);
        /* one that is not trusted stays; what cannot be kept is made again */
        if (found.fault == NULL) (void)store_add(arena, &store, pieces, KEY_COUNT, COUNT);
    }
    arena_free(arena);
}
