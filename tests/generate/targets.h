/* Lists of targets for a drawn kernel (targets.c). */
#ifndef TESTS_GENERATE_TARGETS_H
#define TESTS_GENERATE_TARGETS_H

#include "tests/generate/generate.h"

typedef struct TargetList {
    const char **names;
    int count;
} TargetList;

/* Mostly `sm_90a` alone, otherwise two to four of all targets */
TargetList targets_draw(Arena *arena, uint64_t seed);
/* The text with these targets in the head of its kernel */
const char *targets_into(Arena *arena, const char *text, const TargetList *list);
/* NULL: the check of all targets says what the checks of each say; otherwise what differs */
const char *targets_agree(Arena *arena, const char *text, const TargetList *list);

#endif
