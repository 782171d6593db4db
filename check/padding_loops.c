/* Values that iterations of loops compute from padding into tiles and scalars, for later
 * statements; and the scalars that are followed. */
#include "check/padding.h"

const PadAxis padding_fixed = {.index = -1, .local = -1, .fixed = true};
const PadAxis padding_single = {.index = -1, .local = -1, .single = true};

PadAxis padding_loop_axis(const FlowCode *code, int local) {
    return (PadAxis){
        .index = -1, .atom = algebra_atom_local(code->algebra, code->role, local), .local = local};
}

/* ---- scalars --------------------------------------------------------------------------------- */

typedef struct Held { /* does a value depend on memory? */
    const Scalars *scalars;
    bool found;
} Held;

static void find_held(Expr *expr, void *data) {
    Held *held = data;
    held->found |= expr->kind == X_READ || (expr->kind == X_LOCAL && expr->index >= 0 &&
                                            held->scalars->numbers[expr->index] >= 0);
}

static bool add_scalars(Arena *arena, const FlowCode *code, Scalars *scalars) {
    size_t before = scalars->count;
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        Held held = {.scalars = scalars};
        if (row->kind != ROW_SET || row->local < 0 || !row->value) continue;
        if (scalars->numbers[row->local] >= 0) continue;
        expr_visit(arena, row->value, find_held, &held);
        if (held.found) scalars->numbers[row->local] = (int)scalars->count++;
    }
    return scalars->count > before;
}

Scalars padding_scalars(Arena *arena, const FlowCode *code) {
    size_t locals = code->role->locals.count;
    Scalars scalars = {.numbers = NEW_ARRAY(arena, int, locals + 1)};
    for (size_t i = 0; i < locals; i++) scalars.numbers[i] = -1;
    while (add_scalars(arena, code, &scalars)) {
    }
    return scalars;
}

TileFill *padding_scalar(const Padding *p, int local) {
    int number = local < 0 ? -1 : p->scalars->numbers[local];
    return number < 0 ? NULL : &p->state[p->code->role->tiles.count + (size_t)number];
}

/* ---- values of loops ------------------------------------------------------------------------- */

static void add_loop(TileFill *tile, int local, const Fill *fill) {
    for (int i = 0; i < LOOPS_MOST; i++) {
        LoopFill *loop = &tile->loops[i];
        if (loop->fill.pads && loop->local != local) continue;
        loop->local = local;
        fill_add(&loop->fill, fill);
        return;
    }
    tile->more_loops = true;
}

Fill padding_loop_fill(const TileFill *tile, int local) {
    Fill fill = {0};
    for (int i = 0; i < LOOPS_MOST; i++)
        if (tile->loops[i].fill.pads && tile->loops[i].local == local)
            fill_add(&fill, &tile->loops[i].fill);
    if (tile->more_loops) fill.pads |= PAD_ANY, fill.more = true;
    return fill.pads ? fill : fill_of(tile->base);
}

/* Where only one of two paths has computed a value from padding, the other has its base. */
bool padding_join_loops(TileFill *to, const TileFill *from) {
    const TileFill before = *to;
    bool same = true;
    for (int i = 0; i < LOOPS_MOST; i++) {
        Fill mine =
            to->loops[i].fill.pads ? padding_loop_fill(from, to->loops[i].local) : (Fill){0};
        if (mine.pads) add_loop(to, to->loops[i].local, &mine);
    }
    for (int i = 0; i < LOOPS_MOST; i++) {
        if (!from->loops[i].fill.pads) continue;
        Fill other = padding_loop_fill(&before, from->loops[i].local);
        fill_add(&other, &from->loops[i].fill);
        add_loop(to, from->loops[i].local, &other);
    }
    for (int i = 0; i < LOOPS_MOST; i++)
        same &= fill_same(&before.loops[i].fill, &to->loops[i].fill);
    to->base |= from->base;
    to->more_loops |= from->more_loops;
    to->below_zero |= from->below_zero;
    to->assigned &= from->assigned;
    return !same || to->base != before.base || to->more_loops != before.more_loops ||
           to->below_zero != before.below_zero || to->assigned != before.assigned;
}

static uint32_t depth_bit(const Region *loop) {
    return loop->depth < 32 ? (uint32_t)1 << loop->depth : 0;
}

void padding_iterate(TileFill *tile, const Region *loop) { tile->assigned &= ~depth_bit(loop); }

bool padding_assigned(const TileFill *tile, const Region *loop) {
    return (tile->assigned & depth_bit(loop)) != 0;
}

Fill padding_updated(Padding *p, const Fill *old, const Fill *value, AssignOp op, Expr *by) {
    static const PadOp ops[] = {[ASSIGN_ADD] = PAD_ADD,
                                [ASSIGN_SUB] = PAD_SUB,
                                [ASSIGN_MUL] = PAD_MUL,
                                [ASSIGN_DIV] = PAD_DIV};
    if (op == ASSIGN_SET) return *value;
    bool nonzero = op == ASSIGN_DIV && padding_not_zero(p, by);
    return fill_pair(old, value, nonzero ? PAD_DIV_NONZERO : ops[op]);
}

/* A value that combines one of an earlier iteration is checked as a loop that reduces. */
static void write_loop(Padding *p, const Assigned *assigned, PadAxis axis, const Region *loop,
                       const TileFill *old, TileFill *next) {
    Fill before = padding_loop_fill(old, axis.local), fill = before;
    if (!assigned->own || padding_assigned(old, loop)) {
        fill = padding_of(p, assigned->value, axis);
        fill = padding_updated(p, &before, &fill, assigned->op, assigned->value);
        (void)padding_controlled(p, axis, &fill);
    }
    if (fill_padded(&fill)) add_loop(next, axis.local, &fill);
}

void padding_write_loops(Padding *p, Assigned assigned, const TileFill *old, TileFill *next) {
    const FlowCode *code = p->code;
    const Region *inner = NULL; /* the innermost loop */
    if (assigned.covers) {
        for (int i = 0; i < LOOPS_MOST; i++) next->loops[i] = (LoopFill){0};
        next->more_loops = false;
        next->base = 0;
        if (!assigned.own) next->assigned = ALL_LOOPS;
    }
    next->base |= assigned.own ? PAD_ELEMENT : padding_of_constant(assigned.value);
    for (int r = code->rows.items[p->at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        if (region->kind != REGION_FOR || region->var < 0) continue;
        write_loop(p, &assigned, padding_loop_axis(code, region->var), region, old, next);
        if (!inner) inner = region;
    }
    if (inner) write_loop(p, &assigned, padding_fixed, inner, old, next);
}
