/* lib: measures a device for the model of times: kernels of lib/calibrate.pipe, each limited by one
 * thing, and the numbers that follow. */
#include "lib/calibrate.h"

#include "lib/machine.h"
#include "runtime/runtime.h"

#include <string.h>
#include <time.h>

#define BURSTS        5
#define TILES_AN_SM   8                  /* of the matrix kernel */
#define ROUNDS        4000               /* its contractions of a tile, each of MATRIX_CYCLES */
#define MATRIX_CYCLES 1024               /* 128 x 256 x 64 in bf16 */
#define ELEMENTS      (INT64_C(1) << 27) /* f32 of the memory kernel, much more than any L2 */
#define AGAINS        64                 /* times that the L2 kernel reads its tensor */
#define COPIES        20000              /* one after another */
#define COPY          256                /* elements of one */
#define HANDS         200000             /* hand-overs */
#define STARTS        64                 /* blocks of an SM that do nothing */
#define LAUNCHES      1000               /* of a burst that does nothing */
#define SETTLES       2.0 /* seconds of matrix load until the clock is that of a long load */

struct PipecCalibration {
    Arena *arena;
    const PipecCalibrateOptions *unsized;
    PipecCalibrateOptions options;
    Runtime *runtime;
    PipecProgram *program; /* of the kernel that runs */
    Measured measured;
    Diags *diags;
    const PipecDiagnostics *published;
    PipecStatus status;
    PipecMachine shown;
};

static bool fail(PipecCalibration *it, PipecStatus status) {
    it->status = pipec_worse(it->status, status);
    return false;
}

/* ---- kernels --------------------------------------------------------------------------------- */

typedef struct Value {
    const char *name;
    int64_t value;
} Value;

static bool compile(PipecCalibration *it, const char *kernel) {
    PipecOptions options = {.size = sizeof options, .name = "calibrate.pipe", .kernel = kernel};
    pipec_program_free(it->program);
    it->program = pipec_compile(calibrate_text, strlen(calibrate_text), &options);
    if (it->program == NULL) arena_fail(it->arena);
    return it->program->manifest != NULL || fail(it, PIPEC_BUG);
}

/* Seconds of a launch of the kernel with these values of its symbols */
static bool measure(PipecCalibration *it, const char *kernel, const Value *values, size_t count,
                    int launches, double *seconds) {
    if (!compile(it, kernel)) return false;
    const Manifest *manifest = it->program->manifest;
    int64_t *symbols = NEW_ARRAY(it->arena, int64_t, manifest->symbols.count + 1);
    for (size_t i = 0; i < manifest->symbols.count; i++)
        for (size_t k = 0; k < count; k++)
            if (strcmp(manifest->symbols.items[i].name, values[k].name) == 0)
                symbols[i] = values[k].value;
    Launch launch = {.manifest = manifest,
                     .ptx = it->program->ptx.text,
                     .ptx_length = it->program->ptx.length,
                     .symbols = symbols};
    RunStatus status =
        runtime_time(it->arena, it->runtime, &launch, BURSTS, launches, seconds, it->diags);
    return status == RUN_DONE || fail(it, status_of_run(manifest, status));
}

#define MEASURE(it, kernel, launches, seconds, ...)                                                \
    measure((it), (kernel), (const Value[]){__VA_ARGS__},                                          \
            COUNT_OF(((const Value[]){__VA_ARGS__})), (launches), (seconds))

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void progress(const PipecCalibration *it, const char *what) {
    if (it->options.progress != NULL) it->options.progress(it->options.progress_data, what);
}

/* The clock falls under load: the last of several measurements counts. */
static bool measure_clock(PipecCalibration *it, int64_t sms, double *seconds) {
    double begun = now();
    progress(it, "matrix units");
    do {
        if (!MEASURE(it, "matrix", 1, seconds, {"M", 128 * TILES_AN_SM * sms}, {"R", ROUNDS}))
            return false;
    } while (now() - begun < (it->options.quick ? 0 : SETTLES));
    return true;
}

static bool measure_times(PipecCalibration *it, CalibrationTimes *t) {
    int64_t sms = it->measured.device.multiprocessors;
    int64_t small = it->measured.device.l2_bytes / 4 / 4; /* a quarter of L2, in elements */
    if (!measure_clock(it, sms, &t->matrix)) return false;
    progress(it, "memory");
    if (!MEASURE(it, "memory", 4, &t->memory, {"N", ELEMENTS})) return false;
    progress(it, "L2");
    if (!MEASURE(it, "again", 4, &t->again, {"N", small}, {"R", AGAINS})) return false;
    progress(it, "latencies");
    return MEASURE(it, "latency", 1, &t->latency, {"N", (int64_t)COPIES * COPY}) &&
           MEASURE(it, "barrier", 1, &t->barrier, {"R", HANDS}) &&
           MEASURE(it, "blocks", LAUNCHES, &t->launch, {"N", 1}) &&
           MEASURE(it, "blocks", 4, &t->blocks, {"N", STARTS * sms});
}

/* ---- numbers --------------------------------------------------------------------------------- */

static int rounded(double value) { return value > 0 && value < 2e9 ? (int)(value + 0.5) : 0; }

void calibrate_row(const DeviceFacts *device, const CalibrationTimes *t, Measured *out) {
    double sms = device->multiprocessors, small = (double)(device->l2_bytes / 4 / 4);
    double cycles = (double)TILES_AN_SM * ROUNDS * MATRIX_CYCLES;
    double hertz = cycles / (t->matrix - t->launch);
    double hand = t->barrier / HANDS / 2; /* there and back */
    *out = (Measured){.device = *device};
    out->row = (MachineRow){.name = device->name,
                            .device = device->name,
                            .multiprocessors = device->multiprocessors,
                            .megahertz = rounded(hertz * 1e-6),
                            .memory_rate = rounded(8.0 * ELEMENTS / t->memory * 1e-9),
                            .l2_rate = rounded(4 * small * AGAINS / t->again / sms / hertz),
                            .l2_size = (int)(device->l2_bytes >> 20),
                            .latency = rounded((t->latency / COPIES - hand) * 1e9),
                            .launch = rounded(t->launch * 1e9),
                            .calibrated = true};
    out->barrier = rounded(hand * 1e9);
    out->block = rounded((t->blocks - t->launch) / STARTS * 1e9);
}

/* Numbers that no GPU has: something else ran, or the clock is wrong */
static bool is_plausible(PipecCalibration *it) {
    const Measured *m = &it->measured;
    const struct {
        const char *name;
        int value, least, most;
    } rows[] = {{"MHz", m->row.megahertz, 300, 4000},
                {"GB/s of memory", m->row.memory_rate, 100, 20000},
                {"bytes from L2 per cycle and SM", m->row.l2_rate, 8, 256},
                {"ns of a copy", m->row.latency, 100, 10000},
                {"ns of a launch", m->row.launch, 100, 100000},
                {"ns of a hand-over", m->barrier, 1, 5000},
                {"ns of a block's start", m->block, 1, 20000}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i].value >= rows[i].least && rows[i].value <= rows[i].most) continue;
        Diag *diag = diag_plain(it->diags, P0927,
                                "%s was measured with %d %s, which is not "
                                "plausible",
                                m->device.name, rows[i].value, rows[i].name);
        diag_note(it->diags, diag, "%d to %d are; nothing is saved", rows[i].least, rows[i].most);
        diag_help(it->diags, diag, "end other programs on the GPU, and repeat it");
        return fail(it, PIPEC_UNUSABLE);
    }
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool open_device(PipecCalibration *it) {
    RuntimeLack lack;
    const char *why;
    if (!compile(it, "matrix")) return false;
    const Manifest *manifest = it->program->manifest;
    it->runtime = runtime_open(it->arena, it->options.device - 1, manifest->target,
                               manifest->ptx_major, manifest->ptx_minor, &lack, &why);
    if (it->runtime == NULL) {
        diag_plain(it->diags, P0800, "no GPU can be used: %s", why);
        return fail(it, PIPEC_UNUSABLE);
    }
    it->measured.device = runtime_facts(it->runtime);
    return true;
}

static void show(PipecCalibration *it, const char *file) {
    const Measured *m = &it->measured;
    it->shown =
        (PipecMachine){.device = arena_copy(it->arena, m->device.name, strlen(m->device.name)),
                       .file = file,
                       .multiprocessors = m->row.multiprocessors,
                       .megahertz = m->row.megahertz,
                       .memory_rate = m->row.memory_rate,
                       .l2_rate = m->row.l2_rate,
                       .latency = m->row.latency,
                       .launch = m->row.launch,
                       .barrier = m->barrier,
                       .block = m->block,
                       .l2_bytes = m->device.l2_bytes,
                       .memory_bytes = m->device.memory_bytes};
}

static void calibrate(void *data) {
    PipecCalibration *it = data;
    const char *why = NULL, *file = it->options.output;
    CalibrationTimes times = {0};
    it->diags = diags_new(it->arena, NULL);
    if (it->unsized != NULL)
        size_report(it->diags, "PipecCalibrateOptions", sizeof it->options, it->unsized);
    if (file == NULL) file = machine_file(it->arena, &why);
    if (file == NULL) diag_plain(it->diags, P0927, "the machine cannot be saved: %s", why);
    if (it->diags->errors > 0)
        fail(it, PIPEC_UNUSABLE);
    else if (open_device(it) && measure_times(it, &times)) {
        DeviceFacts device = it->measured.device;
        calibrate_row(&device, &times, &it->measured);
        show(it, NULL);
        if (is_plausible(it) &&
            (machine_store(it->arena, file, &it->measured, it->diags) || fail(it, PIPEC_UNUSABLE)))
            it->shown.file = arena_copy(it->arena, file, strlen(file));
    }
    it->published = diagnostics_publish(it->diags);
}

static void new_calibration(void *data) {
    PipecCalibration **it = data, start = **it;
    *it = NEW(start.arena, PipecCalibration);
    **it = start;
}

PIPEC_API PipecCalibration *pipec_calibrate(const PipecCalibrateOptions *options) {
    PipecCalibration start = {.arena = arena_new(), .published = &no_diagnostics}, *it = &start;
    if (start.arena == NULL) return NULL;
    if (!size_read(&start.options, sizeof start.options, options)) start.unsized = options;
    if (!attempt(start.arena, new_calibration, &it)) {
        arena_free(start.arena);
        return NULL;
    }
    if (!attempt(it->arena, calibrate, it)) {
        it->published = &no_memory;
        it->status = pipec_worse(it->status, PIPEC_UNUSABLE);
    }
    runtime_close(it->runtime);
    pipec_program_free(it->program);
    return it;
}

PIPEC_API void pipec_calibration_free(PipecCalibration *calibration) {
    if (calibration != NULL) arena_free(calibration->arena);
}
PIPEC_API PipecStatus pipec_calibration_status(const PipecCalibration *calibration) {
    return calibration->status;
}
PIPEC_API const PipecDiagnostics *
pipec_calibration_diagnostics(const PipecCalibration *calibration) {
    return calibration->published;
}
PIPEC_API bool pipec_calibration_machine(const PipecCalibration *calibration,
                                         PipecMachine *machine) {
    return calibration->shown.device != NULL &&
           size_write(machine, &calibration->shown, sizeof calibration->shown);
}
