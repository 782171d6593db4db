/* Pairs of places that may access a common element. Places are sorted by the positions that they
 * reach along one dimension of their tensor; those that do not overlap need no comparison. */
#include "check/races/races.h"

#include <stdlib.h>

typedef struct Stretch { /* of a place, along one dimension */
    int place, object;
    RaceReach reach; /* all positions if it is not known */
} Stretch;

RaceReach race_reach(const Algebra *algebra, const IndexSpace *space, const Poly *sub) {
    RaceReach out = {.known = sub != NULL};
    for (int t = 0; out.known && t < sub->count; t++) {
        const Term *term = &sub->terms[t];
        const Atom *atom = term->count == 1 ? &algebra->atoms.items[term->atoms[0]] : NULL;
        bool index = atom && atom->kind == ATOM_INDEX && atom->index < space->count &&
                     space->items[atom->index].extent > 0;
        int64_t most = index ? space->items[atom->index].extent - 1 : 1, far;
        out.known = (term->count == 0 || index) && !__builtin_mul_overflow(term->coef, most, &far);
        if (!out.known) break;
        if (term->count == 0)
            out.lo += term->coef, out.hi += term->coef;
        else if (far > 0)
            out.hi += far;
        else
            out.lo += far;
    }
    return out;
}

bool race_overlaps(const RaceReach *a, const RaceReach *b) {
    return !a->known || !b->known || (a->hi >= b->lo && b->hi >= a->lo);
}

static RaceReach reach_of(const Place *place, int d) {
    Algebra *algebra = place->role->code->algebra;
    const Poly *sub = algebra_subscript(algebra, place->role, place->access, d);
    return race_reach(algebra, &place->tile->space, sub);
}

/* The dimension of the tensor along which the most places have a known reach */
static int dimension_of(const Places *places, int object, int rank) {
    int best = 0, most = -1;
    for (int d = 0; d < rank; d++) {
        int known = 0;
        for (size_t i = 0; i < places->count; i++)
            known +=
                places->items[i].access->object == object && reach_of(&places->items[i], d).known;
        if (known > most) best = d, most = known;
    }
    return best;
}

static int by_begin(const void *a, const void *b) {
    const Stretch *one = a, *two = b;
    if (one->object != two->object) return one->object < two->object ? -1 : 1;
    if (one->reach.lo != two->reach.lo) return one->reach.lo < two->reach.lo ? -1 : 1;
    return one->place - two->place;
}

static Stretch *sorted(Arena *arena, const Prog *prog, const Places *places) {
    Stretch *all = NEW_ARRAY(arena, Stretch, places->count + 1);
    int *dimensions = NEW_ARRAY(arena, int, prog->params.count + 1);
    for (size_t p = 0; p < prog->params.count; p++)
        dimensions[p] = dimension_of(places, (int)p, prog->params.items[p].rank);
    for (size_t i = 0; i < places->count; i++) {
        const Place *place = &places->items[i];
        RaceReach reach = reach_of(place, dimensions[place->access->object]);
        if (!reach.known) reach = (RaceReach){INT64_MIN, INT64_MAX, true};
        all[i] = (Stretch){(int)i, place->access->object, reach};
    }
    qsort(all, places->count, sizeof *all, by_begin);
    return all;
}

static int by_places(const void *a, const void *b) {
    const RacePair *one = a, *two = b;
    return one->first != two->first ? one->first - two->first : one->second - two->second;
}

RacePairs race_pairs(Arena *arena, const Prog *prog, const Places *places) {
    const Stretch *all = sorted(arena, prog, places);
    RacePairs pairs = {0};
    for (size_t i = 0; i < places->count; i++)
        for (size_t k = i; k < places->count && all[k].object == all[i].object; k++) {
            int a = all[i].place, b = all[k].place;
            arena_count(arena, 1);
            if (!race_overlaps(&all[i].reach, &all[k].reach)) break; /* later ones begin later */
            if (places->items[a].write || places->items[b].write)
                vec_push(arena, &pairs, ((RacePair){a < b ? a : b, a < b ? b : a}));
        }
    qsort(pairs.items, pairs.count, sizeof *pairs.items, by_places);
    return pairs;
}
