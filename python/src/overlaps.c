/* python: no tensor that a kernel writes shares memory with another tensor of the call, or has an
 * element twice: pipec's proofs, and the order of reads and writes on a GPU, take tensors as
 * distinct. */
#include "python/src/private.h"

/* Where a tensor lies, in bytes. Strides are not negative, and that of the last axis is one element
 * (check_strides in tensors.c). */
typedef struct Place {
    uint64_t first, row, span; /* address, the last axis, all */
    int rank;
    const int64_t *extents, *strides;
    uint64_t element;
} Place;

static Place place_of(const Call *call, int index) {
    const PipecArgument *argument = &call->arguments[index];
    const PipecParameter *fact = &call->unit->parameters[index].fact;
    Place place = {.first = argument->pointer,
                   .rank = fact->rank,
                   .extents = argument->extents,
                   .strides = argument->strides,
                   .element = fact->element_bytes};
    bool empty = false;
    for (int axis = 0; axis < fact->rank; axis++) empty |= argument->extents[axis] == 0;
    if (empty) return place;
    place.row = (uint64_t)argument->extents[fact->rank - 1] * place.element;
    place.span = place.row;
    for (int axis = 0; axis < fact->rank - 1; axis++)
        place.span += (uint64_t)(argument->extents[axis] - 1) * (uint64_t)argument->strides[axis] *
                      place.element;
    return place;
}

/* The greatest number of bytes of which the distances between rows are multiples, also of those of
 * `period`; 0: there is one row */
static uint64_t period_of(const Place *place, uint64_t period) {
    for (int axis = 0; axis < place->rank - 1; axis++) {
        uint64_t other = place->extents[axis] > 1 ? (uint64_t)place->strides[axis] : 0;
        for (other *= place->element; other > 0;) {
            uint64_t rest = period % other;
            period = other;
            other = rest;
        }
    }
    return period;
}

/* False only if no byte is in both. Rows whose distances have a common period lie side by side,
 * like the left and the right half of a matrix, if they do within one period. */
static bool meet(const Place *a, const Place *b) {
    if (a->first + a->span <= b->first || b->first + b->span <= a->first) return false;
    uint64_t period = period_of(b, period_of(a, 0));
    if (period == 0) return true;
    uint64_t from_a = (b->first % period + period - a->first % period) % period;
    return from_a < a->row || (period - from_a) % period < b->row;
}

/* False only if no element is in two places: each axis, from the smallest stride on, steps over all
 * that the axes before it reach. */
static bool repeats(const Place *place) {
    uint64_t reach = place->row;
    unsigned done = 0;
    for (int round = 0; round < place->rank - 1; round++) {
        int least = -1;
        for (int axis = 0; axis < place->rank - 1; axis++)
            if (!(done >> axis & 1) && (least < 0 || place->strides[axis] < place->strides[least]))
                least = axis;
        uint64_t stride = (uint64_t)place->strides[least] * place->element;
        done |= 1u << least;
        if (place->extents[least] == 1) continue;
        if (stride < reach) return true;
        reach += (uint64_t)(place->extents[least] - 1) * stride;
    }
    return false;
}

static bool is_tensor(const Call *call, int index) {
    return call->objects[index] != NULL && call->unit->parameters[index].fact.is_tensor;
}

static bool check_one(const Call *call, int written) {
    Place place = place_of(call, written);
    if (place.span == 0) return true;
    if (repeats(&place))
        return tensor_wrong(call, written, PyExc_ValueError,
                            "is written, but its rows overlap each other: pass a copy");
    for (int i = 0; i < call->unit->count; i++) {
        if (i == written || !is_tensor(call, i)) continue;
        Place other = place_of(call, i);
        if (other.span > 0 && meet(&place, &other))
            return tensor_wrong(call, written, PyExc_ValueError,
                                "is written, but shares memory with `%s`: pass a copy, or declare "
                                "one tensor that the kernel updates in place, `inout`",
                                call->unit->parameters[i].fact.name);
    }
    return true;
}

bool overlaps_check(const Call *call) {
    for (int i = 0; i < call->unit->count; i++)
        if (is_tensor(call, i) && call->unit->parameters[i].fact.mode != PIPEC_IN &&
            !check_one(call, i))
            return false;
    return true;
}
