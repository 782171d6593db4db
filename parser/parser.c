/* The public function: one scanner, one run of the grammar, one tree. */
#include "parser/parser.h"

#include "parser/build.h"
#include "pipe.tab.h"

Ast *parser_parse(Arena *arena, Names *names, const Source *source, Diags *diags) {
    Parse *p = NEW(arena, Parse);
    p->ast = NEW(arena, Ast);
    p->ast->source = source;
    p->resumed = UINT32_MAX;
    size_t before = diags->errors;
    void *scanner = lexer_open(&p->lexer, arena, names, source, diags);
    (void)pipe_parse(scanner, p); /* errors have been reported */
    p->ast->comments.items = p->lexer.comments.items;
    p->ast->comments.count = p->lexer.comments.count;
    p->ast->comments.capacity = p->lexer.comments.capacity;
    for (size_t i = 0; i < p->ast->items.count; i++) {
        AstItem *item = p->ast->items.items[i];
        if (item->kind == AST_ITEM_FN) vec_push(arena, &p->ast->fns, item);
        if (item->kind == AST_ITEM_CONST) vec_push(arena, &p->ast->consts, item);
        if (item->kind != AST_ITEM_KERNEL || !item->kernel.name.text) continue;
        vec_push(arena, &p->ast->kernels, item);
        vec_push(arena, &p->ast->kernel_names, item->kernel.name.text);
    }
    if (p->ast->items.count == 0 && diags->errors == before) {
        Diag *diag = diag_at(diags, P0009, (Span){0, 0}, "the file has no declarations");
        diag_help(diags, diag, "write a kernel: `kernel name(...) for sm_90a { ... }`");
    }
    return p->ast;
}

void parser_words(Arena *arena, Names *names, const Source *source, Occurrences *out) {
    Lexer *lexer = NEW(arena, Lexer);
    void *scanner = lexer_open(lexer, arena, names, source, diags_new(arena, source));
    PIPE_STYPE value;
    Span span;
    lexer->words = out;
    while (pipe_lex(&value, &span, scanner) != TOK_END) continue;
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
