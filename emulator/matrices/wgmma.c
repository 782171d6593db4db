/* wgmma, the issue: groups of instructions, and which registers they own meanwhile (PTX ISA
 * 9.7.15).
 *
 * Each warp of a warpgroup issues separately; a group is done, as one asynchronous operation,
 * some time after all four warps have committed it (multiply.c). From the issue until a
 * wait_group of its warp, the registers of a wgmma belong to it: an access by another
 * instruction is a finding on every schedule, because the valid bits of these registers are
 * cleared. */
#include "emulator/order/order.h"
#include "emulator/order/steps.h"

/* ---- registers in flight --------------------------------------------------------------------- */

bool matrices_in_flight(const Warp *warp, uint32_t slot) {
    return warp->matrices && warp->matrices->group[slot];
}

static uint32_t line_of(const Warp *warp, uint32_t slot) {
    return warp->matrices->user[slot]->line;
}

bool matrices_report_use(Block *block, Warp *warp, const Inst *inst, uint32_t slot, uint32_t lane,
                         const char *verb) {
    const Matrices *matrices = warp->matrices;
    bool committed = matrices->group[slot] <= matrices->committed;
    return finding(block, P0770, agent_of(block, warp, lane),
                   "`%s` %s a register of the wgmma of PTX line %u, %s",
                   opcode_spellings[inst->opcode], verb, line_of(warp, slot),
                   committed ? "whose group has not been waited for"
                             : "which has not been committed and waited for");
}

/* Called before each instruction of a program with wgmma: a write to a register in flight is a
 * finding. Also records the registers that it writes. */
bool matrices_allow(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Matrices *matrices = warp->matrices;
    for (uint32_t i = 0; i < inst->def_count; i++) {
        uint32_t slot = inst->defs[i];
        if (matrices->busy && matrices->group[slot])
            return matrices_report_use(block, warp, inst, slot, first_lane(mask), "writes");
        matrices->written[slot] = matrices->fences + 1;
    }
    return true;
}

bool matrices_check_exit(Block *block, Warp *warp) {
    const Matrices *matrices = warp->matrices;
    if (!matrices || !matrices->busy) return true;
    return finding(
        block, P0740, agent_of(block, warp, first_lane(warp->split->mask)),
        "the warp exits while a wgmma may be in flight: no `wgmma.wait_group` follows it");
}

/* True if the new wgmma may also use this register, which is in flight: as the same part of the
 * accumulator of an instruction of the same shape, or as operand A of both. */
static bool shares(const Inst *user, const Inst *inst, uint32_t at) {
    uint32_t slot = inst->ops[at].slot;
    if (at < inst->vector)
        return user->mods.columns == inst->mods.columns &&
               user->mods.types[0] == inst->mods.types[0] && user->ops[at].slot == slot;
    for (uint32_t i = wgmma_a(user); i < wgmma_b(user); i++)
        if (user->ops[i].slot == slot) return true;
    return false;
}

static bool check_register(Block *block, Warp *warp, const Inst *inst, uint32_t at, bool reads) {
    const Matrices *matrices = warp->matrices;
    uint32_t slot = inst->ops[at].slot;
    const char *role = at < inst->vector ? "the accumulator" : "operand A";
    Agent agent = agent_of(block, warp, 0);
    if (matrices->group[slot]) {
        if (shares(matrices->user[slot], inst, at)) return true;
        return finding(block, P0770, agent,
                       "a register of %s is in use by the wgmma in flight of PTX line %u, which "
                       "has another shape or uses it for another operand",
                       role, line_of(warp, slot));
    }
    if (matrices->fences == 0 || matrices->written[slot] == matrices->fences + 1)
        return finding(block, P0771, agent,
                       "register %u of %s is written without a `wgmma.fence` before this wgmma",
                       at < inst->vector ? at : at - wgmma_a(inst), role);
    uint32_t missing = reads ? ~warp->valid[slot] : 0;
    if (missing)
        return finding(block, P0713, agent_of(block, warp, first_lane(missing)),
                       "lane %u has not written register %u of %s of this wgmma",
                       first_lane(missing), at < inst->vector ? at : at - wgmma_a(inst), role);
    return true;
}

static void take_register(Warp *warp, const Inst *inst, uint32_t slot) {
    Matrices *matrices = warp->matrices;
    if (!matrices->group[slot]) matrices->busy++;
    matrices->group[slot] = matrices->committed + 1;
    matrices->user[slot] = inst;
    warp->valid[slot] = 0;
}

static bool take_registers(Block *block, Warp *warp, const Inst *inst, bool accumulates) {
    uint32_t end = inst->ops[wgmma_a(inst)].width == 8 ? wgmma_a(inst) : wgmma_b(inst);
    for (uint32_t i = 0; i < end; i++)
        if (!check_register(block, warp, inst, i, i >= inst->vector || accumulates)) return false;
    for (uint32_t i = 0; i < end; i++) take_register(warp, inst, inst->ops[i].slot);
    return true;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static Warpgroup *warpgroup_of(Block *block, const Warp *warp) {
    return &block->warpgroups[warp->index / 4];
}

/* The wait of one warp suffices: the group is then complete for all four. */
static void retire_groups(Block *block, Warpgroup *warpgroup, uint32_t limit) {
    while (warpgroup->first && warpgroup->first->number < limit) {
        MatrixGroup *group = warpgroup->first;
        for (size_t i = 0; i < group->items.count; i++)
            order_matrix_over(block->cluster, &group->items.items[i]);
        warpgroup->first = group->next;
        group->next = warpgroup->spare;
        warpgroup->spare = group;
        block->unwaited--;
    }
}

static MatrixGroup *find_group(Block *block, Warp *warp) {
    Warpgroup *warpgroup = warpgroup_of(block, warp);
    uint32_t number = warp->matrices->committed;
    for (MatrixGroup *group = warpgroup->first; group; group = group->next)
        if (group->number == number) return group;
    MatrixGroup *group = warpgroup->spare;
    if (group)
        warpgroup->spare = group->next;
    else
        group = NEW(block->machine->arena, MatrixGroup);
    group->next = NULL;
    group->number = number;
    group->warps = 0;
    group->closed = false;
    group->items.count = 0;
    *(warpgroup->first ? &warpgroup->last->next : &warpgroup->first) = group;
    warpgroup->last = group;
    block->unwaited++;
    return group;
}

/* True if all lanes of the warp are alive and converged, and the warp belongs to a whole
 * warpgroup */
static Step meet(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Step step = schedule_lanes(block, warp, mask, warp->live);
    if (step != STEP_NEXT) return step;
    if (warp->live != ALL_LANES || (warp->index | 3u) >= block->warp_count)
        return fault(block, P0772, agent_of(block, warp, first_lane(mask)),
                     "`%s` is executed by warp %u, %s", opcode_spellings[inst->opcode], warp->index,
                     warp->live != ALL_LANES ? "some lanes of which have exited"
                                             : "which is not in a complete warpgroup");
    order_meet(warp, mask);
    return STEP_NEXT;
}

static bool same_in_all_lanes(Block *block, Warp *warp, const Operand *op, const char *what) {
    for (uint32_t lane = 1; lane < LANES; lane++)
        if (in_lane(warp, op, lane) != in_lane(warp, op, 0))
            return finding(block, P0772, agent_of(block, warp, lane),
                           "lanes 0 and %u have different values of %s", lane, what);
    return true;
}

static bool report_mismatch(Block *block, Warp *warp, const char *what) {
    return finding(block, P0772, agent_of(block, warp, 0),
                   "the warps of a warpgroup differ: warp %u %s as another one of warps %u .. %u",
                   warp->index, what, warp->index & ~3u, warp->index | 3u);
}

/* The next wgmma of the open group: the first warp that issues it adds it, the others must
 * repeat it. */
static bool add_matrix(Block *block, Warp *warp, const Matrix *matrix) {
    MatrixGroup *group = find_group(block, warp);
    bool first = false; /* of the warps that issue it */
    if (warp->matrices->issued < group->items.count) {
        const Matrix *known = &group->items.items[warp->matrices->issued];
        if (known->inst != matrix->inst)
            return report_mismatch(block, warp, "does not execute the same wgmma");
        if (known->a != matrix->a || known->b != matrix->b)
            return report_mismatch(block, warp, "does not have the same descriptors");
        if (known->accumulates != matrix->accumulates)
            return report_mismatch(block, warp, "does not have the same scale-d");
    } else if (group->closed) {
        return report_mismatch(block, warp, "does not commit as many wgmmas");
    } else {
        vec_push(block->machine->arena, &group->items, *matrix);
        matrices_span(block, &group->items.items[group->items.count - 1]);
        first = true;
    }
    steps_give(warp, &block->group_steps[warp->index / 4]);
    order_matrix_issue(warp, &group->items.items[warp->matrices->issued], first);
    warp->matrices->issued++;
    block->machine->matrices++;
    return true;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static Step run_multiply(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Step step = meet(block, warp, inst, mask);
    if (step != STEP_NEXT) return step;
    const Operand *a = &inst->ops[wgmma_a(inst)], *b = &inst->ops[wgmma_b(inst)],
                  *scale = &inst->ops[wgmma_scale(inst)];
    bool by_descriptor = a->width == 8;
    if ((by_descriptor && !same_in_all_lanes(block, warp, a, "the descriptor of A")) ||
        !same_in_all_lanes(block, warp, b, "the descriptor of B") ||
        !same_in_all_lanes(block, warp, scale, "scale-d"))
        return STEP_FAULT;
    Matrix matrix = {.inst = inst,
                     .a = by_descriptor ? in64(warp, a)[0] : 0,
                     .b = in64(warp, b)[0],
                     .accumulates = in_lane(warp, scale, 0) != 0};
    if (!take_registers(block, warp, inst, matrix.accumulates) || !add_matrix(block, warp, &matrix))
        return STEP_FAULT;
    effect(block, warp);
    return STEP_NEXT;
}

static Step run_fence(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Step step = meet(block, warp, inst, mask);
    if (step == STEP_NEXT && warp->matrices) warp->matrices->fences++;
    return step;
}

static Step run_commit(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Step step = meet(block, warp, inst, mask);
    if (step != STEP_NEXT || !warp->matrices) return step;
    MatrixGroup *group = find_group(block, warp);
    if (group->items.count != warp->matrices->issued) {
        report_mismatch(block, warp, "does not commit as many wgmmas");
        return STEP_FAULT;
    }
    group->closed = true;
    group->warps |= 1u << (warp->index & 3);
    order_matrix_commit(warp, warp->matrices->committed);
    warp->matrices->committed++;
    warp->matrices->issued = 0;
    effect(block, warp);
    if (group->warps != 0xf) return STEP_NEXT;
    Async *op = async_new(block, &block->warps[warp->index & ~3u], ASYNC_MATRIX, 0, ALL_LANES);
    op->agent.pc = warp->split->pc;
    op->matrices = group;
    async_enqueue(block, op);
    return STEP_NEXT;
}

/* ops: number of groups that may stay in flight */
static Step run_wait(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Step step = meet(block, warp, inst, mask);
    Matrices *matrices = warp->matrices;
    if (step != STEP_NEXT || !matrices) return step;
    uint32_t allowed = in32(warp, &inst->ops[0])[0],
             limit = matrices->committed > allowed ? matrices->committed - allowed : 0;
    if (warpgroup_of(block, warp)->done < limit) {
        warp->split->wait_address = limit - 1;
        return schedule_wait(warp, WAIT_MATRIX, block->async_epoch);
    }
    if (matrices->waited >= limit) return STEP_NEXT;
    matrices->waited = limit;
    order_matrix_wait(warp, limit);
    steps_take(warp, block->group_steps[warp->index / 4]);
    retire_groups(block, warpgroup_of(block, warp), limit);
    for (uint32_t slot = 0; slot < block->program->slots && matrices->busy; slot++) {
        if (!matrices->group[slot] || matrices->group[slot] > limit) continue;
        matrices->group[slot] = 0;
        matrices->busy--;
        warp->valid[slot] = ALL_LANES;
    }
    return STEP_NEXT;
}

/* ---- supported forms ------------------------------------------------------------------------- */

typedef enum Family { FAMILY_NONE, FAMILY_HALF, FAMILY_TF32, FAMILY_BYTE, FAMILY_INTEGER } Family;

static Family family_of(Type d, Type a, Type b) {
    bool bytes = (a == T_E4M3 || a == T_E5M2) && (b == T_E4M3 || b == T_E5M2);
    bool integers = (a == T_S8 || a == T_U8) && (b == T_S8 || b == T_U8);
    if (a == T_F16 && b == T_F16) return d == T_F32 || d == T_F16 ? FAMILY_HALF : FAMILY_NONE;
    if (a == T_BF16 && b == T_BF16) return d == T_F32 ? FAMILY_HALF : FAMILY_NONE;
    if (a == T_TF32 && b == T_TF32) return d == T_F32 ? FAMILY_TF32 : FAMILY_NONE;
    if (bytes) return d == T_F32 || d == T_F16 ? FAMILY_BYTE : FAMILY_NONE;
    return integers && d == T_S32 ? FAMILY_INTEGER : FAMILY_NONE;
}

static Run pick_multiply(const Inst *inst) {
    const Mods *mods = &inst->mods;
    Family family = family_of((Type)mods->types[0], (Type)mods->types[1], (Type)mods->types[2]);
    uint32_t n = mods->columns, depth = family == FAMILY_HALF ? 16 : family == FAMILY_TF32 ? 8 : 32;
    if (family == FAMILY_NONE || mods->rows != 64 || mods->depth != depth || n < 8 || n > 256 ||
        n % 8)
        return NULL;
    if (family == FAMILY_INTEGER && n > 32 && n % 16) return NULL;
    uint32_t saturates = family == FAMILY_INTEGER ? FLAG_SATFINITE : 0;
    if ((mods->flags & ~saturates) != (FLAG_SYNC | FLAG_ALIGNED)) return NULL;
    if (inst->vector != (mods->types[0] == T_F16 ? n / 4 : n / 2)) return NULL;
    uint32_t a_count = wgmma_b(inst) - wgmma_a(inst);
    bool by_descriptor = inst->ops[wgmma_a(inst)].width == 8;
    if (a_count != (by_descriptor ? 1 : 4)) return NULL;
    for (uint32_t i = 0; i < inst->op_count; i++)
        if (inst->ops[i].sink ||
            (i < wgmma_b(inst) && inst->ops[i].bank != BANK_REGISTERS && inst->ops[i].width != 8))
            return NULL;
    uint32_t given = 0, wanted = family == FAMILY_HALF      ? (by_descriptor ? 4 : 3)
                                 : family == FAMILY_INTEGER ? 0
                                                            : 2;
    for (uint32_t i = wgmma_scale(inst) + 1; i < inst->op_count; i++) {
        given += !inst->ops[i].absent;
        if (!inst->ops[i].absent && inst->ops[i].bank != BANK_CONSTANTS) return NULL;
    }
    return given == wanted ? run_multiply : NULL;
}

Run pick_wgmma(const Inst *inst) {
    switch (inst->opcode) {
    case OP_WGMMA: return pick_multiply(inst);
    case OP_WGMMA_FENCE: return run_fence;
    case OP_WGMMA_COMMIT: return run_commit;
    case OP_WGMMA_WAIT: return inst->ops[0].bank == BANK_CONSTANTS ? run_wait : NULL;
    default: return NULL;
    }
}
