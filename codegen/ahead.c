/* Reads that the plan places before a wait (derive/waits/plan_ahead.c): evaluated at the elements
 * that the plan names, and known at all elements of the statement. */
#include "codegen/gen.h"

struct Early {
    Gen *gen;
    const Ahead *ahead;
    Value **values; /* by read and element */
};

const Ahead *ahead_of(const Gen *gen, int at) {
    return waits_in_flight(gen, at) ? gen->role->rows->ahead[at] : NULL;
}

Early *ahead_read(Gen *gen, const Ahead *ahead, Point **points, size_t count) {
    Early *early = NEW(gen->arena, Early);
    *early = (Early){gen, ahead, NEW_ARRAY(gen->arena, Value *, ahead->reads.count + 1)};
    for (size_t i = 0; i < ahead->reads.count; i++) {
        const AheadRead *read = &ahead->reads.items[i];
        early->values[i] = NEW_ARRAY(gen->arena, Value, count);
        for (size_t p = 0; p < count; p++)
            if (read->first[p] == (int)p) early->values[i][p] = eval(gen, points[p], read->expr);
    }
    return early;
}

void ahead_know(const Early *early, Point *point, int64_t element) {
    for (size_t i = 0; i < early->ahead->reads.count; i++) {
        const AheadRead *read = &early->ahead->reads.items[i];
        Point *home = point_home(point, read->expr);
        Value value;
        if (!point_knows(home, read->expr, &value))
            point_know(early->gen, home, read->expr, early->values[i][read->first[element]]);
    }
}
