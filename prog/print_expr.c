/* Prints expressions of the checked program in the syntax of Pipe, with implied casts and types
 * of constants. */
#include "prog/prog.h"

#include <math.h>
#include <string.h>

/* limit of one expression: shared nodes are printed at each use, so the text could grow without
 * bound */
#define MAX_TEXT 4000

typedef struct Printer {
    const Prog *prog;
    const Role *role;
    const IndexSpace *space;
    Str *out;
    size_t limit;
} Printer;

static void print(Printer *p, const Expr *x, int strength);

/* How tightly operators bind, loosest first */
enum {
    BINDS_SELECT = 1,
    BINDS_OR,
    BINDS_AND,
    BINDS_COMPARISON,
    BINDS_BIT_OR,
    BINDS_BIT_XOR,
    BINDS_BIT_AND,
    BINDS_SHIFT,
    BINDS_SUM,
    BINDS_PRODUCT,
    BINDS_UNARY,
    BINDS_PRIMARY
};

typedef struct Operator {
    const char *text;
    int strength;
} Operator;

static const Operator binary_rows[] = {
    [OP_ADD] = {"+", BINDS_SUM},        [OP_SUB] = {"-", BINDS_SUM},
    [OP_MUL] = {"*", BINDS_PRODUCT},    [OP_DIV] = {"/", BINDS_PRODUCT},
    [OP_MOD] = {"%", BINDS_PRODUCT},    [OP_EQ] = {"==", BINDS_COMPARISON},
    [OP_NE] = {"!=", BINDS_COMPARISON}, [OP_LT] = {"<", BINDS_COMPARISON},
    [OP_LE] = {"<=", BINDS_COMPARISON}, [OP_GT] = {">", BINDS_COMPARISON},
    [OP_GE] = {">=", BINDS_COMPARISON}, [OP_AND] = {"&&", BINDS_AND},
    [OP_OR] = {"||", BINDS_OR}};

static const Operator call_rows[IN_COUNT] = {[IN_bit_and] = {"&", BINDS_BIT_AND},
                                             [IN_bit_or] = {"|", BINDS_BIT_OR},
                                             [IN_bit_xor] = {"^", BINDS_BIT_XOR},
                                             [IN_shl] = {"<<", BINDS_SHIFT},
                                             [IN_shr] = {">>", BINDS_SHIFT}};

const char *intrinsic_operator(Intrinsic which) { return call_rows[which].text; }

static void print_constant(Printer *p, const Expr *x) {
    if (x->type == E_BOOL)
        str_add(p->out, x->constant.integer ? "true" : "false");
    else if (x->type != E_F32) {
        str_printf(p->out, "%lld", (long long)x->constant.integer);
        if (x->type != E_I32) str_add(p->out, element_rows[x->type].spelling);
    } else if (isinf(x->constant.number))
        str_add(p->out, x->constant.number < 0 ? "-inf" : "inf");
    else if (isnan(x->constant.number))
        str_add(p->out, "nan");
    else {
        size_t start = p->out->length;
        str_printf(p->out, "%.9g", x->constant.number);
        if (!strpbrk(p->out->text + start, ".e")) str_add(p->out, ".0");
    }
}

static const char *name_or(const char *name) { return name ? name : "?"; }

static void print_object(Printer *p, const Access *read) {
    const Prog *prog = p->prog;
    size_t object = (size_t)read->object;
    switch (read->space) {
    case SPACE_GLOBAL:
        str_add(p->out,
                object < prog->params.count ? name_or(prog->params.items[object].name) : "?");
        break;
    case SPACE_LET:
        str_add(p->out, object < prog->lets.count ? name_or(prog->lets.items[object].name) : "?");
        break;
    case SPACE_SHARED:
    case SPACE_REGISTER:
        str_add(p->out, p->role && object < p->role->tiles.count
                            ? name_or(p->role->tiles.items[object].name)
                            : "?");
        break;
    case SPACE_STAGE: {
        if (!p->role || object >= p->role->handles.count) {
            str_add(p->out, "?");
            break;
        }
        const Handle *handle = &p->role->handles.items[object];
        str_add(p->out, name_or(handle->name));
        if (handle->pipe >= 0 && (size_t)read->field < prog->pipes.items[handle->pipe].fields.count)
            str_printf(p->out, ".%s",
                       name_or(prog->pipes.items[handle->pipe].fields.items[read->field].name));
        break;
    }
    }
}

static void print_access(Printer *p, const Access *read) {
    if (read->old) str_add(p->out, "old ");
    print_object(p, read);
    if (read->element) {
        str_char(p->out, '[');
        print(p, read->element, 0);
        str_char(p->out, ']');
    }
    if (read->rank == 0) return;
    str_char(p->out, '[');
    for (int i = 0; i < read->rank; i++) {
        if (i) str_add(p->out, ", ");
        print(p, read->subs[i], 0);
    }
    str_char(p->out, ']');
}

static void print_call(Printer *p, const Expr *x) {
    bool is_exact = x->call.accuracy == ACCURACY_EXACT;
    const char *name = x->call.which == IN_ceil_div ? "ceil" : intrinsic_rows[x->call.which].name;
    str_printf(p->out, "%s%s(", name, is_exact ? ".exact" : "");
    if (x->call.which == IN_bits) str_printf(p->out, "%s, ", element_rows[x->type].spelling);
    for (int i = 0; i < x->call.count; i++) {
        if (i) str_add(p->out, ", ");
        print(p, x->call.args[i], 0);
    }
    str_char(p->out, ')');
}

static const char *const reduce_words[] = {
    [REDUCE_SUM] = "sum", [REDUCE_MAX] = "max", [REDUCE_MIN] = "min"};

static void print_reduce(Printer *p, const Expr *x) {
    str_printf(p->out, "%s[", reduce_words[x->reduce.op]);
    for (int i = 0; i < x->reduce.count; i++) {
        int index = x->reduce.first + i;
        str_printf(p->out, "%s%s", i ? ", " : "",
                   p->space && index < p->space->count ? p->space->items[index].name : "?");
    }
    str_add(p->out, "] ");
    print(p, x->reduce.body, BINDS_PRODUCT);
}

/* `sum[<= k] x[k]` */
static void print_scan(Printer *p, const Expr *x) {
    bool named = p->space && x->scan.along < p->space->count;
    str_printf(p->out, "%s[%s %s] ", reduce_words[x->scan.op], binary_rows[x->scan.relation].text,
               named ? p->space->items[x->scan.along].name : "?");
    print(p, x->scan.body, BINDS_PRODUCT);
}

static void print_binary(Printer *p, const Expr *x) {
    int strength = binary_rows[x->binary.op].strength;
    print(p, x->binary.left, strength);
    str_printf(p->out, " %s%s ", binary_rows[x->binary.op].text,
               x->binary.accuracy == ACCURACY_EXACT ? ".exact" : "");
    print(p, x->binary.right, strength + 1);
}

static void print_operator(Printer *p, const Expr *x) {
    const Operator *row = &call_rows[x->call.which];
    print(p, x->call.args[0], row->strength);
    str_printf(p->out, " %s ", row->text);
    print(p, x->call.args[1], row->strength + 1);
}

static void print_select(Printer *p, const Expr *x) {
    print(p, x->select.condition, BINDS_OR);
    str_add(p->out, " ? ");
    print(p, x->select.then, BINDS_OR);
    str_add(p->out, " : ");
    print(p, x->select.otherwise, BINDS_SELECT);
}

static int strength_of(const Expr *x) {
    if (x->kind == X_SELECT) return BINDS_SELECT;
    if (x->kind == X_BINARY) return binary_rows[x->binary.op].strength;
    if (x->kind == X_CALL && call_rows[x->call.which].text)
        return call_rows[x->call.which].strength;
    if (x->kind == X_UNARY) return BINDS_UNARY;
    if (x->kind == X_REDUCE || x->kind == X_SCAN) return BINDS_PRODUCT;
    return BINDS_PRIMARY;
}

static void print_plain(Printer *p, const Expr *x) {
    const Prog *prog = p->prog;
    size_t index = x->kind == X_CONST ? 0 : (size_t)x->index;
    switch (x->kind) {
    case X_POISON: str_add(p->out, "<error>"); break;
    case X_CONST: print_constant(p, x); break;
    case X_SYMBOL:
        str_add(p->out,
                index < prog->symbols.count ? name_or(prog->symbols.items[index].name) : "?");
        break;
    case X_PARAM:
        str_add(p->out, index < prog->params.count ? name_or(prog->params.items[index].name) : "?");
        break;
    case X_AXIS:
        str_add(p->out, index < prog->axes.count ? name_or(prog->axes.items[index].name) : "?");
        break;
    case X_LOCAL:
        str_add(p->out, p->role && index < p->role->locals.count
                            ? name_or(p->role->locals.items[index].name)
                            : "?");
        break;
    case X_RANK: str_add(p->out, "rank"); break;
    case X_INDEX:
        str_add(p->out, !p->space                    ? "it"
                        : x->index < p->space->count ? name_or(p->space->items[index].name)
                                                     : "?");
        break;
    case X_READ: print_access(p, x->read); break;
    case X_UNARY:
        str_char(p->out, x->unary.op == OP_NEG ? '-' : '!');
        print(p, x->unary.operand, BINDS_UNARY);
        break;
    case X_BINARY: print_binary(p, x); break;
    case X_SELECT: print_select(p, x); break;
    case X_CAST:
        if (x->type == E_U64 && x->cast->kind == X_CONST && x->cast->type == E_I64) {
            str_printf(p->out, "%llu", (unsigned long long)x->cast->constant.integer);
            break;
        }
        str_printf(p->out, "%s(", element_rows[x->type].spelling);
        print(p, x->cast, 0);
        str_char(p->out, ')');
        break;
    case X_CALL:
        if (call_rows[x->call.which].text)
            print_operator(p, x);
        else
            print_call(p, x);
        break;
    case X_REDUCE: print_reduce(p, x); break;
    case X_SCAN: print_scan(p, x); break;
    }
}

static void print(Printer *p, const Expr *x, int strength) {
    if (!x || p->out->length > p->limit) {
        str_add(p->out, x ? "..." : "?");
        return;
    }
    bool bracket = strength_of(x) < strength;
    if (bracket) str_char(p->out, '(');
    print_plain(p, x);
    if (bracket) str_char(p->out, ')');
}

void expr_print(const Expr *expr, const Prog *prog, const Role *role, const IndexSpace *space,
                Str *out) {
    Printer p = {prog, role, space, out, out->length + MAX_TEXT};
    print(&p, expr, 0);
}

void access_print(const Access *access, const Prog *prog, const Role *role, const IndexSpace *space,
                  Str *out) {
    Printer p = {prog, role, space, out, out->length + MAX_TEXT};
    print_access(&p, access);
}
