/* The order in which roles come to the loops and acquires of one list of rows, as if one script
 * had been given to all of them: where one role has a before b, a comes before b. The machine lets
 * that process go first which is furthest behind in it. Any order is right; in this one roles stay
 * together, and there are few states. */
#include "check/deadlock_search.h"

#define ROUNDS_MOST 16 /* where roles contradict each other, there is no such order */

typedef struct Item { /* of the rows in one iteration of a track */
    int outer;
    int track;         /* a loop; -1: the acquire number `count` of a pipe in the list */
    int pipe, count;
    int rank;          /* those that come before it have lower ones */
} Item;

typedef struct Order {
    Part *part;
    VEC(Item) items;
    bool changed;
} Order;

static int find_item(Order *o, Item wanted) {
    for (size_t i = 0; i < o->items.count; i++) {
        const Item *item = &o->items.items[i];
        if (item->outer == wanted.outer && item->track == wanted.track && item->pipe == wanted.pipe &&
            item->count == wanted.count)
            return (int)i;
    }
    vec_push(o->part->arena, &o->items, wanted);
    return (int)o->items.count - 1;
}

/* The item that begins with the row, in the list of the loop around it; -1: none does */
static int item_at(Order *o, const Side *side, int at, int *counts) {
    const Row *row = &side->slice->rows.items[at];
    const Region *region = &side->slice->regions.items[row->region];
    int loop = row->kind == ROW_LOOP ? side->loops[row->region].outer : region->loop;
    Item item = {.outer = loop < 0 ? -1 : side->loops[loop].track, .track = -1, .pipe = -1};
    if (row->kind == ROW_LOOP) {
        item.track = side->loops[row->region].track;
        return find_item(o, item);
    }
    if (row->kind != ROW_ACQUIRE || !side->taken[row->handle]) return -1;
    item.pipe = side->role->handles.items[row->handle].pipe;
    int pipe = part_pipe(o->part, item.pipe), lists = (int)o->part->pipes.count;
    item.count = counts[(loop + 1) * lists + pipe]++;
    return find_item(o, item);
}

/* The rows of a side in their order; in each list the items have rising ranks. */
static void rank_side(Order *o, Side *side, const int *items) {
    int *last = NEW_ARRAY(o->part->arena, int, side->slice->regions.count + 1);
    for (size_t at = 0; at < side->slice->rows.count; at++) {
        if (items[at] < 0) continue;
        const Row *row = &side->slice->rows.items[at];
        bool loops = row->kind == ROW_LOOP;
        int list = loops ? side->loops[row->region].outer : side->slice->regions.items[row->region].loop;
        Item *item = &o->items.items[items[at]];
        if (item->rank <= last[list + 1]) item->rank = last[list + 1] + 1, o->changed = true;
        last[list + 1] = item->rank;
    }
}

/* What comes next in its list, by row; NEVER: nothing does */
static void note_ranks(Order *o, Side *side, const int *items) {
    const FlowCode *slice = side->slice;
    int *next = NEW_ARRAY(o->part->arena, int, slice->regions.count + 1);
    for (size_t r = 0; r <= slice->regions.count; r++) next[r] = NEVER;
    side->ranks = NEW_ARRAY(o->part->arena, int, slice->rows.count + 1);
    for (size_t at = slice->rows.count; at-- > 0;) {
        const Row *row = &slice->rows.items[at];
        int list = slice->regions.items[row->region].loop;
        if (row->kind == ROW_LOOP) list = side->loops[row->region].outer;
        if (items[at] >= 0) next[list + 1] = o->items.items[items[at]].rank;
        side->ranks[at] = next[list + 1];
    }
}

void part_order(Part *part) {
    Order o = {.part = part, .changed = true};
    size_t count = part->sides.count;
    int **items = NEW_ARRAY(part->arena, int *, count + 1);
    for (size_t i = 0; i < count; i++) {
        Side *side = &part->sides.items[i];
        int *counts = NEW_ARRAY(part->arena, int, (side->slice->regions.count + 1) * part->pipes.count + 1);
        items[i] = NEW_ARRAY(part->arena, int, side->slice->rows.count + 1);
        for (size_t at = 0; at < side->slice->rows.count; at++) items[i][at] = item_at(&o, side, (int)at, counts);
    }
    for (int round = 0; round < ROUNDS_MOST && o.changed; round++) {
        o.changed = false;
        for (size_t i = 0; i < count; i++) rank_side(&o, &part->sides.items[i], items[i]);
    }
    for (size_t i = 0; i < count; i++) note_ranks(&o, &part->sides.items[i], items[i]);
}
