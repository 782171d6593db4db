/* Parameters: tensors with their extents, scalars. An otherwise unbound name that is alone an
 * extent is a symbol, known at launch; equal names are one symbol; a constant or static of that
 * name fixes it. A name that no axis has alone is a symbol too, if some extent is linear in it and
 * has no other name but constants: a launch solves that one. Other extents are formulas of symbols
 * and constants: a launch compares them with the data. */
#include "elaborate/items.h"

static bool tensor_type(Elab *e, const AstParam *ast, Param *param) {
    if (!elab_element_type(e, ast->type, &param->type)) return false;
    if (param->type != E_BOOL && param->type != E_TF32) return true;
    Diag *diag = elab_error(e, P0131, ast->type->name.span, "a tensor cannot be %s",
                            elab_type_name(param->type));
    if (param->type == E_BOOL)
        HELP(e, diag, "declare it `u8`, and compare: `Mask[i] != 0`");
    else
        HELP(e, diag, "declare it f32; only fields of pipes can be tf32");
    return false;
}

static Expr *symbol_expr(Elab *e, int symbol, Span span) {
    Expr *x = elab_node(e, X_SYMBOL, E_I32, span);
    x->index = symbol;
    return x;
}

static int add_symbol(Elab *e, AstName name, bool is_extent, int param) {
    vec_push(
        e->arena, &e->prog->symbols,
        (Symbol){.name = name.text, .span = name.span, .is_extent = is_extent, .param = param});
    int symbol = (int)e->prog->symbols.count - 1;
    elab_scope_bind(e, e->outer, NAME_SYMBOL, name.text, name.span, symbol);
    return symbol;
}

/* The first name in a formula that neither a constant nor a parameter determines; NULL: none */
static const AstExpr *undetermined(Elab *e, const AstExpr *ast) {
    const AstExpr *found = NULL;
    switch (ast->kind) {
    case AST_NAME:
        return ast->name && !elab_is_word(e, ast->name) && !elab_scope_find(e->outer, ast->name)
                   ? ast
                   : NULL;
    case AST_UNARY: return undetermined(e, ast->unary.operand);
    case AST_BINARY:
        found = undetermined(e, ast->binary.left);
        return found ? found : undetermined(e, ast->binary.right);
    case AST_SELECT:
        found = undetermined(e, ast->select.condition);
        if (!found) found = undetermined(e, ast->select.then);
        return found ? found : undetermined(e, ast->select.otherwise);
    case AST_CALL:
        for (size_t i = 0; i < ast->call.count && !found; i++)
            found = undetermined(e, ast->call.args[i]);
        return found;
    case AST_ERROR_EXPR:
    case AST_INTEGER:
    case AST_FLOAT:
    case AST_BOOL:
    case AST_SUBSCRIPT:
    case AST_MEMBER:
    case AST_REDUCE:
    case AST_OLD:
    case AST_ACQUIRE:
    case AST_CURSOR:
    case AST_TRY: break;
    }
    return NULL;
}

/* True if it is a number when the kernel is compiled */
static bool is_constant(const Elab *e, const AstExpr *ast) {
    const Name *name;
    switch (ast->kind) {
    case AST_INTEGER:
    case AST_BOOL: return true;
    case AST_NAME:
        name = ast->name ? elab_scope_find(e->outer, ast->name) : NULL;
        return name ? name->kind == NAME_CONST : ast->name && elab_is_word(e, ast->name);
    case AST_UNARY: return is_constant(e, ast->unary.operand);
    case AST_BINARY: return is_constant(e, ast->binary.left) && is_constant(e, ast->binary.right);
    case AST_SELECT:
        return is_constant(e, ast->select.condition) && is_constant(e, ast->select.then) &&
               is_constant(e, ast->select.otherwise);
    case AST_CALL:
        for (size_t i = 0; i < ast->call.count; i++)
            if (!is_constant(e, ast->call.args[i])) return false;
        return true;
    case AST_ERROR_EXPR:
    case AST_FLOAT:
    case AST_SUBSCRIPT:
    case AST_MEMBER:
    case AST_REDUCE:
    case AST_OLD:
    case AST_ACQUIRE:
    case AST_CURSOR:
    case AST_TRY: break;
    }
    return false;
}

/* The unknown name for which a launch can solve the formula: it stands there once, under `+`, `-`
 * and `*` with constants. NULL: there is none */
static const AstExpr *solvable(Elab *e, const AstExpr *ast) {
    if (ast->kind == AST_NAME) return undetermined(e, ast);
    if (ast->kind == AST_UNARY)
        return ast->unary.op == AST_NEG ? solvable(e, ast->unary.operand) : NULL;
    if (ast->kind != AST_BINARY ||
        (ast->binary.op != AST_ADD && ast->binary.op != AST_SUB && ast->binary.op != AST_MUL))
        return NULL;
    if (is_constant(e, ast->binary.right)) return solvable(e, ast->binary.left);
    return is_constant(e, ast->binary.left) ? solvable(e, ast->binary.right) : NULL;
}

typedef struct Line { /* times * symbol + plus */
    int64_t times, plus;
} Line;

/* False: it is not linear in the symbol, or a number is too large */
static bool line_of(const Expr *x, int symbol, Line *out) {
    Line a, b;
    if (x->kind == X_CONST) {
        *out = (Line){0, x->constant.integer};
    } else if (x->kind == X_SYMBOL) {
        *out = (Line){1, 0};
        return x->index == symbol;
    } else if (x->kind == X_UNARY && x->unary.op == OP_NEG) {
        if (!line_of(x->unary.operand, symbol, &a)) return false;
        *out = (Line){-a.times, -a.plus};
    } else if (x->kind == X_BINARY && line_of(x->binary.left, symbol, &a) &&
               line_of(x->binary.right, symbol, &b)) {
        int64_t by = a.times == 0 ? a.plus : b.plus;
        Line of = a.times == 0 ? b : a;
        int sign = x->binary.op == OP_SUB ? -1 : 1;
        if (x->binary.op == OP_ADD || x->binary.op == OP_SUB)
            *out = (Line){a.times + sign * b.times, a.plus + sign * b.plus};
        else if (x->binary.op == OP_MUL && (a.times == 0 || b.times == 0))
            *out = (Line){of.times * by, of.plus * by};
        else
            return false;
    } else {
        return false;
    }
    return out->times >= -INT32_MAX && out->times <= INT32_MAX && out->plus >= -INT32_MAX &&
           out->plus <= INT32_MAX;
}

static Expr *named_extent(Elab *e, const AstExpr *ast, int param) {
    AstName name = {ast->name, ast->span};
    Name *old = elab_scope_find(e->outer, name.text);
    if (old && old->kind == NAME_SYMBOL && e->prog->symbols.items[old->index].is_extent)
        return symbol_expr(e, old->index, ast->span);
    if (!old && !elab_is_word(e, name.text))
        return symbol_expr(e, add_symbol(e, name, true, param), ast->span);
    if (old && (old->kind == NAME_PARAM || old->kind == NAME_SYMBOL)) {
        Diag *diag = elab_error(e, P0101, ast->span,
                                "`%s` is a parameter and cannot name an extent", name.text);
        LABEL(e, diag, old->span, "declared here");
        HELP(e, diag, "remove the parameter: the name of an extent can be used as a value");
        old->kind = NAME_POISON; /* reported once */
        return NULL;
    }
    int64_t value;
    if (!elab_constant_integer(e, ast, "an extent", 1, EXTENT_MOST, &value)) return NULL;
    return elab_make_integer(e, E_I32, value, ast->span);
}

/* True if no launch gives it a negative value. Extents are not negative, scalars may be. */
static bool never_negative(const Elab *e, const Expr *x) {
    switch (x->kind) {
    case X_CONST: return x->constant.integer >= 0;
    case X_SYMBOL: return e->prog->symbols.items[x->index].is_extent;
    case X_BINARY:
        return x->binary.op != OP_SUB && never_negative(e, x->binary.left) &&
               never_negative(e, x->binary.right);
    case X_CALL:
        for (int i = 0; i < x->call.count; i++)
            if (!never_negative(e, x->call.args[i])) return false;
        return true;
    case X_SELECT:
        return never_negative(e, x->select.then) && never_negative(e, x->select.otherwise);
    case X_POISON:
    case X_PARAM:
    case X_AXIS:
    case X_LOCAL:
    case X_RANK:
    case X_INDEX:
    case X_READ:
    case X_UNARY:
    case X_CAST:
    case X_REDUCE:
    case X_SCAN: break;
    }
    return false;
}

static void find_cast(Expr *x, void *found) {
    if (x->kind == X_CAST) *(Expr **)found = x;
}

/* A launch computes with 64 bits and cuts nothing, so that a kernel must not either. */
static bool is_whole(Elab *e, Val v, Span span) {
    Expr *cast = NULL;
    expr_visit(e->arena, v.x, find_cast, &cast);
    if (v.x->type != E_I32)
        elab_error(e, P0104, span, "an extent must be i32, but this is %s",
                   elab_type_name(v.x->type));
    else if (cast)
        elab_error(e, P0104, cast->span, "a cast in the formula of an extent");
    return cast == NULL && v.x->type == E_I32;
}

static bool is_one(const Expr *x) { return elab_is_const(x) && x->constant.integer == 1; }

/* A factor that a static sets to 1 does not make another extent: `W: f32[HAS * D]`. */
static Expr *without_ones(Expr *x) {
    while (x->kind == X_BINARY && x->binary.op == OP_MUL) {
        if (is_one(x->binary.left))
            x = x->binary.right;
        else if (is_one(x->binary.right))
            x = x->binary.left;
        else
            break;
    }
    return x;
}

static void no_extent(Elab *e, Span name, const char *text, Span formula) {
    Diag *diag = elab_error(e, P0112, name, "no parameter determines `%s`", text);
    LABEL(e, diag, formula, "used in this formula of an extent");
    HELP(e, diag,
         "make `%s` alone an extent of some tensor, or with constants only, such as "
         "`2*%s + 1`; or declare it as a scalar parameter: `%s: i32`",
         text, text, text);
}

/* The extents that axis `axis` of parameter `index` solves. False: none, although it was to */
static bool solve(Elab *e, const Expr *x, const AstExpr *ast, int index, int axis) {
    for (size_t s = 0; s < e->prog->symbols.count; s++) {
        Symbol *symbol = &e->prog->symbols.items[s];
        Line line;
        if (!symbol->is_extent || !symbol->times || symbol->param != index || symbol->axis != axis)
            continue;
        if (!line_of(x, (int)s, &line) || line.times == 0) {
            no_extent(e, symbol->span, symbol->name, ast->span);
            return false;
        }
        symbol->times = (int)line.times;
        symbol->plus = (int)line.plus;
    }
    return true;
}

static Expr *formula_extent(Elab *e, const AstExpr *ast, const AstParam *param, int index,
                            int axis) {
    const AstExpr *unknown = undetermined(e, ast);
    if (unknown) {
        no_extent(e, unknown->span, unknown->name, ast->span);
        elab_scope_bind(e, e->outer, NAME_POISON, unknown->name, unknown->span, 0);
        return NULL;
    }
    Val v = elab_operand(e, elab_expr_at(e, ast, PLACE_GRID, "an extent"));
    int64_t value;
    if (elab_is_poison(v)) return NULL;
    if (elab_is_const(v.x))
        return elab_constant_integer(e, ast, "an extent", 1, EXTENT_MOST, &value)
                   ? elab_make_integer(e, E_I32, value, ast->span)
                   : NULL;
    if (!is_whole(e, v, ast->span)) return NULL;
    Expr *x = without_ones(v.x);
    if (!solve(e, x, ast, index, axis)) return NULL;
    if (never_negative(e, x)) return x;
    Expr *zero = elab_make_integer(e, E_I32, 0, ast->span);
    vec_push(e->arena, &e->prog->preconditions,
             ((Precondition){expr_binary(e->arena, OP_GE, x, zero, ast->span),
                             arena_printf(e->arena, "%s >= 0", elab_text_of(e, ast->span)),
                             arena_printf(e->arena, "it is an extent of `%s`", param->name.text),
                             NULL, ast->span, false, true, 0}));
    return x;
}

static Expr *extent(Elab *e, const AstParam *param, int index, int axis) {
    const AstExpr *ast = param->type->dims.items[axis];
    if (ast->kind == AST_NAME && ast->name) return named_extent(e, ast, index);
    return formula_extent(e, ast, param, index, axis);
}

static bool tensor(Elab *e, const AstParam *ast, Param *param, int index) {
    size_t rank = ast->type->dims.count;
    bool fine = tensor_type(e, ast, param);
    if (rank > PROG_MAX_RANK) {
        Diag *diag =
            elab_error(e, P0120, ast->type->span,
                       "a tensor has at most %d dimensions, but this has %zu", PROG_MAX_RANK, rank);
        HELP(e, diag, "merge adjacent dimensions");
        return false;
    }
    param->is_tensor = true;
    param->rank = (int)rank;
    static const ParamMode modes[] = {[AST_IN] = PARAM_IN,
                                      [AST_OUT] = PARAM_OUT,
                                      [AST_INOUT] = PARAM_INOUT,
                                      [AST_BORROW] = PARAM_IN};
    param->mode = modes[ast->mode];
    for (size_t i = 0; i < rank; i++) {
        param->extents[i] = extent(e, ast, index, (int)i);
        if (!param->extents[i])
            fine = false, param->extents[i] = elab_make_integer(e, E_I32, 1, ast->type->span);
    }
    return fine;
}

static bool scalar(Elab *e, const AstParam *ast, Param *param) {
    if (ast->mode == AST_OUT || ast->mode == AST_INOUT) {
        Diag *diag = elab_error(e, P0131, ast->mode_span, "a scalar parameter cannot be written");
        HELP(e, diag, "declare a tensor of one element: `%s: %s[1]`", ast->name.text,
             elab_text_of(e, ast->type->span));
        return false;
    }
    if (!elab_scalar_type(e, ast->type, &param->type)) return false;
    if (param->type != E_BOOL) return true;
    Diag *diag = elab_error(e, P0131, ast->type->span, "a parameter cannot be bool");
    HELP(e, diag, "use a `static`, or declare it i32 and test `%s != 0`", ast->name.text);
    return false;
}

static void one_param(Elab *e, const AstParam *ast, int index) {
    Param param = {.name = ast->name.text, .span = ast->name.span, .symbol = -1, .type = E_F32};
    bool fine = ast->name.text && ast->type;
    if (fine && ast->type->is_stage) {
        elab_error(e, P0131, ast->type->span, "a parameter of a kernel cannot be a stage");
        fine = false;
    } else if (ast->mode == AST_BORROW) {
        elab_refuse_word(e, ast->mode_span, "borrow");
        fine = false;
    } else if (fine) {
        fine = ast->type->dims.count ? tensor(e, ast, &param, index) : scalar(e, ast, &param);
    }
    if (!fine) e->broken = true;
    if (fine && !param.is_tensor && elab_is_integer(param.type))
        param.symbol = add_symbol(e, ast->name, false, index);
    else
        elab_scope_bind(e, e->outer, fine ? NAME_PARAM : NAME_POISON, ast->name.text,
                        ast->name.span, index);
    if (!param.name) param.name = "?";
    e->prog->params.items[index] = param;
}

static bool is_param(const AstParams *params, const char *name) {
    for (size_t i = 0; i < params->count; i++)
        if (params->items[i].name.text == name) return true;
    return false;
}

/* Names that are alone an extent, of all tensors: formulas of any tensor may use them. */
static void declare_names(Elab *e, const AstParams *params) {
    for (size_t i = 0; i < params->count; i++) {
        const AstType *type = params->items[i].type;
        for (size_t d = 0; type && d < type->dims.count && d < PROG_MAX_RANK; d++) {
            const AstExpr *dim = type->dims.items[d];
            if (dim->kind != AST_NAME || !dim->name || elab_is_word(e, dim->name) ||
                elab_scope_find(e->outer, dim->name) || is_param(params, dim->name))
                continue;
            add_symbol(e, (AstName){dim->name, dim->span}, true, (int)i);
        }
    }
}

/* Then names that an extent is linear in: times is set when the extent is elaborated. */
static void declare_solved(Elab *e, const AstParams *params) {
    for (size_t i = 0; i < params->count; i++) {
        const AstType *type = params->items[i].type;
        for (size_t d = 0; type && d < type->dims.count && d < PROG_MAX_RANK; d++) {
            const AstExpr *unknown = solvable(e, type->dims.items[d]);
            if (!unknown || is_param(params, unknown->name)) continue;
            int symbol = add_symbol(e, (AstName){unknown->name, unknown->span}, true, (int)i);
            e->prog->symbols.items[symbol].axis = (int)d;
            e->prog->symbols.items[symbol].times = 1;
        }
    }
}

/* Scalars first: for `n: i32` after `X: f32[n]` the scalar is the error. */
void elab_params_declare(Elab *e) {
    const AstParams *params = &e->kernel->kernel.params;
    for (size_t i = 0; i < params->count; i++)
        vec_push(e->arena, &e->prog->params, (Param){.name = "?", .symbol = -1, .type = E_F32});
    for (int tensors = 0; tensors < 2; tensors++) {
        if (tensors == 1) {
            declare_names(e, params);
            declare_solved(e, params);
        }
        for (size_t i = 0; i < params->count; i++) {
            const AstParam *ast = &params->items[i];
            bool is_tensor = ast->type && ast->type->dims.count;
            if (is_tensor == (tensors == 1)) one_param(e, ast, (int)i);
        }
    }
}
