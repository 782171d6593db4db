/* Accesses outside of tensors, of several combinations of the statics. A combination that was not
 * followed to its end may have an element inside: then nothing is refused. */
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

int main(void) {
    for (int i = 0; i < 4; i++) test_cut(i & 1, i & 2);
    test_possible();
    return expect_failures();
}
