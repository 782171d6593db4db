/* Names that are declared and occur nowhere else in their kernel, function or file: parameters,
 * constants, statics, variables; and fields of pipes that nothing reads. (A field that is not
 * written is refused.) Takes the syntax tree, so that arms that a constant does not choose count as
 * uses. A leading `_` says that it is on purpose. */
#include "elaborate/private.h"

#include <stdlib.h>
#include <string.h>

typedef struct Holder { /* of a stage, in a role or a function */
    Span scope;
    const char *name, *pipe;
} Holder;

typedef struct Unused {
    Arena *arena;
    const Ast *ast;
    Diags *diags;
    const Occurrences *text; /* the names in order of the text */
    Occurrence *words;       /* the same by name, then in order of the text */
    size_t count;
    VEC(Holder) handles;
    VEC(uint32_t) targets; /* of assignments: where they begin, in order of the text */
    Span scope;            /* of the kernel, role or function; the file */
    const AstItem *kernel; /* its examples give values, and use no parameter; NULL: none */
} Unused;

static int compare(const void *a, const void *b) {
    const Occurrence *x = a, *y = b;
    if (x->name != y->name) return (uintptr_t)x->name < (uintptr_t)y->name ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* In an example of the kernel or of one of its variants */
static bool is_target(const AstItem *kernel, uint32_t at) {
    for (size_t i = 0; kernel && i < kernel->kernel.items.count; i++) {
        const AstItem *item = kernel->kernel.items.items[i];
        if (item->kind == AST_ITEM_VARIANT && is_target(item, at)) return true;
        for (size_t k = 0; item->kind == AST_ITEM_EXAMPLE && k < item->example.count; k++)
            if (item->example.items[k].target->span.lo == at) return true;
    }
    return false;
}

/* The first occurrence of the name from this place on */
static size_t first_word(const Unused *u, const char *name, uint32_t from) {
    size_t low = 0, high = u->count;
    Occurrence first = {name, from};
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&u->words[middle], &first) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool occurs_again(const Unused *u, AstName name) {
    size_t low = first_word(u, name.text, u->scope.lo);
    for (; low < u->count && u->words[low].name == name.text; low++) {
        uint32_t at = u->words[low].at;
        if (at >= u->scope.hi) break;
        if (at != name.span.lo && !is_target(u->kernel, at)) return true;
    }
    return false;
}

static void look_at(const Unused *u, AstName name, const char *what) {
    if (!name.text || name.text[0] == '_' || occurs_again(u, name)) return;
    Diag *diag = diag_at(u->diags, P0164, name.span, "%s `%s` is never used", what, name.text);
    diag_help(u->diags, diag, "remove it, or call it `_%s` if that is on purpose", name.text);
}

static void params(const Unused *u, const AstParams *list) {
    for (size_t i = 0; i < list->count; i++) look_at(u, list->items[i].name, "parameter");
}

static void consts(const Unused *u, const AstItem *item) {
    for (size_t i = 0; i < item->consts.count; i++)
        look_at(u, item->consts.items[i].name,
                item->consts.items[i].is_static ? "static" : "constant");
}

static void note_handle(Unused *u, AstName name, AstName pipe) {
    vec_push(u->arena, &u->handles, ((Holder){u->scope, name.text, pipe.text}));
}

static void declaration(Unused *u, const AstStmt *stmt) {
    const AstExpr *init = stmt->declare.init;
    look_at(u, stmt->declare.name, "variable");
    if (init && init->kind == AST_ACQUIRE) note_handle(u, stmt->declare.name, init->acquire.pipe);
}

static void statement(Unused *u, const AstStmt *stmt) {
    if (!stmt) return;
    switch (stmt->kind) {
    case AST_LET:
    case AST_VAR:
    case AST_SHARED: declaration(u, stmt); break;
    case AST_BLOCK:
    case AST_TURN:
    case AST_UNSAFE:
        for (size_t i = 0; i < stmt->block.body.count; i++) statement(u, stmt->block.body.items[i]);
        break;
    case AST_FOR: statement(u, stmt->loop.body); break;
    case AST_IF:
        statement(u, stmt->branch.then);
        statement(u, stmt->branch.otherwise);
        break;
    case AST_STAGE:
        note_handle(u, stmt->stage.as, stmt->stage.pipe);
        statement(u, stmt->stage.body);
        break;
    case AST_ASSIGN: vec_push(u->arena, &u->targets, stmt->assign.target->span.lo); break;
    case AST_ERROR_STMT:
    case AST_BREAK:
    case AST_CONTINUE:
    case AST_RETURN:
    case AST_RELEASE:
    case AST_ARRIVE:
    case AST_WAIT:
    case AST_EXPECT:
    case AST_STEP:
    case AST_PTX:
    case AST_EXPR: break;
    }
}

/* ---- fields ---------------------------------------------------------------------------------- */

static bool is_assigned(const Unused *u, uint32_t at) {
    size_t low = 0, high = u->targets.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (u->targets.items[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < u->targets.count && u->targets.items[low] == at;
}

/* The name before the dot before this place; NULL: there is none */
static const Occurrence *base_of(const Unused *u, uint32_t at) {
    const Occurrences *words = u->text;
    size_t low = 0, high = words->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (words->items[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return NULL;
    const Occurrence *base = &words->items[low - 1];
    const char *text = u->ast->source->text + base->at + strlen(base->name);
    text += strspn(text, " \t\r\n");
    return *text == '.' ? base : NULL;
}

static int by_name(const void *a, const void *b) {
    const Holder *x = a, *y = b;
    if (x->name != y->name) return (uintptr_t)x->name < (uintptr_t)y->name ? -1 : 1;
    return x->scope.lo < y->scope.lo ? -1 : x->scope.lo > y->scope.lo;
}

/* True if the handle may have a stage of the pipe: one of that name in the role or function has, or
 * none is known */
static bool may_have(const Unused *u, const Occurrence *handle, const char *pipe) {
    const Holder *all = u->handles.items, here = {{handle->at, 0}, handle->name, NULL};
    size_t low = 0, high = u->handles.count;
    while (low < high) { /* the first in a later role or function, or of a later name */
        size_t middle = low + (high - low) / 2;
        if (by_name(&all[middle], &here) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool known = false;
    for (; low > 0 && all[low - 1].name == here.name && handle->at < all[low - 1].scope.hi; low--) {
        known = true;
        if (all[low - 1].pipe == pipe) return true;
    }
    return !known;
}

/* The items are in order of the text. */
static const AstItem *item_at(const AstItems *items, AstItemKind kind, uint32_t at) {
    size_t low = 0, high = items->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (items->items[middle]->span.hi <= at)
            low = middle + 1;
        else
            high = middle;
    }
    const AstItem *item = low < items->count ? items->items[low] : NULL;
    return item && item->kind == kind && at >= item->span.lo ? item : NULL;
}

/* In another kernel, or in another variant than this one (NULL: none) */
static bool is_apart(const Unused *u, const AstItem *variant, uint32_t at) {
    const AstItem *kernel = item_at(&u->ast->items, AST_ITEM_KERNEL, at);
    if (!kernel || kernel != u->kernel || !variant) return kernel && kernel != u->kernel;
    const AstItem *other = item_at(&kernel->kernel.items, AST_ITEM_VARIANT, at);
    return other && other != variant;
}

static bool is_read_in(const Unused *u, const AstItem *variant, const char *pipe, const char *field,
                       Span text) {
    for (size_t i = first_word(u, field, text.lo);
         i < u->count && u->words[i].name == field && u->words[i].at < text.hi; i++) {
        const Occurrence *base = base_of(u, u->words[i].at);
        if (base && !is_assigned(u, base->at) && !is_apart(u, variant, base->at) &&
            may_have(u, base, pipe))
            return true;
    }
    return false;
}

/* In the kernel, where most are, or in a function */
static bool is_read(const Unused *u, const AstItem *variant, const char *pipe, const char *field) {
    if (is_read_in(u, variant, pipe, field, u->kernel->span)) return true;
    for (size_t i = 0; i < u->ast->fns.count; i++)
        if (is_read_in(u, variant, pipe, field, u->ast->fns.items[i]->span)) return true;
    return false;
}

static void fields(const Unused *u, const AstItem *variant, const AstItem *item) {
    for (size_t i = 0; i < item->pipe.fields.count; i++) {
        AstName name = item->pipe.fields.items[i].name, pipe = item->pipe.name;
        if (!name.text || name.text[0] == '_' || is_read(u, variant, pipe.text, name.text))
            continue;
        Diag *diag = diag_at(u->diags, P0164, name.span, "field `%s` of `%s` is never read",
                             name.text, pipe.text);
        diag_help(u->diags, diag,
                  "remove it and what writes it, or call it `_%s` if that is on purpose",
                  name.text);
    }
}

/* ---- items ----------------------------------------------------------------------------------- */

static void kernel_item(Unused *u, const AstItem *item) {
    Span kernel = u->scope;
    if (item->kind == AST_ITEM_CONST) consts(u, item);
    if (item->kind != AST_ITEM_ROLE) return;
    u->scope = item->span;
    statement(u, item->role.body);
    u->scope = kernel;
}

static void kernel(Unused *u, const AstItem *item) {
    const AstItems *items = &item->kernel.items;
    params(u, &item->kernel.params);
    for (size_t i = 0; i < items->count; i++) kernel_item(u, items->items[i]);
    for (size_t i = 0; i < items->count; i++) {
        if (items->items[i]->kind != AST_ITEM_VARIANT) continue;
        u->scope = items->items[i]->span;
        kernel(u, items->items[i]);
    }
}

/* Of u->kernel, or of one of its variants */
static void fields_of(const Unused *u, const AstItem *unit) {
    const AstItem *variant = unit == u->kernel ? NULL : unit;
    for (size_t i = 0; i < unit->kernel.items.count; i++) {
        const AstItem *item = unit->kernel.items.items[i];
        if (item->kind == AST_ITEM_PIPE) fields(u, variant, item);
        if (item->kind == AST_ITEM_VARIANT) fields_of(u, item);
    }
}

void elaborate_unused(Arena *arena, const Ast *ast, const Occurrences *words, Diags *diags) {
    Arena *own = arena_scratch(arena);
    Unused u = {.arena = own, .ast = ast, .diags = diags, .text = words, .count = words->count};
    u.words = NEW_ARRAY(own, Occurrence, u.count + 1);
    for (size_t i = 0; i < u.count; i++) u.words[i] = words->items[i];
    if (u.count) qsort(u.words, u.count, sizeof *u.words, compare);
    for (size_t i = 0; i < ast->items.count; i++) {
        const AstItem *item = ast->items.items[i];
        u.scope = item->kind == AST_ITEM_CONST ? (Span){0, ast->source->length} : item->span;
        if (item->kind == AST_ITEM_CONST) consts(&u, item);
        u.kernel = item->kind == AST_ITEM_KERNEL ? item : NULL;
        if (u.kernel) kernel(&u, item);
        if (item->kind != AST_ITEM_FN) continue;
        params(&u, &item->fn.params);
        for (size_t p = 0; p < item->fn.params.count; p++) {
            const AstParam *param = &item->fn.params.items[p];
            if (param->type && param->type->is_stage)
                note_handle(&u, param->name, param->type->name);
        }
        statement(&u, item->fn.body);
    }
    if (u.handles.count) qsort(u.handles.items, u.handles.count, sizeof(Holder), by_name);
    for (size_t i = 0; i < ast->items.count; i++) {
        u.kernel = ast->items.items[i];
        if (u.kernel->kind == AST_ITEM_KERNEL) fields_of(&u, u.kernel);
    }
    arena_free(own);
}
