/* Shared by unit tests of Code: a Prog from the text of a kernel. */
#ifndef TESTS_PROGRAM_H
#define TESTS_PROGRAM_H

#include "elaborate/elaborate.h"
#include "parser/parser.h"
#include "tests/unit/expect.h"

/* The text with `by` in place of each # */
static inline const char *program_replaced(Arena *arena, const char *text, const char *by) {
    Str out = str_new(arena);
    str_add(&out, "");
    for (; *text; text++)
        if (*text == '#')
            str_add(&out, by);
        else
            str_char(&out, *text);
    return out.text;
}

/* Elaborates the last item of the text, which is the kernel. Fails an expectation and returns
 * NULL if there is an error, and prints the diagnostics. */
static inline Prog *program_elaborated(Arena *arena, const char *text) {
    Names *names = names_new(arena);
    const Source *source = source_new(arena, "unit.pipe", text, strlen(text));
    Diags *diags = diags_new(arena, source);
    Ast *ast = parser_parse(arena, names, source, diags);
    const AstItem *kernel = ast->items.count ? ast->items.items[ast->items.count - 1] : NULL;
    Prog *prog = diags->errors ? NULL : elaborate(arena, names, ast, kernel, &(Settings){0}, diags);
    if (prog && !diags->errors) return prog;
    Str out = str_new(arena);
    diags_finish(diags);
    diags_render(diags, false, &out);
    fprintf(stderr, "is refused:\n%s\n%s\n", text, out.text ? out.text : "");
    EXPECT(diags->errors == 0 && prog != NULL);
    return NULL;
}

#endif
