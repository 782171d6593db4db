/* Functions: replaces runs of statements in role bodies by calls, and formulas by functions that
 * compute them. The behaviour of a program does not change, unless a function is left early. */
#include "tests/adversary/draw.h"

#include <string.h>

/* ---- what statements name -------------------------------------------------------------------- */

typedef struct Names { /* in a run of statements */
    bool mentioned[MAX_LOCALS], declared[MAX_LOCALS], written[MAX_LOCALS];
    int released[MAX_LOCALS]; /* number of releases, outside of nested statements */
    bool tensors[MAX_TENSORS], tensors_written[MAX_TENSORS], symbols[SYMBOLS], reals[2];
    bool stays; /* it contains a statement that a function cannot have */
} Names;

typedef struct Place { /* position of a statement in the run */
    int loops, calls, depth;
} Place;

static void name_expr(Names *names, const Expr *expr) {
    if (expr == NULL) return;
    switch (expr->kind) {
    case X_SYMBOL: names->symbols[expr->of] = true; break;
    case X_PARAM: names->reals[expr->of] = true; break;
    case X_LOCAL:
    case X_FIELD:
    case X_TILE: names->mentioned[expr->of] = true; break;
    case X_TENSOR: names->tensors[expr->of] = true; break;
    case X_NUMBER:
    case X_REAL:
    case X_TRUTH:
    case X_INDEX:
    case X_RANK:
    case X_LANE:
    case X_BINARY:
    case X_REDUCE:
    case X_SELECT: break;
    }
    name_expr(names, expr->a);
    name_expr(names, expr->b);
    name_expr(names, expr->c);
    for (int s = 0; s < expr->rank; s++) name_expr(names, expr->subs[s]);
}

static void name_target(Names *names, const Expr *target) {
    if (target == NULL) return;
    if (target->kind == X_TENSOR) names->tensors_written[target->of] = true;
    if (target->kind == X_TILE) names->written[target->of] = true;
}

/* A stage or a hint acquired into a new name or an existing one */
static void name_new(Names *names, const Stmt *stmt, bool fresh) {
    names->mentioned[stmt->local] = true;
    names->declared[stmt->local] |= fresh;
    names->written[stmt->local] |= !fresh;
}

static void name_locals(Names *names, const Stmt *stmt, Place place) {
    bool hinted = (stmt->kind == S_STAGE || stmt->kind == S_ACQUIRE) && stmt->hint >= 0;
    if (hinted) names->mentioned[stmt->hint] = true;
    switch (stmt->kind) {
    case S_FOR:
    case S_STAGE:
    case S_DECLARE: name_new(names, stmt, true); break;
    case S_ACQUIRE:
    case S_HINT: name_new(names, stmt, stmt->fresh); break;
    case S_SET: name_new(names, stmt, false); break;
    case S_RELEASE:
        names->mentioned[stmt->local] = true;
        names->released[stmt->local] += place.depth == 0 ? 1 : 2;
        break;
    case S_MOVE:
        names->mentioned[stmt->local] = names->mentioned[stmt->other] = true;
        names->declared[stmt->local] |= stmt->fresh;
        names->written[stmt->other] = true;
        names->written[stmt->local] |= !stmt->fresh;
        break;
    case S_ARRIVE:
    case S_DROP: name_new(names, stmt, false); break;
    case S_GRID:
    case S_IF:
    case S_LEAVE:
    case S_TILE:
    case S_CONTRACT:
    case S_TURN:
    case S_UNSAFE:
    case S_CALL:
    case S_EVENT:
    case S_ROTATE: break;
    }
}

static void name_list(Names *names, const Stmts *stmts, Place place);

static void name_stmt(Names *names, const Stmt *stmt, Place place) {
    const Expr *parts[] = {stmt->lo,     stmt->hi,   stmt->condition, stmt->value,
                           stmt->target, stmt->left, stmt->right};
    for (size_t i = 0; i < COUNT_OF(parts); i++) name_expr(names, parts[i]);
    name_target(names, stmt->target);
    name_locals(names, stmt, place);
    names->stays |= stmt->kind == S_GRID || stmt->kind == S_EVENT || stmt->kind == S_ROTATE;
    /* the range is declared in the kernel */
    names->stays |= stmt->kind == S_FOR && stmt->range >= 0;
    names->stays |= stmt->kind == S_STAGE && stmt->lag > 0 && place.loops == 0;
    if (stmt->kind == S_LEAVE)
        names->stays |= stmt->leave == LEAVE_RETURN ? place.calls == 0 : place.loops == 0;
    place.loops += stmt->kind == S_FOR;
    place.calls += stmt->kind == S_CALL;
    place.depth++;
    name_list(names, &stmt->body, place);
    name_list(names, &stmt->otherwise, place);
}

static void name_list(Names *names, const Stmts *stmts, Place place) {
    for (size_t i = 0; i < stmts->count; i++) name_stmt(names, stmts->items[i], place);
}

/* ---- parameters ------------------------------------------------------------------------------ */

static bool is_extent_of(const Program *program, const Names *names, int symbol) {
    for (int t = 0; t < program->tensor_count; t++)
        for (int d = 0; names->tensors[t] && d < program->tensors[t].rank; d++)
            if (program->tensors[t].extents[d].symbol == symbol) return true;
    return false;
}

static ParamKind kind_of(const Local *local) {
    switch (local->kind) {
    case LOCAL_SCALAR:
    case LOCAL_LOOP: return PARAM_SCALAR;
    case LOCAL_TILE:
    case LOCAL_SHARED: return PARAM_TILE;
    case LOCAL_HANDLE:
    case LOCAL_HINT: break;
    }
    return PARAM_STAGE;
}

Params call_params(const Program *program, Arena *arena, const Stmt *call) {
    Names *names = NEW(arena, Names);
    Params params = {0};
    *names = (Names){0};
    name_list(names, &call->body, (Place){.calls = 1});
    for (int t = 0; t < program->tensor_count; t++)
        if (names->tensors[t])
            vec_push(arena, &params, ((Param){PARAM_TENSOR, t, names->tensors_written[t]}));
    for (int s = 0; s < SYMBOLS; s++)
        if (names->symbols[s] && !is_extent_of(program, names, s))
            vec_push(arena, &params, ((Param){PARAM_SYMBOL, s, false}));
    for (int r = 0; r < 2; r++)
        if (names->reals[r]) vec_push(arena, &params, ((Param){PARAM_REAL, r, false}));
    for (int l = 0; l < program->local_count; l++) {
        if (!names->mentioned[l] || names->declared[l]) continue;
        bool written = names->written[l] || names->released[l] > 0;
        vec_push(arena, &params, ((Param){kind_of(&program->locals[l]), l, written}));
    }
    return params;
}

/* ---- a run of statements --------------------------------------------------------------------- */

/* True if the local is not used outside of the run, or can be a parameter */
static bool may_pass(const Program *program, const Names *in, const Names *after, int local) {
    const Local *row = &program->locals[local];
    if (!in->mentioned[local]) return true;
    if (in->declared[local]) return !after->mentioned[local];
    if (row->kind == LOCAL_HINT) return false;
    if (row->kind != LOCAL_HANDLE) return true;
    return !in->written[local] && in->released[local] <= 1;
}

static bool fits_function(Program *program, const Stmts *list, size_t at, size_t count) {
    Names *in = NEW(program->arena, Names), *after = NEW(program->arena, Names);
    *in = *after = (Names){0};
    bool sets_nothing = true;
    for (size_t i = at; i < list->count; i++)
        name_stmt(i < at + count ? in : after, list->items[i], (Place){0});
    bool fits = !in->stays;
    for (int l = 0; l < program->local_count; l++) fits &= may_pass(program, in, after, l);
    for (size_t i = at; i < at + count; i++) sets_nothing &= list->items[i]->kind == S_DECLARE;
    return fits && !sets_nothing;
}

static bool is_in_grid(const Site *site) {
    return site->in_grid && site->list->items[site->at]->kind != S_UNSAFE;
}

/* ---- functions that are left early ----------------------------------------------------------- */

static bool has_calls(const Stmts *stmts) {
    for (size_t i = 0; i < stmts->count; i++) {
        const Stmt *stmt = stmts->items[i];
        if (stmt->kind == S_CALL || has_calls(&stmt->body) || has_calls(&stmt->otherwise))
            return true;
    }
    return false;
}

static Stmt *return_new(Program *program) {
    Stmt *leave = stmt_new(program, S_LEAVE);
    leave->leave = LEAVE_RETURN;
    return leave;
}

static void append(Program *program, Stmts *to, const Stmts *from) {
    Stmts copies = stmts_copy(program, from);
    for (size_t i = 0; i < copies.count; i++) stmts_add(program, to, copies.items[i]);
}

/* No wound: statements after a condition are moved into both of its arms, and both return. */
static bool return_in_arms(Program *program, Stmts *body) {
    size_t at = 0;
    Stmts rest = {0};
    while (at < body->count && body->items[at]->kind != S_IF) at++;
    if (at == body->count || has_calls(body)) return false;
    Stmt *arms = body->items[at];
    if (arms->body.count > 0 && arms->body.items[0]->kind == S_LEAVE) return false;
    for (size_t i = at + 1; i < body->count; i++) stmts_add(program, &rest, body->items[i]);
    body->count = at + 1;
    append(program, &arms->body, &rest);
    append(program, &arms->otherwise, &rest);
    stmts_add(program, &arms->body, return_new(program));
    if (often(program, 60)) stmts_add(program, &arms->otherwise, return_new(program));
    return true;
}

/* No wound: `return` instead of `break` in the last loop. */
static bool return_from_loop(Stmts *body) {
    bool found = false;
    Stmt *loop = body->count > 0 ? body->items[body->count - 1] : NULL;
    if (loop == NULL || loop->kind != S_FOR) return false;
    for (size_t i = 0; i < loop->body.count; i++) {
        const Stmt *guard = loop->body.items[i];
        if (guard->kind != S_IF || guard->body.count == 0) continue;
        Stmt *leave = guard->body.items[guard->body.count - 1];
        if (leave->kind != S_LEAVE || leave->leave != LEAVE_BREAK) continue;
        leave->leave = LEAVE_RETURN;
        found = true;
    }
    return found;
}

/* A wound: returns before the end. */
static void return_early(Program *program, Stmts *body) {
    Stmt *guard =
        if_new(program, binary(program, often(program, 50) ? DO_GT : DO_LE,
                               often(program, 50) ? any_axis(program) : symbol(program, SYM_Q),
                               number(program, 1 + pick(program, 3))));
    stmts_add(program, &guard->body, return_new(program));
    Stmts *list = body;
    Stmt *inner = body->items[pick(program, (uint32_t)body->count)];
    if (inner->body.count > 0 && inner->kind != S_CALL && inner->kind != S_UNSAFE &&
        often(program, 50))
        list = &inner->body;
    stmts_insert(program, list, pick(program, (uint32_t)list->count + 1), guard);
    if (program->wound_count < MAX_NOTES) program->wounds[program->wound_count++] = "a return";
    program->textual = true;
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool outline(Program *program) {
    Sites sites = program_sites(program);
    const Site *site = &sites.items[pick(program, (uint32_t)sites.count)];
    uint32_t most = (uint32_t)(site->list->count - site->at);
    size_t count = 1 + pick(program, most < 6 ? most : 6);
    if (!is_in_grid(site) || !fits_function(program, site->list, site->at, count)) return false;
    Stmt *call = stmt_new(program, S_CALL);
    call->other = ++program->functions;
    for (size_t i = 0; i < count; i++)
        stmts_add(program, &call->body, stmts_remove(site->list, site->at));
    stmts_insert(program, site->list, site->at, call);
    bool wounded = program->wound_count > 0 || often(program, 15);
    if (wounded && often(program, 12)) {
        return_early(program, &call->body);
        return true;
    }
    if (often(program, 50) && return_from_loop(&call->body)) return true;
    if (often(program, 50)) return_in_arms(program, &call->body);
    return true;
}

bool is_formula(const Expr *expr) {
    return expr != NULL && (expr->kind == X_BINARY || expr->kind == X_SELECT);
}

static const Expr *formula_of(const Stmt *stmt) {
    if (stmt->kind == S_FOR && stmt->range < 0) return stmt->hi;
    if (stmt->kind == S_IF) return stmt->condition;
    if (stmt->kind == S_SET || stmt->kind == S_DECLARE || stmt->kind == S_TILE) return stmt->value;
    return NULL;
}

/* Replaces a formula of an assignment, a bound or a condition by a call. */
static void compute(Program *program) {
    Sites sites = program_sites(program);
    for (size_t i = 0; i < sites.count; i++) {
        Stmt *stmt = sites.items[i].list->items[sites.items[i].at];
        if (is_formula(formula_of(stmt)) && often(program, 15)) stmt->called = ++program->functions;
    }
}

void draw_functions(Program *program) {
    int wanted = 1 + (int)pick(program, 4);
    for (int tries = 0; tries < 30 && wanted > 0; tries++) wanted -= outline(program);
    if (!program->matrix && often(program, 50)) compute(program);
}
