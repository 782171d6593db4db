/* Two paths that meet: a stage is held on both or on neither. Loops: an iteration leaves outer stages as it found them. */
#include "check/stages.h"

Span closing_of(const Stmt *stmt) {
    Span span = stmt->span;
    if (stmt->kind == S_BLOCK && stmt->block.close.hi) return stmt->block.close;
    if (span.hi > span.lo) span.lo = span.hi - 1;
    return span;
}

/* `held` is the side that still holds it, `other` the one that does not. `join` is an S_IF: ways out of a function that meet behind it
 * agree, as it releases no stage of its caller, and those that are moved into it are moved before its first statement. */
static Diag *refuse_branches(Linear *linear, int handle, const Hold *held, const Hold *other, Stmt *join, bool held_in_then) {
    const char *name = linear->role->handles.items[handle].name;
    bool acquired = other->state != STATE_FREE && other->acquired.lo != held->acquired.lo;
    const Stmt *arm = held_in_then ? join->branch.then : join->branch.otherwise;
    bool given = held->since.hi != held->acquired.hi, moved = other->state == STATE_MOVED; /* by a move, to it or from it */
    const char *verb = acquired ? (given ? "given a stage" : "acquired") : moved ? "moved" : "released";
    Diag *diag = diag_at(linear->diags, P0300, join->head, "stage `%s` is %s in one branch only", name, verb);
    diag_primary(linear->diags, diag, "the branches disagree%s",
                 arm ? "" : acquired ? "" : ": it stays held where the condition is false");
    diag_label(linear->diags, diag, held->acquired, "acquired here");
    if (acquired && given) diag_label(linear->diags, diag, held->since, "given to `%s` here", name);
    if (!acquired) diag_label(linear->diags, diag, other->since, "%s here", verb);
    if (arm && !acquired) diag_label(linear->diags, diag, closing_of(arm), "not %s on this path", verb);
    if (acquired) diag_help(linear->diags, diag, "do so in both branches, or release it in the one that does");
    else if (moved) diag_help(linear->diags, diag, "move it in both branches, or release it in the other one");
    else diag_help(linear->diags, diag, "write `release %s;` in both branches, or once behind them", name);
    return diag;
}

/* Other stages that the same two paths disagree about: one mistake where they are held on the same one, or are exchanged for each other */
typedef struct Said {
    Diag *diag;
    const Handle *handle;
    bool first; /* held on the first path */
    Span since;
} Said;

static bool is_another(const Said *said, const Handle *handle, bool first) {
    return said->diag && (said->first == first || (said->handle->pipe == handle->pipe && said->handle->end == handle->end));
}

Path path_join(Linear *linear, Path *a, Path *b, Stmt *join) {
    size_t count = a->count < b->count ? a->count : b->count;
    if (!b->live || !a->live) {
        Path one = path_copy(linear, a->live || !b->live ? a : b, count);
        one.expected = a->expected || b->expected;
        return one;
    }
    Path both = path_copy(linear, a, count);
    Said said = {0};
    for (size_t i = path_differs(&both, b, 0, count); i < count; i = path_differs(&both, b, i + 1, count)) {
        const Hold *other = path_hold(b, i);
        Hold *into = path_change(linear, &both, i);
        if (into->state == STATE_POISON) continue;
        if (other->state == STATE_POISON) {
            into->state = STATE_POISON;
        } else if (is_held(into) != is_held(other)) {
            bool first = is_held(into);
            const Handle *handle = &linear->role->handles.items[linear->scope.items[i]];
            Span since = into->since.lo > other->since.lo ? into->since : other->since;
            stage_fault(linear, linear->scope.items[i]);
            /* the paths of different instances: said of what stands there. And what a move does to two variables is one mistake */
            if (linear->differs || (said.diag && since.hi == said.since.hi)) {
                into->state = STATE_POISON;
            } else if (is_another(&said, handle, first)) {
                diag_note(linear->diags, said.diag, "they disagree about `%s` too", handle->name);
            } else {
                Diag *diag = refuse_branches(linear, linear->scope.items[i], first ? into : other, first ? other : into, join, first);
                if (!said.diag) said = (Said){diag, handle, first, since};
            }
            into->state = STATE_POISON;
        }
    }
    return both;
}

/* A stage of the same end was refused on the way: what should stand in the place of this one may have gone there */
static bool is_doubtful(const Linear *linear, const Path *end, size_t slot, size_t count) {
    const Handle *what = &linear->role->handles.items[linear->scope.items[slot]];
    for (size_t i = 0; i < count; i++) {
        const Handle *other = &linear->role->handles.items[linear->scope.items[i]];
        if (other->pipe == what->pipe && other->end == what->end && path_hold(end, i)->state == STATE_POISON) return true;
    }
    return false;
}

void path_restored(Linear *linear, const Path *entry, Path *end, Stmt *loop, const Stmt *leave) {
    size_t count = entry->count < end->count ? entry->count : end->count;
    Diag *said = NULL;
    for (size_t i = path_differs(entry, end, 0, count); i < count; i = path_differs(entry, end, i + 1, count)) {
        const Hold *before = path_hold(entry, i), *after = path_hold(end, i);
        if (before->state == STATE_POISON || after->state == STATE_POISON || is_held(before) == is_held(after)) continue;
        const char *name = linear->role->handles.items[linear->scope.items[i]].name;
        const char *pipe = linear->prog->pipes.items[linear->role->handles.items[linear->scope.items[i]].pipe].name;
        const char *word = word_of(linear->role->handles.items[linear->scope.items[i]].end);
        Diag *diag;
        stage_fault(linear, linear->scope.items[i]);
        if (said || linear->differs || is_doubtful(linear, end, i, count)) {
            if (said) diag_note(linear->diags, said, "the body %s `%s` too", is_held(before) ? "gives away" : "keeps", name);
            path_change(linear, end, i)->state = STATE_POISON;
            continue;
        }
        if (is_held(before)) {
            bool moved = after->state == STATE_MOVED;
            diag = diag_at(linear->diags, P0307, after->since, "stage `%s` from outside is %s in the body of a loop", name,
                           moved ? "moved" : "released");
            diag_primary(linear->diags, diag, "%s here", moved ? "moved" : "released");
            diag_label(linear->diags, diag, before->acquired, "acquired outside of the loop");
            diag_label(linear->diags, diag, loop->head, leave ? "the loop" : "the next iteration would find it %s",
                       moved ? "moved" : "released");
            if (leave) diag_label(linear->diags, diag, leave->span, "the loop is left here, and at its end it is still held");
            if (moved && linear->role->handles.items[after->moved_to].parameter)
                diag_help(linear->diags, diag, "lend it to the function, which then `borrow`s it, or let the body acquire the next one");
            else if (moved)
                diag_help(linear->diags, diag, "move another stage to `%s` before the body ends, or acquire the next one: `%s = %s <%s>;`",
                          name, name, word, pipe);
            else
                diag_help(linear->diags, diag, "release it behind the loop, or let the body acquire the next one: `%s = %s <%s>;`",
                          name, word, pipe);
        } else {
            diag = diag_at(linear->diags, P0307, after->acquired, "stage `%s` is acquired in the body of a loop and kept", name);
            diag_primary(linear->diags, diag, "acquired here");
            diag_label(linear->diags, diag, loop->head, "the next iteration would find it held");
            if (leave) diag_label(linear->diags, diag, leave->span, "the iteration ends here");
            diag_help(linear->diags, diag, "write `release %s;` before the body ends", name);
        }
        said = diag;
        path_change(linear, end, i)->state = STATE_POISON;
    }
}
