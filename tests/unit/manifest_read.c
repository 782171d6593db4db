/* Manifests that are read: each one that pipec writes is printed again byte for byte, and its
 * formulas have the same values; malformed ones are refused by the name of the field. Run in the
 * root of the repository. */
#include "lib/private.h"

#include "tests/unit/expect.h"
#include "tests/unit/sample.h"

#include <glob.h>

/* ---- all programs ---------------------------------------------------------------------------- */

#define SYMBOLS_MOST 64

static void same_values(const Formula *a, const Formula *b) {
    static const int64_t draws[] = {4096, 128, 33, 64, 1, 7, 1000, 2};
    for (int64_t i = 0; i < 3; i++) {
        int64_t x, y, symbols[SYMBOLS_MOST];
        for (int s = 0; s < SYMBOLS_MOST; s++) symbols[s] = i < 2 ? i * (s + 1) : draws[s % 8];
        FormulaFault fault = formula_eval(a, symbols, &x);
        EXPECT(formula_eval(b, symbols, &y) == fault && (fault != FORMULA_FINE || x == y));
    }
}

static void compare(const Manifest *written, const Manifest *read) {
    EXPECT(written->symbols.count <= SYMBOLS_MOST);
    same_values(&written->tiles, &read->tiles);
    for (size_t i = 0; i < written->preconditions.count; i++)
        same_values(&written->preconditions.items[i].condition,
                    &read->preconditions.items[i].condition);
    WorkTotals x, y;
    int64_t symbols[SYMBOLS_MOST];
    for (int s = 0; s < SYMBOLS_MOST; s++) symbols[s] = 64;
    Arena *arena = arena_new();
    RoleWork *roles = NEW_ARRAY(arena, RoleWork, written->roles.count + read->roles.count + 1);
    EXPECT(work_total(written, work_values(arena, written, symbols), 10, NULL, roles, &x) ==
           work_total(read, work_values(arena, read, symbols), 10, NULL, roles, &y));
    arena_free(arena);
    EXPECT(memcmp(x.amount, y.amount, sizeof x.amount) == 0 && x.bounded == y.bounded &&
           x.beside == y.beside);
    EXPECT(written->work.count == read->work.count);
    for (size_t i = 0; i < written->work.count; i++) {
        const ManifestWork *a = &written->work.items[i], *b = &read->work.items[i];
        EXPECT(a->end == b->end && a->end > (int)i && a->varies == b->varies &&
               a->beside == b->beside);
    }
    for (size_t i = 0; i < written->maps.count; i++)
        for (int axis = 0; axis < written->maps.items[i].rank; axis++) {
            const ManifestMap *a = &written->maps.items[i], *b = &read->maps.items[i];
            same_values(&a->extents[axis], &b->extents[axis]);
            if (axis > 0) same_values(&a->strides[axis], &b->strides[axis]);
        }
}

static void round_trip(const char *file, const char *kernel, bool watchdog) {
    Scratch scratch = scratch_new();
    PipecOptions options = {.kernel = kernel, .watchdog = watchdog};
    PipecProgram *program = pipec_compile_file(file, &options);
    if (program->manifest != NULL) {
        Str first = str_new(scratch.arena), second = str_new(scratch.arena);
        manifest_json(program->manifest, &first);
        const Manifest *read =
            manifest_read(scratch.arena, first.text, first.length, scratch.diags);
        if (read != NULL) manifest_json(read, &second);
        if (!EXPECT_CLEAN(&scratch) || !EXPECT(strcmp(first.text, second.text) == 0))
            fprintf(stderr, "%s\n", file);
        if (read != NULL) compare(program->manifest, read);
    }
    pipec_program_free(program);
    scratch_free(&scratch);
}

static void all_programs(void) {
    static const char *const folders[] = {"tests/ptx/*.pipe", "examples/*.pipe", "bench/*.pipe",
                                          "tests/run/*.pipe"};
    glob_t files = {.gl_offs = 0};
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        glob(folders[i], i > 0 ? GLOB_APPEND : 0, NULL, &files);
    EXPECT(files.gl_pathc > 100);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        PipecOptions check = {.check_only = true, .combinations = 1};
        PipecProgram *all = pipec_compile_file(files.gl_pathv[i], &check);
        const char *kernel;
        for (size_t k = 0; (kernel = pipec_program_kernel(all, k)) != NULL; k++)
            round_trip(files.gl_pathv[i], kernel, (i + k) % 2 == 0);
        pipec_program_free(all);
    }
    globfree(&files);
}

/* ---- malformed ------------------------------------------------------------------------------- */

static const char *sample_json(Scratch *scratch) {
    Str out = str_new(scratch->arena);
    manifest_json(sample_manifest(scratch->arena), &out);
    return out.text;
}

/* The sample with the first `from` replaced by `to` */
static const char *changed(Scratch *scratch, const char *from, const char *to) {
    const char *text = sample_json(scratch), *at = strstr(text, from);
    if (!EXPECT(at != NULL)) fprintf(stderr, "%s\n", from);
    if (at == NULL) return text;
    return arena_printf(scratch->arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static void refused(Scratch *scratch, const char *from, const char *to, const char *why) {
    const char *text = changed(scratch, from, to);
    EXPECT(manifest_read(scratch->arena, text, strlen(text), scratch->diags) == NULL);
    EXPECT_ERROR(scratch, P0920, why);
}

static void malformed(Scratch *scratch) {
    refused(scratch, "\"format\": 1", "\"format\": 5",
            "`format` is 5; this version of pipec reads formats 1 to 4");
    refused(scratch, "\"format\": 1", "\"format\": 1.5", "`format` is 1.5");
    refused(scratch, "\"format\"", "\"from\"", "this is not a manifest of pipec");
    refused(scratch, "\"symbols\"", "\"symbol\"", "`symbols` is missing");
    refused(scratch, "\"axpy\"", "\"\"", "`kernel` is empty");
    refused(scratch, "\"8.0\"", "\"8\"", "`ptx` is not a version");
    refused(scratch, "\"8.0\"", "\"8.00\"", "`ptx` is not a version");
    refused(scratch, "00af", "00AF", "`ptx_hash` is not a hash");
    refused(scratch, "00af", "0af", "`ptx_hash` is not a hash");
    refused(scratch, "\"kind\": \"extent\"", "\"kind\": \"size\"", "`symbols[0].kind` cannot be");
    refused(scratch, "\"mode\": \"in\"", "\"mode\": \"inn\"", "`parameters[0].mode` cannot be");
    refused(scratch, "\"type\": \"f32\"", "\"type\": \"f33\"", "`parameters[0].type` is not an");
    refused(scratch, "\"element_bytes\": 4", "\"element_bytes\": 8",
            "element_bytes` is not a whole");
    refused(scratch, "\"extents\": [\"N\"]", "\"extents\": []", "wrong number of formulas");
    refused(scratch, "\"extents\": [\"N\"]", "\"extents\": [\"N\",\"N\",\"N\",\"N\",\"N\",\"N\"]",
            "wrong number of formulas");
    refused(scratch, "\"extents\": [\"N\"]", "\"extents\": [\"K\"]", "over the symbols: `K`");
    refused(scratch, "\"alignment\": 16", "\"alignment\": 12", "not a power of two");
    refused(scratch, "\"alignment\": 16", "\"alignment\": 0", "from 1 to 1048576");
    refused(scratch, "\"stride_alignment\": 1,", "\"stride_alignment\": 0,", "from 1 to 1048576");
    refused(scratch, "\"joined\": []", "\"joined\": [1]", "`parameters[0].joined` is not");
    refused(scratch, "\"name\": \"n\", \"kind\": \"scalar\"",
            "\"name\": \"n\", \"kind\": \"stride\"", "is no symbol of this kind: `n`");
    refused(scratch, "\"kind\": \"scalar\"}",
            "\"kind\": \"scalar\"}, {\"name\": \"A.stride1\", \"kind\": \"stride\"}",
            "`A.stride1`, which is no stride");
    refused(scratch, "\"map\": 0", "\"map\": 1", "`arguments[0].map` is not");
    refused(scratch, "\"parameter\": \"Y\"", "\"parameter\": \"a\"", "is no tensor: `a`");
    refused(scratch, "\"symbol\": \"N\"", "\"symbol\": \"n\"", "no symbol of this kind: `n`");
    refused(scratch, "\"passed\": \"u64\"", "\"passed\": \"u32\"", "passed` is not `u64`");
    refused(scratch, "\"kind\": \"watchdog\"", "\"kind\": \"counter\"", "is missing");
    refused(scratch, "\"data_type\": 7", "\"data_type\": 6", "`maps[0].data_type` is not");
    refused(scratch, "\"box\": [256]", "\"box\": [257]", "`maps[0].box` is not a whole number");
    refused(scratch, "\"box\": [256]", "\"box\": [1, 1]", "wrong number of axes");
    refused(scratch, "\"swizzle\": 0", "\"swizzle\": 4", "`maps[0].swizzle`");
    refused(scratch, "\"promotion\": 0", "\"promotion\": 1", "neither 0 nor 3");
    refused(scratch, "\"condition\": \"2 <= N\"", "\"condition\": \"2 <= N <= 3\"",
            "not a formula");
    refused(scratch, "\"threads\": 160", "\"threads\": 2048", "`threads` is not a whole number");
    refused(scratch, "\"persistent\": true", "\"persistent\": 1", "is not true or false");
    refused(scratch, "[1, 1, 1]", "[1, 2, 1]", "`cluster` is not");
    refused(scratch, "[1, 1, 1]", "[1, 1]", "three axes");
    refused(scratch, "\"watchdog\": true", "\"watchdog\": false", "but there is none");
    refused(scratch, "\"role\": \"load\"", "\"role\": \"store\"", "is no role: `store`");
    refused(scratch, "\"line\": 20", "\"line\": 0", "`marks[1].line`");
    refused(scratch, "\"column\": 1,", "\"column\": 99,", "ends before it begins");
    refused(scratch, "\"end_line\": 1,", "\"end_line\": 16777216,", "beyond the end of any source");
    refused(scratch, "\"site\": 1", "\"site\": 2", "`waits[0].site`");
    refused(scratch, "\n}", "\n", "line ");
}

/* The manifest of a program that compares floats, with the first `from` replaced by `to` */
static const char *with_floats(Scratch *scratch, const char *from, const char *to) {
    PipecOptions options = {.size = sizeof options, .kernel = "scaled"};
    PipecProgram *program =
        pipec_compile_file("tests/run/requires-of-floating-point-parameters.pipe", &options);
    Str out = str_new(scratch->arena);
    manifest_json(program->manifest, &out);
    pipec_program_free(program);
    const char *at = strstr(out.text, from);
    if (!EXPECT(at != NULL)) fprintf(stderr, "%s\n", from);
    if (at == NULL) return out.text;
    return arena_printf(scratch->arena, "%.*s%s%s", (int)(at - out.text), out.text, to,
                        at + strlen(from));
}

static void floats_refused(Scratch *scratch, const char *from, const char *to, const char *why) {
    const char *text = with_floats(scratch, from, to);
    EXPECT(manifest_read(scratch->arena, text, strlen(text), scratch->diags) == NULL);
    EXPECT_ERROR(scratch, P0920, why);
}

/* Only conditions of format 2 compare floats, so that older readers refuse them. */
static void floats(Scratch *scratch) {
    const char *text = with_floats(scratch, "\"format\": 2", "\"format\": 2");
    EXPECT(manifest_read(scratch->arena, text, strlen(text), scratch->diags) != NULL);
    EXPECT(strstr(sample_json(scratch), "\"format\": 1") != NULL);
    EXPECT_CLEAN(scratch);
    floats_refused(scratch, "\"format\": 2", "\"format\": 1", "].kind` cannot be `float`");
    floats_refused(scratch, "\"0f00000000 < a\"", "\"0 < a\"", "over the symbols: `0 < a`");
    floats_refused(scratch, "\"extents\": [\"N\"]", "\"extents\": [\"a < b\"]",
                   "`parameters[0].extents` compares floats");
    floats_refused(scratch, "\"tiles\": \"",
                   "\"tiles\": \"0f00000000 < a ? 1 : ", "`tiles` compares floats");
    floats_refused(scratch, "\"kind\": \"scalar\", \"symbol\": \"a\"",
                   "\"kind\": \"scalar\", \"symbol\": \"N\"", "is no symbol of this kind: `N`");
    floats_refused(scratch, "\"type\": \"f32\", \"kind\": \"scalar\"",
                   "\"type\": \"i32\", \"kind\": \"scalar\"", "has another type");
}

/* Truncated, and with one byte changed: refused, or printed again. Nothing crashes. */
static void damaged(Scratch *scratch) {
    const char *text = sample_json(scratch);
    size_t length = strlen(text);
    for (size_t cut = 0; cut + 2 < length; cut++) {
        Scratch one = scratch_new();
        EXPECT(manifest_read(one.arena, text, cut, one.diags) == NULL && one.diags->errors == 1);
        scratch_free(&one);
    }
    for (size_t at = 0; at < length; at++) {
        Scratch one = scratch_new();
        char *copy = arena_copy(one.arena, text, length);
        copy[at] = "0\"{}[]-9 ,"[at % 10];
        const Manifest *read = manifest_read(one.arena, copy, length, one.diags);
        Str out = str_new(one.arena);
        if (read != NULL) manifest_json(read, &out);
        EXPECT((read == NULL) == (one.diags->errors == 1));
        scratch_free(&one);
    }
}

static void unknown_fields(Scratch *scratch) {
    const char *text = changed(scratch, "\"kernel\"", "\"later\": [{\"a\": [1]}], \"kernel\"");
    const Manifest *read = manifest_read(scratch->arena, text, strlen(text), scratch->diags);
    Str out = str_new(scratch->arena);
    if (read != NULL) manifest_json(read, &out);
    EXPECT(strcmp(out.text, sample_json(scratch)) == 0);
    EXPECT_CLEAN(scratch);
}

int main(void) {
    Scratch scratch = scratch_new();
    all_programs();
    malformed(&scratch);
    floats(&scratch);
    damaged(&scratch);
    unknown_fields(&scratch);
    scratch_free(&scratch);
    return expect_failures();
}
