/* Tokens and trees not covered by tests/parse: precedence, spans, comments, depth, names that
 * keep their spelling. */
#include "parser/parser.h"

#include "tests/unit/expect.h"

static Ast *parse(Arena *arena, const char *text, Diags **diags) {
    const Source *source = source_new(arena, "x.pipe", text, strlen(text));
    *diags = diags_new(arena, source);
    return parser_parse(arena, names_new(arena), source, *diags);
}

/* `const C = TEXT;` printed with all parentheses */
static void expr(const char *text, const char *wanted, int line) {
    Arena *arena = arena_new();
    Diags *diags;
    Str out = str_new(arena);
    ast_print(parse(arena, arena_printf(arena, "const C = %s;", text), &diags), &out);
    const char *got = diags->errors || out.length < 11
                          ? "an error"
                          : arena_copy(arena, out.text + 10, out.length - 11);
    if (strcmp(got, wanted) != 0) {
        fprintf(stderr, "%s:%d: `%s`: expected %s, got %s\n", __FILE__, line, text, wanted, got);
        failed_expectations++;
    }
    arena_free(arena);
}
#define EXPR(text, wanted) expr((text), (wanted), __LINE__)

static void precedence(void) {
    EXPR("a + b * c - d", "((a + (b * c)) - d)");
    EXPR("a / b * c % d", "(((a / b) * c) % d)");
    EXPR("-a * b", "((-a) * b)");
    EXPR("- -a", "(-(-a))");
    EXPR("!a == b", "((!a) == b)");
    EXPR("a < b && c >= d || e != f", "(((a < b) && (c >= d)) || (e != f))");
    EXPR("a || b && c", "(a || (b && c))");
    EXPR("a ? b : c ? d : e", "(a ? b : (c ? d : e))");
    EXPR("a ? b ? c : d : e", "(a ? (b ? c : d) : e)");
    EXPR("a || b ? c + 1 : d", "((a || b) ? (c + 1) : d)");
    EXPR("(a + b) * c", "((a + b) * c)");
    EXPR("x.y[i, j + 1][2].z", "x.y[i, (j + 1)][2].z");
    EXPR("f(a, g(), -h(1))", "f(a, g(), (-h(1)))");
    EXPR("old Y[i] + 1", "((old Y[i]) + 1)");
}

/* A reduction takes the following product: `*` belongs to it, `/ % + -`, comparisons and `?:`
 * end it */
static void reductions(void) {
    EXPR("sum[x] a * b", "(sum[x] (a * b))");
    EXPR("sum[x] a * b + c", "((sum[x] (a * b)) + c)");
    EXPR("sum[x] a * b / c", "((sum[x] (a * b)) / c)");
    EXPR("sum[x] a * b / c * d", "(((sum[x] (a * b)) / c) * d)");
    EXPR("sum[x] a % b", "((sum[x] a) % b)");
    EXPR("c * sum[x] a * b", "(c * (sum[x] (a * b)))");
    EXPR("sum[x] -a * b", "(sum[x] ((-a) * b))");
    EXPR("-sum[x] a * b", "(-(sum[x] (a * b)))");
    EXPR("sum[x] a / sum[y] b * c", "((sum[x] a) / (sum[y] (b * c)))");
    EXPR("sum[x] a * max[y, z] b * c", "(sum[x] (a * (max[y, z] (b * c))))");
    EXPR("min[x] a < 3 ? 1 : 2", "(((min[x] a) < 3) ? 1 : 2)");
    EXPR("max(a, max[x] b)", "max(a, (max[x] b))");
    EXPR("sum[x] a[x] - 1", "((sum[x] a[x]) - 1)");
}

static void numbers(void) {
    EXPR("18446744073709551615", "18446744073709551615");
    EXPR("0xFFFF_ffff", "4294967295");
    EXPR("1_000_000", "1000000");
    EXPR("0", "0");
    EXPR("1.5", "1.5");
    EXPR("1e-6", "1e-06");
    EXPR("1.442_695_040_888_963_4", "1.4426950408889634");
    EXPR("2.0", "2.0");
    EXPR("4.9e-324", "5e-324");
    EXPR("1.7976931348623157e308", "1.7976931348623157e+308");
    EXPR("0.000e99999999999999999999", "0.0");
    EXPR("0.1e1", "1.0");
}

static void spans(void) {
    Arena *arena = arena_new();
    Diags *diags;
    const char *text = "// one\nconst A = b + /* two */ c; // three";
    const Ast *ast = parse(arena, text, &diags);
    EXPECT(diags->errors == 0 && ast->items.count == 1 && ast->comments.count == 3);
    const AstItem *item = ast->items.items[0];
    EXPECT(item->consts.count == 1);
    const AstExpr *sum = item->consts.items[0].value;
    EXPECT(sum->kind == AST_BINARY && sum->span.lo == 17 && sum->span.hi == 32);
    EXPECT(ast_binary_op(sum).lo == 19 && ast_binary_op(sum).hi == 20 &&
           sum->binary.right->span.lo == 31);
    EXPECT(memcmp(text + ast->comments.items[1].lo, "/* two */", 9) == 0);
    EXPECT(ast->comments.items[2].hi == strlen(text));

    ast = parse(arena, "kernel f(A: f32[M, N]) for sm_90a { pipe p[2] a -> b; }", &diags);
    const AstItem *kernel = ast->items.items[0];
    EXPECT(kernel->span.lo == 0 && kernel->span.hi == 55 && kernel->head.hi == 33 &&
           kernel->kernel.close.lo == 54);
    const AstParam *param = &kernel->kernel.params.items[0];
    EXPECT(param->span.lo == 9 && param->mode_span.lo == param->mode_span.hi &&
           param->type->dims.count == 2);
    EXPECT(kernel->kernel.items.items[0]->span.lo == 36 &&
           kernel->kernel.items.items[0]->span.hi == 53);
    EXPECT(kernel->kernel.items.items[0]->pipe.fields.count == 0);
    arena_free(arena);
}

/* Equal names are equal pointers, for every kind of token */
static void spelling(void) {
    Arena *arena = arena_new();
    Diags *diags;
    const Ast *ast =
        parse(arena, "const stage = warps, warps = stage, b = max(1, 2), c = max(3, 4);", &diags);
    EXPECT(diags->errors == 0);
    const AstItem *item = ast->items.items[0];
    EXPECT(item->consts.items[0].name.text == item->consts.items[1].value->name);
    EXPECT(item->consts.items[2].value->call.callee.text ==
           item->consts.items[3].value->call.callee.text);
    arena_free(arena);
}

static size_t errors_of(const char *before, const char *unit, int count, const char *after) {
    Arena *arena = arena_new();
    Diags *diags;
    Str text = str_new(arena);
    str_add(&text, before);
    for (int i = 0; i < count; i++) str_add(&text, unit);
    str_add(&text, after);
    (void)parse(arena, text.text, &diags);
    size_t errors = diags->errors;
    arena_free(arena);
    return errors;
}

static void depth(void) {
    EXPECT(errors_of("const C = ", "(", 10000, "1;") == 1);
    EXPECT(errors_of("const C = a", "[a", 10000, "];") == 1);
    EXPECT(errors_of("const C = ", "- ", 10000, "1;") == 1);
    EXPECT(errors_of("const C = ", "a ? b : ", 10000, "1;") == 1);
    EXPECT(errors_of("const C = ", "sum[x] ", 10000, "1;") == 1);
    EXPECT(errors_of("const C = 1", " + 1", 20000, ";") == 1);
    EXPECT(errors_of("const C = a", ".b", 20000, ";") == 1);
    EXPECT(errors_of("fn f() ", "{", 10000, "}") == 1);
    EXPECT(errors_of("fn f() { if a { }", " else if b { }", 10000, "}") == 1);
    EXPECT(errors_of("fn f() { ", "for i in 0 .. 3 { ", 10000, "") == 1);
    /* the missing ends are reported once */
    EXPECT(errors_of("fn f() { ", "for i in 0 .. 3 { ", 390, "") == 1);
    EXPECT(errors_of("const C = 1", " + 1", 900, ";") == 0);
    EXPECT(errors_of("fn f() { ", "g(1);", 20000, "}") == 0);
}

static void tokens(void) {
    Arena *arena = arena_new();
    const char *text = "for k in kt[1..2] { s.a += 1.5; } // x";
    const Source *source = source_new(arena, "x", text, strlen(text));
    Str out = str_new(arena);
    tokens_print(arena, names_new(arena), source, diags_new(arena, source), &out);
    EXPECT(strcmp(out.text, "1:1 for\n1:5 name k\n1:7 in\n1:10 name kt\n1:12 [\n1:13 number "
                            "1\n1:14 ..\n1:16 number 2\n1:17 ]\n"
                            "1:19 {\n1:21 name s\n1:22 .\n1:23 name a\n1:25 +=\n1:28 "
                            "floating-point number 1.5\n1:31 ;\n1:33 }\n") == 0);
    arena_free(arena);
}

int main(void) {
    precedence();
    reductions();
    numbers();
    spans();
    spelling();
    depth();
    tokens();
    return expect_failures();
}
