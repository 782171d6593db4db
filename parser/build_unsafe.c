/* Constructors for `unsafe` blocks: signals, cursors, inline PTX. */
#include "parser/build.h"

Sized make_name(Parse *p, AstName name) {
    Sized made = make_expr(p, AST_NAME, name.span, 0);
    made.tree->name = name.text;
    return made;
}

/* `consume <p>.index` is a member of the cursor of that end */
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

AstStmt *make_signal(Parse *p, AstStmtKind kind, Span span, Sized barrier) {
    AstStmt *stmt = make_stmt(p, kind, span);
    stmt->signal.barrier = barrier.tree;
    stmt->signal.at = stmt->signal.value = NULL;
    return stmt;
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
