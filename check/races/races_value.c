/* Dependence of a place's value for one element on axes of the grid. Followed through variables,
 * tiles and stages, and through the conditions of their writes. If the target moves with an axis,
 * `min(t*T, N - T) + i`, a value that depends on the axes and on that index only in the same sum
 * moves with it: the same values are written again. So dimensions of tiles and stages that the
 * index traverses are followed back to their writes. If tiles write one element in different
 * iterations of a loop, or by different instances, the value must not depend on these either. */
#include "check/races/races.h"
#include "flow/code.h"

#define NODES_MOST 20000 /* most nodes to follow: shared ones count once */

typedef struct Move { /* a subscript of the target that depends on an axis */
    const Poly *base; /* NULL: unknown */
    bool walks;       /* an index is added to it */
} Move;

typedef struct Depends {
    Arena *arena;
    const Prog *prog;
    Algebra *algebra; /* of all roles */
    const Role *role;
    uint32_t axes;
    int tensor; /* that is written: what is read from it may be what another tile wrote */
    VEC(Move) moves;
    /* tiles may write one element in different iterations of these loops of the writer, and by
     * instances of different rank */
    const Role *writer; /* the role of the place; `role` is the one whose rows are followed */
    VEC(const Region *) loops;
    const Role *ranks; /* the writer, or NULL: by instances of one rank */
    unsigned moving;   /* indexes of the statement that traverse moving dimensions */
    /* by pipe, by role: dimensions that such an index traverses */
    unsigned **field_dims, **tile_dims;
    bool **fields, **tiles, **locals; /* by pipe, by role, by role */
    bool **rows;                      /* by role: an axis decides whether the row is executed */
    int **marked; /* by role, by row: so many rows that end with this one are marked */
    /* searches for moving dimensions, and ignores dependences */
    bool tracing;
    bool found, changed;
    int left;
} Depends;

static bool mentions_axes(const Depends *d, const Poly *poly) {
    for (size_t a = 0; a < d->prog->axes.count; a++)
        if (d->axes >> a & 1 &&
            poly_mentions(d->algebra, poly, algebra_atom_axis(d->algebra, (int)a)))
            return true;
    return false;
}

static bool mentions_moving(const Depends *d, const Poly *poly) {
    for (int i = 0; i < PROG_MAX_INDEXES; i++)
        if (d->moving >> i & 1 &&
            poly_mentions(d->algebra, poly, algebra_atom_index(d->algebra, i)))
            return true;
    for (size_t i = 0; i < d->loops.count; i++)
        if (d->loops.items[i]->var >= 0 &&
            poly_mentions(d->algebra, poly,
                          algebra_atom_local(d->algebra, d->writer, d->loops.items[i]->var)))
            return true;
    if (d->ranks && poly_mentions(d->algebra, poly, algebra_atom_rank(d->algebra, d->ranks)))
        return true;
    return mentions_axes(d, poly);
}

/* True if it is the target's position, except for terms that are equal in all tiles */
static bool is_place(const Depends *d, const Poly *poly, const Move *move) {
    const Poly *more = move->base ? poly_sum(d->algebra, poly, move->base, -1) : NULL, *rest;
    int64_t coef;
    if (!more) return false;
    if (!move->walks) return !mentions_moving(d, more);
    for (int i = 0; i < PROG_MAX_INDEXES; i++) {
        if (!(d->moving >> i & 1) ||
            !poly_linear_in(d->algebra, more, algebra_atom_index(d->algebra, i), &coef, &rest))
            continue;
        return coef == 1 && !mentions_moving(d, rest);
    }
    return false;
}

static bool moves_along(Depends *d, Expr *expr) {
    if (!d->moves.count || expr->type == E_F32) return false;
    const Poly *poly = algebra_residue(d->algebra, d->role, expr);
    for (size_t i = 0; i < d->moves.count; i++)
        if (poly && is_place(d, poly, &d->moves.items[i])) return true;
    return false;
}

static void follow(Depends *d, Expr *expr);

static unsigned *dims_of(const Depends *d, const Access *access) {
    if (access->space == SPACE_STAGE)
        return &d->field_dims[d->role->handles.items[access->object].pipe][access->field];
    if (access->space != SPACE_SHARED && access->space != SPACE_REGISTER) return NULL;
    return &d->tile_dims[d->role - d->prog->roles.items][access->object];
}

static bool walked(const Depends *d, const Expr *sub) {
    return sub->kind == X_INDEX && d->moving >> sub->index & 1;
}

/* A moving dimension must be read only by a moving index. */
static void follow_subs(Depends *d, const Access *read) {
    unsigned *dims = read->object >= 0 ? dims_of(d, read) : NULL;
    for (int i = 0; i < read->rank; i++) {
        if (!dims || !walked(d, read->subs[i])) {
            d->found |= dims && (*dims >> i & 1);
            follow(d, read->subs[i]);
            continue;
        }
        d->changed |= !(*dims >> i & 1);
        *dims |= 1u << i;
    }
    follow(d, read->element);
}

static void follow_read(Depends *d, const Access *read) {
    size_t role = (size_t)(d->role - d->prog->roles.items);
    follow_subs(d, read);
    if (read->object < 0) return;
    d->found |= read->space == SPACE_GLOBAL && read->object == d->tensor;
    if (read->space == SPACE_STAGE)
        d->found |= d->fields[d->role->handles.items[read->object].pipe][read->field];
    if (read->space == SPACE_SHARED || read->space == SPACE_REGISTER)
        d->found |= d->tiles[role][read->object];
}

static void follow_local(Depends *d, int index) {
    const Local *local = &d->role->locals.items[index];
    d->found |= d->locals[d->role - d->prog->roles.items][index] ||
                (local->kind == LOCAL_AXIS && d->axes >> local->axis & 1);
}

static void follow(Depends *d, Expr *expr) {
    if (!expr || (d->found && !d->tracing) || --d->left < 0 || moves_along(d, expr)) return;
    if (expr->kind == X_LOCAL && valid_index(expr->index, d->role->locals.count))
        follow_local(d, expr->index);
    if (expr->kind == X_READ && expr->read) follow_read(d, expr->read);
    if (expr->kind == X_INDEX) d->found |= d->moving >> expr->index & 1;
    if (expr->kind == X_RANK) d->found |= d->role->in_turn || d->role == d->ranks;
    if (expr->kind == X_SCAN) /* of elements at other positions of the index */
        d->found |= d->moving >> expr->scan.along & 1;
    ExprParts parts = expr_parts(expr);
    for (int i = 0; i < parts.count; i++) follow(d, parts.items[i]);
}

static void note(Depends *d, bool *what) {
    d->changed |= d->found && !*what;
    *what |= d->found;
}

static void follow_root(Expr *expr, void *data) { follow(data, expr); }

/* What an earlier range with this end marked is not visited again. */
static void note_rows(Depends *d, size_t role, int from, int to) {
    if (!d->found || from > to) return;
    int *marked = &d->marked[role][to];
    for (; *marked <= to - from; ++*marked) note(d, &d->rows[role][to - *marked]);
}

/* Marks rows that a leave under such a condition skips, and those of later iterations of a loop
 * that it ends. The loop over the grid has no later iteration in the tile. */
static void note_leave(Depends *d, size_t role, const FlowCode *code, int at) {
    const Row *row = &code->rows.items[at];
    const Region *target = &code->regions.items[row->target];
    if (target->kind == REGION_GRID || target->kind == REGION_ROLE) return;
    bool loop = region_loops(target) && !row->again;
    note_rows(d, role, loop ? target->begin + 1 : at, row->again ? target->next : target->end - 1);
}

static void note_pipe(Depends *d, int handle) {
    if (!valid_index(handle, d->role->handles.count) || d->role->handles.items[handle].pipe < 0)
        return;
    int pipe = d->role->handles.items[handle].pipe;
    for (size_t f = 0; f < d->prog->pipes.items[pipe].fields.count; f++)
        note(d, &d->fields[pipe][f]);
}

static void note_target(Depends *d, size_t role, const Access *target) {
    if (target->object < 0) return;
    if (target->space == SPACE_STAGE)
        note(d, &d->fields[d->role->handles.items[target->object].pipe][target->field]);
    if (target->space == SPACE_SHARED || target->space == SPACE_REGISTER)
        note(d, &d->tiles[role][target->object]);
}

/* The indexes that traverse moving dimensions of the target. In one of these the index is alone,
 * or the position is unknown. */
static void find_moving(Depends *d, const Access *target) {
    const unsigned *dims = target->object >= 0 ? dims_of(d, target) : NULL;
    for (int i = 0; dims && i < target->rank; i++) {
        if (!(*dims >> i & 1)) continue;
        if (target->subs[i]->kind == X_INDEX)
            d->moving |= 1u << target->subs[i]->index;
        else
            d->found = true;
    }
}

static void follow_tile(Depends *d, size_t role, const Tile *tile) {
    find_moving(d, &tile->target);
    follow(d, tile->value);
    for (int i = 0; i < tile->target.rank; i++)
        if (!walked(d, tile->target.subs[i])) follow(d, tile->target.subs[i]);
    follow(d, tile->target.element);
    note_target(d, role, &tile->target);
    d->moving = 0;
}

static void follow_row(Depends *d, const FlowCode *code, int at) {
    const Row *row = &code->rows.items[at];
    const Region *region = &code->regions.items[row->region];
    size_t role = (size_t)(d->role - d->prog->roles.items);
    bool begins = row->kind == ROW_IF || (row->kind == ROW_LOOP && region->kind == REGION_FOR);
    d->found = false;
    if (row->kind != ROW_TILE) row_exprs(code, row, follow_root, d);
    if (begins) note_rows(d, role, at + 1, region->end - 1);
    d->found |= d->rows[role][at];
    bool sets = d->found && row_may_set(row);
    arena_count(d->arena, sets ? 1 + d->role->locals.count / 2 : 1);
    for (size_t i = 0; i < d->role->locals.count && sets; i++)
        if (d->role->locals.items[i].kind != LOCAL_AXIS && row_sets(code, row, (int)i))
            note(d, &d->locals[role][i]);
    if (row->kind == ROW_TILE) follow_tile(d, role, row->tile);
    if (row->kind == ROW_LEAVE) note_leave(d, role, code, at);
    /* which stage it is */
    if (row_gains(row->kind)) note_pipe(d, row->handle);
}

static void find_read(Expr *expr, void *data) {
    const Depends *d = ((void **)data)[0];
    bool variable = expr->kind == X_LOCAL && d->role->locals.items[expr->index].kind == LOCAL_VAR;
    *(bool *)((void **)data)[1] |= expr->kind == X_READ || variable;
}

/* The target's subscripts that depend on an axis, or on what else the element does not determine.
 * False: they are not sums of a base and an index. */
static bool find_moves(Depends *d, const Place *place) {
    const IndexSpace *space = &place->tile->space;
    for (int dim = 0; dim < place->access->rank; dim++) {
        const Affine *affine = &place->access->affine[dim];
        bool reads = false;
        unsigned indexes = 0;
        if (!affine->is) return false;
        const Poly *base = algebra_residue(d->algebra, place->role, affine->base);
        expr_visit(d->arena, affine->base, find_read, (void *[]){d, &reads});
        if (base && !reads && !poly_changes(d->algebra, base) && !mentions_moving(d, base))
            continue;
        for (int i = 0; i < space->count; i++)
            if (affine->coef[i]) indexes |= 1u << i;
        bool one = (indexes & (indexes - 1)) == 0 &&
                   !(indexes && affine->coef[__builtin_ctz(indexes)] != 1);
        Move move = {base && !reads && one ? base : NULL, indexes != 0};
        vec_push(d->arena, &d->moves, move);
        d->moving |= indexes;
    }
    return true;
}

static void flags_new(Depends *d) {
    const Prog *prog = d->prog;
    d->fields = NEW_ARRAY(d->arena, bool *, prog->pipes.count + 1);
    d->tiles = NEW_ARRAY(d->arena, bool *, prog->roles.count + 1);
    d->locals = NEW_ARRAY(d->arena, bool *, prog->roles.count + 1);
    d->rows = NEW_ARRAY(d->arena, bool *, prog->roles.count + 1);
    d->marked = NEW_ARRAY(d->arena, int *, prog->roles.count + 1);
    for (size_t i = 0; i < prog->pipes.count; i++)
        d->fields[i] = NEW_ARRAY(d->arena, bool, prog->pipes.items[i].fields.count + 1);
    for (size_t i = 0; i < prog->roles.count; i++) {
        d->tiles[i] = NEW_ARRAY(d->arena, bool, prog->roles.items[i].tiles.count + 1);
        d->locals[i] = NEW_ARRAY(d->arena, bool, prog->roles.items[i].locals.count + 1);
        d->rows[i] = NEW_ARRAY(d->arena, bool, prog->roles.items[i].code->rows.count + 1);
        d->marked[i] = NEW_ARRAY(d->arena, int, prog->roles.items[i].code->rows.count + 1);
    }
}

static void dims_new(Depends *d) {
    const Prog *prog = d->prog;
    d->field_dims = NEW_ARRAY(d->arena, unsigned *, prog->pipes.count + 1);
    d->tile_dims = NEW_ARRAY(d->arena, unsigned *, prog->roles.count + 1);
    for (size_t i = 0; i < prog->pipes.count; i++)
        d->field_dims[i] = NEW_ARRAY(d->arena, unsigned, prog->pipes.items[i].fields.count + 1);
    for (size_t i = 0; i < prog->roles.count; i++)
        d->tile_dims[i] = NEW_ARRAY(d->arena, unsigned, prog->roles.items[i].tiles.count + 1);
}

/* True if the loop contains the declaration of this object */
static bool declares(const FlowCode *code, const Region *loop, ObjectKind object, int index) {
    arena_count(code->algebra->arena, (uint64_t)(loop->end - loop->begin) / 4);
    for (int at = loop->begin + 1; at < loop->end; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind == ROW_OPEN && row->object == object && row->index == index) return true;
    }
    return false;
}

/* Marks what differs between iterations of a loop of the place's role: its variable, its stages,
 * and what an earlier iteration may have written. */
static void vary_with(Depends *d, const Place *place, const Region *loop) {
    const Role *role = place->role;
    size_t number = (size_t)(role - d->prog->roles.items);
    d->role = role, d->found = true;
    if (loop->var >= 0) note(d, &d->locals[number][loop->var]);
    for (int at = loop->begin + 1; at < loop->end; at++) {
        const Row *row = &role->code->rows.items[at];
        arena_count(d->arena, row_may_set(row) ? 1 + role->locals.count : 1);
        for (size_t i = 0; i < role->locals.count && row_may_set(row); i++)
            if (role->locals.items[i].kind == LOCAL_VAR && row_sets(role->code, row, (int)i) &&
                !declares(role->code, loop, OBJECT_LOCAL, (int)i))
                note(d, &d->locals[number][i]);
        if (row->kind == ROW_TILE && row->tile->target.space != SPACE_STAGE &&
            !declares(role->code, loop, OBJECT_TILE, row->tile->target.object))
            note_target(d, number, &row->tile->target);
        if (row_gains(row->kind)) note_pipe(d, row->handle);
    }
}

/* Iterates to the fixed point; then `found` is the result for the place's value */
static void settle(Depends *d, const Place *place, unsigned moving) {
    flags_new(d);
    do {
        d->changed = false;
        for (size_t i = 0; i < d->loops.count; i++) vary_with(d, place, d->loops.items[i]);
        for (size_t i = 0; i < d->prog->roles.count; i++) {
            d->role = &d->prog->roles.items[i];
            for (size_t at = 0; at < d->role->code->rows.count; at++)
                follow_row(d, d->role->code, (int)at);
        }
        d->role = place->role, d->found = false, d->moving = moving;
        follow(d, place->tile->value);
        d->moving = 0;
    } while (d->changed);
}

/* The loops and ranks that the element does not determine */
static void find_varying(Depends *d, const Place *place) {
    const FlowCode *code = place->role->code;
    for (int r = code->rows.items[place->row].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *loop = &code->regions.items[r];
        if (loop->kind != REGION_FOR) continue;
        int atom = loop->var < 0 ? -1 : algebra_atom_local(d->algebra, place->role, loop->var);
        if (atom < 0 || !place_determines(d->prog, d->algebra, place, atom))
            vec_push(d->arena, &d->loops, loop);
    }
    if (place->role->instances > 1 && !place->role->in_turn &&
        !place_determines(d->prog, d->algebra, place, algebra_atom_rank(d->algebra, place->role)))
        d->ranks = place->role;
}

/* Sets `found` for the place's value, with the loops and ranks so far; false: where it moves is not
 * known. */
static bool settle_place(Depends *d, const Place *place) {
    d->moves.count = 0, d->moving = 0;
    d->role = place->role;
    if (!find_moves(d, place)) return false;
    const unsigned moving = d->moving;
    d->moving = 0;
    dims_new(d);
    if (moving) {
        d->tracing = true;
        settle(d, place, moving);
        d->tracing = false;
    }
    settle(d, place, moving);
    return true;
}

int race_value_differs(Arena *arena, const Prog *prog, Algebra *algebra, const Place *place,
                       uint32_t axes) {
    Depends d = {.arena = arena,
                 .prog = prog,
                 .algebra = algebra,
                 .role = place->role,
                 .writer = place->role,
                 .axes = axes,
                 .tensor = place->access->object,
                 .left = NODES_MOST};
    if (!settle_place(&d, place)) return -1;
    if (d.found || d.left < 0) return d.found ? 1 : -1;
    find_varying(&d, place);
    if (d.loops.count == 0 && d.ranks == NULL) return 0;
    return !settle_place(&d, place) || d.found || d.left < 0 ? -1 : 0;
}
