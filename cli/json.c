/* cli: results as JSON, one object per line on standard output. */
#include "cli/cli.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Length in bytes of the UTF-8 character at `text`; 0 if it is not valid */
static size_t character(const unsigned char *text) {
    static const unsigned char lead[] = {0xc2, 0xe0, 0xf0};
    static const uint32_t least[] = {0x80, 0x800, 0x10000};
    if (text[0] < 0x80) return 1;
    size_t more = text[0] >= 0xf0 ? 3 : text[0] >= 0xe0 ? 2 : 1;
    if (text[0] < lead[more - 1] || text[0] > 0xf4) return 0;
    uint32_t code = text[0] & (0x3fu >> more);
    for (size_t i = 1; i <= more; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    bool fine = code >= least[more - 1] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return fine ? more + 1 : 0;
}

static void quote(const char *text) {
    putchar('"');
    for (const unsigned char *at = (const unsigned char *)text; *at != 0;) {
        size_t bytes = character(at);
        if (bytes == 0)
            fputs("\\ufffd", stdout), bytes = 1;
        else if (*at == '"' || *at == '\\')
            printf("\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            printf("\\u%04x", *at);
        else
            fwrite(at, 1, bytes, stdout);
        at += bytes;
    }
    putchar('"');
}

static void name(Json *json, const char *text) {
    if (json->any) putchar(',');
    json->any = true;
    if (text == NULL) return;
    quote(text);
    putchar(':');
}

Json json_open(Json *in, const char *field, char bracket) {
    if (in != NULL) name(in, field);
    putchar(bracket);
    return (Json){.close = bracket == '[' ? ']' : '}'};
}

void json_close(const Json *json) { putchar(json->close); }

void json_text(Json *json, const char *field, const char *text) {
    name(json, field);
    if (text != NULL)
        quote(text);
    else
        fputs("null", stdout);
}

void json_number(Json *json, const char *field, double number) {
    name(json, field);
    if (isfinite(number))
        printf("%.9g", number);
    else
        fputs("null", stdout);
}

void json_integer(Json *json, const char *field, int64_t number) {
    name(json, field);
    printf("%" PRId64, number);
}

void json_bool(Json *json, const char *field, bool value) {
    name(json, field);
    fputs(value ? "true" : "false", stdout);
}
