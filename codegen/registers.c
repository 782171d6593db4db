/* Register tiles: from the layout of a tile or statement to the thread's part of its
 * coordinates, and to the register of an element. The registers' part of a coordinate is a
 * constant, the threads' part is computed once at the start of a role. */
#include "codegen/gen.h"

/* ---- the thread's part ----------------------------------------------------------------------- */

static Lin digit_value(Gen *gen, const Digit *digit) {
    int threads = gen->role->role->warps * 32;
    Lin rest, at = lin_reg(gen->role->thread, 1, threads - 1);
    lin_divide(gen, at, digit->place, &at, &rest);
    if (digit->place * digit->extent < threads) lin_divide(gen, at, digit->extent, &rest, &at);
    return at;
}

static Lin thread_part(Gen *gen, const Spread *spread) {
    Lin sum = lin_const(0);
    for (int d = 0; d < spread->count; d++) {
        const Digit *digit = &spread->digits[d];
        if (!digit->in_thread) continue;
        sum = lin_add(gen, sum, lin_scale(gen, digit_value(gen, digit), digit->stride));
    }
    return sum;
}

static bool same_part(const Spread *a, const Spread *b) {
    int i = 0, j = 0;
    for (;; i++, j++) {
        while (i < a->count && !a->digits[i].in_thread) i++;
        while (j < b->count && !b->digits[j].in_thread) j++;
        if (i == a->count || j == b->count) return i == a->count && j == b->count;
        const Digit *x = &a->digits[i], *y = &b->digits[j];
        if (x->place != y->place || x->extent != y->extent || x->stride != y->stride) return false;
    }
}

Lin registers_thread(Gen *gen, const Spread *spread) {
    for (const ThreadPart *part = gen->role->parts; part != NULL; part = part->next)
        if (same_part(part->spread, spread)) return part->at;
    return thread_part(gen, spread);
}

void registers_open(Gen *gen) {
    RoleState *state = gen->role;
    if (state->role->one_lane) return; /* no statement uses its tiles: it only issues copies */
    for (size_t t = 0; t < state->role->tiles.count; t++) {
        bool in_registers = state->role->tiles.items[t].in_registers;
        const TilePlan *tile = &state->plan->tiles[t];
        for (int s = 0; in_registers && s < tile->held.count; s++) {
            ThreadPart *part = NEW(gen->arena, ThreadPart);
            *part = (ThreadPart){&tile->held.spreads[s],
                                 registers_thread(gen, &tile->held.spreads[s]), state->parts};
            state->parts = part;
        }
    }
}

Reg registers_repeat(Gen *gen, const RegisterLayout *layout) {
    Digit digits[2 * PROG_MAX_INDEXES + 1];
    int count = layout_replicas(layout, gen->role->role->warps * 32, digits);
    Reg repeats = PTX_NONE;
    for (int d = 0; d < count; d++) {
        Reg one = PURE(gen->ptx, REG_PRED, "setp.ne.u32",
                       ptx_reg(lin_in_reg(gen, digit_value(gen, &digits[d]))), ptx_int(0));
        repeats = ptx_either(gen->ptx, repeats, one);
    }
    return repeats;
}

/* ---- the register ---------------------------------------------------------------------------- */

static int lone_index(const Affine *affine) {
    for (int i = 0; i < PROG_MAX_INDEXES; i++)
        if (affine->coef[i] != 0) return i;
    return -1;
}

const Reg *registers_slot(Gen *gen, const Access *access, const RegisterLayout *statement,
                          const int64_t *coordinates) {
    const TilePlan *tile = &gen->role->plan->tiles[access->object];
    int64_t held[PROG_MAX_INDEXES];
    for (int s = 0; s < tile->held.count; s++) {
        const Affine *affine = &access->affine[tile->held.spreads[s].axes[0]];
        int index = lone_index(affine), number;
        held[s] = eval_scalar(gen, affine->base).integer; /* a constant: the checker requires it */
        if (index >= 0 && layout_spread(statement, index, &number)) held[s] += coordinates[number];
    }
    return &gen->role->tiles[access->object][layout_number(&tile->held, held) / tile->packed];
}
