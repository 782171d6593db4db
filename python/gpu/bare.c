/* The cost of cuLaunchKernelEx alone, for costs.py: a kernel that does nothing and has the launch
 * of examples/gemm.pipe, three tensor maps among its parameters. Types are those of cuda.h, which
 * need not be installed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

typedef struct Config {
    unsigned grid[3], block[3], shared_bytes;
    void *stream, *attributes;
    unsigned attribute_count;
} Config;

static const char text[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n"
    ".visible .entry f(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128],\n"
    "    .param .align 64 .b8 c[128], .param .u32 m, .param .u32 n, .param .u32 k) { ret; }\n";

#define SHARED_BYTES            213000
#define DYNAMIC_SHARED_BYTES_OF 8 /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int (*launch)(const Config *, void *, void **, void **);
static int (*wait)(void);
static void (*count_reference)(void *); /* Py_IncRef */
static void *function;

/* Loads the kernel into the current context; not 0: it failed */
int bare_open(void);
int bare_open(void) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *module;
    if (cuda == NULL) return -1;
    int (*load)(void **, const void *) = dlsym(cuda, "cuModuleLoadData");
    int (*find)(void **, void *, const char *) = dlsym(cuda, "cuModuleGetFunction");
    int (*set)(void *, int, int) = dlsym(cuda, "cuFuncSetAttribute");
    launch = dlsym(cuda, "cuLaunchKernelEx");
    wait = dlsym(cuda, "cuCtxSynchronize");
    count_reference = dlsym(RTLD_DEFAULT, "Py_IncRef");
    if (count_reference == NULL) return -1;
    return load(&module, text) != 0 || find(&function, module, "f") != 0 ||
           set(function, DYNAMIC_SHARED_BYTES_OF, SHARED_BYTES) != 0;
}

static int bare_launch(void) {
    static _Alignas(64) char maps[3][128];
    unsigned numbers[3] = {64, 64, 64};
    void *parameters[] = {maps[0], maps[1], maps[2], &numbers[0], &numbers[1], &numbers[2]};
    Config config = {{1, 1, 1}, {384, 1, 1}, SHARED_BYTES, NULL, NULL, 0};
    return launch(&config, function, parameters, NULL);
}

/* Seconds of a launch on the default stream, the mean of `calls`; -1: it failed */
double bare(int calls);
double bare(int calls) {
    wait();
    double start = now();
    for (int k = 0; k < calls; k++)
        if (bare_launch() != 0) return -1;
    double took = (now() - start) / calls;
    wait();
    return took;
}

/* A method of Python, METH_NOARGS: the same launch, once. `self` is None, which it returns. */
void *bare_once(void *self, void *unused);
void *bare_once(void *self, void *unused) {
    (void)unused;
    if (bare_launch() != 0) __builtin_trap();
    count_reference(self);
    return self;
}
