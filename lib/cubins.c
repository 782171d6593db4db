/* lib: the cubin of a kernel. Looks it up by the whole PTX text, the version of ptxas, the target
 * and the options; runs ptxas if it is not there. The linker of the driver (cuLink*, nvJitLink) is
 * never used: it drops setmaxnreg without an error. */
#include "lib/cubins.h"

#include "lib/ptxas.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Pieces of an entry; those before KEY_COUNT are its key */
enum { KIND, VERSION, TARGET, OPTIONS, KERNEL, PTX, KEY_COUNT, WORDS = KEY_COUNT, IMAGE, COUNT };
#define KIND_CUBIN "cubin 1"
/* Of an entry that keeps the version of a ptxas: kind, identity; version */
#define KIND_PTXAS "ptxas 1"

typedef struct Search {
    Arena *arena;
    const Manifest *manifest;
    CubinCache cache;
    Piece pieces[COUNT];
    StoreFound found;
    Cubin cubin;
} Search;

static bool none(Search *search, const char *why) {
    search->cubin = (Cubin){.why = why, .ptxas = search->cache.ptxas};
    return false;
}

/* ---- the key --------------------------------------------------------------------------------- */

/* The version of ptxas, kept by its path, size and times; NULL: it cannot be run */
static const char *version_of(Arena *arena, const Store *store, const char *ptxas) {
    StoreFound found;
    Piece pieces[3] = {piece_text(KIND_PTXAS), piece_text(ptxas_identity(arena, ptxas))};
    if (store_find(arena, store, pieces, 2, 3, &found)) return pieces[2].bytes;
    const char *version = ptxas_version(arena, ptxas);
    if (version == NULL) return NULL;
    pieces[2] = piece_text(version);
    (void)store_add(arena, store, pieces, 2, 3); /* otherwise it is run again */
    return version;
}

/* The driver has to assemble PTX if one of these is 1: it then refuses cubins. */
static const char *forced(Arena *arena) {
    static const char *const names[] = {"CUDA_FORCE_PTX_JIT", "CUDA_FORCE_JIT"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && strcmp(value, "1") == 0)
            return arena_printf(arena, "%s is 1", names[i]);
    }
    return NULL;
}

CubinCache cubin_cache(Arena *arena) {
    CubinCache out = {.off = forced(arena)};
    const char *why;
    if (!store_open(arena, &out.store, &why) && out.off == NULL) out.off = why;
    out.ptxas = ptxas_find(arena, &why);
    if (out.ptxas == NULL && out.off == NULL) out.off = why;
    if (out.off != NULL) return out;
    out.version = version_of(arena, &out.store, out.ptxas);
    if (out.version == NULL) out.off = arena_printf(arena, "%s cannot be run", out.ptxas);
    return out;
}

/* Fills the key. False: there is no cache, or no ptxas */
static bool begin(Search *search, const char *ptx, size_t length) {
    search->cache = cubin_cache(search->arena);
    if (search->cache.off != NULL) return none(search, search->cache.off);
    search->pieces[KIND] = piece_text(KIND_CUBIN);
    search->pieces[VERSION] = piece_text(search->cache.version);
    search->pieces[TARGET] = piece_text(search->manifest->target);
    search->pieces[OPTIONS] = piece_text(PTXAS_OPTIONS);
    search->pieces[KERNEL] = piece_text(search->manifest->kernel);
    search->pieces[PTX] = (Piece){ptx, length};
    return true;
}

/* ---- ptxas ----------------------------------------------------------------------------------- */

static const char *cannot_keep(Search *search, int error) {
    return arena_printf(search->arena, "cannot write in %s: %s", search->cache.store.folder,
                        strerror(error));
}

/* The first error of ptxas, or its last line */
static const char *complaint(Arena *arena, const char *words) {
    const char *text = "it gave no reason";
    for (const char *at = words; *at != 0; at += strcspn(at, "\n"), at += *at != 0) {
        text = arena_copy(arena, at, strcspn(at, "\n"));
        if (assembler_line(text).kind == ASSEMBLER_ERROR) break;
    }
    return assembler_words(text);
}

Piece cubin_read(Arena *arena, const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat about;
    if (file < 0 || fstat(file, &about) != 0 || about.st_size <= 0) about.st_size = 0;
    char *bytes = arena_alloc(arena, (size_t)about.st_size + 1);
    Piece image = {bytes, 0};
    while (image.length < (size_t)about.st_size) {
        ssize_t got = read(file, bytes + image.length, (size_t)about.st_size - image.length);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        image.length += (size_t)got;
    }
    if (file >= 0) close(file);
    return image;
}

static bool read_image(Search *search, const char *path) {
    Piece *image = &search->pieces[IMAGE];
    *image = cubin_read(search->arena, path);
    return cubin_registers(image->bytes, image->length, search->manifest->kernel) >= 0;
}

static bool run_on(Search *search, const char *ptx, const char *cubin) {
    Arena *arena = search->arena;
    int error = file_fill(ptx, search->pieces[PTX].bytes, search->pieces[PTX].length);
    if (error != 0) return none(search, cannot_keep(search, error));
    PtxasRun run = ptxas_run(arena, search->cache.ptxas, search->manifest->target, ptx, cubin);
    if (run.error != 0)
        return none(search, arena_printf(arena, "cannot run %s: %s", search->cache.ptxas,
                                         strerror(run.error)));
    if (!run.fine)
        return none(search, arena_printf(arena, "%s rejects the PTX: %s", search->cache.ptxas,
                                         complaint(arena, run.words)));
    search->pieces[WORDS] = piece_text(run.words);
    if (read_image(search, cubin)) return true;
    return none(search,
                arena_printf(arena, "%s did not make a cubin of the kernel", search->cache.ptxas));
}

/* Runs ptxas on files in the cache's folder: if they cannot be written, nothing could be kept. */
static bool assemble(Search *search) {
    const char *ptx = store_temporary(search->arena, &search->cache.store, ".ptx");
    if (ptx == NULL) return none(search, cannot_keep(search, errno));
    const char *cubin = store_temporary(search->arena, &search->cache.store, ".cubin");
    bool fine =
        cubin != NULL ? run_on(search, ptx, cubin) : none(search, cannot_keep(search, errno));
    unlink(ptx);
    if (cubin != NULL) unlink(cubin);
    return fine;
}

/* ---- the cubin ------------------------------------------------------------------------------- */

const char *cubin_mark(Arena *arena, const Manifest *manifest, const void *image, size_t length) {
    return arena_printf(arena, "pipec %016" PRIx64 "\n", fnv1a(manifest->ptx_hash, image, length));
}

const char *cubin_fault(Arena *arena, const void *image, size_t length, const Manifest *manifest) {
    int registers = cubin_registers(image, length, manifest->kernel);
    if (registers < 0)
        return arena_printf(arena, "it is no cubin with a kernel `%s`", manifest->kernel);
    if (manifest->registers == 0 || registers == manifest->registers) return NULL;
    return arena_printf(arena,
                        "a thread starts with %d registers instead of %d, so it ignores setmaxnreg",
                        registers, manifest->registers);
}

void cubin_refused(const Manifest *manifest, Diags *diags, const char *ptxas, const char *why) {
    Diag *diag = diag_plain(diags, P0921, "the cubin that %s makes of `%s` is not used: %s", ptxas,
                            manifest->kernel, why);
    diag_note(diags, diag, "the driver loads the PTX instead");
}

/* False, and search->cubin says why: there is a file that another user may have written */
static bool find(Search *search) {
    const Piece *image = &search->pieces[IMAGE];
    bool found = store_find(search->arena, &search->cache.store, search->pieces, KEY_COUNT, COUNT,
                            &search->found);
    if (search->found.fault != NULL) return none(search, search->found.fault);
    return found && cubin_registers(image->bytes, image->length, search->manifest->kernel) >= 0;
}

static void accept(Search *search, bool kept, Diags *diags) {
    const Piece *image = &search->pieces[IMAGE];
    Arena *arena = search->arena;
    const char *fault = cubin_fault(arena, image->bytes, image->length, search->manifest);
    if (fault != NULL) {
        cubin_refused(search->manifest, diags, search->cache.ptxas, fault);
        none(search, fault);
        return;
    }
    assembler_report(search->manifest, diags, P0909, search->pieces[WORDS].bytes);
    search->cubin = (Cubin){
        .image = image->bytes,
        .length = image->length,
        .by = kept ? arena_printf(arena, "ptxas, cached in %s", search->found.file) : "ptxas",
        .ptxas = search->cache.ptxas};
}

Cubin cubin_of(Arena *arena, const Manifest *manifest, const char *ptx, size_t length,
               Diags *diags) {
    Search search = {.arena = arena, .manifest = manifest};
    if (!begin(&search, ptx, length)) return search.cubin;
    bool kept = find(&search);
    if (search.found.fault != NULL || (!kept && !assemble(&search))) return search.cubin;
    if (!kept) kept = store_add(arena, &search.cache.store, search.pieces, KEY_COUNT, COUNT) == 0;
    accept(&search, kept, diags);
    return search.cubin;
}

Cubin cubin_cached(Arena *arena, const Manifest *manifest, const char *ptx, size_t length) {
    Search search = {.arena = arena, .manifest = manifest};
    if (begin(&search, ptx, length) && find(&search)) accept(&search, true, diags_new(arena, NULL));
    return search.cubin;
}

bool cubin_entry(Arena *arena, const StoreEntry *entry, CubinEntry *out) {
    Piece pieces[COUNT];
    if (!store_read(arena, entry->file, pieces, COUNT) ||
        strcmp(pieces[KIND].bytes, KIND_CUBIN) != 0)
        return false;
    *out = (CubinEntry){.file = entry->file,
                        .kernel = pieces[KERNEL].bytes,
                        .target = pieces[TARGET].bytes,
                        .version = ptxas_version_number(arena, pieces[VERSION].bytes),
                        .bytes = entry->bytes,
                        .used = entry->used};
    return true;
}
