/* Functions inlined as statements: a block that `return` leaves. Scalars are passed by value,
 * tiles by reference, stages by move or by `borrow`. A function sees its parameters and the
 * constants and functions of its file, not the caller's names. */
#include "elaborate/private.h"

/* ---- arguments ------------------------------------------------------------------------------- */

typedef struct Passing {
    const AstItem *fn;
    const AstExpr *call;
    Scope *scope;      /* of the callee */
    Stmt *block;       /* NULL in an expression */
    VEC(Object) tiles; /* passed so far */
    VEC(Span) tile_spans;
    VEC(bool) tile_inout;
} Passing;

static bool bad_argument(Elab *e, const Passing *p, const AstExpr *arg, const AstParam *param,
                         const char *what) {
    Diag *diag = elab_error(e, P0123, arg->span, "argument for `%s` of `%s`: %s", param->name.text,
                            p->fn->fn.name.text, what);
    LABEL(e, diag, param->span, "parameter declared here");
    return false;
}

static bool same_extent(const Expr *a, const Expr *b) {
    if (a->kind == X_CONST && b->kind == X_CONST) return a->constant.integer == b->constant.integer;
    return a->kind == X_SYMBOL && b->kind == X_SYMBOL && a->index == b->index;
}

static Val in_scope(Elab *e, Scope *scope, const AstExpr *ast) {
    Scope *before = e->scope;
    e->scope = scope;
    Val v = elab_operand(e, elab_expr(e, ast));
    e->scope = before;
    return v;
}

/* A new name in an extent of a parameter is bound to the argument's extent; other extents must
 * agree. */
static bool pass_extents(Elab *e, const Passing *p, const AstExpr *arg, const AstParam *param,
                         const Object *object) {
    for (int i = 0; i < object->rank; i++) {
        const AstExpr *dim = param->type->dims.items[i];
        bool is_new = dim->kind == AST_NAME && dim->name && !elab_is_word(e, dim->name) &&
                      !elab_scope_find(p->scope, dim->name);
        if (is_new) {
            elab_scope_bind(e, p->scope, NAME_VALUE, dim->name, dim->span, 0)->value =
                (Val){object->extents[i], FLEX_ANY};
            continue;
        }
        Val v = in_scope(e, p->scope, dim);
        if (elab_is_poison(v)) return false;
        if (same_extent(v.x, object->extents[i])) continue;
        Diag *diag = elab_error(e, P0123, arg->span, "extents of `%s` and of its argument disagree",
                                param->name.text);
        LABEL(e, diag, dim->span, "extent %d of the parameter", i);
        LABEL(e, diag, object->span, "argument declared here");
        if (elab_is_const(v.x) && elab_is_const(object->extents[i]))
            NOTE(e, diag, "expected %lld, found %lld", (long long)v.x->constant.integer,
                 (long long)object->extents[i]->constant.integer);
        return false;
    }
    return true;
}

static bool same_object(const Object *a, const Object *b) {
    return a->space == b->space && a->object == b->object && a->field == b->field;
}

static bool distinct(Elab *e, Passing *p, const AstExpr *arg, const Object *object, bool inout) {
    for (size_t i = 0; i < p->tiles.count; i++) {
        if (!same_object(&p->tiles.items[i], object) || (!inout && !p->tile_inout.items[i]))
            continue;
        Diag *diag = elab_error(e, P0126, arg->span, "`%s` is passed twice, but `%s` changes it",
                                elab_text_of(e, arg->span), p->fn->fn.name.text);
        LABEL(e, diag, p->tile_spans.items[i], "also passed here");
        HELP(e, diag, "copy it to another tile first, and pass that");
        return false;
    }
    vec_push(e->arena, &p->tiles, *object);
    vec_push(e->arena, &p->tile_spans, arg->span);
    vec_push(e->arena, &p->tile_inout, inout);
    return true;
}

static bool pass_tile(Elab *e, Passing *p, const AstExpr *arg, const AstParam *param) {
    Object object;
    Element type;
    bool inout = param->mode == AST_INOUT || param->mode == AST_OUT;
    if (!elab_element_type(e, param->type, &type)) return false;
    bool is_object = elab_object_of(e, arg, &object, true);
    if (!is_object) {
        size_t before = e->diags->items.count;
        if (arg->kind == AST_NAME || arg->kind == AST_MEMBER)
            elab_object_of(e, arg, &object, false);
        if (e->diags->items.count != before) return false;
        /* poison */
        if (arg->kind == AST_NAME && arg->name && elab_scope_find(e->scope, arg->name))
            return false;
        return bad_argument(e, p, arg, param, "expected the name of a tile");
    }
    if (object.space == SPACE_LET)
        return bad_argument(e, p, arg, param, "expected a tile, found a `let` of `ensures`");
    if (object.rank != (int)param->type->dims.count)
        return bad_argument(e, p, arg, param,
                            arena_printf(e->arena, "expected a tile of %u dimensions, found %d",
                                         param->type->dims.count, object.rank));
    if (object.type != type)
        return bad_argument(e, p, arg, param,
                            arena_printf(e->arena, "expected %s, found %s", elab_type_name(type),
                                         elab_type_name(object.type)));
    if (inout && object.read_only) {
        Diag *diag = elab_error(e, P0117, arg->span, "`%s` is read-only, but `%s` changes it",
                                elab_text_of(e, arg->span), p->fn->fn.name.text);
        LABEL(e, diag, object.span, "declared here");
        return false;
    }
    if (!distinct(e, p, arg, &object, inout) || !pass_extents(e, p, arg, param, &object))
        return false;
    if (!inout) object.read_only = true;
    object.span = param->span;
    elab_scope_bind_tile(e, p->scope, param->name, object);
    return true;
}

/* inout x: f32: refers to the caller's variable */
static bool pass_variable(Elab *e, const Passing *p, const AstExpr *arg, const AstParam *param,
                          Element type) {
    const Name *name =
        arg->kind == AST_NAME && arg->name ? elab_scope_find(e->scope, arg->name) : NULL;
    if (name && name->kind == NAME_POISON) return false;
    if (!name || name->kind != NAME_LOCAL || e->role->locals.items[name->index].kind != LOCAL_VAR)
        return bad_argument(e, p, arg, param, "expected a `var`, since the function changes it");
    if (e->role->locals.items[name->index].type != type)
        return bad_argument(e, p, arg, param,
                            arena_printf(e->arena, "expected %s, found %s", elab_type_name(type),
                                         elab_type_name(e->role->locals.items[name->index].type)));
    if (!p->block)
        return bad_argument(e, p, arg, param,
                            "the function changes it, so the call must be a statement");
    elab_scope_bind(e, p->scope, NAME_LOCAL, param->name.text, param->name.span, name->index);
    return true;
}

static bool pass_scalar(Elab *e, const Passing *p, const AstExpr *arg, const AstParam *param) {
    Element type;
    if (!elab_scalar_type(e, param->type, &type)) return false;
    if (param->mode == AST_INOUT || param->mode == AST_OUT)
        return pass_variable(e, p, arg, param, type);
    Val v = p->block ? elab_scalar_value(e, arg) : elab_operand(e, elab_expr(e, arg));
    Expr *x = elab_coerce(
        e, v, type, arena_printf(e->arena, "`%s` of `%s`", param->name.text, p->fn->fn.name.text));
    if (x->kind == X_POISON) return false;
    if (p->block && !elab_is_const(x)) {
        int local = elab_add_local(e, param->name.text, param->name.span, LOCAL_LET, type);
        elab_assign_local(e, local, x, arg->span);
        elab_scope_bind(e, p->scope, NAME_LOCAL, param->name.text, param->name.span, local);
    } else {
        elab_scope_bind(e, p->scope, NAME_VALUE, param->name.text, param->name.span, 0)->value =
            (Val){x, FLEX_NONE};
    }
    return true;
}

bool elab_refuse_borrowed(Elab *e, const Name *name, Span span, const char *verb) {
    if (!name->borrowed) return false;
    Diag *diag =
        elab_error(e, P0330, span, "stage `%s` is borrowed and cannot be %s", name->text, verb);
    PRIMARY(e, diag, "the caller still holds this stage and releases it");
    LABEL(e, diag, name->span, "borrowed here");
    HELP(e, diag, "remove `borrow` to move the stage into the function");
    elab_forget_stage(e, name);
    return true;
}

static bool pass_stage(Elab *e, const Passing *p, const AstExpr *arg, const AstParam *param) {
    int pipe = elab_find_pipe(e, param->type->name);
    const Name *name =
        arg->kind == AST_NAME && arg->name ? elab_scope_find(e->scope, arg->name) : NULL;
    if (pipe < 0 || (name && name->kind == NAME_POISON)) return false;
    if (name && name->kind == NAME_HINT) {
        elab_refuse_hint(e, arg->span, name);
        return false;
    }
    if (arg->kind == AST_ACQUIRE) {
        elab_expr(e, arg);
        return false;
    }
    if (!name || name->kind != NAME_HANDLE)
        return bad_argument(e, p, arg, param, "expected the name of a stage");
    Handle from = e->role->handles.items[name->index];
    if (from.pipe != pipe && from.pipe >= 0)
        return bad_argument(e, p, arg, param,
                            arena_printf(e->arena, "expected a stage of `%s`, found one of `%s`",
                                         e->prog->pipes.items[pipe].name,
                                         e->prog->pipes.items[from.pipe].name));
    if (param->mode == AST_BORROW) {
        elab_scope_bind(e, p->scope, NAME_HANDLE, param->name.text, param->name.span, name->index)
            ->borrowed = true;
        if (p->block) vec_push(e->arena, &p->block->block.loans, ((Loan){name->index, arg->span}));
        return true;
    }
    if (!p->block)
        return bad_argument(e, p, arg, param, "it is a stage, so the call must be a statement");
    if (elab_refuse_borrowed(e, name, arg->span, "moved")) return false;
    Stmt *s = elab_stmt_new(e, S_MOVE, arg->span);
    s->move.from = name->index;
    Scope *before = e->scope;
    e->scope = p->scope;
    s->move.to = elab_bind_handle(e, param->name, from.pipe, from.end, false);
    e->role->handles.items[s->move.to].parameter = true;
    e->scope = before;
    elab_emit(e, s);
    return true;
}

/* Refuses `borrow` of anything but a stage, and `inout` of a stage */
static bool refuse_mode(Elab *e, const AstParam *param) {
    Diag *diag = elab_error(e, P0123, param->mode_span, "`%s` cannot be written before %s",
                            elab_text_of(e, param->mode_span),
                            param->type->is_stage ? "a stage" : "a tile or a number");
    LABEL(e, diag, param->type->span, "type of the parameter");
    NOTE(e, diag,
         "a stage is moved into the function, or lent to it with `borrow`; tiles and variables "
         "that the function changes are `inout`");
    return false;
}

bool elab_pass_arguments(Elab *e, const AstItem *fn, const AstExpr *ast, Scope *scope,
                         Stmt *block) {
    size_t wanted = fn->fn.params.count, given = ast->call.count;
    if (wanted != given) {
        Diag *diag = elab_error(e, P0122, ast->span, "`%s` takes %zu argument%s, but %zu %s given",
                                fn->fn.name.text, wanted, wanted == 1 ? "" : "s", given,
                                given == 1 ? "is" : "are");
        LABEL(e, diag, fn->head, "declared here");
        return false;
    }
    Passing p = {.fn = fn, .call = ast, .scope = scope, .block = block};
    bool fine = true;
    for (size_t i = 0; i < wanted; i++) {
        const AstParam *param = &fn->fn.params.items[i];
        const AstExpr *arg = ast->call.args[i];
        if (!param->type || !param->name.text) return false;
        if (param->mode != AST_IN && (param->mode == AST_BORROW) != param->type->is_stage)
            fine = refuse_mode(e, param);
        else if (param->type->is_stage)
            fine &= pass_stage(e, &p, arg, param);
        else if (param->type->dims.count)
            fine &= pass_tile(e, &p, arg, param);
        else
            fine &= pass_scalar(e, &p, arg, param);
    }
    return fine;
}

/* ---- returns --------------------------------------------------------------------------------- */

bool elab_always_returns(const AstStmt *ast) {
    if (!ast) return false;
    switch (ast->kind) {
    case AST_RETURN:
    case AST_ERROR_STMT: return true;
    case AST_BLOCK:
    case AST_TURN:
        for (size_t i = 0; i < ast->block.count; i++)
            if (elab_always_returns(ast->block.body[i])) return true;
        return false;
    case AST_IF:
        return elab_always_returns(ast->branch.then) && elab_always_returns(ast->branch.otherwise);
    case AST_STAGE: return elab_always_returns(ast->stage.body);
    case AST_LET:
    case AST_VAR:
    case AST_SHARED:
    case AST_ASSIGN:
    case AST_FOR:
    case AST_BREAK:
    case AST_CONTINUE:
    case AST_RELEASE:
    case AST_ARRIVE:
    case AST_WAIT:
    case AST_EXPECT:
    case AST_STEP:
    case AST_PTX:
    case AST_EXPR:
    case AST_UNSAFE: break;
    }
    return false;
}

static int count_returns(const AstStmt *ast) {
    if (!ast) return 0;
    int count = 0;
    switch (ast->kind) {
    case AST_RETURN: return 1;
    case AST_BLOCK:
    case AST_TURN:
    case AST_UNSAFE:
        for (size_t i = 0; i < ast->block.count; i++) count += count_returns(ast->block.body[i]);
        return count;
    case AST_IF: return count_returns(ast->branch.then) + count_returns(ast->branch.otherwise);
    case AST_STAGE: return count_returns(ast->stage.body);
    case AST_FOR: return count_returns(ast->loop.body);
    case AST_ERROR_STMT:
    case AST_LET:
    case AST_VAR:
    case AST_SHARED:
    case AST_ASSIGN:
    case AST_BREAK:
    case AST_CONTINUE:
    case AST_RELEASE:
    case AST_ARRIVE:
    case AST_WAIT:
    case AST_EXPECT:
    case AST_STEP:
    case AST_PTX:
    case AST_EXPR: break;
    }
    return 0;
}

static void leave_function(Elab *e, const AstStmt *ast) {
    if (ast == e->frame->last) return;
    Stmt *s = elab_stmt_new(e, S_LEAVE, ast->span);
    s->leave.kind = LEAVE_BREAK;
    s->leave.target = e->frame->block;
    e->frame->block->block.left = true;
    elab_emit(e, s);
}

/* The function returns one of its own register tiles: moved, or copied if there are several
 * returns. */
static void return_tile(Elab *e, const AstStmt *ast) {
    Frame *frame = e->frame;
    Object object;
    if (!elab_object_of(e, ast->value, &object, false)) return;
    if (object.rank != frame->tile.rank || object.type != frame->tile.type) {
        Diag *diag = elab_error(e, P0123, ast->value->span,
                                "the type of this tile differs from the declared result of `%s`",
                                frame->fn->fn.name.text);
        LABEL(e, diag, frame->fn->fn.result->span, "declared result");
        return;
    }
    for (int i = 0; i < object.rank; i++) {
        if (same_extent(object.extents[i], frame->tile.extents[i])) continue;
        Diag *diag = elab_error(e, P0123, ast->value->span,
                                "the extents of this tile differ from the declared result of `%s`",
                                frame->fn->fn.name.text);
        LABEL(e, diag, frame->fn->fn.result->span, "declared result");
        return;
    }
    if (frame->single && object.space == SPACE_REGISTER && !object.read_only)
        frame->tile = object;
    else
        elab_copy_tile(e, frame->tile, object, ast->span);
    frame->has_tile = true;
}

static void return_scalar(Elab *e, const AstStmt *ast) {
    Val v = elab_scalar_value(e, ast->value);
    Element type = e->role->locals.items[e->frame->result].type;
    Expr *x = elab_coerce(e, v, type,
                          arena_printf(e->arena, "the result of `%s`", e->frame->fn->fn.name.text));
    elab_assign_local(e, e->frame->result, x, ast->span);
}

void elab_return_stmt(Elab *e, const AstStmt *ast) {
    Frame *frame = e->frame;
    if (!frame) {
        if (ast->value) {
            Diag *diag = elab_error(e, P0153, ast->value->span, "`return` with a value in a role");
            HELP(e, diag, "write `return;`");
            return;
        }
        Stmt *s = elab_stmt_new(e, S_LEAVE, ast->span);
        s->leave.kind = LEAVE_BREAK;
        elab_emit(e, s);
        return;
    }
    const AstType *result = frame->fn->fn.result;
    if (ast->value && !result) {
        Diag *diag = elab_error(e, P0153, ast->value->span,
                                "`return` with a value in `%s`, which returns nothing",
                                frame->fn->fn.name.text);
        LABEL(e, diag, frame->fn->head, "declared without `-> type`");
        HELP(e, diag, "write `return;`, or declare the type of the result");
        return;
    }
    if (!ast->value && result) {
        Diag *diag = elab_error(e, P0158, ast->span, "`return` without a value in `%s`",
                                frame->fn->fn.name.text);
        LABEL(e, diag, result->span, "declared result");
        HELP(e, diag, "write `return` with a value of this type");
        return;
    }
    if (result) {
        if (frame->result >= 0)
            return_scalar(e, ast);
        else
            return_tile(e, ast);
    }
    leave_function(e, ast);
}

/* ---- the call -------------------------------------------------------------------------------- */

static bool prepare_tile(Elab *e, Frame *frame, Scope *scope) {
    const AstType *type = frame->fn->fn.result;
    Element element;
    int64_t extents[PROG_MAX_RANK] = {0};
    if (!elab_element_type(e, type, &element) || type->dims.count > PROG_MAX_RANK) return false;
    Scope *before = e->scope;
    e->scope = scope;
    bool fine = true;
    for (size_t i = 0; i < type->dims.count; i++)
        fine &= elab_constant_integer(e, type->dims.items[i], "the extent of a result", 1,
                                      INT32_MAX, &extents[i]);
    e->scope = before;
    if (!fine) return false;
    if (!frame->single) {
        frame->tile =
            elab_tile_object(e, elab_add_tile(e, frame->fn->fn.name.text, frame->call, true,
                                              element, (int)type->dims.count, extents));
        return true;
    }
    frame->tile = (Object){.space = SPACE_REGISTER,
                           .object = -1,
                           .type = element,
                           .rank = (int)type->dims.count,
                           .span = frame->call};
    for (int i = 0; i < frame->tile.rank; i++)
        frame->tile.extents[i] = elab_make_integer(e, E_I32, extents[i], type->span);
    return true;
}

static bool prepare_result(Elab *e, Frame *frame, Scope *scope) {
    const AstType *type = frame->fn->fn.result;
    const AstStmt *body = frame->fn->fn.body;
    size_t count = body->block.count;
    frame->last = count ? body->block.body[count - 1] : NULL;
    frame->single = frame->last && frame->last->kind == AST_RETURN && count_returns(body) == 1;
    if (!type) return true;
    if (type->is_stage) {
        Diag *diag = elab_error(e, P0127, type->span, "a function must return a scalar or a tile");
        NOTE(e, diag, "a function cannot return a stage");
        return false;
    }
    if (!elab_always_returns(body)) {
        Diag *diag = elab_error(e, P0125, type->span, "`%s` may end without `return`",
                                frame->fn->fn.name.text);
        PRIMARY(e, diag, "it must return a value of this type");
        LABEL(e, diag, body->block.close, "this end can be reached");
        return false;
    }
    if (type->dims.count) {
        /* A tile can only be moved if it is declared in the function */
        frame->single =
            frame->single && frame->last->value && frame->last->value->kind == AST_NAME &&
            !elab_scope_find(scope, frame->last->value->name ? frame->last->value->name : "");
        return prepare_tile(e, frame, scope);
    }
    Element element;
    if (!elab_scalar_type(e, type, &element)) return false;
    frame->result = elab_add_local(e, frame->fn->fn.name.text, frame->call,
                                   frame->single ? LOCAL_LET : LOCAL_VAR, element);
    return true;
}

/* A call that was refused: the stages passed to it have an unknown state. */
static void forget_stages(Elab *e, const AstItem *fn, const AstExpr *ast) {
    for (size_t i = 0; i < ast->call.count && i < fn->fn.params.count; i++) {
        const AstExpr *arg = ast->call.args[i];
        const Name *name =
            arg->kind == AST_NAME && arg->name ? elab_scope_find(e->scope, arg->name) : NULL;
        if (name && name->kind == NAME_HANDLE && !name->borrowed &&
            fn->fn.params.items[i].mode != AST_BORROW)
            elab_forget_stage(e, name);
    }
}

Result elab_inline_call(Elab *e, const AstExpr *ast) {
    Result failed = {.local = -1};
    const AstItem *fn = elab_find_fn(e, ast->call.callee.text);
    if (!fn->fn.body || !elab_enter_fn(e, fn, ast)) {
        e->role->forgotten = true;
        return failed;
    }
    Stmt *block = elab_stmt_new(e, S_BLOCK, ast->span);
    block->block.close = fn->fn.body->block.close;
    Stmts *out = e->out;
    Scope *scope = elab_scope_new(e, e->file), *caller = e->scope;
    IndexSpace *space = e->space;
    ScopeMark first = elab_mark(e);
    e->out = &block->block.body, e->space = NULL;
    Frame frame = {.outer = e->frame, .fn = fn, .call = ast->span, .block = block, .result = -1};
    bool fine = elab_pass_arguments(e, fn, ast, scope, block) && prepare_result(e, &frame, scope);
    if (fine) {
        e->frame = &frame, e->scope = scope;
        elab_block_items(e, fn->fn.body);
        elab_end_scope(e, block, first, frame.has_tile ? frame.tile.object : -1, frame.result);
        e->frame = frame.outer, e->scope = caller;
    } else {
        forget_stages(e, fn, ast);
        e->role->forgotten = true;
    }
    e->out = out, e->space = space;
    elab_emit(e, block);
    if (!fine || (fn->fn.result && frame.result < 0 && !frame.has_tile)) return failed;
    return (Result){
        .ok = true, .has_tile = frame.has_tile, .local = frame.result, .tile = frame.tile};
}
