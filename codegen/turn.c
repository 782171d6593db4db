/* Instances that take turns.
 *
 * `role r: n warpgroups in turn`: all instances iterate over the grid, and each executes the
 * body in its own iterations. In the others it only advances the cursors, so that they agree
 * with those of the instance that executes the body.
 *
 * `turn { }`: a token is passed around the instances by named barriers (PTX ISA 9.7.13.1), one
 * for each waiting instance: the barrier completes when all threads of the waiting instance and
 * of the one before have arrived. At the start the last instance arrives for the first; at the
 * end the next instance takes the token back. */
#include "codegen/gen.h"

/* ---- tokens ---------------------------------------------------------------------------------- */

static int token_of(const Role *role, int turn) { return role->tokens + (turn - 1) * role->instances; }
static int token_threads(const Role *role) {
    return 2 * role->warps * 32;
} /* of the passing and of the waiting instance */

/* A barrier instruction is executed by a whole warp: its lanes, which may have diverged,
 * synchronise first. */
static void token_barrier(Gen *gen, const char *op, int turn, int shift) {
    const Role *role = gen->role->role;
    warp_join(gen);
    instances_barrier(gen, op, token_of(role, turn), shift, token_threads(role));
}

void turn_open(Gen *gen, const Row *row) {
    const Role *role = gen->role->role;
    ptx_mark(gen->ptx, row->head, gen->role->number, NULL, "waits for its turn");
    ptx_comment(gen->ptx, "%s: takes its turn", role->name);
    token_barrier(gen, "bar.sync", row->turn, 0);
}

bool turn_passes_after(const Gen *gen, int at) { return gen->role->plan->passes[at] != 0; }

void turn_pass_after(Gen *gen, int at) {
    if (!turn_passes_after(gen, at)) return;
    ptx_comment(gen->ptx, "%s: the next one's turn", gen->role->role->name);
    token_barrier(gen, "bar.arrive", gen->role->plan->passes[at], 1);
}

void turns_begin(Gen *gen) {
    RoleState *state = gen->role;
    const Role *role = state->role;
    if (role->in_turn) {
        state->until = ptx_new_reg(gen->ptx, REG_32);
        INS(gen->ptx, "mov.b32", ptx_reg(state->until), ptx_reg(state->rank));
    }
    if (role->turns == 0) return;
    ptx_comment(gen->ptx, "%s: the first turn is that of instance 0", role->name);
    Reg last = PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(state->rank), ptx_int(role->instances - 1));
    for (int turn = 1; turn <= role->turns; turn++)
        INS_IF(gen->ptx, last, "bar.arrive", ptx_int(token_of(role, turn)), ptx_int(token_threads(role)));
}

/* The instance that would be next takes the token, so that the barrier ends as it began. */
void turns_end(Gen *gen) {
    RoleState *state = gen->role;
    const Role *role = state->role;
    if (role->turns == 0) return;
    int end = ptx_new_label(gen->ptx);
    Reg other =
        PURE(gen->ptx, REG_PRED, "setp.ne.u32", ptx_reg(role->in_turn ? state->until : state->rank), ptx_int(0));
    ptx_comment(gen->ptx, "%s: nobody takes the last turn", role->name);
    INS_IF(gen->ptx, other, "bra.uni", ptx_label(end));
    for (int turn = 1; turn <= role->turns; turn++) token_barrier(gen, "bar.sync", turn, 0);
    ptx_place_label(gen->ptx, end);
}

/* ---- skipped iterations ---------------------------------------------------------------------- */

typedef struct Skip {
    Gen *gen;
    const FlowCode *code; /* planned */
    Exits *exits;         /* by its region */
} Skip;

static void skip_rows(Skip *skip, int from, int to);

static Exits open_skip(Skip *skip, int region) {
    Exits exits = {ptx_new_label(skip->gen->ptx), ptx_new_label(skip->gen->ptx)};
    return skip->exits[region] = exits;
}

static Reg trips_of(Gen *gen, const Region *loop) {
    Value lo = eval_scalar(gen, loop->lo), hi = eval_scalar(gen, loop->hi);
    Reg first = value_in_reg(gen, hi);
    if (lo.reg.class != REG_NONE || lo.integer != 0)
        first = PURE(gen->ptx, REG_32, "sub.s32", ptx_reg(first), value_operand(lo));
    return PURE(gen->ptx, REG_32, "max.s32", ptx_reg(first), ptx_int(0));
}

/* A loop whose iterations all acquire the same number of stages becomes a multiplication. */
static bool skip_at_once(Skip *skip, int region) {
    Gen *gen = skip->gen;
    const int64_t *counts = gen->role->plan->skipped.acquires[region];
    if (counts == NULL) return false;
    Reg trips = trips_of(gen, &skip->code->regions.items[region]);
    for (size_t p = 0; p < gen->prog->pipes.count; p++) {
        if (counts[p] == 0) continue;
        Reg stages = counts[p] == 1 ? trips : PURE(gen->ptx, REG_32, "mul.lo.s32", ptx_reg(trips), ptx_int(counts[p]));
        pipe_skip(gen, (int)p, stages);
    }
    return true;
}

static void skip_for(Skip *skip, int region) {
    Gen *gen = skip->gen;
    const Region *loop = &skip->code->regions.items[region];
    if (skip_at_once(skip, region)) return;
    Exits exits = open_skip(skip, region);
    Reg var = gen->role->locals[loop->var].reg, done = ptx_new_reg(gen->ptx, REG_PRED),
        end = ptx_new_reg(gen->ptx, REG_32);
    INS(gen->ptx, "mov.b32", ptx_reg(end), value_operand(eval_scalar(gen, loop->hi)));
    INS(gen->ptx, "mov.b32", ptx_reg(var), value_operand(eval_scalar(gen, loop->lo)));
    int head = ptx_new_label(gen->ptx);
    ptx_place_label(gen->ptx, head);
    INS(gen->ptx, "setp.ge.s32", ptx_reg(done), ptx_reg(var), ptx_reg(end));
    INS_IF(gen->ptx, done, "bra", ptx_label(exits.leave_label));
    if (loop->where != NULL)
        INS_UNLESS(gen->ptx, eval_condition(gen, &(Point){.outer = NULL}, loop->where), "bra",
                   ptx_label(exits.continue_label));
    skip_rows(skip, loop->begin + 1, loop->next);
    ptx_place_label(gen->ptx, exits.continue_label);
    INS(gen->ptx, "add.s32", ptx_reg(var), ptx_reg(var), ptx_int(1));
    INS(gen->ptx, "bra", ptx_label(head));
    ptx_place_label(gen->ptx, exits.leave_label);
}

static void skip_if(Skip *skip, const Region *branch) {
    Gen *gen = skip->gen;
    Value condition = eval_scalar(gen, branch->condition);
    if (condition.reg.class == REG_NONE) {
        if (condition.integer != 0)
            skip_rows(skip, branch->begin + 1, branch->otherwise);
        else
            skip_rows(skip, branch->otherwise + 1, branch->end);
        return;
    }
    int otherwise = ptx_new_label(gen->ptx), end = ptx_new_label(gen->ptx);
    INS_UNLESS(gen->ptx, condition.reg, "bra", ptx_label(otherwise));
    skip_rows(skip, branch->begin + 1, branch->otherwise);
    INS(gen->ptx, "bra", ptx_label(end));
    ptx_place_label(gen->ptx, otherwise);
    skip_rows(skip, branch->otherwise + 1, branch->end);
    ptx_place_label(gen->ptx, end);
}

static void skip_leave(const Skip *skip, const Row *leave) {
    /* turns: no leave out of the loop over the grid */
    const Exits *exits = &skip->exits[leave->target];
    INS(skip->gen->ptx, "bra", ptx_label(leave->again ? exits->continue_label : exits->leave_label));
    ptx_forget(skip->gen->ptx);
}

static void skip_block(Skip *skip, int region) {
    const Region *block = &skip->code->regions.items[region];
    Exits exits = open_skip(skip, region);
    skip_rows(skip, block->begin + 1, block->end);
    if (block->left) ptx_place_label(skip->gen->ptx, exits.leave_label);
}

static void skip_region(Skip *skip, int region) {
    switch (skip->code->regions.items[region].kind) {
    case REGION_FOR: skip_for(skip, region); return;
    case REGION_IF: skip_if(skip, &skip->code->regions.items[region]); return;
    case REGION_BLOCK:
    case REGION_TURN: skip_block(skip, region); return;
    case REGION_ROLE:
    case REGION_GRID: return; /* grid loops do not nest */
    }
}

static void skip_set(Gen *gen, const Row *row) {
    ptx_mark(gen->ptx, row->span, gen->role->number, NULL, NULL);
    local_set(gen, row->local, eval_scalar(gen, row->value));
}

static void skip_rows(Skip *skip, int from, int to) {
    for (int at = from; at < to; at++) {
        const Row *row = &skip->code->rows.items[at];
        if (row->kind == ROW_LOOP || row->kind == ROW_IF || row->kind == ROW_BLOCK) {
            skip_region(skip, row->region);
            at = skip->code->regions.items[row->region].end;
        }
        if (row->kind == ROW_ACQUIRE) pipe_skip(skip->gen, skip->code->role->handles.items[row->handle].pipe, PTX_NONE);
        if (row->kind == ROW_LEAVE) skip_leave(skip, row);
        if (row->kind == ROW_SET) skip_set(skip->gen, row);
    }
}

/* ---- the loop over the grid ------------------------------------------------------------------ */

int turn_iteration(Gen *gen) {
    RoleState *state = gen->role;
    if (!state->role->in_turn) return -1;
    int skip = ptx_new_label(gen->ptx);
    Reg other = ptx_new_reg(gen->ptx, REG_PRED);
    INS(gen->ptx, "setp.ne.u32", ptx_reg(other), ptx_reg(state->until), ptx_int(0));
    INS_IF(gen->ptx, other, "bra.uni", ptx_label(skip));
    return skip;
}

void turn_skipped(Gen *gen, int label) {
    RoleState *state = gen->role;
    const FlowCode *code = state->plan->skipped.code;
    if (label < 0) return;
    /* a loop without acquires is not in the slice */
    int grid = 0, count = (int)code->regions.count;
    while (grid < count && code->regions.items[grid].kind != REGION_GRID) grid++;
    Skip skip = {.gen = gen, .code = code, .exits = NEW_ARRAY(gen->arena, Exits, code->regions.count + 1)};
    Exits exits = open_skip(&skip, grid);
    INS(gen->ptx, "mov.b32", ptx_reg(state->until), ptx_int(state->role->instances));
    INS(gen->ptx, "bra.uni", ptx_label(exits.continue_label));
    ptx_place_label(gen->ptx, label);
    ptx_comment(gen->ptx, "%s: another instance's iteration", state->role->name);
    if (grid < count) skip_rows(&skip, code->regions.items[grid].begin + 1, code->regions.items[grid].next);
    ptx_place_label(gen->ptx, exits.continue_label);
    INS(gen->ptx, "sub.s32", ptx_reg(state->until), ptx_reg(state->until), ptx_int(1));
    ptx_forget(gen->ptx);
}
