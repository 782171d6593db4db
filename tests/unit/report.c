/* The report: its JSON is well formed, places have the right lines, and its numbers are those of
 * the program. */
#include "include/pipec.h"
#include "tests/unit/expect.h"

#include <ctype.h>
#include <glob.h>

/* ---- JSON (RFC 8259) ------------------------------------------------------------------------- */

/* Each returns the rest of the text, or NULL for malformed text. */
static const char *value(const char *at);

static const char *string(const char *at) {
    if (at == NULL || *at++ != '"') return NULL;
    for (; *at != '"'; at++) {
        if ((unsigned char)*at < 0x20) return NULL;
        if (*at == '\\' && strchr("\"\\/bfnrtu", *++at) == NULL) return NULL;
    }
    return at + 1;
}

static const char *word(const char *at, const char *text) {
    return strncmp(at, text, strlen(text)) == 0 ? at + strlen(text) : NULL;
}

static const char *list(const char *at, char end) {
    if (*++at == end) return at + 1;
    for (;; at++) {
        if (end == '}') {
            at = string(at);
            if (at == NULL || *at++ != ':') return NULL;
        }
        at = value(at);
        if (at == NULL) return NULL;
        if (*at == end) return at + 1;
        if (*at != ',') return NULL;
    }
}

static const char *value(const char *at) {
    if (*at == '{') return list(at, '}');
    if (*at == '[') return list(at, ']');
    if (*at == '"') return string(at);
    if (*at == 't') return word(at, "true");
    if (*at == 'f') return word(at, "false");
    if (*at == 'n') return word(at, "null");
    if (*at == '-') at++;
    if (!isdigit((unsigned char)*at)) return NULL;
    while (isdigit((unsigned char)*at)) at++;
    return at;
}

/* ---- reports --------------------------------------------------------------------------------- */

static int count(const char *text, const char *what) {
    int found = 0;
    for (; (text = strstr(text, what)) != NULL; text += strlen(what)) found++;
    return found;
}

static bool is_json(const char *text) {
    const char *end = text != NULL ? value(text) : NULL;
    return end != NULL && strcmp(end, "\n") == 0;
}

static void test_file(const char *path) {
    PipecOptions options = {.size = sizeof options};
    PipecProgram *program = pipec_compile_file(path, &options);
    const char *text = pipec_program_report(program), *json = pipec_program_emit(program, "report");
    if ((text == NULL) != (json == NULL) || (json != NULL && !is_json(json)) ||
        (json != NULL && count(text, "\n  line ") != count(json, "\"line\":"))) {
        fprintf(stderr, "%s\n", path);
        EXPECT(!"the report is right");
    }
    pipec_program_free(program);
}

static void test_files(const char *pattern, size_t at_least) {
    glob_t files;
    EXPECT(glob(pattern, 0, NULL, &files) == 0 && files.gl_pathc >= at_least);
    for (size_t i = 0; i < files.gl_pathc; i++) test_file(files.gl_pathv[i]);
    globfree(&files);
}

static void test_facts(const char *path, const char *const *expected, size_t count) {
    PipecOptions options = {.size = sizeof options};
    PipecProgram *program = pipec_compile_file(path, &options);
    const char *json = pipec_program_emit(program, "report");
    for (size_t i = 0; i < count; i++)
        if (!EXPECT(json != NULL && strstr(json, expected[i]) != NULL))
            fprintf(stderr, "%s\n", expected[i]);
    pipec_program_free(program);
}

static void test_numbers(void) {
    static const char *const expected[] = {
        "\"blocks_an_sm\":1,\"most_blocks_an_sm\":1,\"limited_by\":\"shared memory\","
        "\"registers_a_thread\":168,\"bytes_in_flight_an_sm\":147456",
        "\"kind\":\"contraction\",\"target\":\"acc[i, j]\",\"instruction\":"
        "\"wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16\",\"instructions\":4",
        "\"kind\":\"wait\",\"for\":\"matrix instructions\",\"depth\":1,\"of\":\"s\"",
        "\"kind\":\"wait\",\"for\":\"matrix instructions\",\"depth\":0,\"of\":\"s\"",
        "\"kind\":\"wait\",\"for\":\"bulk stores\",\"depth\":0,\"of\":\"o\"",
        "\"kind\":\"matrix move\",\"what\":\"o.t[rank * 128 / 2 + i, j]\",\"instruction\":"
        "\"stmatrix\"",
        "\"kind\":\"late release\",\"of\":\"s\",\"iterations\":1"};
    test_facts("examples/gemm.pipe", expected, COUNT_OF(expected));
}

static void test_factors(void) {
    static const char *const expected[] = {
        "\"line\":15,\"kind\":\"factor\",\"factor\":\"0.125\",\"held\":null,\"decided_at_launch\":"
        "false",
        "\"line\":16,\"kind\":\"factor\",\"factor\":\"f\",\"held\":\"x\",\"decided_at_launch\":"
        "true"};
    test_facts("tests/ptx/maxima-of-scaled-tiles.pipe", expected, COUNT_OF(expected));
}

int main(void) {
    EXPECT(!is_json("{\"a\":1,}\n") && !is_json("{\"a\" 1}\n") &&
           is_json("{\"a\":[1,\"\\\"\"]}\n"));
    test_files("examples/*.pipe", 15);
    test_files("tests/run/*.pipe", 100);
    test_numbers();
    test_factors();
    return expect_failures();
}
