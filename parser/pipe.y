/* Tokens to a tree. The grammar only builds the tree; ast.h describes the nodes. This part declares
 * tokens and types; the rules follow in items.y, statements.y and expressions.y.
 *
 * Errors: `stmts error` resumes at any token that begins a statement or ends the block, `stmts
 * error ";"` re-enables reporting at once, and a keyword with `error` before a block skips to
 * that block and reads it. Frequent errors have rules of their own, which report them by name
 * and continue as if the text were correct. Contextual keywords (listed by `name`) may be used
 * as names everywhere. */
%require "3.8"
%define api.pure full
%define api.prefix {pipe_}
%define api.token.prefix {TOK_}
%define api.token.raw
%define api.location.type {Span}
%define parse.error custom
%define parse.lac full
%define lr.type ielr
%locations
%expect 0
%param {void *scanner}
%parse-param {Parse *p}

%code requires {
#include "parser/build.h"
}
%code provides {
#define YY_DECL int pipe_lex(PIPE_STYPE *yylval_param, PIPE_LTYPE *yylloc_param, void *yyscanner)
YY_DECL;
const char *pipe_token_spelling(int token);
}
%code top {
#include <stdlib.h>
}
%code {
/* The stacks are allocated once; a text that exceeds them is nested too deeply. A bracket takes
 * at most 16 entries. */
#define YYINITDEPTH 6000
#define YYMAXDEPTH 6000
#define YYMALLOC(bytes) no_memory(bytes)
#define YYFREE(pointer) (void)(pointer)
static void *no_memory(size_t bytes) {
    (void)bytes;
    return NULL;
}

/* From the first to the last part that is not empty; an empty rule is at the end of the part
 * before it */
#define YYLLOC_DEFAULT(current, rhs, count) \
    ((current) = (count) == 1 ? YYRHSLOC(rhs, 1) : join(&YYRHSLOC(rhs, 0), (count)))
static Span join(const Span *before, int count) {
    int first = 1, last = count;
    while (first <= count && before[first].lo == before[first].hi) first++;
    if (first > count) return (Span){before[0].hi, before[0].hi};
    while (before[last].lo == before[last].hi) last--;
    return (Span){before[first].lo, before[last].hi};
}

static void pipe_error(const Span *span, void *scanner, Parse *p, const char *message) {
    (void)scanner;
    (void)message; /* the only message is that the stacks are full */
    report_depth(p, *span);
}

#define ARENA (p->lexer.arena)
#define AT(name_text, name_span) ((AstName){(name_text), (name_span)})
#define NO_NAME                  ((AstName){0})
#define NO_EXPR                  ((Sized){NULL, 0})
#define CHAIN(last)              ((Chain){(last), 0})
}

%union {
    const char *name;
    uint64_t integer;
    double number;
    AstName label;
    Sized expr;
    Exprs *exprs;
    AstNames *names;
    AstType *type;
    AstStmt *stmt;
    Stmts *stmts;
    Chain chain;
    AstDomain *domain;
    AstParam *param;
    AstParams *params;
    AstConst *constant;
    AstAxis *axis;
    AstAxes *axes;
    AstField *field;
    AstFields *fields;
    AstClaim *claim;
    AstClaims *claims;
    AstItem *item;
    AstAssignOp assign;
    AstBinaryOp binary;
    AstReduceOp reduce;
    AstMode mode;
    AstTeam team;
    Arrivals arrivals;
    AstModifiers *modifiers;
    AstIndexRanges *ranges;
    AstOperand *operand;
    AstOperands *operands;
    AstOperandMode operand_mode;
}

%token END 0 "end of file"
%token KERNEL "kernel" FN "fn" CONST "const" STATIC "static"
%token REQUIRES "requires" ENSURES "ensures" EXAMPLE "example" GRID "grid" CLUSTER "cluster"
%token RANGE "range" PIPE "pipe"
%token ROLE "role"
%token LET "let" VAR "var" SHARED "shared" FOR "for" IN "in" IF "if" ELSE "else" WHILE "while"
%token BREAK "break" CONTINUE "continue" RETURN "return" TURN "turn" UNSAFE "unsafe"
%token PRODUCE "produce" CONSUME "consume" RELEASE "release" PREFETCH "prefetch" AS "as" LAG "lag"
%token TRY "try"
%token BORROW "borrow" OUT "out" INOUT "inout" OLD "old" TRUE "true" FALSE "false"
%token <name> SUM "sum" MAX "max" MIN "min"
%token <name> ARRIVALS "arrivals" ARRIVE "arrive" AT "at" BY "by" BYTES "bytes"
%token <name> DYNAMIC "dynamic" EMPTY "empty"
%token <name> EXPECT "expect"
%token <name> FIRST "first" FROM "from" FULL "full" GROUPED "grouped"
%token <name> HARDWARE "hardware" HEAVIEST "heaviest" INCLUDE "include"
%token <name> LANES "lanes" MULTICAST "multicast"
%token <name> NONEMPTY "nonempty"
%token <name> OR_WORD "or"
%token <name> PAIRED "paired"
%token <name> PERSISTENT "persistent" PHASE "phase" PTX "ptx" REGS "regs" REQUIRED "required"
%token <name> SIGNAL "signal"
%token <name> STAGE "stage" STEP "step" TMEM "tmem" VARIANT "variant" WAIT "wait" WARP "warp"
%token <name> WARPS "warps" WARPGROUP "warpgroup" WARPGROUPS "warpgroups" WHERE "where"
%token <name> WITHIN "within"
%token <name> WITHOUT "without"
%token <name> NAME "name"
%token <integer> INTEGER "number"
%token <number> FLOAT "floating-point number"
%token TEXT "text in quotes"
%token BAD "malformed literal"
%token LPAREN "(" RPAREN ")" LBRACKET "[" RBRACKET "]" LBRACE "{" RBRACE "}"
%token SEMICOLON ";" COMMA "," COLON ":" DOT "." DOTDOT ".." ARROW "->" QUESTION "?" TILDE "~"
%token SET "=" SET_ADD "+=" SET_SUB "-=" SET_MUL "*=" SET_DIV "/="
%token EQ "==" NE "!=" LT "<" LE "<=" GT ">" GE ">=" AND "&&" OR "||" NOT "!"
%token PLUS "+" MINUS "-" STAR "*" SLASH "/" PERCENT "%"
%token BIT_AND "&" BIT_OR "|" BIT_XOR "^" SHL "<<" SHR ">>"

/* Lowest precedence first */
%right "?"
%left "||"
%left "&&"
%left "==" "!=" "<" "<=" ">" ">="
%left "|"
%left "^"
%left "&"
%left "<<" ">>"
%left "+" "-"

%type <label> name
%type <name> word
%type <names> names
%type <expr> expr closed_product open_product closed open factors closed_factors
%type <expr> postfix condition value acquire hinted pipe_end lag opt_regs opt_grouped
%type <binary> relational
%type <reduce> reduction
%type <exprs> exprs args choices dims
%type <type> type opt_result
%type <stmt> statement closed_statement open_statement declaration block stage_head if_head for_head
%type <stmts> stmts
%type <chain> if_stmt
%type <domain> domain
%type <assign> assign_op
%type <modifiers> modifiers
%type <ranges> index_ranges opt_ranges
%type <param> param
%type <params> params param_list
%type <mode> mode
%type <constant> const_def static_def
%type <axis> axis
%type <axes> axes
%type <field> field
%type <fields> fields
%type <claim> claim
%type <claims> claims
%type <item> item body_item kernel_item closed_kernel_item consts statics kernel_body kernel_items
%type <item> fn_head variant_head example grid_head cluster pipe_head role_head
%type <team> team
%type <arrivals> arrivals arrivals_list
%type <expr> barrier opt_at opt_bytes
%type <name> texts
%type <operand> operand
%type <operand_mode> operand_mode
%type <operands> operands operand_list

%%
