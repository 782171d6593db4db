/* Threads and blocks over which variables vary. Each row is the body of a role of two instances
 * in the loop over the grid of a cluster of two blocks along `c`; the result is for `z`. */
#include "flow/uniform.h"
#include "tests/unit/program.h"

typedef struct Case {
    const char *body;
    Uniformity among;
    uint32_t along;
} Case;

static const Case cases[] = {
    {"var z = 0; for i in 0 .. n { z = i; }", UNIFORM_ROLE, 0},
    {"var z = 0; if rank == 0 { z = n; }", UNIFORM_INSTANCE, 0},
    {"var z = 0; if r == 0 { z = n; }", UNIFORM_ROLE, 0},
    {"var z = 0; if c == 0 { z = n; }", UNIFORM_ROLE, 2},
    {"var z = 0; if c == rank { z = n; }", UNIFORM_INSTANCE, 2},
    /* A late assignment in a loop is read early in the next iteration */
    {"var w = 0; var z = 0; for i in 0 .. n { z = w; w = rank; }", UNIFORM_INSTANCE, 0},
    {"var w = 0; var v = 0; var z = 0; for k in 0 .. 2 { for i in 0 .. n { z = v; v = w; w = rank "
     "+ c; } }",
     UNIFORM_INSTANCE, 2},
    /* After some threads have left, the others are divergent */
    {"var z = 0; for i in 0 .. n { if rank < i { break; } z = i; }", UNIFORM_INSTANCE, 0},
    {"var z = 0; for i in 0 .. n { if rank < i { continue; } z = i; }", UNIFORM_INSTANCE, 0},
    {"var z = 0; for i in 0 .. n { z = i; if c < i { break; } }", UNIFORM_ROLE, 2},
    {"var z = 0; for k in 0 .. n { for i in 0 .. n { if rank < i { break; } } z = k; }",
     UNIFORM_ROLE, 0},
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
    /* Stages acquired by the block */
    {"let s = consume <p>; let z = s.index; release s;", UNIFORM_ROLE, 0},
    {"unsafe { let z = consume <p>.phase; }", UNIFORM_ROLE, 0},
    {"unsafe { var z = u32(0); for k in 0 .. n { z = consume <p>.phase; if c > k { consume <p> as "
     "s { } } } }",
     UNIFORM_ROLE, 2},
    {"let s = consume <p>; unsafe { let z = address(s.x); } release s;", UNIFORM_ROLE, 0},
    /* After a second assignment a variable has only that value */
    {"var w = rank; w = n; var z = w;", UNIFORM_ROLE, 0},
    {"var w = 0; unsafe { w = lane; } w = n; var z = w;", UNIFORM_ROLE, 0},
    {"var w = c; w = n; var z = 0; if w == 0 { z = 1; }", UNIFORM_ROLE, 0},
    {"var w = rank; if n > 0 { w = n; } var z = w;", UNIFORM_INSTANCE, 0},
    {"var w = rank; if n > 0 { w = n; } else { w = r; } var z = w;", UNIFORM_ROLE, 0},
    {"var w = rank; for i in 0 .. n { w = i; } var z = w;", UNIFORM_INSTANCE, 0},
    {"var w = rank; for i in 0 .. 3 { w = i; } var z = w;", UNIFORM_ROLE, 0},
    {"var w = n; for i in 0 .. n { var z = w; w = rank; w = c; }", UNIFORM_ROLE, 2},
    {"var w = n; if rank == 0 { w = 1; } w = 2; var z = w;", UNIFORM_ROLE, 0},
    /* The number of iterations does not make the loop variable vary between blocks */
    {"for z in 0 .. c { }", UNIFORM_ROLE, 0},
    {"for z in c .. n { }", UNIFORM_ROLE, 2},
    {"for z in 0 .. rank { }", UNIFORM_INSTANCE, 0},
    {"if rank == 0 { for z in 0 .. n { } }", UNIFORM_INSTANCE, 0},
    {"for z in 0 .. n { if rank < z { break; } }", UNIFORM_INSTANCE, 0},
    {"if rank == 0 { for z in 0 .. n { break; } }", UNIFORM_INSTANCE, 0},
    {"var z = 0; for i in even { z = n; }", UNIFORM_ROLE, 0},
    {"var z = 0; for i in odd { z = n; }", UNIFORM_ROLE, 2},
    /* Threads that left have rejoined after the region that they left */
    {"var w = 0; for i in 0 .. n { if rank < i { continue; } w = i; } var z = n;", UNIFORM_ROLE, 0},
    {"for k in 0 .. n { var z = k; for i in 0 .. n { if rank < i { break; } } }", UNIFORM_ROLE, 0},
    {"for k in 0 .. n { var z = k; if rank < k { break; } }", UNIFORM_INSTANCE, 0},
    {"var z = 0; for k in 0 .. n { for i in 0 .. n { if rank < i { return; } } z = k; }",
     UNIFORM_INSTANCE, 0},
    {"for k in 0 .. n { for i in 0 .. n { if rank < i { break; } if n < i { return; } } } var z = "
     "n;",
     UNIFORM_INSTANCE, 0},
    {"for i in 0 .. n { if rank < i { continue; } if n < 3 { return; } } var z = n;",
     UNIFORM_INSTANCE, 0},
    {"for i in 0 .. n { if rank < i { if n < 3 { return; } break; } } var z = n;", UNIFORM_INSTANCE,
     0},
    {"for i in 0 .. n { if rank < i { continue; } if n < i { break; } } var z = n;", UNIFORM_ROLE,
     0},
    {"for i in 0 .. rank { if n < 3 { return; } } var z = n;", UNIFORM_INSTANCE, 0},
    {"for i in 0 .. rank { return; } var z = n;", UNIFORM_INSTANCE, 0},
};

/* In turn: a stage belongs to one instance. */
static const Case in_turn[] = {
    {"let s = consume <p>; let z = s.index; release s;", UNIFORM_INSTANCE, 0},
    {"unsafe { let z = consume <p>.phase; }", UNIFORM_INSTANCE, 0},
    {"unsafe { let z = (consume <p>.full); }", UNIFORM_INSTANCE, 0},
    {"let s = consume <p>; unsafe { let z = address(s.x); } release s;", UNIFORM_INSTANCE, 0},
};

/* Control of the innermost loop */
static const Case controls[] = {
    {"for i in 0 .. n { }", UNIFORM_ROLE, 0},
    {"for i in c .. n { }", UNIFORM_ROLE, 2},
    {"for i in 0 .. rank { }", UNIFORM_INSTANCE, 0},
    {"for i in odd { }", UNIFORM_ROLE, 2},
    {"if rank == 0 { if n > 0 { for i in 0 .. n { } } }", UNIFORM_INSTANCE, 0},
    {"if rank == 0 { } for i in 0 .. n { }", UNIFORM_ROLE, 0},
    {"for i in 0 .. n { if rank < i { break; } }", UNIFORM_INSTANCE, 0},
    {"for k in 0 .. n { for i in 0 .. n { } if c < k { break; } }", UNIFORM_ROLE, 2},
    {"for k in 0 .. n { for i in 0 .. n { if rank < i { return; } } }", UNIFORM_INSTANCE, 0},
    {"let q = deep(rank, n);", UNIFORM_INSTANCE, 0},
    {"let q = deep(n, n);", UNIFORM_ROLE, 0},
};

/* Control of the body of an inlined function that returns early */
static const Case bodies[] = {
    {"let q = deep(n, n);", UNIFORM_ROLE, 0},
    {"if rank == 0 { let q = deep(n, n); }", UNIFORM_INSTANCE, 0},
    {"for i in c .. n { let q = deep(n, n); }", UNIFORM_ROLE, 2},
    {"if rank == 0 { let q = first(); }", UNIFORM_INSTANCE, 0},
};

/* Operands of inline PTX */
static const Case operands[] = {
    {"var w = rank; unsafe { ptx \"// {0}\" (in w); }", UNIFORM_INSTANCE, 0},
    {"var w = rank; w = c; unsafe { ptx \"// {0}\" (in w + 1); }", UNIFORM_ROLE, 2},
};

static const char *kernel(Arena *arena, const char *body, bool turn) {
    return arena_printf(
        arena,
        "fn left(a: i32, k: i32) -> i32 { var x = 0; if a < k { return x; } x = k; return x; }\n"
        "fn deep(a: i32, k: i32) -> i32 { for i in 0 .. k { if a < i { return i; } } return k; }\n"
        "fn first() -> i32 { for i in 0 .. 3 { return i; } return 3; }\n"
        "kernel k(I: i32[M], out Y: f32[M, N], n: i32) for sm_90a {\n"
        "const T = 64; grid (r: M, c: ceil(N, T)); cluster (c: 2);\n"
        "range even = 0 .. M where even %% 2 == 0; range odd = 0 .. M where odd > c;\n"
        "pipe p[2] load -> work arrivals full 1 empty 1 { x: f32[T]; }\n"
        "role work: 2 warpgroups%s { for (r, c) in grid { %s } }\n"
        "role load: 1 warp { } }",
        turn ? " in turn" : "", body);
}

static Role *solved(Arena *arena, Prog *prog) {
    Role *role = &prog->roles.items[0];
    role->code = code_lower(arena, prog, role);
    flow_uniform(arena, prog, role);
    return role;
}

static void expect_case(const Case *row, Uniformity among, uint32_t along) {
    bool right = among == row->among && along == row->along;
    if (!right) fprintf(stderr, "uniformity %d, along %u of: %s\n", among, along, row->body);
    EXPECT(right);
}

static void try_variable(const Case *row, bool turn) {
    Arena *arena = arena_new();
    Prog *prog = program_elaborated(arena, kernel(arena, row->body, turn));
    const Local *local = NULL;
    Role *role = prog ? solved(arena, prog) : NULL;
    for (size_t i = 0; role && i < role->locals.count; i++)
        if (strcmp(role->locals.items[i].name, "z") == 0) local = &role->locals.items[i];
    EXPECT(local != NULL);
    if (local) expect_case(row, local->uniformity, local->along & cluster_axes(prog));
    arena_free(arena);
}

static void try_control(const Case *row, RegionKind kind) {
    Arena *arena = arena_new();
    Prog *prog = program_elaborated(arena, kernel(arena, row->body, false));
    const Region *inner = NULL;
    const FlowCode *code = prog ? solved(arena, prog)->code : NULL;
    for (size_t i = 0; code && i < code->regions.count; i++)
        if (code->regions.items[i].kind == kind) inner = &code->regions.items[i];
    EXPECT(inner != NULL);
    if (inner) expect_case(row, inner->control, inner->along);
    arena_free(arena);
}

static void try_operand(const Case *row) {
    Arena *arena = arena_new();
    Prog *prog = program_elaborated(arena, kernel(arena, row->body, false));
    const Expr *operand = NULL;
    const FlowCode *code = prog ? solved(arena, prog)->code : NULL;
    for (size_t i = 0; code && i < code->rows.count; i++)
        if (code->rows.items[i].kind == ROW_UNSAFE)
            operand = code->rows.items[i].unsafe->operands.items[0].value;
    EXPECT(operand != NULL);
    if (operand) expect_case(row, operand->uniformity, operand->along);
    arena_free(arena);
}

int main(void) {
    for (size_t i = 0; i < COUNT_OF(cases); i++) try_variable(&cases[i], false);
    for (size_t i = 0; i < COUNT_OF(in_turn); i++) try_variable(&in_turn[i], true);
    for (size_t i = 0; i < COUNT_OF(controls); i++) try_control(&controls[i], REGION_FOR);
    for (size_t i = 0; i < COUNT_OF(bodies); i++) try_control(&bodies[i], REGION_BLOCK);
    for (size_t i = 0; i < COUNT_OF(operands); i++) try_operand(&operands[i]);
    return expect_failures();
}
