/* Over what the variables of a role vary. Each row is the body of a role of two instances in the loop over the grid
 * of a cluster of two blocks along `c`; `z` is what is asked about. */
#include "elaborate/elaborate.h"
#include "flow/uniform.h"
#include "parser/parser.h"
#include "tests/unit/expect.h"

static const struct {
    const char *body;
    Uniformity among;
    uint32_t along;
} cases[] = {
    {"var z = 0; for i in 0 .. n { z = i; }", UNIFORM_ROLE, 0},
    {"var z = 0; if rank == 0 { z = n; }", UNIFORM_INSTANCE, 0},
    {"var z = 0; if r == 0 { z = n; }", UNIFORM_ROLE, 0},
    {"var z = 0; if c == 0 { z = n; }", UNIFORM_ROLE, 2},
    {"var z = 0; if c == rank { z = n; }", UNIFORM_INSTANCE, 2},
    /* what is assigned late in a loop is read early in the next iteration */
    {"var w = 0; var z = 0; for i in 0 .. n { z = w; w = rank; }", UNIFORM_INSTANCE, 0},
    {"var w = 0; var v = 0; var z = 0; for k in 0 .. 2 { for i in 0 .. n { z = v; v = w; w = rank + c; } }",
     UNIFORM_INSTANCE, 2},
    /* where some have left, the others are alone */
    {"var z = 0; for i in 0 .. n { if rank < i { break; } z = i; }", UNIFORM_INSTANCE, 0},
    {"var z = 0; for i in 0 .. n { if rank < i { continue; } z = i; }", UNIFORM_INSTANCE, 0},
    {"var z = 0; for i in 0 .. n { z = i; if c < i { break; } }", UNIFORM_ROLE, 2},
    {"var z = 0; for k in 0 .. n { for i in 0 .. n { if rank < i { break; } } z = k; }", UNIFORM_ROLE, 0},
    {"var z = 0; if rank == 1 { return; } z = n;", UNIFORM_INSTANCE, 0},
    {"var z = 0; for k in 0 .. 3 { let q = left(rank, k); z += q; }", UNIFORM_INSTANCE, 0},
    {"var z = 0; for k in 0 .. 3 { let q = left(n, k); z += q; }", UNIFORM_ROLE, 0},
    /* bounds */
    {"var z = 0; for i in 0 .. rank { z += 1; }", UNIFORM_INSTANCE, 0},
    {"var z = 0; for i in 0 .. c { z += 1; }", UNIFORM_ROLE, 2},
    {"var z = 0; for i in c .. n { z = 1; }", UNIFORM_ROLE, 2},
    /* memory of an instance, of a block, and of all */
    {"shared t: f32[T]; t[i] = 0; var z = 0; if t[0] > 1 { z = 1; }", UNIFORM_INSTANCE, 2},
    {"var z = 0; if I[0] > 1 { z = 1; }", UNIFORM_ROLE, 0},
    {"var z = 0; if I[c] > 1 { z = 1; }", UNIFORM_ROLE, 2},
    {"var w = 0; unsafe { w = lane; } var z = 0; if w == 0 { z = 1; }", UNIFORM_LANE, 0},
    {"var w = 0; unsafe { w = warp; } var z = w;", UNIFORM_LANE, 0},
    {"unsafe { var z = 0; ptx \"mov.u32 {0}, %smid;\" (out z); }", UNIFORM_LANE, 2},
    {"shared t: f32[T]; t[i] = 0; unsafe { var z = address(t); }", UNIFORM_INSTANCE, 0},
    {"unsafe { var z = address(Y); }", UNIFORM_ROLE, 0},
    /* what is assigned again is what it holds from there on */
    {"var w = rank; w = n; var z = w;", UNIFORM_ROLE, 0},
    {"var w = 0; unsafe { w = lane; } w = n; var z = w;", UNIFORM_ROLE, 0},
    {"var w = c; w = n; var z = 0; if w == 0 { z = 1; }", UNIFORM_ROLE, 0},
    {"var w = rank; if n > 0 { w = n; } var z = w;", UNIFORM_INSTANCE, 0},
    {"var w = rank; if n > 0 { w = n; } else { w = r; } var z = w;", UNIFORM_ROLE, 0},
    {"var w = rank; for i in 0 .. n { w = i; } var z = w;", UNIFORM_INSTANCE, 0},
    {"var w = rank; for i in 0 .. 3 { w = i; } var z = w;", UNIFORM_ROLE, 0},
    {"var w = n; for i in 0 .. n { var z = w; w = rank; w = c; }", UNIFORM_ROLE, 2},
    {"var w = n; if rank == 0 { w = 1; } w = 2; var z = w;", UNIFORM_ROLE, 0},
    /* how often the loop comes makes no other value of its variable */
    {"var z = 0; for i in 0 .. c { z = i; }", UNIFORM_ROLE, 2},
    {"var w = 0; for i in c .. n { w = i; } var z = r;", UNIFORM_ROLE, 0},
    /* those that left are back after the region that they went to the end of */
    {"var w = 0; for i in 0 .. n { if rank < i { continue; } w = i; } var z = n;", UNIFORM_ROLE, 0},
    {"for k in 0 .. n { var z = k; for i in 0 .. n { if rank < i { break; } } }", UNIFORM_ROLE, 0},
    {"for k in 0 .. n { var z = k; if rank < k { break; } }", UNIFORM_INSTANCE, 0},
    {"var z = 0; for k in 0 .. n { for i in 0 .. n { if rank < i { return; } } z = k; }",
     UNIFORM_INSTANCE, 0},
    {"for k in 0 .. n { for i in 0 .. n { if rank < i { break; } if n < i { return; } } } var z = n;",
     UNIFORM_INSTANCE, 0},
    {"for i in 0 .. rank { if n < 3 { return; } } var z = n;", UNIFORM_INSTANCE, 0},
    {"for i in 0 .. rank { return; } var z = n;", UNIFORM_INSTANCE, 0},
};

static const char *kernel(Arena *arena, const char *body) {
    return arena_printf(arena,
                        "fn left(a: i32, k: i32) -> i32 { var x = 0; if a < k { return x; } x = k; return x; }\n"
                        "kernel k(I: i32[M], out Y: f32[M, N], n: i32) for sm_90a {\n"
                        "const T = 64; grid (r: M, c: ceil(N, T)); cluster (c: 2);\n"
                        "role work: 2 warpgroups { for (r, c) in grid { %s } } }",
                        body);
}

static Prog *elaborated(Arena *arena, const char *text) {
    Names *names = names_new(arena);
    const Source *source = source_new(arena, "unit.pipe", text, strlen(text));
    Diags *diags = diags_new(arena, source);
    Ast *ast = parser_parse(arena, names, source, diags);
    const AstItem *item = ast->items.count ? ast->items.items[ast->items.count - 1] : NULL;
    Prog *prog = diags->errors ? NULL : elaborate(arena, names, ast, item, NULL, 0, diags);
    return diags->errors ? NULL : prog;
}

static void try_case(size_t index) {
    Arena *arena = arena_new();
    Prog *prog = elaborated(arena, kernel(arena, cases[index].body));
    bool found = false;
    for (size_t i = 0; prog && i < 1; i++) {
        Role *role = &prog->roles.items[0];
        role->code = code_lower(arena, prog, role);
        flow_uniform(arena, prog, role);
        for (size_t k = 0; k < role->locals.count; k++) {
            const Local *local = &role->locals.items[k];
            if (strcmp(local->name, "z") != 0) continue;
            uint32_t along = local->along & cluster_axes(prog);
            found = local->uniformity == cases[index].among && along == cases[index].along;
            if (!found) fprintf(stderr, "uniformity %d, along %u\n", (int)local->uniformity, (unsigned)along);
        }
    }
    if (!found) fprintf(stderr, "of: %s\n", cases[index].body);
    EXPECT(found);
    arena_free(arena);
}

int main(void) {
    for (size_t i = 0; i < COUNT_OF(cases); i++) try_case(i);
    return expect_failures();
}
