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

/* ---- payload, for the pass `written` --------------------------------------------------------- */

typedef enum Way { KEEP, GIVE, COMPARE } Way;

/* Stores, restores or compares the numbers of FACT_PAYLOAD: Tile.order of each row and
 * PipeUse.tx_bytes of each pipe. False if a number differs from the stored one. */
static bool pass_payload(Way way, int64_t *kept, const Prog *prog) {
    bool same = true;
    for (size_t r = 0; r < prog->roles.count; r++) {
        const FlowCode *code = prog->roles.items[r].code;
        for (size_t at = 0; at < code->rows.count; at++, kept++) {
            Tile *tile = code->rows.items[at].tile;
            if (tile == NULL) continue;
            if (way == KEEP) *kept = tile->order;
            if (way == GIVE) tile->order = (int)*kept;
            same = same && *kept == tile->order;
        }
        for (size_t p = 0; p < prog->pipes.count; p++, kept++) {
            PipeUse *use = prog->roles.items[r].pipes;
            if (use == NULL) continue;
            if (way == KEEP) *kept = use[p].tx_bytes;
            if (way == GIVE) use[p].tx_bytes = (uint32_t)*kept;
            same = same && *kept == use[p].tx_bytes;
        }
    }
    return same;
}

void known_keep_payload(Known *known, KnownCode *entry, const Prog *prog) {
    size_t count = 0;
    for (size_t r = 0; r < prog->roles.count; r++)
        count += prog->roles.items[r].code->rows.count + prog->pipes.count;
    entry->payload = NEW_ARRAY(known->arena, int64_t, count);
    (void)pass_payload(KEEP, entry->payload, prog);
}

void known_give_payload(const KnownCode *entry, const Prog *prog) {
    (void)pass_payload(GIVE, entry->payload, prog);
}

bool known_has_payload(const KnownCode *entry, const Prog *prog) {
    return pass_payload(COMPARE, entry->payload, prog);
}
