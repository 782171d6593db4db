/* derive: what follows from the program: classes of copies, boxes, layouts, matrix shapes, warps, registers, barriers, counts and the map
 * of shared memory. The door of the floor. */
#ifndef PIPEC_DERIVE_H
#define PIPEC_DERIVE_H

#include "prog/prog.h"

typedef struct Tiles Tiles;

/* needs Code; leaves preconditions so that formulas of extents and scalars fit their types. First of all passes that form polynomials: what was
 * formed before does not know of them. */
void widths_require(Arena *arena, Prog *prog);

/* needs elaborated; leaves index extents, affine subscripts, classes, boxes, maps, layouts, pipe uses, preconditions */
Tiles *tiles_check(Arena *arena, Prog *prog, Diags *diags);

/* needs classes and pipe uses; leaves warps, lanes, registers, barriers, counts and the shared-memory map */
void resources_check(Arena *arena, Prog *prog, Diags *diags);

#endif
