/* Control around pipe operations is the same in all threads of a role, and around tile statements in all threads of an
 * instance: all of them take part. The message follows a value back to where its threads begin to differ. */
#include "flow/origin.h"
#include "check/passes.h"
#include "prog/walk.h"

typedef struct Control {   /* the innermost condition or bound that differs, around a statement */
    Uniformity how;
    Expr *cause;
    const Stmt *at;        /* the statement it belongs to */
} Control;

typedef struct Uniform {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    Role *role;
    VEC(Span) told;        /* conditions and bounds that something was refused under: one mistake */
} Uniform;

/* ---- refusals ------------------------------------------------------------------------------------------------------ */

static const char *operation(const Stmt *stmt) {
    switch (stmt->kind) {
    case S_ACQUIRE: case S_STAGE: return "acquires a stage";
    case S_TRY: return "asks for a stage";
    case S_RELEASE: return "releases a stage";
    case S_MOVE: return "moves a stage";
    case S_TILE: case S_SCALAR: return "is the work of all threads of an instance";
    case S_UNSAFE: return "steps over a stage";
    case S_BLOCK: case S_GRID: case S_FOR: case S_IF: case S_LEAVE: break;
    }
    return "leaves a loop or role with pipe operations";
}

/* The pipes whose operations a statement holds */
static void fault(Stmt *stmt, void *data) {
    const Uniform *uniform = data;
    int handle = stmt->kind == S_ACQUIRE ? stmt->acquire.handle : stmt->kind == S_STAGE ? stmt->stage.handle : -1;
    if (stmt->kind == S_RELEASE) handle = stmt->release.handle;
    if (valid_index(handle, uniform->role->handles.count) &&
        valid_index(uniform->role->handles.items[handle].pipe, uniform->prog->pipes.count))
        uniform->prog->pipes.items[uniform->role->handles.items[handle].pipe].faulty = true;
}

static bool was_told(Uniform *uniform, Span cause) {
    for (size_t i = 0; i < uniform->told.count; i++)
        if (uniform->told.items[i].lo == cause.lo && uniform->told.items[i].hi == cause.hi) return true;
    vec_push(uniform->arena, &uniform->told, cause);
    return false;
}

static void refuse(Uniform *uniform, Stmt *stmt, const Control *control) {
    Differs how = {.least = control->how};
    const char *among = origin_among(how);
    stmt_visit(stmt->kind != S_LEAVE ? stmt : stmt->leave.target ? stmt->leave.target : uniform->role->body, fault, uniform);
    if (was_told(uniform, control->cause->span)) return;
    const char *what = stmt->kind == S_LEAVE ? "leave" : stmt->kind == S_TILE || stmt->kind == S_SCALAR ? "tile statement" : "pipe operation";
    Diag *diag = diag_at(uniform->diags, P0410, stmt->head, "%s under a %s that differs between %s of `%s`", what,
                         control->at->kind == S_FOR ? "bound" : "condition", among, uniform->role->name);
    diag_primary(uniform->diags, diag, "%s", operation(stmt));
    diag_label(uniform->diags, diag, control->cause->span, "differs between %s", among);
    origin_show(uniform->arena, uniform->prog, uniform->role, uniform->diags, diag, control->cause, how);
    if (stmt->kind == S_LEAVE) diag_help(uniform->diags, diag, "leave under a condition that is the same in all %s", among);
    else if (control->how == UNIFORM_LANE && stmt->kind != S_TILE && stmt->kind != S_SCALAR)
        diag_help(uniform->diags, diag, "of what `unsafe` does to a stage, arrivals and inline PTX may differ between threads; this is for all of them");
    else if (control->how == UNIFORM_LANE) diag_help(uniform->diags, diag, "use a select inside of a statement: `t[i] = c ? a : b`");
    else if (uniform->role->in_turn)
        diag_help(uniform->diags, diag, "all instances have to know which stages an iteration takes: from sizes, ranges and coordinates");
    else diag_help(uniform->diags, diag, "every instance takes part in every stage: put the condition inside, around the tile statements");
}

/* ---- walking ------------------------------------------------------------------------------------------------------- */

typedef struct Holds {
    bool pipes, tiles;
} Holds;

static void find_holds(Stmt *stmt, void *data) {
    Holds *holds = data;
    holds->pipes |= stmt->kind == S_ACQUIRE || stmt->kind == S_STAGE || stmt->kind == S_RELEASE;
    holds->pipes |= stmt->kind == S_BLOCK && stmt->block.turn; /* every instance passes its turn on */
    holds->tiles |= stmt->kind == S_TILE;
}

static Control narrower(Control control, Expr *expr, const Stmt *at) {
    if (!expr || expr->kind == X_POISON || expr->uniformity <= control.how) return control;
    return (Control){.how = expr->uniformity, .cause = expr, .at = at};
}

static void check_leave(Uniform *uniform, Stmt *stmt, const Control *control) {
    Holds holds = {false, false};
    stmt_visit(stmt->leave.target ? stmt->leave.target : uniform->role->body, find_holds, &holds);
    if (holds.pipes || (holds.tiles && control->how == UNIFORM_LANE)) refuse(uniform, stmt, control);
}

typedef struct OneLane {
    const Role *role;
    Expr *found;         /* a local that each lane has its own of */
} OneLane;

static void find_lane(Expr *expr, void *data) {
    OneLane *lane = data;
    if (expr->kind == X_LOCAL && !lane->found && lane->role->locals.items[expr->index].uniformity == UNIFORM_LANE) lane->found = expr;
}

static void find_lane_below(Expr *expr, void *data) {
    OneLane *lane = ((void **)data)[0];
    expr_visit(((void **)data)[1], expr, find_lane, lane);
}

/* Which thread computes an element of a tile is not the program's to know: a value of a lane of its own means nothing there. */
static void refuse_lanes(Uniform *uniform, Stmt *stmt) {
    OneLane lane = {.role = uniform->role};
    walk_exprs(stmt, find_lane_below, (void *[]){&lane, uniform->arena});
    if (!lane.found) return;
    const Local *local = &uniform->role->locals.items[lane.found->index];
    Diag *diag = diag_at(uniform->diags, P0424, lane.found->span, "`%s` differs between lanes, and the statement is the work of all of them",
                         local->name);
    if (local->span.lo != lane.found->span.lo) diag_label(uniform->diags, diag, local->span, "declared here");
    origin_show(uniform->arena, uniform->prog, uniform->role, uniform->diags, diag, lane.found, (Differs){.least = UNIFORM_LANE});
    diag_help(uniform->diags, diag, "which thread computes an element is derived: use an index of the statement, or inline PTX");
}

static void walk(Uniform *uniform, Stmt *stmt, Control control) {
    if (!stmt) return;
    switch (stmt->kind) {
    case S_BLOCK:
        for (size_t i = 0; i < stmt->block.body.count; i++) walk(uniform, stmt->block.body.items[i], control);
        break;
    case S_GRID: walk(uniform, stmt->grid.body, control); break;
    case S_FOR:
        control = narrower(narrower(narrower(control, stmt->loop.lo, stmt), stmt->loop.hi, stmt), stmt->loop.where, stmt);
        walk(uniform, stmt->loop.body, control);
        break;
    case S_IF:
        control = narrower(control, stmt->branch.condition, stmt);
        walk(uniform, stmt->branch.then, control);
        walk(uniform, stmt->branch.otherwise, control);
        break;
    case S_TRY: case S_ACQUIRE: case S_RELEASE: case S_MOVE:
        if (control.how != UNIFORM_ROLE) refuse(uniform, stmt, &control);
        break;
    case S_STAGE:
        if (control.how != UNIFORM_ROLE) refuse(uniform, stmt, &control);
        else walk(uniform, stmt->stage.body, control);
        break;
    case S_TILE:
        if (control.how == UNIFORM_LANE) refuse(uniform, stmt, &control);
        else refuse_lanes(uniform, stmt);
        break;
    case S_UNSAFE:
        if (control.how != UNIFORM_ROLE && stmt->unsafe->kind == UNSAFE_STEP) refuse(uniform, stmt, &control);
        break;
    case S_SCALAR:
        if (control.how == UNIFORM_LANE && stmt->scalar.space) refuse(uniform, stmt, &control);
        break;
    case S_LEAVE:
        if (control.how != UNIFORM_ROLE) check_leave(uniform, stmt, &control);
        break;
    }
}

void uniform_check(Arena *arena, Prog *prog, Diags *diags) {
    for (size_t i = 0; i < prog->roles.count; i++) {
        Uniform uniform = {.arena = arena, .prog = prog, .diags = diags, .role = &prog->roles.items[i]};
        walk(&uniform, prog->roles.items[i].body, (Control){.how = UNIFORM_ROLE});
    }
}
