/* launch: evaluates a tensor map's formulas with the symbols' values to the extents and strides
 * to encode. Decides what is encoded for a tensor without elements, for the emulator and for the
 * driver. */
#include "launch/manifest.h"

#define SECTOR 32 /* bytes of memory that L2 fetches at least */

FormulaFault map_evaluate(const ManifestMap *map, const int64_t *symbols, MapShape *out) {
    *out = (MapShape){.is_empty = false, .promotion = map->promotion};
    for (int axis = 0; axis < map->rank; axis++) {
        int64_t extent, stride = element_rows[map->type].bytes;
        FormulaFault fault = formula_eval(&map->extents[axis], symbols, &extent);
        if (fault == FORMULA_FINE && axis > 0)
            fault = formula_eval(&map->strides[axis], symbols, &stride);
        if (fault != FORMULA_FINE) return fault;
        if (extent < 0 || stride < 0) return FORMULA_OVERFLOW;
        out->extents[axis] = (uint64_t)extent;
        out->strides[axis] = (uint64_t)stride;
        out->is_empty = out->is_empty || extent == 0;
        /* rows that begin within a sector: 256 bytes at once measured slower */
        if (axis > 0 && stride % SECTOR != 0 && map->promotion == PROMOTION_256)
            out->promotion = PROMOTION_128;
    }
    for (int axis = 0; out->is_empty && axis < map->rank; axis++) {
        out->extents[axis] = 1;
        if (axis > 0) out->strides[axis] = EMPTY_BYTES;
    }
    return FORMULA_FINE;
}
