/* lib: what depends on all candidates of a family, and what a choice computes for them together. */
#include "lib/family.h"

void family_finish(Family *family) {
    CommonMember *members = NEW_ARRAY(family->arena, CommonMember, family->count + 1);
    for (size_t i = 0; i < family->count; i++) {
        members[i].manifest = family->items[i].manifest;
        if (members[i].manifest != NULL && members[i].manifest->symbols.count > family->symbols)
            family->symbols = members[i].manifest->symbols.count;
    }
    common_find(family->arena, members, family->count, &family->commons);
    for (size_t i = 0; i < family->count; i++) {
        family->items[i].common = members[i].common;
        family->items[i].placed = members[i].placed;
    }
}
