/* Calls in expressions: casts, intrinsics by their rows, `exact`, and functions whose body is an
 * expression: lets and branches that end in `return`, substituted for the call with shared
 * arguments. */
#include "elaborate/private.h"
#include "prog/number.h"

#include <string.h>

#define MAX_STEPS 100000 /* most statements that inlining may create */

/* ---- intrinsics ------------------------------------------------------------------------------ */

static bool takes_integers(Intrinsic which) {
    return which == IN_abs || which == IN_min || which == IN_max || which == IN_ceil_div;
}

static Val no_exact_form(Elab *e, Intrinsic which, Span span) {
    const IntrinsicRow *row = &intrinsic_rows[which];
    Diag *diag = elab_error(e, P0129, span, "`%s` has no exact implementation", row->name);
    NOTE(e, diag, "its accuracy: %s", row->accuracy);
    HELP(e, diag, "move `%s` out of `exact(..)`", row->name);
    return elab_poison(e, span);
}

static bool float_args(Elab *e, Intrinsic which, Val *args, int count) {
    for (int i = 0; i < count; i++) {
        const char *what =
            arena_printf(e->arena, "an argument of `%s`", intrinsic_rows[which].name);
        if (elab_is_const(args[i].x) && args[i].x->type != E_BOOL && args[i].flex == FLEX_ANY) {
            if (args[i].x->type != E_F32)
                args[i] = elab_val_number(e, (double)args[i].x->constant.integer, args[i].x->span);
            continue; /* constants are folded in f64 */
        }
        args[i] = (Val){elab_coerce(e, args[i], E_F32, what), FLEX_NONE};
        if (elab_is_poison(args[i])) return false;
    }
    return true;
}

static bool integer_args(Elab *e, Intrinsic which, Val *args, int count, Span span) {
    for (int i = 0; i < count; i++) {
        if (elab_is_integer(args[i].x->type)) continue;
        Diag *diag =
            elab_error(e, P0104, args[i].x->span, "`ceil(a, b)` takes integers, but this is %s",
                       elab_type_name(args[i].x->type));
        HELP(e, diag, "write `ceil(x)` for a float");
        return false;
    }
    if (!elab_unify(e, &args[0], &args[1], span, intrinsic_rows[which].name)) return false;
    if (elab_is_const(args[1].x) && args[1].x->constant.integer <= 0) {
        if (args[1].x->constant.integer == 0)
            elab_error(e, P0108, args[1].x->span, "`ceil(a, b)` divides by a constant zero");
        else
            elab_error(e, P0111, args[1].x->span, "`ceil(a, b)` needs b > 0, but b is %lld",
                       (long long)args[1].x->constant.integer);
        return false;
    }
    return true;
}

/* abs, min, max of integers */
static bool same_args(Elab *e, Intrinsic which, Val *args, int count, Span span) {
    if (count == 2 && !elab_unify(e, &args[0], &args[1], span, intrinsic_rows[which].name))
        return false;
    if (args[0].x->type == E_BOOL) {
        elab_error(e, P0107, args[0].x->span, "`%s` of a bool", intrinsic_rows[which].name);
        return false;
    }
    return true;
}

/* Of integers it is known how max and min compare. */
static Val clamp_integers(Elab *e, Val *args, Span span) {
    for (int i = 1; i < 3; i++)
        if (!elab_unify(e, &args[0], &args[i], span, "clamp")) return elab_poison(e, span);
    Val least = elab_make_call(e, IN_max, args, 2, span), both[2] = {least, args[2]};
    return elab_make_call(e, IN_min, both, 2, span);
}

static bool are_integers(const Val *args, int count) {
    for (int i = 0; i < count; i++)
        if (!elab_is_integer(args[i].x->type)) return false;
    return true;
}

Val elab_make_call(Elab *e, Intrinsic which, Val *args, int count, Span span) {
    for (int i = 0; i < count; i++) {
        args[i] = elab_operand(e, args[i]);
        if (elab_is_poison(args[i])) return elab_poison(e, span);
    }
    if (which == IN_clamp && are_integers(args, count)) return clamp_integers(e, args, span);
    bool fine = which == IN_ceil_div    ? integer_args(e, which, args, count, span)
                : takes_integers(which) ? same_args(e, which, args, count, span)
                                        : float_args(e, which, args, count);
    if (!fine) return elab_poison(e, span);
    if (which == IN_abs && element_rows[args[0].x->type].kind == ELEMENT_UNSIGNED) return args[0];
    if (which == IN_isnan) return elab_make_binary(e, OP_NE, args[0], args[0], span, span);
    Val folded;
    if (elab_fold_call(e, which, args, count, span, &folded)) return folded;
    if (e->exact && args[0].x->type == E_F32 &&
        strcmp(intrinsic_rows[which].exact_accuracy, "refused") == 0)
        return no_exact_form(e, which, span);
    Expr *x = elab_node(e, X_CALL, args[0].x->type, span);
    x->call.which = which, x->call.count = count;
    Flex flex = args[0].flex;
    for (int i = 0; i < count; i++) {
        x->call.args[i] = elab_settled(e, args[i]);
        if (args[i].flex < flex) flex = args[i].flex;
    }
    x->call.accuracy = e->exact && x->type == E_F32 ? ACCURACY_EXACT : ACCURACY_FAST;
    expr_derive(e->role, x);
    return (Val){x, x->type == E_F32 ? FLEX_NONE : flex};
}

static bool arity(Elab *e, const AstExpr *ast, size_t wanted) {
    size_t given = ast->call.count;
    const char *name = ast->call.callee.text;
    if (given == wanted) return true;
    Diag *diag = elab_error(e, P0122, ast->span, "`%s` takes %zu argument%s, but %zu %s given",
                            name, wanted, wanted == 1 ? "" : "s", given, given == 1 ? "is" : "are");
    if (given == 1 && (strcmp(name, "max") == 0 || strcmp(name, "min") == 0))
        HELP(e, diag, "a reduction names its index: `%s[i] x[i]`", name);
    else
        for (size_t i = 0; i < given; i++) elab_expr(e, ast->call.args[i]);
    return false;
}

/* The argument that must be a type; false: it is none, which is reported */
static bool type_argument(Elab *e, const AstExpr *ast, Element *type) {
    const AstExpr *argument = ast->call.args[0];
    const char *name = ast->call.callee.text;
    if (argument->kind == AST_NAME && argument->name &&
        elab_named_type(e, argument->name, argument->span, type))
        return *type != E_COUNT;
    Diag *diag = elab_error(e, P0131, argument->span, "`%s` takes an element type", name);
    HELP(e, diag, "write a type such as `%s(%s)`, or a static whose value is one", name,
         strcmp(name, "bits") == 0 ? "u32, x" : "bf16");
    return false;
}

/* `bits(u32, x)` */
static Val bits(Elab *e, const AstExpr *ast) {
    Element type;
    if (!arity(e, ast, 2)) return elab_poison(e, ast->span);
    bool typed = type_argument(e, ast, &type);
    Val v = elab_expr(e, ast->call.args[1]);
    return typed ? elab_bits(e, type, v, ast->span) : elab_poison(e, ast->span);
}

/* By its name */
static bool is_called(int which) {
    return which != IN_ceil_div && intrinsic_rows[which].word != WORD_OPERATOR;
}

static Val intrinsic(Elab *e, const AstExpr *ast, Intrinsic which) {
    if (which == IN_bits) return bits(e, ast);
    if (which == IN_ceil && ast->call.count == 2) which = IN_ceil_div;
    if (!arity(e, ast, (size_t)intrinsic_rows[which].args)) return elab_poison(e, ast->span);
    Val args[3];
    int count = intrinsic_rows[which].args;
    for (int i = 0; i < count; i++) args[i] = elab_expr(e, ast->call.args[i]);
    if (intrinsic_of_bits(which)) return elab_call_bits(e, which, args, ast->span);
    return elab_make_call(e, which, args, count, ast->span);
}

/* ---- casts ----------------------------------------------------------------------------------- */

static Val cast(Elab *e, const AstExpr *ast, Element type) {
    if (!arity(e, ast, 1)) return elab_poison(e, ast->span);
    Val v = elab_expr(e, ast->call.args[0]);
    if (elab_is_poison(v)) return v;
    if (type == E_TF32 || type == E_BOOL) {
        Diag *diag = elab_error(e, P0131, ast->span, "no cast to %s", elab_type_name(type));
        if (type == E_BOOL)
            HELP(e, diag, "write a comparison: `%s != 0`",
                 elab_text_of(e, ast->call.args[0]->span));
        else
            NOTE(e, diag, "tf32 is only for fields of pipes; copy f32 elements into them");
        return elab_poison(e, ast->span);
    }
    /* nothing to convert: a copy remains a copy */
    if (v.x->kind == X_READ && v.x->read->type == type) return v;
    v = elab_operand(e, v);
    if (elab_is_poison(v)) return v;
    if (v.x->type == E_BOOL)
        v = elab_make_select(e, v, elab_val_integer(e, 1, ast->span),
                             elab_val_integer(e, 0, ast->span), ast->span);
    v.x = elab_settled(e, v);
    Expr *x = elab_cast_to(e, v, type, ast->span);
    return (Val){x, FLEX_NONE};
}

static Val exact(Elab *e, const AstExpr *ast) {
    if (!arity(e, ast, 1)) return elab_poison(e, ast->span);
    bool before = e->exact;
    e->exact = true;
    Val v = elab_expr(e, ast->call.args[0]);
    e->exact = before;
    return v;
}

static Val select_call(Elab *e, const AstExpr *ast) {
    if (!arity(e, ast, 3)) return elab_poison(e, ast->span);
    Val c = elab_expr(e, ast->call.args[0]), a = elab_expr(e, ast->call.args[1]),
        b = elab_expr(e, ast->call.args[2]);
    return elab_make_select(e, c, a, b, ast->span);
}

/* ---- functions in expressions ---------------------------------------------------------------- */

const AstItem *elab_find_fn(Elab *e, const char *name) {
    for (size_t i = 0; i < e->ast->fns.count; i++)
        if (e->ast->fns.items[i]->fn.name.text == name) return e->ast->fns.items[i];
    return NULL;
}

bool elab_is_fn_call(Elab *e, const AstExpr *ast) {
    return ast->kind == AST_CALL && ast->call.callee.text &&
           elab_find_fn(e, ast->call.callee.text) != NULL;
}

bool elab_step(Elab *e, Span span) {
    if (++e->steps > MAX_STEPS && !e->exhausted) {
        e->exhausted = true;
        Frame *inner = e->frame, *outer = inner;
        while (outer && outer->outer) outer = outer->outer;
        e->frame = NULL; /* reported at the call in the kernel, the cause of the rest */
        Diag *diag =
            elab_error(e, P0128, outer ? outer->call : span,
                       "the functions of this kernel expand to more than %d statements", MAX_STEPS);
        NOTE(e, diag, "every call of a function is inlined");
        e->frame = inner;
    }
    return !e->exhausted;
}

bool elab_enter_fn(Elab *e, const AstItem *fn, const AstExpr *ast) {
    if (fn->fn.reached) *fn->fn.reached = true;
    for (const Frame *frame = e->frame; frame; frame = frame->outer) {
        if (frame->fn != fn) continue;
        Diag *diag =
            elab_error(e, P0124, ast->call.callee.span, "`%s` calls itself", fn->fn.name.text);
        /* the innermost call has a label already */
        const Frame *below = e->frame == frame ? frame : e->frame->outer;
        for (; below != frame; below = below->outer)
            LABEL(e, diag, below->call, "`%s` is called here", below->fn->fn.name.text);
        NOTE(e, diag, "functions are inlined, so recursion is not possible");
        return false;
    }
    return elab_step(e, ast->span);
}

static Val give(Elab *e, const AstStmt *const *list, size_t count, const AstItem *fn, Element type);

static Val returned(Elab *e, const AstStmt *ast, const AstItem *fn, Element type) {
    if (!ast->value) {
        Diag *diag =
            elab_error(e, P0158, ast->span, "`return` without a value in `%s`", fn->fn.name.text);
        LABEL(e, diag, fn->fn.result->span, "declared result");
        HELP(e, diag, "write `return` with a value of type %s", elab_type_name(type));
        return elab_poison(e, ast->span);
    }
    Val v = elab_operand(e, elab_expr(e, ast->value));
    return (Val){
        elab_coerce(e, v, type, arena_printf(e->arena, "the result of `%s`", fn->fn.name.text)),
        FLEX_NONE};
}

static Val not_an_expression(Elab *e, const AstItem *fn, Span guilty) {
    Diag *diag = elab_error(e, P0127, guilty, "`%s` cannot be called inside an expression",
                            fn->fn.name.text);
    PRIMARY(e, diag, "its body is more than `let`s and branches that return");
    HELP(e, diag, "call it in a statement of its own: `let r = %s(..);`", fn->fn.name.text);
    return elab_poison(e, guilty);
}

/* The remaining statements as one value; those after a branch that falls through continue it. */
static Val branch_value(Elab *e, const AstStmt *const *list, size_t count, const AstItem *fn,
                        Element type) {
    const AstStmt *ast = list[0];
    if (!ast->branch.condition) return not_an_expression(e, fn, ast->branch.head);
    Val c = elab_condition(e, elab_operand(e, elab_expr(e, ast->branch.condition)));
    VEC(const AstStmt *) path = {0};
    vec_push(e->arena, &path, ast->branch.then);
    for (size_t i = 1; i < count; i++) vec_push(e->arena, &path, list[i]);
    Val a = give(e, path.items, path.count, fn, type);
    path.count = 0;
    if (ast->branch.otherwise) vec_push(e->arena, &path, ast->branch.otherwise);
    for (size_t i = 1; i < count; i++) vec_push(e->arena, &path, list[i]);
    Val b = give(e, path.items, path.count, fn, type);
    return elab_make_select(e, c, a, b, ast->span);
}

static void let_name(Elab *e, const AstStmt *ast) {
    RangesOf before = elab_ranges_begin(e, ast->declare.with->ranges);
    Val v = elab_operand(e, elab_expr(e, ast->declare.init));
    Element type;
    elab_ranges_end(e, before);
    if (ast->declare.type && elab_scalar_type(e, ast->declare.type, &type))
        v = (Val){elab_coerce(e, v, type, arena_printf(e->arena, "`%s`", ast->declare.name.text)),
                  FLEX_NONE};
    v = (Val){elab_settled(e, v), elab_is_integer(v.x->type) && v.flex ? FLEX_INT : FLEX_NONE};
    elab_scope_bind(e, e->scope, NAME_VALUE, ast->declare.name.text, ast->declare.name.span, 0)
        ->value = v;
}

static Val give(Elab *e, const AstStmt *const *list, size_t count, const AstItem *fn,
                Element type) {
    if (count == 0) {
        elab_error(e, P0125, fn->head, "`%s` may end without `return`", fn->fn.name.text);
        return elab_poison(e, fn->head);
    }
    if (!elab_step(e, fn->head)) return elab_poison(e, fn->head);
    size_t mark = elab_scope_mark(e->scope);
    const AstStmt *ast = list[0];
    Val v;
    switch (ast->kind) {
    case AST_RETURN: v = returned(e, ast, fn, type); break;
    case AST_IF: v = branch_value(e, list, count, fn, type); break;
    case AST_LET:
        if (ast->declare.indexes) return not_an_expression(e, fn, ast->declare.name.span);
        let_name(e, ast);
        v = give(e, list + 1, count - 1, fn, type);
        break;
    case AST_BLOCK: {
        VEC(const AstStmt *) path = {0};
        for (size_t i = 0; i < ast->block.count; i++) vec_push(e->arena, &path, ast->block.body[i]);
        for (size_t i = 1; i < count; i++) vec_push(e->arena, &path, list[i]);
        v = give(e, path.items, path.count, fn, type);
        break;
    }
    case AST_ERROR_STMT: v = elab_poison(e, ast->span); break;
    case AST_VAR:
    case AST_SHARED:
    case AST_ASSIGN:
    case AST_FOR:
    case AST_BREAK:
    case AST_CONTINUE:
    case AST_STAGE:
    case AST_RELEASE:
    case AST_ARRIVE:
    case AST_WAIT:
    case AST_EXPECT:
    case AST_STEP:
    case AST_PTX:
    case AST_EXPR:
    case AST_TURN:
    case AST_UNSAFE: v = not_an_expression(e, fn, ast->span); break;
    }
    elab_scope_undo(e->scope, mark);
    return v;
}

static Val function(Elab *e, const AstExpr *ast, const AstItem *fn) {
    Element type;
    if (!fn->fn.result || fn->fn.result->dims.count || fn->fn.result->is_stage) {
        Diag *diag = elab_error(e, P0127, ast->span,
                                "`%s` returns no scalar and cannot be used in an expression",
                                fn->fn.name.text);
        LABEL(e, diag, fn->head, fn->fn.result ? "it returns a tile" : "declared without a result");
        if (fn->fn.result)
            HELP(e, diag, "call it in a declaration: `let r = %s;`", elab_text_of(e, ast->span));
        return elab_poison(e, ast->span);
    }
    if (!elab_enter_fn(e, fn, ast) || !elab_scalar_type(e, fn->fn.result, &type))
        return elab_poison(e, ast->span);
    Scope *scope = elab_scope_new(e, e->file), *before = e->scope;
    Frame frame = {.outer = e->frame, .fn = fn, .call = ast->span, .result = -1};
    Frame *marker = NEW(e->arena, Frame);
    *marker = frame;
    if (!elab_pass_arguments(e, fn, ast, scope, NULL)) return elab_poison(e, ast->span);
    e->frame = marker, e->scope = scope;
    const AstStmt *body = fn->fn.body;
    Val v = body ? give(e, &body, 1, fn, type) : elab_poison(e, ast->span);
    e->frame = marker->outer, e->scope = before;
    return v;
}

/* ---- kinds of calls -------------------------------------------------------------------------- */

static Val unknown_function(Elab *e, const AstExpr *ast) {
    AstName callee = ast->call.callee;
    const Name *name = elab_scope_find(e->scope, callee.text);
    if (name && name->kind != NAME_POISON) {
        Diag *diag = elab_error(e, P0121, callee.span, "`%s` is not a function", callee.text);
        LABEL(e, diag, name->span, "declared here");
        if (name->kind == NAME_PARAM || name->kind == NAME_TILE)
            HELP(e, diag, "write subscripts in `[` and `]`");
    } else {
        VEC(const char *) list = {0};
        for (int i = 0; i < IN_COUNT; i++)
            if (is_called(i)) vec_push(e->arena, &list, intrinsic_rows[i].name);
        for (int i = 0; i < E_COUNT; i++) vec_push(e->arena, &list, element_rows[i].spelling);
        vec_push(e->arena, &list, "bytes");
        vec_push(e->arena, &list, "eps");
        vec_push(e->arena, &list, "select");
        vec_push(e->arena, &list, "exact");
        for (size_t i = 0; i < e->ast->items.count; i++)
            if (e->ast->items.items[i]->kind == AST_ITEM_FN && e->ast->items.items[i]->fn.name.text)
                vec_push(e->arena, &list, e->ast->items.items[i]->fn.name.text);
        Diag *diag = elab_error(e, P0121, callee.span, "unknown function `%s`", callee.text);
        const char *near = elab_suggest(e, callee.text, list.items, list.count);
        elab_help_name(e, diag, callee.text, near);
    }
    for (size_t i = 0; i < ast->call.count; i++) {
        Object ignored;
        if (!elab_object_of(e, ast->call.args[i], &ignored, true)) elab_expr(e, ast->call.args[i]);
    }
    return elab_poison(e, ast->span);
}

/* `bytes(bf16)`, `eps(bf16)`: the argument is a type */
static Val of_type(Elab *e, const AstExpr *ast, bool size) {
    if (!arity(e, ast, 1)) return elab_poison(e, ast->span);
    Element type;
    if (!type_argument(e, ast, &type)) return elab_poison(e, ast->span);
    if (size) return elab_val_integer(e, element_rows[type].bytes, ast->span);
    if (element_rows[type].kind == ELEMENT_FLOAT)
        return elab_val_number(e, number_epsilon(type), ast->span);
    elab_error(e, P0131, ast->call.args[0]->span,
               "`eps` takes a floating-point type, but this is %s", elab_type_name(type));
    return elab_poison(e, ast->span);
}

Val elab_call(Elab *e, const AstExpr *ast) {
    const char *name = ast->call.callee.text;
    if (!name) return elab_poison(e, ast->span);
    const AstItem *fn = elab_find_fn(e, name);
    if (fn) return function(e, ast, fn);
    Element type;
    if (elab_named_type(e, name, ast->call.callee.span, &type)) {
        elab_need_type(e, type, ast->call.callee.span);
        return type == E_COUNT ? elab_poison(e, ast->span) : cast(e, ast, type);
    }
    for (int i = 0; i < IN_COUNT; i++)
        if (is_called(i) && strcmp(intrinsic_rows[i].name, name) == 0)
            return intrinsic(e, ast, (Intrinsic)i);
    if (strcmp(name, "bytes") == 0) return of_type(e, ast, true);
    if (strcmp(name, "eps") == 0) return of_type(e, ast, false);
    if (strcmp(name, "select") == 0) return select_call(e, ast);
    if (strcmp(name, "exact") == 0) return exact(e, ast);
    if (strcmp(name, "address") == 0) return elab_address(e, ast);
    return unknown_function(e, ast);
}
