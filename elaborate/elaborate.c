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

/* Values mostly come in the order of the declarations: the search begins after the last one. */
static const StaticValue *given_value(Elab *e, const char *name) {
    for (size_t i = 0; i < e->static_count; i++) {
        const StaticValue *value = &e->statics[(e->static_next + i) % e->static_count];
        arena_count(e->arena, 1);
        if (strcmp(value->name, name) != 0) continue;
        e->static_next = (size_t)(value - e->statics) + 1;
        return value;
    }
    return NULL;
}

/* The value of a constant that names a type: its number. A poison: it is no type */
static Val type_value(Elab *e, const AstExpr *ast) {
    Element type;
    if (ast->kind != AST_NAME || !ast->name || !elab_named_type(e, ast->name, ast->span, &type) ||
        type == E_COUNT)
        return elab_poison(e, ast->span);
    return elab_val_integer(e, type, ast->span);
}

static void wrong_type(Elab *e, const StaticValue *value, Span span, const char *expected) {
    Diag *diag = elab_error(e, P0151, span, "the value given for static `%s` has the wrong type",
                            value->name);
    PRIMARY(e, diag, "expected %s", expected);
}

/* A value from the caller has the kind of the default: type, integer, number or bool. */
static Val given(Elab *e, const StaticValue *value, Val standard, bool is_type, Span span) {
    Element type = standard.x->type;
    if (value->is_type != is_type)
        return wrong_type(e, value, span,
                          is_type          ? "an element type, such as `bf16`"
                          : type == E_F32  ? "a number"
                          : type == E_BOOL ? "a bool: true or false"
                                           : "an integer"),
               standard;
    if (type == E_F32)
        return elab_val_number(e, value->is_integer ? (double)value->integer : value->number, span);
    if (!is_type &&
        (!value->is_integer || (type == E_BOOL && value->integer != 0 && value->integer != 1))) {
        wrong_type(e, value, span, type == E_BOOL ? "a bool: true or false" : "an integer");
        return standard;
    }
    return type == E_BOOL ? elab_val_bool(e, value->integer != 0, span)
                          : elab_val_integer(e, value->integer, span);
}

static void choices(Elab *e, const AstConst *ast, Constant *row, Val value, bool given) {
    bool found = false, known = elab_is_const(value.x);
    for (size_t i = 0; i < ast->choices.count; i++) {
        const AstExpr *choice = ast->choices.items[i];
        Val type = type_value(e, choice);
        bool is_type = !elab_is_poison(type);
        Val v = is_type ? type : elab_operand(e, elab_expr(e, choice));
        if (elab_is_poison(v)) continue;
        if (is_type != row->is_type || !elab_is_const(v.x) || v.x->type == E_F32 ||
            (v.x->type == E_BOOL) != (value.x->type == E_BOOL)) {
            Diag *diag = elab_error(e, P0151, choice->span,
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
    Constant row = {.name = ast->name.text, .span = ast->name.span, .is_static = ast->is_static};
    Val v = type_value(e, ast->value);
    row.is_type = !elab_is_poison(v);
    if (!row.is_type) v = elab_operand(e, elab_expr(e, ast->value));
    const StaticValue *outside =
        ast->is_static && !elab_is_poison(v) ? given_value(e, ast->name.text) : NULL;
    if (!elab_is_poison(v)) choices(e, ast, &row, v, outside != NULL);
    if (outside) v = given(e, outside, v, row.is_type, ast->name.span);
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

/* Evaluates the declaration for a use; NULL: it is refused */
static const Decl *used_decl(Elab *e, int index, Span use) {
    Decl *decl = &e->decls.items[index];
    if (decl->progress == BUSY) {
        elab_report_cycle(e, decl->ast->name.text, decl->ast->name.span, use);
        return NULL;
    }
    if (decl->progress == UNSEEN) evaluate_decl(e, index);
    decl = &e->decls.items[index];
    decl->row.read = true;
    return elab_is_poison(decl->value) ? NULL : decl;
}

/* The constant of this name, if its value may be a type */
static int type_decl(const Elab *e, const char *text) {
    const Name *name = elab_scope_find(e->scope, text);
    if (!name || name->kind != NAME_CONST) return -1;
    const Decl *decl = &e->decls.items[name->index];
    bool open = decl->progress != DONE || elab_is_poison(decl->value); /* or refused */
    bool may_be = open && decl->ast->value->kind == AST_NAME;
    return may_be || decl->row.is_type ? name->index : -1;
}

bool elab_named_type(Elab *e, const char *name, Span use, Element *out) {
    if (element_by_name(name, out)) return true;
    int index = type_decl(e, name);
    if (index < 0) return false;
    const Decl *decl = used_decl(e, index, use);
    if (decl && !decl->row.is_type) return false;
    *out = decl ? (Element)decl->value.x->constant.integer : E_COUNT;
    return true;
}

void elab_need_type(Elab *e, Element type, Span use) {
    bool narrow = type == E_E4M3 || type == E_E5M2, on_host = e->place == PLACE_CLAIM;
    if (narrow && !on_host && !e->prog->target->has[CAP_FLOAT8])
        target_lacks(e->arena, e->diags, e->prog, CAP_FLOAT8, use);
}

Val elab_decl_value(Elab *e, int index, Span use) {
    const Decl *decl = used_decl(e, index, use);
    if (!decl) return elab_poison(e, use);
    if (decl->row.is_type) {
        Diag *diag = elab_error(e, P0131, use, "`%s` is an element type, not a number",
                                decl->ast->name.text);
        LABEL(e, diag, decl->ast->name.span, "declared here");
        HELP(e, diag, "`bytes(%s)` is its size, `%s(x)` converts a number to it",
             decl->ast->name.text, decl->ast->name.text);
        return elab_poison(e, use);
    }
    Val v = decl->value;
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

static bool is_intrinsic(const char *name, IntrinsicWord word) {
    for (int i = 0; i < IN_COUNT; i++)
        if (strcmp(intrinsic_rows[i].name, name) == 0) return intrinsic_rows[i].word == word;
    return false;
}

static bool is_built_in(const char *name) {
    Element ignored;
    return is_intrinsic(name, WORD_RESERVED) || element_by_name(name, &ignored) ||
           strcmp(name, "select") == 0 || strcmp(name, "exact") == 0 ||
           strcmp(name, "address") == 0;
}

/* A file that is older than an intrinsic means its own function: it stays right. */
static void own_function(Elab *e, AstName name) {
    if (!is_intrinsic(name.text, WORD_LATER)) return;
    Diag *diag = elab_error(e, P0169, name.span,
                            "calls of `%s` mean this function, not the built-in one", name.text);
    HELP(e, diag, "use another name, or delete the function if the built-in one computes the same");
}

static void know_words(Elab *e) {
    e->word_rank = names_intern(e->names, "rank", 4);
    e->word_inf = names_intern(e->names, "inf", 3);
    e->word_nan = names_intern(e->names, "nan", 3);
    e->word_lane = names_intern(e->names, "lane", 4);
    e->word_warp = names_intern(e->names, "warp", 4);
}

/* ---- variants of a kernel -------------------------------------------------------------------- */

/* What each variant has of its own; the kernel has the rest, so that all compute the same */
static bool is_of_variants(AstItemKind kind) {
    switch (kind) {
    case AST_ITEM_GRID:
    case AST_ITEM_CLUSTER:
    case AST_ITEM_RANGE:
    case AST_ITEM_PIPE:
    case AST_ITEM_ROLE: return true;
    case AST_ITEM_CONST:
    case AST_ITEM_INCLUDE:
    case AST_ITEM_FN:
    case AST_ITEM_KERNEL:
    case AST_ITEM_REQUIRES:
    case AST_ITEM_ENSURES:
    case AST_ITEM_EXAMPLE:
    case AST_ITEM_VARIANT: break;
    }
    return false;
}

static const char *item_word(const Elab *e, const AstItem *item) {
    const Source *source = e->diags->source;
    uint32_t end = item->span.lo;
    while (end < source->length && source->text[end] >= 'a' && source->text[end] <= 'z') end++;
    return arena_copy(e->arena, source->text + item->span.lo, end - item->span.lo);
}

static void shared_item(Elab *e, const AstItem *item, const AstItem *variant) {
    if (!is_of_variants(item->kind)) return;
    const char *word = item_word(e, item);
    Diag *diag =
        elab_error(e, P0165, item->head, "`%s` outside of the variants of the kernel", word);
    LABEL(e, diag, variant->head, "a variant");
    HELP(e, diag, "move `%s` into each variant that uses it", word);
}

static void own_item(Elab *e, const AstItem *item, const AstItem *variant) {
    if (item->kind != AST_ITEM_ENSURES && item->kind != AST_ITEM_VARIANT) return;
    bool claim = item->kind == AST_ITEM_ENSURES;
    Diag *diag = elab_error(e, P0165, item->head,
                            claim ? "`ensures` in a variant" : "a variant in a variant");
    LABEL(e, diag, variant->head, "the variant");
    if (claim) NOTE(e, diag, "all variants of a kernel compute the same");
    HELP(e, diag,
         claim ? "move it out of the variant: it holds for each of them"
               : "move it out of the variant, into the kernel");
}

static void variants(Elab *e, const AstItem *kernel) {
    const AstItems *items = &kernel->kernel.items;
    const AstItem *first = NULL;
    Scope *names = NULL;
    for (size_t i = 0; i < items->count; i++) {
        const AstItem *variant = items->items[i];
        if (variant->kind != AST_ITEM_VARIANT) continue;
        if (!first) first = variant, names = elab_scope_new(e, NULL);
        if (variant->kernel.name.text)
            elab_scope_bind(e, names, NAME_CONST, variant->kernel.name.text,
                            variant->kernel.name.span, (int)i);
        for (size_t k = 0; k < variant->kernel.items.count; k++)
            own_item(e, variant->kernel.items.items[k], variant);
    }
    for (size_t i = 0; i < items->count && first; i++) shared_item(e, items->items[i], first);
}

/* ---- names of statics ------------------------------------------------------------------------ */

/* Arguments of calls that name a static as well: `gemm.using(variant="wide", BM=128)` */
static void statics(Elab *e, const AstItem *item) {
    static const char *const taken[] = {"variant", "invariant", "accept", "target"};
    for (size_t i = 0; item->kind == AST_ITEM_CONST && i < item->consts.count; i++) {
        const AstConst *ast = &item->consts.items[i];
        for (size_t k = 0; ast->is_static && ast->name.text && k < COUNT_OF(taken); k++) {
            if (strcmp(ast->name.text, taken[k]) != 0) continue;
            Diag *diag = elab_error(e, P0166, ast->name.span, "`%s` cannot be the name of a static",
                                    ast->name.text);
            NOTE(e, diag, "calls choose by this word, as by the names of statics");
            HELP(e, diag, "use another name, such as `%c%s`, or declare a `const`",
                 ast->name.text[0] - 'a' + 'A', ast->name.text + 1);
        }
    }
}

static void statics_among(Elab *e, const AstItems *items) {
    for (size_t i = 0; i < items->count; i++) {
        const AstItem *item = items->items[i];
        statics(e, item);
        if (item->kind == AST_ITEM_KERNEL || item->kind == AST_ITEM_VARIANT)
            statics_among(e, &item->kernel.items);
    }
}

/* ---- names of the file ----------------------------------------------------------------------- */

/* Functions and kernels have a separate namespace */
void elaborate_names(Arena *arena, Names *words, const Ast *ast, Diags *diags) {
    Arena *own = arena_scratch(arena);
    Elab *e = NEW(own, Elab);
    *e = (Elab){.arena = own, .own = own, .names = words, .ast = ast, .diags = diags};
    know_words(e);
    Scope *names = elab_scope_new(e, NULL);
    statics_among(e, &ast->items);
    for (size_t i = 0; i < e->ast->items.count; i++) {
        const AstItem *item = e->ast->items.items[i];
        if (item->kind != AST_ITEM_FN && item->kind != AST_ITEM_KERNEL) continue;
        AstName name = item->kind == AST_ITEM_FN ? item->fn.name : item->kernel.name;
        if (item->kind == AST_ITEM_KERNEL) variants(e, item);
        if (!name.text) continue;
        if (item->kind == AST_ITEM_FN) own_function(e, name);
        if (item->kind == AST_ITEM_FN && is_built_in(name.text))
            elab_error(e, P0101, name.span, "`%s` is a built-in name", name.text);
        else
            elab_scope_bind(e, names, NAME_CONST, name.text, name.span, (int)i);
    }
    arena_free(own);
}

/* ---- kernel ---------------------------------------------------------------------------------- */

static void setup(Elab *e) {
    Prog *prog = e->prog;
    prog->source = e->diags->source;
    prog->name = e->kernel->kernel.name.text ? e->kernel->kernel.name.text : "?";
    prog->variant = e->kernel->kernel.variant.text;
    prog->unit = e->kernel->span;
    prog->span = e->kernel->head;
    know_words(e);
    e->file = elab_scope_new(e, NULL);
    e->outer = elab_scope_new(e, e->file);
    e->unknown = elab_scope_new(e, NULL);
    e->axes = elab_scope_new(e, e->outer);
    e->roles = elab_scope_new(e, NULL), e->pipes = elab_scope_new(e, NULL);
    e->claims = elab_scope_new(e, e->outer);
    e->examples = elab_scope_new(e, e->outer);
    e->scope = e->outer;
    e->domain = e->assigned = -1;
    e->suggestions = 24; /* more are not shown, of one kind */
    e->errors_before = e->diags->errors;
    for (int i = 0; i < PROG_MAX_RANK; i++) e->axis_locals[i] = -1;
}

Prog *elaborate(Arena *arena, Names *names, const Ast *ast, const AstItem *kernel,
                const Settings *given, Diags *diags) {
    Elab *e = NEW(arena, Elab);
    *e = (Elab){.arena = arena,
                .nodes = arena_scratch(arena),
                .own = arena_scratch(arena),
                .names = names,
                .ast = ast,
                .kernel = kernel,
                .target = given->target,
                .statics = given->statics,
                .static_count = given->count,
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
