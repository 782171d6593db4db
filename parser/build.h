/* parser, private: shared by the grammar's actions: the state of a parse, and the constructors
 * of nodes. Constructors that report an error still return a node. */
#ifndef PIPEC_PARSER_BUILD_H
#define PIPEC_PARSER_BUILD_H

#include "lexer/lexer.h"
#include "parser/ast.h"

#define DEPTH_MAX   1000 /* of an expression's tree; bounds the recursion of all later passes */
#define ELSE_IF_MAX 300

typedef struct Parse {
    Lexer lexer;
    Ast *ast;
    Cut nodes;            /* what the tree consists of */
    struct Exprs *unused; /* lists that were copied into a node */
    struct Stmts *unused_stmts;
    bool too_long; /* an expression of this statement was refused for its depth */
    bool failed;   /* there was a syntax error */
    Span failure;  /* the last token that did not fit */
    Span misnamed; /* the last keyword used as a name; empty: none */
    /* offset at which the grammar resumed; text there may be the rest of a statement;
     * UINT32_MAX: it never resumed */
    uint32_t resumed;
} Parse;

/* An expression and the depth of its tree */
typedef struct Sized {
    AstExpr *tree;
    int depth;
} Sized;

/* An `if`, and the number of `else if` after it */
typedef struct Chain {
    AstStmt *stmt;
    int links;
} Chain;

/* A list of expressions and the depth of the deepest one */
typedef struct Exprs {
    VEC(AstExpr *) list;
    int depth;
    struct Exprs *next; /* of the unused ones */
} Exprs;

typedef struct Stmts {
    VEC(AstStmt *) list;
    struct Stmts *next; /* of the unused ones */
} Stmts;

/* `p[N] a -> b arrivals full e`: the part after the consumers */
typedef struct Arrivals {
    AstExpr *full, *empty;
} Arrivals;

/* ---- expressions: build_expr.c ---- */

/* depth: of its deepest operand */
Sized make_expr(Parse *p, AstExprKind kind, Span span, int depth);
Sized make_error_expr(Parse *p, Span span);
Sized make_unary(Parse *p, AstUnaryOp op, Span span, Sized operand);
Sized make_binary(Parse *p, AstBinaryOp op, Span span, Sized left, Span op_span, Sized right);
Sized make_select(Parse *p, Span span, Sized condition, Sized then, Sized otherwise);
Sized make_call(Parse *p, Span span, AstName callee, Exprs *args);
Sized make_subscript(Parse *p, Span span, Sized base, Exprs *subs);
Sized make_reduce(Parse *p, AstReduceOp op, Span span, const AstNames *indexes, Sized body);
Sized make_old(Parse *p, Span span, Sized access);
Sized make_acquire(Parse *p, AstExprKind kind, Span span, AstEnd end, AstName pipe);
Sized make_try(Parse *p, Span span, Sized pipe_end);
Sized make_name(Parse *p, AstName name);
/* A member of `consume <p>` is one of the cursor of that end */
Sized make_member(Parse *p, Span span, Sized base, AstName member);
Sized make_cursor(Parse *p, Span span, Sized pipe_end, AstName member);
AstNames *make_names(Parse *p, AstName first);
Exprs *new_exprs(Parse *p);
Exprs *push_expr(Parse *p, Exprs *list, Sized expr);
AstExprs take_exprs(Parse *p, Exprs *list); /* the list is copied, for a node */

/* ---- statements: build_stmt.c ---- */

/* Statements that end with `;` include it in their span */
AstStmt *make_stmt(Parse *p, AstStmtKind kind, Span span);
/* The grammar resumes after an error; an expression here may be the rest of a statement */
void note_resumed(Parse *p);
Stmts *new_stmts(Parse *p);
void push_stmt(Parse *p, Stmts *list, AstStmt *stmt);
AstStmt *make_block(Parse *p, Span span, Span close, Stmts *body);
AstStmt *make_declare(Parse *p, AstStmtKind kind, AstName name, AstType *type, AstExpr *init);
/* To be changed; `before` NULL: there was none */
AstModifiers *modified(Parse *p, AstModifiers *before);
/* Adds what follows a declaration; modifiers: NULL for none, here and below */
AstStmt *end_declaration(AstStmt *stmt, const AstModifiers *modifiers);
AstStmt *make_assign(Parse *p, Sized target, AstAssignOp op, Span op_span, AstExpr *value,
                     const AstModifiers *modifiers);
/* Adds `names in from .. to`; several names are reported. `list` may be NULL */
AstIndexRanges *add_range(Parse *p, AstIndexRanges *list, Span span, const AstNames *names,
                          Sized from, Sized to);
/* `for` begins a second list of ranges */
void report_second_list(Parse *p, Span span);
void report_second_where(Parse *p, Span span);
/* `for` begins the next statement, because a `;` is missing before it */
void report_no_semicolon(Parse *p, Span where);
AstStmt *make_prefetch(Parse *p, Sized value, Sized target);
/* A call; other expressions are reported: a stage without a name, or no effect */
AstStmt *make_expr_stmt(Parse *p, Span span, Sized value);
AstStmt *make_for(Parse *p, Span head, const AstNames *vars, const AstDomain *domain);
AstDomain *make_domain(Parse *p, Span span, AstDomainKind kind, Sized from, Sized to);
/* `name`, `name from e`, `name[a .. b]`; a `name` that is another expression is reported */
AstDomain *make_named_domain(Parse *p, Span span, Sized name, Sized from, Sized to);
/* The head of an `if`: a condition, or the name of a domain before `nonempty`; the other is
 * empty */
AstStmt *make_branch(Parse *p, Span head, Sized condition, AstName nonempty);
Chain make_if(Parse *p, Span span, AstStmt *head, AstStmt *then, Chain otherwise);
AstStmt *make_stage(Parse *p, Span head, Sized acquire, Sized lag, AstName as);
AstStmt *make_release(Parse *p, Span span, AstName stage);
/* `release` without a name, which is reported */
AstStmt *make_bare_release(Parse *p, Span span);
/* value: phase or bytes; its tree may be NULL */
AstStmt *make_signal(Parse *p, AstStmtKind kind, Span span, Sized barrier, Sized value);
AstOperand *make_input(Parse *p, Span span, Sized value);
/* An operand that is written; type.text is NULL: as declared */
AstOperand *make_output(Parse *p, Span span, AstOperandMode mode, AstName name, AstName type);
/* operands may be NULL */
AstStmt *make_ptx(Parse *p, Span span, AstName text, const AstOperands *operands);
/* The text between the quotes at `span`, appended as a new line to `before`, which may be NULL */
const char *text_in_quotes(Parse *p, const char *before, Span span);

/* ---- items: build_item.c. An expression that may be absent has the tree NULL ---- */

AstItem *make_item(Parse *p, AstItemKind kind, Span span);
/* Ends the item: the next one may report its depth again */
void add_item(Parse *p, AstItems *items, AstItem *item);
/* Gives a kernel of which only the body is known its name, parameters and targets; NULL: it has
 * none */
/* A variant from its items and its head */
AstItem *name_variant(AstItem *variant, Span span, const AstItem *head);
AstItem *name_kernel(AstItem *kernel, Span span, Span head, AstName name, const AstParams *params,
                     const AstNames *targets);
/* `text` has quotes, which are no part of the path */
AstItem *make_include(Parse *p, Span span, Span text);
AstConst *make_const(Parse *p, Span span, AstName name, Sized value);
AstConst *make_static(Parse *p, Span span, AstName name, Sized value, Exprs *choices);
AstItem *add_const(Parse *p, AstItem *item, const AstConst *added);
/* result may be NULL */
AstItem *make_fn(Parse *p, Span span, AstName name, const AstParams *params, AstType *result);
AstParam *make_param(Parse *p, Span span, AstMode mode, Span mode_span, AstName name,
                     AstType *type);
AstParams *add_param(Parse *p, AstParams *params, const AstParam *added);
AstItem *make_range(Parse *p, Span span, AstName name, Sized from, Sized to, Sized where);
AstItem *make_ensures(Parse *p, Span span, Span head, const AstClaims *claims);
AstClaims *add_claim(Parse *p, AstClaims *claims, const AstClaim *added);
/* bound: of `~`; its tree is NULL: exact */
AstClaim *make_claim(Parse *p, Span span, Sized target, Sized value, Sized bound);
AstClaim *make_let_claim(Parse *p, Span span, Sized target, Sized value);
void add_example(Parse *p, AstItem *example, Span span, Sized target, Sized value);
void set_axes(AstItem *grid, const AstAxes *axes, Sized grouped, Span grouped_span);
AstAxis *make_axis(Parse *p, AstName name, Sized extent);
AstItem *make_pipe(Parse *p, Span span, AstName name, Sized stages, AstName producer,
                   const AstNames *consumers, Arrivals arrivals);
AstField *make_field(Parse *p, Span span, AstName name, Sized count, AstType *type);
AstItem *make_role(Parse *p, Span span, AstName name, Sized count, AstTeam team);
void set_regs(AstItem *role, Sized regs, Span regs_span);
AstType *make_type(Parse *p, Span span, AstName name, Exprs *dims); /* dims may be NULL */

/* ---- errors that the grammar recognises: errors.c ---- */

/* The place behind `span` */
Span span_end(Span span);
void report_set_in_condition(Parse *p, Span op_span);
/* Reports a comparison whose left operand is a comparison; `text`: span of that operand with its
 * brackets */
void report_chain(Parse *p, const AstExpr *first, Span text, Span second_op);
void report_no_stage_name(Parse *p, Span where, bool is_block);
void report_no_angles(Parse *p, const char *word, AstName pipe);
void report_no_width(Parse *p, Span where);
void report_no_target(Parse *p, Span where);
void report_empty_statement(Parse *p, Span span, bool after_block);
void report_foreign_loop(Parse *p, Span span, Span until);
/* A statement outside of a role */
void report_statement(Parse *p, Span span, const char *keyword);
void report_claim(Parse *p, Span where, const char *message);

/* A syntax error: `found` is the token at `span`, `expected` are all tokens that are allowed
 * there */
typedef struct Word {
    int token;
    const char *spelling; /* as written, or a description: "end of file" */
} Word;
void report_syntax(Parse *p, Word found, Span span, const Word *expected, int count);
void report_depth(Parse *p, Span span);

#endif
