/* Declarations of roles and inlined functions: stages, hints, scalars and tiles, with their first
 * values. After an error the name is still bound, so that its uses are not reported as well. */
#include "elaborate/private.h"

static void bind_poison(Elab *e, AstName name) {
    elab_scope_bind(e, e->scope, NAME_POISON, name.text, name.span, 0);
}

int elab_bind_handle(Elab *e, AstName name, int pipe, End end, bool variable) {
    vec_push(e->arena, &e->role->handles,
             (Handle){.name = name.text ? name.text : "?",
                      .span = name.span,
                      .pipe = pipe,
                      .end = end,
                      .variable = variable});
    int handle = (int)e->role->handles.count - 1;
    elab_scope_bind(e, e->scope, NAME_HANDLE, name.text, name.span, handle);
    return handle;
}

void elab_acquire_into(Elab *e, int handle, const AstExpr *acquire, Span span) {
    Stmt *s = elab_stmt_new(e, S_ACQUIRE, span);
    s->head = acquire->span;
    s->acquire.handle = handle;
    s->acquire.hint = elab_hint_of(e, acquire->acquire.hint, e->role->handles.items[handle].pipe,
                                   e->role->handles.items[handle].end);
    s->acquire.unwaited = elab_unwaited(e, acquire, e->role->handles.items[handle].pipe,
                                        e->role->handles.items[handle].end);
    elab_emit(e, s);
}

/* let s = consume <p>; let s = t; false if the value is not a stage */
static bool declare_stage(Elab *e, const AstStmt *ast, bool variable) {
    const AstExpr *init = ast->declare.init;
    if (init->kind == AST_TRY) return elab_declare_hint(e, ast, variable);
    if (init->kind == AST_ACQUIRE) {
        int pipe = elab_find_pipe(e, init->acquire.pipe);
        elab_acquire_into(
            e, elab_bind_handle(e, ast->declare.name, pipe, elab_end(init->acquire.end), variable),
            init, ast->span);
        return true;
    }
    const Name *name =
        init->kind == AST_NAME && init->name ? elab_scope_find(e->scope, init->name) : NULL;
    if (!name || name->kind != NAME_HANDLE) return false;
    if (elab_refuse_borrowed(e, name, init->span, "moved")) {
        bind_poison(e, ast->declare.name);
        return true;
    }
    Handle from = e->role->handles.items[name->index];
    Stmt *s = elab_stmt_new(e, S_MOVE, ast->span);
    s->move.from = name->index;
    s->move.to = elab_bind_handle(e, ast->declare.name, from.pipe, from.end, variable);
    elab_emit(e, s);
    return true;
}

static bool declare_result(Elab *e, const AstStmt *ast, LocalKind kind) {
    Result result = elab_inline_call(e, ast->declare.init);
    AstName name = ast->declare.name;
    if (!result.ok) {
        bind_poison(e, name);
        return true;
    }
    if (result.has_tile) {
        elab_scope_bind_tile(e, e->scope, name, result.tile);
        return true;
    }
    if (result.local < 0) {
        Diag *diag = elab_error(e, P0158, ast->declare.init->span, "`%s` returns nothing",
                                ast->declare.init->call.callee.text);
        HELP(e, diag, "call it as a statement: remove the declaration");
        bind_poison(e, name);
        return true;
    }
    if (kind == LOCAL_LET && !ast->declare.type &&
        e->role->locals.items[result.local].kind == LOCAL_LET) {
        e->role->locals.items[result.local].name = name.text ? name.text : "?";
        elab_scope_bind(e, e->scope, NAME_LOCAL, name.text, name.span, result.local);
        return true;
    }
    Val v = {elab_make_local(e, result.local, ast->declare.init->span), FLEX_NONE};
    Element type = v.x->type;
    if (ast->declare.type && !elab_scalar_type(e, ast->declare.type, &type)) {
        bind_poison(e, name);
        return true;
    }
    Expr *x = elab_coerce(e, v, type, arena_printf(e->arena, "`%s`", name.text));
    elab_assign_local(e, elab_bind_local(e, name, kind, type), x, ast->span);
    return true;
}

Val elab_scalar_value(Elab *e, const AstExpr *ast) {
    IndexSpace *before = e->space, own = {0};
    e->space = &own;
    Val v = elab_operand(e, elab_expr(e, ast));
    e->space = before;
    return elab_hoist(e, &own, NULL, v.x) ? v : elab_poison(e, ast->span);
}

static void declare_scalar(Elab *e, const AstStmt *ast, LocalKind kind) {
    const AstType *type = ast->declare.type;
    AstName name = ast->declare.name;
    Element wanted = E_F32;
    bool fine = !type || elab_scalar_type(e, type, &wanted);
    if (!ast->declare.init) {
        if (fine && type)
            elab_bind_local(e, name, kind, wanted);
        else
            bind_poison(e, name);
        return;
    }
    e->scalar = name.text;
    Val v = elab_scalar_value(e, ast->declare.init);
    e->scalar = NULL;
    if (fine && type)
        v = (Val){elab_coerce(e, v, wanted, arena_printf(e->arena, "`%s`", name.text)), FLEX_NONE};
    if (!fine || elab_is_poison(v)) {
        bind_poison(e, name);
        return;
    }
    Expr *x = elab_settled(e, v);
    elab_assign_local(e, elab_bind_local(e, name, kind, x->type), x, ast->span);
}

static bool tile_extents(Elab *e, const AstType *type, int64_t *extents) {
    bool fine = type->dims.count <= PROG_MAX_RANK;
    if (!fine)
        elab_error(e, P0120, type->span, "a tile has more than %d dimensions", PROG_MAX_RANK);
    for (size_t i = 0; i < type->dims.count && i < PROG_MAX_RANK; i++)
        fine &= elab_constant_integer(e, type->dims.items[i], "the extent of a tile", 1, INT32_MAX,
                                      &extents[i]);
    return fine;
}

static bool is_of_tiles(Elab *e, Span span, Element element) {
    if (element != E_BOOL && element != E_TF32) return true;
    Diag *diag =
        elab_error(e, P0131, span, "a tile of a role cannot be %s", elab_type_name(element));
    if (element == E_TF32) NOTE(e, diag, "only fields of pipes can be tf32");
    return false;
}

static void declare_tile(Elab *e, const AstStmt *ast, bool in_registers) {
    const AstType *type = ast->declare.type;
    AstName name = ast->declare.name;
    Element element;
    int64_t extents[PROG_MAX_RANK] = {0};
    bool fine = elab_element_type(e, type, &element);
    fine &= tile_extents(e, type, extents);
    fine = fine && is_of_tiles(e, type->name.span, element);
    Val init = {0};
    if (ast->declare.init) init = elab_expr(e, ast->declare.init);
    Object *bound = elab_scope_bind_tile(e, e->scope, name, (Object){.poison = !fine});
    if (!fine) return;
    *bound =
        elab_tile_object(e, elab_add_tile(e, name.text ? name.text : "?", name.span, in_registers,
                                          element, (int)type->dims.count, extents));
    if (ast->declare.init && !elab_is_poison(init)) elab_fill_tile(e, *bound, init, ast->span);
}

/* var s: stage p; it has the role's end of the pipe; no error about its content */
static void refuse_stage_type(Elab *e, const AstStmt *ast) {
    AstName name = ast->declare.name;
    Diag *diag = elab_error(e, P0131, ast->declare.type->span,
                            "a stage variable is declared without a type");
    PRIMARY(e, diag, "its type follows from the stage that it holds");
    HELP(e, diag, "declare it with its first stage: `%s %s = consume <%s>;`",
         ast->kind == AST_LET ? "let" : "var", name.text, ast->declare.type->name.text);
    if (ast->declare.init && declare_stage(e, ast, ast->kind == AST_VAR)) return;
    int pipe = elab_find_pipe(e, ast->declare.type->name);
    bool produces =
        pipe >= 0 && e->prog->pipes.items[pipe].producer == (int)(e->role - e->prog->roles.items);
    int handle = elab_bind_handle(e, name, pipe, produces ? END_PRODUCE : END_CONSUME, true);
    e->role->handles.items[handle].forgotten = true;
}

/* ---- tiles with the extents of their indexes: let y[i] = ..; --------------------------------- */

/* The indexes of the new tile: they run from 0 over its dimensions. */
static bool bind_dimensions(Elab *e, const AstNames *names) {
    bool fine = names->count <= PROG_MAX_RANK;
    if (!fine)
        elab_error(e, P0120, names->items[PROG_MAX_RANK].span, "a tile has more than %d dimensions",
                   PROG_MAX_RANK);
    for (size_t i = 0; i < names->count && fine; i++) {
        const AstName *name = &names->items[i];
        const Name *old = name->text ? elab_scope_find(e->scope, name->text) : NULL;
        if (old) {
            Diag *diag = elab_error(e, P0101, name->span, "`%s` is already declared", name->text);
            LABEL(e, diag, old->span, "first declared here");
            HELP(e, diag, "choose another name for the index");
        }
        fine = name->text && !old && elab_add_index(e, name->text, name->span) >= 0;
        const Name *bound = fine ? elab_scope_find(e->scope, name->text) : NULL;
        if (!bound || !bound->value.x) continue;
        elab_error(e, P0200, name->span, "index `%s` of a new tile runs from 0", name->text);
        fine = false;
    }
    e->space->bound = e->space->count;
    return fine;
}

/* Declares a register tile of the value's type, whose extents are those of the indexes. */
static bool declare_for_value(Elab *e, const AstStmt *ast, Tile *tile, Access *target) {
    AstName name = ast->declare.name;
    int64_t extents[PROG_MAX_RANK];
    int rank = (int)ast->declare.indexes->count;
    if (!elab_extents(e, &tile->space, tile->value, extents) ||
        !is_of_tiles(e, tile->value->span, tile->value->type))
        return false;
    int number = elab_add_tile(e, name.text ? name.text : "?", name.span, true, tile->value->type,
                               rank, extents);
    *target = (Access){.space = SPACE_REGISTER,
                       .object = number,
                       .type = tile->value->type,
                       .rank = rank,
                       .span = name.span};
    access_allocate(e->nodes, e->arena, target);
    for (int d = 0; d < rank; d++)
        target->subs[d] = elab_make_index(e, d, ast->declare.indexes->items[d].span);
    return true;
}

/* A cast to a narrow type stays: the tile has that type, as an operand of a product needs it. */
static Expr *value_of_tile(Elab *e, Val value) {
    bool cast = value.x->kind == X_CAST && elab_is_narrow(value.x->type);
    return elab_settled(e, cast ? value : elab_operand(e, value));
}

static void declare_elements(Elab *e, const AstStmt *ast) {
    AstName name = ast->declare.name;
    Tile *tile = NEW(e->nodes, Tile);
    size_t mark = elab_scope_mark(e->scope);
    IndexSpace *before = e->space;
    bool had_target = e->has_target;
    e->space = &tile->space, e->has_target = true;
    bool fine = bind_dimensions(e, ast->declare.indexes);
    if (fine) tile->value = value_of_tile(e, elab_expr(e, ast->declare.init));
    e->space = before, e->has_target = had_target;
    elab_scope_undo(e->scope, mark);
    fine = fine && tile->value->kind != X_POISON && declare_for_value(e, ast, tile, &tile->target);
    if (!fine) {
        e->target_faulty = true; /* its ranges are not reported too */
        bind_poison(e, name);
        return;
    }
    elab_hoist(e, &tile->space, &tile->target, tile->value);
    elab_emit_tile(e, tile, ast->span);
    Object *bound =
        elab_scope_bind_tile(e, e->scope, name, elab_tile_object(e, tile->target.object));
    bound->read_only = bound->is_let = ast->kind == AST_LET;
}

static void declare(Elab *e, const AstStmt *ast) {
    const AstType *type = ast->declare.type;
    const AstExpr *init = ast->declare.init;
    if (type && type->is_stage && ast->kind != AST_SHARED) {
        refuse_stage_type(e, ast);
        return;
    }
    if (ast->kind == AST_SHARED || (type && type->dims.count && ast->kind == AST_VAR)) {
        if (type)
            declare_tile(e, ast, ast->kind == AST_VAR);
        else
            bind_poison(e, ast->declare.name);
        return;
    }
    if (ast->declare.indexes) {
        declare_elements(e, ast);
        return;
    }
    if (init && !type && declare_stage(e, ast, ast->kind == AST_VAR)) return;
    LocalKind kind = ast->kind == AST_LET ? LOCAL_LET : LOCAL_VAR;
    if (type && type->dims.count) {
        Diag *diag = elab_error(e, P0131, type->span, "`let` of a tile");
        HELP(e, diag, "write `var %s: %s;` and assign its elements", ast->declare.name.text,
             elab_text_of(e, type->span));
        bind_poison(e, ast->declare.name);
        return;
    }
    if (init && elab_is_fn_call(e, init))
        declare_result(e, ast, kind);
    else
        declare_scalar(e, ast, kind);
}

void elab_declare(Elab *e, const AstStmt *ast) {
    const AstModifiers *with = ast->declare.with;
    Span refused = with->where      ? with->where_span
                   : with->by_lanes ? with->lanes_span
                                    : with->multicast_span;
    if (refused.hi) {
        Diag *diag =
            elab_error(e, P0231, refused, "`%s` after a declaration", elab_text_of(e, refused));
        HELP(e, diag, "a declaration gives every element a value; assign parts of it later");
    }
    RangesOf before = elab_ranges_begin(e, with->ranges);
    declare(e, ast);
    elab_ranges_end(e, before);
    e->target_faulty = false;
}
