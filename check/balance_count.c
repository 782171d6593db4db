/* How often a role acquires a pipe, as a formula: acquires times the trips of the loops around them. A range's trips are
 * hi - lo where that is certainly not negative, else hi - min(hi, lo): pieces of a range add up to the whole. */
#include "check/algebra.h"
#include "check/balance.h"

#define CASES_MOST 6 /* ranges asked about by `if .. nonempty`, of which all cases are tried */

typedef struct Counting {
    Balance *balance;
    const Role *role;
    const Emptiness *known;
    bool shown;        /* for people, not for the proof */
    bool flat;         /* conditions as numbers 0 and 1 that are multiplied: `a || b` is a + b - a b, however it is written */
} Counting;

static Expr *number(Counting *c, int64_t value) { return expr_integer(c->balance->arena, E_I32, value, (Span){0, 0}); }

static bool is_number(const Expr *expr, int64_t value) {
    int64_t found;
    return algebra_constant(expr, &found) && found == value;
}

static Expr *sum(Counting *c, Expr *a, Expr *b) {
    if (!a || !b) return NULL;
    if (is_number(a, 0)) return b;
    if (is_number(b, 0)) return a;
    return expr_binary(c->balance->arena, OP_ADD, a, b, a->span);
}

static Expr *product(Counting *c, Expr *a, Expr *b) {
    if (!a || !b) return NULL;
    if (is_number(a, 1)) return b;
    if (is_number(b, 1)) return a;
    if (is_number(a, 0) || is_number(b, 0)) return number(c, 0);
    return expr_binary(c->balance->arena, OP_MUL, a, b, a->span);
}

static Expr *extreme(Counting *c, Intrinsic which, Expr *a, Expr *b) {
    Expr *call = NEW(c->balance->arena, Expr);
    *call = (Expr){.kind = X_CALL, .type = a->type, .span = a->span};
    call->call.which = which;
    call->call.args[0] = a;
    call->call.args[1] = b;
    call->call.count = 2;
    return call;
}

static bool at_most(Counting *c, Expr *a, Expr *b) { return algebra_at_most(c->balance->arena, c->balance->prog, c->role, a, b); }

/* The ends of pieces are min and max of the range's own: the one that certainly decides */
static Expr *plain(Counting *c, Expr *expr) {
    if (expr->kind != X_CALL || expr->call.count != 2 || (expr->call.which != IN_min && expr->call.which != IN_max)) return expr;
    Expr *a = plain(c, expr->call.args[0]), *b = plain(c, expr->call.args[1]);
    if (at_most(c, a, b)) return expr->call.which == IN_min ? a : b;
    if (at_most(c, b, a)) return expr->call.which == IN_min ? b : a;
    return expr;
}

/* min(hi, lo), with what is known of a hi that is itself a min: the end of a piece */
static Expr *lower(Counting *c, Expr *hi, Expr *lo) {
    if (at_most(c, lo, hi)) return lo;
    if (hi->kind == X_CALL && hi->call.which == IN_min && hi->call.count == 2) {
        if (at_most(c, lo, hi->call.args[1])) return lower(c, hi->call.args[0], lo);
        if (at_most(c, lo, hi->call.args[0])) return lower(c, hi->call.args[1], lo);
    }
    return extreme(c, IN_min, hi, lo);
}

/* Iterations of a range with `where`: a number of its own, the same wherever the range and its piece are the same */
static Expr *where_trips(Counting *c, const Stmt *loop) {
    Balance *balance = c->balance;
    int found = -1;
    for (int i = 0; i < balance->where_count && found < 0; i++) {
        if (balance->wheres[i].domain != loop->loop.domain) continue;
        if (algebra_equal(balance->arena, balance->prog, balance->wheres[i].role, balance->wheres[i].lo, c->role, loop->loop.lo) &&
            algebra_equal(balance->arena, balance->prog, balance->wheres[i].role, balance->wheres[i].hi, c->role, loop->loop.hi))
            found = balance->wheres[i].symbol;
    }
    if (found < 0) {
        if (loop->loop.domain < 0 || balance->where_count == (int)COUNT_OF(balance->wheres)) return NULL;
        const char *name = balance->prog->domains.items[loop->loop.domain].name;
        found = balance_symbol(balance, arena_printf(balance->arena, "iterations of `%s`", name), true);
        balance->wheres[balance->where_count].domain = loop->loop.domain;
        balance->wheres[balance->where_count].role = c->role;
        balance->wheres[balance->where_count].lo = loop->loop.lo;
        balance->wheres[balance->where_count].hi = loop->loop.hi;
        balance->wheres[balance->where_count++].symbol = found;
    }
    Expr *expr = NEW(balance->arena, Expr);
    *expr = (Expr){.kind = X_SYMBOL, .type = E_I32, .span = loop->head};
    expr->index = found;
    return expr;
}

static Expr *trips(Counting *c, const Stmt *loop) {
    Expr *lo = loop->loop.lo, *hi = loop->loop.hi;
    if (!lo || !hi || lo->kind == X_POISON || hi->kind == X_POISON) return NULL;
    if (loop->loop.domain >= 0 && c->known[loop->loop.domain] == EMPTY) return number(c, 0);
    if (loop->loop.where) return where_trips(c, loop);
    lo = plain(c, lo);
    hi = plain(c, hi);
    if (!c->shown) return expr_binary(c->balance->arena, OP_SUB, hi, lower(c, hi, lo), loop->head);
    Expr *plainly = is_number(lo, 0) ? hi : expr_binary(c->balance->arena, OP_SUB, hi, lo, loop->head);
    return at_most(c, lo, hi) ? plainly : extreme(c, IN_max, plainly, number(c, 0));
}

typedef struct Mention {
    const Role *role;
    int local;
    bool found;
    int depth;
    Arena *arena;
} Mention;

static void find_mention(Expr *expr, void *data) {
    Mention *mention = data;
    if (expr->kind != X_LOCAL || !valid_index(expr->index, mention->role->locals.count)) return;
    const Local *local = &mention->role->locals.items[expr->index];
    mention->found |= expr->index == mention->local;
    if (local->kind != LOCAL_LET || !local->value || mention->depth > 16) return;
    mention->depth++;
    expr_visit(mention->arena, local->value, find_mention, mention);
    mention->depth--;
}

static bool mentions(Counting *c, Expr *expr, int local) {
    Mention mention = {.role = c->role, .local = local, .arena = c->balance->arena};
    expr_visit(c->balance->arena, expr, find_mention, &mention);
    return mention.found;
}

static Expr *chosen(Counting *c, Expr *condition, Expr *then, Expr *otherwise) {
    Expr *select = NEW(c->balance->arena, Expr);
    *select = (Expr){.kind = X_SELECT, .type = E_I64, .span = condition->span};
    select->select.condition = condition;
    select->select.then = then;
    select->select.otherwise = otherwise;
    return select;
}

static Expr *less(Counting *c, Expr *a, Expr *b) { return a && b ? expr_binary(c->balance->arena, OP_SUB, a, b, a->span) : NULL; }

/* 1 where the condition holds, else 0; NULL where that is another thing each time it is asked */
static Expr *as_number(Counting *c, Expr *condition) {
    Expr *one = number(c, 1);
    Algebra *algebra = algebra_new(c->balance->arena, c->balance->prog, c->role);
    const Poly *poly = algebra_poly(algebra, c->role, condition);
    if (!poly || poly_changes(algebra, poly)) return NULL;
    if (condition->kind == X_UNARY && condition->unary.op == OP_NOT) return less(c, one, as_number(c, condition->unary.operand));
    if (condition->kind != X_BINARY) return chosen(c, condition, one, number(c, 0));
    Expr *left = condition->binary.left, *right = condition->binary.right;
    BinaryOp op = condition->binary.op;
    if (op == OP_AND || op == OP_OR) {
        Expr *a = as_number(c, left), *b = as_number(c, right), *both = product(c, a, b);
        return op == OP_AND ? both : less(c, sum(c, a, b), both);
    }
    bool negative = left->type != E_F32 && (op == OP_NE || op == OP_LE || op == OP_GE);
    if (!negative) return chosen(c, condition, one, number(c, 0));
    Expr *opposite = NEW(c->balance->arena, Expr); /* of two that exclude each other, one */
    *opposite = *condition;
    opposite->binary.op = op == OP_NE ? OP_EQ : op == OP_LE ? OP_GT : OP_LT;
    return less(c, one, chosen(c, opposite, one, number(c, 0)));
}

static Count count_list(Counting *c, const Shapes *shapes, bool top);

static Expr *count_branch(Counting *c, const Shape *shape) {
    int domain = shape->stmt->branch.nonempty;
    int64_t truth;
    Emptiness known = valid_index(domain, c->balance->prog->domains.count) ? c->known[domain] : MAYBE_EMPTY;
    Expr *condition = shape->stmt->branch.condition;
    if (known == NONEMPTY) return count_list(c, &shape->body, false).outside;
    if (known == EMPTY) return count_list(c, &shape->otherwise, false).outside;
    Expr *then = count_list(c, &shape->body, false).outside, *otherwise = count_list(c, &shape->otherwise, false).outside;
    if (!then || !otherwise || !condition || condition->kind == X_POISON) return NULL;
    if (algebra_constant(condition, &truth)) return truth ? then : otherwise;
    if (algebra_equal(c->balance->arena, c->balance->prog, c->role, then, c->role, otherwise)) return then;
    if (!c->flat) return chosen(c, condition, then, otherwise);
    Expr *holds = as_number(c, condition);
    return sum(c, product(c, holds, then), product(c, less(c, number(c, 1), holds), otherwise));
}

static Count count_list(Counting *c, const Shapes *shapes, bool top) {
    Count total = {number(c, 0), number(c, 0)};
    for (size_t i = 0; i < shapes->count && total.outside && total.tile; i++) {
        const Shape *shape = shapes->items[i];
        switch (shape->kind) {
        case SHAPE_ACQUIRE: total.outside = sum(c, total.outside, number(c, 1)); break;
        case SHAPE_GRID: /* inside of other loops it is not counted */
            total.tile = top ? sum(c, total.tile, count_list(c, &shape->body, false).outside) : NULL;
            break;
        case SHAPE_FOR: {
            Expr *body = count_list(c, &shape->body, false).outside;
            if (body && shape->stmt->loop.var >= 0 && mentions(c, body, shape->stmt->loop.var)) body = NULL;
            total.outside = body ? sum(c, total.outside, product(c, trips(c, shape->stmt), body)) : NULL;
            break;
        }
        case SHAPE_IF: total.outside = sum(c, total.outside, count_branch(c, shape)); break;
        case SHAPE_LEAVE: total.outside = NULL; break;
        }
    }
    if (!total.tile) total.outside = NULL;
    return total;
}

static Count count(Balance *balance, const Role *role, const Shapes *shapes, const Emptiness *known, bool flat) {
    Counting c = {.balance = balance, .role = role, .known = known, .flat = flat};
    return count_list(&c, shapes, true);
}

Count shapes_count(Balance *balance, const Role *role, const Shapes *shapes, const Emptiness *known, bool shown) {
    Counting c = {.balance = balance, .role = role, .known = known, .shown = shown};
    return count_list(&c, shapes, true);
}

/* ---- cases -------------------------------------------------------------------------------------------------------- */

Expr *domain_nonempty(Balance *balance, int domain) {
    const Domain *row = &balance->prog->domains.items[domain];
    if (!row->lo || !row->hi || row->where || row->lo->kind == X_POISON || row->hi->kind == X_POISON) return NULL;
    return expr_binary(balance->arena, OP_LT, row->lo, row->hi, row->span);
}

static void asked(const Shapes *shapes, bool *domains, size_t count) {
    for (size_t i = 0; i < shapes->count; i++) {
        const Shape *shape = shapes->items[i];
        if (shape->kind == SHAPE_IF && valid_index(shape->stmt->branch.nonempty, count)) domains[shape->stmt->branch.nonempty] = true;
        asked(&shape->body, domains, count);
        asked(&shape->otherwise, domains, count);
    }
}

Expr *positive(Balance *balance, Expr *expr) {
    int64_t by;
    while (expr->kind == X_CALL && expr->call.which == IN_ceil_div && algebra_constant(expr->call.args[1], &by) && by > 0)
        expr = expr->call.args[0];
    return expr_binary(balance->arena, OP_GE, expr, expr_integer(balance->arena, expr->type, 1, expr->span), expr->span);
}

static void suppose(Balance *balance, Expr *condition) {
    if (condition && condition->kind != X_CONST) vec_push(balance->arena, &balance->prog->preconditions, (Precondition){.condition = condition});
}

/* What is known of ranges is a fact while the formulas are compared; in an iteration of the grid no axis is empty. */
static bool equal_now(Balance *balance, const Role *a_role, const Shapes *a, const Role *b_role, const Shapes *b, const Emptiness *known,
                      bool flat) {
    Prog *prog = balance->prog;
    Arena *arena = balance->arena;
    size_t facts = prog->preconditions.count, symbols = prog->symbols.count;
    int wheres = balance->where_count;
    for (size_t d = 0; d < prog->domains.count; d++) {
        Expr *nonempty = known[d] == MAYBE_EMPTY ? NULL : domain_nonempty(balance, (int)d);
        if (nonempty && known[d] == EMPTY) nonempty = expr_binary(arena, OP_LE, prog->domains.items[d].hi, prog->domains.items[d].lo, nonempty->span);
        suppose(balance, nonempty);
    }
    Count x = count(balance, a_role, a, known, flat), y = count(balance, b_role, b, known, flat);
    bool equal = x.outside && y.outside && algebra_equal(arena, prog, a_role, x.outside, b_role, y.outside);
    for (size_t i = 0; i < prog->axes.count && equal; i++)
        if (prog->axes.items[i].extent && prog->axes.items[i].extent->kind != X_POISON) suppose(balance, positive(balance, prog->axes.items[i].extent));
    if (equal) {
        x = count(balance, a_role, a, known, flat);
        y = count(balance, b_role, b, known, flat);
        equal = algebra_equal(arena, prog, a_role, x.tile, b_role, y.tile);
    }
    prog->preconditions.count = facts;
    prog->symbols.count = symbols;
    balance->where_count = wheres;
    return equal;
}

bool counts_equal(Balance *balance, const Role *a_role, const Shapes *a, const Role *b_role, const Shapes *b, const Emptiness *known) {
    size_t count = balance->prog->domains.count;
    bool *domains = NEW_ARRAY(balance->arena, bool, count + 1);
    Emptiness *now = NEW_ARRAY(balance->arena, Emptiness, count + 1);
    int cases[CASES_MOST], used = 0;
    asked(a, domains, count);
    asked(b, domains, count);
    for (size_t d = 0; d < count; d++) {
        now[d] = known[d];
        if (domains[d] && known[d] == MAYBE_EMPTY && used < CASES_MOST) cases[used++] = (int)d;
    }
    for (unsigned which = 0; which < 1u << used; which++) {
        for (int i = 0; i < used; i++) now[cases[i]] = which >> i & 1 ? EMPTY : NONEMPTY;
        if (!equal_now(balance, a_role, a, b_role, b, now, false) && !equal_now(balance, a_role, a, b_role, b, now, true)) return false;
    }
    return true;
}

bool only_symbols(const Expr *expr) {
    switch (expr->kind) {
    case X_CONST: case X_SYMBOL: return true;
    case X_UNARY: return only_symbols(expr->unary.operand);
    case X_BINARY: return only_symbols(expr->binary.left) && only_symbols(expr->binary.right);
    case X_CAST: return expr->type != E_F32 && only_symbols(expr->cast);
    case X_SELECT:
        return only_symbols(expr->select.condition) && only_symbols(expr->select.then) && only_symbols(expr->select.otherwise);
    case X_CALL:
        for (int i = 0; i < expr->call.count; i++)
            if (!only_symbols(expr->call.args[i])) return false;
        return true;
    case X_POISON: case X_PARAM: case X_AXIS: case X_LOCAL: case X_RANK: case X_INDEX: case X_READ: case X_REDUCE: break;
    }
    return false;
}
