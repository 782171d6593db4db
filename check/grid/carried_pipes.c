/* Two dependences between tiles of the grid without a variable: stages that are consumed in
 * another tile than they are produced in, and early exits from a loop over the grid, after which
 * later tiles of the block are skipped. */
#include "check/grid/carried.h"

static int grid_around(const FlowCode *code, int region) {
    while (region >= 0 && code->regions.items[region].kind != REGION_GRID)
        region = code->regions.items[region].parent;
    return region;
}

/* ---- stages ---------------------------------------------------------------------------------- */

typedef struct Ends {          /* use of one end of a pipe by one role */
    int grids;                 /* number of loops over the grid that acquire it */
    int outside;               /* number of acquires outside of them */
    int before;                /* of these, before the first loop; -1: unknown */
    Span within, outside_span; /* the first one of each kind */
} Ends;

static bool takes(const FlowCode *code, int at, int pipe, End end) {
    const Row *row = &code->rows.items[at];
    if (row->kind == ROW_STEP) return row->unsafe->pipe == pipe && row->unsafe->end == end;
    if (row->kind != ROW_ACQUIRE || !valid_index(row->handle, code->role->handles.count))
        return false;
    const Handle *handle = &code->role->handles.items[row->handle];
    return handle->pipe == pipe && handle->end == end;
}

static bool is_straight(const FlowCode *code, int region) {
    for (; region >= 0; region = code->regions.items[region].parent)
        if (region_loops(&code->regions.items[region]) ||
            code->regions.items[region].kind == REGION_IF)
            return false;
    return true;
}

static Ends ends_of(const FlowCode *code, int pipe, End end) {
    Ends out = {0};
    int last = -1;
    for (size_t at = 0; at < code->rows.count; at++) {
        if (!takes(code, (int)at, pipe, end)) continue;
        int region = code->rows.items[at].region, grid = grid_around(code, region);
        Span *first = grid >= 0 ? &out.within : &out.outside_span;
        if (!first->hi) *first = code->rows.items[at].span;
        if (grid >= 0) {
            out.grids += grid != last;
            last = grid;
            continue;
        }
        out.outside++;
        if (out.grids == 0 && out.before >= 0)
            out.before = is_straight(code, region) ? out.before + 1 : -1;
    }
    return out;
}

/* True if a tile of the grid consumes the stages that the other end produces in the same tile.
 * Both ends acquire equally often in each block, for any number of tiles (counts.c), so they do
 * in each tile if they do before the loop. */
static bool aligned(const Ends *fills, const Ends *takes) {
    if (!fills->grids && !takes->grids) return true;
    if (!fills->outside && !takes->outside) return fills->grids == takes->grids;
    return fills->grids == 1 && takes->grids == 1 && fills->before >= 0 &&
           fills->before == takes->before;
}

static void refuse_pipe(const Prog *prog, Diags *diags, const Pipe *pipe, int consumer,
                        const Ends *fills, const Ends *takes) {
    Span at = takes->within.hi ? takes->within : takes->outside_span,
         other = fills->within.hi ? fills->within : fills->outside_span;
    Diag *diag = diag_at(diags, P0239, at,
                         "cannot show that `%s` consumes stages of `%s` in the same grid tile in "
                         "which they are produced",
                         prog->roles.items[consumer].name, pipe->name);
    diag_primary(diags, diag, "consumed here");
    diag_label(diags, diag, other, "produced here");
    if (fills->outside_span.hi && fills->within.hi)
        diag_label(diags, diag, fills->outside_span,
                   "also produced here, outside of the loop over the grid");
    if (takes->outside_span.hi && takes->within.hi)
        diag_label(diags, diag, takes->outside_span,
                   "also consumed here, outside of the loop over the grid");
    diag_help(diags, diag,
              "acquire the same number of stages before the loop over the grid in both roles, or "
              "none; use another pipe for data that all tiles share");
}

bool *carried_pipes(Arena *arena, const Prog *prog, Diags *diags) {
    bool *unaligned = NEW_ARRAY(arena, bool, prog->pipes.count + 1);
    for (size_t p = 0; p < prog->pipes.count; p++) {
        const Pipe *pipe = &prog->pipes.items[p];
        const FlowCode *producer = valid_index(pipe->producer, prog->roles.count)
                                       ? prog->roles.items[pipe->producer].code
                                       : NULL;
        if (!producer || !pipe->fields.count || pipe->faulty || pipe->unproved) continue;
        if (carried_fills_same(arena, producer, (int)p)) continue;
        Ends fills = ends_of(producer, (int)p, END_PRODUCE);
        for (size_t k = 0; k < pipe->consumers.count && !unaligned[p]; k++) {
            int consumer = pipe->consumers.items[k];
            if (!prog->roles.items[consumer].code) continue;
            Ends takes = ends_of(prog->roles.items[consumer].code, (int)p, END_CONSUME);
            if (aligned(&fills, &takes)) continue;
            unaligned[p] = true;
            refuse_pipe(prog, diags, pipe, consumer, &fills, &takes);
        }
    }
    return unaligned;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static bool is_axis(const Carried *c, const Expr *expr) {
    return expr->kind == X_LOCAL && c->role->locals.items[expr->index].kind == LOCAL_AXIS;
}

/* True if the condition holds in all later tiles once it holds in one. A block takes tiles of a
 * grid of one axis in ascending order. */
static bool stays_true(const Carried *c, const Expr *condition) {
    if (c->prog->axes.count != 1 || condition->kind != X_BINARY) return false;
    BinaryOp op = condition->binary.op;
    bool least = op == OP_GE || op == OP_GT, most = op == OP_LE || op == OP_LT;
    Expr *left = condition->binary.left, *right = condition->binary.right;
    return (least && is_axis(c, left) && carried_is_same(c->arena, c->role, right)) ||
           (most && is_axis(c, right) && carried_is_same(c->arena, c->role, left));
}

/* True if each skipped tile is one that all earlier tiles' exits skip too. */
static bool leaves_all_later(const Carried *c, int at, int grid) {
    const FlowCode *code = c->code;
    for (int before = code->regions.items[grid].begin; before < at; before++) {
        const Row *row = &code->rows.items[before];
        bool shows = row->kind == ROW_TILE && carried_tile(c, &row->tile->target) < 0;
        /* an effect for this tile comes before the exit */
        if (shows || row->kind == ROW_ACQUIRE) return false;
    }
    for (int r = code->rows.items[at].region; r != grid; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        if (region->kind == REGION_FOR) return false;
        if (region->kind != REGION_IF || carried_is_same(c->arena, c->role, region->condition))
            continue;
        if (at > region->otherwise || !stays_true(c, region->condition)) return false;
    }
    return true;
}

void carried_leaves(Carried *c) {
    const FlowCode *code = c->code;
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        int grid = grid_around(code, row->region);
        if (row->kind != ROW_LEAVE || grid < 0 || (row->again && row->target == grid)) continue;
        if (!code_inside(code, grid, row->target) || leaves_all_later(c, (int)at, grid)) continue;
        Diag *diag = diag_at(c->diags, P0238, row->span,
                             "one grid tile decides whether later tiles are executed");
        diag_primary(c->diags, diag, "the loop over the grid is left here");
        diag_note(c->diags, diag,
                  "the result would depend on how many blocks the GPU holds at once: that decides "
                  "which tiles a block executes");
        diag_help(c->diags, diag,
                  "write `continue` to skip only this tile; to stop for all later tiles, test a "
                  "condition that is the same for all tiles, at the start of the loop");
    }
}
