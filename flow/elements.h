/* Sets of elements of a stage or tile, numbered from 0: sorted, disjoint spans with gaps between
 * them. A set is immutable, so states share it; equal pointers are equal sets. A function
 * returns NULL if the result has more than ELEMENTS_SPANS spans: the set is then unknown. */
#ifndef PIPEC_FLOW_ELEMENTS_H
#define PIPEC_FLOW_ELEMENTS_H

#include "util/util.h"

/* of a stage or tile; larger ones never fit into shared memory, which `resources` reports */
#define MAX_ELEMENTS   (1 << 22)
#define ELEMENTS_SPANS (1 << 16) /* of one set */

typedef struct ElementSpan {
    int32_t lo, hi; /* lo <= element < hi */
} ElementSpan;

typedef struct Elements {
    size_t count;
    ElementSpan spans[];
} Elements;

/* `start` plus a multiple, below its extent, of each step */
typedef struct ElementSteps {
    int64_t start;
    int count;
    int64_t steps[40], extents[40];
} ElementSteps;

/* The empty set */
const Elements *elements_none(void);
/* lo <= element < hi */
const Elements *elements_span(Arena *arena, int64_t lo, int64_t hi);
/* no element is negative */
const Elements *elements_steps(Arena *arena, const ElementSteps *steps);

/* Elements of one or both */
const Elements *elements_union(Arena *arena, const Elements *a, const Elements *b);
/* Elements of both */
const Elements *elements_common(Arena *arena, const Elements *a, const Elements *b);
/* elements of `a` that are not in `b` */
const Elements *elements_less(Arena *arena, const Elements *a, const Elements *b);

/* true if `outer` contains `inner` */
bool elements_hold(const Elements *outer, const Elements *inner);
bool elements_equal(const Elements *a, const Elements *b);
bool elements_has(const Elements *set, int64_t element);
int64_t elements_first_common(const Elements *a, const Elements *b); /* -1: none */
int64_t elements_first(const Elements *set);                         /* -1: none */

#endif
