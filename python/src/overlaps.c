/* python: no host array that a kernel writes shares memory with another array of the call, or has
 * an element twice, as a launch on a GPU checks too (P0621, P0622): the emulator gets copies. */
#include "python/src/private.h"

/* Where a tensor lies, in bytes. Strides are not negative, and that of the last axis is one element
 * (check_strides in tensors.c). */
typedef struct Place {
    uint64_t first, row; /* address, bytes of the last axis */
    int rank;
    const int64_t *extents, *strides;
    uint64_t element;
} Place;

static Place place_of(const Call *call, int index) {
    const PipecArgument *argument = &call->arguments[index];
    const PipecParameter *fact = &call->unit->parameters[index].fact;
    return (Place){.first = argument->pointer,
                   .row = (uint64_t)argument->extents[fact->rank - 1] * fact->element_bytes,
                   .rank = fact->rank,
                   .extents = argument->extents,
                   .strides = argument->strides,
                   .element = fact->element_bytes};
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

/* False only if no byte is in both, of tensors whose ranges of addresses meet. Rows whose distances
 * have a common period lie side by side, like the left and the right half of a matrix, if they do
 * within one period. */
static bool meet(const Place *a, const Place *b) {
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

/* The ranges of addresses decide for nearly all tensors. */
static bool is_apart(const Call *call, int a, int b) {
    uint64_t first_a = call->arguments[a].pointer, bytes_a = call->tensors[a].bytes,
             first_b = call->arguments[b].pointer, bytes_b = call->tensors[b].bytes;
    return bytes_a == 0 || bytes_b == 0 || first_a + bytes_a <= first_b ||
           first_b + bytes_b <= first_a;
}

static bool share(const Call *call, int a, int b) {
    if (is_apart(call, a, b)) return false;
    Place place = place_of(call, a), other = place_of(call, b);
    return meet(&place, &other);
}

static bool has_repeats(const Call *call, int index) {
    if (call->tensors[index].bytes == 0 || !call->arguments[index].strided) return false;
    Place place = place_of(call, index);
    return repeats(&place);
}

static bool check_one(const Call *call, int written) {
    if (has_repeats(call, written))
        return tensor_wrong(call, written, PyExc_ValueError,
                            "is written, but its rows overlap each other: pass a copy");
    for (int i = 0; i < call->unit->count; i++)
        if (i != written && is_tensor(call, i) && share(call, written, i))
            return tensor_wrong(call, written, PyExc_ValueError,
                                "is written, but shares memory with `%s`: pass a copy, or declare "
                                "one tensor that the kernel updates in place, `inout`",
                                call->unit->parameters[i].fact.name);
    return true;
}

bool overlaps_check(const Call *call) {
    for (int i = 0; i < call->unit->count; i++)
        if (call->unit->parameters[i].fact.mode != PIPEC_IN && is_tensor(call, i) &&
            !check_one(call, i))
            return false;
    return true;
}
