/* Pipe in a C program: compiles axpy.pipe, launches it with device pointers of its own, or runs it
 * on the emulator; checks the result.
 *   cc embed.c $(pkg-config --cflags --libs pipec) -ldl -o embed && ./embed ../axpy.pipe
 * After `make install PREFIX=P` with another P than /usr/local, first:
 *   export PKG_CONFIG_PATH=P/lib/pkgconfig */
#include <dlfcn.h>
#include <math.h>
#include <pipec.h>
#include <stdio.h>
#include <string.h>

enum { N = 100000 };
static float x[N], y[N], expected[N];

static int on_gpu(PipecKernel *kernel) {
    int (*retain)(void **, int), (*enter)(void *), (*allocate)(uint64_t *, size_t),
        (*in)(uint64_t, const void *, size_t), (*out)(void *, uint64_t, size_t);
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context;
    *(void **)&retain = dlsym(cuda, "cuDevicePrimaryCtxRetain");
    *(void **)&enter = dlsym(cuda, "cuCtxSetCurrent");
    *(void **)&allocate = dlsym(cuda, "cuMemAlloc_v2");
    *(void **)&in = dlsym(cuda, "cuMemcpyHtoD_v2");
    *(void **)&out = dlsym(cuda, "cuMemcpyDtoH_v2");
    PipecArgument arguments[] = {{.extents = {N}}, {.extents = {N}}, {.number = 2.5}}; /* X, Y, a */
    if (!retain || !enter || !allocate || !in || !out || retain(&context, 0) || enter(context) ||
        allocate(&arguments[0].pointer, sizeof x) || allocate(&arguments[1].pointer, sizeof y) ||
        in(arguments[0].pointer, x, sizeof x) || in(arguments[1].pointer, y, sizeof y))
        return fprintf(stderr, "a driver call failed\n"), 1;
    PipecLaunch launch = {.size = sizeof launch,
                          .argument_size = sizeof *arguments,
                          .arguments = arguments,
                          .count = 3};
    PipecDiagnostics *diagnostics;
    if (pipec_kernel_launch(kernel, &launch, &diagnostics) != PIPEC_FINE)
        return fputs(pipec_diagnostics_text(diagnostics), stderr), 1;
    return out(y, arguments[1].pointer, sizeof y); /* waits for the default stream */
}

static int on_emulator(PipecProgram *program) {
    const char *values[] = {"N=100000", "a=2.5"};
    PipecRunOptions options = {.size = sizeof options, .values = values, .value_count = 2};
    PipecExecuteOptions how = {.size = sizeof how, .where = PIPEC_ON_EMULATOR};
    PipecRun *run = pipec_run_new(program, &options);
    PipecArray a = {.size = sizeof a}, b = {.size = sizeof b};
    int failed =
        run == NULL || !pipec_run_array_named(run, "X", &a) || !pipec_run_array_named(run, "Y", &b);
    if (!failed) memcpy(a.data, x, sizeof x), memcpy(b.data, y, sizeof y);
    failed = failed || pipec_run_execute(run, &how) != PIPEC_FINE;
    if (!failed) memcpy(y, b.data, sizeof y);
    if (failed && run != NULL) fputs(pipec_diagnostics_text(pipec_run_diagnostics(run)), stderr);
    pipec_run_free(run);
    return failed;
}

int main(int argc, char **argv) {
    int wrong = 0;
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 1000), y[i] = 1, expected[i] = 2.5f * x[i] + y[i];
    PipecProgram *program = pipec_compile_file(argc > 1 ? argv[1] : "examples/axpy.pipe", NULL);
    if (program == NULL) return 1;
    PipecKernel *kernel;
    PipecKernelInfo info = {.size = sizeof info};
    bool loaded = pipec_kernel_load(program, 0, &kernel, NULL) == PIPEC_FINE;
    if (loaded) pipec_kernel_info(kernel, &info);
    fputs(pipec_diagnostics_text(pipec_program_diagnostics(program)), stderr);
    int failed = pipec_program_status(program) != PIPEC_FINE ||
                 (loaded ? on_gpu(kernel) : on_emulator(program));
    for (int i = 0; i < N; i++) wrong += fabsf(y[i] - expected[i]) > 1e-6f * expected[i];
    if (!failed)
        printf("axpy on %s: %d of %d elements wrong\n", loaded ? info.device : "the emulator",
               wrong, N);
    pipec_kernel_free(kernel);
    pipec_program_free(program);
    return failed || wrong > 0;
}
