/* The rule of padding over Code: what each dimension of each tile and stage holds beyond the edges of tensors, through all roles until nothing
 * changes; refuses reductions, and loops that reduce, of what belongs to no element. */
#include "check/padding.h"

#include <string.h>

#define NODES_MOST 100000 /* of expressions that one statement is followed through */

/* ---- states: a TileFill for each tile of the role ------------------------------------------------------------------------ */

static size_t tiles_of(const Flow *flow) { return flow->code->role->tiles.count; }

static void *start(Flow *flow) { return NEW_ARRAY(flow->arena, TileFill, tiles_of(flow) + 1); }

static void *copy(Flow *flow, const void *state) {
    void *made = start(flow);
    memcpy(made, state, tiles_of(flow) * sizeof(TileFill));
    return made;
}

/* The arm of an IF knows what its condition says. */
static void refine(Flow *flow, int region, bool truth, TileFill *tiles) {
    Padding *p = flow->data;
    PathMark mark = values_assume(flow->arena, flow->code, flow->code->regions.items[region].begin);
    values_assume_if(flow->arena, flow->code, region, truth);
    for (size_t t = 0; t < tiles_of(flow); t++)
        for (int d = 0; d < flow->code->role->tiles.items[t].rank; d++)
            padding_refine(p, &tiles[t].dims[d], flow->code->role->tiles.items[t].extents[d]);
    algebra_undo(flow->code->algebra, mark);
}

static bool join(Flow *flow, void *to, const void *from, int at, int source) {
    const Padding *p = flow->data;
    int region = flow->code->rows.items[at].region;
    const Region *row = &flow->code->regions.items[region];
    TileFill *tiles = to, *others = copy(flow, from);
    bool changed = false;
    if (p->proofs && row->kind == REGION_IF && at == row->end && source == at) {
        refine(flow, region, true, tiles);
        refine(flow, region, false, others);
    }
    for (size_t t = 0; t < tiles_of(flow); t++)
        for (int d = 0; d < flow->code->role->tiles.items[t].rank; d++) {
            const Fill before = tiles[t].dims[d];
            fill_add(&tiles[t].dims[d], &others[t].dims[d]);
            changed |= !fill_same(&before, &tiles[t].dims[d]);
        }
    return changed;
}

/* ---- what is refused ----------------------------------------------------------------------------------------------------- */

typedef struct Mask { /* a condition of a select that speaks of the axis */
    Padding *p;
    PadAxis axis;
    Expr *found;
} Mask;

static void find_mask(Expr *expr, void *data) {
    Mask *mask = data;
    if (expr->kind != X_SELECT || mask->found) return;
    if (padding_mentions(mask->p, expr->select.condition, mask->axis)) mask->found = expr->select.condition;
}

static bool was_reported(Padding *p, Span span) {
    for (size_t i = 0; i < p->reported.count; i++)
        if (p->reported.items[i].lo == span.lo && p->reported.items[i].hi == span.hi) return true;
    vec_push(p->arena, &p->reported, span);
    return false;
}

static bool all_known(const Fill *fill) {
    for (int i = 0; i < fill->count; i++)
        if (!fill->edges[i].sub) return false;
    return !fill->more;
}

/* `what` takes padding: "`sum[x]`", "the loop over `c`" */
static void refuse(Padding *p, Expr *value, Span span, PadAxis axis, const char *what, const char *neutral, const Fill *fill) {
    Diags *diags = p->tiles->diags;
    Mask mask = {p, axis, NULL};
    const char *name = axis.index >= 0 ? p->space->items[axis.index].name : p->code->role->locals.items[axis.local].name;
    p->refused++;
    if (!p->report || was_reported(p, span)) return;
    expr_visit(p->arena, value, find_mask, &mask);
    bool unknown = mask.found && !all_known(fill);
    Diag *diag = unknown ? diag_at(diags, P0236, span, "cannot show that %s takes no padding for elements", what)
                         : diag_at(diags, P0219, span, "%s takes padding for elements", what);
    diag_primary(diags, diag,
                 !(fill->pads & (PAD_ONE | PAD_DIRTY)) ? "zeros beyond the edge of a tensor are reduced"
                                           : "what was computed from zeros beyond the edge of a tensor is reduced");
    for (int i = 0; i < fill->count && i < 2; i++)
        diag_label(diags, diag, fill->edges[i].from, "may reach beyond the edge along `%s`, and is filled with zeros", name);
    if (mask.found && mask.found->span.hi) diag_label(diags, diag, mask.found->span, "holds beyond the edge too, as far as is known");
    if (unknown)
        diag_help(diags, diag, "loop over the same `range` in both roles, and compare the position in the tensor with its extent");
    else diag_help(diags, diag, "select it away: `.. + %s < extent ? .. : %s`", name, neutral);
}

static void check_reduction(Padding *p, Expr *expr) {
    static const char *const names[] = {[REDUCE_SUM] = "sum", [REDUCE_MAX] = "max", [REDUCE_MIN] = "min"};
    static const char *const neutral[] = {[REDUCE_SUM] = "0", [REDUCE_MAX] = "-inf", [REDUCE_MIN] = "inf"};
    for (int i = expr->reduce.first; i < expr->reduce.first + expr->reduce.count; i++) {
        PadAxis axis = {i, algebra_atom_index(p->code->algebra, i), -1};
        Fill fill = padding_of(p, expr->reduce.body, axis);
        bool bad = expr->reduce.op == REDUCE_SUM ? fill.pads & (PAD_ONE | PAD_DIRTY) : fill_padded(&fill);
        const char *what = arena_printf(p->arena, "`%s[%s]`", names[expr->reduce.op], p->space->items[i].name);
        if (bad) refuse(p, expr->reduce.body, expr->span, axis, what, neutral[expr->reduce.op], &fill);
    }
}

static void visit_reduction(Expr *expr, void *data) {
    if (expr->kind == X_REDUCE) check_reduction(data, expr);
}

/* ---- loops that reduce --------------------------------------------------------------------------------------------------- */

/* Is the value a * self + b? Then zeros in b do no harm; false where a may hold padding, or self stands elsewhere. */
static bool adds_to_self(Padding *p, Expr *expr, PadAxis axis) {
    if (!padding_reads_self(p, expr)) return true;
    switch (expr->kind) {
    case X_READ: case X_LOCAL: return true;
    case X_CAST: return adds_to_self(p, expr->cast, axis);
    case X_UNARY: return expr->unary.op == OP_NEG && adds_to_self(p, expr->unary.operand, axis);
    case X_BINARY: {
        Expr *left = expr->binary.left, *right = expr->binary.right;
        bool in_left = padding_reads_self(p, left), in_right = padding_reads_self(p, right);
        if (expr->binary.op == OP_ADD) return adds_to_self(p, left, axis) && adds_to_self(p, right, axis);
        if (expr->binary.op == OP_SUB) return !in_right && adds_to_self(p, left, axis);
        if (expr->binary.op != OP_MUL || (in_left && in_right)) return false;
        Fill factor = padding_of(p, in_left ? right : left, axis);
        return !fill_padded(&factor) && adds_to_self(p, in_left ? left : right, axis);
    }
    case X_POISON: case X_CONST: case X_SYMBOL: case X_PARAM: case X_AXIS: case X_RANK: case X_INDEX: case X_SELECT: case X_CALL:
    case X_REDUCE: break;
    }
    return false;
}

static bool target_mentions(Padding *p, PadAxis axis) {
    for (int d = 0; p->target && d < p->target->rank; d++)
        if (padding_mentions(p, p->target->subs[d], axis)) return true;
    return false;
}

static void check_loop(Padding *p, Expr *value, AssignOp op, PadAxis axis) {
    bool self = padding_reads_self(p, value);
    if (target_mentions(p, axis) || (op == ASSIGN_SET && !self)) return;
    Fill fill = padding_of(p, value, axis);
    bool adds = op == ASSIGN_ADD || op == ASSIGN_SUB;
    if (op == ASSIGN_SET || self) adds = (op == ASSIGN_SET || adds) && adds_to_self(p, value, axis);
    if (adds ? !(fill.pads & (PAD_ONE | PAD_DIRTY)) : !fill_padded(&fill)) return;
    const char *name = p->code->role->locals.items[axis.local].name;
    const char *what = arena_printf(p->arena, "the loop over `%s`", name);
    refuse(p, value, value->span, axis, what, adds ? "0" : "a value that changes nothing", &fill);
}

/* Does what is written begin anew in each iteration of the region? */
static bool opened_inside(const Padding *p, const Region *region) {
    const Access *target = p->target;
    ObjectKind object = !target ? OBJECT_LOCAL : target->space == SPACE_STAGE ? OBJECT_HANDLE : OBJECT_TILE;
    if (target && target->space == SPACE_GLOBAL) return false;
    for (int at = region->begin; at <= region->end; at++) {
        const Row *row = &p->code->rows.items[at];
        if (row->kind == ROW_OPEN && row->object == object && row->index == (target ? target->object : p->target_local)) return true;
    }
    return false;
}

static void check_loops(Padding *p, Expr *value, AssignOp op) {
    const FlowCode *code = p->code;
    for (int r = code->rows.items[p->at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        if (region->kind != REGION_FOR || region->var < 0 || opened_inside(p, region)) continue;
        check_loop(p, value, op, (PadAxis){-1, algebra_atom_local(code->algebra, code->role, region->var), region->var});
    }
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

static bool covers(const Access *target) {
    for (int d = 0; d < target->rank; d++)
        if (target->subs[d]->kind != X_INDEX) return false;
    return target->space == SPACE_REGISTER || target->space == SPACE_SHARED;
}

static bool mentions_indexes(Padding *p, const Poly *poly) {
    for (int i = 0; i < p->space->count; i++)
        if (poly_mentions(p->code->algebra, poly, algebra_atom_index(p->code->algebra, i))) return true;
    return false;
}

/* Sources in terms of the place in the tile: index `i` is the place less the rest of the subscript. */
static Fill by_place(Padding *p, Fill fill, int index, Expr *sub) {
    Algebra *algebra = p->code->algebra;
    int atom = algebra_atom_index(algebra, index);
    const Poly *factor, *rest, *whole = algebra_poly(algebra, p->code->role, sub), *place = NULL;
    int64_t coef;
    if (poly_split(algebra, whole, atom, &factor, &rest) && poly_is_constant(factor, &coef) && coef == 1)
        place = poly_sum(algebra, poly_atom(algebra, padding_place(p)), rest, -1);
    for (int i = 0; i < fill.count; i++) {
        Edge *edge = &fill.edges[i];
        if (edge->sub && place) edge->sub = poly_replace(algebra, edge->sub, atom, place);
        else edge->sub = NULL;
        if (edge->sub && mentions_indexes(p, edge->sub)) edge->sub = NULL;
    }
    return fill;
}

static Fill target_dim(Padding *p, const Tile *tile, int d) {
    Fill fill = {0};
    for (int i = 0; i < tile->space.bound; i++) {
        if (!(tile->target.subs[d]->indexes >> i & 1)) continue;
        Fill along = padding_of(p, tile->value, (PadAxis){i, algebra_atom_index(p->code->algebra, i), -1});
        along = by_place(p, along, i, tile->target.subs[d]);
        fill_add(&fill, &along);
    }
    if (!fill.pads) fill.pads = PAD_ELEMENT;
    return fill;
}

static Fill updated(const Fill *old, const Fill *value, AssignOp op) {
    Fill out = *value;
    if (op == ASSIGN_SET) return out;
    fill_add(&out, old);
    bool sum = op == ASSIGN_ADD || op == ASSIGN_SUB;
    bool zeros = (old->pads | value->pads) & PAD_ZERO, elements = (old->pads | value->pads) & (PAD_ELEMENT | PAD_ONE);
    if (sum && zeros && elements) out.pads |= PAD_DIRTY;
    if (!sum && value->pads & PAD_ZERO && op == ASSIGN_DIV) out.pads |= PAD_DIRTY;
    return out;
}

static void write_tile(Padding *p, const Tile *tile, TileFill *state) {
    const Access *target = &tile->target;
    TileFill next = *state;
    for (int d = 0; d < target->rank; d++) {
        Fill value = target_dim(p, tile, d);
        Fill fill = updated(&state->dims[d], &value, tile->op);
        if (!covers(target)) fill_add(&fill, &state->dims[d]);
        next.dims[d] = fill;
    }
    for (int d = 0; d < target->rank && target->space == SPACE_STAGE; d++)
        p->changed |= !fill_same(&next.dims[d], &state->dims[d]);
    *state = next;
}

static TileFill *target_of(Padding *p, const Access *target, TileFill *tiles) {
    if (target->space == SPACE_SHARED || target->space == SPACE_REGISTER) return &tiles[target->object];
    if (target->space != SPACE_STAGE) return NULL;
    int pipe = p->code->role->handles.items[target->object].pipe;
    return pipe < 0 ? NULL : &p->fields[pipe][target->field];
}

static void tile_row(Padding *p, const Row *row, TileFill *tiles) {
    const Site *site = tiles_site(p->tiles, row->stmt);
    if (!site || site->poisoned || !row->tile->value) return;
    p->space = &row->tile->space;
    p->target = &row->tile->target;
    p->code->algebra->space = p->space;
    if (row->tile->space.count > row->tile->space.bound) expr_visit(p->arena, row->tile->value, visit_reduction, p);
    check_loops(p, row->tile->value, row->tile->op);
    p->target = NULL; /* from here on the old value is what the tile holds */
    TileFill *state = target_of(p, &row->tile->target, tiles);
    if (state) write_tile(p, row->tile, state);
}

static void set_row(Padding *p, const Row *row) {
    static const IndexSpace none = {0};
    if (!row->value || tiles_reads(p->tiles, p->code->role, row->value, &(Accesses){0})) return;
    p->space = row->space ? row->space : &none;
    p->code->algebra->space = p->space;
    p->target_local = row->local;
    if (row->space) expr_visit(p->arena, row->value, visit_reduction, p);
    check_loops(p, row->value, ASSIGN_SET);
}

/* What speaks of this iteration says nothing of the next one. */
static void forget(Padding *p, TileFill *tiles, const Region *region) {
    const FlowCode *code = p->code;
    for (size_t t = 0; t < code->role->tiles.count; t++)
        for (int d = 0; d < PROG_MAX_RANK; d++)
            for (int i = 0; i < tiles[t].dims[d].count; i++) {
                Edge *edge = &tiles[t].dims[d].edges[i];
                bool gone = false;
                for (size_t v = 0; edge->sub && v < code->role->locals.count; v++) {
                    bool own = region->kind == REGION_FOR ? (int)v == region->var : code->role->locals.items[v].kind == LOCAL_AXIS;
                    gone |= own && poly_mentions(code->algebra, edge->sub, algebra_atom_local(code->algebra, code->role, (int)v));
                }
                if (gone) edge->sub = NULL;
            }
}

static void step(Flow *flow, int at, void *state) {
    Padding *p = flow->data;
    const Row *row = &flow->code->rows.items[at];
    if (row->kind == ROW_OPEN && row->object == OBJECT_TILE) ((TileFill *)state)[row->index] = (TileFill){0};
    if (row->kind == ROW_NEXT) forget(p, state, &flow->code->regions.items[row->region]);
    if (row->kind != ROW_TILE && row->kind != ROW_SET) return;
    bool report = p->report;
    p->at = at, p->state = state, p->target = NULL, p->target_local = -1, p->work = NODES_MOST;
    p->report = report && flow->last;
    PathMark mark = {0};
    if (p->proofs) mark = values_assume(flow->arena, flow->code, at);
    const IndexSpace *space = flow->code->algebra->space;
    if (row->kind == ROW_TILE) tile_row(p, row, state);
    else set_row(p, row);
    flow->code->algebra->space = space;
    if (p->proofs) algebra_undo(flow->code->algebra, mark);
    p->report = report;
}

static const Rule rule = {.name = "padding", .start = start, .copy = copy, .join = join, .step = step};

/* ---- all ----------------------------------------------------------------------------------------------------------------- */

static bool reduces(const FlowCode *code) {
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind == ROW_SET && row->space) return true;
        if (row->kind == ROW_TILE && row->tile && row->tile->space.count > row->tile->space.bound) return true;
        if (row->kind == ROW_TILE && code->regions.items[row->region].depth > 0) return true;
    }
    return false;
}

static void round_of_roles(Padding *p) {
    const Prog *prog = p->tiles->prog;
    for (size_t r = 0; r < prog->roles.count; r++) {
        p->code = prog->roles.items[r].code;
        if (!solve(p->arena, p->code, &rule, p)) p->refused++;
    }
}

/* Until the stages hold what they hold; how much is refused then */
static int settle(Padding *p) {
    const Prog *prog = p->tiles->prog;
    p->fields = NEW_ARRAY(p->arena, TileFill *, prog->pipes.count + 1);
    for (size_t i = 0; i < prog->pipes.count; i++)
        p->fields[i] = NEW_ARRAY(p->arena, TileFill, prog->pipes.items[i].fields.count + 1);
    do {
        p->changed = false;
        p->refused = 0;
        round_of_roles(p);
    } while (p->changed);
    return p->refused;
}

void tiles_padding(Tiles *tiles) {
    Padding p = {.tiles = tiles, .arena = tiles->arena};
    bool any = false;
    for (size_t r = 0; r < tiles->prog->roles.count; r++) any |= reduces(tiles->prog->roles.items[r].code);
    if (!any || settle(&p) == 0) return;
    p.proofs = true;
    if (settle(&p) == 0) return;
    p.report = true;
    round_of_roles(&p);
}
