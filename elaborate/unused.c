/* Names that are declared and occur nowhere else in their kernel, function or file: parameters,
 * constants, statics, variables. (A field of a pipe that is not written is refused.) Takes the
 * syntax tree, so that arms that a constant does not choose count as uses. A leading `_` says that
 * it is on purpose. */
#include "elaborate/private.h"
#include "parser/parser.h"

#include <stdlib.h>

typedef struct Unused {
    const Ast *ast;
    Diags *diags;
    Occurrences words;      /* by name, then in order of the text */
    Span scope;             /* of the kernel or function; the file */
    const AstItem *example; /* of the kernel: gives values, and uses no parameter; NULL: none */
} Unused;

static int compare(const void *a, const void *b) {
    const Occurrence *x = a, *y = b;
    if (x->name != y->name) return (uintptr_t)x->name < (uintptr_t)y->name ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static bool is_target(const Unused *u, uint32_t at) {
    for (size_t i = 0; u->example && i < u->example->example.count; i++)
        if (u->example->example.items[i].target->span.lo == at) return true;
    return false;
}

static bool occurs_again(const Unused *u, AstName name) {
    size_t low = 0, high = u->words.count;
    Occurrence first = {name.text, u->scope.lo};
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&u->words.items[middle], &first) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < u->words.count && u->words.items[low].name == name.text; low++) {
        uint32_t at = u->words.items[low].at;
        if (at >= u->scope.hi) break;
        if (at != name.span.lo && !is_target(u, at)) return true;
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

static void statement(const Unused *u, const AstStmt *stmt) {
    if (!stmt) return;
    switch (stmt->kind) {
    case AST_LET:
    case AST_VAR:
    case AST_SHARED: look_at(u, stmt->declare.name, "variable"); break;
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
    case AST_STAGE: statement(u, stmt->stage.body); break;
    case AST_ERROR_STMT:
    case AST_ASSIGN:
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

static void kernel_item(const Unused *u, const AstItem *item) {
    if (item->kind == AST_ITEM_CONST) consts(u, item);
    if (item->kind == AST_ITEM_ROLE) statement(u, item->role.body);
}

static void kernel(Unused *u, const AstItem *item) {
    u->example = NULL;
    for (size_t i = 0; i < item->kernel.items.count; i++)
        if (item->kernel.items.items[i]->kind == AST_ITEM_EXAMPLE)
            u->example = item->kernel.items.items[i];
    params(u, &item->kernel.params);
    for (size_t i = 0; i < item->kernel.items.count; i++)
        kernel_item(u, item->kernel.items.items[i]);
    u->example = NULL;
}

void elaborate_unused(Arena *arena, Names *names, const Ast *ast, Diags *diags) {
    Arena *own = arena_scratch(arena);
    Unused u = {.ast = ast, .diags = diags};
    parser_words(own, names, ast->source, &u.words);
    if (u.words.count) qsort(u.words.items, u.words.count, sizeof *u.words.items, compare);
    for (size_t i = 0; i < ast->items.count; i++) {
        const AstItem *item = ast->items.items[i];
        u.scope = item->kind == AST_ITEM_CONST ? (Span){0, ast->source->length} : item->span;
        if (item->kind == AST_ITEM_CONST) consts(&u, item);
        if (item->kind == AST_ITEM_KERNEL) kernel(&u, item);
        if (item->kind != AST_ITEM_FN) continue;
        params(&u, &item->fn.params);
        statement(&u, item->fn.body);
    }
    arena_free(own);
}
