/* Is every element of a role's tiles, and every variable, written before it is read, whichever path is taken?
 *
 * Each role is walked once per instance. A state carries one bit an element of what has been written on every path here, and
 * guards: what has been written as well where a condition holds, so that a second `if` under the same condition finds what the
 * first one wrote. What conditions say on the way is known to the algebra as facts. A loop whose bounds are constant is
 * followed turn by turn, another one as its first iteration and a later one: nothing that was written is ever lost. */
#include "check/passes.h"
#include "derive/tiles.h"
#include "prog/walk.h"

#include <string.h>

#define MAX_STEPS  20000 /* statements of a role that are followed; what is beyond is not judged */
#define MAX_GUARDS 32    /* in a state */

/* Written as well where the condition is `truth`, the loop has an iteration, or the domain has */
typedef struct Guard {
    Expr *condition;
    bool truth;
    const Poly *trips; /* NULL, or: where it is 1 or more */
    int domain;        /* -1, or: where it is not empty */
    int object;
    Bits bits;
} Guard;

typedef struct State {
    bool live;
    Bits *must; /* by object: never changed in place */
    VEC(const Guard *) guards;
} State;

typedef struct Frame Frame;
struct Frame {
    Frame *outer;
    const Stmt *stmt;
    State breaks, continues;
};

typedef struct Taken { /* for granted */
    const Poly *condition; /* NULL: `domain` is not empty */
    bool truth;
    int domain;
} Taken;

typedef enum Arm {
    ARM_THEN,
    ARM_OTHERWISE,
    ARM_NONE
} Arm; /* of an `if`; a loop without iterations, or one that is left */

typedef struct Loss { /* elements that one of the paths that met had not written */
    int object;
    const Stmt *stmt;
    Arm arm;
    Bits bits;
} Loss;

typedef struct Object { /* a tile of the role, or a variable */
    const char *name;
    Span span;
    const RoleTile *tile; /* NULL: a variable */
    int64_t elements;     /* 0: not followed */
    size_t words;
    bool said;
    Span written; /* by the last statement seen that writes it */
    bool any;
} Object;

typedef struct Assigned {
    Tiles *tiles;
    Role *role;
    Algebra *algebra;
    Here here;
    Object *objects; /* tiles, then locals */
    size_t count;
    Frame *frame;
    VEC(Taken) assumed;
    VEC(Loss) losses;
    int steps;
} Assigned;

/* ---- states ----------------------------------------------------------------------------------------------------------- */

static Bits new_bits(Assigned *a, int object) {
    return NEW_ARRAY(a->tiles->arena, uint64_t, a->objects[object].words + 1);
}

static State copy_state(Assigned *a, const State *from) {
    State state = {.live = from->live, .must = NEW_ARRAY(a->tiles->arena, Bits, a->count + 1)};
    for (size_t i = 0; i < a->count && from->must; i++) state.must[i] = from->must[i];
    for (size_t i = 0; i < from->guards.count; i++) vec_push(a->tiles->arena, &state.guards, from->guards.items[i]);
    return state;
}

static void add_bits(Assigned *a, State *state, int object, Bits bits) {
    size_t words = a->objects[object].words;
    if (bits_hold(state->must[object], bits, words)) return;
    Bits sum = new_bits(a, object);
    for (size_t w = 0; w < words; w++) sum[w] = state->must[object][w] | bits[w];
    state->must[object] = sum;
}

static void add_loss(Assigned *a, int object, const Stmt *stmt, Arm arm, Bits had, Bits left) {
    Bits bits = new_bits(a, object);
    for (size_t w = 0; w < a->objects[object].words; w++) bits[w] = had[w] & ~left[w];
    vec_push(a->tiles->arena, &a->losses, (Loss){object, stmt, arm, bits});
}

static bool has_guard(const State *state, const Guard *guard) {
    for (size_t i = 0; i < state->guards.count; i++)
        if (state->guards.items[i] == guard) return true;
    return false;
}

/* Two paths meet at `stmt`: `from` is the one by `arm`, `to` the other */
static void join(Assigned *a, State *to, const State *from, const Stmt *stmt, Arm from_arm, Arm to_arm) {
    if (!from->live) return;
    if (!to->live) {
        *to = copy_state(a, from);
        return;
    }
    State both = {.live = true, .must = NEW_ARRAY(a->tiles->arena, Bits, a->count + 1)};
    for (size_t i = 0; i < to->guards.count; i++) {
        const Guard *guard = to->guards.items[i];
        if (has_guard(from, guard) ||
            bits_hold(from->must[guard->object], guard->bits, a->objects[guard->object].words))
            vec_push(a->tiles->arena, &both.guards, guard);
    }
    for (size_t i = 0; i < from->guards.count && both.guards.count < MAX_GUARDS; i++) {
        const Guard *guard = from->guards.items[i];
        if (!has_guard(to, guard) && bits_hold(to->must[guard->object], guard->bits, a->objects[guard->object].words))
            vec_push(a->tiles->arena, &both.guards, guard);
    }
    for (size_t i = 0; i < a->count; i++) {
        Bits x = to->must[i], y = from->must[i];
        both.must[i] = x;
        if (x == y || !a->objects[i].elements) continue;
        bool loses_x = !bits_hold(y, x, a->objects[i].words), loses_y = !bits_hold(x, y, a->objects[i].words);
        if (loses_x) add_loss(a, (int)i, stmt, from_arm, x, y);
        if (loses_y) add_loss(a, (int)i, stmt, to_arm, y, x);
        if (!loses_x) continue;
        both.must[i] = new_bits(a, (int)i);
        for (size_t w = 0; w < a->objects[i].words; w++) both.must[i][w] = x[w] & y[w];
    }
    *to = both;
}

/* ---- conditions ------------------------------------------------------------------------------------------------------- */

static bool proved(Assigned *a, const Poly *x, const Poly *y, int64_t margin) { /* x - y >= margin */
    const Poly *room = poly_sum(a->algebra, poly_sum(a->algebra, x, y, -1), poly_constant(a->algebra, margin), -1);
    return room && poly_at_least_zero(a->algebra, room);
}

static bool compares_integers(const Expr *condition) {
    if (condition->kind != X_BINARY) return false;
    Element type = condition->binary.left->type;
    BinaryOp op = condition->binary.op;
    return op >= OP_EQ && op <= OP_GE && (type == E_I32 || type == E_I64 || type == E_U32 || type == E_U64);
}

static int decide_integers(Assigned *a, Expr *condition) {
    const Poly *x = here_poly(&a->here, condition->binary.left), *y = here_poly(&a->here, condition->binary.right);
    bool equal_sense = condition->binary.op == OP_EQ;
    switch (condition->binary.op) {
    case OP_EQ:
    case OP_NE:
        if (proved(a, x, y, 1) || proved(a, y, x, 1)) return !equal_sense;
        return proved(a, x, y, 0) && proved(a, y, x, 0) ? equal_sense : -1;
    case OP_LT: return proved(a, y, x, 1) ? 1 : proved(a, x, y, 0) ? 0 : -1;
    case OP_LE: return proved(a, y, x, 0) ? 1 : proved(a, x, y, 1) ? 0 : -1;
    case OP_GT: return proved(a, x, y, 1) ? 1 : proved(a, y, x, 0) ? 0 : -1;
    case OP_GE: return proved(a, x, y, 0) ? 1 : proved(a, y, x, 1) ? 0 : -1;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_MOD:
    case OP_AND:
    case OP_OR: break;
    }
    return -1;
}

/* 1, 0, or -1 where it is not known */
static int decide(Assigned *a, Expr *condition) {
    int truth = here_truth(&a->here, condition);
    if (truth >= 0 || !condition) return truth;
    if (condition->kind == X_UNARY && condition->unary.op == OP_NOT) {
        truth = decide(a, condition->unary.operand);
        return truth < 0 ? -1 : !truth;
    }
    if (condition->kind == X_BINARY && (condition->binary.op == OP_AND || condition->binary.op == OP_OR)) {
        bool either = condition->binary.op == OP_OR;
        int left = decide(a, condition->binary.left), right = decide(a, condition->binary.right);
        if (left == either || right == either) return either;
        if (left >= 0 && right >= 0) return !either;
    }
    const Poly *poly = here_poly(&a->here, condition);
    for (size_t i = 0; i < a->assumed.count && poly; i++)
        if (a->assumed.items[i].condition && poly_equal(a->assumed.items[i].condition, poly))
            return a->assumed.items[i].truth;
    return compares_integers(condition) ? decide_integers(a, condition) : -1;
}

static void assume_least(Assigned *a, const Poly *x, const Poly *y, int64_t margin) { /* x - y >= margin */
    const Poly *fact = poly_sum(a->algebra, poly_sum(a->algebra, x, y, -1), poly_constant(a->algebra, margin), -1);
    if (fact && !poly_changes(a->algebra, fact)) vec_push(a->tiles->arena, &a->algebra->facts, fact);
}

static void assume_integers(Assigned *a, Expr *condition, bool truth) {
    const Poly *x = here_poly(&a->here, condition->binary.left), *y = here_poly(&a->here, condition->binary.right);
    BinaryOp op = condition->binary.op;
    if (op == (truth ? OP_EQ : OP_NE)) {
        assume_least(a, x, y, 0);
        assume_least(a, y, x, 0);
    }
    if (op == (truth ? OP_NE : OP_EQ)) { /* on the side of it where it is */
        if (proved(a, x, y, 0)) assume_least(a, x, y, 1);
        if (proved(a, y, x, 0)) assume_least(a, y, x, 1);
    }
    if (op == OP_LT || op == OP_LE) {
        if (truth)
            assume_least(a, y, x, op == OP_LT);
        else
            assume_least(a, x, y, op == OP_LE);
    }
    if (op == OP_GT || op == OP_GE) {
        if (truth)
            assume_least(a, x, y, op == OP_GT);
        else
            assume_least(a, y, x, op == OP_GE);
    }
}

/* From here to the end of the block around. What changes meanwhile says nothing. */
static void assume(Assigned *a, Expr *condition, bool truth) {
    if (!condition) return;
    if (condition->kind == X_UNARY && condition->unary.op == OP_NOT) {
        assume(a, condition->unary.operand, !truth);
        return;
    }
    if (condition->kind == X_BINARY && condition->binary.op == (truth ? OP_AND : OP_OR)) {
        assume(a, condition->binary.left, truth);
        assume(a, condition->binary.right, truth);
    }
    const Poly *poly = here_poly(&a->here, condition);
    if (poly && here_follows(a->algebra, poly)) vec_push(a->tiles->arena, &a->assumed, (Taken){poly, truth, -1});
    if (compares_integers(condition)) assume_integers(a, condition, truth);
}

typedef struct Known {
    size_t facts, assumed;
} Known;

static Known known(Assigned *a) {
    (void)poly_at_least_zero(a->algebra,
                             poly_constant(a->algebra, 0)); /* what `requires` says stands before all that is assumed */
    return (Known){a->algebra->facts.count, a->assumed.count};
}

static void forget(Assigned *a, Known before) {
    a->algebra->facts.count = before.facts;
    a->assumed.count = before.assumed;
}

/* ---- guards ----------------------------------------------------------------------------------------------------------- */

static bool guard_holds(Assigned *a, const Guard *guard) {
    for (size_t i = 0; i < a->assumed.count && guard->domain >= 0; i++)
        if (!a->assumed.items[i].condition && a->assumed.items[i].domain == guard->domain) return true;
    if (guard->trips && proved(a, guard->trips, poly_constant(a->algebra, 0), 1)) return true;
    return guard->condition && decide(a, guard->condition) == guard->truth;
}

static void apply_guards(Assigned *a, State *state) {
    for (size_t i = 0; i < state->guards.count && state->live; i++) {
        const Guard *guard = state->guards.items[i];
        if (!bits_hold(state->must[guard->object], guard->bits, a->objects[guard->object].words) &&
            guard_holds(a, guard))
            add_bits(a, state, guard->object, guard->bits);
    }
}

/* `state` is what is certain; `where` what is where the guard holds */
static void add_guards(Assigned *a, State *state, const State *where, Guard guard) {
    if (!state->live || !where->live) return;
    if (guard.condition) {
        const Poly *poly = here_poly(&a->here, guard.condition);
        if (!poly || !here_follows(a->algebra, poly)) return;
    }
    if (guard.trips && poly_changes(a->algebra, guard.trips)) guard.trips = NULL;
    if (!guard.condition && !guard.trips && guard.domain < 0) return;
    for (size_t i = 0; i < a->count && state->guards.count < MAX_GUARDS; i++) {
        if (!a->objects[i].elements || bits_hold(state->must[i], where->must[i], a->objects[i].words)) continue;
        Guard *made = NEW(a->tiles->arena, Guard);
        *made = guard;
        made->object = (int)i, made->bits = where->must[i];
        vec_push(a->tiles->arena, &state->guards, made);
    }
}

/* The variable has another value from here on: what conditions on it said is over. */
static void change(Assigned *a, State *state, int local) {
    int atom = algebra_atom_local(a->algebra, a->role, local);
    size_t kept = 0;
    VEC(const Guard *) guards = {0}; /* states share their lists */
    for (size_t i = 0; i < state->guards.count; i++) {
        const Guard *guard = state->guards.items[i];
        const Poly *poly = guard->condition ? here_poly(&a->here, guard->condition) : NULL;
        if (poly && poly_mentions(a->algebra, poly, atom)) continue;
        vec_push(a->tiles->arena, &guards, guard);
        kept++;
    }
    state->guards.items = guards.items, state->guards.count = kept, state->guards.capacity = guards.capacity;
    for (size_t i = 0; i < a->assumed.count; i++) {
        Taken *taken = &a->assumed.items[i];
        if (taken->condition && poly_mentions(a->algebra, taken->condition, atom)) *taken = (Taken){.domain = -1};
    }
}

typedef struct Changes {
    Assigned *a;
    State *state;
} Changes;

static void find_change(Stmt *stmt, void *data) {
    const Changes *changes = data;
    if (stmt->kind == S_SCALAR && stmt->scalar.local >= 0) change(changes->a, changes->state, stmt->scalar.local);
}

/* ---- reads and writes ------------------------------------------------------------------------------------------------- */

static int object_of(const Assigned *a, const Access *access) {
    bool tile = access->space == SPACE_REGISTER || access->space == SPACE_SHARED;
    if (!tile || !valid_index(access->object, a->role->tiles.count) || !a->objects[access->object].elements) return -1;
    return access->object;
}

static const char *element_text(Assigned *a, int object, int64_t at) {
    const Object *row = &a->objects[object];
    int64_t subs[PROG_MAX_RANK];
    Str text = str_new(a->tiles->arena);
    for (int d = row->tile->rank - 1; d >= 0; d--) subs[d] = at % row->tile->extents[d], at /= row->tile->extents[d];
    str_printf(&text, "%s[", row->name);
    for (int d = 0; d < row->tile->rank; d++) str_printf(&text, "%s%lld", d ? ", " : "", (long long)subs[d]);
    str_char(&text, ']');
    return text.text;
}

static void show_loss(Assigned *a, Diag *diag, int object, int64_t bit) {
    for (size_t i = a->losses.count; i-- > 0;) {
        const Loss *loss = &a->losses.items[i];
        if (loss->object != object || !(loss->bits[bit / 64] >> (bit % 64) & 1)) continue;
        const char *how = loss->stmt->kind == S_IF ? loss->arm == ARM_THEN ? "not written where this holds"
                                                                           : "not written where this does not hold"
                          : loss->arm == ARM_NONE  ? "not written where this loop has no iteration"
                                                   : "not written on one of the paths that meet behind this";
        diag_label(a->tiles->diags, diag, loss->stmt->head, "%s", how);
        return;
    }
}

static void report(Assigned *a, int object, Span at, int64_t bit) {
    Tiles *tiles = a->tiles;
    Object *row = &a->objects[object];
    if (row->said || a->steps > MAX_STEPS) return;
    row->said = true;
    Diag *diag = diag_at(tiles->diags, P0228, at,
                         row->any ? "`%s` is read where not all of it has certainly been written"
                                  : "`%s` is read, and nothing has been written to it",
                         row->name);
    diag_primary(tiles->diags, diag, "read here");
    diag_label(tiles->diags, diag, row->span, "declared here without a value");
    show_loss(a, diag, object, bit);
    if (row->any) diag_label(tiles->diags, diag, row->written, row->tile ? "written here" : "assigned here");
    if (row->tile && row->any)
        diag_note(tiles->diags, diag, "element `%s` may not have been written", element_text(a, object, bit));
    diag_help(tiles->diags, diag,
              "give it a value where it is declared, `= 0`, or write it on every path before it is read");
}

static void require(Assigned *a, State *state, int object, Bits bits, Span at) {
    Object *row = &a->objects[object];
    for (size_t w = 0; w < row->words; w++) {
        uint64_t missing = bits[w] & ~state->must[object][w];
        if (!missing) continue;
        report(a, object, at, (int64_t)w * 64 + __builtin_ctzll(missing));
        Bits all = new_bits(a, object);
        bits_set(all, 0, row->elements);
        add_bits(a, state, object, all);
        return;
    }
}

typedef struct Reads {
    Assigned *a;
    State *state;
    const IndexSpace *space;
} Reads;

static void visit_read(Expr *expr, void *data) {
    const Reads *reads = data;
    Assigned *a = reads->a;
    if (expr->kind == X_LOCAL && valid_index(expr->index, a->role->locals.count)) {
        int object = (int)a->role->tiles.count + expr->index;
        uint64_t one = 1;
        if (a->objects[object].elements) require(a, reads->state, object, &one, expr->span);
    }
    int object = expr->kind == X_READ && expr->read ? object_of(a, expr->read) : -1;
    if (object < 0) return;
    Bits bits = new_bits(a, object);
    /* of what is found by its contents, such as t[I[i]], only that there is something can be asked */
    if (here_elements(&a->here, reads->space, expr->read, a->role->tiles.items[object].extents, 0, bits))
        require(a, reads->state, object, bits, expr->read->span);
}

static void read_expr(Assigned *a, State *state, const IndexSpace *space, Expr *expr) {
    Reads reads = {a, state, space};
    if (expr) expr_visit(a->tiles->arena, expr, visit_read, &reads);
}

static void wrote(Assigned *a, State *state, int object, Bits bits, Span span) {
    a->objects[object].any = true, a->objects[object].written = span;
    add_bits(a, state, object, bits);
}

static void wrote_all(Assigned *a, State *state, int object, Span span) {
    Bits bits = new_bits(a, object);
    bits_set(bits, 0, a->objects[object].elements);
    wrote(a, state, object, bits, span);
}

static void walk_tile(Assigned *a, Stmt *stmt, State *state) {
    Tile *tile = stmt->tile;
    if (!tile) return;
    const Access *target = &tile->target;
    int object = object_of(a, target);
    if (tiles_site(a->tiles, stmt)->poisoned) { /* its subscripts may lie anywhere */
        if (object >= 0) wrote_all(a, state, object, target->span);
        return;
    }
    for (int d = 0; d < target->rank; d++) read_expr(a, state, &tile->space, target->subs[d]);
    if (target->element) read_expr(a, state, &tile->space, target->element);
    read_expr(a, state, &tile->space, tile->value);
    if (object < 0) return;
    Bits bits = new_bits(a, object);
    bool exact = here_elements(&a->here, &tile->space, target, a->role->tiles.items[object].extents, 0, bits);
    if (!exact) bits_set(bits, 0, a->objects[object].elements); /* which ones is not known: taken for all */
    if (exact && tile->op != ASSIGN_SET) require(a, state, object, bits, target->span);
    wrote(a, state, object, bits, target->span);
}

static void walk_scalar(Assigned *a, Stmt *stmt, State *state) {
    uint64_t one = 1;
    int object = (int)a->role->tiles.count + stmt->scalar.local;
    read_expr(a, state, stmt->scalar.space, stmt->scalar.value);
    if (stmt->scalar.local >= 0) change(a, state, stmt->scalar.local);
    if (stmt->scalar.local >= 0 && a->objects[object].elements) wrote(a, state, object, &one, stmt->span);
}

static void read_below(Expr *expr, void *data) {
    Assigned *a = ((void **)data)[0];
    read_expr(a, ((void **)data)[1], NULL, expr);
}

static void walk_unsafe(Assigned *a, Stmt *stmt, State *state) {
    uint64_t one = 1;
    const Unsafe *what = stmt->unsafe;
    int locals = (int)a->role->tiles.count;
    walk_exprs(stmt, read_below, (void *[]){a, state});
    if (what->local >= 0 && a->objects[locals + what->local].elements) wrote(a, state, locals + what->local, &one, stmt->span);
    for (size_t i = 0; i < what->operands.count; i++) {
        int local = what->operands.items[i].local;
        if (local >= 0 && a->objects[locals + local].elements) wrote(a, state, locals + local, &one, stmt->span);
    }
}

/* ---- paths ------------------------------------------------------------------------------------------------------------ */

static void walk(Assigned *a, Stmt *stmt, State *state);

static bool holds_if(const Stmt *stmt) {
    if (!stmt) return false;
    switch (stmt->kind) {
    case S_BLOCK:
        for (size_t i = 0; i < stmt->block.body.count; i++)
            if (holds_if(stmt->block.body.items[i])) return true;
        return false;
    case S_IF: return true;
    case S_GRID: return holds_if(stmt->grid.body);
    case S_FOR: return holds_if(stmt->loop.body);
    case S_STAGE: return holds_if(stmt->stage.body);
    case S_TILE:
    case S_SCALAR:
    case S_LEAVE:
    case S_TRY:
    case S_ACQUIRE:
    case S_RELEASE:
    case S_UNSAFE:
    case S_MOVE: break;
    }
    return false;
}

static void walk_leave(Assigned *a, Stmt *stmt, State *state) {
    for (Frame *frame = a->frame; frame; frame = frame->outer) {
        if (frame->stmt != stmt->leave.target) continue;
        join(a, stmt->leave.kind == LEAVE_CONTINUE ? &frame->continues : &frame->breaks, state, stmt, ARM_THEN,
             ARM_THEN);
        break;
    }
    state->live = false;
}

/* One turn of the body from `state`. Guards made in it speak of this turn alone. */
static void turn(Assigned *a, Frame *frame, Stmt *body, State *state) {
    State before = copy_state(a, state);
    frame->continues = (State){0};
    apply_guards(a, state);
    walk(a, body, state);
    join(a, state, &frame->continues, frame->stmt, ARM_THEN, ARM_THEN);
    state->guards = before.guards;
}

static void walk_turns(Assigned *a, Stmt *stmt, State *state, int64_t lo, int64_t hi) {
    Frame frame = {.outer = a->frame, .stmt = stmt};
    int atom = algebra_atom_local(a->algebra, a->role, stmt->loop.var);
    State before = copy_state(a, state);
    a->frame = &frame;
    for (int64_t i = lo; i < hi && state->live; i++) {
        here_bind(&a->here, atom, i);
        turn(a, &frame, stmt->loop.body, state);
        a->here.bound--;
    }
    a->frame = frame.outer;
    frame.breaks.guards = before.guards;
    join(a, state, &frame.breaks, stmt, ARM_THEN, ARM_THEN);
}

/* The first iteration, and a later one: after one of them, or after both. */
static void walk_iterations(Assigned *a, Frame *frame, Stmt *body, State *state) {
    Stmt *stmt = (Stmt *)frame->stmt;
    bool counts = stmt->kind == S_FOR && stmt->loop.var >= 0;
    Known before = known(a);
    const Poly *lo = counts ? here_poly(&a->here, stmt->loop.lo) : NULL, *var = NULL;
    if (counts) {
        var = poly_atom(a->algebra, algebra_atom_local(a->algebra, a->role, stmt->loop.var));
        assume_least(a, here_poly(&a->here, stmt->loop.hi), lo, 1);
        if (stmt->loop.domain >= 0 && stmt->loop.whole)
            vec_push(a->tiles->arena, &a->assumed, (Taken){NULL, true, stmt->loop.domain});
    }
    if (!counts || stmt->loop.where || !holds_if(body)) {
        turn(a, frame, body, state);
        forget(a, before);
        return;
    }
    Known general = known(a);
    assume_least(a, var, lo, 0);
    assume_least(a, lo, var, 0);
    turn(a, frame, body, state);
    forget(a, general);
    State later = copy_state(a, state);
    assume_least(a, var, lo, 1);
    if (later.live) turn(a, frame, body, &later);
    forget(a, before);
}

static bool certainly_runs(Assigned *a, const Stmt *stmt) {
    if (stmt->kind == S_GRID) return !a->tiles->prog->persistent;
    bool whole = stmt->loop.domain >= 0 && stmt->loop.whole;
    for (size_t i = 0; i < a->assumed.count && whole; i++)
        if (!a->assumed.items[i].condition && a->assumed.items[i].domain == stmt->loop.domain) return true;
    return !stmt->loop.where && proved(a, here_poly(&a->here, stmt->loop.hi), here_poly(&a->here, stmt->loop.lo), 1);
}

static void walk_loop(Assigned *a, Stmt *stmt, State *state) {
    Stmt *body = stmt->kind == S_GRID ? stmt->grid.body : stmt->loop.body;
    int64_t lo, hi;
    stmt_visit(body, find_change, &(Changes){a, state});
    if (stmt->kind == S_FOR) {
        read_expr(a, state, NULL, stmt->loop.lo);
        read_expr(a, state, NULL, stmt->loop.hi);
        if (!stmt->loop.where && stmt->loop.var >= 0 && here_value(&a->here, stmt->loop.lo, &lo) &&
            here_value(&a->here, stmt->loop.hi, &hi) && hi - lo <= MAX_TURNS) {
            walk_turns(a, stmt, state, lo, hi);
            return;
        }
    }
    bool runs = certainly_runs(a, stmt);
    State before = copy_state(a, state);
    Frame frame = {.outer = a->frame, .stmt = stmt};
    a->frame = &frame;
    if (stmt->kind == S_FOR) read_expr(a, state, NULL, stmt->loop.where);
    walk_iterations(a, &frame, body, state);
    a->frame = frame.outer;
    frame.breaks.guards = before.guards;
    join(a, state, &frame.breaks, stmt, ARM_THEN, ARM_THEN);
    if (runs) return;
    State ran = *state;
    join(a, state, &before, stmt, ARM_NONE, ARM_THEN);
    if (stmt->kind == S_FOR && ran.live)
        add_guards(a, state, &ran,
                   (Guard){.trips = stmt->loop.where ? NULL
                                                     : poly_sum(a->algebra, here_poly(&a->here, stmt->loop.hi),
                                                                here_poly(&a->here, stmt->loop.lo), -1),
                           .domain = stmt->loop.whole ? stmt->loop.domain : -1});
}

static void walk_arm(Assigned *a, Stmt *arm, State *state, const Stmt *stmt, bool truth) {
    assume(a, stmt->branch.condition, truth);
    if (truth && stmt->branch.nonempty >= 0)
        vec_push(a->tiles->arena, &a->assumed, (Taken){NULL, true, stmt->branch.nonempty});
    apply_guards(a, state);
    walk(a, arm, state);
}

static void walk_if(Assigned *a, Stmt *stmt, State *state) {
    read_expr(a, state, NULL, stmt->branch.condition);
    int truth = decide(a, stmt->branch.condition);
    if (truth >= 0) {
        walk(a, truth ? stmt->branch.then : stmt->branch.otherwise, state);
        return;
    }
    Known before = known(a);
    State other = copy_state(a, state);
    walk_arm(a, stmt->branch.then, state, stmt, true);
    forget(a, before);
    walk_arm(a, stmt->branch.otherwise, &other, stmt, false);
    forget(a, before);
    if (!state->live || !other.live) { /* one way is left: what its condition says holds to the end of the block */
        bool then = state->live;
        if (!then) *state = other;
        if (state->live) walk_arm(a, NULL, state, stmt, then);
        return;
    }
    State then = *state;
    join(a, state, &other, stmt, ARM_OTHERWISE, ARM_THEN);
    add_guards(a, state, &then,
               (Guard){.condition = stmt->branch.condition, .truth = true, .domain = stmt->branch.nonempty});
    add_guards(a, state, &other, (Guard){.condition = stmt->branch.condition, .truth = false, .domain = -1});
}

static void walk_block(Assigned *a, Stmt *stmt, State *state) {
    Frame frame = {.outer = a->frame, .stmt = stmt};
    Known before = known(a);
    a->frame = &frame;
    for (size_t i = 0; i < stmt->block.body.count && state->live; i++) walk(a, stmt->block.body.items[i], state);
    a->frame = frame.outer;
    forget(a, before);
    join(a, state, &frame.breaks, stmt, ARM_THEN, ARM_THEN);
}

static void walk(Assigned *a, Stmt *stmt, State *state) {
    if (!stmt || !state->live || ++a->steps > MAX_STEPS) return;
    switch (stmt->kind) {
    case S_BLOCK: walk_block(a, stmt, state); break;
    case S_SCALAR: walk_scalar(a, stmt, state); break;
    case S_TILE: walk_tile(a, stmt, state); break;
    case S_GRID:
    case S_FOR: walk_loop(a, stmt, state); break;
    case S_IF: walk_if(a, stmt, state); break;
    case S_LEAVE: walk_leave(a, stmt, state); break;
    case S_STAGE: walk(a, stmt->stage.body, state); break;
    case S_TRY:
    case S_ACQUIRE:
    case S_RELEASE:
    case S_MOVE: break;
    case S_UNSAFE: walk_unsafe(a, stmt, state); break;
    }
}

/* ---- all -------------------------------------------------------------------------------------------------------------- */

static void find_objects(Assigned *a) {
    const Role *role = a->role;
    a->count = role->tiles.count + role->locals.count;
    a->objects = NEW_ARRAY(a->tiles->arena, Object, a->count + 1);
    for (size_t i = 0; i < role->tiles.count; i++) {
        const RoleTile *tile = &role->tiles.items[i];
        int64_t elements = 1;
        for (int d = 0; d < tile->rank && elements; d++) {
            bool fits = tile->extents[d] > 0 && tile->extents[d] <= MAX_ELEMENTS / elements;
            elements = fits ? elements * tile->extents[d] : 0;
        }
        a->objects[i] = (Object){.name = tile->name, .span = tile->span, .tile = tile, .elements = tile->by_hand ? 0 : elements};
    }
    for (size_t i = 0; i < role->locals.count; i++) {
        const Local *local = &role->locals.items[i];
        bool follows = local->kind == LOCAL_VAR || (local->kind == LOCAL_LET && !local->value);
        a->objects[role->tiles.count + i] = (Object){.name = local->name, .span = local->span, .elements = follows};
    }
    for (size_t i = 0; i < a->count; i++) a->objects[i].words = (size_t)(a->objects[i].elements + 63) / 64;
}

void tiles_assigned(Tiles *tiles) {
    for (size_t r = 0; r < tiles->prog->roles.count; r++) {
        Role *role = &tiles->prog->roles.items[r];
        Assigned a = {.tiles = tiles, .role = role, .algebra = tiles->algebras[r]};
        if (!role->body || role->instances < 1 ||
            tiles_reported(tiles, tiles->diags->items.count, role->body->span)) /* statements may be missing */
            continue;
        find_objects(&a);
        for (int rank = 0; rank < role->instances; rank++) {
            State state = {.live = true, .must = NEW_ARRAY(tiles->arena, Bits, a.count + 1)};
            for (size_t i = 0; i < a.count; i++) state.must[i] = new_bits(&a, (int)i);
            a.here = (Here){.arena = tiles->arena, .algebra = a.algebra, .role = role};
            if (role->instances > 1) here_bind(&a.here, algebra_atom_rank(a.algebra, role), rank);
            a.losses.count = 0, a.assumed.count = 0;
            walk(&a, role->body, &state);
        }
    }
}
