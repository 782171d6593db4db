/* lib: what depends on all candidates of a family, and what a choice computes for them together. */
#include "lib/family.h"

#include <string.h>

void family_finish(Family *family) {
    const Manifest *own = family->count > 0 ? family->items[0].manifest : NULL;
    CommonMember *members = NEW_ARRAY(family->arena, CommonMember, family->count + 1);
    for (size_t i = 0; i < family->count; i++) {
        Candidate *candidate = &family->items[i];
        const Manifest *manifest = members[i].manifest = candidate->manifest;
        if (manifest == NULL) continue;
        if (manifest->symbols.count > family->symbols) family->symbols = manifest->symbols.count;
        candidate->elsewhere = own != NULL && strcmp(manifest->target, own->target) != 0;
    }
    common_find(family->arena, members, family->count, &family->commons);
    for (size_t i = 0; i < family->count; i++) {
        family->items[i].common = members[i].common;
        family->items[i].placed = members[i].placed;
    }
}
