/* 100,000 mistakes of one kind: the first 20 places are reported, in less than 1 s and, beside the
 * caller's text, 100 MB. What takes more memory than that, such as 100,000 stages in one role, is
 * undecided within the same bounds, and reported if there are fewer. Each kind is checked in a
 * process of its own. With a number of the table as argument, prints the text. */
#include "include/pipec.h"
#include "tests/unit/expect.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define MANY         5000
#define SHARE        3 /* one kind in so many */
#define SECONDS_MOST 20.0
#define MEGA_MOST    2000L
#else
#define MANY         100000
#define SHARE        1
#define SECONDS_MOST 1.0
#define MEGA_MOST    100L
#endif
#define FEW         1000    /* mistakes that are decided although their check needs much memory */
#define LENGTH_MOST 7000000 /* of a text: longer ones have fewer mistakes */
#define SHOWN       20
#define PROCESSES   2

/* Where the mistakes are; `@` stands for them. */
#define HEAD "kernel k(X: f32[N], out Y: f32[N]) for sm_90a {\n    grid (t: ceil(N, 128));\n"
#define WORK "    role work: 4 warps { for t in grid {\n"
#define LAST "    } }\n}\n"
#define PIPE                                                                                       \
    "kernel k(X: f32[N], out Y: f32[N]) for sm_90a {\n    const T = 128;\n"                        \
    "    grid persistent (t: ceil(N, T));\n    pipe p[2] load -> work { x: f32[T]; }\n"
#define LOAD        "    role load: 1 warp { for t in grid {\n"
#define FILLS       "        produce <p> as s { s.x[i] = X[t*T + i]; }\n"
#define DONE        "        consume <p> as s { Y[t*T + i] = s.x[i]; }\n"
#define FN_F        "fn f(x: f32) -> f32 { return x; }\n"
#define IN_FILE     "@"
#define IN_ITEMS    HEAD "@" WORK LAST
#define IN_PARAMS   "kernel k(@ out Y: f32[N]) for sm_90a {\n    grid (t: 1);\n" WORK LAST
#define IN_ROLE     HEAD WORK "@" LAST
#define IN_CONSUMER PIPE LOAD FILLS "    } }\n" WORK "@" DONE LAST
#define IN_PRODUCER PIPE LOAD "@" FILLS "    } }\n" WORK DONE LAST
#define IN_STAGE    PIPE LOAD FILLS "    } }\n" WORK "        consume <p> as u {\n@        }\n" LAST

typedef enum Outcome {
    FIRST_20, /* the first 20 places of the code */
    ONE,      /* one place, or one message for all */
    HEAVY,    /* as FIRST_20 if they are few, else perhaps P0490 */
    HEAVY_ONE /* the same for ONE */
} Outcome;

/* `#` in `each` is the number of the mistake. Per mistake, `close` follows after all of them. */
static const struct {
    const char *code;
    Outcome outcome;
    const char *place, *first, *each, *close;
} kinds[] = {
    /* words and trees */
    {"P0001", FIRST_20, IN_ROLE, "", "let a = ; //#", ""},
    {"P0001", ONE, IN_FILE, "", "}", ""},
    {"P0002", FIRST_20, IN_ROLE, "", "$ @#", ""},
    {"P0002", FIRST_20, IN_ROLE, "", "\xC3\xA9", ""},
    {"P0003", ONE, IN_FILE, "", "/* ", ""},
    {"P0007", ONE, IN_FILE, "", "\x01", ""}, /* written as NUL */
    {"P0008", ONE, IN_ROLE, "let a = ", "(", ")"},
    {"P0008", ONE, IN_ROLE, "", "{", "}"},
    {"P0008", ONE, IN_ROLE, "", "for k# in 0 .. 4 {", "}"},
    {"P0008", ONE, IN_ROLE, "if t > 0 {}", " else if t > # {}", ""},
    {"P0014", FIRST_20, IN_ROLE, "", "let a# = #", ""},
    {"P0015", FIRST_20, IN_ROLE, "let a = 1", " < 1", ""},
    {"P0019", ONE, IN_ROLE, "let a = 1", " + 1", ""},
    {"P0019", ONE, IN_ROLE, "let a = s", ".x", ""},
    {"P0021", FIRST_20, IN_ROLE, "", "'#", ""},
    {"P0031", HEAVY, IN_ROLE, "", "let _a# = t; // allow P9999: x", ""},
    {"P0033", FIRST_20, IN_ITEMS, "", "// allow P0149: x", ""},
    /* names, types, extents */
    {"P0100", ONE, IN_ROLE, "", "let a# = other + 1;", ""}, /* a missing declaration */
    {"P0100", FIRST_20, IN_ROLE, "", "let a# = b# + 1;", ""},
    {"P0100", FIRST_20, IN_ROLE, "", "release s#;", ""},
    {"P0100", FIRST_20, IN_ROLE, "", "var a#: f32[q#];", ""},
    {"P0100", HEAVY, IN_ITEMS, "", "role r#: 1 warp { q# = 1; }", ""},
    {"P0101", FIRST_20, IN_ROLE, "", "let t = #;", ""},
    {"P0101", FIRST_20, IN_ITEMS, "", "range r = 0 .. #;", ""},
    {"P0101", FIRST_20, IN_FILE, "", "kernel k() for sm_90a {}", ""},
    {"P0103", HEAVY, IN_PARAMS, "", "A#: q32[M],", ""},
    {"P0104", FIRST_20, IN_ROLE, "", "let a: i32 = 1.5 * #;", ""},
    {"P0107", FIRST_20, IN_ROLE, "", "let a = true + #;", ""},
    {"P0110", FIRST_20, IN_ROLE, "", "var a#: f32[N];", ""},
    {"P0112", FIRST_20, IN_FILE, "", "kernel k#(X: f32[M + N]) for sm_90a {}", ""},
    {"P0113", ONE, HEAD WORK "@] = 0;" LAST, "Y[0", ", 1", ""},
    {"P0114", FIRST_20, IN_ROLE, "var a: f32[4] = 0;", "let b# = a;", ""},
    {"P0116", FIRST_20, IN_STAGE, "", "Y[t*T + i] = u.y#[i];", ""},
    {"P0117", FIRST_20, IN_ROLE, "", "t = #;", ""},
    {"P0121", FIRST_20, IN_ROLE, "", "let a = f#(1);", ""},
    {"P0122", ONE, FN_F HEAD WORK "@);" LAST, "let a = f(1.0", ", 1.0", ""},
    {"P0135", FIRST_20, IN_FILE, "", "kernel k#() for sm_90a {}", ""},
    {"P0137", HEAVY, IN_ITEMS, "", "role r: 1 warp {}", ""},
    {"P0137", HEAVY, IN_ITEMS, "", "pipe p[2] work -> work;", ""},
    {"P0137", FIRST_20, HEAD "@}" WORK LAST, "pipe p[2] work -> work {", "x: f32[4];", ""},
    {"P0137", FIRST_20, IN_ITEMS, "", "example N = #;", ""},
    {"P0138", HEAVY, IN_ITEMS, "", "pipe p#[2] r# -> work;", ""},
    {"P0139", HEAVY, HEAD "@;" WORK LAST, "pipe p[2] work -> work", ", work", ""},
    {"P0140", FIRST_20, IN_ROLE, "", "consume <q#> as s# { }", ""},
    {"P0145", FIRST_20, IN_ITEMS, "", "requires 0 > #;", ""},
    {"P0147", FIRST_20, IN_ITEMS, "", "ensures X[i] == #;", ""},
    {"P0150", FIRST_20, IN_ITEMS, "", "example q# = 5;", ""},
    {"P0153", FIRST_20, IN_ROLE, "", "return #;", ""},
    {"P0154", FIRST_20, IN_ROLE, "", "release t; //#", ""},
    {"P0155", FIRST_20, IN_ROLE, "var a: f32[4] = 0;", "a[t] = #;", ""},
    {"P0158", FIRST_20, FN_F IN_ROLE, "", "f(1.0); //#", ""},
    {"P0164", HEAVY, IN_ROLE, "Y[t] = 1;", "let a# = t;", ""},
    {"P0164", HEAVY, IN_PARAMS, "", "A#: f32[M],", ""},
    /* tiles */
    {"P0200", HEAVY, IN_ROLE, "var a: f32[4]; var b: f32[5] = 0;", "a[i] = b[i]; //#", ""},
    {"P0201", HEAVY, IN_ROLE, "var a: f32[4] = 0;", "a[i] = a[i] + sum[q] X[q + #];", ""},
    {"P0202", HEAVY, IN_ROLE, "var a: f32[4] = 0;", "a[4] = #;", ""},
    {"P0206", HEAVY, IN_ROLE, "var a: f32[4] = 0;", "a[i] = Y[i]; //#", ""},
    {"P0208", HEAVY, IN_STAGE, "", "u.x[i] = #;", ""},
    {"P0214", HEAVY, IN_PRODUCER, "", "produce <p> as s# { }", ""},
    {"P0228", HEAVY, IN_ROLE, "", "{ var a: f32; Y[t] = a; } //#", ""},
    {"P0232", HEAVY, IN_ROLE, "", "let _a# = X[-1];", ""},
    /* stages */
    {"P0301", HEAVY, IN_CONSUMER, "", "{ let s# = consume <p>; }", ""},
    {"P0301", HEAVY, IN_CONSUMER, "", "let s# = consume <p>;", ""}, /* held at once */
    {"P0302", HEAVY, IN_CONSUMER, "", "let a# = consume <p>; release a#; release a#;", ""},
    {"P0303", HEAVY, IN_CONSUMER, "", "let a# = consume <p>; release a#; Y[t] = a#.x[0];", ""},
    {"P0304", HEAVY, IN_CONSUMER, "", "let a# = consume <p>; let b# = a#; release b#; release a#;",
     ""},
    {"P0305", HEAVY, IN_CONSUMER, "", "var a# = consume <p>; a# = consume <p>; release a#;", ""},
    {"P0307", HEAVY, IN_CONSUMER, "", "{ let a# = consume <p>; for k in 0 .. t { release a#; } }",
     ""},
    {"P0308", HEAVY, IN_CONSUMER, "", "consume <p> as a# { release a#; }", ""},
    {"P0310", HEAVY_ONE, IN_CONSUMER, "", "consume <p> lag 5 as a# { }", ""},
    {"P0311", HEAVY, IN_ROLE, "", "for k in 0 .. # { break; Y[t] = 0; }", ""},
    {"P0400", HEAVY, IN_CONSUMER, "", "produce <p> as a# { a#.x[i] = 0; }", ""},
    {"P0404", HEAVY, IN_ROLE, "", "turn { }", ""},
    {"P0422", FIRST_20, IN_STAGE, "", "arrive u; //#", ""},
};

static void write_mistakes(Str *text, size_t kind, int count) {
    str_add(text, kinds[kind].first);
    for (int i = 0; i < count && text->length < LENGTH_MOST; i++) {
        str_add(text, "    ");
        for (const char *at = kinds[kind].each; *at; at++) {
            if (*at == '#')
                str_integer(text, i);
            else
                str_char(text, *at == '\x01' ? '\0' : *at);
        }
        str_char(text, '\n');
    }
    for (int i = 0; i < count && kinds[kind].close[0]; i++) str_add(text, kinds[kind].close);
}

/* In memory of its own, without the room in which it grew */
static const char *write_text(Arena *arena, size_t kind, int count, size_t *length) {
    Arena *own = arena_new();
    Str text = str_new(own);
    const char *place = kinds[kind].place, *at = strchr(place, '@');
    str_add_bytes(&text, place, (size_t)(at - place));
    write_mistakes(&text, kind, count);
    str_add(&text, at + 1);
    *length = text.length;
    const char *copy = arena_copy(arena, text.text, text.length);
    arena_free(own);
    return copy;
}

static bool is_as_expected(const PipecProgram *program, size_t kind, bool many) {
    const PipecDiagnostics *diagnostics = pipec_program_diagnostics(program);
    size_t same = 0, others = 0, count = pipec_diagnostics_count(diagnostics);
    bool undecided = false;
    for (size_t i = 0; i < count; i++) {
        const char *code = pipec_diagnostics_get(diagnostics, i)->code;
        bool is_same = strcmp(code, kinds[kind].code) == 0;
        same += is_same, others += !is_same;
        undecided = undecided || strcmp(code, "P0490") == 0;
    }
    Outcome outcome = kinds[kind].outcome;
    if (outcome >= HEAVY && many && undecided) return count <= 3 * SHOWN;
    return !undecided && others <= 3 * SHOWN &&
           same == (outcome == ONE || outcome == HEAVY_ONE ? 1 : SHOWN);
}

static void check(size_t kind, bool many) {
    Arena *arena = arena_new();
    size_t length;
    const char *text = write_text(arena, kind, many ? MANY : FEW, &length);
    PipecOptions options = {.size = sizeof options, .check_only = true};
    PipecProgram *program = pipec_compile(text, length, &options);
    bool expected = is_as_expected(program, kind, many);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double seconds = (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec * 1e-6;
    long mega = (used.ru_maxrss - (long)(length / 1024)) / 1024;
    const PipecDiagnostics *diagnostics = pipec_program_diagnostics(program);
    if (!EXPECT(expected) || !EXPECT(seconds < SECONDS_MOST) || !EXPECT(mega < MEGA_MOST) ||
        getenv("MISTAKES")) {
        fprintf(stderr, "%zu: %s `%s`%s: %.2f s, %ld MB, %zu:", kind, kinds[kind].code,
                kinds[kind].each, many ? "" : ", few", seconds, mega,
                pipec_diagnostics_count(diagnostics));
        for (size_t i = 0; i < pipec_diagnostics_count(diagnostics) && i < 30; i++)
            fprintf(stderr, " %s", pipec_diagnostics_get(diagnostics, i)->code);
        fprintf(stderr, "\n");
    }
    pipec_program_free(program);
    arena_free(arena);
}

static int await(int *running) {
    int status = 1;
    wait(&status);
    --*running;
    return status != 0;
}

static int print(size_t kind) {
    Arena *arena = arena_new();
    size_t length;
    const char *text = write_text(arena, kind, MANY, &length);
    bool written = fwrite(text, 1, length, stdout) == length;
    arena_free(arena);
    return !written;
}

int main(int argc, char **argv) {
    int failures = 0, running = 0;
    if (argc > 1) return print((size_t)atoi(argv[1]));
    for (size_t i = 0; i < 2 * COUNT_OF(kinds); i++) {
        size_t kind = i / 2;
        bool many = i % 2 == 0;
        if (kind % SHARE != 0 || (!many && kinds[kind].outcome < HEAVY)) continue;
        if (running == PROCESSES) failures += await(&running);
        pid_t child = fork();
        if (child == 0) {
            check(kind, many);
            exit(expect_failures());
        }
        if (child > 0) running++;
        failures += child < 0;
    }
    while (running > 0) failures += await(&running);
    return failures > 0;
}
