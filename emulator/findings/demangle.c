/* The reader of mangled names: a tree from the text, by recursive descent without going back. The
 * names of the functions are those of the grammar in the Itanium C++ ABI, section 5.1. */
#include "emulator/findings/demangle.h"

#include <string.h>

enum { MOST_BYTES = 8192, MOST_DEPTH = 128 };

typedef struct Reader {
    Arena *arena;
    const char *at, *end;
    uint32_t depth;
    VEC(const Node *) known; /* what substitutions stand for */
    bool failed;
} Reader;

static const Node *read_name(Reader *reader);
static const Node *read_type(Reader *reader);
static const Node *read_encoding(Reader *reader);
static const Nodes *read_arguments(Reader *reader);

/* ---- tools ----------------------------------------------------------------------------------- */

static const Node *fail(Reader *reader) {
    reader->failed = true;
    reader->at = reader->end;
    return NULL;
}

static char peek(const Reader *reader) { return reader->at < reader->end ? *reader->at : '\0'; }

static char peek_second(const Reader *reader) {
    return reader->end - reader->at > 1 ? reader->at[1] : '\0';
}

static bool take(Reader *reader, char wanted) {
    if (peek(reader) != wanted) return false;
    reader->at++;
    return true;
}

static bool take_text(Reader *reader, const char *wanted) {
    size_t length = strlen(wanted);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, wanted, length) != 0)
        return false;
    reader->at += length;
    return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool read_number(Reader *reader, uint64_t *number) {
    if (!is_digit(peek(reader))) return false;
    for (*number = 0; is_digit(peek(reader)); reader->at++) {
        if (*number > UINT32_MAX) return false;
        *number = *number * 10 + (uint64_t)(*reader->at - '0');
    }
    return true;
}

static const Node *make(Reader *reader, Node node) {
    if (reader->failed) return NULL;
    Node *it = NEW(reader->arena, Node);
    *it = node;
    return it;
}

static const Node *make_text(Reader *reader, NodeKind kind, const char *text, const Node *a) {
    return make(reader, (Node){.kind = kind, .text = text, .a = a});
}

static const Node *know(Reader *reader, const Node *node) {
    if (node) vec_push(reader->arena, &reader->known, node);
    return node;
}

const Node *demangle_last(const Node *name) {
    while (name && (name->kind == NODE_NESTED || name->kind == NODE_LOCAL)) name = name->b;
    return name;
}

/* "_", "0_", "1_" ..: 0, 1, 2; base 10, or 36 for substitutions */
static bool read_index(Reader *reader, uint32_t base, uint64_t *index) {
    *index = 0;
    if (take(reader, '_')) return true;
    for (; peek(reader) != '_'; reader->at++) {
        char c = peek(reader);
        uint32_t digit = is_digit(c)                          ? (uint32_t)(c - '0')
                         : c >= 'A' && c <= 'Z' && base == 36 ? (uint32_t)(c - 'A') + 10
                                                              : base;
        if (digit >= base || *index > UINT32_MAX) return false;
        *index = *index * base + digit;
    }
    reader->at++;
    ++*index;
    return true;
}

/* ---- words ----------------------------------------------------------------------------------- */

static const Node *read_source_name(Reader *reader) {
    uint64_t length;
    if (!read_number(reader, &length) || length == 0 ||
        length > (uint64_t)(reader->end - reader->at))
        return fail(reader);
    const char *text = arena_copy(reader->arena, reader->at, (size_t)length);
    reader->at += length;
    /* nvcc adds the name of the file and a hash */
    if (!strncmp(text, "_GLOBAL_", 8) && length > 9 && strchr("._$", text[8]) && text[9] == 'N')
        text = "(anonymous namespace)";
    return make_text(reader, NODE_NAME, text, NULL);
}

static const Node *read_operator(Reader *reader) {
    static const char *const names[] = {
        "nw new", "na new[]", "dl delete", "da delete[]", "ps +",   "ng -",   "ad &",  "de *",
        "co ~",   "pl +",     "mi -",      "ml *",        "dv /",   "rm %",   "an &",  "or |",
        "eo ^",   "aS =",     "pL +=",     "mI -=",       "mL *=",  "dV /=",  "rM %=", "aN &=",
        "oR |=",  "eO ^=",    "ls <<",     "rs >>",       "lS <<=", "rS >>=", "eq ==", "ne !=",
        "lt <",   "gt >",     "le <=",     "ge >=",       "ss <=>", "nt !",   "aa &&", "oo ||",
        "pp ++",  "mm --",    "cm ,",      "pm ->*",      "pt ->",  "cl ()",  "ix []", "qu ?"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (peek(reader) != names[i][0] || peek_second(reader) != names[i][1]) continue;
        const char *word = names[i] + 3;
        reader->at += 2;
        bool letters = *word >= 'a' && *word <= 'z';
        return make_text(reader, NODE_NAME,
                         arena_printf(reader->arena, "operator%s%s", letters ? " " : "", word),
                         NULL);
    }
    if (take_text(reader, "cv"))
        return make(reader, (Node){.kind = NODE_CONVERSION, .a = read_type(reader)});
    return fail(reader);
}

/* Types until `E`; "v" alone: none */
static const Nodes *read_types(Reader *reader) {
    Nodes *list = NEW(reader->arena, Nodes);
    if (peek(reader) == 'v' && (peek_second(reader) == 'E' || peek_second(reader) == '\0')) {
        reader->at++;
        return list;
    }
    while (!reader->failed && reader->at < reader->end && peek(reader) != 'E') {
        const Node *type = read_type(reader);
        vec_push(reader->arena, &list->items, type);
    }
    return list;
}

/* `Ul types E number _`, `Ut number _` */
static const Node *read_unnamed(Reader *reader) {
    uint64_t number;
    bool lambda = take_text(reader, "Ul");
    const Nodes *list = NULL;
    if (lambda) {
        list = read_types(reader);
        if (!take(reader, 'E')) return fail(reader);
    } else if (!take_text(reader, "Ut")) {
        return fail(reader);
    }
    if (!read_index(reader, 10, &number)) return fail(reader);
    if (lambda)
        return make(reader, (Node){.kind = NODE_LAMBDA, .list = list, .number = number + 1});
    return make_text(
        reader, NODE_NAME,
        arena_printf(reader->arena, "{unnamed type#%llu}", (unsigned long long)number + 1), NULL);
}

/* `scope`: the class of a constructor */
static const Node *read_structor(Reader *reader, const Node *scope) {
    NodeKind kind = peek(reader) == 'C' ? NODE_CONSTRUCTOR : NODE_DESTRUCTOR;
    const Node *last = demangle_last(scope);
    char variant = peek_second(reader);
    if (!last || variant < '0' || variant > '5') return fail(reader);
    if (last->kind == NODE_TEMPLATE) last = demangle_last(last->a);
    reader->at += 2;
    if (last && last->kind == NODE_NAME && strchr(last->text, '<')) /* of `Ss` */
        last = make_text(reader, NODE_NAME,
                         arena_copy(reader->arena, last->text, strcspn(last->text, "<")), NULL);
    return make(reader, (Node){.kind = kind, .a = last});
}

static const Node *read_unqualified(Reader *reader, const Node *scope) {
    const Node *name;
    char c = peek(reader);
    if (c == 'L') reader->at++; /* internal linkage */
    c = peek(reader);
    if (is_digit(c))
        name = read_source_name(reader);
    else if (c == 'U')
        name = read_unnamed(reader);
    else if (c == 'C' || c == 'D')
        name = read_structor(reader, scope);
    else
        name = read_operator(reader);
    while (take(reader, 'B')) {
        const Node *tag = read_source_name(reader);
        name = tag ? make_text(reader, NODE_TAGGED, tag->text, name) : NULL;
    }
    return name;
}

/* ---- substitutions --------------------------------------------------------------------------- */

static const Node *make_nested(Reader *reader, const Node *a, const Node *b) {
    return make(reader, (Node){.kind = NODE_NESTED, .a = a, .b = b});
}

/* After `S`, not of `St` */
static const Node *read_substitution(Reader *reader) {
    static const char *const words[] = {
        "a allocator",
        "b basic_string",
        "s basic_string<char, std::char_traits<char>, std::allocator<char> >",
        "i basic_istream<char, std::char_traits<char> >",
        "o basic_ostream<char, std::char_traits<char> >",
        "d basic_iostream<char, std::char_traits<char> >"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (take(reader, words[i][0]))
            return make_nested(reader, make_text(reader, NODE_NAME, "std", NULL),
                               make_text(reader, NODE_NAME, words[i] + 2, NULL));
    uint64_t index;
    if (!read_index(reader, 36, &index) || index >= reader->known.count) return fail(reader);
    return reader->known.items[index];
}

/* After `T` */
static const Node *read_parameter(Reader *reader) {
    uint64_t index;
    if (!read_index(reader, 10, &index)) return fail(reader);
    return make(reader, (Node){.kind = NODE_PARAMETER, .number = index});
}

static const Node *read_template(Reader *reader, const Node *name) {
    const Nodes *list = read_arguments(reader);
    return make(reader, (Node){.kind = NODE_TEMPLATE, .a = name, .list = list});
}

/* ---- names ----------------------------------------------------------------------------------- */

/* One part of a nested name after `scope`; *known: it is a substitution already */
static const Node *read_part(Reader *reader, const Node *scope, bool *known) {
    *known = false;
    if (peek(reader) == 'S') {
        if (scope) return fail(reader);
        *known = true;
        reader->at++;
        if (take(reader, 't')) return make_text(reader, NODE_NAME, "std", NULL);
        return read_substitution(reader);
    }
    if (peek(reader) == 'I') return scope ? read_template(reader, scope) : fail(reader);
    if (!scope && take(reader, 'T')) return read_parameter(reader);
    const Node *name = read_unqualified(reader, scope);
    return scope ? make_nested(reader, scope, name) : name;
}

/* Qualifiers of a type or of a member function, as they are printed */
static const char *read_qualifiers(Reader *reader, bool of_member) {
    bool restricts = take(reader, 'r'), is_volatile = take(reader, 'V'),
         is_const = take(reader, 'K');
    const char *reference = of_member && take(reader, 'R')   ? " &"
                            : of_member && take(reader, 'O') ? " &&"
                                                             : "";
    return arena_printf(reader->arena, "%s%s%s%s", is_const ? " const" : "",
                        is_volatile ? " volatile" : "", restricts ? " restrict" : "", reference);
}

/* After `N` */
static const Node *read_nested(Reader *reader) {
    const char *qualifiers = read_qualifiers(reader, true);
    const Node *name = NULL;
    while (!reader->failed && !take(reader, 'E')) {
        bool known;
        name = read_part(reader, name, &known);
        take(reader, 'M'); /* a lambda in the initial value of a member */
        if (reader->failed || reader->at >= reader->end) return fail(reader);
        if (!known && peek(reader) != 'E') know(reader, name);
    }
    if (!name) return fail(reader);
    return *qualifiers ? make_text(reader, NODE_QUALIFIED, qualifiers, name) : name;
}

/* `_ number`, `__ number _`: which of several entities of one name; not printed */
static void skip_discriminator(Reader *reader) {
    uint64_t number;
    if (!take(reader, '_')) return;
    bool is_long = take(reader, '_');
    if (!read_number(reader, &number) || (is_long && !take(reader, '_'))) fail(reader);
}

/* After `Z` */
static const Node *read_local(Reader *reader) {
    const Node *function = read_encoding(reader), *name;
    uint64_t number;
    if (!take(reader, 'E')) return fail(reader);
    if (take(reader, 's')) {
        name = make_text(reader, NODE_NAME, "string literal", NULL);
    } else if (take(reader, 'd')) {
        if (!read_index(reader, 10, &number)) return fail(reader);
        const Node *inner = read_name(reader);
        name = make(reader, (Node){.kind = NODE_NESTED,
                                   .a = make_text(reader, NODE_NAME,
                                                  arena_printf(reader->arena, "{default arg#%llu}",
                                                               (unsigned long long)number + 1),
                                                  NULL),
                                   .b = inner});
    } else {
        name = read_name(reader);
    }
    skip_discriminator(reader);
    if (!name || name->kind != NODE_QUALIFIED)
        return make(reader, (Node){.kind = NODE_LOCAL, .a = function, .b = name});
    /* the qualifiers stand after the parameters */
    return make_text(reader, NODE_QUALIFIED, name->text,
                     make(reader, (Node){.kind = NODE_LOCAL, .a = function, .b = name->a}));
}

static const Node *read_unscoped(Reader *reader, bool *known) {
    *known = false;
    if (take_text(reader, "St"))
        return make_nested(reader, make_text(reader, NODE_NAME, "std", NULL),
                           read_unqualified(reader, NULL));
    if (take(reader, 'S')) {
        *known = true;
        const Node *name = read_substitution(reader);
        return peek(reader) == 'I' ? name : fail(reader);
    }
    return read_unqualified(reader, NULL);
}

static const Node *read_name(Reader *reader) {
    const Node *name;
    bool known;
    if (++reader->depth > MOST_DEPTH) return fail(reader);
    if (take(reader, 'N')) {
        name = read_nested(reader);
    } else if (take(reader, 'Z')) {
        name = read_local(reader);
    } else {
        name = read_unscoped(reader, &known);
        if (peek(reader) == 'I') {
            if (!known) know(reader, name);
            name = read_template(reader, name);
        }
    }
    reader->depth--;
    return name;
}

/* ---- types ----------------------------------------------------------------------------------- */

static const char *builtin_of(char c) {
    static const char *const names[] = {"v void",        "w wchar_t",
                                        "b bool",        "c char",
                                        "a signed char", "h unsigned char",
                                        "s short",       "t unsigned short",
                                        "i int",         "j unsigned int",
                                        "l long",        "m unsigned long",
                                        "x long long",   "y unsigned long long",
                                        "n __int128",    "o unsigned __int128",
                                        "f float",       "d double",
                                        "e long double", "g __float128",
                                        "z ..."};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i][0] == c) return names[i] + 2;
    return NULL;
}

/* After `F` */
static const Node *read_signature(Reader *reader) {
    take(reader, 'Y');
    const Node *result = read_type(reader);
    const Nodes *list = read_types(reader);
    const char *reference = NULL;
    if (!take(reader, 'E')) return fail(reader);
    return make(reader,
                (Node){.kind = NODE_SIGNATURE, .a = result, .list = list, .text = reference});
}

/* After `A` */
static const Node *read_array(Reader *reader) {
    uint64_t extent;
    const char *text = "";
    if (read_number(reader, &extent))
        text = arena_printf(reader->arena, "%llu", (unsigned long long)extent);
    if (!take(reader, '_')) return fail(reader);
    return make_text(reader, NODE_ARRAY, text, read_type(reader));
}

/* After `D` */
static const Node *read_rare_type(Reader *reader) {
    static const char *const names[] = {"n decltype(nullptr)", "a auto",     "c decltype(auto)",
                                        "i char32_t",          "s char16_t", "u char8_t"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (take(reader, names[i][0])) return make_text(reader, NODE_TYPE, names[i] + 2, NULL);
    if (!take(reader, 'p')) return fail(reader);
    return know(reader, make(reader, (Node){.kind = NODE_EXPANSION, .a = read_type(reader)}));
}

static const Node *read_qualified(Reader *reader) {
    const char *qualifiers = read_qualifiers(reader, false);
    return make_text(reader, NODE_QUALIFIED, qualifiers, read_type(reader));
}

/* After `M` */
static const Node *read_member(Reader *reader) {
    const Node *of = read_type(reader), *type = read_type(reader);
    return make(reader, (Node){.kind = NODE_MEMBER, .a = type, .b = of});
}

static const Node *read_vendor_type(Reader *reader) {
    const Node *name = read_source_name(reader);
    return name ? make_text(reader, NODE_TYPE, name->text, NULL) : NULL;
}

/* A substitution, or a template of one */
static const Node *read_known_type(Reader *reader) {
    reader->at++;
    const Node *type = read_substitution(reader);
    if (reader->failed || peek(reader) != 'I') return type;
    return know(reader, read_template(reader, type));
}

static const Node *read_parameter_type(Reader *reader) {
    reader->at++;
    const Node *type = know(reader, read_parameter(reader));
    if (reader->failed || peek(reader) != 'I') return type;
    return know(reader, read_template(reader, type));
}

static const Node *read_pointer(Reader *reader) {
    const char *text = peek(reader) == 'P' ? "*" : peek(reader) == 'R' ? "&" : "&&";
    reader->at++;
    return make_text(reader, NODE_POINTER, text, read_type(reader));
}

static const Node *read_compound(Reader *reader) {
    switch (peek(reader)) {
    case 'r':
    case 'V':
    case 'K': return know(reader, read_qualified(reader));
    case 'P':
    case 'R':
    case 'O': return know(reader, read_pointer(reader));
    case 'F': reader->at++; return know(reader, read_signature(reader));
    case 'A': reader->at++; return know(reader, read_array(reader));
    case 'M': reader->at++; return know(reader, read_member(reader));
    case 'u': reader->at++; return know(reader, read_vendor_type(reader));
    case 'D': reader->at++; return read_rare_type(reader);
    case 'T': return read_parameter_type(reader);
    case 'S':
        if (peek_second(reader) != 't') return read_known_type(reader);
        return know(reader, read_name(reader));
    default: return know(reader, read_name(reader));
    }
}

static const Node *read_type(Reader *reader) {
    const char *builtin = builtin_of(peek(reader));
    if (++reader->depth > MOST_DEPTH) return fail(reader);
    const Node *type = NULL;
    if (builtin) {
        reader->at++;
        type = make_text(reader, NODE_TYPE, builtin, NULL);
    } else {
        type = read_compound(reader);
    }
    reader->depth--;
    return type;
}

/* ---- arguments of templates ------------------------------------------------------------------ */

/* After `L`: a number, or the name of a function or variable */
static const Node *read_literal(Reader *reader) {
    const Node *node;
    if (take_text(reader, "_Z")) {
        node = read_encoding(reader);
    } else {
        const Node *type = read_type(reader);
        bool negative = take(reader, 'n');
        const char *start = reader->at;
        while (reader->at < reader->end && *reader->at != 'E') reader->at++;
        const char *digits = arena_copy(reader->arena, start, (size_t)(reader->at - start));
        for (const char *c = digits; *c; c++)
            if (!is_digit(*c) && (*c < 'a' || *c > 'f')) return fail(reader);
        node = make_text(reader, NODE_LITERAL,
                         arena_printf(reader->arena, "%s%s", negative ? "-" : "", digits), type);
    }
    return take(reader, 'E') ? node : fail(reader);
}

/* After `X`: only a parameter of a template, or the expansion of one */
static const Node *read_expression(Reader *reader) {
    bool expands = take_text(reader, "sp");
    if (!take(reader, 'T')) return fail(reader);
    const Node *node = read_parameter(reader);
    if (expands) node = make(reader, (Node){.kind = NODE_EXPANSION, .a = node});
    return take(reader, 'E') ? node : fail(reader);
}

static const Node *read_argument(Reader *reader) {
    if (take(reader, 'L')) return read_literal(reader);
    if (take_text(reader, "XadL")) {
        const Node *node = read_literal(reader);
        return take(reader, 'E') ? make(reader, (Node){.kind = NODE_ADDRESS, .a = node})
                                 : fail(reader);
    }
    if (take(reader, 'X')) return read_expression(reader);
    if (peek(reader) == 'J') {
        const Nodes *list = read_arguments(reader);
        return make(reader, (Node){.kind = NODE_PACK, .list = list});
    }
    return read_type(reader);
}

/* `I arguments E`, or `J arguments E` for a pack */
static const Nodes *read_arguments(Reader *reader) {
    Nodes *list = NEW(reader->arena, Nodes);
    reader->at++;
    if (++reader->depth > MOST_DEPTH) fail(reader);
    while (!reader->failed && !take(reader, 'E')) {
        if (reader->at >= reader->end) fail(reader);
        const Node *argument = reader->failed ? NULL : read_argument(reader);
        vec_push(reader->arena, &list->items, argument);
    }
    reader->depth--;
    return list;
}

/* ---- encodings ------------------------------------------------------------------------------- */

static const Node *read_special(Reader *reader) {
    static const char *const words[] = {"TVvtable for ", "TTVTT for ", "TItypeinfo for ",
                                        "TStypeinfo name for ", "GVguard variable for "};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (peek(reader) != words[i][0] || peek_second(reader) != words[i][1]) continue;
        reader->at += 2;
        const Node *name = words[i][0] == 'T' ? read_type(reader) : read_name(reader);
        return make_text(reader, NODE_PREFIXED, words[i] + 2, name);
    }
    return NULL;
}

/* Templates have their result in the name, but not constructors and conversions. */
static bool has_result(const Node *name) {
    if (name->kind == NODE_QUALIFIED) name = name->a;
    const Node *last = demangle_last(name);
    if (!last || last->kind != NODE_TEMPLATE) return false;
    last = demangle_last(last->a);
    while (last && last->kind == NODE_TAGGED) last = last->a;
    return last && last->kind != NODE_CONSTRUCTOR && last->kind != NODE_DESTRUCTOR &&
           last->kind != NODE_CONVERSION;
}

static const Node *read_encoding(Reader *reader) {
    const Node *name = read_special(reader), *result = NULL;
    if (name || reader->failed) return name;
    name = read_name(reader);
    if (reader->failed || !name) return fail(reader);
    if (reader->at == reader->end || peek(reader) == 'E') return name;
    if (has_result(name)) result = read_type(reader);
    const Nodes *list = read_types(reader);
    return make(reader, (Node){.kind = NODE_FUNCTION, .a = name, .b = result, .list = list});
}

const char *demangle(Arena *arena, const char *name) {
    size_t length = strlen(name);
    if (strncmp(name, "_Z", 2) != 0 || length > MOST_BYTES) return NULL;
    Reader reader = {.arena = arena, .at = name + 2, .end = name + length};
    const Node *root = read_encoding(&reader);
    Str out = str_new(arena);
    if (reader.failed || !root || reader.at != reader.end) return NULL;
    return demangle_print(root, &out) ? out.text : NULL;
}

const char *demangle_or_keep(Arena *arena, const char *name) {
    const char *text = demangle(arena, name);
    return text ? text : name;
}
