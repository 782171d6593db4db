/* util: reads JSON (RFC 8259): a text -> a tree of values in an arena, or the first fault and its
 * line. */
#ifndef PIPEC_UTIL_JSON_H
#define PIPEC_UTIL_JSON_H

#include "util/util.h"

/* Most lists and objects inside each other: deeper texts are malformed */
#define JSON_DEPTH_MAX 64

typedef enum JsonKind {
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_TEXT,
    JSON_LIST,
    JSON_OBJECT
} JsonKind;

typedef struct JsonValue {
    JsonKind kind;
    bool truth;      /* JSON_BOOL */
    bool is_integer; /* JSON_NUMBER: without fraction and exponent, and fits `integer` */
    int64_t integer;
    double number;    /* JSON_NUMBER; infinite if it is too large */
    const char *text; /* JSON_TEXT: valid UTF-8 without NUL */
    const char *name; /* of a field of an object, otherwise NULL */
    /* of a list or object: the first value in it; and the value after this one */
    const struct JsonValue *first, *next;
} JsonValue;

/* Reads the whole text. NULL: it is malformed; *why is a sentence that begins with the line. */
const JsonValue *json_read(Arena *arena, const char *text, size_t length, const char **why);
/* The first field with this name; NULL if there is none, or if the value is no object */
const JsonValue *json_field(const JsonValue *object, const char *name);

#endif
