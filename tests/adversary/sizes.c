/* Draws sizes and contents for a program. */
#include "tests/adversary/adversary.h"

#include <math.h>
#include <string.h>

#define FAR 20 /* sizes below it are tried before larger ones */
/* fills of data that is padded, and of divisors */
#define TAILS    12
#define DIVISORS 9
/* of other data; numbers above them: each tensor has one of its own */
#define PLAIN 7
#define EDGES 15

static bool holds(Op op, int64_t a, int64_t b) {
    if (op == DO_GE) return a >= b;
    if (op == DO_LE) return a <= b;
    return a == b;
}

bool sizes_meet(const Program *program, const Sizes *sizes) {
    for (int i = 0; i < program->require_count; i++) {
        const Require *require = &program->requires[i];
        if (!holds(require->op, sizes->values[require->symbol], require->number)) return false;
    }
    return true;
}

static int64_t draw_extent(const Program *program, Random *random, Symbol symbol, int round) {
    static const int64_t flat[] = {0, 1, 31, 32, 33, 64, 65, 96, 100, 160};
    /* of rows of a tile; many with a size that copies can have */
    static const int64_t tails[] = {8, 16, 24, 32, 20, 31, 5, 1, 0, 28, 24, 8};
    static const int64_t ends[] = {0, 1, 8, 20, 31, 32, 33, 40, 63, 64, 65, 96, 100, 140};
    static const int64_t sums[] = {0, 16, 32, 48, 48, 64, 80, 80};
    static const int64_t rows[] = {0, 1, 63, 64, 65, 65, 129, 100};
    if (symbol == SYM_N && program->tails && program->require_count > 0)
        return tails[draw(random, COUNT_OF(tails))];
    if (program->tails && (symbol == SYM_N || symbol == SYM_M))
        return ends[draw(random, COUNT_OF(ends))];
    if (symbol == SYM_N) return flat[draw(random, COUNT_OF(flat))];
    if (symbol == SYM_M && round > FAR && round % 3 == 0) return 260;
    if (symbol == SYM_M) return rows[draw(random, COUNT_OF(rows))];
    if (symbol == SYM_K && program->matrix) return sums[draw(random, COUNT_OF(sums))];
    if (round == 0) return 2;
    if (round > FAR && round % 4 == (int)symbol % 2) return 30 + (int64_t)draw(random, 12);
    return (int64_t)draw(random, round > FAR ? 4 : 6);
}

/* Of a formula of a, numbers and one element of a tensor, the one at this position */
static double tie_value(const Program *program, const Expr *expr, int64_t at, const Sizes *sizes) {
    double a = 0, b = 0;
    if (expr->a != NULL) a = tie_value(program, expr->a, at, sizes);
    if (expr->b != NULL) b = tie_value(program, expr->b, at, sizes);
    if (expr->kind == X_REAL) return expr->real;
    if (expr->kind == X_PARAM) return sizes->reals[expr->of];
    if (expr->kind == X_TENSOR) return tensor_real(program, expr->of, at, sizes);
    switch ((int)expr->op) {
    case DO_ADD: return (double)(float)(a + b);
    case DO_SUB: return (double)(float)(a - b);
    case DO_MUL: return (double)(float)(a * b);
    case DO_DIV: return (double)(float)(a / b);
    case DO_NEGATE: return -a;
    case DO_MIN: return fmin(a, b);
    case DO_MAX: return fmax(a, b);
    default: return 0;
    }
}

static int64_t draw_scalar(Random *random) {
    static const int64_t large[] = {
        2147483647, 2147483646, -2147483647, -1,  65536, 65535, 40503, 32768, 46341, 1073741824,
        536870912,  1000,       999,         100, 31,    32,    33,    64,    -31,   715827883};
    if (chance(random, 45)) return (int64_t)draw(random, 6);
    if (chance(random, 25)) return (int64_t)draw(random, 40);
    return large[draw(random, COUNT_OF(large))];
}

/* a; and b, so that a sum with it, or a comparison, is about 0 or equal */
static void draw_reals(const Program *program, Random *random, Sizes *sizes) {
    static const double plain[] = {0, 1, -1, 2.5, 1e-39, 1e-45, 3e38, 1e-3, 1e-30, 3, 0.1};
    double near = 1 + (double)draw(random, 1 << 23) * 0x1p-23;
    sizes->reals[0] = program->tie != NULL ? near : plain[draw(random, COUNT_OF(plain))];
    sizes->reals[1] = plain[draw(random, COUNT_OF(plain))];
    if (program->tie != NULL && chance(random, 90)) {
        double step = chance(random, 70) ? 0 : ((double)draw(random, 5) - 2) * 0x1p-24;
        int64_t at = (int64_t)draw(random, 4);
        sizes->reals[1] = (double)(float)(tie_value(program, program->tie, at, sizes) - step);
    }
}

/* Tiles up to the partial one, which there is. Tensors end at the same position, or in it. */
static void reach_tails(const Program *program, Random *random, Sizes *sizes) {
    static const int64_t ragged[] = {1, 8, 20, 31, 33, 40, 63, 65};
    bool rows = program->require_count > 0;
    int64_t end = ragged[draw(random, rows ? 4 : COUNT_OF(ragged))];
    if (program->edges && chance(random, 10)) /* some outputs begin at a later tile */
        end += WIDE * (4 + (int64_t)draw(random, 8));
    int64_t tiles = (end + WIDE - 1) / WIDE;
    sizes->values[SYM_N] = sizes->values[SYM_M] = end;
    for (int s = SYM_K; s <= SYM_M && program->edges; s += SYM_N - SYM_K)
        sizes->values[s] =
            chance(random, 50) ? end : (int64_t)draw(random, WIDE) + WIDE * (tiles - 1);
    if (program->edges && chance(random, 50)) sizes->values[SYM_M] = (int64_t)draw(random, 70);
    sizes->values[SYM_G] = tiles + (int64_t)draw(random, 2);
}

/* Sizes that do not meet `requires` are adjusted. */
void sizes_draw(Program *program, Random *random, int round, Sizes *sizes) {
    for (int s = 0; s < SYMBOLS; s++)
        sizes->values[s] =
            s >= SYM_Q ? draw_scalar(random) : draw_extent(program, random, (Symbol)s, round);
    if ((program->tails || program->edges) && chance(random, 70))
        reach_tails(program, random, sizes);
    sizes->contents = (int)draw(random, program->tails   ? TAILS
                                        : program->edges ? 40 * EDGES
                                                         : 3 * PLAIN);
    sizes->divisors = (int)draw(random, DIVISORS);
    sizes->reals[0] = sizes->reals[1] = 0;
    if (program->reals) draw_reals(program, random, sizes);
    for (int i = 0; i < program->require_count; i++) {
        const Require *require = &program->requires[i];
        int64_t *value = &sizes->values[require->symbol];
        for (int tries = 0; tries < 40 && !holds(require->op, *value, require->number); tries++)
            *value = tries < 4 ? require->number + tries - 2 : (int64_t)draw(random, 1000);
    }
}

const char *sizes_text(Arena *arena, const Sizes *sizes) {
    Str out = str_new(arena);
    for (int s = 0; s < SYMBOLS; s++)
        str_printf(&out, "%s%s = %lld", s > 0 ? ", " : "", symbol_names[s],
                   (long long)sizes->values[s]);
    str_printf(&out, ", contents %d and %d, a = %.9g, b = %.9g", sizes->contents, sizes->divisors,
               sizes->reals[0], sizes->reals[1]);
    return out.text;
}

int64_t tensor_extent(const Tensor *tensor, int axis, const Sizes *sizes) {
    return tensor->extents[axis].symbol >= 0 ? sizes->values[tensor->extents[axis].symbol]
                                             : tensor->extents[axis].number;
}

static uint32_t mixed(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 33);
}

/* Contents of data tensors: a permutation, equal numbers, small ones, any. `first`: of the last */
static int32_t data_value(int64_t at, int contents, uint64_t first) {
    static const int32_t any[] = {2147483647, 1000000000, -1,          0,          40503,
                                  65536,      3,          -2147483647, 1500000000, -1500000000};
    switch (contents) {
    case 0: return (int32_t)at;
    case 1: return 1;
    case 2: return (int32_t)(at / 2);
    case 3: return (int32_t)(mixed((uint64_t)at + 77) % 4);
    case 4: return (int32_t)(mixed((uint64_t)at + 5) % 3) - 1;
    case 5: return (int32_t)(mixed((uint64_t)at + 9) % 3) + 2;
    case 7: return -6 - (int32_t)(at % 3);
    case 8: return (int32_t)(mixed((uint64_t)at + 13) % 3) - 3;
    case 9: return 6 + (int32_t)(at % 3);
    case 10: return 46341; /* its square wraps to below 0 */
    case 11: return 3;
    case 12: return at < (int64_t)(first % 48) ? -3 : 4;
    case 13: return at < (int64_t)(first % 48) ? 4 : -3;
    case 14: return (int32_t)(first % 5) - 2; /* all equal, around the limits of programs */
    default: return any[(first + (uint64_t)at) % COUNT_OF(any)];
    }
}

/* Of one sign, of both, next to the limits that programs compare with */
static double tail_value(int64_t at, int contents, uint32_t some) {
    switch (contents) {
    case 0: return -1 - (double)(at % 5);
    case 1: return 1 + (double)(at % 3);
    case 2: return (double)(some % 9) - 4;
    case 3: return -99000;
    case 4: return (double)(some % 2);
    case 5: return -7;
    case 6: return 3 + (double)(some % 50);
    case 7: return 0.25 + 0.25 * (double)(some % 2);
    case 8: return -0.25 - 0.25 * (double)(some % 2);
    case 9: return -1.25 - 0.25 * (double)(some % 3);
    case 10: return 4 + 0.5 * (double)(some % 3);
    default: return (double)(some % 25) * 0.25 - 3;
    }
}

static double pole_value(int64_t at, int contents, uint32_t some) {
    static const double any[] = {0, 1, 1e-30, -1, 0.25, 0.5, 3};
    switch (contents) {
    case 0: return (double)(at % 3);
    case 1: return 1 + (double)(at % 4);
    case 2: return 0;
    case 3: return 1e-30;
    case 4: return -1 - (double)(some % 2);
    case 5: return at % 2 == 0 ? 1e10 : 1e30;
    case 6: return 3;
    default: return any[some % COUNT_OF(any)];
    }
}

static double tiny_value(int64_t at, int contents, uint32_t some) {
    static const double any[] = {0, 1, 1e-39, -1, 1e-45, -3e-40, 3};
    if (contents == 3) return 1e-39;
    return contents > 6 ? any[some % COUNT_OF(any)] : pole_value(at, contents, some);
}

double tensor_real(const Program *program, int tensor, int64_t at, const Sizes *sizes) {
    const Tensor *row = &program->tensors[tensor];
    uint32_t some = mixed((uint64_t)at * 7 + (uint64_t)tensor);
    double value = 1 + (double)(some % 3);
    int32_t bits = tensor_value(program, tensor, at, sizes);
    float old;
    memcpy(&old, &bits, sizeof old);
    if (row->mode == TENSOR_OUT) return (double)old;
    if (row->contents == FILL_TAIL) value = tail_value(at, sizes->contents, some);
    if (row->contents == FILL_POLE) value = pole_value(at, sizes->divisors, some);
    if (row->contents == FILL_TINY) value = tiny_value(at, sizes->divisors, some);
    if (row->contents == FILL_NEAR) value = 1 + (double)(some % (1 << 23)) * 0x1p-23;
    if (row->type == TYPE_HALF) return real_half(fmax(value, -60000));
    return (double)(float)value;
}

int32_t tensor_value(const Program *program, int tensor, int64_t at, const Sizes *sizes) {
    const Tensor *row = &program->tensors[tensor];
    if (row->mode == TENSOR_OUT) return (int32_t)0xa5a5a5a5;
    switch (row->contents) {
    case FILL_ROWS: {
        int32_t number = (int32_t)(at / WIDE * 1009 + at % WIDE * 31 + tensor * 50021 + 17);
        return sizes->contents % 3 == 2 ? -number
                                        : number; /* some are above the zeros of padding */
    }
    case FILL_SMALL: {
        uint64_t first = (uint64_t)sizes->contents * 1000;
        return (int32_t)(1 + mixed(first + (uint64_t)at * 7 + (uint64_t)tensor) % 3);
    }
    case FILL_TAIL:
        if (sizes->contents == 3) return 46341;      /* its square wraps */
        if (sizes->contents == 5) return INT32_MIN;  /* its absolute value is itself */
        if (sizes->contents == 8) return 1500000000; /* the sum of two wraps */
        return (int32_t)tail_value(at, sizes->contents, mixed((uint64_t)at * 7 + (uint64_t)tensor));
    case FILL_POLE:
    case FILL_TINY:
    case FILL_NEAR: return 0;
    case FILL_DATA: break;
    }
    int contents = sizes->contents, kinds = program->edges ? EDGES : PLAIN;
    if (contents >= kinds)
        contents = (int)(mixed((uint64_t)(contents * 31 + tensor)) % (uint32_t)kinds);
    return data_value(at, contents, mixed((uint64_t)sizes->values[SYM_P]));
}
