/* A role in turn: an iteration of another instance only advances the cursors. */
#include "derive/plan.h"
#include "flow/slice.h"

typedef struct Needed {
    Arena *arena;
    bool *locals; /* bounds or conditions of kept rows read them */
    bool changed;
} Needed;

/* Acquires advance cursors. Numbers of tiles are taken in all iterations, before this slice. */
static bool keeps(const FlowCode *code, const Row *row, const void *data) {
    const bool *needed = data;
    (void)code;
    return (row->kind == ROW_ACQUIRE && !row->every) ||
           (row->kind == ROW_SET && needed[row->local]);
}

static void need_local(Expr *expr, void *data) {
    Needed *needed = data;
    if (expr->kind != X_LOCAL || needed->locals[expr->index]) return;
    needed->locals[expr->index] = needed->changed = true;
}

static void need(Expr *expr, void *data) {
    const Needed *needed = data;
    expr_visit(needed->arena, expr, need_local, data);
}

/* Control of acquires, and the rows that compute its values, to the fixed point */
static FlowCode *slice(Arena *arena, const FlowCode *code) {
    Needed needed = {arena, NEW_ARRAY(arena, bool, code->role->locals.count + 1), true};
    FlowCode *kept = NULL;
    while (needed.changed) {
        needed.changed = false;
        kept = code_slice(arena, code, keeps, needed.locals);
        for (size_t at = 0; at < kept->rows.count; at++)
            row_exprs(kept, &kept->rows.items[at], need, &needed);
    }
    return kept;
}

/* By pipe, number of acquires in one iteration; NULL: not a constant */
static int64_t *acquires_of(Arena *arena, const FlowCode *code, const Region *loop) {
    if (loop->kind != REGION_FOR || loop->where) return NULL;
    int64_t *counts = NEW_ARRAY(arena, int64_t, code->prog->pipes.count + 1);
    for (int at = loop->begin + 1; at < loop->next; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind != ROW_ACQUIRE) return NULL;
        counts[code->role->handles.items[row->handle].pipe]++;
    }
    return counts;
}

/* The loop over the grid; -1: it is not in the slice, because it acquires nothing */
static int grid_of(const FlowCode *code) {
    for (size_t r = 0; r < code->regions.count; r++)
        if (code_region(code, (int)r)->kind == REGION_GRID) return (int)r;
    return -1;
}

Skipped plan_skipped(Arena *arena, const FlowCode *code) {
    FlowCode *kept = slice(arena, code);
    RowsPlan *rows = plan_rows(arena, kept);
    rows->steps = NEW_ARRAY(arena, int64_t *, kept->regions.count);
    for (size_t r = 0; r < kept->regions.count; r++) {
        rows->steps[r] = acquires_of(arena, kept, code_region(kept, (int)r));
        kept->regions.items[r].unroll = false; /* its variable subscripts nothing there */
    }
    kept->lates.count = 0; /* no row keeps a stage */
    return (Skipped){kept, rows, grid_of(kept)};
}
