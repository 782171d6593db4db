/* Loops over a dynamic grid. Each role that loops over it takes every number that is drawn for the
 * block, and no more: it executes one loop over the grid, exactly once and to its end. Otherwise
 * the role that draws would wait for it forever, or it for that role.
 *
 * These are properties of regions: the loop lies in no other loop and under no condition, no LEAVE
 * before it passes it, and none in it goes further than to the next iteration. */
#include "check/passes.h"

typedef struct Dynamic {
    const Prog *prog;
    Diags *diags;
    Role *role;
    const FlowCode *code;
} Dynamic;

static Diag *refuse(const Dynamic *d, Span span, const char *why) {
    Diag *diag = diag_at(d->diags, P0409, span, "%s", why);
    d->role->forgotten = true; /* how many numbers it takes is unknown */
    return diag;
}

static void refuse_second(const Dynamic *d, const Region *grid, const Region *first) {
    Diag *diag = refuse(d, grid->head, "a second loop over a dynamic grid");
    diag_primary(d->diags, diag, "the tiles of a block are handed out once");
    diag_label(d->diags, diag, first->head, "the first one");
    diag_help(d->diags, diag, "merge the two loops, or write `grid persistent`");
}

static void refuse_place(const Dynamic *d, const Region *grid, const Region *around) {
    bool branch = around->kind == REGION_IF;
    Diag *diag = refuse(d, grid->head,
                        branch ? "a loop over a dynamic grid under a condition"
                               : "a loop over a dynamic grid inside of another loop");
    diag_primary(d->diags, diag, "the role takes every tile of its block exactly once");
    diag_label(d->diags, diag, around->head,
               branch ? "not true in every block" : "executes it several times, or never");
    diag_help(d->diags, diag, "write it directly in the role, or write `grid persistent`");
}

static void refuse_leave(const Dynamic *d, const Row *leave, const Region *grid, bool inside) {
    Diag *diag = refuse(d, leave->span,
                        inside ? "a loop over a dynamic grid is left early"
                               : "a loop over a dynamic grid may be skipped");
    diag_primary(d->diags, diag, "leaves here");
    diag_label(d->diags, diag, grid->head,
               "tiles of the block are handed out that the role does not take");
    diag_help(d->diags, diag,
              inside ? "put the condition around the statements of the tile, or write `continue`"
                     : "put the condition into the loop, around the statements of a tile");
}

static bool around_allows(const Dynamic *d, const Region *grid) {
    for (int at = grid->parent; at > 0; at = code_region(d->code, at)->parent) {
        const Region *around = code_region(d->code, at);
        if (around->kind != REGION_IF && !region_loops(around)) continue;
        refuse_place(d, grid, around);
        return false;
    }
    return true;
}

/* The LEAVE passes the loop, or ends it: it goes to a region around the loop, or to its END */
static void check_leave(const Dynamic *d, int at, int grid) {
    const Row *leave = code_row(d->code, at);
    const Region *loop = code_region(d->code, grid);
    if (leave->kind != ROW_LEAVE || at > loop->end) return;
    if (leave->target == grid ? leave->again : !code_inside(d->code, grid, leave->target)) return;
    refuse_leave(d, leave, loop, at > loop->begin);
}

static void check_role(Dynamic *d) {
    int grid = -1;
    for (size_t r = 0; r < d->code->regions.count && !d->role->forgotten; r++) {
        const Region *region = code_region(d->code, (int)r);
        if (region->kind != REGION_GRID) continue;
        if (grid >= 0)
            refuse_second(d, region, code_region(d->code, grid));
        else if (around_allows(d, region))
            grid = (int)r;
    }
    for (size_t at = 0; at < d->code->rows.count && grid >= 0 && !d->role->forgotten; at++)
        check_leave(d, (int)at, grid);
}

void dynamic_check(Arena *arena, Prog *prog, Diags *diags) {
    (void)arena;
    for (int r = 0; r < prog->draws.role; r++) {
        Role *role = &prog->roles.items[r];
        check_role(&(Dynamic){prog, diags, role, role->code});
    }
}
