/* emulator: runs PTX text, the same text that the driver gets, without any knowledge of the
 * compiler. Public header of the floor.
 *
 * emulator_run takes a Launch, which a Manifest describes. emulator_run_work takes launches of any
 * PTX: for each kernel its grid, block, cluster, dynamic shared memory and the bytes of its
 * parameters; regions of global memory that all kernels share; tensor maps as 128 bytes, in a
 * parameter, inside of a structure or in memory:
 *
 *   emulator_read          the text and the name of an entry -> EmulatorKernel
 *   emulator_place         gives the regions their addresses
 *   emulator_encode_map    the fields of a tensor map -> its 128 bytes
 *   emulator_run_work      runs the launches one after the other
 *
 * Results are written to the regions, or the launch's arrays. Findings (hang, fault, misuse of a
 * barrier, access to unwritten or foreign memory, ...) go to `diags`, with role, pipe, stage and
 * source place if there is a manifest with names. */
#ifndef PIPEC_EMULATOR_H
#define PIPEC_EMULATOR_H

#include "launch/launch.h"

typedef struct EmulatorSuppressions EmulatorSuppressions;

/* RACES_DEFAULT: as if on */
typedef enum Races { RACES_DEFAULT, RACES_ON, RACES_OFF } Races;

typedef struct EmulatorOptions {
    /* number of resident blocks of a persistent grid, and of blocks that may wait for others;
     * 0: 4 */
    int resident;
    /* seed of the schedule: which warp runs, when asynchronous work completes; 0: the plain
     * order */
    uint64_t seed;
    /* NULL, or called from time to time with the part of the work that is done, 0 to 1,
     * estimated from the blocks that have ended, before the first from the result bytes that were
     * written; false ends the run as RUN_INCOMPLETE */
    bool (*progress)(void *data, double part, uint64_t instructions);
    void *progress_data;
    Races races; /* whether to look for races between accesses to memory */
    /* The run ends as RUN_INCOMPLETE (P0760) after as many warp instructions, before more blocks
     * begin than these, after these seconds; 0: no limit */
    uint64_t limit, blocks;
    double seconds;
    EmulatorSuppressions *suppressions; /* findings that are not reported; NULL: none */
} EmulatorOptions;

/* Runs the launch. Results are in its arrays, findings in `diags`; `result` gets blocks,
 * instructions and times. */
RunStatus emulator_run(Arena *arena, const Launch *launch, const EmulatorOptions *options,
                       RunResult *result, Diags *diags);

/* Reads a suppression file (docs/emulator.md). NULL: it is malformed (P0765). */
EmulatorSuppressions *emulator_suppressions(Arena *arena, const char *file, const char *text,
                                            size_t length, Diags *diags);
/* P0766 for each that has matched no finding in the runs so far */
void emulator_suppressions_unused(const EmulatorSuppressions *all, Diags *diags);

/* Parses only: true if the emulator can read this PTX (used by fuzzing and tests). */
bool emulator_accepts(Arena *arena, const char *ptx, size_t length, Diags *diags);

/* ---- kernels --------------------------------------------------------------------------------- */

/* A parameter of an entry, in the order of the text */
typedef struct EmulatorParameter {
    const char *name;
    const char *type; /* ".u64"; ".b8" for a structure or a tensor map */
    /* of its value, in bytes; offset in EmulatorLaunch.parameters */
    uint32_t offset, bytes, alignment;
} EmulatorParameter;

struct Program;
typedef struct EmulatorKernel {
    const char *name;
    const EmulatorParameter *parameters;
    size_t parameter_count;
    uint32_t parameter_bytes;   /* of all parameters, with the gaps between them */
    uint32_t required_block[3]; /* .reqntid; 0, 0, 0: absent */
    uint32_t most_threads;      /* of a block, .maxntid; 0: absent */
    uint32_t cluster[3];        /* .reqnctapercluster; 0, 0, 0: absent */
    uint32_t shared_bytes;      /* static shared memory */
    const struct Program *program;
} EmulatorKernel;

/* The entries of a text, without their bodies: `program` is NULL. */
RunStatus emulator_list(Arena *arena, const char *ptx, size_t length, EmulatorKernel **out,
                        size_t *count, Diags *diags);

/* Reads the entry of this name; NULL: the first one. RUN_REJECTED: the text is not PTX or has no
 * such entry (P0700, P0702); RUN_INCOMPLETE: it uses what is not modelled (P0701), named with its
 * line. The text must outlive the kernel; kernels of one text share the variables of its module. */
RunStatus emulator_read(Arena *arena, const char *ptx, size_t length, const char *entry,
                        EmulatorKernel *out, Diags *diags);

/* ---- launches -------------------------------------------------------------------------------- */

/* A region of global memory. Unused addresses lie between the regions. */
typedef struct EmulatorRegion {
    uint64_t base; /* its address, from emulator_place */
    uint64_t bytes;
    unsigned char *data;
    bool read_only;   /* writing is a finding */
    bool unread;      /* nothing depends on its bytes: writes need no order */
    uint32_t shift;   /* bytes from a page boundary to its base */
    const char *name; /* in findings */
    /* For names of its elements: extents of its axes, and the bytes from one index of an axis to
     * the next; rank 0: unknown */
    uint32_t rank, element_bytes;
    int64_t extents[MAX_RANK], strides[MAX_RANK];
} EmulatorRegion;

/* Sets the shape of a region; strides in elements, NULL: its elements are adjacent. Shapes of more
 * than MAX_RANK axes are not kept. */
void emulator_shape(EmulatorRegion *region, uint32_t element_bytes, int rank,
                    const int64_t *extents, const int64_t *strides);

/* Sets `base` of each region */
void emulator_place(EmulatorRegion *regions, size_t count);

#define EMULATOR_WORKSPACE_BYTES 64
/* Blocks of a cooperative launch: 32 on each multiprocessor of an H200 */
#define EMULATOR_COOPERATIVE_MOST 4224

typedef struct EmulatorLaunch {
    const EmulatorKernel *kernel;
    uint32_t grid[3];  /* blocks along x, y, z: multiples of the cluster */
    uint32_t block[3]; /* threads along x, y, z */
    /* blocks along x, y, z; 0, 0, 0: what the kernel requires, otherwise 1, 1, 1 */
    uint32_t cluster[3];
    uint32_t shared_bytes;           /* dynamic shared memory */
    const unsigned char *parameters; /* kernel->parameter_bytes bytes */
    /* may begin before the launch before it has ended: programmatic dependent launch */
    bool programmatic;
    /* A cooperative launch, whose blocks run at the same time and may wait for each other: address
     * of EMULATOR_WORKSPACE_BYTES bytes, zero before it, in %envreg1 and %envreg2; 0: none */
    uint64_t workspace;
} EmulatorLaunch;

/* Checks that the launch fits its kernel and the hardware; otherwise reports P0702. */
bool emulator_check(const EmulatorLaunch *launch, Diags *diags);

typedef struct EmulatorWork {
    const EmulatorRegion *regions;
    size_t region_count;
    const EmulatorLaunch *launches;
    size_t launch_count;
    const Manifest *names; /* names for findings; NULL: none */
} EmulatorWork;

/* Runs the launches one after the other. RUN_REJECTED: a launch does not fit its kernel (P0702).
 * `result` has the sums of all launches. */
RunStatus emulator_run_work(Arena *arena, const EmulatorWork *work, const EmulatorOptions *options,
                            RunResult *result, Diags *diags);

/* ---- tensor maps ----------------------------------------------------------------------------- */

#define EMULATOR_MAP_BYTES 128
/* Alignment that the address of a tensor map needs */
#define EMULATOR_MAP_ALIGNMENT 64

/* The fields of a tiled tensor map, innermost dimension first, as cuTensorMapEncodeTiled takes
 * them; element strides are 1, elements outside the tensor are 0, without interleaving. */
typedef struct EmulatorMap {
    uint32_t type; /* CUtensorMapDataType's value */
    uint32_t rank; /* 1 .. 5 */
    uint64_t address;
    uint64_t extents[MAX_RANK]; /* in elements */
    uint64_t strides[MAX_RANK]; /* in bytes, of dimensions 1 ..; [0] is unused */
    uint32_t box[MAX_RANK];     /* in elements */
    Swizzle swizzle;
} EmulatorMap;

/* Bytes of an element of a CUtensorMapDataType; 0: there is no such type */
uint32_t emulator_map_element(uint32_t type);

/* The driver's encoding is not public, so a map has an own one, which the emulator knows wherever
 * it finds it. RUN_REJECTED: the driver would refuse these fields (P0703); RUN_INCOMPLETE: not
 * modelled. `name` is for the message. */
RunStatus emulator_encode_map(const EmulatorMap *map, const char *name,
                              unsigned char out[EMULATOR_MAP_BYTES], Diags *diags);

#endif
