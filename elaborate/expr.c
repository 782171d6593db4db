/* Expressions: resolves names, types operators. Every function returns a value, X_POISON after
 * an error. */
#include "elaborate/private.h"

#include <string.h>

/* ---- operators ------------------------------------------------------------------------------- */

static const char *const binary_text[] = {
    [OP_ADD] = "+", [OP_SUB] = "-",  [OP_MUL] = "*", [OP_DIV] = "/", [OP_MOD] = "%",
    [OP_EQ] = "==", [OP_NE] = "!=",  [OP_LT] = "<",  [OP_LE] = "<=", [OP_GT] = ">",
    [OP_GE] = ">=", [OP_AND] = "&&", [OP_OR] = "||"};

static Flex least(Flex a, Flex b) { return a < b ? a : b; }

static Val make_logic(Elab *e, BinaryOp op, Val a, Val b, Span span) {
    a = elab_condition(e, a), b = elab_condition(e, b);
    if (elab_is_poison(a) || elab_is_poison(b)) return elab_poison(e, span);
    Val folded;
    if (elab_fold_binary(e, op, a, b, span, &folded)) return folded;
    Expr *x = elab_node(e, X_BINARY, E_BOOL, span);
    x->binary.op = op, x->binary.left = a.x, x->binary.right = b.x;
    expr_derive(e->role, x);
    return (Val){x, FLEX_NONE};
}

static bool bools_refused(Elab *e, BinaryOp op, Val a, Val b) {
    if (a.x->type != E_BOOL || op == OP_EQ || op == OP_NE) return false;
    Diag *diag = elab_error(e, P0107, a.x->span, "`%s` between bools", binary_text[op]);
    LABEL(e, diag, b.x->span, "this is a bool as well");
    HELP(e, diag, "use `&&`, `||`, `==` or `!=` for bools");
    return true;
}

Val elab_make_binary(Elab *e, BinaryOp op, Val a, Val b, Span span, Span op_span) {
    if (op == OP_AND || op == OP_OR) return make_logic(e, op, a, b, span);
    if (!elab_unify(e, &a, &b, op_span, binary_text[op]) || bools_refused(e, op, a, b))
        return elab_poison(e, span);
    bool compares = op >= OP_EQ && op <= OP_GE;
    if (op == OP_MOD && a.x->type == E_F32) {
        Diag *diag = elab_error(e, P0104, op_span, "`%%` of a float");
        LABEL(e, diag, a.x->span, "this is f32");
        return elab_poison(e, span);
    }
    Val folded;
    if (elab_fold_binary(e, op, a, b, span, &folded)) return folded;
    Flex flex = a.x->type == E_F32 ? FLEX_NONE : least(a.flex, b.flex);
    Expr *x = elab_node(e, X_BINARY, compares ? E_BOOL : a.x->type, span);
    x->binary.op = op;
    x->binary.left = elab_settled(e, a), x->binary.right = elab_settled(e, b);
    x->binary.accuracy = e->exact && a.x->type == E_F32 ? ACCURACY_EXACT : ACCURACY_FAST;
    expr_derive(e->role, x);
    return (Val){x, compares ? FLEX_NONE : flex};
}

BinaryOp elab_compound_op(AstAssignOp op) {
    static const BinaryOp ops[] = {[AST_SET_ADD] = OP_ADD,
                                   [AST_SET_SUB] = OP_SUB,
                                   [AST_SET_MUL] = OP_MUL,
                                   [AST_SET_DIV] = OP_DIV};
    return ops[op];
}

Val elab_make_unary(Elab *e, UnaryOp op, Val a, Span span) {
    a = op == OP_NOT ? elab_condition(e, a) : elab_operand(e, a);
    if (elab_is_poison(a)) return a;
    if (op == OP_NEG && a.x->type == E_BOOL) {
        elab_error(e, P0107, a.x->span, "`-` of a bool");
        return elab_poison(e, span);
    }
    if (op == OP_NEG && element_rows[a.x->type].kind == ELEMENT_UNSIGNED) {
        Diag *diag = elab_error(e, P0104, a.x->span, "`-` of an unsigned value");
        HELP(e, diag, "cast it: `-%s(%s)`", a.x->type == E_U64 ? "i64" : "i32",
             elab_text_of(e, a.x->span));
        return elab_poison(e, span);
    }
    Val folded;
    if (elab_fold_unary(e, op, a, span, &folded)) return folded;
    Expr *x = elab_node(e, X_UNARY, a.x->type, span);
    x->unary.op = op, x->unary.operand = a.x;
    expr_derive(e->role, x);
    return (Val){x, a.flex};
}

Val elab_make_select(Elab *e, Val c, Val a, Val b, Span span) {
    c = elab_condition(e, c);
    /* Two narrow values of one type keep it, so that a masked copy is a copy */
    bool same_narrow = a.x->type == b.x->type && elab_is_narrow(a.x->type);
    if (!same_narrow && !elab_unify(e, &a, &b, span, "?:")) return elab_poison(e, span);
    if (elab_is_poison(c) || elab_is_poison(a) || elab_is_poison(b)) return elab_poison(e, span);
    if (elab_is_const(c.x)) {
        Val chosen = c.x->constant.integer ? a : b;
        chosen.flex = least(a.flex, b.flex);
        return chosen;
    }
    Expr *x = elab_node(e, X_SELECT, a.x->type, span);
    x->select.condition = c.x;
    x->select.then = elab_settled(e, a), x->select.otherwise = elab_settled(e, b);
    expr_derive(e->role, x);
    return (Val){x, a.x->type == E_F32 ? FLEX_NONE : least(a.flex, b.flex)};
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_value_name(const Name *name) {
    return name->kind == NAME_CONST || name->kind == NAME_SYMBOL || name->kind == NAME_PARAM ||
           name->kind == NAME_LOCAL || name->kind == NAME_INDEX || name->kind == NAME_VALUE ||
           name->kind == NAME_TILE || name->kind == NAME_LET;
}

static const Axis *axis_named(const Elab *e, const char *name) {
    for (size_t i = 0; i < e->prog->axes.count; i++)
        if (e->prog->axes.items[i].name == name) return &e->prog->axes.items[i];
    return NULL;
}

/* "for (m, n) in grid", for a help text */
static const char *grid_text(Elab *e) {
    Str text = str_new(e->arena);
    size_t count = e->prog->axes.count;
    str_add(&text, count == 1 ? "for " : "for (");
    for (size_t i = 0; i < count; i++)
        str_printf(&text, "%s%s", i ? ", " : "", e->prog->axes.items[i].name);
    str_add(&text, count == 1 ? " in grid" : ") in grid");
    return text.text;
}

static Val unknown_name(Elab *e, const char *name, Span span) {
    const Axis *axis = axis_named(e, name);
    if (axis && (e->place == PLACE_ROLE || e->place == PLACE_CLAIM)) {
        Diag *diag = elab_error(e, P0100, span, "axis `%s` is not available here", name);
        LABEL(e, diag, axis->span, "declared as an axis of the grid");
        if (e->place == PLACE_ROLE)
            HELP(e, diag, "loop over the grid: `%s { .. }`", grid_text(e));
        else
            NOTE(e, diag, "`ensures` can use only parameters, extents, statics and constants");
        return elab_poison(e, span);
    }
    if (!e->bare_subscript && elab_scope_find(e->unknown, name)) return elab_poison(e, span);
    const char *near = elab_suggest_name(e, name, is_value_name);
    if (e->target_faulty && !near) return elab_poison(e, span);
    if (e->bare_subscript && e->has_target && !near) {
        Diag *diag = elab_error(e, P0118, span, "`%s` is not an index of the target", name);
        NOTE(e, diag,
             "an index must appear in a subscript of the target, or be declared by a reduction");
        HELP(e, diag, "to reduce over it, write `sum[%s] ..`", name);
        return elab_poison(e, span);
    }
    /* each statement binds its own indexes */
    if (!e->bare_subscript) elab_scope_bind(e, e->unknown, NAME_POISON, name, span, 0);
    Diag *diag = elab_error(e, P0100, span, "unknown name `%s`", name);
    if (elab_help_name(e, diag, name, near)) return elab_poison(e, span);
    if (e->scalar && e->in_subscript)
        HELP(e, diag, "`%s` is one value; declare a tile: `let %s[%s] = .. for %s in 0 .. n;`",
             e->scalar, e->scalar, name, name);
    else if (e->bare_subscript)
        NOTE(e, diag,
             "an index must appear in a subscript of the target, or be declared by a reduction "
             "such as `sum[%s]`",
             name);
    return elab_poison(e, span);
}

static Val not_here(Elab *e, const Name *name, Span span, const char *what) {
    if (e->place == PLACE_CONST) {
        Diag *diag = elab_error(e, P0110, span, "`%s` is not a constant", name->text);
        LABEL(e, diag, name->span, "%s", what);
        if (name->kind == NAME_SYMBOL && e->prog->symbols.items[name->index].is_extent) {
            if (strcmp(e->place_words, "the range of an index") == 0)
                HELP(e, diag, "remove the range: a tensor gives its extent to an index");
            HELP(e, diag, "write `static %s = ..;` in the kernel to fix it at compile time",
                 name->text);
        }
        return elab_poison(e, span);
    }
    Diag *diag =
        elab_error(e, P0144, span, "`%s` cannot be used in %s", name->text, e->place_words);
    LABEL(e, diag, name->span, "%s", what);
    return elab_poison(e, span);
}

static Val whole_tile(Elab *e, const Name *name, int rank, Span span) {
    static const char letters[] = "ijklm";
    Diag *diag = elab_error(e, P0114, span, "`%s` is a whole tile, not a value", name->text);
    LABEL(e, diag, name->span, "declared here");
    Str text = str_new(e->arena);
    str_printf(&text, "%s[", name->text);
    for (int i = 0; i < rank && i < 5; i++) str_printf(&text, "%s%c", i ? ", " : "", letters[i]);
    HELP(e, diag, "use its elements: `%s]`", text.text);
    return elab_poison(e, span);
}

static Val symbol_value(Elab *e, const Name *name, Span span) {
    const Symbol *symbol = &e->prog->symbols.items[name->index];
    if (e->place == PLACE_CONST)
        return not_here(e, name, span, symbol->is_extent ? "known only at launch" : "a parameter");
    Element type = symbol->is_extent ? E_I32 : e->prog->params.items[symbol->param].type;
    Expr *x = elab_node(e, X_SYMBOL, type, span);
    x->index = name->index;
    return (Val){x, symbol->is_extent ? FLEX_ANY : FLEX_NONE};
}

static Val param_value(Elab *e, const Name *name, Span span) {
    const Param *param = &e->prog->params.items[name->index];
    if (param->is_tensor) return whole_tile(e, name, param->rank, span);
    if (e->place == PLACE_CONST || (e->place == PLACE_GRID && !e->requiring) ||
        e->place == PLACE_EXAMPLE)
        return not_here(e, name, span, "a floating point parameter");
    Expr *x = elab_node(e, X_PARAM, E_F32, span);
    x->index = name->index;
    return (Val){x, FLEX_NONE};
}

static Val axis_value(Elab *e, const Name *name, Span span) {
    if (e->place != PLACE_RANGE) return not_here(e, name, span, "an axis of the grid");
    Expr *x = elab_node(e, X_AXIS, E_I32, span);
    x->index = name->index;
    e->axes_used |= (uint32_t)1 << name->index;
    return (Val){x, FLEX_INT};
}

/* A range as a number is the count of its iterations; in its own `where` it is the position. */
static Val domain_value(Elab *e, const Name *name, Span span) {
    if (e->place != PLACE_RANGE) {
        Diag *diag = elab_error(e, P0144, span, "range `%s` is not a value", name->text);
        LABEL(e, diag, name->span, "declared here");
        HELP(e, diag, "loop over it: `for i in %s { .. }`", name->text);
        return elab_poison(e, span);
    }
    if (e->domain == name->index && e->domain_where)
        return (Val){elab_make_index(e, 0, span), FLEX_INT};
    elab_domain_ready(e, name->index, span);
    const Domain *domain = &e->prog->domains.items[name->index];
    if (!domain->lo || domain->lo->kind == X_POISON || domain->hi->kind == X_POISON)
        return elab_poison(e, span);
    if (domain->where) return not_here(e, name, span, "its `where` makes its length unknown");
    e->axes_used |= e->domain_axes[name->index];
    Val count = {domain->hi, FLEX_INT}, first = {domain->lo, FLEX_INT};
    bool from_zero = elab_is_const(first.x) && first.x->constant.integer == 0;
    if (!from_zero) count = elab_make_binary(e, OP_SUB, count, first, span, span);
    Val args[2] = {count, elab_val_integer(e, 0, span)};
    return elab_make_call(e, IN_max, args, 2, span);
}

static Val let_value(Elab *e, const Name *name, Span span) {
    const Let *let = &e->prog->lets.items[name->index];
    if (let->rank > 0) return whole_tile(e, name, let->rank, span);
    if (let->value->kind == X_POISON) return elab_poison(e, span);
    Access *access = NEW(e->nodes, Access);
    *access = (Access){.space = SPACE_LET, .object = name->index, .type = let->type, .span = span};
    return (Val){elab_make_read(e, access, span), FLEX_NONE};
}

static Val local_value(Elab *e, const Name *name, Span span) {
    const Local *local = &e->role->locals.items[name->index];
    bool flexible = local->kind == LOCAL_LOOP || local->kind == LOCAL_AXIS;
    return (Val){elab_make_local(e, name->index, span), flexible ? FLEX_INT : FLEX_NONE};
}

static Val word_value(Elab *e, const char *name, Span span) {
    if (name == e->word_inf) return elab_val_number(e, (double)__builtin_inff(), span);
    if (name == e->word_nan) return elab_val_number(e, (double)__builtin_nanf(""), span);
    if (!e->role) {
        Diag *diag = elab_error(e, P0144, span, "`rank` cannot be used in %s", e->place_words);
        NOTE(e, diag, "`rank` is the number of an instance in its role");
        return elab_poison(e, span);
    }
    if (e->role->instances <= 1) return (Val){elab_make_integer(e, E_I32, 0, span), FLEX_INT};
    Expr *x = elab_node(e, X_RANK, E_I32, span);
    expr_derive(e->role, x);
    return (Val){x, FLEX_INT};
}

Val elab_resolve_name(Elab *e, const char *text, Span span) {
    if (!text) return elab_poison(e, span);
    if (elab_is_word(e, text)) return word_value(e, text, span);
    if (elab_is_thread_word(e, text)) return elab_thread_value(e, text, span);
    const Name *name = elab_scope_find(e->scope, text);
    if (!name) return unknown_name(e, text, span);
    switch (name->kind) {
    case NAME_POISON: break;
    case NAME_CONST: return elab_decl_value(e, name->index, span);
    case NAME_SYMBOL: return symbol_value(e, name, span);
    case NAME_PARAM: return param_value(e, name, span);
    case NAME_AXIS: return axis_value(e, name, span);
    case NAME_DOMAIN: return domain_value(e, name, span);
    case NAME_LOCAL: return local_value(e, name, span);
    case NAME_TILE:
        return name->object->poison ? elab_poison(e, span)
                                    : whole_tile(e, name, name->object->rank, span);
    case NAME_INDEX: return elab_index_value(e, name, span);
    case NAME_VALUE: return name->value;
    case NAME_LET: return let_value(e, name, span);
    case NAME_HINT: elab_refuse_hint(e, span, name); break;
    case NAME_HANDLE: {
        Diag *diag = elab_error(e, P0114, span, "`%s` is a stage, not a value", text);
        LABEL(e, diag, name->span, "declared here");
        HELP(e, diag, "read an element of one of its fields: `%s.field[i]`", text);
        break;
    }
    }
    return elab_poison(e, span);
}

/* ---- traversal ------------------------------------------------------------------------------- */

static const BinaryOp binary_ops[] = {
    [AST_ADD] = OP_ADD, [AST_SUB] = OP_SUB, [AST_MUL] = OP_MUL, [AST_DIV] = OP_DIV,
    [AST_MOD] = OP_MOD, [AST_EQ] = OP_EQ,   [AST_NE] = OP_NE,   [AST_LT] = OP_LT,
    [AST_LE] = OP_LE,   [AST_GT] = OP_GT,   [AST_GE] = OP_GE,   [AST_AND] = OP_AND,
    [AST_OR] = OP_OR};

static Val reduce(Elab *e, const AstExpr *ast) {
    if (!e->space) {
        Diag *diag = elab_error(e, P0156, ast->span, "a reduction cannot be used here");
        HELP(e, diag, "assign it to a name first: `let r = %s;`", elab_text_of(e, ast->span));
        return elab_poison(e, ast->span);
    }
    size_t mark = elab_scope_mark(e->scope);
    int first = e->space->count, count = 0;
    bool fine = true;
    for (size_t i = 0; i < ast->reduce.indexes->count; i++) {
        AstName name = ast->reduce.indexes->items[i];
        const Name *old = name.text ? elab_scope_find(e->scope, name.text) : NULL;
        if (old || (name.text && elab_is_word(e, name.text))) {
            Diag *diag = elab_error(e, P0119, name.span,
                                    "index `%s` of a reduction is already declared", name.text);
            if (old) LABEL(e, diag, old->span, "`%s` first declared here", name.text);
            HELP(e, diag, "choose another name for the index");
            fine = false;
            continue;
        }
        int index = name.text ? elab_add_index(e, name.text, name.span) : -1;
        if (index < 0)
            fine = false;
        else
            count++;
    }
    Val body = fine ? elab_operand(e, elab_expr(e, ast->reduce.body)) : elab_poison(e, ast->span);
    elab_scope_undo(e->scope, mark);
    if (elab_is_poison(body)) return body;
    if (body.x->type == E_BOOL) {
        Diag *diag = elab_error(e, P0107, body.x->span, "a reduction needs numbers, not bools");
        HELP(e, diag, "write `%s ? 1 : 0`", elab_text_of(e, body.x->span));
        return elab_poison(e, ast->span);
    }
    Expr *x = elab_node(e, X_REDUCE, body.x->type, ast->span);
    static const ReduceOp ops[] = {
        [AST_SUM] = REDUCE_SUM, [AST_MAX] = REDUCE_MAX, [AST_MIN] = REDUCE_MIN};
    x->reduce.op = ops[ast->reduce.op];
    x->reduce.first = first, x->reduce.count = count, x->reduce.body = elab_settled(e, body);
    expr_derive(e->role, x);
    return (Val){x, FLEX_NONE};
}

static Val read_value(Elab *e, const AstExpr *ast) {
    Access *access = elab_access_of(e, ast, false);
    if (!access) return elab_poison(e, ast->span);
    return (Val){elab_make_read(e, access, ast->span), FLEX_NONE};
}

static Val member_value(Elab *e, const AstExpr *ast) {
    Object object;
    Val value;
    if (elab_stage_member(e, ast, &value)) return value;
    if (!elab_object_of(e, ast, &object, false)) return elab_poison(e, ast->span);
    if (object.rank == 0) return read_value(e, ast);
    Diag *diag = elab_error(e, P0114, ast->span, "`%s` is a whole tile, not a value",
                            elab_text_of(e, ast->span));
    HELP(e, diag, "use its elements: `%s[i]`", elab_text_of(e, ast->span));
    return elab_poison(e, ast->span);
}

/* Constants are of 64 bits with a sign: above, a literal is a value of u64. */
static Val integer_literal(Elab *e, const AstExpr *ast) {
    if (ast->integer <= INT64_MAX) return elab_val_integer(e, (int64_t)ast->integer, ast->span);
    if (e->place == PLACE_ROLE || e->place == PLACE_CLAIM || e->place == PLACE_EXAMPLE)
        return (Val){elab_make_unsigned(e, ast->integer, ast->span), FLEX_NONE};
    elab_error(e, P0109, ast->span, "the constant %llu does not fit i64",
               (unsigned long long)ast->integer);
    return elab_poison(e, ast->span);
}

static Val unary(Elab *e, const AstExpr *ast) {
    const AstExpr *operand = ast->unary.operand;
    if (ast->unary.op == AST_BIT_NOT)
        return elab_make_complement(e, elab_expr(e, operand), ast->span);
    bool negates = ast->unary.op == AST_NEG;
    const uint64_t most = UINT64_C(1) << 63;
    if (negates && operand->kind == AST_INTEGER && operand->integer == most)
        return elab_val_integer(e, INT64_MIN, ast->span);
    if (negates && operand->kind == AST_INTEGER && operand->integer > most) {
        elab_error(e, P0109, ast->span, "the constant -%llu does not fit i64",
                   (unsigned long long)operand->integer);
        return elab_poison(e, ast->span);
    }
    return elab_make_unary(e, negates ? OP_NEG : OP_NOT, elab_expr(e, operand), ast->span);
}

static const Intrinsic bit_ops[] = {[AST_BIT_AND] = IN_bit_and,
                                    [AST_BIT_OR] = IN_bit_or,
                                    [AST_BIT_XOR] = IN_bit_xor,
                                    [AST_SHL] = IN_shl,
                                    [AST_SHR] = IN_shr};

static bool is_stage(Elab *e, const AstExpr *ast) {
    const Name *name =
        ast->kind == AST_NAME && ast->name ? elab_scope_find(e->scope, ast->name) : NULL;
    return ast->kind == AST_ACQUIRE || ast->kind == AST_TRY ||
           (name && (name->kind == NAME_HANDLE || name->kind == NAME_HINT));
}

/* Two operands; if both are stages, which are no values, only one is refused. */
static void operands(Elab *e, const AstExpr *left, const AstExpr *right, Val *a, Val *b) {
    *a = elab_expr(e, left);
    *b =
        is_stage(e, left) && is_stage(e, right) ? elab_poison(e, right->span) : elab_expr(e, right);
}

/* `1 / 2` is 0, also where a float is needed */
static void warn_of_quotient(Elab *e, const AstExpr *ast) {
    const AstExpr *a = ast->binary.left, *b = ast->binary.right;
    if (ast->binary.op != AST_DIV || a->kind != AST_INTEGER || b->kind != AST_INTEGER ||
        b->integer == 0 || a->integer % b->integer == 0)
        return;
    Diag *diag =
        elab_error(e, P0174, ast->span, "`%s` of whole numbers is %llu", elab_text_of(e, ast->span),
                   (unsigned long long)(a->integer / b->integer));
    HELP(e, diag, "write `%s.0 / %s.0` for the quotient of floats, or the whole number",
         elab_text_of(e, a->span), elab_text_of(e, b->span));
}

static Val walk(Elab *e, const AstExpr *ast) {
    Val a, b;
    switch (ast->kind) {
    case AST_ERROR_EXPR: break;
    case AST_INTEGER: return integer_literal(e, ast);
    case AST_FLOAT: return elab_val_number(e, ast->number, ast->span);
    case AST_BOOL: return elab_val_bool(e, ast->truth, ast->span);
    case AST_NAME: return elab_resolve_name(e, ast->name, ast->span);
    case AST_UNARY: return unary(e, ast);
    case AST_BINARY:
        operands(e, ast->binary.left, ast->binary.right, &a, &b);
        if (ast->binary.op >= AST_BIT_AND)
            return elab_make_bits(e, bit_ops[ast->binary.op], a, b, ast->span, ast_binary_op(ast));
        warn_of_quotient(e, ast);
        return elab_make_binary(e, binary_ops[ast->binary.op], a, b, ast->span, ast_binary_op(ast));
    case AST_SELECT: {
        Val c = elab_expr(e, ast->select.condition);
        operands(e, ast->select.then, ast->select.otherwise, &a, &b);
        return elab_make_select(e, c, a, b, ast->span);
    }
    case AST_CALL: return elab_call(e, ast);
    case AST_SUBSCRIPT:
        if (ast->subscript.base->kind == AST_CURSOR) return elab_cursor_value(e, ast);
        return read_value(e, ast);
    case AST_OLD: return read_value(e, ast);
    case AST_MEMBER: return member_value(e, ast);
    case AST_CURSOR: return elab_cursor_value(e, ast);
    case AST_REDUCE: return reduce(e, ast);
    case AST_ACQUIRE: {
        Diag *diag = elab_error(e, P0154, ast->span, "an acquire inside an expression");
        PRIMARY(e, diag, "a stage is acquired by a statement");
        HELP(e, diag, "write `let s = %s;` before this, and `release s;` after its last use",
             elab_text_of(e, ast->span));
        if (e->role) e->role->forgotten = true;
        break;
    }
    case AST_TRY: {
        Diag *diag = elab_error(e, P0154, ast->span, "a hint is not a value");
        HELP(e, diag, "write `let ready = %s;`, and pass it to the acquire: `.. if ready`",
             elab_text_of(e, ast->span));
        break;
    }
    }
    return elab_poison(e, ast->span);
}

Val elab_expr(Elab *e, const AstExpr *ast) {
    bool bare = e->bare_subscript;
    if (ast->kind != AST_NAME) e->bare_subscript = false;
    Val v = walk(e, ast);
    e->bare_subscript = bare;
    return v;
}

Val elab_expr_at(Elab *e, const AstExpr *ast, Place place, const char *words) {
    Place old = e->place;
    const char *old_words = e->place_words;
    e->place = place, e->place_words = words;
    Val v = elab_expr(e, ast);
    e->place = old, e->place_words = old_words;
    return v;
}

bool elab_constant_integer(Elab *e, const AstExpr *ast, const char *what, int64_t low, int64_t high,
                           int64_t *out) {
    Val v = elab_operand(e, elab_expr(e, ast));
    if (elab_is_poison(v)) return false;
    if (!elab_is_const(v.x)) {
        Diag *diag = elab_error(e, P0110, ast->span, "%s is not a constant", what);
        if (strcmp(what, "the extent of a tile") == 0 && v.x->kind == X_SYMBOL)
            HELP(e, diag,
                 "loop over parts of a constant extent: `for d in 0 .. ceil(%s, T) { .. }`",
                 ast->name);
        PRIMARY(e, diag, "its value is known only at run time");
        return false;
    }
    if (!elab_is_integer(v.x->type)) {
        elab_error(e, P0104, ast->span, "%s must be an integer, but this is %s", what,
                   elab_type_name(v.x->type));
        return false;
    }
    *out = v.x->constant.integer;
    if (*out >= low && *out <= high) return true;
    if (high == INT32_MAX)
        elab_error(e, P0111, ast->span, "%s must be at least %lld, but is %lld", what,
                   (long long)low, (long long)*out);
    else
        elab_error(e, P0111, ast->span, "%s must be %lld to %lld, but is %lld", what,
                   (long long)low, (long long)high, (long long)*out);
    return false;
}
