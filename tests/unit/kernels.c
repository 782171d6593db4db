/* Kernels that a program loads by the library and launches with its own pointers: arguments,
 * sizes of structures, one kernel per device, contexts, captures, the size of the grid, memory. */
#include "runtime/driver.h"
#include "tests/unit/kernels.h"

#include <malloc.h>

static Standin *standin;

/* Counts the allocations of the process, except under sanitizers, which have their own malloc */
static size_t allocations;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
void *malloc(size_t bytes) {
    allocations++;
    return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
    allocations++;
    return __libc_calloc(count, bytes);
}
#endif

static void test_arguments(PipecKernel *kernel) {
    static float x[1024], y[1024], z[1024];
    PipecArgument arguments[] = {{.pointer = ((uintptr_t)x + 15) / 16 * 16, .extents = {1000}},
                                 {.pointer = ((uintptr_t)y + 15) / 16 * 16, .extents = {1000}}};
    PipecLaunch launch = launch_of(arguments, 2), one = launch_of(arguments, 1);
    for (int i = 0; i < 2; i++) {
        EXPECT(launches(kernel, &launch, NULL));
        EXPECT(launches(kernel, &one, "P0910"));
        arguments[1].extents[0] = 999;
        EXPECT(launches(kernel, &launch, "P0604"));
        arguments[1].extents[0] = 1000;
        arguments[0].pointer += 4;
        EXPECT(launches(kernel, &launch, "P0620"));
        arguments[0].pointer = 0;
        EXPECT(launches(kernel, &launch, "P0620"));
        arguments[0].pointer = arguments[1].pointer;
        EXPECT(launches(kernel, &launch, "P0622"));
        arguments[0].pointer = ((uintptr_t)z + 15) / 16 * 16;
        EXPECT(launches(kernel, &launch, NULL));
    }
    memset(arguments, 0, sizeof arguments); /* tensors without elements */
    arguments[0].pointer = 1;
    EXPECT(launches(kernel, &launch, NULL));
    EXPECT(pipec_kernel_launch(kernel, &launch, NULL) == PIPEC_FINE &&
           pipec_kernel_launch(kernel, &one, NULL) == PIPEC_UNUSABLE);
    launch.multiprocessors = 2; /* its grid is not persistent */
    EXPECT(launches(kernel, &launch, "P0918"));
}

/* Structures without a size, of an older and of a newer caller */
static void test_sizes(PipecKernel *kernel) {
    static float x[1024], y[1024];
    struct {
        PipecArgument argument;
        int64_t more;
    } wide[2] = {{.argument = {.pointer = ((uintptr_t)x + 15) / 16 * 16, .extents = {1000}}},
                 {.argument = {.pointer = ((uintptr_t)y + 15) / 16 * 16, .extents = {1000}}}};
    PipecArgument arguments[] = {wide[0].argument, wide[1].argument};
    struct {
        PipecLaunch launch;
        int64_t more;
    } newer = {.launch = launch_of(arguments, 2)};
    PipecLaunch older = launch_of(arguments, 2);
    newer.launch.size = sizeof newer;
    EXPECT(launches(kernel, &newer.launch, NULL));
    newer.more = 1;
    EXPECT(launches(kernel, &newer.launch, "P0917"));
    older.multiprocessors = 7, older.size = offsetof(PipecLaunch, multiprocessors);
    EXPECT(launches(kernel, &older, NULL));
    older.size = 0;
    EXPECT(launches(kernel, &older, "P0917"));
    older = launch_of(&wide[0].argument, 2);
    older.argument_size = sizeof wide[0];
    EXPECT(launches(kernel, &older, NULL));
    wide[1].more = 1;
    EXPECT(launches(kernel, &older, "P0917"));
    older.argument_size = 0;
    EXPECT(launches(kernel, &older, "P0917"));
    PipecKernelInfo info = {.size = offsetof(PipecKernelInfo, registers), .registers = -1};
    EXPECT(pipec_kernel_info(kernel, &info) && strcmp(info.device, "Stand-in") == 0 &&
           info.ordinal == 0 && info.multiprocessors == 4 && info.registers == -1);
    info.size = sizeof info;
    EXPECT(pipec_kernel_info(kernel, &info) && info.registers == 64 &&
           info.blocks_per_multiprocessor == 1 && info.load_seconds > 0);
    EXPECT(strcmp(info.loaded_by, "the driver") == 0);
    info.size = 0;
    EXPECT(!pipec_kernel_info(kernel, &info));
}

static void test_loads(void) {
    PipecProgram *program = compile(kernels_copy);
    PipecKernel *kernel, *same;
    if (EXPECT(loads(program, -1, &kernel, PIPEC_FINE, NULL))) {
        EXPECT(loads(program, 0, &same, PIPEC_FINE, NULL) && same == kernel);
        pipec_kernel_free(same);
        EXPECT(loads(program, -1, &same, PIPEC_FINE, NULL) && same == kernel);
        pipec_kernel_free(kernel);
        test_arguments(same);
        test_sizes(same);
        pipec_kernel_free(same);
    }
    standin_says("warn");
    EXPECT(loads(program, 0, &kernel, PIPEC_FINE, "P0810"));
    EXPECT(loads(program, -1, &same, PIPEC_FINE, NULL) && same == kernel);
    pipec_kernel_free(kernel);
    pipec_kernel_free(same);
    standin_says("jit");
    EXPECT(loads(program, -1, &kernel, PIPEC_BUG, "P0801"));
    standin_says("devices=0");
    EXPECT(loads(program, -1, &kernel, PIPEC_UNUSABLE, "P0800"));
    standin_says("devices=2");
    EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL) &&
           loads(program, 1, &same, PIPEC_FINE, NULL) && same != kernel);
    pipec_kernel_free(kernel);
    pipec_kernel_free(same);
    pipec_kernel_free(NULL);
    pipec_program_free(program);
    standin_says("warn");
    const char *denied = "warnings"; /* a warning of the load is an error then */
    PipecOptions options = {.size = sizeof options, .denied = &denied, .denied_count = 1};
    program = pipec_compile(kernels_copy, strlen(kernels_copy), &options);
    EXPECT(loads(program, 0, &kernel, PIPEC_REFUSED, "P0810") && standin_is_clean(standin));
    pipec_program_free(program);
    standin_says("");
    program = pipec_compile(kernels_copy, strlen(kernels_copy),
                            &(PipecOptions){.size = sizeof(PipecOptions), .check_only = true});
    EXPECT(loads(program, -1, &kernel, PIPEC_UNUSABLE, "P0919"));
    pipec_program_free(program);
}

/* A launch compares the extents of pointers with formulas too, and the strides with C order. */
static void test_formula(void) {
    static const char source[] =
        "kernel k(X: f32[N], out Y: f32[2*N, 3]) for sm_90a {\n"
        "    grid (t: N);\n"
        "    role all: 1 warp { for t in grid { Y[2*t + i, 0 + j] = X[t] for i in 0 .. 2, j in 0 "
        ".. 3; } }\n"
        "}\n";
    PipecProgram *program = compile(source);
    PipecKernel *kernel;
    static float x[8], y[64];
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        PipecArgument arguments[] = {{.pointer = (uintptr_t)x, .extents = {8}},
                                     {.pointer = (uintptr_t)y, .extents = {16, 3}}};
        PipecLaunch launch = launch_of(arguments, 2);
        EXPECT(launches(kernel, &launch, NULL));
        arguments[1].extents[0] = 15;
        EXPECT(launches(kernel, &launch, "P0604"));
        arguments[1] = (PipecArgument){
            .pointer = (uintptr_t)y, .extents = {16, 3}, .strides = {3, 1}, .strided = true};
        EXPECT(launches(kernel, &launch, NULL));
        arguments[1].strides[0] = 4;
        EXPECT(launches(kernel, &launch, NULL));
        arguments[1].strides[0] = 2;
        EXPECT(launches(kernel, &launch, "P0621"));
        arguments[1].pointer = (uintptr_t)x;
        arguments[1].strides[0] = 3;
        EXPECT(launches(kernel, &launch, "P0622"));
        arguments[1].pointer = (uintptr_t)y;
        arguments[1].strides[1] = 2;
        EXPECT(launches(kernel, &launch, "P0621"));
        arguments[1].strides[0] = arguments[1].strides[1] = 0;
        EXPECT(launches(kernel, &launch, "P0621"));
        arguments[0].extents[0] = arguments[1].extents[0] = 0; /* no elements */
        EXPECT(launches(kernel, &launch, NULL));
        pipec_kernel_free(kernel);
    }
    pipec_program_free(program);
}

/* ---- how it is launched ---------------------------------------------------------------------- */

static float memory[2][4096];

/* X and Y of 1000 elements */
static void set_arguments(PipecArgument *arguments) {
    for (int i = 0; i < 2; i++)
        arguments[i] =
            (PipecArgument){.pointer = ((uintptr_t)memory[i] + 15) / 16 * 16, .extents = {1000}};
}

/* The primary context is pushed only if another one is current, and then popped. */
static void test_contexts(void) {
    void *other = NULL;
    DriverError (*push)(DriverContext), (*pop)(DriverContext *), (*current)(DriverContext *);
    void *library = dlopen(getenv("PIPEC_LIBCUDA"), RTLD_NOW);
    *(void **)&push = dlsym(library, "cuCtxPushCurrent_v2");
    *(void **)&pop = dlsym(library, "cuCtxPopCurrent_v2");
    *(void **)&current = dlsym(library, "cuCtxGetCurrent");
    PipecProgram *program = compile(kernels_copy);
    PipecKernel *kernel;
    PipecArgument arguments[2];
    set_arguments(arguments);
    PipecLaunch launch = launch_of(arguments, 2);
    DriverContext primary = (DriverContext)(void *)(uintptr_t)0x1000, found;
    EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL) && launches(kernel, &launch, NULL));
    int pushes = standin->pushes;
    push((DriverContext)(void *)&other);
    for (int i = 0; i < 3; i++) EXPECT(launches(kernel, &launch, NULL));
    EXPECT(standin->pushes == pushes + 4 && current(&found) == 0 &&
           found == (DriverContext)(void *)&other);
    push(primary);
    pushes = standin->pushes;
    for (int i = 0; i < 3; i++) EXPECT(launches(kernel, &launch, NULL));
    arguments[0].pointer += 16; /* with new tensor maps */
    EXPECT(launches(kernel, &launch, NULL));
    EXPECT(standin->pushes == pushes && current(&found) == 0 && found == primary);
    pipec_kernel_free(kernel);
    EXPECT(current(&found) == 0 && found == primary);
    pop(&found), pop(&found);
    pipec_program_free(program);
    dlclose(library);
    EXPECT(standin_is_clean(standin));
}

/* While a stream is captured, a thread can load, launch and free. */
static void test_captures(void) {
    static const char dynamic[] =
        "kernel d(out Y: f32[N]) for sm_90a {\n"
        "    grid dynamic (t: ceil(N, 256));\n"
        "    role all: 4 warps { for t in grid { Y[t*256 + i] = 1 for i in 0 .. 256; } }\n"
        "}\n";
    /* Graphs refer to the module and to an allocation, for empty tensors or counters, so both stay
     * when the kernel is freed. */
    static const struct {
        const char *text;
        size_t first; /* of the arguments */
        int64_t extent;
    } cases[] = {{kernels_copy, 0, 1000}, {kernels_copy, 0, 0}, {dynamic, 1, 1000}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        PipecProgram *program = compile(cases[i].text);
        PipecKernel *kernel;
        PipecArgument arguments[2];
        set_arguments(arguments);
        arguments[0].extents[0] = arguments[1].extents[0] = cases[i].extent;
        PipecLaunch launch = launch_of(arguments + cases[i].first, 2 - cases[i].first);
        launch.stream = &kernel; /* any stream but the default one, which CUDA does not capture */
        standin->captures = 1;
        if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
            for (int k = 0; k < 3; k++) EXPECT(launches(kernel, &launch, NULL));
            pipec_kernel_free(kernel);
        }
        EXPECT(standin->capture_mode == 0);
        standin->captures = 0;
        pipec_program_free(program);
        EXPECT(standin->allocations == 1 && standin->modules == 1);
        standin->allocations = standin->modules = 0;
    }
    EXPECT(standin_is_clean(standin));
}

/* Four multiprocessors, one block each */
static void test_grid(void) {
    static const char text[] =
        "kernel p(X: f32[N], out Y: f32[N]) for sm_90a {\n"
        "    grid persistent (t: ceil(N, 128));\n"
        "    role all: 4 warps { for t in grid { Y[t*128 + i] = X[t*128 + i] for i in 0 .. 128; } "
        "}\n}\n";
    PipecProgram *program = compile(text);
    PipecKernel *kernel;
    PipecArgument arguments[2];
    set_arguments(arguments);
    PipecLaunch launch = launch_of(arguments, 2);
    EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL));
    for (int i = 0; i <= 6; i++) {
        launch.multiprocessors = i;
        EXPECT(launches(kernel, &launch, NULL) &&
               standin->grid == (i == 0 || i > 4 ? 4 : (unsigned)i));
    }
    launch.multiprocessors = -1;
    EXPECT(launches(kernel, &launch, "P0918"));
    launch.multiprocessors = 0;
    arguments[0].extents[0] = arguments[1].extents[0] = 130;
    EXPECT(launches(kernel, &launch, NULL) && standin->grid == 2);
    EXPECT(!standin->programmatic);
    launch.programmatic = true;
    EXPECT(launches(kernel, &launch, NULL) && standin->programmatic);
    pipec_kernel_free(kernel);
    pipec_program_free(program);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void cycle(PipecProgram *program) {
    PipecKernel *kernel, *same;
    PipecArgument arguments[2];
    set_arguments(arguments);
    PipecLaunch launch = launch_of(arguments, 2);
    EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL) &&
           loads(program, -1, &same, PIPEC_FINE, NULL));
    for (int i = 0; i < 40; i++, arguments[0].pointer += 16)
        EXPECT(launches(kernel, &launch, NULL));
    arguments[0].extents[0] = 3;
    EXPECT(launches(same, &launch, "P0604"));
    pipec_kernel_free(same);
    pipec_kernel_free(kernel);
}

/* 1,000 cycles of load, launch and free take no memory of the host or the device. */
static void test_growth(void) {
    PipecProgram *program = compile(kernels_copy);
    for (int i = 0; i < 300; i++) cycle(program);
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 1000; i++) cycle(program);
    size_t after = mallinfo2().uordblks;
    /* a piece of malloc may be 16 bytes larger than what is asked for */
    if (!EXPECT(after < before + 1000))
        fprintf(stderr, "%zu bytes before, %zu after\n", before, after);
    EXPECT(standin_is_clean(standin));
    pipec_program_free(program);
}

/* Repeated launches allocate nothing. */
static void test_no_allocations(void) {
    PipecProgram *program = compile(kernels_copy);
    PipecKernel *kernel;
    PipecArgument arguments[2];
    set_arguments(arguments);
    PipecLaunch launch = launch_of(arguments, 2);
    EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL) && launches(kernel, &launch, NULL));
    int encoded = standin->encoded, allocated = standin->allocations;
    size_t before = allocations;
    for (int i = 0; i < 1000; i++) pipec_kernel_launch(kernel, &launch, NULL);
    EXPECT(allocations == before && standin->encoded == encoded &&
           standin->allocations == allocated);
    pipec_kernel_free(kernel);
    pipec_program_free(program);
}

int main(void) {
    standin = standin_open();
    setenv("PIPEC_PTXAS", "", 1); /* none */
    standin_says("");
    test_loads();
    test_formula();
    test_contexts();
    test_captures();
    test_grid();
    test_growth();
    test_no_allocations();
    EXPECT(standin_is_clean(standin));
    return expect_failures();
}
