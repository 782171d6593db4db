/* Constructors of nodes, and reports of the errors that the grammar recognises. */
#include "parser/build.h"

static int deeper(int a, int b) { return a > b ? a : b; }

/* ---- expressions ----------------------------------------------------------------------------- */

Sized make_error_expr(Parse *p, Span span) {
    AstExpr *expr = NEW(p->lexer.arena, AstExpr);
    expr->kind = AST_ERROR_EXPR;
    expr->span = span;
    return (Sized){expr, 1};
}

/* Replaces a tree that would be too deep for recursive passes; one report per statement */
Sized make_expr(Parse *p, AstExprKind kind, Span span, int depth) {
    if (depth >= DEPTH_MAX) {
        if (!p->too_long) {
            Diag *diag =
                lexer_report(&p->lexer, P0019, span,
                             "the expression has more than %d operations in a row", DEPTH_MAX);
            diag_help(p->lexer.diags, diag, "declare parts of it with `let`");
        }
        p->too_long = true;
        /* The action writes to the node, so no other tree may share it */
        return (Sized){.tree = make_error_expr(p, span).tree, .depth = 1};
    }
    AstExpr *expr = NEW(p->lexer.arena, AstExpr);
    expr->kind = kind;
    expr->span = span;
    return (Sized){expr, depth + 1};
}

Sized make_unary(Parse *p, AstUnaryOp op, Span span, Sized operand) {
    Sized made = make_expr(p, AST_UNARY, span, operand.depth);
    made.tree->unary.op = op;
    made.tree->unary.operand = operand.tree;
    return made;
}

Sized make_binary(Parse *p, AstBinaryOp op, Span span, Sized left, Span op_span, Sized right) {
    Sized made = make_expr(p, AST_BINARY, span, deeper(left.depth, right.depth));
    made.tree->binary.op = op;
    made.tree->binary.left = left.tree;
    made.tree->binary.right = right.tree;
    made.tree->binary.op_span = op_span;
    return made;
}

Sized make_select(Parse *p, Span span, Sized condition, Sized then, Sized otherwise) {
    Sized made = make_expr(p, AST_SELECT, span,
                           deeper(condition.depth, deeper(then.depth, otherwise.depth)));
    made.tree->select.condition = condition.tree;
    made.tree->select.then = then.tree;
    made.tree->select.otherwise = otherwise.tree;
    return made;
}

Sized make_call(Parse *p, Span span, AstName callee, const Exprs *args) {
    Sized made = make_expr(p, AST_CALL, span, args->depth);
    made.tree->call.callee = callee;
    made.tree->call.args = args->list;
    return made;
}

Sized make_subscript(Parse *p, Span span, Sized base, const Exprs *subs) {
    Sized made = make_expr(p, AST_SUBSCRIPT, span, deeper(base.depth, subs->depth));
    made.tree->subscript.base = base.tree;
    made.tree->subscript.subs = subs->list;
    return made;
}

Sized make_reduce(Parse *p, AstReduceOp op, Span span, const AstNames *indexes, Sized body) {
    Sized made = make_expr(p, AST_REDUCE, span, body.depth);
    made.tree->reduce.op = op;
    made.tree->reduce.indexes = *indexes;
    made.tree->reduce.body = body.tree;
    return made;
}

Sized make_acquire(Parse *p, AstExprKind kind, Span span, AstEnd end, AstName pipe) {
    Sized made = make_expr(p, kind, span, 0);
    made.tree->acquire.end = end;
    made.tree->acquire.pipe = pipe;
    return made;
}

Exprs *push_expr(Parse *p, Exprs *list, Sized expr) {
    vec_push(p->lexer.arena, &list->list, expr.tree);
    list->depth = deeper(list->depth, expr.depth);
    return list;
}

/* ---- statements ------------------------------------------------------------------------------ */

AstStmt *make_stmt(Parse *p, AstStmtKind kind, Span span) {
    AstStmt *stmt = NEW(p->lexer.arena, AstStmt);
    stmt->kind = kind;
    stmt->span = span;
    return stmt;
}

AstStmt *make_block(Parse *p, Span span, Span close, const AstStmts *body) {
    AstStmt *stmt = make_stmt(p, AST_BLOCK, span);
    stmt->block.body = *body;
    stmt->block.close = close;
    return stmt;
}

AstStmt *make_declare(Parse *p, AstStmtKind kind, AstName name, AstType *type, AstExpr *init) {
    AstStmt *stmt = make_stmt(p, kind, name.span);
    stmt->declare.name = name;
    stmt->declare.type = type;
    stmt->declare.init = init;
    return stmt;
}

/* Refuses only what cannot be a place; the checker decides the rest */
static bool is_place(const AstExpr *expr) {
    return expr->kind == AST_NAME || expr->kind == AST_SUBSCRIPT || expr->kind == AST_MEMBER ||
           expr->kind == AST_ERROR_EXPR;
}

void note_resumed(Parse *p) { p->resumed = p->lexer.word.lo; }

static bool is_rest(const Parse *p, Span span) { return span.lo == p->resumed; }

AstStmt *make_assign(Parse *p, Sized target, AstAssignOp op, Span op_span, AstExpr *value,
                     AssignModifiers modifiers) {
    if (!is_place(target.tree)) {
        if (is_rest(p, target.tree->span)) return make_stmt(p, AST_ERROR_STMT, target.tree->span);
        Diag *diag =
            lexer_report(&p->lexer, P0022, target.tree->span, "this cannot be assigned to");
        diag_help(p->lexer.diags, diag,
                  "write a variable, `name[i, j]` or `stage.field[i, j]` before the operator");
        return make_stmt(p, AST_ERROR_STMT, target.tree->span);
    }
    AstStmt *stmt = make_stmt(p, AST_ASSIGN, target.tree->span);
    stmt->assign.target = target.tree;
    stmt->assign.value = value;
    stmt->assign.op = op;
    stmt->assign.op_span = op_span;
    stmt->assign.by_lanes = modifiers.by_lanes;
    stmt->assign.multicast_required = modifiers.multicast_required;
    stmt->assign.lanes_span = modifiers.lanes_span;
    return stmt;
}

AstStmt *make_prefetch(Parse *p, Sized value, Sized target) {
    AstStmt *stmt =
        make_assign(p, target, AST_SET, target.tree->span, value.tree, (AssignModifiers){0});
    if (stmt->kind == AST_ASSIGN) stmt->assign.prefetch = true;
    return stmt;
}

AstStmt *make_expr_stmt(Parse *p, Span span, Sized value) {
    const AstExpr *expr = value.tree;
    if (expr->kind == AST_CALL) {
        AstStmt *stmt = make_stmt(p, AST_EXPR, span);
        stmt->value = value.tree;
        return stmt;
    }
    if (expr->kind != AST_ERROR_EXPR && !is_rest(p, span)) {
        Diag *diag = lexer_report(&p->lexer, P0023, span, "this statement has no effect");
        if (expr->kind == AST_BINARY && expr->binary.op == AST_EQ && is_place(expr->binary.left))
            diag_help(p->lexer.diags, diag, "`==` compares; write `=` to assign");
        else
            diag_note(p->lexer.diags, diag, "write a declaration, an assignment or a call");
    }
    return make_stmt(p, AST_ERROR_STMT, span);
}

AstStmt *make_for(Parse *p, Span head, const AstNames *vars, const AstDomain *domain) {
    AstStmt *stmt = make_stmt(p, AST_FOR, head);
    stmt->loop.head = head;
    stmt->loop.vars = *vars;
    stmt->loop.domain = *domain;
    return stmt;
}

AstDomain *make_domain(Parse *p, Span span, AstDomainKind kind, const AstExpr *name, AstExpr *from,
                       AstExpr *to) {
    AstDomain *domain = NEW(p->lexer.arena, AstDomain);
    *domain = (AstDomain){.kind = kind, .span = span, .from = from, .to = to};
    if (kind != AST_DOMAIN_NAMED) return domain;
    domain->name.span = name->span;
    if (name->kind == AST_NAME) {
        domain->name.text = name->name;
    } else {
        domain->kind = AST_DOMAIN_RANGE;
        domain->from = domain->to = make_error_expr(p, span).tree;
        if (name->kind != AST_ERROR_EXPR) {
            Diag *diag = lexer_report(&p->lexer, P0001, name->span,
                                      "expected a name or a range after `in`, found an expression");
            diag_help(p->lexer.diags, diag, "write `grid`, the name of a `range`, or `a .. b`");
        }
    }
    return domain;
}

Chain make_if(Parse *p, Span span, AstStmt *head, AstStmt *then, Chain otherwise) {
    head->span = span;
    head->branch.then = then;
    if (otherwise.links < ELSE_IF_MAX) {
        head->branch.otherwise = otherwise.stmt;
        return (Chain){head, otherwise.links + 1};
    }
    if (otherwise.links == ELSE_IF_MAX)
        lexer_report(&p->lexer, P0008, head->branch.head, "more than %d `else if` in a row",
                     ELSE_IF_MAX);
    return (Chain){head, otherwise.links + 1};
}

AstStmt *make_stage(Parse *p, Span head, const AstExpr *acquire, AstExpr *lag, AstName as) {
    AstStmt *stmt = make_stmt(p, AST_STAGE, head);
    stmt->stage.head = head;
    stmt->stage.lag = lag;
    stmt->stage.as = as;
    stmt->stage.end = acquire->acquire.end;
    stmt->stage.pipe = acquire->acquire.pipe;
    stmt->stage.hint = acquire->acquire.hint;
    stmt->stage.unwaited = acquire->acquire.unwaited;
    return stmt;
}

/* ---- items ----------------------------------------------------------------------------------- */

AstItem *make_item(Parse *p, AstItemKind kind, Span span) {
    AstItem *item = NEW(p->lexer.arena, AstItem);
    item->kind = kind;
    item->span = item->head = span;
    return item;
}

AstType *make_type(Parse *p, Span span, AstName name, const Exprs *dims) {
    AstType *type = NEW(p->lexer.arena, AstType);
    type->span = span;
    type->name = name;
    if (dims) type->dims = dims->list;
    return type;
}

/* ---- errors ---------------------------------------------------------------------------------- */

void report_set_in_condition(Parse *p, Span op_span) {
    Diag *diag = lexer_report(&p->lexer, P0011, op_span, "`=` in a condition");
    diag_help(p->lexer.diags, diag, "write `==` to compare");
}

static bool is_comparison(const AstExpr *expr) {
    return expr->kind == AST_BINARY && expr->binary.op >= AST_EQ && expr->binary.op <= AST_GE;
}

/* In brackets its span is larger */
static bool is_bare(const AstExpr *expr, Span text) {
    return expr->span.lo == text.lo && expr->span.hi == text.hi;
}

void report_chain(Parse *p, const AstExpr *first, Span text, Span second_op) {
    if (!is_comparison(first) || !is_bare(first, text)) return;
    Diag *diag = lexer_report(&p->lexer, P0015, second_op, "comparisons cannot be chained");
    diag_label(p->lexer.diags, diag, first->binary.op_span, "the first comparison");
    diag_help(p->lexer.diags, diag, "write `a < b && b < c`, or parentheses to compare a bool");
}

void report_no_stage_name(Parse *p, Span where, bool is_block) {
    Diag *diag = lexer_report(&p->lexer, P0010, where,
                              is_block ? "expected `as` and a name for the stage"
                                       : "the stage needs a name");
    if (is_block)
        diag_help(p->lexer.diags, diag, "write `consume <p> as s { ... }`");
    else
        diag_help(p->lexer.diags, diag, "write `let s = consume <p>;` and later `release s;`");
}

void report_no_angles(Parse *p, const char *word, AstName pipe) {
    Diag *diag =
        lexer_report(&p->lexer, P0025, pipe.span, "the name of a pipe must be in angle brackets");
    diag_help(p->lexer.diags, diag, "write `%s <%s>`", word, pipe.text);
}

void report_no_width(Parse *p, Span where) {
    Diag *diag = lexer_report(&p->lexer, P0026, where,
                              "expected the number of warps or warpgroups of the role");
    diag_help(p->lexer.diags, diag, "write `role name: 1 warp`, `4 warps` or `2 warpgroups`");
}

void report_no_target(Parse *p, Span where) {
    Diag *diag = lexer_report(&p->lexer, P0024, where, "expected the target of the kernel");
    diag_help(p->lexer.diags, diag, "write `for sm_90a` before the `{`");
}

void report_bare_release(Parse *p, Span span) {
    Diag *diag = lexer_report(&p->lexer, P0012, span, "`release` needs the name of a stage");
    diag_help(p->lexer.diags, diag, "write `release s;` for a stage from `let s = consume <p>;`");
    diag_note(p->lexer.diags, diag,
              "the block forms of `consume` and `produce` release the stage at their end");
}

void report_empty_statement(Parse *p, Span span, bool after_block) {
    Diag *diag = lexer_report(&p->lexer, P0013, span,
                              after_block ? "`;` after a block" : "`;` without a statement");
    diag_help(p->lexer.diags, diag, "remove it");
}

/* The loop's head is in the syntax of another language: errors up to `until` are consequences of
 * this one */
void report_foreign_loop(Parse *p, Span span, Span until) {
    bool is_while = span.lo == until.lo;
    Diag *diag =
        lexer_report(&p->lexer, P0017, span,
                     is_while ? "Pipe has no `while` loop" : "Pipe has no `for` loop of this form");
    diag_note(p->lexer.diags, diag,
              "loops have a known range, so that the iterations of two roles can be compared");
    diag_help(p->lexer.diags, diag,
              "write `for i in 0 .. n { ... }`, or loop over `grid` or a `range`");
    p->failed = true;
    p->failure = (Span){until.hi, until.hi};
}

void report_claim(Parse *p, Span where, const char *message) {
    Diag *diag = lexer_report(&p->lexer, P0027, where, "%s", message);
    diag_help(p->lexer.diags, diag,
              "write `Y[i] ~ e within 1e-3`, or `Y[i] == e` where it is exact");
}

void report_depth(Parse *p, Span span) {
    Diag *diag = lexer_report(&p->lexer, P0008, span, "the nesting is too deep");
    diag_help(p->lexer.diags, diag, "declare inner parts with `let`");
    p->lexer.stopped = true;
}
