/* The order of a role's statements, after all are elaborated. Numbers the turns, and moves each
 * release without a signal up to the last arrival if no statement between them accesses the
 * stage or leaves: the other end may continue after the last arrival, so the stage is given up
 * there. */
#include "elaborate/private.h"

/* ---- releases without a signal --------------------------------------------------------------- */

typedef struct About { /* one stage, in a statement and those inside it */
    Arena *arena;
    Stmt *all; /* the statement */
    int handle;
    bool arrives, touches; /* touches: accesses the stage, or leaves the statement */
} About;

typedef struct Wanted {
    const Stmt *stmt;
    bool found;
} Wanted;

static void look_at(Stmt *stmt, void *data) {
    Wanted *wanted = data;
    wanted->found |= stmt == wanted->stmt;
}

static bool leaves(const Stmt *stmt, Stmt *all) {
    if (stmt->kind != S_LEAVE) return false;
    Wanted target = {.stmt = stmt->leave.target};
    stmt_visit(all, look_at, &target);
    return !target.found;
}

static void touches(Access *access, bool written, void *data) {
    About *about = data;
    (void)written;
    about->touches |= access->space == SPACE_STAGE && access->object == about->handle;
}

static void read(Expr *expr, void *data) {
    const About *about = data;
    expr_reads(about->arena, expr, touches, data);
}

static void evaluate(Expr *expr, About *about) {
    if (expr) read(expr, about);
}

/* Accesses of the statement itself, without those inside it */
static void about_accesses(Stmt *stmt, About *about) {
    switch (stmt->kind) {
    case S_SCALAR: evaluate(stmt->scalar.value, about); break;
    case S_TILE:
        if (!stmt->tile) break;
        touches(&stmt->tile->target, true, about);
        access_exprs(&stmt->tile->target, read, about);
        evaluate(stmt->tile->value, about);
        evaluate(stmt->tile->where, about);
        break;
    case S_FOR:
        evaluate(stmt->loop.lo, about);
        evaluate(stmt->loop.hi, about);
        evaluate(stmt->loop.where, about);
        break;
    case S_IF: evaluate(stmt->branch.condition, about); break;
    case S_UNSAFE: unsafe_exprs(stmt->unsafe, read, about); break;
    case S_BLOCK:
    case S_GRID:
    case S_LEAVE:
    case S_TRY:
    case S_ACQUIRE:
    case S_RELEASE:
    case S_MOVE:
    case S_STAGE: break;
    }
}

static void about_stmt(Stmt *stmt, void *data) {
    About *about = data;
    arena_count(about->arena, 1);
    const Unsafe *what = stmt->kind == S_UNSAFE ? stmt->unsafe : NULL;
    about->arrives |=
        what && what->kind == UNSAFE_ARRIVE && what->own && what->handle == about->handle;
    about->touches |=
        what && !(what->kind == UNSAFE_ARRIVE && what->own) && what->handle == about->handle;
    about->touches |= stmt->kind == S_ACQUIRE && stmt->acquire.handle == about->handle;
    about->touches |= stmt->kind == S_MOVE &&
                      (stmt->move.from == about->handle || stmt->move.to == about->handle);
    about->touches |= leaves(stmt, about->all);
    about_accesses(stmt, about);
}

/* The other end may continue after the last arrival: the stage is given up there. */
static void move_up(Stmts *list, size_t at, Arena *arena) {
    Stmt *release = list->items[at];
    About about = {.arena = arena, .handle = release->release.handle};
    size_t to = at;
    while (to > 0) {
        about.all = list->items[to - 1];
        stmt_visit(about.all, about_stmt, &about);
        if (about.arrives || about.touches) break;
        to--;
    }
    if (!about.arrives) return;
    for (size_t i = at; i > to; i--) list->items[i] = list->items[i - 1];
    list->items[to] = release;
}

static void move_all_up(Stmt *stmt, void *data) {
    if (stmt->kind != S_BLOCK) return;
    arena_count(data, stmt->block.body.count);
    for (size_t i = 0; i < stmt->block.body.count; i++) {
        const Stmt *inner = stmt->block.body.items[i];
        if (inner->kind == S_RELEASE && inner->release.silent) move_up(&stmt->block.body, i, data);
    }
}

void elab_order_releases(Arena *arena, Role *role) { stmt_visit(role->body, move_all_up, arena); }

/* ---- turns ----------------------------------------------------------------------------------- */

static void number_turn(Stmt *stmt, void *data) {
    Role *role = data;
    if (stmt->kind == S_BLOCK && stmt->block.turn) stmt->block.turn = ++role->turns;
}

void elab_number_turns(Role *role) { stmt_visit(role->body, number_turn, role); }
