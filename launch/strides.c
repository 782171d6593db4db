/* launch: strides of tensors, in elements, and where tensors lie. Takes those that a caller gives,
 * or none; sets the symbols of strides; refuses tensors on which the kernel would be wrong.
 * Allocates only for errors.
 *
 * The stride of an axis with less than two elements does not matter: no element is one stride from
 * another. Its symbol is a value that every kernel accepts. */
#include "launch/private.h"

#include <assert.h>

#define STRIDE_LIMIT INT64_C(0x10000000000) /* bytes: tensor maps take less */
#define PITCH_LIMIT  INT64_C(0x100000000)   /* elements: it is passed in 32 bits */
#define ANY_STRIDE   16                     /* bytes, of an axis with less than two elements */
#define SATURATED    (INT64_C(1) << 58)     /* elements; no tensor has so many */

typedef struct Tensor {
    const Manifest *manifest;
    const ManifestParameter *parameter;
    bool mapped;  /* some tensor map views it */
    bool unknown; /* the formula of an extent has no value */
    int64_t bytes;
    int64_t extents[MAX_RANK], strides[MAX_RANK];
    int64_t inner[MAX_RANK]; /* stride of the axis if it has no gaps */
} Tensor;

/* a * b for b >= 0; large products are SATURATED */
static int64_t product(int64_t a, int64_t b) {
    int64_t out;
    return __builtin_mul_overflow(a, b, &out) || out > SATURATED ? SATURATED : out;
}

static Tensor tensor_of(const Manifest *manifest, size_t index, const int64_t *given,
                        const int64_t *symbols) {
    const ManifestParameter *parameter = &manifest->parameters.items[index];
    Tensor tensor = {
        .manifest = manifest, .parameter = parameter, .bytes = element_rows[parameter->type].bytes};
    bool empty = false;
    for (size_t i = 0; i < manifest->maps.count; i++)
        tensor.mapped |= manifest->maps.items[i].parameter == (int)index;
    for (int axis = 0; axis < parameter->rank; axis++) {
        tensor.unknown |=
            formula_eval(&parameter->extents[axis], symbols, &tensor.extents[axis]) != FORMULA_FINE;
        empty |= tensor.extents[axis] == 0;
    }
    if (tensor.unknown) return tensor;
    for (int axis = parameter->rank - 1, inner = -1; axis >= 0; axis--) {
        if (empty) tensor.extents[axis] = 0;
        bool matters = tensor.extents[axis] > 1;
        tensor.inner[axis] = inner < 0 ? 1 : product(tensor.strides[inner], tensor.extents[inner]);
        tensor.strides[axis] = !matters        ? ANY_STRIDE / tensor.bytes
                               : given != NULL ? given[axis]
                                               : tensor.inner[axis];
        if (matters) inner = axis;
    }
    return tensor;
}

/* ---- what a kernel accepts ------------------------------------------------------------------- */

/* Would it be aligned in C order without gaps? */
static bool aligns_dense(const Tensor *tensor) {
    int64_t stride = tensor->bytes, unit = tensor->parameter->stride_alignment;
    int last = tensor->parameter->rank - 1;
    for (int axis = last; axis >= 0; axis--) {
        if (tensor->extents[axis] < 2) continue;
        if (axis < last && unit > 1 && stride % unit != 0) return false;
        stride = product(stride, tensor->extents[axis]);
    }
    return true;
}

static bool refuse(const Tensor *tensor, Diags *diags, const char *why) {
    const ManifestParameter *parameter = tensor->parameter;
    Diag *diag = manifest_diag(tensor->manifest, diags, P0621, parameter->span,
                               "kernel `%s` cannot run on `%s` with these strides",
                               tensor->manifest->kernel, parameter->name);
    Str strides = str_new(diags->arena);
    for (int axis = 0; axis < parameter->rank; axis++)
        str_printf(&strides, "%s%lld", axis > 0 ? ", " : "", (long long)tensor->strides[axis]);
    diag_note(diags, diag, "%s", why);
    diag_note(diags, diag, "its strides are %s, in elements of %lld bytes", strides.text,
              (long long)tensor->bytes);
    if (aligns_dense(tensor))
        diag_help(diags, diag,
                  "pass a copy in C order without gaps: in PyTorch `%s.contiguous()`, in NumPy "
                  "`np.ascontiguousarray(%s)`",
                  parameter->name, parameter->name);
    else
        diag_help(diags, diag,
                  "pass a copy with gaps after its rows, which begin at multiples of "
                  "%u bytes",
                  parameter->stride_alignment);
    return false;
}

/* NULL: it accepts the stride of the axis */
static const char *why_not(const Tensor *tensor, int axis, Arena *arena) {
    const ManifestParameter *parameter = tensor->parameter;
    int64_t stride = tensor->strides[axis], unit = parameter->stride_alignment / tensor->bytes;
    int last = parameter->rank - 1;
    if (axis == last && stride != 1) return "the elements of its last axis must be adjacent";
    if (stride < 0) return arena_printf(arena, "the stride of axis %d is negative", axis);
    if (stride >= STRIDE_LIMIT / tensor->bytes)
        return arena_printf(arena, "the stride of axis %d is not below 2^40 bytes", axis);
    if (axis + 1 == last && stride >= PITCH_LIMIT)
        return arena_printf(arena, "the stride of axis %d is not below 2^32 elements", axis);
    if (tensor->mapped && stride == 0)
        return arena_printf(
            arena, "the copy engine copies it, but cannot repeat axis %d: its stride is 0", axis);
    if ((parameter->joined >> axis & 1) && stride != tensor->inner[axis])
        return arena_printf(arena,
                            "the kernel needs its axis %d without gaps: a stride of %lld, not %lld",
                            axis, (long long)tensor->inner[axis], (long long)stride);
    if (axis < last && unit > 1 && stride % unit != 0)
        return arena_printf(arena,
                            "the stride of axis %d is %lld bytes, but must be a multiple of %u",
                            axis, (long long)(stride * tensor->bytes), parameter->stride_alignment);
    return NULL;
}

static bool axis_fits(const Tensor *tensor, int axis, Diags *diags) {
    const char *why = tensor->extents[axis] < 2 ? NULL : why_not(tensor, axis, diags->arena);
    return why == NULL || refuse(tensor, diags, why);
}

/* The axis with the least stride, not below that of `after` (and after it, if equal), that has more
 * than one element; -1: none */
static int next_axis(const Tensor *tensor, int after) {
    int found = -1;
    for (int axis = 0; axis < tensor->parameter->rank; axis++) {
        if (tensor->extents[axis] < 2) continue;
        if (after >= 0 && (tensor->strides[axis] < tensor->strides[after] ||
                           (tensor->strides[axis] == tensor->strides[after] && axis <= after)))
            continue;
        if (found < 0 || tensor->strides[axis] < tensor->strides[found]) found = axis;
    }
    return found;
}

/* Elements that the kernel writes are at different places: the proofs that it has no races take
 * different indexes for different elements. */
static bool spans_fit(const Tensor *tensor, Diags *diags) {
    int64_t span = 1; /* of the axes so far */
    for (int axis = next_axis(tensor, -1); axis >= 0; axis = next_axis(tensor, axis)) {
        int64_t stride = tensor->strides[axis];
        if (tensor->parameter->mode != MODE_IN && stride < span)
            return refuse(tensor, diags,
                          "the kernel writes it, but some of its elements are at one place");
        span += product(stride, tensor->extents[axis] - 1);
        if (span >= SATURATED) return refuse(tensor, diags, "it has more than 2^58 elements");
    }
    return true;
}

static bool tensor_fits(const Tensor *tensor, Diags *diags) {
    for (int axis = 0; axis < tensor->parameter->rank; axis++)
        if (!axis_fits(tensor, axis, diags)) return false;
    return spans_fit(tensor, diags);
}

static Tensor tensor_at(const Manifest *manifest, const DeviceArgument *arguments, size_t index,
                        const int64_t *symbols) {
    bool strided = arguments != NULL && arguments[index].strided;
    return tensor_of(manifest, index, strided ? arguments[index].strides : NULL, symbols);
}

/* ---- memory of several tensors --------------------------------------------------------------- */

/* Where the rows of a tensor lie, in bytes */
typedef struct Place {
    uint64_t first, row, span; /* address, the last axis, all */
    int64_t period;            /* common divisor of the distances between rows; 0: there is one */
} Place;

static Place place_of(const Tensor *tensor, const DeviceArgument *argument) {
    int last = tensor->parameter->rank - 1;
    Place place = {.first = argument->pointer,
                   .row = (uint64_t)(tensor->extents[last] * tensor->bytes)};
    place.span = place.row;
    for (int axis = 0; axis < last && place.row > 0; axis++) {
        if (tensor->extents[axis] < 2) continue;
        int64_t stride = tensor->strides[axis] * tensor->bytes;
        place.span += (uint64_t)(tensor->extents[axis] - 1) * (uint64_t)stride;
        place.period = common_divisor(place.period, stride);
    }
    return place;
}

/* False only if no byte is in both. Rows whose distances have a common divisor lie side by side,
 * like the left and the right half of a matrix, if they do within this distance. A tensor without
 * elements, or with a null pointer, which is refused elsewhere, meets no other. */
static bool meet(Place a, Place b) {
    if (a.first > b.first) return meet(b, a);
    uint64_t from = b.first - a.first;
    if (a.first == 0 || b.span == 0 || from >= a.span) return false;
    uint64_t period = (uint64_t)common_divisor(a.period, b.period);
    if (period == 0) return true;
    from %= period;
    return from < a.row || period - from < b.row;
}

static bool is_apart(const Manifest *manifest, const DeviceArgument *arguments, size_t written,
                     const int64_t *symbols, Diags *diags) {
    const ManifestParameter *parameter = &manifest->parameters.items[written];
    Tensor tensor = tensor_at(manifest, arguments, written, symbols);
    Place place = place_of(&tensor, &arguments[written]);
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        const ManifestParameter *other = &manifest->parameters.items[i];
        if (i == written || other->kind != PARAMETER_TENSOR) continue;
        Tensor at = tensor_at(manifest, arguments, i, symbols);
        if (!meet(place, place_of(&at, &arguments[i]))) continue;
        Diag *diag = manifest_diag(manifest, diags, P0622, parameter->span,
                                   "`%s` is written, but shares memory with `%s`", parameter->name,
                                   other->name);
        diag_help(diags, diag,
                  "pass a copy, or declare one tensor that the kernel updates in place, `inout`");
        return false;
    }
    return true;
}

/* The proofs, and the order of reads and writes on a GPU, take tensors as distinct. */
static bool all_apart(const Manifest *manifest, const DeviceArgument *arguments,
                      const int64_t *symbols, Diags *diags) {
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &manifest->parameters.items[i];
        if (parameter->kind == PARAMETER_TENSOR && parameter->mode != MODE_IN &&
            !is_apart(manifest, arguments, i, symbols, diags))
            return false;
    }
    return true;
}

/* ---- all tensors ----------------------------------------------------------------------------- */

void strides_set(const Manifest *manifest, const DeviceArgument *arguments, int64_t *symbols) {
    size_t symbol = 0;
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        if (manifest->parameters.items[i].kind != PARAMETER_TENSOR) continue;
        Tensor tensor = tensor_at(manifest, arguments, i, symbols);
        for (; symbol < manifest->symbols.count; symbol++) { /* in the order of the parameters */
            const ManifestSymbol *row = &manifest->symbols.items[symbol];
            if (row->is_stride && row->parameter != (int)i) break;
            if (row->is_stride) symbols[symbol] = tensor.strides[row->axis];
        }
    }
}

bool launch_strides(const Manifest *manifest, const DeviceArgument *arguments,
                    const int64_t *symbols, Diags *diags) {
    bool fine = true;
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        if (manifest->parameters.items[i].kind != PARAMETER_TENSOR) continue;
        Tensor tensor = tensor_at(manifest, arguments, i, symbols);
        assert(!tensor.unknown); /* the extents were compared with it */
        fine = tensor_fits(&tensor, diags) && fine;
    }
    return fine && (arguments == NULL || all_apart(manifest, arguments, symbols, diags));
}

/* ---- tensors with gaps ----------------------------------------------------------------------- */

/* Strides with the least gaps that the kernel accepts, see LaunchOptions */
void strides_with_gaps(const ManifestParameter *parameter, const int64_t *extents, uint64_t seed,
                       int64_t *strides) {
    int64_t bytes = element_rows[parameter->type].bytes, step = parameter->stride_alignment;
    int64_t unit = step > bytes ? step / bytes : 1;
    bool reversed = (seed & 2) != 0 && parameter->joined == 0;
    if ((seed & 1) != 0 && unit * bytes < ANY_STRIDE) unit = ANY_STRIDE / bytes;
    int last = parameter->rank - 1;
    int64_t span = extents[last];
    strides[last] = 1;
    for (int k = last - 1; k >= 0; k--) {
        int axis = reversed ? last - 1 - k : k;
        bool joined = parameter->joined >> axis & 1;
        strides[axis] = joined ? span : product((span + unit - 1) / unit + 1, unit);
        span = product(strides[axis], extents[axis]);
    }
}
