/* emulator, private: shared by the reader and the decoder of PTX text. */
#ifndef PIPEC_EMULATOR_TEXT_H
#define PIPEC_EMULATOR_TEXT_H

#include <setjmp.h>

#include "program.h"

typedef enum TokenKind {
    TOKEN_END,
    TOKEN_WORD,
    TOKEN_INTEGER,
    TOKEN_F32,
    TOKEN_F64,
    TOKEN_STRING,
    TOKEN_MARK
} TokenKind;

typedef struct Token {
    TokenKind kind;
    char mark;        /* TOKEN_MARK */
    const char *text; /* TOKEN_WORD: not NUL-terminated */
    uint32_t length;
    uint32_t line;
    uint64_t value; /* TOKEN_INTEGER; TOKEN_F32, TOKEN_F64: the bits */
} Token;

/* An operand as written. */
typedef enum RawKind { RAW_WORD, RAW_NUMBER, RAW_MEMORY, RAW_VECTOR } RawKind;
typedef struct Raw {
    RawKind kind;
    bool negated;      /* !p */
    bool minus;        /* before a float */
    Token token;       /* RAW_WORD, RAW_NUMBER; RAW_MEMORY: the base, a word or a number */
    int64_t add;       /* symbol + add, [base + add] */
    struct Raw *items; /* RAW_VECTOR; RAW_MEMORY: coordinates */
    uint32_t count;
    struct Raw *second; /* the q of p|q */
} Raw;

typedef enum SymbolKind { SYMBOL_REGISTER, SYMBOL_RANGE, SYMBOL_VARIABLE } SymbolKind;
typedef struct Symbol {
    SymbolKind kind;
    const char *name; /* interned; SYMBOL_RANGE: the prefix */
    uint32_t depth;   /* nesting depth of its scope */
    Type type;
    uint32_t range;  /* SYMBOL_RANGE: number of registers */
    Operand operand; /* SYMBOL_REGISTER */
    Space space;     /* SYMBOL_VARIABLE */
    uint64_t address;
    /* extern shared memory: the address is relative to the start of the dynamic part */
    bool dynamic;
    struct Symbol *shadowed, *in_scope;
} Symbol;

typedef struct TextLabel {
    const char *name;
    uint32_t target;
    struct TextLabel *next;
} TextLabel;

typedef struct TextScope {
    struct TextScope *parent;
    Symbol *symbols;
    TextLabel *labels;
} TextScope;

typedef struct Branch {
    uint32_t inst;
    const char *name;
    TextScope *scope;
    uint32_t line;
} Branch;

/* Shared addresses differ per block of a cluster. Those of the dynamic part are relative to its
 * start, which is only known at the end of the entry. */
typedef enum ConstantKind { CONSTANT_PLAIN, CONSTANT_SHARED, CONSTANT_DYNAMIC_SHARED } ConstantKind;

typedef struct Constant {
    uint64_t bits;
    uint32_t offset;
    uint8_t width;
    ConstantKind kind;
    struct Constant *next;
} Constant;

#define SYMBOL_BUCKETS   4096u
#define CONSTANT_BUCKETS 256u
typedef struct Reader {
    Arena *arena;
    ReadFault *fault;
    Names *names;
    jmp_buf stop; /* longjmp target after a fault */
    ReadStatus status;
    const char *text, *at, *end;
    uint32_t line;
    Token token; /* the next token */
    uint32_t depth;
    TextScope *scope;
    Symbol *buckets[SYMBOL_BUCKETS];
    Program *program; /* of the entry that is being read */
    VEC(Inst) code;
    VEC(Branch) branches;
    Constant *constants[CONSTANT_BUCKETS];
    VEC(unsigned char) constant_bytes;
} Reader;

/* PTX that is malformed, or that the emulator does not model: reports it and jumps to
 * reader->stop. */
NO_RETURN void text_reject(Reader *reader, uint32_t line, const char *format, ...)
    PRINTF_LIKE(3, 4);
NO_RETURN void text_incomplete(Reader *reader, uint32_t line, const char *format, ...)
    PRINTF_LIKE(3, 4);
Symbol *text_lookup(Reader *reader, const char *text, uint32_t length);
bool text_is(const Token *token, const char *word);

/* scan.c */
void scan_next(Reader *reader);
void scan_skip_line(Reader *reader);

/* decode.c: appends the instructions of one statement to reader->code */
typedef struct Guard {
    bool present, negated;
    Token name;
} Guard;
void decode_statement(Reader *reader, Guard guard, Token word, Raw *operands, uint32_t count);
Type type_by_name(const char *text, size_t length);
Operand decode_new_register(Reader *reader, Type type);

#endif
