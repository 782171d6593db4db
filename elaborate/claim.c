/* `ensures` and `example`: results of the kernel as formulas of its parameters, and data for a
 * run. */
#include "elaborate/private.h"
#include "prog/eval.h"

#include <string.h>

/* ---- ensures --------------------------------------------------------------------------------- */

/* `n` of `Y[Slot[n]] == X[n]`, which stores where the data say; NULL: another subscript */
static const AstExpr *read_subscript(Elab *e, const AstExpr *sub) {
    if (sub->kind != AST_SUBSCRIPT || sub->subscript.count != 1) return NULL;
    const AstExpr *from = sub->subscript.subs[0];
    return from->kind == AST_NAME && elab_is_unknown_name(e, from) ? from : NULL;
}

/* Indexes of a claim: every unknown name in the target is one, and must be a subscript of its
 * own */
static bool bare_targets(Elab *e, const AstExpr *target, bool constants) {
    bool fine = true;
    for (size_t i = 0; i < target->subscript.count; i++) {
        const AstExpr *sub = target->subscript.subs[i];
        if (sub->kind == AST_ERROR_EXPR) return false;
        if (elab_is_unknown_name(e, sub)) {
            if (elab_add_index(e, sub->name, sub->span) < 0) fine = false;
            continue;
        }
        if (sub->kind == AST_NAME && sub->name) {
            const Name *name =
                elab_is_word(e, sub->name) ? NULL : elab_scope_find(e->scope, sub->name);
            if (constants && name && name->kind == NAME_CONST) continue;
            Diag *diag =
                elab_error(e, P0147, sub->span,
                           "subscript `%s` of the left side is already declared", sub->name);
            if (name) LABEL(e, diag, name->span, "declared here");
            HELP(e, diag, "write a new name for each subscript%s",
                 constants ? ", or a constant" : "");
            fine = false;
        } else if (!constants || sub->kind != AST_INTEGER) {
            Diag *diag =
                elab_error(e, P0147, sub->span, "a subscript of the left side must be a new name%s",
                           constants ? " or a constant" : "");
            const AstExpr *from = read_subscript(e, sub);
            if (from != NULL)
                HELP(e, diag,
                     "write a new name, for example `to`, and select what is stored there: "
                     "`sum[%s] (%s == to ? .. : 0)`",
                     from->name, elab_text_of(e, sub->span));
            else
                HELP(e, diag, "write a new name for each subscript%s",
                     constants ? ", or a constant" : "");
            fine = false;
        }
    }
    e->space->bound = e->space->count;
    return fine;
}

static void begin(Elab *e, IndexSpace *space) {
    e->scope = e->claims, e->place = PLACE_CLAIM, e->place_words = "`ensures`";
    e->space = space, e->has_target = true;
}

static void end(Elab *e, size_t mark) {
    elab_scope_undo(e->claims, mark);
    e->space = NULL, e->has_target = false;
    e->place = PLACE_CONST, e->place_words = "a constant";
}

/* An index of a `let` is the place of a value, so it runs from 0. */
static bool lets_from_zero(Elab *e, const AstExpr *target) {
    for (size_t i = 0; target->kind == AST_SUBSCRIPT && i < target->subscript.count; i++) {
        const AstExpr *sub = target->subscript.subs[i];
        const Name *name = sub->kind == AST_NAME ? elab_scope_find(e->scope, sub->name) : NULL;
        if (!name || name->kind != NAME_INDEX || !name->value.x) continue;
        elab_error(e, P0147, sub->span, "an index of a `let` runs from 0");
        return false;
    }
    return true;
}

static void let_of_claims(Elab *e, const AstClaim *ast) {
    const AstExpr *target = ast->target;
    const AstExpr *base = target->kind == AST_SUBSCRIPT ? target->subscript.base : target;
    if (base->kind != AST_NAME || !base->name) {
        if (base->kind != AST_ERROR_EXPR)
            elab_error(e, P0147, target->span, "expected a new name after `let`");
        return;
    }
    Let let = {.name = base->name, .span = base->span};
    size_t mark = elab_scope_mark(e->claims);
    begin(e, &let.space);
    bool fine = (target->kind != AST_SUBSCRIPT || bare_targets(e, target, false)) &&
                lets_from_zero(e, target);
    if (let.space.count > PROG_MAX_RANK) {
        elab_error(e, P0120, target->span, "a `let` has at most %d dimensions", PROG_MAX_RANK);
        fine = false;
    }
    Val v = fine ? elab_operand(e, elab_expr(e, ast->value)) : elab_poison(e, target->span);
    end(e, mark);
    let.rank = fine ? let.space.bound : 0;
    let.value = elab_settled(e, v);
    let.type = let.value->type;
    vec_push(e->arena, &e->prog->lets, let);
    Place place = e->place;
    e->place = PLACE_CLAIM;
    elab_scope_bind(e, e->claims, NAME_LET, base->name, base->span, (int)e->prog->lets.count - 1);
    e->place = place;
}

/* One of the two bounds of `within 1e-3 or 0.5`; `other` is the text after `or`, if this is the
 * bound before it */
typedef struct Bound {
    const AstExpr *ast, *other;
    bool absolute;
} Bound;

static void report_tolerance(Elab *e, Bound bound) {
    Diag *diag = elab_error(e, P0148, bound.ast->span, "a tolerance must be a positive constant");
    if (bound.ast->kind == AST_BINARY && bound.ast->binary.op == AST_OR)
        HELP(e, diag, "write `or` between a relative and an absolute bound: `within 1e-3 or 0.5`");
    else if (bound.absolute)
        HELP(e, diag, "write `~ .. within 1e-3 or 0.5`, or no `or` for a relative bound alone");
    else if (bound.other)
        HELP(e, diag, "for an absolute bound alone, write a tiny relative one: `within 1e-9 or %s`",
             elab_text_of(e, bound.other->span));
    else
        HELP(e, diag, "write `~ .. within 1e-3`, or `==` for exact equality");
}

static double tolerance(Elab *e, Bound bound) {
    const AstExpr *ast = bound.ast;
    if (ast->kind == AST_BINARY && ast->binary.op == AST_OR) {
        report_tolerance(e, bound);
        return 1;
    }
    Val v = elab_operand(e, elab_expr_at(e, ast, PLACE_CONST, "a tolerance"));
    if (elab_is_poison(v)) return 1;
    double value = !elab_is_const(v.x)  ? 0
                   : v.x->type == E_F32 ? v.x->constant.number
                                        : (double)v.x->constant.integer;
    if (elab_is_const(v.x) && v.x->type != E_BOOL && value > 0 && value < 1e30) return value;
    report_tolerance(e, bound);
    return 1;
}

static bool is_output(Elab *e, const AstExpr *target) {
    const AstExpr *base = target->kind == AST_SUBSCRIPT ? target->subscript.base : target;
    if (base->kind == AST_ERROR_EXPR || (base->kind == AST_NAME && !base->name)) return false;
    const Name *name = base->kind == AST_NAME ? elab_scope_find(e->claims, base->name) : NULL;
    if (base->kind == AST_NAME && !name) {
        Object ignored;
        return elab_object_of(e, base, &ignored, false);
    }
    if (name && name->kind == NAME_POISON) return false;
    if (name && name->kind == NAME_PARAM && e->prog->params.items[name->index].mode != PARAM_IN) {
        if (target->kind == AST_SUBSCRIPT) return true;
        elab_resolve_name(e, base->name, base->span); /* a whole tensor */
        return false;
    }
    Diag *diag =
        elab_error(e, P0147, target->span, "expected an output on the left side of `ensures`");
    if (name) LABEL(e, diag, name->span, "declared without `out` or `inout`");
    if (name && name->kind != NAME_PARAM) HELP(e, diag, "write `let` to name a part of a formula");
    return false;
}

/* The two sides of a comparison: an integer is converted to the float of the other side;
 * `within` defines the precision. */
static Expr *claimed(Elab *e, Val v, const Access *target, const char *text) {
    v = elab_operand(e, v);
    if (elab_is_poison(v)) return v.x;
    Element wide = element_rows[target->type].widens;
    if (v.x->type == E_F32 && wide != E_BOOL) return elab_settled(e, v);
    return elab_coerce(e, v, wide, text);
}

static void claim(Elab *e, const AstClaim *ast) {
    Claim row = {.span = ast->span, .within = -1};
    if (ast->within) row.within = tolerance(e, (Bound){ast->within, ast->absolute, false});
    if (ast->absolute) row.absolute = tolerance(e, (Bound){ast->absolute, NULL, true});
    size_t mark = elab_scope_mark(e->claims);
    begin(e, &row.space);
    Access *target = NULL;
    if (is_output(e, ast->target) && bare_targets(e, ast->target, true))
        target = elab_access_of(e, ast->target, true);
    Val v = target ? elab_expr(e, ast->value) : elab_poison(e, ast->span);
    if (target)
        row.value = claimed(e, v, target,
                            arena_printf(e->arena, "`%s`", elab_text_of(e, ast->target->span)));
    end(e, mark);
    if (!target) return;
    row.target = *target;
    vec_push(e->arena, &e->prog->claims, row);
}

void elab_ensures_item(Elab *e, const AstItem *item) {
    for (size_t i = 0; i < item->ensures.count; i++) {
        const AstClaim *ast = &item->ensures.items[i];
        if (!ast->target || !ast->value) continue;
        e->scope = e->claims;
        RangesOf before = elab_ranges_begin(e, &ast->ranges);
        size_t errors = e->diags->errors;
        if (ast->is_let)
            let_of_claims(e, ast);
        else
            claim(e, ast);
        e->target_faulty = e->diags->errors > errors;
        elab_ranges_end(e, before);
        e->target_faulty = false;
    }
}

static bool is_claimed(const Elab *e, size_t param) {
    for (size_t i = 0; i < e->prog->claims.count; i++)
        if (e->prog->claims.items[i].target.object == (int)param) return true;
    return false;
}

void elab_claims_done(Elab *e) {
    if (e->prog->claims.count == 0 || e->diags->errors) return;
    for (size_t i = 0; i < e->prog->params.count; i++) {
        const Param *param = &e->prog->params.items[i];
        if (!param->is_tensor || param->mode == PARAM_IN || is_claimed(e, i)) continue;
        Diag *diag = elab_error(e, P0149, param->span, "`ensures` has no claim about output `%s`",
                                param->name);
        PRIMARY(e, diag, "`run` does not check this output");
    }
}

/* ---- example --------------------------------------------------------------------------------- */

static bool is_fill(const char *name) {
    static const char *const fills[] = {"normal", "uniform", "iota", "zeros"};
    for (size_t i = 0; i < COUNT_OF(fills); i++)
        if (strcmp(fills[i], name) == 0) return true;
    return false;
}

static bool known_in_example(const Name *name) {
    return name->kind == NAME_PARAM || name->kind == NAME_SYMBOL;
}

/* False: in the part that a kernel shares with its other variants */
static bool is_own(const Elab *e, Span span) {
    return span.lo >= e->kernel->span.lo && span.hi <= e->kernel->span.hi;
}

/* The kernel's example sets an extent that is a static of this variant, which has a value */
static bool is_of_others(const Elab *e, const Name *name, Span span) {
    return name && name->kind == NAME_CONST && e->kernel->kernel.variant.text &&
           is_own(e, name->span) && !is_own(e, span);
}

static const Name *example_name(Elab *e, const AstExpr *base) {
    if (base->kind != AST_NAME || !base->name) {
        if (base->kind != AST_ERROR_EXPR && base->kind != AST_NAME)
            elab_error(e, P0150, base->span,
                       "`example` sets something that is not an extent or a parameter");
        return NULL;
    }
    const Name *name = elab_scope_find(e->examples, base->name);
    if (name && (known_in_example(name) || name->kind == NAME_POISON))
        return name->kind == NAME_POISON ? NULL : name;
    if (is_of_others(e, name, base->span)) return NULL;
    Diag *diag =
        elab_error(e, P0150, base->span, "`%s` is neither an extent nor a parameter", base->name);
    e->scope = e->examples;
    const char *near = name ? NULL : elab_suggest_name(e, base->name, known_in_example);
    if (name) LABEL(e, diag, name->span, "declared here");
    if (near) HELP(e, diag, "did you mean `%s`?", near);
    return NULL;
}

static bool twice(Elab *e, const char *name, Span span) {
    for (size_t i = 0; i < e->prog->examples.count; i++) {
        if (e->prog->examples.items[i].name != name) continue;
        Example *old = &e->prog->examples.items[i];
        if (is_own(e, span) && !is_own(e, old->span)) { /* a variant's value replaces it */
            *old = e->prog->examples.items[--e->prog->examples.count];
            return false;
        }
        Diag *diag = elab_error(e, P0137, span, "`example` sets `%s` twice", name);
        LABEL(e, diag, old->span, "first set here");
        return true;
    }
    return false;
}

/* A literal above 64 bits with a sign, which is a value of u64 */
static bool example_above(Elab *e, const AstExpr *ast, Element type, Example *row) {
    row->kind = EXAMPLE_NUMBER;
    row->is_above = true;
    row->integer = (int64_t)ast->integer;
    row->number = (double)ast->integer;
    if (elab_is_float(type) || type == E_U64) return true;
    elab_error(e, P0109, ast->span, "the constant %llu does not fit %s",
               (unsigned long long)ast->integer, elab_type_name(type));
    return false;
}

static bool example_number(Elab *e, const AstExpr *ast, Element type, Example *row) {
    e->place_words = "`example`";
    if (ast->kind == AST_INTEGER && ast->integer > INT64_MAX)
        return example_above(e, ast, type, row);
    Val v = elab_operand(e, elab_expr(e, ast));
    if (elab_is_poison(v)) return false;
    if (!elab_is_const(v.x) || v.x->type == E_BOOL) {
        elab_error(e, P0110, ast->span, "values of `example` must be numbers");
        return false;
    }
    row->kind = EXAMPLE_NUMBER;
    row->is_integer = elab_is_integer(v.x->type);
    row->integer = row->is_integer ? v.x->constant.integer : 0;
    row->number = row->is_integer ? (double)row->integer : v.x->constant.number;
    if (elab_is_float(type)) return true;
    if (!row->is_integer) {
        elab_error(e, P0104, ast->span, "`%s` must be %s, but this is f32", row->name,
                   elab_type_name(type));
        return false;
    }
    if (eval_fits(type, row->integer)) return true;
    elab_error(e, P0109, ast->span, "the constant %lld does not fit %s", (long long)row->integer,
               elab_type_name(type));
    return false;
}

static bool example_formula(Elab *e, const AstExpr *target, const AstExpr *value, Example *row) {
    const Param *param = &e->prog->params.items[row->param];
    size_t mark = elab_scope_mark(e->examples);
    e->scope = e->examples, e->place = PLACE_EXAMPLE, e->place_words = "`example`",
    e->space = &row->space;
    bool fine = (int)target->subscript.count == param->rank;
    if (!fine) {
        Diag *diag =
            elab_error(e, P0113, target->span, "`%s` has %d dimension%s, but %u subscript%s",
                       param->name, param->rank, param->rank == 1 ? "" : "s",
                       target->subscript.count, target->subscript.count == 1 ? "" : "s");
        LABEL(e, diag, param->span, "declared here");
    }
    fine = fine && bare_targets(e, target, false);
    row->kind = EXAMPLE_FORMULA;
    if (fine) {
        for (int i = 0; i < param->rank; i++) { /* extents of the tensor itself */
            Index *index = &row->space.items[i];
            if (elab_is_const(param->extents[i]))
                index->extent = param->extents[i]->constant.integer;
            else
                index->dynamic = param->extents[i];
        }
        Element wide = element_rows[param->type].widens;
        Val v = elab_operand(e, elab_expr(e, value));
        /* The value is converted to the stored type: a formula of indexes may fill floats too */
        bool converts = !elab_is_poison(v) && v.x->type != E_BOOL && v.x->type != wide;
        row->value = converts ? elab_cast_to(e, v, wide, value->span)
                              : elab_coerce(e, v, wide, "an element");
        fine = row->value->kind != X_POISON;
    }
    elab_scope_undo(e->examples, mark);
    e->space = NULL, e->place = PLACE_CONST;
    return fine;
}

static bool example_tensor(Elab *e, const AstExampleItem *ast, Example *row) {
    const Param *param = &e->prog->params.items[row->param];
    if (ast->target->kind == AST_SUBSCRIPT) return example_formula(e, ast->target, ast->value, row);
    if (ast->value->kind == AST_NAME && ast->value->name && is_fill(ast->value->name)) {
        row->kind = EXAMPLE_FILL;
        row->fill = ast->value->name;
        return true;
    }
    if (ast->value->kind == AST_NAME && ast->value->name &&
        !elab_scope_find(e->examples, ast->value->name) && !elab_is_word(e, ast->value->name)) {
        static const char *const fills[] = {"normal", "uniform", "iota", "zeros"};
        Diag *diag = elab_error(e, P0150, ast->value->span, "unknown fill `%s`", ast->value->name);
        const char *near = elab_suggest(e, ast->value->name, fills, COUNT_OF(fills));
        if (near)
            HELP(e, diag, "did you mean `%s`?", near);
        else
            NOTE(e, diag, "a fill is normal, uniform, iota, zeros or a number");
        return false;
    }
    return example_number(e, ast->value, param->type, row);
}

static Element scalar_of(const Elab *e, const Name *name) {
    if (name->kind == NAME_PARAM) return E_F32;
    const Symbol *symbol = &e->prog->symbols.items[name->index];
    return symbol->is_extent ? E_I32 : e->prog->params.items[symbol->param].type;
}

static bool example_scalar(Elab *e, const AstExampleItem *ast, const Name *name, Example *row) {
    if (ast->target->kind == AST_SUBSCRIPT) {
        Diag *diag = elab_error(e, P0115, ast->target->span,
                                "`%s` is not a tensor and takes no subscripts", name->text);
        LABEL(e, diag, name->span, "declared here");
        return false;
    }
    if (!example_number(e, ast->value, scalar_of(e, name), row)) return false;
    bool extent = name->kind == NAME_SYMBOL && e->prog->symbols.items[name->index].is_extent;
    if (!extent || row->integer >= 0) return true;
    elab_error(e, P0111, ast->value->span, "extent `%s` is negative: %lld", name->text,
               (long long)row->integer);
    return false;
}

void elab_example_item(Elab *e, const AstItem *item) {
    for (size_t i = 0; i < item->example.count; i++) {
        const AstExampleItem *ast = &item->example.items[i];
        if (!ast->target || !ast->value) continue;
        e->scope = e->examples;
        const AstExpr *base =
            ast->target->kind == AST_SUBSCRIPT ? ast->target->subscript.base : ast->target;
        const Name *name = example_name(e, base);
        if (!name || twice(e, name->text, base->span)) continue;
        Example row = {.name = name->text, .span = base->span, .param = -1};
        bool tensor = name->kind == NAME_PARAM && e->prog->params.items[name->index].is_tensor;
        if (tensor) row.param = name->index;
        if (tensor ? example_tensor(e, ast, &row) : example_scalar(e, ast, name, &row))
            vec_push(e->arena, &e->prog->examples, row);
    }
}
