/* elaborate: Ast -> Prog. Declarations of a kernel may refer to each other in any order: their
 * names are bound first, then each is evaluated when it is needed; one that is needed during its
 * own evaluation is a cycle. */
#include "elaborate/items.h"

#include <string.h>

/* ---- cycles ---------------------------------------------------------------------------------- */

void elab_pend(Elab *e, const char *name, Span span) {
    vec_push(e->arena, &e->pending, (Pending){name, span});
}
void elab_unpend(Elab *e) { e->pending.count--; }

void elab_report_cycle(Elab *e, const char *name, Span span, Span use) {
    size_t first = e->pending.count;
    while (first > 0 && e->pending.items[first - 1].name != name) first--;
    if (first > 0) first--;
    Str text = str_new(e->arena);
    for (size_t i = first; i < e->pending.count; i++)
        str_printf(&text, "`%s` -> ", e->pending.items[i].name);
    str_printf(&text, "`%s`", name);
    Diag *diag = elab_error(e, P0102, span, "the declaration of `%s` depends on itself", name);
    LABEL(e, diag, use, "used here");
    for (size_t i = first + 1; i < e->pending.count && i < first + 4; i++)
        LABEL(e, diag, e->pending.items[i].span, "via `%s`", e->pending.items[i].name);
    NOTE(e, diag, "the cycle: %s", text.text);
    e->broken = true;
}

/* ---- constants ------------------------------------------------------------------------------- */

static const StaticValue *given_value(const Elab *e, const char *name) {
    for (size_t i = 0; i < e->static_count; i++)
        if (strcmp(e->statics[i].name, name) == 0) return &e->statics[i];
    return NULL;
}

/* A value from the caller has the kind of the default: integer, number or bool. */
static Val given(Elab *e, const StaticValue *value, Val standard, Span span) {
    Element type = standard.x->type;
    if (type == E_F32)
        return elab_val_number(e, value->is_integer ? (double)value->integer : value->number, span);
    if (!value->is_integer || (type == E_BOOL && value->integer != 0 && value->integer != 1)) {
        Diag *diag = elab_error(e, P0151, span,
                                "the value given for static `%s` has the wrong type", value->name);
        PRIMARY(e, diag, type == E_BOOL ? "expected a bool: true or false" : "expected an integer");
        return standard;
    }
    return type == E_BOOL ? elab_val_bool(e, value->integer != 0, span)
                          : elab_val_integer(e, value->integer, span);
}

static void choices(Elab *e, const AstConst *ast, Constant *row, Val value, bool given) {
    bool found = false, known = elab_is_const(value.x);
    for (size_t i = 0; i < ast->choices.count; i++) {
        Val v = elab_operand(e, elab_expr(e, ast->choices.items[i]));
        if (elab_is_poison(v)) continue;
        if (!elab_is_const(v.x) || v.x->type == E_F32 ||
            (v.x->type == E_BOOL) != (value.x->type == E_BOOL)) {
            Diag *diag = elab_error(e, P0151, v.x->span,
                                    "the choices of a static must be constants of its type");
            LABEL(e, diag, ast->name.span, "the static");
            continue;
        }
        found = found || (known && v.x->constant.integer == value.x->constant.integer);
        vec_push(e->arena, &row->choices, v.x->constant.integer);
    }
    if (found || given || !known || row->choices.count < ast->choices.count ||
        row->choices.count == 0)
        return;
    Diag *diag =
        elab_error(e, P0160, value.x->span, "the value of static `%s` is not in its set of choices",
                   ast->name.text);
    HELP(e, diag, "add the value to the set, or use a value from the set");
}

static void evaluate_decl(Elab *e, int index) {
    Decl *decl = &e->decls.items[index];
    const AstConst *ast = decl->ast;
    Scope *scope = e->scope;
    Place place = e->place;
    const char *words = e->place_words;
    IndexSpace *space = e->space;
    Frame *frame = e->frame;
    decl->progress = BUSY;
    elab_pend(e, ast->name.text, ast->name.span);
    e->scope = decl->scope, e->place = PLACE_CONST, e->place_words = "a constant", e->space = NULL,
    e->frame = NULL;
    /* A constant: other names are refused here, and expressions of constants are folded */
    Val v = elab_operand(e, elab_expr(e, ast->value));
    Constant row = {.name = ast->name.text, .span = ast->name.span, .is_static = ast->is_static};
    const StaticValue *outside =
        ast->is_static && !elab_is_poison(v) ? given_value(e, ast->name.text) : NULL;
    if (!elab_is_poison(v)) choices(e, ast, &row, v, outside != NULL);
    if (outside) v = given(e, outside, v, ast->name.span);
    row.value = v.x;
    e->scope = scope, e->place = place, e->place_words = words, e->space = space, e->frame = frame;
    elab_unpend(e);
    decl = &e->decls.items[index];
    row.read = decl->row.read;
    if (!elab_is_poison(v))
        decl->row = row;
    else
        e->broken = true;
    decl->value = v;
    decl->progress = DONE;
}

Val elab_decl_value(Elab *e, int index, Span use) {
    Decl *decl = &e->decls.items[index];
    if (decl->progress == BUSY) {
        elab_report_cycle(e, decl->ast->name.text, decl->ast->name.span, use);
        return elab_poison(e, use);
    }
    if (decl->progress == UNSEEN) evaluate_decl(e, index);
    e->decls.items[index].row.read = true;
    Val v = e->decls.items[index].value;
    if (elab_is_poison(v)) return elab_poison(e, use);
    Expr *x = NEW(e->nodes, Expr);
    *x = *v.x;
    x->span = use;
    return (Val){x, x->type == E_BOOL || !elab_is_const(x) ? FLEX_NONE : FLEX_ANY};
}

static void declare_consts(Elab *e, const AstItem *item, Scope *scope) {
    for (size_t i = 0; i < item->consts.count; i++) {
        const AstConst *ast = &item->consts.items[i];
        if (!ast->name.text || !ast->value) continue;
        vec_push(e->arena, &e->decls, (Decl){.ast = ast, .scope = scope});
        elab_scope_bind(e, scope, NAME_CONST, ast->name.text, ast->name.span,
                        (int)e->decls.count - 1);
    }
}

/* ---- functions of the file ------------------------------------------------------------------- */

static bool is_built_in(const char *name) {
    Element ignored;
    for (int i = 0; i < IN_COUNT; i++)
        if (strcmp(intrinsic_rows[i].name, name) == 0) return true;
    return element_by_name(name, &ignored) || strcmp(name, "select") == 0 ||
           strcmp(name, "exact") == 0 || strcmp(name, "address") == 0;
}

static void know_words(Elab *e) {
    e->word_rank = names_intern(e->names, "rank", 4);
    e->word_inf = names_intern(e->names, "inf", 3);
    e->word_nan = names_intern(e->names, "nan", 3);
    e->word_lane = names_intern(e->names, "lane", 4);
    e->word_warp = names_intern(e->names, "warp", 4);
}

/* Functions and kernels have a separate namespace */
void elaborate_names(Arena *arena, Names *words, const Ast *ast, Diags *diags) {
    Elab *e = NEW(arena, Elab);
    *e = (Elab){.arena = arena, .own = arena, .names = words, .ast = ast, .diags = diags};
    know_words(e);
    Scope *names = elab_scope_new(e, NULL);
    for (size_t i = 0; i < e->ast->items.count; i++) {
        const AstItem *item = e->ast->items.items[i];
        if (item->kind != AST_ITEM_FN && item->kind != AST_ITEM_KERNEL) continue;
        AstName name = item->kind == AST_ITEM_FN ? item->fn.name : item->kernel.name;
        if (!name.text) continue;
        if (item->kind == AST_ITEM_FN && is_built_in(name.text))
            elab_error(e, P0101, name.span, "`%s` is a built-in name", name.text);
        else
            elab_scope_bind(e, names, NAME_CONST, name.text, name.span, (int)i);
    }
}

/* ---- kernel ---------------------------------------------------------------------------------- */

static void setup(Elab *e) {
    Prog *prog = e->prog;
    prog->source = e->diags->source;
    prog->name = e->kernel->kernel.name.text ? e->kernel->kernel.name.text : "?";
    prog->span = e->kernel->head;
    know_words(e);
    e->file = elab_scope_new(e, NULL);
    e->outer = elab_scope_new(e, e->file);
    e->unknown = elab_scope_new(e, NULL);
    e->axes = elab_scope_new(e, e->outer);
    e->roles = elab_scope_new(e, NULL), e->pipes = elab_scope_new(e, NULL);
    e->claims = elab_scope_new(e, e->outer);
    e->scope = e->outer;
    e->domain = -1;
    e->suggestions = 24; /* more are not shown, of one kind */
    e->errors_before = e->diags->errors;
    for (int i = 0; i < PROG_MAX_RANK; i++) e->axis_locals[i] = -1;
}

Prog *elaborate(Arena *arena, Names *names, const Ast *ast, const AstItem *kernel,
                const StaticValue *statics, size_t count, Diags *diags) {
    Elab *e = NEW(arena, Elab);
    *e = (Elab){.arena = arena,
                .nodes = arena_scratch(arena),
                .own = arena_scratch(arena),
                .names = names,
                .ast = ast,
                .kernel = kernel,
                .statics = statics,
                .static_count = count,
                .diags = diags,
                .prog = NEW(arena, Prog),
                .place = PLACE_CONST,
                .place_words = "a constant"};
    setup(e);
    for (size_t i = 0; i < ast->consts.count; i++) declare_consts(e, ast->consts.items[i], e->file);
    const AstItems *items = &kernel->kernel.items;
    for (size_t i = 0; i < items->count; i++)
        if (items->items[i]->kind == AST_ITEM_CONST) declare_consts(e, items->items[i], e->outer);
    elab_kernel_declare(e);
    for (size_t i = 0; i < e->decls.count && !elab_gives_up(e); i++) {
        if (e->decls.items[i].progress == UNSEEN) evaluate_decl(e, (int)i);
    }
    if (!elab_gives_up(e)) elab_kernel_evaluate(e);
    for (size_t i = 0; i < e->decls.count; i++) { /* which constants are read is only known now */
        if (e->decls.items[i].row.name) vec_push(arena, &e->prog->constants, e->decls.items[i].row);
    }
    arena_free(e->own);
    return e->broken ? NULL : e->prog;
}
