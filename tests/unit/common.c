/* What candidates have in common: with values of a launch, a manifest with places in place of
 * formulas has the conditions, tiles, maps and work of the manifest itself; parts that have no
 * value leave each manifest to itself; arguments that do not fit are refused as without it. */
#include "lib/family.h"

#include "tests/unit/expect.h"

#include <stdlib.h>
#include <string.h>

static PipecProgram *compile_file(const char *path) {
    PipecOptions options = {.size = sizeof options, .any_variant = true};
    PipecProgram *program = pipec_compile_file(path, &options);
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    return program;
}

static bool same_totals(const WorkTotals *a, const WorkTotals *b) {
    return memcmp(a->amount, b->amount, sizeof a->amount) == 0 &&
           memcmp(a->pieces, b->pieces, sizeof a->pieces) == 0 && a->own == b->own &&
           a->cost.block == b->cost.block && a->cost.all == b->cost.all && a->unknown == b->unknown;
}

static void compare_work(Arena *arena, const Candidate *candidate, int64_t *symbols,
                         int64_t *values) {
    const Manifest *manifest = candidate->manifest;
    size_t parameters = 2 * manifest->parameters.count;
    ByteCost *costs = NEW_ARRAY(arena, ByteCost, parameters + 1);
    for (size_t i = 0; i < parameters; i++) costs[i] = (ByteCost){1 / (3.0 + (double)i), 1.75};
    RoleWork *own = NEW_ARRAY(arena, RoleWork, manifest->roles.count + 1);
    RoleWork *placed = NEW_ARRAY(arena, RoleWork, manifest->roles.count + 1);
    WorkTotals x, y;
    bool fine = work_total(manifest, work_values(arena, manifest, symbols), 9, costs, own, &x);
    EXPECT(work_total(candidate->placed, values, 9, costs, placed, &y) == fine);
    EXPECT(!fine || same_totals(&x, &y));
    EXPECT(!fine || memcmp(own, placed, manifest->roles.count * sizeof *own) == 0);
}

static void compare_maps(const Candidate *candidate, const int64_t *symbols,
                         const int64_t *values) {
    for (size_t i = 0; i < candidate->manifest->maps.count; i++) {
        MapShape x, y;
        EXPECT(map_evaluate(&candidate->manifest->maps.items[i], symbols, &x) == FORMULA_FINE);
        EXPECT(map_evaluate(&candidate->placed->maps.items[i], values, &y) == FORMULA_FINE);
        EXPECT(x.is_empty == y.is_empty && x.promotion == y.promotion &&
               memcmp(x.extents, y.extents, sizeof x.extents) == 0 &&
               memcmp(x.strides, y.strides, sizeof x.strides) == 0);
    }
}

static void compare(Arena *arena, const Family *family, const Candidate *candidate,
                    const DeviceArgument *arguments) {
    const Common *common = &family->commons.items[candidate->common];
    int64_t *values = NEW_ARRAY(arena, int64_t, common_values(common) + 1), tiles, placed;
    int64_t *symbols = NEW_ARRAY(arena, int64_t, candidate->manifest->symbols.count + 1);
    bool fits =
        launch_bind(candidate->manifest, arguments, symbols, &tiles, diags_new(arena, NULL));
    bool bound = common_bind(common, arguments, values, diags_new(arena, NULL));
    EXPECT(bound || !fits);
    if (!bound) return;
    EXPECT(launch_check(candidate->placed, values, &placed, NULL) == fits);
    if (!fits) return;
    EXPECT(tiles == placed);
    EXPECT(memcmp(symbols, values, candidate->manifest->symbols.count * sizeof *symbols) == 0);
    compare_maps(candidate, symbols, values);
    compare_work(arena, candidate, symbols, values);
}

/* Extents near tiles, some of them with wrong or strided tensors */
static bool draw(Arena *arena, const Manifest *manifest, DeviceArgument *arguments) {
    static const int64_t usual[] = {0, 1, 8, 64, 128, 1000, 4096, 16384};
    int64_t *symbols = NEW_ARRAY(arena, int64_t, manifest->symbols.count + 1);
    for (size_t i = 0; i < manifest->symbols.count; i++)
        symbols[i] = usual[rand() % 8] + (rand() % 2 == 0 ? 0 : 8 * (rand() % 17));
    if (!family_arguments(manifest, symbols, arguments)) return false;
    if (rand() % 8 == 0) arguments[0].extents[0] += 8;
    if (rand() % 8 == 0) arguments[0].typed = 1 + E_BOOL;
    return true;
}

static size_t lists, works; /* manifests with lists, with work */

static void count_parts(const Family *family) {
    size_t parts = 0, formulas = 0;
    for (size_t i = 0; i < family->commons.count; i++)
        parts += family->commons.items[i].parts.count;
    for (size_t i = 0; i < family->count; i++) {
        const Manifest *manifest = family->items[i].manifest;
        if (manifest == NULL) continue;
        formulas += manifest->preconditions.count + 4 * manifest->maps.count +
                    manifest->axes.count + manifest->work.count / 2;
        works += manifest->work.count > 0;
        lists += family->items[i].placed->lists != NULL;
    }
    EXPECT(parts < 200 || 5 * parts < formulas);
}

static void file(const char *path) {
    PipecProgram *program = compile_file(path);
    const Family *family = family_of(program);
    const Manifest *first = family->items[0].manifest;
    DeviceArgument arguments[16];
    count_parts(family);
    for (int round = 0; round < 20; round++) {
        Arena *arena = arena_new();
        memset(arguments, 0, sizeof arguments);
        EXPECT(first->parameters.count <= COUNT_OF(arguments));
        if (draw(arena, first, arguments))
            for (size_t i = (size_t)round % 3; i < family->count; i += 3)
                if (family->items[i].manifest != NULL)
                    compare(arena, family, &family->items[i], arguments);
        arena_free(arena);
    }
    pipec_program_free(program);
}

/* A condition with a part that has no value for N = 0, which another condition then refuses */
static const char guarded[] =
    "kernel copy(X: f32[N], out Y: f32[N]) for sm_90a {\n"
    "    static T = 64 in {64, 128};\n"
    "    requires N == 0 || 8192 % N == 0;\n"
    "    grid (t: ceil(N, T));\n"
    "    role all: 4 warps { for t in grid { Y[t*T + i] = X[t*T + i] for i in 0 .. T; } }\n"
    "}\n";

static void without_value(void) {
    PipecOptions options = {.size = sizeof options};
    PipecProgram *program = pipec_compile(guarded, strlen(guarded), &options);
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    const Family *family = family_of(program);
    EXPECT(family->count == 2 && family->commons.count == 1);
    for (int64_t n = 0; n < 4; n++) {
        Arena *arena = arena_new();
        DeviceArgument arguments[] = {{.pointer = 1 << 20, .extents = {n}},
                                      {.pointer = 1 << 30, .extents = {n}}};
        int64_t *values = NEW_ARRAY(arena, int64_t, common_values(&family->commons.items[0]) + 1);
        EXPECT(common_bind(&family->commons.items[0], arguments, values, diags_new(arena, NULL)) ==
               (n > 0));
        Wish wish = {.arguments = arguments, .machine = machine_at(0), .only_best = true};
        Chosen *all = NEW_ARRAY(arena, Chosen, family->count + 1);
        family_rate(family, &wish, arena, all);
        bool runs = n == 1 || n == 2;
        EXPECT((family_best(family, all).candidate != NULL) == runs);
        EXPECT(runs || strncmp(all[0].why, "P0608", 5) == 0);
        arena_free(arena);
    }
    pipec_program_free(program);
}

int main(void) {
    static const char *const files[] = {
        "kernels/linear.pipe",         "kernels/softmax.pipe",    "kernels/cross_entropy.pipe",
        "kernels/softmax_causal.pipe", "kernels/rope.pipe",       "kernels/rms_norm_backward.pipe",
        "kernels/int_mm.pipe",         "examples/attention.pipe", "examples/gemm.pipe"};
    srand(5);
    for (size_t i = 0; i < COUNT_OF(files); i++) file(files[i]);
    EXPECT(lists > works / 2 && lists < works);
    without_value();
    return expect_failures();
}
