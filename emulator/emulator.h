/* emulator: runs the PTX text of a Launch, the same text that the driver gets, without any
 * knowledge of the compiler. Public header of the floor.
 *
 * Results are written to the launch's arrays. Findings (hang, fault, misuse of a barrier, access
 * to unwritten or foreign memory, ...) go to `diags`, with role, pipe, stage and source place
 * from the manifest's names. */
#ifndef PIPEC_EMULATOR_H
#define PIPEC_EMULATOR_H

#include "launch/launch.h"

typedef struct EmulatorOptions {
    /* number of resident blocks of a persistent grid; 0: 4 */
    int resident;
    /* seed of the schedule: which warp runs, when asynchronous work completes; 0: the plain
     * order */
    uint64_t seed;
    /* NULL, or called from time to time with the part of the work that is done, 0 to 1,
     * estimated from the blocks that have ended and the result bytes that were written; false ends
     * the run as RUN_INCOMPLETE */
    bool (*progress)(void *data, double part, uint64_t instructions);
    void *progress_data;
    uint64_t limit; /* warp instructions until the run ends as RUN_INCOMPLETE; 0: none */
} EmulatorOptions;

/* Runs the launch. Results are in its arrays, findings in `diags`; `result` gets blocks,
 * instructions and times. */
RunStatus emulator_run(Arena *arena, const Launch *launch, const EmulatorOptions *options,
                       RunResult *result, Diags *diags);

/* Parses only: true if the emulator can read this PTX (used by fuzzing and tests). */
bool emulator_accepts(Arena *arena, const char *ptx, size_t length, Diags *diags);

#endif
