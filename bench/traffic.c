/* Buffers, launches, graphs, verification and bursts. A failure on the GPU ends the program,
 * because the context is then lost. */
#include "bench/traffic.h"
#include "bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define Y_BEGINS     12345 /* start of Y, G and B in the noise */
#define SAMPLED      32    /* rows of Y that are verified */
#define FACTOR       2.5   /* of axpy, as in bench/limits.ptx */
#define EPSILON      1e-5
#define RELAXED_MODE 2 /* CU_STREAM_CAPTURE_MODE_RELAXED */

/* A row or column of X of `d` elements, Y before the launch, weights and biases, as they are on
 * the device */
typedef struct Sample {
    int64_t d, label;
    double *x, *y, *g, *b, *want;
} Sample;

/* ---- operations ------------------------------------------------------------------------------ */

static double sum(const double *x, int64_t d) {
    double total = 0;
    for (int64_t k = 0; k < d; k++) total += x[k];
    return total;
}

static double squares(const double *x, int64_t d, double mean) {
    double total = 0;
    for (int64_t k = 0; k < d; k++) total += (x[k] - mean) * (x[k] - mean);
    return total;
}

static void expect_axpy(Sample *s) {
    for (int64_t k = 0; k < s->d; k++) s->want[k] = FACTOR * s->x[k] + s->y[k];
}

/* Of cast and transpose */
static void expect_same(Sample *s) {
    for (int64_t k = 0; k < s->d; k++) s->want[k] = s->x[k];
}

static void expect_softmax(Sample *s) {
    double total = 0;
    for (int64_t k = 0; k < s->d; k++) total += s->want[k] = exp(s->x[k]);
    for (int64_t k = 0; k < s->d; k++) s->want[k] /= total;
}

static void expect_rmsnorm(Sample *s) {
    double scale = 1 / sqrt(squares(s->x, s->d, 0) / (double)s->d + EPSILON);
    for (int64_t k = 0; k < s->d; k++) s->want[k] = s->x[k] * scale * s->g[k];
}

static void expect_layernorm(Sample *s) {
    double mean = sum(s->x, s->d) / (double)s->d;
    double scale = 1 / sqrt(squares(s->x, s->d, mean) / (double)s->d + EPSILON);
    for (int64_t k = 0; k < s->d; k++) s->want[k] = (s->x[k] - mean) * scale * s->g[k] + s->b[k];
}

static void expect_sum(Sample *s) { s->want[0] = sum(s->x, s->d); }

static void expect_loss(Sample *s) {
    double total = 0;
    for (int64_t k = 0; k < s->d; k++) total += exp(s->x[k]);
    s->want[0] = log(total) - s->x[s->label];
}

/* Each limit kernel moves the bytes of its operations. */
static const struct {
    bool flat;            /* X and Y are vectors */
    bool reads_y;         /* Y is updated in place */
    bool narrows;         /* Y has one element per row, or per column */
    bool columns;         /* each row of Y, or element, is computed from a column of X */
    int x_bytes, y_bytes; /* of an element */
    const char *limit;
    unsigned vectors; /* of 16 bytes of X per thread of the limit kernel */
    void (*expect)(Sample *sample);
    double relative, absolute; /* tolerance */
} operations[] = {
    [AXPY] = {true, true, false, false, 4, 4, "limit_axpy", 1, expect_axpy, 1e-6, 2e-6},
    [CAST] = {true, false, false, false, 4, 2, "limit_cast", 1, expect_same, 0x1p-8, 0},
    [SOFTMAX] = {false, false, false, false, 2, 2, "limit_copy", 1, expect_softmax, 1e-2, 0},
    [RMSNORM] = {false, false, false, false, 2, 2, "limit_copy", 1, expect_rmsnorm, 1e-2, 0},
    [LAYERNORM] = {false, false, false, false, 2, 2, "limit_copy", 1, expect_layernorm, 1e-2, 1e-2},
    [ROWSUM] = {false, false, true, false, 2, 4, "limit_read", 8, expect_sum, 1e-4, 1e-2},
    [COLSUM] = {false, false, true, true, 2, 4, "limit_read", 8, expect_sum, 1e-4, 1e-2},
    [CROSS_ENTROPY] = {false, false, true, false, 2, 4, "limit_read", 8, expect_loss, 1e-5, 1e-4},
    [TRANSPOSE] = {false, false, false, true, 4, 4, "limit_copy", 1, expect_same, 0, 0},
};

static int64_t x_bytes(const MemoryRow *row) {
    return row->m * row->d * operations[row->operation].x_bytes;
}

/* Rows of Y, each computed from one sample: a row or a column of X */
static int64_t samples_of(const MemoryRow *row) {
    return operations[row->operation].columns ? row->d : row->m;
}

/* Elements of a sample */
static int64_t sample_length(const MemoryRow *row) {
    return operations[row->operation].columns ? row->m : row->d;
}

/* Elements of one row of Y */
static int64_t y_width(const MemoryRow *row) {
    return operations[row->operation].narrows ? 1 : sample_length(row);
}

static int64_t y_bytes(const MemoryRow *row) {
    return samples_of(row) * y_width(row) * operations[row->operation].y_bytes;
}

static int64_t label_of(const MemoryRow *row, int64_t m) { return m * 4001 % row->d; }

double row_bytes(const MemoryRow *row) {
    int64_t times = operations[row->operation].reads_y ? 2 : 1;
    return (double)(x_bytes(row) + times * y_bytes(row));
}

/* ---- the device ------------------------------------------------------------------------------ */

static void load_limits(Traffic *traffic) {
    static char text[1 << 16];
    FILE *file = fopen("bench/limits.ptx", "r");
    if (file == NULL) {
        fprintf(stderr, "bench: bench/limits.ptx cannot be read\n");
        exit(2);
    }
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    cuda_check(&traffic->cuda,
               traffic->cuda.cuModuleLoadDataEx(&traffic->limits, text, 0, NULL, NULL),
               "bench/limits.ptx");
}

void traffic_open(Traffic *traffic) {
    *traffic = (Traffic){.pause = 0.05};
    cuda_need(&traffic->cuda);
    cuda_check(&traffic->cuda, traffic->cuda.cuStreamCreate(&traffic->stream, 0), "a stream");
    cuda_check(&traffic->cuda, traffic->cuda.cuEventCreate(&traffic->start, 0), "an event");
    cuda_check(&traffic->cuda, traffic->cuda.cuEventCreate(&traffic->end, 0), "an event");
    load_limits(traffic);
    traffic->f32 = measure_memory(malloc(MEASURE_NOISE * sizeof *traffic->f32));
    traffic->bf16 = measure_memory(malloc(MEASURE_NOISE * sizeof *traffic->bf16));
    uint64_t state = 20240607;
    for (size_t i = 0; i < MEASURE_NOISE; i++) {
        traffic->f32[i] = (float)measure_normal(&state);
        traffic->bf16[i] = measure_bf16(traffic->f32[i]);
    }
}

void traffic_close(Traffic *traffic) {
    free(traffic->f32);
    free(traffic->bf16);
}

/* ---- data of one row ------------------------------------------------------------------------- */

static double noise(const Traffic *traffic, int64_t index, int bytes) {
    index %= MEASURE_NOISE;
    return bytes == 4 ? traffic->f32[index] : measure_from_bf16(traffic->bf16[index]);
}

static DevicePointer new_buffer(const Traffic *traffic, int64_t bytes) {
    DevicePointer pointer;
    cuda_check(&traffic->cuda, traffic->cuda.cuMemAlloc(&pointer, (size_t)bytes), "device memory");
    return pointer;
}

static void fill(const Traffic *traffic, DevicePointer to, int64_t elements, int64_t from,
                 int bytes) {
    cuda_fill(&traffic->cuda, to, elements,
              bytes == 4 ? (const void *)traffic->f32 : (const void *)traffic->bf16, from, bytes);
}

static void open_labels(RowRun *run) {
    const MemoryRow *row = &run->row;
    size_t bytes = (size_t)row->m * sizeof(int32_t);
    int32_t *labels = measure_memory(malloc(bytes));
    for (int64_t m = 0; m < row->m; m++) labels[m] = (int32_t)label_of(row, m);
    run->labels = new_buffer(run->traffic, (int64_t)bytes);
    cuda_check(&run->traffic->cuda, run->traffic->cuda.cuMemcpyHtoD(run->labels, labels, bytes),
               "a copy to the device");
    free(labels);
}

static void open_buffers(RowRun *run) {
    const Traffic *traffic = run->traffic;
    const MemoryRow *row = &run->row;
    int64_t set = x_bytes(row) + y_bytes(row), least = 3 * (int64_t)traffic->cuda.l2_bytes;
    int64_t sets = (least + set - 1) / set;
    run->sets = sets < 2 ? 2 : sets > TRAFFIC_SETS ? TRAFFIC_SETS : (int)sets;
    for (int i = 0; i < run->sets; i++) {
        run->x[i] = new_buffer(traffic, x_bytes(row));
        run->y[i] = new_buffer(traffic, y_bytes(row));
        fill(traffic, run->x[i], row->m * row->d, 0, operations[row->operation].x_bytes);
        if (operations[row->operation].reads_y)
            fill(traffic, run->y[i], row->m * row->d, Y_BEGINS, operations[row->operation].y_bytes);
    }
    run->g = new_buffer(traffic, row->d * 2);
    run->b = new_buffer(traffic, row->d * 2);
    fill(traffic, run->g, row->d, Y_BEGINS, 2);
    fill(traffic, run->b, row->d, 2 * Y_BEGINS, 2);
    open_labels(run);
}

/* ---- launches -------------------------------------------------------------------------------- */

const char *const traffic_parameters[] = {"X", "Y", "G", "B", "L", "a", "eps", NULL};

static void launch_limit(const RowRun *run, const Contender *contender, int set) {
    const Traffic *traffic = run->traffic;
    DevicePointer x = run->x[set], y = run->y[set];
    void *parameters[] = {&x, &y};
    int64_t in_block = 16 * (int64_t)operations[run->row.operation].vectors * contender->threads;
    unsigned blocks = (unsigned)(x_bytes(&run->row) / in_block);
    cuda_check(&traffic->cuda,
               traffic->cuda.cuLaunchKernel(contender->function, blocks, 1, 1, contender->threads,
                                            1, 1, 0, traffic->stream, parameters, NULL),
               contender->name);
}

static void launch(RowRun *run, Contender *contender) {
    const MemoryRow *row = &run->row;
    int set = run->next++ % run->sets;
    if (contender->variant == NULL) {
        launch_limit(run, contender, set);
        return;
    }
    bool flat = operations[row->operation].flat;
    PipecArgument x = {.pointer = run->x[set], .extents = {row->m, row->d}};
    PipecArgument y = {.pointer = run->y[set], .extents = {samples_of(row), y_width(row)}};
    if (flat) x.extents[0] = y.extents[0] = row->m * row->d;
    const PipecArgument values[] = {x,
                                    y,
                                    {.pointer = run->g, .extents = {row->d}},
                                    {.pointer = run->b, .extents = {row->d}},
                                    {.pointer = run->labels, .extents = {row->m}},
                                    {.number = FACTOR},
                                    {.number = EPSILON}};
    if (contender->status == 0)
        contender->status = variant_launch(contender->variant, values, run->traffic->stream);
}

static void *make_graph(RowRun *run, Contender *contender) {
    const Traffic *traffic = run->traffic;
    void *graph, *executable;
    cuda_check(&traffic->cuda, traffic->cuda.cuStreamBeginCapture(traffic->stream, RELAXED_MODE),
               "capture");
    for (int i = 0; i < run->row.graph; i++) launch(run, contender);
    cuda_check(&traffic->cuda, traffic->cuda.cuStreamEndCapture(traffic->stream, &graph),
               "capture");
    cuda_check(&traffic->cuda, traffic->cuda.cuGraphInstantiate(&executable, graph, 0), "a graph");
    traffic->cuda.cuGraphDestroy(graph);
    return executable;
}

/* Seconds of one launch */
static double burst(RowRun *run, Contender *contender) {
    const Traffic *traffic = run->traffic;
    const Cuda *cuda = &traffic->cuda;
    float milliseconds;
    usleep((useconds_t)(traffic->pause * 1e6));
    cuda_check(&traffic->cuda, cuda->cuEventRecord(traffic->start, traffic->stream), "an event");
    for (int i = 0; i < TRAFFIC_BURST; i++) {
        if (contender->graph != NULL)
            cuda_check(&traffic->cuda, cuda->cuGraphLaunch(contender->graph, traffic->stream),
                       "a graph");
        else
            launch(run, contender);
    }
    cuda_check(&traffic->cuda, cuda->cuEventRecord(traffic->end, traffic->stream), "an event");
    cuda_check(&traffic->cuda, cuda->cuEventSynchronize(traffic->end), contender->name);
    cuda_check(&traffic->cuda,
               cuda->cuEventElapsedTime(&milliseconds, traffic->start, traffic->end), "an event");
    return milliseconds * 1e-3 / (TRAFFIC_BURST * run->row.graph);
}

/* ---- verification ---------------------------------------------------------------------------- */

static void draw(const RowRun *run, int64_t row, Sample *s) {
    const Traffic *traffic = run->traffic;
    int bytes = operations[run->row.operation].x_bytes;
    bool columns = operations[run->row.operation].columns;
    for (int64_t k = 0; k < s->d; k++) {
        s->x[k] = noise(traffic, columns ? k * run->row.d + row : row * s->d + k, bytes);
        s->y[k] = noise(traffic, Y_BEGINS + row * s->d + k, bytes);
        s->g[k] = noise(traffic, Y_BEGINS + k, 2);
        s->b[k] = noise(traffic, 2 * Y_BEGINS + k, 2);
    }
    s->label = label_of(&run->row, row);
    operations[run->row.operation].expect(s);
}

static double stored(const void *values, int64_t index, int bytes) {
    return bytes == 4 ? ((const float *)values)[index]
                      : measure_from_bf16(((const uint16_t *)values)[index]);
}

/* Compares one row of the first Y; reports the first difference. */
static bool row_right(const RowRun *run, const Contender *ours, int64_t row, Sample *s, void *got) {
    int bytes = operations[run->row.operation].y_bytes;
    int64_t width = y_width(&run->row), length = width * bytes;
    draw(run, row, s);
    cuda_check(
        &run->traffic->cuda,
        run->traffic->cuda.cuMemcpyDtoH(got, run->y[0] + (uint64_t)(row * length), (size_t)length),
        "a copy from the device");
    for (int64_t k = 0; k < width; k++) {
        double value = stored(got, k, bytes), want = s->want[k];
        if (fabs(value - want) <= operations[run->row.operation].relative * fabs(want) +
                                      operations[run->row.operation].absolute)
            continue;
        fprintf(stderr, "bench: %s: %s is WRONG: Y[%lld, %lld] is %g, not %g\n", run->row.name,
                ours->name, (long long)row, (long long)k, value, want);
        return false;
    }
    return true;
}

static void verify(RowRun *run, Contender *ours) {
    const Traffic *traffic = run->traffic;
    size_t d = (size_t)sample_length(&run->row);
    run->next = 0;
    if (!operations[run->row.operation].reads_y)
        cuda_check(&traffic->cuda,
                   traffic->cuda.cuMemsetD8Async(run->y[0], 0xff, (size_t)y_bytes(&run->row),
                                                 traffic->stream),
                   "cuMemsetD8Async");
    else
        fill(traffic, run->y[0], run->row.m * run->row.d, Y_BEGINS,
             operations[run->row.operation].y_bytes);
    launch(run, ours);
    if (ours->status != 0) return;
    cuda_check(&traffic->cuda, traffic->cuda.cuStreamSynchronize(traffic->stream), ours->name);
    double *numbers = measure_memory(malloc(6 * d * sizeof *numbers));
    Sample sample = {.d = (int64_t)d,
                     .x = numbers,
                     .y = numbers + d,
                     .g = numbers + 2 * d,
                     .b = numbers + 3 * d,
                     .want = numbers + 4 * d};
    for (int i = 0; i < SAMPLED && ours->status == 0; i++) {
        int64_t row = (samples_of(&run->row) - 1) * i / (SAMPLED - 1);
        if (!row_right(run, ours, row, &sample, numbers + 5 * d)) ours->status = 1;
    }
    free(numbers);
}

/* ---- one row --------------------------------------------------------------------------------- */

static void open_ours(RowRun *run, const char *kernel) {
    Contender *ours = &run->contenders[run->count];
    ours->variant = &run->variants[run->count++];
    variant_open(ours->variant, kernel, traffic_parameters);
    ours->status = ours->variant->status;
    snprintf(ours->name, sizeof ours->name, "%s", kernel);
    if (ours->status == 0) verify(run, ours);
}

static void open_limit(RowRun *run, unsigned threads) {
    const Traffic *traffic = run->traffic;
    const char *name = operations[run->row.operation].limit;
    Contender *limit = &run->contenders[run->count++];
    limit->threads = threads;
    snprintf(limit->name, sizeof limit->name, "%s, blocks of %u", name, threads);
    cuda_check(&traffic->cuda,
               traffic->cuda.cuModuleGetFunction(&limit->function, traffic->limits, name),
               limit->name);
}

void row_open(RowRun *run, Traffic *traffic, const MemoryRow *row, const char *const *kernels,
              int count) {
    *run = (RowRun){.traffic = traffic, .row = *row};
    open_buffers(run);
    if (count == 0) open_ours(run, row->kernel);
    for (int i = 0; i < count; i++) open_ours(run, kernels[i]);
    run->ours = run->count;
    for (int i = 0; i < LIMITS; i++) open_limit(run, 128u << i);
    for (int i = 0; i < run->count && row->graph > 1; i++)
        if (run->contenders[i].status == 0)
            run->contenders[i].graph = make_graph(run, &run->contenders[i]);
}

void row_measure(RowRun *run, int rounds) {
    for (int r = -1; r < rounds; r++) /* the first round warms up */
        for (int i = 0; i < run->count; i++) {
            Contender *contender = &run->contenders[(i + r + 1) % run->count];
            if (contender->status != 0) continue;
            double took = burst(run, contender);
            if (r >= 0) contender->seconds[r] = took;
        }
}

void row_close(RowRun *run) {
    const Cuda *cuda = &run->traffic->cuda;
    for (int i = 0; i < run->sets; i++) {
        cuda->cuMemFree(run->x[i]);
        cuda->cuMemFree(run->y[i]);
    }
    for (int i = 0; i < run->count; i++)
        if (run->contenders[i].graph != NULL) cuda->cuGraphExecDestroy(run->contenders[i].graph);
    cuda->cuMemFree(run->g);
    cuda->cuMemFree(run->b);
    cuda->cuMemFree(run->labels);
    for (int i = 0; i < run->ours; i++) variant_close(&run->variants[i]);
}
