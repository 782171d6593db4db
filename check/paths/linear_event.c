/* Transitions of a stage variable as data: state x event -> next state, or the code of the
 * error. */
#include "check/paths/linear.h"

#include <assert.h>

#define FINE CODE_COUNT

typedef struct Transition {
    StageState next;
    Code code;
} Transition;

/* Missing pairs cannot occur: elaborate refuses a use of a stage before its acquire and an
 * acquire into the name of a block; ends of scopes are events of held stages only; poison stays
 * poison. */
static const Transition matrix[STATE_COUNT][EVENT_COUNT] = {
    [STATE_FREE] =
        {
            [EVENT_ACQUIRE] = {STATE_HELD, FINE},
            [EVENT_MOVE_IN] = {STATE_HELD, FINE},
        },
    [STATE_HELD] =
        {
            [EVENT_ACQUIRE] = {STATE_POISON, P0305},
            [EVENT_USE] = {STATE_HELD, FINE},
            [EVENT_RELEASE] = {STATE_RELEASED, FINE},
            [EVENT_MOVE_OUT] = {STATE_MOVED, FINE},
            [EVENT_MOVE_IN] = {STATE_POISON, P0305},
            [EVENT_SCOPE_END] = {STATE_POISON, P0301},
            [EVENT_LEAVE] = {STATE_POISON, P0306},
        },
    [STATE_BLOCK] =
        {
            [EVENT_USE] = {STATE_BLOCK, FINE},
            [EVENT_RELEASE] = {STATE_POISON, P0308},
            [EVENT_MOVE_OUT] = {STATE_POISON, P0308},
        },
    [STATE_RELEASED] =
        {
            [EVENT_ACQUIRE] = {STATE_HELD, FINE},
            [EVENT_USE] = {STATE_POISON, P0303},
            [EVENT_RELEASE] = {STATE_POISON, P0302},
            [EVENT_MOVE_OUT] = {STATE_POISON, P0303},
            [EVENT_MOVE_IN] = {STATE_HELD, FINE},
        },
    [STATE_MOVED] =
        {
            [EVENT_ACQUIRE] = {STATE_HELD, FINE},
            [EVENT_USE] = {STATE_POISON, P0304},
            [EVENT_RELEASE] = {STATE_POISON, P0304},
            [EVENT_MOVE_OUT] = {STATE_POISON, P0304},
            [EVENT_MOVE_IN] = {STATE_HELD, FINE},
        },
};

void linear_fault(Linear *linear, int handle) {
    int pipe = linear->role->handles.items[handle].pipe;
    if (linear->last) linear->prog->pipes.items[pipe].faulty = true;
}

const Hold *linear_hold(const Linear *linear, const Path *path, int handle) {
    if (!valid_index(handle, linear->role->handles.count) || linear->slot[handle] < 0) return NULL;
    size_t slot = (size_t)linear->slot[handle];
    return slot < path->count && path_hold(path, slot)->handle == handle ? path_hold(path, slot)
                                                                         : NULL;
}

Hold *linear_change(Linear *linear, Path *path, int handle) {
    return path_change(linear, path, (size_t)linear->slot[handle]);
}

Span linear_span(const Linear *linear, int row) { return linear->code->rows.items[row].span; }

static const char *verb_of(StageEvent event) {
    switch (event) {
    case EVENT_USE: return "used";
    case EVENT_RELEASE: return "released";
    case EVENT_MOVE_OUT: return "moved";
    case EVENT_ACQUIRE:
    case EVENT_MOVE_IN:
    case EVENT_SCOPE_END:
    case EVENT_LEAVE:
    case EVENT_COUNT: break;
    }
    return "left";
}

/* ---- messages -------------------------------------------------------------------------------- */

typedef struct Refusal {
    Linear *linear;
    const Path *path;
    const Handle *what;
    Hold hold;
    StageEvent event;
    Span span;
} Refusal;

static const char *pipe_name(const Refusal *r) {
    return r->linear->prog->pipes.items[r->what->pipe].name;
}

/* The variable that now holds the stage moved away from `hold`, or NULL: it is out of scope, or
 * has passed it on */
static const Handle *taker(const Linear *linear, const Path *path, const Hold *hold) {
    for (size_t hops = 0; hold && hold->state == STATE_MOVED && hops < path->count; hops++) {
        const Handle *to = &linear->role->handles.items[hold->moved_to];
        hold = linear_hold(linear, path, hold->moved_to);
        if (hold && is_held(hold))
            return to->parameter ? NULL : to; /* the caller of a function does not see its names */
    }
    return NULL;
}

static Diag *refuse_moved(const Refusal *r) {
    Diags *diags = r->linear->diags;
    const Handle *to = &r->linear->role->handles.items[r->hold.moved_to],
                 *holder = taker(r->linear, r->path, &r->hold);
    const char *verb = verb_of(r->event);
    Span since = linear_span(r->linear, r->hold.since);
    Diag *diag =
        diag_at(diags, P0304, r->span, "stage `%s` is %s after it was moved", r->what->name, verb);
    diag_primary(diags, diag, "%s here", verb);
    if (to->parameter)
        diag_label(diags, diag, since, "moved into a function here, which then owns it");
    else
        diag_label(diags, diag, since, "moved to `%s` here", to->name);
    if (holder)
        diag_help(diags, diag, "use `%s`, which holds the stage now", holder->name);
    else if (to->parameter)
        diag_help(
            diags, diag,
            "move this before the call, or lend the stage to the function: `borrow %s: stage ..`",
            to->name);
    else
        diag_help(diags, diag, "use the name that it was moved to, before its release");
    return diag;
}

/* A variable that holds a stage at the end of its scope */
static Diag *refuse_kept_by_name(const Refusal *r, bool given) {
    Diags *diags = r->linear->diags;
    Span acquired = linear_span(r->linear, r->hold.acquired);
    Diag *diag =
        diag_at(diags, given ? P0300 : P0301, acquired,
                given ? "stage `%s` is not released on every path" : "stage `%s` is never released",
                r->what->name);
    diag_primary(diags, diag, "acquired here");
    if (linear_span(r->linear, r->hold.since).lo != acquired.lo)
        diag_label(diags, diag, r->what->span, "moved to this name");
    return diag;
}

/* If a function takes a stage and keeps it, the error is in the function, not at the acquire. */
static Diag *refuse_kept_by_function(const Refusal *r, bool given) {
    Diags *diags = r->linear->diags;
    Diag *diag =
        diag_at(diags, given ? P0300 : P0301, r->what->span,
                given ? "stage `%s` is not released on every path" : "stage `%s` is never released",
                r->what->name);
    diag_primary(diags, diag, "moved into this parameter");
    diag_label(diags, diag, linear_span(r->linear, r->hold.acquired), "acquired here");
    diag_label(diags, diag, linear_span(r->linear, r->hold.since), "moved into the function here");
    return diag;
}

static Diag *refuse_kept(const Refusal *r) {
    Diags *diags = r->linear->diags;
    int given = r->linear->given[r->hold.handle];
    const char *name = r->what->name;
    Diag *diag = r->what->parameter ? refuse_kept_by_function(r, given >= 0)
                                    : refuse_kept_by_name(r, given >= 0);
    if (given >= 0)
        diag_label(diags, diag, linear_span(r->linear, given),
                   "released or moved here, on another path");
    diag_label(diags, diag, r->span,
               r->what->parameter ? "still held where the function ends"
                                  : "still held where its scope ends");
    if (r->what->parameter)
        diag_help(diags, diag,
                  "write `release %s;` after its last use, or borrow it: `borrow %s: stage %s`",
                  name, name, pipe_name(r));
    else
        diag_help(
            diags, diag,
            "write `release %s;` after its last use, or use the block form `%s <%s> as %s { .. }`",
            name, word_of(r->what->end), pipe_name(r), name);
    return diag;
}

static Diag *refuse_again(const Refusal *r, Code code) {
    Diags *diags = r->linear->diags;
    const char *name = r->what->name, *verb = verb_of(r->event);
    bool twice = code == P0302;
    Diag *diag = twice ? diag_at(diags, P0302, r->span, "stage `%s` is released twice", name)
                       : diag_at(diags, P0303, r->span, "stage `%s` is %s after it was released",
                                 name, verb);
    diag_primary(diags, diag, "%s here", twice ? "released again" : verb);
    diag_label(diags, diag, linear_span(r->linear, r->hold.since), "%s here",
               twice ? "first released" : "released");
    if (twice)
        diag_help(diags, diag, "remove one `release %s;`", name);
    else
        diag_help(diags, diag, "move `release %s;` after its last use", name);
    return diag;
}

static Diag *refuse_overwritten(const Refusal *r) {
    Diags *diags = r->linear->diags;
    const char *name = r->what->name;
    Diag *diag = diag_at(diags, P0305, r->span, "stage `%s` is overwritten while it is held", name);
    diag_primary(diags, diag, "the stage that it holds is lost");
    diag_label(diags, diag, linear_span(r->linear, r->hold.acquired), "acquired here");
    if (r->event == EVENT_MOVE_IN)
        diag_help(diags, diag,
                  "write `release %s;` before this, or move its stage to another name: `let t = "
                  "%s;`",
                  name, name);
    else
        diag_help(diags, diag, "write `release %s;` before this", name);
    return diag;
}

static Diag *refuse_dropped(const Refusal *r) {
    Diags *diags = r->linear->diags;
    Diag *diag = diag_at(diags, P0306, r->span, "stage `%s` leaves its scope without a release",
                         r->what->name);
    diag_primary(diags, diag, "still held here, where the scope of `%s` is left", r->what->name);
    diag_label(diags, diag, linear_span(r->linear, r->hold.acquired), "acquired here");
    diag_help(diags, diag,
              "write `release %s;` before it, or use the block form, which releases on every exit",
              r->what->name);
    return diag;
}

static Diag *refuse_block(const Refusal *r) {
    Diags *diags = r->linear->diags;
    const char *name = r->what->name;
    Diag *diag = diag_at(diags, P0308, r->span,
                         "stage `%s` belongs to its block and cannot be %s explicitly", name,
                         verb_of(r->event));
    diag_primary(diags, diag, "the block releases it at its end");
    diag_label(diags, diag, linear_span(r->linear, r->hold.acquired), "acquired by this block");
    if (r->event == EVENT_RELEASE) diag_help(diags, diag, "remove `release %s;`", name);
    diag_help(diags, diag, "to release it elsewhere, write `let %s = %s <%s>;`", name,
              word_of(r->what->end), pipe_name(r));
    return diag;
}

/* `code` is from the matrix; each message shows where the stage got its state, and how to
 * correct it */
static Diag *refuse(const Refusal *r, Code code) {
    if (code == P0301) return refuse_kept(r);
    if (code == P0304) return refuse_moved(r);
    if (code == P0305) return refuse_overwritten(r);
    if (code == P0306) return refuse_dropped(r);
    if (code == P0308) return refuse_block(r);
    return refuse_again(r, code);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Poisons a variable that was used instead of the one that holds the stage */
static void forget_takers(Linear *linear, Path *path, const Hold *moved) {
    Hold at = *moved;
    for (size_t hops = 0; at.state == STATE_MOVED && hops < path->count; hops++) {
        const Hold *to = linear_hold(linear, path, at.moved_to);
        if (!to) return;
        at = *to;
        if (is_held(to)) linear_change(linear, path, to->handle)->state = STATE_POISON;
    }
}

bool linear_event(Linear *linear, Path *path, int handle, StageEvent event, int at, Span span) {
    const Hold *found = linear_hold(linear, path, handle);
    if (!found || found->state == STATE_POISON) return false;
    const Hold hold = *found;
    Transition rule = matrix[hold.state][event];
    bool fine = rule.code == FINE;
    assert(rule.next != STATE_FREE);
    if (!fine) {
        Refusal refusal = {linear, path, &linear->role->handles.items[handle], hold, event, span};
        linear_fault(linear, handle);
        if (linear->last) linear->refused = refuse(&refusal, rule.code);
        if (event != EVENT_USE) forget_takers(linear, path, &hold);
    }
    if (rule.next == hold.state) return fine;
    Hold *now = linear_change(linear, path, handle);
    now->since = at;
    now->state = rule.next;
    return fine;
}
