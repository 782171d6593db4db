/* emulator, private: names of functions and variables as C++ has them, from the names that nvcc
 * gives them in PTX (the mangling of the Itanium C++ ABI). The subset: nested and local names,
 * templates with types, integers and packs, functions, substitutions, anonymous namespaces,
 * lambdas; no expressions. Texts are those of c++filt.
 *
 * Time is bounded: names are read once, and the work and length of the text have limits. */
#ifndef PIPEC_EMULATOR_DEMANGLE_H
#define PIPEC_EMULATOR_DEMANGLE_H

#include "util/util.h"

/* NULL: it is no such name, or uses what is not in the subset */
const char *demangle(Arena *arena, const char *name);
/* The same for messages: what cannot be read stays as it is. */
const char *demangle_or_keep(Arena *arena, const char *name);

/* ---- private to demangle*.c ------------------------------------------------------------------ */

typedef enum NodeKind {
    NODE_NAME,        /* text */
    NODE_TYPE,        /* text: a builtin type */
    NODE_NESTED,      /* a::b */
    NODE_LOCAL,       /* a::b, of a function a */
    NODE_TAGGED,      /* a[abi:text] */
    NODE_TEMPLATE,    /* a<list> */
    NODE_FUNCTION,    /* b a(list): an encoding; b: NULL, or the type of the result */
    NODE_QUALIFIED,   /* a text: "const", also "&" after the parameters of a member function */
    NODE_POINTER,     /* a text: "*", "&", "&&" */
    NODE_SIGNATURE,   /* a (list): a type */
    NODE_ARRAY,       /* a [text] */
    NODE_MEMBER,      /* a b::* */
    NODE_PARAMETER,   /* number of a parameter of a template */
    NODE_PACK,        /* list */
    NODE_EXPANSION,   /* a... */
    NODE_LITERAL,     /* text of the type a */
    NODE_ADDRESS,     /* &a */
    NODE_LAMBDA,      /* {lambda(list)#number} */
    NODE_CONSTRUCTOR, /* a, the class */
    NODE_DESTRUCTOR,  /* ~a */
    NODE_CONVERSION,  /* operator a */
    NODE_PREFIXED     /* text a: "vtable for " */
} NodeKind;

typedef struct Node Node;
typedef struct Nodes {
    VEC(const Node *) items;
} Nodes;
struct Node {
    NodeKind kind;
    const char *text;
    const Node *a, *b;
    const Nodes *list;
    uint64_t number;
};

/* The rightmost part of a nested name */
const Node *demangle_last(const Node *name);
/* False: the text is too long, or too much work */
bool demangle_print(const Node *root, Str *out);

#endif
