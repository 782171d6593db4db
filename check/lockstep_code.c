/* What a role does with the pipes of a part: its acquires, releases and turns, and the loops, conditions and leaves that decide about them,
 * as a flat list of steps. Statements without either are left out. */
#include "check/lockstep.h"

#define CODE_MOST 100000 /* steps of a role */
#define SPLITS_MOST 4

typedef struct Scope {    /* what a leave passes on its way out */
    const Stmt *stmt;
    int around;           /* the loop that it stands in, -1: none */
    int loop;             /* it is this one, -1: not a loop */
    int exit, again;      /* labels: behind it; its next iteration */
} Scope;

typedef struct Uses {
    const struct Coder *coder;
    int of[64];           /* by pipe of the part */
} Uses;

typedef struct Coder {
    Clocks *clocks;
    int member;
    Member *out;
    VEC(Scope) scopes;
    VEC(int) labels;      /* by label: the step it stands at */
    int loop;             /* innermost, -1: none */
    int arm, arms;        /* what it stands in: a branch, a block that may be left; and how many there have been */
    int end;              /* the label of the role's end */
    int splits;           /* min and max that are being taken apart */
    Uses all;             /* of the whole role */
} Coder;

/* ---- what matters ----------------------------------------------------------------------------------------------------- */

int part_pipe(const Part *part, int pipe) {
    for (size_t i = 0; i < part->pipes.count; i++)
        if (part->pipes.items[i] == pipe) return (int)i;
    return -1;
}

bool part_takes(const Part *part, const Prog *prog, const Role *role, int pipe, End end) {
    if (!part->consumes[pipe]) return false;
    int index = (int)(role - prog->roles.items);
    return end == END_PRODUCE ? prog->pipes.items[pipe].producer == index : part->consumes[pipe][index];
}

static int slot(const Coder *c, int handle) {
    return valid_index(handle, c->out->role->handles.count) ? c->out->slot_of[handle] : -1;
}

typedef struct Matter {
    const Coder *coder;
    bool found;
    uint64_t pipes;
} Matter;

static void find_steps(Stmt *stmt, void *data) {
    Matter *matter = data;
    int handle = stmt->kind == S_ACQUIRE ? stmt->acquire.handle : stmt->kind == S_RELEASE ? stmt->release.handle
                 : stmt->kind == S_STAGE ? stmt->stage.handle : stmt->kind == S_MOVE ? stmt->move.to : -1;
    int at = handle >= 0 ? slot(matter->coder, handle) : -1;
    if (at >= 0) matter->found = true, matter->pipes |= UINT64_C(1) << (matter->coder->out->slots.items[at].end / 2);
    if (stmt->kind == S_BLOCK && stmt->block.turn && matter->coder->out->processes > 1) matter->found = true;
}

static Matter matter_of(const Coder *c, Stmt *stmt) {
    Matter matter = {.coder = c};
    if (stmt) stmt_visit(stmt, find_steps, &matter);
    return matter;
}

static void count_uses(Stmt *stmt, void *data) {
    Uses *uses = data;
    int handle = stmt->kind == S_ACQUIRE ? stmt->acquire.handle : stmt->kind == S_STAGE ? stmt->stage.handle : -1;
    int at = handle >= 0 ? slot(uses->coder, handle) : -1;
    if (at >= 0) uses->of[uses->coder->out->slots.items[at].end / 2]++;
}

/* Pipes that the role acquires outside of a loop too */
static uint64_t elsewhere(const Coder *c, Stmt *loop) {
    Uses here = {.coder = c};
    uint64_t pipes = 0;
    stmt_visit(lockstep_rolled_from(c->clocks, loop), count_uses, &here);
    for (int i = 0; i < 64; i++) pipes |= (uint64_t)(c->all.of[i] > here.of[i]) << i;
    return pipes;
}

static void find_leaves(Stmt *stmt, void *data) {
    Matter *matter = data;
    if (stmt->kind == S_LEAVE) matter->found |= !stmt->leave.target || matter_of(matter->coder, stmt->leave.target).found;
}

static bool matters(const Coder *c, Stmt *stmt) {
    Matter leaves = {.coder = c};
    if (!stmt) return false;
    if (matter_of(c, stmt).found) return true;
    stmt_visit(stmt, find_leaves, &leaves);
    return leaves.found;
}

/* ---- emitting --------------------------------------------------------------------------------------------------------- */

static Act *emit(Coder *c, ActKind kind, Span place) {
    Act code = {.kind = kind, .loop = c->loop, .place = place};
    vec_push(c->clocks->arena, &c->out->code, code);
    return &c->out->code.items[c->out->code.count - 1];
}

static int label(Coder *c) {
    vec_push(c->clocks->arena, &c->labels, -1);
    return (int)c->labels.count - 1;
}

static void place(Coder *c, int which) { c->labels.items[which] = (int)c->out->code.count; }

static void jump(Coder *c, int to, Span span) { emit(c, ACT_GOTO, span)->to = to; }

static bool beyond(Coder *c, Span span, const char *why) {
    if (!c->clocks->beyond) c->clocks->beyond = why, c->clocks->beyond_at = span;
    return false;
}

static bool code(Coder *c, Stmt *stmt);

static void ask(Coder *c, const Act *question, int otherwise, Span span) {
    Act *step = emit(c, ACT_ASK, span);
    step->number = question->number;
    step->above = question->above;
    step->negated = question->negated;
    step->counted = question->counted;
    step->to = otherwise;
}

/* Goes on where it holds as wanted, to `otherwise` where not: one question for each number */
static void positive_code(Coder *c, const Poly *poly, bool wanted, int otherwise, Span span) {
    const Poly *halves[2];
    bool both, holds = false;
    Act question = {0};
    if (c->splits < SPLITS_MOST && clocks_halves(c->clocks, c->member, c->loop, poly, halves, &both)) {
        c->splits++;
        int on = label(c);
        positive_code(c, halves[0], both == wanted ? wanted : !wanted, both == wanted ? otherwise : on, span);
        positive_code(c, halves[1], wanted, otherwise, span);
        place(c, on);
        c->splits--;
        return;
    }
    if (clocks_positive(c->clocks, c->member, c->loop, poly, &question, &holds)) {
        question.negated ^= !wanted;
        ask(c, &question, otherwise, span);
    } else if (holds != wanted) jump(c, otherwise, span);
}

static void comparison(Coder *c, Expr *expr, bool wanted, int otherwise) {
    const Poly *poly = clocks_difference(c->clocks, c->member, c->loop, expr);
    Act question = {0};
    bool holds = false;
    if (poly && (expr->binary.op == OP_EQ || expr->binary.op == OP_NE)) { /* equal: not greater than 0, but one more is */
        bool equal = (expr->binary.op == OP_EQ) == wanted;
        int on = label(c);
        positive_code(c, clocks_plus_one(c->clocks, c->member, c->loop, poly), true, equal ? otherwise : on, expr->span);
        positive_code(c, poly, false, equal ? otherwise : on, expr->span);
        if (!equal) jump(c, otherwise, expr->span);
        place(c, on);
    } else if (poly) {
        positive_code(c, poly, wanted, otherwise, expr->span);
    } else if (clocks_truth(c->clocks, c->member, c->loop, expr, &question, &holds)) {
        question.negated ^= !wanted;
        ask(c, &question, otherwise, expr->span);
    } else if (holds != wanted) jump(c, otherwise, expr->span);
}

static void condition(Coder *c, Expr *expr, bool wanted, int otherwise) {
    if (expr->kind == X_UNARY && expr->unary.op == OP_NOT) {
        condition(c, expr->unary.operand, !wanted, otherwise);
        return;
    }
    bool both = expr->kind == X_BINARY && expr->binary.op == (wanted ? OP_AND : OP_OR);
    bool either = expr->kind == X_BINARY && expr->binary.op == (wanted ? OP_OR : OP_AND);
    if (both) {
        condition(c, expr->binary.left, wanted, otherwise);
        condition(c, expr->binary.right, wanted, otherwise);
    } else if (either) {
        int on = label(c);
        condition(c, expr->binary.left, !wanted, on);
        condition(c, expr->binary.right, wanted, otherwise);
        place(c, on);
    } else if (expr->kind == X_SELECT && expr->type == E_BOOL) {
        int no = label(c), on = label(c);
        condition(c, expr->select.condition, true, no);
        condition(c, expr->select.then, wanted, otherwise);
        jump(c, on, expr->span);
        place(c, no);
        condition(c, expr->select.otherwise, wanted, otherwise);
        place(c, on);
    } else if (expr->kind == X_LOCAL && expr->type == E_BOOL && c->out->role->locals.items[expr->index].kind == LOCAL_LET &&
               c->out->role->locals.items[expr->index].value) {
        condition(c, c->out->role->locals.items[expr->index].value, wanted, otherwise);
    } else comparison(c, expr, wanted, otherwise);
}

/* ---- stages ----------------------------------------------------------------------------------------------------------- */

static void let_go(Coder *c, const Stmt *stmt, int around) {
    Act *step = emit(c, stmt->stage.lag > 0 && around >= 0 ? ACT_KEEP : ACT_RELEASE, stmt->head);
    step->handle = slot(c, stmt->stage.handle);
    step->lag = stmt->stage.lag;
    step->other = around;
}

static bool block_of_stage(Coder *c, Stmt *stmt) {
    int at = slot(c, stmt->stage.handle);
    if (at < 0) return code(c, stmt->stage.body);
    emit(c, ACT_ACQUIRE, stmt->head)->handle = at;
    vec_push(c->clocks->arena, &c->scopes, (Scope){.stmt = stmt, .loop = -1, .around = c->loop});
    bool fine = code(c, stmt->stage.body);
    c->scopes.count--;
    let_go(c, stmt, c->loop);
    if (stmt->stage.lag > 0 && c->loop >= 0) c->out->kept += stmt->stage.lag + 1;
    return fine;
}

static void pass_turn(Coder *c, const Stmt *stmt) { emit(c, ACT_PASS, stmt->head)->turn = stmt->block.turn - 1; }

static bool leave(Coder *c, Stmt *stmt) {
    for (size_t i = c->scopes.count; i-- > 0;) {
        const Scope *scope = &c->scopes.items[i];
        if (scope->stmt == stmt->leave.target) {
            jump(c, stmt->leave.kind == LEAVE_CONTINUE && scope->loop >= 0 ? scope->again : scope->exit, stmt->span);
            return true;
        }
        if (scope->stmt->kind == S_STAGE) let_go(c, scope->stmt, scope->around);
        else if (scope->loop >= 0) emit(c, ACT_FLUSH, stmt->span)->other = scope->loop;
        else if (scope->stmt->block.turn && c->out->processes > 1) pass_turn(c, scope->stmt);
    }
    if (stmt->leave.target) return beyond(c, stmt->span, "where this leaves to is not known");
    jump(c, c->end, stmt->span);
    return true;
}

/* ---- compounds -------------------------------------------------------------------------------------------------------- */

typedef struct Break {
    const Stmt *loop;
    bool found;
} Break;

static void find_break(Stmt *stmt, void *data) {
    Break *leaves = data;
    leaves->found |= stmt->kind == S_LEAVE && stmt->leave.target == leaves->loop && stmt->leave.kind == LEAVE_BREAK;
}

static bool loop(Coder *c, Stmt *stmt, Stmt *body) {
    Matter matter = matter_of(c, body);
    if (!matters(c, stmt)) return true;
    Loop row = {.stmt = stmt, .outer = c->loop, .depth = c->loop < 0 ? 1 : c->out->loops.items[c->loop].depth + 1, .arm = c->arm};
    Break leaves = {stmt, false};
    stmt_visit(body, find_break, &leaves);
    row.left = leaves.found;
    if (row.depth > DEPTH_MOST) return beyond(c, stmt->head, "these loops stand too deep in each other");
    clocks_loop(c->clocks, c->member, &row, matter.pipes, elsewhere(c, stmt));
    vec_push(c->clocks->arena, &c->out->loops, row);
    int index = (int)c->out->loops.count - 1, outer = c->loop, arm = c->arm;
    c->arm = ++c->arms;
    if (stmt->kind == S_GRID) c->out->grid = index;
    Scope scope = {.stmt = stmt, .loop = index, .around = outer, .exit = label(c), .again = label(c)};
    int test = label(c);
    c->loop = index;
    c->out->loops.items[index].begin = (int)c->out->code.count;
    emit(c, ACT_ENTER, stmt->head);
    place(c, test);
    emit(c, ACT_TEST, stmt->head)->to = scope.exit;
    vec_push(c->clocks->arena, &c->scopes, scope);
    bool fine = code(c, body);
    c->scopes.count--;
    place(c, scope.again);
    c->out->loops.items[index].end = (int)c->out->code.count;
    emit(c, ACT_AGAIN, stmt->head)->to = test;
    c->loop = outer;
    c->arm = arm;
    place(c, scope.exit);
    emit(c, ACT_FLUSH, stmt->head)->other = index;
    return fine;
}

static bool branch(Coder *c, Stmt *stmt) {
    if (!matters(c, stmt->branch.then) && !matters(c, stmt->branch.otherwise)) return true;
    if (!stmt->branch.condition) return beyond(c, stmt->head, "this condition is not known");
    int otherwise = label(c), on = label(c);
    int arm = c->arm;
    condition(c, stmt->branch.condition, true, otherwise);
    c->arm = ++c->arms;
    if (!code(c, stmt->branch.then)) return false;
    jump(c, on, stmt->head);
    place(c, otherwise);
    c->arm = ++c->arms;
    if (!code(c, stmt->branch.otherwise)) return false;
    c->arm = arm;
    place(c, on);
    return true;
}

static bool list(Coder *c, Stmt *stmt) {
    bool turn = stmt->block.turn && c->out->processes > 1, fine = true;
    int arm = c->arm;
    if (stmt->block.left) c->arm = ++c->arms;
    Scope scope = {.stmt = stmt, .loop = -1, .exit = label(c)};
    if (turn) emit(c, ACT_TAKE, stmt->head)->turn = stmt->block.turn - 1;
    vec_push(c->clocks->arena, &c->scopes, scope);
    Stmts body = lockstep_roll(c->clocks, c->member, c->loop, &stmt->block.body);
    for (size_t i = 0; i < body.count && fine; i++) fine = code(c, body.items[i]);
    c->scopes.count--;
    c->arm = arm;
    place(c, scope.exit);
    if (turn) pass_turn(c, stmt);
    return fine;
}

static bool code(Coder *c, Stmt *stmt) {
    int at;
    if (!stmt) return true;
    if (c->out->code.count > CODE_MOST) return beyond(c, stmt->span, "the role is too long");
    switch (stmt->kind) {
    case S_BLOCK: return list(c, stmt);
    case S_GRID: return loop(c, stmt, stmt->grid.body);
    case S_FOR: return loop(c, stmt, stmt->loop.body);
    case S_IF: return branch(c, stmt);
    case S_LEAVE: return leave(c, stmt);
    case S_ACQUIRE:
        if ((at = slot(c, stmt->acquire.handle)) >= 0) emit(c, ACT_ACQUIRE, stmt->head)->handle = at;
        return true;
    case S_RELEASE:
        if ((at = slot(c, stmt->release.handle)) >= 0) emit(c, ACT_RELEASE, stmt->span)->handle = at;
        return true;
    case S_MOVE:
        if ((at = slot(c, stmt->move.to)) >= 0) {
            Act *step = emit(c, ACT_MOVE, stmt->span);
            step->handle = at;
            step->other = slot(c, stmt->move.from);
        }
        return true;
    case S_STAGE: return block_of_stage(c, stmt);
    case S_SCALAR: case S_TILE: case S_TRY: case S_UNSAFE: return true;
    }
    return true;
}

/* ---- the role --------------------------------------------------------------------------------------------------------- */

static void add_slots(Coder *c) {
    const Role *role = c->out->role;
    const Part *part = c->clocks->part;
    c->out->slot_of = NEW_ARRAY(c->clocks->arena, int, role->handles.count + 1);
    for (size_t h = 0; h < role->handles.count; h++) {
        const Handle *handle = &role->handles.items[h];
        c->out->slot_of[h] = -1;
        if (!valid_index(handle->pipe, c->clocks->prog->pipes.count) || !part_takes(part, c->clocks->prog, role, handle->pipe, handle->end)) continue;
        c->out->slot_of[h] = (int)c->out->slots.count;
        int end = 2 * part_pipe(part, handle->pipe) + (handle->end == END_PRODUCE), cursor = 0;
        while (cursor < c->out->cursors && c->out->cursor_ends.items[cursor] != end) cursor++;
        if (cursor == c->out->cursors) {
            vec_push(c->clocks->arena, &c->out->cursor_ends, end);
            c->out->cursors++;
            c->out->rings += c->clocks->prog->pipes.items[handle->pipe].stages;
        }
        vec_push(c->clocks->arena, &c->out->slots, (Slot){end, cursor});
    }
    c->out->held = c->out->rings < (int)c->out->slots.count ? c->out->rings : (int)c->out->slots.count;
}

/* The last step that asks for each number: of one in an inner loop the end of it, as it comes again */
static void note(Clocks *clocks, int member, int which, int last, const Loop *loop) {
    const Member *row = &clocks->members.items[member];
    Number *number = &clocks->numbers.items[which];
    for (; loop && loop->track != number->track; loop = loop->outer >= 0 ? &row->loops.items[loop->outer] : NULL) last = loop->end;
    if (last > number->last[member]) number->last[member] = last;
}

static void note_questions(Clocks *clocks, int member) {
    const Member *row = &clocks->members.items[member];
    for (size_t at = 0; at < row->code.count; at++) {
        const Act *step = &row->code.items[at];
        const Loop *loop = step->loop >= 0 ? &row->loops.items[step->loop] : NULL;
        if (step->kind == ACT_ASK) note(clocks, member, step->number, (int)at, loop);
        for (int b = 0; step->kind == ACT_TEST && b < loop->bound_count; b++)
            if (loop->bounds[b].number >= 0) note(clocks, member, loop->bounds[b].number, (int)at, loop);
    }
}

static void note_carried(Clocks *clocks, Member *row) {
    row->carried = NEW_ARRAY(clocks->arena, int, row->code.count);
    for (size_t at = 0; at < row->code.count; at++) row->carried[at] = -1;
    for (size_t i = 0; i < row->loops.count; i++) {
        const Loop *loop = &row->loops.items[i];
        if (loop->after < 0) continue;
        for (int at = row->loops.items[loop->after].end + 1; at <= loop->begin; at++) row->carried[at] = loop->after;
    }
}

bool member_compile(Clocks *clocks, int member) {
    Coder c = {.clocks = clocks, .member = member, .out = &clocks->members.items[member], .loop = -1};
    c.out->grid = -1;
    clocks->rolling = 0;
    add_slots(&c);
    c.all.coder = &c;
    stmt_visit(c.out->role->body, count_uses, &c.all);
    c.end = label(&c);
    if (!code(&c, c.out->role->body)) return false;
    place(&c, c.end);
    emit(&c, ACT_END, c.out->role->span);
    for (size_t i = 0; i < c.out->code.count; i++) {
        Act *step = &c.out->code.items[i];
        if (step->kind == ACT_TEST || step->kind == ACT_AGAIN || step->kind == ACT_ASK || step->kind == ACT_GOTO)
            step->to = c.labels.items[step->to];
    }
    if (c.out->kept > c.out->rings) c.out->kept = c.out->rings;
    note_questions(clocks, member);
    note_carried(clocks, c.out);
    return true;
}
