/* What the grammar's actions share: the state of one parse, and the makers of nodes. Private to the floor. */
#ifndef PIPEC_PARSER_BUILD_H
#define PIPEC_PARSER_BUILD_H

#include "lexer/lexer.h"
#include "parser/ast.h"

#define DEPTH_MAX   1000 /* of an expression's tree; every recursive pass behind the parser relies on it */
#define ELSE_IF_MAX 300

typedef struct Parse {
    Lexer lexer;
    Ast *ast;
    bool too_long;    /* an expression of this statement was refused for its depth */
    bool failed;      /* there was a syntax error, */
    Span failure;     /* this word was the last that did not fit, */
    Span misnamed;    /* this keyword the last that was meant as a name (empty: none), */
    uint32_t resumed; /* and at the word here the grammar went on: what begins there may be the rest of a statement.
                         UINT32_MAX: it never had to */
} Parse;

/* An expression and the depth of its tree */
typedef struct Sized {
    AstExpr *tree;
    int depth;
} Sized;

/* An `if`, and how many `else if` follow it */
typedef struct Chain {
    AstStmt *stmt;
    int links;
} Chain;

/* A list of expressions and the depth of its deepest */
typedef struct Exprs {
    AstExprs list;
    int depth;
} Exprs;

/* `p[N] a -> b arrivals full e`: what follows the consumers */
typedef struct Arrivals {
    AstExpr *full, *empty;
} Arrivals;

/* How a value is assigned: `by lanes`, `multicast required` */
typedef struct Manner {
    bool by_lanes, multicast_required;
    Span lanes_span;
} Manner;

Sized make_expr(Parse *p, AstExprKind kind, Span span, int depth); /* depth: of its deepest operand */
Sized make_error_expr(Parse *p, Span span);
Sized make_unary(Parse *p, AstUnaryOp op, Span span, Sized operand);
Sized make_binary(Parse *p, AstBinaryOp op, Span span, Sized left, Span op_span, Sized right);
Sized make_select(Parse *p, Span span, Sized condition, Sized then, Sized otherwise);
Sized make_call(Parse *p, Span span, AstName callee, const Exprs *args);
Sized make_subscript(Parse *p, Span span, Sized base, const Exprs *subs);
Sized make_reduce(Parse *p, AstReduceOp op, Span span, const AstNames *indexes, Sized body);
Sized make_acquire(Parse *p, AstExprKind kind, Span span, AstEnd end, AstName pipe);
Sized make_name(Parse *p, AstName name);
Sized make_member(Parse *p, Span span, Sized base, AstName member);
Sized make_cursor(Parse *p, Span span, Sized pipe_end, AstName member);
Exprs *push_expr(Parse *p, Exprs *list, Sized expr);

/* The statements that end with `;` get their span with it */
AstStmt *make_stmt(Parse *p, AstStmtKind kind, Span span);
AstStmt *make_block(Parse *p, Span span, Span close, const AstStmts *body);
AstStmt *make_declare(Parse *p, AstStmtKind kind, AstName name, AstType *type, AstExpr *init);
AstStmt *make_assign(Parse *p, Sized target, AstAssignOp op, Span op_span, AstExpr *value, Manner manner);
AstStmt *make_expr_stmt(Parse *p, Span span, Sized value); /* a call; anything else does nothing and is reported */
AstStmt *make_for(Parse *p, Span head, const AstNames *vars, const AstDomain *domain);
AstDomain *make_domain(Parse *p, Span span, AstDomainKind kind, const AstExpr *name, AstExpr *from, AstExpr *to);
Chain make_if(Parse *p, Span span, AstStmt *head, AstStmt *then, Chain otherwise);
AstStmt *make_stage(Parse *p, Span head, const AstExpr *acquire, AstExpr *lag, AstName as);

AstStmt *make_signal(Parse *p, AstStmtKind kind, Span span, Sized barrier); /* build_unsafe.c */
AstStmt *make_ptx(Parse *p, Span span, AstName text, const AstOperands *operands); /* operands may be NULL */
/* What stands between the quotes at `span`, on a line of its own behind what stood in quotes before it, which may be NULL */
const char *text_in_quotes(Parse *p, const char *before, Span span);

AstItem *make_item(Parse *p, AstItemKind kind, Span span);
AstType *make_type(Parse *p, Span span, AstName name, const Exprs *dims); /* dims may be NULL */

/* The mistakes that the grammar knows by name */
void report_set_in_condition(Parse *p, Span op_span);
void report_chain(Parse *p, const AstExpr *first, Span second_op);
void report_no_stage_name(Parse *p, Span where, bool is_block);
void report_no_angles(Parse *p, const char *word, AstName pipe);
void report_no_width(Parse *p, Span where);
void report_no_target(Parse *p, Span where);
void report_bare_release(Parse *p, Span span);
void report_empty_statement(Parse *p, Span span, bool after_block);
void report_foreign_loop(Parse *p, Span span, Span until);
void report_claim(Parse *p, Span where, const char *message);

/* A syntax error: `found` is the word at `span`, and `expected` are all words that could stand there */
typedef struct Word {
    int token;
    const char *spelling; /* as written, or a description: "end of file" */
} Word;
void note_resumed(Parse *p);
void report_syntax(Parse *p, Word found, Span span, const Word *expected, int count);
void report_depth(Parse *p, Span span);

#endif
