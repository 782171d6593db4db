/* Launch files: JSON with named arrays, and launches that share them.
 *
 *   {"ptx": "k.ptx",
 *    "arrays": {"A": "in:a.npy", "P": "zeros:f32[64]", "C": "out:c.npy:f32[4,4]",
 *               "T": {"struct": ["array:A", "array:C"]}},
 *    "launches": [{"entry": "first", "grid": [4, 2], "block": 128, "shared": 1024,
 *                  "arguments": ["array:A", "array:P", "i32:7", {"map": {..}}, {"struct": [..]}]},
 *                 {"entry": "second", "grid": 1, "programmatic": true, "arguments": [..]}]} */
#include "emulator/workload/private.h"

enum { LAUNCHES_MOST = 10000 };

static bool number_of(Workload *it, const JsonValue *value, const char *name, uint32_t *out) {
    if (value->kind != JSON_NUMBER || !value->is_integer || value->integer < 0 ||
        value->integer > UINT32_MAX)
        return workload_wrong(it, "`%s` is not a whole number below 2^32", name);
    *out = (uint32_t)value->integer;
    return true;
}

/* A number or a list of up to three; those that are missing are 1, all are 0 without the field. */
static bool extents_of(Workload *it, const JsonValue *launch, const char *name, uint32_t *out) {
    const JsonValue *value = json_field(launch, name), *at = value;
    if (value == NULL) return true;
    out[0] = out[1] = out[2] = 1;
    if (value->kind == JSON_NUMBER) return number_of(it, value, name, out);
    at = value->first;
    if (value->kind != JSON_LIST || at == NULL)
        return workload_wrong(it, "`%s` is neither a number nor a list of numbers", name);
    for (int i = 0; at != NULL; i++, at = at->next) {
        if (i == 3) return workload_wrong(it, "`%s` has more than three numbers", name);
        if (!number_of(it, at, name, &out[i])) return false;
    }
    return true;
}

static bool text_of(Workload *it, const JsonValue *object, const char *name, const char **out) {
    const JsonValue *value = json_field(object, name);
    if (value == NULL) return true;
    *out = value->text;
    return value->kind == JSON_TEXT || workload_wrong(it, "`%s` is not a text", name);
}

/* A word, or {"struct": [..]}: an array of these bytes, such as a table of addresses */
static bool read_array(Workload *it, const JsonValue *from, size_t *array) {
    Value value;
    if (from->kind == JSON_OBJECT)
        return value_of_json(it, from, 0, &value) && array_of_value(it, &value, from->name, array);
    if (from->kind != JSON_TEXT || !is_array_word(from->text))
        return workload_wrong(it, "its value has none of the forms in:FILE, inout:FILE, "
                                  "out:FILE:TYPE[..], zeros:TYPE[..], {\"struct\": [..]}");
    return array_word(it, from->text, from->name, array);
}

static bool read_arrays(Workload *it, const JsonValue *arrays) {
    size_t array;
    if (arrays == NULL) return true;
    if (arrays->kind != JSON_OBJECT) return workload_wrong(it, "`arrays` is not an object");
    for (const JsonValue *at = arrays->first; at != NULL; at = at->next) {
        it->where = arena_printf(it->arena, "array `%s`", at->name);
        if (!read_array(it, at, &array)) return false;
        vec_push(it->arena, &it->names, ((NamedArray){at->name, array}));
    }
    it->where = NULL;
    return true;
}

static bool read_arguments(Workload *it, const JsonValue *launch) {
    const JsonValue *list = json_field(launch, "arguments");
    if (list == NULL) return true;
    if (list->kind != JSON_LIST) return workload_wrong(it, "`arguments` is not a list");
    const char *where = it->where;
    for (const JsonValue *at = list->first; at != NULL; at = at->next) {
        Value value;
        it->where = arena_printf(it->arena, "%s, argument %zu", where, it->values.count);
        if (!value_of_json(it, at, 0, &value)) return false;
        vec_push(it->arena, &it->values, value);
    }
    it->where = where;
    return true;
}

static bool truth_of(Workload *it, const JsonValue *object, const char *name, bool *out) {
    const JsonValue *value = json_field(object, name);
    *out = value != NULL && value->truth;
    return value == NULL || value->kind == JSON_BOOL ||
           workload_wrong(it, "`%s` is not true or false", name);
}

static bool read_launch(Workload *it, const JsonValue *from, const char *ptx) {
    static const char *const names[] = {"ptx",         "entry",        "grid",
                                        "block",       "cluster",      "shared",
                                        "cooperative", "programmatic", "arguments"};
    const JsonValue *shared = json_field(from, "shared");
    bool cooperative;
    EmulatorLaunch launch = {.shared_bytes = 0};
    const char *entry = NULL;
    if (from->kind != JSON_OBJECT) return workload_wrong(it, "it is not an object");
    if (!known_fields(it, from, names, COUNT_OF(names)) || !text_of(it, from, "ptx", &ptx) ||
        !text_of(it, from, "entry", &entry) || !extents_of(it, from, "grid", launch.grid) ||
        !extents_of(it, from, "block", launch.block) ||
        !extents_of(it, from, "cluster", launch.cluster))
        return false;
    if (ptx == NULL) return workload_wrong(it, "`ptx` is missing, here and at the top");
    if (json_field(from, "grid") == NULL) return workload_wrong(it, "`grid` is missing");
    if (shared != NULL && !number_of(it, shared, "shared", &launch.shared_bytes)) return false;
    return truth_of(it, from, "programmatic", &launch.programmatic) &&
           truth_of(it, from, "cooperative", &cooperative) && read_arguments(it, from) &&
           add_launch(it, ptx, entry, cooperative, launch);
}

bool read_launches(Workload *it, const JsonValue *file) {
    static const char *const names[] = {"ptx", "arrays", "launches"};
    const JsonValue *launches = json_field(file, "launches");
    const char *ptx = NULL;
    if (file->kind != JSON_OBJECT) return workload_wrong(it, "a launch file is an object");
    if (!known_fields(it, file, names, COUNT_OF(names)) || !text_of(it, file, "ptx", &ptx) ||
        !read_arrays(it, json_field(file, "arrays")))
        return false;
    if (launches == NULL || launches->kind != JSON_LIST || launches->first == NULL)
        return workload_wrong(it, "`launches` is not a list of launches");
    for (const JsonValue *at = launches->first; at != NULL; at = at->next) {
        it->where = arena_printf(it->arena, "launch %zu", it->launches.count);
        if (it->launches.count == LAUNCHES_MOST)
            return workload_wrong(it, "there are more than %d launches", LAUNCHES_MOST);
        if (!read_launch(it, at, ptx)) return false;
    }
    it->where = NULL;
    return true;
}
