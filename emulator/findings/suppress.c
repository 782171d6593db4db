/* Suppressions: a file that says which findings are not reported.
 *
 *   # a comment
 *   P0740 entry=kernel ptx=120 pipe=34 text=lane * exits
 *
 * A line names a code and, in any order, what the finding must also match: the kernel, the line of
 * the PTX, the line of the `.pipe` text, and last a pattern for a part of the message, where `*`
 * stands for any characters. Only findings after which the run can continue may be named. */
#include "emulator/findings/names.h"

#include <stdlib.h>

typedef struct Suppression {
    Code code;
    const char *entry, *text; /* NULL: any */
    uint32_t ptx, pipe;       /* 0: any */
    uint32_t line;            /* in the file */
    bool matched;
} Suppression;

struct EmulatorSuppressions {
    const char *file;
    VEC(Suppression) items;
};

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct Reader {
    Arena *arena;
    Diags *diags;
    const char *file;
    uint32_t line;
} Reader;

static bool refuse(const Reader *reader, const char *what, const char *word) {
    diag_plain(reader->diags, P0765, "%s:%u: %s: `%s`", reader->file, reader->line, what, word);
    return false;
}

static bool read_number(const Reader *reader, const char *word, const char *digits, uint32_t *out) {
    char *end;
    unsigned long value = strtoul(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || *end || value == 0 || value > UINT32_MAX)
        return refuse(reader, "not the number of a line", word);
    *out = (uint32_t)value;
    return true;
}

static bool read_code(const Reader *reader, const char *word, Code *out) {
    if (!code_by_name(word, out)) return refuse(reader, "not a code", word);
    if (*out < P0700 || *out >= P0800) return refuse(reader, "not a finding of the emulator", word);
    if (!finding_continues(*out))
        return refuse(reader, "the run cannot continue after this finding", word);
    return true;
}

/* A word after the code; text= is the rest of the line. */
static bool read_condition(const Reader *reader, const char *word, Suppression *into) {
    if (!strncmp(word, "entry=", 6) && word[6])
        into->entry = word + 6;
    else if (!strncmp(word, "text=", 5) && word[5])
        into->text = word + 5;
    else if (!strncmp(word, "ptx=", 4))
        return read_number(reader, word, word + 4, &into->ptx);
    else if (!strncmp(word, "pipe=", 5))
        return read_number(reader, word, word + 5, &into->pipe);
    else
        return refuse(reader, "not entry=NAME, ptx=LINE, pipe=LINE or text=PATTERN", word);
    return true;
}

/* Cuts the next word off *rest; NULL: none is left. */
static const char *next_word(Arena *arena, const char **rest) {
    const char *at = *rest + strspn(*rest, " \t\r");
    size_t length = strncmp(at, "text=", 5) ? strcspn(at, " \t\r") : strlen(at);
    while (length > 0 && strchr(" \t\r", at[length - 1])) length--;
    *rest = at + length;
    return length > 0 ? arena_copy(arena, at, length) : NULL;
}

static bool read_line(const Reader *reader, const char *text, EmulatorSuppressions *into) {
    const char *word = next_word(reader->arena, &text);
    Suppression one = {.line = reader->line};
    if (!word || word[0] == '#') return true;
    if (!read_code(reader, word, &one.code)) return false;
    while ((word = next_word(reader->arena, &text)) != NULL)
        if (!read_condition(reader, word, &one)) return false;
    vec_push(reader->arena, &into->items, one);
    return true;
}

EmulatorSuppressions *emulator_suppressions(Arena *arena, const char *file, const char *text,
                                            size_t length, Diags *diags) {
    EmulatorSuppressions *all = NEW(arena, EmulatorSuppressions);
    Reader reader = {arena, diags, file, 0};
    bool fine = true;
    all->file = file;
    for (const char *at = text, *end = text + length; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        reader.line++;
        fine &= read_line(&reader, arena_copy(arena, at, (size_t)(stop - at)), all);
        at = stop + 1;
    }
    return fine ? all : NULL;
}

/* ---- matching -------------------------------------------------------------------------------- */

/* True if `pattern` matches the beginning of `text`; after a star, a later part of it. */
static bool matches_here(const char *pattern, const char *text) {
    const char *after_star = NULL, *retry = NULL;
    for (;;) {
        if (*pattern == '*') {
            after_star = ++pattern;
            retry = text;
        } else if (!*pattern) {
            return true;
        } else if (*text && *pattern == *text) {
            pattern++, text++;
        } else if (after_star && *retry) {
            pattern = after_star;
            text = ++retry;
        } else {
            return false;
        }
    }
}

static bool matches_part(const char *pattern, const char *text) {
    for (; *text; text++)
        if (matches_here(pattern, text)) return true;
    return false;
}

static bool matches(const Machine *machine, const Suppression *one, Code code, uint32_t pc,
                    const char *message) {
    const ManifestMark *mark = one->pipe ? mark_of_code(machine, pc) : NULL;
    const Source *source = machine->diags->source;
    return one->code == code && (!one->entry || !strcmp(one->entry, machine->program->entry)) &&
           (!one->ptx || one->ptx == machine->program->code[pc].line) &&
           (!one->pipe || (mark && source && source_row(source, mark->span.lo) == one->pipe)) &&
           (!one->text || matches_part(one->text, message));
}

bool suppressed(const Machine *machine, Code code, uint32_t pc, const char *message) {
    EmulatorSuppressions *all = machine->options->suppressions;
    bool any = false;
    for (size_t i = 0; all && i < all->items.count; i++)
        if (matches(machine, &all->items.items[i], code, pc, message))
            any = all->items.items[i].matched = true;
    return any;
}

void emulator_suppressions_unused(const EmulatorSuppressions *all, Diags *diags) {
    for (size_t i = 0; i < all->items.count; i++)
        if (!all->items.items[i].matched)
            diag_plain(diags, P0766, "%s:%u: this suppression matched no finding", all->file,
                       all->items.items[i].line);
}
