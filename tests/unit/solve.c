/* The solver over the Code of a role: for a rule that reuses states, the number of states does
 * not depend on the length of the role. */
#include "flow/solve.h"
#include "tests/unit/program.h"

static void *fresh(Flow *flow) {
    void *made = flow_spare(flow);
    if (!made) ++*(int *)flow->data;
    return made ? made : NEW(flow->arena, char);
}

static void *copy(Flow *flow, const void *state) {
    (void)state;
    return fresh(flow);
}

static bool join(Flow *flow, void *to, const void *from, int at, int source) {
    (void)flow, (void)at, (void)source;
    EXPECT(to != from);
    return false;
}

static void step(Flow *flow, int at, void *state) { (void)flow, (void)at, (void)state; }

static const Rule rule = {.name = "unit",
                          .start = fresh,
                          .copy = copy,
                          .join = join,
                          .on = {.every = step},
                          .reuses = true};

static Prog *elaborated(Arena *arena, const char *body) {
    const char *text = arena_printf(arena,
                                    "kernel k(X: f32[M], n: i32) for sm_90a {\n"
                                    "grid (m: M); role work: 1 warp { for m in grid { %s } } }",
                                    body);
    return program_elaborated(arena, text);
}

/* Number of states that the rule makes for a role of `count` such statements; %d is the index of
 * each */
static int states_of(const char *statement, int count) {
    Arena *arena = arena_new();
    Str body = str_new(arena);
    for (int i = 0; i < count; i++) str_printf(&body, statement, i);
    Prog *prog = elaborated(arena, body.text);
    int made = 0;
    if (prog) solve(arena, code_lower(arena, prog, &prog->roles.items[0]), &rule, &made);
    arena_free(arena);
    return made;
}

int main(void) {
    EXPECT(states_of("if n > %d { }", 40) <= 12);
    EXPECT(states_of("if n > %d { if m > n { } }", 40) <= 20);
    /* States at loop heads are kept, and those of leaves until their join */
    EXPECT(states_of("for i in 0 .. n { if i > %d { break; } }", 40) <= 40 + 12);
    EXPECT(states_of("for i in 0 .. n { if i > %d { continue; } }", 40) <= 40 + 12);
    EXPECT(states_of("if n > %d { return; }", 40) <= 40 + 12);
    return expect_failures();
}
