/* Validity of Code: a lowered role is valid, and invalid after a change of one row. */
#include "flow/code.h"
#include "tests/unit/program.h"

static const char text[] =
    "kernel k(X: f32[N], out Y: f32[N]) for sm_90a {\n"
    "const T = 64; grid persistent (t: ceil(N, T));\n"
    "pipe p[3] load -> work { x: f32[T]; }\n"
    "role load: 1 warp { for t in grid { produce <p> as s { s.x[i] = X[t*T + i]; } } }\n"
    "role work: 2 warpgroups in turn { for t in grid {\n"
    "    var y: f32[T]; var n = 0;\n"
    "    for k in 0 .. 4 { if k > t { break; } if n == 3 { continue; } n += 1; }\n"
    "    turn { let s = consume <p>; y[i] = s.x[i]; release s; }\n"
    "    if n > 2 { shared z: f32[T]; z[i] = y[i]; Y[t*T + i] = z[i]; } else { Y[t*T + i] = y[i]; "
    "}\n"
    "} } }";

static FlowCode *lowered(Arena *arena) {
    Prog *prog = program_elaborated(arena, text);
    return prog ? code_lower(arena, prog, &prog->roles.items[1]) : NULL;
}

static Row *first(FlowCode *code, RowKind kind) {
    for (size_t at = 0; at < code->rows.count; at++)
        if (code->rows.items[at].kind == kind) return &code->rows.items[at];
    return NULL;
}

static Row *last(FlowCode *code, RowKind kind) {
    for (size_t at = code->rows.count; at-- > 0;)
        if (code->rows.items[at].kind == kind) return &code->rows.items[at];
    return NULL;
}

static void no_handle(FlowCode *code) { first(code, ROW_ACQUIRE)->handle = 99; }
static void no_variable(FlowCode *code) { first(code, ROW_SET)->local = 99; }
static void no_region(FlowCode *code) { first(code, ROW_SET)->region = 99; }
static void other_region(FlowCode *code) { first(code, ROW_SET)->region = 0; }
static void no_turn(FlowCode *code) { first(code, ROW_TAKE)->turn = 2; }
static void no_tile(FlowCode *code) { first(code, ROW_TILE)->tile = NULL; }
static void leaves_inwards(FlowCode *code) {
    first(code, ROW_LEAVE)->target = (int)code->regions.count - 1;
}
static void leaves_nothing(FlowCode *code) { first(code, ROW_LEAVE)->target = -1; }
static void again_of_no_loop(FlowCode *code) {
    first(code, ROW_LEAVE)->again = true, first(code, ROW_LEAVE)->target = 0;
}
static void no_next(FlowCode *code) { first(code, ROW_NEXT)->kind = ROW_TILE; }
static void wrong_next(FlowCode *code) { code->regions.items[1].next--; }
static void wrong_end(FlowCode *code) { code->regions.items[1].end--; }
static void wrong_parent(FlowCode *code) { code->regions.items[2].parent = 0; }
static void not_closed(FlowCode *code) { last(code, ROW_CLOSE)->kind = ROW_RELEASE; }
static void closed_twice(FlowCode *code) {
    Row *row = first(code, ROW_RELEASE);
    row->kind = ROW_CLOSE, row->object = OBJECT_HANDLE, row->index = row->handle;
}
static void closes_another(FlowCode *code) {
    last(code, ROW_CLOSE)->object = OBJECT_HANDLE, last(code, ROW_CLOSE)->index = 0;
}
static void no_exit(FlowCode *code) { code->rows.count--; }
static void rows_after_the_end(FlowCode *code) { first(code, ROW_SET)->kind = ROW_EXIT; }

static void (*const changes[])(FlowCode *) = {
    no_handle,      no_variable,    no_region,          other_region,     no_turn,
    no_tile,        leaves_inwards, leaves_nothing,     again_of_no_loop, no_next,
    wrong_next,     wrong_end,      wrong_parent,       not_closed,       closed_twice,
    closes_another, no_exit,        rows_after_the_end,
};

int main(void) {
    for (size_t i = 0; i <= COUNT_OF(changes); i++) {
        Arena *arena = arena_new();
        FlowCode *code = lowered(arena);
        Str why = str_new(arena);
        EXPECT(code != NULL);
        if (code && i < COUNT_OF(changes)) changes[i](code);
        bool valid = code && code_valid(arena, code, &why);
        if (valid != (i == COUNT_OF(changes)))
            fprintf(stderr, "change %zu: %s\n", i, why.length ? why.text : "valid");
        EXPECT(valid == (i == COUNT_OF(changes)));
        arena_free(arena);
    }
    return expect_failures();
}
