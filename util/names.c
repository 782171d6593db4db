/* Names: maps a spelling to one pointer; finds the most similar of several spellings; knows names
 * of other languages.
 *
 * An open hash table with a power of two as size, at most half full. The texts live as long as
 * the arena. */
#include "util/util.h"

#include <string.h>
#include <strings.h>

typedef struct Slot {
    const char *text; /* NULL: free */
    uint32_t length, hash;
} Slot;

struct Names {
    Arena *arena;
    Slot *slots;
    size_t capacity, count;
};

Names *names_new(Arena *arena) {
    Names *names = NEW(arena, Names);
    names->arena = arena;
    names->capacity = 256;
    names->slots = NEW_ARRAY(arena, Slot, names->capacity);
    return names;
}

static Slot *find(Slot *slots, size_t capacity, const char *text, size_t length, uint32_t hash) {
    for (size_t i = (size_t)hash & (capacity - 1);; i = (i + 1) & (capacity - 1)) {
        Slot *slot = &slots[i];
        if (!slot->text) return slot;
        if (slot->hash == hash && slot->length == length && memcmp(slot->text, text, length) == 0)
            return slot;
    }
}

static void enlarge(Names *names) {
    size_t capacity = names->capacity * 2;
    Slot *slots = NEW_ARRAY(names->arena, Slot, capacity);
    for (size_t i = 0; i < names->capacity; i++) {
        const Slot *old = &names->slots[i];
        if (old->text) *find(slots, capacity, old->text, old->length, old->hash) = *old;
    }
    arena_drop(names->arena, names->slots);
    names->slots = slots;
    names->capacity = capacity;
}

/* The text of a name has its number before it. */
static const char *numbered(Arena *arena, uint32_t number, const char *text, size_t length) {
    char *piece = arena_alloc(arena, sizeof number + length + 1);
    memcpy(piece, &number, sizeof number);
    return memcpy(piece + sizeof number, text, length);
}

uint32_t names_number(const char *name) {
    uint32_t number;
    memcpy(&number, name - sizeof number, sizeof number);
    return number;
}

const char *names_intern(Names *names, const char *text, size_t length) {
    uint32_t hash = (uint32_t)fnv1a(FNV_START, text, length);
    Slot *slot = find(names->slots, names->capacity, text, length, hash);
    if (slot->text) return slot->text;
    const char *copy = numbered(names->arena, (uint32_t)names->count, text, length);
    *slot = (Slot){.text = copy, .length = (uint32_t)length, .hash = hash};
    if (++names->count * 2 > names->capacity) enlarge(names);
    return copy;
}

/* ---- did you mean ---------------------------------------------------------------------------- */

#define LONGEST 64 /* longer names get no suggestion */

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Number of insertions, deletions, replacements and swaps of adjacent characters that turn `a`
 * into `b` */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t rows[3][LONGEST + 1];
    for (size_t j = 0; j <= b_length; j++) rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t replaced = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least(replaced, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

const char *closest_name(const char *wanted, const char *const *candidates, size_t count) {
    size_t length = strlen(wanted);
    if (length > LONGEST) return NULL;
    size_t best = length / 3 > 1 ? length / 3 : 1;
    const char *closest = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t other = strlen(candidates[i]);
        if (other > LONGEST || other > length + best || length > other + best) continue;
        size_t changes = distance(wanted, length, candidates[i], other);
        /* nothing in common */
        if (changes >= length && changes >= other && strcasecmp(wanted, candidates[i]) != 0)
            continue;
        if (changes < best || (changes == best && !closest)) {
            best = changes;
            closest = candidates[i];
        }
    }
    return closest;
}

/* ---- names of other languages ---------------------------------------------------------------- */

typedef enum ForeignKind { FOREIGN_IS_TYPE, FOREIGN_IS_FUNCTION, FOREIGN_IS_NAME } ForeignKind;

typedef struct Foreign {
    const char *name, *instead;
    ForeignKind kind;
} Foreign;

static const Foreign foreign_rows[] = {
#define FOREIGN_TYPE(name, type)         {name, type, FOREIGN_IS_TYPE},
#define FOREIGN_FUNCTION(name, function) {name, function, FOREIGN_IS_FUNCTION},
#define FOREIGN_NAME(name, advice)       {name, advice, FOREIGN_IS_NAME},
#include "util/foreign.def"
#undef FOREIGN_TYPE
#undef FOREIGN_FUNCTION
#undef FOREIGN_NAME
};

static const char *foreign(const char *text, size_t length, ForeignKind kind) {
    for (size_t i = 0; i < COUNT_OF(foreign_rows); i++) {
        const Foreign *row = &foreign_rows[i];
        size_t own = strlen(row->name);
        bool begins = row->name[own - 1] == '*';
        if (row->kind == kind && (begins ? length >= own - 1 : length == own) &&
            memcmp(row->name, text, own - begins) == 0)
            return row->instead;
    }
    return NULL;
}

const char *foreign_type(const char *text, size_t length) {
    return foreign(text, length, FOREIGN_IS_TYPE);
}

const char *foreign_function(const char *name) {
    return foreign(name, strlen(name), FOREIGN_IS_FUNCTION);
}

const char *foreign_advice(const char *name) {
    return foreign(name, strlen(name), FOREIGN_IS_NAME);
}
