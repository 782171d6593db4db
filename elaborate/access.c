/* Subscripts: the subscripted object, and unknown names in subscripts, which may be indexes.
 *
 * An unknown name in a subscript of a statement's target becomes an index if some object, on
 * either side, is subscripted by the bare name: otherwise it would have no range, and is a
 * misspelt name. */
#include "elaborate/private.h"

/* ---- subscripted objects --------------------------------------------------------------------- */

Object elab_tile_object(Elab *e, int tile) {
    const RoleTile *row = &e->role->tiles.items[tile];
    Object object = {.space = row->in_registers ? SPACE_REGISTER : SPACE_SHARED,
                     .object = tile,
                     .type = row->type,
                     .rank = row->rank,
                     .span = row->span};
    for (int i = 0; i < row->rank; i++)
        object.extents[i] = elab_make_integer(e, E_I32, row->extents[i], row->span);
    return object;
}

static void param_object(const Elab *e, const Name *name, Object *out) {
    const Param *param = &e->prog->params.items[name->index];
    *out = (Object){.space = SPACE_GLOBAL,
                    .object = name->index,
                    .type = param->type,
                    .rank = param->rank,
                    .read_only = param->mode == PARAM_IN,
                    .span = name->span};
    for (int i = 0; i < param->rank; i++) out->extents[i] = param->extents[i];
}

static bool has_none(Elab *e, const AstExpr *ast, const Name *name) {
    Diag *diag =
        elab_error(e, P0115, ast->span, "`%s` is not a tile or tensor and takes no subscripts",
                   elab_text_of(e, ast->span));
    if (name) LABEL(e, diag, name->span, "declared here");
    return false;
}

static bool subscriptable(const Name *name) {
    return name->kind == NAME_PARAM || name->kind == NAME_TILE || name->kind == NAME_LET ||
           name->kind == NAME_HANDLE;
}

static bool named_object(Elab *e, const AstExpr *ast, Object *out, bool quiet) {
    const Name *name = ast->name ? elab_scope_find(e->scope, ast->name) : NULL;
    if (!ast->name) return false;
    if (!name) {
        if (quiet || elab_scope_find(e->unknown, ast->name)) return false;
        elab_scope_bind(e, e->unknown, NAME_POISON, ast->name, ast->span, 0);
        const char *near = elab_suggest_name(e, ast->name, subscriptable);
        Diag *diag = elab_error(e, P0100, ast->span, "unknown name `%s`", ast->name);
        if (!elab_help_name(e, diag, ast->name, near))
            HELP(e, diag, "declare it: `let %s[i] = ..;`, or `var` if its elements change",
                 ast->name);
        return false;
    }
    switch (name->kind) {
    case NAME_TILE: *out = *name->object; return !out->poison;
    case NAME_PARAM:
        if (!e->prog->params.items[name->index].is_tensor) break;
        param_object(e, name, out);
        return true;
    case NAME_LET: {
        const Let *let = &e->prog->lets.items[name->index];
        *out = (Object){.space = SPACE_LET,
                        .object = name->index,
                        .type = let->type,
                        .rank = let->rank,
                        .read_only = true,
                        .span = name->span};
        return let->value->kind != X_POISON;
    }
    case NAME_POISON: return false;
    case NAME_VALUE:
        if (elab_is_poison(name->value)) return false;
        break;
    case NAME_HANDLE:
        if (!quiet) {
            Diag *diag = elab_error(e, P0114, ast->span, "`%s` is a stage, not a tile", ast->name);
            LABEL(e, diag, name->span, "declared here");
            HELP(e, diag, "use one of its fields: `%s.field[i]`", ast->name);
        }
        return false;
    case NAME_CONST:
    case NAME_SYMBOL:
    case NAME_AXIS:
    case NAME_DOMAIN:
    case NAME_LOCAL:
    case NAME_HINT:
    case NAME_INDEX: break;
    }
    return quiet ? false : has_none(e, ast, name);
}

static bool no_field(Elab *e, const Pipe *pipe, AstName member, bool quiet) {
    if (quiet) return false;
    Diag *diag =
        elab_error(e, P0116, member.span, "pipe `%s` has no field `%s`", pipe->name, member.text);
    LABEL(e, diag, pipe->span,
          pipe->fields.count ? "its fields are declared here"
                             : "it has no fields: its stages are tokens");
    VEC(const char *) list = {0};
    for (size_t i = 0; i < pipe->fields.count; i++)
        if (pipe->fields.items[i].name) vec_push(e->arena, &list, pipe->fields.items[i].name);
    const char *near = elab_suggest(e, member.text, list.items, list.count);
    if (near)
        HELP(e, diag, "did you mean `%s`?", near);
    else if (list.count == 1)
        HELP(e, diag, "its field is `%s`", list.items[0]);
    return false;
}

static bool not_a_stage(Elab *e, const AstExpr *base, bool quiet) {
    if (quiet) return false;
    if (base->kind == AST_NAME && base->name) {
        const Name *name = elab_scope_find(e->scope, base->name);
        if (!name) {
            Diag *diag = elab_error(e, P0100, base->span, "unknown name `%s`", base->name);
            const char *near = elab_suggest_name(e, base->name, subscriptable);
            elab_help_name(e, diag, base->name, near);
            elab_ended_stage(e, diag, base->name);
            return false;
        }
        if (name->kind == NAME_POISON) return false;
        if (name->kind == NAME_HINT) {
            elab_refuse_hint(e, base->span, name);
            return false;
        }
        Diag *diag =
            elab_error(e, P0154, base->span, "`%s` is not a stage and has no fields", base->name);
        LABEL(e, diag, name->span, "declared here");
        return false;
    }
    if (base->kind != AST_ERROR_EXPR) elab_error(e, P0154, base->span, "only stages have fields");
    return false;
}

static bool field_object(Elab *e, const AstExpr *ast, Object *out, bool quiet) {
    const AstExpr *base = ast->member.base;
    const Name *name =
        base->kind == AST_NAME && base->name ? elab_scope_find(e->scope, base->name) : NULL;
    if (!name || name->kind != NAME_HANDLE) return not_a_stage(e, base, quiet);
    if (name->index < 0 || e->role->handles.items[name->index].pipe < 0 || !ast->member.member.text)
        return false;
    const Pipe *pipe = &e->prog->pipes.items[e->role->handles.items[name->index].pipe];
    for (size_t i = 0; i < pipe->fields.count; i++) {
        const Field *field = &pipe->fields.items[i];
        if (field->name != ast->member.member.text) continue;
        *out = (Object){.space = SPACE_STAGE,
                        .object = name->index,
                        .field = (int)i,
                        .type = field->type,
                        .rank = field->rank,
                        .span = field->span};
        if (field->type == E_COUNT) return false; /* its declaration was wrong */
        for (int d = 0; d < field->rank; d++)
            out->extents[d] = elab_make_integer(e, E_I32, field->extents[d], field->span);
        return true;
    }
    return no_field(e, pipe, ast->member.member, quiet);
}

static const Field *field_of(const Elab *e, const Object *object) {
    const Handle *handle = &e->role->handles.items[object->object];
    return &e->prog->pipes.items[handle->pipe].fields.items[object->field];
}

static bool is_array(const Elab *e, const Object *object) {
    return object->space == SPACE_STAGE && !object->element && field_of(e, object)->is_array;
}

#define KNOWN_MOST 10000

/* A loop with known bounds whose variable selects a register or a tile of an array is unrolled,
 * and so are enclosing loops whose variables occur in its bounds. Traversing shared lets could
 * double the work each time: `left` bounds it. */
static bool known(Elab *e, const Expr *x, int *left);

static bool known_local(Elab *e, int index, int *left) {
    const Local *local = &e->role->locals.items[index];
    if (local->kind == LOCAL_LET) return local->value && known(e, local->value, left);
    if (local->kind != LOCAL_LOOP || (size_t)index >= e->loop_of.count) return false;
    Stmt *loop = e->loop_of.items[index];
    if (!loop || !known(e, loop->loop.lo, left) || !known(e, loop->loop.hi, left)) return false;
    return loop->loop.unroll = true;
}

static bool known_call(Elab *e, const Expr *x, int *left) {
    if (x->call.which != IN_min && x->call.which != IN_max && x->call.which != IN_ceil_div &&
        !intrinsic_of_bits(x->call.which))
        return false;
    for (int i = 0; i < x->call.count; i++)
        if (!known(e, x->call.args[i], left)) return false;
    return true;
}

/* True for integers and their comparisons: the expressions that codegen folds (codegen/values.c) */
static bool known(Elab *e, const Expr *x, int *left) {
    if (--*left < 0) return false;
    if (x->kind == X_POISON) return true;
    if (x->type != E_BOOL && !elab_is_integer(x->type)) return false;
    switch (x->kind) {
    case X_CONST:
    case X_POISON: return true;
    case X_LOCAL: return known_local(e, x->index, left);
    case X_UNARY: return known(e, x->unary.operand, left);
    case X_BINARY: return known(e, x->binary.left, left) && known(e, x->binary.right, left);
    case X_CAST: return known(e, x->cast, left);
    case X_SELECT:
        return known(e, x->select.condition, left) && known(e, x->select.then, left) &&
               known(e, x->select.otherwise, left);
    case X_CALL: return known_call(e, x, left);
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_RANK:
    case X_INDEX:
    case X_READ:
    case X_REDUCE:
    case X_SCAN: break;
    }
    return false;
}

static bool known_when_unrolled(Elab *e, const Expr *x) {
    int left = KNOWN_MOST;
    return known(e, x, &left);
}

/* True for sums and products of an index and known values */
static bool walks_known(Elab *e, const Expr *x) {
    if (x->kind == X_INDEX || !x->indexes) return x->kind == X_INDEX || known_when_unrolled(e, x);
    return x->kind == X_BINARY &&
           (x->binary.op == OP_ADD || x->binary.op == OP_SUB || x->binary.op == OP_MUL) &&
           walks_known(e, x->binary.left) && walks_known(e, x->binary.right);
}

static void report_array(Elab *e, const AstExpr *ast, const Object *object) {
    const Field *field = field_of(e, object);
    const AstExpr *base = ast->kind == AST_SUBSCRIPT ? ast->subscript.base : ast;
    Diag *diag = elab_error(e, P0113, ast->span, "`%s` is declared as an array of %d tiles",
                            field->name, field->count);
    LABEL(e, diag, field->span, "declared here");
    HELP(e, diag, "select a tile of the array first: `%s[0][..]`", elab_text_of(e, base->span));
}

static bool choose_element(Elab *e, const AstExpr *ast, Object *object) {
    const Field *field = field_of(e, object);
    if (ast->subscript.count != 1) {
        report_array(e, ast, object);
        return false;
    }
    Val v = elab_operand(e, elab_expr(e, ast->subscript.subs[0]));
    if (elab_is_poison(v)) return false;
    object->element = elab_coerce(e, v, E_I32, "the number of a tile in an array");
    if (object->element->kind == X_POISON) return false;
    if (v.x->indexes) {
        Diag *diag = elab_error(e, P0113, v.x->span, "an index cannot select a tile of an array");
        LABEL(e, diag, field->span, "declared as an array of %d tiles", field->count);
        HELP(e, diag, "loop over the tiles instead: `for q in 0 .. %d { .. }`", field->count);
        return false;
    }
    known_when_unrolled(e, object->element);
    const Expr *chosen = object->element;
    if (!elab_is_const(chosen) ||
        (chosen->constant.integer >= 0 && chosen->constant.integer < field->count))
        return true;
    Diag *diag = elab_error(e, P0111, chosen->span, "tile %lld is outside of array `%s`",
                            (long long)chosen->constant.integer, field->name);
    LABEL(e, diag, field->span, "declared as an array of %d tiles", field->count);
    return false;
}

bool elab_object_of(Elab *e, const AstExpr *ast, Object *out, bool quiet) {
    if (ast->kind == AST_NAME) return named_object(e, ast, out, quiet);
    if (ast->kind == AST_MEMBER) return field_object(e, ast, out, quiet);
    if (ast->kind == AST_SUBSCRIPT && ast->subscript.base->kind == AST_MEMBER) {
        if (!elab_object_of(e, ast->subscript.base, out, quiet)) return false;
        if (is_array(e, out)) return choose_element(e, ast, out);
    }
    return quiet || ast->kind == AST_ERROR_EXPR ? false : has_none(e, ast, NULL);
}

/* ---- an access ------------------------------------------------------------------------------- */

static bool old_allowed(Elab *e, const AstExpr *ast, const Object *object) {
    if (e->place != PLACE_CLAIM) {
        Diag *diag = elab_error(e, P0146, ast->span, "`old` outside of `ensures`");
        NOTE(e, diag, "`old` is the value before the launch, which only claims can use");
        return false;
    }
    if (object->space == SPACE_GLOBAL && e->prog->params.items[object->object].mode == PARAM_INOUT)
        return true;
    Diag *diag = elab_error(e, P0146, ast->span, "`old` of a tensor that is not `inout`");
    LABEL(e, diag, object->span, "declared without `inout`");
    if (object->space == SPACE_GLOBAL && e->prog->params.items[object->object].mode == PARAM_IN)
        HELP(e, diag, "remove `old`: the kernel does not change this tensor");
    return false;
}

/* The tensors that may be read at each place: formulas of ranges read only inputs, `ensures`
 * reads outputs only as claims. */
static bool readable(Elab *e, const AstExpr *ast, const Object *object, bool old) {
    if (object->space != SPACE_GLOBAL) return true;
    const Param *param = &e->prog->params.items[object->object];
    if (e->place == PLACE_CLAIM && param->mode != PARAM_IN && !old) {
        Diag *diag = elab_error(e, P0144, ast->span,
                                "`%s` is an output and cannot be read in `ensures`", param->name);
        LABEL(e, diag, param->span, "declared here");
        if (param->mode == PARAM_INOUT)
            HELP(e, diag, "write `old %s` for its value before the launch",
                 elab_text_of(e, ast->span));
        return false;
    }
    if (e->place == PLACE_RANGE && param->mode != PARAM_IN) {
        Diag *diag = elab_error(e, P0144, ast->span,
                                "a range depends on `%s`, which the kernel writes", param->name);
        LABEL(e, diag, param->span, "declared here");
        return false;
    }
    if (e->place == PLACE_CONST || e->place == PLACE_GRID || e->place == PLACE_EXAMPLE) {
        Diag *diag =
            elab_error(e, e->place == PLACE_CONST ? P0110 : P0144, ast->span,
                       "an element of `%s` cannot be used in %s", param->name, e->place_words);
        LABEL(e, diag, param->span, "its elements are known only while the kernel runs");
        return false;
    }
    return true;
}

static bool sub_fits_register(Elab *e, const Object *object, const Expr *sub) {
    if (object->space != SPACE_REGISTER || walks_known(e, sub)) return true;
    Diag *diag =
        elab_error(e, P0155, sub->span,
                   "the subscript of a register tile must be an index or a compile-time constant");
    LABEL(e, diag, object->span, "declared here, in registers");
    NOTE(e, diag, "registers cannot be addressed; declare the tile `shared` for other subscripts");
    return false;
}

/* Indexes of a tile count from 0. */
static void check_lower_bound(Elab *e, const Object *object, const AstExpr *ast) {
    const Name *name =
        ast->kind == AST_NAME && ast->name ? elab_scope_find(e->scope, ast->name) : NULL;
    if (!name || name->kind != NAME_INDEX || !name->value.x || e->place != PLACE_ROLE ||
        object->space == SPACE_GLOBAL || !e->space)
        return;
    Diag *diag =
        elab_error(e, P0200, ast->span, "index `%s` does not run over all of the tile", ast->name);
    PRIMARY(e, diag, "alone in a subscript of a tile, an index runs from 0");
    LABEL(e, diag, e->space->items[name->index].range, "its range is given here");
    HELP(e, diag, "select the part with a base: `for %s in 0 .. n`, and the subscript `base + %s`",
         ast->name, ast->name);
}

static Expr *subscript(Elab *e, const Object *object, const AstExpr *ast) {
    bool bare = e->bare_subscript, exact = e->exact, inside = e->in_subscript;
    e->bare_subscript = ast->kind == AST_NAME, e->exact = false, e->in_subscript = true;
    Val v = elab_operand(e, elab_expr(e, ast));
    e->bare_subscript = bare, e->exact = exact, e->in_subscript = inside;
    Expr *x = v.x;
    if (elab_is_poison(v)) return x;
    check_lower_bound(e, object, ast);
    if (x->type != E_I32) {
        if (v.flex && elab_is_integer(x->type) && !elab_loses_bits(x, E_I32))
            return elab_cast_to(e, v, E_I32, x->span);
        Diag *diag = elab_error(e, P0104, x->span, "a subscript must be i32, but this is %s",
                                elab_type_name(x->type));
        if (x->type != E_BOOL) HELP(e, diag, "cast it: `i32(%s)`", elab_text_of(e, x->span));
        return elab_poison(e, x->span).x;
    }
    return sub_fits_register(e, object, x) ? x : elab_poison(e, x->span).x;
}

static bool rank_fits(Elab *e, const AstExpr *ast, const Object *object, size_t given) {
    if ((int)given == object->rank) return true;
    Span base = ast->kind == AST_SUBSCRIPT ? ast->subscript.base->span : ast->span;
    Diag *diag = elab_error(e, P0113, ast->span, "`%s` has %d dimension%s, but %zu subscript%s",
                            elab_text_of(e, base), object->rank, object->rank == 1 ? "" : "s",
                            given, given == 1 ? "" : "s");
    LABEL(e, diag, object->span, "declared with %d dimension%s", object->rank,
          object->rank == 1 ? "" : "s");
    HELP(e, diag, "write %d subscript%s", object->rank, object->rank == 1 ? "" : "s");
    return false;
}

Access *elab_access_of(Elab *e, const AstExpr *ast, bool write) {
    bool old = ast->kind == AST_OLD;
    const AstExpr *read = old ? ast->old : ast;
    const AstExpr *base = read->kind == AST_SUBSCRIPT ? read->subscript.base : read;
    Object object;
    if (!elab_object_of(e, base, &object, false)) {
        /* also reports errors in the subscripts */
        if (read->kind == AST_SUBSCRIPT && e->has_target)
            for (size_t i = 0; i < read->subscript.count; i++)
                elab_expr(e, read->subscript.subs[i]);
        return NULL;
    }
    if (is_array(e, &object)) {
        report_array(e, read, &object);
        return NULL;
    }
    size_t given = read->kind == AST_SUBSCRIPT ? read->subscript.count : 0;
    if (!rank_fits(e, read, &object, given)) return NULL;
    if (old && !old_allowed(e, ast, &object)) return NULL;
    if (!write && !readable(e, ast, &object, old)) return NULL;
    Access *access = NEW(e->nodes, Access);
    *access = (Access){.space = object.space,
                       .object = object.object,
                       .field = object.field,
                       .element = object.element,
                       .old = old,
                       .type = object.type,
                       .rank = object.rank,
                       .span = read->span};
    access_allocate(e->nodes, e->arena, access);
    bool fine = true;
    for (size_t i = 0; i < given; i++) {
        access->subs[i] = subscript(e, &object, read->subscript.subs[i]);
        fine &= access->subs[i]->kind != X_POISON;
    }
    if (fine && write && object.read_only) {
        Diag *diag =
            elab_error(e, P0117, read->span, "`%s` is read-only", elab_text_of(e, base->span));
        LABEL(e, diag, object.span,
              object.is_let                  ? "declared by `let`"
              : object.space == SPACE_GLOBAL ? "declared without `out` or `inout`"
                                             : "declared without `inout`");
        HELP(e, diag, "declare it `%s`%s", object.is_let ? "var" : "inout",
             object.space == SPACE_GLOBAL ? ", or `out` if nothing reads it" : "");
        return NULL;
    }
    return fine ? access : NULL;
}

/* ---- indexes of a statement ------------------------------------------------------------------ */

int elab_add_index(Elab *e, const char *name, Span span) {
    IndexSpace *space = e->space;
    if (space->count >= PROG_MAX_INDEXES) {
        if (space->overflows) return -1;
        space->overflows = true;
        Diag *diag =
            elab_error(e, P0120, span, "more than %d indexes in one statement", PROG_MAX_INDEXES);
        HELP(e, diag, "split the statement");
        return -1;
    }
    int index = space->count;
    index_space_add(e->nodes, space, name, span);
    elab_apply_range(e, &space->items[index],
                     elab_scope_bind(e, e->scope, NAME_INDEX, name, span, index));
    return index;
}

bool elab_is_unknown_name(Elab *e, const AstExpr *ast) {
    return ast->kind == AST_NAME && ast->name && !elab_is_word(e, ast->name) &&
           !elab_scope_find(e->scope, ast->name);
}

typedef struct Walk {
    Elab *e;
    const char *wanted; /* a bare name to search for; NULL: any unknown name */
    const AstExpr *found;
} Walk;

static void look(Walk *walk, const AstExpr *ast);

static void look_subscript(Walk *walk, const AstExpr *ast) {
    for (size_t i = 0; i < ast->subscript.count && !walk->found; i++) {
        const AstExpr *sub = ast->subscript.subs[i];
        bool is_it = walk->wanted ? sub->kind == AST_NAME && sub->name == walk->wanted
                                  : elab_is_unknown_name(walk->e, sub);
        if (is_it)
            walk->found = sub;
        else
            look(walk, sub);
    }
}

static bool binds(const AstExpr *reduction, const char *name) {
    for (size_t i = 0; i < reduction->reduce.indexes->count; i++)
        if (reduction->reduce.indexes->items[i].text == name) return true;
    return false;
}

/* Searches for `wanted` as a bare subscript */
static void look(Walk *walk, const AstExpr *ast) {
    arena_count(walk->e->arena, 1);
    if (walk->found) return;
    switch (ast->kind) {
    case AST_UNARY: look(walk, ast->unary.operand); break;
    case AST_BINARY: look(walk, ast->binary.left), look(walk, ast->binary.right); break;
    case AST_SELECT:
        look(walk, ast->select.condition), look(walk, ast->select.then),
            look(walk, ast->select.otherwise);
        break;
    case AST_CALL:
        for (size_t i = 0; i < ast->call.count; i++) look(walk, ast->call.args[i]);
        break;
    case AST_SUBSCRIPT: look_subscript(walk, ast); break;
    case AST_REDUCE:
        if (walk->wanted && !binds(ast, walk->wanted)) look(walk, ast->reduce.body);
        break;
    case AST_OLD: look(walk, ast->old); break;
    case AST_ERROR_EXPR: walk->found = ast; break; /* its content is unknown */
    case AST_INTEGER:
    case AST_FLOAT:
    case AST_BOOL:
    case AST_NAME:
    case AST_MEMBER:
    case AST_ACQUIRE:
    case AST_CURSOR:
    case AST_TRY: break;
    }
}

static bool has_range(Elab *e, const char *name, const AstStmt *ast) {
    Walk walk = {.e = e, .wanted = name};
    look(&walk, ast->assign.target);
    if (ast->assign.value) look(&walk, ast->assign.value);
    if (ast->assign.with->where) look(&walk, ast->assign.with->where);
    return walk.found != NULL;
}

/* The fate of unknown names in the target's subscripts, in the order of the text */
typedef struct Binding {
    const AstStmt *ast;
    void (*found)(Elab *e, const struct Binding *binding, const AstExpr *name);
} Binding;

static void bind_index(Elab *e, const Binding *binding, const AstExpr *name) {
    if (elab_has_range(e, name->name) || has_range(e, name->name, binding->ast))
        elab_add_index(e, name->name, name->span);
}

static void bind_poison(Elab *e, const Binding *binding, const AstExpr *name) {
    (void)binding;
    elab_scope_bind(e, e->scope, NAME_POISON, name->name, name->span, 0);
}

static void report_rest(Elab *e, const Binding *binding, const AstExpr *name) {
    size_t before = e->diags->items.count;
    elab_resolve_name(e, name->name, name->span);
    if (e->diags->items.count > before) {
        Diag *diag = e->diags->items.items[before];
        if (diag->code == P0100 && !diag->helps.count) {
            NOTE(e, diag, "an index takes its extent from a subscript that is only `%s`",
                 name->name);
            HELP(e, diag, "give it a range after the statement: `.. for %s in 0 .. n;`",
                 name->name);
        }
    }
    bind_poison(e, binding, name);
}

static void each_unknown(Elab *e, const Binding *binding, const AstExpr *ast) {
    switch (ast->kind) {
    case AST_NAME:
        if (elab_is_unknown_name(e, ast)) binding->found(e, binding, ast);
        break;
    case AST_UNARY: each_unknown(e, binding, ast->unary.operand); break;
    case AST_BINARY:
        each_unknown(e, binding, ast->binary.left);
        each_unknown(e, binding, ast->binary.right);
        break;
    case AST_SELECT:
        each_unknown(e, binding, ast->select.condition);
        each_unknown(e, binding, ast->select.then);
        each_unknown(e, binding, ast->select.otherwise);
        break;
    case AST_CALL:
        for (size_t i = 0; i < ast->call.count; i++) each_unknown(e, binding, ast->call.args[i]);
        break;
    case AST_SUBSCRIPT:
        for (size_t i = 0; i < ast->subscript.count; i++)
            each_unknown(e, binding, ast->subscript.subs[i]);
        break;
    case AST_ERROR_EXPR:
    case AST_INTEGER:
    case AST_FLOAT:
    case AST_BOOL:
    case AST_MEMBER:
    case AST_REDUCE:
    case AST_OLD:
    case AST_ACQUIRE:
    case AST_CURSOR:
    case AST_TRY: break;
    }
}

static bool has_stray(Elab *e, const AstExpr *value) {
    Walk stray = {.e = e};
    if (value) look(&stray, value);
    return stray.found && stray.found->kind == AST_NAME;
}

void elab_bind_indexes(Elab *e, const AstStmt *ast) {
    const AstExpr *target = ast->assign.target;
    if (target->kind != AST_SUBSCRIPT) return;
    Binding binding = {ast, bind_index};
    each_unknown(e, &binding, target);
    e->space->bound = e->space->count;
    /* `Y[t*T + i] = s.x[j]`: an index of the target without a range and another one on the right
     * are one error, which is reported at `j`. */
    binding.found = has_stray(e, ast->assign.value) ? bind_poison : report_rest;
    each_unknown(e, &binding, target);
}
