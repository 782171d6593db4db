/* Statements of roles and inlined functions: assignments, tile statements. After
 * an error in a part, the statement is still added with its known parts, so that later passes do
 * not report it as missing. */
#include "elaborate/private.h"

#include <string.h>

/* ---- construction ---------------------------------------------------------------------------- */

/* A statement has memory only for the members of its kind. */
#define UP_TO(member) offsetof(Stmt, member) + sizeof((Stmt *)0)->member
static const unsigned char size_of[] = {
    [S_BLOCK] = UP_TO(block),     [S_SCALAR] = UP_TO(scalar), [S_TILE] = UP_TO(tile),
    [S_GRID] = UP_TO(grid),       [S_FOR] = UP_TO(loop),      [S_IF] = UP_TO(branch),
    [S_LEAVE] = UP_TO(leave),     [S_TRY] = UP_TO(ask),       [S_ACQUIRE] = UP_TO(acquire),
    [S_RELEASE] = UP_TO(release), [S_MOVE] = UP_TO(move),     [S_STAGE] = UP_TO(stage),
    [S_UNSAFE] = UP_TO(unsafe),
};
#undef UP_TO

Stmt *elab_stmt_new(Elab *e, StmtKind kind, Span span) {
    Stmt *s = arena_alloc(e->arena, size_of[kind]);
    s->kind = kind;
    s->span = s->head = span;
    return s;
}

void elab_emit(Elab *e, Stmt *s) { vec_push(e->arena, e->out, s); }

int elab_add_local(Elab *e, const char *name, Span span, LocalKind kind, Element type) {
    bool in_grid = false;
    for (const Loop *loop = e->loop; loop; loop = loop->outer)
        in_grid |= loop->stmt->kind == S_GRID;
    vec_push(e->arena, &e->role->locals,
             (Local){.name = name,
                     .span = span,
                     .kind = kind,
                     .type = type,
                     .in_grid = in_grid,
                     .axis = -1});
    vec_push(e->arena, &e->loop_of, NULL);
    return (int)e->role->locals.count - 1;
}

int elab_bind_local(Elab *e, AstName name, LocalKind kind, Element type) {
    int local = elab_add_local(e, name.text ? name.text : "?", name.span, kind, type);
    elab_scope_bind(e, e->scope, NAME_LOCAL, name.text, name.span, local);
    return local;
}

void elab_assign_local(Elab *e, int local, Expr *value, Span span) {
    Local *row = &e->role->locals.items[local];
    if (row->kind == LOCAL_LET) row->value = value;
    Stmt *s = elab_stmt_new(e, S_SCALAR, span);
    s->scalar.local = local, s->scalar.value = value;
    elab_emit(e, s);
}

int elab_add_tile(Elab *e, const char *name, Span span, bool in_registers, Element type, int rank,
                  const int64_t *extents) {
    RoleTile tile = {
        .name = name, .span = span, .in_registers = in_registers, .type = type, .rank = rank};
    for (int i = 0; i < rank; i++) tile.extents[i] = extents[i];
    vec_push(e->arena, &e->role->tiles, tile);
    return (int)e->role->tiles.count - 1;
}

static Access whole_access(Elab *e, Object object, Span span) {
    Access access = {.space = object.space,
                     .object = object.object,
                     .field = object.field,
                     .element = object.element,
                     .type = object.type,
                     .rank = object.rank,
                     .span = span};
    access_allocate(e->nodes, e->arena, &access);
    for (int i = 0; i < object.rank; i++) access.subs[i] = elab_make_index(e, i, span);
    return access;
}

static Tile *whole_tile(Elab *e, Object object, Span span) {
    static const char *const names[PROG_MAX_RANK] = {"i0", "i1", "i2", "i3", "i4"};
    Tile *tile = NEW(e->nodes, Tile);
    tile->space.bound = object.rank;
    for (int i = 0; i < object.rank; i++) index_space_add(e->nodes, &tile->space, names[i], span);
    tile->target = whole_access(e, object, span);
    return tile;
}

void elab_emit_tile(Elab *e, Tile *tile, Span span) {
    Stmt *s = elab_stmt_new(e, S_TILE, span);
    s->tile = tile;
    elab_emit(e, s);
}

void elab_fill_tile(Elab *e, Object object, Val value, Span span) {
    Tile *tile = whole_tile(e, object, span);
    tile->value = elab_stored(e, value, object.type, object.span, "the tile");
    elab_emit_tile(e, tile, span);
}

void elab_copy_tile(Elab *e, Object to, Object from, Span span) {
    Tile *tile = whole_tile(e, to, span);
    Access *read = NEW(e->nodes, Access);
    *read = whole_access(e, from, span);
    tile->value = elab_make_read(e, read, span);
    elab_emit_tile(e, tile, span);
}

/* ---- types ----------------------------------------------------------------------------------- */

bool elab_element_type(Elab *e, const AstType *type, Element *out) {
    AstName name = type->name;
    if (!name.text) return false;
    if (type->is_tmem) {
        elab_refuse_word(e, type->span, "tmem");
        return false;
    }
    if (elab_named_type(e, name.text, name.span, out)) {
        elab_need_type(e, *out, name.span);
        return *out != E_COUNT;
    }
    VEC(const char *) list = {0};
    for (int i = 0; i < E_COUNT; i++) vec_push(e->arena, &list, element_rows[i].spelling);
    Diag *diag = elab_error(e, P0103, name.span, "unknown element type `%s`", name.text);
    const char *near = foreign_type(name.text, strlen(name.text));
    if (!near) near = elab_suggest(e, name.text, list.items, list.count);
    if (near)
        HELP(e, diag, "did you mean `%s`?", near);
    else
        NOTE(e, diag,
             "element types: f32 f16 bf16 e4m3 e5m2 i8 u8 i32 u32 i64 u64; for fields also tf32");
    return false;
}

bool elab_scalar_type(Elab *e, const AstType *type, Element *out) {
    if (type->is_stage || type->dims.count) {
        elab_error(e, P0131, type->span, "a scalar type is needed here");
        return false;
    }
    if (!elab_element_type(e, type, out)) return false;
    if (element_rows[*out].widens == *out) return true;
    Diag *diag = elab_error(e, P0131, type->span, "a scalar cannot be %s", elab_type_name(*out));
    HELP(e, diag, "declare it `%s`; narrow types are only for tiles and tensors",
         elab_type_name(element_rows[*out].widens));
    return false;
}

/* ---- assignments ----------------------------------------------------------------------------- */

static void cannot_assign(Elab *e, const AstStmt *ast, const Name *name, const char *what) {
    Diag *diag =
        elab_error(e, P0117, ast->assign.target->span, "`%s` cannot be assigned", name->text);
    LABEL(e, diag, name->span, "%s", what);
    if (name->kind == NAME_LOCAL && e->role->locals.items[name->index].kind == LOCAL_LET)
        HELP(e, diag, "declare it with `var`");
}

void elab_forget_stage(Elab *e, const Name *name) {
    e->role->handles.items[name->index].forgotten = true;
}

static void assign_stage(Elab *e, const AstStmt *ast, const Name *name) {
    const AstExpr *value = ast->assign.value;
    const Handle *to = &e->role->handles.items[name->index];
    const Name *from =
        value->kind == AST_NAME && value->name ? elab_scope_find(e->scope, value->name) : NULL;
    int pipe = -1;
    if (ast->assign.op != AST_SET) {
        Diag *diag = elab_error(e, P0117, ast_assign_op(ast), "a stage can only be moved");
        LABEL(e, diag, name->span, "declared as a stage");
        HELP(e, diag, "write `=`");
    }
    if (value->kind == AST_ACQUIRE)
        pipe = elab_find_pipe(e, value->acquire.pipe);
    else if (from && from->kind == NAME_HANDLE)
        pipe = e->role->handles.items[from->index].pipe;
    else {
        Diag *diag =
            elab_error(e, P0154, value->span, "`%s` is a stage, but this is not", name->text);
        LABEL(e, diag, name->span, "declared here");
        elab_forget_stage(e, name);
        return;
    }
    if (pipe < 0 || to->pipe < 0 ||
        elab_refuse_borrowed(e, name, ast->assign.target->span, "assigned") ||
        (value->kind == AST_NAME && elab_refuse_borrowed(e, from, value->span, "moved")))
        return;
    if (!to->variable) {
        Diag *diag =
            elab_error(e, P0117, ast->assign.target->span, "`%s` cannot be assigned", name->text);
        LABEL(e, diag, name->span, to->parameter ? "a parameter" : "declared without `var`");
        if (to->parameter)
            HELP(e, diag, "move it to a variable: `var t = %s;`", name->text);
        else
            HELP(e, diag, "declare it with `var %s = ..;` to assign further stages", name->text);
        elab_forget_stage(e, name);
        return;
    }
    End end = value->kind == AST_ACQUIRE ? elab_end(value->acquire.end)
                                         : e->role->handles.items[from->index].end;
    if (pipe != to->pipe || end != to->end) {
        Diag *diag =
            elab_error(e, P0154, value->span,
                       "`%s` cannot hold this stage: it is of another pipe or end", name->text);
        LABEL(e, diag, name->span, "%s <%s>", to->end == END_PRODUCE ? "produce" : "consume",
              e->prog->pipes.items[to->pipe].name);
        LABEL(e, diag, value->span, "%s <%s>", end == END_PRODUCE ? "produce" : "consume",
              e->prog->pipes.items[pipe].name);
        elab_forget_stage(e, name);
        return;
    }
    if (value->kind == AST_ACQUIRE) {
        elab_acquire_into(e, name->index, value, ast->span);
        return;
    }
    Stmt *s = elab_stmt_new(e, S_MOVE, ast->span);
    s->move.to = name->index, s->move.from = from->index;
    elab_emit(e, s);
}

static void assign_scalar(Elab *e, const AstStmt *ast, const Name *name) {
    Local *local = &e->role->locals.items[name->index];
    if (local->kind != LOCAL_VAR) {
        static const char *const what[] = {[LOCAL_LET] = "a `let`",
                                           [LOCAL_VAR] = "",
                                           [LOCAL_LOOP] = "a loop variable",
                                           [LOCAL_AXIS] = "an axis of the grid"};
        cannot_assign(e, ast, name, what[local->kind]);
        return;
    }
    Element type = local->type;
    const char *text = arena_printf(e->arena, "`%s`", name->text);
    Val v;
    if (elab_is_fn_call(e, ast->assign.value) && ast->assign.op == AST_SET) {
        Result result = elab_inline_call(e, ast->assign.value);
        if (!result.ok) return;
        if (result.local < 0) {
            const char *callee = ast->assign.value->call.callee.text;
            Diag *diag =
                elab_error(e, P0158, ast->assign.value->span, "`%s` returns no scalar", callee);
            const AstItem *fn = elab_find_fn(e, callee);
            if (fn) LABEL(e, diag, fn->head, "declared here");
            return;
        }
        v = (Val){elab_make_local(e, result.local, ast->assign.value->span), FLEX_NONE};
    } else {
        e->assigned = name->index;
        v = elab_scalar_value(e, ast->assign.value);
    }
    if (ast->assign.op != AST_SET) {
        Val now = {elab_make_local(e, name->index, ast->assign.target->span), FLEX_NONE};
        v = elab_make_binary(e, elab_compound_op(ast->assign.op), now, v, ast->span,
                             ast_assign_op(ast));
    }
    e->assigned = -1;
    type = local->type; /* it is another one after an error */
    elab_assign_local(e, name->index, elab_coerce(e, v, type, text), ast->span);
}

/* A statement with a wrong target counts as writing it in later passes. */
static Access *target_of(Elab *e, const AstExpr *ast) {
    Access *access = elab_access_of(e, ast, true);
    if (access) return access;
    Object object;
    size_t before = e->diags->items.count;
    const AstExpr *base = ast->kind == AST_SUBSCRIPT ? ast->subscript.base : ast;
    if (!elab_object_of(e, base, &object, true) || e->diags->items.count != before ||
        object.rank > PROG_MAX_RANK)
        return NULL;
    access = NEW(e->nodes, Access);
    *access = (Access){.space = object.space,
                       .object = object.object,
                       .field = object.field,
                       .type = object.type,
                       .rank = object.rank,
                       .span = ast->span};
    if (object.space == SPACE_GLOBAL || object.space == SPACE_LET) return NULL;
    access_allocate(e->nodes, e->arena, access);
    for (int i = 0; i < object.rank; i++) access->subs[i] = elab_poison(e, ast->span).x;
    return access;
}

static const AstExpr *base_of(const AstExpr *target) {
    return target->kind == AST_SUBSCRIPT ? target->subscript.base : target;
}

static bool has_reduction(const AstExpr *value) {
    return value->kind == AST_REDUCE ||
           (value->kind == AST_BINARY &&
            (has_reduction(value->binary.left) || has_reduction(value->binary.right)));
}

static Expr *tile_value(Elab *e, const AstStmt *ast, const Access *target) {
    Val v = elab_expr(e, ast->assign.value);
    if (ast->assign.op == AST_SET)
        return elab_stored(e, v, target->type, ast->assign.target->span, NULL);
    v = elab_operand(e, v);
    if (elab_is_poison(v)) return v.x;
    const char *text = elab_text_of(e, ast->assign.target->span);
    if (elab_is_narrow(target->type) || target->type == E_TF32) {
        Diag *diag = elab_error(e, P0105, ast_assign_op(ast), "`%s` on %s needs a written cast",
                                ast_assign_text[ast->assign.op], elab_type_name(target->type));
        LABEL(e, diag, ast->assign.target->span, "stores %s", elab_type_name(target->type));
        if (has_reduction(ast->assign.value))
            HELP(e, diag, "accumulate in f32, and cast the result: `%s: f32[..]`",
                 elab_text_of(e, base_of(ast->assign.target)->span));
        else
            HELP(e, diag, "write `%s = %s(%s %c ..)`", text, elab_type_name(target->type), text,
                 ast_assign_text[ast->assign.op][0]);
        return elab_poison(e, ast->span).x;
    }
    Expr *x = elab_coerce(e, v, target->type, arena_printf(e->arena, "`%s`", text));
    bool zero =
        elab_is_const(x) && (x->type == E_F32 ? x->constant.number == 0 : x->constant.integer == 0);
    if (ast->assign.op != AST_SET_DIV || !zero) return x;
    elab_error(e, P0108, x->span, "`/=` by a constant zero");
    return elab_poison(e, x->span).x;
}

static void assign_tile(Elab *e, const AstStmt *ast) {
    static const AssignOp ops[] = {[AST_SET] = ASSIGN_SET,
                                   [AST_SET_ADD] = ASSIGN_ADD,
                                   [AST_SET_SUB] = ASSIGN_SUB,
                                   [AST_SET_MUL] = ASSIGN_MUL,
                                   [AST_SET_DIV] = ASSIGN_DIV};
    Tile *tile = NEW(e->nodes, Tile);
    size_t mark = elab_scope_mark(e->scope);
    IndexSpace *before = e->space;
    bool had_target = e->has_target;
    e->space = &tile->space, e->has_target = true;
    elab_bind_indexes(e, ast);
    size_t errors = e->diags->errors;
    const Access *target = target_of(e, ast->assign.target);
    e->target_faulty = e->diags->errors > errors;
    tile->op = ops[ast->assign.op];
    if (target) {
        tile->value = tile_value(e, ast, target);
        elab_hoist(e, &tile->space, target, tile->value);
    } else {
        elab_expr(e, ast->assign.value);
    }
    bool own = elab_where(e, ast, target, tile);
    e->target_faulty = false;
    e->space = before, e->has_target = had_target;
    elab_scope_undo(e->scope, mark);
    if (!target || !own) return;
    tile->target = *target;
    tile->by_lanes = ast->assign.with->by_lanes, tile->lanes_span = ast->assign.with->lanes_span;
    tile->multicast_required = ast->assign.with->multicast_required;
    tile->prefetch = ast->assign.prefetch;
    elab_emit_tile(e, tile, ast->span);
}

static void assign_unknown(Elab *e, const AstStmt *ast) {
    const AstExpr *target = ast->assign.target;
    if (elab_is_word(e, target->name)) {
        elab_error(e, P0117, target->span, "`%s` cannot be assigned", target->name);
        return;
    }
    if (!elab_scope_find(e->unknown, target->name)) {
        elab_scope_bind(e, e->unknown, NAME_POISON, target->name, target->span, 0);
        Diag *diag = elab_error(e, P0100, target->span, "unknown name `%s`", target->name);
        const char *near = elab_suggest_name(e, target->name, NULL);
        if (near)
            HELP(e, diag, "did you mean `%s`?", near);
        else
            HELP(e, diag, "declare it: `let %s = ..;`, or `var` if it changes", target->name);
    }
    elab_expr(e, ast->assign.value);
}

static void assign_name(Elab *e, const AstStmt *ast) {
    const AstExpr *target = ast->assign.target;
    const Name *name = target->name ? elab_scope_find(e->scope, target->name) : NULL;
    if (!name) {
        if (target->name) assign_unknown(e, ast);
        return;
    }
    switch (name->kind) {
    case NAME_HANDLE: assign_stage(e, ast, name); return;
    case NAME_HINT: elab_assign_hint(e, ast, name); return;
    case NAME_LOCAL: assign_scalar(e, ast, name); return;
    case NAME_TILE:
    case NAME_LET: elab_resolve_name(e, target->name, target->span); break;
    case NAME_PARAM:
        if (e->prog->params.items[name->index].is_tensor)
            elab_resolve_name(e, target->name, target->span);
        else
            cannot_assign(e, ast, name, "a parameter");
        break;
    case NAME_CONST: cannot_assign(e, ast, name, "a constant"); break;
    case NAME_SYMBOL:
        cannot_assign(e, ast, name,
                      e->prog->symbols.items[name->index].is_extent ? "an extent" : "a parameter");
        break;
    case NAME_VALUE: cannot_assign(e, ast, name, "a parameter"); break;
    case NAME_AXIS:
    case NAME_DOMAIN:
    case NAME_INDEX: cannot_assign(e, ast, name, "declared here"); break;
    case NAME_POISON: break;
    }
    AstExprKind kind = ast->assign.value->kind;
    bool whole = kind == AST_NAME || kind == AST_MEMBER; /* `y = x` of tiles is one error */
    if (kind != AST_ACQUIRE && !whole) elab_expr(e, ast->assign.value);
}

/* The parser refuses all other left sides of an assignment */
static void assign(Elab *e, const AstStmt *ast) {
    const AstExpr *target = ast->assign.target;
    RangesOf before = elab_ranges_begin(e, ast->assign.with->ranges);
    if (target->kind == AST_NAME && ast->assign.prefetch) {
        Diag *diag =
            elab_error(e, P0230, target->span, "`%s` is not a field of a stage", target->name);
        HELP(e, diag, "write `prefetch A[..] as s.a[i, j];` for the copy `s.a[i, j] = A[..];`");
    } else if (target->kind == AST_NAME) {
        if (ast->assign.with->by_lanes)
            elab_error(e, P0117, ast->assign.with->lanes_span,
                       "`by lanes` on a statement that is not a copy of a tile");
        if (ast->assign.with->where) {
            Diag *diag = elab_error(e, P0231, ast->assign.with->where_span,
                                    "`where` on a statement without elements");
            HELP(e, diag, "write `if c { .. }`");
        }
        assign_name(e, ast);
    } else if (target->kind == AST_SUBSCRIPT || target->kind == AST_MEMBER) {
        assign_tile(e, ast);
    }
    elab_ranges_end(e, before);
}

/* ---- other statements ------------------------------------------------------------------------ */

static void release(Elab *e, const AstStmt *ast) {
    AstName wanted = ast->release.name;
    const Name *name = wanted.text ? elab_scope_find(e->scope, wanted.text) : NULL;
    if (!wanted.text || (name && name->kind == NAME_POISON)) return;
    if (!name) {
        Diag *diag = elab_error(e, P0100, wanted.span, "unknown name `%s`", wanted.text);
        const char *near = elab_suggest_name(e, wanted.text, NULL);
        if (near) HELP(e, diag, "did you mean `%s`?", near);
        elab_ended_stage(e, diag, wanted.text);
        return;
    }
    if (name->kind == NAME_HINT) {
        elab_refuse_hint(e, wanted.span, name);
        return;
    }
    if (name->kind != NAME_HANDLE) {
        Diag *diag = elab_error(e, P0154, wanted.span, "`%s` is not a stage", wanted.text);
        LABEL(e, diag, name->span, "declared here");
        return;
    }
    if (elab_refuse_borrowed(e, name, ast->span, "released")) return;
    Stmt *s = elab_stmt_new(e, S_RELEASE, ast->span);
    s->release.handle = name->index;
    s->release.silent = ast->release.without_signal && elab_release_silent(e, ast, name->index);
    elab_emit(e, s);
}

static void leave(Elab *e, const AstStmt *ast) {
    const char *word = ast->kind == AST_BREAK ? "break" : "continue";
    if (!e->loop || e->loop->frame != e->frame) {
        Diag *diag = elab_error(e, P0152, ast->span, "`%s` outside of a loop", word);
        if (e->loop) NOTE(e, diag, "a function cannot leave the loop of its caller");
        return;
    }
    Stmt *s = elab_stmt_new(e, S_LEAVE, ast->span);
    s->leave.kind = ast->kind == AST_BREAK ? LEAVE_BREAK : LEAVE_CONTINUE;
    s->leave.target = e->loop->stmt;
    elab_emit(e, s);
}

static void call_stmt(Elab *e, const AstStmt *ast) {
    if (elab_is_fn_call(e, ast->value)) {
        const AstItem *fn = elab_find_fn(e, ast->value->call.callee.text);
        if (!elab_inline_call(e, ast->value).ok || !fn->fn.result) return;
        Diag *diag =
            elab_error(e, P0158, ast->span, "the result of `%s` is not used", fn->fn.name.text);
        LABEL(e, diag, fn->fn.result->span, "declared here");
        HELP(e, diag, "use its result: `let r = %s;`", elab_text_of(e, ast->value->span));
        return;
    }
    Val v = elab_expr(e, ast->value);
    if (elab_is_poison(v)) return;
    Diag *diag = elab_error(e, P0158, ast->span, "this call has no effect");
    HELP(e, diag, "use its result: `let r = %s;`", elab_text_of(e, ast->value->span));
}

void elab_block_items(Elab *e, const AstStmt *block) {
    for (size_t i = 0; i < block->block.count; i++) elab_stmt(e, block->block.body[i]);
}

/* `first` is the first local, `kept` the result of a function, which belongs to the caller */
static void end_locals(Elab *e, Stmt *block, size_t first, int kept) {
    for (size_t i = first; i < e->role->locals.count; i++) {
        Local *local = &e->role->locals.items[i];
        if (local->kind != LOCAL_VAR || local->scoped || (int)i == kept) continue;
        local->scoped = true;
        vec_push(e->arena, &block->block.locals, (int)i);
    }
}

ScopeMark elab_mark(const Elab *e) {
    return (ScopeMark){.tiles = e->role->tiles.count, .locals = e->role->locals.count};
}

void elab_end_scope(Elab *e, Stmt *block, ScopeMark first, int kept_tile, int kept_local) {
    end_locals(e, block, first.locals, kept_local);
    int count = (int)e->role->tiles.count;
    for (int i = (int)first.tiles; i < count; i++) {
        RoleTile *tile = &e->role->tiles.items[i];
        if (tile->until || i == kept_tile) continue;
        tile->until = count;
        vec_push(e->arena, &block->block.tiles, i);
    }
}

Stmt *elab_body_of(Elab *e, const AstStmt *ast) {
    Stmt *s = elab_stmt_new(e, S_BLOCK, ast ? ast->span : (Span){0});
    if (!ast) return s;
    Stmts *before = e->out;
    e->out = &s->block.body;
    size_t mark = elab_scope_mark(e->scope);
    ScopeMark first = elab_mark(e);
    if (ast->kind == AST_BLOCK || ast->kind == AST_TURN || ast->kind == AST_UNSAFE)
        elab_block_items(e, ast);
    else
        elab_stmt(e, ast);
    elab_end_scope(e, s, first, -1, -1);
    elab_scope_undo(e->scope, mark);
    e->out = before;
    return s;
}

static void turn(Elab *e, const AstStmt *ast) {
    Stmt *s = elab_body_of(e, ast);
    s->block.turn = 1; /* numbered at the end of the role */
    s->head = (Span){ast->span.lo, ast->span.lo + 4};
    elab_emit(e, s);
}

void elab_stmt(Elab *e, const AstStmt *ast) {
    if ((e->frame && !elab_step(e, ast->span)) || elab_gives_up(e)) return;
    switch (ast->kind) {
    case AST_ERROR_STMT: break;
    case AST_BLOCK: elab_emit(e, elab_body_of(e, ast)); break;
    case AST_LET:
    case AST_VAR:
    case AST_SHARED: elab_declare(e, ast); break;
    case AST_ASSIGN: assign(e, ast); break;
    case AST_FOR: elab_loop_stmt(e, ast); break;
    case AST_IF: elab_if_stmt(e, ast); break;
    case AST_BREAK:
    case AST_CONTINUE: leave(e, ast); break;
    case AST_RETURN: elab_return_stmt(e, ast); break;
    case AST_STAGE: elab_stage_stmt(e, ast); break;
    case AST_RELEASE: release(e, ast); break;
    case AST_ARRIVE:
    case AST_WAIT:
    case AST_EXPECT:
    case AST_STEP: elab_signal_stmt(e, ast); break;
    case AST_PTX: elab_ptx_stmt(e, ast); break;
    case AST_EXPR: call_stmt(e, ast); break;
    case AST_TURN: turn(e, ast); break;
    case AST_UNSAFE: elab_unsafe_block(e, ast); break;
    }
}
