/* launch: what a choice among manifests computes once for all of them. */
#ifndef PIPEC_COMMON_H
#define PIPEC_COMMON_H

#include "launch/launch.h"

/* Manifests that bind arguments alike, to the same symbols */
typedef struct Common {
    Arena *arena;
    const Manifest *first;
    size_t named; /* places of symbols, axes and variables: as many as any of them has */
    VEC(struct CommonPart) parts; /* of their formulas, each once, after its operands */
} Common;
typedef struct Commons {
    Common *items;
    size_t count, capacity;
} Commons;

typedef struct CommonMember {
    const Manifest *manifest; /* NULL: none */
    size_t common;            /* index */
    /* the manifest with places for formulas: for the values of a launch that common_bind sets */
    const Manifest *placed;
} CommonMember;

/* Sets `common` and `placed` of each member */
void common_find(Arena *arena, CommonMember *members, size_t count, Commons *out);
size_t common_values(const Common *common);
/* Sets the values of a launch with these arguments. False: something is wrong with them, or a part
 * of a formula has no value, so that each manifest has to be bound by itself */
bool common_bind(const Common *common, const DeviceArgument *arguments, int64_t *values,
                 Diags *diags);

#endif
