/* lib: what tuning measured, stored in a file of the user: read by launches, written by `tune`. */
#ifndef PIPEC_LIB_CACHE_H
#define PIPEC_LIB_CACHE_H

#include "util/util.h"

typedef struct Choice {
    /* The key */
    const char *kernel;
    const char *source; /* hash of the file's tokens */
    /* statics given by the user, "BK=32 T=8", sorted by name */
    const char *given;
    const char *device;  /* "NVIDIA H200" */
    const char *extents; /* "M=4096 K=64" */
    const char *values;  /* of the open statics, "BM=128 STAGES=4" */
    /* What was measured */
    double seconds; /* of one launch; 0, only when it is stored: removes it, as it is wrong */
    bool near;      /* also for extents that are nearly these */
} Choice;

/* The folder of what is kept between processes: PIPEC_CACHE, otherwise pipec in XDG_CACHE_HOME,
 * otherwise .cache/pipec in HOME. NULL: none of them is set, *why says so. */
const char *cache_folder(Arena *arena, const char **why);
/* The file of choices in it */
const char *cache_file(Arena *arena, const char **why);

bool cache_is_there(const char *file);

typedef struct Choices {
    Choice *items;
    size_t count, capacity;
} Choices;

/* All choices of the file. One that cannot be read is a warning, and has none. */
Choices cache_read(Arena *arena, const char *file, Diags *diags);
typedef enum Found { FOUND_NOTHING, FOUND_CHOICES, FOUND_UNREADABLE } Found;
typedef struct ChoicesHash {
    const char *said; /* by the file; NULL: it says none */
    uint64_t actual;  /* of all that follows its first line */
} ChoicesHash;
uint64_t choices_hash(const char *text, size_t length);
/* Those of a file whose first field has this name. *why: the fault of an unreadable one */
Found choices_load(Arena *arena, const char *file, const char *name, Choices *out,
                   ChoicesHash *hash, const char **why);
/* One line for each */
void choices_print(const Choices *choices, Str *out);

/* Those of one text and one device, by their extents */
typedef struct Kept {
    Choice *items;
    size_t count, capacity;
} Kept;
/* `like` has the source and the given statics; device NULL: any */
Kept kept_of(Arena *arena, const Choices *choices, const Choice *like, const char *device);
/* The first for exactly these extents, and their number */
const Choice *kept_find(const Kept *kept, const char *extents, size_t *count);

/* Adds choices, replacing those with the same keys. Writes a temporary file, then renames it; a
 * lock allows several processes to write. A file that cannot be read is renamed, with a warning.
 * False, with an error, if they were not stored. */
bool cache_store(Arena *arena, const char *file, const Choices *choices, Diags *diags);

/* Until the descriptor is closed, other processes that read, change and replace a file of this
 * folder wait. -1: its folder cannot be locked, as on some network disks, or is locked for 10 s */
int folder_lock(Arena *arena, const char *file);
/* The file that a link leads to, so that replacing it leaves the link; `file` if it is none */
const char *file_resolved(Arena *arena, const char *file);
/* Replaces the file by the text at once, and makes its folders. Returns 0 or an error number. */
int cache_replace(Arena *arena, const char *file, const Str *text);
/* The same for a file that others may read */
int file_replace(Arena *arena, const char *file, const Str *text);

#endif
