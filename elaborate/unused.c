/* Names that are declared and occur nowhere else in their kernel, function or file: parameters,
 * constants, statics, variables; and fields of pipes that nothing reads. (A field that is not
 * written is refused.) Takes the syntax tree, so that arms that a constant does not choose count as
 * uses. A leading `_` says that it is on purpose. */
#include "elaborate/private.h"

#include <stdlib.h>
#include <string.h>

typedef struct Holder { /* of a stage, in a role or a function */
    Span scope;
    uint32_t name, pipe; /* numbers of names */
} Holder;

typedef struct Words {
    /* numbers of words, in order of the text, of one name after the other */
    uint32_t *places;
    uint32_t *begins; /* by name: index of its first place; one more for the end */
    uint32_t names;
} Words;

typedef struct Unused {
    Arena *arena;
    const Ast *ast;
    Diags *diags;
    const Occurrences *text; /* all words, in order of the text */
    Words words, shared;     /* all; those outside of kernels */
    /* of functions, then of the present kernel: a file may have many kernels */
    VEC(Holder) handles;   /* by name */
    uint32_t *last;        /* by name: 1 + index of the last handle that was noted; 0: none */
    VEC(uint32_t) targets; /* of assignments: where they begin, in order of the text */
    size_t shared_handles, shared_targets;
    Span scope;            /* of the kernel, role or function; the file */
    const AstItem *kernel; /* its examples give values, and use no parameter; NULL: none */
} Unused;

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

static uint32_t place_at(const Unused *u, const Words *words, uint32_t i) {
    return u->text->list.items[words->places[i]].at;
}

/* The next place of the name, an index that *end limits; *end = 0: there is none */
static uint32_t next_place(const Unused *u, const Words *words, uint32_t name, uint32_t from,
                           uint32_t *end) {
    *end = 0;
    if (name >= words->names) return 0;
    uint32_t low = words->begins[name], high = *end = words->begins[name + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (place_at(u, words, middle) < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool occurs_again(const Unused *u, AstName name) {
    uint32_t end, i = next_place(u, &u->words, names_number(name.text), u->scope.lo, &end);
    for (; i < end; i++) {
        uint32_t at = place_at(u, &u->words, i);
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

/* Other files that include it may use its constants */
static bool is_included(const Unused *u, const AstItem *item) {
    return source_file(u->ast->source, item->span.lo) != u->ast->source->files;
}

static void consts(const Unused *u, const AstItem *item) {
    if (is_included(u, item)) return;
    for (size_t i = 0; i < item->consts.count; i++)
        look_at(u, item->consts.items[i].name,
                item->consts.items[i].is_static ? "static" : "constant");
}

static int compare_holders(const void *a, const void *b) {
    const Holder *x = a, *y = b;
    if (x->name != y->name) return x->name < y->name ? -1 : 1;
    if (x->scope.lo != y->scope.lo) return x->scope.lo < y->scope.lo ? -1 : 1;
    return x->pipe < y->pipe ? -1 : x->pipe > y->pipe;
}

/* Long roles have many handles of few names. */
static void note_handle(Unused *u, AstName name, AstName pipe) {
    if (!name.text || !pipe.text) return;
    Holder handle = {u->scope, names_number(name.text), names_number(pipe.text)};
    uint32_t *last = &u->last[handle.name];
    if (*last > 0 && *last <= u->handles.count &&
        compare_holders(&u->handles.items[*last - 1], &handle) == 0)
        return;
    vec_push(u->arena, &u->handles, handle);
    *last = (uint32_t)u->handles.count;
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
        for (size_t i = 0; i < stmt->block.count; i++) statement(u, stmt->block.body[i]);
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

static bool in_kernel(const Unused *u, uint32_t at) {
    return at >= u->kernel->span.lo && at < u->kernel->span.hi;
}

static bool is_assigned(const Unused *u, uint32_t at) {
    bool own = in_kernel(u, at);
    size_t low = own ? u->shared_targets : 0, high = own ? u->targets.count : u->shared_targets;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (u->targets.items[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < u->targets.count && u->targets.items[low] == at;
}

static bool is_of_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The name before the dot before this word; NULL: there is none */
static const Occurrence *base_of(const Unused *u, uint32_t word) {
    if (word == 0) return NULL;
    const Occurrence *base = &u->text->list.items[word - 1];
    const char *text = u->ast->source->text + base->at;
    while (is_of_name(*text)) text++;
    while (*text == ' ' || *text == '\t' || *text == '\r' || *text == '\n') text++;
    return *text == '.' ? base : NULL;
}

/* True if the handle may have a stage of the pipe: one of that name in the role or function has, or
 * none is known */
static bool may_have(const Unused *u, const Occurrence *handle, uint32_t pipe) {
    bool known = false, own = in_kernel(u, handle->at);
    size_t end = own ? u->handles.count : u->shared_handles, low = own ? u->shared_handles : 0;
    for (size_t high = end; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (u->handles.items[middle].name < handle->name)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < end && u->handles.items[low].name == handle->name; low++) {
        const Holder *one = &u->handles.items[low];
        if (handle->at < one->scope.lo || handle->at >= one->scope.hi) continue;
        known = true;
        if (one->pipe == pipe) return true;
    }
    return !known;
}

static const AstItem *item_at(const AstItems *items, AstItemKind kind, uint32_t at) {
    for (size_t i = 0; i < items->count; i++) {
        const AstItem *item = items->items[i];
        if (item->kind == kind && at >= item->span.lo && at < item->span.hi) return item;
    }
    return NULL;
}

/* In another variant of the kernel than this one (NULL: none) */
static bool is_apart(const Unused *u, const AstItem *variant, uint32_t at) {
    if (!variant || !in_kernel(u, at)) return false;
    const AstItem *other = item_at(&u->kernel->kernel.items, AST_ITEM_VARIANT, at);
    return other && other != variant;
}

static bool is_read_among(const Unused *u, const Words *words, Span scope, const AstItem *variant,
                          uint32_t pipe, uint32_t field) {
    uint32_t end, i = next_place(u, words, field, scope.lo, &end);
    for (; i < end && place_at(u, words, i) < scope.hi; i++) {
        const Occurrence *base = base_of(u, words->places[i]);
        if (base && !is_assigned(u, base->at) && !is_apart(u, variant, base->at) &&
            may_have(u, base, pipe))
            return true;
    }
    return false;
}

static bool is_read(const Unused *u, const AstItem *variant, AstName of, AstName name) {
    Span file = {0, u->ast->source->length};
    uint32_t pipe = names_number(of.text), field = names_number(name.text);
    return is_read_among(u, &u->words, u->kernel->span, variant, pipe, field) ||
           is_read_among(u, &u->shared, file, variant, pipe, field);
}

static void fields(const Unused *u, const AstItem *variant, const AstItem *item) {
    for (size_t i = 0; i < item->pipe.fields.count; i++) {
        AstName name = item->pipe.fields.items[i].name, pipe = item->pipe.name;
        if (!name.text || name.text[0] == '_' || is_read(u, variant, pipe, name)) continue;
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

/* Sorts these words by name, in linear time. */
static Words words_by_name(const Unused *u, const uint32_t *numbers, size_t count) {
    const Occurrence *all = u->text->list.items;
    Words words = {0};
    for (size_t i = 0; i < count; i++)
        if (all[numbers[i]].name >= words.names) words.names = all[numbers[i]].name + 1;
    words.places = NEW_ARRAY(u->arena, uint32_t, count + 1);
    words.begins = NEW_ARRAY(u->arena, uint32_t, words.names + 2);
    uint32_t *next = words.begins + 1; /* by name: where its next place goes */
    for (size_t i = 0; i < count; i++) words.begins[all[numbers[i]].name + 2]++;
    for (uint32_t name = 0; name < words.names; name++) next[name + 1] += next[name];
    for (size_t i = 0; i < count; i++) words.places[next[all[numbers[i]].name]++] = numbers[i];
    return words;
}

/* The words; those outside of kernels */
static void list_words(Unused *u) {
    const Occurrence *all = u->text->list.items;
    const AstItems *items = &u->ast->items;
    size_t count = u->text->list.count, shared = 0;
    uint32_t *numbers = NEW_ARRAY(u->arena, uint32_t, count + 1);
    for (size_t i = 0; i < count; i++) numbers[i] = (uint32_t)i;
    u->words = words_by_name(u, numbers, count);
    for (size_t i = 0, item = 0; i < count; i++) {
        while (item < items->count && items->items[item]->span.hi <= all[i].at) item++;
        bool kernel = item < items->count && items->items[item]->kind == AST_ITEM_KERNEL;
        if (!kernel) numbers[shared++] = (uint32_t)i;
    }
    u->shared = words_by_name(u, numbers, shared);
    u->last = NEW_ARRAY(u->arena, uint32_t, u->words.names + 1);
}

/* Sorts the handles from this one on, each once. */
static void sort_handles(Unused *u, size_t from) {
    size_t count = u->handles.count - from, kept = 0;
    if (count == 0) return; /* perhaps there is no list */
    Holder *items = u->handles.items + from;
    qsort(items, count, sizeof *items, compare_holders);
    for (size_t i = 1; i < count; i++)
        if (compare_holders(&items[kept], &items[i]) != 0) items[++kept] = items[i];
    u->handles.count = from + kept + 1;
}

static int compare_places(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void function(Unused *u, const AstItem *item) {
    params(u, &item->fn.params);
    for (size_t p = 0; p < item->fn.params.count; p++) {
        const AstParam *param = &item->fn.params.items[p];
        if (param->type && param->type->is_stage) note_handle(u, param->name, param->type->name);
    }
    statement(u, item->fn.body);
}

static void whole_kernel(Unused *u, const AstItem *item) {
    u->handles.count = u->shared_handles, u->targets.count = u->shared_targets;
    u->kernel = item;
    kernel(u, item);
    size_t own = u->targets.count - u->shared_targets;
    if (own && ast_has_variants(item)) /* their roles follow the other ones */
        qsort(u->targets.items + u->shared_targets, own, sizeof(uint32_t), compare_places);
    sort_handles(u, u->shared_handles);
    fields_of(u, item);
    u->kernel = NULL;
}

void elaborate_unused(Arena *arena, const Ast *ast, const Occurrences *words, Diags *diags) {
    Unused u = {.arena = arena_scratch(arena), .ast = ast, .diags = diags, .text = words};
    list_words(&u);
    for (size_t i = 0; i < ast->items.count; i++) {
        const AstItem *item = ast->items.items[i];
        u.scope = item->kind == AST_ITEM_CONST ? (Span){0, ast->source->length} : item->span;
        if (item->kind == AST_ITEM_CONST) consts(&u, item);
        if (item->kind == AST_ITEM_FN) function(&u, item);
    }
    sort_handles(&u, 0);
    u.shared_handles = u.handles.count, u.shared_targets = u.targets.count;
    for (size_t i = 0; i < ast->items.count; i++) {
        u.scope = ast->items.items[i]->span;
        if (ast->items.items[i]->kind == AST_ITEM_KERNEL) whole_kernel(&u, ast->items.items[i]);
    }
    arena_free(u.arena);
}
