/* Emits `unsafe` statements literally. Derived facts still apply: an arrival at the barrier that
 * a release of the stage would signal comes after all of the warp's accesses to the stage. In
 * control that diverges between lanes no wait can synchronise the warp: waits needed inside come
 * before it, and the lanes reconverge after it. */
#include "codegen/gen.h"

#include <stdlib.h>

/* ---- control that differs between lanes ------------------------------------------------------ */

/* A single elected lane cannot diverge. */
static bool diverges(const Gen *gen, int region) {
    return gen->role->rows->diverged[region] && !gen->role->role->one_lane;
}

void diverged_open(Gen *gen, int region) {
    const Region *all = &gen->role->code->regions.items[region];
    if (!diverges(gen, region)) return;
    if (all->kind != REGION_IF) wait_before(gen, all->begin);
    const Handles *due = &gen->role->rows->due[region];
    for (size_t i = 0; i < due->count; i++) pipe_settle(gen, due->items[i]);
    gen->role->diverged = true;
}

void diverged_close(Gen *gen, int region) {
    if (!diverges(gen, region)) return;
    gen->role->diverged = false;
    warp_join(gen);
}

/* ---- stages and barriers --------------------------------------------------------------------- */

static Reg stage_of(Gen *gen, const Unsafe *what) {
    if (what->handle >= 0) return gen->role->handles[what->handle];
    if (what->stage != NULL) return value_in_reg(gen, eval_scalar(gen, what->stage));
    return gen->role->cursors[what->end][what->pipe].stage;
}

static Operand barrier_of(Gen *gen, const Unsafe *what) {
    return stage_barrier(gen, &gen->prog->pipes.items[what->pipe], what->full, stage_of(gen, what));
}

static Reg address_of(Gen *gen, Operand at) {
    return at.value == 0 ? at.reg
                         : PURE(gen->ptx, REG_32, "add.s32", ptx_reg(at.reg), ptx_int(at.value));
}

static void mark(Gen *gen, const Row *row, const char *does) {
    const char *pipe =
        row->unsafe->pipe < 0 ? NULL : gen->prog->pipes.items[row->unsafe->pipe].name;
    ptx_mark(gen->ptx, row->span, gen->role->number, pipe,
             pipe == NULL ? does : arena_printf(gen->arena, "%s of `%s`", does, pipe));
}

/* ---- values ---------------------------------------------------------------------------------- */

static Reg tile_address(Gen *gen, const Access *tile) {
    Point point = {0};
    if (tile->space == SPACE_GLOBAL) return gen->pointers[tile->object];
    return lin_in_reg(gen, shared_base(gen, tile, &point));
}

static Value value_of(Gen *gen, const Unsafe *what) {
    switch (what->value) {
    case VALUE_INDEX: return value_reg(E_I32, stage_of(gen, what));
    case VALUE_PHASE: return value_reg(E_U32, gen->role->cursors[what->end][what->pipe].parity);
    case VALUE_BARRIER: return value_reg(E_U32, address_of(gen, barrier_of(gen, what)));
    case VALUE_ADDRESS:
        return value_reg(what->tile->space == SPACE_GLOBAL ? E_U64 : E_U32,
                         tile_address(gen, what->tile));
    case VALUE_LANE:
        return value_reg(E_I32, PURE(gen->ptx, REG_32, "mov.u32", ptx_text("%laneid")));
    case VALUE_WARP:
        return value_reg(E_I32,
                         PURE(gen->ptx, REG_32, "shr.u32", ptx_reg(gen->role->thread), ptx_int(5)));
    }
    return value_integer(E_I32, 0);
}

/* ---- signals --------------------------------------------------------------------------------- */

/* By each thread that reaches it */
static void arrive(Gen *gen, const Unsafe *what) {
    Operand barrier = barrier_of(gen, what);
    if (what->own && gen->prog->pipes.items[what->pipe].multicast != 0 &&
        what->end == END_CONSUME) {
        cluster_arrive_each(gen, what->pipe, barrier);
        return;
    }
    Operand amount =
        what->amount == NULL ? ptx_int(0) : value_operand(eval_scalar(gen, what->amount));
    const char *space = what->at == NULL ? "cta" : "cluster";
    const char *op = arena_printf(gen->arena, "mbarrier.arrive%s.shared::%s.b64",
                                  what->amount == NULL ? "" : ".expect_tx", space);
    if (what->at != NULL) {
        Operand block = value_operand(eval_scalar(gen, what->at));
        barrier = ptx_at(PURE(gen->ptx, REG_32, "mapa.shared::cluster.u32",
                              ptx_reg(address_of(gen, barrier)), block),
                         0);
    }
    if (what->amount == NULL)
        INS(gen->ptx, op, ptx_text("_"), barrier);
    else
        INS(gen->ptx, op, ptx_text("_"), barrier, amount);
}

static void wait(Gen *gen, const Row *row) {
    const Unsafe *what = row->unsafe;
    Reg parity = ptx_new_reg(gen->ptx, REG_32);
    INS(gen->ptx, "and.b32", ptx_reg(parity),
        ptx_reg(value_in_reg(gen, eval_scalar(gen, what->amount))), ptx_int(1));
    pipe_wait(gen, &gen->prog->pipes.items[what->pipe], what->full, stage_of(gen, what), parity,
              row->span);
    if (!gen->role->diverged) warp_join(gen);
}

/* ---- inline PTX ------------------------------------------------------------------------------ */

static const char *operand_text(Gen *gen, const Operand *operand) {
    Str text = str_new(gen->arena);
    ptx_operand(operand, &text);
    return text.text;
}

/* Before the text: a register or immediate for each operand */
static Operand operand_in(Gen *gen, const PtxOperand *operand) {
    bool half = operand->type == E_F16 || operand->type == E_BF16;
    if (operand->value == NULL) {
        return ptx_reg(half ? ptx_new_reg(gen->ptx, REG_16)
                            : gen->role->locals[operand->local].reg);
    }
    const Expr *inner =
        half && operand->value->kind == X_CAST ? operand->value->cast : operand->value;
    Value value = eval_scalar(gen, inner);
    Reg reg = half ? ptx_new_reg(gen->ptx, REG_16) : PTX_NONE;
    if (half)
        INS(gen->ptx, "mov.b16", ptx_reg(reg), ptx_reg(narrow_one(gen, operand->type, value)));
    if (half) return ptx_reg(reg);
    if (operand->local >= 0) return ptx_reg(gen->role->locals[operand->local].reg);
    return value.type == E_BOOL ? ptx_reg(value_in_reg(gen, value)) : value_operand(value);
}

static const char *substituted(Gen *gen, const Unsafe *what, const char *const *names) {
    Str text = str_new(gen->arena);
    for (const char *at = what->text; *at != '\0'; at++) {
        char *end;
        unsigned long number = *at == '{' && at[1] >= '0' && at[1] <= '9'
                                   ? strtoul(at + 1, &end, 10)
                                   : what->operands.count;
        if (number < what->operands.count && *end == '}') {
            str_add(&text, names[number]);
            at = end;
        } else {
            str_char(&text, *at);
        }
    }
    return text.text;
}

static void inline_ptx(Gen *gen, const Unsafe *what) {
    size_t count = what->operands.count;
    Operand *operands = NEW_ARRAY(gen->arena, Operand, count + 1);
    const char **names = NEW_ARRAY(gen->arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++) {
        operands[i] = operand_in(gen, &what->operands.items[i]);
        names[i] = operand_text(gen, &operands[i]);
    }
    ptx_verbatim(gen->ptx, substituted(gen, what, names));
    ptx_forget(gen->ptx);
    for (size_t i = 0; i < count; i++) {
        const PtxOperand *operand = &what->operands.items[i];
        if (operand->local < 0 || operand->type == gen->role->locals[operand->local].type) continue;
        local_set(gen, operand->local, widen_one(gen, operand->type, operands[i].reg));
    }
}

/* ---- one operation --------------------------------------------------------------------------- */

void gen_unsafe(Gen *gen, const Row *row) {
    const Unsafe *what = row->unsafe;
    int at = row_number(gen, row), signals = gen->role->rows->signals[at];
    wait_before(gen, at);
    zero_settle(gen, row);
    if (signals >= 0 && !gen->role->diverged) pipe_settle(gen, signals);
    switch (what->kind) {
    case UNSAFE_VALUE: local_set(gen, what->local, value_of(gen, what)); return;
    case UNSAFE_ARRIVE:
        mark(gen, row, "arrives at a barrier");
        arrive(gen, what);
        return;
    case UNSAFE_WAIT:
        mark(gen, row, "waits for a barrier");
        wait(gen, row);
        return;
    case UNSAFE_EXPECT:
        mark(gen, row, "expects bytes at a barrier");
        INS(gen->ptx, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64", barrier_of(gen, what),
            value_operand(eval_scalar(gen, what->amount)));
        return;
    case UNSAFE_STEP:
        mark(gen, row, "steps over a stage");
        pipe_step(gen, what->end, what->pipe);
        return;
    case UNSAFE_PTX:
        mark(gen, row, "inline PTX");
        inline_ptx(gen, what);
        return;
    }
}
