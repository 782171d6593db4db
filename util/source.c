/* Source text: its bytes, its files, the starts of its lines, and the conversion of an offset to
 * file, line and column. */
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
    SourceFile *file = NEW(arena, SourceFile);
    *file = (SourceFile){.name = source->name, .path = "", .hi = source->length};
    source->files = file;
    source->file_count = 1;
    return source;
}

/* The newline between two files belongs to the first one, so that its end is a place in it. */
Source *source_join(Arena *arena, const SourceText *texts, size_t count) {
    size_t length = count - 1;
    for (size_t i = 0; i < count; i++) length += texts[i].length;
    char *whole = arena_alloc(arena, length + 1);
    SourceFile *files = NEW_ARRAY(arena, SourceFile, count);
    uint32_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0) whole[at++] = '\n';
        memcpy(whole + at, texts[i].text, texts[i].length);
        files[i] = (SourceFile){.name = arena_copy(arena, texts[i].name, strlen(texts[i].name)),
                                .path = arena_copy(arena, texts[i].path, strlen(texts[i].path)),
                                .lo = at,
                                .hi = at + (uint32_t)texts[i].length};
        at = files[i].hi;
    }
    Source *source = source_of(arena, texts[0].name, whole, length);
    for (size_t i = 0; i < count; i++) files[i].rows = source_row(source, files[i].lo) - 1;
    source->files = files;
    source->file_count = (uint32_t)count;
    return source;
}

Source *source_copy(Arena *arena, const Source *source) {
    SourceText *texts = NEW_ARRAY(arena, SourceText, source->file_count);
    for (uint32_t i = 0; i < source->file_count; i++) {
        const SourceFile *file = &source->files[i];
        texts[i] =
            (SourceText){file->name, file->path, source->text + file->lo, file->hi - file->lo};
    }
    return source_join(arena, texts, source->file_count);
}

const SourceFile *source_file(const Source *source, uint32_t offset) {
    uint32_t low = 0, high = source->file_count; /* the file is in [low, high) */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (source->files[middle].lo <= offset)
            low = middle;
        else
            high = middle;
    }
    return &source->files[low];
}

uint32_t source_line(const Source *source, uint32_t offset) {
    return source_row(source, offset) - source_file(source, offset)->rows;
}

const char *source_where(Arena *arena, const Source *source, uint32_t offset, uint32_t from) {
    const SourceFile *file = source_file(source, offset);
    const char *line = arena_printf(arena, "line %u", (unsigned)source_line(source, offset));
    return file == source_file(source, from) ? line
                                             : arena_printf(arena, "%s of `%s`", line, file->name);
}

uint32_t source_row(const Source *source, uint32_t offset) {
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
    uint32_t row = source_row(source, offset);
    *line = row - source_file(source, offset)->rows;
    uint32_t start = source->line_starts[row - 1], bytes = offset - start;
    if (bytes < STRIDE && ascii_length(source->text + start, bytes) == bytes)
        *column = bytes + 1;
    else
        *column = characters_before(source, offset) - characters_before(source, start) + 1;
}

Span span_join(Span a, Span b) {
    return (Span){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}
