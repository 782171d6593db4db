/* Constructors of expressions. */
#include "parser/build.h"

#include <string.h>

/* A node has memory only for the members of its kind: most are names and numbers. */
#define UP_TO(member) offsetof(AstExpr, member) + sizeof((AstExpr *)0)->member
static const unsigned char size_of[] = {
    [AST_ERROR_EXPR] = sizeof(AstExpr),
    [AST_INTEGER] = UP_TO(integer),
    [AST_FLOAT] = UP_TO(number),
    [AST_BOOL] = UP_TO(truth),
    [AST_NAME] = UP_TO(name),
    [AST_UNARY] = UP_TO(unary),
    [AST_BINARY] = UP_TO(binary),
    [AST_SELECT] = UP_TO(select),
    [AST_CALL] = UP_TO(call),
    [AST_SUBSCRIPT] = UP_TO(subscript),
    [AST_MEMBER] = UP_TO(member),
    [AST_REDUCE] = UP_TO(reduce),
    [AST_OLD] = UP_TO(old),
    [AST_ACQUIRE] = UP_TO(acquire),
    [AST_TRY] = UP_TO(acquire),
    [AST_CURSOR] = UP_TO(cursor),
};
#undef UP_TO

static int deeper(int a, int b) { return a > b ? a : b; }

Sized make_error_expr(Parse *p, Span span) {
    AstExpr *expr = cut_alloc(&p->nodes, sizeof *expr);
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
    AstExpr *expr = cut_alloc(&p->nodes, size_of[kind]);
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
    made.tree->binary.op_at = op_span.lo;
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

Sized make_call(Parse *p, Span span, AstName callee, Exprs *args) {
    Sized made = make_expr(p, AST_CALL, span, args->depth);
    AstExprs taken = take_exprs(p, args);
    made.tree->call.callee = callee;
    made.tree->call.args = taken.items, made.tree->call.count = taken.count;
    return made;
}

Sized make_subscript(Parse *p, Span span, Sized base, Exprs *subs) {
    Sized made = make_expr(p, AST_SUBSCRIPT, span, deeper(base.depth, subs->depth));
    AstExprs taken = take_exprs(p, subs);
    made.tree->subscript.base = base.tree;
    made.tree->subscript.subs = taken.items, made.tree->subscript.count = taken.count;
    return made;
}

Sized make_reduce(Parse *p, AstReduceOp op, Span span, const AstNames *indexes, Sized body) {
    Sized made = make_expr(p, AST_REDUCE, span, body.depth);
    made.tree->reduce.op = op;
    made.tree->reduce.indexes = indexes;
    made.tree->reduce.body = body.tree;
    return made;
}

Sized make_old(Parse *p, Span span, Sized access) {
    Sized made = make_expr(p, AST_OLD, span, access.depth);
    made.tree->old = access.tree;
    return made;
}

Sized make_acquire(Parse *p, AstExprKind kind, Span span, AstEnd end, AstName pipe) {
    Sized made = make_expr(p, kind, span, 0);
    made.tree->acquire.end = end;
    made.tree->acquire.pipe = pipe;
    return made;
}

Sized make_try(Parse *p, Span span, Sized pipe_end) {
    const AstExpr *end = pipe_end.tree;
    return make_acquire(p, AST_TRY, span, end->acquire.end, end->acquire.pipe);
}

Sized make_name(Parse *p, AstName name) {
    Sized made = make_expr(p, AST_NAME, name.span, 0);
    made.tree->name = name.text;
    return made;
}

Sized make_member(Parse *p, Span span, Sized base, AstName member) {
    if (base.tree->kind == AST_ACQUIRE) return make_cursor(p, span, base, member);
    Sized made = make_expr(p, AST_MEMBER, span, base.depth);
    made.tree->member.base = base.tree;
    made.tree->member.member = member;
    return made;
}

Sized make_cursor(Parse *p, Span span, Sized pipe_end, AstName member) {
    Sized made = make_expr(p, AST_CURSOR, span, 0);
    made.tree->cursor.end = pipe_end.tree->acquire.end;
    made.tree->cursor.pipe = pipe_end.tree->acquire.pipe;
    made.tree->cursor.member = member;
    return made;
}

AstNames *make_names(Parse *p, AstName first) {
    AstNames *made = cut_alloc(&p->nodes, sizeof *made);
    made->items = NEW(p->lexer.arena, AstName);
    made->items[0] = first;
    made->count = made->capacity = 1;
    return made;
}

Exprs *new_exprs(Parse *p) {
    Exprs *list = p->unused;
    if (!list) return NEW(p->lexer.arena, Exprs);
    p->unused = list->next;
    return list;
}

AstExprs take_exprs(Parse *p, Exprs *list) {
    AstExprs taken = {.count = (uint32_t)list->list.count};
    if (taken.count > 0) {
        taken.items = cut_alloc(&p->nodes, taken.count * sizeof(AstExpr *));
        memcpy(taken.items, list->list.items, taken.count * sizeof(AstExpr *));
    }
    list->list.count = 0, list->depth = 0;
    list->next = p->unused, p->unused = list;
    return taken;
}

Exprs *push_expr(Parse *p, Exprs *list, Sized expr) {
    vec_push_alone(p->lexer.arena, &list->list, expr.tree);
    list->depth = deeper(list->depth, expr.depth);
    return list;
}
