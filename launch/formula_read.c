/* launch: reads a formula of a manifest: infix text -> postfix steps, by precedence climbing.
 * docs/manifest.md has the grammar. Depth and length are bounded, because evaluation and printing
 * recurse. */
#include "launch/private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MOST 1000
#define STEPS_MOST 10000

typedef struct Reader {
    Arena *arena;
    const Manifest *manifest;
    const char *at;
    VEC(FormulaStep) steps;
    int depth;
    bool fine;
} Reader;

/* How tightly operators bind */
enum { SELECT = 1, OR, AND, EQUAL, LESS, SUM, PRODUCT };

/* A longer spelling precedes its beginning. A comparison is no operand of another one at its
 * level. */
static const struct {
    const char *spelling;
    FormulaOp op;
    int level;
    bool chains;
} operators[] = {
    {"||", F_OR, OR, true},      {"&&", F_AND, AND, true},   {"==", F_EQ, EQUAL, false},
    {"!=", F_NE, EQUAL, false},  {"<=", F_LE, LESS, false},  {"<", F_LT, LESS, false},
    {"+", F_ADD, SUM, true},     {"-", F_SUB, SUM, true},    {"*", F_MUL, PRODUCT, true},
    {"/", F_DIV, PRODUCT, true}, {"%", F_MOD, PRODUCT, true}};

static const struct {
    const char *name;
    FormulaOp op;
} calls[] = {{"ceil", F_CEIL}, {"min", F_MIN}, {"max", F_MAX}};

int manifest_symbol(const Manifest *manifest, const char *name) {
    for (size_t i = 0; i < manifest->symbols.count; i++)
        if (strcmp(manifest->symbols.items[i].name, name) == 0) return (int)i;
    return -1;
}

static void push(Reader *reader, FormulaOp op, int64_t value) {
    if (reader->steps.count == STEPS_MOST) reader->fine = false;
    if (reader->fine) vec_push(reader->arena, &reader->steps, (FormulaStep){op, value});
}

static void blank(Reader *reader) { reader->at += strspn(reader->at, " "); }

static bool take(Reader *reader, const char *token) {
    blank(reader);
    if (!reader->fine || strncmp(reader->at, token, strlen(token)) != 0) return false;
    reader->at += strlen(token);
    return true;
}

static void need(Reader *reader, const char *token) {
    if (!take(reader, token)) reader->fine = false;
}

static void read_level(Reader *reader, int least);

/* A number with its sign: the least 64-bit integer has no positive counterpart. There is no
 * constant -0. */
static void read_number(Reader *reader) {
    bool negated = *reader->at == '-';
    char *end;
    errno = 0;
    long long value = strtoll(reader->at, &end, 10);
    if (errno == ERANGE) reader->fine = false;
    reader->at = end;
    push(reader, F_CONST, value);
    if (negated && value == 0) push(reader, F_NEG, 0);
}

/* "0f" and the 8 hexadecimal digits of an f32. */
static void read_float(Reader *reader) {
    char digits[9] = {0};
    strncpy(digits, reader->at + 2, 8);
    if (strspn(digits, "0123456789ABCDEFabcdef") != 8) reader->fine = false;
    reader->at += 2 + strlen(digits);
    uint32_t bits = (uint32_t)strtoul(digits, NULL, 16);
    float number;
    memcpy(&number, &bits, sizeof number);
    if (isnan(number)) reader->fine = false;
    push(reader, F_FLOAT, formula_order((double)number));
}

static void read_call(Reader *reader, FormulaOp op) {
    need(reader, "(");
    read_level(reader, SELECT);
    need(reader, ",");
    read_level(reader, SELECT);
    need(reader, ")");
    push(reader, op, 0);
}

static void read_name(Reader *reader) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.";
    size_t length = strspn(reader->at, letters);
    const char *name = arena_copy(reader->arena, reader->at, length);
    reader->at += length;
    blank(reader);
    for (size_t i = 0; *reader->at == '(' && i < COUNT_OF(calls); i++)
        if (strcmp(calls[i].name, name) == 0) {
            read_call(reader, calls[i].op);
            return;
        }
    int symbol = manifest_symbol(reader->manifest, name);
    if (symbol < 0) reader->fine = false;
    push(reader, F_SYMBOL, symbol);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_float_constant(const char *at) { return at[0] == '0' && at[1] == 'f'; }

static bool is_integer_constant(const char *at) {
    if (*at == '-') at++;
    return is_digit(*at) && !is_float_constant(at);
}

static void read_unary(Reader *reader) {
    blank(reader);
    if (is_float_constant(reader->at)) {
        read_float(reader);
    } else if (is_integer_constant(reader->at)) {
        read_number(reader);
    } else if (take(reader, "(")) {
        read_level(reader, SELECT);
        need(reader, ")");
    } else if (*reader->at == '-' || *reader->at == '!') {
        FormulaOp op = *reader->at++ == '-' ? F_NEG : F_NOT;
        if (++reader->depth > DEPTH_MOST) reader->fine = false;
        if (reader->fine) read_unary(reader);
        reader->depth--;
        push(reader, op, 0);
    } else {
        read_name(reader);
    }
}

/* Index in `operators` of the next one that binds with `least` to `most`; it is taken. -1: none */
static int take_operator(Reader *reader, int least, int most) {
    for (size_t i = 0; i < COUNT_OF(operators); i++) {
        int level = operators[i].level;
        if (level >= least && level <= most && take(reader, operators[i].spelling)) return (int)i;
    }
    return -1;
}

/* Operands joined by operators that bind with `least` at least */
static void read_level(Reader *reader, int least) {
    if (++reader->depth > DEPTH_MOST) reader->fine = false;
    if (reader->fine) read_unary(reader);
    int most = PRODUCT;
    for (int i; (i = take_operator(reader, least, most)) >= 0;) {
        read_level(reader, operators[i].level + 1);
        push(reader, operators[i].op, 0);
        most = operators[i].level - !operators[i].chains;
    }
    if (least == SELECT && take(reader, "?")) {
        read_level(reader, SELECT);
        need(reader, ":");
        read_level(reader, SELECT);
        push(reader, F_SELECT, 0);
    }
    reader->depth--;
}

/* ---- types ----------------------------------------------------------------------------------- */

/* Type of the result of an operation on operands of these types: true for floats; *fine becomes
 * false if it has none for them. */
static bool is_float_result(FormulaOp op, const bool *floats, int count, bool *fine) {
    bool first = count > 0 && floats[0], last = count > 0 && floats[count - 1];
    switch (op) {
    case F_EQ:
    case F_NE:
    case F_LT:
    case F_LE: *fine = *fine && first == last; return false;
    case F_NEG:
    case F_MIN:
    case F_MAX: *fine = *fine && first == last; return first;
    case F_SELECT: *fine = *fine && !floats[0] && floats[1] == floats[2]; return last;
    case F_CONST:
    case F_FLOAT:
    case F_SYMBOL:
    case F_NOT:
    case F_ADD:
    case F_SUB:
    case F_MUL:
    case F_DIV:
    case F_MOD:
    case F_CEIL:
    case F_AND:
    case F_OR: break;
    }
    *fine = *fine && !first && !last;
    return false;
}

/* True if the steps give an integer, and no operation has operands of two types */
static bool well_typed(Reader *reader) {
    bool *floats = NEW_ARRAY(reader->arena, bool, reader->steps.count + 1);
    bool fine = true;
    int depth = 0;
    for (size_t i = 0; i < reader->steps.count; i++) {
        const FormulaStep *step = &reader->steps.items[i];
        int count = formula_operands(step->op);
        depth -= count;
        floats[depth] =
            step->op == F_FLOAT ||
            (step->op == F_SYMBOL && reader->manifest->symbols.items[step->value].is_float) ||
            is_float_result(step->op, floats + depth, count, &fine);
        depth++;
    }
    return fine && !floats[0];
}

bool formula_read(Arena *arena, const Manifest *manifest, const char *text, Formula *out) {
    Reader reader = {.arena = arena, .manifest = manifest, .at = text, .fine = true};
    read_level(&reader, SELECT);
    blank(&reader);
    *out = (Formula){reader.steps.items, (int)reader.steps.count};
    return reader.fine && *reader.at == 0 && well_typed(&reader);
}
