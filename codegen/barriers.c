/* Barriers: the mbarriers of stages, the named barriers of instances, the join of a warp. */
#include "codegen/gen.h"

Operand stage_barrier(Gen *gen, const Pipe *pipe, bool full, Reg stage) {
    int64_t offset = plan_pipe(gen->prog, pipe)->barriers[full ? END_PRODUCE : END_CONSUME];
    if (pipe->stages == 1) return ptx_at(gen->shared, offset);
    Reg scaled = PURE(gen->ptx, REG_32, "shl.b32", ptx_reg(stage), ptx_int(3));
    Reg base = PURE(gen->ptx, REG_32, "add.s32", ptx_reg(scaled), ptx_reg(gen->shared));
    return ptx_at(base, offset);
}

void barrier_test(Gen *gen, Reg done, Operand barrier, Reg parity) {
    INS(gen->ptx, "mbarrier.test_wait.parity.shared::cta.b64", ptx_reg(done), barrier,
        ptx_reg(parity));
}

void barrier_try(Gen *gen, Reg done, Operand barrier, Reg parity) {
    if (!target_has(gen, CAP_TRY_WAIT)) {
        barrier_test(gen, done, barrier, parity);
        return;
    }
    INS(gen->ptx, "mbarrier.try_wait.parity.shared::cta.b64", ptx_reg(done), barrier,
        ptx_reg(parity));
}

void warp_join(Gen *gen) { INS(gen->ptx, "bar.warp.sync", ptx_int(0xffffffff)); }

void warp_sync(Gen *gen) {
    if (!gen->role->role->one_lane) warp_join(gen);
}

/* The number of a named barrier must be an immediate: for one in a register ptxas would reserve
 * all sixteen. So each instance executes an instruction of its own. */
void instances_barrier(Gen *gen, const char *op, int first, int shift, int threads) {
    const RoleState *state = gen->role;
    int instances = state->role->instances;
    if (instances == 1) {
        INS(gen->ptx, op, ptx_int(first), ptx_int(threads));
        return;
    }
    for (int k = 0; k < instances; k++) {
        int id = first + (k + shift) % instances;
        Reg mine = PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(state->rank), ptx_int(k));
        INS_IF(gen->ptx, mine, op, ptx_int(id), ptx_int(threads));
    }
}

void instance_barrier(Gen *gen) {
    const Role *role = gen->role->role;
    if (role->warps == 1)
        warp_join(gen);
    else
        instances_barrier(gen, "bar.sync", gen->role->plan->barrier, 0, role->warps * 32);
}
