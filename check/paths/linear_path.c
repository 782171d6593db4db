/* States of the linear rule: the state of each stage variable in scope. A state is copied at
 * every branch, loop and leave, and few variables change between copies: they are in chunks that
 * copies share until one of them writes. */
#include "check/paths/linear.h"

#include <assert.h>
#include <string.h>

#define CHUNK 32

struct HoldChunk {
    int owner; /* the path that may write it */
    Hold holds[CHUNK];
};

static size_t chunks_of(size_t count) { return (count + CHUNK - 1) / CHUNK; }

static int *new_owner(Linear *linear) {
    int *owner = NEW(linear->arena, int);
    *owner = ++linear->owners;
    return owner;
}

Path *path_new(Linear *linear) {
    Path *path = NEW(linear->arena, Path);
    path->owner = new_owner(linear);
    return path;
}

Path *path_copy(Linear *linear, const Path *path) {
    Path *copy = path_new(linear);
    copy->count = path->count;
    copy->capacity = chunks_of(path->count);
    copy->chunks = NEW_ARRAY(linear->arena, HoldChunk *, copy->capacity + 1);
    if (copy->capacity) memcpy(copy->chunks, path->chunks, copy->capacity * sizeof *copy->chunks);
    *path->owner = ++linear->owners;
    return copy;
}

const Hold *path_hold(const Path *path, size_t slot) {
    return &path->chunks[slot / CHUNK]->holds[slot % CHUNK];
}

Hold *path_change(Linear *linear, Path *path, size_t slot) {
    HoldChunk *chunk = path->chunks[slot / CHUNK];
    if (chunk->owner != *path->owner) {
        HoldChunk *own = NEW(linear->arena, HoldChunk);
        *own = *chunk;
        own->owner = *path->owner;
        chunk = path->chunks[slot / CHUNK] = own;
    }
    return &chunk->holds[slot % CHUNK];
}

Hold *path_push(Linear *linear, Path *path) {
    size_t slot = path->count++, chunk = slot / CHUNK;
    if (slot % CHUNK != 0) return path_change(linear, path, slot);
    if (chunk < path->capacity && path->chunks[chunk] &&
        path->chunks[chunk]->owner == *path->owner) /* of variables that have left their scope */
        return &path->chunks[chunk]->holds[0];
    if (chunk >= path->capacity) {
        size_t wanted = path->capacity * 2 + 1;
        path->chunks =
            arena_grow(linear->arena, path->chunks, path->capacity * sizeof *path->chunks,
                       wanted * sizeof *path->chunks);
        path->capacity = wanted;
    }
    path->chunks[chunk] = NEW(linear->arena, HoldChunk);
    path->chunks[chunk]->owner = *path->owner;
    return &path->chunks[chunk]->holds[0];
}

size_t path_differs(const Path *a, const Path *b, size_t slot, size_t count) {
    while (slot < count && a->chunks[slot / CHUNK] == b->chunks[slot / CHUNK])
        slot = (slot / CHUNK + 1) * CHUNK;
    return slot;
}

/* Held on only one path: poison, which linear_meets has reported. The first of two places is
 * kept. */
static bool join_hold(Hold *to, const Hold *from) {
    if (to->state == STATE_POISON) return false;
    if (from->state == STATE_POISON || is_held(to) != is_held(from)) {
        to->state = STATE_POISON;
        return true;
    }
    int acquired = from->acquired < to->acquired ? from->acquired : to->acquired;
    if (from->since < to->since) *to = *from;
    to->acquired = acquired;
    return false;
}

bool path_join(Linear *linear, Path *to, const Path *from) {
    bool changed = false;
    assert(from->count == to->count);
    for (size_t i = path_differs(to, from, 0, to->count); i < to->count;
         i = path_differs(to, from, i + 1, to->count))
        changed |= join_hold(path_change(linear, to, i), path_hold(from, i));
    return changed;
}
