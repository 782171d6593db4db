/* emulator, private: the compact form of PTX text.
 *
 * The reader (read.c) turns the text into raw statements, the decoder (decode.c) turns those
 * into instructions, once. A Program is constant afterwards, so that blocks can run it in
 * parallel. */
#ifndef PIPEC_EMULATOR_PROGRAM_H
#define PIPEC_EMULATOR_PROGRAM_H

#include "util/util.h"

#define LANES       32
#define MAX_CLUSTER 16 /* blocks; above 8 only if the launch allows it */

typedef enum Type {
#define TYPE(name, spelling, bytes, kind) T_##name,
#include "emulator/text/types.def"
#undef TYPE
    T_COUNT
} Type;

typedef enum TypeKind {
    TYPE_NONE,
    TYPE_PREDICATE,
    TYPE_BITS,
    TYPE_UNSIGNED,
    TYPE_SIGNED,
    TYPE_FLOAT,
    TYPE_PACKED
} TypeKind;

typedef struct TypeRow {
    const char *spelling;
    uint8_t bytes;
    TypeKind kind;
} TypeRow;
extern const TypeRow type_rows[T_COUNT];
static inline bool type_is_float(Type type) {
    return type_rows[type].kind == TYPE_FLOAT || type_rows[type].kind == TYPE_PACKED;
}
static inline bool type_is_signed(Type type) { return type_rows[type].kind == TYPE_SIGNED; }

typedef enum Opcode {
#define OPCODE(name, spelling, operands, groups, pick) OP_##name,
#include "emulator/text/opcodes.def"
#undef OPCODE
    OP_COUNT
} Opcode;
extern const char *const opcode_spellings[OP_COUNT];

/* ---- modifiers ------------------------------------------------------------------------------- */

typedef enum Round {
    ROUND_NONE,
    ROUND_RN,
    ROUND_RZ,
    ROUND_RM,
    ROUND_RP,
    ROUND_RNA,
    ROUND_RNI,
    ROUND_RZI,
    ROUND_RMI,
    ROUND_RPI
} Round;
typedef enum Compare {
    COMPARE_NONE,
    COMPARE_EQ,
    COMPARE_NE,
    COMPARE_LT,
    COMPARE_LE,
    COMPARE_GT,
    COMPARE_GE,
    COMPARE_LO,
    COMPARE_LS,
    COMPARE_HI,
    COMPARE_HS, /* comparisons of unsigned integers: lt le gt ge */
    COMPARE_EQU,
    COMPARE_NEU,
    COMPARE_LTU,
    COMPARE_LEU,
    COMPARE_GTU,
    COMPARE_GEU,
    COMPARE_NUM,
    COMPARE_NAN
} Compare;
typedef enum Reduce {
    REDUCE_NONE,
    REDUCE_ADD,
    REDUCE_MIN,
    REDUCE_MAX,
    REDUCE_AND,
    REDUCE_OR,
    REDUCE_XOR,
    REDUCE_EXCH,
    REDUCE_CAS,
    REDUCE_INC,
    REDUCE_DEC
} Reduce;
typedef enum Order {
    ORDER_NONE,
    ORDER_WEAK,
    ORDER_RELAXED,
    ORDER_ACQUIRE,
    ORDER_RELEASE,
    ORDER_ACQ_REL,
    ORDER_SC,
    ORDER_VOLATILE
} Order;
typedef enum Scope { SCOPE_NONE, SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU, SCOPE_SYS } Scope;
typedef enum Space {
    SPACE_GENERIC,
    SPACE_PARAM,
    SPACE_GLOBAL,
    SPACE_SHARED,
    SPACE_LOCAL,
    SPACE_CONST
} Space;
enum { SHUFFLE_IDX = 1, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BFLY };
enum { VOTE_ALL = 1, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum { TEST_FINITE = 1, TEST_INFINITE, TEST_NUMBER, TEST_NOTANUMBER, TEST_NORMAL, TEST_SUBNORMAL };
enum { LAYOUT_ROW = 1, LAYOUT_COLUMN };
enum { CHOICE_POPC = 1 };
enum { CALL_PLAIN, CALL_SAVES };
enum { PERMUTE_F4E = 1, PERMUTE_B4E, PERMUTE_RC8, PERMUTE_ECL, PERMUTE_ECR, PERMUTE_RC16 };

enum { /* Mods.flags */
       FLAG_SAT = 1 << 0,
       FLAG_SATFINITE = 1 << 1,
       FLAG_RELU = 1 << 2,
       FLAG_FTZ = 1 << 3,
       FLAG_NOFTZ = 1 << 4,
       FLAG_APPROX = 1 << 5,
       FLAG_FULL = 1 << 6,
       FLAG_NAN = 1 << 7,
       FLAG_WIDE = 1 << 8,
       FLAG_CC = 1 << 9,
       FLAG_LEFT = 1 << 10,
       FLAG_RIGHT = 1 << 11,
       FLAG_WRAP = 1 << 12,
       FLAG_CLAMP = 1 << 13,
       FLAG_SHIFTAMT = 1 << 14,
       FLAG_TO = 1 << 15,
       FLAG_HINTS = 1 << 16,
       FLAG_CG = 1 << 17,
       FLAG_SYNC = 1 << 18,
       FLAG_ALIGNED = 1 << 19,
       FLAG_PARITY = 1 << 20,
       FLAG_EXPECT_TX = 1 << 21,
       FLAG_NO_COMPLETE = 1 << 22,
       FLAG_NOINC = 1 << 23,
       FLAG_READ = 1 << 24,
       FLAG_TILE = 1 << 25,
       FLAG_BULK_GROUP = 1 << 26,
       FLAG_COMPLETE_TX = 1 << 27,
       FLAG_TENSORMAP = 1 << 28,
       FLAG_PROXY = 1 << 29,
       FLAG_ASYNC = 1 << 30
};
enum { FENCE_MBARRIER_INIT = 1 }; /* Mods.choice of fence */
enum { LOAD_CONSTANT = 1 };       /* of ld: the launch does not write the bytes */

typedef struct Mods {
    uint8_t types[4], type_count;
    uint8_t round, compare, reduce, order, scope, vector, dimensions, choice;
    uint8_t spaces[2], space_count;
    bool cache_policy; /* .L2::cache_hint: the last operand is a policy */
    /* .shared::cluster: addresses may be of any block of the cluster */
    bool cluster;
    uint8_t multicast;             /* .multicast::cluster: an operand is the mask of blocks */
    uint8_t transposed;            /* .trans */
    uint8_t eight;                 /* .m8n8 */
    uint8_t layouts[2];            /* .row.col: of A, of B */
    uint16_t rows, columns, depth; /* .m64n256k16 */
    uint32_t flags;
} Mods;

/* ---- instructions ---------------------------------------------------------------------------- */

/* Location of a value. Lanes of registers up to 32 bits are uint32_t[32] (narrow values
 * zero-extended), of 64-bit registers uint64_t[32]; a predicate is one uint32_t, one bit per
 * lane. Constants are in a bank of the same form. */
enum { BANK_REGISTERS, BANK_CONSTANTS, BANK_COUNT };
typedef struct Operand {
    uint8_t bank;
    uint8_t width; /* bytes of the register: 1, 2, 4, 8; 0: a predicate */
    bool negated;  /* predicates */
    bool sink;     /* `_`, or an omitted destination */
    /* a variable of a call: `add` bytes at `offset` of local memory */
    bool is_local;
    bool absent;     /* an omitted optional source */
    uint32_t offset; /* offset in the bank, in bytes */
    uint32_t slot;   /* index of the register's validity mask */
    int64_t add;     /* addresses: [register + add] */
} Operand;

struct Block;
struct Warp;
struct Inst;

typedef enum Step {
    STEP_NEXT,  /* done: continue with the next instruction */
    STEP_JUMP,  /* the handler has set the program counters */
    STEP_WAIT,  /* blocked: the split sleeps and executes the instruction again when woken */
    STEP_AGAIN, /* not executed: others run before */
    STEP_FAULT  /* a finding was reported */
} Step;
typedef Step (*Run)(struct Block *block, struct Warp *warp, const struct Inst *inst, uint32_t mask);

typedef struct Inst {
    Run run;
    const Operand *ops;
    const uint32_t *uses, *defs; /* slots that must be written before; slots that it writes */
    uint8_t op_count, use_count, def_count;
    uint8_t opcode;
    uint8_t vector; /* registers of the vector operand of ld, st, red: at least 1 */
    bool guarded, guard_negated;
    bool ignored; /* a wait: no instruction reads its answer, see flow.c */
    uint32_t guard_offset, guard_slot;
    uint32_t target; /* branches: index of the target instruction */
    uint32_t line;   /* line of the PTX text */
    uint32_t rank;   /* position in the order in which splits of a warp run, see flow.c */
    Mods mods;
} Inst;

static inline Type inst_type(const Inst *inst) { return (Type)inst->mods.types[0]; }

/* ---- programs -------------------------------------------------------------------------------- */

typedef struct Parameter {
    const char *name;
    Type type;
    uint32_t offset, bytes, alignment;
} Parameter;

typedef struct SharedAddress {
    uint32_t offset; /* offset of its first lane in the constants */
    uint8_t width;
} SharedAddress;

/* The entry, or a function that it calls: ranges of instructions, of the validity masks of its
 * registers, of bytes of local memory */
typedef struct ProgramFunction {
    const char *name;
    uint32_t first, end;
    uint32_t first_slot, end_slot;
    uint32_t first_local, end_local;
    bool is_recursive;  /* a chain of calls leads back to it */
    bool has_variables; /* in local memory */
} ProgramFunction;

/* A variable of the module in global or constant memory; addresses of each kind ascend. */
typedef struct ModuleVariable {
    const char *name;
    uint64_t address, bytes;
    bool is_constant;           /* .const: cannot be written */
    const unsigned char *image; /* its initial bytes; NULL: zeros */
} ModuleVariable;

/* A variable in shared memory, for findings */
typedef struct SharedVariable {
    const char *name;
    uint64_t address, bytes; /* dynamic: 0, 0 */
    bool is_dynamic;
} SharedVariable;

typedef struct Program {
    const char *entry;
    const char *text; /* the PTX; findings quote its lines */
    size_t length;
    Inst *code; /* the last instruction is always `exit` */
    uint32_t count;
    VEC(Parameter) parameters;
    uint32_t parameter_bytes;
    VEC(ModuleVariable) variables;
    VEC(SharedVariable) shared;
    uint32_t shared_bytes;     /* statically allocated */
    uint32_t shared_alignment; /* alignment of the dynamic part, which follows the static part */
    uint32_t local_bytes;      /* per thread */
    uint32_t register_bytes;   /* per warp */
    uint32_t slots;
    VEC(Operand) registers;         /* by slot */
    VEC(ProgramFunction) functions; /* the entry is the first one */
    VEC(uint32_t) branch_targets;   /* of brx: the number of targets, then instructions */
    unsigned char *constants;
    VEC(SharedAddress) shared_addresses; /* constants that are shared addresses */
    uint32_t constant_bytes;
    /* offset of the register that holds each special register, see specials.def; 0: unused */
    uint32_t specials[64];
    uint32_t special_slots[64];
    uint32_t required_block[3]; /* .reqntid, 0: absent */
    uint32_t most_threads;      /* .maxntid, 0: absent */
    uint32_t most_registers;    /* .maxnreg, 0: absent */
    uint32_t least_blocks;      /* .minnctapersm, 0: absent */
    uint32_t cluster[3];        /* .reqnctapercluster, 0: absent */
    bool explicit_cluster;      /* .explicitcluster */
    bool multiplies;            /* has wgmma: warps track the registers in flight */
} Program;

/* Addresses of symbols: user shared memory starts after the part that the hardware reserves;
 * parameters have their bank, in which they are aligned as declared. */
#define SHARED_BASE    1024u
#define PARAMETER_BASE 640u
/* The variables of a module have generic addresses below those of the launch's regions. */
#define VARIABLES_BASE UINT64_C(0x100000000000)
#define CONSTANTS_BASE UINT64_C(0x180000000000)
#define VARIABLE_GAP   UINT64_C(0x000000100000)
/* Addresses of functions: no memory is there */
#define FUNCTIONS_BASE UINT64_C(0x0f0000000000)

typedef enum ReadStatus { READ_FINE, READ_REJECTED, READ_INCOMPLETE } ReadStatus;

/* why a text is not READ_FINE */
typedef struct ReadFault {
    Code code;
    uint32_t line; /* 0: none */
    const char *why;
    /* what else is not modelled, each with its lines */
    const char *const *more;
    size_t more_count;
} ReadFault;

/* Decodes the entry of this name; NULL: the first entry. `every`: all entries are decoded and
 * the last one is returned. */
ReadStatus program_read(Arena *arena, const char *ptx, size_t length, const char *entry, bool every,
                        Program **out, ReadFault *fault);
/* Reads only the declarations of all entries. */
typedef VEC(Program *) Programs;
ReadStatus program_list(Arena *arena, const char *ptx, size_t length, Programs *out,
                        ReadFault *fault);
void flow_rank(Arena *arena, Program *program);
void flow_answers(Arena *arena, Program *program);

#endif
