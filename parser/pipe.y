/* Tokens to a tree. The grammar only builds the tree; ast.h describes the nodes.
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
    Span span = {before[0].hi, before[0].hi};
    bool begun = false;
    for (int i = 1; i <= count; i++) {
        if (before[i].lo == before[i].hi) continue;
        span = begun ? span_join(span, before[i]) : before[i];
        begun = true;
    }
    return span;
}

static void pipe_error(const Span *span, void *scanner, Parse *p, const char *message) {
    (void)scanner;
    (void)message; /* the only message is that the stacks are full */
    report_depth(p, *span);
}

#define ARENA (p->lexer.arena)
/* The vectors inside AstItem have no named type that could be assigned */
#define MOVE(to, from) \
    ((to).items = (from).items, (to).count = (from).count, (to).capacity = (from).capacity)
#define NEW_NODE(to, Type) *((to) = NEW(ARENA, Type)) = (Type)
#define AT(name_text, name_span) ((AstName){(name_text), (name_span)})
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
    AstStmts *stmts;
    Chain chain;
    AstDomain *domain;
    AstParam *param;
    AstParams *params;
    AstConst *constant;
    AstAxis *axis;
    AstField *field;
    AstClaim *claim;
    AstItem *item;
    AstAssignOp assign;
    AstBinaryOp binary;
    AstReduceOp reduce;
    AstMode mode;
    AstTeam team;
    Arrivals arrivals;
    AssignModifiers modifiers;
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
%token <name> ARRIVALS "arrivals" ARRIVE "arrive" AT "at" BY "by" BYTES "bytes" EMPTY "empty"
%token <name> EXPECT "expect"
%token <name> FIRST "first" FROM "from" FULL "full" GROUPED "grouped"
%token <name> HARDWARE "hardware" HEAVIEST "heaviest" LANES "lanes" MULTICAST "multicast"
%token <name> NONEMPTY "nonempty"
%token <name> PAIRED "paired"
%token <name> PERSISTENT "persistent" PHASE "phase" PTX "ptx" REGS "regs" REQUIRED "required"
%token <name> SIGNAL "signal"
%token <name> STAGE "stage" STEP "step" TMEM "tmem" WAIT "wait" WARP "warp"
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

/* Lowest precedence first */
%right "?"
%left "||"
%left "&&"
%left "==" "!=" "<" "<=" ">" ">="
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
%type <stmt> statement closed_statement open_statement block stage_head if_head for_head
%type <stmts> stmts
%type <chain> if_stmt
%type <domain> domain
%type <assign> assign_op
%type <modifiers> modifiers
%type <param> param
%type <params> params param_list
%type <mode> mode
%type <constant> const_def static_def
%type <axis> axis
%type <field> field
%type <claim> claim
%type <item> item body_item kernel_item closed_kernel_item consts statics kernel_body kernel_items
%type <item> claims example
%type <item> grid_head axes
%type <item> pipe_head fields role_head fn_head cluster
%type <team> team
%type <arrivals> arrivals arrivals_list
%type <expr> barrier opt_at opt_bytes
%type <name> texts
%type <operand> operand
%type <operand_mode> operand_mode
%type <operands> operands operand_list

%%

/* ---- a file ---------------------------------------------------------------------------------- */

file:
    %empty
  | file item               { p->too_long = false; vec_push(ARENA, &p->ast->items, $item); }
  | file body_item          { p->too_long = false; vec_push(ARENA, &p->ast->items, $body_item); }
  | file body_item ";" {
        p->too_long = false;
        vec_push(ARENA, &p->ast->items, $body_item);
        report_empty_statement(p, @3, true);
    }
  | file error
  ;

item:
    consts ";"
  | statics ";"
  ;

body_item:
    fn_head block           { $$ = $fn_head; $$->span = @$; $$->fn.body = $block; }
  | "fn" error block        { yyerrok; $$ = make_item(p, AST_ITEM_FN, @$); $$->fn.body = $block; }
  | "kernel" name "(" params ")" "for" word[target] kernel_body {
        $$ = $kernel_body;
        $$->span = @$;
        $$->head = span_join(@1, @target);
        $$->kernel.name = $name;
        $$->kernel.params = *$params;
        $$->kernel.target = AT($target, @target);
    }
  | "kernel" name "(" params ")" kernel_body {
        report_no_target(p, (Span){@5.hi, @5.hi});
        $$ = $kernel_body;
        $$->span = @$;
        $$->head = span_join(@1, @5);
        $$->kernel.name = $name;
        $$->kernel.params = *$params;
    }
  | "kernel" error kernel_body { yyerrok; $$ = $kernel_body; $$->span = @$; $$->head = @1; }
  ;

consts:
    "const" const_def {
        $$ = make_item(p, AST_ITEM_CONST, @$);
        vec_push(ARENA, &$$->consts, *$const_def);
    }
  | consts[list] "," const_def {
        $$ = $list;
        $$->span = @$;
        vec_push(ARENA, &$$->consts, *$const_def);
    }
  ;

const_def:
    name "=" expr {
        NEW_NODE($$, AstConst){.span = @$, .name = $name, .value = $expr.tree};
    }
  ;

statics:
    "static" static_def {
        $$ = make_item(p, AST_ITEM_CONST, @$);
        vec_push(ARENA, &$$->consts, *$static_def);
    }
  | statics[list] "," static_def {
        $$ = $list;
        $$->span = @$;
        vec_push(ARENA, &$$->consts, *$static_def);
    }
  ;

static_def:
    name "=" expr choices {
        NEW_NODE($$, AstConst){.span = @$, .is_static = true, .name = $name, .value = $expr.tree,
                               .choices = $choices->list};
    }
  ;

choices:
    %empty                  { $$ = NEW(ARENA, Exprs); }
  | "in" "{" exprs "}"      { $$ = $exprs; }
  ;

fn_head:
    "fn" name "(" params ")" opt_result {
        $$ = make_item(p, AST_ITEM_FN, @$);
        $$->fn.name = $name;
        $$->fn.params = *$params;
        $$->fn.result = $opt_result;
        $$->fn.reached = NEW(ARENA, bool);
    }
  ;

opt_result:
    %empty                  { $$ = NULL; }
  | "->" type               { $$ = $type; }
  ;

params:
    %empty                  { $$ = NEW(ARENA, AstParams); }
  | param_list
  ;

param_list:
    param                   { $$ = NEW(ARENA, AstParams); vec_push(ARENA, $$, *$param); }
  | param_list[list] "," param { $$ = $list; vec_push(ARENA, $$, *$param); }
  ;

param:
    mode name ":" type {
        NEW_NODE($$, AstParam){.span = @$, .mode = $mode, .mode_span = @mode, .name = $name,
                               .type = $type};
    }
  ;

mode:
    %empty                  { $$ = AST_IN; }
  | "out"                   { $$ = AST_OUT; }
  | "inout"                 { $$ = AST_INOUT; }
  | "borrow"                { $$ = AST_BORROW; }
  ;

type:
    word dims               { $$ = make_type(p, @$, AT($word, @word), $dims); }
  | "stage" word            { $$ = make_type(p, @$, AT($word, @word), NULL); $$->is_stage = true; }
  | "tmem" word dims        { $$ = make_type(p, @$, AT($word, @word), $dims); $$->is_tmem = true; }
  ;

dims:
    %empty                  { $$ = NULL; }
  | "[" exprs "]"           { $$ = $exprs; }
  ;

/* ---- a kernel -------------------------------------------------------------------------------- */

kernel_body:
    "{" kernel_items "}"    { $$ = $kernel_items; $$->kernel.close = @3; }
  ;

kernel_items:
    %empty                  { $$ = make_item(p, AST_ITEM_KERNEL, @$); }
  | kernel_items[list] kernel_item {
        $$ = $list;
        p->too_long = false;
        vec_push(ARENA, &$$->kernel.items, $kernel_item);
    }
  | kernel_items[list] error     { $$ = $list; }
  | kernel_items[list] error ";" { $$ = $list; yyerrok; }
  ;

kernel_item:
    consts ";"
  | statics ";"
  | "requires" condition ";" {
        $$ = make_item(p, AST_ITEM_REQUIRES, @$);
        $$->requires_ = $condition.tree;
    }
  | example ";"
  | grid_head "(" axes ")" opt_grouped ";" {
        $$ = $grid_head;
        $$->span = @$;
        $$->head = span_join(@1, @4);
        MOVE($$->grid.axes, $axes->grid.axes);
        $$->grid.grouped = $opt_grouped.tree;
        $$->grid.grouped_span = @opt_grouped;
    }
  | cluster ";"
  | "range" name "=" expr[from] ".." expr[to] ";" {
        $$ = make_item(p, AST_ITEM_RANGE, @$);
        $$->range.name = $name;
        $$->range.from = $from.tree;
        $$->range.to = $to.tree;
    }
  | "range" name "=" expr[from] ".." expr[to] "where" expr[where] ";" {
        $$ = make_item(p, AST_ITEM_RANGE, @$);
        $$->range.name = $name;
        $$->range.from = $from.tree;
        $$->range.to = $to.tree;
        $$->range.where = $where.tree;
    }
  | pipe_head ";"           { $$ = $pipe_head; $$->span = @$; }
  | "ensures" claim ";" {
        $$ = make_item(p, AST_ITEM_ENSURES, @$);
        vec_push(ARENA, &$$->ensures, *$claim);
    }
  | closed_kernel_item
  | closed_kernel_item ";"  { $$ = $1; report_empty_statement(p, @2, true); }
  ;

closed_kernel_item:
    pipe_head "{" fields "}" {
        $$ = $pipe_head;
        $$->span = @$;
        MOVE($$->pipe.fields, $fields->pipe.fields);
    }
  | "pipe" error "{" fields "}" { yyerrok; $$ = $fields; $$->span = @$; }
  | "pipe" error ";"        { yyerrok; $$ = make_item(p, AST_ITEM_PIPE, @$); }
  | role_head block         { $$ = $role_head; $$->span = @$; $$->role.body = $block; }
  | "role" error block {
        yyerrok;
        $$ = make_item(p, AST_ITEM_ROLE, @$);
        $$->role.count = make_error_expr(p, @1).tree;
        $$->role.body = $block;
    }
  | "ensures" "{" claims "}" { $$ = $claims; $$->span = @$; $$->head = @1; }
  ;

claims:
    %empty                  { $$ = make_item(p, AST_ITEM_ENSURES, @$); }
  | claims[list] claim ";" {
        $$ = $list;
        p->too_long = false;
        vec_push(ARENA, &$$->ensures, *$claim);
    }
  | claims[list] "let" postfix "=" expr ";" {
        $$ = $list;
        p->too_long = false;
        vec_push(ARENA, &$$->ensures,
                 (AstClaim){.span = span_join(@2, @6), .is_let = true, .target = $postfix.tree,
                            .value = $expr.tree});
    }
  | claims[list] error      { $$ = $list; }
  | claims[list] error ";"  { $$ = $list; yyerrok; }
  ;

claim:
    postfix "~" expr[value] "within" expr[bound] {
        NEW_NODE($$, AstClaim){.span = @$, .target = $postfix.tree, .value = $value.tree,
                               .within = $bound.tree};
    }
  | postfix "==" expr {
        NEW_NODE($$, AstClaim){.span = @$, .target = $postfix.tree, .value = $expr.tree};
    }
  | postfix "~" expr {
        report_claim(p, (Span){@3.hi, @3.hi}, "`~` needs a bound");
        NEW_NODE($$, AstClaim){.span = @$, .target = $postfix.tree, .value = $expr.tree};
    }
  | postfix "=" expr {
        report_claim(p, @2, "`=` in a claim of `ensures`");
        NEW_NODE($$, AstClaim){.span = @$, .target = $postfix.tree, .value = $expr.tree};
    }
  ;

example:
    "example" postfix "=" expr {
        $$ = make_item(p, AST_ITEM_EXAMPLE, @$);
        AstExampleItem item = {.span = span_join(@2, @4), .target = $postfix.tree,
                               .value = $expr.tree};
        vec_push(ARENA, &$$->example, item);
    }
  | example[list] "," postfix "=" expr {
        $$ = $list;
        $$->span = @$;
        AstExampleItem item = {.span = span_join(@3, @5), .target = $postfix.tree,
                               .value = $expr.tree};
        vec_push(ARENA, &$$->example, item);
    }
  ;

grid_head:
    "grid"                  { $$ = make_item(p, AST_ITEM_GRID, @$); }
  | "grid" "persistent"     { $$ = make_item(p, AST_ITEM_GRID, @$); $$->grid.persistent = true; }
  | "grid" "hardware" {
        $$ = make_item(p, AST_ITEM_GRID, @$);
        $$->grid.hardware = true;
        $$->grid.hardware_span = @2;
    }
  ;

opt_grouped:
    %empty                  { $$ = (Sized){NULL, 0}; }
  | "grouped" expr          { $$ = $expr; }
  ;

axes:
    axis {
        $$ = make_item(p, AST_ITEM_GRID, @$);
        vec_push(ARENA, &$$->grid.axes, *$axis);
    }
  | axes[list] "," axis     { $$ = $list; vec_push(ARENA, &$$->grid.axes, *$axis); }
  ;

axis:
    name ":" expr           { NEW_NODE($$, AstAxis){.name = $name, .extent = $expr.tree}; }
  | name ":" expr "heaviest" "first" {
        NEW_NODE($$, AstAxis){.name = $name, .extent = $expr.tree, .heaviest_first = true,
                              .heaviest_span = span_join(@4, @5)};
    }
  ;

cluster:
    "cluster" "(" axes ")" {
        $$ = make_item(p, AST_ITEM_CLUSTER, @$);
        MOVE($$->cluster.axes, $axes->grid.axes);
    }
  | cluster[list] "paired"  { $$ = $list; $$->span = @$; $$->cluster.paired = true; }
  ;

pipe_head:
    "pipe" name[ring] "[" expr "]" name[producer] "->" names[consumers] arrivals {
        $$ = make_item(p, AST_ITEM_PIPE, @$);
        $$->pipe.name = $ring;
        $$->pipe.stages = $expr.tree;
        $$->pipe.producer = $producer;
        $$->pipe.consumers = *$consumers;
        $$->pipe.arrivals_full = $arrivals.full;
        $$->pipe.arrivals_empty = $arrivals.empty;
    }
  ;

arrivals:
    %empty                       { $$ = (Arrivals){NULL, NULL}; }
  | "arrivals" arrivals_list     { $$ = $arrivals_list; }
  ;

arrivals_list:
    "full" expr                      { $$ = (Arrivals){$expr.tree, NULL}; }
  | "empty" expr                     { $$ = (Arrivals){NULL, $expr.tree}; }
  | "full" expr[full] "empty" expr   { $$ = (Arrivals){$full.tree, $4.tree}; }
  | "empty" expr[empty] "full" expr  { $$ = (Arrivals){$4.tree, $empty.tree}; }
  ;

fields:
    %empty                  { $$ = make_item(p, AST_ITEM_PIPE, @$); }
  | fields[list] field ";"  { $$ = $list; vec_push(ARENA, &$$->pipe.fields, *$field); }
  | fields[list] error      { $$ = $list; }
  | fields[list] error ";"  { $$ = $list; yyerrok; }
  ;

field:
    name ":" type           { NEW_NODE($$, AstField){.span = @$, .name = $name, .type = $type}; }
  | name "[" expr "]" ":" type {
        NEW_NODE($$, AstField){.span = @$, .name = $name, .count = $expr.tree, .type = $type};
    }
  ;

role_head:
    "role" name ":" expr team opt_regs {
        $$ = make_item(p, AST_ITEM_ROLE, @$);
        $$->role.name = $name;
        $$->role.count = $expr.tree;
        $$->role.team = $team;
        $$->role.regs = $opt_regs.tree;
        $$->role.regs_span = @opt_regs;
    }
  | "role" name ":" expr team "in" "turn" opt_regs {
        $$ = make_item(p, AST_ITEM_ROLE, @$);
        $$->role.name = $name;
        $$->role.count = $expr.tree;
        $$->role.team = $team;
        $$->role.in_turn = true;
        $$->role.in_turn_span = span_join(@6, @7);
        $$->role.regs = $opt_regs.tree;
        $$->role.regs_span = @opt_regs;
    }
  | "role" name ":" expr {
        report_no_width(p, (Span){@4.hi, @4.hi});
        $$ = make_item(p, AST_ITEM_ROLE, @$);
        $$->role.name = $name;
        $$->role.count = $expr.tree;
    }
  | "role" name {
        report_no_width(p, (Span){@2.hi, @2.hi});
        $$ = make_item(p, AST_ITEM_ROLE, @$);
        $$->role.name = $name;
        $$->role.count = make_error_expr(p, @2).tree;
    }
  ;

team:
    "warp"                  { $$ = AST_WARPS; }
  | "warps"                 { $$ = AST_WARPS; }
  | "warpgroup"             { $$ = AST_WARPGROUPS; }
  | "warpgroups"            { $$ = AST_WARPGROUPS; }
  ;

opt_regs:
    %empty                  { $$ = (Sized){NULL, 0}; }
  | "regs" expr             { $$ = $expr; }
  ;

/* ---- statements ------------------------------------------------------------------------------ */

block:
    "{" stmts "}"           { $$ = make_block(p, @$, @3, $stmts); }
  ;

stmts:
    %empty                  { $$ = NEW(ARENA, AstStmts); }
  | stmts[list] statement   { $$ = $list; p->too_long = false; vec_push(ARENA, $$, $statement); }
  | stmts[list] error       { $$ = $list; note_resumed(p); }
  | stmts[list] error ";"   { $$ = $list; yyerrok; }
  ;

statement:
    closed_statement
  | closed_statement ";"    { $$ = $1; report_empty_statement(p, @2, true); }
  | open_statement ";"      { $$ = $1; $$->span = @$; }
  ;

closed_statement:
    block
  | for_head block          { $$ = $for_head; $$->span = @$; $$->loop.body = $block; }
  | if_stmt                 { $$ = $if_stmt.stmt; }
  | stage_head block        { $$ = $stage_head; $$->span = @$; $$->stage.body = $block; }
  | "turn" block            { $$ = $block; $$->kind = AST_TURN; $$->span = @$; }
  | "unsafe" block          { $$ = $block; $$->kind = AST_UNSAFE; $$->span = @$; }
  | "for" error block       { yyerrok; $$ = make_stmt(p, AST_ERROR_STMT, @$); }
  | "for" error ";"         { yyerrok; $$ = make_stmt(p, AST_ERROR_STMT, @$); }
  | "consume" error block   { yyerrok; $$ = make_stmt(p, AST_ERROR_STMT, @$); }
  | "consume" error ";"     { yyerrok; $$ = make_stmt(p, AST_ERROR_STMT, @$); }
  | "produce" error block   { yyerrok; $$ = make_stmt(p, AST_ERROR_STMT, @$); }
  | "produce" error ";"     { yyerrok; $$ = make_stmt(p, AST_ERROR_STMT, @$); }
  | "for" "(" name "=" {
        report_foreign_loop(p, @1, @4);
        } error block { yyerrok;
        $$ = make_stmt(p, AST_ERROR_STMT, @$);
    }
  | "while" { report_foreign_loop(p, @1, @1); } error block {
        yyerrok;
        $$ = make_stmt(p, AST_ERROR_STMT, @$);
    }
  ;

open_statement:
    "let" name "=" value              { $$ = make_declare(p, AST_LET, $name, NULL, $value.tree); }
  | "let" name ":" type "=" value     { $$ = make_declare(p, AST_LET, $name, $type, $value.tree); }
  | "var" name "=" value              { $$ = make_declare(p, AST_VAR, $name, NULL, $value.tree); }
  | "var" name ":" type               { $$ = make_declare(p, AST_VAR, $name, $type, NULL); }
  | "var" name ":" type "=" value     { $$ = make_declare(p, AST_VAR, $name, $type, $value.tree); }
  | "shared" name ":" type            { $$ = make_declare(p, AST_SHARED, $name, $type, NULL); }
  | expr {
        if ($expr.tree->kind != AST_ACQUIRE) {
            $$ = make_expr_stmt(p, @$, $expr);
        } else {
            $$ = make_stmt(p, AST_ERROR_STMT, @$);
            report_no_stage_name(p, @$, false);
        }
    }
  | expr[target] assign_op value modifiers {
        $$ = make_assign(p, $target, $assign_op, @assign_op, $value.tree, $modifiers);
    }
  | "prefetch" expr[value] "as" expr[target] { $$ = make_prefetch(p, $value, $target); }
  | hinted {
        $$ = make_stmt(p, AST_ERROR_STMT, @$);
        report_no_stage_name(p, @$, false);
    }
  | "break"                           { $$ = make_stmt(p, AST_BREAK, @$); }
  | "continue"                        { $$ = make_stmt(p, AST_CONTINUE, @$); }
  | "return"                          { $$ = make_stmt(p, AST_RETURN, @$); }
  | "return" expr                     { $$ = make_stmt(p, AST_RETURN, @$); $$->value = $expr.tree; }
  | "release" name {
        $$ = make_stmt(p, AST_RELEASE, @$);
        $$->release.name = $name;
    }
  | "release" name "without" "signal" {
        $$ = make_stmt(p, AST_RELEASE, @$);
        $$->release.name = $name;
        $$->release.without_signal = true;
    }
  | "release" {
        $$ = make_stmt(p, AST_ERROR_STMT, @$);
        report_bare_release(p, @$);
    }
  | "arrive" barrier opt_at opt_bytes {
        $$ = make_signal(p, AST_ARRIVE, @$, $barrier);
        $$->signal.at = $opt_at.tree;
        $$->signal.value = $opt_bytes.tree;
    }
  | "wait" barrier "phase" expr {
        $$ = make_signal(p, AST_WAIT, @$, $barrier);
        $$->signal.value = $expr.tree;
    }
  | "expect" barrier "bytes" expr {
        $$ = make_signal(p, AST_EXPECT, @$, $barrier);
        $$->signal.value = $expr.tree;
    }
  | "step" pipe_end                   { $$ = make_signal(p, AST_STEP, @$, $pipe_end); }
  | "ptx" texts                       { $$ = make_ptx(p, @$, AT($texts, @texts), NULL); }
  | "ptx" texts "(" operands ")"      { $$ = make_ptx(p, @$, AT($texts, @texts), $operands); }
  ;

/* ---- `unsafe` blocks ------------------------------------------------------------------------- */

barrier:
    name {
        $$ = make_expr(p, AST_NAME, @$, 0);
        $$.tree->name = $name.text;
    }
  | name "." word {
        $$ = make_member(p, @$, make_name(p, $name), AT($word, @word));
    }
  | pipe_end "." word                 { $$ = make_cursor(p, @$, $pipe_end, AT($word, @word)); }
  | pipe_end "." word "[" expr "]" {
        Sized cursor = make_cursor(p, span_join(@1, @word), $pipe_end, AT($word, @word));
        $$ = make_subscript(p, @$, cursor, push_expr(p, NEW(ARENA, Exprs), $expr));
    }
  ;

opt_at:
    %empty                            { $$ = (Sized){NULL, 0}; }
  | "at" expr                         { $$ = $expr; }
  ;

opt_bytes:
    %empty                            { $$ = (Sized){NULL, 0}; }
  | "bytes" expr                      { $$ = $expr; }
  ;

texts:
    TEXT                              { $$ = text_in_quotes(p, NULL, @1); }
  | texts[before] TEXT                { $$ = text_in_quotes(p, $before, @2); }
  ;

operands:
    %empty                            { $$ = NEW(ARENA, AstOperands); }
  | operand_list
  ;

operand_list:
    operand {
        $$ = NEW(ARENA, AstOperands);
        vec_push(ARENA, $$, *$operand);
    }
  | operand_list[list] "," operand    { $$ = $list; vec_push(ARENA, $$, *$operand); }
  ;

operand:
    "in" expr {
        NEW_NODE($$, AstOperand){.span = @$, .mode = AST_OPERAND_IN, .value = $expr.tree};
    }
  | operand_mode name {
        NEW_NODE($$, AstOperand){.span = @$, .mode = $operand_mode, .name = $name};
    }
  | operand_mode name ":" word {
        NEW_NODE($$, AstOperand){.span = @$, .mode = $operand_mode, .name = $name,
                                 .type = AT($word, @word)};
    }
  ;

operand_mode:
    "out"                             { $$ = AST_OPERAND_OUT; }
  | "inout"                           { $$ = AST_OPERAND_INOUT; }
  ;

assign_op:
    "="                     { $$ = AST_SET; }
  | "+="                    { $$ = AST_SET_ADD; }
  | "-="                    { $$ = AST_SET_SUB; }
  | "*="                    { $$ = AST_SET_MUL; }
  | "/="                    { $$ = AST_SET_DIV; }
  ;

modifiers:
    %empty                  { $$ = (AssignModifiers){0}; }
  | modifiers[so_far] "by" "lanes" {
        $$ = $so_far;
        $$.by_lanes = true;
        $$.lanes_span = span_join(@2, @3);
    }
  | modifiers[so_far] "multicast" "required" { $$ = $so_far; $$.multicast_required = true; }
  ;

/* The right side of an assignment: a stage may be acquired only here, so that it gets a
 * variable. The grammar accepts an acquire in all values; those elsewhere are refused when the
 * context is known. */
value:
    expr
  | hinted
  ;

for_head:
    "for" names "in" domain         { $$ = make_for(p, @$, $names, $domain); }
  | "for" "(" names ")" "in" domain { $$ = make_for(p, @$, $names, $domain); }
  ;

domain:
    "grid"                          { $$ = make_domain(p, @$, AST_DOMAIN_GRID, NULL, NULL, NULL); }
  | expr {
        $$ = make_domain(p, @$, AST_DOMAIN_NAMED, $expr.tree, NULL, NULL);
    }
  | expr[name] "from" expr[first] {
        $$ = make_domain(p, @$, AST_DOMAIN_NAMED, $name.tree, $first.tree, NULL);
    }
  | postfix[name] "[" expr[from] ".." expr[to] "]" {
        $$ = make_domain(p, @$, AST_DOMAIN_NAMED, $name.tree, $from.tree, $to.tree);
    }
  | expr[from] ".." expr[to] {
        $$ = make_domain(p, @$, AST_DOMAIN_RANGE, NULL, $from.tree, $to.tree);
    }
  ;

if_stmt:
    if_head block[then] {
        $$ = make_if(p, @$, $if_head, $then, (Chain){NULL, 0});
    }
  | if_head block[then] "else" block[rest] {
        $$ = make_if(p, @$, $if_head, $then, (Chain){$rest, 0});
    }
  | if_head block[then] "else" if_stmt[rest] { $$ = make_if(p, @$, $if_head, $then, $rest); }
  | "if" error ";" {
        yyerrok;
        $$ = (Chain){make_stmt(p, AST_ERROR_STMT, @$), 0};
    }
  | "if" error block {
        yyerrok;
        $$ = (Chain){make_stmt(p, AST_ERROR_STMT, @$), 0};
    }
  | "if" error block "else" block {
        yyerrok;
        $$ = (Chain){make_stmt(p, AST_ERROR_STMT, @$), 0};
    }
  | "if" error block "else" if_stmt[rest]    { yyerrok; $$ = $rest; }
  ;

if_head:
    "if" condition {
        $$ = make_stmt(p, AST_IF, @$);
        $$->branch.head = @$;
        $$->branch.condition = $condition.tree;
    }
  | "if" name "nonempty" {
        $$ = make_stmt(p, AST_IF, @$);
        $$->branch.head = @$;
        $$->branch.nonempty = $name;
    }
  ;

condition:
    expr
  | expr[left] "=" expr[right] {
        report_set_in_condition(p, @2);
        $$ = make_binary(p, AST_EQ, @$, $left, @2, $right);
    }
  ;

stage_head:
    acquire lag "as" name   { $$ = make_stage(p, @$, $acquire.tree, $lag.tree, $name); }
  | acquire lag name {
        $$ = make_stage(p, @$, $acquire.tree, $lag.tree, $name);
        report_no_stage_name(p, @name, true);
    }
  | acquire lag {
        $$ = make_stage(p, @$, $acquire.tree, $lag.tree, AT(NULL, @$));
        report_no_stage_name(p, (Span){@$.hi, @$.hi}, true);
    }
  ;

lag:
    %empty                  { $$ = (Sized){NULL, 0}; }
  | "lag" expr              { $$ = $expr; }
  ;

acquire:
    pipe_end
  | hinted
  ;

hinted:
    pipe_end "if" name      { $$ = $pipe_end; $$.tree->span = @$; $$.tree->acquire.hint = $name; }
  | pipe_end "if" "true" {
        $$ = $pipe_end;
        $$.tree->span = @$;
        $$.tree->acquire.unwaited = true;
    }
  ;

pipe_end:
    "consume" "<" name ">"  { $$ = make_acquire(p, AST_ACQUIRE, @$, AST_CONSUME, $name); }
  | "produce" "<" name ">"  { $$ = make_acquire(p, AST_ACQUIRE, @$, AST_PRODUCE, $name); }
  | "consume" name {
        $$ = make_acquire(p, AST_ACQUIRE, @$, AST_CONSUME, $name);
        report_no_angles(p, "consume", $name);
    }
  | "produce" name {
        $$ = make_acquire(p, AST_ACQUIRE, @$, AST_PRODUCE, $name);
        report_no_angles(p, "produce", $name);
    }
  ;

/* ---- expressions ----------------------------------------------------------------------------- */

/* Operators are distinguished by precedence, not by a nonterminal per level, which would need a
 * reduction per level and operand. Accepts `a < b < c`, to refuse it by name. */
expr:
    closed_product
  | open_product
  | expr[condition] "?" expr[then] ":" expr[otherwise] %prec "?" {
        $$ = make_select(p, @$, $condition, $then, $otherwise);
    }
  | expr[left] "||" expr[right]  { $$ = make_binary(p, AST_OR, @$, $left, @2, $right); }
  | expr[left] "&&" expr[right]  { $$ = make_binary(p, AST_AND, @$, $left, @2, $right); }
  | expr[left] relational expr[right] %prec "==" {
        report_chain(p, $left.tree, @left, @2);
        $$ = make_binary(p, $relational, @$, $left, @2, $right);
    }
  | expr[left] "+" expr[right]   { $$ = make_binary(p, AST_ADD, @$, $left, @2, $right); }
  | expr[left] "-" expr[right]   { $$ = make_binary(p, AST_SUB, @$, $left, @2, $right); }
  ;

relational:
    "=="                    { $$ = AST_EQ; }
  | "!="                    { $$ = AST_NE; }
  | "<"                     { $$ = AST_LT; }
  | "<="                    { $$ = AST_LE; }
  | ">"                     { $$ = AST_GT; }
  | ">="                    { $$ = AST_GE; }
  ;

/* A reduction takes the whole product that follows it, so after a product whose last factor is a
 * reduction (`open`), `/` and `%` may follow but not `*`, which belongs to the reduction. */
closed_product:
    closed
  | closed_product[left] "*" closed[right] { $$ = make_binary(p, AST_MUL, @$, $left, @2, $right); }
  | closed_product[left] "/" closed[right] { $$ = make_binary(p, AST_DIV, @$, $left, @2, $right); }
  | closed_product[left] "%" closed[right] { $$ = make_binary(p, AST_MOD, @$, $left, @2, $right); }
  | open_product[left] "/" closed[right]   { $$ = make_binary(p, AST_DIV, @$, $left, @2, $right); }
  | open_product[left] "%" closed[right]   { $$ = make_binary(p, AST_MOD, @$, $left, @2, $right); }
  ;

open_product:
    open
  | closed_product[left] "*" open[right]   { $$ = make_binary(p, AST_MUL, @$, $left, @2, $right); }
  | closed_product[left] "/" open[right]   { $$ = make_binary(p, AST_DIV, @$, $left, @2, $right); }
  | closed_product[left] "%" open[right]   { $$ = make_binary(p, AST_MOD, @$, $left, @2, $right); }
  | open_product[left] "/" open[right]     { $$ = make_binary(p, AST_DIV, @$, $left, @2, $right); }
  | open_product[left] "%" open[right]     { $$ = make_binary(p, AST_MOD, @$, $left, @2, $right); }
  ;

closed:
    postfix
  | "-" closed[operand]     { $$ = make_unary(p, AST_NEG, @$, $operand); }
  | "!" closed[operand]     { $$ = make_unary(p, AST_NOT, @$, $operand); }
  | "old" postfix {
        $$ = make_expr(p, AST_OLD, @$, $postfix.depth);
        $$.tree->old = $postfix.tree;
    }
  ;

open:
    reduction "[" names "]" factors { $$ = make_reduce(p, $reduction, @$, $names, $factors); }
  | "-" open[operand]       { $$ = make_unary(p, AST_NEG, @$, $operand); }
  | "!" open[operand]       { $$ = make_unary(p, AST_NOT, @$, $operand); }
  ;

factors:
    closed_factors
  | open
  | closed_factors[left] "*" open[right]   { $$ = make_binary(p, AST_MUL, @$, $left, @2, $right); }
  ;

closed_factors:
    closed
  | closed_factors[left] "*" closed[right] { $$ = make_binary(p, AST_MUL, @$, $left, @2, $right); }
  ;

reduction:
    "sum"                   { $$ = AST_SUM; }
  | "max"                   { $$ = AST_MAX; }
  | "min"                   { $$ = AST_MIN; }
  ;

postfix:
    INTEGER                 { $$ = make_expr(p, AST_INTEGER, @$, 0); $$.tree->integer = $1; }
  | FLOAT                   { $$ = make_expr(p, AST_FLOAT, @$, 0); $$.tree->number = $1; }
  | "true"                  { $$ = make_expr(p, AST_BOOL, @$, 0); $$.tree->truth = true; }
  | "false"                 { $$ = make_expr(p, AST_BOOL, @$, 0); }
  | BAD                     { $$ = make_error_expr(p, @$); }
  | word                    { $$ = make_expr(p, AST_NAME, @$, 0); $$.tree->name = $word; }
  | word "(" args ")"       { $$ = make_call(p, @$, AT($word, @word), $args); }
  | "sum" "(" args ")"      { $$ = make_call(p, @$, AT($1, @1), $args); }
  | "max" "(" args ")"      { $$ = make_call(p, @$, AT($1, @1), $args); }
  | "min" "(" args ")"      { $$ = make_call(p, @$, AT($1, @1), $args); }
  | "try" pipe_end {
        const AstExpr *acquired = $pipe_end.tree;
        $$ = make_acquire(p, AST_TRY, @$, acquired->acquire.end, acquired->acquire.pipe);
    }
  | pipe_end
  | "(" condition ")"       { $$ = $condition; }
  | postfix[base] "[" exprs "]" { $$ = make_subscript(p, @$, $base, $exprs); }
  | postfix[base] "." word  { $$ = make_member(p, @$, $base, AT($word, @word)); }
  ;

args:
    %empty                  { $$ = NEW(ARENA, Exprs); }
  | exprs
  ;

exprs:
    expr                    { $$ = push_expr(p, NEW(ARENA, Exprs), $expr); }
  | exprs[list] "," expr    { $$ = push_expr(p, $list, $expr); }
  ;

/* ---- names ----------------------------------------------------------------------------------- */

name:
    word                    { $$ = AT($word, @word); }
  ;

names:
    name                    { $$ = NEW(ARENA, AstNames); vec_push(ARENA, $$, $name); }
  | names[list] "," name    { $$ = $list; vec_push(ARENA, $$, $name); }
  ;

word:
    NAME
  | "arrivals" | "arrive" | "at" | "by" | "bytes" | "empty" | "expect" | "first" | "from" | "full"
  | "grouped" | "hardware" | "heaviest" | "lanes" | "multicast" | "nonempty" | "paired"
  | "persistent" | "phase" | "ptx" | "regs" | "required" | "signal" | "stage" | "step" | "tmem"
  | "wait" | "warp" | "warps" | "warpgroup" | "warpgroups" | "where" | "within" | "without"
  ;

%%

const char *pipe_token_spelling(int token) { return yysymbol_name((yysymbol_kind_t)token); }

static int yyreport_syntax_error(const yypcontext_t *context, void *scanner, Parse *p) {
    (void)scanner;
    yysymbol_kind_t kinds[YYNTOKENS];
    Word expected[YYNTOKENS];
    int count = yypcontext_expected_tokens(context, kinds, YYNTOKENS);
    for (int i = 0; i < count; i++) expected[i] = (Word){kinds[i], yysymbol_name(kinds[i])};
    yysymbol_kind_t found = yypcontext_token(context);
    report_syntax(p, (Word){found, yysymbol_name(found)}, *yypcontext_location(context), expected,
                  count < 0 ? 0 : count);
    return 0;
}
