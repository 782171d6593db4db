/* `grid dynamic`: adds the role that draws the numbers of tiles, and its two pipes. They are
 * ordinary roles and pipes for all passes; only their statements are implied.
 *
 *   role grid: 1 warp      draws, in order, from a counter that all blocks share
 *   pipe grid.tiles        its numbers, to every role that loops over the grid
 *   pipe grid.begun        from one of these roles: it begins a tile, so that one more is drawn
 *
 * The names contain a keyword, so no declaration can have them. */
#include "elaborate/items.h"

/* Stages of grid.tiles: one for the tile that the role furthest ahead has begun, and one for its
 * next tile. Each stage of another pipe lets the fastest role be one more tile ahead of the
 * slowest; a number is kept until the slowest role has taken it. With STAGES_MOST, the role ahead
 * may have to wait. */
#define STAGES_LEAST 2
#define STAGES_MOST  32

void elab_dynamic_declare(Elab *e, Span span) {
    Prog *prog = e->prog;
    int stages = STAGES_LEAST;
    for (size_t i = 0; i < prog->pipes.count && stages < STAGES_MOST; i++)
        stages += prog->pipes.items[i].stages;
    prog->draws = (Draws){.role = (int)prog->roles.count,
                          .tiles = (int)prog->pipes.count,
                          .begun = (int)prog->pipes.count + 1,
                          .span = span};
    Role role = {.name = "grid", .span = span, .instances = 1, .warps = 1, .partials = -1};
    Pipe tiles = {.name = "grid.tiles",
                  .span = span,
                  .stages = stages < STAGES_MOST ? stages : STAGES_MOST,
                  .producer = prog->draws.role};
    Pipe begun = {.name = "grid.begun", .span = span, .stages = 1, .producer = -1};
    vec_push(e->arena, &begun.consumers, prog->draws.role);
    vec_push(e->arena, &prog->roles, role);
    vec_push(e->arena, &prog->pipes, tiles);
    vec_push(e->arena, &prog->pipes, begun);
}

/* ---- the roles that loop over the grid ------------------------------------------------------- */

typedef struct Grids {
    Arena *arena;
    VEC(Stmt *) items;
} Grids;

static void find_grid(Stmt *stmt, void *data) {
    Grids *grids = data;
    if (stmt->kind == S_GRID) vec_push(grids->arena, &grids->items, stmt);
}

static Grids grids_of(Elab *e, const Role *role) {
    Grids grids = {.arena = e->arena};
    stmt_visit(role->body, find_grid, &grids);
    return grids;
}

static int add_handle(Elab *e, Role *role, int pipe, End end) {
    vec_push(e->arena, &role->handles,
             (Handle){.name = e->prog->pipes.items[pipe].name,
                      .span = e->prog->draws.span,
                      .pipe = pipe,
                      .end = end});
    return (int)role->handles.count - 1;
}

/* How early the role begins a tile: one that waits for no other role is first. Instances in turn
 * begin a tile when all of them have ended an earlier one. */
static int earliness(const Prog *prog, int role) {
    int early = prog->roles.items[role].in_turn ? 0 : 2;
    for (int p = 0; p < prog->draws.tiles; p++)
        if (pipe_consumed_by(&prog->pipes.items[p], role) && early == 2) early = 1;
    return early;
}

static void remove_draws(Prog *prog) {
    prog->roles.count--;
    prog->pipes.count -= 2;
    prog->draws = (Draws){.role = -1, .tiles = -1, .begun = -1};
}

/* Each loop over the grid takes the numbers; one role also tells that it begins their tiles. A
 * second loop is refused later. Until then it has handles of its own: a handle has one scope. */
static void take_numbers(Elab *e, const Grids *grids, int first) {
    Prog *prog = e->prog;
    for (int r = 0; r < prog->draws.role; r++) {
        Role *role = &prog->roles.items[r];
        if (grids[r].items.count == 0) continue;
        vec_push(e->arena, &prog->pipes.items[prog->draws.tiles].consumers, r);
        for (size_t i = 0; i < grids[r].items.count; i++) {
            Stmt *grid = grids[r].items.items[i];
            grid->grid.tile = add_handle(e, role, prog->draws.tiles, END_CONSUME);
            grid->grid.begun =
                r == first ? add_handle(e, role, prog->draws.begun, END_PRODUCE) : -1;
        }
    }
}

/* The body of the role that draws: a loop over the grid without statements */
static void draw_numbers(Elab *e) {
    Prog *prog = e->prog;
    e->role = &prog->roles.items[prog->draws.role];
    e->role->pipes = NEW_ARRAY(e->arena, PipeUse, prog->pipes.count + 1);
    Stmt *grid = elab_stmt_new(e, S_GRID, prog->draws.span);
    grid->head = prog->draws.span;
    for (size_t i = 0; i < prog->axes.count; i++) {
        grid->grid.vars[i] =
            elab_add_local(e, prog->axes.items[i].name, prog->draws.span, LOCAL_AXIS, E_I32);
        e->role->locals.items[grid->grid.vars[i]].axis = (int)i;
    }
    grid->grid.tile = add_handle(e, e->role, prog->draws.tiles, END_PRODUCE);
    grid->grid.begun = add_handle(e, e->role, prog->draws.begun, END_CONSUME);
    e->role->body = grid;
    e->role = NULL;
}

void elab_dynamic_evaluate(Elab *e) {
    Prog *prog = e->prog;
    int first = -1;
    if (prog->draws.role < 0) return;
    Grids *grids = NEW_ARRAY(e->arena, Grids, prog->roles.count);
    for (int r = 0; r < prog->draws.role; r++) {
        grids[r] = grids_of(e, &prog->roles.items[r]);
        if (grids[r].items.count > 0 && (first < 0 || earliness(prog, r) > earliness(prog, first)))
            first = r;
    }
    if (first < 0) {
        remove_draws(prog);
        return;
    }
    prog->pipes.items[prog->draws.begun].producer = first;
    take_numbers(e, grids, first);
    draw_numbers(e);
}
