/* Programs of floats. Conditions that two roles compute, each in its own spelling or in the same,
 * decide which stages are handed over; parameters and data are such that another rounding changes
 * them. Or quotients by numbers that are tiny, subnormal, zero. */
#include "tests/adversary/draw.h"

typedef struct Sketch {
    Program *program;
    int role, handle, loop; /* loop: -1: none */
    int series;             /* the variable of a sum over the iterations */
    int start;              /* of the loop: its iterations have this and the next numbers */
    int data, rows;         /* tensors */
    const Expr *x, *c;      /* an element or a number; a divisor */
    uint32_t form, comparison;
    Random names; /* draws what has a name, and the operations of sums and quotients */
    bool counts;  /* the formula is the number of hand-overs */
    Stmts *out;   /* statements that the condition needs */
} Sketch;

static const Expr *r(Sketch *f, double value) { return real(f->program, value); }

static int scalar_new(Sketch *f, Type type, bool is_let) {
    int local = local_new(f->program, LOCAL_SCALAR);
    f->program->locals[local].type = type;
    f->program->locals[local].is_let = is_let;
    return local;
}

static Stmt *set_new(Sketch *f, StmtKind kind, int local, char op, const Expr *value) {
    Stmt *stmt = stmt_new(f->program, kind);
    stmt->local = local;
    stmt->op = op;
    stmt->value = value;
    stmts_add(f->program, f->out, stmt);
    return stmt;
}

/* The number of the iteration, from 0 */
static const Expr *iteration(Sketch *f) {
    Program *program = f->program;
    const Expr *k = local_of(program, f->loop);
    return f->start ? binary(program, DO_SUB, k, number(program, f->start)) : k;
}

/* ---- spellings ------------------------------------------------------------------------------- */

/* The value, or a name of it: `let`, `var`, what a function returns */
static const Expr *named(Sketch *f, const Expr *value, int percent) {
    Program *program = f->program;
    if (!chance(&f->names, percent)) return value;
    Type type = expr_type(program, value);
    uint32_t dice = draw(&f->names, 4);
    int local = scalar_new(f, type, dice != 0);
    if (dice == 0) { /* a variable that is set later */
        const Expr *none = type == TYPE_BOOL ? truth(program, false) : r(f, 0);
        set_new(f, S_DECLARE, local, '=', type == TYPE_INT ? number(program, 0) : none);
        set_new(f, S_SET, local, '=', value);
        return local_of(program, local);
    }
    Stmt *stmt = set_new(f, S_DECLARE, local, '=', value);
    if (dice == 1 && is_formula(value)) stmt->called = ++program->functions;
    return local_of(program, local);
}

static const Expr *product(Sketch *f, const Expr *a, const Expr *b) {
    Program *program = f->program;
    bool swaps = chance(&f->names, 30);
    Op op = chance(&f->names, 5) ? DO_EXACT_MUL : DO_MUL;
    return named(f, binary(program, op, swaps ? b : a, swaps ? a : b), 35);
}

/* a * b + c */
static const Expr *product_and_sum(Sketch *f, const Expr *a, const Expr *b, const Expr *c) {
    Program *program = f->program;
    Expr *fused = expr_new(program, X_BINARY, 0);
    int sum;
    switch (draw(&f->names, 8)) {
    case 0:
        fused->op = DO_FMA;
        fused->a = a, fused->b = b, fused->c = c;
        return named(f, fused, 30);
    case 1: return named(f, binary(program, DO_ADD, c, product(f, a, b)), 30);
    case 2:
        sum = scalar_new(f, TYPE_REAL, false);
        set_new(f, S_DECLARE, sum, '=', c);
        set_new(f, S_SET, sum, '+', product(f, a, b));
        return local_of(program, sum);
    case 3:
        sum = scalar_new(f, TYPE_REAL, false);
        set_new(f, S_DECLARE, sum, '=', product(f, a, b));
        set_new(f, S_SET, sum, '+', c);
        return local_of(program, sum);
    case 4: return binary(program, DO_SUB, product(f, a, b), unary(program, DO_NEGATE, c));
    default: return named(f, binary(program, DO_ADD, product(f, a, b), c), 30);
    }
}

/* x / c */
static const Expr *quotient(Sketch *f, const Expr *x, const Expr *c) {
    Program *program = f->program;
    const Expr *one = r(f, 1);
    switch (draw(&f->names, 7)) {
    case 0: return named(f, binary(program, DO_EXACT_DIV, x, c), 30);
    case 1: return product(f, x, named(f, binary(program, DO_DIV, one, c), 40));
    case 2: return product(f, x, named(f, unary(program, DO_RCP, c), 40));
    case 3: return binary(program, DO_DIV, x, named(f, c, 60));
    default: return named(f, binary(program, DO_DIV, x, c), 40);
    }
}

typedef enum Form {
    FORM_SUM,      /* a * x + b, about 0 */
    FORM_DIV,      /* x / c, about b */
    FORM_EXTREME,  /* max(a * x + b, 0) */
    FORM_CAST,     /* i32((a * x + b) * 2^25) */
    FORM_THREE,    /* a * x * x, about b */
    FORM_TERMS,    /* x + a + b, about 0 */
    FORM_SELECT,   /* a * x + b > 0 ? .. : 0 */
    FORM_SERIES,   /* a sum over the iterations, about b */
    FORM_COUNTER,  /* a * k + b, about 0 */
    FORM_HALF,     /* a * x in f16 or e4m3, about b */
    FORM_FUNCTION, /* of a * x, about b */
    FORMS
} Form;

static const Expr *formula(Sketch *f) {
    Program *program = f->program;
    const Expr *a = param(program, 0), *b = param(program, 1), *x = f->x, *zero = r(f, 0);
    bool left = chance(&f->names, 70);
    switch ((Form)f->form) {
    case FORM_DIV: return quotient(f, x, f->c);
    case FORM_EXTREME:
        x = product_and_sum(f, a, x, b);
        return often(program, 60) ? binary(program, DO_MAX, left ? x : zero, left ? zero : x)
                                  : choose(program, binary(program, DO_GT, x, zero), x, zero);
    case FORM_CAST:
        x = binary(program, DO_MUL, product_and_sum(f, a, x, b), r(f, 0x1p25));
        return unary(program, DO_TO_INT, x);
    case FORM_THREE:
        return left ? product(f, product(f, a, x), x) : product(f, a, product(f, x, x));
    case FORM_TERMS:
        return left ? binary(program, DO_ADD, named(f, binary(program, DO_ADD, x, a), 40), b)
                    : binary(program, DO_ADD, x, named(f, binary(program, DO_ADD, a, b), 40));
    case FORM_SELECT:
        x = product_and_sum(f, a, x, b);
        return choose(program, binary(program, DO_GT, x, zero), left ? r(f, 1) : a, zero);
    case FORM_SERIES:
        set_new(f, S_SET, f->series, '=', product_and_sum(f, a, x, local_of(program, f->series)));
        return local_of(program, f->series);
    case FORM_COUNTER:
        x = unary(program, DO_TO_REAL, iteration(f));
        return product_and_sum(f, a, named(f, x, 40), b);
    case FORM_HALF: return unary(program, f->comparison % 2 ? DO_HALF : DO_E4M3, product(f, a, x));
    case FORM_FUNCTION:
        if (f->comparison == 2) return unary(program, DO_SINE, product(f, a, x));
        if (f->comparison == 3) return binary(program, DO_POWER, product(f, a, x), r(f, 1.5));
        return unary(program, f->comparison % 2 ? DO_SQRT : DO_EXP, product(f, a, x));
    case FORM_SUM:
    case FORMS: break;
    }
    return product_and_sum(f, a, x, b);
}

static bool is_about_b(const Sketch *f) {
    return f->form == FORM_DIV || f->form == FORM_THREE || f->form == FORM_SERIES ||
           f->form == FORM_HALF || f->form == FORM_FUNCTION;
}

/* The value of the formula that decides, without b */
static const Expr *tie_of(Sketch *f) {
    Program *program = f->program;
    const Expr *a = param(program, 0), *ax = binary(program, DO_MUL, a, f->x);
    if (f->form == FORM_DIV) return binary(program, DO_DIV, f->x, f->c);
    if (f->form == FORM_THREE) return binary(program, DO_MUL, ax, f->x);
    if (f->form == FORM_SERIES || f->form == FORM_HALF || f->form == FORM_FUNCTION) return ax;
    if (f->form == FORM_COUNTER) return unary(program, DO_NEGATE, a);
    if (f->form == FORM_TERMS) ax = binary(program, DO_ADD, f->x, a);
    return unary(program, DO_NEGATE, ax);
}

static const Expr *condition(Sketch *f) {
    static const Op ops[] = {DO_GT, DO_GE, DO_LT, DO_LE, DO_EQ, DO_NE},
                    mirrored[] = {DO_LT, DO_LE, DO_GT, DO_GE, DO_EQ, DO_NE},
                    opposite[] = {DO_LE, DO_LT, DO_GE, DO_GT, DO_NE, DO_EQ};
    Program *program = f->program;
    uint32_t which = f->comparison;
    const Expr *value = formula(f), *limit = is_about_b(f) ? param(program, 1) : r(f, 0), *out;
    if (f->form == FORM_CAST) limit = number(program, 0);
    switch (pick(program, 6)) {
    case 0: out = binary(program, mirrored[which], limit, value); break;
    case 1: out = unary(program, DO_NOT, binary(program, opposite[which], value, limit)); break;
    case 2:
        if (f->form != FORM_CAST) {
            out = binary(program, ops[which], binary(program, DO_SUB, value, limit), r(f, 0));
            break;
        } /* fall through */
    default: out = binary(program, ops[which], value, limit); break;
    }
    return named(f, out, 25);
}

/* How many stages: between 0 and 3 */
static const Expr *count(Sketch *f) {
    Program *program = f->program;
    const Expr *value = formula(f);
    if (f->form != FORM_CAST)
        value = unary(program, DO_TO_INT, binary(program, DO_MUL, value, r(f, 2)));
    value = binary(program, DO_MAX, value, number(program, 0));
    return binary(program, DO_MIN, named(f, value, 30), number(program, 3));
}

/* ---- a role ---------------------------------------------------------------------------------- */

static const Expr *row_element(Sketch *f, int tensor) {
    Program *program = f->program;
    const Expr *k = f->loop >= 0 ? iteration(f) : number(program, 0);
    return element(program, X_TENSOR, tensor, 0, any_axis(program), k, index_of(program, 0));
}

static void hand_over(Sketch *f, Stmts *out) {
    Program *program = f->program;
    Stmt *block = stmt_of_handle(program, S_STAGE, f->handle, -1);
    const Expr *field = element(program, X_FIELD, f->handle, 0, index_of(program, 0), NULL, NULL);
    block->pipe = 0;
    block->produce = f->role == 0;
    if (f->role == 0)
        stmts_add(program, &block->body, assign(program, field, '=', row_element(f, f->rows)));
    else
        stmts_add(program, &block->body, assign(program, row_element(f, f->data), '=', field));
    stmts_add(program, out, block);
}

/* Under the condition; after leaving the iteration, or the loop, if it does not hold */
static void guarded(Sketch *f, uint32_t how, Stmts *out) {
    Program *program = f->program;
    f->out = out;
    const Expr *holds = condition(f);
    Stmt *guard = if_new(program, how == 0 ? holds : unary(program, DO_NOT, holds));
    stmts_add(program, out, guard);
    if (how == 0) {
        hand_over(f, &guard->body);
        return;
    }
    Stmt *leave = stmt_new(program, S_LEAVE);
    leave->leave = how == 1 ? LEAVE_CONTINUE : LEAVE_BREAK;
    stmts_add(program, &guard->body, leave);
    hand_over(f, out);
}

/* how: 0 to 2: as above, in a loop; 3: a loop under the condition; 4: a loop of so many */
static void draw_role(Sketch *f, uint32_t how, Random spelling, Random names) {
    Program *program = f->program;
    Random after = program->random;
    Stmt *grid = stmt_new(program, S_GRID);
    const Expr *end = symbol(program, SYM_K);
    grid->local = program->axes[0].local;
    f->out = &grid->body;
    program->random = spelling;
    f->names = names;
    if (f->form == FORM_SERIES) {
        f->series = scalar_new(f, TYPE_REAL, false);
        set_new(f, S_DECLARE, f->series, '=', r(f, 0));
    }
    if (how == 4) end = count(f);
    if (f->start) end = binary(program, DO_ADD, end, number(program, f->start));
    Stmt *loop = for_new(program, f->loop, end);
    loop->lo = number(program, f->start);
    if (how < 3) {
        guarded(f, how, &loop->body);
        stmts_add(program, &grid->body, loop);
    } else {
        Stmt *guard = if_new(program, how == 3 ? condition(f) : truth(program, true));
        hand_over(f, &loop->body);
        stmts_add(program, &guard->body, loop);
        stmts_add(program, &grid->body, how == 3 ? guard : loop);
    }
    stmts_add(program, &program->roles[f->role].body, grid);
    program->random = after;
}

static int floats_new(Program *program, const char *name, Mode mode, Contents contents, int rank) {
    int tensor = tensor_new(program, name, mode, contents, rank);
    program->tensors[tensor].type = TYPE_REAL;
    program->tensors[tensor].extents[0].symbol = SYM_G;
    return tensor;
}

static void grid_new(Program *program) {
    program->reals = true;
    program->persistent = often(program, 80);
    axis_add(program, symbol(program, SYM_G), 1);
}

/* An element that the condition reads: of the iteration, or of the tile; or a number */
static const Expr *operand(Sketch *f, int tensor, bool outside) {
    Program *program = f->program;
    uint32_t dice = pick(program, 10);
    if (dice == 0) return r(f, 1 + 3 * 0x1p-12);
    const Expr *at = dice < 4 || outside ? number(program, 0) : iteration(f);
    return element(program, X_TENSOR, tensor, 0, any_axis(program), at, NULL);
}

void draw_floats(Program *program) {
    static const double divisors[] = {3, 7, 0.1, 10, 1.1, 49};
    Sketch f = {.program = program};
    grid_new(program);
    f.rows = floats_new(program, "X", TENSOR_IN, FILL_SMALL, 3);
    f.data = floats_new(program, "Y", TENSOR_OUT, FILL_SMALL, 3);
    int values = floats_new(program, "C", TENSOR_IN, FILL_NEAR, 2);
    for (int t = 0; t < 3; t++) program->tensors[t].extents[1].symbol = SYM_K;
    for (int t = 0; t < 2; t++) program->tensors[t].extents[2].number = WIDE;
    program->role_count = 2;
    program->roles[0] = (Role){.warps = 1, .instances = 1};
    program->roles[1] = (Role){.warps = 4, .instances = 1, .warpgroups = often(program, 50)};
    program->pipe_count = 1;
    program->pipes[0] = (Pipe){.depth = 1 + (int)pick(program, 3),
                               .consumers = {1},
                               .consumer_count = 1,
                               .used = true,
                               .field_count = 1};
    program->pipes[0].fields[0] =
        (Field){.copied = true, .type = TYPE_REAL, .rank = 1, .extents = {WIDE}};
    f.form = often(program, 40) ? FORM_SUM : pick(program, FORMS);
    f.comparison = often(program, 80) ? pick(program, 4) : 4 + pick(program, 2);
    f.c =
        often(program, 70) ? r(&f, divisors[pick(program, COUNT_OF(divisors))]) : param(program, 0);
    uint32_t how =
        f.form == FORM_SERIES || f.form == FORM_COUNTER ? pick(program, 3) : pick(program, 5);
    bool shifted = often(program, 12), alike = often(program, 45), near = often(program, 80);
    Random spelling = program->random, choice = {program->random.state + 77},
           names = {program->random.state + 78};
    for (f.role = 0; f.role < 2; f.role++) {
        program->random = choice; /* the same operand */
        f.handle = local_new(program, LOCAL_HANDLE);
        program->locals[f.handle].pipe = 0;
        f.loop = local_new(program, LOCAL_LOOP);
        f.start = f.role == 1 && how < 3 && shifted ? 1 : 0;
        f.x = operand(&f, values, how >= 3);
        program->tie = tie_of(&f);
        draw_role(&f, how, spelling, names);
        if (!alike) names.state += 1234567;
        if (!alike && !near) spelling.state += 1234567;
    }
    program->random = (Random){spelling.state + 99};
    program->traits[TRAIT_SPELLINGS] = !alike;
    program->textual = !alike || shifted; /* another spelling may be refused */
}

/* ---- divisors -------------------------------------------------------------------------------- */

static const double few[] = {1e-39,  1e-45, 2e-38, 1e38,  3e38, 3,     0.1,
                             -2e-39, 1,     1e-30, 2e-45, -0.7, 1e-36, 5e-41};

static const Expr *divisor(Sketch *f) {
    Program *program = f->program;
    switch (pick(program, 5)) {
    case 0: return param(program, 0);
    case 1: return element(program, X_TENSOR, f->data, 0, any_axis(program), NULL, NULL);
    case 2:
        return binary(program, DO_MUL, param(program, 0), r(f, few[pick(program, COUNT_OF(few))]));
    default: return r(f, few[pick(program, COUNT_OF(few))]);
    }
}

/* Small enough that the quotient is finite, or any */
static const Expr *dividend(Sketch *f) {
    static const double scales[] = {1e-39, 1e-38, 1e-30, 1, 1, 1e38, 1e-44};
    Program *program = f->program;
    const Expr *i = index_of(program, 0);
    const Expr *x = element(program, X_TENSOR, f->rows, 0, any_axis(program), i, NULL);
    return often(program, 30)
               ? x
               : binary(program, DO_MUL, x, r(f, scales[pick(program, COUNT_OF(scales))]));
}

/* For each element, in registers or at once; or for the tile, in a number */
void draw_divisors(Program *program) {
    Sketch f = {.program = program, .loop = -1};
    program->traits[TRAIT_DIVISOR] = true;
    grid_new(program);
    f.rows = floats_new(program, "X", TENSOR_IN, often(program, 50) ? FILL_TAIL : FILL_SMALL, 2);
    f.data = floats_new(program, "C", TENSOR_IN, FILL_TINY, 1);
    program->tensors[f.rows].extents[1].number = WIDE;
    program->role_count = 1;
    program->roles[0] = (Role){.warps = 1 + 3 * (int)pick(program, 2), .instances = 1};
    Stmt *grid = stmt_new(program, S_GRID);
    grid->local = program->axes[0].local;
    const Expr *i = index_of(program, 0);
    for (uint32_t outputs = 1 + pick(program, 3); outputs > 0; outputs--) {
        int out = floats_new(program, arena_printf(program->arena, "Y%u", outputs), TENSOR_OUT,
                             FILL_SMALL, 2);
        program->tensors[out].extents[1].number = WIDE;
        f.out = &grid->body;
        f.x = dividend(&f);
        const Expr *by = divisor(&f), *value;
        if (often(program, 30)) { /* a number, and then elements */
            f.x = binary(program, DO_MUL, param(program, 0), r(&f, 1e-39));
            value = named(&f, binary(program, DO_DIV, f.x, by), 80);
            value = binary(program, DO_ADD, value, dividend(&f));
        } else if (often(program, 40)) {
            int tile =
                tile_new(program, often(program, 70) ? LOCAL_TILE : LOCAL_SHARED, 1, WIDE, 0);
            program->locals[tile].type = TYPE_REAL;
            Stmt *declare = stmt_new(program, S_DECLARE);
            declare->local = tile;
            stmts_add(program, &grid->body, declare);
            value = element(program, X_TILE, tile, 0, i, NULL, NULL);
            stmts_add(program, &grid->body, assign(program, value, '=', f.x));
            value = binary(program, often(program, 85) ? DO_DIV : DO_EXACT_DIV, value,
                           named(&f, by, 40));
        } else {
            value =
                binary(program, often(program, 85) ? DO_DIV : DO_EXACT_DIV, f.x, named(&f, by, 40));
        }
        const Expr *to = element(program, X_TENSOR, out, 0, any_axis(program), i, NULL);
        Stmt *stmt = assign(program, to, '=', value);
        stmt->ranged = WIDE;
        stmts_add(program, &grid->body, stmt);
    }
    stmts_add(program, &program->roles[0].body, grid);
}
