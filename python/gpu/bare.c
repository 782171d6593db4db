/* The cost of cuLaunchKernelEx alone, for costs.py: an empty kernel with four parameters, in a
 * loop. Types are those of cuda.h, which need not be installed. */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

typedef struct Config {
    unsigned grid[3], block[3], shared_bytes;
    void *stream, *attributes;
    unsigned attribute_count;
} Config;

static const char text[] = ".version 8.0\n.target sm_90a\n.address_size 64\n"
                           ".visible .entry f(.param .u64 a, .param .u64 b, .param .u64 c, "
                           ".param .u64 d) { ret; }\n";

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of a launch: the median of `batches`; -1: it failed */
double bare(int batches, int calls) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *module, *function;
    if (cuda == NULL) return -1;
    int (*load)(void **, const void *) = dlsym(cuda, "cuModuleLoadData");
    int (*find)(void **, void *, const char *) = dlsym(cuda, "cuModuleGetFunction");
    int (*launch)(const Config *, void *, void **, void **) = dlsym(cuda, "cuLaunchKernelEx");
    int (*wait)(void) = dlsym(cuda, "cuCtxSynchronize");
    if (load(&module, text) != 0 || find(&function, module, "f") != 0) return -1;
    unsigned long long values[4] = {0};
    void *parameters[] = {&values[0], &values[1], &values[2], &values[3]};
    Config config = {{1, 1, 1}, {128, 1, 1}, 0, NULL, NULL, 0};
    double *times = malloc((size_t)batches * sizeof *times), median;
    for (int i = 0; i < batches; i++) {
        wait();
        double start = now();
        for (int k = 0; k < calls; k++)
            if (launch(&config, function, parameters, NULL) != 0) return -1;
        times[i] = (now() - start) / calls;
    }
    wait();
    qsort(times, (size_t)batches, sizeof *times, ascending);
    median = times[batches / 2];
    free(times);
    return median;
}
