/* lib: entries in files. A file is a head, the lengths of its pieces, and the pieces:
 *
 *   8 bytes  "pipec\0e1"
 *   u64      checksum of all that follows
 *   u64      number of pieces, n
 *   u64 * n  their lengths
 *   bytes    the pieces, each followed by a NUL
 *
 * The name is a hash of the key. Two keys of one hash replace each other, because a key is compared
 * as a whole. Files are not forced to the disk: the checksum finds one that a crash left
 * incomplete. */
#include "lib/store.h"

#include "lib/cache.h"
#include "lib/trust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BYTES_MOST      (UINT64_C(256) << 20) /* unless PIPEC_CACHE_MAXSIZE says otherwise */
#define ENTRY_MOST      (UINT64_C(1) << 30)   /* larger files are no entries */
#define ENDING          ".entry"
#define TEMPORARY       "new."
#define TEMPORARY_LASTS (24 * 3600) /* seconds */

static const char magic[8] = {'p', 'i', 'p', 'e', 'c', 0, 'e', '1'};

typedef struct Head {
    char magic[8];
    uint64_t checksum, count;
} Head;

Piece piece_text(const char *text) { return (Piece){text, strlen(text)}; }

/* ---- the folder ------------------------------------------------------------------------------ */

/* "64M": bytes, or with K, M or G; false: it is no size */
static bool size_of(const char *text, uint64_t *out) {
    static const char units[] = "KMG";
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    const char *unit = *end != 0 ? strchr(units, *end) : NULL;
    int shift = unit != NULL ? 10 * (int)(unit - units + 1) : 0;
    if (text[0] < '0' || text[0] > '9' || errno != 0 || end[unit != NULL] != 0 ||
        value > UINT64_MAX >> 1 >> shift)
        return false;
    *out = (uint64_t)value << shift;
    return true;
}

bool store_open(Arena *arena, Store *out, const char **why) {
    const char *folder = cache_folder(arena, why), *limit = getenv("PIPEC_CACHE_MAXSIZE");
    *out = (Store){.bytes_most = BYTES_MOST};
    if (folder == NULL) return false;
    out->folder = arena_printf(arena, "%s/cubins", folder);
    if (limit != NULL && !size_of(limit, &out->bytes_most)) {
        *why = "PIPEC_CACHE_MAXSIZE is not a number of bytes";
        return false;
    }
    if (out->bytes_most == 0) {
        *why = "PIPEC_CACHE_MAXSIZE is 0";
        return false;
    }
    int opened = trust_open_folder(arena, out->folder, false, why);
    if (opened >= 0) close(opened);
    return *why == NULL; /* a missing folder is made when something is kept */
}

/* A trusted folder stays the same for all other users, so that its path can be used. */
const char *store_temporary(Arena *arena, const Store *store, const char *ending) {
    const char *fault;
    char *name = arena_printf(arena, "%s/" TEMPORARY "XXXXXX%s", store->folder, ending);
    int folder = trust_open_folder(arena, store->folder, true, &fault), file = -1, error = 0;
    if (folder >= 0) file = mkostemps(name, (int)strlen(ending), O_CLOEXEC);
    if (file < 0 || fchmod(file, S_IRUSR | S_IWUSR) != 0) error = errno; /* whatever the umask */
    if (file >= 0 && error != 0) unlink(name);
    if (file >= 0) close(file);
    if (folder >= 0) close(folder);
    errno = error;
    return error == 0 ? name : NULL;
}

int store_writable(Arena *arena, const Store *store) {
    const char *name = store_temporary(arena, store, "");
    if (name == NULL) return errno;
    unlink(name);
    return 0;
}

/* ---- hashes ---------------------------------------------------------------------------------- */

/* Eight bytes at a time; every step is a bijection, so that a change of one word changes it. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length) {
    const unsigned char *at = bytes;
    for (; length > 0; at += 8) {
        uint64_t word = 0;
        size_t now = length < 8 ? length : 8;
        memcpy(&word, at, now);
        length -= now;
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return hash;
}

static uint64_t hash_pieces(const Piece *pieces, size_t count) {
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++) {
        hash = hash_bytes(hash, &(uint64_t){pieces[i].length}, 8);
        hash = hash_bytes(hash, pieces[i].bytes, pieces[i].length);
    }
    return hash;
}

static const char *path_of(Arena *arena, const Store *store, const Piece *key, size_t keys) {
    return arena_printf(arena, "%s/%016" PRIx64 ENDING, store->folder, hash_pieces(key, keys));
}

static const char *name_in(const char *path) { return strrchr(path, '/') + 1; }

/* ---- reading --------------------------------------------------------------------------------- */

/* Opens a regular file of a possible size, in the folder that is open; -1: there is none */
static int open_file(int folder, const char *name, struct stat *about) {
    int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW;
    int file = openat(folder, name, flags);
    if (file < 0 || (fstat(file, about) == 0 && S_ISREG(about->st_mode) && about->st_size >= 0 &&
                     (uint64_t)about->st_size <= ENTRY_MOST))
        return file;
    close(file);
    return -1;
}

/* The whole file, which is then closed; NULL: it cannot be read */
static const char *read_file(Arena *arena, int file, size_t size, bool use) {
    size_t used = 0;
    char *bytes = arena_alloc(arena, size + 1);
    while (used < size) {
        ssize_t got = read(file, bytes + used, size - used);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        used += (size_t)got;
    }
    if (use) (void)futimens(file, NULL); /* fails in a folder of another user: its age is kept */
    close(file);
    return used == size ? bytes : NULL;
}

/* Splits a file into its pieces. Returns their number; 0: it is damaged. */
static size_t split(const char *bytes, size_t length, Piece *out) {
    Head head;
    if (length < sizeof head) return 0;
    memcpy(&head, bytes, sizeof head);
    if (memcmp(head.magic, magic, sizeof magic) != 0 || head.count == 0 ||
        head.count > STORE_PIECES_MOST)
        return 0;
    size_t from = offsetof(Head, count), at = sizeof head + head.count * sizeof(uint64_t);
    if (length < at || hash_bytes(length, bytes + from, length - from) != head.checksum) return 0;
    for (size_t i = 0; i < head.count; i++) {
        uint64_t piece;
        memcpy(&piece, bytes + sizeof head + i * sizeof piece, sizeof piece);
        if (piece >= length - at || bytes[at + piece] != 0) return 0;
        out[i] = (Piece){bytes + at, piece};
        at += piece + 1;
    }
    return at == length ? head.count : 0;
}

static bool same(const Piece *a, const Piece *b, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (a[i].length != b[i].length || memcmp(a[i].bytes, b[i].bytes, a[i].length) != 0)
            return false;
    return true;
}

/* The bytes of the entry; NULL: there is none, or `found` says what is not trusted */
static const char *read_entry(Arena *arena, const Store *store, StoreFound *found, size_t *length) {
    struct stat about;
    int folder = trust_open_folder(arena, store->folder, false, &found->fault);
    int file = folder >= 0 ? open_file(folder, name_in(found->file), &about) : -1;
    if (folder >= 0) close(folder);
    if (file < 0) return NULL;
    found->fault = trust_fault(arena, found->file, &about);
    if (found->fault != NULL) {
        close(file);
        return NULL;
    }
    *length = (size_t)about.st_size;
    return read_file(arena, file, *length, true);
}

bool store_find(Arena *arena, const Store *store, Piece *pieces, size_t keys, size_t count,
                StoreFound *found) {
    Piece read[STORE_PIECES_MOST];
    size_t length;
    *found = (StoreFound){.file = path_of(arena, store, pieces, keys)};
    const char *bytes = read_entry(arena, store, found, &length);
    if (bytes == NULL || split(bytes, length, read) != count || !same(read, pieces, keys))
        return false;
    for (size_t i = keys; i < count; i++) pieces[i] = read[i];
    return true;
}

bool store_read(Arena *arena, const char *path, Piece *pieces, size_t count) {
    Piece found[STORE_PIECES_MOST];
    struct stat about;
    int file = open_file(AT_FDCWD, path, &about);
    const char *bytes = file < 0 ? NULL : read_file(arena, file, (size_t)about.st_size, false);
    if (bytes == NULL || split(bytes, (size_t)about.st_size, found) < count) return false;
    memcpy(pieces, found, count * sizeof *pieces);
    return true;
}

/* ---- the list -------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static int64_t nanoseconds(struct timespec time) {
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Calls use(data, folder, path, about) for each regular file; *error: the folder cannot be read.
 * Files are removed in the open folder: one that is not trusted may be replaced meanwhile. */
static void each_file(Arena *arena, const Store *store, int *error,
                      void (*use)(void *data, int folder, const char *path,
                                  const struct stat *about),
                      void *data) {
    DIR *folder = opendir(store->folder);
    *error = folder == NULL && errno != ENOENT ? errno : 0;
    for (struct dirent *row; folder != NULL && (row = readdir(folder)) != NULL;) {
        struct stat about;
        const char *path = arena_printf(arena, "%s/%s", store->folder, row->d_name);
        if (fstatat(dirfd(folder), row->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(about.st_mode))
            use(data, dirfd(folder), path, &about);
    }
    if (folder != NULL) closedir(folder);
}

typedef struct Listing {
    Arena *arena;
    StoreEntries entries;
    int64_t now;
} Listing;

static void list_file(void *data, int folder, const char *path, const struct stat *about) {
    Listing *listing = data;
    const char *name = name_in(path);
    StoreEntry entry = {path, (uint64_t)about->st_size, nanoseconds(about->st_mtim)};
    if (ends_with(name, ENDING)) vec_push(listing->arena, &listing->entries, entry);
    /* left by a process that was killed */
    if (strncmp(name, TEMPORARY, strlen(TEMPORARY)) == 0 &&
        entry.used / 1000000000 + TEMPORARY_LASTS < listing->now)
        unlinkat(folder, name, 0);
}

static int last_used_first(const void *a, const void *b) {
    const StoreEntry *x = a, *y = b;
    return x->used != y->used ? (x->used < y->used ? 1 : -1) : strcmp(x->file, y->file);
}

StoreEntries store_list(Arena *arena, const Store *store) {
    Listing listing = {.arena = arena, .now = time(NULL)};
    int error;
    each_file(arena, store, &error, list_file, &listing);
    if (listing.entries.count > 0)
        qsort(listing.entries.items, listing.entries.count, sizeof *listing.entries.items,
              last_used_first);
    return listing.entries;
}

/* Removes the entries that were not used for longest, until the rest is within the limit. If
 * another process does so now, nothing is removed. */
static void trim(Arena *arena, const Store *store) {
    StoreEntries entries = store_list(arena, store);
    uint64_t kept = 0;
    for (size_t i = 0; i < entries.count; i++) kept += entries.items[i].bytes;
    if (kept <= store->bytes_most) return;
    int folder = open(store->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool busy = folder >= 0 && flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    for (size_t i = entries.count; !busy && i-- > 0 && kept > store->bytes_most;) {
        unlink(entries.items[i].file);
        kept -= entries.items[i].bytes;
    }
    if (folder >= 0) close(folder);
}

typedef struct Clearing {
    size_t removed;
    uint64_t bytes;
    int error;
} Clearing;

static void clear_file(void *data, int folder, const char *path, const struct stat *about) {
    Clearing *clearing = data;
    const char *name = name_in(path);
    bool temporary = strncmp(name, TEMPORARY, strlen(TEMPORARY)) == 0;
    if (!temporary && !ends_with(name, ENDING)) return;
    if (unlinkat(folder, name, 0) != 0) {
        if (errno != ENOENT) clearing->error = errno;
    } else if (!temporary) {
        clearing->removed++;
        clearing->bytes += (uint64_t)about->st_size;
    }
}

int store_clear(Arena *arena, const Store *store, size_t *removed, uint64_t *bytes) {
    Clearing clearing = {.error = 0};
    int error;
    each_file(arena, store, &error, clear_file, &clearing);
    *removed = clearing.removed;
    *bytes = clearing.bytes;
    return error != 0 ? error : clearing.error;
}

/* ---- writing --------------------------------------------------------------------------------- */

static char *join(Arena *arena, const Piece *pieces, size_t count, size_t length) {
    char *bytes = arena_alloc(arena, length), *at = bytes + sizeof(Head);
    Head head = {.count = count};
    for (size_t i = 0; i < count; i++, at += sizeof(uint64_t))
        memcpy(at, &(uint64_t){pieces[i].length}, sizeof(uint64_t));
    for (size_t i = 0; i < count; i++, at += pieces[i - 1].length + 1)
        if (pieces[i].length > 0) memcpy(at, pieces[i].bytes, pieces[i].length);
    memcpy(head.magic, magic, sizeof magic);
    memcpy(bytes, &head, sizeof head);
    size_t from = offsetof(Head, count);
    head.checksum = hash_bytes(length, bytes + from, length - from);
    memcpy(bytes, &head, sizeof head);
    return bytes;
}

/* A write above the limit of the process would end it by a signal. */
static int too_large(size_t length) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
                   length > limit.rlim_cur
               ? EFBIG
               : 0;
}

int file_fill(const char *path, const void *bytes, size_t length) {
    int error = too_large(length);
    int file = error == 0 ? open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY) : -1;
    if (error == 0 && file < 0) error = errno;
    for (size_t used = 0; used < length && error == 0;) {
        ssize_t put = write(file, (const char *)bytes + used, length - used);
        if (put > 0)
            used += (size_t)put;
        else if (put == 0 || errno != EINTR)
            error = put == 0 ? ENOSPC : errno;
    }
    if (file >= 0 && close(file) != 0 && error == 0) error = errno;
    return error;
}

int store_add(Arena *arena, const Store *store, const Piece *pieces, size_t keys, size_t count) {
    size_t length = sizeof(Head) + count * sizeof(uint64_t);
    for (size_t i = 0; i < count; i++) length += pieces[i].length + 1;
    if (length > store->bytes_most || length > ENTRY_MOST) return EFBIG;
    const char *temporary = store_temporary(arena, store, "");
    if (temporary == NULL) return errno;
    int error = file_fill(temporary, join(arena, pieces, count, length), length);
    if (error == 0 && rename(temporary, path_of(arena, store, pieces, keys)) != 0) error = errno;
    if (error != 0)
        unlink(temporary);
    else
        trim(arena, store);
    return error;
}
