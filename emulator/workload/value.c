/* Values of arguments and of fields of structures: words and JSON -> bytes. */
#include "emulator/workload/private.h"

#include <errno.h>
#include <stdlib.h>

/* Structures inside each other, in one file or several */
enum { DEPTH_MOST = 16, BYTES_MOST = 32764 };

/* Of CUtensorMap in the headers of CUDA 13; in those of CUDA 12 it is 64 */
enum { MAP_ALIGNMENT = 128 };

/* ---- numbers --------------------------------------------------------------------------------- */

static bool integer_bytes(Workload *it, const ValueType *type, const char *text, uint64_t *out) {
    char *end;
    bool minus = text[0] == '-';
    const char *digits = minus ? text + 1 : text;
    errno = 0;
    uint64_t value = digits[0] >= '0' && digits[0] <= '9' ? strtoull(digits, &end, 0) : 0;
    if (digits[0] < '0' || digits[0] > '9' || *end != 0 || errno != 0)
        return workload_wrong(it, "`%s` is not an integer of 64 bits", text);
    uint32_t bits = 8 * type->bytes;
    uint64_t most = type->kind == ELEMENT_BOOLEAN  ? 1
                    : type->kind == ELEMENT_SIGNED ? (UINT64_C(1) << (bits - 1)) - !minus
                                                   : UINT64_MAX >> (64 - bits);
    if (value > most || (minus && value > 0 && type->kind != ELEMENT_SIGNED))
        return workload_wrong(it, "%s is outside of the range of `%s`", text, type->name);
    *out = minus ? 0 - value : value;
    return true;
}

static bool float_bytes(Workload *it, const ValueType *type, const char *text, void *out) {
    double value;
    if (!text_double(text, &value)) return workload_wrong(it, "`%s` is not a number", text);
    if (type->is_element)
        element_store(type->element, out, value);
    else
        memcpy(out, &value, sizeof value);
    return true;
}

static bool number_value(Workload *it, const ValueType *type, const char *text, Value *out) {
    unsigned char *bytes = arena_alloc(it->arena, 8);
    uint64_t bits = 0;
    bool is_float = type->kind == ELEMENT_FLOAT;
    if (is_float ? !float_bytes(it, type, text, bytes) : !integer_bytes(it, type, text, &bits))
        return false;
    if (!is_float) memcpy(bytes, &bits, sizeof bits);
    *out = (Value){is_float ? VALUE_FLOAT : VALUE_INTEGER, bytes, type->bytes, type->bytes, -1};
    return true;
}

/* ---- words ----------------------------------------------------------------------------------- */

static bool pointer_value(Workload *it, size_t array, uint64_t offset, Value *out) {
    uint64_t address = it->regions.items[array].base + offset;
    unsigned char *bytes = arena_alloc(it->arena, sizeof address);
    memcpy(bytes, &address, sizeof address);
    *out = (Value){VALUE_POINTER, bytes, 8, 8, (int)array};
    return true;
}

static bool raw_value(Workload *it, const char *name, Value *out) {
    size_t length;
    const char *bytes = file_text(it->arena, workload_path(it, name), &length, it->diags);
    if (bytes == NULL) {
        it->status = RUN_UNAVAILABLE;
        return false;
    }
    if (length == 0) return workload_wrong(it, "`%s` is empty", name);
    if (length > BYTES_MOST)
        return workload_wrong(it, "`%s` has %zu bytes, but the most is %d", name, length,
                              BYTES_MOST);
    *out = (Value){VALUE_BYTES, (const unsigned char *)bytes, (uint32_t)length, 1, -1};
    return true;
}

const JsonValue *json_of_file(Workload *it, const char *name) {
    size_t length;
    const char *path = workload_path(it, name), *why, *slash = strrchr(path, '/');
    const char *text = file_text(it->arena, path, &length, it->diags);
    if (text == NULL) {
        it->status = RUN_UNAVAILABLE;
        return NULL;
    }
    const JsonValue *json = json_read(it->arena, text, length, &why);
    if (json == NULL) workload_wrong(it, "`%s` is not JSON: %s", path, why);
    it->folder = slash != NULL ? arena_copy(it->arena, path, (size_t)(slash - path) + 1) : "";
    return json;
}

static bool struct_value(Workload *it, const JsonValue *fields, int depth, Value *out);

static bool file_value(Workload *it, const char *word, int depth, Value *out) {
    const char *folder = it->folder;
    bool is_map = strncmp(word, "map:", 4) == 0;
    const JsonValue *json = json_of_file(it, strchr(word, ':') + 1);
    bool fine = json != NULL &&
                (is_map ? map_value(it, json, out) : struct_value(it, json, depth + 1, out));
    it->folder = folder;
    return fine;
}

bool value_of_word(Workload *it, const char *word, int depth, Value *out) {
    const char *colon = strchr(word, ':');
    ValueType type;
    size_t array;
    uint64_t offset = 0;
    if (is_array_word(word))
        return array_word(it, word, NULL, &array) && pointer_value(it, array, 0, out);
    if (strncmp(word, "array:", 6) == 0)
        return array_again(it, word + 6, &array, &offset) && pointer_value(it, array, offset, out);
    if (strncmp(word, "raw:", 4) == 0) return raw_value(it, word + 4, out);
    if (strncmp(word, "map:", 4) == 0 || strncmp(word, "struct:", 7) == 0)
        return file_value(it, word, depth, out);
    if (colon != NULL && value_type(word, (size_t)(colon - word), &type))
        return number_value(it, &type, colon + 1, out);
    return workload_wrong(it,
                          "`%s` has none of the forms i32:7, f32:2.5, in:FILE, inout:FILE, "
                          "out:FILE:TYPE[..], zeros:TYPE[..], array:NAME, map:FILE, "
                          "struct:FILE, raw:FILE",
                          word);
}

/* ---- structures ------------------------------------------------------------------------------ */

typedef struct Structure {
    unsigned char bytes[BYTES_MOST];
    uint32_t size, alignment;
} Structure;

/* A whole number of a field of a structure; `otherwise` without it */
static bool bytes_of(Workload *it, const JsonValue *field, const char *name, uint32_t otherwise,
                     uint32_t *out) {
    const JsonValue *value = json_field(field, name);
    *out = otherwise;
    if (value == NULL) return true;
    if (value->kind != JSON_NUMBER || !value->is_integer || value->integer < 0 ||
        value->integer > BYTES_MOST)
        return workload_wrong(it, "`%s` is not a number of bytes from 0 to %d", name, BYTES_MOST);
    *out = (uint32_t)value->integer;
    return true;
}

/* A field lies at the next multiple of its alignment, as in C, or where "at" says. */
static bool add_field(Workload *it, Structure *to, const JsonValue *field, int depth) {
    Value value;
    uint32_t alignment, offset;
    if (!value_of_json(it, field, depth, &value)) return false;
    uint32_t usual = value.kind == VALUE_MAP ? MAP_ALIGNMENT : value.alignment;
    if (!bytes_of(it, field, "align", usual, &alignment)) return false;
    if (alignment == 0 || alignment > 4096 || (alignment & (alignment - 1)))
        return workload_wrong(it, "`align` is not a power of two");
    uint32_t next = (to->size + alignment - 1) / alignment * alignment;
    if (!bytes_of(it, field, "at", next, &offset)) return false;
    if (value.kind == VALUE_MAP && offset % EMULATOR_MAP_ALIGNMENT)
        return workload_wrong(it, "a tensor map at byte %u must be at a multiple of %d", offset,
                              EMULATOR_MAP_ALIGNMENT);
    if (offset > BYTES_MOST || value.size > BYTES_MOST - offset)
        return workload_wrong(it, "a structure has more than %d bytes", BYTES_MOST);
    memcpy(to->bytes + offset, value.bytes, value.size);
    if (offset + value.size > to->size) to->size = offset + value.size;
    if (alignment > to->alignment) to->alignment = alignment;
    return true;
}

static bool struct_value(Workload *it, const JsonValue *fields, int depth, Value *out) {
    if (fields->kind != JSON_LIST || fields->first == NULL)
        return workload_wrong(it, "a structure is a list of fields");
    if (depth > DEPTH_MOST)
        return workload_wrong(it, "structures are nested more than %d deep", DEPTH_MOST);
    Structure *all = NEW(it->arena, Structure);
    all->alignment = 1;
    for (const JsonValue *field = fields->first; field != NULL; field = field->next)
        if (!add_field(it, all, field, depth)) return false;
    all->size = (all->size + all->alignment - 1) / all->alignment * all->alignment;
    if (all->size > BYTES_MOST)
        return workload_wrong(it, "a structure has more than %d bytes", BYTES_MOST);
    *out = (Value){VALUE_BYTES, all->bytes, all->size, all->alignment, -1};
    return true;
}

bool value_of_json(Workload *it, const JsonValue *json, int depth, Value *out) {
    static const char *const names[] = {"at", "align", "value", "map", "struct"};
    if (json->kind == JSON_TEXT) return value_of_word(it, json->text, depth, out);
    if (json->kind != JSON_OBJECT || !known_fields(it, json, names, COUNT_OF(names)))
        return it->status == RUN_DONE &&
               workload_wrong(it, "a value is a text such as \"i32:7\", or an object with one of "
                                  "`value`, `map` and `struct`");
    const JsonValue *value = json_field(json, "value"), *map = json_field(json, "map"),
                    *fields = json_field(json, "struct");
    if ((value != NULL) + (map != NULL) + (fields != NULL) != 1)
        return workload_wrong(it, "a value has exactly one of `value`, `map` and `struct`");
    if (map != NULL) return map_value(it, map, out);
    if (fields != NULL) return struct_value(it, fields, depth + 1, out);
    if (value->kind != JSON_TEXT)
        return workload_wrong(it, "`value` is not a text such as \"i32:7\"");
    return value_of_word(it, value->text, depth, out);
}
