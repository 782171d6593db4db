/* Syntax errors: turns the set of expected tokens into one English sentence.
 *
 * With LAC the set is complete, so it is long; tokens that belong together (start of an
 * expression, operators) are named as a group. */
#include "parser/build.h"

#include <string.h>

#include "pipe.tab.h"

#define TOKENS 256 /* more than there are */

typedef struct Set {
    bool has[TOKENS];
    const char *spelling[TOKENS];
} Set;

/* In the order of pipe.y: reserved words first, then contextual keywords */
static bool is_reserved(int token) { return token >= TOK_KERNEL && token <= TOK_MIN; }
static bool is_contextual(int token) { return token >= TOK_ARRIVALS && token <= TOK_WITHOUT; }

static void drop(Set *set, const int *tokens, size_t count) {
    for (size_t i = 0; i < count; i++) set->has[tokens[i]] = false;
}
#define DROP(set, ...)                                                                             \
    drop((set), (const int[]){__VA_ARGS__}, COUNT_OF(((const int[]){__VA_ARGS__})))

static void drop_names(Set *set) {
    for (int token = 0; token < TOKENS; token++)
        if (token == TOK_NAME || is_contextual(token)) set->has[token] = false;
}

static void drop_expression(Set *set) {
    drop_names(set);
    DROP(set, TOK_INTEGER, TOK_FLOAT, TOK_TRUE, TOK_FALSE, TOK_SUM, TOK_MAX, TOK_MIN, TOK_LPAREN,
         TOK_MINUS, TOK_NOT, TOK_TILDE, TOK_OLD, TOK_TRY, TOK_CONSUME, TOK_PRODUCE);
}

static void drop_statement(Set *set) {
    drop_expression(set);
    DROP(set, TOK_LET, TOK_VAR, TOK_SHARED, TOK_FOR, TOK_IF, TOK_WHILE, TOK_BREAK, TOK_CONTINUE,
         TOK_RETURN, TOK_TURN, TOK_UNSAFE, TOK_RELEASE, TOK_PREFETCH, TOK_LBRACE);
}

static void drop_item(Set *set) {
    DROP(set, TOK_CONST, TOK_STATIC, TOK_REQUIRES, TOK_ENSURES, TOK_EXAMPLE, TOK_GRID, TOK_CLUSTER,
         TOK_RANGE, TOK_PIPE, TOK_ROLE, TOK_VARIANT);
}

static void drop_operators(Set *set) {
    DROP(set, TOK_QUESTION, TOK_EQ, TOK_NE, TOK_LT, TOK_LE, TOK_GT, TOK_GE, TOK_AND, TOK_OR,
         TOK_BIT_AND, TOK_BIT_OR, TOK_BIT_XOR, TOK_SHL, TOK_SHR, TOK_PLUS, TOK_MINUS, TOK_STAR,
         TOK_SLASH, TOK_PERCENT, TOK_LPAREN, TOK_LBRACKET, TOK_DOT);
}

/* "`,`, `)` or an operator" */
static const char *phrase_of(Parse *p, Set *set) {
    Arena *arena = p->lexer.arena;
    VEC(const char *) parts = {0};
    const char *group = NULL, *operators = NULL;
    DROP(set, TOK_BAD, TOK_END);
    if (set->has[TOK_STAR]) {
        operators = "an operator";
        drop_operators(set);
    }
    if (set->has[TOK_LET] && set->has[TOK_RELEASE]) {
        group = "a statement";
        drop_statement(set);
        DROP(set, TOK_SEMICOLON, TOK_ELSE);
    } else if (set->has[TOK_ROLE]) {
        group = "an item of the kernel";
        drop_item(set);
        DROP(set, TOK_SEMICOLON, TOK_FOR, TOK_IF); /* those have their own message */
    } else if (set->has[TOK_INTEGER]) {
        group = "an expression";
        drop_expression(set);
    } else if (set->has[TOK_NAME]) {
        group = "a name";
        drop_names(set);
    }
    /* a missing width of a role has its own message */
    if (set->has[TOK_COLON] && !group) DROP(set, TOK_LBRACE);
    if (operators || set->has[TOK_SEMICOLON]) /* tokens that may follow anyway are not missing */
        for (int token = TOK_ARRIVALS; token <= TOK_WITHOUT; token++) set->has[token] = false;
    if (set->has[TOK_SEMICOLON]) DROP(set, TOK_FOR);
    if (set->has[TOK_SET_ADD]) DROP(set, TOK_SET_ADD, TOK_SET_SUB, TOK_SET_MUL, TOK_SET_DIV);
    if (group) vec_push(arena, &parts, group);
    for (int token = 0; token < TOKENS; token++)
        if (set->has[token])
            vec_push(arena, &parts,
                     (const char *)arena_printf(arena, "`%s`", set->spelling[token]));
    if (operators) vec_push(arena, &parts, operators);
    Str phrase = str_new(arena);
    for (size_t i = 0; i < parts.count; i++) {
        if (i > 0) str_add(&phrase, i + 1 == parts.count ? " or " : ", ");
        str_add(&phrase, parts.items[i]);
    }
    return phrase.text;
}

/* The token as written */
static const char *found_text(Parse *p, Word found, Span span) {
    if (found.token == TOK_END) return "the end of the file";
    Str text = str_new(p->lexer.arena);
    size_t length = span.hi - span.lo, shown = length > 40 ? 40 : length;
    if (is_reserved(found.token)) str_add(&text, "the keyword ");
    str_char(&text, '`');
    str_visible(&text, p->lexer.source->text + span.lo, shown);
    str_add(&text, shown < length ? "...`" : "`");
    return text.text;
}

static bool word_is(const Parse *p, Span span, const char *word) {
    return span.hi - span.lo == strlen(word) &&
           memcmp(p->lexer.source->text + span.lo, word, strlen(word)) == 0;
}

/* True if a `;` fits before `found`: `found` is on a later line, closes the block, or begins a
 * statement */
static bool ends_statement(const Parse *p, Word found, Span span) {
    if (found.token == TOK_RBRACE ||
        (found.token >= TOK_KERNEL && found.token <= TOK_TRY && found.token != TOK_AS &&
         found.token != TOK_LAG && found.token != TOK_IN))
        return true;
    const Source *source = p->lexer.source;
    return source_row(source, span.lo) > source_row(source, p->lexer.previous_end);
}

/* After an error the grammar may resume in the middle of the wrong text. So another error counts
 * only on a later line, or after a token that surely begins or ends a statement or item. */
static bool is_echo(const Parse *p, Span span) {
    const Source *source = p->lexer.source;
    return p->failed && p->lexer.boundary < p->failure.lo &&
           source_row(source, span.lo) == source_row(source, p->failure.lo);
}

static bool is_letter_or_digit(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* True if the current construct contains the keyword that was used as a name: its uses are no
 * further errors. */
static bool uses_misnamed(const Parse *p, Span span) {
    const char *text = p->lexer.source->text;
    const uint32_t length = p->misnamed.hi - p->misnamed.lo;
    if (length == 0) return false;
    for (uint32_t lo = p->lexer.boundary; lo + length <= span.hi; lo++)
        if (lo > p->misnamed.lo && memcmp(text + lo, text + p->misnamed.lo, length) == 0 &&
            !is_letter_or_digit(text[lo - 1]) && !is_letter_or_digit(text[lo + length]))
            return true;
    return false;
}

static void add_open_bracket(Parse *p, Diag *diag) {
    if (p->lexer.depth == 0) return;
    const Bracket *open = &p->lexer.open[p->lexer.depth - 1];
    diag_label(p->lexer.diags, diag, open->span, "this `%c` is not closed", open->shape);
}

/* Adds a suggestion if a similar token is expected in place of a name */
static void add_resembling(Parse *p, Diag *diag, Span span, const Set *set) {
    const char *words[TOKENS];
    size_t count = 0;
    for (int token = 0; token < TOKENS; token++)
        if (set->has[token] && (is_reserved(token) || is_contextual(token)))
            words[count++] = set->spelling[token];
    const char *text =
        arena_copy(p->lexer.arena, p->lexer.source->text + span.lo, span.hi - span.lo);
    const char *closest = closest_name(text, words, count);
    if (closest) diag_help(p->lexer.diags, diag, "did you mean `%s`?", closest);
}

/* The two bounds of a claim in another order or with another word between them */
static const char *advice_on_bounds(Parse *p, Word found, Span span, const Set *set) {
    if (set->has[TOK_INTEGER]) return NULL; /* `or` and `within` may be names here */
    if (set->has[TOK_WITHIN] && found.token == TOK_OR_WORD)
        return "write both bounds after `within`: `within 1e-3 or 0.5`";
    bool joins = found.token == TOK_COMMA || found.token == TOK_WITHIN ||
                 (found.token == TOK_NAME && word_is(p, span, "and"));
    return set->has[TOK_OR_WORD] && joins
               ? "write `or` between a relative and an absolute bound: `within 1e-3 or 0.5`"
               : NULL;
}

/* The word that ends at `end` */
static const char *word_before(const Parse *p, uint32_t end) {
    const char *text = p->lexer.source->text;
    uint32_t begin = end;
    while (begin > 0 && is_letter_or_digit(text[begin - 1])) begin--;
    return arena_copy(p->lexer.arena, text + begin, end - begin);
}

/* `x` in the place of `x: f32` */
static bool lacks_type(Word found, const Set *set) {
    return set->has[TOK_COLON] && !set->has[TOK_QUESTION] && !set->has[TOK_SET] &&
           (found.token == TOK_COMMA || found.token == TOK_RPAREN);
}

/* The text of the line up to its end `end`, and the `;` that it lacks */
static void add_semicolon(Parse *p, Diag *diag, uint32_t end) {
    const char *text = p->lexer.source->text;
    uint32_t begin = end;
    while (begin > 0 && !strchr("\n;{}", text[begin - 1])) begin--;
    while (begin < end && strchr(" \t\r", text[begin])) begin++;
    if (begin < end && end - begin <= 60)
        diag_help(p->lexer.diags, diag, "write `%.*s;`", (int)(end - begin), text + begin);
}

static void add_advice(Parse *p, Diag *diag, Word found, Span span, const Set *set) {
    Diags *diags = p->lexer.diags;
    bool constant = found.token == TOK_CONST || found.token == TOK_STATIC;
    if (is_reserved(found.token) ? set->has[TOK_RBRACE] && !constant
                                 : set->has[TOK_RPAREN] || set->has[TOK_RBRACKET])
        add_open_bracket(p, diag);
    const char *bounds = advice_on_bounds(p, found, span, set);
    if (bounds != NULL)
        diag_help(diags, diag, "%s", bounds);
    else if (found.token == TOK_OR_WORD || (found.token == TOK_NAME && word_is(p, span, "and")))
        diag_help(diags, diag, "the logical operators are `&&` and `||`");
    else if (constant && set->has[TOK_LET])
        diag_help(diags, diag, "declare constants outside of roles, or write `let`");
    else if (lacks_type(found, set))
        diag_help(diags, diag, "write its type: `%s: f32`, or `%s: f32[N]`",
                  word_before(p, p->lexer.previous_end), word_before(p, p->lexer.previous_end));
    else if (set->has[TOK_ROLE] && found.token == TOK_LET)
        diag_help(diags, diag, "write statements in a role: `role work: 4 warps { .. }`");
    else if (set->has[TOK_TEXT] && p->lexer.depth == 0)
        diag_help(diags, diag, "write a path in quotes: `include \"common.pipe\";`");
    else if (found.token == TOK_NAME)
        add_resembling(p, diag, span, set);
    else if (found.token == TOK_SET && set->has[TOK_EQ])
        diag_help(diags, diag, "write `==` to compare");
    else if (found.token == TOK_DOT && set->has[TOK_INTEGER])
        diag_help(diags, diag, "write a digit before the point: `0.5`");
    else if (found.token == TOK_ARROW && set->has[TOK_DOT])
        diag_help(diags, diag, "write `s.x` for a field");
}

void report_syntax(Parse *p, Word found, Span span, const Word *expected, int count) {
    Lexer *lexer = &p->lexer;
    if (lexer->stopped || (span.lo < lexer->complained && found.token != TOK_END) ||
        is_echo(p, span))
        return;
    p->failed = true;
    p->failure = span;
    Set set = {0};
    for (int i = 0; i < count; i++) {
        set.has[expected[i].token] = true;
        set.spelling[expected[i].token] = expected[i].spelling;
    }
    const Set whole = set;
    Span gap = {lexer->previous_end, lexer->previous_end};
    /* at the beginning of a statement or item */
    bool begins = set.has[TOK_LET] || set.has[TOK_ROLE] || set.has[TOK_KERNEL];
    const char *what = found_text(p, found, span);

    if (found.token == TOK_END) {
        const char *wanted = set.has[TOK_RBRACE] ? "`}`" : phrase_of(p, &set);
        Diag *diag =
            lexer_report(lexer, P0001, gap, "expected %s, found the end of the file", wanted);
        add_open_bracket(p, diag);
    } else if (found.token == TOK_RBRACE && set.has[TOK_KERNEL]) {
        lexer_report(lexer, P0001, span, "`}` without a block to close");
    } else if (found.token == TOK_SEMICOLON && begins) {
        report_empty_statement(p, span, false);
    } else if (set.has[TOK_SEMICOLON] && (!set.has[TOK_LBRACE] || set.has[TOK_STAR]) && !begins &&
               ends_statement(p, found, span)) {
        Diag *diag = lexer_report(lexer, P0014, gap, "expected `;`, found %s", what);
        add_semicolon(p, diag, gap.lo);
    } else if (is_reserved(found.token) && set.has[TOK_NAME] && !set.has[TOK_INTEGER] &&
               !set.has[TOK_LET]) {
        Diag *diag = lexer_report(lexer, P0018, span, "%s cannot be a name", what);
        diag_help(lexer->diags, diag, "choose another name, for example `%.*s_`",
                  (int)(span.hi - span.lo), lexer->source->text + span.lo);
        p->misnamed = span;
    } else if (uses_misnamed(p, span)) {
        return;
    } else if (set.has[TOK_TILDE] && !set.has[TOK_INTEGER]) { /* not the one before an operand */
        report_claim(p, span, arena_printf(lexer->arena, "expected `~` or `==`, found %s", what));
    } else {
        Diag *diag =
            lexer_report(lexer, P0001, span, "expected %s, found %s", phrase_of(p, &set), what);
        add_advice(p, diag, found, span, &whole);
    }
}
