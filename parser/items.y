/* Rules of the grammar: a file, its functions and constants, and what stands in a kernel. */

/* ---- a file ---------------------------------------------------------------------------------- */

file:
    %empty
  | file item               { add_item(p, &p->ast->items, $item); }
  | file body_item          { add_item(p, &p->ast->items, $body_item); }
  | file body_item ";" {
        add_item(p, &p->ast->items, $body_item);
        report_empty_statement(p, @3, true);
    }
  | file error
  ;

item:
    consts ";"
  | statics ";"
  | "include" TEXT ";"      { $$ = make_include(p, @$, @TEXT); }
  ;

body_item:
    fn_head block           { $$ = $fn_head; $$->span = @$; $$->fn.body = $block; }
  | "fn" error block        { yyerrok; $$ = make_item(p, AST_ITEM_FN, @$); $$->fn.body = $block; }
  | "kernel" name "(" params ")" "for" names[targets] kernel_body {
        Span head = span_join(@1, @targets);
        $$ = name_kernel($kernel_body, @$, head, $name, $params, $targets);
    }
  | "kernel" name "(" params ")" kernel_body {
        report_no_target(p, span_end(@5));
        $$ = name_kernel($kernel_body, @$, span_join(@1, @5), $name, $params, NULL);
    }
  | "kernel" error kernel_body { yyerrok; $$ = $kernel_body; $$->span = @$; $$->head = @1; }
  ;

consts:
    "const" const_def             { $$ = add_const(p, make_item(p, AST_ITEM_CONST, @$), $2); }
  | consts[list] "," const_def    { $$ = add_const(p, $list, $const_def); $$->span = @$; }
  ;

const_def:
    name "=" expr                 { $$ = make_const(p, @$, $name, $expr); }
  ;

statics:
    "static" static_def           { $$ = add_const(p, make_item(p, AST_ITEM_CONST, @$), $2); }
  | statics[list] "," static_def  { $$ = add_const(p, $list, $static_def); $$->span = @$; }
  ;

static_def:
    name "=" expr choices         { $$ = make_static(p, @$, $name, $expr, $choices); }
  ;

choices:
    %empty                  { $$ = new_exprs(p); }
  | "in" "{" exprs "}"      { $$ = $exprs; }
  ;

fn_head:
    "fn" name "(" params ")" opt_result { $$ = make_fn(p, @$, $name, $params, $opt_result); }
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
    param                   { $$ = add_param(p, NEW(ARENA, AstParams), $param); }
  | param_list[list] "," param { $$ = add_param(p, $list, $param); }
  ;

param:
    mode name ":" type      { $$ = make_param(p, @$, $mode, @mode, $name, $type); }
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
    "{" kernel_items "}"         { $$ = $kernel_items; $$->kernel.close = @3; }
  ;

kernel_items:
    %empty                       { $$ = make_item(p, AST_ITEM_KERNEL, @$); }
  | kernel_items[list] kernel_item {
        $$ = $list;
        add_item(p, &$$->kernel.items, $kernel_item);
    }
  | kernel_items[list] for_head block { $$ = $list; report_statement(p, @2, "for"); }
  | kernel_items[list] if_stmt   { $$ = $list; report_statement(p, @2, "if"); }
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
        set_axes($$, $axes, $opt_grouped, @opt_grouped);
    }
  | cluster ";"
  | "range" name "=" expr[from] ".." expr[to] ";" {
        $$ = make_range(p, @$, $name, $from, $to, NO_EXPR);
    }
  | "range" name "=" expr[from] ".." expr[to] "where" expr[where] ";" {
        $$ = make_range(p, @$, $name, $from, $to, $where);
    }
  | pipe_head ";"           { $$ = $pipe_head; $$->span = @$; }
  | "ensures" claim opt_ranges ";" {
        $claim->ranges = *$opt_ranges;
        $$ = make_ensures(p, @$, @$, add_claim(p, NEW(ARENA, AstClaims), $claim));
    }
  | closed_kernel_item
  | closed_kernel_item ";"  { $$ = $1; report_empty_statement(p, @2, true); }
  ;

closed_kernel_item:
    pipe_head "{" fields "}"    { $$ = $pipe_head; $$->span = @$; $$->pipe.fields = *$fields; }
  | "pipe" error "{" fields "}" {
        yyerrok;
        $$ = make_item(p, AST_ITEM_PIPE, @$);
        $$->pipe.fields = *$fields;
    }
  | "pipe" error ";"            { yyerrok; $$ = make_item(p, AST_ITEM_PIPE, @$); }
  | role_head block             { $$ = $role_head; $$->span = @$; $$->role.body = $block; }
  | "role" error block {
        yyerrok;
        $$ = make_role(p, @$, NO_NAME, make_error_expr(p, @1), AST_WARPS);
        $$->role.body = $block;
    }
  | "ensures" "{" claims "}"    { $$ = make_ensures(p, @$, @1, $claims); }
  | variant_head kernel_body {
        $$ = name_variant($kernel_body, @$, $variant_head);
    }
  | "variant" error kernel_body { yyerrok; $$ = $kernel_body; $$->kind = AST_ITEM_VARIANT; }
  ;

/* Its name, and targets other than those of the kernel */
variant_head:
    "variant" name {
        $$ = make_item(p, AST_ITEM_VARIANT, @$);
        $$->kernel.name = $name;
    }
  | "variant" name "for" names[targets] {
        $$ = make_item(p, AST_ITEM_VARIANT, @$);
        $$->kernel.name = $name;
        $$->kernel.targets = *$targets;
    }
  ;

claims:
    %empty                      { $$ = NEW(ARENA, AstClaims); }
  | claims[list] claim opt_ranges ";" {
        $claim->ranges = *$opt_ranges;
        $$ = add_claim(p, $list, $claim);
    }
  | claims[list] "let" postfix "=" expr opt_ranges ";" {
        AstClaim *let = make_let_claim(p, span_join(@2, @7), $postfix, $expr);
        let->ranges = *$opt_ranges;
        $$ = add_claim(p, $list, let);
    }
  | claims[list] error          { $$ = $list; }
  | claims[list] error ";"      { $$ = $list; yyerrok; }
  ;

claim:
    postfix "~" expr[value] "within" expr[bound] {
        $$ = make_claim(p, @$, $postfix, $value, $bound);
    }
  | postfix "~" expr[value] "within" expr[bound] "or" expr[absolute] {
        $$ = make_claim(p, @$, $postfix, $value, $bound);
        $$->absolute = $absolute.tree;
    }
  | postfix "==" expr           { $$ = make_claim(p, @$, $postfix, $expr, NO_EXPR); }
  | postfix "~" expr {
        report_claim(p, span_end(@3), "`~` needs a bound");
        $$ = make_claim(p, @$, $postfix, $expr, NO_EXPR);
    }
  | postfix "=" expr {
        report_claim(p, @2, "`=` in a claim of `ensures`");
        $$ = make_claim(p, @$, $postfix, $expr, NO_EXPR);
    }
  ;

example:
    "example" postfix "=" expr {
        $$ = make_item(p, AST_ITEM_EXAMPLE, @$);
        add_example(p, $$, span_join(@2, @4), $postfix, $expr);
    }
  | example[list] "," postfix "=" expr {
        $$ = $list;
        $$->span = @$;
        add_example(p, $$, span_join(@3, @5), $postfix, $expr);
    }
  ;

grid_head:
    "grid"                  { $$ = make_item(p, AST_ITEM_GRID, @$); }
  | "grid" "persistent"     { $$ = make_item(p, AST_ITEM_GRID, @$); $$->grid.persistent = true; }
  | "grid" "dynamic"        { $$ = make_item(p, AST_ITEM_GRID, @$); $$->grid.dynamic = true; }
  | "grid" "hardware" {
        $$ = make_item(p, AST_ITEM_GRID, @$);
        $$->grid.hardware = true;
        $$->grid.hardware_span = @2;
    }
  ;

opt_grouped:
    %empty                  { $$ = NO_EXPR; }
  | "grouped" expr          { $$ = $expr; }
  ;

axes:
    axis                    { $$ = NEW(ARENA, AstAxes); vec_push(ARENA, $$, *$axis); }
  | axes[list] "," axis     { $$ = $list; vec_push(ARENA, $$, *$axis); }
  ;

axis:
    name ":" expr           { $$ = make_axis(p, $name, $expr); }
  | name ":" expr "heaviest" "first" {
        $$ = make_axis(p, $name, $expr);
        $$->heaviest_first = true;
        $$->heaviest_span = span_join(@4, @5);
    }
  ;

cluster:
    "cluster" "(" axes ")"  { $$ = make_item(p, AST_ITEM_CLUSTER, @$); $$->cluster.axes = *$axes; }
  | cluster[list] "paired"  { $$ = $list; $$->span = @$; $$->cluster.paired = true; }
  ;

pipe_head:
    "pipe" name[ring] "[" expr "]" name[producer] "->" names[consumers] arrivals {
        $$ = make_pipe(p, @$, $ring, $expr, $producer, $consumers, $arrivals);
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
    %empty                  { $$ = NEW(ARENA, AstFields); }
  | fields[list] field ";"  { $$ = $list; vec_push(ARENA, $$, *$field); }
  | fields[list] error      { $$ = $list; }
  | fields[list] error ";"  { $$ = $list; yyerrok; }
  ;

field:
    name ":" type              { $$ = make_field(p, @$, $name, NO_EXPR, $type); }
  | name "[" expr "]" ":" type { $$ = make_field(p, @$, $name, $expr, $type); }
  ;

role_head:
    "role" name ":" expr team opt_regs {
        $$ = make_role(p, @$, $name, $expr, $team);
        set_regs($$, $opt_regs, @opt_regs);
    }
  | "role" name ":" expr team "in" "turn" opt_regs {
        $$ = make_role(p, @$, $name, $expr, $team);
        $$->role.in_turn = true;
        $$->role.in_turn_span = span_join(@6, @7);
        set_regs($$, $opt_regs, @opt_regs);
    }
  | "role" name ":" expr {
        report_no_width(p, span_end(@4));
        $$ = make_role(p, @$, $name, $expr, AST_WARPS);
    }
  | "role" name {
        report_no_width(p, span_end(@2));
        $$ = make_role(p, @$, $name, make_error_expr(p, @2), AST_WARPS);
    }
  ;

team:
    "warp"                  { $$ = AST_WARPS; }
  | "warps"                 { $$ = AST_WARPS; }
  | "warpgroup"             { $$ = AST_WARPGROUPS; }
  | "warpgroups"            { $$ = AST_WARPGROUPS; }
  ;

opt_regs:
    %empty                  { $$ = NO_EXPR; }
  | "regs" expr             { $$ = $expr; }
  ;
