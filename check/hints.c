/* Hints are fresh: between a `try` and the acquire that its hint is given to, no path acquires that end of the pipe. Then the cursor stands
 * where it stood, and a stage that was ready is ready still: the other end cannot step on before this one has acquired and released it.
 * Comes in elaborated; goes out with that proved for each hint, or with both places. */
#include "check/stages.h"

#include <string.h>

typedef struct Fresh { /* one hint on one path */
    bool is;
    Span stale; /* the acquire, or step, that came between; empty: it was not asked */
    bool stepped;
} Fresh;

typedef struct Where { /* one path */
    bool live;
    Fresh *hints;
} Where;

typedef struct Around Around;
struct Around { /* something that a leave may target */
    Around *outer;
    const Stmt *stmt;
    Where breaks, continues;
};

typedef struct Walk {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    const Role *role;
    Around *around;
    bool quiet; /* looking for what holds at every iteration */
} Walk;

static void follow(Walk *walk, const Stmt *stmt, Where *here);

static Where copy(Walk *walk, const Where *from) {
    Where to = {from->live, NEW_ARRAY(walk->arena, Fresh, walk->role->hints.count)};
    memcpy(to.hints, from->hints, walk->role->hints.count * sizeof *to.hints);
    return to;
}

/* What holds on both paths; true: that is less than before */
static bool meet(Walk *walk, Where *to, const Where *from) {
    bool less = false;
    if (!from->live) return false;
    if (!to->live) {
        *to = copy(walk, from);
        return true;
    }
    for (size_t i = 0; i < walk->role->hints.count; i++) {
        if (!to->hints[i].is || from->hints[i].is) continue;
        to->hints[i] = from->hints[i];
        less = true;
    }
    return less;
}

/* ---- events --------------------------------------------------------------------------------------------------------- */

static void refuse_stale(Walk *walk, const Hint *hint, const Fresh *fresh, Span span) {
    Diag *diag =
        diag_at(walk->diags, P0332, span,
                fresh->stale.hi ? "hint `%s` is stale" : "hint `%s` is not asked for on every path", hint->name);
    diag_primary(walk->diags, diag, "acquires the next stage of `%s`", walk->prog->pipes.items[hint->pipe].name);
    if (fresh->stale.hi && fresh->stale.lo != span.lo)
        diag_label(walk->diags, diag, fresh->stale, "this %s took the stage that `%s` tells of",
                   fresh->stepped ? "step" : "acquire", hint->name);
    diag_label(walk->diags, diag, hint->span,
               fresh->stale.lo == span.lo && fresh->stale.hi ? "of the stage that was taken in the iteration before"
                                                             : "declared here");
    diag_help(walk->diags, diag, "ask again before it: `%s%s = try %s <%s>;`", hint->variable ? "" : "let ", hint->variable ? hint->name : "again",
              word_of(hint->end), walk->prog->pipes.items[hint->pipe].name);
}

/* The end of the pipe steps on here. */
static void stale(const Walk *walk, int pipe, End end, Span span, bool stepped, Where *here) {
    for (size_t i = 0; i < walk->role->hints.count; i++)
        if (walk->role->hints.items[i].pipe == pipe && walk->role->hints.items[i].end == end && here->hints[i].is)
            here->hints[i] = (Fresh){.stale = span, .stepped = stepped};
}

static void acquire(Walk *walk, const Stmt *stmt, int handle, int hint, Where *here) {
    if (!valid_index(handle, walk->role->handles.count)) return;
    const Handle *what = &walk->role->handles.items[handle];
    if (hint >= 0 && !here->hints[hint].is && !walk->quiet && walk->role->hints.items[hint].pipe >= 0)
        refuse_stale(walk, &walk->role->hints.items[hint], &here->hints[hint], stmt->head);
    stale(walk, what->pipe, what->end, stmt->head, false, here);
}

static void leave(Walk *walk, const Stmt *stmt, Where *here) {
    Around *around = walk->around;
    while (around && around->stmt != stmt->leave.target) around = around->outer;
    if (around) meet(walk, stmt->leave.kind == LEAVE_CONTINUE ? &around->continues : &around->breaks, here);
    here->live = false;
}

/* ---- compound statements -------------------------------------------------------------------------------------------- */

static void list(Walk *walk, const Stmt *stmt, Where *here) {
    Around around = {.outer = walk->around, .stmt = stmt};
    walk->around = &around;
    for (size_t i = 0; i < stmt->block.body.count && here->live; i++) follow(walk, stmt->block.body.items[i], here);
    walk->around = around.outer;
    meet(walk, here, &around.breaks);
}

/* One iteration from `here`, which becomes what holds at its end; what holds at breaks is met into `after` */
static void iteration(Walk *walk, const Stmt *loop, const Stmt *body, Where *here, Where *after) {
    Around around = {.outer = walk->around, .stmt = loop};
    walk->around = &around;
    follow(walk, body, here);
    walk->around = around.outer;
    meet(walk, here, &around.continues);
    meet(walk, after, &around.breaks);
}

/* What holds at the head of every iteration is found by going round until it becomes no less, then said once. */
static void loop(Walk *walk, const Stmt *stmt, const Stmt *body, Where *here) {
    bool quiet = walk->quiet, less = true;
    Where head = copy(walk, here);
    while (less) {
        Where end = copy(walk, &head), ignored = {0};
        walk->quiet = true;
        iteration(walk, stmt, body, &end, &ignored);
        less = meet(walk, &head, &end);
    }
    walk->quiet = quiet;
    Where end = copy(walk, &head);
    *here = head;
    iteration(walk, stmt, body, &end, here);
}

static void branch(Walk *walk, const Stmt *stmt, Where *here) {
    Where other = copy(walk, here);
    if (stmt->branch.then) follow(walk, stmt->branch.then, here);
    if (stmt->branch.otherwise) follow(walk, stmt->branch.otherwise, &other);
    meet(walk, here, &other);
}

static void follow(Walk *walk, const Stmt *stmt, Where *here) {
    switch (stmt->kind) {
    case S_BLOCK: list(walk, stmt, here); break;
    case S_GRID: loop(walk, stmt, stmt->grid.body, here); break;
    case S_FOR: loop(walk, stmt, stmt->loop.body, here); break;
    case S_IF: branch(walk, stmt, here); break;
    case S_LEAVE: leave(walk, stmt, here); break;
    case S_TRY: here->hints[stmt->ask.hint] = (Fresh){.is = true}; break;
    case S_ACQUIRE: acquire(walk, stmt, stmt->acquire.handle, stmt->acquire.hint, here); break;
    case S_STAGE:
        acquire(walk, stmt, stmt->stage.handle, stmt->stage.hint, here);
        follow(walk, stmt->stage.body, here);
        break;
    case S_UNSAFE:
        if (stmt->unsafe->kind == UNSAFE_STEP) stale(walk, stmt->unsafe->pipe, stmt->unsafe->end, stmt->span, true, here);
        break;
    case S_SCALAR:
    case S_TILE:
    case S_RELEASE:
    case S_MOVE: break;
    }
}

/* Of instances that take turns, one that asks early may find the stage of the round before, which another has not taken yet. */
static void refuse_in_turn(const Walk *walk) {
    const Hint *hint = &walk->role->hints.items[0];
    Diag *diag =
        diag_at(walk->diags, P0333, hint->span, "`try` in role `%s`, whose instances take turns", walk->role->name);
    diag_primary(walk->diags, diag, "the stage that is asked about may be another instance's");
    diag_label(walk->diags, diag, walk->role->span, "instance k takes iterations k, k + %d, ..", walk->role->instances);
    diag_help(walk->diags, diag, "leave it out: an acquire does not wait where its stage is ready");
}

void hints_check(Arena *arena, Prog *prog, Diags *diags) {
    for (size_t r = 0; r < prog->roles.count; r++) {
        const Role *role = &prog->roles.items[r];
        Walk walk = {.arena = arena, .prog = prog, .diags = diags, .role = role};
        if (!role->hints.count || !role->body) continue;
        if (role->in_turn) {
            refuse_in_turn(&walk);
            continue;
        }
        Where here = {true, NEW_ARRAY(arena, Fresh, role->hints.count)};
        follow(&walk, role->body, &here);
    }
}
