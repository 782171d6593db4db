/* derive: facts that follow from the program: classes of copies, boxes, layouts, matrix shapes,
 * warps, registers, barriers, counts and the map of shared memory. Public header of the floor. */
#ifndef PIPEC_DERIVE_H
#define PIPEC_DERIVE_H

#include "prog/prog.h"

typedef struct Tiles Tiles;

/* Needs Code; adds preconditions so that formulas of extents and scalars fit their types, and so
 * that those which are divisors are not 0. Must run before all passes that form polynomials,
 * because earlier polynomials do not use these preconditions. */
void widths_require(Arena *arena, Prog *prog);

/* Needs elaborate; sets index extents, affine subscripts, classes, boxes, maps, layouts, pipe
 * uses, preconditions */
Tiles *tiles_check(Arena *arena, Prog *prog, Diags *diags);

/* Needs classes and pipe uses; sets warps, lanes, registers, barriers, counts and the
 * shared-memory map */
void resources_check(Arena *arena, Prog *prog, Diags *diags);

#endif
