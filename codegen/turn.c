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

static int token_of(const RoleState *state, int turn) {
    return state->plan->tokens + (turn - 1) * state->role->instances;
}
static int token_threads(const Role *role) {
    return 2 * role->warps * 32;
} /* of the passing and of the waiting instance */

/* A barrier instruction is executed by a whole warp: its lanes, which may have diverged,
 * synchronise first. */
static void token_barrier(Gen *gen, const char *op, int turn, int shift) {
    const Role *role = gen->role->role;
    warp_join(gen);
    instances_barrier(gen, op, token_of(gen->role, turn), shift, token_threads(role));
}

void turn_open(Gen *gen, const Row *row) {
    const Role *role = gen->role->role;
    ptx_mark(gen->ptx, row->head, gen->role->number, NULL, "waits for its turn");
    ptx_comment(gen->ptx, "%s: takes its turn", role->name);
    token_barrier(gen, "bar.sync", row->turn, 0);
}

bool turn_passes_after(const Gen *gen, int at) { return gen->role->rows->passes[at] != 0; }

void turn_pass_after(Gen *gen, int at) {
    if (!turn_passes_after(gen, at)) return;
    ptx_comment(gen->ptx, "%s: the next one's turn", gen->role->role->name);
    token_barrier(gen, "bar.arrive", gen->role->rows->passes[at], 1);
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
    Reg last =
        PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(state->rank), ptx_int(role->instances - 1));
    for (int turn = 1; turn <= role->turns; turn++)
        INS_IF(gen->ptx, last, "bar.arrive", ptx_int(token_of(state, turn)),
               ptx_int(token_threads(role)));
}

/* The instance that would be next takes the token, so that the barrier ends as it began. */
void turns_end(Gen *gen) {
    RoleState *state = gen->role;
    const Role *role = state->role;
    if (role->turns == 0) return;
    int end = ptx_new_label(gen->ptx);
    Reg other = PURE(gen->ptx, REG_PRED, "setp.ne.u32",
                     ptx_reg(role->in_turn ? state->until : state->rank), ptx_int(0));
    ptx_comment(gen->ptx, "%s: nobody takes the last turn", role->name);
    INS_IF(gen->ptx, other, "bra.uni", ptx_label(end));
    for (int turn = 1; turn <= role->turns; turn++) token_barrier(gen, "bar.sync", turn, 0);
    ptx_place_label(gen->ptx, end);
}

/* ---- skipped iterations ---------------------------------------------------------------------- */

static Reg trips_of(Gen *gen, const Region *loop) {
    Value lo = eval_scalar(gen, loop->lo), hi = eval_scalar(gen, loop->hi);
    Reg first = value_in_reg(gen, hi);
    if (lo.reg.class != REG_NONE || lo.integer != 0)
        first = PURE(gen->ptx, REG_32, "sub.s32", ptx_reg(first), value_operand(lo));
    return PURE(gen->ptx, REG_32, "max.s32", ptx_reg(first), ptx_int(0));
}

bool turn_steps_at_once(Gen *gen, int region) {
    const RoleState *state = gen->role;
    const int64_t *counts = state->skips ? state->rows->steps[region] : NULL;
    if (counts == NULL) return false;
    Reg trips = trips_of(gen, code_region(state->code, region));
    for (size_t p = 0; p < gen->prog->pipes.count; p++) {
        if (counts[p] == 0) continue;
        Reg stages = trips;
        if (counts[p] > 1)
            stages = PURE(gen->ptx, REG_32, "mul.lo.s32", ptx_reg(trips), ptx_int(counts[p]));
        pipe_skip(gen, (int)p, stages);
    }
    return true;
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
