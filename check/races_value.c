/* Does what a place writes differ along an axis of the grid? Followed through variables, tiles and stages, and through the conditions that
 * they are written under. Where the target moves unevenly, `min(t*T, N - T)`, what depends on the axis in that very form alone moves with
 * it: the same values are written again. */
#include "check/races.h"
#include "flow/code.h"

#define NODES_MOST 20000 /* that are followed: what shares them may hold many more */

typedef struct Depends {
    Arena *arena;
    const Prog *prog;
    Algebra *algebra; /* of all roles */
    const Role *role;
    int axis;
    VEC(const Poly *) moves;          /* forms of the target's subscripts that mention the axis */
    bool **fields, **tiles, **locals; /* by pipe, by role, by role */
    bool **rows;                      /* by role: the axis decides whether the row is executed */
    bool found, changed;
    int left;
} Depends;

static bool moves_along(Depends *d, Expr *expr) {
    if (!d->moves.count || expr->type == E_F32 || expr->indexes) return false;
    const Poly *poly = algebra_poly(d->algebra, d->role, expr);
    for (size_t i = 0; i < d->moves.count; i++)
        if (poly && poly_equal(poly, d->moves.items[i])) return true;
    return false;
}

static void follow(Depends *d, Expr *expr);

static void follow_read(Depends *d, const Access *read) {
    size_t role = (size_t)(d->role - d->prog->roles.items);
    for (int i = 0; i < read->rank; i++) follow(d, read->subs[i]);
    follow(d, read->element);
    if (read->object < 0) return;
    if (read->space == SPACE_STAGE) d->found |= d->fields[d->role->handles.items[read->object].pipe][read->field];
    if (read->space == SPACE_SHARED || read->space == SPACE_REGISTER) d->found |= d->tiles[role][read->object];
}

static void follow_local(Depends *d, int index) {
    const Local *local = &d->role->locals.items[index];
    d->found |= d->locals[d->role - d->prog->roles.items][index] || (local->kind == LOCAL_AXIS && local->axis == d->axis);
}

static void follow(Depends *d, Expr *expr) {
    if (!expr || d->found || --d->left < 0 || moves_along(d, expr)) return;
    switch (expr->kind) {
    case X_LOCAL:
        if (valid_index(expr->index, d->role->locals.count)) follow_local(d, expr->index);
        break;
    case X_READ:
        if (expr->read) follow_read(d, expr->read);
        break;
    case X_UNARY: follow(d, expr->unary.operand); break;
    case X_BINARY:
        follow(d, expr->binary.left);
        follow(d, expr->binary.right);
        break;
    case X_SELECT:
        follow(d, expr->select.condition);
        follow(d, expr->select.then);
        follow(d, expr->select.otherwise);
        break;
    case X_CAST: follow(d, expr->cast); break;
    case X_CALL:
        for (int i = 0; i < expr->call.count; i++) follow(d, expr->call.args[i]);
        break;
    case X_REDUCE: follow(d, expr->reduce.body); break;
    case X_POISON:
    case X_CONST:
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_RANK:
    case X_INDEX: break;
    }
}

static void note(Depends *d, bool *what) {
    d->changed |= d->found && !*what;
    *what |= d->found;
}

static void follow_root(Expr *expr, void *data) { follow(data, expr); }

static void note_rows(Depends *d, size_t role, int from, int to) {
    for (int at = from; at <= to; at++) note(d, &d->rows[role][at]);
}

/* What a leave under such a condition passes over, and what later iterations of a loop that it ends would have done. Of the loop over the
 * grid there are none in the tile. */
static void note_leave(Depends *d, size_t role, const FlowCode *code, int at) {
    const Row *row = &code->rows.items[at];
    const Region *target = &code->regions.items[row->target];
    if (target->kind == REGION_GRID || target->kind == REGION_ROLE) return;
    bool loop = region_loops(target) && !row->again;
    note_rows(d, role, loop ? target->begin + 1 : at, row->again ? target->next : target->end - 1);
}

static void note_pipe(Depends *d, int handle) {
    if (!valid_index(handle, d->role->handles.count) || d->role->handles.items[handle].pipe < 0) return;
    int pipe = d->role->handles.items[handle].pipe;
    for (size_t f = 0; f < d->prog->pipes.items[pipe].fields.count; f++) note(d, &d->fields[pipe][f]);
}

static void note_target(Depends *d, size_t role, const Access *target) {
    if (target->object < 0) return;
    if (target->space == SPACE_STAGE) note(d, &d->fields[d->role->handles.items[target->object].pipe][target->field]);
    if (target->space == SPACE_SHARED || target->space == SPACE_REGISTER) note(d, &d->tiles[role][target->object]);
}

static void follow_row(Depends *d, const FlowCode *code, int at) {
    const Row *row = &code->rows.items[at];
    const Region *region = &code->regions.items[row->region];
    size_t role = (size_t)(d->role - d->prog->roles.items);
    bool begins = row->kind == ROW_IF || (row->kind == ROW_LOOP && region->kind == REGION_FOR);
    d->found = false;
    row_exprs(code, row, follow_root, d);
    if (begins) note_rows(d, role, at + 1, region->end - 1);
    d->found |= d->rows[role][at];
    for (size_t i = 0; i < d->role->locals.count; i++)
        if (d->found && d->role->locals.items[i].kind != LOCAL_AXIS && row_sets(code, row, (int)i)) note(d, &d->locals[role][i]);
    if (row->kind == ROW_TILE) note_target(d, role, &row->tile->target);
    if (row->kind == ROW_LEAVE) note_leave(d, role, code, at);
    if (row->kind == ROW_ACQUIRE || row->kind == ROW_MOVE) note_pipe(d, row->handle); /* which stage it is */
}

/* Forms in which the target depends on the axis other than evenly. False: it depends on what changes meanwhile. */
static bool find_moves(Depends *d, const Place *place) {
    int atom = algebra_atom_axis(d->algebra, d->axis);
    for (int dim = 0; dim < place->access->rank; dim++) {
        const Poly *base = algebra_poly(d->algebra, place->role, place->access->affine[dim].base);
        if (!base || poly_changes(d->algebra, base)) return false;
        for (int t = 0; t < base->count; t++)
            for (int k = 0; k < base->terms[t].count; k++) {
                const Poly *one = poly_atom(d->algebra, base->terms[t].atoms[k]);
                if (base->terms[t].atoms[k] != atom && poly_mentions(d->algebra, one, atom)) {
                    vec_push(d->arena, &d->moves, one);
                    vec_push(d->arena, &d->moves, base);
                }
            }
    }
    return true;
}

int race_value_differs(Arena *arena, const Prog *prog, Algebra *algebra, const Place *place, int axis) {
    Depends d = {.arena = arena, .prog = prog, .algebra = algebra, .axis = axis, .changed = true, .left = NODES_MOST};
    if (!find_moves(&d, place)) return -1;
    d.fields = NEW_ARRAY(arena, bool *, prog->pipes.count + 1);
    d.tiles = NEW_ARRAY(arena, bool *, prog->roles.count + 1), d.locals = NEW_ARRAY(arena, bool *, prog->roles.count + 1);
    d.rows = NEW_ARRAY(arena, bool *, prog->roles.count + 1);
    for (size_t i = 0; i < prog->pipes.count; i++) d.fields[i] = NEW_ARRAY(arena, bool, prog->pipes.items[i].fields.count + 1);
    for (size_t i = 0; i < prog->roles.count; i++) {
        d.tiles[i] = NEW_ARRAY(arena, bool, prog->roles.items[i].tiles.count + 1);
        d.locals[i] = NEW_ARRAY(arena, bool, prog->roles.items[i].locals.count + 1);
        d.rows[i] = NEW_ARRAY(arena, bool, prog->roles.items[i].code->rows.count + 1);
    }
    while (d.changed) {
        d.changed = false;
        for (size_t i = 0; i < prog->roles.count; i++) {
            d.role = &prog->roles.items[i];
            for (size_t at = 0; at < d.role->code->rows.count; at++) follow_row(&d, d.role->code, (int)at);
        }
    }
    d.role = place->role, d.found = false;
    follow(&d, place->stmt->tile->value);
    return d.found ? 1 : d.left < 0 ? -1 : 0;
}
