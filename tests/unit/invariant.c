/* Launches that are invariant: all numbers of rows run variants that add in one order, and a kernel
 * that has none is refused by name. */
#include "tests/unit/kernels.h"

static const char rows[] =
    "kernel rows(X: f32[M, D], out Y: f32[M, D]) for sm_90a {\n"
    "    variant few {\n"
    "        requires M <= 8;\n"
    "        grid (m: M);\n"
    "        role work: 1 warp {\n"
    "            for m in grid {\n"
    "                var total: f32[32] = 0;\n"
    "                for p in 0 .. ceil(D, 32) {\n"
    "                    total[i] += p*32 + i < D ? X[m, p*32 + i] : 0;\n"
    "                }\n"
    "                let all = sum[i] total[i];\n"
    "                for p in 0 .. ceil(D, 32) { Y[m, p*32 + i] = all for i in 0 .. 32; }\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "    variant many {\n"
    "        static W = 4 in {4, 8};\n"
    "        requires D % 2 == 0;\n"
    "        grid (m: ceil(M, 2));\n"
    "        role work: W warps {\n"
    "            for m in grid {\n"
    "                var total: f32[2, 256] = 0;\n"
    "                var all: f32[2];\n"
    "                for p in 0 .. ceil(D, 256) {\n"
    "                    total[r, i] += p*256 + i < D ? X[m*2 + r, p*256 + i] : 0;\n"
    "                }\n"
    "                all[r] = sum[i] total[r, i];\n"
    "                for p in 0 .. ceil(D, 256) {\n"
    "                    Y[m*2 + r, p*256 + i] = all[r] for i in 0 .. 256;\n"
    "                }\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "}\n";

static const char columns[] =
    "kernel columns(X: f32[M, D], out Y: f32[M, D], out S: f32[D]) for sm_90a {\n"
    "    requires D <= 128;\n"
    "    grid (one: 1);\n"
    "    role work: 4 warps {\n"
    "        for one in grid {\n"
    "            var total: f32[128] = 0;\n"
    "            for m in 0 .. M {\n"
    "                total[k] += k < D ? X[m, k] : 0;\n"
    "                Y[m, k] = 2 * X[m, k] for k in 0 .. 128;\n"
    "            }\n"
    "            S[k] = total[k];\n"
    "        }\n"
    "    }\n"
    "}\n";

static PipecProgram *compile_text(const char *text, PipecOptions options) {
    options.size = sizeof options;
    options.any_variant = true;
    options.invariant = true;
    return pipec_compile(text, strlen(text), &options);
}

static unsigned launched;
static void look(void **parameters, unsigned blocks) {
    (void)parameters;
    launched = blocks;
}

static bool launch_rows(PipecKernel *kernel, int64_t m, int64_t d, const char *code) {
    PipecArgument arguments[2] = {{.pointer = 1 << 20, .extents = {m, d}},
                                  {.pointer = UINT64_C(1) << 40, .extents = {m, d}}};
    PipecLaunch launch = launch_of(arguments, 2);
    launched = 0;
    return launches(kernel, &launch, code);
}

/* `few` cannot run for many rows, so it is not taken for few either. */
static void one_order(void) {
    PipecProgram *program = compile_text(rows, (PipecOptions){0});
    PipecKernel *kernel;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        for (int64_t m = 1; m <= 20; m++)
            EXPECT(launch_rows(kernel, m, 1000, NULL) && launched == (m + 1) / 2);
        /* with an odd D, `many` cannot run: `few` could, but not for many rows */
        EXPECT(launch_rows(kernel, 4, 999, "P0934"));
        EXPECT(launch_rows(kernel, 9, 999, "P0608"));
        pipec_kernel_free(kernel);
    }
    pipec_program_free(program);
}

static void refused(void) {
    PipecProgram *program = compile_text(columns, (PipecOptions){0});
    EXPECT(pipec_program_status(program) == PIPEC_REFUSED &&
           has_code(pipec_program_diagnostics(program), "P0934") &&
           pipec_program_ptx(program, NULL) == NULL);
    const char *said = pipec_diagnostics_text(pipec_program_diagnostics(program));
    EXPECT(strstr(said, "`total` of `work`") != NULL && strstr(said, "`M`, an extent of") != NULL);
    pipec_program_free(program);
    PipecOptions plain = {.size = sizeof plain};
    program = pipec_compile(columns, strlen(columns), &plain);
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    pipec_program_free(program);
    const char *shipped[] = {"kernels:rms_norm_backward", "kernels:layer_norm_backward"};
    for (size_t i = 0; i < 2; i++) {
        PipecOptions options = {.size = sizeof options, .any_variant = true, .invariant = true};
        program = pipec_compile_file(shipped[i], &options);
        EXPECT(has_code(pipec_program_diagnostics(program), "P0934"));
        pipec_program_free(program);
    }
}

/* The instruction is the same for all M, and the other extents decide which. */
static void products(void) {
    PipecOptions options = {.size = sizeof options, .any_variant = true, .invariant = true};
    PipecProgram *program = pipec_compile_file("kernels:linear", &options);
    PipecChooseOptions how = {.size = sizeof how, .machine = "h200"};
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    for (int64_t m = 1; m <= 300; m += 13) {
        PipecValue values[] = {{.name = "M", .integer = m},
                               {.name = "N", .integer = 4096},
                               {.name = "K", .integer = 1024}};
        PipecRunOptions data = {.size = sizeof data, .numbers = values, .number_count = 3};
        PipecChoice choice = {.size = sizeof choice};
        pipec_program_free(pipec_program_chosen(program, &data, &how, &choice));
        EXPECT(choice.values != NULL && strcmp(choice.kernel, "linear:large") == 0 &&
               strstr(choice.values, "BN=256") != NULL);
    }
    EXPECT(strstr(pipec_program_report(program), "order of sums") != NULL);
    EXPECT(strstr(pipec_program_manifest(program), "\"sums\"") != NULL);
    pipec_program_free(program);
}

int main(void) {
    Standin *standin = standin_open();
    setenv("PIPEC_PTXAS", "", 1);
    setenv("PIPEC_CACHE", "", 1);
    standin->kernel = look;
    one_order();
    refused();
    products();
    EXPECT(standin_is_clean(standin));
    return expect_failures();
}
