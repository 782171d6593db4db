/* Checks that control around pipe operations is the same in all threads of a role, and around
 * tile statements in all threads of an instance. Needs the uniformity of values. The message
 * follows a value back to the place where its threads begin to differ. */
#include "flow/origin.h"
#include "check/passes.h"

typedef struct Control { /* the innermost differing condition or bound around a row */
    Uniformity how;
    Expr *cause;
    int region; /* its region */
} Control;

typedef struct Uniform {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    Role *role;
    const FlowCode *code;
    Control *controls;  /* by region */
    VEC(Span) reported; /* conditions and bounds with a refusal: one error each */
} Uniform;

/* ---- threads that a row needs ---------------------------------------------------------------- */

typedef enum Asks {
    ASKS_NOTHING,
    ASKS_INSTANCE, /* all threads of the instance execute it, or none */
    ASKS_ROLE      /* all threads of the role */
} Asks;

/* An instance has the turn alone; turns.c checks the place. */
static Asks asks(const Row *row) {
    static const Asks by[] = {[EXECUTES_EACH] = ASKS_NOTHING,
                              [EXECUTES_INSTANCE] = ASKS_INSTANCE,
                              [EXECUTES_ROLE] = ASKS_ROLE,
                              [EXECUTES_IN_TURN] = ASKS_NOTHING};
    return by[row_effects[row->kind].executes];
}

/* If some threads leave the region, its rows are not executed by all. */
static Asks asked_in(const FlowCode *code, const Region *region) {
    Asks most = ASKS_NOTHING;
    for (int at = region->begin; at <= region->end && most < ASKS_ROLE; at++) {
        const Row *row = &code->rows.items[at];
        Asks one = row->kind == ROW_TAKE ? ASKS_ROLE : asks(row);
        if (one > most) most = one;
    }
    return most;
}

static bool is_met(Asks what, Uniformity control) {
    switch (what) {
    case ASKS_NOTHING: return true;
    case ASKS_INSTANCE: return control != UNIFORM_LANE;
    case ASKS_ROLE: return control == UNIFORM_ROLE;
    }
    return false;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static const char *operation(const Row *row) {
    if (row->kind == ROW_ACQUIRE) return "acquires a stage";
    if (row->kind == ROW_ASK) return "asks for a stage (`try`)";
    if (row->kind == ROW_RELEASE || row->kind == ROW_DROP) return "releases a stage";
    if (row->kind == ROW_MOVE) return "moves a stage";
    if (row->kind == ROW_STEP) return "steps over a stage";
    if (row->kind == ROW_LEAVE) return "leaves a loop or role that has pipe operations";
    return "all threads of an instance execute this together";
}

/* The counts of the row's pipe are unknown. */
static void fault(Uniform *uniform, const Row *row) {
    if (row->kind != ROW_ACQUIRE && row->kind != ROW_RELEASE && row->kind != ROW_DROP) return;
    if (!valid_index(row->handle, uniform->role->handles.count)) return;
    int pipe = uniform->role->handles.items[row->handle].pipe;
    if (valid_index(pipe, uniform->prog->pipes.count))
        uniform->prog->pipes.items[pipe].faulty = true;
}

static void fault_all(Uniform *uniform, const Row *row) {
    if (row->kind != ROW_LEAVE) {
        fault(uniform, row);
        return;
    }
    const Region *region = &uniform->code->regions.items[row->target];
    for (int at = region->begin; at <= region->end; at++)
        fault(uniform, &uniform->code->rows.items[at]);
}

static bool was_reported(Uniform *uniform, Span cause) {
    for (size_t i = 0; i < uniform->reported.count; i++)
        if (uniform->reported.items[i].lo == cause.lo && uniform->reported.items[i].hi == cause.hi)
            return true;
    vec_push(uniform->arena, &uniform->reported, cause);
    return false;
}

static void help(Uniform *uniform, Diag *diag, const Row *row, Uniformity how) {
    Diags *diags = uniform->diags;
    if (row->kind == ROW_LEAVE)
        diag_help(diags, diag, "leave under a condition that is the same in all %s",
                  origin_among((Differs){.least = how}));
    else if (how == UNIFORM_LANE && asks(row) == ASKS_ROLE)
        diag_help(diags, diag,
                  "in `unsafe`, only arrivals and inline PTX may differ between threads: move this "
                  "out of the condition");
    else if (row->kind == ROW_PREFETCH)
        diag_help(diags, diag,
                  "move it out of the condition: the threads of an instance prefetch together, "
                  "each box once");
    else if (how == UNIFORM_LANE)
        diag_help(diags, diag, "select inside of the statement: `t[i] = c ? a : b`");
    else if (uniform->role->in_turn)
        diag_help(diags, diag,
                  "compute the condition from sizes, ranges and coordinates: all instances must "
                  "acquire the same stages");
    else
        diag_help(diags, diag,
                  "move the condition inside the block, around the tile statements: every instance "
                  "must take part in every stage");
}

static void refuse(Uniform *uniform, const Row *row, const Control *control) {
    Differs how = {.least = control->how};
    const char *among = origin_among(how);
    fault_all(uniform, row);
    if (was_reported(uniform, control->cause->span)) return;
    const char *what = row->kind == ROW_LEAVE       ? "leave"
                       : asks(row) == ASKS_INSTANCE ? "tile statement"
                                                    : "pipe operation";
    const char *which =
        uniform->code->regions.items[control->region].kind == REGION_FOR ? "bound" : "condition";
    Diag *diag =
        diag_at(uniform->diags, P0410, row->head, "%s under a %s that differs between %s of `%s`",
                what, which, among, uniform->role->name);
    diag_primary(uniform->diags, diag, "%s", operation(row));
    diag_label(uniform->diags, diag, control->cause->span, "differs between %s", among);
    origin_show(uniform->arena, uniform->prog, uniform->role, uniform->diags, diag, control->cause,
                how);
    help(uniform, diag, row, control->how);
}

/* ---- lanes in tile statements ---------------------------------------------------------------- */

typedef struct OneLane {
    Arena *arena;
    Expr *found; /* a local with different values per lane */
} OneLane;

static void find_lane(Expr *expr, void *data) {
    OneLane *lane = data;
    if (expr->kind == X_LOCAL && !lane->found && expr->uniformity == UNIFORM_LANE)
        lane->found = expr;
}

static void find_lane_below(Expr *expr, void *data) {
    const OneLane *lane = data;
    expr_visit(lane->arena, expr, find_lane, data);
}

/* The program does not define which thread computes an element of a tile: a value that differs
 * between lanes is meaningless there. */
static void refuse_lanes(Uniform *uniform, const Row *row) {
    OneLane lane = {.arena = uniform->arena};
    row_exprs(uniform->code, row, find_lane_below, &lane);
    if (!lane.found) return;
    const Local *local = &uniform->role->locals.items[lane.found->index];
    Diag *diag = diag_at(
        uniform->diags, P0424, lane.found->span,
        "`%s` differs between lanes, but all lanes execute this statement together", local->name);
    if (local->span.lo != lane.found->span.lo)
        diag_label(uniform->diags, diag, local->span, "declared here");
    origin_show(uniform->arena, uniform->prog, uniform->role, uniform->diags, diag, lane.found,
                (Differs){.least = UNIFORM_LANE});
    diag_help(uniform->diags, diag,
              "use an index of the statement instead: the compiler chooses the thread of each "
              "element; or use inline PTX");
}

/* ---- rows ------------------------------------------------------------------------------------ */

static Control narrower(Control control, Expr *expr, int region) {
    if (!expr || expr->kind == X_POISON || expr->uniformity <= control.how) return control;
    return (Control){.how = expr->uniformity, .cause = expr, .region = region};
}

static void find_controls(Uniform *uniform) {
    const FlowCode *code = uniform->code;
    uniform->controls = NEW_ARRAY(uniform->arena, Control, code->regions.count + 1);
    for (int i = 0; i < (int)code->regions.count; i++) {
        const Region *region = &code->regions.items[i];
        Control control =
            region->parent < 0 ? (Control){.how = UNIFORM_ROLE} : uniform->controls[region->parent];
        control = narrower(control, region->condition, i);
        control = narrower(narrower(control, region->lo, i), region->hi, i);
        uniform->controls[i] = narrower(control, region->where, i);
    }
}

static void check_row(Uniform *uniform, const Row *row) {
    const Control *control = &uniform->controls[row->region];
    Asks what = asks(row);
    if (row->leaving && row->kind != ROW_LEAVE) return; /* the leave is checked instead */
    if (row->kind == ROW_LEAVE && control->how != UNIFORM_ROLE)
        what = asked_in(uniform->code, &uniform->code->regions.items[row->target]);
    if (!is_met(what, control->how))
        refuse(uniform, row, control);
    else if (row->kind == ROW_TILE || row->kind == ROW_PREFETCH)
        refuse_lanes(uniform, row);
}

void uniform_check(Arena *arena, Prog *prog, Diags *diags) {
    for (size_t r = 0; r < prog->roles.count; r++) {
        Role *role = &prog->roles.items[r];
        Uniform uniform = {
            .arena = arena, .prog = prog, .diags = diags, .role = role, .code = role->code};
        find_controls(&uniform);
        for (size_t at = 0; at < role->code->rows.count; at++)
            check_row(&uniform, &role->code->rows.items[at]);
    }
}
