/* Prints a program. */
#include "tests/adversary/adversary.h"

#include <string.h>

typedef struct Printer {
    const Program *program;
    Arena *arena;
    Str out;
    int indent;
    Str *functions;     /* that the kernel calls */
    Operands *operands; /* of the formula that is the body of a function; NULL: none is */
} Printer;

static const char *const OPERATORS[OPS] = {"+",  "-",  "*", "/",  "%", "min", "max", "ceil",
                                           "==", "!=", "<", "<=", ">", ">=",  "&&",  "||"};
static const char *const TYPES[] = {"i32", "bool", "f32", "f16"};
/* Operations with their own syntax: %1$s is the first operand, %2$s the second */
static const char *const FORMS[OPS] = {[DO_ABS] = "abs(%1$s)",
                                       [DO_UNSIGNED_DIV] = "i32(u32(%1$s) / u32(%2$s))",
                                       [DO_UNSIGNED_MOD] = "i32(u32(%1$s) % u32(%2$s))",
                                       [DO_UNSIGNED_LT] = "(u32(%1$s) < u32(%2$s))",
                                       [DO_SCALED] = "i32((i64(%1$s) * i64(%2$s)) / i64(%2$s))",
                                       [DO_BYTE] = "i32(i8(%1$s))",
                                       [DO_BIT_AND] = "((%1$s) & (%2$s))",
                                       [DO_BIT_OR] = "((%1$s) | (%2$s))",
                                       [DO_BIT_XOR] = "((%1$s) ^ (%2$s))",
                                       [DO_SHIFT_LEFT] = "((%1$s) << (%2$s))",
                                       [DO_SHIFT_RIGHT] = "((%1$s) >> (%2$s))",
                                       [DO_UNSIGNED_SHIFT] = "i32(u32(%1$s) >> (%2$s))",
                                       [DO_POPC] = "popc(%1$s)",
                                       [DO_CLZ] = "clz(%1$s)",
                                       [DO_HIGH_PRODUCT] = "mulhi(%1$s, %2$s)",
                                       [DO_NOT] = "!(%1$s)",
                                       [DO_NEGATE] = "(-(%1$s))",
                                       [DO_FMA] = "fma(%1$s, %2$s, %3$s)",
                                       [DO_EXACT_DIV] = "exact((%1$s) / (%2$s))",
                                       [DO_EXACT_MUL] = "exact((%1$s) * (%2$s))",
                                       [DO_RCP] = "rcp(%1$s)",
                                       [DO_EXP] = "exp(%1$s)",
                                       [DO_SQRT] = "sqrt(%1$s)",
                                       [DO_TO_REAL] = "f32(%1$s)",
                                       [DO_TO_INT] = "i32(%1$s)",
                                       [DO_HALF] = "f32(f16(%1$s))",
                                       [DO_E4M3] = "f32(e4m3(%1$s))",
                                       [DO_SINE] = "exact(sin(%1$s))",
                                       [DO_POWER] = "pow(%1$s, %2$s)"};
static const char *const INDEXES[MAX_INDEXES] = {"i", "j", "x"};

/* ---- expressions ----------------------------------------------------------------------------- */

static const char *local_name(const Printer *p, int local) {
    static const char letters[] = {'v', 'k', 'y', 'w', 's', 'h'};
    const Local *row = &p->program->locals[local];
    if (row->name != NULL) return row->name;
    return arena_printf(p->arena, "%c%d", letters[row->kind], local);
}

static void add_expr(const Printer *p, Str *out, const Expr *expr, bool inside);

/* The first subscript of an array of tiles has its own brackets. */
static void add_subs(const Printer *p, Str *out, const Expr *expr) {
    bool tiles = is_of_tiles(p->program, expr);
    for (int s = 0; s < expr->rank; s++) {
        str_add(out, s == 0 ? "[" : s == 1 && tiles ? "][" : ", ");
        add_expr(p, out, expr->subs[s], false);
    }
    if (expr->rank > 0) str_char(out, ']');
}

/* Prints the form of an operation with its operands */
static void add_form(const Printer *p, Str *out, const Expr *expr) {
    for (const char *c = FORMS[expr->op]; *c != '\0'; c++) {
        if (c[0] == '%' && c[1] != '\0' && c[2] == '$') {
            add_expr(p, out, c[1] == '1' ? expr->a : c[1] == '2' ? expr->b : expr->c, false);
            c += 3;
        } else {
            str_char(out, *c);
        }
    }
}

static void add_binary(const Printer *p, Str *out, const Expr *expr, bool inside) {
    if (FORMS[expr->op] != NULL) {
        add_form(p, out, expr);
        return;
    }
    bool called = expr->op == DO_MIN || expr->op == DO_MAX || expr->op == DO_CEIL;
    if (called)
        str_printf(out, "%s(", OPERATORS[expr->op]);
    else if (inside)
        str_char(out, '(');
    add_expr(p, out, expr->a, !called);
    if (called)
        str_add(out, ", ");
    else
        str_printf(out, " %s ", OPERATORS[expr->op]);
    add_expr(p, out, expr->b, !called);
    if (called || inside) str_char(out, ')');
}

static bool is_operand(const Expr *expr) {
    return expr->kind != X_NUMBER && expr->kind != X_REAL && expr->kind != X_TRUTH &&
           expr->kind != X_BINARY && expr->kind != X_SELECT;
}

static void add_operand(const Printer *p, Str *out, const Expr *expr) {
    str_printf(out, "a%zu", p->operands->count);
    vec_push(p->arena, p->operands, expr);
}

/* With a point or an exponent, so that it is no integer */
static void add_real(const Printer *p, Str *out, double value) {
    const char *text = arena_printf(p->arena, "%.9g", value);
    bool whole = strpbrk(text, ".en") == NULL; /* en: 1e9, inf */
    str_printf(out, "%s%s%s%s", value < 0 ? "(" : "", text, whole ? ".0" : "",
               value < 0 ? ")" : "");
}

static void add_expr(const Printer *p, Str *out, const Expr *expr, bool inside) {
    const Program *program = p->program;
    if (p->operands != NULL && is_operand(expr)) {
        add_operand(p, out, expr);
        return;
    }
    switch (expr->kind) {
    case X_NUMBER:
        if (expr->number < 0)
            str_printf(out, "(-%lld)", (long long)-expr->number);
        else
            str_printf(out, "%lld", (long long)expr->number);
        break;
    case X_REAL: add_real(p, out, expr->real); break;
    case X_TRUTH: str_add(out, expr->number ? "true" : "false"); break;
    case X_PARAM: str_add(out, expr->of == 0 ? "a" : "b"); break;
    case X_SYMBOL: str_add(out, symbol_names[expr->of]); break;
    case X_LOCAL: str_add(out, local_name(p, expr->of)); break;
    case X_INDEX: str_add(out, INDEXES[expr->of]); break;
    case X_RANK: str_add(out, "rank"); break;
    case X_LANE: str_add(out, "lane"); break;
    case X_BINARY: add_binary(p, out, expr, inside); break;
    case X_SELECT:
        str_char(out, '(');
        add_expr(p, out, expr->c, false);
        str_add(out, " ? ");
        add_expr(p, out, expr->a, true);
        str_add(out, " : ");
        add_expr(p, out, expr->b, true);
        str_char(out, ')');
        break;
    case X_REDUCE:
        str_printf(out, "(%s[%s] ", expr->op == DO_ADD ? "sum" : OPERATORS[expr->op],
                   INDEXES[expr->of]);
        add_expr(p, out, expr->a, true);
        str_char(out, ')');
        break;
    case X_TENSOR:
        str_add(out, program->tensors[expr->of].name);
        add_subs(p, out, expr);
        break;
    case X_FIELD:
        str_printf(out, "%s.%c", local_name(p, expr->of), "ab"[expr->field]);
        add_subs(p, out, expr);
        break;
    case X_TILE:
        str_add(out, local_name(p, expr->of));
        add_subs(p, out, expr);
        break;
    }
}

static const char *expr_text(const Printer *p, const Expr *expr) {
    Str out = str_new(p->arena);
    add_expr(p, &out, expr, false);
    return out.text;
}

/* Arguments are never narrow */
static Type widened(Type type) { return type == TYPE_HALF ? TYPE_REAL : type; }

/* Adds the function that computes a formula; returns its call. */
static const char *computed_text(const Printer *p, const Expr *expr, int function) {
    Operands operands = {0};
    Printer inner = {.program = p->program, .arena = p->arena, .operands = &operands};
    Str body = str_new(p->arena), call = str_new(p->arena);
    if (expr->kind == X_SELECT)
        str_printf(&body, "if %s { return %s; } return %s;", expr_text(&inner, expr->c),
                   expr_text(&inner, expr->a), expr_text(&inner, expr->b));
    else
        str_printf(&body, "return %s;", expr_text(&inner, expr));
    str_printf(p->functions, "fn f%d(", function);
    str_printf(&call, "f%d(", function);
    for (size_t i = 0; i < operands.count; i++) {
        str_printf(p->functions, "%sa%zu: %s", i > 0 ? ", " : "", i,
                   TYPES[widened(expr_type(p->program, operands.items[i]))]);
        str_printf(&call, "%s%s", i > 0 ? ", " : "", expr_text(p, operands.items[i]));
    }
    str_printf(p->functions, ") -> %s { %s }\n", TYPES[expr_type(p->program, expr)], body.text);
    str_char(&call, ')');
    return call.text;
}

/* A bound, a condition or a value of the statement */
static const char *formula_text(const Printer *p, const Stmt *stmt, const Expr *expr) {
    bool called = stmt->called > 0 && is_formula(expr);
    return called ? computed_text(p, expr, stmt->called) : expr_text(p, expr);
}

/* ---- statements ------------------------------------------------------------------------------ */

static void line(Printer *p, const char *format, ...) PRINTF_LIKE(2, 3);
static void line(Printer *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    str_printf(&p->out, "%*s", 4 * p->indent, "");
    str_vprintf(&p->out, format, args);
    str_char(&p->out, '\n');
    va_end(args);
}

static const char *type_text(const Printer *p, bool tiny, Type type, int rank, const int *extents) {
    const char *name = tiny ? "i8" : TYPES[type];
    if (rank == 0) return name;
    if (rank == 1) return arena_printf(p->arena, "%s[%d]", name, extents[0]);
    return arena_printf(p->arena, "%s[%d, %d]", name, extents[0], extents[1]);
}

static void print_stmt(Printer *p, const Stmt *stmt);

static void print_list(Printer *p, const Stmts *stmts) {
    p->indent++;
    for (size_t i = 0; i < stmts->count; i++) print_stmt(p, stmts->items[i]);
    p->indent--;
}

static bool is_element(const Expr *expr) {
    return expr->kind == X_TENSOR || expr->kind == X_FIELD || expr->kind == X_TILE;
}

/* What stands before `=` */
static const char *operator_text(const Stmt *stmt) {
    switch (stmt->op) {
    case '+': return "+";
    case '-': return "-";
    case '*': return "*";
    default: return "";
    }
}

/* Computed values are cast if the target's elements are narrower; copied elements are not */
static void print_assignment(Printer *p, const Stmt *stmt) {
    const char *value = formula_text(p, stmt, stmt->value), *op = operator_text(stmt);
    if (is_tiny(p->program, stmt->target) && !is_element(stmt->value))
        value = arena_printf(p->arena, "i8(%s)", value);
    if (expr_type(p->program, stmt->target) == TYPE_HALF &&
        !(is_element(stmt->value) && expr_type(p->program, stmt->value) == TYPE_HALF))
        value = arena_printf(p->arena, "f16(%s)", value);
    const char *where = stmt->condition ? expr_text(p, stmt->condition) : "",
               *range =
                   stmt->ranged ? arena_printf(p->arena, " for i in 0 .. %d", stmt->ranged) : "";
    line(p, "%s %s= %s%s%s%s%s;", expr_text(p, stmt->target), op, value,
         stmt->by_lanes ? " by lanes" : "", stmt->condition ? " where " : "", where, range);
}

static void print_declaration(Printer *p, const Stmt *stmt) {
    const Local *local = &p->program->locals[stmt->local];
    const char *name = local_name(p, stmt->local),
               *value = stmt->value ? formula_text(p, stmt, stmt->value) : NULL;
    const char *word = local->kind == LOCAL_SHARED ? "shared" : local->is_let ? "let" : "var";
    if (local->kind == LOCAL_SCALAR && value != NULL)
        line(p, "%s %s = %s;", word, name, value);
    else
        line(p, "%s %s: %s%s%s;", word, name,
             type_text(p, local->tiny, local->type, local->rank, local->extents),
             value ? " = " : "", value ? value : "");
}

static void print_for(Printer *p, const Stmt *stmt) {
    if (stmt->sliced && stmt->hi != NULL)
        line(p, "for %s in r%d[%s .. %s] {", local_name(p, stmt->local), stmt->range,
             expr_text(p, stmt->lo), expr_text(p, stmt->hi));
    else if (stmt->sliced)
        line(p, "for %s in r%d from %s {", local_name(p, stmt->local), stmt->range,
             expr_text(p, stmt->lo));
    else if (stmt->range >= 0)
        line(p, "for %s in r%d {", local_name(p, stmt->local), stmt->range);
    else
        line(p, "for %s in %s .. %s {", local_name(p, stmt->local), expr_text(p, stmt->lo),
             formula_text(p, stmt, stmt->hi));
    print_list(p, &stmt->body);
    line(p, "}");
}

static void print_stage(Printer *p, const Stmt *stmt) {
    const char *hint = stmt->hint >= 0 ? arena_printf(p->arena, " if %s", local_name(p, stmt->hint))
                                       : "",
               *lag = stmt->lag >= 0 ? arena_printf(p->arena, " lag %d", stmt->lag) : "",
               *end = stmt->produce ? "produce" : "consume", *name = local_name(p, stmt->local);
    if (stmt->kind == S_STAGE) {
        line(p, "%s <p%d>%s%s as %s {", end, stmt->pipe, hint, lag, name);
        print_list(p, &stmt->body);
        line(p, "}");
        return;
    }
    const char *word = !stmt->fresh ? "" : p->program->locals[stmt->local].is_let ? "let " : "var ";
    line(p, "%s%s = %s <p%d>%s;", word, name, end, stmt->pipe, hint);
}

static void print_arrival(Printer *p, const Stmt *stmt) {
    const char *name = local_name(p, stmt->local);
    if (stmt->kind == S_DROP)
        line(p, "release %s without signal;", name);
    else if (stmt->condition != NULL)
        line(p, "if %s { arrive %s; }", expr_text(p, stmt->condition), name);
    else
        line(p, "arrive %s;", name);
}

static void print_block(Printer *p, const char *word, const Stmts *stmts) {
    line(p, "%s {", word);
    print_list(p, stmts);
    line(p, "}");
}

/* The variables of the loop over the grid */
static const char *axes_text(const Printer *p) {
    const Program *program = p->program;
    Str out = str_new(p->arena);
    for (int a = 0; a < program->axis_count; a++)
        str_printf(&out, "%s%s", a > 0 ? ", " : "", local_name(p, program->axes[a].local));
    return program->axis_count > 1 ? arena_printf(p->arena, "(%s)", out.text) : out.text;
}

/* Of one program in eight no extent is a name alone, so that a launch solves each: the same sizes
 */
static bool solves(const Program *program) { return program->seed % 8 == 7; }

static void add_tensor(Str *out, const Tensor *tensor, bool solved);

static void add_param(const Printer *p, Str *out, const Param *param) {
    const Program *program = p->program;
    const Local *local = &program->locals[param->of];
    const char *changed = param->written ? "inout " : "", *name = local_name(p, param->of);
    Tensor tensor;
    switch (param->kind) {
    case PARAM_TENSOR:
        tensor = program->tensors[param->of];
        tensor.mode = param->written ? TENSOR_INOUT : TENSOR_IN;
        add_tensor(out, &tensor, solves(p->program));
        break;
    case PARAM_SYMBOL: str_printf(out, "%s: i32", symbol_names[param->of]); break;
    case PARAM_REAL: str_printf(out, "%s: f32", param->of == 0 ? "a" : "b"); break;
    case PARAM_SCALAR: str_printf(out, "%s%s: %s", changed, name, TYPES[local->type]); break;
    case PARAM_TILE:
        str_printf(out, "%s%s: %s", changed, name,
                   type_text(p, local->tiny, local->type, local->rank, local->extents));
        break;
    case PARAM_STAGE:
        str_printf(out, "%s%s: stage p%d", param->written ? "" : "borrow ", name, local->pipe);
        break;
    }
}

static const char *param_name(const Printer *p, const Param *param) {
    if (param->kind == PARAM_TENSOR) return p->program->tensors[param->of].name;
    if (param->kind == PARAM_REAL) return param->of == 0 ? "a" : "b";
    return param->kind == PARAM_SYMBOL ? symbol_names[param->of] : local_name(p, param->of);
}

/* The function comes before the kernel, and after those that it calls. */
static void print_call(Printer *p, const Stmt *stmt) {
    Params params = call_params(p->program, p->arena, stmt);
    Printer body = {.program = p->program,
                    .arena = p->arena,
                    .out = str_new(p->arena),
                    .functions = p->functions};
    Str call = str_new(p->arena), head = str_new(p->arena);
    str_printf(&head, "fn f%d(", stmt->other);
    str_printf(&call, "f%d(", stmt->other);
    for (size_t i = 0; i < params.count; i++) {
        str_add(&head, i > 0 ? ", " : "");
        add_param(p, &head, &params.items[i]);
        str_printf(&call, "%s%s", i > 0 ? ", " : "", param_name(p, &params.items[i]));
    }
    line(&body, "%s) {", head.text);
    print_list(&body, &stmt->body);
    line(&body, "}");
    str_add(p->functions, body.out.text);
    line(p, "%s);", call.text);
}

static void print_stmt(Printer *p, const Stmt *stmt) {
    static const char *const leaves[] = {"break", "continue", "return"};
    switch (stmt->kind) {
    case S_FOR: print_for(p, stmt); break;
    case S_GRID:
        print_block(p, arena_printf(p->arena, "for %s in grid", axes_text(p)), &stmt->body);
        break;
    case S_IF:
        line(p, "if %s {", formula_text(p, stmt, stmt->condition));
        print_list(p, &stmt->body);
        if (stmt->otherwise.count > 0) {
            line(p, "} else {");
            print_list(p, &stmt->otherwise);
        }
        line(p, "}");
        break;
    case S_LEAVE: line(p, "%s;", leaves[stmt->leave]); break;
    case S_STAGE:
    case S_ACQUIRE: print_stage(p, stmt); break;
    case S_RELEASE: line(p, "release %s;", local_name(p, stmt->local)); break;
    case S_MOVE: line(p, "%s = %s;", local_name(p, stmt->local), local_name(p, stmt->other)); break;
    case S_DECLARE: print_declaration(p, stmt); break;
    case S_SET:
        line(p, "%s %s= %s;", local_name(p, stmt->local), operator_text(stmt),
             formula_text(p, stmt, stmt->value));
        break;
    case S_TILE: print_assignment(p, stmt); break;
    case S_CONTRACT:
        line(p, "%s %s= sum[x] %s * %s;", expr_text(p, stmt->target), stmt->op == '+' ? "+" : "",
             expr_text(p, stmt->left), expr_text(p, stmt->right));
        break;
    case S_CALL: print_call(p, stmt); break;
    case S_TURN: print_block(p, "turn", &stmt->body); break;
    case S_UNSAFE: print_block(p, "unsafe", &stmt->body); break;
    case S_ARRIVE:
    case S_DROP: print_arrival(p, stmt); break;
    case S_HINT:
        line(p, "%s%s = try %s <p%d>;",
             !stmt->fresh                             ? ""
             : p->program->locals[stmt->local].is_let ? "let "
                                                      : "var ",
             local_name(p, stmt->local), stmt->produce ? "produce" : "consume", stmt->pipe);
        break;
    case S_EVENT:
    case S_ROTATE: break; /* occurs only in scripts */
    }
}

/* ---- program --------------------------------------------------------------------------------- */

static void add_tensor(Str *out, const Tensor *tensor, bool solved) {
    static const char *const modes[] = {"", "out ", "inout "};
    str_printf(out, "%s%s: %s", modes[tensor->mode], tensor->name,
               tensor->tiny ? "i8" : TYPES[tensor->type]);
    for (int d = 0; d < tensor->rank; d++) {
        str_add(out, d == 0 ? "[" : ", ");
        if (tensor->extents[d].symbol >= 0)
            str_printf(out, solved ? "2 + %s - 2" : "%s", symbol_names[tensor->extents[d].symbol]);
        else
            str_printf(out, "%d", tensor->extents[d].number);
    }
    str_char(out, ']');
}

/* True if a loop uses the range, or a statement waits for the pipe. -1: any */
static bool mentions(const Stmts *stmts, int range, int pipe) {
    for (size_t i = 0; i < stmts->count; i++) {
        const Stmt *stmt = stmts->items[i];
        bool waits = stmt->kind == S_STAGE || stmt->kind == S_ACQUIRE || stmt->kind == S_HINT;
        if (stmt->kind == S_FOR && range >= 0 && stmt->range == range) return true;
        if (waits && stmt->pipe == pipe) return true;
        if (mentions(&stmt->body, range, pipe) || mentions(&stmt->otherwise, range, pipe))
            return true;
    }
    return false;
}

static bool is_used(const Program *program, int range, int pipe) {
    bool used = false;
    for (int r = 0; r < program->role_count; r++)
        used |= mentions(&program->roles[r].body, range, pipe);
    return used;
}

bool pipe_is_used(const Program *program, int pipe) { return is_used(program, -1, pipe); }

static void print_axes(Printer *p) {
    const Program *program = p->program;
    Str extents = str_new(p->arena), clusters = str_new(p->arena);
    str_add(&clusters, "");
    for (int a = 0; a < program->axis_count; a++) {
        const Axis *axis = &program->axes[a];
        const char *name = local_name(p, axis->local);
        str_printf(&extents, "%s%s: %s", a > 0 ? ", " : "", name, expr_text(p, axis->extent));
        if (axis->cluster > 1)
            str_printf(&clusters, "%s%s: %d", clusters.length > 0 ? ", " : "", name, axis->cluster);
    }
    line(p, "grid %s(%s);",
         is_dynamic(program)   ? "dynamic "
         : program->persistent ? "persistent "
                               : "",
         extents.text);
    if (clusters.length > 0) line(p, "cluster (%s);", clusters.text);
}

static void print_head(Printer *p) {
    const Program *program = p->program;
    Str tensors = str_new(p->arena);
    str_add(&tensors, "");
    for (int i = 0; i < program->tensor_count; i++) {
        add_tensor(&tensors, &program->tensors[i], solves(program));
        str_add(&tensors, ", ");
    }
    line(p, "kernel k(%sq: i32, p: i32%s) for sm_90a {", tensors.text,
         program->reals ? ", a: f32, b: f32" : "");
    p->indent++;
    for (int i = 0; i < program->require_count; i++)
        line(p, "requires %s %s %lld;", symbol_names[program->requires[i].symbol],
             OPERATORS[program->requires[i].op], (long long)program->requires[i].number);
    print_axes(p);
    for (int i = 0; i < program->range_count; i++)
        if (is_used(program, i, -1))
            line(p, "range r%d = 0 .. %s%s%s;", i, expr_text(p, program->ranges[i]),
                 program->wheres[i] != NULL ? " where " : "",
                 program->wheres[i] != NULL ? expr_text(p, program->wheres[i]) : "");
}

static void add_field(const Printer *p, Str *out, char name, const Field *field) {
    int outer = field->tiles ? 1 : 0;
    str_printf(out, " %c", name);
    if (field->tiles) str_printf(out, "[%d]", field->extents[0]);
    str_printf(out, ": %s;",
               type_text(p, field->tiny, field->type, field->rank - outer, field->extents + outer));
}

static void print_pipes(Printer *p) {
    const Program *program = p->program;
    for (int i = 0; i < program->pipe_count; i++) {
        const Pipe *pipe = &program->pipes[i];
        if (!pipe_is_used(program, i)) continue;
        Str text = str_new(p->arena);
        for (int c = 0; c < pipe->consumer_count; c++)
            str_printf(&text, "%sw%d", c > 0 ? ", " : "", pipe->consumers[c]);
        if (pipe->arrivals > 0) str_printf(&text, " arrivals empty %d", pipe->arrivals);
        str_add(&text, pipe->field_count > 0 ? " {" : ";");
        for (int f = 0; f < pipe->field_count; f++)
            add_field(p, &text, "ab"[f], &pipe -> fields[f]);
        if (pipe->field_count > 0) str_add(&text, " }");
        line(p, "pipe p%d[%d] w%d -> %s", i, pipe->depth, pipe->producer, text.text);
    }
}

const char *program_text(Program *program) {
    Str functions = str_new(program->arena);
    str_add(&functions, "");
    Printer p = {.program = program,
                 .arena = program->arena,
                 .out = str_new(program->arena),
                 .functions = &functions};
    print_head(&p);
    print_pipes(&p);
    for (int i = 0; i < program->role_count; i++) {
        const Role *role = &program->roles[i];
        if (role->body.count == 0) continue;
        int count = role->warpgroups ? role->instances : role->warps;
        line(&p, "role w%d: %d %s%s%s {", i, count, role->warpgroups ? "warpgroup" : "warp",
             count > 1 ? "s" : "", role->in_turn ? " in turn" : "");
        print_list(&p, &role->body);
        line(&p, "}");
    }
    p.indent = 0;
    line(&p, "}");
    str_add(&functions, p.out.text);
    return functions.text;
}

const char *stmt_text(Program *program, const Stmt *stmt) {
    Str functions = str_new(program->arena);
    Printer p = {.program = program,
                 .arena = program->arena,
                 .out = str_new(program->arena),
                 .functions = &functions};
    if (stmt == NULL) return "the end";
    print_stmt(&p, stmt);
    for (char *c = p.out.text; *c != '\0'; c++)
        if (*c == '\n') *c = '\0';
    return p.out.text;
}
