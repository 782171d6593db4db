/* reference: compiles an expression of a Prog to a Function, steps over registers. Evaluates
 * only constants, symbols and scalars, which are in registers from the start. Shared nodes are
 * computed once, each as far outside of reductions as its indexes allow. */
#include "reference/code.h"

#define SEEN_START 64

typedef struct Seen { /* a node that has a register */
    const Expr *expr;
    int reg, level;
    /* identifies the reduction that was open at that level: the register is invalid in any other */
    int serial;
} Seen;

typedef struct Preset { /* a register with an initial value */
    int reg;
    Value value;
} Preset;

/* Level 0 is outside of reductions; each nested reduction is the next level. */
#define LEVELS (PROG_MAX_INDEXES + 1)

typedef struct Compiler {
    Machine *machine;
    Function *function;
    const IndexSpace *space;
    Block *blocks[LEVELS];
    double times[LEVELS]; /* executions of a level's block per element */
    /* the deepest outer level whose registers a level's steps read */
    int needs[LEVELS];
    int level;
    int serial[LEVELS], serials;
    int index_reg[PROG_MAX_INDEXES], index_level[PROG_MAX_INDEXES];
    VEC(Preset) presets;
    Seen *seen; /* hash table by address, open addressing */
    size_t seen_count, seen_size;
} Compiler;

typedef struct Place {
    int reg, level;
} Place;

static Place compile(Compiler *c, const Expr *expr);

static int64_t index_extent(Machine *machine, const Index *index) {
    if (index->extent >= 0) return index->extent;
    if (index->dynamic->kind == X_SYMBOL) return machine->symbols[index->dynamic->index];
    IndexSpace none = {0};
    Function *function = function_compile(machine, &none, index->dynamic, NULL);
    function_run(machine, function, 1);
    return register_of(function, function->result)->integer;
}

/* ---- compiled nodes -------------------------------------------------------------------------- */

static Seen *seen_slot(Seen *table, size_t size, const Expr *expr) {
    size_t at = ((uintptr_t)expr >> 4) * 0x9E3779B97F4A7C15u % size;
    while (table[at].expr != NULL && table[at].expr != expr) at = (at + 1) % size;
    return &table[at];
}

static void remember(Compiler *c, const Expr *expr, Place place) {
    if (2 * c->seen_count >= c->seen_size) {
        size_t size = c->seen_size > 0 ? 2 * c->seen_size : SEEN_START;
        Seen *table = NEW_ARRAY(c->machine->arena, Seen, size);
        for (size_t i = 0; i < c->seen_size; i++)
            if (c->seen[i].expr != NULL) *seen_slot(table, size, c->seen[i].expr) = c->seen[i];
        c->seen = table;
        c->seen_size = size;
    }
    Seen *slot = seen_slot(c->seen, c->seen_size, expr);
    if (slot->expr == NULL) c->seen_count++;
    *slot = (Seen){expr, place.reg, place.level, c->serial[place.level]};
}

/* ---- registers and steps --------------------------------------------------------------------- */

static int new_register(Compiler *c) { return c->function->registers++; }

static Place constant(Compiler *c, Value value) {
    Preset it = {new_register(c), value};
    vec_push(c->machine->arena, &c->presets, it);
    return (Place){it.reg, 0};
}

static double call_cost(Intrinsic which) {
    switch (which) {
    case IN_exp:
    case IN_exp2:
    case IN_log:
    case IN_log2:
    case IN_sin:
    case IN_cos:
    case IN_tanh:
    case IN_expm1:
    case IN_log1p:
    case IN_erf:
    case IN_pow:
    case IN_sigmoid: return 20;
    case IN_rsqrt:
    case IN_sqrt:
    case IN_rcp: return 5;
    case IN_abs:
    case IN_min:
    case IN_max:
    case IN_fma:
    case IN_floor:
    case IN_ceil:
    case IN_round:
    case IN_clamp:
    case IN_isnan:
    case IN_ceil_div:
    case IN_bit_and:
    case IN_bit_or:
    case IN_bit_xor:
    case IN_shl:
    case IN_shr:
    case IN_mulhi:
    case IN_popc:
    case IN_clz:
    case IN_bits:
    case IN_COUNT: break;
    case IN_random_bits:
    case IN_random: return 30;
    }
    return 2;
}

static double step_cost(const Step *step) {
    switch (step->op) {
    case STEP_CALL: return call_cost(step->which);
    case STEP_PLACE: return 0; /* included in the cost of STEP_LET and STEP_READ */
    case STEP_LET: return 6;
    case STEP_READ:
    case STEP_CAST:
    case STEP_DIV:
    case STEP_MOD: return 4;
    case STEP_NEG:
    case STEP_NOT:
    case STEP_ADD:
    case STEP_SUB:
    case STEP_MUL:
    case STEP_EQ:
    case STEP_NE:
    case STEP_LT:
    case STEP_LE:
    case STEP_AND:
    case STEP_OR:
    case STEP_SELECT:
    case STEP_REDUCE:
    case STEP_SCAN: break;
    }
    return 1;
}

/* Adds a step to the block of its level: the deepest level of its operands. */
static Place add(Compiler *c, Step step, int level) {
    step.out = new_register(c);
    vec_push(c->machine->arena, c->blocks[level], step);
    c->function->cost += c->times[level] * step_cost(&step);
    c->blocks[level]->cost += step_cost(&step);
    return (Place){step.out, level};
}

/* The level of a step that reads these registers. Operands of outer levels become inputs of its
 * reduction. */
static int level_of(Compiler *c, const Place *operands, int count) {
    int level = 0;
    for (int i = 0; i < count; i++)
        if (operands[i].level > level) level = operands[i].level;
    for (int i = 0; i < count; i++)
        if (operands[i].level < level && operands[i].level > c->needs[level])
            c->needs[level] = operands[i].level;
    return level;
}

static Place add_of(Compiler *c, Step step, const Place *operands, int count) {
    int level = level_of(c, operands, count);
    if (count > 0) step.a = operands[0].reg;
    if (count > 1) step.b = operands[1].reg;
    if (count > 2) step.c = operands[2].reg;
    return add(c, step, level);
}

/* ---- expressions ----------------------------------------------------------------------------- */

static Place compile_binary(Compiler *c, const Expr *expr) {
    static const StepOp steps[] = {
        [OP_ADD] = STEP_ADD, [OP_SUB] = STEP_SUB, [OP_MUL] = STEP_MUL, [OP_DIV] = STEP_DIV,
        [OP_MOD] = STEP_MOD, [OP_EQ] = STEP_EQ,   [OP_NE] = STEP_NE,   [OP_LT] = STEP_LT,
        [OP_LE] = STEP_LE,   [OP_GT] = STEP_LT,   [OP_GE] = STEP_LE,   [OP_AND] = STEP_AND,
        [OP_OR] = STEP_OR};
    bool swap = expr->binary.op == OP_GT || expr->binary.op == OP_GE;
    Place left = compile(c, expr->binary.left), right = compile(c, expr->binary.right);
    Step step = {.op = steps[expr->binary.op], .type = expr->binary.left->type};
    return add_of(c, step, swap ? (Place[]){right, left} : (Place[]){left, right}, 2);
}

static Place compile_cast(Compiler *c, const Expr *expr) {
    Element from = expr->cast->type, to = expr->type;
    Place operand = compile(c, expr->cast);
    /* bf16 to f32, i8 to i32: the value is the same */
    bool widens = element_rows[from].widens == to || from == to;
    if (widens) return operand;
    return add_of(c, (Step){.op = STEP_CAST, .type = from, .to = to}, &operand, 1);
}

/* Flat index of an element. Dimensions are added from the outermost level inwards, so that terms
 * that do not depend on the index of a reduction are computed outside of its loop. */
static Place compile_flat(Compiler *c, const Access *access, const int64_t *extents) {
    Place subs[PROG_MAX_RANK], flat = constant(c, (Value){.integer = 0});
    uint64_t strides[PROG_MAX_RANK], stride = 1; /* wrap where there are more than 2^63 elements */
    for (int d = access->rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= (uint64_t)extents[d];
    }
    for (int d = 0; d < access->rank; d++) subs[d] = compile(c, access->subs[d]);
    for (int level = 0; level <= c->level; level++)
        for (int d = 0; d < access->rank; d++) {
            if (subs[d].level != level) continue;
            Read *dimension = NEW(c->machine->arena, Read);
            *dimension = (Read){.extent = extents[d], .stride = (int64_t)strides[d]};
            Step step = {.op = STEP_PLACE, .read = dimension};
            flat = add_of(c, step, (Place[]){flat, subs[d]}, 2);
        }
    return flat;
}

static const Function *function_of_let(Machine *machine, int which) {
    const Let *let = &machine->prog->lets.items[which];
    Remembered *remembered = &machine->lets[which];
    if (remembered->function == NULL) {
        remembered->function = function_compile(machine, &let->space, let->value, NULL);
        machine->order[machine->ordered++] = which;
    }
    return remembered->function;
}

/* The values of all bytes of a type of one byte */
static const Value *values_of_bytes(Arena *arena, Element type) {
    if (element_rows[type].bytes != 1) return NULL;
    Value *values = NEW_ARRAY(arena, Value, 256);
    for (int i = 0; i < 256; i++) {
        unsigned char stored = (unsigned char)i;
        if (is_number(type))
            values[i].number = element_load(type, &stored);
        else
            values[i].integer = element_load_integer(type, &stored);
    }
    return values;
}

/* Moves the indexes of reductions from the bits to the number of their values */
static void split_indexes(const Compiler *c, LetUse *use) {
    for (int d = 0; d < PROG_MAX_RANK; d++)
        for (int k = c->function->bound; k < c->space->count; k++) {
            if (!(use->indexes[d] >> k & 1)) continue;
            use->indexes[d] &= ~((uint64_t)1 << k);
            int64_t extent = index_extent(c->machine, &c->space->items[k]);
            use->own[d] *= extent > 0 ? (double)extent : 0;
        }
}

static Place compile_read(Compiler *c, const Access *access) {
    Machine *machine = c->machine;
    int object = access->object;
    Read *read = NEW(machine->arena, Read);
    *read = (Read){.type = access->type};
    Step step = {.op = STEP_READ, .type = access->type, .read = read};
    if (access->space == SPACE_LET) {
        Place flat = compile_flat(c, access, function_of_let(machine, object)->extents);
        step.op = STEP_LET;
        read->let = object;
        LetUse use = {.let = object, .times = c->times[flat.level]};
        for (int d = 0; d < access->rank; d++) {
            use.indexes[d] = access->subs[d]->indexes;
            use.own[d] = 1;
        }
        split_indexes(c, &use);
        vec_push(machine->arena, &c->function->uses, use);
        return add_of(c, step, &flat, 1);
    }
    const Array *array = access->old ? &machine->before[object] : &machine->arrays[object];
    Place flat = compile_flat(c, access, array->extents);
    read->data = array->data;
    read->bytes = values_of_bytes(machine->arena, access->type);
    return add_of(c, step, &flat, 1);
}

static Place compile_reduce(Compiler *c, const Expr *expr) {
    Loop *loop = NEW(c->machine->arena, Loop);
    loop->op = expr->reduce.op;
    loop->count = expr->reduce.count;
    int level = ++c->level;
    double times = c->times[level - 1];
    c->blocks[level] = &loop->body;
    c->needs[level] = 0;
    c->serial[level] = ++c->serials;
    for (int k = 0; k < loop->count; k++) {
        int index = expr->reduce.first + k;
        loop->trips[k] = index_extent(c->machine, &c->space->items[index]);
        loop->indexes[k] = new_register(c);
        c->index_reg[index] = loop->indexes[k];
        c->index_level[index] = level;
        times *= (double)(loop->trips[k] > 0 ? loop->trips[k] : 0);
    }
    c->times[level] = times;
    c->function->cost += times;
    loop->body.cost = 1;
    Place value = compile(c, expr->reduce.body);
    loop->value = value.reg;
    c->level--;
    int outer = c->needs[level];
    if (value.level < level && value.level > outer) outer = value.level;
    return add(c, (Step){.op = STEP_REDUCE, .type = expr->type, .loop = loop}, outer);
}

/* Executions of the body for one result: a row has its results together if all rows are kept, or
 * if results of the innermost index follow each other. */
static double scan_share(const Compiler *c, const Scan *scan, int along) {
    double rows = 1;
    bool inner = along == c->space->bound - 1;
    for (int i = 0; i < scan->count; i++) {
        rows *= (double)scan->extents[i];
        inner &= scan->others[i] < c->space->bound;
    }
    return inner || rows <= (double)scan->kept ? 1 : (double)scan->trips;
}

static Place compile_scan(Compiler *c, const Expr *expr, const ScanForm *form, int64_t trips) {
    Scan *scan = NEW(c->machine->arena, Scan);
    IndexSpace all = *c->space;
    Place places[PROG_MAX_INDEXES + 1] = {{c->index_reg[form->along], c->index_level[form->along]}};
    *scan = (Scan){.op = expr->reduce.op,
                   .relation = form->relation,
                   .own = form->own,
                   .along = places[0].reg,
                   .trips = trips > 0 ? trips : 0};
    scan->kept = REMEMBERED_MAX / (scan->trips + 1) + 1;
    all.bound = all.count;
    scan->body = function_compile(c->machine, &all, form->body, NULL);
    for (int i = 0; i < all.count; i++) {
        if (i == form->own || !(form->body->indexes >> i & 1)) continue;
        scan->others[scan->count] = i;
        scan->extents[scan->count] = scan->body->extents[i];
        scan->regs[scan->count++] = c->index_reg[i];
        places[scan->count] = (Place){c->index_reg[i], c->index_level[i]};
    }
    double times = c->times[c->level] * scan_share(c, scan, form->along);
    c->function->cost += times * scan->body->cost;
    for (size_t i = 0; i < scan->body->uses.count; i++) {
        LetUse use = scan->body->uses.items[i];
        use.times *= times;
        split_indexes(c, &use);
        vec_push(c->machine->arena, &c->function->uses, use);
    }
    Step step = {.op = STEP_SCAN, .type = expr->type, .scan = scan};
    return add_of(c, step, places, scan->count + 1);
}

static Place compile_reduction(Compiler *c, const Expr *expr) {
    ScanForm form;
    if (!expr_scan_form(expr, &form)) return compile_reduce(c, expr);
    int64_t trips = index_extent(c->machine, &c->space->items[form.own]);
    return trips > SCAN_TRIPS ? compile_reduce(c, expr) : compile_scan(c, expr, &form, trips);
}

static Place compile_call(Compiler *c, const Expr *expr) {
    Place args[3] = {{0, 0}};
    for (int i = 0; i < expr->call.count; i++) args[i] = compile(c, expr->call.args[i]);
    Step step = {.op = STEP_CALL,
                 .type = expr->call.args[0]->type,
                 .to = expr->type,
                 .which = expr->call.which};
    return add_of(c, step, args, expr->call.count);
}

static Place compile_node(Compiler *c, const Expr *expr) {
    switch (expr->kind) {
    case X_CONST:
        if (is_number(expr->type)) return constant(c, (Value){.number = expr->constant.number});
        return constant(c, (Value){.integer = expr->constant.integer});
    case X_SYMBOL: return constant(c, (Value){.integer = c->machine->symbols[expr->index]});
    case X_PARAM: {
        const Scalar *scalar = &c->machine->scalars[expr->index];
        if (is_number(expr->type)) return constant(c, (Value){.number = scalar->number});
        return constant(c, (Value){.integer = scalar->integer});
    }
    case X_INDEX: return (Place){c->index_reg[expr->index], c->index_level[expr->index]};
    case X_READ: return compile_read(c, expr->read);
    case X_UNARY: {
        Place operand = compile(c, expr->unary.operand);
        StepOp op = expr->unary.op == OP_NEG ? STEP_NEG : STEP_NOT;
        return add_of(c, (Step){.op = op, .type = expr->unary.operand->type}, &operand, 1);
    }
    case X_BINARY: return compile_binary(c, expr);
    case X_SELECT: {
        Place parts[] = {compile(c, expr->select.condition), compile(c, expr->select.then),
                         compile(c, expr->select.otherwise)};
        return add_of(c, (Step){.op = STEP_SELECT, .type = expr->type}, parts, 3);
    }
    case X_CAST: return compile_cast(c, expr);
    case X_CALL: return compile_call(c, expr);
    case X_REDUCE: return compile_reduction(c, expr);
    case X_POISON:
    case X_AXIS:
    case X_LOCAL:
    case X_SCAN:
    case X_RANK: break; /* does not occur in `ensures` */
    }
    return constant(c, (Value){0});
}

static Place compile(Compiler *c, const Expr *expr) {
    if (c->seen_size > 0) {
        const Seen *seen = seen_slot(c->seen, c->seen_size, expr);
        if (seen->expr == expr && seen->level <= c->level && seen->serial == c->serial[seen->level])
            return (Place){seen->reg, seen->level};
    }
    Place place = compile_node(c, expr);
    remember(c, expr, place);
    return place;
}

/* ---- functions ------------------------------------------------------------------------------- */

static void finish(Compiler *c) {
    Function *function = c->function;
    function->frame = NEW_ARRAY(c->machine->arena, Value, (size_t)function->registers * LANES);
    for (size_t i = 0; i < c->presets.count; i++) {
        Value *lanes = register_of(function, c->presets.items[i].reg);
        for (int lane = 0; lane < LANES; lane++) lanes[lane] = c->presets.items[i].value;
    }
}

Function *function_compile(Machine *machine, const IndexSpace *space, const Expr *value,
                           const Access *target) {
    Function *function = NEW(machine->arena, Function);
    Compiler c = {.machine = machine,
                  .function = function,
                  .space = space,
                  .blocks = {&function->steps},
                  .times = {1}};
    function->bound = space->bound;
    function->count = 1;
    for (int k = 0; k < space->bound; k++) {
        function->extents[k] = index_extent(machine, &space->items[k]);
        c.index_reg[k] = new_register(&c);
        if (function->extents[k] <= 0)
            function->count = 0;
        else if (function->count > 0 &&
                 __builtin_mul_overflow(function->count, function->extents[k], &function->count))
            function->count = -1;
    }
    function->cost = function->steps.cost = space->bound;
    function->type = value->type;
    function->result = compile(&c, value).reg;
    if (target != NULL) function->got = compile_read(&c, target).reg;
    finish(&c);
    return function;
}

/* What is computed of a function: how often, and of how many values of each index */
typedef struct Demand {
    double executions, values[PROG_MAX_INDEXES];
} Demand;

/* The elements that a use reads are no more than the values of the indexes that its subscripts
 * contain: `top[i]` in `p[i, j]` is one element for all j. */
static void add_use(Demand *demands, const Machine *machine, const Demand *reader,
                    const LetUse *use) {
    const Function *let = machine->lets[use->let].function;
    Demand *demand = &demands[use->let];
    double elements = 1;
    uint64_t indexes = 0;
    for (int d = 0; d < let->bound; d++) {
        double values = use->own[d];
        for (int k = 0; k < PROG_MAX_INDEXES; k++)
            if (use->indexes[d] >> k & 1) values *= reader->values[k];
        if (values > (double)let->extents[d]) values = (double)let->extents[d];
        if (values > demand->values[d]) demand->values[d] = values;
        elements *= use->own[d];
        indexes |= use->indexes[d];
    }
    for (int k = 0; k < PROG_MAX_INDEXES; k++)
        if (indexes >> k & 1) elements *= reader->values[k];
    double reads = reader->executions * use->times;
    demand->executions += reads < elements ? reads : elements;
}

/* A let is computed at most once per element (about once if it is too large for the cache), and
 * at most as often as different elements of it are read. The readers of a let precede it in the
 * reverse order of compilation. */
double function_cost(Machine *machine, const Function *function, double elements) {
    Demand *demands = NEW_ARRAY(machine->arena, Demand, machine->prog->lets.count + 1);
    Demand whole = {.executions = elements};
    double total = elements * function->cost;
    for (int k = 0; k < function->bound; k++) {
        double extent = (double)function->extents[k];
        whole.values[k] = elements < extent ? elements : extent;
    }
    for (size_t i = 0; i < function->uses.count; i++)
        add_use(demands, machine, &whole, &function->uses.items[i]);
    for (int i = machine->ordered - 1; i >= 0; i--) {
        const Function *let = machine->lets[machine->order[i]].function;
        Demand *demand = &demands[machine->order[i]];
        if (let->count >= 0 && demand->executions > (double)let->count)
            demand->executions = (double)let->count;
        total += demand->executions * let->cost;
        for (size_t k = 0; k < let->uses.count; k++)
            add_use(demands, machine, demand, &let->uses.items[k]);
    }
    return total;
}
