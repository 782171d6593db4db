/* Texts that grow, and their hashes. */
#include "tests/same/same.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void give_up(const char *why) {
    fprintf(stderr, "same-test: %s\n", why);
    exit(2);
}

void *reserve(void *old, size_t bytes) {
    void *items = realloc(old, bytes);
    if (items == NULL) give_up("no memory");
    return items;
}

void text_bytes(Text *text, const char *bytes, size_t length) {
    if (text->length + length + 1 > text->capacity) {
        text->capacity = 2 * (text->length + length + 1);
        text->items = reserve(text->items, text->capacity);
    }
    memcpy(text->items + text->length, bytes, length);
    text->length += length;
    text->items[text->length] = '\0';
}

void text_add(Text *text, const char *format, ...) {
    char *piece = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&piece, format, args);
    va_end(args);
    if (length < 0) give_up("no memory, or no processes");
    text_bytes(text, piece, (size_t)length);
    free(piece);
}

uint64_t hash_text(uint64_t hash, const char *text) {
    hash = (hash ^ (text != NULL)) * UINT64_C(0x100000001b3);
    for (const char *at = text; at != NULL && *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return (hash ^ 0xff) * UINT64_C(0x100000001b3); /* so that texts have an end */
}
