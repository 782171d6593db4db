/* lib: a folder of entries that are found by their whole key, for cubins. Any process may add,
 * read and remove entries at any time: an entry is a file that is complete when it gets its name,
 * and what is not a whole entry of the wanted key is ignored. */
#ifndef PIPEC_LIB_STORE_H
#define PIPEC_LIB_STORE_H

#include "util/util.h"

typedef struct Store {
    const char *folder;
    uint64_t bytes_most; /* the entries that were not used for longest are removed above it */
} Store;

/* A part of an entry: of its key, or of its value. Read ones are followed by a NUL. */
typedef struct Piece {
    const void *bytes;
    size_t length;
} Piece;
Piece piece_text(const char *text);

#define STORE_PIECES_MOST 16

/* The folder `cubins` in the folder of the cache, and its limit: PIPEC_CACHE_MAXSIZE, otherwise
 * 256 MiB. False: nothing is to be kept or found, *why says so; one reason is a folder that other
 * users can change (lib/trust.h). */
bool store_open(Arena *arena, Store *out, const char **why);

typedef struct StoreFound {
    const char *file;  /* the path of the entry, whether it is there or not */
    const char *fault; /* it is there, but is not trusted: why; NULL: otherwise */
} StoreFound;

/* Reads the entry whose key is the first `keys` pieces, and fills the others of the `count`.
 * False: there is none, it is damaged, or it is not trusted. Marks it as used. */
bool store_find(Arena *arena, const Store *store, Piece *pieces, size_t keys, size_t count,
                StoreFound *found);
/* Adds the entry, or replaces the one with its name; then removes entries above the limit.
 * Returns 0 or an error number: EFBIG if the entry alone is above the limit. */
int store_add(Arena *arena, const Store *store, const Piece *pieces, size_t keys, size_t count);

/* A new empty file in the folder, for the caller to fill and remove; NULL: errno says why. Entries
 * that were never finished are removed after a day. */
const char *store_temporary(Arena *arena, const Store *store, const char *ending);

/* Whether entries can be added: 0 or an error number */
int store_writable(Arena *arena, const Store *store);
/* Writes an existing file. Returns 0 or an error number. */
int file_fill(const char *path, const void *bytes, size_t length);

typedef struct StoreEntry {
    const char *file; /* its path */
    uint64_t bytes;
    int64_t used; /* when it was used last, in nanoseconds since 1970 */
} StoreEntry;
typedef VEC(StoreEntry) StoreEntries;
/* All entries, the last used first */
StoreEntries store_list(Arena *arena, const Store *store);
/* Reads the first `count` pieces of a file, to list them: whether it is trusted is not checked.
 * False: it is no entry */
bool store_read(Arena *arena, const char *file, Piece *pieces, size_t count);
/* Removes all entries. Returns 0 or an error number; *removed, *bytes: what was removed */
int store_clear(Arena *arena, const Store *store, size_t *removed, uint64_t *bytes);

#endif
