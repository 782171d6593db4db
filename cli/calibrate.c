/* pipec calibrate: measures a GPU, saves its numbers and prints them. */
#include "cli/cli.h"

static void show_progress(void *data, const char *what) {
    (void)data;
    fprintf(stderr, "\r%s\033[K", what);
    fflush(stderr);
}

static void print(const PipecMachine *m) {
    printf("%s, %d multiprocessors, %lld MiB of L2, %lld MiB of memory\n", m->device,
           m->multiprocessors, (long long)(m->l2_bytes >> 20), (long long)(m->memory_bytes >> 20));
    printf("  %8d MHz under matrix load\n", m->megahertz);
    printf("  %8d GB/s of memory\n", m->memory_rate);
    printf("  %8d bytes from L2 per cycle and multiprocessor\n", m->l2_rate);
    printf("  %8d ns of a copy\n", m->latency);
    printf("  %8d ns of a hand-over between roles\n", m->barrier);
    printf("  %8d ns of a launch\n", m->launch);
    printf("  %8d ns of a block's start\n", m->block);
    if (m->file != NULL) printf("  saved in %s\n", m->file);
    fflush(stdout);
}

static void print_json(const PipecMachine *m, int status) {
    Json json = json_open(NULL, NULL, '{');
    json_integer(&json, "status", status);
    json_text(&json, "device", m->device);
    json_text(&json, "file", m->file);
    json_integer(&json, "multiprocessors", m->multiprocessors);
    json_integer(&json, "l2_bytes", m->l2_bytes);
    json_integer(&json, "memory_bytes", m->memory_bytes);
    json_integer(&json, "megahertz", m->megahertz);
    json_integer(&json, "memory_rate", m->memory_rate);
    json_integer(&json, "l2_rate", m->l2_rate);
    json_integer(&json, "latency", m->latency);
    json_integer(&json, "barrier", m->barrier);
    json_integer(&json, "launch", m->launch);
    json_integer(&json, "block", m->block);
    json_close(&json);
    putchar('\n');
    fflush(stdout);
}

static int calibrate(const PipecCalibrateOptions *options, Format format) {
    PipecMachine machine = {.size = sizeof machine};
    PipecCalibration *calibration = pipec_calibrate(options);
    if (calibration == NULL) return out_of_memory();
    if (output_terminal()) fputs("\r\033[K", stderr);
    int status = (int)pipec_calibration_status(calibration);
    bool measured = pipec_calibration_machine(calibration, &machine);
    if (format == FORMAT_JSON)
        print_json(&machine, status);
    else if (measured)
        print(&machine);
    const PipecDiagnostics *said = pipec_calibration_diagnostics(calibration);
    if (pipec_diagnostics_count(said) > 0) say_diagnostics(said, format);
    pipec_calibration_free(calibration);
    return status;
}

int command_calibrate(const Command *command, int argc, char **argv) {
    PipecCalibrateOptions given = {.size = sizeof given,
                                   .progress = output_terminal() ? show_progress : NULL};
    Texts words = {0};
    Format format = FORMAT_TEXT;
    int device = -1, status = PIPEC_UNUSABLE;
    const Option options[] = {{"--device", OPTION_NUMBER, &device},
                              {"--output", OPTION_TEXT, &given.output},
                              {"--format", OPTION_FORMAT, &format}};
    switch (
        options_parse(command, argc, argv, options, sizeof options / sizeof options[0], &words)) {
    case PARSED_FINE:
        given.device = device + 1;
        if (words.count == 0)
            status = calibrate(&given, format);
        else
            usage_error(command, "`%s`: calibrate takes no file", words.items[0]);
        break;
    case PARSED_HELP: status = PIPEC_FINE; break;
    case PARSED_WRONG: break;
    }
    texts_free(&words);
    return status;
}
