/* An order of the loops and acquires of all roles in one list of rows, as if they followed one
 * script: if one role has a before b, a precedes b. The search first runs the process that is
 * least advanced in this order. Every order of processes gives the same verdict; this one keeps
 * the processes close to each other, so that there are few states. */
#include "check/deadlock/deadlock_search.h"

/* most rounds; if the roles' orders contradict each other, there is no common one */
#define ROUNDS_MOST 64

typedef VEC(int) Numbers;

/* Items: the loops of a track, and acquire number n of a pipe in one iteration of a track */
typedef struct Order {
    Part *part;
    Numbers ranks;     /* by item: predecessors have lower ranks */
    int *loops;        /* by track: 1 + its item, 0: none yet */
    Numbers *acquires; /* by enclosing track, and pipe: items */
    bool changed;
} Order;

static int new_item(Order *o) {
    vec_push(o->part->arena, &o->ranks, 0);
    return (int)o->ranks.count - 1;
}

/* The loop whose list contains the row, -1: none. A LOOP belongs to the enclosing list. */
static int list_of(const Side *side, const Row *row) {
    if (row->kind == ROW_LOOP) return side->loops[row->region].outer;
    return side->slice->regions.items[row->region].loop;
}

/* The item that begins with the row, -1: none. counts: number of earlier acquires, by list and
 * pipe */
static int item_of(Order *o, const Side *side, const Row *row, size_t *counts) {
    int list = list_of(side, row);
    size_t pipes = o->part->pipes.count;
    if (row->kind == ROW_LOOP) {
        int *loop = &o->loops[side->loops[row->region].track];
        if (!*loop) *loop = 1 + new_item(o);
        return *loop - 1;
    }
    if (row->kind != ROW_ACQUIRE || !side->taken[row->handle]) return -1;
    size_t pipe = (size_t)part_pipe(o->part, side->role->handles.items[row->handle].pipe);
    int around = list < 0 ? -1 : side->loops[list].track;
    Numbers *acquires = &o->acquires[(size_t)(around + 1) * pipes + pipe];
    size_t number = counts[(size_t)(list + 1) * pipes + pipe]++;
    if (number == acquires->count) vec_push(o->part->arena, acquires, new_item(o));
    return acquires->items[number];
}

static int *items_of(Order *o, const Side *side) {
    size_t rows = side->slice->rows.count, regions = side->slice->regions.count;
    int *items = NEW_ARRAY(o->part->arena, int, rows + 1);
    size_t *counts = NEW_ARRAY(o->part->arena, size_t, (regions + 1) * o->part->pipes.count + 1);
    for (size_t at = 0; at < rows; at++)
        items[at] = item_of(o, side, &side->slice->rows.items[at], counts);
    return items;
}

/* Visits the rows of a side in order; the items of each list get ascending ranks. */
static void rank_side(Order *o, const Side *side, const int *items) {
    int *last = NEW_ARRAY(o->part->arena, int, side->slice->regions.count + 1);
    for (size_t at = 0; at < side->slice->rows.count; at++) {
        if (items[at] < 0) continue;
        int list = list_of(side, &side->slice->rows.items[at]);
        int *rank = &o->ranks.items[items[at]];
        if (*rank <= last[list + 1]) *rank = last[list + 1] + 1, o->changed = true;
        last[list + 1] = *rank;
    }
}

/* By row, the rank of the next item in its list; NEVER: none */
static void note_ranks(const Order *o, Side *side, const int *items) {
    const FlowCode *slice = side->slice;
    int *next = NEW_ARRAY(o->part->arena, int, slice->regions.count + 1);
    for (size_t r = 0; r <= slice->regions.count; r++) next[r] = NEVER;
    side->ranks = NEW_ARRAY(o->part->arena, int, slice->rows.count + 1);
    for (size_t at = slice->rows.count; at-- > 0;) {
        int list = list_of(side, &slice->rows.items[at]);
        if (items[at] >= 0) next[list + 1] = o->ranks.items[items[at]];
        side->ranks[at] = next[list + 1];
    }
}

void part_order(Part *part) {
    Order o = {.part = part, .changed = true};
    size_t count = part->sides.count, lists = part->tracks.count + 1;
    int **items = NEW_ARRAY(part->arena, int *, count + 1);
    o.loops = NEW_ARRAY(part->arena, int, lists);
    o.acquires = NEW_ARRAY(part->arena, Numbers, lists * part->pipes.count + 1);
    for (size_t i = 0; i < count; i++) items[i] = items_of(&o, &part->sides.items[i]);
    for (int round = 0; round < ROUNDS_MOST && o.changed; round++) {
        o.changed = false;
        for (size_t i = 0; i < count; i++) rank_side(&o, &part->sides.items[i], items[i]);
    }
    part->ordered = !o.changed;
    for (size_t i = 0; i < count; i++) note_ranks(&o, &part->sides.items[i], items[i]);
}
