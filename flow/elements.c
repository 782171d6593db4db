/* Sets of elements as sorted spans; see elements.h. Union, intersection and difference are one
 * merge of two lists of spans, with different parts of the result kept. */
#include "flow/elements.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const Elements none = {0};

const Elements *elements_none(void) { return &none; }

static Elements *with_room(Arena *arena, size_t spans) {
    return arena_alloc(arena,
                       sizeof(Elements) + arena_array_bytes(arena, sizeof(ElementSpan), spans));
}

const Elements *elements_span(Arena *arena, int64_t lo, int64_t hi) {
    if (lo >= hi) return &none;
    assert(lo >= 0 && hi <= INT32_MAX);
    Elements *made = with_room(arena, 1);
    made->count = 1;
    made->spans[0] = (ElementSpan){(int32_t)lo, (int32_t)hi};
    return made;
}

/* ---- elements of steps ----------------------------------------------------------------------- */

static void swap(ElementSteps *steps, int a, int b) {
    int64_t step = steps->steps[a], extent = steps->extents[a];
    steps->steps[a] = steps->steps[b], steps->extents[a] = steps->extents[b];
    steps->steps[b] = step, steps->extents[b] = extent;
}

/* Sorts steps in ascending order, without those of extent 1. False: there is no element. */
static bool sort_steps(ElementSteps *steps) {
    int kept = 0;
    for (int i = 0; i < steps->count; i++) {
        if (steps->extents[i] < 1) return false;
        if (steps->steps[i] == 0 || steps->extents[i] == 1) continue;
        if (steps->steps[i] < 0) {
            steps->start += steps->steps[i] * (steps->extents[i] - 1);
            steps->steps[i] = -steps->steps[i];
        }
        swap(steps, kept++, i);
    }
    steps->count = kept;
    for (int i = 1; i < kept; i++)
        for (int k = i; k > 0 && steps->steps[k] < steps->steps[k - 1]; k--) swap(steps, k, k - 1);
    return true;
}

/* Removes the first steps if their elements are contiguous, and returns their number of
 * elements. */
static int64_t take_neighbours(ElementSteps *steps) {
    int64_t length = 1;
    int taken = 0;
    while (taken < steps->count && steps->steps[taken] <= length) {
        length += steps->steps[taken] * (steps->extents[taken] - 1);
        taken++;
    }
    for (int i = taken; i < steps->count; i++) swap(steps, i - taken, i);
    steps->count -= taken;
    return length;
}

static int compare_spans(const void *a, const void *b) {
    const ElementSpan *one = a, *two = b;
    return one->lo < two->lo ? -1 : one->lo > two->lo;
}

static bool is_sorted(const Elements *set) {
    for (size_t i = 1; i < set->count; i++)
        if (set->spans[i].lo < set->spans[i - 1].lo) return false;
    return true;
}

/* Sorts and joins spans. */
static void tidy(Elements *set) {
    size_t kept = 0;
    if (!is_sorted(set)) qsort(set->spans, set->count, sizeof *set->spans, compare_spans);
    for (size_t i = 0; i < set->count; i++) {
        ElementSpan *last = kept ? &set->spans[kept - 1] : NULL;
        if (!last || set->spans[i].lo > last->hi)
            set->spans[kept++] = set->spans[i];
        else if (set->spans[i].hi > last->hi)
            last->hi = set->spans[i].hi;
    }
    set->count = kept;
}

const Elements *elements_steps(Arena *arena, const ElementSteps *places) {
    ElementSteps steps = *places;
    int64_t spans = 1;
    if (!sort_steps(&steps)) return &none;
    int64_t length = take_neighbours(&steps);
    for (int i = 0; i < steps.count; i++)
        if (__builtin_mul_overflow(spans, steps.extents[i], &spans) || spans > ELEMENTS_SPANS)
            return NULL;
    Elements *made = with_room(arena, (size_t)spans);
    made->count = (size_t)spans;
    for (int64_t n = 0; n < spans; n++) {
        int64_t at = steps.start, rest = n;
        for (int i = 0; i < steps.count; i++)
            at += rest % steps.extents[i] * steps.steps[i], rest /= steps.extents[i];
        assert(at >= 0 && at + length <= INT32_MAX);
        made->spans[n] = (ElementSpan){(int32_t)at, (int32_t)(at + length)};
    }
    tidy(made);
    return made;
}

/* ---- two sets -------------------------------------------------------------------------------- */

/* Traverses both lists; the elements between two ends of spans are in `a`, in `b`, in both or in
 * neither: `keeps`, indexed by 2 * in_b + in_a, tells if the result contains them. */
static const Elements *merge(Arena *arena, const Elements *a, const Elements *b,
                             const bool keeps[4]) {
    Elements *made = with_room(arena, a->count + b->count + 1);
    size_t i = 0, k = 0; /* passed ends, two per span */
    bool inside = false;
    while (i < 2 * a->count || k < 2 * b->count) {
        int32_t next_a = i == 2 * a->count ? INT32_MAX
                         : i % 2           ? a->spans[i / 2].hi
                                           : a->spans[i / 2].lo;
        int32_t next_b = k == 2 * b->count ? INT32_MAX
                         : k % 2           ? b->spans[k / 2].hi
                                           : b->spans[k / 2].lo;
        int32_t at = next_a < next_b ? next_a : next_b;
        if (next_a == at) i++;
        if (next_b == at) k++;
        bool now = keeps[2 * (k % 2) + i % 2];
        if (now && !inside) made->spans[made->count].lo = at;
        if (!now && inside) made->spans[made->count++].hi = at;
        inside = now;
    }
    assert(!inside);
    return made->count > ELEMENTS_SPANS ? NULL : made;
}

const Elements *elements_union(Arena *arena, const Elements *a, const Elements *b) {
    if (elements_hold(a, b)) return a;
    if (elements_hold(b, a)) return b;
    return merge(arena, a, b, (const bool[]){false, true, true, true});
}

const Elements *elements_common(Arena *arena, const Elements *a, const Elements *b) {
    if (elements_hold(a, b)) return b;
    if (elements_hold(b, a)) return a;
    return merge(arena, a, b, (const bool[]){false, false, false, true});
}

const Elements *elements_less(Arena *arena, const Elements *a, const Elements *b) {
    if (elements_first_common(a, b) < 0) return a;
    return merge(arena, a, b, (const bool[]){false, true, false, false});
}

bool elements_hold(const Elements *outer, const Elements *inner) {
    size_t at = 0;
    if (outer == inner) return true;
    for (size_t i = 0; i < inner->count; i++) {
        while (at < outer->count && outer->spans[at].hi < inner->spans[i].hi) at++;
        if (at == outer->count || outer->spans[at].lo > inner->spans[i].lo) return false;
    }
    return true;
}

bool elements_equal(const Elements *a, const Elements *b) {
    return a == b ||
           (a->count == b->count && memcmp(a->spans, b->spans, a->count * sizeof *a->spans) == 0);
}

bool elements_has(const Elements *set, int64_t element) {
    for (size_t i = 0; i < set->count && set->spans[i].lo <= element; i++)
        if (element < set->spans[i].hi) return true;
    return false;
}

int64_t elements_first_common(const Elements *a, const Elements *b) {
    for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        int32_t lo = a->spans[i].lo > b->spans[k].lo ? a->spans[i].lo : b->spans[k].lo;
        if (lo < a->spans[i].hi && lo < b->spans[k].hi) return lo;
        if (a->spans[i].hi < b->spans[k].hi)
            i++;
        else
            k++;
    }
    return -1;
}

int64_t elements_first(const Elements *set) { return set->count ? set->spans[0].lo : -1; }
