/* JSON (RFC 8259): text -> tree. Strict: no comments, no trailing commas, UTF-8 only. Texts with
 * NUL, and brackets deeper than JSON_DEPTH_MAX, are malformed. */
#include "util/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct Reader {
    Arena *arena;
    const char *begin, *at, *end; /* *end is NUL */
    const char *why;              /* NULL: no fault so far */
} Reader;

static void fail(Reader *reader, const char *what) {
    size_t line = 1;
    if (reader->why != NULL) return;
    for (const char *at = reader->begin; at < reader->at; at++) line += *at == '\n';
    reader->why = arena_printf(reader->arena, "line %zu: %s", line, what);
}

static void blank(Reader *reader) { reader->at += strspn(reader->at, " \t\r\n"); }

/* The character after blanks, if it is `c`, is taken. */
static bool take(Reader *reader, char c) {
    blank(reader);
    if (reader->at == reader->end || *reader->at != c) return false;
    reader->at++;
    return true;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* The four digits after \u; 0 after a fault */
static uint32_t hex_digits(Reader *reader) {
    char digits[5] = {0};
    if (strspn(reader->at, "0123456789abcdefABCDEF") < 4) {
        fail(reader, "`\\u` needs four hexadecimal digits");
        return 0;
    }
    memcpy(digits, reader->at, 4);
    reader->at += 4;
    return (uint32_t)strtoul(digits, NULL, 16);
}

static void add_utf8(Str *text, uint32_t c) {
    if (c < 0x80) {
        str_char(text, (char)c);
        return;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};
    str_char(text, (char)(first[more] | c >> (6 * more)));
    while (more-- > 0) str_char(text, (char)(0x80 | (c >> (6 * more) & 63)));
}

/* After \u: one character, which UTF-16 may spell as two halves */
static void add_unicode(Reader *reader, Str *text) {
    uint32_t c = hex_digits(reader);
    if (c >= 0xD800 && c < 0xDC00 && strncmp(reader->at, "\\u", 2) == 0) {
        reader->at += 2;
        uint32_t low = hex_digits(reader);
        c = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00) : 0;
    }
    if (c == 0 || (c >= 0xD800 && c < 0xE000))
        fail(reader, "`\\u` does not name a character");
    else
        add_utf8(text, c);
}

static void add_escape(Reader *reader, Str *text) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = *reader->at;
    const char *escape = c != 0 ? strchr(from, c) : NULL;
    if (c == 'u') {
        reader->at++;
        add_unicode(reader, text);
    } else if (escape != NULL) {
        str_char(text, to[escape - from]);
        reader->at++;
    } else {
        fail(reader, "unknown escape in a text");
    }
}

/* The text whose opening quote was taken */
static const char *read_text(Reader *reader) {
    Str text = str_new(reader->arena);
    while (reader->why == NULL && *reader->at != '"') {
        int length = utf8_length(reader->at, (size_t)(reader->end - reader->at));
        if ((unsigned char)*reader->at < ' ') { /* includes the end */
            fail(reader, "text is not closed, or contains a control character");
        } else if (*reader->at == '\\') {
            reader->at++;
            add_escape(reader, &text);
        } else if (length == 0) {
            fail(reader, "text is not valid UTF-8");
        } else {
            str_add_bytes(&text, reader->at, (size_t)length);
            reader->at += length;
        }
    }
    if (reader->why == NULL) reader->at++;
    return text.text;
}

/* ---- numbers and words ----------------------------------------------------------------------- */

static size_t digits(const char *at) { return strspn(at, "0123456789"); }

/* Length of the number at `at`; 0: there is none. *is_integer: no fraction, no exponent */
static size_t number_length(const char *at, bool *is_integer) {
    const char *end = at + (*at == '-');
    size_t whole = digits(end);
    if (whole == 0 || (whole > 1 && *end == '0')) return 0;
    end += whole;
    *is_integer = *end != '.' && *end != 'e' && *end != 'E';
    if (*end == '.') {
        if (digits(end + 1) == 0) return 0;
        end += 1 + digits(end + 1);
    }
    if (*end == 'e' || *end == 'E') {
        end += 1 + (end[1] == '-' || end[1] == '+');
        if (digits(end) == 0) return 0;
        end += digits(end);
    }
    return (size_t)(end - at);
}

static void read_number(Reader *reader, JsonValue *value) {
    size_t length = number_length(reader->at, &value->is_integer);
    if (length == 0) {
        fail(reader, "a value is missing or malformed");
        return;
    }
    value->kind = JSON_NUMBER;
    value->number = strtod(reader->at, NULL);
    errno = 0;
    value->integer = value->is_integer ? strtoll(reader->at, NULL, 10) : 0;
    if (errno == ERANGE) value->is_integer = false;
    reader->at += length;
}

static bool read_word(Reader *reader, JsonValue *value) {
    static const struct {
        const char *word;
        JsonKind kind;
        bool truth;
    } words[] = {
        {"null", JSON_NULL, false}, {"true", JSON_BOOL, true}, {"false", JSON_BOOL, false}};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        size_t length = strlen(words[i].word);
        if (strncmp(reader->at, words[i].word, length) != 0) continue;
        reader->at += length;
        value->kind = words[i].kind;
        value->truth = words[i].truth;
        return true;
    }
    return false;
}

/* ---- values ---------------------------------------------------------------------------------- */

static JsonValue *read_value(Reader *reader, int depth);

/* The values up to the closing bracket, whose opening one was taken */
static void read_inside(Reader *reader, JsonValue *value, char close, int depth) {
    const JsonValue **last = &value->first;
    if (depth == JSON_DEPTH_MAX) fail(reader, "brackets are nested too deeply");
    if (take(reader, close)) return;
    while (reader->why == NULL) {
        const char *name = NULL;
        if (close == '}') {
            if (!take(reader, '"')) fail(reader, "the name of a field is missing");
            name = reader->why == NULL ? read_text(reader) : NULL;
            if (reader->why == NULL && !take(reader, ':')) fail(reader, "`:` is missing");
        }
        if (reader->why != NULL) return;
        JsonValue *item = read_value(reader, depth + 1);
        item->name = name;
        *last = item;
        last = &item->next;
        if (reader->why != NULL || take(reader, close)) return;
        if (!take(reader, ',')) fail(reader, "`,` or a closing bracket is missing");
    }
}

static JsonValue *read_value(Reader *reader, int depth) {
    JsonValue *value = NEW(reader->arena, JsonValue);
    if (take(reader, '{')) {
        value->kind = JSON_OBJECT;
        read_inside(reader, value, '}', depth);
    } else if (take(reader, '[')) {
        value->kind = JSON_LIST;
        read_inside(reader, value, ']', depth);
    } else if (take(reader, '"')) {
        value->kind = JSON_TEXT;
        value->text = read_text(reader);
    } else if (!read_word(reader, value)) {
        read_number(reader, value);
    }
    return value;
}

const JsonValue *json_read(Arena *arena, const char *text, size_t length, const char **why) {
    const char *copy = arena_copy(arena, text, length);
    Reader reader = {.arena = arena, .begin = copy, .at = copy, .end = copy + length};
    const JsonValue *value = read_value(&reader, 0);
    blank(&reader);
    if (reader.at != reader.end) fail(&reader, "text after the value");
    *why = reader.why;
    return reader.why == NULL ? value : NULL;
}

const JsonValue *json_field(const JsonValue *object, const char *name) {
    if (object == NULL || object->kind != JSON_OBJECT) return NULL;
    for (const JsonValue *field = object->first; field != NULL; field = field->next)
        if (strcmp(field->name, name) == 0) return field;
    return NULL;
}
