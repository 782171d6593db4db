/* emulator: does the PTX really do it. The door of the floor.
 *
 * Executes the PTX text of a Launch, the same text that the driver gets, and knows nothing of the compiler. Results go into
 * the launch's arrays. What it finds (hang, fault, misuse of a barrier, access to unwritten or foreign memory, ...) goes to
 * `diags` with role, pipe, stage and source place from the manifest's names. */
#ifndef PIPEC_EMULATOR_H
#define PIPEC_EMULATOR_H

#include "launch/launch.h"

typedef struct EmulatorOptions {
    int resident;   /* blocks that count as resident for a persistent grid; 0: 4 */
    uint64_t seed;  /* of the schedule: which warp runs, when asynchronous work completes; 0: the plain order */
    /* Called now and then: `part` of the work is done, 0 to 1, as far as the blocks that have ended and the bytes of results
     * that were written tell; NULL: nobody asks */
    void (*progress)(void *data, double part, uint64_t instructions);
    void *progress_data;
    uint64_t limit; /* warp instructions after which the run is given up as RUN_INCOMPLETE; 0: none */
} EmulatorOptions;

RunStatus emulator_run(Arena *arena, const Launch *launch, const EmulatorOptions *options, RunResult *result,
                       Diags *diags);

/* Parses only: is this PTX that the emulator can read? (fuzzing, tests) */
bool emulator_accepts(Arena *arena, const char *ptx, size_t length, Diags *diags);

#endif
