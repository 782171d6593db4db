/* workload: launches of any PTX, described by words or by a launch file: reads PTX, arrays and
 * tensor maps, and makes what emulator_run_work takes; compares schedules; writes the results.
 * Public header of the floor. docs/emulator.md, "Any PTX", describes words and files.
 *
 * An argument is one of these words:
 *   i32:7  u64:0x10  f32:2.5  ..     a number of this type
 *   in:a.npy                         the address of an array: read only
 *   inout:a.npy  inout:a.npy:b.npy   the same, written back to the file, or to b.npy
 *   out:c.npy:f32[128,256]           a new array without values, written to the file
 *   zeros:f32[64]                    a new array of zeros that is not written to a file
 *   array:NAME  array:NAME+64        an array again: of a launch file by its name, otherwise that
 * of an earlier argument by its number from 0; 64 bytes behind its begin map:m.json  struct:s.json
 * a tensor map, a structure raw:FILE                         the bytes of a file */
#ifndef PIPEC_WORKLOAD_H
#define PIPEC_WORKLOAD_H

#include "emulator/emulator.h"

typedef struct Workload Workload;

/* One launch by words */
typedef struct WorkloadWords {
    const char *ptx; /* file, "-": standard input */
    /* NULL: the only one of the text */
    const char *entry;
    /* "X", "X,Y" or "X,Y,Z". block NULL: what the kernel requires; cluster NULL: the same, or none
     */
    const char *grid, *block, *cluster;
    uint32_t shared_bytes; /* dynamic */
    const char *const *arguments;
    size_t argument_count;
    bool cooperative; /* its blocks may wait for each other */
} WorkloadWords;

typedef struct WorkloadOptions {
    EmulatorOptions emulator; /* its seed is that of the first schedule */
    int schedules;            /* number of schedules, each from the same data; 0: 1 */
} WorkloadOptions;

/* NULL: an error was reported. *status: RUN_UNAVAILABLE if the description or a file is wrong,
 * RUN_REJECTED if the text is not PTX or does not fit, RUN_INCOMPLETE if something is not modelled.
 * Arrays are allocated outside of the arena, see workload_free. */
Workload *workload_from_words(Arena *arena, const WorkloadWords *words, RunStatus *status,
                              Diags *diags);
Workload *workload_from_file(Arena *arena, const char *path, RunStatus *status, Diags *diags);
/* The same from the text of a launch file; paths in it are relative to `folder`: "" or "a/b/". The
 * new arrays have at most `memory_most` bytes; 0: as many as the machine has. */
Workload *workload_from_text(Arena *arena, const char *text, size_t length, const char *folder,
                             uint64_t memory_most, RunStatus *status, Diags *diags);
void workload_free(Workload *workload); /* NULL is allowed */

/* Runs all launches on each schedule; ends with the first finding, or with a result that differs
 * from that of the first schedule (P0852). */
RunStatus workload_run(Workload *workload, const WorkloadOptions *options, RunResult *result,
                       Diags *diags);
size_t workload_launches(const Workload *workload);
/* The text of the launches, for places of findings; NULL: there are several */
const Source *workload_source(const Workload *workload);
/* The array of this index, in the order of the description, for tests; NULL after the last */
const NpyData *workload_array(const Workload *workload, size_t index);
/* Writes the arrays that have a file for their result. */
bool workload_save(const Workload *workload, Diags *diags);

#endif
