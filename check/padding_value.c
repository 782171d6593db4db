/* Contents of an expression along one axis of a statement. Each arm of a select is followed under
 * its condition: a read that is then proved to be inside of its tensor does not cross the edge. */
#include "check/padding.h"
#include "flow/match.h"

#include <math.h>

/* most conditions of selects in one value for which both outcomes are considered */
#define CONDITIONS_MOST 4
/* most handles of a producer whose contents are followed apart; beyond, less is accepted */
#define WRITERS_MOST 64

const PadAxis padding_no_axis = {.index = -1, .local = -1, .region = -1};

static const Fill *unwritten(Padding *p) { return p->unwritten; }

const Fill *padding_written(Padding *p, const Fill *fill) { return fill ? fill : unwritten(p); }

static const Fill *any_of(Padding *p, Element type) {
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
    edge->above = above, edge->below = below;
    return above && below;
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
    return fill_made(&p->fills, &out);
}

static const Fill *exclude_proved(Padding *p, const Fill *fill, const Access *read) {
    FillKey key = {FILL_READ, (uint32_t)p->at, {fill, read, p->code}};
    if (fill->count == 0) return fill;
    if (p->proofs) return excluded(p, fill, read); /* depends on facts of conditions */
    const Fill *known = fill_recall(&p->fills, &key);
    return known ? known : fill_remember(&p->fills, &key, excluded(p, fill, read));
}

const Fill *padding_inside(Padding *p, const Fill *fill, const RoleTile *tile) {
    Algebra *algebra = p->code->algebra;
    if (!fill || !fill->padded) return fill;
    PathMark mark = algebra_mark(algebra);
    for (int d = 0; d < tile->rank; d++)
        algebra_assume_range(algebra, poly_atom(algebra, padding_place(p, d)),
                             poly_constant(algebra, 0), poly_constant(algebra, tile->extents[d]));
    fill = exclude_proved(p, fill, NULL);
    algebra_undo(algebra, mark);
    return fill;
}

/* Contents that the producer has written, in the algebra and the variables of this role, for one
 * way in which the stage may have been filled; NULL: any way */
static const Fill *translated(Padding *p, const Fill *fill, FlowCode *producer,
                              const Fillings *ways, const Filling *way) {
    Draft out;
    if (fill->count == 0) return fill;
    fill_draft(fill, &out);
    for (int i = 0; i < out.count; i++) {
        Edge *edge = &out.edges[i];
        edge->sub = match_formula(ways, way, producer, p->code, edge->sub);
        edge->past =
            edge->past ? algebra_import(p->code->algebra, producer->algebra, edge->past) : NULL;
    }
    draft_merge_unknown(&out);
    return fill_made(&p->fills, &out);
}

static FlowCode *producer_of(const Padding *p, int pipe) {
    int role = p->code->prog->pipes.items[pipe].producer;
    return role >= 0 ? p->code->prog->roles.items[role].code : NULL;
}

static bool is_by_handle(const Padding *p, int pipe);

/* Contents of a consumed stage's field at the positions of the read, over all ways to fill it */
static const Fill *stage_fill(Padding *p, const Access *read, int d) {
    int pipe = p->code->role->handles.items[read->object].pipe;
    FlowCode *producer = producer_of(p, pipe);
    const Fillings *ways =
        p->proofs && producer ? match_stage(p->arena, producer, p->code, read->object) : NULL;
    bool known = ways && ways->known && is_by_handle(p, pipe);
    size_t count = known ? ways->items.count : (size_t)padding_writers(p, pipe);
    const Fill *out = unwritten(p);
    FillKey key = {FILL_IMPORT, 0, {NULL, producer, p->code}};
    for (size_t i = 0; i < count; i++) {
        const Filling *way = known ? &ways->items.items[i] : NULL;
        const Fill *dim = padding_field(p, pipe, way ? way->handle : (int)i, read->field)->dims[d];
        if (!dim) continue;
        PathMark mark = algebra_mark(p->code->algebra);
        for (size_t k = 0; way && k < way->facts.count; k++)
            algebra_assume_poly(p->code->algebra, way->facts.items[k]);
        key.of[0] = dim;
        const Fill *fill = ways || !producer ? NULL : fill_recall(&p->fills, &key);
        if (!fill) fill = producer ? translated(p, dim, producer, ways, way) : dim;
        if (!ways && producer) fill_remember(&p->fills, &key, fill);
        fill = exclude_proved(p, fill, read);
        algebra_undo(p->code->algebra, mark);
        out = fill_join(&p->fills, out, fill);
    }
    return out;
}

/* ---- objects --------------------------------------------------------------------------------- */

/* Edges are formulas in the algebra of the producer. Other roles that write into the pipe are
 * refused by `ends` and have no part in its contents. */
bool padding_is_producer(const Padding *p, int pipe) {
    const Prog *prog = p->tiles->prog;
    return prog->pipes.items[pipe].producer == (int)(p->code->role - prog->roles.items);
}

/* Contents are followed by the handle of the producer, or for all together if one moves or there
 * are many. */
int padding_writers(const Padding *p, int pipe) {
    int role = p->tiles->prog->pipes.items[pipe].producer;
    if (role < 0 || p->moves[pipe]) return 1;
    size_t handles = p->tiles->prog->roles.items[role].handles.count;
    return handles > WRITERS_MOST ? 1 : (int)handles;
}

/* Otherwise edges have the loop variables of any of its handles. */
static bool is_by_handle(const Padding *p, int pipe) {
    int role = p->tiles->prog->pipes.items[pipe].producer;
    return role >= 0 &&
           padding_writers(p, pipe) == (int)p->tiles->prog->roles.items[role].handles.count;
}

TileFill *padding_field(const Padding *p, int pipe, int handle, int field) {
    size_t fields = p->tiles->prog->pipes.items[pipe].fields.count;
    if (padding_writers(p, pipe) == 1) handle = 0;
    return &p->fields[pipe][(size_t)handle * fields + (size_t)field];
}

const TileFill *padding_all_writers(const Padding *p, int pipe, int field) {
    size_t fields = p->tiles->prog->pipes.items[pipe].fields.count;
    return &p->fields[pipe][(size_t)padding_writers(p, pipe) * fields + (size_t)field];
}

const TileFill *padding_read(Padding *p, const Access *access) {
    const Prog *prog = p->tiles->prog;
    if (padding_tile_object(access) >= 0) return padding_object(p, access->object);
    if (access->space != SPACE_STAGE) return NULL;
    const Handle *handle = &p->code->role->handles.items[access->object];
    bool produced = handle->end == END_PRODUCE;
    if (handle->pipe < 0 || (produced && !padding_is_producer(p, handle->pipe))) return NULL;
    size_t role = (size_t)(p->code->role - prog->roles.items);
    p->reads[role * prog->pipes.count + (size_t)handle->pipe] = true;
    padding_consult_pipe(p, handle->pipe);
    return produced ? padding_field(p, handle->pipe, access->object, access->field)
                    : padding_all_writers(p, handle->pipe, access->field);
}

static bool same_element(const Padding *p, const Access *a, const Access *b) {
    Algebra *algebra = p->code->algebra;
    if (!same_object(a, b) || a->field != b->field || a->rank != b->rank) return false;
    for (int d = 0; d < a->rank; d++)
        if (!poly_equal(algebra_poly(algebra, p->code->role, a->subs[d]),
                        algebra_poly(algebra, p->code->role, b->subs[d])))
            return false;
    return true;
}

bool padding_same(Padding *p, const Expr *a, const Expr *b) {
    if (a == b) return true;
    if (a->kind != b->kind) return false;
    if (a->kind == X_CAST && a->type == b->type) return padding_same(p, a->cast, b->cast);
    if (a->kind == X_LOCAL || a->kind == X_PARAM || a->kind == X_SYMBOL)
        return a->index == b->index;
    return a->kind == X_READ && a->read && b->read && same_element(p, a->read, b->read);
}

static bool is_target(const Padding *p, const Access *read) {
    return p->target && same_element(p, read, p->target);
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

/* The contents of dimension d at the subscripts of the read */
static const Fill *dim_fill(Padding *p, const Access *read, int d) {
    const TileFill *tile = padding_read(p, read);
    bool stage = read->space == SPACE_STAGE;
    if (!tile) return any_of(p, read->type);
    if (stage && p->code->role->handles.items[read->object].end == END_CONSUME)
        return stage_fill(p, read, d);
    return exclude_proved(p, padding_written(p, tile->dims[d]), read);
}

/* Contents of the read along the axis by its dimension d, which the axis subscripts */
static const Fill *read_dim(Padding *p, const Access *read, int d) {
    Algebra *algebra = p->code->algebra;
    if (read->space != SPACE_GLOBAL) return dim_fill(p, read, d);
    const Poly *sub = algebra_poly(algebra, p->code->role, read->subs[d]);
    const Poly *past = algebra_launched(algebra, access_extent(p->tiles, p->code->role, read, d));
    if (within_constant(algebra, sub, past)) return any_of(p, read->type);
    Draft fill = {.count = 1};
    fill.edges[0] = (Edge){
        .sub = sub, .past = past, .from = read->span, .text = read->subs[d]->span, .direct = true};
    fill.at[0] = (Cell){pad_of_type(read->type), pad_none};
    fill.at[0].element.marks = MARKS_NEUTRAL;
    fill.at[1] = (Cell){pad_none, pad_tainted(pad_number(0), read->type)};
    if (padding_prove_inside(p, &fill.edges[0])) draft_exclude(&fill, 0);
    return fill_made(&p->fills, &fill);
}

/* Padding along another dimension is checked along that one: here the read is assumed to be
 * inside of its tensor there. */
static void assume_others(Padding *p, const Access *read, int but) {
    Algebra *algebra = p->code->algebra;
    for (int d = 0; d < read->rank && p->proofs; d++) {
        if (d == but) continue;
        const Poly *sub = algebra_poly(algebra, p->code->role, read->subs[d]);
        if (read->space == SPACE_GLOBAL) {
            const Poly *past =
                algebra_launched(algebra, access_extent(p->tiles, p->code->role, read, d));
            if (sub && past) algebra_assume_range(algebra, sub, poly_constant(algebra, 0), past);
            continue;
        }
        const Fill *fill = dim_fill(p, read, d);
        bool one = fill->count == 1 && !fill->more && fill->edges[0].sub && fill->edges[0].past;
        if (one)
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

/* Without edges, or as an iteration of the loop of the axis computed it */
static const Fill *base_fill(Padding *p, const TileFill *tile, const Access *read, PadAxis axis) {
    const Fill *looped = axis.local != -1 ? padding_loop_fill(p, tile, axis.local) : NULL;
    if (!looped) return padding_written(p, tile->element);
    return exclude_proved(p, looped, read);
}

/* What is read at positions given by a padded table: any element beyond its edges */
static const Fill *gathered(Padding *p, const Fill *inner, Element type, const Fill *element) {
    Draft out;
    fill_draft(inner, &out);
    for (unsigned s = 0; s < 1u << out.count; s++) {
        Cell *cell = &out.at[s];
        bool padded = pad_exists(cell->padding);
        if (padded) cell->padding = pad_of_type(type);
        if (pad_exists(cell->element)) cell->element = padded ? pad_none : element->at[0].element;
    }
    return fill_made(&p->fills, &out);
}

const Fill *padding_of_read(Padding *p, const Access *read, PadAxis axis) {
    const TileFill *tile = padding_read(p, read);
    bool local = read->space == SPACE_SHARED || read->space == SPACE_REGISTER;
    const Fill *element = tile ? padding_written(p, tile->element) : any_of(p, read->type);
    const Fill *fill = local ? base_fill(p, tile, read, axis) : element;
    for (int d = 0; d < read->rank; d++) {
        bool mentions = padding_mentions(p, read->subs[d], axis),
             computed = reads_memory(p, read->subs[d]);
        if (!mentions && !computed) continue;
        PathMark mark = {0};
        if (p->proofs) mark = algebra_mark(p->code->algebra), assume_others(p, read, d);
        const Fill *table = computed ? padding_of(p, read->subs[d], axis) : NULL,
                   *by_dimension = mentions ? read_dim(p, read, d) : fill;
        bool padded = table && table->padded;
        if (p->proofs) algebra_undo(p->code->algebra, mark);
        if (padded)
            by_dimension =
                fill_both(&p->fills, gathered(p, table, read->type, element), by_dimension);
        if (mentions || padded) fill = fill_both(&p->fills, by_dimension, fill);
    }
    if (local) return carried(p, fill, read->object, is_target(p, read));
    if (p->loop >= 0 && is_target(p, read))
        return fill_map(&p->fills, fill, map_previous, &(Previous){OBJECT_MEMORY, true});
    return fill;
}

/* ---- operations ------------------------------------------------------------------------------ */

static const Fill *of(Padding *p, Expr *expr, PadAxis axis);

static const Fill *both(Padding *p, PadOp op, Expr *left, Expr *right, PadAxis axis) {
    const Fill *a = of(p, left, axis), *b = of(p, right, axis);
    return fill_binary(&p->fills, (Operation){.op = op, .type = left->type}, a, b);
}

static const Fill *local_fill(Padding *p, Expr *expr, PadAxis axis) {
    int object = padding_scalar_object(p->code, expr->index);
    if (object < 0) return any_of(p, expr->type);
    const Fill *fill =
        carried(p, base_fill(p, padding_object(p, object), NULL, axis), object, true);
    Expr *value = fill->infinite ? padding_resolved(p, expr) : expr;
    return value == expr ? fill : of(p, value, axis); /* conditions may exclude its pole */
}

/* Whether a divisor may be 0, and which sign a factor of infinity has, may follow from the path. */
static const Fill *learned(Padding *p, Expr *expr, const Fill *fill) {
    return fill->zero ? padding_learned(p, expr, fill) : fill;
}

static const Fill *product(Padding *p, Expr *left, Expr *right, PadAxis axis) {
    const Fill *a = of(p, left, axis), *b = of(p, right, axis);
    if (a->infinite) b = learned(p, right, b);
    if (b->infinite) a = learned(p, left, a);
    return fill_binary(&p->fills, (Operation){.op = PAD_MUL, .type = left->type}, a, b);
}

static const Fill *quotient(Padding *p, Expr *left, Expr *right, PadAxis axis) {
    const Fill *a = of(p, left, axis), *b = learned(p, right, of(p, right, axis));
    return fill_binary(&p->fills, (Operation){.op = PAD_DIV, .type = left->type}, a, b);
}

/* The rest of 0 is 0 for a divisor that is not. */
static const Fill *rest(Padding *p, Expr *left, Expr *right, PadAxis axis) {
    const Fill *a = of(p, left, axis), *b = learned(p, right, of(p, right, axis));
    const Fill *whole =
        fill_binary(&p->fills, (Operation){.op = PAD_DIV, .type = left->type}, a, b);
    const Fill *any =
        fill_binary(&p->fills, (Operation){.op = PAD_OTHER, .type = left->type}, a, b);
    Draft out;
    fill_draft(any, &out);
    for (unsigned s = 0; s < 1u << out.count; s++)
        if (pad_is(whole->at[s].padding, 0)) out.at[s].padding = whole->at[s].padding;
    return fill_made(&p->fills, &out);
}

typedef struct Mapped {
    Intrinsic which;
    Element from, to;
} Mapped;

static Value map_call(Value value, bool padding, const void *data) {
    const Mapped *map = data;
    Value out = padding ? pad_call(map->which, map->from, value)
                        : pad_element_call(map->which, map->from, value);
    bool exists = (value.marks & MARKS_NEUTRAL) == MARKS_NEUTRAL;
    out.marks = value.marks & MARKS_EARLIER ? MARK_CARRIED : 0, out.self = 0;
    if (!padding) {
        out.marks |= exists ? MARKS_NEUTRAL : pad_neutral(out, map->from) & MARKS_NEUTRAL;
        return out;
    }
    out = pad_tainted(out, map->from);
    if (value.marks & MARK_CHOSEN && pad_is(value, 0) && pad_is(out, 0))
        out.marks |= MARK_CHOSEN | MARKS_NEUTRAL;
    return out;
}

static Value changed(Value value) {
    value.self = 0;
    if (value.marks & MARK_HOLDS) value.marks |= MARK_CARRIED;
    return value;
}

static Value map_negation(Value value, bool padding, const void *data) {
    Value out = changed(value);
    (void)padding, (void)data;
    out.lo = -value.hi, out.hi = -value.lo;
    out.marks &= (uint8_t) ~(MARK_MAX | MARK_MIN);
    if (value.marks & MARK_MAX) out.marks |= MARK_MIN;
    if (value.marks & MARK_MIN) out.marks |= MARK_MAX;
    return out;
}

static Value map_not(Value value, bool padding, const void *data) {
    Value out = {
        .lo = 1 - value.hi, .hi = 1 - value.lo, .marks = changed(value).marks & MARK_CARRIED};
    (void)data;
    return padding ? pad_tainted(out, E_BOOL) : out;
}

static Value map_cast(Value value, bool padding, const void *data) {
    const Mapped *map = data;
    if (!padding) return pad_element_cast(value, map->from, map->to);
    Value out = pad_cast(value, map->from, map->to);
    if (element_rows[map->to].kind != ELEMENT_FLOAT) out = pad_tainted(out, map->to);
    if (out.nan) out.marks &= MARKS_EARLIER;
    return out;
}

static const Fill *call_fill(Padding *p, const Expr *expr, PadAxis axis) {
    Expr *const *args = expr->call.args;
    Mapped map = {.which = expr->call.which, .from = expr->type};
    switch (expr->call.which) {
    case IN_min: return both(p, PAD_MIN, args[0], args[1], axis);
    case IN_max: return both(p, PAD_MAX, args[0], args[1], axis);
    case IN_ceil_div: return both(p, PAD_OTHER, args[0], args[1], axis);
    case IN_fma: {
        const Fill *by = product(p, args[0], args[1], axis), *more = of(p, args[2], axis);
        return fill_binary(&p->fills, (Operation){.op = PAD_ADD, .type = expr->type}, by, more);
    }
    case IN_rcp:
    case IN_rsqrt:
    case IN_log:
    case IN_log2: {
        const Fill *argument = learned(p, args[0], of(p, args[0], axis));
        return fill_map(&p->fills, argument, map_call, &map);
    }
    case IN_abs:
    case IN_sqrt:
    case IN_sin:
    case IN_tanh:
    case IN_floor:
    case IN_ceil:
    case IN_exp:
    case IN_exp2:
    case IN_cos:
    case IN_COUNT: break;
    }
    return fill_map(&p->fills, of(p, args[0], axis), map_call, &map);
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* The expression where the condition has this truth */
static const Fill *under(Padding *p, Expr *condition, bool truth, Expr *expr, PadAxis axis) {
    Algebra *algebra = p->code->algebra;
    PathMark mark = algebra_mark(algebra);
    if (p->proofs) algebra_assume(algebra, p->code->role, condition, truth);
    vec_push(p->arena, &p->decided, (struct Decided){condition, truth});
    const Fill *fill = of(p, expr, axis);
    p->decided.count--;
    algebra_undo(algebra, mark);
    return fill;
}

static Value map_square(Value value, bool padding, const void *data) {
    (void)padding, (void)data;
    if (value.lo < 0) value.lo = 0;
    return value;
}

static const Fill *square(Padding *p, Expr *left, Expr *right, PadAxis axis) {
    const Fill *a = of(p, left, axis);
    const Fill *out = fill_binary(&p->fills, (Operation){.op = PAD_MUL, .type = left->type}, a, a);
    (void)right;
    return fill_map(&p->fills, out, map_square, NULL);
}

static const Fill *binary_fill(Padding *p, const Expr *expr, PadAxis axis) {
    Expr *left = expr->binary.left, *right = expr->binary.right;
    switch (expr->binary.op) {
    case OP_ADD: return both(p, PAD_ADD, left, right, axis);
    case OP_SUB: return both(p, PAD_SUB, left, right, axis);
    case OP_MUL:
        if (element_rows[expr->type].kind == ELEMENT_FLOAT && padding_same(p, left, right))
            return square(p, left, right, axis);
        return product(p, left, right, axis);
    case OP_DIV: return quotient(p, left, right, axis);
    case OP_MOD: return rest(p, left, right, axis);
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE: {
        const Fill *a = of(p, left, axis), *b = of(p, right, axis);
        Operation compare = {PAD_COMPARE, expr->binary.op, left->type};
        return fill_binary(&p->fills, compare, a, b);
    }
    case OP_AND:
    case OP_OR: break;
    }
    bool both_hold = expr->binary.op == OP_AND;
    const Fill *a = under(p, right, both_hold, left, axis),
               *b = under(p, left, both_hold, right, axis);
    return fill_binary(&p->fills, (Operation){.op = both_hold ? PAD_AND : PAD_OR, .type = E_BOOL},
                       a, b);
}

/* Where `position < end` does not hold, a tile has explicit zeros: an edge of its own. */
static bool live_edge(Padding *p, Expr *condition, PadAxis axis, Edge *edge) {
    Algebra *algebra = p->code->algebra;
    if (!p->proofs || condition->kind != X_BINARY) return false;
    Expr *left = condition->binary.left, *right = condition->binary.right;
    if (condition->binary.op == OP_AND)
        return live_edge(p, left, axis, edge) || live_edge(p, right, axis, edge);
    if (condition->binary.op != OP_LT || !padding_mentions(p, left, axis) ||
        padding_mentions(p, right, axis))
        return false;
    *edge = (Edge){.sub = algebra_poly(algebra, p->code->role, left),
                   .past = algebra_poly(algebra, p->code->role, right),
                   .from = condition->span};
    return edge->sub && edge->past && algebra_proves(algebra, CLAIM_NOT_NEGATIVE, edge->sub);
}

static const Fill *add_live(Padding *p, Expr *condition, PadAxis axis, const Fill *otherwise,
                            const Fill *fill) {
    Draft out;
    bool zero = otherwise->count == 0 && pad_is(otherwise->at[0].element, 0);
    if (fill->count > 0 || !zero || !live_edge(p, condition, axis, &out.edges[0])) return fill;
    out.count = 1, out.more = fill->more;
    out.at[0] = fill->at[0];
    out.at[1] = (Cell){otherwise->at[0].element, pad_none};
    return fill_made(&p->fills, &out);
}

static const Fill *select_fill(Padding *p, const Expr *expr, PadAxis axis) {
    Expr *condition = expr->select.condition;
    for (size_t i = 0; i < p->decided.count; i++)
        if (p->decided.items[i].condition == condition)
            return of(p, p->decided.items[i].truth ? expr->select.then : expr->select.otherwise,
                      axis);
    const Fill *decides = of(p, condition, axis),
               *then = under(p, condition, true, expr->select.then, axis),
               *otherwise = under(p, condition, false, expr->select.otherwise, axis);
    const Fill *fill = fill_select(&p->fills, decides, then, otherwise, expr->type);
    return add_live(p, condition, axis, otherwise, fill);
}

/* ---- reductions ------------------------------------------------------------------------------ */

typedef struct Reduced {
    ReduceOp op;
    double count; /* of elements */
} Reduced;

static Value map_reduced(Value value, bool padding, const void *data) {
    const Reduced *reduced = data;
    Value out = changed(value);
    if (reduced->op == REDUCE_SUM) {
        out = pad_sum(out, reduced->count, padding);
        if (padding || (value.marks & MARKS_NEUTRAL) != MARKS_NEUTRAL)
            out.marks &= (uint8_t) ~(MARK_MAX | MARK_MIN);
        if (padding && pad_is(out, 0)) out.marks = value.marks;
        return out;
    }
    /* the maximum of no elements is -inf; it is taken to be of some */
    bool max = reduced->op == REDUCE_MAX;
    if (!padding && max && out.lo < out.hi && isinf(out.lo)) out.lo = -0x1p63;
    if (!padding && !max && out.lo < out.hi && isinf(out.hi)) out.hi = 0x1p63;
    return out;
}

/* A tile that extends outside of the tensor along a reduced index has elements and neutral values,
 * or none of its elements is inside: then the first one is not. */
static const Fill *reduce_edges(Padding *p, const Fill *fill, int first, int count) {
    Algebra *algebra = p->code->algebra;
    Draft out;
    if (fill->count == 0) return fill;
    fill_draft(fill, &out);
    for (int k = first; k < first + count; k++)
        for (int i = 0; i < out.count; i++) {
            int atom = algebra_atom_index(algebra, k);
            Edge *edge = &out.edges[i];
            const Poly *factor, *rest;
            int64_t coef;
            if (!edge->sub || !poly_mentions(algebra, edge->sub, atom)) continue;
            bool linear = poly_split(algebra, edge->sub, atom, &factor, &rest) &&
                          poly_is_constant(factor, &coef) && coef > 0;
            edge->sub = linear ? rest : NULL;
            for (unsigned s = 0; s < 1u << out.count; s++)
                if (s >> i & 1)
                    out.at[s].element = pad_join(out.at[s].element, out.at[s & ~(1u << i)].element);
            if (linear && padding_prove_inside(p, edge)) draft_exclude(&out, i);
        }
    draft_merge_unknown(&out);
    return fill_made(&p->fills, &out);
}

static const Fill *reduced_fill(Padding *p, ReduceOp op, Expr *body, int first, int count,
                                PadAxis axis) {
    bool own = axis.index >= first && axis.index < first + count;
    const Fill *fill = of(p, body, own ? padding_no_axis : axis);
    Reduced reduced = {op, 1};
    for (int k = first; k < first + count; k++) {
        int64_t extent = p->space->items[k].extent;
        reduced.count *= extent > 0 ? (double)extent : 0x1p31;
    }
    fill = reduce_edges(p, fill, first, count);
    return fill_map(&p->fills, fill, map_reduced, &reduced);
}

/* Along the scan a position beyond the edge has the elements before it, or after it. */
static const Fill *scan_fill(Padding *p, const Expr *expr, PadAxis axis) {
    int along = expr->scan.along;
    if (axis.index != along) return reduced_fill(p, expr->scan.op, expr->scan.body, along, 1, axis);
    const Fill *fill = of(p, expr->scan.body, axis);
    Reduced reduced = {expr->scan.op, 0x1p31};
    Draft out;
    fill_draft(fill, &out);
    for (unsigned s = 0; s < 1u << out.count; s++) {
        Value *padding = &out.at[s].padding;
        if (!pad_exists(*padding)) continue;
        *padding = pad_join(*padding, out.at[0].element);
        padding->marks = 0;
    }
    return fill_map(&p->fills, fill_made(&p->fills, &out), map_reduced, &reduced);
}

/* ---- expressions ----------------------------------------------------------------------------- */

static const Fill *constant_fill(Padding *p, const Expr *expr) {
    bool real = element_rows[expr->type].kind == ELEMENT_FLOAT;
    bool is_unsigned = element_rows[expr->type].kind == ELEMENT_UNSIGNED;
    double number = real ? expr->constant.number
                    : is_unsigned
                        ? (double)((uint64_t)expr->constant.integer &
                                   UINT64_MAX >> (64 - 8 * element_rows[expr->type].bytes))
                        : (double)expr->constant.integer;
    Value value = pad_number(number);
    value.marks = pad_neutral(value, expr->type) & MARKS_NEUTRAL;
    return fill_of(&p->fills, value);
}

static const Fill *fill_by_kind(Padding *p, Expr *expr, PadAxis axis) {
    switch (expr->kind) {
    case X_CONST: return constant_fill(p, expr);
    case X_READ: return padding_of_read(p, expr->read, axis);
    case X_UNARY:
        return fill_map(&p->fills, of(p, expr->unary.operand, axis),
                        expr->unary.op == OP_NEG ? map_negation : map_not, NULL);
    case X_BINARY: return binary_fill(p, expr, axis);
    case X_SELECT: return select_fill(p, expr, axis);
    case X_CAST: {
        Mapped map = {.from = expr->cast->type, .to = expr->type};
        return fill_map(&p->fills, of(p, expr->cast, axis), map_cast, &map);
    }
    case X_CALL: return call_fill(p, expr, axis);
    case X_LOCAL: return local_fill(p, expr, axis);
    case X_REDUCE:
        return reduced_fill(p, expr->reduce.op, expr->reduce.body, expr->reduce.first,
                            expr->reduce.count, axis);
    case X_SCAN: return scan_fill(p, expr, axis);
    case X_POISON:
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_RANK:
    case X_INDEX: break;
    }
    return any_of(p, expr->type);
}

static const Fill *of(Padding *p, Expr *expr, PadAxis axis) {
    if (--p->work < 0) {
        Draft unknown = {.more = true, .at = {{pad_any(), pad_any()}}};
        return fill_made(&p->fills, &unknown);
    }
    return padding_stated(p, expr, fill_by_kind(p, expr, axis));
}

typedef struct Selects {
    Padding *p;
    PadAxis axis;
    VEC(Expr *) conditions;
} Selects;

static bool is_constant(const Expr *expr) {
    if (expr->kind == X_UNARY) return is_constant(expr->unary.operand);
    return expr->kind == X_CONST || (expr->kind == X_CAST && is_constant(expr->cast));
}

/* A mask of constants, which is combined with values */
static void find_select(Expr *expr, void *data) {
    Selects *selects = data;
    if (expr->kind != X_SELECT || selects->conditions.count >= CONDITIONS_MOST) return;
    if (!is_constant(expr->select.then) || !is_constant(expr->select.otherwise)) return;
    Expr *condition = expr->select.condition;
    if (!padding_mentions(selects->p, condition, selects->axis)) return;
    for (size_t i = 0; i < selects->conditions.count; i++)
        if (selects->conditions.items[i] == condition) return;
    vec_push(selects->p->arena, &selects->conditions, condition);
}

/* The last condition first, which encloses those before it */
static const Fill *in_cases(Padding *p, const Selects *selects, size_t count, Expr *expr) {
    if (count == 0) return of(p, expr, selects->axis);
    Algebra *algebra = p->code->algebra;
    Expr *condition = selects->conditions.items[count - 1];
    const Fill *decides = of(p, condition, selects->axis), *arms[2];
    for (int truth = 0; truth < 2; truth++) {
        PathMark mark = algebra_mark(algebra);
        if (p->proofs) algebra_assume(algebra, p->code->role, condition, truth);
        vec_push(p->arena, &p->decided, (struct Decided){condition, truth});
        arms[truth] = in_cases(p, selects, count - 1, expr);
        p->decided.count--;
        algebra_undo(algebra, mark);
    }
    const Fill *fill = fill_cases(&p->fills, decides, arms[1], arms[0], expr->type);
    return add_live(p, condition, selects->axis, arms[0], fill);
}

/* A condition on the position holds, or does not, for the whole value: `x + (c ? 0 : -inf)`. */
const Fill *padding_of(Padding *p, Expr *expr, PadAxis axis) {
    Selects selects = {.p = p, .axis = axis};
    if (p->proofs && expr->kind != X_SELECT) expr_visit(p->arena, expr, find_select, &selects);
    return in_cases(p, &selects, selects.conditions.count, expr);
}

static void find_self(Expr *expr, void *data) {
    Padding *p = ((void **)data)[0];
    int local = *(int *)((void **)data)[2];
    bool self = expr->kind == X_LOCAL
                    ? local >= 0 && expr->index == local
                    : expr->kind == X_READ && expr->read && is_target(p, expr->read);
    if (self) *(bool *)((void **)data)[1] = true;
}

bool padding_reads_self(Padding *p, Expr *expr) {
    const Row *row = code_row(p->code, p->at);
    int local = row->kind == ROW_SET ? row->local : -1;
    bool found = false;
    expr_visit(p->arena, expr, find_self, (void *[]){p, &found, &local});
    return found;
}
