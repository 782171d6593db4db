/* lib: choices of tuning, stored in a file of the user: read by `run`, written by `tune`. */
#ifndef PIPEC_LIB_CACHE_H
#define PIPEC_LIB_CACHE_H

#include "util/util.h"

typedef struct Choice {
    /* The key */
    const char *kernel;
    const char *source; /* hash of the file's tokens */
    /* statics given by the user, "BK=32 T=8", sorted by name */
    const char *given;
    const char *device;  /* "NVIDIA H200"; NULL in a key: any */
    const char *extents; /* their extent classes, "M=3073..4096 K=64" */
    /* The choice */
    const char *values; /* "BM=128 STAGES=4" */
    double seconds;
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
/* The choice with the same key; NULL: there is none */
const Choice *choices_find(const Choices *choices, const Choice *like);

/* Adds the choice, replacing one with the same key. Writes a temporary file, then renames it; a
 * lock allows several processes to write. A file that cannot be read is renamed, with a warning.
 * False, with an error, if the choice was not stored. */
bool cache_store(Arena *arena, const char *file, const Choice *choice, Diags *diags);

/* The class of extents that are tuned together: each extent up to 64 is a class; above, the
 * classes end at powers of two and at 1.5 times powers of two, upper end included: "64",
 * "65..96", "97..128", "3073..4096". */
const char *extent_class(Arena *arena, int64_t extent);

#endif
