/* order: what an instance waits for before it accesses elements again, and which of its threads
 * accesses which element.
 *   order/threads.c  how the elements of a statement are distributed over the threads */
#ifndef PIPEC_DERIVE_ORDER_H
#define PIPEC_DERIVE_ORDER_H

#include "derive/tiles.h"

/* ---- threads.c ------------------------------------------------------------------------------- */

/* True if `vector` elements along index `inner` of an access to a stage or `shared` tile, from a
 * multiple of it, are adjacent in memory, and aligned */
bool access_adjacent(const Prog *prog, const Role *role, const Access *access, int inner,
                     int vector);
/* Of a classified statement of threads or lanes */
Distribution distribution_of(Arena *arena, const Prog *prog, const Role *role, const Tile *tile);
/* True if both accesses, one of each statement, give each element to the same thread, where the
 * bases of their subscripts are equal */
bool distribution_same(const Site *one, const Access *a, const Site *two, const Access *b);

#endif
