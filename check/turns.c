/* Instances that take turns: where `turn { }` may stand, and in which order the instances of a role in turn acquire. Comes in
 * elaborated, later with the uses of pipes known; goes out with the blocks numbered and the pipes marked whose stages are one
 * instance's.
 *
 * A token goes round the instances of a role: in each iteration that they take it comes to each once. That holds where nothing leads
 * past a `turn`, and the loop around it ends for all instances alike. */
#include "check/passes.h"

typedef struct Around Around; /* what a statement stands in */
struct Around {
    const Around *outer;
    Stmt *stmt;
};

typedef struct Acquire { /* in the loop over the grid of a role in turn */
    Stmt *stmt;
    int pipe;
    End end;
    const Stmt *turn;  /* around it, or NULL */
    const Stmt *cause; /* why it is not made exactly once an iteration, or NULL */
} Acquire;

typedef struct Turns Turns;
struct Turns {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    Role *role;
    void (*visit)(Turns *, Stmt *, const Around *);
    Stmt *grid;         /* the loop over it */
    Stmt *owner;        /* the loop whose iterations the turns belong to */
    Stmt *first;        /* turn in it */
    Stmt **outside;     /* by pipe: acquired outside of the loop over the grid, */
    Stmt **inside;      /* and in it */
    VEC(Stmt *) leaves; /* met so far */
    VEC(Acquire) acquires;
};

static bool is_loop(const Stmt *stmt) { return stmt->kind == S_FOR || stmt->kind == S_GRID; }
static bool is_turn(const Stmt *stmt) { return stmt->kind == S_BLOCK && stmt->block.turn; }

static void walk(Turns *turns, Stmt *stmt, const Around *outer) {
    Around here = {outer, stmt};
    if (!stmt) return;
    turns->visit(turns, stmt, outer);
    switch (stmt->kind) {
    case S_BLOCK:
        for (size_t i = 0; i < stmt->block.body.count; i++) walk(turns, stmt->block.body.items[i], &here);
        break;
    case S_GRID: walk(turns, stmt->grid.body, &here); break;
    case S_FOR: walk(turns, stmt->loop.body, &here); break;
    case S_IF:
        walk(turns, stmt->branch.then, &here);
        walk(turns, stmt->branch.otherwise, &here);
        break;
    case S_STAGE: walk(turns, stmt->stage.body, &here); break;
    case S_SCALAR:
    case S_TILE:
    case S_LEAVE:
    case S_TRY:
    case S_ACQUIRE:
    case S_RELEASE:
    case S_UNSAFE:
    case S_MOVE: break;
    }
}

static void start(Turns *turns, void (*visit)(Turns *, Stmt *, const Around *)) {
    turns->visit = visit;
    turns->leaves.count = 0;
    walk(turns, turns->role->body, NULL);
}

/* A leave before it, out of something that it stands in: then control may pass it by */
static Stmt *leave_past(const Turns *turns, const Stmt *target) {
    for (size_t i = 0; i < turns->leaves.count; i++)
        if (turns->leaves.items[i]->leave.target == target) return turns->leaves.items[i];
    return NULL;
}

/* ---- where a turn stands --------------------------------------------------------------------------------------------- */

static void refuse_alone(Turns *turns, Span span, const char *what) {
    const Role *role = turns->role;
    Diag *diag = diag_at(turns->diags, P0404, span, "`%s` in a role of one instance", what);
    if (span.lo != role->span.lo)
        diag_label(turns->diags, diag, role->span, "one instance of %d warp%s", role->warps,
                   role->warps == 1 ? "" : "s");
    diag_note(turns->diags, diag, "instances take turns, and `n warpgroups` are n instances; `n warps` are one");
    diag_help(turns->diags, diag, "write `2 warpgroups`, or leave out `%s`", what);
}

static void refuse_place(Turns *turns, const Stmt *turn, const Stmt *other, const char *why, const char *label) {
    Diag *diag = diag_at(turns->diags, P0405, turn->head, "%s", why);
    diag_primary(turns->diags, diag, "each instance executes it once in every iteration that it takes");
    if (other) diag_label(turns->diags, diag, other->head, "%s", label);
    diag_help(turns->diags, diag,
              turns->role->in_turn ? "put it into the body of the loop over the grid, with what it orders inside"
                                   : "put it into the body of a loop, with what it orders inside");
}

static void refuse_past(Turns *turns, const Stmt *leave, const Stmt *turn, const char *why) {
    Diag *diag = diag_at(turns->diags, P0406, leave->span, "%s", why);
    diag_primary(turns->diags, diag, "leaves here");
    if (turn)
        diag_label(turns->diags, diag, turn->head, "the turn would not be passed on as often as it is waited for");
    diag_help(turns->diags, diag, "put the condition around the tile statements, or shorten the `range`");
    turns->role->forgotten = true; /* how often it acquires is not what was meant */
}

static bool differs(const Expr *expr) { return expr && expr->kind != X_POISON && expr->uniformity != UNIFORM_ROLE; }

static const Expr *control_that_differs(const Stmt *stmt) {
    if (stmt->kind == S_IF) return differs(stmt->branch.condition) ? stmt->branch.condition : NULL;
    if (stmt->kind != S_FOR) return NULL;
    return differs(stmt->loop.lo)      ? stmt->loop.lo
           : differs(stmt->loop.hi)    ? stmt->loop.hi
           : differs(stmt->loop.where) ? stmt->loop.where
                                       : NULL;
}

/* The loop in whose body a turn stands under no condition; NULL after a refusal */
static Stmt *loop_of(Turns *turns, const Stmt *turn, const Around *outer) {
    for (const Around *at = outer; at; at = at->outer)
        if (is_turn(at->stmt)) {
            refuse_place(turns, turn, at->stmt, "a `turn` inside of another", "this one");
            return NULL;
        }
    for (const Around *at = outer; at; at = at->outer) {
        Stmt *leave = leave_past(turns, at->stmt);
        if (leave) {
            refuse_past(turns, leave, turn, "a `turn` is passed by");
            return NULL;
        }
        if (is_loop(at->stmt)) return at->stmt;
        if (at->stmt->kind != S_IF) continue;
        refuse_place(turns, turn, at->stmt, "a `turn` under a condition", "not in every iteration");
        return NULL;
    }
    refuse_place(turns, turn, NULL, "a `turn` outside of a loop", NULL);
    return NULL;
}

static void place_turn(Turns *turns, Stmt *turn, const Around *outer) {
    turn->block.turn = ++turns->role->turns;
    if (turns->role->instances < 2) {
        if (!turns->role->in_turn) refuse_alone(turns, turn->head, "turn"); /* else the role's head is refused */
        return;
    }
    Stmt *loop = loop_of(turns, turn, outer);
    if (!loop) return;
    if (turns->role->in_turn && loop->kind != S_GRID) {
        refuse_place(turns, turn, loop, "a `turn` of a role in turn stands in a loop that is not over the grid",
                     "this one");
        return;
    }
    if (turns->owner && turns->owner != loop) {
        refuse_place(turns, turn, turns->owner, "the turns of a role stand in two different loops",
                     "the first `turn` is in this one");
        return;
    }
    for (const Around *at = outer; at; at = at->outer) {
        const Expr *cause = control_that_differs(at->stmt);
        if (!cause) continue;
        Diag *diag =
            diag_at(turns->diags, P0405, turn->head, "a `turn` under a %s that differs between instances of `%s`",
                    at->stmt->kind == S_IF ? "condition" : "bound", turns->role->name);
        diag_primary(turns->diags, diag, "all instances take part in it equally often");
        diag_label(turns->diags, diag, cause->span, "differs between instances");
        diag_help(turns->diags, diag, "put the condition inside, around the tile statements");
        return;
    }
    if (!turns->owner) turns->owner = loop, turns->first = turn;
}

static void refuse_second_grid(Turns *turns, const Stmt *grid) {
    for (size_t p = 0; p < turns->prog->pipes.count; p++)
        if (turns->inside[p]) turns->prog->pipes.items[p].faulty = true;
    Diag *diag =
        diag_at(turns->diags, P0407, grid->head, "a second loop over the grid in role `%s`", turns->role->name);
    diag_primary(turns->diags, diag, "which instance would begin?");
    diag_label(turns->diags, diag, turns->grid->head, "the first one");
    diag_help(turns->diags, diag, "put both into one loop, or leave out `in turn`");
}

static int acquired(const Turns *turns, const Stmt *stmt) {
    int handle = stmt->kind == S_ACQUIRE ? stmt->acquire.handle : stmt->kind == S_STAGE ? stmt->stage.handle : -1;
    if (!valid_index(handle, turns->role->handles.count)) return -1;
    return valid_index(turns->role->handles.items[handle].pipe, turns->prog->pipes.count) ? handle : -1;
}

static bool in_grid(const Around *outer) {
    for (const Around *at = outer; at; at = at->outer)
        if (at->stmt->kind == S_GRID) return true;
    return false;
}

static void visit_places(Turns *turns, Stmt *stmt, const Around *outer) {
    int handle = acquired(turns, stmt);
    if (is_turn(stmt)) place_turn(turns, stmt, outer);
    if (stmt->kind == S_LEAVE) vec_push(turns->arena, &turns->leaves, stmt);
    if (!turns->role->in_turn) return;
    if (handle >= 0) {
        int pipe = turns->role->handles.items[handle].pipe;
        Stmt **first = in_grid(outer) ? &turns->inside[pipe] : &turns->outside[pipe];
        if (!*first) *first = stmt;
    }
    if (stmt->kind != S_GRID) return;
    if (turns->grid)
        refuse_second_grid(turns, stmt);
    else
        turns->grid = stmt;
}

/* ---- leaves ----------------------------------------------------------------------------------------------------------- */

static void visit_leaves(Turns *turns, Stmt *stmt, const Around *outer) {
    if (stmt->kind != S_LEAVE) return;
    for (const Around *at = outer; at && at->stmt != stmt->leave.target; at = at->outer) {
        if (is_turn(at->stmt)) {
            refuse_past(turns, stmt, at->stmt, "a `turn` is left early");
            return;
        }
        if (at->stmt == turns->owner) {
            refuse_past(turns, stmt, turns->first,
                        turns->role->in_turn ? "the loop over the grid of a role in turn is left early"
                                             : "a loop with a `turn` is left early");
            return;
        }
    }
    if (stmt->leave.kind != LEAVE_BREAK || !stmt->leave.target || stmt->leave.target != turns->owner) return;
    refuse_past(turns, stmt, turns->first,
                turns->role->in_turn ? "the loop over the grid of a role in turn is left early"
                                     : "a loop with a `turn` is left early");
}

/* ---- pipes ------------------------------------------------------------------------------------------------------------ */

static void mark_pipes(Turns *turns) {
    for (size_t p = 0; p < turns->prog->pipes.count; p++) {
        turns->role->pipes[p].in_turn = turns->inside[p] != NULL;
        if (!turns->inside[p] || !turns->outside[p]) continue;
        Diag *diag = diag_at(turns->diags, P0408, turns->outside[p]->head,
                             "role `%s` acquires pipe `%s` outside and inside of the loop over the grid",
                             turns->role->name, turns->prog->pipes.items[p].name);
        diag_primary(turns->diags, diag, "this stage is for all instances");
        diag_label(turns->diags, diag, turns->inside[p]->head,
                   "and this one for the instance that takes the iteration");
        diag_help(turns->diags, diag, "use two pipes");
        turns->prog->pipes.items[p].faulty = true;
    }
}

static void check_role(Arena *arena, Prog *prog, Diags *diags, Role *role) {
    Turns turns = {.arena = arena, .prog = prog, .diags = diags, .role = role};
    turns.inside = NEW_ARRAY(arena, Stmt *, prog->pipes.count + 1);
    turns.outside = NEW_ARRAY(arena, Stmt *, prog->pipes.count + 1);
    if (role->in_turn && role->instances < 2) refuse_alone(&turns, role->span, "in turn");
    start(&turns, visit_places);
    if (role->in_turn && role->instances > 1) {
        if (!turns.grid && !words_failed(diags)) {
            Diag *diag =
                diag_at(diags, P0407, role->span, "role `%s` takes turns, and has no loop over the grid", role->name);
            diag_primary(diags, diag, "instance k takes iterations k, k + %d, .. of it", role->instances);
            diag_help(diags, diag, "write `for (..) in grid`, or leave out `in turn`");
        }
        turns.owner = turns.grid;
        mark_pipes(&turns);
    }
    if (turns.owner) start(&turns, visit_leaves);
}

void turns_check(Arena *arena, Prog *prog, Diags *diags) {
    for (size_t r = 0; r < prog->roles.count; r++)
        if (prog->roles.items[r].body && prog->roles.items[r].pipes)
            check_role(arena, prog, diags, &prog->roles.items[r]);
}

/* ---- who acquires first ----------------------------------------------------------------------------------------------- */

/* An instance that waits for stage m of a ring of N must know that stage m - N has been there: else the parity that it waits for is
 * that of the round before. Instances that acquire inside of one turn follow one another. Else an instance knows the stage it took
 * last, m - instances: that is the same place of the ring, or a later one where the other end releases in order. */

static bool runs_once(const Stmt *stmt) {
    int64_t lo, hi;
    return stmt->kind == S_FOR && !stmt->loop.where && expr_constant(stmt->loop.lo, &lo) && expr_constant(stmt->loop.hi, &hi) &&
           lo + 1 == hi;
}

static void visit_acquires(Turns *turns, Stmt *stmt, const Around *outer) {
    int handle = acquired(turns, stmt);
    if (stmt->kind == S_LEAVE) vec_push(turns->arena, &turns->leaves, stmt);
    if (handle < 0 || !in_grid(outer)) return;
    Acquire acquire = {
        .stmt = stmt, .pipe = turns->role->handles.items[handle].pipe, .end = turns->role->handles.items[handle].end};
    for (const Around *at = outer; at; at = at->outer) {
        Stmt *leave = leave_past(turns, at->stmt);
        if (leave && !acquire.cause) acquire.cause = leave;
        if (is_turn(at->stmt)) acquire.turn = at->stmt;
        if (at->stmt->kind == S_GRID) break;
        if ((at->stmt->kind == S_FOR || at->stmt->kind == S_IF) && !runs_once(at->stmt) && !acquire.cause) acquire.cause = at->stmt;
    }
    vec_push(turns->arena, &turns->acquires, acquire);
}

typedef struct Order {
    const Role *role;
    int pipe;
    int blocks; /* of the pipe */
    bool disorder;
} Order;

static void count_block(Stmt *stmt, void *data) {
    Order *order = data;
    if (stmt->kind == S_STAGE && valid_index(stmt->stage.handle, order->role->handles.count))
        order->blocks += order->role->handles.items[stmt->stage.handle].pipe == order->pipe;
}

static void find_disorder(Stmt *stmt, void *data) {
    Order *order = data, inner = {order->role, order->pipe, 0, false};
    if (stmt->kind == S_ACQUIRE && valid_index(stmt->acquire.handle, order->role->handles.count))
        order->disorder |= order->role->handles.items[stmt->acquire.handle].pipe == order->pipe;
    if (stmt->kind != S_STAGE) return;
    count_block(stmt, &inner);
    if (!inner.blocks) return;
    stmt_visit(stmt->stage.body, count_block, &inner);
    order->disorder |= inner.blocks > 1;
}

/* By blocks that hold no other stage of the pipe, by instances that all take part, and complete when it is signalled */
static bool releases_in_order(const Role *role, int pipe) {
    Order order = {role, pipe, 0, false};
    if (!role->pipes || role->pipes[pipe].in_turn || role->pipes[pipe].tensor_in || role->pipes[pipe].lanes_in)
        return false;
    stmt_visit(role->body, find_disorder, &order);
    return !order.disorder;
}

static bool other_end_in_order(const Turns *turns, int pipe, End end) {
    const Pipe *row = &turns->prog->pipes.items[pipe];
    size_t roles = turns->prog->roles.count;
    if (end == END_CONSUME)
        return valid_index(row->producer, roles) && releases_in_order(&turns->prog->roles.items[row->producer], pipe);
    for (size_t i = 0; i < row->consumers.count; i++)
        if (!valid_index(row->consumers.items[i], roles) ||
            !releases_in_order(&turns->prog->roles.items[row->consumers.items[i]], pipe))
            return false;
    return true;
}

static void refuse_order(Turns *turns, const Acquire *acquire, const Acquire *other) {
    Pipe *pipe = &turns->prog->pipes.items[acquire->pipe];
    int instances = turns->role->instances;
    Diag *diag =
        diag_at(turns->diags, P0454, acquire->stmt->head,
                "instances of `%s` may acquire stages of `%s` out of their order", turns->role->name, pipe->name);
    if (acquire->cause) {
        diag_primary(turns->diags, diag, "not exactly once in an iteration, and not inside of a `turn`");
        diag_label(turns->diags, diag, acquire->cause->head, "because of this");
    } else if (other) {
        diag_primary(turns->diags, diag, "one of several in an iteration, and not all inside of one `turn`");
        diag_label(turns->diags, diag, other->stmt->head, "another one");
    } else {
        diag_primary(turns->diags, diag, "not inside of a `turn`");
        diag_label(turns->diags, diag, pipe->span,
                   pipe->stages < instances ? "%d stage%s for %d instances"
                                            : "%d stage%s are no multiple of %d instances",
                   pipe->stages, pipe->stages == 1 ? "" : "s", instances);
    }
    diag_note(turns->diags, diag,
              "an instance that waits ahead of the others would take a stage of the round before for its own");
    int fits = (pipe->stages + instances - 1) / instances * instances;
    if (!acquire->cause && !other)
        diag_help(turns->diags, diag, "acquire it inside of `turn { }`, or give the ring %d stages: `pipe %s[%d]`",
                  fits, pipe->name, fits);
    else
        diag_help(turns->diags, diag, "acquire all stages of `%s` inside of one `turn { }`", pipe->name);
    pipe->faulty = true;
}

static void check_order(Turns *turns, int pipe) {
    const Acquire *first = NULL, *other = NULL, *bare = NULL;
    for (size_t i = 0; i < turns->acquires.count; i++) {
        const Acquire *acquire = &turns->acquires.items[i];
        if (acquire->pipe != pipe) continue;
        if (!first)
            first = acquire;
        else if (!other)
            other = acquire;
        if (!acquire->turn && !bare) bare = acquire;
        if (first->turn != acquire->turn && !bare) bare = acquire;
    }
    if (!bare) return;
    const Pipe *row = &turns->prog->pipes.items[pipe];
    int instances = turns->role->instances;
    bool deep =
        row->stages % instances == 0 || (row->stages >= instances && other_end_in_order(turns, pipe, bare->end));
    if (!bare->cause && !other && deep) return;
    refuse_order(turns, bare, bare == first ? other : first);
}

void turns_order(Arena *arena, Prog *prog, Diags *diags) {
    for (size_t r = 0; r < prog->roles.count; r++) {
        Role *role = &prog->roles.items[r];
        if (!role->in_turn || role->instances < 2 || !role->body || !role->pipes || role->forgotten) continue;
        Turns turns = {.arena = arena, .prog = prog, .diags = diags, .role = role};
        start(&turns, visit_acquires);
        for (size_t p = 0; p < prog->pipes.count; p++)
            if (role->pipes[p].in_turn && !prog->pipes.items[p].faulty) check_order(&turns, (int)p);
    }
}
