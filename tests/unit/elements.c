/* Sets of elements compared with bitmaps: random spans and steps, and their intersections. */
#include "flow/elements.h"
#include "tests/unit/expect.h"

#include <stdlib.h>

#define ELEMENTS 700
#define ROUNDS   4000

typedef struct Map {
    bool at[ELEMENTS];
} Map;

static uint64_t random_state = 7;

static int64_t below(int64_t limit) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)(random_state >> 33) % limit;
}

/* Sorted, and no two spans touch */
static bool is_tidy(const Elements *set) {
    for (size_t i = 0; i < set->count; i++) {
        if (set->spans[i].lo >= set->spans[i].hi) return false;
        if (i > 0 && set->spans[i].lo <= set->spans[i - 1].hi) return false;
    }
    return true;
}

static bool agrees(const Elements *set, const Map *map) {
    int64_t first = -1;
    for (int64_t i = ELEMENTS; i-- > 0;) {
        if (elements_has(set, i) != map->at[i]) return false;
        if (map->at[i]) first = i;
    }
    return is_tidy(set) && elements_first(set) == first;
}

/* Boxes of a tile, some transposed, with gaps or overlapping */
static const Elements *random_steps(Arena *arena, Map *map) {
    ElementSteps steps = {.count = (int)below(4)};
    int64_t lo = 0, hi = 0, total = 1;
    for (int i = 0; i < steps.count; i++) {
        steps.steps[i] = below(41) - 20, steps.extents[i] = 1 + below(6);
        int64_t reach = steps.steps[i] * (steps.extents[i] - 1);
        *(reach < 0 ? &lo : &hi) += reach;
        total *= steps.extents[i];
    }
    steps.start = -lo + below(ELEMENTS - (hi - lo));
    for (int64_t n = 0; n < total; n++) {
        int64_t at = steps.start, rest = n;
        for (int i = 0; i < steps.count; i++)
            at += rest % steps.extents[i] * steps.steps[i], rest /= steps.extents[i];
        map->at[at] = true;
    }
    return elements_steps(arena, &steps);
}

static const Elements *random_set(Arena *arena, Map *map) {
    const Elements *set = elements_none();
    memset(map, 0, sizeof *map);
    for (int64_t pieces = below(6); pieces > 0; pieces--) {
        if (below(2)) {
            set = elements_union(arena, set, random_steps(arena, map));
            continue;
        }
        int64_t lo = below(ELEMENTS), hi = lo + below(ELEMENTS - lo + 1);
        for (int64_t i = lo; i < hi; i++) map->at[i] = true;
        set = elements_union(arena, set, elements_span(arena, lo, hi));
    }
    return set;
}

static void expect_pair(Arena *arena) {
    Map a, b, all = {0}, common = {0}, less = {0};
    const Elements *one = random_set(arena, &a), *two = random_set(arena, &b);
    int64_t first = -1;
    bool held = true, same = true;
    for (int64_t i = ELEMENTS; i-- > 0;) {
        all.at[i] = a.at[i] || b.at[i], common.at[i] = a.at[i] && b.at[i],
        less.at[i] = a.at[i] && !b.at[i];
        if (common.at[i]) first = i;
        held &= a.at[i] || !b.at[i], same &= a.at[i] == b.at[i];
    }
    EXPECT(agrees(one, &a) && agrees(two, &b));
    EXPECT(agrees(elements_union(arena, one, two), &all));
    EXPECT(agrees(elements_common(arena, one, two), &common));
    EXPECT(agrees(elements_less(arena, one, two), &less));
    EXPECT(elements_hold(one, two) == held);
    EXPECT(elements_equal(one, two) == same);
    EXPECT(elements_first_common(one, two) == first);
}

/* Rows of a tile are contiguous; columns are not. A set with too many spans is not made. */
static void expect_shapes(Arena *arena) {
    ElementSteps box = {.start = 0, .count = 2, .steps = {1, 128}, .extents = {128, 4096}};
    EXPECT(elements_steps(arena, &box)->count == 1);
    ElementSteps turned = {.start = 127, .count = 2, .steps = {128, -1}, .extents = {4096, 128}};
    EXPECT(elements_equal(elements_steps(arena, &box), elements_steps(arena, &turned)));
    ElementSteps column = {.start = 5, .count = 1, .steps = {128}, .extents = {4096}};
    EXPECT(elements_steps(arena, &column)->count == 4096);
    ElementSteps empty = {.start = 0, .count = 1, .steps = {1}, .extents = {0}};
    EXPECT(elements_steps(arena, &empty)->count == 0);
    ElementSteps sieve = {.start = 0, .count = 1, .steps = {2}, .extents = {ELEMENTS_SPANS + 1}};
    EXPECT(elements_steps(arena, &sieve) == NULL);
    sieve.extents[0] = ELEMENTS_SPANS;
    const Elements *even = elements_steps(arena, &sieve);
    EXPECT(even && even->count == ELEMENTS_SPANS);
    EXPECT(elements_union(arena, even,
                          elements_span(arena, 2 * ELEMENTS_SPANS + 1, 2 * ELEMENTS_SPANS + 2)) ==
           NULL);
    EXPECT(elements_less(arena, elements_span(arena, 0, 2 * ELEMENTS_SPANS), even)->count ==
           ELEMENTS_SPANS);
}

int main(void) {
    Scratch scratch = scratch_new();
    for (int i = 0; i < ROUNDS; i++) expect_pair(scratch.arena);
    expect_shapes(scratch.arena);
    scratch_free(&scratch);
    return expect_failures();
}
