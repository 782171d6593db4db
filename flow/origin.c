/* Reasons why a value differs between threads or blocks. Needs the uniformity of each expression
 * and variable; adds the steps to a message: a variable differs because an assigned value does,
 * because of the conditions and bounds of its assignments, or because only some threads leave an
 * enclosing loop. */
#include "flow/origin.h"

#include "flow/reaching.h"

typedef struct Step {
    Span span;
    const char *text;
} Step;

typedef struct Around { /* the innermost differing condition or bound around a row */
    Expr *cause;
    int region; /* its region */
} Around;

typedef struct Origin {
    Arena *arena;
    const Prog *prog;
    const Role *role;
    FlowCode *code;
    Differs how;
    Around *around;     /* by region: for its rows */
    const Row **leaves; /* by region: the first leave to it under differing control */
    VEC(int) seen;      /* variables already followed */
    VEC(Step) steps;
    /* Of the current variable: the first row for each reason */
    int local;
    const Row *by_value, *by_control, *by_leave;
    Expr *value;
    Around control;
    const Row *leave; /* after it, the remaining threads get their value by `by_leave` */
} Origin;

/* The part of an expression that differs itself, and its first differing variable that was not
 * followed yet */
typedef struct Parts {
    const Origin *origin;
    const Expr *rank, *read, *axis, *local;
} Parts;

bool origin_differs(const Expr *expr, Differs how) {
    if (!expr || expr->kind == X_POISON) return false;
    return how.along ? (expr->along & how.along) != 0 : expr->uniformity >= how.least;
}

const char *origin_among(Differs how) {
    if (how.along) return "the blocks of a cluster";
    return how.least == UNIFORM_INSTANCE ? "instances" : "threads";
}

static void step(Origin *origin, Span span, const char *format, ...) PRINTF_LIKE(3, 4);
static void step(Origin *origin, Span span, const char *format, ...) {
    va_list args;
    va_start(args, format);
    Step one = {span, arena_vprintf(origin->arena, format, args)};
    va_end(args);
    vec_push(origin->arena, &origin->steps, one);
}

static Span place_of(const Row *row) { return row->head.hi > row->head.lo ? row->head : row->span; }

/* ---- expressions ----------------------------------------------------------------------------- */

static bool own_read(const Origin *origin, const Access *read) {
    if (origin->how.along) return read->space != SPACE_GLOBAL;
    return read->space == SPACE_SHARED || read->space == SPACE_REGISTER ||
           (read->space == SPACE_STAGE && origin->role->in_turn);
}

static bool was_seen(const Origin *origin, int local) {
    for (size_t i = 0; i < origin->seen.count; i++)
        if (origin->seen.items[i] == local) return true;
    return false;
}

static void find_part(Expr *expr, void *data) {
    Parts *parts = data;
    const Origin *origin = parts->origin;
    if (!origin_differs(expr, origin->how)) return;
    if (expr->kind == X_RANK && !parts->rank) parts->rank = expr;
    if (expr->kind == X_READ && !parts->read && own_read(origin, expr->read)) parts->read = expr;
    if (expr->kind != X_LOCAL) return;
    bool axis = origin->role->locals.items[expr->index].kind == LOCAL_AXIS;
    if (axis && !parts->axis) parts->axis = expr;
    if (!axis && !parts->local && !was_seen(origin, expr->index)) parts->local = expr;
}

static Parts parts_of(const Origin *origin, Expr *expr) {
    Parts parts = {.origin = origin};
    if (expr) expr_visit(origin->arena, expr, find_part, &parts);
    return parts;
}

static bool explains(const Origin *origin, Expr *expr) {
    if (!origin_differs(expr, origin->how)) return false;
    Parts parts = parts_of(origin, expr);
    return parts.rank || parts.read || parts.axis || parts.local;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static Around narrower(const Origin *origin, Around around, Expr *expr, int region) {
    return explains(origin, expr) ? (Around){expr, region} : around;
}

static void find_control(Origin *origin) {
    const FlowCode *code = origin->code;
    for (int i = 0; i < (int)code->regions.count; i++) {
        const Region *region = &code->regions.items[i];
        Around around = region->parent < 0 ? (Around){NULL, -1} : origin->around[region->parent];
        around = narrower(origin, around, region->condition, i);
        around = narrower(origin, around, region->lo, i);
        around = narrower(origin, around, region->hi, i);
        origin->around[i] = narrower(origin, around, region->where, i);
        origin->leaves[i] = NULL;
    }
    for (size_t at = code->rows.count; at-- > 0;) {
        const Row *row = &code->rows.items[at];
        if (row->kind == ROW_LEAVE && origin->around[row->region].cause)
            origin->leaves[row->target] = row;
    }
}

static const Row *leave_around(const Origin *origin, int region) {
    while (region >= 0 && !origin->leaves[region])
        region = origin->code->regions.items[region].parent;
    return region < 0 ? NULL : origin->leaves[region];
}

static void assigned(Origin *origin, const Row *row, Expr *value, int control) {
    const Around *around = control < 0 ? NULL : &origin->around[control];
    if (!origin->by_value && explains(origin, value)) origin->by_value = row, origin->value = value;
    if (!origin->by_control && around && around->cause)
        origin->by_control = row, origin->control = *around;
    if (origin->by_leave) return;
    origin->leave = leave_around(origin, row->region);
    if (origin->leave) origin->by_leave = row;
}

/* True for the index of a thread, or an output of inline PTX */
static bool gives(const Unsafe *what, int local) {
    bool any = what->kind == UNSAFE_VALUE && what->local == local;
    for (size_t i = 0; i < what->operands.count; i++) any |= what->operands.items[i].local == local;
    return any;
}

typedef struct Sought {
    const Expr *expr;
    Arena *arena;
    bool found;
} Sought;

static void find_node(Expr *expr, void *data) {
    Sought *sought = data;
    sought->found |= expr == sought->expr;
}

static void find_below(Expr *expr, void *data) {
    expr_visit(((const Sought *)data)->arena, expr, find_node, data);
}

/* The first row that evaluates the expression; -1: none */
static int row_of(const Origin *origin, const Expr *expr) {
    Sought sought = {.expr = expr, .arena = origin->arena};
    for (size_t at = 0; at < origin->code->rows.count; at++) {
        row_exprs(origin->code, &origin->code->rows.items[at], find_below, &sought);
        if (sought.found) return (int)at;
    }
    return -1;
}

/* Searches for the assignments of the variable that reach the use */
static void search(Origin *origin, const Expr *use) {
    int used = row_of(origin, use);
    const bool *reaches =
        used < 0 ? NULL : flow_reaching(origin->arena, origin->code, use->index, used);
    origin->local = use->index;
    origin->by_value = origin->by_control = origin->by_leave = NULL;
    find_control(origin);
    for (size_t at = 0; at < origin->code->rows.count; at++) {
        const Row *row = &origin->code->rows.items[at];
        const Region *region = &origin->code->regions.items[row->region];
        if (reaches && !reaches[at]) continue;
        if (row->kind == ROW_LOOP && region->kind == REGION_FOR && region->var == origin->local) {
            assigned(origin, row, region->lo, region->parent);
            if (!origin->how.along) assigned(origin, row, region->hi, region->parent);
        }
        if (row->kind == ROW_SET && row->local == origin->local)
            assigned(origin, row, row->value, row->region);
        if (row->kind == ROW_UNSAFE && !origin->by_value && gives(row->unsafe, origin->local))
            origin->by_value = row, origin->value = NULL;
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Follows a variable one step back; returns the next expression to follow, or NULL */
static Expr *follow(Origin *origin, const Expr *use) {
    const Local *local = &origin->role->locals.items[use->index];
    const char *among = origin_among(origin->how);
    if (!origin->how.along && origin->role->in_turn && !local->in_grid &&
        local->kind == LOCAL_VAR) {
        step(origin, local->span, "each instance of `%s` has its own, of its own iterations",
             origin->role->name);
        return NULL;
    }
    vec_push(origin->arena, &origin->seen, use->index);
    search(origin, use);
    if (origin->by_value && origin->by_value->kind == ROW_UNSAFE) {
        step(origin, place_of(origin->by_value), "each thread has a `%s` of its own", local->name);
        return NULL;
    }
    if (origin->by_value) {
        step(origin, place_of(origin->by_value), "`%s` gets its value here", local->name);
        return origin->value;
    }
    if (origin->by_control) {
        step(origin, place_of(origin->by_control), "`%s` gets its value here", local->name);
        step(origin, origin->control.cause->span, "under this %s, which differs between %s",
             origin->code->regions.items[origin->control.region].kind == REGION_FOR ? "bound"
                                                                                    : "condition",
             among);
        return origin->control.cause;
    }
    if (origin->by_leave) {
        step(origin, place_of(origin->by_leave), "`%s` gets its value here", local->name);
        step(origin, origin->leave->span, "for some of the %s only: others have left here",
             origin->how.along ? "blocks" : among);
        return origin->around[origin->leave->region].cause;
    }
    step(origin, local->span, "`%s` is assigned where %s take different paths", local->name,
         origin->how.along ? "blocks" : among);
    return NULL;
}

static void trace(Origin *origin, Expr *cause) {
    while (cause) {
        Parts parts = parts_of(origin, cause);
        if (parts.rank) {
            step(origin, parts.rank->span, "`rank` differs from instance to instance of `%s`",
                 origin->role->name);
            return;
        }
        if (parts.axis) {
            step(origin, origin->prog->cluster_span, "`%s` differs between the blocks of a cluster",
                 origin->role->locals.items[parts.axis->index].name);
            return;
        }
        if (parts.read) {
            if (origin->how.along)
                step(origin, parts.read->span, "each block reads its own");
            else
                step(origin, parts.read->span, "each instance of `%s` reads its own",
                     origin->role->name);
            return;
        }
        cause = parts.local ? follow(origin, parts.local) : NULL;
    }
}

void origin_show(Arena *arena, const Prog *prog, const Role *role, Diags *diags, Diag *diag,
                 Expr *cause, Differs how) {
    Origin origin = {.arena = arena, .prog = prog, .role = role, .code = role->code, .how = how};
    origin.around = NEW_ARRAY(arena, Around, role->code->regions.count + 1);
    origin.leaves = NEW_ARRAY(arena, const Row *, role->code->regions.count + 1);
    trace(&origin, cause);
    size_t room = DIAG_MAX_LABELS - (size_t)diag->label_count, count = origin.steps.count,
           hidden = count > room ? count - room : 0;
    for (size_t i = 0; i < count; i++)
        if (!hidden || i + 1 < room || i + 1 == count)
            diag_label(diags, diag, origin.steps.items[i].span, "%s", origin.steps.items[i].text);
    if (hidden)
        diag_note(diags, diag, "%zu more step%s lead%s to the place where it begins to differ",
                  hidden, hidden == 1 ? "" : "s", hidden == 1 ? "s" : "");
}
