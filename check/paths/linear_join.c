/* Joins: a stage is held on all paths or on none. Loops: an iteration leaves outer stages in
 * their initial state. */
#include "check/paths/linear.h"

/* ---- two paths that disagree about a stage --------------------------------------------------- */

typedef struct Sides { /* of one stage variable */
    const Hold *held, *other;
    int at;            /* the row of the join */
    bool held_in_then; /* IF: `held` comes from its first arm */
} Sides;

/* True if the other side acquired another stage before, and the held side acquired or took this
 * one. */
static bool is_acquired(const Linear *linear, const Sides *sides) {
    return sides->other->state != STATE_FREE && linear_span(linear, sides->other->acquired).lo !=
                                                    linear_span(linear, sides->held->acquired).lo;
}

/* The IF whose arms disagree, and the arm that holds the stage: the IF around the rows that only
 * one path executed. Distinguished paths may join later than at its END. -1: none */
static int branch_of(const Linear *linear, const Sides *sides, bool *held_in_then) {
    const FlowCode *code = linear->code;
    int at = sides->at,
        event = is_acquired(linear, sides) ? sides->held->since : sides->other->since;
    int region = code->rows.items[event].region, parent;
    while ((parent = code->regions.items[region].parent) >= 0 &&
           code->regions.items[parent].end <= at)
        region = parent;
    const Region *row = &code->regions.items[region];
    *held_in_then = (event < row->otherwise) == is_acquired(linear, sides);
    if (row->kind == REGION_IF && row->end <= at) return region;
    *held_in_then = sides->held_in_then;
    region = code->rows.items[at].region;
    return code->regions.items[region].kind == REGION_IF && code->regions.items[region].end == at
               ? region
               : -1;
}

static bool has_arm(const Linear *linear, const Region *branch, bool then) {
    const Row *rows = linear->code->rows.items;
    return then || rows[branch->end].span.hi != rows[branch->otherwise].span.hi;
}

static Span closing_of_arm(const Linear *linear, const Region *branch, bool then) {
    return linear->code->rows.items[then ? branch->otherwise : branch->end].span;
}

static Diag *refuse_branches(Linear *linear, const Sides *sides, const Region *branch,
                             bool held_in_then) {
    Diags *diags = linear->diags;
    const Hold *held = sides->held, *other = sides->other;
    const char *name = linear->role->handles.items[held->handle].name;
    bool acquired = is_acquired(linear, sides), arm = has_arm(linear, branch, held_in_then);
    bool given = linear_span(linear, held->since).hi != linear_span(linear, held->acquired).hi;
    bool moved = other->state == STATE_MOVED; /* by a move to it or from it */
    const char *verb = acquired ? (given ? "given a stage" : "acquired")
                       : moved  ? "moved"
                                : "released";
    Diag *diag =
        diag_at(diags, P0300, branch->head, "stage `%s` is %s in one branch only", name, verb);
    diag_primary(diags, diag, "the branches differ%s",
                 arm || acquired ? "" : ": the stage stays held where the condition is false");
    diag_label(diags, diag, linear_span(linear, held->acquired), "acquired here");
    if (acquired && given)
        diag_label(diags, diag, linear_span(linear, held->since), "given to `%s` here", name);
    if (!acquired) diag_label(diags, diag, linear_span(linear, other->since), "%s here", verb);
    if (arm && !acquired)
        diag_label(diags, diag, closing_of_arm(linear, branch, held_in_then), "not %s on this path",
                   verb);
    if (acquired)
        diag_help(diags, diag, "do so in both branches, or release the stage in this branch");
    else if (moved)
        diag_help(diags, diag, "move it in both branches, or release it in the other branch");
    else
        diag_help(diags, diag, "write `release %s;` in both branches, or once after the `if`",
                  name);
    return diag;
}

/* Paths that are not the arms of an IF: exits of a loop that always runs, or of a function */
static Diag *refuse_ways(Linear *linear, const Sides *sides) {
    Diags *diags = linear->diags;
    const char *name = linear->role->handles.items[sides->held->handle].name;
    const Row *meeting = &linear->code->rows.items[sides->at];
    bool moved = sides->other->state == STATE_MOVED;
    Diag *diag = diag_at(diags, P0300, linear_span(linear, sides->held->acquired),
                         "stage `%s` is not released on every path", name);
    diag_primary(diags, diag, "acquired here");
    diag_label(diags, diag, linear_span(linear, sides->other->since), "%s here, on some paths",
               moved ? "moved" : "released");
    diag_label(diags, diag, meeting->span, "still held on other paths that meet here");
    diag_help(diags, diag, "%s it on all paths that meet there, or on none",
              moved ? "move" : "release");
    return diag;
}

/* Other stages on which the same paths disagree: one error if they are held on the same path, or
 * exchanged for each other */
typedef struct Reported {
    Diag *diag;
    const Handle *handle;
    bool first; /* held on the first path */
    int since;
} Reported;

static bool is_another(const Reported *reported, const Handle *handle, bool first) {
    return reported->diag && (reported->first == first || (reported->handle->pipe == handle->pipe &&
                                                           reported->handle->end == handle->end));
}

static void disagree(Linear *linear, const Sides *sides, bool first, Reported *reported) {
    const Handle *handle = &linear->role->handles.items[sides->held->handle];
    int since = sides->held->since > sides->other->since ? sides->held->since : sides->other->since;
    bool held_in_then;
    int branch = branch_of(linear, sides, &held_in_then);
    int region = branch < 0 ? linear->code->rows.items[sides->at].region : branch;
    linear_fault(linear, sides->held->handle);
    /* Paths of different instances get the message at the control. The effect of one move on two
     * variables is one error */
    if (linear->differs[region] || (reported->diag && since == reported->since)) return;
    if (is_another(reported, handle, first)) {
        diag_note(linear->diags, reported->diag, "they also differ for `%s`", handle->name);
        return;
    }
    Diag *diag = branch < 0 ? refuse_ways(linear, sides)
                            : refuse_branches(linear, sides, &linear->code->regions.items[branch],
                                              held_in_then);
    if (!reported->diag) *reported = (Reported){diag, handle, first, since};
}

/* ---- iterations ------------------------------------------------------------------------------ */

/* A stage of the same end was refused on the way, and may be the one that should replace this
 * one */
static bool is_doubtful(const Linear *linear, const Path *end, const Handle *what, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const Handle *other = &linear->role->handles.items[path_hold(end, i)->handle];
        if (other->pipe == what->pipe && other->end == what->end &&
            path_hold(end, i)->state == STATE_POISON)
            return true;
    }
    return false;
}

/* the end of an iteration, or an exit of the loop, compared with the start of the iteration */
typedef struct Restore {
    Linear *linear;
    const Region *loop;
    const Row *leave; /* NULL: at the end of the body */
    const Handle *what;
    const char *pipe;
} Restore;

static Diag *refuse_given_away(const Restore *r, const Hold *before, const Hold *after) {
    Linear *linear = r->linear;
    Diags *diags = linear->diags;
    const char *name = r->what->name, *verb = after->state == STATE_MOVED ? "moved" : "released";
    bool moved = after->state == STATE_MOVED;
    Diag *diag = diag_at(diags, P0307, linear_span(linear, after->since),
                         "stage `%s` from outside of the loop is %s in its body", name, verb);
    diag_primary(diags, diag, "%s here", verb);
    diag_label(diags, diag, linear_span(linear, before->acquired), "acquired outside of the loop");
    diag_label(diags, diag, r->loop->head,
               r->leave ? "the loop" : "in the next iteration it is already %s", verb);
    if (r->leave)
        diag_label(diags, diag, r->leave->span, "when the loop is left here, it is still held");
    if (moved && linear->role->handles.items[after->moved_to].parameter)
        diag_help(diags, diag,
                  "pass it to the function as `borrow`, or acquire the next stage in the body");
    else if (moved)
        diag_help(diags, diag,
                  "move another stage to `%s` before the body ends, or acquire the next one: `%s = "
                  "%s <%s>;`",
                  name, name, word_of(r->what->end), r->pipe);
    else
        diag_help(diags, diag,
                  "release it after the loop, or acquire the next one in the body: `%s = %s <%s>;`",
                  name, word_of(r->what->end), r->pipe);
    return diag;
}

static Diag *refuse_kept(const Restore *r, const Hold *after) {
    Diags *diags = r->linear->diags;
    const char *name = r->what->name;
    Diag *diag =
        diag_at(diags, P0307, linear_span(r->linear, after->acquired),
                "stage `%s` is acquired in the body of a loop and not released there", name);
    diag_primary(diags, diag, "acquired here");
    diag_label(diags, diag, r->loop->head, "in the next iteration it is still held");
    if (r->leave) diag_label(diags, diag, r->leave->span, "the iteration ends here");
    diag_help(diags, diag, "write `release %s;` before the body ends", name);
    return diag;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static void restored(Linear *linear, const Path *entry, Path *end, int region, const Row *leave) {
    Restore r = {.linear = linear, .loop = &linear->code->regions.items[region], .leave = leave};
    size_t count = least(entry->count, end->count);
    Diag *reported = NULL;
    for (size_t i = path_differs(entry, end, 0, count); i < count;
         i = path_differs(entry, end, i + 1, count)) {
        const Hold *before = path_hold(entry, i), *after = path_hold(end, i);
        if (before->state == STATE_POISON || after->state == STATE_POISON ||
            is_held(before) == is_held(after))
            continue;
        r.what = &linear->role->handles.items[before->handle];
        r.pipe = linear->prog->pipes.items[r.what->pipe].name;
        linear_fault(linear, before->handle);
        if (reported)
            diag_note(linear->diags, reported, "the body also %s `%s`",
                      is_held(before) ? "gives up" : "keeps", r.what->name);
        else if (!linear->differs[region] && !is_doubtful(linear, end, r.what, count))
            reported =
                is_held(before) ? refuse_given_away(&r, before, after) : refuse_kept(&r, after);
        path_change(linear, end, i)->state = STATE_POISON;
    }
}

/* ---- joins ----------------------------------------------------------------------------------- */

/* The next variable that may differ between the paths */
static size_t next_differing(Path *const *paths, size_t paths_count, size_t slot, size_t count) {
    size_t next = count;
    for (size_t k = 1; k < paths_count; k++)
        next = least(next, path_differs(paths[0], paths[k], slot, count));
    return next;
}

static void compare(Linear *linear, int at, Path *const *paths, const int *sources, size_t count) {
    const Region *region = &linear->code->regions.items[linear->code->rows.items[at].region];
    size_t slots = paths[0]->count;
    Reported reported = {0};
    for (size_t k = 1; k < count; k++) slots = least(slots, paths[k]->count);
    for (size_t i = next_differing(paths, count, 0, slots); i < slots;
         i = next_differing(paths, count, i + 1, slots)) {
        Sides sides = {.at = at};
        bool poison = false;
        for (size_t k = 0; k < count; k++) {
            const Hold *hold = path_hold(paths[k], i);
            poison |= hold->state == STATE_POISON;
            if (is_held(hold) && !sides.held)
                sides.held = hold, sides.held_in_then = sources[k] == region->otherwise;
            if (!is_held(hold) && !sides.other) sides.other = hold;
        }
        if (!poison && sides.held && sides.other)
            disagree(linear, &sides, sides.held == path_hold(paths[0], i), &reported);
    }
}

/* Compares the end of an iteration, or the exits of a loop, with its start */
static void compare_iteration(Linear *linear, int at, Path *const *paths, const int *sources,
                              size_t count) {
    const FlowCode *code = linear->code;
    int region = code->rows.items[at].region;
    const Path *entry = NULL;
    for (size_t k = 0; k < count && !entry; k++)
        if (code->rows.items[sources[k]].kind != ROW_LEAVE) entry = paths[k];
    for (size_t k = 0; k < count && entry; k++) {
        const Row *source = &code->rows.items[sources[k]];
        bool leaves = source->kind == ROW_LEAVE && source->target == region;
        if (paths[k] != entry && (leaves || at == code->regions.items[region].next))
            restored(linear, entry, paths[k], region, leaves ? source : NULL);
    }
}

void linear_meets(Linear *linear, int at, Path *const *paths, const int *sources, size_t count) {
    const FlowCode *code = linear->code;
    const Region *region = &code->regions.items[code->rows.items[at].region];
    if (region_loops(region) && (at == region->next || at == region->end))
        compare_iteration(linear, at, paths, sources, count);
    if (!region_loops(region) || at != region->next) compare(linear, at, paths, sources, count);
}
