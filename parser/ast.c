/* The tree as text, for --emit=ast and the tests: one line per statement, expressions in Pipe's
 * notation with all parentheses, so that precedence is visible. */
#include "parser/ast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Printer {
    Str *out;
    int indent;
} Printer;

/* ---- expressions ----------------------------------------------------------------------------- */

static void expr(Str *out, const AstExpr *e);

static void name(Str *out, AstName n) { str_add(out, n.text ? n.text : "<error>"); }

static void exprs(Str *out, const AstExprs *list) {
    for (size_t i = 0; i < list->count; i++) {
        if (i) str_add(out, ", ");
        expr(out, list->items[i]);
    }
}

static void names(Str *out, const AstNames *list) {
    for (size_t i = 0; i < list->count; i++) {
        if (i) str_add(out, ", ");
        name(out, list->items[i]);
    }
}

static const char *binary_spelling(AstBinaryOp op) {
    switch (op) {
    case AST_ADD: return "+";
    case AST_SUB: return "-";
    case AST_MUL: return "*";
    case AST_DIV: return "/";
    case AST_MOD: return "%";
    case AST_EQ: return "==";
    case AST_NE: return "!=";
    case AST_LT: return "<";
    case AST_LE: return "<=";
    case AST_GT: return ">";
    case AST_GE: return ">=";
    case AST_AND: return "&&";
    case AST_OR: return "||";
    case AST_BIT_AND: return "&";
    case AST_BIT_OR: return "|";
    case AST_BIT_XOR: return "^";
    case AST_SHL: return "<<";
    case AST_SHR: return ">>";
    }
    return "";
}

Span ast_binary_op(const AstExpr *binary) {
    uint32_t at = binary->binary.op_at;
    return (Span){at, at + (uint32_t)strlen(binary_spelling(binary->binary.op))};
}

static const char *reduce_spelling(AstReduceOp op) {
    switch (op) {
    case AST_SUM: return "sum";
    case AST_MAX: return "max";
    case AST_MIN: return "min";
    }
    return "";
}

static void acquire(Str *out, AstEnd end, AstName pipe, AstName hint, bool unwaited) {
    str_add(out, end == AST_PRODUCE ? "produce <" : "consume <");
    name(out, pipe);
    str_add(out, unwaited ? "> if true" : ">");
    if (!hint.text) return;
    str_add(out, " if ");
    name(out, hint);
}

/* The shortest form that reads back as the same number; with a point or an exponent, so that it
 * is no integer */
static void number(Str *out, double value) {
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    str_add(out, text);
    if (!strpbrk(text, ".e")) str_add(out, ".0");
}

/* Several expressions between two brackets: "(" or "[" */
static void bracketed(Str *out, char open, AstExprs list, char close) {
    str_char(out, open);
    exprs(out, &list);
    str_char(out, close);
}

static void binary(Str *out, const AstExpr *e) {
    str_char(out, '(');
    expr(out, e->binary.left);
    str_printf(out, " %s ", binary_spelling(e->binary.op));
    expr(out, e->binary.right);
    str_char(out, ')');
}

static void choice(Str *out, const AstExpr *e) {
    str_char(out, '(');
    expr(out, e->select.condition);
    str_add(out, " ? ");
    expr(out, e->select.then);
    str_add(out, " : ");
    expr(out, e->select.otherwise);
    str_char(out, ')');
}

static void reduction(Str *out, const AstExpr *e) {
    str_printf(out, "(%s[", reduce_spelling(e->reduce.op));
    names(out, e->reduce.indexes);
    str_add(out, "] ");
    expr(out, e->reduce.body);
    str_char(out, ')');
}

static void expr(Str *out, const AstExpr *e) {
    switch (e->kind) {
    case AST_ERROR_EXPR: str_add(out, "<error>"); break;
    case AST_INTEGER: str_printf(out, "%llu", (unsigned long long)e->integer); break;
    case AST_FLOAT: number(out, e->number); break;
    case AST_BOOL: str_add(out, e->truth ? "true" : "false"); break;
    case AST_NAME: str_add(out, e->name); break;
    case AST_UNARY:
        str_printf(out, "(%c", e->unary.op == AST_NEG ? '-' : e->unary.op == AST_NOT ? '!' : '~');
        expr(out, e->unary.operand);
        str_char(out, ')');
        break;
    case AST_BINARY: binary(out, e); break;
    case AST_SELECT: choice(out, e); break;
    case AST_CALL:
        name(out, e->call.callee);
        bracketed(out, '(', (AstExprs){e->call.args, e->call.count}, ')');
        break;
    case AST_SUBSCRIPT:
        expr(out, e->subscript.base);
        bracketed(out, '[', (AstExprs){e->subscript.subs, e->subscript.count}, ']');
        break;
    case AST_MEMBER:
        expr(out, e->member.base);
        str_char(out, '.');
        name(out, e->member.member);
        break;
    case AST_REDUCE: reduction(out, e); break;
    case AST_OLD:
        str_add(out, "(old ");
        expr(out, e->old);
        str_char(out, ')');
        break;
    case AST_TRY:
        str_add(out, "try ");
        acquire(out, e->acquire.end, e->acquire.pipe, e->acquire.hint, e->acquire.unwaited);
        break;
    case AST_CURSOR:
        acquire(out, e->cursor.end, e->cursor.pipe, (AstName){0}, false);
        str_char(out, '.');
        name(out, e->cursor.member);
        break;
    case AST_ACQUIRE:
        acquire(out, e->acquire.end, e->acquire.pipe, e->acquire.hint, e->acquire.unwaited);
        break;
    }
}

static void type(Str *out, const AstType *t) {
    str_add(out, t->is_stage ? "stage " : t->is_tmem ? "tmem " : "");
    name(out, t->name);
    if (t->dims.count > 0) bracketed(out, '[', t->dims, ']');
}

/* " WORD e", or nothing if there is no expression */
static void clause(Str *out, const char *word, const AstExpr *e) {
    if (!e) return;
    str_printf(out, " %s ", word);
    expr(out, e);
}

/* ---- statements ------------------------------------------------------------------------------ */

static void stmt(Printer *p, const AstStmt *s);

static void line(Printer *p) { str_printf(p->out, "%*s", p->indent * 2, ""); }

static void body(Printer *p, const AstStmt *s) {
    p->indent++;
    if (s && s->kind == AST_BLOCK)
        for (size_t i = 0; i < s->block.count; i++) stmt(p, s->block.body[i]);
    else if (s)
        stmt(p, s);
    p->indent--;
}

static void block(Printer *p, const char *word, const AstStmt *s) {
    str_printf(p->out, "%s\n", word);
    p->indent++;
    for (size_t i = 0; i < s->block.count; i++) stmt(p, s->block.body[i]);
    p->indent--;
}

static void declare(Printer *p, const char *word, const AstStmt *s) {
    str_printf(p->out, "%s ", word);
    name(p->out, s->declare.name);
    if (s->declare.type) {
        str_add(p->out, ": ");
        type(p->out, s->declare.type);
    }
    clause(p->out, "=", s->declare.init);
    str_char(p->out, '\n');
}

static void ranges(Printer *p, const AstIndexRanges *list) {
    for (size_t i = 0; i < list->count; i++) {
        str_add(p->out, i > 0 ? ", " : " for ");
        name(p->out, list->items[i].name);
        clause(p->out, "in", list->items[i].from);
        clause(p->out, "..", list->items[i].to);
    }
}

const char *const ast_assign_text[] = {[AST_SET] = "=",
                                       [AST_SET_ADD] = "+=",
                                       [AST_SET_SUB] = "-=",
                                       [AST_SET_MUL] = "*=",
                                       [AST_SET_DIV] = "/="};

Span ast_assign_op(const AstStmt *assign) {
    uint32_t at = assign->assign.op_at;
    return (Span){at, at + (uint32_t)strlen(ast_assign_text[assign->assign.op])};
}

static void assign(Printer *p, const AstStmt *s) {
    if (s->assign.prefetch) str_add(p->out, "prefetch ");
    expr(p->out, s->assign.target);
    clause(p->out, ast_assign_text[s->assign.op], s->assign.value);
    if (s->assign.with->by_lanes) str_add(p->out, " by lanes");
    if (s->assign.with->multicast_required) str_add(p->out, " multicast required");
    if (s->assign.with->ranges) ranges(p, s->assign.with->ranges);
    clause(p->out, "where", s->assign.with->where);
    str_char(p->out, '\n');
}

static void loop(Printer *p, const AstStmt *s) {
    const AstDomain *domain = s->loop.domain;
    str_add(p->out, "for ");
    names(p->out, s->loop.vars);
    str_add(p->out, " in ");
    switch (domain->kind) {
    case AST_DOMAIN_GRID: str_add(p->out, "grid"); break;
    case AST_DOMAIN_NAMED:
        name(p->out, domain->name);
        clause(p->out, "from", domain->from);
        clause(p->out, "to", domain->to);
        break;
    case AST_DOMAIN_RANGE:
        expr(p->out, domain->from);
        clause(p->out, "..", domain->to);
        break;
    }
    str_char(p->out, '\n');
    body(p, s->loop.body);
}

static void branch(Printer *p, const AstStmt *s) {
    str_add(p->out, "if ");
    if (s->branch.condition) {
        expr(p->out, s->branch.condition);
    } else {
        name(p->out, s->branch.nonempty);
        str_add(p->out, " nonempty");
    }
    str_char(p->out, '\n');
    body(p, s->branch.then);
    if (!s->branch.otherwise) return;
    line(p);
    str_add(p->out, "else\n");
    body(p, s->branch.otherwise);
}

static void signal(Printer *p, const char *word, const char *after, const AstStmt *s) {
    str_printf(p->out, "%s ", word);
    expr(p->out, s->signal.barrier);
    clause(p->out, "at", s->signal.at);
    clause(p->out, after, s->signal.value);
    str_char(p->out, '\n');
}

static void ptx(Printer *p, const AstStmt *s) {
    static const char *const modes[] = {
        [AST_OPERAND_IN] = "in", [AST_OPERAND_OUT] = "out", [AST_OPERAND_INOUT] = "inout"};
    str_add(p->out, "ptx \"");
    str_visible(p->out, s->ptx.text.text, strlen(s->ptx.text.text));
    str_add(p->out, "\" (");
    for (size_t i = 0; i < s->ptx.operands.count; i++) {
        const AstOperand *operand = &s->ptx.operands.items[i];
        str_printf(p->out, "%s%s ", i ? ", " : "", modes[operand->mode]);
        if (operand->value)
            expr(p->out, operand->value);
        else
            name(p->out, operand->name);
        if (operand->type.text) str_printf(p->out, ": %s", operand->type.text);
    }
    str_add(p->out, ")\n");
}

static void stmt(Printer *p, const AstStmt *s) {
    Str *out = p->out;
    line(p);
    switch (s->kind) {
    case AST_ERROR_STMT: str_add(out, "<error>\n"); break;
    case AST_BLOCK: block(p, "block", s); break;
    case AST_TURN: block(p, "turn", s); break;
    case AST_UNSAFE: block(p, "unsafe", s); break;
    case AST_LET: declare(p, "let", s); break;
    case AST_VAR: declare(p, "var", s); break;
    case AST_SHARED: declare(p, "shared", s); break;
    case AST_ASSIGN: assign(p, s); break;
    case AST_FOR: loop(p, s); break;
    case AST_IF: branch(p, s); break;
    case AST_BREAK: str_add(out, "break\n"); break;
    case AST_CONTINUE: str_add(out, "continue\n"); break;
    case AST_RETURN:
        str_add(out, "return");
        if (s->value) str_char(out, ' '), expr(out, s->value);
        str_char(out, '\n');
        break;
    case AST_STAGE:
        acquire(out, s->stage.end, s->stage.pipe, s->stage.hint, s->stage.unwaited);
        clause(out, "lag", s->stage.lag);
        str_add(out, " as ");
        name(out, s->stage.as);
        str_char(out, '\n');
        body(p, s->stage.body);
        break;
    case AST_ARRIVE: signal(p, "arrive", "bytes", s); break;
    case AST_WAIT: signal(p, "wait", "phase", s); break;
    case AST_EXPECT: signal(p, "expect", "bytes", s); break;
    case AST_STEP: signal(p, "step", NULL, s); break;
    case AST_PTX: ptx(p, s); break;
    case AST_RELEASE:
        str_add(out, "release ");
        name(out, s->release.name);
        str_add(out, s->release.without_signal ? " without signal\n" : "\n");
        break;
    case AST_EXPR:
        expr(out, s->value);
        str_char(out, '\n');
        break;
    }
}

/* ---- items ----------------------------------------------------------------------------------- */

static void params(Printer *p, const AstParams *list) {
    static const char *const mode[] = {
        [AST_IN] = "", [AST_OUT] = "out ", [AST_INOUT] = "inout ", [AST_BORROW] = "borrow "};
    for (size_t i = 0; i < list->count; i++) {
        const AstParam *param = &list->items[i];
        line(p);
        str_printf(p->out, "parameter %s", mode[param->mode]);
        name(p->out, param->name);
        str_add(p->out, ": ");
        type(p->out, param->type);
        str_char(p->out, '\n');
    }
}

static void consts(Printer *p, const AstItem *item) {
    for (size_t i = 0; i < item->consts.count; i++) {
        const AstConst *constant = &item->consts.items[i];
        line(p);
        str_add(p->out, constant->is_static ? "static " : "const ");
        name(p->out, constant->name);
        clause(p->out, "=", constant->value);
        if (constant->choices.count) {
            str_add(p->out, " in {");
            exprs(p->out, &constant->choices);
            str_char(p->out, '}');
        }
        str_char(p->out, '\n');
    }
}

static void ensures(Printer *p, const AstItem *item) {
    for (size_t i = 0; i < item->ensures.count; i++) {
        const AstClaim *claim = &item->ensures.items[i];
        line(p);
        str_add(p->out, claim->is_let ? "ensures let " : "ensures ");
        expr(p->out, claim->target);
        clause(p->out, claim->is_let ? "=" : claim->within ? "~" : "==", claim->value);
        clause(p->out, "within", claim->within);
        clause(p->out, "or", claim->absolute);
        ranges(p, &claim->ranges);
        str_char(p->out, '\n');
    }
}

static void example(Printer *p, const AstItem *item) {
    for (size_t i = 0; i < item->example.count; i++) {
        line(p);
        str_add(p->out, "example ");
        expr(p->out, item->example.items[i].target);
        clause(p->out, "=", item->example.items[i].value);
        str_char(p->out, '\n');
    }
}

static void axis(Printer *p, const AstAxis *a) {
    p->indent++;
    line(p);
    name(p->out, a->name);
    clause(p->out, ":", a->extent);
    str_add(p->out, a->heaviest_first ? " heaviest first\n" : "\n");
    p->indent--;
}

static void grid(Printer *p, const AstItem *item) {
    line(p);
    str_printf(p->out, "grid%s%s%s", item->grid.persistent ? " persistent" : "",
               item->grid.dynamic ? " dynamic" : "", item->grid.hardware ? " hardware" : "");
    clause(p->out, "grouped", item->grid.grouped);
    str_char(p->out, '\n');
    for (size_t i = 0; i < item->grid.axes.count; i++) axis(p, &item->grid.axes.items[i]);
}

static void pipe(Printer *p, const AstItem *item) {
    line(p);
    str_add(p->out, "pipe ");
    name(p->out, item->pipe.name);
    if (!item->pipe.stages) { /* after an error */
        str_add(p->out, " <error>\n");
        return;
    }
    str_char(p->out, '[');
    expr(p->out, item->pipe.stages);
    str_add(p->out, "] ");
    name(p->out, item->pipe.producer);
    str_add(p->out, " -> ");
    names(p->out, &item->pipe.consumers);
    if (item->pipe.arrivals_full || item->pipe.arrivals_empty) str_add(p->out, " arrivals");
    clause(p->out, "full", item->pipe.arrivals_full);
    clause(p->out, "empty", item->pipe.arrivals_empty);
    str_char(p->out, '\n');
    p->indent++;
    for (size_t i = 0; i < item->pipe.fields.count; i++) {
        const AstField *field = &item->pipe.fields.items[i];
        line(p);
        name(p->out, field->name);
        if (field->count) str_char(p->out, '['), expr(p->out, field->count), str_char(p->out, ']');
        str_add(p->out, ": ");
        type(p->out, field->type);
        str_char(p->out, '\n');
    }
    p->indent--;
}

static void role(Printer *p, const AstItem *item) {
    line(p);
    str_add(p->out, "role ");
    name(p->out, item->role.name);
    str_add(p->out, ": ");
    expr(p->out, item->role.count);
    str_add(p->out, item->role.team == AST_WARPS ? " warps" : " warpgroups");
    str_add(p->out, item->role.in_turn ? " in turn" : "");
    clause(p->out, "regs", item->role.regs);
    str_char(p->out, '\n');
    body(p, item->role.body);
}

static void items(Printer *p, const AstItems *list);

static void fn(Printer *p, const AstItem *item) {
    line(p);
    str_add(p->out, "fn ");
    name(p->out, item->fn.name);
    if (item->fn.result) {
        str_add(p->out, " -> ");
        type(p->out, item->fn.result);
    }
    str_char(p->out, '\n');
    p->indent++;
    params(p, &item->fn.params);
    p->indent--;
    body(p, item->fn.body);
}

static void targets(Printer *p, const AstItem *item) {
    for (size_t i = 0; i < item->kernel.targets.count; i++) {
        str_add(p->out, i > 0 ? ", " : " for ");
        name(p->out, item->kernel.targets.items[i]);
    }
}

static void kernel(Printer *p, const AstItem *item) {
    line(p);
    str_add(p->out, "kernel ");
    name(p->out, item->kernel.name);
    targets(p, item);
    str_char(p->out, '\n');
    p->indent++;
    params(p, &item->kernel.params);
    items(p, &item->kernel.items);
    p->indent--;
}

static void variant(Printer *p, const AstItem *item) {
    line(p);
    str_add(p->out, "variant ");
    name(p->out, item->kernel.name);
    targets(p, item);
    str_char(p->out, '\n');
    p->indent++;
    items(p, &item->kernel.items);
    p->indent--;
}

static void simple(Printer *p, const AstItem *item) {
    line(p);
    if (item->kind == AST_ITEM_REQUIRES) {
        str_add(p->out, "requires ");
        expr(p->out, item->requires_);
    } else {
        str_add(p->out, "range ");
        name(p->out, item->range.name);
        clause(p->out, "=", item->range.from);
        clause(p->out, "..", item->range.to);
        clause(p->out, "where", item->range.where);
    }
    str_char(p->out, '\n');
}

static void items(Printer *p, const AstItems *list) {
    for (size_t i = 0; i < list->count; i++) {
        const AstItem *item = list->items[i];
        switch (item->kind) {
        case AST_ITEM_CONST: consts(p, item); break;
        case AST_ITEM_INCLUDE:
            line(p);
            str_printf(p->out, "include \"%s\"\n", item->include.text);
            break;
        case AST_ITEM_FN: fn(p, item); break;
        case AST_ITEM_KERNEL: kernel(p, item); break;
        case AST_ITEM_REQUIRES:
        case AST_ITEM_RANGE: simple(p, item); break;
        case AST_ITEM_ENSURES: ensures(p, item); break;
        case AST_ITEM_EXAMPLE: example(p, item); break;
        case AST_ITEM_GRID: grid(p, item); break;
        case AST_ITEM_CLUSTER:
            line(p);
            str_add(p->out, item->cluster.paired ? "cluster paired\n" : "cluster\n");
            for (size_t a = 0; a < item->cluster.axes.count; a++)
                axis(p, &item->cluster.axes.items[a]);
            break;
        case AST_ITEM_PIPE: pipe(p, item); break;
        case AST_ITEM_ROLE: role(p, item); break;
        case AST_ITEM_VARIANT: variant(p, item); break;
        }
    }
}

bool ast_has_variants(const AstItem *kernel) {
    for (size_t i = 0; i < kernel->kernel.items.count; i++)
        if (kernel->kernel.items.items[i]->kind == AST_ITEM_VARIANT) return true;
    return false;
}

void ast_print(const Ast *ast, Str *out) {
    Printer p = {out, 0};
    items(&p, &ast->items);
}
