/* Records of accesses. Lists are constant and counted: cells and other lists share them, and a
 * change makes a new list, which shares the unchanged end. */
#include "emulator/races/shadow.h"

#include <assert.h>
#include <string.h>

enum {
    LANES_OF_A_WARP = 32,
    PAGE = 256,    /* granules */
    CHUNK = 4096,  /* records that are allocated at once */
    LOOKED_AT = 4, /* records that are compared only to find out which are superseded */
    REPEATS = 4,   /* newest reads among which a repeated one is looked for */
    WHOLE = 0xffff /* all bytes of a granule */
};

/* Strong accesses are in a list of their own, because they conflict only with the others. */
typedef enum ListKind { LIST_WRITES, LIST_READS, LIST_STRONG, LIST_COUNT } ListKind;
typedef struct Cell {
    uint32_t lists[LIST_COUNT]; /* 0: empty */
} Cell;

/* A change that applies to all granules of the access whose cells are equal to `from`, and of which
 * it accesses these bytes. Holds references to the lists of both, and counts the cells that were
 * changed. */
typedef struct Change {
    uint16_t bytes;
    Cell from, to;
    uint32_t count;
} Change;
/* Lanes that are a multiple of 4 bytes apart access at most 4 different parts of their granules */
enum { CHANGES = 4 };
typedef struct Changes {
    Change items[CHANGES];
    uint32_t begun; /* the last ones of these are known */
} Changes;

struct Plane {
    uint64_t first; /* number of its first granule */
    size_t page_count;
    Cell **pages;
    bool written; /* some access was a write */
};

/* What remains of a record after an access */
typedef struct Kept {
    uint32_t id;
    uint16_t bytes;
} Kept;

struct Shadow {
    Arena *arena;
    VEC(Record *) chunks;
    uint32_t free;   /* first unused record */
    uint32_t random; /* see most_of */
    size_t pages, records;
    VEC(Kept) kept;      /* of the list that is being compared */
    VEC(uint32_t) slots; /* of threads, see tidy */
    Changes changes;     /* by the present access, or by the parts of the last one */
};

Shadow *shadow_new(Arena *arena) {
    Shadow *shadow = NEW(arena, Shadow);
    shadow->arena = arena;
    return shadow;
}

Plane *plane_new(Arena *arena, uint64_t base, uint64_t bytes) {
    Plane *plane = NEW(arena, Plane);
    plane->first = base / GRANULE;
    plane->page_count = (size_t)((base + bytes) / GRANULE - plane->first) / PAGE + 1;
    plane->pages = NEW_ARRAY(arena, Cell *, plane->page_count);
    return plane;
}

static void finish_changes(Shadow *shadow);

size_t shadow_bytes(Shadow *shadow) {
    finish_changes(shadow);
    return shadow->pages * PAGE * sizeof(Cell) + shadow->records * sizeof(Record);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static Record *record_at(const Shadow *shadow, uint32_t id) {
    return &shadow->chunks.items[id / CHUNK][id % CHUNK];
}

static void add_chunk(Shadow *shadow) {
    Record *chunk = NEW_ARRAY(shadow->arena, Record, CHUNK);
    uint32_t base = (uint32_t)shadow->chunks.count * CHUNK;
    vec_push(shadow->arena, &shadow->chunks, chunk);
    for (uint32_t i = CHUNK; i-- > (base == 0 ? 1 : 0);) { /* record 0 is the end of lists */
        chunk[i].next = shadow->free;
        shadow->free = base + i;
    }
}

static uint32_t retain(const Shadow *shadow, uint32_t list) {
    if (list) record_at(shadow, list)->references++;
    return list;
}

static void release(Shadow *shadow, uint32_t list) {
    while (list) {
        Record *record = record_at(shadow, list);
        uint32_t next = record->next;
        if (--record->references) return;
        record->next = shadow->free;
        shadow->free = list;
        shadow->records--;
        list = next;
    }
}

/* A list of a record and `next`, whose reference it takes */
static uint32_t prepend(Shadow *shadow, const Touch *touch, uint16_t bytes, uint32_t next) {
    if (!shadow->free) add_chunk(shadow);
    uint32_t id = shadow->free;
    Record *record = record_at(shadow, id);
    shadow->free = record->next;
    shadow->records++;
    const Record *older = record_at(shadow, next);
    *record =
        (Record){.touch = *touch,
                 .references = 1,
                 .next = next,
                 .bytes = bytes,
                 .length = next ? older->length + 1u : 1,
                 .alike = !next || (older->alike && older->touch.statement == touch->statement)};
    return id;
}

/* ---- one granule ----------------------------------------------------------------------------- */

typedef struct Visit {
    Shadow *shadow;
    const Touch *touch;
    const Judge *judge;
    uint64_t address; /* of the granule */
    uint16_t bytes;   /* of the granule that are accessed */
    bool many;        /* there are further granules */
    bool everywhere;  /* all answers so far hold for all granules of the access */
    bool race;
    bool ordered; /* the record that was compared last is ordered before */
    bool alike;   /* it is not, and decides for the older ones, see CONFLICT_ALIKE */
    /* Bytes of which a record that is ordered before has observed the next older write */
    uint16_t observed;
} Visit;

enum { WEAK, STRONG_IN_BLOCK, STRONG_IN_CLUSTER, STRONG };

static int strength(const Touch *touch) {
    return !(touch->flags & TOUCH_STRONG) ? WEAK
           : touch->flags & TOUCH_BLOCK   ? STRONG_IN_BLOCK
           : touch->flags & TOUCH_CLUSTER ? STRONG_IN_CLUSTER
                                          : STRONG;
}

/* True if the scope of the fresh access, which is less than the device, has the thread of `old` */
static bool in_scope(const Judge *judge, const Touch *fresh, const Touch *old) {
    uint32_t block = LANES_OF_A_WARP * judge->warps;
    if (old->cluster != fresh->cluster || (old->flags & TOUCH_OPERATION)) return false;
    return strength(fresh) == STRONG_IN_CLUSTER ||
           (block && old->component / block == fresh->component / block);
}

/* True if whatever conflicts with `old`, and comes later, conflicts with `fresh` too */
static bool supersedes(const Judge *judge, const Touch *fresh, const Touch *old) {
    int own = strength(fresh);
    if (!(fresh->flags & TOUCH_WRITE) && (old->flags & TOUCH_WRITE)) return false;
    /* what it has observed must remain known, see note_observed */
    if ((old->flags & TOUCH_OBSERVES) && own == STRONG && (fresh->flags & TOUCH_WRITE) &&
        !(fresh->flags & TOUCH_ATOMIC))
        return false;
    return own <= strength(old) && (own == WEAK || own == STRONG || in_scope(judge, fresh, old));
}

/* A write that a strong read observes is before all that is after the read, also without a release;
 * but what is before the write is not (PTX ISA 8.9.5). Older writes of these bytes: has a read
 * observed them that is ordered before the access? It observes the newest write, and through atomic
 * operations those before. */
static void note_observed(Visit *visit, const Record *old) {
    uint32_t flags = old->touch.flags;
    if (strength(&old->touch) != STRONG) return;
    if ((flags & TOUCH_WRITE) && !(flags & TOUCH_ATOMIC)) visit->observed &= (uint16_t)~old->bytes;
    if (visit->ordered && (flags & TOUCH_OBSERVES)) visit->observed |= old->bytes;
}

static bool is_observed(const Visit *visit, const Record *old, uint32_t common) {
    return strength(&old->touch) == STRONG && !(old->touch.flags & TOUCH_OPERATION) &&
           !(common & ~visit->observed);
}

/* Bytes of an earlier access that remain recorded */
static uint16_t remaining(Visit *visit, const Record *old, bool may_conflict) {
    const Judge *judge = visit->judge;
    const Touch *touch = &old->touch;
    uint32_t common = old->bytes & visit->bytes, unordered = 0;
    if (common)
        unordered =
            judge->unordered(judge->data, touch, common, visit->address, &visit->everywhere);
    visit->ordered = common && !unordered;
    visit->alike = false;
    bool conflict =
        unordered && may_conflict && ((visit->touch->flags | touch->flags) & TOUCH_WRITE);
    if (conflict && (touch->flags & TOUCH_WRITE) && is_observed(visit, old, common)) {
        unordered = 0;
    } else if (conflict) {
        Conflict verdict =
            judge->conflict(judge->data, touch, unordered, visit->address, &visit->everywhere);
        visit->race = verdict == CONFLICT_RACE;
        visit->alike = verdict == CONFLICT_ALIKE && old->alike && unordered == visit->bytes;
    }
    bool remains = common == unordered || !supersedes(judge, visit->touch, touch);
    return remains ? old->bytes : (uint16_t)(old->bytes & (~common | unordered));
}

/* Number of records of the list to look at. If nothing in it can conflict, these are few; but a
 * list of n records is read to its end, and tidied, LOOKED_AT times in n, at random, so that it
 * stays in proportion to the number of threads. */
static uint32_t most_of(Shadow *shadow, uint32_t list, bool may_conflict) {
    uint32_t length = list ? record_at(shadow, list)->length : 0;
    if (may_conflict || length <= LOOKED_AT) return length;
    shadow->random = shadow->random * 1664525u + 1013904223u;
    return (shadow->random >> 8) % length < LOOKED_AT ? length : LOOKED_AT;
}

static uint32_t slot_of(const Touch *touch, uint32_t slots) {
    return (touch->component * 2654435761u ^ touch->cluster * 2246822519u ^ touch->lanes) % slots;
}

static bool same_threads(const Touch *a, const Touch *b) {
    return a->component == b->component && a->cluster == b->cluster && a->lanes == b->lanes &&
           a->start == b->start && a->stride == b->stride && a->flags == b->flags &&
           !(a->flags & TOUCH_OPERATION);
}

/* Removes what the same threads have accessed in the same way again, whoever accesses now. Records
 * that share a slot hide each other, which only keeps some of them. Returns the number of records
 * up to the last one that has changed. */
static size_t tidy(Shadow *shadow, size_t changed) {
    uint32_t slots = (uint32_t)shadow->kept.count * 2;
    while (shadow->slots.count < slots) vec_push(shadow->arena, &shadow->slots, 0);
    memset(shadow->slots.items, 0, slots * sizeof *shadow->slots.items);
    for (size_t i = 0; i < shadow->kept.count; i++) {
        Kept *kept = &shadow->kept.items[i];
        const Record *old = record_at(shadow, kept->id);
        uint32_t *slot = &shadow->slots.items[slot_of(&old->touch, slots)];
        const Record *newer = *slot ? record_at(shadow, *slot) : NULL;
        if (newer && same_threads(&newer->touch, &old->touch) && (kept->bytes & newer->bytes)) {
            kept->bytes &= (uint16_t)~newer->bytes;
            changed = i + 1;
        }
        *slot = kept->id;
    }
    return changed;
}

/* True if only the cell has these first records of its list */
static bool is_exclusive(const Shadow *shadow, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (record_at(shadow, shadow->kept.items[i].id)->references != 1) return false;
    return true;
}

/* The list, with a reference more, after the first `changed` records have become what is kept of
 * them. The cell's list becomes one that is only good for being released. */
static uint32_t change_in_place(Shadow *shadow, size_t changed) {
    uint32_t next = record_at(shadow, shadow->kept.items[changed - 1].id)->next;
    while (changed-- > 0) {
        Kept kept = shadow->kept.items[changed];
        Record *record = record_at(shadow, kept.id);
        if (!kept.bytes) continue;
        uint32_t before = record->next;
        record->bytes = kept.bytes;
        record->length = next ? record_at(shadow, next)->length + 1u : 1;
        if (before != next) {
            record->next = retain(shadow, next);
            release(shadow, before);
        }
        next = kept.id;
    }
    return retain(shadow, next);
}

/* The same in records of its own */
static uint32_t change_copy(Shadow *shadow, size_t changed) {
    uint32_t last = shadow->kept.items[changed - 1].id;
    uint32_t result = retain(shadow, record_at(shadow, last)->next);
    while (changed-- > 0) {
        Kept kept = shadow->kept.items[changed];
        if (kept.bytes)
            result = prepend(shadow, &record_at(shadow, kept.id)->touch, kept.bytes, result);
    }
    return result;
}

/* The list without what the access supersedes */
static uint32_t compare_list(Visit *visit, uint32_t list, bool may_conflict) {
    Shadow *shadow = visit->shadow;
    size_t changed = 0;
    visit->observed = 0;
    uint32_t id = list, most = most_of(shadow, list, may_conflict);
    shadow->kept.count = 0;
    while (id && shadow->kept.count < most) {
        const Record *old = record_at(shadow, id);
        Kept kept = {id, remaining(visit, old, may_conflict)};
        if (visit->race) return retain(shadow, list);
        note_observed(visit, old);
        vec_push(shadow->arena, &shadow->kept, kept);
        id = old->next;
        if (kept.bytes != old->bytes) changed = shadow->kept.count;
        if (visit->alike && may_conflict) {
            may_conflict = false;
            most = (uint32_t)shadow->kept.count + most_of(shadow, id, false);
        }
    }
    if (!id && most > LOOKED_AT && !may_conflict) changed = tidy(shadow, changed);
    if (!changed) return retain(shadow, list);
    if (!is_exclusive(shadow, changed)) return change_copy(shadow, changed);
    visit->everywhere = false; /* there is no other cell with this list */
    return change_in_place(shadow, changed);
}

static bool same_origin(const Touch *a, const Touch *b) {
    return a->component == b->component && a->time == b->time && a->cluster == b->cluster &&
           a->lanes == b->lanes && a->start == b->start && a->stride == b->stride &&
           a->flags == b->flags && a->instance == b->instance;
}

static ListKind list_of(const Touch *touch) {
    return strength(touch) == STRONG    ? LIST_STRONG
           : touch->flags & TOUCH_WRITE ? LIST_WRITES
                                        : LIST_READS;
}

/* The only thread that accesses these bytes of a granule; UINT32_MAX: there are several */
static uint32_t only_thread(const Touch *touch, uint16_t bytes, uint64_t address) {
    if (touch->lanes)
        return touch->lanes & (touch->lanes - 1)
                   ? UINT32_MAX
                   : touch->component + (uint32_t)__builtin_ctz(touch->lanes);
    uint32_t first = touch_thread(touch, address + (uint32_t)__builtin_ctz(bytes)),
             last = touch_thread(touch, address + 31u - (uint32_t)__builtin_clz(bytes));
    return first == last ? first : UINT32_MAX;
}

/* True if the earlier access is by the same threads or the same operation, in the same way and at
 * the same time, or in this granule by the same one thread */
static bool repeats(const Touch *touch, const Touch *old, uint16_t bytes, uint64_t address) {
    if (same_origin(old, touch)) return true;
    if (touch->flags != old->flags || (touch->flags & TOUCH_OPERATION) ||
        touch->cluster != old->cluster || touch->time != old->time || (touch->lanes && old->lanes))
        return false;
    uint32_t thread = only_thread(touch, bytes, address);
    return thread != UINT32_MAX && thread == only_thread(old, bytes, address);
}

/* True if one of the newest reads covers this one. A write since then would have removed it, or be
 * a race. */
static bool is_read_again(const Visit *visit, uint32_t list) {
    for (int i = 0; list && i < REPEATS; i++) {
        const Record *old = record_at(visit->shadow, list);
        if (!(visit->bytes & ~old->bytes) &&
            repeats(visit->touch, &old->touch, visit->bytes, visit->address))
            return true;
        list = old->next;
    }
    return false;
}

/* True if these threads or this operation have accessed the bytes in the same way, at the same
 * time, and nothing was recorded since that they must be compared with */
static bool is_recorded(const Visit *visit, const Cell *cell) {
    ListKind kind = list_of(visit->touch);
    if (!cell->lists[kind]) return false;
    if (kind == LIST_READS) return is_read_again(visit, cell->lists[LIST_READS]);
    const Record *newest = record_at(visit->shadow, cell->lists[kind]);
    if ((visit->bytes & ~newest->bytes) || !same_origin(&newest->touch, visit->touch)) return false;
    if (kind == LIST_WRITES && (newest->next || cell->lists[LIST_STRONG])) return false;
    return !cell->lists[LIST_READS] && (kind == LIST_WRITES || !cell->lists[LIST_WRITES]);
}

/* Adds lanes to the newest record if they only differ in that; takes the list's reference */
static uint32_t record_touch(Shadow *shadow, const Touch *touch, uint16_t bytes, uint32_t list) {
    if (list && touch->lanes) {
        const Record *newest = record_at(shadow, list);
        Touch joined = *touch;
        joined.lanes = newest->touch.lanes;
        if (newest->bytes == bytes && joined.lanes && touch->pc == newest->touch.pc &&
            !(touch->flags & TOUCH_OPERATION) && same_origin(&joined, &newest->touch)) {
            joined.lanes |= touch->lanes;
            uint32_t next = retain(shadow, newest->next);
            release(shadow, list);
            return prepend(shadow, &joined, bytes, next);
        }
    }
    return prepend(shadow, touch, bytes, list);
}

/* The cell after the access; holds references of its own */
static void next_cell(Visit *visit, const Cell *old, Cell *fresh) {
    static const bool may_conflict[LIST_COUNT][LIST_COUNT] = {
        [LIST_WRITES] = {true, true, true},
        [LIST_READS] = {[LIST_WRITES] = true, [LIST_STRONG] = true},
        [LIST_STRONG] = {[LIST_WRITES] = true, [LIST_READS] = true}};
    ListKind own = list_of(visit->touch);
    for (int i = 0; i < LIST_COUNT; i++)
        fresh->lists[i] =
            visit->race ? 0 : compare_list(visit, old->lists[i], may_conflict[own][i]);
    if (!visit->race)
        fresh->lists[own] =
            record_touch(visit->shadow, visit->touch, visit->bytes, fresh->lists[own]);
}

/* ---- many granules --------------------------------------------------------------------------- */

static bool equal_cells(const Cell *a, const Cell *b) { return memcmp(a, b, sizeof *a) == 0; }

static void finish_change(Shadow *shadow, Change *change) {
    for (int i = 0; i < LIST_COUNT; i++) {
        uint32_t from = change->from.lists[i], to = change->to.lists[i];
        if (to) record_at(shadow, to)->references += change->count;
        release(shadow, to);
        if (from) record_at(shadow, from)->references -= change->count;
        release(shadow, from);
    }
}

static uint32_t known_changes(const Changes *changes) {
    return changes->begun < CHANGES ? changes->begun : CHANGES;
}

static void finish_changes(Shadow *shadow) {
    for (uint32_t i = 0; i < known_changes(&shadow->changes); i++)
        finish_change(shadow, &shadow->changes.items[i]);
    shadow->changes.begun = 0;
}

static void start_change(Shadow *shadow, uint16_t bytes, const Cell *from, const Cell *to) {
    Changes *changes = &shadow->changes;
    Change *change = &changes->items[changes->begun % CHANGES];
    if (changes->begun++ >= CHANGES) finish_change(shadow, change);
    *change = (Change){.bytes = bytes, .from = *from, .to = *to};
    for (int i = 0; i < LIST_COUNT; i++) {
        retain(shadow, from->lists[i]);
        retain(shadow, to->lists[i]);
    }
}

/* Repeats a change. False: none applies. */
static bool change_again(Changes *changes, uint16_t bytes, Cell *cell) {
    for (uint32_t i = 0; i < known_changes(changes); i++) {
        Change *change = &changes->items[i];
        if (change->bytes != bytes || !equal_cells(cell, &change->from)) continue;
        *cell = change->to;
        change->count++;
        return true;
    }
    return false;
}

static bool touch_cell(Visit *visit, Cell *cell) {
    Shadow *shadow = visit->shadow;
    if (change_again(&shadow->changes, visit->bytes, cell)) return true;
    if (is_recorded(visit, cell)) return true;
    visit->everywhere = true;
    Cell fresh;
    next_cell(visit, cell, &fresh);
    if (visit->many && visit->everywhere && !visit->race)
        start_change(shadow, visit->bytes, cell, &fresh);
    for (int i = 0; i < LIST_COUNT; i++) {
        release(shadow, visit->race ? fresh.lists[i] : cell->lists[i]);
        if (!visit->race) cell->lists[i] = fresh.lists[i];
    }
    return !visit->race;
}

static Cell *page_of(Shadow *shadow, Plane *plane, uint64_t granule) {
    size_t page = (size_t)((granule - plane->first) / PAGE);
    assert(page < plane->page_count);
    if (!plane->pages[page]) {
        plane->pages[page] = NEW_ARRAY(shadow->arena, Cell, PAGE);
        shadow->pages++;
    }
    return plane->pages[page];
}

/* An access removes a write only to record a later one, so of the writes of the bytes, some are
 * left. */
static const Touch *find_write(const Shadow *shadow, const Cell *cell, uint16_t bytes,
                               uint32_t first, uint32_t *common) {
    static const ListKind kinds[] = {LIST_WRITES, LIST_STRONG};
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        for (uint32_t id = cell->lists[kinds[i]]; id; id = record_at(shadow, id)->next) {
            const Record *record = record_at(shadow, id);
            *common = record->bytes & bytes;
            if (*common && (record->touch.flags & TOUCH_WRITE) &&
                (int32_t)(record->touch.cluster - first) >= 0)
                return &record->touch;
        }
    return NULL;
}

bool plane_written(const Plane *plane) { return plane->written; }

const Touch *shadow_written(const Shadow *shadow, const Plane *plane, uint64_t address,
                            uint32_t bytes, uint32_t first, uint32_t *common) {
    uint64_t granule = address / GRANULE - plane->first;
    const Cell *page = plane->written ? plane->pages[granule / PAGE] : NULL;
    uint16_t mask = (uint16_t)(((1u << bytes) - 1) << address % GRANULE);
    return page ? find_write(shadow, &page[granule % PAGE], mask, first, common) : NULL;
}

bool shadow_access(Shadow *shadow, Plane *plane, const Touch *touch, uint64_t address,
                   uint64_t bytes, const Judge *judge) {
    uint64_t end = address + bytes;
    Visit visit = {.shadow = shadow,
                   .touch = touch,
                   .judge = judge,
                   .many = judge->part || address / GRANULE != (end - 1) / GRANULE};
    bool fine = true;
    if (!judge->again) finish_changes(shadow);
    plane->written |= (touch->flags & TOUCH_WRITE) != 0;
    for (uint64_t granule = address / GRANULE; fine && granule * GRANULE < end;) {
        Cell *page = page_of(shadow, plane, granule);
        uint64_t at = (granule - plane->first) % PAGE;
        for (; fine && at < PAGE && granule * GRANULE < end; at++, granule++) {
            uint64_t low = granule * GRANULE, skip = address > low ? address - low : 0,
                     left = end - low;
            visit.address = low;
            visit.bytes = (uint16_t)((WHOLE << skip) & (left < GRANULE ? (1 << left) - 1 : WHOLE));
            fine = touch_cell(&visit, &page[at]);
        }
    }
    return fine;
}

static bool touch_granule(Visit *visit, Plane *plane) {
    uint64_t granule = visit->address / GRANULE;
    Cell *page = page_of(visit->shadow, plane, granule);
    return touch_cell(visit, &page[(granule - plane->first) % PAGE]);
}

bool shadow_access_lanes(Shadow *shadow, Plane *plane, const Touch *touch, uint64_t address,
                         uint32_t piece, uint32_t lanes, const Judge *judge) {
    Visit visit = {.shadow = shadow, .touch = touch, .judge = judge, .many = true};
    uint32_t first = (uint32_t)__builtin_ctz(lanes);
    bool fine = true;
    finish_changes(shadow);
    plane->written |= (touch->flags & TOUCH_WRITE) != 0;
    for (; lanes && fine; lanes &= lanes - 1) {
        uint64_t at = address + (uint64_t)((uint32_t)__builtin_ctz(lanes) - first) * touch->stride,
                 end = at + piece;
        while (at < end && fine) {
            uint64_t low = at & ~(uint64_t)(GRANULE - 1),
                     stop = end < low + GRANULE ? end : low + GRANULE;
            if (visit.bytes && visit.address != low) { /* the lanes before have no more of it */
                fine = touch_granule(&visit, plane);
                visit.bytes = 0;
            }
            visit.address = low;
            visit.bytes |= (uint16_t)(((1u << (stop - at)) - 1) << (at - low));
            at = stop;
        }
    }
    return fine && touch_granule(&visit, plane);
}

void plane_clear(Shadow *shadow, Plane *plane) {
    finish_changes(shadow);
    for (size_t i = 0; i < plane->page_count; i++) {
        if (!plane->pages[i]) continue;
        for (uint32_t j = 0; j < PAGE; j++)
            for (int k = 0; k < LIST_COUNT; k++) release(shadow, plane->pages[i][j].lists[k]);
        memset(plane->pages[i], 0, PAGE * sizeof(Cell));
    }
}
