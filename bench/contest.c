/* Buffers, verification, bursts and sustained load. A failure on the GPU ends the program,
 * because the context is then lost. */
#include "bench/contest.h"
#include "bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define B_BEGINS 12345 /* start of B in the noise */
#define PATIENCE 20.0  /* limit in seconds for work of some milliseconds */
#define BATCH    0.05  /* seconds of sustained load between two events */
#define ROWS     32    /* sampled of C, and as many elements of each */

/* ---- the bench ------------------------------------------------------------------------------- */

static void make_noise(Bench *bench) {
    double *normal = measure_memory(malloc(MEASURE_NOISE * sizeof *normal)), largest = 0;
    uint64_t state = 20240607;
    for (size_t i = 0; i < MEASURE_NOISE; i++) {
        normal[i] = measure_normal(&state);
        largest = fmax(largest, fabs(normal[i]));
    }
    bench->bf16 = measure_memory(malloc(MEASURE_NOISE * sizeof *bench->bf16));
    bench->e4m3 = measure_memory(malloc(MEASURE_NOISE * sizeof *bench->e4m3));
    float scale = (float)(largest / 448); /* maps the largest value to e4m3's largest */
    bench->scale = scale;
    for (size_t i = 0; i < MEASURE_NOISE; i++) {
        bench->bf16[i] = measure_bf16(normal[i]);
        bench->e4m3[i] = measure_e4m3(normal[i] / scale);
    }
    free(normal);
    cuda_check(&bench->cuda, bench->cuda.cuMemAlloc(&bench->scales, sizeof scale), "device memory");
    cuda_check(&bench->cuda, bench->cuda.cuMemcpyHtoD(bench->scales, &scale, sizeof scale),
               "a copy to the device");
}

void bench_open(Bench *bench, const Protocol *protocol) {
    *bench = (Bench){.protocol = *protocol};
    cuda_need(&bench->cuda);
    const char *lack = lt_open(&bench->lt, &bench->cuda);
    if (lack != NULL) {
        fprintf(stderr, "bench: needs cuBLASLt: %s\n", lack);
        exit(2);
    }
    bench->sensors = sensors_open(bench->cuda.bus, &lack);
    if (bench->sensors == NULL)
        fprintf(stderr, "bench: clock and power are not measured: %s\n", lack);
    cuda_check(&bench->cuda, bench->cuda.cuStreamCreate(&bench->stream, 0), "a stream");
    for (int i = 0; i < 3; i++)
        cuda_check(&bench->cuda, bench->cuda.cuEventCreate(&bench->events[i], 0), "an event");
    make_noise(bench);
}

void bench_close(Bench *bench) {
    sensors_close(bench->sensors);
    free(bench->bf16);
    free(bench->e4m3);
}

/* Polls with a time limit, so that a kernel that never ends does not block the machine. Exits
 * with 1 if the contender is our kernel, with 2 otherwise. */
static void await(const Bench *bench, void *event, const Contender *contender) {
    double start = measure_wall();
    int result;
    while ((result = bench->cuda.cuEventQuery(event)) == CUDA_NOT_READY &&
           measure_wall() - start < PATIENCE)
        usleep(20);
    if (result == 0) return;
    fflush(stdout);
    if (result == CUDA_NOT_READY)
        fprintf(stderr, "bench: %s does not end within %g s\n", contender->name, PATIENCE);
    else
        fprintf(stderr, "bench: %s: %s (%d)\n", contender->name, cuda_error(&bench->cuda, result),
                result);
    _exit(contender->variant != NULL ? 1 : 2); /* exit() would wait for the kernel */
}

/* ---- data of one contest --------------------------------------------------------------------- */

static int element_bytes(const Contest *contest) {
    return contest->shape.type == TYPE_E4M3 ? 1 : 2;
}

static double noise(const Contest *contest, int64_t index) {
    const Bench *bench = contest->bench;
    if (contest->shape.type == TYPE_E4M3)
        return bench->scale * measure_from_e4m3(bench->e4m3[index % MEASURE_NOISE]);
    return measure_from_bf16(bench->bf16[index % MEASURE_NOISE]);
}

static void fill(const Contest *contest, DevicePointer to, int64_t elements, int64_t from) {
    const Bench *bench = contest->bench;
    int bytes = element_bytes(contest);
    cuda_fill(&bench->cuda, to, elements,
              bytes == 1 ? (const void *)bench->e4m3 : (const void *)bench->bf16, from, bytes);
}

/* Position of sample `index` of ROWS * ROWS: spread over the tensor, including its corners */
static void place(const Shape *shape, int index, int64_t *row, int64_t *column) {
    *row = (shape->m - 1) * (index / ROWS) / (ROWS - 1);
    *column = (shape->n - 1) * ((index % ROWS * 7 + index / ROWS) % ROWS) / (ROWS - 1);
}

static void expect(Contest *contest) {
    const Shape *s = &contest->shape;
    double *a = measure_memory(malloc((size_t)s->k * sizeof *a + 1));
    contest->expected = measure_memory(malloc(sizeof(double[ROWS * ROWS])));
    for (int i = 0; i < ROWS * ROWS; i++) {
        int64_t row, column;
        place(s, i, &row, &column);
        if (i % ROWS == 0)
            for (int64_t k = 0; k < s->k; k++) a[k] = noise(contest, row * s->k + k);
        double sum = 0;
        for (int64_t k = 0; k < s->k; k++)
            sum += a[k] * noise(contest, B_BEGINS + column * s->k + k);
        contest->expected[i] = sum;
    }
    free(a);
}

void contest_open(Contest *contest, Bench *bench, const char *name, const Shape *shape) {
    *contest = (Contest){.bench = bench, .name = name, .shape = *shape};
    int64_t m = shape->m, n = shape->n, k = shape->k, bytes = element_bytes(contest);
    int64_t set = (m * k + n * k) * bytes + m * n * 2, least = 3 * (int64_t)bench->cuda.l2_bytes;
    int64_t sets = (least + set - 1) / set;
    contest->sets = sets < 3 ? 3 : sets > MAX_SETS ? MAX_SETS : (int)sets;
    for (int i = 0; i < contest->sets; i++) {
        cuda_check(&bench->cuda, bench->cuda.cuMemAlloc(&contest->a[i], (size_t)(m * k * bytes)),
                   "device memory");
        cuda_check(&bench->cuda, bench->cuda.cuMemAlloc(&contest->b[i], (size_t)(n * k * bytes)),
                   "device memory");
        cuda_check(&bench->cuda, bench->cuda.cuMemAlloc(&contest->c[i], (size_t)(m * n * 2)),
                   "device memory");
        fill(contest, contest->a[i], m * k, 0);
        fill(contest, contest->b[i], n * k, B_BEGINS);
    }
    lt_describe(&bench->lt, &contest->problem, m, n, k,
                shape->type == TYPE_E4M3 ? bench->scales : 0);
    expect(contest);
    contest->contenders = measure_memory(calloc(OURS + MAX_VARIANTS, sizeof *contest->contenders));
    contest->contenders[HEURISTIC].name = "cuBLASLt, heuristic";
    contest->contenders[BEST].name = "cuBLASLt, best of 8";
    contest->count = OURS;
}

void contest_add(Contest *contest, Variant *variant) {
    contest->contenders[contest->count++] =
        (Contender){.name = variant->name, .variant = variant, .status = variant->status};
}

void contest_close(Contest *contest) {
    const Cuda *cuda = &contest->bench->cuda;
    for (int i = 0; i < contest->sets; i++) {
        cuda->cuMemFree(contest->a[i]);
        cuda->cuMemFree(contest->b[i]);
        cuda->cuMemFree(contest->c[i]);
    }
    for (int i = 0; i < contest->count; i++) free(contest->contenders[i].seconds);
    free(contest->contenders);
    free(contest->expected);
}

/* ---- contenders ------------------------------------------------------------------------------ */

const char *const contest_parameters[] = {"A", "B", "C", "scale_a", "scale_b", "scale", NULL};

static void launch(Contest *contest, Contender *contender, int set) {
    Bench *bench = contest->bench;
    const Shape *s = &contest->shape;
    DevicePointer a = contest->a[set], b = contest->b[set], c = contest->c[set];
    double scale = s->type == TYPE_E4M3 ? bench->scale : 1;
    const PipecArgument values[] = {{.pointer = a, .extents = {s->m, s->k}},
                                    {.pointer = b, .extents = {s->n, s->k}},
                                    {.pointer = c, .extents = {s->m, s->n}},
                                    {.number = scale},
                                    {.number = scale},
                                    {.number = scale * scale}};
    if (contender->variant == NULL)
        lt_launch(&bench->lt, &contest->problem, contender->algorithm, a, b, c, bench->stream);
    else if (contender->status == 0)
        contender->status = variant_launch(contender->variant, values, bench->stream);
}

static void launch_next(Contest *contest, Contender *contender, int times) {
    for (int i = 0; i < times; i++) launch(contest, contender, contest->next++ % contest->sets);
}

static void record(const Bench *bench, int event) {
    cuda_check(&bench->cuda, bench->cuda.cuEventRecord(bench->events[event], bench->stream),
               "cuEventRecord");
}

static double between(const Bench *bench, int start, int end) {
    float milliseconds;
    cuda_check(
        &bench->cuda,
        bench->cuda.cuEventElapsedTime(&milliseconds, bench->events[start], bench->events[end]),
        "cuEventElapsedTime");
    return milliseconds * 1e-3;
}

static void keep(Contender *contender, double seconds) {
    if (contender->count == contender->room) {
        contender->room = contender->room ? 2 * contender->room : 64;
        contender->seconds = measure_memory(
            realloc(contender->seconds, (size_t)contender->room * sizeof *contender->seconds));
    }
    contender->seconds[contender->count++] = seconds;
}

/* Verifies C, which was filled with NaNs before. The matrix unit adds in f32 (for e4m3 with
 * about 14 bits), C is rounded to bf16. */
static void verify(Contest *contest, Contender *contender) {
    Bench *bench = contest->bench;
    const Shape *s = &contest->shape;
    size_t row_bytes = (size_t)s->n * 2;
    cuda_check(
        &bench->cuda,
        bench->cuda.cuMemsetD8Async(contest->c[0], 0xff, (size_t)s->m * row_bytes, bench->stream),
        "cuMemsetD8Async");
    launch(contest, contender, 0);
    if (contender->status != 0) return;
    record(bench, 0);
    await(bench, bench->events[0], contender);
    uint16_t *got = measure_memory(malloc(row_bytes));
    for (int i = 0; i < ROWS * ROWS && contender->status == 0; i++) {
        int64_t row, column;
        place(s, i, &row, &column);
        if (i % ROWS == 0)
            cuda_check(
                &bench->cuda,
                bench->cuda.cuMemcpyDtoH(got, contest->c[0] + (uint64_t)row * row_bytes, row_bytes),
                "a copy from the device");
        double value = measure_from_bf16(got[column]), want = contest->expected[i];
        if (fabs(value - want) <= 1e-2 * (fabs(want) + sqrt((double)s->k))) continue;
        fprintf(stderr, "bench: %s: %s is WRONG: C[%lld, %lld] is %g, not %g\n", contest->name,
                contender->name, (long long)row, (long long)column, value, want);
        contender->status = 1;
    }
    free(got);
}

/* ---- bursts ---------------------------------------------------------------------------------- */

/* Time of one launch in seconds. Sampling starts after the last launch call, so that it delays
 * none. */
static double burst(Contest *contest, Contender *contender, SensorLog *log) {
    Bench *bench = contest->bench;
    usleep((useconds_t)(bench->protocol.pause * 1e6));
    record(bench, 0);
    launch_next(contest, contender, BURST);
    record(bench, 1);
    if (log != NULL) sensors_watch(bench->sensors, log);
    await(bench, bench->events[1], contender);
    if (log != NULL) sensors_rest(bench->sensors);
    return between(bench, 0, 1) / BURST;
}

static int try_bursts(Contest *contest) {
    static double seconds[LT_ALGORITHMS][64];
    int trials = contest->bench->protocol.trials, best = 0;
    Contender contender = {.name = "cuBLASLt, on trial"};
    for (int t = -1; t < trials; t++) /* the first round warms up */
        for (contender.algorithm = 0; contender.algorithm < contest->problem.found;
             contender.algorithm++) {
            double took = burst(contest, &contender, NULL);
            if (t >= 0) seconds[contender.algorithm][t] = took;
        }
    double medians[LT_ALGORITHMS];
    for (int i = 0; i < contest->problem.found; i++) {
        medians[i] = measure_median(seconds[i], trials);
        if (medians[i] < medians[best]) best = i;
    }
    return best;
}

/* All contenders once per round, in rotating order. */
static void run_bursts(Contest *contest) {
    for (int r = 0; r < contest->bench->protocol.rounds; r++) {
        for (int i = 0; i < contest->count; i++) {
            Contender *contender = &contest->contenders[(i + r) % contest->count];
            if (contender->status != 0) continue;
            double took = burst(contest, contender, &contender->log);
            if (contender->status == 0) keep(contender, took);
        }
    }
}

/* ---- sustained load -------------------------------------------------------------------------- */

/* Two batches are always queued, so that the device never idles. Counts batches that end after
 * `warm` seconds. */
static void load(Contest *contest, Contender *contender, double warm, double measure,
                 SensorLog *log) {
    Bench *bench = contest->bench;
    double once = burst(contest, contender, NULL);
    int batch = once > 0 && once < BATCH ? (int)(BATCH / once) : 1;
    double start = measure_wall(), gone = 0;
    bool warming = true;
    int before = contender->count;
    record(bench, 0);
    for (int i = 1; (gone < warm + measure || contender->count == before) && contender->status == 0;
         i++) {
        launch_next(contest, contender, batch);
        record(bench, i % 3);
        if (i == 1) continue;
        await(bench, bench->events[(i - 1) % 3], contender);
        if (!warming) keep(contender, between(bench, (i - 2) % 3, (i - 1) % 3) / batch);
        gone = measure_wall() - start;
        if (warming && gone >= warm) {
            warming = false;
            if (log != NULL) sensors_watch(bench->sensors, log);
        }
    }
    sensors_rest(bench->sensors);
    cuda_check(&bench->cuda, bench->cuda.cuStreamSynchronize(bench->stream), contender->name);
}

static int try_load(Contest *contest) {
    const Protocol *protocol = &contest->bench->protocol;
    int best = 0;
    double least = INFINITY;
    for (int i = 0; i < contest->problem.found; i++) {
        Contender contender = {.name = "cuBLASLt, on trial", .algorithm = i};
        load(contest, &contender, i == 0 ? protocol->warm : protocol->trial / 2, protocol->trial,
             NULL);
        double median = measure_median(contender.seconds, contender.count);
        if (median < least) least = median, best = i;
        free(contender.seconds);
    }
    return best;
}

/* One contender after another, in alternating direction from run to run */
static void run_load(Contest *contest) {
    const Protocol *protocol = &contest->bench->protocol;
    for (int i = 0; i < contest->count; i++) {
        Contender *contender =
            &contest->contenders[contest->runs % 2 == 0 ? contest->count - 1 - i : i];
        if (contender->status == 0)
            load(contest, contender, protocol->warm, protocol->measure, &contender->log);
    }
}

/* ---- one run --------------------------------------------------------------------------------- */

/* Two measurements of one algorithm are averaged: taking the faster one would be biased. */
static double peer(const Contest *contest, const int *before) {
    const Contender *first = &contest->contenders[HEURISTIC], *best = &contest->contenders[BEST];
    int one = first->count - before[HEURISTIC], other = best->count - before[BEST];
    if (best->algorithm != first->algorithm)
        return fmin(first->median[contest->runs], best->median[contest->runs]);
    double *both = measure_memory(malloc((size_t)(one + other + 1) * sizeof *both));
    memcpy(both, first->seconds + before[HEURISTIC], (size_t)one * sizeof *both);
    memcpy(both + one, best->seconds + before[BEST], (size_t)other * sizeof *both);
    double median = measure_median(both, one + other);
    free(both);
    return median;
}

void contest_run(Contest *contest) {
    bool bursts = contest->shape.regime == REGIME_BURST;
    int before[OURS + MAX_VARIANTS], fit = 0;
    contest->peer[contest->runs] = NAN;
    for (int i = 0; i < contest->count; i++) contest->contenders[i].median[contest->runs] = NAN;
    for (int i = OURS; i < contest->count; i++) fit += contest->contenders[i].status == 0;
    if (fit == 0) { /* no peer to compare with */
        contest->runs++;
        return;
    }
    contest->contenders[BEST].algorithm = bursts ? try_bursts(contest) : try_load(contest);
    for (int i = 0; i < contest->count; i++) {
        Contender *contender = &contest->contenders[i];
        before[i] = contender->count;
        if (contender->status == 0 && (contest->runs == 0 || i == BEST))
            verify(contest, contender); /* the best algorithm may have changed */
    }
    if (bursts)
        run_bursts(contest);
    else
        run_load(contest);
    for (int i = 0; i < contest->count; i++) {
        Contender *contender = &contest->contenders[i];
        contender->median[contest->runs] =
            measure_median(contender->seconds + before[i], contender->count - before[i]);
    }
    contest->peer[contest->runs] = peer(contest, before);
    contest->runs++;
}

double contest_flop(const Shape *shape) {
    return 2.0 * (double)shape->m * (double)shape->n * (double)shape->k;
}
