/* How late a `consume` block releases. A written lag is checked; without one, a block whose stage is only read by bulk
 * stores or matrix instructions is released one iteration later, where that closes no new cycle of waits, so that the next
 * ones are issued before the last ones have been done. */
#include "check/stages.h"

#include <stdlib.h>

void lag_written(Linear *linear, Stmt *stmt, bool direct) {
    const Handle *what = &linear->role->handles.items[stmt->stage.handle];
    const Pipe *pipe = &linear->prog->pipes.items[what->pipe];
    Diag *diag;
    if (stmt->stage.lag < 0) return;
    if (what->end == END_PRODUCE) {
        diag = diag_at(linear->diags, P0312, stmt->head, "a `produce` block cannot lag");
        diag_primary(linear->diags, diag, "consumers of `%s` would wait for it", pipe->name);
        diag_help(linear->diags, diag, "remove `lag`: it holds back the release of a `consume` block");
    } else if (!direct && stmt->stage.lag > 0) {
        diag = diag_at(linear->diags, P0312, stmt->head, "a block that lags stands directly in the body of a loop");
        diag_primary(linear->diags, diag, "released %d iteration%s later - of which loop?", stmt->stage.lag,
                     stmt->stage.lag == 1 ? "" : "s");
        if (linear->loop) diag_label(linear->diags, diag, linear->loop->head, "not directly in this one");
        diag_help(linear->diags, diag, "move the block into the loop's body, under no condition, or remove `lag`");
    } else {
        return;
    }
    stmt->stage.lag = 0;
}

/* ---- derived ------------------------------------------------------------------------------------------------------ */

typedef struct Scan {
    Arena *arena;
    const Stmt *statement;
    int handle;
    int acquires;      /* in the loop */
    bool leaves;
    bool flies;        /* some bulk store or matrix instruction reads the stage */
    bool touches;      /* something else does */
} Scan;

static bool reads_asynchronously(const Tile *tile, const Access *access) {
    if (tile->class == TILE_MMA) return access == tile->mma.a.tile || access == tile->mma.b.tile;
    return (tile->class == TILE_TENSOR_STORE || tile->class == TILE_BULK_STORE) && access == tile->value->read;
}

static void scan_access(Access *access, bool written, void *data) {
    Scan *scan = data;
    if (access->space != SPACE_STAGE || access->object != scan->handle) return;
    const Tile *tile = scan->statement->kind == S_TILE ? scan->statement->tile : NULL;
    if (!written && tile && reads_asynchronously(tile, access)) scan->flies = true;
    else scan->touches = true;
}

static void scan_stmt(Stmt *stmt, void *data) {
    Scan *scan = data;
    scan->statement = stmt;
    scan->acquires += stmt->kind == S_ACQUIRE || stmt->kind == S_STAGE;
    scan->leaves |= stmt->kind == S_LEAVE;
    scan->touches |= stmt->kind == S_UNSAFE && stmt->unsafe->handle == scan->handle;
    walk_accesses(scan->arena, stmt, scan_access, scan);
}

static int derived(Linear *linear, const BlockUse *use) {
    const Role *role = &linear->prog->roles.items[use->role];
    const Handle *what = &role->handles.items[use->stmt->stage.handle];
    const Pipe *pipe = &linear->prog->pipes.items[what->pipe];
    Scan scan = {.arena = linear->arena, .handle = use->stmt->stage.handle};
    if (!use->loop || pipe->stages < 2 || use->held >= pipe->stages || linear->producer_most[what->pipe] > 1) return 0;
    if (use->loop->kind == S_GRID && !linear->prog->persistent) return 0; /* one iteration */
    if (use->loop->kind == S_GRID && role->in_turn) return 0; /* held through the iterations of the others */
    stmt_visit(use->loop->kind == S_GRID ? use->loop->grid.body : use->loop->loop.body, scan_stmt, &scan);
    return scan.flies && !scan.touches && !scan.leaves && scan.acquires == 1;
}

static void settle(Stmt *stmt, void *data) {
    (void)data;
    if (stmt->kind == S_STAGE && stmt->stage.lag < 0) stmt->stage.lag = 0;
}

static int by_address(const void *a, const void *b) {
    const Stmt *const *x = a, *const *y = b;
    return (*x > *y) - (*x < *y);
}

/* The loops that blocks stand directly in, in some order in which equal ones are neighbours */
static const Stmt **loops_of(Linear *linear) {
    const Stmt **loops = NEW_ARRAY(linear->arena, const Stmt *, linear->blocks.count + 1);
    for (size_t i = 0; i < linear->blocks.count; i++) loops[i] = linear->blocks.items[i].loop;
    qsort(loops, linear->blocks.count, sizeof *loops, by_address);
    return loops;
}

/* Is this the only block directly in its loop? (A loop of many is not looked through for each of them.) */
static bool alone(const Stmt *const *loops, size_t count, const Stmt *loop) {
    const Stmt *const *at = bsearch(&loop, loops, count, sizeof *loops, by_address);
    return (at == loops || at[-1] != loop) && (at + 1 == loops + count || at[1] != loop);
}

void lags_derive(Linear *linear) {
    const Stmt **loops = loops_of(linear);
    for (size_t i = 0; i < linear->blocks.count; i++) {
        const BlockUse *use = &linear->blocks.items[i];
        if (use->stmt->stage.lag < 0) use->stmt->stage.lag = alone(loops, linear->blocks.count, use->loop) && derived(linear, use);
    }
    for (size_t i = 0; i < linear->prog->roles.count; i++) stmt_visit(linear->prog->roles.items[i].body, settle, NULL);
}
