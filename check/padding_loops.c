/* Values that iterations of loops compute from padding into tiles and scalars, for later
 * statements; and the conditions on the path to a statement. */
#include "check/padding.h"

const PadAxis padding_single = {.index = -1, .local = -1, .region = -1, .single = true};

PadAxis padding_fixed(int region) {
    return (PadAxis){.index = -1, .local = -2 - region, .region = region, .fixed = true};
}

PadAxis padding_loop_axis(const FlowCode *code, int region) {
    int local = code->regions.items[region].var;
    return (PadAxis){.index = -1,
                     .atom = algebra_atom_local(code->algebra, code->role, local),
                     .local = local,
                     .region = region};
}

/* ---- objects --------------------------------------------------------------------------------- */

size_t padding_objects(const FlowCode *code) {
    return code->role->tiles.count + code->role->locals.count;
}

int padding_scalar_object(const FlowCode *code, int local) {
    if (local < 0) return -1;
    LocalKind kind = code->role->locals.items[local].kind;
    bool set = kind == LOCAL_LET || kind == LOCAL_VAR;
    return set ? (int)code->role->tiles.count + local : -1;
}

static int written_object(const FlowCode *code, const Row *row) {
    if (row->kind == ROW_SET) return padding_scalar_object(code, row->local);
    if (row->kind != ROW_TILE) return -1;
    const Access *target = &row->tile->target;
    bool tile = target->space == SPACE_REGISTER || target->space == SPACE_SHARED;
    return tile ? target->object : -1;
}

void padding_list_writes(Padding *p) {
    p->writes = (void *)NEW_ARRAY(p->arena, VEC(int), padding_objects(p->code) + 1);
    for (size_t at = 0; at < p->code->rows.count; at++) {
        int object = written_object(p->code, code_row(p->code, (int)at));
        if (object >= 0) vec_push(p->arena, &p->writes[object], (int)at);
    }
}

int *padding_opened(Arena *arena, const FlowCode *code) {
    size_t tiles = code->role->tiles.count, objects = padding_objects(code);
    int *opened = NEW_ARRAY(arena, int, objects + code->role->handles.count + 1);
    for (size_t i = 0; i < objects + code->role->handles.count; i++) opened[i] = -1;
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = code_row(code, (int)at);
        size_t first = row->object == OBJECT_TILE    ? 0
                       : row->object == OBJECT_LOCAL ? tiles
                                                     : objects;
        if (row->kind == ROW_OPEN) opened[first + (size_t)row->index] = (int)at;
    }
    return opened;
}

bool padding_carried(const Padding *p, int object, int region) {
    const Region *loop = &p->code->regions.items[region];
    if (padding_assigned(&p->state[object], loop)) return false;
    size_t low = 0, high = p->writes[object].count;
    while (low < high) { /* the first write from the begin of the loop */
        size_t middle = (low + high) / 2;
        if (p->writes[object].items[middle] < loop->begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->writes[object].count && p->writes[object].items[low] <= loop->end;
}

/* ---- values of loops ------------------------------------------------------------------------- */

static void add_loop(Padding *p, TileFill *tile, int local, const Fill *fill) {
    for (int i = 0; i < LOOPS_MOST; i++) {
        LoopFill *loop = &tile->loops[i];
        if (loop->fill && loop->local != local) continue;
        loop->fill = loop->fill ? fill_join(&p->fills, loop->fill, fill) : fill;
        loop->local = local;
        return;
    }
    tile->more_loops = true;
}

static const Fill *unknown(Padding *p) {
    Draft draft = {
        .at = {{{.lo = -0x1p63, .hi = 0x1p63}, {.lo = -0x1p200, .hi = 0x1p200, .nan = true}}},
        .more = true};
    return fill_made(&p->fills, &draft);
}

const Fill *padding_loop_fill(Padding *p, const TileFill *tile, int local) {
    for (int i = 0; i < LOOPS_MOST; i++)
        if (tile->loops[i].fill && tile->loops[i].local == local) return tile->loops[i].fill;
    return tile->more_loops ? unknown(p) : NULL;
}

/* Where only one of two paths has computed a value from padding, the other has an element. */
static const Fill *along(Padding *p, const TileFill *tile, int local) {
    const Fill *fill = padding_loop_fill(p, tile, local);
    return fill ? fill : fill_of(&p->fills, tile->element);
}

bool padding_join_loops(Padding *p, TileFill *to, const TileFill *from) {
    const TileFill before = *to;
    bool changed = false;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < LOOPS_MOST; i++) {
            const LoopFill *loop = side == 0 ? &before.loops[i] : &from->loops[i];
            const Fill *mine = loop->fill ? padding_loop_fill(p, &before, loop->local) : NULL;
            if (!loop->fill || (side == 1 && mine)) continue;
            const Fill *old = along(p, &before, loop->local),
                       *fill = fill_widen(&p->fills, old, along(p, from, loop->local));
            if (fill == old && mine) continue;
            changed = true;
            for (int k = 0; k < LOOPS_MOST; k++)
                if (to->loops[k].fill && to->loops[k].local == loop->local)
                    to->loops[k].fill = NULL;
            add_loop(p, to, loop->local, fill);
        }
    to->element = pad_widened(to->element, from->element);
    to->more_loops |= from->more_loops;
    to->assigned &= from->assigned;
    return changed || !pad_same(before.element, to->element) ||
           to->more_loops != before.more_loops || to->assigned != before.assigned;
}

static uint32_t depth_bit(const Region *loop) {
    return loop->depth < 32 ? (uint32_t)1 << loop->depth : 0;
}

/* What the last iteration left as it was is no value of padding. */
static const Fill *next_iteration(Padding *p, const Fill *fill, int object) {
    Draft out;
    fill_draft(fill, &out);
    for (unsigned s = 0; s < 1u << out.count; s++) {
        Cell *cell = &out.at[s];
        if (pad_exists(cell->padding) && cell->padding.self == object + 1) {
            cell->element = pad_join(cell->element, cell->padding);
            cell->padding = pad_none;
        }
        cell->element.marks &= (uint8_t)~MARKS_EARLIER, cell->element.self = 0;
        cell->padding.marks &= (uint8_t)~MARKS_EARLIER, cell->padding.self = 0;
    }
    fill = fill_made(&p->fills, &out);
    return fill->padded ? fill : NULL;
}

void padding_iterate(Padding *p, TileFill *tile, int object, int region) {
    const Region *loop = code_region(p->code, region);
    tile->assigned &= ~depth_bit(loop);
    for (int i = 0; i < LOOPS_MOST; i++) {
        LoopFill *of = &tile->loops[i];
        if (of->fill && (of->local == loop->var || of->local == -2 - region))
            of->fill = next_iteration(p, of->fill, object);
    }
}

bool padding_assigned(const TileFill *tile, const Region *loop) {
    return (tile->assigned & depth_bit(loop)) != 0;
}

const Fill *padding_updated(Padding *p, Expr *value, AssignOp op, PadAxis axis) {
    static const PadOp ops[] = {[ASSIGN_ADD] = PAD_ADD,
                                [ASSIGN_SUB] = PAD_SUB,
                                [ASSIGN_MUL] = PAD_MUL,
                                [ASSIGN_DIV] = PAD_DIV};
    const Fill *fill = padding_of(p, value, axis);
    if (op == ASSIGN_SET) return fill;
    if (op == ASSIGN_DIV) fill = padding_learned(p, value, fill);
    const Fill *old = padding_of_read(p, p->target, axis);
    return fill_binary(&p->fills, (Operation){.op = ops[op], .type = value->type}, old, fill);
}

const Fill *padding_in_loop(Padding *p, Expr *value, AssignOp op, PadAxis axis) {
    p->loop = axis.region;
    const Fill *fill = padding_updated(p, value, op, axis);
    fill = padding_controlled(p, axis, fill);
    p->loop = -1;
    return fill;
}

static void in_loop(Padding *p, const Assigned *assigned, PadAxis axis, TileFill *next) {
    const Fill *fill = padding_in_loop(p, assigned->value, assigned->op, axis);
    padding_check_loop(p, assigned, axis, fill);
    if (!next || (!fill->padded && !fill->earlier)) return;
    add_loop(p, next, axis.local, padding_by_place(p, fill, -1));
}

void padding_in_loops(Padding *p, Assigned assigned, TileFill *next) {
    const FlowCode *code = p->code;
    if (next && assigned.covers) {
        for (int i = 0; i < LOOPS_MOST; i++) next->loops[i] = (LoopFill){0};
        next->more_loops = false;
        next->assigned = ALL_LOOPS;
    }
    for (int r = code->rows.items[p->at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        if (region->kind != REGION_FOR || region->var < 0) continue;
        in_loop(p, &assigned, padding_loop_axis(code, r), next);
        if (p->constants) in_loop(p, &assigned, padding_fixed(r), next);
    }
}

/* ---- the path -------------------------------------------------------------------------------- */

/* A tensor that the role itself reads, at subscripts that its author has written, may decide. */
static bool is_direct(const Fill *fill) {
    for (int i = 0; i < fill->count; i++)
        if (!fill->edges[i].direct) return false;
    return !fill->more;
}

static const Fill *control(Padding *p, PadAxis axis, Expr *condition, bool truth,
                           const Fill *fill) {
    if (!condition) return fill;
    const Fill *decides = padding_of(p, condition, axis);
    if (!decides->padded || is_direct(decides)) return fill;
    return fill_controlled(&p->fills, fill, decides, truth, E_F32);
}

/* The number of iterations of a loop around the row */
static const Fill *control_bounds(Padding *p, PadAxis axis, const Region *region,
                                  const Fill *fill) {
    Expr *bounds[] = {region->lo, region->hi};
    if (region->kind != REGION_FOR) return fill;
    for (int i = 0; i < 2; i++) {
        if (!bounds[i]) continue;
        const Fill *bound = padding_of(p, bounds[i], axis);
        if (!bound->padded || is_direct(bound)) continue;
        const Fill *truth =
            fill_binary(&p->fills, (Operation){.op = PAD_OTHER, .type = E_BOOL}, bound, bound);
        fill = fill_controlled(&p->fills, fill, truth, true, E_F32);
    }
    return control(p, axis, region->where, true, fill);
}

const Fill *padding_controlled(Padding *p, PadAxis axis, const Fill *fill) {
    const FlowCode *code = p->code;
    int at = p->at;
    if (!flow_values(p->arena, p->code)) return fill;
    for (int r = code->rows.items[at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        bool truth;
        for (int left = -1; (left = values_left(code, r, at, left, &truth)) >= 0;)
            fill = control(p, axis, code->regions.items[left].condition, truth, fill);
        if (region->kind == REGION_FOR && r == axis.region) break;
        if (region->kind == REGION_IF)
            fill = control(p, axis, region->condition, at < region->otherwise, fill);
        fill = control_bounds(p, axis, region, fill);
    }
    return fill;
}
