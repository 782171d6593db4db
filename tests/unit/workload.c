/* Launches of any PTX as words and launch files describe them: results, and what is refused. */
#include "emulator/workload/workload.h"

#include "tests/unit/expect.h"

#include <stdlib.h>
#include <unistd.h>

#define FOLDER "tests/emulator/programs/"

static const float *floats(const Workload *workload, size_t array) {
    return (const float *)(const void *)workload_array(workload, array)->data;
}

static RunStatus run(Scratch *scratch, Workload *workload, const EmulatorOptions *emulator,
                     int schedules) {
    WorkloadOptions options = {.schedules = schedules};
    RunResult result;
    if (emulator != NULL) options.emulator = *emulator;
    return workload_run(workload, &options, &result, scratch->diags);
}

static Workload *read_text(Scratch *scratch, const char *text) {
    RunStatus status = RUN_FINDING;
    Workload *workload =
        workload_from_text(scratch->arena, text, strlen(text), FOLDER, 0, &status, scratch->diags);
    EXPECT((workload != NULL) == (status == RUN_DONE));
    return workload;
}

/* ---- launch files ---------------------------------------------------------------------------- */

static const char sequence[] =
    "{\"ptx\": \"scale.ptx\","
    " \"arrays\": {\"X\": \"zeros:f32[100]\", \"Y\": \"zeros:f32[10,10]\"},"
    " \"launches\": [{\"entry\": \"fill\", \"grid\": [4], \"block\": [32, 1],"
    "                \"arguments\": [\"array:X\", \"u32:100\"]},"
    "               {\"entry\": \"scale\", \"grid\": 4, \"programmatic\": false, \"arguments\": ["
    "                {\"struct\": [\"array:X\", \"array:Y\"]}, \"f32:0.5\", \"u32:100\"]},"
    "               {\"entry\": \"scale\", \"grid\": 4, \"arguments\": ["
    "                {\"struct\": [\"array:X\", \"array:Y\"]}, \"f32:2\", \"u32:99\"]}]}";

/* The module's variable keeps its value from one launch to the next: 5, not 3. */
static void test_sequence(void) {
    Scratch scratch = scratch_new();
    Workload *workload = read_text(&scratch, sequence);
    if (EXPECT(workload != NULL) && EXPECT(workload_launches(workload) == 3) &&
        EXPECT(run(&scratch, workload, NULL, 4) == RUN_DONE)) {
        for (int i = 0; i < 99; i++) EXPECT(floats(workload, 1)[i] == (float)i * 2.5f + 10);
        EXPECT(floats(workload, 1)[99] == 99 * 0.5f + 5);
        EXPECT(workload_array(workload, 2) == NULL);
    }
    EXPECT_CLEAN(&scratch);
    workload_free(workload);
    scratch_free(&scratch);
}

/* The map of the result is in global memory, as a table of maps is. */
static void test_maps(void) {
    static const char text[] =
        "{\"ptx\": \"structure.ptx\","
        " \"arrays\": {\"X\": \"zeros:f32[8,32]\", \"Y\": \"zeros:f32[8,32]\","
        "  \"M\": {\"struct\": [{\"map\": {\"array\": \"Y\", \"box\": [32, 8],"
        "   \"swizzle\": 128, \"extents\": [32, 8], \"strides\": [128], \"type\": \"f32\","
        "   \"element_strides\": [1, 1], \"interleave\": \"none\", \"fill\": \"zeros\"}}]}},"
        " \"launches\": [{\"grid\": 1, \"block\": 32, \"shared\": 2304, \"arguments\": ["
        "  {\"struct\": [\"i8:-1\", {\"map\": {\"array\": \"X\", \"box\": [32, 8], "
        "   \"swizzle\": 128}, \"align\": 64}, {\"at\": 252, \"value\": \"f32:0.5\"}]}, "
        "\"array:M\"]}]}";
    Scratch scratch = scratch_new();
    Workload *workload = read_text(&scratch, text);
    if (EXPECT(workload != NULL) && EXPECT(run(&scratch, workload, NULL, 1) == RUN_DONE))
        EXPECT(floats(workload, 1)[0] == 0.5f && floats(workload, 1)[33] == 0);
    EXPECT_CLEAN(&scratch);
    workload_free(workload);
    scratch_free(&scratch);
}

/* More blocks than may wait for others otherwise */
static void test_cooperative(void) {
    Scratch scratch = scratch_new();
    Workload *workload = read_text(
        &scratch, "{\"ptx\": \"together.ptx\", \"launches\": [{\"grid\": 40, \"block\": 1,"
                  " \"cooperative\": true, \"arguments\": [\"zeros:u32[1]\"]}]}");
    if (EXPECT(workload != NULL) && EXPECT(run(&scratch, workload, NULL, 3) == RUN_DONE))
        EXPECT(*(const uint32_t *)(const void *)workload_array(workload, 0)->data == 40);
    EXPECT_CLEAN(&scratch);
    workload_free(workload);
    Workload *large = read_text(
        &scratch, "{\"ptx\": \"together.ptx\", \"launches\": [{\"grid\": 5000, \"block\": 1,"
                  " \"cooperative\": true, \"arguments\": [\"zeros:u32[1]\"]}]}");
    EXPECT(large == NULL);
    EXPECT_ERROR(&scratch, P0702, "a cooperative launch has 5000 blocks");
    scratch_free(&scratch);
}

static void test_budget(uint64_t blocks, const char *note) {
    Scratch scratch = scratch_new();
    Workload *workload = read_text(&scratch, sequence);
    EmulatorOptions options = {.blocks = blocks};
    if (EXPECT(workload != NULL)) {
        EXPECT(run(&scratch, workload, &options, 1) == RUN_INCOMPLETE);
        EXPECT_ERROR(&scratch, P0760, note);
    }
    workload_free(workload);
    scratch_free(&scratch);
}

/* ---- words ----------------------------------------------------------------------------------- */

static void test_words(void) {
    char folder[] = "/tmp/workload.XXXXXX";
    Scratch scratch = scratch_new();
    RunStatus status;
    float values[4] = {1, 2, 3, 4};
    if (!EXPECT(mkdtemp(folder) != NULL)) return;
    const char *x = arena_printf(scratch.arena, "%s/x.npy", folder),
               *y = arena_printf(scratch.arena, "%s/y.npy", folder),
               *fields = arena_printf(scratch.arena, "%s/fields.json", folder);
    NpyData data = {.descr = "<f4",
                    .element_bytes = 4,
                    .rank = 1,
                    .shape = {4},
                    .data = (unsigned char *)values,
                    .bytes = sizeof values};
    EXPECT(npy_write_any(scratch.arena, x, &data, scratch.diags));
    FILE *out = fopen(fields, "w");
    if (EXPECT(out != NULL)) {
        fprintf(out, "[\"in:x.npy\", \"inout:x.npy:y.npy\"]");
        fclose(out);
    }
    const char *arguments[] = {arena_printf(scratch.arena, "struct:%s", fields), "f32:0x1p1",
                               "u32:0x4"};
    WorkloadWords words = {.ptx = FOLDER "scale.ptx",
                           .entry = "scale",
                           .grid = "1,1,1",
                           .arguments = arguments,
                           .argument_count = 3};
    Workload *workload = workload_from_words(scratch.arena, &words, &status, scratch.diags);
    if (EXPECT(workload != NULL) && EXPECT(run(&scratch, workload, NULL, 2) == RUN_DONE))
        EXPECT(workload_save(workload, scratch.diags));
    workload_free(workload);
    Array read;
    if (EXPECT(npy_read(scratch.arena, y, E_F32, &read, scratch.diags)))
        for (int i = 0; i < 4; i++) EXPECT(((float *)(void *)read.data)[i] == values[i] * 3 + 3);
    EXPECT_CLEAN(&scratch);
    array_free(&read);
    unlink(x), unlink(y), unlink(fields), rmdir(folder);
    scratch_free(&scratch);
}

typedef struct Wrong {
    const char *entry, *grid, *block, *cluster;
    uint32_t shared;
    const char *arguments[4];
    RunStatus status;
    Code code;
    const char *why;
} Wrong;

#define FILL         "zeros:f32[4]", "u32:4"
#define BAD          RUN_UNAVAILABLE, P0767
#define DOES_NOT_FIT RUN_REJECTED, P0702

static const Wrong wrong_words[] = {
    {NULL, "1", "1", NULL, 0, {FILL}, BAD, "2 entries, so one must be named: `fill`, `scale`"},
    {"file", "1", "1", NULL, 0, {FILL}, DOES_NOT_FIT, "has no kernel `file`"},
    {"fill", NULL, "1", NULL, 0, {FILL}, BAD, "the grid is missing"},
    {"fill", "1", NULL, NULL, 0, {FILL}, BAD, "the threads of a block are missing"},
    {"fill", "0", "1", NULL, 0, {FILL}, DOES_NOT_FIT, "the grid has 0 along x"},
    {"fill", "1,1,1,1", "1", NULL, 0, {FILL}, BAD, "is not X, X,Y or X,Y,Z"},
    {"fill", "-1", "1", NULL, 0, {FILL}, BAD, "is not X, X,Y or X,Y,Z"},
    {"fill", "4294967296", "1", NULL, 0, {FILL}, BAD, "is not X, X,Y or X,Y,Z"},
    {"fill", "1", "1025", NULL, 0, {FILL}, DOES_NOT_FIT, "blocks of 1025 threads"},
    {"fill", "1", "2147483648,2147483648", NULL, 0, {FILL}, DOES_NOT_FIT, "blocks of 2147483648"},
    {"fill", "3", "1", "2", 0, {FILL}, DOES_NOT_FIT, "is not a multiple of clusters of 2"},
    {"fill", "1", "1", NULL, 300000, {FILL}, DOES_NOT_FIT, "more shared memory"},
    {"scale", "1", "64", NULL, 0, {"raw:" FOLDER "scale.ptx"}, DOES_NOT_FIT, "gives 1"},
    {"fill", "1", "1", NULL, 0, {"u64:0"}, DOES_NOT_FIT, "2 parameters, but the launch gives 1"},
    {"fill", "1", "1", NULL, 0, {FILL, "i32:1"}, DOES_NOT_FIT, "but the launch gives 3"},
    {"fill", "1", "1", NULL, 0, {"zeros:f32[4]", "f32:4"}, DOES_NOT_FIT, "a floating-point"},
    {"fill", "1", "1", NULL, 0, {"zeros:f32[4]", "u64:4"}, DOES_NOT_FIT, "argument 1 has 8 bytes"},
    {"fill", "1", "1", NULL, 0, {"zeros:f32[4]", "u32:-4"}, BAD, "outside of the range of `u32`"},
    {"fill", "1", "1", NULL, 0, {"zeros:f32[4]", "i8:128"}, BAD, "outside of the range of `i8`"},
    {"fill", "1", "1", NULL, 0, {"zeros:f32[4]", "u32:4x"}, BAD, "is not an integer"},
    {"fill", "1", "1", NULL, 0, {"f32:x"}, BAD, "argument 0: `x` is not a number"},
    {"fill", "1", "1", NULL, 0, {"four"}, BAD, "none of the forms"},
    {"fill", "1", "1", NULL, 0, {"zeros:f32"}, BAD, "is not a type with extents"},
    {"fill", "1", "1", NULL, 0, {"zeros:f99[4]"}, BAD, "is not a type with extents"},
    {"fill", "1", "1", NULL, 0, {"zeros:f32[4"}, BAD, "are not whole numbers"},
    {"fill", "1", "1", NULL, 0, {"zeros:f32[-4]"}, BAD, "are not whole numbers"},
    {"fill", "1", "1", NULL, 0, {"zeros:f32[4]4"}, BAD, "text after its extents"},
    {"fill", "1", "1", NULL, 0, {"zeros:f64[4611686018427387904]"}, BAD, "does not fit 64 bits"},
    {"fill", "1", "1", NULL, 0, {"out:c.npy"}, BAD, "the form is `out:FILE.npy:TYPE[EXTENTS]`"},
    {"fill", "1", "1", NULL, 0, {"out:c.npy:f32[4]", "out:c.npy:f32[4]"}, BAD, "two results"},
    {"fill", "1", "1", NULL, 0, {"array:0"}, BAD, "is not an earlier argument"},
    {"fill", "1", "1", NULL, 0, {"array:X"}, BAD, "no array is named `X`"},
    {"fill", "1", "1", NULL, 0, {"zeros:u8[4]", "array:0+x"}, BAD, "is not a number of bytes"},
    {"fill", "1", "1", NULL, 0, {"in:none.npy"}, RUN_UNAVAILABLE, P0611, "cannot open"},
    {"fill", "1", "1", NULL, 0, {"raw:none"}, RUN_UNAVAILABLE, P0900, "cannot open"},
    {"fill", "1", "1", NULL, 0, {"map:none.json"}, RUN_UNAVAILABLE, P0900, "cannot open"},
    {"fill", "1", "1", NULL, 0, {"struct:" FOLDER "scale.ptx"}, BAD, "is not JSON: line 1"},
    {"fill", "1", "1", NULL, 0, {"raw:/dev/null"}, BAD, "is empty"},
};

static void test_wrong_words(const Wrong *wrong) {
    Scratch scratch = scratch_new();
    RunStatus status;
    size_t count = 0;
    while (count < COUNT_OF(wrong->arguments) && wrong->arguments[count] != NULL) count++;
    WorkloadWords words = {FOLDER "scale.ptx", wrong->entry,   wrong->grid,
                           wrong->block,       wrong->cluster, wrong->shared,
                           wrong->arguments,   count,          false};
    EXPECT(workload_from_words(scratch.arena, &words, &status, scratch.diags) == NULL);
    EXPECT(status == wrong->status);
    EXPECT_ERROR(&scratch, wrong->code, wrong->why);
    scratch_free(&scratch);
}

/* ---- wrong launch files ---------------------------------------------------------------------- */

#define LAUNCH(fields)   "{\"ptx\": \"scale.ptx\", \"launches\": [{" fields "}]}"
#define ARGUMENT(value)  LAUNCH("\"entry\": \"fill\", \"grid\": 1, \"arguments\": [" value "]")
#define MAP(fields)      ARGUMENT("{\"map\": {" fields "}}")
#define MAP_OF_X(fields) MAP("\"array\": \"zeros:f32[4,4]\", " fields)

static const struct {
    const char *text, *why;
} wrong_files[] = {
    {"{", "is not JSON: line 1"},
    {"[]", "a launch file is an object"},
    {"{\"launches\": []}", "`launches` is not a list of launches"},
    {"{\"launch\": []}", "there is no field `launch` here"},
    {"{\"launches\": [{\"grid\": 1}]}", "launch 0: `ptx` is missing"},
    {"{\"arrays\": 1, \"launches\": []}", "`arrays` is not an object"},
    {"{\"arrays\": {\"X\": \"i32:1\"}}", "array `X`: its value has none of the forms"},
    {LAUNCH(""), "launch 0: `grid` is missing"},
    {LAUNCH("\"grid\": []"), "`grid` is neither a number nor a list"},
    {LAUNCH("\"grid\": [1, 1, 1, 1]"), "`grid` has more than three numbers"},
    {LAUNCH("\"grid\": 1.5"), "`grid` is not a whole number"},
    {LAUNCH("\"grid\": -1"), "`grid` is not a whole number"},
    {LAUNCH("\"grid\": 1, \"shared\": \"1\""), "`shared` is not a whole number"},
    {LAUNCH("\"grid\": 1, \"programmatic\": 1"), "`programmatic` is not true or false"},
    {LAUNCH("\"grid\": 1, \"arguments\": 1"), "`arguments` is not a list"},
    {LAUNCH("\"grid\": 1, \"entry\": 1"), "`entry` is not a text"},
    {ARGUMENT("7"), "launch 0, argument 0: a value is a text such as"},
    {ARGUMENT("{}"), "exactly one of `value`, `map` and `struct`"},
    {ARGUMENT("{\"value\": 7}"), "`value` is not a text"},
    {ARGUMENT("{\"struct\": []}"), "a structure is a list of fields"},
    {ARGUMENT("{\"struct\": [{\"value\": \"i32:1\", \"align\": 3}]}"),
     "`align` is not a power of two"},
    {ARGUMENT("{\"struct\": [{\"at\": 8, \"map\": {\"array\": \"zeros:f32[4]\", \"box\": [4]}}]}"),
     "a tensor map at byte 8 must be at a multiple of 64"},
    {ARGUMENT("{\"struct\": [{\"at\": 40000, \"value\": \"i8:1\"}]}"), "`at` is not a number"},
    {ARGUMENT("{\"struct\": [{\"at\": 32760, \"value\": \"i64:1\"}]}"), "more than 32764 bytes"},
    {MAP("\"box\": [4]"), "`array` of a tensor map is neither"},
    {MAP("\"array\": 0, \"box\": [4]"), "argument 0 is not an earlier argument"},
    {MAP_OF_X("\"swizzle\": 32"), "`box` of a tensor map is missing"},
    {MAP_OF_X("\"box\": [4]"), "`box` of a tensor map has 1 numbers, but needs 2"},
    {MAP_OF_X("\"box\": [4, 4, 4, 4, 4, 4]"), "at most 5 whole numbers from 1"},
    {MAP_OF_X("\"box\": [4, 0]"), "at most 5 whole numbers from 1"},
    {MAP_OF_X("\"box\": 4"), "`box` of a tensor map is not a list"},
    {MAP_OF_X("\"box\": [4, 4], \"swizzle\": 16"), "`swizzle` of a tensor map"},
    {MAP_OF_X("\"box\": [4, 4], \"type\": \"bool\""), "`type` of a tensor map"},
    {MAP_OF_X("\"box\": [4, 4], \"extents\": []"), "`extents` of a tensor map is empty"},
    {MAP_OF_X("\"box\": [4, 4], \"stride\": [16]"), "there is no field `stride` here"},
};

static void test_wrong_file(const char *text, const char *why) {
    Scratch scratch = scratch_new();
    EXPECT(read_text(&scratch, text) == NULL);
    EXPECT_ERROR(&scratch, P0767, why);
    scratch_free(&scratch);
}

static void test_map_refused(const char *text, Code code, const char *why) {
    Scratch scratch = scratch_new();
    EXPECT(read_text(&scratch, text) == NULL);
    EXPECT_ERROR(&scratch, code, why);
    scratch_free(&scratch);
}

int main(void) {
    test_sequence();
    test_maps();
    test_cooperative();
    test_budget(2, "2 of 4 blocks of kernel `fill` have ended in launch 1 of 3");
    test_budget(9, "1 of 4 blocks of kernel `scale` have ended in launch 3 of 3");
    test_words();
    for (size_t i = 0; i < COUNT_OF(wrong_words); i++) test_wrong_words(&wrong_words[i]);
    for (size_t i = 0; i < COUNT_OF(wrong_files); i++)
        test_wrong_file(wrong_files[i].text, wrong_files[i].why);
    test_map_refused(MAP_OF_X("\"box\": [4, 4], \"swizzle\": 128, \"strides\": [20]"), P0703,
                     "a stride is not a multiple of 16");
    test_map_refused(MAP_OF_X("\"box\": [4, 4], \"interleave\": \"16B\""), P0701, "interleaving");
    return expect_failures();
}
