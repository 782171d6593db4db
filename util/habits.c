/* Forms of other languages: finds the row of habits.def whose pattern the text has at the place of
 * an error, and fills the text's own names into its message and help.
 *
 * Only the lines around the place are read, by a scanner of its own: the text may be in any
 * language. */
#include "util/util.h"

#include <ctype.h>
#include <string.h>

#define WINDOW_BEFORE 2000 /* bytes */
#define WINDOW_AFTER  4000
#define LINES_BEFORE  6
#define TOKENS_MOST   1200
#define ELEMENTS_MOST 48
#define CAPTURES_MOST 12
#define STEPS_MOST    4000 /* of one attempt to match a row */

typedef struct Token {
    Span span;
    uint32_t column; /* of the first token of its line */
    bool first;      /* of its line */
} Token;

typedef struct Capture {
    const char *name; /* in the pattern: one letter */
    size_t first, end;
    const char *text; /* of a type or a function: its name in Pipe */
} Capture;

typedef struct Matcher {
    Arena *arena;
    const Source *source;
    Token tokens[TOKENS_MOST];
    size_t count;
    const char *elements[ELEMENTS_MOST];
    size_t lengths[ELEMENTS_MOST], element_count;
    Capture captures[CAPTURES_MOST];
    size_t capture_count, begin, end, marked;
    int steps;
} Matcher;

typedef struct Row {
    Code end, code; /* errors before `end`; if `code` is not CODE_COUNT, only of that code */
    bool rest; /* the text after it is in that language too: further errors of words are left out */
    const char *pattern, *message, *help;
} Row;

static const Row rows[] = {
#define HABIT(pattern, message, help)          {P0100, CODE_COUNT, false, pattern, message, help},
#define HABIT_NAME(pattern, message, help)     {P0200, CODE_COUNT, false, pattern, message, help},
#define HABIT_REST(pattern, message, help)     {P0100, CODE_COUNT, true, pattern, message, help},
#define HABIT_OF(code, pattern, message, help) {code, code, false, pattern, message, help},
#include "util/habits.def"
#undef HABIT
#undef HABIT_NAME
#undef HABIT_REST
#undef HABIT_OF
};

/* ---- tokens ---------------------------------------------------------------------------------- */

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static uint32_t number_end(const char *text, uint32_t at, uint32_t end) {
    uint32_t i = at;
    while (i < end && is_word(text[i])) i++;
    if (i + 1 < end && text[i] == '.' && text[i + 1] != '.' &&
        (!isalpha((unsigned char)text[i + 1]) ||
         (strchr("fF", text[i + 1]) && i + 2 < end && !is_word(text[i + 2]))))
        for (i++; i < end && is_word(text[i]);) i++;
    if (i + 1 < end && (text[i] == '-' || text[i] == '+') && strchr("eE", text[i - 1]) &&
        !(text[at] == '0' && strchr("xX", text[at + 1])))
        for (i++; i < end && is_word(text[i]);) i++;
    return i;
}

/* A string ends on its line, one of three quotes anywhere; 0: this quote begins none */
static uint32_t string_end(const char *text, uint32_t at, uint32_t end) {
    char quote = text[at];
    bool three = at + 2 < end && text[at + 1] == quote && text[at + 2] == quote;
    for (uint32_t i = at + (three ? 3 : 1); i < end && (three || text[i] != '\n'); i++) {
        if (text[i] == '\\') i++;
        if (i >= end || text[i] != quote) continue;
        if (!three) return i + 1;
        if (i + 2 < end && text[i + 1] == quote && text[i + 2] == quote) return i + 3;
    }
    return 0;
}

static uint32_t token_end(const char *text, uint32_t at, uint32_t end) {
    static const char *const marks[] = {
        "..=", "...", "::", "->", "=>", "++", "--", "..", "//", "&&", "||",
        "==",  "!=",  "<=", ">=", "+=", "-=", "*=", "/=", "**", "<<", ">>"};
    if (isdigit((unsigned char)text[at])) return number_end(text, at, end);
    if (is_word(text[at])) {
        while (at < end && is_word(text[at])) at++;
        return at;
    }
    if (text[at] == '"' || text[at] == '\'') {
        uint32_t last = string_end(text, at, end);
        if (last) return last;
    }
    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        size_t length = strlen(marks[i]);
        if (at + length <= end && memcmp(text + at, marks[i], length) == 0)
            return at + (uint32_t)length;
    }
    return at + 1;
}

/* `n // 2;` is a division of Python, `n; // two` a comment */
static bool is_comment(const char *text, uint32_t line, uint32_t at, uint32_t end) {
    uint32_t before = at, last = at;
    while (before > line && isspace((unsigned char)text[before - 1])) before--;
    while (last < end && text[last] != '\n') last++;
    while (last > at && isspace((unsigned char)text[last - 1])) last--;
    return before == line || strchr(";{},", text[before - 1]) || text[last - 1] != ';';
}

static void scan(Matcher *m, uint32_t from, uint32_t end) {
    const char *text = m->source->text;
    uint32_t line = from;
    bool first = true;
    for (uint32_t at = from, next; at < end && m->count < TOKENS_MOST; at = next) {
        next = at + 1;
        if (text[at] == '\n') {
            line = next;
            first = true;
        } else if (at + 1 < end && text[at] == '/' && text[at + 1] == '/' &&
                   is_comment(text, line, at, end)) {
            while (next < end && text[next] != '\n') next++;
        } else if (!isspace((unsigned char)text[at])) {
            next = token_end(text, at, end);
            uint32_t column = first ? at - line : m->tokens[m->count - 1].column;
            m->tokens[m->count++] = (Token){{at, next}, column, first};
            first = false;
        }
    }
}

static bool token_is(const Matcher *m, size_t token, const char *word, size_t length) {
    Span span = m->tokens[token].span;
    return span.hi - span.lo == length && memcmp(m->source->text + span.lo, word, length) == 0;
}

static char first_of(const Matcher *m, size_t token) {
    return m->source->text[m->tokens[token].span.lo];
}

static const char *text_of(const Matcher *m, size_t first, size_t end) {
    Str text = str_new(m->arena);
    str_add(&text, "");
    for (size_t i = first; i < end; i++) {
        Span span = m->tokens[i].span;
        if (i > first && m->tokens[i - 1].span.hi < span.lo) str_char(&text, ' ');
        str_add_bytes(&text, m->source->text + span.lo, span.hi - span.lo);
    }
    return text.text;
}

/* ---- classes of words ------------------------------------------------------------------------ */

static bool is_name(const Matcher *m, size_t token) {
    return isalpha((unsigned char)first_of(m, token)) || first_of(m, token) == '_';
}

#define WORD_MOST 40 /* of a name that tables have */

/* The word, cut at the longest that a table has */
static void word_at(const Matcher *m, size_t token, char word[WORD_MOST]) {
    Span span = m->tokens[token].span;
    size_t length = span.hi - span.lo < WORD_MOST ? span.hi - span.lo : WORD_MOST - 1;
    memcpy(word, m->source->text + span.lo, length);
    word[length] = 0;
}

/* A type of Pipe or of another language, of two words perhaps; *count: how many */
static const char *type_at(const Matcher *m, size_t token, size_t *count) {
    Element element;
    char word[WORD_MOST];
    if (token >= m->count || !is_name(m, token)) return NULL;
    Span first = m->tokens[token].span;
    if (token + 1 < m->count && m->tokens[token + 1].span.lo == first.hi + 1) {
        Span both = span_join(first, m->tokens[token + 1].span);
        const char *type = foreign_type(m->source->text + both.lo, both.hi - both.lo);
        *count = 2;
        if (type) return type;
    }
    *count = 1;
    word_at(m, token, word);
    if (element_by_name(word, &element)) return element_rows[element].spelling;
    return foreign_type(word, strlen(word));
}

static bool is_module(const Matcher *m, size_t token) {
    static const char *const modules[] = {"np",   "numpy", "jnp",  "torch", "tl",   "math",
                                          "std",  "cuda",  "f32",  "F",     "ops",  "libdevice",
                                          "core", "DType", "cute", "nn",    "cmath"};
    for (size_t i = 0; i < COUNT_OF(modules); i++)
        if (token_is(m, token, modules[i], strlen(modules[i]))) return true;
    return false;
}

/* ---- matching -------------------------------------------------------------------------------- */

/* Elements of a pattern are described in habits.def */
static bool match(Matcher *m, size_t element, size_t token);

static bool captured(Matcher *m, size_t element, const char *name, size_t first, size_t end,
                     const char *text) {
    if (m->capture_count == CAPTURES_MOST) return false;
    m->captures[m->capture_count++] = (Capture){name, first, end, text};
    if (match(m, element + 1, end)) return true;
    m->capture_count--;
    return false;
}

static bool closes(const Matcher *m, size_t token) {
    return strchr(")]}", first_of(m, token)) != NULL;
}

/* The end of the bracket that opens at `token`; 0: it is not closed */
static size_t bracket_end(const Matcher *m, size_t token) {
    int depth = 0;
    for (size_t i = token; i < m->count; i++) {
        if (strchr("([{", first_of(m, i))) depth++;
        if (closes(m, i) && --depth == 0) return i + 1;
    }
    return 0;
}

static size_t step_over(const Matcher *m, size_t token) {
    return strchr("([{", first_of(m, token)) ? bracket_end(m, token) : token + 1;
}

/* A sequence in which brackets match, the shortest that fits; `any`: it may be empty, and have
 * several statements. The last element of a pattern takes all it can. */
static bool match_sequence(Matcher *m, size_t element, size_t token, const char *name, bool any) {
    bool last = element + 1 == m->element_count;
    size_t end = token;
    if (any && !last && captured(m, element, name, token, end, NULL)) return true;
    while (end < m->count && !closes(m, end)) {
        if (!any && strchr(";{,", first_of(m, end))) break;
        if (!any && last && end > token && m->tokens[end].first) break;
        size_t next = step_over(m, end);
        if (next == 0) break;
        end = next;
        if (!last && captured(m, element, name, token, end, NULL)) return true;
    }
    return last && (any || end > token) && captured(m, element, name, token, end, NULL);
}

/* A name, a number or a bracket, with members, subscripts and arguments; the longest that fits */
static bool match_operand(Matcher *m, size_t element, size_t token, const char *name) {
    size_t ends[32], count = 0, end = token;
    if (token >= m->count) return false;
    if (is_name(m, token) || isdigit((unsigned char)first_of(m, token)))
        end = token + 1;
    else if (token_is(m, token, "(", 1))
        end = bracket_end(m, token);
    while (end > token && count < COUNT_OF(ends)) {
        ends[count++] = end;
        if (end + 1 < m->count && token_is(m, end, ".", 1) && is_name(m, end + 1))
            end += 2;
        else if (end < m->count && strchr("([", first_of(m, end)) && !m->tokens[end].first)
            end = bracket_end(m, end);
        else
            break;
    }
    while (count-- > 0)
        if (captured(m, element, name, token, ends[count], NULL)) return true;
    return false;
}

/* The lines that are indented more than the one of the form's first word; there may be none */
static bool match_body(Matcher *m, size_t element, size_t token) {
    uint32_t column = m->tokens[m->begin].column;
    while (token < m->count && (m->tokens[token].column > column || !m->tokens[token].first))
        token++;
    return match(m, element + 1, token);
}

static bool match_word(const Matcher *m, const char *word, size_t length, size_t token) {
    if (word[0] == '|') return token_is(m, token, word, length);
    for (size_t from = 0, to; from < length; from = to + 1) {
        const char *bar = memchr(word + from, '|', length - from);
        to = bar ? (size_t)(bar - word) : length;
        if (token_is(m, token, word + from, to - from)) return true;
    }
    return false;
}

static bool match_class(Matcher *m, size_t e, size_t token, const char *name) {
    size_t count = 1;
    const char *text = NULL;
    char word[WORD_MOST];
    switch (name[-1]) {
    case '$':
        if (!is_name(m, token)) return false;
        break;
    case '#':
        if (!isdigit((unsigned char)first_of(m, token))) return false;
        break;
    case '!':
        if (!(text = type_at(m, token, &count))) return false;
        break;
    case '&':
        word_at(m, token, word);
        if (!is_name(m, token) || !(text = foreign_function(word))) return false;
        break;
    default:
        if (!is_module(m, token)) return false;
    }
    return captured(m, e, name, token, token + count, text);
}

/* The last capture contains the word that was captured by this name */
static bool last_contains(const Matcher *m, char name) {
    const Capture *last = &m->captures[m->capture_count - 1];
    for (const Capture *c = m->captures; c < last; c++) {
        if (*c->name != name) continue;
        const char *word = text_of(m, c->first, c->end);
        for (size_t i = last->first; i < last->end; i++)
            if (token_is(m, i, word, strlen(word))) return true;
    }
    return false;
}

static bool match_here(Matcher *m, size_t e, size_t token) {
    const char *word = m->elements[e];
    size_t length = m->lengths[e];
    if (length == 4 && memcmp(word, "BODY", 4) == 0) return match_body(m, e, token);
    if (length == 3 && memcmp(word, "EOL", 3) == 0)
        return (token == m->count || m->tokens[token].first) && match(m, e + 1, token);
    if (length == 3 && memcmp(word, "BOL", 3) == 0)
        return token < m->count && m->tokens[token].first && m->tokens[token].column == 0 &&
               match(m, e + 1, token);
    if (length == 2 && word[0] == '=' && isalpha((unsigned char)word[1]))
        return m->capture_count && last_contains(m, word[1]) && match(m, e + 1, token);
    if (length == 2 && word[0] == '%') return match_sequence(m, e, token, word + 1, false);
    if (length == 2 && word[0] == '~') return match_sequence(m, e, token, word + 1, true);
    if (length == 2 && word[0] == '@') return match_operand(m, e, token, word + 1);
    if (token >= m->count) return false;
    if (length == 4 && memcmp(word, "TEXT", 4) == 0)
        return strchr("\"'", first_of(m, token)) &&
               m->tokens[token].span.hi > m->tokens[token].span.lo + 1 &&
               match(m, e + 1, token + 1);
    if (length == 2 && strchr("$#!&*", word[0]) && isalpha((unsigned char)word[1]))
        return match_class(m, e, token, word + 1);
    return match_word(m, word, length, token) && match(m, e + 1, token + 1);
}

static bool match(Matcher *m, size_t e, size_t token) {
    if (++m->steps > STEPS_MOST) return false;
    if (e == m->element_count) {
        m->end = token;
        return true;
    }
    const char *word = m->elements[e];
    if (m->lengths[e] > 1 && (word[0] == '?' || word[0] == '^')) { /* optional, the place */
        size_t length = m->lengths[e];
        bool optional = word[0] == '?';
        if (!optional) m->marked = token;
        m->elements[e] = word + 1;
        m->lengths[e] = length - 1;
        bool fits = match_here(m, e, token);
        m->elements[e] = word;
        m->lengths[e] = length;
        return fits || (optional && match(m, e + 1, token));
    }
    return match_here(m, e, token);
}

static void split(Matcher *m, const char *pattern) {
    m->element_count = 0;
    for (const char *at = pattern; *at && m->element_count < ELEMENTS_MOST;) {
        size_t length = strcspn(at, " ");
        m->elements[m->element_count] = at;
        m->lengths[m->element_count++] = length;
        at += length + (at[length] == ' ');
    }
}

/* ---- what a row says ------------------------------------------------------------------------- */

/* `{a}`: the text of a capture; `{a/32}`: a number, divided */
static const char *filled(const Matcher *m, const char *template) {
    Str out = str_new(m->arena);
    str_add(&out, "");
    for (const char *at = template; *at; at++) {
        const char *close = *at == '{' && isalpha((unsigned char)at[1]) ? strchr(at, '}') : NULL;
        const Capture *capture = NULL;
        for (size_t i = 0; close && i < m->capture_count; i++)
            if (*m->captures[i].name == at[1]) capture = &m->captures[i];
        if (!capture || (at[2] != '}' && at[2] != '/')) {
            str_char(&out, *at);
            continue;
        }
        const char *text = capture->text ? capture->text : text_of(m, capture->first, capture->end);
        unsigned long number = 0, divisor = 1;
        for (const char *digit = text; isdigit((unsigned char)*digit) && number < 100000; digit++)
            number = number * 10 + (unsigned long)(*digit - '0');
        if (at[2] == '/') {
            divisor = (unsigned long)(at[3] - '0') * 10 + (unsigned long)(at[4] - '0');
            str_printf(&out, "%lu", (number + divisor - 1) / divisor);
        } else {
            str_add(&out, text);
        }
        at = close;
    }
    return out.text;
}

/* The program declares a function of this name, so it is no form of another language */
static bool is_own_function(const Matcher *m, size_t token) {
    if (!is_name(m, token)) return false;
    const char *text = m->source->text, *end = text + m->source->length, *at = text;
    Span span = m->tokens[token].span;
    size_t length = span.hi - span.lo;
    while ((at = memmem(at, (size_t)(end - at), "fn ", 3)) != NULL) {
        bool word = at == text || !is_word(at[-1]);
        for (at += 3; at < end && *at == ' ';) at++;
        if (word && (size_t)(end - at) > length && memcmp(at, text + span.lo, length) == 0 &&
            !is_word(at[length]))
            return true;
    }
    return false;
}

static bool row_fits(Matcher *m, const Row *row, Code code, Span at) {
    if (row->code == CODE_COUNT ? code >= row->end : code != row->code) return false;
    if (code >= P0040 && code <= P0046) return false; /* of `include`, which is a form of Pipe */
    split(m, row->pattern);
    for (m->begin = 0; m->begin < m->count && m->tokens[m->begin].span.lo <= at.lo; m->begin++) {
        m->capture_count = 0;
        m->steps = 0;
        m->marked = SIZE_MAX;
        if (!match(m, 0, m->begin) || m->end == m->begin) continue;
        if (m->tokens[m->end - 1].span.hi < at.lo) continue;
        if (m->marked != SIZE_MAX && m->tokens[m->marked].span.lo != at.lo) continue;
        if (!is_own_function(m, m->begin)) return true;
    }
    return false;
}

bool habit_find(Arena *arena, const Source *source, Code code, Span at, Habit *out) {
    if (at.lo > source->length) return false;
    Matcher *m = NEW(arena, Matcher);
    uint32_t from = at.lo;
    m->arena = arena;
    m->source = source;
    for (int lines = 0; from > 0 && at.lo - from < WINDOW_BEFORE; from--)
        if (source->text[from - 1] == '\n' && ++lines > LINES_BEFORE) break;
    uint32_t end = source->length - at.lo > WINDOW_AFTER ? at.lo + WINDOW_AFTER : source->length;
    scan(m, from, end);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const Row *row = &rows[i];
        if (!row_fits(m, row, code, at)) continue;
        Span whole = {m->tokens[m->begin].span.lo, m->tokens[m->end - 1].span.hi}, shown = whole;
        if (m->marked != SIZE_MAX) shown = at;
        for (uint32_t c = shown.lo; c < shown.hi; c++) /* the first line of it */
            if (source->text[c] == '\n') shown.hi = c;
        bool block = m->end < m->count && token_is(m, m->end, "{", 1); /* is that of Pipe */
        *out = (Habit){whole, shown, filled(m, row->message), filled(m, row->help),
                       row->rest && !block};
        return true;
    }
    return false;
}
