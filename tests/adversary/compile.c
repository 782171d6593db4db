/* Compiles a text. */
#include "tests/adversary/compile.h"

#include "check/check.h"
#include "codegen/codegen.h"
#include "parser/parser.h"

#include <string.h>

static void compile(Arena *arena, const char *text, Compiled *out) {
    out->source = source_new(arena, "adversary.pipe", text, strlen(text));
    Names *names = names_new(arena);
    out->diags = diags_new(arena, out->source);
    const Ast *ast = parser_parse(arena, names, out->source, out->diags);
    Prog *prog =
        out->diags->errors > 0 ? NULL : check_kernel(arena, names, ast, "k", NULL, 0, out->diags);
    for (size_t i = 0; i < out->diags->items.count; i++)
        out->undecided |= out->diags->items.items[i]->severity == SEVERITY_INCOMPLETE;
    out->refused = prog == NULL;
    if (prog == NULL) return;
    out->ptx = str_new(arena);
    out->manifest = NEW(arena, Manifest);
    codegen_emit(arena, prog, &(CodegenOptions){0}, &out->ptx, out->manifest);
    out->manifest->source = out->source;
}

bool compile_text(Arena *arena, const char *text, Compiled *out) {
    jmp_buf failed;
    Diags *spare = diags_new(arena, NULL); /* afterwards there may be no memory for it */
    *out = (Compiled){0};
    if (setjmp(failed) != 0) {
        arena_on_failure(arena, NULL);
        out->greedy = true;
        out->diags = spare;
        return false;
    }
    arena_on_failure(arena, &failed);
    compile(arena, text, out);
    arena_on_failure(arena, NULL);
    out->bytes = arena_bytes(arena);
    return !out->refused;
}
