/* The text of a mangled name, as c++filt has it. A type is printed in two parts, left and right of
 * what it declares: "int (*" and ")(char)". Substitutions make the tree a graph, whose text can
 * grow exponentially: the number of visits and the length of the text are limited. */
#include "emulator/findings/demangle.h"

#include <stdio.h>
#include <string.h>

enum { MOST_TEXT = 16384, MOST_VISITS = 65536, MOST_DEPTH = 256, NO_ELEMENT = -1 };

typedef struct Printer {
    Str *out;
    const Nodes *arguments; /* of the template whose parameters are printed; NULL: none */
    int64_t element;        /* of packs, within an expansion */
    uint32_t visits, depth;
    uint32_t lambdas; /* whose parameters are printed */
    char last;        /* character; of a comma that is taken back, as c++filt has it */
    bool failed;
} Printer;

static void print_left(Printer *printer, const Node *node);
static void print_right(Printer *printer, const Node *node);

/* ---- tools ----------------------------------------------------------------------------------- */

static void add(Printer *printer, const char *text) {
    if (printer->out->length + strlen(text) > MOST_TEXT) printer->failed = true;
    if (printer->failed || !*text) return;
    str_add(printer->out, text);
    printer->last = text[strlen(text) - 1];
}

static bool enter(Printer *printer, const Node *node) {
    if (!node || ++printer->visits > MOST_VISITS || ++printer->depth > MOST_DEPTH)
        printer->failed = true;
    return !printer->failed;
}

static void print(Printer *printer, const Node *node) {
    print_left(printer, node);
    print_right(printer, node);
}

/* What a parameter of a template stands for; NULL: unknown, or of a lambda */
static const Node *argument_of(const Printer *printer, const Node *node) {
    const Nodes *list = printer->arguments;
    if (printer->lambdas || !list || node->number >= list->items.count) return NULL;
    const Node *argument = list->items.items[node->number];
    if (argument && argument->kind == NODE_PACK && printer->element != NO_ELEMENT)
        return (size_t)printer->element < argument->list->items.count
                   ? argument->list->items.items[printer->element]
                   : NULL;
    return argument;
}

/* Through parameters of templates */
static const Node *resolve(Printer *printer, const Node *node) {
    while (node && node->kind == NODE_PARAMETER) {
        if (++printer->visits > MOST_VISITS) {
            printer->failed = true;
            return NULL;
        }
        const Node *argument = argument_of(printer, node);
        if (!argument) break;
        node = argument;
    }
    return node;
}

/* Elements that print nothing, empty packs, have no comma. */
static void print_list(Printer *printer, const Nodes *list) {
    bool any = false;
    for (size_t i = 0; i < list->items.count && !printer->failed; i++) {
        size_t before = printer->out->length;
        if (any) add(printer, ", ");
        size_t start = printer->out->length;
        print(printer, list->items.items[i]);
        if (printer->out->length != start) {
            any = true;
        } else if (!printer->failed) {
            printer->out->length = before;
            printer->out->text[before] = '\0';
        }
    }
}

/* The arguments of the template that a function is; those of the function around it otherwise */
static const Nodes *arguments_of(const Printer *printer, const Node *name) {
    if (name && name->kind == NODE_QUALIFIED) name = name->a;
    const Node *last = demangle_last(name);
    return last && last->kind == NODE_TEMPLATE ? last->list : printer->arguments;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void print_function(Printer *printer, const Node *node, bool result) {
    const Nodes *outer = printer->arguments;
    const Node *name = node->a;
    const char *qualifiers = "";
    if (name->kind == NODE_QUALIFIED) {
        qualifiers = name->text;
        name = name->a;
    }
    printer->arguments = arguments_of(printer, name);
    if (node->b && result) {
        print_left(printer, node->b);
        add(printer, " ");
    }
    const Nodes *own = printer->arguments;
    printer->arguments = outer;
    print(printer, name);
    printer->arguments = own;
    add(printer, "(");
    print_list(printer, node->list);
    add(printer, ")");
    add(printer, qualifiers);
    if (node->b && result) print_right(printer, node->b);
    printer->arguments = outer;
}

static void print_template(Printer *printer, const Node *node) {
    print(printer, node->a);
    if (printer->last == '<') add(printer, " ");
    add(printer, "<");
    print_list(printer, node->list);
    add(printer, printer->last == '>' ? " >" : ">");
}

static void print_literal(Printer *printer, const Node *node) {
    static const char *const suffixes[] = {"int ",         "unsigned int u",
                                           "long l",       "unsigned long ul",
                                           "long long ll", "unsigned long long ull"};
    const char *type = node->a->kind == NODE_TYPE ? node->a->text : "";
    if (!strcmp(type, "bool") && (!strcmp(node->text, "0") || !strcmp(node->text, "1"))) {
        add(printer, *node->text == '1' ? "true" : "false");
        return;
    }
    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        size_t length = strlen(type);
        const char *space = strrchr(suffixes[i], ' ');
        if (length != (size_t)(space - suffixes[i]) || strncmp(suffixes[i], type, length) != 0)
            continue;
        add(printer, node->text);
        add(printer, space + 1);
        return;
    }
    bool real = !strcmp(type, "float") || !strcmp(type, "double") || !strcmp(type, "long double");
    add(printer, "(");
    print(printer, node->a);
    add(printer, real ? ")[" : ")");
    add(printer, node->text);
    if (real) add(printer, "]");
}

static void print_lambda(Printer *printer, const Node *node) {
    char number[32];
    snprintf(number, sizeof number, ")#%llu}", (unsigned long long)node->number);
    add(printer, "{lambda(");
    printer->lambdas++;
    print_list(printer, node->list);
    printer->lambdas--;
    add(printer, number);
}

static void print_parameter(Printer *printer, const Node *node) {
    char text[32];
    const Node *argument = argument_of(printer, node);
    if (argument) {
        print_left(printer, argument);
    } else if (printer->lambdas) {
        snprintf(text, sizeof text, "auto:%llu", (unsigned long long)node->number + 1);
        add(printer, text);
    } else {
        printer->failed = true;
    }
}

/* ---- packs ----------------------------------------------------------------------------------- */

/* The pack that a pattern expands; NULL: none */
static const Node *find_pack(Printer *printer, const Node *node) {
    const Node *found = NULL;
    if (!node || ++printer->visits > MOST_VISITS || ++printer->depth > MOST_DEPTH) {
        printer->failed = true;
        return NULL;
    }
    const Nodes *list = printer->arguments;
    if (node->kind == NODE_PARAMETER) {
        bool has = list && !printer->lambdas && node->number < list->items.count;
        const Node *argument = has ? list->items.items[node->number] : NULL;
        found = argument && argument->kind == NODE_PACK ? argument : NULL;
    } else if (node->kind != NODE_LAMBDA) {
        if (node->a) found = find_pack(printer, node->a);
        if (!found && node->b) found = find_pack(printer, node->b);
        for (size_t i = 0; node->list && i < node->list->items.count && !found; i++)
            found = find_pack(printer, node->list->items.items[i]);
    }
    printer->depth--;
    return found;
}

static void print_expansion(Printer *printer, const Node *node) {
    const Node *pack = find_pack(printer, node->a);
    if (!pack) {
        bool plain = node->a && node->a->kind == NODE_NAME;
        add(printer, plain ? "" : "(");
        print(printer, node->a);
        add(printer, plain ? "..." : ")...");
        return;
    }
    int64_t element = printer->element;
    for (uint32_t i = 0; i < pack->list->items.count && !printer->failed; i++) {
        if (i > 0) add(printer, ", ");
        printer->element = i;
        print(printer, node->a);
    }
    printer->element = element;
}

/* ---- types ----------------------------------------------------------------------------------- */

static bool is_enclosed(const Node *type) {
    return type && (type->kind == NODE_SIGNATURE || type->kind == NODE_ARRAY);
}

/* The type below qualifiers and parameters of templates that decides about parentheses */
static const Node *bare(Printer *printer, const Node *node) {
    node = resolve(printer, node);
    while (node && node->kind == NODE_QUALIFIED && ++printer->visits <= MOST_VISITS)
        node = resolve(printer, node->a);
    return node;
}

/* A reference to a reference is one. */
static const Node *collapse(Printer *printer, const Node *node, const char **text) {
    const Node *inner = node->a;
    *text = node->text;
    while (**text == '&' && ++printer->visits <= MOST_VISITS) {
        const Node *type = resolve(printer, inner);
        if (!type || type->kind != NODE_POINTER || *type->text != '&') break;
        if (!strcmp(type->text, "&")) *text = "&";
        inner = type->a;
    }
    return inner;
}

static void open_group(Printer *printer, const Node *type) {
    if (!is_enclosed(type)) return;
    add(printer, type->kind == NODE_ARRAY ? " (" : "(");
}

static bool has_right(Printer *printer, const Node *type) {
    type = bare(printer, type);
    while (type && ++printer->visits <= MOST_VISITS) {
        if (is_enclosed(type)) return true;
        if (type->kind != NODE_POINTER && type->kind != NODE_MEMBER) return false;
        type = bare(printer, type->a);
    }
    return false;
}

static void print_type_left(Printer *printer, const Node *node) {
    const char *text = node->text;
    const Node *inner = node->a;
    if (node->kind == NODE_POINTER) inner = collapse(printer, node, &text);
    print_left(printer, inner);
    const Node *base = bare(printer, inner);
    if (node->kind == NODE_QUALIFIED && !is_enclosed(base)) add(printer, text);
    if (node->kind == NODE_POINTER) {
        open_group(printer, base);
        add(printer, text);
    }
    if (node->kind == NODE_MEMBER) {
        if (!is_enclosed(base)) add(printer, " ");
        open_group(printer, base);
        print(printer, node->b);
        add(printer, "::*");
    }
    if (node->kind == NODE_SIGNATURE && !has_right(printer, inner)) add(printer, " ");
}

static void print_type_right(Printer *printer, const Node *node) {
    const char *text = node->text;
    const Node *inner = node->a;
    if (node->kind == NODE_POINTER) inner = collapse(printer, node, &text);
    bool pointer = node->kind == NODE_POINTER || node->kind == NODE_MEMBER;
    if (pointer && is_enclosed(bare(printer, inner))) add(printer, ")");
    if (node->kind == NODE_SIGNATURE) {
        add(printer, "(");
        print_list(printer, node->list);
        add(printer, ")");
    }
    if (node->kind == NODE_ARRAY) {
        add(printer, printer->last == ']' ? "[" : " [");
        add(printer, text);
        add(printer, "]");
    }
    print_right(printer, inner);
    if (node->kind == NODE_QUALIFIED && is_enclosed(bare(printer, inner))) add(printer, text);
}

static void print_right(Printer *printer, const Node *node) {
    if (!enter(printer, node)) return;
    switch (node->kind) {
    case NODE_POINTER:
    case NODE_MEMBER:
    case NODE_SIGNATURE:
    case NODE_ARRAY:
    case NODE_QUALIFIED: print_type_right(printer, node); break;
    case NODE_PARAMETER:
        if (argument_of(printer, node)) print_right(printer, argument_of(printer, node));
        break;
    case NODE_NAME:
    case NODE_TYPE:
    case NODE_NESTED:
    case NODE_LOCAL:
    case NODE_TAGGED:
    case NODE_TEMPLATE:
    case NODE_FUNCTION:
    case NODE_PACK:
    case NODE_EXPANSION:
    case NODE_LITERAL:
    case NODE_ADDRESS:
    case NODE_LAMBDA:
    case NODE_CONSTRUCTOR:
    case NODE_DESTRUCTOR:
    case NODE_CONVERSION:
    case NODE_PREFIXED: break;
    }
    printer->depth--;
}

static void print_around(Printer *printer, const char *before, const Node *node,
                         const char *after) {
    add(printer, before);
    print(printer, node);
    add(printer, after);
}

static void print_scoped(Printer *printer, const Node *node) {
    if (node->kind == NODE_LOCAL && node->a->kind == NODE_FUNCTION)
        print_function(printer, node->a, false);
    else
        print(printer, node->a);
    add(printer, "::");
    print(printer, node->b);
}

static void print_left(Printer *printer, const Node *node) {
    if (!enter(printer, node)) return;
    switch (node->kind) {
    case NODE_NAME:
    case NODE_TYPE: add(printer, node->text); break;
    case NODE_NESTED:
    case NODE_LOCAL: print_scoped(printer, node); break;
    case NODE_TAGGED:
        print(printer, node->a);
        add(printer, "[abi:");
        add(printer, node->text);
        add(printer, "]");
        break;
    case NODE_TEMPLATE: print_template(printer, node); break;
    case NODE_FUNCTION: print_function(printer, node, true); break;
    case NODE_POINTER:
    case NODE_MEMBER:
    case NODE_SIGNATURE:
    case NODE_ARRAY:
    case NODE_QUALIFIED: print_type_left(printer, node); break;
    case NODE_PARAMETER: print_parameter(printer, node); break;
    case NODE_PACK: print_list(printer, node->list); break;
    case NODE_EXPANSION: print_expansion(printer, node); break;
    case NODE_LITERAL: print_literal(printer, node); break;
    case NODE_ADDRESS:
        if (node->a && node->a->kind == NODE_FUNCTION)
            print_around(printer, "&(", node->a, ")");
        else
            print_around(printer, "&", node->a, "");
        break;
    case NODE_LAMBDA: print_lambda(printer, node); break;
    case NODE_CONSTRUCTOR: print(printer, node->a); break;
    case NODE_DESTRUCTOR: print_around(printer, "~", node->a, ""); break;
    case NODE_CONVERSION: print_around(printer, "operator ", node->a, ""); break;
    case NODE_PREFIXED: print_around(printer, node->text, node->a, ""); break;
    }
    printer->depth--;
}

bool demangle_print(const Node *root, Str *out) {
    Printer printer = {.out = out, .element = NO_ELEMENT};
    print(&printer, root);
    return !printer.failed && out->length > 0;
}
