/* Loops over the grid, over ranges and pieces of them, and plain ones; branches; stage blocks. A
 * range's formula uses the grid's axes; a loop over it substitutes the locals that the role has
 * bound to them. */
#include "elaborate/private.h"

/* ---- substitution in formulas ---------------------------------------------------------------- */

typedef struct Pair {
    Expr *from, *to;
} Pair;

typedef struct Copy {
    Elab *e;
    Expr *(*replace)(Elab *, Expr *, void *);
    void *data;
    Pair *pairs; /* hash table with open addressing: shared nodes are copied once */
    size_t capacity, count;
} Copy;

static Pair *find_pair(Pair *pairs, size_t capacity, const Expr *from) {
    size_t i = (size_t)(((uintptr_t)from >> 4) * 0x9E3779B97F4A7C15u >> 32) & (capacity - 1);
    while (pairs[i].from && pairs[i].from != from) i = (i + 1) & (capacity - 1);
    return &pairs[i];
}

static void remember(Copy *copy, Expr *from, Expr *to) {
    if (copy->count * 2 >= copy->capacity) {
        size_t capacity = copy->capacity ? copy->capacity * 4 : 32;
        Pair *pairs = NEW_ARRAY(copy->e->own, Pair, capacity);
        for (size_t i = 0; i < copy->capacity; i++)
            if (copy->pairs[i].from)
                *find_pair(pairs, capacity, copy->pairs[i].from) = copy->pairs[i];
        copy->pairs = pairs, copy->capacity = capacity;
    }
    *find_pair(copy->pairs, copy->capacity, from) = (Pair){from, to};
    copy->count++;
}

static Expr *copy_expr(Copy *copy, Expr *x);

static Expr *copy_read(Copy *copy, Expr *x) {
    Expr *y = NEW(copy->e->nodes, Expr);
    *y = *x;
    y->read = NEW(copy->e->nodes, Access);
    *y->read = *x->read;
    access_allocate(copy->e->nodes, copy->e->arena, y->read);
    for (int i = 0; i < x->read->rank; i++) y->read->subs[i] = copy_expr(copy, x->read->subs[i]);
    return y;
}

static Expr *copy_parts(Copy *copy, Expr *x) {
    if (x->kind == X_READ) return copy_read(copy, x);
    if (expr_is_leaf(x)) return x;
    Expr *y = NEW(copy->e->nodes, Expr);
    *y = *x;
    ExprParts parts = expr_parts(y);
    for (int i = 0; i < parts.count; i++) parts.items[i] = copy_expr(copy, parts.items[i]);
    return y;
}

static Expr *copy_expr(Copy *copy, Expr *x) {
    if (copy->capacity) {
        const Pair *old = find_pair(copy->pairs, copy->capacity, x);
        if (old->from) return old->to;
    }
    Expr *y = copy->replace(copy->e, x, copy->data);
    if (!y) {
        y = copy_parts(copy, x);
        if (y != x) expr_derive(copy->e->role, y);
    }
    remember(copy, x, y);
    return y;
}

Expr *elab_substitute(Elab *e, Expr *x, Expr *(*replace)(Elab *, Expr *, void *), void *data) {
    Copy copy = {.e = e, .replace = replace, .data = data};
    return copy_expr(&copy, x);
}

static Expr *bind_axes(Elab *e, Expr *x, void *data) {
    const int *variable = data; /* in a `where`: the position */
    if (x->kind == X_AXIS)
        return e->axis_locals[x->index] >= 0 ? elab_make_local(e, e->axis_locals[x->index], x->span)
                                             : elab_poison(e, x->span).x;
    if (x->kind == X_INDEX && *variable >= 0) return elab_make_local(e, *variable, x->span);
    return NULL;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static int find_domain(Elab *e, AstName name) {
    if (!name.text) return -1;
    const Name *found = elab_scope_find(e->scope, name.text);
    if (found && found->kind == NAME_DOMAIN) return found->index;
    if (found && found->kind == NAME_POISON) return -1;
    VEC(const char *) list = {0};
    for (size_t i = 0; i < e->prog->domains.count; i++)
        vec_push(e->arena, &list, e->prog->domains.items[i].name);
    Diag *diag = elab_error(e, P0141, name.span, "unknown range `%s`", name.text);
    if (found && (found->kind == NAME_PARAM || found->kind == NAME_TILE)) {
        HELP(e, diag, "a loop counts: write `for i in 0 .. n`, and `%s[i]` in it", name.text);
        return -1;
    }
    const char *near = elab_suggest(e, name.text, list.items, list.count);
    if (near)
        HELP(e, diag, "did you mean `%s`?", near);
    else
        HELP(e, diag, "declare it in the kernel: `range %s = 0 .. n;`, or loop over `a .. b`",
             name.text);
    return -1;
}

static bool axes_bound(Elab *e, int domain, Span use) {
    for (size_t i = 0; i < e->prog->axes.count; i++) {
        if (!(e->domain_axes[domain] >> i & 1) || e->axis_locals[i] >= 0) continue;
        const Axis *axis = &e->prog->axes.items[i];
        const Domain *row = &e->prog->domains.items[domain];
        Diag *diag = elab_error(e, P0143, use,
                                "range `%s` depends on axis `%s`, which is not available here",
                                row->name, axis->name);
        LABEL(e, diag, row->span, "range declared here");
        LABEL(e, diag, axis->span, "axis declared here");
        HELP(e, diag, "use the range inside of the loop over the grid");
        return false;
    }
    return true;
}

static Val as_i32(Elab *e, const AstExpr *ast, const char *what) {
    Val v = elab_operand(e, elab_expr(e, ast));
    return (Val){elab_coerce(e, v, E_I32, what), FLEX_INT};
}

static Val extreme(Elab *e, Intrinsic which, Val a, Val b, Span span) {
    Val args[2] = {a, b};
    return elab_make_call(e, which, args, 2, span);
}

/* kt from a, kt[a .. b]: positions count from the range's first iteration */
static void piece(Elab *e, const AstDomain *ast, Stmt *loop) {
    Val lo = {loop->loop.lo, FLEX_INT}, hi = {loop->loop.hi, FLEX_INT},
        zero = elab_val_integer(e, 0, ast->span);
    if (ast->to) {
        Val end = as_i32(e, ast->to, "the end of a piece");
        hi = extreme(e, IN_min, hi, elab_make_binary(e, OP_ADD, lo, end, ast->span, ast->span),
                     ast->span);
    }
    if (ast->from) {
        Val start =
            extreme(e, IN_max, as_i32(e, ast->from, "the start of a piece"), zero, ast->span);
        lo = elab_is_const(lo.x) && lo.x->constant.integer == 0
                 ? start
                 : elab_make_binary(e, OP_ADD, lo, start, ast->span, ast->span);
    }
    loop->loop.lo = lo.x, loop->loop.hi = hi.x;
}

static void named_bounds(Elab *e, const AstDomain *ast, Stmt *loop) {
    loop->loop.lo = loop->loop.hi = elab_poison(e, ast->span).x;
    int domain = find_domain(e, ast->name);
    if (domain < 0) return;
    elab_domain_ready(e, domain, ast->name.span);
    loop->loop.domain = domain;
    if (!e->domain_progress || !axes_bound(e, domain, ast->name.span)) return;
    const Domain *row = &e->prog->domains.items[domain];
    int none = -1;
    loop->loop.lo = elab_substitute(e, row->lo, bind_axes, &none);
    loop->loop.hi = elab_substitute(e, row->hi, bind_axes, &none);
    loop->loop.whole = (!ast->from && !ast->to) || row->where;
    if (!loop->loop.whole) piece(e, ast, loop);
}

/* True for a piece of a range with `where` that is looped over: the body then tests the `where` */
static bool takes_live_piece(Elab *e, const AstDomain *ast, const Stmt *loop, LivePiece *piece) {
    if (loop->loop.domain < 0 || !e->prog->domains.items[loop->loop.domain].where) return false;
    Val from, to;
    if (!ast->from && !ast->to) return false;
    if (ast->from) from = as_i32(e, ast->from, "the start of a piece");
    if (ast->to) to = as_i32(e, ast->to, "the end of a piece");
    *piece = elab_live_piece(e, loop->loop.domain, ast->from ? &from : NULL, ast->to ? &to : NULL,
                             ast->span);
    return true;
}

/* Also declares the variable */
static void bind_variable(Elab *e, Stmt *loop, AstName name) {
    loop->loop.var = elab_bind_local(e, name, LOCAL_LOOP, E_I32);
    e->loop_of.items[loop->loop.var] = loop;
    Local *local = &e->role->locals.items[loop->loop.var];
    local->lo = loop->loop.lo, local->hi = loop->loop.hi;
    if (loop->loop.domain >= 0 && e->prog->domains.items[loop->loop.domain].where)
        loop->loop.where = elab_substitute(e, e->prog->domains.items[loop->loop.domain].where,
                                           bind_axes, &loop->loop.var);
}

static void bounds(Elab *e, const AstDomain *ast, Stmt *loop) {
    loop->loop.domain = -1;
    if (ast->kind == AST_DOMAIN_NAMED) {
        named_bounds(e, ast, loop);
        return;
    }
    loop->loop.lo =
        ast->from ? as_i32(e, ast->from, "the start of a loop").x : elab_poison(e, ast->span).x;
    loop->loop.hi =
        ast->to ? as_i32(e, ast->to, "the end of a loop").x : elab_poison(e, ast->span).x;
}

static void range_loop(Elab *e, const AstStmt *ast) {
    Stmt *loop = elab_stmt_new(e, S_FOR, ast->span);
    loop->head = ast->loop.head;
    bounds(e, ast->loop.domain, loop);
    LivePiece piece;
    bool live = takes_live_piece(e, ast->loop.domain, loop, &piece);
    size_t mark = elab_scope_mark(e->scope);
    const AstNames *vars = ast->loop.vars;
    if (vars->count != 1 && vars->count) {
        Diag *diag =
            elab_error(e, P0142, span_join(vars->items[0].span, vars->items[vars->count - 1].span),
                       "a loop over a range has one variable");
        LABEL(e, diag, ast->loop.domain->span, "only a loop over the grid has several");
    }
    AstName name = vars->count ? vars->items[0] : (AstName){0};
    bool unknown = ast->loop.domain->kind == AST_DOMAIN_NAMED && loop->loop.domain < 0;
    bind_variable(e, loop, unknown ? (AstName){0} : name);
    if (unknown) elab_scope_bind(e, e->scope, NAME_POISON, name.text, name.span, 0);
    Loop inner = {e->loop, loop, e->frame};
    e->loop = &inner;
    loop->loop.body = live ? elab_live_body(e, &piece, ast->loop.body, ast->loop.head)
                           : elab_body_of(e, ast->loop.body);
    e->loop = inner.outer;
    elab_scope_undo(e->scope, mark);
    elab_emit(e, loop);
}

/* ---- the grid -------------------------------------------------------------------------------- */

static bool axes_named(Elab *e, const AstStmt *ast) {
    const AstNames *vars = ast->loop.vars;
    size_t count = e->prog->axes.count;
    if (count == 0 || e->broken) return true; /* reported at the missing or wrong grid */
    bool same = vars->count == count;
    for (size_t i = 0; same && i < count; i++)
        same = !vars->items[i].text || vars->items[i].text == e->prog->axes.items[i].name;
    if (same) return true;
    Span span = vars->count ? span_join(vars->items[0].span, vars->items[vars->count - 1].span)
                            : ast->loop.head;
    Diag *diag = elab_error(e, P0142, span,
                            "the variables of a loop over the grid must be its axes, in order");
    Str text = str_new(e->arena);
    for (size_t i = 0; i < count; i++)
        str_printf(&text, "%s%s", i ? ", " : "", e->prog->axes.items[i].name);
    LABEL(e, diag, span_join(e->prog->axes.items[0].span, e->prog->axes.items[count - 1].span),
          "axes of the grid: %s", text.text);
    HELP(e, diag, count == 1 ? "write `for %s in grid`" : "write `for (%s) in grid`", text.text);
    return false;
}

static void grid_loop(Elab *e, const AstStmt *ast) {
    Stmt *grid = elab_stmt_new(e, S_GRID, ast->span);
    grid->head = ast->loop.head;
    grid->grid.tile = grid->grid.begun = -1;
    axes_named(e, ast);
    size_t mark = elab_scope_mark(e->scope);
    size_t axes = e->prog->axes.count;
    bool bound[PROG_MAX_RANK] = {false};
    for (size_t i = 0; i < PROG_MAX_RANK; i++) {
        if (i >= ast->loop.vars->count && i >= axes) break;
        AstName name = i < ast->loop.vars->count
                           ? ast->loop.vars->items[i]
                           : (AstName){e->prog->axes.items[i].name, e->prog->axes.items[i].span};
        int local = i < ast->loop.vars->count
                        ? elab_bind_local(e, name, LOCAL_AXIS, E_I32)
                        : elab_add_local(e, name.text, name.span, LOCAL_AXIS, E_I32);
        e->role->locals.items[local].axis = (int)i;
        grid->grid.vars[i] = local;
        if (i < axes && e->axis_locals[i] < 0) e->axis_locals[i] = local, bound[i] = true;
    }
    Loop inner = {e->loop, grid, e->frame};
    e->loop = &inner;
    grid->grid.body = elab_body_of(e, ast->loop.body);
    e->loop = inner.outer;
    for (size_t i = 0; i < PROG_MAX_RANK; i++)
        if (bound[i]) e->axis_locals[i] = -1;
    elab_scope_undo(e->scope, mark);
    elab_emit(e, grid);
}

void elab_loop_stmt(Elab *e, const AstStmt *ast) {
    if (ast->loop.domain->kind == AST_DOMAIN_GRID)
        grid_loop(e, ast);
    else
        range_loop(e, ast);
}

/* ---- branches -------------------------------------------------------------------------------- */

/* A loop over a whole range, without a body */
static Stmt *whole_loop(Elab *e, int domain, Span span) {
    AstDomain whole = {.kind = AST_DOMAIN_NAMED,
                       .name = {e->prog->domains.items[domain].name, span},
                       .span = span};
    Stmt *loop = elab_stmt_new(e, S_FOR, span);
    named_bounds(e, &whole, loop);
    bind_variable(e, loop, (AstName){.span = span});
    return loop;
}

static Expr *nonempty(Elab *e, const AstStmt *ast, Stmt **search, int *domain) {
    Span span = ast->branch.nonempty.span;
    *domain = find_domain(e, ast->branch.nonempty);
    if (*domain < 0) return elab_poison(e, span).x;
    elab_domain_ready(e, *domain, span);
    if (!axes_bound(e, *domain, span)) return elab_poison(e, span).x;
    const Domain *row = &e->prog->domains.items[*domain];
    if (row->where) return elab_search_live(e, *search = whole_loop(e, *domain, span), span);
    int none = -1;
    Val lo = {elab_substitute(e, row->lo, bind_axes, &none), FLEX_INT},
        hi = {elab_substitute(e, row->hi, bind_axes, &none), FLEX_INT};
    return elab_make_binary(e, OP_LT, lo, hi, span, span).x;
}

/* An arm that a constant excludes is checked, and then removed. */
static void dead_arm(Elab *e, const AstStmt *ast) {
    if (!ast) return;
    size_t locals = e->role->locals.count, handles = e->role->handles.count,
           tiles = e->role->tiles.count;
    elab_body_of(e, ast);
    e->role->locals.count = e->loop_of.count = locals;
    e->role->handles.count = handles, e->role->tiles.count = tiles;
}

void elab_if_stmt(Elab *e, const AstStmt *ast) {
    Stmt *s = elab_stmt_new(e, S_IF, ast->span);
    s->head = ast->branch.head;
    s->branch.nonempty = -1;
    if (ast->branch.condition)
        s->branch.condition =
            elab_condition(e, elab_operand(e, elab_expr(e, ast->branch.condition))).x;
    else
        s->branch.condition = nonempty(e, ast, &s->branch.search, &s->branch.nonempty);
    if (elab_is_const(s->branch.condition) && s->branch.nonempty < 0) {
        bool taken = s->branch.condition->constant.integer != 0;
        const AstStmt *alive = taken ? ast->branch.then : ast->branch.otherwise;
        dead_arm(e, taken ? ast->branch.otherwise : ast->branch.then);
        if (alive) elab_emit(e, elab_body_of(e, alive));
        return;
    }
    s->branch.then = elab_body_of(e, ast->branch.then);
    if (ast->branch.otherwise) s->branch.otherwise = elab_body_of(e, ast->branch.otherwise);
    elab_emit(e, s);
}

/* ---- stage blocks ---------------------------------------------------------------------------- */

void elab_stage_stmt(Elab *e, const AstStmt *ast) {
    Stmt *s = elab_stmt_new(e, S_STAGE, ast->span);
    s->head = ast->stage.head;
    int pipe = elab_find_pipe(e, ast->stage.pipe);
    s->stage.lag = -1;
    int64_t lag;
    if (ast->stage.lag && elab_constant_integer(e, ast->stage.lag, "the lag", 0, 64, &lag))
        s->stage.lag = (int)lag;
    size_t mark = elab_scope_mark(e->scope);
    s->stage.hint = elab_hint_of(e, ast->stage.hint, pipe, elab_end(ast->stage.end));
    AstExpr acquire = {.kind = AST_ACQUIRE, .span = ast->stage.head};
    acquire.acquire.unwaited = ast->stage.unwaited;
    s->stage.unwaited = elab_unwaited(e, &acquire, pipe, elab_end(ast->stage.end));
    s->stage.handle = elab_bind_handle(e, ast->stage.as, pipe, elab_end(ast->stage.end), false);
    s->stage.body = elab_body_of(e, ast->stage.body);
    elab_scope_undo(e->scope, mark);
    elab_emit(e, s);
}
