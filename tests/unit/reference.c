/* The reference floor on real programs: programs are checked, arrays filled, results computed in
 * C, and then changed in one element at a time. */
#define PIPEC_OWN_MEMORY
#include "tests/unit/expect.h"

#include "check/check.h"
#include "codegen/codegen.h"
#include "parser/parser.h"
#include "reference/reference.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

typedef struct Case {
    Arena *arena;
    Diags *diags;
    const Prog *prog;
    Launch *launch;
    Before before;
} Case;

static void show(Case *it) {
    Str text = str_new(it->arena);
    str_add(&text, "");
    diags_render(it->diags, false, &text);
    fputs(text.text, stderr);
}

static bool open_case(Case *it, const char *text, const char *const *words) {
    Arena *arena = arena_new();
    Names *names = names_new(arena);
    const Source *source = source_new(arena, "case.pipe", text, strlen(text));
    const char *const *kernels;
    Str ptx = str_new(arena);
    Manifest *manifest = NEW(arena, Manifest);
    CodegenOptions options = {.watchdog = false};
    *it = (Case){.arena = arena, .diags = diags_new(arena, source)};
    const Ast *ast = parser_parse(arena, names, source, it->diags);
    if (check_kernels(ast, &kernels) > 0)
        it->prog = check_kernel(arena, names, ast, kernels[0], NULL, 0, it->diags);
    bool fine = it->prog != NULL;
    if (fine) codegen_emit(arena, it->prog, &options, &ptx, manifest);
    VEC(Argument) given = {0};
    Argument argument, *all;
    size_t count;
    for (; fine && *words != NULL; words++) {
        fine = strchr(*words, '!') != NULL
                   ? argument_parse_fill(arena, *words + 1, &argument, it->diags)
                   : argument_parse(arena, *words, &argument, it->diags);
        vec_push(arena, &given, argument);
    }
    LaunchOptions launch = {.seed = 1};
    fine = fine && reference_arguments(arena, it->prog, manifest, given.items, given.count, &all,
                                       &count, it->diags);
    if (fine)
        it->launch =
            launch_prepare(arena, manifest, ptx.text, ptx.length, all, count, &launch, it->diags);
    fine =
        it->launch != NULL && reference_before(arena, it->prog, it->launch, &it->before, it->diags);
    if (!EXPECT(fine)) show(it);
    return fine;
}

static void close_case(Case *it) {
    reference_before_free(&it->before);
    launch_free(it->launch);
    arena_free(it->arena);
}

static Verdict judge(Case *it) {
    ReferenceOptions options = {.seed = 7};
    Verdict verdict;
    it->diags = diags_new(it->arena, it->diags->source);
    reference_verdict(it->arena, it->prog, it->launch, &it->before, &options, &verdict, it->diags);
    return verdict;
}

static bool says(const Case *it, const char *wanted) {
    Str text = str_new(it->arena);
    str_add(&text, "");
    diags_render(it->diags, false, &text);
    if (strstr(text.text, wanted) != NULL) return true;
    fprintf(stderr, "no \"%s\" in:\n%s", wanted, text.text);
    return false;
}

#define ROLES(expression)                                                                          \
    "    const T = 256;\n"                                                                         \
    "    grid (t: ceil(N, T));\n"                                                                  \
    "    pipe loaded[2] load -> work { x: f32[T]; y: f32[T]; }\n"                                  \
    "    pipe made[2] work -> store { y: f32[T]; }\n"                                              \
    "    role load: 1 warp { for t in grid { produce <loaded> as s { s.x[i] = X[t*T + i]; s.y[i] " \
    "= Y[t*T + i]; } } "                                                                           \
    "}\n"                                                                                          \
    "    role work: 4 warps { for t in grid { consume <loaded> as s { produce <made> as o { "      \
    "o.y[i] = " expression "; } } } }\n"                                                           \
    "    role store: 1 warp { for t in grid { consume <made> as o { Y[t*T + i] = o.y[i]; } } }\n"  \
    "}\n"

static const char axpy[] = "kernel axpy(X: f32[N], inout Y: f32[N], a: f32) for sm_90a {\n"
                           "    ensures Y[i] ~ a * X[i] + old Y[i] within 1e-6;\n"
                           "    example N = 1000003, a = 2.5;\n" ROLES("a * s.x[i] + s.y[i]");

/* The kernel's results, in f32 */
static void run_axpy(Case *it) {
    const float *x = (const float *)it->launch->arrays[0].data;
    float *y = (float *)it->launch->arrays[1].data, a = (float)it->launch->scalars[2].number;
    for (int64_t i = 0; i < it->launch->arrays[0].count; i++) y[i] = fmaf(a, x[i], y[i]);
}

static void test_axpy(void) {
    Case it;
    if (!open_case(&it, axpy, (const char *const[]){NULL})) return;
    EXPECT(it.launch->arrays[0].count == 1000003);
    Verdict verdict = judge(&it);
    EXPECT(verdict.kind == VERDICT_WRONG && verdict.wrong > 900000);
    run_axpy(&it);
    clock_t start = clock();
    verdict = judge(&it);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    EXPECT(verdict.kind == VERDICT_RIGHT && verdict.checked == 1000003 && !verdict.sampled);
    EXPECT(verdict.largest > 0 && verdict.largest < 1);
    if (getenv("TIMES") != NULL) printf("axpy of 1e6 elements: %.3f s\n", seconds);
    float *y = (float *)it.launch->arrays[1].data, kept = y[77];
    y[77] += 1;
    y[1000002] = NAN;
    verdict = judge(&it);
    EXPECT(verdict.kind == VERDICT_WRONG && verdict.wrong == 2);
    EXPECT(says(&it, "error[P0850]: 2 of 1000003 checked elements of `Y`") &&
           says(&it, "Y[1000002]: expected") && says(&it, "got nan") &&
           says(&it, "Y[77]: expected"));
    y[77] = kept;
    close_case(&it);
}

static void test_sample(void) {
    Case it;
    if (!open_case(&it, axpy, (const char *const[]){"N=8000001", "!X=zeros", NULL})) return;
    run_axpy(&it);
    Verdict verdict = judge(&it);
    EXPECT(verdict.kind == VERDICT_RIGHT && verdict.sampled && verdict.checked >= 10000 &&
           verdict.elements == 8000001);
    /* The first and last two, corners of tiles, the ragged edge */
    static const int64_t always[] = {
        0, 1, 255, 256, 7999999, 8000000, 8000001 / 256 * 256, 8000001 / 256 * 256 - 1};
    float *y = (float *)it.launch->arrays[1].data;
    for (size_t i = 0; i < COUNT_OF(always); i++) {
        y[always[i]] += 1000;
        EXPECT(judge(&it).kind == VERDICT_WRONG);
        y[always[i]] -= 1000;
    }
    close_case(&it);
}

static void test_untouched(void) {
    static const char copy[] =
        "kernel copy(X: f32[N], out Y: f32[N], out Z: f32[N]) for sm_90a {\n"
        "    ensures Y[i] == X[i];\n"
        "    example N = 1000;\n"
        "    const T = 256;\n"
        "    grid (t: ceil(N, T));\n"
        "    pipe p[2] load -> store { x: f32[T]; }\n"
        "    role load: 1 warp { for t in grid { produce <p> as s { s.x[i] = X[t*T + i]; } } }\n"
        "    role store: 1 warp { for t in grid { consume <p> as s { Y[t*T + i] = s.x[i]; "
        "Z[t*T + i] = s.x[i]; } } }\n"
        "}\n";
    Case it;
    if (!open_case(&it, copy, (const char *const[]){NULL})) return;
    float *x = (float *)it.launch->arrays[0].data, *y = (float *)it.launch->arrays[1].data,
          *z = (float *)it.launch->arrays[2].data;
    x[5] = NAN;
    for (int i = 0; i < 1000; i++) y[i] = z[i] = x[i];
    z[5] = 0;
    EXPECT(judge(&it).kind == VERDICT_RIGHT); /* NaN matches NaN */
    memset(&y[990], 0, 4);
    y[991] = *(float *)&(uint32_t){0x7FC00000};
    Verdict verdict = judge(&it);
    EXPECT(verdict.kind == VERDICT_WRONG && verdict.wrong == 2 && says(&it, "Y[991]: expected") &&
           says(&it, "never written"));
    y[990] = x[990];
    y[991] = x[991];
    z[17] = *(float *)&(uint32_t){0x7FC00000};
    verdict = judge(&it);
    EXPECT(verdict.kind == VERDICT_WRONG && verdict.wrong == 0 && verdict.untouched == 1);
    EXPECT(says(&it, "error[P0851]: 1 of 1000 elements of `Z`") && says(&it, "`Z[17]`"));
    close_case(&it);
}

/* Lets, reductions, selections, casts, gathers, integers */
static void test_expressions(void) {
    static const char text[] =
        "kernel mixed(X: f32[N], inout Y: f32[N], I: i32[N], W: bf16[8, 16], n: i32) for sm_90a {\n"
        "    ensures {\n"
        "        let m[r] = max[c] W[r, c];\n"
        "        let total[r] = sum[c] exp(W[r, c] - m[r]);\n"
        "        let all[r] = sum[c] total[r] * W[r, c] + m[0];\n"
        "        Y[i] ~ (i % 2 == 0 ? X[I[i]] : X[i - 1]) + bf16(X[i]) * total[i % 8] + all[(i + "
        "1) % 8] "
        "+ f32(n / 3) within 1e-5;\n"
        "    }\n"
        "    example N = 4000, n = 17, I[i] = (i * 7 + 1) % N;\n" ROLES("s.x[i] + s.y[i]");
    Case it;
    if (!open_case(&it, text, (const char *const[]){NULL})) return;
    const float *x = (const float *)it.launch->arrays[0].data;
    float *y = (float *)it.launch->arrays[1].data;
    const int32_t *index = (const int32_t *)it.launch->arrays[2].data;
    EXPECT(index[0] == 1 && index[1000] == 7001 % 4000);
    double m[8], total[8], all[8];
    for (int r = 0; r < 8; r++) {
        double w[16];
        m[r] = -INFINITY, total[r] = all[r] = 0;
        for (int c = 0; c < 16; c++) {
            w[c] = element_load(E_BF16, it.launch->arrays[3].data + 2 * (16 * r + c));
            m[r] = fmax(m[r], w[c]);
        }
        for (int c = 0; c < 16; c++) total[r] += exp(w[c] - m[r]);
        for (int c = 0; c < 16; c++) all[r] += total[r] * w[c];
        all[r] += m[0];
    }
    for (int i = 0; i < 4000; i++) {
        uint16_t rounded;
        element_store(E_BF16, &rounded, (double)x[i]);
        double taken = i % 2 == 0 ? (double)x[index[i]] : (double)x[i - 1];
        y[i] =
            (float)(taken + element_load(E_BF16, &rounded) * total[i % 8] + all[(i + 1) % 8] + 5);
    }
    Verdict verdict = judge(&it);
    if (!EXPECT(verdict.kind == VERDICT_RIGHT && verdict.checked == 4000)) show(&it);
    close_case(&it);
}

/* `within t or u`: one of the bounds is enough, for each element by itself */
static void test_absolute(void) {
    static const char text[] =
        "kernel near(X: f32[N], inout Y: f32[N]) for sm_90a {\n"
        "    ensures Y[i] ~ X[i] within 0.125 or 0.5;\n"
        "    example N = 1000, X[i] = i % 2 == 0 ? 0 : 1024;\n" ROLES("s.x[i]");
    Case it;
    if (!open_case(&it, text, (const char *const[]){NULL})) return;
    const float *x = (const float *)it.launch->arrays[0].data;
    float *y = (float *)it.launch->arrays[1].data;
    for (int i = 0; i < 1000; i++) y[i] = x[i];
    Verdict verdict = judge(&it);
    EXPECT(verdict.kind == VERDICT_RIGHT && verdict.largest == 0);
    y[1] += 128; /* 0.125 * (1024 + 724) is 218.5, more than 0.5 */
    y[2] = 0.25f;
    verdict = judge(&it);
    EXPECT(verdict.kind == VERDICT_RIGHT && verdict.largest > 0.58 && verdict.largest < 0.59);
    y[1] += 91;
    y[4] = 91;
    y[6] = INFINITY, y[7] = NAN;
    verdict = judge(&it);
    EXPECT(verdict.kind == VERDICT_WRONG && verdict.wrong == 4);
    close_case(&it);
}

static void test_absolute_of_zeros(void) {
    static const char text[] = "kernel near(X: f32[N], inout Y: f32[N]) for sm_90a {\n"
                               "    ensures Y[i] ~ 0 * X[i] within 0.125 or 0.5;\n"
                               "    example N = 1000;\n" ROLES("s.x[i]");
    Case it;
    if (!open_case(&it, text, (const char *const[]){"!Y=zeros", NULL})) return;
    float *y = (float *)it.launch->arrays[1].data;
    y[3] = 0.5f;
    Verdict verdict = judge(&it);
    EXPECT(verdict.kind == VERDICT_RIGHT && verdict.largest == 1);
    y[4] = 0.75f;
    verdict = judge(&it);
    EXPECT(verdict.kind == VERDICT_WRONG && verdict.wrong == 1 && verdict.largest == 1.5 &&
           says(&it, "allowed 0.5") &&
           says(&it, "the larger of 0.125 * (|expected| + 0) and 0.5; 0 is the root mean square"));
    close_case(&it);
}

/* Exact claims: integers of several widths, division towards zero, wrapping u32, rounding casts */
static void test_exact(void) {
    static const char text[] = "kernel exact_(X: f32[N], inout Y: f32[N], inout U: u32[N], inout "
                               "S: i32[N], B: i8[N], inout Q: f16[N])\n"
                               "    for sm_90a {\n"
                               "    ensures {\n"
                               "        U[i] == old U[i] * 2654435761 + 7;\n"
                               "        S[i] == (i - 500) / 7 * 1000 + (i - 500) % 7 + i32(B[i]);\n"
                               "        Q[i] == f16(X[i] * 100);\n"
                               "        Y[i] == X[N - 1 - i];\n"
                               "    }\n"
                               "    example N = 1000;\n" ROLES("s.x[i] + s.y[i]");
    Case it;
    if (!open_case(&it, text, (const char *const[]){"!U=uniform", NULL})) return;
    Array *arrays = it.launch->arrays;
    for (int i = 0; i < 1000; i++) {
        uint32_t *u = (uint32_t *)arrays[2].data + i;
        int32_t *s = (int32_t *)arrays[3].data + i;
        const float *x = (const float *)arrays[0].data;
        *u = *u * 2654435761u + 7;
        *s = (i - 500) / 7 * 1000 + (i - 500) % 7 + ((const int8_t *)arrays[4].data)[i];
        element_store(E_F16, arrays[5].data + 2 * i, (double)x[i] * 100);
        ((float *)arrays[1].data)[i] = x[999 - i];
    }
    Verdict verdict = judge(&it);
    if (!EXPECT(verdict.kind == VERDICT_RIGHT && verdict.checked == 4000)) show(&it);
    ((int32_t *)arrays[3].data)[3]++;
    arrays[5].data[10] ^= 1;
    verdict = judge(&it);
    EXPECT(verdict.kind == VERDICT_WRONG && verdict.wrong == 2 && says(&it, "S[3]: expected") &&
           says(&it, "Q[5]"));
    close_case(&it);
}

/* A matrix product too large for a full check: a sample, of bounded cost */
static void test_costly(void) {
    static const char text[] = "kernel product(X: f32[N], inout Y: f32[N], A: f32[M, K], B: f32[K, "
                               "M], out C: f32[M, M]) for sm_90a {\n"
                               "    ensures C[i, j] ~ sum[k] A[i, k] * B[k, j] within 1e-3;\n"
                               "    example N = 16, M = 512, K = 3000;\n" ROLES("s.x[i] + s.y[i]");
    Case it;
    if (!open_case(&it, text, (const char *const[]){NULL})) return;
    clock_t start = clock();
    Verdict verdict = judge(&it);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    EXPECT(verdict.kind == VERDICT_WRONG && verdict.sampled && verdict.checked >= 10000 &&
           verdict.checked < 20000);
    if (getenv("TIMES") != NULL) printf("10000 sums of 3000: %.3f s\n", seconds);
    close_case(&it);
}

/* Not even a few elements can be checked: that is reported. */
static void test_too_costly(void) {
    static const char text[] = "kernel cubes(X: f32[N], inout Y: f32[N]) for sm_90a {\n"
                               "    ensures Y[i] ~ sum[a] X[a] * (sum[b] X[b] * (sum[c] X[c] * "
                               "X[i] * X[b] * X[a])) within 1e-3;\n"
                               "    example N = 40000;\n" ROLES("s.x[i] + s.y[i]");
    Case it;
    if (!open_case(&it, text, (const char *const[]){NULL})) return;
    Verdict verdict = judge(&it);
    EXPECT(verdict.kind == VERDICT_NOT_CHECKED && verdict.checked == 0 && verdict.undecided &&
           says(&it, "incomplete[P0853]"));
    close_case(&it);
}

typedef struct Heard {
    int calls, most; /* the comparison ends after most calls */
    double part;
    bool ascends;
} Heard;

static bool hear(void *data, double part) {
    Heard *heard = data;
    heard->ascends = heard->ascends && part >= heard->part - 0.02 && part <= 1;
    heard->part = part;
    return ++heard->calls < heard->most;
}

/* The parts of several claims, with a `let` that is computed first, grow to 1. */
static void test_progress(void) {
    static const char text[] = "kernel sums(X: f32[N], inout Y: f32[N]) for sm_90a {\n"
                               "    ensures {\n"
                               "        let s[a] = sum[b] X[a] * X[b];\n"
                               "        Y[i] ~ old Y[i] + X[i] + 0 * sum[a] s[a] * X[i] within 1;\n"
                               "        Y[i] ~ old Y[i] + X[i] within 1;\n"
                               "    }\n"
                               "    example N = 3000;\n" ROLES("s.x[i] + s.y[i]");
    Case it;
    if (!open_case(&it, text, (const char *const[]){NULL})) return;
    Verdict verdict;
    for (int stopped = 0; stopped < 2; stopped++) {
        Heard heard = {.most = stopped ? 3 : 1 << 30, .ascends = true};
        ReferenceOptions options = {.seed = 7, .progress = hear, .progress_data = &heard};
        reference_verdict(it.arena, it.prog, it.launch, &it.before, &options, &verdict, it.diags);
        EXPECT(heard.ascends && (stopped ? heard.calls == 3 : heard.part > 0.9));
        EXPECT(!stopped || (verdict.kind == VERDICT_NOT_CHECKED && verdict.undecided));
        EXPECT(stopped || verdict.checked == 6000);
    }
    close_case(&it);
}

static void test_unchecked(void) {
    static const char text[] =
        "kernel plain(X: f32[N], inout Y: f32[N]) for sm_90a {\n    example N = 16;\n" ROLES(
            "s.x[i] + s.y[i]");
    Case it;
    if (!open_case(&it, text, (const char *const[]){NULL})) return;
    Verdict verdict = judge(&it);
    EXPECT(verdict.kind == VERDICT_NOT_CHECKED && verdict.why != NULL && !verdict.undecided);
    close_case(&it);
}

int main(void) {
    test_axpy();
    test_sample();
    test_untouched();
    test_expressions();
    test_absolute();
    test_absolute_of_zeros();
    test_exact();
    test_costly();
    test_too_costly();
    test_progress();
    test_unchecked();
    return expect_failures();
}
