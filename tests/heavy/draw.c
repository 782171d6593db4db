/* Draws a text: a file of the tests, or a generated program, that grows in one to three ways until
 * it has the size that was drawn; some texts then get wounds. What is repeated gets
 * names of its own, so that most programs stay valid. */
#include "tests/heavy/heavy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_LEAST 300
#define ATTEMPTS     40 /* to grow a text, or to find a place */
#define DEPTH_MOST   60

typedef struct Heavy {
    Arena *arena;
    Random random;
    const Corpus *corpus;
    Tokens tokens;
    size_t length, wanted; /* in bytes */
    int names;             /* number of names made */
} Heavy;

static uint32_t below(Heavy *h, size_t count) { return draw(&h->random, (uint32_t)count); }

static const Token *at(const Heavy *h, size_t i) {
    static const Token none = {.kind = TOKEN_SIGN, .text = " ", .length = 1};
    return i < h->tokens.count ? &h->tokens.items[i] : &none;
}

static bool is(const Heavy *h, size_t i, const char *text) { return token_is(at(h, i), text); }

static bool is_one_of(const Token *token, const char *const *texts, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (token_is(token, texts[i])) return true;
    return false;
}

static void add(Heavy *h, Tokens *to, Token token) {
    vec_push(h->arena, to, token);
    h->length += token.length + 1;
}

/* Replaces the words from `begin` to `end` */
static void put(Heavy *h, size_t begin, size_t end, const Tokens *by) {
    Tokens all = {0};
    h->length = 0;
    for (size_t i = 0; i < begin; i++) add(h, &all, h->tokens.items[i]);
    for (size_t i = 0; i < by->count; i++) add(h, &all, by->items[i]);
    for (size_t i = end; i < h->tokens.count; i++) add(h, &all, h->tokens.items[i]);
    h->tokens = all;
}

static void put_text(Heavy *h, size_t begin, size_t end, const char *text) {
    Tokens by = tokens_of(h->arena, text, strlen(text));
    put(h, begin, end, &by);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* The word after the bracket's partner; the end of the text if there is none */
static size_t after_bracket(const Heavy *h, size_t open) {
    int depth = 0;
    for (size_t i = open; i < h->tokens.count; i++) {
        if (is(h, i, "{") || is(h, i, "(") || is(h, i, "[")) depth++;
        if (is(h, i, "}") || is(h, i, ")") || is(h, i, "]")) depth--;
        if (depth <= 0) return i + 1;
    }
    return h->tokens.count;
}

static size_t after_statement(const Heavy *h, size_t i, size_t end) {
    while (i < end) {
        bool block = is(h, i, "{");
        bool bracket = block || is(h, i, "(") || is(h, i, "[");
        if (is(h, i, ";")) return i + 1;
        i = bracket ? after_bracket(h, i) : i + 1;
        if (block && !is(h, i, "else") && !is(h, i, ";")) return i;
    }
    return end;
}

typedef struct Run { /* of statements or items */
    size_t begin, end;
} Run;

/* Of what cannot be repeated in a kernel */
static bool is_single(const Heavy *h, size_t i) {
    static const char *const words[] = {"grid", "example", "cluster", "ensures"};
    return is_one_of(at(h, i), words, COUNT_OF(words));
}

/* Statements of one block, one after the other; false: none was found */
static bool find_run(Heavy *h, Run *run) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        size_t open = below(h, h->tokens.count + 1);
        while (open < h->tokens.count && !is(h, open, "{")) open++;
        if (open >= h->tokens.count || is(h, open - 1, "in") || is(h, open - 1, "=")) continue;
        size_t close = after_bracket(h, open) - 1;
        VEC(Run) all = {0};
        for (size_t i = open + 1; i < close;) {
            size_t end = after_statement(h, i, close);
            vec_push(h->arena, &all, ((Run){i, end}));
            i = end;
        }
        if (all.count == 0) continue;
        size_t first = chance(&h->random, 30) ? 0 : below(h, all.count);
        while (first < all.count && is_single(h, all.items[first].begin)) first++;
        if (first == all.count) continue;
        size_t last = first, most = chance(&h->random, 30) ? all.count : first + 1 + below(h, 4);
        while (last + 1 < all.count && last + 1 < most && !is_single(h, all.items[last + 1].begin))
            last++;
        *run = (Run){all.items[first].begin, all.items[last].end};
        return true;
    }
    return false;
}

/* ---- repetition ------------------------------------------------------------------------------ */

static bool declares(const Heavy *h, size_t i) {
    static const char *const words[] = {"let",  "var",   "shared", "const", "static", "pipe",
                                        "role", "range", "for",    "as",    "fn",     "kernel"};
    return is_one_of(at(h, i), words, COUNT_OF(words));
}

/* Of the grid: its variables are the axes */
static bool is_loop_of_grid(const Heavy *h, size_t i) {
    if (!is(h, i, "for")) return false;
    for (size_t end = i + 12; i < end; i++)
        if (is(h, i, "in")) return is(h, i + 1, "grid");
    return false;
}

/* The names that the statements declare: also of fields */
static Tokens declared(Heavy *h, Run run) {
    Tokens out = {0};
    for (size_t i = run.begin; i < run.end; i++) {
        size_t name = is(h, i + 1, "(") || is(h, i + 1, "<") ? i + 2 : i + 1;
        if (declares(h, i) && !is_loop_of_grid(h, i) && at(h, name)->kind == TOKEN_WORD)
            vec_push(h->arena, &out, *at(h, name));
        bool begins = i == run.begin || is(h, i - 1, ";") || is(h, i - 1, "{");
        if (begins && at(h, i)->kind == TOKEN_WORD && is(h, i + 1, ":"))
            vec_push(h->arena, &out, *at(h, i));
    }
    return out;
}

static bool same(const Token *a, const Token *b) {
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

static bool is_in(const Token *token, const Tokens *tokens) {
    for (size_t i = 0; i < tokens->count; i++)
        if (same(token, &tokens->items[i])) return true;
    return false;
}

static Token numbered(Heavy *h, const Token *name, int number) {
    return token_of(h->arena,
                    arena_printf(h->arena, "%.*s_%d", (int)name->length, name->text, number));
}

/* A name in the statements that is declared elsewhere: each copy uses that of the copy before it */
static size_t find_link(Heavy *h, Run run, const Tokens *names) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        size_t i = run.begin + below(h, run.end - run.begin);
        if (at(h, i)->kind == TOKEN_WORD && at(h, i)->length <= 3 && !is_in(at(h, i), names) &&
            !is(h, i - 1, ".") && !is(h, i - 1, ":") && !is(h, i, "in") && !declares(h, i))
            return i;
    }
    return run.end;
}

static bool is_integer(const Token *token) {
    if (token->kind != TOKEN_NUMBER || token->length > 9) return false;
    for (size_t i = 0; i < token->length; i++)
        if (token->text[i] < '0' || token->text[i] > '9') return false;
    return true;
}

static Token changed(Heavy *h, const Token *number, int by) {
    int64_t value = strtoll(arena_copy(h->arena, number->text, number->length), NULL, 10);
    return token_of(h->arena, arena_printf(h->arena, "%lld", (long long)value + by));
}

static void repeat(Heavy *h) {
    Run run;
    if (!find_run(h, &run)) return;
    Tokens names = declared(h, run), copies = {0};
    bool counts = chance(&h->random, 30), links = names.count > 0 && chance(&h->random, 40);
    size_t link = links ? find_link(h, run, &names) : run.end;
    int first = h->names, times = chance(&h->random, 20) ? 2 + (int)below(h, 20) : INT32_MAX;
    for (int k = 1; k <= times && h->length < h->wanted; k++) {
        for (size_t i = run.begin; i < run.end; i++) {
            Token token = *at(h, i);
            if (i == link && k > 1)
                token = numbered(h, &names.items[0], first + k - 1);
            else if (is_in(&token, &names))
                token = numbered(h, &token, first + k);
            else if (counts && is_integer(&token))
                token = changed(h, &token, k);
            add(h, &copies, token);
        }
        h->names++;
    }
    put(h, run.end, run.end, &copies);
}

/* The place is in a role: mostly, so that the program stays valid */
static bool is_in_role(Heavy *h, size_t i) {
    static const char *const items[] = {"role",    "kernel",   "pipe",    "grid",  "static",
                                        "example", "requires", "ensures", "const", "range"};
    if (chance(&h->random, 5)) return true;
    while (i > 0 && !is_one_of(at(h, i), items, COUNT_OF(items))) i--;
    return is(h, i, "role");
}

/* ---- nesting --------------------------------------------------------------------------------- */

static const char *head(Heavy *h, int level, bool first) {
    int number = 1 + (int)below(h, 8);
    switch (below(h, 4)) {
    case 0: return arena_printf(h->arena, "if h%d > %d {", level - !first, number);
    case 1: return arena_printf(h->arena, "for h%d in 0 .. h%d {", level, level - 1);
    default: return arena_printf(h->arena, "for h%d in 0 .. %d {", level, number);
    }
}

static void nest(Heavy *h) {
    Run run;
    if (!find_run(h, &run) || !is_in_role(h, run.begin)) return;
    int depth = 1 + (int)below(h, chance(&h->random, 70) ? 6 : DEPTH_MOST), from = h->names;
    Str text = str_new(h->arena);
    str_printf(&text, "for h%d in 0 .. %u {", from, below(h, 8));
    for (int d = 1; d < depth; d++) str_add(&text, head(h, from + d, d == 1));
    for (size_t i = run.begin; i < run.end; i++)
        str_printf(&text, " %.*s", (int)at(h, i)->length, at(h, i)->text);
    for (int d = 0; d < depth; d++) str_add(&text, " }");
    h->names += depth;
    put_text(h, run.begin, run.end, text.text);
}

/* ---- formulas -------------------------------------------------------------------------------- */

/* No extent of a declaration, and no variable of a loop */
static bool is_operand(const Heavy *h, size_t i) {
    if (is(h, i - 1, "[") && is(h, i - 3, ":")) return false;
    for (size_t k = 1; k < 5 && k < i; k++)
        if (is(h, i - k, "for")) return false;
    return true;
}

static size_t find_operand(Heavy *h) {
    static const char *const before[] = {"=", "(", ",", "+", "-", "*", "/", "[", "<", ">", "&"},
                             *const after[] = {";", ")", ",", "+", "-", "*", "/", "]", "&"};
    for (int attempt = 0; attempt < 10 * ATTEMPTS; attempt++) {
        size_t i = 1 + below(h, h->tokens.count);
        if (at(h, i)->kind <= TOKEN_NUMBER && is_one_of(at(h, i - 1), before, COUNT_OF(before)) &&
            is_one_of(at(h, i + 1), after, COUNT_OF(after)) && is_operand(h, i) && is_in_role(h, i))
            return i;
    }
    return h->tokens.count;
}

/* The formula with another operation; `flat`: a sum or product of many */
static const char *larger(Heavy *h, const char *formula, const char *operand, uint32_t form) {
    static const char *const signs[] = {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"};
    const char *sign = signs[below(h, COUNT_OF(signs))];
    uint32_t number = 1 + below(h, 9);
    Arena *arena = h->arena;
    switch (form) {
    case 0:
        return arena_printf(arena, "%s %s %s * %u", formula, number % 2 ? "+" : "-", operand,
                            number);
    case 1: return arena_printf(arena, "(%s %s %u)", formula, sign, number);
    case 2: return arena_printf(arena, "(%s %s %s)", formula, sign, formula);
    case 3:
        return arena_printf(arena, "%s(%s, %s + %u)", number % 2 ? "min" : "max", formula, operand,
                            number);
    case 4: return arena_printf(arena, "(%s > %u ? %s : %s)", operand, number, formula, operand);
    default: return arena_printf(arena, "(%s * (%s + %u))", formula, operand, number);
    }
}

static void lengthen(Heavy *h) {
    size_t place = find_operand(h);
    if (place >= h->tokens.count) return;
    const char *operand = arena_copy(h->arena, at(h, place)->text, at(h, place)->length),
               *formula = operand;
    uint32_t form = below(h, 6);
    size_t most = chance(&h->random, 60) ? 200 : 4000;
    for (int i = 0; i < 200 && strlen(formula) < most && h->length + strlen(formula) < h->wanted;
         i++)
        formula = larger(h, formula, operand, form);
    put_text(h, place, place + 1, arena_printf(h->arena, "(%s)", formula));
}

/* ---- statics and files ----------------------------------------------------------------------- */

static void add_statics(Heavy *h) {
    size_t open = below(h, h->tokens.count + 1);
    while (open > 0 && !is(h, open, "kernel")) open--;
    while (open < h->tokens.count && !is(h, open, "{")) open++;
    if (open >= h->tokens.count) return;
    Str text = str_new(h->arena);
    int count = 1 + (int)below(h, 12);
    for (int i = 0; i < count; i++) {
        str_printf(&text, "static H%d = 1 in {1", ++h->names);
        for (uint32_t v = 2 + below(h, chance(&h->random, 80) ? 4 : 60); v > 1; v--)
            str_printf(&text, ", %u", v);
        str_add(&text, "};");
    }
    put_text(h, open + 1, open + 1, text.text);
    for (int i = 0; i < count; i++) {
        size_t place = find_operand(h);
        if (place < h->tokens.count && is_integer(at(h, place)))
            put_text(h, place, place + 1,
                     arena_printf(h->arena, "(%.*s * H%d)", (int)at(h, place)->length,
                                  at(h, place)->text, h->names - i));
    }
}

static const char *any_text(Heavy *h) {
    uint64_t seed = ((uint64_t)draw(&h->random, UINT32_MAX) << 20) + 1;
    if (chance(&h->random, 12)) return generate(h->arena, seed).text;
    if (chance(&h->random, 12)) return generate_reductions(h->arena, seed).text;
    const Texts *texts = chance(&h->random, 15) ? &h->corpus->wrong : &h->corpus->right;
    return texts->items[below(h, texts->count)];
}

/* Kernels, functions and constants of the file get other names. */
static void join(Heavy *h) {
    const char *text = any_text(h);
    Heavy other = {.arena = h->arena, .tokens = tokens_of(h->arena, text, strlen(text))};
    static const char *const items[] = {"kernel", "fn", "const", "static"};
    Tokens names = {0};
    for (size_t i = 0; i < other.tokens.count; i++) {
        if (is(&other, i, "{")) {
            i = after_bracket(&other, i) - 1;
        } else if (is_one_of(at(&other, i), items, COUNT_OF(items)) &&
                   at(&other, i + 1)->kind == TOKEN_WORD) {
            vec_push(h->arena, &names, *at(&other, i + 1));
        }
    }
    h->names++;
    for (size_t i = 0; i < other.tokens.count; i++)
        if (is_in(at(&other, i), &names))
            other.tokens.items[i] = numbered(h, at(&other, i), h->names);
    put(h, h->tokens.count, h->tokens.count, &other.tokens);
}

/* ---- wounds ---------------------------------------------------------------------------------- */

static Token any_number(Heavy *h) {
    static const char *const numbers[] = {
        "0",     "1",          "2",          "7",      "31",      "64",  "128",  "255", "1000",
        "65536", "2147483647", "4294967296", "100000", "1000000", "0.5", "1e30", "2.",  "1.e3"};
    return token_of(h->arena, numbers[below(h, COUNT_OF(numbers))]);
}

static void wound(Heavy *h) {
    size_t i = below(h, h->tokens.count + 1), k = below(h, h->tokens.count + 1);
    if (i >= h->tokens.count || k >= h->tokens.count) return;
    Tokens by = {0};
    Token *items = h->tokens.items, kept = items[i];
    switch (below(h, 6)) {
    case 0: put(h, i, i + 1, &by); break;
    case 1:
        add(h, &by, kept);
        put(h, i, i, &by);
        break;
    case 2: items[i] = items[k], items[k] = kept; break;
    case 3: items[i] = items[k]; break;
    default:
        while (i < h->tokens.count && items[i].kind != TOKEN_NUMBER) i++;
        if (i < h->tokens.count) items[i] = any_number(h);
        break;
    }
}

/* Cut, or with other bytes */
static void wound_bytes(Heavy *h, Str *text) {
    if (text->length == 0) return;
    if (chance(&h->random, 50)) text->length = below(h, text->length + 1);
    for (uint32_t i = below(h, 6); i > 0 && text->length > 0; i--)
        text->text[below(h, text->length)] = (char)below(h, 256);
}

/* ---- the text -------------------------------------------------------------------------------- */

static void grow(Heavy *h) {
    static void (*const ways[])(Heavy *) = {repeat,   repeat,   repeat, nest,
                                            lengthen, lengthen, join,   add_statics};
    void (*chosen[3])(Heavy *);
    size_t count = 1 + below(h, COUNT_OF(chosen));
    for (size_t i = 0; i < count; i++) chosen[i] = ways[below(h, COUNT_OF(ways))];
    for (int i = 0; i < ATTEMPTS && h->length < h->wanted; i++) chosen[below(h, count)](h);
}

Str draw_heavy(Arena *arena, const Corpus *corpus, uint64_t seed) {
    Heavy h = {
        .arena = arena, .random = {seed * UINT64_C(0x9E3779B97F4A7C15) + 1}, .corpus = corpus};
    for (int i = 0; i < 4; i++) (void)draw(&h.random, 2);
    double share = draw(&h.random, 1u << 30) / (double)(1u << 30);
    h.wanted = (size_t)(LENGTH_LEAST * pow((double)LENGTH_MOST / LENGTH_LEAST, share));
    join(&h);
    grow(&h);
    if (chance(&h.random, 30))
        for (uint32_t wounds = 1 + below(&h, 3); wounds > 0; wounds--) wound(&h);
    Str text = tokens_text(arena, &h.tokens);
    if (chance(&h.random, 4)) wound_bytes(&h, &text);
    if (text.length >= LENGTH_MOST) text.length = LENGTH_MOST - 1;
    return text;
}
