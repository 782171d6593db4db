/* A manifest for tests of its readers: axpy on tensors of one axis, and a matrix.
 *
 *   kernel axpy(X: f32[N], inout Y: f32[N], A: bf16[M, 8], out Z: i32[M], a: f32, n: u8) */
#ifndef TESTS_SAMPLE_H
#define TESTS_SAMPLE_H

#include "launch/launch.h"

#define STEPS(...)                                                                                 \
    {                                                                                              \
        (const FormulaStep[]){__VA_ARGS__},                                                        \
            (int)(sizeof((const FormulaStep[]){__VA_ARGS__}) / sizeof(FormulaStep))                \
    }
#define SYMBOL(index)   STEPS({F_SYMBOL, index})
#define CONSTANT(value) STEPS({F_CONST, value})

enum { SAMPLE_N, SAMPLE_M, SAMPLE_n };
enum { SAMPLE_X, SAMPLE_Y, SAMPLE_A, SAMPLE_Z, SAMPLE_a, SAMPLE_n_parameter };

static const char sample_text[] = "kernel axpy(X: f32[N], inout Y: f32[N], A: bf16[M, 8], out Z: "
                                  "i32[M], a: f32, n: u8) for sm_90a {\n"
                                  "    requires N >= 2;\n"
                                  "}\n";

#define SAMPLE_TENSOR(tensor_name, tensor_mode, tensor_type, ...)                                  \
    ((ManifestParameter){.name = (tensor_name),                                                    \
                         .kind = PARAMETER_TENSOR,                                                 \
                         .mode = (tensor_mode),                                                    \
                         .type = (tensor_type),                                                    \
                         .symbol = -1,                                                             \
                         .alignment = 16,                                                          \
                         .span = {12, 13},                                                         \
                         __VA_ARGS__})

static inline void sample_parameters(Arena *arena, Manifest *manifest) {
    static const FormulaStep n[] = {{F_SYMBOL, SAMPLE_N}}, m[] = {{F_SYMBOL, SAMPLE_M}},
                             eight[] = {{F_CONST, 8}};
    vec_push(arena, &manifest->parameters,
             SAMPLE_TENSOR("X", MODE_IN, E_F32, .rank = 1, .extents = {{n, 1}}));
    vec_push(arena, &manifest->parameters,
             SAMPLE_TENSOR("Y", MODE_INOUT, E_F32, .rank = 1, .extents = {{n, 1}}));
    vec_push(arena, &manifest->parameters,
             SAMPLE_TENSOR("A", MODE_IN, E_BF16, .rank = 2, .extents = {{m, 1}, {eight, 1}}));
    vec_push(arena, &manifest->parameters,
             SAMPLE_TENSOR("Z", MODE_OUT, E_I32, .rank = 1, .extents = {{m, 1}}));
    vec_push(
        arena, &manifest->parameters,
        ((ManifestParameter){.name = "a", .kind = PARAMETER_SCALAR, .type = E_F32, .symbol = -1}));
    vec_push(arena, &manifest->parameters,
             ((ManifestParameter){
                 .name = "n", .kind = PARAMETER_SCALAR, .type = E_U8, .symbol = SAMPLE_n}));
}

static inline void sample_names(Arena *arena, Manifest *manifest) {
    vec_push(arena, &manifest->roles,
             ((ManifestRole){
                 .name = "load", .first_warp = 0, .warps = 1, .instances = 1, .span = {0, 6}}));
    vec_push(arena, &manifest->roles,
             ((ManifestRole){.name = "add",
                             .first_warp = 1,
                             .warps = 4,
                             .instances = 1,
                             .registers = 160,
                             .held = 64}));
    vec_push(
        arena, &manifest->shared,
        ((ManifestShared){SHARED_FULL, "loaded", NULL, "one barrier a stage", 0, 32, 4, 8, 1}));
    vec_push(
        arena, &manifest->shared,
        ((ManifestShared){SHARED_FIELD, "loaded", "x", "f32[4096]", 1024, 16384, 4, 32768, 0}));
    vec_push(arena, &manifest->marks, ((ManifestMark){.line = 1, .span = {0, 6}, .role = -1}));
    vec_push(arena, &manifest->marks,
             ((ManifestMark){.line = 20,
                             .span = {102, 110},
                             .role = 0,
                             .pipe = "loaded",
                             .what = "copies `X` into `s.x`"}));
    vec_push(arena, &manifest->waits,
             ((ManifestWait){.role = 0, .pipe = "loaded", .full = false, .span = {102, 110}}));
    vec_push(arena, &manifest->waits,
             ((ManifestWait){.role = 1, .pipe = "loaded", .full = true, .span = {102, 110}}));
    vec_push(arena, &manifest->constants, ((ManifestConstant){"T", "4096", true}));
}

static inline Manifest *sample_manifest(Arena *arena) {
    static const FormulaStep n[] = {{F_SYMBOL, SAMPLE_N}};
    static const FormulaStep condition[] = {{F_CONST, 2}, {F_SYMBOL, SAMPLE_N}, {F_LE, 0}};
    static const FormulaStep tiles[] = {{F_SYMBOL, SAMPLE_N}, {F_CONST, 4096}, {F_CEIL, 0}};
    Manifest *manifest = NEW(arena, Manifest);
    *manifest =
        (Manifest){.kernel = "axpy",
                   .target = "sm_90a",
                   .ptx_major = 8,
                   .ptx_minor = 0,
                   .ptx_hash = 0xaf,
                   .source = source_new(arena, "axpy.pipe", sample_text, sizeof sample_text - 1),
                   .head = {0, 11},
                   .tiles = {tiles, 3},
                   .persistent = true,
                   .threads = 160,
                   .shared_bytes = 1024 + 4 * 32768,
                   .cluster = {1, 1, 1},
                   .watchdog = true};
    vec_push(arena, &manifest->symbols, ((ManifestSymbol){.name = "N", .is_extent = true}));
    vec_push(arena, &manifest->symbols, ((ManifestSymbol){.name = "M", .is_extent = true}));
    vec_push(arena, &manifest->symbols, ((ManifestSymbol){.name = "n"}));
    sample_parameters(arena, manifest);
    vec_push(
        arena, &manifest->maps,
        ((ManifestMap){
            .parameter = SAMPLE_X, .type = E_F32, .rank = 1, .extents = {{n, 1}}, .box = {256}}));
    static const ManifestArgument arguments[] = {
        {ARGUMENT_TENSOR_MAP, 0},     {ARGUMENT_POINTER, SAMPLE_Y},
        {ARGUMENT_POINTER, SAMPLE_Z}, {ARGUMENT_EXTENT, SAMPLE_N},
        {ARGUMENT_SCALAR, SAMPLE_a},  {ARGUMENT_SCALAR, SAMPLE_n_parameter},
        {ARGUMENT_WATCHDOG, 0}};
    for (size_t i = 0; i < COUNT_OF(arguments); i++)
        vec_push(arena, &manifest->arguments, arguments[i]);
    vec_push(arena, &manifest->preconditions,
             ((ManifestPrecondition){{condition, 3},
                                     "N >= 2",
                                     "the kernel `requires` it",
                                     "give more elements",
                                     {102, 116}}));
    sample_names(arena, manifest);
    return manifest;
}

#endif
