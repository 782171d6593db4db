/* Pipes as mbarriers: acquire, release, the waits and their watchdog.
 *
 * Convention: a ring's cursors start at stage 0; consumers wait for parity 0, producers for
 * parity 1, which a new barrier passes. A cursor advances at the acquire; a handle keeps the
 * index of its stage. Each warp waits separately and synchronises by bar.warp.sync before its
 * elected lane arrives or issues, so that no lane is lapped. */
#include "codegen/gen.h"

static const PipeUse *use_of(const Gen *gen, int pipe) { return &gen->role->role->pipes[pipe]; }

/* ---- waiting --------------------------------------------------------------------------------- */

static int wait_site(Gen *gen, const Pipe *pipe, bool full, Span span) {
    vec_push(gen->arena, &gen->manifest->waits,
             (ManifestWait){gen->role->number, pipe->name, full, span});
    return (int)gen->manifest->waits.count;
}

/* The limit is in host memory: reading it at every wait would saturate the bus (seen: 5 GB/s of
 * 4000). Only waits longer than any in a running pipeline read it. */
#define ORDINARY_WAIT_NS 10000000

/* `hint`: a predicate, true if the stage was ready already. Uses the plain form of try_wait: an
 * explicit .acquire.cluster would invalidate L1 at every wait. With the watchdog the second and
 * later tries read the clock. */
static void wait_for(Gen *gen, const Pipe *pipe, bool full, Reg stage, Reg parity, Reg hint,
                     Span span) {
    RoleState *state = gen->role;
    Operand barrier = stage_barrier(gen, pipe, full, stage);
    Reg done = ptx_new_reg(gen->ptx, REG_PRED);
    int again = ptx_new_label(gen->ptx);
    bool hinted = hint.class != REG_NONE;
    int passed = hinted || gen->options->watchdog ? ptx_new_label(gen->ptx) : -1;
    if (hinted) INS_IF(gen->ptx, hint, "bra", ptx_label(passed));
    if (!gen->options->watchdog) {
        ptx_place_label(gen->ptx, again);
        barrier_try(gen, done, barrier, parity);
        INS_UNLESS(gen->ptx, done, "bra", ptx_label(again));
        if (hinted) ptx_place_label(gen->ptx, passed);
        ptx_forget(gen->ptx);
        return;
    }
    Reg start = ptx_new_reg(gen->ptx, REG_64), now = ptx_new_reg(gen->ptx, REG_64),
        limit = ptx_new_reg(gen->ptx, REG_64);
    Reg area = gen->watchdog, patient = ptx_new_reg(gen->ptx, REG_PRED);
    barrier_try(gen, done, barrier, parity);
    INS_IF(gen->ptx, done, "bra", ptx_label(passed));
    INS(gen->ptx, "mov.u64", ptx_reg(start), ptx_text("%globaltimer"));
    ptx_place_label(gen->ptx, again);
    barrier_try(gen, done, barrier, parity);
    INS_IF(gen->ptx, done, "bra", ptx_label(passed));
    INS(gen->ptx, "mov.u64", ptx_reg(now), ptx_text("%globaltimer"));
    INS(gen->ptx, "sub.u64", ptx_reg(now), ptx_reg(now), ptx_reg(start));
    INS(gen->ptx, "setp.lt.u64", ptx_reg(patient), ptx_reg(now), ptx_int(ORDINARY_WAIT_NS));
    INS_IF(gen->ptx, patient, "bra", ptx_label(again));
    INS(gen->ptx, "ld.volatile.global.u64", ptx_reg(limit),
        ptx_at(area, (int64_t)offsetof(WatchdogArea, limit_ns)));
    INS(gen->ptx, "setp.lt.u64", ptx_reg(patient), ptx_reg(now), ptx_reg(limit));
    INS_IF(gen->ptx, patient, "bra", ptx_label(again));
    INS(gen->ptx, "mov.b32", ptx_reg(state->expired_site),
        ptx_int(wait_site(gen, pipe, full, span)));
    INS(gen->ptx, "mad.lo.u32", ptx_reg(state->expired_stage), ptx_reg(stage), ptx_int(2),
        ptx_reg(parity));
    INS(gen->ptx, "bra", ptx_label(state->expired_label));
    ptx_place_label(gen->ptx, passed);
    state->any_wait = true;
}

void pipe_wait(Gen *gen, const Pipe *pipe, bool full, Reg stage, Reg parity, Span span) {
    wait_for(gen, pipe, full, stage, parity, PTX_NONE, span);
}

/* The limit is exceeded: each warp stores one record of sixteen bytes, waits a second for the
 * other warps' records, then traps. */
void pipe_expired(Gen *gen) {
    RoleState *state = gen->role;
    if (!state->any_wait) return;
    Reg area = gen->watchdog;
    Reg words[4] = {state->expired_site, state->expired_stage, ptx_new_reg(gen->ptx, REG_32),
                    ptx_new_reg(gen->ptx, REG_32)};
    Reg start = ptx_new_reg(gen->ptx, REG_64), now = ptx_new_reg(gen->ptx, REG_64),
        soon = ptx_new_reg(gen->ptx, REG_PRED);
    ptx_place_label(gen->ptx, state->expired_label);
    ptx_comment(gen->ptx, "watchdog of `%s`: who waits for what", state->role->name);
    INS(gen->ptx, "mov.u32", ptx_reg(words[2]), ptx_text("%ctaid.x"));
    INS(gen->ptx, "mov.b32", ptx_reg(words[3]),
        state->rank.class == REG_NONE ? ptx_int(0) : ptx_reg(state->rank));
    Reg offset = PURE(gen->ptx, REG_64, "mul.wide.u32", ptx_reg(gen->warp),
                      ptx_int((int64_t)sizeof(WatchdogRecord)));
    Reg at = PURE(gen->ptx, REG_64, "add.s64", ptx_reg(offset), ptx_reg(area));
    INS(gen->ptx, "st.volatile.global.v4.b32", ptx_at(at, (int64_t)offsetof(WatchdogArea, records)),
        ptx_vector(words, 4));
    INS0(gen->ptx, "membar.sys");
    INS(gen->ptx, "mov.u64", ptx_reg(start), ptx_text("%globaltimer"));
    int again = ptx_new_label(gen->ptx);
    ptx_place_label(gen->ptx, again);
    INS(gen->ptx, "mov.u64", ptx_reg(now), ptx_text("%globaltimer"));
    INS(gen->ptx, "sub.u64", ptx_reg(now), ptx_reg(now), ptx_reg(start));
    INS(gen->ptx, "setp.lt.u64", ptx_reg(soon), ptx_reg(now), ptx_int(1000000000));
    INS_IF(gen->ptx, soon, "bra", ptx_label(again));
    INS0(gen->ptx, "trap");
}

/* ---- acquire --------------------------------------------------------------------------------- */

static void step_stage(Gen *gen, Reg stage, Reg parity, int stages) {
    if (stages == 1) {
        if (parity.class != REG_NONE)
            INS(gen->ptx, "xor.b32", ptx_reg(parity), ptx_reg(parity), ptx_int(1));
        return;
    }
    Reg wrapped = ptx_new_reg(gen->ptx, REG_PRED);
    INS(gen->ptx, "add.s32", ptx_reg(stage), ptx_reg(stage), ptx_int(1));
    INS(gen->ptx, "setp.eq.u32", ptx_reg(wrapped), ptx_reg(stage), ptx_int(stages));
    INS(gen->ptx, "selp.b32", ptx_reg(stage), ptx_int(0), ptx_reg(stage), ptx_reg(wrapped));
    if (parity.class != REG_NONE)
        INS_IF(gen->ptx, wrapped, "xor.b32", ptx_reg(parity), ptx_reg(parity), ptx_int(1));
    ptx_forget(gen->ptx);
}

void pipe_step(Gen *gen, End end, int pipe) {
    Cursor *cursor = &gen->role->cursors[end][pipe];
    step_stage(gen, cursor->stage, cursor->parity, gen->prog->pipes.items[pipe].stages);
    ptx_forget(gen->ptx);
}

void pipe_skip(Gen *gen, int index, Reg stages) {
    const Pipe *pipe = &gen->prog->pipes.items[index];
    Cursor *cursor =
        &gen->role->cursors[pipe->producer == gen->role->number ? END_PRODUCE : END_CONSUME][index];
    if (stages.class == REG_NONE) {
        step_stage(gen, cursor->stage, cursor->parity, pipe->stages);
        return;
    }
    Reg rounds = stages;
    if (pipe->stages > 1) {
        Reg at = PURE(gen->ptx, REG_32, "add.s32", ptx_reg(cursor->stage), ptx_reg(stages));
        rounds = PURE(gen->ptx, REG_32, "div.u32", ptx_reg(at), ptx_int(pipe->stages));
        INS(gen->ptx, "rem.u32", ptx_reg(cursor->stage), ptx_reg(at), ptx_int(pipe->stages));
    }
    Reg odd = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(rounds), ptx_int(1));
    INS(gen->ptx, "xor.b32", ptx_reg(cursor->parity), ptx_reg(cursor->parity), ptx_reg(odd));
    ptx_forget(gen->ptx);
}

/* Each thread tests once, without blocking, as each thread waits separately. */
void pipe_ask(Gen *gen, const Row *row) {
    RoleState *state = gen->role;
    const Hint *hint = &state->role->hints.items[row->hint];
    const Pipe *pipe = &gen->prog->pipes.items[hint->pipe];
    const Cursor *cursor = &state->cursors[hint->end][hint->pipe];
    bool consume = hint->end == END_CONSUME;
    ptx_mark(gen->ptx, row->head, state->number, pipe->name,
             arena_printf(gen->arena, "asks for %s stage of `%s`", consume ? "a full" : "an empty",
                          pipe->name));
    ptx_comment(gen->ptx, "%s: %s = try %s <%s>", state->role->name, hint->name,
                consume ? "consume" : "produce", pipe->name);
    barrier_test(gen, state->hints[row->hint], stage_barrier(gen, pipe, consume, cursor->stage),
                 cursor->parity);
    ptx_forget(gen->ptx);
}

void pipe_acquire(Gen *gen, const Row *row) {
    RoleState *state = gen->role;
    int handle_index = row->handle;
    const Handle *handle = &state->role->handles.items[handle_index];
    const Pipe *pipe = &gen->prog->pipes.items[handle->pipe];
    const PipeUse *use = use_of(gen, handle->pipe);
    bool consume = handle->end == END_CONSUME;
    Cursor *cursor = &state->cursors[handle->end][handle->pipe];
    Span span = row->head.hi > row->head.lo ? row->head : row->span;
    ptx_mark(gen->ptx, span, state->number, pipe->name,
             arena_printf(gen->arena, "waits for %s stage of `%s`", consume ? "a full" : "an empty",
                          pipe->name));
    ptx_comment(gen->ptx, "%s: %s <%s> as %s", state->role->name, consume ? "consume" : "produce",
                pipe->name, handle->name);
    if (!row->unwaited) {
        Reg hint = row->hint < 0 ? PTX_NONE : state->hints[row->hint];
        wait_for(gen, pipe, consume, cursor->stage, cursor->parity, hint, span);
        warp_sync(gen);
    }
    INS(gen->ptx, "mov.b32", ptx_reg(state->handles[handle_index]), ptx_reg(cursor->stage));
    step_stage(gen, cursor->stage, cursor->parity, pipe->stages);
    ptx_forget(gen->ptx);
    if (consume) tile_take(gen, handle->pipe, state->handles[handle_index]);
    /* all bytes for this stage, expected before the first copy */
    if (!consume && use->arrives[END_PRODUCE] & ARRIVES_BYTES)
        INS_IF(gen->ptx, state->leader, "mbarrier.arrive.expect_tx.shared::cta.b64", ptx_text("_"),
               stage_barrier(gen, pipe, true, state->handles[handle_index]),
               ptx_int(state->plan->stages.bytes[handle->pipe]));
}

/* ---- release --------------------------------------------------------------------------------- */

static void arrive(Gen *gen, Operand barrier) {
    INS_IF(gen->ptx, gen->role->arriver, "mbarrier.arrive.shared::cta.b64", ptx_text("_"), barrier);
}

static void fence(Gen *gen, int pipe, End end) {
    if (gen->role->plan->fenced[end][pipe]) INS0(gen->ptx, "fence.proxy.async.shared::cta");
}

static void release_produced(Gen *gen, int pipe_index, Reg stage) {
    const Pipe *pipe = &gen->prog->pipes.items[pipe_index];
    const PipeUse *use = use_of(gen, pipe_index);
    Operand full = stage_barrier(gen, pipe, true, stage);
    /* noinc: the barrier counts every lane (PTX ISA 9.7.13.15, cp.async.mbarrier.arrive) */
    if (use->arrives[END_PRODUCE] & ARRIVES_LANES)
        INS(gen->ptx, "cp.async.mbarrier.arrive.noinc.shared::cta.b64", full);
    if (!(use->arrives[END_PRODUCE] & ARRIVES_WARPS)) return;
    if (use->waits_copies) INS0(gen->ptx, "cp.async.wait_all");
    fence(gen, pipe_index, END_PRODUCE);
    tile_publish(gen, pipe_index, stage);
    warp_sync(gen);
    arrive(gen, full);
}

/* Bulk stores read its stages. */
static bool is_stored(const Gen *gen, int pipe) {
    return agents_completing(use_of(gen, pipe)->agents, COMPLETES_GROUP) != 0;
}

/* `groups`: number of younger bulk store groups that may still read their sources */
static void release_consumed(Gen *gen, int pipe_index, Reg stage, int groups) {
    const Pipe *pipe = &gen->prog->pipes.items[pipe_index];
    bool once = use_of(gen, pipe_index)->arrives[END_CONSUME] == ARRIVES_INSTANCE;
    if (is_stored(gen, pipe_index))
        INS_IF(gen->ptx, gen->role->leader, "cp.async.bulk.wait_group.read", ptx_int(groups));
    fence(gen, pipe_index, END_CONSUME);
    if (!once) warp_sync(gen);
    if (pipe->multicast != 0) {
        cluster_arrive(gen, pipe_index, stage);
        return;
    }
    /* a complete group was issued by all warps, so none can be lapped */
    if (once) {
        INS_IF(gen->ptx, gen->role->leader, "mbarrier.arrive.shared::cta.b64", ptx_text("_"),
               stage_barrier(gen, pipe, false, stage));
        return;
    }
    arrive(gen, stage_barrier(gen, pipe, false, stage));
}

static void commit_stores(Gen *gen, int pipe) {
    if (!is_stored(gen, pipe)) return;
    ptx_ins(gen->ptx, gen->role->leader, false, "cp.async.bulk.commit_group", NULL, 0);
}

/* Releases late stage number `which` if so many are held. Each younger one has committed a bulk
 * store group. */
static void release_held(Gen *gen, int number, int which, int younger) {
    const Late *late = &gen->role->code->lates.items[number];
    const LateRegs *regs = &gen->role->lates[number];
    int skip = ptx_new_label(gen->ptx);
    Reg few = ptx_new_reg(gen->ptx, REG_PRED);
    INS(gen->ptx, "setp.lt.s32", ptx_reg(few), ptx_reg(regs->held), ptx_int(late->lag - which));
    INS_IF(gen->ptx, few, "bra", ptx_label(skip));
    release_consumed(gen, gen->role->role->handles.items[late->handle].pipe, regs->stages[which],
                     younger);
    ptx_place_label(gen->ptx, skip);
}

/* End of the block: its stage becomes the youngest of the late ones, and the oldest of a full
 * set is released. */
static void release_late(Gen *gen, int number, Reg stage) {
    const LateRegs *regs = &gen->role->lates[number];
    int count = gen->role->code->lates.items[number].lag;
    release_held(gen, number, 0, count);
    for (int i = 0; i + 1 < count; i++)
        INS(gen->ptx, "mov.b32", ptx_reg(regs->stages[i]), ptx_reg(regs->stages[i + 1]));
    INS(gen->ptx, "mov.b32", ptx_reg(regs->stages[count - 1]), ptx_reg(stage));
    INS(gen->ptx, "add.s32", ptx_reg(regs->held), ptx_reg(regs->held), ptx_int(1));
    INS(gen->ptx, "min.s32", ptx_reg(regs->held), ptx_reg(regs->held), ptx_int(count));
    ptx_forget(gen->ptx);
}

void pipe_drain(Gen *gen, int late) {
    int count = gen->role->code->lates.items[late].lag;
    for (int i = 0; i < count; i++) release_held(gen, late, i, count - 1 - i);
}

void pipe_release(Gen *gen, const Row *row) {
    RoleState *state = gen->role;
    const Handle *handle = &state->role->handles.items[row->handle];
    const Pipe *pipe = &gen->prog->pipes.items[handle->pipe];
    ptx_mark(gen->ptx, row->span, state->number, pipe->name,
             arena_printf(gen->arena, "releases a stage of `%s`", pipe->name));
    if (handle->end == END_PRODUCE) {
        release_produced(gen, handle->pipe, state->handles[row->handle]);
        return;
    }
    bool late = row->kind == ROW_KEEP && state->code->lates.items[row->late].lag > 0;
    commit_stores(gen, handle->pipe);
    wait_before(gen, row_number(gen, row));
    if (late)
        release_late(gen, row->late, state->handles[row->handle]);
    else
        release_consumed(gen, handle->pipe, state->handles[row->handle], 0);
}

void pipe_settle(Gen *gen, int handle_index) {
    const Handle *handle = &gen->role->role->handles.items[handle_index];
    const PipeUse *use = use_of(gen, handle->pipe);
    if (handle->end == END_PRODUCE) {
        if (agents_completing(use->agents, COMPLETES_ARRIVAL)) INS0(gen->ptx, "cp.async.wait_all");
    } else {
        commit_stores(gen, handle->pipe);
        if (is_stored(gen, handle->pipe))
            INS_IF(gen->ptx, gen->role->leader, "cp.async.bulk.wait_group.read", ptx_int(0));
    }
    fence(gen, handle->pipe, handle->end);
    warp_sync(gen);
}

void pipe_finish(Gen *gen) {
    if (!gen->role->plan->drains) return;
    ptx_comment(gen->ptx, "%s: bulk stores are complete before exit", gen->role->role->name);
    INS_IF(gen->ptx, gen->role->leader, "cp.async.bulk.wait_group", ptx_int(0));
}

/* Waits until all blocks have released the stages that this one filled. */
static void wait_for_blocks(Gen *gen, int index) {
    const Pipe *pipe = &gen->prog->pipes.items[index];
    const Cursor *cursor = &gen->role->cursors[END_PRODUCE][index];
    int again = ptx_new_label(gen->ptx);
    Reg left = ptx_new_reg(gen->ptx, REG_32), more = ptx_new_reg(gen->ptx, REG_PRED);
    ptx_comment(gen->ptx, "no block leaves while another may touch its stages of `%s`", pipe->name);
    INS(gen->ptx, "mov.b32", ptx_reg(left), ptx_int(pipe->stages));
    ptx_place_label(gen->ptx, again);
    pipe_wait(gen, pipe, false, cursor->stage, cursor->parity, gen->role->role->span);
    pipe_step(gen, END_PRODUCE, index);
    INS(gen->ptx, "sub.s32", ptx_reg(left), ptx_reg(left), ptx_int(1));
    INS(gen->ptx, "setp.ne.s32", ptx_reg(more), ptx_reg(left), ptx_int(0));
    INS_IF(gen->ptx, more, "bra", ptx_label(again));
    ptx_forget(gen->ptx);
}

void pipe_leave(Gen *gen) {
    if (!cluster_waits(gen, gen->role->number)) return;
    for (size_t p = 0; p < gen->prog->pipes.count; p++)
        if (cluster_fills(gen, gen->role->number, (int)p)) wait_for_blocks(gen, (int)p);
    ptx_place_label(gen->ptx, gen->role->idle_label);
}
