/* Types of numbers and arrays: the element types of pipec, and those that only other PTX has. */
#include "emulator/workload/private.h"

static const ValueType others[] = {{"f64", 8, ELEMENT_FLOAT, "<f8", 8, false, E_F32},
                                   {"i16", 2, ELEMENT_SIGNED, "<i2", 1, false, E_F32},
                                   {"u16", 2, ELEMENT_UNSIGNED, "<u2", 1, false, E_F32}};

static ValueType of_element(Element element) {
    const ElementRow *row = &element_rows[element];
    return (ValueType){row->spelling, (uint32_t)row->bytes, row->kind, row->npy, row->map, true,
                       element};
}

static bool is_name(const ValueType *type, const char *name, size_t length) {
    return strlen(type->name) == length && memcmp(type->name, name, length) == 0;
}

bool value_type(const char *name, size_t length, ValueType *out) {
    for (Element element = 0; element < E_COUNT; element++) {
        *out = of_element(element);
        if (is_name(out, name, length)) return true;
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        *out = others[i];
        if (is_name(out, name, length)) return true;
    }
    return false;
}

int map_type_of_dtype(const char *descr) {
    const char *dtype = strchr("<>=|", descr[0]) != NULL ? descr + 1 : descr;
    for (Element element = 0; element < E_COUNT; element++)
        if (strcmp(element_rows[element].npy + 1, dtype) == 0 && element_rows[element].map >= 0)
            return element_rows[element].map;
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (strcmp(others[i].npy + 1, dtype) == 0) return others[i].map;
    return -1;
}
