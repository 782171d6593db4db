/* The spread of one class: those of accumulators, and blocked */
#include "derive/threads/spread.h"

Digit spread_in_thread(int place, int64_t extent, int64_t stride) {
    return (Digit){true, place, extent, stride};
}

Digit spread_in_register(int place, int64_t extent, int64_t stride) {
    return (Digit){false, place, extent, stride};
}

Spread spread_pattern(SpreadKind kind) {
    Spread out = {.kind = kind, .granule = 1};
    switch (kind) {
    case SPREAD_ROWS:
        out.digits[out.count++] = spread_in_thread(4, 8, 1);
        out.digits[out.count++] = spread_in_register(1, 2, 8);
        out.digits[out.count++] = spread_in_thread(32, 4, 16);
        out.granule = TILES_SLAB_ROWS;
        break;
    case SPREAD_COLUMNS:
        out.digits[out.count++] = spread_in_register(0, 2, 1);
        out.digits[out.count++] = spread_in_thread(1, 4, 2);
        out.granule = 8;
        break;
    case SPREAD_EVERY:
    case SPREAD_BLOCKED: break;
    }
    return out;
}

Spread spread_whole(const Spread *pattern, int axis, int64_t extent) {
    static const int places[] = {
        [SPREAD_ROWS] = 3, [SPREAD_COLUMNS] = 2, [SPREAD_EVERY] = 4, [SPREAD_BLOCKED] = 2};
    Spread out = *pattern;
    int place = extent % out.granule != 0 ? 5 : places[out.kind]; /* a partial round comes last */
    if (out.members <= 1) out.members = 1, out.axes[0] = axis;
    out.extent = extent;
    out.digits[out.count++] =
        spread_in_register(place, (extent + out.granule - 1) / out.granule, out.granule);
    return out;
}

Spread spread_blocked(int64_t unit, int64_t vector, Digit *room) {
    Spread out = spread_pattern(SPREAD_BLOCKED);
    int64_t along = common_divisor(unit / vector, room->extent);
    if (vector > 1) out.digits[out.count++] = spread_in_register(0, vector, 1);
    if (along > 1) out.digits[out.count++] = spread_in_thread(room->place, along, vector);
    out.granule = vector * along;
    room->place *= (int)along, room->extent /= along;
    return out;
}
