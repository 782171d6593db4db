/* reference: runs functions. Index registers in, result registers out; each step runs over all
 * lanes before the next one. Both operands of a selection are evaluated, so no step may trap:
 * integer division by zero gives 0, reads outside a tensor give zero as on the device. */
#include "prog/bits.h"
#include "prog/eval.h"
#include "prog/number.h"
#include "reference/code.h"

#include <math.h>
#include <string.h>

Machine *machine_new(Arena *arena, const Prog *prog, const int64_t *symbols, const Scalar *scalars,
                     const Array *arrays, const Array *before) {
    Machine *machine = NEW(arena, Machine);
    *machine = (Machine){.arena = arena,
                         .prog = prog,
                         .symbols = symbols,
                         .scalars = scalars,
                         .arrays = arrays,
                         .before = before};
    machine->lets = NEW_ARRAY(arena, Remembered, prog->lets.count + 1);
    machine->order = NEW_ARRAY(arena, int, prog->lets.count + 1);
    return machine;
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* The low bits, as the kernel keeps them */
static int64_t wrapped(Element type, uint64_t value) {
    return type == E_I32   ? (int32_t)(uint32_t)value
           : type == E_U32 ? (uint32_t)value
                           : (int64_t)value;
}

static int64_t divided(Element type, int64_t a, int64_t b, bool remainder) {
    if (b == 0) return 0;
    if (type == E_U64) {
        uint64_t x = (uint64_t)a, y = (uint64_t)b;
        return (int64_t)(remainder ? x % y : x / y);
    }
    if (b == -1) return remainder ? 0 : wrapped(type, -(uint64_t)a);
    return remainder ? a % b : a / b;
}

static bool less(Element type, int64_t a, int64_t b) {
    return type == E_U64 ? (uint64_t)a < (uint64_t)b : a < b;
}

#define EACH_LANE(expression)                                                                      \
    do {                                                                                           \
        for (int i = 0; i < lanes; i++) out[i] = (expression);                                     \
        return;                                                                                    \
    } while (0)
#define NUMBER(expression)  EACH_LANE(((Value){.number = (expression)}))
#define INTEGER(expression) EACH_LANE(((Value){.integer = (expression)}))

static void binary_numbers(StepOp op, Value *out, const Value *a, const Value *b, int lanes) {
    switch (op) {
    case STEP_ADD: NUMBER(a[i].number + b[i].number);
    case STEP_SUB: NUMBER(a[i].number - b[i].number);
    case STEP_MUL: NUMBER(a[i].number * b[i].number);
    case STEP_DIV: NUMBER(a[i].number / b[i].number);
    case STEP_MOD: NUMBER(fmod(a[i].number, b[i].number));
    case STEP_EQ: INTEGER(a[i].number == b[i].number);
    case STEP_NE: INTEGER(a[i].number != b[i].number);
    case STEP_LT: INTEGER(a[i].number < b[i].number);
    case STEP_LE: INTEGER(a[i].number <= b[i].number);
    case STEP_NEG:
    case STEP_NOT:
    case STEP_AND:
    case STEP_OR:
    case STEP_SELECT:
    case STEP_CAST:
    case STEP_CALL:
    case STEP_PLACE:
    case STEP_READ:
    case STEP_LET:
    case STEP_REDUCE:
    case STEP_SCAN: break;
    }
}

static void binary_integers(const Step *step, Value *out, const Value *a, const Value *b,
                            int lanes) {
    Element type = step->type;
    switch (step->op) {
    case STEP_ADD: INTEGER(wrapped(type, (uint64_t)a[i].integer + (uint64_t)b[i].integer));
    case STEP_SUB: INTEGER(wrapped(type, (uint64_t)a[i].integer - (uint64_t)b[i].integer));
    case STEP_MUL: INTEGER(wrapped(type, (uint64_t)a[i].integer * (uint64_t)b[i].integer));
    case STEP_DIV: INTEGER(divided(type, a[i].integer, b[i].integer, false));
    case STEP_MOD: INTEGER(divided(type, a[i].integer, b[i].integer, true));
    case STEP_EQ: INTEGER(a[i].integer == b[i].integer);
    case STEP_NE: INTEGER(a[i].integer != b[i].integer);
    case STEP_LT: INTEGER(less(type, a[i].integer, b[i].integer));
    case STEP_LE: INTEGER(!less(type, b[i].integer, a[i].integer));
    case STEP_AND: INTEGER(a[i].integer && b[i].integer);
    case STEP_OR: INTEGER(a[i].integer || b[i].integer);
    case STEP_NEG:
    case STEP_NOT:
    case STEP_SELECT:
    case STEP_CAST:
    case STEP_CALL:
    case STEP_PLACE:
    case STEP_READ:
    case STEP_LET:
    case STEP_REDUCE:
    case STEP_SCAN: break;
    }
}

/* ---- casts: as the device's conversions ------------------------------------------------------ */

/* Numbers of f32 are not rounded */
static Value cast_number(Element to, double value) {
    if (to == E_F32 || to == E_TF32) return (Value){.number = value};
    if (is_number(to)) return (Value){.number = number_rounded(to, value)};
    return (Value){.integer = number_to_integer(to, value)};
}

static Value cast_integer(Element from, Element to, int64_t value) {
    if (is_number(to)) return (Value){.number = number_from_integer(from, to, value)};
    if (to == E_BOOL) return (Value){.integer = value != 0};
    return (Value){.integer = eval_cast(to, value)};
}

static void cast(const Step *step, Value *out, const Value *a, int lanes) {
    if (is_number(step->type)) EACH_LANE(cast_number(step->to, a[i].number));
    EACH_LANE(cast_integer(step->type, step->to, a[i].integer));
}

/* ---- intrinsics ------------------------------------------------------------------------------ */

static int64_t ceil_divided(Element type, int64_t a, int64_t b) {
    if (type != E_U64) return b <= 0 ? 0 : a / b + (a % b > 0);
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    return y == 0 ? 0 : (int64_t)(x / y + (x % y > 0));
}

/* Of integers; prog/bits.c has the values, as for constants. */
static void call_bits(const Step *step, Value *out, const Value *a, const Value *b, int lanes) {
    if (step->which == IN_bits) NUMBER(bits_to_number((uint32_t)a[i].integer));
    if (step->which == IN_random)
        NUMBER(bits_uniform(bits_random((uint64_t)a[i].integer, (uint64_t)b[i].integer)));
    for (int i = 0; i < lanes; i++) {
        int64_t args[] = {a[i].integer, b[i].integer}, value = 0;
        (void)bits_call(step->which, step->type, args, &value);
        out[i].integer = value;
    }
}

static void call_integers(const Step *step, Value *out, const Value *a, const Value *b,
                          const Value *c, int lanes) {
    Element type = step->type;
    switch (step->which) {
    case IN_abs:
        INTEGER(a[i].integer < 0 && type != E_U64 ? wrapped(type, -(uint64_t)a[i].integer)
                                                  : a[i].integer);
    case IN_min: EACH_LANE(less(type, b[i].integer, a[i].integer) ? b[i] : a[i]);
    case IN_max: EACH_LANE(less(type, a[i].integer, b[i].integer) ? b[i] : a[i]);
    case IN_fma:
        INTEGER(wrapped(type,
                        (uint64_t)a[i].integer * (uint64_t)b[i].integer + (uint64_t)c[i].integer));
    case IN_ceil_div: INTEGER(ceil_divided(type, a[i].integer, b[i].integer));
    case IN_floor:
    case IN_ceil:
    case IN_round: EACH_LANE(a[i]);
    case IN_sqrt:
    case IN_rsqrt:
    case IN_rcp:
    case IN_exp:
    case IN_exp2:
    case IN_log:
    case IN_log2:
    case IN_sin:
    case IN_cos:
    case IN_tanh:
    case IN_clamp:
    case IN_isnan:
    case IN_sigmoid:
    case IN_expm1:
    case IN_log1p:
    case IN_erf:
    case IN_pow:
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
    case IN_random: call_bits(step, out, a, b, lanes);
    }
}

/* Of a float */
static void bits_of(const Step *step, Value *out, const Value *a, int lanes) {
    INTEGER(eval_cast(step->to, bits_of_number(a[i].number)));
}

/* One loop for each intrinsic */
static void call_numbers(const Step *step, Value *out, const Value *x, const Value *y,
                         const Value *z, int lanes) {
    switch (step->which) {
#define INTRINSIC(name, word, args, ops, exact_ops, ulp, accuracy, exact_accuracy, what, value)    \
    case IN_##name:                                                                                \
        for (int i = 0; i < lanes; i++) {                                                          \
            double a = x[i].number, b = y[i].number, c = z[i].number;                              \
            (void)a, (void)b, (void)c;                                                             \
            out[i].number = value;                                                                 \
        }                                                                                          \
        return;
#include "prog/intrinsics.def"
#undef INTRINSIC
    case IN_COUNT: break;
    }
}

/* ---- reads ----------------------------------------------------------------------------------- */

static double single(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double half(uint16_t bits) {
    uint32_t magnitude = bits & 0x7FFF;
    if (magnitude >= 0x7C00 || magnitude < 0x0400) return element_load(E_F16, &bits);
    return single(((uint32_t)(bits & 0x8000) << 16) | ((magnitude + ((127 - 15) << 10)) << 13));
}

static Value element_value(Element type, const unsigned char *at) {
    if (is_number(type)) return (Value){.number = element_load(type, at)};
    return (Value){.integer = element_load_integer(type, at)};
}

static void add_dimension(const Read *dimension, Value *out, const Value *flat, const Value *sub,
                          int lanes) {
    int64_t extent = dimension->extent;
    uint64_t stride = (uint64_t)dimension->stride;
    for (int i = 0; i < lanes; i++) {
        int64_t at = sub[i].integer;
        bool outside = flat[i].integer < 0 || at < 0 || at >= extent;
        uint64_t moved = (uint64_t)flat[i].integer + (uint64_t)at * stride;
        out[i].integer = outside ? -1 : (int64_t)moved;
    }
}

/* Words of an array, 0 outside of it: the bits of zero in all types. No alignment is assumed. */
static uint16_t word_16(const unsigned char *data, int64_t flat) {
    uint16_t word = 0;
    if (flat >= 0) memcpy(&word, data + 2 * flat, sizeof word);
    return word;
}
static uint32_t word_32(const unsigned char *data, int64_t flat) {
    uint32_t word = 0;
    if (flat >= 0) memcpy(&word, data + 4 * flat, sizeof word);
    return word;
}

static void read_array(const Read *read, Value *out, const Value *flat, int lanes) {
    const unsigned char *data = read->data;
    int64_t bytes = element_rows[read->type].bytes;
    const Value zero = {0};
    if (read->bytes) EACH_LANE(flat[i].integer < 0 ? zero : read->bytes[data[flat[i].integer]]);
    if (read->type == E_F32) NUMBER(single(word_32(data, flat[i].integer)));
    if (read->type == E_BF16) NUMBER(single((uint32_t)word_16(data, flat[i].integer) << 16));
    if (read->type == E_F16) NUMBER(half(word_16(data, flat[i].integer)));
    EACH_LANE(flat[i].integer < 0 ? zero
                                  : element_value(read->type, data + flat[i].integer * bytes));
}

/* ---- lets ------------------------------------------------------------------------------------ */

static void remember_space(Machine *machine, Remembered *let) {
    int64_t count = let->function->count;
    let->size = count < 0 || count > REMEMBERED_MAX ? REMEMBERED_MAX : count < 1 ? 1 : count;
    let->keys = NEW_ARRAY(machine->arena, int64_t, let->size);
    let->pending = NEW_ARRAY(machine->arena, bool, let->size);
    let->values = NEW_ARRAY(machine->arena, Value, let->size);
    for (int64_t i = 0; i < let->size; i++) let->keys[i] = -1;
}

/* Values that are not cached are computed in one batch, each once; a cache slot keeps the last
 * of its values. */
static void read_let(Machine *machine, const Read *read, Value *out, const Value *flat, int lanes) {
    Remembered *let = &machine->lets[read->let];
    if (let->size == 0) remember_space(machine, let);
    int64_t wanted[LANES];
    int place[LANES], count = 0;
    for (int i = 0; i < lanes; i++) {
        int64_t at = flat[i].integer;
        place[i] = -1;
        out[i] = (Value){0};
        if (at < 0) continue;
        int64_t slot = at % let->size;
        if (let->keys[slot] != at) {
            let->keys[slot] = at;
            let->pending[slot] = true;
            let->values[slot].integer = count;
            wanted[count++] = at;
        }
        if (let->pending[slot])
            place[i] = (int)let->values[slot].integer;
        else
            out[i] = let->values[slot];
    }
    if (count == 0) return;
    function_place_list(let->function, wanted, count);
    function_run(machine, let->function, count);
    const Value *values = register_of(let->function, let->function->result);
    for (int i = 0; i < lanes; i++)
        if (place[i] >= 0) out[i] = values[place[i]];
    for (int i = 0; i < count; i++) {
        int64_t slot = wanted[i] % let->size;
        if (let->keys[slot] != wanted[i]) continue;
        let->values[slot] = values[i];
        let->pending[slot] = false;
    }
}

/* ---- reductions ------------------------------------------------------------------------------ */

static void run_block(Machine *machine, const Function *function, const Block *block, int lanes);

/* Of no elements */
static Value neutral(ReduceOp op, Element type) {
    int64_t integer;
    double number;
    reduce_neutral(op, type, &integer, &number);
    return is_number(type) ? (Value){.number = number} : (Value){.integer = integer};
}

/* NaN if one is NaN */
static double extreme(ReduceOp op, double a, double b) {
    if (isnan(a) || isnan(b)) return (double)NAN;
    return op == REDUCE_MAX ? fmax(a, b) : fmin(a, b);
}

static void accumulate(ReduceOp op, Element type, Value *out, const Value *value, int lanes) {
    bool number = is_number(type);
    switch (op) {
    case REDUCE_SUM:
        if (number) NUMBER(out[i].number + value[i].number);
        INTEGER(wrapped(type, (uint64_t)out[i].integer + (uint64_t)value[i].integer));
    case REDUCE_MAX:
        if (number) NUMBER(extreme(op, out[i].number, value[i].number));
        EACH_LANE(less(type, out[i].integer, value[i].integer) ? value[i] : out[i]);
    case REDUCE_MIN:
        if (number) NUMBER(extreme(op, out[i].number, value[i].number));
        EACH_LANE(less(type, value[i].integer, out[i].integer) ? value[i] : out[i]);
    }
}

static void reduce(Machine *machine, const Function *function, const Step *step, int lanes) {
    const Loop *loop = step->loop;
    Value *out = register_of(function, step->out);
    const Value *value = register_of(function, loop->value);
    for (int i = 0; i < lanes; i++) out[i] = neutral(loop->op, step->type);
    int64_t at[PROG_MAX_INDEXES] = {0};
    for (int k = 0; k < loop->count; k++)
        if (loop->trips[k] <= 0) return;
    for (;;) {
        for (int k = 0; k < loop->count; k++) {
            Value *index = register_of(function, loop->indexes[k]);
            for (int i = 0; i < lanes; i++) index[i].integer = at[k];
        }
        run_block(machine, function, &loop->body, lanes);
        accumulate(loop->op, step->type, out, value, lanes);
        int k = loop->count - 1;
        while (k >= 0 && ++at[k] == loop->trips[k]) at[k--] = 0;
        if (k < 0 || machine->stopped) return;
    }
}

/* ---- scans ----------------------------------------------------------------------------------- */

/* The body's elements of a row, in the values from `first` on */
static void run_body(Machine *machine, const Scan *scan, Value *first) {
    const Function *body = scan->body;
    Value *own = register_of(body, scan->own);
    for (int64_t at = 0; at < scan->trips && !machine->stopped; at += LANES) {
        int lanes = scan->trips - at < LANES ? (int)(scan->trips - at) : LANES;
        for (int i = 0; i < lanes; i++) own[i].integer = at + i;
        function_run(machine, body, lanes);
        const Value *result = register_of(body, body->result);
        for (int i = 0; i < lanes; i++) first[at + i] = result[i];
    }
}

static bool is_backward(const Scan *scan) {
    return scan->relation == OP_GE || scan->relation == OP_GT;
}

static void compute_row(Machine *machine, const Scan *scan, Element type, Value *values) {
    bool backward = is_backward(scan);
    run_body(machine, scan, backward ? values : values + 1);
    values[backward ? scan->trips : 0] = neutral(scan->op, type);
    for (int64_t i = 1; i <= scan->trips; i++) {
        int64_t to = backward ? scan->trips - i : i;
        Value sum = values[backward ? to + 1 : to - 1];
        accumulate(scan->op, type, &sum, &values[to], 1);
        values[to] = sum;
    }
}

static void open_rows(Machine *machine, Scan *scan) {
    scan->rows = NEW_ARRAY(machine->arena, int64_t, scan->kept);
    scan->values = NEW_ARRAY(machine->arena, Value, scan->kept * (scan->trips + 1));
    for (int64_t i = 0; i < scan->kept; i++) scan->rows[i] = -1;
}

/* The values of the row that a lane needs */
static const Value *row_of(Machine *machine, const Function *function, const Step *step, int lane) {
    Scan *scan = step->scan;
    uint64_t number = 0;
    for (int i = 0; i < scan->count; i++)
        number = number * (uint64_t)scan->extents[i] +
                 (uint64_t)register_of(function, scan->regs[i])[lane].integer;
    int64_t row = (int64_t)(number & INT64_MAX), place = row % scan->kept;
    Value *values = &scan->values[place * (scan->trips + 1)];
    if (scan->rows[place] == row) return values;
    for (int i = 0; i < scan->count; i++) {
        Value *index = register_of(scan->body, scan->others[i]);
        Value value = register_of(function, scan->regs[i])[lane];
        for (int k = 0; k < LANES; k++) index[k] = value;
    }
    compute_row(machine, scan, step->type, values);
    scan->rows[place] = row;
    return values;
}

static void scan_run(Machine *machine, const Function *function, const Step *step, int lanes) {
    Scan *scan = step->scan;
    Value *out = register_of(function, step->out);
    const Value *along = register_of(function, scan->along);
    int64_t own = scan->relation == OP_LE || scan->relation == OP_GT;
    if (scan->rows == NULL) open_rows(machine, scan);
    for (int i = 0; i < lanes; i++) {
        int64_t at = along[i].integer + own;
        at = at < 0 ? 0 : at > scan->trips ? scan->trips : at;
        out[i] = row_of(machine, function, step, i)[at];
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void negate(const Step *step, Value *out, const Value *a, int lanes) {
    if (step->op == STEP_NOT) INTEGER(!a[i].integer);
    if (is_number(step->type)) NUMBER(-a[i].number);
    INTEGER(wrapped(step->type, -(uint64_t)a[i].integer));
}

static void select(Value *out, const Value *a, const Value *b, const Value *c, int lanes) {
    EACH_LANE(a[i].integer ? b[i] : c[i]);
}

static void run_step(Machine *machine, const Function *function, const Step *step, int lanes) {
    Value *out = register_of(function, step->out);
    const Value *a = register_of(function, step->a), *b = register_of(function, step->b),
                *c = register_of(function, step->c);
    bool number = is_number(step->type);
    switch (step->op) {
    case STEP_NEG:
    case STEP_NOT: negate(step, out, a, lanes); return;
    case STEP_SELECT: select(out, a, b, c, lanes); return;
    case STEP_CAST: cast(step, out, a, lanes); return;
    case STEP_CALL:
        if (number && step->which == IN_bits)
            bits_of(step, out, a, lanes);
        else if (number)
            call_numbers(step, out, a, b, c, lanes);
        else
            call_integers(step, out, a, b, c, lanes);
        return;
    case STEP_PLACE: add_dimension(step->read, out, a, b, lanes); return;
    case STEP_READ: read_array(step->read, out, a, lanes); return;
    case STEP_LET: read_let(machine, step->read, out, a, lanes); return;
    case STEP_REDUCE: reduce(machine, function, step, lanes); return;
    case STEP_SCAN: scan_run(machine, function, step, lanes); return;
    case STEP_ADD:
    case STEP_SUB:
    case STEP_MUL:
    case STEP_DIV:
    case STEP_MOD:
    case STEP_EQ:
    case STEP_NE:
    case STEP_LT:
    case STEP_LE:
    case STEP_AND:
    case STEP_OR: break;
    }
    if (number)
        binary_numbers(step->op, out, a, b, lanes);
    else
        binary_integers(step, out, a, b, lanes);
}

#define WATCH_INTERVAL 1e6 /* operations, a few milliseconds */

static void watch(Machine *machine) {
    machine->next_watch = machine->done + WATCH_INTERVAL;
    machine->stopped = machine->stopped || !machine->watch(machine->watch_data);
}

static void run_block(Machine *machine, const Function *function, const Block *block, int lanes) {
    for (size_t i = 0; i < block->count; i++) run_step(machine, function, &block->items[i], lanes);
    machine->done += block->cost * lanes;
    if (machine->watch != NULL && machine->done >= machine->next_watch) watch(machine);
}

void function_run(Machine *machine, const Function *function, int lanes) {
    run_block(machine, function, &function->steps, lanes);
}

static void coordinates(const Function *function, int64_t flat, int64_t *at) {
    for (int k = function->bound - 1; k >= 0; k--) {
        at[k] = flat % function->extents[k];
        flat /= function->extents[k];
    }
}

void function_place(const Function *function, int64_t first, int lanes) {
    int64_t at[PROG_MAX_INDEXES];
    coordinates(function, first, at);
    for (int i = 0; i < lanes; i++) {
        for (int k = 0; k < function->bound; k++) register_of(function, k)[i].integer = at[k];
        for (int k = function->bound - 1; k >= 0 && ++at[k] == function->extents[k]; k--) at[k] = 0;
    }
}

void function_place_list(const Function *function, const int64_t *flat, int lanes) {
    int64_t at[PROG_MAX_INDEXES];
    for (int i = 0; i < lanes; i++) {
        coordinates(function, flat[i], at);
        for (int k = 0; k < function->bound; k++) register_of(function, k)[i].integer = at[k];
    }
}
