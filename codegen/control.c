/* Emits rows of Code: regions, branches, leaves, scalars; and the frame of a role. */
#include "codegen/gen.h"

/* ---- regions --------------------------------------------------------------------------------- */

/* Labels of a region for its leaves; each copy in an unrolled loop has its own. */
static Exits *open_exits(Gen *gen, int region) {
    Exits *exits = &gen->role->exits[region];
    *exits = (Exits){.leave_label = ptx_new_label(gen->ptx), .continue_label = -1};
    return exits;
}

/* The late sets of the loop are empty. */
static void open_lates(Gen *gen, int loop) {
    const FlowCode *code = gen->role->code;
    for (size_t i = 0; i < code->lates.count; i++) {
        const Late *late = &code->lates.items[i];
        if (late->loop != loop || late->lag == 0) continue;
        LateRegs *regs = &gen->role->lates[i];
        *regs = (LateRegs){NEW_ARRAY(gen->arena, Reg, late->lag), ptx_new_reg(gen->ptx, REG_32)};
        for (int k = 0; k < late->lag; k++) {
            regs->stages[k] = ptx_new_reg(gen->ptx, REG_32);
            INS(gen->ptx, "mov.b32", ptx_reg(regs->stages[k]), ptx_int(0));
        }
        INS(gen->ptx, "mov.b32", ptx_reg(regs->held), ptx_int(0));
    }
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* Skips the rest of an iteration that `where` excludes. */
static void skip_unless(Gen *gen, Exits *exits, const Expr *where) {
    if (where == NULL) return;
    INS_UNLESS(gen->ptx, eval_condition(gen, &(Point){.outer = NULL}, where), "bra",
               ptx_label(exits->continue_label));
}

/* The target of leaves of the region. */
static void place_leave(Gen *gen, const Exits *exits) {
    ptx_place_label(gen->ptx, exits->leave_label);
}

/* The target of leaves to the next iteration. */
static void place_next(Gen *gen, const Exits *exits) {
    ptx_place_label(gen->ptx, exits->continue_label);
}

static void gen_body(Gen *gen, const Region *loop) { gen_rows(gen, loop->begin + 1, loop->next); }

/* Emits, at `label`, the body of the loop over the grid for iterations that belong to other
 * instances: the rows of the slice that steps cursors. A slice without acquires has no such
 * body. */
static void gen_skipped(Gen *gen, int label) {
    RoleState *state = gen->role, whole = *state;
    const Skipped *skipped = &state->plan->skipped;
    Exits exits = {ptx_new_label(gen->ptx), ptx_new_label(gen->ptx)};
    INS(gen->ptx, "mov.b32", ptx_reg(state->until), ptx_int(state->role->instances));
    INS(gen->ptx, "bra.uni", ptx_label(exits.continue_label));
    ptx_place_label(gen->ptx, label);
    ptx_comment(gen->ptx, "%s: another instance's iteration", state->role->name);
    state->code = skipped->code, state->rows = skipped->rows, state->skips = true;
    state->exits = NEW_ARRAY(gen->arena, Exits, skipped->code->regions.count);
    if (skipped->grid >= 0) {
        state->exits[skipped->grid] = exits;
        gen_body(gen, code_region(skipped->code, skipped->grid));
    }
    state->code = whole.code, state->rows = whole.rows, state->exits = whole.exits;
    state->skips = false;
    ptx_place_label(gen->ptx, exits.continue_label);
    INS(gen->ptx, "sub.s32", ptx_reg(state->until), ptx_reg(state->until), ptx_int(1));
    ptx_forget(gen->ptx);
}

/* The rows of one iteration, for instances that execute it */
static void gen_iteration(Gen *gen, const Region *loop, const Exits *exits, int from) {
    int skip = turn_iteration(gen);
    gen_rows(gen, from, loop->next);
    place_next(gen, exits);
    wait_before(gen, loop->next);
    if (skip >= 0) gen_skipped(gen, skip);
}

/* Takes numbers until one is not that of a tile. The rows after the loop take that number: they
 * are those at the head of an iteration, so only their waits are emitted. */
static void gen_dynamic(Gen *gen, const Region *loop, Exits *exits, const Value *extents,
                        Value total) {
    int head = ptx_new_label(gen->ptx), taken = loop->taken - loop->begin - 1;
    exits->continue_label = ptx_new_label(gen->ptx);
    ptx_place_label(gen->ptx, head);
    gen_rows(gen, loop->begin + 1, loop->taken);
    tile_test(gen, total, exits->leave_label);
    grid_coordinates(gen, loop, extents, gen->role->tile_number);
    ptx_forget(gen->ptx);
    gen_rows(gen, loop->taken, loop->body);
    gen_iteration(gen, loop, exits, loop->body);
    INS(gen->ptx, "bra", ptx_label(head));
    place_leave(gen, exits);
    for (int at = loop->end + 1; at <= loop->end + taken; at++) wait_before(gen, at);
}

/* The loop of the role that draws */
static void gen_draws(Gen *gen, const Region *loop, const Exits *exits, Value total) {
    TileDraws draws;
    int head = ptx_new_label(gen->ptx);
    draws_open(gen, total, &draws);
    tile_test(gen, total, exits->leave_label);
    ptx_place_label(gen->ptx, head);
    draws_arrive(gen, &draws);
    gen_rows(gen, loop->begin + 1, loop->taken);
    draws_issue(gen, &draws);
    gen_rows(gen, loop->taken, loop->next);
    tile_test(gen, total, exits->leave_label);
    INS(gen->ptx, "bra", ptx_label(head));
    place_leave(gen, exits);
}

/* From each tile of a block to its next one: `step` now, `both` - `step` after that */
typedef struct Stride {
    Reg step, both;
} Stride;

/* Blocks take the tiles of each second round in reverse order: tile b, 2n - 1 - b, 2n + b, .. of n
 * blocks. If the length of a tile grows with a coordinate, as under a causal mask, all blocks get
 * about the same work; in one order, some would take the longer tile in each round. */
static Stride stride_of(Gen *gen, Reg tile, Reg blocks) {
    if (!gen->prog->persistent) return (Stride){blocks, PTX_NONE};
    Reg both = PURE(gen->ptx, REG_32, "shl.b32", ptx_reg(blocks), ptx_int(1));
    Reg rest = PURE(gen->ptx, REG_32, "sub.s32", ptx_reg(blocks), ptx_reg(tile));
    Reg step = ptx_new_reg(gen->ptx, REG_32);
    INS(gen->ptx, "mad.lo.s32", ptx_reg(step), ptx_reg(rest), ptx_int(2), ptx_int(-1));
    return (Stride){step, both};
}

static void next_tile(Gen *gen, Reg tile, Stride stride) {
    INS(gen->ptx, "add.s32", ptx_reg(tile), ptx_reg(tile), ptx_reg(stride.step));
    if (stride.both.class != REG_NONE)
        INS(gen->ptx, "sub.s32", ptx_reg(stride.step), ptx_reg(stride.both), ptx_reg(stride.step));
}

static void gen_static(Gen *gen, const Region *loop, Exits *exits, const Value *extents,
                       Value total) {
    bool clusters = gen->prog->cluster > 1;
    Reg tile = ptx_new_reg(gen->ptx, REG_32), blocks = ptx_new_reg(gen->ptx, REG_32),
        done = ptx_new_reg(gen->ptx, REG_PRED);
    INS(gen->ptx, "mov.u32", ptx_reg(tile), ptx_text(clusters ? "%clusterid.x" : "%ctaid.x"));
    INS(gen->ptx, "mov.u32", ptx_reg(blocks), ptx_text(clusters ? "%nclusterid.x" : "%nctaid.x"));
    Stride stride = stride_of(gen, tile, blocks);
    int head = ptx_new_label(gen->ptx);
    exits->continue_label = ptx_new_label(gen->ptx);
    wait_before(gen, loop->begin);
    ptx_place_label(gen->ptx, head);
    INS(gen->ptx, "setp.ge.s32", ptx_reg(done), ptx_reg(tile), value_operand(total));
    INS_IF(gen->ptx, done, "bra", ptx_label(exits->leave_label));
    grid_coordinates(gen, loop, extents, tile);
    ptx_forget(gen->ptx);
    gen_iteration(gen, loop, exits, loop->begin + 1);
    next_tile(gen, tile, stride);
    INS(gen->ptx, "bra", ptx_label(head));
    place_leave(gen, exits);
}

/* for (axes) in grid: coordinates of this block, the first axis fastest. If the grid is not
 * persistent, the loop runs once, because there are as many blocks as coordinates (one block if
 * there are none). With clusters, clusters are counted: all blocks of one take the same number
 * of iterations. */
static void gen_grid(Gen *gen, int region) {
    const Region *loop = code_region(gen->role->code, region);
    ptx_mark(gen->ptx, loop->head, gen->role->number, NULL, "takes the next grid coordinate");
    Exits *exits = open_exits(gen, region);
    open_lates(gen, region);
    Value extents[PROG_MAX_RANK], total = grid_count(gen, extents);
    if (loop->taken == 0) {
        gen_static(gen, loop, exits, extents, total);
        return;
    }
    wait_before(gen, loop->begin);
    if (gen->prog->draws.role == gen->role->number)
        gen_draws(gen, loop, exits, total);
    else
        gen_dynamic(gen, loop, exits, extents, total);
}

static void gen_unrolled(Gen *gen, const Region *loop, Exits *exits) {
    Value lo = eval_scalar(gen, loop->lo), hi = eval_scalar(gen, loop->hi);
    Value saved = gen->role->locals[loop->var];
    for (int64_t v = lo.integer; v < hi.integer; v++) {
        gen->role->locals[loop->var] = value_integer(saved.type, v);
        gen->role->unrolled[loop->var] = v;
        exits->continue_label = ptx_new_label(gen->ptx);
        skip_unless(gen, exits, loop->where);
        gen_body(gen, loop);
        place_next(gen, exits);
    }
    gen->role->locals[loop->var] = saved;
}

static void gen_counted(Gen *gen, int region, Exits *exits) {
    const Region *loop = code_region(gen->role->code, region);
    Reg var = gen->role->locals[loop->var].reg, done = ptx_new_reg(gen->ptx, REG_PRED),
        end = ptx_new_reg(gen->ptx, REG_32);
    Value lo = eval_scalar(gen, loop->lo), hi = eval_scalar(gen, loop->hi);
    INS(gen->ptx, "mov.b32", ptx_reg(end), value_operand(hi));
    INS(gen->ptx, "mov.b32", ptx_reg(var), value_operand(lo));
    int head = ptx_new_label(gen->ptx);
    exits->continue_label = ptx_new_label(gen->ptx);
    if (!gen->role->rows->diverged[region]) wait_before(gen, loop->begin);
    ptx_place_label(gen->ptx, head);
    INS(gen->ptx, "setp.ge.s32", ptx_reg(done), ptx_reg(var), ptx_reg(end));
    INS_IF(gen->ptx, done, "bra", ptx_label(exits->leave_label));
    skip_unless(gen, exits, loop->where);
    gen_body(gen, loop);
    place_next(gen, exits);
    wait_before(gen, loop->next);
    INS(gen->ptx, "add.s32", ptx_reg(var), ptx_reg(var), ptx_int(1));
    INS(gen->ptx, "bra", ptx_label(head));
}

static void gen_for(Gen *gen, int region) {
    const Region *loop = code_region(gen->role->code, region);
    if (turn_steps_at_once(gen, region)) return;
    ptx_mark(gen->ptx, loop->head, gen->role->number, NULL, "loops");
    Exits *exits = open_exits(gen, region);
    open_lates(gen, region);
    diverged_open(gen, region);
    if (loop->unroll)
        gen_unrolled(gen, loop, exits);
    else
        gen_counted(gen, region, exits);
    place_leave(gen, exits);
    diverged_close(gen, region);
}

/* ---- branches -------------------------------------------------------------------------------- */

/* An arm of a branch; the turn may be passed on at its beginning. */
static void gen_arm(Gen *gen, int first, int end) {
    turn_pass_after(gen, first);
    gen_rows(gen, first + 1, end);
}

static void gen_first(Gen *gen, const Region *branch) {
    gen_arm(gen, branch->begin, branch->otherwise);
    wait_before(gen, branch->otherwise);
}

static void gen_second(Gen *gen, const Region *branch) {
    gen_arm(gen, branch->otherwise, branch->end);
    wait_at_join(gen, branch->end);
}

static void gen_if(Gen *gen, int region) {
    const Region *branch = code_region(gen->role->code, region);
    ptx_mark(gen->ptx, branch->head, gen->role->number, NULL, NULL);
    Value condition = eval_scalar(gen, branch->condition);
    wait_before(gen, branch->begin);
    if (condition.reg.class == REG_NONE) {
        if (condition.integer != 0)
            gen_first(gen, branch);
        else
            gen_second(gen, branch);
        return;
    }
    int otherwise = ptx_new_label(gen->ptx), end = ptx_new_label(gen->ptx);
    bool second = turn_passes_after(gen, branch->otherwise) || branch->otherwise + 1 < branch->end;
    diverged_open(gen, region);
    INS_UNLESS(gen->ptx, condition.reg, "bra", ptx_label(otherwise));
    gen_first(gen, branch);
    if (second) INS(gen->ptx, "bra", ptx_label(end));
    ptx_place_label(gen->ptx, otherwise);
    gen_second(gen, branch);
    ptx_place_label(gen->ptx, end);
    diverged_close(gen, region);
}

static void gen_leave(Gen *gen, int at) {
    const Row *row = code_row(gen->role->code, at);
    const Exits *exits = &gen->role->exits[row->target];
    wait_before(gen, at);
    int label = row->target == 0 ? gen->role->end_label
                : row->again     ? exits->continue_label
                                 : exits->leave_label;
    INS(gen->ptx, "bra", ptx_label(label));
    ptx_forget(gen->ptx);
}

static void gen_block(Gen *gen, int region) {
    const Region *block = code_region(gen->role->code, region);
    const Exits *exits = open_exits(gen, region);
    diverged_open(gen, region);
    gen_rows(gen, block->begin + 1, block->end);
    if (block->left) place_leave(gen, exits);
    diverged_close(gen, region);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void gen_set(Gen *gen, const Row *row) {
    ptx_mark(gen->ptx, row->span, gen->role->number, NULL, NULL);
    wait_before(gen, row_number(gen, row));
    zero_settle(gen, row);
    local_set(gen, row->local, eval_scalar(gen, row->value));
}

static void gen_move(Gen *gen, const Row *row) {
    INS(gen->ptx, "mov.b32", ptx_reg(gen->role->handles[row->handle]),
        ptx_reg(gen->role->handles[row->other]));
    ptx_forget(gen->ptx);
}

/* Returns the last row that it emitted: for example a release that it includes. */
static void gen_acquire(Gen *gen, const Row *row) {
    if (gen->role->skips)
        pipe_skip(gen, gen->role->role->handles.items[row->handle].pipe, PTX_NONE);
    else
        pipe_acquire(gen, row);
}

static int gen_statement(Gen *gen, int at) {
    gen_tile(gen, code_row(gen->role->code, at));
    const Ahead *ahead = ahead_of(gen, at);
    return ahead != NULL && ahead->release >= 0 ? ahead->release : at;
}

/* The last row of a region; of a loop over a dynamic grid, the last row that it executes */
static int end_of(const Gen *gen, int region) {
    const Region *row = code_region(gen->role->code, region);
    bool takes = row->taken > 0 && gen->prog->draws.role != gen->role->number;
    return row->end + (takes ? row->taken - row->begin - 1 : 0);
}

static int gen_region(Gen *gen, int region) {
    bool loops = region_loops(code_region(gen->role->code, region));
    if (loops) reductions_divide(gen, region);
    switch (code_region(gen->role->code, region)->kind) {
    case REGION_GRID: gen_grid(gen, region); break;
    case REGION_FOR: gen_for(gen, region); break;
    case REGION_IF: gen_if(gen, region); break;
    case REGION_ROLE:
    case REGION_BLOCK:
    case REGION_TURN: gen_block(gen, region); break;
    }
    if (loops) reductions_complete(gen, region);
    return end_of(gen, region);
}

/* Returns the last row that it emitted: the END of a region. */
static int gen_row(Gen *gen, int at) {
    const Row *row = code_row(gen->role->code, at);
    switch (row->kind) {
    case ROW_LOOP:
    case ROW_IF:
    case ROW_BLOCK: return gen_region(gen, row->region);
    case ROW_LEAVE: gen_leave(gen, at); break;
    case ROW_SET: gen_set(gen, row); break;
    case ROW_TILE: return gen_statement(gen, at);
    case ROW_PREFETCH: gen_prefetch(gen, row); break;
    case ROW_UNSAFE:
    case ROW_STEP: gen_unsafe(gen, row); break;
    case ROW_ASK: pipe_ask(gen, row); break;
    case ROW_ACQUIRE: gen_acquire(gen, row); break;
    case ROW_RELEASE:
    case ROW_KEEP:
        if (!gen->role->rows->released[at]) pipe_release(gen, row);
        break;
    case ROW_MOVE: gen_move(gen, row); break;
    case ROW_FLUSH:
        wait_before(gen, at);
        pipe_drain(gen, row->late);
        break;
    case ROW_DROP:
    case ROW_CLOSE: wait_before(gen, at); break;
    case ROW_TAKE: turn_open(gen, row); break;
    case ROW_OPEN:
        if (row->object == OBJECT_TILE) reductions_declare(gen, row->index, at);
        break;
    case ROW_PASS: /* turn_pass_after decides where */
    case ROW_LEND:
    case ROW_NEXT:
    case ROW_ELSE:
    case ROW_END:
    case ROW_EXIT:
    case ROW_COUNT: break;
    }
    return at;
}

void gen_rows(Gen *gen, int from, int to) {
    for (int at = from; at < to; at++) {
        at = gen_row(gen, at);
        turn_pass_after(gen, at);
    }
}

/* ---- a role ---------------------------------------------------------------------------------- */

static void open_cursors(Gen *gen, RoleState *state) {
    size_t pipes = gen->prog->pipes.count;
    for (int end = 0; end < 2; end++) {
        state->cursors[end] = NEW_ARRAY(gen->arena, Cursor, pipes);
        for (size_t p = 0; p < pipes; p++) {
            const Pipe *pipe = &gen->prog->pipes.items[p];
            bool has_end = end == END_PRODUCE ? pipe->producer == state->number
                                              : pipe_consumed_by(pipe, state->number);
            if (!state->role->pipes[p].uses || !has_end) continue;
            Cursor cursor = {ptx_new_reg(gen->ptx, REG_32), ptx_new_reg(gen->ptx, REG_32)};
            INS(gen->ptx, "mov.b32", ptx_reg(cursor.stage), ptx_int(0));
            INS(gen->ptx, "mov.b32", ptx_reg(cursor.parity), ptx_int(end == END_PRODUCE ? 1 : 0));
            state->cursors[end][p] = cursor;
        }
    }
}

static Reg elected_lane(Gen *gen) {
    if (!target_has(gen, CAP_ELECT)) {
        Reg lane = PURE(gen->ptx, REG_32, "mov.u32", ptx_text("%laneid"));
        return PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(lane), ptx_int(0));
    }
    Reg elected = ptx_new_reg(gen->ptx, REG_PRED);
    INS(gen->ptx, "elect.sync", ptx_text(arena_printf(gen->arena, "_|%%p%u", elected.id)),
        ptx_int(0xffffffff));
    return elected;
}

/* Computes instance, thread of the instance, the lane that issues bulk copies, the lane that
 * arrives for its warp. */
static void open_threads(Gen *gen, RoleState *state) {
    const Role *role = state->role;
    if (role->one_lane) {
        INS_UNLESS(gen->ptx, elected_lane(gen), "bra", ptx_label(state->idle_label));
        return;
    }
    Reg thread = ptx_new_reg(gen->ptx, REG_32), lane = ptx_new_reg(gen->ptx, REG_32);
    INS(gen->ptx, "mov.u32", ptx_reg(thread), ptx_text("%tid.x"));
    INS(gen->ptx, "mov.u32", ptx_reg(lane), ptx_text("%laneid"));
    state->thread =
        PURE(gen->ptx, REG_32, "sub.s32", ptx_reg(thread), ptx_int(state->plan->first_warp * 32));
    if (role->instances > 1) {
        Reg warp =
            PURE(gen->ptx, REG_32, "sub.s32", ptx_reg(gen->warp), ptx_int(state->plan->first_warp));
        state->rank = PURE(gen->ptx, REG_32, "div.u32", ptx_reg(warp), ptx_int(role->warps));
        state->thread =
            PURE(gen->ptx, REG_32, "rem.u32", ptx_reg(state->thread), ptx_int(role->warps * 32));
    }
    state->leader = PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(state->thread), ptx_int(0));
    state->arriver = PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(lane), ptx_int(0));
}

static void open_storage(Gen *gen, RoleState *state) {
    const Role *role = state->role;
    state->handles = NEW_ARRAY(gen->arena, Reg, role->handles.count);
    for (size_t i = 0; i < role->handles.count; i++)
        state->handles[i] = ptx_new_reg(gen->ptx, REG_32);
    state->hints = NEW_ARRAY(gen->arena, Reg, role->hints.count);
    for (size_t i = 0; i < role->hints.count; i++)
        state->hints[i] = ptx_new_reg(gen->ptx, REG_PRED);
    state->locals = NEW_ARRAY(gen->arena, Value, role->locals.count);
    for (size_t i = 0; i < role->locals.count; i++) {
        Element type = element_rows[role->locals.items[i].type].widens;
        state->locals[i] = value_reg(type, ptx_new_reg(gen->ptx, class_of(type)));
    }
    state->tiles = NEW_ARRAY(gen->arena, Reg *, role->tiles.count);
    for (size_t i = 0; i < role->tiles.count; i++) {
        const RoleTile *tile = &role->tiles.items[i];
        if (!tile->in_registers) continue;
        const TilePlan *plan = &state->plan->tiles[i];
        int64_t slots = layout_registers(&plan->held) / plan->packed;
        state->tiles[i] = NEW_ARRAY(gen->arena, Reg, slots);
        for (int64_t s = 0; s < slots; s++)
            state->tiles[i][s] = ptx_new_reg(gen->ptx, class_of(element_rows[tile->type].widens));
    }
}

void gen_role(Gen *gen, int number) {
    const Role *role = &gen->prog->roles.items[number];
    const FlowCode *code = role->code;
    const RolePlan *plan = &gen->plan->roles[number];
    RoleState state = {
        .role = role, .number = number, .plan = plan, .code = code, .rows = plan->rows};
    gen->role = &state;
    state.exits = NEW_ARRAY(gen->arena, Exits, code->regions.count);
    state.lates = NEW_ARRAY(gen->arena, LateRegs, code->lates.count + 1);
    state.unrolled = NEW_ARRAY(gen->arena, int64_t, role->locals.count + 1);
    state.end_label = ptx_new_label(gen->ptx);
    state.idle_label = cluster_waits(gen, number) ? ptx_new_label(gen->ptx) : state.end_label;
    state.expired_label = ptx_new_label(gen->ptx);
    state.expired_site = ptx_new_reg(gen->ptx, REG_32);
    state.expired_stage = ptx_new_reg(gen->ptx, REG_32);
    ptx_mark(gen->ptx, role->span, number, NULL, NULL);
    ptx_comment(gen->ptx, "---- role %s: %d x %d warps from warp %d%s", role->name, role->instances,
                role->warps, plan->first_warp, role->one_lane ? ", in one elected lane" : "");
    open_threads(gen, &state);
    open_storage(gen, &state);
    registers_open(gen);
    reductions_open(gen);
    open_cursors(gen, &state);
    zero_open(gen);
    turns_begin(gen);
    tile_begin(gen);
    cluster_open_role(gen);
    gen_rows(gen, code->regions.items[0].begin + 1, code->regions.items[0].end);
    /* also the target of unelected lanes, unless the others wait here */
    ptx_place_label(gen->ptx, state.end_label);
    wait_before(gen, (int)code->rows.count - 1);
    turns_end(gen);
    pipe_finish(gen);
    pipe_leave(gen);
    cluster_return(gen);
    pipe_expired(gen);
    gen->role = NULL;
}
