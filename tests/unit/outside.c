/* Accesses outside of tensors, of several combinations of the statics. A combination that was not
 * followed to its end may have an element inside: then nothing is refused. An access that a limit
 * leaves unknown is undecided, unless a combination has an element inside. */
#include "check/check.h"
#include "tests/unit/expect.h"

/* The accesses of a combination: one, outside of its tensor */
static OutsideAccesses one(Arena *arena, bool cut) {
    OutsideAccesses all = {.cut = cut};
    vec_push(arena, &all.list, ((OutsideAccess){.span = {4, 8}, .outside = true}));
    return all;
}

static void test_cut(bool first, bool second) {
    Scratch scratch = scratch_new();
    OutsideAccesses all = one(scratch.arena, first), more = one(scratch.arena, second);
    outside_merge(scratch.arena, &all, &more);
    EXPECT(all.cut == (first || second));
    EXPECT(all.list.count == 1);
    if (all.cut) EXPECT(outside_report(NULL, &all, NULL) == 0);
    scratch_free(&scratch);
}

static void test_possible(void) {
    Scratch scratch = scratch_new();
    OutsideAccesses all = one(scratch.arena, false), more = one(scratch.arena, false);
    more.list.items[0].outside = false, more.list.items[0].possible = true;
    outside_merge(scratch.arena, &all, &more);
    EXPECT(all.list.count == 1 && all.list.items[0].outside && all.list.items[0].possible);
    EXPECT(outside_report(NULL, &all, NULL) == 0);
    scratch_free(&scratch);
}

static void test_limited(bool possible) {
    Scratch scratch = scratch_new();
    OutsideAccesses all = one(scratch.arena, false), more = one(scratch.arena, false);
    more.list.items[0].limited = true;
    all.list.items[0].possible = possible;
    outside_merge(scratch.arena, &all, &more);
    EXPECT(all.list.count == 1 && all.list.items[0].limited);
    if (possible) EXPECT(outside_report(NULL, &all, NULL) == 0);
    all.list.items[0].copied = true; /* of a copy only a note would be missing */
    EXPECT(outside_report(NULL, &all, NULL) == 0);
    scratch_free(&scratch);
}

int main(void) {
    for (int i = 0; i < 4; i++) test_cut(i & 1, i & 2);
    test_possible();
    test_limited(false);
    test_limited(true);
    return expect_failures();
}
