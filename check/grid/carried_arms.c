/* Arms of a condition that do the same with different rings: then the choice of the arm does not
 * matter.
 *
 * Each arm is a list of rows, in which an IF whose own arms do the same is represented by its
 * first arm. Two lists do the same if they have the same rows with the same expressions, except
 * for the objects that each arm declares and for stages. If one arm uses a stage of ring p and
 * the other one of ring q, the two rings must have equal contents: the role that fills them
 * fills p in one arm and q in the other of a condition whose arms do the same, and nowhere else. */
#include "check/grid/carried.h"

#define NODES_MOST 20000 /* most nodes of compared expressions */

typedef struct Arms {
    Arena *arena;
    const Prog *prog;
    const FlowCode *code;
    bool *same; /* by region */
    int *pairs; /* by two pipes: number of pairs of acquires in corresponding rows */
    /* declared in the first arm: its counterpart in the other; -1: itself */
    int *locals, *tiles, *handles;
    int nodes;
} Arms;

typedef VEC(int) Rows;

/* ---- expressions ----------------------------------------------------------------------------- */

static bool same_index(const int *like, size_t count, int a, int b) {
    if (!valid_index(a, count) || !valid_index(b, count)) return a == b;
    return like[a] >= 0 ? like[a] == b : a == b;
}

static bool same_expr(Arms *arms, const Expr *a, const Expr *b);

static bool same_access(Arms *arms, const Access *a, const Access *b) {
    const Role *role = arms->code->role;
    if (a->space != b->space || a->field != b->field || a->rank != b->rank ||
        !same_expr(arms, a->element, b->element))
        return false;
    bool same = a->object == b->object;
    if (a->space == SPACE_STAGE)
        same = same_index(arms->handles, role->handles.count, a->object, b->object);
    if (a->space == SPACE_SHARED || a->space == SPACE_REGISTER)
        same = same_index(arms->tiles, role->tiles.count, a->object, b->object);
    for (int d = 0; d < a->rank && same; d++) same = same_expr(arms, a->subs[d], b->subs[d]);
    return same;
}

static bool same_parts(Arms *arms, const Expr *a, const Expr *b) {
    switch (a->kind) {
    case X_POISON: return false;
    case X_CONST: return expr_same(a, b); /* also the sign of 0 */
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_INDEX: return a->index == b->index;
    case X_LOCAL:
        return same_index(arms->locals, arms->code->role->locals.count, a->index, b->index);
    case X_RANK: return true;
    case X_READ: return same_access(arms, a->read, b->read);
    case X_UNARY:
        return a->unary.op == b->unary.op && same_expr(arms, a->unary.operand, b->unary.operand);
    case X_BINARY:
        return a->binary.op == b->binary.op && a->binary.accuracy == b->binary.accuracy &&
               same_expr(arms, a->binary.left, b->binary.left) &&
               same_expr(arms, a->binary.right, b->binary.right);
    case X_SELECT:
        return same_expr(arms, a->select.condition, b->select.condition) &&
               same_expr(arms, a->select.then, b->select.then) &&
               same_expr(arms, a->select.otherwise, b->select.otherwise);
    case X_CAST: return same_expr(arms, a->cast, b->cast);
    case X_CALL:
        if (a->call.which != b->call.which || a->call.count != b->call.count ||
            a->call.accuracy != b->call.accuracy)
            return false;
        for (int i = 0; i < a->call.count; i++)
            if (!same_expr(arms, a->call.args[i], b->call.args[i])) return false;
        return true;
    case X_REDUCE:
        return a->reduce.op == b->reduce.op && a->reduce.first == b->reduce.first &&
               a->reduce.count == b->reduce.count &&
               same_expr(arms, a->reduce.body, b->reduce.body);
    case X_SCAN:
        return a->scan.op == b->scan.op && a->scan.relation == b->scan.relation &&
               a->scan.along == b->scan.along && same_expr(arms, a->scan.body, b->scan.body);
    }
    return false;
}

static bool same_expr(Arms *arms, const Expr *a, const Expr *b) {
    if (!a || !b) return a == b;
    if (a->kind != b->kind || a->type != b->type || --arms->nodes < 0) return false;
    return same_parts(arms, a, b);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool same_tile(Arms *arms, const Tile *a, const Tile *b) {
    if (a->op != b->op || a->space.count != b->space.count || a->space.bound != b->space.bound)
        return false;
    for (int i = 0; i < a->space.count; i++)
        if (a->space.items[i].extent != b->space.items[i].extent) return false;
    return same_access(arms, &a->target, &b->target) && same_expr(arms, a->value, b->value);
}

static bool open_alike(Arms *arms, const Row *a, const Row *b) {
    const Role *role = arms->code->role;
    if (a->object != b->object) return false;
    if (a->object == OBJECT_LOCAL) arms->locals[a->index] = b->index;
    if (a->object == OBJECT_TILE) {
        const RoleTile *x = &role->tiles.items[a->index], *y = &role->tiles.items[b->index];
        if (x->type != y->type || x->rank != y->rank || x->in_registers != y->in_registers)
            return false;
        for (int d = 0; d < x->rank; d++)
            if (x->extents[d] != y->extents[d]) return false;
        arms->tiles[a->index] = b->index;
    }
    if (a->object == OBJECT_HANDLE) arms->handles[a->index] = b->index;
    return true;
}

static bool same_handle(Arms *arms, const Row *a, const Row *b) {
    size_t count = arms->code->role->handles.count;
    return same_index(arms->handles, count, a->handle, b->handle) &&
           same_index(arms->handles, count, a->other, b->other);
}

static bool acquire_alike(Arms *arms, const Row *a, const Row *b) {
    const Role *role = arms->code->role;
    if (!same_handle(arms, a, b) || !valid_index(a->handle, role->handles.count)) return false;
    const Handle *x = &role->handles.items[a->handle], *y = &role->handles.items[b->handle];
    if (x->end != y->end || a->unwaited != b->unwaited || x->pipe < 0 || y->pipe < 0) return false;
    const Pipe *p = &arms->prog->pipes.items[x->pipe], *q = &arms->prog->pipes.items[y->pipe];
    if (p->producer != q->producer || p->fields.count != q->fields.count) return false;
    for (size_t f = 0; f < p->fields.count; f++)
        if (p->fields.items[f].type != q->fields.items[f].type) return false;
    return true;
}

static bool same_region(Arms *arms, const Row *a, const Row *b) {
    const Region *x = &arms->code->regions.items[a->region],
                 *y = &arms->code->regions.items[b->region];
    if (x->kind != y->kind || x->nonempty != y->nonempty) return false;
    if (x->kind == REGION_FOR) arms->locals[x->var] = y->var;
    return same_expr(arms, x->lo, y->lo) && same_expr(arms, x->hi, y->hi) &&
           same_expr(arms, x->where, y->where) && same_expr(arms, x->condition, y->condition);
}

/* A `let` is declared where it is set */
static bool same_set(Arms *arms, const Row *a, const Row *b) {
    const Role *role = arms->code->role;
    bool both =
        valid_index(a->local, role->locals.count) && valid_index(b->local, role->locals.count);
    if (!both || !same_expr(arms, a->value, b->value)) return false;
    if (role->locals.items[a->local].kind == LOCAL_LET &&
        role->locals.items[b->local].kind == LOCAL_LET)
        arms->locals[a->local] = b->local;
    return same_index(arms->locals, role->locals.count, a->local, b->local);
}

/* What a row does to no value and no stage is alike. */
static bool same_row(Arms *arms, const Row *a, const Row *b) {
    const RowEffects *effects = &row_effects[a->kind];
    if (a->kind != b->kind || effects->access == ACCESS_RAW || effects->stage == STAGE_STEP ||
        effects->executes == EXECUTES_IN_TURN)
        return false;
    if (effects->access == ACCESS_EVALUATES || effects->control == CONTROL_BLOCK)
        return same_region(arms, a, b);
    if (effects->access == ACCESS_SETS) return same_set(arms, a, b);
    if (effects->access == ACCESS_WRITES) return same_tile(arms, a->tile, b->tile);
    if (effects->scope == SCOPE_OPENS) return open_alike(arms, a, b);
    if (effects->stage == STAGE_TAKE) return acquire_alike(arms, a, b);
    if (row_changes_hold(a->kind) || effects->stage == STAGE_LEND) return same_handle(arms, a, b);
    return effects->control != CONTROL_LEAVE || (a->target == b->target && a->again == b->again);
}

/* ---- arms ------------------------------------------------------------------------------------ */

static void list_rows(Arms *arms, int from, int to, Rows *rows) {
    for (int at = from; at < to; at++) {
        const Row *row = &arms->code->rows.items[at];
        const Region *region = &arms->code->regions.items[row->region];
        if (row->kind == ROW_FLUSH) continue;
        if (row->kind != ROW_IF || !arms->same[row->region]) {
            vec_push(arms->arena, rows, at);
            continue;
        }
        list_rows(arms, at + 1, region->otherwise, rows);
        at = region->end;
    }
}

static void note_pairs(Arms *arms, const Rows *then, const Rows *otherwise) {
    const Role *role = arms->code->role;
    for (size_t i = 0; i < then->count; i++) {
        const Row *a = &arms->code->rows.items[then->items[i]],
                  *b = &arms->code->rows.items[otherwise->items[i]];
        if (a->kind != ROW_ACQUIRE) continue;
        int p = role->handles.items[a->handle].pipe, q = role->handles.items[b->handle].pipe,
            count = (int)arms->prog->pipes.count;
        arms->pairs[p * count + q]++;
        if (p != q) arms->pairs[q * count + p]++;
    }
}

static bool arms_alike(Arms *arms, const Region *region) {
    const Role *role = arms->code->role;
    Rows then = {0}, otherwise = {0};
    list_rows(arms, region->begin + 1, region->otherwise, &then);
    list_rows(arms, region->otherwise + 1, region->end, &otherwise);
    if (then.count != otherwise.count) return false;
    arms->nodes = NODES_MOST;
    for (size_t i = 0; i < role->locals.count; i++) arms->locals[i] = -1;
    for (size_t i = 0; i < role->tiles.count; i++) arms->tiles[i] = -1;
    for (size_t i = 0; i < role->handles.count; i++) arms->handles[i] = -1;
    for (size_t i = 0; i < then.count; i++)
        if (!same_row(arms, &arms->code->rows.items[then.items[i]],
                      &arms->code->rows.items[otherwise.items[i]]))
            return false;
    note_pairs(arms, &then, &otherwise);
    return true;
}

static Arms find_arms(Arena *arena, const Prog *prog, const FlowCode *code) {
    const Role *role = code->role;
    Arms arms = {.arena = arena, .prog = prog, .code = code};
    arms.same = NEW_ARRAY(arena, bool, code->regions.count + 1);
    arms.pairs = NEW_ARRAY(arena, int, prog->pipes.count * prog->pipes.count + 1);
    arms.locals = NEW_ARRAY(arena, int, role->locals.count + 1);
    arms.tiles = NEW_ARRAY(arena, int, role->tiles.count + 1);
    arms.handles = NEW_ARRAY(arena, int, role->handles.count + 1);
    for (size_t r = code->regions.count; r-- > 0;) /* inner regions come first */
        if (code->regions.items[r].kind == REGION_IF)
            arms.same[r] = arms_alike(&arms, &code->regions.items[r]);
    return arms;
}

/* ---- rings ----------------------------------------------------------------------------------- */

static bool takes(const FlowCode *code, int at, int pipe) {
    const Row *row = &code->rows.items[at];
    if (row->kind == ROW_STEP) return row->unsafe->pipe == pipe;
    return row->kind == ROW_ACQUIRE && valid_index(row->handle, code->role->handles.count) &&
           code->role->handles.items[row->handle].pipe == pipe;
}

/* True if the role acquires each stage of the pipe in an arm of a condition whose arms do the
 * same */
static bool always_in_arms(const Arms *arms, int pipe) {
    for (size_t at = 0; at < arms->code->rows.count; at++) {
        bool within = !takes(arms->code, (int)at, pipe);
        for (int r = arms->code->rows.items[at].region; r >= 0 && !within;
             r = arms->code->regions.items[r].parent)
            within = arms->same[r];
        if (!within) return false;
    }
    return true;
}

static bool rings_alike(Arena *arena, const Prog *prog, int p, int q) {
    const Role *producer = &prog->roles.items[prog->pipes.items[p].producer];
    if (!producer->code) return false;
    Arms arms = find_arms(arena, prog, producer->code);
    return arms.pairs[p * (int)prog->pipes.count + q] > 0 && always_in_arms(&arms, p) &&
           always_in_arms(&arms, q);
}

bool *carried_arms(Arena *arena, const Prog *prog, const FlowCode *code) {
    Arms arms = find_arms(arena, prog, code);
    int count = (int)prog->pipes.count;
    for (int p = 0; p < count; p++)
        for (int q = 0; q < count; q++) {
            bool needs = p != q && arms.pairs[p * count + q] > 0 && !rings_alike(arena, prog, p, q);
            for (size_t r = 0; needs && r < code->regions.count; r++) arms.same[r] = false;
        }
    return arms.same;
}
