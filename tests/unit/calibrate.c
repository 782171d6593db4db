/* Calibration on the stand-in driver, whose times the test sets: the numbers that follow from them,
 * the file that they are written to, which rows predictions then use, and what is refused. */
#include "lib/calibrate.h"

#include "tests/unit/standin.h"

#include <sys/stat.h>

static char folder[] = "/tmp/pipec-calibrate-XXXXXX";
static Standin *standin;

/* Of a device with 4 SMs and 1 MiB of L2: 1500 MHz, 3000 GB/s, 48 bytes per cycle and SM, 800 ns of
 * a copy, 100 ns of a hand-over, 2000 ns of a launch, 500 ns of a block */
static CalibrationTimes known(void) {
    return (CalibrationTimes){.matrix = 8.0 * 4000 * 1024 / 1.5e9 + 2e-6,
                              .memory = 8.0 * (1 << 27) / 3e12,
                              .again = 64.0 * (1 << 18) / (48 * 4 * 1.5e9),
                              .latency = 20000 * 900e-9,
                              .barrier = 200000 * 200e-9,
                              .launch = 2e-6,
                              .blocks = 64 * 500e-9 + 2e-6};
}

static void arithmetic(void) {
    DeviceFacts device = {"Stand-in", 4, 1 << 20, INT64_C(1) << 46};
    CalibrationTimes times = known();
    Measured m;
    calibrate_row(&device, &times, &m);
    EXPECT(m.row.megahertz == 1500 && m.row.memory_rate == 3000 && m.row.l2_rate == 48);
    EXPECT(m.row.latency == 800 && m.barrier == 100 && m.row.launch == 2000 && m.block == 500);
    EXPECT(m.row.multiprocessors == 4 && m.row.l2_size == 1 && m.row.calibrated);
    times = (CalibrationTimes){0};
    calibrate_row(&device, &times, &m);
    EXPECT(m.row.megahertz == 0 && m.row.memory_rate == 0 && m.row.latency == 0);
}

static double slower; /* times all that was known */

/* Which kernel was launched: by its block, its grid and its shared memory */
static void set_time(void **parameters, unsigned blocks) {
    CalibrationTimes t = known();
    (void)parameters;
    double seconds = standin->block > 64              ? t.matrix
                     : standin->block == 32           ? (blocks == 1 ? t.launch : t.blocks)
                     : standin->shared_bytes > 150000 ? t.again
                     : standin->shared_bytes > 50000  ? t.memory
                     : standin->shared_bytes > 800    ? t.latency
                                                      : t.barrier;
    bool burst = standin->block == 32 || standin->shared_bytes > 50000;
    double launches = standin->block > 64 || !burst         ? 1
                      : standin->block == 32 && blocks == 1 ? 1000
                                                            : 4;
    standin->milliseconds = (float)(seconds * launches * 1e3 * slower);
}

static PipecCalibration *run(const char *output) {
    PipecCalibrateOptions options = {.size = sizeof options, .output = output, .quick = true};
    PipecCalibration *done = pipec_calibrate(&options);
    EXPECT(done != NULL);
    return done;
}

static bool says(const PipecCalibration *done, const char *text) {
    return strstr(pipec_diagnostics_text(pipec_calibration_diagnostics(done)), text) != NULL;
}

static void measured(Arena *arena) {
    PipecMachine machine = {.size = sizeof machine};
    const char *why, *file = machine_file(arena, &why);
    Diags *diags = diags_new(arena, NULL);
    slower = 1;
    for (int round = 0; round < 2; round++) { /* the second replaces the row */
        PipecCalibration *done = run(NULL);
        if (!EXPECT(pipec_calibration_status(done) == PIPEC_FINE))
            fputs(pipec_diagnostics_text(pipec_calibration_diagnostics(done)), stderr);
        EXPECT(pipec_calibration_machine(done, &machine) && strcmp(machine.file, file) == 0);
        EXPECT(machine.megahertz == 1500 && machine.memory_rate == 3000 && machine.l2_rate == 48);
        EXPECT(machine.latency == 800 && machine.launch == 2000 && machine.block == 500);
        pipec_calibration_free(done);
    }
    DeviceFacts device = {"Stand-in", 4, 1 << 20, INT64_C(1) << 46}, part = device;
    MachineRow row = machine_for(arena, &device, diags);
    EXPECT(row.calibrated && strcmp(row.name, "Stand-in") == 0);
    /* as an H100 of other rates would have it: 1632 MHz, 2846 GB/s, .. of it belong to its row */
    const MachineRow *h100 = machine_by_name("h100");
    EXPECT(row.megahertz == (h100->megahertz * 1500 + 816) / 1632);
    EXPECT(row.memory_rate == (h100->memory_rate * 3000 + 1423) / 2846);
    const MachineRow *named = machine_named(arena, "Stand-in", diags);
    EXPECT(named != NULL && named->memory_rate == row.memory_rate);
    EXPECT(diags->items.count == 0);
    part.multiprocessors = 2; /* a part of the GPU is another device */
    row = machine_for(arena, &part, diags);
    EXPECT(!row.calibrated && row.megahertz == machine_by_name("h200")->megahertz &&
           row.multiprocessors == 2);
    size_t length;
    const char *text = file_text(arena, file, &length, diags), *first = strstr(text, "Stand-in");
    EXPECT(first != NULL && strstr(first + 1, "Stand-in") == NULL);
    EXPECT(standin_is_clean(standin));
}

/* On a launch: the row of the user's file predicts */
static void predicted(void) {
    static const char text[] =
        "kernel same(inout Y: f32[N]) for sm_90a {\n"
        "    static T = 256 in {128, 256};\n"
        "    example N = 1000000;\n"
        "    grid (t: ceil(N, T));\n"
        "    role r: 1 warp { for t in grid { Y[t*T + i] = Y[t*T + i] for i in 0 .. T; } }\n"
        "}\n";
    PipecOptions plain = {.size = sizeof plain, .launch_values = true};
    PipecProgram *program = pipec_compile(text, strlen(text), &plain);
    PipecChooseOptions how = {.size = sizeof how};
    PipecChoice choice = {.size = sizeof choice};
    pipec_program_free(pipec_program_chosen(program, NULL, &how, &choice));
    EXPECT(choice.machine != NULL && strcmp(choice.machine, "Stand-in") == 0 && choice.calibrated);
    how.machine = "h100";
    pipec_program_free(pipec_program_chosen(program, NULL, &how, &choice));
    EXPECT(strcmp(choice.machine, "h100") == 0 && choice.calibrated);
    pipec_program_free(program);
}

static void refused(Arena *arena) {
    PipecMachine machine = {.size = sizeof machine};
    const char *why, *file = machine_file(arena, &why);
    Diags *diags = diags_new(arena, NULL);
    slower = 100; /* no GPU has 15 MHz */
    PipecCalibration *done = run(NULL);
    EXPECT(pipec_calibration_status(done) == PIPEC_UNUSABLE && says(done, "15 MHz"));
    EXPECT(pipec_calibration_machine(done, &machine) && machine.file == NULL);
    pipec_calibration_free(done);
    EXPECT(machine_named(arena, "Stand-in", diags)->megahertz ==
           (machine_by_name("h100")->megahertz * 1500 + 816) / 1632); /* the old one stays */
    slower = 1;
    done = run(arena_printf(arena, "%s/x", file));
    EXPECT(pipec_calibration_status(done) == PIPEC_UNUSABLE && says(done, "cannot save"));
    pipec_calibration_free(done);
    FILE *out = fopen(file, "w");
    fputs("{\"mine\": 1}", out);
    fclose(out);
    DeviceFacts device = {"Stand-in", 4, 1 << 20, INT64_C(1) << 46};
    EXPECT(machine_for(arena, &device, diags).megahertz == machine_by_name("h200")->megahertz);
    EXPECT(diags->items.count == 1 && diags->items.items[0]->code == P0926);
    done = run(NULL);
    EXPECT(says(done, "not overwritten"));
    pipec_calibration_free(done);
    standin_says("devices=0");
    done = run(NULL);
    EXPECT(pipec_calibration_status(done) == PIPEC_UNUSABLE && says(done, "P0800"));
    EXPECT(!pipec_calibration_machine(done, &machine));
    pipec_calibration_free(done);
    standin_says("");
    for (const char *const *call =
             (const char *const[]){"cuMemAlloc_v2", "cuLaunchKernelEx", "cuEventElapsedTime",
                                   "cuEventCreate", NULL};
         *call != NULL; call++) {
        standin_says(arena_printf(arena, "fail=%s", *call));
        done = run(NULL);
        EXPECT(pipec_calibration_status(done) != PIPEC_FINE && standin_is_clean(standin));
        pipec_calibration_free(done);
    }
    standin_says("");
    pipec_calibration_free(NULL);
}

int main(void) {
    Arena *arena = arena_new();
    standin = standin_open();
    if (!EXPECT(mkdtemp(folder) != NULL)) return 1;
    setenv("PIPEC_CACHE", folder, 1);
    standin->kernel = set_time;
    arithmetic();
    measured(arena);
    predicted();
    refused(arena);
    if (system(arena_printf(arena, "rm -r %s", folder)) != 0) perror(folder);
    arena_free(arena);
    return expect_failures();
}
