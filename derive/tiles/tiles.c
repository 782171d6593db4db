/* Needs elaborate; sets index extents, affine subscripts, classes, boxes, maps, layouts, uses,
 * preconditions.
 *
 * Visits every tile statement of every role once, then `ensures`, then all copies together,
 * because their layouts must agree. */
#include "derive/edit.h"
#include "derive/order.h"
#include "flow/code.h"

Site *tiles_site(Tiles *tiles, const Stmt *stmt) {
    for (size_t n = 0; n < tiles->sites.count; n++) {
        size_t i = (tiles->cursor + n) % tiles->sites.count;
        if (tiles->sites.items[i]->row->stmt != stmt) continue;
        tiles->cursor = i;
        return tiles->sites.items[i];
    }
    return NULL;
}

/* ---- statements ------------------------------------------------------------------------------ */

typedef struct Walker {
    Tiles *tiles;
    Role *role;
    Algebra *algebra;
    int at; /* row */
} Walker;

static int row_number(const Role *role, const Row *row) {
    return (int)(row - role->code->rows.items);
}

static void add_site(Walker *walker, const Row *row) {
    Tiles *tiles = walker->tiles;
    Tile *tile = row->tile;
    Site *site = NEW(tiles->arena, Site);
    *site = (Site){.row = row, .tile = tile, .role = walker->role, .algebra = walker->algebra};
    if (row->kind == ROW_PREFETCH)
        vec_push(tiles->arena, &tiles->prefetches, site);
    else
        vec_push(tiles->arena, &tiles->sites, site);
    site->poisoned = tiles_target_reads(tiles, site->role, &tile->target, &site->reads);
    site->poisoned |= tiles_reads(tiles, site->role, tile->value, &site->reads);
    if (tile->where) site->poisoned |= tiles_reads(tiles, site->role, tile->where, &site->reads);
    if (site->poisoned) return;
    if (!tiles_ranges(tiles, site->role, &tile->space, &tile->target, &site->reads, false)) {
        site->poisoned = true;
        return;
    }
    tiles_quotients(tiles, site);
    const SubPlace place = {site->role, site->algebra, &tile->space, row_number(site->role, row)};
    bool fine = tiles_subscripts(tiles, &place, &tile->target);
    for (size_t i = 0; i < site->reads.count; i++)
        fine &= tiles_subscripts(tiles, &place, site->reads.items[i]);
    site->poisoned = !fine;
}

/* Reads outside of tile statements: one element, the same for all threads that evaluate it */
static void check_scalar_read(Walker *walker, Access *read) {
    static const IndexSpace none = {0};
    Tiles *tiles = walker->tiles;
    Role *role = walker->role;
    if (!tiles_subscripts(tiles, &(SubPlace){role, walker->algebra, &none, walker->at}, read))
        return;
    if (read->space == SPACE_REGISTER && !role->tiles.items[read->object].reduced) {
        Diag *diag = diag_at(tiles->diags, P0205, read->span,
                             "one element of `%s` is read by all threads, but one thread holds it",
                             role->tiles.items[read->object].name);
        diag_label(tiles->diags, diag, role->tiles.items[read->object].span,
                   "a `var` tile is in registers, spread over the threads");
        diag_help(tiles->diags, diag, "declare it `shared`, which every thread can read");
    }
    if (read->space == SPACE_STAGE && role->handles.items[read->object].end == END_PRODUCE) {
        const Handle *handle = &role->handles.items[read->object];
        Diag *diag = diag_at(tiles->diags, P0209, read->span,
                             "`%s` is a produced stage and cannot be read", handle->name);
        diag_label(tiles->diags, diag, handle->span, "produced here");
        diag_help(tiles->diags, diag, "keep the value in a variable as well");
    }
    if (read->space != SPACE_GLOBAL || tiles->prog->params.items[read->object].mode == PARAM_IN)
        return;
    if (tiles->prog->params.items[read->object].mode == PARAM_INOUT)
        vec_push(tiles->arena, &tiles->scalars, ((ScalarRead){role, read}));
    else
        tiles_refuse_output(tiles, read);
}

static void visit_root(Expr *expr, void *data) {
    Walker *walker = data;
    Accesses reads = {0};
    if (tiles_reads(walker->tiles, walker->role, expr, &reads)) return;
    for (size_t i = 0; i < reads.count; i++) check_scalar_read(walker, reads.items[i]);
}

static void visit_row(Walker *walker, const Row *row) {
    walker->at = row_number(walker->role, row);
    if (row->tile)
        add_site(walker, row);
    else if (row->kind != ROW_TILE)
        row_exprs(walker->role->code, row, visit_root, walker);
}

/* ---- `ensures` and `example` ----------------------------------------------------------------- */

static void check_formula(Tiles *tiles, IndexSpace *space, Access *target, Expr *value) {
    Accesses reads = {0};
    if (target && tiles_target_reads(tiles, NULL, target, &reads)) return;
    if (tiles_reads(tiles, NULL, value, &reads) ||
        !tiles_ranges(tiles, NULL, space, target, &reads, true))
        return;
    const SubPlace place = {NULL, tiles->formulas, space, -1};
    if (target && tiles_subscripts(tiles, &place, target)) tiles_claimed(tiles, &place, target);
    for (size_t i = 0; i < reads.count; i++) tiles_subscripts(tiles, &place, reads.items[i]);
}

static void check_example(Tiles *tiles, Example *example) {
    static const IndexSpace none = {0};
    if (example->kind != EXAMPLE_FORMULA || example->param < 0) return;
    const Param *param = &tiles->prog->params.items[example->param];
    Accesses reads = {0};
    for (int d = 0; d < example->space.count && d < param->rank; d++) {
        Index *index = &example->space.items[d];
        index->extent = -1;
        if (!expr_constant(param->extents[d], &index->extent)) index->dynamic = param->extents[d];
    }
    if (tiles_reads(tiles, NULL, example->value, &reads)) return;
    for (size_t i = 0; i < reads.count; i++)
        tiles_subscripts(tiles, &(SubPlace){NULL, tiles->formulas, &none, -1}, reads.items[i]);
}

static void check_ensures(Tiles *tiles) {
    Prog *prog = tiles->prog;
    tiles->formulas->launched = true; /* the host computes with unbounded integers */
    for (size_t i = 0; i < prog->lets.count; i++)
        check_formula(tiles, &prog->lets.items[i].space, NULL, prog->lets.items[i].value);
    for (size_t i = 0; i < prog->claims.count; i++)
        check_formula(tiles, &prog->claims.items[i].space, &prog->claims.items[i].target,
                      prog->claims.items[i].value);
    for (size_t i = 0; i < prog->examples.count; i++)
        check_example(tiles, &prog->examples.items[i]);
    tiles->formulas->launched = false;
}

/* ---- uses of pipes and tensors --------------------------------------------------------------- */

static PipeUse *use_of(const Site *site, const Access *access) {
    return edit_use(site->role, site->role->handles.items[access->object].pipe);
}

static void note_read(Prog *prog, Role *role, const Access *read) {
    if (read->space == SPACE_GLOBAL) prog->params.items[read->object].by_pointer = true;
    if (read->space == SPACE_STAGE)
        edit_use(role, role->handles.items[read->object].pipe)->agents |= AGENT_BIT(LOADS_OUT);
}

static bool is_operand(const Tile *tile, const Access *access) {
    return tile->class == TILE_MMA && (access == tile->mma.a.tile || access == tile->mma.b.tile);
}

/* Who accesses the stages of the statement, other than by expressions */
static void note_agents(const Site *site, const Access *copied) {
    const Tile *tile = site->tile;
    const ClassRow *row = &class_rows[tile->class];
    bool through = tile->class == TILE_LANES && !tile->piece.asynchronous; /* registers */
    Agent fills = through ? AGENT_STORES_IN : row->fills;
    if (tile->target.space == SPACE_STAGE && fills != AGENT_NONE) {
        use_of(site, &tile->target)->agents |= 1u << fills;
        if (tile->op != ASSIGN_SET) use_of(site, &tile->target)->agents |= AGENT_BIT(LOADS_OUT);
    }
    if (copied && copied->space == SPACE_STAGE) use_of(site, copied)->agents |= 1u << row->reads;
    if (tile->class != TILE_MMA) return;
    const Access *operands[] = {tile->mma.a.tile, tile->mma.b.tile};
    for (size_t i = 0; i < COUNT_OF(operands); i++)
        if (operands[i]->space == SPACE_STAGE)
            use_of(site, operands[i])->agents |= 1u << row->reads;
}

static void note_site(Prog *prog, Site *site) {
    Tile *tile = site->tile;
    Access *target = &tile->target;
    if (tile->class == TILE_UNCLASSIFIED) return;
    /* read by the copy itself */
    const Access *copied = tile_is_copy(tile) ? tile->value->read : NULL;
    for (size_t i = 0; i < site->reads.count; i++)
        if (site->reads.items[i] != copied && !is_operand(tile, site->reads.items[i]))
            note_read(prog, site->role, site->reads.items[i]);
    if (target->space == SPACE_GLOBAL && tile->class != TILE_TENSOR_STORE)
        prog->params.items[target->object].by_pointer = true;
    note_agents(site, copied);
    if (copied && copied->space == SPACE_GLOBAL && !tile_has_boxes(tile))
        prog->params.items[copied->object].by_pointer = true;
}

typedef struct UseWalk {
    Prog *prog;
    Role *role;
} UseWalk;

static void use_read(Access *access, bool written, void *data) {
    UseWalk *walk = data;
    if (!written && !tiles_poisoned(walk->prog, walk->role, access))
        note_read(walk->prog, walk->role, access);
}

/* Sets the pipes of which each stage goes to one instance */
static void find_turns(Role *role) {
    const FlowCode *code = role->code;
    for (size_t at = 0; at < code->rows.count && role->in_turn && role->instances > 1; at++) {
        const Row *row = code_row(code, (int)at);
        if (row->kind != ROW_ACQUIRE || row->every || row->handle < 0) continue;
        int pipe = role->handles.items[row->handle].pipe;
        if (pipe >= 0 && code_in_grid(code, row->region)) edit_use(role, pipe)->in_turn = true;
    }
}

/* Needs classes */
static void find_uses(Tiles *tiles) {
    Prog *prog = tiles->prog;
    for (size_t r = 0; r < prog->roles.count; r++) {
        Role *role = &prog->roles.items[r];
        UseWalk uses = {prog, role};
        for (size_t at = 0; at < role->code->rows.count; at++) {
            const Row *row = &role->code->rows.items[at];
            if (row->kind != ROW_TILE) row_accesses(tiles->arena, role->code, row, use_read, &uses);
        }
        for (size_t h = 0; h < role->handles.count; h++)
            if (role->handles.items[h].pipe >= 0)
                edit_use(role, role->handles.items[h].pipe)->uses = true;
    }
    for (size_t i = 0; i < tiles->sites.count; i++) note_site(prog, tiles->sites.items[i]);
    for (size_t p = 0; p < prog->pipes.count; p++) {
        const Pipe *pipe = &prog->pipes.items[p];
        Agents out = 0;
        if (pipe->producer < 0) continue;
        for (size_t c = 0; c < pipe->consumers.count; c++)
            if (pipe->consumers.items[c] >= 0)
                out |= agents_at(prog->roles.items[pipe->consumers.items[c]].pipes[p].agents,
                                 END_CONSUME);
        PipeUse *use = edit_use(&prog->roles.items[pipe->producer], (int)p);
        Agents asynchronous = agents_through(out, PROXY_ASYNC);
        use->waits_copies = agents_completing(use->agents, COMPLETES_ARRIVAL) &&
                            asynchronous & ~agents_completing(out, COMPLETES_AUTHOR);
    }
}

/* Needs layouts */
static void share_elements(Tiles *tiles) {
    for (size_t i = 0; i < tiles->sites.count; i++) {
        Site *site = tiles->sites.items[i];
        MovedBy mover = class_rows[site->tile->class].mover;
        if (!site->poisoned && (mover == MOVER_THREADS || mover == MOVER_LANES))
            site->distribution = distribution_of(tiles->arena, tiles->prog, site->role, site->tile);
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

Tiles *tiles_check(Arena *arena, Prog *prog, Diags *diags) {
    Tiles *tiles = NEW(arena, Tiles);
    tiles->arena = arena;
    tiles->prog = prog;
    tiles->diags = diags;
    tiles->formulas = algebra_new(arena, prog, NULL);
    tiles->algebras = NEW_ARRAY(arena, Algebra *, prog->roles.count + 1);
    tiles->pitched = NEW_ARRAY(arena, Pitched, prog->params.count + 1);
    tiles_launch(tiles);
    for (size_t r = 0; r < prog->roles.count; r++) {
        Role *role = &prog->roles.items[r];
        tiles->algebras[r] = role->code->algebra;
        Walker walker = {tiles, role, tiles->algebras[r], 0};
        if (!role->pipes) role->pipes = NEW_ARRAY(arena, PipeUse, prog->pipes.count + 1);
        find_turns(role);
        for (size_t at = 0; at < role->code->rows.count; at++)
            visit_row(&walker, &role->code->rows.items[at]);
    }
    for (size_t i = 0; i < tiles->sites.count; i++) tiles_rules(tiles, tiles->sites.items[i]);
    for (size_t i = 0; i < tiles->scalars.count; i++)
        tiles_scalar_rule(tiles, &tiles->scalars.items[i]);
    check_ensures(tiles);
    tiles_crooked(tiles);
    tiles_registers(tiles);
    tiles_copies(tiles);
    tiles_prefetches(tiles);
    boxes_pitches(tiles);
    tiles_banks(tiles);
    find_uses(tiles);
    share_elements(tiles);
    return tiles;
}
