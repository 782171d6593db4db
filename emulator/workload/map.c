/* Tensor maps: the fields of cuTensorMapEncodeTiled as JSON -> the emulator's 128 bytes. Fields
 * that are missing follow from the array. */
#include "emulator/workload/private.h"

typedef struct Fields {
    Workload *it;
    const JsonValue *json;
    size_t array;
    EmulatorMap map;
} Fields;

/* A list of `rank` numbers from `least`; false: missing or wrong (it->status) */
static bool numbers(const Fields *fields, const char *name, int64_t least, uint32_t *count,
                    uint64_t *out) {
    const JsonValue *list = json_field(fields->json, name);
    uint32_t found = 0;
    if (list == NULL) return false;
    if (list->kind != JSON_LIST)
        return workload_wrong(fields->it, "`%s` of a tensor map is not a list of numbers", name);
    for (const JsonValue *at = list->first; at != NULL; at = at->next) {
        if (at->kind != JSON_NUMBER || !at->is_integer || at->integer < least || found == MAX_RANK)
            return workload_wrong(fields->it,
                                  "`%s` of a tensor map is not a list of at most %d whole numbers "
                                  "from %lld",
                                  name, MAX_RANK, (long long)least);
        out[found++] = (uint64_t)at->integer;
    }
    if (*count != 0 && found != *count)
        return workload_wrong(fields->it, "`%s` of a tensor map has %u numbers, but needs %u", name,
                              found, *count);
    *count = found;
    return true;
}

static bool fine(const Fields *fields) { return fields->it->status == RUN_DONE; }

/* "array": a word, a name, or the number of an argument */
static bool read_array(Fields *fields) {
    Workload *it = fields->it;
    const JsonValue *array = json_field(fields->json, "array");
    uint64_t offset = 0;
    if (array == NULL || (array->kind != JSON_TEXT && !(array->kind == JSON_NUMBER &&
                                                        array->is_integer && array->integer >= 0)))
        return workload_wrong(it, "`array` of a tensor map is neither a text nor the number of an "
                                  "argument");
    const char *text = array->kind == JSON_TEXT
                           ? array->text
                           : arena_printf(it->arena, "%lld", (long long)array->integer);
    if (is_array_word(text)) {
        if (!array_word(it, text, NULL, &fields->array)) return false;
    } else if (!array_again(it, strncmp(text, "array:", 6) ? text : text + 6, &fields->array,
                            &offset)) {
        return false;
    }
    fields->map.address = it->regions.items[fields->array].base + offset;
    return true;
}

static bool read_type(Fields *fields) {
    Workload *it = fields->it;
    const JsonValue *type = json_field(fields->json, "type");
    ValueType row;
    int number = map_type_of_dtype(it->arrays.items[fields->array].data.descr);
    if (type != NULL && type->kind == JSON_TEXT)
        number = value_type(type->text, strlen(type->text), &row) ? row.map : -1;
    if (number < 0 || (type != NULL && type->kind != JSON_TEXT))
        return workload_wrong(it, "`type` of a tensor map is not a type that it can hold");
    fields->map.type = (uint32_t)number;
    return true;
}

/* The shape of the array, innermost dimension first */
static bool extents_of_array(Fields *fields) {
    const NpyData *data = &fields->it->arrays.items[fields->array].data;
    if (data->rank < 1 || data->rank > MAX_RANK)
        return workload_wrong(fields->it,
                              "a tensor map of an array of %d dimensions needs "
                              "`extents`",
                              data->rank);
    fields->map.rank = (uint32_t)data->rank;
    for (int i = 0; i < data->rank; i++)
        fields->map.extents[i] = (uint64_t)data->shape[data->rank - 1 - i];
    return true;
}

/* Strides of dimensions 1 ..; without gaps if they are missing */
static bool read_strides(Fields *fields) {
    EmulatorMap *map = &fields->map;
    uint32_t count = map->rank - 1;
    uint64_t stride = emulator_map_element(map->type);
    if (count == 0 || numbers(fields, "strides", 0, &count, map->strides + 1)) return fine(fields);
    for (uint32_t i = 1; i < map->rank && fine(fields); i++) {
        if (__builtin_mul_overflow(stride, map->extents[i - 1], &stride))
            return workload_wrong(fields->it, "the strides of a tensor map do not fit 64 bits");
        map->strides[i] = stride;
    }
    return fine(fields);
}

static bool read_box(Fields *fields) {
    uint64_t box[MAX_RANK] = {0};
    if (!numbers(fields, "box", 1, &fields->map.rank, box))
        return fine(fields) && workload_wrong(fields->it, "`box` of a tensor map is missing");
    for (uint32_t i = 0; i < fields->map.rank; i++)
        fields->map.box[i] = box[i] > UINT32_MAX ? UINT32_MAX : (uint32_t)box[i];
    return true;
}

static bool read_swizzle(Fields *fields) {
    const JsonValue *swizzle = json_field(fields->json, "swizzle");
    if (swizzle == NULL) return true;
    bool number = swizzle->kind == JSON_NUMBER && swizzle->is_integer;
    if (swizzle->kind == JSON_TEXT && !strcmp(swizzle->text, "none"))
        fields->map.swizzle = SWIZZLE_NONE;
    else if (number &&
             (swizzle->integer == 32 || swizzle->integer == 64 || swizzle->integer == 128))
        fields->map.swizzle = swizzle->integer == 32   ? SWIZZLE_32
                              : swizzle->integer == 64 ? SWIZZLE_64
                                                       : SWIZZLE_128;
    else
        return workload_wrong(fields->it, "`swizzle` of a tensor map is not \"none\", 32, 64 or "
                                          "128");
    return true;
}

static bool is_text(const JsonValue *value, const char *text) {
    return value == NULL || (value->kind == JSON_TEXT && strcmp(value->text, text) == 0);
}

/* Forms that the driver has, but the emulator does not */
static bool check_rest(Fields *fields) {
    uint64_t strides[MAX_RANK];
    uint32_t count = fields->map.rank;
    bool ones = true;
    if (numbers(fields, "element_strides", 1, &count, strides))
        for (uint32_t i = 0; i < count; i++) ones &= strides[i] == 1;
    if (!fine(fields)) return false;
    if (ones && is_text(json_field(fields->json, "interleave"), "none") &&
        is_text(json_field(fields->json, "fill"), "zeros"))
        return true;
    diag_plain(fields->it->diags, P0701,
               "the emulator does not model tensor maps with element strides other than 1, "
               "interleaving, or a fill other than zeros");
    fields->it->status = RUN_INCOMPLETE;
    return false;
}

bool map_value(Workload *it, const JsonValue *json, Value *out) {
    static const char *const names[] = {"array",           "type",       "extents",
                                        "strides",         "box",        "swizzle",
                                        "element_strides", "interleave", "fill"};
    Fields fields = {.it = it, .json = json};
    if (json->kind != JSON_OBJECT) return workload_wrong(it, "a tensor map is an object");
    if (!known_fields(it, json, names, COUNT_OF(names)) || !read_array(&fields) ||
        !read_type(&fields))
        return false;
    if (!numbers(&fields, "extents", 0, &fields.map.rank, fields.map.extents) &&
        (!fine(&fields) || !extents_of_array(&fields)))
        return false;
    if (fields.map.rank == 0) return workload_wrong(it, "`extents` of a tensor map is empty");
    if (!read_strides(&fields) || !read_box(&fields) || !read_swizzle(&fields) ||
        !check_rest(&fields))
        return false;
    unsigned char *bytes = arena_alloc(it->arena, EMULATOR_MAP_BYTES);
    it->status =
        emulator_encode_map(&fields.map, it->arrays.items[fields.array].label, bytes, it->diags);
    *out = (Value){VALUE_MAP, bytes, EMULATOR_MAP_BYTES, EMULATOR_MAP_ALIGNMENT, (int)fields.array};
    return fine(&fields);
}
