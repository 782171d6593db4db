/* Expressions to registers. An expression is evaluated at the outermost point that it depends
 * on: a value without indexes once per statement, one that does not depend on the innermost
 * index once per vector of elements (Point). f32 instructions state their rounding, so that the
 * result is defined: ptxas may not contract `mul.rn` and `add.rn`; codegen forms fma itself. */
#include "codegen/gen.h"
#include "prog/eval.h"
#include "prog/rounding.h"

#include <string.h>

typedef struct Known {
    const Expr *expr;
    Value value;
    struct Known *next;
} Known;

typedef struct Memory {
    Known **lists; /* by expression */
    size_t list_count, count;
} Memory;

/* ---- values ---------------------------------------------------------------------------------- */

Value value_integer(Element type, int64_t integer) { return (Value){type, PTX_NONE, integer, 0}; }
Value value_reg(Element type, Reg reg) { return (Value){type, reg, 0, 0}; }

static Value value_number(double number) { return (Value){E_F32, PTX_NONE, 0, number}; }

RegClass class_of(Element type) {
    if (type == E_BOOL) return REG_PRED;
    return element_rows[type].bytes == 8 ? REG_64 : REG_32;
}

const char *suffix_of(Element type) { return element_rows[type].ptx; }

Operand value_operand(Value value) {
    if (value.reg.class != REG_NONE) return ptx_reg(value.reg);
    return value.type == E_F32 ? ptx_f32((float)value.number) : ptx_int(value.integer);
}

Reg value_in_reg(Gen *gen, Value value) {
    if (value.reg.class != REG_NONE) return value.reg;
    if (value.type == E_BOOL)
        return PURE(gen->ptx, REG_PRED, "setp.ne.u32", ptx_int(value.integer), ptx_int(0));
    RegClass class = class_of(value.type);
    return PURE(gen->ptx, class, class == REG_64 ? "mov.b64" : "mov.b32", value_operand(value));
}

/* "add.rn." + "f32": opcodes are in the arena. */
static const char *op_typed(Gen *gen, const char *op, Element type) {
    return arena_printf(gen->arena, "%s.%s", op, suffix_of(type));
}

/* ---- points ---------------------------------------------------------------------------------- */

Point *point_home(Point *point, const Expr *expr) {
    while (point->outer != NULL && (expr->indexes & point->own) == 0) point = point->outer;
    return point;
}

/* The number of lists is a power of two. */
static Known **list_of(const Memory *memory, const Expr *expr) {
    uint64_t hash = ((uintptr_t)expr >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 32;
    return &memory->lists[hash & (memory->list_count - 1)];
}

static Memory *memory_new(Gen *gen, size_t list_count) {
    Memory *memory = NEW(gen->arena, Memory);
    memory->lists = NEW_ARRAY(gen->arena, Known *, list_count);
    memory->list_count = list_count;
    return memory;
}

static void add_known(Memory *memory, Known *known) {
    Known **list = list_of(memory, known->expr);
    known->next = *list;
    *list = known;
    memory->count++;
}

static Memory *larger(Gen *gen, const Memory *old) {
    Memory *memory = memory_new(gen, old->list_count == 1 ? 64 : 4 * old->list_count);
    for (size_t i = 0; i < old->list_count; i++)
        for (Known *known = old->lists[i], *next; known != NULL; known = next) {
            next = known->next;
            add_known(memory, known);
        }
    return memory;
}

void point_know(Gen *gen, Point *point, const Expr *expr, Value value) {
    if (point->known == NULL) point->known = memory_new(gen, 1); /* most stay short */
    if (point->known->count >= point->known->list_count + 15)
        point->known = larger(gen, point->known);
    Known *known = NEW(gen->arena, Known);
    *known = (Known){expr, value, NULL};
    add_known(point->known, known);
}

bool point_knows(const Point *point, const Expr *expr, Value *out) {
    if (point->known == NULL) return false;
    for (const Known *known = *list_of(point->known, expr); known != NULL; known = known->next)
        if (known->expr == expr) {
            *out = known->value;
            return true;
        }
    return false;
}

void point_share(Gen *gen, Point *point, const Point *from, const Expr *expr) {
    Value value;
    if (!point_knows(point, expr, &value) && point_knows(from, expr, &value))
        point_know(gen, point, expr, value);
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static bool is_float(Element type) { return element_rows[type].kind == ELEMENT_FLOAT; }

static const char *binary_op(Gen *gen, BinaryOp op, Element type) {
    bool real = is_float(type);
    switch (op) {
    case OP_ADD: return real ? "add.rn.f32" : op_typed(gen, "add", type);
    case OP_SUB: return real ? "sub.rn.f32" : op_typed(gen, "sub", type);
    case OP_MUL: return real ? "mul.rn.f32" : op_typed(gen, "mul.lo", type);
    case OP_DIV: return real ? "div.full.f32" : op_typed(gen, "div", type);
    case OP_MOD: return op_typed(gen, "rem", type);
    case OP_EQ: return op_typed(gen, "setp.eq", type);
    /* NaN differs from all, as in C */
    case OP_NE: return op_typed(gen, real ? "setp.neu" : "setp.ne", type);
    case OP_LT: return op_typed(gen, "setp.lt", type);
    case OP_LE: return op_typed(gen, "setp.le", type);
    case OP_GT: return op_typed(gen, "setp.gt", type);
    case OP_GE: return op_typed(gen, "setp.ge", type);
    case OP_AND: return "and.pred";
    case OP_OR: return "or.pred";
    }
    return NULL;
}

static Value float_reg(Reg reg) { return value_reg(E_F32, reg); }

/* The factor that keeps the reciprocal of `divisor` a normal number (prog/rounding.h) */
static Reg scale_of(Gen *gen, Operand divisor) {
    Ptx *ptx = gen->ptx;
    Operand magnitude = ptx_reg(PURE(ptx, REG_32, "abs.f32", divisor));
    Reg large = PURE(ptx, REG_PRED, "setp.gt.f32", magnitude, ptx_f32(ROUNDING_LARGE));
    Reg small = PURE(ptx, REG_PRED, "setp.lt.f32", magnitude, ptx_f32(ROUNDING_SMALL));
    Reg scale =
        PURE(ptx, REG_32, "selp.f32", ptx_f32(ROUNDING_LARGE_SCALE), ptx_f32(1), ptx_reg(large));
    return PURE(ptx, REG_32, "selp.f32", ptx_f32(ROUNDING_SMALL_SCALE), ptx_reg(scale),
                ptx_reg(small));
}

/* The reciprocal is computed once for all elements. */
static Value divide_scaled(Gen *gen, Operand left, Operand divisor) {
    Operand scale = ptx_reg(scale_of(gen, divisor));
    Reg scaled = PURE(gen->ptx, REG_32, "mul.rn.f32", divisor, scale);
    Reg inverse = PURE(gen->ptx, REG_32, "rcp.approx.ftz.f32", ptx_reg(scaled));
    Reg dividend = PURE(gen->ptx, REG_32, "mul.rn.f32", left, scale);
    return float_reg(PURE(gen->ptx, REG_32, "mul.rn.f32", ptx_reg(dividend), ptx_reg(inverse)));
}

/* a * b + c or a * b - c */
static Value fuse(Gen *gen, Point *point, const Expr *expr, const Rounding *rounding) {
    Value a = eval(gen, point, rounding->a), b = eval(gen, point, rounding->b),
          c = eval(gen, point, rounding->c);
    if (expr->binary.op == OP_SUB)
        c = c.reg.class == REG_NONE
                ? value_number(-c.number)
                : float_reg(PURE(gen->ptx, REG_32, "neg.f32", value_operand(c)));
    return float_reg(
        PURE(gen->ptx, REG_32, "fma.rn.f32", value_operand(a), value_operand(b), value_operand(c)));
}

/* A sum, difference, product or quotient, as rounding.h chooses */
static Value compute_float(Gen *gen, Point *point, const Expr *expr) {
    Rounding rounding = rounding_of(gen->role ? gen->role->role : NULL, expr);
    if (rounding.form == ROUNDING_FUSED) return fuse(gen, point, expr, &rounding);
    Operand left = value_operand(eval(gen, point, rounding.a));
    if (rounding.form == ROUNDING_INVERSE)
        return float_reg(PURE(gen->ptx, REG_32, "mul.rn.f32", left,
                              value_operand(value_number(rounding.inverse))));
    Operand right = value_operand(eval(gen, point, rounding.b));
    if (rounding.form == ROUNDING_SCALED) return divide_scaled(gen, left, right);
    bool exact = expr->binary.op == OP_DIV && expr->binary.accuracy == ACCURACY_EXACT;
    return float_reg(PURE(gen->ptx, REG_32,
                          exact ? "div.rn.f32" : binary_op(gen, expr->binary.op, E_F32), left,
                          right));
}

static Value compute_bool_equal(Gen *gen, const Expr *expr, Value left, Value right) {
    Reg differs = PURE(gen->ptx, REG_PRED, "xor.pred", ptx_reg(value_in_reg(gen, left)),
                       ptx_reg(value_in_reg(gen, right)));
    if (expr->binary.op == OP_NE) return value_reg(E_BOOL, differs);
    return value_reg(E_BOOL, PURE(gen->ptx, REG_PRED, "not.pred", ptx_reg(differs)));
}

/* C's x / 2^bits and x % 2^bits, towards zero: ptxas emits a general division if it does not
 * know the sign of x. */
static Value divide_by_power(Gen *gen, BinaryOp op, Value x, int bits) {
    Ptx *ptx = gen->ptx;
    if (bits == 0) return op == OP_DIV ? x : value_integer(x.type, 0);
    Reg value = value_in_reg(gen, x), rounded = value;
    if (x.type == E_I32) { /* negative numbers are rounded up */
        Reg sign = PURE(ptx, REG_32, "shr.s32", ptx_reg(value), ptx_int(31));
        Reg up = PURE(ptx, REG_32, "shr.u32", ptx_reg(sign), ptx_int(32 - bits));
        rounded = PURE(ptx, REG_32, "add.s32", ptx_reg(value), ptx_reg(up));
    }
    Reg quotient =
        PURE(ptx, REG_32, x.type == E_I32 ? "shr.s32" : "shr.u32", ptx_reg(rounded), ptx_int(bits));
    if (op == OP_DIV) return value_reg(x.type, quotient);
    Reg whole = PURE(ptx, REG_32, "shl.b32", ptx_reg(quotient), ptx_int(bits));
    return value_reg(x.type, PURE(ptx, REG_32, "sub.s32", ptx_reg(value), ptx_reg(whole)));
}

/* k if the value is the constant 2^k below 2^31, otherwise -1 */
static int power_of(Value value) {
    int bits = 0;
    if (value.reg.class != REG_NONE || value.integer <= 0 || value.integer > INT32_MAX) return -1;
    if ((value.integer & (value.integer - 1)) != 0) return -1;
    while (value.integer >> bits > 1) bits++;
    return bits;
}

/* An index below an extent, as `k < D`: the predicate of accesses with that subscript. False: it is
 * another comparison */
static bool index_below(Gen *gen, Point *point, const Expr *expr, Value *out) {
    const Expr *left = expr->binary.left, *right = expr->binary.right;
    bool known;
    if (expr->binary.op != OP_LT || left->kind != X_INDEX || right->kind != X_SYMBOL) return false;
    Reg reg = lin_below(gen, point->indexes[left->index], right, &known);
    *out = known ? value_integer(E_BOOL, 1) : value_reg(E_BOOL, reg);
    return known || reg.class != REG_NONE;
}

static Value compute_binary(Gen *gen, Point *point, const Expr *expr) {
    Value below;
    if (is_float(expr->type)) return compute_float(gen, point, expr);
    if (index_below(gen, point, expr, &below)) return below;
    BinaryOp op = expr->binary.op;
    Value left = eval(gen, point, expr->binary.left), right = eval(gen, point, expr->binary.right);
    Element operands = element_rows[expr->binary.left->type].widens;
    if (operands == E_BOOL) {
        if (op == OP_EQ || op == OP_NE) return compute_bool_equal(gen, expr, left, right);
        return value_reg(E_BOOL,
                         PURE(gen->ptx, REG_PRED, binary_op(gen, op, operands),
                              ptx_reg(value_in_reg(gen, left)), ptx_reg(value_in_reg(gen, right))));
    }
    bool divides = (op == OP_DIV || op == OP_MOD) && (operands == E_I32 || operands == E_U32);
    if (divides && power_of(right) >= 0) return divide_by_power(gen, op, left, power_of(right));
    RegClass class = class_of(expr->type);
    Reg reg = PURE(gen->ptx, class, binary_op(gen, op, operands), value_operand(left),
                   value_operand(right));
    return value_reg(element_rows[expr->type].widens, reg);
}

static Value compute_unary(Gen *gen, Point *point, const Expr *expr) {
    Value value = eval(gen, point, expr->unary.operand);
    if (expr->unary.op == OP_NOT)
        return value_reg(E_BOOL,
                         PURE(gen->ptx, REG_PRED, "not.pred", ptx_reg(value_in_reg(gen, value))));
    Element type = value.type;
    /* PTX negates only signed integers; in two's complement that is right for unsigned ones too */
    const char *op = is_float(type)                  ? "neg.f32"
                     : element_rows[type].bytes == 8 ? "neg.s64"
                                                     : "neg.s32";
    return value_reg(type, PURE(gen->ptx, class_of(type), op, value_operand(value)));
}

static Value compute_select(Gen *gen, Point *point, const Expr *expr) {
    Value known = eval(gen, point, expr->select.condition);
    if (known.reg.class == REG_NONE)
        return eval(gen, point, known.integer ? expr->select.then : expr->select.otherwise);
    Reg condition = known.reg;
    Value then = eval(gen, point, expr->select.then),
          otherwise = eval(gen, point, expr->select.otherwise);
    if (then.type == E_BOOL) {
        Reg yes = PURE(gen->ptx, REG_PRED, "and.pred", ptx_reg(condition),
                       ptx_reg(value_in_reg(gen, then)));
        Reg not = PURE(gen->ptx, REG_PRED, "not.pred", ptx_reg(condition));
        Reg no = PURE(gen->ptx, REG_PRED, "and.pred", ptx_reg(not ),
                      ptx_reg(value_in_reg(gen, otherwise)));
        return value_reg(E_BOOL, PURE(gen->ptx, REG_PRED, "or.pred", ptx_reg(yes), ptx_reg(no)));
    }
    RegClass class = class_of(then.type);
    return value_reg(then.type,
                     PURE(gen->ptx, class, class == REG_64 ? "selp.b64" : "selp.b32",
                          value_operand(then), value_operand(otherwise), ptx_reg(condition)));
}

/* ---- casts ----------------------------------------------------------------------------------- */

/* Rounds to a narrower float and widens again. */
static Value round_float(Gen *gen, Element type, Value value) {
    return widen_one(gen, type,
                     is_float8(type) ? float8_saturated(gen, type, value_in_reg(gen, value))
                                     : narrow_one(gen, type, value));
}

/* To an integer: truncated and saturated; NaN gives 0, which cvt.rzi does to 32 bits only (PTX
 * ISA 9.7.9.22). */
static Value float_to_integer(Gen *gen, Element type, Value value) {
    Element wide = element_rows[type].widens;
    Reg reg =
        PURE(gen->ptx, class_of(wide), arena_printf(gen->arena, "cvt.rzi.%s.f32", suffix_of(wide)),
             value_operand(value));
    if (class_of(wide) == REG_64) {
        Reg number =
            PURE(gen->ptx, REG_PRED, "setp.num.f32", value_operand(value), value_operand(value));
        reg = PURE(gen->ptx, REG_64, "selp.b64", ptx_reg(reg), ptx_int(0), ptx_reg(number));
    } else if (type == E_I8 || type == E_U8) {
        reg = PURE(gen->ptx, REG_32, "max.s32", ptx_reg(reg), ptx_int(type == E_I8 ? -128 : 0));
        reg = PURE(gen->ptx, REG_32, "min.s32", ptx_reg(reg), ptx_int(type == E_I8 ? 127 : 255));
    }
    return value_reg(wide, reg);
}

/* Between integers: wraps. */
static Value integer_to_integer(Gen *gen, Element type, Value value) {
    Element wide = element_rows[type].widens;
    Reg reg = value_in_reg(gen, value);
    if (reg.class == REG_PRED) {
        reg = PURE(gen->ptx, REG_32, "selp.b32", ptx_int(1), ptx_int(0), ptx_reg(reg));
        value.type = E_I32;
    }
    if (type == E_I8)
        reg = PURE(gen->ptx, REG_32, "cvt.s32.s8",
                   ptx_reg(integer_to_integer(gen, E_I32, value_reg(value.type, reg)).reg));
    else if (type == E_U8)
        reg = PURE(gen->ptx, REG_32, "and.b32",
                   ptx_reg(integer_to_integer(gen, E_I32, value_reg(value.type, reg)).reg),
                   ptx_int(255));
    else if (class_of(wide) != reg.class)
        reg = PURE(gen->ptx, class_of(wide),
                   class_of(wide) == REG_32 ? "cvt.u32.u64"
                   : value.type == E_I32    ? "cvt.s64.s32"
                                            : "cvt.u64.u32",
                   ptx_reg(reg));
    return value_reg(wide, reg);
}

static Value compute_cast(Gen *gen, Point *point, const Expr *expr) {
    Value value = eval(gen, point, expr->cast);
    Element to = expr->type;
    if (to == E_BOOL) return value;
    if (is_float(value.type)) {
        if (!is_float(to)) return float_to_integer(gen, to, value);
        return to == E_F32 || to == E_TF32 ? value : round_float(gen, to, value);
    }
    if (!is_float(to)) return integer_to_integer(gen, to, value);
    if (value.type == E_BOOL) value = integer_to_integer(gen, E_I32, value);
    Reg reg =
        PURE(gen->ptx, REG_32, arena_printf(gen->arena, "cvt.rn.f32.%s", suffix_of(value.type)),
             ptx_reg(value_in_reg(gen, value)));
    value = value_reg(E_F32, reg);
    return to == E_F32 ? value : round_float(gen, to, value);
}

/* ---- intrinsics ------------------------------------------------------------------------------ */

static Reg pure1(Gen *gen, const char *op, Value a) {
    return PURE(gen->ptx, class_of(a.type), op, value_operand(a));
}

static Reg pure2(Gen *gen, const char *op, Value a, Value b) {
    return PURE(gen->ptx, class_of(a.type), op, value_operand(a), value_operand(b));
}

/* floor(a / 2^bits), plus 1 for a remainder: right for negative numbers too */
static Value ceil_by_power(Gen *gen, Value a, int bits) {
    Reg value = value_in_reg(gen, a);
    if (bits == 0) return a;
    Reg floor = PURE(gen->ptx, REG_32, op_typed(gen, "shr", a.type), ptx_reg(value), ptx_int(bits));
    Reg rest = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(value), ptx_int(((int64_t)1 << bits) - 1));
    Reg more = PURE(gen->ptx, REG_32, "min.u32", ptx_reg(rest), ptx_int(1));
    return value_reg(a.type, PURE(gen->ptx, REG_32, op_typed(gen, "add", a.type), ptx_reg(floor),
                                  ptx_reg(more)));
}

/* The least integer >= a / b for b > 0: C's division already rounds up where a <= 0. */
static Value ceil_divide(Gen *gen, Value a, Value b) {
    RegClass class = class_of(a.type);
    if (class == REG_32 && power_of(b) >= 0) return ceil_by_power(gen, a, power_of(b));
    const char *divide = op_typed(gen, "div", a.type);
    Reg positive =
        PURE(gen->ptx, REG_PRED, op_typed(gen, "setp.gt", a.type), value_operand(a), ptx_int(0));
    Reg less = PURE(gen->ptx, class, op_typed(gen, "sub", a.type), value_operand(a), ptx_int(1));
    Reg below = PURE(gen->ptx, class, divide, ptx_reg(less), value_operand(b));
    Reg up = PURE(gen->ptx, class, op_typed(gen, "add", a.type), ptx_reg(below), ptx_int(1));
    Reg plain = PURE(gen->ptx, class, divide, value_operand(a), value_operand(b));
    return value_reg(a.type, PURE(gen->ptx, class, class == REG_64 ? "selp.b64" : "selp.b32",
                                  ptx_reg(up), ptx_reg(plain), ptx_reg(positive)));
}

/* ptxas takes the result of an integer abs for not negative, which that of the least integer is
 * (seen with ptxas 13.0: a comparison with 0 was folded): a maximum it does not. */
static Reg absolute(Gen *gen, Value a) {
    RegClass class = class_of(a.type);
    if (element_rows[a.type].kind == ELEMENT_UNSIGNED) return value_in_reg(gen, a);
    if (element_rows[a.type].kind == ELEMENT_FLOAT)
        return pure1(gen, op_typed(gen, "abs", a.type), a);
    Reg negated = pure1(gen, op_typed(gen, "neg", a.type), a);
    return PURE(gen->ptx, class, op_typed(gen, "max", a.type), value_operand(a), ptx_reg(negated));
}

/* 1 / (1 + 2^(x * -log2(e))): where the power is infinite, the reciprocal is 0. */
static Reg sigmoid(Gen *gen, Value a) {
    Reg power =
        PURE(gen->ptx, REG_32, "mul.rn.f32", value_operand(a), ptx_f32(-1.4426950408889634f));
    power = PURE(gen->ptx, REG_32, "ex2.approx.ftz.f32", ptx_reg(power));
    Reg sum = PURE(gen->ptx, REG_32, "add.rn.f32", ptx_reg(power), ptx_f32(1));
    return PURE(gen->ptx, REG_32, "rcp.approx.ftz.f32", ptx_reg(sum));
}

/* "and.b32" */
static const char *op_sized(Gen *gen, const char *op, Element type) {
    return arena_printf(gen->arena, "%s.b%d", op, class_of(type) == REG_64 ? 64 : 32);
}

/* Shifts clamp their amount to the width (PTX ISA 9.7.8.7). */
static Reg bits(Gen *gen, Intrinsic which, const Value *args) {
    static const char *const names[] = {
        [IN_bit_and] = "and", [IN_bit_or] = "or",    [IN_bit_xor] = "xor", [IN_shl] = "shl",
        [IN_shr] = "shr",     [IN_mulhi] = "mul.hi", [IN_popc] = "popc",   [IN_clz] = "clz"};
    if (which == IN_bits) return value_in_reg(gen, args[0]); /* registers have no type */
    if (which == IN_random_bits) return gen_random_bits(gen, args[0], args[1]);
    if (which == IN_random) return gen_random(gen, gen_random_bits(gen, args[0], args[1]));
    Value a = value_reg(args[0].type, value_in_reg(gen, args[0]));
    bool typed = which == IN_shr || which == IN_mulhi;
    const char *op =
        typed ? op_typed(gen, names[which], a.type) : op_sized(gen, names[which], a.type);
    if (which == IN_popc || which == IN_clz) return PURE(gen->ptx, REG_32, op, ptx_reg(a.reg));
    return pure2(gen, op, a, args[1]);
}

static Reg exponential(Gen *gen, Value a) {
    Reg power =
        PURE(gen->ptx, REG_32, "mul.rn.f32", value_operand(a), ptx_f32(1.4426950408889634f));
    return PURE(gen->ptx, REG_32, "ex2.approx.ftz.f32", ptx_reg(power));
}

static Value compute_call(Gen *gen, Point *point, const Expr *expr) {
    Value args[3];
    for (int i = 0; i < expr->call.count; i++) args[i] = eval(gen, point, expr->call.args[i]);
    Value a = args[0];
    bool exact = expr->call.accuracy == ACCURACY_EXACT;
    RegClass class = class_of(a.type);
    Reg reg = PTX_NONE;
    switch (expr->call.which) {
    case IN_abs: reg = absolute(gen, a); break;
    case IN_min: reg = pure2(gen, op_typed(gen, "min", a.type), a, args[1]); break;
    case IN_max: reg = pure2(gen, op_typed(gen, "max", a.type), a, args[1]); break;
    case IN_fma:
        reg =
            PURE(gen->ptx, class, is_float(a.type) ? "fma.rn.f32" : op_typed(gen, "mad.lo", a.type),
                 value_operand(a), value_operand(args[1]), value_operand(args[2]));
        break;
    case IN_sqrt: reg = pure1(gen, exact ? "sqrt.rn.f32" : "sqrt.approx.ftz.f32", a); break;
    case IN_rsqrt:
        reg = exact ? pure1(gen, "rcp.rn.f32", value_reg(E_F32, pure1(gen, "sqrt.rn.f32", a)))
                    : pure1(gen, "rsqrt.approx.ftz.f32", a);
        break;
    case IN_rcp: reg = pure1(gen, exact ? "rcp.rn.f32" : "rcp.approx.ftz.f32", a); break;
    case IN_exp: reg = exponential(gen, a); break;
    case IN_exp2: reg = pure1(gen, "ex2.approx.ftz.f32", a); break;
    case IN_log:
        reg = pure1(gen, "lg2.approx.ftz.f32", a);
        reg = PURE(gen->ptx, REG_32, "mul.rn.f32", ptx_reg(reg), ptx_f32(0.6931471805599453f));
        break;
    case IN_log2: reg = pure1(gen, "lg2.approx.ftz.f32", a); break;
    case IN_sin:
        reg = exact ? gen_sine(gen, value_in_reg(gen, a), false)
                    : pure1(gen, "sin.approx.ftz.f32", a);
        break;
    case IN_cos:
        reg =
            exact ? gen_sine(gen, value_in_reg(gen, a), true) : pure1(gen, "cos.approx.ftz.f32", a);
        break;
    case IN_tanh: reg = pure1(gen, "tanh.approx.f32", a); break;
    case IN_floor: reg = pure1(gen, "cvt.rmi.f32.f32", a); break;
    case IN_ceil: reg = pure1(gen, "cvt.rpi.f32.f32", a); break;
    case IN_round: reg = pure1(gen, "cvt.rni.f32.f32", a); break;
    case IN_clamp:
        reg = PURE(gen->ptx, REG_32, "max.NaN.f32", value_operand(a), value_operand(args[1]));
        reg = PURE(gen->ptx, REG_32, "min.NaN.f32", ptx_reg(reg), value_operand(args[2]));
        break;
    case IN_ceil_div: return ceil_divide(gen, a, args[1]);
    case IN_expm1: reg = gen_expm1(gen, value_in_reg(gen, a)); break;
    case IN_log1p: reg = gen_log1p(gen, value_in_reg(gen, a)); break;
    case IN_erf: reg = gen_erf(gen, value_in_reg(gen, a)); break;
    case IN_pow: reg = gen_power(gen, value_in_reg(gen, a), value_in_reg(gen, args[1])); break;
    case IN_sigmoid: reg = sigmoid(gen, a); break;
    case IN_isnan: /* elaborated as x != x */
    case IN_COUNT: break;
    case IN_bit_and:
    case IN_bit_or:
    case IN_bit_xor:
    case IN_shl:
    case IN_shr:
    case IN_mulhi:
    case IN_popc:
    case IN_clz:
    case IN_bits:
    case IN_random_bits:
    case IN_random: reg = bits(gen, expr->call.which, args); break;
    }
    return value_reg(element_rows[expr->type].widens, reg);
}

/* ---- reads ----------------------------------------------------------------------------------- */

const char *memory_suffix(Element type) {
    switch (element_rows[type].bytes) {
    case 1: return "b8";
    case 2: return "b16";
    case 4: return "b32";
    }
    return "b64";
}

RegClass memory_class(Element type) {
    int bytes = element_rows[type].bytes;
    return bytes <= 2 ? REG_16 : bytes == 4 ? REG_32 : REG_64;
}

Reg read_guard(Gen *gen, Point *point, const Access *access) {
    if (access->space != SPACE_GLOBAL) return PTX_NONE;
    Reg inside = global_inside(gen, point, access);
    bool written = gen->prog->params.items[access->object].mode == PARAM_INOUT;
    return written ? ptx_both(gen->ptx, inside, point->mask) : inside;
}

/* The stored bits of an element, in a register of its memory class; zero where it is not read. */
Reg read_bits(Gen *gen, Point *point, const Access *access) {
    Reg loaded = ptx_new_reg(gen->ptx, memory_class(access->type));
    if (access->space == SPACE_GLOBAL) {
        Reg inside = read_guard(gen, point, access);
        Operand address = global_address(gen, point, access);
        const char *op = arena_printf(gen->arena, "ld.global.%s", memory_suffix(access->type));
        if (inside.class != REG_NONE) {
            const char *move = arena_printf(
                gen->arena, "mov.b%d",
                8 * (memory_class(access->type) == REG_16 ? 2 : element_rows[access->type].bytes));
            INS(gen->ptx, move, ptx_reg(loaded), ptx_int(0));
        }
        ptx_ins(gen->ptx, inside, false, op, (Operand[]){ptx_reg(loaded), address}, 2);
    } else {
        Operand address = shared_address(gen, point, access);
        const char *op = arena_printf(gen->arena, "ld.shared.%s", memory_suffix(access->type));
        INS(gen->ptx, op, ptx_reg(loaded), address);
    }
    return loaded;
}

Value widen_one(Gen *gen, Element type, Reg loaded) {
    switch (type) {
    case E_BF16: {
        Reg wide = PURE(gen->ptx, REG_32, "cvt.u32.u16", ptx_reg(loaded));
        return value_reg(E_F32, PURE(gen->ptx, REG_32, "shl.b32", ptx_reg(wide), ptx_int(16)));
    }
    case E_F16: return value_reg(E_F32, PURE(gen->ptx, REG_32, "cvt.f32.f16", ptx_reg(loaded)));
    case E_I8: return value_reg(E_I32, PURE(gen->ptx, REG_32, "cvt.s32.s8", ptx_reg(loaded)));
    case E_U8: return value_reg(E_I32, PURE(gen->ptx, REG_32, "cvt.u32.u8", ptx_reg(loaded)));
    case E_F32:
    case E_TF32: return value_reg(E_F32, loaded);
    case E_I32:
    case E_U32:
    case E_I64:
    case E_U64: return value_reg(type, loaded);
    case E_E4M3:
    case E_E5M2: return value_reg(E_F32, float8_widened(gen, type, loaded, 0));
    case E_BOOL:
    case E_COUNT: break; /* not in memory */
    }
    return value_reg(type, loaded);
}

Reg narrow_one(Gen *gen, Element type, Value value) {
    switch (type) {
    case E_BF16: return PURE(gen->ptx, REG_16, "cvt.rn.bf16.f32", value_operand(value));
    case E_F16: return PURE(gen->ptx, REG_16, "cvt.rn.f16.f32", value_operand(value));
    case E_I8:
    case E_U8: return PURE(gen->ptx, REG_16, "cvt.u16.u32", ptx_reg(value_in_reg(gen, value)));
    case E_F32:
    case E_TF32:
    case E_I32:
    case E_U32:
    case E_I64:
    case E_U64:
    case E_BOOL:
    case E_COUNT: break;
    case E_E4M3:
    case E_E5M2: return float8_narrowed(gen, type, value_in_reg(gen, value));
    }
    return value_in_reg(gen, value);
}

/* Values from the .b32 words of a vector load, in order of addresses. */
void widen_words(Gen *gen, Element type, const Reg *words, int count, Value *out) {
    for (int i = 0; i < count; i++) {
        switch (element_rows[type].bytes) {
        case 8:
            out[i] =
                value_reg(type, PURE(gen->ptx, REG_64, "mov.b64", ptx_vector(&words[2 * i], 2)));
            break;
        case 4: out[i] = value_reg(element_rows[type].widens, words[i]); break;
        case 2: {
            Operand word = ptx_reg(words[i / 2]);
            if (type == E_BF16) {
                Reg reg = i % 2 == 0 ? PURE(gen->ptx, REG_32, "shl.b32", word, ptx_int(16))
                                     : PURE(gen->ptx, REG_32, "and.b32", word, ptx_int(0xffff0000));
                out[i] = value_reg(E_F32, reg);
            } else {
                Reg half = PURE(gen->ptx, REG_32, "shr.u32", word, ptx_int(i % 2 * 16));
                out[i] = widen_one(gen, type, PURE(gen->ptx, REG_16, "cvt.u16.u32", ptx_reg(half)));
            }
            break;
        }
        default: {
            if (is_float8(type)) {
                Reg half = PURE(gen->ptx, REG_32, "shr.u32", ptx_reg(words[i / 4]),
                                ptx_int(i % 4 / 2 * 16));
                Reg pair = PURE(gen->ptx, REG_16, "cvt.u16.u32", ptx_reg(half));
                out[i] = value_reg(E_F32, float8_widened(gen, type, pair, i % 2));
                break;
            }
            const char *op = type == E_I8 ? "bfe.s32" : "bfe.u32";
            out[i] = value_reg(E_I32, PURE(gen->ptx, REG_32, op, ptx_reg(words[i / 4]),
                                           ptx_int(i % 4 * 8), ptx_int(8)));
        }
        }
    }
}

/* The low bytes of four registers into one */
static Reg join_bytes(Gen *gen, const Reg *bytes) {
    Reg half[2];
    for (int h = 0; h < 2; h++)
        half[h] = PURE(gen->ptx, REG_32, "prmt.b32", ptx_reg(bytes[2 * h]),
                       ptx_reg(bytes[2 * h + 1]), ptx_int(0x0040));
    return PURE(gen->ptx, REG_32, "prmt.b32", ptx_reg(half[0]), ptx_reg(half[1]), ptx_int(0x5410));
}

int narrow_words(Gen *gen, Element type, const Value *values, int count, Reg *words) {
    int bytes = element_rows[type].bytes, used = 0;
    if (bytes == 2) {
        /* the first source is the upper half */
        const char *op = type == E_BF16 ? "cvt.rn.bf16x2.f32" : "cvt.rn.f16x2.f32";
        for (int i = 0; i < count; i += 2)
            words[used++] =
                PURE(gen->ptx, REG_32, op, value_operand(values[i + 1]), value_operand(values[i]));
        return used;
    }
    Reg stored[16];
    for (int i = 0; i < count; i++) stored[i] = value_in_reg(gen, values[i]);
    if (is_float8(type)) return float8_words(gen, type, stored, count, words);
    if (bytes > 1) return pack_words(gen, type, stored, count, words);
    for (int i = 0; i < count; i += 4) words[used++] = join_bytes(gen, &stored[i]);
    return used;
}

int pack_words(Gen *gen, Element type, const Reg *stored, int count, Reg *words) {
    int bytes = element_rows[type].bytes, used = 0, step = bytes < 4 ? 4 / bytes : 1;
    for (int i = 0; i < count; i += step) {
        if (bytes == 8) {
            words[used++] = PURE(gen->ptx, REG_32, "cvt.u32.u64", ptx_reg(stored[i]));
            Reg high = PURE(gen->ptx, REG_64, "shr.u64", ptx_reg(stored[i]), ptx_int(32));
            words[used++] = PURE(gen->ptx, REG_32, "cvt.u32.u64", ptx_reg(high));
        } else if (bytes == 4) {
            words[used++] = stored[i];
        } else if (bytes == 2) {
            words[used++] = PURE(gen->ptx, REG_32, "mov.b32", ptx_vector(&stored[i], 2));
        } else {
            Reg wide[4];
            for (int e = 0; e < 4; e++)
                wide[e] = PURE(gen->ptx, REG_32, "cvt.u32.u16", ptx_reg(stored[i + e]));
            words[used++] = join_bytes(gen, wide);
        }
    }
    return used;
}

/* ---- constants ------------------------------------------------------------------------------- */

static bool local_constant(const void *data, const Expr *expr, int64_t *out) {
    const Gen *gen = data;
    if (expr->kind != X_LOCAL) return false;
    Value value = gen->role->locals[expr->index];
    return value.reg.class == REG_NONE && (*out = value.integer, true);
}

/* Integers known at compile time: constants, variables of unrolled loops, and `let`s of them */
static bool fold(const Gen *gen, const Expr *expr, int64_t *out) {
    if (expr->indexes != 0) return false;
    return eval_expr(&(EvalEnv){.leaf = local_constant, .data = gen, .arena = gen->arena}, expr,
                     out) &&
           (expr->type != E_U64 || *out >= 0); /* PTX has no literals for the others */
}

/* ---- eval ------------------------------------------------------------------------------------ */

static Value compute(Gen *gen, Point *point, const Expr *expr) {
    const RoleState *state = gen->role;
    int64_t folded;
    if (gen->role != NULL && fold(gen, expr, &folded))
        return value_integer(element_rows[expr->type].widens, folded);
    switch (expr->kind) {
    case X_CONST:
        if (is_float(expr->type)) return value_number(expr->constant.number);
        return value_integer(element_rows[expr->type].widens, expr->constant.integer);
    case X_SYMBOL: return value_reg(element_rows[expr->type].widens, gen->symbols[expr->index]);
    case X_PARAM: return value_reg(E_F32, gen->scalars[expr->index]);
    case X_LOCAL: return state->locals[expr->index];
    case X_RANK:
        return state->rank.class == REG_NONE ? value_integer(E_I32, 0)
                                             : value_reg(E_I32, state->rank);
    case X_INDEX: {
        Lin index = point->indexes[expr->index];
        return index.is.constant ? value_integer(E_I32, index.is.add)
                                 : value_reg(E_I32, lin_in_reg(gen, index));
    }
    case X_READ:
        if (expr->read->space == SPACE_REGISTER) /* a scalar: the result of a reduction */
            return value_reg(expr->type, state->tiles[expr->read->object][0]);
        return widen_one(gen, expr->read->type, read_bits(gen, point, expr->read));
    case X_UNARY: return compute_unary(gen, point, expr);
    case X_BINARY: return compute_binary(gen, point, expr);
    case X_SELECT: return compute_select(gen, point, expr);
    case X_CAST: return compute_cast(gen, point, expr);
    case X_CALL: return compute_call(gen, point, expr);
    case X_POISON:
    case X_AXIS:
    case X_REDUCE: /* refused earlier */
    case X_SCAN: break;
    }
    return value_integer(E_I32, 0);
}

Value eval(Gen *gen, Point *point, const Expr *expr) {
    point = point_home(point, expr);
    Value value;
    if (point_knows(point, expr, &value)) return value;
    value = compute(gen, point, expr);
    point_know(gen, point, expr, value);
    return value;
}

Value eval_scalar(Gen *gen, const Expr *expr) {
    Point point = {.outer = NULL};
    return eval(gen, &point, expr);
}

Reg eval_condition(Gen *gen, Point *point, const Expr *expr) {
    return value_in_reg(gen, eval(gen, point, expr));
}

/* ---- variables ------------------------------------------------------------------------------- */

void local_set(Gen *gen, int local, Value value) {
    Value *to = &gen->role->locals[local];
    if (gen->role->role->locals.items[local].kind == LOCAL_LET && value.reg.class == REG_NONE) {
        *to = value; /* every read is in the same copy of an unrolled loop */
        return;
    }
    if (to->type == E_BOOL)
        INS(gen->ptx, "mov.pred", ptx_reg(to->reg), ptx_reg(value_in_reg(gen, value)));
    else
        INS(gen->ptx, class_of(to->type) == REG_64 ? "mov.b64" : "mov.b32", ptx_reg(to->reg),
            value_operand(value));
    ptx_forget(gen->ptx);
}
