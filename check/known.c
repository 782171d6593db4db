/* Results of passes for combinations of statics of one kernel: a list of keys, compared in full. */
#include "check/known.h"

#include <string.h>

#define BYTES_MOST (8u << 20) /* total size of the keys: about 500 programs of usual size */

struct Known {
    Arena *arena;
    VEC(KnownCode *) items;
    size_t bytes; /* total size of their keys */
};

Known *known_new(Arena *arena) {
    Known *known = NEW(arena, Known);
    known->arena = arena;
    return known;
}

static uint64_t sum_of(const Key *key) {
    uint64_t sum = 0;
    for (size_t i = 0; i < key->words.count; i++) sum += key->words.items[i] * (2 * i + 1);
    return sum;
}

KnownCode *known_find(Known *known, const Key *key) {
    size_t bytes = key->words.count * sizeof *key->words.items;
    uint64_t sum = sum_of(key);
    for (size_t i = 0; i < known->items.count; i++) {
        KnownCode *entry = known->items.items[i];
        if (entry->sum == sum && entry->count == key->words.count &&
            memcmp(entry->words, key->words.items, bytes) == 0)
            return entry;
    }
    if (bytes > BYTES_MOST - known->bytes) return NULL;
    KnownCode *entry = NEW(known->arena, KnownCode);
    uint32_t *words = NEW_ARRAY(known->arena, uint32_t, key->words.count);
    memcpy(words, key->words.items, bytes);
    *entry = (KnownCode){.words = words, .count = key->words.count, .sum = sum};
    known->bytes += bytes;
    vec_push(known->arena, &known->items, entry);
    return entry;
}

/* ---- stages, for the pass `written` ---------------------------------------------------------- */

static size_t rows_of(const Prog *prog, size_t role) {
    return prog->roles.items[role].code->rows.count;
}

void known_keep_stages(Known *known, KnownCode *entry, const Prog *prog) {
    size_t roles = prog->roles.count, pipes = prog->pipes.count;
    entry->stages = NEW_ARRAY(known->arena, StageOrder, roles + 1);
    for (size_t r = 0; r < roles; r++) {
        const StageOrder *from = &prog->plan->roles[r].stages;
        bool *waits = NEW_ARRAY(known->arena, bool, rows_of(prog, r) + 1);
        uint32_t *bytes = NEW_ARRAY(known->arena, uint32_t, pipes + 1);
        memcpy(waits, from->waits, rows_of(prog, r) * sizeof *waits);
        memcpy(bytes, from->bytes, pipes * sizeof *bytes);
        entry->stages[r] = (StageOrder){waits, bytes};
    }
}

bool known_has_stages(const KnownCode *entry, const Prog *prog) {
    for (size_t r = 0; r < prog->roles.count; r++) {
        const StageOrder *a = &prog->plan->roles[r].stages, *b = &entry->stages[r];
        if (memcmp(a->waits, b->waits, rows_of(prog, r) * sizeof *a->waits) != 0 ||
            memcmp(a->bytes, b->bytes, prog->pipes.count * sizeof *a->bytes) != 0)
            return false;
    }
    return true;
}
