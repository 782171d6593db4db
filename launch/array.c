/* launch: host memory for tensors. Allocates a block with guard bands for a type and extents, or
 * returns false. The blocks outlive a compilation, so they are not in its arena. A large block
 * is refused before it is touched if the machine lacks the memory: a kernel that overcommits
 * would grant it and later kill a process. */
#define PIPEC_OWN_MEMORY
#include "launch/private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* smaller blocks are allocated without a test of the available memory */
#define LARGE_BLOCK (64u << 20)

bool array_size(Element type, int rank, const int64_t *extents, int64_t *count, size_t *bytes) {
    int64_t product = 1;
    for (int axis = 0; axis < rank; axis++)
        if (extents[axis] < 0 || __builtin_mul_overflow(product, extents[axis], &product))
            return false;
    *count = product;
    int64_t total;
    if (__builtin_mul_overflow(product, (int64_t)element_rows[type].bytes, &total)) return false;
    *bytes = (size_t)total;
    return true;
}

/* The number in the first line of a file in /proc or /sys, or after `name` in a file of several
 * values. */
static bool number_in(const char *file, const char *name, uint64_t *out) {
    FILE *stream = fopen(file, "r");
    if (stream == NULL) return false;
    char line[256];
    bool found = false;
    size_t length = strlen(name);
    while (!found && fgets(line, sizeof line, stream) != NULL) {
        unsigned long long value;
        found = strncmp(line, name, length) == 0 && sscanf(line + length, "%llu", &value) == 1;
        if (found) *out = value;
    }
    fclose(stream);
    return found;
}

uint64_t memory_available(void) {
    uint64_t available = UINT64_MAX, value, limit, used;
    if (number_in("/proc/meminfo", "MemAvailable:", &value)) available = value * 1024;
    /* A container's limit; its page cache counts as used although it can be reclaimed */
    uint64_t cache = 0;
    if (number_in("/sys/fs/cgroup/memory.max", "", &limit) &&
        number_in("/sys/fs/cgroup/memory.current", "", &used)) {
        number_in("/sys/fs/cgroup/memory.stat", "inactive_file", &cache);
        used = used > cache ? used - cache : 0;
        uint64_t left = limit > used ? limit - used : 0;
        available = left < available ? left : available;
    }
    return available;
}

bool array_new(Array *array, Element type, int rank, const int64_t *extents) {
    *array = (Array){.type = type, .rank = rank};
    if (!array_size(type, rank, extents, &array->count, &array->bytes) ||
        array->bytes > SIZE_MAX - 4 * (size_t)GUARD_BYTES)
        return false;
    /* Whole pages, so that the data begins at a page boundary, or can begin after it */
    size_t whole = array->bytes + 2 * GUARD_BYTES + SHIFT_MOST;
    whole = (whole + GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
    if (whole > LARGE_BLOCK && whole > memory_available()) return false;
    for (int axis = 0; axis < rank; axis++) array->extents[axis] = extents[axis];
    array->block = aligned_alloc(GUARD_BYTES, whole);
    if (array->block == NULL) return false;
    array->data = (unsigned char *)array->block + GUARD_BYTES;
    memset(array->block, GUARD_BYTE, GUARD_BYTES);
    memset(array->data + array->bytes, GUARD_BYTE, whole - GUARD_BYTES - array->bytes);
    return true;
}

void array_shift(Array *array, size_t bytes) {
    assert(array->shift == 0 && bytes <= SHIFT_MOST);
    memset(array->data, GUARD_BYTE, bytes);
    array->data += bytes, array->shift = bytes;
}

bool array_copy(Array *to, const Array *from) {
    if (!array_new(to, from->type, from->rank, from->extents)) return false;
    array_shift(to, from->shift);
    memcpy(to->data, from->data, from->bytes);
    return true;
}

static void image_free(ArrayImage *image) {
    if (image != NULL) free(image->block);
    free(image);
}

void array_free(Array *array) {
    image_free(array->image);
    free(array->block);
    *array = (Array){0};
}

/* From the first byte to the last; false: does not fit 62 bits */
static bool image_size(const Array *array, const int64_t *strides, size_t *bytes) {
    int64_t end = 1, part;
    for (int axis = 0; axis < array->rank; axis++)
        if (__builtin_mul_overflow(strides[axis], array->extents[axis] - 1, &part) ||
            __builtin_add_overflow(end, part, &end) || end > INT64_MAX / 16)
            return false;
    *bytes = (size_t)end * element_rows[array->type].bytes;
    return true;
}

bool array_stride(Array *array, const int64_t *strides) {
    size_t bytes;
    assert(array->image == NULL && array->count > 0);
    if (!image_size(array, strides, &bytes)) return false;
    size_t whole = bytes + 3 * (size_t)GUARD_BYTES;
    whole = (whole + GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
    if (whole > memory_available()) return false;
    ArrayImage *image = malloc(sizeof *image);
    void *block = aligned_alloc(GUARD_BYTES, whole);
    if (image == NULL || block == NULL) {
        free(image), free(block);
        return false;
    }
    memset(block, GUARD_BYTE, whole);
    *image = (ArrayImage){.block = block, .bytes = bytes};
    image->data = (unsigned char *)block + GUARD_BYTES + array->shift;
    memcpy(image->strides, strides, sizeof image->strides);
    array->image = image;
    return true;
}

const char *bytes_text(Arena *arena, uint64_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) return arena_printf(arena, "%llu bytes", (unsigned long long)bytes);
    double size = (double)bytes / 1024;
    size_t unit = 0;
    while (size >= 1024 && unit + 1 < COUNT_OF(units)) {
        size /= 1024;
        unit++;
    }
    return arena_printf(arena, "%.1f %s", size, units[unit]);
}

void launch_free(Launch *launch) {
    for (size_t i = 0; launch != NULL && i < launch->manifest->parameters.count; i++)
        array_free(&launch->arrays[i]);
}
