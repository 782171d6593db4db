/* Families of growing programs: chains, products, conditions, loops, functions, roles. Checks
 * three sizes of each, the largest below 100 kB of text; each ends in less than 2 s and 200 MB,
 * with an incomplete verdict if it would need more. With a family and a size as arguments,
 * prints the program. */
#include "include/pipec.h"
#include "tests/unit/expect.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__)
#define SLOWER 20 /* slowdown by the sanitizers */
#define SIZES  1
#define SHARE  3 /* one family in so many */
#else
#define SLOWER 1
#define SIZES  3
#define SHARE  1
#endif
#define SECONDS_MOST (2.0 * SLOWER)
#define MEGA_MOST    (200L * SLOWER)

typedef struct Parts { /* parts of a kernel whose role `load` passes each tile to `work` */
    Str file;          /* before the kernel */
    Str params, kernel;
    Str load, work; /* for each tile, before the stage is acquired */
    Str use;        /* while the stage is held; empty: the tile is copied */
} Parts;

typedef struct Family {
    const char *name;
    int size; /* of the smallest one; the others are 2 and 4 times as large */
    void (*write)(Parts *parts, int n);
    /* largest size that is decided: right, with at most warnings */
    int decided;
} Family;

#define EACH(n) for (int i = 1; i < (n); i++)

static void use_if(Parts *p, const char *condition) {
    str_printf(&p->use, "if %s > 3 { Y[t*T + i] = s.x[i]; }", condition);
}
static void use_last(Parts *p, const char *name, int n) {
    use_if(p, arena_printf(p->use.arena, "%s%d", name, n - 1));
}

/* ---- values ---------------------------------------------------------------------------------- */

static void squares(Parts *p, int n) {
    str_add(&p->work, "let a0 = t + 1;\n");
    EACH(n) str_printf(&p->work, "let a%d = a%d * a%d;\n", i, i - 1, i - 1);
    use_last(p, "a", n);
}
static void sums_of_two(Parts *p, int n) {
    str_add(&p->work, "let a0 = t + 1; let b0 = t * t;\n");
    EACH(n)
    str_printf(&p->work, "let a%d = a%d + b%d; let b%d = a%d * 3 + b%d;\n", i, i - 1, i - 1, i,
               i - 1, i - 1);
    use_last(p, "a", n);
}
static void extremes(Parts *p, int n) {
    str_add(&p->work, "let a0 = t;\n");
    EACH(n)
    str_printf(&p->work, "let a%d = %s(a%d + %d, t * %d);\n", i, i % 2 ? "min" : "max", i - 1, i,
               i);
    use_last(p, "a", n);
}
static void selects(Parts *p, int n) {
    str_add(&p->work, "let a0 = t;\n");
    EACH(n)
    str_printf(&p->work, "let a%d = a%d > %d ? a%d - %d : a%d * 2;\n", i, i - 1, i, i - 1, i,
               i - 1);
    use_last(p, "a", n);
}
static void quotients(Parts *p, int n) {
    str_add(&p->work, "let a0 = t;\n");
    EACH(n)
    str_printf(&p->work, "let a%d = (a%d + %d) / 2 + a%d %% %d;\n", i, i - 1, i, i - 1, i + 1);
    use_last(p, "a", n);
}
static void nested_products(Parts *p, int n) {
    str_add(&p->work, "let c = ");
    EACH(n) str_char(&p->work, '(');
    str_add(&p->work, "t");
    EACH(n) str_printf(&p->work, " * (t + N + %d))", i);
    str_add(&p->work, ";");
    use_if(p, "c");
}
static void one_sum(Parts *p, int n) {
    str_add(&p->work, "let c = t");
    EACH(n) str_printf(&p->work, " + t * %d * N", i);
    str_add(&p->work, ";");
    use_if(p, "c");
}
static void brackets(Parts *p, int n) {
    str_add(&p->work, "let c = ");
    EACH(n) str_char(&p->work, '(');
    str_char(&p->work, 't');
    EACH(n) str_char(&p->work, ')');
    str_add(&p->work, ";");
    use_if(p, "c");
}
static void requirements(Parts *p, int n) {
    str_add(&p->params, ", Z: f32[M]");
    EACH(n) str_printf(&p->kernel, "requires N * %d + M * %d >= %d * (N + M);\n", i, 2 * i + 3, i);
}
static void float_squares(Parts *p, int n) {
    str_add(&p->use, "let a0 = X[t];\n");
    EACH(n) str_printf(&p->use, "let a%d = a%d * a%d;\n", i, i - 1, i - 1);
    str_printf(&p->use, "Y[t*T + i] = s.x[i] + a%d;", n - 1);
}

/* ---- control --------------------------------------------------------------------------------- */

static void conditions(Parts *p, int n) {
    str_add(&p->use, "if t < N");
    EACH(n) str_printf(&p->use, " %s t * %d < N + %d", i % 3 ? "&&" : "||", i, i);
    str_add(&p->use, " { Y[t*T + i] = s.x[i]; }");
}
static void counted(Parts *p, int n) {
    str_add(&p->work, "var c = 0;\n");
    EACH(n) str_printf(&p->work, "if t %% %d == %d { c = c + %d; }\n", i % 7 + 2, i % 3, i);
    use_if(p, "c");
}
static void breaks(Parts *p, int n) {
    str_add(&p->work, "var c = 0; for k in 0 .. t {\n");
    EACH(n) str_printf(&p->work, "if c == %d { break; } c = c + %d;\n", i, i);
    str_add(&p->work, "}");
    use_if(p, "c");
}
static void continues(Parts *p, int n) {
    str_add(&p->work, "var c = 0; for k in 0 .. t {\n");
    EACH(n) str_printf(&p->work, "if k %% %d == %d { continue; } c = c + %d;\n", i + 1, i - 1, i);
    str_add(&p->work, "}");
    use_if(p, "c");
}
static void rotated(Parts *p, int n) {
    for (int i = 0; i < n; i++) str_printf(&p->work, "var v%d = %d;\n", i, i);
    str_add(&p->work, "for k in 0 .. t { let first = v0;\n");
    EACH(n) str_printf(&p->work, "v%d = v%d;\n", i - 1, i);
    str_printf(&p->work, "v%d = first; }", n - 1);
    use_if(p, "v0");
}
static void nested_loops(Parts *p, int n) {
    for (int i = 0; i < n; i++) str_printf(&p->work, "for k%d in 0 .. t { ", i);
    for (int i = 0; i < n; i++) str_char(&p->work, '}');
}
static void nested_ifs(Parts *p, int n) {
    for (int i = 0; i < n; i++) str_printf(&p->work, "if t > %d { ", i);
    for (int i = 0; i < n; i++) str_char(&p->work, '}');
}
static void unrolled(Parts *p, int n) {
    str_printf(&p->use,
               "var y: f32[%d, 4] = 0; for a in 0 .. %d { for b in 0 .. %d { y[a, j] += f32(b); } "
               "} Y[t*T + i] = s.x[i];",
               n, n, n);
}
static void long_trips(Parts *p, int n) {
    str_printf(
        &p->load,
        "for a in 0 .. %d { for b in 0 .. %d { produce <p> as s { s.x[i] = X[t*T + i]; } } }", n,
        n);
    str_printf(&p->work,
               "for a in 0 .. %d { for b in 0 .. %d { consume <p> as s { if t < 0 { Y[t*T + i] = "
               "s.x[i]; } } } }",
               n, n);
}
static void held_under_conditions(Parts *p, int n) {
    EACH(n) str_printf(&p->load, "if X[t] > %d { produce <p> as s { s.x[i] = X[t*T + i]; } }\n", i);
    EACH(n) str_printf(&p->work, "if X[t] > %d { let z%d = consume <p>; release z%d; }\n", i, i, i);
}

/* ---- functions, objects ---------------------------------------------------------------------- */

static void doubling(Parts *p, int n) {
    str_add(&p->file, "fn g0(x: f32) -> f32 { return x + 1; }\n");
    EACH(n)
    str_printf(&p->file, "fn g%d(x: f32) -> f32 { return g%d(x) + g%d(x * 2); }\n", i, i - 1,
               i - 1);
    str_printf(&p->use, "Y[t*T + i] = g%d(s.x[i]);", n - 1);
}
static void doubling_of_statements(Parts *p, int n) {
    str_add(&p->file, "fn g0(inout y: f32[128]) { y[i] += 1; }\n");
    EACH(n)
    str_printf(&p->file, "fn g%d(inout y: f32[128]) { g%d(y); g%d(y); }\n", i, i - 1, i - 1);
    str_printf(&p->use, "var y: f32[128] = 0; g%d(y); Y[t*T + i] = s.x[i] + y[i];", n - 1);
}
static void calls(Parts *p, int n) {
    str_add(&p->file, "fn g0(x: f32) -> f32 { return x + 1; }\n");
    EACH(n) str_printf(&p->file, "fn g%d(x: f32) -> f32 { return g%d(x) + 1; }\n", i, i - 1);
    str_printf(&p->use, "Y[t*T + i] = g%d(s.x[i]);", n - 1);
}
static void statics(Parts *p, int n) {
    for (int i = 0; i < n; i++) str_printf(&p->kernel, "static S%d = 1 in {1, 2, 3, 4};\n", i);
    str_add(&p->work, "let q = S0");
    EACH(n) str_printf(&p->work, " + S%d", i);
    str_add(&p->work, ";");
    use_if(p, "q");
}
static void one_large_set(Parts *p, int n) {
    str_add(&p->kernel, "static S = 1 in {1");
    EACH(n) str_printf(&p->kernel, ", %d", i + 1);
    str_add(&p->kernel, "};");
    use_if(p, "S");
}
static void tiles(Parts *p, int n) {
    for (int i = 0; i < n; i++) str_printf(&p->use, "var y%d: f32[4] = %d;\n", i, i);
    str_add(&p->use, "Y[t*T + i] = s.x[i];");
}
static void additions(Parts *p, int n) {
    str_add(&p->use, "var y: f32[T] = 0;\n");
    EACH(n) str_printf(&p->use, "y[i] += s.x[i] * %d.5;\n", i);
    str_add(&p->use, "Y[t*T + i] = y[i];");
}
static void large_tile(Parts *p, int n) {
    str_printf(&p->use, "shared z: f32[%d]; z[j] = 0; z[j] += 1; Y[t*T + i] = s.x[i];", n);
}
static void large_stage(Parts *p, int n) {
    str_printf(&p->kernel, "pipe q[1] load -> work { y: f32[%d]; }", n);
    str_add(&p->load, "produce <q> as r { r.y[i] = X[t*T + i]; }");
    str_add(&p->work, "consume <q> as r { }");
}
static void pipes(Parts *p, int n) {
    for (int i = 0; i < n; i++) {
        str_printf(&p->kernel, "pipe p%d[1] load -> work { x: f32[4]; }\n", i);
        str_printf(&p->load, "produce <p%d> as r { r.x[i] = X[t*T + i]; }\n", i);
        str_printf(&p->work, "consume <p%d> as r { if t < 0 { Y[t*T + i] = r.x[i]; } }\n", i);
    }
}
/* One long body: stages in blocks and variables, loops, conditions */
static void long_body(Parts *p, int n) {
    str_add(&p->kernel, "pipe q[2] load -> work { y: f32[T]; }\n");
    str_add(&p->work, "var y: f32[T] = 0;\n");
    EACH(n) {
        str_printf(&p->load, "produce <q> as r { r.y[i] = X[t*T + i + %d * T]; }\n", i);
        str_add(&p->load, "for k in 0 .. N { produce <q> as r { r.y[i] = X[k*T + i]; } }\n");
        str_printf(&p->work,
                   "let z%d = consume <q>; if t > %d { y[i] += z%d.y[i]; } release z%d;\n", i, i, i,
                   i);
        str_add(&p->work, "for k in 0 .. N { consume <q> as r { y[i] += r.y[i]; } }\n");
    }
    str_add(&p->use, "Y[t*T + i] = s.x[i] + y[i];");
}
static void roles(Parts *p, int n) {
    for (int i = 0; i < n; i++) str_printf(&p->kernel, "role r%d: 1 warp { }\n", i);
}
static void pipes_between_roles(Parts *p, int n) {
    for (int i = 0; i < n; i++)
        str_printf(&p->kernel, "pipe q%d[1] r%d -> r%d; role r%d: 1 warp { }\n", i, i, (i + 1) % n,
                   i);
}
static void fields(Parts *p, int n) {
    str_add(&p->kernel, "pipe q[1] load -> work { ");
    for (int i = 0; i < n; i++) str_printf(&p->kernel, "x%d: f32[4];\n", i);
    str_add(&p->kernel, "}");
}
static void held_at_once(Parts *p, int n) {
    for (int i = 0; i < n; i++) str_printf(&p->work, "let s%d = consume <p>;\n", i);
}
static void held_in_a_loop(Parts *p, int n) {
    for (int i = 0; i < n; i++)
        str_printf(&p->work, "let s%d = consume <p>; for k in 0 .. t { release s%d; }\n", i, i);
}
static void lags(Parts *p, int n) {
    for (int i = 0; i < n; i++) str_printf(&p->work, "consume <p> lag 5 as s%d { }\n", i);
}
static void writes_of_one_element(Parts *p, int n) {
    for (int i = 0; i < n; i++) str_printf(&p->use, "Y[0] = %d;\n", i);
}
static void reads_outside(Parts *p, int n) {
    for (int i = 0; i < n; i++) str_printf(&p->use, "let _a%d = X[-1];\n", i);
}
static void unset_variables(Parts *p, int n) {
    for (int i = 0; i < n; i++) str_printf(&p->use, "{ var a%d: f32; Y[t] = a%d; }\n", i, i);
}
static void returns(Parts *p, int n) {
    for (int i = 0; i < n; i++) str_printf(&p->work, "if t > %d { return; }\n", i);
}
static void breaks_that_hold(Parts *p, int n) {
    for (int i = 0; i < n; i++)
        str_printf(&p->work,
                   "for k in 0 .. t { let s%d = consume <p>; if k > %d { break; } release s%d; }\n",
                   i, i, i);
}
static void allows(Parts *p, int n) {
    for (int i = 0; i < n; i++) str_add(&p->work, "// allow P0149: none\n");
}
static void statics_in_a_chain(Parts *p, int n) {
    for (int i = 0; i < n; i++) str_printf(&p->kernel, "static S%d = 1 in {1, 2};\n", i);
    str_add(&p->work, "let q0 = S0;\n");
    EACH(n) str_printf(&p->work, "let q%d = q%d + S%d;\n", i, i - 1, i);
    use_last(p, "q", n);
}
/* Errors that each combination has */
static void mistakes_with_statics(Parts *p, int n) {
    for (int i = 0; i < n; i++) {
        str_printf(&p->kernel, "static S%d = 1 in {1, 2, 3};\n", i);
        str_printf(&p->work, "let q%d = S%d + unknown%d;\n", i, i, i);
    }
}
/* Edges that differ only in their places in the text */
static void padded_tiles(Parts *p, int n) {
    for (int i = 0; i < n; i++) {
        str_printf(&p->use, "var x%d: f32[T];\n", i);
        str_printf(&p->use, "x%d[v] = t*T + v < N ? X[t*T + v] : -inf;\n", i);
        str_printf(&p->use, "Y[t] = max[v] x%d[v];\n", i);
    }
}
static void params(Parts *p, int n) {
    for (int i = 0; i < n; i++) str_printf(&p->params, ", A%d: f32[M%d]", i, i);
}

static const Family families[] = {
    {"squares", 300, squares, 0},
    {"sums-of-two", 150, sums_of_two, 0},
    {"extremes", 150, extremes, 0},
    {"selects", 150, selects, 0},
    {"quotients", 150, quotients, 0},
    {"nested-products", 10, nested_products, 0},
    {"one-sum", 150, one_sum, 0},
    {"brackets", 100, brackets, 0},
    {"requirements", 150, requirements, 0},
    {"float-squares", 300, float_squares, 0},
    {"conditions", 150, conditions, 0},
    {"counted", 20, counted, 0},
    {"breaks", 40, breaks, 40},
    {"continues", 40, continues, 160},
    {"rotated", 150, rotated, 0},
    {"nested-loops", 30, nested_loops, 0},
    {"nested-ifs", 60, nested_ifs, 120},
    {"unrolled", 250, unrolled, 0},
    {"long-trips", 250, long_trips, 0},
    {"held-under-conditions", 50, held_under_conditions, 0},
    {"doubling", 7, doubling, 0},
    {"doubling-of-statements", 7, doubling_of_statements, 0},
    {"calls", 150, calls, 0},
    {"statics", 5, statics, 0},
    {"one-large-set", 500, one_large_set, 0},
    {"tiles", 100, tiles, 0},
    {"additions", 150, additions, 0},
    {"large-tile", 8192, large_tile, 0},
    {"large-stage", 8192, large_stage, 0},
    {"pipes", 40, pipes, 80},
    {"params", 100, params, 0},
    {"roles", 1000, roles, 0},
    {"pipes-between-roles", 400, pipes_between_roles, 0},
    {"fields", 1500, fields, 0},
    {"held-at-once", 800, held_at_once, 0},
    {"held-in-a-loop", 400, held_in_a_loop, 0},
    {"lags", 700, lags, 0},
    {"writes-of-one-element", 1500, writes_of_one_element, 0},
    {"reads-outside", 1000, reads_outside, 0},
    {"unset-variables", 600, unset_variables, 0},
    {"returns", 900, returns, 0},
    {"breaks-that-hold", 250, breaks_that_hold, 0},
    {"allows", 1100, allows, 0},
    {"statics-in-a-chain", 430, statics_in_a_chain, 0},
    {"mistakes-with-statics", 200, mistakes_with_statics, 0},
    {"padded-tiles", 220, padded_tiles, 0},
    {"long-body", 80, long_body, 320},
};

/* ---- programs -------------------------------------------------------------------------------- */

static Str program(Arena *arena, const Family *family, int size) {
    Parts p = {str_new(arena), str_new(arena), str_new(arena),
               str_new(arena), str_new(arena), str_new(arena)};
    Str *all[] = {&p.file, &p.params, &p.kernel, &p.load, &p.work, &p.use}, out = str_new(arena);
    family->write(&p, size);
    for (size_t i = 0; i < COUNT_OF(all); i++) str_add(all[i], "");
    str_printf(&out, "%skernel k(X: f32[N], out Y: f32[N]%s) for sm_90a {\n    const T = 128;\n",
               p.file.text, p.params.text);
    str_printf(
        &out,
        "    grid persistent (t: ceil(N, T));\n%s\n    pipe p[2] load -> work { x: f32[T]; }\n",
        p.kernel.text);
    str_printf(&out, "    role load: 1 warp { for t in grid {\n%s\n", p.load.text);
    str_printf(&out,
               "produce <p> as s { s.x[i] = X[t*T + i]; } } }\n    role work: 4 warps { for t in "
               "grid {\n%s\n",
               p.work.text);
    str_printf(&out, "consume <p> as s {\n%s } } }\n}\n",
               p.use.length > 0 ? p.use.text : "Y[t*T + i] = s.x[i];");
    return out;
}

static double processor_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void compile(const Family *family, int size, const Str *text, bool check_only) {
    double begun = processor_time();
    PipecProgram *out =
        pipec_compile(text->text, text->length,
                      &(PipecOptions){.size = sizeof(PipecOptions), .check_only = check_only});
    EXPECT(out != NULL);
    const PipecDiagnostics *diagnostics = pipec_program_diagnostics(out);
    PipecStatus status = pipec_program_status(out);
    double took = processor_time() - begun;
    EXPECT(size > family->decided || status == PIPEC_FINE);
    if (!EXPECT(took < SECONDS_MOST && status != PIPEC_BUG) || getenv("GROWTH") != NULL)
        fprintf(stderr, "%-24s %6d %s: %.3f s, status %d %s\n", family->name, size,
                check_only ? "check" : "build", took, (int)status,
                pipec_diagnostics_count(diagnostics) > 0
                    ? pipec_diagnostics_get(diagnostics, 0)->code
                    : "");
    pipec_program_free(out);
}

static void test_family(const Family *family) {
    for (int i = 0; i < SIZES; i++) {
        Arena *arena = arena_new();
        int size = family->size << i;
        Str text = program(arena, family, size);
        EXPECT(text.length < 100000);
        compile(family, size, &text, true);
        if (i + 1 == SIZES) compile(family, size, &text, false);
        arena_free(arena);
    }
}

static int print(const char *name, int size) {
    Arena *arena = arena_new();
    for (size_t i = 0; i < COUNT_OF(families); i++)
        if (strcmp(families[i].name, name) == 0)
            fputs(program(arena, &families[i], size).text, stdout);
    arena_free(arena);
    return 0;
}

int main(int argc, char **argv) {
    struct rusage usage;
    if (argc > 2) return print(argv[1], atoi(argv[2]));
    for (size_t i = 0; i < COUNT_OF(families); i += SHARE) test_family(&families[i]);
    getrusage(RUSAGE_SELF, &usage);
    if (!EXPECT(usage.ru_maxrss / 1024 < MEGA_MOST))
        fprintf(stderr, "%ld MB\n", usage.ru_maxrss / 1024);
    return expect_failures();
}
