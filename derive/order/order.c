/* What an instance waits for before each statement, because it has accessed the same elements
 * before: its threads, the copies that it has issued, a fence between proxies. Needs classes, and
 * what `written` finds about stages. */
#include "derive/edit.h"
#include "derive/order.h"

#include <stdlib.h>

/* ---- tensors --------------------------------------------------------------------------------- */

/* True if the bases of their subscripts are equal, and do not change in between */
static bool same_bases(Algebra *algebra, const Place *a, const Place *b) {
    for (int d = 0; d < a->access->rank; d++) {
        const Affine *one = &a->access->affine[d], *two = &b->access->affine[d];
        const Poly *base = one->is ? algebra_poly(algebra, a->role, one->base) : NULL;
        if (!base || !two->is || poly_changes(algebra, base) ||
            !poly_equal(base, algebra_poly(algebra, b->role, two->base)))
            return false;
    }
    return true;
}

static bool in_order(const Prog *prog, Algebra *algebra, const Place *a, const Place *b) {
    if (!a->write && !b->write) return true;
    if (a == b) return place_disjoint(prog, algebra, a, true);
    if (place_parts_disjoint(prog, algebra, a, b)) return true;
    return distribution_same(a->site, a->access, b->site, b->access) &&
           place_disjoint(prog, algebra, a, true) && same_bases(algebra, a, b);
}

/* `place` waits, if `before` came first. A role cannot wait for the reads of its own copies into a
 * stage. */
static void wait_for(RowOrder *order, const Place *place, const Place *before) {
    bool copy = place->transfer == TRANSFER_STORED || place->transfer == TRANSFER_LOADED;
    bool stored = before->transfer == TRANSFER_STORED, plain = before->transfer == TRANSFER_PLAIN;
    order->stores |= stored;
    order->fence |= plain && copy && before->write;
    order->threads |= plain || (stored && !copy);
}

static int by_object(const void *a, const void *b) {
    const Place *one = *(const Place *const *)a, *two = *(const Place *const *)b;
    if (one->role != two->role) return one->role < two->role ? -1 : 1;
    if (one->access->object != two->access->object)
        return one->access->object < two->access->object ? -1 : 1;
    return one < two ? -1 : one > two;
}

/* Accesses of one role to one tensor */
static void order_object(const Prog *prog, Algebra *algebra, const Place *const *places,
                         size_t count, RowOrder *const *orders) {
    bool writes = false;
    for (size_t i = 0; i < count; i++) writes |= places[i]->write;
    if (!writes) return;
    RowOrder *rows = orders[places[0]->role - prog->roles.items];
    bool disjoint = place_all_disjoint(prog, algebra, places, count);
    for (size_t i = 0; i < count; i++)
        for (size_t k = i; k < (disjoint ? i + 1 : count); k++) {
            const Place *a = places[i], *b = places[k];
            arena_count(algebra->arena, 4);
            /* one statement reads, then writes */
            if ((a->tile == b->tile && a != b) || in_order(prog, algebra, a, b)) continue;
            wait_for(&rows[a->row], a, b);
            wait_for(&rows[b->row], b, a);
        }
}

static void order_tensors(Arena *arena, const Prog *prog, RowOrder *const *orders) {
    Places places = {0};
    places_find(arena, prog, &places);
    if (!places.count) return;
    Algebra *algebra = algebra_new(arena, prog, NULL);
    const Place **sorted = NEW_ARRAY(arena, const Place *, places.count);
    for (size_t i = 0; i < places.count; i++) sorted[i] = &places.items[i];
    qsort(sorted, places.count, sizeof(const Place *), by_object);
    for (size_t i = 0, end; i < places.count; i = end) {
        for (end = i + 1; end < places.count; end++)
            if (sorted[end]->role != sorted[i]->role ||
                sorted[end]->access->object != sorted[i]->access->object)
                break;
        order_object(prog, algebra, sorted + i, end - i, orders);
    }
}

/* ---- statements ------------------------------------------------------------------------------ */

/* Several threads may still read the elements of a tensor of which they have replicas: one of them
 * writes. */
static bool has_readers(const Prog *prog, const Role *role, const Tile *tile) {
    Digit digits[2 * PROG_MAX_INDEXES + 1];
    return tile->spread != NULL && tile->target.space == SPACE_GLOBAL &&
           prog->params.items[tile->target.object].mode == PARAM_INOUT &&
           layout_replicas(tile->spread, role->warps * 32, digits) > 0;
}

/* `shared` tiles: other threads may still read the target, and the copy engine may read it next. */
static void order_row(const Prog *prog, const Role *role, int at, const Tile *tile,
                      RowOrder *order) {
    order->publishes = tile->target.space == SPACE_SHARED;
    order->threads = order->publishes || has_readers(prog, role, tile) ||
                     plan_role(prog, role)->stages.waits[at];
}

void order_find(Arena *arena, Prog *prog) {
    RowOrder **orders = NEW_ARRAY(arena, RowOrder *, prog->roles.count + 1);
    for (size_t r = 0; r < prog->roles.count; r++) {
        const Role *role = &prog->roles.items[r];
        const FlowCode *code = role->code;
        orders[r] = NEW_ARRAY(arena, RowOrder, code->rows.count + 1);
        edit_role(prog, role)->order = orders[r];
        for (size_t at = 0; at < code->rows.count; at++) {
            const Row *row = code_row(code, (int)at);
            if (row->kind == ROW_TILE && row->tile)
                order_row(prog, role, (int)at, row->tile, &orders[r][at]);
        }
    }
    Arena *scratch = arena_scratch(arena);
    order_tensors(scratch, prog, orders);
    arena_free(scratch);
}

void order_give(const Prog *prog, const StageOrder *stages) {
    for (size_t r = 0; r < prog->roles.count; r++)
        edit_role(prog, &prog->roles.items[r])->stages = stages[r];
}
