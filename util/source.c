/* Source text: bytes, where their lines start, and from an offset to a line and a column. */
#include "util/util.h"

#include <string.h>

Source *source_new(Arena *arena, const char *name, const char *text, size_t length) {
    Source *source = NEW(arena, Source);
    source->name = arena_copy(arena, name, strlen(name));
    source->text = arena_copy(arena, text, length);
    source->length = (uint32_t)length;

    uint32_t lines = 1;
    for (size_t i = 0; i < length; i++) lines += text[i] == '\n';
    uint32_t *starts = NEW_ARRAY(arena, uint32_t, lines);
    uint32_t line = 1;
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\n') starts[line++] = (uint32_t)i + 1;
    source->line_starts = starts;
    source->lines = lines;
    return source;
}

uint32_t source_line(const Source *source, uint32_t offset) {
    uint32_t low = 0, high = source->lines; /* the line is in [low, high) */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (source->line_starts[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    return low + 1;
}

void source_place(const Source *source, uint32_t offset, uint32_t *line, uint32_t *column) {
    if (offset > source->length) offset = source->length;
    *line = source_line(source, offset);
    uint32_t characters = 0;
    for (uint32_t i = source->line_starts[*line - 1]; i < offset; characters++) {
        int length = utf8_length(source->text + i, source->length - i);
        i += length ? (uint32_t)length : 1;
        if (i > offset) break; /* inside a character: that character's column */
    }
    *column = characters + 1;
}

Span span_join(Span a, Span b) { return (Span){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi}; }
