/* An analysis that a limit on work ends says so: its role is not proved. With enough work the same
 * role is clean. */
#include "check/passes.h"
#include "elaborate/elaborate.h"
#include "parser/parser.h"
#include "tests/unit/expect.h"

static const char text[] =
    "kernel k(X: f32[M, 64], out Y: f32[M, 64]) for sm_90a {\n"
    "grid persistent (m: M); pipe p[4] load -> work { x: f32[64]; }\n"
    "role load: 1 warp { for m in grid { produce <p> as s { s.x[c] = X[m, c]; } } }\n"
    "role work: 1 warp { for m in grid { let s = consume <p>; Y[m, c] = s.x[c]; release s; } } }";

/* With so many rows to step over in the role `work` */
static void check(Scratch *scratch, long work) {
    Names *names = names_new(scratch->arena);
    scratch->diags =
        diags_new(scratch->arena, source_new(scratch->arena, "unit.pipe", text, strlen(text)));
    Ast *ast = parser_parse(scratch->arena, names, scratch->diags->source, scratch->diags);
    Prog *prog =
        elaborate(scratch->arena, names, ast, ast->kernels.items[0], NULL, 0, scratch->diags);
    for (size_t r = 0; r < prog->roles.count; r++)
        prog->roles.items[r].code = code_lower(scratch->arena, prog, &prog->roles.items[r]);
    prog->roles.items[1].code->work = work;
    (void)tiles_check(scratch->arena, prog, scratch->diags);
    linear_check(scratch->arena, prog, scratch->diags);
}

/* Both rules say that they were not followed to their end. */
static void expect_incomplete(Scratch *scratch) {
    Str rendered = str_new(scratch->arena);
    diags_render(scratch->diags, false, &rendered);
    EXPECT(scratch->diags->items.count == 2);
    for (size_t i = 0; i < scratch->diags->items.count; i++)
        EXPECT(scratch->diags->items.items[i]->code == P0490);
    EXPECT(strstr(rendered.text, "it is not proved that each stage is released exactly once"));
    EXPECT(strstr(rendered.text, "it is not proved that no more stages are held than a ring has"));
}

int main(void) {
    Scratch scratch = scratch_new();
    check(&scratch, 5);
    expect_incomplete(&scratch);
    check(&scratch, FLOW_WORK);
    EXPECT_CLEAN(&scratch);
    scratch_free(&scratch);
    return expect_failures();
}
