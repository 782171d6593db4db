/* Fuzzes the front end: any bytes give a tree or errors, and both can be printed. */
#include "parser/parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Arena *arena = arena_new();
    if (!arena) return 0;
    const Source *source = source_new(arena, "fuzz.pipe", (const char *)data, size);
    Diags *diags = diags_new(arena, source);
    const Ast *ast = parser_parse(arena, names_new(arena), source, diags);
    Str out = str_new(arena);
    ast_print(ast, &out);
    diags_finish(diags);
    diags_render(diags, size % 2, &out);
    diags_json(diags, &out);
    arena_free(arena);
    return 0;
}
