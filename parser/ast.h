/* The syntax tree that the parser builds and elaborate/ reads. It describes only syntax: names
 * are not resolved, nothing has a type. Every node has the span of its text. Names are interned.
 * Pointers that may be NULL say so at their declaration. */
#ifndef PIPEC_AST_H
#define PIPEC_AST_H

#include "util/util.h"

typedef struct AstExpr AstExpr;
typedef struct AstStmt AstStmt;

typedef struct AstName {
    const char *text; /* interned; NULL after a syntax error */
    Span span;
} AstName;

typedef VEC(AstName) AstNames;

typedef struct AstExprs { /* a list that is complete */
    AstExpr **items;
    uint32_t count;
} AstExprs;

/* ---- expressions ----------------------------------------------------------------------------- */

typedef enum ONE_BYTE AstUnaryOp { AST_NEG, AST_NOT, AST_BIT_NOT } AstUnaryOp;

typedef enum ONE_BYTE AstBinaryOp {
    AST_ADD,
    AST_SUB,
    AST_MUL,
    AST_DIV,
    AST_MOD,
    AST_EQ,
    AST_NE,
    AST_LT,
    AST_LE,
    AST_GT,
    AST_GE,
    AST_AND,
    AST_OR,
    AST_BIT_AND,
    AST_BIT_OR,
    AST_BIT_XOR,
    AST_SHL,
    AST_SHR
} AstBinaryOp;

typedef enum ONE_BYTE AstReduceOp { AST_SUM, AST_MAX, AST_MIN } AstReduceOp;

typedef enum ONE_BYTE AstEnd { AST_PRODUCE, AST_CONSUME } AstEnd; /* an end of a pipe */

typedef enum ONE_BYTE AstExprKind {
    AST_ERROR_EXPR, /* after a syntax error; later passes report nothing about it */
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
    AST_OLD,       /* old Y[i]: base is the access */
    AST_ACQUIRE,   /* consume <p>, produce <p> */
    AST_TRY,       /* try consume <p>, try produce <p> */
    AST_CURSOR     /* consume <p>.index: of the next stage of an end */
} AstExprKind;

/* A long text has some 5 nodes per line, so the small members of a kind lie beside the span and
 * the kind, which are the first members of all. */
#define AST_EXPR_HEAD                                                                              \
    Span span_;                                                                                    \
    AstExprKind kind_

struct AstExpr {
    union {
        struct {
            Span span;
            AstExprKind kind;
        };
        struct {
            char head[16];
            union {
                uint64_t integer;
                double number;
                bool truth;
                const char *name;
                AstExpr *old;
            };
        };
        struct {
            AST_EXPR_HEAD;
            AstUnaryOp op;
            AstExpr *operand;
        } unary;
        struct {
            AST_EXPR_HEAD;
            AstBinaryOp op;
            uint32_t op_at; /* see ast_binary_op */
            AstExpr *left, *right;
        } binary;
        struct {
            AST_EXPR_HEAD;
            AstExpr *condition, *then, *otherwise;
        } select;
        struct {
            AST_EXPR_HEAD;
            uint32_t count;
            AstName callee;
            AstExpr **args;
        } call;
        struct {
            AST_EXPR_HEAD;
            uint32_t count;
            AstExpr *base;
            AstExpr **subs;
        } subscript;
        struct {
            AST_EXPR_HEAD;
            AstExpr *base;
            AstName member;
        } member;
        struct {
            AST_EXPR_HEAD;
            AstReduceOp op;
            const AstNames *indexes;
            AstExpr *body;
        } reduce;
        /* AST_ACQUIRE and AST_TRY; hint: `if ready`, text NULL without one; unwaited: `if true` */
        struct {
            AST_EXPR_HEAD;
            AstEnd end;
            bool unwaited;
            AstName pipe, hint;
        } acquire;
        struct {
            AST_EXPR_HEAD;
            AstEnd end;
            AstName pipe, member;
        } cursor;
    };
};
#undef AST_EXPR_HEAD

Span ast_binary_op(const AstExpr *binary); /* the operator */

/* `bf16[M, K]`, `f32`, `stage ab` */
typedef struct AstType {
    Span span;
    AstName name;  /* the element type, or the pipe of a stage */
    bool is_stage; /* `stage NAME` */
    bool is_tmem;  /* `tmem f32[..]`: a field in tensor memory */
    AstExprs dims; /* empty: a scalar */
} AstType;

typedef struct AstIndexRange { /* for name in from .. to, after a statement or a claim */
    Span span;
    AstName name;
    AstExpr *from, *to;
} AstIndexRange;

typedef VEC(AstIndexRange) AstIndexRanges;

/* ---- statements ------------------------------------------------------------------------------ */

typedef enum ONE_BYTE AstAssignOp {
    AST_SET,
    AST_SET_ADD,
    AST_SET_SUB,
    AST_SET_MUL,
    AST_SET_DIV
} AstAssignOp;
extern const char *const ast_assign_text[]; /* "+=", by AstAssignOp */

typedef enum AstDomainKind {
    AST_DOMAIN_GRID,  /* for (m, n) in grid */
    AST_DOMAIN_NAMED, /* for k in kt, kt from a, kt[a .. b] */
    AST_DOMAIN_RANGE  /* for i in a .. b */
} AstDomainKind;

typedef struct AstDomain {
    AstDomainKind kind;
    Span span;
    AstName name;  /* AST_DOMAIN_NAMED */
    AstExpr *from; /* first, or of a piece (`from a`, `[a .. b]`); NULL: whole */
    AstExpr *to;   /* exclusive; NULL: to the end */
} AstDomain;

typedef enum AstOperandMode { AST_OPERAND_IN, AST_OPERAND_OUT, AST_OPERAND_INOUT } AstOperandMode;

typedef struct AstOperand { /* of inline PTX */
    Span span;
    AstOperandMode mode;
    AstExpr *value; /* AST_OPERAND_IN */
    AstName name;   /* otherwise: the variable */
    /* type in the PTX text; its text is NULL: as declared */
    AstName type;
} AstOperand;

typedef VEC(AstOperand) AstOperands;

typedef enum ONE_BYTE AstStmtKind {
    AST_ERROR_STMT,
    AST_BLOCK,
    AST_LET,    /* let x = e; let s = consume <p>; */
    AST_VAR,    /* var x: f32 = e; var acc: f32[64, 256] = 0; */
    AST_SHARED, /* shared t: f32[64, 64]; */
    AST_ASSIGN, /* lhs op= e */
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

typedef struct AstModifiers { /* of an assignment or a declaration */
    bool by_lanes, multicast_required;
    Span lanes_span, multicast_span; /* empty: not given */
    AstIndexRanges *ranges;          /* NULL: none */
    AstExpr *where;                  /* NULL: none */
    Span where_span;
} AstModifiers;

/* As for expressions */
#define AST_STMT_HEAD                                                                              \
    Span span_;                                                                                    \
    AstStmtKind kind_

struct AstStmt {
    union {
        struct {
            Span span;
            AstStmtKind kind;
        };
        struct {
            char head[16];
            AstExpr *value; /* RETURN (may be NULL), EXPR */
        };
        /* AST_BLOCK, AST_TURN, AST_UNSAFE; close: the `}` */
        struct {
            AST_STMT_HEAD;
            uint32_t count;
            AstStmt **body;
            Span close;
        } block;
        /* LET, VAR, SHARED; indexes: of `let y[i] = ..`; these, the type and init may be NULL */
        struct {
            AST_STMT_HEAD;
            AstName name;
            const AstNames *indexes;
            AstType *type;
            AstExpr *init;
            const AstModifiers *with;
        } declare;
        struct {
            AST_STMT_HEAD;
            AstAssignOp op;
            bool prefetch;  /* prefetch value as target; */
            uint32_t op_at; /* see ast_assign_op */
            AstExpr *target, *value;
            const AstModifiers *with;
        } assign;
        /* head: `for .. in ..` */
        struct {
            AST_STMT_HEAD;
            const AstNames *vars;
            const AstDomain *domain;
            AstStmt *body;
            Span head;
        } loop;
        /* `if kv nonempty` has condition == NULL and the domain's name; otherwise: NULL, a
         * block or another if */
        struct {
            AST_STMT_HEAD;
            AstExpr *condition;
            AstName nonempty;
            AstStmt *then, *otherwise;
            Span head;
        } branch;
        /* lag may be NULL */
        struct {
            AST_STMT_HEAD;
            AstEnd end;
            bool unwaited;
            AstName pipe, hint;
            AstExpr *lag;
            AstName as;
            AstStmt *body;
            Span head;
        } stage;
        struct {
            AST_STMT_HEAD;
            bool without_signal;
            AstName name;
        } release;
        struct {
            AST_STMT_HEAD;
            /* a stage's name, s.full, consume <p>.full, consume <p>.full[i]; STEP: an
             * AST_ACQUIRE of the end */
            AstExpr *barrier;
            AstExpr *at;    /* ARRIVE: block of the cluster, may be NULL */
            AstExpr *value; /* WAIT: phase; EXPECT: bytes; ARRIVE: bytes, may be NULL */
        } signal;           /* ARRIVE, WAIT, EXPECT, STEP */
        struct {
            AST_STMT_HEAD;
            AstName text;
            AstOperands operands;
        } ptx; /* text: between the quotes */
    };
};
#undef AST_STMT_HEAD

Span ast_assign_op(const AstStmt *assign); /* the operator */

/* ---- items ----------------------------------------------------------------------------------- */

typedef enum AstMode { AST_IN, AST_OUT, AST_INOUT, AST_BORROW } AstMode;

typedef struct AstParam {
    Span span;
    AstMode mode;
    Span mode_span; /* of the keyword, empty without one */
    AstName name;
    AstType *type;
} AstParam;

typedef VEC(AstParam) AstParams;

typedef struct AstConst { /* const NAME = e, static NAME = e in {..} */
    Span span;
    bool is_static;
    AstName name;
    AstExpr *value;
    AstExprs choices; /* values for `tune` */
} AstConst;

typedef VEC(AstConst) AstConsts;

typedef struct AstClaim { /* one line of `ensures` */
    Span span;
    bool is_let;     /* let target = value */
    AstExpr *target; /* Y[i] */
    AstExpr *value;
    AstExpr *within;   /* `~ value within e`; NULL: exact (==), or a let */
    AstExpr *absolute; /* `within e or absolute`; NULL: none */
    AstIndexRanges ranges;
} AstClaim;

typedef VEC(AstClaim) AstClaims;

typedef struct AstExampleItem { /* N = 5; SeqLens[b] = 1 + b */
    Span span;
    AstExpr *target; /* AST_NAME, or AST_SUBSCRIPT of a name by bare names */
    /* a number; if target is a tensor's name, a fill: iota, zeros, uniform, normal */
    AstExpr *value;
} AstExampleItem;

typedef struct AstAxis { /* grid and cluster */
    AstName name;
    AstExpr *extent;
    bool heaviest_first;
    Span heaviest_span;
} AstAxis;

typedef VEC(AstAxis) AstAxes;

typedef struct AstField {
    Span span;
    AstName name;
    AstExpr *count; /* a[4]: ...; NULL: one tile */
    AstType *type;
} AstField;

typedef VEC(AstField) AstFields;

typedef enum AstItemKind {
    AST_ITEM_CONST,
    AST_ITEM_INCLUDE,
    AST_ITEM_FN,
    AST_ITEM_KERNEL, /* of a file */
    AST_ITEM_REQUIRES,
    AST_ITEM_ENSURES,
    AST_ITEM_EXAMPLE,
    AST_ITEM_GRID,
    AST_ITEM_CLUSTER,
    AST_ITEM_RANGE,
    AST_ITEM_PIPE,
    AST_ITEM_ROLE,   /* of a kernel; AST_ITEM_CONST too */
    AST_ITEM_VARIANT /* of a kernel, only in the tree as written: see Ast.kernels */
} AstItemKind;

typedef enum AstTeam { AST_WARPS, AST_WARPGROUPS } AstTeam;

typedef struct AstItem AstItem;
typedef VEC(AstItem *) AstItems;

struct AstItem {
    AstItemKind kind;
    Span span;
    Span head; /* text before the body: `role load: 1 warp` */
    union {
        AstConsts consts;
        AstName include; /* its path, without the quotes that are in its span */
        /* result may be NULL; reached: set by elaborate */
        struct {
            AstName name;
            AstParams params;
            AstType *result;
            AstStmt *body;
            bool *reached;
        } fn;
        struct {
            AstName name;
            AstParams params;
            AstNames targets; /* of a variant, none: those of the kernel */
            AstItems items;
            Span close;
            AstName variant; /* of a unit of Ast.kernels; text NULL: the kernel has none */
        } kernel;            /* KERNEL and VARIANT, which has no parameters */
        AstExpr *requires_;
        AstClaims ensures;
        VEC(AstExampleItem) example;
        struct {
            AstAxes axes;
            bool persistent, dynamic, hardware;
            AstExpr *grouped;
            Span grouped_span, hardware_span;
        } grid;
        struct {
            AstAxes axes;
            bool paired;
        } cluster;
        struct {
            AstName name;
            AstExpr *from, *to, *where;
        } range; /* where may be NULL */
        struct {
            AstName name;
            AstExpr *stages;
            AstName producer;
            AstNames consumers;
            AstFields fields;                        /* empty: a token */
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
    AstItems items; /* of the first file, then of those that are included */
    /* the items that are functions, constants and statics; then what is compiled: kernels with
     * names, and in the place of a kernel with variants each of these, with the items that the
     * kernel shares before its own */
    AstItems fns, consts, kernels;
    /* names of `kernels`, in one array: each kernel of a long file is searched for. Of a variant:
     * "gemm:swapped" */
    VEC(const char *) kernel_names;
    VEC(Span) comments; /* in order of the text */
} Ast;

bool ast_has_variants(const AstItem *kernel);
/* An indented form of everything: --emit=ast */
void ast_print(const Ast *ast, Str *out);

#endif
