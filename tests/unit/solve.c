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

static void *fresh_state(Flow *flow) { return NEW(flow->arena, int); }
static void *copy_state(Flow *flow, const void *state) { return (void)state, fresh_state(flow); }

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

/* ---- handlers by effect ---------------------------------------------------------------------- */

static void note(Flow *flow, char what) { str_char(flow->data, what); }
static void every_row(Flow *flow, int at, void *state) { (void)at, (void)state, note(flow, '.'); }
static void set_row(Flow *flow, int at, void *state) { (void)at, (void)state, note(flow, 's'); }
static void read_row(Flow *flow, int at, void *state) { (void)at, (void)state, note(flow, 'r'); }
static void if_row(Flow *flow, int at, void *state) { (void)at, (void)state, note(flow, 'i'); }
static void open_row(Flow *flow, int at, void *state) { (void)at, (void)state, note(flow, 'o'); }
static bool reports_nothing(const Flow *flow) { return flow == NULL; }

static const Rule by_effect = {
    .name = "effects",
    .together = true,
    .start = fresh_state,
    .copy = copy_state,
    .join = join,
    .reports = reports_nothing,
    .on = {.access = {[ACCESS_SETS] = set_row, [ACCESS_EVALUATES] = read_row},
           .scope = {[SCOPE_OPENS] = open_row},
           .control = {[CONTROL_IF] = if_row}}};

/* What the handlers note; of `every` too: a dot first for each row */
static const char *noted(Arena *arena, const char *body, bool every) {
    Rule rule_of = by_effect;
    Str *text = NEW(arena, Str);
    Prog *prog = elaborated(arena, body);
    if (every) rule_of.on.every = every_row;
    *text = str_new(arena);
    if (prog) solve(arena, code_lower(arena, prog, &prog->roles.items[0]), &rule_of, text);
    return text->text;
}

/* A row calls its handlers in the order of their fields; one without a handler calls none. */
static void check_handlers(void) {
    Arena *arena = arena_new();
    EXPECT(strcmp(noted(arena, "let a = m + 1; if a > 2 { }", false), "rsri") == 0);
    const char *all = noted(arena, "let a = m + 1;", true);
    EXPECT(strcmp(all, "..r.s....") == 0);
    EXPECT(strstr(noted(arena, "if m > 2 { var t: f32[32]; t[i] = 1.0; }", true), ".ri") != NULL);
    EXPECT(strstr(noted(arena, "if m > 2 { var t: f32[32]; t[i] = 1.0; }", true), ".o") != NULL);
    arena_free(arena);
}

int main(void) {
    check_handlers();
    EXPECT(states_of("if n > %d { }", 40) <= 12);
    EXPECT(states_of("if n > %d { if m > n { } }", 40) <= 20);
    /* States at loop heads are kept, and those of leaves until their join */
    EXPECT(states_of("for i in 0 .. n { if i > %d { break; } }", 40) <= 40 + 12);
    EXPECT(states_of("for i in 0 .. n { if i > %d { continue; } }", 40) <= 40 + 12);
    EXPECT(states_of("if n > %d { return; }", 40) <= 40 + 12);
    return expect_failures();
}
