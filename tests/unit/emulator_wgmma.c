/* wgmma compared with values computed in this test: every type, swizzle and major, several N.
 * The operands have the layout of a tensor copy: rows of `span` bytes, panel after panel,
 * 16-byte chunks permuted by bits of their address. The kernel copies the image to shared
 * memory, multiplies along the whole of K, and stores the registers of the accumulator. */
#include "emulator/emulator.h"

#include "tests/unit/expect.h"

#include <math.h>
#include <stdlib.h>

typedef struct Shape {
    const char *d, *a, *b; /* in PTX */
    int n, span;           /* of both operands; 16: no swizzle */
    bool across_a, across_b, from_registers, keeps, saturates;
    int sign_a, sign_b;
    int shift; /* offset in bytes from an aligned start of the swizzle pattern */
    bool random;
} Shape;

typedef struct Operand {
    Element type;
    int rows, depth; /* depth: of all instructions */
    int bytes, span, base;
    bool across;
    double values[256 * 128]; /* [row][k] */
} Operand;

static Operand a, b;
static double d_before[64 * 256];

static uint64_t state = 1;
static uint32_t draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

static Element element_of(const char *name) {
    static const struct {
        const char *name;
        Element type;
    } names[] = {{"bf16", E_BF16}, {"f16", E_F16}, {"tf32", E_TF32}, {"e4m3", E_E4M3},
                 {"e5m2", E_E5M2}, {"s8", E_I8},   {"u8", E_U8},     {"f32", E_F32}};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (!strcmp(names[i].name, name)) return names[i].type;
    return E_I32;
}
static bool is_integer(Element type) { return type == E_I8 || type == E_U8 || type == E_I32; }

/* The hardware ignores the lower 13 bits of tf32: the test sets them. */
static void put(Element type, unsigned char *to, double value) {
    if (is_integer(type))
        element_store_integer(type, to, (int64_t)value);
    else
        element_store(type, to, value);
    if (type == E_TF32) to[0] = 0xff, to[1] |= 0x1f;
}

/* The value rounded to the type */
static double held(Element type, double value) {
    unsigned char bytes[8];
    put(type, bytes, value);
    if (type == E_TF32) bytes[0] = 0, bytes[1] &= 0xe0;
    return element_load(type, bytes);
}

static void fill_operand(Operand *operand, bool random, int seed) {
    bool narrow = operand->type == E_E4M3 || operand->type == E_E5M2;
    for (int row = 0; row < operand->rows; row++)
        for (int k = 0; k < operand->depth; k++) {
            double value = (double)((row * 7 + k * 3 + row / 8 + k / 4 + seed) % 11 - 5);
            if (random && is_integer(operand->type))
                value =
                    operand->type == E_U8 ? (double)(draw() % 256) : (double)(draw() % 256) - 128;
            else if (random)
                value = ((double)draw() / (1u << 30) - 1) * (narrow ? 4 : 1.5);
            else if (operand->type == E_U8)
                value += 5;
            operand->values[row * operand->depth + k] = held(operand->type, value);
        }
}

/* ---- the image ------------------------------------------------------------------------------- */

static int panel_bytes(const Operand *operand) {
    return (operand->across ? operand->depth : operand->rows) * operand->span;
}

static int image_bytes(const Operand *operand) {
    int along = operand->across ? operand->rows : operand->depth;
    int panels = (along * operand->bytes + operand->span - 1) / operand->span;
    return (panels * panel_bytes(operand) + 1023) / 1024 * 1024;
}

/* Offset of an element from the start of shared memory */
static int place(const Operand *operand, int row, int k) {
    int line = operand->across ? k : row, byte = (operand->across ? row : k) * operand->bytes;
    int offset =
        byte / operand->span * panel_bytes(operand) + line * operand->span + byte % operand->span;
    int chunks = operand->span / 16;
    return operand->base + (offset ^ ((offset >> 7 & (chunks - 1)) << 4));
}

static void draw_image(const Operand *operand, unsigned char *image, int origin) {
    for (int row = 0; row < operand->rows; row++)
        for (int k = 0; k < operand->depth; k++) {
            unsigned char *to = image + place(operand, row, k) - origin;
            put(operand->type, to, operand->values[row * operand->depth + k]);
        }
}

/* The constant part of a descriptor */
static uint64_t descriptor(const Operand *operand, int shift) {
    uint64_t leading, stride,
        mode = operand->span == 128  ? 1
               : operand->span == 64 ? 2
               : operand->span == 32 ? 3
                                     : 0;
    if (mode != 0) {
        leading = operand->across ? (uint64_t)panel_bytes(operand) : 16;
        stride = 8 * (uint64_t)operand->span;
    } else {
        leading = operand->across ? 128 : (uint64_t)panel_bytes(operand);
        stride = operand->across ? (uint64_t)panel_bytes(operand) : 128;
    }
    return mode << 62 | (uint64_t)(shift >> 7 & 7) << 49 | stride >> 4 << 32 | leading >> 4 << 16;
}

/* Offset in bytes of the operand's part for step `step` */
static int advance(const Operand *operand, int step, int step_depth) {
    int k = step * step_depth;
    if (operand->across) return k * operand->span;
    int byte = k * operand->bytes;
    return byte / operand->span * panel_bytes(operand) + byte % operand->span;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static int step_depth(const Shape *shape) {
    int bytes = element_rows[element_of(shape->a)].bytes;
    return 32 / bytes;
}
static int registers(const Shape *shape) {
    return !strcmp(shape->d, "f16") ? shape->n / 4 : shape->n / 2;
}

static void add_multiply(Str *ptx, const Shape *shape, int step) {
    bool half = a.bytes == 2, integers = is_integer(a.type);
    str_printf(ptx, "  wgmma.mma_async.sync.aligned.m64n%dk%d%s.%s.%s.%s {", shape->n,
               step_depth(shape), shape->saturates ? ".satfinite" : "", shape->d, shape->a,
               shape->b);
    for (int i = 0; i < registers(shape); i++) str_printf(ptx, "%s%%d%d", i ? ", " : "", i);
    str_add(ptx, "}, ");
    if (shape->from_registers)
        str_printf(ptx, "{%%a%d, %%a%d, %%a%d, %%a%d}", 4 * step, 4 * step + 1, 4 * step + 2,
                   4 * step + 3);
    else
        str_printf(
            ptx, "0x%llx",
            (unsigned long long)(descriptor(&a, shape->shift) |
                                 (uint64_t)(a.base + advance(&a, step, step_depth(shape))) >> 4));
    str_printf(ptx, ", %%rb%d, %s", step, step || shape->keeps ? "1" : "%none");
    if (!integers) str_printf(ptx, ", %d, %d", shape->sign_a, shape->sign_b);
    if (half && !shape->from_registers) str_printf(ptx, ", %d", shape->across_a);
    if (half) str_printf(ptx, ", %d", shape->across_b);
    str_add(ptx, ";\n");
}

static const char *kernel(Arena *arena, const Shape *shape, int bytes, int steps) {
    Str ptx = str_new(arena);
    int n = registers(shape);
    str_printf(
        &ptx,
        ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n"
        ".visible .entry kernel(.param .u64 image, .param .u64 D, .param .u64 F)\n.reqntid 128\n{\n"
        "  .reg .pred %%p<4>; .reg .pred %%none; .reg .b32 %%r<8>; .reg .b64 %%rd<8>; .reg .b64 "
        "%%ra<16>; .reg .b64 "
        "%%rb<16>;\n"
        "  .reg .b32 %%d<128>; .reg .b32 %%a<64>;\n"
        "  mov.u32 %%r0, %%tid.x; mov.u32 %%r1, smem; setp.ne.u32 %%p0, %%r0, 0; setp.ne.u32 "
        "%%none, %%r0, %%r0;\n"
        "  ld.param.u64 %%rd0, [image]; cvta.to.global.u64 %%rd0, %%rd0;\n"
        "  ld.param.u64 %%rd1, [D]; cvta.to.global.u64 %%rd1, %%rd1; mul.wide.u32 %%rd3, %%r0, %d; "
        "add.u64 %%rd1, "
        "%%rd1, %%rd3;\n"
        "  ld.param.u64 %%rd2, [F]; cvta.to.global.u64 %%rd2, %%rd2; mul.wide.u32 %%rd3, %%r0, %d; "
        "add.u64 %%rd2, "
        "%%rd2, %%rd3;\n"
        "  @%%p0 bra COPIED;\n  mbarrier.init.shared::cta.b64 [%%r1], 1;\n"
        "  fence.mbarrier_init.release.cluster;\n"
        "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r1], %d;\n"
        "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%r1+1024], [%%rd0], "
        "%d, [%%r1];\n"
        "COPIED:\n  bar.sync 0;\n"
        "WAIT:\n  mbarrier.try_wait.parity.shared::cta.b64 %%p1, [%%r1], 0;\n  @!%%p1 bra WAIT;\n",
        4 * n, 16 * steps, bytes, bytes);
    for (int i = 0; i < n && shape->keeps; i++)
        str_printf(&ptx, "  ld.global.b32 %%d%d, [%%rd1+%d];\n", i, 4 * i);
    for (int i = 0; i < 4 * steps && shape->from_registers; i++)
        str_printf(&ptx, "  ld.global.b32 %%a%d, [%%rd2+%d];\n", i, 4 * i);
    for (int step = 0; step < steps; step++)
        str_printf(
            &ptx, "  mov.b64 %%rb%d, 0x%llx;\n", step,
            (unsigned long long)(descriptor(&b, shape->shift) |
                                 (uint64_t)(b.base + advance(&b, step, step_depth(shape))) >> 4));
    for (int step = 0; step < steps && !shape->from_registers; step++)
        str_printf(
            &ptx, "  mov.b64 %%ra%d, 0x%llx;\n", step,
            (unsigned long long)(descriptor(&a, shape->shift) |
                                 (uint64_t)(a.base + advance(&a, step, step_depth(shape))) >> 4));
    str_add(&ptx, "  wgmma.fence.sync.aligned;\n");
    for (int step = 0; step < steps; step++) add_multiply(&ptx, shape, step);
    str_add(&ptx, "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n");
    for (int i = 0; i < n; i++) str_printf(&ptx, "  st.global.b32 [%%rd1+%d], %%d%d;\n", 4 * i, i);
    str_add(&ptx, "  ret;\n}\n");
    return ptx.text;
}

/* ---- fragments ------------------------------------------------------------------------------- */

/* Position of element e of thread t in the accumulator (PTX ISA, figure of the fragment layout
 * of matrix D) */
static int d_cell(int t, int e, int n) {
    int row = t / 32 * 16 + t % 32 / 4 + (e & 2 ? 8 : 0), column = e / 4 * 8 + t % 4 * 2 + (e & 1);
    return row * n + column;
}

static void pack_d(const Shape *shape, uint32_t *words) {
    bool pairs = !strcmp(shape->d, "f16");
    for (int t = 0; t < 128; t++)
        for (int r = 0; r < registers(shape); r++) {
            unsigned char *to = (unsigned char *)&words[t * registers(shape) + r];
            if (pairs) {
                element_store(E_F16, to, d_before[d_cell(t, 2 * r, shape->n)]);
                element_store(E_F16, to + 2, d_before[d_cell(t, 2 * r + 1, shape->n)]);
            } else if (!strcmp(shape->d, "s32")) {
                element_store_integer(E_I32, to, (int64_t)d_before[d_cell(t, r, shape->n)]);
            } else {
                element_store(E_F32, to, d_before[d_cell(t, r, shape->n)]);
            }
        }
}

static double unpack_d(const Shape *shape, const uint32_t *words, int t, int e) {
    if (!strcmp(shape->d, "f16"))
        return element_load(E_F16, (const unsigned char *)&words[t * registers(shape) + e / 2] +
                                       2 * (e & 1));
    return element_load(element_of(shape->d),
                        (const unsigned char *)&words[t * registers(shape) + e]);
}

/* Four registers per thread and step: rows g and g + 8, then the same in the upper half of K */
static void pack_a(uint32_t *words, int steps, int depth) {
    int each = 4 / a.bytes;
    for (int t = 0; t < 128; t++)
        for (int step = 0; step < steps; step++)
            for (int r = 0; r < 4; r++)
                for (int i = 0; i < each; i++) {
                    int row = t / 32 * 16 + t % 32 / 4 + (r & 1) * 8,
                        k = step * depth + (r / 2) * depth / 2 + t % 4 * each + i;
                    unsigned char *to =
                        (unsigned char *)&words[(t * steps + step) * 4 + r] + i * a.bytes;
                    put(a.type, to, a.values[row * a.depth + k]);
                }
}

/* ---- one case -------------------------------------------------------------------------------- */

static double wanted(const Shape *shape, int row, int column, int steps, double *magnitude) {
    double sum = shape->keeps ? d_before[row * shape->n + column] : 0;
    *magnitude = fabs(sum);
    for (int step = 0; step < steps; step++) {
        for (int k = step * step_depth(shape); k < (step + 1) * step_depth(shape); k++) {
            double product = shape->sign_a * shape->sign_b * a.values[row * a.depth + k] *
                             b.values[column * b.depth + k];
            sum += product;
            *magnitude += fabs(product);
        }
        if (shape->saturates) sum = fmin(fmax(sum, -2147483648.0), 2147483647.0);
    }
    if (is_integer(a.type)) sum = (double)(int32_t)(uint32_t)(int64_t)sum;
    return sum;
}

static double allowed(const Shape *shape, int steps, double value, double magnitude) {
    if (!shape->random || is_integer(a.type)) return 0;
    double f32 = magnitude * steps * step_depth(shape) * 0x1p-24;
    return !strcmp(shape->d, "f16") ? f32 + (fabs(value) + magnitude) * steps * 0x1p-11 + 0x1p-24
                                    : f32;
}

static void check(const Shape *shape, const uint32_t *words, int steps, uint64_t seed) {
    int wrong = 0;
    for (int t = 0; t < 128; t++)
        for (int e = 0; e < shape->n / 2; e++) {
            int cell = d_cell(t, e, shape->n);
            double magnitude,
                want = wanted(shape, cell / shape->n, cell % shape->n, steps, &magnitude);
            double got = unpack_d(shape, words, t, e);
            if (fabs(got - want) <= allowed(shape, steps, want, magnitude)) continue;
            if (wrong++ == 0)
                fprintf(stderr,
                        "n%d %s.%s.%s span %d across %d %d registers %d seed %d: D[%d, %d] is "
                        "%.9g, expected %.9g\n",
                        shape->n, shape->d, shape->a, shape->b, shape->span, shape->across_a,
                        shape->across_b, shape->from_registers, (int)seed, cell / shape->n,
                        cell % shape->n, got, want);
        }
    EXPECT(wrong == 0);
}

static Formula constant_formula(Arena *arena, int64_t value) {
    FormulaStep *step = NEW(arena, FormulaStep);
    *step = (FormulaStep){F_CONST, value};
    return (Formula){step, 1};
}

static void add_array(Arena *arena, Manifest *manifest, Array *array, const char *name,
                      ParameterMode mode, int64_t bytes) {
    int index = (int)manifest->parameters.count;
    ManifestParameter parameter = {.name = name,
                                   .kind = PARAMETER_TENSOR,
                                   .mode = mode,
                                   .type = E_U8,
                                   .rank = 1,
                                   .symbol = -1,
                                   .alignment = 16};
    parameter.extents[0] = constant_formula(arena, bytes);
    vec_push(arena, &manifest->parameters, parameter);
    vec_push(arena, &manifest->arguments, (ManifestArgument){ARGUMENT_POINTER, index});
    EXPECT(array_new(array, E_U8, 1, &bytes));
}

static bool assembles(const char *ptx) {
    FILE *pipe = popen("ptxas -arch=sm_90a -o /dev/null -", "w");
    if (!pipe) return false;
    fputs(ptx, pipe);
    return pclose(pipe) == 0;
}

static void run_shape(const Shape *shape, bool assemble) {
    Scratch scratch = scratch_new();
    Manifest manifest = {.kernel = "kernel", .threads = 128, .persistent = false};
    Array arrays[3];
    int depth = step_depth(shape), steps = shape->span == 16                    ? 2
                                           : shape->across_a || shape->across_b ? 4
                                                                                : shape->span / 32;
    static const Operand empty;
    a = b = empty;
    a.type = element_of(shape->a), b.type = element_of(shape->b);
    a.bytes = b.bytes = element_rows[a.type].bytes;
    a.rows = 64, b.rows = shape->n;
    a.depth = b.depth = steps * depth;
    a.span = b.span = shape->span;
    a.across = shape->across_a, b.across = shape->across_b;
    a.base = 2048 + shape->shift;
    b.base = a.base + image_bytes(&a);
    fill_operand(&a, shape->random, 1);
    fill_operand(&b, shape->random, 4);
    for (int i = 0; i < 64 * shape->n; i++)
        d_before[i] = shape->saturates || (shape->random && is_integer(a.type))
                          ? 2147483600.0 - i * 1.0
                          : i % 17 - 8;
    int bytes = shape->shift + image_bytes(&a) + image_bytes(&b);
    manifest.shared_bytes = (uint32_t)(1024 + bytes);
    add_array(scratch.arena, &manifest, &arrays[0], "image", MODE_IN, bytes);
    add_array(scratch.arena, &manifest, &arrays[1], "D", MODE_INOUT, 128 * 4 * registers(shape));
    add_array(scratch.arena, &manifest, &arrays[2], "F", MODE_IN, 128 * 16 * steps);
    memset(arrays[0].data, 0xff, arrays[0].bytes);
    draw_image(&a, arrays[0].data, 2048);
    draw_image(&b, arrays[0].data, 2048);
    pack_a((uint32_t *)(void *)arrays[2].data, steps, depth);
    const char *ptx = kernel(scratch.arena, shape, bytes, steps);
    Launch launch = {
        .manifest = &manifest, .ptx = ptx, .ptx_length = strlen(ptx), .arrays = arrays, .tiles = 1};
    launch.scalars = NEW_ARRAY(scratch.arena, Scalar, 3);
    for (uint64_t seed = 0; seed < 5; seed += 4) {
        EmulatorOptions options = {.seed = seed};
        RunResult result;
        pack_d(shape, (uint32_t *)(void *)arrays[1].data);
        RunStatus status = emulator_run(scratch.arena, &launch, &options, &result, scratch.diags);
        EXPECT_CLEAN(&scratch);
        if (EXPECT(status == RUN_DONE))
            check(shape, (const uint32_t *)(const void *)arrays[1].data, steps, seed);
    }
    if (assemble) EXPECT(assembles(ptx));
    for (int i = 0; i < 3; i++) array_free(&arrays[i]);
    scratch_free(&scratch);
}

#if defined(__SANITIZE_ADDRESS__)
#define SHARE 5 /* an instrumented emulator is slow: one shape in this many */
#else
#define SHARE 1
#endif

int main(void) {
    static const struct {
        const char *d, *a, *b;
    } types[] = {{"f32", "bf16", "bf16"}, {"f32", "f16", "f16"},   {"f16", "f16", "f16"},
                 {"f32", "tf32", "tf32"}, {"f32", "e4m3", "e4m3"}, {"f32", "e5m2", "e4m3"},
                 {"f16", "e4m3", "e5m2"}, {"s32", "s8", "s8"},     {"s32", "u8", "s8"},
                 {"s32", "s8", "u8"},     {"s32", "u8", "u8"}};
    static const int columns[] = {8, 24, 64, 80, 176, 256}, spans[] = {16, 32, 64, 128};
    bool ptxas = system("command -v ptxas >/dev/null 2>&1") == 0;
    int number = 0;
    for (size_t t = 0; t < COUNT_OF(types); t++)
        for (size_t s = 0; s < COUNT_OF(spans); s++)
            for (int majors = 0; majors < 8; majors++) {
                bool half = t < 3, across_a = majors & 1, across_b = majors & 2,
                     from_registers = majors & 4;
                if ((across_a && from_registers) || ((across_a || across_b) && !half)) continue;
                if (number % SHARE != 0) {
                    number++;
                    continue;
                }
                Shape shape = {.d = types[t].d, .a = types[t].a, .b = types[t].b, .span = spans[s]};
                shape.n = columns[number % (int)COUNT_OF(columns)];
                shape.across_a = across_a, shape.across_b = across_b,
                shape.from_registers = from_registers;
                shape.keeps = number % 3 != 0;
                bool integers = types[t].d[0] == 's';
                shape.sign_a = !integers && number % 4 == 1 ? -1 : 1;
                shape.sign_b = !integers && number % 5 == 1 ? -1 : 1;
                run_shape(&shape, ptxas && number % 9 == 0);
                shape.random = true;
                shape.n = columns[(number + 3) % (int)COUNT_OF(columns)];
                shape.saturates = integers && number % 2 == 1;
                run_shape(&shape, ptxas && shape.saturates && number % 3 == 0);
                /* A pattern that does not begin at an aligned address */
                shape.shift = spans[s] == 128 ? 512 : spans[s] == 64 ? 256 : 0;
                if (shape.shift && number % 4 == 0) run_shape(&shape, false);
                number++;
            }
    return expect_failures();
}
