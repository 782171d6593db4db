/* Rules of the grammar: statements, and the ends of pipes. */

/* ---- statements ------------------------------------------------------------------------------ */

block:
    "{" stmts "}"           { $$ = make_block(p, @$, @3, $stmts); }
  ;

stmts:
    %empty                  { $$ = new_stmts(p); }
  | stmts[list] statement   { $$ = $list; p->too_long = false; push_stmt(p, $$, $statement); }
  | stmts[list] expr[target] assign_op value modifiers for_head block {
        report_no_semicolon(p, span_end(@modifiers));
        $$ = $list;
        p->too_long = false;
        push_stmt(p, $$,
                  make_assign(p, $target, $assign_op, @assign_op, $value.tree, $modifiers));
        $for_head->span = span_join(@for_head, @block);
        $for_head->loop.body = $block;
        push_stmt(p, $$, $for_head);
    }
  | stmts[list] declaration modifiers for_head block {
        report_no_semicolon(p, span_end(@modifiers));
        $$ = $list;
        p->too_long = false;
        push_stmt(p, $$, end_declaration($declaration, $modifiers));
        $for_head->span = span_join(@for_head, @block);
        $for_head->loop.body = $block;
        push_stmt(p, $$, $for_head);
    }
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
  | "for" "(" name "=" { report_foreign_loop(p, @1, @4); } error block {
        yyerrok;
        $$ = make_stmt(p, AST_ERROR_STMT, @$);
    }
  | "for" "(" name name "=" { report_foreign_loop(p, @1, @5); } error block {
        yyerrok;
        $$ = make_stmt(p, AST_ERROR_STMT, @$);
    }
  | "while" { report_foreign_loop(p, @1, @1); } error block {
        yyerrok;
        $$ = make_stmt(p, AST_ERROR_STMT, @$);
    }
  ;

declaration:
    "let" name "=" value              { $$ = make_declare(p, AST_LET, $name, NULL, $value.tree); }
  | "let" name ":" type "=" value     { $$ = make_declare(p, AST_LET, $name, $type, $value.tree); }
  | "let" name "[" names "]" "=" value {
        $$ = make_declare(p, AST_LET, $name, NULL, $value.tree);
        $$->declare.indexes = $names;
    }
  | "var" name "=" value              { $$ = make_declare(p, AST_VAR, $name, NULL, $value.tree); }
  | "var" name ":" type "=" value     { $$ = make_declare(p, AST_VAR, $name, $type, $value.tree); }
  | "var" name "[" names "]" "=" value {
        $$ = make_declare(p, AST_VAR, $name, NULL, $value.tree);
        $$->declare.indexes = $names;
    }
  ;

open_statement:
    declaration modifiers             { $$ = end_declaration($declaration, $modifiers); }
  | "var" name ":" type               { $$ = make_declare(p, AST_VAR, $name, $type, NULL); }
  | "shared" name ":" type            { $$ = make_declare(p, AST_SHARED, $name, $type, NULL); }
  | expr                              { $$ = make_expr_stmt(p, @$, $expr); }
  | hinted                            { $$ = make_expr_stmt(p, @$, $hinted); }
  | expr[target] assign_op value modifiers {
        $$ = make_assign(p, $target, $assign_op, @assign_op, $value.tree, $modifiers);
    }
  | "prefetch" expr[value] "as" expr[target] { $$ = make_prefetch(p, $value, $target); }
  | "break"                           { $$ = make_stmt(p, AST_BREAK, @$); }
  | "continue"                        { $$ = make_stmt(p, AST_CONTINUE, @$); }
  | "return"                          { $$ = make_stmt(p, AST_RETURN, @$); }
  | "return" expr                     { $$ = make_stmt(p, AST_RETURN, @$); $$->value = $expr.tree; }
  | "release" name                    { $$ = make_release(p, @$, $name); }
  | "release" name "without" "signal" {
        $$ = make_release(p, @$, $name);
        $$->release.without_signal = true;
    }
  | "release"                         { $$ = make_bare_release(p, @$); }
  | "arrive" barrier opt_at opt_bytes {
        $$ = make_signal(p, AST_ARRIVE, @$, $barrier, $opt_bytes);
        $$->signal.at = $opt_at.tree;
    }
  | "wait" barrier "phase" expr   { $$ = make_signal(p, AST_WAIT, @$, $barrier, $expr); }
  | "expect" barrier "bytes" expr { $$ = make_signal(p, AST_EXPECT, @$, $barrier, $expr); }
  | "step" pipe_end               { $$ = make_signal(p, AST_STEP, @$, $pipe_end, NO_EXPR); }
  | "ptx" texts                       { $$ = make_ptx(p, @$, AT($texts, @texts), NULL); }
  | "ptx" texts "(" operands ")"      { $$ = make_ptx(p, @$, AT($texts, @texts), $operands); }
  ;

/* ---- `unsafe` blocks ------------------------------------------------------------------------- */

barrier:
    name                              { $$ = make_name(p, $name); }
  | name "." word {
        $$ = make_member(p, @$, make_name(p, $name), AT($word, @word));
    }
  | pipe_end "." word                 { $$ = make_cursor(p, @$, $pipe_end, AT($word, @word)); }
  | pipe_end "." word "[" expr "]" {
        Sized cursor = make_cursor(p, span_join(@1, @word), $pipe_end, AT($word, @word));
        $$ = make_subscript(p, @$, cursor, push_expr(p, new_exprs(p), $expr));
    }
  ;

opt_at:
    %empty                            { $$ = NO_EXPR; }
  | "at" expr                         { $$ = $expr; }
  ;

opt_bytes:
    %empty                            { $$ = NO_EXPR; }
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
    operand                           { $$ = NEW(ARENA, AstOperands); vec_push(ARENA, $$, *$1); }
  | operand_list[list] "," operand    { $$ = $list; vec_push(ARENA, $$, *$operand); }
  ;

operand:
    "in" expr                         { $$ = make_input(p, @$, $expr); }
  | operand_mode name                 { $$ = make_output(p, @$, $1, $name, NO_NAME); }
  | operand_mode name ":" word { $$ = make_output(p, @$, $1, $name, AT($word, @word)); }
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
    %empty                  { $$ = NULL; }
  | modifiers[before] "by" "lanes" {
        $$ = modified(p, $before);
        $$->by_lanes = true;
        $$->lanes_span = span_join(@2, @3);
    }
  | modifiers[before] "multicast" "required" {
        $$ = modified(p, $before);
        $$->multicast_required = true;
        $$->multicast_span = span_join(@2, @3);
    }
  | modifiers[before] index_ranges {
        if ($before && $before->ranges) report_second_list(p, @index_ranges);
        $$ = modified(p, $before);
        $$->ranges = $index_ranges;
    }
  | modifiers[before] "where" expr {
        if ($before && $before->where) report_second_where(p, span_join(@2, @3));
        $$ = modified(p, $before);
        $$->where = $expr.tree;
        $$->where_span = span_join(@2, @3);
    }
  ;

opt_ranges:
    %empty                  { $$ = NEW(ARENA, AstIndexRanges); }
  | index_ranges
  ;

index_ranges:
    "for" names "in" expr[from] ".." expr[to] {
        $$ = add_range(p, NULL, span_join(@names, @to), $names, $from, $to);
    }
  | index_ranges[list] "," names "in" expr[from] ".." expr[to] {
        $$ = add_range(p, $list, span_join(@names, @to), $names, $from, $to);
    }
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
    "grid"                          { $$ = make_domain(p, @$, AST_DOMAIN_GRID, NO_EXPR, NO_EXPR); }
  | expr                            { $$ = make_named_domain(p, @$, $expr, NO_EXPR, NO_EXPR); }
  | expr[name] "from" expr[first] {
        $$ = make_named_domain(p, @$, $name, $first, NO_EXPR);
    }
  | postfix[name] "[" expr[from] ".." expr[to] "]" {
        $$ = make_named_domain(p, @$, $name, $from, $to);
    }
  | expr[from] ".." expr[to]        { $$ = make_domain(p, @$, AST_DOMAIN_RANGE, $from, $to); }
  ;

if_stmt:
    if_head block[then]                      { $$ = make_if(p, @$, $1, $then, CHAIN(NULL)); }
  | if_head block[then] "else" block[rest]   { $$ = make_if(p, @$, $1, $then, CHAIN($rest)); }
  | if_head block[then] "else" if_stmt[rest] { $$ = make_if(p, @$, $1, $then, $rest); }
  | "if" error ";"                { yyerrok; $$ = CHAIN(make_stmt(p, AST_ERROR_STMT, @$)); }
  | "if" error block              { yyerrok; $$ = CHAIN(make_stmt(p, AST_ERROR_STMT, @$)); }
  | "if" error block "else" block { yyerrok; $$ = CHAIN(make_stmt(p, AST_ERROR_STMT, @$)); }
  | "if" error block "else" if_stmt[rest] { yyerrok; $$ = $rest; }
  ;

if_head:
    "if" condition          { $$ = make_branch(p, @$, $condition, NO_NAME); }
  | "if" name "nonempty"    { $$ = make_branch(p, @$, NO_EXPR, $name); }
  ;

condition:
    expr
  | expr[left] "=" expr[right] {
        report_set_in_condition(p, @2);
        $$ = make_binary(p, AST_EQ, @$, $left, @2, $right);
    }
  ;

stage_head:
    acquire lag "as" name   { $$ = make_stage(p, @$, $acquire, $lag, $name); }
  | acquire lag name {
        $$ = make_stage(p, @$, $acquire, $lag, $name);
        report_no_stage_name(p, @name, true);
    }
  | acquire lag {
        $$ = make_stage(p, @$, $acquire, $lag, AT(NULL, @$));
        report_no_stage_name(p, span_end(@$), true);
    }
  ;

lag:
    %empty                  { $$ = NO_EXPR; }
  | "lag" expr              { $$ = $expr; }
  ;

acquire:
    pipe_end
  | hinted
  ;

hinted:
    pipe_end "if" name      { $$ = $1; $$.tree->span = @$; $$.tree->acquire.hint = $name; }
  | pipe_end "if" "true"    { $$ = $1; $$.tree->span = @$; $$.tree->acquire.unwaited = true; }
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
