/* resources: private to check/resources*.c: what a block of the machine has, and who takes it.
 *   resources.c         order: lanes, barriers, arrivals, then the parts below
 *   resources_warps.c   warps of the roles, registers
 *   resources_memory.c  the map of shared memory */
#ifndef PIPEC_RESOURCES_H
#define PIPEC_RESOURCES_H

#include "check/walk.h"

#define WARP_LANES 32
#define WARPGROUP_WARPS 4
#define WARPGROUP_LANES 128

#define MAX_GROUPS 64      /* more than any block has */

typedef struct Groups {
    int used[MAX_GROUPS];  /* warps taken of each warpgroup */
    int regs[MAX_GROUPS];  /* as stated by a role in it, 0: none */
    int count;
} Groups;

typedef struct Resources {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    Groups groups;
} Resources;

void resources_warps(Resources *res);     /* needs roles; leaves first_warp and prog->warps */
void resources_registers(Resources *res); /* needs first_warp; leaves registers */
void resources_memory(Resources *res);    /* needs layouts; leaves offsets, strides, prog->shared_bytes */

#endif
