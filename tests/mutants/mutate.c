/* Mutations of a text, token by token. */
#include "tests/mutants/mutants.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef enum WordKind { WORD_NAME, WORD_NUMBER, WORD_SIGN } WordKind;

typedef struct Word {
    WordKind kind;
    uint32_t lo, hi;
    bool fixed; /* part of the specification, or outside a kernel */
} Word;

typedef struct Mutator {
    Arena *arena;
    const char *text;
    VEC(Word) words;
    Mutations *out;
} Mutator;

/* ---- words ----------------------------------------------------------------------------------- */

static uint32_t skip_blank(const char *text, uint32_t at) {
    for (;;) {
        if (strncmp(text + at, "//", 2) == 0)
            while (text[at] != '\0' && text[at] != '\n') at++;
        else if (isspace((unsigned char)text[at]))
            at++;
        else
            return at;
    }
}

static bool is_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

static Word next_word(const char *text, uint32_t lo) {
    static const char *const signs[] = {
        "..", "->", "+=", "-=", "*=", "/=", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>"};
    uint32_t hi = lo;
    if (isdigit((unsigned char)text[lo])) {
        while (is_name(text[hi]) || (text[hi] == '.' && text[hi + 1] != '.')) hi++;
        return (Word){WORD_NUMBER, lo, hi, false};
    }
    if (is_name(text[lo])) {
        while (is_name(text[hi])) hi++;
        return (Word){WORD_NAME, lo, hi, false};
    }
    for (size_t i = 0; i < COUNT_OF(signs); i++)
        if (strncmp(text + lo, signs[i], 2) == 0) return (Word){WORD_SIGN, lo, lo + 2, false};
    return (Word){WORD_SIGN, lo, lo + 1, false};
}

static bool is(const Mutator *x, size_t word, const char *text) {
    if (word >= x->words.count) return false;
    const Word *w = &x->words.items[word];
    return strlen(text) == w->hi - w->lo && strncmp(x->text + w->lo, text, w->hi - w->lo) == 0;
}

static bool same(const Mutator *x, size_t a, size_t b) {
    const Word *v = &x->words.items[a], *w = &x->words.items[b];
    return v->hi - v->lo == w->hi - w->lo &&
           strncmp(x->text + v->lo, x->text + w->lo, v->hi - v->lo) == 0;
}

static const char *spelling(const Mutator *x, size_t word) {
    return arena_copy(x->arena, x->text + x->words.items[word].lo,
                      x->words.items[word].hi - x->words.items[word].lo);
}

static bool opens(const Mutator *x, size_t word) {
    return is(x, word, "(") || is(x, word, "[") || is(x, word, "{");
}
static bool closes(const Mutator *x, size_t word) {
    return is(x, word, ")") || is(x, word, "]") || is(x, word, "}");
}

/* Offset after the end of a statement or an item: after its `;` or its block */
static size_t end_of_item(const Mutator *x, size_t word) {
    for (int depth = 0; word < x->words.count; word++) {
        depth += opens(x, word) - closes(x, word);
        if (depth < 0) return word;
        if (depth == 0 && (is(x, word, ";") || is(x, word, "}"))) return word + 1;
    }
    return word;
}

/* All tokens are fixed except items of kernels that are not specification */
static void fix(Mutator *x) {
    static const char *const meant[] = {"ensures", "example", "requires", "static"};
    for (size_t i = 0; i < x->words.count; i++) x->words.items[i].fixed = true;
    for (size_t i = 0; i < x->words.count;) {
        size_t end = end_of_item(x, i);
        if (end <= i) break;
        size_t item = i;
        while (item < end && !is(x, item, "{")) item++;
        for (item += 1; is(x, i, "kernel") && item + 1 < end;) {
            size_t next = end_of_item(x, item);
            /* after the sets */
            while (is(x, item, "static") && next < end && !is(x, next - 1, ";")) next++;
            bool stays = false;
            if (next <= item) break;
            for (size_t m = 0; m < COUNT_OF(meant); m++) stays |= is(x, item, meant[m]);
            for (; item < next; item++) x->words.items[item].fixed = stays;
        }
        i = end;
    }
}

/* ---- mutations ------------------------------------------------------------------------------- */

static void wound(Mutator *x, const char *how, size_t first, size_t last, const char *with) {
    vec_push(x->arena, x->out,
             (Mutation){how, x->words.items[first].lo, x->words.items[last].hi, with});
}

static void numbers(Mutator *x, size_t word) {
    const Word *w = &x->words.items[word];
    if (w->kind != WORD_NUMBER) return;
    const char *text = spelling(x, word);
    if (strpbrk(text, ".ex") == NULL)
        wound(x, "one more", word, word, arena_printf(x->arena, "%ld", strtol(text, NULL, 10) + 1));
    else
        wound(x, "twice", word, word, arena_printf(x->arena, "2*%s", text));
}

static void signs(Mutator *x, size_t word) {
    static const char *const others[][2] = {{"=", "+="},  {"+=", "="},  {"+", "-"},   {"-", "+"},
                                            {"*", "+"},   {"/", "*"},   {"<", "<="},  {">", ">="},
                                            {"==", "!="}, {"%", "/"},   {"&", "|"},   {"|", "^"},
                                            {"^", "&"},   {"<<", ">>"}, {">>", "<<"}, {"~", "-"}};
    if (x->words.items[word].kind != WORD_SIGN) return;
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (is(x, word, others[i][0])) wound(x, "other sign", word, word, others[i][1]);
}

/* The kind of a name, by its spelling or the word before it: it is replaced by others of the
 * same kind */
typedef enum NameKind {
    NAME_SMALL,
    NAME_LARGE,
    NAME_FIELD,
    NAME_PIPE,
    NAME_TYPE,
    NAME_TEAM,
    NAME_OTHER
} NameKind;

static NameKind name_kind(const Mutator *x, size_t word) {
    const Word *w = &x->words.items[word];
    Element type;
    bool large = true;
    if (w->kind != WORD_NAME) return NAME_OTHER;
    for (uint32_t i = w->lo; i < w->hi; i++) large &= !islower((unsigned char)x->text[i]);
    if (element_by_name(spelling(x, word), &type)) return NAME_TYPE;
    if (word > 0 && is(x, word - 1, ".")) return NAME_FIELD;
    if (word > 0 && is(x, word - 1, "<") && is(x, word + 1, ">")) return NAME_PIPE;
    if (word > 0 && (is(x, word - 1, "->") || is(x, word + 1, "->"))) return NAME_TEAM;
    if (large) return NAME_LARGE;
    return w->hi - w->lo == 1 ? NAME_SMALL : NAME_OTHER;
}

static void names(Mutator *x, size_t word) {
    NameKind kind = name_kind(x, word);
    if (kind == NAME_OTHER) return;
    /* the first occurrence of each other name of the kind */
    for (size_t other = 0; other < x->words.count; other++) {
        bool first = name_kind(x, other) == kind && !same(x, word, other);
        for (size_t before = 0; before < other && first; before++)
            first = name_kind(x, before) != kind || !same(x, before, other);
        if (first) wound(x, "other name", word, word, spelling(x, other));
    }
}

static void words(Mutator *x, size_t word) {
    static const char *const others[][2] = {{"consume", "produce"},  {"produce", "consume"},
                                            {"rank", "0"},           {"rank", "(1 - rank)"},
                                            {"max", "min"},          {"min", "max"},
                                            {"warp", "warpgroup"},   {"warps", "warpgroups"},
                                            {"warpgroups", "warps"}, {"persistent", ""}};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (is(x, word, others[i][0])) wound(x, "other word", word, word, others[i][1]);
    if (!is(x, word, "in") || is(x, word + 1, "grid") || !is(x, word + 2, "{")) return;
    wound(x, "from 1", word + 1, word + 1,
          arena_printf(x->arena, "%s from 1", spelling(x, word + 1)));
}

static void subscripts(Mutator *x, size_t word) {
    size_t begin = word + 1, last = 0; /* start of the previous piece */
    int depth = 0;
    if (!is(x, word, "[") &&
        !(is(x, word, "(") && word > 0 && (is(x, word - 1, "for") || is(x, word - 1, "grid"))))
        return;
    for (size_t i = word + 1; i < x->words.count && depth >= 0; i++) {
        depth += opens(x, i) - closes(x, i);
        if (depth >= 0 && !(depth == 0 && is(x, i, ","))) continue;
        const Word *items = x->words.items;
        size_t left_words = begin - 1 - last, right_words = i - begin;
        bool differ = left_words != right_words;
        for (size_t w = 0; w < right_words && !differ; w++) differ = !same(x, last + w, begin + w);
        if (last > 0 && differ) {
            const char *left = x->text + items[last].lo, *right = x->text + items[begin].lo;
            wound(x, "swapped", last, i - 1,
                  arena_printf(x->arena, "%.*s, %.*s", (int)(items[i - 1].hi - items[begin].lo),
                               right, (int)(items[begin - 2].hi - items[last].lo), left));
        }
        last = begin, begin = i + 1;
    }
}

static void statements(Mutator *x, size_t word) {
    if (word == 0 || !(is(x, word - 1, ";") || is(x, word - 1, "{") || is(x, word - 1, "}")) ||
        is(x, word, "}"))
        return;
    size_t end = end_of_item(x, word);
    if (end > word) wound(x, "deleted", word, end - 1, "");
}

void mutations_of(Arena *arena, const char *text, Mutations *out) {
    static void (*const operations[])(Mutator *, size_t) = {numbers, signs,      names,
                                                            words,   subscripts, statements};
    Mutator x = {.arena = arena, .text = text, .out = out};
    for (uint32_t at = skip_blank(text, 0); text[at] != '\0';) {
        Word word = next_word(text, at);
        vec_push(arena, &x.words, word);
        at = skip_blank(text, word.hi);
    }
    fix(&x);
    for (size_t w = 0; w < x.words.count; w++)
        for (size_t i = 0; i < COUNT_OF(operations) && !x.words.items[w].fixed; i++)
            operations[i](&x, w);
}

/* ---- texts ----------------------------------------------------------------------------------- */

const char *mutated(Arena *arena, const char *text, const Mutation *mutation) {
    return arena_printf(arena, "%.*s%s%s", (int)mutation->lo, text, mutation->with,
                        text + mutation->hi);
}

const char *mutation_line(Arena *arena, const char *text, const Mutation *mutation) {
    uint32_t begin = mutation->lo, end = mutation->lo;
    while (begin > 0 && text[begin - 1] != '\n') begin--;
    while (isspace((unsigned char)text[begin])) begin++;
    while (text[end] != '\0' && text[end] != '\n') end++;
    uint32_t hi = mutation->hi < end ? mutation->hi : end;
    return arena_printf(arena, "%.*s«%.*s»%.*s  ->  %s", (int)(mutation->lo - begin), text + begin,
                        (int)(hi - mutation->lo), text + mutation->lo, (int)(end - hi), text + hi,
                        mutation->with);
}
