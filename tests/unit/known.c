/* Which combinations of statics have the same Code: the passes that read Code alone run once for
 * them (check/known.c). Each row is a kernel in pieces, how many combinations there are, and how
 * many Codes. */
#include "include/pipec.h"
#include "tests/unit/expect.h"

#include <stdlib.h>

static const struct {
    const char *declared, *depth, *load, *work;
    int programs, codes;
} cases[] = {
#define LOAD "s.x[i] = X[t*128 + i];"
#define WORK "Y[t*128 + i] = s.x[i];"
    /* what is no Code: depths, in any number */
    {"static S = 2 in {2, 3, 4};", "S", LOAD, WORK, 3, 1},
    {"static S = 2 in {2, 3}; const D = S + 1;", "D", LOAD, WORK, 2, 1},
    {"static S = 2 in {2, 3};", "S > 2 ? 5 : 2", LOAD, WORK, 2, 1},
    /* a depth that also stands somewhere else */
    {"static S = 2 in {2, 3};", "S", LOAD, "Y[t*128 + i] = s.x[i] + S;", 2, 2},
    {"static S = 2 in {2, 3};", "S", LOAD, "var y: f32 = 0; for k in 0 .. S { y += 1; } " WORK, 2,
     2},
    {"static S = 2 in {2, 3};", "S", "if S == 2 { " LOAD " } else { s.x[i] = 0; }", WORK, 2, 2},
    {"static S = 2 in {2, 3}; requires N % S == 0;", "S", LOAD, WORK, 2, 2},
    /* the arms of a constant condition: another place, operator, type, or none of them */
    {"static A = true in {true, false};", "2", LOAD, "if A { " WORK " } else { " WORK " }", 2, 2},
    {"static A = true in {true, false};", "2", LOAD, "Y[t*128 + i] = (A ? 1 : 2) * s.x[i];", 2, 2},
    {"static A = 1 in {1, 2};", "2", LOAD, "Y[t*128 + i] = s.x[i] + (A > 1 ? 3 : 2);", 2, 2},
    {"static A = 1 in {1, 2};", "2", LOAD, "Y[t*128 + i] = A == 1 ? f32(bf16(s.x[i])) : s.x[i];", 2,
     2},
    {"static A = 1 in {1, 2};", "2", LOAD, "Y[t*128 + i] = A < 3 ? s.x[i] : 0;", 2, 1},
    /* a mask, a subscript, a bound */
    {"static A = 0 in {0, 1};", "2", LOAD, "Y[t*128 + i] = t*128 + i + A < N ? s.x[i] : 0;", 2, 2},
    {"static A = 0 in {0, 1};", "2", "s.x[i] = X[t*128 + i + 4*A];", WORK, 2, 2},
    {"static A = 1 in {1, 2};", "2", LOAD, "for k in 0 .. min(n, A) { " WORK " }", 2, 2},
    /* constants that fold to the same number */
    {"static A = 1 in {1, 2};", "2", LOAD, "Y[t*128 + i] = s.x[i] + min(A, 1);", 2, 1},
    /* `ensures` and `example` are no rows, but passes read them */
    {"static A = 1 in {1, 2}; ensures Y[i] == A * X[i];", "2", LOAD, WORK, 2, 2},
    {"static A = 1 in {1, 2}; example N = A * 100;", "2", LOAD, WORK, 2, 2},
};

/* How often the part ran, as `--times` tells */
static int runs_of(const char *times, const char *part) {
    for (const char *line = times; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, part, strlen(part)) == 0) return atoi(line + strlen(part));
    }
    return 0;
}

static void try_case(size_t number) {
    char text[1024];
    snprintf(text, sizeof text,
             "kernel k(X: f32[N], out Y: f32[N], n: i32) for sm_90a {\n"
             "%s\ngrid persistent (t: ceil(N, 128));\n"
             "pipe p[%s] load -> work { x: f32[128]; }\n"
             "role load: 1 warp { for t in grid { produce <p> as s { %s } } }\n"
             "role work: 4 warps { for t in grid { consume <p> as s { %s } } }\n}\n",
             cases[number].declared, cases[number].depth, cases[number].load, cases[number].work);
    PipecOptions options = {.size = sizeof options, .check_only = true, .times = true};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    const char *times = pipec_program_times(program);
    int programs = runs_of(times, "tiles "), codes = runs_of(times, "written ");
    bool fine = pipec_program_status(program) == PIPEC_FINE;
#if defined(__SANITIZE_ADDRESS__)
    codes = cases[number].codes; /* these builds run them all, and compare */
#endif
    if (!EXPECT(fine && programs == cases[number].programs && codes == cases[number].codes))
        fprintf(stderr, "case %zu: %d programs, %d codes, %s\n%s", number, programs, codes,
                fine ? "fine" : "refused", text);
    pipec_program_free(program);
}

int main(void) {
    for (size_t i = 0; i < COUNT_OF(cases); i++) try_case(i);
    return expect_failures();
}
