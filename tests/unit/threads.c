/* Threads that load, launch and free at once: each launch passes its own arguments, a thread gets
 * its own diagnostics, one program has one kernel per device. `make threads` runs this under
 * ThreadSanitizer. */
#include "tests/unit/kernels.h"

#include <pthread.h>

#define THREADS  8
#define LAUNCHES 4000
#define TENSORS  6 /* of a thread: in all, more than a kernel keeps prepared */
#define CYCLES   40

/* What the kernel of this thread's launch must get */
static _Thread_local struct {
    uint64_t x, y;
    uint32_t n;
    int seen, wrong;
} expected;

/* X and Y by tensor map, Y by pointer, N */
static void look(void **parameters, unsigned blocks) {
    uint64_t x, y, pointer;
    uint32_t n;
    memcpy(&x, parameters[0], sizeof x);
    memcpy(&y, parameters[1], sizeof y);
    memcpy(&pointer, parameters[2], sizeof pointer);
    memcpy(&n, parameters[3], sizeof n);
    expected.seen++;
    expected.wrong += x != expected.x || y != expected.y || pointer != y || n != expected.n ||
                      blocks != (expected.n + 255) / 256;
}

typedef struct Worker {
    pthread_t thread;
    uint64_t number;
    PipecProgram *program;
    PipecKernel *kernel;
    int wrong;
} Worker;

static bool launch_one(const Worker *worker, uint64_t i, const char *code) {
    uint64_t tensor = i % TENSORS, n = 256 * (1 + tensor) + worker->number;
    expected.x = (worker->number * TENSORS + tensor + 1) << 20;
    expected.y = expected.x + (1 << 18);
    expected.n = (uint32_t)n;
    PipecArgument arguments[2] = {{.pointer = expected.x, .extents = {(int64_t)n}},
                                  {.pointer = expected.y, .extents = {(int64_t)n}}};
    PipecLaunch launch = launch_of(arguments, 2);
    launch.stream = (void *)(uintptr_t)(worker->number + 1);
    if (code != NULL && strcmp(code, "P0604") == 0) arguments[1].extents[0]++;
    if (code != NULL && strcmp(code, "P0620") == 0) arguments[0].pointer = 0;
    return launches(worker->kernel, &launch, code);
}

static void *launch_many(void *data) {
    Worker *worker = data;
    expected.seen = expected.wrong = 0;
    int failed = 0;
    for (uint64_t i = 0; i < LAUNCHES; i++) failed += !launch_one(worker, i, NULL);
    for (uint64_t i = 0; i < 20; i++)
        failed += !launch_one(worker, i, "P0604") + !launch_one(worker, i, "P0620");
    worker->wrong = failed + expected.wrong + (expected.seen != LAUNCHES);
    return NULL;
}

static void *load_many(void *data) {
    Worker *worker = data;
    for (uint64_t i = 0; i < CYCLES; i++) {
        int device = (int)((worker->number + i) % 3) - 1;
        worker->wrong += !loads(worker->program, device, &worker->kernel, PIPEC_FINE, NULL);
        expected.wrong = 0;
        worker->wrong += !launch_one(worker, i, NULL) + expected.wrong;
        pipec_kernel_free(worker->kernel);
    }
    return NULL;
}

static void run_all(PipecProgram *program, PipecKernel *kernel, void *(*work)(void *)) {
    Worker workers[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (Worker){.number = i, .program = program, .kernel = kernel};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        EXPECT(workers[i].wrong == 0);
    }
}

int main(void) {
    Standin *standin = standin_open();
    setenv("PIPEC_PTXAS", "", 1); /* none */
    standin_says("devices=2");
    PipecProgram *program = compile(kernels_copy);
    PipecKernel *kernel;
    standin->kernel = look;
    if (EXPECT(loads(program, 0, &kernel, PIPEC_FINE, NULL))) {
        run_all(program, kernel, launch_many);
        pipec_kernel_free(kernel);
    }
    run_all(program, NULL, load_many);
    EXPECT(standin_is_clean(standin));
    pipec_program_free(program);
    return expect_failures();
}
