/* Comments that silence a warning or note at a line, with the reason: `// allow P0241: the
 * reason`. Reads the comments of a text to allows; warns about those that are malformed or
 * silence nothing. A comment that does not begin with `allow` and a code is prose. */
#include "util/util.h"

#include <string.h>

typedef struct Reader {
    const Source *source;
    Diags *diags;
    Levels *levels;
    const Span *comments;
    size_t count;
    /* the comments up to number `through` have no token between them and offset `end` */
    size_t through;
    uint32_t end;
} Reader;

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static bool is_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static uint32_t skip_blanks(const Source *source, uint32_t at, uint32_t end) {
    while (at < end && is_blank(source->text[at])) at++;
    return at;
}

static bool is_code_at(const Source *source, uint32_t at, uint32_t end) {
    return at + 1 < end && (source->text[at] | 0x20) == 'p' && source->text[at + 1] >= '0' &&
           source->text[at + 1] <= '9';
}

/* Offset of the first code of an allow; the end of the comment if it is no allow */
static uint32_t first_code(const Source *source, Span comment) {
    static const char word[] = "allow";
    uint32_t length = sizeof word - 1, at = skip_blanks(source, comment.lo + 2, comment.hi);
    if (source->text[comment.lo + 1] != '/' || comment.hi - at <= length ||
        memcmp(source->text + at, word, length) != 0)
        return comment.hi;
    uint32_t code = skip_blanks(source, at + length, comment.hi);
    return code > at + length && is_code_at(source, code, comment.hi) ? code : comment.hi;
}

/* The row that a comment applies to: its own if tokens precede it there, otherwise the next one
 * of its file with tokens */
static uint32_t row_of(Reader *reader, size_t index) {
    const Source *source = reader->source;
    uint32_t row = source_row(source, reader->comments[index].lo),
             at = source->line_starts[row - 1],
             end = source_file(source, reader->comments[index].lo)->hi;
    if (skip_blanks(source, at, reader->comments[index].lo) < reader->comments[index].lo)
        return row;
    if (index <= reader->through && reader->end > 0) return source_row(source, reader->end);
    for (at = reader->comments[index].hi; at < end;) {
        if (is_blank(source->text[at]) || source->text[at] == '\n')
            at++;
        else if (index + 1 < reader->count && reader->comments[index + 1].lo == at)
            at = reader->comments[++index].hi;
        else
            break;
    }
    reader->through = index, reader->end = at;
    return source_row(source, at);
}

/* P0030 to P0033 are about allows and cannot be silenced. */
static bool can_be_silenced(Code code) {
    Severity severity = code_rows[code].severity;
    return (severity == SEVERITY_WARNING || severity == SEVERITY_NOTE) &&
           (code < P0030 || code > P0033);
}

static void read_code(const Reader *reader, Span word, uint32_t row) {
    Diags *diags = reader->diags;
    char name[40];
    size_t length = word.hi - word.lo < sizeof name ? word.hi - word.lo : sizeof name - 1;
    memcpy(name, reader->source->text + word.lo, length);
    name[length] = 0;
    Code code;
    if (!code_by_name(name, &code)) {
        Diag *diag = diag_at(diags, P0031, word, "unknown code `%s`", name);
        const char *near = diag == diags->other ? NULL : code_near(name);
        if (near)
            diag_help(diags, diag, "did you mean `%s`?", near);
        else
            diag_help(diags, diag, "write the code that the message shows in brackets");
    } else if (!can_be_silenced(code)) {
        Diag *diag = diag_at(diags, P0032, word, "`%s` cannot be silenced", code_rows[code].name);
        const char *title = code_rows[code].title;
        if (code_rows[code].severity == SEVERITY_ERROR)
            diag_note(diags, diag, "it is an error (%s); only warnings and notes can be silenced",
                      title);
        else if (code_rows[code].severity == SEVERITY_INCOMPLETE)
            diag_note(
                diags, diag,
                "it means that nothing is proved (%s); only warnings and notes can be silenced",
                title);
        else
            diag_note(diags, diag, "it is about `allow` comments");
    } else {
        Allow allow = {code, row, word};
        vec_push(diags->arena, &reader->levels->allows, allow);
    }
}

static void read_allow(Reader *reader, size_t index, uint32_t at) {
    const Source *source = reader->source;
    uint32_t end = reader->comments[index].hi, row = row_of(reader, index);
    for (;;) {
        Span word = {at, at};
        while (word.hi < end && is_word(source->text[word.hi])) word.hi++;
        read_code(reader, word, row);
        at = skip_blanks(source, word.hi, end);
        if (at >= end || source->text[at] != ',') break;
        at = skip_blanks(source, at + 1, end);
        if (!is_code_at(source, at, end)) break;
    }
    if (at < end && source->text[at] == ':' && skip_blanks(source, at + 1, end) < end) return;
    while (end > reader->comments[index].lo && is_blank(source->text[end - 1])) end--;
    Diag *diag = diag_at(reader->diags, P0030, (Span){reader->comments[index].lo, end},
                         "`allow` comment without a reason");
    diag_help(reader->diags, diag,
              "write the reason after a colon: `// allow P0241: each block has its own length`");
}

void allows_read(Levels *levels, const Span *comments, size_t count, Diags *diags) {
    Reader reader = {.source = diags->source,
                     .diags = diags,
                     .levels = levels,
                     .comments = comments,
                     .count = count};
    for (size_t i = 0; i < count; i++) {
        uint32_t code = first_code(diags->source, comments[i]);
        if (code < comments[i].hi) read_allow(&reader, i, code);
    }
    diags_set_levels(diags, levels);
}

/* Codes from P0600 are about data, machines and files: a check never reports them. */
static bool is_about_text(Code code) { return code < P0600; }

void allows_unused(Diags *diags) {
    const Source *source = diags->source;
    for (size_t i = 0; i < diags->levels->allows.count; i++) {
        const Allow *allow = &diags->levels->allows.items[i];
        if (diags->used[i] || !is_about_text(allow->code)) continue;
        /* other files that include this one may need it */
        if (source_file(source, allow->word.lo) != source->files) continue;
        Diag *diag = diag_at(diags, P0033, allow->word,
                             "`allow` comment without effect: there is no %s on line %u",
                             code_rows[allow->code].name, (unsigned)allow->row);
        diag_help(diags, diag,
                  "remove it, or move it to the line of the message or to the line above");
    }
}
