/* launch: formulas. Evaluates postfix steps with the symbols' values to a number or the reason
 * why there is none; prints them in Pipe's syntax. `&&`, `||` and `?:` are as lazy as in C: a
 * subtree that is not selected cannot fault. So after a fault, and to print, the postfix is walked
 * from its end, where the root is; without one, from its beginning, which is faster. Allocates
 * nothing, because launches evaluate formulas each time. */
#include "launch/manifest.h"

#include <math.h>
#include <string.h>

typedef struct Value {
    int64_t number;
    FormulaFault fault; /* if set, the number is undefined */
} Value;

/* ---- floats -------------------------------------------------------------------------------- */

int64_t formula_order(double value) {
    float number = (float)value;
    uint32_t bits;
    if (isnan(value)) return ORDER_NAN;
    memcpy(&bits, &number, sizeof bits);
    int64_t magnitude = bits & 0x7fffffffu;
    return bits >> 31 ? -magnitude : magnitude;
}

double formula_ordered(int64_t order) {
    uint32_t bits = (uint32_t)(order < 0 ? -order : order) | (order < 0 ? 0x80000000u : 0);
    float number;
    if (order == ORDER_NAN) return (double)NAN;
    memcpy(&number, &bits, sizeof number);
    return (double)number;
}

bool formula_has_floats(const Formula *formula, const Manifest *manifest) {
    for (int i = 0; i < formula->count; i++) {
        const FormulaStep *step = &formula->steps[i];
        if (step->op == F_FLOAT ||
            (step->op == F_SYMBOL && manifest->symbols.items[step->value].is_float))
            return true;
    }
    return false;
}

static bool names_symbol(const Formula *formula, int symbol) {
    for (int i = 0; i < formula->count; i++)
        if (formula->steps[i].op == F_SYMBOL && formula->steps[i].value == symbol) return true;
    return false;
}

/* Some formula that a launch evaluates names the symbol. */
static bool is_compared(const Manifest *manifest, int symbol) {
    bool found = names_symbol(&manifest->tiles, symbol);
    for (size_t k = 0; k < manifest->preconditions.count; k++)
        found |= names_symbol(&manifest->preconditions.items[k].condition, symbol);
    for (size_t k = 0; k < manifest->axes.count; k++)
        found |= names_symbol(&manifest->axes.items[k].extent, symbol);
    for (size_t k = 0; k < manifest->parameters.count; k++)
        for (int axis = 0; axis < manifest->parameters.items[k].rank; axis++)
            found |= names_symbol(&manifest->parameters.items[k].extents[axis], symbol);
    return found;
}

void manifest_find_compared(Manifest *manifest) {
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        ManifestParameter *row = &manifest->parameters.items[i];
        if (row->symbol < 0) continue;
        if (row->type == E_U64 || manifest->symbols.items[row->symbol].is_float)
            row->compared = is_compared(manifest, row->symbol);
    }
}

/* ---- the tree in the postfix ----------------------------------------------------------------- */

int formula_operands(FormulaOp op) {
    switch (op) {
    case F_CONST:
    case F_FLOAT:
    case F_SYMBOL: return 0;
    case F_NEG:
    case F_NOT: return 1;
    case F_ADD:
    case F_SUB:
    case F_MUL:
    case F_DIV:
    case F_MOD:
    case F_CEIL:
    case F_MIN:
    case F_MAX:
    case F_EQ:
    case F_NE:
    case F_LT:
    case F_LE:
    case F_AND:
    case F_OR: return 2;
    case F_SELECT: return 3;
    }
    return 0;
}

/* Index of the step before the subtree whose root is steps[root]. */
static int index_before(const FormulaStep *steps, int root) {
    int wanted = 1;
    while (wanted > 0) {
        wanted += formula_operands(steps[root].op) - 1;
        root--;
    }
    return root;
}

/* ---- evaluation ------------------------------------------------------------------------------ */

static Value number(int64_t n) { return (Value){n, FORMULA_FINE}; }

static Value fault(FormulaFault why) { return (Value){0, why}; }

static Value divide(FormulaOp op, int64_t a, int64_t b) {
    if (b == 0) return fault(FORMULA_ZERO_DIVISOR);
    if (a == INT64_MIN && b == -1) return fault(FORMULA_OVERFLOW);
    int64_t quotient = a / b, rest = a % b;
    if (op == F_MOD) return number(rest);
    bool up = op == F_CEIL && rest != 0 && (rest < 0) == (b < 0);
    return number(quotient + up);
}

static Value arithmetic(FormulaOp op, int64_t a, int64_t b) {
    int64_t out = 0;
    switch (op) {
    case F_ADD: return __builtin_add_overflow(a, b, &out) ? fault(FORMULA_OVERFLOW) : number(out);
    case F_SUB: return __builtin_sub_overflow(a, b, &out) ? fault(FORMULA_OVERFLOW) : number(out);
    case F_MUL: return __builtin_mul_overflow(a, b, &out) ? fault(FORMULA_OVERFLOW) : number(out);
    case F_DIV:
    case F_MOD:
    case F_CEIL: return divide(op, a, b);
    case F_MIN: return number(a < b ? a : b);
    case F_MAX: return number(a > b ? a : b);
    case F_EQ: return number(a == b);
    case F_NE: return number(a != b);
    case F_LT: return number(a < b);
    case F_LE: return number(a <= b);
    case F_CONST:
    case F_FLOAT:
    case F_SYMBOL:
    case F_NEG:
    case F_NOT:
    case F_AND:
    case F_OR:
    case F_SELECT: break;
    }
    return number(0);
}

bool formula_apply(FormulaOp op, int64_t a, int64_t b, int64_t c, int64_t *out) {
    switch (op) {
    case F_NEG: return !__builtin_sub_overflow(0, a, out);
    case F_NOT: *out = a == 0; return true;
    case F_AND: *out = a != 0 && b != 0; return true;
    case F_OR: *out = a != 0 || b != 0; return true;
    case F_SELECT: *out = a != 0 ? b : c; return true;
    case F_ADD: return !__builtin_add_overflow(a, b, out);
    case F_SUB: return !__builtin_sub_overflow(a, b, out);
    case F_MUL: return !__builtin_mul_overflow(a, b, out);
    case F_CONST:
    case F_FLOAT:
    case F_SYMBOL:
    case F_DIV:
    case F_MOD:
    case F_CEIL:
    case F_MIN:
    case F_MAX:
    case F_EQ:
    case F_NE:
    case F_LT:
    case F_LE: break;
    }
    Value value = arithmetic(op, a, b);
    *out = value.number;
    return value.fault == FORMULA_FINE;
}

/* The value of the subtree whose root is steps[root]; sets *root to the index before it. */
static Value evaluate(const FormulaStep *steps, int *root, const int64_t *symbols) {
    const FormulaStep *step = &steps[(*root)--];
    if (step->op == F_CONST || step->op == F_FLOAT) return number(step->value);
    if (step->op == F_SYMBOL) return number(symbols[step->value]);
    Value last = evaluate(steps, root, symbols);
    if (step->op == F_NEG || step->op == F_NOT) {
        if (last.fault != FORMULA_FINE) return last;
        return step->op == F_NEG ? arithmetic(F_SUB, 0, last.number) : number(last.number == 0);
    }
    Value middle = evaluate(steps, root, symbols);
    if (step->op == F_SELECT) {
        Value condition = evaluate(steps, root, symbols);
        return condition.fault != FORMULA_FINE ? condition : condition.number != 0 ? middle : last;
    }
    Value first = middle;
    if (first.fault != FORMULA_FINE) return first;
    if (step->op == F_AND && first.number == 0) return number(0);
    if (step->op == F_OR && first.number != 0) return number(1);
    if (last.fault != FORMULA_FINE) return last;
    if (step->op == F_AND || step->op == F_OR) return number(last.number != 0);
    return arithmetic(step->op, first.number, last.number);
}

#define EAGER_DEPTH 16 /* operands that wait */

/* Evaluates all operands, also those that are not selected. False: one of them faults, or too many
 * wait, and nothing is known of the value. */
static bool evaluate_eagerly(const Formula *formula, const int64_t *symbols, int64_t *out) {
    int64_t waiting[EAGER_DEPTH], top = 0; /* top: the last operand, after those that wait */
    int depth = -1;                        /* number of those that wait */
    for (int i = 0; i < formula->count; i++) {
        const FormulaStep *step = &formula->steps[i];
        switch (step->op) {
        case F_CONST:
        case F_FLOAT:
        case F_SYMBOL:
            if (depth == EAGER_DEPTH) return false;
            if (depth >= 0) waiting[depth] = top;
            depth++;
            top = step->op == F_SYMBOL ? symbols[step->value] : step->value;
            continue;
        case F_NOT: top = top == 0; continue;
        case F_NEG:
            if (__builtin_sub_overflow(0, top, &top)) return false;
            continue;
        case F_ADD:
            if (__builtin_add_overflow(waiting[--depth], top, &top)) return false;
            continue;
        case F_SUB:
            if (__builtin_sub_overflow(waiting[--depth], top, &top)) return false;
            continue;
        case F_MUL:
            if (__builtin_mul_overflow(waiting[--depth], top, &top)) return false;
            continue;
        case F_AND: top = (waiting[--depth] != 0) & (top != 0); continue;
        case F_OR: top = (waiting[--depth] != 0) | (top != 0); continue;
        case F_SELECT:
            depth -= 2;
            top = waiting[depth] != 0 ? waiting[depth + 1] : top;
            continue;
        case F_DIV:
        case F_MOD:
        case F_CEIL:
        case F_MIN:
        case F_MAX:
        case F_EQ:
        case F_NE:
        case F_LT:
        case F_LE: break;
        }
        Value value = arithmetic(step->op, waiting[--depth], top);
        if (value.fault != FORMULA_FINE) return false;
        top = value.number;
    }
    *out = top;
    return true;
}

FormulaFault formula_eval_steps(const Formula *formula, const int64_t *symbols, int64_t *out) {
    int root = formula->count - 1;
    if (evaluate_eagerly(formula, symbols, out)) return FORMULA_FINE;
    Value value = evaluate(formula->steps, &root, symbols);
    *out = value.number;
    return value.fault;
}

/* ---- text ------------------------------------------------------------------------------------ */

enum {
    BINDS_SELECT = 1,
    BINDS_OR,
    BINDS_AND,
    BINDS_EQUAL,
    BINDS_LESS,
    BINDS_SUM,
    BINDS_PRODUCT,
    BINDS_UNARY,
    BINDS_ATOM
};

static int binding(const FormulaStep *step) {
    switch (step->op) {
    case F_CONST: return step->value < 0 ? BINDS_UNARY : BINDS_ATOM;
    case F_NEG:
    case F_NOT: return BINDS_UNARY;
    case F_ADD:
    case F_SUB: return BINDS_SUM;
    case F_MUL:
    case F_DIV:
    case F_MOD: return BINDS_PRODUCT;
    case F_EQ:
    case F_NE: return BINDS_EQUAL;
    case F_LT:
    case F_LE: return BINDS_LESS;
    case F_AND: return BINDS_AND;
    case F_OR: return BINDS_OR;
    case F_SELECT: return BINDS_SELECT;
    case F_FLOAT:
    case F_SYMBOL:
    case F_CEIL:
    case F_MIN:
    case F_MAX: return BINDS_ATOM;
    }
    return BINDS_ATOM;
}

/* "ceil" for an operation written as a call, " + " for one written between its operands. */
static const char *spelling(FormulaOp op) {
    switch (op) {
    case F_NEG: return "-";
    case F_NOT: return "!";
    case F_ADD: return " + ";
    case F_SUB: return " - ";
    case F_MUL: return " * ";
    case F_DIV: return " / ";
    case F_MOD: return " % ";
    case F_EQ: return " == ";
    case F_NE: return " != ";
    case F_LT: return " < ";
    case F_LE: return " <= ";
    case F_AND: return " && ";
    case F_OR: return " || ";
    case F_CEIL: return "ceil";
    case F_MIN: return "min";
    case F_MAX: return "max";
    case F_CONST:
    case F_FLOAT:
    case F_SYMBOL:
    case F_SELECT: break;
    }
    return "";
}

typedef struct Printer {
    const FormulaStep *steps;
    const Manifest *manifest;
    Str *out;
} Printer;

static void print(const Printer *printer, int root, int least);

static void print_call(const Printer *printer, int first, int second, FormulaOp op) {
    str_printf(printer->out, "%s(", spelling(op));
    print(printer, first, BINDS_SELECT);
    str_add(printer->out, ", ");
    print(printer, second, BINDS_SELECT);
    str_char(printer->out, ')');
}

static void print_bare(const Printer *printer, int root) {
    const FormulaStep *step = &printer->steps[root];
    int binds = binding(step), last = root - 1;
    if (step->op == F_CONST) {
        str_printf(printer->out, "%lld", (long long)step->value);
        return;
    }
    if (step->op == F_FLOAT) { /* as in PTX: exact */
        uint32_t sign = step->value < 0 ? 0x80000000u : 0;
        uint32_t magnitude = (uint32_t)(step->value < 0 ? -step->value : step->value);
        str_printf(printer->out, "0f%08X", sign | magnitude);
        return;
    }
    if (step->op == F_SYMBOL) {
        str_add(printer->out, printer->manifest->symbols.items[step->value].name);
        return;
    }
    if (step->op == F_NEG || step->op == F_NOT) {
        str_add(printer->out, spelling(step->op));
        print(printer, last, step->op == F_NEG ? BINDS_ATOM : BINDS_UNARY);
        return;
    }
    int first = index_before(printer->steps, last);
    if (step->op == F_CEIL || step->op == F_MIN || step->op == F_MAX) {
        print_call(printer, first, last, step->op);
        return;
    }
    if (step->op == F_SELECT) {
        print(printer, index_before(printer->steps, first), BINDS_OR);
        str_add(printer->out, " ? ");
        print(printer, first, BINDS_SELECT);
        str_add(printer->out, " : ");
        print(printer, last, BINDS_SELECT);
        return;
    }
    /* Chained comparisons have other meanings in other languages: they keep parentheses on both
     * sides */
    bool chains = binds != BINDS_EQUAL && binds != BINDS_LESS;
    print(printer, first, chains ? binds : BINDS_SUM);
    str_add(printer->out, spelling(step->op));
    print(printer, last, chains ? binds + 1 : BINDS_SUM);
}

/* Prints the subtree, in parentheses if its precedence is lower than `least`. */
static void print(const Printer *printer, int root, int least) {
    bool parentheses = binding(&printer->steps[root]) < least;
    if (parentheses) str_char(printer->out, '(');
    print_bare(printer, root);
    if (parentheses) str_char(printer->out, ')');
}

void formula_print(const Formula *formula, const Manifest *manifest, Str *out) {
    Printer printer = {formula->steps, manifest, out};
    if (formula->count > 0) print(&printer, formula->count - 1, BINDS_SELECT);
}
