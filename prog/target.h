/* target: the GPUs that kernels are compiled for, their limits and capabilities. */
#ifndef PIPEC_TARGET_H
#define PIPEC_TARGET_H

#include "util/util.h"

typedef struct Prog Prog;

typedef struct Target Target; /* prog/targets.def: a row of limits and capabilities */

/* prog/capabilities.def: features that only some targets have */
typedef enum Capability {
#define CAPABILITY(name, what) CAP_##name,
#include "prog/capabilities.def"
#undef CAPABILITY
    CAP_COUNT
} Capability;

struct Target {
    const char *name;         /* "sm_90a" */
    int ptx_major, ptx_minor; /* the .version to emit */
    uint32_t shared_limit;    /* most bytes of shared memory per block */
    int threads_limit, registers_pool, registers_max;
    int named_barriers;
    int box_limit; /* most elements of a box along an axis */
    /* most blocks of a cluster without special permission */
    int cluster_limit;
    int parameter_limit; /* most bytes of launch parameters */
    /* limits of an SM over all blocks: bytes of shared memory, threads, blocks */
    int sm_shared, sm_threads, sm_blocks;
    bool has[CAP_COUNT];
};
extern const Target target_rows[];
extern const size_t target_count;
const Target *target_by_name(const char *name); /* NULL: there is none */
const Target *target_default(void);             /* sm_90a: stands for one that is not known */
const char *targets_known(Arena *arena);        /* all of them, as below */
/* "`sm_90` and `sm_90a`": the targets for which wanted(target, what) is true */
const char *targets_listed(Arena *arena, bool (*wanted)(const Target *, int what), int what);
/* Reports that the target lacks a capability, with the targets that have it. Once per kernel:
 * otherwise NULL. */
Diag *target_lacks(Arena *arena, Diags *diags, Prog *prog, Capability capability, Span span);

#endif
