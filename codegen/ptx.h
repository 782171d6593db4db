/* codegen, private: PTX as data: a function is a list of instructions over virtual registers,
 * printed last.
 *
 * Registers are untyped bits (.b16 .b32 .b64) or predicates; the opcode defines their type. Pure
 * instructions use ptx_pure, which returns the register of an equal one in the same
 * straight-line code. */
#ifndef PIPEC_PTX_H
#define PIPEC_PTX_H

#include "util/util.h"
#include "launch/manifest.h"

typedef enum RegClass { REG_NONE, REG_PRED, REG_16, REG_32, REG_64, REG_CLASSES } RegClass;

typedef struct Reg {
    RegClass class;
    uint32_t id;
} Reg;

typedef enum OperandKind {
    OPERAND_REG,
    OPERAND_INTEGER,
    OPERAND_F32,  /* bits of an f32 immediate: 0fXXXXXXXX */
    OPERAND_TEXT, /* a symbol, a special register, `_` */
    OPERAND_LABEL,
    OPERAND_MEMORY, /* [reg + offset], or [text + offset] if reg is REG_NONE */
    OPERAND_VECTOR, /* {a, b, c, d} */
    OPERAND_TENSOR  /* [reg, {coordinates}] */
} OperandKind;

typedef struct Operand {
    OperandKind kind;
    Reg reg;       /* REG; base of MEMORY and TENSOR */
    int64_t value; /* INTEGER; offset of MEMORY; id of LABEL; bits of F32 */
    const char *text;
    int count; /* VECTOR, TENSOR */
    Reg items[MAX_RANK];
    /* VECTOR of more than MAX_RANK registers: they live as long as the function */
    const Reg *many;
} Operand;

Operand ptx_reg(Reg reg);
Operand ptx_int(int64_t value);
Operand ptx_f32(float value);
Operand ptx_text(const char *text);
Operand ptx_label(int label);
Operand ptx_at(Reg base, int64_t offset);
Operand ptx_at_text(const char *symbol, int64_t offset);
Operand ptx_vector(const Reg *items, int count); /* more than MAX_RANK items are not copied */
Operand ptx_tensor(Reg map, const Reg *coordinates, int count);

typedef struct Ptx Ptx;

Ptx *ptx_new(Arena *arena);
Reg ptx_new_reg(Ptx *ptx, RegClass class);
int ptx_new_label(Ptx *ptx);

/* Appends; `guard` REG_NONE: unconditional. The operand array is copied. */
void ptx_ins(Ptx *ptx, Reg guard, bool guard_not, const char *op, const Operand *operands,
             int count);
/* A pure instruction whose first operand is a new register of `class`: reuses an equal one if it
 * is still valid. Operands must be registers that are written once, or whose writers call
 * ptx_forget. */
Reg ptx_pure(Ptx *ptx, RegClass class, const char *op, const Operand *operands, int count);
/* `a and b`, `a or b` of predicates; PTX_NONE is no operand: the other one */
Reg ptx_both(Ptx *ptx, Reg a, Reg b);
Reg ptx_either(Ptx *ptx, Reg a, Reg b);
/* a register that pure instructions may have read was written again */
void ptx_forget(Ptx *ptx);
void ptx_place_label(Ptx *ptx, int label); /* also forgets: a join */
void ptx_comment(Ptx *ptx, const char *format, ...) PRINTF_LIKE(2, 3);
void ptx_verbatim(Ptx *ptx, const char *text);      /* lines without change */
void ptx_operand(const Operand *operand, Str *out); /* prints it */
void ptx_mark(Ptx *ptx, Span span, int role, const char *pipe, const char *what);

/* Sets `used` of the files of the source that marks are in */
void ptx_files(const Ptx *ptx, const Source *source, bool *used);
/* Prints the register declarations and the body, indented; counts lines from *line (1-based, the
 * next line), adds marks to `manifest`, and prints `.loc` lines if `source` is not NULL. */
void ptx_print(const Ptx *ptx, const Source *source, Manifest *manifest, uint32_t *line, Str *out);

#define PTX_NONE       ((Reg){REG_NONE, 0})
#define PTX_COUNT(...) ((int)(sizeof((Operand[]){__VA_ARGS__}) / sizeof(Operand)))
#define INS(ptx, op, ...)                                                                          \
    ptx_ins((ptx), PTX_NONE, false, (op), (Operand[]){__VA_ARGS__}, PTX_COUNT(__VA_ARGS__))
#define INS_IF(ptx, guard, op, ...)                                                                \
    ptx_ins((ptx), (guard), false, (op), (Operand[]){__VA_ARGS__}, PTX_COUNT(__VA_ARGS__))
#define INS_UNLESS(ptx, guard, op, ...)                                                            \
    ptx_ins((ptx), (guard), true, (op), (Operand[]){__VA_ARGS__}, PTX_COUNT(__VA_ARGS__))
#define INS0(ptx, op) ptx_ins((ptx), PTX_NONE, false, (op), NULL, 0)
#define PURE(ptx, class, op, ...)                                                                  \
    ptx_pure((ptx), (class), (op), (Operand[]){__VA_ARGS__}, PTX_COUNT(__VA_ARGS__))

#endif
