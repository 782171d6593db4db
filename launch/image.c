/* launch: what a kernel gets of the arrays: their data, or an image of it with gaps between the
 * elements. Gaps and both ends hold GUARD_BYTE, so that stray writes are found. */
#include "launch/private.h"

#include <string.h>

ArrayMemory array_memory(const Array *array) {
    const ArrayImage *image = array->image;
    return image != NULL ? (ArrayMemory){image->data, image->bytes}
                         : (ArrayMemory){array->data, array->bytes};
}

void image_strides(const Array *array, DeviceArgument *argument) {
    argument->strided = true;
    memcpy(argument->strides, array->image->strides, sizeof argument->strides);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The rows of an array in C order; a row has the elements of the last axis */
typedef struct Rows {
    const Array *array;
    int64_t index[MAX_RANK];
    unsigned char *data, *image; /* of the row */
    size_t bytes;
    bool more;
} Rows;

static Rows rows_of(const Array *array) {
    size_t bytes = (size_t)array->extents[array->rank - 1] * element_rows[array->type].bytes;
    return (Rows){array, {0}, array->data, array->image->data, bytes, array->count > 0};
}

static void next_row(Rows *rows) {
    const Array *array = rows->array;
    int axis = array->rank - 2;
    for (; axis >= 0 && ++rows->index[axis] == array->extents[axis]; axis--) rows->index[axis] = 0;
    rows->more = axis >= 0;
    rows->data += rows->bytes;
    rows->image = array->image->data;
    for (axis = 0; axis + 1 < array->rank; axis++)
        rows->image += rows->index[axis] * array->image->strides[axis] *
                       (int64_t)element_rows[array->type].bytes;
}

static void scatter(const Array *array) {
    for (Rows rows = rows_of(array); rows.more; next_row(&rows))
        memcpy(rows.image, rows.data, rows.bytes);
}

/* Moves the data back, so that the rows are guards too; some may be at one place */
static void gather(const Array *array) {
    for (Rows rows = rows_of(array); rows.more; next_row(&rows))
        memcpy(rows.data, rows.image, rows.bytes);
    for (Rows rows = rows_of(array); rows.more; next_row(&rows))
        memset(rows.image, GUARD_BYTE, rows.bytes);
}

void launch_scatter(const Launch *launch) {
    for (size_t i = 0; launch->manifest != NULL && i < launch->manifest->parameters.count; i++)
        if (launch->arrays[i].image != NULL) scatter(&launch->arrays[i]);
}

void launch_gather(const Launch *launch) {
    for (size_t i = 0; launch->manifest != NULL && i < launch->manifest->parameters.count; i++)
        if (launch->arrays[i].image != NULL) gather(&launch->arrays[i]);
}

/* ---- guards ---------------------------------------------------------------------------------- */

static bool image_whole(const ManifestParameter *parameter, const Array *array, Diags *diags) {
    const ArrayImage *image = array->image;
    for (size_t at = 0; at < image->bytes; at++) {
        if (image->data[at] == GUARD_BYTE) continue;
        diag_plain(diags, P0619,
                   "the kernel wrote between the rows of `%s`, to byte %zu after its first element",
                   parameter->name, at);
        return false;
    }
    return true;
}

/* Number of the first of `count` bytes, by `step` from `at`, that is no guard; 0: none */
static size_t first_written(const unsigned char *at, ptrdiff_t step, size_t count) {
    for (size_t number = 1; number <= count; number++, at += step)
        if (*at != GUARD_BYTE) return number;
    return 0;
}

static bool guards_of(const ManifestParameter *parameter, const Array *array, Diags *diags) {
    ArrayMemory memory = array_memory(array);
    size_t before = first_written(memory.data - 1, -1, GUARD_BYTES),
           after = first_written(memory.data + memory.bytes, 1, GUARD_BYTES);
    if (before > 0)
        diag_plain(diags, P0619, "the kernel wrote to byte %zu before the first element of `%s`",
                   before, parameter->name);
    if (after > 0)
        diag_plain(diags, P0619, "the kernel wrote to byte %zu after the last element of `%s`",
                   after, parameter->name);
    bool whole = array->image == NULL || image_whole(parameter, array, diags);
    return whole && before == 0 && after == 0;
}

bool launch_guards(const Launch *launch, Diags *diags) {
    bool whole = true;
    for (size_t i = 0; i < launch->manifest->parameters.count; i++)
        if (launch->arrays[i].block != NULL)
            whole = guards_of(&launch->manifest->parameters.items[i], &launch->arrays[i], diags) &&
                    whole;
    return whole;
}
