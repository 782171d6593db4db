/* Elaboration, tested by the printed form: statics are bound, functions inlined, ranges
 * substituted, dead arms removed, nodes shared. */
#include "check/check.h"
#include "parser/parser.h"
#include "prog/stmt.h"

#include <stdio.h>
#include <string.h>

static int failed;

typedef struct Run {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    const char *text; /* of the program, then of the diagnostics */
} Run;

static Run elaborated(const char *source, const StaticValue *statics, size_t count) {
    Run run = {.arena = arena_new()};
    Names *names = names_new(run.arena);
    const Source *text = source_new(run.arena, "unit.pipe", source, strlen(source));
    run.diags = diags_new(run.arena, text);
    Ast *ast = parser_parse(run.arena, names, text, run.diags);
    Settings given = {.statics = statics, .count = count};
    for (size_t i = 0; i < ast->items.count; i++)
        if (ast->items.items[i]->kind == AST_ITEM_KERNEL)
            run.prog = elaborate(run.arena, names, ast, ast->items.items[i], &given, run.diags);
    Str out = str_new(run.arena);
    str_add(&out, "");
    if (run.prog) prog_print(run.prog, run.arena, &out);
    diags_finish(run.diags);
    diags_render(run.diags, false, &out);
    run.text = out.text;
    return run;
}

static void has(const char *what, const Run *run, const char *wanted) {
    if (strstr(run->text, wanted)) return;
    failed++;
    printf("elaborate: %s: `%s` is not in\n%s\n", what, wanted, run->text);
}

static void lacks(const char *what, const Run *run, const char *unwanted) {
    if (!strstr(run->text, unwanted)) return;
    failed++;
    printf("elaborate: %s: `%s` is in\n%s\n", what, unwanted, run->text);
}

/* A kernel with these declarations and this body of role `work` */
static const char *kernel(Arena *arena, const char *before, const char *items, const char *body) {
    return arena_printf(
        arena,
        "%s kernel k(X: f32[M, N], I: i32[M], out Y: f32[M, N], n: i32, a: f32) for sm_90a {\n"
        "static T = 64, FLAG = true; grid (r: M, c: ceil(N, T)); %s\n"
        "role work: 2 warpgroups { for (r, c) in grid { %s } } }",
        before, items, body);
}

static void test(const char *what, const char *before, const char *items, const char *body,
                 const char *wanted, const char *unwanted) {
    Arena *arena = arena_new();
    Run run = elaborated(kernel(arena, before, items, body), NULL, 0);
    if (wanted) has(what, &run, wanted);
    if (unwanted) lacks(what, &run, unwanted);
    arena_free(run.arena);
    arena_free(arena);
}

static void statics(void) {
    Arena *arena = arena_new();
    const char *source = kernel(arena, "", "", "var y: f32[T]; y[i] = 0;");
    StaticValue given[] = {{.name = "T", .integer = 32, .number = 32, .is_integer = true},
                           {.name = "FLAG", .integer = 0, .is_integer = true}};
    Run run = elaborated(source, given, COUNT_OF(given));
    has("a given static", &run, "static T = 32");
    has("a given bool", &run, "static FLAG = false");
    has("a tile of its size", &run, "registers y: f32[32]");
    has("the grid", &run, "ceil(N, 32)");
    arena_free(run.arena);
    StaticValue half[] = {{.name = "T", .number = 0.5}};
    run = elaborated(source, half, 1);
    has("a static of another kind", &run, "error[P0151]");
    arena_free(run.arena);
    arena_free(arena);
}

static void kernels(void) {
    Arena *arena = arena_new();
    Names *names = names_new(arena);
    const char *text = "static A = 1; kernel one(X: f32[N]) for sm_90a { } kernel two(X: f32[N]) "
                       "for sm_90a { static B = 1; }";
    const Source *source = source_new(arena, "unit.pipe", text, strlen(text));
    Diags *diags = diags_new(arena, source);
    Ast *ast = parser_parse(arena, names, source, diags);
    const char *const *list;
    bool fine = check_kernels(ast, &list) == 2 && strcmp(list[1], "two") == 0;
    fine &= check_is_static(ast, "one", "A") && !check_is_static(ast, "one", "B") &&
            check_is_static(ast, "two", "B");
    fine &= check_kernel(arena, names, ast, "tow", NULL, 0, diags) == NULL &&
            diags->items.items[0]->code == P0157;
    if (!fine) failed++, printf("elaborate: kernels of a file\n");
    arena_free(arena);
}

static void count_node(Expr *expr, void *data) {
    (void)expr;
    ++*(int *)data;
}

/* Sixty doublings are sixty nodes, not 2^60 */
static void shared_nodes(void) {
    Arena *arena = arena_new();
    Str fn = str_new(arena);
    str_add(&fn, "fn f(x0: f32) -> f32 { ");
    for (int i = 0; i < 60; i++) str_printf(&fn, "let x%d = x%d + x%d; ", i + 1, i, i);
    str_add(&fn, "return x60; }");
    Run run =
        elaborated(kernel(arena, fn.text, "", "var y: f32[T]; y[i] = f(X[r, c*T + i]);"), NULL, 0);
    has("an expression of shared parts", &run, "tile {i} y[i] = X[r, c * 64 + i] + X");
    int nodes = 0;
    if (run.prog) {
        const Role *role = &run.prog->roles.items[0];
        Stmt *grid = role->body->block.body.items[0];
        expr_visit(run.arena, grid->grid.body->block.body.items[0]->tile->value, count_node,
                   &nodes);
    }
    if (nodes < 60 || nodes > 80)
        failed++, printf("elaborate: %d nodes instead of about 66\n", nodes);
    arena_free(run.arena);
    arena_free(arena);
}

int main(void) {
    statics();
    kernels();
    shared_nodes();
    test("a range in its place", "", "range kt = 0 .. r + n;", "for k in kt { let z = k; }",
         "for k in kt = 0 .. r + n\n", NULL);
    test("a piece", "", "range kt = 2 .. n;", "for k in kt[1 .. 3] { let z = k; }",
         "a piece of kt = 3 .. min(n, 5)", NULL);
    test("a piece to the end", "", "range kt = 0 .. n;", "for k in kt from n { let z = k; }",
         "a piece of kt = max(n, 0) .. n", NULL);
    test("a range as a number", "", "range a0 = 1 .. n; range b0 = 0 .. a0 * 2;", "",
         "range b0 = 0 .. max(n - 1, 0) * 2", NULL);
    test("the position in a where", "", "range kt = 0 .. n where I[kt] > r;",
         "for k in kt { let z = k; }", "where I[k] > r", NULL);
    test("any order", "", "range kt = 0 .. U; const U = V + 1; const V = T;", "",
         "range kt = 0 .. 65", NULL);
    test("a dead arm", "", "", "if FLAG { let z = 1; } else { shared t: f32[T]; let w = 2; }",
         "z = 1", "shared t");
    test("an unrolled loop", "", "", "var y: f32[2, T]; for q in 0 .. 2 { y[q, i] = 0; }",
         "for q in 0 .. 2 unrolled", NULL);
    test("a tile handed over",
         "fn f(x: f32[R]) -> f32[R] { var y: f32[R]; y[i] = x[i]; return y; }", "",
         "var x: f32[T] = 1; let z = f(x); x[i] = z[i];", "x[i] = y[i]", "f[i");
    test("a tile of several returns",
         "fn f(x: f32[R], k: i32) -> f32[R] { if k > 1 { return x; } var y: f32[R]; y[i] = 0; "
         "return y; }",
         "", "var x: f32[T] = 1; let z = f(x, n); x[i] = z[i];", "leave the function", NULL);
    test("branches of an expression", "fn f(x: f32) -> f32 { if x > 1 { return x; } return 1; }",
         "", "var y: f32[T]; y[i] = f(X[r, i]) * a;", "(X[r, i] > 1.0 ? X[r, i] : 1.0) * a", NULL);
    test("a constant argument",
         "fn f(x: f32, k: i32) -> f32 { if k == 2 { return x * x; } return x; }", "",
         "var y: f32[T]; y[i] = f(a, 2);", "y[i] = a * a", NULL);
    test("extents become floats", "", "", "let z = a / N;", "z = a / f32(N)", NULL);
    test("constants are folded in f64", "", "const C = 1.0 / 3 * 3;", "let z = a * C;",
         "z = a * 1.0", NULL);
    test("indexes are integers", "", "", "var y: f32[T]; y[i] = c*T + i < N ? 1 : 0;",
         "c * 64 + i < N ? 1 : 0", NULL);
    test("requirements one by one", "", "requires M >= 1 && N % T == 0;", "",
         "precondition N % 64 == 0", NULL);
    if (failed) printf("elaborate: %d failed\n", failed);
    return failed != 0;
}
