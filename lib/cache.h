/* lib: what tuning has chosen, kept in a file of the user's: read by `run`, written by `tune`. */
#ifndef PIPEC_LIB_CACHE_H
#define PIPEC_LIB_CACHE_H

#include "util/util.h"

typedef struct Choice {
    /* what it holds for */
    const char *kernel;
    const char *source;  /* a hash of what the file says */
    const char *given;   /* statics that the user gives, "BK=32 T=8", in the order of their names */
    const char *device;  /* "NVIDIA H200"; NULL in a key: any */
    const char *extents; /* their classes, "M=3073..4096 K=64" */
    /* what was chosen */
    const char *values; /* "BM=128 STAGES=4" */
    double seconds;
} Choice;

/* PIPEC_CACHE, else pipec in XDG_CACHE_HOME, else .cache/pipec in HOME. NULL: nowhere, *why says so. */
const char *cache_file(Arena *arena, const char **why);

bool cache_is_there(const char *file);

/* The choice that holds for the same; NULL: there is none. A file that cannot be read is a warning. */
const Choice *cache_find(Arena *arena, const char *file, const Choice *like, Diags *diags);

/* Adds the choice, or puts it in the place of the one that held for the same. The file is written beside and then renamed; a
 * lock lets several processes add theirs. A file that cannot be read is put aside under another name, with a warning. False,
 * with an error, where the choice is not kept. */
bool cache_keep(Arena *arena, const char *file, const Choice *choice, Diags *diags);

/* Extents that are tuned together: up to 64 each for itself, beyond that between a power of two and one and a half of it, or that
 * and the next power of two, the upper end included: "64", "65..96", "97..128", "3073..4096". */
const char *extent_class(Arena *arena, int64_t extent);

#endif
