/* Instances that take turns: places of `turn { }`, and the order in which the instances of a
 * role in turn acquire. Needs Code.
 *
 * Each `turn` has a token that is passed around the instances of a role: in each iteration each
 * instance gets it once. This holds if a turn is in the body of its loop without a condition, no
 * LEAVE before it goes to an enclosing region, and control leaves the turn and the loop only at
 * their ends. The loops of several turns may follow each other or be nested, since all instances
 * execute them equally often: then all execute the same turns in the same order, and the wait for
 * a turn always ends with one that comes earlier in this order, or of a lower rank. These are
 * properties of regions: no paths are followed. */
#include "check/passes.h"

typedef struct Acquire { /* in the loop over the grid of a role in turn */
    const Row *row;
    int pipe;
    End end;
    int turn;   /* the enclosing region, -1: none */
    Span cause; /* reason why it is not executed exactly once per iteration; empty: it is */
} Acquire;

typedef struct Turns {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    Role *role;
    const FlowCode *code;
    int grid;            /* the loop over it; -1: none */
    bool *owners;        /* by region: a loop whose iterations have turns */
    int *first;          /* by region: the first turn in it, -1: none */
    bool owned;          /* there is such a loop */
    const Row **outside; /* by pipe: acquires outside of the loop over the grid */
    const Row **inside;  /* and in it */
    const Row **left;    /* by region: the first LEAVE so far with this target */
    VEC(Acquire) acquires;
} Turns;

static Turns turns_of(Arena *arena, Prog *prog, Diags *diags, Role *role) {
    Turns turns = {.arena = arena, .prog = prog, .diags = diags, .role = role, .code = role->code};
    turns.grid = -1;
    turns.owners = NEW_ARRAY(arena, bool, role->code->regions.count + 1);
    turns.first = NEW_ARRAY(arena, int, role->code->regions.count + 1);
    for (size_t r = 0; r < role->code->regions.count; r++) turns.first[r] = -1;
    turns.inside = NEW_ARRAY(arena, const Row *, prog->pipes.count + 1);
    turns.outside = NEW_ARRAY(arena, const Row *, prog->pipes.count + 1);
    turns.left = NEW_ARRAY(arena, const Row *, role->code->regions.count + 1);
    return turns;
}

static int parent_of(const Turns *turns, int index) {
    return code_region(turns->code, index)->parent;
}

static void visit_leave(Turns *turns, const Row *row) {
    if (row->kind == ROW_LEAVE && !turns->left[row->target]) turns->left[row->target] = row;
}

static int pipe_of(const Turns *turns, const Row *row) { /* acquired by it, or -1 */
    if (row->kind != ROW_ACQUIRE || !valid_index(row->handle, turns->role->handles.count))
        return -1;
    int pipe = turns->role->handles.items[row->handle].pipe;
    return valid_index(pipe, turns->prog->pipes.count) ? pipe : -1;
}

/* ---- places of turns ------------------------------------------------------------------------- */

static void refuse_alone(Turns *turns, Span span, const char *what) {
    const Role *role = turns->role;
    Diag *diag = diag_at(turns->diags, P0404, span, "`%s` in a role of one instance", what);
    if (span.lo != role->span.lo)
        diag_label(turns->diags, diag, role->span, "this role is one instance of %d warp%s",
                   role->warps, role->warps == 1 ? "" : "s");
    diag_note(turns->diags, diag, "`n warpgroups` are n instances, `n warps` are one");
    diag_help(turns->diags, diag, "write `2 warpgroups`, or remove `%s`", what);
}

static void refuse_place(Turns *turns, const Region *turn, const Region *other, const char *why,
                         const char *label) {
    Diag *diag = diag_at(turns->diags, P0405, turn->head, "%s", why);
    diag_primary(turns->diags, diag, "each instance must execute it exactly once per iteration");
    if (other) diag_label(turns->diags, diag, other->head, "%s", label);
    if (other && other->kind == REGION_TURN) {
        diag_help(turns->diags, diag, "remove one of the two");
        return;
    }
    diag_help(turns->diags, diag,
              turns->role->in_turn ? "write `turn { .. }` directly in the body of the loop over "
                                     "the grid, around the statements that it orders"
                                   : "write `turn { .. }` directly in the body of a loop, around "
                                     "the statements that it orders");
}

static void refuse_past(Turns *turns, const Row *leave, const Region *turn, const char *why) {
    Diag *diag = diag_at(turns->diags, P0406, leave->span, "%s", why);
    diag_primary(turns->diags, diag, "leaves here");
    if (turn)
        diag_label(turns->diags, diag, turn->head,
                   "the instance would not pass on its turn, and the next one would wait forever");
    diag_help(turns->diags, diag,
              "put the condition around the tile statements only, or shorten the `range`");
    turns->role->forgotten = true; /* the number of its acquires is unknown */
}

static bool differs(const Expr *expr) {
    return expr && expr->kind != X_POISON && expr->uniformity != UNIFORM_ROLE;
}

static const Expr *control_that_differs(const Region *region) {
    const Expr *all[] = {region->condition, region->lo, region->hi, region->where};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (differs(all[i])) return all[i];
    return NULL;
}

/* The loop whose body contains a turn without a condition; -1 after a refusal */
static int loop_of(Turns *turns, int turn) {
    const Region *row = code_region(turns->code, turn);
    for (int at = row->parent; at >= 0; at = parent_of(turns, at))
        if (code_region(turns->code, at)->kind == REGION_TURN) {
            refuse_place(turns, row, code_region(turns->code, at),
                         "`turn` inside of another `turn`", "the outer `turn`");
            return -1;
        }
    for (int at = row->parent; at > 0; at = parent_of(turns, at)) {
        if (turns->left[at]) {
            refuse_past(turns, turns->left[at], row, "`turn` may be skipped");
            return -1;
        }
        if (region_loops(code_region(turns->code, at))) return at;
        if (code_region(turns->code, at)->kind != REGION_IF) continue;
        refuse_place(turns, row, code_region(turns->code, at), "`turn` under a condition",
                     "not true in every iteration");
        return -1;
    }
    refuse_place(turns, row, NULL, "`turn` outside of a loop", NULL);
    return -1;
}

static void refuse_control(Turns *turns, const Region *turn, const Region *around,
                           const Expr *cause) {
    Diag *diag = diag_at(turns->diags, P0405, turn->head,
                         "`turn` under a %s that differs between instances of `%s`",
                         around->kind == REGION_IF ? "condition" : "bound", turns->role->name);
    diag_primary(turns->diags, diag, "all instances must execute it equally often");
    diag_label(turns->diags, diag, cause->span, "differs between instances");
    diag_help(turns->diags, diag,
              around->kind == REGION_IF
                  ? "move the condition into the `turn`, around the tile statements"
                  : "loop equally often in all instances, with a condition inside of the `turn`, "
                    "around the tile statements");
}

static void place_turn(Turns *turns, int turn) {
    const Region *row = code_region(turns->code, turn);
    if (turns->role->instances < 2) {
        /* otherwise the role's head is refused */
        if (!turns->role->in_turn) refuse_alone(turns, row->head, "turn");
        return;
    }
    int loop = loop_of(turns, turn);
    if (loop < 0) return;
    if (turns->role->in_turn && code_region(turns->code, loop)->kind != REGION_GRID) {
        refuse_place(turns, row, code_region(turns->code, loop),
                     "`turn` of a role `in turn` in a loop that is not over the grid", "this one");
        return;
    }
    for (int at = row->parent; at >= 0; at = parent_of(turns, at)) {
        const Expr *cause = control_that_differs(code_region(turns->code, at));
        if (!cause) continue;
        refuse_control(turns, row, code_region(turns->code, at), cause);
        return;
    }
    turns->owners[loop] = turns->owned = true;
    if (turns->first[loop] < 0) turns->first[loop] = turn;
}

static void refuse_second_grid(Turns *turns, const Region *grid) {
    for (size_t p = 0; p < turns->prog->pipes.count; p++)
        if (turns->inside[p]) turns->prog->pipes.items[p].faulty = true;
    Diag *diag = diag_at(turns->diags, P0407, grid->head,
                         "a second loop over the grid in role `%s`", turns->role->name);
    diag_primary(turns->diags, diag, "a role `in turn` has exactly one loop over the grid");
    diag_label(turns->diags, diag, code_region(turns->code, turns->grid)->head, "the first one");
    diag_help(turns->diags, diag, "merge the two loops, or remove `in turn`");
}

static void visit_place(Turns *turns, const Row *row) {
    const Region *region = code_region(turns->code, row->region);
    int pipe = pipe_of(turns, row);
    if (row->kind == ROW_BLOCK && region->kind == REGION_TURN) place_turn(turns, row->region);
    visit_leave(turns, row);
    if (!turns->role->in_turn) return;
    if (pipe >= 0 && !row->every) {
        const Row **first =
            code_in_grid(turns->code, row->region) ? &turns->inside[pipe] : &turns->outside[pipe];
        if (!*first) *first = row;
    }
    if (row->kind != ROW_LOOP || region->kind != REGION_GRID) return;
    if (turns->grid >= 0)
        refuse_second_grid(turns, region);
    else
        turns->grid = row->region;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static void check_leave(Turns *turns, const Row *row) {
    const char *early = turns->role->in_turn
                            ? "a role `in turn` leaves its loop over the grid early"
                            : "a loop with a `turn` is left early";
    for (int at = row->region; at >= row->target; at = parent_of(turns, at)) {
        bool stays = at == row->target && row->again;
        if (at > row->target && code_region(turns->code, at)->kind == REGION_TURN) {
            refuse_past(turns, row, code_region(turns->code, at), "`turn` is left early");
            return;
        }
        if (turns->owners[at] && !stays) {
            int first = turns->first[at];
            refuse_past(turns, row, first < 0 ? NULL : code_region(turns->code, first), early);
            return;
        }
    }
}

/* ---- pipes ----------------------------------------------------------------------------------- */

static void check_pipes(Turns *turns) {
    for (size_t p = 0; p < turns->prog->pipes.count; p++) {
        if (!turns->inside[p] || !turns->outside[p]) continue;
        Diag *diag = diag_at(
            turns->diags, P0408, turns->outside[p]->head,
            "role `%s` acquires pipe `%s` both outside and inside of the loop over the grid",
            turns->role->name, turns->prog->pipes.items[p].name);
        diag_primary(turns->diags, diag, "this stage belongs to all instances");
        diag_label(turns->diags, diag, turns->inside[p]->head,
                   "this stage belongs to the instance that executes the iteration");
        diag_help(turns->diags, diag, "use two pipes, one for each");
        turns->prog->pipes.items[p].faulty = true;
    }
}

static void refuse_no_grid(Turns *turns) {
    Diag *diag =
        diag_at(turns->diags, P0407, turns->role->span,
                "role `%s` is `in turn`, but has no loop over the grid", turns->role->name);
    diag_primary(turns->diags, diag, "instance k executes iterations k, k + %d, .. of that loop",
                 turns->role->instances);
    diag_help(turns->diags, diag, "write `for (..) in grid`, or remove `in turn`");
}

static void check_role(Turns *turns) {
    const FlowCode *code = turns->code;
    const Role *role = turns->role;
    if (role->in_turn && role->instances < 2) refuse_alone(turns, role->span, "in turn");
    for (size_t at = 0; at < code->rows.count; at++) visit_place(turns, &code->rows.items[at]);
    if (role->in_turn && role->instances > 1) {
        if (turns->grid < 0 && !words_failed(turns->diags)) refuse_no_grid(turns);
        if (turns->grid >= 0) turns->owners[turns->grid] = turns->owned = true;
        check_pipes(turns);
    }
    for (size_t at = 0; at < code->rows.count && turns->owned; at++)
        if (code->rows.items[at].kind == ROW_LEAVE) check_leave(turns, &code->rows.items[at]);
}

void turns_check(Arena *arena, Prog *prog, Diags *diags) {
    for (size_t r = 0; r < prog->roles.count; r++) {
        Role *role = &prog->roles.items[r];
        if (!role->body || !role->pipes) continue;
        Turns turns = turns_of(arena, prog, diags, role);
        check_role(&turns);
    }
}

/* ---- order of acquires ----------------------------------------------------------------------- */

/* An instance that waits for stage m of a ring of N must know that stage m - N was completed:
 * otherwise its parity could be that of the previous lap. Instances that acquire in one turn are
 * ordered. Otherwise an instance knows the stage it took last, m - instances: that is the same
 * position of the ring, or a later one if the other end releases in order. */

static bool runs_once(const Region *region) {
    int64_t lo, hi;
    return region->kind == REGION_FOR && !region->where && expr_constant(region->lo, &lo) &&
           expr_constant(region->hi, &hi) && lo + 1 == hi;
}

static void visit_acquire(Turns *turns, const Row *row) {
    int pipe = pipe_of(turns, row);
    visit_leave(turns, row);
    if (pipe < 0 || !code_in_grid(turns->code, row->region)) return;
    Acquire acquire = {
        .row = row, .pipe = pipe, .end = turns->role->handles.items[row->handle].end, .turn = -1};
    for (int at = row->region; at > 0; at = parent_of(turns, at)) {
        const Region *region = code_region(turns->code, at);
        if (turns->left[at] && !acquire.cause.hi) acquire.cause = turns->left[at]->head;
        if (region->kind == REGION_TURN) acquire.turn = at;
        if (region->kind == REGION_GRID) break;
        bool decides =
            region->kind == REGION_IF || (region->kind == REGION_FOR && !runs_once(region));
        if (decides && !acquire.cause.hi) acquire.cause = region->head;
    }
    vec_push(turns->arena, &turns->acquires, acquire);
}

/* By blocks that hold no other stage of the pipe, by instances that all take part, and complete
 * when they signal */
static bool releases_in_order(const Role *role, int pipe) {
    int held = 0;
    if (!role->pipes || role->pipes[pipe].in_turn || role->pipes[pipe].agents & AGENTS_FILL)
        return false;
    for (size_t at = 0; at < role->code->rows.count; at++) {
        const Row *row = &role->code->rows.items[at];
        bool own = valid_index(row->handle, role->handles.count) &&
                   role->handles.items[row->handle].pipe == pipe;
        if (!own || row->leaving) continue;
        if (row->kind == ROW_ACQUIRE && (!row->block || held++ > 0)) return false;
        if (row->block && row_releases(row->kind)) held--;
    }
    return true;
}

static bool other_end_in_order(const Turns *turns, int pipe, End end) {
    const Pipe *row = &turns->prog->pipes.items[pipe];
    size_t roles = turns->prog->roles.count;
    if (end == END_CONSUME)
        return valid_index(row->producer, roles) &&
               releases_in_order(&turns->prog->roles.items[row->producer], pipe);
    for (size_t i = 0; i < row->consumers.count; i++)
        if (!valid_index(row->consumers.items[i], roles) ||
            !releases_in_order(&turns->prog->roles.items[row->consumers.items[i]], pipe))
            return false;
    return true;
}

static void refuse_order(Turns *turns, const Acquire *acquire, const Acquire *other) {
    Pipe *pipe = &turns->prog->pipes.items[acquire->pipe];
    int instances = turns->role->instances;
    Diag *diag = diag_at(turns->diags, P0454, acquire->row->head,
                         "instances of `%s` may acquire stages of `%s` out of order",
                         turns->role->name, pipe->name);
    if (acquire->cause.hi) {
        diag_primary(turns->diags, diag,
                     "not acquired exactly once per iteration, and outside of a `turn`");
        diag_label(turns->diags, diag, acquire->cause, "because of this");
    } else if (other) {
        diag_primary(
            turns->diags, diag,
            "one of several acquires per iteration, which are not all inside of one `turn`");
        diag_label(turns->diags, diag, other->row->head, "another acquire");
    } else {
        diag_primary(turns->diags, diag, "acquired outside of a `turn`");
        diag_label(turns->diags, diag, pipe->span,
                   pipe->stages < instances ? "%d stage%s for %d instances"
                                            : "%d stage%s are not a multiple of %d instances",
                   pipe->stages, pipe->stages == 1 ? "" : "s", instances);
    }
    diag_note(turns->diags, diag,
              "an instance that runs ahead could mistake the previous lap's stage for its own");
    int fits = (pipe->stages + instances - 1) / instances * instances;
    if (!acquire->cause.hi && !other)
        diag_help(turns->diags, diag,
                  "acquire it inside of `turn { }`, or give the ring %d stages: `pipe %s[%d]`",
                  fits, pipe->name, fits);
    else
        diag_help(turns->diags, diag, "acquire all stages of `%s` inside of one `turn { }`",
                  pipe->name);
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
        if (acquire->turn < 0 && !bare) bare = acquire;
        if (first->turn != acquire->turn && !bare) bare = acquire;
    }
    if (!bare) return;
    const Pipe *row = &turns->prog->pipes.items[pipe];
    int instances = turns->role->instances;
    bool deep = row->stages % instances == 0 ||
                (row->stages >= instances && other_end_in_order(turns, pipe, bare->end));
    if (!bare->cause.hi && !other && deep) return;
    refuse_order(turns, bare, bare == first ? other : first);
}

void turns_order(Arena *arena, Prog *prog, Diags *diags) {
    for (size_t r = 0; r < prog->roles.count; r++) {
        Role *role = &prog->roles.items[r];
        if (!role->in_turn || role->instances < 2 || !role->body || !role->pipes || role->forgotten)
            continue;
        Turns turns = turns_of(arena, prog, diags, role);
        for (size_t at = 0; at < role->code->rows.count; at++)
            visit_acquire(&turns, &role->code->rows.items[at]);
        for (size_t p = 0; p < prog->pipes.count; p++)
            if (role->pipes[p].in_turn && !prog->pipes.items[p].faulty) check_order(&turns, (int)p);
    }
}
