/* Hints must be fresh: on no path between a `try` and the acquire that uses its hint is that end
 * of the pipe acquired. Then the cursor has not moved, and a stage that was ready still is: the
 * other end cannot advance before this one has acquired and released it. Needs elaborate; proves
 * this for each hint, or reports both places. */
#include "check/passes.h"
#include "flow/solve.h"

#include <string.h>

typedef struct Fresh { /* one hint on one path */
    bool is;
    Span stale; /* the acquire, or step, in between; empty: no `try` */
    bool stepped;
} Fresh;

typedef struct Hints {
    const Prog *prog;
    const Role *role;
    Diags *diags;
} Hints;

static void refuse_stale(const Hints *h, const Hint *hint, const Fresh *fresh, Span span) {
    Diag *diag = diag_at(
        h->diags, P0332, span,
        fresh->stale.hi ? "hint `%s` is stale" : "hint `%s` is not set on every path", hint->name);
    diag_primary(h->diags, diag, "this acquires the next stage of `%s`",
                 h->prog->pipes.items[hint->pipe].name);
    if (fresh->stale.hi && fresh->stale.lo != span.lo)
        diag_label(h->diags, diag, fresh->stale,
                   "this %s already took the stage that `%s` is about",
                   fresh->stepped ? "step" : "acquire", hint->name);
    diag_label(h->diags, diag, hint->span,
               fresh->stale.lo == span.lo && fresh->stale.hi
                   ? "set for a stage that the previous iteration took"
                   : "declared here");
    diag_help(h->diags, diag, "set it again before this: `%s%s = try %s <%s>;`",
              hint->variable ? "" : "let ", hint->variable ? hint->name : "again",
              word_of(hint->end), h->prog->pipes.items[hint->pipe].name);
}

/* ---- the rule: a state has a Fresh for each hint --------------------------------------------- */

static void *start(Flow *flow) {
    return NEW_ARRAY(flow->arena, Fresh, flow->code->role->hints.count);
}

static void *copy(Flow *flow, const void *state) {
    Fresh *made = start(flow);
    memcpy(made, state, flow->code->role->hints.count * sizeof *made);
    return made;
}

/* A hint is fresh after a join if it is on all paths. The effect of a `try` or acquire does not
 * depend on the state before, so a second iteration of a loop finds no more than the first. */
static bool join(Flow *flow, void *to, const void *from, int at, int source) {
    Fresh *hints = to;
    const Fresh *others = from;
    (void)at, (void)source;
    for (size_t i = 0; i < flow->code->role->hints.count; i++)
        if (hints[i].is && !others[i].is) hints[i] = others[i];
    return false;
}

/* The end of the pipe advances. */
static void stale(const Role *role, int pipe, End end, Span span, bool stepped, Fresh *hints) {
    for (size_t i = 0; i < role->hints.count; i++)
        if (role->hints.items[i].pipe == pipe && role->hints.items[i].end == end && hints[i].is)
            hints[i] = (Fresh){.stale = span, .stepped = stepped};
}

static void acquire(Flow *flow, const Row *row, Fresh *hints) {
    const Hints *h = flow->data;
    if (!valid_index(row->handle, h->role->handles.count)) return;
    const Handle *what = &h->role->handles.items[row->handle];
    if (row->hint >= 0 && !hints[row->hint].is && flow->last &&
        h->role->hints.items[row->hint].pipe >= 0)
        refuse_stale(h, &h->role->hints.items[row->hint], &hints[row->hint], row->head);
    stale(h->role, what->pipe, what->end, row->head, false, hints);
}

static void ask_row(Flow *flow, int at, void *hints) {
    ((Fresh *)hints)[code_row(flow->code, at)->hint] = (Fresh){.is = true};
}

static void acquire_row(Flow *flow, int at, void *hints) {
    acquire(flow, code_row(flow->code, at), hints);
}

static void step_row(Flow *flow, int at, void *hints) {
    const Row *row = code_row(flow->code, at);
    stale(flow->code->role, row->unsafe->pipe, row->unsafe->end, row->span, true, hints);
}

static const Rule rule = {
    .name = "hints",
    .start = start,
    .copy = copy,
    .join = join,
    .on = {.stage = {[STAGE_ASK] = ask_row, [STAGE_TAKE] = acquire_row, [STAGE_STEP] = step_row}}};

/* If instances take turns, an early `try` may find the stage of the previous lap, which another
 * instance has not acquired yet. */
static void refuse_in_turn(const Hints *h) {
    const Hint *hint = &h->role->hints.items[0];
    Diag *diag = diag_at(h->diags, P0333, hint->span,
                         "`try` in role `%s`, whose instances take turns", h->role->name);
    diag_primary(h->diags, diag, "the stage may belong to another instance");
    diag_label(h->diags, diag, h->role->span, "instance k executes iterations k, k + %d, ..",
               h->role->instances);
    diag_help(h->diags, diag, "remove the `try`: an acquire does not wait when its stage is ready");
}

void hints_check(Arena *arena, Prog *prog, Diags *diags) {
    for (size_t r = 0; r < prog->roles.count; r++) {
        const Role *role = &prog->roles.items[r];
        Hints hints = {.prog = prog, .role = role, .diags = diags};
        if (!role->hints.count || !role->body) continue;
        if (role->in_turn)
            refuse_in_turn(&hints);
        else
            solve(arena, role->code, &rule, &hints);
    }
}
