/* The public function: one scanner, one run of the grammar, one tree. */
#include "parser/parser.h"

#include "parser/build.h"
#include "pipe.tab.h"

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
    if (variant->kernel.target.text) unit->kernel.target = variant->kernel.target;
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

Ast *parser_parse_words(Arena *arena, Names *names, const Source *source, Occurrences *words,
                        Diags *diags) {
    Parse *p = NEW(arena, Parse);
    p->nodes.arena = arena;
    p->ast = NEW(arena, Ast);
    p->ast->source = source;
    p->resumed = UINT32_MAX;
    size_t before = diags->errors;
    void *scanner = lexer_open(&p->lexer, arena, names, source, diags);
    p->lexer.words = words;
    (void)pipe_parse(scanner, p); /* errors have been reported */
    lexer_close(&p->lexer);
    p->ast->comments.items = p->lexer.comments.items;
    p->ast->comments.count = p->lexer.comments.count;
    p->ast->comments.capacity = p->lexer.comments.capacity;
    for (size_t i = 0; i < p->ast->items.count; i++) {
        AstItem *item = p->ast->items.items[i];
        if (item->kind == AST_ITEM_FN) vec_push(arena, &p->ast->fns, item);
        if (item->kind == AST_ITEM_CONST) vec_push(arena, &p->ast->consts, item);
        if (item->kind != AST_ITEM_KERNEL || !item->kernel.name.text) continue;
        add_kernel(arena, p->ast, item);
    }
    if (p->ast->items.count == 0 && diags->errors == before) {
        Diag *diag = diag_at(diags, P0009, (Span){0, 0}, "the file has no declarations");
        diag_help(diags, diag, "write a kernel: `kernel name(...) for sm_90a { ... }`");
    }
    return p->ast;
}

Ast *parser_parse(Arena *arena, Names *names, const Source *source, Diags *diags) {
    return parser_parse_words(arena, names, source, NULL, diags);
}

void tokens_print(Arena *arena, Names *names, const Source *source, Diags *diags, Str *out) {
    Lexer *lexer = NEW(arena, Lexer);
    void *scanner = lexer_open(lexer, arena, names, source, diags);
    PIPE_STYPE value;
    Span span;
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
