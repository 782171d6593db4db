/* What is the same in all tiles of the grid: it does not matter in which tile of a block it
 * happens. A stage that is filled so may have been acquired in an earlier tile than it is filled
 * in, and a pipe of such stages may be consumed in other tiles than it is produced in. */
#include "check/grid/carried.h"

#define LETS_MOST 64 /* most lets in a chain */

typedef struct Same {
    Arena *arena;
    const Role *role;
    bool is;
    int lets;
} Same;

static void visit(Expr *expr, void *data) {
    Same *same = data;
    bool other = expr->kind == X_READ || expr->kind == X_AXIS || expr->kind == X_POISON;
    if (other) same->is = false;
    if (expr->kind != X_LOCAL || !same->is) return;
    const Local *local = &same->role->locals.items[expr->index];
    same->is = local->kind == LOCAL_LET && local->value && --same->lets > 0;
    if (same->is) expr_visit(same->arena, local->value, visit, same);
}

bool carried_is_same(Arena *arena, const Role *role, Expr *expr) {
    Same same = {arena, role, true, LETS_MOST};
    if (expr) expr_visit(arena, expr, visit, &same);
    return same.is;
}

/* No statement leaves a region early, so only the enclosing regions decide. */
static bool is_always_executed(const FlowCode *code, int at) {
    for (size_t row = 0; row < code->rows.count; row++)
        if (code->rows.items[row].kind == ROW_LEAVE) return false;
    for (int r = code->rows.items[at].region; r >= 0; r = code->regions.items[r].parent)
        if (code->regions.items[r].kind == REGION_IF || code->regions.items[r].kind == REGION_FOR)
            return false;
    return true;
}

/* An instance in turn has some of the tiles, and its rank tells which. */
bool carried_writes_same(Arena *arena, const FlowCode *code, int at) {
    const Tile *tile = code->rows.items[at].tile;
    const Access *target = &tile->target;
    bool same = tile->op == ASSIGN_SET && tile->value && !code->role->in_turn &&
                carried_is_same(arena, code->role, tile->value) &&
                carried_is_same(arena, code->role, tile->where) &&
                carried_is_same(arena, code->role, target->element);
    for (int d = 0; d < target->rank && same; d++)
        same = carried_is_same(arena, code->role, target->subs[d]);
    return same && is_always_executed(code, at);
}

bool carried_fills_same(Arena *arena, const FlowCode *producer, int pipe) {
    for (size_t at = 0; at < producer->rows.count; at++) {
        const Row *row = &producer->rows.items[at];
        if (row->kind == ROW_UNSAFE) return false;
        if (row->kind != ROW_TILE || row->tile->target.space != SPACE_STAGE) continue;
        bool of_pipe = producer->role->handles.items[row->tile->target.object].pipe == pipe;
        if (of_pipe && !carried_writes_same(arena, producer, (int)at)) return false;
    }
    return true;
}
