/* Arrays: "in:a.npy", "out:c.npy:f32[128,256]" -> memory and a region of the emulator. */
#include "emulator/workload/private.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

enum { ARRAYS_MOST = 4096 };

static const char *const forms[] = {"in:", "inout:", "out:", "zeros:"};

bool is_array_word(const char *word) {
    for (size_t i = 0; i < COUNT_OF(forms); i++)
        if (strncmp(word, forms[i], strlen(forms[i])) == 0) return true;
    return false;
}

/* "f32[128,256]" */
static bool read_shape(Workload *it, const char *text, ValueType *type, NpyData *out) {
    const char *open = strchr(text, '[');
    if (open == NULL || !value_type(text, (size_t)(open - text), type))
        return workload_wrong(it, "`%s` is not a type with extents, such as `f32[128,256]`", text);
    *out = (NpyData){.descr = type->npy, .element_bytes = type->bytes};
    const char *at = open;
    do {
        char *end;
        errno = 0;
        long long extent = at[1] >= '0' && at[1] <= '9' ? strtoll(at + 1, &end, 10) : -1;
        if (extent < 0 || errno != 0 || (*end != ',' && *end != ']') || out->rank == NPY_MAX_RANK)
            return workload_wrong(it, "the extents of `%s` are not whole numbers", text);
        out->shape[out->rank++] = extent;
        at = end;
    } while (*at == ',');
    if (at[1] != 0) return workload_wrong(it, "`%s` has text after its extents", text);
    return npy_size(out) || workload_wrong(it, "the size of `%s` does not fit 64 bits", text);
}

static bool has_memory(const Workload *it, uint64_t bytes) {
    uint64_t used = 0;
    for (size_t i = 0; i < it->arrays.count; i++) used += it->arrays.items[i].data.bytes;
    return it->memory_most == 0 || (used < it->memory_most && bytes <= it->memory_most - used);
}

/* Without values: NaN for floats, 0xa5 bytes for integers */
static bool new_array(Workload *it, const char *shape, bool zeros, WorkloadArray *array) {
    ValueType type;
    if (!read_shape(it, shape, &type, &array->data)) return false;
    int64_t bytes = (int64_t)array->data.bytes;
    if (!has_memory(it, array->data.bytes) || !array_new(&array->storage, E_U8, 1, &bytes)) {
        diag_plain(it->diags, P0610, "not enough host memory for `%s`", shape);
        it->status = RUN_UNAVAILABLE;
        return false;
    }
    array->data.data = array->storage.data;
    memset(array->data.data,
           zeros                        ? 0
           : type.kind == ELEMENT_FLOAT ? 0xff
                                        : 0xa5,
           array->data.bytes);
    return true;
}

static bool read_array(Workload *it, const char *file, WorkloadArray *array) {
    if (npy_read_any(it->arena, workload_path(it, file), &array->data, &array->storage, it->diags))
        return true;
    it->status = RUN_UNAVAILABLE;
    return false;
}

/* "FILE:REST": *rest is NULL without a colon */
static const char *split(const Workload *it, const char *text, bool last, const char **rest) {
    const char *colon = last ? strrchr(text, ':') : strchr(text, ':');
    *rest = colon != NULL ? colon + 1 : NULL;
    return colon != NULL ? arena_copy(it->arena, text, (size_t)(colon - text)) : text;
}

static bool make_array(Workload *it, const char *word, WorkloadArray *array) {
    const char *rest, *text = strchr(word, ':') + 1;
    if (strncmp(word, "zeros:", 6) == 0) return new_array(it, text, true, array);
    if (strncmp(word, "in:", 3) == 0) return read_array(it, text, array);
    if (strncmp(word, "inout:", 6) == 0) {
        const char *file = split(it, text, false, &rest);
        array->save = workload_path(it, rest != NULL ? rest : file);
        return read_array(it, file, array);
    }
    const char *file = split(it, text, true, &rest);
    if (rest == NULL) return workload_wrong(it, "the form is `out:FILE.npy:TYPE[EXTENTS]`");
    array->save = workload_path(it, file);
    return new_array(it, rest, false, array);
}

/* No two results may be written to one file. */
static bool save_differs(Workload *it, const WorkloadArray *array) {
    for (size_t i = 0; array->save != NULL && i < it->arrays.count; i++)
        if (it->arrays.items[i].save != NULL && !strcmp(it->arrays.items[i].save, array->save))
            return workload_wrong(it, "two results would be written to `%s`", array->save);
    return true;
}

static bool add_array(Workload *it, const WorkloadArray *array, bool read_only, size_t *out) {
    *out = it->arrays.count;
    bool differs = save_differs(it, array);
    vec_push(it->arena, &it->arrays, *array);
    EmulatorRegion region = {.bytes = array->data.bytes,
                             .data = array->data.data,
                             .read_only = read_only,
                             .name = array->label};
    emulator_shape(&region, array->data.element_bytes, array->data.rank, array->data.shape, NULL);
    vec_push(it->arena, &it->regions, region);
    emulator_place(it->regions.items, it->regions.count);
    return differs;
}

static bool has_room(Workload *it) {
    return it->arrays.count < ARRAYS_MOST ||
           workload_wrong(it, "there are more than %d arrays", ARRAYS_MOST);
}

bool array_word(Workload *it, const char *word, const char *name, size_t *out) {
    WorkloadArray array = {.label = name != NULL ? name : word};
    return has_room(it) && make_array(it, word, &array) &&
           add_array(it, &array, strncmp(word, "in:", 3) == 0, out);
}

bool array_of_value(Workload *it, const Value *value, const char *name, size_t *out) {
    WorkloadArray array = {.label = name};
    const char *shape = arena_printf(it->arena, "u8[%u]", value->size);
    if (!has_room(it) || !new_array(it, shape, true, &array)) return false;
    memcpy(array.data.data, value->bytes, value->size);
    return add_array(it, &array, false, out);
}

static bool find_array(Workload *it, const char *name, size_t *array) {
    char *end;
    for (size_t i = 0; i < it->names.count; i++)
        if (strcmp(it->names.items[i].name, name) == 0) {
            *array = it->names.items[i].array;
            return true;
        }
    unsigned long number = name[0] >= '0' && name[0] <= '9' ? strtoul(name, &end, 10) : ULONG_MAX;
    if (number == ULONG_MAX || *end != 0) return workload_wrong(it, "no array is named `%s`", name);
    if (number >= it->values.count || it->values.items[number].array < 0)
        return workload_wrong(it, "argument %s is not an earlier argument with an array", name);
    *array = (size_t)it->values.items[number].array;
    return true;
}

bool array_again(Workload *it, const char *text, size_t *array, uint64_t *offset) {
    const char *plus = strrchr(text, '+');
    char *end;
    *offset = 0;
    if (plus == NULL) return find_array(it, text, array);
    errno = 0;
    *offset = plus[1] >= '0' && plus[1] <= '9' ? strtoull(plus + 1, &end, 10) : UINT64_MAX;
    if (*offset > INT64_MAX || errno != 0 || *end != 0)
        return workload_wrong(it, "`%s` is not a number of bytes", plus + 1);
    return find_array(it, arena_copy(it->arena, text, (size_t)(plus - text)), array);
}
