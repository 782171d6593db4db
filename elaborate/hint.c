/* Hints: `let ready = try consume <p>;` tests without waiting if the next stage is ready;
 * `consume <p> if ready as s` does not wait if it was. hints.c proves that no acquire is between
 * the two. */
#include "elaborate/private.h"

End elab_end(AstEnd end) { return end == AST_PRODUCE ? END_PRODUCE : END_CONSUME; }

static void ask(Elab *e, int hint, const AstExpr *value, Span span) {
    Stmt *s = elab_stmt_new(e, S_TRY, span);
    s->head = value->span;
    s->ask.hint = hint;
    elab_emit(e, s);
}

bool elab_declare_hint(Elab *e, const AstStmt *ast, bool variable) {
    const AstExpr *init = ast->declare.init;
    AstName name = ast->declare.name;
    int pipe = elab_find_pipe(e, init->acquire.pipe), hint = (int)e->role->hints.count;
    vec_push(e->arena, &e->role->hints,
             ((Hint){.name = name.text ? name.text : "?",
                     .span = name.span,
                     .pipe = pipe,
                     .end = elab_end(init->acquire.end),
                     .variable = variable}));
    elab_scope_bind(e, e->scope, NAME_HINT, name.text, name.span, hint);
    if (pipe >= 0) ask(e, hint, init, ast->span);
    return true;
}

void elab_refuse_hint(Elab *e, Span span, const Name *name) {
    Hint *hint = &e->role->hints.items[name->index];
    if (hint->pipe < 0) return;
    Diag *diag = elab_error(e, P0154, span, "`%s` is a hint, not a value or a stage", name->text);
    LABEL(e, diag, name->span, "declared here: `try` acquires nothing");
    HELP(e, diag, "pass it to the next acquire: `%s <%s> if %s`",
         hint->end == END_PRODUCE ? "produce" : "consume", e->prog->pipes.items[hint->pipe].name,
         name->text);
    hint->pipe = -1; /* its pipe is unknown */
}

static void another(Elab *e, Span span, const Name *name, int pipe, End end) {
    Hint *hint = &e->role->hints.items[name->index];
    const char *const words[] = {[END_PRODUCE] = "produce", [END_CONSUME] = "consume"};
    const char *wanted_pipe = e->prog->pipes.items[pipe].name,
               *declared_pipe = e->prog->pipes.items[hint->pipe].name;
    Diag *diag = elab_error(e, P0331, span, "hint `%s` is for `%s <%s>`, not for `%s <%s>`",
                            name->text, words[hint->end], declared_pipe, words[end], wanted_pipe);
    LABEL(e, diag, hint->span, "declared here");
    HELP(e, diag, "write `let h = try %s <%s>;` before it, and `if h` here", words[end],
         wanted_pipe);
    hint->pipe = -1; /* it is unknown which of the two was intended */
}

void elab_assign_hint(Elab *e, const AstStmt *ast, const Name *name) {
    const AstExpr *value = ast->assign.value;
    const Hint *hint = &e->role->hints.items[name->index];
    if (value->kind != AST_TRY || ast->assign.op != AST_SET) {
        Diag *diag =
            elab_error(e, P0154, value->span, "`%s` is a hint, but this is not", name->text);
        LABEL(e, diag, name->span, "declared here");
        HELP(e, diag, "assign the result of a `try`: `%s = try consume <..>;`", name->text);
        return;
    }
    int pipe = elab_find_pipe(e, value->acquire.pipe);
    if (pipe < 0 || hint->pipe < 0) return;
    if (pipe != hint->pipe || elab_end(value->acquire.end) != hint->end) {
        another(e, value->span, name, pipe, elab_end(value->acquire.end));
        return;
    }
    if (!hint->variable) {
        Diag *diag =
            elab_error(e, P0117, ast->assign.target->span, "`%s` cannot be assigned", name->text);
        LABEL(e, diag, name->span, "declared without `var`");
        HELP(e, diag, "declare it with `var %s = ..`", name->text);
    }
    ask(e, name->index, value, ast->span);
}

int elab_hint_of(Elab *e, AstName wanted, int pipe, End end) {
    const Name *name = wanted.text ? elab_scope_find(e->scope, wanted.text) : NULL;
    if (!wanted.text || (name && name->kind == NAME_POISON)) return -1;
    if (!name) {
        Diag *diag = elab_error(e, P0100, wanted.span, "unknown name `%s`", wanted.text);
        const char *near = elab_suggest_name(e, wanted.text, NULL);
        if (near) HELP(e, diag, "did you mean `%s`?", near);
        return -1;
    }
    if (name->kind != NAME_HINT) {
        Diag *diag = elab_error(e, P0154, wanted.span, "`%s` is not a hint", wanted.text);
        LABEL(e, diag, name->span, "declared here");
        HELP(e, diag,
             "put the acquire inside of `if`; `if` after an acquire takes only a hint from `try`");
        return -1;
    }
    const Hint *hint = &e->role->hints.items[name->index];
    if (pipe < 0 || hint->pipe < 0) return -1;
    if (hint->pipe == pipe && hint->end == end) return name->index;
    another(e, wanted.span, name, pipe, end);
    return -1;
}
