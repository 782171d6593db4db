/* python: element types, as pipec, DLPack and the buffer protocol name them. */
#include "python/src/private.h"

static const struct {
    const char *name; /* in pipec */
    DLType type;
} rows[] = {{"f32", {DL_FLOAT, 32, 1}},   {"tf32", {DL_FLOAT, 32, 1}}, {"f16", {DL_FLOAT, 16, 1}},
            {"bf16", {DL_BFLOAT, 16, 1}}, {"e4m3", {DL_E4M3FN, 8, 1}}, {"e5m2", {DL_E5M2, 8, 1}},
            {"i8", {DL_INT, 8, 1}},       {"u8", {DL_UINT, 8, 1}},     {"i32", {DL_INT, 32, 1}},
            {"u32", {DL_UINT, 32, 1}},    {"i64", {DL_INT, 64, 1}},    {"u64", {DL_UINT, 64, 1}}};

bool type_of(const char *name, DLType *type) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0) {
            *type = rows[i].type;
            return true;
        }
    return false;
}

const char *type_name(DLType type) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].type.code == type.code && rows[i].type.bits == type.bits && type.lanes == 1)
            return rows[i].name;
    return NULL;
}

/* One letter of the module `struct`, after the mark of a byte order */
bool type_of_format(const char *format, Py_ssize_t bytes, DLType *type) {
    if (format == NULL) format = "B"; /* as the protocol says */
    if (*format == '@' || *format == '=' || *format == '<') format++;
    if (*format == 0 || format[1] != 0 || bytes < 1 || bytes > 8) return false;
    int code = strchr("bhilqn", *format) != NULL   ? DL_INT
               : strchr("BHILQN", *format) != NULL ? DL_UINT
               : strchr("efd", *format) != NULL    ? DL_FLOAT
               : *format == '?'                    ? DL_BOOL
                                                   : -1;
    *type = (DLType){(uint8_t)code, (uint8_t)(8 * bytes), 1};
    return code >= 0;
}

bool type_matches(DLType given, DLType wanted, bool *bits) {
    if (given.lanes != 1 || given.bits != wanted.bits) return false;
    if (given.code == wanted.code) return true;
    *bits = given.code == DL_UINT && (wanted.code == DL_BFLOAT || wanted.bits == 8) &&
            wanted.code != DL_INT;
    return *bits;
}

void type_print(DLType type, char *out, size_t bytes) {
    const char *word = type.code == DL_INT       ? "int"
                       : type.code == DL_UINT    ? "uint"
                       : type.code == DL_FLOAT   ? "float"
                       : type.code == DL_BFLOAT  ? "bfloat"
                       : type.code == DL_COMPLEX ? "complex"
                       : type.code == DL_BOOL    ? "bool"
                       : type.code == DL_E4M3FN  ? "float8_e4m3fn"
                       : type.code == DL_E5M2    ? "float8_e5m2"
                                                 : NULL;
    if (word == NULL)
        snprintf(out, bytes, "a type of %d bits with DLPack's code %d", type.bits, type.code);
    else if (type.code == DL_BOOL || type.code == DL_E4M3FN || type.code == DL_E5M2)
        snprintf(out, bytes, "%s", word);
    else
        snprintf(out, bytes, "%s%d", word, type.bits);
    if (type.lanes != 1) snprintf(out, bytes, "vectors of %d elements", type.lanes);
}
