/* The checker's work is linear in the text: programs with more and more kernels, each with a
 * chain of roles, need arena bytes in proportion to their lines. With a number as argument,
 * prints such a program of about so many lines:
 *
 *     build/release/unit/scale 100000 >large.pipe; time build/release/pipec check large.pipe */
#include "check/check.h"
#include "parser/parser.h"
#include "tests/unit/expect.h"

#include <stdlib.h>

#define PIPES   7  /* in a chain of PIPES + 1 roles */
#define COUNTED 20 /* kernels of the smaller program */

static void middle_role(Str *out, int pipe) {
    str_printf(
        out, "    role r%d: 1 warp {\n        for t in grid {\n            consume <p%d> as a {\n",
        pipe + 1, pipe);
    str_printf(
        out,
        "                produce <p%d> as b {\n                    let scale = f32(%d + N / T);\n",
        pipe + 1, pipe);
    str_printf(out,
               "                    b.x[i] = scale * a.x[i] + max(a.x[i], %d.5);\n                "
               "}\n            }\n   "
               "     }\n    }\n",
               pipe);
}

static void add_kernel(Str *out, int number) {
    str_printf(
        out,
        "// kernel %d: the chain of roles that passes tiles on, each of which computes a little\n",
        number);
    str_printf(out,
               "kernel chain%d(X: f32[N], out Y: f32[N]) for sm_90a {\n    static T = 128;\n    "
               "example N = 1000;\n",
               number);
    str_add(out, "    grid (t: ceil(N, T));\n");
    for (int i = 0; i < PIPES; i++)
        str_printf(out, "    pipe p%d[2] r%d -> r%d { x: f32[T]; }\n", i, i, i + 1);
    str_add(out, "    role r0: 1 warp {\n        for t in grid {\n            produce <p0> as s { "
                 "s.x[i] = X[t*T + i]; "
                 "}\n        }\n    }\n");
    for (int i = 0; i + 1 < PIPES; i++) middle_role(out, i);
    str_printf(out,
               "    role r%d: 1 warp {\n        for t in grid {\n            consume <p%d> as s { "
               "Y[t*T + i] = s.x[i]; }\n",
               PIPES, PIPES - 1);
    str_add(out, "        }\n    }\n}\n\n");
}

static Str program(Arena *arena, int kernels) {
    Str out = str_new(arena);
    str_add(&out, "");
    for (int i = 0; i < kernels; i++) add_kernel(&out, i);
    return out;
}

static size_t bytes_of_check(int kernels) {
    Arena *words = arena_new(), *arena = arena_new();
    Str text = program(words, kernels);
    const Source *source = source_new(arena, "scale.pipe", text.text, text.length);
    Diags *diags = diags_new(arena, source);
    Names *names = names_new(arena);
    const Ast *ast = parser_parse(arena, names, source, diags);
    const char *const *found;
    size_t count = check_kernels(ast, &found);
    EXPECT(count == (size_t)kernels);
    elaborate_names(arena, names, ast, diags);
    for (size_t i = 0; i < count; i++)
        EXPECT(check_kernel(arena, names, ast, found[i], NULL, 0, diags) != NULL);
    Scratch scratch = {arena, diags};
    EXPECT_CLEAN(&scratch);
    size_t bytes = arena_bytes(arena);
    arena_free(arena);
    arena_free(words);
    return bytes;
}

static int lines_of(const char *text) {
    int lines = 0;
    for (; *text; text++) lines += *text == '\n';
    return lines;
}

static int print(int lines) {
    Arena *arena = arena_new();
    int each = lines_of(program(arena, 1).text);
    Str text = program(arena, (lines + each - 1) / each);
    fwrite(text.text, 1, text.length, stdout);
    arena_free(arena);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) return print(atoi(argv[1]));
    size_t small = bytes_of_check(COUNTED), large = bytes_of_check(10 * COUNTED);
    if (!EXPECT(large < 10 * small + small / 10))
        fprintf(stderr, "%zu bytes for %d kernels, %zu for ten times as many\n", small, COUNTED,
                large);
    return expect_failures();
}
