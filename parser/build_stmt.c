/* Constructors of statements, among them those of `unsafe` blocks. */
#include "parser/build.h"

#include <string.h>

#define SHORT_BODY 64 /* statements */

/* As for expressions; a block can become a `turn` */
#define UP_TO(member) offsetof(AstStmt, member) + sizeof((AstStmt *)0)->member
static const unsigned char size_of[] = {
    [AST_ERROR_STMT] = sizeof(AstStmt),
    [AST_BLOCK] = UP_TO(block),
    [AST_LET] = UP_TO(declare),
    [AST_VAR] = UP_TO(declare),
    [AST_SHARED] = UP_TO(declare),
    [AST_ASSIGN] = UP_TO(assign),
    [AST_FOR] = UP_TO(loop),
    [AST_IF] = UP_TO(branch),
    [AST_BREAK] = sizeof(Span) + sizeof(AstStmtKind),
    [AST_CONTINUE] = sizeof(Span) + sizeof(AstStmtKind),
    [AST_RETURN] = UP_TO(value),
    [AST_STAGE] = UP_TO(stage),
    [AST_RELEASE] = UP_TO(release),
    [AST_ARRIVE] = UP_TO(signal),
    [AST_WAIT] = UP_TO(signal),
    [AST_EXPECT] = UP_TO(signal),
    [AST_STEP] = UP_TO(signal),
    [AST_PTX] = UP_TO(ptx),
    [AST_EXPR] = UP_TO(value),
    [AST_TURN] = UP_TO(block),
    [AST_UNSAFE] = UP_TO(block),
};
#undef UP_TO

static const AstModifiers unmodified;

AstStmt *make_stmt(Parse *p, AstStmtKind kind, Span span) {
    AstStmt *stmt = cut_alloc(&p->nodes, size_of[kind]);
    stmt->kind = kind;
    stmt->span = span;
    return stmt;
}

Stmts *new_stmts(Parse *p) {
    Stmts *list = p->unused_stmts;
    if (!list) return NEW(p->lexer.arena, Stmts);
    p->unused_stmts = list->next;
    return list;
}

void push_stmt(Parse *p, Stmts *list, AstStmt *stmt) {
    vec_push_alone(p->lexer.arena, &list->list, stmt);
}

/* A short list is copied, so that its room serves for another one; a long one moves. */
static AstStmt **take_stmts(Parse *p, Stmts *list) {
    size_t count = list->list.count;
    AstStmt **taken = NULL;
    if (count > SHORT_BODY) return list->list.items;
    if (count > 0) {
        taken = cut_alloc(&p->nodes, count * sizeof(AstStmt *));
        memcpy(taken, list->list.items, count * sizeof(AstStmt *));
    }
    list->list.count = 0;
    list->next = p->unused_stmts, p->unused_stmts = list;
    return taken;
}

AstStmt *make_block(Parse *p, Span span, Span close, Stmts *body) {
    AstStmt *stmt = make_stmt(p, AST_BLOCK, span);
    stmt->block.count = (uint32_t)body->list.count;
    stmt->block.body = take_stmts(p, body);
    stmt->block.close = close;
    return stmt;
}

AstStmt *make_declare(Parse *p, AstStmtKind kind, AstName name, AstType *type, AstExpr *init) {
    AstStmt *stmt = make_stmt(p, kind, name.span);
    stmt->declare.name = name;
    stmt->declare.type = type;
    stmt->declare.init = init;
    stmt->declare.with = &unmodified;
    return stmt;
}

AstModifiers *modified(Parse *p, AstModifiers *before) {
    return before ? before : NEW(p->lexer.arena, AstModifiers);
}

AstStmt *end_declaration(AstStmt *stmt, const AstModifiers *modifiers) {
    if (modifiers) stmt->declare.with = modifiers;
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
                     const AstModifiers *modifiers) {
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
    stmt->assign.op_at = op_span.lo;
    stmt->assign.with = modifiers ? modifiers : &unmodified;
    return stmt;
}

AstIndexRanges *add_range(Parse *p, AstIndexRanges *list, Span span, const AstNames *names,
                          Sized from, Sized to) {
    if (!list) list = NEW(p->lexer.arena, AstIndexRanges);
    if (names->count > 1) {
        Diag *diag = lexer_report(&p->lexer, P0001, names->items[1].span,
                                  "a range after a statement is of one index");
        diag_help(p->lexer.diags, diag, "give each index its own: `for i in 0 .. 4, j in 0 .. 8`");
    }
    vec_push(p->lexer.arena, list, ((AstIndexRange){span, names->items[0], from.tree, to.tree}));
    return list;
}

AstStmt *make_prefetch(Parse *p, Sized value, Sized target) {
    AstStmt *stmt = make_assign(p, target, AST_SET, target.tree->span, value.tree, NULL);
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
    if (expr->kind == AST_ACQUIRE) {
        report_no_stage_name(p, span, false);
    } else if (expr->kind != AST_ERROR_EXPR && !is_rest(p, span)) {
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
    stmt->loop.vars = vars;
    stmt->loop.domain = domain;
    return stmt;
}

AstDomain *make_domain(Parse *p, Span span, AstDomainKind kind, Sized from, Sized to) {
    AstDomain *domain = NEW(p->lexer.arena, AstDomain);
    *domain = (AstDomain){.kind = kind, .span = span, .from = from.tree, .to = to.tree};
    return domain;
}

AstDomain *make_named_domain(Parse *p, Span span, Sized name, Sized from, Sized to) {
    const AstExpr *expr = name.tree;
    if (expr->kind == AST_NAME) {
        AstDomain *domain = make_domain(p, span, AST_DOMAIN_NAMED, from, to);
        domain->name = (AstName){expr->name, expr->span};
        return domain;
    }
    if (expr->kind != AST_ERROR_EXPR) {
        Diag *diag = lexer_report(&p->lexer, P0001, expr->span,
                                  "expected a name or a range after `in`, found an expression");
        diag_help(p->lexer.diags, diag, "write `grid`, the name of a `range`, or `a .. b`");
    }
    Sized error = make_error_expr(p, span);
    return make_domain(p, span, AST_DOMAIN_RANGE, error, error);
}

AstStmt *make_branch(Parse *p, Span head, Sized condition, AstName nonempty) {
    AstStmt *stmt = make_stmt(p, AST_IF, head);
    stmt->branch.head = head;
    stmt->branch.condition = condition.tree;
    stmt->branch.nonempty = nonempty;
    return stmt;
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

AstStmt *make_stage(Parse *p, Span head, Sized acquire, Sized lag, AstName as) {
    AstStmt *stmt = make_stmt(p, AST_STAGE, head);
    stmt->stage.head = head;
    stmt->stage.lag = lag.tree;
    stmt->stage.as = as;
    stmt->stage.end = acquire.tree->acquire.end;
    stmt->stage.pipe = acquire.tree->acquire.pipe;
    stmt->stage.hint = acquire.tree->acquire.hint;
    stmt->stage.unwaited = acquire.tree->acquire.unwaited;
    return stmt;
}

AstStmt *make_release(Parse *p, Span span, AstName stage) {
    AstStmt *stmt = make_stmt(p, AST_RELEASE, span);
    stmt->release.name = stage;
    return stmt;
}

AstStmt *make_bare_release(Parse *p, Span span) {
    Diag *diag = lexer_report(&p->lexer, P0012, span, "`release` needs the name of a stage");
    diag_help(p->lexer.diags, diag, "write `release s;` for a stage from `let s = consume <p>;`");
    diag_note(p->lexer.diags, diag,
              "the block forms of `consume` and `produce` release the stage at their end");
    return make_stmt(p, AST_ERROR_STMT, span);
}

/* ---- `unsafe` blocks ------------------------------------------------------------------------- */

AstStmt *make_signal(Parse *p, AstStmtKind kind, Span span, Sized barrier, Sized value) {
    AstStmt *stmt = make_stmt(p, kind, span);
    stmt->signal.barrier = barrier.tree;
    stmt->signal.at = NULL;
    stmt->signal.value = value.tree;
    return stmt;
}

AstOperand *make_input(Parse *p, Span span, Sized value) {
    AstOperand *operand = NEW(p->lexer.arena, AstOperand);
    *operand = (AstOperand){.span = span, .mode = AST_OPERAND_IN, .value = value.tree};
    return operand;
}

AstOperand *make_output(Parse *p, Span span, AstOperandMode mode, AstName name, AstName type) {
    AstOperand *operand = NEW(p->lexer.arena, AstOperand);
    *operand = (AstOperand){.span = span, .mode = mode, .name = name, .type = type};
    return operand;
}

AstStmt *make_ptx(Parse *p, Span span, AstName text, const AstOperands *operands) {
    AstStmt *stmt = make_stmt(p, AST_PTX, span);
    stmt->ptx.text = text;
    stmt->ptx.operands = operands ? *operands : (AstOperands){0};
    return stmt;
}

/* A backslash escapes the next character; PTX needs no other escapes */
const char *text_in_quotes(Parse *p, const char *before, Span span) {
    const char *source = p->lexer.source->text;
    Str text = str_new(p->lexer.arena);
    if (before) str_printf(&text, "%s\n", before);
    for (uint32_t i = span.lo + 1; i + 1 < span.hi; i++) {
        if (source[i] == '\\' && i + 2 < span.hi) i++;
        str_char(&text, source[i]);
    }
    return text.text ? text.text : "";
}
