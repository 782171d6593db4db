/* Statements that no path reaches. A statement is dead if the one before it in its block is
 * reached and every path has left after it, for all values of conditions: an inlined function
 * need not use all of its text. A statement after a nested block is not reported: the block may
 * be the arm that a constant selected; nor one after a leave that drops a stage: it may release
 * the stage. */
#include "check/paths/linear.h"

/* ---- the rule: a state only says that a path reaches the row --------------------------------- */

static void *start(Flow *flow) { return NEW(flow->arena, char); }

static void *copy(Flow *flow, const void *state) {
    (void)state;
    return start(flow);
}

static bool join(Flow *flow, void *to, const void *from, int at, int source) {
    (void)flow, (void)to, (void)from, (void)at, (void)source;
    return false;
}

static void reach(Flow *flow, int at, void *state) {
    (void)state;
    ((Linear *)flow->data)->reached[at] = true;
}

static const Rule rule = {.name = "reached",
                          .together = true,
                          .start = start,
                          .copy = copy,
                          .join = join,
                          .on = {.every = reach}};

/* ---- statements ------------------------------------------------------------------------------ */

typedef struct Reach {
    Linear *linear;
    /* by region and arm: the row at which the last statement before began, -1: none yet */
    int *begun;
    int last_reported; /* the last row that was reported as dead, -1: none yet */
} Reach;

/* The last reached leave before a row, -1: none */
static int last_leave(const Linear *linear, int at) {
    while (--at >= 0)
        if (linear->reached[at] && linear->code->rows.items[at].kind == ROW_LEAVE) break;
    return at;
}

static bool drops_between(const Linear *linear, int from, int to) {
    for (int at = from; at < to; at++)
        if (linear->drops[at]) return true;
    return false;
}

/* Either the dead statement or the leave is wrong: no verdict about the counts of the role's
 * pipes. */
static void fault_all(Linear *linear) {
    for (size_t at = 0; at < linear->code->rows.count; at++) {
        const Row *row = &linear->code->rows.items[at];
        bool known =
            row->kind == ROW_ACQUIRE && valid_index(row->handle, linear->role->handles.count);
        if (known && linear->slot[row->handle] >= 0) linear_fault(linear, row->handle);
    }
}

static void refuse(Linear *linear, int at) {
    int leave = last_leave(linear, at);
    Diag *diag = diag_at(linear->diags, P0311, linear->code->rows.items[at].statement,
                         "this statement is never reached");
    if (leave >= 0)
        diag_label(linear->diags, diag, linear_span(linear, leave),
                   "every path leaves here or earlier");
    diag_help(linear->diags, diag, "remove this statement, or the one that leaves before it");
    fault_all(linear);
}

/* Index of a region and arm: the second arm of an IF has its own */
static size_t arm_of(const FlowCode *code, int region, int at) {
    const Region *row = &code->regions.items[region];
    return 2 * (size_t)region + (row->kind == REGION_IF && at > row->otherwise);
}

static void look(Reach *reach, int at) {
    Linear *linear = reach->linear;
    const FlowCode *code = linear->code;
    const Row *row = &code->rows.items[at];
    bool begins = row_begins(row->kind);
    size_t arm = arm_of(code, begins ? code->regions.items[row->region].parent : row->region, at);
    int before = reach->begun[arm] - 1;
    reach->begun[arm] = at + 1;
    if (linear->reached[at] || before < 0 || !linear->reached[before] || row->after_block) return;
    if (reach->last_reported >= before || drops_between(linear, before, at)) return;
    reach->last_reported = at;
    refuse(linear, at);
}

static bool leaves(const FlowCode *code) {
    for (size_t at = 0; at < code->rows.count; at++)
        if (code->rows.items[at].kind == ROW_LEAVE) return true;
    return false;
}

void linear_reached(Linear *linear) {
    FlowCode *code = linear->code;
    if (!leaves(code)) return;
    solve(linear->arena, code, &rule, linear);
    Reach reach = {.linear = linear, .last_reported = -1};
    reach.begun = NEW_ARRAY(linear->arena, int, 2 * code->regions.count + 2);
    linear->last = true;
    for (size_t at = 0; at < code->rows.count; at++)
        if (code->rows.items[at].statement.hi) look(&reach, (int)at);
}
