/* Ranges with `where`: an iteration is live if its `where` is true, which is only known by
 * evaluation. Generated statements search for a live iteration; a piece counts the live ones,
 * and skips those that are not its own. */
#include "elaborate/private.h"

static Val local_val(Elab *e, int local, Span span) {
    return (Val){elab_make_local(e, local, span), FLEX_NONE};
}

static void leave_loop(Elab *e, Stmt *loop, Span span) {
    Stmt *leave = elab_stmt_new(e, S_LEAVE, span);
    leave->leave.kind = LEAVE_BREAK, leave->leave.target = loop;
    elab_emit(e, leave);
}

Expr *elab_search_live(Elab *e, Stmt *loop, Span span) {
    const char *name = e->prog->domains.items[loop->loop.domain].name;
    int found =
        elab_add_local(e, arena_printf(e->arena, "%s nonempty", name), span, LOCAL_VAR, E_BOOL);
    elab_assign_local(e, found, elab_val_bool(e, false, span).x, span);
    Stmt *body = elab_stmt_new(e, S_BLOCK, span);
    Stmts *before = e->out;
    e->out = &body->block.body;
    elab_assign_local(e, found, elab_val_bool(e, true, span).x, span);
    leave_loop(e, loop, span);
    e->out = before;
    loop->loop.body = body;
    elab_emit(e, loop);
    return elab_make_local(e, found, span);
}

/* The end of a piece, evaluated before the loop */
static Expr *kept(Elab *e, Val end, const char *name, Span span) {
    if (elab_is_const(end.x) || elab_is_poison(end)) return end.x;
    int local = elab_add_local(e, name, span, LOCAL_LET, E_I32);
    elab_assign_local(e, local, end.x, span);
    return elab_make_local(e, local, span);
}

LivePiece elab_live_piece(Elab *e, int domain, const Val *from, const Val *to, Span span) {
    const char *name = e->prog->domains.items[domain].name;
    LivePiece piece = {.count = -1};
    Val none = elab_val_integer(e, 0, span);
    piece.from = from ? kept(e, *from, arena_printf(e->arena, "start of %s", name), span) : none.x;
    piece.to = to ? kept(e, *to, arena_printf(e->arena, "end of %s", name), span) : NULL;
    piece.count =
        elab_add_local(e, arena_printf(e->arena, "number in %s", name), span, LOCAL_VAR, E_I32);
    elab_assign_local(e, piece.count, none.x, span);
    return piece;
}

Stmt *elab_live_body(Elab *e, const LivePiece *piece, const AstStmt *ast, Span span) {
    Stmt *body = elab_stmt_new(e, S_BLOCK, span), *branch = elab_stmt_new(e, S_IF, span);
    Stmts *before = e->out;
    e->out = &body->block.body;
    Val one = elab_val_integer(e, 1, span), from = {piece->from, FLEX_INT},
        to = {piece->to, FLEX_INT};
    Val next = elab_make_binary(e, OP_ADD, local_val(e, piece->count, span), one, span, span);
    elab_assign_local(e, piece->count, next.x, span);
    Val takes = elab_make_binary(e, OP_GT, local_val(e, piece->count, span), from, span, span);
    if (piece->to) {
        Val below = elab_make_binary(e, OP_LE, local_val(e, piece->count, span), to, span, span);
        takes = elab_make_binary(e, OP_AND, takes, below, span, span);
    }
    branch->branch.condition = takes.x, branch->branch.nonempty = -1;
    branch->branch.from = piece->from, branch->branch.to = piece->to;
    branch->branch.then = elab_body_of(e, ast);
    elab_emit(e, branch);
    e->out = before;
    return body;
}
