/* Paths: what is known of each stage variable in scope. A path is copied at every branch and leave, and few variables
 * change between two copies: they lie in chunks that copies share until one of them writes. */
#include "check/stages.h"

#include <string.h>

#define CHUNK 32

struct HoldChunk {
    int owner;        /* the path that may write it */
    Hold holds[CHUNK];
};

static size_t chunks_of(size_t count) { return (count + CHUNK - 1) / CHUNK; }

Path path_new(Linear *linear) { return (Path){.live = true, .owner = ++linear->owners}; }

Path path_copy(Linear *linear, Path *path, size_t count) {
    Path copy = {.live = path->live, .expected = path->expected, .count = count, .owner = ++linear->owners};
    copy.capacity = chunks_of(count);
    copy.chunks = NEW_ARRAY(linear->arena, HoldChunk *, copy.capacity + 1);
    if (copy.capacity) memcpy(copy.chunks, path->chunks, copy.capacity * sizeof *copy.chunks);
    path->owner = ++linear->owners; /* what it has written is shared from now on */
    return copy;
}

const Hold *path_hold(const Path *path, size_t slot) { return &path->chunks[slot / CHUNK]->holds[slot % CHUNK]; }

Hold *path_change(Linear *linear, Path *path, size_t slot) {
    HoldChunk *chunk = path->chunks[slot / CHUNK];
    if (chunk->owner != path->owner) {
        HoldChunk *own = NEW(linear->arena, HoldChunk);
        *own = *chunk;
        own->owner = path->owner;
        chunk = path->chunks[slot / CHUNK] = own;
    }
    return &chunk->holds[slot % CHUNK];
}

Hold *path_push(Linear *linear, Path *path) {
    size_t slot = path->count++, chunk = slot / CHUNK;
    if (slot % CHUNK != 0) return path_change(linear, path, slot);
    if (chunk == path->capacity) {
        size_t wanted = path->capacity * 2 + 1;
        path->chunks = arena_grow(linear->arena, path->chunks, path->capacity * sizeof *path->chunks, wanted * sizeof *path->chunks);
        path->capacity = wanted;
    }
    path->chunks[chunk] = NEW(linear->arena, HoldChunk);
    path->chunks[chunk]->owner = path->owner;
    return &path->chunks[chunk]->holds[0];
}

size_t path_differs(const Path *a, const Path *b, size_t slot, size_t count) {
    while (slot < count && a->chunks[slot / CHUNK] == b->chunks[slot / CHUNK]) slot = (slot / CHUNK + 1) * CHUNK;
    return slot;
}
