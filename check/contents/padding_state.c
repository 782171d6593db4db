/* States of the rule: contents of the tiles and scalars that the role writes, at one place of its
 * Code. They are shared by the states that have the same ones, and replaced as a whole. */
#include "check/padding/padding.h"

#include <limits.h>
#include <string.h>

static const TileFill nothing;

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

int padding_tile_object(const Access *access) {
    bool tile = access->space == SPACE_REGISTER || access->space == SPACE_SHARED;
    return tile ? access->object : -1;
}

int padding_written_object(const FlowCode *code, const Row *row) {
    if (row->kind == ROW_SET) return padding_scalar_object(code, row->local);
    return row->kind == ROW_TILE ? padding_tile_object(&row->tile->target) : -1;
}

static void list_object(Padding *p, int object) {
    if (object < 0 || p->slots[object] >= 0) return;
    p->slots[object] = (int)p->objects.count;
    vec_push(p->arena, &p->objects, object);
}

void padding_list_objects(Padding *p) {
    size_t count = padding_objects(p->code);
    const Role *role = p->code->role;
    p->writes = (void *)NEW_ARRAY(p->arena, VEC(int), count + 1);
    p->slots = NEW_ARRAY(p->arena, int, count + 1);
    p->latest = NEW_ARRAY(p->arena, int, p->code->rows.count + 1);
    for (size_t at = 0; at < p->code->rows.count; at++) p->latest[at] = -1;
    p->objects.count = 0, p->consulted.count = 0, p->memos.count = 0, p->unsafe.count = 0;
    for (size_t i = 0; i < count; i++) p->slots[i] = -1;
    for (size_t at = 0; at < p->code->rows.count; at++) {
        const Row *row = code_row(p->code, (int)at);
        int object = padding_written_object(p->code, row);
        list_object(p, object);
        if (object >= 0) vec_push(p->arena, &p->writes[object], (int)at);
        if (row->kind != ROW_UNSAFE) continue;
        vec_push(p->arena, &p->unsafe, (int)at);
        list_object(p, padding_scalar_object(p->code, row->local));
        for (size_t t = 0; t < role->tiles.count; t++)
            if (role->tiles.items[t].address_taken) list_object(p, (int)t);
    }
}

/* What the row depends on: a place of the state; below -1: the contents of a pipe */
static ObjectState consulted(const Padding *p, int slot) {
    return slot >= 0 ? p->state[slot] : (ObjectState){.assigned = p->versions[-2 - slot]};
}

static void consult(Padding *p, int slot) {
    for (size_t i = p->memo.first; i < p->consulted.count; i++)
        if (p->consulted.items[i].slot == slot) return;
    vec_push(p->arena, &p->consulted, (Consulted){slot, consulted(p, slot)});
}

void padding_consult_pipe(Padding *p, int pipe) { consult(p, -2 - pipe); }

const TileFill *padding_object(Padding *p, int object) {
    int slot = p->slots[object];
    if (slot < 0) return &nothing;
    consult(p, slot);
    return p->state[slot].fill;
}

static bool same_state(ObjectState a, ObjectState b) {
    return a.fill == b.fill && a.assigned == b.assigned;
}

/* What is remembered of the row in such iterations; NULL: nothing */
static RowMemo *find_memo(const Padding *p, int at) {
    for (int i = p->latest[at]; i >= 0; i = p->memos.items[i].older)
        if (p->memos.items[i].firsts == p->memo.firsts) return &p->memos.items[i];
    return NULL;
}

void padding_begin(Padding *p, int at) {
    p->memo = (RowMemo){.first = p->consulted.count,
                        .firsts = padding_firsts(p, at),
                        .leaves = p->left,
                        .slot = -1};
}

bool padding_recall(Padding *p, int at) {
    const RowMemo *memo = find_memo(p, at);
    bool told = !p->orders || code_region(p->code, code_row(p->code, at)->region)->depth < 32;
    if (!memo || memo->leaves != p->left || !told) return false;
    for (size_t i = memo->first; i < memo->first + memo->count; i++) {
        const Consulted *before = &p->consulted.items[i];
        if (!same_state(before->state, consulted(p, before->slot))) return false;
    }
    if (memo->slot >= 0) p->state[memo->slot] = memo->result;
    return true;
}

void padding_remember(Padding *p, int at) {
    p->memo.count = p->consulted.count - p->memo.first;
    if (p->memo.slot >= 0) p->memo.result = p->state[p->memo.slot];
    RowMemo *memo = find_memo(p, at);
    p->memo.older = memo ? memo->older : p->latest[at];
    if (memo) {
        *memo = p->memo;
        return;
    }
    p->latest[at] = (int)p->memos.count;
    vec_push(p->arena, &p->memos, p->memo);
}

static bool same_tile(const TileFill *a, const TileFill *b) {
    bool same = a->element == b->element && a->loop_count == b->loop_count &&
                a->more_loops == b->more_loops;
    for (int d = 0; d < DIMS_MOST && same; d++) same = a->dims[d] == b->dims[d];
    for (int i = 0; i < a->loop_count && same; i++)
        same = a->loops[i].local == b->loops[i].local && a->loops[i].fill == b->loops[i].fill;
    return same;
}

static bool has_edges(const TileFill *tile) {
    bool any = false;
    for (int d = 0; d < DIMS_MOST; d++) any |= tile->dims[d] && tile->dims[d]->count > 0;
    for (int i = 0; i < tile->loop_count; i++) any |= tile->loops[i].fill->count > 0;
    return any;
}

/* For a state; `old` if that is the same */
static const TileFill *kept(Padding *p, const TileFill *next, const TileFill *old) {
    if (same_tile(old, next)) return old;
    TileFill *made = NEW(p->arena, TileFill);
    *made = *next;
    made->edged = has_edges(made);
    return made;
}

void padding_put(Padding *p, int object, const TileFill *next, bool whole) {
    ObjectState *state = &p->state[p->slots[object]];
    state->fill = kept(p, next, state->fill);
    if (whole) state->assigned = ALL_LOOPS;
    p->memo.slot = p->slots[object];
}

TileFill padding_any(Padding *p) {
    TileFill tile = {.element = fill_of(&p->fills, pad_any())};
    for (int d = 0; d < DIMS_MOST; d++) tile.dims[d] = tile.element;
    return tile;
}

void padding_open(Padding *p, int object) {
    if (object < 0 || p->slots[object] < 0) return;
    p->state[p->slots[object]] = (ObjectState){&nothing, ALL_LOOPS};
}

/* ---- values of loops ------------------------------------------------------------------------- */

static LoopFill *find_loop(TileFill *tile, int local) {
    for (int i = 0; i < tile->loop_count; i++)
        if (tile->loops[i].local == local) return &tile->loops[i];
    return NULL;
}

void padding_add_loop(Padding *p, TileFill *tile, int local, const Fill *fill) {
    LoopFill *loop = find_loop(tile, local);
    if (loop)
        loop->fill = fill_join(&p->fills, loop->fill, fill);
    else if (tile->loop_count < LOOPS_MOST)
        tile->loops[tile->loop_count++] = (LoopFill){local, fill};
    else
        tile->more_loops = true;
}

const Fill *padding_unknown(Padding *p) {
    Draft draft = {.more = true, .at = {{pad_any(), pad_any()}}};
    draft.at[0].element.marks = draft.at[0].padding.marks = MARK_CARRIED;
    return fill_made(&p->fills, &draft);
}

const Fill *padding_loop_fill(Padding *p, const TileFill *tile, int local) {
    for (int i = 0; i < tile->loop_count; i++)
        if (tile->loops[i].local == local) return tile->loops[i].fill;
    return tile->more_loops ? padding_unknown(p) : NULL;
}

/* Where only one of two paths has computed a value from padding, the other has an element. */
static const Fill *along(Padding *p, const TileFill *tile, int local) {
    const Fill *fill = padding_loop_fill(p, tile, local);
    return fill ? fill : padding_written(p, tile->element);
}

static void join_loops(Padding *p, TileFill *next, const TileFill *to, const TileFill *from) {
    for (int i = 0; i < to->loop_count; i++) {
        const LoopFill *loop = &to->loops[i];
        next->loops[i].fill = fill_widen(&p->fills, loop->fill, along(p, from, loop->local));
    }
    for (int i = 0; i < from->loop_count; i++) {
        const LoopFill *loop = &from->loops[i];
        if (!padding_loop_fill(p, to, loop->local))
            padding_add_loop(p, next, loop->local,
                             fill_widen(&p->fills, along(p, to, loop->local), loop->fill));
    }
    next->more_loops |= from->more_loops;
}

/* ---- states ---------------------------------------------------------------------------------- */

void *padding_start(Flow *flow) {
    Padding *p = flow->data;
    p->state = NEW_ARRAY(flow->arena, ObjectState, p->objects.count + 1);
    for (size_t i = 0; i < p->objects.count; i++) p->state[i] = (ObjectState){&nothing, ALL_LOOPS};
    return p->state;
}

void *padding_copy(Flow *flow, const void *state) {
    const Padding *p = flow->data;
    void *made = flow_spare(flow);
    if (!made) made = NEW_ARRAY(flow->arena, ObjectState, p->objects.count + 1);
    memcpy(made, state, p->objects.count * sizeof(ObjectState));
    return made;
}

/* What another path, or another write, adds */
const Fill *padding_widened(Padding *p, const Fill *old, const Fill *next) {
    return !next ? old : !old ? next : fill_widen(&p->fills, old, next);
}

static const TileFill *joined(Padding *p, const TileFill *to, const TileFill *from) {
    TileFill next = *to;
    for (int d = 0; d < DIMS_MOST; d++)
        next.dims[d] = padding_widened(p, to->dims[d], from->dims[d]);
    join_loops(p, &next, to, from);
    next.element = padding_widened(p, to->element, from->element);
    return kept(p, &next, to);
}

bool padding_join(Flow *flow, void *to, const void *from, int at, int source) {
    Padding *p = flow->data;
    bool changed = false;
    (void)at, (void)source;
    for (size_t i = 0; i < p->objects.count; i++) {
        ObjectState *a = (ObjectState *)to + i;
        const ObjectState *b = (const ObjectState *)from + i, before = *a;
        if (a->fill != b->fill) a->fill = joined(p, a->fill, b->fill);
        a->assigned &= b->assigned;
        changed |= a->fill != before.fill || a->assigned != before.assigned;
    }
    return changed;
}

void padding_refine(Flow *flow, int region, bool truth, void *state) {
    Padding *p = flow->data;
    const Role *role = flow->code->role;
    if (!p->proofs) return;
    p->state = state;
    PathMark mark = values_assume(flow->arena, flow->code, flow->code->regions.items[region].begin);
    values_assume_if(flow->arena, flow->code, region, truth);
    for (size_t i = 0; i < p->objects.count; i++) {
        int object = p->objects.items[i];
        TileFill next = *p->state[i].fill;
        if (!next.edged || object >= (int)role->tiles.count) continue;
        for (int d = 0; d < DIMS_MOST; d++)
            next.dims[d] = padding_inside(p, next.dims[d], &role->tiles.items[object]);
        padding_put(p, object, &next, false);
    }
    algebra_undo(flow->code->algebra, mark);
    p->assumed = flow->context.assumed;
    padding_narrow(p, code_region(flow->code, region), truth);
}

/* ---- iterations ------------------------------------------------------------------------------ */

static uint32_t depth_bit(const Region *loop) {
    return loop->depth < 32 ? (uint32_t)1 << loop->depth : 0;
}

int padding_written_from(const Padding *p, int object, int from) {
    size_t low = 0, high = p->writes[object].count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (p->writes[object].items[middle] < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->writes[object].count ? p->writes[object].items[low] : INT_MAX;
}

bool padding_carried(Padding *p, int object, int region) {
    const Region *loop = &p->code->regions.items[region];
    int slot = p->slots[object];
    if (slot < 0) return false;
    consult(p, slot);
    if (p->state[slot].assigned & depth_bit(loop)) return false;
    return padding_written_from(p, object, loop->begin) <= loop->end;
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
        cell->element.marks &= (uint16_t)~MARKS_EARLIER, cell->element.self = 0;
        cell->padding.marks &= (uint16_t)~MARKS_EARLIER, cell->padding.self = 0;
    }
    fill = fill_made(&p->fills, &out);
    return fill->padded ? fill : NULL;
}

static void iterate(Padding *p, int object, int region, int local) {
    TileFill next = *p->state[p->slots[object]].fill;
    int count = 0;
    for (int i = 0; i < next.loop_count; i++) {
        LoopFill loop = next.loops[i];
        if (loop.local == local || loop.local == -2 - region)
            loop.fill = next_iteration(p, loop.fill, object);
        if (loop.fill) next.loops[count++] = loop;
    }
    next.loop_count = count;
    padding_put(p, object, &next, false);
}

void padding_iterate(Padding *p, int region) {
    const Region *loop = code_region(p->code, region);
    for (size_t i = 0; i < p->objects.count; i++) {
        p->state[i].assigned &= ~depth_bit(loop);
        if (p->state[i].fill->loop_count > 0) iterate(p, p->objects.items[i], region, loop->var);
    }
}

static bool is_of_iteration(const FlowCode *code, const Region *region, const Edge *edge) {
    return edge->sub && (padding_of_iteration(code, region, edge->sub) ||
                         (edge->past && padding_of_iteration(code, region, edge->past)));
}

/* Positions that cross the edge in an iteration cross it in all later ones. */
static bool stays_crossed(const Padding *p, const Region *region, const Edge *edge) {
    const FlowCode *code = p->code;
    Algebra *algebra = code->algebra;
    const Poly *factor, *rest;
    int64_t coef;
    bool counts = p->proofs && region->kind == REGION_FOR && region->var >= 0 && edge->past;
    return counts && !padding_of_iteration(code, region, edge->past) &&
           poly_split(algebra, edge->sub, algebra_atom_local(algebra, code->role, region->var),
                      &factor, &rest) &&
           poly_is_constant(factor, &coef) && coef > 0 &&
           !padding_of_iteration(code, region, rest) &&
           algebra_proves(algebra, CLAIM_NOT_NEGATIVE, edge->sub);
}

/* The same formula in the next iteration: a position that crosses it there was beyond the edge
 * before, or not. */
static void cross_later(Draft *draft, int edge) {
    draft->edges[edge].earlier = true;
    for (unsigned s = 0; s < 1u << draft->count; s++) {
        const Cell *without = &draft->at[s & ~(1u << edge)];
        Cell *cell = &draft->at[s];
        if (!(s >> edge & 1)) continue;
        cell->element = pad_join(cell->element, without->element);
        cell->padding = pad_join(cell->padding, without->padding);
    }
}

/* `goes_on`: another iteration follows */
static const Fill *forgotten(Padding *p, const Region *region, const Fill *fill, bool goes_on) {
    Draft out;
    if (!fill || fill->count == 0) return fill;
    fill_draft(fill, &out);
    for (int i = 0; i < out.count; i++) {
        Edge *edge = &out.edges[i];
        if (!is_of_iteration(p->code, region, edge)) continue;
        if (goes_on && stays_crossed(p, region, edge))
            cross_later(&out, i);
        else
            edge->sub = NULL;
    }
    draft_merge_unknown(&out);
    return fill_made(&p->fills, &out);
}

void padding_forget(Padding *p, const Region *region, bool goes_on) {
    const Role *role = p->code->role;
    for (size_t i = 0; i < p->objects.count; i++) {
        int object = p->objects.items[i];
        if (!p->state[i].fill->edged) continue;
        TileFill next = *p->state[i].fill;
        PathMark mark = algebra_mark(p->code->algebra);
        if (object < (int)role->tiles.count) padding_assume_places(p, &role->tiles.items[object]);
        for (int d = 0; d < DIMS_MOST; d++)
            next.dims[d] = forgotten(p, region, next.dims[d], goes_on);
        algebra_undo(p->code->algebra, mark);
        for (int k = 0; k < next.loop_count; k++)
            next.loops[k].fill = forgotten(p, region, next.loops[k].fill, false);
        padding_put(p, object, &next, false);
    }
}
