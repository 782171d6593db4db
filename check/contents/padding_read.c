/* Contents of tiles, stages, tensors and scalars at a read, along one axis of the statement. */
#include "check/padding/padding.h"

const Fill *padding_written(Padding *p, const Fill *fill) { return fill ? fill : p->unwritten; }

const Fill *padding_typed(Padding *p, Element type) {
    if (!p->typed[type]) p->typed[type] = fill_of(&p->fills, pad_of_type(type));
    return p->typed[type];
}

int padding_place(Padding *p, int d) {
    if (!p->places[d])
        p->places[d] =
            1 + algebra_version(p->code->algebra, NULL, -1, d, "place", E_I32)->terms[0].atoms[0];
    return p->places[d] - 1;
}

/* ---- edges ----------------------------------------------------------------------------------- */

bool padding_mentions(Padding *p, Expr *expr, PadAxis axis) {
    if (!expr) return false;
    if (axis.index >= 0) return expr->indexes >> axis.index & 1;
    int64_t position;
    if (axis.single) return expr->indexes == 0;
    if (axis.fixed)
        return poly_is_constant(algebra_poly(p->code->algebra, p->code->role, expr), &position);
    if (axis.local < 0) return false;
    return poly_mentions(p->code->algebra, algebra_poly(p->code->algebra, p->code->role, expr),
                         axis.atom);
}

/* Constant extents need no proof, so that no second round follows only because of them. */
static bool within_constant(Algebra *algebra, const Poly *sub, const Poly *past) {
    int64_t extent, lo, hi;
    return sub && past && poly_is_constant(past, &extent) &&
           poly_interval(algebra, algebra->space, sub, &lo, &hi) && lo >= 0 && hi < extent;
}

/* Notes which half of `0 <= sub < past` is proved; true if both are. */
bool padding_prove_inside(Padding *p, Edge *edge) {
    Algebra *algebra = p->code->algebra;
    const Poly *past = edge->past, *sub = edge->sub;
    if (within_constant(algebra, sub, past)) return true;
    if (!p->proofs || !sub || !past || poly_changes(algebra, sub) || poly_changes(algebra, past))
        return false;
    const Poly *room = poly_offset(algebra, poly_sum(algebra, past, sub, -1), -1);
    bool above = algebra_proves(algebra, CLAIM_NOT_NEGATIVE, sub);
    bool below = (above || p->report) && algebra_proves(algebra, CLAIM_NOT_NEGATIVE, room);
    edge->above |= above, edge->below |= below;
    return above && below;
}

/* At this position two edges may be the same one: it crosses both or neither. */
static void unite_equal(Padding *p, Draft *draft) {
    for (int i = 0; i < draft->count; i++)
        for (int k = i + 1; k < draft->count; k++) {
            const Edge *a = &draft->edges[i], *b = &draft->edges[k];
            bool same = a->sub && b->sub && a->past && b->past && poly_equal(a->sub, b->sub) &&
                        poly_equal(a->past, b->past) && !poly_changes(p->code->algebra, a->sub);
            for (unsigned s = 0; same && s < 1u << draft->count; s++)
                if ((s >> i & 1) != (s >> k & 1)) draft->at[s] = (Cell){pad_none, pad_none};
        }
    draft_merge_unknown(draft);
}

/* Excludes the edges that the positions are proved to be inside of: those of the subscripts, by
 * dimension; NULL: the edges are not by position in a tile. */
static const Fill *excluded(Padding *p, const Fill *fill, const Access *read) {
    Algebra *algebra = p->code->algebra;
    Draft out;
    fill_draft(fill, &out);
    for (int i = 0; i < out.count; i++) {
        Edge *edge = &out.edges[i];
        for (int d = 0; edge->sub && read && d < read->rank; d++)
            edge->sub = poly_replace(algebra, edge->sub, padding_place(p, d),
                                     algebra_poly(algebra, p->code->role, read->subs[d]));
        if (padding_prove_inside(p, edge)) draft_exclude(&out, i);
    }
    if (out.count > 1) unite_equal(p, &out);
    return fill_made(&p->fills, &out);
}

const Fill *padding_at_read(Padding *p, const Fill *fill, const Access *read) {
    FillKey key = {FILL_READ, (uint32_t)p->at, {fill, read, p->code}};
    if (fill->count == 0) return fill;
    if (p->proofs) return excluded(p, fill, read); /* depends on facts of conditions */
    const Fill *known = fill_recall(&p->fills, &key);
    return known ? known : fill_remember(&p->fills, &key, excluded(p, fill, read));
}

void padding_assume_places(Padding *p, const RoleTile *tile) {
    Algebra *algebra = p->code->algebra;
    for (int d = 0; d < tile->rank; d++)
        algebra_assume_range(algebra, poly_atom(algebra, padding_place(p, d)),
                             poly_constant(algebra, 0), poly_constant(algebra, tile->extents[d]));
}

const Fill *padding_inside(Padding *p, const Fill *fill, const RoleTile *tile) {
    Algebra *algebra = p->code->algebra;
    if (!fill || !fill->padded) return fill;
    PathMark mark = algebra_mark(algebra);
    padding_assume_places(p, tile);
    fill = padding_at_read(p, fill, NULL);
    algebra_undo(algebra, mark);
    return fill;
}

bool padding_is_possible(Padding *p, const Fill *fill, unsigned set) {
    Algebra *algebra = p->code->algebra;
    bool inside = false;
    if (!p->proofs) return true;
    PathMark mark = algebra_mark(algebra);
    for (int i = 0; i < fill->count; i++) {
        const Edge *edge = &fill->edges[i];
        if (set >> i & 1 || !edge->sub || !edge->past || poly_changes(algebra, edge->sub)) continue;
        algebra_assume_range(algebra, edge->sub, poly_constant(algebra, 0), edge->past);
    }
    for (int i = 0; i < fill->count && !inside; i++) {
        Edge edge = fill->edges[i];
        inside = set >> i & 1 && padding_prove_inside(p, &edge);
    }
    algebra_undo(algebra, mark);
    return !inside;
}

const Fill *padding_possible(Padding *p, const Fill *fill) {
    Draft out;
    bool any = false;
    if (!p->proofs || !fill->padded || fill->count < 2) return fill;
    fill_draft(fill, &out);
    for (unsigned s = 1; s < 1u << fill->count; s++) {
        if (!pad_exists(fill->at[s].padding) || padding_is_possible(p, fill, s)) continue;
        out.at[s] = (Cell){pad_none, pad_none};
        any = true;
    }
    return any ? fill_made(&p->fills, &out) : fill;
}

/* ---- the same element ------------------------------------------------------------------------ */

bool padding_is_target(const Padding *p, const Access *read) {
    return p->target && padding_same_element(p, read, p->target);
}

typedef struct Previous {
    int object;
    bool same; /* the value itself, not another element of the tile */
} Previous;

static Value map_previous(Value value, bool padding, const void *data) {
    const Previous *previous = data;
    if (!padding) value.marks |= MARK_CARRIED;
    if (previous->same) value.self = previous->object + 1;
    return value;
}

/* An earlier value of the loop that is asked about */
static const Fill *carried(Padding *p, const Fill *fill, int object, bool same) {
    if (p->loop < 0 || !padding_carried(p, object, p->loop)) return fill;
    return fill_map(&p->fills, fill, map_previous, &(Previous){object, same});
}

/* ---- reads ----------------------------------------------------------------------------------- */

/* Contents that the access reads; NULL: elements of a tensor */
static const TileFill *object_of(Padding *p, const Access *read) {
    if (padding_tile_object(read) >= 0) return padding_object(p, read->object);
    return read->space == SPACE_STAGE ? padding_stage(p, read) : NULL;
}

/* The contents of dimension d, or of SINGLES + d, at the subscripts of the read */
static const Fill *stored(Padding *p, const Access *read, const TileFill *tile, int d) {
    bool stage = read->space == SPACE_STAGE;
    if (stage && p->code->role->handles.items[read->object].end == END_CONSUME)
        return padding_consumed(p, read, d);
    return padding_at_read(p, padding_written(p, tile->dims[d]), read);
}

static const Fill *dim_fill(Padding *p, const Access *read, int d) {
    const TileFill *tile = object_of(p, read);
    if (!tile) return padding_typed(p, read->type);
    const Fill *fill = stored(p, read, tile, d), *single = stored(p, read, tile, SINGLES + d);
    if (padding_is_named(p->code, read, d)) fill = padding_named(p, fill);
    return fill_join(&p->fills, fill, single);
}

/* The first position along an index or a loop is proved to be inside. */
static bool starts_inside(Padding *p, Edge edge, PadAxis axis) {
    const Poly *factor;
    if (axis.single || axis.fixed) return true;
    if (!p->proofs || !edge.sub) return false;
    if (!poly_split(p->code->algebra, edge.sub, axis.atom, &factor, &edge.sub)) return false;
    return padding_prove_inside(p, &edge);
}

/* Contents of the read along the axis by its dimension d, which the axis subscripts */
static const Fill *read_dim(Padding *p, const Access *read, int d, PadAxis axis) {
    Algebra *algebra = p->code->algebra;
    if (read->space != SPACE_GLOBAL) return dim_fill(p, read, d);
    const Poly *sub = algebra_poly(algebra, p->code->role, read->subs[d]);
    const Poly *past = algebra_launched(algebra, access_extent(p->tiles, p->code->role, read, d));
    if (within_constant(algebra, sub, past)) return padding_typed(p, read->type);
    Draft fill = {.count = 1};
    fill.edges[0] = (Edge){
        .sub = sub, .past = past, .from = read->span, .text = read->subs[d]->span, .direct = true};
    fill.at[0] = (Cell){pad_of_type(read->type), pad_none};
    fill.at[0].element.marks = MARKS_NEUTRAL | MARK_STATED;
    fill.at[1] = (Cell){pad_none, pad_tainted(pad_number(0), read->type)};
    if (padding_prove_inside(p, &fill.edges[0]))
        draft_exclude(&fill, 0);
    else
        fill.edges[0].starts = starts_inside(p, fill.edges[0], axis);
    return fill_made(&p->fills, &fill);
}

/* Along an axis that is an index or a loop */
static bool depends(const Padding *p, const Poly *sub, PadAxis axis) {
    return !axis.single && !axis.fixed && poly_mentions(p->code->algebra, sub, axis.atom);
}

/* Padding along another dimension is checked along that one: here the read is assumed to be
 * inside of its tensor there, unless that depends on the position along this axis, too. */
static void assume_others(Padding *p, const Access *read, int but, PadAxis axis) {
    Algebra *algebra = p->code->algebra;
    for (int d = 0; d < read->rank && p->proofs; d++) {
        if (d == but || padding_mentions(p, read->subs[d], axis)) continue;
        const Poly *sub = algebra_poly(algebra, p->code->role, read->subs[d]);
        if (read->space == SPACE_GLOBAL) {
            const Poly *past =
                algebra_launched(algebra, access_extent(p->tiles, p->code->role, read, d));
            if (sub && past) algebra_assume_range(algebra, sub, poly_constant(algebra, 0), past);
            continue;
        }
        const Fill *fill = dim_fill(p, read, d);
        bool one = fill->count == 1 && !fill->more && fill->edges[0].sub && fill->edges[0].past;
        if (one && !depends(p, fill->edges[0].sub, axis))
            algebra_assume_range(algebra, fill->edges[0].sub, poly_constant(algebra, 0),
                                 fill->edges[0].past);
    }
}

typedef struct Memory { /* is a tensor, tile or variable read? */
    const FlowCode *code;
    bool found;
} Memory;

static void find_memory(Expr *expr, void *data) {
    Memory *memory = data;
    memory->found |=
        expr->kind == X_READ ||
        (expr->kind == X_LOCAL && padding_scalar_object(memory->code, expr->index) >= 0);
}

/* True if the value may be padding, now or by a variable */
static bool reads_memory(Padding *p, Expr *expr) {
    Memory memory = {p->code, false};
    if (expr->kind != X_CONST && expr->kind != X_INDEX)
        expr_visit(p->arena, expr, find_memory, &memory);
    return memory.found;
}

/* Without edges, or as an iteration of the loop of the axis computed it. NULL read: of a scalar */
static const Fill *base_fill(Padding *p, const TileFill *tile, const Access *read, PadAxis axis) {
    const Fill *looped = axis.local != -1 ? padding_loop_fill(p, tile, axis.local) : NULL,
               *element = padding_written(p, tile->element);
    if (looped) return padding_at_read(p, looped, read);
    if (!axis.single) return element;
    const Fill *alone = read ? stored(p, read, tile, ALONE)
                             : padding_at_read(p, padding_written(p, tile->dims[ALONE]), NULL);
    return fill_written(alone) ? alone : element;
}

/* What is read at positions given by a padded table: any element beyond its edges */
static const Fill *gathered(Padding *p, const Fill *inner, Element type, const Fill *element) {
    Draft out;
    fill_draft(inner, &out);
    for (unsigned s = 0; s < 1u << out.count; s++) {
        Cell *cell = &out.at[s];
        bool padded = pad_exists(cell->padding);
        uint16_t named = cell->padding.marks & MARK_NAMED;
        if (padded) cell->padding = pad_of_type(type), cell->padding.marks = named;
        if (pad_exists(cell->element)) cell->element = padded ? pad_none : element->at[0].element;
    }
    return fill_made(&p->fills, &out);
}

const Fill *padding_of_read(Padding *p, const Access *read, PadAxis axis) {
    const TileFill *tile = object_of(p, read);
    bool local = read->space == SPACE_SHARED || read->space == SPACE_REGISTER;
    const Fill *element = tile ? padding_written(p, tile->element) : padding_typed(p, read->type);
    bool looks = local || (tile && axis.single);
    const Fill *fill = looks ? base_fill(p, tile, read, axis) : element;
    for (int d = 0; d < read->rank; d++) {
        bool mentions = padding_mentions(p, read->subs[d], axis),
             computed = reads_memory(p, read->subs[d]);
        if (!mentions && !computed) continue;
        PathMark mark = {0};
        if (p->proofs) mark = algebra_mark(p->code->algebra), assume_others(p, read, d, axis);
        const Fill *table = computed ? padding_of(p, read->subs[d], axis) : NULL,
                   *by_dimension = mentions ? read_dim(p, read, d, axis) : fill;
        bool padded = table && table->padded;
        if (p->proofs) algebra_undo(p->code->algebra, mark);
        if (padded)
            by_dimension =
                fill_both(&p->fills, gathered(p, table, read->type, element), by_dimension);
        if (mentions || padded) fill = fill_both(&p->fills, by_dimension, fill);
    }
    if (local) return carried(p, fill, read->object, padding_is_target(p, read));
    if (p->loop >= 0 && padding_is_target(p, read))
        return fill_map(&p->fills, fill, map_previous, &(Previous){OBJECT_MEMORY, true});
    return fill;
}

const Fill *padding_of_scalar(Padding *p, int object, PadAxis axis) {
    return carried(p, base_fill(p, padding_object(p, object), NULL, axis), object, true);
}
