/* overlap-test: launches of a kernel with a dynamic grid that overlap, on a GPU. Each must execute
 * all of its tiles: on several streams at once, one after the other with an early start, and in
 * graphs of several captures that run at the same time.
 *
 * Tiles take different times, so that the end of a launch overlaps the beginning of others. */
#include "bench/cuda.h"
#include "include/pipec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAMS  4
#define LAUNCHES 8 /* of a stream, or of a graph */
#define ROUNDS   20
#define TILES    3001
#define ELEMENTS (TILES * 128)

static const char text[] = "kernel marks(out Y: i32[N], mark: i32) for sm_90a {\n"
                           "    ensures Y[i] == mark + i;\n"
                           "    grid dynamic (t: ceil(N, 128));\n"
                           "    role work: 4 warps {\n"
                           "        for t in grid {\n"
                           "            var y: i32[128] = mark;\n"
                           "            for k in 0 .. t % 61 { y[i] = y[i] + k; }\n"
                           "            for k in 0 .. t % 61 { y[i] = y[i] - k; }\n"
                           "            Y[t*128 + i] = y[i] + t*128 + i;\n"
                           "        }\n"
                           "    }\n"
                           "}\n";

typedef struct Overlap {
    Cuda cuda;
    PipecKernel *kernel;
    void *streams[STREAMS];
    DevicePointer results[STREAMS][LAUNCHES]; /* of the launches of a round */
    int mark, passed, failed;
} Overlap;

static void check(const Overlap *all, int result, const char *what) {
    cuda_check(&all->cuda, result, what);
}

static void launch(Overlap *all, int stream, int which) {
    PipecArgument arguments[2] = {{.pointer = all->results[stream][which], .extents = {ELEMENTS}},
                                  {.integer = all->mark + 16 * stream + which}};
    PipecLaunch launch = {.size = sizeof launch,
                          .argument_size = sizeof *arguments,
                          .arguments = arguments,
                          .count = 2,
                          .stream = all->streams[stream],
                          .programmatic = true};
    if (pipec_kernel_launch(all->kernel, &launch, NULL) == PIPEC_FINE) return;
    fprintf(stderr, "overlap: a launch failed\n");
    exit(1);
}

static bool is_right(const Overlap *all, const int *found, int mark) {
    (void)all;
    for (int i = 0; i < ELEMENTS; i++)
        if (found[i] != mark + i) {
            printf("overlap: element %d of tile %d is %d, not %d\n", i, i / 128, found[i],
                   mark + i);
            return false;
        }
    return true;
}

/* Waits for a round, compares its results and overwrites them */
static void verify(Overlap *all, const char *what) {
    int *found = malloc(ELEMENTS * sizeof *found);
    bool right = true;
    for (int s = 0; s < STREAMS; s++) {
        check(all, all->cuda.cuStreamSynchronize(all->streams[s]), "a launch");
        for (int k = 0; k < LAUNCHES && right; k++) {
            DevicePointer result = all->results[s][k];
            check(all, all->cuda.cuMemcpyDtoH(found, result, ELEMENTS * sizeof *found), "a copy");
            right = is_right(all, found, all->mark + 16 * s + k);
            check(all, all->cuda.cuMemsetD8Async(result, 0xff, ELEMENTS * sizeof *found, NULL),
                  "a fill");
        }
    }
    check(all, all->cuda.cuStreamSynchronize(NULL), "a fill");
    free(found);
    all->passed += right, all->failed += !right;
    if (!right) printf("overlap: %s: wrong\n", what);
}

static void on_streams(Overlap *all) {
    for (int round = 0; round < ROUNDS; round++, all->mark += 1000) {
        for (int k = 0; k < LAUNCHES; k++)
            for (int s = 0; s < STREAMS; s++) launch(all, s, k);
        verify(all, "launches on several streams");
    }
}

/* The launches of a graph have the arguments of its capture. */
static void in_graphs(Overlap *all) {
    void *graph, *executables[STREAMS];
    for (int s = 0; s < STREAMS; s++) {
        check(all, all->cuda.cuStreamBeginCapture(all->streams[s], 0), "a capture");
        for (int k = 0; k < LAUNCHES; k++) launch(all, s, k);
        check(all, all->cuda.cuStreamEndCapture(all->streams[s], &graph), "a capture");
        check(all, all->cuda.cuGraphInstantiate(&executables[s], graph, 0), "a graph");
        all->cuda.cuGraphDestroy(graph);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int again = 0; again < 3; again++)
            for (int s = 0; s < STREAMS; s++)
                check(all, all->cuda.cuGraphLaunch(executables[s], all->streams[s]), "a graph");
        verify(all, "graphs at the same time");
    }
    for (int s = 0; s < STREAMS; s++) all->cuda.cuGraphExecDestroy(executables[s]);
}

int main(void) {
    Overlap all = {.mark = 1};
    const char *why = cuda_open(&all.cuda);
    if (why != NULL) {
        printf("overlap: SKIPPED: %s\n0 passed, 0 failed, 1 skipped\n", why);
        return 0;
    }
    PipecOptions options = {.size = sizeof options, .name = "marks.pipe"};
    PipecProgram *program = pipec_compile(text, sizeof text - 1, &options);
    if (pipec_kernel_load(program, 0, &all.kernel, NULL) != PIPEC_FINE) {
        fprintf(stderr, "overlap: the kernel is refused\n");
        return 1;
    }
    for (int s = 0; s < STREAMS; s++) {
        check(&all, all.cuda.cuStreamCreate(&all.streams[s], 1), "a stream");
        for (int k = 0; k < LAUNCHES; k++)
            check(&all, all.cuda.cuMemAlloc(&all.results[s][k], ELEMENTS * sizeof(int)), "memory");
    }
    on_streams(&all);
    in_graphs(&all);
    pipec_kernel_free(all.kernel);
    pipec_program_free(program);
    printf("%d passed, %d failed\n", all.passed, all.failed);
    return all.failed > 0;
}
