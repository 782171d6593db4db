/* Statics that tensors of a call decide: an extent, and the type of elements. Each launch runs a
 * kernel that was compiled for its tensors, or says why there is none. */
#include "tests/unit/kernels.h"

#include <pthread.h>

/* With 300 elements, `fixed` does not fit its tile; `any` takes even numbers of rows */
static const char text[] =
    "kernel copy(X: T[M, D], out Y: T[M, D]) for sm_90a {\n"
    "    static T = f32 in {f32, bf16};\n"
    "    variant fixed {\n"
    "        static D = 64 in {64, 128};\n"
    "        requires D <= 256;\n"
    "        grid (m: M, d: ceil(D, 32));\n"
    "        role all: 1 warp {\n"
    "            for (m, d) in grid { Y[m, d*32 + i] = X[m, d*32 + i] for i in 0 .. 32; }\n"
    "        }\n"
    "    }\n"
    "    variant any {\n"
    "        requires M % 2 == 0 && D >= 256;\n"
    "        grid (m: M);\n"
    "        role all: 4 warps {\n"
    "            for m in grid {\n"
    "                for d in 0 .. ceil(D, 128) {\n"
    "                    Y[m, d*128 + i] = X[m, d*128 + i] for i in 0 .. 128;\n"
    "                }\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "}\n"
    "kernel one(X: f32[M, D], out Y: f32[M, D]) for sm_90a {\n"
    "    static D = 64;\n"
    "    grid (m: M, d: ceil(D, 32));\n"
    "    role all: 1 warp {\n"
    "        for (m, d) in grid { Y[m, d*32 + i] = X[m, d*32 + i] for i in 0 .. 32; }\n"
    "    }\n"
    "    requires D % 2 == 0;\n"
    "}\n";

static _Thread_local unsigned launched; /* blocks of the last launch of this thread */
static void look(void **parameters, unsigned blocks) {
    (void)parameters;
    launched = blocks;
}

static PipecProgram *compile_kernel(const char *name, const char *const *values, size_t count,
                                    bool untuned) {
    PipecOptions options = {.size = sizeof options,
                            .kernel = name,
                            .values = values,
                            .value_count = count,
                            .any_variant = true,
                            .untuned = untuned};
    PipecProgram *program = pipec_compile(text, strlen(text), &options);
    EXPECT(pipec_program_status(program) == PIPEC_FINE);
    return program;
}

/* The blocks of a launch with tensors [m, d] of these types; 0: it is refused with the code */
static unsigned blocks_for(PipecKernel *kernel, int64_t m, int64_t d, const char *x, const char *y,
                           const char *code) {
    PipecArgument arguments[2] = {{.pointer = 1 << 20, .extents = {m, d}, .type = x},
                                  {.pointer = UINT64_C(1) << 40, .extents = {m, d}, .type = y}};
    PipecLaunch launch = launch_of(arguments, 2);
    launched = 0;
    EXPECT(launches(kernel, &launch, code));
    return launched;
}

static void extents(PipecKernel *kernel) {
    for (int round = 0; round < 2; round++) {
        EXPECT(blocks_for(kernel, 10, 64, NULL, NULL, NULL) == 20);
        EXPECT(blocks_for(kernel, 10, 128, NULL, NULL, NULL) == 40);
        EXPECT(blocks_for(kernel, 9, 100, NULL, NULL, NULL) == 36); /* not in the set */
        EXPECT(blocks_for(kernel, 10, 300, NULL, NULL, NULL) == 10);
        EXPECT(blocks_for(kernel, 10, 5000, NULL, NULL, NULL) == 10);
        EXPECT(blocks_for(kernel, 9, 300, NULL, NULL, "P0608") == 0);
        EXPECT(blocks_for(kernel, 10, 0, NULL, NULL, "P0608") == 0); /* an extent of 0 */
    }
}

static void types(PipecKernel *kernel) {
    for (int round = 0; round < 2; round++) {
        EXPECT(blocks_for(kernel, 10, 64, "f32", "f32", NULL) == 20);
        EXPECT(blocks_for(kernel, 10, 64, "bf16", "bf16", NULL) == 20);
        EXPECT(blocks_for(kernel, 10, 300, "bf16", NULL, NULL) == 10);
        EXPECT(blocks_for(kernel, 10, 64, "f16", "f16", "P0624") == 0); /* not in the set */
        EXPECT(blocks_for(kernel, 10, 64, "f16x", "f16x", "P0624") == 0);
        EXPECT(blocks_for(kernel, 10, 64, "bf16", "f32", "P0624") == 0); /* they differ */
        EXPECT(blocks_for(kernel, 10, 64, "f32", "bf16", "P0624") == 0);
    }
}

static void only_one(PipecKernel *kernel) {
    for (int round = 0; round < 2; round++) {
        EXPECT(blocks_for(kernel, 3, 64, "f32", "f32", NULL) == 6);
        EXPECT(blocks_for(kernel, 3, 66, NULL, NULL, NULL) == 9);
        EXPECT(blocks_for(kernel, 3, 65, NULL, NULL, "P0623") == 0); /* P0145: never holds */
        EXPECT(blocks_for(kernel, 3, 64, "bf16", NULL, "P0624") == 0);
    }
}

/* A value that the caller gives is not that of a tensor */
static void given(void) {
    const char *values[] = {"D=128"};
    PipecProgram *program = compile_kernel("one", values, 1, false);
    PipecKernel *kernel;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        EXPECT(blocks_for(kernel, 3, 128, NULL, NULL, NULL) == 12);
        EXPECT(blocks_for(kernel, 3, 64, NULL, NULL, "P0604") == 0);
        pipec_kernel_free(kernel);
    }
    pipec_program_free(program);
}

static void untuned(void) {
    PipecProgram *program = compile_kernel("one", NULL, 0, true);
    PipecKernel *kernel;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        EXPECT(blocks_for(kernel, 3, 64, NULL, NULL, NULL) == 6);
        EXPECT(blocks_for(kernel, 3, 128, NULL, NULL, "P0604") == 0);
        pipec_kernel_free(kernel);
    }
    pipec_program_free(program);
}

/* The values exclude the first variant, not the program */
static void excluded(void) {
    const char *values[] = {"D=300"}, *none[] = {"D=300", "T=f16"};
    PipecProgram *program = compile_kernel("copy", values, 1, false);
    EXPECT(strcmp(pipec_program_compiled(program), "copy:any") == 0);
    pipec_program_free(program);
    program = compile_kernel("copy", none, 2, false); /* other types may be given */
    EXPECT(strcmp(pipec_program_compiled(program), "copy:any") == 0);
    pipec_program_free(program);
}

static void by_program(void) {
    PipecProgram *program = compile_kernel("copy", NULL, 0, false), *found, *again;
    PipecArgument arguments[2] = {{.extents = {10, 100}, .type = "bf16"}};
    bool known[2] = {true, false};
    PipecDiagnostics *said = NULL;
    PipecParameter parameter = {.size = sizeof parameter};
    size_t index = 9;
    int axis = 9;
    EXPECT(strcmp(pipec_program_decided(program, 0, &index, &axis), "T") == 0 && index == 0 &&
           axis == -1);
    EXPECT(strcmp(pipec_program_decided(program, 3, &index, &axis), "D") == 0 && index == 1 &&
           axis == 1);
    EXPECT(pipec_program_decided(program, 4, NULL, NULL) == NULL);
    EXPECT(pipec_program_for(program, arguments, sizeof *arguments, 2, known, &found, &said) ==
               PIPEC_FINE &&
           found != program && said == NULL && pipec_program_decided(found, 0, NULL, NULL) == NULL);
    EXPECT(pipec_program_parameter(found, 1, &parameter) && strcmp(parameter.type, "bf16") == 0 &&
           strcmp(parameter.extents[1], "100") == 0);
    EXPECT(pipec_program_for(program, arguments, sizeof *arguments, 2, known, &again, NULL) ==
               PIPEC_FINE &&
           again == found);
    arguments[0].extents[1] = 64, arguments[0].type = NULL;
    EXPECT(pipec_program_for(program, arguments, sizeof *arguments, 2, known, &again, NULL) ==
               PIPEC_FINE &&
           again == program);
    EXPECT(pipec_program_for(program, arguments, sizeof *arguments, 1, known, &again, &said) ==
           PIPEC_UNUSABLE);
    EXPECT(said != NULL && strcmp(pipec_diagnostics_get(said, 0)->code, "P0910") == 0);
    pipec_diagnostics_free(said);
    pipec_program_free(program);
}

typedef struct Worker {
    pthread_t thread;
    PipecKernel *kernel;
    int wrong;
} Worker;

static void *launch_many(void *data) {
    Worker *worker = data;
    for (int64_t i = 0; i < 2000; i++) {
        int64_t d = 32 * (1 + i * 7919 % 12);
        PipecArgument arguments[2] = {{.pointer = 1 << 20, .extents = {10, d}},
                                      {.pointer = UINT64_C(1) << 40, .extents = {10, d}}};
        PipecLaunch launch = launch_of(arguments, 2);
        launched = 0;
        bool ran = launches(worker->kernel, &launch, NULL);
        worker->wrong += !ran || launched != (d < 256 ? 10 * d / 32 : 10);
    }
    return NULL;
}

static void threads(PipecProgram *program) {
    PipecKernel *kernel;
    Worker workers[8];
    if (!EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) return;
    for (size_t i = 0; i < 8; i++) {
        workers[i] = (Worker){.kernel = kernel};
        pthread_create(&workers[i].thread, NULL, launch_many, &workers[i]);
    }
    for (size_t i = 0; i < 8; i++) {
        pthread_join(workers[i].thread, NULL);
        EXPECT(workers[i].wrong == 0);
    }
    pipec_kernel_free(kernel);
}

int main(void) {
    Standin *standin = standin_open();
    setenv("PIPEC_PTXAS", "", 1);
    setenv("PIPEC_CACHE", "", 1);
    standin->kernel = look;
    PipecProgram *copy = compile_kernel("copy", NULL, 0, false),
                 *one = compile_kernel("one", NULL, 0, false);
    PipecKernel *kernel;
    if (EXPECT(loads(copy, 0, &kernel, PIPEC_FINE, NULL))) {
        extents(kernel);
        types(kernel);
        pipec_kernel_free(kernel);
    }
    if (EXPECT(loads(one, 0, &kernel, PIPEC_FINE, NULL))) {
        only_one(kernel);
        pipec_kernel_free(kernel);
    }
    threads(copy);
    pipec_program_free(copy);
    pipec_program_free(one);
    given();
    untuned();
    excluded();
    by_program();
    EXPECT(standin_is_clean(standin));
    return expect_failures();
}
