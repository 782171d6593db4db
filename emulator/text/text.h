/* emulator, private: shared by the reader and the decoder of PTX text. */
#ifndef PIPEC_EMULATOR_TEXT_H
#define PIPEC_EMULATOR_TEXT_H

#include <setjmp.h>

#include "emulator/program.h"

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

typedef enum SymbolKind {
    SYMBOL_REGISTER,
    SYMBOL_RANGE,
    SYMBOL_VARIABLE,
    SYMBOL_FUNCTION
} SymbolKind;

/* A place in the text, before a token */
typedef struct TextPlace {
    const char *at;
    uint32_t line;
} TextPlace;

/* A function of the module; the formal parameters are those of its copy in the present entry. */
typedef VEC(Operand) Formals;
typedef struct Function {
    const char *name;
    bool is_defined;
    TextPlace place;        /* after `.func` */
    const Program *program; /* of the entry that calls it */
    uint32_t number;        /* in Reader.callees */
    Formals results, inputs;
} Function;

/* A call statement; caller: in Program.functions */
typedef struct Call {
    uint32_t inst, caller, line;
    Function *callee;
} Call;

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
    bool is_parameter;  /* SYMBOL_VARIABLE: in .param space, of a function or a call */
    uint64_t bytes;     /* of a parameter */
    Function *function; /* SYMBOL_FUNCTION */
    bool extern_too;    /* declared with .extern, and perhaps defined as well */
    bool undefined;     /* .extern in global or constant memory, and not defined so far */
    struct Symbol *shadowed, *in_scope;
} Symbol;

typedef VEC(const char *) LabelNames;
typedef struct TextLabel {
    const char *name;
    uint32_t target;
    LabelNames names; /* of the labels, if it is a list of targets */
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

/* The address of a symbol in the image of a variable: (address & mask) >> shift, `width` bytes */
typedef struct Relocation {
    unsigned char *at;
    const Symbol *symbol;
    uint64_t add, mask;
    uint8_t width;
    uint32_t line;
} Relocation;

/* A statement that is not modelled, and the lines on which it is */
#define MAX_MISSING       40
#define MAX_MISSING_LINES 6
typedef struct Missing {
    const char *why;
    uint32_t count, lines[MAX_MISSING_LINES];
} Missing;

/* .version, 10 * major + minor, and .target, as number and letter; 0: there is none */
typedef struct ModuleTarget {
    int version, number;
    char suffix;
} ModuleTarget;

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
    ModuleTarget target;
    uint32_t depth;
    TextScope *scope;
    Symbol *buckets[SYMBOL_BUCKETS];
    Program *program; /* of the entry that is being read */
    VEC(Inst) code;
    VEC(Branch) branches;
    VEC(Function *) callees; /* functions that the entry needs, in the order of their calls */
    VEC(Call) calls;
    uint32_t function;       /* the one being read, in Program.functions */
    uint32_t function_count; /* of the module */
    bool has_variables;      /* the function being read has some in local memory */
    Constant *constants[CONSTANT_BUCKETS];
    VEC(unsigned char) constant_bytes;
    uint64_t image_bytes;        /* of the module's variables */
    VEC(Relocation) relocations; /* of the module's variables */
    /* what is not modelled, in the order of its first line */
    VEC(Missing) missing;
    uint32_t missing_kinds; /* those beyond MAX_MISSING included */
    jmp_buf resume;         /* longjmp target after a statement that is not modelled */
    bool resumes, statement_ended;
} Reader;

/* PTX that is malformed: reports it and jumps to reader->stop. PTX that the emulator does not
 * model: notes it and jumps to reader->resume if the reader can go on after the statement,
 * otherwise to reader->stop. */
NO_RETURN void text_reject(Reader *reader, uint32_t line, const char *format, ...)
    PRINTF_LIKE(3, 4);
NO_RETURN void text_incomplete(Reader *reader, uint32_t line, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Jumps to reader->stop if anything that is not modelled was noted. */
void text_stop_if_missing(Reader *reader);

/* scan.c: tokens. A function text_take.. goes on if the next token is the wanted one; the others
 * reject the text if it is not. */
void scan_next(Reader *reader);
void scan_skip_line(Reader *reader);
bool text_is(const Token *token, const char *word);
bool text_at(const Reader *reader, char mark);
bool text_take(Reader *reader, char mark);
bool text_directive(Reader *reader, const char *word); /* takes it */
void text_expect(Reader *reader, char mark);
Token text_word(Reader *reader, const char *what);
uint64_t text_integer(Reader *reader);
void text_skip_braces(Reader *reader);
void text_skip_statement(Reader *reader);
TextPlace text_place(const Reader *reader);
void text_go_to(Reader *reader, TextPlace place);

/* needs.c: rejects the word of an instruction, a directive or a special register, and a target,
 * that the module's version or target lacks; counted: an arrival with a count */
void needs_check(Reader *reader, const Token *word, bool counted);
void needs_version(Reader *reader, const Token *word);
void needs_target(Reader *reader, const Token *word);

/* symbol.c: scopes and declarations */

/* type name [n][m] after `.shared`, `.local`, `.param`: bytes and alignment of the variable */
#define MAX_DIMENSIONS 8
typedef struct Variable {
    Token name;
    Type type;
    uint64_t bytes;
    uint32_t alignment;
    bool unsized;   /* name[] */
    uint8_t vector; /* elements of .v2, .v4; otherwise 1 */
    uint8_t dimensions;
    uint64_t extents[MAX_DIMENSIONS]; /* the first one is 0 if unsized */
} Variable;
#define MAX_VARIABLE_BYTES (64u << 20)
#define MAX_LOCAL_BYTES    (MAX_VARIABLE_BYTES / LANES)

Symbol *text_lookup(Reader *reader, const char *text, uint32_t length);
Symbol *text_add_symbol(Reader *reader, TextScope *scope, const char *name, SymbolKind kind,
                        uint32_t depth);
void text_open_scope(Reader *reader);
void text_close_scope(Reader *reader);
/* the name of a declaration in the present scope, which must not have one of that name */
const char *text_new_name(Reader *reader, const Token *token);
void read_registers(Reader *reader);
/* one register: its type and name; not a range */
Symbol *read_register(Reader *reader);
Variable read_variable(Reader *reader);
Symbol *declare_variable(Reader *reader, const Variable *variable, Space space);
/* offset of the variable after `used` bytes, which grow */
uint64_t place_variable(uint32_t *used, const Variable *variable);
/* a variable in shared or local memory */
void read_storage(Reader *reader, Space space, bool is_extern);

/* operand.c */
Raw read_operand(Reader *reader);
/* `+ 4`, `+-4`, `- 4` after a base; 0: there is none */
int64_t read_offset(Reader *reader);

/* initial.c: variables of the module in global and constant memory */
void read_module_variable(Reader *reader, Space space, bool is_extern);
/* at the end of the module: their addresses are known now */
void finish_variables(Reader *reader);

/* words.c */
typedef struct OpcodeRow {
    const char *spelling, *operands; /* opcodes.def */
    uint32_t groups;
    Run (*pick)(const Inst *inst);
} OpcodeRow;
extern const OpcodeRow opcode_rows[OP_COUNT];
bool text_same(const char *text, size_t length, const char *word);
Type type_by_name(const char *text, size_t length); /* T_NONE: no type */
Opcode find_opcode(const Token *word);              /* OP_COUNT: none */
void read_modifiers(Reader *reader, const Token *word, Opcode opcode, Mods *mods);

/* value.c */
typedef struct Decoder {
    Reader *reader;
    Inst inst;
    Token word;
    VEC(Operand) ops;
    VEC(uint32_t) uses;
    VEC(uint32_t) defs;
} Decoder;
extern const Operand decode_sink;
Operand decode_new_register(Reader *reader, Type type);
/* adds an operand; if it is a register, also to the slots that the instruction writes or reads */
void decode_push(Decoder *d, Operand operand, bool writes);
/* A register, special register, symbol or number of `width` bytes; `wider`: registers may be wider
 * than that. */
Operand decode_value(Decoder *d, const Raw *raw, Type type, uint8_t width, bool wider, bool writes);
/* The address part of [base + add]: 32 or 64 bits */
Operand decode_address(Decoder *d, const Raw *raw);
NO_RETURN void decode_reject(Decoder *d, const Raw *raw, const char *what);

/* mma.c: number of registers of D, A, B or C of a mma.sync; 0: there is no such instruction */
uint32_t mma_registers(const Mods *mods, char side);

/* decode.c: appends the instructions of one statement to reader->code */
typedef struct Guard {
    bool present, negated;
    Token name;
} Guard;
/* A call: its operands are pairs, from and to, first of the results, then of the inputs; those of
 * the callee are filled in by read_functions. */
void decode_call(Reader *reader, Guard guard, Token word, const char *callee, const Raw *results,
                 uint32_t result_count, const Raw *inputs, uint32_t input_count);
void decode_statement(Reader *reader, Guard guard, Token word, Raw *operands, uint32_t count);
/* read.c: `{` .. `}` */
void read_body(Reader *reader);

/* function.c */
void read_function_place(Reader *reader); /* after `.func`: notes where the function is */
void read_call_parameter(Reader *reader); /* after `.param` in a body */
void read_call(Reader *reader, Guard guard, Token word);
/* Reads the functions that the entry calls, behind its code. */
void read_functions(Reader *reader);

#endif
