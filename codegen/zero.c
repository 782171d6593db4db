/* `var acc: f32[64, 256] = 0`: accumulators that their first matrix instruction clears, by its predicate scale-d, instead of 128 moves.
 *
 * Beside such a tile goes a predicate, `filled`: false while the registers stand for zeros that nobody has written. The assignment of zero makes it false, a
 * contraction passes it as scale-d and makes it true, and any other statement writes the zeros first where it is still false (a loop of no iterations).
 * That branch may not lie where matrix instructions are in flight around it (ptxas would wait for all of them: C7515), so this is for a
 * role's only accumulators, without conditions around their contractions, and where ordinary statements touch them outside of their contractions' loops; others are cleared at once. */
#include "codegen/gen.h"

#include <math.h>

static bool is_zero(const Expr *value) {
    while (value->kind == X_CAST) value = value->cast;
    if (value->kind != X_CONST) return false;
    if (element_rows[value->type].kind == ELEMENT_FLOAT)
        return value->constant.number == 0 && !signbit(value->constant.number);
    return value->constant.integer == 0;
}

/* Zero to all elements of a register tile */
static bool clears(const Role *role, const Tile *tile) {
    const Access *target = &tile->target;
    if (tile->class != TILE_MAP || tile->op != ASSIGN_SET || target->space != SPACE_REGISTER || !is_zero(tile->value))
        return false;
    const RoleTile *whole = &role->tiles.items[target->object];
    for (int axis = 0; axis < target->rank; axis++) {
        const Expr *sub = target->subs[axis];
        if (sub->kind != X_INDEX || tile->space.items[sub->index].extent != whole->extents[axis]) return false;
    }
    return true;
}

static bool names(Gen *gen, const Row *row, int number) {
    bool *tiles = NEW_ARRAY(gen->arena, bool, gen->role->role->tiles.count);
    mma_names(gen, row, tiles);
    return tiles[number];
}

static bool is_contraction(const Row *row) { return row->kind == ROW_TILE && row->tile->class == TILE_MMA; }

static bool under_condition(const FlowCode *code, int region) {
    for (; region >= 0; region = code->regions.items[region].parent)
        if (code->regions.items[region].kind == REGION_IF) return true;
    return false;
}

/* Is the row inside of the innermost loop around some contraction? */
static bool beside_contraction(const FlowCode *code, const Row *row) {
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *other = &code->rows.items[at];
        if (!is_contraction(other)) continue;
        int loop = code->regions.items[other->region].loop;
        if (loop < 0 || code_inside(code, row->region, loop)) return true;
    }
    return false;
}

/* Is the tile cleared by its first contraction? See above. */
static bool clears_at_first_use(Gen *gen, int tile) {
    const FlowCode *code = gen->role->code;
    bool assigned = false, contracted = false;
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (is_contraction(row)) {
            contracted = true;
            if (row->tile->target.object != tile || under_condition(code, row->region)) return false;
        } else if (names(gen, row, tile)) {
            bool zero = row->kind == ROW_TILE && clears(gen->role->role, row->tile);
            if (!zero && beside_contraction(code, row)) return false;
            assigned |= zero;
        }
    }
    return contracted && assigned;
}

static void set_filled(Gen *gen, Reg filled, bool value) {
    Reg zero = PURE(gen->ptx, REG_32, "mov.b32", ptx_int(0));
    INS(gen->ptx, value ? "setp.eq.u32" : "setp.ne.u32", ptx_reg(filled), ptx_reg(zero), ptx_reg(zero));
}

void zero_open(Gen *gen) {
    RoleState *state = gen->role;
    const Role *role = state->role;
    state->filled = NEW_ARRAY(gen->arena, Reg, role->tiles.count + 1);
    for (size_t i = 0; i < role->tiles.count; i++) {
        state->filled[i] = PTX_NONE;
        if (!role->tiles.items[i].in_registers || !clears_at_first_use(gen, (int)i)) continue;
        state->filled[i] = ptx_new_reg(gen->ptx, REG_PRED);
        set_filled(gen, state->filled[i], true);
    }
}

bool zero_assigned(Gen *gen, const Tile *tile) {
    if (!clears(gen->role->role, tile)) return false;
    Reg filled = gen->role->filled[tile->target.object];
    if (filled.class == REG_NONE) return false;
    set_filled(gen, filled, false);
    return true;
}

void zero_filled(Gen *gen, int tile) {
    if (gen->role->filled[tile].class != REG_NONE) set_filled(gen, gen->role->filled[tile], true);
}

void zero_settle(Gen *gen, const Row *row) {
    const Role *role = gen->role->role;
    for (size_t i = 0; i < role->tiles.count; i++) {
        Reg filled = gen->role->filled[i];
        if (filled.class == REG_NONE || !names(gen, row, (int)i)) continue;
        int held = ptx_new_label(gen->ptx), count = (int)layout_registers(&role->tiles.items[i].held);
        INS_IF(gen->ptx, filled, "bra.uni", ptx_label(held));
        for (int r = 0; r < count; r++) INS(gen->ptx, "mov.b32", ptx_reg(gen->role->tiles[i][r]), ptx_int(0));
        ptx_place_label(gen->ptx, held);
        set_filled(gen, filled, true);
        ptx_forget(gen->ptx);
    }
}
