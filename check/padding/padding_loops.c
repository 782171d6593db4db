/* Values that iterations of loops compute from padding into tiles and scalars, for later
 * statements; and the conditions on the path to a statement. */
#include "check/padding/padding.h"

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

/* ---- values of loops ------------------------------------------------------------------------- */

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

const Fill *padding_in_loop(Padding *p, const Assigned *assigned, PadAxis axis) {
    p->loop = axis.region;
    const Fill *fill = padding_updated(p, assigned->value, assigned->op, axis);
    fill = padding_controlled(p, axis, fill);
    p->loop = -1;
    return padding_first(p, padding_possible(p, fill), assigned->object);
}

static void in_loop(Padding *p, const Assigned *assigned, PadAxis axis, TileFill *next) {
    const Fill *fill = padding_in_loop(p, assigned, axis);
    padding_check_loop(p, assigned, axis, fill);
    if (!next || (!fill->padded && !fill->earlier)) return;
    padding_add_loop(p, next, axis.local, padding_by_place(p, fill, -1));
}

void padding_in_loops(Padding *p, Assigned assigned, TileFill *next) {
    const FlowCode *code = p->code;
    if (next && assigned.covers) {
        next->loop_count = 0;
        next->more_loops = false;
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
        size_t next = 0;
        for (int left; (left = values_left(code, r, at, &next, &truth)) >= 0;)
            fill = control(p, axis, code->regions.items[left].condition, truth, fill);
        if (region->kind == REGION_FOR && r == axis.region) break;
        if (region->kind == REGION_IF)
            fill = control(p, axis, region->condition, at < region->otherwise, fill);
        fill = control_bounds(p, axis, region, fill);
    }
    return fill;
}
