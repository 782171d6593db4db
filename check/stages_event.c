/* What may happen to a stage variable, as data: state x event -> next state, or the code of what is wrong. */
#include "check/stages.h"

#define FINE CODE_COUNT

typedef struct Rule {
    StageState next;
    Code code;
} Rule;

static const Rule matrix[STATE_COUNT][EVENT_COUNT] = {
    [STATE_FREE] = {
        [EVENT_ACQUIRE]   = {STATE_HELD, FINE},
        [EVENT_USE]       = {STATE_POISON, P0303},
        [EVENT_RELEASE]   = {STATE_POISON, P0302},
        [EVENT_MOVE_OUT]  = {STATE_POISON, P0303},
        [EVENT_MOVE_IN]   = {STATE_HELD, FINE},
        [EVENT_SCOPE_END] = {STATE_FREE, FINE},
        [EVENT_LEAVE]     = {STATE_FREE, FINE},
    },
    [STATE_HELD] = {
        [EVENT_ACQUIRE]   = {STATE_POISON, P0305},
        [EVENT_USE]       = {STATE_HELD, FINE},
        [EVENT_RELEASE]   = {STATE_RELEASED, FINE},
        [EVENT_MOVE_OUT]  = {STATE_MOVED, FINE},
        [EVENT_MOVE_IN]   = {STATE_POISON, P0305},
        [EVENT_SCOPE_END] = {STATE_POISON, P0301},
        [EVENT_LEAVE]     = {STATE_POISON, P0306},
    },
    [STATE_BLOCK] = {
        [EVENT_ACQUIRE]   = {STATE_POISON, P0305},
        [EVENT_USE]       = {STATE_BLOCK, FINE},
        [EVENT_RELEASE]   = {STATE_POISON, P0308},
        [EVENT_MOVE_OUT]  = {STATE_POISON, P0308},
        [EVENT_MOVE_IN]   = {STATE_POISON, P0305},
        [EVENT_SCOPE_END] = {STATE_FREE, FINE},
        [EVENT_LEAVE]     = {STATE_FREE, FINE},
    },
    [STATE_RELEASED] = {
        [EVENT_ACQUIRE]   = {STATE_HELD, FINE},
        [EVENT_USE]       = {STATE_POISON, P0303},
        [EVENT_RELEASE]   = {STATE_POISON, P0302},
        [EVENT_MOVE_OUT]  = {STATE_POISON, P0303},
        [EVENT_MOVE_IN]   = {STATE_HELD, FINE},
        [EVENT_SCOPE_END] = {STATE_FREE, FINE},
        [EVENT_LEAVE]     = {STATE_FREE, FINE},
    },
    [STATE_MOVED] = {
        [EVENT_ACQUIRE]   = {STATE_HELD, FINE},
        [EVENT_USE]       = {STATE_POISON, P0304},
        [EVENT_RELEASE]   = {STATE_POISON, P0304},
        [EVENT_MOVE_OUT]  = {STATE_POISON, P0304},
        [EVENT_MOVE_IN]   = {STATE_HELD, FINE},
        [EVENT_SCOPE_END] = {STATE_FREE, FINE},
        [EVENT_LEAVE]     = {STATE_FREE, FINE},
    },
    [STATE_POISON] = {
        [EVENT_ACQUIRE]   = {STATE_POISON, FINE},
        [EVENT_USE]       = {STATE_POISON, FINE},
        [EVENT_RELEASE]   = {STATE_POISON, FINE},
        [EVENT_MOVE_OUT]  = {STATE_POISON, FINE},
        [EVENT_MOVE_IN]   = {STATE_POISON, FINE},
        [EVENT_SCOPE_END] = {STATE_FREE, FINE},
        [EVENT_LEAVE]     = {STATE_FREE, FINE},
    },
};

void stage_fault(Linear *linear, int handle) {
    linear->prog->pipes.items[linear->role->handles.items[handle].pipe].faulty = true;
}

bool is_held(const Hold *hold) { return hold->state == STATE_HELD || hold->state == STATE_BLOCK; }

const Hold *hold_of(const Linear *linear, int handle) {
    if (!valid_index(handle, linear->role->handles.count) || linear->slot[handle] < 0) return NULL;
    return path_hold(&linear->path, (size_t)linear->slot[handle]);
}

Hold *hold_change(Linear *linear, int handle) { return path_change(linear, &linear->path, (size_t)linear->slot[handle]); }

const char *word_of(End end) { return end == END_PRODUCE ? "produce" : "consume"; }

static const char *verb_of(StageEvent event) {
    switch (event) {
    case EVENT_USE: return "used";
    case EVENT_RELEASE: return "released";
    case EVENT_MOVE_OUT: return "moved";
    case EVENT_ACQUIRE: case EVENT_MOVE_IN: case EVENT_SCOPE_END: case EVENT_LEAVE: case EVENT_COUNT: break;
    }
    return "left";
}

/* The name that holds the stage now which was moved away from `hold`, or NULL: it is out of scope, or given on */
static const Handle *taker(const Linear *linear, const Hold *hold) {
    for (size_t hops = 0; hold && hold->state == STATE_MOVED && hops < linear->scope.count; hops++) {
        const Handle *to = &linear->role->handles.items[hold->moved_to];
        hold = hold_of(linear, hold->moved_to);
        if (hold && is_held(hold)) return to->parameter ? NULL : to; /* who calls a function does not see its names */
    }
    return NULL;
}

static void refuse_moved(Linear *linear, const Handle *what, const Hold *hold, StageEvent event, Span span) {
    Diags *diags = linear->diags;
    const Handle *to = &linear->role->handles.items[hold->moved_to], *holder = taker(linear, hold);
    Diag *diag = linear->refused =
        diag_at(diags, P0304, span, "stage `%s` is %s after it was moved", what->name, verb_of(event));
    diag_primary(diags, diag, "%s here", verb_of(event));
    if (to->parameter) diag_label(diags, diag, hold->since, "moved into a function here, which releases it");
    else diag_label(diags, diag, hold->since, "moved to `%s` here", to->name);
    if (holder) diag_help(diags, diag, "use `%s`, which holds the stage now", holder->name);
    else if (to->parameter) diag_help(diags, diag, "do this before the call, or lend the stage to the function: `borrow %s: stage ..`", to->name);
    else diag_help(diags, diag, "use the name that it was moved to, before that releases it");
}

/* Where a function takes a stage over and keeps it, the function is wrong, and not who acquired it. */
static void refuse_kept(Linear *linear, int handle, const Hold *hold, Span end) {
    Diags *diags = linear->diags;
    const Handle *what = &linear->role->handles.items[handle];
    Span given = linear->given[handle];
    Diag *diag = linear->refused = diag_at(diags, given.hi ? P0300 : P0301, what->parameter ? what->span : hold->acquired,
                                           given.hi ? "stage `%s` is not released on every path" : "stage `%s` is never released", what->name);
    if (what->parameter) {
        diag_primary(diags, diag, "the function takes it over");
        diag_label(diags, diag, hold->acquired, "acquired here");
        diag_label(diags, diag, hold->since, "moved into the function here");
    } else {
        diag_primary(diags, diag, "acquired here");
        if (hold->since.lo != hold->acquired.lo) diag_label(diags, diag, what->span, "taken over by this name");
    }
    if (given.hi) diag_label(diags, diag, given, "given on here, on a path that leaves before");
    diag_label(diags, diag, end, what->parameter ? "still held where the function ends" : "still held where its scope ends");
    if (what->parameter)
        diag_help(diags, diag, "write `release %s;` behind its last use, or borrow it: `borrow %s: stage %s`", what->name, what->name,
                  linear->prog->pipes.items[what->pipe].name);
    else
        diag_help(diags, diag, "write `release %s;` behind its last use, or the block form `%s <%s> as %s { .. }`", what->name,
                  word_of(what->end), linear->prog->pipes.items[what->pipe].name, what->name);
}

/* `code` is one of the matrix's; each message shows where the stage got its state, and what to do */
static void refuse(Linear *linear, int handle, const Hold *hold, StageEvent event, Code code, Span span) {
    Diags *diags = linear->diags;
    const Handle *what = &linear->role->handles.items[handle];
    const char *name = what->name;
    bool blocked = hold->state == STATE_BLOCK;
    Diag *diag = NULL;
    if (code == P0301) {
        refuse_kept(linear, handle, hold, span);
        return;
    }
    if (code == P0304) {
        refuse_moved(linear, what, hold, event, span);
        return;
    }
    if (code == P0302) {
        diag = diag_at(diags, code, span, "stage `%s` is released twice", name);
        diag_primary(diags, diag, "released again here");
        diag_label(diags, diag, hold->since, "first released here");
        diag_help(diags, diag, "remove one `release %s;`", name);
    } else if (code == P0303) {
        diag = diag_at(diags, code, span, "stage `%s` is %s after it was released", name, verb_of(event));
        diag_primary(diags, diag, "%s here", verb_of(event));
        diag_label(diags, diag, hold->since, "released here");
        diag_help(diags, diag, "move `release %s;` behind its last use", name);
    } else if (code == P0305) {
        diag = diag_at(diags, code, span, "stage `%s` is overwritten while it is held", name);
        diag_primary(diags, diag, "the stage that it holds would be lost");
        diag_label(diags, diag, hold->acquired, "acquired here");
        if (!blocked && event == EVENT_MOVE_IN) diag_help(diags, diag, "write `release %s;` before, or move its stage to another name: `let t = %s;`", name, name);
        else if (!blocked) diag_help(diags, diag, "write `release %s;` before", name);
    } else if (code == P0306) {
        diag = diag_at(diags, code, span, "stage `%s` is dropped here without a release", name);
        diag_primary(diags, diag, "leaves the scope of `%s`", name);
        diag_label(diags, diag, hold->acquired, "acquired here");
        diag_help(diags, diag, "write `release %s;` before it, or use the block form, which releases on every way out", name);
    } else {
        diag = diag_at(diags, P0308, span, "stage `%s` belongs to its block and cannot be %s by hand", name, verb_of(event));
        diag_primary(diags, diag, "the block does that when it ends");
        diag_label(diags, diag, hold->acquired, "acquired by this block");
        if (event == EVENT_RELEASE) diag_help(diags, diag, "remove `release %s;`", name);
        diag_help(diags, diag, "to release it elsewhere, write `let %s = %s <%s>;`", name, word_of(what->end),
                  linear->prog->pipes.items[what->pipe].name);
    }
    linear->refused = diag;
}

/* One that is named by mistake in place of who holds the stage: no word about that one */
static void forget_takers(Linear *linear, const Hold *hold) {
    for (size_t hops = 0; hold && hold->state == STATE_MOVED && hops < linear->scope.count; hops++) {
        int to = hold->moved_to;
        hold = hold_of(linear, to);
        if (hold && is_held(hold)) hold_change(linear, to)->state = STATE_POISON;
    }
}

bool stage_event(Linear *linear, int handle, StageEvent event, Span span) {
    const Hold *hold = hold_of(linear, handle);
    if (!hold) return false;
    Rule rule = matrix[hold->state][event];
    bool fine = rule.code == FINE && hold->state != STATE_POISON;
    if (rule.code != FINE) {
        stage_fault(linear, handle);
        refuse(linear, handle, hold, event, rule.code, span);
        if (event != EVENT_USE) forget_takers(linear, hold);
    }
    if (rule.next == hold_of(linear, handle)->state) return fine;
    Hold *now = hold_change(linear, handle);
    now->since = span;
    now->state = rule.next;
    return fine;
}
