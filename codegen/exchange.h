/* Exchanges between the threads of an instance, for reductions.c, which has these functions, and
 * scans.c: by shuffles between the lanes of a warp, and between warps through the shared memory
 * that derive/reductions/exchange.c lays out. */
#ifndef PIPEC_EXCHANGE_H
#define PIPEC_EXCHANGE_H

#include "codegen/gen.h"

/* ---- one step -------------------------------------------------------------------------------- */

/* The value that does not change the result */
Value reduction_neutral(const Tile *tile);
/* Combines two registers where the guard holds. */
void reduction_add_if(Gen *gen, const Tile *tile, Reg guard, Reg to, Reg term);
/* Registers of the result */
int reduction_registers(const Gen *gen, const Tile *tile);

/* ---- lanes ----------------------------------------------------------------------------------- */

/* The value of another lane; `mode` of shfl.sync: bfly, idx, or up and down, for which lanes
 * without that other lane have their own value */
Reg exchange_shuffle(Gen *gen, Reg value, const char *mode, Operand which);

/* ---- warps ----------------------------------------------------------------------------------- */

/* Values in the memory of an exchange: for each vector of them the parts of all warps and lanes, so
 * that the lanes of a warp access adjacent vectors */
typedef struct Parts {
    const Tile *tile;
    const Reg *values;
    int count, vector; /* values of a thread, and of one access */
    int kept;          /* lanes of a warp with different values */
    int bytes;         /* of a vector */
    Lin lane;          /* among these lanes */
} Parts;

Parts exchange_parts(Gen *gen, const Tile *tile, const Reg *values, int count, Reg lane);
/* The first of the warps that exchange with this one: all digits of the exchange are 0 */
Lin exchange_first(Gen *gen, const Exchange *exchange, Reg warp);
/* Address of a warp's part, for the first vector */
Reg exchange_address(Gen *gen, const Parts *parts, Lin warp);
/* Writes the values of this warp. */
void exchange_write(Gen *gen, const Parts *parts, Reg warp, Reg lane);
/* Loads the vector that begins with value `n`, of number `w` of the warps that exchange; address:
 * of the first of them */
void exchange_read(Gen *gen, const Parts *parts, Reg address, int n, int w, Reg *words);
/* After the reads: the next exchange has the other half of the memory. */
void exchange_end(Gen *gen);

#endif
