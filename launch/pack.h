/* Values as bytes, for files that only the same build of pipec reads. One function describes a row
 * for both directions, so that what is written is what is read. */
#ifndef PIPEC_PACK_H
#define PIPEC_PACK_H

#include "launch/manifest.h"

typedef struct Pack {
    Arena *arena;         /* of what is read */
    Str *out;             /* what is written; NULL: it is read */
    const char *at, *end; /* of what is read; texts stay in it */
    bool damaged;         /* it ends early; what is read then is zero */
} Pack;

int64_t pack_number(Pack *pack, int64_t value);      /* the value that is written or read */
const char *pack_text(Pack *pack, const char *text); /* NULL stays NULL */
/* Sets a field when it is read */
#define PACK(pack, field)                                                                          \
    do {                                                                                           \
        int64_t packed = pack_number((pack), (int64_t)(field));                                    \
        if ((pack)->out == NULL) (field) = packed;                                                 \
    } while (0)
#define PACK_TEXT(pack, field)                                                                     \
    do {                                                                                           \
        const char *packed = pack_text((pack), (field));                                           \
        if ((pack)->out == NULL) (field) = packed;                                                 \
    } while (0)
/* The rows of a VEC, each by row(pack, item) */
#define PACK_ROWS(pack, vec, row)                                                                  \
    do {                                                                                           \
        size_t packed = pack_rows((pack), (vec)->count);                                           \
        if ((pack)->out == NULL && packed > 0) {                                                   \
            (vec)->items = arena_alloc((pack)->arena, packed * sizeof *(vec)->items);              \
            (vec)->count = (vec)->capacity = packed;                                               \
        }                                                                                          \
        for (size_t at = 0; at < packed; at++) row((pack), &(vec)->items[at]);                     \
    } while (0)
size_t pack_rows(Pack *pack, size_t count); /* at most one per byte that is left */

/* What binding, preconditions and predictions of a launch use, and the messages about them; not the
 * places in the text, nor what the PTX needs: arguments, waits, constants. */
void pack_manifest(Pack *pack, Manifest *manifest);
/* A copy of that part */
const Manifest *manifest_packed(Arena *arena, const Manifest *manifest);

#endif
