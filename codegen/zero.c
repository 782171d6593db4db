/* Accumulators that their first matrix instruction clears (derive/plan/plan.c decides which). Such
 * a tile has a predicate `filled`: false while its registers represent zeros that were not written.
 * The assignment of zero sets it to false, a contraction passes it as scale-d and sets it to true,
 * and any other row first writes the zeros if it is false. */
#include "codegen/gen.h"

static void set_filled(Gen *gen, Reg filled, bool value) {
    Reg zero = PURE(gen->ptx, REG_32, "mov.b32", ptx_int(0));
    INS(gen->ptx, value ? "setp.eq.u32" : "setp.ne.u32", ptx_reg(filled), ptx_reg(zero),
        ptx_reg(zero));
}

void zero_open(Gen *gen) {
    RoleState *state = gen->role;
    size_t tiles = state->role->tiles.count;
    state->filled = NEW_ARRAY(gen->arena, Reg, tiles + 1);
    for (size_t i = 0; i < tiles; i++) {
        state->filled[i] = PTX_NONE;
        if (state->rows->zeros[i] == NULL) continue;
        state->filled[i] = ptx_new_reg(gen->ptx, REG_PRED);
        set_filled(gen, state->filled[i], true);
    }
}

bool zero_assigned(Gen *gen, const Row *row) {
    if (!gen->role->rows->clears[row_number(gen, row)]) return false;
    set_filled(gen, gen->role->filled[row->tile->target.object], false);
    return true;
}

void zero_filled(Gen *gen, int tile) {
    if (gen->role->filled[tile].class != REG_NONE) set_filled(gen, gen->role->filled[tile], true);
}

void zero_settle(Gen *gen, const Row *row) {
    const Role *role = gen->role->role;
    for (size_t i = 0; i < role->tiles.count; i++) {
        Reg filled = gen->role->filled[i];
        if (filled.class == REG_NONE || gen->role->skips ||
            !gen->role->rows->zeros[i][row_number(gen, row)])
            continue;
        int held = ptx_new_label(gen->ptx),
            count = (int)layout_registers(&gen->role->plan->tiles[i].held);
        INS_IF(gen->ptx, filled, "bra.uni", ptx_label(held));
        for (int r = 0; r < count; r++)
            INS(gen->ptx, "mov.b32", ptx_reg(gen->role->tiles[i][r]), ptx_int(0));
        ptx_place_label(gen->ptx, held);
        set_filled(gen, filled, true);
        ptx_forget(gen->ptx);
    }
}
