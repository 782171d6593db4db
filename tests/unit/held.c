/* Stages that a role holds: for each end of a pipe the most at once, and the most acquires since
 * that of the oldest one at a wait. Each row is the body of the consumer of two rings of 40
 * stages, in the loop over the grid; # acquires a stage of `p` and releases it. */
#include "flow/held.h"
#include "tests/unit/program.h"

static const struct {
    const char *body;
    int most, window;
} cases[] = {
    {"#", 1, 0},
    {"# #", 1, 0},
    {"let s = consume <p>; # # release s;", 2, 2},
    {"let s = consume <p>; let t = consume <p>; release s; release t; #", 2, 1},
    {"var s = consume <p>; let t = s; # release t;", 2, 1},
    {"var s = consume <p>; release s; { let t = consume <p>; s = t; } # # release s;", 2, 2},
    /* The held stage ages by one with each iteration of a short loop */
    {"let s = consume <p>; for i in 0 .. 3 { # } release s; #", 2, 3},
    {"let s = consume <p>; for i in 0 .. 4 { for k in 0 .. 2 { # } } release s;", 2, 8},
    {"let s = consume <p>; for i in 0 .. n { # } release s;", 2, 40},
    /* Late releases: each block keeps its stages, on paths that keep as many and on those that
     * keep fewer */
    {"for i in 0 .. n { consume <p> lag 2 as s { } }", 3, 2},
    {"for i in 0 .. n { consume <p> lag 2 as s { } # }", 3, 4},
    {"for i in 0 .. n { if i > 3 { continue; } consume <p> lag 2 as s { }"
     " consume <q> lag 2 as t { } consume <q> as u { } consume <q> as v { } }",
     3, 2},
};

static Prog *elaborated(Arena *arena, const char *body) {
    const char *text =
        arena_printf(arena,
                     "kernel k(X: f32[M], n: i32) for sm_90a {\n"
                     "grid (m: M); pipe p[40] load -> work; pipe q[40] load -> work;\n"
                     "role load: 1 warp { }\n"
                     "role work: 1 warp { for m in grid { %s } } }",
                     program_replaced(arena, body, "consume <p> as any { }"));
    return program_elaborated(arena, text);
}

static void try_case(const char *body, int most, int window) {
    Arena *arena = arena_new();
    Prog *prog = elaborated(arena, body);
    if (prog) {
        FlowCode *code = code_lower(arena, prog, &prog->roles.items[1]);
        const HeldEnd *end = &flow_held(arena, code)->ends[END_CONSUME];
        if (end->most != most || end->window != window)
            fprintf(stderr, "of: %s\n    at most %d, %d back\n", body, end->most, end->window);
        EXPECT(end->most == most && end->window == window);
    }
    arena_free(arena);
}

int main(void) {
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        try_case(cases[i].body, cases[i].most, cases[i].window);
    return expect_failures();
}
