/* Source text: its bytes, the starts of its lines, and the conversion of an offset to line and
 * column. */
#include "util/util.h"

#include <string.h>

/* Columns are counted in characters. A table holds the count of characters at every multiple of
 * STRIDE bytes, so that a position in a long line is found without scanning the whole line. */
#define STRIDE 1024

struct Milestone {
    /* of the first character that begins at or after the multiple of STRIDE */
    uint32_t offset;
    uint32_t characters; /* in the text before it */
};

static uint32_t next_character(const Source *source, uint32_t at) {
    if ((unsigned char)source->text[at] < 0x80) return at + 1;
    int length = utf8_length(source->text + at, source->length - at);
    return at + (length ? (uint32_t)length : 1);
}

static void set_milestones(Arena *arena, Source *source) {
    struct Milestone *stones = NEW_ARRAY(arena, struct Milestone, source->length / STRIDE + 1);
    uint32_t at = 0, characters = 0;
    for (uint32_t stone = 0; stone * STRIDE <= source->length; stone++) {
        while (at < stone * STRIDE) {
            uint32_t plain = (uint32_t)ascii_length(source->text + at, stone * STRIDE - at);
            characters += plain > 0 ? plain : 1;
            at = plain > 0 ? at + plain : next_character(source, at);
        }
        stones[stone] = (struct Milestone){at, characters};
    }
    source->milestones = stones;
}

/* Number of characters that end at or before `offset`: a byte inside a character counts as that
 * character */
static uint32_t characters_before(const Source *source, uint32_t offset) {
    uint32_t stone = offset / STRIDE;
    if (source->milestones[stone].offset > offset) stone--;
    uint32_t characters = source->milestones[stone].characters;
    for (uint32_t at = source->milestones[stone].offset; at < offset; characters++) {
        at = next_character(source, at);
        if (at > offset) break;
    }
    return characters;
}

/* Where the line after the one at `at` starts; NULL: that one is the last */
static const char *next_line(const char *at, const char *end) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return newline ? newline + 1 : NULL;
}

static void set_lines(Arena *arena, Source *source) {
    const char *end = source->text + source->length;
    for (const char *at = source->text; at; at = next_line(at, end)) source->lines++;
    uint32_t *starts = NEW_ARRAY(arena, uint32_t, source->lines), line = 0;
    for (const char *at = source->text; at; at = next_line(at, end))
        starts[line++] = (uint32_t)(at - source->text);
    source->line_starts = starts;
}

Source *source_new(Arena *arena, const char *name, const char *text, size_t length) {
    return source_of(arena, name, arena_copy(arena, text, length), length);
}

Source *source_of(Arena *arena, const char *name, const char *text, size_t length) {
    Source *source = NEW(arena, Source);
    source->name = arena_copy(arena, name, strlen(name));
    source->text = text;
    source->length = (uint32_t)length;
    set_lines(arena, source);
    set_milestones(arena, source);
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
    uint32_t start = source->line_starts[*line - 1], bytes = offset - start;
    if (bytes < STRIDE && ascii_length(source->text + start, bytes) == bytes)
        *column = bytes + 1;
    else
        *column = characters_before(source, offset) - characters_before(source, start) + 1;
}

Span span_join(Span a, Span b) {
    return (Span){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}
