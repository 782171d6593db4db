/* lib: the cache of cubins for its user: what is in it, whether it is used, and what defeats it or
 * the cache of the driver. */
#include "lib/cubins.h"
#include "lib/private.h"
#include "lib/ptxas.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Less than a few kernels */
#define LITTLE (UINT64_C(1) << 20)

struct PipecCache {
    Arena *arena;
    CubinCache cache;
    PipecCacheInfo info;
    VEC(PipecCacheEntry) entries;
};

/* ---- entries --------------------------------------------------------------------------------- */

static void read_entries(PipecCache *cache) {
    StoreEntries all = store_list(cache->arena, &cache->cache.store);
    for (size_t i = 0; i < all.count; i++) {
        CubinEntry entry;
        cache->info.bytes += all.items[i].bytes;
        if (!cubin_entry(cache->arena, &all.items[i], &entry)) continue;
        PipecCacheEntry public = {.file = entry.file,
                                  .kernel = entry.kernel,
                                  .target = entry.target,
                                  .version = entry.version,
                                  .bytes = entry.bytes,
                                  .used = entry.used / 1000000000};
        vec_push(cache->arena, &cache->entries, public);
    }
    cache->info.entries = cache->entries.count;
}

typedef struct Open {
    Arena *arena;
    PipecCache *cache;
} Open;

static void open_cache(void *data) {
    Open *it = data;
    PipecCache *cache = it->cache = NEW(it->arena, PipecCache);
    cache->arena = it->arena;
    cache->cache = cubin_cache(it->arena);
    const CubinCache *from = &cache->cache;
    cache->info = (PipecCacheInfo){
        .folder = from->store.folder,
        .off = from->off,
        .ptxas = from->ptxas,
        .version = from->version != NULL ? ptxas_version_number(it->arena, from->version) : NULL,
        .bytes_most = from->store.bytes_most};
    if (from->store.folder != NULL) read_entries(cache);
}

PIPEC_API PipecCache *pipec_cache_open(void) {
    Open it = {.arena = arena_new()};
    if (it.arena != NULL && attempt(it.arena, open_cache, &it)) return it.cache;
    arena_free(it.arena);
    return NULL;
}

PIPEC_API void pipec_cache_free(PipecCache *cache) {
    if (cache != NULL) arena_free(cache->arena);
}

PIPEC_API bool pipec_cache_info(const PipecCache *cache, PipecCacheInfo *info) {
    return size_write(info, &cache->info, sizeof cache->info);
}

PIPEC_API bool pipec_cache_entry(const PipecCache *cache, size_t index, PipecCacheEntry *entry) {
    return index < cache->entries.count &&
           size_write(entry, &cache->entries.items[index], sizeof *entry);
}

/* ---- clearing -------------------------------------------------------------------------------- */

typedef struct Clear {
    PipecCache *cache;
    Arena *words;
    size_t removed;
    uint64_t bytes;
    PipecDiagnostics *published;
    PipecStatus status;
} Clear;

static void clear(void *data) {
    Clear *it = data;
    const Store *store = &it->cache->cache.store;
    if (store->folder == NULL) return;
    int error = store_clear(it->words, store, &it->removed, &it->bytes);
    if (error == 0) return;
    Diags *diags = diags_new(it->words, NULL);
    diag_plain(diags, P0924, "cannot clear the cache in `%s`: %s", store->folder, strerror(error));
    it->published = diagnostics_publish(diags);
    it->published->arena = it->words;
    it->status = PIPEC_UNUSABLE;
}

PIPEC_API PipecStatus pipec_cache_clear(PipecCache *cache, size_t *removed, uint64_t *bytes,
                                        PipecDiagnostics **diagnostics) {
    Clear it = {.cache = cache, .words = arena_new()};
    if (it.words == NULL || !attempt(it.words, clear, &it)) {
        it.published = (PipecDiagnostics *)&no_memory;
        it.status = PIPEC_UNUSABLE;
    }
    *removed = it.removed;
    *bytes = it.bytes;
    bool wanted = diagnostics != NULL && it.published != NULL;
    if (diagnostics != NULL) *diagnostics = it.published;
    if (!wanted || it.published->arena == NULL) arena_free(it.words);
    return it.status;
}

/* ---- which cache applies --------------------------------------------------------------------- */

static void say(Str *out, const char *format, ...) PRINTF_LIKE(2, 3);
static void say(Str *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    str_vprintf(out, format, args);
    va_end(args);
    str_char(out, '\n');
}

/* The folder, or the nearest one above it that exists, cannot be written. */
static bool is_unwritable(Arena *arena, const char *folder) {
    char *path = arena_copy(arena, folder, strlen(folder));
    while (access(path, F_OK) != 0) {
        char *slash = strrchr(path, '/');
        if (slash == NULL || slash == path) return access(slash == NULL ? "." : "/", W_OK) != 0;
        *slash = 0;
    }
    return access(path, W_OK | X_OK) != 0;
}

/* The driver's cache: its folder, and what defeats it */
static void say_driver(Arena *arena, Str *out) {
    const char *own = getenv("CUDA_CACHE_PATH"), *home = getenv("HOME"),
               *disable = getenv("CUDA_CACHE_DISABLE"), *most = getenv("CUDA_CACHE_MAXSIZE");
    const char *folder = own != NULL && own[0] != 0 ? own
                         : home != NULL && home[0] != 0
                             ? arena_printf(arena, "%s/.nv/ComputeCache", home)
                             : NULL;
    if (folder != NULL)
        say(out, "the driver keeps what it assembles in %s%s", folder,
            folder == own ? " (CUDA_CACHE_PATH)" : "");
    if (disable != NULL && disable[0] != 0 && strcmp(disable, "0") != 0)
        say(out, "warning: CUDA_CACHE_DISABLE is %s: the driver assembles again in each process",
            disable);
    if (folder == NULL)
        say(out, "warning: neither HOME nor CUDA_CACHE_PATH is set: the driver keeps nothing");
    else if (is_unwritable(arena, folder))
        say(out, "warning: %s cannot be written: the driver keeps nothing", folder);
    if (most != NULL && strtoull(most, NULL, 10) < LITTLE)
        say(out, "warning: CUDA_CACHE_MAXSIZE is %s: few kernels or none fit", most);
}

typedef struct Why {
    PipecCache *cache;
    const PipecProgram *program;
    const char *text;
} Why;

static void say_program(const PipecCache *cache, const PipecProgram *program, bool writable,
                        Str *out) {
    Cubin cubin =
        cubin_cached(out->arena, program->manifest, program->ptx.text, program->ptx.length);
    if (cubin.image != NULL)
        say(out, "`%s` is loaded from %s", program->kernel, strstr(cubin.by, cache->info.folder));
    else if (cubin.why != NULL)
        say(out, "warning: the driver loads `%s`: %s", program->kernel, cubin.why);
    else
        say(out, "`%s` is not there: %s", program->kernel,
            writable ? "its first load runs ptxas" : "the driver loads it");
}

static void say_ours(const PipecCache *cache, const PipecProgram *program, Str *out) {
    const PipecCacheInfo *info = &cache->info;
    int error = store_writable(cache->arena, &cache->cache.store);
    say(out, "kernels are loaded from cubins of ptxas %s (%s), kept in %s", info->version,
        info->ptxas, info->folder);
    if (info->bytes_most < LITTLE)
        say(out, "warning: PIPEC_CACHE_MAXSIZE is %s: few kernels or none fit",
            getenv("PIPEC_CACHE_MAXSIZE"));
    if (error != 0)
        say(out, "warning: %s cannot be written: %s; the driver loads kernels that are not there",
            info->folder, strerror(error));
    if (program != NULL) say_program(cache, program, error == 0, out);
    if (error != 0) say_driver(cache->arena, out);
}

static void find_why(void *data) {
    Why *it = data;
    const PipecCacheInfo *info = &it->cache->info;
    const PipecProgram *program =
        it->program != NULL && it->program->manifest != NULL ? it->program : NULL;
    Str out = str_new(it->cache->arena);
    if (program != NULL && program->cubin != NULL) {
        say(&out, "`%s` is a cubin: no cache is needed", program->kernel);
    } else if (info->off == NULL) {
        say_ours(it->cache, program, &out);
    } else {
        say(&out, "the driver loads the PTX of all kernels: %s", info->off);
        if (info->ptxas != NULL) say(&out, "warning: %s is not used", info->ptxas);
        say_driver(it->cache->arena, &out);
    }
    it->text = out.text;
}

PIPEC_API const char *pipec_cache_why(PipecCache *cache, const PipecProgram *program) {
    Why it = {.cache = cache, .program = program};
    return attempt(cache->arena, find_why, &it) ? it.text : NULL;
}
