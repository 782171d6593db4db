/* Vectors of register tiles: adjacent elements of a thread along the innermost class */
#include "derive/threads/spread.h"

#define VECTOR_PLAIN 4 /* elements, if none of the class are in memory */

/* The index along which the elements of a last subscript are adjacent; -1: none, or several */
static int adjacent_index(const Affine *affine) {
    int found = -1;
    for (int i = 0; i < PROG_MAX_INDEXES && affine->is; i++) {
        if (affine->coef[i] != 1) continue;
        if (found >= 0) return -1;
        found = i;
    }
    return found;
}

static void add_along(const Registers *r, const Group *group, const Access *access) {
    const Affine *affine = access->rank > 0 ? &access->affine[access->rank - 1] : NULL;
    int index = affine ? adjacent_index(affine) : -1;
    if (access->space == SPACE_REGISTER || index < 0 || index >= group->count) return;
    Along *along = &r->along[spread_first(r, group->first + (size_t)index)];
    along->any = true;
    along->aligned = common_divisor(along->aligned, affine->multiple);
    for (int i = 0; i < PROG_MAX_INDEXES; i++)
        if (i != index) along->aligned = common_divisor(along->aligned, affine->coef[i]);
    traffic_add(&along->traffic, &group->site->tile->space, access);
    int64_t crooked = crooked_rows(r->tiles->prog, access);
    if (crooked > 0) along->crooked = common_divisor(along->crooked, crooked);
}

void spread_memory(Registers *r) {
    r->along = NEW_ARRAY(r->arena, Along, r->count + 1);
    for (size_t g = 0; g < r->groups.count; g++) {
        const Group *group = &r->groups.items[g];
        if (!group->site) continue;
        add_along(r, group, &group->site->tile->target);
        for (size_t k = 0; k < group->site->reads.count; k++)
            add_along(r, group, group->site->reads.items[k]);
    }
}

int64_t spread_vector(const Registers *r, size_t class, int64_t unit, int64_t total) {
    const Along *along = &r->along[class];
    int64_t vector = along->any ? traffic_vector(&along->traffic) : VECTOR_PLAIN;
    while (vector > VECTOR_PLAIN && (along->aligned % vector != 0 || total / vector < r->threads))
        vector /= 2;
    while (along->crooked > 0 && along->crooked % vector != 0) vector /= 2;
    while (unit % vector != 0) vector /= 2;
    return vector;
}
