/* resources: the resources of a block, and their users.
 *   resources.c            order: lanes, barriers, arrivals, then the files below
 *   resources_warps.c      warps of the roles
 *   resources_registers.c  registers of their threads
 *   resources_memory.c     the map of shared memory
 *   resources_launch.c     parameters, and their bytes */
#ifndef PIPEC_RESOURCES_H
#define PIPEC_RESOURCES_H

#include "derive/derive.h"
#include "derive/plan.h"
#include "flow/code.h"

#define WARP_LANES      32
#define WARPGROUP_WARPS 4
#define WARPGROUP_LANES 128

#define MAX_GROUPS 64 /* more than any block has */

typedef struct Groups {
    int used[MAX_GROUPS]; /* warps used in each warpgroup */
    int regs[MAX_GROUPS]; /* stated by a role in it, or derived; 0: none */
    int count;
} Groups;

typedef struct Resources {
    Arena *arena;
    Prog *prog;
    Plan *plan;
    Diags *diags;
    Groups groups;
} Resources;

/* True if warpgroups get different registers: stated by a role, or needed for accumulators. Then
 * a block has whole warpgroups. */
bool hands_out_registers(const Prog *prog);
/* registers per thread over all tiles that are held as accumulators */
int accumulator_registers(const Prog *prog, const Role *role);

/* counts the registers of tiles; needs their layouts */
void resources_tiles(const Prog *prog, const Role *role);
void resources_warps(Resources *res);     /* needs roles; sets first_warp and plan->warps */
void resources_registers(Resources *res); /* needs first_warp; sets registers */
/* needs layouts; sets offsets, strides, plan->shared_bytes */
void resources_memory(Resources *res);

void resources_launch(Resources *res); /* needs tensor maps */

#endif
