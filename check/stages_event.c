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

/* `code` is one of the matrix's; each message shows where the stage got its state, and what to do */
static void refuse(Linear *linear, int handle, const Hold *hold, StageEvent event, Code code, Span span) {
    Diags *diags = linear->diags;
    const Handle *what = &linear->role->handles.items[handle];
    const char *name = what->name;
    bool blocked = hold->state == STATE_BLOCK;
    Diag *diag = NULL;
    if (code == P0301) {
        diag = diag_at(diags, code, hold->acquired, "stage `%s` is never released", name);
        diag_primary(diags, diag, "acquired here");
        if (hold->since.lo != hold->acquired.lo) diag_label(diags, diag, what->span, "taken over by this name");
        diag_label(diags, diag, span, "still held where its scope ends");
        diag_help(diags, diag, "write `release %s;` behind its last use, or the block form `%s <%s> as %s { .. }`", name,
                  word_of(what->end), linear->prog->pipes.items[what->pipe].name, name);
    } else if (code == P0302) {
        diag = diag_at(diags, code, span, "stage `%s` is released twice", name);
        diag_primary(diags, diag, "released again here");
        diag_label(diags, diag, hold->since, "first released here");
        diag_help(diags, diag, "remove one `release %s;`", name);
    } else if (code == P0303 || code == P0304) {
        bool moved = code == P0304;
        diag = diag_at(diags, code, span, "stage `%s` is %s after it was %s", name, verb_of(event), moved ? "moved" : "released");
        diag_primary(diags, diag, "%s here", verb_of(event));
        diag_label(diags, diag, hold->since, moved ? "moved to another name here" : "released here");
        if (moved) diag_help(diags, diag, "use the name that it was moved to");
        else diag_help(diags, diag, "move `release %s;` behind its last use", name);
    } else if (code == P0305) {
        diag = diag_at(diags, code, span, "stage `%s` is overwritten while it is held", name);
        diag_primary(diags, diag, "the stage that it holds would be lost");
        diag_label(diags, diag, hold->acquired, "acquired here");
        if (!blocked) diag_help(diags, diag, "write `release %s;` before", name);
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
}

bool stage_event(Linear *linear, int handle, StageEvent event, Span span) {
    const Hold *hold = hold_of(linear, handle);
    if (!hold) return false;
    Rule rule = matrix[hold->state][event];
    bool fine = rule.code == FINE && hold->state != STATE_POISON;
    if (rule.code != FINE) {
        stage_fault(linear, handle);
        refuse(linear, handle, hold, event, rule.code, span);
    }
    if (rule.code != FINE && event == EVENT_RELEASE && hold->state == STATE_MOVED) { /* the wrong name: no word about the right one */
        if (hold_of(linear, hold->moved_to)) hold_change(linear, hold->moved_to)->state = STATE_POISON;
    }
    if (rule.next == hold_of(linear, handle)->state) return fine;
    Hold *now = hold_change(linear, handle);
    now->since = span;
    now->state = rule.next;
    return fine;
}
