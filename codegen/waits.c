/* Planned waits for asynchronous work of the role itself: for matrix instructions, and for
 * copies out of stages. */
#include "codegen/gen.h"

/* ---- matrix instructions --------------------------------------------------------------------- */

/* Spins until the full barrier of a held stage has left the phase of its data. That phase is the
 * cursor's if the cursor has not wrapped since, otherwise the other one. If another warp of the
 * instance releases for all, the stage may be refilled before this warp reaches the spin: so the
 * spin also tests the next phase, and of two consecutive phases one is complete at any time. */
static void spin_at(Gen *gen, int handle_index) {
    const Handle *handle = &gen->role->role->handles.items[handle_index];
    const Cursor *cursor = &gen->role->cursors[END_CONSUME][handle->pipe];
    const Pipe *pipe = &gen->prog->pipes.items[handle->pipe];
    Reg stage = gen->role->handles[handle_index], done = ptx_new_reg(gen->ptx, REG_PRED);
    Reg wrapped = PURE(gen->ptx, REG_PRED, "setp.ge.u32", ptx_reg(stage), ptx_reg(cursor->stage));
    Reg other = PURE(gen->ptx, REG_32, "selp.b32", ptx_int(1), ptx_int(0), ptx_reg(wrapped));
    Reg parity = PURE(gen->ptx, REG_32, "xor.b32", ptx_reg(cursor->parity), ptx_reg(other));
    Reg next = PURE(gen->ptx, REG_32, "xor.b32", ptx_reg(parity), ptx_int(1));
    Operand barrier = stage_barrier(gen, pipe, true, stage);
    int again = ptx_new_label(gen->ptx);
    ptx_comment(gen->ptx, "what is before stays before the wait");
    ptx_place_label(gen->ptx, again);
    barrier_try(gen, done, barrier, parity);
    INS_UNLESS(gen->ptx, done, "mbarrier.test_wait.parity.shared::cta.b64", ptx_reg(done), barrier,
               ptx_reg(next));
    INS_UNLESS(gen->ptx, done, "bra", ptx_label(again));
    ptx_forget(gen->ptx);
}

static const Wait *planned(const Gen *gen, const Waits *waits, int at) {
    return plan_wait(gen->role->code, waits, at, gen->role->unrolled);
}

bool waits_in_flight(const Gen *gen, int at) {
    const Wait *wait = planned(gen, gen->role->rows->waits, at);
    return wait != NULL && wait->in_flight;
}

static void emit_wait(Gen *gen, const Wait *wait) {
    if (wait == NULL) return;
    if (wait->pin >= 0) spin_at(gen, wait->pin);
    INS(gen->ptx, "wgmma.wait_group.sync.aligned", ptx_int(wait->depth));
    ptx_forget(gen->ptx);
}

void wait_before(Gen *gen, int at) { emit_wait(gen, planned(gen, gen->role->rows->waits, at)); }
void wait_at_join(Gen *gen, int at) { emit_wait(gen, planned(gen, gen->role->rows->joins, at)); }

/* ---- order within the instance --------------------------------------------------------------- */

static const RowOrder *order_of(Gen *gen, const Row *row) {
    return &gen->role->plan->order[row_number(gen, row)];
}

static void wait_for_stores(Gen *gen) {
    Reg leader = gen->role->leader;
    ptx_ins(gen->ptx, leader, false, "cp.async.bulk.commit_group", NULL, 0);
    INS_IF(gen->ptx, leader, "cp.async.bulk.wait_group", ptx_int(0));
    /* Also orders the elements that the lane itself has stored at the end of a tensor */
    ptx_ins(gen->ptx, leader, false, "fence.proxy.async", NULL, 0);
}

/* The lane that waits for copies synchronises with the other threads after that, if they need them,
 * and the copy that it issues needs theirs before. */
void order_before(Gen *gen, const Row *row) {
    const RowOrder *order = order_of(gen, row);
    bool copy = tile_is_load(row->tile) || tile_is_store(row->tile);
    if (order->fence) INS0(gen->ptx, "fence.proxy.async");
    if (copy && order->threads) instance_barrier(gen);
    if (order->stores) wait_for_stores(gen);
    if (!copy && order->threads) instance_barrier(gen);
}

void order_after(Gen *gen, const Row *row) {
    if (!order_of(gen, row)->publishes) return;
    if (target_has(gen, CAP_COPY_ENGINE)) INS0(gen->ptx, "fence.proxy.async.shared::cta");
    instance_barrier(gen);
}
