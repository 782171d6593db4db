/* States of the rule `written`: what it changes in them. */
#include "derive/written.h"

#include <string.h>

static void make_own(Written *w, State *state) {
    if (!state->shared) return;
    const Elements **must = NEW_ARRAY(w->arena, const Elements *, w->count + 1);
    memcpy(must, state->must, w->count * sizeof *must);
    state->must = must, state->shared = false;
}

const Hold *written_hold(const State *state, int handle) {
    for (size_t i = 0; i < state->holds.count; i++)
        if (state->holds.items[i].handle == handle) return state->holds.items[i].hold;
    return NULL;
}

void written_keep(Written *w, State *state, int handle, const Hold *hold) {
    if (written_hold(state, handle) == hold) return;
    const Holdings old = state->holds;
    Holding *made = NEW_ARRAY(w->arena, Holding, old.count + 1);
    size_t count = 0, i = 0;
    for (; i < old.count && old.items[i].handle < handle; i++) made[count++] = old.items[i];
    if (hold) made[count++] = (Holding){handle, hold};
    for (; i < old.count; i++)
        if (old.items[i].handle != handle) made[count++] = old.items[i];
    state->holds = (Holdings){made, count};
}

Hold *written_change(Written *w, State *state, int handle) {
    Hold *made = NEW(w->arena, Hold);
    *made = *written_hold(state, handle);
    written_keep(w, state, handle, made);
    return made;
}

void written_set(Written *w, State *state, int object, const Elements *must) {
    make_own(w, state);
    state->must[object] = must;
}

const Elements *written_known(Written *w, const Elements *result, const Elements *otherwise) {
    if (!result) w->beyond = true;
    return result ? result : otherwise;
}

Touched written_touched(Written *w, const IndexSpace *space, const Access *access, Tiling tiling) {
    const Standing place = {&w->flow->context, w->code, w->at};
    Touched made = touched(w->arena, &place, space, access, &tiling);
    if (made.all) return made;
    int64_t count = tiling.tiles;
    for (int d = 0; d < tiling.rank; d++) count *= tiling.extents[d];
    w->beyond = true;
    return (Touched){.all = elements_span(w->arena, tiling.start, tiling.start + count)};
}
