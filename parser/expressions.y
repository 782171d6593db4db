/* Rules of the grammar: expressions and names. */

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
  | expr[left] "|" expr[right]   { $$ = make_binary(p, AST_BIT_OR, @$, $left, @2, $right); }
  | expr[left] "^" expr[right]   { $$ = make_binary(p, AST_BIT_XOR, @$, $left, @2, $right); }
  | expr[left] "&" expr[right]   { $$ = make_binary(p, AST_BIT_AND, @$, $left, @2, $right); }
  | expr[left] "<<" expr[right]  { $$ = make_binary(p, AST_SHL, @$, $left, @2, $right); }
  | expr[left] ">>" expr[right]  { $$ = make_binary(p, AST_SHR, @$, $left, @2, $right); }
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
  | "~" closed[operand]     { $$ = make_unary(p, AST_BIT_NOT, @$, $operand); }
  | "old" postfix           { $$ = make_old(p, @$, $postfix); }
  ;

open:
    reduction "[" names "]" factors { $$ = make_reduce(p, $reduction, @$, $names, $factors); }
  | "-" open[operand]       { $$ = make_unary(p, AST_NEG, @$, $operand); }
  | "!" open[operand]       { $$ = make_unary(p, AST_NOT, @$, $operand); }
  | "~" open[operand]       { $$ = make_unary(p, AST_BIT_NOT, @$, $operand); }
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
  | word                    { $$ = make_name(p, AT($word, @word)); }
  | word "(" args ")"       { $$ = make_call(p, @$, AT($word, @word), $args); }
  | "sum" "(" args ")"      { $$ = make_call(p, @$, AT($1, @1), $args); }
  | "max" "(" args ")"      { $$ = make_call(p, @$, AT($1, @1), $args); }
  | "min" "(" args ")"      { $$ = make_call(p, @$, AT($1, @1), $args); }
  | "try" pipe_end          { $$ = make_try(p, @$, $pipe_end); }
  | pipe_end
  | "(" condition ")"       { $$ = $condition; }
  | postfix[base] "[" exprs "]" { $$ = make_subscript(p, @$, $base, $exprs); }
  | postfix[base] "." word  { $$ = make_member(p, @$, $base, AT($word, @word)); }
  ;

args:
    %empty                  { $$ = new_exprs(p); }
  | exprs
  ;

exprs:
    expr                    { $$ = push_expr(p, new_exprs(p), $expr); }
  | exprs[list] "," expr    { $$ = push_expr(p, $list, $expr); }
  ;

/* ---- names ----------------------------------------------------------------------------------- */

name:
    word                    { $$ = AT($word, @word); }
  ;

names:
    name                    { $$ = make_names(p, $name); }
  | names[list] "," name    { $$ = $list; vec_push(ARENA, $$, $name); }
  ;

word:
    NAME
  | "arrivals" | "arrive" | "at" | "by" | "bytes" | "dynamic" | "empty" | "expect" | "first"
  | "from" | "full" | "grouped" | "hardware" | "heaviest" | "include" | "lanes" | "multicast"
  | "nonempty" | "or" | "paired" | "persistent" | "phase" | "ptx" | "regs" | "required" | "signal"
  | "stage" | "step" | "tmem" | "variant" | "wait" | "warp" | "warps" | "warpgroup" | "warpgroups"
  | "where" | "within" | "without"
  ;

%%

/* What the parser asks for at a syntax error. It uses declarations that bison writes after all
 * others. */
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
