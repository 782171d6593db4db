/* Runs every tests/emulator/NAME.ptx as its head says, on several schedules, and assembles it if
 * ptxas is found.
 *
 *   //> threads 96 · tiles 3 · persistent 2 (resident blocks) · cluster 2 (of the launch) ·
 *       shared 4096 · seeds 4 (number of schedules; 1: the plain one) · limit 5000
 *   //> tensor in|out|inout NAME TYPE EXTENT..          filled with 0, 1, 2, .. (in, inout), poison
 *                                                       (out)
 *   //> map NAME box B0 B1 .. [swizzle 32|64|128]        innermost first
 *   //> pass map N | pointer NAME | scalar NAME TYPE VALUE | extent VALUE | counter | watchdog
 *                                                        the kernel's parameters in order
 *   //> role NAME FIRST WARPS
 *   //> full|empty PIPE OFFSET STAGES COUNT
 *   //> field PIPE NAME OFFSET BYTES STAGES
 *   //> launches {"ptx": "NAME.ptx", ..                  instead: a launch file, in several lines
 *   //> expect done|incomplete|rejected|P0730            how it ends
 *   //> warns P0724 ..                                   findings that do not end the run, in order
 *   //> says TEXT                                        in the rendered findings
 *   //> check NAME LOW HIGH A B                          element i is A * i + B for LOW <= i < HIGH
 *   //> assemble no                                      ptxas rejects it, on purpose */
#include "emulator/emulator.h"
#include "emulator/workload/workload.h"

#include "tests/unit/expect.h"

#include <dirent.h>
#include <stdlib.h>

typedef struct Check {
    char name[32];
    long low, high;
    double a, b;
} Check;

typedef struct Case {
    Arena *arena;
    Manifest manifest;
    Launch launch;
    VEC(Array) arrays;
    VEC(Scalar) scalars;
    VEC(int64_t) symbols;
    VEC(Check) checks;
    VEC(const char *) messages;
    char expect[32];
    Str launches;
    const char *warns; /* codes that are reported although the run is done; "": none */
    int seeds, resident, limit;
    bool assembles;
    const char *file;
} Case;

static Formula constant_formula(Arena *arena, int64_t value) {
    FormulaStep *step = NEW(arena, FormulaStep);
    *step = (FormulaStep){F_CONST, value};
    return (Formula){step, 1};
}

static int find_parameter(Case *test, const char *name) {
    for (size_t i = 0; i < test->manifest.parameters.count; i++)
        if (!strcmp(test->manifest.parameters.items[i].name, name)) return (int)i;
    fprintf(stderr, "%s: no tensor `%s`\n", test->file, name);
    failed_expectations++;
    return 0;
}

static void add_tensor(Case *test, char *words) {
    char mode[16], name[32], type[16];
    int used = 0;
    ManifestParameter parameter = {.kind = PARAMETER_TENSOR, .symbol = -1, .alignment = 16};
    Array array = {0};
    if (sscanf(words, "%15s %31s %15s%n", mode, name, type, &used) != 3 ||
        !EXPECT(element_by_name(type, &parameter.type)))
        return;
    words += used;
    parameter.name = arena_copy(test->arena, name, strlen(name));
    parameter.mode = !strcmp(mode, "in") ? MODE_IN : !strcmp(mode, "out") ? MODE_OUT : MODE_INOUT;
    int64_t extents[MAX_RANK] = {0};
    for (char *end; parameter.rank < MAX_RANK; words = end) {
        extents[parameter.rank] = strtol(words, &end, 0);
        if (end == words) break;
        parameter.rank++;
    }
    EXPECT(array_new(&array, parameter.type, parameter.rank, extents));
    vec_push(test->arena, &test->manifest.parameters, parameter);
    vec_push(test->arena, &test->arrays, array);
    vec_push(test->arena, &test->scalars, (Scalar){0});
}

static void fill(Case *test) {
    for (size_t i = 0; i < test->arrays.count; i++) {
        Array *array = &test->arrays.items[i];
        const ManifestParameter *parameter = &test->manifest.parameters.items[i];
        if (parameter->kind != PARAMETER_TENSOR) continue;
        size_t bytes = (size_t)element_rows[array->type].bytes;
        memset(array->data, 0xa5, array->bytes);
        for (int64_t k = 0; k < array->count && parameter->mode != MODE_OUT; k++)
            if (element_rows[array->type].kind == ELEMENT_FLOAT)
                element_store(array->type, array->data + (size_t)k * bytes, (double)k);
            else
                element_store_integer(array->type, array->data + (size_t)k * bytes, k);
    }
}

/* "X box 32 8 swizzle 128"; "X inner 29 box 32 8": of the first 29 elements of each row */
static void add_map(Case *test, char *words) {
    char *word = strtok(words, " ");
    ManifestMap map = {.parameter = find_parameter(test, word)};
    const Array *array = &test->arrays.items[map.parameter];
    map.type = array->type;
    int64_t stride = element_rows[array->type].bytes;
    for (int i = 0; i < array->rank; i++) {
        int64_t extent = array->extents[array->rank - 1 - i];
        map.extents[i] = constant_formula(test->arena, extent);
        map.strides[i] = constant_formula(test->arena, stride);
        stride *= extent;
    }
    word = strtok(NULL, " ");
    if (word && strcmp(word, "inner") == 0) {
        map.extents[0] = constant_formula(test->arena, atoi(strtok(NULL, " ")));
        strtok(NULL, " ");
    }
    while ((word = strtok(NULL, " ")) && strcmp(word, "swizzle") != 0)
        map.box[map.rank++] = (uint32_t)atoi(word);
    if (word && (word = strtok(NULL, " ")))
        map.swizzle = atoi(word) == 128 ? SWIZZLE_128 : atoi(word) == 64 ? SWIZZLE_64 : SWIZZLE_32;
    vec_push(test->arena, &test->manifest.maps, map);
}

static void add_argument(Case *test, char *words) {
    char kind[16], name[32] = "", type[16] = "";
    double value = 0;
    int count = sscanf(words, "%15s %31s %15s %lf", kind, name, type, &value);
    ManifestArgument argument = {0};
    EXPECT(count >= 1);
    if (!strcmp(kind, "map")) {
        argument = (ManifestArgument){ARGUMENT_TENSOR_MAP, atoi(name)};
    } else if (!strcmp(kind, "pointer")) {
        argument = (ManifestArgument){ARGUMENT_POINTER, find_parameter(test, name)};
    } else if (!strcmp(kind, "extent")) {
        argument = (ManifestArgument){ARGUMENT_EXTENT, (int)test->symbols.count};
        vec_push(test->arena, &test->symbols, strtol(name, NULL, 0));
    } else if (!strcmp(kind, "counter")) {
        argument = (ManifestArgument){ARGUMENT_COUNTER, 0};
        test->manifest.dynamic = true;
    } else if (!strcmp(kind, "watchdog")) {
        argument = (ManifestArgument){ARGUMENT_WATCHDOG, 0};
        test->manifest.watchdog = true;
    } else {
        ManifestParameter parameter = {.name = arena_copy(test->arena, name, strlen(name)),
                                       .kind = PARAMETER_SCALAR,
                                       .symbol = -1};
        EXPECT(element_by_name(type, &parameter.type));
        argument = (ManifestArgument){ARGUMENT_SCALAR, (int)test->manifest.parameters.count};
        vec_push(test->arena, &test->manifest.parameters, parameter);
        vec_push(test->arena, &test->arrays, (Array){0});
        vec_push(test->arena, &test->scalars, (Scalar){value, (int64_t)value});
    }
    vec_push(test->arena, &test->manifest.arguments, argument);
}

static void add_range(Case *test, SharedKind kind, char *words) {
    char pipe[32] = "", field[32] = "";
    unsigned offset = 0, bytes = 0, stages = 1, count = 1;
    if (kind == SHARED_FIELD)
        sscanf(words, "%31s %31s %u %u %u", pipe, field, &offset, &bytes, &stages);
    else
        sscanf(words, "%31s %u %u %u", pipe, &offset, &stages, &count);
    ManifestShared range = {.kind = kind,
                            .pipe = arena_copy(test->arena, pipe, strlen(pipe)),
                            .field = arena_copy(test->arena, field, strlen(field)),
                            .offset = offset,
                            .bytes = kind == SHARED_FIELD ? bytes : 8,
                            .stages = stages,
                            .count = count};
    range.stride = range.bytes;
    vec_push(test->arena, &test->manifest.shared, range);
}

static void read_directive(Case *test, char *line) {
    char word[32];
    int used = 0;
    if (sscanf(line, "%31s%n", word, &used) != 1) return;
    char *rest = line + used + (line[used] == ' ');
    Check check = {0};
    if (!strcmp(word, "threads"))
        test->manifest.threads = atoi(rest);
    else if (!strcmp(word, "tiles"))
        test->launch.tiles = atoi(rest);
    else if (!strcmp(word, "persistent"))
        test->manifest.persistent = true, test->resident = atoi(rest);
    else if (!strcmp(word, "cluster"))
        test->manifest.cluster[0] = atoi(rest);
    else if (!strcmp(word, "shared"))
        test->manifest.shared_bytes = (uint32_t)atoi(rest);
    else if (!strcmp(word, "seeds"))
        test->seeds = atoi(rest);
    else if (!strcmp(word, "limit"))
        test->limit = atoi(rest);
    else if (!strcmp(word, "tensor"))
        add_tensor(test, rest);
    else if (!strcmp(word, "map"))
        add_map(test, rest);
    else if (!strcmp(word, "pass"))
        add_argument(test, rest);
    else if (!strcmp(word, "full"))
        add_range(test, SHARED_FULL, rest);
    else if (!strcmp(word, "empty"))
        add_range(test, SHARED_EMPTY, rest);
    else if (!strcmp(word, "field"))
        add_range(test, SHARED_FIELD, rest);
    else if (!strcmp(word, "expect"))
        sscanf(rest, "%31s", test->expect);
    else if (!strcmp(word, "says"))
        vec_push(test->arena, &test->messages, rest);
    else if (!strcmp(word, "launches"))
        str_printf(&test->launches, "%s\n", rest);
    else if (!strcmp(word, "warns"))
        test->warns = rest;
    else if (!strcmp(word, "assemble"))
        test->assembles = false;
    else if (!strcmp(word, "role")) {
        char name[32] = "";
        int first = 0, warps = 1;
        sscanf(rest, "%31s %d %d", name, &first, &warps);
        vec_push(test->arena, &test->manifest.roles,
                 (ManifestRole){.name = arena_copy(test->arena, name, strlen(name)),
                                .first_warp = first,
                                .warps = warps,
                                .instances = 1});
    } else if (!strcmp(word, "check")) {
        sscanf(rest, "%31s %ld %ld %lf %lf", check.name, &check.low, &check.high, &check.a,
               &check.b);
        vec_push(test->arena, &test->checks, check);
    } else {
        fprintf(stderr, "%s: unknown directive `%s`\n", test->file, word);
        failed_expectations++;
    }
}

static void read_case(Case *test, const char *text) {
    for (const char *at = text; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
        if (!strncmp(at, "//> ", 4))
            read_directive(test, arena_copy(test->arena, at + 4, strcspn(at + 4, "\n")));
    test->launch.manifest = &test->manifest;
    test->launch.arrays = test->arrays.items;
    test->launch.scalars = test->scalars.items;
    test->launch.symbols = test->symbols.items;
    test->launch.ptx = text;
    test->launch.ptx_length = strlen(text);
}

static void check_results(Case *test, int seed) {
    for (size_t i = 0; i < test->checks.count; i++) {
        const Check *check = &test->checks.items[i];
        const Array *array = &test->arrays.items[find_parameter(test, check->name)];
        for (long k = check->low; k < check->high; k++) {
            double got =
                       element_load(array->type, array->data + k * element_rows[array->type].bytes),
                   want = check->a * (double)k + check->b;
            if (got == want) continue;
            fprintf(stderr, "%s (seed %d): %s[%ld] is %g, expected %g\n", test->file, seed,
                    check->name, k, got, want);
            failed_expectations++;
            break;
        }
    }
}

static Code first_error(const Diags *diags) {
    size_t i = 0;
    while (i + 1 < diags->items.count && diags->items.items[i]->severity != SEVERITY_ERROR) i++;
    return diags->items.items[i]->code;
}

static const char *ending(const Case *test, RunStatus status, const Diags *diags) {
    switch (status) {
    case RUN_DONE: return "done";
    case RUN_REJECTED: return "rejected";
    case RUN_INCOMPLETE: return "incomplete";
    case RUN_UNAVAILABLE: return "unavailable";
    case RUN_FINDING:
        return diags->errors == 1 ? code_rows[first_error(diags)].name : "several findings";
    }
    return test->expect;
}

/* True if the warnings and notes are those that the head lists. */
static bool warns_as_listed(const Case *test, const Diags *diags) {
    Str codes = str_new(test->arena);
    str_add(&codes, "");
    for (size_t i = 0; i < diags->items.count; i++)
        if (diags->items.items[i]->severity != SEVERITY_ERROR)
            str_printf(&codes, "%s%s", codes.length ? " " : "",
                       code_rows[diags->items.items[i]->code].name);
    return !strcmp(codes.text, test->warns);
}

/* a sequence of launches */
static RunStatus run_launches(Case *test, const EmulatorOptions *options, Diags *diags) {
    RunStatus status;
    RunResult result;
    const char *folder =
        arena_copy(test->arena, test->file, (size_t)(strrchr(test->file, '/') + 1 - test->file));
    Workload *workload = workload_from_text(test->arena, test->launches.text, test->launches.length,
                                            folder, 0, &status, diags);
    if (!workload) return status;
    status = workload_run(workload, &(WorkloadOptions){.emulator = *options}, &result, diags);
    workload_free(workload);
    return status;
}

static RunStatus run_once(Case *test, int seed, Diags *diags) {
    RunResult result;
    EmulatorOptions options = {
        .resident = test->resident, .seed = (uint64_t)seed, .limit = (uint64_t)test->limit};
    if (test->launches.length) return run_launches(test, &options, diags);
    fill(test);
    return emulator_run(test->arena, &test->launch, &options, &result, diags);
}

static void run_case(Case *test) {
    for (int seed = 0; seed < test->seeds; seed++) {
        Diags *diags = diags_new(test->arena, NULL);
        RunStatus status = run_once(test, seed, diags);
        Str rendered = str_new(test->arena);
        str_add(&rendered, "");
        diags_render(diags, false, &rendered);
        bool fine =
            !strcmp(ending(test, status, diags), test->expect) && warns_as_listed(test, diags);
        for (size_t i = 0; i < test->messages.count; i++)
            fine &= strstr(rendered.text, test->messages.items[i]) != NULL;
        if (!fine) {
            fprintf(stderr, "%s (seed %d): expected %s%s%s, ended with %s:\n%s\n", test->file, seed,
                    test->expect, test->messages.count ? " with the message " : "",
                    test->messages.count ? test->messages.items[0] : "",
                    ending(test, status, diags), rendered.text);
            failed_expectations++;
        } else if (getenv("VERBOSE") && *getenv("VERBOSE")) {
            fprintf(stderr, "%s (seed %d):\n%s\n", test->file, seed, rendered.text);
        }
        if (status == RUN_DONE) check_results(test, seed);
    }
}

static bool has_ptxas(void) { return system("command -v ptxas >/dev/null 2>&1") == 0; }

static void test_file(const char *file, bool assemble) {
    FILE *in = fopen(file, "rb");
    if (!EXPECT(in != NULL)) return;
    Case test = {.arena = arena_new(),
                 .file = file,
                 .seeds = 6,
                 .assembles = true,
                 .expect = "done",
                 .warns = "",
                 .launch.tiles = 1};
    test.launches = str_new(test.arena);
    char *text = arena_alloc(test.arena, 1 << 20);
    text[fread(text, 1, (1 << 20) - 1, in)] = '\0';
    fclose(in);
    read_case(&test, text);
    run_case(&test);
    if (assemble && test.assembles && strcmp(test.expect, "rejected") != 0) {
        const char *command = arena_printf(test.arena, "ptxas -arch=sm_90a -o /dev/null %s", file);
        if (system(command) != 0) {
            fprintf(stderr, "%s: ptxas does not take it\n", file);
            failed_expectations++;
        }
    }
    for (size_t i = 0; i < test.arrays.count; i++)
        if (test.manifest.parameters.items[i].kind == PARAMETER_TENSOR)
            array_free(&test.arrays.items[i]);
    arena_free(test.arena);
}

int main(int argc, char **argv) {
    bool assemble = has_ptxas();
    for (int i = 1; i < argc; i++) test_file(argv[i], assemble);
    DIR *folder = argc > 1 ? NULL : opendir("tests/emulator");
    EXPECT(argc > 1 || folder != NULL);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char file[512];
        snprintf(file, sizeof file, "tests/emulator/%s", entry->d_name);
        if (strlen(file) > 4 && !strcmp(file + strlen(file) - 4, ".ptx")) test_file(file, assemble);
    }
    if (folder) closedir(folder);
    return expect_failures();
}
