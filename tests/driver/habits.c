/* Suite `habits`: forms of other languages, what is said about them, and what following it gives.
 *
 * tests/habits/NAME.txt has entries, each for one form:
 *
 *     === FRAME: what it is
 *     the text as typed
 *     => the message, then its notes and helps (`make bless` writes these lines)
 *     ---
 *     the text after following the help
 *
 * FRAME names the program of frames.txt that the texts stand in. The typed text must have one
 * error, or warnings only, with the given lines; a help must quote text that the followed one has,
 * and either the typed one has it not or the followed one has no more what is at fault; or it must
 * tell to remove what the followed text then lacks. The followed text must be accepted and built.
 * In a quote, `..` and a name of one letter are any text. */
#include "tests/driver/suite.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define FOLDER "tests/habits"
#define FRAMES FOLDER "/frames.txt"

typedef struct Entry {
    const char *frame, *title;
    Str typed, says, followed;
} Entry;

typedef VEC(Entry) Entries;

static void add_line(Str *text, const char *line) { str_printf(text, "%s\n", line); }

/* "FRAME: title"; frames have no title */
static Entry entry_of(Arena *arena, const char *head) {
    Entry entry = {.typed = str_new(arena), .says = str_new(arena), .followed = str_new(arena)};
    const char *colon = strchr(head, ':');
    entry.frame = arena_copy(arena, head, colon ? (size_t)(colon - head) : strlen(head));
    entry.title = colon ? colon + 2 : "";
    str_add(&entry.typed, "");
    str_add(&entry.says, "");
    str_add(&entry.followed, "");
    return entry;
}

/* Lines before the first entry are `preface` */
static void read_entries(Arena *arena, const char *path, Str *preface, Entries *entries) {
    const char *text = file_read(arena, path, NULL);
    Words lines = lines_of(arena, text ? text : "");
    bool after = false;
    for (size_t i = 0; i < lines.count; i++) {
        const char *line = lines.items[i];
        Entry *entry = entries->count ? &entries->items[entries->count - 1] : NULL;
        if (strncmp(line, "=== ", 4) == 0) {
            vec_push(arena, entries, entry_of(arena, line + 4));
            after = false;
        } else if (!entry) {
            add_line(preface, line);
        } else if (strcmp(line, "---") == 0) {
            after = true;
        } else if (strncmp(line, "=> ", 3) == 0) {
            add_line(&entry->says, line + 3);
        } else {
            add_line(after ? &entry->followed : &entry->typed, line);
        }
    }
}

/* The text in its frame, with the indentation of the frame's `@` */
static const char *framed(Test *test, const Entries *frames, const char *name, const char *text) {
    const char *frame = NULL;
    for (size_t i = 0; i < frames->count; i++)
        if (strcmp(frames->items[i].frame, name) == 0) frame = frames->items[i].typed.text;
    const char *at = frame ? strchr(frame, '@') : NULL, *line = at;
    if (!at) return NULL;
    while (line > frame && line[-1] == ' ') line--;
    Str out = str_new(test->arena);
    str_add_bytes(&out, frame, (size_t)(line - frame));
    bool whole_lines = at[1] == '\n';
    Words lines = lines_of(test->arena, text);
    for (size_t i = 0; i < lines.count; i++)
        str_printf(&out, "%.*s%s%s", (int)(at - line), line, lines.items[i],
                   i + 1 < lines.count || whole_lines ? "\n" : "");
    str_add(&out, at + 1 + whole_lines);
    return out.text;
}

/* ---- does the followed text do what a help says? --------------------------------------------- */

typedef struct Tokens {
    VEC(const char *) list;
} Tokens;

static size_t token_length(const char *at) {
    size_t length = 1;
    if (isalnum((unsigned char)*at) || *at == '_')
        while (isalnum((unsigned char)at[length]) || at[length] == '_') length++;
    else if (at[0] == '.' && at[1] == '.')
        length = 2;
    return length;
}

static Tokens tokens_of(Arena *arena, const char *text, size_t length) {
    Tokens tokens = {0};
    for (size_t i = 0, step; i < length; i += step) {
        step = 1;
        if (isspace((unsigned char)text[i])) continue;
        step = token_length(text + i);
        vec_push(arena, &tokens.list, (const char *)arena_copy(arena, text + i, step));
    }
    return tokens;
}

static bool stands_for_any(const char *token) {
    return strcmp(token, "..") == 0 || (isalpha((unsigned char)token[0]) && token[1] == 0);
}

/* The pattern from `p` on matches the text from `t` on; `..` may be nothing at the end */
static bool matches_at(const Tokens *pattern, size_t p, const Tokens *text, size_t t) {
    if (p == pattern->list.count) return true;
    const char *wanted = pattern->list.items[p];
    if (t < text->list.count && strcmp(wanted, text->list.items[t]) == 0)
        if (matches_at(pattern, p + 1, text, t + 1)) return true;
    if (!stands_for_any(wanted)) return false;
    int depth = 0;
    for (size_t end = t; end < text->list.count && end < t + 40; end++) {
        const char *token = text->list.items[end];
        if (strchr(":=;", *token) && wanted[1] == 0) break;
        if (strchr("([{", *token)) depth++;
        if (strchr(")]}", *token) && --depth < 0) break;
        if (depth == 0 && matches_at(pattern, p + 1, text, end + 1)) return true;
    }
    return strcmp(wanted, "..") == 0 && matches_at(pattern, p + 1, text, t);
}

static bool occurs(Test *test, const char *part, size_t length, const char *text) {
    Tokens pattern = tokens_of(test->arena, part, length);
    Tokens whole = tokens_of(test->arena, text, strlen(text));
    for (size_t t = 0; t < whole.list.count; t++)
        if (pattern.list.count && matches_at(&pattern, 0, &whole, t)) return true;
    return false;
}

static bool obeyed(Test *test, const char *help, const char *typed, const char *followed,
                   const char *removed) {
    if (strncmp(help, "remove", 6) == 0 && removed && !strstr(followed, removed)) return true;
    for (const char *at = help, *end; (at = strchr(at, '`')) != NULL; at = end + 1) {
        if (!(end = strchr(++at, '`'))) break;
        size_t length = (size_t)(end - at);
        if (!occurs(test, at, length, followed)) continue;
        bool gone = removed && !strstr(followed, removed);
        if (gone || !occurs(test, at, length, typed)) return true;
    }
    return false;
}

/* ---- one entry ------------------------------------------------------------------------------- */

static PipecProgram *compile(const char *name, const char *text, bool check_only) {
    PipecOptions options = {.size = sizeof options, .name = name, .check_only = check_only};
    return pipec_compile(text, strlen(text), &options);
}

/* Warnings count only in the typed text, `place`: names of the frame may be unused */
static bool counts(const PipecDiagnostic *diagnostic, size_t errors, Span place) {
    if (errors > 0) return diagnostic->severity == PIPEC_ERROR;
    return diagnostic->severity != PIPEC_NOTE && diagnostic->label_count &&
           diagnostic->labels[0].lo >= place.lo && diagnostic->labels[0].hi <= place.hi;
}

/* The first error, or the first warning if there is no error */
static const PipecDiagnostic *main_diagnostic(const PipecDiagnostics *all, Span place) {
    for (size_t i = 0; i < pipec_diagnostics_count(all); i++) {
        const PipecDiagnostic *diagnostic = pipec_diagnostics_get(all, i);
        if (counts(diagnostic, pipec_diagnostics_errors(all), place)) return diagnostic;
    }
    return NULL;
}

static void describe(const PipecDiagnostic *d, Str *out) {
    str_printf(out, "%s[%s]: %s\n", d->severity == PIPEC_ERROR ? "error" : "warning", d->code,
               d->message);
    for (size_t i = 0; i < d->note_count; i++) str_printf(out, "note: %s\n", d->notes[i]);
    for (size_t i = 0; i < d->help_count; i++) str_printf(out, "help: %s\n", d->helps[i]);
}

static void expect_followed(Test *test, const Entry *entry, const char *text) {
    PipecProgram *program = compile(entry->title, text, false);
    if (!expect(test, program != NULL, "no memory")) return;
    expect(test, pipec_program_ptx(program, NULL) != NULL,
           "`%s`: the text that follows the help is refused:\n%s", entry->title,
           pipec_diagnostics_text(pipec_program_diagnostics(program)));
    pipec_program_free(program);
}

static void expect_help(Test *test, const Entry *entry, const PipecDiagnostic *d,
                        const char *text) {
    const char *removed = NULL;
    if (d->label_count)
        removed =
            arena_copy(test->arena, text + d->labels[0].lo, d->labels[0].hi - d->labels[0].lo);
    bool any = false;
    for (size_t i = 0; i < d->help_count; i++)
        any = any || obeyed(test, d->helps[i], entry->typed.text, entry->followed.text, removed);
    expect(test, any, "`%s`: the text after `---` does not do what a help says:\n%s", entry->title,
           entry->says.text);
}

static void judge(Test *test, Entry *entry, const Entries *frames) {
    const char *typed = framed(test, frames, entry->frame, entry->typed.text);
    const char *followed = framed(test, frames, entry->frame, entry->followed.text);
    if (!expect(test, typed && followed, "`%s`: there is no frame `%s`", entry->title,
                entry->frame))
        return;
    PipecProgram *program = compile(entry->title, typed, true);
    if (!expect(test, program != NULL, "no memory")) return;
    const PipecDiagnostics *all = pipec_program_diagnostics(program);
    const char *bare = framed(test, frames, entry->frame, "");
    Span place = {0, (uint32_t)strlen(typed)};
    while (bare[place.lo] == typed[place.lo] && bare[place.lo]) place.lo++;
    place.hi -= (uint32_t)strlen(bare) - place.lo;
    const PipecDiagnostic *d = main_diagnostic(all, place);
    Str says = str_new(test->arena);
    str_add(&says, "");
    if (d) describe(d, &says);
    if (test->bless) entry->says = says;
    if (expect(test, d != NULL, "`%s`: it is accepted without a word", entry->title)) {
        expect(test, pipec_diagnostics_errors(all) <= 1, "`%s`: there is more than one error:\n%s",
               entry->title, pipec_diagnostics_text(all));
        expect(test, strcmp(says.text, entry->says.text) == 0, "`%s`: it says\n%sand not\n%s",
               entry->title, says.text, entry->says.text);
        expect_help(test, entry, d, typed);
    }
    pipec_program_free(program);
    expect_followed(test, entry, followed);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void write_lines(Str *out, const Entry *entry) {
    str_printf(out, "=== %s: %s\n%s", entry->frame, entry->title, entry->typed.text);
    for (const char *line = entry->says.text; *line;) {
        size_t length = strcspn(line, "\n");
        str_printf(out, "=> %.*s\n", (int)length, line);
        line += length + 1;
    }
    str_printf(out, "---\n%s", entry->followed.text);
}

static void run_habits(Test *test) {
    Entries frames = {0}, entries = {0};
    Str preface = str_new(test->arena), out = str_new(test->arena);
    read_entries(test->arena, FRAMES, &out, &frames);
    out = str_new(test->arena);
    str_add(&preface, "");
    read_entries(test->arena, test->item, &preface, &entries);
    expect(test, entries.count > 0, "there are no entries");
    for (size_t i = 0; i < entries.count; i++) judge(test, &entries.items[i], &frames);
    if (!test->bless) return;
    str_add(&out, preface.text);
    for (size_t i = 0; i < entries.count; i++) write_lines(&out, &entries.items[i]);
    file_write(test, test->item, out.text, out.length);
}

static void list_habits(Arena *arena, Items *items) {
    Items all = {0};
    files_in(arena, FOLDER, ".txt", false, &all);
    for (size_t i = 0; i < all.count; i++)
        if (strcmp(all.items[i], FRAMES) != 0) vec_push(arena, items, all.items[i]);
}

const Suite suite_habits = {"habits", false, list_habits, run_habits, 0};
