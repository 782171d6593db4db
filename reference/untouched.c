/* reference: elements that were never written. Finds the elements of a result that still hold
 * the poison of launch/: NaN or its bytes. */
#include "reference/code.h"

#include <math.h>
#include <string.h>

#define LISTED_MAX 4096
/* One byte of poison may be a result; a run of eight is not. */
#define BYTE_RUN 8

static void poison_of(Element type, unsigned char *out) {
    memset(out, GUARD_BYTE, 8);
    if (is_number(type)) element_store(type, out, (double)NAN);
}

bool element_untouched(Element type, const unsigned char *at) {
    unsigned char poison[8];
    poison_of(type, poison);
    return memcmp(at, poison, (size_t)element_rows[type].bytes) == 0;
}

static void list(Untouched *out, int64_t from, int64_t to) {
    for (int64_t i = from; i < to && out->listed < LISTED_MAX; i++) out->first[out->listed++] = i;
    out->count += to - from;
}

void untouched_find(Arena *arena, const Array *array, Untouched *out) {
    *out = (Untouched){.first = NEW_ARRAY(arena, int64_t, LISTED_MAX)};
    unsigned char poison[8];
    poison_of(array->type, poison);
    size_t bytes = (size_t)element_rows[array->type].bytes;
    int64_t least = element_rows[array->type].bytes == 1 ? BYTE_RUN : 1, run = 0;
    for (int64_t i = 0; i <= array->count; i++) {
        bool same = i < array->count && array->data[(size_t)i * bytes] == poison[0] &&
                    memcmp(array->data + (size_t)i * bytes, poison, bytes) == 0;
        if (same) {
            run++;
            continue;
        }
        if (run >= least || (run > 0 && run == array->count)) list(out, i - run, i);
        run = 0;
    }
}
