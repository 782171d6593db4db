/* Fuzzes launch files: any bytes are read or refused with one error, and what is read runs for a
 * while. The length of the text selects the schedule. */
#include "emulator/workload/workload.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

#define FOLDER "tests/emulator/programs/"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    Arena *arena = arena_new();
    Diags *diags = diags_new(arena, NULL);
    RunStatus status;
    Workload *workload =
        workload_from_text(arena, (const char *)data, size, FOLDER, 1 << 20, &status, diags);
    if ((workload == NULL) != (diags->errors == 1) || (workload == NULL) == (status == RUN_DONE))
        abort();
    if (workload != NULL) {
        WorkloadOptions options = {
            .emulator = {.seed = size % 4, .limit = 20000, .blocks = 40, .resident = 8},
            .schedules = 1 + (int)(size % 2)};
        RunResult result;
        status = workload_run(workload, &options, &result, diags);
        if ((status == RUN_DONE) != (diags->errors == 0)) abort();
    }
    workload_free(workload);
    arena_free(arena);
    return 0;
}
