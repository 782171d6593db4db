/* The public functions: for each file one scanner and one run of the grammar; one tree of all. */
#include "parser/parser.h"

#include "parser/build.h"
#include "pipe.tab.h"

#include <string.h>

static void add_items(Arena *arena, AstItems *to, const AstItems *from) {
    for (size_t i = 0; i < from->count; i++)
        if (from->items[i]->kind != AST_ITEM_VARIANT) vec_push(arena, to, from->items[i]);
}

/* The kernel with this variant alone */
static AstItem *unit_of(Arena *arena, const AstItem *kernel, const AstItem *variant) {
    AstItem *unit = NEW(arena, AstItem);
    arena_count(arena, kernel->kernel.items.count / 4);
    *unit = *kernel;
    unit->span = variant->span;
    unit->head = variant->head;
    unit->kernel.variant = variant->kernel.name;
    if (variant->kernel.targets.count) unit->kernel.targets = variant->kernel.targets;
    unit->kernel.items = (AstItems){0};
    add_items(arena, &unit->kernel.items, &kernel->kernel.items);
    add_items(arena, &unit->kernel.items, &variant->kernel.items);
    return unit;
}

static void add_unit(Arena *arena, Ast *ast, AstItem *unit, const char *name) {
    vec_push(arena, &ast->kernels, unit);
    vec_push(arena, &ast->kernel_names, name);
}

static void add_kernel(Arena *arena, Ast *ast, AstItem *kernel) {
    if (!ast_has_variants(kernel)) {
        add_unit(arena, ast, kernel, kernel->kernel.name.text);
        return;
    }
    for (size_t i = 0; i < kernel->kernel.items.count; i++) {
        const AstItem *variant = kernel->kernel.items.items[i];
        if (variant->kind != AST_ITEM_VARIANT || !variant->kernel.name.text) continue;
        add_unit(arena, ast, unit_of(arena, kernel, variant),
                 arena_printf(arena, "%s:%s", kernel->kernel.name.text, variant->kernel.name.text));
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Adds what the file contains to the tree. */
static void parse_file(Arena *arena, Names *names, Ast *ast, const SourceFile *file,
                       Occurrences *words, Diags *diags) {
    Parse *p = NEW(arena, Parse);
    p->nodes.arena = arena;
    p->ast = ast;
    p->resumed = UINT32_MAX;
    size_t errors = diags->errors, before = ast->items.count;
    void *scanner = lexer_open(&p->lexer, arena, names, ast->source, file, diags);
    p->lexer.words = words;
    (void)pipe_parse(scanner, p); /* errors have been reported */
    lexer_close(&p->lexer);
    for (size_t i = 0; i < p->lexer.comments.count; i++)
        vec_push(arena, &ast->comments, p->lexer.comments.items[i]);
    if (ast->items.count > before || diags->errors > errors) return;
    Diag *diag = diag_at(diags, P0009, (Span){file->lo, file->lo}, "the file has no declarations");
    if (file == ast->source->files)
        diag_help(diags, diag, "write a kernel: `kernel name(...) for sm_90a { ... }`");
    else
        diag_help(diags, diag, "write a function or a constant in it, or remove its `include`");
}

/* Reports what an included file cannot have. */
static bool fits_included(const Ast *ast, const AstItem *item, Diags *diags) {
    bool is_static =
        item->kind == AST_ITEM_CONST && item->consts.count > 0 && item->consts.items[0].is_static;
    if (item->kind != AST_ITEM_KERNEL && !is_static) return true;
    Span where = is_static ? item->consts.items[0].name.span : item->head;
    Diag *diag =
        diag_at(diags, P0043, where, "%s in an included file", is_static ? "a static" : "a kernel");
    diag_note(diags, diag, "an included file has functions, constants and includes");
    diag_help(diags, diag,
              is_static ? "declare it in `%s`, or write `const` instead of `static`"
                        : "move it to `%s`, or to a file that nothing includes",
              ast->source->name);
    return false;
}

static void list_item(Arena *arena, Ast *ast, AstItem *item, Diags *diags) {
    bool own = source_file(ast->source, item->span.lo) == ast->source->files;
    if (!own && !fits_included(ast, item, diags)) return;
    if (item->kind == AST_ITEM_FN) vec_push(arena, &ast->fns, item);
    if (item->kind == AST_ITEM_CONST) vec_push(arena, &ast->consts, item);
    if (item->kind == AST_ITEM_KERNEL && item->kernel.name.text) add_kernel(arena, ast, item);
}

Ast *parser_parse_words(Arena *arena, Names *names, const Source *source, Occurrences *words,
                        Diags *diags) {
    Ast *ast = NEW(arena, Ast);
    ast->source = source;
    for (uint32_t i = 0; i < source->file_count; i++)
        parse_file(arena, names, ast, &source->files[i], words, diags);
    for (size_t i = 0; i < ast->items.count; i++) list_item(arena, ast, ast->items.items[i], diags);
    return ast;
}

Ast *parser_parse(Arena *arena, Names *names, const Source *source, Diags *diags) {
    return parser_parse_words(arena, names, source, NULL, diags);
}

Includes parser_includes(Arena *arena, const char *text, size_t length) {
    Includes found = {0};
    if (strstr(text, "include") == NULL) return found;
    Arena *own = arena_scratch(arena);
    const Source *source = source_of(own, "", text, length);
    Lexer *lexer = NEW(own, Lexer);
    void *scanner =
        lexer_open(lexer, own, names_new(own), source, source->files, diags_new(own, source));
    PIPE_STYPE value;
    Span span;
    int first = TOK_SEMICOLON, second = 0; /* the tokens before */
    for (int token; (token = pipe_lex(&value, &span, scanner)) != TOK_END;) {
        bool begins = first == TOK_SEMICOLON || first == TOK_RBRACE;
        if (token == TOK_TEXT && second == TOK_INCLUDE && begins && lexer->depth == 0)
            vec_push(arena, &found, (Span){span.lo + 1, span.hi - 1});
        if (second != 0) first = second;
        second = token;
    }
    arena_free(own);
    return found;
}

static void print_file(Arena *arena, Names *names, const Source *source, const SourceFile *file,
                       Diags *diags, Str *out) {
    Lexer *lexer = NEW(arena, Lexer);
    void *scanner = lexer_open(lexer, arena, names, source, file, diags);
    PIPE_STYPE value;
    Span span;
    if (file != source->files) str_printf(out, "%s\n", file->name);
    for (int token; (token = pipe_lex(&value, &span, scanner)) != TOK_END;) {
        uint32_t line, column;
        source_place(source, span.lo, &line, &column);
        str_printf(out, "%u:%u ", (unsigned)line, (unsigned)column);
        bool as_written =
            token == TOK_NAME || token == TOK_INTEGER || token == TOK_FLOAT || token == TOK_BAD;
        str_printf(out, as_written ? "%s " : "%s", pipe_token_spelling(token));
        if (as_written) str_visible(out, source->text + span.lo, span.hi - span.lo);
        str_char(out, '\n');
    }
}

void tokens_print(Arena *arena, Names *names, const Source *source, Diags *diags, Str *out) {
    for (uint32_t i = 0; i < source->file_count; i++)
        print_file(arena, names, source, &source->files[i], diags, out);
}
