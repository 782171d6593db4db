/* What was written: the tree that the parser builds and check/ reads. It promises nothing but shape: names are not
 * resolved, nothing has a type. Every node has the span of the text it came from. Names are interned.
 * Node fields are explained where they are declared; a pointer that may be NULL says so. */
#ifndef PIPEC_AST_H
#define PIPEC_AST_H

#include "util/util.h"

typedef struct AstExpr AstExpr;
typedef struct AstStmt AstStmt;

typedef struct AstName {
    const char *text; /* interned; NULL where an error took its place */
    Span span;
} AstName;

typedef VEC(AstName) AstNames;
typedef VEC(AstExpr *) AstExprs;
typedef VEC(AstStmt *) AstStmts;

/* ---- expressions ------------------------------------------------------------------------------------------------- */

typedef enum AstUnaryOp { AST_NEG, AST_NOT } AstUnaryOp;

typedef enum AstBinaryOp {
    AST_ADD, AST_SUB, AST_MUL, AST_DIV, AST_MOD,
    AST_EQ, AST_NE, AST_LT, AST_LE, AST_GT, AST_GE,
    AST_AND, AST_OR
} AstBinaryOp;

typedef enum AstReduceOp { AST_SUM, AST_MAX, AST_MIN } AstReduceOp;

typedef enum AstEnd { AST_PRODUCE, AST_CONSUME } AstEnd; /* an end of a pipe */

typedef enum AstExprKind {
    AST_ERROR_EXPR, /* where parsing failed; later passes are silent on it */
    AST_INTEGER,
    AST_FLOAT,
    AST_BOOL,
    AST_NAME,
    AST_UNARY,
    AST_BINARY,
    AST_SELECT,    /* c ? a : b */
    AST_CALL,      /* name(args): intrinsic, cast, fn */
    AST_SUBSCRIPT, /* base[subs] */
    AST_MEMBER,    /* base.name */
    AST_REDUCE,    /* sum[x, y] e */
    AST_OLD,       /* old Y[i]: base is the tensor read */
    AST_ACQUIRE,   /* consume <p>, produce <p> */
    AST_TRY,       /* try consume <p>, try produce <p> */
    AST_CURSOR     /* consume <p>.index: of the next stage of an end */
} AstExprKind;

struct AstExpr {
    AstExprKind kind;
    Span span;
    union {
        uint64_t integer;
        double number;
        bool truth;
        const char *name;
        struct { AstUnaryOp op; AstExpr *operand; } unary;
        struct { AstBinaryOp op; AstExpr *left, *right; Span op_span; } binary;
        struct { AstExpr *condition, *then, *otherwise; } select;
        struct { AstName callee; AstExprs args; } call;
        struct { AstExpr *base; AstExprs subs; } subscript;
        struct { AstExpr *base; AstName member; } member;
        struct { AstReduceOp op; AstNames indexes; AstExpr *body; } reduce;
        AstExpr *old;
        struct { AstEnd end; AstName pipe, hint; bool unwaited; } acquire; /* AST_ACQUIRE and AST_TRY; hint: `if ready`, text NULL without one;
                                                                             unwaited: `if true` */
        struct { AstEnd end; AstName pipe, member; } cursor;
    };
};

/* `bf16[M, K]`, `f32`, `stage ab` */
typedef struct AstType {
    Span span;
    AstName name;  /* the element type, or the pipe of a stage */
    bool is_stage; /* `stage NAME` */
    bool is_tmem;  /* `tmem f32[..]`: a field in tensor memory */
    AstExprs dims; /* empty: a scalar */
} AstType;

/* ---- statements -------------------------------------------------------------------------------------------------- */

typedef enum AstAssignOp { AST_SET, AST_SET_ADD, AST_SET_SUB, AST_SET_MUL, AST_SET_DIV } AstAssignOp;

typedef enum AstDomainKind {
    AST_DOMAIN_GRID,  /* for (m, n) in grid */
    AST_DOMAIN_NAMED, /* for k in kt, kt from a, kt[a .. b] */
    AST_DOMAIN_RANGE  /* for i in a .. b */
} AstDomainKind;

typedef struct AstDomain {
    AstDomainKind kind;
    Span span;
    AstName name;     /* AST_DOMAIN_NAMED */
    AstExpr *from;    /* first, or of a piece (`from a`, `[a .. b]`); NULL: whole */
    AstExpr *to;      /* one past the last; NULL: to the end */
} AstDomain;

typedef enum AstOperandMode { AST_OPERAND_IN, AST_OPERAND_OUT, AST_OPERAND_INOUT } AstOperandMode;

typedef struct AstOperand { /* of inline PTX */
    Span span;
    AstOperandMode mode;
    AstExpr *value; /* AST_OPERAND_IN */
    AstName name;   /* the variable of the others */
    AstName type;   /* as the text sees it; text NULL: as declared */
} AstOperand;

typedef VEC(AstOperand) AstOperands;

typedef enum AstStmtKind {
    AST_ERROR_STMT,
    AST_BLOCK,
    AST_LET,     /* let x = e; let s = consume <p>; */
    AST_VAR,     /* var x: f32 = e; var acc: f32[64, 256] = 0; */
    AST_SHARED,  /* shared t: f32[64, 64]; */
    AST_ASSIGN,  /* lhs op= e */
    AST_FOR,
    AST_IF,
    AST_BREAK,
    AST_CONTINUE,
    AST_RETURN,
    AST_STAGE,   /* produce/consume <p> [lag n] as s { } */
    AST_RELEASE, /* release s; release s without signal; */
    AST_ARRIVE,  /* arrive s; arrive s.full at r bytes n; */
    AST_WAIT,    /* wait s.full phase e; */
    AST_EXPECT,  /* expect s.full bytes e; */
    AST_STEP,    /* step consume <p>; */
    AST_PTX,     /* ptx "text" (in e, out x: f16); */
    AST_EXPR,    /* a call as a statement */
    AST_TURN,
    AST_UNSAFE
} AstStmtKind;

struct AstStmt {
    AstStmtKind kind;
    Span span;
    union {
        struct { AstStmts body; Span close; } block; /* AST_BLOCK, AST_TURN, AST_UNSAFE; close: the `}` */
        struct { AstName name; AstType *type; AstExpr *init; } declare; /* LET, VAR, SHARED; type, init may be NULL */
        struct {
            AstExpr *target, *value;
            AstAssignOp op;
            Span op_span;
            bool by_lanes, multicast_required;
            Span lanes_span;
        } assign;
        struct { AstNames vars; AstDomain domain; AstStmt *body; Span head; } loop; /* head: `for .. in ..` */
        struct { AstExpr *condition; AstName nonempty; AstStmt *then, *otherwise; Span head; } branch;
            /* `if kv nonempty` has condition == NULL and the domain's name; otherwise: NULL, a block or another if */
        AstExpr *value; /* RETURN (may be NULL), EXPR */
        struct { AstEnd end; AstName pipe, hint; bool unwaited; AstExpr *lag; AstName as; AstStmt *body; Span head; } stage; /* lag may
                                                                                                                              be NULL */
        struct { AstName name; bool without_signal; } release;
        struct {
            AstExpr *barrier;   /* a stage's name, s.full, consume <p>.full, consume <p>.full[i]; STEP: an AST_ACQUIRE of the end */
            AstExpr *at;        /* ARRIVE: block of the cluster, may be NULL */
            AstExpr *value;     /* WAIT: phase; EXPECT: bytes; ARRIVE: bytes, may be NULL */
        } signal;               /* ARRIVE, WAIT, EXPECT, STEP */
        struct { AstName text; AstOperands operands; } ptx; /* text: what stands in the quotes */
    };
};

/* ---- items ------------------------------------------------------------------------------------------------------- */

typedef enum AstMode { AST_IN, AST_OUT, AST_INOUT, AST_BORROW } AstMode;

typedef struct AstParam {
    Span span;
    AstMode mode;
    Span mode_span; /* of the word, empty without one */
    AstName name;
    AstType *type;
} AstParam;

typedef VEC(AstParam) AstParams;

typedef struct AstConst { /* const NAME = e, static NAME = e in {..} */
    Span span;
    bool is_static;
    AstName name;
    AstExpr *value;
    AstExprs choices; /* what `tune` may try */
} AstConst;

typedef struct AstClaim { /* one line of `ensures` */
    Span span;
    bool is_let;      /* let target = value */
    AstExpr *target;  /* Y[i] */
    AstExpr *value;
    AstExpr *within;  /* `~ value within e`; NULL: exact (==), or a let */
} AstClaim;

typedef struct AstExampleItem { /* N = 5; SeqLens[b] = 1 + b */
    Span span;
    AstExpr *target; /* AST_NAME, or AST_SUBSCRIPT of a name by bare names */
    AstExpr *value;  /* a number, or a fill's name (iota, zeros, uniform, normal) where target is a tensor's name */
} AstExampleItem;

typedef struct AstAxis { /* grid and cluster */
    AstName name;
    AstExpr *extent;
    bool heaviest_first;
    Span heaviest_span;
} AstAxis;

typedef struct AstField {
    Span span;
    AstName name;
    AstExpr *count; /* a[4]: ...; NULL: one tile */
    AstType *type;
} AstField;

typedef enum AstItemKind {
    AST_ITEM_CONST, AST_ITEM_FN, AST_ITEM_KERNEL, /* of a file */
    AST_ITEM_REQUIRES, AST_ITEM_ENSURES, AST_ITEM_EXAMPLE, AST_ITEM_GRID, AST_ITEM_CLUSTER, AST_ITEM_RANGE,
    AST_ITEM_PIPE, AST_ITEM_ROLE /* of a kernel, beside AST_ITEM_CONST */
} AstItemKind;

typedef enum AstTeam { AST_WARPS, AST_WARPGROUPS } AstTeam;

typedef struct AstItem AstItem;
typedef VEC(AstItem *) AstItems;

struct AstItem {
    AstItemKind kind;
    Span span;
    Span head; /* the words before the body: `role load: 1 warp` */
    union {
        VEC(AstConst) consts;
        struct { AstName name; AstParams params; AstType *result; AstStmt *body; bool *reached; } fn; /* result may be NULL; reached: set by check */
        struct { AstName name; AstParams params; AstName target; AstItems items; Span close; } kernel;
        AstExpr *requires_;
        VEC(AstClaim) ensures;
        VEC(AstExampleItem) example;
        struct { VEC(AstAxis) axes; bool persistent, hardware; AstExpr *grouped; Span grouped_span, hardware_span; } grid;
        struct { VEC(AstAxis) axes; bool paired; } cluster;
        struct { AstName name; AstExpr *from, *to, *where; } range; /* where may be NULL */
        struct {
            AstName name;
            AstExpr *stages;
            AstName producer;
            AstNames consumers;
            VEC(AstField) fields;      /* empty: a token */
            AstExpr *arrivals_full, *arrivals_empty; /* may be NULL */
        } pipe;
        struct {
            AstName name;
            AstExpr *count;
            AstTeam team;
            bool in_turn;
            Span in_turn_span;
            AstExpr *regs; /* may be NULL */
            Span regs_span;
            AstStmt *body;
        } role;
    };
};

typedef struct Ast {
    const Source *source;
    AstItems items;
    AstItems fns, consts, kernels; /* those of the items that are functions, constants and statics, kernels with names */
    VEC(const char *) kernel_names; /* of `kernels`, beside each other: each kernel of a long file is looked for */
    VEC(Span) comments; /* in order; the formatter needs them */
} Ast;

/* An indented form of everything: --emit=ast */
void ast_print(const Ast *ast, Str *out);

#endif
